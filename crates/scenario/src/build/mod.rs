//! Construction of the components of a run from a scenario.
//!
//! ```text
//! Scenario ──survey──> Network ──with a scheme──> Layout ──with random streams──> World
//!                 └──> faults                     (all runs)                      (one run)
//! ```

mod network;
mod split_segments;
mod survey;
mod validate;
mod world;

pub use validate::Fault;

pub(crate) use network::{Load, Network, NetworkLink};
pub(crate) use split_segments::ConnectionPart;
pub(crate) use world::{Flow, Layout, World, bad_periods};
