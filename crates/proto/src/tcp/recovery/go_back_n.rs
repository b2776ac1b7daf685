//! Go-back-N over a hop that delivers in order.

use lasthop_base::Time;

use super::{Recovery, acknowledge_and_open};
use crate::component::Out;
use crate::tcp::reaction::Evidence;
use crate::tcp::segment::Segment;
use crate::tcp::state::SenderState;

/// An acknowledgement that something causes which was sent after the left edge shows that the edge is lost: all
/// from there on is sent again. What earlier copies cause shows nothing. What the receiver has kept moves the
/// sender forward as soon as the hole before it is filled.
#[derive(Debug)]
pub(super) struct GoBackN;

/// Goes back if the arrival that causes `segment` shows that the left edge is lost.
fn go_back_if_lost(tcp: &mut SenderState, now: Time, segment: &Segment) {
    let Some(timestamps) = segment.timestamps else { return };
    if tcp.sendings().earliest_is_before(timestamps.echo) {
        tcp.answer_loss(now, Evidence::Duplicates);
        tcp.go_back();
    }
}

impl Recovery for GoBackN {
    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, _out: &mut Out) {
        acknowledge_and_open(tcp, now, segment, acked);
        // It may stand for earlier ones as well, which were delayed or lost, and then its cause lies further on.
        go_back_if_lost(tcp, now, segment);
    }

    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, _out: &mut Out) {
        go_back_if_lost(tcp, now, segment);
    }
}
