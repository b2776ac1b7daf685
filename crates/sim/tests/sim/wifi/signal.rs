//! A signal that fades, and what rate controls make of it.

use lasthop_base::{Bytes, Decibels, Duration};
use lasthop_link::wifi::rate::{FixedRate, RateSelection};
use lasthop_link::wifi::{Access, Edca, Fading, NoiseErrors, StationRadio, WifiConfig};
use lasthop_link::wlan::{Cw, RetryLimit};
use lasthop_sim::wlan::AboveMac;

use crate::wifi::harness::{Bench, ht20, mcs7, stations};
use crate::wifi::saturation::goodput_mbps;

fn fading(rate: RateSelection, snr_db: f64, doppler_hz: f64, direct_db: Option<f64>) -> StationRadio {
    let direct = direct_db.map(|db| Decibels::new(db).unwrap());
    let fading = Some(Fading { doppler_hz, direct });
    StationRadio { rate, snr: Decibels::new(snr_db), fading, ..mcs7() }
}

fn fixed(mcs: u8) -> RateSelection {
    RateSelection::Fixed(FixedRate { mcs, streams: 1 })
}

/// PPDUs at equal times, whatever is lost, lose the mean of the table of errors over an exponentially distributed power; with a direct wave of
/// 40 dB hardly more than at the mean.
#[test]
fn losses_are_the_mean_over_the_fades() {
    let be = Access { aifsn: 3, cw: Cw { min: 15, max: 15 }, txop: Duration::ZERO };
    let config = WifiConfig {
        edca: Edca { best_effort: be, ..Edca::default() },
        retry_limit: RetryLimit::Unlimited,
        ..ht20()
    };
    let lost = |direct_db| {
        let (mut attempts, mut lost) = (0, 0);
        for seed in 0..4 {
            let radio = fading(fixed(7), 25.0, 40.0, direct_db);
            let mut bench = Bench::new(config, seed, stations(seed, 1, radio, AboveMac::default()));
            goodput_mbps(&mut bench, 1, false, 5);
            let way = &bench.bss.station(0).down.packets;
            (attempts, lost) = (attempts + way.attempts, lost + way.lost);
        }
        lost as f64 / attempts as f64
    };
    let at = |power: f64| {
        let snr = Decibels::new(25.0 + 10.0 * power.log10()).unwrap();
        1.0 - NoiseErrors::new(snr).survival(7, Bytes(1_536))
    };
    // At the middle of each of a thousand parts of equal probability.
    let expected = (0..1000).map(|part| at(-f64::ln((f64::from(part) + 0.5) / 1000.0))).sum::<f64>() / 1000.0;
    let found = lost(None);
    assert!(expected > 0.2 && (found / expected - 1.0).abs() < 0.1, "{found} for {expected}");
    assert!(lost(Some(40.0)) < 0.001);
}

/// While fades last longer than Minstrel's statistics, it has more than the best fixed rate, and less than one that knows the signal; when
/// they are shorter, it does not follow.
#[test]
fn minstrel_follows_slow_fades() {
    let goodput = |rate, doppler_hz| {
        let radio = fading(rate, 18.0, doppler_hz, None);
        let mut bench = Bench::new(ht20(), 1, stations(1, 1, radio, AboveMac::default()));
        goodput_mbps(&mut bench, 1, false, 10)[0]
    };
    for (doppler_hz, gain) in [(0.5, 1.1), (50.0, 0.0)] {
        let best = (0..8).map(|mcs| goodput(fixed(mcs), doppler_hz)).fold(0.0, f64::max);
        let [minstrel, ideal] =
            [RateSelection::MinstrelHt, RateSelection::Ideal].map(|rate| goodput(rate, doppler_hz));
        assert!(
            minstrel > gain * best && (minstrel > best) == (doppler_hz < 1.0) && minstrel.max(best) < ideal,
            "{best} {minstrel} {ideal}"
        );
    }
}
