//! Contents of pcapng files, parsed by a small reader of this test, by `etherparse`, and by `tshark` where it
//! is installed.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;

use etherparse::checksum::Sum16BitWords;
use etherparse::{Icmpv4Header, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};
use lasthop_base::{Bytes, Time};
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Flags, SackBlock, Segment, SeqNum, Timestamps};
use lasthop_proto::{
    Body, ComponentId, Datagram, DropReason, Dscp, Ecn, Effect, FlowId, Handle, HostId, LinkEvent,
    LinkOutcome, Notice, NoticeCode, Out, Packet, Port, Signal,
};
use lasthop_sim::{Capture, CapturedPart, Pcapng, Tap, Wire, WireId};
use lasthop_testing::schemes::agent;

const SENDER: HostId = HostId(0);
const BASE_STATION: HostId = HostId(1);
const RECEIVER: HostId = HostId(2);
const LEAVING: WireId = WireId(7);
const ARRIVING: WireId = WireId(8);
const FLOW: FlowId = FlowId(3);
const AIR: ComponentId = ComponentId(300);

fn at_sender() -> Capture {
    Capture {
        name: "sender".into(),
        description: "The fixed host".into(),
        wires: vec![LEAVING, ARRIVING],
        losses: true,
        mss: 1000,
        largest_window: 1_000_000,
        sack_permitted: true,
        parts: Vec::new(),
    }
}

/// The wires at a base station that splits connections, where the wireless part begins.
const SENT_ON: WireId = WireId(9);
const RETURNED: WireId = WireId(10);

fn split_at_base_station() -> Capture {
    let part = CapturedPart {
        name: "base".into(),
        description: "The base station".into(),
        flow: FLOW,
        wires: vec![SENT_ON, RETURNED],
        links: vec![AIR],
        mss: 500,
        largest_window: 65_535,
        sack_permitted: false,
    };
    Capture { parts: vec![part], ..at_sender() }
}

/// A run by hand: packets cross one millisecond apart unless a time is given.
struct Run<W: Write> {
    tap: Pcapng<W>,
    now: Time,
}

impl Run<Vec<u8>> {
    fn new(capture: Capture) -> Run<Vec<u8>> {
        Run::into_writer(Vec::new(), capture)
    }

    fn bytes(self) -> Vec<u8> {
        self.tap.finish().expect("a vector takes everything")
    }

    fn read_back(self) -> File {
        File::parse(&self.bytes())
    }
}

impl<W: Write> Run<W> {
    fn into_writer(writer: W, capture: Capture) -> Run<W> {
        let tap = Pcapng::new(writer, capture).expect("the writer takes a header");
        Run { tap, now: Time::ZERO }
    }

    fn at(&mut self, ns: u64) -> &mut Self {
        self.now = Time::from_nanos(ns);
        self
    }

    fn cross(&mut self, wire: WireId, packet: Packet) -> &mut Self {
        let end = (ComponentId(0), Port::ONLY);
        self.tap.cross(self.now, Wire { id: wire, from: end, to: end }, &packet);
        self.at(self.now.as_nanos().saturating_add(1_000_000))
    }

    fn forth(&mut self, segment: Segment) -> &mut Self {
        self.cross(LEAVING, carrying(segment, SENDER, RECEIVER))
    }

    fn back(&mut self, segment: Segment) -> &mut Self {
        self.cross(ARRIVING, carrying(segment, RECEIVER, SENDER))
    }

    fn lose(&mut self, packet: Packet, reason: DropReason) -> &mut Self {
        self.tap.drop(self.now, AIR, &packet, reason);
        self
    }

    fn shake_hands(&mut self) -> &mut Self {
        let syn = Segment { seq: SeqNum(999), wnd: 1_000_000, flags: Flags::SYN, ..Segment::default() };
        let reply = Segment { seq: SeqNum(4999), ack: SeqNum(1000), flags: Flags::SYN | Flags::ACK, ..syn };
        self.forth(syn).back(reply).forth(Segment { seq: SeqNum(1000), ..ack(5000) })
    }
}

fn carrying(segment: Segment, src: HostId, dst: HostId) -> Packet {
    let size = Bytes(40 + u64::from(segment.len));
    Packet {
        src,
        dst,
        flow: FLOW,
        size,
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body: Body::Tcp(segment),
    }
}

fn notice(kind: u8, code: u8, seq: u32) -> Packet {
    let body = Body::Notice(Notice { code: NoticeCode { kind, code }, seq: SeqNum(seq) });
    Packet {
        src: BASE_STATION,
        dst: SENDER,
        flow: FLOW,
        size: Bytes(56),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body,
    }
}

/// A datagram of the flow after that of the segments.
fn datagram(seq: u64, size: u64) -> Packet {
    let body = Body::Datagram(Datagram { seq, sent: Time::ZERO });
    let (flow, dscp) = (FlowId(FLOW.0 + 1), Dscp::DEFAULT);
    Packet {
        src: SENDER,
        dst: RECEIVER,
        flow,
        size: Bytes(size),
        dscp,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body,
    }
}

