//! Encoding of simulated packets as IPv4 datagrams.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;

use etherparse::{
    Icmpv4Type, IpEcn, IpHeaders, IpNumber, Ipv4Header, PacketBuilder, PacketBuilderStep, TcpHeader,
    TcpOptionElement, UdpHeader, icmpv4::DestUnreachableHeader,
};
use lasthop_base::Bytes;
use lasthop_proto::tcp::{Flags, SackBlock, Segment};
use lasthop_proto::{Body, ComponentId, Dscp, Ecn, FlowId, Handle, HostId, Notice, Packet};

/// The maximum length of all headers.
pub(super) const SNAP_LEN: u32 = (Ipv4Header::MIN_LEN + TcpHeader::MAX_LEN) as u32;

/// Length of the part of a datagram that an ICMP message quotes: its IP header and the first 64 bits of its
/// payload.
const QUOTE_LEN: usize = Ipv4Header::MIN_LEN + 8;

/// The largest window scale shift (RFC 7323 section 2.3).
const LARGEST_SHIFT: u8 = 14;

/// TCP control bits that etherparse omits: those without an assigned meaning (RFC 9293 section 3.1).
const RESERVED: u16 = 0xe00;

/// An IP datagram whose TCP or UDP payload was not captured.
pub(super) struct Datagram {
    /// The captured bytes.
    pub(super) headers: Vec<u8>,
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
        let (client, server) = ports(packet.flow);
        if packet.src == self.client { (client, server) } else { (server, client) }
    }
}

