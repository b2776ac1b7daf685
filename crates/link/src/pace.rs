//! When the units of a link are on the air, and when they arrive.

use lasthop_base::{Duration, Time};

/// The time of a transmission on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnAir {
    /// When its first bits are sent.
    pub begin: Time,
    /// When its last bits are sent.
    pub end: Time,
    /// How long the radio sends.
    pub time: Duration,
}

/// Rate and delay of one direction of a link. Times at which bits are sent do not go back.
pub trait Pace: Send {
    /// Whether packets always arrive in the order in which they are sent.
    const KEEPS_ORDER: bool;

    /// Nothing has waited for the link before `now`.
    fn idle(&mut self, now: Time);

    /// The first time from `start` on at which bits can be sent, if something has waited since before
    /// `start`; [`Time::NEVER`] if that is after the run.
    fn ready(&mut self, start: Time) -> Time;

    /// Sends `bits` from `start` on, which take `time` at the nominal rate.
    fn transmit(&mut self, start: Time, bits: u64, time: Duration) -> OnAir;

    /// The arrival of a packet whose transmission ends at `end`; if the pace keeps the order, no earlier than that of those before
    /// it.
    fn arrival(&mut self, end: Time) -> Time;
}

/// A fixed rate and delay.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fixed {
    /// Propagation delay.
    pub delay: Duration,
}

impl Pace for Fixed {
    const KEEPS_ORDER: bool = true;

    #[inline(always)]
    fn idle(&mut self, _now: Time) {}

    #[inline(always)]
    fn ready(&mut self, start: Time) -> Time {
        start
    }

    #[inline(always)]
    fn transmit(&mut self, start: Time, _bits: u64, time: Duration) -> OnAir {
        OnAir { begin: start, end: start + time, time }
    }

    #[inline(always)]
    fn arrival(&mut self, end: Time) -> Time {
        end + self.delay
    }
}
