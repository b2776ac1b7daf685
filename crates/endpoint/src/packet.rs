//! The packets that an endpoint takes and gives.

use std::collections::VecDeque;
use std::net::SocketAddr;

use lasthop_proto::tcp::{Flags, Segment, SeqNum};
use lasthop_proto::{Dscp, Ecn};
use lasthop_wire::{Error, Ip, IpPacket, TcpHeader, write};

/// A TCP segment as it arrives. Its checksum is verified.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// Address and port of this host.
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub remote: SocketAddr,
    /// ECN field.
    pub ecn: Ecn,
    /// The header as it is on the wire: windows are not shifted. The length of the payload counts, not that in the
    /// segment.
    pub header: TcpHeader,
    /// The payload.
    pub payload: &'a [u8],
}

/// A TCP segment to send, with a window that is shifted as on the wire.
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
    /// The segment in a packet; `None` if there is none, or only a part of one. Checksums are the caller's part.
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

    /// The segment with its length.
    pub(crate) fn segment(&self) -> Segment {
        Segment { len: self.payload.len() as u32, ..self.header.segment }
    }
}

/// The packet as its destination sees it.
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
    /// The packet as bytes, not to be fragmented (RFC 1191).
    ///
    /// # Errors
    /// If it is longer than a packet can be, or its addresses are of different versions.
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

/// The answer to a segment that is for no connection (RFC 9293 section 3.10.7.1); `None` for one with RST.
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
pub(crate) struct Outlet {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    packets: VecDeque<Outgoing>,
}

impl Outlet {
    pub(crate) fn new(local: SocketAddr, remote: SocketAddr) -> Outlet {
        Outlet { local, remote, packets: VecDeque::new() }
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