fn data(seq: u32) -> Segment {
    Segment { seq: SeqNum(seq), len: 1000, ..ack(5000) }
}

/// An acknowledgement from the receiver.
fn answer(number: u32) -> Segment {
    Segment { seq: SeqNum(5000), ..ack(number) }
}

fn ack(number: u32) -> Segment {
    Segment { ack: SeqNum(number), wnd: 100_000, flags: Flags::ACK, ..Segment::default() }
}

fn sack(number: u32, blocks: &[(u32, u32)]) -> Segment {
    let mut segment = answer(number);
    for &(start, end) in blocks {
        segment.sack.push(SackBlock { start: SeqNum(start), end: SeqNum(end) });
    }
    segment
}

/// A pcapng file of one little-endian section, as the format's draft describes it.
#[derive(Debug, Default)]
struct File {
    interfaces: Vec<Interface>,
    records: Vec<Record>,
}

#[derive(Debug)]
struct Interface {
    link_type: u16,
    snap_len: u32,
    name: String,
    description: String,
    resolution: u8,
}

#[derive(Debug)]
struct Record {
    interface: u32,
    ticks: u64,
    original_len: u32,
    captured: Vec<u8>,
    comment: Option<String>,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The first option with this code.
fn option(mut options: &[u8], code: u16) -> Option<&[u8]> {
    while !options.is_empty() {
        let (found, len) = (u16_at(options, 0), usize::from(u16_at(options, 2)));
        if found == code {
            return Some(&options[4..4 + len]);
        }
        options = &options[4 + len.next_multiple_of(4)..];
    }
    None
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

impl File {
    fn parse(mut bytes: &[u8]) -> File {
        let mut file = File::default();
        while !bytes.is_empty() {
            let len = u32_at(bytes, 4) as usize;
            assert_eq!(u32_at(bytes, len - 4) as usize, len, "a block says its length twice");
            file.add(u32_at(bytes, 0), &bytes[8..len - 4]);
            bytes = &bytes[len..];
        }
        file
    }

    fn add(&mut self, kind: u32, body: &[u8]) {
        match kind {
            0x0a0d_0d0a => assert_eq!(u32_at(body, 0), 0x1a2b_3c4d, "the byte order"),
            1 => self.interfaces.push(Interface {
                link_type: u16_at(body, 0),
                snap_len: u32_at(body, 4),
                name: text(option(&body[8..], 2).unwrap()),
                description: text(option(&body[8..], 3).unwrap()),
                resolution: option(&body[8..], 9).unwrap()[0],
            }),
            6 => {
                let captured = u32_at(body, 12) as usize;
                self.records.push(Record {
                    interface: u32_at(body, 0),
                    ticks: u64::from(u32_at(body, 4)) << 32 | u64::from(u32_at(body, 8)),
                    original_len: u32_at(body, 16),
                    captured: body[20..20 + captured].to_vec(),
                    comment: option(&body[20 + captured.next_multiple_of(4)..], 1).map(text),
                });
            }
            other => panic!("a block of unknown kind {other}"),
        }
    }
}

impl Record {
    /// The IP header, with verified checksum and length, and the payload.
    fn ip(&self) -> (Ipv4Header, &[u8]) {
        let (ip, rest) = Ipv4Header::from_slice(&self.captured).unwrap();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        assert_eq!(u32::from(ip.total_len), self.original_len);
        assert_eq!(ip.time_to_live, 64);
        (ip, rest)
    }

    /// The TCP header, its checksum verified over a payload of zeros, and the payload length.
    fn tcp(&self) -> (TcpHeader, usize) {
        let (ip, rest) = self.ip();
        let (tcp, rest) = TcpHeader::from_slice(rest).unwrap();
        assert!(rest.is_empty(), "no payload is captured");
        let len = self.original_len as usize - self.captured.len();
        assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, &vec![0; len]).unwrap());
        (tcp, len)
    }

    /// The UDP header, its checksum verified over a payload of zeros.
    fn udp(&self) -> UdpHeader {
        let (ip, rest) = self.ip();
        assert_eq!(ip.protocol, IpNumber::UDP);
        let (udp, rest) = UdpHeader::from_slice(rest).unwrap();
        assert!(rest.is_empty(), "no payload is captured");
        let payload = vec![0; self.original_len as usize - self.captured.len()];
        assert_eq!(usize::from(udp.length), UdpHeader::LEN + payload.len());
        assert_eq!(udp.checksum, udp.calc_checksum_ipv4(&ip, &payload).unwrap());
        udp
    }

