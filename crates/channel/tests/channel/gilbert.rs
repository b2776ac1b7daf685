//! Gilbert and Gilbert-Elliott against closed forms. Seeds are fixed; each statistic must lie within 5 standard errors of
//! its expectation, which a correct program misses for one seed in about two million.

use crate::common::{assert_close, assert_within_five};
use lasthop_base::{Duration, Streams, Time};
use lasthop_channel::{Bursts, Channel, Model};
use serde::Deserialize;

#[derive(Deserialize)]
struct Radio {
    channel: Model,
}

fn model(text: &str) -> Model {
    let model = toml::from_str::<Radio>(&format!("[channel.{text}")).expect("a channel").channel;
    model.validate().expect("a sound channel");
    model
}

fn channel(model: &Model, run: u64) -> Box<dyn Channel> {
    model.build(Streams::new(23, run).stream("channel"))
}

/// Whether each of `count` packets, `interval` apart, is lost.
fn losses(model: &Model, run: u64, count: usize, interval: Duration) -> Vec<bool> {
    let mut channel = channel(model, run);
    let mut coin = Streams::new(23, run).stream("bits");
    let lost = |number: usize| {
        let start = Time::ZERO + interval * number as u64;
        let survival = match number % 2 {
            0 => channel.survival(start, start + interval, 8 * (1 + number as u64 % 1500)),
            _ => channel.exposure(start, start + interval, &mut |share, rate| {
                assert_eq!((share, rate.get()), (1.0, 0.0));
            }),
        };
        !coin.bernoulli(survival)
    };
    (0..count).map(lost).collect()
}

/// The lengths of the runs of lost packets, or of the others, that are complete.
fn runs(lost: &[bool], of: bool) -> Vec<usize> {
    let runs: Vec<_> = lost.chunk_by(|a, b| a == b).collect();
    runs[1..runs.len() - 1].iter().filter(|run| run[0] == of).map(|run| run.len()).collect()
}

/// Runs are independent and geometric with this mean, as every moment and the tail show.
fn assert_geometric(what: &str, lengths: &[usize], mean: f64) {
    let n = lengths.len() as f64;
    let found = lengths.iter().sum::<usize>() as f64 / n;
    let end = 1.0 / mean;
    assert_within_five(
        &format!("{what}: mean of {n}"),
        found,
        mean,
        ((1.0 - end).sqrt() / end).max(1e-12) / n.sqrt(),
    );
    for more_than in [1usize, 2, 5, 10] {
        let tail = (1.0 - end).powi(more_than as i32);
        let count = lengths.iter().filter(|&&length| length > more_than).count() as f64;
        if tail * n > 25.0 {
            let error = (tail * (1.0 - tail) / n).sqrt();
            assert_within_five(&format!("{what}: more than {more_than}"), count / n, tail, error);
        }
    }
}

/// The share of losses is p/(p + r), whatever the burst; bursts are geometric with mean 1/r, and gaps with mean 1/p. The
/// standard error of the share is that of a chain: correlation 1 − p − r between neighbours.
#[test]
fn losses_of_gilbert_are_a_markov_chain() {
    for (loss, burst) in [(0.02, 5.0), (0.1, 1.5), (0.4, 30.0), (0.02, 1.0 / 0.98)] {
        let model = model(&format!("gilbert]\nloss = {loss}\nburst = {burst}"));
        let (r, p) = (1.0 / burst, loss / (1.0 - loss) / burst);
        let count = 1_000_000;
        let lost = losses(&model, 0, count, Duration::from_millis(1));
        let share = lost.iter().filter(|&&lost| lost).count() as f64 / count as f64;
        let kept: f64 = 1.0 - p - r;
        let error = (loss * (1.0 - loss) * (1.0 + kept) / (1.0 - kept) / count as f64).sqrt();
        let what = format!("loss {loss}, burst {burst}");
        assert_within_five(&what, share, p / (p + r), error);
        assert_geometric(&format!("{what}, bursts"), &runs(&lost, true), burst);
        assert_geometric(&format!("{what}, gaps"), &runs(&lost, false), 1.0 / p);
    }
}

/// Without a burst, losses are independent.
#[test]
fn without_a_burst_losses_are_independent() {
    let model = model("gilbert]\nloss = \"10 %\"");
    let lost = losses(&model, 1, 500_000, Duration::from_millis(1));
    assert_geometric("bursts", &runs(&lost, true), 1.0 / 0.9);
    assert_geometric("gaps", &runs(&lost, false), 10.0);
    assert!(
        losses(&self::model("gilbert]\nloss = 0"), 1, 1000, Duration::from_millis(1))
            .iter()
            .all(|lost| !lost)
    );
    assert!(
        losses(&self::model("gilbert]\nloss = 1"), 1, 1000, Duration::from_millis(1))
            .iter()
            .all(|lost| *lost)
    );
}

