//! Response to losses: long-term bounds found by bandwidth probes, and short-term bounds until the next
//! probe.

use lasthop_base::Time;

use super::{Bbr3, Bounds, LostSegment, RateSample, State};
use crate::packet::SeqNum;

/// Tolerated loss rate while probing for bandwidth.
pub(super) const LOSS_THRESHOLD: f64 = 0.02;
/// Lower limit of the reduction of the bounds in a round with losses.
pub(super) const BETA: f64 = 0.7;
/// Fraction of the long-term bound that is left to other flows.
const HEADROOM: f64 = 0.15;

/// Bounds set by losses, in bytes and bytes per second; infinite until the first loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    pub(super) inflight_longterm: f64,
    pub(super) inflight_shortterm: f64,
    pub(super) bandwidth_shortterm: f64,
    /// Maximum bytes delivered in a round and maximum delivery rate, in the current loss round.
    pub(super) inflight_latest: f64,
    bandwidth_latest: f64,
    /// Loss rounds are round trips that start at the first loss.
    round_ends: u64,
    /// Whether the current acknowledgement starts a loss round.
    pub(super) round_started: bool,
    loss_in_round: bool,
    /// Bytes in flight when the newest acknowledged segment was sent; `None` if it was application-limited.
    in_flight_at_sending: Option<u64>,
    /// Delivered bytes when the last mark was echoed: segments sent before met the same queue.
    marked_at: Option<u64>,
    /// Number of discontiguous lost ranges in this round, and the end of the last one.
    pub(super) gaps: u32,
    gap_ends: Option<SeqNum>,
    pub(super) undo: Undo,
}

/// State before the response to losses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// The state that ended because of losses.
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
            in_flight_at_sending: None,
            marked_at: None,
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
    /// Discards the loss signals collected so far.
    pub(super) fn reset_signals(&mut self) {
        self.loss_in_round = false;
        (self.inflight_latest, self.bandwidth_latest) = (0.0, 0.0);
    }

    /// Whether the newest segment of the sample was sent before the last mark was echoed.
    pub(super) fn covers_mark(&self, sample: &RateSample) -> bool {
        self.marked_at.is_some_and(|delivered| sample.prior_delivered <= delivered)
    }

    pub(super) fn reset_shortterm(&mut self) {
        (self.inflight_shortterm, self.bandwidth_shortterm) = (f64::INFINITY, f64::INFINITY);
    }
}

/// Whether losing `lost` of `in_flight` bytes exceeds the threshold.
pub(super) fn is_too_high(lost: u64, in_flight: u64) -> bool {
    lost > 0 && lost as f64 > LOSS_THRESHOLD * in_flight as f64
}