    /// The ICMP header, its checksum verified, and the quoted header and data.
    fn icmp(&self) -> (Icmpv4Header, Ipv4Header, &[u8]) {
        let (_, message) = self.ip();
        assert_eq!(Sum16BitWords::new().add_slice(message).ones_complement(), 0);
        let (icmp, quote) = Icmpv4Header::from_slice(message).unwrap();
        let (ip, data) = Ipv4Header::from_slice(quote).unwrap();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        (icmp, ip, data)
    }
}

fn options(tcp: &TcpHeader) -> Vec<TcpOptionElement> {
    let all = tcp.options_iterator().map(Result::unwrap);
    all.filter(|option| *option != TcpOptionElement::Noop).collect()
}

#[test]
fn interfaces_have_names_and_time_resolution() {
    let file = Run::new(at_sender()).read_back();
    let names: Vec<_> = file.interfaces.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["sender", "losses"]);
    assert_eq!(file.interfaces[0].description, "The fixed host");
    for interface in file.interfaces {
        assert_eq!((interface.link_type, interface.resolution), (101, 9));
        assert_eq!(interface.snap_len, 80);
    }
}

#[test]
fn timestamps_are_exact() {
    let mut run = Run::new(at_sender());
    let instants = [0, 1, 999_999_999, 4_294_967_296_000_000_001, u64::MAX - 1];
    for ns in instants {
        run.at(ns).forth(data(1000));
    }
    let ticks: Vec<_> = run.read_back().records.iter().map(|r| r.ticks).collect();
    assert_eq!(ticks, instants);
}

#[test]
fn only_the_captured_wires_are_written() {
    let mut run = Run::new(at_sender());
    run.forth(data(1000)).cross(WireId(9), carrying(data(1000), SENDER, RECEIVER)).back(answer(2000));
    assert_eq!(run.read_back().records.len(), 2);
}

#[test]
fn payloads_are_not_captured() {
    let mut run = Run::new(at_sender());
    run.forth(data(1000));
    let file = run.read_back();
    assert_eq!((file.records[0].captured.len(), file.records[0].original_len), (40, 1040));
}

#[test]
fn addresses_ports_and_sequence_numbers_match_the_run() {
    let mut run = Run::new(at_sender());
    run.forth(data(1000)).back(answer(2000));
    let file = run.read_back();
    let ((ip, _), (tcp, len)) = (file.records[0].ip(), file.records[0].tcp());
    assert_eq!((ip.source, ip.destination), ([10, 0, 0, 1], [10, 0, 0, 3]));
    assert_eq!((tcp.source_port, tcp.destination_port), (49_155, 5_004));
    assert_eq!((tcp.sequence_number, tcp.acknowledgment_number, len), (1000, 5000, 1000));
    assert!(tcp.ack && !tcp.syn && !tcp.fin);
    let ((ip, _), (tcp, len)) = (file.records[1].ip(), file.records[1].tcp());
    assert_eq!((ip.source, ip.destination), ([10, 0, 0, 3], [10, 0, 0, 1]));
    assert_eq!((tcp.source_port, tcp.destination_port), (5_004, 49_155));
    assert_eq!((tcp.acknowledgment_number, len), (2000, 0));
}

/// Every control bit, reserved ones included, is encoded and covered by the checksum, for any carry.
#[test]
fn control_bits_are_encoded() {
    let each = (0..12).map(|bit| 1 << bit).chain([0x110, 0xf10, 0xfff]).map(|flags| (flags, 1000, 0));
    let segments: Vec<_> = each.chain((0..1 << 16).map(|seq| (0xe10, 65_495, seq))).collect();
    let mut run = Run::new(at_sender());
    for &(flags, len, seq) in &segments {
        run.forth(Segment { len, flags: Flags(flags), ..data(seq) });
    }
    for (record, (flags, _, seq)) in run.read_back().records.iter().zip(segments) {
        let captured = &record.captured;
        let word = u16::from_be_bytes([captured[32], captured[33]]);
        assert_eq!((word & 0xfff, usize::from(word >> 12) * 4), (flags, captured.len() - 20));
        let length = (record.original_len - 20) as u16;
        let pseudo = Sum16BitWords::new().add_slice(&captured[12..20]).add_2bytes([0, 6]);
        let sum = pseudo.add_2bytes(length.to_be_bytes()).add_slice(&captured[20..]);
        assert_eq!(sum.ones_complement(), 0, "segment {seq}, {flags:#x}");
    }
}

