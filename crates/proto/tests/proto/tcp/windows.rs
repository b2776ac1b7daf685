//! Window limits: initial window, slow start, congestion avoidance, idle restart, bursts, limited transmit,
//! and the receive window with silly window avoidance.

use lasthop_base::Bytes;
use lasthop_proto::tcp::{
    Congestion, Flavour, IdleRestart, InitialThreshold, InitialWindow, Settings, WindowCounts, WindowSize,
};

use crate::tcp::dialogue::{Client, settings};

/// RFC 5681 section 3.1: four segments up to 1095 bytes, three up to 2190, else two. RFC 6928 section 2: ten
/// segments, but at most 14,600 bytes or two segments.
// Rule: Initial window of ten segments, or of two to four. [6928 2, 5681 3.1; settings.rs]
#[test]
fn initial_windows() {
    let table = [
        (536, 2144, 5360),
        (1095, 4380, 10_950),
        (1096, 3288, 10_960),
        (1460, 4380, 14_600),
        (2190, 6570, 14_600),
        (2191, 4382, 14_600),
        (7300, 14_600, 14_600),
        (9000, 18_000, 18_000),
    ];
    for (mss, rfc5681, rfc6928) in table {
        assert_eq!(InitialWindow::Rfc5681.bytes(mss), rfc5681, "mss {mss}");
        assert_eq!(InitialWindow::Rfc6928.bytes(mss), rfc6928, "mss {mss}");
    }
    let mut tcp =
        Client::start(&Settings { initial_window: InitialWindow::Rfc6928, ..settings(Flavour::NewReno, 0) });
    tcp.sends_full(0..10);
}

/// Slow start: each acknowledgement opens the window by what it acknowledges, by one segment at most
/// (RFC 5681 equation 2).
// Rule: Slow start: growth by the bytes acknowledged, at most a segment. [5681 3.1 eq. 2; cc/aimd.rs]
#[test]
fn slow_start() {
    let mut tcp = Client::start(&settings(Flavour::NewReno, 4));
    tcp.sends_full(0..4).ssthresh(f64::INFINITY);
    tcp.at(100).ack(1000).cwnd(5000.0).sends_full(4..6);
    tcp.ack(3000).cwnd(6000.0).sends_full(6..9);
    tcp.ack(3500).cwnd(6500.0).sends(&["9000..10000"]);
}

/// Congestion avoidance: each acknowledgement opens the window by SMSS²/cwnd, about a segment per round
/// trip (RFC 5681 equation 3).
// Rule: Congestion avoidance: SMSS²/cwnd per acknowledgement. [5681 3.1 eq. 3; cc/aimd.rs]
#[test]
fn congestion_avoidance() {
    let initial_ssthresh = InitialThreshold::Segments(4);
    let mut tcp = Client::start(&Settings { initial_ssthresh, ..settings(Flavour::NewReno, 4) });
    tcp.sends_full(0..4).ssthresh(4000.0);
    tcp.at(100).ack(1000).cwnd(4250.0).sends_full(4..5);
    tcp.ack(2000).cwnd(4485.294).sends_full(5..6);
    tcp.ack(3000).cwnd(4708.245).sends_full(6..7);
    tcp.ack(4000).cwnd(4920.638).sends_full(7..8);
    tcp.ack(5000).cwnd(5123.864).sends_full(8..10);
}

/// BSD up to Net/3 adds an eighth of a segment per acknowledgement, but not in slow start (RFC 2525).
// Rule: The additive constant of BSD up to Net/3, which is forbidden today, with net3 only. [2525, 5681 3.1;
// cc/aimd.rs]
#[test]
fn net3_adds_a_constant() {
    let settings = Settings { congestion: Congestion::Net3, ..settings(Flavour::Reno, 4) };
    let initial_ssthresh = InitialThreshold::Segments(5);
    let mut tcp = Client::start(&Settings { initial_ssthresh, ..settings });
    tcp.sends_full(0..4).at(100).ack(1000).cwnd(5000.0).sends_full(4..6);
    tcp.ack(2000).cwnd(5325.0).sends_full(6..7).ack(3000).cwnd(5637.793).sends_full(7..8);
    // A loss halves the window, as everywhere.
    tcp.at(200).acks(3, 3000).ssthresh(2500.0);
}

/// The data in flight never exceed the receive window (RFC 9293 section 3.8.6).
// Rule: The flight never exceeds the receive window, inflation included. [9293 3.8.6, 5681 3.2;
// state/output.rs]
#[test]
fn the_receive_window_limits_the_flight() {
    let mut tcp = Client::start(&Settings { window: Bytes(3000).into(), ..settings(Flavour::NewReno, 10) });
    tcp.sends_full(0..3).at(100).ack(1000).sends_full(3..4);
    tcp.with_window(2000).ack(2000).sends_nothing().ack(3000).sends_full(4..5);
}

