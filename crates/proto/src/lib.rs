//! Protocols of hosts, base stations and link ends, as pure state machines.
//!
//! A [`Component`] handles packets, deadlines and signals of the links that it watches, and emits effects
//! into [`Out`]. It has no access to clocks, sockets, threads or event queues; the crate is `no_std`. The
//! simulator, a live gateway and tests drive the same code.
//!
//! ```text
//!                    ┌────────────────────┐
//! packet, at a port ─┤     Component      ├─> packets out of ports
//! due deadline ──────┤ tcp, split, scheme │─> drops, with their reasons
//! signal of a link ──┤ traffic, client ...├─> signals to watchers
//!                    └────────────────────┘   next wake-up
//! ```

#![no_std]

extern crate alloc;

pub mod application;
pub mod arq;
mod component;
mod counters;
pub mod fec;
pub mod frag;
mod packet;
pub mod quic;
mod report;
pub mod scheme;
pub mod split;
pub mod stack;
pub mod tcp;
pub mod traffic;

pub use component::{
    Component, ComponentId, Effect, Encoded, FrameEvent, FrameSizes, LinkEvent, LinkOutcome, Out, Outcomes,
    Port, Probe, Quack, Reach, Request, Signal, Tally,
};
pub use packet::{
    Body, Coded, Datagram, DropReason, Dscp, Ecn, FlowId, Handle, HostId, Notice, NoticeCode, Packet, Symbol,
};
pub use report::{EndCounters, EndReport, Experience, Usage, VideoStats, Wait};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
