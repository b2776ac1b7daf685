//! Saturated stations beside arithmetic, Bianchi's fixed point and ns-3.

use lasthop_base::{Duration, Probability};
use lasthop_link::wifi::{MpduLoss, Neighbour, Scheduler, StationRadio, WifiConfig};
use lasthop_link::wlan::RetryLimit;
use lasthop_proto::Port;
use lasthop_sim::wlan::AboveMac;

use crate::wifi::harness::{Bench, ht20, mcs7, stations};
use crate::wlan::harness::{SERVER, host, packet};

/// Packets that each source keeps in its queue.
const BACKLOG: u64 = 160;

fn delivered(bench: &Bench, index: u32, up: bool) -> u64 {
    let ways = bench.bss.station(index as usize);
    if up { ways.up.packets.delivered } else { ways.down.packets.delivered }
}

/// Keeps the queues of the first stations, or those of the access point for them, from becoming empty, for `seconds` from now.
fn saturate(bench: &mut Bench, stations: u32, up: bool, seconds: u64) {
    let mut sent: Vec<u64> = (0..stations).map(|index| delivered(bench, index, up)).collect();
    let mut now = bench.now;
    let end = now + Duration::from_secs(seconds);
    while now < end {
        for index in 0..stations {
            let (port, to) = if up { (Port(1 + index), SERVER) } else { (Port::WIRED, host(index)) };
            while sent[index as usize] < delivered(bench, index, up) + BACKLOG {
                sent[index as usize] += 1;
                bench.send(now, port, packet(0, to, 1498));
            }
        }
        bench.log.clear();
        now += Duration::from_millis(2);
        bench.until(now);
    }
}

/// Payload of UDP that stations send or get, in Mb/s, over `seconds`. Their queues are never empty.
pub(super) fn goodput_mbps(bench: &mut Bench, stations: u32, up: bool, seconds: u64) -> Vec<f64> {
    saturate(bench, stations, up, seconds);
    let mbps = |index| delivered(bench, index, up) as f64 * 1470.0 * 8.0 / (1e6 * seconds as f64);
    (0..stations).map(mbps).collect()
}

fn saturated(config: WifiConfig, radio: StationRadio, count: u32, up: bool, seconds: u64) -> (f64, Bench) {
    let config = WifiConfig { retry_limit: RetryLimit::Unlimited, ..config };
    let mut bench = Bench::new(config, 1, stations(1, count, radio, AboveMac::default()));
    let total = goodput_mbps(&mut bench, count, up, seconds).iter().sum();
    (total, bench)
}

/// One station: a cycle of AIFS, 7.5 slots, the PPDU of 28 MPDUs, SIFS and the Block Ack.
#[test]
fn one_station_has_the_goodput_of_its_cycle() {
    let (found, _) = saturated(ht20(), mcs7(), 1, false, 3);
    let cycle_us = 43.0 + 67.5 + 5344.0 + 16.0 + 32.0;
    let expected = 28.0 * 1470.0 * 8.0 / cycle_us;
    assert!((found / expected - 1.0).abs() < 0.005, "{found} for {expected}");
}

/// A station that answers nothing: attempts of 228 µs, a timeout, AIFS and a backoff each, of windows that double up to the retry limit
/// and then begin anew.
#[test]
fn the_window_begins_anew_at_the_retry_limit() {
    for (limit, seconds) in [(4, 5), (7, 10)] {
        let loss = MpduLoss { down: Probability::new(1.0).unwrap(), ..MpduLoss::default() };
        let config = WifiConfig {
            ampdu: lasthop_base::Bytes::ZERO,
            retry_limit: RetryLimit::at_most(limit),
            ..ht20()
        };
        let radio = StationRadio { loss, ..mcs7() };
        let mut bench = Bench::new(config, 1, stations(1, 1, radio, AboveMac::default()));
        for _ in 0..seconds * 500 {
            bench.send(bench.now, Port::WIRED, packet(0, host(0), 1498));
            bench.log.clear();
            bench.until(bench.now + Duration::from_millis(2));
        }
        let windows: u32 = (0..limit).map(|failures| (16 << failures) - 1).sum();
        let expected = 1e6 / (228.0 + 45.0 + 43.0 + 4.5 * f64::from(windows) / f64::from(limit));
        let found = bench.bss.station(0).down.packets.attempts as f64 / seconds as f64;
        assert!((found / expected - 1.0).abs() < 0.03, "limit {limit}: {found} for {expected}");
    }
}

/// The collision probability of n stations that always have packets, by Bianchi's fixed point for a window from 16 to 1024 slots.
fn bianchi(stations: i32) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let p: f64 = (low + high) / 2.0;
        let (w, m) = (16.0, 6);
        let sum: f64 = (0..m).map(|stage| (2.0 * p).powi(stage)).sum();
        let tau = 2.0 / (w + 1.0 + p * w * sum);
        if 1.0 - (1.0 - tau).powi(stations - 1) > p {
            low = p;
        } else {
            high = p;
        }
    }
    low
}

