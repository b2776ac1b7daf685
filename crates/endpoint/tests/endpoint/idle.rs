//! Keep-alive (RFC 9293 section 3.8.4), and peers that never acknowledge.

use lasthop_base::Duration;
use lasthop_endpoint::{Config, End, KeepAlive, StateName};
use lasthop_proto::tcp::Settings;

use crate::peer::{ACK, Peer, config};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn keeping_alive() -> Peer {
    let keep_alive = Some(KeepAlive { idle: seconds(100), interval: seconds(10), probes: 3 });
    Peer::established(Config { keep_alive, ..config() })
}

// Rule: Keep-alive, only if asked for, and only while nothing is in flight; that of the peer is answered.
// [9293 3.8.4; connection.rs]
#[test]
fn connections_are_not_probed_unless_asked_for() {
    let mut peer = Peer::established(config());
    peer.wait(seconds(1_000_000));
    assert_eq!((peer.transcript().as_str(), peer.state()), ("", StateName::Established));
}

// Rule: as connections_are_not_probed_unless_asked_for
#[test]
fn an_idle_peer_that_answers_stays() {
    let mut peer = keeping_alive();
    for _ in 0..5 {
        peer.wait(seconds(99));
        assert_eq!(peer.transcript(), "");
        peer.wait(seconds(1));
        assert_eq!(peer.transcript(), "A 0 1 0", "before the window");
        peer.wait(seconds(10));
        assert_eq!(peer.transcript(), "A 0 1 0");
        peer.send(ACK, b"");
    }
    assert_eq!(peer.state(), StateName::Established);
}

// Rule: as connections_are_not_probed_unless_asked_for
#[test]
fn an_idle_peer_that_is_gone_is_given_up() {
    let mut peer = keeping_alive();
    peer.wait(seconds(129));
    assert_eq!((peer.sent().len(), peer.state()), (3, StateName::Established));
    peer.wait(seconds(1));
    assert_eq!((peer.transcript().as_str(), peer.endpoint.end()), ("RA 1 1 0", Some(End::TimedOut)));
}

// Rule: as connections_are_not_probed_unless_asked_for
#[test]
fn connections_with_data_in_flight_are_not_probed() {
    let mut peer = keeping_alive();
    peer.endpoint.send(peer.now, b"data");
    peer.wait(seconds(200));
    assert!(peer.sent().iter().all(|packet| packet.payload == b"data"));
    assert_eq!(peer.state(), StateName::Established);
}

// Rule: as connections_are_not_probed_unless_asked_for
#[test]
fn a_keep_alive_of_the_peer_is_answered() {
    let mut peer = Peer::established(config());
    peer.send_at(-1, ACK, b"");
    assert_eq!(peer.transcript(), "A 1 1 0");
    // Old systems send a byte of data in a keep-alive segment.
    peer.send(ACK, b"data");
    peer.transcript();
    peer.send_at(-1, ACK, b"x");
    assert_eq!((peer.transcript().as_str(), peer.read()), ("A 1 5 0", b"data".to_vec()));
}

/// A desynchronised peer answers every segment and acknowledges nothing.
// Rule: as closing::fin_is_retransmitted_until_the_user_timeout
#[test]
fn a_peer_that_acknowledges_nothing_is_given_up_after_the_user_timeout() {
    let settings = Settings { user_timeout: Some(seconds(300)), ..config().settings };
    let mut peer = Peer::established(Config { settings, ..config() });
    peer.wait(seconds(5000));
    peer.endpoint.send(peer.now, b"data");
    let begin = peer.now;
    while peer.endpoint.end().is_none() {
        peer.wait(seconds(1));
        for _ in peer.sent() {
            peer.send(ACK, b"");
        }
    }
    assert_eq!(peer.endpoint.end(), Some(End::TimedOut));
    let waited = peer.now.since(begin);
    assert!(waited >= seconds(300) && waited <= seconds(420), "{waited}");
}
