//! Times in which a station is away, or the medium is not Wi-Fi's: roaming and bursts of interference, against closed forms.

use lasthop_base::{Bytes, Duration, Probability, Time};
use lasthop_link::queue::{Queue, QueueLimit};
use lasthop_link::wifi::rate::RateSelection;
use lasthop_link::wifi::{Interference, Queued, Roaming, StationRadio, WifiConfig};
use lasthop_link::wlan::RetryLimit;
use lasthop_proto::{DropReason, Port};
use lasthop_sim::wlan::AboveMac;

use crate::wifi::harness::{Bench, ht20, mcs7, stations};
use crate::wlan::harness::{Did, SERVER, host, packet, us};

/// It scans two channels and roams every second.
const ROAMING: Roaming = Roaming {
    every: Duration::from_secs(1),
    channels: 2,
    dwell: Duration::from_millis(60),
    pause: Duration::from_millis(200),
    fast_transition: false,
    gap: None,
    queued: Queued::Lost,
};

/// A packet every millisecond for ten seconds, down or up, to or from a station that roams.
fn stream(roaming: Roaming, up: bool) -> Bench {
    stream_of(StationRadio { roaming: Some(roaming), ..mcs7() }, up)
}

fn stream_of(radio: StationRadio, up: bool) -> Bench {
    let mut bench = Bench::new(ht20(), 1, stations(1, 1, radio, AboveMac::default()));
    let (port, to) = if up { (Port(1), SERVER) } else { (Port::WIRED, host(0)) };
    for number in 0..10_000 {
        bench.send(us(1_000 * number + 300), port, packet(number, to, 500));
    }
    bench.finish_within(Duration::from_millis(20));
    bench
}

/// Times without a delivery of more than 7 ms: when they end, and how long they are, in milliseconds.
fn pauses(bench: &Bench) -> Vec<(f64, f64)> {
    let at: Vec<f64> = bench.deliveries().iter().map(|delivery| delivery.0 / 1e3).collect();
    at.windows(2).map(|pair| (pair[1], pair[1] - pair[0])).filter(|pause| pause.1 > 7.0).collect()
}

/// Of each second, it is away 60 ms, and 60 ms again 200 ms later, and for the gap after another 200 ms. What waits is delivered in its
/// order; frames of the station wait, too.
#[test]
fn a_station_is_away_for_its_scans_and_for_the_gap() {
    for (fast_transition, gap_ms) in [(false, 250.0), (true, 8.5)] {
        for up in [false, true] {
            let bench = stream(Roaming { fast_transition, queued: Queued::Forwarded, ..ROAMING }, up);
            let found = bench.deliveries();
            assert!(found.iter().map(|delivery| delivery.1).eq(0..10_000));
            let pauses = pauses(&bench);
            assert!((27..=30).contains(&pauses.len()), "{pauses:?}");
            for triple in pauses.windows(3).filter(|triple| (triple[2].1 - gap_ms).abs() < 5.0) {
                // To a packet and its exchange.
                for (pause, expected) in triple.iter().zip([60.0, 60.0, gap_ms]) {
                    assert!((pause.1 - expected).abs() < 2.0, "{triple:?}");
                }
                let ends = [triple[1].0 - triple[0].0, triple[2].0 - triple[1].0];
                for (found, expected) in ends.iter().zip([260.0, 200.0 + gap_ms]) {
                    assert!((found - expected).abs() < 2.0, "{triple:?}");
                }
            }
            let roams = bench.bss.station(0).roams;
            assert!((9..=10).contains(&roams), "{roams}");
        }
    }
}

/// At the next access point, Minstrel begins with the lowest rate: of the packets that waited, 11 of 544 B fit into the longest PPDU at 6.5 Mb/s, where
/// 65 Mb/s had room for all 64 of the window.
#[test]
fn rate_control_begins_anew() {
    let deliveries_at_once = |rate| {
        let roaming = Roaming { queued: Queued::Forwarded, ..ROAMING };
        let bench = stream_of(StationRadio { rate, roaming: Some(roaming), ..mcs7() }, false);
        let at: Vec<f64> = bench.deliveries().iter().map(|delivery| delivery.0 / 1e3).collect();
        let gaps = (1..at.len()).filter(|&index| at[index] - at[index - 1] > 200.0);
        let after = gaps
            .map(|index| at.iter().filter(|time| **time >= at[index] && **time < at[index] + 5.3).count());
        after.collect::<Vec<_>>()
    };
    let [adaptive, fixed] = [RateSelection::MinstrelHt, mcs7().rate].map(deliveries_at_once);
    assert!(adaptive.len() >= 9 && adaptive.iter().all(|count| *count < 20), "{adaptive:?}");
    assert!(fixed.len() >= 9 && fixed.iter().all(|count| *count > 60), "{fixed:?}");
}

/// What a queue holds when the station leaves waits, too.
#[test]
fn a_backlog_waits_for_the_station() {
    let radio = StationRadio { roaming: Some(Roaming { queued: Queued::Forwarded, ..ROAMING }), ..mcs7() };
    let config = WifiConfig { queue: Queue::DropTail(QueueLimit::Unlimited), ..ht20() };
    let mut bench = Bench::new(config, 1, stations(1, 1, radio, AboveMac::default()));
    for number in 0..10_000 {
        bench.send(us(1), Port::WIRED, packet(number, host(0), 1498));
    }
    bench.finish_within(Duration::from_millis(20));
    let pauses: Vec<f64> = pauses(&bench).into_iter().map(|pause| pause.1).collect();
    let near = |expected: f64| pauses.iter().filter(|pause| (*pause - expected).abs() < 8.0).count();
    // Two seconds of air take three of time.
    assert!(near(60.0) >= 4 && near(250.0) >= 2 && pauses.len() <= 9, "{pauses:?}");
}

