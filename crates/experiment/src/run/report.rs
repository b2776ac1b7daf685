//! JSON format of results: the struct `Report`, whose doc comments define the keys. Keys may be added, but never change
//! their meaning. [`json_schema`] describes it to programs and to the reference.

use std::fmt;

use indexmap::IndexMap;
use lasthop_scenario::Scenario;
use lasthop_sim::Ended;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;

use super::results::Run;
use crate::measure::{ApplicationRun, ConnectionMetrics, Metrics, SchemeCounter, TrafficMetrics};

/// The version of Lasthop.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Error for runs that cannot share a report: none, or with different seeds or run numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unrelated;

impl fmt::Display for Unrelated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected at least one run, and all with one seed and run number")
    }
}

impl std::error::Error for Unrelated {}

/// The results of runs with one seed and run number. The same scenario, seed and run number give the same bytes, on any
/// machine.
#[derive(Serialize, JsonSchema)]
struct Report<'a> {
    /// The version that made the results.
    lasthop: &'static str,
    /// The scenario.
    scenario: Provenance<'a>,
    /// The seed.
    seed: u64,
    /// The run's number.
    run: u64,
    /// A result for each scheme, in the scenario's order; with several senders, for each scheme of each sender.
    results: Vec<ResultEntry<'a>>,
}

/// The scenario of results.
#[derive(Serialize, JsonSchema)]
struct Provenance<'a> {
    /// The scenario's title.
    title: &'a str,
    /// The scenario file, or the name of the worked scenario.
    file: &'a str,
    /// The hash of the scenario with its overrides. Formatting, title and the list of schemes do not change it. With
    /// several `--sender` it is the hash of the scenario without them.
    hash: String,
}

/// The result of one scheme.
#[derive(Serialize, JsonSchema)]
struct ResultEntry<'a> {
    /// The sender: a profile or a name of `[senders]`. Absent if the scenario names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<&'a str>,
    /// The libraries of other stacks than TCP that the connections use, with their versions, such as `"quinn-proto 0.11.19"`: others
    /// may give other results. Absent if all use TCP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stacks: Vec<&'static str>,
    /// The scheme.
    scheme: &'a str,
    /// Why the run ended: `"finished"`, every finite connection has all data acknowledged, or was aborted or reset, and
    /// every finite application has all its responses, or has a connection that was aborted or reset; `"time-limit"`,
    /// the scenario's `limit` came first; or `"idle"`, no component had a deadline left.
    ended: &'static str,
    /// Every metric of all connections together, then the counters of the schemes of all results, such as
    /// `ebsn.notices_sent`, null in results without that scheme.
    metrics: AllMetrics<'a>,
    /// The metrics of each connection by name, in the scenario's order.
    connections: IndexMap<&'a str, &'a ConnectionMetrics>,
    /// The metrics of each source of other traffic by name, in the scenario's order.
    traffic: IndexMap<&'a str, &'a TrafficMetrics>,
    /// The metrics of each application by name, in the scenario's order.
    applications: IndexMap<&'a str, &'a ApplicationRun>,
    /// Why schemes had no effect, by scheme: those that act by reactions of TCP, whose reactions changed nothing.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    without_effect: IndexMap<&'static str, &'static str>,
    /// The counters of each of the schemes' agents that has some, by name.
    agents: IndexMap<&'a str, IndexMap<&'static str, u64>>,
}

/// The metrics of a run with the counters of its schemes. A metric that does not apply to a run is null.
#[derive(Serialize, JsonSchema)]
pub struct AllMetrics<'a> {
    #[serde(flatten)]
    metrics: &'a Metrics,
    #[serde(flatten)]
    counters: IndexMap<String, Option<u64>>,
}

/// The JSON Schema of results, of draft 7, as a document of many lines.
pub fn json_schema() -> String {
    let schema =
        SchemaSettings::draft07().for_serialize().into_generator().into_root_schema_for::<Report<'_>>();
    serde_json::to_string_pretty(&schema).expect("a schema is a plain document")
}

impl Run {
    /// All its metrics, with null for `further` counters that its schemes lack.
    pub fn all_metrics<'a>(&'a self, further: &[SchemeCounter]) -> AllMetrics<'a> {
        let mut counters: IndexMap<String, Option<u64>> =
            further.iter().map(|each| (each.to_string(), None)).collect();
        counters.extend(self.counters.iter().map(|each| (each.to_string(), Some(each.value))));
        AllMetrics { metrics: &self.metrics, counters }
    }

    /// The counters of each agent that has some, by its name.
    pub fn agent_counters(&self) -> IndexMap<&str, IndexMap<&'static str, u64>> {
        let agents = self.agents.iter().filter(|agent| !agent.counters.is_empty());
        agents.map(|agent| (agent.name.as_str(), agent.counters.iter().copied().collect())).collect()
    }
}

/// The JSON value for the end of a run: `finished`, `time-limit` or `idle`.
pub fn ended_key(ended: Ended) -> &'static str {
    match ended {
        Ended::Finished => "finished",
        Ended::TimeLimit => "time-limit",
        Ended::Idle => "idle",
    }
}

/// Runs of a scenario as one JSON document in the format of `Report`.
///
/// # Errors
/// If `runs` is empty, or their seeds or run numbers differ.
pub fn to_json(scenario: &Scenario, runs: &[&Run]) -> Result<String, Unrelated> {
    let &Run { seed, run, .. } = *runs.first().ok_or(Unrelated)?;
    if runs.iter().any(|other| (other.seed, other.run) != (seed, run)) {
        return Err(Unrelated);
    }
    let counters: Vec<_> = runs.iter().flat_map(|run| run.counters.iter().copied()).collect();
    let results = runs.iter().map(|run| ResultEntry {
        sender: run.sender.as_deref(),
        stacks: run.stacks.clone(),
        scheme: &run.scheme,
        ended: ended_key(run.ended),
        metrics: run.all_metrics(&counters),
        connections: run.connections.iter().map(|each| (each.name.as_str(), &each.metrics)).collect(),
        traffic: run.traffic.iter().map(|(name, metrics)| (name.as_str(), metrics)).collect(),
        applications: run.applications.iter().map(|(name, each)| (name.as_str(), each)).collect(),
        without_effect: run.without_effect.iter().copied().collect(),
        agents: run.agent_counters(),
    });
    let scenario = Provenance { title: &scenario.title, file: &scenario.file, hash: scenario.hash() };
    let report = Report { lasthop: VERSION, scenario, seed, run, results: results.collect() };
    Ok(serde_json::to_string_pretty(&report).expect("a report is plain data"))
}