/// By time, packets every Δ see a chain with p and r of the module's formulas, at any Δ; the loss does not depend on it.
#[test]
fn by_time_the_burst_in_packets_depends_on_their_rate() {
    let model = model("gilbert]\nloss = 0.05\nburst = \"40 ms\"");
    for (run, ms) in [(2, 1.0), (3, 10.0), (4, 200.0)] {
        let interval = Duration::from_secs_f64(ms / 1e3);
        let rate = 1.0 / 0.04 + 1.0 / (0.04 * 19.0);
        let moved = 1.0 - (-rate * ms / 1e3_f64).exp();
        let (p, r) = (0.05 * moved, 0.95 * moved);
        let lost = losses(&model, run, 1_000_000, interval);
        assert_geometric(&format!("{ms} ms, bursts"), &runs(&lost, true), 1.0 / r);
        assert_geometric(&format!("{ms} ms, gaps"), &runs(&lost, false), 1.0 / p);
        let said = model.bursts(interval).expect("a chain");
        for (what, found, expected) in [
            ("p", said.p, p),
            ("r", said.r, r),
            ("loss", said.loss, 0.05),
            ("bad", said.bad_s.unwrap(), 0.04),
        ] {
            assert_close(what, found, expected, 1e-9);
        }
        assert_close("burst", said.burst_packets.unwrap(), 1.0 / r, 1e-9);
    }
}

/// Converted from packets to time and back, a chain is the same.
#[test]
fn conversions_are_inverse() {
    for (p, r, ms) in [(0.01, 0.2, 1.0), (0.3, 0.3, 7.0), (1e-4, 0.5, 20.0)] {
        let interval = Duration::from_secs_f64(ms / 1e3);
        let by_packets =
            model(&format!("gilbert-elliott]\np = {p}\nr = {r}\nloss_good = 0.001\nloss_bad = 0.7"));
        let Bursts { by_packets: true, good_s: Some(good), bad_s: Some(bad), .. } =
            by_packets.bursts(interval).unwrap()
        else {
            panic!("a chain by packets with a process in time")
        };
        let by_time = model(&format!(
            "gilbert-elliott]\ngood = \"{} ns\"\nbad = \"{} ns\"\nloss_good = 0.001\nloss_bad = 0.7",
            good * 1e9,
            bad * 1e9
        ));
        let back = by_time.bursts(interval).unwrap();
        assert!(!back.by_packets);
        assert_close("p", back.p, p, 1e-6);
        assert_close("r", back.r, r, 1e-6);
        let stays = model(&format!("gilbert-elliott]\ngood = {}\nbad = \"{} packets\"", 1.0 / p, 1.0 / r));
        assert_close("p of stays", stays.bursts(interval).unwrap().p, p, 1e-12);
    }
    // Losses that avoid each other have no process in time.
    let alternating = model("gilbert-elliott]\np = 0.9\nr = 0.9");
    assert_eq!(alternating.bursts(Duration::from_millis(1)).unwrap().bad_s, None);
}

/// Mean loss, mean burst and mean gap of the four-parameter chain have closed forms; so has the probability that one of
/// several consecutive packets is lost. Standard errors from 40 independent runs.
#[test]
fn gilbert_elliott_has_closed_forms() {
    for (text, ms) in [
        ("gilbert-elliott]\np = 0.02\nr = 0.1\nloss_good = 0.01\nloss_bad = 0.6", 1.0),
        ("gilbert-elliott]\ngood = \"200 ms\"\nbad = \"50 ms\"\nloss_good = 0.005\nloss_bad = 0.5", 5.0),
    ] {
        let (model, interval) = (model(text), Duration::from_secs_f64(ms / 1e3));
        let said = model.bursts(interval).unwrap();
        let mut samples = [const { Vec::new() }; 4];
        for run in 10..50 {
            let lost = losses(&model, run, 60_000, interval);
            let mean = |lengths: Vec<usize>| lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
            let share = |hit: usize, of: usize| hit as f64 / of as f64;
            samples[0].push(share(lost.iter().filter(|&&lost| lost).count(), lost.len()));
            samples[1].push(mean(runs(&lost, true)));
            samples[2].push(mean(runs(&lost, false)));
            samples[3]
                .push(share(lost.chunks(3).filter(|packet| packet.contains(&true)).count(), lost.len() / 3));
        }
        let of_three = model.loss_probability(3, 1000, interval * 3);
        let expected = [said.loss, said.burst_packets.unwrap(), said.gap_packets.unwrap(), of_three];
        for ((what, samples), expected) in
            ["loss", "burst", "gap", "of three"].iter().zip(samples).zip(expected)
        {
            let n = samples.len() as f64;
            let mean = samples.iter().sum::<f64>() / n;
            let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
            assert_within_five(&format!("{text}: {what}"), mean, expected, (variance / n).sqrt());
        }
    }
}

