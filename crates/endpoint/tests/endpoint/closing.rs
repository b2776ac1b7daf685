//! The end of a connection.

use lasthop_base::{Duration, Time};
use lasthop_endpoint::{Config, End, Incoming, StateName};

use lasthop_proto::tcp::Settings;

use crate::peer::{ACK, FIN, Peer, RST, SYN, config};
use crate::world::address;

// Rule: Half-close from either end; simultaneous close. [9293 3.6; endpoint.rs]
#[test]
fn the_peer_may_go_on_sending_after_a_half_close() {
    let mut peer = Peer::established(config());
    peer.endpoint.send(peer.now, b"request");
    peer.endpoint.shutdown(peer.now);
    assert_eq!(peer.transcript(), "A 1 1 7, FA 8 1 0");
    assert_eq!((peer.endpoint.writable(), peer.endpoint.send(peer.now, b"more")), (0, 0));
    peer.ack += 8;
    peer.send(ACK, b"response");
    assert_eq!((peer.state(), peer.endpoint.has_ended()), (StateName::FinWait2, false));
    peer.wait(Duration::from_secs(3600));
    peer.send(FIN, b", end");
    assert_eq!((peer.state(), peer.endpoint.has_ended()), (StateName::TimeWait, true));
    assert_eq!(peer.read(), b"response, end");
}

// Rule: as the_peer_may_go_on_sending_after_a_half_close
#[test]
fn the_endpoint_may_go_on_sending_after_the_peer_has_closed() {
    let mut peer = Peer::established(config());
    peer.send(FIN, b"request");
    assert_eq!((peer.read(), peer.state()), (b"request".to_vec(), StateName::CloseWait));
    peer.sent();
    peer.endpoint.send(peer.now, b"response");
    peer.endpoint.shutdown(peer.now);
    assert_eq!((peer.transcript().as_str(), peer.state()), ("A 1 9 8, FA 9 9 0", StateName::LastAck));
    peer.ack += 9;
    peer.send(ACK, b"");
    assert_eq!((peer.state(), peer.endpoint.end()), (StateName::Closed, Some(End::Closed)));
    assert_eq!(peer.endpoint.next_wakeup(), Time::NEVER);
}

// Rule: TIME-WAIT lasts 2 MSL from the last FIN; a later SYN may succeed the connection. [9293 3.4.2,
// 3.10.7.4, 6191 2; endpoint.rs]
#[test]
fn time_wait_lasts_2_msl_from_the_last_fin() {
    let mut peer = Peer::in_state(StateName::TimeWait);
    peer.wait(Duration::from_secs(50));
    peer.send_at(-1, FIN, b"");
    assert_eq!(peer.transcript(), "A 2 2 0");
    peer.wait(Duration::from_secs(50));
    // Segments without FIN do not restart the wait.
    peer.send(ACK, b"");
    assert_eq!(peer.state(), StateName::TimeWait);
    peer.wait(Duration::from_secs(10));
    assert_eq!((peer.state(), peer.endpoint.end()), (StateName::Closed, Some(End::Closed)));
}

// Rule: as time_wait_lasts_2_msl_from_the_last_fin
#[test]
fn only_a_later_syn_succeeds_a_connection_in_time_wait() {
    let peer = Peer::in_state(StateName::TimeWait);
    let is_succeeded = |offset: i32, flags| {
        let mut header = peer.header(flags);
        header.segment.seq += offset as u32;
        let (local, remote) = (address(1, true), address(2, true));
        let packet = Incoming { local, remote, ecn: lasthop_proto::Ecn::NotEct, header, payload: b"" };
        peer.endpoint.may_be_succeeded_by(peer.now, &packet)
    };
    assert!(is_succeeded(1, SYN) && is_succeeded(1 << 20, SYN));
    assert!(!is_succeeded(0, SYN) && !is_succeeded(-5, SYN));
    assert!(!is_succeeded(1, ACK) && !is_succeeded(1, SYN | RST));
}

// Rule: as the_peer_may_go_on_sending_after_a_half_close
#[test]
fn both_ends_may_close_at_once() {
    let mut peer = Peer::established(config());
    peer.endpoint.send(peer.now, b"last");
    peer.endpoint.shutdown(peer.now);
    assert_eq!(peer.transcript(), "A 1 1 4, FA 5 1 0");
    peer.send(FIN, b"words");
    assert_eq!((peer.transcript().as_str(), peer.state()), ("A 6 7 0", StateName::Closing));
    peer.ack += 5;
    peer.send(ACK, b"");
    assert_eq!((peer.state(), peer.read()), (StateName::TimeWait, b"words".to_vec()));
}

// Rule: Closing with unread data resets, and so do data that arrive after closing. [9293 3.6.1, 2525 2.17;
// endpoint.rs]
#[test]
fn closing_before_all_is_read_resets() {
    let mut peer = Peer::established(config());
    peer.send(ACK, b"unread");
    peer.sent();
    peer.endpoint.close(peer.now);
    assert_eq!((peer.transcript().as_str(), peer.endpoint.end()), ("RA 1 7 0", Some(End::Aborted)));
}

