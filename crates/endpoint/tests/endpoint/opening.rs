//! The handshake, and the options that it negotiates.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_endpoint::{Config, End, Endpoint, Incoming, StateName};
use lasthop_proto::Ecn;
use lasthop_proto::tcp::{EcnMode, Flags, Profile, Segment, Settings};
use lasthop_wire::TcpHeader;

use crate::peer::{ACK, FIN, Peer, RST, SYN, SYN_ACK, config};
use crate::world::{address, secret};

/// All options, and ECN.
fn modern() -> Config {
    let settings =
        Settings { ecn: EcnMode::Classic, window: Bytes(1 << 20).into(), ..Profile::Linux.settings() };
    Config { settings, ..Config::default() }
}

/// The peer's SYN with all options.
fn full(peer: &mut Peer, flags: Flags) -> TcpHeader {
    peer.timestamp = Some(7000);
    let mut header = peer.header(flags);
    (header.mss, header.window_scale, header.sack_permitted) = (Some(1400), Some(3), true);
    header
}

const ASKS: Flags = Flags(Flags::ECE.0 | Flags::CWR.0);

// Rule: SYN offers MSS, window scale, SACK, timestamps and ECN; SYN-ACK only what SYN has offered; what was
// not offered is ignored. [9293 3.7.1, 7323 2.2, 3.2, 2018 2, 3168 6.1.1; options.rs]
#[test]
fn syn_offers_what_the_settings_ask_for() {
    let mut endpoint = Endpoint::connect(Time::ZERO, modern(), address(1, true), address(2, true), secret(1));
    let header = endpoint.poll().expect("a SYN").header;
    assert_eq!((header.mss, header.window_scale, header.sack_permitted), (Some(1460), Some(5), true));
    assert_eq!(header.segment.flags, SYN | ASKS);
    assert!(header.segment.timestamps.is_some_and(|stamps| stamps.echo == 0));
    assert_eq!(header.segment.wnd, 65_535, "never scaled");

    let mut bare = config();
    bare.window_scaling = false;
    let mut endpoint = Endpoint::connect(Time::ZERO, bare, address(1, false), address(2, false), secret(1));
    let header = endpoint.poll().expect("a SYN").header;
    assert_eq!((header.mss, header.window_scale, header.sack_permitted), (Some(980), None, false));
    assert_eq!((header.segment.flags, header.segment.timestamps, header.segment.wnd), (SYN, None, 10_000));
}

// Rule: as syn_offers_what_the_settings_ask_for
#[test]
fn syn_ack_offers_only_what_syn_has_offered() {
    let mut peer = Peer::listening(modern());
    let header = full(&mut peer, SYN | ASKS);
    peer.deliver(header, b"");
    let answer = peer.expect_syn(SYN_ACK);
    assert_eq!((answer.mss, answer.window_scale, answer.sack_permitted), (Some(1460), Some(5), true));
    assert_eq!(answer.segment.flags, SYN_ACK | Flags::ECE);
    assert_eq!(answer.segment.timestamps.expect("timestamps").echo, 7000);

    let mut peer = Peer::listening(modern());
    peer.send(SYN, b"");
    let answer = peer.expect_syn(SYN_ACK);
    assert_eq!((answer.mss, answer.window_scale, answer.sack_permitted), (Some(1460), None, false));
    assert_eq!((answer.segment.flags, answer.segment.timestamps), (SYN_ACK, None));
}

// Rule: as syn_offers_what_the_settings_ask_for
#[test]
fn without_options_windows_end_at_65535_bytes_and_segments_at_536() {
    let mut peer = Peer::listening(modern());
    peer.window = 60_000;
    peer.send(SYN, b"");
    peer.expect_syn(SYN_ACK);
    peer.send(ACK, b"");
    peer.endpoint.send(peer.now, &[1; 10_000]);
    let sent = peer.sent();
    assert!(sent.iter().all(|packet| packet.header.segment.wnd == 65_535));
    assert_eq!(sent[0].payload.len(), 536);
    // The buffer is as large as the window: data beyond 65,535 bytes are discarded.
    peer.send_at(65_535, ACK, b"beyond");
    assert_eq!(peer.sent()[0].header.segment.sack.len(), 0);
    assert_eq!(peer.endpoint.receiver().expect("synchronised").window(), 65_535);
}

