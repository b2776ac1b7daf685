//! Flow control by the application's reading.

use lasthop_base::Duration;
use lasthop_endpoint::{Config, StateName};
use lasthop_proto::tcp::{EcnMode, Flags, Profile, Settings};

use crate::peer::{ACK, FIN, Peer, config};

// Rule: The window is what the application has left free of the buffer, and grows by a segment or half the
// buffer. [9293 3.8.6.2.2; connection.rs]
#[test]
fn the_window_is_the_unused_part_of_the_buffer() {
    let mut peer = Peer::established(config());
    for (len, window) in [(4000, 6000), (5000, 1000), (1000, 0)] {
        peer.send(ACK, &vec![7; len]);
        assert_eq!(peer.only().header.segment.wnd, window);
    }
    // Room for a byte does not reopen it (silly window avoidance); room for a segment does.
    let mut buffer = [0; 535];
    assert_eq!(peer.endpoint.read(peer.now, &mut buffer), 535);
    assert_eq!(peer.transcript(), "");
    assert_eq!(peer.endpoint.read(peer.now, &mut buffer[..1]), 1);
    assert_eq!(peer.only().header.segment.wnd, 536);
    assert_eq!(peer.read().len(), 9464);
    assert_eq!(peer.only().header.segment.wnd, 10_000);
}

// Rule: as the_window_is_the_unused_part_of_the_buffer
#[test]
fn bytes_beyond_the_window_are_not_taken() {
    let mut peer = Peer::established(config());
    peer.send(ACK, &[1; 9000]);
    peer.send(ACK, &[2; 2000]);
    let ack = peer.sent().remove(1).header.segment;
    assert_eq!((ack.ack - (crate::peer::IRS + 1).0, ack.wnd), (lasthop_proto::tcp::SeqNum(10_000), 0));
    assert_eq!(peer.read(), [vec![1; 9000], vec![2; 1000]].concat());
}

// Rule: Probes of a closed window are answered; ACK and RST count in it, FIN at its end. [9293 3.8.6.1,
// 3.10.7.4; connection.rs]
#[test]
fn a_probe_of_the_closed_window_is_answered() {
    let mut peer = Peer::established(config());
    peer.send(ACK, &[1; 10_000]);
    peer.sent();
    for probe in [&b"x"[..], b""] {
        peer.send_at(0, ACK, probe);
        assert_eq!(peer.sent().len(), probe.len(), "an ACK for a byte");
    }
    // Linux probes with the last acknowledged byte.
    peer.send_at(-1, ACK, b"");
    assert_eq!(peer.only().header.segment.wnd, 0);
    // Acknowledgements and resets count although the window is closed.
    peer.endpoint.send(peer.now, b"data");
    peer.sent();
    peer.ack += 4;
    peer.send(ACK, b"");
    assert_eq!(peer.endpoint.sender().expect("synchronised").flight_size(), 0);
    peer.send(Flags::RST, b"");
    assert_eq!(peer.state(), StateName::Closed);
}

// Rule: A closed window of the peer is probed, and may stay closed as long as the peer answers. [9293
// 3.8.6.1; connection.rs]
#[test]
fn a_closed_window_of_the_peer_is_probed() {
    let mut peer = Peer::established(config());
    peer.window = 0;
    peer.send(ACK, b"");
    peer.endpoint.send(peer.now, b"data");
    assert_eq!(peer.transcript(), "");
    peer.wait(Duration::from_secs(2));
    assert_eq!(peer.transcript(), "A 1 1 1");
    // Its pure ACKs stay within the window.
    peer.send(ACK, b"?");
    assert_eq!(peer.transcript(), "A 1 2 0");
    peer.window = 1000;
    peer.send(ACK, b"");
    assert_eq!(peer.transcript(), "A 1 2 4");
    assert_eq!(peer.state(), StateName::Established);
}

// Rule: as a_closed_window_of_the_peer_is_probed
#[test]
fn a_peer_without_a_window_at_first_is_probed() {
    let mut peer = Peer::listening(config());
    peer.window = 0;
    peer.send(Flags::SYN, b"");
    peer.expect_syn(crate::peer::SYN_ACK);
    peer.send(ACK, b"");
    peer.endpoint.send(peer.now, b"data");
    assert_eq!(peer.transcript(), "");
    peer.wait(Duration::from_secs(2));
    assert_eq!(peer.transcript(), "A 1 1 1");
    peer.window = 100;
    peer.ack += 1;
    peer.send(ACK, b"");
    assert_eq!(peer.transcript(), "A 2 1 3");
}

