//! Blind attacks (RFC 5961) and old duplicates (RFC 7323: PAWS).

use lasthop_base::{Bytes, Duration};
use lasthop_endpoint::{Config, StateName};
use lasthop_proto::tcp::{Flags, Profile, Settings};

use crate::peer::{ACK, Peer, RST, SYN, SYN_ACK, config};

/// In ESTABLISHED with timestamps, of which the peer's last was 1000.
fn stamping() -> Peer {
    let settings = Settings { timestamps: true, ..config().settings };
    let mut peer = Peer::listening(Config { settings, ..config() });
    peer.timestamp = Some(1000);
    peer.send(SYN, b"");
    peer.expect_syn(SYN_ACK);
    peer.send(ACK, b"");
    peer.sent();
    peer
}

/// An attacker who sends one reset in each window (RFC 5961 section 3.1) does not succeed.
// Rule: as arrivals::only_the_next_sequence_number_resets
#[test]
fn resets_in_the_window_do_not_reset() {
    let mut peer = Peer::established(config());
    for offset in [-10_001, -10_000, -1, 1, 2, 9_999, 10_000, 10_001, 1 << 30] {
        peer.send_at(offset, RST, b"");
    }
    assert_eq!((peer.state(), peer.sent().len()), (StateName::Established, 4));
    // A peer that did reset answers the challenge with the expected sequence number.
    let challenge = "A 1 1 0";
    peer.send_at(5, RST, b"");
    assert_eq!(peer.transcript(), challenge);
    peer.send_at(0, RST, b"");
    assert_eq!(peer.state(), StateName::Closed);
}

// Rule: as arrivals::syn_in_the_window_is_challenged
#[test]
fn syn_does_not_end_a_connection() {
    let mut peer = Peer::established(config());
    for offset in [-1, 0, 1, 5000, 1 << 30] {
        peer.send_at(offset, SYN, b"");
    }
    peer.send_at(0, SYN_ACK, b"");
    assert_eq!((peer.state(), peer.sent().len()), (StateName::Established, 6));
    peer.send(ACK, b"data");
    assert_eq!(peer.read(), b"data");
}

/// Data must acknowledge something between SND.UNA - MAX.SND.WND and SND.NXT.
// Rule: as arrivals::acknowledgements_out_of_range_are_challenged
#[test]
fn data_without_a_plausible_acknowledgement_are_not_taken() {
    let mut peer = Peer::established(config());
    peer.window = 1000;
    peer.send(ACK, b"");
    for ack in [2, 1000, 1 << 31, 1u32.wrapping_sub(50_001), 1u32.wrapping_sub(1 << 30)] {
        peer.ack = ack;
        peer.send_at(0, ACK, b"injected");
        assert_eq!((peer.transcript().as_str(), peer.endpoint.readable()), ("A 1 1 0", 0), "{ack}");
    }
    // The largest window was 50,000 bytes.
    peer.ack = 1u32.wrapping_sub(50_000);
    peer.send_at(0, ACK, b"late");
    assert_eq!(peer.read(), b"late");
}

// Rule: At most ten ACKs in 5 s answer unacceptable segments without data, for each connection. [5961 7;
// throttle.rs]
#[test]
fn challenges_are_limited_to_ten_in_five_seconds() {
    let mut peer = Peer::established(config());
    for _ in 0..30 {
        peer.send_at(5, RST, b"");
        peer.send_at(5, SYN, b"");
        peer.send_at(-100, ACK, b"");
    }
    assert_eq!(peer.sent().len(), 10);
    peer.wait(Duration::from_secs(5));
    peer.send_at(5, RST, b"");
    assert_eq!(peer.transcript(), "A 1 1 0");
    // Data are always answered: they may be retransmissions whose acknowledgement was lost.
    for _ in 0..30 {
        peer.send_at(-1, ACK, b"x");
        peer.send_at(20_000, ACK, b"x");
    }
    assert_eq!(peer.sent().len(), 60);
}

/// By RFC 9293 alone, two ends that do not accept each other's segments would exchange challenges for ever.
// Rule: as challenges_are_limited_to_ten_in_five_seconds
#[test]
fn two_ends_that_disagree_do_not_answer_each_other_for_ever() {
    let mut ends = [Peer::established(config()), Peer::established(config())];
    ends[1].send(ACK, b"what the other end never sent");
    ends[1].sent();
    ends[0].seq += 7;
    ends[0].send(ACK, b"");
    let mut exchanged = 0;
    for turn in 0..1000 {
        let [a, b] = &mut ends;
        let (from, to) = if turn % 2 == 0 { (a, b) } else { (b, a) };
        for _ in from.sent() {
            exchanged += 1;
            to.send_at(20_000, ACK, b"");
        }
    }
    assert!(exchanged <= 21, "{exchanged}");
}

