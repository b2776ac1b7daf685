//! A sender whose data are supplied over time: transmission, pauses and close.

use lasthop_base::Bytes;
use lasthop_proto::tcp::{
    Connection, Flavour, IdleRestart, InitialThreshold, InitialWindow, Rules, Sender, Settings, Transfer,
};

use crate::tcp::dialogue::{Client, MSS, ms, settings};

const FLAVOURS: [Flavour; 4] = [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack];
const OPEN: u32 = 1 << 20;

fn base() -> Settings {
    settings(Flavour::NewReno, 4)
}

/// All flavours under both rule sets.
fn both_rules() -> impl Iterator<Item = (Flavour, Rules)> {
    FLAVOURS.into_iter().flat_map(|flavour| [(flavour, Rules::Rfc), (flavour, Rules::Ns2)])
}

/// A stream with this many bytes sent and acknowledged, at 100 ms.
fn dry(settings: &Settings, bytes: u32) -> Client {
    let mut tcp = Client::supplied(settings);
    tcp.supply(u64::from(bytes)).sent();
    tcp.at(100).ack(bytes).sends_nothing().no_timer().is_not_finished().has(bytes.into(), 0);
    tcp
}

/// The connection opens on `open` or with the first supplied bytes, which are sent once it is established
/// (RFC 9293 section 3.10.2: they are queued for transmission after entering the ESTABLISHED state).
// Rule: A stream opens with the first data, or before; early data are queued. [9293 3.10.2; sender.rs]
#[test]
fn a_stream_opens() {
    let settings = Settings { handshake: true, ..base() };
    let mut tcp = Client::supplied(&settings);
    tcp.no_timer().has(0, 0).open().sends(&["SYN"]).open().sends_nothing().has(0, 0);
    tcp.at(100).syn_ack().sends(&["ACK"]).no_timer().has(0, 0).is_not_finished();
    tcp.at(300).supply(1000).sends_full(0..1).has(0, 0).at(400).ack(1000).has(1000, 0);
    let mut tcp = Client::supplied(&settings);
    tcp.supply(1500).sends(&["SYN"]).supply(400).sends_nothing().has(0, 1900);
    tcp.at(100).syn_ack().sends(&["0..1000"]).has(0, 900).at(200).ack(1000).sends(&["1000..1900"]);
}

/// Nagle's algorithm: while data are outstanding, a short segment waits until it is full or everything is
/// acknowledged (RFC 9293 section 3.7.4), for every flavour.
// Rule: Nagle's algorithm, which can be disabled, delays short segments while data are outstanding, but not
// the end of a transfer or of a closed stream. [9293 3.7.4, 3.8.6.2.1; state/output.rs]
#[test]
fn nagle_delays_a_short_segment() {
    for (flavour, rules) in both_rules() {
        let mut tcp = Client::supplied(&Settings { rules, delay_growth: false, ..settings(flavour, 4) });
        tcp.supply(300).sends(&["0..300"]).supply(400).sends_nothing().has(0, 400);
        tcp.supply(700).sends(&["300..1300"]).has(0, 100);
        tcp.at(100).ack(300).sends_nothing().has(300, 100).timer_at(1100);
        tcp.at(200).ack(1300).sends(&["1300..1400"]).has(1300, 0).at(300).ack(1400).has(1400, 0).no_timer();
    }
}

/// Without Nagle's algorithm, supplied data are sent immediately if they fit (RFC 9293 section 3.7.4: there must
/// be a way to disable it).
// Rule: as nagle_delays_a_short_segment
#[test]
fn without_nagle_data_are_sent_at_once() {
    let mut tcp = Client::supplied_without_nagle(&base());
    tcp.supply(300).sends(&["0..300"]).supply(400).sends(&["300..700"]).supply(1).sends(&["700..701"]);
    tcp.supply(3500).sends(&["701..1701", "1701..2701", "2701..3701"]).has(0, 500);
    tcp.at(100).ack(701).sends(&["3701..4201"]);
}

