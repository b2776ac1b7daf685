//! Stations that do not hear each other.

use lasthop_base::{Bytes, Duration, Streams};
use lasthop_link::wifi::WifiConfig;
use lasthop_link::wlan::RetryLimit;
use lasthop_proto::{DropReason, Port};
use lasthop_sim::wlan::AboveMac;

use crate::wifi::harness::{Bench, ht20, mcs7, stations};
use crate::wifi::saturation::goodput_mbps;
use crate::wlan::harness::{Did, SERVER, packet, us};

/// Two stations in these areas.
fn pair(config: WifiConfig, areas: [u16; 2]) -> Bench {
    let mut all = stations(1, 2, mcs7(), AboveMac::default());
    for (station, area) in all.iter_mut().zip(areas) {
        station.radio.area = area;
    }
    Bench::new(config, 1, all)
}

/// Two stations send single packets of 228 µs at random, without repetition: each is lost if the other begins less than that before or
/// after it, as in ALOHA (Abramson, AFIPS 1970), so that e^(-2 x rate x 228 µs) arrive. Stations that hear each other collide in the slot in which
/// both begin.
#[test]
fn hidden_stations_collide_as_in_aloha() {
    let each = Duration::from_micros(5_000);
    let packets = 8_000;
    let config = WifiConfig { ampdu: Bytes::ZERO, retry_limit: RetryLimit::at_most(1), ..ht20() };
    let lost = |areas| {
        let mut bench = pair(config, areas);
        let mut arrivals = Vec::new();
        for station in 0..2 {
            let mut random = Streams::new(station, 0).stream("arrivals");
            let mut at = us(1_000);
            for number in 0..packets {
                at += random.exponential(each);
                arrivals.push((at, Port(1 + station as u32), packet(number, SERVER, 1498)));
            }
        }
        arrivals.sort_by_key(|arrival| arrival.0);
        for (at, port, packet) in arrivals {
            bench.send(at, port, packet);
        }
        bench.finish();
        let lost = [0, 1].map(|index| bench.bss.station(index).up.packets.discarded);
        lost.iter().sum::<u64>() as f64 / (2 * packets) as f64
    };
    let (found, expected) = (lost([0, 7]), 1.0 - f64::exp(-2.0 * 228.0 / 5_000.0));
    assert!((found / expected - 1.0).abs() < 0.1, "{found} for {expected}");
    assert!(lost([7, 7]) < 0.01);
}

/// By hand. The first station sends three MPDUs from 1006 µs on; the second begins 300 µs later, when the first MPDU has
/// arrived and the second one is on the air. The access point acknowledges one; the other station, which does not hear that PPDU and is on the air when it is
/// acknowledged, gets no response.
#[test]
fn the_ppdu_that_began_first_arrives_up_to_the_other() {
    let config = WifiConfig { retry_limit: RetryLimit::at_most(1), ..ht20() };
    let mut bench = pair(config, [1, 2]);
    for number in 1..=3 {
        bench.send(us(1_000), Port(1), packet(number, SERVER, 1498));
    }
    bench.send(us(1_300), Port(2), packet(4, SERVER, 1498));
    bench.finish();
    let found: Vec<(f64, Did)> =
        bench.log.iter().map(|(at, did)| (at.as_nanos() as f64 / 1e3, *did)).collect();
    // Three MPDUs of 1540 B have 143 symbols: 608 µs. The second station begins at a slot boundary, and has 228 µs.
    let first_end = 1006.0 + 36.0 + 143.0 * 4.0;
    let boundary = 43.0 + 9.0 * f64::ceil((1_300.0 - 43.0) / 9.0);
    assert!(matches!(found[0], (at, Did::Deliver(Port::WIRED, 1)) if at < boundary), "{found:?}");
    let drop = |number| Did::Drop(number, DropReason::AttemptsExhausted);
    let expected =
        [(boundary + 228.0, drop(4)), (first_end + 16.0 + 32.0, drop(2)), (first_end + 48.0, drop(3))];
    assert_eq!(found[1..], expected);
    let [first, second] = [0, 1].map(|index| bench.bss.station(index).up.packets);
    assert_eq!((first.collided, second.collided, first.lost, second.lost), (2, 1, 0, 0));
    assert_eq!(bench.bss.stats().collision_time, Duration::ZERO, "it lies within the first PPDU");
}

/// ns-3.37's goodput of two saturated stations (`benches/peers/wifi.cc`, 125 Mb/s) in Mb/s: that hear each other, that do not, and then with RTS
/// and CTS. Aggregates without RTS have none to be held to: its runs differ by a factor of two (`docs/reports/2026-11-wifi-beside-ns3.md`).
#[test]
fn hidden_stations_have_the_goodput_of_ns3() {
    let scenes = [
        (0, [1, 1], false, 31.41),
        (0, [1, 2], false, 27.82),
        (0, [1, 2], true, 23.99),
        (65_535, [1, 1], false, 56.61),
        (65_535, [1, 2], true, 58.45),
    ];
    for (ampdu, areas, rts, expected) in scenes {
        let config = WifiConfig { ampdu: Bytes(ampdu), retry_limit: RetryLimit::Unlimited, rts, ..ht20() };
        let found = goodput_mbps(&mut pair(config, areas), 2, true, 5).iter().sum::<f64>();
        assert!((found / expected - 1.0).abs() < 0.05, "{ampdu} B, RTS {rts}: {found} for {expected}");
    }
}
