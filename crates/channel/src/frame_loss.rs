//! Independent losses of whole frames.

use alloc::boxed::Box;

use lasthop_base::{Duration, Probability, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bit_errors::BitErrors;
use crate::{Channel, ChannelModel, ClosedForm, Sojourn};

/// Independent losses of units with a constant probability, whatever their size.
///
/// Independent frame loss with a constant probability, whatever the size and air time of the frame (WENP
/// paper, section VI and table I: a drop rate for each mobile host).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrameLoss {
    /// Probability that a unit is lost.
    pub loss: Probability,
}

impl ChannelModel for FrameLoss {
    fn examples() -> &'static [&'static str] {
        &["loss = 0.02"]
    }

    fn channel(&self, _stream: Stream) -> Box<dyn Channel> {
        Box::new(*self)
    }

    fn closed_form(&self) -> Option<&dyn ClosedForm> {
        Some(self)
    }
}

impl ClosedForm for FrameLoss {
    fn loss_probability(&self, frames: u32, _bits: u64, _on_air: Duration) -> f64 {
        // As many bits as frames, each lost independently.
        -libm::expm1(BitErrors::new(self.loss).log_survival(f64::from(frames)))
    }
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
