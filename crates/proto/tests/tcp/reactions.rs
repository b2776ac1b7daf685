//! The interface of reactions: the events they receive, and the effects of their results, with reactions
//! defined for these tests.

use std::sync::{Arc, Mutex};

use lasthop_base::{Duration, Time};
use lasthop_proto::tcp::{
    AckResponse, Congestion, Evidence, Flags, Flavour, Hole, Reaction, Receiver, ReceiverReaction, Response,
    Rules, Segment, SenderState, SeqNum, Settings,
};
use lasthop_proto::{Dscp, Notice};

use crate::dialogue::{Client, MSS, Server, settings};

/// Records its calls, with offsets from the first byte.
#[derive(Debug)]
struct Witness {
    first_byte: SeqNum,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Witness {
    fn new(settings: &Settings) -> (Witness, Arc<Mutex<Vec<String>>>) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        (Witness { first_byte: SeqNum(settings.iss), heard: heard.clone() }, heard)
    }

    fn offset(&self, seq: SeqNum) -> u32 {
        seq - self.first_byte
    }

    fn write(&self, line: String) {
        self.heard.lock().expect("one thread").push(line);
    }

    /// SND.UNA, next and highest sequence number; segment size; window and ssthresh; duplicates.
    fn look(&self, tcp: &SenderState) -> String {
        let edges = [tcp.snd_una(), tcp.snd_nxt(), tcp.snd_max()].map(|seq| self.offset(seq));
        format!("{edges:?} {} {} {} {}", tcp.mss(), tcp.cwnd(), tcp.ssthresh(), tcp.dupacks())
    }
}

impl Reaction for Witness {
    fn on_notice(&mut self, now: Time, notice: &Notice, sender: &mut SenderState) {
        let seq = self.offset(notice.seq);
        self.write(format!("{} ms notice of {seq}: {}", milliseconds(now), self.look(sender)));
    }

    fn on_segment(&mut self, now: Time, segment: &Segment, sender: &mut SenderState) {
        let ack = self.offset(segment.ack);
        self.write(format!("{} ms ack {ack}: {}", milliseconds(now), self.look(sender)));
    }

    fn on_sent(&mut self, _now: Time, start: SeqNum, end: SeqNum, again: bool) {
        let (start, end) = (self.offset(start), self.offset(end));
        self.write(format!("sent {start}..{end}{}", if again { " again" } else { "" }));
    }
}

fn milliseconds(now: Time) -> u64 {
    now.as_nanos() / 1_000_000
}

fn heard(witness: &Arc<Mutex<Vec<String>>>) -> Vec<String> {
    std::mem::take(&mut witness.lock().expect("one thread"))
}

/// A reaction is notified of each segment sent, each acknowledgement before it is processed, and each notice,
/// and sees the sender's current state.
#[test]
fn a_reaction_is_notified_and_sees_the_state() {
    let settings = settings(Flavour::Tahoe, 2);
    let (witness, log) = Witness::new(&settings);
    let mut tcp = Client::reacting(&settings, witness);
    tcp.sends_full(0..2);
    assert_eq!(heard(&log), ["sent 0..1000", "sent 1000..2000"]);
    tcp.at(100).ack(1000).sends_full(2..4);
    assert_eq!(
        heard(&log),
        ["100 ms ack 1000: [0, 2000, 2000] 1000 2000 inf 0", "sent 2000..3000", "sent 3000..4000"]
    );
    tcp.acks(3, 1000).sends_full(1..2);
    assert_eq!(
        heard(&log)[2..],
        ["100 ms ack 1000: [1000, 4000, 4000] 1000 3000 inf 2", "sent 1000..2000 again"]
    );
    tcp.at(200).notice(3000).sends_nothing();
    assert_eq!(heard(&log), ["200 ms notice of 3000: [1000, 2000, 4000] 1000 1000 2000 3"]);
    assert_eq!(tcp.sender.stats().notices, 1);
}

/// After a notice the sender sends what the window permits, as after any event; here the burst limit is one
/// segment and the window four.
#[test]
fn a_notice_triggers_transmission() {
    let settings = Settings { max_burst: 1, ..settings(Flavour::Reno, 4) };
    let (witness, _) = Witness::new(&settings);
    let mut tcp = Client::reacting(&settings, witness);
    tcp.sends_full(0..1).at(100).notice(0).sends_full(1..2);
    tcp.notice(0).sends_full(2..3).notice(0).sends(&["3000..4000"]).notice(0).sends_nothing();
    assert_eq!(tcp.sender.flight_size(), 4 * MSS);
}

