//! A silent peer, and aborted connections: by the user timeout (RFC 9293 section 3.8.3: R2), or at the
//! owner's request (section 3.10.5).

use lasthop_base::{Bytes, Duration};
use lasthop_proto::tcp::{Flags, Flavour, Profile, Rules, Segment, SenderStats, Settings, Transfer};

use crate::tcp::dialogue::{Client, ms, settings};

const FLAVOURS: [Flavour; 4] = [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack];
const OPEN: u32 = 1 << 20;

/// Settings with a user timeout of this many milliseconds.
fn patient(flavour: Flavour, milliseconds: u64) -> Settings {
    Settings { user_timeout: Some(Duration::from_millis(milliseconds)), ..settings(flavour, 4) }
}

fn base(milliseconds: u64) -> Settings {
    patient(Flavour::NewReno, milliseconds)
}

/// Unanswered data: the connection is aborted at the first expiry of the timer at or after the user timeout,
/// to the nanosecond, with a RST after all data sent.
// Rule: Data, SYN or FIN unanswered for the user timeout abort the connection, when the timer expires. [9293
// 3.8.3 (R2), 5482; sender.rs state.rs]
#[test]
fn unanswered_data_abort_the_connection() {
    for flavour in FLAVOURS {
        for rules in [Rules::Rfc, Rules::Ns2] {
            let with = |milliseconds| {
                let patient = patient(flavour, milliseconds);
                let mut tcp = Client::start(&Settings { rules, delay_growth: false, ..patient });
                tcp.sends_full(0..4).wakes_at(1000).sends_full(0..1).wakes_at(3000).sends_full(0..1);
                tcp
            };
            with(7000).wakes_at(7000).sends(&["4000 RST"]).is_aborted_at(7000);
            let mut tcp = with(7001);
            tcp.wakes_at(7000).sends_full(0..1).is_not_aborted().is_not_finished();
            tcp.wakes_at(15_000).sends(&["4000 RST"]).is_aborted_at(15_000).has(0, u64::MAX - 4000);
            assert_eq!(tcp.sender.stats().timeouts, 3);
        }
    }
}

/// Its RST has no ACK and carries the next sequence number (RFC 9293 section 3.10.5).
// Rule: The owner may abort. On any abort the peer of an open connection gets a RST with the next sequence
// number and without ACK. [9293 3.10.5; sender.rs state/output.rs]
#[test]
fn an_abort_sends_one_rst() {
    let mut tcp = Client::start_with(&base(1000), Some(1500));
    tcp.sends(&["0..1000", "1000..1500"]).wakes_at(1000);
    let rst = tcp.sent()[0];
    assert_eq!((rst.flags, rst.len, rst.seq_len()), (Flags::RST, 0, 0));
    assert_eq!(rst.seq, tcp.bare_ack(1500).ack);
}

/// Without a user timeout the connection is never aborted.
// Rule: as unanswered_data_abort_the_connection
#[test]
fn without_a_user_timeout_there_is_no_abort() {
    let mut tcp = Client::start(&settings(Flavour::NewReno, 4));
    tcp.sends_full(0..4);
    for _ in 0..1000 {
        tcp.times_out();
        tcp.sends_full(0..1);
    }
    tcp.is_not_aborted().is_not_finished();
}

/// An unanswered SYN is aborted without RST, since there is no connection to reset (RFC 9293 section 3.10.5:
/// SYN-SENT). The user timeout counts from the first SYN.
// Rule: as unanswered_data_abort_the_connection
#[test]
fn an_unanswered_syn_aborts_without_rst() {
    let settings = Settings { handshake: true, ..base(6999) };
    let mut tcp = Client::waiting(&settings, Transfer { bytes: Some(1000), start: ms(50_000) });
    tcp.wakes_at(50_000).sends(&["SYN"]).wakes_at(51_000).sends(&["SYN"]).wakes_at(53_000).sends(&["SYN"]);
    tcp.is_not_finished().wakes_at(57_000).sends_nothing().is_aborted_at(57_000).has(0, 1000);
    tcp.at(58_000).syn_ack().sends_nothing().has(0, 1000);
}

