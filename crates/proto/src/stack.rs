//! Transport stacks that are not this crate's TCP: libraries that run as they are, in simulated time.
//!
//! A stack builds both ends of a connection. Its packets are [datagrams](crate::Body::Datagram), whose bytes no other
//! component looks into: the ends keep them in [`Contents`] as long as a copy of the packet may arrive.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use lasthop_base::{Stream, Streams};

use crate::application;
use crate::component::{Component, Signal, Tally};
use crate::packet::{FlowId, Handle, Packet};
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

    /// The number that the stack has given to the packet of application data in a datagram; `None` if there is none.
    fn packet_number(&self, datagram: &[u8]) -> Option<u64>;

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
    /// What its control may be told by a [sidecar](Sidecar).
    pub early: Early,
}

/// What a control may be told of packets before their receiver acknowledges any that were sent later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Early {
    /// Nothing: it takes a loss for the end of all that was sent before.
    Nothing,
    /// Losses. It would take the time of an earlier acknowledgement for a round trip to the receiver.
    Losses,
    /// Losses and acknowledgements.
    All,
}

/// Takes the log of a stack, if it keeps one.
pub trait Log: fmt::Debug + Send + Sync {
    /// Appends text.
    fn write(&self, text: &[u8]);
}

/// What a scheme adds at the source of packets, below its stack: it knows each one that leaves, and learns from agents on the way
/// what has become of it.
pub trait Sidecar: fmt::Debug + Send {
    /// A packet leaves.
    fn on_sent(&mut self, packet: &Packet);

    /// An agent that sends reports has emitted a signal. The source's packets have this flow.
    fn on_signal(&mut self, flow: FlowId, signal: &Signal);

    /// A control message has arrived. Appends to `fates` what it tells of packets, in the order in which they left. Whether it is of
    /// another agent than the last one, as after a hand-off.
    fn on_report(&mut self, packet: &Packet, fates: &mut Vec<(Packet, Fate)>) -> bool;

    /// Whether what has arrived at an agent counts as acknowledged for the window.
    fn moves_window(&self) -> bool;

    /// The setting of the scheme that tells the control less, for those that [bear](Early) less: "set KEY = VALUE".
    fn remedy(&self) -> &'static str;

    /// Maximum number of packets of whose fate it may yet learn.
    fn buffer(&self) -> usize;

    /// Whether the agent at a base station reports of packets towards mobile hosts, and of those from them.
    fn directions(&self) -> [bool; 2];

    /// Reports counters of the scheme, given the number of packets that were sent again. As [`Component::count`].
    fn count(&self, repairs: u64, tally: &mut dyn Tally);
}

/// What an agent reports of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has arrived at the agent.
    Arrived,
    /// It was lost on the way there, and is to be sent again.
    Missing,
}

/// Makes the [sidecar](Sidecar) of each end.
pub type MakeSidecar<'a> = dyn Fn() -> Box<dyn Sidecar> + Send + Sync + 'a;

/// A connection for which a [`Stack`] builds the ends.
#[allow(missing_debug_implementations, reason = "it has a function")]
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
    /// Where the source of a transfer, or the server of an application, writes its qlog.
    pub log: Option<Arc<dyn Log>>,
    /// What a scheme adds at both ends, as sources of their packets.
    pub sidecar: Option<&'a MakeSidecar<'a>>,
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

    /// Keeps a secret that protects packets sent later, as a line of a key log (draft-ietf-tls-keylogfile). By default, nobody
    /// wants it.
    fn log_secret(&self, _line: &str) {}
}
