//! Invariants of every discipline under random traffic.

use lasthop_base::{Bytes, Duration, Streams};
use lasthop_link::queue::{Discipline, Management, codel, fq_codel, red};
use lasthop_proto::{DropReason, Ecn, Packet};
use lasthop_sim::QueueLimit;
use lasthop_testing::random::{management, pick};

use crate::disciplines::bench::{Bench, seq, us};

const FIELDS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];

struct Boxed(Box<dyn Discipline>);

impl Discipline for Boxed {
    fn enqueue(
        &mut self,
        now: lasthop_base::Time,
        packet: Packet,
        at_once: bool,
        out: &mut lasthop_proto::Out,
    ) {
        self.0.enqueue(now, packet, at_once, out);
    }
    fn dequeue(&mut self, now: lasthop_base::Time, out: &mut lasthop_proto::Out) -> Option<Packet> {
        self.0.dequeue(now, out)
    }
    fn queued(&self) -> (usize, Bytes) {
        self.0.queued()
    }
    fn stats(&self) -> &lasthop_link::queue::QueueStats {
        self.0.stats()
    }
}

/// A random world: arrivals, departures and drops, in order.
fn world(number: u64) -> (Bench<Boxed>, Vec<Packet>) {
    let mut random = Streams::new(15, number).stream("worlds");
    let management = management(&mut random);
    let is_dual = matches!(management, Management::Dualpi2(_));
    let rate = 1 + random.below(1_000);
    let discipline = management.build(|size| Duration::from_micros(size.0 * rate), random.clone());
    let mut bench = Bench::new(Boxed(discipline));
    let (mut sent, mut bytes) = (Vec::new(), 0);
    let share = 0.3 + 0.6 * random.uniform();
    let flows = 1 + random.below(8);
    let (mut now, mut drops) = (0, 0);
    for _ in 0..1_000 {
        now += random.below(2_000);
        if random.bernoulli(share) {
            let size = 40 + random.below(1_461);
            let ecn = pick(&mut random, &FIELDS);
            let flow = random.below(flows) as u32;
            // DualPI2 keeps the order of packets of one kind alone.
            let ecn = if is_dual { FIELDS[flow as usize % 4] } else { ecn };
            bench.come(us(now), flow, size, ecn);
            bytes += size;
        } else {
            let waited = bench.queue.queued().0 > 0;
            let packet = bench.go(us(now));
            assert_eq!(packet.is_some(), waited, "world {number}: a packet goes if one waits");
            sent.extend(packet);
            bytes -= packet.map_or(0, |packet| packet.size.0);
        }
        bytes -= bench.drops[drops..].iter().map(|(_, packet, _)| packet.size.0).sum::<u64>();
        drops = bench.drops.len();
        // In = out + dropped + queued.
        let queued = bench.came - sent.len() as u64 - drops as u64;
        assert_eq!(bench.queue.queued(), (queued as usize, Bytes(bytes)), "world {number}");
    }
    (bench, sent)
}

/// Every arrival departs once, is dropped once or is queued; departures of a flow are in order; the counters
/// agree.
#[test]
fn packets_are_conserved() {
    for number in 0..3_000 {
        let (bench, sent) = world(number);
        let mut numbers: Vec<_> = sent.iter().map(seq).chain(bench.dropped()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), sent.len() + bench.drops.len(), "world {number}: a packet has two fates");
        for flow in 0..8 {
            let order: Vec<_> = sent.iter().filter(|packet| packet.flow.0 == flow).map(seq).collect();
            assert!(order.is_sorted(), "world {number}: {order:?}");
        }
        let stats = bench.queue.stats();
        let early = bench.drops.iter().filter(|drop| drop.2 == DropReason::ActiveQueue).count();
        assert_eq!((stats.early_drops, stats.overflowed), (early as u64, (bench.drops.len() - early) as u64));
    }
}

/// The same seed gives the same run.
#[test]
fn random_worlds_are_reproducible() {
    for number in 0..200 {
        let [one, other] = [world(number), world(number)];
        assert_eq!(one.1, other.1);
        assert_eq!(one.0.drops, other.0.drops);
    }
}

/// Without congestion and limit every discipline is first in, first out.
#[test]
fn below_its_target_a_discipline_is_fifo() {
    let limit = QueueLimit::Unlimited;
    let target = Duration::from_secs(1_000_000);
    for management in [
        Management::Codel(codel::Params { limit, target, ..codel::Params::default() }),
        Management::FqCodel(fq_codel::Params { limit, target, flows: 1, ..fq_codel::Params::default() }),
        Management::Red(red::Params { limit, min: 1e9, max: 2e9, ..red::Params::default() }),
    ] {
        let random = Streams::new(1, 0).stream("red");
        let mut bench = Bench::new(Boxed(management.build(|_| Duration::from_millis(1), random)));
        (0..500).for_each(|number| bench.come(us(number), (number % 7) as u32, 100 + number, Ecn::Ect0));
        let order: Vec<_> =
            std::iter::from_fn(|| bench.go(us(10_000_000))).map(|packet| seq(&packet)).collect();
        assert_eq!(order, (0..500).collect::<Vec<_>>());
    }
}
