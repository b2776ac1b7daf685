//! The share of marked packets, as an average over rounds (RFC 8257 section 3.3).

use super::Feedback;
use crate::packet::SeqNum;

/// An exponentially weighted average of the share of packets that were marked in each round.
pub(super) trait Average: Copy {
    /// Adds a round in which `marked` of `delivered` packets were marked, with a weight of a sixteenth.
    fn add(&mut self, marked: u32, delivered: u32);
}

/// An exact average, from 0 to 1.
impl Average for f64 {
    fn add(&mut self, marked: u32, delivered: u32) {
        let share = f64::from(marked) / f64::from(delivered.max(1));
        *self += (share.min(1.0) - *self) / 16.0;
    }
}

/// The rounds of a connection, and their average.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkedShare<A = f64> {
    alpha: A,
    delivered: u32,
    marked: u32,
    /// One past the highest sequence number sent when the round began.
    round_ends: SeqNum,
}

impl<A: Average> MarkedShare<A> {
    /// The average before the first round, which takes the place of all earlier rounds.
    pub(super) fn new(alpha: A, max: SeqNum) -> MarkedShare<A> {
        MarkedShare { alpha, delivered: 0, marked: 0, round_ends: max }
    }

    /// The average.
    pub(super) fn alpha(&self) -> A {
        self.alpha
    }

    /// Counts an acknowledgement; returns whether it ends a round. Rounds may last longer than a round-trip time: they end only if
    /// `may_end`.
    pub(super) fn on_feedback(&mut self, feedback: &Feedback, may_end: bool) -> bool {
        self.delivered += feedback.delivered;
        self.marked += feedback.marked;
        let ends = feedback.una >= self.round_ends && may_end;
        if ends {
            self.alpha.add(self.marked, self.delivered);
            *self = MarkedShare::new(self.alpha, feedback.max);
        }
        ends
    }
}