/// The last data are not delayed (RFC 9293 section 3.8.6.2.1: all queued data fit); FIN is sent with them or
/// afterwards.
// Rule: as nagle_delays_a_short_segment
#[test]
fn closing_sends_the_remaining_data() {
    let mut tcp = Client::supplied(&Settings { close: true, ..base() });
    tcp.supply(1300).sends_full(0..1).close().sends(&["1000..1300 FIN"]).has(0, 0).close().sends_nothing();
    tcp.at(100).ack(1300).is_not_finished().has(1300, 0).at(200).ack(1301).is_finished().has(1300, 0);
    let mut tcp = Client::supplied(&base());
    tcp.supply(1300).sends_full(0..1).close().sends(&["1000..1300"]).at(100).ack(1300).is_finished();
}

/// A stream without pending data ends only on close, with a FIN alone if FINs are enabled (RFC 9293 section
/// 3.6); the FIN is retransmitted until it is acknowledged.
// Rule: Closing sends FIN, with or without data, and only closing ends the stream. [9293 3.6, 3.10.4;
// sender.rs state/output.rs]
#[test]
fn an_idle_stream_ends_on_close() {
    for (flavour, rules) in both_rules() {
        let settings = Settings { rules, delay_growth: false, close: true, ..settings(flavour, 4) };
        let mut tcp = dry(&settings, 1000);
        tcp.at(5000).close().sends(&["1000 FIN"]).is_not_finished().wakes_at(6000).sends(&["1000 FIN"]);
        tcp.at(6100).ack(1001).is_finished().has(1000, 0);
    }
    dry(&base(), 1000).at(5000).close().sends_nothing().is_finished();
}

/// A stream may be closed before any data are supplied, and before its connection is open.
// Rule: as an_idle_stream_ends_on_close
#[test]
fn a_stream_may_be_empty() {
    let mut tcp = Client::supplied(&Settings { handshake: true, close: true, ..base() });
    tcp.close().sends(&["SYN"]).at(100).syn_ack().sends(&["0 FIN"]).at(200).ack(1).is_finished().has(0, 0);
    Client::supplied(&base()).close().sends_nothing().is_finished();
}

/// A transfer of given size is closed from the start.
#[should_panic(expected = "the stream is closed")]
// Rule: as an_idle_stream_ends_on_close
#[test]
fn supplying_data_to_a_transfer_panics() {
    Client::start_with(&base(), Some(1000)).sends_full(0..1).supply(1);
}

/// A stream without pending data continues with new data. Meanwhile no timer runs: nothing is outstanding
/// (RFC 6298 section 5.2), and no data wait for a window (RFC 9293 section 3.8.6.1).
// Rule: An idle stream has no timer and may continue; after an idle period it restarts from the initial
// window. [6298 5.2, 5681 4.1; sender.rs state.rs]
#[test]
fn an_idle_stream_continues_with_new_data() {
    for flavour in FLAVOURS {
        let mut tcp = dry(&settings(flavour, 4), 4000);
        tcp.at(900).supply(2000).sends_full(4..6).timer_at(1900).has(4000, 0);
        tcp.at(1000).ack(6000).no_timer().is_not_finished();
    }
}

/// After an idle period longer than the RTO it restarts from the initial window (RFC 5681 section 4.1), for
/// every flavour.
// Rule: as an_idle_stream_continues_with_new_data
#[test]
fn a_stream_restarts_from_the_initial_window_after_idling() {
    for (flavour, rules) in both_rules() {
        let settings = Settings { rules, delay_growth: false, ..settings(flavour, 4) };
        let grown = || {
            let mut tcp = Client::supplied(&settings);
            tcp.supply(4000).sends_full(0..4).at(100).ack(1000).ack(2000).ack(3000).ack(4000).cwnd(8000.0);
            tcp
        };
        grown().at(1000).supply(9000).cwnd(8000.0).sends_full(4..12);
        grown().at(1001).supply(9000).cwnd(4000.0).sends_full(4..8);
        grown().at(5000).supply(0).cwnd(8000.0).sends_nothing();
    }
}

