//! Go-back-N and selective repeat over a hop that delivers in order. The timestamp echo of an acknowledgement
//! identifies the segment that triggered it: the first burst is sent at 0 µs with the timestamps 0, 1, 2 and
//! so on; segments sent at 100 ms carry 100,000 and so on.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::Notice;
use lasthop_proto::tcp::{
    Congestion, Flags, Flavour, Reaction, Rules, Segment, SenderState, Settings, Timestamps, Transfer,
};

use crate::tcp::dialogue::{Client, MSS, Server, ms, settings};

pub(crate) const ONE_HOP: [Flavour; 2] = [Flavour::GoBackN, Flavour::SelectiveRepeat];

/// A window of eight segments without other limits, under both rule sets.
fn both_rules(flavour: Flavour) -> [Settings; 2] {
    [Rules::Rfc, Rules::Ns2].map(|rules| {
        Settings {
            rules,
            congestion: Congestion::None,
            window: Bytes(8000).into(),
            ack_every: 1,
            ..settings(flavour, 1)
        }
        .with_mss(MSS)
    })
}

fn rfc(flavour: Flavour) -> Settings {
    let [rfc, _] = both_rules(flavour);
    rfc
}

/// A sender whose first eight segments are in flight, at 100 ms.
fn under_way(settings: &Settings) -> Client {
    let mut tcp = Client::start(settings);
    tcp.sends_full(0..8).at(100);
    tcp
}

/// The delivery of one segment above the hole reveals the loss, and everything from the hole on is
/// retransmitted. ACKs caused by the other originals reveal nothing more: they were sent before the hole was
/// filled.
// Rule: The delivery of a segment sent after the left edge shows that the edge is lost, once per copy;
// go-back-N retransmits everything. [recovery/go_back_n.rs detection/copies.rs]
#[test]
fn go_back_n_goes_back_once_per_loss() {
    for settings in both_rules(Flavour::GoBackN) {
        let mut tcp = under_way(&settings);
        tcp.heard(0, 1).sends_full(0..8).losses(1);
        for older in 2..8 {
            tcp.heard(0, older).sends_nothing();
        }
        tcp.losses(1).timeouts(0).timer_at(1100);
    }
}

/// A second loss of the same segment is detected by the delivery of a segment sent after its last copy.
// Rule: as go_back_n_goes_back_once_per_loss
#[test]
fn go_back_n_detects_a_lost_retransmission() {
    for settings in both_rules(Flavour::GoBackN) {
        let mut tcp = under_way(&settings);
        tcp.heard(0, 1).sends_full(0..8).heard(0, 7).sends_nothing();
        tcp.at(200).heard(0, 100_001).sends_full(0..8).losses(2).heard(0, 100_007).sends_nothing();
        tcp.at(300).heard(0, 200_003).sends_full(0..8).losses(3);
    }
}

/// An ACK of the hole caused by its own copy or by an earlier segment reveals no loss.
// Rule: as go_back_n_goes_back_once_per_loss
#[test]
fn go_back_n_ignores_acks_of_the_hole_itself() {
    for settings in both_rules(Flavour::GoBackN) {
        under_way(&settings).heard(0, 0).sends_nothing().losses(0);
    }
}

/// Once the hole is filled, data buffered by the receiver advance the sender to the end or to the next hole;
/// redundant retransmissions cause duplicate ACKs that reveal nothing.
// Rule: Data buffered by the receiver advance the sender. [recovery/go_back_n.rs state.rs]
#[test]
fn go_back_n_skips_data_buffered_by_the_receiver() {
    for settings in both_rules(Flavour::GoBackN) {
        let mut tcp = under_way(&settings);
        tcp.heard(0, 1).sends_full(0..8).at(200).heard(8000, 100_000).sends_full(8..16);
        for copy in 100_001..100_008 {
            tcp.heard(8000, copy).sends_nothing();
        }
        tcp.losses(1);

        // The fifth was lost too: its copy is in flight already.
        let mut tcp = under_way(&settings);
        tcp.heard(0, 1).sends_full(0..8).at(200).heard(4000, 100_000).sends_full(8..12);
        for copy in 100_001..100_004 {
            tcp.heard(4000, copy).sends_nothing();
        }
        tcp.losses(1).heard(8000, 100_004).sends_full(12..16);

        // That copy is lost too: the next delivery reveals it.
        let mut tcp = under_way(&settings);
        tcp.heard(0, 1).sends_full(0..8).at(200).heard(4000, 100_000).sends_full(8..12);
        tcp.heard(4000, 100_005).sends_full(4..12).losses(2);
    }
}

