//! IP packets in IP packets: IPIP, GRE and GTP-U.

use crate::error::{Error, be16, header};
use crate::ip::{IpPacket, Transport};
use crate::link::{IPV4, IPV6, LinkType, ppp};

/// An IP packet in a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnelled<'a> {
    /// The tunnel, for messages.
    pub tunnel: &'static str,
    /// Length of the headers before the packet.
    pub headers: usize,
    /// The packet, as far as it was captured.
    pub bytes: &'a [u8],
}

/// IP protocol numbers (IANA).
const IPV4_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;

/// UDP port of GTP-U (3GPP TS 29.281).
const GTP_U: u16 = 2152;

impl<'a> IpPacket<'a> {
    /// The IP packet that this one carries through a tunnel; `None` if it carries none that can be read.
    ///
    /// ```
    /// use lasthop_wire::IpPacket;
    ///
    /// let inner = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    /// let mut bytes = vec![0x45, 0, 0, 44, 0, 0, 0, 0, 64, 47, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0, 0, 8, 0];
    /// bytes.extend(inner);
    /// let tunnelled = IpPacket::parse(&bytes)?.tunnelled().expect("GRE");
    /// assert_eq!((tunnelled.tunnel, tunnelled.headers, tunnelled.bytes), ("GRE", 24, &inner[..]));
    /// # Ok::<(), lasthop_wire::Error>(())
    /// ```
    pub fn tunnelled(&self) -> Option<Tunnelled<'a>> {
        let payload = self.bytes.get(self.header_len..)?;
        let (tunnel, before, inner) = match (&self.transport, self.protocol) {
            (Transport::LaterFragment, _) => return None,
            (_, IPV4_IN_IP | IPV6_IN_IP) => ("IP in IP", self.header_len, payload),
            (_, GRE) => ("GRE", self.header_len, gre(payload).ok()?),
            (Transport::Udp(udp), _) if [udp.src_port, udp.dst_port].contains(&GTP_U) => {
                ("GTP-U", self.header_len + 8, gtp_u(udp.payload).ok()??)
            }
            _ => return None,
        };
        let is_ip = matches!(inner.first().map(|byte| byte >> 4), Some(4 | 6));
        let headers = before + (payload.len() + self.header_len - before).checked_sub(inner.len())?;
        is_ip.then_some(Tunnelled { tunnel, headers, bytes: inner })
    }
}

/// Strips the header of GRE (RFC 2784, RFC 2890), or of its version 1, which carries PPP (RFC 2637).
fn gre(bytes: &[u8]) -> Result<&[u8], Error> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACKNOWLEDGEMENT: u16 = 0x0080;
    const TRANSPARENT_ETHERNET: u16 = 0x6558;
    const PPP: u16 = 0x880b;
    let fields = header(bytes, "GRE", 4)?;
    let (flags, protocol) = (be16(fields, 0), be16(fields, 2));
    let optional = if protocol == PPP {
        [KEY, SEQUENCE, ACKNOWLEDGEMENT].map(|flag| flags & flag != 0)
    } else {
        [flags & (CHECKSUM | ROUTING) != 0, flags & KEY != 0, flags & SEQUENCE != 0]
    };
    let len = 4 + 4 * optional.iter().filter(|&&is_present| is_present).count();
    header(bytes, "GRE", len)?;
    let inner = &bytes[len..];
    match protocol {
        IPV4 | IPV6 => Ok(inner),
        PPP => ppp(inner).map(|(_, inner)| inner),
        TRANSPARENT_ETHERNET => LinkType::ETHERNET.network_layer(inner),
        protocol => Err(Error::NotIp { protocol: protocol.into() }),
    }
}

/// Strips the header of GTP-U with its extensions; `None` for messages without a packet.
fn gtp_u(bytes: &[u8]) -> Result<Option<&[u8]>, Error> {
    const VERSION_1: u8 = 0x30;
    const OPTIONAL: u8 = 0x07;
    const EXTENDED: u8 = 0x04;
    const PACKET: u8 = 255;
    let fields = header(bytes, "GTP-U", 8)?;
    if fields[0] & 0xf0 != VERSION_1 || fields[1] != PACKET {
        return Ok(None);
    }
    let mut at = 8;
    if fields[0] & OPTIONAL != 0 {
        at += 4;
        let mut next = if fields[0] & EXTENDED == 0 { 0 } else { header(bytes, "GTP-U", at)?[at - 1] };
        while next != 0 {
            // Lengths are in units of four bytes; the last byte is the type of the next extension.
            let len = 4 * usize::from(header(bytes, "GTP-U", at + 1)?[at]);
            if len == 0 {
                return Err(Error::Malformed { header: "GTP-U", problem: "an extension without length" });
            }
            at += len;
            next = header(bytes, "GTP-U", at)?[at - 1];
        }
    }
    header(bytes, "GTP-U", at)?;
    Ok(Some(&bytes[at..]))
}
