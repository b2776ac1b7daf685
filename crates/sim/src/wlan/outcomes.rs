//! Outcomes of attempts, reported to the sender after a delay.

use std::collections::VecDeque;

use lasthop_base::Time;
use lasthop_proto::{DropReason, LinkEvent, LinkOutcome, Out, Signal};

use super::contender::Frame;

/// The outcome of an attempt, and when the sender learns it.
pub(super) struct Outcome {
    at: Time,
    event: LinkEvent,
    /// Whether watchers get a signal.
    signalled: bool,
}

impl Outcome {
    pub(super) fn new(at: Time, frame: &Frame, outcome: LinkOutcome, signalled: bool) -> Outcome {
        let event = LinkEvent { outcome, packet: frame.packet, attempt: frame.attempts };
        Outcome { at, event, signalled }
    }
}

/// Outcomes sorted by time; FIFO at equal times.
#[derive(Default)]
pub(super) struct Outcomes(VecDeque<Outcome>);

impl Outcomes {
    pub(super) fn add(&mut self, outcome: Outcome) {
        let place = self.0.partition_point(|earlier| earlier.at <= outcome.at);
        self.0.insert(place, outcome);
    }

    /// Time of the next outcome.
    pub(super) fn next(&self) -> Time {
        self.0.front().map_or(Time::NEVER, |outcome| outcome.at)
    }

    /// Signals the next outcome, and drops the packet if it is discarded.
    pub(super) fn emit(&mut self, out: &mut Out) {
        let Outcome { event, signalled, .. } = self.0.pop_front().expect("an outcome is due");
        if signalled {
            out.signal(Signal::Link(event));
        }
        if event.outcome == LinkOutcome::Discarded {
            out.drop(event.packet, DropReason::AttemptsExhausted);
        }
    }
}
