//! Scenarios in real time: an [`Emulator`] carries the frames of two interfaces through the network of a scenario.
//!
//! ```text
//! interface ──> wire: parse ──> Emulation: the simulator's links, by a real clock ──> interface
//!          bytes             handle                                            bytes
//! ```
//!
//! One thread reads frames, carries out what the links have due, and writes what leaves them. How late each packet left
//! is measured. Linux only.

#![cfg(target_os = "linux")]

mod capture;
mod clock;
mod emulator;
mod frames;
mod interface;
mod lateness;
mod report;

pub use emulator::{Emulator, Settings};
pub use interface::{Interface, drop_privileges};
pub use report::{Lateness, Report, SideReport, Unforwarded};
