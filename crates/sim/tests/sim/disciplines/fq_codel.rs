//! FQ-CoDel against RFC 8290.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_link::queue::fq_codel::Params;
use lasthop_link::queue::{Discipline, FqCodel};
use lasthop_proto::{DropReason, Ecn};
use lasthop_sim::QueueLimit;

use crate::disciplines::bench::{Bench, us};

/// FQ-CoDel with a target that no packet exceeds.
fn scheduler() -> Params {
    Params { limit: QueueLimit::Unlimited, target: Duration::from_secs(1_000), ..Params::default() }
}

fn flow_of(bench: &mut Bench<FqCodel>, now: Time) -> u32 {
    bench.go(now).expect("a packet waits").flow.0
}

/// Two backlogged flows get the same number of bytes for any packet sizes, within a quantum and a packet.
#[test]
fn flows_share_the_link_by_bytes() {
    for sizes in [[1500, 1500], [1500, 300], [1500, 40], [41, 1400], [700, 1514]] {
        for quantum in [300, 1514, 9000] {
            let mut bench = Bench::new(FqCodel::new(Params { quantum: Bytes(quantum), ..scheduler() }));
            let total = 1_500_000;
            for flow in [0, 1] {
                (0..total / sizes[flow])
                    .for_each(|_| bench.come(us(0), flow as u32, sizes[flow], Ecn::NotEct));
            }
            let mut sent = [0u64, 0];
            let bound = quantum + sizes[0].max(sizes[1]);
            while sent.iter().all(|&bytes| bytes < total - bound) {
                let packet = bench.go(us(0)).expect("both have a backlog");
                sent[packet.flow.index()] += packet.size.0;
                let apart = sent[0].abs_diff(sent[1]);
                assert!(apart <= bound, "{sent:?} with packets of {sizes:?} and a quantum of {quantum}");
            }
        }
    }
}

/// A flow whose queue was empty is served before backlogged flows, for one quantum.
#[test]
fn a_sparse_flow_is_served_first() {
    let mut bench = Bench::new(FqCodel::new(scheduler()));
    (0..20).for_each(|_| bench.come(us(0), 0, 1500, Ecn::NotEct));
    (0..20).for_each(|_| bench.come(us(0), 1, 1500, Ecn::NotEct));
    for step in 0..4 {
        flow_of(&mut bench, us(step));
    }
    bench.come(us(5), 2, 100, Ecn::NotEct);
    assert_eq!(flow_of(&mut bench, us(6)), 2);
    // From its second quantum on it is served like the others.
    (0..20).for_each(|_| bench.come(us(7), 3, 1500, Ecn::NotEct));
    let order: Vec<_> = (8..16).map(|step| flow_of(&mut bench, us(step))).collect();
    assert_eq!(order.iter().filter(|&&flow| flow == 3).count(), 4, "{order:?}");
    assert_eq!(order[..2], [3, 3], "1500 bytes leave 14 of 1514: {order:?}");
}

/// A flow that enqueues a packet after each of its departures counts as new at most every second round, so a
/// backlogged flow gets its share.
#[test]
fn a_flow_of_single_packets_does_not_starve_backlogged_flows() {
    let mut bench = Bench::new(FqCodel::new(scheduler()));
    (0..400).for_each(|_| bench.come(us(0), 0, 1500, Ecn::NotEct));
    bench.come(us(0), 1, 1500, Ecn::NotEct);
    let mut sent = [0, 0];
    for step in 1..400 {
        let flow = flow_of(&mut bench, us(step));
        sent[flow as usize] += 1;
        if flow == 1 {
            bench.come(us(step), 1, 1500, Ecn::NotEct);
        }
    }
    assert!(sent[0] >= 199 && sent[1] >= 190, "{sent:?}");
}

