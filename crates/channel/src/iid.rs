//! Independent bit errors at a constant rate.

use alloc::boxed::Box;

use lasthop_base::{Duration, Probability, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bit_errors::{BitErrors, FrameSurvival};
use crate::{Channel, ChannelModel, ClosedForm, Sojourn};

/// Independent bit errors with a constant probability.
///
/// Independent bit errors at a constant rate (lhack paper, section 5: the corruption of messages on the last
/// hop).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Iid {
    /// Bit error rate.
    pub ber: Probability,
}

impl ChannelModel for Iid {
    fn examples() -> &'static [&'static str] {
        &["ber = 1e-6"]
    }

    fn channel(&self, _stream: Stream) -> Box<dyn Channel> {
        Box::new(Memoryless { frames: FrameSurvival::new(self.ber) })
    }

    fn closed_form(&self) -> Option<&dyn ClosedForm> {
        Some(self)
    }
}

impl ClosedForm for Iid {
    fn loss_probability(&self, _frames: u32, bits: u64, _on_air: Duration) -> f64 {
        -libm::expm1(BitErrors::new(self.ber).log_survival(bits as f64))
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