/// Acknowledgements of data never sent are not reported, and a notice does not open a connection.
#[test]
fn a_reaction_is_notified_of_valid_events_only() {
    let settings = Settings { handshake: true, ..settings(Flavour::Reno, 2) };
    let (witness, log) = Witness::new(&settings);
    let mut tcp = Client::reacting(&settings, witness);
    tcp.sends(&["SYN"]);
    assert_eq!(heard(&log), ["sent 0..1"]);
    tcp.at(50).notice(0).sends_nothing().ack(5000).sends_nothing();
    assert_eq!(heard(&log), ["50 ms notice of 1: [0, 1, 1] 1000 2000 inf 0"]);
    tcp.at(100).syn_ack().sends_full(0..2);
    assert_eq!(heard(&log)[0], "100 ms ack 1: [0, 1, 1] 1000 2000 inf 0");
}

const FLAVOURS: [Flavour; 4] = [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack];

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
fn judged(settings: &Settings, rule: fn(u32, Evidence) -> Response) -> Client {
    let mut tcp = Client::reacting(settings, Judge { first_byte: SeqNum(settings.iss), rule });
    tcp.sends_full(0..8).at(100);
    tcp
}

/// Three duplicate ACKs: the first segment is missing, and later ones arrived.
fn three_duplicates(tcp: &mut Client) -> &mut Client {
    tcp.sack(0, &[1000..2000]).sack(0, &[1000..3000]).sack(0, &[1000..4000])
}

/// A corruption loss is repaired with window and ssthresh unchanged, at detection and at the end of recovery;
/// each segment that leaves the network allows another.
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

/// Requests retransmission of the segments at its offsets on each notice, and records refusals.
#[derive(Debug)]
struct Asks {
    witness: Witness,
    offsets: Vec<u32>,
}

impl Reaction for Asks {
    fn on_notice(&mut self, _now: Time, _notice: &Notice, sender: &mut SenderState) {
        for offset in &self.offsets {
            if !sender.resend(self.witness.first_byte + *offset) {
                self.witness.write(format!("not {offset}"));
            }
        }
    }

    fn on_sent(&mut self, now: Time, start: SeqNum, end: SeqNum, again: bool) {
        self.witness.on_sent(now, start, end, again);
    }
}

/// A sender whose reaction requests the segments at `offsets` on each notice.
fn asking(settings: &Settings, offsets: &[u32]) -> (Client, Arc<Mutex<Vec<String>>>) {
    let (witness, log) = Witness::new(settings);
    (Client::reacting(settings, Asks { witness, offsets: offsets.into() }), log)
}

/// Requested retransmissions are sent before new data, in the order requested, and reported to the reaction.
/// They count as retransmissions, but not as fast retransmits or losses: windows are unchanged. That of the
/// left edge restarts the timer.
#[test]
fn a_reaction_may_request_retransmissions() {
    for flavour in FLAVOURS {
        let settings = Settings { max_burst: 1, ..settings(flavour, 4) };
        let (mut tcp, log) = asking(&settings, &[1000, 0]);
        tcp.sends_full(0..1).at(100).notice(0).sends(&["0..1000", "1000..2000"]).timer_at(1100);
        assert_eq!(heard(&log), ["sent 0..1000", "not 1000", "sent 0..1000 again", "sent 1000..2000"]);
        tcp.at(200).notice(0).sends(&["1000..2000", "0..1000", "2000..3000"]).timer_at(1200);
        tcp.cwnd(4000.0).ssthresh(f64::INFINITY).at(300).ack(1000).sends_full(3..4);
        tcp.at(400).notice(0).sends(&["1000..2000", "4000..5000"]);
        let stats = tcp.sender.stats();
        assert_eq!((stats.retransmitted_segments, stats.fast_retransmits, stats.timeouts), (4, 0, 0));
    }
}

