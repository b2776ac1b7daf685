//! Packets of a run as IPv4 datagrams.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;

use etherparse::{
    Icmpv4Type, IpEcn, IpHeaders, IpNumber, Ipv4Header, PacketBuilder, PacketBuilderStep, TcpHeader,
    TcpOptionElement, UdpHeader, icmpv4::DestUnreachableHeader,
};
use lasthop_base::Bytes;
use lasthop_proto::tcp::{Flags, SackBlock, Segment};
use lasthop_proto::{Body, ComponentId, Dscp, Ecn, FlowId, HostId, Notice, Packet};

/// The longest headers that there are.
pub(super) const SNAP_LEN: u32 = (Ipv4Header::MIN_LEN + TcpHeader::MAX_LEN) as u32;

/// What an ICMP message quotes of a datagram: its IP header and the first 64 bits of its data.
const QUOTE_LEN: usize = Ipv4Header::MIN_LEN + 8;

/// The largest shift of a window (RFC 7323 section 2.3).
const LARGEST_SHIFT: u8 = 14;

/// Control bits of TCP that etherparse leaves out: those that no standard has used so far (RFC 9293 section 3.1).
const RESERVED: u16 = 0xe00;

/// An IP datagram whose payload, that of TCP or UDP, was not captured.
pub(super) struct Datagram {
    /// All that was captured.
    pub(super) headers: Vec<u8>,
    /// How long the datagram was.
    pub(super) len: u32,
}

/// Encodes packets, and remembers of the packets before what their headers depend on.
pub(super) struct Encoder {
    mss: u16,
    window_shift: u8,
    sack_permitted: bool,
    /// Added to the addresses of hosts.
    part: u8,
    flows: BTreeMap<FlowId, Flow>,
    identifications: BTreeMap<Ipv4Addr, u16>,
}

#[derive(Clone, Copy)]
struct Flow {
    /// The host that sent first.
    client: HostId,
    server: HostId,
    /// Whether readers of the file know the window scale.
    scaled: bool,
}

impl Flow {
    fn begun_by(packet: &Packet) -> Flow {
        Flow { client: packet.src, server: packet.dst, scaled: false }
    }

    fn peer_of(&self, host: HostId) -> HostId {
        if host == self.client { self.server } else { self.client }
    }

    /// The ports that one of its packets leaves from and goes to.
    fn ports_of(&self, packet: &Packet) -> (u16, u16) {
        let (client, server) = ports(packet.flow);
        if packet.src == self.client { (client, server) } else { (server, client) }
    }
}

impl Encoder {
    /// An encoder of one part of a connection: part 0, or another one if base stations split it.
    pub(super) fn new(mss: u16, largest_window: u32, sack_permitted: bool, part: u8) -> Encoder {
        let fits = |shift: &u8| largest_window >> shift <= u32::from(u16::MAX);
        let window_shift = (0..LARGEST_SHIFT).find(fits).unwrap_or(LARGEST_SHIFT);
        let (flows, identifications) = (BTreeMap::new(), BTreeMap::new());
        Encoder { mss, window_shift, sack_permitted, part, flows, identifications }
    }

    /// Learns who began the packet's flow; to be told of every packet, captured or not.
    pub(super) fn meet(&mut self, packet: &Packet) {
        if !matches!(packet.body, Body::Notice(_)) {
            self.flows.entry(packet.flow).or_insert_with(|| Flow::begun_by(packet));
        }
    }

    /// A packet that is captured as it passes.
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

