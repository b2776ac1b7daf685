//! Fast retransmit and fast recovery: Tahoe, Reno, NewReno. Eight segments are in flight, and the first of
//! them, possibly with others, is lost.

use lasthop_base::Bytes;
use lasthop_proto::tcp::{Deflation, Flavour, Settings};

use crate::tcp::dialogue::{Client, settings};

/// Eight segments are in flight.
fn eight(settings: &Settings) -> Client {
    let mut tcp = Client::start(settings);
    tcp.sends_full(0..8).at(100);
    tcp
}

/// Tahoe: the third duplicate ACK reduces the window to one segment, sets ssthresh to half the flight, and
/// restarts the timer; further duplicates have no effect. Everything from the hole on is retransmitted in
/// slow start (Jacobson 1988; RFC 5681 equation 4).
// Rule: Tahoe: window of one segment, slow start from the hole on. [Jacobson 1988; recovery/tahoe.rs]
#[test]
fn tahoe() {
    let mut tcp = eight(&settings(Flavour::Tahoe, 8));
    tcp.acks(2, 0).sends_nothing().cwnd(8000.0).ack(0).sends_full(0..1);
    tcp.cwnd(1000.0).ssthresh(4000.0).timer_at(1100).acks(4, 0).sends_nothing().cwnd(1000.0);
    tcp.at(200).ack(2000).cwnd(2000.0).sends_full(2..4);
    tcp.at(300).ack(8000).cwnd(3000.0).sends_full(8..11);
}

/// Reno: the third duplicate ACK halves the window and retransmits the first segment. Each further duplicate,
/// which shows that a segment has left the network, allows one segment. The first new acknowledgement ends
/// recovery with `cwnd = ssthresh` (RFC 5681 section 3.2 steps 2-6).
// Rule: Reno: half the flight, inflation by duplicates, ssthresh at the first new ACK. [5681 3.2;
// recovery/reno.rs]
#[test]
fn reno() {
    let mut tcp = eight(&settings(Flavour::Reno, 8));
    tcp.acks(2, 0).sends_nothing().ack(0).sends_full(0..1).cwnd(4000.0).ssthresh(4000.0).timer_at(1100);
    tcp.acks(1, 0).sends_nothing();
    tcp.ack(0).sends_full(8..9).ack(0).sends_full(9..10).ack(0).sends_full(10..11).cwnd(4000.0);
    tcp.at(200).ack(8000).cwnd(4000.0).sends_full(11..12);
    tcp.at(300).ack(9000).cwnd(4250.0).sends_full(12..13);
}

/// Reno recovers one hole: after a partial acknowledgement it waits for more duplicates. Those of the same
/// flight do not count as a new loss (RFC 6582 section 4.1), unless the settings say so, and then the window
/// is halved again (RFC 5681 section 4.3).
// Rule: One fast retransmit per flight, or several. [6582 4.1, 5681 4.3; state/loss.rs]
#[test]
fn reno_with_two_losses() {
    let mut tcp = eight(&settings(Flavour::Reno, 8));
    tcp.acks(3, 0).sends_full(0..1).ack(2000).sends_nothing();
    tcp.acks(4, 2000).sends_nothing().cwnd(4000.0).wakes_at(1100).sends_full(2..3);
    let mut tcp = eight(&Settings { careful: false, ..settings(Flavour::Reno, 8) });
    tcp.acks(3, 0).sends_full(0..1).ack(2000).acks(2, 2000).sends_nothing();
    tcp.ack(2000).sends_full(2..3).cwnd(3000.0).ssthresh(3000.0);
}

/// The inflated window never exceeds the receive window (RFC 5681 section 3.2 step 5).
// Rule: as windows::the_receive_window_limits_the_flight
#[test]
fn inflation_respects_the_receive_window() {
    for flavour in [Flavour::Reno, Flavour::NewReno] {
        let mut tcp = eight(&Settings { window: Bytes(9000).into(), ..settings(flavour, 8) });
        tcp.acks(3, 0).sends_full(0..1).acks(1, 0).ack(0).sends_full(8..9).acks(5, 0).sends_nothing();
        assert_eq!(tcp.sender.usable_window(), 9000);
    }
}

/// 4.4BSD leaves the window inflated after exactly three duplicates.
// Rule: The end of Reno's recovery takes back the inflation of a reduced window, unless `deflation` is another.
// [5681 3.2 step 6; recovery/reno.rs state.rs]
#[test]
fn the_inflation_may_remain() {
    for (deflation, windows) in [
        (Deflation::Always, [4000.0; 2]),
        (Deflation::Net3, [7000.0, 4000.0]),
        (Deflation::Never, [7000.0, 8000.0]),
    ] {
        for (duplicates, window) in [3, 4].into_iter().zip(windows) {
            let mut tcp = eight(&Settings { deflation, ..settings(Flavour::Reno, 8) });
            tcp.acks(3, 0).sends_full(0..1).acks(duplicates - 3, 0).at(200).ack(8000).cwnd(window);
        }
    }
}