/// The timer also goes back N; segments sent before it expired reveal nothing.
// Rule: as go_back_n_goes_back_once_per_loss
#[test]
fn go_back_n_goes_back_on_a_timeout() {
    for settings in both_rules(Flavour::GoBackN) {
        let mut tcp = Client::start(&settings);
        tcp.sends_full(0..8).wakes_at(1000).sends_full(0..8).timeouts(1).rto(2000).timer_at(3000);
        tcp.at(1100).heard(0, 7).sends_nothing().losses(0).heard(0, 1_000_001).sends_full(0..8).losses(1);
        tcp.at(1200).heard(3000, 1_100_002).sends_full(8..11).rto(1000).timer_at(2200);
    }
}

/// A cumulative acknowledgement that replaces lost or delayed ones may be caused by a segment above the next
/// hole: it advances the left edge and goes back at once.
// Rule: A cumulative ACK may reveal a loss as well, and so may one with another window.
// [recovery/go_back_n.rs recovery/selective_repeat.rs state/loss.rs]
#[test]
fn go_back_n_detects_a_loss_by_a_cumulative_ack() {
    for settings in both_rules(Flavour::GoBackN) {
        let mut tcp = under_way(&settings);
        tcp.heard(3000, 4).sends_full(3..11).losses(1).heard(3000, 5).sends_nothing().losses(1);
        let mut tcp = under_way(&settings);
        tcp.heard(5000, 4).sends_full(8..13).losses(0);
    }
}

/// A simultaneous window change does not hide a loss.
// Rule: as go_back_n_detects_a_loss_by_a_cumulative_ack
#[test]
fn a_window_change_does_not_hide_a_loss() {
    for settings in both_rules(Flavour::GoBackN) {
        under_way(&settings).with_window(6000).heard(0, 1).sends_full(0..6).losses(1);
    }
    for settings in both_rules(Flavour::SelectiveRepeat) {
        let mut tcp = under_way(&settings);
        tcp.with_window(6000).heard_of(0, 1, &[1000..2000]).sends_full(0..1).losses(1);
    }
}

/// FIN is retransmitted with the data before it or alone; a lost SYN is not a hole.
// Rule: SYN and FIN are retransmitted like data. [9293 3.4; recovery/go_back_n.rs
// recovery/selective_repeat.rs]
#[test]
fn syn_and_fin_are_retransmitted() {
    for flavour in ONE_HOP {
        for settings in both_rules(flavour) {
            let settings = Settings { handshake: true, close: true, ..settings };
            let mut tcp = Client::waiting(&settings, Transfer { bytes: Some(2500), start: Time::ZERO });
            let rto = settings.rto_initial.as_nanos() / 1_000_000;
            tcp.wakes_at(0).sends(&["SYN"]).wakes_at(rto).sends(&["SYN"]).at(rto + 100);
            let syn_ack = tcp.syn_ack_segment();
            let echo = 1_000 * rto as u32;
            tcp.receives(Segment { timestamps: Some(Timestamps { value: 0, echo }), ..syn_ack });
            tcp.sends(&["0..1000", "1000..2000", "2000..2500 FIN"]).losses(0).srtt(Some(100));
            let first = echo + 100_000;
            // The last segment is lost, and nothing follows it.
            tcp.at(rto + 200).heard(2000, first + 1).sends_nothing();
            assert_eq!(tcp.times_out() % 100, 0);
            tcp.sends(&["2000..2500 FIN"]).heard(2501, 0).is_finished();
        }
        // FIN alone is lost, and then arrives while the data are missing.
        let mut tcp = Client::supplied(&Settings { close: true, ..rfc(flavour) });
        tcp.supply(1000).sends_full(0..1).close().sends(&["1000 FIN"]).at(100).heard(1000, 0).sends_nothing();
        tcp.wakes_at(1100).sends(&["1000 FIN"]).at(1200).heard(1001, 1_100_000).is_finished();
        let mut tcp = Client::supplied(&Settings { close: true, ..rfc(flavour) });
        tcp.supply(1000).sends_full(0..1).close().sends(&["1000 FIN"]).at(100).heard(0, 1);
        tcp.losses(1).sends_first("0..1000 FIN");
    }
}

