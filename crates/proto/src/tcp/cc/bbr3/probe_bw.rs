//! ProbeBW: the cycle of the states Down, Cruise, Refill and Up.

use lasthop_base::{Duration, Time};

use super::startup::is_too_high;
use super::{Bbr3, Bounds, RateSample, State};

/// Minimum time between probes, and the range of the random addition.
const LEAST_WAIT: Duration = Duration::from_secs(2);
const MORE_WAIT: Duration = Duration::from_secs(1);
/// Maximum rounds between probes: those in which Reno would regain a window of this many segments.
const MOST_ROUNDS: f64 = 63.0;
/// The long-term bound grows by at most 2 to this power segments per round.
const MOST_DOUBLINGS: u32 = 30;

/// State of bandwidth probing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    /// Start of this cycle, and the time until the next probe.
    cycle_began: Time,
    pub(super) wait: Duration,
    /// Rounds since the last probe, randomised by up to one.
    pub(super) rounds: u64,
    /// Whether losses count as the response to the latest probe.
    pub(super) feedback: bool,
    /// Whether the probe has ended while its data are still being acknowledged.
    stopping: bool,
    /// Whether losses of the last probe exceeded the threshold.
    pub(super) was_too_high: bool,
    /// Whether the last probe ended at the bound of the one before.
    was_precautionary: bool,
    /// Bytes acknowledged since the long-term bound last grew, and bytes per segment of growth; `None` while
    /// it does not grow.
    acked: f64,
    acked_per_segment: Option<f64>,
    /// Number of rounds in which the bound has grown.
    doublings: u32,
}

impl Bbr3 {
    pub(super) fn start_down(&mut self, now: Time) {
        self.congestion.reset_signals();
        // Randomised in rounds and time, so that flows do not probe in step.
        let rounds = self.random.below(2);
        let wait = LEAST_WAIT + self.random.up_to(MORE_WAIT);
        let acked_per_segment = None;
        let stopping = true;
        self.probe = Probe { rounds, wait, cycle_began: now, stopping, acked_per_segment, ..self.probe };
        self.start_round();
        self.state = State::Down;
    }

    pub(super) fn start_cruise(&mut self) {
        self.state = State::Cruise;
    }

    pub(super) fn start_refill(&mut self) {
        self.congestion.reset_shortterm();
        let was_precautionary = false;
        self.probe = Probe { doublings: 0, acked: 0.0, was_precautionary, stopping: false, ..self.probe };
        self.start_round();
        self.state = State::Refill;
    }

    fn start_up(&mut self, sample: &RateSample) {
        self.probe.stopping = false;
        self.start_round();
        self.full_pipe.reset(sample.delivery_rate.unwrap_or(0.0));
        self.state = State::Up;
        self.raise_slope();
    }

    /// ProbeRTT starts: the feedback of a probe ends with this round.
    pub(super) fn stop_probe(&mut self) {
        self.probe.stopping = true;
    }

    pub(super) fn update_probe(&mut self, sample: &RateSample) {
        if !self.full_pipe.reached || sample.newly_delivered == 0 || self.adapt_longterm(sample) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(sample.now) => self.start_refill(),
            State::Down if self.is_time_to_cruise(sample) => self.start_cruise(),
            State::Refill if self.rounds.started => {
                self.probe.feedback = true;
                self.start_up(sample);
            }
            State::Up => self.go_down_in_time(sample),
            _ => {}
        }
    }

    fn is_time_to_probe(&self, now: Time) -> bool {
        let waited = now > self.probe.cycle_began + self.probe.wait;
        let reno = (self.target_inflight() / self.window.mss).at_most(MOST_ROUNDS);
        waited || self.probe.rounds as f64 >= reno
    }

    fn is_time_to_cruise(&self, sample: &RateSample) -> bool {
        let in_flight = sample.in_flight as f64;
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(self.max_bandwidth())
    }

    /// Whether the window is full and limited by the long-term bound.
    fn is_bounded(&self) -> bool {
        self.is_cwnd_limited() && self.window.cwnd >= self.congestion.inflight_longterm
    }

    /// Ends a probe that has reached the bound of an earlier one, or fills the pipe.
    fn go_down_in_time(&mut self, sample: &RateSample) {
        let fills_bound = sample.prior_in_flight as f64 + self.window.mss > self.congestion.inflight_longterm;
        if self.probe.was_too_high && fills_bound {
            self.probe.was_precautionary = true;
        } else if self.is_bounded() {
            // The bound, not the path, limits the rate.
            return self.full_pipe.reset(sample.delivery_rate.unwrap_or(0.0));
        } else if !self.full_pipe.now {
            return;
        }
        self.probe.was_too_high = false;
        self.start_down(sample.now);
    }

    /// Adapts the long-term bounds to the results of probes; returns whether a new probe was started.
    fn adapt_longterm(&mut self, sample: &RateSample) -> bool {
        if self.probe.stopping && self.rounds.started {
            self.probe.stopping = false;
            self.probe.feedback = false;
            if self.state.is_probe_bw() {
                if !sample.application_limited {
                    self.advance_max_bandwidth();
                }
                if self.probe.was_precautionary && !self.probe.was_too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        let bound = self.congestion.inflight_longterm;
        let too_high = is_too_high(sample) || self.congestion.covers_mark(sample);
        if !too_high && bound.is_finite() {
            self.congestion.inflight_longterm = bound.at_least(sample.in_flight_at_sending as f64);
            if self.state == State::Up {
                self.probe_upward(sample);
            }
        }
        false
    }

    /// Raises the long-term bound exponentially, doubling the slope each round.
    fn probe_upward(&mut self, sample: &RateSample) {
        if !self.is_bounded() {
            return;
        }
        self.probe.acked += sample.newly_delivered as f64;
        if let Some(per_segment) = self.probe.acked_per_segment {
            let segments = libm::floor(self.probe.acked / per_segment);
            self.probe.acked -= segments * per_segment;
            self.congestion.inflight_longterm += segments * self.window.mss;
        }
        if self.rounds.started {
            self.raise_slope();
        }
    }

    fn raise_slope(&mut self) {
        let growth = f64::from(1_u32 << self.probe.doublings);
        self.probe.doublings = (self.probe.doublings + 1).min(MOST_DOUBLINGS);
        self.probe.acked_per_segment = Some((self.window.cwnd / growth).at_least(self.window.mss));
    }
}
