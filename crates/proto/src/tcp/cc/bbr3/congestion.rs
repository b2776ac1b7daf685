//! What losses say: bounds for long, found by probes for bandwidth, and bounds until the next probe.

use super::{Bbr3, LostSegment, RateSample, State};
use crate::tcp::seq::SeqNum;

/// The share of lost data that is tolerated while bandwidth is probed for.
pub(super) const LOSS_THRESHOLD: f64 = 0.02;
/// The least share of the bounds that a round with losses leaves.
pub(super) const BETA: f64 = 0.7;
/// The share of the long-term bound that is left free for others.
const HEADROOM: f64 = 0.15;

/// The bounds that losses set, in bytes and bytes per second; infinite before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    pub(super) inflight_longterm: f64,
    pub(super) inflight_shortterm: f64,
    pub(super) bandwidth_shortterm: f64,
    /// The most delivered in a round, and the greatest rate of it, in the present round of losses.
    pub(super) inflight_latest: f64,
    bandwidth_latest: f64,
    /// Rounds of losses are rounds, but the first loss begins one.
    round_ends: u64,
    /// The acknowledgement at hand begins a round of losses.
    pub(super) round_started: bool,
    loss_in_round: bool,
    /// Gaps in the sequence numbers that were lost in this round, and where the last one ends.
    pub(super) gaps: u32,
    gap_ends: Option<SeqNum>,
    pub(super) undo: Undo,
}

/// What there was before losses were answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// The state that losses have ended.
    pub(super) state: Option<State>,
    inflight_longterm: f64,
    inflight_shortterm: f64,
    bandwidth_shortterm: f64,
}

impl Default for Congestion {
    fn default() -> Congestion {
        Congestion {
            inflight_longterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            bandwidth_shortterm: f64::INFINITY,
            inflight_latest: 0.0,
            bandwidth_latest: 0.0,
            round_ends: 0,
            round_started: false,
            loss_in_round: false,
            gaps: 0,
            gap_ends: None,
            undo: Undo {
                state: None,
                inflight_longterm: 0.0,
                inflight_shortterm: 0.0,
                bandwidth_shortterm: 0.0,
            },
        }
    }
}

impl Congestion {
    /// Losses so far say nothing about what is sent from now on.
    pub(super) fn reset_signals(&mut self) {
        self.loss_in_round = false;
        (self.inflight_latest, self.bandwidth_latest) = (0.0, 0.0);
    }

    pub(super) fn reset_shortterm(&mut self) {
        (self.inflight_shortterm, self.bandwidth_shortterm) = (f64::INFINITY, f64::INFINITY);
    }
}

/// Whether `lost` bytes of `in_flight` are more than is tolerable.
pub(super) fn is_too_high(lost: u64, in_flight: u64) -> bool {
    lost as f64 > LOSS_THRESHOLD * in_flight as f64
}

