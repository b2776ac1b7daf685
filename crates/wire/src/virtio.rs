//! The virtio header before a packet or frame, which describes work left to a network card (virtio 1.2 section 5.1.6).

use crate::offload::{Cwr, SuperPacket};

/// Length of the header in bytes.
pub const HEADER: usize = 10;

/// Flag: the checksum is incomplete.
const NEEDS_CHECKSUM: u8 = 1;

/// Kinds of super-packets: TCP over IPv4, and over IPv6, and UDP in datagrams.
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const DATAGRAMS: u8 = 5;

/// Flag of a kind: the first segment has CWR.
const REDUCED: u8 = 0x80;

/// Work that the sender of a packet left to a network card, or that a receiving card has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// Where the bytes covered by an incomplete checksum begin, and where its field is.
    pub checksum: Option<(usize, usize)>,
    /// Of a super-packet: the payload per segment, and whether it is to be cut as TCP; otherwise it is as UDP.
    pub segments: Option<(usize, bool)>,
    /// Of a super-packet of TCP: whether the first segment has CWR, as a response to a mark. In the ACE field it is not flagged.
    has_cwr: bool,
}

impl Offload {
    /// Reads a virtio header, whose numbers have the byte order of the machine.
    pub fn parse(header: &[u8; HEADER]) -> Offload {
        let word = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
        let (start, offset) = (word(6), word(8));
        Offload {
            checksum: (header[0] & NEEDS_CHECKSUM != 0).then_some((start, start + offset)),
            has_cwr: header[1] & REDUCED != 0,
            segments: match header[1] & !REDUCED {
                TCP_V4 | TCP_V6 => Some((word(4), true)),
                DATAGRAMS => Some((word(4), false)),
                _ => None,
            },
        }
    }

    /// The meaning of CWR in a super-packet.
    pub fn cwr(&self) -> Cwr {
        if self.has_cwr { Cwr::FirstOnly } else { Cwr::Every }
    }
}

/// The virtio header of a super-packet whose link header has `link_len` bytes.
pub fn header(packet: &SuperPacket<'_>, link_len: usize) -> [u8; HEADER] {
    let start = link_len + packet.ip_len;
    let is_v4 = packet.bytes[0] >> 4 == 4;
    let (kind, checksum) = match (packet.is_tcp, is_v4) {
        (true, true) => (TCP_V4, 16),
        (true, false) => (TCP_V6, 16),
        (false, _) => (DATAGRAMS, 6),
    };
    // CWR is in the highest bit of TCP's flags.
    let reduced = if packet.is_tcp { packet.bytes[packet.ip_len + 13] & REDUCED } else { 0 };
    let mut header = [0; HEADER];
    header[..2].copy_from_slice(&[NEEDS_CHECKSUM, kind | reduced]);
    let words = [start + packet.transport_len, packet.segment_size, start, checksum];
    for (place, word) in header[2..].chunks_exact_mut(2).zip(words) {
        place.copy_from_slice(&(word as u16).to_ne_bytes());
    }
    header
}
