//! Recovery with per-segment records: RACK-TLP (RFC 8985), proportional rate reduction (RFC 6937), F-RTO (RFC
//! 5682) and undo of spurious reductions (RFC 3708, 4015). Segments are sent at time zero; the round-trip
//! time is 100 ms.

use lasthop_base::{Duration, Time};
use lasthop_proto::Component;
use lasthop_proto::tcp::{
    Congestion, Detection, Flavour, InitialThreshold, Profile, RttArithmetic, Settings, SlowStartExit,
};

use crate::tcp::dialogue::{Client, ms, settings};

/// Reno with per-segment records, without probes.
fn records(initial: u32) -> Settings {
    Settings {
        congestion: Congestion::Reno,
        rto_min: Duration::from_millis(200),
        tlp: false,
        ..settings(Flavour::Prr, initial)
    }
}

/// Two segments above a hole are not enough: the reordering window, a quarter of the round-trip time, must
/// pass (RFC 8985 section 6.2), plus the 2 ms timer slack of Linux.
// Rule: RACK: a segment is lost a round trip after a later one was delivered, plus a quarter of one while few
// were. [8985 6.2; detection/rack.rs]
#[test]
fn a_hole_is_lost_after_the_reordering_window() {
    let mut tcp = Client::start_with(&records(3), Some(3000));
    tcp.sends_full(0..3).at(100).sack(0, &[1000..2000]).sack(0, &[1000..3000]).sends_nothing();
    tcp.timer_at(127).wakes_at(127).sends_full(0..1).losses(1).ssthresh(2000.0);
}

/// Three segments above it suffice at once, if no reordering was seen. Proportional rate reduction sends one
/// segment per two delivered, and one for each once half the window is in flight.
// Rule: Proportional rate reduction, with the slow-start bound. [6937 3; recovery/prr/reduction.rs
// recovery/prr/mod.rs]
#[test]
fn prr_reduces_the_rate_in_proportion() {
    let mut tcp = Client::start(&records(10));
    tcp.sends_full(0..10).at(100);
    tcp.sack(0, &[1000..2000]).sends_full(10..11).sack(0, &[1000..3000]).sends_full(11..12);
    // Eleven segments were in flight before the third duplicate; eight remain after the loss, and the target
    // is five.
    tcp.sack(0, &[1000..4000]).sends_full(0..1).ssthresh(5000.0);
    tcp.sack(0, &[1000..5000]).sends_nothing().sack(0, &[1000..6000]).sends_full(12..13);
    tcp.sack(0, &[1000..7000]).sends_nothing().sack(0, &[1000..8000]).sends_full(13..14);
    tcp.sack(0, &[1000..9000]).sends_nothing().sack(0, &[1000..10000]).sends_nothing();
    assert_eq!(tcp.sender.pipe(), 5000);
}

/// RFC 6937 section 4, second figure: the first fifteen of twenty segments are lost. Two ACKs release new
/// data, the third detects the loss. There is no burst of retransmissions: one segment per delivery while the
/// left edge does not move, and two when it does (RFC 9937 section 6).
// Rule: as prr_reduces_the_rate_in_proportion
#[test]
fn prr_repairs_a_burst_of_losses_without_a_burst() {
    let mut tcp = Client::start(&records(20));
    tcp.sends_full(0..20);
    for (now, end, sent) in [(100, 16, 20), (101, 17, 21), (102, 18, 0), (103, 19, 1), (104, 20, 2)] {
        tcp.at(now).sack(0, &[15_000..end * 1000]).sends_full(sent..sent + 1);
    }
    tcp.ssthresh(10_000.0).losses(1);
    for (now, end, sent) in [(200, 21, 3), (201, 22, 4)] {
        tcp.at(now).sack(0, &[15_000..end * 1000]).sends_full(sent..sent + 1);
    }
    for (now, ack, sent) in [(202, 1, 5..7), (203, 2, 7..9), (204, 3, 9..11)] {
        tcp.at(now).sack(ack * 1000, &[15_000..22_000]).sends_full(sent);
    }
}

