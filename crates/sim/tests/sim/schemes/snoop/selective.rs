//! The base station with reports of arrived segments (ToN 1997, LL-SMART and LL-SMART-TCP-AWARE).

use lasthop_proto::tcp::{SackBlock, SackBlocks, Segment, SeqNum};
use lasthop_proto::{DropReason, Effect, Port};
use lasthop_testing::schemes::{installed, schemes_of};

use super::agent::{LEN, ONE, Station, ack, copy, nth};

/// The request for segment `number`, caused by the segments `reported`.
fn report(number: u32, reported: std::ops::Range<u32>) -> Segment {
    let mut sack = SackBlocks::default();
    sack.push(SackBlock { start: SeqNum(reported.start * LEN), end: SeqNum(reported.end * LEN) });
    Segment { sack, ..ack(number * LEN) }
}

/// Asserts that an acknowledgement is forwarded or suppressed, and that these segments are retransmitted.
fn repairs(station: &mut Station, came: Segment, forward: bool, numbers: &[u32]) {
    let came = Station::returned(ONE, came);
    let first = match forward {
        true => Effect::Send(Port::WIRED, came),
        false => Effect::Drop(came, DropReason::Suppressed),
    };
    let copies = numbers.iter().map(|&number| Effect::Send(Port::RADIO, copy(nth(number))));
    let expected: Vec<_> = [first].into_iter().chain(copies).collect();
    assert_eq!(station.receive(Port::RADIO, &came), expected);
}

/// Every unreported segment below a report counts as lost immediately; duplicate ACKs are suppressed during
/// the repair.
// Rule: Reports of later segments show every earlier one as lost, and a copy if what was sent after it is
// reported. [1997 3.2, 4.5; ../scheme/snoop/connection.rs]
#[test]
fn all_gaps_below_a_report_are_repaired_at_once() {
    let mut station = Station::with("selective = true");
    station.sends(0..8).passes(LEN).holds(7, 1);
    repairs(&mut station, report(1, 3..4), false, &[1, 2]);
    station.holds(6, 1);
    // Each gap is repaired once.
    repairs(&mut station, report(1, 4..5), false, &[]);
    repairs(&mut station, report(1, 6..7), false, &[5]);
    // New acknowledgements pass.
    repairs(&mut station, report(2, 6..7), true, &[]);
    station.passes(8 * LEN).holds(0, 1);
    assert_eq!(station.shows("local_retransmissions"), 3.0);
    assert_eq!(station.shows("suppressed_dupacks"), 3.0);
}

/// A receiver with SACK reports blocks, also on new acknowledgements.
// Rule: as all_gaps_below_a_report_are_repaired_at_once
#[test]
fn blocks_are_reports_and_new_acknowledgements_report_too() {
    let mut station = Station::with("selective = true");
    station.sends(0..8);
    repairs(&mut station, report(1, 2..5), true, &[1]);
    repairs(&mut station, report(1, 2..7), false, &[]);
    station.holds(2, 1).passes(8 * LEN);
}

/// A copy is lost once a later transmission is reported.
// Rule: as all_gaps_below_a_report_are_repaired_at_once
#[test]
fn a_lost_copy_is_repeated_on_a_report_of_a_later_transmission() {
    let mut station = Station::with("selective = true");
    station.sends(0..4).passes(LEN);
    repairs(&mut station, report(1, 2..3), false, &[1]);
    station.sends(4..6);
    repairs(&mut station, report(1, 3..4), false, &[]);
    repairs(&mut station, report(1, 4..5), false, &[1]);
    repairs(&mut station, report(1, 5..6), false, &[]);
    station.passes(6 * LEN);
    // A report of a segment with copies is ambiguous: the original may have arrived.
    station.sends(6..9);
    repairs(&mut station, report(6, 8..9), false, &[6, 7]);
    repairs(&mut station, report(6, 7..8), false, &[]);
}