/// The DSCP of each packet is encoded, also in the header quoted with a loss. A notice does not know the DSCP
/// of its segment.
#[test]
fn the_dscp_is_encoded() {
    for point in [0, 1, 0b00_0011, 0b10_1110, 63] {
        let with = |packet| Packet { dscp: Dscp::new(point), ..packet };
        let mut run = Run::new(at_sender());
        run.cross(LEAVING, with(carrying(data(1000), SENDER, RECEIVER))).back(answer(2000));
        run.cross(LEAVING, with(datagram(0, 1000))).cross(ARRIVING, with(notice(41, 0, 1000)));
        run.lose(with(carrying(data(1000), SENDER, RECEIVER)), DropReason::Corrupted);
        let file = run.read_back();
        let points =
            file.records.iter().map(|record| record.ip().0).map(|ip| (ip.dscp.value(), ip.ecn.value()));
        let expected = [(point, 0), (0, 0), (point, 0), (point, 0), (0, 0)];
        assert_eq!(points.collect::<Vec<_>>(), expected);
        let quoted = [3, 4].map(|record: usize| file.records[record].icmp().1.dscp.value());
        assert_eq!(quoted, [0, point]);
    }
}

/// The ECN field follows the DSCP in the same byte (RFC 3168 figure 1), also in the header quoted with a
/// loss.
#[test]
fn the_ecn_field_is_encoded() {
    for (ecn, bits) in [(Ecn::NotEct, 0b00), (Ecn::Ect1, 0b01), (Ecn::Ect0, 0b10), (Ecn::Ce, 0b11)] {
        let with = |packet| Packet { dscp: Dscp::new(0b10_1110), ecn, ..packet };
        let mut run = Run::new(at_sender());
        run.cross(LEAVING, with(carrying(data(1000), SENDER, RECEIVER))).back(answer(2000));
        run.cross(LEAVING, with(datagram(0, 1000))).cross(ARRIVING, with(notice(253, 0, 1000)));
        run.lose(with(carrying(data(1000), SENDER, RECEIVER)), DropReason::Corrupted);
        let file = run.read_back();
        let second_byte = file.records.iter().map(|record| record.captured[1]);
        assert_eq!(second_byte.collect::<Vec<_>>(), [0xb8 | bits, 0, 0xb8 | bits, 0xb8 | bits, 0]);
        let quoted = [3, 4].map(|record: usize| file.records[record].icmp().1.ecn.value());
        assert_eq!(quoted, [0, bits]);
    }
}

#[test]
fn the_first_sender_is_the_client_at_any_capture_point() {
    let mut run = Run::new(Capture { wires: vec![ARRIVING], ..at_sender() });
    run.forth(data(1000)).back(answer(2000));
    assert_eq!(run.read_back().records[0].tcp().0.source_port, 5_004);
}

#[test]
fn a_datagram_of_background_traffic_is_udp() {
    let mut run = Run::new(at_sender());
    run.cross(LEAVING, datagram(0, 1000)).cross(LEAVING, datagram(1, 28)).forth(data(1000));
    let file = run.read_back();
    for (record, size) in file.records.iter().zip([1000, 28]) {
        assert_eq!((record.captured.len(), record.original_len), (28, size));
        let ((ip, _), udp) = (record.ip(), record.udp());
        assert_eq!((ip.source, ip.destination), ([10, 0, 0, 1], [10, 0, 0, 3]));
        assert_eq!((udp.source_port, udp.destination_port), (49_156, 5_005));
        assert_eq!((record.interface, record.comment.as_deref()), (0, None));
    }
    assert_eq!(file.records[2].tcp().0.source_port, 49_155);
}

#[test]
fn datagram_lengths_respect_headers_and_ipv4() {
    let mut run = Run::new(at_sender());
    run.cross(LEAVING, datagram(0, 0)).cross(LEAVING, datagram(1, 65_535));
    let lengths = run.read_back().records.iter().map(|record| record.udp().length).collect::<Vec<_>>();
    assert_eq!(lengths, [8, 65_515]);
    let mut run = Run::new(at_sender());
    run.cross(LEAVING, datagram(0, 65_536));
    assert!(run.tap.finish().is_err());
}

#[test]
fn identifications_count_per_source() {
    let mut run = Run::new(at_sender());
    run.forth(data(1000)).forth(data(2000)).back(answer(2000)).forth(data(3000)).back(answer(3000));
    let counted: Vec<_> = run.read_back().records.iter().map(|r| r.ip().0.identification).collect();
    assert_eq!(counted, [1, 2, 1, 3, 2]);
}

#[test]
fn a_handshake_announces_the_window_scale() {
    let mut run = Run::new(at_sender());
    run.shake_hands().back(answer(1000));
    let file = run.read_back();
    let announced = [
        TcpOptionElement::MaximumSegmentSize(1000),
        TcpOptionElement::WindowScale(4),
        TcpOptionElement::SelectiveAcknowledgementPermitted,
    ];
    for record in &file.records[..2] {
        let (syn, _) = record.tcp();
        assert_eq!((options(&syn), syn.window_size), (announced.to_vec(), 65_535));
    }
    for record in &file.records[2..] {
        assert_eq!(u32::from(record.tcp().0.window_size) << 4, 100_000);
    }
}