/// Six segments were delivered and three sent for them when a SACK reveals ten more losses: the other three are sent, in Linux 5.15
/// only what this SACK delivers.
// Rule: as prr_reduces_the_rate_in_proportion
#[test]
fn prr_of_linux_5_15_spends_no_bank_while_losses_are_revealed() {
    for (profile, sent) in [(Profile::Linux, 3), (Profile::Linux515, 1)] {
        let mut tcp = Client::start(&Settings { profile, ..records(20) });
        tcp.sends_full(0..20).at(100);
        tcp.sack(0, &[1000..2000]).sends_full(20..21).sack(0, &[1000..3000]).sends_full(21..22);
        tcp.sack(0, &[1000..4000]).sends_full(0..1).ssthresh(10_000.0);
        (5..9).for_each(|end| _ = tcp.sack(0, &[1000..end * 1000]).sent());
        tcp.sack(0, &[1000..8000, 18_000..19_000]);
        assert_eq!(tcp.sent().len(), sent, "{profile:?}");
    }
}

/// A retransmission is lost like any segment, if a later transmission is delivered first.
// Rule: RACK: a retransmission is lost like any other segment. [8985 3.2, 6.2; detection/rack.rs sent.rs]
#[test]
fn a_lost_retransmission_is_retransmitted() {
    let mut tcp = Client::start(&records(10));
    tcp.sends_full(0..10).at(100);
    tcp.sack(0, &[1000..2000]).sends_full(10..11).sack(0, &[1000..3000]).sends_full(11..12);
    tcp.sack(0, &[1000..4000]).sends_full(0..1);
    tcp.at(110).sack(0, &[1000..10000]);
    let sent = tcp.sent();
    assert!(sent.iter().all(|segment| segment.seq != tcp.bare_ack(0).ack), "it is not overdue");
    // A segment sent at 110 ms, after the retransmission, is delivered.
    tcp.at(210).sack(0, &[1000..13000]).sends_first("0..1000").losses(1).timeouts(0);
}

/// A loss detected during recovery and not repaired by its end starts the next recovery, as in Linux: the
/// window is reduced again.
// Rule: A loss detected during recovery and not repaired by its end starts the next recovery. [Linux;
// recovery/prr/mod.rs sent.rs]
#[test]
fn an_unrepaired_loss_starts_the_next_recovery() {
    let mut tcp = Client::start(&records(10));
    tcp.sends_full(0..10).at(100);
    tcp.sack(0, &[1000..4000]).sends_first("0..1000").losses(1).ssthresh(5000.0);
    tcp.at(110).sack(0, &[1000..10000]).sends_first("11000..12000");
    // The first new segment is lost and retransmitted before the first repair is acknowledged.
    tcp.at(195).sack(0, &[1000..10000, 11000..12000]).losses(1);
    let missing = tcp.bare_ack(10_000).ack;
    assert!(tcp.sent().iter().any(|segment| segment.seq == missing));
    tcp.at(200).sack(10000, &[11000..12000]).losses(2).ssthresh(2000.0);
}

/// With loss detection by count, a lost retransmission is left to the timer.
// Rule: By count (detection sack): a segment is lost with as many SACKed segments above it as the threshold;
// lost retransmissions are left to the timer. [6675 4; detection/sack.rs]
#[test]
fn counting_does_not_detect_lost_retransmissions() {
    let mut tcp = Client::start(&Settings { detection: Detection::Sack, ..records(10) });
    tcp.sends_full(0..10).at(100).sack(0, &[1000..4000]).sends_first("0..1000");
    tcp.at(110).sack(0, &[1000..10000]).sent();
    tcp.at(210).sack(0, &[1000..12000]);
    assert!(tcp.sent().iter().all(|segment| segment.seq != tcp.bare_ack(0).ack));
}