/// A window in packets holds their payload, whatever the window in bytes would permit.
// Rule: as the_receive_window_limits_the_flight
#[test]
fn a_window_may_be_in_packets() {
    for window_counts in [WindowCounts::Payload, WindowCounts::Packets] {
        let settings = Settings {
            window: WindowSize::Packets(3),
            window_counts,
            initial_ssthresh: InitialThreshold::Window,
            ..settings(Flavour::NewReno, 10)
        };
        let mut tcp = Client::start(&settings);
        tcp.sends_full(0..3).ssthresh(3000.0).at(100).ack(1000).sends_full(3..4);
        let larger = Settings { packet_size: settings.packet_size * 2, ..settings };
        assert_eq!(larger.window_payload(), 3 * larger.mss());
    }
}

/// A window in bytes may count whole packets, as many as fit, or the nearest number.
// Rule: as the_receive_window_limits_the_flight
#[test]
fn a_window_in_bytes_may_be_whole_packets() {
    for (size, fitting, nearest) in [(1536, 2, 3), (1408, 2, 3), (1024, 4, 4), (384, 10, 11), (9000, 0, 1)] {
        let packets = |window_counts| {
            let window = Bytes(4096).into();
            let settings =
                Settings { packet_size: Bytes(size), window, window_counts, ..settings(Flavour::Reno, 1) };
            settings.window_payload() / settings.mss()
        };
        let found = [WindowCounts::Packets, WindowCounts::NearestPackets].map(packets);
        assert_eq!(found, [fitting, nearest], "{size} B");
    }
}

/// Sender-side silly window avoidance: a window too small for a full segment is not used, unless it is half
/// of the largest window seen (RFC 9293 section 3.8.6.2.1).
// Rule: Silly window avoidance; a short last segment is sent. [9293 3.8.6.2.1; state/output.rs]
#[test]
fn silly_window_avoidance() {
    let mut tcp = Client::start(&Settings { window: Bytes(1500).into(), ..settings(Flavour::NewReno, 10) });
    tcp.sends_full(0..1);
    tcp.at(100).with_window(800).ack(1000).sends(&["1000..1800"]);
    tcp.at(200).with_window(740).ack(1800).sends_nothing();
}

/// The largest window seen is that of the receiver, announced in the SYN-ACK; its buffer may be smaller than
/// the sender's (RFC 9293 section 3.8.6.2.1: Max(SND.WND)).
// Rule: as silly_window_avoidance
#[test]
fn silly_window_avoidance_uses_the_largest_advertised_window() {
    for flavour in [Flavour::Reno, Flavour::Sack, Flavour::GoBackN, Flavour::SelectiveRepeat] {
        let large = Settings { handshake: true, window: Bytes(1 << 20).into(), ..settings(flavour, 10) };
        let mut tcp = Client::start(&large);
        tcp.sends(&["SYN"]).at(100).with_window(1500).syn_ack().sends_full(0..1);
        tcp.at(200).with_window(749).ack(1000).sends_nothing().with_window(750).ack(1000);
        tcp.sends(&["1000..1750"]);
    }
}

/// The last segment may be short (RFC 9293 section 3.8.6.2.1: all queued data fit).
// Rule: as silly_window_avoidance
#[test]
fn a_short_last_segment_is_sent() {
    let mut tcp = Client::start_with(&settings(Flavour::NewReno, 4), Some(2300));
    tcp.sends(&["0..1000", "1000..2000", "2000..2300"]);
}

/// After an idle period longer than the RTO the window restarts from the initial window (RFC 5681 section
/// 4.1). Here the sender is idle because the receive window is closed.
// Rule: Restart after an idle period, never with a larger window. [5681 4.1; state.rs cc/mod.rs]
#[test]
fn the_window_restarts_after_idling() {
    let grown = |restarts| {
        let idle_restart = if restarts { IdleRestart::InitialWindow } else { IdleRestart::Never };
        let mut tcp = Client::start(&Settings { idle_restart, ..settings(Flavour::NewReno, 2) });
        tcp.sends_full(0..2).at(100).ack(2000).sends_full(2..5);
        tcp.at(200).with_window(0).ack(5000).sends_nothing().cwnd(4000.0).rto(1000).with_window(1 << 20);
        tcp
    };
    grown(true).at(1101).ack(5000).cwnd(2000.0).sends_full(5..7);
    grown(true).at(1100).ack(5000).cwnd(4000.0).sends_full(5..9);
    grown(false).at(1101).ack(5000).cwnd(4000.0).sends_full(5..9);
}

