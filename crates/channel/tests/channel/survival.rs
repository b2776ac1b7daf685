//! Survival of single frames, against hand calculations.

use lasthop_base::{Duration, Probability, Stream, Streams, Time};
use lasthop_channel::{Channel, FixedPeriods, FrameLoss, Iid, Model, Start, State, TwoState};

const SECOND: u64 = 1_000_000_000;

fn stream() -> Stream {
    Streams::new(1, 0).stream("channel")
}

fn p(probability: f64) -> Probability {
    Probability::new(probability).unwrap()
}

fn secs(seconds: u64) -> Time {
    Time::from_nanos(seconds * SECOND)
}

/// 10 s good, 4 s bad: the EBSN paper's trace.
fn trace(good_ber: f64, bad_ber: f64) -> Box<dyn Channel> {
    let (good, bad) = (Duration::from_secs(10), Duration::from_secs(4));
    Model::FixedPeriods(FixedPeriods { good, bad, good_ber: p(good_ber), bad_ber: p(bad_ber) })
        .build(stream())
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-13, "found {found}, expected {expected}");
}

#[test]
fn a_perfect_channel_loses_nothing() {
    let mut channel = Model::Perfect.build(stream());
    assert_eq!(channel.survival(secs(0), secs(1), u64::MAX), 1.0);
    assert_eq!(channel.sojourn(secs(5)).state, State::Good);
    assert_eq!(channel.sojourn(secs(5)).until, Time::NEVER);
}

#[test]
fn independent_bit_errors_multiply() {
    let survival =
        |ber, bits| Model::Iid(Iid { ber: p(ber) }).build(stream()).survival(secs(0), secs(1), bits);
    assert_close(survival(0.5, 3), 0.125);
    assert_close(survival(0.1, 2), 0.81);
    // 1 − 10⁻²⁰ is 1 in floating point; its 10¹⁹th power is e^(−0.1).
    assert_close(survival(1e-20, 10_000_000_000_000_000_000), 0.904_837_418_035_959_6);
    assert_eq!(survival(0.0, u64::MAX), 1.0);
    assert_eq!(survival(1.0, 1), 0.0);
    assert_eq!(survival(1.0, 0), 1.0);
}

#[test]
fn frame_loss_ignores_size_and_air_time() {
    for (loss, expected) in [(0.0, 1.0), (0.25, 0.75), (1.0, 0.0)] {
        let mut channel = Model::FrameLoss(FrameLoss { loss: p(loss) }).build(stream());
        assert_eq!(channel.survival(secs(0), secs(1), 1), expected);
        assert_eq!(channel.survival(secs(1), secs(9), 1_000_000), expected);
    }
}

/// Bit error rates of 1/2 (good) and 3/4 (bad), so that every survival is a power of two.
#[test]
fn bits_are_split_by_the_time_in_each_state() {
    let survival = |start, end, bits| trace(0.5, 0.75).survival(secs(start), secs(end), bits);
    assert_close(survival(2, 6, 8), 0.5f64.powi(8));
    assert_close(survival(11, 13, 8), 0.25f64.powi(8));
    // 8 to 12: half of the bits in each state.
    assert_close(survival(8, 12, 8), 0.5f64.powi(4) * 0.25f64.powi(4));
    // 9 to 17: 1 s good, 4 s bad, 3 s good.
    assert_close(survival(9, 17, 16), 0.5f64.powi(2 + 6) * 0.25f64.powi(8));
    // 0 to 28: two whole cycles, 20 s good and 8 s bad.
    assert_close(survival(0, 28, 7), 0.5f64.powi(5) * 0.25f64.powi(2));
    // 9 to 11: one bit, half of it in each state.
    assert_close(survival(9, 11, 1), (0.5f64 * 0.25).sqrt());
}

/// The wide-area frame of the EBSN paper, 192 B on the air or 80 ms at 19.2 kb/s, with its last quarter in a
/// bad period.
#[test]
fn a_wide_area_frame_partly_in_a_fade() {
    let start = Time::from_nanos(10 * SECOND - 60_000_000);
    let end = Time::from_nanos(10 * SECOND + 20_000_000);
    let expected = (1.0f64 - 1e-6).powi(1152) * (1.0f64 - 1e-2).powi(384);
    assert_close(trace(1e-6, 1e-2).survival(start, end, 1536), expected);
}

