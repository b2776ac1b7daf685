//! Go-back-N over a hop that delivers in order.

use lasthop_base::Time;

use super::{Recovery, acknowledge_and_open};
use crate::component::Out;
use crate::tcp::reaction::Evidence;
use crate::tcp::segment::Segment;
use crate::tcp::seq::SeqNum;
use crate::tcp::state::SenderState;

/// How often the same left edge is lost before it is sent alone. On a hop that loses one segment in five this
/// comes once in 10¹¹ losses; a queue that the sender itself keeps full brings it about soon.
const MOST_IN_VAIN: u32 = 16;

/// An acknowledgement that something causes which was sent after the left edge shows that the edge is lost: all
/// from there on is sent again. What earlier copies cause shows nothing. What the receiver has kept moves the
/// sender forward as soon as the hole before it is filled.
///
/// Without congestion control each go-back may fill the queue of the hop, in step with the round trips, so that
/// the edge meets it full for ever. After [`MOST_IN_VAIN`] losses the edge is sent alone, until it is
/// acknowledged: the queue drains, after a timeout at the latest.
#[derive(Debug, Default)]
pub(super) struct GoBackN {
    /// The edge that was lost last.
    edge: Option<SeqNum>,
    /// How often in a row.
    in_vain: u32,
}

impl GoBackN {
    /// Goes back if the arrival that causes `segment` shows that the left edge is lost.
    fn go_back_if_lost(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment) {
        let Some(timestamps) = segment.timestamps else { return };
        if tcp.copies().earliest_is_before(timestamps.echo) {
            let edge = Some(tcp.snd_una());
            self.in_vain = if edge == self.edge { self.in_vain + 1 } else { 1 };
            self.edge = edge;
            tcp.answer_loss(now, Evidence::Duplicates);
            tcp.go_back();
        }
    }

    fn sends_edge_alone(&self, tcp: &SenderState) -> bool {
        self.in_vain >= MOST_IN_VAIN && self.edge == Some(tcp.snd_una())
    }
}

impl Recovery for GoBackN {
    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, _out: &mut Out) {
        acknowledge_and_open(tcp, now, segment, acked);
        // It may stand for earlier ones as well, which were delayed or lost, and then its cause lies further on.
        self.go_back_if_lost(tcp, now, segment);
    }

    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, _out: &mut Out) {
        self.go_back_if_lost(tcp, now, segment);
    }

    fn send(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        if !self.sends_edge_alone(tcp) {
            tcp.send_window(now, tcp.settings.max_burst, out);
        } else if tcp.snd_nxt() == tcp.snd_una() {
            tcp.send_window(now, 1, out);
        }
    }
}
