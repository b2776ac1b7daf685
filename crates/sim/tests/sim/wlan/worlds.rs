//! Random worlds: the BSS matches the reference implementation to the microsecond, and the invariants hold.

use std::collections::BTreeMap;
use std::sync::mpsc;

use lasthop_base::{Bytes, Probability, Stream, Streams, Time};
use lasthop_channel::{Channel, Sojourn, State};
use lasthop_proto::{HostId, Packet, Port};
use lasthop_sim::QueueLimit;
use lasthop_sim::wlan::{
    AboveMac, ApQueue, Band, BssConfig, Cw, Dsss, DsssRate, Ofdm, OfdmRate, Phy, Preamble, RetryLimit,
};

use crate::wlan::harness::{Bench, Did, SERVER, frame_loss, host, id, packet, stations, us};
use crate::wlan::literal::Literal;

fn one_of<T: Copy>(random: &mut Stream, choices: &[T]) -> T {
    choices[random.below(choices.len() as u64) as usize]
}

fn random_phy(random: &mut Stream) -> Phy {
    if random.bernoulli(0.3) {
        let control_rate = one_of(random, &[OfdmRate::Mbps6, OfdmRate::Mbps24]);
        let band = one_of(random, &[Band::FiveGhz, Band::TwoGhz]);
        return Phy::Ofdm(Ofdm { data_rate: OfdmRate::Mbps54, control_rate, band });
    }
    let data_rate = one_of(random, &[DsssRate::Mbps2, DsssRate::Mbps5_5, DsssRate::Mbps11]);
    let control_rate = one_of(random, &[DsssRate::Mbps1, DsssRate::Mbps2]);
    Phy::Dsss(Dsss { data_rate, control_rate, preamble: one_of(random, &[Preamble::Long, Preamble::Short]) })
}

/// Idle time before a run begins, in microseconds.
const IDLE: u64 = 1_000;

/// Arrivals of a world.
struct World {
    config: BssConfig,
    stations: u32,
    loss: f64,
    above_mac: AboveMac,
    /// Time in microseconds.
    arrivals: Vec<(u64, Port, Packet)>,
}

impl World {
    fn random(seed: u64) -> World {
        let mut random = Streams::new(seed, 0).stream("world");
        let random = &mut random;
        let limit = |random: &mut Stream| match random.below(4) {
            0 => QueueLimit::Packets(random.below(4) as u32),
            1 => QueueLimit::Bytes(Bytes(3000)),
            _ => QueueLimit::Unlimited,
        };
        let queue = limit(random);
        let config = BssConfig {
            phy: random_phy(random),
            cw: one_of(random, &[None, Some(Cw { min: 0, max: 7 }), Some(Cw { min: 3, max: 15 })]),
            rts_threshold: one_of(random, &[None, Some(Bytes(400)), Some(Bytes(0))]),
            short_retry_limit: RetryLimit::at_most(1 + random.below(7) as u32),
            long_retry_limit: RetryLimit::at_most(1 + random.below(4) as u32),
            ap_queue: one_of(random, &[ApQueue::PerStation(queue), ApQueue::Shared(queue)]),
            priority: false,
            station_queue: limit(random),
        };
        let stations = 1 + random.below(5) as u32;
        let loss = one_of(random, &[0.0, 0.1, 0.5]);
        let rare = Probability::new(0.1).unwrap();
        let above_mac = one_of(random, &[AboveMac::default(), AboveMac { down: rare, up: rare }]);
        let mean = one_of(random, &[300, 1000, 3000]);
        let (mut at, mut arrivals) = (0, Vec::new());
        for number in 0..60 {
            // Some packets arrive together, some long after the medium is idle.
            at += match random.below(10) {
                0 => 0,
                1 => random.below(30),
                2 => 20_000,
                _ => random.below(2 * mean),
            };
            let from = random.below(u64::from(stations) + 1) as u32;
            let size = one_of(random, &[40, 200, 576, 1500]);
            let to = host(random.below(u64::from(stations)) as u32);
            let dst = if from == 0 || random.bernoulli(0.2) { to } else { SERVER };
            arrivals.push((at, Port(from), packet(number, dst, size)));
        }
        World { config, stations, loss, above_mac, arrivals }
    }

