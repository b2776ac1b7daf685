//! Semi-Markov channels and series of losses against closed forms. Seeds are fixed; each statistic must lie
//! within 5 standard errors of its expectation, which a correct program misses for one seed in about two
//! million.

use crate::common::assert_within_five;
use lasthop_base::{Duration, Streams, Time};
use lasthop_channel::{Model, State};
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, Serialize)]
struct Radio {
    channel: Model,
}

fn read(text: &str) -> Model {
    toml::from_str::<Radio>(&format!("[channel.{text}")).expect("a channel").channel
}

/// The lengths in seconds of `cycles` good and bad periods after the first two.
fn stays(model: &Model, cycles: usize) -> [Vec<f64>; 2] {
    let mut channel = model.build(Streams::new(31, 0).stream("channel"));
    let mut from = Time::ZERO;
    let mut all = [const { Vec::new() }; 2];
    for number in 0..2 * cycles + 2 {
        let sojourn = channel.sojourn(from);
        let length = sojourn.until.since(from).as_secs_f64();
        from = sojourn.until;
        if number > 1 {
            all[usize::from(sojourn.state == State::Bad)].push(length);
        }
    }
    all
}

fn moments(values: &[f64]) -> (f64, f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, variance.sqrt(), (variance / n).sqrt())
}

/// Logarithms of lognormal lengths are normal with the stated median or mean; lengths from a list are equally
/// frequent.
#[test]
fn lengths_have_the_stated_distributions() {
    let model = read(
        "semi-markov]\ngood.lognormal = { median = \"4 s\", sigma = 1.2 }\nbad.lognormal = { mean = \"300 ms\", sigma = 0.5 }",
    );
    let n = 100_000;
    let logs = stays(&model, n).map(|lengths| lengths.iter().map(|x| x.ln()).collect::<Vec<_>>());
    let medians = [4.0_f64.ln(), 0.3_f64.ln() - 0.125];
    for ((logs, median), sigma) in logs.iter().zip(medians).zip([1.2, 0.5]) {
        let (mean, deviation, _) = moments(logs);
        assert_within_five("mean of logarithms", mean, median, sigma / (n as f64).sqrt());
        assert_within_five("their deviation", deviation, sigma, sigma / (2.0 * n as f64).sqrt());
        let beyond = logs.iter().filter(|&&log| log > median + sigma).count() as f64 / n as f64;
        assert_within_five("beyond sigma", beyond, 0.158_655, (0.1587_f64 * 0.8413 / n as f64).sqrt());
    }
    let model =
        read("semi-markov]\ngood.constant = \"2 s\"\nbad.empirical = [\"20 ms\", \"20 ms\", \"1.2 s\"]");
    let [good, bad] = stays(&model, n);
    assert!(good.iter().all(|length| (length - 2.0).abs() < 1e-9));
    let long = bad.iter().filter(|&&length| (length - 1.2).abs() < 1e-9).count() as f64 / n as f64;
    assert_within_five("long ones", long, 1.0 / 3.0, (2.0 / 9.0 / n as f64).sqrt());
    assert!((model.availability() - 2.0 / (2.0 + 1.24 / 3.0)).abs() < 1e-12);
}

/// From a stationary start, the state at every instant has its long-run probability, and what is left of the
/// first bad period has the density P(length > x)/mean: its mean is E\[length²\]/(2 · mean).
#[test]
fn a_stationary_start_is_stationary() {
    let laws = [
        ("constant = \"300 ms\"", 0.3, 0.09),
        ("exponential = \"300 ms\"", 0.3, 0.18),
        ("lognormal = { median = \"200 ms\", sigma = 0.8 }", 0.2 * 0.32_f64.exp(), 0.04 * (1.28_f64).exp()),
        ("empirical = [\"100 ms\", \"100 ms\", \"1 s\"]", 0.4, (0.02 + 1.0) / 3.0),
    ];
    for (law, mean, square) in laws {
        let model =
            read(&format!("semi-markov]\ngood.lognormal = {{ mean = \"700 ms\", sigma = 1.0 }}\nbad.{law}"));
        let n = 40_000;
        let times = [0.0, 0.15, 0.6, 3.0];
        let mut bad = [0u32; 4];
        let mut left = Vec::new();
        for run in 0..n {
            let mut channel = model.build(Streams::new(37, run).stream("channel"));
            let first = channel.sojourn(Time::ZERO);
            if first.state == State::Bad {
                left.push(first.until.as_secs_f64());
            }
            for (count, t) in bad.iter_mut().zip(times) {
                let at = Time::ZERO + Duration::from_secs_f64(t);
                *count += u32::from(channel.sojourn(at).state == State::Bad);
            }
        }
        let share = mean / (mean + 0.7);
        for (count, t) in bad.into_iter().zip(times) {
            let error = (share * (1.0 - share) / n as f64).sqrt();
            assert_within_five(&format!("{law}, bad at {t} s"), f64::from(count) / n as f64, share, error);
        }
        let (found, _, error) = moments(&left);
        assert_within_five(&format!("{law}, rest of the first"), found, square / (2.0 * mean), error);
    }
}

/// From a good or a bad start, the first period is a whole one.
#[test]
fn other_starts_begin_with_a_whole_period() {
    for (start, state, seconds) in [("good", State::Good, 2), ("bad", State::Bad, 1)] {
        let text = "semi-markov]\ngood.constant = \"2 s\"\nbad.constant = \"1 s\"\nstart = ";
        let mut channel = read(&format!("{text}\"{start}\"")).build(Streams::new(0, 0).stream("channel"));
        let first = channel.sojourn(Time::ZERO);
        assert_eq!((first.state, first.until), (state, Time::ZERO + Duration::from_secs(seconds)));
    }
}

