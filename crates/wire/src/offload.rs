//! Segmentation that a sender left to its network card (TSO, USO), and super-packets for a receiver (GRO).

use crate::checksum;
use crate::error::{Error, be16, be32};
use crate::ip::{IpPacket, Transport};

/// FIN and PSH, which are set in the last segment only.
const LAST: u16 = 0x01 | 0x08;

/// CWR, which is set in the first segment only (RFC 3168 section 6.1.2).
const FIRST: u16 = 0x80;

/// The packets of a super-packet of TCP or UDP, each with at most `size` bytes of payload and with correct checksums, as
/// the kernel or a network card makes them: successive sequence numbers and IPv4 identifications, FIN and PSH on the
/// last, CWR on the first. Other fields and all options are those of the super-packet.
///
/// # Errors
/// If the packet is a fragment, is cut off, or has another protocol, or if `size` is zero.
pub fn segments<'a>(
    packet: &IpPacket<'a>,
    size: usize,
) -> Result<impl Iterator<Item = Vec<u8>> + use<'a>, Error> {
    let refuse = |problem| Error::Malformed { header: "super-packet", problem };
    let transport_len = match &packet.transport {
        Transport::Tcp(tcp) => tcp.header_len,
        Transport::Udp(_) => 8,
        _ => return Err(refuse("neither TCP nor UDP")),
    };
    if packet.fragment.is_some() || packet.is_cut() || size == 0 {
        return Err(refuse("a fragment, cut off, or without a segment size"));
    }
    let (bytes, at) = (packet.bytes, packet.header_len);
    let (is_v4, is_tcp) = (packet.ip.src.is_ipv4(), packet.tcp().is_some());
    let (header, payload) = bytes.split_at(at + transport_len);
    let count = payload.len().div_ceil(size).max(1);
    // The length field of the largest segment must be able to hold it.
    let len = header.len() + size.min(payload.len());
    if len > usize::from(u16::MAX) {
        return Err(Error::TooLong { len });
    }
    Ok((0..count).map(move |number| {
        let from = number * size;
        let piece = &payload[from..payload.len().min(from + size)];
        let mut segment = [header, piece].concat();
        let mut set = |at: usize, value: u16| segment[at..at + 2].copy_from_slice(&value.to_be_bytes());
        let len = (header.len() + piece.len()) as u16;
        if is_v4 {
            set(2, len);
            set(4, be16(header, 4).wrapping_add(number as u16));
        } else {
            set(4, len - 40);
        }
        if is_tcp {
            let seq = be32(header, at + 4).wrapping_add(from as u32);
            set(at + 4, (seq >> 16) as u16);
            set(at + 6, seq as u16);
            let mut flags = be16(header, at + 12);
            if number + 1 < count {
                flags &= !LAST;
            }
            if number > 0 {
                flags &= !FIRST;
            }
            set(at + 12, flags);
        } else {
            set(at + 4, len - at as u16);
        }
        checksum::repair(&mut segment).expect("the headers have been read");
        segment
    }))
}

/// Maximum number of datagrams in a super-packet, as in the kernel.
const MAX_DATAGRAMS: usize = 64;

/// Length of the longest header that is merged: an IPv4 header with all options, and UDP's.
const LONGEST_HEADER: usize = 68;

/// Successive datagrams of one UDP flow, which become a super-packet.
#[derive(Debug, Default)]
pub struct Datagrams {
    /// The first packet, with the payloads of the others.
    bytes: Vec<u8>,
    /// Length of the IP header.
    ip_len: usize,
    /// Payload of every datagram but the last, which may have less.
    segment_size: usize,
    count: usize,
}

/// A super-packet of UDP datagrams.
#[derive(Clone, Copy, Debug)]
pub struct SuperPacket<'a> {
    /// The IP packet. Its checksum is [partial](crate::Checksum::Partial).
    pub bytes: &'a [u8],
    /// Length of the IP header.
    pub ip_len: usize,
    /// Payload per datagram.
    pub segment_size: usize,
}

impl Datagrams {
    /// The number of datagrams.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Appends a datagram with correct checksums, if the super-packet then has these [`segments`], byte for byte; returns
    /// whether it has been appended. A datagram without payload, or without a checksum, has no place in a super-packet.
    pub fn push(&mut self, packet: &IpPacket<'_>) -> bool {
        if self.count == 0 { self.begin(packet) } else { self.go_on(packet) }
    }

    /// Removes all datagrams.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// The only datagram, as it was, if there is one.
    pub fn single(&self) -> Option<&[u8]> {
        (self.count == 1).then_some(&self.bytes[..])
    }

    /// The super-packet, if there are two datagrams or more.
    pub fn merged(&mut self) -> Option<SuperPacket<'_>> {
        if self.count < 2 {
            return None;
        }
        let (ip_len, len, is_v4) = (self.ip_len, self.bytes.len() as u16, self.is_v4());
        let mut set = |at: usize, value: u16| self.bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
        if is_v4 {
            set(2, len)
        } else {
            set(4, len - 40)
        }
        set(ip_len + 4, len - ip_len as u16);
        checksum::leave_to_card(&mut self.bytes).expect("the headers have been read");
        Some(SuperPacket { bytes: &self.bytes, ip_len, segment_size: self.segment_size })
    }

    fn is_v4(&self) -> bool {
        self.bytes[0] >> 4 == 4
    }

    fn begin(&mut self, packet: &IpPacket<'_>) -> bool {
        let ip_len = packet.header_len;
        let Transport::Udp(udp) = &packet.transport else { return false };
        let is_whole = packet.fragment.is_none() && !packet.is_cut() && !packet.without_length;
        let has_extensions = packet.ip.src.is_ipv6() && ip_len > 40;
        if !is_whole
            || has_extensions
            || udp.payload.is_empty()
            || ip_len + 8 + udp.payload.len() != packet.len
            || be16(packet.bytes, ip_len + 6) == 0
        {
            return false;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(packet.bytes);
        (self.ip_len, self.segment_size, self.count) = (ip_len, udp.payload.len(), 1);
        true
    }

    fn go_on(&mut self, packet: &IpPacket<'_>) -> bool {
        let (ip_len, header_len) = (self.ip_len, self.ip_len + 8);
        let Some((own, payload)) = packet.bytes.split_at_checked(header_len) else { return false };
        let mut expected = [0; LONGEST_HEADER];
        let expected = &mut expected[..header_len];
        expected.copy_from_slice(&self.bytes[..header_len]);
        // What follows from the rest, or was correct at the first datagram.
        let (lengths, checksum) = if self.is_v4() { (2, Some(10)) } else { (4, None) };
        for at in [Some(lengths), checksum, Some(ip_len + 4), Some(ip_len + 6)].into_iter().flatten() {
            expected[at..at + 2].copy_from_slice(&own[at..at + 2]);
        }
        if self.is_v4() {
            let identification = be16(expected, 4).wrapping_add(self.count as u16);
            expected[4..6].copy_from_slice(&identification.to_be_bytes());
        }
        let continues = own == expected
            && packet.len == packet.bytes.len()
            && usize::from(be16(own, ip_len + 4)) == 8 + payload.len()
            && be16(own, ip_len + 6) != 0
            && !payload.is_empty()
            && payload.len() <= self.segment_size
            && self.bytes.len() == header_len + self.count * self.segment_size
            && self.bytes.len() + payload.len() <= usize::from(u16::MAX)
            && self.count < MAX_DATAGRAMS;
        if continues {
            self.bytes.extend_from_slice(payload);
            self.count += 1;
        }
        continues
    }
}
