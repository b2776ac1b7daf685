//! Packets that an agent sends later.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lasthop_base::Time;

use crate::component::Port;
use crate::packet::Packet;
use crate::tcp::Connection;

/// Packets in the order in which they are to be sent: by time, and of one time by connection. Each has the port through which it
/// leaves.
#[derive(Debug, Default)]
pub(super) struct HeldPackets(BTreeMap<(Time, Connection), Vec<(Port, Packet)>>);

impl HeldPackets {
    /// Keeps a packet until `until`.
    pub(super) fn hold(&mut self, until: Time, connection: Connection, port: Port, packet: Packet) {
        self.0.entry((until, connection)).or_default().push((port, packet));
    }

    /// The number of packets of a connection for this time.
    pub(super) fn of(&self, until: Time, connection: Connection) -> usize {
        self.0.get(&(until, connection)).map_or(0, Vec::len)
    }

    /// Takes the packets of a connection for this time, in the order in which they came.
    pub(super) fn take(&mut self, until: Time, connection: Connection) -> Vec<(Port, Packet)> {
        self.0.remove(&(until, connection)).unwrap_or_default()
    }

    /// Takes those whose time has come.
    pub(super) fn release(&mut self, now: Time, mut send: impl FnMut(Port, Packet)) {
        while let Some(entry) = self.0.first_entry().filter(|entry| entry.key().0 <= now) {
            entry.remove().into_iter().for_each(|(port, packet)| send(port, packet));
        }
    }

    /// When the next ones are to be sent.
    pub(super) fn next_release(&self) -> Time {
        self.0.first_key_value().map_or(Time::NEVER, |((until, _), _)| *until)
    }

    /// All of them.
    pub(super) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.0.values().flatten().map(|(_, packet)| packet)
    }
}
