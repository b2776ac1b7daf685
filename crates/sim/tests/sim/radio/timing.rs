//! Event times, calculated by hand. On the test link a byte takes a millisecond.

use std::sync::mpsc;

use lasthop_base::{BitRate, Bytes, Duration};
use lasthop_proto::arq::{Backoff, Retransmissions};
use lasthop_proto::{Component, DropReason, LinkOutcome, Probe};
use lasthop_sim::{Expansion, Exposed, LinkStats, QueueLimit, RadioConfig};

use crate::radio::harness::{
    Bench, Did, Recorder, ms, mtu, packet, plain, scripted, selective_repeat, stop_and_wait,
};
use Did::{Deliver, Drop, Signal};
use DropReason::{AttemptsExhausted, Corrupted, QueueFull};
use LinkOutcome::{AttemptFailed, Delivered, Discarded};

/// The wide-area link of the EBSN paper.
fn wide_area(exposed: Exposed) -> RadioConfig {
    RadioConfig {
        rate: BitRate::from_bps(19_200).unwrap(),
        expansion: Expansion::new(1.5).unwrap(),
        mtu: mtu(128),
        exposed,
        ..plain()
    }
}

/// A retransmission limit and a backoff of 5 ms.
fn arq(config: RadioConfig, limit: u32) -> RadioConfig {
    let wait = Backoff::Fixed(Duration::from_millis(5));
    RadioConfig { arq: stop_and_wait(Retransmissions::AtMost(limit), wait), ..config }
}

#[test]
fn a_packet_of_576_bytes_takes_four_and_a_half_fragments() {
    for (exposed, full, half) in [(Exposed::OnAir, 1536, 768), (Exposed::Payload, 1024, 512)] {
        let (asked, questions) = mpsc::channel();
        let mut bench = Bench::new(wide_area(exposed), Box::new(Recorder(asked)));
        bench.send(ms(7), packet(0, 576));
        assert_eq!(bench.finish(), [(ms(367), Deliver(0))]);
        let expected = [
            (ms(7), ms(87), full),
            (ms(87), ms(167), full),
            (ms(167), ms(247), full),
            (ms(247), ms(327), full),
            (ms(327), ms(367), half),
        ];
        assert_eq!(questions.try_iter().collect::<Vec<_>>(), expected);
        let stats = LinkStats {
            attempts: 5,
            bits_on_air: 4 * 1536 + 768,
            air_time: Duration::from_millis(360),
            delivered: 1,
            ..LinkStats::default()
        };
        assert_eq!(bench.link.stats(), stats);
    }
}

#[test]
fn several_packets_fit_into_the_propagation_delay() {
    let mut bench = Bench::new(RadioConfig { delay: Duration::from_secs(1), ..plain() }, scripted([]));
    bench.send(ms(0), packet(0, 10));
    bench.send(ms(0), packet(1, 20));
    bench.send(ms(500), packet(2, 5));
    let expected = [(ms(1010), Deliver(0)), (ms(1030), Deliver(1)), (ms(1505), Deliver(2))];
    assert_eq!(bench.finish(), expected);
}

#[test]
fn without_an_arq_all_fragments_of_a_lost_packet_are_sent() {
    let config = RadioConfig { mtu: mtu(4), delay: Duration::from_millis(100), ..plain() };
    let mut bench = Bench::new(config, scripted([false]));
    bench.send(ms(0), packet(0, 10));
    bench.send(ms(0), packet(1, 10));
    assert_eq!(bench.finish(), [(ms(110), Drop(0, Corrupted)), (ms(120), Deliver(1))]);
    let stats = bench.link.stats();
    assert_eq!((stats.attempts, stats.failed_attempts), (6, 1));
    assert_eq!((stats.delivered, stats.corrupted), (1, 1));
}

#[test]
fn stop_and_wait_blocks_until_the_head_unit_arrives() {
    let config = RadioConfig { mtu: mtu(4), delay: Duration::from_millis(100), ..plain() };
    let mut bench = Bench::new(arq(config, 13), scripted([true, false, false]));
    bench.send(ms(0), packet(0, 6));
    bench.send(ms(0), packet(1, 3));
    let expected = [
        (ms(4), Signal(0, Delivered, 1)),
        (ms(6), Signal(0, AttemptFailed, 1)),
        (ms(13), Signal(0, AttemptFailed, 2)),
        (ms(20), Signal(0, Delivered, 3)),
        (ms(23), Signal(1, Delivered, 1)),
        (ms(120), Deliver(0)),
        (ms(123), Deliver(1)),
    ];
    assert_eq!(bench.finish(), expected);
}

