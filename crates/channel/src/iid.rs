//! Independent bit errors at a constant rate.

use lasthop_base::{Probability, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bit_errors::FrameSurvival;
use crate::{Channel, Sojourn};

/// Independent bit errors at a constant rate (lhack paper, section 5: the corruption of messages on the last
/// hop).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Iid {
    /// Bit error rate.
    pub ber: Probability,
}

impl Iid {
    pub(crate) fn channel(self) -> impl Channel {
        Memoryless { frames: FrameSurvival::new(self.ber) }
    }
}

struct Memoryless {
    frames: FrameSurvival,
}

impl Channel for Memoryless {
    fn survival(&mut self, _start: Time, _end: Time, bits: u64) -> f64 {
        self.frames.of(bits)
    }

    fn exposure(&mut self, _start: Time, _end: Time, each: &mut dyn FnMut(f64, Probability)) -> f64 {
        each(1.0, self.frames.errors.rate);
        1.0
    }

    fn sojourn(&mut self, _at: Time) -> Sojourn {
        Sojourn::FOREVER
    }
}
