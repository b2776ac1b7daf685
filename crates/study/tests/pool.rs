//! The thread pool.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lasthop_experiment::{Experiment, MetricName, Metrics, Observe, Value};
use lasthop_scenario::Scenario;
use lasthop_study::{Batch, Cells, Chunk, Column, Pool, Row};

const SCENARIO: &str = r#"title = "a test"
schemes = ["basic", "ebsn"]

[transfer]
size = "100 KB"

[tcp]
profile = "ebsn"

[wired]
rate = "56 kbps"
delay = "0 s"

[radio]
rate = "19.2 kbps"
expansion = 1.5
mtu = "128 B"

[radio.channel.two-state]
good = "10 s"
bad = "4 s"

[radio.arq.stop-and-wait]
retransmissions = "unlimited"
backoff.uniform = "100 ms"
"#;

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
    scenario(&["transfer.size=unlimited", "limit=100000 s", "radio.rate=1 Gbps", "wired.rate=1 Gbps"])
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
fn rows_equal_single_runs_for_any_number_of_threads() {
    let (long, short) = (scenario(&[]), scenario(&["transfer.size=5 KB"]));
    let batches = [(1, &long, "basic", 3..40), (2, &short, "ebsn", 0..500), (-3, &long, "ebsn", 0..1)];
    let mut expected = Vec::new();
    for (key, scenario, scheme, runs) in &batches {
        for run in runs.clone() {
            let lasthop_experiment::Run { ended, metrics, .. } =
                scenario.run(scheme, 7, run, Observe::default()).unwrap();
            expected.push(Row { key: *key, run, ended, metrics, further: vec![] });
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

/// Connections over radio links and a BSS, background traffic and an application; schemes with agents, with
/// reactions, and with split connections.
const NETWORK: &str = r#"
limit = "6 s"

[topology.graph]
wired = ["server-R1", "R1-R2", "R2-base1", "R1-R3", "R3-base2", "R1-ap"]
radio = ["base1-phone", "base2-laptop"]
cell = ["ap-desk", "ap-tablet"]

[transfer]
size = "100 KB"
from = "server"

[connection.first]
to = "phone"

[connection.second]
to = "laptop"
start = "1 s"

[connection.third]
to = "desk"

[traffic.cross]
from = "tablet"
to = "R2"
packet_size = "500 B"
law.poisson.rate = "400 kbps"

[application.web]
from = "desk"
to = "server"
kind = "http"
think.exponential = "1 s"

[wired]
rate = "1 Mbps"
delay = "30 ms"

[radio]
rate = "2 Mbps"
channel.iid.ber = 1e-5
arq.stop-and-wait.backoff.uniform = "10 ms"

[cell]
channel.frame-loss.loss = 0.1
drop.down = 0.02
"#;

#[test]
fn all_components_give_equal_rows_for_any_number_of_threads() {
    let network =
        Scenario::parse::<&str>(NETWORK, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let network = Arc::new(network);
    for scheme in ["ebsn", "lhack", "i-tcp", "metp", "vs-tcp"] {
        let row = |number| {
            let run = network.run(scheme, 7, number, Observe::default()).unwrap();
            Row { key: 5, run: number, ended: run.ended, metrics: run.metrics, further: vec![] }
        };
        let expected: Vec<Row> = (0..30).map(row).collect();
        assert!(expected[0].metrics != expected[1].metrics);
        for jobs in [1, 3] {
            let pool = pool(jobs);
            pool.submit(batch(5, &network, scheme, 0..30)).unwrap();
            assert!(all_rows(&pool) == expected, "{scheme} with {jobs} threads");
        }
    }
}

#[test]
fn cancelling_stops_an_endless_run_and_leaves_the_pool_usable() {
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
fn collect_returns_at_once_if_nothing_is_pending() {
    let pool = pool(1);
    let begun = Instant::now();
    assert_eq!(pool.collect(MINUTE), Ok(vec![]));
    pool.submit(batch(1, &scenario(&[]), "basic", 5..5)).unwrap();
    assert_eq!((pool.pending(), pool.collect(MINUTE)), (0, Ok(vec![])));
    assert!(begun.elapsed() < MINUTE);
}

#[test]
fn submit_rejects_batches_that_cannot_run() {
    let pool = pool(1);
    let refusal = pool.submit(batch(1, &scenario(&[]), "ebns", 0..1)).unwrap_err().to_string();
    assert!(refusal.contains("found \"ebns\"") && refusal.contains("did you mean \"ebsn\"?"), "{refusal}");
    assert_eq!(pool.pending(), 0);
}

#[test]
fn rows_are_packed_into_chunks_by_batch_and_number() {
    let short = scenario(&["transfer.size=5 KB"]);
    let pool = pool(1);
    pool.submit(batch(2, &short, "ebsn", 10..600)).unwrap();
    pool.submit(batch(-1, &short, "basic", 3..4)).unwrap();
    pool.submit(batch(2, &short, "ebsn", 700..701)).unwrap();
    let mut rows = all_rows(&pool);
    let sorted = rows.clone();
    rows.reverse();
    let chunks = Chunk::pack(&rows);
    let ranges: Vec<_> = chunks.iter().map(|chunk| (chunk.key, chunk.first, chunk.runs)).collect();
    assert_eq!(ranges, [(-1, 3, 1), (2, 10, 256), (2, 266, 256), (2, 522, 78), (2, 700, 1)]);
    for chunk in &chunks {
        let rows: Vec<&Row> = sorted
            .iter()
            .filter(|row| {
                row.key == chunk.key && (chunk.first..chunk.first + chunk.runs as u64).contains(&row.run)
            })
            .collect();
        for (index, cells) in chunk.metrics.iter().enumerate() {
            let values: Vec<Value> =
                rows.iter().map(|row| row.metrics.values().nth(index).unwrap()).collect();
            match cells {
                Cells::Same(value) => assert!(values.iter().all(|each| each == value)),
                Cells::Each(cells) => {
                    let expected: Vec<f64> = values.iter().map(plain).collect();
                    let found = match Cells::decode(cells, chunk.runs).unwrap() {
                        Column::Counts(counts) => counts.iter().map(|each| *each as f64).collect(),
                        Column::Reals(reals) => reals,
                    };
                    assert_eq!(found, expected);
                }
                Cells::SameWord(word) => panic!("{word} is not a metric"),
            }
        }
    }
}

fn plain(value: &Value) -> f64 {
    match *value {
        Value::Real(real) => real.unwrap(),
        Value::Count(count) => count as f64,
        Value::Truth(truth) => f64::from(truth),
    }
}

fn named(metrics: &[String]) -> Vec<MetricName> {
    metrics.iter().map(|name| name.parse().expect("it is quoted well")).collect()
}

/// Rows have the further metrics that a single run has, to the last bit.
#[test]
fn rows_have_any_metric_of_any_part() {
    let text = format!(
        "{SCENARIO}\n[topology.dumbbell]\npairs = 2\n\
         [traffic.\"a.voice\"]\nfrom = \"S1\"\nto = \"D1\"\npacket_size = \"100 B\"\nlaw.constant.rate = \"1 kbps\"\n\
         [application.\"a web\"]\nfrom = \"D2\"\nto = \"S2\"\nrequests = 2\n\
         request.constant = \"1 KB\"\nresponse.constant = \"1 KB\"\nthink.constant = \"1 s\""
    );
    let overrides = ["schemes=[\"ebsn\", \"basic\"]", "transfer.size=5 KB", "limit=30 s"];
    let scenario = Scenario::parse(&text, "test.toml", &overrides).unwrap_or_else(|error| panic!("{error}"));
    let scenario = Arc::new(scenario);
    let names = scenario.metric_names().expect("it is sound");
    let asked: Vec<String> = names.of_the_run().chain(names.of_parts()).collect();
    for name in [
        "connection.2.goodput",
        "traffic.\"a.voice\".lost_packets",
        "application.\"a web\".timeouts",
        "agent.right-D2.notices_sent",
    ] {
        assert!(asked.iter().any(|each| each == name), "{name} of {asked:?}");
    }
    let pool = Pool::with_metrics(NonZeroUsize::new(2), named(&asked));
    for (key, scheme) in (0..).zip(&scenario.schemes) {
        pool.submit(batch(key, &scenario, scheme, 0..5)).expect("it is sound");
    }
    for row in all_rows(&pool) {
        let run = scenario.run(&scenario.schemes[row.key as usize], 7, row.run, Observe::default()).unwrap();
        for (name, value) in named(&asked).iter().zip(row.further) {
            let single = run.value(name).unwrap_or(Value::Real(None));
            assert_eq!(format!("{value:?}"), format!("{single:?}"), "{name} of run {}", row.run);
        }
    }
}

/// Every row has the counters that the pool was asked for, null where the scheme has none.
#[test]
fn rows_have_the_counters_of_schemes() {
    let scenario = scenario(&["schemes=[\"ebsn\", \"basic\", \"snoop\"]", "transfer.size=5 KB"]);
    let counters = scenario.counters().expect("it is sound");
    assert!(counters.len() > 2 && counters[0] == "ebsn.notices_sent");
    let mut packed = Vec::new();
    for jobs in [1, 3] {
        let pool = Pool::with_metrics(NonZeroUsize::new(jobs), named(&counters));
        for (key, scheme) in (0..).zip(&scenario.schemes) {
            pool.submit(batch(key, &scenario, scheme, 0..20)).expect("it is sound");
        }
        let rows = all_rows(&pool);
        for row in &rows {
            let scheme = &scenario.schemes[row.key as usize];
            let run = scenario.run(scheme, 7, row.run, Observe::default()).unwrap();
            let value = |name: &String| {
                let own = run.counters.iter().find(|counter| counter.to_string() == *name);
                own.map_or(Value::Real(None), |counter| Value::Count(counter.value))
            };
            assert_eq!(row.further, counters.iter().map(value).collect::<Vec<_>>());
            assert!(!run.counters.is_empty() || scheme == "basic");
        }
        packed.push(Chunk::pack(&rows));
    }
    assert_eq!(packed[0], packed[1]);
    assert!(packed[0].iter().all(|chunk| chunk.metrics.len() == Metrics::names().count() + counters.len()));
    let notices = |chunk: &Chunk| chunk.metrics[Metrics::names().count()].clone();
    assert!(matches!(notices(&packed[0][0]), Cells::Each(_)));
    assert_eq!(notices(&packed[0][1]), Cells::Same(Value::Real(None)));
}
