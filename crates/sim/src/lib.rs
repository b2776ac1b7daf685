//! The simulator: an [`Engine`] that drives components, links between components, and taps that observe them.
//! A run is a pure function of its components and their random streams.
//!
//! ```text
//! graph, paths ──network──> Builder ──> Engine: the earliest wake-up ──> component ──> effects ──> wires
//!                                         └──> Tap: counters, traces, captures
//! ```

mod contents;
mod engine;
mod link;
mod mover;
pub mod network;
mod node;
mod signal_meter;
mod tap;
mod wakeups;
mod watchers;
pub mod wifi;
pub mod wlan;

pub use contents::{Contents, Copies, Custody};
pub use engine::{Builder, Ended, Engine, look_ahead};
pub use lasthop_link::{Dispatch, Expansion, Exposed, QueueLimit};
pub use link::{Fec, Link, LinkStats, RadioConfig, SharedLink, SharedRadio};
pub use mover::Mover;
pub use node::Node;
pub use signal_meter::SignalMeter;
pub use tap::{NoTap, Tap, Wire, WireId};
pub use wakeups::Wakeups;