    fn bench(&self, seed: u64) -> Bench {
        let streams = Streams::new(seed, 0);
        Bench::new(self.config, seed, stations(streams, self.stations, frame_loss(self.loss), self.above_mac))
    }

    fn run(&self, seed: u64) -> Bench {
        let mut bench = self.bench(seed);
        for &(at, port, packet) in &self.arrivals {
            bench.send(us(at), port, packet);
        }
        bench.finish();
        bench
    }

    fn literally(&self, seed: u64) -> Vec<(u64, Did)> {
        let mut bss = Literal::new(self.config, seed, self.stations, self.loss, self.above_mac);
        // The medium has been idle for long when a run begins.
        let (mut now, mut next) = (IDLE, 0);
        while next < self.arrivals.len() || !bss.is_idle() {
            let mut due = Vec::new();
            while let Some(&(_, port, packet)) = self.arrivals.get(next).filter(|(at, ..)| at + IDLE == now) {
                due.push((port, packet));
                next += 1;
            }
            bss.tick(now, &due);
            now += 1;
            if let Some((at, ..)) = self.arrivals.get(next).filter(|_| bss.is_quiet(now)) {
                now = at + IDLE;
            }
        }
        bss.log.into_iter().map(|(at, did)| (at - IDLE, did)).collect()
    }
}

/// Sorted by time; events at one instant are unordered between the two implementations.
fn sorted(log: impl Iterator<Item = (u64, Did)>) -> Vec<(u64, String)> {
    let mut log: Vec<_> = log.map(|(at, did)| (at, format!("{did:?}"))).collect();
    log.sort();
    log
}

#[test]
fn random_worlds_match_the_reference_implementation() {
    let (mut collisions, mut events) = (0, 0);
    for seed in 0..300 {
        let world = World::random(seed);
        let bench = world.run(seed);
        let micros = |&(at, did): &(Time, Did)| {
            assert_eq!(at.as_nanos() % 1000, 0);
            (at.as_nanos() / 1000, did)
        };
        let ours = sorted(bench.log.iter().map(micros));
        let theirs = sorted(world.literally(seed).into_iter());
        if let Some(place) = (0..ours.len().max(theirs.len())).find(|&i| ours.get(i) != theirs.get(i)) {
            panic!("world {seed}: {:?}, not {:?}: {:?}", ours.get(place), theirs.get(place), world.config);
        }
        collisions += bench.bss.stats().collisions;
        events += ours.len();
    }
    println!("{events} events, {collisions} collisions");
    assert!(collisions > 2_000 && events > 20_000, "{collisions} collisions, {events} events");
}

#[test]
fn every_packet_is_accounted_for_once() {
    for seed in 0..400 {
        let world = World::random(seed);
        let bench = world.run(seed);
        let mut fates: BTreeMap<u64, u32> = BTreeMap::new();
        for (_, did) in &bench.log {
            if let Did::Deliver(_, id) | Did::Drop(id, _) = did {
                *fates.entry(*id).or_default() += 1;
            }
        }
        assert_eq!(fates.len(), world.arrivals.len());
        assert!(fates.values().all(|&times| times == 1), "world {seed}: {fates:?}");
        let (mut over, mut came_back) = (0, 0);
        let (mut attempts, mut good, mut collided) = (0, 0, 0);
        for index in 0..world.stations as usize {
            let stats = bench.bss.station(index);
            for way in [stats.down, stats.up] {
                over += way.delivered + way.corrupted + way.discarded + way.overflowed;
                attempts += way.attempts;
                good += way.delivered + way.corrupted + way.lost;
                collided += way.collided;
                let first = way.attempts - way.retries;
                assert_eq!(first, way.delivered + way.corrupted + way.discarded);
            }
        }
        for (_, from, packet) in &world.arrivals {
            let handed_on = *from != Port::WIRED && packet.dst != SERVER;
            came_back += u64::from(handed_on);
        }
        // Packets for another station are transmitted again, if they reached the access point.
        assert!(over >= fates.len() as u64 && over <= fates.len() as u64 + came_back);
        assert_eq!(attempts, good + collided);
        assert_eq!(bench.bss.stats().exchanges, good);
        assert!(collided >= 2 * bench.bss.stats().collisions);
    }
}

