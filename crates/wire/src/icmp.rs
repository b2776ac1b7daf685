//! ICMP and ICMPv6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::ip_number;
use lasthop_proto::NoticeCode;
use lasthop_proto::tcp::SeqNum;

use crate::error::{Error, be16, be32, header};

/// An ICMP or ICMPv6 message.
#[derive(Clone, Copy, Debug)]
pub struct Icmp<'a> {
    /// Whether it is ICMPv6.
    pub v6: bool,
    /// Type and code.
    pub code: NoticeCode,
    /// The second word of the header: an MTU, an address, an identifier, or unused.
    pub word: u32,
    /// The bytes after the header, as far as they were captured.
    pub body: &'a [u8],
}

/// The packet quoted by an ICMP error, as far as it is quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    /// Source address: that of the host to which the error is sent.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Protocol.
    pub protocol: u8,
    /// Source and destination ports of TCP and UDP.
    pub ports: Option<(u16, u16)>,
    /// Sequence number of a TCP segment.
    pub seq: Option<SeqNum>,
}

impl<'a> Icmp<'a> {
    pub(crate) fn parse(bytes: &'a [u8], v6: bool) -> Result<Icmp<'a>, Error> {
        let head = header(bytes, if v6 { "ICMPv6" } else { "ICMP" }, 8)?;
        let code = NoticeCode { kind: head[0], code: head[1] };
        Ok(Icmp { v6, code, word: be32(head, 4), body: &bytes[8..] })
    }

    /// Whether the message quotes a packet: the errors of RFC 792 and RFC 4443, source quench and redirect, and the
    /// experimental messages for mobility (RFC 4065).
    pub fn is_quoting(&self) -> bool {
        match self.v6 {
            false => matches!(self.code.kind, 3 | 4 | 5 | 11 | 12 | 41),
            true => matches!(self.code.kind, 1..=4 | 150),
        }
    }

    /// The MTU of the next hop, in "fragmentation needed" (RFC 1191) and "packet too big" (RFC 8201).
    pub fn next_hop_mtu(&self) -> Option<u32> {
        match (self.v6, self.code.kind, self.code.code) {
            (false, 3, 4) => Some(self.word & 0xffff),
            (true, 2, _) => Some(self.word),
            _ => None,
        }
    }

    /// The quoted packet. `None` for messages without a quotation, and for quotations too short to identify the packet.
    pub fn quote(&self) -> Option<Quote> {
        if !self.is_quoting() {
            return None;
        }
        let body = self.body;
        let (src, dst, protocol, at): (IpAddr, IpAddr, u8, usize) = match body.first()? >> 4 {
            4 if body.len() >= 20 => {
                let at = |i| Ipv4Addr::from_bits(be32(body, i));
                (at(12).into(), at(16).into(), body[9], usize::from(body[0] & 15) * 4)
            }
            6 if body.len() >= 40 => {
                let at = |i: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&body[i..i + 16]).expect("16 bytes"));
                (at(8).into(), at(24).into(), body[6], 40)
            }
            _ => return None,
        };
        let is_tcp = protocol == ip_number::TCP.0;
        let has_ports = is_tcp || protocol == ip_number::UDP.0;
        let transport = body.get(at..).unwrap_or_default();
        let ports =
            (has_ports && at >= 20 && transport.len() >= 4).then(|| (be16(transport, 0), be16(transport, 2)));
        let seq = (is_tcp && ports.is_some() && transport.len() >= 8).then(|| SeqNum(be32(transport, 4)));
        Some(Quote { src, dst, protocol, ports, seq })
    }
}