#[test]
fn stations_collide_as_in_bianchis_model() {
    for (count, seconds) in [(2, 10), (5, 6), (10, 6)] {
        let (_, bench) = saturated(ht20(), mcs7(), count, true, seconds);
        let stats = bench.bss.stats();
        let found = stats.collided as f64 / (stats.collided + stats.ppdus) as f64;
        let expected = bianchi(count as i32);
        assert!((found - expected).abs() < 0.03, "{count} stations: {found} for {expected}");
    }
}

/// ns-3.37's goodput of stations up, and down with losses, in Mb/s.
#[test]
fn goodput_is_that_of_ns3() {
    let lossy = |loss| {
        let loss = MpduLoss { down: Probability::new(loss).unwrap(), ..MpduLoss::default() };
        StationRadio { loss, ..mcs7() }
    };
    let no_aggregates = WifiConfig { ampdu: lasthop_base::Bytes::ZERO, ..ht20() };
    let eifs = WifiConfig { eifs: true, ..ht20() };
    let with_requests = WifiConfig { requests_block_ack: true, ..ht20() };
    for (config, radio, count, up, expected) in [
        (no_aggregates, mcs7(), 5, true, 30.54),
        (eifs, mcs7(), 5, true, 51.20),
        (with_requests, mcs7(), 10, true, 42.47),
        (ht20(), lossy(0.05), 1, false, 56.82),
        (ht20(), lossy(0.2), 1, false, 47.72),
    ] {
        let (found, _) = saturated(config, radio, count, up, 6);
        assert!((found / expected - 1.0).abs() < 0.03, "{count} stations: {found} for {expected}");
    }
}

/// Equal numbers of A-MPDUs leave a slow station most of the air; deficits of air time divide it.
#[test]
fn schedulers_divide_aggregates_or_air_time() {
    let shares = |scheduler| {
        let mut all = stations(1, 2, mcs7(), AboveMac::default());
        all[0].radio.rate =
            lasthop_link::wifi::rate::RateSelection::Fixed(lasthop_link::wifi::rate::FixedRate {
                mcs: 0,
                streams: 1,
            });
        let mut bench =
            Bench::new(WifiConfig { scheduler, ampdu: lasthop_base::Bytes::ZERO, ..ht20() }, 1, all);
        goodput_mbps(&mut bench, 2, false, 3);
        let [slow, fast] = [0, 1].map(|index| bench.bss.station(index).down.air_time.as_secs_f64());
        slow / (slow + fast)
    };
    // PPDUs of 1932 and 228 µs with their responses of 60 and 44.
    let turns = shares(Scheduler::RoundRobin);
    let expected = (1932.0 + 60.0) / (1932.0 + 60.0 + 228.0 + 44.0);
    assert!((turns - expected).abs() < 0.01, "{turns}");
    assert!((shares(Scheduler::Airtime) - 0.5).abs() < 0.01);
}

/// What a station did alone is not held against it: two stations share the air from the moment at which the second download
/// begins, after a download of the first, and after its upload.
#[test]
fn a_late_starter_gets_its_share_at_once() {
    for up in [false, true] {
        let config = WifiConfig { scheduler: Scheduler::Airtime, ..ht20() };
        let mut bench = Bench::new(config, 1, stations(1, 2, mcs7(), AboveMac::default()));
        let air_times = |bench: &Bench| {
            [0, 1].map(|index| {
                let ways = bench.bss.station(index);
                (ways.down.air_time + ways.up.air_time).as_secs_f64()
            })
        };
        saturate(&mut bench, 1, up, 2);
        let before = air_times(&bench);
        assert!(before[0] > 1.9 && before[1] == 0.0, "{before:?}");
        saturate(&mut bench, 2, false, 1);
        let after = air_times(&bench);
        let [first, second] = [0, 1].map(|index| after[index] - before[index]);
        assert!((second / (first + second) - 0.5).abs() < 0.02, "up {up}: {first} {second}");
    }
}

/// A neighbouring BSS takes the share of the air that it asks for, and leaves the rest.
#[test]
fn a_neighbour_takes_its_share() {
    // Short exchanges would get less: those of the station are as frequent and last 5.4 ms.
    let exchange = Duration::from_millis(4);
    let neighbour = Some(Neighbour { share: Probability::new(0.3).unwrap(), exchange });
    let (alone, _) = saturated(ht20(), mcs7(), 1, false, 4);
    let (beside, bench) = saturated(WifiConfig { neighbour, ..ht20() }, mcs7(), 1, false, 4);
    let share = bench.bss.stats().neighbour_time.as_secs_f64() / 4.0;
    assert!((share - 0.3).abs() < 0.03, "{share}");
    assert!(beside < 0.71 * alone && beside > 0.55 * alone, "{beside} of {alone}");
}

/// RTS makes collisions short.
#[test]
fn rts_shortens_collisions() {
    let time = |rts| {
        let (_, bench) = saturated(WifiConfig { rts, ..ht20() }, mcs7(), 5, true, 3);
        let stats = bench.bss.stats();
        (stats.collisions, stats.collision_time.as_secs_f64() / stats.collisions as f64)
    };
    let ((some, long), (many, short)) = (time(false), time(true));
    assert!(some > 50 && many > 50);
    // An RTS takes 28 µs at 24 Mb/s, an A-MPDU up to 5.4 ms.
    assert!(long > 4e-3 && short < 29e-6, "{long} {short}");
}