/// Above the left edge the timer is not restarted.
#[test]
fn only_the_left_edge_restarts_the_timer() {
    let (mut tcp, _) = asking(&settings(Flavour::NewReno, 4), &[1000]);
    tcp.sends_full(0..4).at(100).notice(0).sends_full(1..2).timer_at(1000);
    tcp.at(150).ack(1000).sends_full(4..6).timer_at(1150).at(200).notice(0).sends_full(1..2).timer_at(1200);
}

/// Requests are refused for data that are acknowledged, never sent, to be retransmitted after a timeout
/// anyway, or SACKed; a segment ends where such data begin.
#[test]
fn requests_for_data_not_in_flight_are_refused() {
    let (mut tcp, log) = asking(&settings(Flavour::NewReno, 4), &[0, 1500, 3999, 4000]);
    tcp.sends_full(0..4).at(100).ack(1000).sends_full(4..6).notice(0);
    tcp.sends(&["1500..2500", "3999..4999", "4000..5000"]);
    assert_eq!(heard(&log)[6], "not 0");
    tcp.at(150).wakes_at(1100).sends_full(1..2).at(1200).notice(0).sends(&["1500..2000"]);
    assert_eq!(heard(&log)[1..], ["not 0", "not 3999", "not 4000", "sent 1500..2000 again"]);

    let (mut tcp, log) = asking(&settings(Flavour::Sack, 4), &[500, 1000, 1999, 3000]);
    tcp.sends_full(0..4).at(100).sack(0, &[1000..2000]).notice(0).sends(&["500..1000", "3000..4000"]);
    assert_eq!(heard(&log)[4..6], ["not 1000", "not 1999"]);
}

/// Requests are refused before the connection is open and after its end.
#[test]
fn requests_outside_a_connection_are_refused() {
    let settings = Settings { handshake: true, close: true, ..settings(Flavour::NewReno, 4) };
    let (witness, log) = Witness::new(&settings);
    let reaction = Asks { witness, offsets: vec![0, 1] };
    let mut tcp = Client::reacting_with(&settings, Some(1500), Box::new(reaction));
    tcp.sends(&["SYN"])
        .at(50)
        .notice(0)
        .sends_nothing()
        .at(100)
        .syn_ack()
        .sends(&["0..1000", "1000..1500 FIN"]);
    assert_eq!(heard(&log)[1..3], ["not 0", "not 1"]);
    tcp.at(150).notice(0).sends_full(0..1).at(200).ack(1501).is_finished().notice(0).sends_nothing();
}

/// A timed segment gives no sample after a requested retransmission (Karn's rule), of itself or of one before
/// it.
#[test]
fn requested_retransmissions_give_no_sample() {
    for rules in [Rules::Rfc, Rules::Ns2] {
        for offset in [0, 1000] {
            let (mut tcp, _) = asking(&Settings { rules, ..settings(Flavour::NewReno, 4) }, &[offset]);
            tcp.sent();
            tcp.at(50)
                .notice(0)
                .sends(&[&format!("{offset}..{}", offset + 1000)])
                .at(100)
                .ack(2000)
                .srtt(None);
        }
    }
}

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
#[test]
fn the_extension_respects_the_burst_limit_of_ns2() {
    let settings = Settings { rules: Rules::Ns2, ..settings(Flavour::NewReno, 8) };
    let mut tcp = Client::reacting(&settings, Extends(Response::Corruption));
    tcp.sends_full(0..8).at(100).ack(1000).sends_full(8..10);
    tcp.acks(3, 1000).sends(&["1000..2000", "10000..11000", "11000..12000"]);
    tcp.ack(1000).sends_full(12..13).ack(1000).sends_nothing();
}

/// Marks segments at given offsets; records its calls, and the data left from those offsets and from those of
/// notices.
#[derive(Debug)]
struct Marks {
    witness: Witness,
    rule: fn(u32) -> bool,
}

impl Marks {
    fn new(settings: &Settings, rule: fn(u32) -> bool) -> (Marks, Arc<Mutex<Vec<String>>>) {
        let (witness, log) = Witness::new(&Settings {
            iss: settings.iss.wrapping_add(u32::from(settings.handshake)),
            ..settings.clone()
        });
        (Marks { witness, rule }, log)
    }
}

impl Reaction for Marks {
    fn on_notice(&mut self, _now: Time, notice: &Notice, sender: &mut SenderState) {
        let left = sender.left_from(notice.seq).map_or("no end".into(), |left| left.to_string());
        self.witness.write(format!("from {}: {left}", self.witness.offset(notice.seq)));
    }

