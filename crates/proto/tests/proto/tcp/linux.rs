//! Behaviour of Linux, segment by segment: adapted from google/packetdrill's scripts (cubic, fast_recovery,
//! limited_transmit, sack, slow_start). Segments hold 1000 bytes; CUBIC with an initial window of ten
//! segments.

use std::ops::Range;

use lasthop_base::Duration;
use lasthop_proto::tcp::{Congestion, Flavour, Settings, SlowStartExit};

use crate::tcp::dialogue::{Client, settings};

/// A connection established after one round trip `rtt_ms`, with `segments` sent.
fn open(rtt_ms: u64, segments: u32) -> Client {
    let settings = Settings {
        congestion: Congestion::Cubic,
        slow_start_exit: SlowStartExit::Hystart,
        rto_min: Duration::from_millis(200),
        handshake: true,
        ..settings(Flavour::Prr, 10)
    };
    let mut tcp = Client::supplied(&settings);
    tcp.open().sends(&["SYN"]).at(rtt_ms).syn_ack().sends(&["ACK"]);
    tcp.supply(u64::from(segments) * 1000).sends_full(0..segments.min(10));
    tcp
}

/// `(after, ack, sacked, sent)`: `after` milliseconds later an ACK arrives, with SACK blocks, in segments;
/// `sent` are the segments sent in reply.
type Step<'a> = (u64, u32, &'a [Range<u32>], &'a [u32]);

