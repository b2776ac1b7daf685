//! TCP.

use etherparse::err::tcp::HeaderSliceError;
use etherparse::{TcpHeader as Encoded, TcpHeaderSlice, TcpOptionElement};
use lasthop_proto::tcp::{
    EcnCounters, FieldOrder, Flags, SackBlock, SackBlocks, Segment, SeqNum, Timestamps,
};

use crate::error::{Error, be16, be32, cut_off};

/// A TCP segment.
#[derive(Clone, Copy, Debug)]
pub struct Tcp<'a> {
    /// The header.
    pub header: TcpHeader,
    /// Length of the header with its options.
    pub header_len: usize,
    /// The payload as far as it was captured; `header.segment.len` is its length on the wire.
    pub payload: &'a [u8],
}

/// A TCP header with its options (RFC 9293, 2018, 7323, 9768). Unknown options are skipped, and
/// [noted](Segment::has_unknown_options); none are written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpHeader {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// The segment. Its window is the field of the header: it must be shifted by the [scale](TcpHeader::window_scale) that
    /// its sender announced, if both ends announced one and this is no SYN. SACK blocks that end before they begin are left
    /// out.
    pub segment: Segment,
    /// Urgent pointer; 0 without [`URG`](TcpHeader::URG).
    pub urgent_pointer: u16,
    /// Maximum segment size announced in a SYN.
    pub mss: Option<u16>,
    /// Window scale announced in a SYN; at most 14 (RFC 7323 section 2.3).
    pub window_scale: Option<u8>,
    /// Whether a SYN permits SACK.
    pub sack_permitted: bool,
}

/// The order and padding of the options of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionLayout {
    /// As Linux writes them: SACK-permitted takes the place of the padding before timestamps.
    Linux,
    /// Each option has its own padding.
    Separate,
}

const FIXED: usize = Encoded::MIN_LEN;
const LARGEST: usize = Encoded::MAX_LEN;
const LARGEST_SCALE: u8 = 14;

/// The options of a header.
pub(crate) mod option {
    use std::ops::Range;

    use super::FIXED;

    pub(super) const END: u8 = 0;
    pub(crate) const NOP: u8 = 1;
    pub(crate) const MSS: u8 = 2;
    pub(super) const WINDOW_SCALE: u8 = 3;
    pub(super) const SACK_PERMITTED: u8 = 4;
    pub(crate) const SACK: u8 = 5;
    pub(crate) const TIMESTAMPS: u8 = 8;
    pub(super) const ECT0_COUNTERS: u8 = 172;
    pub(super) const ECT1_COUNTERS: u8 = 174;

    /// The byte ranges of all options but padding in a header, kind and length included. An invalid length
    /// ends the iteration.
    pub(crate) fn all(header: &[u8]) -> impl Iterator<Item = Range<usize>> {
        let mut at = FIXED;
        std::iter::from_fn(move || {
            while header.get(at) == Some(&NOP) {
                at += 1;
            }
            let len = usize::from(*header.get(at + 1).filter(|_| header[at] != END)?);
            let place = at..at + len;
            at = place.end;
            (len >= 2 && place.end <= header.len()).then_some(place)
        })
    }

    /// The byte ranges of the options of one kind.
    pub(crate) fn places(header: &[u8], kind: u8) -> impl Iterator<Item = Range<usize>> {
        all(header).filter(move |place| header[place.start] == kind)
    }
}

