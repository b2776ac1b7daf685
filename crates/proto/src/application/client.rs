//! The client of a request/response application.

use alloc::boxed::Box;

use lasthop_base::{Duration, Time};

use super::endpoints::Endpoints;
use super::{REQUESTS, RESPONSES, Script};
use crate::component::{Component, Out, Port, Signal};
use crate::packet::Packet;
use crate::tcp::{Connection, Reactions, Receiver, ReceiverReactions, Sender, Settings};

/// Counters of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientStats {
    /// Requests handed to TCP.
    pub requests: u64,
    /// Responses received completely.
    pub responses: u64,
    /// Sum of all response times, each from handing the request to TCP until the last byte of the response
    /// was delivered.
    pub total_response_time: Duration,
    /// The longest response time among the responses received after the [warm-up](super::Config::warmup).
    pub greatest_response_time: Duration,
}

impl ClientStats {
    /// The difference to `earlier` counters; `longest` is not a difference.
    pub fn since(&self, earlier: &ClientStats) -> ClientStats {
        ClientStats {
            requests: self.requests - earlier.requests,
            responses: self.responses - earlier.responses,
            total_response_time: self.total_response_time - earlier.total_response_time,
            greatest_response_time: self.greatest_response_time,
        }
    }
}

/// State of the client.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Thinking; the next request is sent at this instant.
    Thinking(Time),
    /// Waiting for a response to the request sent at `since`, until a total of `until_delivered` bytes has
    /// arrived.
    Waiting { since: Time, until_delivered: u64 },
    /// No more requests.
    Over,
}

/// Sends requests and waits for responses, with sizes and think times from a [`Script`]. Uses the ports
/// [`REQUESTS`] and [`RESPONSES`].
///
/// After the last response, the client closes the request connection and the server the response connection,
/// if the settings close connections at all. Then the client signals that it finished. It also finishes when
/// either connection is aborted or reset; the other one is then aborted.
#[derive(Debug)]
pub struct Client {
    endpoints: Endpoints,
    /// Boxed because its streams are large.
    script: Box<Script>,
    state: State,
    /// Bytes of all responses requested so far.
    expected: u64,
    finished: bool,
    stats: ClientStats,
}

impl Client {
    /// A client that sends over the connection `requests` and receives over `responses`; `reaction` is the
    /// scheme's extension of its sender.
    pub fn new(
        requests: Connection,
        responses: Connection,
        settings: (&Settings, &Settings),
        reactions: (Reactions, ReceiverReactions),
        mut script: Script,
    ) -> Client {
        let first = script.config.start + script.think_time();
        Client {
            endpoints: Endpoints::new((requests, REQUESTS), (responses, RESPONSES), settings, reactions),
            script: Box::new(script),
            state: State::Thinking(first),
            expected: 0,
            finished: false,
            stats: ClientStats::default(),
        }
    }

    /// The counters.
    pub fn stats(&self) -> &ClientStats {
        &self.stats
    }

    /// The sender of the request connection.
    pub fn sender(&self) -> &Sender {
        &self.endpoints.sender
    }

    /// The receiver of the response connection.
    pub fn receiver(&self) -> &Receiver {
        &self.endpoints.receiver
    }

    fn send_request(&mut self, now: Time, out: &mut Out) {
        let (request, response) = (self.script.request(), self.script.response());
        self.expected += response;
        self.stats.requests += 1;
        self.state = State::Waiting { since: now, until_delivered: self.expected };
        self.endpoints.drive_sender(out, |sender, out| sender.supply(now, request, out));
    }

    /// Called after every event: processes a complete response, and signals the end of the application.
    fn update(&mut self, now: Time, out: &mut Out) {
        if self.endpoints.is_lost() && !self.finished {
            self.endpoints.abort_both(now, out);
            (self.state, self.finished) = (State::Over, true);
            out.signal(Signal::Finished);
        }
        if let State::Waiting { since, until_delivered } = self.state
            && self.endpoints.delivered() >= until_delivered
        {
            let time = now.since(since);
            self.stats.responses += 1;
            self.stats.total_response_time += time;
            if now > self.script.config.warmup {
                self.stats.greatest_response_time = self.stats.greatest_response_time.max(time);
            }
            let config = &self.script.config;
            if config.requests == Some(self.stats.requests) || now >= config.stop {
                self.stop(now, out);
            } else {
                // Without this, links without delay would lead to endless requests at the same instant.
                let least = since + Duration::from_nanos(1);
                self.state = State::Thinking((now + self.script.think_time()).max(least));
            }
        }
        let all_closed = self.endpoints.sender.stats().completed.is_some()
            && (!self.endpoints.closes || self.endpoints.receiver.has_ended());
        if all_closed && !self.finished {
            self.finished = true;
            out.signal(Signal::Finished);
        }
    }

    /// Stops sending requests. If none was sent, there is no connection to close.
    fn stop(&mut self, now: Time, out: &mut Out) {
        self.state = State::Over;
        if self.stats.requests > 0 {
            self.endpoints.drive_sender(out, |sender, out| sender.close(now, out));
        } else {
            self.finished = true;
            out.signal(Signal::Finished);
        }
    }
}

impl Component for Client {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        self.endpoints.receive(now, packet, port, out);
        self.update(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.endpoints.wake(now, out);
        if let State::Thinking(due) = self.state {
            if now >= self.script.config.stop {
                self.stop(now, out);
            } else if now >= due {
                self.send_request(now, out);
            }
        }
        self.update(now, out);
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        self.endpoints.on_signal(now, signal, out);
        self.update(now, out);
    }

    fn next_wakeup(&self) -> Time {
        let own = match self.state {
            State::Thinking(due) => due.min(self.script.config.stop),
            State::Waiting { .. } | State::Over => Time::NEVER,
        };
        own.min(self.endpoints.next_wakeup())
    }
}
