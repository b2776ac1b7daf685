//! Rayleigh-Gilbert channel: transition probabilities against Marcum's function, sampled signals and limiting
//! cases, and the simulated channel. Seeds are fixed; each statistic must lie within 5 standard errors of its
//! expectation, which a correct program misses for one seed in about two million.

use std::f64::consts::{PI, TAU};

use crate::common::{assert_close, assert_within_five};
use lasthop_base::{Decibels, Duration, Probability, Stream, Streams, Time};
use lasthop_channel::{Chain, Channel, Model, RayleighGilbert, Sojourn, Start, State};

const STEP: Duration = Duration::from_millis(10);
const GOOD_BER: f64 = 1e-4;
const BAD_BER: f64 = 3e-3;

fn model(margin_db: f64, doppler: f64) -> RayleighGilbert {
    RayleighGilbert {
        fading_margin: Decibels::new(margin_db).unwrap(),
        doppler,
        step: STEP,
        good_ber: Probability::new(GOOD_BER).unwrap(),
        bad_ber: Probability::new(BAD_BER).unwrap(),
        start: Start::Stationary,
    }
}

fn channel(model: RayleighGilbert, run: u64) -> Box<dyn Channel> {
    Model::RayleighGilbert(model).build(Streams::new(17, run).stream("channel"))
}

/// 1/F: the threshold of a signal of mean power 1.
fn threshold(margin_db: f64) -> f64 {
    10f64.powf(-margin_db / 10.0)
}

fn numbers(chain: Chain) -> [f64; 3] {
    [chain.bad.get(), chain.good_to_bad.get(), chain.bad_to_good.get()]
}