/// As in Linux (`tcp_cwnd_restart`, after RFC 2861), the window is halved for each RTO of idleness, in whole segments and
/// down to the initial window; the threshold becomes three quarters of it, if that is more. Nothing happens before an
/// RTO has passed, and data that are written later in the same pause find the window as it is.
// Rule: As in Linux, halve an idle window for each RTO, and return to three quarters of it by slow start. [2861 3.2; state.rs cc/window.rs]
#[test]
fn an_idle_window_is_halved_for_each_timeout() {
    let halving = |threshold| Settings {
        idle_restart: IdleRestart::Halving,
        initial_ssthresh: InitialThreshold::Segments(threshold),
        cwnd_validation: false,
        ..settings(Flavour::NewReno, 4)
    };
    // Slow start to 17 segments, the last of which is sent at 150 ms.
    let idle = |settings: &Settings, at: u64| {
        let mut tcp = Client::supplied(settings);
        tcp.supply(13_000).sends_full(0..4).at(100);
        (1..=4).for_each(|n| _ = tcp.ack(n * 1000).sent());
        tcp.at(150).ack(5000).sends_full(12..13);
        (6..=13).for_each(|n| _ = tcp.ack(n * 1000));
        tcp.cwnd(17_000.0).rto(1000).at(150 + at);
        tcp
    };
    let slow = halving(100);
    for (at, cwnd) in [(1000, 17_000.0), (1001, 8000.0), (2000, 8000.0), (2001, 4000.0), (3001, 4000.0)] {
        let mut tcp = idle(&slow, at);
        tcp.supply(1000).cwnd(cwnd).sends_full(13..14).ssthresh(100_000.0);
    }
    idle(&slow, 2001).supply(1000).sends_full(13..14).supply(1000).cwnd(4000.0).sends_full(14..15);
    // What a closed window keeps back is one pause, however often the application writes.
    let mut tcp = idle(&slow, 1001);
    tcp.with_window(0).ack(13_000).supply(1000).cwnd(8000.0).supply(1000).cwnd(8000.0).sends_nothing();
    // A window of 4 segments above a threshold of 2: three quarters of it are 2 + 1.
    let mut tcp = Client::supplied(&halving(2));
    tcp.supply(1000).sends_full(0..1).at(100).ack(1000).at(1001).supply(1000);
    tcp.ssthresh(3000.0).cwnd(4000.0).sends_full(1..2);
    let mut tcp = idle(&Settings { idle_restart: IdleRestart::Never, ..slow }, 60_000);
    tcp.supply(1000).cwnd(17_000.0);
}

/// A repeated acknowledgement while nothing is outstanding does not indicate a loss of later data; ns-2
/// counts it nevertheless.
// Rule: Duplicate ACKs while nothing is outstanding do not count, and do not delay new data; in recovery the
// pipe applies. [5681 2, 3.2; 6675 5 C; sender.rs state.rs]
#[test]
fn repeated_acks_while_idle_are_not_duplicates() {
    for flavour in FLAVOURS {
        let mut tcp = dry(&settings(flavour, 4), 1000);
        tcp.acks(2, 1000).dupacks(0).supply(2000).sends_full(1..3);
        let mut tcp = dry(&Settings { rules: Rules::Ns2, delay_growth: false, ..settings(flavour, 4) }, 1000);
        tcp.acks(2, 1000).supply(2000).dupacks(0).sends_full(1..3);
    }
}

/// Data supplied after an early duplicate ACK are sent if the window has room (RFC 5681 section 3.2: the
/// limit is cwnd, not the duplicate).
// Rule: as repeated_acks_while_idle_are_not_duplicates
#[test]
fn an_early_duplicate_does_not_delay_new_data() {
    let mut tcp = Client::supplied(&base());
    tcp.supply(2000).sends_full(0..2).at(100).ack(0).dupacks(1).sends_nothing();
    tcp.supply(5000).sends_full(2..4).has(0, 3000);
}

