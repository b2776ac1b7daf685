//! Background traffic: datagrams that cross the network beside a connection and react to nothing.
//!
//! A [`Source`] sends packets of one size at instants that a [`Law`] chooses; a [`Sink`] counts those
//! that arrive. What was sent and did not arrive is lost, or still on its way.

mod departures;
mod law;
mod sink;
mod source;

use lasthop_base::Bytes;

pub use law::{Law, Periods};
pub use sink::{Sink, SinkStats};
pub use source::{Plan, Source, SourceStats};

/// What the headers of a datagram take: 20 B of IPv4 without options (RFC 791), 8 B of UDP (RFC 768).
pub const HEADERS: Bytes = Bytes(28);