/// Fading margin (dB), f_D τ, P(good to bad), P(bad to good): the paper's formulas evaluated with mpmath
/// 1.4.1 at 60 digits. Marcum's Q-function is the probability that a Poisson variate of mean b²/2 does not
/// exceed one of mean a²/2:
///
/// ```text
/// Q = lambda a, b: nsum(lambda k: pmf(k, a*a/2) * cdf(k, b*b/2), [0, inf])
/// t = mpf(10)**(-mpf(dB)/10); rho = abs(besselj(0, 2*pi*f)); theta = sqrt(2*t/(1 - rho**2))
/// good_to_bad = Q(theta, rho*theta) - Q(rho*theta, theta); bad_to_good = good_to_bad/expm1(t)
/// ```
///
/// scipy 1.17.1 (`scipy.stats.ncx2.sf`) agrees to its precision.
const REFERENCE: &[(f64, f64, f64, f64)] = &[
    (-15.0, 0.001, 0.014_095_090_301_977_097, 2.602_977_906_973_387_5e-16),
    (-15.0, 0.05, 0.624_363_251_190_155_1, 1.153_028_263_001_681_3e-14),
    (-15.0, 0.1, 0.926_195_694_676_244_5, 1.710_430_283_967_719_7e-14),
    (-15.0, 0.2, 0.999_787_433_010_441_8, 1.846_334_109_282_561_8e-14),
    (-15.0, 0.3, 0.999_999_995_523_632, 1.846_726_654_143_099e-14),
    (-15.0, 0.6, 0.999_999_771_492_810_8, 1.846_726_240_419_408_6e-14),
    (-5.0, 0.001, 0.004_457_466_022_971_993, 0.000_197_020_794_740_254_22),
    (-5.0, 0.05, 0.220_460_062_671_484_4, 0.009_744_374_165_091_65),
    (-5.0, 0.1, 0.426_774_849_199_387_8, 0.018_863_524_596_953_243),
    (-5.0, 0.2, 0.750_661_813_686_436_8, 0.033_179_386_304_116_69),
    (-5.0, 0.3, 0.920_851_495_132_048_6, 0.040_701_800_635_981_535),
    (-5.0, 0.6, 0.885_093_533_053_124_9, 0.039_121_292_322_340_115),
    (1.0, 0.001, 0.002_234_031_168_642_860_6, 0.001_841_810_432_323_686_1),
    (1.0, 0.05, 0.111_243_383_670_401_46, 0.091_712_786_932_869_36),
    (1.0, 0.1, 0.219_623_359_074_413_4, 0.181_064_883_786_270_45),
    (1.0, 0.2, 0.410_666_862_151_540_8, 0.338_567_573_065_609_6),
    (1.0, 0.3, 0.523_288_012_644_518_5, 0.431_416_237_305_272_3),
    (1.0, 0.6, 0.499_217_769_090_179_84, 0.411_571_918_967_545_4),
    (5.0, 0.001, 0.001_409_576_172_241_330_2, 0.003_789_766_985_041_414_3),
    (5.0, 0.05, 0.069_902_395_570_797_01, 0.187_938_613_128_142_78),
    (5.0, 0.1, 0.135_866_168_887_937_84, 0.365_287_900_984_334_17),
    (5.0, 0.2, 0.228_748_996_889_176_66, 0.615_011_386_645_036_2),
    (5.0, 0.3, 0.264_561_656_576_546_23, 0.711_296_807_754_212_1),
    (5.0, 0.6, 0.257_809_961_217_698_2, 0.693_144_293_070_785_2),
    (10.0, 0.001, 0.000_792_656_527_714_297_3, 0.007_536_841_383_700_322),
    (10.0, 0.05, 0.038_436_052_862_919_64, 0.365_462_749_267_561_3),
    (10.0, 0.1, 0.067_509_761_255_350_99, 0.641_905_219_528_390_7),
    (10.0, 0.2, 0.089_213_121_596_405_51, 0.848_267_973_968_203_4),
    (10.0, 0.3, 0.094_335_650_665_679_93, 0.896_974_680_755_624_3),
    (10.0, 0.6, 0.093_450_874_659_260_16, 0.888_561_936_789_812_7),
    (15.0, 0.001, 0.000_445_731_680_589_565_1, 0.013_873_582_105_819_106),
    (15.0, 0.05, 0.019_671_939_873_312_238, 0.612_297_229_248_199_2),
    (15.0, 0.1, 0.027_350_531_109_214_385, 0.851_296_543_426_194_8),
    (15.0, 0.2, 0.030_461_582_804_025_725, 0.948_129_308_524_523_9),
    (15.0, 0.3, 0.031_038_921_033_879_18, 0.966_099_198_670_330_5),
    (15.0, 0.6, 0.030_942_390_388_605_558, 0.963_094_642_585_916_7),
    (40.0, 0.001, 2.475_094_822_519_649_4e-5, 0.247_497_106_984_110_26),
    (40.0, 0.05, 9.979_897_727_315_188e-5, 0.997_939_874_074_540_4),
    (40.0, 0.1, 9.995_047_011_914_896e-5, 0.999_454_726_789_350_7),
    (40.0, 0.2, 9.998_797_076_872_703e-5, 0.999_829_714_535_119),
    (40.0, 0.3, 9.999_407_813_866_896e-5, 0.999_890_785_180_904_2),
    (40.0, 0.6, 9.999_307_301_346_806e-5, 0.999_880_734_431_449_4),
    (150.0, 0.001, 9.999_999_999_493_396e-16, 0.999_999_999_949_339_1),
    (150.0, 0.05, 9.999_999_999_999_798e-16, 0.999_999_999_999_979_3),
    (150.0, 0.1, 9.999_999_999_999_95e-16, 0.999_999_999_999_994_6),
    (150.0, 0.2, 9.999_999_999_999_989e-16, 0.999_999_999_999_998_3),
    (150.0, 0.3, 9.999_999_999_999_995e-16, 0.999_999_999_999_998_9),
    (150.0, 0.6, 9.999_999_999_999_993e-16, 0.999_999_999_999_998_8),
];

#[test]
fn transitions_match_marcums_function() {
    for &(margin_db, doppler, good_to_bad, bad_to_good) in REFERENCE {
        let chain = model(margin_db, doppler).chain();
        let what = format!("{margin_db} dB, {doppler}");
        assert_close(&what, chain.good_to_bad.get(), good_to_bad, 1e-13);
        assert_close(&what, chain.bad_to_good.get(), bad_to_good, 1e-13);
        assert_close(&what, chain.bad.get(), -(-threshold(margin_db)).exp_m1(), 1e-13);
    }
}

