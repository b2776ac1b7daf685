//! Scenarios in real time: an [`Emulator`] carries the frames of two interfaces through the network of a scenario.
//!
//! ```text
//! interface ──> wire: parse ──> Emulation: the simulator's links and agents, by a real clock ──> interface
//!          bytes       handle, segment                     handle, changed segment    bytes, rewritten
//! ```
//!
//! One thread reads frames, handles the due events of the links, and writes the frames that leave them. It measures the
//! lateness of each packet.
//!
//! With a scheme that splits connections, the base stations in the network have our TCP towards both hosts.
//!
//! A [`Driver`] connects an [`Endpoint`](lasthop_endpoint::Endpoint) to an interface, so that Lasthop's TCP talks to
//! real hosts. Linux only.

#![cfg(target_os = "linux")]

mod burst;
mod capture;
mod clock;
mod connections;
mod driver;
mod emulator;
mod frames;
mod interface;
mod log;
mod moderation;
mod recorder;
mod report;
mod segments;
mod split;

pub use driver::{Driver, Link, now};
pub use emulator::{Emulator, Settings};
pub use interface::{Interface, drop_privileges};
pub use recorder::{ConnectionReport, ConnectionTrace, LatenessRecord};
pub use report::{Lateness, Report, SideReport, Unforwarded};
