//! What a scheme makes the sender do.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;

use lasthop_base::Time;

use super::segment::Segment;
use super::seq::SeqNum;
use super::state::SenderState;
use crate::packet::{Dscp, Notice};

/// A scheme's hooks in the sender. The sender knows no scheme by name; a scheme's file implements
/// those that it needs. A segment or a notice is heard of first; then each hole is judged before it is
/// sent again, and each sending is told. A sender may have [several](Reactions).
pub trait Reaction: Debug + Send {
    /// The connection is about to begin: nothing was sent yet.
    fn on_start(&mut self, _sender: &mut SenderState) {}

    /// A control message about this connection arrived. The sender then sends what the hook has asked for
    /// ([`SenderState::resend`]), and what may be sent, as after any event.
    fn on_notice(&mut self, _now: Time, _notice: &Notice, _sender: &mut SenderState) {}

    /// An acknowledgement arrived and is about to be processed; `sender` is as it was before. What is sent
    /// in answer is sent as the hook leaves it.
    fn on_segment(&mut self, _now: Time, _segment: &Segment, _sender: &mut SenderState) {}

    /// A segment with data, SYN or FIN is about to go out: how does its packet want to be treated on its
    /// way? `again` if some of it was sent before.
    fn dscp(&mut self, _segment: &Segment, _again: bool, _sender: &SenderState) -> Dscp {
        Dscp::DEFAULT
    }

    /// The sequence numbers from `start` up to `end` went out, SYN and FIN included; `again` if some
    /// of them had been sent before.
    fn on_sent(&mut self, _start: SeqNum, _end: SeqNum, _again: bool) {}

    /// Duplicate acknowledgements that mean a loss of what is at the left edge, where the settings say
    /// `set`; at least one.
    fn dupthresh(&self, set: u32, _sender: &SenderState) -> u32 {
        set
    }

    /// During a fast recovery whose loss did not close the window: bytes by which the window is extended
    /// for what has left the network, in place of those that duplicates tell. `None` leaves it to the
    /// duplicates. Tahoe has no fast recovery, and SACK knows better what has left: neither asks.
    fn extension(&self, _sender: &SenderState) -> Option<u32> {
        None
    }

    /// A hole is about to be repaired, or a timeout to be answered: what does it mean? Congestion,
    /// unless the scheme knows better. Once the window was cut, other holes of the same window of data
    /// are asked about and cut no more.
    fn judge(&mut self, _hole: Hole, _sender: &mut SenderState) -> Response {
        Response::Congestion
    }

    /// When [`on_timer`](Reaction::on_timer) is to be called. It may change with each call of another hook.
    fn next_wakeup(&self) -> Time {
        Time::NEVER
    }

    /// The time has come; the next one lies later. The sender then sends as after a notice.
    fn on_timer(&mut self, _now: Time, _sender: &mut SenderState) {}
}

/// The reactions of a sender, in the order in which they are asked.
///
/// Each is told everything. Of what they decide, the first code point, the first extension and the first
/// [`Response`] other than congestion count; each alters the duplicate threshold that the one before it has left.
#[derive(Debug, Default)]
pub struct Reactions(Vec<Box<dyn Reaction>>);

impl From<Option<Box<dyn Reaction>>> for Reactions {
    fn from(reaction: Option<Box<dyn Reaction>>) -> Reactions {
        Reactions(reaction.into_iter().collect())
    }
}

impl From<Vec<Box<dyn Reaction>>> for Reactions {
    fn from(reactions: Vec<Box<dyn Reaction>>) -> Reactions {
        Reactions(reactions)
    }
}

impl Reactions {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut dyn Reaction> {
        self.0.iter_mut().map(|reaction| &mut **reaction as &mut dyn Reaction)
    }

    pub(super) fn dupthresh(&self, set: u32, sender: &SenderState) -> u32 {
        self.0.iter().fold(set, |set, reaction| reaction.dupthresh(set, sender).max(1))
    }

    pub(super) fn extension(&self, sender: &SenderState) -> Option<u32> {
        self.0.iter().find_map(|reaction| reaction.extension(sender))
    }

    pub(super) fn next_wakeup(&self) -> Time {
        self.0.iter().map(|reaction| reaction.next_wakeup()).min().unwrap_or(Time::NEVER)
    }
}

/// Data that seem to be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The first sequence number that is missing.
    pub seq: SeqNum,
    /// What shows that it is.
    pub evidence: Evidence,
}

/// What shows a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Duplicate acknowledgements.
    Duplicates,
    /// During recovery, an acknowledgement of less than was outstanding at its start.
    Partial,
    /// Reports of data beyond it, or duplicates that bring such: with SACK, what starts recovery and what
    /// goes on with it.
    Sack,
    /// The echo of a mark that a queue has put on a packet in place of dropping it (RFC 3168).
    Mark,
    /// A tail loss probe that has repaired it (RFC 8985 section 7.4).
    Probe,
    /// The retransmission timer.
    Timeout,
}

/// What a loss does to the congestion window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Response {
    /// Congestion control closes the window as it does on its own.
    #[default]
    Congestion,
    /// The network is not to blame: window and threshold stay as they are. A timeout has stopped the
    /// clock of acknowledgements all the same: slow start, from one segment, leads back to the window
    /// that there was.
    Corruption,
    /// The window is cut to this part of what is in use, in (0, 1].
    Reduce(f64),
}
