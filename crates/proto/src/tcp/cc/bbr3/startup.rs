//! Startup, which ends when the pipe is full or loses too much, and Drain.

use super::{Bbr3, RateSample, State};

/// The pipe is full when the delivery rate has not grown by this factor for so many rounds.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Gaps in the sequence numbers lost in one round that show more than noise.
const FULL_LOSSES: u32 = 6;
/// Drain ends after so many rounds in any case.
const DRAIN_ROUNDS: u64 = 3;

/// Whether sending faster brings no higher delivery rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// The delivery rate that growth is judged by, bytes per second.
    baseline: f64,
    /// Rounds without growth.
    pub(super) rounds: u32,
    /// The pipe is full, as far as is known since the search last began.
    pub(super) now: bool,
    /// The pipe has been full.
    pub(super) reached: bool,
}

impl FullPipe {
    /// Looks for growth anew, from a delivery rate of `baseline`.
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

    /// A round of a recovery has lost too much: the pipe is full.
    fn check_startup_losses(&mut self, sample: &RateSample) {
        if !self.congestion.round_started {
            return;
        }
        let gaps = core::mem::take(&mut self.congestion.gaps);
        let lossy = sample.in_recovery && gaps >= FULL_LOSSES && is_too_high(sample);
        if self.state == State::Startup && !self.full_pipe.reached && lossy {
            self.congestion.undo.state = Some(State::Startup);
            self.full_pipe.now = true;
            self.full_pipe.reached = true;
            let bdp = self.bdp(self.max_bandwidth(), 1.0);
            self.congestion.inflight_longterm = bdp.max(self.congestion.inflight_latest);
        }
    }

    pub(super) fn check_drain(&mut self, sample: &RateSample) {
        let State::Drain { since } = self.state else { return };
        let drained = sample.in_flight as f64 <= self.inflight(self.bandwidth);
        if drained || self.rounds.count > since + DRAIN_ROUNDS {
            self.start_down(sample.now);
        }
    }
}

/// Whether more was lost since the newest acknowledged segment was sent than was tolerable.
pub(super) fn is_too_high(sample: &RateSample) -> bool {
    super::congestion::is_too_high(sample.lost_since, sample.in_flight_at_sending)
}