impl<'a> Tcp<'a> {
    /// `wire_len` is the length of the segment with its header on the wire.
    pub(crate) fn parse(bytes: &'a [u8], wire_len: u32) -> Result<Tcp<'a>, Error> {
        let mut padded = [0; LARGEST];
        let is_cut = bytes.len() < wire_len as usize;
        // etherparse requires complete options, so a header truncated by the capture is padded.
        let source = if is_cut && (FIXED..LARGEST).contains(&bytes.len()) {
            padded[..bytes.len()].copy_from_slice(bytes);
            &padded[..LARGEST.min(wire_len as usize)]
        } else {
            bytes
        };
        let slice = TcpHeaderSlice::from_slice(source).map_err(|error| match error {
            HeaderSliceError::Len(error) => cut_off("TCP", &error),
            HeaderSliceError::Content(_) => {
                Error::Malformed { header: "TCP", problem: "the data offset is less than 5" }
            }
        })?;
        let header_len = slice.slice().len();
        let len = wire_len
            .checked_sub(header_len as u32)
            .ok_or(Error::Malformed { header: "TCP", problem: "the segment is shorter than its header" })?;
        let flags = Flags(be16(slice.slice(), 12) & 0x0fff);
        let mut header = TcpHeader {
            src_port: slice.source_port(),
            dst_port: slice.destination_port(),
            segment: Segment {
                seq: SeqNum(slice.sequence_number()),
                ack: SeqNum(slice.acknowledgment_number()),
                len,
                wnd: slice.window_size().into(),
                flags,
                sack: SackBlocks::default(),
                timestamps: None,
                has_unknown_options: false,
            },
            urgent_pointer: if flags.has(TcpHeader::URG) { slice.urgent_pointer() } else { 0 },
            ..TcpHeader::default()
        };
        header.read_options(&bytes[..header_len.min(bytes.len())]);
        Ok(Tcp { header, header_len, payload: bytes.get(header_len..).unwrap_or_default() })
    }
}

impl TcpHeader {
    /// Push.
    pub const PSH: Flags = Flags(0x08);
    /// The urgent pointer is valid.
    pub const URG: Flags = Flags(0x20);

    /// Reads the options in this header's bytes. Options of a wrong length or out of place are unknown ones.
    fn read_options(&mut self, header: &[u8]) {
        let is_syn = self.segment.flags.has(Flags::SYN);
        let is_bare_syn = is_syn && !self.segment.flags.has(Flags::ACK);
        for place in option::all(header) {
            let option = &header[place];
            match (option[0], option.len()) {
                (option::MSS, 4) if is_syn => self.mss = Some(be16(option, 2)),
                (option::WINDOW_SCALE, 3) if is_syn => self.window_scale = Some(option[2].min(LARGEST_SCALE)),
                (option::SACK_PERMITTED, 2) if is_syn => self.sack_permitted = true,
                (option::SACK, 10 | 18 | 26 | 34) => {
                    self.segment.sack.replace_blocks(&[]);
                    for block in option[2..].chunks_exact(8) {
                        let (start, end) = (SeqNum(be32(block, 0)), SeqNum(be32(block, 4)));
                        if start < end {
                            self.segment.sack.push(SackBlock { start, end });
                        }
                    }
                }
                // A SYN is not to have one (RFC 9768 section 3.2.3.2.1); what is no whole field is padding.
                (kind @ (option::ECT0_COUNTERS | option::ECT1_COUNTERS), _) if !is_bare_syn => {
                    let order = if kind == option::ECT0_COUNTERS {
                        FieldOrder::Ect0First
                    } else {
                        FieldOrder::Ect1First
                    };
                    let fields =
                        option[2..].chunks_exact(3).map(|field| be32(&[0, field[0], field[1], field[2]], 0));
                    let fields: Vec<u32> = fields.take(EcnCounters::FIELDS).collect();
                    self.segment.sack.set_ecn_counters(Some(EcnCounters::new(order, &fields)));
                }
                (option::TIMESTAMPS, 10) => {
                    self.segment.timestamps =
                        Some(Timestamps { value: be32(option, 2), echo: be32(option, 6) });
                }
                _ => self.segment.has_unknown_options = true,
            }
        }
    }

