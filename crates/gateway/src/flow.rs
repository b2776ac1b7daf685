//! Flows, and the packets that open them.

use std::net::SocketAddr;

use lasthop_proto::tcp::{Flags, SeqNum};
use lasthop_wire::{IpPacket, Transport};

/// A TCP connection, by the host that opens it and the host that it opens it to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Address and port of the host that opens it.
    pub client: SocketAddr,
    /// Address and port of the other.
    pub server: SocketAddr,
}

/// The packet that opens a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The flow.
    pub flow: Flow,
    /// Sequence number of the packet.
    pub seq: SeqNum,
    /// DSCP of the packet.
    pub dscp: u8,
    /// Its window scale, if it offers one.
    pub window_scale: Option<u8>,
    /// Why a split would change what the two ends have agreed on or see, if it would.
    pub obstacle: Option<Obstacle>,
}

/// What a split cannot carry over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// An option of TCP beyond those that the kernel negotiates by itself: Multipath TCP, authentication, ones not yet
    /// invented.
    Option(u8),
    /// Data in the SYN (TCP Fast Open).
    Data,
}

/// The options of a SYN that the kernel negotiates for each part by itself: end, padding, MSS, window scale, SACK permitted
/// and timestamps.
const NEGOTIATED: [u8; 6] = [0, 1, 2, 3, 4, 8];

impl Opening {
    /// Reads the IP packet `bytes`, of which later parts may be missing; `None` if it opens no TCP connection.
    pub fn parse(bytes: &[u8]) -> Option<Opening> {
        let packet = IpPacket::parse_captured(bytes, bytes.len()).ok()?;
        let Transport::Tcp(tcp) = packet.transport else { return None };
        let flags = tcp.header.segment.flags;
        if packet.fragment.is_some() || !flags.has(Flags::SYN) || flags.has(Flags::ACK) {
            return None;
        }
        let option = packet.tcp_option_kinds().find(|kind| !NEGOTIATED.contains(kind)).map(Obstacle::Option);
        let data = (packet.len > packet.header_len + tcp.header_len).then_some(Obstacle::Data);
        Some(Opening {
            flow: Flow {
                client: SocketAddr::new(packet.ip.src, tcp.header.src_port),
                server: SocketAddr::new(packet.ip.dst, tcp.header.dst_port),
            },
            seq: tcp.header.segment.seq,
            dscp: packet.ip.dscp.get(),
            window_scale: tcp.header.window_scale,
            obstacle: option.or(data),
        })
    }
}
