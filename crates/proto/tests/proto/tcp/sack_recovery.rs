//! SACK-based recovery (RFC 6675). Ten segments are in flight.

use std::ops::Range;

use lasthop_base::Bytes;
use lasthop_proto::tcp::{Flavour, Settings};

use crate::tcp::dialogue::{Client, settings};

fn sack() -> Settings {
    settings(Flavour::Sack, 10)
}

/// Ten segments are in flight; more data follow unless `bytes` ends the transfer.
fn ten(settings: &Settings, bytes: Option<u64>) -> Client {
    let mut tcp = Client::start_with(settings, bytes);
    tcp.sends_full(0..10).at(100);
    tcp
}

/// One range growing segment by segment from `from` to `to`, as arrivals behind a hole are reported.
fn grows(tcp: &mut Client, ack: u32, from: u32, to: Range<u32>) {
    to.for_each(|n| _ = tcp.sack(ack, &[from..(n + 1) * 1000]));
}

/// A loss is detected at the duplicate threshold; it halves the flight, and the first segment is
/// retransmitted. From then on new data are sent whenever the pipe (neither lost nor SACKed, plus
/// retransmitted) is a segment below the window (section 5 steps 1, 4 and C).
// Rule: SetPipe; transmission while cwnd − pipe ≥ SMSS. [6675 4, 5 C; recovery/sack.rs]
#[test]
fn the_pipe_limits_transmission() {
    let mut tcp = ten(&sack(), None);
    tcp.sack(0, &[1000..2000]).sack(0, &[1000..3000]).sends_nothing().dupacks(2).cwnd(10_000.0);
    tcp.sack(0, &[1000..4000]).sends_full(0..1).cwnd(5000.0).ssthresh(5000.0).timer_at(1100);
    assert_eq!(tcp.sender.pipe(), 1000 + 6000);
    grows(&mut tcp, 0, 1000, 4..6);
    tcp.sends_nothing().sack(0, &[1000..7000]).sends_full(10..11);
    tcp.sack(0, &[1000..9000]).sends_full(11..13);
    assert_eq!(tcp.sender.pipe(), 5000);
}

/// A SACKed retransmission leaves the pipe, so that another segment may be sent (section 4: SetPipe).
// Rule: as the_pipe_limits_transmission
#[test]
fn a_sacked_retransmission_leaves_the_pipe() {
    let mut tcp = ten(&sack(), None);
    tcp.sack(0, &[1000..2000]).sack(0, &[3000..4000, 1000..2000]).sack(0, &[3000..5000, 1000..2000]);
    tcp.sends_full(0..1).sack(0, &[3000..8000, 1000..2000]).sends(&["2000..3000", "10000..11000"]);
    assert_eq!(tcp.sender.pipe(), 5000);
    tcp.at(200).sack(0, &[1000..8000]).sends_full(11..12);
    assert_eq!(tcp.sender.pipe(), 5000);
}

/// IsLost by ranges: as many separate ranges above the hole as the threshold, however short, on the
/// first duplicate (sections 4 and 5 step 2).
// Rule: IsLost by ranges and by bytes; DupThresh duplicates. [6675 4, 5 steps 1-2; recovery/sack.rs]
#[test]
fn is_lost_by_ranges() {
    let two = [3000..3010, 1000..1010];
    let three = [5000..5010, 3000..3010, 1000..1010];
    ten(&sack(), None).sack(0, &two).sends_nothing().dupacks(1);
    ten(&sack(), None).sack(0, &three).sends(&["0..1000"]).dupacks(1);
}

/// IsLost by bytes: more than (threshold − 1) segments above the hole (section 4).
// Rule: as is_lost_by_ranges
#[test]
fn is_lost_by_bytes() {
    ten(&sack(), None).sack(0, &[1000..3000]).sends_nothing().dupacks(1);
    ten(&sack(), None).sack(0, &[1000..3001]).sends(&["0..1000"]).dupacks(1);
}