#[test]
fn the_window_scale_is_the_smallest_that_fits() {
    for (largest_window, scale) in [(0, 0), (65_535, 0), (65_536, 1), (131_071, 1), (u32::MAX, 14)] {
        let mut run = Run::new(Capture { largest_window, sack_permitted: false, ..at_sender() });
        run.shake_hands();
        let (syn, _) = run.read_back().records[0].tcp();
        let announced = [TcpOptionElement::MaximumSegmentSize(1000), TcpOptionElement::WindowScale(scale)];
        assert_eq!(options(&syn), announced);
    }
}

#[test]
fn without_a_handshake_windows_are_not_scaled() {
    let mut run = Run::new(at_sender());
    run.forth(data(1000)).back(Segment { wnd: 40_000, ..answer(2000) });
    let windows: Vec<_> = run.read_back().records.iter().map(|r| r.tcp().0.window_size).collect();
    assert_eq!(windows, [65_535, 40_000]);
}

#[test]
fn sack_blocks_fill_the_option_space() {
    let blocks = [(3000, 4000), (5000, 6000), (7000, 8000), (9000, 10_000)];
    let full = sack(2000, &blocks);
    let mut run = Run::new(at_sender());
    run.back(sack(2000, &blocks[..1])).back(full);
    run.back(Segment { timestamps: Some(Timestamps { value: 17, echo: 4 }), ..full });
    let file = run.read_back();
    let sacked = |n: usize| {
        let other = |i: usize| blocks[..n].get(i).copied();
        TcpOptionElement::SelectiveAcknowledgement(blocks[0], [other(1), other(2), other(3)])
    };
    let timestamps = TcpOptionElement::Timestamp(17, 4);
    assert_eq!(options(&file.records[0].tcp().0), [sacked(1)]);
    assert_eq!(options(&file.records[1].tcp().0), [sacked(4)]);
    assert_eq!(options(&file.records[2].tcp().0), [timestamps, sacked(3)]);
}

#[test]
fn a_notice_is_an_icmp_message_quoting_its_segment() {
    let mut run = Run::new(at_sender());
    run.forth(data(1000)).cross(ARRIVING, notice(41, 7, 1000));
    let file = run.read_back();
    let record = &file.records[1];
    let (icmp, quoted, data) = record.icmp();
    assert_eq!(record.ip().0.source, [10, 0, 0, 2]);
    assert_eq!(icmp.to_bytes()[..2], [41, 7]);
    assert_eq!((quoted.source, quoted.destination), ([10, 0, 0, 1], [10, 0, 0, 3]));
    assert_eq!(data, &file.records[0].tcp().0.to_bytes()[..8]);
    assert_eq!(record.comment.as_deref(), Some("notice type=41 code=7 about TCP segment seq=1000"));
}

#[test]
fn losses_are_recorded_with_their_reason() {
    let mut run = Run::new(at_sender());
    run.forth(data(1000)).lose(carrying(data(1000), SENDER, RECEIVER), DropReason::Corrupted);
    run.lose(carrying(answer(1000), RECEIVER, SENDER), DropReason::QueueFull);
    run.lose(notice(4, 0, 1000), DropReason::AttemptsExhausted);
    run.lose(datagram(7, 1000), DropReason::QueueFull);
    let file = run.read_back();
    let (_, quoted, data) = file.records[1].icmp();
    assert_eq!(file.records[1].ip().0.source, [10, 128, 1, 44]);
    assert_eq!(quoted.total_len, 1040);
    assert_eq!(data, &file.records[0].tcp().0.to_bytes()[..8]);
    let (_, quoted, data) = file.records[4].icmp();
    assert_eq!((quoted.protocol, quoted.total_len), (IpNumber::UDP, 1000));
    assert_eq!(data[..6], [0xc0, 0x04, 0x13, 0x8d, 0x03, 0xd4], "its ports and its length");
    let said: Vec<_> = file.records.iter().map(|r| (r.interface, r.comment.as_deref())).collect();
    let expected = [
        (0, None),
        (1, Some("TCP segment seq=1000 len=1000 lost: corrupted on the air")),
        (1, Some("TCP acknowledgement ack=1000 lost: queue full")),
        (1, Some("notice type=4 code=0 about TCP segment seq=1000 lost: link attempts exhausted")),
        (1, Some("UDP datagram seq=7 lost: queue full")),
    ];
    assert_eq!(said, expected);
}

