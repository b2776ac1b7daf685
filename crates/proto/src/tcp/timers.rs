//! The timers of a sender or receiver: a table of deadlines with a cached minimum.

use lasthop_base::{Duration, Time};

/// Ticks below which Linux's timer wheel is exact; each further level is eight times longer and coarser.
const WHEEL_LEVEL: u64 = 63;

/// A clock that ticks. Most of what a timer costs would be the divisions by its tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticker {
    tick: u64,
    /// 2⁶⁴ divided by the tick, rounded up. The upper half of a number times it is the number divided by the tick, if the number is
    /// below `exact_below`: the product exceeds the quotient times 2⁶⁴ by less than the number times the tick.
    reciprocal: u64,
    exact_below: u64,
}

impl Ticker {
    pub(super) fn new(tick: Duration) -> Ticker {
        let tick = tick.as_nanos();
        // With a tick of a nanosecond or none, nothing is divided this way.
        let exact_below = if tick > 1 { u64::MAX / tick } else { 0 };
        Ticker { tick, reciprocal: exact_below + 1, exact_below }
    }

    /// Whole ticks in `nanos`.
    #[inline]
    fn whole(self, nanos: u64) -> u64 {
        if nanos < self.exact_below {
            ((u128::from(nanos) * u128::from(self.reciprocal)) >> 64) as u64
        } else {
            nanos / self.tick
        }
    }
}

/// Expiry time of a Linux timer set at `now` for `delay`: a whole number of ticks, counted from the next
/// tick; timers of 63 ticks and more are rounded up to a multiple of 8, of 504 and more to one of 64, and so
/// on (`kernel/time/timer.c`).
pub(super) fn on_wheel(now: Time, delay: Duration, ticker: Ticker) -> Time {
    let (tick, whole) = (ticker.tick, ticker.whole(delay.as_nanos()));
    let delay = whole + u64::from(whole * tick < delay.as_nanos());
    let (mut level, mut longest) = (0, WHEEL_LEVEL);
    while delay >= longest && level < 8 {
        level += 1;
        longest = longest.saturating_mul(8);
    }
    let due = ticker.whole(now.as_nanos()).saturating_add(delay) >> (3 * level);
    Time::from_nanos(((due + 1) << (3 * level)).saturating_mul(tick))
}

/// A timer of a sender or a receiver. Timers due at the same time expire in the order of this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The time by which a reordered segment must have arrived (RFC 8985 section 6.3).
    Reordering,
    /// Tail loss probe (RFC 8985 section 7.2).
    Probe,
    /// Retransmission timeout (RFC 6298).
    Retransmission,
    /// Probe of a closed receive window (RFC 9293 section 3.8.6.1).
    Persist,
    /// Departure of the next segment under pacing.
    Pacing,
    /// Delayed acknowledgement (RFC 9293 section 3.8.6.3).
    DelayedAck,
    /// The earliest timer of the reactions.
    Reaction,
}

impl Timer {
    const ALL: [Timer; 7] = [
        Timer::Reordering,
        Timer::Probe,
        Timer::Retransmission,
        Timer::Persist,
        Timer::Pacing,
        Timer::DelayedAck,
        Timer::Reaction,
    ];

    /// Whether most segments or acknowledgements move the timer. Its deadline is not part of a cached minimum, which
    /// would change as often.
    const fn moves_often(self) -> bool {
        matches!(self, Timer::Probe | Timer::Retransmission | Timer::Pacing)
    }
}

/// A deadline for each [`Timer`]; [`Time::NEVER`] for stopped timers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    deadlines: [Time; Timer::ALL.len()],
    /// The earliest deadline of the timers that do not [move with each segment](Timer::moves_often).
    next_of_others: Time,
}

impl Timers {
    /// All timers stopped.
    pub(super) const STOPPED: Timers =
        Timers { deadlines: [Time::NEVER; Timer::ALL.len()], next_of_others: Time::NEVER };

    /// The earliest deadline.
    #[inline]
    pub(super) fn next(&self) -> Time {
        let of_segments = self.deadline(Timer::Probe).min(self.deadline(Timer::Retransmission));
        of_segments.min(self.deadline(Timer::Pacing).min(self.next_of_others))
    }

    /// The earliest deadline, if none of the timers runs that move with each segment. A receiver has none of these.
    #[inline]
    pub(super) fn next_of_others(&self) -> Time {
        debug_assert_eq!(self.next(), self.next_of_others);
        self.next_of_others
    }

