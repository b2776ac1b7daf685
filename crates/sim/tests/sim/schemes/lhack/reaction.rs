//! The source's reaction (Cobb and Agrawal sections 4 and 6). Eight segments are in flight.

use lasthop_base::Bytes;
use lasthop_proto::NoticeCode;
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Flavour, InitialWindow, Rules, Settings};
use lasthop_testing::dialogue::{Client, MSS, Steps, settings};
use lasthop_testing::schemes::{installed, schemes_of};

const FLAVOURS: [Flavour; 4] = [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack];
const FAST_RECOVERY: [Flavour; 2] = [Flavour::Reno, Flavour::NewReno];

fn source(settings: &Settings) -> Client {
    let schemes = Schemes::default();
    Client::installed(settings, None, installed(&schemes, "lhack").reactions())
}

/// Eight segments in flight, with this flavour.
fn eight(flavour: Flavour) -> Client {
    let mut tcp = source(&settings(flavour, 8));
    tcp.sends_full(0..8).at(60);
    tcp
}

/// Scheme-specific steps of a conversation.
trait HopSteps: Steps {
    /// Delivers lhacks of these segments.
    fn lhacks(&mut self, numbers: impl IntoIterator<Item = u32>) -> &mut Client {
        self.hop_acks(1, numbers)
    }

    /// Delivers fhacks of these segments.
    fn fhacks(&mut self, numbers: impl IntoIterator<Item = u32>) -> &mut Client {
        self.hop_acks(2, numbers)
    }

    fn hop_acks(&mut self, code: u8, numbers: impl IntoIterator<Item = u32>) -> &mut Client {
        for number in numbers {
            self.client().notice_of(NoticeCode { kind: 41, code }, number * MSS);
        }
        self.client()
    }

    /// Delivers this many duplicates, each reporting one more segment behind the first.
    fn duplicates(&mut self, count: u32) -> &mut Client {
        (2..count + 2).for_each(|n| _ = self.client().sack(0, &[1000..n * MSS]));
        self.client()
    }
}

impl HopSteps for Client {}

/// Section 4: duplicates for a message whose lhack arrived mean corruption; window and threshold are
/// unchanged, and the message is retransmitted. Without its lhack the window is halved, whatever other lhacks
/// arrived.
// Rule: An lhack distinguishes corruption from congestion, by duplicates, partial ACKs and SACK, and after a
// timeout. [4; ../scheme/lhack/reaction.rs]
#[test]
fn an_lhack_distinguishes_corruption_from_congestion() {
    for flavour in FLAVOURS {
        let mut tcp = eight(flavour);
        tcp.lhacks([0]).at(100).duplicates(2).sends_nothing();
        tcp.sack(0, &[1000..4000]).sends_first("0..1000").cwnd(8000.0).ssthresh(f64::INFINITY);
        let mut tcp = eight(flavour);
        tcp.lhacks(1..8).at(100).duplicates(3).sends_full(0..1).ssthresh(4000.0);
        tcp.cwnd(if flavour == Flavour::Tahoe { 1000.0 } else { 4000.0 });
    }
}

/// Section 4: "the number of lhacks received is used, rather than the number of duplicate dacks". An lhack
/// releases a segment at once, a duplicate none; the lhack of the retransmission does not count.
// Rule: Lhacks, not duplicates, extend a window that corruption left unreduced. [4;
// ../scheme/lhack/reaction.rs]
#[test]
fn lhacks_extend_the_window() {
    for flavour in FAST_RECOVERY {
        let mut tcp = eight(flavour);
        tcp.lhacks([0, 1, 2, 3, 4]).at(100).acks(2, 0).sends_nothing().ack(0);
        tcp.sends(&["0..1000", "8000..9000", "9000..10000", "10000..11000", "11000..12000"]);
        tcp.acks(4, 0).sends_nothing().lhacks([5]).sends_full(12..13).lhacks([5]).sends_nothing();
        tcp.lhacks([0]).sends_nothing().lhacks([8]).sends_full(13..14).cwnd(8000.0);
        tcp.at(200).ack(9000).cwnd(8000.0).sends_full(14..17);
    }
}