    fn dscp(&mut self, _now: Time, segment: &Segment, again: bool, sender: &SenderState) -> Dscp {
        let left = sender.left_from(segment.seq).map_or("no end".into(), |left| left.to_string());
        if segment.flags.has(Flags::SYN) {
            self.witness.write(format!("SYN{}: {left} left", if again { " again" } else { "" }));
            return Dscp::DEFAULT;
        }
        let end = segment.seq + segment.seq_len();
        let (start, end) = (self.witness.offset(segment.seq), self.witness.offset(end));
        self.witness.write(format!("{start}..{end}{}: {left} left", if again { " again" } else { "" }));
        if (self.rule)(start) { Dscp::new(9) } else { Dscp::DEFAULT }
    }
}

/// Before each segment with data, SYN or FIN is sent, a reaction returns its DSCP, and knows whether part of
/// it is a retransmission. It is not called for pure ACKs.
#[test]
fn a_reaction_sets_the_dscp_of_segments() {
    let settings = Settings { handshake: true, close: true, ..settings(Flavour::NewReno, 3) };
    let (marks, log) = Marks::new(&settings, |start| start != 1000);
    let mut tcp = Client::reacting_with(&settings, Some(2500), Box::new(marks));
    tcp.sends(&["SYN"]);
    assert_eq!(heard(&log), ["SYN: 2500 left"]);
    tcp.at(100).syn_ack().sends(&["0..1000 marked", "1000..2000", "2000..2500 FIN marked"]);
    assert_eq!(heard(&log), ["0..1000: 2500 left", "1000..2000: 1500 left", "2000..2501: 500 left"]);
    tcp.at(200).acks(3, 0).sends(&["0..1000 marked"]);
    assert_eq!(heard(&log), ["0..1000 again: 2500 left"]);
    tcp.at(300).ack(2500).sends(&["2500 FIN marked"]);
    assert_eq!(heard(&log), ["2500..2501 again: 0 left"]);
}

/// The data left are counted from any offset to the end: before the first transmission and after the last,
/// with or without FIN, for data acknowledged and not yet sent; FIN does not count.
#[test]
fn the_remaining_data_are_counted_from_any_offset() {
    for (close, handshake) in [(false, false), (true, false), (false, true), (true, true)] {
        let settings = Settings { close, handshake, ..settings(Flavour::NewReno, 2) };
        let (marks, log) = Marks::new(&settings, |_| false);
        let mut tcp = Client::reacting_with(&settings, Some(5_500), Box::new(marks));
        let left = |tcp: &mut Client, places: &[(u32, &str)]| {
            tcp.sent();
            heard(&log);
            for (offset, left) in places {
                tcp.notice(*offset).sends_nothing();
                assert_eq!(heard(&log), [format!("from {offset}: {left}")], "{close}, {handshake}");
            }
        };
        let all = [(0, "5500"), (1, "5499"), (2000, "3500"), (3500, "2000"), (5499, "1"), (5500, "0")];
        if handshake {
            left(&mut tcp, &all);
            tcp.at(50).syn_ack();
        }
        left(&mut tcp, &all);
        left(&mut tcp, &[(5501, "0"), (9000, "0")]);
        left(tcp.at(100).ack(2000), &all[2..]);
        // All data and the FIN are sent.
        left(tcp.at(200).ack(4000), &all[3..]);
        assert_eq!(tcp.sender.snd_max(), tcp.bare_ack(5500 + u32::from(close)).ack);
        left(&mut tcp, &[(5501, "0")]);
        left(tcp.at(300).ack(5500), &[(5500, "0")]);
    }
}