/// Retransmissions end where SACK blocks begin (section 4: unSACKed data).
// Rule: as lost_holes_come_before_new_data
#[test]
fn sacked_data_are_not_retransmitted() {
    ten(&sack(), None).sack(0, &[400..3000]).sends(&["0..400"]);
    let mut tcp = ten(&sack(), None);
    tcp.sack(0, &[400..1000]).sack(0, &[1300..4000, 400..1000]).sends(&["0..400"]);
    tcp.sack(0, &[1300..9000, 400..1000]).sends_first("1000..1300");
}

/// DupThresh duplicates suffice, even if IsLost() is false (section 5 step 1).
// Rule: as is_lost_by_ranges
#[test]
fn dupthresh_duplicates_suffice() {
    let mut tcp = ten(&sack(), None);
    tcp.sack(0, &[1000..1010]).sack(0, &[1000..1020]).sends_nothing().sack(0, &[1000..1030]);
    tcp.sends_full(0..1);
}

/// Only an acknowledgement with new SACK information is a duplicate: a window change does not matter; one
/// without news does not count (section 2), nor does a DSACK (RFC 2883 section 4) or a block of data never
/// sent.
// Rule: An ACK with new SACK information is a duplicate, cumulative ACKs included; DSACK is not new
// information. [6675 2, 5; 2883 4; state/loss.rs recovery/sack.rs]
#[test]
fn only_new_sack_information_makes_a_duplicate() {
    let mut tcp = ten(&sack(), None);
    tcp.sack(0, &[2000..3000]).dupacks(1).sack(0, &[2000..3000]).ack(0).dupacks(1);
    tcp.with_window(30_000).sack(0, &[2000..3000, 4000..5000]).dupacks(2);
    tcp.ack(1000).dupacks(0).sends(&["10000..11000", "11000..12000"]);
    tcp.sack(1000, &[0..500, 2000..3000]).sack(1000, &[20_000..21_000]).dupacks(0);
}

/// A cumulative acknowledgement with new SACK information is a duplicate as well, and may reveal the loss by
/// itself (section 5, DupAcks).
// Rule: as only_new_sack_information_makes_a_duplicate
#[test]
fn a_cumulative_ack_may_reveal_a_loss() {
    let mut tcp = ten(&sack(), None);
    tcp.sack(1000, &[2000..5000]).sends_full(1..2).cwnd(4500.0);
}

/// Such an acknowledgement also lets the sender use the window, like any of new data.
// Rule: as only_new_sack_information_makes_a_duplicate
#[test]
fn a_cumulative_ack_with_sack_blocks_releases_the_window() {
    let mut tcp = ten(&sack(), None);
    tcp.sack(1000, &[2000..3000]).cwnd(11_000.0).sends_full(10..12).dupacks(1);
}

/// NextSeg rules 1 and 2: holes that are lost come first, lowest first, then new data (section 4).
// Rule: NextSeg rules 1 and 2: lost holes, then new data. [6675 4; recovery/sack.rs]
#[test]
fn lost_holes_come_before_new_data() {
    let mut tcp = ten(&sack(), None);
    tcp.sack(0, &[1000..2000]).sack(0, &[3000..4000]).sack(0, &[5000..6000]).sends_full(0..1);
    assert_eq!(tcp.sender.pipe(), 1000 + 1000 + 1000 + 4000);
    tcp.sack(0, &[5000..7000]).sends_nothing();
    assert_eq!(tcp.sender.pipe(), 1000 + 1000 + 3000, "2000..3000 is lost by now");
    tcp.sack(0, &[5000..8000]).sends(&["2000..3000", "4000..5000"]);
    tcp.sack(0, &[5000..9000]).sends_full(10..11);
}

