//! Framing of captured packets.

use crate::error::{Error, be16, be32, header};
use crate::ip::IpPacket;

/// The framing of captured packets: a LINKTYPE of pcap and pcapng files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Ethernet II, with any number of VLAN tags.
    Ethernet,
    /// Linux "cooked" capture, version 1: the pseudo-device `any`.
    LinuxSll,
    /// Linux "cooked" capture, version 2.
    LinuxSll2,
    /// BSD loopback: an address family in the byte order of the capturing host.
    Loopback,
    /// No framing: IPv4 or IPv6, as the version field says.
    Raw,
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// IEEE 802.1Q, IEEE 802.1ad, and the double tags of older switches.
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];

impl LinkType {
    /// The link type with the number `number` in the registry of pcap files. Files written by OpenBSD and older
    /// systems use 12 or 14 for [`Raw`](LinkType::Raw).
    pub const fn from_pcap(number: u32) -> Option<LinkType> {
        Some(match number {
            0 | 108 => LinkType::Loopback,
            1 => LinkType::Ethernet,
            12 | 14 | 101 | 228 | 229 => LinkType::Raw,
            113 => LinkType::LinuxSll,
            276 => LinkType::LinuxSll2,
            _ => return None,
        })
    }

    /// The IP packet within a frame, with a trailer if the link pads short frames.
    ///
    /// # Errors
    /// If the frame is cut off within its header or carries another protocol.
    pub fn network_layer(self, frame: &[u8]) -> Result<&[u8], Error> {
        let (protocol, at) = match self {
            LinkType::Raw => return Ok(frame),
            LinkType::Ethernet => {
                let mut at = 14;
                loop {
                    let protocol = be16(header(frame, "Ethernet", at)?, at - 2);
                    if !VLAN.contains(&protocol) {
                        break (protocol, at);
                    }
                    at += 4;
                }
            }
            LinkType::LinuxSll => (be16(header(frame, "Linux cooked", 16)?, 14), 16),
            LinkType::LinuxSll2 => (be16(header(frame, "Linux cooked", 20)?, 0), 20),
            LinkType::Loopback => {
                let family = be32(header(frame, "loopback", 4)?, 0);
                // The number of IPv6 differs between systems.
                let is_ip = |family| matches!(family, 2 | 10 | 24 | 28 | 30);
                if !is_ip(family) && !is_ip(family.swap_bytes()) {
                    return Err(Error::NotIp { protocol: family });
                }
                return Ok(&frame[4..]);
            }
        };
        match protocol {
            IPV4 | IPV6 => Ok(&frame[at..]),
            _ => Err(Error::NotIp { protocol: protocol.into() }),
        }
    }
}

impl<'a> IpPacket<'a> {
    /// Reads the IP packet in a captured frame. `original_len` is the length of the frame on the wire; `frame` is shorter
    /// if the capture was limited to the first bytes of each frame.
    ///
    /// # Errors
    /// As [`LinkType::network_layer`] and [`IpPacket::parse_captured`].
    pub fn from_frame(
        link_type: LinkType,
        frame: &'a [u8],
        original_len: usize,
    ) -> Result<IpPacket<'a>, Error> {
        let bytes = link_type.network_layer(frame)?;
        IpPacket::parse_captured(bytes, original_len.saturating_sub(frame.len() - bytes.len()))
    }
}
