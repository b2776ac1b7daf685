//! DualPI2 against RFC 9332 and its appendix A.

use lasthop_base::{Bytes, Duration, Streams, Time};
use lasthop_link::queue::dualpi2::Params;
use lasthop_link::queue::{Discipline, Dualpi2};
use lasthop_proto::{DropReason, Ecn};
use lasthop_sim::QueueLimit;

use crate::disciplines::bench::{Bench, us};

const NEVER: Duration = Duration::from_secs(1_000_000);

fn dualpi2(params: Params) -> Bench<Dualpi2> {
    Bench::new(Dualpi2::new(params, Streams::new(1, 0).stream("dualpi2")))
}

fn unlimited() -> Params {
    Params { limit: QueueLimit::Unlimited, ..Params::default() }
}

/// A queue with a base probability of `probability` for the next hundred seconds, after one update at which its delay was
/// 100 ms.
fn at_probability(probability: f64, ecn: Ecn) -> Bench<Dualpi2> {
    let update = Duration::from_secs(100);
    let mut bench =
        dualpi2(Params { update, alpha: 0.0, beta: 10.0 * probability, step: NEVER, ..unlimited() });
    (0..10).for_each(|_| bench.come(us(99_900_000), 0, 1500, ecn));
    bench.come(us(100_000_000), 0, 1500, ecn);
    assert!((bench.queue.probability() - probability).abs() < 1e-12);
    bench
}

/// The share of departing packets that are signalled: marked, or dropped and lost to the count of departures.
fn signalled(bench: &mut Bench<Dualpi2>, ecn: Ecn, packets: u64) -> (f64, f64) {
    let (marked, dropped) = (bench.queue.stats().marked, bench.drops.len());
    for number in 0..packets {
        bench.come(us(100_000_000 + number), 0, 1500, ecn);
        bench.go(us(100_000_000 + number));
    }
    let share = |count: f64| count / packets as f64;
    (share((bench.queue.stats().marked - marked) as f64), share((bench.drops.len() - dropped) as f64))
}

/// Classic packets are dropped with p'², or marked with it if they have ECT(0); scalable ones are marked with 2 p' (RFC 9332
/// section 2.1), and none of them is dropped.
#[test]
fn signals_are_coupled_by_a_square() {
    let (packets, p) = (100_000, 0.2);
    let within = |found: f64, expected: f64| {
        let error = (expected * (1.0 - expected) / packets as f64).sqrt();
        assert!((found - expected).abs() < 4.0 * error + 1e-9, "{found}, not {expected} ± {error}");
    };
    for (ecn, marks, drops) in [
        (Ecn::NotEct, 0.0, p * p),
        (Ecn::Ect0, p * p, 0.0),
        (Ecn::Ect1, 2.0 * p, 0.0),
        (Ecn::Ce, 2.0 * p, 0.0),
    ] {
        // Enough of a backlog that drops do not empty the queue.
        let mut bench = at_probability(p, ecn);
        (0..10_000).for_each(|_| bench.come(us(100_000_000), 0, 1500, ecn));
        let (marked, dropped) = signalled(&mut bench, ecn, packets);
        within(marked, marks);
        within(dropped / (1.0 + dropped), drops);
    }
}

/// Above p' = 1/2 the coupled probability is more than one: classic packets are dropped whatever they can, and scalable ones
/// too with p'², all others being marked.
#[test]
fn an_overload_is_answered_by_drops() {
    for ecn in [Ecn::Ect0, Ecn::Ect1] {
        let mut bench = at_probability(0.6, ecn);
        (0..60_000).for_each(|_| bench.come(us(100_000_000), 0, 1500, ecn));
        let (marked, dropped) = signalled(&mut bench, ecn, 60_000);
        let share = dropped / (1.0 + dropped);
        assert!((share - 0.36).abs() < 0.01, "{share}");
        assert_eq!(marked, if ecn == Ecn::Ect1 { 1.0 } else { 0.0 });
    }
}

/// Each update moves p' by 41/256 of the distance from the target and 819/256 of the change, in seconds, also while nothing
/// arrives or leaves: the delay is that of the packet that waits longest.
#[test]
fn the_base_probability_follows_the_longest_delay() {
    let mut bench = dualpi2(unlimited());
    bench.come(us(2_000), 0, 1500, Ecn::NotEct);
    bench.come(us(9_000), 0, 1500, Ecn::Ect1);
    // At 16 ms the head of the C queue has waited for 14 ms, and at 32 ms for 30 ms.
    bench.come(us(40_000), 0, 1500, Ecn::NotEct);
    let (alpha, beta) = (41.0 / 256.0, 819.0 / 256.0);
    let first = alpha * -0.001 + beta * 0.014;
    let second = first + alpha * 0.015 + beta * 0.016;
    assert!((bench.queue.probability() / second - 1.0).abs() < 1e-12);
}

