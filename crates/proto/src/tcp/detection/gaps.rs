//! Loss detection by SACK reports above a segment (RFC 6675 section 4), for recovery without records.

use crate::tcp::seq::SeqNum;
use crate::tcp::state::SenderState;

/// A range of bytes neither acknowledged nor reported: `start..end`.
pub(in crate::tcp) struct Gap {
    pub(in crate::tcp) start: SeqNum,
    pub(in crate::tcp) end: SeqNum,
    /// Whether it is lost (IsLost).
    pub(in crate::tcp) lost: bool,
}

/// Calls `visit` for every gap of the window, from the right edge to the left. A gap is lost if
/// `dupthresh` ranges above it, or more than (`dupthresh` − 1) full segments, have arrived (IsLost).
pub(in crate::tcp) fn gaps_from_right(tcp: &SenderState, mut visit: impl FnMut(Gap)) {
    let dupthresh = tcp.dupthresh();
    let (mut ranges, mut bytes) = (0, 0);
    let mut right = tcp.snd_max;
    let mut gap = |start: SeqNum, end: SeqNum, ranges: u32, bytes: u32| {
        let lost = ranges >= dupthresh || bytes > (dupthresh - 1).saturating_mul(tcp.mss);
        if start < end {
            visit(Gap { start, end, lost });
        }
    };
    for range in tcp.sacked.as_slice().iter().rev() {
        gap(range.end, right, ranges, bytes);
        ranges += 1;
        bytes += range.end - range.start;
        right = range.start;
    }
    gap(tcp.snd_una, right, ranges, bytes);
}
