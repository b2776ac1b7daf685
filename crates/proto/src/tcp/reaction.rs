//! What a scheme makes the sender do.

use core::fmt::Debug;

use lasthop_base::Time;

use super::segment::Segment;
use super::seq::SeqNum;
use super::state::SenderState;
use crate::packet::Notice;

/// A scheme's hooks in the sender. The sender knows no scheme by name; a scheme's file implements
/// those that it needs.
pub trait Reaction: Debug + Send {
    /// A control message about this connection arrived. The sender then sends what may be sent, as
    /// after any event.
    fn on_notice(&mut self, _now: Time, _notice: &Notice, _sender: &mut SenderState) {}

    /// An acknowledgement arrived and is about to be processed; `sender` is as it was before.
    fn on_segment(&mut self, _now: Time, _segment: &Segment, _sender: &SenderState) {}

    /// The sequence numbers from `start` up to `end` went out, SYN and FIN included; `again` if some
    /// of them had been sent before.
    fn on_sent(&mut self, _start: SeqNum, _end: SeqNum, _again: bool) {}
}