/// Timestamps strictly increase, even for segments sent at the same instant and across the wrap of the clock,
/// so they order transmissions.
// Rule: Timestamps are unique; the echo identifies the latest arrival, across the wrap of the clock, and
// gives the round-trip time. [7323 4, 5.4; detection/copies.rs receiver.rs state.rs]
#[test]
fn timestamps_strictly_increase() {
    for flavour in ONE_HOP {
        let mut tcp = Client::start(&rfc(flavour));
        assert_eq!(tcp.stamps(), (0..8).collect::<Vec<u32>>());
        // Four microseconds later the clock is behind the timestamps in use.
        let now = Time::ZERO + Duration::from_micros(4);
        tcp.at_time(now).heard(2000, 1);
        assert_eq!(tcp.stamps(), [8, 9]);
        tcp.at_time(now + Duration::from_micros(8)).heard(3000, 2);
        assert_eq!(tcp.stamps(), [12]);

        let start = Time::from_nanos((1 << 32) * 1_000 - 2_000);
        let mut tcp = Client::waiting(&rfc(flavour), Transfer { bytes: None, start: Time::ZERO });
        let handshake = Settings { handshake: true, ..rfc(flavour) };
        assert_eq!(tcp.wakes_at(0).stamps()[0], 0);
        tcp.times_out();
        tcp.sent();
        drop(tcp);
        let mut tcp = Client::supplied(&handshake);
        tcp.at_time(start).open();
        assert_eq!(tcp.stamps(), [u32::MAX - 1]);
        let syn_ack = Segment {
            timestamps: Some(Timestamps { value: 0, echo: u32::MAX - 1 }),
            ..tcp.syn_ack_segment()
        };
        tcp.receives(syn_ack).sends(&["ACK"]);
        // The acknowledgement echoed 2³² − 1.
        tcp.supply(8000);
        assert_eq!(tcp.stamps(), (0..8).collect::<Vec<u32>>());
        tcp.at_time(start + Duration::from_millis(1)).heard(0, 0).sends_nothing();
        tcp.heard_of(0, 3, &[3000..4000]).losses(1).sends_first("0..1000");
    }
}

/// The clock wraps between a segment and the one that reveals its loss.
// Rule: as timestamps_strictly_increase
#[test]
fn a_loss_is_detected_across_the_clock_wrap() {
    for flavour in ONE_HOP {
        let start = Time::from_nanos((1 << 32) * 1_000 - 2_000);
        let mut tcp = Client::supplied(&rfc(flavour));
        tcp.at_time(start).supply(4000);
        assert_eq!(tcp.stamps(), [u32::MAX - 1, u32::MAX, 0, 1]);
        tcp.at_time(start + Duration::from_millis(5)).heard(1000, u32::MAX - 1).sends_nothing();
        tcp.heard_of(1000, 0, &[2000..3000]).losses(1).sends_first("1000..2000").srtt(Some(5));
    }
}

/// Each acknowledgement is a round-trip time sample of the copy that caused it. In a burst a timestamp may be
/// ahead of the clock: an immediate echo gives a sample of zero.
// Rule: as timestamps_strictly_increase
#[test]
fn every_ack_is_a_round_trip_sample() {
    for flavour in ONE_HOP {
        let mut tcp = under_way(&rfc(flavour));
        tcp.heard(1000, 0).srtt(Some(100)).sends_full(8..9);
        tcp.at(300).heard_of(1000, 2, &[2000..3000]).losses(1).sends_first("1000..2000");
        // By hand: 7/8 of 100 ms plus 1/8 of 20 ms, the round trip of the copy.
        tcp.at(320).heard(3000, 300_000);
        assert_eq!(tcp.sender.rtt().srtt(), Some(Duration::from_millis(90)));
        let mut tcp = Client::start(&rfc(flavour));
        tcp.sends_full(0..8).heard(8000, 7).srtt(Some(0)).sends_full(8..16);
    }
}