impl Bbr3 {
    /// The long-term bound minus headroom for other flows, in bytes.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let bound = self.congestion.inflight_longterm;
        if bound.is_infinite() {
            return bound;
        }
        let headroom = self.window.mss.at_least(HEADROOM * bound);
        (bound - headroom).at_least(self.least_window())
    }

    // ---- each lost segment ------------------------------------------------------------------------------

    pub(super) fn handle_lost_segment(&mut self, lost: &LostSegment) {
        self.delivered = lost.delivered;
        self.note_loss(lost);
        if self.probe.feedback && is_too_high(lost.lost_since, lost.in_flight_at_sending) {
            let in_flight = (!lost.application_limited).then(|| inflight_at_loss(lost));
            self.end_probe(lost.now, in_flight);
        }
    }

    /// Ends a probe that had too much in flight, `in_flight` bytes unless it was application-limited.
    fn end_probe(&mut self, now: Time, in_flight: Option<f64>) {
        self.probe.feedback = false;
        self.probe.was_too_high = true;
        if let Some(in_flight) = in_flight {
            self.congestion.inflight_longterm = in_flight.at_least(BETA * self.target_inflight());
        }
        if self.state == State::Up {
            self.congestion.undo.state = Some(State::Up);
            self.start_down(now);
        }
    }

    fn note_loss(&mut self, lost: &LostSegment) {
        self.note_congestion();
        let congestion = &mut self.congestion;
        congestion.gaps += u32::from(congestion.gap_ends != Some(lost.start));
        congestion.gap_ends = Some(lost.end);
    }

    /// Starts a loss round at the first sign of congestion. The state for an undo was saved when recovery began, as the draft's
    /// text has it: its pseudocode saves it again in each round, so that an undo would restore the response to the first losses.
    fn note_congestion(&mut self) {
        if !self.congestion.loss_in_round {
            self.congestion.round_ends = self.delivered;
        }
        self.congestion.loss_in_round = true;
    }

    // ---- each mark --------------------------------------------------------------------------------------

    /// A mark ends Startup or a probe, and lowers the short-term bounds at the end of the round.
    pub(super) fn handle_mark(&mut self, now: Time) {
        self.note_congestion();
        self.congestion.marked_at = Some(self.delivered);
        if self.probe.feedback {
            self.end_probe(now, self.congestion.in_flight_at_sending.map(|bytes| bytes as f64));
        } else if self.state == State::Startup && !self.full_pipe.reached {
            self.end_startup();
        }
    }

    // ---- once per round -----------------------------------------------------------------------------------

    pub(super) fn update_delivery_signals(&mut self, sample: &RateSample) {
        let (rate, volume) = delivery(sample);
        let congestion = &mut self.congestion;
        congestion.bandwidth_latest = congestion.bandwidth_latest.at_least(rate);
        congestion.inflight_latest = congestion.inflight_latest.at_least(volume);
        congestion.round_started =
            sample.newly_delivered > 0 && sample.prior_delivered >= congestion.round_ends;
        if congestion.round_started {
            congestion.round_ends = sample.delivered;
        }
        congestion.in_flight_at_sending =
            (!sample.application_limited).then_some(sample.in_flight_at_sending);
    }

    pub(super) fn advance_delivery_signals(&mut self, sample: &RateSample) {
        if self.congestion.round_started {
            (self.congestion.bandwidth_latest, self.congestion.inflight_latest) = delivery(sample);
        }
    }

    /// After a round with losses, reduces the short-term bounds to what was delivered in the round, but at
    /// most by the factor [`BETA`].
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
            congestion.bandwidth_latest.at_least(BETA * congestion.bandwidth_shortterm);
        congestion.inflight_shortterm =
            congestion.inflight_latest.at_least(BETA * congestion.inflight_shortterm);
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

    /// Undoes the response to spurious losses: the bounds are restored at least, and a probe that the losses
    /// ended restarts.
    pub(super) fn undo(&mut self) {
        self.full_pipe.reset(0.0);
        let congestion = &mut self.congestion;
        congestion.loss_in_round = false;
        let undo = congestion.undo;
        congestion.inflight_longterm = congestion.inflight_longterm.at_least(undo.inflight_longterm);
        congestion.inflight_shortterm = congestion.inflight_shortterm.at_least(undo.inflight_shortterm);
        congestion.bandwidth_shortterm = congestion.bandwidth_shortterm.at_least(undo.bandwidth_shortterm);
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

/// The delivery rate of a sample, and the bytes delivered in its interval; zeros without a rate.
fn delivery(sample: &RateSample) -> (f64, f64) {
    let volume = if sample.newly_delivered > 0 { sample.delivered - sample.prior_delivered } else { 0 };
    (sample.delivery_rate.unwrap_or(0.0), volume as f64)
}

/// The bytes in flight when losses exceeded the threshold, which happened within `lost`: solves (lost before
/// + x) / (in flight before + x) = threshold for x.
fn inflight_at_loss(lost: &LostSegment) -> f64 {
    let size = f64::from(lost.end - lost.start);
    let in_flight_before = (lost.in_flight_at_sending as f64 - size).at_least(0.0);
    let lost_before = (lost.lost_since as f64 - size).at_least(0.0);
    let prefix = (LOSS_THRESHOLD * in_flight_before - lost_before) / (1.0 - LOSS_THRESHOLD);
    in_flight_before + prefix.at_least(0.0)
}
