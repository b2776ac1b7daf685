//! The timestamps option (RFC 7323).

use lasthop_base::{Duration, Time};
use lasthop_proto::Component;
use lasthop_proto::tcp::{Flavour, Segment, Settings, Timestamps};

use crate::tcp::dialogue::{Client, MSS, Server, ms, settings};

fn stamped(flavour: Flavour, initial: u32) -> Settings {
    Settings { timestamps: true, ..settings(flavour, initial) }.with_mss(MSS)
}

/// The echo is the timestamp of the earliest segment acknowledged: with delayed ACKs the sender then measures
/// the delay (section 4.3 case A).
// Rule: The echo is that of the earliest segment acknowledged or the last in order, and never moves back.
// [7323 4.3; receiver.rs state.rs]
#[test]
fn the_earliest_segment_is_echoed() {
    let mut tcp = Server::start(&stamped(Flavour::NewReno, 4));
    tcp.data_ts(0..1000, 10).data_ts(1000..2000, 20).acks_with_echo(2000, 10);
    tcp.data_ts(2000..3000, 30).data_ts(3000..4000, 40).acks_with_echo(4000, 30);
}

/// An out-of-order segment does not change the echo; the one that fills the hole does (section 4.3 cases B
/// and C).
// Rule: as the_earliest_segment_is_echoed
#[test]
fn holes_do_not_change_the_echo() {
    let mut tcp = Server::start(&Settings { ack_every: 1, ..stamped(Flavour::NewReno, 4) });
    tcp.data_ts(0..1000, 10).acks_with_echo(1000, 10);
    tcp.data_ts(2000..3000, 30).acks_with_echo(1000, 10).data_ts(3000..4000, 40).acks_with_echo(1000, 10);
    tcp.data_ts(1000..2000, 50).acks_with_echo(4000, 50);
}

/// A reordered segment does not move the echo back (section 4.3: TSval ≥ TS.Recent), across the wrap of the
/// clock too.
// Rule: as the_earliest_segment_is_echoed
#[test]
fn a_reordered_segment_does_not_move_the_echo_back() {
    for base in [100, u32::MAX - 5] {
        let mut tcp = Server::start(&Settings { ack_every: 1, ..stamped(Flavour::NewReno, 4) });
        tcp.data_ts(0..1000, base.wrapping_add(10)).acks_with_echo(1000, base.wrapping_add(10));
        tcp.data_ts(0..1000, base).acks_with_echo(1000, base.wrapping_add(10));
        tcp.data_ts(0..1000, base.wrapping_add(11)).acks_with_echo(1000, base.wrapping_add(11));
    }
}

/// The first timestamp is accepted with any value.
// Rule: as the_earliest_segment_is_echoed
#[test]
fn the_first_timestamp_is_accepted() {
    let mut tcp = Server::start(&Settings { ack_every: 1, ..stamped(Flavour::NewReno, 4) });
    tcp.data_ts(0..1000, u32::MAX - 7).acks_with_echo(1000, u32::MAX - 7);
}

/// Every acknowledgement of new data is a sample, also for retransmitted data, because the echo identifies
/// the copy (sections 3.1, 4.1); it ends the backoff.
// Rule: Each ACK of new data is a sample, retransmitted data included; others are not. [7323 4.1; state.rs]
#[test]
fn retransmissions_give_samples() {
    let mut tcp = Client::start(&stamped(Flavour::NewReno, 1));
    tcp.sends_full(0..1).wakes_at(1000).sends_full(0..1).rto(2000);
    tcp.at(1100).ack_echo(1000, ms(1000)).srtt(Some(100)).rto(1000).timer_at(2100);
}

/// The delivered copy may be the first one, if the timeout was spurious.
// Rule: as retransmissions_give_samples
#[test]
fn the_echo_identifies_the_delivered_copy() {
    let mut tcp = Client::start(&stamped(Flavour::NewReno, 1));
    tcp.sends_full(0..1).wakes_at(1000).sends_full(0..1);
    tcp.at(1100).ack_echo(1000, ms(0)).srtt(Some(1100)).rto(1100 + 4 * 550);
}

/// Partial acknowledgements are samples as well, since they acknowledge new data (section 4.1).
// Rule: as retransmissions_give_samples
#[test]
fn partial_acknowledgements_give_samples() {
    for flavour in [Flavour::NewReno, Flavour::Sack] {
        let mut tcp = Client::start(&stamped(flavour, 8));
        tcp.sends_full(0..8).at(100).sack(0, &[1000..2000]).sack(0, &[1000..2000, 3000..4000]);
        tcp.sack(0, &[1000..2000, 3000..5000]).sends_first("0..1000");
        tcp.at(180).ack_echo(2000, ms(100)).srtt(Some(80)).sent();
    }
}

/// An acknowledgement of nothing new is not a sample (section 4.1).
// Rule: as retransmissions_give_samples
#[test]
fn duplicates_give_no_sample() {
    let mut tcp = Client::start(&stamped(Flavour::NewReno, 4));
    tcp.sends_full(0..4).at(100).ack_echo(0, ms(50)).srtt(None).dupacks(1);
}

/// The microsecond clock wraps after 71 minutes; a round trip across the wrap is measured correctly (section
/// 5.4).
// Rule: The clock wraps; an echo ahead of the clock is a sample of zero. [7323 5.4; state.rs]
#[test]
fn the_clock_wraps() {
    let wrap = Time::from_nanos((1 << 32) * 1_000);
    let before = Time::from_nanos(wrap.as_nanos() - 30_000_000);
    let mut tcp = Client::start(&stamped(Flavour::NewReno, 1));
    tcp.sends_full(0..1).at(100).with_window(0).ack_echo(1000, ms(0)).srtt(Some(100));
    while tcp.sender.next_wakeup() < before {
        let due = tcp.sender.next_wakeup().as_nanos() / 1_000_000;
        tcp.wakes_at(due).sends(&["1000..1001"]);
    }
    tcp.at_time(before).with_window(1 << 20).ack_echo(1000, before);
    let value = tcp.sent()[0].timestamps.expect("timestamps").value;
    assert_eq!(value, 0u32.wrapping_sub(30_000));
    tcp.at_time(wrap + Duration::from_millis(70)).ack_echo(2000, before).srtt(Some(100));
}

/// Segments echo the latest timestamp of the peer (section 3.2).
// Rule: as the_earliest_segment_is_echoed
#[test]
fn segments_echo_the_latest_timestamp_of_the_peer() {
    let mut tcp = Client::start(&stamped(Flavour::NewReno, 1));
    let ack = tcp.sends_full(0..1).bare_ack(1000);
    let timestamps = Some(Timestamps { value: 777, echo: 0 });
    tcp.at(100).receives(Segment { timestamps, ..ack });
    let sent = tcp.sent()[0].timestamps.expect("timestamps");
    assert_eq!((sent.value, sent.echo), (100_000, 777));
}

/// An echo ahead of the clock, from a misbehaving peer, counts as a round trip of zero, not of an age.
// Rule: as the_clock_wraps
#[test]
fn an_echo_ahead_of_the_clock_is_a_zero_sample() {
    let mut tcp = Client::start(&stamped(Flavour::NewReno, 1));
    tcp.sends_full(0..1).at(100).ack_echo(1000, ms(5_000)).srtt(Some(0)).sends_full(1..3);
}
