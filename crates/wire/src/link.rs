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
}

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;

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
    /// PPP, with address and control or without, as ns-3 writes it, and in frames like those of HDLC.
    pub const PPP: LinkType = LinkType { name: "PPP", numbers: &[9, 50], unframe: serial };
    /// PPP after a byte for the direction.
    pub const PPP_WITH_DIRECTION: LinkType =
        LinkType { name: "PPP", numbers: &[166, 204], unframe: directed };
    /// A PPPoE session without Ethernet.
    pub const PPPOE: LinkType = LinkType { name: "PPP", numbers: &[51], unframe: session };
    /// Cisco's HDLC.
    pub const HDLC: LinkType = LinkType { name: "HDLC", numbers: &[104], unframe: hdlc };
    /// Linux netfilter log.
    pub const NFLOG: LinkType = LinkType { name: "NFLOG", numbers: &[239], unframe: nflog };
    /// Apple's pseudo-device, whose header has the link type of each frame. Older systems write a private number.
    pub const PKTAP: LinkType = LinkType { name: "PKTAP", numbers: &[149, 258], unframe: pktap };

    /// Every link type.
    pub const ALL: [LinkType; 11] = [
        LinkType::ETHERNET,
        LinkType::RAW,
        LinkType::LINUX_SLL,
        LinkType::LINUX_SLL2,
        LinkType::LOOPBACK,
        LinkType::PPP,
        LinkType::PPP_WITH_DIRECTION,
        LinkType::PPPOE,
        LinkType::HDLC,
        LinkType::NFLOG,
        LinkType::PKTAP,
    ];

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

    /// The IP packet within a captured frame, in a PPPoE session or not. Of a file that states Ethernet, a frame may be
    /// an IP packet itself, as from the WWAN interfaces of Windows.
    ///
    /// # Errors
    /// As [`network_layer`](LinkType::network_layer).
    pub fn captured(self, frame: &[u8]) -> Result<Framed<'_>, Error> {
        self.strip(frame, &[&TAGS, &TUNNELS]).or_else(|error| {
            if self.numbers == LinkType::ETHERNET.numbers && is_packet(frame) {
                return Ok(Framed { is_bare: true, ..Framed::new(IPV4, frame) });
            }
            Err(error)
        })
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

impl<'a> Framed<'a> {
    fn new(protocol: u16, bytes: &'a [u8]) -> Framed<'a> {
        Framed { protocol, interface: None, is_bare: false, bytes }
    }
}

impl fmt::Debug for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LinkType({}, {:?})", self.name, self.numbers)
    }
}

/// Whether a frame is an IP packet of TCP, UDP or ICMP, at least as long as its header says.
fn is_packet(frame: &[u8]) -> bool {
    let (protocol, len) = match *frame {
        [0x45, _, high, low, _, _, _, _, _, protocol, _, ..] => {
            (protocol, usize::from(u16::from_be_bytes([high, low])))
        }
        [first, _, _, _, high, low, protocol, _, ..] if first >> 4 == 6 => {
            (protocol, 40 + usize::from(u16::from_be_bytes([high, low])))
        }
        _ => return false,
    };
    matches!(protocol, 1 | 6 | 17 | 58) && len >= frame.len()
}

fn ethernet(frame: &[u8]) -> Result<Framed<'_>, Error> {
    let protocol = be16(header(frame, "Ethernet", 14)?, 12);
    Ok(Framed::new(protocol, &frame[14..]))
}

/// The version field of the packet decides, so the protocol stands for both versions.
fn raw(frame: &[u8]) -> Result<Framed<'_>, Error> {
    Ok(Framed::new(IPV4, frame))
}

fn linux_sll(frame: &[u8]) -> Result<Framed<'_>, Error> {
    let protocol = be16(header(frame, "Linux cooked", 16)?, 14);
    Ok(Framed::new(protocol, &frame[16..]))
}

fn linux_sll2(frame: &[u8]) -> Result<Framed<'_>, Error> {
    let fields = header(frame, "Linux cooked", 20)?;
    Ok(Framed { interface: Some(be32(fields, 4)), ..Framed::new(be16(fields, 0), &frame[20..]) })
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

