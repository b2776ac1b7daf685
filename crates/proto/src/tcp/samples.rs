//! Which acknowledgements give a round-trip sample (RFC 6298 section 3, Karn and Partridge 1987).

use alloc::collections::VecDeque;

use lasthop_base::Time;

use super::settings::{RttSamples, Rules, Settings};
use crate::packet::SeqNum;

/// The transmission times that round-trip samples need.
#[derive(Clone, Debug)]
pub(super) enum Samples {
    OneAtATime {
        timed: Option<Sent>,
        /// Whether a segment is still timed after a retransmission, as in ns-2.
        timed_after_loss: bool,
    },
    EveryAck(VecDeque<Sent>),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    start: SeqNum,
    end: SeqNum,
    at: Time,
    again: bool,
}

impl Samples {
    pub(super) fn new(settings: &Settings) -> Samples {
        match settings.rtt_samples {
            RttSamples::OneAtATime => {
                Samples::OneAtATime { timed: None, timed_after_loss: settings.rules == Rules::Ns2 }
            }
            RttSamples::EveryAck => Samples::EveryAck(VecDeque::new()),
        }
    }

    /// Records the first transmission of `start..end`.
    #[inline]
    pub(super) fn on_new(&mut self, start: SeqNum, end: SeqNum, now: Time) {
        let sent = Sent { start, end, at: now, again: false };
        match self {
            Samples::OneAtATime { timed, .. } => _ = timed.get_or_insert(sent),
            Samples::EveryAck(line) => line.push_back(sent),
        }
    }

    /// Records a retransmission of `start..end`.
    pub(super) fn on_again(&mut self, start: SeqNum, end: SeqNum) {
        match self {
            Samples::OneAtATime { timed_after_loss: true, .. } => {}
            Samples::OneAtATime { timed, .. } => {
                _ = timed.take_if(|sent| sent.start < end && start < sent.end)
            }
            Samples::EveryAck(line) => {
                let first = line.partition_point(|sent| sent.end <= start);
                for sent in line.iter_mut().skip(first) {
                    sent.again = true;
                    if sent.end >= end {
                        break;
                    }
                }
            }
        }
    }

    /// Discards the timed segment after a loss, since it may be retransmitted.
    pub(super) fn on_loss(&mut self) {
        if let Samples::OneAtATime { timed, .. } = self {
            *timed = None;
        }
    }

    /// Processes the acknowledgement of everything before `ack`; returns the transmission time of the data
    /// that give a sample.
    #[inline]
    pub(super) fn on_ack(&mut self, ack: SeqNum) -> Option<Time> {
        match self {
            Samples::OneAtATime { timed, .. } => timed.take_if(|sent| sent.end <= ack).map(|sent| sent.at),
            Samples::EveryAck(line) => {
                let mut sample = None;
                let mut ambiguous = false;
                while let Some(sent) = line.front().filter(|sent| sent.end <= ack) {
                    ambiguous |= sent.again;
                    sample = Some(sent.at);
                    line.pop_front();
                }
                sample.filter(|_| !ambiguous)
            }
        }
    }
}
