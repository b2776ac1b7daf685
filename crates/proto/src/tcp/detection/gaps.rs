//! Loss detection by SACK reports above a segment (RFC 6675 section 4), for recovery without records.

use crate::packet::{SackBlock, SeqNum};
use crate::tcp::state::SenderState;

/// A range of bytes neither acknowledged nor reported: `start..end`.
pub(in crate::tcp) struct Gap {
    pub(in crate::tcp) start: SeqNum,
    pub(in crate::tcp) end: SeqNum,
    /// Whether it is lost (IsLost).
    pub(in crate::tcp) lost: bool,
}

/// The gaps of the window, from the right edge to the left. A gap is lost if `dupthresh` ranges above it, or more
/// than (`dupthresh` − 1) full segments, have arrived (IsLost); then so is every gap to its left.
pub(in crate::tcp) fn gaps_from_right(tcp: &SenderState) -> impl Iterator<Item = Gap> {
    let (dupthresh, mss) = (tcp.dupthresh(), tcp.mss);
    let (mut ranges, mut bytes, mut right) = (0, 0, tcp.snd_max);
    // The last gap ends where the first range starts, or at the right edge.
    let edge = SackBlock { start: tcp.snd_una, end: tcp.snd_una };
    tcp.sacked.iter().rev().copied().chain([edge]).filter_map(move |range| {
        let lost = ranges >= dupthresh || bytes > (dupthresh - 1).saturating_mul(mss);
        let gap = Gap { start: range.end, end: right, lost };
        ranges += 1;
        bytes += range.end - range.start;
        right = range.start;
        (gap.start < gap.end).then_some(gap)
    })
}