#[test]
fn certain_loss_hits_exactly_the_overlapping_frames() {
    let ns = Time::from_nanos;
    let (good_end, bad_end) = (10 * SECOND, 14 * SECOND);
    for (start, end, expected) in [
        (0, 1, 1.0),
        (0, good_end, 1.0),
        (0, good_end + 1, 0.0),
        (good_end - 1, good_end, 1.0),
        (good_end - 1, good_end + 1, 0.0),
        (good_end, good_end + 1, 0.0),
        (bad_end - 1, bad_end, 0.0),
        (bad_end - 1, bad_end + 1, 0.0),
        (bad_end, bad_end + 1, 1.0),
        (bad_end, bad_end + good_end, 1.0),
        (bad_end, bad_end + good_end + 1, 0.0),
        (0, 1000 * SECOND, 0.0),
    ] {
        assert_eq!(trace(0.0, 1.0).survival(ns(start), ns(end), 1), expected, "from {start} to {end} ns");
        assert_eq!(trace(0.0, 1.0).survival(ns(start), ns(end), 0), 1.0, "no bits, {start} to {end} ns");
    }
}

#[test]
fn certain_loss_in_both_states_and_in_neither() {
    for (start, end) in [(0, 5), (9, 11), (11, 12), (0, 100)] {
        assert_eq!(trace(1.0, 1.0).survival(secs(start), secs(end), 1), 0.0);
        assert_eq!(trace(0.0, 0.0).survival(secs(start), secs(end), u64::MAX), 1.0);
        assert_eq!(trace(1.0, 0.0).survival(secs(start), secs(end), 1), f64::from(u8::from(start == 11)));
    }
}

#[test]
fn a_zero_length_frame_meets_the_state_at_its_start() {
    for (at, expected) in [(9, 1.0), (10, 0.0), (13, 0.0), (14, 1.0)] {
        assert_eq!(trace(0.0, 1.0).survival(secs(at), secs(at), 1), expected, "at {at} s");
    }
}

#[test]
fn frames_may_overlap() {
    let mut channel = trace(0.0, 1.0);
    assert_eq!(channel.survival(secs(1), secs(100), 1), 0.0);
    assert_eq!(channel.survival(secs(1), secs(10), 1), 1.0);
    assert_eq!(channel.survival(secs(14), secs(24), 1), 1.0);
    assert_eq!(channel.survival(secs(15), secs(40), 1), 0.0);
    assert_eq!(channel.survival(secs(28), secs(38), 1), 1.0);
}

#[test]
fn fixed_periods_begin_with_a_good_one() {
    let mut channel = trace(0.0, 1.0);
    for cycle in 0..1000 {
        let begin = cycle * 14;
        let good = channel.sojourn(secs(begin));
        assert_eq!((good.state, good.until), (State::Good, secs(begin + 10)));
        let bad = channel.sojourn(good.until);
        assert_eq!((bad.state, bad.until), (State::Bad, secs(begin + 14)));
    }
}

/// A mean of 584 years makes some sojourns end at `Time::NEVER`.
#[test]
fn a_sojourn_may_be_unbounded() {
    let model = TwoState {
        good: Duration::from_nanos(1),
        bad: Duration::MAX,
        good_ber: p(0.0),
        bad_ber: p(1.0),
        start: Start::Good,
    };
    let forever = |run: &u64| {
        let mut channel = Model::TwoState(model).build(Streams::new(3, *run).stream("channel"));
        channel.sojourn(secs(1)).until == Time::NEVER
    };
    let run = (0..100).find(forever).expect("a stay beyond its mean among 100");
    let mut channel = Model::TwoState(model).build(Streams::new(3, run).stream("channel"));
    assert_eq!(channel.survival(secs(1), Time::from_nanos(u64::MAX - 1), 1), 0.0);
    assert_eq!(channel.sojourn(Time::from_nanos(u64::MAX - 1)).until, Time::NEVER);
}

#[test]
#[should_panic(expected = "queried for 1.000000000 s after 2.000000000 s")]
fn a_query_back_in_time_panics() {
    let mut channel = trace(0.0, 1.0);
    channel.survival(secs(2), secs(3), 1);
    channel.survival(secs(1), secs(3), 1);
}

#[test]
#[should_panic(expected = "before its start")]
fn a_frame_that_ends_before_its_start_panics() {
    trace(0.0, 1.0).survival(secs(2), secs(1), 1);
}

#[test]
#[should_panic(expected = "queried for Time::NEVER")]
fn a_query_at_time_never_panics() {
    trace(0.0, 1.0).sojourn(Time::NEVER);
}