/// An unbounded transfer has no data left to report, however much was sent; a long finite one does.
#[test]
fn an_unbounded_transfer_has_no_remaining_data() {
    for (bytes, places) in [
        (None, ["no end"; 3]),
        (Some(1 << 62), ["4611686018427387904", "4611686018427386404", "4611686018427382904"]),
    ] {
        for handshake in [false, true] {
            let settings = Settings { handshake, ..settings(Flavour::NewReno, 2) };
            let (marks, log) = Marks::new(&settings, |_| false);
            let mut tcp = Client::reacting_with(&settings, bytes, Box::new(marks));
            if handshake {
                tcp.sent();
                tcp.at(50).syn_ack();
            }
            tcp.sends_full(0..2);
            heard(&log);
            for (offset, left) in [0, 1500, 5000].into_iter().zip(places) {
                tcp.notice(offset).sends_nothing();
                assert_eq!(heard(&log), [format!("from {offset}: {left}")]);
            }
            tcp.at(100).ack(2000).sent();
            heard(&log);
            tcp.notice(1500).sends_nothing();
            assert_eq!(heard(&log), [format!("from 1500: {}", places[1])]);
        }
    }
}

/// Several reactions are called in order. The first classification other than congestion applies; the others
/// are called nevertheless.
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

/// Each reaction changes the threshold returned by the previous one, and none makes it zero.
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

/// Requests the left edge whenever its timer expires.
#[derive(Debug)]
struct Metronome {
    interval: Duration,
    next: Time,
    left: u32,
}

impl Reaction for Metronome {
    fn on_start(&mut self, _now: Time, _sender: &mut SenderState) {
        self.next = Time::ZERO + self.interval;
    }

    fn next_wakeup(&self) -> Time {
        if self.left > 0 { self.next } else { Time::NEVER }
    }

    fn on_timer(&mut self, now: Time, sender: &mut SenderState) {
        assert_eq!(now, self.next);
        self.left -= 1;
        self.next = now + self.interval;
        sender.resend(sender.snd_una());
    }
}

/// A reaction has its own timer, independent of those of TCP and of other reactions, and may request segments
/// when it expires. It is not called after everything is acknowledged.
#[test]
fn a_reaction_has_a_timer() {
    let every = |milliseconds, left| -> Box<dyn Reaction> {
        Box::new(Metronome { interval: Duration::from_millis(milliseconds), next: Time::NEVER, left })
    };
    let mut tcp = Client::reacting_in_order(&settings(Flavour::Reno, 2), Some(2000), vec![every(40, 2)]);
    tcp.sends_full(0..2).wakes_at(40).sends_full(0..1).wakes_at(80).sends_full(0..1).timer_at(1080);

    let reactions = vec![every(40, 9), every(60, 9)];
    let mut tcp = Client::reacting_in_order(&settings(Flavour::Reno, 2), Some(2000), reactions);
    tcp.sends_full(0..2);
    for (at, asked) in [(40, 1), (60, 1), (80, 1), (120, 2)] {
        tcp.wakes_at(at);
        assert_eq!(tcp.sent().len(), asked, "at {at} ms");
    }
    tcp.at(150).ack(2000).is_finished();
}

#[should_panic(expected = "did not move its timer forward")]
#[test]
fn a_reaction_timer_left_expired_panics() {
    #[derive(Debug)]
    struct Stuck;
    impl Reaction for Stuck {
        fn next_wakeup(&self) -> Time {
            Time::ZERO + Duration::from_millis(10)
        }
    }
    Client::reacting(&settings(Flavour::Reno, 2), Stuck).wakes_at(10);
}

/// Closes the window on a notice, and opens it again after 100 ms with three acknowledgements; marks each
/// acknowledgement.
#[derive(Debug)]
struct Freezes(Option<Time>);

impl ReceiverReaction for Freezes {
    fn on_notice(&mut self, now: Time, _notice: &Notice, receiver: &mut Receiver) {
        self.0 = Some(now + Duration::from_millis(100));
        receiver.acknowledge_now(1);
    }

    fn on_ack(&mut self, _now: Time, ack: &mut Segment, _receiver: &mut Receiver) -> AckResponse {
        ack.flags = ack.flags | Flags::CWR;
        if self.0.is_some() {
            ack.wnd = 0;
        }
        AckResponse::Send
    }

    fn next_wakeup(&self) -> Time {
        self.0.unwrap_or(Time::NEVER)
    }

    fn on_timer(&mut self, _now: Time, receiver: &mut Receiver) {
        self.0 = None;
        receiver.acknowledge_now(3);
    }
}

/// Suppresses acknowledgements of an even number of bytes.
#[derive(Debug, Default)]
struct Withholds {
    heard: Vec<u32>,
    shown: u32,
}

