//! SMART: acknowledgements that report the segment that triggered them, and a source that uses them.

use lasthop_base::Duration;
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Flavour, Segment, Settings};
use lasthop_testing::dialogue::{Client, MSS, Server, settings};
use lasthop_testing::schemes::{installed, schemes_of};

fn receiver(flavour: Flavour) -> Server {
    let schemes = Schemes::default();
    let settings = Settings { ack_every: 1, ..settings(flavour, 8) };
    Server::installed(&settings, installed(&schemes, "smart").receiver_reactions())
}

/// Eight segments in flight, sent at 0 ms.
fn source() -> Client {
    let schemes = Schemes::default();
    let mut tcp =
        Client::installed(&settings(Flavour::Reno, 8), None, installed(&schemes, "smart").reactions());
    tcp.sends_full(0..8);
    tcp
}

/// The duplicate caused by segment number `number`, with the left edge at `edge`.
fn report(tcp: &mut Client, edge: u32, number: u32) -> &mut Client {
    tcp.sack(edge, &[number * MSS..(number + 1) * MSS])
}

/// Section 2: the sequence number of the segment that triggered the acknowledgement, not merged with others.
// Rule: An ACK reports the segment out of order that caused it; a receiver with SACK reports blocks. [2;
// ../scheme/smart.rs]
#[test]
fn duplicates_name_the_segment_that_caused_them() {
    let mut tcp = receiver(Flavour::Reno);
    tcp.at(10).data(0..1000).reports(1000, &[]);
    tcp.at(20).data(2000..3000).reports(1000, &[2000..3000]);
    tcp.at(21).data(3000..4000).reports(1000, &[3000..4000]);
    tcp.at(22).data(5000..6000).reports(1000, &[5000..6000]);
    // Segments that fill a gap, or are below the left edge, are not reported.
    tcp.at(30).data(1000..2000).reports(4000, &[]).at(31).data(1000..2000).reports(4000, &[]);
    tcp.at(32).data(4000..5000).reports(6000, &[]);
}

/// A receiver with SACK reports whole blocks, as always.
// Rule: as duplicates_name_the_segment_that_caused_them
#[test]
fn a_receiver_with_sack_reports_blocks() {
    let mut tcp = receiver(Flavour::Sack);
    tcp.at(20).data(2000..3000).reports(0, &[2000..3000]);
    tcp.at(21).data(3000..4000).reports(0, &[2000..4000]);
}

/// Section 3.1 and 4.6: the first duplicate with loss information causes the retransmission, and the window
/// is halved.
// Rule: The first duplicate that reports a segment above a gap causes the retransmission, and halves the
// window. [3.1, 4.6; ../scheme/smart.rs]
#[test]
fn the_first_report_above_a_gap_causes_its_retransmission() {
    let mut tcp = source();
    report(tcp.at(100), 0, 1).sends(&["0..1000"]).ssthresh(4000.0).losses(1);
    // Later reports of the same gap do not, within a round-trip time.
    report(tcp.at(101), 0, 2).sends_nothing();
    report(tcp.at(102), 0, 3).sends_nothing().losses(1);
    tcp.at(200).ack(8000).cwnd(4000.0).sends_full(8..12);
}

/// Every gap below a report counts as lost immediately; for congestion control they are a single loss.
// Rule: All gaps are retransmitted at once, and are one loss. [2; ../scheme/smart.rs]
#[test]
fn all_gaps_below_a_report_are_retransmitted_at_once() {
    let mut tcp = source();
    report(tcp.at(100), 0, 5).sends(&["0..1000", "1000..2000", "2000..3000", "3000..4000", "4000..5000"]);
    report(tcp.at(101), 0, 7).sends_first("6000..7000").ssthresh(4000.0).losses(1);
    // Partial acknowledgements neither repeat repairs that are under way nor reduce the window again.
    tcp.at(190).ack(3000).sends_nothing();
    report(tcp.at(191), 3000, 7).sends_nothing().losses(1).ssthresh(4000.0);
    tcp.at(192).ack(8000).losses(1).timeouts(0);
}