/// A late SYN-ACK restarts the user timeout.
// Rule: as any_acceptable_segment_restarts_the_user_timeout
#[test]
fn syn_ack_restarts_the_user_timeout() {
    let mut tcp = Client::start(&Settings { handshake: true, ..base(2000) });
    tcp.sends(&["SYN"]).wakes_at(1000).sends(&["SYN"]).at(2900).syn_ack().sends_full(0..1);
    tcp.wakes_at(5900).sends(&["1000 RST"]).is_aborted_at(5900);
    let mut tcp = Client::start(&Settings { handshake: true, ..base(3100) });
    tcp.sends(&["SYN"]).wakes_at(1000).sends(&["SYN"]).at(2900).syn_ack().sends_full(0..1);
    tcp.wakes_at(5900).sends_full(0..1).wakes_at(11_900).sends(&["1000 RST"]);
}

/// An unacknowledged FIN is handled like data.
// Rule: as unanswered_data_abort_the_connection
#[test]
fn an_unacknowledged_fin_aborts() {
    let mut tcp = Client::start_with(&Settings { close: true, ..base(5000) }, Some(1000));
    tcp.sends(&["0..1000 FIN"]).at(100).ack(1000).wakes_at(1100).sends(&["1000 FIN"]);
    tcp.wakes_at(3100).sends(&["1000 FIN"]).wakes_at(7100).sends(&["1001 RST"]).is_aborted_at(7100);
    tcp.has(1000, 0);
}

/// Any acceptable segment shows that the peer is alive, even if it acknowledges nothing new or was reordered.
/// Segments that the peer cannot have sent do not, nor do control messages of the network.
// Rule: Any acceptable segment of the peer restarts the user timeout, and so does transmission when nothing
// was outstanding. [9293 3.8.3; sender.rs state/output.rs]
#[test]
fn any_acceptable_segment_restarts_the_user_timeout() {
    let silent = || {
        let mut tcp = Client::start(&base(2900));
        tcp.sends_full(0..4).at(90).ack(1000).sends_full(4..6).wakes_at(1090).sends_full(1..2).at(2100);
        tcp
    };
    silent().wakes_at(3090).sends(&["6000 RST"]).is_aborted_at(3090);
    silent().ack(1000).sends_nothing().wakes_at(3090).sends_full(1..2).wakes_at(7090).sends(&["6000 RST"]);
    silent().ack(0).sends_nothing().wakes_at(3090).sends_full(1..2).wakes_at(7090).sends(&["6000 RST"]);
    silent().ack(6001).sends_nothing().wakes_at(3090).sends(&["6000 RST"]);
    silent().notice(1000).sends_nothing().wakes_at(3090).sends(&["6000 RST"]);
}

/// The user timeout does not run while nothing is outstanding: it starts with the next transmission.
// Rule: as any_acceptable_segment_restarts_the_user_timeout
#[test]
fn the_user_timeout_does_not_run_while_idle() {
    let mut tcp = Client::supplied(&base(3000));
    tcp.supply(1000).sends_full(0..1).at(100).ack(1000).no_timer();
    tcp.at(60_000).supply(1000).sends_full(1..2).wakes_at(61_000).sends_full(1..2).is_not_aborted();
    tcp.supply(500)
        .sends_nothing()
        .wakes_at(63_000)
        .sends(&["2000 RST"])
        .is_aborted_at(63_000)
        .has(1000, 500);
}

/// Data sent while others are outstanding do not restart the user timeout.
// Rule: as any_acceptable_segment_restarts_the_user_timeout
#[test]
fn further_data_do_not_restart_the_user_timeout() {
    let mut tcp = Client::supplied(&base(3000));
    tcp.supply(1000).sends_full(0..1).at(900).supply(1000).sends_full(1..2).wakes_at(1000).sends_full(0..1);
    tcp.wakes_at(3000).sends(&["2000 RST"]).is_aborted_at(3000);
}

/// Four segments are acknowledged at 100 ms, and the window is closed.
fn closed(settings: &Settings) -> Client {
    let mut tcp = Client::start(settings);
    tcp.sends_full(0..4).at(100).with_window(0).ack(4000).sends_nothing();
    tcp
}

