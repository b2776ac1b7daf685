//! The results of a run, and why it failed.

use std::fmt;
use std::io;
use std::path::PathBuf;

use lasthop_proto::scheme::SchemeFailure;
use lasthop_scenario::ScenarioError;
use lasthop_sim::Ended;

use crate::measure::{
    AgentCounters, ApplicationRun, ConnectionMetrics, Delays, Events, MetricName, MetricNames, MetricPlace,
    Metrics, SchemeCounter, Series, TrafficMetrics, UnknownMetric, Value, Values,
};

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The sender, if the scenario names one.
    pub sender: Option<String>,
    /// The scheme that was run.
    pub scheme: String,
    /// The seed of the study.
    pub seed: u64,
    /// The number of the run in the study.
    pub run: u64,
    /// Why it ended.
    pub ended: Ended,
    /// Metrics of the run, over all connections together.
    pub metrics: Metrics,
    /// The connections, in the order of the scenario.
    pub connections: Vec<ConnectionRun>,
    /// Traffic sources by name, in the order of the scenario.
    pub traffic: Vec<(String, TrafficMetrics)>,
    /// Applications by name, in the order of the scenario.
    pub applications: Vec<(String, ApplicationRun)>,
    /// Counters of the schemes, each of all agents together.
    pub counters: Vec<SchemeCounter>,
    /// The libraries of other stacks than TCP that the connections use, with their versions.
    pub stacks: Vec<&'static str>,
    /// Why schemes had no effect, each with its reason: those whose reactions changed nothing.
    pub without_effect: Vec<(&'static str, &'static str)>,
    /// The agents of the schemes. Those that report nothing are omitted.
    pub agents: Vec<AgentRun>,
    /// Delays of packets, if requested.
    pub delays: Option<Delays>,
    /// The qlogs of connections and applications over QUIC by name, if requested: JSON text sequences as their stacks write them.
    pub qlogs: Vec<(String, String)>,
    /// Number of wake-ups, packets and signals handled: the work of the run.
    pub handled: u64,
}

/// The result of one connection.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionRun {
    /// Its name.
    pub name: String,
    /// Its metrics.
    pub metrics: ConnectionMetrics,
    /// Its parts in path order: one, or several if base stations split it.
    pub parts: Vec<PartRun>,
}

/// The result of one agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRun {
    /// The name of its link or its cell's access point. If there are several agents at a link, it is preceded by the
    /// scheme, and followed by the mobile host if the agent is there.
    pub name: String,
    /// Its counters: totals from the end of the warm-up on, levels at the end of the run, peaks of the whole run.
    pub counters: Vec<(&'static str, u64)>,
    /// Its time series, if requested; empty if it shows nothing.
    pub series: Option<Series>,
}

/// The recordings of one part of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct PartRun {
    /// The node at which the part begins.
    pub from: String,
    /// The node at which the part ends.
    pub to: String,
    /// Packet trace, if requested.
    pub events: Option<Events>,
    /// Time series of the sender, if requested.
    pub series: Option<Series>,
}

/// Why a run failed.
#[derive(Debug)]
pub enum RunError {
    /// The scenario cannot be run with this scheme, or at all.
    Scenario(ScenarioError),
    /// The pcapng file could not be written.
    Capture(PathBuf, io::Error),
    /// An external scheme has failed.
    Scheme(SchemeFailure),
    /// The run was interrupted.
    Stopped,
}

impl Run {
    /// Number of rows in its traces and series: a measure of the memory that it takes.
    pub fn recorded_rows(&self) -> usize {
        let rows = |series: &Series| series.time_s.len();
        let of_part = |part: &PartRun| {
            part.events.as_ref().map_or(0, |events| events.time_s.len())
                + part.series.as_ref().map_or(0, rows)
        };
        let parts = self.connections.iter().flat_map(|each| &each.parts).map(of_part);
        let of_agents = self.agents.iter().filter_map(|agent| agent.series.as_ref()).map(rows);
        let of_delays = self.delays.as_ref().map_or(0, |delays| delays.time_s.len());
        parts.chain(of_agents).sum::<usize>() + of_delays
    }

    /// The value of a metric.
    ///
    /// # Errors
    /// If the run does not have it.
    pub fn value(&self, name: &MetricName) -> Result<Value, UnknownMetric> {
        let mut names = MetricNames::new(self.counters.iter());
        self.connections.iter().for_each(|each| names.connection(&each.name));
        self.traffic.iter().for_each(|(name, _)| names.traffic(name));
        for (name, each) in &self.applications {
            names.application(name, each.activity.named().iter().map(|(metric, _)| *metric));
        }
        for agent in &self.agents {
            names.agent(&agent.name, agent.counters.iter().map(|(counter, _)| *counter).collect());
        }
        names.find(name).map(|place| self.at(place))
    }
}

impl Values for Run {
    fn whole(&self) -> &Metrics {
        &self.metrics
    }

    fn counter(&self, index: usize) -> u64 {
        self.counters[index].value
    }

    fn connection(&self, index: usize) -> &ConnectionMetrics {
        &self.connections[index].metrics
    }

    fn traffic(&self, index: usize) -> &TrafficMetrics {
        &self.traffic[index].1
    }

    fn application(&self, index: usize) -> &ApplicationRun {
        &self.applications[index].1
    }

    fn agent(&self, index: usize, counter: usize) -> u64 {
        self.agents[index].counters[counter].1
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Scenario(error) => error.fmt(f),
            RunError::Capture(path, error) => write!(f, "cannot write {}: {error}", path.display()),
            RunError::Scheme(failure) => failure.fmt(f),
            RunError::Stopped => f.write_str("the run was stopped before its end"),
        }
    }
}

impl std::error::Error for RunError {}

/// Metrics of a run, why it ended, and its work.
#[derive(Clone, Debug)]
pub struct RunSummary {
    /// Why it ended.
    pub ended: Ended,
    /// All connections together, and the network.
    pub metrics: Metrics,
    /// Counters of the schemes, each of all agents together.
    pub counters: Vec<SchemeCounter>,
    pub(super) agents: Vec<AgentCounters>,
    pub(super) connections: Vec<ConnectionMetrics>,
    pub(super) traffic: Vec<TrafficMetrics>,
    pub(super) applications: Vec<ApplicationRun>,
    pub(super) handled: u64,
}

impl RunSummary {
    /// The value of a metric, by its place among the [names](super::Setup::metric_names) of the set-up that was run.
    ///
    /// # Panics
    /// If the place is one of another set-up.
    pub fn value(&self, place: MetricPlace) -> Value {
        self.at(place)
    }
}

impl Values for RunSummary {
    fn whole(&self) -> &Metrics {
        &self.metrics
    }

    fn counter(&self, index: usize) -> u64 {
        self.counters[index].value
    }

    fn connection(&self, index: usize) -> &ConnectionMetrics {
        &self.connections[index]
    }

    fn traffic(&self, index: usize) -> &TrafficMetrics {
        &self.traffic[index]
    }

    fn application(&self, index: usize) -> &ApplicationRun {
        &self.applications[index]
    }

    fn agent(&self, index: usize, counter: usize) -> u64 {
        self.agents[index].value(counter)
    }
}
