//! Measurement: metrics, traces and time series of a run.
//!
//! ```text
//! engine ─────> counters, agents ─> evaluate ──> metrics
//!    └─────taps──────> trace (packets), series (a sender's state)
//! ```

mod agents;
mod applications;
mod counters;
mod delays;
mod energy;
mod evaluate;
mod metric_name;
mod metrics;
mod series;
mod trace;

pub use agents::{AgentCounters, SchemeCounter, by_scheme};
pub use applications::ApplicationRun;
pub use delays::{Delays, Way};
pub use metric_name::{MetricName, MetricNames, MetricPlace, Misnamed, PartKind, UnknownMetric};
pub use metrics::{
    ActivityMetrics, ApplicationMetrics, Better, ConnectionMetrics, DEFINITIONS, Definition, Metrics,
    NetworkMetrics, PageMetrics, TrafficMetrics, Unit, Value, VideoMetrics,
};
pub use series::Series;
pub use trace::Events;

pub(crate) use applications::ApplicationCounters;
pub(crate) use counters::{BssCounters, Counters, DropTap, EndpointCounters, RelayCounters, TrafficCounters};
pub(crate) use delays::DelayRecorder;
pub(crate) use energy::RadioUse;
pub(crate) use evaluate::Measured;
pub(crate) use metric_name::Values;
pub(crate) use series::Recorder;
pub(crate) use trace::Tracer;
