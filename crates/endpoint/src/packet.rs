//! The incoming and outgoing packets of an endpoint.

use std::collections::VecDeque;
use std::net::SocketAddr;

use lasthop_proto::tcp::{Flags, Segment, SeqNum};
use lasthop_proto::{Dscp, Ecn};
use lasthop_wire::{Error, Ip, IpPacket, TcpHeader, write};

/// An arriving TCP segment with a verified checksum.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// Address and port of this host.
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub remote: SocketAddr,
    /// ECN field.
    pub ecn: Ecn,
    /// The header as on the wire: the window is not scaled. `header.segment.len` is ignored in favour of the
    /// payload length.
    pub header: TcpHeader,
    /// The payload.
    pub payload: &'a [u8],
}

/// A TCP segment to send. The window is scaled as on the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    /// Address and port of this host.
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub remote: SocketAddr,
    /// ECN field.
    pub ecn: Ecn,
    /// The header.
    pub header: TcpHeader,
    /// The payload.
    pub payload: Vec<u8>,
}

impl<'a> Incoming<'a> {
    /// The segment in a packet; `None` without a complete TCP segment. The caller must verify checksums.
    pub fn of(packet: &IpPacket<'a>) -> Option<Incoming<'a>> {
        let tcp = packet.tcp().filter(|_| packet.fragment.is_none() && !packet.is_cut())?;
        Some(Incoming {
            local: (packet.ip.dst, tcp.header.dst_port).into(),
            remote: (packet.ip.src, tcp.header.src_port).into(),
            ecn: packet.ip.ecn,
            header: tcp.header,
            payload: tcp.payload,
        })
    }

    /// The segment, with its payload length.
    pub(crate) fn segment(&self) -> Segment {
        Segment { len: self.payload.len() as u32, ..self.header.segment }
    }
}

/// The packet as received by its destination.
impl<'a> From<&'a Outgoing> for Incoming<'a> {
    fn from(packet: &'a Outgoing) -> Incoming<'a> {
        Incoming {
            local: packet.remote,
            remote: packet.local,
            ecn: packet.ecn,
            header: packet.header,
            payload: &packet.payload,
        }
    }
}

impl Outgoing {
    /// Serialises the packet, with the Don't Fragment bit in IPv4 (RFC 1191).
    ///
    /// # Errors
    /// If it exceeds the maximum packet length, or its addresses are of different IP versions.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let ip = Ip {
            src: self.local.ip(),
            dst: self.remote.ip(),
            dscp: Dscp::DEFAULT,
            ecn: self.ecn,
            hop_limit: 64,
            identification: 0,
            dont_fragment: true,
        };
        write::tcp(&ip, &self.header, &self.payload)
    }
}

/// The RST in response to a segment without a connection (RFC 9293 section 3.10.7.1); `None` if the segment
/// is an RST.
pub fn refuse(packet: &Incoming<'_>) -> Option<Outgoing> {
    let segment = packet.segment();
    if segment.flags.has(Flags::RST) {
        return None;
    }
    let (seq, ack, flags) = if segment.flags.has(Flags::ACK) {
        (segment.ack, SeqNum(0), Flags::RST)
    } else {
        (SeqNum(0), segment.seq + segment.seq_len(), Flags::RST | Flags::ACK)
    };
    let header =
        TcpHeader { segment: Segment { seq, ack, flags, ..Segment::default() }, ..TcpHeader::default() };
    Some(addressed(packet.local, packet.remote, header, Ecn::NotEct, Vec::new()))
}

fn addressed(
    local: SocketAddr,
    remote: SocketAddr,
    header: TcpHeader,
    ecn: Ecn,
    payload: Vec<u8>,
) -> Outgoing {
    let segment = Segment { len: payload.len() as u32, ..header.segment };
    let header = TcpHeader { src_port: local.port(), dst_port: remote.port(), segment, ..header };
    Outgoing { local, remote, ecn, header, payload }
}

/// Packets to send between two addresses.
#[derive(Debug)]
pub(crate) struct OutgoingQueue {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    packets: VecDeque<Outgoing>,
}

impl OutgoingQueue {
    pub(crate) fn new(local: SocketAddr, remote: SocketAddr) -> OutgoingQueue {
        OutgoingQueue { local, remote, packets: VecDeque::new() }
    }

    pub(crate) fn put(&mut self, header: TcpHeader, ecn: Ecn, payload: Vec<u8>) {
        self.packets.push_back(addressed(self.local, self.remote, header, ecn, payload));
    }

    /// Sends a segment without payload and without options beyond those of the segment.
    pub(crate) fn put_bare(&mut self, segment: Segment) {
        self.put(TcpHeader { segment, ..TcpHeader::default() }, Ecn::NotEct, Vec::new());
    }

    /// Refuses a segment with RST.
    pub(crate) fn refuse(&mut self, packet: &Incoming<'_>) {
        self.packets.extend(refuse(packet));
    }

    pub(crate) fn take(&mut self) -> Option<Outgoing> {
        self.packets.pop_front()
    }
}