// Rule: as syn_offers_what_the_settings_ask_for
#[test]
fn what_syn_did_not_offer_is_ignored_in_syn_ack() {
    let mut bare = config();
    bare.window_scaling = false;
    let mut peer = Peer::connecting(bare);
    let header = full(&mut peer, SYN_ACK | Flags::ECE);
    peer.deliver(header, b"");
    peer.seq += 1;
    peer.sent();
    assert_eq!(peer.state(), StateName::Established);
    // Neither scaled windows nor timestamps nor SACK nor ECN.
    peer.window = 3000;
    peer.send(ACK, b"");
    assert_eq!(peer.endpoint.sender().expect("synchronised").rwnd(), 3000);
    peer.timestamp = None;
    peer.send_at(100, ACK, b"gap");
    let ack = peer.only();
    assert_eq!((ack.header.segment.timestamps, ack.header.segment.sack.len()), (None, 0));
    peer.endpoint.send(peer.now, b"data");
    assert_eq!(peer.only().ecn, Ecn::NotEct);
}

// Rule: Windows are shifted by the announced scale, at most 14, but not those of SYN and SYN-ACK. [7323 2.2,
// 2.3; connection.rs handshake.rs]
#[test]
fn negotiated_windows_are_shifted_and_segments_leave_room_for_timestamps() {
    let mut peer = Peer::connecting(modern());
    let header = full(&mut peer, SYN_ACK | Flags::ECE);
    peer.deliver(header, b"");
    peer.seq += 1;
    let ack = peer.only();
    assert_eq!(ack.header.segment.wnd, (1 << 20) >> 5);
    assert_eq!(
        peer.endpoint.sender().expect("synchronised").rwnd(),
        50_000,
        "that of SYN-ACK is not shifted"
    );
    peer.send(ACK, b"");
    assert_eq!(peer.endpoint.sender().expect("synchronised").rwnd(), 400_000);
    peer.endpoint.send(peer.now, &[1; 3000]);
    let sent = peer.sent();
    assert_eq!(sent[0].payload.len(), 1388, "1400 less the option");
    assert_eq!(sent[0].ecn, Ecn::Ect0);
}

// Rule: as negotiated_windows_are_shifted_and_segments_leave_room_for_timestamps
#[test]
fn a_window_scale_above_14_counts_as_14() {
    let mut peer = Peer::connecting(modern());
    let mut header = full(&mut peer, SYN_ACK);
    // The parser limits the option to 14.
    header.window_scale = Some(14);
    peer.window = 65_535;
    peer.deliver(header, b"");
    peer.seq += 1;
    peer.send(ACK, b"");
    assert_eq!(peer.endpoint.sender().expect("synchronised").rwnd(), 65_535 << 14);
}

// Rule: An MSS below 48 bytes is not believed, as in Linux. [9293 3.7.1; options.rs]
#[test]
fn an_absurd_mss_is_not_believed() {
    for mss in [0, 1, 47] {
        let mut peer = Peer::listening(modern());
        let mut header = full(&mut peer, SYN);
        header.mss = Some(mss);
        peer.deliver(header, b"");
        peer.expect_syn(SYN_ACK);
        peer.seq += 1;
        peer.send(ACK, b"");
        peer.endpoint.send(peer.now, &[0; 100]);
        assert_eq!(peer.sent()[0].payload.len(), 36, "48 less the timestamps");
    }
}