/// The first packet meets the state that is stated, or is lost with the long-run probability.
#[test]
fn the_start_is_as_stated() {
    for (start, expected) in [("stationary", 0.25), ("good", 0.0), ("bad", 1.0)] {
        for burst in ["4", "\"40 ms\""] {
            let model = model(&format!("gilbert]\nloss = 0.25\nburst = {burst}\nstart = \"{start}\""));
            let n = 20_000;
            let lost = (0..n).filter(|&run| losses(&model, run, 1, Duration::from_millis(1))[0]).count();
            let error = (expected * (1.0 - expected) / n as f64).sqrt().max(1e-12);
            assert_within_five(&format!("{start}, {burst}"), lost as f64 / n as f64, expected, error);
        }
    }
}

/// By time, the copies of both directions meet the same states, whatever they send.
#[test]
fn by_time_the_states_do_not_depend_on_traffic() {
    let model = model("gilbert]\nloss = 0.3\nburst = \"40 ms\"");
    let (mut busy, mut idle) = (channel(&model, 0), channel(&model, 0));
    for ms in 0..2000 {
        let at = Time::ZERO + Duration::from_millis(ms);
        let survival = busy.survival(at, at, 100);
        if ms % 100 == 0 {
            assert_eq!(idle.survival(at, at, 9), survival);
        }
    }
}

#[test]
fn impossible_combinations_are_refused_with_a_remedy() {
    for (text, field, problem) in [
        ("gilbert]\nloss = 0\nburst = 5", "gilbert.burst", "found a burst with a loss of 0"),
        ("gilbert]\nloss = 1\nburst = 5", "gilbert.burst", "found a burst with a loss of 1"),
        (
            "gilbert]\nloss = 0.5\nburst = 1.9",
            "gilbert.burst",
            "found a mean burst below 1 / (1 - loss) packets",
        ),
        ("gilbert]\nloss = 0.5\nburst = \"0 s\"", "gilbert.burst", "found a length of zero"),
        ("gilbert-elliott]\np = 0.1", "gilbert-elliott", "expected either p and r, or good and bad"),
        ("gilbert-elliott]\np = 0.1\nr = 0.1\ngood = 3", "gilbert-elliott", "expected either p and r"),
        ("gilbert-elliott]\np = 0.1\nr = 0", "gilbert-elliott.r", "found 0, expected a probability above 0"),
        (
            "gilbert-elliott]\ngood = 3\nbad = \"1 s\"",
            "gilbert-elliott.bad",
            "both in packets or both in time",
        ),
        ("gilbert-elliott]\ngood = \"1 s\"\nbad = \"0 s\"", "gilbert-elliott.bad", "found a length of zero"),
    ] {
        let model = toml::from_str::<Radio>(&format!("[channel.{text}")).expect("a channel").channel;
        let invalid = model.validate().expect_err(text);
        assert_eq!(invalid.field, field, "{text}");
        assert!(invalid.problem.contains(problem), "{text}: {}", invalid.problem);
    }
    for (text, problem) in [
        ("gilbert]\nloss = 0.1\nburst = 0.5", "expected at least 1 packet"),
        ("gilbert]\nloss = 0.1\nburst = nan", "expected at least 1 packet"),
        ("gilbert]\nloss = 0.1\nburst = \"five\"", "expected a duration such as"),
        (
            "gilbert]\nloss = 0.1\nburst = \"x packets\"",
            "expected a number of packets such as 5, or a duration",
        ),
        ("gilbert]\nloss = 0.1\nburst = true", "expected a number of packets such as 5, or a duration"),
        ("gilbert]\nburst = 5", "missing field `loss`"),
    ] {
        let error = toml::from_str::<Radio>(&format!("[channel.{text}")).err().expect(text);
        assert!(error.message().contains(problem), "{text}: {}", error.message());
    }
}
