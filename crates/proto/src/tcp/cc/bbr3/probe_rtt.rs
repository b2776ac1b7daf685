//! The minimum round-trip time, and ProbeRTT, which drains the queue to measure it.

use lasthop_base::{Duration, Time};

use super::{Bbr3, Bounds, RateSample, State};

/// Window of the minimum round-trip time filter.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// ProbeRTT starts if no lower round-trip time was measured for this long.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// Minimum time at the reduced window in ProbeRTT; at least one round as well.
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);

/// The minimum round-trip time.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    pub(super) rtt: Duration,
    measured: Time,
    /// The minimum since ProbeRTT was last due.
    recent: Duration,
    recent_measured: Time,
    recent_expired: bool,
    /// End of ProbeRTT once its window is reached, and whether a round has passed since.
    ends: Option<Time>,
    round_done: bool,
}

impl MinRtt {
    pub(super) fn new(now: Time, rtt: Duration) -> MinRtt {
        MinRtt {
            rtt,
            measured: now,
            recent: rtt,
            recent_measured: now,
            recent_expired: false,
            ends: None,
            round_done: false,
        }
    }

    fn update(&mut self, now: Time, rtt: Option<Duration>) {
        self.recent_expired = now > self.recent_measured + PROBE_RTT_INTERVAL;
        if let Some(rtt) = rtt.filter(|&rtt| rtt < self.recent || self.recent_expired) {
            (self.recent, self.recent_measured) = (rtt, now);
        }
        let expired = now > self.measured + MIN_RTT_WINDOW;
        if self.recent < self.rtt || expired {
            (self.rtt, self.measured) = (self.recent, self.recent_measured);
        }
    }
}

impl Bbr3 {
    pub(super) fn update_min_rtt(&mut self, sample: &RateSample) {
        if let Some(min_rtt) = &mut self.min_rtt {
            min_rtt.update(sample.now, sample.rtt);
        }
    }

    pub(super) fn check_probe_rtt(&mut self, sample: &RateSample) {
        let due = self.min_rtt.is_some_and(|min_rtt| min_rtt.recent_expired);
        if self.state != State::ProbeRtt && due && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd();
            if let Some(min_rtt) = &mut self.min_rtt {
                min_rtt.ends = None;
            }
            self.stop_probe();
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(sample);
        }
        self.idle_restart &= sample.newly_delivered == 0;
    }

    /// The window of ProbeRTT in bytes.
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp(self.bandwidth, State::ProbeRtt.cwnd_gain()).at_least(self.least_window())
    }

    fn handle_probe_rtt(&mut self, sample: &RateSample) {
        let reached = sample.in_flight as f64 <= self.probe_rtt_cwnd();
        let round_started = self.rounds.started;
        let Some(min_rtt) = &mut self.min_rtt else { return };
        if min_rtt.ends.is_some() {
            min_rtt.round_done |= round_started;
            if min_rtt.round_done {
                self.check_probe_rtt_done(sample.now);
            }
        } else if reached {
            min_rtt.ends = Some(sample.now + PROBE_RTT_TIME);
            min_rtt.round_done = false;
            self.start_round();
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        let Some(min_rtt) = &mut self.min_rtt else { return };
        if min_rtt.ends.is_none_or(|end| now <= end) {
            return;
        }
        min_rtt.recent_measured = now;
        self.restore_cwnd();
        self.congestion.reset_shortterm();
        if self.full_pipe.reached {
            self.start_down(now);
            // The queue is empty.
            self.start_cruise();
        } else {
            self.state = State::Startup;
        }
    }
}