/// Unanswered window probes: the user timeout counts from the first probe, to the nanosecond.
// Rule: as answered_probes_keep_the_connection_open
#[test]
fn unanswered_probes_abort_the_connection() {
    for flavour in FLAVOURS {
        let mut tcp = closed(&patient(flavour, 2000));
        tcp.wakes_at(1100).sends(&["4000..4001"]).wakes_at(3100).sends(&["4001 RST"]).is_aborted_at(3100);
        let mut tcp = closed(&patient(flavour, 2001));
        tcp.wakes_at(1100).sends(&["4000..4001"]).wakes_at(3100).sends(&["4000..4001"]);
        tcp.wakes_at(7100).sends(&["4001 RST"]).is_aborted_at(7100).has(4000, u64::MAX - 4001);
    }
}

/// A window that stays closed keeps the connection as long as probes are answered (RFC 9293 section 3.8.6.1),
/// however long the probe interval and however fast the answer; unanswered probes abort it eventually.
// Rule: A zero window is probed as long as probes are answered; unanswered probes abort the connection. [9293
// 3.8.6.1; sender.rs state.rs]
#[test]
fn answered_probes_keep_the_connection_open() {
    for delay in [0, 100, 900] {
        let mut tcp = closed(&base(1500));
        for due in [1100, 3100, 7100, 15_100, 31_100, 63_100, 123_100, 183_100] {
            tcp.wakes_at(due).sends(&["4000..4001"]).at(due + delay).ack(4000).sends_nothing();
        }
        tcp.is_not_aborted().wakes_at(243_100).sends(&["4000..4001"]);
        tcp.wakes_at(303_100).sends(&["4001 RST"]).is_aborted_at(303_100);
    }
}

/// When the window opens, the user timeout applies to data again.
// Rule: as answered_probes_keep_the_connection_open
#[test]
fn a_window_update_restarts_the_user_timeout() {
    let mut tcp = closed(&base(2500));
    tcp.wakes_at(1100).sends(&["4000..4001"]).at(3000).with_window(OPEN).ack(4000).sends_full(4..8);
    tcp.wakes_at(4000).sends_full(4..5).wakes_at(6000).sends(&["8000 RST"]).is_aborted_at(6000);
}

/// The same for a window that shrinks below outstanding data, and for data supplied while it is closed.
// Rule: as answered_probes_keep_the_connection_open
#[test]
fn the_first_probe_starts_the_user_timeout() {
    let mut tcp = Client::start(&base(1900));
    tcp.sends_full(0..4).at(100).with_window(0).ack(0).wakes_at(1000).sends(&["0..1"]);
    tcp.wakes_at(3000).sends(&["4000 RST"]).is_aborted_at(3000);
    let mut tcp = Client::supplied(&base(500));
    tcp.supply(1000).sends_full(0..1).at(100).with_window(0).ack(1000).at(50_000).supply(1000);
    tcp.wakes_at(51_000).sends(&["1000..1001"]).wakes_at(53_000).sends(&["1001 RST"]).is_aborted_at(53_000);
}

/// The owner may abort the connection at any time: a RST after all data sent, if there is a connection.
// Rule: as an_abort_sends_one_rst
#[test]
fn the_owner_may_abort() {
    let mut tcp = Client::start(&settings(Flavour::NewReno, 4));
    tcp.sends_full(0..4).wakes_at(1000).sends_full(0..1).at(1500).abort().sends(&["4000 RST"]);
    tcp.is_aborted_at(1500).at(1600).abort().sends_nothing().is_aborted_at(1500);
    let stats = *tcp.sender.stats();
    assert_eq!(stats.since(&SenderStats::default()), stats);

    let mut tcp = Client::supplied(&settings(Flavour::NewReno, 4));
    tcp.supply(300).sends(&["0..300"]).at(100).ack(300).no_timer();
    tcp.at(200).abort().sends(&["300 RST"]).is_aborted_at(200).has(300, 0);

    let settings = Settings { handshake: true, ..settings(Flavour::NewReno, 4) };
    let mut tcp = Client::start_with(&settings, Some(1000));
    tcp.sends(&["SYN"]).at(100).abort().sends_nothing().is_aborted_at(100).has(0, 1000);
}

/// A transfer aborted before its start never starts.
// Rule: as an_abort_sends_one_rst
#[test]
fn an_unstarted_transfer_may_be_aborted() {
    let mut tcp =
        Client::waiting(&settings(Flavour::NewReno, 4), Transfer { bytes: Some(7), start: ms(500) });
    tcp.at(100).abort().sends_nothing().is_aborted_at(100).has(0, 7).open().sends_nothing();
    assert_eq!(tcp.sender.stats().started, None);
}