/// Section 3.1: a retransmission is repeated on a report a round-trip time later, not before.
// Rule: A retransmission is repeated on a report a round-trip time later, otherwise by the timer. [3.1;
// ../scheme/smart.rs]
#[test]
fn a_lost_retransmission_is_repeated_after_a_round_trip_time() {
    let mut tcp = source();
    report(tcp.at(100), 0, 1).sends(&["0..1000"]);
    // The round trip of segment 2 took 130 ms, and the repair was sent 30 ms ago.
    report(tcp.at(130), 0, 2).sends_nothing();
    report(tcp.at(159), 0, 3).sends_nothing();
    // That of segment 3 took 159 ms, and the repair was sent 160 ms ago.
    tcp.at(259).sends_nothing();
    report(&mut tcp, 0, 3).sends(&["0..1000"]).losses(1).timeouts(0);
}

/// On a clock of 500 ms, a round trip of 100 ms is one tick, and one of 501 ms is two.
// Rule: as a_lost_retransmission_is_repeated_after_a_round_trip_time
#[test]
fn the_round_trip_time_is_rounded_up_to_ticks() {
    let schemes = schemes_of("[smart]\ntick = \"500 ms\"");
    let settings = Settings { rto_min: Duration::from_secs(4), ..settings(Flavour::Reno, 8) };
    for (rtt, due) in [(100, 600), (501, 1501)] {
        let mut tcp = Client::installed(&settings, None, installed(&schemes, "smart").reactions());
        tcp.sends_full(0..8);
        report(tcp.at(rtt), 0, 1).sends(&["0..1000"]);
        report(tcp.at(due - 1), 0, 1).sends_nothing();
        report(tcp.at(due), 0, 1).sends(&["0..1000"]).losses(1).timeouts(0);
    }
}

/// Without reports, the retransmission timer expires and everything is retransmitted.
// Rule: as a_lost_retransmission_is_repeated_after_a_round_trip_time
#[test]
fn a_timeout_forgets_the_reports() {
    let mut tcp = source();
    report(tcp.at(100), 0, 1).sends(&["0..1000"]);
    let due = tcp.times_out();
    tcp.sends(&["0..1000"]).cwnd(1000.0).timeouts(1);
    tcp.at(due + 100).ack(1000).sends_full(1..3);
    // Segment 2 was reported before; its acknowledgement is cumulative now.
    tcp.at(due + 200).ack(3000).sends_first("3000..4000");
}

/// Duplicates without a report count as usual.
// Rule: as the_first_report_above_a_gap_causes_its_retransmission
#[test]
fn duplicates_without_reports_count_as_usual() {
    let mut tcp = source();
    tcp.at(100).acks(2, 0).sends_nothing().acks(1, 0).sends(&["0..1000"]).losses(1);
}

/// A report of data that were never sent, or that are acknowledged, is ignored.
// Rule: as the_first_report_above_a_gap_causes_its_retransmission
#[test]
fn impossible_reports_are_ignored() {
    let mut tcp = source();
    tcp.at(100).sack(0, &[9000..10_000]).sends_nothing();
    tcp.ack(2000).sent();
    tcp.sack(2000, &[1000..2000]).sends_nothing().losses(0);
}

/// A report of the last segment does not cover its FIN, which has arrived as well.
// Rule: as duplicates_name_the_segment_that_caused_them
#[test]
fn a_report_of_the_last_segment_includes_its_fin() {
    let mut tcp = receiver(Flavour::Reno);
    tcp.at(10).data_fin(1000..2000).reports(0, &[1000..2000]);
    let schemes = Schemes::default();
    let settings = Settings { close: true, ..settings(Flavour::Reno, 8) };
    let mut tcp = Client::installed(&settings, Some(3000), installed(&schemes, "smart").reactions());
    tcp.sent();
    tcp.at(100).sack(0, &[2000..3000]).sends(&["0..1000", "1000..2000"]);
    tcp.at(250).sack(0, &[2000..3000]).sends(&["0..1000", "1000..2000"]);
}

/// A window update is not a duplicate ACK: the gaps that it reports are repaired at the next duplicate ACK,
/// which halves the window.
// Rule: as a_lost_retransmission_is_repeated_after_a_round_trip_time
#[test]
fn a_window_update_repairs_nothing() {
    let mut tcp = source();
    let update = tcp.at(100).report(0, &[3000..4000]);
    tcp.receives(Segment { wnd: update.wnd - 1, ..update }).sends_nothing();
    tcp.receives(Segment { wnd: update.wnd - 1, ..update }).sends(&["0..1000", "1000..2000", "2000..3000"]);
    tcp.ssthresh(4000.0);
}
