//! What senders learn after their frames have ended.

use std::collections::VecDeque;

use lasthop_base::Time;
use lasthop_proto::{DropReason, LinkEvent, LinkOutcome, Out, Signal};

use super::contender::Frame;

/// The outcome of an attempt, and when it is known.
pub(super) struct Word {
    at: Time,
    event: LinkEvent,
    /// Whether those who watch are told.
    told: bool,
}

impl Word {
    pub(super) fn new(at: Time, frame: &Frame, outcome: LinkOutcome, told: bool) -> Word {
        let event = LinkEvent { outcome, packet: frame.packet, attempt: frame.attempts };
        Word { at, event, told }
    }
}

/// Words in the order of their instants; those of the same instant in the order in which they were added.
#[derive(Default)]
pub(super) struct Words(VecDeque<Word>);

impl Words {
    pub(super) fn add(&mut self, word: Word) {
        let place = self.0.partition_point(|earlier| earlier.at <= word.at);
        self.0.insert(place, word);
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Time {
        self.0.front().map_or(Time::NEVER, |word| word.at)
    }

    /// Says the next one. The packet of one that is discarded is dropped.
    pub(super) fn say(&mut self, out: &mut Out) {
        let Word { event, told, .. } = self.0.pop_front().expect("a word is due");
        if told {
            out.signal(Signal::Link(event));
        }
        if event.outcome == LinkOutcome::Discarded {
            out.drop(event.packet, DropReason::AttemptsExhausted);
        }
    }
}
