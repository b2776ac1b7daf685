//! The share of marked packets, as an average over rounds (RFC 8257 section 3.3).

use super::Feedback;
use crate::packet::SeqNum;

/// The weight of the last round.
const GAIN: f64 = 1.0 / 16.0;

/// An exponentially weighted average of the share of packets that were marked in each round.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkedShare {
    alpha: f64,
    delivered: u32,
    marked: u32,
    /// One past the highest sequence number sent when the round began.
    round_ends: SeqNum,
}

impl MarkedShare {
    /// The average before the first round, which takes the place of all earlier rounds.
    pub(super) fn new(alpha: f64, max: SeqNum) -> MarkedShare {
        MarkedShare { alpha, delivered: 0, marked: 0, round_ends: max }
    }

    /// The average, from 0 to 1.
    pub(super) fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Counts an acknowledgement; returns whether it ends a round. Rounds may last longer than a round-trip time: they end only if
    /// `may_end`.
    pub(super) fn on_feedback(&mut self, feedback: &Feedback, may_end: bool) -> bool {
        self.delivered += feedback.delivered;
        self.marked += feedback.marked;
        let ends = feedback.una >= self.round_ends && may_end;
        if ends {
            let share = f64::from(self.marked) / f64::from(self.delivered.max(1));
            self.alpha += GAIN * (share.min(1.0) - self.alpha);
            *self = MarkedShare::new(self.alpha, feedback.max);
        }
        ends
    }
}