/// The source repairs its own retransmissions, and segments whose attempts are exhausted.
// Rule: as all_gaps_below_a_report_are_repaired_at_once
#[test]
fn the_source_repairs_the_rest() {
    let mut station = Station::with("selective = true\nattempts = 1");
    station.sends([0, 2, 3]).passes(LEN);
    // Segment 1 did not pass.
    repairs(&mut station, report(1, 2..3), true, &[]);
    station.sends([1]);
    repairs(&mut station, report(1, 3..4), true, &[]);
    station.passes(4 * LEN).sends(4..8);
    repairs(&mut station, report(4, 5..6), false, &[4]);
    station.sends([8]);
    repairs(&mut station, report(4, 8..9), true, &[6, 7]);
    assert_eq!(station.shows("local_retransmissions"), 3.0);
}

/// LL-SMART suppresses nothing.
// Rule: as all_gaps_below_a_report_are_repaired_at_once
#[test]
fn reports_without_suppression() {
    let mut station = Station::with("selective = true\nsuppress = false");
    station.sends(0..4).passes(LEN);
    repairs(&mut station, report(1, 3..4), true, &[1, 2]);
}

/// Duplicate ACKs without a report do not indicate losses: an unnecessary copy or retransmission triggered
/// them.
// Rule: as all_gaps_below_a_report_are_repaired_at_once
#[test]
fn duplicates_without_a_report_pass() {
    let mut station = Station::with("selective = true");
    station.sends(0..4).passes(LEN).passes(LEN).passes(LEN).passes(4 * LEN);
    assert_eq!(station.shows("local_retransmissions"), 0.0);
}

/// The timeout of a segment that was retransmitted before it became the oldest counts from the
/// retransmission.
// Rule: as all_gaps_below_a_report_are_repaired_at_once
#[test]
fn a_copy_has_its_timeout_when_it_becomes_the_oldest() {
    let mut station = Station::measured("selective = true\npersist = \"10 s\"", 4);
    station.at(110);
    repairs(&mut station, report(1, 4..5), false, &[1, 2, 3]);
    station.at(150).passes(2 * LEN);
    // Twice the round-trip time of 100 ms after the copy.
    station.repairs_at(310, nth(2));
    // Immediately if that time has passed.
    station.at(350).passes(3 * LEN).repairs_at(350, nth(3)).passes(5 * LEN).at(5_000);
}

/// A segment that the source has retransmitted may have arrived the first time, so its report proves nothing
/// about segments sent in between.
// Rule: as all_gaps_below_a_report_are_repaired_at_once
#[test]
fn a_report_of_a_segment_sent_twice_proves_nothing() {
    let mut station = Station::with("selective = true");
    station.sends(0..4).passes(LEN).sends(4..6).sends([2]);
    repairs(&mut station, report(1, 2..3), true, &[]);
    repairs(&mut station, report(1, 3..4), false, &[1]);
}

/// Reports that contradict the state are ignored.
// Rule: as all_gaps_below_a_report_are_repaired_at_once
#[test]
fn impossible_reports_are_ignored() {
    let mut station = Station::with("selective = true");
    station.sends(0..4).passes(LEN);
    for reported in [0..1, 3..9, 1..2] {
        repairs(&mut station, report(1, reported), true, &[]);
    }
    let turned = SackBlock { start: SeqNum(3 * LEN), end: SeqNum(2 * LEN) };
    let mut segment = report(1, 0..1);
    segment.sack.push(turned);
    repairs(&mut station, segment, true, &[]);
    station.holds(3, 1);
}

/// The receiver gets the reports of the scheme `smart`.
// Rule: as all_gaps_below_a_report_are_repaired_at_once
#[test]
fn the_receiver_reports_if_the_base_station_is_selective() {
    for selective in [false, true] {
        let schemes = schemes_of(&format!("[snoop]\nselective = {selective}"));
        assert_eq!(installed(&schemes, "snoop").receiver_reactions().is_empty(), !selective);
    }
}
