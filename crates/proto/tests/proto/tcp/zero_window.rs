//! Zero windows and window probes (RFC 9293 section 3.8.6.1).

use lasthop_base::Bytes;
use lasthop_proto::tcp::{Flavour, IdleRestart, InitialWindow, Rules, Settings};

use crate::tcp::dialogue::{Client, settings};

const OPEN: u32 = 1 << 20;
const FLAVOURS: [Flavour; 5] = [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack, Flavour::Prr];

/// Four segments are acknowledged at 100 ms, and the window is closed.
fn closed(flavour: Flavour) -> Client {
    let mut tcp = Client::start(&Settings { tlp: false, ..settings(flavour, 4) });
    tcp.sends_full(0..4).at(100).with_window(0).ack(4000).sends_nothing().cwnd(5000.0).rto(1000);
    tcp
}

/// Window probe: a byte is sent into a closed window after one RTO, and again at intervals that double up to
/// the maximum RTO.
// Rule: Probes after one RTO, then at doubling intervals, independent of the backoff. [9293 3.8.6.1;
// sender.rs]
#[test]
fn a_closed_window_is_probed() {
    for flavour in FLAVOURS {
        let mut tcp = closed(flavour);
        for due in [1100, 3100, 7100, 15_100, 31_100, 63_100, 123_100, 183_100] {
            tcp.wakes_at(due).sends(&["4000..4001"]);
        }
        assert_eq!((tcp.sender.stats().window_probes, tcp.sender.stats().timeouts), (8, 0));
    }
}

/// Responses to probes are not duplicate acknowledgements: the congestion window is unchanged, and nothing is
/// sent before the next probe.
// Rule: ACKs of probes are not duplicates. [5681 2; sender.rs]
#[test]
fn acks_of_probes_are_not_duplicates() {
    for flavour in FLAVOURS {
        let mut tcp = closed(flavour);
        for (due, answer) in [(1100, 1200), (3100, 3200), (7100, 7200), (15_100, 15_200), (31_100, 31_200)] {
            tcp.wakes_at(due).sends(&["4000..4001"]).at(answer).ack(4000).sends_nothing();
        }
        tcp.dupacks(0).cwnd(5000.0).ssthresh(f64::INFINITY);
        assert_eq!(tcp.sender.stats().fast_retransmits, 0);
    }
}

/// A window update releases data at once, in whole segments, including the probe's; the timer starts with the
/// RTO unchanged, since probes are not timeouts (RFC 6298 section 5.1).
// Rule: An open window releases whole segments; an accepted probe byte is not repeated. [9293 3.8.6;
// sender.rs]
#[test]
fn a_window_update_ends_probing() {
    for flavour in FLAVOURS {
        closed(flavour).at(500).with_window(OPEN).ack(4000).sends_full(4..9).timer_at(1500);
        let mut tcp = closed(flavour);
        (0..4).for_each(|n| _ = tcp.wakes_at((2 << n) * 1000 - 900).sends(&["4000..4001"]));
        tcp.at(15_150).with_window(OPEN).ack(4000).sends_full(4..9).rto(1000).timer_at(16_150);
    }
}

/// A window that opens long after the last probe finds an idle connection, which restarts (RFC 5681 section
/// 4.1).
// Rule: as a_window_update_ends_probing
#[test]
fn probes_do_not_prevent_an_idle_restart() {
    let mut tcp = closed(Flavour::NewReno);
    tcp.wakes_at(1100).sends(&["4000..4001"]).at(2101).with_window(OPEN).ack(4000);
    tcp.cwnd(4000.0).sends_full(4..8);
}

