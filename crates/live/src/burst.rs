//! Packets that leave together.

use std::io;

use lasthop_base::Time;
use lasthop_wire::IpPacket;
use lasthop_wire::offload::Train;

use crate::frames::ETHERNET;
use crate::interface::{Interface, Sent};

/// A packet that leaves the network.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaving {
    /// When it entered, and when it left the last link.
    pub(crate) entered: Time,
    pub(crate) time: Time,
    /// The latter on the driver's clock, in nanoseconds.
    pub(crate) due_ns: u64,
    /// Size as an IP packet.
    pub(crate) size: u64,
    /// Delay between arrival and entry, in nanoseconds.
    pub(crate) delayed_ns: u64,
}

/// Successive packets of one flow to an end, which the kernel gets as a super-packet: it costs little more than one of
/// them. Sockets of UDP receive single datagrams, unless they ask for super-packets (`UDP_GRO`).
#[derive(Debug, Default)]
pub(crate) struct Burst<F = Leaving> {
    train: Train,
    link_header: [u8; ETHERNET],
    /// What there is to know of each packet.
    packets: Vec<F>,
}

impl<F> Burst<F> {
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Adds the frame of an intact packet without a VLAN tag, if it continues the others; returns whether it does.
    pub(crate) fn push(&mut self, frame: &[u8], packet: F) -> bool {
        let (link_header, bytes) = frame.split_at(ETHERNET);
        if self.is_empty() {
            self.link_header = link_header.try_into().expect("of this length");
        }
        let belongs = link_header == self.link_header
            && IpPacket::parse(bytes).is_ok_and(|packet| self.train.push(&packet));
        if belongs {
            self.packets.push(packet);
        }
        belongs
    }

    /// Writes the packets. They remain until [`clear`](Burst::clear).
    pub(crate) fn write(&mut self, interface: &mut Interface) -> io::Result<Sent> {
        let Burst { train, link_header, .. } = self;
        if let Some(packet) = train.single() {
            return interface.send_parts(link_header, packet);
        }
        let merged = train.merged().expect("a burst that is written is not empty");
        interface.send_super_packet(link_header, &merged)
    }

    /// Removes the packets, and returns what there is to know of them. [`recycle`](Burst::recycle) takes the list back.
    pub(crate) fn clear(&mut self) -> Vec<F> {
        self.train.clear();
        std::mem::take(&mut self.packets)
    }

    /// Keeps the memory of a list for later packets.
    pub(crate) fn recycle(&mut self, mut packets: Vec<F>) {
        packets.clear();
        self.packets = packets;
    }
}
