//! Runs of scenarios, and what they measure.
//!
//! [`Experiment`] runs a scenario: once, or prepared as a [`Setup`] for many runs. A run is a pure function of the
//! scenario, a scheme name, a seed and a run number; [`report`] defines the JSON format of results.
//!
//! ```text
//! Scenario ──assemble──> Layout ──with random streams──> World ──run──> Run ──report──> JSON
//!                        (all runs)                      (one run)  └─measure─┘
//! ```

pub mod assemble;
pub mod measure;
mod run;

pub use lasthop_proto::Wait;
pub use lasthop_sim::Ended;

pub use measure::{
    ActivityMetrics, ApplicationMetrics, ApplicationRun, Better, ConnectionMetrics, DEFINITIONS, Definition,
    Delays, Events, MetricName, MetricNames, MetricPlace, Metrics, Misnamed, NetworkMetrics, PageMetrics,
    PartKind, SchemeCounter, Series, TrafficMetrics, Unit, UnknownMetric, Value, VideoMetrics, Way,
};
pub use run::{
    AgentRun, ConnectionRun, Experiment, KeepGoing, Observe, PartRun, Run, RunError, RunSummary, Setup,
    SharedSetup, report,
};
