//! Requests of the page, and the replies.

use std::collections::HashMap;

use lasthop_experiment::report::{self, VERSION, ended_key};
use lasthop_experiment::{Events, Experiment, Metrics, Observe, Run, RunError, Series, Value};
use lasthop_scenario::{Profile, Scenario, ScenarioError, Schemes};
use serde::{Deserialize, Serialize};

use crate::columns::{Column, Columns};

/// The most rows of traces and series that a reply has; more would take seconds to be drawn.
const MAX_ROWS: usize = 1_000_000;

/// A request. Its JSON has the key `do`, such as `"run"`, and those of the variant.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Describes the module: `version`, `schemes` (each with `name` and `summary`), `profiles`, `metrics`.
    About {},
    /// Reads a scenario: `title`, `schemes`, `sender`, `hash`, `toml` (its canonical form),
    /// `tables` (the same as objects) and `counters`.
    Check {
        /// The scenario.
        scenario: Text,
    },
    /// Runs it with each of its schemes: `report` is the text that `lasthop run --json` prints, `runs` has the
    /// recordings of the first connection's parts, `bad_periods` the columns `start_s` and `end_s`.
    Run {
        /// The scenario.
        scenario: Text,
        /// The study's seed.
        seed: u64,
        /// The run's number.
        run: u64,
    },
    /// Runs it many times with each of its schemes: `values` has a column of the metric for each, NaN for a
    /// run that has none.
    Sample {
        /// The scenario.
        scenario: Text,
        /// The study's seed.
        seed: u64,
        /// The first run's number.
        first: u64,
        /// The number of runs.
        runs: u64,
        /// The name of a metric, or of a counter.
        metric: String,
    },
}

/// The text of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// TOML.
    pub toml: String,
    /// Its name in messages and reports.
    pub name: String,
    /// Changes of settings, each as `KEY=VALUE`.
    pub overrides: Vec<String>,
}

impl Text {
    fn parse(&self) -> Result<Scenario, Failure> {
        Scenario::parse(&self.toml, &self.name, &self.overrides).map_err(|error| Failure::of(&error))
    }
}

/// Why there is no reply.
#[derive(Debug, Serialize)]
struct Failure {
    /// What was found and what was expected.
    message: String,
    /// The message with its place, in several lines.
    text: String,
    /// The line of the scenario, from 1.
    line: Option<usize>,
    /// The override that is wrong, as `--set KEY=VALUE`.
    option: Option<String>,
}

impl Failure {
    fn of(error: &ScenarioError) -> Failure {
        let option = error.origin().starts_with("--").then(|| error.origin().to_owned());
        Failure { message: error.message().to_owned(), text: error.to_string(), line: error.line(), option }
    }

    fn plain(message: &str) -> Failure {
        Failure { message: message.to_owned(), text: message.to_owned(), line: None, option: None }
    }

    fn of_run(error: &RunError) -> Failure {
        match error {
            RunError::Scenario(error) => Failure::of(error),
            other => Failure::plain(&other.to_string()),
        }
    }
}

#[derive(Serialize)]
struct Failed<'a> {
    error: &'a Failure,
}