/// During SACK recovery, supplied data are limited by the pipe (RFC 6675 section 5 C).
// Rule: as repeated_acks_while_idle_are_not_duplicates
#[test]
fn data_supplied_in_recovery_are_limited_by_the_pipe() {
    let mut tcp = Client::supplied(&settings(Flavour::Sack, 8));
    tcp.supply(8000).sends_full(0..8).at(100).sack(0, &[1000..4000]).sends_full(0..1).cwnd(4000.0);
    // Five are in the network: the one retransmitted, and four more.
    tcp.supply(3000).sends_nothing().sack(0, &[1000..6000]).sends(&["8000..9000"]).has(0, 2000);
    tcp.supply(1000).sends_nothing().has(0, 3000);
}

/// Data wait for a closed window under the persist timer (RFC 9293 section 3.8.6.1), which starts with the
/// first pending data; a window update releases them.
// Rule: The persist timer runs only while data wait for the window. [9293 3.8.6.1, 3.8.6.2.1; sender.rs]
#[test]
fn supplied_data_wait_under_the_persist_timer() {
    let shut = || {
        let mut tcp = Client::supplied(&base());
        tcp.supply(1000).sends_full(0..1).at(100).with_window(0).ack(1000).sends_nothing().no_timer();
        tcp.at(500).supply(1200).sends_nothing().timer_at(1500).has(1000, 1200);
        tcp
    };
    shut().at(700).supply(500).sends_nothing().timer_at(1500).with_window(OPEN).ack(1000).sends_full(1..2);
    let mut tcp = shut();
    tcp.wakes_at(1500).sends(&["1000..1001"]).supply(300).sends_nothing().close().sends_nothing();
    tcp.wakes_at(3500).sends(&["1000..1001"]).at(3600).with_window(OPEN).ack(1001);
    tcp.sends(&["1001..2001", "2001..2500"]).at(3700).ack(2500).is_finished();
}

/// A window that closes without pending data is not probed.
// Rule: as supplied_data_wait_under_the_persist_timer
#[test]
fn an_idle_stream_does_not_probe() {
    let mut tcp = dry(&base(), 1000);
    tcp.with_window(0).ack(1000).sends_nothing().no_timer();
    // The byte of a probe that was all there was.
    tcp.at(200).supply(1).sends_nothing().wakes_at(1200).sends(&["1000..1001"]).at(1300).ack(1001).no_timer();
    tcp.at(1400).close().is_finished();
}

/// A receive window of at least half its maximum is used even if it is below a full segment (RFC 9293 section
/// 3.8.6.2.1), for data supplied before or later.
// Rule: as supplied_data_wait_under_the_persist_timer
#[test]
fn a_window_of_half_its_maximum_is_used() {
    let mut tcp = dry(&Settings { window: Bytes(1600).into(), ..base() }, 1000);
    tcp.with_window(800).ack(1000).supply(900).sends(&["1000..1800"]).has(1000, 100);
    let mut tcp = dry(&Settings { window: Bytes(1600).into(), ..base() }, 1000);
    tcp.with_window(799).ack(1000).supply(900).sends_nothing().timer_at(1100).has(1000, 900);
}

/// A retransmission includes new data up to a full segment (RFC 9293 section 3.7.5: it may be segmented
/// differently).
// Rule: A retransmission is filled with new data. [9293 3.7.5; state/output.rs]
#[test]
fn a_retransmission_is_filled_with_new_data() {
    let mut tcp = Client::supplied(&base());
    tcp.supply(300)
        .sends(&["0..300"])
        .supply(400)
        .sends_nothing()
        .wakes_at(1000)
        .sends(&["0..700"])
        .has(0, 0);
    tcp.at(1100).ack(700).has(700, 0).no_timer();
}

