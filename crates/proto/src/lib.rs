//! What a host, a base station and a link end do, as pure state machines.
//!
//! Everything that lives in time is a [`Component`]: it is told of a packet, of the instant that it
//! asked for, or of something that happened on a link it watches, and it answers by effects
//! collected in [`Out`]. Nothing here sees a clock, a socket, a thread or an event queue; the crate
//! is `no_std`, so the compiler holds it to that. The simulator, a live gateway and a test drive the
//! same code.
//!
//! ```text
//!                    ┌────────────────────┐
//! packet, at a port ─┤     Component      ├─> packets out of ports
//! wake-up asked for ─┤ tcp, split, scheme │─> drops, with their reasons
//! signal of a link ──┤ traffic, client ...├─> signals to watchers
//!                    └────────────────────┘   next wake-up
//! ```

#![no_std]

extern crate alloc;

pub mod application;
pub mod arq;
mod component;
pub mod fec;
pub mod frag;
mod packet;
pub mod scheme;
pub mod split;
pub mod tcp;
pub mod traffic;

pub use component::{Component, ComponentId, Effect, LinkEvent, LinkOutcome, Out, Port, Probe, Signal};
pub use packet::{Body, Datagram, DropReason, Dscp, Ecn, FlowId, HostId, Notice, NoticeCode, Packet};
