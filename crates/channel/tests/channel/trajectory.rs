//! The trajectory depends on the stream only.

use lasthop_base::{Duration, Probability, Stream, Streams, Time};
use lasthop_channel::{Channel, Model, Sojourn, Start, State, TwoState};

const GOOD_BER: f64 = 1e-4;
const BAD_BER: f64 = 3e-3;

/// Mean sojourns of 2 ms and 1 ms: frames of up to 20 ms cross zero, one or many boundaries.
fn channel(run: u64) -> Box<dyn Channel> {
    let model = TwoState {
        good: Duration::from_millis(2),
        bad: Duration::from_millis(1),
        good_ber: Probability::new(GOOD_BER).unwrap(),
        bad_ber: Probability::new(BAD_BER).unwrap(),
        start: Start::Stationary,
    };
    Model::TwoState(model).build(Streams::new(5, run).stream("channel"))
}

fn enumerate(channel: &mut dyn Channel, horizon: Time) -> Vec<Sojourn> {
    let mut sojourns = vec![channel.sojourn(Time::ZERO)];
    while let Some(last) = sojourns.last().filter(|last| last.until < horizon) {
        sojourns.push(channel.sojourn(last.until));
    }
    sojourns
}

struct Frame {
    start: Time,
    end: Time,
    bits: u64,
}

/// Frames in order of their start times; many overlap.
fn frames(stream: &mut Stream, n: usize) -> Vec<Frame> {
    let mut start = Time::ZERO;
    let mut frame = || {
        start += stream.up_to(Duration::from_millis(4));
        let longest = Duration::from_millis(if stream.bernoulli(0.8) { 1 } else { 20 });
        let end = start + stream.up_to(longest);
        Frame { start, end, bits: stream.below(2000) }
    };
    (0..n).map(|_| frame()).collect()
}

/// Survival computed from the whole trajectory, searched from its beginning.
fn survival_by_hand(trajectory: &[Sojourn], frame: &Frame) -> f64 {
    let (start, end) = (frame.start.as_nanos(), frame.end.as_nanos());
    let mut from = 0;
    let mut survival = 1.0;
    for sojourn in trajectory {
        let until = sojourn.until.as_nanos();
        let overlap = until.min(end).saturating_sub(from.max(start));
        let bits = frame.bits as f64 * overlap as f64 / (end - start) as f64;
        let ber = if sojourn.state == State::Good { GOOD_BER } else { BAD_BER };
        survival *= (1.0 - ber).powf(bits);
        from = until;
    }
    survival
}

#[test]
fn states_alternate_and_time_advances() {
    let trajectory = enumerate(&mut *channel(0), Time::from_nanos(1_000_000_000));
    assert!(trajectory.len() > 300, "{} sojourns in 1 s", trajectory.len());
    for pair in trajectory.windows(2) {
        assert_ne!(pair[0].state, pair[1].state);
        assert!(pair[0].until < pair[1].until);
    }
}

/// Three kinds of query: every frame in order, one frame of a fresh channel, and enumeration. The first two
/// must agree to the last bit.
#[test]
fn the_trajectory_is_independent_of_queries() {
    let frames = frames(&mut Streams::new(5, 0).stream("frames"), 500);
    let horizon = frames.iter().map(|f| f.end).max().unwrap();
    let trajectory = enumerate(&mut *channel(0), horizon);
    let mut busy = channel(0);
    for frame in &frames {
        let among_others = busy.survival(frame.start, frame.end, frame.bits);
        let alone = channel(0).survival(frame.start, frame.end, frame.bits);
        let by_hand = survival_by_hand(&trajectory, frame);
        assert_eq!(among_others, alone);
        assert!((alone - by_hand).abs() < 1e-12, "{alone} is not {by_hand}");
    }
}

/// The two directions of a link: one busy, the other with few, long frames.
#[test]
fn two_copies_see_the_same_trajectory() {
    let (mut down, mut up) = (channel(0), channel(0));
    for ms in 0..1000u64 {
        let at = Time::from_nanos(ms * 1_000_000);
        down.survival(at, at + Duration::from_micros(10), 100);
        if ms % 100 == 0 {
            up.survival(at, at + Duration::from_millis(50), 10_000);
        }
    }
    let at = Time::from_nanos(1_000_000_000);
    assert_eq!(down.sojourn(at), up.sojourn(at));
    let next = down.sojourn(at).until;
    assert_eq!(down.sojourn(next), up.sojourn(next));
}

#[test]
fn runs_have_different_trajectories() {
    let horizon = Time::from_nanos(100_000_000);
    assert_ne!(enumerate(&mut *channel(0), horizon), enumerate(&mut *channel(1), horizon));
}

/// Pins the trajectory of a named stream. A change invalidates the results of every study.
#[test]
fn first_sojourns_of_a_seed_are_pinned() {
    let model: TwoState = toml::from_str("good = \"10 s\"\nbad = \"4 s\"").unwrap();
    let mut channel = Model::TwoState(model).build(Streams::new(1, 0).stream("channel"));
    let trajectory = enumerate(&mut *channel, Time::from_nanos(10_000_000_000));
    let ends: Vec<u64> = trajectory.iter().map(|sojourn| sojourn.until.as_nanos()).collect();
    assert_eq!(ends, [3_476_780_606, 3_713_907_442, 14_793_694_701]);
}
