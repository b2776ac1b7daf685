//! Averages against closed forms.
//!
//! Every comparison allows five standard errors, which a correct link exceeds for one seed in 1.7 million;
//! seeds are fixed.

use lasthop_base::{BitRate, Duration, Probability, Streams, Time};
use lasthop_channel::{Iid, Model};
use lasthop_proto::arq::{Backoff, Retransmissions};
use lasthop_proto::{DropReason, LinkOutcome};
use lasthop_sim::{Expansion, Exposed, LinkStats, RadioConfig};

use crate::radio::harness::{Bench, Did, Odds, mtu, packet, plain, selective_repeat, stop_and_wait};

const FIVE_SIGMA: f64 = 5.0;

/// Sends `n` packets of `size` bytes, all enqueued at time zero. Returns the statistics, the bench and the
/// end of the run.
fn saturate(config: RadioConfig, model: Model, n: u32, size: u64) -> (LinkStats, Bench, Time) {
    let channel = model.build(Streams::new(5, 0).stream("channel"));
    let mut bench = Bench::seeded(config, channel, 5);
    (0..n).for_each(|id| bench.send(Time::ZERO, packet(id, size)));
    let end = bench.finish().last().unwrap().0;
    (bench.link.stats(), bench, end)
}

fn frame_loss(loss: f64) -> Model {
    Model::FrameLoss(lasthop_channel::FrameLoss { loss: Probability::new(loss).unwrap() })
}

fn close(what: &str, found: f64, expected: f64, sd_of_one: f64, n: u32) {
    let allowed = FIVE_SIGMA * sd_of_one / f64::from(n).sqrt();
    assert!((found - expected).abs() <= allowed, "{what}: {found}, not {expected} ± {allowed}");
}

/// Mean and variance of the number of attempts with failure probability `p` and at most `max` attempts,
/// summed from the distribution.
fn attempts_law(p: f64, max: i32) -> (f64, f64) {
    let ends_with = |k: i32| p.powi(k - 1) * if k < max { 1.0 - p } else { 1.0 };
    let moment = |power: i32| (1..=max).map(|k| f64::from(k).powi(power) * ends_with(k)).sum::<f64>();
    (moment(1), moment(2) - moment(1) * moment(1))
}

#[test]
fn attempts_are_truncated_geometric() {
    let n = 40_000;
    for (p, limit) in [(0.5, 0), (0.5, 1), (0.3, 3), (0.8, 13)] {
        let arq = stop_and_wait(Retransmissions::AtMost(limit), Backoff::Fixed(Duration::ZERO));
        let (stats, bench, _) = saturate(RadioConfig { arq, ..plain() }, frame_loss(p), n, 1);
        let (mean, variance) = attempts_law(p, limit as i32 + 1);
        close("attempts", stats.attempts as f64 / f64::from(n), mean, variance.sqrt(), n);
        let discarded = p.powi(limit as i32 + 1);
        let sd = (discarded * (1.0 - discarded)).sqrt();
        close("discards", stats.discarded as f64 / f64::from(n), discarded, sd, n);
        let dropped = |did: &Did| matches!(did, Did::Drop(_, DropReason::AttemptsExhausted));
        let drops = bench.log.iter().filter(|(_, did)| dropped(did)).count();
        assert_eq!(drops as u64, stats.discarded);
    }
}

#[test]
fn unlimited_attempts_are_geometric() {
    let (n, p) = (40_000, 0.6);
    let arq = stop_and_wait(Retransmissions::Unlimited, Backoff::Fixed(Duration::ZERO));
    let (stats, ..) = saturate(RadioConfig { arq, ..plain() }, frame_loss(p), n, 1);
    assert_eq!(stats.delivered, u64::from(n));
    close("attempts", stats.attempts as f64 / f64::from(n), 2.5, p.sqrt() / (1.0 - p), n);
}

