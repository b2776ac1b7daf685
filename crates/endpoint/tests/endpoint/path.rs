//! ICMP errors (RFC 1191, RFC 5927).

use lasthop_base::{Bytes, Duration};
use lasthop_endpoint::{Config, End, Outgoing, StateName};
use lasthop_proto::tcp::{Profile, SeqNum, Settings};
use lasthop_proto::{Dscp, Ecn, NoticeCode};
use lasthop_wire::{Ip, IpPacket, Transport, write};

use crate::peer::{ACK, Peer, SYN_ACK};

const TOO_BIG: NoticeCode = NoticeCode { kind: 3, code: 4 };
const PORT: NoticeCode = NoticeCode { kind: 3, code: 3 };
const HOST: NoticeCode = NoticeCode { kind: 3, code: 1 };

/// Delivers an error about `packet`.
fn complain(peer: &mut Peer, packet: &Outgoing, code: NoticeCode, word: u32) {
    let quoted = packet.to_bytes().expect("short enough");
    let ip = Ip {
        src: "10.9.9.9".parse().expect("an address"),
        dst: packet.local.ip(),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        hop_limit: 64,
        identification: 0,
        dont_fragment: true,
    };
    let bytes = write::icmp(&ip, code, word, &quoted[..28]).expect("short enough");
    let Transport::Icmp(icmp) = IpPacket::parse(&bytes).expect("a packet").transport else {
        panic!("no ICMP")
    };
    peer.endpoint.receive_icmp(peer.now, &icmp);
}

/// In ESTABLISHED with an MSS of 1460 bytes, and four segments in flight.
fn sending() -> (Peer, Vec<Outgoing>) {
    let settings = Settings { timestamps: false, packet_size: Bytes(1500), ..Profile::Linux.settings() };
    let mut peer = Peer::listening(Config { settings, ..Config::default() });
    let mut syn = peer.header(crate::peer::SYN);
    (syn.mss, syn.sack_permitted) = (Some(1460), true);
    peer.deliver(syn, b"");
    peer.seq += 1;
    peer.expect_syn(SYN_ACK);
    peer.send(ACK, b"");
    let bytes: Vec<u8> = (0..5840u32).map(|index| index as u8).collect();
    peer.endpoint.send(peer.now, &bytes);
    let sent = peer.sent();
    assert_eq!(sent.iter().map(|packet| packet.payload.len()).collect::<Vec<_>>(), [1460; 4]);
    (peer, sent)
}

// Rule: "Fragmentation needed" shortens segments and resends all of the quoted one, which must be in flight;
// never below 552 bytes (IPv6: 1280). [1191 3, 6.4, 8201 4, 5927 4.1; path_errors.rs]
#[test]
fn a_narrow_path_shortens_segments_at_once() {
    let (mut peer, sent) = sending();
    let cwnd = peer.endpoint.sender().expect("synchronised").cwnd();
    complain(&mut peer, &sent[0], TOO_BIG, 1000);
    assert_eq!(peer.transcript(), "A 1 1 960, A 961 1 500", "all of the segment, and nothing else");
    assert_eq!(peer.endpoint.sender().expect("synchronised").cwnd(), cwnd, "no sign of congestion");
    // All data are sent in segments that fit the path.
    let mut expected = 1;
    for _ in 0..100 {
        peer.wait(Duration::from_millis(100));
        for packet in peer.sent() {
            assert!(packet.payload.len() <= 960);
            let start = (packet.header.segment.seq - peer.iss.0).0;
            if start <= expected {
                expected = expected.max(start + packet.payload.len() as u32);
            }
        }
        peer.ack = expected;
        peer.send(ACK, b"");
    }
    assert_eq!(expected, 5841);
}

// Rule: as a_narrow_path_shortens_segments_at_once
#[test]
fn errors_about_segments_that_are_not_in_flight_are_forged() {
    let (mut peer, sent) = sending();
    for seq in [peer.iss, peer.iss + 5841, peer.iss + (1 << 31)] {
        let mut packet = sent[0].clone();
        packet.header.segment.seq = seq;
        complain(&mut peer, &packet, TOO_BIG, 600);
    }
    // Errors about another connection are ignored.
    let mut other = sent[0].clone();
    other.header.dst_port += 1;
    complain(&mut peer, &other, TOO_BIG, 600);
    assert_eq!(peer.transcript(), "");
    peer.ack = 5841;
    peer.send(ACK, b"");
    complain(&mut peer, &sent[0], TOO_BIG, 600);
    peer.endpoint.send(peer.now, &[0; 1460]);
    assert_eq!(peer.only().payload.len(), 1460);
}

// Rule: as a_narrow_path_shortens_segments_at_once
#[test]
fn absurd_and_larger_mtus_are_not_believed() {
    let (mut peer, sent) = sending();
    for mtu in [0, 68, 551, 1500, 9000] {
        complain(&mut peer, &sent[0], TOO_BIG, mtu);
        assert_eq!(peer.transcript(), "", "{mtu}");
    }
    complain(&mut peer, &sent[0], TOO_BIG, 552);
    assert_eq!(peer.transcript(), "A 1 1 512, A 513 1 512, A 1025 1 436");
}

// Rule: An unreachable port or protocol ends an attempt to connect, but not a connection. [1122 4.2.3.9, 5461
// 4.1; path_errors.rs]
#[test]
fn an_unreachable_port_ends_only_the_attempt_to_connect() {
    let settings = Settings { packet_size: Bytes(1500), ..Profile::Rfc.settings() };
    for (code, iss_offset, end) in [(PORT, 0, Some(End::Unreachable)), (HOST, 0, None), (PORT, 1, None)] {
        let mut peer = Peer::connecting(Config { settings: settings.clone(), ..Config::default() });
        peer.wait(Duration::from_secs(1));
        let mut syn = peer.only();
        syn.header.segment.seq += SeqNum(iss_offset).0;
        complain(&mut peer, &syn, code, 0);
        assert_eq!(peer.endpoint.end(), end, "{code:?}");
    }
    let (mut peer, sent) = sending();
    complain(&mut peer, &sent[0], PORT, 0);
    assert_eq!((peer.transcript().as_str(), peer.state()), ("", StateName::Established));
}