/// Only lost segments are retransmitted, once; SACKed ones are not.
// Rule: Selective repeat retransmits only lost segments; one delivery counts as one loss. [2018 4, 5;
// recovery/selective_repeat.rs]
#[test]
fn selective_repeat_retransmits_lost_segments_only() {
    for settings in both_rules(Flavour::SelectiveRepeat) {
        let mut tcp = under_way(&settings);
        tcp.heard_of(0, 1, &[1000..2000]).sends_full(0..1).losses(1).timer_at(1100);
        tcp.heard_of(0, 2, &[1000..3000]).sends_nothing();
        tcp.heard_of(0, 4, &[4000..5000, 1000..3000]).sends_full(3..4).losses(2);
        for (echo, end) in [(5, 6000), (6, 7000), (7, 8000)] {
            tcp.heard_of(0, echo, &[4000..end, 1000..3000]).sends_nothing();
        }
        tcp.at(200).heard_of(3000, 100_000, &[4000..8000]).sends_full(8..11).losses(2);
        tcp.heard(8000, 100_001).sends_full(11..16).losses(2).timeouts(0);
    }
}

/// Losses revealed by one delivery are retransmitted together and count as one loss.
// Rule: as selective_repeat_retransmits_lost_segments_only
#[test]
fn selective_repeat_counts_one_loss_per_delivery() {
    for settings in both_rules(Flavour::SelectiveRepeat) {
        let mut tcp = under_way(&settings);
        tcp.heard_of(0, 5, &[5000..6000]).sends_full(0..5).losses(1);
        // The second copy is lost too: the third reveals it, once.
        tcp.at(200).heard_of(1000, 100_000, &[5000..8000]).sends_full(8..9).losses(1);
        tcp.heard_of(1000, 100_002, &[2000..3000, 5000..8000]).sends_full(1..2).losses(2);
        tcp.heard_of(1000, 100_003, &[2000..4000, 5000..8000]).sends_nothing();
        tcp.heard_of(1000, 100_004, &[2000..8000]).sends_nothing().losses(2);
        tcp.at(300).heard(9000, 200_001).sends_full(9..17).losses(2);
    }
}

/// A cumulative acknowledgement may also reveal a loss: of what its SACK blocks omit.
// Rule: as go_back_n_detects_a_loss_by_a_cumulative_ack
#[test]
fn selective_repeat_detects_a_loss_by_a_cumulative_ack() {
    for settings in both_rules(Flavour::SelectiveRepeat) {
        let mut tcp = under_way(&settings);
        tcp.heard_of(2000, 5, &[3000..6000]);
        tcp.sends(&["2000..3000", "8000..9000", "9000..10000"]).losses(1);
    }
}

/// A lost SACK report is replaced by the next one; data missing from that one count as lost.
// Rule: as selective_repeat_retransmits_lost_segments_only
#[test]
fn selective_repeat_uses_the_latest_sack_report() {
    for settings in both_rules(Flavour::SelectiveRepeat) {
        let mut tcp = under_way(&settings);
        tcp.heard_of(0, 4, &[4000..5000, 2000..3000]).sends(&["0..1000", "1000..2000", "3000..4000"]);
        tcp.losses(1);
    }
}

/// A timeout marks everything as lost, including SACKed data (RFC 2018 section 8).
// Rule: A timeout marks everything as lost, SACKed data included. [2018 8; state/loss.rs]
#[test]
fn selective_repeat_marks_everything_lost_on_a_timeout() {
    for settings in both_rules(Flavour::SelectiveRepeat) {
        let mut tcp = under_way(&settings);
        tcp.heard_of(0, 1, &[1000..2000]).sends_full(0..1).wakes_at(1100).sends_full(0..8).timeouts(1);
        tcp.at(1200).heard_of(0, 7, &[1000..8000]).sends_nothing().losses(1);
        tcp.heard(8000, 1_100_000).sends_full(8..16);
    }
}

