//! Random worlds: every packet has one fate, packets of a path and category stay in order, and air time adds up.

use std::collections::BTreeMap;

use lasthop_base::{Bytes, Decibels, Duration, Probability, Stream, Streams};
use lasthop_link::queue::{Management, Queue, QueueLimit};
use lasthop_link::wifi::rate::{FixedRate, RateSelection};
use lasthop_link::wifi::{
    Category, Delivery, Fading, GuardInterval, Interference, MpduLoss, PowerSave, PpduFormat, Queued,
    Roaming, Scheduler, Standard, StationRadio, Width, WifiConfig,
};
use lasthop_link::wlan::RetryLimit;
use lasthop_proto::{Dscp, HostId, Packet, Port};
use lasthop_sim::wlan::AboveMac;

use crate::wifi::harness::{Bench, marked, stations};
use crate::wlan::harness::{Did, SERVER, host, id, packet, us};

fn one_of<T: Copy>(random: &mut Stream, choices: &[T]) -> T {
    choices[random.below(choices.len() as u64) as usize]
}

/// Arrivals of a world.
struct World {
    config: WifiConfig,
    stations: u32,
    radio: StationRadio,
    above_mac: AboveMac,
    /// Areas in which stations are hidden from those of others.
    areas: u16,
    /// Time in microseconds.
    arrivals: Vec<(u64, Port, Packet)>,
}

fn config(random: &mut Stream) -> WifiConfig {
    let standard = one_of(random, &[Standard::N, Standard::Ac, Standard::Ax]);
    let width = if standard == Standard::N { Width::Mhz40 } else { Width::Mhz80 };
    let format = PpduFormat { standard, width, guard_interval: GuardInterval::Ns800 };
    let scheduler = one_of(random, &[Scheduler::Fifo, Scheduler::RoundRobin, Scheduler::Airtime]);
    let queue = |random: &mut Stream, managed: bool| match random.below(4) {
        0 => Queue::DropTail(QueueLimit::Packets(random.below(4) as u32)),
        1 => Queue::DropTail(QueueLimit::Bytes(Bytes(3000))),
        2 if managed => {
            let all: Vec<Management> = Management::all().map(|(_, management)| management).collect();
            Queue::Managed(one_of(random, &all))
        }
        _ => Queue::DropTail(QueueLimit::Unlimited),
    };
    let retry_limit = match random.below(3) {
        0 => RetryLimit::Unlimited,
        _ => RetryLimit::at_most(1 + random.below(7) as u32),
    };
    WifiConfig {
        format,
        ampdu: one_of(random, &[Bytes::ZERO, Bytes(8_191), standard.longest_ampdu()]),
        longest_ppdu: Duration::from_micros(one_of(random, &[500, 5484])),
        window: one_of(random, &[1, 4, standard.largest_window()]),
        retry_limit,
        requests_block_ack: random.bernoulli(0.3),
        rts: random.bernoulli(0.3),
        eifs: random.bernoulli(0.3),
        queue: queue(random, scheduler != Scheduler::Fifo),
        scheduler,
        station_queue: queue(random, true),
        ..WifiConfig::default()
    }
}

/// Half of the worlds have stations that doze.
fn power_save(random: &mut Stream) -> Option<PowerSave> {
    let save = PowerSave {
        delivery: one_of(random, &[Delivery::Beacon, Delivery::UApsd]),
        timeout: Duration::from_micros(one_of(random, &[0, 500, 100_000])),
        beacon: Duration::from_micros(one_of(random, &[1_000, 102_400])),
        listen: one_of(random, &[1, 3]),
    };
    random.bernoulli(0.5).then_some(save)
}

/// A third of the worlds have stations that roam, and a third bursts of interference.
fn absences(random: &mut Stream) -> (Option<Roaming>, Option<Interference>) {
    let ms = Duration::from_millis;
    let roaming = Roaming {
        every: ms(200),
        channels: one_of(random, &[0, 1, 4]),
        dwell: ms(one_of(random, &[0, 1, 10])),
        pause: ms(one_of(random, &[0, 20])),
        fast_transition: true,
        gap: one_of(random, &[None, Some(Duration::ZERO), Some(ms(5))]),
        queued: one_of(random, &[Queued::Lost, Queued::Forwarded]),
    };
    let period = Duration::from_micros(one_of(random, &[1_000, 20_000]));
    let burst = Duration::from_nanos(period.as_nanos() / one_of(random, &[2, 10]));
    let loss = Probability::new(one_of(random, &[0.0, 0.5])).unwrap();
    let interference = Interference { period, burst, loss, heard: random.bernoulli(0.7) };
    (random.bernoulli(0.3).then_some(roaming), random.bernoulli(0.3).then_some(interference))
}

