//! The source's reaction (Jayanathan and Sirisena section V-B).

use lasthop_base::Bytes;
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Flags, Flavour, Rules, Segment, Settings};
use lasthop_testing::dialogue::{Client, MSS, Steps, settings};

const FLAVOURS: [Flavour; 4] = [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack];
const RULES: [Rules; 2] = [Rules::Rfc, Rules::Ns2];

/// The bit next to CWR, 0x80.
const RNF: Flags = Flags(0x100);

/// A source under the scheme with other parameters.
fn source_with(settings: &Settings, change: impl FnOnce(&mut Schemes)) -> Client {
    let mut schemes = Schemes::default();
    change(&mut schemes);
    let reaction = schemes.get("wenp").and_then(|scheme| scheme.reaction()).expect("it has one");
    Client::reacting_with(settings, None, reaction)
}

fn source(settings: &Settings) -> Client {
    source_with(settings, |_| {})
}

/// So many segments are in flight.
fn flight(settings: &Settings, change: impl FnOnce(&mut Schemes)) -> Client {
    let mut tcp = source_with(settings, change);
    assert_eq!(tcp.sent().len() as u32 * MSS, tcp.sender.flight_size());
    tcp.at(100);
    tcp
}

/// Eight segments are in flight, by this flavour.
fn eight(flavour: Flavour) -> Client {
    flight(&settings(flavour, 8), |_| {})
}

/// Steps of this scheme's conversations.
trait FeedbackSteps: Steps {
    /// An acknowledgement with the feedback bit and these blocks.
    fn marked(&mut self, offset: u32, blocks: &[std::ops::Range<u32>]) -> &mut Client {
        let segment = self.client().report(offset, blocks);
        self.client().receives(Segment { flags: segment.flags | RNF, ..segment })
    }

    /// A row of duplicates of the segment at `edge`, each reporting a segment more behind it: `m` bears the bit,
    /// `u` does not. Nothing is sent before the last.
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

/// Section V-B: the second duplicate with the bit shows the loss, which leaves 0.75 of the window in use, during
/// recovery with the duplicates and after it without.
#[test]
fn two_marked_duplicates_are_a_loss_on_the_air() {
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

/// After recovery NewReno has 0.75 of what was in flight, if as much is in flight then.
#[test]
fn recovery_ends_with_alpha_of_the_flight() {
    let mut tcp = eight(Flavour::NewReno);
    tcp.row(0, "mm").sends(&["0..1000"]);
    for next in 8..13 {
        tcp.marked(0, &[]).sends_full(next..next + 1);
    }
    tcp.at(200).ack(8000).cwnd(6000.0).ssthresh(6000.0).sends_full(13..14);
}

/// Duplicates with and without the bit: by which the loss is found, and what is left of eight segments. Two with
/// the bit are needed, wherever they stand; otherwise as many as the settings say, and a half is left.
#[test]
fn duplicates_may_be_mixed() {
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

/// What is left is exactly that part of what is in flight, but two segments at least.
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

/// It takes this many duplicates with the bit.
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

/// Only the scheme's own bit counts.
#[test]
fn the_bit_is_a_parameter() {
    for flavour in FLAVOURS {
        let mut tcp = flight(&settings(flavour, 8), |s| s.wenp.bit = 9);
        tcp.row(0, "mmm").sends_first("0..1000").ssthresh(4000.0);
    }
}

/// SACK: one duplicate that reports three segments shows the loss (RFC 6675), and says too little of what it is.
/// After one with the bit, two segments beyond are enough.
#[test]
fn one_report_says_too_little() {
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

/// What the source does not take for a duplicate counts for none: here with another window, with data, or
/// overtaken by what came before.
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

/// The end of a row: something new is acknowledged, be that with the bit.
#[test]
fn a_new_acknowledgement_ends_the_row() {
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

/// SACK: what acknowledges something new may be a duplicate as well (RFC 6675), but says nothing of what is asked
/// for next, with the bit or without.
#[test]
fn a_new_acknowledgement_with_a_report_says_nothing() {
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

/// A timeout is answered as ever, whatever the duplicates before it say, and ends their row where TCP counts
/// anew.
#[test]
fn timeouts_are_standard() {
    for flavour in FLAVOURS {
        for row in ["", "m", "u", "mu"] {
            let mut tcp = flight(&Settings { careful: false, ..settings(flavour, 8) }, |_| {});
            tcp.row(0, row).wakes_at(1000).sends_full(0..1).cwnd(1000.0).ssthresh(4000.0);
            if flavour != Flavour::Tahoe {
                tcp.at(1100).row(0, "mu").sends_nothing().ssthresh(4000.0);
            }
        }
        // After a loss on the air, whose repair is lost as well: of what was in flight, or since a step back.
        let mut tcp = eight(flavour);
        tcp.row(0, "mm").sends(&["0..1000"]).ssthresh(6000.0).wakes_at(1100).sends_full(0..1).cwnd(1000.0);
        tcp.ssthresh(if flavour == Flavour::Tahoe { 2000.0 } else { 4000.0 });
    }
}

/// What the row says after the loss was answered changes nothing: a repair that passes has the rest marked.
#[test]
fn later_duplicates_change_nothing() {
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

/// SACK: nor do they make other holes lost sooner. Two segments are beyond the second hole: after a loss that
/// was found by two, it is lost; after one found by three, it is not, and new data go first.
#[test]
fn other_holes_are_lost_by_the_same_threshold() {
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

/// NewReno: one cut for all holes of a window, as the duplicates of the first one have it. Partial
/// acknowledgements bear no bit; if they did, it would change nothing.
#[test]
fn a_window_is_cut_once() {
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

/// SACK: the same.
#[test]
fn a_scoreboard_is_cut_once() {
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

/// What comes after recovery is a new episode.
#[test]
fn the_next_loss_is_judged_anew() {
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

/// Early duplicates send by limited transmit: one, where the second means a loss. It is not of the flight.
#[test]
fn limited_transmit_goes_before() {
    for flavour in &FLAVOURS[..3] {
        let mut tcp = flight(&Settings { limited_transmit: true, ..settings(*flavour, 8) }, |_| {});
        tcp.marked(0, &[]).sends_full(8..9).marked(0, &[]).sends_first("0..1000").ssthresh(6000.0);
    }
}

/// By ns-2's rules the threshold is in whole segments, and the window as exact as ever.
#[test]
fn ns2_counts_whole_segments() {
    let settings = Settings { rules: Rules::Ns2, ..settings(Flavour::NewReno, 6) };
    let mut tcp = source(&settings);
    tcp.sends_full(0..6).at(100).ack(1000).sends_full(6..8).row(1000, "mm").sends_first("1000..2000");
    tcp.ssthresh(5000.0).cwnd(if settings.halve_exactly { 5250.0 } else { 5000.0 });
}

/// A receiver's window that is shut: what answers a probe does not indicate a loss, with the bit or without.
#[test]
fn answers_to_probes_do_not_count() {
    let settings = Settings { window: Bytes(8000).into(), ..settings(Flavour::NewReno, 8) };
    let mut tcp = source(&settings);
    tcp.sends_full(0..8).at(100).with_window(0).ack(8000).sends_nothing();
    let probed = tcp.times_out();
    tcp.sends(&["8000..8001"]).at(probed + 10).marked(8000, &[]).marked(8000, &[]).marked(8000, &[]);
    tcp.sends_nothing().dupacks(0);
    assert_eq!(tcp.sender.stats().fast_retransmits, 0);
}