// Rule: as closing_before_all_is_read_resets
#[test]
fn data_that_arrive_after_closing_reset() {
    let mut peer = Peer::established(config());
    peer.endpoint.close(peer.now);
    assert_eq!(peer.transcript(), "FA 1 1 0");
    peer.send(ACK, b"");
    assert_eq!((peer.transcript().as_str(), peer.state()), ("", StateName::FinWait1));
    peer.send(ACK, b"news");
    assert_eq!((peer.transcript().as_str(), peer.endpoint.end()), ("RA 2 1 0", Some(End::Aborted)));
}

// Rule: FIN-WAIT-2 ends after 60 s if nobody reads, as in Linux. [endpoint.rs]
#[test]
fn fin_wait_2_ends_when_nobody_reads() {
    let mut peer = Peer::established(config());
    peer.endpoint.close(peer.now);
    peer.ack += 1;
    peer.send(ACK, b"");
    assert_eq!(peer.state(), StateName::FinWait2);
    peer.wait(Duration::from_secs(60));
    assert_eq!((peer.state(), peer.endpoint.end()), (StateName::Closed, Some(End::Closed)));

    let mut peer = Peer::in_state(StateName::FinWait2);
    peer.endpoint.close(peer.now);
    peer.wait(Duration::from_secs(60));
    assert_eq!(peer.state(), StateName::Closed);
}

// Rule: Abort sends RST where the peer knows of the connection; what arrived before a reset stays readable.
// [9293 3.10.5; endpoint.rs]
#[test]
fn abort_resets_in_every_state_in_which_the_peer_knows_of_the_connection() {
    use StateName::{
        CloseWait, Closed, Closing, Established, FinWait1, FinWait2, LastAck, Listen, SynReceived, SynSent,
        TimeWait,
    };
    for (state, said) in [
        (Closed, ""),
        (Listen, ""),
        (SynSent, ""),
        (SynReceived, "RA 1 1 0"),
        (Established, "RA 1 1 0"),
        (FinWait1, "RA 2 1 0"),
        (FinWait2, "RA 2 1 0"),
        (CloseWait, "RA 1 2 0"),
        (Closing, ""),
        (LastAck, ""),
        (TimeWait, ""),
    ] {
        let mut peer = Peer::in_state(state);
        peer.endpoint.abort(peer.now);
        assert_eq!(
            (peer.transcript().as_str(), peer.endpoint.end()),
            (said, Some(End::Aborted)),
            "{state:?}"
        );
        assert_eq!((peer.state(), peer.endpoint.next_wakeup()), (Closed, Time::NEVER));
    }
}

// Rule: as abort_resets_in_every_state_in_which_the_peer_knows_of_the_connection
#[test]
fn what_arrived_before_a_reset_can_be_read() {
    let mut peer = Peer::established(config());
    peer.send(ACK, b"in order");
    peer.send_at(3, ACK, b"not");
    peer.send(RST, b"");
    assert_eq!((peer.endpoint.end(), peer.read()), (Some(End::Reset), b"in order".to_vec()));
    assert!(peer.endpoint.has_ended());
    assert_eq!(peer.read(), b"");
}

// Rule: A peer that is silent, or answers and acknowledges nothing, is given up after the user timeout. [9293
// 3.8.3; connection.rs]
#[test]
fn fin_is_retransmitted_until_the_user_timeout() {
    let settings = Settings { user_timeout: Some(Duration::from_secs(300)), ..config().settings };
    let mut peer = Peer::established(Config { settings, ..config() });
    peer.endpoint.shutdown(peer.now);
    peer.wait(Duration::from_secs(10));
    assert_eq!(peer.transcript(), "FA 1 1 0, FA 1 1 0, FA 1 1 0, FA 1 1 0");
    peer.wait(Duration::from_secs(1000));
    assert_eq!(peer.endpoint.end(), Some(End::TimedOut));
    assert!(peer.transcript().ends_with("RA 2 1 0"));
}

// Rule: RST carries timestamps if they were negotiated. [7323 3.2; connection.rs handshake.rs]
#[test]
fn resets_carry_timestamps() {
    let settings = Settings { timestamps: true, ..config().settings };
    for is_open in [false, true] {
        let mut peer = Peer::listening(Config { settings: settings.clone(), ..config() });
        peer.timestamp = Some(500);
        peer.send(SYN, b"");
        let first = peer.expect_syn(crate::peer::SYN_ACK).segment.timestamps.expect("timestamps");
        if is_open {
            peer.last_timestamp = first.value;
            peer.timestamp = Some(600);
            peer.send(ACK, b"");
        }
        peer.wait(Duration::from_millis(70));
        peer.endpoint.abort(peer.now);
        let reset = peer.only().header.segment;
        let stamps = reset.timestamps.expect("timestamps");
        assert_eq!((stamps.value - first.value, stamps.echo), (70, if is_open { 600 } else { 500 }));
    }
}

// Rule: as fin_is_retransmitted_until_the_user_timeout
#[test]
fn the_user_timeout_may_be_set_at_any_time() {
    let mut peer = Peer::established(config());
    peer.endpoint.send(peer.now, b"unanswered");
    peer.endpoint.set_user_timeout(Some(Duration::from_secs(20)));
    peer.wait(Duration::from_secs(60));
    assert_eq!(peer.endpoint.end(), Some(End::TimedOut));
}
