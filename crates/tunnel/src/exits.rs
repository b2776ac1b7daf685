//! What leaves an end of the tunnel.

use std::net::SocketAddr;

use lasthop_proto::Ecn;

use crate::outer::{Ends, Tos};

/// Where things leave.
pub trait Exits {
    /// A datagram to another end, which may be one of a group.
    fn datagram(&mut self, ends: Ends, tos: Tos, bytes: &[u8], group: Option<Group>);
    /// A packet that has passed the tunnel, and the ECN of its datagram: it is to be [decapsulated](crate::decapsulate).
    fn packet(&mut self, bytes: &[u8], outer: Ecn);
}

/// The datagrams of a block, source and repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The class, and the number of the block.
    pub block: (u8, u32),
    /// How many of a full block may be lost: if they share their fate, no more should leave together. `usize::MAX` if none may,
    /// since nothing is repaired.
    pub most: usize,
}

/// Takes a packet that leaves, and the mark of its datagram.
pub(crate) type Deliver<'a> = &'a mut dyn FnMut(&[u8], Ecn);

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The other end was found, or has started anew, at this address.
    Found(SocketAddr),
    /// It is silent.
    Silent,
    /// It is heard again.
    Heard,
    /// It has another address, at which it was not lately.
    Moved(SocketAddr),
    /// Packets of this size do not arrive, and [`Settings::sizes`](crate::Settings::sizes) allow no smaller ones.
    Oversized(usize),
}