/// One queue of 100 packets for all stations has room for the others when a station has left with packets in it, however often.
#[test]
fn what_a_station_leaves_takes_no_room() {
    let ms = Duration::from_millis;
    let roaming = Roaming { every: ms(500), channels: 0, gap: Some(ms(50)), ..ROAMING };
    let queue = Queue::DropTail(QueueLimit::Packets(100));
    let mut all = stations(1, 2, mcs7(), AboveMac::default());
    all[0].radio.roaming = Some(roaming);
    let mut bench = Bench::new(WifiConfig { queue, ..ht20() }, 1, all);
    // Bursts of 60 packets, which take 12 of 30 ms, to the one that roams; one packet each to the other.
    for number in 0..1_000 {
        let at = us(30_000 * number);
        (0..60).for_each(|_| bench.send(at, Port::WIRED, packet(number, host(0), 1498)));
        bench.send(at, Port::WIRED, packet(number, host(1), 1498));
    }
    bench.finish_within(ms(20));
    let [roams, stays] = [0, 1].map(|index| bench.bss.station(index).down);
    let left =
        bench.log.iter().filter(|(_, did)| matches!(did, Did::Drop(_, DropReason::Unreachable))).count();
    assert!(left > 2_000 && roams.packets.overflowed == 0, "{left} {roams:?}");
    assert_eq!((stays.packets.delivered, stays.packets.overflowed), (1_000, 0));
}

/// Without forwarding, the packets of the gap are dropped, one for each millisecond, and no others.
#[test]
fn the_packets_of_the_gap_are_lost() {
    let bench = stream(ROAMING, false);
    let dropped = bench.log.iter().filter(|(_, did)| matches!(did, Did::Drop(_, DropReason::Unreachable)));
    let (dropped, station) = (dropped.count() as u64, bench.bss.station(0));
    let gaps = dropped as f64 / 250.0;
    assert!((gaps - gaps.round()).abs() < 0.05 && gaps.round() as u64 - station.roams <= 1, "{dropped}");
    assert_eq!(dropped, station.down.unreachable + station.down.packets.discarded);
    assert_eq!(bench.deliveries().len() as u64 + dropped, 10_000);
    let up = stream(ROAMING, true);
    assert_eq!(up.deliveries().len(), 10_000);
}

/// A packet every 27.3 ms, so that none waits behind another, 4000 in all, beside bursts.
fn beside(source: Interference) -> Bench {
    let config = WifiConfig { interference: Some(source), retry_limit: RetryLimit::at_most(1), ..ht20() };
    let mut bench = Bench::new(config, 1, stations(1, 1, mcs7(), AboveMac::default()));
    for number in 0..4_000 {
        bench.send(us(27_300 * number), Port::WIRED, packet(number, host(0), 1498));
    }
    bench.finish_within(Duration::from_millis(40));
    bench
}

/// Bursts that nobody hears lose the packets whose 228 µs they meet.
#[test]
fn packets_that_meet_a_burst_are_lost() {
    for loss in [1.0, 0.25] {
        let loss = Probability::new(loss).unwrap();
        let bench = beside(Interference { heard: false, loss, ..Interference::default() });
        let found = bench.bss.station(0).down.packets.discarded as f64 / 4_000.0;
        let expected = loss.get() * (10.0 + 0.228) / 20.0;
        assert!((found - expected).abs() < 0.01, "{found} for {expected}");
    }
}

/// Bursts that are heard take their share of the air, and lose only packets that were on the air before. A packet that comes in a burst
/// waits for its end.
#[test]
fn nobody_sends_in_a_burst_that_is_heard() {
    let bench = beside(Interference::default());
    let stats = bench.bss.stats();
    let share = stats.interference_time.as_secs_f64() / bench.woken.since(Time::ZERO).as_secs_f64();
    assert!((share - 0.5).abs() < 0.01, "{share}");
    // Those that begin less than their air time before a burst.
    let lost = bench.bss.station(0).down.packets.discarded as f64 / 4_000.0;
    assert!((lost - 0.228 / 20.0).abs() < 0.006, "{lost}");
    let waits: Vec<f64> = bench.deliveries().iter().map(|&(at, id)| at - 27_300.0 * id as f64).collect();
    let (most, late) =
        (waits.iter().copied().fold(0.0, f64::max), waits.iter().filter(|wait| **wait > 400.0));
    assert!(most < 10_000.0 + 43.0 + 15.0 * 9.0 + 230.0, "{most}");
    let share = late.count() as f64 / waits.len() as f64;
    assert!((share - 0.49).abs() < 0.02, "{share}");
}

/// A station that always has packets gets the time between bursts, and the rest of an exchange that has begun.
#[test]
fn a_saturated_station_gets_the_time_between_bursts() {
    let delivered = |interference| {
        let config = WifiConfig { interference, ampdu: Bytes::ZERO, ..ht20() };
        let mut bench = Bench::new(config, 1, stations(1, 1, mcs7(), AboveMac::default()));
        for number in 0..900 {
            bench.send(us(1), Port::WIRED, packet(number, host(0), 1498));
        }
        bench.until(us(200_000));
        bench.deliveries().len() as f64
    };
    let loss = Probability::new(0.0).unwrap();
    let ratio = delivered(Some(Interference { loss, ..Interference::default() })) / delivered(None);
    // An exchange takes 383 µs on average; half of one on average goes on in each burst.
    assert!(ratio > 0.49 && ratio < 0.53, "{ratio}");
}