/// The mean service time is T·E\[A\] + w·(E\[A\] − 1), since there is one backoff less than attempts. Its
/// variance is that of A times the square of attempt plus backoff, plus the variance of the backoffs.
#[test]
fn service_time_is_the_sum_of_attempts_and_backoffs() {
    let (n, p, limit) = (40_000, 0.4, 5);
    let (mean_attempts, variance) = attempts_law(p, limit as i32 + 1);
    let (air, ms) = (0.010, Duration::from_millis);
    for (backoff, wait, wait_variance) in [
        (Backoff::Uniform(ms(700)), 0.35, 0.49 / 12.0),
        (Backoff::Exponential(ms(30)), 0.03, 0.0009),
        (Backoff::Fixed(ms(5)), 0.005, 0.0),
    ] {
        let arq = stop_and_wait(Retransmissions::AtMost(limit), backoff);
        let (stats, _, end) = saturate(RadioConfig { arq, ..plain() }, frame_loss(p), n, 10);
        let expected = air * mean_attempts + wait * (mean_attempts - 1.0);
        let spread = variance * (air + wait) * (air + wait) + (mean_attempts - 1.0) * wait_variance;
        close("service time", end.as_secs_f64() / f64::from(n), expected, spread.sqrt(), n);
        assert_eq!(stats.air_time, Duration::from_millis(10) * stats.attempts);
    }
}

/// With at most M = `limit` + 1 attempts the mean number of attempts of a unit is (1 − p^M)/(1 − p).
#[test]
fn attempts_of_selective_repeat_are_truncated_geometric() {
    let n = 40_000;
    for (p, limit) in [(0.5, 0), (0.3, 1), (0.5, 5), (0.8, 5)] {
        let attempts = limit as i32 + 1;
        let mean = (1.0 - f64::powi(p, attempts)) / (1.0 - p);
        let (_, variance) = attempts_law(p, attempts);
        for (delay, slot) in [(0, 0), (60, 10), (7, 0), (0, 3)] {
            let arq = selective_repeat(Retransmissions::AtMost(limit), delay, slot);
            let (stats, ..) = saturate(RadioConfig { arq, ..plain() }, frame_loss(p), n, 1);
            close("attempts", stats.attempts as f64 / f64::from(n), mean, variance.sqrt(), n);
        }
    }
}

/// A packet is lost if any of its N units would fail M times: 1 − (1 − p^M)^N, for any order of units and
/// although a discarded packet's remaining units are not sent.
#[test]
fn selective_repeat_discards_a_packet_when_a_unit_reaches_the_limit() {
    let n = 40_000;
    for (p, limit, units) in [(0.5, 0, 3), (0.5, 1, 3), (0.3, 2, 6), (0.6, 5, 4)] {
        let unit_arrives = 1.0 - f64::powi(p, limit as i32 + 1);
        let discarded = 1.0 - unit_arrives.powi(units);
        let sd = (discarded * (1.0 - discarded)).sqrt();
        for (delay, slot) in [(0, 0), (60, 10), (7, 0)] {
            let arq = selective_repeat(Retransmissions::AtMost(limit), delay, slot);
            let config = RadioConfig { arq, mtu: mtu(4), ..plain() };
            let (stats, ..) = saturate(config, frame_loss(p), n, 4 * units as u64);
            close("discards", stats.discarded as f64 / f64::from(n), discarded, sd, n);
            assert_eq!(stats.delivered + stats.discarded, u64::from(n));
        }
    }
}

/// The link is never idle while there are unsent units, so a unit costs 1/(1 − p) air times and no waiting:
/// the textbook efficiency of selective repeat. The link waits for feedback only at the end.
#[test]
fn selective_repeat_keeps_the_air_busy() {
    let (n, p, size) = (40_000, 0.4, 10);
    for (delay, slot) in [(0, 0), (60, 10), (95, 0)] {
        let arq = selective_repeat(Retransmissions::Unlimited, delay, slot);
        let (stats, _, end) = saturate(RadioConfig { arq, ..plain() }, frame_loss(p), n, size);
        let attempts = stats.attempts as f64 / f64::from(n);
        close("attempts", attempts, 1.0 / (1.0 - p), p.sqrt() / (1.0 - p), n);
        assert_eq!(stats.air_time, Duration::from_millis(10) * stats.attempts);
        let idle = end.since(Time::ZERO) - stats.air_time;
        // Of ten outstanding units, one needs more than 20 attempts with probability 10⁻⁷.
        assert!(idle <= Duration::from_millis(delay) * 20, "{idle} idle with a delay of {delay} ms");
    }
}