/// In the stationary process, transitions into and out of the bad state are equally frequent.
#[test]
fn the_stationary_distribution_balances_transitions() {
    for margin_db in [-15.0, -7.0, 0.0, 3.0, 20.0, 150.0] {
        for doppler in [1e-9, 1e-6, 1e-3, 0.02, 0.1, 0.25, 0.4, 1.0, 1e6, 1e300] {
            let [bad, good_to_bad, bad_to_good] = numbers(model(margin_db, doppler).chain());
            let what = format!("{margin_db} dB, {doppler}");
            let good = (-threshold(margin_db)).exp();
            assert_close(&what, good * good_to_bad, bad * bad_to_good, 1e-13);
        }
    }
}

/// Consecutive steps are independent where J₀ is zero or f_D τ is large.
#[test]
fn uncorrelated_steps_are_independent() {
    const FIRST_ZERO: f64 = 2.404_825_557_695_773;
    for margin_db in [-15.0, 1.0, 5.0, 15.0, 150.0] {
        for (doppler, error) in [(FIRST_ZERO / TAU, 1e-13), (1e12, 1e-11)] {
            let [bad, good_to_bad, bad_to_good] = numbers(model(margin_db, doppler).chain());
            let what = format!("{margin_db} dB, {doppler}");
            assert_close(&what, good_to_bad, bad, error);
            assert_close(&what, bad_to_good, (-threshold(margin_db)).exp(), error);
        }
    }
}

/// Slow fading: a signal falls below its threshold √(2π/F) f_D e^(−1/F) times per second (S. O. Rice, 1948;
/// e.g. W. C. Jakes, "Microwave Mobile Communications", section 1.3.4), at most once per step, and with
/// probability e^(−1/F) it was above it one step before. The neglected terms are of order (f_D τ)².
#[test]
fn slow_fading_matches_rices_crossing_rate() {
    for margin_db in [-10.0, 1.0, 5.0, 10.0, 15.0, 40.0] {
        for (doppler, error) in [(1e-9, 1e-12), (1e-7, 1e-9), (1e-5, 1e-5)] {
            let chain = model(margin_db, doppler).chain();
            let rate = (2.0 * PI * threshold(margin_db)).sqrt() * doppler;
            assert_close(&format!("{margin_db} dB, {doppler}"), chain.good_to_bad.get(), rate, error);
        }
    }
}

/// Large margin: bad steps have probability 1/F and are isolated.
#[test]
fn bad_steps_are_isolated_at_large_margins() {
    for doppler in [0.05, 0.2, 0.6] {
        let chain = model(150.0, doppler).chain();
        assert_close("bad", chain.bad.get(), 1e-15, 1e-12);
        assert_close("good to bad", chain.good_to_bad.get(), 1e-15, 1e-12);
        assert_close("burst", 1.0 / chain.bad_to_good.get(), 1.0, 1e-12);
    }
}

/// Two independent Gaussian variates of mean 0 and variance 1/2 (Box-Muller): the complex amplitude of a
/// signal of mean power 1.
fn amplitude(stream: &mut Stream) -> [f64; 2] {
    let radius = (-(1.0 - stream.uniform()).ln()).sqrt();
    let (sine, cosine) = (TAU * stream.uniform()).sin_cos();
    [radius * cosine, radius * sine]
}

fn power([re, im]: [f64; 2]) -> f64 {
    re * re + im * im
}