/// A restart never increases the window: it is min(initial, cwnd) (RFC 5681 section 4.1).
// Rule: as the_window_restarts_after_idling
#[test]
fn a_restart_does_not_increase_the_window() {
    let mut tcp = Client::start(&settings(Flavour::NewReno, 4));
    tcp.sends_full(0..4).wakes_at(1000).sends_full(0..1).cwnd(1000.0);
    tcp.at(1100).with_window(0).ack(4000).sends_nothing().cwnd(2000.0);
    tcp.at(3050).with_window(1 << 20).ack(4000).cwnd(2000.0).sends_full(4..6);
}

/// With a burst limit, an acknowledgement releases at most that many segments.
// Rule: Bursts can be limited. [state/output.rs]
#[test]
fn bursts_can_be_limited() {
    for flavour in [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack] {
        let mut tcp = Client::start(&Settings { max_burst: 3, ..settings(flavour, 4) });
        tcp.sends_full(0..3).at(100).ack(3000).cwnd(5000.0).sends_full(3..6).ack(4000).sends_full(6..9);
    }
}

fn limited(flavour: Flavour) -> Settings {
    Settings { limited_transmit: true, ..settings(flavour, 3) }
}

/// Limited transmit: each of the first two duplicate ACKs releases a new segment beyond the unchanged
/// congestion window (RFC 3042 section 2). These segments do not count in the flight that a loss halves, and
/// the half is at least two segments (RFC 5681 section 3.2 step 2, equation 4).
// Rule: A loss reduces ssthresh to half the flight, at least two segments. [5681 3.1 eq. 4; cc/aimd.rs]
// Rule: as limited_transmit_respects_the_receive_window
#[test]
fn limited_transmit() {
    for flavour in [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno] {
        let mut tcp = Client::start(&limited(flavour));
        tcp.sends_full(0..3).at(100);
        tcp.ack(0).sends_full(3..4).cwnd(3000.0).ack(0).sends_full(4..5).cwnd(3000.0);
        tcp.ack(0).sends_full(0..1).ssthresh(2000.0);
    }
}

/// Limited transmit respects the receive window (RFC 3042 section 2).
// Rule: Limited transmit: new data, at most two segments, within the receive window, not part of the flight.
// [3042 2, 5681 3.2 step 2; state/output.rs]
#[test]
fn limited_transmit_respects_the_receive_window() {
    let mut tcp = Client::start(&Settings { window: Bytes(4000).into(), ..limited(Flavour::NewReno) });
    tcp.sends_full(0..3).at(100).ack(0).sends_full(3..4).ack(0).sends_nothing();
}

/// With a higher duplicate threshold, still at most two segments are sent beyond the window (RFC 3042 section
/// 2).
// Rule: as limited_transmit_respects_the_receive_window
#[test]
fn limited_transmit_sends_at_most_two_segments() {
    let mut tcp = Client::start(&Settings { dupthresh: 5, ..limited(Flavour::NewReno) });
    tcp.sends_full(0..3).at(100).ack(0).sends_full(3..4).ack(0).sends_full(4..5);
    tcp.acks(2, 0).sends_nothing().ack(0).sends_first("0..1000");
}

/// Limited transmit sends new data only, never retransmissions after a timeout (RFC 3042 section 2).
// Rule: as limited_transmit_respects_the_receive_window
#[test]
fn limited_transmit_does_not_retransmit() {
    for flavour in [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno] {
        let mut tcp = Client::start(&limited(flavour));
        tcp.sends_full(0..3).wakes_at(1000).sends_full(0..1);
        tcp.at(1050).acks(2, 0).sends_nothing();
    }
}

/// Limited transmit has no effect without new data.
// Rule: as limited_transmit_respects_the_receive_window
#[test]
fn limited_transmit_needs_new_data() {
    let mut tcp = Client::start_with(&Settings { close: true, ..limited(Flavour::NewReno) }, Some(3000));
    tcp.sends(&["0..1000", "1000..2000", "2000..3000 FIN"]);
    tcp.at(100).acks(2, 0).sends_nothing();
}

/// RFC 5681 section 3.1: after the loss of a SYN the initial window is one segment, also when it is used again after an
/// idle period.
// Rule: as the_window_restarts_after_idling
#[test]
fn a_lost_syn_also_limits_the_window_after_an_idle_period() {
    let mut tcp = Client::supplied(&Settings { handshake: true, ..settings(Flavour::NewReno, 4) });
    tcp.open().sends(&["SYN"]).wakes_at(1000).sends(&["SYN"]).at(1100).syn_ack().sends(&["ACK"]);
    tcp.supply(1000).sends_full(0..1).at(1200).ack(1000).supply(2000).sends_full(1..3).at(1300).ack(3000);
    assert!(tcp.sender.cwnd() > 2000.0);
    tcp.at(60_000).supply(5000).sends_full(3..4);
}
