//! Exchanges by hand.

use lasthop_base::{Duration, Time};
use lasthop_link::queue::{Queue, QueueLimit};
use lasthop_link::wifi::{Access, Delivery, Edca, PowerSave, Scheduler, StationRadio, WifiConfig};
use lasthop_link::wlan::{Cw, RetryLimit};
use lasthop_proto::{DropReason, LinkOutcome, Port};
use lasthop_sim::wlan::AboveMac;

use crate::wifi::harness::{Bench, ht20, marked, mcs7, micros, scripted, stations};
use crate::wlan::harness::{Did, SERVER, host, packet, us};

fn bench(config: WifiConfig, fates: &[bool]) -> Bench {
    let mut all = stations(1, 1, mcs7(), AboveMac::default());
    all[0].channel = scripted(fates);
    Bench::new(config, 1, all)
}

/// Air time of an MPDU of 1536 B at MCS 7: 36 µs and 48 symbols.
const SINGLE: f64 = 36.0 + 48.0 * 4.0;

/// On an idle medium a packet is sent at the next slot boundary, and acknowledged by an Ack of 28 µs.
#[test]
fn a_single_packet_goes_at_the_next_slot() {
    let mut bench = bench(ht20(), &[]);
    // Slots begin 43 µs after the start: the next boundary after 1000 µs is at 43 + 107 * 9 = 1006.
    bench.send(us(1000), Port::WIRED, packet(1, host(0), 1498));
    bench.finish();
    assert_eq!(bench.deliveries(), [(1006.0 + SINGLE, 1)]);
    let signal = Did::Signal(1, LinkOutcome::Delivered, 1);
    assert_eq!(bench.log.last(), Some(&(us(1006 + 228 + 16 + 28), signal)));
    let stats = bench.bss.stats();
    let times = [stats.data_time, stats.control_time, stats.gap_time, stats.idle_time].map(micros);
    assert_eq!(times, [SINGLE, 28.0, 16.0, 1006.0]);
}

