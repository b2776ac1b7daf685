//! Bursts of lost frames of constant length.

use alloc::boxed::Box;

use lasthop_base::{Duration, Invalid, Probability, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Channel, ChannelModel, ClosedForm, Sojourn};

/// Losses of several consecutive units, whatever their sizes and the time between them. Bursts are counted in
/// units, so they depend on the traffic of their direction, unlike other channels.
///
/// Losses of several consecutive frames: at each frame outside of a burst, a burst begins with a constant
/// probability and destroys this frame and the following ones, whatever their sizes and the time between them
/// (Balakrishnan et al., IEEE/ACM ToN 5(6), 1997, section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrameBursts {
    /// Probability that a burst begins at a unit outside of a burst.
    pub begin: Probability,
    /// Number of units in a burst, at least 1.
    pub frames: u32,
}

impl ChannelModel for FrameBursts {
    fn examples() -> &'static [&'static str] {
        &["begin = 0.01, frames = 4"]
    }

    fn validate(&self) -> Result<(), Invalid> {
        let problem = "found 0, expected the number of frames in a burst, at least 1";
        if self.frames == 0 { Err(Invalid { field: "frame-bursts.frames", problem }) } else { Ok(()) }
    }

    fn channel(&self, stream: Stream) -> Box<dyn Channel> {
        Box::new(Bursts { model: *self, left: 0, stream })
    }

    fn closed_form(&self) -> Option<&dyn ClosedForm> {
        Some(self)
    }
}

impl ClosedForm for FrameBursts {
    /// The complement of starting outside of a burst, at a random position of the sequence of frames, without a burst
    /// beginning.
    fn loss_probability(&self, frames: u32, _bits: u64, _on_air: Duration) -> f64 {
        let (begin, length) = (self.begin.get(), f64::from(self.frames));
        let outside = 1.0 / (1.0 - begin + begin * length);
        1.0 - outside * libm::pow(1.0 - begin, f64::from(frames))
    }
}

struct Bursts {
    model: FrameBursts,
    /// Remaining frames of the current burst.
    left: u32,
    stream: Stream,
}

impl Bursts {
    /// Whether the next frame survives.
    fn next(&mut self) -> f64 {
        if self.left == 0 && self.stream.bernoulli(self.model.begin.get()) {
            self.left = self.model.frames;
        }
        let lost = self.left > 0;
        self.left -= u32::from(lost);
        if lost { 0.0 } else { 1.0 }
    }
}

impl Channel for Bursts {
    fn survival(&mut self, _start: Time, _end: Time, _bits: u64) -> f64 {
        self.next()
    }

    fn exposure(&mut self, _start: Time, _end: Time, each: &mut dyn FnMut(f64, Probability)) -> f64 {
        each(1.0, Probability::default());
        self.next()
    }

    fn sojourn(&mut self, _at: Time) -> Sojourn {
        Sojourn::FOREVER
    }
}