/// Once reordering was seen, every loss waits for the reordering window.
// Rule: RACK: once reordering was seen, the reordering window always applies. [8985 6.2 step 4;
// detection/rack.rs]
#[test]
fn after_reordering_the_reordering_window_always_applies() {
    let mut tcp = Client::start(&records(10));
    tcp.sends_full(0..10).at(100).sack(0, &[1000..2000]).sends_full(10..11);
    tcp.at(101).ack(2000).sends_full(11..13).at(102);
    tcp.sack(2000, &[3000..4000]).sends_full(13..14).sack(2000, &[3000..5000]).sends_full(14..15);
    tcp.sack(2000, &[3000..6000]).sends_full(15..16).losses(0).timer_at(129);
    tcp.wakes_at(129).sends_first("2000..3000").losses(1);
}

/// Tail losses are not followed by deliveries: a tail loss probe after two round trips retransmits the last
/// segment, well before the RTO (RFC 8985 section 7).
// Rule: Tail loss probe after two round trips: new data, or the last segment. [8985 7.2, 7.3;
// recovery/prr/probe.rs]
#[test]
fn a_tail_loss_probe_repairs_the_tail() {
    // Two ticks later in Linux 5.15, in place of 2 ms.
    let tick = Duration::from_millis(4);
    let old = Settings { profile: Profile::Linux515, tick, tlp: true, ..records(5) };
    let mut tcp = Client::start_with(&old, Some(5000));
    tcp.sends_full(0..5).at(100).ack(1000).timer_at(308).wakes_at(308).sends_full(4..5).timeouts(0);
    let mut tcp = Client::start_with(&Settings { tlp: true, ..records(5) }, Some(5000));
    tcp.sends_full(0..5).at(100).ack(1000).sends_nothing();
    tcp.timer_at(302).wakes_at(302).sends_full(4..5).timeouts(0);
    assert_eq!(tcp.sender.stats().tail_loss_probes, 1);
    // The probe is delivered, and reveals the loss of the three before it.
    tcp.at(402).sack(1000, &[4000..5000]).sends_first("1000..2000").losses(1).timeouts(0);
}

/// A redundant probe does not affect the loss repaired by an earlier one (RFC 8985 section 7.4): the window
/// stays reduced.
// Rule: A loss repaired by a probe reduces the window; a redundant probe undoes nothing. [8985 7.4;
// recovery/prr/probe.rs]
#[test]
fn a_redundant_probe_undoes_nothing() {
    let mut tcp = Client::supplied(&Settings { tlp: true, dsack: true, ..records(8) });
    tcp.supply(8000).sends_full(0..8).at(100).ack(7000).cwnd(15_000.0);
    tcp.wakes_at(400).sends_full(7..8);
    tcp.supply(1000).sends_full(8..9).at(600).ack(9000).ssthresh(7000.0).cwnd(7000.0);
    assert_eq!(tcp.sender.stats().undone_reductions, 0);
    tcp.supply(1000).sends_full(9..10);
    tcp.times_out();
    tcp.sends_full(9..10).ack(10_000).sack(10_000, &[9000..10_000]).sends_nothing().ssthresh(7000.0);
    assert_eq!((tcp.sender.stats().tail_loss_probes, tcp.sender.stats().undone_reductions), (2, 0));
}

/// With new data available, the probe is a new segment, regardless of the window.
// Rule: as a_tail_loss_probe_repairs_the_tail
#[test]
fn a_probe_sends_new_data_if_available() {
    let mut tcp = Client::start(&Settings { tlp: true, ..records(2) });
    tcp.sends_full(0..2).at(100).ack(2000).sends_full(2..6);
    tcp.timer_at(302).wakes_at(302).sends_full(6..7);
    assert_eq!((tcp.sender.stats().tail_loss_probes, tcp.sender.pipe()), (1, 5000));
}

