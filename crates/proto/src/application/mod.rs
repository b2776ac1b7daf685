//! Request/response applications: a client thinks, sends a request, waits for the complete response, and
//! repeats.
//!
//! TCP is unidirectional here, so an application uses two connections: requests from the [`Client`] to the
//! [`Server`], and responses back. Each application component contains the sender of one and the receiver of
//! the other. Both know the size of every message in advance, because they draw from streams of the same name
//! with the same [`Config`].
//!
//! Nagle's algorithm is off, as in most request/response programs (`TCP_NODELAY`). Otherwise the end of a
//! response would wait for the acknowledgement of its beginning, and the acknowledgement for the delayed ACK
//! timer.
//!
//! The server responds at once; its processing time is not modelled.

mod client;
mod distribution;
mod endpoints;
mod kind;
mod script;
mod server;

pub use client::{Client, ClientStats};
pub use distribution::{Amount, Distribution};
pub use kind::ApplicationKind;
pub use script::{Config, Script};
pub use server::Server;

use crate::component::Port;

/// The port of the request connection, at the client and at the server.
pub const REQUESTS: Port = Port(0);

/// The port of the response connection, at the client and at the server.
pub const RESPONSES: Port = Port(1);
