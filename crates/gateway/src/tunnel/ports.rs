//! The two sides of a tunnel: its interface, and its socket.
//!
//! Packets of one flow reach the kernel as super-packets, and datagrams leave in batches, until [`Ports::flush`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use lasthop_base::Time;
use lasthop_proto::Ecn;
use lasthop_proto::tcp::Flags;
use lasthop_tun::{Tun, VIRTIO_HEADER};
use lasthop_tunnel::{Ends, Exits, Marking, Tos, decapsulate};
use lasthop_wire::offload::{self, Cwr, Train};
use lasthop_wire::virtio::{self, Offload};
use lasthop_wire::{Checksum, IpPacket, edit};

use super::batch::Batch;
use crate::kernel::datagrams::{Datagrams, Received, Unsent};

/// What happened at the two sides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handed {
    /// Datagrams that the kernel did not take: no route, or a full queue.
    pub(super) unsent: u64,
    /// Datagrams that were longer than the first link of the path carries.
    pub(super) oversized: u64,
    /// Packets that the kernel did not take.
    pub(super) refused: u64,
    /// Packets that have the mark of a queue on the path, and those that were dropped for one, since their ends know no marks.
    pub(super) marked: u64,
    pub(super) unmarkable: u64,
    /// Datagrams of the tunnel that a route of this host led into it.
    pub(super) looped: u64,
}

/// The two sides.
pub(super) struct Ports {
    tun: Tun,
    datagrams: Datagrams,
    /// The largest packet that the tunnel carries.
    pub(super) mtu: u16,
    pub(super) handed: Handed,
    /// The shortest datagram that was too long for the first link, which the tunnel has not been told of.
    pub(super) oversized: Option<usize>,
    batch: Batch,
    train: Train,
    /// A packet that is changed.
    packet: Vec<u8>,
}

impl Ports {
    pub(super) fn new(tun: Tun, datagrams: Datagrams, mtu: u16) -> Ports {
        Ports {
            tun,
            datagrams,
            mtu,
            handed: Handed::default(),
            oversized: None,
            batch: Batch::default(),
            train: Train::default(),
            packet: Vec::new(),
        }
    }

    /// The descriptors of the interface and of the socket.
    pub(super) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.tun.as_fd(), self.datagrams.as_fd()]
    }

    /// Uses another interface.
    pub(super) fn replace(&mut self, tun: Tun) {
        self.tun = tun;
    }

    /// Reads a packet that enters, or a super-packet: its length, and the work that its sender left.
    pub(super) fn receive_packet(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, Offload)>> {
        let mut header = [0; VIRTIO_HEADER];
        Ok(self.tun.receive(&mut header, buffer)?.map(|len| (len, Offload::parse(&header))))
    }

    /// Reads datagrams.
    pub(super) fn receive_datagrams(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        self.datagrams.receive(buffer)
    }

    /// Lowers the largest segment that a SYN offers to what the tunnel carries.
    pub(super) fn clamp(&self, packet: &mut [u8]) {
        let headers = if packet.first().is_some_and(|byte| byte >> 4 == 4) { 40 } else { 60 };
        // What cannot be read has no such option.
        let _ = edit::clamp_tcp_mss(packet, self.mtu.saturating_sub(headers));
    }

    /// Hands over all that waits for others of its kind.
    pub(super) fn flush(&mut self, now: Time) {
        self.flush_packets();
        self.flush_datagrams();
        self.batch.measure(now);
    }

    fn flush_datagrams(&mut self) {
        let Some((ends, tos, size, bytes)) = self.batch.datagrams() else { return };
        let count = bytes.len().div_ceil(size);
        let sent = if count > 1 { self.datagrams.send_batch(ends, tos, size, bytes) } else { Ok(false) };
        match sent {
            Ok(true) => {}
            // What becomes of one need not be what becomes of others.
            Ok(false) => {
                for datagram in bytes.chunks(size) {
                    match self.datagrams.send(ends, tos, datagram) {
                        Ok(()) => {}
                        Err(Unsent::Oversized) => {
                            self.handed.oversized += 1;
                            let shortest =
                                self.oversized.map_or(datagram.len(), |len| len.min(datagram.len()));
                            self.oversized = Some(shortest);
                        }
                        Err(Unsent::Refused) => self.handed.unsent += 1,
                    }
                }
            }
            Err(_) => self.handed.unsent += count as u64,
        }
        self.batch.clear();
    }

    fn flush_packets(&mut self) {
        if let Some(packet) = self.train.single() {
            // An interface that is gone is noticed when it is read.
            self.handed.refused += u64::from(!send(&mut self.tun, packet));
        } else if let Some(packet) = self.train.merged()
            && !self.tun.send(&virtio::header(&packet, 0), packet.bytes).unwrap_or(false)
            && let Ok(whole) = IpPacket::parse(packet.bytes)
            && let Ok(segments) = offload::segments(&whole, packet.segment_size, Cwr::FirstOnly)
        {
            // The kernel is too old for super-packets of this kind, or takes nothing.
            self.handed.refused +=
                segments.map(|segment| u64::from(!send(&mut self.tun, &segment))).sum::<u64>();
        }
        self.train.clear();
    }

    /// Hands over a packet, or lets it wait for others of its flow.
    fn hand_over(&mut self, bytes: &[u8], packet: Option<&IpPacket<'_>>) {
        // A damaged one would get a correct checksum in a super-packet.
        let intact = packet.filter(|packet| {
            packet.transport_checksum() == Checksum::Correct && packet.header_checksum() != Checksum::Wrong
        });
        if intact.is_some_and(|packet| self.train.push(packet)) {
            return;
        }
        self.flush_packets();
        if !intact.is_some_and(|packet| self.train.push(packet)) {
            self.handed.refused += u64::from(!send(&mut self.tun, bytes));
        }
    }
}

/// Gives the kernel a packet whose checksums are done.
fn send(tun: &mut Tun, packet: &[u8]) -> bool {
    tun.send(&[0; VIRTIO_HEADER], packet).unwrap_or(false)
}

impl Exits for Ports {
    fn datagram(&mut self, ends: Ends, tos: Tos, bytes: &[u8]) {
        if !self.batch.push(ends, tos, bytes) {
            self.flush_datagrams();
            self.batch.push(ends, tos, bytes);
        }
    }

    fn packet(&mut self, bytes: &[u8], outer: Ecn) {
        let packet = IpPacket::parse(bytes).ok();
        let is_marked = outer != Ecn::NotEct && outer != Tos::of(bytes).ecn;
        let is_syn = packet
            .as_ref()
            .and_then(IpPacket::tcp)
            .is_some_and(|tcp| tcp.header.segment.flags.has(Flags::SYN));
        if !is_marked && !is_syn {
            return self.hand_over(bytes, packet.as_ref());
        }
        let mut changed = std::mem::take(&mut self.packet);
        changed.clear();
        changed.extend_from_slice(bytes);
        let marking = decapsulate(&mut changed, outer);
        self.handed.marked += u64::from(marking == Marking::Marked);
        self.handed.unmarkable += u64::from(marking == Marking::Unmarkable);
        if marking != Marking::Unmarkable {
            self.clamp(&mut changed);
            self.hand_over(&changed, IpPacket::parse(&changed).ok().as_ref());
        }
        self.packet = changed;
    }
}
