//! The source's reaction (Jayanathan and Sirisena section V-B).

use lasthop_base::Bytes;
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Flags, Flavour, Rules, Segment, Settings};
use lasthop_testing::dialogue::{Client, MSS, Steps, settings};
use lasthop_testing::schemes::installed;

const FLAVOURS: [Flavour; 4] = [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack];
const RULES: [Rules; 2] = [Rules::Rfc, Rules::Ns2];

/// The bit next to CWR, 0x80.
const RNF: Flags = Flags(0x100);

/// A source under the scheme with changed parameters.
fn source_with(settings: &Settings, change: impl FnOnce(&mut Schemes)) -> Client {
    let mut schemes = Schemes::default();
    change(&mut schemes);
    Client::installed(settings, None, installed(&schemes, "wenp").reactions())
}

fn source(settings: &Settings) -> Client {
    source_with(settings, |_| {})
}

/// A source with a window of segments in flight.
fn flight(settings: &Settings, change: impl FnOnce(&mut Schemes)) -> Client {
    let mut tcp = source_with(settings, change);
    assert_eq!(tcp.sent().len() as u32 * MSS, tcp.sender.flight_size());
    tcp.at(100);
    tcp
}

/// Eight segments in flight, with this flavour.
fn eight(flavour: Flavour) -> Client {
    flight(&settings(flavour, 8), |_| {})
}

/// Scheme-specific steps of a conversation.
trait FeedbackSteps: Steps {
    /// An acknowledgement with the feedback bit and these SACK blocks.
    fn marked(&mut self, offset: u32, blocks: &[std::ops::Range<u32>]) -> &mut Client {
        let segment = self.client().report(offset, blocks);
        self.client().receives(Segment { flags: segment.flags | RNF, ..segment })
    }

    /// A run of duplicates for the segment at `edge`, each reporting one more segment behind it: `m` has the
    /// bit, `u` does not. Nothing is sent before the last one.
    fn row(&mut self, edge: u32, duplicates: &str) -> &mut Client {
        for (number, kind) in (2..).zip(duplicates.chars()) {
            self.client().sends_nothing();
            let block = [edge + MSS..edge + number * MSS];
            match kind {
                'm' => self.marked(edge, &block),
                _ => self.client().sack(edge, &block),
            };
        }
        self.client()
    }
}

impl FeedbackSteps for Client {}

/// Section V-B: the second duplicate with the bit indicates the loss and leaves 0.75 of the window, inflated
/// by duplicates during recovery.
// Rule: Two duplicates with the feedback bit indicate a wireless loss, at any position in their run; with
// fewer the standard threshold applies. [V-B; ../scheme/wenp/reaction.rs]
#[test]
fn two_marked_duplicates_indicate_a_wireless_loss() {
    for flavour in FLAVOURS {
        let mut tcp = eight(flavour);
        tcp.marked(0, &[1000..2000]).sends_nothing().cwnd(8000.0).ssthresh(f64::INFINITY);
        tcp.marked(0, &[1000..3000]).sends(&["0..1000"]).ssthresh(6000.0);
        match flavour {
            Flavour::Tahoe => {
                tcp.cwnd(1000.0).at(200).ack(8000).cwnd(2000.0).sends_full(8..10);
                (10..14).for_each(|n| {
                    tcp.at(200 + u64::from(n)).ack((n - 1) * MSS).sent();
                });
                tcp.cwnd(6000.0);
            }
            Flavour::Sack => {
                tcp.cwnd(6000.0).marked(0, &[1000..4000]).sends_full(8..9).at(200).ack(8000).cwnd(6000.0);
                tcp.sends_full(9..14);
            }
            _ => {
                assert_eq!(tcp.sender.usable_window(), 6000 + 2000);
                tcp.cwnd(6000.0).row(0, "m").sends_full(8..9).row(0, "u").sends_full(9..10);
                tcp.at(200).ack(9000).cwnd(if flavour == Flavour::Reno { 6000.0 } else { 2000.0 });
            }
        }
        assert_eq!(tcp.sender.stats().fast_retransmits, 1);
    }
}

