//! Framing of captured packets: link types, tags and tunnels. Each is a line of a table and a function.

use std::fmt;

use crate::error::{Error, be16, be32, header};
use crate::ip::IpPacket;

/// The framing of captured packets: a LINKTYPE of pcap and pcapng files.
#[derive(Clone, Copy)]
pub struct LinkType {
    name: &'static str,
    /// Its numbers in the registry of pcap files.
    numbers: &'static [u32],
    unframe: for<'a> fn(&'a [u8]) -> Result<Framed<'a>, Error>,
}

/// The contents of a frame, or of an encapsulation in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framed<'a> {
    /// EtherType of the contents.
    pub protocol: u16,
    /// Index of the capturing host's interface, if the link's header has it.
    pub interface: Option<u32>,
    /// The contents, with a trailer if the link pads short frames.
    pub bytes: &'a [u8],
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// A function that strips the header of an encapsulation and returns the EtherType and bytes of its contents.
type Strip = for<'a> fn(&'a [u8]) -> Result<(u16, &'a [u8]), Error>;

/// Tags between the link's header and the packet, by EtherType: IEEE 802.1Q, IEEE 802.1ad, and the double tags of older
/// switches.
const TAGS: [(u16, Strip); 3] = [(0x8100, vlan), (0x88a8, vlan), (0x9100, vlan)];

/// Tunnels, by EtherType.
const TUNNELS: [(u16, Strip); 1] = [(0x8864, pppoe)];

impl LinkType {
    /// Ethernet II, with any number of VLAN tags.
    pub const ETHERNET: LinkType = LinkType { name: "Ethernet", numbers: &[1], unframe: ethernet };
    /// No framing: IPv4 or IPv6, as the version field says. OpenBSD and older systems write 12 or 14.
    pub const RAW: LinkType = LinkType { name: "raw IP", numbers: &[12, 14, 101, 228, 229], unframe: raw };
    /// Linux "cooked" capture, version 1: the pseudo-device `any`.
    pub const LINUX_SLL: LinkType = LinkType { name: "Linux cooked", numbers: &[113], unframe: linux_sll };
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: LinkType = LinkType { name: "Linux cooked", numbers: &[276], unframe: linux_sll2 };
    /// BSD loopback: an address family in the byte order of the capturing host.
    pub const LOOPBACK: LinkType = LinkType { name: "loopback", numbers: &[0, 108], unframe: loopback };

    /// Every link type.
    pub const ALL: [LinkType; 5] =
        [LinkType::ETHERNET, LinkType::RAW, LinkType::LINUX_SLL, LinkType::LINUX_SLL2, LinkType::LOOPBACK];

    /// The link type with the number `number` in the registry of pcap files.
    pub fn from_pcap(number: u32) -> Option<LinkType> {
        LinkType::ALL.into_iter().find(|link_type| link_type.numbers.contains(&number))
    }

    /// The name, for messages.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The IP packet within a frame, with a trailer if the link pads short frames. A packet in a tunnel is not seen.
    ///
    /// # Errors
    /// If the frame is cut off within its header or carries another protocol.
    pub fn network_layer(self, frame: &[u8]) -> Result<&[u8], Error> {
        self.strip(frame, &[&TAGS]).map(|framed| framed.bytes)
    }

    /// The IP packet within a captured frame, in a tunnel or not.
    ///
    /// # Errors
    /// As [`network_layer`](LinkType::network_layer).
    pub fn captured(self, frame: &[u8]) -> Result<Framed<'_>, Error> {
        self.strip(frame, &[&TAGS, &TUNNELS])
    }

    /// Strips the link's header and these encapsulations.
    fn strip<'a>(self, frame: &'a [u8], encapsulations: &[&[(u16, Strip)]]) -> Result<Framed<'a>, Error> {
        let mut framed = (self.unframe)(frame)?;
        // Each encapsulation is at least a few bytes long, so this ends.
        while let Some((_, strip)) =
            encapsulations.iter().copied().flatten().find(|(protocol, _)| *protocol == framed.protocol)
        {
            (framed.protocol, framed.bytes) = strip(framed.bytes)?;
        }
        match framed.protocol {
            IPV4 | IPV6 => Ok(framed),
            protocol => Err(Error::NotIp { protocol: protocol.into() }),
        }
    }
}

impl fmt::Debug for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LinkType({}, {:?})", self.name, self.numbers)
    }
}

fn ethernet(frame: &[u8]) -> Result<Framed<'_>, Error> {
    let protocol = be16(header(frame, "Ethernet", 14)?, 12);
    Ok(Framed { protocol, interface: None, bytes: &frame[14..] })
}

/// The version field of the packet decides, so the protocol stands for both versions.
fn raw(frame: &[u8]) -> Result<Framed<'_>, Error> {
    Ok(Framed { protocol: IPV4, interface: None, bytes: frame })
}

fn linux_sll(frame: &[u8]) -> Result<Framed<'_>, Error> {
    let protocol = be16(header(frame, "Linux cooked", 16)?, 14);
    Ok(Framed { protocol, interface: None, bytes: &frame[16..] })
}

fn linux_sll2(frame: &[u8]) -> Result<Framed<'_>, Error> {
    let fields = header(frame, "Linux cooked", 20)?;
    Ok(Framed { protocol: be16(fields, 0), interface: Some(be32(fields, 4)), bytes: &frame[20..] })
}

fn loopback(frame: &[u8]) -> Result<Framed<'_>, Error> {
    let family = be32(header(frame, "loopback", 4)?, 0);
    // The number of IPv6 differs between systems.
    let is_ip = |family| matches!(family, 2 | 10 | 23 | 24 | 28 | 30);
    if !is_ip(family) && !is_ip(family.swap_bytes()) {
        return Err(Error::NotIp { protocol: family });
    }
    raw(&frame[4..])
}

fn vlan(bytes: &[u8]) -> Result<(u16, &[u8]), Error> {
    Ok((be16(header(bytes, "VLAN", 4)?, 2), &bytes[4..]))
}

/// A session of PPP over Ethernet (RFC 2516).
fn pppoe(bytes: &[u8]) -> Result<(u16, &[u8]), Error> {
    match be16(header(bytes, "PPPoE", 8)?, 6) {
        0x0021 => Ok((IPV4, &bytes[8..])),
        0x0057 => Ok((IPV6, &bytes[8..])),
        protocol => Err(Error::NotIp { protocol: protocol.into() }),
    }
}

impl<'a> IpPacket<'a> {
    /// Reads the IP packet in a captured frame, in a tunnel or not. `original_len` is the length of the frame on the wire; `frame` is shorter
    /// if the capture was limited to the first bytes of each frame.
    ///
    /// # Errors
    /// As [`LinkType::captured`] and [`IpPacket::parse_captured`].
    pub fn from_frame(
        link_type: LinkType,
        frame: &'a [u8],
        original_len: usize,
    ) -> Result<IpPacket<'a>, Error> {
        let bytes = link_type.captured(frame)?.bytes;
        IpPacket::parse_captured(bytes, original_len.saturating_sub(frame.len() - bytes.len()))
    }
}