/// A packet survives if all its bits on the air do, fragmented or not.
#[test]
fn without_an_arq_delivery_equals_survival() {
    let (n, ber, bits) = (40_000, 1e-4_f64, 4_608);
    let model = Model::Iid(Iid { ber: Probability::new(ber).unwrap() });
    let wide_area = RadioConfig {
        rate: BitRate::from_bps(19_200).unwrap(),
        expansion: Expansion::new(1.5).unwrap(),
        ..plain()
    };
    for cut in [None, mtu(128)] {
        for (exposed, bits) in [(Exposed::OnAir, bits / 2 * 3), (Exposed::Payload, bits)] {
            let (stats, bench, end) =
                saturate(RadioConfig { mtu: cut, exposed, ..wide_area }, model.clone(), n, 576);
            let survival = (1.0 - ber).powi(bits);
            let sd = (survival * (1.0 - survival)).sqrt();
            close("goodput", stats.delivered as f64 / f64::from(n), survival, sd, n);
            assert_eq!(stats.delivered + stats.corrupted, u64::from(n));
            // A lost packet takes the same 360 ms.
            assert_eq!(end.as_nanos(), u64::from(n) * 360_000_000);
            assert!(!bench.log.iter().any(|(_, did)| matches!(did, Did::Signal(..))));
        }
    }
}

/// Attempt n has the same outcome in two schemes, whatever the backoffs in between.
#[test]
fn the_backoff_distribution_does_not_affect_survival() {
    let outcomes = |backoff| {
        let arq = stop_and_wait(Retransmissions::AtMost(2), backoff);
        let (_, bench, _) = saturate(RadioConfig { arq, ..plain() }, frame_loss(0.5), 500, 1);
        let outcome = |&(_, did): &(Time, Did)| match did {
            Did::Signal(_, outcome, _) if outcome != LinkOutcome::Discarded => Some(outcome),
            _ => None,
        };
        bench.log.iter().filter_map(outcome).collect::<Vec<_>>()
    };
    let second = Duration::from_secs(1);
    assert_eq!(outcomes(Backoff::Uniform(second)), outcomes(Backoff::Fixed(Duration::ZERO)));
    assert_eq!(outcomes(Backoff::Exponential(second)), outcomes(Backoff::Fixed(second)));
}

/// Certain outcomes consume a random number too, so later outcomes do not depend on certainty.
#[test]
fn every_attempt_draws_one_random_number() {
    let fates = |first: f64| {
        let odds = std::iter::once(first).chain(std::iter::repeat(0.5));
        let mut bench = Bench::new(plain(), Box::new(Odds(odds)));
        (0..100).for_each(|id| bench.send(Time::ZERO, packet(id, 1)));
        bench.finish()[1..].to_vec()
    };
    assert_eq!(fates(0.0), fates(0.5));
    assert_eq!(fates(1.0), fates(0.5));
}

#[test]
fn runs_are_a_function_of_the_seed() {
    let run = |seed| {
        let arq = stop_and_wait(Retransmissions::AtMost(3), Backoff::Uniform(Duration::from_millis(20)));
        let channel = frame_loss(0.4).build(Streams::new(seed, 0).stream("channel"));
        let mut bench = Bench::seeded(RadioConfig { arq, mtu: mtu(4), ..plain() }, channel, seed);
        (0..200).for_each(|id| bench.send(Time::ZERO, packet(id, 10)));
        bench.finish().to_vec()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