/// The acknowledgements were delayed, not lost: the first releases new data, the second was caused by an
/// original, and the window is restored (RFC 5682 section 3.1).
// Rule: F-RTO: new data after a timeout; an original acknowledged next shows that the timeout was spurious.
// [5682 3.1; recovery/prr/spurious.rs]
#[test]
fn a_spurious_timeout_is_undone() {
    let mut tcp = Client::start(&records(4));
    tcp.sends_full(0..4).at(100).ack(4000).sends_full(4..12).cwnd(8000.0);
    tcp.timer_at(400).wakes_at(400).sends_full(4..5).timeouts(1).cwnd(1000.0).ssthresh(4000.0);
    tcp.at(450).ack(5000).sends_full(12..14);
    tcp.at(460).ack(6000).ssthresh(f64::INFINITY).cwnd(9000.0).sends_full(14..15);
    assert_eq!(tcp.sender.stats().spurious_timeouts, 1);
    assert_eq!(tcp.sender.stats().undone_reductions, 1);
}

/// Without F-RTO and undo, everything is retransmitted.
// Rule: as a_spurious_timeout_is_undone
#[test]
fn a_timeout_without_f_rto_retransmits_everything() {
    let mut tcp = Client::start(&Settings { frto: false, undo: false, ..records(4) });
    tcp.sends_full(0..4).at(100).ack(4000).sends_full(4..12).wakes_at(400).sends_full(4..5);
    tcp.at(450).ack(5000).sends_full(5..7).at(460).ack(6000).sends_full(7..9).ssthresh(4000.0);
}

/// A duplicate after a genuine timeout: lost data are retransmitted in slow start.
// Rule: as a_spurious_timeout_is_undone
#[test]
fn a_genuine_timeout_is_not_undone() {
    let mut tcp = Client::start(&records(4));
    tcp.sends_full(0..4).at(100).ack(4000).sends_full(4..12).wakes_at(400).sends_full(4..5);
    tcp.at(500).ack(5000).sends_full(12..14);
    tcp.at(600).sack(5000, &[12000..13000]).sends_full(5..6).ssthresh(4000.0);
    assert_eq!(tcp.sender.stats().undone_reductions, 0);
}

/// The retransmission was redundant: nothing was lost, and the window is restored (RFC 3708).
// Rule: A reduction is undone if all retransmissions were duplicates, or if an echo is older than the first
// of them. [3708 3, 4015 3; recovery/prr/undo.rs]
#[test]
fn a_dsack_undoes_a_recovery() {
    let mut tcp = Client::start(&Settings { dsack: true, ..records(10) });
    tcp.sends_full(0..10).at(100);
    tcp.sack(0, &[1000..2000]).sends_full(10..11).sack(0, &[1000..3000]).sends_full(11..12);
    tcp.sack(0, &[1000..4000]).sends_full(0..1).ssthresh(5000.0);
    tcp.at(101).ack(4000).sent();
    tcp.at(200).sack(4000, &[0..1000]).ssthresh(f64::INFINITY);
    tcp.sent();
    assert!(tcp.sender.cwnd() >= 10_000.0, "{}", tcp.sender.cwnd());
    assert_eq!(tcp.sender.stats().undone_reductions, 1);
}

/// A second timeout, or one during recovery, does not reduce the window again for the same data.
// Rule: The window is reduced once per window of data. [5681 3.2, 6298 5; recovery/prr/spurious.rs]
#[test]
fn repeated_timeouts_reduce_the_window_once() {
    let mut tcp = Client::start(&records(10));
    tcp.sends_full(0..10).at(100).sack(0, &[1000..4000]).sends_first("0..1000").ssthresh(5000.0);
    let due = tcp.sender.next_wakeup();
    tcp.at_time(due).wakes_at(due.as_nanos() / 1_000_000).sends_first("0..1000").timeouts(1).ssthresh(5000.0);
}

/// Pacing rate: twice the window per round trip in slow start, and 1.2 times the window afterwards.
// Rule: Pacing: two windows per round trip in slow start, 1.2 afterwards; while no round-trip time is known,
// the last rate. [cc/mod.rs state.rs]
#[test]
fn pacing_in_slow_start() {
    let mut tcp = Client::start(&Settings { pacing: true, ..records(10) });
    tcp.sends_full(0..10).at(100).ack(2000);
    // 12 segments in 100 ms, twice: one each 100 / 24 ms.
    tcp.sends_full(10..11);
    let mut last = None;
    for number in 11..14 {
        let due = tcp.sender.next_wakeup();
        tcp.wakes_at_time(due).sends_full(number..number + 1);
        if let Some(last) = last.replace(due) {
            let gap = due.since(last).as_nanos() as f64 / 1e6;
            assert!((gap - 100.0 / 24.0).abs() < 0.001, "{gap} ms");
        }
    }
}

