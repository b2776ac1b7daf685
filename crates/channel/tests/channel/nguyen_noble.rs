//! Nguyen-Noble channel: dwell times, frame survival and loss rates, against closed forms, a discrete-time
//! chain, and the simulated channel. Seeds are fixed; each statistic must lie within 5 standard errors of its
//! expectation, which a correct program misses for one seed in about two million.

use crate::common::{assert_close, assert_within_five};
use lasthop_base::{BitRate, Bytes, Duration, Probability, Streams, Time};
use lasthop_channel::{Channel, ErrorsPer, FixedPeriods, Model, NguyenNoble, Sojourn, Start, State};

/// The paper's units.
const ERROR_UNIT: Duration = Duration::from_micros(200);
const ERROR_FREE_UNIT: Duration = Duration::from_micros(22_400);

fn p(probability: f64) -> Probability {
    Probability::new(probability).unwrap()
}

fn us(us: u64) -> Time {
    Time::ZERO + Duration::from_micros(us)
}

/// An error rate per byte, the paper's units, and a start in the good state.
fn paper(leave_error: f64, leave_error_free: f64, error_rate: f64) -> NguyenNoble {
    NguyenNoble {
        leave_error: p(leave_error),
        leave_error_free: p(leave_error_free),
        error_rate: p(error_rate),
        errors_per: ErrorsPer::Byte,
        error_unit: ERROR_UNIT,
        error_free_unit: ERROR_FREE_UNIT,
        start: Start::Good,
    }
}

fn channel(model: NguyenNoble, run: u64) -> Box<dyn Channel> {
    Model::NguyenNoble(model).build(Streams::new(19, run).stream("channel"))
}

fn availability(model: NguyenNoble) -> f64 {
    Model::NguyenNoble(model).availability()
}

/// Transmission time of `size` at the paper's 2 Mb/s.
fn at_2_mbps(size: Bytes) -> Duration {
    BitRate::from_bps(2_000_000).unwrap().time_for(size)
}

/// The mean of a sample, and its standard error.
fn mean(sample: &[f64]) -> (f64, f64) {
    let n = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / n;
    let squares: f64 = sample.iter().map(|x| (x - mean) * (x - mean)).sum();
    (mean, (squares / (n - 1.0) / n).sqrt())
}

fn enumerate(channel: &mut dyn Channel, n: usize) -> Vec<Sojourn> {
    let mut from = Time::ZERO;
    let mut next = || {
        let sojourn = channel.sojourn(from);
        from = sojourn.until;
        sojourn
    };
    (0..n).map(|_| next()).collect()
}

/// Lengths of the sojourns of a trajectory in nanoseconds, with their states.
fn stays(channel: &mut dyn Channel, n: usize) -> Vec<(State, u64)> {
    let trajectory = enumerate(channel, n);
    let begins = core::iter::once(Time::ZERO).chain(trajectory.iter().map(|sojourn| sojourn.until));
    let stay = |(begin, sojourn): (Time, &Sojourn)| (sojourn.state, sojourn.until.since(begin).as_nanos());
    begins.zip(&trajectory).map(stay).collect()
}

#[test]
fn dwell_times_are_geometric_multiples_of_units() {
    let model = paper(0.3, 0.7, 0.005);
    let stays = stays(&mut *channel(model, 0), 200_000);
    for (state, unit, leave, mean_s) in [
        (State::Good, ERROR_FREE_UNIT, 0.7, model.mean_error_free_s()),
        (State::Bad, ERROR_UNIT, 0.3, model.mean_error_s()),
    ] {
        let what = format!("{state:?}");
        let lengths: Vec<u64> = stays.iter().filter(|stay| stay.0 == state).map(|stay| stay.1).collect();
        assert!(lengths.iter().all(|length| length % unit.as_nanos() == 0), "{what}: stays of whole units");
        let counts: Vec<f64> = lengths.iter().map(|length| (length / unit.as_nanos()) as f64).collect();
        let n = counts.len() as f64;
        let spread = (1.0f64 - leave).sqrt() / leave;
        assert_within_five(&what, mean(&counts).0, 1.0 / leave, spread / n.sqrt());
        assert_close(&what, mean_s, unit.as_secs_f64() / leave, 1e-15);
        for k in 1..6 {
            let tail = (1.0 - leave).powi(k);
            let beyond = counts.iter().filter(|&&count| count > f64::from(k)).count() as f64 / n;
            let error = (tail * (1.0 - tail) / n).sqrt();
            assert_within_five(&format!("{what}, more than {k}"), beyond, tail, error);
        }
    }
}