/// After recovery NewReno has 0.75 of the flight, if that much is in flight.
// Rule: as alpha_is_a_parameter
#[test]
fn recovery_ends_with_alpha_times_the_flight() {
    let mut tcp = eight(Flavour::NewReno);
    tcp.row(0, "mm").sends(&["0..1000"]);
    for next in 8..13 {
        tcp.marked(0, &[]).sends_full(next..next + 1);
    }
    tcp.at(200).ack(8000).cwnd(6000.0).ssthresh(6000.0).sends_full(13..14);
}

/// Runs of duplicates with and without the bit: which one triggers retransmission, and what remains of eight
/// segments. Two with the bit are needed, at any position; otherwise dupthresh applies, and half remains.
// Rule: as two_marked_duplicates_indicate_a_wireless_loss
#[test]
fn marked_and_unmarked_duplicates_may_be_mixed() {
    let rows = [
        (3, "mm", 6000.0),
        (3, "umm", 6000.0),
        (3, "mum", 6000.0),
        (3, "muu", 4000.0),
        (3, "umu", 4000.0),
        (3, "uum", 4000.0),
        (3, "uuu", 4000.0),
        (5, "uumm", 6000.0),
        (5, "mum", 6000.0),
        (5, "muuum", 6000.0),
        (5, "uuuum", 4000.0),
        (2, "mm", 6000.0),
        (2, "mu", 4000.0),
        (2, "um", 4000.0),
        (1, "m", 4000.0),
        (1, "u", 4000.0),
    ];
    for flavour in FLAVOURS {
        for rules in RULES {
            for (dupthresh, row, ssthresh) in rows {
                let settings = Settings { dupthresh, rules, ..settings(flavour, 7) };
                let mut tcp = flight(&settings, |_| {});
                tcp.ack(1000).sends_full(7..9).row(1000, row).sends_first("1000..2000").ssthresh(ssthresh);
                assert_eq!(tcp.sender.stats().fast_retransmits, 1);
            }
        }
    }
}

/// The window becomes exactly alpha times the flight, but at least two segments.
// Rule: A wireless loss leaves alpha times the window, at least two segments; any other leaves half. [V-B;
// ../scheme/wenp/reaction.rs]
#[test]
fn alpha_is_a_parameter() {
    for flavour in FLAVOURS {
        for (alpha, segments, ssthresh) in [
            (0.5, 8, 4000.0),
            (0.6, 8, 4800.0),
            (0.75, 5, 3750.0),
            (0.8, 3, 2400.0),
            (1.0, 8, 8000.0),
            (0.5, 3, 2000.0),
            (0.6, 3, 2000.0),
        ] {
            let mut tcp = flight(&settings(flavour, segments), |s| s.wenp.alpha = alpha);
            tcp.row(0, "mm").sends_first("0..1000").ssthresh(ssthresh);
        }
    }
}

/// The number of marked duplicates needed is a parameter.
// Rule: as two_marked_duplicates_indicate_a_wireless_loss
#[test]
fn the_threshold_is_a_parameter() {
    for flavour in FLAVOURS {
        for (threshold, row, ssthresh) in
            [(1, "m", 6000.0), (1, "um", 6000.0), (3, "mmm", 6000.0), (3, "mmu", 4000.0), (3, "umm", 4000.0)]
        {
            let mut tcp = flight(&settings(flavour, 8), |s| s.wenp.threshold = threshold);
            tcp.row(0, row).sends_first("0..1000").ssthresh(ssthresh);
        }
    }
}

/// Only the configured bit counts.
// Rule: as two_marked_duplicates_indicate_a_wireless_loss
#[test]
fn the_bit_is_a_parameter() {
    for flavour in FLAVOURS {
        let mut tcp = flight(&settings(flavour, 8), |s| s.wenp.bit = 9);
        tcp.row(0, "mmm").sends_first("0..1000").ssthresh(4000.0);
    }
}

