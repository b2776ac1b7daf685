//! What leaves an end of the tunnel.

use std::net::SocketAddr;

/// Where things leave.
pub trait Exits {
    /// A datagram to another end.
    fn datagram(&mut self, to: SocketAddr, bytes: &[u8]);
    /// A packet that has passed the tunnel.
    fn packet(&mut self, bytes: &[u8]);
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The other end was found, or has started anew, at this address.
    Found(SocketAddr),
    /// It is silent.
    Silent,
    /// It is heard again.
    Heard,
    /// It has another address.
    Moved(SocketAddr),
}
