//! Departures at the rate of a congestion control. quinn's pacer spreads five quarters of a window over a round trip, and asks no
//! control for its rate; an end whose control has one does not ask quinn for a datagram before it is due. Both pacers
//! apply: where the rate is above five quarters of the window, quinn's is the slower.

use super::proto::{self, Connection};
use lasthop_base::{Duration, Time};

/// When the next datagram may leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    next: Time,
    /// How much later than due a datagram leaves without delaying those behind it.
    tick: Duration,
}

impl Pace {
    /// The pace of an end whose timers expire at multiples of `tick`.
    pub(crate) fn new(tick: Duration) -> Pace {
        Pace { next: Time::ZERO, tick }
    }

    /// The time until which `connection` has to wait, if it is later than `now`.
    pub(crate) fn wait(self, now: Time) -> Option<Time> {
        (self.next > now).then_some(self.next)
    }

    /// `bytes` leave at `now`.
    pub(crate) fn on_sent(&mut self, now: Time, bytes: usize, connection: &Connection) {
        let rate = proto::metrics(connection).pacing_rate.filter(|rate| *rate > 0);
        if let Some(bits_per_second) = rate {
            let time = 8.0 * bytes as f64 / bits_per_second as f64;
            let earliest = Time::from_nanos(now.as_nanos().saturating_sub(self.tick.as_nanos()));
            self.next = earliest.max(self.next) + Duration::from_secs_f64(time);
        }
    }
}