// Rule: SYN and SYN-ACK are retransmitted with backoff, for at least 3 minutes; the connection then begins
// with one segment and an RTO of 3 s. [9293 3.8.3, 6298 5.5, 5.7, 5681 3.1; handshake.rs]
// Rule: as a_late_answer_to_the_first_syn_still_agrees_on_ecn
#[test]
fn a_retransmitted_syn_backs_off_without_ecn_until_the_timeout() {
    let mut peer = Peer::connecting(modern());
    let begin = peer.now;
    let mut times = Vec::new();
    while peer.state() == StateName::SynSent {
        peer.now = peer.endpoint.next_wakeup();
        peer.endpoint.wake(peer.now);
        if let Some(packet) = peer.endpoint.poll() {
            assert_eq!(packet.header.segment.flags, SYN);
            assert_eq!(packet.header.segment.seq, peer.iss);
            times.push(peer.now.since(begin).as_secs_f64());
        }
    }
    assert_eq!(times, [1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 127.0]);
    assert_eq!((peer.endpoint.end(), peer.now.since(begin)), (Some(End::TimedOut), Duration::from_secs(247)));
}

/// A SYN-ACK for the first SYN may arrive after a second SYN was sent. Whether ECN is used depends on this SYN-ACK.
// Rule: A SYN is retransmitted without ECN, though its answer may be to the first. [3168 6.1.1.1;
// handshake.rs]
#[test]
fn a_late_answer_to_the_first_syn_still_agrees_on_ecn() {
    let mut peer = Peer::connecting(modern());
    peer.wait(Duration::from_secs(1));
    peer.sent();
    let header = full(&mut peer, SYN_ACK | Flags::ECE);
    peer.deliver(header, b"");
    peer.sent();
    peer.endpoint.send(peer.now, b"data");
    assert_eq!(peer.only().ecn, Ecn::Ect0);
}

// Rule: as negotiated_windows_are_shifted_and_segments_leave_room_for_timestamps
#[test]
fn challenges_before_the_end_of_the_handshake_have_shifted_windows() {
    let mut peer = Peer::listening(modern());
    let header = full(&mut peer, SYN);
    peer.deliver(header, b"");
    peer.seq += 1;
    peer.expect_syn(SYN_ACK);
    peer.send_at(-9, ACK, b"");
    let challenge = peer.only().header.segment;
    assert_eq!((challenge.wnd, challenge.timestamps.expect("timestamps").echo), (65_535 >> 5, 7000));
}

// Rule: as a_retransmitted_syn_backs_off_without_ecn_until_the_timeout
#[test]
fn after_a_retransmitted_syn_the_window_begins_with_one_segment() {
    let mut peer = Peer::connecting(config());
    peer.endpoint.send(peer.now, &[1; 9000]);
    assert_eq!(peer.sent().len(), 0, "queued");
    peer.wait(Duration::from_secs(1));
    peer.sent();
    let mut header = peer.header(SYN_ACK);
    header.mss = Some(1000);
    peer.deliver(header, b"");
    peer.seq += 1;
    assert_eq!(peer.transcript(), "A 1 1 1000");
    assert_eq!(peer.endpoint.sender().expect("synchronised").rtt().rto(), Duration::from_secs(3));
}

// Rule: as data_that_wait_for_the_handshake_acknowledge_it
#[test]
fn an_acknowledgement_of_two_syn_acks_is_no_sample() {
    let mut peer = Peer::listening(config());
    peer.send(SYN, b"");
    peer.expect_syn(SYN_ACK);
    peer.now += Duration::from_millis(900);
    peer.send_at(-1, SYN, b"");
    peer.sent();
    peer.now += Duration::from_millis(30);
    peer.send(ACK, b"");
    assert_eq!(peer.endpoint.sender().expect("synchronised").rtt().srtt(), None);
}

/// All options, and accurate ECN.
fn accurate() -> Config {
    let config = modern();
    Config { settings: Settings { ecn: EcnMode::Accurate, ..config.settings }, ..config }
}

