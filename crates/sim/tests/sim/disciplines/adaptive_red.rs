//! Adaptive RED against the rules of Linux.

use lasthop_base::{Bytes, Duration, Probability, Streams};
use lasthop_link::queue::adaptive_red::Params;
use lasthop_link::queue::{AdaptiveRed, Discipline, Parameters};
use lasthop_proto::{DropReason, Ecn};

use crate::disciplines::bench::{Bench, us};

/// 1 µs per byte.
fn red(params: Params) -> Bench<AdaptiveRed> {
    let random = Streams::new(1, 0).stream("red");
    Bench::new(AdaptiveRed::new(params, Duration::from_micros(params.mean_packet.0), random))
}

/// Thresholds of 10 and 30 KB. A burst of ten packets makes the weight 1/2.
fn quick() -> Params {
    Params { limit: Bytes(120_000), max: Some(Bytes(30_000)), burst: Some(10), ..Params::default() }
}

/// Keeps the backlog at `queued` KB for `arrivals` packets at one instant, and returns the gaps between marks.
fn gaps(bench: &mut Bench<AdaptiveRed>, queued: usize, arrivals: u64) -> Vec<u64> {
    while bench.queue.queued().0 < queued {
        bench.come(us(0), 0, 1_000, Ecn::Ect0);
    }
    let (mut gaps, mut since, mut marked) = (Vec::new(), 0, bench.queue.stats().marked);
    for _ in 0..arrivals {
        bench.come(us(0), 0, 1_000, Ecn::Ect0);
        since += 1;
        if bench.queue.stats().marked > marked {
            marked = bench.queue.stats().marked;
            gaps.push(since);
            since = 0;
        }
        bench.go(us(0));
    }
    gaps.split_off(gaps.len().min(2))
}

/// With an average of b bytes between the thresholds, the probability is p = 0.02 (b − min) / (max − min), and the number of
/// arrivals between marks is uniform on 1 to 1/p.
#[test]
fn marks_are_spread_evenly() {
    // The average of arrivals that find 20 KB, a half of the way: p = 1 %.
    let mut bench = red(quick());
    let gaps = gaps(&mut bench, 20, 400_000);
    assert!((bench.queue.average() - 20_000.0).abs() < 1.0, "{}", bench.queue.average());
    let n = gaps.len() as f64;
    assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&1), Some(&100)));
    let mean = gaps.iter().sum::<u64>() as f64 / n;
    let error = (100.0_f64.powi(2) / 12.0 / n).sqrt();
    assert!((mean - 50.5).abs() < 4.0 * error, "{mean} ± {error}");
    assert!(bench.drops.is_empty());
}

/// Below the lower threshold nothing is marked. From the upper one on every packet is dropped with `hard_drop`, and marked
/// without it.
#[test]
fn thresholds_are_in_bytes() {
    let mut bench = red(quick());
    assert!(gaps(&mut bench, 9, 10_000).is_empty());
    for (hard_drop, dropped, marked) in [(true, true, false), (false, false, true)] {
        let mut bench = red(Params { hard_drop, probability: Probability::new(1e-9).unwrap(), ..quick() });
        (0..100).for_each(|_| bench.come(us(0), 0, 1_000, Ecn::Ect1));
        assert_eq!((!bench.drops.is_empty(), bench.queue.stats().marked > 0), (dropped, marked));
        assert!(bench.drops.iter().all(|&(_, _, reason)| reason == DropReason::ActiveQueue));
        if hard_drop {
            // At 30 KB and one packet the average, a half behind, is 30 KB.
            assert_eq!(bench.queue.queued().0, 31);
        }
    }
}

/// As `tc` computes it: burst + 1 − min/avpkt is at most (1 − (1 − w)^burst)/w. For these, tc prints ewma 1, 2, 5.
#[test]
fn the_weight_follows_from_the_burst() {
    for (limit, burst, log) in [(1_000_000, Some(84), 1), (48_000, Some(5), 2), (400_000, None, 5)] {
        let params = Params { limit: Bytes(limit), burst, ..Params::default() };
        assert!(params.validate().is_ok());
        let mut bench = red(params);
        // The first arrival finds an empty queue that has never been used, the second finds a packet of 1,000 B.
        (0..2).for_each(|_| bench.come(us(0), 0, 1_000, Ecn::Ect0));
        let weight = bench.queue.average() / 1_000.0;
        assert!((weight - 0.5_f64.powi(log)).abs() < 1e-12, "{weight} at a limit of {limit}");
    }
}

/// Every 500 ms the probability rises by a quarter of itself, at most 1 %, while the average is above the middle fifth, up to
/// 50 %; below it falls by a tenth, down to 1 %; within it stays.
#[test]
fn the_probability_adapts() {
    for (queued, from, expected) in [
        // 0.02 → 0.025 → 0.03125 → 0.0390625 → 0.048828125, then in steps of 1 %.
        (25, 0.02, vec![0.025, 0.031_25, 0.039_062_5, 0.048_828_125, 0.058_828_125, 0.068_828_125]),
        (25, 0.495, vec![0.505, 0.505]),
        (20, 0.02, vec![0.02, 0.02]),
        (12, 0.02, vec![0.018, 0.0162]),
        (12, 0.0105, vec![0.009_45, 0.009_45]),
    ] {
        let mut bench = red(Params { probability: Probability::new(from).unwrap(), ..quick() });
        while bench.queue.queued().0 < queued {
            bench.come(us(0), 0, 1_000, Ecn::Ect0);
        }
        let mut now = 0;
        for (end, expected) in (1..).map(|halves| 500_000 * halves).zip(expected) {
            while now <= end {
                bench.come(us(now), 0, 1_000, Ecn::Ect0);
                bench.go(us(now));
                now += 10_000;
            }
            let found = bench.queue.probability();
            assert!((found - expected).abs() < 1e-12, "{found}, not {expected}, at {queued} KB and {end} µs");
        }
    }
}

/// While the queue is empty, the average decays by (1 − w) per packet that the link could have sent, and so the probability
/// falls; a long time takes no longer to account for than a short one.
#[test]
fn an_idle_time_counts_as_packets() {
    let mut bench = red(quick());
    gaps(&mut bench, 20, 100);
    while bench.go(us(0)).is_some() {}
    let average = bench.queue.average();
    bench.come(us(3_000), 0, 1_000, Ecn::Ect0);
    assert!((bench.queue.average() / (average / 8.0) - 1.0).abs() < 1e-12);
    while bench.go(us(3_000)).is_some() {}
    bench.come(us(1_000_000_000_000), 0, 1_000, Ecn::Ect0);
    assert!(bench.queue.probability() < 0.01 && bench.queue.average() < 1e-9);
}