/// Pairs of samples of the signal with correlation J₀(2π f_D τ), negative for 0.6, compared with the
/// threshold. All margins share the pairs of one f_D τ.
#[test]
fn transitions_match_sampled_signals() {
    const PAIRS: u32 = 1_000_000;
    const MARGINS_DB: [f64; 4] = [1.0, 5.0, 10.0, 15.0];
    for doppler in [0.05, 0.1, 0.2, 0.3, 0.6] {
        let rho = libm::j0(TAU * doppler);
        let rest = (1.0 - rho * rho).sqrt();
        let mut stream = Streams::new(17, 0).stream("pairs");
        // For each margin: pairs classified by whether their first and second samples are bad.
        let mut counts = [[[0u32; 2]; 2]; 4];
        for _ in 0..PAIRS {
            let (first, other) = (amplitude(&mut stream), amplitude(&mut stream));
            let second = [0, 1].map(|part| rho * first[part] + rest * other[part]);
            let powers = [power(first), power(second)];
            for (margin_db, count) in MARGINS_DB.into_iter().zip(&mut counts) {
                let [first, second] = powers.map(|power| usize::from(power < threshold(margin_db)));
                count[first][second] += 1;
            }
        }
        for (margin_db, [good, bad]) in MARGINS_DB.into_iter().zip(counts) {
            let [p_bad, good_to_bad, bad_to_good] = numbers(model(margin_db, doppler).chain());
            let (goods, bads) = (good[0] + good[1], bad[0] + bad[1]);
            for (name, found, of, expected) in [
                ("bad", bads, PAIRS, p_bad),
                ("good to bad", good[1], goods, good_to_bad),
                ("bad to good", bad[0], bads, bad_to_good),
            ] {
                let (found, of) = (f64::from(found), f64::from(of));
                let error = (expected * (1.0 - expected) / of).sqrt();
                let what = format!("{margin_db} dB, {doppler}: {name}");
                assert_within_five(&what, found / of, expected, error);
            }
        }
    }
}

/// The sojourns of a channel that end within `steps`, in steps, with their states.
fn stays(channel: &mut dyn Channel, steps: u64) -> Vec<(State, u64)> {
    let mut from = Time::ZERO;
    let mut stays = Vec::new();
    while from < Time::ZERO + STEP * steps {
        let Sojourn { state, until } = channel.sojourn(from);
        let length = until.since(from).as_nanos();
        assert_eq!(length % STEP.as_nanos(), 0, "a stay of whole steps");
        stays.push((state, length / STEP.as_nanos()));
        from = until;
    }
    stays
}

/// The share of bad steps has the standard error of a Markov chain, whose correlation from one step to the
/// next is 1 − P(good to bad) − P(bad to good); the mean burst has that of independent geometric lengths.
#[test]
fn the_simulated_channel_matches_its_chain() {
    const STEPS: u64 = 1_000_000;
    for (margin_db, doppler) in [(1.0, 0.05), (1.0, 0.2), (5.0, 0.01), (5.0, 0.1), (10.0, 0.1), (15.0, 0.3)] {
        let chain = model(margin_db, doppler).chain();
        let [bad, good_to_bad, bad_to_good] = numbers(chain);
        let stays = stays(&mut *channel(model(margin_db, doppler), 0), STEPS);
        let bursts: Vec<u64> =
            stays.iter().filter(|(state, _)| *state == State::Bad).map(|stay| stay.1).collect();
        let (bad_steps, steps) =
            (bursts.iter().sum::<u64>() as f64, stays.iter().map(|stay| stay.1).sum::<u64>());

        let correlation = 1.0 - good_to_bad - bad_to_good;
        let variance = bad * (1.0 - bad) * (1.0 + correlation) / (1.0 - correlation);
        let what = format!("{margin_db} dB, {doppler}: ");
        let error = (variance / STEPS as f64).sqrt();
        assert_within_five(&(what.clone() + "share"), bad_steps / steps as f64, bad, error);

        let n = bursts.len() as f64;
        let spread = (1.0 - bad_to_good).sqrt() / bad_to_good;
        assert_within_five(&(what.clone() + "burst"), bad_steps / n, 1.0 / bad_to_good, spread / n.sqrt());
        let alone = bursts.iter().filter(|&&length| length == 1).count() as f64;
        let error = (bad_to_good * (1.0 - bad_to_good) / n).sqrt();
        assert_within_five(&(what + "alone"), alone / n, bad_to_good, error);
    }
}