/// The first error-free state ends where the first error state begins, and so on.
#[test]
fn states_alternate_from_the_configured_start() {
    for (start, first) in [(Start::Good, State::Good), (Start::Bad, State::Bad)] {
        let trajectory = enumerate(&mut *channel(NguyenNoble { start, ..paper(0.3, 0.7, 0.005) }, 0), 1000);
        assert_eq!(trajectory[0].state, first);
        for pair in trajectory.windows(2) {
            assert_ne!(pair[0].state, pair[1].state);
            assert!(pair[0].until < pair[1].until);
        }
    }
}

/// 0.2 ms/0.25 = 0.8 ms with errors, 22.4 ms/0.7 = 32 ms without.
#[test]
fn availability_matches_mean_dwell_times() {
    let model = paper(0.25, 0.7, 0.005);
    assert_close("error state", model.mean_error_s(), 0.8e-3, 1e-15);
    assert_close("error-free state", model.mean_error_free_s(), 32e-3, 1e-15);
    assert_close("availability", availability(model), 32.0 / 32.8, 1e-15);

    // The error is that of a ratio of sums over independent cycles (delta method).
    let stays = stays(&mut *channel(model, 0), 400_000);
    let (mut good, mut bad) = (0.0, 0.0);
    for (state, length) in stays {
        *(if state == State::Good { &mut good } else { &mut bad }) += length as f64;
    }
    let (good_variance, bad_variance) = (1.0 - 0.7, 1.0 - 0.25);
    let share = 32.0 / 32.8;
    let error = share * (1.0 - share) * ((good_variance + bad_variance) / 200_000f64).sqrt();
    assert_within_five("share", good / (good + bad), share, error);
}

/// States left at the end of their first unit have a deterministic trajectory.
#[test]
fn leaving_with_certainty_gives_fixed_periods() {
    let fixed = FixedPeriods { good: ERROR_FREE_UNIT, bad: ERROR_UNIT, good_ber: p(0.0), bad_ber: p(0.005) };
    let mut fixed = Model::FixedPeriods(fixed).build(Streams::new(19, 0).stream("channel"));
    let model = NguyenNoble { errors_per: ErrorsPer::Bit, ..paper(1.0, 1.0, 0.005) };
    let mut left = channel(model, 0);
    assert_eq!(enumerate(&mut *left, 1000), enumerate(&mut *fixed, 1000));
}

/// 22.4 ms without errors, and 0.2 ms in which every second byte, or bit, is in error.
#[test]
fn bytes_are_split_by_the_time_in_each_state() {
    for (errors_per, bits_in_one) in [(ErrorsPer::Byte, 8), (ErrorsPer::Bit, 1)] {
        for (start, end, n, wrong) in [
            (1_000, 2_000, 100, 0.0),
            (22_400, 22_600, 50, 50.0),
            // Touches both boundaries.
            (22_600, 45_000, 50, 0.0),
            // Half of the frame in the error state, at its start and at its end.
            (22_300, 22_500, 10, 5.0),
            (22_500, 22_700, 10, 5.0),
            // 100 µs, 200 µs and 700 µs.
            (22_300, 23_300, 50, 10.0),
            // A third of a byte.
            (22_390, 22_405, 1, 1.0 / 3.0),
            // Spans two whole error states and three error-free ones.
            (0, 67_600, 1690, 10.0),
            // Zero length: the state at its start.
            (22_400, 22_400, 3, 3.0),
            (22_600, 22_600, 3, 0.0),
        ] {
            let model = NguyenNoble { errors_per, ..paper(1.0, 1.0, 0.5) };
            let survival = channel(model, 0).survival(us(start), us(end), n * bits_in_one);
            let what = format!("{errors_per:?}: {start} to {end} us");
            assert_close(&what, survival, 0.5f64.powf(wrong), 1e-13);
        }
    }
}

