//! Packet loss probability of every model: against closed forms, a matrix exponential by its series, and the
//! simulated channel. Seeds are fixed.

use crate::common::{assert_close, assert_within_five};
use lasthop_base::{Decibels, Duration, Probability, Streams, Time};
use lasthop_channel::{FixedPeriods, FrameLoss, Iid, Model, NguyenNoble, RayleighGilbert, Start, TwoState};

fn p(probability: f64) -> Probability {
    Probability::new(probability).unwrap()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn two_state(good_ber: f64, bad_ber: f64) -> TwoState {
    TwoState { good: ms(30), bad: ms(7), good_ber: p(good_ber), bad_ber: p(bad_ber), start: Start::Good }
}

fn fixed(good_ber: f64, bad_ber: f64) -> FixedPeriods {
    FixedPeriods { good: ms(30), bad: ms(7), good_ber: p(good_ber), bad_ber: p(bad_ber) }
}

fn fading(good_ber: f64, bad_ber: f64) -> RayleighGilbert {
    RayleighGilbert {
        fading_margin: Decibels::new(5.0).unwrap(),
        doppler: 0.1,
        step: ms(10),
        good_ber: p(good_ber),
        bad_ber: p(bad_ber),
        start: Start::Bad,
    }
}

#[test]
fn stateless_loss_is_independent_of_air_time() {
    let long = Duration::from_secs(1);
    let iid = Model::Iid(Iid { ber: p(1e-6) });
    assert_eq!(Model::Perfect.loss_probability(3, 1000, long), 0.0);
    assert_close("bits", iid.loss_probability(3, 4000, long), 1.0 - (1.0f64 - 1e-6).powi(4000), 1e-10);
    // Frames are lost as a whole, independently of their air time.
    let frames = Model::FrameLoss(FrameLoss { loss: p(0.1) });
    assert_close("one frame", frames.loss_probability(1, 4000, long), 0.1, 1e-15);
    assert_close("three frames", frames.loss_probability(3, 1, long), 0.271, 1e-12);
}

/// With errors in one state, e^M 1 has a closed form in the limits; with errors in both, the series is used.
#[test]
fn exponential_dwell_times() {
    let series = |model: TwoState, bits: u64, on_air: Duration| {
        let times = |mean: Duration| on_air.as_secs_f64() / mean.as_secs_f64();
        let (a, b) = (times(model.good), times(model.bad));
        let exponent = |ber: Probability| -(-ber.get()).ln_1p() * bits as f64;
        let (g, w) = (exponent(model.good_ber), exponent(model.bad_ber));
        // e^M = (e^(M/n))^n, each by its series.
        let n = 4096;
        let apply = |v: [f64; 2]| {
            let mut sum = v;
            let mut term = v;
            for k in 1..12 {
                let scale = 1.0 / f64::from(n * k);
                term =
                    [scale * (-(a + g) * term[0] + a * term[1]), scale * (b * term[0] - (b + w) * term[1])];
                sum = [sum[0] + term[0], sum[1] + term[1]];
            }
            sum
        };
        let survived = (0..n).fold([1.0, 1.0], |v, _| apply(v));
        1.0 - (survived[0] * b + survived[1] * a) / (a + b)
    };
    for (good_ber, bad_ber) in [(0.0, 1e-3), (1e-6, 1e-2), (1e-3, 0.0), (1e-3, 1e-5), (1e-4, 1e-4)] {
        for (bits, on_air) in [(40, ms(1)), (4416, ms(2)), (12_000, ms(100)), (1, ms(1000))] {
            let model = two_state(good_ber, bad_ber);
            let found = Model::TwoState(model).loss_probability(1, bits, on_air);
            let expected = series(model, bits, on_air);
            assert!(
                (found - expected).abs() < 1e-11,
                "{good_ber}, {bad_ber}, {bits} bits in {on_air}: {found}, not {expected}"
            );
        }
    }
    // A frame is lost exactly if it overlaps a bad period, and the reverse with the error rates swapped.
    let certain = Model::TwoState(two_state(0.0, 1.0)).loss_probability(1, 100, ms(2));
    assert_close("bad", certain, 1.0 - 30.0 / 37.0 * (-2.0f64 / 30.0).exp(), 1e-14);
    let certain = Model::TwoState(two_state(1.0, 0.0)).loss_probability(1, 100, ms(2));
    assert_close("good", certain, 1.0 - 7.0 / 37.0 * (-2.0f64 / 7.0).exp(), 1e-14);
    assert_eq!(Model::TwoState(two_state(1.0, 1.0)).loss_probability(1, 100, ms(2)), 1.0);
    // Small loss probabilities keep their precision.
    let small = Model::TwoState(two_state(0.0, 1e-15)).loss_probability(1, 1000, ms(2));
    assert_close("small", small, 1e-12 * 7.0 / 37.0, 1e-9);
}

/// A frame begins at a uniform instant of the cycle: the mean over a fine grid of start times.
#[test]
fn constant_periods() {
    for (good_ber, bad_ber) in [(0.0, 1.0), (1.0, 0.0), (0.0, 1e-3), (1e-3, 1e-4), (1e-4, 1e-4)] {
        for (bits, on_air) in [(40, ms(1)), (4416, ms(2)), (1000, ms(50)), (1000, ms(100))] {
            let model = Model::FixedPeriods(fixed(good_ber, bad_ber));
            let mut channel = model.build(Streams::new(1, 0).stream("channel"));
            let (cycle, grid) = (ms(37).as_nanos(), 37_000);
            let survived: f64 = (0..grid)
                .map(|k| {
                    let start = Time::from_nanos(k * cycle + (2 * k + 1) * cycle / (2 * grid));
                    channel.survival(start, start + on_air, bits)
                })
                .sum();
            let expected = 1.0 - survived / grid as f64;
            let found = model.loss_probability(1, bits, on_air);
            assert!(
                (found - expected).abs() < 1e-7,
                "{good_ber}, {bad_ber}, {bits} bits in {on_air}: {found}, not {expected}"
            );
        }
    }
    // Lost: frames that begin in a bad period, or less than their own length before one.
    let certain = Model::FixedPeriods(fixed(0.0, 1.0)).loss_probability(1, 100, ms(2));
    assert_close("certain", certain, 9.0 / 37.0, 1e-14);
}

/// Widely spaced frames at random instants, compared within five standard errors.
#[test]
fn loss_probability_matches_simulated_channels() {
    let wlan = NguyenNoble {
        leave_error: p(0.2),
        leave_error_free: p(0.7),
        error_rate: p(0.005),
        errors_per: Default::default(),
        error_unit: Duration::from_micros(200),
        error_free_unit: Duration::from_micros(22_400),
        start: Start::Good,
    };
    for model in [
        Model::TwoState(two_state(1e-5, 1e-3)),
        Model::RayleighGilbert(fading(1e-5, 1e-3)),
        Model::RayleighGilbert(fading(1e-3, 1e-5)),
        Model::NguyenNoble(wlan),
    ] {
        for (bits, on_air) in [(400, ms(1)), (4416, ms(3)), (4416, ms(25))] {
            let streams = Streams::new(7, 0);
            let mut channel = model.build(streams.stream("channel"));
            let mut instants = streams.stream("instants");
            let mut now = Time::ZERO + Duration::from_secs(10);
            let losses: Vec<f64> = (0..20_000)
                .map(|_| {
                    now += ms(500) + instants.up_to(ms(500));
                    1.0 - channel.survival(now, now + on_air, bits)
                })
                .collect();
            let n = losses.len() as f64;
            let mean = losses.iter().sum::<f64>() / n;
            let squares: f64 = losses.iter().map(|loss| (loss - mean) * (loss - mean)).sum();
            let what = format!("{model:?}, {bits} bits in {on_air}");
            let expected = model.loss_probability(1, bits, on_air);
            assert_within_five(&what, mean, expected, (squares / (n - 1.0) / n).sqrt());
        }
    }
}

/// Steps of equal length are units of both states, so a Nguyen-Noble channel with such units is the same.
#[test]
fn fading_equals_nguyen_noble_with_one_unit() {
    let fading = fading(0.0, 1e-3);
    let chain = fading.chain();
    let units = NguyenNoble {
        leave_error: chain.bad_to_good,
        leave_error_free: chain.good_to_bad,
        error_rate: p(1e-3),
        errors_per: lasthop_channel::ErrorsPer::Bit,
        error_unit: ms(10),
        error_free_unit: ms(10),
        start: Start::Stationary,
    };
    for on_air in [ms(3), ms(10), ms(47)] {
        let found = Model::RayleighGilbert(fading).loss_probability(1, 3840, on_air);
        assert_close("fading", found, Model::NguyenNoble(units).loss_probability(1, 3840, on_air), 1e-12);
    }
}