/// The only packet sent: its flags' ACE field, its ECN field, and its option's CE counter.
fn feedback(peer: &mut Peer) -> (u8, Ecn, Option<u32>) {
    let packet = peer.only();
    let segment = packet.header.segment;
    (segment.flags.ace(), packet.ecn, segment.sack.ecn_counters().and_then(|option| option.ce()))
}

/// A client takes the mode of the SYN-ACK (RFC 9768 table 2), and reports how it arrived on its first pure ACK. A SYN that arrived
/// changed leaves the feedback accurate, and nothing is ECN-capable; a marked SYN-ACK is counted.
// Rule: Accurate ECN is negotiated, with all fall-backs. [9768 3.1.1, 3.1.2, 3.2.2.1; ecn.rs]
#[test]
fn accurate_ecn_is_negotiated_by_the_client() {
    for (answer, arrived, first, later) in [
        (0b010, Ecn::NotEct, (0b010, Ecn::Ect0), (5, Ecn::Ect0)),
        (0b010, Ecn::Ect1, (0b011, Ecn::Ect0), (5, Ecn::Ect0)),
        (0b010, Ecn::Ce, (0b110, Ecn::Ect0), (6, Ecn::Ect0)),
        (0b110, Ecn::Ect0, (0b100, Ecn::NotEct), (5, Ecn::NotEct)),
        (0b001, Ecn::NotEct, (0, Ecn::NotEct), (0, Ecn::Ect0)),
        (0b000, Ecn::NotEct, (0, Ecn::NotEct), (0, Ecn::NotEct)),
        (0b111, Ecn::NotEct, (0, Ecn::NotEct), (0, Ecn::NotEct)),
    ] {
        let mut peer = Peer::connecting(accurate());
        let header = full(&mut peer, SYN_ACK.with_ace(answer));
        peer.deliver_marked(header, b"", arrived);
        peer.seq += 1;
        let (ace, ecn, _) = feedback(&mut peer);
        assert_eq!((ace, ecn), first, "{answer:03b}, {arrived:?}");
        peer.endpoint.send(peer.now, b"data");
        let (ace, ecn, _) = feedback(&mut peer);
        assert_eq!((ace, ecn), later, "{answer:03b}, {arrived:?}");
    }
}

/// The kernel's tests of a server: the SYN-ACK reports how the SYN arrived, with an option; the second one has none, and from the
/// third on no flags, after which nothing is ECN-capable (RFC 9768 section 3.2.3.2.2).
// Rule: as accurate_ecn_is_negotiated_by_the_client
#[test]
fn accurate_ecn_is_negotiated_by_the_server() {
    for (asked, arrived, answer) in [
        (0b111, Ecn::NotEct, 0b010),
        (0b111, Ecn::Ect1, 0b011),
        (0b111, Ecn::Ect0, 0b100),
        (0b111, Ecn::Ce, 0b110),
        (0b100, Ecn::NotEct, 0b010),
        (0b011, Ecn::NotEct, 0b001),
        (0b000, Ecn::NotEct, 0b000),
    ] {
        let mut peer = Peer::listening(accurate());
        let header = full(&mut peer, SYN.with_ace(asked));
        peer.deliver_marked(header, b"", arrived);
        let (ace, ecn, ce) = feedback(&mut peer);
        assert_eq!((ace, ecn, ce), (answer, Ecn::NotEct, Some(0).filter(|_| answer > 1)), "{asked:03b}");
    }
    let mut peer = Peer::listening(accurate());
    let header = full(&mut peer, SYN.with_ace(0b111));
    peer.deliver(header, b"");
    let mut sent = vec![feedback(&mut peer)];
    for _ in 0..3 {
        peer.now = peer.endpoint.next_wakeup();
        peer.endpoint.wake(peer.now);
        sent.push(feedback(&mut peer));
    }
    let none = Ecn::NotEct;
    assert_eq!(sent, [(0b010, none, Some(0)), (0b010, none, None), (0, none, None), (0, none, None)]);
}

