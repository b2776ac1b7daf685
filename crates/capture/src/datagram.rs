//! Encoding of simulated packets as IPv4 datagrams.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;

use lasthop_base::Bytes;
use lasthop_proto::tcp::{Flags, Segment, SeqNum};
use lasthop_proto::{Body, ComponentId, Dscp, Ecn, FlowId, Handle, HostId, Notice, NoticeCode, Packet};
use lasthop_sim::Contents;
use lasthop_wire::{Ip, TcpHeader, write};

const IPV4_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

/// The maximum length of what is captured of TCP: IPv4 without options, and TCP with all options.
pub(super) const SNAP_LEN: u32 = 80;

/// Length of the part of a datagram that an ICMP message quotes: its IP header and the first 64 bits of its
/// payload.
const QUOTE_LEN: usize = IPV4_HEADER + 8;

/// The largest window scale shift (RFC 7323 section 2.3).
const LARGEST_SHIFT: u8 = 14;

/// ICMP "host unreachable" (RFC 792).
const HOST_UNREACHABLE: NoticeCode = NoticeCode { kind: 3, code: 1 };

/// An IP datagram. Its payload was captured if the packet has one in the simulation.
pub(super) struct Datagram {
    /// The captured bytes.
    pub(super) bytes: Vec<u8>,
    /// Length of the whole datagram.
    pub(super) len: u32,
}

/// Encodes packets, with the state that headers depend on.
pub(super) struct Encoder {
    mss: u16,
    window_shift: u8,
    sack_permitted: bool,
    /// Offset added to the addresses of hosts.
    part: u8,
    flows: BTreeMap<FlowId, Flow>,
    identifications: BTreeMap<Ipv4Addr, u16>,
    /// The payloads of packets that have one.
    contents: Option<Contents>,
}

#[derive(Clone, Copy)]
struct Flow {
    /// The host that sent the first packet.
    client: HostId,
    server: HostId,
    /// Whether the capture contains the window scale option.
    scaled: bool,
}

impl Flow {
    fn begun_by(packet: &Packet) -> Flow {
        Flow { client: packet.src, server: packet.dst, scaled: false }
    }

    fn peer_of(&self, host: HostId) -> HostId {
        if host == self.client { self.server } else { self.client }
    }

    /// Source and destination ports of a packet.
    fn ports_of(&self, packet: &Packet) -> (u16, u16) {
        let (client, server) = packet.flow.ports();
        if packet.src == self.client { (client, server) } else { (server, client) }
    }
}

impl Encoder {
    /// An encoder for one part of a connection: part 0, or a later one if base stations split the connection.
    pub(super) fn new(
        mss: u16,
        largest_window: u32,
        sack_permitted: bool,
        part: u8,
        contents: Option<Contents>,
    ) -> Encoder {
        let fits = |shift: &u8| largest_window >> shift <= u32::from(u16::MAX);
        let window_shift = (0..LARGEST_SHIFT).find(fits).unwrap_or(LARGEST_SHIFT);
        let (flows, identifications) = (BTreeMap::new(), BTreeMap::new());
        Encoder { mss, window_shift, sack_permitted, part, flows, identifications, contents }
    }

    /// Records which host opened the packet's flow. Must be called for every packet, captured or not.
    pub(super) fn meet(&mut self, packet: &Packet) {
        if !matches!(packet.body, Body::Notice(_)) {
            self.flows.entry(packet.flow).or_insert_with(|| Flow::begun_by(packet));
        }
    }

    /// Encodes a packet that crosses the capture point.
    pub(super) fn crossing(&mut self, packet: &Packet) -> io::Result<Datagram> {
        let identification = self.next_identification(self.address(packet.src));
        let datagram = self.datagram(packet, identification);
        if packet.segment().is_some_and(|segment| segment.flags.has(Flags::SYN))
            && let Some(flow) = self.flows.get_mut(&packet.flow)
        {
            flow.scaled = true;
        }
        datagram
    }

    /// Encodes an ICMP message from the component that dropped a packet to its sender.
    pub(super) fn loss(&mut self, at: ComponentId, packet: &Packet) -> io::Result<Datagram> {
        let source = component_address(at);
        let ip = ip(source, self.address(packet.src), self.next_identification(source));
        icmp(&ip, HOST_UNREACHABLE, &self.quote(packet)?)
    }

    fn address(&self, host: HostId) -> Ipv4Addr {
        host.address(self.part)
    }

    fn next_identification(&mut self, source: Ipv4Addr) -> u16 {
        let next = self.identifications.entry(source).or_default();
        *next = next.wrapping_add(1);
        *next
    }

