//! Retries and losses above the MAC, against closed forms.
//!
//! Every comparison allows five standard errors, which a correct BSS exceeds for one seed in 1.7 million;
//! seeds are fixed.

use lasthop_base::{Bytes, Probability, Streams};
use lasthop_channel::{Iid, Model};
use lasthop_sim::wlan::{AboveMac, BssConfig, RetryLimit, StationStats};

use crate::wlan::harness::{Bench, SERVER, frame_loss, host, packet, port, stations};
use lasthop_proto::Port;

const N: u64 = 20_000;

fn close(what: &str, found: u64, expected: f64, sd_of_one: f64) {
    let (found, allowed) = (found as f64 / N as f64, 5.0 * sd_of_one / (N as f64).sqrt());
    println!("{what}: {found:.5}, exact {expected:.5} ± {allowed:.5}");
    assert!((found - expected).abs() <= allowed, "{what}: {found}, not {expected} ± {allowed}");
}

fn of_one(p: f64) -> f64 {
    (p * (1.0 - p)).sqrt()
}

/// Saturates the link downwards, and then upwards.
fn saturate(config: BssConfig, model: Model, above_mac: AboveMac, size: u64) -> StationStats {
    let mut bench = Bench::new(config, 5, stations(Streams::new(5, 0), 1, model, above_mac));
    (0..N).for_each(|id| bench.enter(Port::WIRED, packet(id, host(0), size)));
    bench.finish();
    (0..N).for_each(|id| bench.enter(port(0), packet(id, SERVER, size)));
    bench.finish();
    *bench.bss.station(0)
}

/// Mean and variance of the number of attempts, summed term by term.
fn attempts_law(p: f64, most: i32) -> (f64, f64) {
    let ends_with = |k: i32| p.powi(k - 1) * if k < most { 1.0 - p } else { 1.0 };
    let moment = |power: i32| (1..=most).map(|k| f64::from(k).powi(power) * ends_with(k)).sum::<f64>();
    (moment(1), moment(2) - moment(1) * moment(1))
}

#[test]
fn attempts_are_truncated_geometric() {
    for (p, limit) in [(0.1, 7), (0.5, 7), (0.7, 7), (0.5, 4), (0.5, 1)] {
        for rts_threshold in [None, Some(Bytes(0))] {
            // The retry limit of the other frame type differs.
            let other = RetryLimit::at_most(limit + 2);
            let this = RetryLimit::at_most(limit);
            let (short, long) = if rts_threshold.is_none() { (this, other) } else { (other, this) };
            let config = BssConfig {
                rts_threshold,
                short_retry_limit: short,
                long_retry_limit: long,
                ..BssConfig::default()
            };
            let stats = saturate(config, frame_loss(p), AboveMac::default(), 100);
            for way in [stats.down, stats.up] {
                let (mean, variance) = attempts_law(p, limit as i32);
                close("attempts", way.attempts, mean, variance.sqrt());
                let discarded = p.powi(limit as i32);
                close("discards", way.discarded, discarded, of_one(discarded));
                assert_eq!(way.delivered + way.discarded, N);
                assert_eq!(way.delivered + way.lost, way.attempts);
            }
        }
    }
}

#[test]
fn without_a_limit_every_packet_arrives() {
    let config = BssConfig { short_retry_limit: RetryLimit::Unlimited, ..BssConfig::default() };
    let stats = saturate(config, frame_loss(0.6), AboveMac::default(), 100);
    close("attempts", stats.down.attempts, 2.5, 0.6f64.sqrt() / 0.4);
    assert_eq!((stats.down.delivered, stats.up.delivered), (N, N));
}

/// 36 bytes of MAC, LLC and SNAP headers are exposed with each packet.
#[test]
fn the_whole_frame_is_exposed_to_bit_errors() {
    let config = BssConfig { short_retry_limit: RetryLimit::at_most(1), ..BssConfig::default() };
    let model = Model::Iid(Iid { ber: Probability::new(1e-4).unwrap() });
    let stats = saturate(config, model, AboveMac::default(), 100);
    let survival = (1.0f64 - 1e-4).powi(8 * 136);
    close("delivered", stats.down.delivered, survival, of_one(survival));
    close("delivered", stats.up.delivered, survival, of_one(survival));
}

/// Packets lost above the MAC have been acknowledged, so there are no retries.
#[test]
fn losses_above_the_mac_are_not_retried() {
    let p = |p| Probability::new(p).unwrap();
    let above_mac = AboveMac { down: p(0.2), up: p(0.05) };
    let stats = saturate(BssConfig::default(), Model::Perfect, above_mac, 100);
    for (way, p) in [(stats.down, 0.2), (stats.up, 0.05)] {
        assert_eq!((way.attempts, way.retries), (N, 0));
        close("corrupted", way.corrupted, p, of_one(p));
        assert_eq!(way.delivered + way.corrupted, N);
        assert_eq!(way.delivered_bytes, Bytes(100 * way.delivered));
    }
}
