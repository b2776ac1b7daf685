//! Connection establishment and termination.

use lasthop_base::Duration;
use lasthop_proto::tcp::{Flags, Flavour, Rules, Segment, SeqNum, Settings, Timestamps, Transfer};

use crate::tcp::dialogue::{Client, MSS, Server, ms, settings};

fn with_handshake() -> Settings {
    Settings { handshake: true, close: true, ..settings(Flavour::NewReno, 4) }
}

/// The acknowledgement of SYN releases the initial window (RFC 9293 section 3.5) and gives the first
/// round-trip sample (RFC 6298 section 3).
// Rule: The acknowledgement of SYN releases the initial window and is a round-trip sample. [9293 3.5, 6298 3;
// sender.rs]
#[test]
fn syn_ack_releases_the_initial_window() {
    let mut tcp = Client::start(&with_handshake());
    tcp.sends(&["SYN"]).timer_at(1000);
    tcp.at(400).syn_ack().sends_full(0..4).cwnd(4000.0).srtt(Some(400)).timer_at(1600);
}

/// Data segments acknowledge the peer's SYN (RFC 9293 section 3.10.7.3).
// Rule: Data, or a pure ACK, acknowledge the peer's SYN. [9293 3.10.7.3; sender.rs]
#[test]
fn data_acknowledge_the_syn_of_the_peer() {
    let mut tcp = Client::start_with(&with_handshake(), Some(500));
    tcp.sends(&["SYN"]).at(100).syn_ack();
    assert_eq!(tcp.sent()[0].ack, SeqNum(101));
}

/// Without data, a pure ACK completes the handshake (RFC 9293 section 3.10.7.3).
// Rule: as data_acknowledge_the_syn_of_the_peer
#[test]
fn without_data_a_pure_ack_completes_the_handshake() {
    let mut tcp = Client::start(&with_handshake());
    tcp.sends(&["SYN"]).at(100).with_window(0).syn_ack();
    let ack = tcp.sent()[0];
    assert_eq!((ack.flags, ack.len, ack.ack), (Flags::ACK, 0, SeqNum(101)));
}

/// SYN is retransmitted, with the timeout doubled each time (RFC 6298 sections 5.4-5.6).
// Rule: A lost SYN is retransmitted with backoff. [6298 5.4-5.6; sender.rs]
#[test]
fn a_lost_syn_is_retransmitted_with_backoff() {
    let mut tcp = Client::start(&with_handshake());
    tcp.sends(&["SYN"]);
    for due in [1000, 3000, 7000] {
        tcp.wakes_at(due).sends(&["SYN"]);
    }
    tcp.timer_at(15_000);
}

/// After a retransmitted SYN its acknowledgement gives no sample (Karn), the RTO for data is 3 s (RFC 6298
/// section 5.7), and the initial window is one segment (RFC 5681 section 3.1). No data were lost, so ssthresh
/// is unchanged.
// Rule: After a retransmitted SYN: no sample, an RTO of 3 s, an initial window of one segment, ssthresh
// unchanged. [6298 3, 5.7; 5681 3.1; state.rs state/loss.rs rtt.rs]
#[test]
fn after_a_lost_syn_the_window_is_one_segment() {
    let mut tcp = Client::start(&with_handshake());
    tcp.sends(&["SYN"]).wakes_at(1000).sends(&["SYN"]);
    tcp.at(1100).syn_ack().sends_full(0..1).cwnd(1000.0).ssthresh(f64::INFINITY);
    tcp.srtt(None).rto(3000).timer_at(4100);
    tcp.at(1200).ack(1000).sends_full(1..3).srtt(Some(100)).timer_at(2200);
}

/// In ns-2 a lost SYN reduces ssthresh as lost data do: to half the window, at least two segments.
// Rule: as after_a_lost_syn_the_window_is_one_segment
#[test]
fn in_ns2_a_lost_syn_reduces_ssthresh() {
    let mut tcp = Client::start(&Settings { rules: Rules::Ns2, ..with_handshake() });
    tcp.sends(&["SYN"]).ssthresh(f64::INFINITY).wakes_at(1000).sends(&["SYN"]).ssthresh(2000.0);
}

