//! Acknowledgements that report the segment that caused them, for schemes that repair every gap at once.

use lasthop_base::Time;

use crate::tcp::{AckResponse, Receiver, ReceiverReaction, SackBlock, Segment};

/// Adds the segment that causes an acknowledgement to it, if it is out of order. A receiver with selective
/// acknowledgements of its own reports more.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// The latest segment.
    latest: Option<SackBlock>,
}

impl ReceiverReaction for Reports {
    fn on_segment(&mut self, _now: Time, segment: &Segment, _receiver: &mut Receiver) {
        if segment.len > 0 {
            self.latest = Some(SackBlock { start: segment.seq, end: segment.seq + segment.len });
        }
    }

    fn on_ack(&mut self, _now: Time, ack: &mut Segment, receiver: &mut Receiver) -> AckResponse {
        let is_above = |block: &SackBlock| block.start > ack.ack && receiver.has_gap();
        if let Some(block) = self.latest.filter(is_above)
            && ack.sack.is_empty()
        {
            ack.sack.push(block);
        }
        AckResponse::Send
    }
}