#[test]
fn byte_error_rates_convert_to_bit_error_rates() {
    for e in [0.0, 1e-300, 1e-12, 0.003, 0.01, 0.5, 0.99, 1.0] {
        let bits = NguyenNoble { errors_per: ErrorsPer::Bit, ..paper(0.2, 0.7, e) };
        assert_eq!(bits.bit_error_rate(), p(e));
        let ber = paper(0.2, 0.7, e).bit_error_rate().get();
        let byte = -(8.0 * (-ber).ln_1p()).exp_m1();
        assert!((byte - e).abs() <= 1e-15 * e, "{ber} by bits makes {byte}, not {e}");
    }
}

/// Coded frames meet the same error rate, per bit.
#[test]
fn exposure_reports_the_bit_error_rate() {
    let model = paper(1.0, 1.0, 0.01);
    let mut parts = Vec::new();
    let whole =
        channel(model, 0).exposure(us(22_300), us(22_700), &mut |share, ber| parts.push((share, ber)));
    assert_eq!(whole, 1.0);
    assert_eq!(parts, [(0.25, p(0.0)), (0.5, model.bit_error_rate()), (0.25, p(0.0))]);
}

#[test]
fn certain_errors_lose_exactly_the_overlapping_frames() {
    for (start, end, survives) in [(22_300, 22_400, 1.0), (22_300, 22_401, 0.0), (22_600, 22_700, 1.0)] {
        for errors_per in [ErrorsPer::Byte, ErrorsPer::Bit] {
            let model = NguyenNoble { errors_per, ..paper(1.0, 1.0, 1.0) };
            assert_eq!(channel(model, 0).survival(us(start), us(end), 1), survives, "{start} to {end}");
        }
    }
}

/// The stationary distribution: each state with its share of time, the instant uniform within a unit, so the
/// residual sojourn is the rest of that unit plus whole units. The process stays stationary: later instants
/// have the same share of bad time and of intervals without a state change.
#[test]
fn a_stationary_start_is_uniform_within_a_unit() {
    const RUNS: u64 = 100_000;
    let model = NguyenNoble { start: Start::Stationary, ..paper(0.3, 0.7, 0.005) };
    let mut rests = [Vec::new(), Vec::new()];
    let instants = [0u64, 50, 330, 10_000, 45_000];
    let mut bad = [0u64; 5];
    let mut quiet = [0u64; 5];
    for run in 0..RUNS {
        let mut channel = channel(model, run);
        let first = channel.sojourn(Time::ZERO);
        let (index, unit) = if first.state == State::Bad { (0, ERROR_UNIT) } else { (1, ERROR_FREE_UNIT) };
        rests[index].push(first.until.as_nanos() as f64 / unit.as_nanos() as f64);
        for (index, &instant) in instants.iter().enumerate() {
            let sojourn = channel.sojourn(us(instant));
            bad[index] += u64::from(sojourn.state == State::Bad);
            quiet[index] += u64::from(sojourn.until >= us(instant + 100));
        }
    }
    let (error, error_free) = (0.2 / 0.3, 22.4 / 0.7);
    let n = RUNS as f64;
    for (what, rests, leave) in [("error", &rests[0], 0.3), ("error-free", &rests[1], 0.7)] {
        let (found, standard_error) = mean(rests);
        assert_within_five(what, found, 1.0 / leave - 0.5, standard_error);
        let n = rests.len() as f64;
        let stays = 1.0 - leave;
        for (units, beyond) in [(0.5, 1.0 - leave / 2.0), (1.0, stays), (1.25, stays * (1.0 - leave / 4.0))] {
            let found = rests.iter().filter(|&&rest| rest > units).count() as f64 / n;
            let error = (beyond * (1.0 - beyond) / n).sqrt();
            assert_within_five(&format!("{what}, beyond {units}"), found, beyond, error);
        }
    }
    let p_bad = error / (error + error_free);
    // A cycle has two state changes, of which this interval contains at most one.
    let p_quiet = 1.0 - 2.0 * 0.1 / (error + error_free);
    for (index, instant) in instants.into_iter().enumerate() {
        let spread = |p: f64| (p * (1.0 - p) / n).sqrt();
        let share = |count: u64| count as f64 / n;
        assert_within_five(&format!("bad at {instant} us"), share(bad[index]), p_bad, spread(p_bad));
        assert_within_five(
            &format!("no end after {instant} us"),
            share(quiet[index]),
            p_quiet,
            spread(p_quiet),
        );
    }
}