/// PPP, or Cisco's HDLC, which shares the link type of serial lines and begins with an address of its own.
fn serial(frame: &[u8]) -> Result<Framed<'_>, Error> {
    match frame.first() {
        Some(0x0f | 0x8f) => hdlc(frame),
        _ => ppp(frame).map(|(protocol, bytes)| Framed::new(protocol, bytes)),
    }
}

fn directed(frame: &[u8]) -> Result<Framed<'_>, Error> {
    header(frame, "PPP", 1)?;
    // Linux's pppd writes the direction over the address.
    let rest = if frame.get(1) == Some(&0x03) { &frame[2..] } else { &frame[1..] };
    serial(rest)
}

fn session(frame: &[u8]) -> Result<Framed<'_>, Error> {
    pppoe(frame).map(|(protocol, bytes)| Framed::new(protocol, bytes))
}

fn hdlc(frame: &[u8]) -> Result<Framed<'_>, Error> {
    let protocol = be16(header(frame, "HDLC", 4)?, 2);
    Ok(Framed::new(protocol, &frame[4..]))
}

/// The payload among the attributes of a netfilter log message, whose lengths are in the byte order of the capturing
/// host.
fn nflog(frame: &[u8]) -> Result<Framed<'_>, Error> {
    const PAYLOAD: u16 = 9;
    header(frame, "NFLOG", 4)?;
    let packet = |number: fn([u8; 2]) -> u16| {
        let mut rest = &frame[4..];
        while let [a, b, c, d, ..] = *rest {
            let (len, kind) = (usize::from(number([a, b])), number([c, d]));
            if kind == PAYLOAD {
                // It comes last, so a capture of the first bytes of each frame cuts it off.
                return rest.get(4..len.min(rest.len()));
            }
            // The length counts these four bytes.
            rest = (len >= 4).then(|| rest.get(len.next_multiple_of(4)..)).flatten()?;
        }
        None
    };
    let problem = "no packet among its attributes";
    let bytes = packet(u16::from_le_bytes).or_else(|| packet(u16::from_be_bytes));
    raw(bytes.ok_or(Error::Malformed { header: "NFLOG", problem })?)
}

/// A header of Apple's, whose length and link type come first, as little-endian numbers.
fn pktap(frame: &[u8]) -> Result<Framed<'_>, Error> {
    let fields = header(frame, "PKTAP", 12)?;
    let number = |at| be32(fields, at).swap_bytes();
    let problem = "neither its length nor its link type is plausible";
    let inner = (number(0) >= 12).then(|| frame.get(number(0) as usize..)).flatten();
    let link_type =
        LinkType::from_pcap(number(8)).filter(|link_type| link_type.numbers != LinkType::PKTAP.numbers);
    let (inner, link_type) = inner.zip(link_type).ok_or(Error::Malformed { header: "PKTAP", problem })?;
    (link_type.unframe)(inner)
}

fn vlan(bytes: &[u8]) -> Result<(u16, &[u8]), Error> {
    Ok((be16(header(bytes, "VLAN", 4)?, 2), &bytes[4..]))
}

/// A session of PPP over Ethernet (RFC 2516).
fn pppoe(bytes: &[u8]) -> Result<(u16, &[u8]), Error> {
    header(bytes, "PPPoE", 8)?;
    ppp(&bytes[6..])
}

/// PPP (RFC 1661), with or without address and control (RFC 1662), and with a protocol field of one byte or two.
pub(crate) fn ppp(bytes: &[u8]) -> Result<(u16, &[u8]), Error> {
    let bytes = bytes.strip_prefix(&[0xff, 0x03]).unwrap_or(bytes);
    let (protocol, len) = match *header(bytes, "PPP", 1)? {
        // Only the last byte of a number is odd.
        [last] if last & 1 == 1 => (last.into(), 1),
        _ => (be16(header(bytes, "PPP", 2)?, 0), 2),
    };
    match protocol {
        0x0021 => Ok((IPV4, &bytes[len..])),
        0x0057 => Ok((IPV6, &bytes[len..])),
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
