//! Resets by the peer: which RSTs are accepted, and the handling of later segments (RFC 9293 sections 3.5.2,
//! 3.10.7; RFC 5961 section 3.2).

use lasthop_base::{Bytes, Duration};
use lasthop_proto::tcp::{Flags, Flavour, Segment, SeqNum, Settings, Transfer};

use crate::tcp::dialogue::{Client, Server, ms, settings};

fn base() -> Settings {
    settings(Flavour::NewReno, 4)
}

fn with_handshake() -> Settings {
    Settings { handshake: true, close: true, ..base() }
}

fn rst(seq: SeqNum) -> Segment {
    Segment { seq, flags: Flags::RST, ..Segment::default() }
}

/// In an open connection, a RST is accepted only with exactly the expected sequence number (RFC 5961 section
/// 3.2), whatever it acknowledges; it is not answered. Any other RST is ignored, including its
/// acknowledgement.
// Rule: A sender accepts RST at exactly the expected sequence number or, before the connection is open, one
// that acknowledges SYN. [9293 3.10.7.3, 3.10.7.4; 5961 3.2; sender.rs]
#[test]
fn a_sender_accepts_rst_at_the_expected_sequence_number_only() {
    let shaken = |seq: SeqNum, flags: Flags| {
        let mut tcp = Client::start(&with_handshake());
        tcp.sends(&["SYN"]).at(100).syn_ack().sends_full(0..4).at(150);
        let segment = Segment { seq, flags, ..tcp.bare_ack(4000) };
        tcp.receives(segment).sends_nothing();
        tcp
    };
    for flags in [Flags::RST, Flags::RST | Flags::ACK] {
        shaken(SeqNum(101), flags).is_aborted_at(150).has(0, u64::MAX - 4000);
        for wrong in [100, 102, 0, 0x8000_0000] {
            let mut tcp = shaken(SeqNum(wrong), flags);
            tcp.is_not_aborted().is_not_finished().has(0, u64::MAX - 4000).timer_at(1100);
            tcp.at(200).ack(4000).sends_full(4..9);
        }
    }
}

/// A rejected RST does not show that the peer is alive.
// Rule: as giving_up::any_acceptable_segment_restarts_the_user_timeout
#[test]
fn a_rejected_rst_does_not_restart_the_user_timeout() {
    let user_timeout = Some(Duration::from_millis(1000));
    let mut tcp = Client::start(&Settings { user_timeout, ..base() });
    let wrong = Segment { flags: Flags::RST | Flags::ACK, ..tcp.bare_ack(0) };
    tcp.sends_full(0..4).at(500).receives(wrong).wakes_at(1000).sends(&["4000 RST"]).is_aborted_at(1000);
}

/// Without a handshake both sides use the same initial sequence number.
// Rule: as a_sender_accepts_rst_at_the_expected_sequence_number_only
#[test]
fn without_a_handshake_rst_uses_the_initial_sequence_number() {
    let mut tcp = Client::start(&base());
    let first = SeqNum(base().iss);
    tcp.sends_full(0..4).at(100).receives(rst(first + 1)).receives(rst(first - 1)).is_not_aborted();
    tcp.at(200).receives(rst(first)).sends_nothing().is_aborted_at(200);
    tcp.at(300).receives(rst(first)).ack(4000).sends_nothing().is_aborted_at(200);
}

/// Before the connection is open, a RST is accepted if it acknowledges the SYN (RFC 9293 section 3.10.7.3).
// Rule: as a_sender_accepts_rst_at_the_expected_sequence_number_only
#[test]
fn a_rst_may_refuse_the_syn() {
    let refused = |ack: u32, flags: Flags| {
        let mut tcp = Client::start_with(&with_handshake(), Some(1000));
        let segment = Segment { seq: SeqNum(0), flags, ..tcp.bare_ack(ack) };
        tcp.sends(&["SYN"]).at(100).receives(segment).sends_nothing().has(0, 1000);
        tcp
    };
    refused(0, Flags::RST | Flags::ACK).is_aborted_at(100);
    for (ack, flags) in [(0, Flags::RST), (u32::MAX, Flags::RST | Flags::ACK), (1, Flags::RST | Flags::ACK)] {
        refused(ack, flags).is_not_aborted().at(200).syn_ack().sends(&["0..1000 FIN"]);
    }
    // A SYN that is not a reply to ours, with RST.
    refused(0, Flags::RST | Flags::SYN | Flags::ACK).is_aborted_at(100);
}

