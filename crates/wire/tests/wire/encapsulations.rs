//! Frames in every encapsulation, truncated and damaged: no input panics, and a packet that is read lies within its frame.

use lasthop_base::Streams;
use lasthop_wire::{IpPacket, LinkType, Transport};

use super::hostile::seeds;

/// The headers of encapsulations that fit into each other: LLC, tags, labels, tunnels over IP and UDP.
fn layers() -> Vec<Vec<u8>> {
    let over = |protocol: u8, rest: &[u8]| {
        let ip = [0x45, 0, 1, 0, 0, 7, 0, 0, 64, protocol, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2];
        [&[0x08, 0][..], &ip, rest].concat()
    };
    let over_udp = |port: u16, rest: &[u8]| {
        over(17, &[&[0xc0, 0], &port.to_be_bytes()[..], &[0, 236, 0, 0], rest].concat())
    };
    let ethernet = [2; 12];
    vec![
        vec![0, 99, 0xaa, 0xaa, 3, 0, 0, 0],
        vec![0x81, 0, 0, 5],
        vec![0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64],
        [&[0x88, 0x48, 0, 1, 1, 64, 0, 0, 0, 7], &ethernet[..]].concat(),
        [&[0x88, 0xe7, 0, 0, 0, 1], &ethernet[..]].concat(),
        vec![0x88, 0xe5, 0, 0, 0, 0, 0, 1],
        vec![0xda, 0xda, 0, 0, 0xc0, 0x18, 0, 1],
        over(47, &[0xb0, 0]),
        [over(97, &[0x30, 0]), ethernet.to_vec()].concat(),
        [over_udp(4789, &[8, 0, 0, 0, 0, 0, 7, 0]), ethernet.to_vec()].concat(),
        [over_udp(6081, &[1, 0, 0x65, 0x58, 0, 0, 7, 0, 9, 9, 9, 9]), ethernet.to_vec()].concat(),
        over_udp(1701, &[0x4a, 2, 0, 99, 0, 1, 0, 2, 0, 3, 0, 4, 0, 2, 9, 9]),
        [over_udp(37008, &[1, 0, 0, 1, 0, 40, 1, 9, 1]), ethernet.to_vec()].concat(),
        over_udp(2152, &[0x34, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0x10, 9, 0]),
    ]
}

/// Reads the packets of a frame to the innermost tunnel, and returns their number.
fn examine(link_type: LinkType, frame: &[u8]) -> usize {
    let within = |inner: &[u8], outer: &[u8]| {
        let (inner, outer) = (inner.as_ptr_range(), outer.as_ptr_range());
        assert!(outer.start <= inner.start && inner.end <= outer.end);
    };
    let mut found = 0;
    let mut next = link_type.captured(frame).ok();
    while let Some(framed) = next {
        within(framed.bytes, frame);
        let mut packet = IpPacket::parse_captured(framed.bytes, frame.len()).ok();
        while let Some(read) = packet {
            found += usize::from(!matches!(read.transport, Transport::Unreadable(_)));
            if let Transport::Udp(udp) = read.transport {
                let _ = udp.encrypted();
            }
            packet = read.tunnelled().and_then(|inner| {
                within(inner.bytes, framed.bytes);
                IpPacket::parse_captured(inner.bytes, read.len - inner.headers).ok()
            });
        }
        next = LinkType::following(&framed).and_then(Result::ok);
    }
    found
}

#[test]
fn encapsulations_may_be_cut_and_damaged_anywhere() {
    let mut random = Streams::new(7, 0).stream("encapsulations");
    let (layers, packets) = (layers(), seeds());
    let mut read = 0;
    for round in 0..300 {
        let mut frame = vec![1; 12];
        for _ in 0..random.below(4) {
            frame.extend(&layers[random.below(layers.len() as u64) as usize]);
        }
        frame.extend([0x08, 0]);
        frame.extend(&packets[random.below(packets.len() as u64) as usize]);
        frame.resize(frame.len() + 300, 0);
        let link_type = LinkType::ALL[if round % 2 == 0 { 0 } else { random.below(16) as usize }];
        read += examine(link_type, &frame);
        for len in 0..frame.len() {
            examine(link_type, &frame[..len]);
        }
        for at in 0..frame.len() * 8 {
            frame[at / 8] ^= 1 << (at % 8);
            examine(link_type, &frame);
            frame[at / 8] ^= 1 << (at % 8);
        }
    }
    assert!(read > 150, "{read} packets read");
}

/// Deep stacks end: each encapsulation has a header, and their number is limited.
#[test]
fn encapsulations_are_bounded() {
    let packet = &seeds()[0];
    let tagged = |tags: usize| [&[0; 12][..], &[0x81, 0, 0, 5].repeat(tags), &[0x08, 0], packet].concat();
    assert!(LinkType::ETHERNET.captured(&tagged(15)).is_ok());
    assert!(LinkType::ETHERNET.captured(&tagged(17)).is_err());
    let labels = [&[0; 12][..], &[0x88, 0x47], &[0, 1, 0, 64].repeat(60_000)].concat();
    assert!(LinkType::ETHERNET.captured(&labels).is_err());
}
