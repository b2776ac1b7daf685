//! What is said in a dialogue, and when.

use lasthop_base::{Bytes, Duration, Invalid, Stream, Streams, Time};

use super::Law;

/// What a client asks for, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// The size of each request.
    pub request: Law<Bytes>,
    /// The size of each response.
    pub response: Law<Bytes>,
    /// How long the client thinks before its first request, and after each response.
    pub think: Law<Duration>,
    /// When it begins to think.
    pub start: Time,
    /// From this instant on it asks for nothing; [`Time::NEVER`] does not end.
    pub stop: Time,
    /// How many requests there are, if not any number.
    pub requests: Option<u64>,
    /// Responses that arrive later count for the longest response time.
    pub warmup: Time,
}

impl Plan {
    /// Checks what the fields' types cannot express.
    ///
    /// # Errors
    /// The field that is wrong, and what is wrong with it, or with its law.
    pub fn validate(&self) -> Result<(), (&'static str, Invalid)> {
        let of = |key| move |invalid| (key, invalid);
        if self.requests == Some(0) {
            return Err(("requests", Invalid { field: "", problem: "found 0, expected at least 1" }));
        }
        self.request.validate().map_err(of("request"))?;
        self.response.validate().map_err(of("response"))?;
        self.think.validate().map_err(of("think"))
    }
}

/// A dialogue as both of its ends know it beforehand. The k-th request, response and thought are the same
/// whatever happens on the way.
#[derive(Clone, Debug)]
pub struct Script {
    pub(super) plan: Plan,
    requests: Stream,
    responses: Stream,
    thoughts: Stream,
}

impl Script {
    /// The one that is called `name` in a run.
    ///
    /// # Panics
    /// If the plan is not [valid](Plan::validate).
    pub fn new(plan: Plan, streams: Streams, name: &str) -> Script {
        if let Err((key, invalid)) = plan.validate() {
            panic!("{key}.{invalid}");
        }
        let stream = |of: &str| streams.stream(&[of, name].concat());
        let (requests, responses) = (stream("request:"), stream("response:"));
        Script { plan, requests, responses, thoughts: stream("think:") }
    }

    /// The size of the next request.
    pub(super) fn request(&mut self) -> u64 {
        self.plan.request.draw(&mut self.requests).0
    }

    /// The size of the next response.
    pub(super) fn response(&mut self) -> u64 {
        self.plan.response.draw(&mut self.responses).0
    }

    /// The next think time.
    pub(super) fn think_time(&mut self) -> Duration {
        self.plan.think.draw(&mut self.thoughts)
    }
}
