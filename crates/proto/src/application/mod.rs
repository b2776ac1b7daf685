//! Applications that ask and answer: a client thinks, sends a request and waits for the whole response; then
//! it thinks again.
//!
//! TCP here carries data one way, so a dialogue is two connections: one for the requests, from the [`Client`]
//! to the [`Server`], and one for the responses. Each of the two is the sending end of one and the receiving
//! end of the other, so that neither needs to be told of anything but packets. How large each message is both
//! know beforehand: they draw from streams of the same names, by the same [`Plan`].
//!
//! Messages are sent without Nagle's algorithm, as programs that ask and answer do (`TCP_NODELAY`): otherwise
//! the end of a response would wait for the acknowledgement of its beginning, and that for a timer.
//!
//! The server answers at once: the time that a real one takes to find its answer is not modelled.

mod client;
mod ends;
mod kind;
mod law;
mod script;
mod server;

pub use client::{Client, ClientStats};
pub use kind::Kind;
pub use law::{Amount, Law};
pub use script::{Plan, Script};
pub use server::Server;

use crate::component::Port;

/// The port of a client, or of a server, by which the packets of the connection of requests come and go.
pub const REQUESTS: Port = Port(0);

/// Likewise those of the connection of responses.
pub const RESPONSES: Port = Port(1);
