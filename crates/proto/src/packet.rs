//! Packets: flat values, copied freely; a payload is a length.

use core::fmt;

use lasthop_base::{Bytes, Time};

use crate::tcp::{Segment, SeqNum};

/// A host or router, by its place in the topology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u16);

/// A connection or other stream of packets, by its place in the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u16);

/// One packet of the network layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// Who sent it.
    pub src: HostId,
    /// Whom it is for.
    pub dst: HostId,
    /// The flow it belongs to.
    pub flow: FlowId,
    /// Its size as the network layer counts it: payload and all headers down to IP.
    pub size: Bytes,
    /// How it wants to be treated on its way.
    pub dscp: Dscp,
    /// What it tells and is told of congestion.
    pub ecn: Ecn,
    /// What it carries.
    pub body: Body,
}

/// How a packet wants to be treated: the differentiated services code point in its IP header
/// (RFC 2474), the six upper bits of what was the type of service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dscp(u8);

impl Dscp {
    /// Like any other packet.
    pub const DEFAULT: Dscp = Dscp(0);

    /// The code point `value`. Those that end in 11 are for experiments and local use (RFC 2474 section 6).
    ///
    /// # Panics
    /// If it is no number of six bits.
    pub const fn new(value: u8) -> Dscp {
        assert!(value < 64, "a code point has six bits");
        Dscp(value)
    }

    /// Its number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// The ECN field of a packet's IP header (RFC 3168 section 5): the two bits behind its code point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Its transport does not know ECN: congestion drops it.
    #[default]
    NotEct = 0b00,
    /// ECN-capable transport, code point ECT(1).
    Ect1 = 0b01,
    /// ECN-capable transport, code point ECT(0).
    Ect0 = 0b10,
    /// Congestion experienced: a queue has marked it.
    Ce = 0b11,
}

impl Ecn {
    /// Its two bits.
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Whether a queue may mark the packet in place of dropping it. One that is marked stays so.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body {
    /// A TCP segment.
    Tcp(Segment),
    /// A control message about a flow.
    Notice(Notice),
    /// A UDP datagram.
    Datagram(Datagram),
}

/// A UDP datagram of a generator, with what generators such as iperf write into its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its number among those of its source, from 0.
    pub seq: u64,
    /// When it was sent.
    pub sent: Time,
}

/// A control message about a flow, as it would travel on the wire: an ICMP message that quotes the
/// segment it is about (RFC 792).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Which message it is.
    pub code: NoticeCode,
    /// First sequence number of the segment it is about.
    pub seq: SeqNum,
}

/// The ICMP type and code of a [`Notice`]: a scheme's message is known by them and by nothing else.
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
    /// The discipline of the queue before a link dropped it to signal congestion.
    ActiveQueue,
    /// The packet, or a fragment of it, arrived with bit errors.
    Corrupted,
    /// The link gave up after its last permitted attempt.
    AttemptsExhausted,
    /// A test or a trace said so.
    Scripted,
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DropReason::QueueFull => "queue full",
            DropReason::ActiveQueue => "dropped by active queue management",
            DropReason::Corrupted => "corrupted on the air",
            DropReason::AttemptsExhausted => "link attempts exhausted",
            DropReason::Scripted => "scripted loss",
        })
    }
}

impl Notice {
    /// The message `code` about the data in `packet`, to their source; `None` if there are none in it.
    /// What acknowledges is not worth a word to the one who sent it, and a notice is never sent about a
    /// notice (RFC 1122 section 3.2.2).
    pub fn about(packet: &Packet, code: NoticeCode, size: Bytes) -> Option<Packet> {
        let seq = packet.segment().filter(|segment| segment.len > 0)?.seq;
        let body = Body::Notice(Notice { code, seq });
        let (dscp, ecn) = (Dscp::DEFAULT, Ecn::NotEct);
        Some(Packet { src: packet.dst, dst: packet.src, flow: packet.flow, size, dscp, ecn, body })
    }
}

impl Packet {
    /// The TCP segment inside, if there is one.
    pub fn segment(&self) -> Option<&Segment> {
        match &self.body {
            Body::Tcp(segment) => Some(segment),
            Body::Notice(_) | Body::Datagram(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet is copied at each hop: the ECN field stands where there was padding.
    #[test]
    fn a_packet_is_small() {
        assert_eq!(core::mem::size_of::<Packet>(), 88);
    }
}
