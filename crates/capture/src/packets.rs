//! TCP and UDP packets of a capture as columns.

use std::collections::BTreeMap;
use std::net::IpAddr;

use lasthop_wire::{Error, Framed, IpPacket, LinkType, Rtp, Transport};

use crate::file::{self, Frame, ReadError};
use crate::left_out::LeftOut;

/// Largest length that is read of a frame whose packet does not have one itself, with segmentation offload.
const MAX_LEN: usize = 1 << 18;

/// Protocol numbers of [`Packets::protocol`].
const TCP: u8 = 6;
const UDP: u8 = 17;

/// The TCP and UDP packets of a capture, in the order of the file. Columns have a row for each packet, except those of SACK
/// blocks.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Packets {
    /// Capture time since 1970.
    pub time_ns: Vec<i64>,
    /// A number for the capture point: the interface of the file, and that of the host where the link's header has it.
    pub interface: Vec<i64>,
    /// 6 for TCP, 17 for UDP.
    pub protocol: Vec<u8>,
    /// A hash of the source address and port.
    pub source: Vec<u64>,
    /// The same for the destination.
    pub target: Vec<u64>,
    /// A hash of the source address alone.
    pub host: Vec<u64>,
    /// Source port.
    pub source_port: Vec<u16>,
    /// Destination port.
    pub target_port: Vec<u16>,
    /// Bytes of the IP packet.
    pub size: Vec<i64>,
    /// Bytes of the TCP or UDP payload.
    pub payload: Vec<i64>,
    /// IPv4 identification; -1 for IPv6.
    pub identification: Vec<i64>,
    /// Sequence number; 0 for UDP.
    pub seq: Vec<i64>,
    /// Acknowledgement number; 0 for UDP.
    pub ack: Vec<i64>,
    /// The 12 control bits of TCP; 0 for UDP.
    pub flags: Vec<u16>,
    /// The window field of TCP, not scaled; 0 for UDP.
    pub window: Vec<u16>,
    /// Maximum segment size announced in a SYN, or 0.
    pub mss: Vec<u16>,
    /// Whether a SYN permits SACK.
    pub sack_permitted: Vec<bool>,
    /// TSval of the timestamps option, or -1.
    pub timestamp: Vec<i64>,
    /// TSecr of the timestamps option, or -1.
    pub echo: Vec<i64>,
    /// Number of SACK blocks.
    pub sacks: Vec<i64>,
    /// Row of the first block in `sack_start` and `sack_end`.
    pub sack_at: Vec<i64>,
    /// Version field of an RTP header at the beginning of a UDP payload; -1 if the stored payload is shorter.
    pub rtp_version: Vec<i8>,
    /// Payload type in it.
    pub rtp_type: Vec<u8>,
    /// Sequence number in it.
    pub rtp_seq: Vec<u16>,
    /// Synchronisation source in it.
    pub rtp_source: Vec<u32>,
    /// First sequence number of each SACK block.
    pub sack_start: Vec<i64>,
    /// End of each SACK block.
    pub sack_end: Vec<i64>,
    /// Fragments of IP packets, which are left out.
    pub fragments: usize,
    /// The tunnel of the latest packet that is in one.
    pub tunnel: Option<&'static str>,
    /// Frames that begin with an IP header although the file states Ethernet.
    pub bare: usize,
    /// TCP packets from frames that a monitor heard of a Wi-Fi channel.
    pub overheard: usize,
    /// TCP packets whose options the capture cut off.
    pub without_options: usize,
    /// The most bytes stored of a frame whose headers the capture cut off; 0 if it cut none.
    pub kept: usize,
    /// The protocol that encrypts the contents of most UDP packets.
    pub encrypted: Option<&'static str>,
    /// Packets dropped by the capturing host, according to the file's statistics.
    pub dropped: u64,
    /// Frames without a timestamp, which are left out.
    pub untimed: usize,
    /// Whether the file is cut off, or has inconsistent records, which are left out.
    pub damaged: bool,
    /// Whether the file has more than [`MAX_PACKETS`](crate::MAX_PACKETS) frames; those beyond are left out.
    pub full: bool,
    /// The number of frames without a TCP or UDP header, by what they have.
    others: BTreeMap<LeftOut, usize>,
    /// The number of UDP packets by the protocol that encrypts their contents.
    ciphers: BTreeMap<&'static str, usize>,
}