/// NewReno with three holes: a partial acknowledgement retransmits the next hole at once, deflates the window
/// by the bytes acknowledged and adds one segment. Recovery lasts until everything outstanding at its start
/// is acknowledged, and ends with min(ssthresh, flight + one segment) (RFC 6582 section 3.2 step 3).
// Rule: NewReno: a partial ACK retransmits the next hole, deflates, adds back a segment. [6582 3.2 step 3;
// recovery/newreno.rs]
// Rule: as newreno_ends_with_at_most_ssthresh
#[test]
fn newreno_repairs_one_hole_per_partial_ack() {
    let mut tcp = eight(&settings(Flavour::NewReno, 8));
    tcp.acks(3, 0).sends_full(0..1).cwnd(4000.0).ssthresh(4000.0);
    tcp.acks(1, 0).ack(0).sends_full(8..9).ack(0).sends_full(9..10);
    // Inflated to 10,000, less 2000, plus 1000: up to 2000 + 9000.
    tcp.at(200).ack(2000).sends(&["2000..3000", "10000..11000"]);
    tcp.ack(2000).sends_full(11..12);
    tcp.at(300).ack(4000).sends(&["4000..5000", "12000..13000"]).cwnd(4000.0);
    tcp.at(400).ack(11_000).cwnd(3000.0).sends_full(13..14);
    tcp.at(500).ack(12_000).cwnd(4000.0).sends_full(14..16);
}

/// The window after recovery is ssthresh if more than that is in flight (RFC 6582 section 3.2 step 3).
// Rule: NewReno ends with min(ssthresh, max(flight, SMSS) + SMSS). [6582 3.2 step 3; state.rs cc/mod.rs]
#[test]
fn newreno_ends_with_at_most_ssthresh() {
    let mut tcp = eight(&settings(Flavour::NewReno, 8));
    tcp.acks(3, 0).sends_full(0..1).acks(1, 0);
    (8..12).for_each(|n| _ = tcp.ack(0).sends_full(n..n + 1));
    tcp.at(200).ack(8000).cwnd(4000.0).sends_nothing();
}

/// An acknowledgement of everything that was outstanding is full; one byte less is partial (RFC 6582 section
/// 3.2 steps 2 and 3).
// Rule: as newreno_repairs_one_hole_per_partial_ack
#[test]
fn newreno_distinguishes_full_and_partial_acks() {
    let mut tcp = eight(&settings(Flavour::NewReno, 8));
    tcp.acks(3, 0).sends_full(0..1).at(200).ack(7999).sends(&["7999..8000", "8000..9000"]);
    let mut tcp = eight(&settings(Flavour::NewReno, 8));
    tcp.acks(3, 0).sends_full(0..1).at(200).ack(8000).cwnd(2000.0).sends_full(8..10);
}

/// A partial acknowledgement of less than a segment adds none to the window (RFC 6582 section 3.2 step 3).
// Rule: as newreno_repairs_one_hole_per_partial_ack
#[test]
fn newreno_deflates_by_less_than_a_segment() {
    let mut tcp = eight(&settings(Flavour::NewReno, 8));
    tcp.acks(3, 0).sends_full(0..1).at(200).ack(400).sends(&["400..1400"]);
    assert_eq!(tcp.sender.usable_window(), 7000 - 400);
    tcp.ack(1400).sends(&["1400..2400"]);
    assert_eq!(tcp.sender.usable_window(), 6600 - 1000 + 1000);
}

/// Only the first partial acknowledgement restarts the timer, so that many losses soon lead to a timeout;
/// with "slow but steady", each does (RFC 6582 section 3.2 step 3; RFC 3782 section 4).
// Rule: The first partial ACK of each recovery restarts the timer, or each does. [6582 3.2 step 3, 3782 4;
// recovery/newreno.rs]
#[test]
fn newreno_impatient_or_slow_but_steady() {
    for (impatient, second) in [(true, 1200), (false, 1300)] {
        let mut tcp = eight(&Settings { impatient, ..settings(Flavour::NewReno, 8) });
        tcp.acks(3, 0).sends_full(0..1).timer_at(1100);
        tcp.at(200).ack(2000).sends_full(2..3).timer_at(1200);
        tcp.at(300).ack(4000).sends(&["4000..5000", "8000..9000"]).timer_at(second);
    }
}

