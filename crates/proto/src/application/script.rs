//! Message sizes and think times of an application.

use lasthop_base::{Bytes, Duration, Invalid, Stream, Streams, Time};

use super::Distribution;

/// Parameters of an application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Distribution of request sizes.
    pub request: Distribution<Bytes>,
    /// Distribution of response sizes.
    pub response: Distribution<Bytes>,
    /// Distribution of think times: before the first request, and after each response.
    pub think: Distribution<Duration>,
    /// When the first think time begins.
    pub start: Time,
    /// No requests are sent from this instant on; [`Time::NEVER`] for no end.
    pub stop: Time,
    /// Number of requests; `None` for no limit.
    pub requests: Option<u64>,
    /// Only responses that arrive later count for the longest response time.
    pub warmup: Time,
}

impl Config {
    /// Checks what the fields' types cannot express.
    ///
    /// # Errors
    /// The name of the invalid field, and the problem.
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

/// The sizes and think times of an application, drawn identically by client and server. The k-th request,
/// response and think time do not depend on the network.
#[derive(Clone, Debug)]
pub struct Script {
    pub(super) config: Config,
    requests: Stream,
    responses: Stream,
    think_times: Stream,
}

impl Script {
    /// The script of the application called `name` in a run.
    ///
    /// # Panics
    /// If the parameters are not [valid](Config::validate).
    pub fn new(config: Config, streams: Streams, name: &str) -> Script {
        if let Err((key, invalid)) = config.validate() {
            panic!("{key}.{invalid}");
        }
        let stream = |of: &str| streams.stream(&[of, name].concat());
        let (requests, responses) = (stream("request:"), stream("response:"));
        Script { config, requests, responses, think_times: stream("think:") }
    }

    /// The size of the next request.
    pub(super) fn request(&mut self) -> u64 {
        self.config.request.draw(&mut self.requests).0
    }

    /// The size of the next response.
    pub(super) fn response(&mut self) -> u64 {
        self.config.response.draw(&mut self.responses).0
    }

    /// The next think time.
    pub(super) fn think_time(&mut self) -> Duration {
        self.config.think.draw(&mut self.think_times)
    }
}