/// The first pure ACK reports how the SYN-ACK arrived, and is no counter; cleared or changed, it stops ECN-capable packets, and a mark
/// is counted (RFC 9768 sections 3.2.2.2, 3.2.2.3). Where the path clears the field, which may show on data first, it is no counter
/// (section 3.2.2.4).
// Rule: as accurate_ecn_is_negotiated_by_the_client
#[test]
fn the_first_ack_tells_whether_the_path_changes_ecn() {
    for (code, first, field, next, marks) in [
        (0b010, &b""[..], Ecn::Ect0, 5, 0),
        (0b111, b"", Ecn::Ect0, 5, 0),
        (0b000, b"", Ecn::NotEct, 0, 0),
        (0b000, b"data", Ecn::NotEct, 0, 0),
        (0b101, b"data", Ecn::Ect0, 6, 1),
        (0b100, b"", Ecn::NotEct, 5, 0),
        (0b110, b"", Ecn::NotEct, 6, 1),
    ] {
        let mut peer = Peer::listening(accurate());
        let header = full(&mut peer, SYN.with_ace(0b111));
        peer.deliver(header, b"");
        peer.seq += 1;
        peer.expect_syn(SYN_ACK);
        peer.timestamp = Some(7001);
        let header = peer.header(ACK.with_ace(code));
        peer.deliver(header, first);
        peer.seq += first.len() as u32;
        peer.sent();
        peer.endpoint.send(peer.now, b"data");
        assert_eq!(peer.only().ecn, field, "{code:03b}");
        let header = peer.header(ACK.with_ace(next));
        let ack = header.segment.ack + 4;
        peer.deliver(TcpHeader { segment: Segment { ack, ..header.segment }, ..header }, b"");
        assert_eq!(peer.endpoint.sender().expect("synchronised").stats().marks, marks, "{code:03b}");
    }
}

/// A SYN that asks for classic feedback and one that asks for accurate feedback leave both ends in doubt (RFC 9768 section 3.1.5).
// Rule: as accurate_ecn_is_negotiated_by_the_client
#[test]
fn contradicting_syns_reset_the_connection() {
    let mut peer = Peer::listening(accurate());
    let header = full(&mut peer, SYN.with_ace(0b111));
    peer.deliver(header, b"");
    peer.sent();
    let header = full(&mut peer, SYN | ASKS);
    peer.deliver(header, b"");
    assert!(peer.only().header.segment.flags.has(RST));
    assert_eq!(peer.state(), StateName::Listen);
    // To this end they ask for the same.
    for ecn in [EcnMode::Off, EcnMode::Classic] {
        let config = modern();
        let mut peer = Peer::listening(Config { settings: Settings { ecn, ..config.settings }, ..config });
        for flags in [SYN.with_ace(0b111), SYN | ASKS] {
            let header = full(&mut peer, flags);
            peer.deliver(header, b"");
            let answer = SYN_ACK | if ecn == EcnMode::Off { Flags::default() } else { Flags::ECE };
            assert_eq!(peer.only().header.segment.flags, answer, "{ecn:?}");
        }
    }
}

