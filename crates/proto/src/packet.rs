//! Packets: small `Copy` values whose payload is only a length.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::net::Ipv4Addr;

use lasthop_base::{Bytes, Time};
use serde::{Deserialize, Serialize};

mod segment;
mod seq;

pub use segment::{EcnCounters, FieldOrder, Flags, SackBlock, SackBlocks, Segment, Timestamps};
pub use seq::SeqNum;

/// A host or router, by its index in the topology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

impl HostId {
    /// Its place in a list of hosts.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Its IPv4 address where packets become bytes, in one part of a connection: 0, or a later one if base stations split the
    /// connection. Each part has a prefix of 15 bits, and each further 131,072 hosts the next first byte.
    pub fn address(self, part: u8) -> Ipv4Addr {
        const HOSTS: u32 = 1 << 17;
        let first = Ipv4Addr::new(10 + (self.0 / HOSTS) as u8, 2 * part, 0, 1);
        Ipv4Addr::from_bits(first.to_bits() + self.0 % HOSTS)
    }
}

/// A connection or another stream of packets, by its index in the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

impl FlowId {
    /// Of packets between the agents of a scheme that concern no particular flow.
    pub const NONE: FlowId = FlowId(u32::MAX);

    /// The ports where packets become bytes: that of the host that opens it, from the dynamic range, and that of its peer, from
    /// the range below. The sizes of the two ranges are coprime, so that no two flows share both ports.
    pub fn ports(self) -> (u16, u16) {
        const DYNAMIC: u32 = 49_152;
        const SERVICE: u32 = 5_001;
        let opener = DYNAMIC + self.0 % ((1 << 16) - DYNAMIC);
        let peer = SERVICE + self.0 % (DYNAMIC - SERVICE);
        (opener as u16, peer as u16)
    }

    /// Its place in a list of flows.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A packet of the network layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// The sending host.
    pub src: HostId,
    /// The destination host.
    pub dst: HostId,
    /// The flow.
    pub flow: FlowId,
    /// Size at the network layer: payload and all headers down to IP.
    pub size: Bytes,
    /// DSCP field of the IP header.
    pub dscp: Dscp,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// The bytes of a real packet; [`Handle::NONE`] in a simulation.
    pub handle: Handle,
    /// Contents.
    pub body: Body,
}

/// A handle to the bytes of a real packet, which components copy with the packet and never look into.
/// Who brought the packet into the engine keeps the bytes until no copy of the packet is left there,
/// nor [kept](crate::Component::kept) by an agent. The number consists of a slot, from 1, and of a
/// generation, by which a handle to bytes that are gone differs from that of the next packet in the
/// same slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u32);

impl Handle {
    /// A packet without bytes: one that a component made.
    pub const NONE: Handle = Handle(0);

    /// The highest number of a slot.
    pub const MAX_SLOT: usize = (1 << 20) - 1;

    /// The handle of generation number `generation`, modulo 4096, of a slot.
    ///
    /// # Panics
    /// If there is no such slot.
    pub const fn new(slot: usize, generation: u32) -> Handle {
        assert!(slot > 0 && slot <= Handle::MAX_SLOT, "slots have numbers from 1 to 2^20 - 1");
        Handle(generation << 20 | slot as u32)
    }

    /// The slot; 0 without bytes.
    pub const fn slot(self) -> usize {
        self.0 as usize & Handle::MAX_SLOT
    }
}

/// Differentiated services code point in the IP header (RFC 2474): the six upper bits of the former
/// type-of-service octet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Dscp(u8);

impl Dscp {
    /// Default forwarding.
    pub const DEFAULT: Dscp = Dscp(0);
    /// Expedited forwarding (RFC 3246).
    pub const EXPEDITED: Dscp = Dscp(0b10_1110);

    /// The code point `value`. Values that end in binary 11 are for experimental and local use (RFC 2474
    /// section 6).
    ///
    /// # Panics
    /// If `value` has more than six bits.
    pub const fn new(value: u8) -> Dscp {
        assert!(value < 64, "a code point has six bits");
        Dscp(value)
    }

    /// The numeric value.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl From<Dscp> for u8 {
    fn from(dscp: Dscp) -> u8 {
        dscp.get()
    }
}

impl TryFrom<u8> for Dscp {
    type Error = String;

    fn try_from(value: u8) -> Result<Dscp, String> {
        if value < 64 {
            Ok(Dscp(value))
        } else {
            Err(format!("found {value}, expected a code point from 0 to 63"))
        }
    }
}

/// The ECN field of the IP header (RFC 3168 section 5): the two bits after the DSCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable transport: congestion drops the packet.
    #[default]
    NotEct = 0b00,
    /// ECN-capable transport, code point ECT(1).
    Ect1 = 0b01,
    /// ECN-capable transport, code point ECT(0).
    Ect0 = 0b10,
    /// Congestion experienced: marked by a queue.
    Ce = 0b11,
}

impl Ecn {
    /// The value of the two lower bits.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The two bits.
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Whether a queue may mark the packet instead of dropping it. A marked packet stays marked.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}