    /// Whether `timer` is set.
    pub(super) fn runs(&self, timer: Timer) -> bool {
        self.deadline(timer) != Time::NEVER
    }

    /// When `timer` expires.
    pub(super) fn deadline(&self, timer: Timer) -> Time {
        self.deadlines[timer as usize]
    }

    /// Sets `timer`; [`Time::NEVER`] stops it.
    pub(super) fn set(&mut self, timer: Timer, deadline: Time) {
        let before = core::mem::replace(&mut self.deadlines[timer as usize], deadline);
        if timer.moves_often() {
            return;
        }
        if deadline <= self.next_of_others {
            self.next_of_others = deadline;
        } else if before == self.next_of_others {
            let others = Timer::ALL.into_iter().filter(|timer| !timer.moves_often());
            self.next_of_others = others.map(|timer| self.deadline(timer)).fold(Time::NEVER, Time::min);
        }
    }

    /// Stops `timer`.
    pub(super) fn stop(&mut self, timer: Timer) {
        // Most timers are already stopped.
        if self.runs(timer) {
            self.set(timer, Time::NEVER);
        }
    }

    /// The first timer due at `now`. The caller must restart or stop it.
    pub(super) fn due(&self, now: Time) -> Option<Timer> {
        let first = self.deadlines.iter().position(|&deadline| deadline <= now)?;
        Some(Timer::ALL[first])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With ticks of 4 ms, as in Linux with HZ = 250.
    #[test]
    fn the_timer_wheel_of_linux_rounds_up() {
        let due = |now, delay| {
            let ms = Duration::from_millis;
            on_wheel(Time::ZERO + ms(now), ms(delay), Ticker::new(ms(4))).as_nanos() / 1_000_000
        };
        // Ten ticks, counted from the next tick.
        assert_eq!([due(0, 40), due(1, 40), due(3, 38), due(4, 40)], [44, 44, 44, 48]);
        // Up to 62 ticks are exact; longer timers are rounded up to a multiple of eight.
        assert_eq!([due(0, 248), due(0, 252), due(0, 284), due(8, 280)], [252, 256, 288, 320]);
        assert_eq!([due(0, 2012), due(0, 2016)], [2016, 2048]);
        assert!(due(0, 120_000) >= 120_000);
    }

    /// Around multiples of ticks, up to the largest numbers.
    #[test]
    fn a_ticker_divides() {
        for tick in [1, 2, 3, 7, 1 << 20, 999_983, 4_000_000, 10_000_001, u64::MAX / 3, u64::MAX] {
            let ticker = Ticker::new(Duration::from_nanos(tick));
            let (exact, most) = (ticker.exact_below, u64::MAX / tick);
            for quotient in [0, 1, 2, most / 3, most / 2, exact / tick, most.saturating_sub(1), most] {
                for nanos in
                    [-2_i64, -1, 0, 1].map(|more| quotient.saturating_mul(tick).saturating_add_signed(more))
                {
                    assert_eq!(ticker.whole(nanos), nanos / tick, "{nanos} by {tick}");
                }
            }
            for nanos in [exact.saturating_sub(1), exact, u64::MAX] {
                assert_eq!(ticker.whole(nanos), nanos / tick, "{nanos} by {tick}");
            }
        }
    }

    #[test]
    fn the_earliest_deadline_is_next_and_ties_go_in_order() {
        let at = Time::from_nanos;
        let mut timers = Timers::STOPPED;
        assert_eq!((timers.next(), timers.due(at(9))), (Time::NEVER, None));
        timers.set(Timer::Pacing, at(5));
        timers.set(Timer::Retransmission, at(7));
        timers.set(Timer::Probe, at(5));
        assert_eq!(timers.next(), at(5));
        assert_eq!(timers.due(at(4)), None);
        assert_eq!(timers.due(at(5)), Some(Timer::Probe));
        timers.stop(Timer::Probe);
        assert_eq!(timers.due(at(5)), Some(Timer::Pacing));
        timers.stop(Timer::Pacing);
        assert!(timers.runs(Timer::Retransmission) && !timers.runs(Timer::Pacing));
        timers.stop(Timer::Retransmission);
        assert_eq!(timers.next(), Time::NEVER);
    }
}
