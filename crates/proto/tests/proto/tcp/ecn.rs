//! Explicit congestion notification (RFC 3168): negotiation, echo and response.

use lasthop_proto::Ecn;
use lasthop_proto::tcp::{Congestion, EcnMode, Flags, Flavour, Segment, SeqNum, Settings};

use crate::tcp::dialogue::{Client, Server, settings};

fn ecn(flavour: Flavour, initial: u32) -> Settings {
    Settings { ecn: EcnMode::Classic, congestion: Congestion::Reno, ..settings(flavour, initial) }
}

fn mode(is_on: bool) -> EcnMode {
    if is_on { EcnMode::Classic } else { EcnMode::Off }
}

/// The acknowledgement of everything before `offset`, with ECE.
fn echo(tcp: &mut Client, offset: u32) -> &mut Client {
    let segment = Segment { flags: Flags::ACK | Flags::ECE, ..tcp.bare_ack(offset) };
    tcp.receives(segment)
}

/// Negotiation: SYN with ECE and CWR, SYN-ACK with ECE (section 6.1.1). Otherwise no packet is ECN-capable.
// Rule: Negotiation on SYN and SYN-ACK. [3168 6.1.1; sender.rs receiver.rs]
#[test]
fn ecn_is_negotiated_on_syn() {
    for agrees in [true, false] {
        let with_handshake = Settings { handshake: true, ..ecn(Flavour::NewReno, 2) };
        let mut tcp = Client::start(&with_handshake);
        let syn = tcp.sent();
        assert_eq!(syn[0].flags, Flags::SYN | Flags::ECE | Flags::CWR);
        let answer = tcp.syn_ack_segment();
        let flags = if agrees { answer.flags | Flags::ECE } else { answer.flags };
        tcp.at(100).receives(Segment { flags, ..answer });
        let sent = tcp.packets();
        let expected = if agrees { Ecn::Ect0 } else { Ecn::NotEct };
        assert!(!sent.is_empty() && sent.iter().all(|packet| packet.ecn == expected), "{sent:?}");
    }
}

/// A receiver does not agree without a request, or if ECN is disabled.
// Rule: as ecn_is_negotiated_on_syn
#[test]
fn a_receiver_negotiates_ecn_on_request_if_enabled() {
    for (may, asked) in [(true, true), (true, false), (false, true)] {
        let with_handshake = Settings { handshake: true, ecn: mode(may), ..ecn(Flavour::NewReno, 2) };
        let mut tcp = Server::start(&with_handshake);
        let asks = if asked { Flags::ECE | Flags::CWR } else { Flags::default() };
        let syn = Segment { seq: SeqNum(with_handshake.iss), flags: Flags::SYN | asks, ..Segment::default() };
        let answer = tcp.receives(syn).answer();
        assert_eq!(answer.flags.has(Flags::ECE), may && asked, "may: {may}, asked: {asked}");
    }
}

/// Without a handshake, the settings of both ends decide.
// Rule: as ecn_is_negotiated_on_syn
#[test]
fn without_a_handshake_the_settings_decide() {
    for enabled in [false, true] {
        let settings = Settings { handshake: false, ecn: mode(enabled), ..ecn(Flavour::NewReno, 4) };
        let mut tcp = Server::start(&settings);
        let segment = tcp.segment(0..1000);
        let ack = tcp.receives_marked(segment).data(1000..2000).answer();
        assert_eq!(ack.flags.has(Flags::ECE), enabled);
    }
}

/// Every acknowledgement carries ECE after a mark until the sender sets CWR (section 6.1.3).
// Rule: A mark is echoed until CWR. [3168 6.1.3; receiver.rs]
#[test]
fn a_mark_is_echoed_until_cwr() {
    let mut tcp = Server::start(&Settings { ack_every: 1, ..ecn(Flavour::NewReno, 2) });
    let echoes = |tcp: &mut Server| tcp.answer().flags.has(Flags::ECE);
    tcp.data(0..1000);
    assert!(!echoes(&mut tcp));
    let marked = tcp.segment(1000..2000);
    tcp.receives_marked(marked);
    assert!(echoes(&mut tcp));
    tcp.data(2000..3000);
    assert!(echoes(&mut tcp));
    let answered = Segment { flags: Flags::ACK | Flags::CWR, ..tcp.segment(3000..4000) };
    tcp.receives(answered);
    assert!(!echoes(&mut tcp));
    tcp.data(4000..5000);
    assert!(!echoes(&mut tcp));
}