/// A complete connection cannot be aborted (RFC 9293 section 3.10.5: CLOSING, LAST-ACK, TIME-WAIT).
// Rule: as an_abort_sends_one_rst
#[test]
fn a_complete_connection_is_not_aborted() {
    for close in [false, true] {
        let settings = Settings { close, ..settings(Flavour::NewReno, 4) };
        let mut tcp = Client::start_with(&settings, Some(1000));
        tcp.sent();
        tcp.at(100).ack(1000 + u32::from(close)).is_finished().at(200).abort().sends_nothing();
        tcp.is_not_aborted();
        assert_eq!(tcp.sender.stats().completed, Some(ms(100)));
    }
}

/// An aborted connection sends and accepts nothing, whatever its peer, its owner or the network do.
// Rule: An aborted connection sends and accepts nothing. [9293 3.10.5; sender.rs]
#[test]
fn an_aborted_connection_is_silent() {
    let mut tcp = Client::supplied(&Settings { close: true, window: Bytes(8000).into(), ..base(1000) });
    tcp.supply(9000).sends_full(0..4).wakes_at(1000).sends(&["4000 RST"]).is_aborted_at(1000);
    tcp.at(1100).ack(4000).acks(5, 4000).sends_nothing().has(0, 5000);
    let fin = Segment { flags: Flags::ACK | Flags::FIN, ..tcp.bare_ack(4000) };
    tcp.receives(fin).syn_ack().sends_nothing();
    tcp.supply(1000).sends_nothing().close().sends_nothing().open().sends_nothing().notice(0).sends_nothing();
    tcp.abort().sends_nothing().is_aborted_at(1000).dupacks(0);
    assert_eq!(tcp.sender.stats().notices, 0);
}

/// Linux waits a second for the answer to each of the first five SYNs, then twice as long each time, and gives up after ten
/// retransmissions.
// Rule: Linux repeats SYN at a constant interval four times before it backs off (tcp_syn_linear_timeouts), and
// gives up after ten retransmissions (tcp_syn_retries). [settings.rs state/loss.rs]
#[test]
fn linux_repeats_a_syn_each_second_at_first() {
    let settings = Profile::Linux.settings();
    let mut tcp = Client::waiting(&settings, Transfer { bytes: Some(1000), start: ms(0) });
    tcp.wakes_at(0).sends(&["SYN"]);
    for second in [1, 2, 3, 4, 5, 7, 11, 19, 35, 67] {
        let at = tcp.times_out();
        assert!((second * 1000..=second * 1050).contains(&at), "{second} s: {at} ms");
        tcp.sends(&["SYN"]);
    }
    let at = tcp.times_out();
    assert!((131_000..138_000).contains(&at), "{at} ms");
    tcp.sends_nothing().is_aborted_at(at);
}

/// It gives up a connection when its timer expires 924.6 s or more after the last answer.
// Rule: Linux gives a silent peer up after the time of 15 retransmissions (tcp_retries2). [settings.rs state.rs]
#[test]
fn linux_gives_up_after_fifteen_retransmissions() {
    let settings = Profile::Linux.settings();
    let mut tcp = Client::waiting(&settings, Transfer { bytes: Some(1000), start: ms(0) });
    tcp.wakes_at(0).sends(&["SYN"]).at(50).syn_ack();
    assert!(!tcp.sent().is_empty());
    let mut last = 0;
    loop {
        let at = tcp.times_out();
        if tcp.sent().iter().all(|segment| segment.flags.has(Flags::RST)) {
            assert!(last < 924_650 && at >= 924_650, "{last} and {at} ms");
            tcp.is_aborted_at(at);
            break;
        }
        last = at;
    }
    assert!((13..=15).contains(&tcp.sender.stats().timeouts));
    let patient = Settings { user_timeout: Some(Duration::from_secs(10_000)), ..settings };
    let mut tcp = Client::waiting(&patient, Transfer { bytes: Some(1000), start: ms(0) });
    tcp.wakes_at(0).sends(&["SYN"]).at(50).syn_ack().sent();
    while tcp.times_out() < 9_000_000 {
        assert!(!tcp.sent().is_empty());
    }
    tcp.is_not_aborted();
}
