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
    /// Whether the header has options that its reader does not know, such as those of MPTCP: the segment then tells more than the
    /// other fields.
    pub has_unknown_options: bool,
}

impl Segment {
    /// Whether the segment only acknowledges: it has no data, and no meaning but its acknowledgement number, window, SACK blocks
    /// and timestamps. Under AccECN (RFC 9768) the ACE field is rarely zero, and few segments are pure.
    pub(crate) fn is_pure_ack(&self) -> bool {
        let has_options = self.sack.ecn_counters().is_some() || self.has_unknown_options;
        self.len == 0 && self.flags == Flags::ACK && !has_options
    }

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
    /// Accurate ECN (RFC 9768 section 3.1).
    pub const AE: Flags = Flags(0x100);

    /// Position of the ACE field, which consists of AE, CWR and ECE.
    const ACE_AT: u32 = 6;

    /// Whether all bits of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The ACE field, 0 to 7 (RFC 9768 section 3.2.2).
    pub const fn ace(self) -> u8 {
        (self.0 >> Flags::ACE_AT) as u8 & 7
    }

    /// These flags with the three lower bits of `value` in the ACE field.
    pub const fn with_ace(self, value: u8) -> Flags {
        Flags(self.0 & !(7 << Flags::ACE_AT) | (value as u16 & 7) << Flags::ACE_AT)
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
    pub(crate) fn is_news(&self, una: SeqNum, max: SeqNum) -> bool {
        self.start > una && self.start < self.end && self.start < max && self.end <= max
    }
}

/// Up to four SACK blocks, the maximum that fits a header (RFC 2018 section 3), and the [AccECN option](EcnCounters),
/// beside which three fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    /// With an AccECN option, the last one holds its counters.
    blocks: [SackBlock; SackBlocks::MAX],
    len: u8,
    form: OptionForm,
    /// The upper eight bits of the third counter.
    third: u8,
}

/// Which AccECN option a header has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum OptionForm {
    #[default]
    None,
    /// With this number of fields.
    Some(FieldOrder, u8),
}

impl SackBlocks {
    /// The maximum number of blocks in a header without other options.
    pub const MAX: usize = 4;

    /// Appends a block; ignored if full.
    pub fn push(&mut self, block: SackBlock) {
        let room = SackBlocks::MAX - usize::from(self.form != OptionForm::None);
        if let Some(slot) = self.blocks[..room].get_mut(usize::from(self.len)) {
            *slot = block;
            self.len += 1;
        }
    }

    /// Replaces the blocks by those of `other`, as far as they fit; the AccECN option stays.
    pub fn replace_blocks(&mut self, other: &[SackBlock]) {
        let option = self.ecn_counters();
        *self = SackBlocks::default();
        self.set_ecn_counters(option);
        other.iter().for_each(|&block| self.push(block));
    }

    /// Bytes of the options that carry the blocks and the counters, padded to 32 bits.
    #[inline]
    pub(crate) fn padded_len(&self) -> u64 {
        if self.len == 0 && self.form == OptionForm::None {
            return 0;
        }
        let sack = if self.len > 0 { 4 + 8 * u64::from(self.len) } else { 0 };
        sack + self.ecn_counters().map_or(0, |option| option.padded_len() as u64)
    }

    /// The AccECN option.
    #[inline]
    pub fn ecn_counters(&self) -> Option<EcnCounters> {
        let OptionForm::Some(order, fields) = self.form else { return None };
        let SackBlock { start: SeqNum(first), end: SeqNum(second) } = self.blocks[SackBlocks::MAX - 1];
        let third = first >> 24 | (second >> 24) << 8 | u32::from(self.third) << 16;
        Some(EcnCounters { order, fields, values: [first % MODULUS, second % MODULUS, third] })
    }

    /// Sets or removes the AccECN option, in favour of which a fourth block is dropped.
    pub fn set_ecn_counters(&mut self, counters: Option<EcnCounters>) {
        let last = SackBlocks::MAX - 1;
        if let Some(EcnCounters { order, fields, values: [first, second, third] }) = counters {
            self.len = self.len.min(last as u8);
            self.form = OptionForm::Some(order, fields);
            let [low, middle, high, _] = third.to_le_bytes();
            let with = |counter: u32, byte: u8| SeqNum(counter | u32::from(byte) << 24);
            self.blocks[last] = SackBlock { start: with(first, low), end: with(second, middle) };
            self.third = high;
        } else if self.form != OptionForm::None {
            (self.form, self.third, self.blocks[last]) = (OptionForm::None, 0, SackBlock::default());
        }
    }
}

impl Deref for SackBlocks {
    type Target = [SackBlock];
    fn deref(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }
}

/// Counters of the AccECN option are modulo 2²⁴.
const MODULUS: u32 = 1 << 24;

/// The order of the fields in an AccECN option (RFC 9768 section 3.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldOrder {
    /// ECT(0), CE, ECT(1): option kind 172.
    Ect0First,
    /// ECT(1), CE, ECT(0): option kind 174.
    Ect1First,
}