/// The user timeout does not expire while the peer answers probes (RFC 9293 section 3.8.6.1).
// Rule: as a_closed_window_of_the_peer_is_probed
#[test]
fn a_closed_window_may_stay_closed() {
    let settings = Settings { user_timeout: Some(Duration::from_secs(300)), ..config().settings };
    let mut peer = Peer::established(Config { settings, ..config() });
    peer.window = 0;
    peer.send(ACK, b"");
    peer.endpoint.send(peer.now, b"data");
    for _ in 0..100 {
        peer.wait(Duration::from_secs(60));
        for _ in peer.sent() {
            peer.send(ACK, b"");
        }
    }
    assert_eq!(peer.state(), StateName::Established);
    peer.wait(Duration::from_secs(1000));
    assert_eq!(peer.endpoint.end(), Some(lasthop_endpoint::End::TimedOut));
}

/// The window of a reordered segment is out of date (RFC 9293 section 3.10.7.4: SND.WL1 and SND.WL2).
// Rule: An older segment does not change the window (SND.WL1, SND.WL2). [9293 3.10.7.4; connection.rs]
#[test]
fn old_segments_do_not_change_the_window() {
    let mut peer = Peer::established(config());
    let old = peer.header(ACK);
    peer.window = 20_000;
    peer.send_at(9, ACK, b"newer");
    peer.deliver(old, b"");
    assert_eq!(peer.endpoint.sender().expect("synchronised").rwnd(), 20_000);
}

// Rule: Data take the acknowledgement along; out-of-order data and duplicates are reported by pure ACKs.
// [9293 3.8.6.3, 2018 4, 2883; connection.rs]
#[test]
fn data_take_the_acknowledgement_along() {
    let settings = Settings { ack_every: 2, ..config().settings };
    let mut peer = Peer::established(Config { settings, ..config() });
    peer.send(ACK, b"request");
    assert_eq!(peer.transcript(), "", "delayed");
    peer.endpoint.send(peer.now, b"response");
    assert_eq!(peer.transcript(), "A 1 8 8");
    peer.ack += 8;
    peer.wait(Duration::from_millis(50));
    peer.send(ACK, b"");
    peer.wait(Duration::from_secs(10));
    assert_eq!(peer.transcript(), "", "nothing is left to acknowledge");
}

/// In ESTABLISHED with SACK.
fn with_sack() -> Peer {
    let settings = Settings { timestamps: false, ..Profile::Linux.settings() };
    let mut peer = Peer::listening(Config { settings, nagle: false, ..Config::default() });
    let mut syn = peer.header(Flags::SYN);
    syn.sack_permitted = true;
    peer.deliver(syn, b"");
    peer.seq += 1;
    peer.expect_syn(crate::peer::SYN_ACK);
    peer.send(ACK, b"");
    peer
}

/// SACK blocks are reported immediately, also while data flow in the other direction.
// Rule: as data_take_the_acknowledgement_along
#[test]
fn a_report_leaves_beside_data() {
    let mut peer = with_sack();
    peer.window = 0;
    peer.send(ACK, b"");
    peer.endpoint.send(peer.now, b"response");
    assert_eq!(peer.transcript(), "");
    peer.window = 1000;
    peer.send_at(5, ACK, b"later");
    let sent = peer.sent();
    assert_eq!(sent.iter().map(|packet| packet.payload.len()).collect::<Vec<_>>(), [8, 0]);
    assert_eq!(sent[1].header.segment.sack.len(), 1);
}

// Rule: as data_take_the_acknowledgement_along
#[test]
fn data_out_of_order_are_reported_by_pure_acks() {
    let mut peer = with_sack();
    peer.send_at(5, ACK, b"later");
    assert_eq!(peer.only().header.segment.sack.len(), 1);
    peer.send(ACK, b"first");
    assert_eq!(peer.transcript(), "A 1 11 0");
    peer.seq += 5;
    // A duplicate (RFC 2883).
    peer.send_at(-5, ACK, b"later");
    let duplicate = peer.only().header.segment.sack[0];
    assert_eq!(duplicate.end - duplicate.start, 5);
    assert_eq!(peer.read(), b"firstlater");
}

// Rule: Marks are echoed on data and ACKs. [3168 6.1.3; connection.rs]
#[test]
fn marks_are_echoed_on_data_and_acks_until_cwr() {
    let settings = Settings { ecn: EcnMode::Classic, ..config().settings };
    let mut peer = Peer::listening(Config { settings, ..config() });
    peer.send(Flags::SYN | Flags::ECE | Flags::CWR, b"");
    peer.expect_syn(crate::peer::SYN_ACK);
    peer.send(ACK, b"");
    let header = peer.header(ACK);
    peer.deliver_marked(header, b"marked", lasthop_proto::Ecn::Ce);
    peer.seq += 6;
    assert!(peer.only().header.segment.flags.has(Flags::ECE));
    peer.endpoint.send(peer.now, b"data");
    assert!(peer.only().header.segment.flags.has(Flags::ECE));
    peer.send(ACK | Flags::CWR, b"reduced");
    assert!(!peer.only().header.segment.flags.has(Flags::ECE));
}

