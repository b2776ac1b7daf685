//! Scenario files, single runs and their results.
//!
//! A [`Scenario`] is read from TOML. [`Scenario::run`] is a pure function of the scenario, a scheme name, a
//! seed and a run number; [`report`] defines the JSON format of results. [`Scenario::points`] expands a
//! [`Sweep`] into scenarios.
//!
//! ```text
//! TOML ──file──> schema ──build──> components ──run──> measure ──> metrics, series, traces, JSON
//! ```

mod build;
mod emulation;
mod file;
mod measure;
mod run;
mod schema;

pub use lasthop_base::{Bytes, Duration, Time};
pub use lasthop_proto::application::Wait;
pub use lasthop_proto::scheme::{ExternalSchemes, Scheme, SchemeFailure, Schemes};
pub use lasthop_proto::tcp::Profile;
pub use lasthop_sim::Ended;

pub use build::Fault;
pub use emulation::{Carried, Emulation, EmulationCounters, Entering, LinkCounters, Side, SplitSite};
pub use file::{Preset, ScenarioError};
pub use measure::{
    ActivityMetrics, ApplicationMetrics, ApplicationRun, Better, ChannelBursts, ConnectionMetrics, Delays,
    Events, LinkAsked, MetricName, MetricNames, MetricPlace, Metrics, Misnamed, NetworkMetrics, PageMetrics,
    PartKind, SchemeCounter, Series, TrafficMetrics, UnknownMetric, Value, VideoMetrics, Way, report,
};
pub use run::{AgentRun, ConnectionRun, Observe, PartRun, Run, RunError, RunSummary, Setup, SharedSetup};
pub use schema::{
    Application, BaseStations, Cell, ConnectionOverride, Dumbbell, GraphTopology, Host, LinkOverride,
    LinkProtection, MobileHosts, Mobility, Move, Moves, Path, Periodic, Point, Radio, RadioPower, Random,
    Scenario, Shared, Stations, Strongest, Sweep, Topology, Traffic, Transfer, Wired, Wireless,
};