/// What waits for the slot boundary is aggregated. The third MPDU is lost: those behind it wait in the receiver's buffer until it is
/// repeated.
#[test]
fn a_lost_mpdu_holds_those_behind_it() {
    let mut bench = bench(ht20(), &[true, true, false, true, true]);
    for number in 1..=5 {
        bench.send(us(1000 + number), Port::WIRED, packet(number, host(0), 1498));
    }
    bench.finish();
    let found = bench.deliveries();
    assert_eq!(found.iter().map(|delivery| delivery.1).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    let [second, third, fourth, fifth] = [1, 2, 3, 4].map(|index: usize| found[index].0);
    assert!(third > second + 600.0, "{found:?}");
    assert_eq!((third, third), (fourth, fifth));
    let signals: Vec<Did> =
        bench.log.iter().map(|(_, did)| *did).filter(|did| matches!(did, Did::Signal(..))).collect();
    let delivered = |number, attempt| Did::Signal(number, LinkOutcome::Delivered, attempt);
    let failed = Did::Signal(3, LinkOutcome::AttemptFailed, 1);
    assert_eq!(
        signals,
        [delivered(1, 1), delivered(2, 1), failed, delivered(4, 1), delivered(5, 1), delivered(3, 2)]
    );
    let stats = bench.bss.stats();
    // The Block Ack takes 32 µs, the Ack 28. Five MPDUs of 1540 B have 238 symbols.
    assert_eq!(micros(stats.control_time), 32.0 + 28.0);
    assert_eq!(micros(stats.data_time), 36.0 + 238.0 * 4.0 + SINGLE);
}

/// The receiver goes on without an MPDU that is given up.
#[test]
fn an_mpdu_that_is_given_up_releases_those_behind_it() {
    let config = WifiConfig { retry_limit: RetryLimit::at_most(2), ..ht20() };
    let mut bench = bench(config, &[true, false, true, false]);
    for number in 1..=3 {
        bench.send(us(1000 + number), Port::WIRED, packet(number, host(0), 1498));
    }
    bench.finish();
    let found = bench.deliveries();
    assert_eq!(found.iter().map(|delivery| delivery.1).collect::<Vec<_>>(), [1, 3]);
    let drop = (bench.log.iter()).find(|(_, did)| matches!(did, Did::Drop(..))).expect("one is dropped");
    assert_eq!(drop.1, Did::Drop(2, DropReason::AttemptsExhausted));
    assert_eq!(found[1].0, drop.0.as_nanos() as f64 / 1e3);
    assert_eq!(bench.bss.stats().unanswered, 1);
    assert_eq!(bench.bss.held(), 0);
}

/// A receiver that is not told what is given up goes on without it after 100 ms, or when the sender's window has moved past it.
#[test]
fn a_receiver_goes_on_after_its_timeout() {
    let reorder_timeout = Some(Duration::from_millis(100));
    let config = WifiConfig { retry_limit: RetryLimit::at_most(1), reorder_timeout, ..ht20() };
    for (packets, expected_us) in [(3, 100_000.0), (64, 100_000.0), (65, 0.0)] {
        // The first MPDU is lost.
        let mut bench = bench(config, &[false]);
        for number in 0..packets {
            bench.send(us(1000), Port::WIRED, packet(number, host(0), 1498));
        }
        bench.finish();
        let found = bench.deliveries();
        assert!(found.iter().map(|delivery| delivery.1).eq(1..packets), "{found:?}");
        // 28 MPDUs to a PPDU: the second one ends 251 µs after the slot boundary at 1006.
        let arrival = 1006.0 + 36.0 + 4.0 * (f64::from(8 * 2 * 1540 + 22) / 260.0).floor();
        let waited = found[0].0 - arrival;
        if expected_us > 0.0 {
            assert!((waited - expected_us).abs() < 10.0, "{packets}: {waited}");
        } else {
            assert!(waited < 20_000.0, "{packets}: {waited}");
        }
        assert_eq!(bench.bss.held(), 0);
    }
}

/// An MPDU that is repeated for longer than the time-out comes too late, and is dropped.
#[test]
fn an_mpdu_behind_the_timeout_is_dropped() {
    let config = WifiConfig { reorder_timeout: Some(Duration::from_micros(300)), ..ht20() };
    let mut bench = bench(config, &[false, true, false]);
    for number in 1..=2 {
        bench.send(us(1000), Port::WIRED, packet(number, host(0), 1498));
    }
    bench.finish();
    let found: Vec<Did> = bench.log.iter().map(|(_, did)| *did).collect();
    assert_eq!(found.iter().filter(|did| matches!(did, Did::Deliver(_, 2))).count(), 1, "{found:?}");
    assert!(found.contains(&Did::Drop(1, DropReason::Corrupted)), "{found:?}");
    assert!(found.contains(&Did::Signal(1, LinkOutcome::Delivered, 3)), "{found:?}");
    let down = bench.bss.station(0).down.packets;
    assert_eq!((down.delivered, down.corrupted, down.discarded), (1, 1, 0));
    assert_eq!(bench.bss.held(), 0);
}

/// Air time bounds the A-MPDU before its bytes: 28 MPDUs of 1540 B at 65 Mb/s, with the window, 64, out of reach.
#[test]
fn an_aggregate_ends_with_the_longest_ppdu() {
    for (ampdu, mpdus) in [(65_535, 28), (8_191, 5), (0, 1)] {
        let config = WifiConfig { ampdu: lasthop_base::Bytes(ampdu), ..ht20() };
        let mut bench = bench(config, &[]);
        for number in 0..100 {
            bench.send(us(1000), Port::WIRED, packet(number, host(0), 1498));
        }
        bench.finish();
        assert_eq!(bench.bss.stats().ppdus, 100_u64.div_ceil(mpdus), "{ampdu} B");
        assert_eq!(bench.deliveries().len(), 100);
    }
}

/// A shared queue counts what was sent and not acknowledged.
#[test]
fn the_capacity_counts_what_is_in_flight() {
    let limit = Queue::DropTail(QueueLimit::Packets(3));
    for (scheduler, kept) in [(Scheduler::Fifo, 3), (Scheduler::RoundRobin, 6)] {
        let config = WifiConfig { queue: limit, scheduler, ..ht20() };
        let mut bench = Bench::new(config, 1, stations(1, 2, mcs7(), AboveMac::default()));
        for number in 0..10 {
            bench.send(us(1000), Port::WIRED, packet(number, host((number % 2) as u32), 1498));
        }
        bench.finish();
        assert_eq!(bench.deliveries().len(), kept, "{scheduler:?}");
        let overflowed = (0..2).map(|index| bench.bss.station(index).down.packets.overflowed).sum::<u64>();
        assert_eq!(overflowed, 10 - kept as u64);
    }
}

/// Voice overtakes best effort that was there before, and a TXOP of voice carries single MPDUs one SIFS apart and ends with a
/// CF-End of 52 µs.
#[test]
fn voice_goes_first() {
    let mut bench = bench(ht20(), &[]);
    for number in 0..40 {
        bench.send(us(1000), Port::WIRED, packet(number, host(0), 1498));
    }
    for number in 100..102 {
        bench.send(us(1001), Port::WIRED, marked(packet(number, host(0), 200), 46));
    }
    bench.finish();
    let found = bench.deliveries();
    let order: Vec<u64> = found.iter().map(|delivery| delivery.1).collect();
    // Both are due at 1006 µs.
    assert_eq!(order, (100..102).chain(0..40).collect::<Vec<_>>());
    // 238 B take 8 symbols; then SIFS, an Ack of 28 µs and SIFS.
    assert_eq!(found[1].0 - found[0].0, 36.0 + 8.0 * 4.0 + 16.0 + 28.0 + 16.0);
    // Two Acks, the CF-End, and the Block Acks of 28 and 12 MPDUs.
    assert_eq!(micros(bench.bss.stats().control_time), 2.0 * 28.0 + 52.0 + 2.0 * 32.0);
}

/// RTS and CTS of 28 µs each, and the SIFS behind them, precede the first PPDU of a TXOP; those of the next TXOP precede its own.
#[test]
fn a_receiver_is_protected_once_in_a_txop() {
    let mut bench = bench(WifiConfig { rts: true, ..ht20() }, &[]);
    for (first, at) in [(0, 1000), (10, 5000)] {
        for number in first..first + 3 {
            bench.send(us(at), Port::WIRED, marked(packet(number, host(0), 200), 46));
        }
    }
    bench.finish();
    let found: Vec<f64> = bench.deliveries().iter().map(|delivery| delivery.0).collect();
    // 238 B take 8 symbols, then SIFS, an Ack of 28 µs and SIFS. The first slot boundary of voice after 1000 µs is at 34 + 108 * 9.
    let (alone, lead) = (36.0 + 8.0 * 4.0, 2.0 * (28.0 + 16.0));
    assert_eq!(found[0], 1006.0 + lead + alone);
    let each = 16.0 + 28.0 + 16.0 + alone;
    assert_eq!([found[1] - found[0], found[2] - found[1], found[5] - found[4]], [each; 3]);
    assert_eq!(micros(bench.bss.stats().control_time), 2.0 * (2.0 * 28.0 + 3.0 * 28.0 + 52.0));
}

/// A category that gives way to a later one of its contender draws a backoff from the doubled window, all of whose slots come after
/// that one's access.
#[test]
fn an_internal_collision_costs_a_whole_backoff() {
    let access = |window| Access { aifsn: 2, cw: Cw { min: window, max: window }, txop: Duration::ZERO };
    let edca = Edca { voice: access(0), best_effort: access(3), ..Edca::default() };
    let mut seen = [0; 4];
    for seed in 0..200 {
        let config = WifiConfig { edca, ..ht20() };
        let mut bench = Bench::new(config, seed, stations(seed, 1, mcs7(), AboveMac::default()));
        bench.send(us(1000), Port::WIRED, packet(1, host(0), 1498));
        bench.send(us(1000), Port::WIRED, marked(packet(2, host(0), 1498), 46));
        bench.finish();
        let [(voice, 2), (best_effort, 1)] = bench.deliveries()[..] else { panic!("{:?}", bench.log) };
        assert_eq!(voice, 1006.0 + SINGLE);
        // SIFS and Ack, AIFS, and the backoff.
        let slots = (best_effort - SINGLE - voice - (16.0 + 28.0) - (16.0 + 2.0 * 9.0)) / 9.0;
        seen[slots as usize] += 1;
        assert_eq!(slots.fract(), 0.0);
    }
    // Each of four values in a quarter of the cases; the standard deviation of a count is 6.
    assert!(seen.iter().all(|&count| (25..=75).contains(&count)), "{seen:?}");
}

/// Packets of a station for another go through the access point.
#[test]
fn stations_reach_each_other_through_the_access_point() {
    let mut bench = Bench::new(ht20(), 1, stations(1, 2, mcs7(), AboveMac::default()));
    bench.send(us(1000), Port(1), packet(7, host(1), 1498));
    bench.send(us(1000), Port(2), packet(8, SERVER, 1498));
    bench.finish();
    let mut to: Vec<Did> =
        bench.log.iter().map(|entry| entry.1).filter(|did| matches!(did, Did::Deliver(..))).collect();
    to.sort_by_key(|did| format!("{did:?}"));
    assert_eq!(to, [Did::Deliver(Port::WIRED, 8), Did::Deliver(Port(2), 7)]);
    assert!(bench.now < Time::ZERO + Duration::from_millis(5));
}

/// Stations that doze.
fn dozing(power_save: PowerSave) -> Bench {
    let radio = StationRadio { power_save: Some(power_save), ..mcs7() };
    Bench::new(ht20(), 1, stations(1, 1, radio, AboveMac::default()))
}

/// What arrives for a station that dozes at once waits for the next beacon to which it listens, then for the air.
#[test]
fn a_beacon_releases_what_is_buffered() {
    for listen in [1, 3] {
        let save = PowerSave { timeout: Duration::ZERO, listen, ..PowerSave::default() };
        let mut bench = dozing(save);
        let (interval_us, wait_us) = (102_400.0 * f64::from(listen), 43.0 + 9.0 * 16.0 + SINGLE);
        let sent: Vec<f64> = (0..40).map(|number| f64::from(number) * 450_000.0 + 1000.0).collect();
        for (number, at) in sent.iter().enumerate() {
            bench.send(us(*at as u64), Port::WIRED, packet(number as u64, host(0), 1498));
        }
        bench.finish();
        let found = bench.deliveries();
        let phase = found[0].0 % interval_us;
        let mut waits = Vec::new();
        for ((at, number), sent) in found.iter().zip(&sent) {
            let apart =
                (at % interval_us - phase + interval_us / 2.0).rem_euclid(interval_us) - interval_us / 2.0;
            assert!(apart.abs() <= wait_us, "{number} at {at}: {apart}");
            waits.push(at - sent);
        }
        waits.sort_by(f64::total_cmp);
        assert!(waits[39] <= interval_us + wait_us && waits[39] > 0.8 * interval_us, "{waits:?}");
        assert!(waits[0] < 0.2 * interval_us, "{waits:?}");
    }
}

/// All stations of an access point hear the same beacons: what arrives for two is released at the same time.
#[test]
fn stations_hear_the_same_beacons() {
    let save = PowerSave { timeout: Duration::ZERO, ..PowerSave::default() };
    let radio = StationRadio { power_save: Some(save), ..mcs7() };
    let mut bench = Bench::new(ht20(), 1, stations(1, 2, radio, AboveMac::default()));
    for number in 0..10 {
        let at = us(number * 450_000 + 1000);
        bench.send(at, Port::WIRED, packet(2 * number, host(0), 1498));
        bench.send(at, Port::WIRED, packet(2 * number + 1, host(1), 1498));
    }
    bench.finish();
    let found = bench.deliveries();
    assert_eq!(found.len(), 20);
    assert!(found.chunks(2).all(|pair| pair[1].0 - pair[0].0 < 2_000.0), "{found:?}");
}

/// A frame of the station releases what is buffered by U-APSD, and by the timeout of a station that then stays awake; not
/// otherwise.
#[test]
fn a_frame_of_the_station_releases_what_is_buffered() {
    let legacy =
        PowerSave { timeout: Duration::ZERO, beacon: Duration::from_secs(1), ..PowerSave::default() };
    let all = [
        (PowerSave { delivery: Delivery::UApsd, ..legacy }, true),
        (PowerSave { timeout: Duration::from_millis(5), ..legacy }, true),
        (legacy, false),
    ];
    for (save, is_released) in all {
        let mut bench = dozing(save);
        // Behind the first beacon, wherever it is.
        bench.send(us(3_000_000), Port::WIRED, packet(1, host(0), 1498));
        bench.send(us(3_001_000), Port(1), packet(2, SERVER, 1498));
        bench.finish();
        let at = bench.deliveries().iter().find(|delivery| delivery.1 == 1).expect("it arrives").0;
        assert_eq!(at < 3_003_000.0, is_released, "{save:?}: {at}");
    }
}

/// Within the timeout after a frame in either direction, nothing waits for a beacon; after it, everything does.
#[test]
fn a_station_stays_awake_for_its_timeout() {
    let save = PowerSave { beacon: Duration::from_secs(1), ..PowerSave::default() };
    for (pause_us, at_once) in [(99_000, true), (110_000, false)] {
        let mut bench = dozing(save);
        bench.send(us(3_000_000), Port(1), packet(1, SERVER, 1498));
        bench.send(us(3_000_000 + pause_us), Port::WIRED, packet(2, host(0), 1498));
        bench.finish();
        let at = bench.deliveries()[1].0;
        assert_eq!(at < (3_002_000 + pause_us) as f64, at_once, "{pause_us}: {at}");
    }
}
