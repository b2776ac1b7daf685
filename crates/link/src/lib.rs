//! What links are made of, without an engine: the parameters of scenario files, and the state machines that they
//! describe.
//!
//! ```text
//! queue ──> pace (fixed, or varying over time) ──> coding on the air      a link
//! dispatch, wlan, wifi                                                    a medium that several links share
//! graph, paths                                                            a network of links
//! ```
//!
//! The simulator makes components of them. Scenarios refer to their parameters and know no simulator.

mod coding;
pub mod dispatch;
pub mod graph;
pub mod pace;
mod paths;
pub mod queue;
pub mod varying;
pub mod wifi;
pub mod wlan;

pub use coding::{Expansion, Exposed};
pub use dispatch::Dispatch;
pub use paths::{FlowPath, Join, ShortestPaths};
pub use queue::QueueLimit;