    /// The header as bytes, without a checksum. The options are aligned to 32 bits (RFC 7323 appendix A). SACK blocks
    /// that do not fit are omitted, the last first (RFC 2018 section 3).
    pub(crate) fn encode(&self, layout: OptionLayout) -> Vec<u8> {
        let segment = &self.segment;
        let has = |bits| segment.flags.has(Flags(bits));
        let mut encoded = Encoded {
            source_port: self.src_port,
            destination_port: self.dst_port,
            sequence_number: segment.seq.0,
            acknowledgment_number: segment.ack.0,
            fin: has(0x01),
            syn: has(0x02),
            rst: has(0x04),
            psh: has(0x08),
            ack: has(0x10),
            urg: has(0x20),
            ece: has(0x40),
            cwr: has(0x80),
            ns: has(0x100),
            window_size: segment.wnd.try_into().unwrap_or(u16::MAX),
            urgent_pointer: self.urgent_pointer,
            ..Encoded::default()
        };
        encoded.set_options(&self.options(layout)).expect("the options fit");
        if let Some(counters) = segment.sack.ecn_counters() {
            let options = [encoded.options.as_slice(), &counter_option(&counters)].concat();
            encoded.set_options_raw(&options).expect("the options fit");
        }
        let mut bytes = encoded.to_bytes().to_vec();
        // etherparse leaves out the reserved bits next to the data offset.
        bytes[12] |= (segment.flags.0 >> 8) as u8 & 0x0f;
        bytes
    }

    fn options(&self, layout: OptionLayout) -> Vec<TcpOptionElement> {
        use TcpOptionElement::{
            MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted, Timestamp,
            WindowScale,
        };
        let mut options = Vec::new();
        let mut room = LARGEST - FIXED;
        let mut add = |len: usize, elements: &[TcpOptionElement]| {
            room -= len;
            options.extend_from_slice(elements);
            room
        };
        let is_syn = self.segment.flags.has(Flags::SYN);
        if let Some(mss) = self.mss.filter(|_| is_syn) {
            add(4, &[MaximumSegmentSize(mss)]);
        }
        let scale = self.window_scale.filter(|_| is_syn);
        let mut may_sack = is_syn && self.sack_permitted;
        if layout == OptionLayout::Separate {
            if let Some(scale) = scale {
                add(4, &[Noop, WindowScale(scale)]);
            }
            if std::mem::take(&mut may_sack) {
                add(4, &[Noop, Noop, SelectiveAcknowledgementPermitted]);
            }
        }
        match self.segment.timestamps {
            Some(Timestamps { value, echo }) => {
                let before = if may_sack { &[SelectiveAcknowledgementPermitted][..] } else { &[Noop, Noop] };
                add(2, before);
                add(10, &[Timestamp(value, echo)]);
            }
            None if may_sack => {
                add(4, &[Noop, Noop, SelectiveAcknowledgementPermitted]);
            }
            None => {}
        }
        if let Some(scale) = scale.filter(|_| layout == OptionLayout::Linux) {
            add(4, &[Noop, WindowScale(scale)]);
        }
        let counters = self.segment.sack.ecn_counters().map_or(0, |counters| counters.padded_len());
        let room = add(0, &[]).saturating_sub(4 + counters) / 8;
        let mut edges = self.segment.sack.iter().take(room).map(|block| (block.start.0, block.end.0));
        if let Some(first) = edges.next() {
            let others = [edges.next(), edges.next(), edges.next()];
            options.extend([Noop, Noop, SelectiveAcknowledgement(first, others)]);
        }
        options
    }
}

/// An AccECN option, padded to 32 bits.
fn counter_option(counters: &EcnCounters) -> Vec<u8> {
    let kind = match counters.order() {
        FieldOrder::Ect0First => option::ECT0_COUNTERS,
        FieldOrder::Ect1First => option::ECT1_COUNTERS,
    };
    let mut bytes = vec![kind, counters.wire_len() as u8];
    counters.fields().iter().for_each(|field| bytes.extend(&field.to_be_bytes()[1..]));
    bytes.resize(counters.padded_len(), option::NOP);
    bytes
}
