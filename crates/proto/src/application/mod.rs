//! Request/response applications, and their response times.
//!
//! A [`Client`] sends requests to a server. Its [`Activity`] determines the requests, their times and their
//! connections: single [messages](Messages), [pages](Page) of many objects, or a [video](Video). An [`Exchange`] carries
//! them: [TCP connections](TcpConnections) to a [`Server`], or one connection of another [stack](crate::stack), with a
//! stream for each request.
//!
//! ```text
//!  Client                                      Server
//!  +-----------+  request k, at REQUESTS(c)   +------------------+
//!  | activity  | ---------------------------> | answers each     |
//!  | (when and | <--------------------------- | connection's     |
//!  |  what)    |  response k, at RESPONSES(c) | requests, FIFO   |
//!  +-----------+                              +------------------+
//!        +- - - - - - Signal::Request - - - - - - - ^
//! ```
//!
//! TCP is unidirectional here, so each connection `c` of an application is two: requests from the client, and
//! responses back. Each component contains the sender of one and the receiver of the other.
//!
//! Packets have no contents here. The server learns the sizes of a request and its response from [`Signal::Request`],
//! emitted when the client makes the request; the server responds when the request's last byte has arrived.
//!
//! Nagle's algorithm is off, as in most request/response programs (`TCP_NODELAY`). Otherwise the end of a
//! response would wait for the acknowledgement of its beginning, and the acknowledgement for the delayed ACK
//! timer.
//!
//! The server responds immediately; its processing time is not modelled.
//!
//! [`Signal::Request`]: crate::component::Signal::Request

mod activity;
mod client;
mod distribution;
mod duplex;
mod exchange;
mod kind;
mod messages;
mod page;
mod server;
mod tcp_connections;
mod video;

pub use activity::{Activity, Config};
pub use client::Client;
pub use distribution::{Amount, Distribution};
pub use duplex::ConnectionEnd;
pub(crate) use exchange::SERVER_FLIGHT;
pub use exchange::{Answer, Exchange};
pub use kind::ApplicationKind;
pub use messages::Messages;
pub use page::{Http, Objects, Page, Pages};
pub use server::{Server, ServerConnection};
pub use tcp_connections::{ClientConnection, TcpConnections};
pub use video::{Adaptation, Video, Viewing};

use crate::component::Port;

/// The port of the requests of the application's connection number `connection`, at the client and at the server.
pub const fn requests(connection: u8) -> Port {
    Port(2 * connection as u32)
}

/// The port of the responses of the application's connection number `connection`, at the client and at the server.
pub const fn responses(connection: u8) -> Port {
    Port(2 * connection as u32 + 1)
}

/// The connection to which a port belongs.
const fn connection_of(port: Port) -> usize {
    port.0 as usize / 2
}
