//! The policer against the arithmetic of a token bucket.

use lasthop_base::{BitRate, Bytes, Streams};
use lasthop_link::queue::policer::Params;
use lasthop_link::queue::{Discipline, Policer};
use lasthop_proto::{DropReason, Ecn};
use lasthop_sim::QueueLimit;

use crate::disciplines::bench::{Bench, us};

/// 8 Mb/s, or a byte per microsecond.
fn policer(burst: u64, limit: QueueLimit) -> Bench<Policer> {
    let rate = BitRate::from_bps(8_000_000).expect("a rate");
    Bench::new(Policer::new(Params { limit, rate, burst: Bytes(burst) }))
}

/// The bucket is full at the start, a packet takes its bytes if all are there, and unused tokens beyond the burst are lost.
#[test]
fn packets_take_tokens_or_are_dropped() {
    let mut bench = policer(3_000, QueueLimit::Unlimited);
    (0..3).for_each(|_| bench.come(us(0), 0, 1_000, Ecn::Ect0));
    bench.come(us(0), 0, 1, Ecn::NotEct);
    // 999 of 1,000 B, which the packet does not take; a microsecond later there are enough.
    bench.come(us(999), 0, 1_000, Ecn::NotEct);
    bench.come(us(1_000), 0, 1_000, Ecn::NotEct);
    // A second is worth a burst at most.
    (0..4).for_each(|_| bench.come(us(1_001_000), 0, 1_000, Ecn::NotEct));
    bench.come(us(1_001_000), 0, 3_001, Ecn::NotEct);
    assert_eq!(bench.dropped(), [3, 4, 9, 10]);
    assert!(bench.drops.iter().all(|&(_, _, reason)| reason == DropReason::ActiveQueue));
    assert_eq!(bench.queue.stats().early_drops, 4);
}

/// In no interval does more pass than the burst and the rate allow, and a source that exceeds the rate gets all of it but less
/// than a packet.
#[test]
fn what_passes_is_burst_and_rate() {
    for seed in 0..50 {
        let mut random = Streams::new(5, seed).stream("arrivals");
        let burst = 10_000 + random.below(20_000);
        let mut bench = policer(burst, QueueLimit::Unlimited);
        let (mut now, mut offered) = (0, Vec::new());
        for _ in 0..2_000 {
            now += random.below(1_000);
            let size = 40 + random.below(1_461);
            bench.come(us(now), 0, size, Ecn::NotEct);
            offered.push((now, size));
        }
        let dropped = bench.dropped();
        let passed: Vec<_> = (0..)
            .zip(&offered)
            .filter(|(number, _)| !dropped.contains(number))
            .map(|(_, each)| *each)
            .collect();
        for first in (0..passed.len()).step_by(97) {
            let mut sum = 0;
            for &(at, size) in &passed[first..] {
                sum += size;
                assert!(sum <= burst + (at - passed[first].0), "seed {seed}: {sum} B until {at} µs");
            }
        }
        // The mean arrival is 1.5 times the rate: from the first drop on, the bucket is never full.
        let since = bench.drops[0].0;
        let sum: u64 = passed.iter().filter(|(at, _)| us(*at) >= since).map(|(_, size)| size).sum();
        let tokens = us(now).since(since).as_nanos() / 1_000;
        assert!(sum + 1_500 >= tokens, "seed {seed}: {sum} of {tokens} B");
    }
}

/// What passes waits in a drop-tail queue for the link, whose drops are counted apart.
#[test]
fn a_full_queue_behind_the_policer_drops_too() {
    let mut bench = policer(5_000, QueueLimit::Packets(2));
    (0..6).for_each(|_| bench.come(us(0), 0, 1_000, Ecn::Ect0));
    let reasons: Vec<_> = bench.drops.iter().map(|&(_, _, reason)| reason).collect();
    let full = DropReason::QueueFull;
    assert_eq!(reasons, [full, full, full, DropReason::ActiveQueue]);
    assert_eq!((bench.queue.stats().overflowed, bench.queue.stats().early_drops), (3, 1));
    assert!(bench.go(us(0)).is_some_and(|packet| packet.ecn == Ecn::Ect0));
}
