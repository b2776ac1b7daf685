//! A FIFO of packets with their arrival times.

use std::collections::VecDeque;

use lasthop_base::{Bytes, Time};
use lasthop_proto::Packet;

#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    packets: VecDeque<(Time, Packet)>,
    bytes: Bytes,
}

impl Fifo {
    pub(super) fn push(&mut self, now: Time, packet: Packet) {
        self.bytes += packet.size;
        self.packets.push_back((now, packet));
    }

    /// Removes the oldest packet, with its arrival time.
    pub(super) fn pop(&mut self) -> Option<(Time, Packet)> {
        let (came, packet) = self.packets.pop_front()?;
        self.bytes = self.bytes - packet.size;
        Some((came, packet))
    }

    /// The packets, the oldest first.
    pub(super) fn packets(&self) -> impl ExactSizeIterator<Item = &Packet> + Clone {
        self.packets.iter().map(|(_, packet)| packet)
    }

    /// Removes the packet at a place.
    pub(super) fn remove(&mut self, place: usize) -> Option<Packet> {
        let (_, packet) = self.packets.remove(place)?;
        self.bytes = self.bytes - packet.size;
        Some(packet)
    }

    /// When the oldest packet arrived.
    pub(super) fn first_arrival(&self) -> Option<Time> {
        self.packets.front().map(|(came, _)| *came)
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(super) fn bytes(&self) -> Bytes {
        self.bytes
    }
}
