//! Departures from a traffic source.

use lasthop_base::{Duration, Time};
use lasthop_proto::traffic::{Config, Pattern, Periods};
use lasthop_sim::QueueLimit;

use crate::queues::net::{Net, SERVICE, always, load};

/// Departures of the Poisson source per second.
const PER_SECOND: f64 = 500.0;
const SECONDS: u64 = 1_000;

/// Departure times of a Poisson source, in seconds.
fn poisson_instants() -> Vec<f64> {
    let stop = Time::ZERO + Duration::from_secs(SECONDS);
    let config = Config { stop, ..always(Pattern::Poisson { rate: load(500) }) };
    let mut net = Net::new(1, &[config], QueueLimit::Unlimited);
    net.until(Duration::from_secs(SECONDS + 1));
    let sent = &net.engine.tap().sent;
    assert_eq!(sent.len() as u64, net.sent_by(0));
    sent.iter().map(|instant| instant.as_secs_f64()).collect()
}

#[track_caller]
fn assert_within_five(what: &str, found: f64, expected: f64, standard_error: f64) {
    let errors = (found - expected) / standard_error;
    println!("{what}: {found:.5}, exact {expected:.5}, {errors:+.1} errors");
    assert!(errors.abs() < 5.0, "{what}: {found}, not {expected}: {errors:.1} standard errors off");
}

/// Counts in disjoint windows of length t are independent with mean and variance λt. The standard error of
/// the variance over n windows follows from the fourth central moment, λt + 3(λt)².
#[test]
fn poisson_counts_have_equal_mean_and_variance() {
    let instants = poisson_instants();
    for windows_per_second in [2_500, 100, 10] {
        let n = (SECONDS * windows_per_second) as usize;
        let mut counts = vec![0.0; n];
        instants.iter().for_each(|instant| counts[(instant * windows_per_second as f64) as usize] += 1.0);
        let (expected, n) = (PER_SECOND / windows_per_second as f64, n as f64);
        let mean = counts.iter().sum::<f64>() / n;
        let variance = counts.iter().map(|count| (count - expected).powi(2)).sum::<f64>() / n;
        assert_within_five(&format!("mean of {expected}"), mean, expected, (expected / n).sqrt());
        let error = ((expected + 2.0 * expected * expected) / n).sqrt();
        assert_within_five(&format!("variance of {expected}"), variance, expected, error);
    }
}

/// Over n gaps the relative standard error of the mean is 1/√n, and so is that of the coefficient of
/// variation (delta method, with the exponential's moments 1, 2, 6, 24).
#[test]
fn poisson_gaps_have_unit_coefficient_of_variation() {
    let instants = poisson_instants();
    let before = std::iter::once(&0.0).chain(&instants);
    let gaps: Vec<_> = before.zip(&instants).map(|(before, after)| after - before).collect();
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
    assert_within_five("mean gap", mean * PER_SECOND, 1.0, 1.0 / n.sqrt());
    assert_within_five("coefficient of variation", variance.sqrt() / mean, 1.0, 1.0 / n.sqrt());
}

/// Durations are in multiples of the gap within a burst.
fn on_off(on: u64, off: u64, periods: Periods) -> Net {
    let pattern = Pattern::OnOff { rate: load(1_000), on: SERVICE * on, off: SERVICE * off, periods };
    Net::new(on, &[always(pattern)], QueueLimit::Unlimited)
}

/// Periods that are multiples of the gap: the rate is exactly rate · on/(on + off).
#[test]
fn fixed_bursts_have_their_mean_rate() {
    for (on, off) in [(1, 1), (5, 3), (40, 200)] {
        let mut net = on_off(on, off, Periods::Fixed);
        // The next burst begins a nanosecond later.
        net.until(SERVICE * ((on + off) * 1_000) - Duration::from_nanos(1));
        assert_eq!(net.sent_by(0), on * 1_000);
    }
}

/// Bursts of exponential duration have 1/(1 − e^(−g/on)) packets on average, where g is the gap between
/// packets; the first packet leaves at the start of the burst.
#[test]
fn exponential_bursts_have_their_mean_rate() {
    for (on, off, tolerance) in [(1, 1, 0.02), (2, 3, 0.02), (50, 20, 0.05)] {
        let cycle = (SERVICE * (on + off)).as_secs_f64();
        let counts = |net: &Net| (net.sent_by(0) as f64, net.engine.now().as_secs_f64() / cycle);
        let found = on_off(on, off, Periods::Exponential).ratio(Duration::from_secs(20), counts);
        let expected = 1.0 / (1.0 - (-1.0 / on as f64).exp());
        found.assert_is(&format!("packets in {on} on and {off} off"), expected, tolerance);
    }
}