#[derive(Serialize)]
struct About {
    version: &'static str,
    schemes: Vec<SchemeEntry>,
    profiles: [&'static str; Profile::ALL.len()],
    metrics: Vec<&'static str>,
}

#[derive(Serialize)]
struct SchemeEntry {
    name: &'static str,
    summary: &'static str,
}

#[derive(Serialize)]
struct Checked {
    title: String,
    schemes: Vec<String>,
    sender: Option<String>,
    hash: String,
    toml: String,
    tables: serde_json::Value,
    counters: Vec<String>,
}

#[derive(Serialize)]
struct Ran {
    report: String,
    runs: Vec<Recording>,
    bad_periods: BadPeriods,
}

#[derive(Serialize)]
struct BadPeriods {
    start_s: Column,
    end_s: Column,
}

#[derive(Serialize)]
struct Recording {
    scheme: String,
    ended: &'static str,
    /// The first connection's parts, from its source on.
    parts: Vec<PartRecording>,
}

#[derive(Serialize)]
struct PartRecording {
    from: String,
    to: String,
    /// Names of the values of the columns `event` and `reason`, which are indices of this list.
    words: Vec<&'static str>,
    events: HashMap<&'static str, Column>,
    series: HashMap<&'static str, Column>,
}

#[derive(Serialize)]
struct Sampled {
    schemes: Vec<String>,
    values: Vec<Column>,
}

/// Answers a [`Request`], given as JSON.
///
/// The reply is a JSON document, whose length in bytes precedes it as a little-endian number of four bytes. It is
/// padded to a multiple of eight bytes and followed by [`Columns`], whose places it states. If the
/// request cannot be answered, the document has the key `error`.
pub fn answer(request: &[u8]) -> Vec<u8> {
    let reply = match serde_json::from_slice(request) {
        Ok(request) => reply(&request),
        Err(error) => Err(Failure::plain(&format!("not a request: {error}"))),
    };
    reply.unwrap_or_else(|error| Columns::default().behind(&Failed { error: &error }))
}

/// The reply that says that the simulator crashed.
pub(crate) fn failed(message: &str) -> Vec<u8> {
    Columns::default().behind(&Failed { error: &Failure::plain(message) })
}

fn reply(request: &Request) -> Result<Vec<u8>, Failure> {
    let mut columns = Columns::default();
    match request {
        Request::About {} => Ok(columns.behind(&about())),
        Request::Check { scenario } => Ok(columns.behind(&check(&scenario.parse()?)?)),
        Request::Run { scenario, seed, run } => {
            let ran = ran(&scenario.parse()?, *seed, *run, &mut columns)?;
            Ok(columns.behind(&ran))
        }
        Request::Sample { scenario, seed, first, runs, metric } => {
            let runs = *first..first.saturating_add(*runs);
            let sampled = sampled(&scenario.parse()?, *seed, runs, metric, &mut columns)?;
            Ok(columns.behind(&sampled))
        }
    }
}

fn about() -> About {
    let all = Schemes::default();
    let schemes = all.all().map(|each| SchemeEntry { name: each.name(), summary: each.summary() });
    About {
        version: VERSION,
        schemes: schemes.collect(),
        profiles: Profile::ALL.map(Profile::name),
        metrics: Metrics::names().collect(),
    }
}

fn check(scenario: &Scenario) -> Result<Checked, Failure> {
    let toml = scenario.to_toml();
    Ok(Checked {
        title: scenario.title.clone(),
        schemes: scenario.schemes.clone(),
        sender: scenario.sender.clone(),
        hash: scenario.hash(),
        tables: serde_json::json!(scenario.tables()),
        toml,
        counters: scenario.counters().map_err(|error| Failure::of(&error))?,
    })
}

fn ran(scenario: &Scenario, seed: u64, run: u64, columns: &mut Columns) -> Result<Ran, Failure> {
    let observe = Observe { trace: true, series: true, delays: false, pcap: None, qlog: false };
    let mut runs: Vec<Run> = Vec::new();
    for scheme in &scenario.schemes {
        runs.push(scenario.run(scheme, seed, run, observe).map_err(|error| Failure::of_run(&error))?);
        let rows: usize = runs.iter().map(Run::recorded_rows).sum();
        if rows > MAX_ROWS {
            return Err(Failure::plain(&format!(
                "the runs have {rows} packets and changes of windows, more than the {MAX_ROWS} that a page can \
                 show; a lower limit, rate or size has fewer"
            )));
        }
    }
    let report = report::to_json(scenario, &runs.iter().collect::<Vec<_>>());
    let report = report.map_err(|error| Failure::plain(&error.to_string()))?;
    let until = runs.iter().flat_map(first_parts).filter_map(|part| part.series.as_ref());
    let until =
        until.filter_map(|series| series.time_s.last()).fold(0.0, |until: f64, &time| until.max(time));
    let (start_s, end_s): (Vec<f64>, Vec<f64>) =
        lasthop_predict::bad_periods(scenario, seed, run, until).into_iter().unzip();
    let bad_periods = BadPeriods { start_s: columns.push(start_s), end_s: columns.push(end_s) };
    let runs = runs.iter().map(|run| recording(run, columns)).collect();
    Ok(Ran { report, runs, bad_periods })
}

/// The parts of a run's first connection.
fn first_parts(run: &Run) -> impl Iterator<Item = &lasthop_experiment::PartRun> {
    run.connections.iter().take(1).flat_map(|each| &each.parts)
}

fn recording(run: &Run, columns: &mut Columns) -> Recording {
    let parts = first_parts(run).map(|part| {
        let mut words = Vec::new();
        PartRecording {
            from: part.from.clone(),
            to: part.to.clone(),
            events: part.events.as_ref().map(|all| events(all, &mut words, columns)).unwrap_or_default(),
            series: part.series.as_ref().map(|all| series(all, columns)).unwrap_or_default(),
            words,
        }
    });
    Recording { scheme: run.scheme.clone(), ended: ended_key(run.ended), parts: parts.collect() }
}

fn events(
    events: &Events,
    words: &mut Vec<&'static str>,
    columns: &mut Columns,
) -> HashMap<&'static str, Column> {
    let mut coded = |column: &[&'static str]| {
        let code = |word: &&'static str| {
            let known = words.iter().position(|each| each == word);
            known.unwrap_or_else(|| {
                words.push(word);
                words.len() - 1
            }) as f64
        };
        columns.push(column.iter().map(code).collect::<Vec<_>>())
    };
    let (event, reason) = (coded(&events.event), coded(&events.reason));
    let whole = |column: &[i64]| column.iter().map(|&value| value as f64).collect::<Vec<_>>();
    HashMap::from([
        ("time_s", columns.push(events.time_s.iter().copied())),
        ("event", event),
        ("packet", columns.push(whole(&events.packet))),
        ("transmission", columns.push(whole(&events.transmission))),
        ("size_bytes", columns.push(whole(&events.size_bytes))),
        ("reason", reason),
    ])
}