/// An initial timeout of 3 s or more is not shortened after a lost SYN (RFC 6298 section 5.7).
// Rule: as after_a_lost_syn_the_window_is_one_segment
#[test]
fn after_a_lost_syn_a_long_initial_rto_is_kept() {
    let rto_initial = Duration::from_secs(4);
    let mut tcp = Client::start(&Settings { rto_initial, ..with_handshake() });
    tcp.sends(&["SYN"]).wakes_at(4000).sends(&["SYN"]);
    tcp.at(4100).syn_ack().sends_full(0..1).timer_at(12_100);
}

/// Timestamps identify the copies of SYN, so its acknowledgement is a valid sample (RFC 7323 section 4.1).
// Rule: as after_a_lost_syn_the_window_is_one_segment
#[test]
fn timestamps_give_a_sample_of_a_retransmitted_syn() {
    let mut tcp = Client::start(&Settings { timestamps: true, ..with_handshake() }.with_mss(MSS));
    tcp.sends(&["SYN"]).wakes_at(1000).sends(&["SYN"]);
    let timestamps = Some(Timestamps { value: 0, echo: 1_000_000 });
    let syn_ack = Segment { timestamps, ..tcp.syn_ack_segment() };
    tcp.at(1100).receives(syn_ack).sends_full(0..1).srtt(Some(100)).timer_at(2100);
}

/// A retransmitted SYN-ACK, sent because our ACK was lost, is acknowledged again (RFC 9293 section 3.10.7.4)
/// and is not a duplicate ACK (RFC 5681 section 2).
// Rule: as syn_is_answered_by_syn_ack
#[test]
fn a_repeated_syn_ack_is_acknowledged() {
    let mut tcp = Client::start(&with_handshake());
    tcp.sends(&["SYN"]).at(100).syn_ack().sends_full(0..4);
    tcp.at(200).syn_ack().sends(&["ACK"]).dupacks(0);
}

/// Only a SYN that acknowledges ours opens the connection (RFC 9293 section 3.10.7.3).
// Rule: Only a SYN that acknowledges ours opens the connection. [9293 3.10.7.3; sender.rs]
#[test]
fn only_a_syn_ack_opens_the_connection() {
    let mut tcp = Client::start(&with_handshake());
    let (ack, syn_ack) = (tcp.bare_ack(0), tcp.syn_ack_segment());
    tcp.sends(&["SYN"]).at(100);
    tcp.receives(ack).sends_nothing();
    tcp.receives(Segment { ack: ack.ack + 1, ..syn_ack }).sends_nothing();
    tcp.receives(Segment { ack: SeqNum(ack.ack.0.wrapping_sub(1)), ..syn_ack }).sends_nothing();
    tcp.receives(Segment { flags: Flags::SYN, ..syn_ack }).sends_nothing();
    tcp.syn_ack().sends_full(0..4);
}

/// No arriving segment starts a transfer before its start time.
// Rule: as only_a_syn_ack_opens_the_connection
#[test]
fn segments_before_the_start_are_ignored() {
    let settings = settings(Flavour::NewReno, 4);
    let mut tcp = Client::waiting(&settings, Transfer { bytes: None, start: ms(500) });
    tcp.at(100).ack(0).sends_nothing().wakes_at(500).sends_full(0..4);
}

/// An empty transfer consists of SYN and FIN.
// Rule: as the_last_segment_carries_fin
#[test]
fn an_empty_transfer_opens_and_closes() {
    let mut tcp = Client::start_with(&with_handshake(), Some(0));
    tcp.sends(&["SYN"]).at(100).syn_ack().sends(&["0 FIN"]).at(200).ack(1).is_finished();
    let mut tcp = Client::start_with(&Settings { close: false, ..with_handshake() }, Some(0));
    tcp.sends(&["SYN"]).at(100).syn_ack().sends(&["ACK"]).is_finished();
}

/// The last segment carries FIN, which takes one sequence number (RFC 9293 section 3.4); the transfer is
/// complete when FIN is acknowledged.
// Rule: FIN is sent with the last data, takes a sequence number, and is retransmitted until acknowledged.
// [9293 3.4, 6298 5.4; state/output.rs]
#[test]
fn the_last_segment_carries_fin() {
    let settings = Settings { close: true, ..settings(Flavour::NewReno, 4) };
    let mut tcp = Client::start_with(&settings, Some(1500));
    tcp.sends(&["0..1000", "1000..1500 FIN"]);
    tcp.at(100).ack(1500).is_not_finished().at(200).ack(1501).is_finished();
}

