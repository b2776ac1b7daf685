//! The two-state channel against closed forms. Seeds are fixed; each statistic must lie within 5 standard
//! errors of its expectation, which a correct program misses for one seed in about two million.

use crate::common::assert_within_five;
use lasthop_base::{Duration, Probability, Streams, Time};
use lasthop_channel::{Channel, Model, Start, State, TwoState};

const GOOD_MS: f64 = 10.0;
const BAD_MS: f64 = 4.0;
const GOOD_BER: f64 = 2e-5;
const BAD_BER: f64 = 1e-3;
const LONG_RUN_GOOD: f64 = GOOD_MS / (GOOD_MS + BAD_MS);

fn model(start: Start) -> Model {
    let p = |probability| Probability::new(probability).unwrap();
    let ms = |length: f64| Duration::from_secs_f64(length / 1e3);
    let (good, bad, good_ber, bad_ber) = (ms(GOOD_MS), ms(BAD_MS), p(GOOD_BER), p(BAD_BER));
    Model::TwoState(TwoState { good, bad, good_ber, bad_ber, start })
}

/// One independent channel for each run.
fn channels(start: Start, runs: u64) -> impl Iterator<Item = Box<dyn Channel>> {
    (0..runs).map(move |run| model(start).build(Streams::new(11, run).stream("channel")))
}

fn at_ms(ms: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(ms / 1e3)
}

/// Durations in milliseconds of `cycles` good sojourns and of the bad ones that follow them.
fn stays(cycles: usize) -> (Vec<f64>, Vec<f64>) {
    let mut channel = channels(Start::Good, 1).next().unwrap();
    let mut from = Time::ZERO;
    let mut stay = |state| {
        let sojourn = channel.sojourn(from);
        assert_eq!(sojourn.state, state);
        let length = sojourn.until.since(from).as_secs_f64() * 1e3;
        from = sojourn.until;
        length
    };
    (0..cycles).map(|_| (stay(State::Good), stay(State::Bad))).unzip()
}

#[test]
fn dwell_times_are_exponential() {
    let n = 200_000;
    let (good, bad) = stays(n);
    for (name, lengths, mean) in [("good", good, GOOD_MS), ("bad", bad, BAD_MS)] {
        let root_n = (n as f64).sqrt();
        let found = lengths.iter().sum::<f64>() / n as f64;
        assert_within_five(name, found, mean, mean / root_n);
        for multiple in [0.5, 1.0, 2.0] {
            let longer = lengths.iter().filter(|&&length| length > multiple * mean).count();
            let tail = (-multiple).exp();
            let error = (tail * (1.0 - tail)).sqrt() / root_n;
            assert_within_five(&format!("{name} beyond {multiple}"), longer as f64 / n as f64, tail, error);
        }
    }
}

/// The standard error is that of a ratio of sums over independent cycles (delta method).
#[test]
fn the_long_run_good_share_equals_the_availability() {
    let n = 200_000;
    let (good, bad) = stays(n);
    let (good, bad) = (good.iter().sum::<f64>(), bad.iter().sum::<f64>());
    let error = LONG_RUN_GOOD * (1.0 - LONG_RUN_GOOD) * (2.0 / n as f64).sqrt();
    assert_within_five("availability", good / (good + bad), model(Start::Good).availability(), error);
}

/// From a start in good, P(good at t) = π + (1 − π) e^(−(1/g + 1/b) t), and so on.
#[test]
fn the_state_relaxes_to_its_stationary_distribution() {
    let runs = 100_000;
    for (start, at_zero) in [(Start::Good, 1.0), (Start::Bad, 0.0), (Start::Stationary, LONG_RUN_GOOD)] {
        let times = [0.0, 1.0, 3.0, 30.0];
        let mut good = [0u32; 4];
        for mut channel in channels(start, runs) {
            for (count, t) in good.iter_mut().zip(times) {
                *count += u32::from(channel.sojourn(at_ms(t)).state == State::Good);
            }
        }
        for (count, t) in good.into_iter().zip(times) {
            let decay = (-(1.0 / GOOD_MS + 1.0 / BAD_MS) * t).exp();
            let expected = LONG_RUN_GOOD + (at_zero - LONG_RUN_GOOD) * decay;
            let error = (expected * (1.0 - expected) / runs as f64).sqrt().max(1e-12);
            assert_within_five(
                &format!("{start:?}, {t} ms"),
                f64::from(count) / runs as f64,
                expected,
                error,
            );
        }
    }
}

type Matrix = [[f64; 2]; 2];

fn product(a: Matrix, b: Matrix) -> Matrix {
    core::array::from_fn(|i| core::array::from_fn(|j| a[i][0] * b[0][j] + a[i][1] * b[1][j]))
}

/// Scaling and squaring: (I + m/2ᵏ + (m/2ᵏ)²/2)^(2ᵏ), with an error of order 2⁻²ᵏ.
fn exponential(m: Matrix) -> Matrix {
    const HALVINGS: i32 = 16;
    let small = m.map(|row| row.map(|x| x / 2f64.powi(HALVINGS)));
    let square = product(small, small);
    let unit = [[1.0, 0.0], [0.0, 1.0]];
    let mut power: Matrix =
        core::array::from_fn(|i| core::array::from_fn(|j| unit[i][j] + small[i][j] + square[i][j] / 2.0));
    for _ in 0..HALVINGS {
        power = product(power, power);
    }
    power
}

/// Mean survival of a frame of `bits` bits and `ms` milliseconds, given the state distribution (`good`, 1 −
/// `good`) at its start: a Markov chain killed at the bit error rate of its state.
fn expected_survival(good: f64, ms: f64, bits: u64) -> f64 {
    let kill = |ber: f64| -(1.0 - ber).ln() * bits as f64;
    let (leave_good, leave_bad) = (ms / GOOD_MS, ms / BAD_MS);
    let killed =
        exponential([[-leave_good - kill(GOOD_BER), leave_good], [leave_bad, -leave_bad - kill(BAD_BER)]]);
    good * (killed[0][0] + killed[0][1]) + (1.0 - good) * (killed[1][0] + killed[1][1])
}

#[test]
fn mean_survival_matches_a_killed_markov_chain() {
    let runs = 100_000;
    for (start, good) in [(Start::Good, 1.0), (Start::Bad, 0.0), (Start::Stationary, LONG_RUN_GOOD)] {
        for (ms, bits) in [(0.5, 1000), (5.0, 1000), (5.0, 10_000), (60.0, 4000)] {
            let (mut sum, mut squares) = (0.0, 0.0);
            for mut channel in channels(start, runs) {
                let survival = channel.survival(Time::ZERO, at_ms(ms), bits);
                sum += survival;
                squares += survival * survival;
            }
            let n = runs as f64;
            let mean = sum / n;
            let error = ((squares / n - mean * mean) / n).sqrt();
            let what = format!("{start:?}, {bits} bits in {ms} ms");
            assert_within_five(&what, mean, expected_survival(good, ms, bits), error);
        }
    }
}