/// Each recovery restarts the timer on its own first partial acknowledgement.
// Rule: as newreno_impatient_or_slow_but_steady
#[test]
fn newreno_is_impatient_in_each_recovery() {
    let mut tcp = eight(&settings(Flavour::NewReno, 8));
    tcp.acks(3, 0).sends_full(0..1).at(200).ack(2000).sends_full(2..3);
    tcp.at(300).ack(8000).sends_full(8..10).ack(9000).sends_full(10..12);
    tcp.ack(10_000).sends_full(12..14).ack(11_000).sends_full(14..15);
    tcp.at(400).acks(3, 11_000).sends(&["11000..12000", "15000..16000"]).timer_at(1400);
    tcp.at(500).ack(13_000).sends_first("13000..14000").timer_at(1500);
}

/// A timeout ends fast recovery; slow start follows (RFC 6582 section 3.2 step 4).
// Rule: A timeout ends recovery; a lost retransmission halves again. [6582 3.2 step 4, 5681 4.3;
// recovery/newreno.rs recovery/reno.rs]
#[test]
fn a_timeout_ends_recovery() {
    for flavour in [Flavour::Reno, Flavour::NewReno] {
        let mut tcp = eight(&settings(flavour, 8));
        tcp.acks(3, 0).sends_full(0..1).acks(1, 0).ack(0).sends_full(8..9).wakes_at(1100).sends_full(0..1);
        tcp.cwnd(1000.0).at(1200).ack(1000).cwnd(2000.0).sends_full(1..3);
        tcp.ack(2000).cwnd(3000.0).sends_full(3..5);
    }
}

/// Duplicates for data outstanding at the timeout are not a new loss, up to and including an acknowledgement of
/// exactly that; above it they are (RFC 6582 section 3.2 steps 2 and 4).
// Rule: Duplicates for data outstanding at a timeout or a recovery are not a new loss. [6582 3.2 steps 2, 4;
// state/loss.rs]
#[test]
fn no_fast_retransmit_of_data_outstanding_at_a_timeout() {
    for flavour in [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno] {
        let mut tcp = Client::start(&settings(flavour, 8));
        tcp.sends_full(0..8).wakes_at(1000).sends_full(0..1);
        tcp.at(1100).acks(4, 0).sends_nothing().cwnd(1000.0);
        tcp.ack(8000).cwnd(2000.0).sends_full(8..10).acks(4, 8000).sends_nothing().cwnd(2000.0);
        tcp.ack(9000).cwnd(3000.0).sends_full(10..12).acks(2, 9000).sends_nothing();
        tcp.ack(9000).sends_first("9000..10000").ssthresh(2000.0);
    }
}

/// Acknowledgements of exactly the data outstanding may be caused by redundant retransmissions, so after a
/// recovery, too, duplicates of them are not a new loss (RFC 6582 section 3.2 step 2).
// Rule: as no_fast_retransmit_of_data_outstanding_at_a_timeout
#[test]
fn newreno_ignores_duplicates_at_the_recovery_point() {
    let mut tcp = eight(&settings(Flavour::NewReno, 8));
    tcp.acks(3, 0).sends_full(0..1).acks(1, 0);
    (8..12).for_each(|n| _ = tcp.ack(0).sends_full(n..n + 1));
    tcp.at(200).ack(8000).acks(4, 8000).sends_nothing().cwnd(4000.0).ssthresh(4000.0);
}

/// A lost fast retransmit leads to a timeout. The flight includes data delivered meanwhile; half of it must
/// not raise ssthresh above the value after the first loss.
// Rule: as a_timeout_ends_recovery
#[test]
fn a_lost_retransmission_times_out() {
    let mut tcp = eight(&settings(Flavour::NewReno, 8));
    tcp.acks(3, 0).sends_full(0..1).ssthresh(4000.0).acks(1, 0);
    (8..11).for_each(|n| _ = tcp.ack(0).sends_full(n..n + 1));
    tcp.wakes_at(1100).sends_full(0..1).ssthresh(4000.0).cwnd(1000.0);
}

/// A fast retransmit is no longer than the original segment, which the window may have limited.
// Rule: A retransmission is no longer than the original. [state/output.rs]
#[test]
fn fast_retransmit_adds_no_new_data() {
    let mut tcp =
        Client::start(&Settings { window: Bytes(1200).into(), dupthresh: 1, ..settings(Flavour::Reno, 8) });
    tcp.sends_full(0..1).at(100).with_window(700).ack(1000).sends(&["1000..1700"]);
    tcp.ack(1000).sends(&["1000..1700"]);
}
