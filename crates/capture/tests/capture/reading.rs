//! Files of both formats, written here by hand, as columns.

use std::env;
use std::net::IpAddr;

use lasthop_base::{Stream, Streams};
use lasthop_capture::{LeftOut, Packets, ReadError};
use lasthop_proto::tcp::{Flags, SackBlock, Segment, SeqNum, Timestamps};
use lasthop_proto::{Dscp, Ecn};
use lasthop_wire::{Ip, TcpHeader, write};

use crate::columns;

const ETHERNET: u32 = 1;
const RAW: u32 = 101;
const LINUX_SLL2: u32 = 276;
const SECOND: u64 = 1_000_000_000;

/// A captured frame: interface, time in units of its file, stored bytes, original length.
type Frame = (u32, u64, Vec<u8>, usize);

#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u16(self, number: u16) -> [u8; 2] {
        if let Order::Little = self { number.to_le_bytes() } else { number.to_be_bytes() }
    }

    fn u32(self, number: u32) -> [u8; 4] {
        if let Order::Little = self { number.to_le_bytes() } else { number.to_be_bytes() }
    }

    fn words(self, numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|&number| self.u32(number)).collect()
    }
}

/// A pcap file; the time unit follows from the magic number.
fn pcap(order: Order, magic: u32, link_type: u32, frames: &[Frame]) -> Vec<u8> {
    let unit = if magic == 0xa1b2_3c4d { SECOND } else { SECOND / 1000 };
    let mut file = order.words(&[magic, 0x0004_0002, 0, 0, 65_535, link_type]);
    for (_, ticks, bytes, len) in frames {
        let time = [(ticks / unit) as u32, (ticks % unit) as u32];
        file.extend(order.words(&[time[0], time[1], bytes.len() as u32, *len as u32]));
        file.extend(bytes);
    }
    file
}

fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = body.len().next_multiple_of(4) - body.len();
    let len = (12 + body.len() + padding) as u32;
    [&order.words(&[kind, len]), body, &vec![0; padding], &order.u32(len)].concat()
}

fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let padding = value.len().next_multiple_of(4) - value.len();
    [&order.u16(code)[..], &order.u16(value.len() as u16), value, &vec![0; padding]].concat()
}

fn section(order: Order) -> Vec<u8> {
    block(order, 0x0a0d_0d0a, &order.words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]))
}

fn interface(order: Order, link_type: u32, options: &[u8]) -> Vec<u8> {
    block(order, 1, &[&order.u16(link_type as u16)[..], &[0; 6], options].concat())
}

fn enhanced(order: Order, (interface, ticks, bytes, len): &Frame) -> Vec<u8> {
    let words = [*interface, (ticks >> 32) as u32, *ticks as u32, bytes.len() as u32, *len as u32];
    block(order, 6, &[&order.words(&words), &bytes[..]].concat())
}

fn ip(is_v4: bool, id: u16) -> Ip {
    let address = |host: u8| -> IpAddr {
        if is_v4 { [192, 0, 2, host].into() } else { [0x2001, 0xdb8, 0, 0, 0, 0, 0, host.into()].into() }
    };
    Ip {
        src: address(1),
        dst: address(2),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        hop_limit: 64,
        identification: id,
        dont_fragment: true,
    }
}

/// An acknowledgement with two SACK blocks and timestamps.
fn selective() -> TcpHeader {
    let timestamps = Some(Timestamps { value: 7, echo: 9 });
    let (seq, ack) = (SeqNum(5), SeqNum(1000));
    let mut segment = Segment { seq, ack, flags: Flags::ACK, timestamps, ..Segment::default() };
    segment.sack.push(SackBlock { start: SeqNum(3000), end: SeqNum(4000) });
    segment.sack.push(SackBlock { start: SeqNum(u32::MAX), end: SeqNum(5) });
    TcpHeader { src_port: 443, dst_port: 50_000, segment, ..TcpHeader::default() }
}

fn tcp(is_v4: bool, id: u16, payload: usize) -> Vec<u8> {
    write::tcp(&ip(is_v4, id), &selective(), &vec![1; payload]).expect("short enough")
}

fn framed(header: &[u8], packet: &[u8]) -> Vec<u8> {
    [header, packet].concat()
}

fn whole(interface: u32, ticks: u64, bytes: Vec<u8>) -> Frame {
    let len = bytes.len();
    (interface, ticks, bytes, len)
}