/// With the default rates, exactly the units that overlap a bad period are lost.
#[test]
fn units_that_overlap_a_bad_period_are_lost() {
    let model = read("semi-markov]\ngood.constant = \"2 s\"\nbad.constant = \"1 s\"\nstart = \"good\"");
    let mut channel = model.build(Streams::new(0, 0).stream("channel"));
    let at = |ms| Time::ZERO + Duration::from_millis(ms);
    for (start, end, survival) in [(0, 2000, 1.0), (1500, 2001, 0.0), (2999, 3500, 0.0), (3000, 4000, 1.0)] {
        assert_eq!(channel.survival(at(start), at(end), 1000), survival, "{start} to {end} ms");
    }
}

fn with_file(text: &str, contents: &str) -> Result<Model, String> {
    let mut model = read(text);
    for (_, file) in model.files() {
        file.read(contents).map_err(|error| format!("{:?}: {}", error.line, error.problem))?;
    }
    model.validate().map(|()| model).map_err(|invalid| invalid.problem.to_owned())
}

#[test]
fn lengths_and_losses_come_from_files() {
    let fades = "semi-markov]\ngood.exponential = \"4 s\"\nbad.empirical = { file = \"fades.csv\" }";
    let model = with_file(fades, "length_ms\n20\n50\n1200\n").unwrap();
    let listed =
        read("semi-markov]\ngood.exponential = \"4 s\"\nbad.empirical = [\"20 ms\", \"50 ms\", \"1200 ms\"]");
    assert_eq!(stays(&model, 1000), stays(&listed, 1000));
    let written = toml::to_string(&Radio { channel: model.clone() }).unwrap();
    let again = toml::from_str::<Radio>(&written).unwrap().channel;
    assert_ne!(again, model, "it has not been read");
    assert!(again.validate().unwrap_err().problem.contains("has not been read"));

    let series =
        with_file("loss-series]\nfile = \"loss.csv\"", "time_s,loss_percent\n0,0\n1,50\n2,100\n").unwrap();
    let mut channel = series.build(Streams::new(0, 0).stream("channel"));
    for (s, survival) in [(0.0, 1.0), (0.999, 1.0), (1.0, 0.5), (2.5, 0.0), (3.0, 1.0), (31.5, 0.5)] {
        let at = Time::ZERO + Duration::from_secs_f64(s);
        assert!((channel.survival(at, at, 100) - survival).abs() < 1e-12, "at {s} s");
    }
    for (text, contents, problem) in [
        (fades, "length_ms\n20\n0\n", "Some(3): found a length that is not above zero"),
        (fades, "20\n30\n", "Some(1): found numbers, expected the names"),
        (fades, "", "None: found nothing"),
        (
            "loss-series]\nfile = \"x\"",
            "time_s,loss\n0,1.5\n",
            "Some(2): found a loss that is not a probability",
        ),
    ] {
        let error = with_file(text, contents).unwrap_err();
        assert!(error.contains(problem), "{contents:?}: {error}");
    }
}

#[test]
fn impossible_lengths_are_refused() {
    for (bad, problem) in [
        ("constant = \"0 s\"", "found a length of zero"),
        ("lognormal = { sigma = 1 }", "expected either the median or the mean"),
        (
            "lognormal = { median = \"1 s\", mean = \"1 s\", sigma = 1 }",
            "expected either the median or the mean",
        ),
        ("lognormal = { median = \"1 s\", sigma = -1 }", "found a sigma out of range"),
        ("lognormal = { median = \"1 s\", sigma = nan }", "found a sigma out of range"),
        ("empirical = []", "found an empty list"),
        ("empirical = [\"0 s\"]", "found a length of zero in the list"),
    ] {
        let invalid =
            read(&format!("semi-markov]\ngood.constant = \"1 s\"\nbad.{bad}")).validate().unwrap_err();
        assert_eq!(invalid.field, "semi-markov.bad");
        assert!(invalid.problem.contains(problem), "{bad}: {}", invalid.problem);
    }
}

/// With losses of whole units, each is lost with the probability of the period in which it starts.
#[test]
fn losses_of_whole_units_follow_the_periods() {
    let periods = "semi-markov]\ngood.constant = \"2 s\"\nbad.constant = \"1 s\"\nstart = \"good\"\n";
    let survivals = |losses: &str| {
        let mut channel = read(&format!("{periods}{losses}")).build(Streams::new(1, 0).stream("channel"));
        // The second unit ends in the bad period.
        [(0.5, 0.6), (1.9, 2.1), (2.5, 2.6), (3.5, 3.6)].map(|(start, end)| {
            let at = |seconds| Time::ZERO + Duration::from_secs_f64(seconds);
            channel.survival(at(start), at(end), 12_000)
        })
    };
    assert_eq!(survivals("loss_good = 0.25\nloss_bad = 0.75"), [0.75, 0.75, 0.25, 0.75]);
    assert_eq!(survivals("loss_good = 0.25"), [0.75, 0.75, 0.0, 0.75]);
    assert_eq!(survivals("loss_bad = 0.75"), [1.0, 1.0, 0.25, 1.0]);
    // Without them, a unit that overlaps a bad period is lost.
    assert_eq!(survivals(""), [1.0, 0.0, 0.0, 1.0]);
    let invalid = read(&format!("{periods}loss_bad = 0.5\nbad_ber = 1e-3")).validate().unwrap_err();
    assert!(invalid.problem.contains("expected either good_ber and bad_ber, or"), "{}", invalid.problem);
}
