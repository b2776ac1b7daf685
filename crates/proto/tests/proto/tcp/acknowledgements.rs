//! Classification of acknowledgements.

use lasthop_proto::tcp::{Flags, Flavour, Segment, Settings};

use crate::tcp::dialogue::{Client, settings};

const FLAVOURS: [Flavour; 3] = [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno];

/// An acknowledgement older than another that arrived changes nothing, not even the window (RFC 9293
/// section 3.10.7.4).
// Rule: Old ACKs, and ACKs of data never sent, are ignored. [9293 3.10.7.4; sender.rs]
#[test]
fn old_acknowledgements_are_ignored() {
    let mut tcp = Client::start(&settings(Flavour::NewReno, 4));
    tcp.sends_full(0..4).at(100).ack(2000).sends_full(4..7);
    tcp.at(200).with_window(100).acks(4, 1000).sends_nothing().dupacks(0).cwnd(5000.0).timer_at(1100);
    assert_eq!(tcp.sender.rwnd(), 1 << 20);
}

/// An acknowledgement of data never sent changes nothing (RFC 9293 section 3.10.7.4).
// Rule: as old_acknowledgements_are_ignored
#[test]
fn acknowledgements_of_unsent_data_are_ignored() {
    let mut tcp = Client::start(&settings(Flavour::NewReno, 4));
    tcp.sends_full(0..4).at(100).ack(4001).sends_nothing().cwnd(4000.0).timer_at(1000);
    assert_eq!(tcp.sender.flight_size(), 4000);
}

/// A segment without the ACK bit acknowledges nothing (RFC 9293 section 3.10.7.4).
// Rule: as old_acknowledgements_are_ignored
#[test]
fn segments_without_ack_acknowledge_nothing() {
    let mut tcp = Client::start(&settings(Flavour::NewReno, 4));
    let segment = Segment { flags: Flags::default(), ..tcp.bare_ack(1000) };
    tcp.sends_full(0..4).at(100).receives(segment).sends_nothing().cwnd(4000.0);
}

/// A duplicate acknowledgement acknowledges nothing new while data are outstanding, carries neither
/// data nor SYN nor FIN, and leaves the window as it is (RFC 5681 section 2).
// Rule: A duplicate ACK: data outstanding, nothing acknowledged, no data, SYN or FIN, window unchanged. [5681
// 2; state/loss.rs]
#[test]
fn conditions_of_a_duplicate_ack() {
    for flavour in FLAVOURS {
        let mut tcp = Client::start_with(&settings(flavour, 4), Some(4000));
        let duplicate = tcp.bare_ack(0);
        let fin = Flags::ACK | Flags::FIN;
        tcp.sends_full(0..4).at(100);
        tcp.receives(duplicate).dupacks(1);
        tcp.receives(Segment { len: 1, ..duplicate }).dupacks(1).sends(&["ACK"]);
        tcp.receives(Segment { flags: fin, ..duplicate }).dupacks(1).sends(&["ACK"]);
        tcp.receives(Segment { wnd: duplicate.wnd - 1, ..duplicate }).dupacks(1);
        tcp.receives(duplicate).dupacks(1);
        tcp.receives(duplicate).dupacks(2);
        tcp.ack(4000).is_finished().acks(3, 4000).dupacks(0).sends_nothing();
    }
}

/// An acknowledgement of new data ends the row of duplicates (RFC 5681 section 3.2).
// Rule: An ACK of new data resets the duplicate count; the third duplicate, or the configured one, indicates
// a loss. [5681 3.2; state.rs state/loss.rs]
#[test]
fn new_data_reset_the_duplicate_count() {
    for flavour in FLAVOURS {
        let mut tcp = Client::start(&settings(flavour, 4));
        tcp.sends_full(0..4).at(100).acks(2, 0).dupacks(2).sends_nothing();
        tcp.ack(1000).dupacks(0).sends_full(4..6).acks(2, 1000).sends_nothing();
    }
}

/// The threshold of duplicates is a setting: the segment is retransmitted on that one and not before (RFC
/// 5681 section 3.2: the third).
// Rule: as new_data_reset_the_duplicate_count
#[test]
fn retransmission_at_the_duplicate_threshold() {
    for dupthresh in [1, 2, 3, 4, 6] {
        for flavour in FLAVOURS {
            let mut tcp = Client::start(&Settings { dupthresh, ..settings(flavour, 8) });
            tcp.sends_full(0..8).at(100).acks(dupthresh - 1, 0).sends_nothing().ack(0).sends_first("0..1000");
        }
    }
}