fn read(file: &[u8]) -> Packets {
    Packets::read(file).expect("a capture")
}

#[test]
fn both_formats_in_both_orders_have_the_same_packets() {
    let frames = [whole(0, 3, tcp(true, 1, 100)), whole(0, 5_000_000_007, tcp(true, 2, 0))];
    let expected = read(&pcap(Order::Little, 0xa1b2_3c4d, RAW, &frames));
    assert_eq!(expected.time_ns, [3, 5_000_000_007]);
    assert_eq!((&expected.payload[..], &expected.identification[..]), (&[100, 0][..], &[1, 2][..]));
    assert!(expected.source[0] == expected.source[1] && expected.source[0] != expected.target[0]);
    assert_eq!((expected.source_port[0], expected.target_port[0]), (443, 50_000));
    assert_eq!((expected.seq[0], expected.ack[0], expected.flags[0]), (5, 1000, 16));
    assert!(expected.host[0] == expected.host[1] && expected.host[0] != expected.source[0]);
    assert_eq!((expected.timestamp[0], expected.echo[0], expected.protocol[0]), (7, 9, 6));
    assert_eq!((&expected.sacks[..], &expected.sack_at[..]), (&[2, 2][..], &[0, 2][..]));
    assert_eq!(expected.sack_start[..2], [3000, i64::from(u32::MAX)]);
    assert_eq!(expected.sack_end[..2], [4000, 5]);
    for order in [Order::Little, Order::Big] {
        assert_eq!(read(&pcap(order, 0xa1b2_3c4d, RAW, &frames)), expected);
        let nanoseconds = option(order, 9, &[9]);
        let blocks = [section(order), interface(order, RAW, &nanoseconds)];
        let packets = frames.iter().map(|frame| enhanced(order, frame));
        assert_eq!(read(&blocks.into_iter().chain(packets).collect::<Vec<_>>().concat()), expected);
        let microseconds = read(&pcap(order, 0xa1b2_c3d4, RAW, &frames));
        assert_eq!(microseconds.time_ns, [3000, 5_000_000_007_000]);
    }
}

/// Units of timestamps, powers of ten and of two, and the offset.
#[test]
fn interfaces_of_pcapng_have_time_units() {
    let order = Order::Big;
    let offset = 1_700_000_000_u64.to_be_bytes();
    let units = [
        (vec![], 1_500_000, 1_500_000_000),
        (option(order, 9, &[3]), 1_500, 1_500_000_000),
        (option(order, 9, &[0x8a]), 1_536, 1_500_000_000),
        ([option(order, 9, &[0]), option(order, 14, &offset)].concat(), 2, 1_700_000_002_000_000_000),
        // An implausible unit is left out, as is what follows a cut option.
        (option(order, 9, &[100]), 1_500_000, 1_500_000_000),
        ([option(order, 2, b"eth0"), vec![0, 9, 0, 200, 3]].concat(), 1_500_000, 1_500_000_000),
    ];
    for (options, ticks, expected_ns) in units {
        let frame = whole(0, ticks, tcp(true, 1, 1));
        let file = [section(order), interface(order, RAW, &options), enhanced(order, &frame)].concat();
        assert_eq!(read(&file).time_ns, [expected_ns], "{options:?}");
    }
}

/// Interfaces count over all sections, and each section has its byte order.
#[test]
fn sections_and_interfaces_are_separate() {
    let (one, other) = (Order::Little, Order::Big);
    let ethernet = framed(&[&[0; 12][..], &[0x08, 0]].concat(), &tcp(true, 2, 1));
    let file = [
        section(one),
        interface(one, RAW, &[]),
        interface(one, 147, &[]),
        enhanced(one, &whole(0, 1, tcp(true, 1, 1))),
        enhanced(one, &whole(1, 1, tcp(true, 9, 1))),
        section(other),
        interface(other, ETHERNET, &[]),
        enhanced(other, &whole(0, 2, ethernet)),
    ];
    let packets = read(&file.concat());
    assert_eq!((packets.interface, packets.identification), (vec![0, 2], vec![1, 2]));
    assert!(!packets.damaged);
}

