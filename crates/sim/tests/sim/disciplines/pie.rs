//! PIE against RFC 8033.

use lasthop_base::{Duration, Streams, Time};
use lasthop_link::queue::pie::Params;
use lasthop_link::queue::{Discipline, Pie};
use lasthop_proto::{DropReason, Ecn};
use lasthop_sim::QueueLimit;

use crate::disciplines::bench::{Bench, us};

fn pie(params: Params) -> Bench<Pie> {
    Bench::new(Pie::new(params, Streams::new(1, 0).stream("pie")))
}

fn unlimited() -> Params {
    Params { limit: QueueLimit::Unlimited, ..Params::default() }
}

/// A link that takes 1 ms per packet, with a standing queue: a packet arrives for each that leaves.
struct Standing {
    bench: Bench<Pie>,
    /// In ms.
    now: u64,
}

impl Standing {
    /// With `queued` packets, each of which waits for as many milliseconds.
    fn new(params: Params, queued: u64) -> Standing {
        let mut bench = pie(params);
        (0..queued).for_each(|number| bench.come(us(1_000 * number), 0, 1500, Ecn::NotEct));
        Standing { bench, now: queued }
    }

    fn step(&mut self, ecn: Ecn) {
        self.bench.go(us(1_000 * self.now));
        self.bench.come(us(1_000 * self.now), 0, 1500, ecn);
        self.now += 1;
    }
}

/// The weights of RFC 8033 section 4.2, 1/8 and 5/4 Hz, and by how much they are smaller below each probability.
const SCALES: [(f64, f64); 7] = [
    (1e-6, 2048.0),
    (1e-5, 512.0),
    (1e-4, 128.0),
    (1e-3, 32.0),
    (1e-2, 8.0),
    (1e-1, 2.0),
    (f64::INFINITY, 1.0),
];

fn scale(probability: f64) -> f64 {
    SCALES.iter().find(|(below, _)| probability < *below).expect("the last is infinite").1
}

/// At a constant delay of 40 ms, 25 ms above the target, each update adds 25 ms / 8 Hz, scaled by the probability.
/// ECN-capable packets keep the queue standing, up to 10 %.
#[test]
fn the_probability_rises_by_the_scaled_distance_from_the_target() {
    let mut standing = Standing::new(unlimited(), 40);
    // Two updates, so that the delay has been the same for both.
    (0..60).for_each(|_| standing.step(Ecn::Ect0));
    let mut seen = Vec::new();
    let mut before = standing.bench.queue.probability();
    let mut expected = before;
    while expected < 0.09 {
        standing.step(Ecn::Ect0);
        let now = standing.bench.queue.probability();
        if now > before {
            expected += 0.125 * 0.025 / scale(expected);
            assert!((now / expected - 1.0).abs() < 1e-9, "{now}, not {expected}");
            seen.push(scale(before));
            before = now;
        }
    }
    seen.dedup();
    assert_eq!(seen, [128.0, 32.0, 8.0, 2.0]);
}

/// An update is made every 15 ms, also while nothing arrives or leaves, and a change of the delay counts ten times as much as
/// its distance from the target.
#[test]
fn a_change_of_the_delay_counts_ten_times() {
    let mut bench = pie(unlimited());
    (0..100).for_each(|_| bench.come(us(0), 0, 1500, Ecn::NotEct));
    // One packet leaves at 10 ms: a delay of 10 ms, and after the next departure one of 25 ms.
    bench.go(us(10_000));
    bench.come(us(16_000), 0, 1500, Ecn::NotEct);
    // 1/8 (10 − 15) ms + 5/4 (10 − 0) ms, over 2048.
    let first = (0.125 * -0.005 + 1.25 * 0.010) / 2048.0;
    assert!((bench.queue.probability() / first - 1.0).abs() < 1e-12);
    bench.go(us(25_000));
    bench.come(us(31_000), 0, 1500, Ecn::NotEct);
    let second = first + (0.125 * 0.010 + 1.25 * 0.015) / scale(first);
    assert!((bench.queue.probability() / second - 1.0).abs() < 1e-12);
    // Two further updates with an unchanged delay.
    bench.come(us(61_000), 0, 1500, Ecn::NotEct);
    let mut third = second;
    (0..2).for_each(|_| third += 0.125 * 0.010 / scale(third));
    assert!((bench.queue.probability() / third - 1.0).abs() < 1e-12);
}

/// The first 150 ms of a busy time are a burst, in which nothing is dropped, however fast the probability rises.
#[test]
fn a_burst_passes() {
    let (update, alpha, beta) = (Duration::from_millis(1), 32.0, 32.0);
    let mut bench = pie(Params { update, alpha, beta, ..unlimited() });
    for ms in 0..1_000 {
        (0..5).for_each(|_| bench.come(us(1_000 * ms), 0, 1500, Ecn::NotEct));
        bench.go(us(1_000 * ms));
    }
    let first = bench.drops.first().expect("five times the rate of the link").0;
    // The delay is half of the target at about 10 ms; until then the burst has not begun.
    assert!((us(155_000)..us(175_000)).contains(&first), "the first drop is at {first}");
}