/// A retransmission comes after segments sent before it and may be acknowledged earlier: it then does not
/// count as lost.
// Rule: as selective_repeat_retransmits_lost_segments_only
#[test]
fn selective_repeat_tolerates_acks_ahead_of_older_segments() {
    for settings in both_rules(Flavour::SelectiveRepeat) {
        let mut tcp = Client::supplied(&settings);
        tcp.supply(7000).sends_full(0..7).at(100).heard(2000, 1).sends_nothing();
        tcp.heard_of(2000, 3, &[3000..4000]).sends_full(2..3).supply(1000).sends_full(7..8).losses(1);
        tcp.heard_of(2000, 5, &[5000..6000, 3000..4000]).sends_full(4..5).losses(2);
        tcp.heard_of(2000, 6, &[5000..7000, 3000..4000]).sends_nothing();
        tcp.at(200).heard_of(4000, 100_000, &[5000..7000]).sends_nothing().losses(2);
        // The eighth was sent after the third's copy, and before the fifth's.
        tcp.heard_of(4000, 100_001, &[5000..8000]).sends_nothing().losses(2).heard(8000, 100_002).losses(2);
    }
}

/// SACK blocks cover data; a FIN is delivered with the data sent in its segment.
// Rule: as selective_repeat_retransmits_lost_segments_only
#[test]
fn selective_repeat_does_not_retransmit_a_delivered_fin() {
    for settings in both_rules(Flavour::SelectiveRepeat) {
        let mut tcp = Client::start_with(&Settings { close: true, ..settings }, Some(5000));
        tcp.sends(&["0..1000", "1000..2000", "2000..3000", "3000..4000", "4000..5000 FIN"]).at(100);
        tcp.heard_of(0, 2, &[2000..3000]).sends_full(0..2).heard_of(0, 3, &[2000..4000]).sends_nothing();
        tcp.heard_of(0, 4, &[2000..5000]).sends_nothing().at(200);
        tcp.heard_of(1000, 100_000, &[2000..5000]).sends_nothing().losses(1);
        tcp.heard(5001, 100_001).is_finished();
    }
}

/// Sets the segment size to the number of the notice.
#[derive(Debug)]
struct Cut(u32);

impl Reaction for Cut {
    fn on_notice(&mut self, _now: Time, _notice: &Notice, sender: &mut SenderState) {
        sender.set_mss(self.0);
    }
}

/// Retransmissions use the current segment size, and each segment is a separate transmission.
// Rule: Retransmissions use the current segment size. [9293 3.7.5; state/output.rs]
#[test]
fn retransmissions_use_the_current_segment_size() {
    for settings in both_rules(Flavour::SelectiveRepeat) {
        let mut tcp = Client::reacting(&settings, Cut(400));
        tcp.sends_full(0..8).at(100).notice(0).sends_nothing();
        tcp.heard_of(0, 2, &[2000..3000]);
        tcp.sends(&["0..400", "400..800", "800..1000", "1000..1400", "1400..1800", "1800..2000"]).losses(1);
        // Of the first segment the middle part is lost, of the second nothing.
        tcp.heard_of(0, 7, &[2000..8000]).sends_nothing().at(200);
        tcp.heard_of(400, 100_000, &[2000..8000]).sends(&["8000..8400"]);
        tcp.heard_of(400, 100_002, &[800..1000, 2000..8000]).sends(&["400..800"]).losses(2);
        tcp.heard_of(400, 100_005, &[800..8000]).sends_nothing().losses(2).at(300);
        tcp.heard(8400, 200_001).losses(2).sends_first("8400..8800");
    }
    for settings in both_rules(Flavour::GoBackN) {
        // With a larger size, a short segment is extended by the data that follow.
        let mut tcp = Client::reacting(&settings.with_mss(3000), Grow(1000, 3000));
        tcp.sends_full(0..8).at(100).notice(0).heard(1000, 0).sends_nothing();
        tcp.heard(1000, 2).sends(&["1000..4000", "4000..7000"]).losses(1);
        tcp.at(200).heard(8000, 100_000).sends(&["8000..11000", "11000..14000"]);
    }
}

/// Starts with segments of the first size, and uses the second from the first notice on.
#[derive(Debug)]
struct Grow(u32, u32);

impl Reaction for Grow {
    fn on_start(&mut self, _now: Time, sender: &mut SenderState) {
        sender.set_mss(self.0);
    }

