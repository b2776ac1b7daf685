//! Super-packets: cut into packets, and made of them.

use lasthop_base::{Stream, Streams};
use lasthop_proto::tcp::{Flags, Segment, SeqNum, Timestamps};
use lasthop_proto::{Dscp, Ecn, NoticeCode};
use lasthop_wire::offload::{self, Cwr};
use lasthop_wire::{Checksum, Ip, IpPacket, TcpHeader, Transport, checksum, write};

use crate::packets::{V4, V6, payload, random_ip, random_tcp, with_payload};

#[test]
fn super_packets_are_recognised() {
    let mut bytes = with_payload(&V4, 3000);
    let packet = IpPacket::parse(&bytes).expect("well-formed");
    assert!(packet.is_super_packet(1500) && !packet.is_super_packet(3040) && !packet.without_length);
    // Above 65,535 bytes the field is 0, and the length is that of the frame.
    for (ip, header_len) in [(V4, 20), (V6, 40)] {
        let mut bytes = with_payload(&ip, 1000);
        let field = if header_len == 20 { 2 } else { 4 };
        bytes[field..field + 2].fill(0);
        bytes.resize(100_000, 0);
        let packet = IpPacket::parse(&bytes).expect("well-formed");
        assert!(packet.without_length && packet.is_super_packet(1500));
        assert_eq!(packet.tcp().expect("a segment").header.segment.len, 100_000 - header_len - 20);
    }
    // Checksum offload: the sum of the pseudo-header alone.
    let pseudo: u32 = (10 << 8) + 1 + (10 << 8) + 2 + 6 + 3020;
    bytes[36..38].copy_from_slice(&(pseudo as u16).to_be_bytes());
    assert_eq!(IpPacket::parse(&bytes).expect("well-formed").transport_checksum(), Checksum::Partial);
    bytes[37] ^= 1;
    assert_eq!(IpPacket::parse(&bytes).expect("well-formed").transport_checksum(), Checksum::Wrong);
}

/// With accurate ECN, CWR is a bit of a counter, which every segment has.
#[test]
fn the_ace_field_is_in_every_segment() {
    let segment = Segment { flags: Flags::ACK.with_ace(7), ..Segment::default() };
    let header = TcpHeader { segment, ..TcpHeader::default() };
    let whole = write::tcp(&V4, &header, &[0; 3000]).expect("short enough");
    let packet = IpPacket::parse(&whole).expect("well-formed");
    for (cwr, expected) in [(Cwr::FirstOnly, [7, 5, 5]), (Cwr::Every, [7, 7, 7])] {
        let pieces = offload::segments(&packet, 1000, cwr).expect("TCP");
        let ace = |piece: Vec<u8>| {
            IpPacket::parse(&piece).expect("well-formed").tcp().expect("TCP").header.segment.flags.ace()
        };
        assert_eq!(pieces.map(ace).collect::<Vec<_>>(), expected);
    }
}

/// The segments of a super-packet, put together, are its payload; each has the header of the super-packet, with the
/// fields of its own place. The kernel's segments are compared in `crates/live/tests/live/linux/frames.rs`.
#[test]
fn super_packets_are_cut_into_segments() {
    let mut random = Streams::new(5, 0).stream("segments");
    for _ in 0..300 {
        let ip = random_ip(&mut random);
        let (size, len) = (1 + random.below(1500) as usize, random.below(20_000) as u32);
        let data = payload(&mut random, len);
        let is_tcp = random.bernoulli(0.5);
        let header = random_tcp(&mut random);
        let whole = match is_tcp {
            true => write::tcp(&ip, &header, &data),
            false => write::udp(&ip, (header.src_port, header.dst_port), &data),
        }
        .expect("short enough");
        let packet = IpPacket::parse(&whole).expect("well-formed");
        let pieces: Vec<_> = offload::segments(&packet, size, Cwr::FirstOnly).expect("TCP or UDP").collect();
        assert_eq!(pieces.len(), data.len().div_ceil(size).max(1));
        let mut joined = Vec::new();
        for (number, piece) in pieces.iter().enumerate() {
            let (is_first, is_last) = (number == 0, number + 1 == pieces.len());
            let segment = IpPacket::parse(piece).expect("well-formed");
            assert_eq!((segment.len, segment.transport_checksum()), (piece.len(), Checksum::Correct));
            assert_ne!(segment.header_checksum(), Checksum::Wrong);
            let identification = match ip.src.is_ipv4() {
                true => ip.identification.wrapping_add(number as u16),
                false => 0,
            };
            assert_eq!(segment.ip, Ip { identification, ..ip });
            match segment.transport {
                Transport::Tcp(tcp) => {
                    let mut flags = packet.tcp().expect("a segment").header.segment.flags.0;
                    flags &= if is_first { !0 } else { !0x80 };
                    flags &= if is_last { !0 } else { !0x09 };
                    let expected = Segment {
                        seq: packet.tcp().expect("a segment").header.segment.seq + joined.len() as u32,
                        flags: Flags(flags),
                        len: tcp.payload.len() as u32,
                        ..packet.tcp().expect("a segment").header.segment
                    };
                    assert_eq!(tcp.header.segment, expected);
                    joined.extend_from_slice(tcp.payload);
                }
                Transport::Udp(udp) => joined.extend_from_slice(udp.payload),
                other => panic!("{other:?}"),
            }
            assert!(is_last || joined.len() == (number + 1) * size);
        }
        assert_eq!(joined, data);
    }
}

