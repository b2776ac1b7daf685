//! Encapsulations between a link's header, or that of a tunnel, and the IP packet: LLC, tags, labels, sessions. Each is a
//! line of a table and a function.

use crate::error::{Error, be16, be32, header};

/// The contents of a frame, or of an encapsulation in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Framed<'a> {
    /// EtherType of the contents.
    pub protocol: u16,
    /// Index of the capturing host's interface, if the link's header has it.
    pub interface: Option<u32>,
    /// Whether an IP packet begins the frame although the file states Ethernet.
    pub is_bare: bool,
    /// The contents, with a trailer if the link pads short frames.
    pub bytes: &'a [u8],
    /// Further frames that are aggregated with this one (A-MSDU).
    pub(crate) aggregated: &'a [u8],
}

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;
pub(crate) const MPLS: u16 = 0x8847;
/// Transparent Ethernet bridging: an Ethernet frame.
pub(crate) const ETHERNET: u16 = 0x6558;
pub(crate) const PPP: u16 = 0x880b;

/// The EtherType and bytes of the contents of an encapsulation.
pub(crate) type Contents<'a> = Result<(u16, &'a [u8]), Error>;

/// A function that strips the header of an encapsulation.
pub(crate) type Strip = for<'a> fn(&'a [u8]) -> Contents<'a>;

/// Tags between the link's header and the packet, by EtherType: IEEE 802.1Q, IEEE 802.1ad, and the double tags of older
/// switches.
pub(crate) const TAGS: [(u16, Strip); 3] = [(0x8100, vlan), (0x88a8, vlan), (0x9100, vlan)];

/// Other encapsulations, by EtherType.
const ENCAPSULATIONS: [(u16, Strip); 8] = [
    (ETHERNET, bridged),
    (PPP, ppp),
    (MPLS, mpls),
    (0x8848, mpls),
    (0x8864, pppoe),
    (0x88e5, macsec),
    (0x88e7, provider_backbone),
    (0xdada, marvell),
];

/// EtherTypes below this one are lengths, of IEEE 802.3.
const LEAST_ETHERTYPE: u16 = 0x0600;

/// Limit of the encapsulations of a packet in a frame.
const MOST_ENCAPSULATIONS: usize = 16;

impl<'a> Framed<'a> {
    pub(crate) fn new(protocol: u16, bytes: &'a [u8]) -> Framed<'a> {
        Framed { protocol, interface: None, is_bare: false, bytes, aggregated: &[] }
    }

    /// The same without encapsulations around the IP packet.
    pub(crate) fn stripped(self) -> Result<Framed<'a>, Error> {
        Ok(Framed { bytes: innermost(self.protocol, self.bytes)?, protocol: IPV4, ..self })
    }
}

/// Strips every encapsulation of contents with an EtherType.
pub(crate) fn innermost(protocol: u16, bytes: &[u8]) -> Result<&[u8], Error> {
    strip(protocol, bytes, |protocol| {
        if protocol < LEAST_ETHERTYPE {
            return Some(llc);
        }
        of(&TAGS, protocol).or_else(|| of(&ENCAPSULATIONS, protocol))
    })
}

/// Strips those encapsulations that have a function.
pub(crate) fn strip(
    mut protocol: u16,
    mut bytes: &[u8],
    of: impl Fn(u16) -> Option<Strip>,
) -> Result<&[u8], Error> {
    for _ in 0..MOST_ENCAPSULATIONS {
        if matches!(protocol, IPV4 | IPV6) {
            return Ok(bytes);
        }
        (protocol, bytes) = of(protocol).ok_or(Error::NotIp { protocol: protocol.into() })?(bytes)?;
    }
    Err(Error::Malformed { header: "link", problem: "the packet is in too many encapsulations" })
}

pub(crate) fn of(table: &[(u16, Strip)], protocol: u16) -> Option<Strip> {
    table.iter().find(|(number, _)| *number == protocol).map(|&(_, strip)| strip)
}

/// Whether a frame is an IP packet of TCP, UDP or ICMP, about as long as its header says, or cut off.
pub(crate) fn is_packet(frame: &[u8]) -> bool {
    const TRAILER: usize = 8;
    let (protocol, len) = match *frame {
        [0x45, _, high, low, _, _, _, _, _, protocol, _, ..] => {
            (protocol, usize::from(u16::from_be_bytes([high, low])))
        }
        [first, _, _, _, high, low, protocol, _, ..] if first >> 4 == 6 => {
            (protocol, 40 + usize::from(u16::from_be_bytes([high, low])))
        }
        _ => return false,
    };
    // Ethernet pads short frames, to 46 bytes, and a check sequence or the tag of a switch may follow.
    matches!(protocol, 1 | 6 | 17 | 58) && (len + TRAILER >= frame.len() || frame.len() <= 46 + TRAILER)
}

