//! Reactions that set the duplicate threshold, or extend the window.

use lasthop_base::Time;
use lasthop_proto::Notice;
use lasthop_proto::tcp::{Flavour, Hole, Reaction, Response, Rules, SenderState, Settings};

use super::losses::{FLAVOURS, judged, three_duplicates};
use crate::tcp::dialogue::{Client, MSS, settings};

/// Sets the duplicate threshold to the code of the last notice.
#[derive(Debug)]
struct Threshold(u32);

impl Reaction for Threshold {
    fn on_notice(&mut self, _now: Time, _notice: &Notice, _sender: &mut SenderState) {
        self.0 = 2;
    }

    fn dupthresh(&self, _set: u32, _sender: &SenderState) -> u32 {
        self.0
    }
}

/// A reaction may lower the duplicate threshold; a run of duplicates triggers one retransmission.
// Rule: as a_reaction_may_raise_the_duplicate_threshold
#[test]
fn a_reaction_may_lower_the_duplicate_threshold() {
    for flavour in FLAVOURS {
        let mut tcp = Client::reacting(&settings(flavour, 8), Threshold(2));
        tcp.sends_full(0..8).at(100).sack(0, &[1000..2000]).sends_nothing();
        tcp.sack(0, &[1000..3000]).sends_first("0..1000").ssthresh(4000.0);
        let sent = tcp.sender.stats().retransmitted_segments;
        tcp.sack(0, &[1000..4000]).sack(0, &[1000..5000]).sent();
        assert_eq!((tcp.sender.stats().retransmitted_segments, sent), (1, 1), "{flavour:?}");
    }
}

/// A reaction may raise the duplicate threshold without limit. Limited transmit continues below it: for two
/// segments under RFC 3042, for all under ns-2's rules, and with SACK as far as the pipe permits.
// Rule: Another duplicate threshold; a run of duplicates triggers one retransmission. [state/loss.rs
// recovery/sack.rs]
#[test]
fn a_reaction_may_raise_the_duplicate_threshold() {
    for flavour in FLAVOURS {
        let mut tcp = Client::reacting(&settings(flavour, 8), Threshold(5));
        three_duplicates(tcp.sends_full(0..8).at(100)).sends_nothing();
        tcp.sack(0, &[1000..5000]).sends_nothing().cwnd(8000.0);
        tcp.sack(0, &[1000..6000]).sends_first("0..1000").ssthresh(4000.0);
        let mut tcp = Client::reacting(&settings(flavour, 8), Threshold(u32::MAX));
        three_duplicates(tcp.sends_full(0..8).at(100)).sack(0, &[1000..8000]).sends_nothing();
        tcp.wakes_at(1000).sends_full(0..1);
    }
    for (rules, flavour, limited) in [
        (Rules::Rfc, Flavour::NewReno, 2),
        (Rules::Ns2, Flavour::NewReno, 4),
        (Rules::Rfc, Flavour::Sack, 4),
        (Rules::Ns2, Flavour::Sack, 4),
    ] {
        let settings = Settings { rules, limited_transmit: true, ..settings(flavour, 8) };
        let mut tcp = Client::reacting(&settings, Threshold(5));
        tcp.sends_full(0..8).at(100).ack(1000).sends_full(8..10);
        let sent: usize = (3..7).map(|n| tcp.sack(1000, &[2000..n * MSS]).sent().len()).sum();
        assert_eq!(sent, limited, "{rules:?}, {flavour:?}");
        tcp.sack(1000, &[2000..7000]).sends_first("1000..2000");
    }
}

/// A threshold lowered below the current count is met by the next duplicate.
// Rule: as a_reaction_may_raise_the_duplicate_threshold
#[test]
fn a_threshold_lowered_below_the_count_applies_to_the_next_duplicate() {
    for flavour in [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno] {
        let mut tcp = Client::reacting(&Settings { dupthresh: 5, ..settings(flavour, 8) }, Threshold(5));
        tcp.sends_full(0..8).at(100).acks(3, 0).notice(0).sends_nothing();
        tcp.ack(0).sends_full(0..1).ssthresh(4000.0);
    }
}

/// Returns a given classification, and extends the window by three and a half segments.
#[derive(Debug)]
struct Extends(Response);

impl Reaction for Extends {
    fn extension(&self, _sender: &SenderState) -> Option<u32> {
        Some(3500)
    }