/// A TCP header that may stand in a super-packet, with a gap in sequence numbers to come.
fn random_segment(random: &mut Stream) -> TcpHeader {
    let mut header = random_tcp(random);
    // ACK, with any of PSH, ECE and CWR, and the bit of accurate ECN.
    header.segment.flags = Flags(0x10 | random.below(1 << 9) as u16 & 0x1c8);
    (header.urgent_pointer, header.mss, header.window_scale, header.sack_permitted) = (0, None, None, false);
    header
}

/// Packets that were merged are cut into themselves, whatever their headers say.
#[test]
fn merged_packets_are_cut_into_themselves() {
    let mut random = Streams::new(6, 0).stream("trains");
    let (mut merged, mut largest, mut with_last) = ([0; 2], [0; 2], 0);
    for _ in 0..1500 {
        let ip = random_ip(&mut random);
        let is_tcp = random.bernoulli(0.6);
        let ports = (random.below(1 << 16) as u16, random.below(1 << 16) as u16);
        let mut header = random_segment(&mut random);
        if random.bernoulli(0.9) {
            header.segment.flags = Flags(header.segment.flags.0 & !0x08);
        }
        let size = 1 + random.below(1500) as u32;
        let mut train = offload::Train::default();
        let mut pushed: Vec<Vec<u8>> = Vec::new();
        for number in 0..1 + random.below(80) as u16 {
            let len = if random.bernoulli(0.02) { random.below(1501) as u32 } else { size };
            let ip = match ip.src.is_ipv4() {
                true => Ip { identification: ip.identification.wrapping_add(number), ..ip },
                false => ip,
            };
            let data = payload(&mut random, len);
            let mut packet = match is_tcp {
                true => write::tcp(&ip, &header, &data),
                false => write::udp(&ip, ports, &data),
            }
            .expect("short enough");
            if random.bernoulli(0.03) {
                let at = random.below(60).min(packet.len() as u64 - 1) as usize;
                packet[at] ^= 1 << random.below(8);
            }
            header.segment.seq += len;
            // CWR is set once, FIN and PSH at the end.
            header.segment.flags = Flags(header.segment.flags.0 & !0x80);
            if random.bernoulli(0.015) {
                header.segment.flags =
                    Flags(header.segment.flags.0 | [0x01, 0x08, 0x09][random.below(3) as usize]);
            }
            if checksum::repair(&mut packet).is_err() {
                continue;
            }
            let parsed = IpPacket::parse(&packet).expect("it has been read");
            // Callers push packets with correct checksums only.
            if parsed.transport_checksum() != Checksum::Correct {
                continue;
            }
            if !train.push(&parsed) {
                break;
            }
            // Without what may follow the IP packet.
            pushed.push(parsed.bytes.to_vec());
        }
        assert_eq!(train.count(), pushed.len());
        if let [only] = &pushed[..] {
            assert_eq!(train.single(), Some(&only[..]));
        }
        let Some(whole) = train.merged() else { continue };
        merged[usize::from(whole.is_tcp)] += 1;
        let packet = IpPacket::parse(whole.bytes).expect("well-formed");
        assert_eq!((packet.header_len, packet.len), (whole.ip_len, whole.bytes.len()));
        assert_eq!(whole.is_tcp, packet.tcp().is_some());
        assert_eq!(whole.transport_len, packet.tcp().map_or(8, |tcp| tcp.header_len));
        assert_eq!(packet.transport_checksum(), Checksum::Partial);
        assert_ne!(packet.header_checksum(), Checksum::Wrong);
        let cut = offload::segments(&packet, whole.segment_size, Cwr::FirstOnly).expect("TCP or UDP");
        assert!(cut.eq(pushed.iter().cloned()));
        let longest = &mut largest[usize::from(whole.is_tcp)];
        *longest = pushed.len().max(*longest);
        with_last += usize::from(packet.tcp().is_some_and(|tcp| tcp.header.segment.flags.0 & 0x09 != 0));
    }
    assert!(merged[0] > 300 && merged[1] > 400 && with_last > 100, "{merged:?} {with_last}");
    assert_eq!(largest, [64; 2]);
}