#[test]
fn the_last_failed_attempt_discards_the_packet_and_starts_the_next() {
    let config = RadioConfig { mtu: mtu(4), ..plain() };
    let mut bench = Bench::new(arq(config, 1), scripted([false, false]));
    bench.send(ms(0), packet(0, 400));
    bench.send(ms(0), packet(1, 4));
    let expected = [
        (ms(4), Signal(0, AttemptFailed, 1)),
        (ms(13), Signal(0, AttemptFailed, 2)),
        (ms(13), Signal(0, Discarded, 2)),
        (ms(13), Drop(0, AttemptsExhausted)),
        (ms(17), Signal(1, Delivered, 1)),
        (ms(17), Deliver(1)),
    ];
    assert_eq!(bench.finish(), expected);
    assert_eq!((bench.link.stats().discarded, bench.link.stats().delivered), (1, 1));
}

/// Units of 4 ms in slots of 5 ms; feedback on a lost unit after 12 ms.
///
/// | from | unit, attempt | outcome | next attempt from |
/// |-----:|---------------|---------|------------------:|
/// |   10 | 0.0, 1        | lost    |                26 |
/// |   15 | 0.1 (2 ms), 1 | ok      |                   |
/// |   20 | 1.0, 1        | lost    |                36 |
/// |   25 | 1.1, 1        | ok      |                   |
/// |   30 | 0.0, 2        | lost    |                46 |
/// |   35 | 1.2 (1 ms), 1 | ok      |                   |
/// |   40 | 1.0, 2        | ok      |                   |
/// |   45 | 2.0 (3 ms), 1 | ok      |                   |
/// |   50 | 0.0, 3        | ok      |                   |
///
/// Packets leave in order once the first is complete, and take 100 ms to the other end.
#[test]
fn selective_repeat_retransmits_in_slots_after_feedback() {
    let arq = selective_repeat(Retransmissions::AtMost(2), 12, 5);
    let config = RadioConfig { mtu: mtu(4), delay: Duration::from_millis(100), arq, ..plain() };
    let fates = [false, true, false, true, false, true, true, true, true];
    let mut bench = Bench::new(config, scripted(fates));
    bench.send(ms(7), packet(0, 6));
    bench.send(ms(7), packet(1, 9));
    bench.send(ms(37), packet(2, 3));
    let expected = [
        (ms(14), Signal(0, AttemptFailed, 1)),
        (ms(17), Signal(0, Delivered, 1)),
        (ms(24), Signal(1, AttemptFailed, 1)),
        (ms(29), Signal(1, Delivered, 1)),
        (ms(34), Signal(0, AttemptFailed, 2)),
        (ms(36), Signal(1, Delivered, 1)),
        (ms(44), Signal(1, Delivered, 2)),
        (ms(48), Signal(2, Delivered, 1)),
        (ms(54), Signal(0, Delivered, 3)),
        (ms(154), Deliver(0)),
        (ms(154), Deliver(1)),
        (ms(154), Deliver(2)),
    ];
    assert_eq!(bench.finish(), expected);
}

/// The paper's link: units of 480 bytes take a slot of 10 ms at 384 kbps, and feedback takes 60 ms. A unit
/// lost six times in a row is sent every 70 ms and its packet is then discarded: the first attempt ends at 20
/// ms, the last at 20 + 5 · 70 = 370 ms. Packets behind it have waited.
#[test]
fn the_selective_fec_paper_discards_a_packet_after_six_attempts() {
    let paper = RadioConfig {
        rate: BitRate::from_bps(384_000).unwrap(),
        mtu: mtu(480),
        arq: selective_repeat(Retransmissions::AtMost(5), 60, 10),
        ..plain()
    };
    let lost = [1, 8, 15, 22, 29, 36];
    let mut bench = Bench::new(paper, scripted((0..37).map(move |attempt| !lost.contains(&attempt))));
    (0..13).for_each(|id| bench.send(ms(0), packet(id, 1440)));
    let log = bench.finish();
    let of_the_first = log.iter().filter(|(_, did)| matches!(did, Signal(0, ..) | Drop(0, _)));
    let failed = |number| (ms(20 + 70 * u64::from(number - 1)), Signal(0, AttemptFailed, number));
    let mut expected = vec![(ms(10), Signal(0, Delivered, 1)), failed(1), (ms(30), Signal(0, Delivered, 1))];
    expected.extend((2..=6).map(failed));
    expected.extend([(ms(370), Signal(0, Discarded, 6)), (ms(370), Drop(0, AttemptsExhausted))]);
    assert_eq!(of_the_first.copied().collect::<Vec<_>>(), expected);
    // Of the 37 attempts up to then 29 belong to other packets: nine complete ones, and two thirds of a
    // tenth.
    let delivered: Vec<_> = log.iter().filter(|(_, did)| matches!(did, Deliver(_))).copied().collect();
    let mut expected: Vec<_> = (1..=9).map(|id| (ms(370), Deliver(id))).collect();
    expected.extend([(ms(380), Deliver(10)), (ms(410), Deliver(11)), (ms(440), Deliver(12))]);
    assert_eq!(delivered, expected);
}

