//! Packets written and read, beside two independent libraries.

mod super_packets;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use lasthop_base::{Stream, Streams};
use lasthop_proto::tcp::{
    EcnCounters, FieldOrder, Flags, SackBlock, SackBlocks, Segment, SeqNum, Timestamps,
};
use lasthop_proto::{Dscp, Ecn, NoticeCode};
use lasthop_wire::{
    Checksum, Error, Fragment, Ip, IpPacket, LinkType, Quote, TcpHeader, Transport, checksum, edit, write,
};

const V4: Ip = Ip {
    src: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
    dst: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
    dscp: Dscp::DEFAULT,
    ecn: Ecn::NotEct,
    hop_limit: 64,
    identification: 0,
    dont_fragment: true,
};

const V6: Ip = Ip {
    src: IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)),
    dst: IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)),
    ..V4
};

fn random_ip(random: &mut Stream) -> Ip {
    let mut octet = || random.below(256) as u8;
    let v4 = [octet(), octet(), octet(), octet(), octet(), octet(), octet(), octet()];
    let v6: [u8; 16] = std::array::from_fn(|_| octet());
    let is_v4 = random.bernoulli(0.5);
    let (src, dst) = if is_v4 {
        (Ipv4Addr::new(v4[0], v4[1], v4[2], v4[3]).into(), Ipv4Addr::new(v4[4], v4[5], v4[6], v4[7]).into())
    } else {
        (Ipv6Addr::from(v6).into(), Ipv6Addr::from(u128::from_be_bytes(v6) ^ 1).into())
    };
    Ip {
        src,
        dst,
        dscp: Dscp::new(random.below(64) as u8),
        ecn: Ecn::from_bits(random.below(4) as u8),
        hop_limit: random.below(256) as u8,
        identification: if is_v4 { random.below(65_536) as u16 } else { 0 },
        dont_fragment: !is_v4 || random.bernoulli(0.5),
    }
}

/// A header whose options fit, so that all of them are written.
fn random_tcp(random: &mut Stream) -> TcpHeader {
    let word = |random: &mut Stream| random.below(1 << 32) as u32;
    let flags = Flags(random.below(1 << 12) as u16);
    let is_syn = flags.has(Flags::SYN);
    let timestamps = random.bernoulli(0.5).then(|| Timestamps { value: word(random), echo: word(random) });
    let mut sack = SackBlocks::default();
    let room = if is_syn { 1 } else { 4 - u64::from(timestamps.is_some()) };
    for _ in 0..random.below(room + 1) {
        let start = SeqNum(word(random));
        sack.push(SackBlock { start, end: start + 1 + random.below((1 << 31) - 1) as u32 });
    }
    let space =
        40 - 12 * usize::from(timestamps.is_some()) - if sack.is_empty() { 0 } else { 4 + 8 * sack.len() };
    if !is_syn && sack.len() < SackBlocks::MAX && random.bernoulli(0.5) {
        let order = if random.bernoulli(0.5) { FieldOrder::Ect0First } else { FieldOrder::Ect1First };
        let counters = [word(random), word(random), word(random)];
        let option = EcnCounters::new(order, &counters[..random.below(4) as usize]);
        sack.set_ecn_counters(Some(option).filter(|option| option.padded_len() <= space));
    }
    let option = |random: &mut Stream| is_syn && random.bernoulli(0.5);
    TcpHeader {
        src_port: word(random) as u16,
        dst_port: word(random) as u16,
        segment: Segment {
            seq: SeqNum(word(random)),
            ack: SeqNum(word(random)),
            len: random.below(1400) as u32,
            wnd: random.below(65_536) as u32,
            flags,
            sack,
            timestamps,
            has_unknown_options: false,
        },
        urgent_pointer: if flags.has(TcpHeader::URG) { word(random) as u16 } else { 0 },
        mss: option(random).then(|| word(random) as u16),
        window_scale: option(random).then(|| random.below(15) as u8),
        sack_permitted: option(random),
    }
}

fn payload(random: &mut Stream, len: u32) -> Vec<u8> {
    (0..len).map(|_| random.below(256) as u8).collect()
}