/// Marks on data are reported by the ACE field and the option of the acknowledgement, and on data of our own by the field alone.
// Rule: as accurate_ecn_is_negotiated_by_the_client
#[test]
fn marks_are_reported_on_real_packets() {
    let mut peer = Peer::listening(accurate());
    let header = full(&mut peer, SYN.with_ace(0b111));
    peer.deliver(header, b"");
    peer.seq += 1;
    peer.expect_syn(SYN_ACK);
    let header = peer.header(ACK.with_ace(0b010));
    peer.deliver(header, b"");
    let header = peer.header(ACK.with_ace(5));
    peer.deliver_marked(header, &[1; 1000], Ecn::Ce);
    peer.seq += 1000;
    let packet = peer.only();
    let bytes = packet.to_bytes().expect("short enough");
    let read = lasthop_wire::IpPacket::parse(&bytes).expect("well-formed");
    let ack = read.tcp().expect("a segment").header.segment;
    let option = ack.sack.ecn_counters().expect("the option");
    assert_eq!((ack.flags.ace(), option.ce(), read.ip.ecn), (6, Some(1000), Ecn::Ect0));
    let header = peer.header(ACK.with_ace(5));
    peer.deliver_marked(header, b"", Ecn::Ce);
    peer.endpoint.send(peer.now, b"data");
    assert_eq!(feedback(&mut peer), (7, Ecn::Ect0, None));
}

/// ECN is asked for with ECE and CWR, and granted with ECE alone (RFC 3168 section 6.1.1).
// Rule: Only ECE with CWR ask for ECN, and only ECE without CWR grants it. [3168 6.1.1; options.rs]
#[test]
fn other_flags_do_not_negotiate_ecn() {
    for flags in [Flags::ECE, Flags::CWR] {
        let mut peer = Peer::listening(modern());
        let header = full(&mut peer, SYN | flags);
        peer.deliver(header, b"");
        assert_eq!(peer.only().header.segment.flags, SYN_ACK);
    }
    for flags in [ASKS, Flags::CWR] {
        let mut peer = Peer::connecting(modern());
        let header = full(&mut peer, SYN_ACK | flags);
        peer.deliver(header, b"");
        peer.sent();
        peer.endpoint.send(peer.now, b"data");
        assert_eq!(peer.only().ecn, Ecn::NotEct);
    }
}

/// Loss detection by SACK or by time needs reports that this peer does not send.
// Rule: With a peer that does not permit SACK, duplicates reveal losses. [2018 2, 5681 3.2; config.rs]
#[test]
fn without_sack_three_duplicates_retransmit() {
    for profile in [Profile::Linux, Profile::LinuxBbr] {
        let mut peer = Peer::listening(Config { settings: profile.settings(), ..Config::default() });
        peer.send(SYN, b"");
        peer.expect_syn(SYN_ACK);
        peer.send(ACK, b"");
        peer.endpoint.send(peer.now, &[0; 5000]);
        peer.sent();
        for _ in 0..3 {
            peer.now += Duration::from_millis(1);
            peer.send(ACK, b"");
        }
        let resent = peer.sent().iter().filter(|packet| packet.header.segment.seq == peer.iss + 1).count();
        assert_eq!(resent, 1, "{profile:?}");
    }
}

// Rule: What is written during the handshake follows it, and so does FIN; the handshake is a round-trip
// sample unless something of it was sent twice. [9293 3.10.2, 3.10.4, 6298 3; connection.rs endpoint.rs]
#[test]
fn data_that_wait_for_the_handshake_acknowledge_it() {
    let mut peer = Peer::connecting(config());
    peer.endpoint.send(peer.now, b"hello");
    peer.endpoint.send(peer.now, b" there");
    peer.now += Duration::from_millis(30);
    peer.send(SYN_ACK, b"");
    assert_eq!(peer.transcript(), "A 1 1 11");
    let srtt = peer.endpoint.sender().expect("synchronised").rtt().srtt();
    assert_eq!(srtt, Some(Duration::from_millis(30)));
}