/// Only segments known to be past the bottleneck count: without lhacks for the segments behind the hole, only
/// the hole is sent, whatever the number of duplicates.
// Rule: as lhacks_extend_the_window
#[test]
fn duplicates_do_not_extend_the_window() {
    for flavour in FAST_RECOVERY {
        let mut tcp = eight(flavour);
        tcp.lhacks([0]).at(100).acks(3, 0).sends_full(0..1).acks(4, 0).sends_nothing();
    }
}

/// After a congestion loss duplicates extend the window, as in standard TCP.
// Rule: as lhacks_extend_the_window
#[test]
fn a_closed_window_is_extended_by_duplicates() {
    for flavour in FAST_RECOVERY {
        let mut tcp = eight(flavour);
        tcp.lhacks(1..8).at(100).acks(3, 0).sends_full(0..1).acks(1, 0).sends_nothing();
        tcp.ack(0).sends_full(8..9).ack(0).sends_full(9..10).lhacks([8, 9]).sends_nothing();
    }
}

/// A source that never received an lhack uses duplicates, also after a loss on the first hop.
// Rule: as lhacks_extend_the_window
#[test]
fn without_any_lhack_duplicates_extend_the_window() {
    for flavour in FAST_RECOVERY {
        let mut tcp = eight(flavour);
        tcp.fhacks([0]).at(100).ack(1000).sends_full(8..10).cwnd(9000.0);
        tcp.acks(3, 1000).cwnd(9000.0).sends(&["1000..2000", "10000..11000", "11000..12000", "12000..13000"]);
        tcp.ack(1000).sends_full(13..14);
    }
}

/// A partial acknowledgement reveals the next hole, which is judged by its own lhack, and takes what was
/// acknowledged out of the extension; the first hole without an lhack turns the episode into congestion.
// Rule: as an_lhack_distinguishes_corruption_from_congestion
#[test]
fn each_hole_is_judged_by_its_own_lhack() {
    let mut tcp = eight(Flavour::NewReno);
    tcp.lhacks([0, 1, 2, 3, 5, 6, 7]).at(100).acks(2, 0).sends_nothing().ack(0).sends_first("0..1000");
    assert_eq!(tcp.sender.usable_window(), 8000 + 6000);
    tcp.acks(2, 0).sends_nothing();
    tcp.at(200).ack(2000).cwnd(8000.0).ssthresh(f64::INFINITY).sends_full(2..3);
    assert_eq!(tcp.sender.usable_window(), 8000 + 4000);
    // Half of the 10,000 in flight. Of five duplicates' extension 2000 and 2000 were acknowledged, 1000 and
    // 1000 retransmitted.
    tcp.at(300).ack(4000).cwnd(5000.0).ssthresh(5000.0).sends_full(4..5);
    assert_eq!(tcp.sender.usable_window(), 5000 + 3000);
}

/// The same with the scoreboard, which extends the window itself.
// Rule: as an_lhack_distinguishes_corruption_from_congestion
#[test]
fn each_scoreboard_hole_is_judged_by_its_own_lhack() {
    let mut tcp = eight(Flavour::Sack);
    tcp.lhacks([0, 1, 3, 4, 5]).at(100).sack(0, &[1000..2000]).sack(0, &[1000..2000, 3000..4000]);
    tcp.sack(0, &[1000..2000, 3000..5000]).sends(&["0..1000", "8000..9000", "9000..10000", "10000..11000"]);
    tcp.cwnd(8000.0).lhacks([6]).sends_nothing();
    tcp.sack(0, &[1000..2000, 3000..6000]).sends(&["2000..3000"]).cwnd(5500.0);
}

/// Section 4: slow start after every timeout; with the lhack up to the previous window.
// Rule: as an_lhack_distinguishes_corruption_from_congestion
#[test]
fn an_lhack_classifies_a_timeout() {
    for flavour in FLAVOURS {
        for rules in [Rules::Rfc, Rules::Ns2] {
            let settings = Settings { rules, ..settings(flavour, 8) };
            let mut tcp = source(&settings);
            tcp.sends_full(0..8).at(60).lhacks([0]).wakes_at(1000).sends_full(0..1);
            tcp.cwnd(1000.0).ssthresh(8000.0);
            let mut tcp = source(&settings);
            tcp.sends_full(0..8).at(60).lhacks(1..8).wakes_at(1000).sends_full(0..1);
            tcp.cwnd(1000.0).ssthresh(4000.0);
        }
    }
}