/// FIN is retransmitted until it is acknowledged, alone or with the data before it (RFC 6298 section 5.4).
// Rule: as the_last_segment_carries_fin
#[test]
fn a_lost_fin_is_retransmitted() {
    for flavour in [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack] {
        let settings = Settings { close: true, ..settings(flavour, 4) };
        let mut tcp = Client::start_with(&settings, Some(1000));
        tcp.sends(&["0..1000 FIN"]).wakes_at(1000).sends(&["0..1000 FIN"]);
        tcp.at(1100).ack(1000).sends_nothing().wakes_at(3100).sends(&["1000 FIN"]);
        tcp.wakes_at(7100).sends(&["1000 FIN"]).at(7200).ack(1001).is_finished();
    }
}

/// The peer's FIN is acknowledged, each copy of it (RFC 9293 section 3.10.7.4).
// Rule: Each copy of the peer's FIN is acknowledged. [9293 3.10.7.4; sender.rs]
#[test]
fn the_peers_fin_is_acknowledged() {
    let settings = Settings { close: true, ..settings(Flavour::NewReno, 4) };
    let mut tcp = Client::start_with(&settings, Some(1000));
    tcp.sends(&["0..1000 FIN"]);
    let fin = Segment { flags: Flags::ACK | Flags::FIN, ..tcp.bare_ack(1001) };
    for time in [100, 200] {
        tcp.at(time).receives(fin).is_finished();
        let answer = tcp.sent()[0];
        assert_eq!((answer.flags, answer.len, answer.ack), (Flags::ACK, 0, SeqNum(102)));
    }
}

/// The receiver answers each copy of SYN with SYN-ACK (RFC 9293 section 3.10.7.4), which takes a sequence number
/// (section 3.4); data before SYN are ignored.
// Rule: A lost SYN-ACK is retransmitted, and acknowledged again. [9293 3.10.7.4; receiver.rs sender.rs]
#[test]
fn syn_is_answered_by_syn_ack() {
    let mut tcp = Server::start(&with_handshake());
    let syn = Segment { seq: SeqNum(with_handshake().iss), flags: Flags::SYN, ..Segment::default() };
    tcp.data(0..1000).is_silent();
    for _ in 0..2 {
        let answer = tcp.receives(syn).answer();
        assert_eq!((answer.flags, answer.seq, answer.ack), (Flags::SYN | Flags::ACK, syn.seq, syn.seq + 1));
    }
    let ack = tcp.data(0..1000).data(1000..2000).delivered(2000).answer();
    assert_eq!((ack.flags, ack.seq, ack.ack), (Flags::ACK, syn.seq + 1, syn.seq + 2001));
}

/// FIN is processed once all data before it have arrived, acknowledged immediately, and answered with our FIN.
// Rule: FIN is processed once all data before it have arrived, and acknowledged at once. [9293 3.10.7.4, 5681
// 4.2; receiver.rs]
#[test]
fn fin_is_processed_after_the_data_before_it() {
    let mut tcp = Server::start(&Settings { close: true, ..settings(Flavour::NewReno, 4) });
    tcp.at(0).data_fin(2000..2000).acks(0);
    tcp.data(0..1000).is_silent();
    let answer = tcp.at(10).data(1000..2000).answer();
    assert_eq!(answer.flags, Flags::ACK | Flags::FIN);
    assert_eq!(answer.ack, tcp.segment(2001..2001).seq);
    tcp.data_fin(2000..2000).acks(2001).delivered(2000).no_timer();
}

/// The segment that fills the gap before an early FIN is acknowledged immediately (RFC 5681 section 4.2).
// Rule: as fin_is_processed_after_the_data_before_it
#[test]
fn filling_the_gap_before_a_fin_is_acknowledged_at_once() {
    let mut tcp = Server::start(&Settings { close: true, ..settings(Flavour::NewReno, 4) });
    tcp.data_fin(1000..1000).acks(0);
    tcp.data(0..1000).acks(1001).no_timer();
}

/// FIN with the last data is acknowledged immediately.
// Rule: as fin_is_processed_after_the_data_before_it
#[test]
fn fin_with_data_is_acknowledged_at_once() {
    let mut tcp = Server::start(&settings(Flavour::NewReno, 4));
    tcp.at(10).data_fin(0..700).acks(701).at(20).data_fin(0..700).acks(701).delivered(700);
    assert_eq!(tcp.receiver.stats().last_delivery, ms(10));
}
