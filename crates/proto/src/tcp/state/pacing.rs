//! Pacing: when the next segment may leave.

use lasthop_base::{Duration, Time};

use super::SenderState;
use crate::tcp::timers::Timer;

/// The pacing rate and the departure time of the next segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// Bytes of payload per second.
    rate: Option<f64>,
    next: Time,
    /// The length of the last segment sent at this rate, and the time that it takes. Most are as long as the last one,
    /// and many leave at the same rate.
    last: (u32, Duration),
}

impl Pace {
    /// Returns whether the rate changes.
    fn set_rate(&mut self, rate: f64) -> bool {
        let changes = self.rate != Some(rate);
        if changes {
            (self.rate, self.last) = (Some(rate), (0, Duration::ZERO));
        }
        changes
    }

    /// Schedules the next departure after `bytes` sent at `now`.
    pub(super) fn on_sent(&mut self, now: Time, bytes: u32) {
        if let Some(rate) = self.rate.filter(|&rate| rate > 0.0) {
            if self.last.0 != bytes {
                self.last = (bytes, Duration::from_secs_f64(f64::from(bytes) / rate));
            }
            self.next = now.max(self.next) + self.last.1;
        }
    }
}

impl SenderState {
    /// Paces segments at `rate` bytes of payload per second from now on, instead of a rate of the controller. Only recovery
    /// with [records](crate::tcp::Settings::keeps_records) is paced.
    ///
    /// # Panics
    /// If the rate is not positive.
    pub fn set_pacing_rate(&mut self, rate: f64) {
        assert!(rate > 0.0, "a pacing rate of {rate}");
        self.is_paced = false;
        self.stats.reactions += u64::from(self.pace.set_rate(rate));
    }

    /// Without a round-trip time, before the first sample or after many timeouts, the rate stays as it is.
    pub(super) fn update_pacing_rate(&mut self) {
        if self.is_paced
            && let Some(srtt) = self.rtt.srtt()
        {
            self.pace.set_rate(self.cc.pacing_rate(srtt));
        }
    }

    /// The pacing rate in bytes of payload per second; `None` if the sender is not paced.
    pub(in crate::tcp) fn pacing_rate(&self) -> Option<f64> {
        self.pace.rate
    }

    /// Whether the pacing timer is set for the next departure, which is later than `now`.
    pub(in crate::tcp) fn waits_for_departure(&self, now: Time) -> bool {
        self.pace.next > now && self.timers.deadline(Timer::Pacing) == self.pace.next
    }

    /// Whether pacing allows a departure now; if not, sets the pacing timer.
    pub(in crate::tcp) fn pacing_lets_out(&mut self, now: Time) -> bool {
        let waits = self.pace.rate.is_some() && self.pace.next > now;
        if waits {
            let counted_until =
                if self.timers.runs(Timer::Pacing) { self.timers.deadline(Timer::Pacing) } else { now };
            self.stats.pacing_wait += self.pace.next.since(counted_until);
            self.timers.set(Timer::Pacing, self.pace.next);
        }
        !waits
    }
}
