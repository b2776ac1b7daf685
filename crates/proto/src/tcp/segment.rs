//! TCP segments.

use core::ops::{BitAnd, BitOr, Deref};

use super::seq::SeqNum;

/// A TCP segment (RFC 9293 section 3.1), with its payload represented by its length.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Segment {
    /// Sequence number of the first byte, or of SYN.
    pub seq: SeqNum,
    /// Next byte expected from the other side, if [`Flags::ACK`] is set.
    pub ack: SeqNum,
    /// Payload in bytes.
    pub len: u32,
    /// Advertised window in bytes, after scaling (RFC 7323 section 2).
    pub wnd: u32,
    /// Control bits.
    pub flags: Flags,
    /// SACK blocks, most recent first (RFC 2018).
    pub sack: SackBlocks,
    /// The timestamps option (RFC 7323 section 3).
    pub timestamps: Option<Timestamps>,
}

impl Segment {
    /// Length in sequence space: payload, SYN and FIN (RFC 9293: SEG.LEN).
    pub fn seq_len(&self) -> u32 {
        self.len + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }
}

/// Control bits of the TCP header at their wire positions: bits 0 to 7 from FIN to CWR, and the reserved bits
/// 8 to 11 (RFC 9293 section 3.1), of which bit 8 is next to CWR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// The sender has no more data.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection (RFC 9293 section 3.5.2).
    pub const RST: Flags = Flags(0x04);
    /// The acknowledgement number is valid.
    pub const ACK: Flags = Flags(0x10);
    /// ECN-Echo: a segment with a congestion mark was received (RFC 3168 section 6.1).
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced: the response to ECN-Echo.
    pub const CWR: Flags = Flags(0x80);

    /// Whether all bits of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitAnd for Flags {
    type Output = Flags;
    fn bitand(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// A block of data received out of order: from `start` (inclusive) to `end` (exclusive).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First sequence number.
    pub start: SeqNum,
    /// One past the last sequence number.
    pub end: SeqNum,
}

impl SackBlock {
    /// Whether the block reports data sent, above `una` and below `max`. Duplicate reports (RFC 2883) and
    /// data never sent are not news.
    pub(super) fn is_news(&self, una: SeqNum, max: SeqNum) -> bool {
        self.start > una && self.start < self.end && self.start < max && self.end <= max
    }
}

/// Up to four SACK blocks, the maximum that fits a header (RFC 2018 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [SackBlock; SackBlocks::MAX],
    len: u8,
}

impl SackBlocks {
    /// The maximum number of blocks in a header without other options.
    pub const MAX: usize = 4;

    /// Appends a block; ignored if full.
    pub fn push(&mut self, block: SackBlock) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.len)) {
            *slot = block;
            self.len += 1;
        }
    }
}

impl Deref for SackBlocks {
    type Target = [SackBlock];
    fn deref(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }
}

/// The timestamps option: the sender's clock and the echo of the peer's, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval.
    pub value: u32,
    /// TSecr.
    pub echo: u32,
}
