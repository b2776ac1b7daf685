//! Reactions that classify losses.

use std::sync::{Arc, Mutex};

use lasthop_base::Time;
use lasthop_proto::Notice;
use lasthop_proto::tcp::{
    Congestion, Evidence, Flavour, Hole, Reaction, Response, Rules, SenderState, SeqNum, Settings,
};

use super::{Witness, heard};
use crate::tcp::dialogue::{Client, settings};

pub(super) const FLAVOURS: [Flavour; 4] = [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack];

/// Classifies losses by a function of the offset of the hole.
#[derive(Debug)]
struct Judge {
    first_byte: SeqNum,
    rule: fn(u32, Evidence) -> Response,
}

impl Reaction for Judge {
    fn judge(&mut self, _now: Time, hole: Hole, sender: &mut SenderState) -> Response {
        assert!(hole.seq >= sender.snd_una() && hole.seq < sender.snd_max(), "only what was sent is missing");
        (self.rule)(hole.seq - self.first_byte, hole.evidence)
    }
}

/// Eight segments are in flight with that reaction.
pub(super) fn judged(settings: &Settings, rule: fn(u32, Evidence) -> Response) -> Client {
    let mut tcp = Client::reacting(settings, Judge { first_byte: SeqNum(settings.iss), rule });
    tcp.sends_full(0..8).at(100);
    tcp
}

/// Three duplicate ACKs: the first segment is missing, and later ones arrived.
pub(super) fn three_duplicates(tcp: &mut Client) -> &mut Client {
    tcp.sack(0, &[1000..2000]).sack(0, &[1000..3000]).sack(0, &[1000..4000])
}

/// A corruption loss is repaired with window and ssthresh unchanged, at detection and at the end of recovery;
/// each segment that leaves the network allows another.
// Rule: Each repaired hole and each timeout is classified separately; corruption leaves the window unchanged.
// [state/loss.rs recovery/newreno.rs recovery/sack.rs]
#[test]
fn corruption_leaves_the_window_unchanged() {
    for flavour in FLAVOURS {
        let mut tcp = judged(&settings(flavour, 8), |_, _| Response::Corruption);
        three_duplicates(&mut tcp).cwnd(8000.0).ssthresh(f64::INFINITY);
        if flavour == Flavour::Tahoe {
            // Without fast recovery, duplicates allow no new segments.
            tcp.sends_full(0..1).at(200).ack(8000).cwnd(9000.0).sends_full(8..17);
        } else {
            tcp.sends(&["0..1000", "8000..9000", "9000..10000", "10000..11000"]);
            tcp.at(200).ack(8000).cwnd(8000.0).ssthresh(f64::INFINITY).sends_full(11..16);
        }
        assert_eq!(tcp.sender.stats().fast_retransmits, 1, "{flavour:?}");
    }
}

/// The same with records of the segments in flight, where each of several holes is judged.
// Rule: as corruption_leaves_the_window_unchanged
#[test]
fn corruption_of_several_segments_leaves_the_window_unchanged() {
    let settings = Settings { congestion: Congestion::Reno, tlp: false, ..settings(Flavour::Prr, 8) };
    let mut tcp = judged(&settings, |_, _| Response::Corruption);
    for end in [4000, 5000, 6000, 7000, 8000] {
        tcp.sack(0, &[1000..2000, 3000..end]).sent();
    }
    tcp.at(200).ack(8000).sent();
    while tcp.sender.stats().retransmitted_segments < 2 {
        tcp.times_out();
    }
    // The window of eight segments, and three for the acknowledgement in slow start.
    tcp.at(300).ack(11_000).ssthresh(f64::INFINITY).cwnd(11_000.0).sent();
}

/// The same under ns-2's rules, where the acknowledgement that ends recovery increases the window, except
/// with SACK.
// Rule: as corruption_leaves_the_window_unchanged
#[test]
fn corruption_leaves_the_window_of_ns2_unchanged() {
    for flavour in FLAVOURS {
        let settings = Settings { rules: Rules::Ns2, ..settings(flavour, 8) };
        let mut tcp = judged(&settings, |_, _| Response::Corruption);
        tcp.ack(1000).sends_full(8..10).cwnd(9000.0);
        tcp.sack(1000, &[2000..3000]).sack(1000, &[2000..4000]).sends_nothing();
        tcp.sack(1000, &[2000..5000]).sends_first("1000..2000").cwnd(9000.0).ssthresh(f64::INFINITY);
        tcp.at(200).ack(10_000).cwnd(if flavour == Flavour::Sack { 9000.0 } else { 10_000.0 }).sent();
    }
}

