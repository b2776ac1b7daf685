//! Segmentation that a sender left to its network card (TSO, USO), and super-packets for a receiver (GRO).

use crate::checksum;
use crate::error::{Error, be16, be32};
use crate::ip::{IpPacket, Transport};

/// FIN and PSH, which are set in the last segment only.
const LAST: u16 = 0x01 | 0x08;

/// ACK, which every segment with data has.
const ACK: u16 = 0x10;

/// CWR, which classic ECN sets in the first segment only (RFC 3168 section 6.1.2).
const FIRST: u16 = 0x80;

/// The meaning of CWR in a super-packet of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cwr {
    /// A response to a mark, which only the first segment carries (RFC 3168 section 6.1.2).
    FirstOnly,
    /// A bit of the ACE field, which every segment has (RFC 9768 section 3.3.4).
    Every,
}

/// The packets of a super-packet of TCP or UDP, each with at most `size` bytes of payload and with correct checksums, as
/// the kernel or a network card makes them: successive sequence numbers and IPv4 identifications, FIN and PSH on the
/// last, CWR by its meaning. Other fields and all options are those of the super-packet.
///
/// # Errors
/// If the packet is a fragment, is cut off, or has another protocol, or if `size` is zero.
pub fn segments<'a>(packet: &IpPacket<'a>, size: usize, cwr: Cwr) -> Result<Segments<'a>, Error> {
    let refuse = |problem| Error::Malformed { header: "super-packet", problem };
    let transport_len = match &packet.transport {
        Transport::Tcp(tcp) => tcp.header_len,
        Transport::Udp(_) => 8,
        _ => return Err(refuse("neither TCP nor UDP")),
    };
    if packet.fragment.is_some() || packet.is_cut() || size == 0 {
        return Err(refuse("a fragment, cut off, or without a segment size"));
    }
    let (header, payload) = packet.bytes.split_at(packet.header_len + transport_len);
    // The length field of the largest segment must be able to hold it.
    let len = header.len() + size.min(payload.len());
    if len > usize::from(u16::MAX) {
        return Err(Error::TooLong { len });
    }
    Ok(Segments {
        header,
        payload,
        ip_len: packet.header_len,
        is_tcp: packet.tcp().is_some(),
        size,
        count: payload.len().div_ceil(size).max(1),
        next: 0,
        cwr,
    })
}

/// The packets of a super-packet, made one by one.
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    header: &'a [u8],
    payload: &'a [u8],
    ip_len: usize,
    is_tcp: bool,
    size: usize,
    count: usize,
    next: usize,
    cwr: Cwr,
}

impl Segments<'_> {
    /// Writes the next packet in place of what `segment` holds; returns whether there is one.
    pub fn write_next(&mut self, segment: &mut Vec<u8>) -> bool {
        let Segments { header, payload, ip_len: at, size, count, next: number, .. } = *self;
        if number == count {
            return false;
        }
        self.next += 1;
        let from = number * size;
        let piece = &payload[from..payload.len().min(from + size)];
        segment.clear();
        segment.extend_from_slice(header);
        segment.extend_from_slice(piece);
        let mut set = |at: usize, value: u16| segment[at..at + 2].copy_from_slice(&value.to_be_bytes());
        let len = (header.len() + piece.len()) as u16;
        if header[0] >> 4 == 4 {
            set(2, len);
            set(4, be16(header, 4).wrapping_add(number as u16));
        } else {
            set(4, len - 40);
        }
        if self.is_tcp {
            let seq = be32(header, at + 4).wrapping_add(from as u32);
            set(at + 4, (seq >> 16) as u16);
            set(at + 6, seq as u16);
            let mut flags = be16(header, at + 12);
            if number + 1 < count {
                flags &= !LAST;
            }
            if number > 0 && self.cwr == Cwr::FirstOnly {
                flags &= !FIRST;
            }
            set(at + 12, flags);
        } else {
            set(at + 4, len - at as u16);
        }
        checksum::repair(segment).expect("the headers have been read");
        true
    }
}

impl Iterator for Segments<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut segment = Vec::new();
        self.write_next(&mut segment).then_some(segment)
    }
}

/// Maximum number of packets in a train: that of datagrams in a super-packet of the kernel.
const LONGEST_TRAIN: usize = 64;

/// Length of the longest headers that are merged: IPv4's and TCP's, both with all options.
const LONGEST_HEADERS: usize = 120;

/// Successive packets of one flow, which become a super-packet: datagrams of UDP, or segments of TCP.
#[derive(Debug, Default)]
pub struct Train {
    /// The first packet, with the payloads of the others.
    bytes: Vec<u8>,
    /// Length of the IP header.
    ip_len: usize,
    /// Length of the transport's header.
    transport_len: usize,
    is_tcp: bool,
    /// Payload of every packet but the last, which may have less.
    segment_size: usize,
    count: usize,
    /// Whether the last packet has FIN or PSH, or less payload.
    is_complete: bool,
}

/// A super-packet.
#[derive(Clone, Copy, Debug)]
pub struct SuperPacket<'a> {
    /// The IP packet. Its checksum is [partial](crate::Checksum::Partial).
    pub bytes: &'a [u8],
    /// Length of the IP header.
    pub ip_len: usize,
    /// Length of the transport's header.
    pub transport_len: usize,
    /// Whether the transport is TCP; otherwise it is UDP.
    pub is_tcp: bool,
    /// Payload per packet.
    pub segment_size: usize,
}

