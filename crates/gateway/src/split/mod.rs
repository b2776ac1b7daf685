//! Split connections on sockets of the kernel.
//!
//! ```text
//! client ══ socket ── pipe ──> socket ══ server
//!           socket <── pipe ── socket
//! ```
//!
//! The kernel does TCP of both parts. Data go from one socket to the other through a pipe, in the kernel's pages
//! (splice(2)). A pipe is only held while data wait in it.

mod direction;
pub(crate) mod worker;

use std::os::fd::OwnedFd;

/// A connection in two parts, both of which are open.
#[derive(Debug)]
pub(crate) struct Split {
    /// The part towards the client.
    pub(crate) client: OwnedFd,
    /// The part towards the server.
    pub(crate) server: OwnedFd,
}