impl World {
    fn random(seed: u64) -> World {
        let (roaming, interference) = absences(&mut Streams::new(seed, 0).stream("absences"));
        let mut random = Streams::new(seed, 0).stream("world");
        let random = &mut random;
        let config = WifiConfig { interference, ..config(random) };
        let stations = 1 + random.below(5) as u32;
        let share = |random: &mut Stream| Probability::new(one_of(random, &[0.0, 0.1, 0.5])).unwrap();
        let mut rates = RateSelection::examples();
        rates.push(RateSelection::Fixed(FixedRate { mcs: 7, streams: 2 }));
        let radio = StationRadio {
            rate: one_of(random, &rates),
            streams: 2,
            // At 22 dB, MCS 7 loses few, and the lower ones none.
            snr: one_of(random, &[None, Decibels::new(22.0)]),
            fading: None,
            loss: MpduLoss { down: share(random), up: share(random) },
            area: 0,
            power_save: power_save(&mut Streams::new(seed, 0).stream("power-save")),
            roaming,
        };
        // Of their own streams, so that worlds without them stay as they are.
        let own = |name| Streams::new(seed, 0).stream(name);
        let fading = Fading { doppler_hz: 20.0, ..Fading::default() };
        let radio =
            StationRadio { fading: radio.snr.and(own("fading").bernoulli(0.3).then_some(fading)), ..radio };
        let timeout_ms = one_of(&mut own("reorder"), &[0, 0, 1, 100]);
        let reorder_timeout = (timeout_ms > 0).then(|| Duration::from_millis(timeout_ms));
        let config = WifiConfig { reorder_timeout, ..config };
        let rare = Probability::new(0.1).unwrap();
        let above_mac = one_of(random, &[AboveMac::default(), AboveMac { down: rare, up: rare }]);
        let mean = one_of(random, &[30, 300, 3000]);
        let (mut at, mut arrivals) = (0, Vec::new());
        for number in 0..120 {
            // Some packets arrive together, some long after the medium is idle.
            at += match random.below(10) {
                0..3 => 0,
                3 => random.below(30),
                4 => 20_000,
                _ => random.below(2 * mean),
            };
            let from = random.below(u64::from(stations) + 1) as u32;
            let size = one_of(random, &[40, 200, 576, 1500]);
            let to = host(random.below(u64::from(stations)) as u32);
            let dst = if from == 0 || random.bernoulli(0.2) { to } else { SERVER };
            let dscp = one_of(random, &[0, 0, 8, 34, 46]);
            arrivals.push((at, Port(from), marked(packet(number, dst, size), dscp)));
        }
        let areas = one_of(&mut own("areas"), &[1, 1, 2, 3]);
        // Hidden stations with the windows of voice would otherwise send into each other for ever.
        let limit = if areas > 1 { RetryLimit::at_most(7) } else { config.retry_limit };
        let config = WifiConfig { retry_limit: limit, ..config };
        World { config, stations, radio, above_mac, areas, arrivals }
    }

    fn run(&self, seed: u64) -> Bench {
        let mut all = stations(seed, self.stations, self.radio, self.above_mac);
        for (index, station) in all.iter_mut().enumerate() {
            station.radio.area = index as u16 % self.areas;
        }
        let mut bench = Bench::new(self.config, seed, all);
        for &(at, port, packet) in &self.arrivals {
            bench.send(us(at), port, packet);
        }
        match self.radio.roaming.is_some() || self.config.interference.is_some() {
            true => bench.finish_within(Duration::from_millis(20)),
            false => bench.finish(),
        }
        bench
    }
}