impl Train {
    /// The number of packets.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Appends a packet with correct checksums, if the super-packet then has these [`segments`], byte for byte; returns
    /// whether it has been appended. A packet without payload, or without a checksum, has no place in a super-packet.
    pub fn push(&mut self, packet: &IpPacket<'_>) -> bool {
        if self.count == 0 { self.begin(packet) } else { self.go_on(packet) }
    }

    /// Removes all packets.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// The only packet, as it was, if there is one.
    pub fn single(&self) -> Option<&[u8]> {
        (self.count == 1).then_some(&self.bytes[..])
    }

    /// The super-packet, if there are two packets or more.
    pub fn merged(&mut self) -> Option<SuperPacket<'_>> {
        if self.count < 2 {
            return None;
        }
        let Train { ip_len, transport_len, is_tcp, segment_size, .. } = *self;
        let (len, is_v4) = (self.bytes.len() as u16, self.is_v4());
        let mut set = |at: usize, value: u16| self.bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
        if is_v4 {
            set(2, len)
        } else {
            set(4, len - 40)
        }
        if !is_tcp {
            set(ip_len + 4, len - ip_len as u16);
        }
        checksum::leave_to_card(&mut self.bytes).expect("the headers have been read");
        Some(SuperPacket { bytes: &self.bytes, ip_len, transport_len, is_tcp, segment_size })
    }

    fn is_v4(&self) -> bool {
        self.bytes[0] >> 4 == 4
    }

    /// Length of both headers.
    fn header_len(&self) -> usize {
        self.ip_len + self.transport_len
    }

    /// Place of the transport's checksum.
    fn checksum_at(&self) -> usize {
        self.ip_len + if self.is_tcp { 16 } else { 6 }
    }

    fn begin(&mut self, packet: &IpPacket<'_>) -> bool {
        let (transport_len, payload_len, is_tcp) = match &packet.transport {
            Transport::Udp(udp) => (8, udp.payload.len(), false),
            // Segments that open or end a connection, or have urgent data, are not merged.
            Transport::Tcp(tcp) if be16(packet.bytes, packet.header_len + 12) & 0x37 & !LAST == ACK => {
                (tcp.header_len, tcp.payload.len(), true)
            }
            _ => return false,
        };
        let ip_len = packet.header_len;
        let is_whole = packet.fragment.is_none() && !packet.without_length;
        let has_extensions = packet.ip.src.is_ipv6() && ip_len > 40;
        if !is_whole
            || has_extensions
            || payload_len == 0
            || ip_len + transport_len + payload_len != packet.len
            || !is_tcp && be16(packet.bytes, ip_len + 6) == 0
        {
            return false;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(packet.bytes);
        (self.ip_len, self.transport_len, self.is_tcp) = (ip_len, transport_len, is_tcp);
        (self.segment_size, self.count) = (payload_len, 1);
        self.is_complete = is_tcp && be16(packet.bytes, ip_len + 12) & LAST != 0;
        true
    }

    fn go_on(&mut self, packet: &IpPacket<'_>) -> bool {
        let (ip_len, header_len, is_v4) = (self.ip_len, self.header_len(), self.is_v4());
        let Some((own, payload)) = packet.bytes.split_at_checked(header_len) else { return false };
        let mut expected = [0; LONGEST_HEADERS];
        let expected = &mut expected[..header_len];
        expected.copy_from_slice(&self.bytes[..header_len]);
        let mut set = |at: usize, value: u16| expected[at..at + 2].copy_from_slice(&value.to_be_bytes());
        // Fields that segmentation computes anew. Callers have verified the checksums.
        set(self.checksum_at(), be16(own, self.checksum_at()));
        if is_v4 {
            set(2, be16(own, 2));
            set(4, be16(&self.bytes, 4).wrapping_add(self.count as u16));
            set(10, be16(own, 10));
        } else {
            set(4, be16(own, 4));
        }
        let mut last = 0;
        let is_whole = if self.is_tcp {
            let seq = be32(&self.bytes, ip_len + 4).wrapping_add((self.count * self.segment_size) as u32);
            set(ip_len + 4, (seq >> 16) as u16);
            set(ip_len + 6, seq as u16);
            last = be16(own, ip_len + 12) & LAST;
            set(ip_len + 12, be16(&self.bytes, ip_len + 12) & !FIRST | last);
            true
        } else {
            set(ip_len + 4, be16(own, ip_len + 4));
            usize::from(be16(own, ip_len + 4)) == 8 + payload.len() && be16(own, ip_len + 6) != 0
        };
        let continues = own == expected
            && is_whole
            && packet.len == packet.bytes.len()
            && !payload.is_empty()
            && payload.len() <= self.segment_size
            && !self.is_complete
            && self.bytes.len() + payload.len() <= usize::from(u16::MAX)
            && self.count < LONGEST_TRAIN;
        if continues {
            self.is_complete = last != 0 || payload.len() < self.segment_size;
            if last != 0 {
                self.bytes[ip_len + 13] |= last as u8;
            }
            self.bytes.extend_from_slice(payload);
            self.count += 1;
        }
        continues
    }
}
