//! The client of a request/response application.

use alloc::boxed::Box;

use lasthop_base::{Duration, Time};

use super::ends::Ends;
use super::{REQUESTS, RESPONSES, Script};
use crate::component::{Component, Out, Port, Signal};
use crate::packet::Packet;
use crate::tcp::{Connection, Reaction, Receiver, Sender, Settings};

/// What a client counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientStats {
    /// Requests handed to TCP.
    pub requests: u64,
    /// Responses that have arrived as a whole.
    pub responses: u64,
    /// The sum of their response times, from when the request was handed to TCP until the last byte of the
    /// response was here.
    pub total_response_time: Duration,
    /// The longest of these; of those only that arrived after the [warm-up](super::Plan::warmup).
    pub greatest_response_time: Duration,
}

impl ClientStats {
    /// What was counted since `earlier`, which was counted before; the longest is that of all.
    pub fn since(&self, earlier: &ClientStats) -> ClientStats {
        ClientStats {
            requests: self.requests - earlier.requests,
            responses: self.responses - earlier.responses,
            total_response_time: self.total_response_time - earlier.total_response_time,
            greatest_response_time: self.greatest_response_time,
        }
    }
}

/// The state of a client.
#[derive(Clone, Copy, Debug)]
enum State {
    /// It sends a request at this instant.
    Thinking(Time),
    /// It sent a request at `since`, and waits until `until_delivered` bytes have arrived in all.
    Waiting { since: Time, until_delivered: u64 },
    /// It has no more requests.
    Over,
}

/// Thinks, asks and waits, by a [`Script`]. Its packets come and go by [`REQUESTS`] and [`RESPONSES`].
///
/// When it has asked for the last time and was answered, it closes the connection of requests, and the server
/// that of responses, if the settings have it that connections are closed. Then it says that it is finished; or
/// when one of the connections is given up or reset, and with it the other.
#[derive(Debug)]
pub struct Client {
    ends: Ends,
    /// Its streams are large.
    script: Box<Script>,
    state: State,
    /// Bytes of responses asked for so far.
    expected: u64,
    finished: bool,
    stats: ClientStats,
}

impl Client {
    /// One that asks over the connection `requests` and is answered over `responses`; `reaction` is what a
    /// scheme adds to its sender.
    pub fn new(
        requests: Connection,
        responses: Connection,
        settings: (&Settings, &Settings),
        reaction: Option<Box<dyn Reaction>>,
        mut script: Script,
    ) -> Client {
        let first = script.plan.start + script.think_time();
        Client {
            ends: Ends::new((requests, REQUESTS), (responses, RESPONSES), settings, reaction),
            script: Box::new(script),
            state: State::Thinking(first),
            expected: 0,
            finished: false,
            stats: ClientStats::default(),
        }
    }

    /// What was counted so far.
    pub fn stats(&self) -> &ClientStats {
        &self.stats
    }

    /// The sending end of the connection of requests.
    pub fn sender(&self) -> &Sender {
        &self.ends.sender
    }

    /// The receiving end of the connection of responses.
    pub fn receiver(&self) -> &Receiver {
        &self.ends.receiver
    }

    fn send_request(&mut self, now: Time, out: &mut Out) {
        let (request, response) = (self.script.request(), self.script.response());
        self.expected += response;
        self.stats.requests += 1;
        self.state = State::Waiting { since: now, until_delivered: self.expected };
        self.ends.drive_sender(out, |sender, out| sender.supply(now, request, out));
    }

    /// After every event: takes the response if it is here as a whole, and says so when all is over.
    fn go_on(&mut self, now: Time, out: &mut Out) {
        if self.ends.is_lost() && !self.finished {
            self.ends.give_up(now, out);
            (self.state, self.finished) = (State::Over, true);
            out.signal(Signal::Finished);
        }
        if let State::Waiting { since, until_delivered } = self.state
            && self.ends.delivered() >= until_delivered
        {
            let time = now.since(since);
            self.stats.responses += 1;
            self.stats.total_response_time += time;
            if now > self.script.plan.warmup {
                self.stats.greatest_response_time = self.stats.greatest_response_time.max(time);
            }
            let plan = &self.script.plan;
            if plan.requests == Some(self.stats.requests) || now >= plan.stop {
                self.stop(now, out);
            } else {
                // Over links that take no time it would otherwise ask for ever at one instant.
                let least = since + Duration::from_nanos(1);
                self.state = State::Thinking((now + self.script.think_time()).max(least));
            }
        }
        let all_closed = self.ends.sender.stats().completed.is_some()
            && (!self.ends.closes || self.ends.receiver.has_ended());
        if all_closed && !self.finished {
            self.finished = true;
            out.signal(Signal::Finished);
        }
    }

    /// It has no more to ask. Where it never asked, there is no connection to close.
    fn stop(&mut self, now: Time, out: &mut Out) {
        self.state = State::Over;
        if self.stats.requests > 0 {
            self.ends.drive_sender(out, |sender, out| sender.close(now, out));
        } else {
            self.finished = true;
            out.signal(Signal::Finished);
        }
    }
}

impl Component for Client {
    fn receive(&mut self, now: Time, packet: Packet, port: Port, out: &mut Out) {
        self.ends.receive(now, packet, port, out);
        self.go_on(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.ends.wake(now, out);
        if let State::Thinking(due) = self.state {
            if now >= self.script.plan.stop {
                self.stop(now, out);
            } else if now >= due {
                self.send_request(now, out);
            }
        }
        self.go_on(now, out);
    }

    fn next_wakeup(&self) -> Time {
        let own = match self.state {
            State::Thinking(due) => due.min(self.script.plan.stop),
            State::Waiting { .. } | State::Over => Time::NEVER,
        };
        own.min(self.ends.next_wakeup())
    }
}
