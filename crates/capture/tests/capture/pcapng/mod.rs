//! Contents of pcapng files, parsed by a small reader of this test, by `etherparse`, and by `tshark` where it
//! is installed.

mod reader;
mod run;
mod wireshark;

use std::io::{self, Write};

use etherparse::checksum::Sum16BitWords;
use etherparse::{IpNumber, Ipv4Header, TcpOptionElement, UdpHeader};
use lasthop_base::Time;
use lasthop_capture::{CapturePoint, RunCapture};
use lasthop_proto::stack::Contents as _;
use lasthop_proto::tcp::{Flags, Segment, SeqNum, Timestamps};
use lasthop_proto::{DropReason, Dscp, Ecn, FlowId, Packet};
use lasthop_sim::{Contents, WireId};

use crate::pcapng::reader::options;
use crate::pcapng::run::{
    ARRIVING, LEAVING, RECEIVER, RETURNED, Run, SENDER, SENT_ON, answer, at_sender, carrying, data, datagram,
    notice, sack, split_at_base_station,
};

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
    let mut run = Run::new(CapturePoint { wires: vec![ARRIVING], ..at_sender() });
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

/// A datagram with contents is captured whole, and one without as its headers.
#[test]
fn contents_are_captured_whole() {
    let contents = Contents::default();
    let payload: Vec<u8> = (0..=255).cycle().take(1_201).collect();
    let tap = RunCapture::new(Vec::new(), at_sender(), Some(contents.clone())).expect("it takes a header");
    let mut run = Run { tap, now: Time::ZERO };
    let whole = Packet { handle: contents.put(&payload), ..datagram(0, 1_229) };
    run.cross(LEAVING, whole).cross(LEAVING, datagram(1, 100)).lose(whole, DropReason::Corrupted);
    let file = run.read_back();
    assert!(file.interfaces.iter().all(|interface| interface.snap_len == 65_535));
    let [first, second, lost] = &file.records[..] else { panic!("three") };
    let (ip, rest) = first.ip();
    let (udp, rest) = UdpHeader::from_slice(rest).unwrap();
    assert_eq!((rest, first.captured.len(), first.original_len), (&payload[..], 1_229, 1_229));
    assert_eq!((udp.length, ip.dont_fragment), (1_209, true));
    assert_eq!(udp.checksum, udp.calc_checksum_ipv4(&ip, &payload).unwrap());
    assert_eq!((second.captured.len(), second.original_len, second.udp().length), (28, 100, 80));
    assert!(!second.ip().0.dont_fragment);
    assert_eq!(lost.icmp().2, &first.captured[20..28]);
}

/// Each secret is written once, in a block before the next packet.
#[test]
fn secrets_precede_packets() {
    let contents = Contents::default();
    let written = |secret: Option<&str>| {
        let tap =
            RunCapture::new(Vec::new(), at_sender(), Some(contents.clone())).expect("it takes a header");
        let mut run = Run { tap, now: Time::ZERO };
        run.cross(LEAVING, datagram(0, 100));
        secret.into_iter().for_each(|secret| contents.log_secret(secret));
        run.cross(LEAVING, datagram(1, 100)).cross(LEAVING, datagram(2, 100));
        run.tap.finish().expect("a vector takes everything")
    };
    let [without, with] = [None, Some("A 1 2")].map(written);
    // Its type, its length, the type and the length of secrets, a line with its end and padding, and the length again.
    let block = b"\x0a\0\0\0\x1c\0\0\0KSLT\x06\0\0\0A 1 2\n\0\0\x1c\0\0\0";
    // Two packets of the same size follow.
    let place = without.len() - 2 * 60;
    assert_eq!(with, [&without[..place], block, &without[place..]].concat());
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
        let mut run = Run::new(CapturePoint { largest_window, sack_permitted: false, ..at_sender() });
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
    let mut run = Run::new(CapturePoint { losses: false, ..at_sender() });
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
    assert!(RunCapture::new(Full(4), at_sender(), None).is_err());
}

#[test]
fn a_segment_too_long_for_ipv4_is_an_error() {
    for (len, fits) in [(65_495, true), (65_496, false), (u32::MAX, false)] {
        let mut run = Run::new(at_sender());
        run.forth(Segment { len, ..data(1000) });
        assert_eq!(run.tap.finish().is_ok(), fits, "{len} bytes");
    }
}