/// NewReno: partial acknowledgements do not deflate a window that was not reduced.
// Rule: as corruption_leaves_the_window_unchanged
#[test]
fn partial_acks_do_not_deflate_an_unreduced_window() {
    let mut tcp = judged(&settings(Flavour::NewReno, 8), |_, _| Response::Corruption);
    three_duplicates(&mut tcp).sends(&["0..1000", "8000..9000", "9000..10000", "10000..11000"]);
    tcp.at(200).ack(6000).cwnd(8000.0).sends(&[
        "6000..7000",
        "11000..12000",
        "12000..13000",
        "13000..14000",
        "14000..15000",
    ]);
    tcp.at(300).ack(8000).cwnd(8000.0).sends_full(15..16);
}

/// Each hole is classified separately, and the first congestion loss reduces the window. NewReno: at the
/// partial acknowledgement that reveals it.
// Rule: as corruption_leaves_the_window_unchanged
#[test]
fn a_later_newreno_hole_may_be_congestion() {
    let first_is_corrupted = |seq, evidence| match (seq, evidence) {
        (0, Evidence::Duplicates) => Response::Corruption,
        (2000 | 4000, Evidence::Partial) => Response::Congestion,
        other => panic!("asked about {other:?}"),
    };
    let mut tcp = judged(&settings(Flavour::NewReno, 8), first_is_corrupted);
    three_duplicates(&mut tcp).sends(&["0..1000", "8000..9000", "9000..10000", "10000..11000"]).cwnd(8000.0);
    tcp.at(200).ack(2000).sends_full(2..3).cwnd(4500.0).ssthresh(4500.0);
    tcp.ack(4000).sends_full(4..5).ssthresh(4500.0);
    tcp.at(300).ack(8000).cwnd(4000.0).sends_full(11..12);
}

/// SACK: when the second hole counts as lost.
// Rule: as corruption_leaves_the_window_unchanged
#[test]
fn a_later_sack_hole_may_be_congestion() {
    let first_is_corrupted = |seq, evidence| match (seq, evidence) {
        (0, Evidence::Sack) => Response::Corruption,
        (2000, Evidence::Sack) => Response::Congestion,
        other => panic!("asked about {other:?}"),
    };
    let mut tcp = judged(&settings(Flavour::Sack, 8), first_is_corrupted);
    tcp.sack(0, &[1000..2000]).sack(0, &[1000..2000, 3000..4000]).sends_nothing();
    tcp.sack(0, &[1000..2000, 3000..5000]).sends(&["0..1000", "8000..9000", "9000..10000", "10000..11000"]);
    tcp.cwnd(8000.0).sack(0, &[1000..2000, 3000..6000]).sends(&["2000..3000"]).cwnd(5500.0).ssthresh(5500.0);
}

/// A reaction may choose a reduction other than a half of the window in use; Tahoe still restarts from one
/// segment.
// Rule: A reduction other than one half. [cc/aimd.rs]
#[test]
fn a_reaction_may_choose_the_reduction() {
    for flavour in FLAVOURS {
        let mut tcp = judged(&settings(flavour, 8), |_, _| Response::Reduce(0.75));
        three_duplicates(&mut tcp).ssthresh(6000.0).sends_first("0..1000");
        tcp.cwnd(if flavour == Flavour::Tahoe { 1000.0 } else { 6000.0 });
    }
}

