//! Selective repeat over a hop that delivers in order.

use lasthop_base::Time;

use super::{Recovery, acknowledge_and_open};
use crate::component::Out;
use crate::tcp::reaction::Evidence;
use crate::tcp::segment::Segment;
use crate::tcp::state::SenderState;

/// Something has arrived, and neither acknowledgement nor report speaks of what was sent before it: that is
/// lost, and is sent again at once, alone.
#[derive(Debug)]
pub(super) struct SelectiveRepeat;

/// Sends again what the arrival that causes `segment` shows to be lost: one loss, however much it took.
fn repeat_lost(tcp: &mut SenderState, now: Time, segment: &Segment, out: &mut Out) {
    let Some(timestamps) = segment.timestamps else { return };
    let mut answered = false;
    while let Some(sending) = tcp.copies().take_before(timestamps.echo) {
        let start = sending.start.max(tcp.snd_una());
        // FIN comes with its data, and is not in their report.
        let data_end = sending.end.min(tcp.data_end());
        let reported = tcp.sacked.around(start).is_some_and(|block| block.end >= data_end);
        // What is sent again stands behind what was sent before, and may be acknowledged earlier.
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