/// Runs the steps from `now` on. Returns the time of the last one.
fn steps(tcp: &mut Client, mut now: u64, steps: &[Step]) -> u64 {
    for (after, ack, sacked, sent) in steps {
        now += after;
        let blocks: Vec<_> = sacked.iter().map(|block| block.start * 1000..block.end * 1000).collect();
        let texts: Vec<_> = sent.iter().map(|n| format!("{}..{}", n * 1000, (n + 1) * 1000)).collect();
        tcp.at(now).sack(ack * 1000, &blocks);
        tcp.sends(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    }
    now
}

fn window(tcp: &mut Client, cwnd: u32, ssthresh: f64) -> &mut Client {
    tcp.cwnd(f64::from(cwnd) * 1000.0).ssthresh(ssthresh * 1000.0)
}

/// One of ten segments is lost, and the window is reduced to seven, which are in flight: one segment per
/// delivery (prr-ss-10pkt-lost-1).
// Rule: Proportional rate reduction, segment by segment, as in Linux. [6937 3; recovery/prr/mod.rs]
#[test]
fn one_of_ten_segments_is_lost() {
    let mut tcp = open(100, 10);
    let now = steps(&mut tcp, 100, &[(110, 0, &[1..2], &[]), (10, 0, &[1..3], &[]), (10, 0, &[1..4], &[0])]);
    window(&mut tcp, 7, 7.0).at(now + 20).supply(7000).sends_nothing();
    let now = steps(
        &mut tcp,
        now + 20,
        &[
            (10, 0, &[1..5], &[10]),
            (10, 0, &[1..6], &[11]),
            (10, 0, &[1..7], &[12]),
            (10, 0, &[1..8], &[13]),
            (10, 0, &[1..9], &[14]),
            (10, 0, &[1..10], &[15]),
            (20, 10, &[], &[16]),
        ],
    );
    window(&mut tcp, 7, 7.0);
    steps(&mut tcp, now, &[(40, 12, &[], &[]), (20, 14, &[], &[]), (20, 16, &[], &[]), (20, 17, &[], &[])]);
}

/// The first four segments are lost: one is retransmitted per delivery, and data written later find the
/// window at ssthresh (prr-ss-30pkt-lost1_4).
// Rule: as one_of_ten_segments_is_lost
#[test]
fn the_first_four_segments_are_lost() {
    let mut tcp = open(10, 10);
    let now = steps(
        &mut tcp,
        10,
        &[
            (10, 0, &[4..5], &[]),
            (2, 0, &[4..6], &[]),
            (0, 0, &[4..7], &[0]),
            (0, 0, &[4..8], &[1]),
            (0, 0, &[4..9], &[2]),
            (0, 0, &[4..10], &[3]),
            (10, 1, &[4..10], &[]),
            (0, 2, &[4..10], &[]),
            (0, 3, &[4..10], &[]),
            (0, 10, &[], &[]),
        ],
    );
    tcp.at(now + 10).supply(10_000).sends_full(10..17);
}

/// Four segments are lost, and one of the retransmissions: packet conservation, slow start up to ssthresh,
/// and packet conservation again (prr-ss-30pkt-lost-1_4-11_16).
// Rule: as one_of_ten_segments_is_lost
#[test]
fn a_retransmission_is_lost() {
    let mut tcp = open(10, 20);
    steps(
        &mut tcp,
        10,
        &[
            (10, 0, &[4..5], &[10]),
            (2, 0, &[4..6], &[11]),
            (2, 0, &[4..7], &[0]),
            (2, 0, &[4..8], &[1]),
            (2, 0, &[4..9], &[2]),
            (2, 0, &[4..10], &[3]),
            (2, 0, &[4..11], &[12]),
            (2, 0, &[4..12], &[13]),
            (10, 1, &[4..12], &[14, 15]),
            (2, 1, &[2..12], &[1, 16]),
            (2, 1, &[2..13], &[17]),
            (2, 1, &[2..14], &[18]),
        ],
    );
}

/// SACK blocks of a reordered acknowledgement are processed (prr-ss-ack-below-snd_una-cubic).
// Rule: SACK blocks of a reordered acknowledgement are processed. [2018 5; sender.rs]
#[test]
fn sack_blocks_of_an_old_acknowledgement_count() {
    let mut tcp = open(10, 10);
    let now = steps(
        &mut tcp,
        10,
        &[
            (10, 0, &[1..2], &[]),
            (0, 0, &[1..3], &[]),
            (0, 0, &[1..3, 8..9], &[0]),
            (12, 4, &[8..9], &[4, 5, 6]),
        ],
    );
    tcp.supply(10_000).sends_nothing();
    steps(&mut tcp, now, &[(2, 3, &[5..7], &[7, 10])]);
}

/// Limited transmit on the first two duplicates, which turn out to be reordering (limited-transmit-sack).
// Rule: Limited transmit, application-limited slow start, and ssthresh after a timeout, as in Linux. [3042,
// 7661, 9438 4.6; recovery/prr/mod.rs cc/cubic.rs]
#[test]
fn limited_transmit() {
    let mut tcp = open(100, 15);
    steps(
        &mut tcp,
        100,
        &[
            (110, 0, &[1..2], &[10]),
            (10, 0, &[1..3], &[11]),
            (10, 3, &[], &[12, 13]),
            (20, 5, &[], &[14]),
            (20, 7, &[], &[]),
            (20, 9, &[], &[]),
        ],
    );
    tcp.losses(0);
}

/// One SACK block, and a quarter of a round trip later all segments below it are lost; blocks that arrive out
/// of order release a segment each (sack-shift-sacked-7-5-6-8-9-fack, -7-3-4-8-9).
// Rule: as one_of_ten_segments_is_lost
#[test]
fn sack_blocks_out_of_order() {
    for rest in [
        [&[5..6, 7..8][..], &[5..8], &[5..9], &[5..10]],
        [&[3..4, 7..8], &[3..5, 7..8], &[3..5, 7..9], &[3..5, 7..10]],
    ] {
        let mut tcp = open(100, 10);
        steps(&mut tcp, 100, &[(100, 0, &[7..8], &[])]);
        tcp.wakes_at(227).sends_full(0..1);
        assert_eq!(tcp.sender.pipe(), 3000);
        for (number, blocks) in (1..3).zip(rest) {
            steps(&mut tcp, 227, &[(0, 0, blocks, &[number])]);
        }
    }
}

/// In slow start an application-limited window grows up to twice the flight (slow-start-app-limited and
/// -9-packets-out).
// Rule: as limited_transmit
#[test]
fn slow_start_while_application_limited() {
    for (segments, end) in [(10, 20), (9, 18)] {
        let mut tcp = open(100, segments);
        let mut now = 205;
        for acked in [2, 4, 6, 8] {
            tcp.at(now).ack(acked * 1000).cwnd(f64::from(10 + acked) * 1000.0);
            now += 5;
        }
        tcp.at(now).ack(segments * 1000).cwnd(f64::from(end) * 1000.0);
    }
}

/// HyStart leaves slow start at the ninth sample of a round that is longer by an eighth
/// (cubic-hystart-delay-rtt-jumps-upward).
// Rule: as records::hystart_leaves_slow_start_where_linux_does
#[test]
fn hystart_exits_on_a_longer_round_trip() {
    for (rtt, longer, found) in [(200, 240, true), (80, 91, true), (80, 89, false)] {
        let mut tcp = open(rtt, 30);
        tcp.at(2 * rtt).ack(10_000).sends_full(10..30).cwnd(20_000.0);
        for n in 0..9 {
            tcp.at(2 * rtt + longer + n).ack(12_000 + 2000 * n as u32);
            let leaves = n == 8 && found;
            tcp.cwnd(if leaves { 36_000.0 } else { 22_000.0 + 2000.0 * n as f64 });
            tcp.ssthresh(if leaves { 36_000.0 } else { f64::INFINITY });
        }
    }
}

/// A shorter round trip among them does not end slow start (cubic-hystart-delay-min-rtt-jumps-downward).
// Rule: as records::hystart_leaves_slow_start_where_linux_does
#[test]
fn hystart_ignores_a_shorter_round_trip() {
    let mut tcp = open(200, 28);
    tcp.at(400).ack(10_000).sends_full(10..28).cwnd(20_000.0);
    tcp.at(580).supply(2000).sends_full(28..30);
    for n in 0..10 {
        tcp.at(600 + n).ack(12_000 + 2000 * n as u32).cwnd(22_000.0 + 2000.0 * n as f64);
        tcp.ssthresh(f64::INFINITY);
    }
}

/// After a timeout with ten segments in flight CUBIC's ssthresh is seven; it is kept for at least eight ACKs
/// (cubic-rto-ss-ca-cwnd-bump).
// Rule: as limited_transmit
#[test]
fn cubic_ssthresh_after_a_timeout() {
    let mut tcp = open(100, 1);
    tcp.at(200).ack(1000).cwnd(10_000.0).supply(1000).sends_full(1..2);
    // A probe is sent at the time of the timeout, which is postponed by one round trip.
    tcp.wakes_at(500).sends_full(1..2).timeouts(0);
    tcp.wakes_at(800).sends_full(1..2).timeouts(1).at(900).ack(2000);
    window(&mut tcp, 2, 7.0).supply(200_000).sends_full(2..4);
    let mut now = 1000;
    for (after, ack, cwnd) in
        [(0, 3, 3), (2, 4, 4), (98, 5, 5), (2, 6, 6), (2, 7, 7), (2, 8, 7), (98, 9, 7), (2, 10, 7)]
    {
        now += after;
        tcp.at(now).ack(ack * 1000).cwnd(f64::from(cwnd) * 1000.0).sent();
    }
}