// Rule: PAWS, with timestamps that wrap and that expire after 24 days; RST is exempt. [7323 5.3, 5.5;
// clock.rs connection.rs]
#[test]
fn segments_with_old_timestamps_are_acknowledged_and_dropped() {
    let mut peer = stamping();
    peer.timestamp = Some(999);
    for payload in [&b""[..], b"old"] {
        peer.send_at(0, ACK, payload);
        assert_eq!((peer.transcript().as_str(), peer.endpoint.readable()), ("A 1 1 0", 0));
    }
    // Resets are exempt.
    peer.send_at(0, RST, b"");
    assert_eq!(peer.state(), StateName::Closed);
}

// Rule: as segments_with_old_timestamps_are_acknowledged_and_dropped
#[test]
fn timestamps_wrap() {
    let mut peer = stamping();
    for value in [1001, 1 << 30, 1 << 31, 3 << 30, u32::MAX, 5, 5] {
        peer.timestamp = Some(value);
        peer.send(ACK, b"x");
    }
    assert_eq!(peer.read(), b"xxxxxxx");
    peer.timestamp = Some(u32::MAX);
    peer.send_at(0, ACK, b"y");
    assert_eq!(peer.endpoint.readable(), 0);
}

/// A timestamp clock of 1 ms passes half of its range in 24.9 days.
// Rule: as segments_with_old_timestamps_are_acknowledged_and_dropped
#[test]
fn timestamps_expire_on_idle_connections() {
    let day = Duration::from_secs(86_400);
    for (days, taken) in [(24, 0), (25, 1)] {
        let mut peer = stamping();
        peer.now += day * days;
        peer.timestamp = Some(900);
        peer.send(ACK, b"x");
        assert_eq!(peer.endpoint.readable(), taken, "{days} days");
    }
}

// Rule: Only a segment at the left edge moves the echo. [7323 4.3; clock.rs]
#[test]
fn only_segments_at_the_left_edge_move_the_echo() {
    let mut peer = stamping();
    let echo = |peer: &mut Peer| peer.only().header.segment.timestamps.expect("timestamps").echo;
    peer.timestamp = Some(1010);
    peer.send_at(10, ACK, b"gap");
    assert_eq!(echo(&mut peer), 1000);
    peer.timestamp = Some(1005);
    peer.send(ACK, b"0123456789");
    assert_eq!(echo(&mut peer), 1005);
}

// Rule: After timestamps were negotiated, a segment without them is dropped. [7323 3.2; connection.rs]
#[test]
fn segments_without_the_negotiated_timestamps_are_dropped() {
    let mut peer = stamping();
    peer.timestamp = None;
    peer.send_at(0, ACK, b"data");
    assert_eq!((peer.transcript().as_str(), peer.endpoint.readable()), ("", 0));
    peer.send_at(0, RST, b"");
    assert_eq!(peer.state(), StateName::Closed);
}

/// An echo that was never sent gives no round-trip time.
// Rule: Timestamps count milliseconds from a secret offset; an echo that was never sent is ignored. [7323
// 4.2, 5.4; clock.rs]
#[test]
fn bogus_echoes_are_ignored() {
    for bogus in [0, 1, u32::MAX, 1 << 31] {
        let settings = Settings { window: Bytes(10_000).into(), ..Profile::Linux.settings() };
        let mut peer = Peer::listening(Config { settings, ..Config::default() });
        peer.timestamp = Some(1);
        peer.send(SYN, b"");
        peer.expect_syn(SYN_ACK);
        peer.now += Duration::from_millis(50);
        peer.send(ACK, b"");
        peer.endpoint.send(peer.now, b"data");
        peer.sent();
        peer.now += Duration::from_millis(50);
        peer.last_timestamp = peer.last_timestamp.wrapping_add(bogus);
        peer.ack += 4;
        peer.send(ACK, b"");
        let srtt = peer.endpoint.sender().expect("synchronised").rtt().srtt().expect("a sample");
        assert!(srtt >= Duration::from_millis(49) && srtt <= Duration::from_millis(51), "{bogus}: {srtt}");
    }
}

/// Urgent data are ordinary data.
// Rule: Urgent data are ordinary data. [9293 3.8.5; connection.rs]
#[test]
fn urgent_data_are_read_with_the_others() {
    let mut peer = Peer::established(config());
    let mut header = peer.header(ACK);
    header.segment.flags = header.segment.flags | lasthop_wire::TcpHeader::URG;
    header.urgent_pointer = 3;
    peer.deliver(header, b"urgent");
    assert_eq!(peer.read(), b"urgent");
    assert_eq!(peer.only().header.segment.flags, Flags::ACK);
}