// Rule: The last byte of the buffer is pushed. [9293 3.9.1.2; connection.rs]
#[test]
fn the_last_byte_is_pushed() {
    let mut peer = Peer::established(config());
    peer.endpoint.send(peer.now, &[0; 1072]);
    let pushed: Vec<bool> = peer
        .sent()
        .iter()
        .map(|packet| packet.header.segment.flags.has(lasthop_wire::TcpHeader::PSH))
        .collect();
    assert_eq!(pushed, [false, true]);
}

/// A FIN takes no room in the window.
// Rule: as a_probe_of_the_closed_window_is_answered
#[test]
fn fin_is_taken_at_the_end_of_a_full_window() {
    let mut peer = Peer::established(config());
    peer.send(FIN, &[1; 10_000]);
    assert_eq!((peer.transcript().as_str(), peer.state()), ("A 1 10002 0", StateName::CloseWait));
    assert_eq!(peer.read().len(), 10_000);
}

// Rule: A window update is sent when the window has doubled, as in Linux: a reader that is prompt causes
// none. [9293 3.8.6.2.2; connection.rs receiver/reading.rs]
#[test]
fn a_prompt_reader_causes_no_window_updates() {
    let mut peer = Peer::established(config());
    for _ in 0..4 {
        peer.send(ACK, &[1; 1000]);
        assert_eq!(peer.only().header.segment.wnd, 9000);
        assert_eq!(peer.read().len(), 1000);
        assert_eq!(peer.transcript(), "");
    }
    // A slow reader announces the window once it has doubled.
    for window in [9000, 8000, 7000, 6000, 5000] {
        peer.send(ACK, &[1; 1000]);
        assert_eq!(peer.only().header.segment.wnd, window);
    }
    assert_eq!(peer.endpoint.read(peer.now, &mut [0; 4999]), 4999);
    assert_eq!(peer.transcript(), "");
    peer.send(ACK, &[1; 1000]);
    assert_eq!(peer.only().header.segment.wnd, 8999, "every acknowledgement carries the window");
    peer.send(ACK, &[1; 5000]);
    assert_eq!(peer.only().header.segment.wnd, 3999);
    assert_eq!(peer.read().len(), 6001);
    assert_eq!(peer.only().header.segment.wnd, 10_000);
}

// Rule: Nagle's algorithm can be turned off, which releases what it held back; the send buffer can be
// resized. [9293 3.7.4; endpoint.rs sender.rs]
#[test]
fn without_nagle_what_was_held_back_is_sent() {
    let mut peer = Peer::established(Config { nagle: true, ..config() });
    peer.endpoint.send(peer.now, b"first");
    peer.endpoint.send(peer.now, b"second");
    assert_eq!(peer.transcript(), "A 1 1 5");
    peer.endpoint.set_nagle(peer.now, false);
    assert_eq!(peer.transcript(), "A 6 1 6");
    peer.endpoint.set_nagle(peer.now, true);
    peer.endpoint.send(peer.now, b"third");
    assert_eq!(peer.transcript(), "");
}

// Rule: After a window has opened, the byte of a probe is not retransmitted on its own. [9293 3.8.6.2.1;
// state.rs]
#[test]
fn the_byte_of_a_probe_is_not_retransmitted_on_its_own() {
    let settings = Settings { timestamps: false, ..Profile::Linux.settings() };
    let mut peer = Peer::connecting(Config { settings, ..Config::default() });
    let mut syn = peer.header(Flags(Flags::SYN.0 | ACK.0));
    (syn.mss, syn.sack_permitted) = (Some(1000), true);
    syn.segment.wnd = 0;
    peer.deliver(syn, b"");
    peer.seq += 1;
    peer.sent();
    peer.endpoint.send(peer.now, &[1; 2000]);
    peer.wait(Duration::from_millis(1500));
    assert!(peer.transcript().starts_with("A 1 1 1"), "a probe");
    peer.window = 5000;
    peer.send(ACK, b"");
    assert_eq!(peer.transcript(), "A 1 1 1000, A 1001 1 1000");
}

// Rule: as without_nagle_what_was_held_back_is_sent
#[test]
fn a_send_buffer_that_shrinks_keeps_its_bytes() {
    let mut peer = Peer::established(config());
    peer.window = 0;
    peer.send(ACK, b"");
    assert_eq!(peer.endpoint.send(peer.now, &[1; 5000]), 5000);
    peer.endpoint.set_send_buffer(3000);
    assert_eq!((peer.endpoint.writable(), peer.endpoint.unacknowledged()), (0, 5000));
    peer.endpoint.set_send_buffer(6000);
    assert_eq!(peer.endpoint.writable(), 1000);
}