#[test]
fn statistics_and_packets_without_times_are_counted() {
    let order = Order::Little;
    let dropped = [option(order, 5, &3_u64.to_le_bytes()), option(order, 7, &u64::MAX.to_le_bytes())];
    let file = [
        section(order),
        interface(order, RAW, &[]),
        enhanced(order, &whole(0, 1, tcp(true, 1, 1))),
        block(order, 3, &[0; 8]),
        block(order, 5, &[&[0; 12], &dropped.concat()[..]].concat()),
        block(order, 0xbad, &[0; 20]),
    ];
    let packets = read(&file.concat());
    assert_eq!((packets.dropped, packets.untimed, packets.damaged), (u64::MAX, 1, false));
}

#[test]
fn every_framing_of_a_packet_reads_the_same() {
    let packet = tcp(true, 1, 10);
    let expected = read(&pcap(Order::Little, 0xa1b2_c3d4, RAW, &[whole(0, 0, packet.clone())]));
    let addresses = [0; 12];
    let inner = [&addresses[..], &[0x08, 0]].concat();
    let snap = [0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0];
    let session = [0x88, 0x64, 0x11, 0, 0, 1, 0, 0, 0, 0x21];
    for (link_type, header) in [
        (ETHERNET, [&addresses[..], &[0x08, 0]].concat()),
        (ETHERNET, [&addresses[..], &[0x81, 0, 0, 5, 0x08, 0]].concat()),
        (ETHERNET, [&addresses[..], &session].concat()),
        (ETHERNET, [&addresses[..], &[0x81, 0, 0, 5], &session].concat()),
        (113, [&[0; 14][..], &[0x08, 0]].concat()),
        (0, vec![2, 0, 0, 0]),
        (9, vec![0xff, 0x03, 0x00, 0x21]),
        (9, vec![0x00, 0x21]),
        (9, vec![0x21]),
        (50, vec![0x0f, 0, 0x08, 0]),
        (51, vec![0x11, 0, 0, 1, 0, 0, 0, 0x21]),
        (104, vec![0x8f, 0, 0x08, 0]),
        (166, vec![0, 0x03, 0, 0x21]),
        (204, vec![1, 0xff, 0x03, 0, 0x21]),
        (ETHERNET, [&addresses[..], &[0, 99], &snap].concat()),
        (ETHERNET, [&addresses[..], &[0x81, 0, 0, 5, 0, 99], &snap].concat()),
        (ETHERNET, [&addresses[..], &[0, 99, 6, 6, 3]].concat()),
        (113, [&[0; 14][..], &[0, 4], &snap].concat()),
        (113, [&[0; 14][..], &[0x81, 0, 0, 5, 0x08, 0]].concat()),
        (276, [&[0x81, 0][..], &[0; 18], &[0, 5, 0x08, 0]].concat()),
        // One label of MPLS and two; Ethernet in it with a control word and without.
        (ETHERNET, [&addresses[..], &[0x88, 0x47, 0, 1, 1, 64]].concat()),
        (ETHERNET, [&addresses[..], &[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64]].concat()),
        (ETHERNET, [&addresses[..], &[0x88, 0x48, 0, 1, 1, 64, 0, 0, 0, 7], &inner[..]].concat()),
        (ETHERNET, [&addresses[..], &[0x88, 0x47, 0, 1, 1, 64, 0x4a], &inner[1..]].concat()),
        (9, vec![0x02, 0x81, 0, 1, 1, 64]),
        // A service instance of a provider, and MACsec without encryption, with a channel and without.
        (ETHERNET, [&addresses[..], &[0x88, 0xe7, 0, 0, 0, 1], &inner[..]].concat()),
        (ETHERNET, [&addresses[..], &[0x88, 0xe5, 0, 0, 0, 0, 0, 1, 0x08, 0]].concat()),
        (ETHERNET, [&addresses[..], &[0x88, 0xe5, 0x20, 0, 0, 0, 0, 1], &[9; 8], &[0x08, 0]].concat()),
        // Tags of switches, stated and not: of Broadcom, Marvell, Qualcomm, MediaTek and Realtek.
        (281, [&addresses[..], &[0x20, 0, 0, 3, 0x08, 0]].concat()),
        (282, [&[0x20, 0, 0, 3], &inner[..]].concat()),
        (284, [&addresses[..], &[0xc0, 0x18, 0, 1, 0x08, 0]].concat()),
        (285, [&addresses[..], &[0xda, 0xda, 0, 0, 0xc0, 0x18, 0, 1, 0x08, 0]].concat()),
        (ETHERNET, [&addresses[..], &[0xda, 0xda, 0, 0, 0xc0, 0x18, 0, 1, 0x08, 0]].concat()),
        (ETHERNET, [&addresses[..], &[0xf8, 2, 0x08, 0]].concat()),
        (ETHERNET, [&addresses[..], &[0, 2, 0, 0, 0x08, 0]].concat()),
        (ETHERNET, [&addresses[..], &[0x88, 0x99, 4, 0, 0, 0, 0, 3, 0x08, 0]].concat()),
        (117, [&[61, 2][..], &[0; 62]].concat()),
    ] {
        // Ethernet pads.
        let frame = framed(&header, &[&packet[..], &[0; 6]].concat());
        let found = read(&pcap(Order::Little, 0xa1b2_c3d4, link_type, &[whole(0, 0, frame)]));
        assert_eq!(found, expected, "{link_type} {header:x?}");
    }
    // Attributes of a netfilter log message, in either byte order: a prefix with padding, and the packet.
    for order in [Order::Little, Order::Big] {
        let attribute =
            |kind, value: &[u8]| [&order.u16(4 + value.len() as u16)[..], &order.u16(kind), value].concat();
        let message = [vec![2, 0, 0, 6], attribute(10, b"a\0"), vec![0; 2], attribute(9, &packet)].concat();
        let cut = (0, 0, message[..message.len() - 5].to_vec(), message.len());
        for frame in [whole(0, 0, message), cut] {
            assert_eq!(read(&pcap(order, 0xa1b2_c3d4, 239, &[frame])), expected);
        }
    }
    // Apple's header of 108 bytes, before Ethernet and before raw IP.
    for (link_type, header) in [(1_u8, [&addresses[..], &[0x08, 0]].concat()), (12, vec![])] {
        let pktap =
            [&[108, 0, 0, 0, 1, 0, 0, 0, link_type, 0, 0, 0][..], &[0; 96], &header, &packet].concat();
        assert_eq!(read(&pcap(Order::Little, 0xa1b2_c3d4, 258, &[whole(0, 0, pktap)])), expected);
    }
    let both = [2_u8, 3].map(|index| {
        let header = [&[0x08, 0, 0, 0, 0, 0, 0, index][..], &[0; 12]].concat();
        whole(0, 0, framed(&header, &packet))
    });
    let packets = read(&pcap(Order::Big, 0xa1b2_c3d4, LINUX_SLL2, &both));
    assert_ne!(packets.interface[0], packets.interface[1], "a packet before and after a router");
}

