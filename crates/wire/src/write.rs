//! Serialisation of packets.

use std::net::IpAddr;

use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, UdpHeader, ip_number};
use lasthop_proto::NoticeCode;

use crate::checksum;
use crate::error::Error;
use crate::ip::Ip;
use crate::tcp::{OptionLayout, TcpHeader};

/// Serialises a TCP segment, with checksums. `header.segment.len` is ignored; the length is that of `payload`.
///
/// # Errors
/// If the packet is too long, or its addresses are of different IP versions.
pub fn tcp(ip: &Ip, header: &TcpHeader, payload: &[u8]) -> Result<Vec<u8>, Error> {
    let mut rest = header.encode(OptionLayout::Linux);
    rest.extend_from_slice(payload);
    packet(ip, ip_number::TCP, &rest, 0)
}

/// Serialises the headers of a TCP segment, for a capture that omits payloads. Lengths and checksums are those of a payload
/// of `header.segment.len` zeros. Each option of a SYN is aligned to 32 bits by itself.
///
/// # Errors
/// As [`tcp`].
pub fn tcp_headers(ip: &Ip, header: &TcpHeader) -> Result<Vec<u8>, Error> {
    let payload_len = header.segment.len as usize;
    packet(ip, ip_number::TCP, &header.encode(OptionLayout::Separate), payload_len)
}

/// Serialises a UDP datagram, with checksums.
///
/// # Errors
/// As [`tcp`].
pub fn udp(ip: &Ip, ports: (u16, u16), payload: &[u8]) -> Result<Vec<u8>, Error> {
    let mut rest = udp_header(ports, payload.len())?;
    rest.extend_from_slice(payload);
    packet(ip, ip_number::UDP, &rest, 0)
}

/// Serialises the headers of a UDP datagram, as [`tcp_headers`].
///
/// # Errors
/// As [`tcp`].
pub fn udp_headers(ip: &Ip, ports: (u16, u16), payload_len: usize) -> Result<Vec<u8>, Error> {
    packet(ip, ip_number::UDP, &udp_header(ports, payload_len)?, payload_len)
}

fn udp_header((source_port, destination_port): (u16, u16), payload_len: usize) -> Result<Vec<u8>, Error> {
    let len = payload_len.saturating_add(UdpHeader::LEN);
    let length = u16::try_from(len).map_err(|_| Error::TooLong { len })?;
    // A placeholder for `checksum::repair`. Zero would mean that the datagram has no checksum.
    Ok(UdpHeader { source_port, destination_port, length, checksum: 1 }.to_bytes().to_vec())
}

/// Serialises an ICMP message, or ICMPv6 by the addresses of `ip`, with checksums. `word` is the second 32-bit word of the
/// header, and `body` the rest: in an error, the quoted packet.
///
/// # Errors
/// As [`tcp`].
pub fn icmp(ip: &Ip, code: NoticeCode, word: u32, body: &[u8]) -> Result<Vec<u8>, Error> {
    let mut rest = vec![code.kind, code.code, 0, 0];
    rest.extend_from_slice(&word.to_be_bytes());
    rest.extend_from_slice(body);
    packet(ip, if ip.src.is_ipv4() { ip_number::ICMP } else { ip_number::IPV6_ICMP }, &rest, 0)
}

/// Prepends the IP header to a payload of any protocol, and fills in the checksums of TCP, UDP and ICMP. `zeros` more bytes
/// count as part of the packet and are not written.
fn packet(ip: &Ip, protocol: IpNumber, rest: &[u8], zeros: usize) -> Result<Vec<u8>, Error> {
    let payload_len = rest.len().saturating_add(zeros);
    let dscp = ip.dscp.get().try_into().expect("a code point has six bits");
    let ecn = IpEcn::try_new(ip.ecn.bits()).expect("the ECN field has two bits");
    let mut bytes = match (ip.src, ip.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut header = Ipv4Header {
                dscp,
                ecn,
                identification: ip.identification,
                dont_fragment: ip.dont_fragment,
                time_to_live: ip.hop_limit,
                protocol,
                source: src.octets(),
                destination: dst.octets(),
                ..Ipv4Header::default()
            };
            let len = payload_len.saturating_add(Ipv4Header::MIN_LEN);
            header.set_payload_len(payload_len).map_err(|_| Error::TooLong { len })?;
            header.to_bytes().to_vec()
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let mut header = Ipv6Header {
                flow_label: Ipv6FlowLabel::ZERO,
                next_header: protocol,
                hop_limit: ip.hop_limit,
                source: src.octets(),
                destination: dst.octets(),
                ..Ipv6Header::default()
            };
            header.set_dscp(dscp);
            header.set_ecn(ecn);
            let len = payload_len.saturating_add(Ipv6Header::LEN);
            header.set_payload_length(payload_len).map_err(|_| Error::TooLong { len })?;
            header.to_bytes().to_vec()
        }
        _ => {
            return Err(Error::Malformed {
                header: "IP",
                problem: "the addresses are of different IP versions",
            });
        }
    };
    bytes.extend_from_slice(rest);
    checksum::repair_before(&mut bytes, zeros)?;
    Ok(bytes)
}