/// SACK: one duplicate that reports three segments indicates the loss (RFC 6675) but not its cause. After one
/// with the bit, two reported segments suffice.
// Rule: as two_marked_duplicates_indicate_a_wireless_loss
#[test]
fn a_single_sack_report_is_not_a_wireless_loss() {
    let block = std::slice::from_ref(&(1000..4000));
    eight(Flavour::Sack).sack(0, block).sends_first("0..1000").ssthresh(4000.0);
    eight(Flavour::Sack).marked(0, block).sends_first("0..1000").ssthresh(4000.0);
    let first = || {
        let mut tcp = eight(Flavour::Sack);
        tcp.marked(0, &[1000..2000]).sends_nothing();
        tcp
    };
    first().sack(0, block).sends_first("0..1000").ssthresh(4000.0);
    first().marked(0, block).sends_first("0..1000").ssthresh(6000.0);
}

/// Acknowledgements that are not duplicates do not count: here with another window, with data, or reordered.
// Rule: Only TCP's duplicates count, and a run ends when TCP resets its count. [../scheme/wenp/reaction.rs]
#[test]
fn only_duplicates_count() {
    for flavour in &FLAVOURS[..3] {
        let mut tcp = flight(&settings(*flavour, 7), |_| {});
        tcp.ack(1000).sends_full(7..9).with_window(60_000).marked(1000, &[]).with_window(61_000);
        tcp.marked(1000, &[]).sends_nothing();
        let with_data = Segment { len: 1, ..tcp.bare_ack(1000) };
        tcp.receives(Segment { flags: with_data.flags | RNF, ..with_data }).sends(&["ACK"]);
        tcp.marked(0, &[]).sends_nothing().dupacks(0);
        tcp.row(1000, "m").sends_nothing().dupacks(1).marked(0, &[]).with_window(60_000).marked(1000, &[]);
        tcp.sends_nothing().dupacks(1).ack(1000).sends_nothing().dupacks(2);
        tcp.marked(1000, &[]).sends_first("1000..2000").ssthresh(6000.0);
    }
}

/// An acknowledgement of new data resets the count, with the bit or without.
// Rule: as only_duplicates_count
#[test]
fn a_new_acknowledgement_resets_the_count() {
    for flavour in FLAVOURS {
        for bit in [Flags(0), RNF] {
            let mut tcp = flight(&settings(flavour, 7), |_| {});
            tcp.row(0, "m").sends_nothing();
            let new = tcp.bare_ack(1000);
            tcp.receives(Segment { flags: new.flags | bit, ..new }).sends_full(7..9);
            tcp.row(1000, "m").sends_nothing().dupacks(1);
            tcp.sack(1000, &[2000..4000]).sends_nothing().sack(1000, &[2000..5000]);
            tcp.sends_first("1000..2000").ssthresh(4000.0);
        }
    }
}

/// SACK: an acknowledgement of new data may count as a duplicate (RFC 6675), but does not refer to the next
/// hole, with the bit or without.
// Rule: as only_duplicates_count
#[test]
fn a_new_acknowledgement_with_sack_blocks_does_not_count() {
    let mut tcp = flight(&settings(Flavour::Sack, 7), |_| {});
    tcp.marked(1000, &[2000..3000]).sends_full(7..9).dupacks(1);
    tcp.marked(1000, &[2000..4000]).sends_nothing().dupacks(2);
    let mut tcp = flight(&settings(Flavour::Sack, 7), |_| {});
    tcp.marked(0, &[2000..3000])
        .sends_nothing()
        .dupacks(1)
        .sack(1000, &[2000..3500])
        .sends_full(7..9)
        .dupacks(1);
    tcp.marked(1000, &[2000..4000]).sends_nothing().dupacks(2);
}