/// An lhack is valid until its message is retransmitted: a lost retransmission is judged by its own lhack.
/// Notices do not identify copies, so a late one for the first copy counts for the second.
// Rule: An lhack is valid until its message, or a part of it, is retransmitted. [4;
// ../scheme/lhack/reaction.rs]
#[test]
fn a_retransmission_invalidates_the_lhack() {
    for flavour in FLAVOURS {
        for late in [false, true] {
            let mut tcp = eight(flavour);
            tcp.lhacks([0]).at(100).duplicates(3).sends_first("0..1000").cwnd(8000.0);
            if late {
                tcp.lhacks([0]).sent();
            }
            let flight = tcp.sender.pipe();
            tcp.wakes_at(1100).sends_full(0..1).cwnd(1000.0);
            let congestion = if flavour == Flavour::Sack { 5500.0 } else { f64::from(flight) / 2.0 };
            tcp.ssthresh(if late { 8000.0 } else { congestion });
        }
    }
}

/// Retransmissions may have other boundaries: the range they cover loses its lhack, the rest keeps it.
// Rule: as a_retransmission_invalidates_the_lhack
#[test]
fn a_partial_retransmission_invalidates_its_part_of_the_lhack() {
    for (ack, cwnd) in [(1400, 8000.0), (1300, 3850.0), (900, 4050.0)] {
        let mut tcp = eight(Flavour::NewReno);
        tcp.lhacks([0, 1]).at(100).acks(3, 0).sends(&["0..1000", "8000..9000"]).lhacks([0]);
        tcp.at(200).ack(400).sends(&["400..1400"]).cwnd(8000.0).at(300).ack(ack).cwnd(cwnd).sent();
    }
}

/// Segments marked lost by a timeout are not in flight: lhacks of their copies extend nothing until they are
/// retransmitted.
// Rule: as lhacks_extend_the_window
#[test]
fn segments_lost_by_timeout_do_not_extend_the_window() {
    let mut tcp = source(&Settings { careful: false, ..settings(Flavour::NewReno, 8) });
    tcp.sends_full(0..8)
        .at(60)
        .lhacks(0..8)
        .wakes_at(1000)
        .sends_full(0..1)
        .at(1100)
        .ack(1000)
        .sends_full(1..3);
    tcp.lhacks([1]).acks(2, 1000).sends_nothing().ack(1000).sends_full(1..2).cwnd(2000.0);
    tcp.acks(3, 1000).sends_nothing().lhacks([2]).sends_full(3..4);
}

/// A message shown to be missing by an fhack for a later one is retransmitted immediately, once, and the window
/// is unchanged; only the left edge restarts the timer.
// Rule: A later fhack reveals a loss on the first hop, which is repaired at once, repeatedly if necessary.
// [4; ../scheme/lhack/reaction.rs]
#[test]
fn a_gap_between_fhacks_is_retransmitted() {
    for flavour in FLAVOURS {
        let mut tcp = eight(flavour);
        tcp.fhacks([0]).sends_nothing().fhacks([2]).sends_full(1..2).timer_at(1000);
        tcp.fhacks(3..5).sends_nothing().fhacks([6]).sends_full(5..6).fhacks([7, 1, 5]).sends_nothing();
        tcp.cwnd(8000.0).ssthresh(f64::INFINITY);
        let mut tcp = eight(flavour);
        tcp.fhacks([3]).sends_full(0..3).timer_at(1060).cwnd(8000.0);
        assert_eq!(tcp.sender.stats().fast_retransmits, 0);
    }
}

/// With detection by duplicates, a missing fhack retransmits nothing; it classifies the loss that duplicates reveal.
// Rule: With `detection = "duplicates"`, fhacks classify losses only. [4; ../scheme/lhack/mod.rs]
#[test]
fn fhacks_may_classify_losses_only() {
    let schemes = schemes_of("[lhack]\ndetection = \"duplicates\"");
    for flavour in FAST_RECOVERY {
        let reactions = installed(&schemes, "lhack").reactions();
        let mut tcp = Client::installed(&settings(flavour, 8), None, reactions);
        tcp.sends_full(0..8).at(60);
        tcp.fhacks(1..8).sends_nothing();
        tcp.acks(3, 0).sends_first("0..1000").cwnd(8000.0);
        // All fhacks arrived, so the loss is congestion.
        let mut tcp =
            Client::installed(&settings(flavour, 8), None, installed(&schemes, "lhack").reactions());
        tcp.sends_full(0..8).at(60);
        tcp.fhacks(0..8).acks(3, 0).sends_first("0..1000").cwnd(4000.0);
    }
}