/// The opposite direction of the link, with many frames of any length, sees the same sojourns.
#[test]
fn the_trajectory_is_independent_of_queries() {
    for start in [Start::Good, Start::Bad, Start::Stationary] {
        let model = NguyenNoble { start, ..paper(0.2, 0.7, 0.005) };
        let (mut busy, mut quiet) = (channel(model, 0), channel(model, 0));
        let mut frames = Streams::new(19, 0).stream("frames");
        let mut from = Time::ZERO;
        let mut stay = quiet.sojourn(from);
        for _ in 0..20_000 {
            from += frames.up_to(ERROR_FREE_UNIT);
            busy.survival(from, from + frames.up_to(ERROR_FREE_UNIT * 5), frames.below(2000));
            while stay.until <= from {
                stay = quiet.sojourn(stay.until);
            }
            assert_eq!(busy.sojourn(from), stay, "{start:?}, at {from}");
        }
        let first_stays = |run| enumerate(&mut *channel(model, run), 100);
        assert_eq!(first_stays(0), first_stays(0));
        assert_ne!(first_stays(0), first_stays(1));
        // Neither does the error rate or its unit affect the trajectory.
        let noisy = NguyenNoble { error_rate: p(1.0), errors_per: ErrorsPer::Bit, ..model };
        assert_eq!(enumerate(&mut *channel(noisy, 0), 100), first_stays(0));
    }
}

/// Pins the trajectory of a named stream. A change invalidates the results of every study.
#[test]
fn first_sojourns_of_a_seed_are_pinned() {
    let (good, bad) = (State::Good, State::Bad);
    let model = paper(0.2, 0.7, 0.005);
    let fresh: Vec<(State, u64)> = stays(&mut *channel(model, 0), 6);
    let units = fresh.iter().map(|&(state, length)| {
        (state, length / if state == good { ERROR_FREE_UNIT } else { ERROR_UNIT }.as_nanos())
    });
    assert_eq!(units.collect::<Vec<_>>(), [(good, 1), (bad, 11), (good, 1), (bad, 3), (good, 1), (bad, 6)]);
    let stationary = NguyenNoble { start: Start::Stationary, ..model };
    assert_eq!(stays(&mut *channel(stationary, 0), 2), [(good, 2_113_616), (bad, 600_000)]);
}

/// With a probability of leaving below 2⁻⁶⁴ per unit the sojourn is unbounded.
#[test]
fn a_sojourn_may_be_unbounded() {
    let model = NguyenNoble { start: Start::Bad, ..paper(1e-300, 1.0, 0.5) };
    let mut channel = channel(model, 0);
    assert_eq!(channel.sojourn(Time::ZERO), Sojourn { state: State::Bad, until: Time::NEVER });
    assert_eq!(channel.survival(Time::ZERO, Time::from_nanos(1 << 60), 16), 0.25);
    // The share of time does not overflow.
    let both = paper(1e-300, 1e-310, 0.5);
    let bad = 0.2e-10 / 22.4;
    assert_close("availability", 1.0 - availability(both), bad, 1e-3);
    assert_close("loss", both.loss_probability(8, Duration::from_millis(1)), 0.5 * bad, 1e-9);
    assert_close("availability", availability(model), 112e-300, 1e-9);
}

