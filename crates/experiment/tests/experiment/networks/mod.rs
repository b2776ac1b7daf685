//! Networks: topologies and routes, several connections, other traffic, outages, warm-ups.

mod connections;
mod last_hops;
mod schemes;
mod topologies;
mod traffic;
mod warm_up;

use lasthop_experiment::{ConnectionRun, Events, Experiment, Observe, Run, TrafficMetrics, Value};
use lasthop_scenario::Scenario;

pub(crate) const EVERYTHING: Observe<'_> =
    Observe { trace: true, series: true, delays: false, pcap: None, qlog: false };

pub(crate) fn read(text: &str, overrides: &[&str]) -> Scenario {
    Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn run(scenario: &Scenario, scheme: &str) -> Run {
    scenario.run(scheme, 1, 0, EVERYTHING).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn connection<'a>(run: &'a Run, name: &str) -> &'a ConnectionRun {
    run.connections.iter().find(|each| each.name == name).unwrap_or_else(|| panic!("there is no {name}"))
}

pub(crate) fn traffic<'a>(run: &'a Run, name: &str) -> &'a TrafficMetrics {
    &run.traffic.iter().find(|each| each.0 == name).unwrap_or_else(|| panic!("there is no {name}")).1
}

pub(crate) fn events(run: &ConnectionRun) -> &Events {
    run.parts[0].events.as_ref().expect("everything was recorded")
}

/// Times of the events of a kind.
pub(crate) fn times<'a>(events: &'a Events, kind: &'a str) -> impl Iterator<Item = f64> + 'a {
    let of_kind = events.event.iter().zip(&events.time_s).filter(move |(event, _)| **event == kind);
    of_kind.map(|(_, &time)| time)
}

pub(crate) fn counts(values: impl Iterator<Item = Value>) -> Vec<u64> {
    let count = |value| match value {
        Value::Count(count) => Some(count),
        Value::Real(_) | Value::Truth(_) => None,
    };
    values.filter_map(count).collect()
}

/// All results of a run, as text because NaN differs from itself.
pub(crate) fn all_of(result: &impl std::fmt::Debug) -> String {
    format!("{result:?}")
}

/// The run without the names of nodes and links, which depend on the topology.
pub(crate) fn unnamed(run: &Run) -> Run {
    let mut run = run.clone();
    for part in run.connections.iter_mut().flat_map(|each| &mut each.parts) {
        (part.from, part.to) = Default::default();
    }
    run.agents.iter_mut().for_each(|agent| agent.name.clear());
    run
}

#[track_caller]
pub(crate) fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "found {found}, expected {expected}");
}

/// Mean and standard error.
pub(crate) fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / (n - 1.0) / n).sqrt())
}