fn series(series: &Series, columns: &mut Columns) -> HashMap<&'static str, Column> {
    let times = [("time_s", columns.push(series.time_s.iter().copied()))];
    let others = series.columns.iter().map(|(name, values)| (*name, columns.push(values.iter().copied())));
    times.into_iter().chain(others.collect::<Vec<_>>()).collect()
}

fn sampled(
    scenario: &Scenario,
    seed: u64,
    runs: std::ops::Range<u64>,
    metric: &str,
    columns: &mut Columns,
) -> Result<Sampled, Failure> {
    let mut values = Vec::new();
    for scheme in &scenario.schemes {
        let setup = scenario.set_up(scheme).map_err(|error| Failure::of(&error))?;
        let mut found = Vec::new();
        for run in runs.clone() {
            let ran = setup.run(seed, run, &mut |_| true).map_err(|error| Failure::of_run(&error))?;
            let mut plain = Metrics::names().zip(ran.metrics.values());
            let plain = plain.find(|(name, _)| *name == metric).and_then(|(_, value)| number(value));
            let counter = ran.counters.iter().find(|each| each.to_string() == metric);
            let counter = counter.map(|each| each.value as f64);
            found.push(plain.or(counter).unwrap_or(f64::NAN));
        }
        values.push(columns.push(found));
    }
    Ok(Sampled { schemes: scenario.schemes.clone(), values })
}

fn number(value: Value) -> Option<f64> {
    match value {
        Value::Real(value) => value,
        Value::Count(count) => Some(count as f64),
        Value::Truth(truth) => Some(f64::from(u8::from(truth))),
    }
}