    fn judge(&mut self, _now: Time, _hole: Hole, _sender: &mut SenderState) -> Response {
        self.0
    }
}

/// In a fast recovery without a window reduction, a reaction may determine the extension of the window;
/// duplicates then do not inflate it, and partial acknowledgements do not change it.
// Rule: Extension of an unreduced window during fast recovery. [state/output.rs]
#[test]
fn a_reaction_may_extend_an_unreduced_window() {
    for partial_deflation in [true, false] {
        let settings = Settings { partial_deflation, ..settings(Flavour::NewReno, 8) };
        let mut tcp = Client::reacting(&settings, Extends(Response::Corruption));
        tcp.sends_full(0..8).at(100).acks(2, 0).sends_nothing();
        tcp.ack(0).sends(&["0..1000", "8000..9000", "9000..10000", "10000..11000"]);
        tcp.acks(4, 0).sends_nothing().cwnd(8000.0);
        tcp.at(200).ack(2000).sends(&["2000..3000", "11000..12000", "12000..13000"]);
        tcp.ack(8000).cwnd(8000.0).sends_full(13..16);
    }
    let mut tcp = Client::reacting(&settings(Flavour::Reno, 8), Extends(Response::Corruption));
    tcp.sends_full(0..8).at(100).acks(3, 0).sends(&["0..1000", "8000..9000", "9000..10000", "10000..11000"]);
    tcp.acks(4, 0).sends_nothing().ack(1000).sends_nothing().ack(3000).sends_full(11..12);
}

/// The extension is not used after a reduction, by Tahoe, by SACK, or after a timeout.
// Rule: as a_reaction_may_extend_an_unreduced_window
#[test]
fn the_extension_applies_to_an_unreduced_fast_recovery_only() {
    for flavour in FLAVOURS {
        let mut tcp = Client::reacting(&settings(flavour, 8), Extends(Response::Congestion));
        three_duplicates(tcp.sends_full(0..8).at(100)).sends_full(0..1).wakes_at(1100).sends_full(0..1);
    }
    for flavour in [Flavour::Tahoe, Flavour::Sack] {
        let mut extended = Client::reacting(&settings(flavour, 8), Extends(Response::Corruption));
        let mut plain = judged(&settings(flavour, 8), |_, _| Response::Corruption);
        three_duplicates(extended.sends_full(0..8).at(100));
        assert_eq!(extended.sent(), three_duplicates(&mut plain).sent(), "{flavour:?}");
    }
    for flavour in [Flavour::Reno, Flavour::NewReno] {
        let mut tcp = Client::reacting(&settings(flavour, 8), Extends(Response::Corruption));
        three_duplicates(tcp.sends_full(0..8).at(100)).sends_first("0..1000").wakes_at(1100).sends_full(0..1);
    }
}

/// ns-2: at most two segments leave at each acknowledgement while duplicates are counted, however far the
/// window is extended.
// Rule: as a_reaction_may_extend_an_unreduced_window
#[test]
fn the_extension_respects_the_burst_limit_of_ns2() {
    let settings = Settings { rules: Rules::Ns2, ..settings(Flavour::NewReno, 8) };
    let mut tcp = Client::reacting(&settings, Extends(Response::Corruption));
    tcp.sends_full(0..8).at(100).ack(1000).sends_full(8..10);
    tcp.acks(3, 1000).sends(&["1000..2000", "10000..11000", "11000..12000"]);
    tcp.ack(1000).sends_full(12..13).ack(1000).sends_nothing();
}

/// Each reaction changes the threshold returned by the previous one, and none makes it zero.
// Rule: as the_first_classification_other_than_congestion_applies
#[test]
fn reactions_compose_the_duplicate_threshold() {
    #[derive(Debug)]
    struct Adds(i64);
    impl Reaction for Adds {
        fn dupthresh(&self, set: u32, _sender: &SenderState) -> u32 {
            (i64::from(set) + self.0) as u32
        }
    }
    for (added, threshold) in [([1, 2], 6), ([-3, 1], 2), ([2, -5], 1)] {
        let reactions = added.map(|added| -> Box<dyn Reaction> { Box::new(Adds(added)) });
        let settings = Settings { limited_transmit: false, ..settings(Flavour::Reno, 8) };
        let mut tcp = Client::reacting_in_order(&settings, None, reactions.into());
        tcp.sends_full(0..8).at(100).acks(threshold - 1, 0).sends_nothing().ack(0).sends_first("0..1000");
    }
}