/// After slow start the pacing rate is 1.2 windows per round trip.
// Rule: as pacing_in_slow_start
#[test]
fn pacing_after_slow_start() {
    let beyond = Settings { pacing: true, initial_ssthresh: InitialThreshold::Segments(10), ..records(10) };
    let mut tcp = Client::start(&beyond);
    tcp.sends_full(0..10).at(100).ack(2000).cwnd(10_000.0).sends_full(10..11);
    let due = tcp.sender.next_wakeup().since(ms(100)).as_secs_f64();
    assert!((due - 0.1 / 12.0).abs() < 1e-6, "{due} s");
}

/// Nothing is in flight because of pacing, not because of the receive window: a loss then leads to a timeout,
/// not to a window probe.
// Rule: as pacing_in_slow_start
#[test]
fn waiting_for_pacing_is_not_a_zero_window() {
    let mut tcp = Client::start(&Settings { pacing: true, ..records(1) });
    tcp.sends_full(0..1).at(100).ack(1000).sends_full(1..2).at(101).ack(2000).sends_nothing();
    for _ in 0..9 {
        tcp.times_out();
        tcp.sent();
    }
    let stats = tcp.sender.stats();
    assert!(stats.timeouts > 0 && stats.window_probes == 0, "{stats:?}");
}

/// BSD's estimator forgets the round-trip time after several timeouts; the rate stays, and there is no burst.
// Rule: as pacing_in_slow_start
#[test]
fn a_rate_outlasts_the_round_trip_time() {
    let ticks = Settings { rtt_arithmetic: RttArithmetic::Ticks, frto: false, ..records(4) };
    let mut tcp = Client::start(&Settings { pacing: true, ..ticks });
    tcp.sends_full(0..4).at(100).ack(2000).sent();
    while tcp.sender.rtt().srtt().is_some() {
        tcp.times_out();
        tcp.sent();
    }
    let due = tcp.times_out();
    tcp.sent();
    tcp.at(due + 200).ack(3000).cwnd(2000.0);
    assert_eq!(tcp.sent().len(), 1);
}

/// A DSACK ends the probe's episode: a later acknowledgement does not indicate a loss (RFC 8985 section
/// 7.4.2).
// Rule: as a_redundant_probe_undoes_nothing
#[test]
fn a_dsack_ends_a_probe_episode() {
    let mut tcp = Client::supplied(&Settings { tlp: true, dsack: true, ..records(8) });
    tcp.supply(3000).sends_full(0..3).at(100).ack(2000);
    tcp.times_out();
    tcp.sends_full(2..3).ack(3000).sack(3000, &[2000..3000]).supply(1000).sends_full(3..4);
    tcp.ack(4000).ssthresh(f64::INFINITY).is_not_finished();
}

/// A timeout during loss recovery is not checked for being spurious: an original that arrives then shows
/// nothing (RFC 5682 section 3.1 step 1).
// Rule: as a_spurious_timeout_is_undone
#[test]
fn a_timeout_in_recovery_is_not_checked_by_f_rto() {
    let mut tcp = Client::start(&records(10));
    tcp.sends_full(0..10).at(100).sack(0, &[1000..4000]).sends_first("0..1000");
    let due = tcp.times_out();
    tcp.timeouts(1).sent();
    tcp.at(due + 10).sack(0, &[1000..5000]).sent();
    assert_eq!(tcp.sender.stats().spurious_timeouts, 0);
}