    fn on_notice(&mut self, _now: Time, _notice: &Notice, sender: &mut SenderState) {
        sender.set_mss(self.1);
    }
}

/// A retransmission may contain a part that was delivered separately before the segment size increased: that
/// part is not retransmitted again.
// Rule: as retransmissions_use_the_current_segment_size
#[test]
fn sacked_parts_of_a_copy_are_not_retransmitted() {
    for settings in both_rules(Flavour::SelectiveRepeat) {
        let mut tcp = Client::reacting(&settings, Grow(400, 1000));
        assert_eq!(tcp.sent().len(), 20);
        tcp.notice(0).sends_nothing().wakes_at(1000).sends_full(0..8).at(1100);
        tcp.heard_of(0, 1, &[400..800]).sends_nothing().losses(0);
        tcp.heard_of(0, 1_000_001, &[1000..2000, 400..800]).sends(&["0..400", "800..1000"]).losses(1);
    }
}

/// Only the receive window limits the data in flight; it closes and opens with delivered data.
// Rule: The receive window limits the flight. [9293 3.8.6; state/output.rs]
#[test]
fn the_receive_window_limits_the_flight() {
    for flavour in ONE_HOP {
        for settings in both_rules(flavour) {
            let mut tcp = under_way(&settings);
            tcp.with_window(7000).heard(1000, 0).sends_nothing();
            tcp.with_window(6500).heard(2000, 1).sends_nothing();
            tcp.with_window(7000).heard(3000, 2).sends_full(8..10);
        }
    }
}

/// The receiver echoes the timestamp of the latest segment, in order, out of order or duplicate, and never an
/// older one; under the rules of RFC 7323 it would echo that of the segment that advanced its edge.
// Rule: as timestamps_strictly_increase
#[test]
fn the_receiver_echoes_the_latest_timestamp() {
    for flavour in ONE_HOP {
        for base in [0, u32::MAX - 2] {
            let stamp = |n: u32| base.wrapping_add(n);
            let mut tcp = Server::start(&rfc(flavour));
            tcp.data_ts(0..1000, stamp(0)).acks_with_echo(1000, stamp(0));
            tcp.data_ts(2000..3000, stamp(2)).acks_with_echo(1000, stamp(2));
            tcp.data_ts(3000..4000, stamp(3)).acks_with_echo(1000, stamp(3));
            tcp.data_ts(2000..3000, stamp(5)).acks_with_echo(1000, stamp(5));
            tcp.data_ts(1000..2000, stamp(4)).acks_with_echo(4000, stamp(5));
        }
        // A delayed acknowledgement echoes the latest one, too.
        let mut tcp = Server::start(&Settings { ack_every: 2, ..rfc(flavour) });
        tcp.data_ts(0..1000, 10).is_silent().data_ts(1000..2000, 20).acks_with_echo(2000, 20);
        tcp.data_ts(2000..3000, 30).is_silent().data_ts(4000..5000, 40).acks_with_echo(3000, 40);
    }
}

/// The SYN carries a timestamp, and its acknowledgement echoes it.
// Rule: as syn_and_fin_are_retransmitted
#[test]
fn the_handshake_carries_timestamps() {
    for flavour in ONE_HOP {
        let mut tcp = Client::start(&Settings { handshake: true, ..rfc(flavour) });
        let [syn] = tcp.sent()[..] else { panic!("one segment") };
        assert!(syn.flags.has(Flags::SYN) && syn.timestamps == Some(Timestamps { value: 0, echo: 0 }));
        let mut server = Server::start(&Settings { handshake: true, ..rfc(flavour) });
        let timestamps = Some(Timestamps { value: 77, echo: 0 });
        let answer = server.receives(Segment { timestamps, ..syn }).answer();
        assert_eq!(answer.timestamps.map(|ts| ts.echo), Some(77));
        tcp.at_time(ms(3));
        tcp.receives(Segment { timestamps: Some(Timestamps { value: 500, echo: 0 }), ..answer });
        let first = tcp.sent()[0];
        assert_eq!(first.timestamps, Some(Timestamps { value: 3_000, echo: 500 }));
    }
}