impl Encoder {
    /// An encoder for one part of a connection: part 0, or a later one if base stations split the connection.
    pub(super) fn new(mss: u16, largest_window: u32, sack_permitted: bool, part: u8) -> Encoder {
        let fits = |shift: &u8| largest_window >> shift <= u32::from(u16::MAX);
        let window_shift = (0..LARGEST_SHIFT).find(fits).unwrap_or(LARGEST_SHIFT);
        let (flows, identifications) = (BTreeMap::new(), BTreeMap::new());
        Encoder { mss, window_shift, sack_permitted, part, flows, identifications }
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
        let ip = ip_header(source, self.address(packet.src), self.next_identification(source));
        let unreachable = Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Host);
        icmp(PacketBuilder::ip(with_no_extensions(ip)).icmpv4(unreachable), &self.quote(packet)?)
    }

    /// The address of a host in this part. Each part has a prefix of 15 bits, which leaves room for all
    /// hosts.
    fn address(&self, host: HostId) -> Ipv4Addr {
        Ipv4Addr::from_bits(Ipv4Addr::new(10, 2 * self.part, 0, 1).to_bits() + u32::from(host.0))
    }

    fn next_identification(&mut self, source: Ipv4Addr) -> u16 {
        let next = self.identifications.entry(source).or_default();
        *next = next.wrapping_add(1);
        *next
    }

    fn datagram(&self, packet: &Packet, identification: u16) -> io::Result<Datagram> {
        let mut ip = ip_header(self.address(packet.src), self.address(packet.dst), identification);
        ip.dscp = packet.dscp.get().try_into().expect("a code point has six bits");
        ip.ecn = IpEcn::try_new(packet.ecn.bits()).expect("the ECN field has two bits");
        match &packet.body {
            Body::Tcp(segment) => tcp(ip, self.tcp_header(packet, segment)?, segment.flags, segment.len),
            Body::Notice(notice) => {
                let message = PacketBuilder::ip(with_no_extensions(ip)).icmpv4_raw(
                    notice.code.kind,
                    notice.code.code,
                    [0; 4],
                );
                icmp(message, &self.quote(&self.subject(packet, notice))?)
            }
            Body::Datagram(_) | Body::Coded(_) => udp(ip, self.flow(packet).ports_of(packet), packet.size),
        }
    }

    /// The quotation of a datagram in an ICMP message. Which copy of the segment it was is unknown, so the
    /// identification is 0.
    fn quote(&self, packet: &Packet) -> io::Result<Vec<u8>> {
        let mut quoted = self.datagram(packet, 0)?.headers;
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

    fn tcp_header(&self, packet: &Packet, segment: &Segment) -> io::Result<TcpHeader> {
        let flow = self.flow(packet);
        let (source_port, destination_port) = flow.ports_of(packet);
        // Control bits that no component sets yet are copied too.
        let has = |bit| segment.flags.has(Flags(bit));
        let mut header = TcpHeader {
            source_port,
            destination_port,
            sequence_number: segment.seq.0,
            acknowledgment_number: if has(0x10) { segment.ack.0 } else { 0 },
            fin: has(0x01),
            syn: has(0x02),
            rst: has(0x04),
            psh: has(0x08),
            ack: has(0x10),
            urg: has(0x20),
            ece: has(0x40),
            cwr: has(0x80),
            ns: has(0x100),
            window_size: self.window_field(flow, segment),
            ..TcpHeader::default()
        };
        header.set_options(&self.options(segment)).map_err(io::Error::other)?;
        Ok(header)
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

    /// The TCP options, each aligned to 32 bits as RFC 7323 appendix A recommends.
    fn options(&self, segment: &Segment) -> Vec<TcpOptionElement> {
        use TcpOptionElement::{
            MaximumSegmentSize, Noop, SelectiveAcknowledgementPermitted, Timestamp, WindowScale,
        };
        let mut options = Vec::new();
        if segment.flags.has(Flags::SYN) {
            options.extend([MaximumSegmentSize(self.mss), Noop, WindowScale(self.window_shift)]);
            if self.sack_permitted {
                options.extend([Noop, Noop, SelectiveAcknowledgementPermitted]);
            }
        }
        if let Some(timestamps) = segment.timestamps {
            options.extend([Noop, Noop, Timestamp(timestamps.value, timestamps.echo)]);
        }
        // With timestamps there is no room for a fourth block.
        let room = if segment.timestamps.is_some() { 3 } else { 4 };
        if let Some(sack) = sack_option(&segment.sack, room) {
            options.extend([Noop, Noop, sack]);
        }
        options
    }
}

fn sack_option(blocks: &[SackBlock], room: usize) -> Option<TcpOptionElement> {
    let mut edges = blocks.iter().take(room).map(|block| (block.start.0, block.end.0));
    let first = edges.next()?;
    let others = [edges.next(), edges.next(), edges.next()];
    Some(TcpOptionElement::SelectiveAcknowledgement(first, others))
}

/// A TCP segment with this header. Reserved control bits are written into the encoded header.
fn tcp(mut ip: Ipv4Header, mut header: TcpHeader, flags: Flags, payload_len: u32) -> io::Result<Datagram> {
    ip.protocol = IpNumber::TCP;
    ip.set_payload_len(header.header_len() + payload_len as usize).map_err(io::Error::other)?;
    let without_payload = header.calc_checksum_ipv4(&ip, &[]).map_err(io::Error::other)?;
    let reserved = flags.0 & RESERVED;
    header.checksum = with_sum(without_payload, payload_len + u32::from(reserved));
    let mut headers = Vec::with_capacity(SNAP_LEN as usize);
    // Includes the header checksum.
    ip.write(&mut headers)?;
    header.write(&mut headers)?;
    // The reserved bits follow the data offset, in the upper half of the word that ends with the control
    // bits.
    headers[Ipv4Header::MIN_LEN + 12] |= (reserved >> 8) as u8;
    let len = headers.len() as u32 + payload_len;
    Ok(Datagram { headers, len })
}

/// A UDP datagram of `size` in total, or of the header length if that is larger. The payload counts as zeros,
/// so only its length affects the checksum in the header.
fn udp(mut ip: Ipv4Header, (source_port, destination_port): (u16, u16), size: Bytes) -> io::Result<Datagram> {
    let len = (size.0 as usize).max(Ipv4Header::MIN_LEN + UdpHeader::LEN);
    ip.protocol = IpNumber::UDP;
    ip.set_payload_len(len - Ipv4Header::MIN_LEN).map_err(io::Error::other)?;
    let length = (len - Ipv4Header::MIN_LEN) as u16;
    let mut header = UdpHeader { source_port, destination_port, length, checksum: 0 };
    header.checksum = header.calc_checksum_ipv4(&ip, &[]).map_err(io::Error::other)?;
    let mut headers = Vec::with_capacity(Ipv4Header::MIN_LEN + UdpHeader::LEN);
    ip.write(&mut headers)?;
    header.write(&mut headers)?;
    Ok(Datagram { headers, len: len as u32 })
}

/// Updates the checksum of a segment for the addition of `sum` to its words (RFC 1071). A payload of zeros
/// changes only the length, so it need not be summed up.
fn with_sum(checksum: u16, sum: u32) -> u16 {
    let sum = u32::from(!checksum) + sum;
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

fn icmp(message: PacketBuilderStep<etherparse::Icmpv4Header>, quote: &[u8]) -> io::Result<Datagram> {
    let mut headers = Vec::with_capacity(message.size(quote.len()));
    message.write(&mut headers, quote).map_err(io::Error::other)?;
    let len = headers.len() as u32;
    Ok(Datagram { headers, len })
}

fn with_no_extensions(header: Ipv4Header) -> IpHeaders {
    IpHeaders::Ipv4(header, Default::default())
}

/// Any datagram may be fragmented, so the identification counts up.
fn ip_header(source: Ipv4Addr, destination: Ipv4Addr, identification: u16) -> Ipv4Header {
    Ipv4Header {
        identification,
        dont_fragment: false,
        time_to_live: 64,
        source: source.octets(),
        destination: destination.octets(),
        ..Ipv4Header::default()
    }
}

fn component_address(component: ComponentId) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 128, 0, 0).to_bits() + u32::from(component.0))
}

/// Ports of the host that opens a flow, from the dynamic range, and of its peer, from the range below. The
/// sizes of the two ranges are coprime, so no two flows share both ports.
fn ports(flow: FlowId) -> (u16, u16) {
    const DYNAMIC: u16 = 49_152;
    const SERVICE: u16 = 5_001;
    (DYNAMIC + flow.0 % (u16::MAX - DYNAMIC + 1), SERVICE + flow.0 % (DYNAMIC - SERVICE))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_flows_share_both_ports() {
        let pairs: HashSet<_> = (0..=u16::MAX).map(|flow| ports(FlowId(flow))).collect();
        assert_eq!(pairs.len(), 1 << 16);
    }
}
