//! Construction of the components of a run from a scenario.
//!
//! ```text
//! Scenario ──resolve─> Network ──with a scheme──> Layout ──with random streams──> World
//!                 └──> faults                     (all runs)                      (one run)
//! ```

mod movement;
mod network;
mod placement;
mod resolve;
mod split_segments;
mod validate;
mod world;

pub use validate::Fault;

pub(crate) use network::{Network, NetworkLink, Workload};
pub(crate) use resolve::datagrams;
pub(crate) use split_segments::{ConnectionPart, PartEnd};
pub(crate) use validate::StatedTcp;
pub(crate) use world::{ConnectionComponents, Layout, World, bad_periods, link_timing};