/// A timeout is answered as in standard TCP, whatever duplicates preceded it, and resets the count.
// Rule: Timeouts are answered as in standard TCP. [V-B; ../scheme/wenp/reaction.rs]
#[test]
fn timeouts_are_answered_as_in_standard_tcp() {
    for flavour in FLAVOURS {
        for row in ["", "m", "u", "mu"] {
            let mut tcp = flight(&Settings { careful: false, ..settings(flavour, 8) }, |_| {});
            tcp.row(0, row).wakes_at(1000).sends_full(0..1).cwnd(1000.0).ssthresh(4000.0);
            if flavour != Flavour::Tahoe {
                tcp.at(1100).row(0, "mu").sends_nothing().ssthresh(4000.0);
            }
        }
        // After a wireless loss whose repair is lost too: half of the flight, or of the window since
        // go-back-N.
        let mut tcp = eight(flavour);
        tcp.row(0, "mm").sends(&["0..1000"]).ssthresh(6000.0).wakes_at(1100).sends_full(0..1).cwnd(1000.0);
        tcp.ssthresh(if flavour == Flavour::Tahoe { 2000.0 } else { 4000.0 });
    }
}

/// Duplicates after the response change nothing: a forwarded repair has the remaining ones marked.
// Rule: Duplicates after the response change nothing. [../scheme/wenp/reaction.rs]
#[test]
fn duplicates_after_the_response_are_ignored() {
    for flavour in FLAVOURS {
        for (row, ssthresh) in [("uuu", 4000.0), ("mm", 6000.0)] {
            for kind in ["m", "u"] {
                let mut tcp = eight(flavour);
                tcp.row(0, row).sends_first("0..1000");
                for _ in 0..4 {
                    tcp.row(0, kind).ssthresh(ssthresh).sent();
                }
                assert_eq!(tcp.sender.stats().fast_retransmits, 1);
                assert_eq!(tcp.sender.stats().retransmitted_segments, 1);
            }
        }
    }
}

/// SACK: nor do they mark other holes lost earlier. Two segments are beyond the second hole: in a recovery
/// triggered by two duplicates it is lost; in one triggered by three it is not, and new data are sent first.
// Rule: as duplicates_after_the_response_are_ignored
#[test]
fn one_threshold_applies_to_all_holes_of_a_recovery() {
    for kind in ["u", "m"] {
        let report = |tcp: &mut Client, blocks: &[std::ops::Range<u32>]| match kind {
            "m" => tcp.marked(0, blocks).sent(),
            _ => tcp.sack(0, blocks).sent(),
        };
        let resent = |row: &str| {
            let mut tcp = eight(Flavour::Sack);
            tcp.row(0, row).sends_first("0..1000");
            report(&mut tcp, &[1000..4000]);
            report(&mut tcp, &[1000..4000, 5000..6000]);
            report(&mut tcp, &[1000..4000, 5000..7000]);
            tcp.sender.stats().retransmitted_segments
        };
        assert_eq!((resent("mm"), resent("uuu")), (2, 1), "{kind}");
    }
}

/// NewReno: one reduction for all holes of a window, determined by the duplicates of the first. Partial
/// acknowledgements have no bit; if they had, it would change nothing.
// Rule: The window is reduced once, as determined by the duplicates of its first hole; the next loss is
// classified anew. [../scheme/wenp/reaction.rs]
#[test]
fn newreno_reduces_the_window_once() {
    for (row, ssthresh) in [("mm", 6000.0), ("uuu", 4000.0)] {
        for partial in ["m", "u"] {
            let mut tcp = eight(Flavour::NewReno);
            tcp.row(0, row).sends_first("0..1000").row(0, "m").sent();
            for (at, edge) in [(200, 2000), (300, 5000)] {
                tcp.at(at);
                match partial {
                    "m" => tcp.marked(edge, &[]).sends_first(&format!("{edge}..{}", edge + 1000)),
                    _ => tcp.ack(edge).sends_first(&format!("{edge}..{}", edge + 1000)),
                };
                for _ in 0..4 {
                    tcp.marked(edge, &[]).ssthresh(ssthresh).sent();
                }
            }
            let outstanding = tcp.sender.snd_max();
            let all = outstanding.0.wrapping_sub(tcp.bare_ack(0).ack.0);
            tcp.at(400).ack(all - 1000).ssthresh(ssthresh);
            assert_eq!(tcp.sender.stats().fast_retransmits, 1);
        }
    }
}

