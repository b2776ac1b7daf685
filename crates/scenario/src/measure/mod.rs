//! Measurement: metrics, traces and time series of a run.
//!
//! ```text
//! engine ─────> counters, agents ─> evaluate ──> metrics ──> report (JSON)
//!    └─────taps──────> trace (packets), series (a sender's state)
//! ```
//!
//! [`packet_loss`] is not measured: it computes the closed form of a link's channel.

mod agents;
mod applications;
mod channel_bursts;
mod counters;
mod delays;
mod energy;
mod evaluate;
mod link_timing;
mod metric_name;
mod metrics;
mod packet_bound;
mod packet_loss;
pub mod report;
mod series;
mod trace;

pub use agents::SchemeCounter;
pub use applications::ApplicationRun;
pub use channel_bursts::ChannelBursts;
pub use delays::{Delays, Way};
pub use link_timing::LinkAsked;
pub use metric_name::{MetricName, MetricNames, MetricPlace, Misnamed, PartKind, UnknownMetric};
pub use metrics::{
    ActivityMetrics, ApplicationMetrics, Better, ConnectionMetrics, Metrics, NetworkMetrics, PageMetrics,
    TrafficMetrics, Value, VideoMetrics,
};
pub use series::Series;
pub use trace::Events;

pub(crate) use agents::{AgentCounters, by_scheme};
pub(crate) use applications::ApplicationCounters;
pub(crate) use counters::{BssCounters, Counters, DropTap, EndpointCounters, RelayCounters, TrafficCounters};
pub(crate) use delays::DelayRecorder;
pub(crate) use energy::RadioUse;
pub(crate) use evaluate::Measured;
pub(crate) use metric_name::Values;
pub(crate) use series::Recorder;
pub(crate) use trace::Tracer;
