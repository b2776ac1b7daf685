//! TCP segments as values.

use core::ops::{BitAnd, BitOr, Deref};

use super::seq::SeqNum;

/// A TCP segment (RFC 9293 section 3.1); its payload is a length.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Segment {
    /// Sequence number of the first byte, or of SYN.
    pub seq: SeqNum,
    /// Next byte expected from the other side, if [`Flags::ACK`] is set.
    pub ack: SeqNum,
    /// Payload in bytes.
    pub len: u32,
    /// Advertised window in bytes, already scaled (RFC 7323 section 2).
    pub wnd: u32,
    /// Control bits.
    pub flags: Flags,
    /// Selective acknowledgements, most recent first (RFC 2018).
    pub sack: SackBlocks,
    /// The timestamps option (RFC 7323 section 3).
    pub timestamps: Option<Timestamps>,
}

impl Segment {
    /// Sequence numbers that the segment occupies: its payload, SYN and FIN (RFC 9293: SEG.LEN).
    pub fn seq_len(&self) -> u32 {
        self.len + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }
}

/// The control bits of the TCP header, in their places on the wire: bits 0 to 7, from FIN to CWR, and the four
/// that RFC 9293 section 3.1 reserves, 8 to 11, the first of which is next to CWR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// The sender has no more data.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// The connection is no more (RFC 9293 section 3.5.2).
    pub const RST: Flags = Flags(0x04);
    /// The acknowledgement number counts.
    pub const ACK: Flags = Flags(0x10);
    /// ECN-Echo: a segment with a congestion mark has come (RFC 3168 section 6.1).
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced: the answer to ECN-Echo.
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

/// Bytes that arrived out of order: from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First byte.
    pub start: SeqNum,
    /// One past the last byte.
    pub end: SeqNum,
}

impl SackBlock {
    /// Whether it reports something sent beyond `una` and before `max`: a duplicate report (RFC 2883), or one of data
    /// never sent, does not.
    pub(super) fn is_news(&self, una: SeqNum, max: SeqNum) -> bool {
        self.start > una && self.start < self.end && self.start < max && self.end <= max
    }
}

/// Up to four blocks: all that the header has room for (RFC 2018 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [SackBlock; SackBlocks::MAX],
    len: u8,
}

impl SackBlocks {
    /// The most blocks that fit a header without other options.
    pub const MAX: usize = 4;

    /// Adds a block behind the others; one too many is left out.
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

/// The timestamps option: a clock's value and the echo of the other side's, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval.
    pub value: u32,
    /// TSecr.
    pub echo: u32,
}