#[test]
fn a_single_packet_is_left_as_it_is() {
    let packet = write::udp(&V4, (5, 6), &[7; 9]).expect("short enough");
    let mut train = offload::Train::default();
    assert!(train.single().is_none() && train.merged().is_none());
    assert!(train.push(&IpPacket::parse(&packet).expect("well-formed")));
    assert!(train.merged().is_none());
    assert_eq!(train.single(), Some(&packet[..]));
    train.clear();
    assert_eq!((train.count(), train.single()), (0, None));
}

/// Two segments of one connection, the second of which `change` makes to differ: whether they are merged.
fn are_merged(change: impl Fn(&mut Ip, &mut TcpHeader, &mut Vec<u8>)) -> bool {
    let segment = Segment {
        seq: SeqNum(u32::MAX - 50),
        ack: SeqNum(9),
        wnd: 500,
        flags: Flags(0x10),
        timestamps: Some(Timestamps { value: 5, echo: 6 }),
        ..Segment::default()
    };
    let header = TcpHeader { src_port: 5, dst_port: 6, segment, ..TcpHeader::default() };
    let first = write::tcp(&V4, &header, &[7; 100]).expect("short enough");
    let mut train = offload::Train::default();
    assert!(train.push(&IpPacket::parse(&first).expect("well-formed")));
    let (mut ip, mut next, mut data) = (Ip { identification: 1, ..V4 }, header, vec![8; 100]);
    next.segment.seq = header.segment.seq + 100;
    change(&mut ip, &mut next, &mut data);
    let second = write::tcp(&ip, &next, &data).expect("short enough");
    let is_merged = train.push(&IpPacket::parse(&second).expect("well-formed"));
    assert_eq!(is_merged, train.merged().is_some());
    is_merged
}

/// As the kernel's GRO: only what the receiver can take for one segment.
#[test]
fn segments_are_merged_if_they_differ_in_their_place_only() {
    assert!(are_merged(|_, _, _| {}));
    assert!(are_merged(|_, _, data| data.truncate(1)));
    for last in [0x01, 0x08, 0x09] {
        assert!(are_merged(|_, header, _| header.segment.flags = Flags(0x10 | last)));
    }
    assert!(!are_merged(|_, header, _| header.segment.seq += 1));
    assert!(!are_merged(|_, header, _| header.segment.ack = SeqNum(10)));
    assert!(!are_merged(|_, header, _| header.segment.wnd = 501));
    assert!(!are_merged(|_, header, _| header.dst_port = 7));
    assert!(!are_merged(|_, header, _| header.segment.timestamps = Some(Timestamps { value: 6, echo: 6 })));
    assert!(!are_merged(|_, header, _| header.segment.timestamps = None));
    // SYN, RST, URG, ECE, CWR, the bit of accurate ECN, and none.
    for flags in [0x12, 0x14, 0x30, 0x50, 0x90, 0x110, 0x00] {
        assert!(!are_merged(|_, header, _| header.segment.flags = Flags(flags)), "{flags:#x}");
    }
    assert!(!are_merged(|_, _, data| data.clear()));
    assert!(!are_merged(|_, _, data| data.push(8)));
    assert!(!are_merged(|ip, _, _| ip.ecn = Ecn::Ce));
    assert!(!are_merged(|ip, _, _| ip.identification = 2));
    assert!(!are_merged(|ip, _, _| ip.dont_fragment = false));
}

/// A train ends with a segment that has FIN or PSH, or less data, and has none of those that open or reset a
/// connection, or have urgent data.
#[test]
fn trains_begin_and_end_with_certain_segments() {
    let pushed = |flags: u16, len: usize| {
        let segment = Segment { flags: Flags(flags), ..Segment::default() };
        let header = TcpHeader { segment, ..TcpHeader::default() };
        let packet = write::tcp(&V6, &header, &vec![7; len]).expect("short enough");
        let mut train = offload::Train::default();
        let begins = train.push(&IpPacket::parse(&packet).expect("well-formed"));
        let header = TcpHeader {
            segment: Segment { seq: SeqNum(len as u32), flags: Flags(0x10), ..segment },
            ..header
        };
        let next = write::tcp(&V6, &header, &[8]).expect("short enough");
        (begins, begins && train.push(&IpPacket::parse(&next).expect("well-formed")))
    };
    assert_eq!(pushed(0x10, 100), (true, true));
    for last in [0x11, 0x18] {
        assert_eq!(pushed(last, 100), (true, false));
    }
    for other in [0x12, 0x14, 0x30, 0x00] {
        assert_eq!(pushed(other, 100), (false, false));
    }
    assert_eq!(pushed(0x10, 0), (false, false));
}

