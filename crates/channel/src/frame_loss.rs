//! Independent losses of whole frames.

use lasthop_base::{Probability, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Channel, Sojourn};

/// Independent frame loss with a constant probability, whatever the size and air time of the frame (WENP
/// paper, section VI and table I: a drop rate for each mobile host).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrameLoss {
    /// Probability that a frame is lost.
    pub loss: Probability,
}

impl Channel for FrameLoss {
    fn survival(&mut self, _start: Time, _end: Time, _bits: u64) -> f64 {
        1.0 - self.loss.get()
    }

    fn exposure(&mut self, _start: Time, _end: Time, each: &mut dyn FnMut(f64, Probability)) -> f64 {
        each(1.0, Probability::default());
        1.0 - self.loss.get()
    }

    fn sojourn(&mut self, _at: Time) -> Sojourn {
        Sojourn::FOREVER
    }
}