/// A connection split at a base station: each part on its own interface, with its own addresses, options and
/// windows; losses on its links are quoted accordingly.
#[test]
fn each_part_of_a_split_connection_is_captured_as_a_connection() {
    let syn = Segment { seq: SeqNum(7), wnd: 60_000, flags: Flags::SYN, ..Segment::default() };
    let other = Packet { flow: FlowId(9), ..carrying(data(8), SENDER, RECEIVER) };
    let mut run = Run::new(split_at_base_station());
    run.forth(syn).cross(SENT_ON, carrying(syn, SENDER, RECEIVER)).cross(SENT_ON, other);
    run.cross(SENT_ON, carrying(data(8), SENDER, RECEIVER));
    run.lose(carrying(data(8), SENDER, RECEIVER), DropReason::Corrupted).lose(other, DropReason::Corrupted);
    run.cross(RETURNED, carrying(Segment { wnd: 60_000, ..answer(8) }, RECEIVER, SENDER)).back(answer(8));
    let file = run.read_back();
    let names: Vec<_> = file.interfaces.iter().map(|interface| interface.name.as_str()).collect();
    assert_eq!(names, ["sender", "losses", "base"]);
    let ends = |ip: &Ipv4Header| (ip.source, ip.destination);
    let (wired, wireless) = (([10, 0, 0, 1], [10, 0, 0, 3]), ([10, 2, 0, 1], [10, 2, 0, 3]));
    let seen: Vec<_> = file.records.iter().map(|record| (record.interface, ends(&record.ip().0))).collect();
    let air = [10, 128, 1, 44];
    let expected = [
        (0, wired),
        (2, wireless),
        (2, wireless),
        (1, (air, wireless.0)),
        (1, (air, wired.0)),
        (2, (wireless.1, wireless.0)),
        (0, (wired.1, wired.0)),
    ];
    assert_eq!(seen, expected);
    let announced = |record: usize| options(&file.records[record].tcp().0);
    assert_eq!(
        announced(0)[..2],
        [TcpOptionElement::MaximumSegmentSize(1000), TcpOptionElement::WindowScale(4)]
    );
    assert_eq!(announced(1), [TcpOptionElement::MaximumSegmentSize(500), TcpOptionElement::WindowScale(0)]);
    assert_eq!(file.records[5].tcp().0.window_size, 60_000);
    assert_eq!(ends(&file.records[3].icmp().1), wireless, "the quoted header");
}

#[test]
fn losses_can_be_left_out() {
    let mut run = Run::new(Capture { losses: false, ..at_sender() });
    run.forth(data(1000)).lose(carrying(data(1000), SENDER, RECEIVER), DropReason::Corrupted);
    let file = run.read_back();
    assert_eq!((file.interfaces.len(), file.records.len()), (1, 1));
}

/// A writer that fails after this many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("disk full"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn finish_returns_the_first_write_error() {
    let mut run = Run::into_writer(Full(400), at_sender());
    for n in 1..=100 {
        run.forth(data(1000 * n));
    }
    let failure = run.tap.finish().err().expect("the writer was full");
    assert_eq!(failure.to_string(), "disk full");
    assert!(Pcapng::new(Full(4), at_sender()).is_err());
}

#[test]
fn a_segment_too_long_for_ipv4_is_an_error() {
    for (len, fits) in [(65_495, true), (65_496, false), (u32::MAX, false)] {
        let mut run = Run::new(at_sender());
        run.forth(Segment { len, ..data(1000) });
        assert_eq!(run.tap.finish().is_ok(), fits, "{len} bytes");
    }
}

/// The output of `tshark` for the packets that match `filter`: the values of `fields`, one line per packet.
/// `None` if `tshark` is not installed.
fn tshark(name: &str, bytes: &[u8], filter: &str, fields: &[&str]) -> Option<Vec<String>> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    let mut command = Command::new("tshark");
    command.args(["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]);
    command.args(["-o", "udp.check_checksum:TRUE"]);
    command.arg("-r").arg(&path).args(["-Y", filter, "-T", "fields"]);
    let output = match command.args(fields.iter().flat_map(|field| ["-e", field])).output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            println!("tshark is not installed: not tried");
            return None;
        }
        Err(error) => panic!("tshark: {error}"),
    };
    let complaints = text(&output.stderr);
    let complaints: Vec<_> = complaints.lines().filter(|line| !line.contains("as user \"root\"")).collect();
    assert!(output.status.success() && complaints.is_empty(), "{complaints:?}");
    Some(text(&output.stdout).lines().map(str::to_owned).collect())
}

/// A handshake, five segments with the second one lost, a lost acknowledgement, notices with one lost, and a
/// fast retransmission.
fn eventful(losses: bool) -> Vec<u8> {
    let mut run = Run::new(Capture { losses, ..at_sender() });
    run.shake_hands();
    for n in 1..=5 {
        run.forth(data(1000 * n));
    }
    run.lose(carrying(data(2000), SENDER, RECEIVER), DropReason::Corrupted);
    run.back(answer(2000)).back(sack(2000, &[(3000, 4000)]));
    run.lose(carrying(answer(2000), RECEIVER, SENDER), DropReason::QueueFull);
    run.cross(ARRIVING, notice(41, 0, 2000)).cross(ARRIVING, notice(4, 0, 2000));
    run.lose(notice(4, 0, 2000), DropReason::AttemptsExhausted);
    run.back(sack(2000, &[(3000, 5000)])).back(sack(2000, &[(3000, 6000)]));
    run.forth(data(2000)).back(answer(6000));
    run.bytes()
}