impl ReceiverReaction for Withholds {
    fn on_segment(&mut self, _now: Time, segment: &Segment, receiver: &mut Receiver) {
        assert!(segment.seq >= receiver.rcv_nxt() && !receiver.has_gap(), "as it was before the segment");
        self.heard.push(segment.len);
    }

    fn on_ack(&mut self, _now: Time, _ack: &mut Segment, _receiver: &mut Receiver) -> AckResponse {
        self.shown += 1;
        if self.shown % 2 == 1 { AckResponse::Send } else { AckResponse::Withhold }
    }
}

/// A receiver's reaction changes and requests acknowledgements, receives notices, and has a timer independent
/// of the delayed ACK timer.
#[test]
fn a_receiver_reaction_changes_and_requests_acks() {
    let settings = Settings { ack_every: 2, ..settings(Flavour::Reno, 8) };
    let window = settings.window_payload();
    let mut tcp = Server::reacting_in_order(&settings, vec![Box::new(Freezes(None))]);
    tcp.at(10).data(0..1000).is_silent().at(20).data(1000..2000);
    let ack = tcp.answer();
    assert!(ack.flags.has(Flags::CWR) && ack.wnd == window);
    tcp.at(30).notice(2000).acks_with_window(2000, 0);
    tcp.at(40).data(2000..3000).is_silent().wakes_at(130).acks_times(3, 3000).no_timer();
    tcp.at(140).data(3000..4000).wakes_at(340).acks_with_window(4000, window);
}

/// A suppressed acknowledgement does not count as sent, and is not passed to the next reaction.
#[test]
fn a_receiver_reaction_may_suppress_acks() {
    let settings = Settings { ack_every: 1, ..settings(Flavour::Reno, 8) };
    let reactions: Vec<Box<dyn ReceiverReaction>> =
        vec![Box::new(Withholds::default()), Box::new(Freezes(None))];
    let mut tcp = Server::reacting_in_order(&settings, reactions);
    tcp.data(0..1000).acks(1000).data(1000..2000).is_silent().data(2000..3000).acks(3000);
    tcp.data(3000..4000).is_silent().delivered(4000);
    assert_eq!(tcp.receiver.stats().acks_sent, 2);
}

/// A duplicate whose report is withheld is reported by the next acknowledgement, once, as in Linux; duplicates
/// that touch are reported as one.
#[test]
fn a_withheld_report_of_a_duplicate_is_sent_later() {
    let settings = Settings { ack_every: 1, dsack: true, ..settings(Flavour::Sack, 8) };
    let mut tcp = Server::reacting_in_order(&settings, vec![Box::new(Holds::default())]);
    tcp.data(0..1000).acks(1000).data(1000..2000).acks(2000);
    tcp.data(0..1000).is_silent().data(1000..2000).is_silent();
    tcp.data(2000..3000).reports(3000, &[0..2000]).data(3000..4000).reports(4000, &[]);
}

/// Suppresses the third and the fourth acknowledgement.
#[derive(Debug, Default)]
struct Holds(u32);

impl ReceiverReaction for Holds {
    fn on_ack(&mut self, _now: Time, _ack: &mut Segment, _receiver: &mut Receiver) -> AckResponse {
        self.0 += 1;
        if matches!(self.0, 3 | 4) { AckResponse::Withhold } else { AckResponse::Send }
    }
}

/// Requests the second segment on an acknowledgement.
#[derive(Debug)]
struct AsksOnAck;

impl Reaction for AsksOnAck {
    fn on_segment(&mut self, _now: Time, _segment: &Segment, sender: &mut SenderState) {
        sender.resend(sender.snd_una() + MSS);
    }
}

/// A retransmission requested on an acknowledgement is sent with the data that it releases, unless it is
/// acknowledged by it.
#[test]
fn segments_may_be_requested_on_an_acknowledgement() {
    for flavour in [Flavour::NewReno, Flavour::Prr] {
        let settings = Settings { limited_transmit: false, ..settings(flavour, 4) };
        let mut tcp = Client::reacting_with(&settings, Some(4000), Box::new(AsksOnAck));
        tcp.sends_full(0..4).at(100).ack(1000).sends_full(1..2);
        tcp.at(110).ack(3000).sends_nothing().at(120).ack(3000).sends_nothing().ack(4000).is_finished();
    }
}

/// With per-segment records, each hole is classified once as well.
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
