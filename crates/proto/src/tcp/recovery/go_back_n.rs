//! Go-back-N over a hop that delivers in order.

use lasthop_base::Time;

use super::{Recovery, acknowledge_and_open};
use crate::component::Out;
use crate::tcp::reaction::Evidence;
use crate::tcp::segment::Segment;
use crate::tcp::state::SenderState;

/// A duplicate that something causes which was sent after the left edge shows that the edge is lost: all from
/// there on is sent again. What earlier copies cause shows nothing. What the receiver has kept moves the
/// sender forward as soon as the hole before it is filled.
#[derive(Debug)]
pub(super) struct GoBackN;

impl Recovery for GoBackN {
    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, _out: &mut Out) {
        acknowledge_and_open(tcp, now, segment, acked);
    }

    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, _out: &mut Out) {
        let Some(timestamps) = segment.timestamps else { return };
        if tcp.sendings().earliest_is_before(timestamps.echo) {
            tcp.answer_loss(now, Evidence::Duplicates);
            tcp.go_back();
        }
    }
}