#[test]
fn wireshark_reports_no_errors() {
    let bytes = eventful(true);
    let number = ["frame.number"];
    let faults = "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 \
                  || icmp.checksum.status == 0";
    let Some(faulty) = tshark("faults.pcapng", &bytes, faults, &number) else { return };
    assert_eq!(faulty, [""; 0]);
    let sound = tshark("sound.pcapng", &bytes, "ip.checksum.status == 1", &number).unwrap();
    assert_eq!(sound.len(), File::parse(&bytes).records.len());
    let bare = tshark("bare.pcapng", &bytes, "tcp.len == 0 && tcp.checksum.status == 1", &number).unwrap();
    assert_eq!(bare.len(), 8, "those without a payload, which is not captured, can be verified");
}

/// Notices have an ICMP type of their own, not one shown as "obsolete or malformed".
#[test]
fn wireshark_names_a_notice() {
    for scheme in ["ebsn", "lhack"] {
        let mut agent = agent(&Schemes::default(), scheme);
        let mut out = Out::default();
        let packet = carrying(data(1000), SENDER, RECEIVER);
        for outcome in [LinkOutcome::AttemptFailed, LinkOutcome::Discarded] {
            let event = LinkEvent { outcome, packet, attempt: 1 };
            agent.on_signal(Time::ZERO, &Signal::Link(event), &mut out);
        }
        agent.receive(Time::ZERO, &packet, Port::WIRED, &mut out);
        let mut run = Run::new(at_sender());
        run.forth(data(1000));
        let mut notices = 0;
        while let Some((_, effect)) = out.take() {
            if let Effect::Send(_, packet) = effect
                && matches!(packet.body, Body::Notice(_))
            {
                run.cross(ARRIVING, packet);
                notices += 1;
            }
        }
        assert!(notices > 0, "{scheme}");
        let bytes = run.bytes();
        for record in &File::parse(&bytes).records[1..] {
            assert_eq!(record.icmp().0.to_bytes()[0], 41, "{scheme}");
        }
        let name = format!("notices-{scheme}.pcapng");
        let Some(shown) = tshark(&name, &bytes, "icmp", &["_ws.col.Info"]) else { return };
        assert_eq!(shown, vec!["Experimental mobility protocols"; notices], "{scheme}");
    }
}

#[test]
fn wireshark_shows_losses_with_their_instants_and_reasons() {
    let fields = ["frame.time_epoch", "frame.interface_name", "frame.comment"];
    let Some(losses) = tshark("losses.pcapng", &eventful(true), "frame.interface_name == losses", &fields)
    else {
        return;
    };
    let expected = [
        "0.008000000\tlosses\tTCP segment seq=2000 len=1000 lost: corrupted on the air",
        "0.010000000\tlosses\tTCP acknowledgement ack=2000 lost: queue full",
        "0.012000000\tlosses\tnotice type=4 code=0 about TCP segment seq=2000 lost: \
         link attempts exhausted",
    ];
    assert_eq!(losses, expected);
}

#[test]
fn wireshark_flags_retransmissions_and_duplicates_only() {
    for (name, losses) in [("with.pcapng", true), ("without.pcapng", false)] {
        let bytes = eventful(losses);
        let times = |filter| tshark(name, &bytes, filter, &["frame.time_epoch"]);
        let Some(retransmitted) = times("tcp.analysis.retransmission") else { return };
        assert_eq!(retransmitted, ["0.014000000"]);
        let duplicates = ["0.009000000", "0.012000000", "0.013000000"];
        assert_eq!(times("tcp.analysis.duplicate_ack").unwrap(), duplicates);
        assert_eq!(times("tcp.analysis.flags").unwrap().len(), 4);
    }
}

#[test]
fn wireshark_follows_a_one_way_flow_without_a_handshake() {
    let mut run = Run::new(at_sender());
    for seq in [1000, 2000, 3000, 2000] {
        run.forth(Segment { seq: SeqNum(seq), len: 1000, ..Segment::default() });
    }
    run.back(Segment { wnd: 4000, ..answer(4000) });
    let bytes = run.bytes();
    let fields = ["frame.number", "tcp.window_size"];
    let Some(flagged) = tshark("one_way.pcapng", &bytes, "tcp.analysis.flags", &fields) else { return };
    assert_eq!(flagged, ["4\t65535"]);
    let answers = tshark("one_way.pcapng", &bytes, "tcp.srcport == 5004", &fields).unwrap();
    assert_eq!(answers, ["5\t4000"]);
}

