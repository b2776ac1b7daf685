//! The timers of a sender or receiver: a table of deadlines with a cached minimum.

use lasthop_base::{Duration, Time};

/// Ticks below which Linux's timer wheel is exact; each further level is eight times longer and coarser.
const WHEEL_LEVEL: u64 = 63;

/// Expiry time of a Linux timer set at `now` for `delay`: a whole number of ticks, counted from the next
/// tick; timers of 63 ticks and more are rounded up to a multiple of 8, of 504 and more to one of 64, and so
/// on (`kernel/time/timer.c`).
pub(super) fn on_wheel(now: Time, delay: Duration, tick: Duration) -> Time {
    let tick = tick.as_nanos();
    let delay = delay.as_nanos().div_ceil(tick);
    let (mut level, mut longest) = (0, WHEEL_LEVEL);
    while delay >= longest && level < 8 {
        level += 1;
        longest = longest.saturating_mul(8);
    }
    let due = (now.as_nanos() / tick).saturating_add(delay) >> (3 * level);
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
            on_wheel(Time::ZERO + ms(now), ms(delay), ms(4)).as_nanos() / 1_000_000
        };
        // Ten ticks, counted from the next tick.
        assert_eq!([due(0, 40), due(1, 40), due(3, 38), due(4, 40)], [44, 44, 44, 48]);
        // Up to 62 ticks are exact; longer timers are rounded up to a multiple of eight.
        assert_eq!([due(0, 248), due(0, 252), due(0, 284), due(8, 280)], [252, 256, 288, 320]);
        assert_eq!([due(0, 2012), due(0, 2016)], [2016, 2048]);
        assert!(due(0, 120_000) >= 120_000);
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
