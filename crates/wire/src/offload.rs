//! Segmentation that a sender left to its network card (TSO, USO).

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