impl Packets {
    /// Reads a pcap or pcapng file, up to the first damaged record. Frames without a TCP or UDP header are left out.
    ///
    /// # Errors
    /// If there are no TCP or UDP packets.
    pub fn read(file: &[u8]) -> Result<Packets, ReadError> {
        let mut packets = Packets::default();
        let contents = file::read(file, |frame| packets.frame(&frame))?;
        if contents.frames == 0 {
            return Err(if contents.untimed > 0 { ReadError::Untimed } else { ReadError::NoFrames });
        }
        if contents.link_types.iter().all(|&number| LinkType::from_pcap(number).is_none()) {
            let number = contents.link_types.into_iter().min().unwrap_or_default();
            return Err(ReadError::LinkType { number });
        }
        if packets.time_ns.is_empty() {
            return Err(ReadError::NoTransport {
                left_out: packets.left_out().map(|(left_out, _)| left_out),
            });
        }
        let udp = packets.protocol.iter().filter(|&&protocol| protocol == UDP).count();
        let most = packets.ciphers.iter().find(|&(_, &count)| count > udp / 2);
        let encrypted = most.map(|(&cipher, _)| cipher);
        let file::Contents { dropped, untimed, damaged, full, .. } = contents;
        Ok(Packets { dropped, untimed, damaged, full, encrypted, ..packets })
    }

    /// The most frequent reason why frames are left out, and their number. Frames that manage a link or a host are left
    /// out by nature, and count only if there are no others.
    pub fn left_out(&self) -> Option<(LeftOut, usize)> {
        let most = self.others.iter().max_by_key(|&(left_out, count)| (!left_out.is_by_nature(), *count));
        most.map(|(&left_out, &count)| (left_out, count))
    }

    /// Adds the packets of a frame.
    fn frame(&mut self, frame: &Frame<'_>) {
        let Some(link_type) = frame.link_type else { return };
        let mut next = Some(link_type.captured(frame.bytes));
        // Each aggregated packet has a header, so this ends.
        while let Some(framed) = next {
            match framed.and_then(|framed| Ok((framed, packet_of(frame, &framed)?))) {
                Ok((framed, packet)) => self.contents(frame, &framed, packet),
                Err(error) => {
                    let is_cut = frame.bytes.len() < frame.original_len as usize;
                    return self.leave_out(frame, LeftOut::of(error, is_cut));
                }
            }
            next = framed.ok().and_then(|framed| LinkType::following(&framed));
        }
    }

    fn leave_out(&mut self, frame: &Frame<'_>, left_out: LeftOut) {
        if left_out == LeftOut::Cut {
            self.kept = self.kept.max(frame.bytes.len());
        }
        *self.others.entry(left_out).or_default() += 1;
    }

