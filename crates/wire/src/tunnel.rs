//! IP packets in IP packets. Each tunnel is a line of a table and a function.

use crate::encapsulation::{Contents, ETHERNET, IPV4, IPV6, MPLS, PPP, Strip, innermost};
use crate::error::{Error, be16, header};
use crate::ip::{IpPacket, Transport, Udp};

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

/// Tunnels over IP, by protocol number (IANA).
const OVER_IP: [(u8, &str, Strip); 5] = [
    (4, "IP in IP", |bytes| Ok((IPV4, bytes))),
    (41, "IP in IP", |bytes| Ok((IPV6, bytes))),
    (47, "GRE", gre),
    (97, "EtherIP", |bytes| header(bytes, "EtherIP", 2).map(|_| (ETHERNET, &bytes[2..]))),
    (137, "MPLS", |bytes| Ok((MPLS, bytes))),
];

/// Tunnels over UDP, by port (IANA).
const OVER_UDP: [(u16, &str, Strip); 7] = [
    (1701, "L2TP", l2tp),
    (2152, "GTP-U", gtp_u),
    (4789, "VXLAN", vxlan),
    (6081, "Geneve", geneve),
    (6635, "MPLS", |bytes| Ok((MPLS, bytes))),
    // Of Linux, before a port was assigned.
    (8472, "VXLAN", vxlan),
    (37008, "TZSP", tzsp),
];

/// Tunnels over UDP whose contents are encrypted, by port.
const ENCRYPTED: [(u16, &str); 3] = [(1194, "OpenVPN"), (4500, "IPsec"), (51820, "WireGuard")];

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
        let (tunnel, strip, before, payload) = match &self.transport {
            Transport::LaterFragment => return None,
            Transport::Udp(udp) => {
                let (_, tunnel, strip) = OVER_UDP.iter().find(|(port, ..)| udp.has_port(*port))?;
                (tunnel, strip, self.header_len + 8, udp.payload)
            }
            _ => {
                let (_, tunnel, strip) = OVER_IP.iter().find(|(number, ..)| *number == self.protocol)?;
                (tunnel, strip, self.header_len, payload)
            }
        };
        let (protocol, contents) = strip(payload).ok()?;
        let inner = innermost(protocol, contents).ok()?;
        let is_ip = matches!(inner.first().map(|byte| byte >> 4), Some(4 | 6));
        let headers = before + payload.len() - inner.len();
        is_ip.then_some(Tunnelled { tunnel, headers, bytes: inner })
    }
}

impl Udp<'_> {
    fn has_port(&self, port: u16) -> bool {
        self.src_port == port || self.dst_port == port
    }

    /// The protocol that encrypts what the datagram carries, by its contents or its port; `None` if there is none that is
    /// known.
    pub fn encrypted(&self) -> Option<&'static str> {
        match *self.payload {
            // RFC 6347, RFC 9147: type of the record and version.
            [20..=26, 0xfe, 0xfd | 0xff, ..] => Some("DTLS"),
            // The type of the message, and three bytes that are reserved; data are padded to 16 bytes.
            [1, 0, 0, 0, ..] if self.payload_len == 148 => Some("WireGuard"),
            [2, 0, 0, 0, ..] if self.payload_len == 92 => Some("WireGuard"),
            [4, 0, 0, 0, ..] if self.payload_len.is_multiple_of(16) => Some("WireGuard"),
            // RFC 9000 section 17.2: a long header, with a version of IETF.
            [0xc0..=0xff, 0, 0, 0, 1, ..] | [0xc0..=0xff, 0x6b, 0x33, 0x43, 0xcf, ..] => Some("QUIC"),
            _ => {
                let known = ENCRYPTED.iter().find(|&&(port, _)| self.has_port(port));
                known.map(|&(_, name)| name).or_else(|| self.has_port(443).then_some("QUIC"))
            }
        }
    }
}

