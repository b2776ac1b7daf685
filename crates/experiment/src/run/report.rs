//! JSON format of results. Keys may be added, but never change their meaning.
//!
//! ```json
//! {
//!   "lasthop": "0.1.0",
//!   "scenario": {"title": "...", "file": "...", "hash": "..."},
//!   "seed": 1,
//!   "run": 0,
//!   "results": [
//!     {
//!       "scheme": "ebsn",
//!       "ended": "finished",
//!       "metrics": {"throughput_bps": 9000.0, "...": 0},
//!       "connections": {"transfer": {"throughput_bps": 9000.0, "...": 0}},
//!       "traffic": {},
//!       "applications": {},
//!       "agents": {"base-mobile": {"notices_sent": 0}}
//!     }
//!   ]
//! }
//! ```
//!
//! A result also has the key `sender` if its scenario names one. `hash` is [`Scenario::hash`], computed
//! without the choice of sender if several were run. `ended` is `"finished"`, `"time-limit"` or `"idle"`. The
//! metrics are those of [`Metrics`], in its order, followed by name by those of each connection
//! ([`ConnectionMetrics`]), traffic source ([`TrafficMetrics`]) and application ([`ApplicationRun`]), and by the
//! counters of each agent. The metrics are followed by the [counters](SchemeCounter) of the schemes of all
//! results, such as `ebsn.notices_sent`. A metric that does not apply to a run is null.

use std::fmt;

use indexmap::IndexMap;
use lasthop_scenario::Scenario;
use lasthop_sim::Ended;
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

#[derive(Serialize)]
struct Report<'a> {
    lasthop: &'static str,
    scenario: Provenance<'a>,
    seed: u64,
    run: u64,
    results: Vec<ResultEntry<'a>>,
}

#[derive(Serialize)]
struct Provenance<'a> {
    title: &'a str,
    file: &'a str,
    hash: String,
}

#[derive(Serialize)]
struct ResultEntry<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<&'a str>,
    scheme: &'a str,
    ended: &'static str,
    metrics: AllMetrics<'a>,
    connections: IndexMap<&'a str, &'a ConnectionMetrics>,
    traffic: IndexMap<&'a str, &'a TrafficMetrics>,
    applications: IndexMap<&'a str, &'a ApplicationRun>,
    agents: IndexMap<&'a str, IndexMap<&'static str, u64>>,
}

/// The metrics of a run with the counters of its schemes.
#[derive(Serialize)]
pub struct AllMetrics<'a> {
    #[serde(flatten)]
    metrics: &'a Metrics,
    #[serde(flatten)]
    counters: IndexMap<String, Option<u64>>,
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

/// Runs of a scenario as one JSON document in the [documented format](self).
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
        scheme: &run.scheme,
        ended: ended_key(run.ended),
        metrics: run.all_metrics(&counters),
        connections: run.connections.iter().map(|each| (each.name.as_str(), &each.metrics)).collect(),
        traffic: run.traffic.iter().map(|(name, metrics)| (name.as_str(), metrics)).collect(),
        applications: run.applications.iter().map(|(name, each)| (name.as_str(), each)).collect(),
        agents: run.agent_counters(),
    });
    let scenario = Provenance { title: &scenario.title, file: &scenario.file, hash: scenario.hash() };
    let report = Report { lasthop: VERSION, scenario, seed, run, results: results.collect() };
    Ok(serde_json::to_string_pretty(&report).expect("a report is plain data"))
}