#[test]
fn a_segment_that_is_written_reads_the_same_here_and_in_smoltcp() {
    use smoltcp::phy::ChecksumCapabilities;
    use smoltcp::wire::{Ipv4Packet, Ipv6Packet, TcpPacket, TcpRepr};
    let mut random = Streams::new(1, 0).stream("segments");
    for _ in 0..5_000 {
        let (ip, header) = (random_ip(&mut random), random_tcp(&mut random));
        let payload = payload(&mut random, header.segment.len);
        let bytes = write::tcp(&ip, &header, &payload).expect("short enough");
        let packet = IpPacket::parse(&bytes).expect("well-formed");
        let tcp = packet.tcp().expect("a segment");
        assert_eq!((packet.ip, tcp.header, tcp.payload), (ip, header, &payload[..]));
        assert_eq!((packet.len, packet.fragment, packet.is_cut()), (bytes.len(), None, false));
        let v4_sum = if ip.src.is_ipv4() { Checksum::Correct } else { Checksum::Absent };
        assert_eq!((packet.header_checksum(), packet.transport_checksum()), (v4_sum, Checksum::Correct));

        let rest = if ip.src.is_ipv4() {
            let packet = Ipv4Packet::new_checked(&bytes[..]).expect("well-formed");
            assert!(packet.verify_checksum());
            &bytes[20..]
        } else {
            Ipv6Packet::new_checked(&bytes[..]).expect("well-formed");
            &bytes[40..]
        };
        let theirs = TcpPacket::new_checked(rest).expect("well-formed");
        assert!(theirs.verify_checksum(&ip.src.into(), &ip.dst.into()));
        assert_eq!(theirs.seq_number().0 as u32, header.segment.seq.0);
        assert_eq!(theirs.payload(), payload);
        // smoltcp refuses port 0 and flags that contradict each other.
        let ignored = ChecksumCapabilities::ignored();
        let Ok(theirs) = TcpRepr::parse(&theirs, &ip.src.into(), &ip.dst.into(), &ignored) else { continue };
        assert_eq!(theirs.max_seg_size, header.mss);
        assert_eq!(theirs.window_scale, header.window_scale);
        assert_eq!(theirs.sack_permitted, header.sack_permitted);
        let timestamps = theirs.timestamp.map(|it| Timestamps { value: it.tsval, echo: it.tsecr });
        assert_eq!(timestamps, header.segment.timestamps);
        // It keeps three blocks.
        let blocks = theirs.sack_ranges.iter().flatten().copied();
        let ours = header.segment.sack.iter().map(|block| (block.start.0, block.end.0));
        assert!(blocks.eq(ours.take(3)));
    }
}

#[test]
fn written_again_a_segment_has_the_same_bytes() {
    let mut random = Streams::new(2, 0).stream("segments");
    for _ in 0..2_000 {
        let (ip, header) = (random_ip(&mut random), random_tcp(&mut random));
        let payload = payload(&mut random, header.segment.len);
        let bytes = write::tcp(&ip, &header, &payload).expect("short enough");
        let packet = IpPacket::parse(&bytes).expect("well-formed");
        let tcp = packet.tcp().expect("a segment");
        assert_eq!(write::tcp(&packet.ip, &tcp.header, tcp.payload).expect("short enough"), bytes);
    }
}

#[test]
fn datagrams_and_messages_read_the_same() {
    let mut random = Streams::new(3, 0).stream("datagrams");
    for _ in 0..1_000 {
        let ip = random_ip(&mut random);
        let len = random.below(100) as u32;
        let body = payload(&mut random, len);
        let bytes = write::udp(&ip, (7, 9), &body).expect("short enough");
        let packet = IpPacket::parse(&bytes).expect("well-formed");
        assert_eq!(packet.transport_checksum(), Checksum::Correct);
        let Transport::Udp(udp) = packet.transport else { panic!("a datagram") };
        assert_eq!((udp.src_port, udp.dst_port, udp.payload, udp.payload_len), (7, 9, &body[..], len));

        let code = NoticeCode { kind: random.below(256) as u8, code: random.below(256) as u8 };
        let bytes = write::icmp(&ip, code, 0x0102_0304, &body).expect("short enough");
        let packet = IpPacket::parse(&bytes).expect("well-formed");
        assert_eq!(packet.transport_checksum(), Checksum::Correct);
        let Transport::Icmp(icmp) = packet.transport else { panic!("a message") };
        assert_eq!((icmp.code, icmp.word, icmp.body), (code, 0x0102_0304, &body[..]));
    }
}