/// The initial state is as configured, or stationary; the next step follows the chain.
#[test]
fn the_initial_state_matches_the_configuration() {
    const RUNS: u32 = 100_000;
    let fading = model(3.0, 0.15);
    let [bad, good_to_bad, bad_to_good] = numbers(fading.chain());
    let after = |start: f64| start * (1.0 - bad_to_good) + (1.0 - start) * good_to_bad;
    for (start, at_zero) in [(Start::Good, 0.0), (Start::Bad, 1.0), (Start::Stationary, bad)] {
        let mut counts = [0u32; 2];
        for run in 0..RUNS {
            let mut channel = channel(RayleighGilbert { start, ..fading }, u64::from(run));
            for (count, at) in counts.iter_mut().zip([Time::ZERO, Time::ZERO + STEP]) {
                *count += u32::from(channel.sojourn(at).state == State::Bad);
            }
        }
        for (step, (count, expected)) in counts.into_iter().zip([at_zero, after(at_zero)]).enumerate() {
            let error = (expected * (1.0 - expected) / f64::from(RUNS)).sqrt().max(1e-12);
            let what = format!("{start:?}, step {step}");
            assert_within_five(&what, f64::from(count) / f64::from(RUNS), expected, error);
        }
    }
}

/// A unit aligned with a step of equal length meets one state; a unit half a step later may meet two, with
/// half of its bits in each.
#[test]
fn a_step_aligned_unit_meets_one_state() {
    const BITS: u64 = 1000;
    let fading = model(5.0, 0.1);
    let states = stays(&mut *channel(fading, 0), 2000);
    let states: Vec<State> =
        states.into_iter().flat_map(|(state, steps)| (0..steps).map(move |_| state)).collect();
    let right = |state: State, share: f64| {
        let ber = if state == State::Good { GOOD_BER } else { BAD_BER };
        (1.0 - ber).powf(share * BITS as f64)
    };
    let (mut aligned, mut late) = (channel(fading, 0), channel(fading, 0));
    let half = Duration::from_nanos(STEP.as_nanos() / 2);
    for (step, pair) in states.windows(2).take(1999).enumerate() {
        let begin = Time::ZERO + STEP * step as u64;
        let mut parts = 0;
        assert_eq!(aligned.exposure(begin, begin + STEP, &mut |_, _| parts += 1), 1.0);
        assert_eq!(parts, 1, "step {step}");
        let survival = aligned.survival(begin, begin + STEP, BITS);
        assert_close("aligned", survival, right(pair[0], 1.0), 1e-13);
        let survival = late.survival(begin + half, begin + half + STEP, BITS);
        assert_close("late", survival, right(pair[0], 0.5) * right(pair[1], 0.5), 1e-13);
    }
}

/// The opposite direction of the link, with many frames of any length, sees the same sojourns.
#[test]
fn the_trajectory_is_independent_of_queries() {
    let fading = model(5.0, 0.1);
    let mut frames = Streams::new(17, 0).stream("frames");
    let mut busy = channel(fading, 0);
    let mut from = Time::ZERO;
    let mut quiet = channel(fading, 0);
    let mut stay = quiet.sojourn(from);
    for _ in 0..20_000 {
        from += frames.up_to(STEP);
        busy.survival(from, from + frames.up_to(STEP * 5), frames.below(2000));
        while stay.until <= from {
            stay = quiet.sojourn(stay.until);
        }
        assert_eq!(busy.sojourn(from), stay, "at {from}");
    }
    let first_stays = |run| stays(&mut *channel(fading, run), 100);
    assert_eq!(first_stays(0), first_stays(0));
    assert_ne!(first_stays(0), first_stays(1));
}

/// Pins the trajectory of a named stream. A change invalidates the results of every study.
#[test]
fn first_sojourns_of_a_seed_are_pinned() {
    let stays = stays(&mut *channel(model(5.0, 0.1), 0), 20);
    let (good, bad) = (State::Good, State::Bad);
    assert_eq!(stays, [(good, 7), (bad, 3), (good, 1), (bad, 6), (good, 7)]);
}

/// With a probability of leaving below 2⁻⁶⁴ per step the sojourn is unbounded.
#[test]
fn a_sojourn_may_be_unbounded() {
    let mut channel = channel(RayleighGilbert { start: Start::Bad, ..model(-15.0, 1e-9) }, 0);
    assert_eq!(channel.sojourn(Time::ZERO), Sojourn { state: State::Bad, until: Time::NEVER });
    assert_close(
        "survival",
        channel.survival(Time::ZERO, Time::from_nanos(1 << 60), 8),
        (1.0 - BAD_BER).powi(8),
        1e-13,
    );
}
