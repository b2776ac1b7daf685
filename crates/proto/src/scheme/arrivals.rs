//! Reports of a mobile host that has arrived at a base station: which segments it has.

use lasthop_base::Time;

use crate::component::Reach;
use crate::packet::Packet;
use crate::tcp::{AckResponse, Connection, Receiver, ReceiverReaction, SackBlock, SackBlocks, Segment};

/// Number of segments that the host reports.
const REPORTED: usize = 3;

/// The connection of a packet for the mobile host.
pub(super) fn connection_of(packet: &Packet) -> Connection {
    let Packet { src, dst, flow, .. } = *packet;
    Connection { src, dst, flow }
}

/// Whether the mobile host has the data of a segment, by an acknowledgement of the same connection. An acknowledgement or
/// a reset leaves no sign of its arrival.
pub(super) fn has_arrived(segment: &Segment, report: &Segment) -> bool {
    if segment.seq_len() == 0 {
        return false;
    }
    let end = segment.seq + segment.seq_len();
    let is_in = |block: &SackBlock| block.start <= segment.seq && end <= block.end;
    end <= report.ack || report.sack.iter().any(is_in)
}

/// Acknowledges when the host has arrived, and reports the last segments as SACK blocks if the connection has no SACK.
#[derive(Debug, Default)]
pub(super) struct ReportArrival {
    /// The last segments received, the latest first.
    latest: SackBlocks,
    is_due: bool,
}

impl ReceiverReaction for ReportArrival {
    fn on_segment(&mut self, _now: Time, segment: &Segment, _receiver: &mut Receiver) {
        if segment.len > 0 {
            let mut latest = SackBlocks::default();
            latest.push(SackBlock { start: segment.seq, end: segment.seq + segment.len });
            self.latest.iter().take(REPORTED - 1).for_each(|block| latest.push(*block));
            self.latest = latest;
        }
    }

    fn on_reach(&mut self, _now: Time, reach: Reach, receiver: &mut Receiver) {
        if reach == Reach::Back {
            self.is_due = true;
            receiver.acknowledge_now(1);
        }
    }

    fn on_ack(&mut self, _now: Time, ack: &mut Segment, receiver: &mut Receiver) -> AckResponse {
        if core::mem::take(&mut self.is_due) && !receiver.settings().sack() {
            ack.sack.replace_blocks(&self.latest);
        }
        AckResponse::Send
    }
}