/// Two flows that alternate do not starve a third: each is empty before its next packet arrives, at the
/// departure of the other's. A flow whose queue ran empty is not new at once.
#[test]
fn alternating_sparse_flows_do_not_starve_backlogged_flows() {
    let mut bench = Bench::new(FqCodel::new(scheduler()));
    (0..400).for_each(|_| bench.come(us(0), 0, 1500, Ecn::NotEct));
    (1..3).for_each(|flow| bench.come(us(0), flow, 1500, Ecn::NotEct));
    let (mut sent, mut before) = ([0; 3], 0);
    for step in 1..300 {
        let flow = flow_of(&mut bench, us(step));
        sent[flow as usize] += 1;
        if before != 0 {
            bench.come(us(step), before, 1500, Ecn::NotEct);
        }
        before = flow;
    }
    assert!(sent.iter().all(|&packets| packets >= 95), "{sent:?}");
}

/// Half of the packets of the queue with the most bytes are dropped from its head, at most 64.
#[test]
fn an_overflow_drops_from_the_longest_queue() {
    let limited = |packets| Params { limit: QueueLimit::Packets(packets), ..scheduler() };
    let mut bench = Bench::new(FqCodel::new(limited(10)));
    (0..8).for_each(|_| bench.come(us(0), 0, 1000, Ecn::Ect0));
    (8..10).for_each(|_| bench.come(us(0), 1, 1500, Ecn::NotEct));
    assert!(bench.drops.is_empty());
    bench.come(us(0), 2, 100, Ecn::NotEct);
    assert_eq!(bench.dropped(), [0, 1, 2, 3]);
    assert!(bench.drops.iter().all(|&(_, _, reason)| reason == DropReason::QueueFull));
    // Now 4000 bytes of flow 0 and 3000 of flow 1.
    assert_eq!(bench.queue.queued(), (7, Bytes(7_100)));
    // The queue length is in bytes, not in packets.
    let mut small = Bench::new(FqCodel::new(limited(10)));
    (0..8).for_each(|_| small.come(us(0), 0, 100, Ecn::NotEct));
    (8..11).for_each(|_| small.come(us(0), 1, 1500, Ecn::NotEct));
    assert_eq!(small.dropped(), [8]);
    let mut many = Bench::new(FqCodel::new(limited(200)));
    (0..201).for_each(|_| many.come(us(0), 0, 1000, Ecn::NotEct));
    assert_eq!(many.dropped(), (0..64).collect::<Vec<_>>());
    assert_eq!(many.queue.stats().overflowed, 64);
}

/// Flow numbers map to queues, and flows share a queue only if there are more flows than queues.
#[test]
fn flows_map_to_queues_by_number() {
    let mut bench = Bench::new(FqCodel::new(Params { flows: 2, ..scheduler() }));
    for flow in [0, 2, 4, 1] {
        (0..2).for_each(|_| bench.come(us(0), flow, 1514, Ecn::NotEct));
    }
    let order: Vec<_> = (0..8).map(|_| flow_of(&mut bench, us(0))).collect();
    assert_eq!(order, [0, 1, 0, 1, 2, 2, 4, 4]);
}

/// Each queue has its own CoDel: of two flows, only the one with the long delay has drops.
#[test]
fn each_queue_has_its_own_codel() {
    for ecn in [Ecn::NotEct, Ecn::Ect0] {
        let mut bench = Bench::new(FqCodel::new(Params::default()));
        let mut marked = 0;
        // In 10 ms eleven packets of flow 0 and one of flow 1 arrive, and ten packets depart.
        for step in 0..2_000 {
            let now = us(step * 1_000);
            bench.come(now, 0, 1500, ecn);
            if step % 10 == 0 {
                bench.come(now, 0, 1500, ecn);
                bench.come(now, 1, 1500, ecn);
            }
            let packet = bench.go(now).expect("there is a backlog");
            marked += u64::from(packet.ecn == Ecn::Ce);
            assert!(packet.flow.0 == 0 || packet.ecn != Ecn::Ce, "flow 1 has no backlog");
        }
        assert!(bench.drops.iter().all(|(_, packet, _)| packet.flow.0 == 0), "flow 1 has no backlog");
        let (drops, stats) = (bench.drops.len() as u64, bench.queue.stats());
        assert_eq!((stats.early_drops, stats.marked), (drops, marked));
        assert_eq!((drops > 20, marked > 20), (ecn == Ecn::NotEct, ecn == Ecn::Ect0), "{drops}, {marked}");
    }
}
