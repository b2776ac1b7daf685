//! Hooks for schemes in the sender.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;

use lasthop_base::Time;

use super::state::SenderState;
use crate::component::Reach;
use crate::packet::{Dscp, Notice, Segment, SeqNum};

/// A scheme's extension of the sender. The sender is independent of particular schemes; a scheme implements
/// the hooks that it needs. A segment or notice is reported first; then each hole is classified before its
/// retransmission, and each transmission is reported. A sender may have [several](Reactions).
pub trait Reaction: Debug + Send {
    /// The connection is about to start; nothing was sent yet.
    fn on_start(&mut self, _now: Time, _sender: &mut SenderState) {}

    /// A control message about this connection has arrived. Afterwards the sender retransmits what the hook
    /// requested ([`SenderState::resend`]), and sends what the window permits.
    fn on_notice(&mut self, _now: Time, _notice: &Notice, _sender: &mut SenderState) {}

    /// The radio signal of the sender's mobile host has changed, or is about to. Called only if a scheme
    /// [watches](crate::scheme::Installer::watch_signal) the signal. The sender then sends as after a notice.
    fn on_reach(&mut self, _now: Time, _reach: Reach, _sender: &mut SenderState) {}

    /// Whether an arrived segment is a message of the scheme's own agents in the form of an acknowledgement. The sender then
    /// retransmits what the hook requested ([`SenderState::resend`]) and sends what the window permits, but does not
    /// process the segment, nor do other reactions see it. Not called before the connection is established.
    fn takes(&mut self, _now: Time, _segment: &Segment, _sender: &mut SenderState) -> bool {
        false
    }

    /// An acknowledgement has arrived and is not processed yet; `sender` is in the state before it. Segments
    /// sent in response use the state that the hook leaves.
    fn on_segment(&mut self, _now: Time, _segment: &Segment, _sender: &mut SenderState) {}

    /// A segment with data, SYN or FIN is about to be sent; returns its DSCP. `again` if part of it was sent
    /// before.
    fn dscp(&mut self, _now: Time, _segment: &Segment, _again: bool, _sender: &SenderState) -> Dscp {
        Dscp::DEFAULT
    }

    /// The sequence numbers from `start` (inclusive) to `end` (exclusive) were sent, SYN and FIN included;
    /// `again` if part of them was sent before.
    fn on_sent(&mut self, _now: Time, _start: SeqNum, _end: SeqNum, _again: bool) {}

    /// Duplicate ACK threshold for the segment at the left edge, at least one; `set` is that of the settings.
    fn dupthresh(&self, set: u32, _sender: &SenderState) -> u32 {
        set
    }

    /// During a fast recovery without a window reduction: bytes by which the window is extended for data that
    /// have left the network, instead of the inflation by duplicate ACKs. `None` keeps the inflation. Not
    /// called for Tahoe, which has no fast recovery, and SACK, which tracks delivered data itself.
    fn extension(&self, _sender: &SenderState) -> Option<u32> {
        None
    }

    /// Classifies a hole before its retransmission, or a timeout. Congestion by default. After a window
    /// reduction, further holes of the same window are classified but cause no further reduction.
    fn judge(&mut self, _now: Time, _hole: Hole, _sender: &mut SenderState) -> Response {
        Response::Congestion
    }

    /// What all reactions together made of a hole, after each has [judged](Reaction::judge) it.
    fn on_judged(&mut self, _now: Time, _hole: Hole, _response: Response, _sender: &mut SenderState) {}

    /// Whether the lost data at `seq` are known to be corrupted, called for each lost segment. Excludes the
    /// segment from a controller's loss rate; [`judge`](Reaction::judge) decides the response.
    fn is_corruption(&self, _seq: SeqNum) -> bool {
        false
    }

    /// Deadline of [`on_timer`](Reaction::on_timer). It may change with each call of another hook.
    fn next_wakeup(&self) -> Time {
        Time::NEVER
    }

    /// The deadline was reached; the next one must be later. The sender then sends as after a notice.
    fn on_timer(&mut self, _now: Time, _sender: &mut SenderState) {}
}

/// The reactions of a sender, or those of a receiver, in calling order. Every hook is called for each.
///
/// Among a sender's results, the first DSCP, the first extension and the first [`Response`] other than
/// congestion apply; the duplicate threshold is passed from one to the next.
#[derive(Debug)]
pub struct Reactions<R: ?Sized = dyn Reaction>(Vec<Box<R>>);

impl<R: ?Sized> Default for Reactions<R> {
    fn default() -> Reactions<R> {
        Reactions(Vec::new())
    }
}

impl<R: ?Sized> From<Option<Box<R>>> for Reactions<R> {
    fn from(reaction: Option<Box<R>>) -> Reactions<R> {
        Reactions(reaction.into_iter().collect())
    }
}

impl<R: ?Sized> From<Vec<Box<R>>> for Reactions<R> {
    fn from(reactions: Vec<Box<R>>) -> Reactions<R> {
        Reactions(reactions)
    }
}

impl<R: ?Sized> Reactions<R> {
    /// Whether there are no reactions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn each(&self) -> impl Iterator<Item = &R> {
        self.0.iter().map(|reaction| &**reaction)
    }

    pub(super) fn each_mut(&mut self) -> impl Iterator<Item = &mut R> {
        self.0.iter_mut().map(|reaction| &mut **reaction)
    }
}

impl Reactions {
    pub(super) fn dupthresh(&self, set: u32, sender: &SenderState) -> u32 {
        self.each().fold(set, |set, reaction| reaction.dupthresh(set, sender).max(1))
    }

    pub(super) fn extension(&self, sender: &SenderState) -> Option<u32> {
        self.each().find_map(|reaction| reaction.extension(sender))
    }

    pub(super) fn is_corruption(&self, seq: SeqNum) -> bool {
        self.each().any(|reaction| reaction.is_corruption(seq))
    }

    pub(super) fn next_wakeup(&self) -> Time {
        self.each().map(|reaction| reaction.next_wakeup()).min().unwrap_or(Time::NEVER)
    }
}

/// Data considered lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The first missing sequence number.
    pub seq: SeqNum,
    /// How the loss was detected.
    pub evidence: Evidence,
}

/// How a loss was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Duplicate acknowledgements.
    Duplicates,
    /// A partial acknowledgement during recovery.
    Partial,
    /// SACK blocks above it, or duplicates with SACK blocks, at the start of and during SACK recovery.
    Sack,
    /// The echo of an ECN mark (RFC 3168).
    Mark,
    /// A tail loss probe that repaired it (RFC 8985 section 7.4).
    Probe,
    /// The retransmission timer.
    Timeout,
}

/// Effect of a loss on the congestion window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Response {
    /// Congestion control reduces the window as usual.
    #[default]
    Congestion,
    /// Not caused by congestion: window and ssthresh are unchanged. After a timeout the ACK clock has stopped
    /// nevertheless: slow start from one segment returns to the previous window. A control by a model of the path begins its
    /// recovery in any case.
    Corruption,
    /// The window is reduced to this fraction of the window in use, in (0, 1], by a control that reduces it for a loss.
    Reduce(f64),
}
