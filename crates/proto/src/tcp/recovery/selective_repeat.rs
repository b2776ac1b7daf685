//! Selective repeat over a hop that delivers in order.

use lasthop_base::Time;

use super::{Recovery, acknowledge_and_open};
use crate::component::Out;
use crate::packet::Segment;
use crate::tcp::action::Action;
use crate::tcp::reaction::Evidence;
use crate::tcp::state::SenderState;

/// If a later transmission is acknowledged first, an earlier segment neither acknowledged nor reported is
/// lost. It alone is retransmitted immediately.
#[derive(Debug)]
pub(super) struct SelectiveRepeat;

/// Retransmits the segments that `segment` reveals as lost. All of them count as one loss.
fn repeat_lost(tcp: &mut SenderState, now: Time, segment: &Segment, out: &mut Out) {
    let Some(timestamps) = segment.timestamps else { return };
    let mut answered = false;
    while let Some(sending) = tcp.copies().take_before(timestamps.echo) {
        let start = sending.start.max(tcp.snd_una());
        // FIN arrives with its data, but SACK blocks do not cover it.
        let data_end = sending.end.min(tcp.data_end());
        let reported = tcp.sacked.around(start).is_some_and(|block| block.end >= data_end);
        // A retransmission is queued behind earlier transmissions, and may be acknowledged before them.
        if reported || sending.end <= tcp.snd_una() {
            continue;
        }
        if !answered {
            tcp.answer_loss(now, Evidence::Sack);
            answered = true;
        }
        tcp.resend_range(now, start, sending.end, out);
    }
}

impl Recovery for SelectiveRepeat {
    fn ignores(&self, action: Action) -> Option<&'static str> {
        super::ignores_duplicates(action)
    }

    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, out: &mut Out) {
        tcp.note_sack(segment);
        acknowledge_and_open(tcp, now, segment, acked);
        repeat_lost(tcp, now, segment, out);
    }

    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, out: &mut Out) {
        tcp.note_sack(segment);
        repeat_lost(tcp, now, segment, out);
    }
}