/// If part of a message has arrived, the remainder is retransmitted, once.
// Rule: as a_gap_between_fhacks_is_retransmitted
#[test]
fn the_missing_part_of_a_message_is_retransmitted() {
    let mut tcp = eight(Flavour::NewReno);
    tcp.at(100).ack(400).sends_nothing().fhacks([1]).sends(&["400..1400"]).fhacks([2, 3]).sends_nothing();
}

/// Segments sent before the repair overtake it and cause duplicates. Three more than those mean that the
/// repair was lost: in the network if its fhack arrived, otherwise on the first hop.
// Rule: Segments that overtake a repair do not indicate its loss. [../scheme/lhack/reaction.rs]
#[test]
fn duplicates_of_overtaking_segments_do_not_count() {
    for flavour in FLAVOURS {
        for (fhack, ssthresh) in [(true, 4500.0), (false, f64::INFINITY)] {
            let mut tcp = eight(flavour);
            tcp.fhacks([0, 1, 3]).sends_full(2..3).fhacks(4..8);
            if fhack {
                tcp.fhacks([2]);
            }
            tcp.at(100).ack(2000).sends_full(8..11);
            // Segments 3 to 7 overtake; 8 to 10 do not.
            (4..11).for_each(|n| _ = tcp.sack(2000, &[3000..n * MSS]).sends_nothing());
            tcp.sack(2000, &[3000..11_000]).sends_first("2000..3000").ssthresh(ssthresh);
        }
    }
}

/// A second repair is overtaken by all segments sent since the first loss.
// Rule: as duplicates_of_overtaking_segments_do_not_count
#[test]
fn a_second_repair_is_overtaken_by_all_segments_since_the_loss() {
    for flavour in FLAVOURS {
        let mut tcp = eight(flavour);
        tcp.fhacks([0, 1, 3]).sends_full(2..3).fhacks(4..8).at(100).ack(2000).sends_full(8..11);
        tcp.fhacks([8]).sends_full(2..3).fhacks([9, 10, 2]);
        // Segments 3 to 10 overtake: three duplicates beyond those eight would indicate a loss.
        (4..12).for_each(|n| _ = tcp.sack(2000, &[3000..n * MSS]).sends_nothing());
        tcp.at(200).ack(11_000).cwnd(10_000.0).ssthresh(f64::INFINITY).sends_full(11..21);
    }
}

/// A lost repair is revealed by the next fhack for a segment sent after it; then all segments sent since the
/// first loss overtake.
// Rule: as a_gap_between_fhacks_is_retransmitted
#[test]
fn a_lost_repair_is_retransmitted() {
    for flavour in FLAVOURS {
        let mut tcp = eight(flavour);
        tcp.fhacks([0]).fhacks([2]).sends_full(1..2).fhacks([3]).sends_nothing();
        tcp.at(100).ack(1000).sends_full(8..10).fhacks(4..8).sends_nothing();
        tcp.fhacks([8]).sends_full(1..2).fhacks([9]).sends_nothing().cwnd(9000.0);
    }
}

/// A message retransmitted while its fhack may still arrive says nothing about segments sent between its
/// copies; one sent later does.
// Rule: as a_gap_between_fhacks_is_retransmitted
#[test]
fn fhacks_of_earlier_copies_do_not_count() {
    for flavour in FAST_RECOVERY {
        let mut tcp = eight(flavour);
        tcp.at(100).acks(3, 0).sends_full(0..1).fhacks([0]).sends_nothing();
        tcp.acks(1, 0).ack(0).sends_full(8..9).fhacks([8]).sends_full(1..8);
    }
}

/// Nor after a repair: retransmissions for another reason are not repairs.
// Rule: as a_gap_between_fhacks_is_retransmitted
#[test]
fn fhacks_of_earlier_copies_do_not_count_after_a_repair() {
    for flavour in FAST_RECOVERY {
        let mut tcp = eight(flavour);
        tcp.fhacks([0, 2]).sends_full(1..2).at(100).ack(3000).sends_full(8..12);
        tcp.acks(2, 3000).sends_nothing().ack(3000).sends_first("3000..4000").fhacks([3]).sends_nothing();
    }
}