/// The contents of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body {
    /// A TCP segment.
    Tcp(Segment),
    /// A control message about a flow.
    Notice(Notice),
    /// A UDP datagram.
    Datagram(Datagram),
    /// A packet of a code across packets.
    Coded(Coded),
}

/// A packet of a block erasure code across packets. Only the encoder and the decoder know its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coded {
    /// The number of the block, from 0. Blocks are numbered for each mobile host and direction.
    pub block: u32,
    /// Its place in the block.
    pub symbol: Symbol,
}

/// What a packet of a code contributes to its block, in the words of RFC 6363.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A packet that is protected.
    Source {
        /// Its index among the source packets of the block.
        index: u8,
    },
    /// Redundancy.
    Repair {
        /// Its index among the repair packets of the block.
        index: u8,
        /// The number of source packets in the block.
        sources: u8,
    },
}

/// A UDP datagram of a traffic generator, with the fields that generators such as iperf write into the
/// payload. Packed, which makes room for the [handle](Packet::handle) in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, packed(4))]
pub struct Datagram {
    /// Sequence number at its source, from 0.
    pub seq: u64,
    /// When it was sent.
    pub sent: Time,
}

/// A control message about a flow: on the wire, an ICMP message that quotes the segment it refers to (RFC
/// 792).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Kind of the message.
    pub code: NoticeCode,
    /// First sequence number of the segment it refers to.
    pub seq: SeqNum,
}

/// ICMP type and code of a [`Notice`], which identify a scheme's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NoticeCode {
    /// ICMP type; 41 is for experimental mobility protocols (RFC 4065).
    pub kind: u8,
    /// ICMP code.
    pub code: u8,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The queue before a link was full.
    QueueFull,
    /// Dropped by the queue discipline to signal congestion.
    ActiveQueue,
    /// The packet, or a fragment of it, arrived with bit errors.
    Corrupted,
    /// The link gave up after its last permitted attempt.
    AttemptsExhausted,
    /// The mobile host is not at the base station of the link.
    Unreachable,
    /// Larger than what the link carries.
    TooLarge,
    /// Withheld by an agent at a base station, or by a queue that a newer acknowledgement has reached. No loss.
    Suppressed,
    /// Lost on a link, and the code across packets could not recover it.
    Unrecovered,
    /// Dropped by a test or a trace.
    Scripted,
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DropReason::QueueFull => "queue full",
            DropReason::ActiveQueue => "dropped by active queue management",
            DropReason::Corrupted => "corrupted on the air",
            DropReason::AttemptsExhausted => "link attempts exhausted",
            DropReason::Unreachable => "mobile host not there",
            DropReason::TooLarge => "larger than the link carries",
            DropReason::Suppressed => "suppressed by an agent or a queue",
            DropReason::Unrecovered => "lost on the link and not recovered",
            DropReason::Scripted => "scripted loss",
        })
    }
}

impl Notice {
    /// An IP header and an ICMP header (RFC 792).
    const LEAST: Bytes = Bytes(28);

    /// The fault of the size of a scheme's messages, its parameter `key`, if they would be less than their headers.
    pub fn fault(key: &str, size: Bytes) -> Option<(String, String)> {
        let least = Notice::LEAST;
        (size < least)
            .then(|| (key.into(), format!("found {size}, expected at least {least}: IP and ICMP headers")))
    }

    /// The message `code` about the data in `packet`, addressed to their source. `None` for packets without
    /// data: pure ACKs are not reported to their sender, and no notice is sent about a notice (RFC 1122
    /// section 3.2.2).
    pub fn about(packet: &Packet, code: NoticeCode, size: Bytes) -> Option<Packet> {
        let seq = packet.segment().filter(|segment| segment.len > 0)?.seq;
        let body = Body::Notice(Notice { code, seq });
        let (dscp, ecn) = (Dscp::DEFAULT, Ecn::NotEct);
        Some(Packet {
            src: packet.dst,
            dst: packet.src,
            flow: packet.flow,
            size,
            dscp,
            ecn,
            handle: Handle::NONE,
            body,
        })
    }
}

impl Packet {
    /// The TCP segment, if the packet contains one.
    pub fn segment(&self) -> Option<&Segment> {
        match &self.body {
            Body::Tcp(segment) => Some(segment),
            Body::Notice(_) | Body::Datagram(_) | Body::Coded(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_hosts_share_an_address() {
        let hosts = [0, 1, 65_535, 65_536, 131_071, 131_072, 1 << 21].map(HostId);
        let addresses: BTreeSet<_> =
            [0, 1, 64].into_iter().flat_map(|part| hosts.map(|host| host.address(part))).collect();
        assert_eq!(addresses.len(), 21);
        assert!(addresses.contains(&Ipv4Addr::new(10, 2, 0, 1)));
    }

    #[test]
    fn no_two_flows_share_both_ports() {
        let pairs: BTreeSet<_> = (0..1 << 20).map(|flow| FlowId(flow).ports()).collect();
        assert_eq!(pairs.len(), 1 << 20);
    }

    /// Packets are copied at every hop.
    #[test]
    fn a_packet_is_small() {
        assert_eq!(core::mem::size_of::<Packet>(), 96);
    }
}