/// Linux looks at the time since the last transmission only when the application writes: data that waited for the window go
/// out by the old one.
// Rule: as a_window_update_ends_probing
#[test]
fn linux_keeps_its_window_while_it_probes() {
    let idle_restart = IdleRestart::Halving;
    let mut tcp = Client::start(&Settings { idle_restart, ..settings(Flavour::NewReno, 2) });
    tcp.sends_full(0..2)
        .at(100)
        .ack(2000)
        .sends_full(2..5)
        .with_window(0)
        .ack(5000)
        .sends_nothing()
        .cwnd(4000.0);
    tcp.wakes_at(1100)
        .sends(&["5000..5001"])
        .at(2101)
        .with_window(OPEN)
        .ack(5000)
        .cwnd(4000.0)
        .sends_full(5..9);
}

/// With halving in whole segments, ns-2's congestion window may become zero as well: a one-byte probe
/// respects that too.
// Rule: as a_small_window_is_used_after_one_timeout
#[test]
fn probes_respect_a_zero_congestion_window() {
    let ns2 = Settings { rules: Rules::Ns2, delay_growth: false, ..settings(Flavour::Sack, 1) };
    let mut tcp = Client::start(&Settings { careful: false, halve_exactly: false, dupthresh: 1, ..ns2 });
    tcp.sends_full(0..1).at(100).ack(1000).sends_full(1..3).sack(1000, &[2000..3000]).sends_full(1..2);
    tcp.at(200).ack(3000).cwnd(1000.0).sends_full(3..4).sack(3000, &[3500..4000]).sends(&["3000..3500"]);
    tcp.at(300).ack(4000).cwnd(0.0).sends_nothing().wakes_at(1300).sends(&["4000..4001"]);
}

/// The byte of a probe may be accepted, and data continue after it. Sent once it gives an RTT sample,
/// retransmitted it does not (Karn).
// Rule: as a_window_update_ends_probing
#[test]
fn data_continue_after_an_accepted_probe() {
    let mut tcp = closed(Flavour::NewReno);
    tcp.wakes_at(1100).sends(&["4000..4001"]).at(1280).with_window(OPEN).ack(4001);
    tcp.srtt(Some((7 * 100 + 180) / 8)).sends_first("4001..5001");
    let mut tcp = closed(Flavour::NewReno);
    tcp.wakes_at(1100).sends(&["4000..4001"]).wakes_at(3100).sends(&["4000..4001"]);
    tcp.at(3300).with_window(OPEN).ack(4001).srtt(Some(100)).sends_first("4001..5001");
}

/// When the byte is accepted and the window is still closed, probing restarts.
// Rule: as a_closed_window_is_probed
#[test]
fn probing_restarts_after_an_accepted_byte() {
    let mut tcp = closed(Flavour::NewReno);
    tcp.wakes_at(1100).sends(&["4000..4001"]).wakes_at(3100).sends(&["4000..4001"]);
    tcp.at(3200).ack(4001).sends_nothing().wakes_at(4200).sends(&["4001..4002"]).timer_at(6200);
}

/// A persistently small window is used after one RTO as far as it permits, not byte by byte (RFC 9293 section
/// 3.8.6.2.1: override timeout; RFC 1122 section 4.2.3.4).
// Rule: A small window is used after one RTO. [9293 3.8.6.2.1, 1122 4.2.3.4; sender.rs]
#[test]
fn a_small_window_is_used_after_one_timeout() {
    let mut tcp = Client::start(&Settings { window: Bytes(2500).into(), ..settings(Flavour::NewReno, 4) });
    tcp.sends_full(0..2).at(100).with_window(500).ack(2000).sends_nothing();
    tcp.wakes_at(1100)
        .sends(&["2000..2500"])
        .at(1200)
        .with_window(0)
        .ack(2500)
        .sends_nothing()
        .timer_at(2200);
}

/// ns-2's SACK sends whole segments into a window, and shorter ones only as probes; it does not stall.
// Rule: In ns-2's SACK, which does not split segments, a small window is used by probes. [state/output.rs
// recovery/ns2/sack.rs]
#[test]
fn ns2_uses_a_small_window_for_probes() {
    let ns2 = Settings { rules: Rules::Ns2, delay_growth: false, ..settings(Flavour::Sack, 1) };
    let mut tcp = Client::start(&Settings { window: Bytes(1600).into(), ..ns2 });
    tcp.sends_full(0..1).at(100).with_window(900).ack(1000).sends_nothing().wakes_at(1100);
    tcp.sends(&["1000..1900"]).at(1200).with_window(0).ack(1900).sends_nothing().timer_at(2200);
    tcp.wakes_at(2200).sends(&["1900..1901"]).at(2300).with_window(800).ack(1900).sends_nothing();
    tcp.wakes_at(4200).sends(&["1900..2700"]).at(4300).with_window(1000).ack(2700).sends(&["2700..3700"]);
}

