//! Startup, which ends when the pipe is full or losses are too high, and Drain.

use super::{Bbr3, Bounds, RateSample, State};

/// The pipe is full when the delivery rate grows by less than this factor for [`FULL_ROUNDS`] rounds.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Discontiguous lost ranges in one round that indicate congestion.
const FULL_LOSSES: u32 = 6;
/// Drain ends after this many rounds at the latest.
const DRAIN_ROUNDS: u64 = 3;

/// Detection of a full pipe: the delivery rate no longer grows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// Baseline delivery rate in bytes per second.
    baseline: f64,
    /// Rounds without growth.
    pub(super) rounds: u32,
    /// Whether the pipe is full, since the last reset.
    pub(super) now: bool,
    /// Whether the pipe was ever full.
    pub(super) reached: bool,
}

impl FullPipe {
    /// Restarts the detection with a delivery rate of `baseline`.
    pub(super) fn reset(&mut self, baseline: f64) {
        *self = FullPipe { baseline, reached: self.reached, ..FullPipe::default() };
    }

    pub(super) fn check(&mut self, round_started: bool, sample: &RateSample) {
        let Some(rate) = sample.delivery_rate else { return };
        if self.now || !round_started || sample.application_limited {
            return;
        }
        if rate >= FULL_GROWTH * self.baseline {
            return self.reset(rate);
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_ROUNDS;
        self.reached |= self.now;
    }
}

impl Bbr3 {
    pub(super) fn check_startup(&mut self, sample: &RateSample) {
        self.check_startup_losses(sample);
        if self.state == State::Startup && self.full_pipe.reached {
            self.state = State::Drain { since: self.rounds.count };
        }
    }

    /// The pipe is full if a round in recovery had too many losses.
    fn check_startup_losses(&mut self, sample: &RateSample) {
        if !self.congestion.round_started {
            return;
        }
        let gaps = core::mem::take(&mut self.congestion.gaps);
        let lossy = sample.in_recovery && gaps >= FULL_LOSSES && is_too_high(sample);
        if self.state == State::Startup && !self.full_pipe.reached && lossy {
            self.end_startup();
        }
    }

    /// Ends Startup because of congestion.
    pub(super) fn end_startup(&mut self) {
        self.congestion.undo.state = Some(State::Startup);
        self.full_pipe.now = true;
        self.full_pipe.reached = true;
        let bdp = self.bdp(self.max_bandwidth(), 1.0);
        self.congestion.inflight_longterm = bdp.at_least(self.congestion.inflight_latest);
    }

    pub(super) fn check_drain(&mut self, sample: &RateSample) {
        let State::Drain { since } = self.state else { return };
        let drained = sample.in_flight as f64 <= self.inflight(self.bandwidth);
        if drained || self.rounds.count > since + DRAIN_ROUNDS {
            self.start_down(sample.now);
        }
    }
}

/// Whether the loss rate since the newest acknowledged segment was sent exceeds the threshold.
pub(super) fn is_too_high(sample: &RateSample) -> bool {
    super::congestion::is_too_high(sample.lost_since, sample.in_flight_at_sending)
}
