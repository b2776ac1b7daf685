//! Transport stacks that are not this crate's TCP: libraries that run as they are, in simulated time.
//!
//! A stack builds both ends of a connection. Its packets are [datagrams](crate::Body::Datagram), whose bytes no other
//! component looks into: the ends keep them in [`Contents`] as long as a copy of the packet may arrive.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use lasthop_base::Stream;

use crate::component::Component;
use crate::packet::Handle;
use crate::quic;
use crate::tcp::{Connection, Transfer};

/// An implementation of a transport protocol.
pub trait Stack: fmt::Debug + Send + Sync {
    /// The protocol: `QUIC`.
    fn protocol(&self) -> &'static str;

    /// The library and its version, which results state: a different one may give different numbers.
    fn version(&self) -> &'static str;

    /// Its senders, whose names are those of no TCP sender.
    fn senders(&self) -> &'static [Sender];

    /// The sender and the receiver of a connection. They are deterministic: packets depend on `flow` and on what arrives when.
    fn ends(&self, flow: &StackFlow<'_>) -> [Box<dyn Component>; 2];
}

/// A sender of a [`Stack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The name in scenarios.
    pub name: &'static str,
    /// The name in reports.
    pub title: &'static str,
    /// How the owner of a server chooses it.
    pub how: &'static str,
}

/// A connection for which a [`Stack`] builds the ends.
#[derive(Debug)]
pub struct StackFlow<'a> {
    /// The hosts and the flow.
    pub connection: Connection,
    /// Size and start.
    pub transfer: Transfer,
    /// The name of one of the stack's [senders](Stack::senders).
    pub sender: &'a str,
    /// Settings of QUIC.
    pub quic: &'a quic::Settings,
    /// Random numbers of this connection.
    pub random: Stream,
    /// The bytes of the packets in the network.
    pub contents: Arc<dyn Contents>,
}

/// The bytes of the packets in a network.
pub trait Contents: fmt::Debug + Send + Sync {
    /// Keeps the bytes of a packet that is sent next. [`Handle::NONE`] if there is no room for another one: the packet is then
    /// empty, and the run ends with an error.
    fn put(&self, bytes: &[u8]) -> Handle;

    /// Calls `read` with the bytes of a packet that has arrived; not at all if there are none.
    fn take(&self, handle: Handle, read: &mut dyn FnMut(&[u8]));
}