/// A connection that has not started or is complete cannot be reset.
// Rule: as a_sender_accepts_rst_at_the_expected_sequence_number_only
#[test]
fn a_rst_outside_a_connection_is_ignored() {
    let first = SeqNum(base().iss);
    let mut tcp = Client::waiting(&base(), Transfer { bytes: Some(1000), start: ms(500) });
    tcp.at(100).receives(rst(first)).is_not_aborted().wakes_at(500).sends_full(0..1);
    tcp.at(600).ack(1000).is_finished().receives(rst(first)).sends_nothing().is_not_aborted();
    assert_eq!(tcp.sender.stats().completed, Some(ms(600)));
}

/// The sender's RST closes the receiver and cancels its delayed ACK; it is not answered.
// Rule: A receiver accepts RST within its window or just above it, and none while it is listening. [9293
// 3.10.7.2, 3.10.7.4, 3.8.6.1; receiver.rs]
#[test]
fn a_rst_closes_the_receiver() {
    let mut tcp = Server::start(&base());
    let next = rst(tcp.segment(1000..1000).seq);
    tcp.is_reset(false).data(0..1000).is_silent().at(100).receives(next).is_silent().is_reset(true);
    tcp.no_timer().receives(next).is_silent().delivered(1000);
}

/// The sender does not know how much arrived: its RST follows all data sent, and is accepted from `rcv_nxt`
/// to the end of the window, plus one byte and FIN (RFC 9293 section 3.10.7.4, and section 3.8.6.1: a RST is
/// accepted although the window is closed).
// Rule: as a_rst_closes_the_receiver
#[test]
fn a_receiver_accepts_rst_within_the_window() {
    let settings = Settings { window: Bytes(4000).into(), ack_every: 1, ..base() };
    for (offset, valid) in [(999, false), (1000, true), (2500, true), (5002, true), (5003, false)] {
        let mut tcp = Server::start(&settings);
        let segment = rst(tcp.segment(offset..offset).seq);
        tcp.data(0..1000).acks(1000).receives(segment).is_silent().is_reset(valid);
    }
    for (offset, valid) in [(3999, false), (4000, true), (4002, true), (4003, false)] {
        let mut tcp = Server::start(&settings);
        let segment = rst(tcp.segment(offset..offset).seq);
        tcp.receiver.pause();
        tcp.data(0..4000).acks_with_window(4000, 0).receives(segment).is_silent().is_reset(valid);
    }
}

/// A RST to a listening receiver is ignored (RFC 9293 section 3.10.7.2).
// Rule: as a_rst_closes_the_receiver
#[test]
fn a_listening_receiver_ignores_rst() {
    let settings = with_handshake();
    let mut tcp = Server::start(&settings);
    let syn = Segment { seq: SeqNum(settings.iss), flags: Flags::SYN, ..Segment::default() };
    tcp.receives(rst(syn.seq)).is_silent().is_reset(false);
    assert_eq!(tcp.receives(syn).answer().flags, Flags::SYN | Flags::ACK);
}

/// An abort reaches the receiver despite earlier losses, and with a closed window.
// Rule: as a_rst_closes_the_receiver
#[test]
fn an_aborting_sender_resets_the_receiver() {
    for arrive in 0..=4 {
        let settings = Settings { window: Bytes(4000).into(), ack_every: 1, close: true, ..base() };
        let (mut client, mut server) = (Client::start_with(&settings, Some(4000)), Server::start(&settings));
        client.sent().into_iter().take(arrive).for_each(|segment| _ = server.receives(segment).answer());
        let rst = client.at(500).abort().sent()[0];
        server.receives(rst).is_silent().no_timer().is_reset(true);
    }
    let settings = Settings { window: Bytes(1000).into(), ack_every: 1, close: true, ..base() };
    let (mut client, mut server) = (Client::start_with(&settings, Some(1001)), Server::start(&settings));
    server.receiver.pause();
    let ack = server.receives(client.sent()[0]).answer();
    client.at(100).receives(ack).wakes_at(1100).sends(&["1000..1001 FIN"]).at(1200).abort();
    server.receives(client.sent()[0]).is_silent().is_reset(true);
}

