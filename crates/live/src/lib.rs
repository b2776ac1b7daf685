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
//! A [`Bump`](bump::Bump) has the agents of real flows before a real radio, without a scenario.
//!
//! A [`Calendar`] carries the frames of two Linux kernels in virtual time through the same network.
//!
//! A [`Driver`] connects an [`Endpoint`](lasthop_endpoint::Endpoint) to an interface, so that Lasthop's TCP talks to
//! real hosts. Linux only, but for the [`Emulation`] itself.

#[cfg(target_os = "linux")]
pub mod bump;
#[cfg(target_os = "linux")]
mod burst;
#[cfg(target_os = "linux")]
mod calendar;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
mod connections;
#[cfg(target_os = "linux")]
mod driver;
mod emulation;
#[cfg(target_os = "linux")]
mod emulator;
#[cfg(target_os = "linux")]
mod emulator_core;
#[cfg(target_os = "linux")]
mod frames;
#[cfg(target_os = "linux")]
mod interface;
#[cfg(target_os = "linux")]
mod log;
#[cfg(target_os = "linux")]
mod moderation;
#[cfg(target_os = "linux")]
mod recorder;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod segments;
#[cfg(target_os = "linux")]
mod split;

#[cfg(target_os = "linux")]
pub use calendar::{Calendar, Guests, Outcome};
#[cfg(target_os = "linux")]
pub use driver::{Driver, Link, now};
pub use emulation::{Carried, Emulation, EmulationCounters, Entering, LinkCounters, Side, SplitSite};
#[cfg(target_os = "linux")]
pub use emulator::Emulator;
#[cfg(target_os = "linux")]
pub use emulator_core::Settings;
#[cfg(target_os = "linux")]
pub use interface::{Interface, drop_privileges};
#[cfg(target_os = "linux")]
pub use recorder::{ConnectionReport, ConnectionTrace, LatenessRecord};
#[cfg(target_os = "linux")]
pub use report::{Lateness, Report, SideReport, Unforwarded};
