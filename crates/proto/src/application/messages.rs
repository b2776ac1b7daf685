//! Single messages: requests and responses of random sizes at random intervals.

use alloc::vec::Vec;

use lasthop_base::{Bytes, Duration, Invalid, Stream, Streams, Time};

use super::Distribution;
use super::activity::Behaviour;
use crate::component::Request;
use crate::report::Experience;

/// An exchange of messages over one connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Messages {
    /// Distribution of request sizes.
    pub request: Distribution<Bytes>,
    /// Distribution of response sizes.
    pub response: Distribution<Bytes>,
    /// Distribution of think times: before the first request, and after each response, or after each request if
    /// it does not wait.
    pub think: Distribution<Duration>,
    /// Whether the next request waits for the response. Keystrokes and sensor reports do not wait.
    pub waits: bool,
    /// Number of requests; `None` for no limit.
    pub requests: Option<u64>,
}

impl Messages {
    /// Checks what the fields' types cannot express.
    ///
    /// # Errors
    /// The name of the invalid field, and the problem.
    pub(super) fn validate(&self) -> Result<(), (&'static str, Invalid)> {
        at_least_one("requests", self.requests)?;
        self.request.validate().map_err(|invalid| ("request", invalid))?;
        self.response.validate().map_err(|invalid| ("response", invalid))?;
        self.think.validate().map_err(|invalid| ("think", invalid))
    }
}

/// Refuses a number of zero.
pub(super) fn at_least_one(key: &'static str, number: Option<u64>) -> Result<(), (&'static str, Invalid)> {
    match number {
        Some(0) => Err((key, Invalid { field: "", problem: "found 0, expected at least 1" })),
        _ => Ok(()),
    }
}

/// An exchange of messages in a run. The k-th request, response and think time do not depend on the network.
#[derive(Debug)]
pub(super) struct Exchanges {
    config: Messages,
    stop: Time,
    requests: Stream,
    responses: Stream,
    think_times: Stream,
    made: u64,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The next request is made at this instant.
    Thinking(Time),
    /// Waiting for the response.
    Waiting,
    /// No more requests.
    Over,
}

impl Exchanges {
    pub(super) fn new(config: Messages, start: Time, stop: Time, streams: Streams, name: &str) -> Exchanges {
        let stream = |of: &str| streams.stream(&[of, name].concat());
        let mut think_times = stream("think:");
        let first = start + config.think.draw(&mut think_times);
        Exchanges {
            config,
            stop,
            requests: stream("request:"),
            responses: stream("response:"),
            think_times,
            made: 0,
            state: State::Thinking(first),
        }
    }

    fn ask(&mut self) -> Request {
        self.made += 1;
        let size = self.config.request.draw(&mut self.requests);
        Request { connection: 0, size, response: self.config.response.draw(&mut self.responses) }
    }

    /// The state after an exchange: the next request is made a think time after `asked`.
    fn think(&mut self, now: Time, asked: Time) -> State {
        if self.config.requests == Some(self.made) || now >= self.stop {
            return State::Over;
        }
        // With zero delay and think time, requests would otherwise never advance time.
        let least = asked + Duration::from_nanos(1);
        State::Thinking((now + self.config.think.draw(&mut self.think_times)).max(least))
    }
}

impl Behaviour for Exchanges {
    fn wake(&mut self, now: Time, asked: &mut Vec<Request>) {
        let State::Thinking(due) = self.state else { return };
        if now >= self.stop {
            self.state = State::Over;
        } else if now >= due {
            asked.push(self.ask());
            self.state = if self.config.waits { State::Waiting } else { self.think(now, now) };
        }
    }

    fn on_response(&mut self, now: Time, _connection: u8, since: Time, _asked: &mut Vec<Request>) {
        if self.config.waits {
            self.state = self.think(now, since);
        }
    }

    fn next_wakeup(&self) -> Time {
        match self.state {
            State::Thinking(due) => due.min(self.stop),
            State::Waiting | State::Over => Time::NEVER,
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    fn experience(&self, _now: Time) -> Experience {
        Experience::Messages
    }
}