    fn datagram(&self, packet: &Packet, identification: u16) -> io::Result<Datagram> {
        let ip = Ip {
            dscp: packet.dscp,
            ecn: packet.ecn,
            ..ip(self.address(packet.src), self.address(packet.dst), identification)
        };
        match &packet.body {
            Body::Tcp(segment) => {
                let headers = write::tcp_headers(&ip, &self.tcp_header(packet, segment));
                Datagram::new(headers, segment.len as usize)
            }
            Body::Notice(notice) => icmp(&ip, notice.code, &self.quote(&self.subject(packet, notice))?),
            Body::Datagram(_) | Body::Coded(_) => {
                let ports = self.flow(packet).ports_of(packet);
                let mut whole = None;
                if let Some(contents) = &self.contents {
                    // No datagram of QUIC may be fragmented (RFC 9000 section 14).
                    let ip = Ip { dont_fragment: true, ..ip };
                    contents.read(packet.handle, |payload| whole = Some(write::udp(&ip, ports, payload)));
                }
                if let Some(whole) = whole {
                    return Datagram::new(whole, 0);
                }
                // A packet of some old simulators is shorter than its headers.
                let payload_len = (packet.size.0 as usize).saturating_sub(IPV4_HEADER + UDP_HEADER);
                Datagram::new(write::udp_headers(&ip, ports, payload_len), payload_len)
            }
        }
    }

    /// The quotation of a datagram in an ICMP message. Which copy of the segment it was is unknown, so the
    /// identification is 0.
    fn quote(&self, packet: &Packet) -> io::Result<Vec<u8>> {
        let mut quoted = self.datagram(packet, 0)?.bytes;
        quoted.truncate(QUOTE_LEN);
        Ok(quoted)
    }

    /// The segment that a notice refers to, as far as the notice identifies it: its destination and its
    /// sequence number.
    fn subject(&self, packet: &Packet, notice: &Notice) -> Packet {
        Packet {
            src: packet.dst,
            dst: self.flow(packet).peer_of(packet.dst),
            flow: packet.flow,
            size: Bytes::ZERO,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            handle: Handle::NONE,
            body: Body::Tcp(Segment { seq: notice.seq, ..Segment::default() }),
        }
    }

    fn flow(&self, packet: &Packet) -> Flow {
        self.flows.get(&packet.flow).copied().unwrap_or_else(|| Flow::begun_by(packet))
    }

    fn tcp_header(&self, packet: &Packet, segment: &Segment) -> TcpHeader {
        let flow = self.flow(packet);
        let (src_port, dst_port) = flow.ports_of(packet);
        let (ack, wnd) = (
            if segment.flags.has(Flags::ACK) { segment.ack } else { SeqNum(0) },
            self.window_field(flow, segment).into(),
        );
        TcpHeader {
            src_port,
            dst_port,
            segment: Segment { ack, wnd, ..*segment },
            urgent_pointer: 0,
            mss: Some(self.mss),
            window_scale: Some(self.window_shift),
            sack_permitted: self.sack_permitted,
        }
    }

    /// The window of a SYN is never scaled (RFC 7323 section 2.2). In a segment without ACK the window is
    /// meaningless, but 0 would be displayed as a closed window.
    fn window_field(&self, flow: Flow, segment: &Segment) -> u16 {
        let syn = segment.flags.has(Flags::SYN);
        if !syn && !segment.flags.has(Flags::ACK) {
            return u16::MAX;
        }
        let shift = if flow.scaled && !syn { self.window_shift } else { 0 };
        u16::try_from(segment.wnd >> shift).unwrap_or(u16::MAX)
    }
}

impl Datagram {
    /// A datagram with `omitted` bytes of payload after its headers.
    fn new(headers: Result<Vec<u8>, lasthop_wire::Error>, omitted: usize) -> io::Result<Datagram> {
        let bytes = headers.map_err(io::Error::other)?;
        let len = (bytes.len() + omitted) as u32;
        Ok(Datagram { bytes, len })
    }
}

fn icmp(ip: &Ip, code: NoticeCode, quote: &[u8]) -> io::Result<Datagram> {
    Datagram::new(write::icmp(ip, code, 0, quote), 0)
}

/// A datagram may be fragmented unless it is of QUIC, so the identification counts up.
fn ip(src: Ipv4Addr, dst: Ipv4Addr, identification: u16) -> Ip {
    Ip {
        src: src.into(),
        dst: dst.into(),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        hop_limit: 64,
        identification,
        dont_fragment: false,
    }
}

fn component_address(component: ComponentId) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 128, 0, 0).to_bits() + component.0)
}