/// At a mobile source, a message without its fhack was lost on the first hop or in a hand-off (section 6):
/// slow start returns to the previous window. With its fhack, the loss is congestion.
// Rule: At a mobile source a missing fhack means corruption or a hand-off; with both ends mobile, a missing
// lhack means congestion. [4, 6; ../scheme/lhack/reaction.rs]
#[test]
fn an_fhack_classifies_a_timeout() {
    for flavour in FLAVOURS {
        let mut tcp = eight(flavour);
        tcp.fhacks([0]).at(100).ack(1000).sends_full(8..10).wakes_at(1100).sends_full(1..2);
        tcp.cwnd(1000.0).ssthresh(9000.0);
        let mut tcp = eight(flavour);
        tcp.fhacks([0, 1]).at(100).ack(1000).sends_full(8..10).wakes_at(1100).sends_full(1..2);
        tcp.cwnd(1000.0).ssthresh(4500.0);
    }
}

/// Section 4, both ends mobile: with fhack and lhack the loss is on the last hop; with the fhack alone it
/// counts as congestion, although the lhack may have been lost.
// Rule: as an_fhack_classifies_a_timeout
#[test]
fn with_both_ends_mobile_both_notices_are_needed() {
    for flavour in FLAVOURS {
        for (lhacks, ssthresh) in [(0..8, f64::INFINITY), (1..8, 4000.0)] {
            let mut tcp = eight(flavour);
            tcp.fhacks(0..8).lhacks(lhacks).at(100).duplicates(3).sends_first("0..1000").ssthresh(ssthresh);
        }
    }
}

/// The same at every position of the sequence wrap: a repair on the first hop, then a loss on the last, and
/// duplicates of segments that overtook neither.
// Rule: At every position of the sequence wrap. [../scheme/lhack/reaction.rs]
#[test]
fn sequence_numbers_wrap() {
    for flavour in FLAVOURS {
        for wrap in (0..=12_000).step_by(500).chain([1, 999, 1001]) {
            let mut tcp = source(&Settings { iss: 0u32.wrapping_sub(wrap), ..settings(flavour, 8) });
            tcp.sends_full(0..8).at(20).fhacks([0, 1, 3]).sends_full(2..3).fhacks(4..8).fhacks([2]);
            tcp.lhacks(0..8).at(60).ack(4000).sends_full(8..13).fhacks(8..13).lhacks(8..13).sends_nothing();
            (6..8).for_each(|n| _ = tcp.sack(4000, &[5000..n * MSS]).sends_nothing());
            tcp.sack(4000, &[5000..8000]).sends_first("4000..5000").cwnd(9000.0).ssthresh(f64::INFINITY);
            if FAST_RECOVERY.contains(&flavour) {
                assert_eq!(tcp.sender.usable_window(), 9000 + 8000);
            }
        }
    }
}

/// Acknowledged ranges are forgotten: after a full sequence cycle no old lhack counts or hides a new one.
// Rule: as sequence_numbers_wrap
#[test]
fn stale_lhacks_are_forgotten_after_a_full_sequence_cycle() {
    let mut tcp = source(&Settings {
        packet_size: Bytes(64_040),
        window: Bytes(1 << 30).into(),
        initial_window: InitialWindow::Segments(1),
        ..settings(Flavour::NewReno, 1)
    });
    let (mut acked, mut total) = (0u32, 0u64);
    while total <= 3 << 31 {
        tcp.sent();
        let sent = tcp.sender.snd_max().0.wrapping_sub(tcp.bare_ack(acked).ack.0);
        acked = acked.wrapping_add(sent);
        total += u64::from(sent);
        tcp.at(100).ack(acked);
    }
    tcp.sent();
    let cwnd = tcp.sender.cwnd();
    tcp.notice_of(NoticeCode { kind: 41, code: 1 }, acked).acks(2, acked).sends_nothing();
    tcp.ack(acked).cwnd(cwnd).ssthresh(f64::INFINITY);
    assert_eq!(tcp.sent()[0].seq, tcp.bare_ack(acked).ack);
}