/// The receiver's owner may reset the connection: the RST carries the next sequence numbers and replaces a
/// delayed ACK.
// Rule: A receiver's owner may reset the connection; received data can be read. [9293 3.10.5; receiver.rs]
#[test]
fn the_receiver_may_abort() {
    let mut tcp = Server::start(&base());
    let answer = tcp.data(0..1000).is_silent().at(100).abort().answer();
    assert_eq!((answer.flags, answer.len), (Flags::RST | Flags::ACK, 0));
    assert_eq!((answer.seq, answer.ack), (SeqNum(base().iss), tcp.segment(1000..1000).seq));
    tcp.is_reset(true).no_timer().abort().is_silent().is_reset(true);
}

/// It may do so before a sender has opened the connection, which is then refused.
// Rule: as the_receiver_may_abort
#[test]
fn the_receiver_may_abort_before_syn() {
    let settings = with_handshake();
    let (mut client, mut server) = (Client::start(&settings), Server::start(&settings));
    server.abort().is_silent().is_reset(true);
    let answer = server.receives(client.sent()[0]).answer();
    assert_eq!((answer.flags, answer.seq), (Flags::RST | Flags::ACK, SeqNum(0)));
    client.at(100).receives(answer).sends_nothing().is_aborted_at(100);
    let bare = server.segment(0..0);
    server.receives(Segment { seq: SeqNum(0), ..bare });
    assert_eq!(server.answer().flags, Flags::RST);
}

/// A lost RST is harmless: retransmissions of the sender are answered by another one, which it accepts (RFC
/// 9293 section 3.5.2, group 1), in every state; only a RST is not answered.
// Rule: A reset receiver answers each segment except RST with RST, so a lost RST is repeated. [9293 3.5.2,
// 3.10.7.1; receiver.rs]
#[test]
fn a_lost_rst_is_repeated() {
    let settings = base();
    let (mut client, mut server) = (Client::start(&settings), Server::start(&settings));
    client.sends_full(0..4);
    server.abort().answer();
    client.wakes_at(1000);
    let answer = server.at(1000).receives(client.sent()[0]).answer();
    assert_eq!((answer.flags, answer.ack), (Flags::RST, SeqNum(0)));
    client.receives(answer).sends_nothing().is_aborted_at(1000);
    server.receives(rst(server.segment(0..0).seq)).is_silent();

    let settings = with_handshake();
    let (mut client, mut server) = (Client::start(&settings), Server::start(&settings));
    let syn_ack = server.receives(client.sent()[0]).answer();
    client.at(100).receives(syn_ack);
    server.at(150).abort().answer();
    let answer = server.at(200).receives(client.sent()[0]).answer();
    client.at(300).receives(answer).sends_nothing().is_aborted_at(300);

    // SYN-ACK was lost, and so was RST.
    let (mut client, mut server) = (Client::start(&settings), Server::start(&settings));
    server.receives(client.sent()[0]).answer();
    server.at(150).abort().answer();
    client.wakes_at(1000);
    let answer = server.at(1000).receives(client.sent()[0]).answer();
    client.receives(answer).sends_nothing().is_aborted_at(1000);
}

/// The RST of a receiver whose SYN-ACK was lost acknowledges the SYN.
// Rule: as a_lost_rst_is_repeated
#[test]
fn rst_replaces_a_lost_syn_ack() {
    let (mut client, mut server) = (Client::start(&with_handshake()), Server::start(&with_handshake()));
    server.receives(client.sent()[0]).answer();
    let answer = server.abort().answer();
    client.at(100).receives(answer).sends_nothing().is_aborted_at(100);
}

/// Data received in order can still be read, without window updates.
// Rule: as the_receiver_may_abort
#[test]
fn received_data_can_be_read_after_a_reset() {
    for by_peer in [true, false] {
        let mut tcp = Server::start(&Settings { window: Bytes(4000).into(), ack_every: 1, ..base() });
        tcp.receiver.pause();
        tcp.data(0..3000).acks_with_window(3000, 1000);
        if by_peer {
            let segment = rst(tcp.segment(3000..3000).seq);
            tcp.receives(segment).is_silent();
        } else {
            tcp.abort().answer();
        }
        tcp.is_reset(true).unread(3000).reads(2000, 2000).is_silent().resume().is_silent().delivered(3000);
        assert!(!tcp.receiver.has_ended());
        let more = tcp.data(3000..4000).answer();
        assert_eq!(more.flags, Flags::RST);
        tcp.delivered(3000).no_timer();
    }
}