/// Windows in segments after so many ACKs of two segments each, 100 ms apart: a path of 166 kb/s, whose queue
/// lengthens the round trips.
fn grows_on_a_slow_path(slow_start_exit: SlowStartExit, windows: &[(u32, u32)]) {
    let linux = Settings { congestion: Congestion::Cubic, slow_start_exit, ..records(10) };
    let mut tcp = Client::start(&linux);
    tcp.sends_full(0..10);
    for &(number, segments) in windows {
        while tcp.sender.snd_una().0.wrapping_sub(linux.iss) < number * 2000 {
            let next = tcp.sender.snd_una().0.wrapping_sub(linux.iss) / 2000 + 1;
            tcp.at(u64::from(next) * 100).ack(next * 2000).sent();
        }
        tcp.cwnd(f64::from(segments) * 1000.0);
    }
}

/// HyStart leaves slow start at 36 segments, and CUBIC grows: the windows of Linux 6.18.44 on google/packetdrill's
/// cubic-bulk-166k.pkt, without the queue discipline fq.
// Rule: HyStart leaves slow start where Linux does. [cc/hystart.rs]
#[test]
fn hystart_leaves_slow_start_where_linux_does() {
    let windows =
        [(5, 20), (10, 30), (15, 36), (19, 36), (30, 37), (40, 39), (50, 45), (60, 54), (61, 55), (70, 64)];
    grows_on_a_slow_path(SlowStartExit::Hystart, &windows);
}

/// Linux up to 6.13 leaves it at 48 segments, as the script expects: the round that began at a window of 16 segments
/// ends later than one of the flight.
// Rule: as hystart_leaves_slow_start_where_linux_does
#[test]
fn hystart_with_late_rounds_leaves_slow_start_later() {
    let windows = [(5, 20), (10, 30), (15, 40), (19, 48), (30, 49), (40, 50)];
    grows_on_a_slow_path(SlowStartExit::Hystart16, &windows);
}

/// Two copies of the first segment are lost, the second by a timeout. The third fills the gap before data
/// SACKed earlier, which does not make the second timeout spurious.
// Rule: as a_spurious_timeout_is_undone
#[test]
fn data_sacked_before_a_timeout_do_not_make_it_spurious() {
    let mut tcp = Client::start(&records(10));
    tcp.sends_full(0..10).at(100).sack(0, &[1000..10000]).sends_first("0..1000").losses(1).ssthresh(5000.0);
    let first = tcp.times_out();
    tcp.timeouts(1).sends_first("0..1000");
    let second = tcp.times_out();
    assert!(second > first);
    tcp.timeouts(2).sends_first("0..1000").at(second + 100).ack(10_000).ssthresh(5000.0);
    let stats = tcp.sender.stats();
    assert_eq!((stats.spurious_timeouts, stats.undone_reductions), (0, 0));
}

/// The timer runs from the last copy of the first segment: if the first retransmission is lost and
/// retransmitted, the new copy has a full RTO. SACK blocks of segments sent before it restart the timer, too
/// (Linux `tcp_xmit_retransmit_queue`, `tcp_clean_rtx_queue`).
// Rule: The timer runs from the last copy of the first segment. [6298 5; recovery/prr/mod.rs]
#[test]
fn the_timer_runs_from_the_last_copy_of_the_first_segment() {
    let mut tcp = Client::start(&records(10));
    tcp.sends_full(0..10).at(100).sack(0, &[1000..2000]).sends_full(10..11).sack(0, &[1000..3000]);
    tcp.sends_full(11..12).sack(0, &[1000..4000]).sends_full(0..1);
    let due_since = |tcp: &mut Client, milliseconds| {
        let due = Time::ZERO + Duration::from_millis(milliseconds) + tcp.sender.rtt().rto();
        assert_eq!(tcp.sender.next_wakeup(), due, "the timer runs since {milliseconds} ms");
    };
    due_since(&mut tcp, 100);
    tcp.at(150).sack(0, &[1000..10000]).sent();
    due_since(&mut tcp, 150);
    // Segments sent after the copy arrive, and the copy does not.
    tcp.at(250).sack(0, &[1000..10000, 12000..13000]).sends_first("0..1000");
    due_since(&mut tcp, 250);
    tcp.at(260).sack(0, &[1000..10000, 12000..14000]).sent();
    due_since(&mut tcp, 260);
}