/// NextSeg rule 3: without new data a hole is retransmitted before it counts as lost (section 4); it is in
/// the pipe twice then.
// Rule: NextSeg rule 3: holes not known to be lost. [6675 4; recovery/sack.rs]
#[test]
fn holes_not_known_lost_come_last() {
    let mut tcp = ten(&sack(), Some(10_000));
    grows(&mut tcp, 0, 1000, 1..3);
    tcp.sack(0, &[1000..4000]).sends_full(0..1);
    tcp.sack(0, &[1000..7000]).sends_nothing();
    tcp.sack(0, &[8000..9000, 1000..7000]).sends(&["7000..8000"]);
    assert_eq!(tcp.sender.pipe(), 1000 + 2000 + 1000);
}

/// Rule 2 yields to rule 3 as well if the receiver's window lets no new data out (section 4).
// Rule: as holes_not_known_lost_come_last
#[test]
fn holes_not_known_lost_are_retransmitted_when_the_window_is_full() {
    let mut tcp = ten(&Settings { window: Bytes(10_000).into(), ..sack() }, None);
    tcp.sack(0, &[1000..4000]).sends_full(0..1).sack(0, &[8000..9000, 1000..7000]).sends_full(7..8);
}

/// NextSeg rule 4: tail losses are not followed by SACK blocks, so the highest segment is retransmitted once
/// per recovery, but not before the first retransmission has arrived (sections 4 and 5 step 4.3).
// Rule: NextSeg rule 4: one rescue retransmission, after the first retransmission has arrived. [6675 4, 5
// step 4.3; recovery/sack.rs]
#[test]
fn rescue_retransmission_once_per_recovery() {
    let mut tcp = ten(&sack(), Some(10_000));
    tcp.sack(0, &[1000..4000]).sends_full(0..1).sack(0, &[1000..9000]).sends_nothing();
    tcp.at(200).ack(9000).sends_full(9..10);
    tcp.at(250).ack(9400).sends_nothing().at(300).ack(10_000).is_finished().cwnd(5000.0);
}

/// An acknowledgement of exactly the first retransmission does not suffice: the second one is still awaited.
// Rule: as rescue_retransmission_once_per_recovery
#[test]
fn no_rescue_before_data_beyond_the_first_retransmission_are_acknowledged() {
    let mut tcp = ten(&sack(), Some(10_000));
    tcp.sack(0, &[2000..5000]).sends_full(0..1).sack(0, &[2000..9000]).sends_full(1..2);
    tcp.at(200).sack(1000, &[2000..9000]).sends_nothing().at(250).ack(9000).sends_full(9..10);
}

/// Rule 4 retransmits the highest hole, at any position, and FIN counts: a lost retransmission is repaired
/// without a timeout (section 4).
// Rule: as rescue_retransmission_once_per_recovery
#[test]
fn the_rescue_retransmits_the_highest_hole() {
    let mut tcp = ten(&sack(), Some(10_000));
    tcp.sack(0, &[1000..5000]).sends_full(0..1).sack(0, &[6000..10_000, 1000..5000]).sends_full(5..6);
    tcp.at(200).sack(5000, &[6000..10_000]).sends_full(5..6);

    let mut tcp = Client::start_with(&Settings { close: true, ..sack() }, Some(9500));
    assert_eq!(tcp.sent().len(), 10);
    tcp.at(100).sack(0, &[1000..4000]).sends_full(0..1).sack(0, &[1000..9000]).sends_nothing();
    tcp.at(200).ack(9000).sends(&["9000..9500 FIN"]);
}

/// Recovery ends when everything outstanding at its start is acknowledged; the window is constant until then,
/// and grows as usual afterwards (section 5 step A).
// Rule: Recovery ends at RecoveryPoint and keeps SACK information above it. [6675 5 A; recovery/sack.rs]
#[test]
fn recovery_ends_at_the_recovery_point() {
    let mut tcp = ten(&sack(), None);
    tcp.sack(0, &[1000..4000]).sends_full(0..1).sack(0, &[1000..9000]).sends_full(10..13);
    tcp.at(200).sack(9000, &[10_000..11_000]).cwnd(5000.0).sends_full(13..15).dupacks(0);
    tcp.at(300).ack(9999).cwnd(5000.0);
    tcp.ack(13_000).sends(&["15000..16000", "16000..17000", "17000..18000"]).cwnd(5000.0);
    tcp.ack(14_000).cwnd(5200.0);
}

