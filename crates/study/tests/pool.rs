//! Many runs on many threads.

mod common;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::SCENARIO;
use lasthop_study::{Batch, Metrics, Observe, Pool, Row, Scenario, Value};

const MINUTE: Duration = Duration::from_secs(60);

fn scenario(overrides: &[&str]) -> Arc<Scenario> {
    Arc::new(Scenario::parse(SCENARIO, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}")))
}

fn pool(jobs: usize) -> Pool {
    Pool::new(NonZeroUsize::new(jobs))
}

fn batch(key: i64, scenario: &Arc<Scenario>, scheme: &str, runs: std::ops::Range<u64>) -> Batch {
    Batch { key, scenario: Arc::clone(scenario), scheme: scheme.to_owned(), seed: 7, runs }
}

/// A transfer that would take the machine hours.
fn endless() -> Arc<Scenario> {
    scenario(&["transfer.size=unlimited", "limit=1000000000 s", "radio.rate=1 Gbps", "wired.rate=1 Gbps"])
}

fn all_rows(pool: &Pool) -> Vec<Row> {
    let mut rows = Vec::new();
    while pool.pending() > 0 {
        rows.extend(pool.collect(MINUTE).unwrap());
    }
    rows.sort_by_key(|row| (row.key, row.run));
    rows
}

#[test]
fn rows_are_those_of_single_runs_however_many_threads_there_are() {
    let (long, short) = (scenario(&[]), scenario(&["transfer.size=5 KB"]));
    let batches = [(1, &long, "basic", 3..40), (2, &short, "ebsn", 0..500), (-3, &long, "ebsn", 0..1)];
    let mut expected = Vec::new();
    for (key, scenario, scheme, runs) in &batches {
        for run in runs.clone() {
            let lasthop_study::Run { ended, metrics, .. } =
                scenario.run(scheme, 7, run, Observe::default()).unwrap();
            expected.push(Row { key: *key, run, ended, metrics });
        }
    }
    expected.sort_by_key(|row| (row.key, row.run));
    for jobs in [1, 2, 5] {
        let pool = pool(jobs);
        for (key, scenario, scheme, runs) in &batches {
            pool.submit(batch(*key, scenario, scheme, runs.clone())).unwrap();
        }
        assert_eq!(pool.pending(), 538);
        assert!(all_rows(&pool) == expected, "with {jobs} threads");
    }
}

#[test]
fn cancelling_stops_an_endless_run_and_the_pool_can_go_on() {
    let pool = pool(2);
    pool.submit(batch(1, &endless(), "basic", 0..1_000)).unwrap();
    assert_eq!(pool.collect(Duration::from_millis(300)), Ok(vec![]));
    pool.cancel();
    assert_eq!((pool.pending(), pool.collect(MINUTE)), (0, Ok(vec![])));
    let begun = Instant::now();
    pool.submit(batch(2, &scenario(&["transfer.size=5 KB"]), "basic", 0..2)).unwrap();
    let rows = all_rows(&pool);
    assert_eq!(rows.iter().map(|row| (row.key, row.run)).collect::<Vec<_>>(), [(2, 0), (2, 1)]);
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
}

#[test]
fn dropping_a_pool_ends_its_threads() {
    let pool = pool(2);
    pool.submit(batch(1, &endless(), "basic", 0..1_000)).unwrap();
    assert_eq!(pool.collect(Duration::from_millis(100)), Ok(vec![]));
    let begun = Instant::now();
    drop(pool);
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
}

#[test]
fn nobody_waits_for_what_does_not_come() {
    let pool = pool(1);
    let begun = Instant::now();
    assert_eq!(pool.collect(MINUTE), Ok(vec![]));
    pool.submit(batch(1, &scenario(&[]), "basic", 5..5)).unwrap();
    assert_eq!((pool.pending(), pool.collect(MINUTE)), (0, Ok(vec![])));
    assert!(begun.elapsed() < MINUTE);
}

#[test]
fn what_cannot_be_run_is_refused_when_it_is_submitted() {
    let pool = pool(1);
    let refusal = pool.submit(batch(1, &scenario(&[]), "ebns", 0..1)).unwrap_err().to_string();
    assert!(refusal.contains("found \"ebns\"") && refusal.contains("did you mean \"ebsn\"?"), "{refusal}");
    assert_eq!(pool.pending(), 0);
}

#[test]
fn a_stopped_run_says_so() {
    let mut asked = 0;
    let keep_going = || {
        asked += 1;
        asked < 3
    };
    let error = endless().run_while("basic", 1, 0, Observe::default(), keep_going).unwrap_err();
    assert_eq!((error.to_string().as_str(), asked), ("the run was stopped before its end", 3));
}

/// Names and values are those of the JSON documents.
#[test]
fn values_are_named_as_in_json() {
    let run = scenario(&["limit=20 s"]).run("basic", 1, 0, Observe::default()).unwrap();
    let json = serde_json::to_value(&run.metrics).unwrap();
    let named: serde_json::Map<_, _> = Metrics::names()
        .zip(run.metrics.values())
        .map(|(name, value)| {
            let value = match value {
                Value::Real(value) => serde_json::json!(value),
                Value::Count(count) => serde_json::json!(count),
                Value::Truth(truth) => serde_json::json!(truth),
            };
            (name.to_owned(), value)
        })
        .collect();
    assert_eq!(serde_json::Value::Object(named), json);
}
