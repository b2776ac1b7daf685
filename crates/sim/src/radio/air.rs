//! The air: how long a unit is on it, and whether it survives.

use lasthop_base::{BitRate, Bytes, Duration, Stream, Time};
use lasthop_channel::Channel;

use super::{Expansion, Exposed, RadioConfig, RadioStats};

/// One direction's view of the air.
pub(super) struct Air {
    rate: BitRate,
    expansion: Expansion,
    exposed: Exposed,
    channel: Box<dyn Channel>,
    bits: Stream,
    last: Unit,
}

/// What a unit's size means on the air.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    size: Bytes,
    on_air: u64,
    /// How long it is on the air.
    pub(super) time: Duration,
}

impl Unit {
    /// Counts an attempt of the unit.
    pub(super) fn count(&self, stats: &mut RadioStats) {
        stats.attempts += 1;
        stats.bits_on_air += self.on_air;
        stats.air_time += self.time;
    }
}

impl Air {
    pub(super) fn new(config: &RadioConfig, channel: Box<dyn Channel>, bits: Stream) -> Air {
        let RadioConfig { rate, expansion, exposed, .. } = *config;
        let last = Unit { size: Bytes::ZERO, on_air: 0, time: Duration::ZERO };
        Air { rate, expansion, exposed, channel, bits, last }
    }

    /// A unit of this size. The last is remembered, since units come in few sizes.
    pub(super) fn unit(&mut self, size: Bytes) -> Unit {
        if self.last.size != size {
            let on_air = self.expansion.on_air(size.bits());
            self.last = Unit { size, on_air, time: self.rate.time_for_bits(on_air) };
        }
        self.last
    }

    /// Whether a unit survives that is on the air from `start` to `end`.
    pub(super) fn survives(&mut self, unit: Unit, start: Time, end: Time) -> bool {
        let exposed = match self.exposed {
            Exposed::OnAir => unit.on_air,
            Exposed::Payload => unit.size.bits(),
        };
        // Drawn even where the outcome is certain, so that the same attempt of two schemes meets
        // the same number.
        self.bits.bernoulli(self.channel.survival(start, end, exposed))
    }
}
