//! Basic types of Lasthop: [`Time`] and [`Duration`] in integer nanoseconds, sizes in [`Bytes`], [`BitRate`]s
//! in bits per second, probabilities, [`Decibels`], and named [random streams](rng). The crate is `no_std`:
//! no clock, no I/O, no global state.
//!
//! ```text
//! "30 ms" ──parse──> Duration ──┐
//! "2 Mbps" ─parse──> BitRate ───┼──> exact integer arithmetic ──> Time
//! (seed, run, name) ──> Stream ─┘
//! ```

#![no_std]

extern crate alloc;

mod by_unit;
mod file;
mod hash;
mod histogram;
mod invalid;
pub mod number;
mod parse;
pub mod rng;
pub mod schema;
mod steps;
mod time;
mod units;

#[doc(hidden)]
pub use schemars;

pub use by_unit::parse_quantity;
pub use file::{Columns, Contents, DataFile, LineError, Unread, shortened};
pub use hash::{Fnv, FnvBuilder};
pub use histogram::Histogram;
pub use invalid::Invalid;
pub use number::{Amount, FromNumber, Number, UnitError};
pub use rng::{Stream, Streams};
pub use steps::{Steps, StepsReader};
pub use time::{Duration, Time};
pub use units::{BitRate, Bytes, Decibels, Power, Probability};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