/// A window too small for a segment does not end probing.
// Rule: as a_small_window_is_used_after_one_timeout
#[test]
fn a_small_window_does_not_end_probing() {
    let mut tcp = closed(Flavour::NewReno);
    tcp.wakes_at(1100).sends(&["4000..4001"]).at(1200).with_window(300).ack(4000).sends_nothing();
    tcp.wakes_at(3100).sends(&["4000..4300"]);
}

/// A window that closes over outstanding data is probed like any other, where a timeout would never send
/// anything; this does not count as a loss (RFC 9293 section 3.8.6, RFC 1122 section 4.2.2.16).
// Rule: The window may shrink below outstanding data. [9293 3.8.6, 1122 4.2.2.16; sender.rs]
#[test]
fn a_shrunk_window_is_probed() {
    for flavour in FLAVOURS {
        let mut tcp = Client::start(&Settings { tlp: false, ..settings(flavour, 4) });
        tcp.sends_full(0..4).at(100).with_window(0).ack(0).sends_nothing().timer_at(1000);
        tcp.wakes_at(1000).sends(&["0..1"]).at(1100).ack(0).sends_nothing();
        tcp.wakes_at(3000).sends(&["0..1"]).ssthresh(f64::INFINITY);
        tcp.at(3100).with_window(OPEN).ack(0);
        // The record of the first segment was split by the probe.
        let first: &[&str] = if flavour == Flavour::Prr { &["0..1", "1..1000"] } else { &["0..1000"] };
        tcp.sends(&[first, &["1000..2000", "2000..3000", "3000..4000"]].concat()).timer_at(4100).cwnd(4000.0);
    }
}

/// With only FIN outstanding the retransmission timer runs, even if the window is zero.
// Rule: as a_shrunk_window_is_probed
#[test]
fn a_fin_alone_uses_the_retransmission_timer() {
    let mut tcp = Client::start_with(&Settings { close: true, ..settings(Flavour::NewReno, 4) }, Some(1000));
    tcp.sends(&["0..1000 FIN"]).at(100).with_window(0).ack(1000).wakes_at(1100).sends(&["1000 FIN"]);
    assert_eq!((tcp.sender.stats().timeouts, tcp.sender.stats().window_probes), (1, 0));
}

/// A connection may open with a closed window.
// Rule: as a_closed_window_is_probed
#[test]
fn the_initial_window_may_be_zero() {
    let initial_window = InitialWindow::Segments(4);
    let mut tcp =
        Client::start(&Settings { handshake: true, initial_window, ..settings(Flavour::NewReno, 4) });
    tcp.sends(&["SYN"]).at(100).with_window(0).syn_ack().sends(&["ACK"]);
    tcp.wakes_at(1100).sends(&["0..1"]).at(1200).with_window(OPEN).ack(1).sends_first("1..1001");
}

/// Data segmented by a small window are retransmitted with other boundaries when there is more room.
// Rule: Retransmissions may be resegmented. [9293 3.7.5; state/output.rs]
#[test]
fn retransmissions_may_be_resegmented() {
    let mut tcp = Client::start(&Settings { window: Bytes(1600).into(), ..settings(Flavour::NewReno, 4) });
    tcp.sends_full(0..1).at(100).with_window(800).ack(1000).sends(&["1000..1800"]);
    tcp.with_window(1590).ack(1000).sends_nothing().wakes_at(1100).sends(&["1000..2000"]);
    tcp.at(1200).ack(1800).sends_first("2000..3000");
}