#[test]
fn parts_of_packets_are_not_merged() {
    let segment = Segment { flags: Flags(0x10), ..Segment::default() };
    let header = TcpHeader { segment, ..TcpHeader::default() };
    let packet = write::tcp(&V6, &header, &[7; 100]).expect("short enough");
    let following = TcpHeader { segment: Segment { seq: SeqNum(100), ..segment }, ..header };
    let next = write::tcp(&V6, &following, &[7; 100]).expect("short enough");
    let mut train = offload::Train::default();
    let part = |whole: &[u8], train: &mut offload::Train| {
        train.push(&IpPacket::parse_captured(&whole[..150], whole.len()).expect("whole headers"))
    };
    assert!(!part(&packet, &mut train));
    assert!(train.push(&IpPacket::parse(&packet).expect("well-formed")));
    assert!(!part(&next, &mut train));
    assert!(train.push(&IpPacket::parse(&next).expect("well-formed")));
}

#[test]
fn datagrams_without_a_place_in_a_super_packet_are_left_out() {
    let datagram = |ip: &Ip, len: usize| write::udp(ip, (5, 6), &vec![7; len]).expect("short enough");
    let push = |train: &mut offload::Train, packet: &[u8]| {
        train.push(&IpPacket::parse(packet).expect("well-formed"))
    };
    let next = |number: u16| Ip { identification: V4.identification.wrapping_add(number), ..V4 };
    let mut train = offload::Train::default();
    // Without a checksum, or without data, a fragment, and another protocol.
    let mut absent = datagram(&V4, 100);
    absent[26..28].fill(0);
    let mut fragment = datagram(&V4, 100);
    fragment[6] |= 0x20;
    let ping = write::icmp(&V4, NoticeCode { kind: 8, code: 0 }, 5, &[6; 30]).expect("short enough");
    for packet in [absent, datagram(&V4, 0), fragment, ping] {
        assert!(!push(&mut train, &packet));
    }
    // A longer one, one without a checksum, and one after a shorter one.
    assert!(push(&mut train, &datagram(&V4, 100)));
    let mut absent = datagram(&next(1), 100);
    absent[26..28].fill(0);
    assert!(!push(&mut train, &absent));
    assert!(!push(&mut train, &datagram(&next(1), 101)));
    assert!(push(&mut train, &datagram(&next(1), 99)));
    assert!(!push(&mut train, &datagram(&next(2), 99)));
    assert_eq!(train.count(), 2);
    // Other fields of the header than those that follow.
    for other in [
        next(2),
        Ip { dscp: Dscp::new(9), ..next(1) },
        Ip { hop_limit: V4.hop_limit - 1, ..next(1) },
        Ip { ecn: Ecn::Ce, ..next(1) },
    ] {
        train.clear();
        assert!(push(&mut train, &datagram(&V4, 100)));
        assert!(!push(&mut train, &datagram(&other, 100)), "{other:?}");
    }
    // More than fit into a packet.
    train.clear();
    assert!(push(&mut train, &datagram(&V4, 40_000)));
    assert!(!push(&mut train, &datagram(&next(1), 30_000)));
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let whole = with_payload(&V4, 3000);
    let packet = IpPacket::parse(&whole).expect("well-formed");
    assert!(offload::segments(&packet, 0, Cwr::FirstOnly).is_err());
    let mut fragment = whole.clone();
    fragment[6] |= 0x20;
    assert!(
        offload::segments(&IpPacket::parse(&fragment).expect("well-formed"), 1448, Cwr::FirstOnly).is_err()
    );
    let cut = IpPacket::parse_captured(&whole[..200], whole.len()).expect("well-formed");
    assert!(offload::segments(&cut, 1448, Cwr::FirstOnly).is_err());
    let ping = write::icmp(&V4, NoticeCode { kind: 8, code: 0 }, 5, &[6; 3000]).expect("short enough");
    assert!(offload::segments(&IpPacket::parse(&ping).expect("well-formed"), 1448, Cwr::FirstOnly).is_err());
}