    /// What the component that lost a packet says about it to the one who sent it.
    pub(super) fn loss(&mut self, at: ComponentId, packet: &Packet) -> io::Result<Datagram> {
        let source = component_address(at);
        let ip = ip_header(source, self.address(packet.src), self.next_identification(source));
        let unreachable = Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Host);
        icmp(PacketBuilder::ip(with_no_extensions(ip)).icmpv4(unreachable), &self.quote(packet)?)
    }

    /// A host's address in this part. Parts have prefixes of 15 bits, which hold all hosts.
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
        ip.ecn = IpEcn::try_new(packet.ecn.bits()).expect("it has two bits");
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
            Body::Datagram(_) => udp(ip, self.flow(packet).ports_of(packet), packet.size),
        }
    }

    /// What an ICMP message says of the datagram that it is about. Which of the copies of a segment
    /// it was is not known, so that its identification is 0.
    fn quote(&self, packet: &Packet) -> io::Result<Vec<u8>> {
        let mut quoted = self.datagram(packet, 0)?.headers;
        quoted.truncate(QUOTE_LEN);
        Ok(quoted)
    }

    /// The segment that a notice is about, as far as its receiver, who sent it, is told: where it
    /// went and where it began.
    fn subject(&self, packet: &Packet, notice: &Notice) -> Packet {
        Packet {
            src: packet.dst,
            dst: self.flow(packet).peer_of(packet.dst),
            flow: packet.flow,
            size: Bytes::ZERO,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            body: Body::Tcp(Segment { seq: notice.seq, ..Segment::default() }),
        }
    }

    fn flow(&self, packet: &Packet) -> Flow {
        self.flows.get(&packet.flow).copied().unwrap_or_else(|| Flow::begun_by(packet))
    }

    fn tcp_header(&self, packet: &Packet, segment: &Segment) -> io::Result<TcpHeader> {
        let flow = self.flow(packet);
        let (source_port, destination_port) = flow.ports_of(packet);
        // Those that no component sets today too: a file must not hide what a later one does.
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

    /// The window of a SYN is never scaled (RFC 7323 section 2.2). Where nothing is acknowledged, a
    /// window has no beginning and means nothing, but readers would take 0 for a closed one.
    fn window_field(&self, flow: Flow, segment: &Segment) -> u16 {
        let syn = segment.flags.has(Flags::SYN);
        if !syn && !segment.flags.has(Flags::ACK) {
            return u16::MAX;
        }
        let shift = if flow.scaled && !syn { self.window_shift } else { 0 };
        u16::try_from(segment.wnd >> shift).unwrap_or(u16::MAX)
    }

    /// The segment's options, each on a boundary of 32 bits as RFC 7323 appendix A recommends.
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
        // Beside the timestamps there is no room for a fourth block.
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

/// A segment with this header, into which the reserved ones among its control bits are written.
fn tcp(mut ip: Ipv4Header, mut header: TcpHeader, flags: Flags, payload_len: u32) -> io::Result<Datagram> {
    ip.protocol = IpNumber::TCP;
    ip.set_payload_len(header.header_len() + payload_len as usize).map_err(io::Error::other)?;
    let without_payload = header.calc_checksum_ipv4(&ip, &[]).map_err(io::Error::other)?;
    let reserved = flags.0 & RESERVED;
    header.checksum = with_sum(without_payload, payload_len + u32::from(reserved));
    let mut headers = Vec::with_capacity(SNAP_LEN as usize);
    // With the header's checksum.
    ip.write(&mut headers)?;
    header.write(&mut headers)?;
    // They follow the header's length, in the upper half of the word that ends with the lower control bits.
    headers[Ipv4Header::MIN_LEN + 12] |= (reserved >> 8) as u8;
    let len = headers.len() as u32 + payload_len;
    Ok(Datagram { headers, len })
}

/// A datagram of this size in all, or as long as its headers if that is longer. Its payload counts as
/// zeros, of which only the length is in the checksum; that is in the header.
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

/// The checksum of a segment to whose words `sum` is added, from that of the same segment without (RFC 1071). Of
/// a payload of zeros only the length counts; to add the zeros up would be most of the work.
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

/// Fragments may be made of any datagram; that is why the identification counts.
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

/// The ports of the host that begins a flow, from the dynamic ones, and of the other, from those
/// below. The sizes of the two ranges have no common divisor, so that no two flows share both ports.
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
