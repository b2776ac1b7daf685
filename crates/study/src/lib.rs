//! Scenario files, runs and their results.
//!
//! A [`Scenario`] is read from TOML; [`Scenario::run`] is a pure function of the scenario, a scheme's
//! name, a seed and a run number; [`report`] says how results are written. [`Scenario::points`] gives
//! the scenarios that a [`Sweep`] makes, and a [`Pool`] carries out many runs on many threads.

mod cell;
mod document;
mod error;
mod faults;
mod flows;
mod grid;
mod load;
mod metrics;
mod network;
mod packet_loss;
mod parts;
mod pool;
mod range;
mod rephrase;
pub mod report;
mod run;
mod scenario;
mod series;
mod sweep;
mod topology;
mod trace;
mod words;
mod world;

pub use lasthop_base::Bytes;
pub use lasthop_proto::scheme::{Scheme, Schemes};
pub use lasthop_sim::Ended;

pub use cell::Cell;
pub use error::ScenarioError;
pub use faults::Fault;
pub use flows::{Application, Connection, Traffic, Transfer};
pub use metrics::{ApplicationMetrics, ConnectionMetrics, Metrics, NetworkMetrics, TrafficMetrics, Value};
pub use pool::{Batch, Failure, Pool, Row};
pub use run::{ConnectionRun, Observe, PartRun, Run, RunError};
pub use scenario::{Protect, Radio, Scenario, Wired};
pub use series::Series;
pub use sweep::{Point, Sweep};
pub use topology::{Dumbbell, Graph, Link, Path, Stations, Topology, Wireless};
pub use trace::Events;
