//! RED against Floyd and Jacobson (1993), figure 2.

use lasthop_base::{Bytes, Duration, Probability, Streams, Time};
use lasthop_link::queue::red::Params;
use lasthop_link::queue::{Discipline, Red};
use lasthop_proto::{DropReason, Ecn};
use lasthop_sim::QueueLimit;

use crate::disciplines::bench::{Bench, us};

const PACKET_TIME: Duration = Duration::from_micros(500);

fn red(params: Params) -> Bench<Red> {
    Bench::new(Red::new(params, PACKET_TIME, Streams::new(1, 0).stream("red")))
}

fn probability(p: f64) -> Probability {
    Probability::new(p).unwrap()
}

/// RED whose average equals the current queue length.
fn at_once(params: Params) -> Bench<Red> {
    red(Params { limit: QueueLimit::Unlimited, weight: probability(1.0), ..params })
}

/// The average moves by its weight with each arrival. Idle time counts as the number of packets that the link
/// could have sent.
#[test]
fn the_average_is_exponentially_weighted() {
    let weight = 0.02;
    let mut bench = red(Params { weight: probability(weight), max: 1e9, min: 1e8, ..Params::default() });
    let mut random = Streams::new(2, 0).stream("arrivals");
    let (mut average, mut length, mut empty_since) = (0.0, 0u32, 0.0);
    let mut now = 0;
    for _ in 0..20_000 {
        now += random.below(2_000);
        if random.bernoulli(0.49) {
            if length == 0 {
                let idle = (now as f64 - empty_since) / 500.0;
                average *= (idle * (1.0 - weight).ln()).exp();
            } else {
                average = (1.0 - weight) * average + weight * f64::from(length);
            }
            bench.come(us(now), 0, 500, Ecn::NotEct);
            length = (length + 1).min(50);
        } else if bench.go(us(now)).is_some() {
            length -= 1;
            if length == 0 {
                empty_since = now as f64;
            }
        }
        let found = bench.queue.average();
        assert!((found - average).abs() < 1e-9 * (1.0 + average), "{found}, not {average}, at {now} µs");
    }
    assert!(average > 0.0 && bench.queue.stats().early_drops == 0);
}

/// The numbers of arrivals between marks, with `queued` packets in the queue at each arrival.
fn gaps(params: Params, queued: usize, arrivals: u64) -> (Vec<u64>, Bench<Red>) {
    let mut bench = at_once(params);
    let (mut gaps, mut since) = (Vec::new(), 0);
    while bench.queue.queued().0 < queued {
        bench.come(us(0), 0, 500, Ecn::Ect0);
    }
    let mut marked = bench.queue.stats().marked;
    for _ in 0..arrivals {
        bench.come(us(0), 0, 500, Ecn::Ect0);
        since += 1;
        if bench.queue.stats().marked > marked {
            marked += 1;
            gaps.push(since);
            since = 0;
        }
        bench.go(us(0));
    }
    gaps.remove(0);
    (gaps, bench)
}

/// At an average half-way between the thresholds the probability p is half of `max_probability`. The number
/// of arrivals between marks is uniform on 1 to 1/p − 1 in the paper, and on 1/p to 2/p − 1 with ns-2's
/// `wait`.
#[test]
fn marks_are_spread_evenly() {
    let base = Params { max_probability: probability(0.1), ..Params::default() };
    for (wait, least, most) in [(false, 1, 19), (true, 20, 39)] {
        let (gaps, bench) = gaps(Params { wait, ..base }, 10, 200_000);
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&least), Some(&most)));
        let n = gaps.len() as f64;
        let values = (most - least + 1) as f64;
        for gap in least..=most {
            let share = gaps.iter().filter(|&&found| found == gap).count() as f64 / n;
            let error = (1.0 / values * (1.0 - 1.0 / values) / n).sqrt();
            assert!((share - 1.0 / values).abs() < 5.0 * error, "wait {wait}: {share} of the gaps are {gap}");
        }
        assert!(bench.drops.is_empty(), "all could be marked");
    }
}

/// The probability rises from 0 at `min` to `max_probability` at `max`, and to 1 at twice `max`. The longest
/// gap between marks is 1/p.
#[test]
fn the_probability_follows_the_average() {
    let base = Params { wait: false, max_probability: probability(0.1), ..Params::default() };
    for (queued, p) in [(6, 0.01), (7, 0.02), (9, 0.04), (15, 0.1), (20, 0.4), (25, 0.7)] {
        let (gaps, _) = gaps(base, queued, 100_000);
        let longest = (1.0_f64 / p - 1e-9).floor().max(1.0) as u64;
        let found = *gaps.iter().max().unwrap();
        assert!(
            found.abs_diff(longest) <= 1,
            "{found} packets at most between marks at {queued}, not {longest}"
        );
    }
    for queued in [0, 4] {
        let mut bench = at_once(base);
        while bench.queue.queued().0 < queued {
            bench.come(us(0), 0, 500, Ecn::Ect0);
        }
        for _ in 0..10_000 {
            bench.come(us(0), 0, 500, Ecn::Ect0);
            bench.go(us(0));
        }
        assert_eq!(bench.queue.stats().marked, 0, "below the lower threshold");
    }
}

/// From twice `max` on, or from `max` if not gentle, every arrival is dropped, ECN-capable or not; below,
/// packets that are not ECN-capable are dropped instead of marked.
#[test]
fn all_packets_are_dropped_above_the_upper_threshold() {
    for (gentle, most) in [(true, 30), (false, 15)] {
        let params = Params { gentle, max_probability: probability(1e-9), ..Params::default() };
        let mut bench = at_once(Params { wait: true, ..params });
        (0..100).for_each(|_| bench.come(us(0), 0, 500, Ecn::Ect1));
        assert_eq!((bench.queue.queued().0, bench.drops.len()), (most, 100 - most));
        assert!(bench.drops.iter().all(|&(_, _, reason)| reason == DropReason::ActiveQueue));
    }
    for (ecn, marks) in [(Ecn::Ect0, true), (Ecn::NotEct, false)] {
        let mut bench = at_once(Params { max_probability: probability(0.5), ..Params::default() });
        (0..10).for_each(|_| bench.come(us(0), 0, 500, ecn));
        for _ in 0..100 {
            while bench.queue.queued().0 < 10 {
                bench.come(us(0), 0, 500, ecn);
            }
            bench.come(us(0), 0, 500, ecn);
            bench.go(us(0));
        }
        let stats = bench.queue.stats();
        assert_eq!((stats.marked > 0, stats.early_drops > 0), (marks, !marks));
    }
}

/// An overflow drops the arrival, as in drop-tail.
#[test]
fn a_full_queue_drops_arrivals() {
    let mut bench = red(Params { limit: QueueLimit::Bytes(Bytes(1_000)), ..Params::default() });
    (0..4).for_each(|_| bench.come(Time::ZERO, 0, 400, Ecn::Ect0));
    assert_eq!(bench.dropped(), [2, 3]);
    assert!(bench.drops.iter().all(|&(_, _, reason)| reason == DropReason::QueueFull));
}