/// A segment with these options, which need not be well-formed.
fn with_options(flags: Flags, options: &[u8]) -> TcpHeader {
    let segment = Segment { flags, ..Segment::default() };
    let mut bytes = write::tcp(&V4, &TcpHeader { segment, ..TcpHeader::default() }, &[]).expect("short");
    let padded = options.len().next_multiple_of(4);
    bytes.extend_from_slice(options);
    bytes.resize(40 + padded, 0);
    bytes[32] = (5 + padded as u8 / 4) << 4 | bytes[32] & 0x0f;
    bytes[3] = bytes.len() as u8;
    checksum::repair(&mut bytes).expect("well-formed");
    let packet = IpPacket::parse(&bytes).expect("well-formed");
    packet.tcp().expect("a segment").header
}

#[test]
fn unknown_and_malformed_options_are_skipped() {
    const TIMESTAMPS: [u8; 10] = [8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let timestamps = Some(Timestamps { value: 1, echo: 2 });
    let after = |first: &[u8]| {
        let options: Vec<u8> = first.iter().chain(&TIMESTAMPS).copied().collect();
        let segment = with_options(Flags::ACK, &options).segment;
        (segment.timestamps, segment.has_unknown_options)
    };
    for (first, expected) in [
        (&[][..], (timestamps, false)),
        (&[1, 1], (timestamps, false)),
        (&[253, 4, b'L', b'H'], (timestamps, true)),
        // MPTCP: DSS with DATA_FIN.
        (&[30, 4, 0x20, 0x10], (timestamps, true)),
        (&[8, 4, 0, 0], (timestamps, true)),
        (&[2, 3, 0], (timestamps, true)),
        // Neither ends where another option can begin.
        (&[253, 0], (None, false)),
        (&[253, 1], (None, false)),
        (&[253, 40], (None, false)),
        (&[0], (None, false)),
    ] {
        assert_eq!(after(first), expected, "{first:?}");
    }
    // etherparse would lose them.
    let options: Vec<u8> = [253, 4, 0, 0].iter().chain(&TIMESTAMPS).copied().collect();
    assert!(etherparse::TcpOptionsIterator::from_slice(&options).all(|option| option.is_err()));
}

#[test]
fn options_of_a_syn_mean_nothing_elsewhere() {
    let options = [2, 4, 5, 180, 3, 3, 15, 4, 2];
    let syn = with_options(Flags::SYN, &options);
    // RFC 7323 section 2.3: a larger shift counts as 14.
    assert_eq!((syn.mss, syn.window_scale, syn.sack_permitted), (Some(1460), Some(14), true));
    let other = with_options(Flags::ACK, &options);
    assert_eq!((other.mss, other.window_scale, other.sack_permitted), (None, None, false));
}

#[test]
fn four_sack_blocks_are_read_and_backward_ones_left_out() {
    let mut options = vec![5, 34];
    for (start, end) in [(100u32, 200u32), (400, 300), (500, 500), (u32::MAX, 4)] {
        options.extend(start.to_be_bytes());
        options.extend(end.to_be_bytes());
    }
    let blocks: Vec<_> =
        with_options(Flags::ACK, &options).segment.sack.iter().map(|it| (it.start.0, it.end.0)).collect();
    assert_eq!(blocks, [(100, 200), (u32::MAX, 4)]);
}

#[test]
fn blocks_for_which_there_is_no_room_are_left_out() {
    let mut segment = Segment { timestamps: Some(Timestamps::default()), ..Segment::default() };
    for start in [1000, 3000, 5000, 7000].map(SeqNum) {
        segment.sack.push(SackBlock { start, end: start + 1000 });
    }
    let bytes = write::tcp(&V4, &TcpHeader { segment, ..TcpHeader::default() }, &[]).expect("short enough");
    let packet = IpPacket::parse(&bytes).expect("well-formed");
    assert_eq!(packet.tcp().expect("a segment").header.segment.sack[..], segment.sack[..3]);
}

/// RFC 9768 figure 4: kinds 172 and 174, and fields of three bytes. On a SYN the option is ignored, and what is no whole field is
/// padding.
#[test]
fn counters_of_marks_are_read_by_their_order() {
    let fields = [0, 0, 1, 0x12, 0x34, 0x56, 0xff, 0xff, 0xff];
    for (kind, len, expected) in [
        (172, 11, Some([Some(1), Some(0x12_3456), Some(0xff_ffff)])),
        (174, 11, Some([Some(0xff_ffff), Some(0x12_3456), Some(1)])),
        (172, 8, Some([Some(1), Some(0x12_3456), None])),
        (174, 7, Some([None, None, Some(1)])),
        (172, 2, Some([None; 3])),
        (173, 11, None),
    ] {
        let option = [&[kind, len], &fields[..usize::from(len) - 2]].concat();
        let read = |flags| with_options(flags, &option).segment.sack.ecn_counters();
        let found = read(Flags::ACK).map(|it| [it.ect0(), it.ce(), it.ect1()]);
        assert_eq!(found, expected, "kind {kind}, length {len}");
        assert_eq!(read(Flags::SYN), None);
        assert_eq!(read(Flags::SYN | Flags::ACK).is_some(), expected.is_some());
    }
}

fn with_payload(ip: &Ip, len: usize) -> Vec<u8> {
    let segment = Segment { flags: Flags::ACK, ..Segment::default() };
    write::tcp(ip, &TcpHeader { segment, ..TcpHeader::default() }, &vec![7; len]).expect("short enough")
}

/// What a network card makes of the sum of the pseudo-header.
#[test]
fn partial_checksums_are_completed() {
    let mut random = Streams::new(6, 0).stream("partial");
    for _ in 0..200 {
        let ip = random_ip(&mut random);
        let len = random.below(1000) as u32;
        let right =
            write::tcp(&ip, &random_tcp(&mut random), &payload(&mut random, len)).expect("short enough");
        let packet = IpPacket::parse(&right).expect("well-formed");
        let start = packet.header_len;
        let octets = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let mut pseudo = [octets(ip.src), octets(ip.dst)].concat();
        pseudo.extend([0, 6]);
        pseudo.extend(((right.len() - start) as u16).to_be_bytes());
        let sum: u32 = pseudo.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let folded = ((folded & 0xffff) + (folded >> 16)) as u16;
        let mut bytes = right.clone();
        bytes[start + 16..start + 18].copy_from_slice(&folded.to_be_bytes());
        checksum::complete(&mut bytes, start, start + 16).expect("within the packet");
        assert_eq!(bytes, right);
    }
    assert!(checksum::complete(&mut [0; 20], 10, 19).is_err());
    assert!(checksum::complete(&mut [0; 20], 10, 5).is_err());
    assert!(checksum::complete(&mut [0; 20], 0, usize::MAX).is_err());
}

#[test]
fn repair_mends_every_checksum() {
    let mut random = Streams::new(4, 0).stream("repair");
    for _ in 0..500 {
        let ip = random_ip(&mut random);
        let right = match random.below(3) {
            0 => write::tcp(&ip, &random_tcp(&mut random), &[1, 2, 3]),
            1 => write::udp(&ip, (1, 2), &[3]),
            _ => write::icmp(&ip, NoticeCode { kind: 8, code: 0 }, 5, &[6; 9]),
        }
        .expect("short enough");
        let mut bytes = right.clone();
        let packet = IpPacket::parse(&right).expect("well-formed");
        let at = packet.header_len
            + match packet.transport {
                Transport::Tcp(_) => 16,
                Transport::Udp(_) => 6,
                _ => 2,
            };
        bytes[at] ^= 0x55;
        assert_eq!(IpPacket::parse(&bytes).expect("well-formed").transport_checksum(), Checksum::Wrong);
        if ip.src.is_ipv4() {
            bytes[10] ^= 0xaa;
            assert_eq!(IpPacket::parse(&bytes).expect("well-formed").header_checksum(), Checksum::Wrong);
        }
        checksum::repair(&mut bytes).expect("well-formed");
        assert_eq!(bytes, right);
    }
}

/// RFC 768: all ones stand for a computed 0, and 0 for none at all, which IPv6 forbids (RFC 8200 section 8.1).
#[test]
fn a_udp_checksum_may_be_absent_in_ipv4() {
    for (ip, at, absent) in [(V4, 26, Checksum::Absent), (V6, 46, Checksum::Wrong)] {
        let mut bytes = write::udp(&ip, (1, 2), &[3; 10]).expect("short enough");
        bytes[at..at + 2].fill(0);
        assert_eq!(IpPacket::parse(&bytes).expect("well-formed").transport_checksum(), absent);
        checksum::repair(&mut bytes).expect("well-formed");
        let repaired = IpPacket::parse(&bytes).expect("well-formed").transport_checksum();
        assert_eq!(repaired, if ip == V4 { Checksum::Absent } else { Checksum::Correct });
    }
    let zero = (0..=u16::MAX)
        .map(|port| write::udp(&V4, (port, 0), &[]).expect("short enough"))
        .filter(|bytes| bytes[26..28] == [0xff, 0xff])
        .count();
    assert_eq!(zero, 1);
}

#[test]
fn edits_keep_checksums_right() {
    let mut random = Streams::new(5, 0).stream("edits");
    for _ in 0..2_000 {
        let (ip, header) = (random_ip(&mut random), random_tcp(&mut random));
        let mut bytes = write::tcp(&ip, &header, b"data").expect("short enough");
        let ecn = Ecn::from_bits(random.below(4) as u8);
        let flags = Flags(random.below(1 << 12) as u16);
        let dscp = Dscp::new(random.below(64) as u8);
        let number = |random: &mut Stream| random.below(1 << 32) as u32;
        let (seq, ack) = (SeqNum(number(&mut random)), SeqNum(number(&mut random)));
        let window = random.below(1 << 16) as u16;
        let timestamps = Timestamps { value: number(&mut random), echo: number(&mut random) };
        edit::set_ecn(&mut bytes, ecn).expect("well-formed");
        edit::set_dscp(&mut bytes, dscp).expect("well-formed");
        edit::set_tcp_flags(&mut bytes, flags).expect("well-formed");
        edit::set_tcp_numbers(&mut bytes, seq, ack).expect("well-formed");
        edit::set_tcp_window(&mut bytes, window).expect("well-formed");
        edit::set_tcp_timestamps(&mut bytes, timestamps).expect("well-formed");
        let packet = IpPacket::parse(&bytes).expect("well-formed");
        assert_ne!(packet.header_checksum(), Checksum::Wrong);
        assert_eq!(packet.transport_checksum(), Checksum::Correct);
        assert_eq!(packet.ip, Ip { ecn, dscp, ..ip });
        let (was, tcp) = (header.segment, packet.tcp().expect("a segment"));
        let expected = Segment {
            seq,
            ack,
            wnd: window.into(),
            flags,
            timestamps: was.timestamps.map(|_| timestamps),
            len: 4,
            sack: tcp.header.segment.sack,
            // Without the flag SYN, options of handshakes are.
            has_unknown_options: tcp.header.segment.has_unknown_options,
        };
        assert_eq!((tcp.header.segment, tcp.payload), (expected, &b"data"[..]));
    }
}

#[test]
fn only_larger_segments_of_a_syn_are_clamped() {
    for (flags, offered, expected) in [
        (Flags::SYN, 1460, 1240),
        (Flags::SYN | Flags::ACK, 1241, 1240),
        (Flags::SYN, 1240, 1240),
        (Flags::SYN, 536, 536),
    ] {
        for ip in [V4, V6] {
            let header = TcpHeader {
                segment: Segment { flags, ..Segment::default() },
                mss: Some(offered),
                ..TcpHeader::default()
            };
            let mut bytes = write::tcp(&ip, &header, &[]).expect("short enough");
            edit::clamp_tcp_mss(&mut bytes, 1240).expect("well-formed");
            let packet = IpPacket::parse(&bytes).expect("well-formed");
            assert_eq!(packet.transport_checksum(), Checksum::Correct);
            assert_eq!(packet.tcp().and_then(|tcp| tcp.header.mss), Some(expected));
        }
    }
}

/// Whether the options are aligned or not, and there is another unknown one between them.
#[test]
fn options_are_edited_where_they_are() {
    let block = |start: u32| SackBlock { start: SeqNum(start), end: SeqNum(start + 1000) };
    let blocks = |starts: &[u32]| {
        let mut blocks = SackBlocks::default();
        starts.iter().for_each(|&start| blocks.push(block(start)));
        blocks
    };
    for padding in 0..4 {
        for ip in [V4, V6] {
            // 20 bytes, whose options are then replaced by others of the same length.
            let mut bytes = write::tcp(&ip, &TcpHeader::default(), b"data").expect("short enough");
            let at = if ip == V4 { 40 } else { 60 };
            let mut options = vec![1; padding];
            options.extend([8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 253, 3, 7, 5, 18]);
            options.extend([[0, 0, 16, 0], [0, 0, 32, 0], [0, 0, 64, 0], [0, 0, 80, 0]].concat());
            options.resize(options.len().next_multiple_of(4), 0);
            bytes.splice(at..at, options.iter().copied());
            bytes[at - 8] = ((20 + options.len() as u8) / 4) << 4;
            let len = bytes.len() as u16;
            let (field, len) = if ip == V4 { (2, len) } else { (4, len - 40) };
            bytes[field..field + 2].copy_from_slice(&len.to_be_bytes());
            checksum::repair(&mut bytes).expect("well-formed");
            let read = |bytes: &[u8]| {
                let packet = IpPacket::parse(bytes).expect("well-formed");
                assert_eq!(packet.transport_checksum(), Checksum::Correct, "{padding}");
                let tcp = packet.tcp().expect("a segment");
                assert_eq!(tcp.payload, b"data");
                tcp.header.segment
            };
            assert_eq!(read(&bytes).sack.len(), 2);
            let timestamps = Timestamps { value: 0x1234_5678, echo: u32::MAX };
            edit::set_tcp_timestamps(&mut bytes, timestamps).expect("well-formed");
            assert_eq!(read(&bytes).timestamps, Some(timestamps));
            // As many as there is room for, the first ones first; then fewer, and none for good.
            for (new, left) in [
                (&[1, 5000, 9000][..], &[1, 5000][..]),
                (&[7], &[7]),
                (&[8, 5000], &[8]),
                (&[], &[]),
                (&[7], &[]),
            ] {
                edit::set_tcp_sack(&mut bytes, &blocks(new)).expect("well-formed");
                assert_eq!(read(&bytes).sack, blocks(left), "{padding} {new:?}");
            }
            assert_eq!(read(&bytes).timestamps, Some(timestamps));
            assert_eq!(bytes[at + padding + 10..][..3], [253, 3, 7]);
        }
    }
}

#[test]
fn fragments_are_named() {
    let mut bytes = with_payload(&V4, 64);
    let at_offset = |bytes: &mut [u8], word: u16| {
        bytes[6..8].copy_from_slice(&word.to_be_bytes());
        checksum::repair(bytes).expect("well-formed");
    };
    at_offset(&mut bytes, 0x2000);
    let packet = IpPacket::parse(&bytes).expect("well-formed");
    assert_eq!(packet.fragment, Some(Fragment { offset: 0, more: true, identification: 0 }));
    assert!(packet.tcp().is_some());
    assert_eq!(packet.transport_checksum(), Checksum::Unverifiable);
    at_offset(&mut bytes, 5);
    let packet = IpPacket::parse(&bytes).expect("well-formed");
    assert_eq!(packet.fragment, Some(Fragment { offset: 40, more: false, identification: 0 }));
    assert!(matches!(packet.transport, Transport::LaterFragment));
    assert_eq!(packet.transport_checksum(), Checksum::Absent);
}

/// Puts extension headers before the payload of an IPv6 packet. Each begins with the number of the next.
fn with_extensions(first: u8, extensions: &[u8], last_next: usize) -> Vec<u8> {
    let mut bytes = with_payload(&V6, 20);
    bytes[6] = first;
    let mut extensions = extensions.to_vec();
    extensions[last_next] = 6;
    bytes.splice(40..40, extensions);
    let len = bytes.len() as u16 - 40;
    bytes[4..6].copy_from_slice(&len.to_be_bytes());
    bytes
}

#[test]
fn extension_headers_are_skipped() {
    let options = [[60, 0, 1, 4, 0, 0, 0, 0], [43, 0, 1, 4, 0, 0, 0, 0], [6, 0, 4, 0, 0, 0, 0, 0]].concat();
    for (first, extensions, last_next) in [
        (0, options, 16),
        (51, vec![6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2], 0),
        // An atomic fragment is a whole packet.
        (44, vec![6, 0, 0, 0, 0, 0, 0, 9], 0),
        (60, [[6, 1, 1, 12], [0; 4], [0; 4], [0; 4]].concat(), 0),
    ] {
        let bytes = with_extensions(first, &extensions, last_next);
        let packet = IpPacket::parse(&bytes).expect("well-formed");
        assert_eq!((packet.protocol, packet.header_len), (6, 40 + extensions.len()), "{first}");
        assert_eq!(packet.fragment, None);
        assert_eq!(packet.tcp().expect("a segment").header.segment.len, 20);
        assert_eq!(packet.transport_checksum(), Checksum::Correct);
    }
    let later = with_extensions(44, &[6, 0, 0, 8, 0, 0, 0, 9], 0);
    let packet = IpPacket::parse(&later).expect("well-formed");
    assert_eq!(packet.fragment, Some(Fragment { offset: 8, more: false, identification: 9 }));
    assert!(matches!(packet.transport, Transport::LaterFragment));
    // Without end.
    let endless = with_extensions(0, &[0, 200, 0, 0, 0, 0, 0, 0], 2);
    let error = IpPacket::parse(&endless).expect_err("cut off");
    assert_eq!(error, Error::Truncated { header: "IPv6 extension", needed: 1608, found: 48 });
}

#[test]
fn errors_quote_the_packet() {
    for (ip, codes) in [(V4, [3, 4, 41]), (V6, [1, 2, 3])] {
        let segment = Segment { seq: SeqNum(77), ..Segment::default() };
        let header = TcpHeader { src_port: 5, dst_port: 6, segment, ..TcpHeader::default() };
        let quoted = write::tcp(&ip, &header, &[0; 100]).expect("short enough");
        let back = Ip { src: ip.dst, dst: ip.src, ..ip };
        let header_len = if ip == V4 { 20 } else { 40 };
        let quote = |kind, len| {
            let code = NoticeCode { kind, code: 0 };
            let bytes = write::icmp(&back, code, 1400, &quoted[..len]).expect("short enough");
            let packet = IpPacket::parse(&bytes).expect("well-formed");
            let Transport::Icmp(icmp) = packet.transport else { panic!("a message") };
            icmp.quote()
        };
        let all = Quote { src: ip.src, dst: ip.dst, protocol: 6, ports: Some((5, 6)), seq: Some(SeqNum(77)) };
        for kind in codes {
            assert_eq!(quote(kind, header_len + 8), Some(all));
            assert_eq!(quote(kind, header_len + 7), Some(Quote { seq: None, ..all }));
            assert_eq!(quote(kind, header_len), Some(Quote { seq: None, ports: None, ..all }));
            assert_eq!(quote(kind, header_len - 1), None);
        }
        // An echo request quotes nothing.
        assert_eq!(quote(if ip == V4 { 8 } else { 128 }, header_len + 8), None);
    }
    let mtu = |ip: &Ip, kind, code| {
        let bytes = write::icmp(ip, NoticeCode { kind, code }, 1400, &[]).expect("short enough");
        let Transport::Icmp(icmp) = IpPacket::parse(&bytes).expect("well-formed").transport else {
            panic!("a message")
        };
        icmp.next_hop_mtu()
    };
    assert_eq!((mtu(&V4, 3, 4), mtu(&V4, 3, 3), mtu(&V6, 2, 0)), (Some(1400), None, Some(1400)));
}

#[test]
fn frames_of_every_link_type() {
    let packet = with_payload(&V4, 1);
    let ethernet = [&[0; 12][..], &[0x08, 0x00]].concat();
    let tagged = [&[0; 12][..], &[0x88, 0xa8, 0, 1, 0x81, 0x00, 0, 2, 0x08, 0x00]].concat();
    let cooked = [&[0; 14][..], &[0x08, 0x00]].concat();
    let cooked2 = [&[0x08, 0x00][..], &[0; 18]].concat();
    for (number, header) in [
        (1, ethernet.clone()),
        (1, tagged),
        (113, cooked),
        (276, cooked2),
        (0, vec![2, 0, 0, 0]),
        (0, vec![0, 0, 0, 2]),
        (9, vec![0xff, 0x03, 0, 0x21]),
        (104, vec![0x0f, 0, 0x08, 0]),
        (101, vec![]),
        (228, vec![]),
    ] {
        let link_type = LinkType::from_pcap(number).expect("known");
        // Ethernet pads.
        let frame = [&header[..], &packet, &[0; 5]].concat();
        let read = IpPacket::from_frame(link_type, &frame, frame.len()).expect("well-formed");
        assert_eq!((read.bytes, read.len), (&packet[..], packet.len()), "{number}");
        // Cut off after the fixed part of the TCP header.
        let cut = &frame[..header.len() + 40];
        let read = IpPacket::from_frame(link_type, cut, frame.len()).expect("well-formed");
        assert!(read.is_cut());
        assert_eq!(read.tcp().expect("a segment").header.segment.len, 1);
        assert_eq!(read.transport_checksum(), Checksum::Unverifiable);
        for len in 0..header.len() {
            assert!(link_type.network_layer(&frame[..len]).is_err());
        }
    }
    assert!(LinkType::from_pcap(147).is_none());
    let arp = [&[0; 12][..], &[0x08, 0x06]].concat();
    let error = LinkType::ETHERNET.network_layer(&arp).expect_err("no IP");
    assert_eq!(error.to_string(), "not an IP packet: protocol 0x0806 (ARP)");
}

/// Captures often keep 64 or 96 bytes of a frame.
#[test]
fn options_that_a_capture_cut_off_are_missing() {
    let timestamps = Some(Timestamps { value: 1, echo: 2 });
    let mut segment = Segment { flags: Flags::ACK, timestamps, ..Segment::default() };
    segment.sack.push(SackBlock { start: SeqNum(1), end: SeqNum(2) });
    let bytes = write::tcp(&V4, &TcpHeader { segment, ..TcpHeader::default() }, &[9; 50]).expect("short");
    let read = |len: usize| {
        let packet = IpPacket::parse_captured(&bytes[..len], bytes.len()).expect("well-formed");
        packet.tcp().map(|tcp| tcp.header.segment)
    };
    let whole = Segment { len: 50, ..segment };
    assert_eq!(read(64), Some(whole));
    assert_eq!(read(63), Some(Segment { sack: SackBlocks::default(), ..whole }));
    assert_eq!(read(51), Some(Segment { sack: SackBlocks::default(), timestamps: None, ..whole }));
    assert_eq!(read(39), None);
}

#[test]
fn errors_say_what_is_wrong() {
    let mut bytes = with_payload(&V4, 1);
    let error = |bytes: &[u8]| IpPacket::parse(bytes).expect_err("malformed").to_string();
    assert_eq!(error(&[]), "the IP header is cut off: it needs 20 bytes, and 0 are there");
    assert_eq!(error(&bytes[..19]), "the IPv4 header is cut off: it needs 20 bytes, and 19 are there");
    assert_eq!(error(&bytes[..40]), "malformed IP header: the packet is longer than its frame");
    bytes[3] = 19;
    assert_eq!(error(&bytes), "malformed IP header: the packet is shorter than its header");
    bytes[0] = 0x44;
    assert_eq!(error(&bytes), "malformed IPv4 header: the header length is less than 20");
    bytes[0] = 0x55;
    assert_eq!(error(&bytes), "malformed IP header: the version is neither 4 nor 6");
    let mut bytes = with_payload(&V4, 1);
    bytes[32] = 0x40;
    let packet = IpPacket::parse(&bytes).expect("an IP packet");
    let Transport::Unreadable(error) = packet.transport else { panic!("unreadable") };
    assert_eq!(error.to_string(), "malformed TCP header: the data offset is less than 5");
    let too_long = write::udp(&V4, (1, 2), &[0; 65_528]).expect_err("too long");
    assert_eq!(too_long.to_string(), "a packet of 65536 bytes; at most 65,535 fit its length field");
}

#[test]
fn options_are_in_the_order_of_linux() {
    let (nop, mss, scale, may_sack): (&[u8], &[u8], &[u8], &[u8]) =
        (&[1], &[2, 4, 5, 180], &[3, 3, 7], &[4, 2]);
    let stamps: &[u8] = &[8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    for (has_sack, has_stamps, expected) in [
        (true, true, [mss, may_sack, stamps, nop, scale].concat()),
        (true, false, [mss, nop, nop, may_sack, nop, scale].concat()),
        (false, true, [mss, nop, nop, stamps, nop, scale].concat()),
        (false, false, [mss, nop, scale].concat()),
    ] {
        let segment = Segment {
            flags: Flags::SYN,
            timestamps: has_stamps.then_some(Timestamps { value: 1, echo: 2 }),
            ..Segment::default()
        };
        let header = TcpHeader {
            segment,
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: has_sack,
            ..TcpHeader::default()
        };
        let bytes = write::tcp(&V4, &header, &[]).expect("it fits");
        assert_eq!(bytes[40..], expected);
    }
}