// Rule: as data_that_wait_for_the_handshake_acknowledge_it
#[test]
fn an_endpoint_that_closes_during_the_handshake_sends_fin_after_it() {
    let mut peer = Peer::listening(config());
    peer.send(SYN, b"");
    peer.expect_syn(SYN_ACK);
    peer.endpoint.send(peer.now, b"bye");
    peer.endpoint.shutdown(peer.now);
    assert_eq!((peer.transcript().as_str(), peer.state()), ("", StateName::SynReceived));
    peer.send(ACK, b"");
    assert_eq!((peer.transcript().as_str(), peer.state()), ("A 1 1 3, FA 4 1 0", StateName::FinWait1));
    for endpoint in [Peer::listening(config()), Peer::connecting(config())] {
        let mut peer = endpoint;
        peer.endpoint.shutdown(peer.now);
        assert_eq!((peer.state(), peer.endpoint.end()), (StateName::Closed, Some(End::Closed)));
    }
}

// Rule: as a_retransmitted_syn_backs_off_without_ecn_until_the_timeout
// Rule: Initial sequence numbers are those of a clock plus a keyed hash of the addresses. [6528 3; secret.rs]
#[test]
fn a_passive_open_that_is_not_completed_waits_for_another() {
    let mut peer = Peer::listening(config());
    peer.send(SYN, b"");
    peer.expect_syn(SYN_ACK);
    peer.wait(Duration::from_secs(300));
    assert_eq!((peer.state(), peer.endpoint.next_wakeup()), (StateName::Listen, Time::NEVER));
    assert_eq!(peer.sent().len(), 7, "SYN-ACK is retransmitted");
    // Another initial sequence number.
    let before = peer.iss;
    peer.seq = 5000;
    peer.send(SYN, b"");
    peer.expect_syn(SYN_ACK);
    peer.send(FIN, b"late");
    assert_eq!((peer.state(), peer.read()), (StateName::CloseWait, b"late".to_vec()));
    assert_ne!(peer.iss, before);
}

// Rule: Simultaneous open. [9293 3.5; endpoint.rs]
#[test]
fn both_ends_may_open_at_once() {
    for (loses_first, loses_second) in [(false, false), (true, false), (true, true)] {
        let (a, b) = (address(1, true), address(2, true));
        let mut now = Time::ZERO;
        let mut ends = [(a, b, 1), (b, a, 2)]
            .map(|(local, remote, seed)| Endpoint::connect(now, config(), local, remote, secret(seed)));
        let mut lost = [loses_first, loses_second];
        while ends.iter().any(|end| end.state() != StateName::Established) {
            let mut on_way = Vec::new();
            for (from, end) in ends.iter_mut().enumerate() {
                while let Some(packet) = end.poll() {
                    let is_syn_ack = packet.header.segment.flags.has(SYN_ACK);
                    if is_syn_ack && std::mem::take(&mut lost[from]) {
                        continue;
                    }
                    on_way.push((1 - from, packet));
                }
            }
            if on_way.is_empty() {
                now = ends.iter().map(Endpoint::next_wakeup).min().expect("two");
                assert!(
                    now < Time::ZERO + Duration::from_secs(10),
                    "{:?}",
                    ends.each_ref().map(Endpoint::state)
                );
                ends.iter_mut().for_each(|end| end.wake(now));
            }
            now += Duration::from_millis(10);
            for (to, packet) in on_way {
                ends[to].receive(now, &Incoming::from(&packet));
            }
        }
    }
}

// Rule: A refused connection ends. [9293 3.10.7.3; endpoint.rs]
#[test]
fn a_refused_connection_says_so() {
    let mut peer = Peer::connecting(config());
    peer.send(RST | ACK, b"");
    assert_eq!((peer.state(), peer.endpoint.end()), (StateName::Closed, Some(End::Refused)));
    assert_eq!(peer.endpoint.writable(), 0);
    assert!(peer.endpoint.has_ended());
}

#[test]
#[should_panic(expected = "echo for each segment")]
fn flavours_that_need_an_echo_for_each_segment_are_refused() {
    let settings = Settings { flavour: lasthop_proto::tcp::Flavour::GoBackN, ..Profile::Rfc.settings() };
    Endpoint::listen(Config { settings, ..config() }, address(1, true), secret(1));
}