/// As from the WWAN interfaces of Windows.
#[test]
fn a_packet_without_the_stated_ethernet_header_is_read() {
    for is_v4 in [true, false] {
        let packet = tcp(is_v4, 1, 10);
        let expected = read(&pcap(Order::Little, 0xa1b2_c3d4, RAW, &[whole(0, 0, packet.clone())]));
        let cut = (0, 0, packet[..packet.len() - 5].to_vec(), packet.len());
        for frame in [whole(0, 0, packet), cut] {
            let mut packets = read(&pcap(Order::Little, 0xa1b2_c3d4, ETHERNET, &[frame]));
            assert_eq!(std::mem::take(&mut packets.bare), 1);
            assert_eq!(packets, expected);
        }
    }
    // A frame of another protocol to a host whose address begins like an IP header.
    let frame = [&[0x45, 0, 0, 20, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xcc][..], &[6; 50]].concat();
    let file = pcap(Order::Little, 0xa1b2_c3d4, ETHERNET, &[whole(0, 0, frame)]);
    let left_out = Some(LeftOut::NotIp(0x88cc));
    assert_eq!(Packets::read(&file), Err(ReadError::NoTransport { left_out }));
}

#[test]
fn a_packet_in_tunnels_is_read() {
    let packet = tcp(true, 1, 10);
    let expected = read(&pcap(Order::Little, 0xa1b2_c3d4, RAW, &[whole(0, 0, packet.clone())]));
    let outer = |protocol: u8, payload: &[u8]| {
        let len = (20 + payload.len() as u16).to_be_bytes();
        [
            &[0x45, 0, len[0], len[1], 0, 7, 0, 0, 64, protocol, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2],
            payload,
        ]
        .concat()
    };
    let gre = |header: &[u8]| outer(47, &[header, &packet].concat());
    let over_udp = |port: u16, header: &[u8]| {
        let payload = [header, &packet].concat();
        let len = (8 + payload.len() as u16).to_be_bytes();
        outer(17, &[&[0xc0, 0], &port.to_be_bytes()[..], &len, &[0; 2], &payload].concat())
    };
    let gtp_u = |header: &[u8]| over_udp(2152, header);
    let inner = [&[0; 12][..], &[0x08, 0]].concat();
    let tagged = [&[0; 12][..], &[0x81, 0, 0, 5, 0x08, 0]].concat();
    let ethernet = [&[0, 0, 0x65, 0x58][..], &[0; 12], &[0x08, 0]].concat();
    for (tunnel, bytes) in [
        ("IP in IP", outer(4, &packet)),
        ("GRE", gre(&[0, 0, 0x08, 0])),
        ("GRE", gre(&[0xb0, 0, 0x08, 0, 1, 1, 0, 0, 2, 2, 2, 2, 3, 3, 3, 3])),
        ("GRE", gre(&ethernet)),
        ("GRE", gre(&[0x30, 0x81, 0x88, 0x0b, 0, 1, 0, 2, 3, 3, 3, 3, 4, 4, 4, 4, 0xff, 0x03, 0, 0x21])),
        ("GTP-U", gtp_u(&[0x30, 0xff, 0, 0, 0, 0, 0, 1])),
        ("GTP-U", gtp_u(&[0x32, 0xff, 0, 0, 0, 0, 0, 1, 0, 9, 0, 0])),
        // The extension of a 5G session.
        ("GTP-U", gtp_u(&[0x34, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0x10, 9, 0])),
        ("GTP-U", outer(4, &gtp_u(&[0x30, 0xff, 0, 0, 0, 0, 0, 1]))),
        ("VXLAN", over_udp(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0], &inner[..]].concat())),
        ("VXLAN", over_udp(8472, &[&[8, 0, 0, 0, 0, 0, 7, 0], &tagged[..]].concat())),
        ("Geneve", over_udp(6081, &[&[0, 0, 0x65, 0x58, 0, 0, 7, 0], &inner[..]].concat())),
        ("Geneve", over_udp(6081, &[1, 0, 0x08, 0, 0, 0, 7, 0, 9, 9, 9, 9])),
        ("L2TP", over_udp(1701, &[0, 2, 0, 1, 0, 2, 0xff, 0x03, 0, 0x21])),
        ("L2TP", over_udp(1701, &[0x4a, 2, 0, 99, 0, 1, 0, 2, 0, 3, 0, 4, 0, 2, 9, 9, 0, 0x21])),
        ("MPLS", over_udp(6635, &[0, 1, 1, 64])),
        ("MPLS", outer(137, &[&[0, 1, 1, 64], &packet[..]].concat())),
        ("TZSP", over_udp(37008, &[&[1, 0, 0, 1, 0, 40, 1, 9, 1], &inner[..]].concat())),
        ("EtherIP", outer(97, &[&[0x30, 0], &inner[..], &packet].concat())),
        ("GRE", gre(&[0, 0, 0x88, 0x47, 0, 1, 1, 64])),
        ("GRE", gre(&[&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1], &[9; 8], &inner[..]].concat())),
        ("GRE", gre(&[&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1], &[8; 12][..], &inner].concat())),
    ] {
        let mut packets = read(&pcap(Order::Little, 0xa1b2_c3d4, RAW, &[whole(0, 0, bytes)]));
        assert_eq!(packets.tunnel.take(), Some(tunnel));
        assert_eq!(packets, expected, "{tunnel}");
    }
    let gre = gre(&[0, 0, 0x08, 0]);
    let cut = pcap(Order::Little, 0xa1b2_c3d4, RAW, &[(0, 0, gre[..40].to_vec(), gre.len())]);
    assert_eq!(Packets::read(&cut), Err(ReadError::NoTransport { left_out: Some(LeftOut::Cut) }));
    // An echo of GTP-U, and a header that ends too soon, are datagrams.
    for header in
        [&[0x30, 1, 0, 0, 0, 0, 0, 1][..], &[0x34, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 0, 0, 0, 0]]
    {
        let packets = read(&pcap(Order::Little, 0xa1b2_c3d4, RAW, &[whole(0, 0, gtp_u(header))]));
        assert_eq!((packets.tunnel, packets.protocol), (None, vec![17]));
    }
}

