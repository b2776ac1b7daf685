//! Random and mutated bytes: no input panics, and what is read lies within it.
//!
//! `LASTHOP_FUZZ_INPUTS` sets the number of inputs.

use std::env;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use lasthop_base::{Stream, Streams};
use lasthop_proto::tcp::{Flags, SackBlock, SackBlocks, Segment, SeqNum, Timestamps};
use lasthop_proto::{Dscp, Ecn, NoticeCode};
use lasthop_wire::{Checksum, Ip, IpPacket, LinkType, TcpHeader, Transport, checksum, edit, write};

/// Well-formed packets of every kind, from which inputs are mutated.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (src, dst) in [
        (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::BROADCAST)),
        (IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
    ] {
        let (dscp, ecn) = (Dscp::DEFAULT, Ecn::Ect0);
        let ip = Ip { src, dst, dscp, ecn, hop_limit: 64, identification: 1, dont_fragment: true };
        let mut segment = Segment {
            flags: Flags::SYN | Flags::ACK,
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            ..Segment::default()
        };
        segment.sack.push(SackBlock { start: SeqNum(5), end: SeqNum(6) });
        let header = TcpHeader { mss: Some(1460), window_scale: Some(7), segment, ..TcpHeader::default() };
        let tcp = write::tcp(&ip, &header, b"payload").expect("short enough");
        let icmp = write::icmp(&ip, NoticeCode { kind: 3, code: 4 }, 1400, &tcp).expect("short enough");
        let udp = write::udp(&ip, (53, 53), b"name").expect("short enough");
        if ip.src.is_ipv6() {
            let mut extended = udp.clone();
            extended[6] = 0;
            let extensions =
                [[60, 0, 1, 4, 0, 0, 0, 0], [44, 0, 1, 4, 0, 0, 0, 0], [17, 0, 0, 1, 0, 0, 0, 9]];
            extended.splice(40..40, extensions.concat());
            extended[5] += 24;
            seeds.push(extended);
        }
        seeds.extend([tcp, icmp, udp]);
    }
    seeds
}

fn input(random: &mut Stream, seeds: &[Vec<u8>]) -> Vec<u8> {
    if random.bernoulli(0.05) {
        let len = random.below(120);
        return (0..len).map(|_| random.below(256) as u8).collect();
    }
    let mut bytes = seeds[random.below(seeds.len() as u64) as usize].clone();
    for _ in 0..random.below(6) {
        let at = random.below(bytes.len() as u64) as usize;
        match random.below(4) {
            0 => bytes[at] = random.below(256) as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5) as usize],
            _ if random.bernoulli(0.5) => bytes.truncate(at.max(1)),
            _ => bytes.insert(at, random.below(256) as u8),
        }
    }
    bytes
}

/// Reads all that can be read of a packet.
pub(crate) fn examine(bytes: &[u8], original_len: usize) {
    let Ok(packet) = IpPacket::parse_captured(bytes, original_len) else { return };
    if let Some(inner) = packet.tunnelled() {
        assert!(
            inner.headers + inner.bytes.len() <= packet.bytes.len() && inner.headers >= packet.header_len
        );
    }
    assert!(packet.bytes.len() <= packet.len.min(bytes.len()));
    assert!(packet.header_len <= packet.len && packet.len <= original_len.max(bytes.len()));
    let _ = (packet.header_checksum(), packet.transport_checksum(), packet.is_super_packet(1500));
    match packet.transport {
        Transport::Tcp(tcp) => {
            let end = packet.header_len + tcp.header_len + tcp.header.segment.len as usize;
            assert_eq!(end, packet.len);
            assert!(tcp.payload.len() <= tcp.header.segment.len as usize);
            assert!(tcp.header.segment.sack.iter().all(|block| block.start < block.end));
            // What is written of it reads the same.
            let again = write::tcp(&packet.ip, &tcp.header, tcp.payload).expect("as long as before");
            let again = IpPacket::parse(&again).expect("well-formed");
            let mut expected = tcp.header;
            expected.segment.has_unknown_options = false;
            expected.segment.len = tcp.payload.len() as u32;
            let read = again.tcp().expect("a segment").header;
            // Room is for as many blocks as fit.
            let blocks = read.segment.sack.len();
            assert_eq!(read.segment.sack[..], expected.segment.sack[..blocks]);
            expected.segment.sack = read.segment.sack;
            assert_eq!(read, expected);
        }
        Transport::Udp(udp) => assert!(udp.payload.len() <= udp.payload_len as usize),
        Transport::Icmp(icmp) => {
            let _ = (icmp.quote(), icmp.next_hop_mtu());
        }
        Transport::LaterFragment | Transport::Other | Transport::Unreadable(_) => {}
    }
}

pub(crate) fn change(bytes: &[u8], random: &mut Stream) {
    let mut changed = bytes.to_vec();
    if checksum::repair(&mut changed).is_err() {
        assert!(edit::set_ecn(&mut changed, Ecn::Ce).is_err());
        return;
    }
    edit::set_ecn(&mut changed, Ecn::from_bits(random.below(4) as u8)).expect("it can be read");
    edit::set_tcp_flags(&mut changed, Flags(random.below(1 << 16) as u16)).expect("it can be read");
    let number = |random: &mut Stream| random.below(1 << 32) as u32;
    let (seq, ack) = (SeqNum(number(random)), SeqNum(number(random)));
    edit::set_dscp(&mut changed, Dscp::new(random.below(64) as u8)).expect("it can be read");
    edit::set_tcp_numbers(&mut changed, seq, ack).expect("it can be read");
    edit::set_tcp_window(&mut changed, random.below(1 << 16) as u16).expect("it can be read");
    edit::clamp_tcp_mss(&mut changed, random.below(1 << 16) as u16).expect("it can be read");
    let timestamps = Timestamps { value: number(random), echo: number(random) };
    edit::set_tcp_timestamps(&mut changed, timestamps).expect("it can be read");
    let mut sack = SackBlocks::default();
    (0..random.below(5)).for_each(|_| sack.push(SackBlock { start: seq, end: ack }));
    edit::set_tcp_sack(&mut changed, &sack).expect("it can be read");
    let packet = IpPacket::parse(&changed).expect("it can be read");
    assert_ne!(packet.header_checksum(), Checksum::Wrong);
    assert!(matches!(
        packet.transport_checksum(),
        Checksum::Correct | Checksum::Absent | Checksum::Unverifiable
    ));
}

#[test]
fn no_input_panics() {
    let inputs = env::var("LASTHOP_FUZZ_INPUTS").map_or(200_000, |text| text.parse().expect("a number"));
    let mut random = Streams::new(6, 0).stream("hostile");
    let seeds = seeds();
    for _ in 0..inputs {
        let bytes = input(&mut random, &seeds);
        examine(&bytes, bytes.len() + random.below(2) as usize * random.below(100_000) as usize);
        change(&bytes, &mut random);
        for link_type in LinkType::ALL {
            let _ = (link_type.network_layer(&bytes), link_type.captured(&bytes));
        }
    }
}