#[test]
fn an_idle_link_starts_between_slots() {
    let arq = selective_repeat(Retransmissions::Unlimited, 0, 10);
    let mut bench = Bench::queued(RadioConfig { arq, ..plain() }, QueueLimit::Packets(0), scripted([]));
    bench.send(ms(3), packet(0, 10));
    bench.send(ms(9), packet(1, 10));
    bench.send(ms(20), packet(2, 10));
    let expected = [
        (ms(9), Drop(1, QueueFull)),
        (ms(20), Signal(0, Delivered, 1)),
        (ms(20), Deliver(0)),
        (ms(30), Signal(2, Delivered, 1)),
        (ms(30), Deliver(2)),
    ];
    assert_eq!(bench.finish(), expected);
}

#[test]
fn the_packet_at_the_head_does_not_count_as_waiting() {
    for queue in [QueueLimit::Packets(1), QueueLimit::Bytes(Bytes(9))] {
        let mut bench = Bench::queued(arq(plain(), 13), queue, scripted([false]));
        bench.send(ms(0), packet(0, 10));
        bench.send(ms(0), packet(1, 9));
        bench.send(ms(0), packet(2, 1));
        // Between attempts the link is free and the packet is still at the head of the queue.
        bench.send(ms(12), packet(3, 1));
        // At this instant packet 0 arrives and packet 1 leaves the queue; the link was not woken before.
        bench.send(ms(25), packet(4, 9));
        let delivered = [(ms(25), 0), (ms(34), 1), (ms(43), 4)];
        let log = bench.finish();
        let dropped: Vec<_> = log.iter().filter(|(_, did)| matches!(did, Drop(..))).copied().collect();
        assert_eq!(dropped, [(ms(0), Drop(2, QueueFull)), (ms(12), Drop(3, QueueFull))]);
        for (at, id) in delivered {
            assert!(log.contains(&(at, Deliver(id))), "{log:?}");
        }
        assert_eq!(bench.link.stats().overflowed, 2);
    }
}

#[test]
fn an_idle_link_accepts_a_packet_without_queue_space() {
    for queue in [QueueLimit::Packets(0), QueueLimit::Bytes(Bytes(3))] {
        let mut bench = Bench::queued(plain(), queue, scripted([]));
        bench.send(ms(0), packet(0, 10));
        bench.send(ms(9), packet(1, 10));
        bench.send(ms(10), packet(2, 10));
        let expected = [(ms(9), Drop(1, QueueFull)), (ms(10), Deliver(0)), (ms(20), Deliver(2))];
        assert_eq!(bench.finish(), expected);
    }
}

#[test]
fn an_empty_packet_takes_no_air_time() {
    let (asked, questions) = mpsc::channel();
    let mut bench = Bench::new(plain(), Box::new(Recorder(asked)));
    bench.send(ms(3), packet(0, 0));
    bench.send(ms(3), packet(1, 0));
    assert_eq!(bench.finish(), [(ms(3), Deliver(0)), (ms(3), Deliver(1))]);
    assert_eq!(questions.try_iter().collect::<Vec<_>>(), [(ms(3), ms(3), 0); 2]);
}

#[test]
fn the_link_shows_its_queue_and_its_attempt() {
    #[derive(Default)]
    struct Shown(Vec<(&'static str, f64)>);
    impl Probe for Shown {
        fn value(&mut self, name: &'static str, value: f64) {
            self.0.push((name, value));
        }
    }
    let mut bench = Bench::new(arq(plain(), 13), scripted([false]));
    bench.send(ms(0), packet(0, 10));
    bench.send(ms(0), packet(1, 30));
    for (at, packets, bytes, attempt) in
        [(9, 1.0, 30.0, 1.0), (12, 1.0, 30.0, 0.0), (16, 1.0, 30.0, 2.0), (26, 0.0, 0.0, 1.0)]
    {
        bench.until(ms(at));
        let mut shown = Shown::default();
        bench.link.show(&mut shown);
        assert_eq!(
            shown.0,
            [("queue_packets", packets), ("queue_bytes", bytes), ("attempt", attempt)],
            "at {at} ms"
        );
    }
}
