//! The ACK filter: which waiting acknowledgement the newest one makes superfluous.

use lasthop_proto::tcp::{Flags, SackBlock, Segment, SeqNum};
use lasthop_proto::{Body, Packet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which superseded acknowledgements a queue drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AckFilter {
    /// None.
    #[default]
    Off,
    /// The oldest, if at least two wait beside the newest (`ack-filter` of tc).
    On,
    /// Also the only one that waits right before the newest (`ack-filter-aggressive` of tc).
    Aggressive,
}

const ECHOES: Flags = Flags(Flags::ECE.0 | Flags::CWR.0);

fn segment(packet: &Packet) -> Option<&Segment> {
    if let Body::Tcp(segment) = &packet.body { Some(segment) } else { None }
}

impl AckFilter {
    /// The place of the waiting packet that the last one supersedes.
    pub(super) fn superseded<'p>(
        self,
        waiting: impl ExactSizeIterator<Item = &'p Packet> + Clone,
    ) -> Option<usize> {
        if self == AckFilter::Off {
            return None;
        }
        let last = waiting.len().checked_sub(1)?;
        let newest = waiting.clone().last()?;
        let new = segment(newest).filter(|new| new.flags & (Flags::ACK | Flags::SYN) == Flags::ACK)?;
        let mut oldest = None;
        let mut others = 0;
        for (place, packet) in waiting.take(last).enumerate() {
            if (packet.src, packet.dst, packet.flow) != (newest.src, newest.dst, newest.flow) {
                continue;
            }
            let Some(old) = segment(packet) else { continue };
            // Where the echo of marks changes, what came before tells of the change.
            if oldest.is_some_and(|(_, echoes)| echoes != old.flags & ECHOES) {
                oldest = None;
                others -= 1;
            }
            if !is_superseded(old, new) {
                continue;
            }
            oldest.get_or_insert((place, old.flags & ECHOES));
            others += 1;
            if others > 1 {
                break;
            }
        }
        let (place, echoes) = oldest?;
        let is_only = self == AckFilter::Aggressive && place + 1 == last && echoes == new.flags & ECHOES;
        (others > 1 || is_only).then_some(place)
    }
}

/// Whether `old` is a pure acknowledgement that tells nothing beside `new`.
fn is_superseded(old: &Segment, new: &Segment) -> bool {
    let is_plain =
        old.len == 0 && Flags(old.flags.0 & !ECHOES.0) == Flags::ACK && old.sack.ecn_counters().is_none();
    let is_since = |new: u32, old: u32| new.wrapping_sub(old) as i32 >= 0;
    let is_later = match (old.timestamps, new.timestamps) {
        (Some(old), Some(new)) => is_since(new.value, old.value) && is_since(new.echo, old.echo),
        (Some(_), None) => false,
        (None, _) => true,
    };
    if !is_plain || !is_later || old.ack > new.ack {
        return false;
    }
    let Some(adds) = adds_blocks(&old.sack, new, old.ack) else { return false };
    adds || old.ack < new.ack
}

/// Whether the newer acknowledgement reports more bytes in SACK blocks; `None` if it lacks some, or if the older one reports
/// duplicates (RFC 2883).
fn adds_blocks(old: &[SackBlock], new: &Segment, ack: SeqNum) -> Option<bool> {
    let covers =
        |block: &SackBlock| new.sack.iter().any(|other| other.start <= block.start && other.end >= block.end);
    if old.iter().any(|block| block.start < ack || !covers(block)) {
        return None;
    }
    // Blocks of real packets may be anything.
    let length = |block: &SackBlock| u64::from(block.end.0.wrapping_sub(block.start.0));
    let bytes = |blocks: &[SackBlock]| -> u64 { blocks.iter().map(length).sum() };
    Some(bytes(&new.sack) > bytes(old))
}
