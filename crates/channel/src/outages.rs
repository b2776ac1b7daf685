//! Outages at given times, during which every frame is lost.

use alloc::boxed::Box;

use lasthop_base::{Duration, Invalid, Probability, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::above_zero;
use crate::{Channel, Sojourn, State};

/// Outages at given times, in which all units on the air are lost in both directions. The channel is
/// otherwise unaffected.
///
/// ```toml
/// [radio.outage]
/// first = "10 s"
/// every = "30 s"
/// lasts = "2 s"
/// ```
///
/// Times at which the mobile host cannot be reached, such as between two cells (lhack paper, section 6):
/// every frame on the air is lost, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outages {
    /// Start of the first outage.
    pub first: Duration,
    /// Time between the starts of consecutive outages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// Duration of each outage, above zero.
    pub lasts: Duration,
}

impl Outages {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// If `lasts` is zero, or not below `every`.
    pub fn validate(&self) -> Result<(), Invalid> {
        above_zero("lasts", self.lasts)?;
        if self.every.is_some_and(|every| every <= self.lasts) {
            let problem = "found at most lasts, expected the time from the start of one outage to the start of the next";
            return Err(Invalid { field: "every", problem });
        }
        Ok(())
    }

    /// Wraps `channel` so that it loses frames during these outages.
    pub fn interrupt(self, channel: Box<dyn Channel>) -> Box<dyn Channel> {
        Box::new(Interrupted { outages: self, channel })
    }

    /// Whether a frame on the air from `start` to `end` overlaps an outage.
    fn hits(&self, start: Time, end: Time) -> bool {
        self.next(start).is_some_and(|(begin, _)| begin < end || begin <= start)
    }

    /// The first outage that ends after `at`: its start, and its end (exclusive).
    fn next(&self, at: Time) -> Option<(Time, Time)> {
        let first = Time::ZERO + self.first;
        let span = |begin| (begin, begin + self.lasts);
        if at < first + self.lasts {
            return Some(span(first));
        }
        let every = self.every?;
        let begun = at.since(first).as_nanos() / every.as_nanos();
        let latest = first + every * begun;
        Some(span(if at < latest + self.lasts { latest } else { latest + every }))
    }
}

struct Interrupted {
    outages: Outages,
    channel: Box<dyn Channel>,
}

impl Channel for Interrupted {
    fn survival(&mut self, start: Time, end: Time, bits: u64) -> f64 {
        match self.outages.hits(start, end) {
            true => 0.0,
            false => self.channel.survival(start, end, bits),
        }
    }

    fn exposure(&mut self, start: Time, end: Time, each: &mut dyn FnMut(f64, Probability)) -> f64 {
        let survival = self.channel.exposure(start, end, each);
        if self.outages.hits(start, end) { 0.0 } else { survival }
    }

    fn sojourn(&mut self, at: Time) -> Sojourn {
        match self.outages.next(at) {
            Some((begin, until)) if begin <= at => Sojourn { state: State::Bad, until },
            next => {
                let Sojourn { state, until } = self.channel.sojourn(at);
                Sojourn { state, until: next.map_or(until, |(begin, _)| until.min(begin)) }
            }
        }
    }
}
