//! Transport stacks that are not this crate's TCP: libraries that run as they are, in simulated time.
//!
//! A stack builds both ends of a connection. Its packets are [datagrams](crate::Body::Datagram), whose bytes no other
//! component looks into: the ends keep them in [`Contents`] as long as a copy of the packet may arrive.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use lasthop_base::{Stream, Streams};

use crate::application;
use crate::component::Component;
use crate::packet::{FlowId, Handle};
use crate::quic;
use crate::tcp::{Connection, Transfer};

/// An implementation of a transport protocol. The ends that it builds are deterministic: packets depend on the flow and on
/// what arrives when.
pub trait Stack: fmt::Debug + Send + Sync {
    /// The protocol: `QUIC`.
    fn protocol(&self) -> &'static str;

    /// The library and its version, which results state: a different one may give different numbers.
    fn version(&self) -> &'static str;

    /// Its senders, whose names are those of no TCP sender.
    fn senders(&self) -> &'static [Sender];

    /// The sender and the receiver of a transfer.
    fn transfer(&self, flow: &StackFlow<'_>, transfer: Transfer) -> [Box<dyn Component>; 2];

    /// The client and the server of an application.
    fn application(&self, flow: &StackFlow<'_>, dialogue: &Dialogue<'_>) -> [Box<dyn Component>; 2];
}

/// A sender of a [`Stack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The name in scenarios.
    pub name: &'static str,
    /// The name in reports.
    pub title: &'static str,
    /// How the owner of a server chooses it; `None` if no server has it.
    pub how: Option<&'static str>,
}

/// A connection for which a [`Stack`] builds the ends.
#[derive(Debug)]
pub struct StackFlow<'a> {
    /// The hosts and the flow. An application's source is the client.
    pub connection: Connection,
    /// The name of one of the stack's [senders](Stack::senders).
    pub sender: &'a str,
    /// Settings of QUIC.
    pub quic: &'a quic::Settings,
    /// Random numbers of this connection.
    pub random: Stream,
    /// The bytes of the packets in the network.
    pub contents: Arc<dyn Contents>,
}

/// An application over a connection, whose requests have a stream each.
#[derive(Debug)]
pub struct Dialogue<'a> {
    /// The flow of what the server sends, at the ports [`responses(0)`](application::responses) of both ends. What the client
    /// sends is at the ports [`requests(0)`](application::requests).
    pub responses: FlowId,
    /// The application.
    pub config: &'a application::Config,
    /// Its name, which seeds the random numbers of its activity.
    pub name: &'a str,
    /// Random numbers of the run.
    pub streams: Streams,
}

/// The bytes of the packets in a network.
pub trait Contents: fmt::Debug + Send + Sync {
    /// Keeps the bytes of a packet that is sent next. [`Handle::NONE`] if there is no room for another one: the packet is then
    /// empty, and the run ends with an error.
    fn put(&self, bytes: &[u8]) -> Handle;

    /// Calls `read` with the bytes of a packet that has arrived; not at all if there are none.
    fn take(&self, handle: Handle, read: &mut dyn FnMut(&[u8]));
}