/// The same with SACK.
// Rule: as newreno_reduces_the_window_once
#[test]
fn sack_reduces_the_window_once() {
    for (row, ssthresh) in [("mm", 6000.0), ("uuu", 4000.0)] {
        let mut tcp = eight(Flavour::Sack);
        tcp.row(0, row).sends_first("0..1000").marked(0, &[1000..4000, 5000..6000]).sent();
        tcp.marked(0, &[1000..4000, 5000..8000]).sent();
        tcp.at(200).marked(4000, &[5000..8000]).sent();
        tcp.marked(4000, &[5000..9000]).ssthresh(ssthresh).cwnd(ssthresh).sent();
        assert_eq!(tcp.sender.stats().retransmitted_segments, 2);
        tcp.at(300).ack(9000).cwnd(ssthresh).sent();
    }
}

/// A loss after recovery starts a new episode.
// Rule: as newreno_reduces_the_window_once
#[test]
fn each_recovery_is_classified_anew() {
    for flavour in FLAVOURS {
        for (first, second) in [("mm", "uuu"), ("uuu", "mm"), ("mm", "mm"), ("uuu", "uuu")] {
            let mut tcp = eight(flavour);
            tcp.row(0, first).sends_first("0..1000");
            let mut edge = 8000;
            for at in 2..6 {
                tcp.at(100 * at).ack(edge).sent();
                edge = tcp.sender.snd_max().0.wrapping_sub(tcp.bare_ack(0).ack.0);
            }
            let edge = edge - tcp.sender.flight_size();
            let in_flight = f64::from(tcp.sender.flight_size());
            let part = if second == "mm" { 0.75 } else { 0.5 };
            assert!(in_flight >= 4000.0, "{flavour:?}");
            tcp.row(edge, second).sends_first(&format!("{edge}..{}", edge + 1000)).ssthresh(part * in_flight);
        }
    }
}

/// Early duplicates send by limited transmit: one segment, since the second duplicate indicates a loss. It is
/// not part of the flight.
// Rule: as two_marked_duplicates_indicate_a_wireless_loss
#[test]
fn limited_transmit_precedes_fast_retransmit() {
    for flavour in &FLAVOURS[..3] {
        let mut tcp = flight(&Settings { limited_transmit: true, ..settings(*flavour, 8) }, |_| {});
        tcp.marked(0, &[]).sends_full(8..9).marked(0, &[]).sends_first("0..1000").ssthresh(6000.0);
    }
}

/// ns-2's rules round the threshold to whole segments; the window is exact.
// Rule: as alpha_is_a_parameter
#[test]
fn ns2_rules_round_the_threshold_to_segments() {
    let settings = Settings { rules: Rules::Ns2, ..settings(Flavour::NewReno, 6) };
    let mut tcp = source(&settings);
    tcp.sends_full(0..6).at(100).ack(1000).sends_full(6..8).row(1000, "mm").sends_first("1000..2000");
    tcp.ssthresh(5000.0).cwnd(if settings.halve_exactly { 5250.0 } else { 5000.0 });
}

/// Zero window: the acknowledgement of a probe does not indicate a loss, with the bit or without.
// Rule: as only_duplicates_count
#[test]
fn acknowledgements_of_probes_do_not_count() {
    let settings = Settings { window: Bytes(8000).into(), ..settings(Flavour::NewReno, 8) };
    let mut tcp = source(&settings);
    tcp.sends_full(0..8).at(100).with_window(0).ack(8000).sends_nothing();
    let probed = tcp.times_out();
    tcp.sends(&["8000..8001"]).at(probed + 10).marked(8000, &[]).marked(8000, &[]).marked(8000, &[]);
    tcp.sends_nothing().dupacks(0);
    assert_eq!(tcp.sender.stats().fast_retransmits, 0);
}