/// Loss rate by a Markov chain of ticks: `unit` is the length of each state's unit in ticks, and a frame of
/// `frame` ticks begins at a uniform instant within a tick. Its parts of the first and the last tick sum to
/// one tick, so the mean over that instant has a closed form.
fn loss_by_ticks(leave: [f64; 2], unit: [usize; 2], frame: usize, exponent: f64) -> f64 {
    let [good, bad] = unit;
    let kill = exponent / frame as f64;
    let (good_time, bad_time) = (good as f64 / leave[0], bad as f64 / leave[1]);
    // Ticks of a good unit, followed by those of a bad one.
    let stationary = |tick: usize| match tick < good {
        true => good_time / (good_time + bad_time) / good as f64,
        false => bad_time / (good_time + bad_time) / bad as f64,
    };
    let step = |law: &[f64]| {
        let mut next = vec![0.0; good + bad];
        next[1..].copy_from_slice(&law[..good + bad - 1]);
        let (good_ends, bad_ends) = (law[good - 1], law[good + bad - 1]);
        next[0] = good_ends * (1.0 - leave[0]) + bad_ends * leave[1];
        next[good] = good_ends * leave[0] + bad_ends * (1.0 - leave[1]);
        next
    };
    let mut survival = 0.0;
    for first_is_bad in [false, true] {
        let among_first = |tick: usize| (tick >= good) == first_is_bad;
        let mut law: Vec<f64> =
            (0..good + bad).map(|tick| if among_first(tick) { stationary(tick) } else { 0.0 }).collect();
        for whole in 1..=frame {
            law = step(&law);
            if whole < frame {
                law[good..].iter_mut().for_each(|mass| *mass *= (-kill).exp());
            }
        }
        let (last_good, last_bad): (f64, f64) = (law[..good].iter().sum(), law[good..].iter().sum());
        let part = -(-kill).exp_m1() / kill;
        survival += match first_is_bad {
            false => last_good + last_bad * part,
            true => last_good * part + last_bad * (-kill).exp(),
        };
    }
    1.0 - survival
}

/// The paper's units and sizes in ticks of 8 us, and frames that span many units of other lengths.
#[test]
fn loss_rate_matches_a_discrete_time_chain() {
    let check = |model: NguyenNoble, tick: Duration, bits: u64, ticks: usize| {
        let in_ticks = |length: Duration| {
            assert_eq!(length.as_nanos() % tick.as_nanos(), 0);
            (length.as_nanos() / tick.as_nanos()) as usize
        };
        let exponent = -(-model.bit_error_rate().get()).ln_1p() * bits as f64;
        let unit = [in_ticks(model.error_free_unit), in_ticks(model.error_unit)];
        let leave = [model.leave_error_free.get(), model.leave_error.get()];
        let expected = loss_by_ticks(leave, unit, ticks, exponent);
        let found = model.loss_probability(bits, tick * ticks as u64);
        assert!(
            (found - expected).abs() < 1e-12,
            "{model:?}, {bits} bits in {ticks} ticks: {found}, not {expected}"
        );
    };
    let tick = Duration::from_micros(8);
    for (leave_error, leave_error_free, e) in [(0.1, 0.9, 0.01), (0.2, 0.7, 0.005), (0.4, 0.5, 0.003)] {
        for size in [Bytes(40), Bytes(128), Bytes(552), Bytes(1024), Bytes(1500)] {
            let ticks = (at_2_mbps(size).as_nanos() / tick.as_nanos()) as usize;
            check(paper(leave_error, leave_error_free, e), tick, size.bits(), ticks);
        }
    }
    for (good, bad) in [(1, 1), (1, 2), (5, 3), (3, 5), (7, 1), (2, 9), (13, 8)] {
        let unit = Duration::from_millis;
        for (leave_error, leave_error_free) in [(0.3, 0.7), (1.0, 0.4), (0.05, 0.9), (1.0, 1.0)] {
            let model = NguyenNoble {
                error_unit: unit(bad),
                error_free_unit: unit(good),
                ..paper(leave_error, leave_error_free, 0.01)
            };
            for ticks in [1, 2, 3, 5, 8, 9, 10, 17, 40, 200] {
                for bits in [1, 200, 4000, 100_000] {
                    check(model, unit(1), bits, ticks);
                }
            }
        }
    }
}