/// The AccECN option (RFC 9768 section 3.2.3): the payload in bytes that the sender of the segment has received with each
/// code point of the ECN field, modulo 2²⁴. The last fields may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcnCounters {
    order: FieldOrder,
    fields: u8,
    values: [u32; EcnCounters::FIELDS],
}

impl EcnCounters {
    /// The maximum number of fields.
    pub const FIELDS: usize = 3;

    /// An option with the first of the `counters`, at most three, in the given order; they are taken modulo 2²⁴.
    pub fn new(order: FieldOrder, counters: &[u32]) -> EcnCounters {
        let fields = counters.len().min(EcnCounters::FIELDS);
        let mut values = [0; EcnCounters::FIELDS];
        for (value, counter) in values.iter_mut().zip(counters) {
            *value = counter % MODULUS;
        }
        EcnCounters { order, fields: fields as u8, values }
    }

    /// The order of the fields.
    pub fn order(&self) -> FieldOrder {
        self.order
    }

    /// The fields, in their order.
    pub fn fields(&self) -> &[u32] {
        &self.values[..usize::from(self.fields)]
    }

    /// Bytes received with ECT(0).
    pub fn ect0(&self) -> Option<u32> {
        self.fields().get(if self.order == FieldOrder::Ect0First { 0 } else { 2 }).copied()
    }

    /// Bytes received with ECT(1).
    pub fn ect1(&self) -> Option<u32> {
        self.fields().get(if self.order == FieldOrder::Ect1First { 0 } else { 2 }).copied()
    }

    /// Bytes received with CE.
    pub fn ce(&self) -> Option<u32> {
        self.fields().get(1).copied()
    }

    /// Length of the option in bytes, without padding.
    pub fn wire_len(&self) -> usize {
        2 + 3 * usize::from(self.fields)
    }

    /// Length of the option in bytes, padded to 32 bits.
    pub fn padded_len(&self) -> usize {
        self.wire_len().next_multiple_of(4)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u32) -> SackBlock {
        SackBlock { start: SeqNum(start), end: SeqNum(start + 100) }
    }

    /// Counters and blocks do not disturb each other, in whichever order they are set.
    #[test]
    fn counters_and_blocks_share_the_header() {
        let counters = EcnCounters::new(FieldOrder::Ect1First, &[0xff_ffff, 0x12_3456, 0xab_cdef]);
        for blocks in 0..=4 {
            let mut sack = SackBlocks::default();
            (0..blocks).for_each(|n| sack.push(block(1000 * n)));
            sack.set_ecn_counters(Some(counters));
            let mut other = SackBlocks::default();
            other.set_ecn_counters(Some(counters));
            (0..blocks).for_each(|n| other.push(block(1000 * n)));
            assert_eq!((sack.ecn_counters(), sack), (Some(counters), other));
            let kept: alloc::vec::Vec<_> = (0..blocks.min(3)).map(|n| block(1000 * n)).collect();
            assert_eq!(*sack, kept);
            sack.replace_blocks(&[block(7)]);
            assert_eq!((&*sack, sack.ecn_counters()), (&[block(7)][..], Some(counters)));
            sack.set_ecn_counters(None);
            let mut plain = SackBlocks::default();
            plain.push(block(7));
            assert_eq!(sack, plain);
        }
    }

    /// RFC 9768 table 5: which fields an option has, by its order and length; counters wrap at 2²⁴.
    #[test]
    fn an_option_has_the_first_fields_of_its_order() {
        for (order, fields, [ect0, ce, ect1]) in [
            (FieldOrder::Ect0First, 3, [Some(1), Some(2), Some(3)]),
            (FieldOrder::Ect0First, 2, [Some(1), Some(2), None]),
            (FieldOrder::Ect0First, 1, [Some(1), None, None]),
            (FieldOrder::Ect1First, 3, [Some(3), Some(2), Some(1)]),
            (FieldOrder::Ect1First, 2, [None, Some(2), Some(1)]),
            (FieldOrder::Ect1First, 1, [None, None, Some(1)]),
            (FieldOrder::Ect1First, 0, [None, None, None]),
        ] {
            let option = EcnCounters::new(order, &[MODULUS + 1, 2, 3][..fields]);
            assert_eq!([option.ect0(), option.ce(), option.ect1()], [ect0, ce, ect1], "{order:?}, {fields}");
            assert_eq!(option.wire_len(), [2, 5, 8, 11][fields]);
        }
    }

    /// The ACE field consists of AE, CWR and ECE, and leaves the other flags as they are.
    #[test]
    fn the_ace_field_has_three_flags() {
        for (value, flags) in [(1, Flags::ECE), (2, Flags::CWR), (4, Flags::AE)] {
            let set = Flags::ACK.with_ace(value);
            assert_eq!((set, set.ace()), (Flags::ACK | flags, value));
            assert_eq!(Flags(0xfff).with_ace(value).with_ace(0), Flags(0xe3f));
        }
    }
}