/// Retransmissions are not delayed by Nagle's algorithm, however short (RFC 9293 section 3.7.4 is about new
/// data).
// Rule: as a_retransmission_is_filled_with_new_data
#[test]
fn nagle_does_not_delay_retransmissions() {
    let mut tcp = Client::supplied(&base());
    tcp.supply(300).sends(&["0..300"]).supply(2000).sends(&["300..1300", "1300..2300"]);
    tcp.wakes_at(1000).sends(&["0..1000"]).at(1100).ack(1000).sends(&["1000..2000", "2000..2300"]);
}

/// Segments sent by partial acknowledgements in ns-2's SACK respect a reduced window, and a short last
/// segment leaves no gap before data supplied later.
// Rule: Partial ACKs in ns-2's SACK respect the window and leave no gap. [recovery/ns2/sack.rs]
#[test]
fn ns2_partial_acks_respect_window_and_data() {
    let ns2 = Settings { rules: Rules::Ns2, delay_growth: false, ..settings(Flavour::Sack, 5) };
    let settings = Settings { partial_ack_sends: true, dupthresh: 1, ..ns2 };
    let lost = || {
        let mut tcp = Client::supplied(&settings);
        tcp.supply(5300).sends_full(0..5).at(100).ack(1000).sends_nothing();
        tcp.sack(1000, &[2000..3000]).sends_full(1..2);
        tcp
    };
    lost().with_window(1500).ack(3000).sends_full(3..4);
    let mut tcp = lost();
    tcp.ack(3000).sends_full(3..5).ack(4000).sends(&["5000..5300"]).ack(5000).sends_nothing();
    tcp.at(200).ack(5300).supply(1000).sends(&["5300..6300"]);
}

/// The number of acknowledged bytes exceeds the sequence space (RFC 9293 section 3.4) and excludes SYN and
/// FIN.
// Rule: Acknowledged bytes are counted beyond the sequence space. [9293 3.4; state/output.rs]
#[test]
fn acknowledged_bytes_exceed_the_sequence_space() {
    let settings = Settings {
        window: Bytes(1 << 30).into(),
        initial_window: InitialWindow::Segments(1 << 20),
        ..base()
    };
    let mut tcp = Client::supplied(&Settings { handshake: true, close: true, ..settings });
    tcp.open().sends(&["SYN"]).at(100).syn_ack().sends(&["ACK"]);
    let step = 100_000 * MSS;
    for n in 1..=50u32 {
        tcp.supply(step.into()).sent();
        tcp.has(u64::from(n - 1) * u64::from(step), 0)
            .ack(n.wrapping_mul(step))
            .has(u64::from(n) * u64::from(step), 0);
    }
    tcp.close().sends_first("705032704 FIN").ack(705_032_705).is_finished().has(5_000_000_000, 0);
}

/// An unbounded transfer always has data to send, and counts acknowledged bytes.
// Rule: as acknowledged_bytes_exceed_the_sequence_space
#[test]
fn an_unbounded_transfer_counts_acknowledged_bytes() {
    let mut tcp = Client::start(&base());
    tcp.sends_full(0..4).at(100).ack(2500).has(2500, u64::MAX - 7000).sent();
    let mut tcp = Client::start_with(&base(), Some(2300));
    tcp.sent();
    tcp.has(0, 0).at(100).ack(1000).has(1000, 0).ack(2300).has(2300, 0).is_finished();
    let waiting =
        Sender::new(Connection::default(), &base(), Transfer { bytes: Some(7), start: ms(500) }, None);
    assert_eq!((waiting.acknowledged(), waiting.unsent()), (0, 7));
}

/// `open` starts a waiting transfer, and has no effect on a started one.
// Rule: as a_stream_opens
#[test]
fn opening_twice_has_no_effect() {
    let mut tcp = Client::waiting(&base(), Transfer { bytes: Some(1000), start: ms(500) });
    tcp.at(100).open().sends_full(0..1).open().sends_nothing().at(200).ack(1000).is_finished();
    Client::supplied(&base()).no_timer().open().sends_nothing().open().no_timer().is_not_finished();
}