/// Strips the header of GRE (RFC 2784, RFC 2890), of its version 1, which carries PPP (RFC 2637), or of ERSPAN in it.
fn gre(bytes: &[u8]) -> Contents<'_> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACKNOWLEDGEMENT: u16 = 0x0080;
    const ERSPAN: u16 = 0x88be;
    const ERSPAN_3: u16 = 0x22eb;
    let fields = header(bytes, "GRE", 4)?;
    let (flags, protocol) = (be16(fields, 0), be16(fields, 2));
    let optional = if protocol == PPP {
        [KEY, SEQUENCE, ACKNOWLEDGEMENT].map(|flag| flags & flag != 0)
    } else {
        [flags & (CHECKSUM | ROUTING) != 0, flags & KEY != 0, flags & SEQUENCE != 0]
    };
    let len = 4 + 4 * optional.iter().filter(|&&is_present| is_present).count();
    let (protocol, mirrored) = match protocol {
        // The first version has no header of its own.
        ERSPAN => (ETHERNET, if flags & SEQUENCE == 0 { 0 } else { 8 }),
        ERSPAN_3 => (ETHERNET, if header(bytes, "ERSPAN", len + 12)?[len + 11] & 1 == 0 { 12 } else { 20 }),
        protocol => (protocol, 0),
    };
    header(bytes, "GRE", len + mirrored)?;
    Ok((protocol, &bytes[len + mirrored..]))
}

/// Strips the header of VXLAN (RFC 7348).
fn vxlan(bytes: &[u8]) -> Contents<'_> {
    match header(bytes, "VXLAN", 8)? {
        // Other flags are of extensions that carry no Ethernet.
        [0x08, 0, 0, 0, _, _, _, 0] => Ok((ETHERNET, &bytes[8..])),
        _ => Err(Error::Malformed { header: "VXLAN", problem: "unknown flags" }),
    }
}

/// Strips the header of Geneve (RFC 8926) with its options.
fn geneve(bytes: &[u8]) -> Contents<'_> {
    const CONTROL: u8 = 0x80;
    let fields = header(bytes, "Geneve", 8)?;
    if fields[0] >> 6 != 0 || fields[1] & CONTROL != 0 {
        return Err(Error::Malformed { header: "Geneve", problem: "another version, or no data" });
    }
    let len = 8 + 4 * usize::from(fields[0] & 0x3f);
    header(bytes, "Geneve", len)?;
    Ok((be16(fields, 2), &bytes[len..]))
}

/// Strips the header of a data message of L2TP version 2 (RFC 2661).
fn l2tp(bytes: &[u8]) -> Contents<'_> {
    const CONTROL: u16 = 0x8000;
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    let flags = be16(header(bytes, "L2TP", 6)?, 0);
    if flags & 0x0f != 2 || flags & CONTROL != 0 {
        return Err(Error::Malformed { header: "L2TP", problem: "another version, or no data" });
    }
    let mut len = 6;
    len += if flags & LENGTH == 0 { 0 } else { 2 };
    len += if flags & SEQUENCE == 0 { 0 } else { 4 };
    if flags & OFFSET != 0 {
        len += 2 + usize::from(be16(header(bytes, "L2TP", len + 2)?, len));
    }
    header(bytes, "L2TP", len)?;
    Ok((PPP, &bytes[len..]))
}

/// Strips the header of TZSP, by which routers mirror Ethernet frames, with its tags.
fn tzsp(bytes: &[u8]) -> Contents<'_> {
    const END: u8 = 1;
    const PADDING: u8 = 0;
    if !matches!(header(bytes, "TZSP", 4)?, [1, 0 | 1, 0, 1]) {
        return Err(Error::Malformed { header: "TZSP", problem: "another version, or no Ethernet frame" });
    }
    let mut rest = &bytes[4..];
    loop {
        rest = match header(rest, "TZSP", 1)?[0] {
            END => return Ok((ETHERNET, &rest[1..])),
            PADDING => &rest[1..],
            _ => {
                let len = 2 + usize::from(header(rest, "TZSP", 2)?[1]);
                header(rest, "TZSP", len)?;
                &rest[len..]
            }
        };
    }
}

/// Strips the header of GTP-U (3GPP TS 29.281) with its extensions.
fn gtp_u(bytes: &[u8]) -> Contents<'_> {
    const VERSION_1: u8 = 0x30;
    const OPTIONAL: u8 = 0x07;
    const EXTENDED: u8 = 0x04;
    const PACKET: u8 = 255;
    let fields = header(bytes, "GTP-U", 8)?;
    if fields[0] & 0xf0 != VERSION_1 || fields[1] != PACKET {
        return Err(Error::Malformed { header: "GTP-U", problem: "another version, or no packet" });
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
    Ok((IPV4, &bytes[at..]))
}