impl Bbr3 {
    /// The long-term bound with room for others, bytes.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let bound = self.congestion.inflight_longterm;
        if bound.is_infinite() {
            return bound;
        }
        let headroom = self.mss.max(HEADROOM * bound);
        (bound - headroom).max(self.least_window())
    }

    // ---- each lost segment ------------------------------------------------------------------------------

    pub(super) fn handle_lost_segment(&mut self, lost: &LostSegment) {
        self.delivered = lost.delivered;
        self.note_loss(lost);
        if self.probe.feedback && is_too_high(lost.lost_since, lost.in_flight_at_sending) {
            self.probe.feedback = false;
            self.probe.was_too_high = true;
            if !lost.application_limited {
                let most = BETA * self.target_inflight();
                self.congestion.inflight_longterm = inflight_at_loss(lost).max(most);
            }
            if self.state == State::Up {
                self.congestion.undo.state = Some(State::Up);
                self.start_down(lost.now);
            }
        }
    }

    fn note_loss(&mut self, lost: &LostSegment) {
        if !self.congestion.loss_in_round {
            self.congestion.round_ends = lost.delivered;
            self.save_cwnd();
            self.save_for_undo();
        }
        let congestion = &mut self.congestion;
        congestion.loss_in_round = true;
        congestion.gaps += u32::from(congestion.gap_ends != Some(lost.start));
        congestion.gap_ends = Some(lost.end);
    }

    // ---- once per round -----------------------------------------------------------------------------------

    pub(super) fn update_delivery_signals(&mut self, sample: &RateSample) {
        let (rate, volume) = delivery(sample);
        let congestion = &mut self.congestion;
        congestion.bandwidth_latest = congestion.bandwidth_latest.max(rate);
        congestion.inflight_latest = congestion.inflight_latest.max(volume);
        congestion.round_started =
            sample.newly_delivered > 0 && sample.prior_delivered >= congestion.round_ends;
        if congestion.round_started {
            congestion.round_ends = sample.delivered;
        }
    }

    pub(super) fn advance_delivery_signals(&mut self, sample: &RateSample) {
        if self.congestion.round_started {
            (self.congestion.bandwidth_latest, self.congestion.inflight_latest) = delivery(sample);
        }
    }

    /// After a round with losses, what is sent comes down to what was delivered in it, but not by more than
    /// [`BETA`].
    pub(super) fn adapt_to_losses(&mut self) {
        if !self.congestion.round_started {
            return;
        }
        let lossy = core::mem::take(&mut self.congestion.loss_in_round);
        if !lossy || self.state.accelerates() {
            return;
        }
        let max_bandwidth = self.max_bandwidth();
        let congestion = &mut self.congestion;
        if congestion.bandwidth_shortterm.is_infinite() {
            congestion.bandwidth_shortterm = max_bandwidth;
        }
        if congestion.inflight_shortterm.is_infinite() {
            congestion.inflight_shortterm = self.window.cwnd;
        }
        congestion.bandwidth_shortterm =
            congestion.bandwidth_latest.max(BETA * congestion.bandwidth_shortterm);
        congestion.inflight_shortterm = congestion.inflight_latest.max(BETA * congestion.inflight_shortterm);
    }

    // ---- undo ---------------------------------------------------------------------------------------------

    pub(super) fn save_for_undo(&mut self) {
        let congestion = &mut self.congestion;
        congestion.undo = Undo {
            state: None,
            inflight_longterm: congestion.inflight_longterm,
            inflight_shortterm: congestion.inflight_shortterm,
            bandwidth_shortterm: congestion.bandwidth_shortterm,
        };
    }

    /// The losses were none: the bounds are at least what they were, and a probe that they have ended begins
    /// again.
    pub(super) fn undo(&mut self) {
        self.full_pipe.reset(0.0);
        let congestion = &mut self.congestion;
        congestion.loss_in_round = false;
        let undo = congestion.undo;
        congestion.inflight_longterm = congestion.inflight_longterm.max(undo.inflight_longterm);
        congestion.inflight_shortterm = congestion.inflight_shortterm.max(undo.inflight_shortterm);
        congestion.bandwidth_shortterm = congestion.bandwidth_shortterm.max(undo.bandwidth_shortterm);
        congestion.undo.state = None;
        let stays = self.state == State::ProbeRtt;
        match undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.reached = false;
                if !stays {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if self.state != State::Up && !stays => self.start_refill(),
            _ => {}
        }
    }
}

/// The rate of a sample, and the bytes delivered in its interval; none if the sample has none.
fn delivery(sample: &RateSample) -> (f64, f64) {
    let volume = if sample.newly_delivered > 0 { sample.delivered - sample.prior_delivered } else { 0 };
    (sample.delivery_rate.unwrap_or(0.0), volume as f64)
}

/// What was in flight when the losses passed the threshold, which they did within `lost`: solves
/// (lost before + x) / (in flight before + x) = threshold for x.
fn inflight_at_loss(lost: &LostSegment) -> f64 {
    let size = f64::from(lost.end - lost.start);
    let in_flight_before = (lost.in_flight_at_sending as f64 - size).max(0.0);
    let lost_before = (lost.lost_since as f64 - size).max(0.0);
    let prefix = (LOSS_THRESHOLD * in_flight_before - lost_before) / (1.0 - LOSS_THRESHOLD);
    in_flight_before + prefix.max(0.0)
}