/// An unresponsive source at 5/4 of the rate: one of five packets is dropped, so that p' is √(1/5), and the delay is the
/// target.
#[test]
fn the_delay_of_an_unresponsive_source_is_the_target() {
    let mut bench = dualpi2(unlimited());
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
    // What leaves has left behind the packets of its delay, a fifth of which will be dropped.
    assert!((15.0..20.0).contains(&delay), "{delay} packets wait");
    assert!((probability - 0.2_f64.sqrt()).abs() < 0.02, "the base probability is {probability}");
}

/// With packets in both queues, a tenth of the bytes is classic, whatever the sizes; an empty queue leaves all to the other.
#[test]
fn the_classic_queue_keeps_its_share() {
    let mut bench = dualpi2(Params { step: NEVER, target: NEVER, ..unlimited() });
    for _ in 0..3_000 {
        bench.come(us(0), 0, 1_000, Ecn::NotEct);
        bench.come(us(0), 0, 300, Ecn::Ect1);
    }
    let (mut classic, mut scalable) = (0, 0);
    while scalable < 3_000 * 300 {
        let packet = bench.go(us(0)).expect("both queues are full");
        match packet.ecn {
            Ecn::Ect1 => scalable += packet.size.0,
            _ => classic += packet.size.0,
        }
    }
    let share = classic as f64 / (classic + scalable) as f64;
    assert!((share - 0.1).abs() < 0.002, "{share}");
    assert!(bench.go(us(0)).is_some_and(|packet| packet.ecn == Ecn::NotEct));
}

/// Scalable packets that waited for more than the step are marked, classic ones are not; one that waits alone is served first.
#[test]
fn the_step_marks_scalable_packets_alone() {
    let mut bench = dualpi2(unlimited());
    bench.come(us(0), 0, 1500, Ecn::Ect0);
    bench.come(us(0), 0, 1500, Ecn::Ect1);
    assert_eq!(bench.go(us(1_000)).map(|packet| packet.ecn), Some(Ecn::Ect1));
    bench.come(us(2_000), 0, 1500, Ecn::Ect1);
    assert_eq!(bench.go(us(3_001)).map(|packet| packet.ecn), Some(Ecn::Ce));
    assert_eq!(bench.go(us(14_000)).map(|packet| packet.ecn), Some(Ecn::Ect0));
    assert_eq!(bench.queue.stats().marked, 1);
}

/// Long idle and blocked times take no longer to account for than short ones, with the same result.
#[test]
fn long_times_are_accounted_for_at_once() {
    let mut bench = at_probability(0.2, Ecn::Ect0);
    while bench.go(us(100_000_001)).is_some() {}
    bench.come(Time::ZERO + Duration::from_secs(80_000_000), 0, 1500, Ecn::Ect0);
    assert_eq!(bench.queue.queued(), (1, Bytes(1500)));
    let mut bench = dualpi2(unlimited());
    bench.come(us(0), 0, 1500, Ecn::Ect0);
    bench.come(Time::ZERO + Duration::from_secs(80_000_000), 0, 1500, Ecn::Ect0);
    assert_eq!(bench.queue.probability().to_bits(), 1.0_f64.to_bits());
    while bench.go(Time::ZERO + Duration::from_secs(80_000_000)).is_some() {}
    bench.come(Time::ZERO + Duration::from_secs(80_000_100), 0, 1500, Ecn::Ect0);
    assert_eq!(bench.queue.probability().to_bits(), 0);
}

/// The limit is of both queues together.
#[test]
fn a_full_queue_drops_arrivals() {
    let mut bench = dualpi2(Params { limit: QueueLimit::Packets(3), ..Params::default() });
    for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ect1, Ecn::Ect0, Ecn::Ect1] {
        bench.come(us(0), 0, 1500, ecn);
    }
    assert_eq!(bench.dropped(), [3, 4]);
    assert!(bench.drops.iter().all(|&(_, _, reason)| reason == DropReason::QueueFull));
}