    /// Adds an IP packet, or that of the innermost tunnel in it.
    fn contents<'a>(&mut self, frame: &Frame<'a>, framed: &Framed<'a>, mut packet: IpPacket<'a>) {
        self.bare += usize::from(framed.is_bare);
        // Each tunnel has a header, so this ends.
        while let Some(inner) = packet.tunnelled() {
            let Ok(parsed) = IpPacket::parse_captured(inner.bytes, packet.len.saturating_sub(inner.headers))
            else {
                // The header of what is in the tunnel is missing; otherwise this is no tunnel.
                if packet.is_cut() {
                    return self.leave_out(frame, LeftOut::Cut);
                }
                break;
            };
            packet = parsed;
            self.tunnel = Some(inner.tunnel);
        }
        if packet.fragment.is_some() {
            self.fragments += 1;
            return self.leave_out(frame, LeftOut::Fragment);
        }
        match &packet.transport {
            Transport::Tcp(tcp) => {
                let header = &tcp.header;
                let segment = &header.segment;
                let ports = (header.src_port, header.dst_port);
                self.packet(frame, framed.interface, &packet, TCP, ports, segment.len);
                self.overheard += usize::from(frame.link_type.is_some_and(LinkType::is_monitor));
                let needed = packet.header_len + tcp.header_len;
                if packet.bytes.len() < needed {
                    self.without_options += 1;
                    self.kept = self.kept.max(frame.bytes.len());
                }
                self.seq.push(segment.seq.0.into());
                self.ack.push(segment.ack.0.into());
                self.flags.push(segment.flags.0);
                self.window.push(segment.wnd as u16);
                self.mss.push(header.mss.unwrap_or_default());
                self.sack_permitted.push(header.sack_permitted);
                self.timestamp.push(segment.timestamps.map_or(-1, |stamps| stamps.value.into()));
                self.echo.push(segment.timestamps.map_or(-1, |stamps| stamps.echo.into()));
                self.sacks.push(segment.sack.len() as i64);
                self.sack_start.extend(segment.sack.iter().map(|block| i64::from(block.start.0)));
                self.sack_end.extend(segment.sack.iter().map(|block| i64::from(block.end.0)));
                self.media(None);
            }
            Transport::Udp(udp) => {
                let ports = (udp.src_port, udp.dst_port);
                self.packet(frame, framed.interface, &packet, UDP, ports, udp.payload_len);
                self.seq.push(0);
                self.ack.push(0);
                self.flags.push(0);
                self.window.push(0);
                self.mss.push(0);
                self.sack_permitted.push(false);
                self.timestamp.push(-1);
                self.echo.push(-1);
                self.sacks.push(0);
                let rtp = Rtp::parse(udp.payload);
                if rtp.is_none() && udp.payload.len() < udp.payload_len as usize {
                    self.kept = self.kept.max(frame.bytes.len());
                }
                self.media(rtp);
                if let Some(cipher) = udp.encrypted() {
                    *self.ciphers.entry(cipher).or_default() += 1;
                }
            }
            Transport::Unreadable(error) => self.leave_out(frame, LeftOut::of(*error, packet.is_cut())),
            _ => self.leave_out(frame, LeftOut::Protocol(packet.protocol)),
        }
    }

    /// Adds the columns that all packets share.
    fn packet(
        &mut self,
        frame: &Frame<'_>,
        interface: Option<u32>,
        packet: &IpPacket<'_>,
        protocol: u8,
        (source_port, target_port): (u16, u16),
        payload: u32,
    ) {
        let source = endpoint(packet.ip.src, source_port);
        let target = endpoint(packet.ip.dst, target_port);
        let is_v4 = packet.ip.src.is_ipv4();
        self.time_ns.push(frame.time_ns);
        self.interface.push(frame.interface as i64 + (i64::from(interface.unwrap_or_default()) << 20));
        self.protocol.push(protocol);
        self.source.push(source);
        self.target.push(target);
        self.host.push(endpoint(packet.ip.src, 0));
        self.source_port.push(source_port);
        self.target_port.push(target_port);
        self.size.push(packet.len as i64);
        self.payload.push(payload.into());
        self.identification.push(if is_v4 { packet.ip.identification.into() } else { -1 });
        self.sack_at.push(self.sack_start.len() as i64);
    }

    fn media(&mut self, rtp: Option<Rtp>) {
        self.rtp_version.push(rtp.map_or(-1, |rtp| rtp.version as i8));
        let rtp = rtp.unwrap_or_default();
        self.rtp_type.push(rtp.payload_type);
        self.rtp_seq.push(rtp.seq);
        self.rtp_source.push(rtp.source);
    }
}

/// The IP packet in the contents of a frame.
fn packet_of<'a>(frame: &Frame<'a>, framed: &Framed<'a>) -> Result<IpPacket<'a>, Error> {
    let headers = frame.bytes.len() - framed.bytes.len();
    let len = (frame.original_len as usize).saturating_sub(headers).min(MAX_LEN);
    // Some programs that shorten captures state the stored length as that of the frame. Without limit, the length in the
    // packet counts.
    IpPacket::parse_captured(framed.bytes, len).or_else(|_| IpPacket::parse_captured(framed.bytes, MAX_LEN))
}

/// A hash of an address and port. It decides the order of connections, and so the order of their packets of the same time.
fn endpoint(address: IpAddr, port: u16) -> u64 {
    let words: [u32; 4] = match address {
        IpAddr::V4(address) => [address.to_bits(), 0, 0, 0],
        IpAddr::V6(address) => [96, 64, 32, 0].map(|shift| (address.to_bits() >> shift) as u32),
    };
    let start = u64::from(port).wrapping_add(0x9e37_79b9_7f4a_7c15);
    words.into_iter().fold(start, |mixed, word| {
        let product = (mixed ^ u64::from(word)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        product ^ product >> 29
    })
}