#[test]
fn wireshark_reads_background_datagrams() {
    let mut run = Run::new(at_sender());
    run.shake_hands().cross(LEAVING, datagram(0, 1000)).cross(LEAVING, datagram(1, 28)).forth(data(1000));
    let bytes = run.bytes();
    let fields = ["frame.number", "udp.srcport", "udp.dstport", "udp.length"];
    let Some(found) = tshark("udp.pcapng", &bytes, "udp", &fields) else { return };
    assert_eq!(found, ["4\t49156\t5005\t980", "5\t49156\t5005\t8"]);
    let number = ["frame.number"];
    let sound = tshark("udp.pcapng", &bytes, "udp.checksum.status == 1", &number).unwrap();
    assert_eq!(sound, ["5"], "the one without a payload, which is not captured, can be verified");
    let faults = "_ws.malformed || udp.checksum.status == 0 || tcp.analysis.flags";
    assert_eq!(tshark("udp.pcapng", &bytes, faults, &number).unwrap(), [""; 0]);
}

/// An RST of the source after a rejected segment, and one of the destination: Wireshark shows both as resets,
/// and a lost RST is described as such.
#[test]
fn wireshark_shows_resets() {
    let mut run = Run::new(at_sender());
    run.shake_hands().forth(data(1000));
    let rst = Segment { seq: SeqNum(2000), flags: Flags::RST, ..Segment::default() };
    run.forth(rst).lose(carrying(rst, SENDER, RECEIVER), DropReason::Corrupted);
    run.back(Segment { flags: Flags::RST | Flags::ACK, ..answer(1000) });
    let bytes = run.bytes();
    let fields = ["frame.number", "tcp.flags", "tcp.seq_raw", "tcp.ack_raw", "frame.comment"];
    let filter = "tcp.flags.reset == 1 && frame.interface_name == sender";
    let Some(found) = tshark("resets.pcapng", &bytes, filter, &fields) else { return };
    assert_eq!(found, ["5\t0x0004\t2000\t0\t", "7\t0x0014\t5000\t1000\t"]);
    let lost = tshark("resets.pcapng", &bytes, "frame.interface_name == losses", &["frame.comment"]);
    assert_eq!(lost.unwrap(), ["TCP reset seq=2000 lost: corrupted on the air"]);
    let faults = "_ws.malformed || tcp.checksum.status == 0 || tcp.analysis.flags";
    assert_eq!(tshark("resets.pcapng", &bytes, faults, &["frame.number"]).unwrap(), [""; 0]);
}

#[test]
fn wireshark_shows_code_points() {
    let mut run = Run::new(at_sender());
    run.shake_hands().forth(data(1000)).back(answer(2000));
    let marked = carrying(data(2000), SENDER, RECEIVER);
    run.cross(LEAVING, Packet { dscp: Dscp::new(0b00_0011), ..marked });
    let bytes = run.bytes();
    let fields = ["frame.number", "ip.dsfield", "ip.checksum.status"];
    let Some(found) = tshark("dscp.pcapng", &bytes, "ip.dsfield.dscp != 0", &fields) else { return };
    assert_eq!(found, ["6\t0x0c\t1"]);
}

#[test]
fn wireshark_shows_congestion_marks() {
    let mut run = Run::new(at_sender());
    run.shake_hands();
    for (ecn, number) in [(Ecn::Ect0, 1000), (Ecn::Ect1, 2000), (Ecn::Ce, 3000), (Ecn::NotEct, 4000)] {
        run.cross(LEAVING, Packet { ecn, ..carrying(data(number), SENDER, RECEIVER) });
    }
    let bytes = run.bytes();
    let fields = ["ip.dsfield.ecn", "ip.dsfield.dscp", "ip.checksum.status"];
    let Some(found) = tshark("ecn.pcapng", &bytes, "tcp.len > 0", &fields) else { return };
    assert_eq!(found, ["2\t0\t1", "1\t0\t1", "3\t0\t1", "0\t0\t1"]);
}

/// The bit next to CWR is AE of accurate ECN in Wireshark, NS in older versions; the bits before it are
/// reserved.
#[test]
fn wireshark_shows_feedback_bits() {
    let marked = |bit: u16, number| Segment { flags: Flags::ACK | Flags(1 << bit), ..answer(number) };
    let mut run = Run::new(at_sender());
    run.shake_hands().forth(data(1000)).back(answer(2000)).back(marked(8, 2000)).back(marked(9, 2000));
    run.back(marked(11, 2000));
    let bytes = run.bytes();
    let fields = ["frame.number", "tcp.flags", "tcp.checksum.status"];
    let Some(found) = tshark("bits.pcapng", &bytes, "tcp.flags >= 0x100", &fields) else { return };
    assert_eq!(found, ["6\t0x0110\t1", "7\t0x0210\t1", "8\t0x0810\t1"]);
    let reserved = tshark("bits.pcapng", &bytes, "tcp.flags.res == 1", &["frame.number"]).unwrap();
    assert_eq!(reserved, ["7", "8"]);
    let next_to_cwr = tshark("bits.pcapng", &bytes, "tcp.flags.ae == 1", &["frame.number"]).unwrap();
    assert_eq!(next_to_cwr, ["6"]);
}
