//! Background traffic: unresponsive datagrams that share the network with connections.
//!
//! A [`Source`] sends packets of constant size with the departure times of a [`Pattern`]; a [`Sink`] counts
//! arrivals. Packets sent but not received are lost or still in flight. Those of [`voip`] carry speech.

mod departures;
mod pattern;
mod sink;
mod source;
pub mod voip;

use lasthop_base::Bytes;

pub use pattern::{Pattern, Periods};
pub use sink::{Sink, SinkStats};
pub use source::{Config, Source, SourceStats};

/// Headers of a datagram: 20 B of IPv4 without options (RFC 791) and 8 B of UDP (RFC 768).
pub const HEADERS: Bytes = Bytes(28);
