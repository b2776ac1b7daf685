//! The outcomes of attempts, which senders learn after their frames have ended.

use std::collections::VecDeque;

use lasthop_base::Time;
use lasthop_proto::{DropReason, LinkEvent, LinkOutcome, Out, Signal};

use super::contender::Frame;

/// The outcome of an attempt, and when its sender knows it.
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

/// Outcomes in the order of their instants; those of the same instant in the order in which they were added.
#[derive(Default)]
pub(super) struct Outcomes(VecDeque<Outcome>);

impl Outcomes {
    pub(super) fn add(&mut self, outcome: Outcome) {
        let place = self.0.partition_point(|earlier| earlier.at <= outcome.at);
        self.0.insert(place, outcome);
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Time {
        self.0.front().map_or(Time::NEVER, |outcome| outcome.at)
    }

    /// Signals the next one. The packet of one that is discarded is dropped.
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