/// After a timeout slow start follows in any case. For corruption it returns to the previous window, however
/// often the timer expires for the same data; another factor applies to ssthresh.
// Rule: as corruption_leaves_the_window_unchanged
#[test]
fn a_reaction_may_classify_a_timeout() {
    for flavour in FLAVOURS {
        let mut tcp = judged(&settings(flavour, 8), |_, evidence| match evidence {
            Evidence::Timeout => Response::Corruption,
            other => panic!("asked about {other:?}"),
        });
        tcp.wakes_at(1000).sends_full(0..1).cwnd(1000.0).ssthresh(8000.0);
        tcp.wakes_at(3000).sends_full(0..1).cwnd(1000.0).ssthresh(8000.0);
        let mut tcp = judged(&settings(flavour, 8), |_, _| Response::Reduce(0.75));
        tcp.wakes_at(1000).sends_full(0..1).cwnd(1000.0).ssthresh(6000.0);
    }
}

/// Several reactions are called in order. The first classification other than congestion applies; the others
/// are called nevertheless.
// Rule: Several reactions: all are notified, the first classification other than congestion applies,
// thresholds compose. [reaction.rs state/loss.rs]
#[test]
fn the_first_classification_other_than_congestion_applies() {
    let settings = settings(Flavour::Reno, 8);
    let judge = |rule| -> Box<dyn Reaction> { Box::new(Judge { first_byte: SeqNum(settings.iss), rule }) };
    let congestion = || judge(|_, _| Response::Congestion);
    let corruption = || judge(|_, _| Response::Corruption);
    let quarter = || judge(|_, _| Response::Reduce(0.25));
    let cases = [
        (vec![congestion(), corruption()], 8000.0),
        (vec![corruption(), quarter()], 8000.0),
        (vec![congestion(), quarter(), corruption()], 2000.0),
        (vec![congestion(), congestion()], 4000.0),
    ];
    for (reactions, cwnd) in cases {
        let mut tcp = Client::reacting_in_order(&settings, None, reactions);
        tcp.sends_full(0..8).at(100).acks(3, 0).cwnd(cwnd);
    }

    let (first, second) = (Witness::new(&settings), Witness::new(&settings));
    let mut tcp =
        Client::reacting_in_order(&settings, Some(1000), vec![Box::new(first.0), Box::new(second.0)]);
    tcp.sends_full(0..1).at(100).notice(0).ack(1000);
    let told = heard(&first.1);
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told, heard(&second.1));
}

/// With per-segment records, each hole is classified once as well.
// Rule: as corruption_leaves_the_window_unchanged
#[test]
fn with_records_each_hole_is_classified_once() {
    #[derive(Debug)]
    struct Counts(Arc<Mutex<Vec<u32>>>, SeqNum);
    impl Reaction for Counts {
        fn judge(&mut self, _now: Time, hole: Hole, _sender: &mut SenderState) -> Response {
            self.0.lock().expect("one thread").push(hole.seq - self.1);
            Response::Congestion
        }
    }
    let settings = settings(Flavour::Prr, 10);
    let judged = Arc::new(Mutex::new(Vec::new()));
    let mut tcp = Client::reacting(&settings, Counts(judged.clone(), SeqNum(settings.iss)));
    tcp.sends_full(0..10).at(100).sack(0, &[1000..2000, 3000..7000]).sent();
    tcp.sack(0, &[1000..2000, 3000..9000]).sent();
    assert_eq!(*judged.lock().expect("one thread"), [0, 2000]);
}

/// A window set by a reaction during recovery with records is kept at its end: here one segment, plus the
/// growth by the final acknowledgement.
// Rule: as corruption_leaves_the_window_unchanged
#[test]
fn a_window_set_during_a_reduction_is_kept() {
    #[derive(Debug)]
    struct Shrinks;
    impl Reaction for Shrinks {
        fn on_notice(&mut self, _now: Time, _notice: &Notice, sender: &mut SenderState) {
            sender.shrink_window_to_one_segment();
        }
    }
    for (quenched, cwnd) in [(true, 2000.0), (false, 5200.0)] {
        let mut tcp = Client::reacting_with(&settings(Flavour::Prr, 10), Some(12_000), Box::new(Shrinks));
        tcp.sends_full(0..10).at(100).sack(0, &[1000..4000]).sent();
        if quenched {
            tcp.notice(0).sends_nothing();
        }
        tcp.at(150).sack(0, &[1000..10_000]).sent();
        tcp.at(200).ack(10_000).cwnd(cwnd);
    }
}