fn vlan(bytes: &[u8]) -> Contents<'_> {
    Ok((be16(header(bytes, "VLAN", 4)?, 2), &bytes[4..]))
}

fn bridged(bytes: &[u8]) -> Contents<'_> {
    Ok((be16(header(bytes, "Ethernet", 14)?, 12), &bytes[14..]))
}

/// The reserved bytes and the tag of Marvell's switches behind their EtherType.
fn marvell(bytes: &[u8]) -> Contents<'_> {
    Ok((be16(header(bytes, "DSA", 8)?, 6), &bytes[8..]))
}

/// The tag of a service instance (IEEE 802.1ah), before the frame of a customer.
fn provider_backbone(bytes: &[u8]) -> Contents<'_> {
    header(bytes, "802.1ah", 4)?;
    Ok((ETHERNET, &bytes[4..]))
}

/// LLC (IEEE 802.2), with SNAP or not.
pub(crate) fn llc(bytes: &[u8]) -> Contents<'_> {
    const IP: u8 = 0x06;
    match header(bytes, "LLC", 3)? {
        // Of another organisation than that of EtherTypes, the number is one of its own.
        [0xaa, 0xaa, 0x03] => match header(bytes, "SNAP", 8)?[3..] {
            [0, 0, 0 | 0xf8, high, low] => Ok((u16::from_be_bytes([high, low]), &bytes[8..])),
            _ => Err(Error::NotIp { protocol: 0xaa }),
        },
        [IP, IP, 0x03] => Ok((IPV4, &bytes[3..])),
        [service, ..] => Err(Error::NotIp { protocol: (*service).into() }),
        [] => Err(Error::NotIp { protocol: 0 }),
    }
}

/// A stack of labels of MPLS (RFC 3032). No field names its contents: an IP packet, or an Ethernet frame (RFC 4448), after
/// a control word or not.
fn mpls(bytes: &[u8]) -> Contents<'_> {
    const BOTTOM: u32 = 0x100;
    let mut rest = bytes;
    loop {
        let label = be32(header(rest, "MPLS", 4)?, 0);
        rest = &rest[4..];
        if label & BOTTOM != 0 {
            break;
        }
    }
    let is_frame = |bytes: &[u8]| {
        let protocol = bytes.get(12..14).map(|bytes| be16(bytes, 0));
        protocol
            .is_some_and(|protocol| matches!(protocol, IPV4 | IPV6 | 0x0806) || of(&TAGS, protocol).is_some())
    };
    match rest.first().map_or(0, |byte| byte >> 4) {
        4 | 6 if is_packet(rest) || !is_frame(rest) => Ok((IPV4, rest)),
        0 if rest.get(4..).is_some_and(is_frame) => Ok((ETHERNET, &rest[4..])),
        _ if is_frame(rest) => Ok((ETHERNET, rest)),
        _ => Err(Error::NotIp { protocol: MPLS.into() }),
    }
}

/// MACsec (IEEE 802.1AE), which may authenticate a frame without encrypting it.
fn macsec(bytes: &[u8]) -> Contents<'_> {
    const ENCRYPTED: u8 = 0x0c;
    const CHANNEL: u8 = 0x20;
    let tag = header(bytes, "MACsec", 6)?[0];
    if tag & ENCRYPTED != 0 {
        return Err(Error::Encrypted { by: "MACsec" });
    }
    let len = if tag & CHANNEL == 0 { 6 } else { 14 };
    Ok((be16(header(bytes, "MACsec", len + 2)?, len), &bytes[len + 2..]))
}

/// A session of PPP over Ethernet (RFC 2516).
pub(crate) fn pppoe(bytes: &[u8]) -> Contents<'_> {
    header(bytes, "PPPoE", 8)?;
    ppp(&bytes[6..])
}

/// PPP (RFC 1661), with or without address and control (RFC 1662), and with a protocol field of one byte or two.
pub(crate) fn ppp(bytes: &[u8]) -> Contents<'_> {
    let bytes = bytes.strip_prefix(&[0xff, 0x03]).unwrap_or(bytes);
    let (protocol, len) = match *header(bytes, "PPP", 1)? {
        // Only the last byte of a number is odd.
        [last] if last & 1 == 1 => (last.into(), 1),
        _ => (be16(header(bytes, "PPP", 2)?, 0), 2),
    };
    match protocol {
        0x0021 => Ok((IPV4, &bytes[len..])),
        0x0057 => Ok((IPV6, &bytes[len..])),
        0x0281 => Ok((MPLS, &bytes[len..])),
        protocol => Err(Error::NotIp { protocol: protocol.into() }),
    }
}