fn check(seed: u64) -> (u64, u64) {
    let world = World::random(seed);
    let bench = world.run(seed);
    let mut fates: BTreeMap<u64, u32> = BTreeMap::new();
    for (_, did) in &bench.log {
        if let Did::Deliver(_, id) | Did::Drop(id, _) = did {
            *fates.entry(*id).or_default() += 1;
        }
    }
    assert_eq!(fates.len(), world.arrivals.len(), "world {seed}");
    assert!(fates.values().all(|&times| times == 1), "world {seed}: {fates:?}");
    assert_eq!(bench.bss.held(), 0, "world {seed}");

    let stats = bench.bss.stats();
    let air = [stats.data_time, stats.control_time, stats.gap_time, stats.collision_time];
    let rest = [stats.interference_time, stats.idle_time];
    let sum = air.iter().chain(&rest).fold(Duration::ZERO, |sum, part| sum + *part);
    // The last access may find that a discipline has dropped what it was for.
    let drops_late = [world.config.queue, world.config.station_queue]
        .iter()
        .any(|queue| matches!(queue, Queue::Managed(_)));
    assert!(us(0) + sum <= bench.woken, "world {seed}: {stats:?}");
    // A station that roams wakes the medium and leaves it idle, and so does a receiver that goes on without an MPDU.
    let wakes_idle = drops_late || world.radio.roaming.is_some() || world.config.reorder_timeout.is_some();
    assert!(wakes_idle || stats.ppdus == 0 || us(0) + sum == bench.woken, "world {seed}: {stats:?}");

    // Each attempt has an outcome, and each packet that was sent a first attempt.
    let (mut collided, mut retries) = (0, 0);
    for index in 0..world.stations as usize {
        let ways = bench.bss.station(index);
        for way in [&ways.down.packets, &ways.up.packets] {
            let good = way.delivered + way.corrupted;
            assert_eq!(way.attempts, good + way.lost + way.collided, "world {seed}");
            assert_eq!(way.attempts - way.retries, good + way.discarded, "world {seed}");
            collided += way.collided;
            retries += way.retries;
        }
    }

    // In order on each path, within each category.
    let way_of: BTreeMap<u64, (Port, HostId, Category)> = (world.arrivals.iter())
        .map(|(_, from, packet)| (id(packet), (*from, packet.dst, Category::of(packet.dscp))))
        .collect();
    // A discipline may change the order.
    let is_fifo = |from: Port| match if from == Port::WIRED {
        world.config.queue
    } else {
        world.config.station_queue
    } {
        Queue::DropTail(_) => matches!(world.config.queue, Queue::DropTail(_)),
        Queue::Managed(_) => false,
    };
    let mut last: BTreeMap<(Port, HostId, Category), u64> = BTreeMap::new();
    for &(_, did) in &bench.log {
        let Did::Deliver(to, id) = did else { continue };
        let way = way_of[&id];
        assert!(to == Port::WIRED || way.1 == host(to.0 - 1));
        let before = last.insert(way, id);
        assert!(!is_fifo(way.0) || before.is_none_or(|before| before < id), "world {seed}");
    }
    (collided, retries)
}

/// `LASTHOP_WIFI_WORLDS=100000` sets the number of worlds.
#[test]
fn packets_have_one_fate_and_air_time_adds_up() {
    let worlds = std::env::var("LASTHOP_WIFI_WORLDS").map_or(600, |text| text.parse().expect("a number"));
    let (mut collided, mut retries) = (0, 0);
    for seed in 0..worlds {
        let (more, again) = check(seed);
        collided += more;
        retries += again;
    }
    assert!(collided > 2_000 && retries > 10_000, "{collided} {retries}");
}

#[test]
fn runs_are_a_function_of_the_seed() {
    let mut differ = 0;
    for seed in 0..60 {
        let world = World::random(seed);
        assert_eq!(world.run(seed).log, world.run(seed).log);
        differ += u32::from(world.run(seed).log != world.run(seed + 1).log);
    }
    assert!(differ > 30);
}

/// An additional station without traffic changes nothing for the others.
#[test]
fn a_silent_station_changes_nothing() {
    for seed in 0..40 {
        let world = World { areas: 1, ..World::random(seed) };
        let more = World {
            stations: world.stations + 1,
            arrivals: world.arrivals.clone(),
            config: world.config,
            ..world
        };
        assert_eq!(world.run(seed).log, more.run(seed).log);
    }
}

/// All hear the access point, so areas change nothing of downloads.
#[test]
fn downloads_are_the_same_in_any_areas() {
    for seed in 0..60 {
        let mut world = World { areas: 1, ..World::random(seed) };
        world.arrivals.retain(|(_, from, _)| *from == Port::WIRED);
        let apart = World { areas: 4, arrivals: world.arrivals.clone(), config: world.config, ..world };
        assert_eq!(world.run(seed).log, apart.run(seed).log, "world {seed}");
    }
}

/// Code points of RFC 8325, section 4.3.
#[test]
fn categories_follow_code_points() {
    for (dscp, category) in [
        (0, Category::BestEffort),
        (8, Category::Background),
        (1, Category::Background),
        (10, Category::BestEffort),
        (34, Category::Video),
        (40, Category::Video),
        (46, Category::Voice),
        (48, Category::Voice),
    ] {
        assert_eq!(Category::of(Dscp::new(dscp)), category, "{dscp}");
    }
}