/// Packets from a station, or from the wired network, to one destination arrive in order.
#[test]
fn packets_of_a_path_stay_in_order() {
    for seed in 0..400 {
        let world = World::random(seed);
        let bench = world.run(seed);
        let way_of: BTreeMap<u64, (Port, HostId)> =
            world.arrivals.iter().map(|(_, from, packet)| (id(packet), (*from, packet.dst))).collect();
        let mut last: BTreeMap<(Port, HostId), u64> = BTreeMap::new();
        let mut earlier = Time::ZERO;
        for &(at, did) in &bench.log {
            assert!(at >= earlier);
            earlier = at;
            let Did::Deliver(to, id) = did else { continue };
            let way = way_of[&id];
            assert_eq!(to == Port::WIRED, way.1 == SERVER);
            assert!(to == Port::WIRED || way.1 == host(to.0 - 1));
            assert!(last.insert(way, id).is_none_or(|before| before < id), "world {seed}");
        }
    }
}

#[test]
fn runs_are_a_function_of_the_seed() {
    let mut differ = 0;
    for seed in 0..100 {
        let world = World::random(seed);
        assert_eq!(world.run(seed).log, world.run(seed).log);
        differ += u32::from(world.run(seed).log != world.run(seed + 1).log);
    }
    assert!(differ > 50);
}

/// Records queries; every frame survives.
struct Recorder(mpsc::Sender<(Time, Time, u64)>);

impl Channel for Recorder {
    fn survival(&mut self, start: Time, end: Time, bits: u64) -> f64 {
        self.0.send((start, end, bits)).unwrap();
        1.0
    }

    fn exposure(&mut self, _start: Time, _end: Time, _each: &mut dyn FnMut(f64, Probability)) -> f64 {
        unreachable!("nothing is coded")
    }

    fn sojourn(&mut self, _at: Time) -> Sojourn {
        Sojourn { state: State::Good, until: Time::NEVER }
    }
}

/// Frames that query a channel do not overlap, keep the interframe spaces, and last as long as their bits
/// imply.
#[test]
fn frame_exchanges_do_not_overlap() {
    for seed in 0..400 {
        let world = World::random(seed);
        let (asked, questions) = mpsc::channel();
        let mut all = stations(Streams::new(seed, 0), world.stations, frame_loss(0.0), AboveMac::default());
        for station in &mut all {
            station.channel = Box::new(Recorder(asked.clone()));
        }
        let mut bench = Bench::new(world.config, seed, all);
        for &(at, port, packet) in &world.arrivals {
            bench.send(us(at), port, packet);
        }
        bench.finish();
        let timing = world.config.timing();
        let mut free = Time::ZERO;
        for (start, end, bits) in questions.try_iter() {
            assert!(start >= free + timing.plcp, "world {seed}");
            let packet = Bytes(bits / 8) - Bytes(36);
            assert_eq!(end.since(start) + timing.plcp, world.config.phy.data_time(packet));
            free = end + timing.sifs + timing.ack + timing.difs;
        }
        assert!(bench.bss.stats().busy_time <= bench.now.since(Time::ZERO).max(free.since(Time::ZERO)));
    }
}

/// An additional station without traffic changes nothing for the others.
#[test]
fn a_silent_station_changes_nothing() {
    for seed in 0..50 {
        let world = World::random(seed);
        let more = World { stations: world.stations + 1, arrivals: world.arrivals.clone(), ..world };
        assert_eq!(world.run(seed).log, more.run(seed).log);
    }
}

/// Arrivals at any instant, not only at whole microseconds: the medium follows the order of instants.
#[test]
fn packets_may_arrive_at_any_nanosecond() {
    for seed in 0..200 {
        let world = World::random(seed);
        let mut random = Streams::new(seed, 1).stream("nanoseconds");
        let mut bench = world.bench(seed);
        let mut count = 0;
        for &(at, port, packet) in &world.arrivals {
            let at = Time::from_nanos((us(at).as_nanos() + random.below(1000)).max(bench.now.as_nanos()));
            bench.send(at, port, packet);
        }
        bench.finish();
        for (_, did) in &bench.log {
            count += u64::from(matches!(did, Did::Deliver(..) | Did::Drop(..)));
        }
        assert_eq!(count, 60);
    }
}
