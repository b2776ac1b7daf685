//! Go-back-N over a hop that delivers in order.

use lasthop_base::Time;

use super::{Recovery, acknowledge_and_open};
use crate::component::Out;
use crate::packet::{Segment, SeqNum};
use crate::tcp::action::Action;
use crate::tcp::reaction::Evidence;
use crate::tcp::state::SenderState;

/// Number of losses of the same left edge before it is sent alone. A hop that loses one segment in five
/// causes this once in 10¹¹ losses; a queue kept full by the sender itself causes it soon.
const MOST_IN_VAIN: u32 = 16;

/// An acknowledgement caused by data sent after the left edge reveals its loss: everything from the left edge
/// on is retransmitted. An acknowledgement caused by earlier copies reveals nothing. Data buffered by the
/// receiver advance the sender as soon as the hole below them is filled.
///
/// Without congestion control, each go-back may fill the queue of the hop in step with the round trips, so
/// that the queue is full whenever the left edge arrives. After [`MOST_IN_VAIN`] losses, the left edge is
/// sent alone until it is acknowledged, so that the queue drains, after a timeout at the latest.
#[derive(Debug, Default)]
pub(super) struct GoBackN {
    /// The last lost left edge.
    edge: Option<SeqNum>,
    /// Number of consecutive losses of that edge.
    in_vain: u32,
}

impl GoBackN {
    /// Goes back if `segment` reveals the loss of the left edge.
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
    fn ignores(&self, action: Action) -> Option<&'static str> {
        super::ignores_duplicates(action)
    }

    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, _out: &mut Out) {
        acknowledge_and_open(tcp, now, segment, acked);
        // The acknowledgement may replace earlier ones that were delayed or lost; its cause is then a later
        // segment.
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