/// A frame no longer than a unit meets at most one state change. With c cycles in its air time and x expected
/// errors if all of it were bad, wholly bad frames are lost with probability 1 − e^(−x), and uniformly cut
/// ones with 1 − (1 − e^(−x))/x.
#[test]
fn loss_rate_of_short_frames_matches_a_closed_form() {
    for (leave_error, leave_error_free, e) in [(0.1, 0.9, 0.01), (0.4, 0.5, 0.003), (0.25, 0.7, 1e-9)] {
        let model = paper(leave_error, leave_error_free, e);
        let cycle_s = model.mean_error_s() + model.mean_error_free_s();
        for bytes in [1u64, 17, 50] {
            let on_air = at_2_mbps(Bytes(bytes));
            let cycles = on_air.as_secs_f64() / cycle_s;
            let x = -(-e).ln_1p() * bytes as f64;
            let all_bad = model.mean_error_s() / cycle_s - cycles;
            let gone = -(-x).exp_m1();
            let cut = if x < 1e-3 { x / 2.0 - x * x / 6.0 + x * x * x / 24.0 } else { 1.0 - gone / x };
            let expected = all_bad * gone + 2.0 * cycles * cut;
            let found = model.loss_probability(bytes * 8, on_air);
            assert_close(&format!("{e}: {bytes} B"), found, expected, 1e-12);
        }
    }
}

/// If an error state loses every overlapping frame, a frame survives only if it lies within one error-free
/// state.
#[test]
fn loss_rate_under_certain_errors_matches_a_closed_form() {
    for (leave_error, leave_error_free) in [(0.2, 0.7), (0.4, 0.5), (1.0, 1.0)] {
        let model = paper(leave_error, leave_error_free, 1.0);
        let cycle_s = model.mean_error_s() + model.mean_error_free_s();
        for (bytes, on_air_ms) in [(1u64, 0u64), (40, 1), (1500, 22), (1500, 30), (1500, 100)] {
            let on_air = Duration::from_millis(on_air_ms);
            // Mean time from which on an error-free state lasts that long: by units that it has.
            let whole = on_air.as_nanos() / ERROR_FREE_UNIT.as_nanos();
            let rest_s = on_air.as_secs_f64() - (ERROR_FREE_UNIT * whole).as_secs_f64();
            let reaches = (1.0 - leave_error_free).powi(whole as i32);
            let clear_s = reaches * (model.mean_error_free_s() - rest_s);
            let expected = 1.0 - clear_s / cycle_s;
            let found = model.loss_probability(bytes * 8, on_air);
            assert!((found - expected).abs() < 1e-13, "{bytes} B in {on_air}: {found}, not {expected}");
        }
    }
}

#[test]
fn loss_rate_in_limiting_cases() {
    let model = paper(0.2, 0.7, 0.005);
    let ms = Duration::from_millis;
    assert_eq!(model.loss_probability(0, ms(6)), 0.0);
    assert_eq!(paper(0.2, 0.7, 0.0).loss_probability(12_000, ms(6)), 0.0);
    let bad = 1.0 - availability(model);
    // Zero air time: all bits in the state at the start.
    assert_close("no time", model.loss_probability(80, ms(0)), bad * (1.0 - 0.995f64.powi(10)), 1e-13);
    // Errors so rare that at most one byte of a frame is hit: each byte in an error state contributes on its
    // own.
    let rare = paper(0.2, 0.7, 1e-15).loss_probability(12_000, ms(6));
    assert_close("rare errors", rare, 1e-15 * 1500.0 * bad, 1e-9);
    // So long that every frame has its share of errors: almost none survives.
    let long = model.loss_probability(8_000_000, ms(4000));
    assert!(long <= 1.0 && long > 1.0 - 1e-9, "{long}");
    // The loss rate increases with the frame size.
    let sizes = (1..=150).map(|tens| Bytes(10 * tens));
    let losses: Vec<f64> = sizes.map(|size| model.loss_probability(size.bits(), at_2_mbps(size))).collect();
    assert!(losses.windows(2).all(|pair| pair[0] < pair[1]));
    // The initial state does not matter in the long run.
    for start in [Start::Bad, Start::Stationary] {
        let shifted = NguyenNoble { start, ..model };
        assert_eq!(shifted.loss_probability(4096, ms(2)), model.loss_probability(4096, ms(2)));
    }
}