/// A flow limited by the receive window does not increase its congestion window, paced or not; it is not
/// application-limited either.
// Rule: A flow limited by the receive window neither increases cwnd nor counts as application-limited. [7661
// 4.1; recovery/prr/mod.rs]
#[test]
fn a_receive_window_limited_flow_does_not_grow() {
    for pacing in [false, true] {
        let mut tcp = Client::start(&Settings { pacing, cwnd_validation: true, ..records(10) });
        tcp.with_window(10_000).sends_full(0..10);
        for round in 1..40_u32 {
            tcp.at(u64::from(round) * 100);
            for segment in 1..=10 {
                tcp.ack((round - 1) * 10_000 + segment * 1000);
                tcp.sent();
            }
            let until = u64::from(round) * 100 + 99;
            while tcp.sender.next_wakeup().as_nanos() < until * 1_000_000 {
                let due = tcp.sender.next_wakeup();
                tcp.wakes_at_time(due).sent();
            }
        }
        assert!(tcp.sender.cwnd() <= 21_000.0, "pacing: {pacing}, {}", tcp.sender.cwnd());
    }
}

/// Detection by count waits for as many segments as reordering has spanned, rounded up, and for at most 300.
// Rule: as counting_does_not_detect_lost_retransmissions
#[test]
fn reordering_raises_the_number_of_segments_that_indicate_a_loss() {
    let counting = |initial| Settings { detection: Detection::Sack, ..records(initial) };
    // The first segment arrives after the tenth, which is half as long.
    let mut tcp = Client::supplied_without_nagle(&counting(30));
    tcp.supply(9_500).sent();
    tcp.at(100).sack(0, &[9000..9500]).sack(8000, &[9000..9500]).supply(20_000).sent();
    tcp.at(200).sack(8000, &[9000..17_500]).losses(0).sent();
    tcp.sack(8000, &[9000..18_500]).losses(1).sent();
    // 700 segments, of which the last arrives first.
    let mut tcp = Client::start(&counting(700));
    tcp.sends_full(0..700).at(100);
    for ack in [0, 1000] {
        tcp.sack(ack, &[699_000..700_000]).sent();
    }
    tcp.sack(1000, &[2000..300_000, 699_000..700_000]).losses(0).sent();
    tcp.sack(1000, &[2000..301_000, 699_000..700_000]).losses(1).sent();
}

/// The reordering window is a quarter of the minimum round-trip time, which a shorter one replaces.
// Rule: as a_hole_is_lost_after_the_reordering_window
#[test]
fn a_shorter_round_trip_shortens_the_reordering_window() {
    let mut tcp = Client::supplied(&records(10));
    tcp.supply(1000).sends_full(0..1).at(100).ack(1000);
    tcp.at(200).supply(1000).sends_full(1..2).at(240).ack(2000);
    // Overdue after 40 ms, the window of 10 ms, and the timer slack of 2 ms.
    tcp.at(300).supply(4000).sends_full(2..6).at(340).sack(2000, &[3000..4000]).timer_at(352);
}

/// As in Linux, the variation grows with each sample, and shrinks only at the end of a round trip: with the first
/// acknowledgement of data sent after the end of the round before. By hand, with a minimum RTO of 200 ms.
// Rule: as timer::the_first_sample
#[test]
fn the_round_trip_variation_shrinks_once_per_round() {
    let settings = Settings { rtt_arithmetic: RttArithmetic::Linux, ..records(10) };
    let mut tcp = Client::supplied(&settings);
    tcp.srtt(None).supply(1000).sends_full(0..1).at(100).ack(1000).rto(300);
    // 190 ms above the average: the variation becomes 340 ms.
    tcp.at(200).supply(1000).sends_full(1..2).at(490).ack(2000).rto(464);
    tcp.at(500).supply(4000).sends_full(2..6).at(600).ack(3000).rto(446);
    // The second and the last acknowledgement of the same round.
    tcp.at(601).ack(4000).rto(443).at(602).ack(6000).rto(441);
}
