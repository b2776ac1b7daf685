//! The two sides of a tunnel: its interface, and its socket.
//!
//! Packets of one flow reach the kernel as super-packets, and datagrams leave in batches, until [`Ports::flush`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use lasthop_base::{BitRate, Duration, Time};
use lasthop_proto::Ecn;
use lasthop_proto::tcp::Flags;
use lasthop_tun::{Tun, VIRTIO_HEADER};
use lasthop_tunnel::{Ends, Exits, Group, Marking, Tos, decapsulate};
use lasthop_wire::offload::{self, Cwr, Train};
use lasthop_wire::virtio::{self, Offload};
use lasthop_wire::{Checksum, IpPacket, edit};

use super::batch::Batch;
use crate::kernel::datagrams::{Datagrams, Received, Unsent};

/// For how long datagrams leave one by one after batches of them were refused: the route may move to an interface that takes them.
const PAUSE: Duration = Duration::from_secs(5);

/// The interface, as [`Ports`] write to it.
pub(super) trait Interface {
    /// As [`Tun::takes_udp`].
    fn takes_udp(&self) -> bool;
    /// As [`Tun::send`].
    fn send(&mut self, header: &[u8; VIRTIO_HEADER], packet: &[u8]) -> io::Result<bool>;
}

impl Interface for Tun {
    fn takes_udp(&self) -> bool {
        Tun::takes_udp(self)
    }

    fn send(&mut self, header: &[u8; VIRTIO_HEADER], packet: &[u8]) -> io::Result<bool> {
        Tun::send(self, header, packet)
    }
}

/// The socket, as [`Ports`] write to it.
pub(super) trait Socket {
    /// As [`Datagrams::send`].
    fn send(&mut self, ends: Ends, tos: Tos, datagram: &[u8]) -> Result<(), Unsent>;
    /// As [`Datagrams::send_batch`].
    fn send_batch(&mut self, ends: Ends, tos: Tos, size: usize, bytes: &[u8]) -> Result<(), Unsent>;
}

impl Socket for Datagrams {
    fn send(&mut self, ends: Ends, tos: Tos, datagram: &[u8]) -> Result<(), Unsent> {
        Datagrams::send(self, ends, tos, datagram)
    }

    fn send_batch(&mut self, ends: Ends, tos: Tos, size: usize, bytes: &[u8]) -> Result<(), Unsent> {
        Datagrams::send_batch(self, ends, tos, size, bytes)
    }
}

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
    /// Super-packets that entered but cannot be cut.
    pub(super) malformed: u64,
    /// Super-packets that were cut, and such that the kernel took.
    pub(super) cut: u64,
    pub(super) merged: u64,
    /// Batches that the kernel took.
    pub(super) batches: u64,
}

/// The two sides.
pub(super) struct Ports<I = Tun, S = Datagrams> {
    tun: I,
    datagrams: S,
    /// The largest packet that the tunnel carries.
    pub(super) mtu: u16,
    pub(super) handed: Handed,
    /// The shortest datagram that was too long for the first link, which the tunnel has not been told of.
    pub(super) oversized: Option<usize>,
    batch: Batch,
    /// When the ports were flushed, and when batches are tried again.
    flushed_at: Time,
    batches_from: Time,
    train: Train,
    /// Scratch space for a packet whose header changes.
    packet: Vec<u8>,
}

impl Ports {
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
}

impl<I: Interface, S: Socket> Ports<I, S> {
    /// Both sides, for packets of at most `mtu` bytes and a path whose rate may be stated.
    pub(super) fn new(tun: I, datagrams: S, mtu: u16, rate: Option<BitRate>) -> Ports<I, S> {
        Ports {
            tun,
            datagrams,
            mtu,
            handed: Handed::default(),
            oversized: None,
            batch: Batch::new(rate),
            flushed_at: Time::ZERO,
            batches_from: Time::ZERO,
            train: Train::default(),
            packet: Vec::new(),
        }
    }

    /// Lowers the largest segment that a SYN offers to what the tunnel carries.
    pub(super) fn clamp(&self, packet: &mut [u8]) {
        let headers = if packet.first().is_some_and(|byte| byte >> 4 == 4) { 40 } else { 60 };
        // What cannot be read has no such option.
        let _ = edit::clamp_tcp_mss(packet, self.mtu.saturating_sub(headers));
    }

    /// Hands over all that waits for others of its kind.
    pub(super) fn flush(&mut self, now: Time) {
        self.flushed_at = now;
        self.flush_packets();
        self.flush_datagrams();
        self.batch.measure(now);
    }

    fn flush_datagrams(&mut self) {
        let Some((ends, tos, size, bytes)) = self.batch.datagrams() else { return };
        let count = bytes.len().div_ceil(size) as u64;
        let is_batch = count > 1 && self.flushed_at >= self.batches_from;
        let sent = match is_batch {
            true => self.datagrams.send_batch(ends, tos, size, bytes),
            false => Err(Unsent::Unclear),
        };
        match sent {
            Ok(()) => self.handed.batches += 1,
            Err(Unsent::Refused) => self.handed.unsent += count,
            Err(why) => {
                // Each datagram may fail for itself.
                let mut taken = 0;
                for datagram in bytes.chunks(size) {
                    match self.datagrams.send(ends, tos, datagram) {
                        Ok(()) => taken += 1,
                        Err(Unsent::Oversized) => {
                            self.handed.oversized += 1;
                            let shortest =
                                self.oversized.map_or(datagram.len(), |len| len.min(datagram.len()));
                            self.oversized = Some(shortest);
                        }
                        Err(_) => self.handed.unsent += 1,
                    }
                }
                // If all were well, it is batches that are not taken.
                if is_batch && (why == Unsent::Uncut || taken == count) {
                    self.batches_from = self.flushed_at + PAUSE;
                }
            }
        }
        self.batch.clear();
    }

    fn flush_packets(&mut self) {
        if let Some(packet) = self.train.single() {
            // An interface that is gone is noticed when it is read.
            self.handed.refused += u64::from(!send(&mut self.tun, packet));
        } else if let Some(packet) = self.train.merged() {
            if self.tun.send(&virtio::header(&packet, 0), packet.bytes).unwrap_or(false) {
                self.handed.merged += 1;
            } else if let Ok(whole) = IpPacket::parse(packet.bytes)
                && let Ok(segments) = offload::segments(&whole, packet.segment_size, Cwr::FirstOnly)
            {
                self.handed.refused +=
                    segments.map(|segment| u64::from(!send(&mut self.tun, &segment))).sum::<u64>();
            }
        }
        self.train.clear();
    }

    /// Hands over a packet, or lets it wait for others of its flow.
    fn hand_over(&mut self, bytes: &[u8], packet: Option<&IpPacket<'_>>) {
        // A damaged one would get a correct checksum in a super-packet.
        let intact = packet.filter(|packet| {
            (packet.tcp().is_some() || self.tun.takes_udp())
                && packet.transport_checksum() == Checksum::Correct
                && packet.header_checksum() != Checksum::Wrong
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
fn send(tun: &mut impl Interface, packet: &[u8]) -> bool {
    tun.send(&[0; VIRTIO_HEADER], packet).unwrap_or(false)
}

impl<I: Interface, S: Socket> Exits for Ports<I, S> {
    fn datagram(&mut self, ends: Ends, tos: Tos, bytes: &[u8], group: Option<Group>) {
        if !self.batch.push(ends, tos, bytes, group) {
            self.flush_datagrams();
            self.batch.push(ends, tos, bytes, group);
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

#[cfg(test)]
mod tests;
