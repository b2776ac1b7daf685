//! The air interface: air time and survival of units.

use lasthop_base::{BitRate, Bytes, Duration, Stream, Time};
use lasthop_channel::{Channel, State};
use lasthop_proto::fec::{self, Decoder, Interval};
use lasthop_proto::frag::Mtu;

use super::fragmenter::Coding;
use super::{Expansion, Exposed, LinkStats, RadioConfig};

/// One direction of the air interface.
// In this order: what every unit needs comes first, and is side by side.
#[repr(C)]
pub(super) struct Air {
    channel: Box<dyn Channel>,
    /// The two most recent sizes. Units have few different sizes: full ones, and the remainders of packets.
    recent: [Unit; 2],
    bits: Stream,
    rate: BitRate,
    expansion: Expansion,
    exposed: Exposed,
    /// Boxed, because most links have none.
    decoder: Option<Box<Decoder>>,
    /// Fixed size of all units, if configured.
    unit: Option<Mtu>,
    /// Buffer for the bit error rates that a coded unit meets.
    parts: Vec<Interval>,
}

/// A unit on the air.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    size: Bytes,
    coding: Coding,
    /// Bits on the air.
    pub(super) on_air: u64,
    /// Number of bits exposed to errors.
    exposed: u64,
    /// Air time.
    pub(super) time: Duration,
}

impl Unit {
    /// Counts a transmission of this unit.
    pub(super) fn count(&self, stats: &mut LinkStats) {
        stats.attempts += 1;
        stats.bits_on_air += self.on_air;
        stats.air_time += self.time;
    }
}

impl Air {
    pub(super) fn new(config: &RadioConfig, channel: Box<dyn Channel>, bits: Stream) -> Air {
        let RadioConfig { rate, expansion, exposed, .. } = *config;
        let unit = config.fixed_unit();
        let (size, coding, time) = (Bytes::ZERO, Coding::Uncoded, Duration::ZERO);
        let none = Unit { size, coding, on_air: 0, exposed: 0, time };
        let decoder = config.fec.map(|fec| Box::new(Decoder::new(fec.code)));
        Air { rate, expansion, exposed, channel, bits, decoder, unit, parts: Vec::new(), recent: [none; 2] }
    }

    /// The unit for `size` bytes.
    #[inline]
    pub(super) fn unit(&mut self, size: Bytes, coding: Coding) -> Unit {
        let known = |unit: &Unit| (unit.size, unit.coding) == (size, coding);
        if !known(&self.recent[0]) {
            self.recent.swap(0, 1);
            if !known(&self.recent[0]) {
                self.recent[0] = self.another(size, coding);
            }
        }
        self.recent[0]
    }

    #[inline(never)]
    fn another(&self, size: Bytes, coding: Coding) -> Unit {
        let bits = if coding == Coding::OnTop { self.coded(size) } else { size.bits() };
        let on_air = self.expansion.on_air(bits);
        let exposed = self.exposed.of(bits, self.expansion);
        Unit { size, coding, on_air, exposed, time: self.rate.time_for_bits(on_air) }
    }

    /// Bits of `size` bytes including check bits, rounded up to full units if the unit size is fixed.
    fn coded(&self, size: Bytes) -> u64 {
        let code = self.decoder.as_ref().expect("a coded unit has a code").code();
        match self.unit {
            Some(unit) => u64::from(fec::units(size, unit, Some(code))) * unit.get().bits(),
            None => code.coded(size.bits()),
        }
    }

    /// Whether the channel is in its good state.
    pub(super) fn is_good(&mut self, now: Time) -> bool {
        self.channel.sojourn(now).state == State::Good
    }

    /// Whether a unit on the air from `start` to `end` survives.
    #[inline]
    pub(super) fn survives(&mut self, unit: Unit, start: Time, end: Time) -> bool {
        let survival = match unit.coding {
            Coding::Uncoded => self.channel.survival(start, end, unit.exposed),
            Coding::Within | Coding::OnTop => self.decoded(unit, start, end),
        };
        // Drawn even if the outcome is certain, so that the n-th attempt uses the same random number under
        // every scheme.
        self.bits.bernoulli(survival)
    }

    /// The probability that a coded unit is decoded.
    #[inline(never)]
    fn decoded(&mut self, unit: Unit, start: Time, end: Time) -> f64 {
        let Air { channel, decoder, parts, unit: filled, .. } = self;
        parts.clear();
        let whole =
            channel.exposure(start, end, &mut |share, ber| parts.push(Interval { share, ber: ber.get() }));
        let decoder = decoder.as_mut().expect("a coded unit has a code");
        let decoded = match filled {
            Some(_) => decoder.unit_survival(unit.exposed, parts),
            None => decoder.message_survival(unit.exposed, parts),
        };
        whole * decoded
    }
}
