//! Link types of captures. Each is a line and a function.

use std::fmt;

use crate::encapsulation::{Framed, IPV4, IPV6, TAGS, is_packet, of, ppp, pppoe, strip};
use crate::error::{Error, be16, be32, header};
use crate::ip::IpPacket;
use crate::wifi;

/// The framing of captured packets: a LINKTYPE of pcap and pcapng files.
#[derive(Clone, Copy)]
pub struct LinkType {
    name: &'static str,
    /// Its numbers in the registry of pcap files.
    numbers: &'static [u32],
    unframe: for<'a> fn(&'a [u8]) -> Result<Framed<'a>, Error>,
}

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
    /// The log of OpenBSD's packet filter.
    pub const PFLOG: LinkType = LinkType { name: "PFLOG", numbers: &[117], unframe: pflog };
    /// Frames between a host and its switch, with the tags of Broadcom and Marvell (DSA).
    pub const DSA: LinkType = LinkType { name: "DSA", numbers: &[281, 282, 284, 285], unframe: switch };
    /// 802.11 frames.
    pub const WIFI: LinkType = LinkType { name: "802.11", numbers: &[105], unframe: wifi::data };
    /// 802.11 frames after the header of radiotap.
    pub const RADIOTAP: LinkType = LinkType { name: "802.11", numbers: &[127], unframe: wifi::radiotap };
    /// 802.11 frames after the header of Prism or AVS.
    pub const PRISM: LinkType = LinkType { name: "802.11", numbers: &[119, 163], unframe: wifi::prism };

    /// Every link type.
    pub const ALL: [LinkType; 16] = [
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
        LinkType::PFLOG,
        LinkType::DSA,
        LinkType::WIFI,
        LinkType::RADIOTAP,
        LinkType::PRISM,
    ];

    /// The link type with the number `number` in the registry of pcap files.
    pub fn from_pcap(number: u32) -> Option<LinkType> {
        LinkType::ALL.into_iter().find(|link_type| link_type.numbers.contains(&number))
    }

    /// The name, for messages.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Whether the frames are those that a monitor hears of a Wi-Fi channel.
    pub fn is_monitor(self) -> bool {
        self.name == LinkType::WIFI.name
    }

    /// The IP packet within a frame, with a trailer if the link pads short frames. Only tags are stripped: a packet in
    /// another encapsulation is not seen.
    ///
    /// # Errors
    /// If the frame is cut off within its header or carries another protocol.
    pub fn network_layer(self, frame: &[u8]) -> Result<&[u8], Error> {
        let framed = (self.unframe)(frame)?;
        strip(framed.protocol, framed.bytes, |protocol| of(&TAGS, protocol))
    }

    /// The IP packet within a captured frame, in any encapsulation. Of a file that states Ethernet, a frame may be
    /// an IP packet itself, as from the WWAN interfaces of Windows, or have the tag of a switch that no EtherType tells.
    ///
    /// # Errors
    /// As [`network_layer`](LinkType::network_layer), and if the contents are encrypted.
    pub fn captured(self, frame: &[u8]) -> Result<Framed<'_>, Error> {
        (self.unframe)(frame).and_then(Framed::stripped).or_else(|error| {
            if self.numbers != LinkType::ETHERNET.numbers {
                return Err(error);
            }
            if is_packet(frame) {
                return Ok(Framed { is_bare: true, ..Framed::new(IPV4, frame) });
            }
            // A tag of two, four or eight bytes before the EtherType, or of four before the addresses.
            let tagged = [14, 16, 20].into_iter().find_map(|at| {
                let protocol = be16(frame.get(at..at + 2)?, 0);
                let inner = &frame[at + 2..];
                (matches!(protocol, IPV4 | IPV6) && is_packet(inner)).then_some(inner)
            });
            tagged.map(|inner| Framed::new(IPV4, inner)).ok_or(error)
        })
    }

    /// The packet aggregated behind that of a frame; `None` if there is none.
    ///
    /// # Errors
    /// As [`captured`](LinkType::captured).
    pub fn following<'a>(framed: &Framed<'a>) -> Option<Result<Framed<'a>, Error>> {
        (!framed.aggregated.is_empty()).then(|| wifi::subframe(framed.aggregated).and_then(Framed::stripped))
    }
}

impl fmt::Debug for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LinkType({}, {:?})", self.name, self.numbers)
    }
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

/// A packet after a header whose first byte is its length without padding.
fn pflog(frame: &[u8]) -> Result<Framed<'_>, Error> {
    let len = usize::from(header(frame, "PFLOG", 1)?[0]).next_multiple_of(4);
    header(frame, "PFLOG", len)?;
    raw(&frame[len..])
}

/// Ethernet with a tag of four bytes, of Broadcom after or before the addresses, or of Marvell, with an EtherType or not.
fn switch(frame: &[u8]) -> Result<Framed<'_>, Error> {
    match be16(header(frame, "DSA", 18)?, 12) {
        0xdada => ethernet(frame),
        _ => Ok(Framed::new(be16(frame, 16), &frame[18..])),
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