#[test]
fn packets_of_wifi_are_read_unless_encrypted() {
    let (one, other) = (tcp(true, 1, 11), tcp(true, 2, 20));
    let raw = [&one, &other].map(|packet| whole(0, 0, packet.clone()));
    let both = read(&pcap(Order::Little, 0xa1b2_c3d4, RAW, &raw));
    let expected = read(&pcap(Order::Little, 0xa1b2_c3d4, RAW, &raw[..1]));
    let snap = [0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0];
    let header = |kind: u8, flags: u8, len: usize| [&[kind, flags][..], &vec![0; len - 2]].concat();
    // The subframes begin at multiples of four bytes from the first.
    let subframe = |packet: &[u8]| {
        let len = (8 + packet.len() as u16).to_be_bytes();
        let mut bytes = [&[0; 12][..], &len, &snap, packet].concat();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let mut aggregate = header(0x88, 0x02, 26);
    aggregate[24] = 0x80;
    aggregate.extend([subframe(&one), subframe(&other)].concat());
    let radiotap = [0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let avs = [&[0x80, 0x21, 0x10, 0x01, 0, 0, 0, 64][..], &[0; 56]].concat();
    let plain = |header: Vec<u8>| [&header[..], &snap, &one, &[1, 2, 3, 4]].concat();
    for (link_type, frame, expected) in [
        (105, plain(header(0x08, 0x01, 24)), &expected),
        (105, plain(header(0x88, 0x02, 26)), &expected),
        (105, plain(header(0x88, 0x82, 30)), &expected),
        (105, plain(header(0x88, 0x03, 32)), &expected),
        // Padded to four bytes.
        (105, plain([header(0x88, 0x02, 26), vec![0; 2]].concat()), &expected),
        (127, [&radiotap[..], &plain(header(0x88, 0x02, 26))].concat(), &expected),
        (163, [&avs[..], &plain(header(0x08, 0x02, 24))].concat(), &expected),
        (119, [&[0; 144][..], &plain(header(0x08, 0x02, 24))].concat(), &expected),
        (105, aggregate.clone(), &both),
        (127, [&radiotap[..], &aggregate].concat(), &both),
    ] {
        let mut found = read(&pcap(Order::Little, 0xa1b2_c3d4, link_type, &[whole(0, 0, frame)]));
        assert_eq!(std::mem::take(&mut found.overheard), expected.protocol.len());
        assert_eq!(&found, expected, "{link_type}");
    }
    let encrypted = plain(header(0x88, 0x42, 34));
    let beacon = header(0x80, 0, 60);
    let file = pcap(Order::Little, 0xa1b2_c3d4, 105, &[whole(0, 0, encrypted), whole(0, 0, beacon.clone())]);
    let error = Packets::read(&file).expect_err("nothing that can be read");
    assert_eq!(error, ReadError::NoTransport { left_out: Some(LeftOut::Encrypted("Wi-Fi")) });
    assert!(error.to_string().contains("encrypted by Wi-Fi (WPA); capture on the wireless interface itself"));
}

#[test]
fn what_a_capture_cut_off_is_counted() {
    let packet = tcp(true, 1, 10);
    let cut = |len: usize| (0, 0, packet[..len].to_vec(), packet.len());
    let packets = read(&pcap(Order::Little, 0xa1b2_c3d4, RAW, &[cut(39), cut(40), cut(44), cut(75)]));
    assert_eq!((packets.protocol.len(), packets.without_options, packets.kept), (3, 2, 44));
    assert_eq!(packets.left_out(), Some((LeftOut::Cut, 1)));
}

#[test]
fn contents_of_udp_that_are_encrypted_are_named() {
    let of = |port: u16, payload: &[u8]| {
        let udp = write::udp(&ip(true, 1), (40000, port), payload).expect("short enough");
        read(&pcap(Order::Little, 0xa1b2_c3d4, RAW, &[whole(0, 0, udp)])).encrypted
    };
    let mut initiation = [7; 148];
    initiation[..4].copy_from_slice(&[1, 0, 0, 0]);
    assert_eq!(of(1, &initiation), Some("WireGuard"));
    assert_eq!(of(1, &initiation[..147]), None);
    assert_eq!(of(1, &[4, 0, 0, 0, 9, 9, 9, 9, 1, 0, 0, 0, 0, 0, 0, 0]), Some("WireGuard"));
    assert_eq!(of(1, &[23, 0xfe, 0xfd, 0, 1]), Some("DTLS"));
    assert_eq!(of(1, &[0xc3, 0, 0, 0, 1, 8]), Some("QUIC"));
    assert_eq!((of(443, &[0x41, 5]), of(1, &[0x41, 5])), (Some("QUIC"), None));
    assert_eq!((of(4500, &[5; 9]), of(1194, &[5; 9])), (Some("IPsec"), Some("OpenVPN")));
}

#[test]
fn lengths_are_those_of_the_packet() {
    let mut segmented = tcp(true, 1, 2000);
    segmented[2..4].fill(0);
    let frames = [
        // Only headers are stored.
        (0, 0, tcp(false, 0, 1000)[..60].to_vec(), 1092),
        // The stored length stands for the original one.
        whole(0, 0, tcp(true, 1, 1000)[..60].to_vec()),
        // Segmentation offload leaves the length to the frame.
        whole(0, 0, segmented),
    ];
    let packets = read(&pcap(Order::Little, 0xa1b2_c3d4, RAW, &frames));
    assert_eq!(packets.payload, [1000, 1000, 2000]);
    assert_eq!(packets.size, [1092, 1072, 2072]);
    assert_eq!(packets.identification, [-1, 1, 1]);
    assert_eq!((packets.timestamp, packets.sacks), (vec![-1, 7, 7], vec![0, 0, 2]));
}

#[test]
fn datagrams_may_begin_with_rtp() {
    let media = [0x80, 0xe0, 1, 2, 0, 0, 0, 0, 0, 0, 0x12, 0x34];
    let udp =
        |payload: &[u8]| whole(0, 0, write::udp(&ip(true, 1), (5004, 6000), payload).expect("short enough"));
    let packets = read(&pcap(Order::Little, 0xa1b2_c3d4, RAW, &[udp(&media), udp(&media[..11])]));
    assert_eq!((packets.protocol, packets.payload), (vec![17, 17], vec![12, 11]));
    assert_eq!((packets.rtp_version, packets.rtp_type), (vec![2, -1], vec![96, 0]));
    assert_eq!((packets.rtp_seq, packets.rtp_source), (vec![0x102, 0], vec![0x1234, 0]));
}

#[test]
fn what_has_no_transport_header_is_left_out() {
    let mut fragment = tcp(true, 1, 10);
    fragment[6] = 0x20;
    let mut icmp = tcp(true, 1, 10);
    icmp[9] = 1;
    let frames = [fragment, icmp, tcp(true, 2, 1), vec![0x45; 19]].map(|bytes| whole(0, 0, bytes));
    let packets = read(&pcap(Order::Little, 0xa1b2_c3d4, RAW, &frames));
    assert_eq!((packets.identification, packets.fragments), (vec![2], 1));
}

#[test]
fn a_damaged_file_is_read_up_to_the_damage() {
    let frames = [whole(0, 0, tcp(true, 1, 1)), whole(0, 0, tcp(true, 2, 1))];
    let file = pcap(Order::Little, 0xa1b2_c3d4, RAW, &frames);
    assert!(!read(&file).damaged);
    for len in file.len() - 60..file.len() {
        let packets = read(&file[..len]);
        assert_eq!((packets.identification, packets.damaged), (vec![1], true), "{len}");
    }
    let mut huge = file;
    huge[24 + 8..24 + 12].copy_from_slice(&(1_u32 << 30).to_le_bytes());
    assert_eq!(Packets::read(&huge), Err(ReadError::NoFrames));
}

#[test]
fn other_files_are_refused_with_the_reason() {
    let order = Order::Little;
    let frame = || whole(0, 0, vec![0; 60]);
    let file = |link_type| pcap(order, 0xa1b2_c3d4, link_type, &[frame()]);
    let mut encrypted = tcp(true, 1, 10);
    encrypted[9] = 50;
    let without = |left_out| ReadError::NoTransport { left_out: Some(left_out) };
    let ethernet =
        |contents: &[u8]| pcap(order, 0xa1b2_c3d4, ETHERNET, &[whole(0, 0, [&[0; 12], contents].concat())]);
    for (file, error) in [
        (vec![0xd4, 0xc3], ReadError::DamagedHeader),
        (vec![0; 100], ReadError::NotACapture),
        (pcap(order, 0xa1b2_c3d4, RAW, &[]), ReadError::NoFrames),
        (section(order), ReadError::NoFrames),
        (file(147), ReadError::LinkType { number: 147 }),
        (file(RAW), without(LeftOut::Malformed)),
        (pcap(order, 0xa1b2_c3d4, RAW, &[whole(0, 0, encrypted)]), without(LeftOut::Protocol(50))),
        (file(105), without(LeftOut::NoData)),
        (ethernet(&[0x88, 0xe5, 0x2c, 0, 0, 0, 0, 1]), without(LeftOut::Encrypted("MACsec"))),
        (ethernet(&[0x08, 0]), without(LeftOut::Malformed)),
        (pcap(order, 0xa1b2_c3d4, ETHERNET, &[(0, 0, vec![0; 13], 60)]), without(LeftOut::Cut)),
        (ethernet(&[0x88, 0xcc, 1]), without(LeftOut::NotIp(0x88cc))),
    ] {
        assert_eq!(Packets::read(&file), Err(error));
    }
    let message = "unsupported link type 147; expected Ethernet, raw IP, Linux cooked, loopback, PPP, HDLC, NFLOG, \
                   PKTAP, PFLOG, DSA or 802.11";
    assert_eq!(ReadError::LinkType { number: 147 }.to_string(), message);
}

fn mutate(random: &mut Stream, file: &mut Vec<u8>) {
    if random.bernoulli(0.3) {
        file.truncate(random.below(file.len() as u64) as usize);
    }
    for _ in 0..random.below(12) {
        if file.is_empty() {
            return;
        }
        // Half of the damage is among headers at the beginning.
        let within = if random.bernoulli(0.5) { file.len().min(120) } else { file.len() };
        let at = random.below(within as u64) as usize;
        match random.below(5) {
            0 => file[at] = random.below(256) as u8,
            1 => file[at] ^= 1 << random.below(8),
            2 => file[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5) as usize],
            3 => file[at..].iter_mut().take(4).for_each(|byte| *byte = 0xff),
            _ => file.insert(at, random.below(256) as u8),
        }
    }
}

/// Truncated and changed files: no panic, and consistent columns. `LASTHOP_FUZZ_INPUTS` sets the number of files.
#[test]
fn no_file_panics() {
    let files = env::var("LASTHOP_FUZZ_INPUTS").map_or(20_000, |text| text.parse().expect("a number"));
    let cooked = framed(&[&[0x86, 0xdd, 0, 0, 0, 0, 0, 1][..], &[0; 12]].concat(), &tcp(false, 0, 3));
    let ethernet = framed(&[&[0; 12][..], &[0x88, 0xa8, 0, 1, 0x08, 0]].concat(), &tcp(true, 7, 0));
    let mut seeds = Vec::new();
    for order in [Order::Little, Order::Big] {
        for magic in [0xa1b2_c3d4, 0xa1b2_3c4d] {
            let frames: Vec<_> = (0..4).map(|id| whole(0, id, tcp(true, id as u16, 30))).collect();
            seeds.push(pcap(order, magic, RAW, &frames));
            seeds.push(pcap(order, magic, LINUX_SLL2, &[whole(0, 1, cooked.clone())]));
        }
        let offset = option(order, 14, &[0, 0, 0, 0, 1, 2, 3, 4]);
        let udp = write::udp(&ip(false, 0), (1, 2), &[0x80; 20]).expect("short enough");
        seeds.push(
            [
                section(order),
                interface(order, RAW, &option(order, 9, &[9])),
                interface(order, ETHERNET, &offset),
                enhanced(order, &whole(1, 77, ethernet.clone())),
                enhanced(order, &whole(0, 78, udp)),
                block(order, 5, &[&[0; 12], &option(order, 5, &[1; 8])[..]].concat()),
                enhanced(order, &whole(0, 78, tcp(true, 1, 5))),
            ]
            .concat(),
        );
    }
    let mut random = Streams::new(1, 0).stream("captures");
    let mut readable = 0;
    for _ in 0..files {
        let mut file = seeds[random.below(seeds.len() as u64) as usize].clone();
        mutate(&mut random, &mut file);
        if let Ok(packets) = Packets::read(&file) {
            columns::examine(&packets);
            readable += 1;
        }
    }
    assert!(readable * 10 > files, "{readable} of {files} files still have packets");
}
