//! ProbeBW: the cycle of going down, cruising, refilling the pipe and probing for more bandwidth.

use lasthop_base::{Duration, Time};

use super::startup::is_too_high;
use super::{Bbr3, RateSample, State};

/// The time between probes is that and up to one second more.
const LEAST_WAIT: Duration = Duration::from_secs(2);
const MORE_WAIT: Duration = Duration::from_secs(1);
/// The most rounds between probes: those in which Reno would win back a window of so many segments.
const MOST_ROUNDS: f64 = 63.0;
/// The long-term bound grows by up to 2 to this power segments in a round.
const MOST_DOUBLINGS: u32 = 30;

/// Where the search for bandwidth stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    /// When this cycle began, and how long until the next probe.
    cycle_began: Time,
    wait: Duration,
    /// Rounds since the last probe, or one more.
    pub(super) rounds: u64,
    /// Losses count as an answer to a probe that was not answered yet.
    pub(super) feedback: bool,
    /// The probe is over; what it has sent is still being acknowledged.
    stopping: bool,
    /// The last probe lost too much.
    pub(super) was_too_high: bool,
    /// The last probe ended where the one before had lost too much.
    was_precautionary: bool,
    /// Bytes acknowledged since the long-term bound last grew, and how many let it grow by a segment; none while
    /// it does not.
    acked: f64,
    acked_per_segment: Option<f64>,
    /// Rounds for which the bound has grown.
    doublings: u32,
}

impl Bbr3 {
    pub(super) fn start_down(&mut self, now: Time) {
        self.congestion.reset_signals();
        // One round more or less, and a random time, so that flows do not probe together.
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

    /// ProbeRTT begins: the feedback of a probe ends with this round.
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
        let reno = (self.target_inflight() / self.mss).min(MOST_ROUNDS);
        waited || self.probe.rounds as f64 >= reno
    }

    fn is_time_to_cruise(&self, sample: &RateSample) -> bool {
        let in_flight = sample.in_flight as f64;
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(self.max_bandwidth())
    }

    /// Whether the window is full, and the long-term bound is what limits it.
    fn is_bounded(&self) -> bool {
        self.is_cwnd_limited() && self.window.cwnd >= self.congestion.inflight_longterm
    }

    /// Ends a probe that has reached what was too much before, or fills the pipe.
    fn go_down_in_time(&mut self, sample: &RateSample) {
        let fills_bound = sample.prior_in_flight as f64 + self.mss > self.congestion.inflight_longterm;
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

    /// Follows what probes for bandwidth show; says whether that has begun a new one.
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
        if !is_too_high(sample) && bound.is_finite() {
            self.congestion.inflight_longterm = bound.max(sample.in_flight_at_sending as f64);
            if self.state == State::Up {
                self.probe_upward(sample);
            }
        }
        false
    }

    /// The long-term bound grows, slowly at first, and twice as fast each round.
    fn probe_upward(&mut self, sample: &RateSample) {
        if !self.is_bounded() {
            return;
        }
        self.probe.acked += sample.newly_delivered as f64;
        if let Some(per_segment) = self.probe.acked_per_segment {
            let segments = libm::floor(self.probe.acked / per_segment);
            self.probe.acked -= segments * per_segment;
            self.congestion.inflight_longterm += segments * self.mss;
        }
        if self.rounds.started {
            self.raise_slope();
        }
    }

    fn raise_slope(&mut self) {
        let growth = f64::from(1_u32 << self.probe.doublings);
        self.probe.doublings = (self.probe.doublings + 1).min(MOST_DOUBLINGS);
        self.probe.acked_per_segment = Some((self.window.cwnd / growth).max(self.mss));
    }
}