/// SACK information above the recovery point is kept after recovery (section 5 step A), and a loss at the
/// recovery point starts a new recovery, since SACK identifies it (section 5.1).
// Rule: as recovery_ends_at_the_recovery_point
#[test]
fn a_loss_at_the_recovery_point_starts_a_new_recovery() {
    let mut tcp = ten(&sack(), None);
    tcp.sack(0, &[1000..4000]).sends_full(0..1).sack(0, &[1000..10_000]).sends_full(10..14);
    tcp.at(200).sack(0, &[11_000..13_000]).sends_full(14..16);
    tcp.at(210).ack(10_000).sends_nothing();
    tcp.at(220).sack(10_000, &[11_000..14_000]).sends_full(10..11).cwnd(3000.0).ssthresh(3000.0);
}

/// A timeout clears SACK information (RFC 2018 section 5) and ends recovery: everything is retransmitted in
/// order, except for data SACKed from then on.
// Rule: A timeout clears the scoreboard; no recovery before RecoveryPoint. [2018 5, 6675 5.1; state/loss.rs
// recovery/sack.rs]
#[test]
fn a_timeout_clears_the_scoreboard() {
    let mut tcp = ten(&sack(), None);
    tcp.sack(0, &[1000..4000]).sends_full(0..1).wakes_at(1100).sends_full(0..1).cwnd(1000.0);
    tcp.at(1200).ack(1000).cwnd(2000.0).sends_full(1..3);
    tcp.at(1300).sack(3000, &[5000..6000]).cwnd(3000.0).sends_full(3..5);
    tcp.at(1400).ack(4000).cwnd(4000.0).sends_full(6..8);
}

/// After a timeout no recovery starts until all data outstanding at that time are acknowledged (section 5.1).
// Rule: as a_timeout_clears_the_scoreboard
#[test]
fn no_recovery_of_data_outstanding_at_a_timeout() {
    let mut tcp = Client::start(&sack());
    tcp.sends_full(0..10).wakes_at(1000).sends_full(0..1).at(1100);
    tcp.sack(0, &[1000..5000]).sends_nothing().cwnd(1000.0);
    tcp.ack(9000).cwnd(2000.0).sends_full(9..11).sack(9000, &[10_000..11_000]).cwnd(2000.0);
    tcp.ack(11_000).cwnd(3000.0).sends_full(11..14).sack(11_000, &[12_000..14_000]).sends_nothing();
}

/// Limited transmit uses the pipe: as many segments are sent as were SACKed, and they do not count in the
/// flight that a loss halves (section 5 steps 3 and 4.2).
// Rule: Limited transmit by the pipe. [6675 5 step 3; recovery/sack.rs]
#[test]
fn limited_transmit_uses_the_pipe() {
    let mut tcp = ten(&Settings { limited_transmit: true, ..sack() }, None);
    tcp.sack(0, &[1000..3000]).sends_full(10..12).cwnd(10_000.0);
    tcp.sack(0, &[1000..4000]).sends_full(0..1).cwnd(5000.0);
}

/// Limited transmit respects the receive window and sends new data only (section 5 step 3.3).
// Rule: as limited_transmit_uses_the_pipe
#[test]
fn limited_transmit_respects_the_window_and_sends_new_data() {
    let limited = Settings { limited_transmit: true, ..sack() };
    let window = Bytes(11_000);
    ten(&Settings { window: window.into(), ..limited.clone() }, None)
        .sack(0, &[1000..3000])
        .sends_full(10..11);
    let mut tcp = Client::start(&limited);
    tcp.sends_full(0..10).wakes_at(1000).sends_full(0..1);
    tcp.at(1050).sack(0, &[1000..2000]).sends_nothing();
}