/// A mark reduces the window like a loss, once per window of data; the next new segment carries CWR, and
/// nothing is retransmitted (section 6.1.2).
// Rule: A mark reduces the window like a loss, once per window of data, signalled by CWR. [3168 6.1.2;
// state.rs recovery/mod.rs]
#[test]
fn marks_reduce_the_window_once_per_flight() {
    let mut tcp = Client::start(&ecn(Flavour::NewReno, 10));
    tcp.sends_full(0..10).at(100);
    echo(&mut tcp, 1000).ssthresh(5000.0).sends_nothing();
    let mut sent = Vec::new();
    for acked in 2..9 {
        sent.extend(echo(&mut tcp, acked * 1000).sent());
    }
    tcp.ssthresh(5000.0);
    assert!(sent[0].flags.has(Flags::CWR) && sent[1..].iter().all(|each| !each.flags.has(Flags::CWR)));
    assert_eq!(sent[0].seq, tcp.bare_ack(10_000).ack);
    assert_eq!((tcp.sender.stats().echoes, tcp.sender.stats().retransmitted_segments), (8, 0));
}

/// With per-segment records, the window is reduced in proportion to delivered data, as after a loss, down to
/// ssthresh.
// Rule: With per-segment records, reduction in proportion to delivered data. [6937; recovery/prr/mod.rs]
#[test]
fn a_mark_starts_a_proportional_reduction() {
    let mut tcp = Client::start(&ecn(Flavour::Prr, 10));
    tcp.sends_full(0..10).at(100);
    let mut sent = 0;
    for acked in 1..=10 {
        echo(&mut tcp, acked * 1000);
        sent += tcp.sent().len();
    }
    assert_eq!(sent, 5, "half of what was delivered");
    tcp.cwnd(5000.0).ssthresh(5000.0);
    assert_eq!(tcp.sender.stats().retransmitted_segments, 0);
}

/// Retransmissions are not ECN-capable, because a mark could not be attributed to a copy (section 6.1.5).
// Rule: Retransmissions and pure ACKs are not ECN-capable. [3168 6.1.4, 6.1.5; state/output.rs]
#[test]
fn retransmissions_are_not_ecn_capable() {
    for flavour in [Flavour::NewReno, Flavour::Prr] {
        let mut tcp = Client::start(&ecn(flavour, 4));
        tcp.sends_full(0..4).wakes_at(1000);
        let again = tcp.packets();
        assert_eq!((again.len(), again[0].ecn), (1, Ecn::NotEct), "{flavour:?}");
    }
}

/// After a loss, a mark in the same window of data causes no further reduction, and CWR ends the echo
/// (section 6.1.2).
// Rule: as marks_reduce_the_window_once_per_flight
#[test]
fn a_loss_covers_marks_of_the_same_window() {
    for flavour in [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack, Flavour::Prr] {
        let settings = Settings { limited_transmit: false, ..ecn(flavour, 10) };
        let mut tcp = Client::start(&settings);
        tcp.sends_full(0..10).at(100);
        for end in 2..5 {
            let blocks: &[_] = if settings.sack() { &[1000..end * 1000] } else { &[] };
            tcp.sack(0, blocks).sent();
        }
        let threshold = tcp.sender.ssthresh();
        assert_eq!(threshold, 5000.0, "{flavour:?}");
        echo(&mut tcp, 10_000).ssthresh(threshold);
        let told = tcp.sent().iter().any(|segment| segment.flags.has(Flags::CWR));
        assert!(told, "{flavour:?} does not say CWR");
    }
}

/// After a mark, a loss in the same window of data is counted and repaired without a further reduction.
// Rule: as marks_reduce_the_window_once_per_flight
#[test]
fn a_mark_covers_losses_of_the_same_window() {
    let mut tcp = Client::start(&ecn(Flavour::Prr, 10));
    tcp.sends_full(0..10).at(100);
    echo(&mut tcp, 1000).losses(0);
    let threshold = tcp.sender.ssthresh();
    tcp.sent();
    let mut sent = Vec::new();
    for end in [3000, 4000, 5000, 6000] {
        sent.extend(tcp.sack(1000, &[2000..end]).sent());
    }
    tcp.losses(1).ssthresh(threshold);
    assert!(sent.iter().any(|segment| segment.seq == tcp.bare_ack(1000).ack));
}