/// With per-byte errors, packets of 512 bytes are lost at rates from about 1 % to 13 %, as in the paper; with
/// per-bit errors the lower end is out of reach.
#[test]
fn per_byte_errors_reproduce_the_papers_loss_rates() {
    let packet = Bytes(512);
    let percent = |errors_per, (leave_error, leave_error_free, e)| {
        let model = NguyenNoble { errors_per, ..paper(leave_error, leave_error_free, e) };
        let loss = 100.0 * model.loss_probability(packet.bits(), at_2_mbps(packet));
        (10.0 * loss).round() / 10.0
    };
    let (least, most) = ((0.4, 0.5, 0.003), (0.1, 0.9, 0.01));
    let range = |errors_per| [percent(errors_per, least), percent(errors_per, most)];
    assert_eq!(range(ErrorsPer::Byte), [1.4, 11.7]);
    assert_eq!(range(ErrorsPer::Bit), [4.4, 14.7]);
}

/// Packet sizes for which the loss rate is compared with the channel.
const SIZES: [Bytes; 5] = [Bytes(40), Bytes(128), Bytes(552), Bytes(1024), Bytes(1500)];

fn models() -> impl Iterator<Item = NguyenNoble> {
    [0.1, 0.2, 0.4].into_iter().flat_map(|leave_error| {
        [0.5, 0.9]
            .into_iter()
            .flat_map(move |leave_error_free| [0.003, 0.01].map(|e| paper(leave_error, leave_error_free, e)))
    })
}

fn name(model: &NguyenNoble, size: Bytes) -> String {
    let [leave_error, leave_error_free, e] = [model.leave_error, model.leave_error_free, model.error_rate];
    format!("P_EG {leave_error}, P_GE {leave_error_free}, e {e} per {:?}, {size}", model.errors_per)
}

/// One frame at time zero of each of many stationary channels.
#[test]
fn loss_rate_matches_stationary_channels() {
    const RUNS: u64 = 100_000;
    let bits = paper(0.2, 0.7, 0.005);
    let bits = NguyenNoble { errors_per: ErrorsPer::Bit, ..bits };
    // At 64 kb/s 1500 B span several cycles.
    let rates = [2_000_000, 64_000].map(|bps| BitRate::from_bps(bps).unwrap());
    for model in models().chain([bits]) {
        let begin = |run| channel(NguyenNoble { start: Start::Stationary, ..model }, run);
        let mut lost = [[(); 5]; 2].map(|row| row.map(|()| Vec::with_capacity(RUNS as usize)));
        for run in 0..RUNS {
            let mut channel = begin(run);
            for (rate, lost) in rates.into_iter().zip(&mut lost) {
                for (size, lost) in SIZES.into_iter().zip(lost) {
                    let end = Time::ZERO + rate.time_for(size);
                    lost.push(1.0 - channel.survival(Time::ZERO, end, size.bits()));
                }
            }
        }
        for (rate, lost) in rates.into_iter().zip(&lost) {
            for (size, lost) in SIZES.into_iter().zip(lost) {
                let (found, error) = mean(lost);
                let computed = model.loss_probability(size.bits(), rate.time_for(size));
                assert_within_five(&format!("{} at {rate}", name(&model, size)), found, computed, error);
            }
        }
    }
}

/// Frames at random instants of a channel that starts good, which is close to stationary after a second. Each
/// run yields one sample, so samples are independent.
#[test]
fn loss_rate_matches_long_runs() {
    const RUNS: u64 = 200;
    const FRAMES: u32 = 1000;
    for model in models() {
        for size in SIZES {
            let on_air = at_2_mbps(size);
            let run = |run| {
                let mut channel = channel(model, run);
                let mut gaps = Streams::new(19, run).stream("gaps");
                let mut now = Time::ZERO + Duration::from_secs(1);
                let mut lost = 0.0;
                for _ in 0..FRAMES {
                    now += gaps.up_to(Duration::from_millis(20));
                    lost += 1.0 - channel.survival(now, now + on_air, size.bits());
                }
                lost / f64::from(FRAMES)
            };
            let (found, error) = mean(&(0..RUNS).map(run).collect::<Vec<_>>());
            let computed = model.loss_probability(size.bits(), on_air);
            assert_within_five(&name(&model, size), found, computed, error);
        }
    }
}

#[test]
#[should_panic(expected = "nguyen-noble.leave_error: found 0")]
fn the_loss_rate_of_an_invalid_model_panics() {
    paper(0.0, 0.7, 0.005).loss_probability(8, ERROR_UNIT);
}
