//! Round-trip time estimation in whole clock ticks, as in BSD: Jacobson 1988, appendix A, by hand.

use lasthop_base::{Duration, Time};
use lasthop_proto::tcp::{Flavour, Profile, RttArithmetic, RttEstimator, Settings};

use crate::tcp::dialogue::{ms, settings};

fn estimator(rtt_arithmetic: RttArithmetic) -> RttEstimator {
    RttEstimator::new(&Settings {
        rtt_arithmetic,
        tick: Duration::from_millis(100),
        rto_initial: Duration::from_secs(6),
        rto_min: Duration::from_millis(200),
        rto_max: Duration::from_secs(64),
        backoff_max: 64,
        ..settings(Flavour::Tahoe, 1)
    })
}

/// Time sent, time acknowledged, in milliseconds; ticks measured, srtt in eighths, rttvar in quarters, and
/// the RTO in ticks.
type Row = (u64, u64, [u64; 3], u64);

fn check(rtt: &mut RttEstimator, table: &[Row]) {
    for &(sent, acknowledged, expected, rto) in table {
        rtt.sample(ms(sent), ms(acknowledged));
        let ticks = rtt.ticks().expect("ticks");
        assert_eq!([ticks.rtt, ticks.srtt, ticks.rttvar], expected, "sent at {sent} ms");
        assert_eq!(rtt.rto(), Duration::from_millis(100) * rto, "sent at {sent} ms");
        assert_eq!(rtt.rttvar(), Duration::from_millis(25) * ticks.rttvar, "sent at {sent} ms");
        assert_eq!(rtt.srtt(), Some(Duration::from_micros(12_500) * ticks.srtt), "sent at {sent} ms");
    }
}

/// A sample m moves srtt/8 by an eighth of the error e = m − srtt/8, and rttvar/4 by a quarter of |e| −
/// rttvar/4, all truncated; the RTO is srtt/8 + rttvar, or 4 deviations. The sample is the number of clock
/// ticks in between.
// Rule: Whole ticks as in BSD, of a running clock or to the nearest tick. [Jacobson 1988 A; rtt.rs]
#[test]
fn ticks_of_a_running_clock() {
    let mut rtt = estimator(RttArithmetic::Ticks);
    // The deviation before the first sample is BSD's, TCPTV_SRTTDFLT.
    assert_eq!((rtt.rto(), rtt.rttvar()), (Duration::from_secs(6), Duration::from_secs(12)));
    let table = [
        // First: srtt = 8·3, rttvar = 2·3; (6·8 + 24) / 8 = 9.
        (990, 1210, [3, 24, 6], 9),
        // e = 5 − 3 = 2; srtt 26; |e| − 6/4 = 1: rttvar 7; (56 + 26) / 8 = 10.
        (2000, 2500, [5, 26, 7], 10),
        // e = 1 − 3 = −2; srtt 24; 2 − 1 = 1: rttvar 8; (64 + 24) / 8 = 11.
        (3000, 3100, [1, 24, 8], 11),
        // e = 3 − 3 = 0; 0 − 8/4 = −2: rttvar 6; (48 + 24) / 8 = 9.
        (4001, 4399, [3, 24, 6], 9),
        // e = 2 − 3 = −1; srtt 23; 1 − 6/4 = 0; (48 + 23) / 8 = 8.
        (5000, 5200, [2, 23, 6], 8),
        // Zero ticks count as one: e = 1 − 2 = −1; srtt 22; 1 − 6/4 = 0; (48 + 22) / 8 = 8.
        (6010, 6090, [1, 22, 6], 8),
    ];
    check(&mut rtt, &table);
}

/// The alternative measurement: the elapsed time, rounded to the nearest tick.
// Rule: as ticks_of_a_running_clock
#[test]
fn the_nearest_tick() {
    let table = [
        // 220 ms are two ticks: srtt 16, rttvar 4; (32 + 16) / 8 = 6.
        (990, 1210, [2, 16, 4], 6),
        // 249 ms are two: e = 0; 0 − 4/4 = −1: rttvar 3; (24 + 16) / 8 = 5.
        (2000, 2249, [2, 16, 3], 5),
        // 250 ms are three: e = 1; srtt 17; 1 − 3/4 = 1: rttvar 4; (32 + 17) / 8 = 6.
        (3000, 3250, [3, 17, 4], 6),
        // 49 ms round to zero, which counts as one: e = 1 − 2 = −1; srtt 16; 1 − 1 = 0; (32 + 16) / 8 = 6.
        (4000, 4049, [1, 16, 4], 6),
    ];
    check(&mut estimator(RttArithmetic::NearestTick), &table);
}

/// The RTO is at least two ticks, whatever its bounds: one tick could end just after it began.
// Rule: as ticks_of_a_running_clock
#[test]
fn the_timeout_is_at_least_two_ticks() {
    let tick = Duration::from_millis(100);
    let rtt = RttEstimator::new(&Settings { rto_min: tick, rto_max: tick, ..Profile::Ebsn.settings() });
    assert_eq!(rtt.rto(), tick * 2);
}

/// Backoff doubles the RTO up to 64 times and 64 s. From a factor of sixteen on the estimate is discarded,
/// and the next sample counts as the first.
// Rule: as ticks_of_a_running_clock
#[test]
fn high_backoff_discards_the_estimate() {
    let mut rtt = estimator(RttArithmetic::Ticks);
    check(&mut rtt, &[(0, 300, [3, 24, 6], 9)]);
    for expected in [18, 36, 72, 144, 288, 576, 576] {
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_millis(100) * expected);
    }
    // BSD adds srtt/8 to the deviation as it discards it: 6 + 24/8 quarters of a tick.
    assert_eq!((rtt.backoff(), rtt.srtt(), rtt.rttvar()), (64, None, Duration::from_millis(225)));
    check(&mut rtt, &[(0, 500, [5, 40, 10], 15)]);
    assert_eq!(rtt.backoff(), 1);
}

/// The RTO is at most 64 s.
// Rule: as ticks_of_a_running_clock
#[test]
fn the_timeout_is_at_most_64_s() {
    let mut rtt = estimator(RttArithmetic::Ticks);
    (0..5).for_each(|_| rtt.back_off());
    assert_eq!((rtt.backoff(), rtt.rto()), (32, Duration::from_secs(64)));
    assert_eq!(rtt.srtt(), None);
    rtt.sample(Time::ZERO, ms(100));
    assert_eq!(rtt.rto(), Duration::from_millis(300));
}