/// An unresponsive source at 5/4 of the rate: the integral part brings the delay to the target, and one in five packets is
/// dropped. The account lets no packet go before 0.85, so that the probability is higher: gaps between drops are at least
/// 0.85/p, and 1/p beyond that on average.
#[test]
fn the_delay_of_an_unresponsive_source_is_the_target() {
    let mut bench = pie(unlimited());
    let (mut delays, mut probabilities, mut drops) = (0.0, 0.0, 0);
    let (settled, end) = (100_000, 400_000);
    for ms in 0..end {
        bench.come(us(1_000 * ms), 0, 1500, Ecn::NotEct);
        if ms % 4 == 0 {
            bench.come(us(1_000 * ms), 0, 1500, Ecn::NotEct);
        }
        if ms == settled {
            drops = bench.drops.len();
        }
        bench.go(us(1_000 * ms));
        if ms >= settled {
            delays += bench.queue.queued().0 as f64;
            probabilities += bench.queue.probability();
        }
    }
    let time = (end - settled) as f64;
    let (delay, probability) = (delays / time, probabilities / time);
    let share = (bench.drops.len() - drops) as f64 / (1.25 * time);
    assert!((share - 0.2).abs() < 0.002, "{share} of the packets are dropped");
    assert!((delay - 15.0).abs() < 1.0, "the delay is {delay} ms");
    // ⌈0.85/p⌉ − 1 + 1/p = 5 at p = 1/3.
    assert!((probability - 1.0 / 3.0).abs() < 0.04, "the probability is {probability}");
}

/// Packets are marked up to a probability of 10 %, and dropped above it.
#[test]
fn packets_are_marked_up_to_ten_percent() {
    for (ecn, marks) in [(Ecn::Ect0, true), (Ecn::Ect1, true), (Ecn::NotEct, false)] {
        let mut bench = pie(unlimited());
        let (mut highest_mark, mut first_drop) = (0.0_f64, f64::INFINITY);
        for ms in 0..20_000 {
            for _ in 0..if ms % 3 == 0 { 2 } else { 1 } {
                let (marked, dropped) = (bench.queue.stats().marked, bench.drops.len());
                bench.come(us(1_000 * ms), 0, 1500, ecn);
                let probability = bench.queue.probability();
                if bench.queue.stats().marked > marked {
                    highest_mark = highest_mark.max(probability);
                }
                if bench.drops.len() > dropped {
                    first_drop = first_drop.min(probability);
                }
            }
            bench.go(us(1_000 * ms));
        }
        assert_eq!(highest_mark > 0.0, marks);
        assert!(highest_mark <= 0.1 && first_drop < f64::INFINITY);
        assert_eq!(first_drop > 0.1, marks, "{first_drop}");
    }
}

/// Fewer than two packets are no queue, whatever their delay.
#[test]
fn two_packets_are_always_acceptable() {
    for (queued, drops) in [(2, false), (3, true)] {
        let mut bench = pie(unlimited());
        (0..queued).for_each(|_| bench.come(us(0), 0, 1500, Ecn::NotEct));
        for tenth in 1..200 {
            bench.go(us(100_000 * tenth));
            bench.come(us(100_000 * tenth), 0, 1500, Ecn::NotEct);
        }
        assert_eq!(!bench.drops.is_empty(), drops, "with {queued} packets");
    }
}

/// A long idle time takes no time to account for, and leaves the probability at zero and the burst allowed again.
#[test]
fn an_idle_time_clears_the_probability() {
    let mut standing = Standing::new(unlimited(), 40);
    (0..1_000).for_each(|_| standing.step(Ecn::Ect0));
    let Standing { mut bench, now } = standing;
    assert!(bench.queue.probability() > 0.01);
    while bench.go(us(1_000 * now)).is_some() {}
    bench.come(Time::ZERO + Duration::from_secs(1_000_000), 0, 1500, Ecn::NotEct);
    assert_eq!(bench.queue.probability().to_bits(), 0);
}

/// An overflow is counted apart.
#[test]
fn a_full_queue_drops_arrivals() {
    let mut bench = pie(Params { limit: QueueLimit::Packets(3), ..Params::default() });
    (0..5).for_each(|_| bench.come(us(0), 0, 1500, Ecn::Ect0));
    assert_eq!(bench.dropped(), [3, 4]);
    assert!(bench.drops.iter().all(|&(_, _, reason)| reason == DropReason::QueueFull));
    assert_eq!(bench.queue.stats().overflowed, 2);
}