/// A recovery that begins while the window comes down for a mark ends with the data that were outstanding at the mark, not at the
/// loss: a loss of later data is another one.
// Rule: A recovery within the reduction for a mark ends where the reduction would. [recovery/prr/mod.rs]
#[test]
fn a_recovery_after_a_mark_ends_with_its_window() {
    let mut tcp = Client::start(&ecn(Flavour::Prr, 10));
    tcp.sends_full(0..10).at(100);
    echo(&mut tcp, 1000).sent();
    for end in [3000, 4000, 5000, 6000] {
        tcp.sack(1000, &[2000..end]).sent();
    }
    tcp.losses(1).ssthresh(5000.0).ack(10_000).sent();
    for end in [12_000, 13_000, 14_000] {
        tcp.sack(10_000, &[11_000..end]).sent();
    }
    // Half of six: the acknowledgement that ended the first one let the window grow.
    tcp.losses(2).ssthresh(3000.0);
}

/// After a timeout, a mark in the same window of data causes no further reduction, and CWR ends the echo.
// Rule: as marks_reduce_the_window_once_per_flight
#[test]
fn a_timeout_covers_marks_of_the_same_window() {
    for flavour in [Flavour::NewReno, Flavour::Sack, Flavour::Prr] {
        let mut tcp = Client::start(&Settings { frto: false, undo: false, ..ecn(flavour, 10) });
        tcp.sends_full(0..10);
        tcp.times_out();
        let threshold = tcp.sender.ssthresh();
        tcp.sent();
        echo(&mut tcp, 10_000).ssthresh(threshold);
        assert!(tcp.sent().iter().any(|segment| segment.flags.has(Flags::CWR)), "{flavour:?}");
    }
}

/// An acknowledgement with ECE does not increase the window (section 6.1.2).
// Rule: as marks_reduce_the_window_once_per_flight
#[test]
fn an_ece_ack_does_not_increase_the_window() {
    for flavour in [Flavour::Tahoe, Flavour::NewReno, Flavour::Sack] {
        let mut tcp = Client::start(&ecn(flavour, 10));
        tcp.sends_full(0..10).at(100);
        echo(&mut tcp, 1000).cwnd(5000.0);
        echo(&mut tcp, 2000).cwnd(5000.0);
    }
}

/// The reduction ends when the flight that was marked is acknowledged: a mark on the next flight reduces the window
/// again.
// Rule: as marks_reduce_the_window_once_per_flight
#[test]
fn a_mark_on_the_next_flight_reduces_the_window_again() {
    let mut tcp = Client::start(&ecn(Flavour::Prr, 10));
    tcp.sends_full(0..10).at(100);
    echo(&mut tcp, 1000).ssthresh(5000.0).sent();
    for acked in 2..=10 {
        tcp.ack(acked * 1000).sent();
    }
    tcp.cwnd(5000.0).at(200);
    echo(&mut tcp, 11_000).ssthresh(2000.0).sent();
}

/// An acknowledgement that covers the rest of the marked flight and echoes a mark of the next one ends the first reduction and begins
/// the second, as in Linux: `tcp_fastretrans_alert` leaves CWR above its `high_seq` before it enters it again.
// Rule: as marks_reduce_the_window_once_per_flight
#[test]
fn an_ack_across_two_flights_answers_the_mark_of_the_second() {
    let mut tcp = Client::start(&ecn(Flavour::Prr, 10));
    tcp.sends_full(0..10).at(100);
    echo(&mut tcp, 1000).ssthresh(5000.0).sent();
    for acked in 2..=9 {
        tcp.ack(acked * 1000).sent();
    }
    tcp.at(200);
    echo(&mut tcp, 11_000).ssthresh(2000.0).sent();
    // Once for that window, too.
    echo(&mut tcp, 12_000).ssthresh(2000.0);
}

/// A mark on data sent before a timeout reduces the window no further.
// Rule: as marks_reduce_the_window_once_per_flight
#[test]
fn a_mark_after_a_timeout_reduces_nothing() {
    for flavour in [Flavour::NewReno, Flavour::Sack] {
        let mut tcp = Client::start(&ecn(flavour, 10));
        tcp.sends_full(0..10).wakes_at(1000).ssthresh(5000.0).cwnd(1000.0).sent();
        tcp.at(1100);
        echo(&mut tcp, 1000).ssthresh(5000.0).sent();
    }
}
