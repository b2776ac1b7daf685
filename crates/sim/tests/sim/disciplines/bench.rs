//! A test bench for a queue discipline.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_link::queue::Discipline;
use lasthop_proto::{Body, Datagram, DropReason, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet};

/// A datagram of `flow` with number `seq`.
pub(crate) fn packet(flow: u32, seq: u64, size: u64, ecn: Ecn) -> Packet {
    let (src, dst, flow) = (HostId(0), HostId(1), FlowId(flow));
    let body = Body::Datagram(Datagram { seq, sent: Time::ZERO });
    Packet { src, dst, flow, size: Bytes(size), dscp: Dscp::DEFAULT, ecn, handle: Handle::NONE, body }
}

/// The sequence number of a datagram.
pub(crate) fn seq(packet: &Packet) -> u64 {
    let Body::Datagram(datagram) = packet.body else { panic!("not a datagram") };
    datagram.seq
}

/// The instant `after` microseconds after the start.
pub(crate) fn us(after: u64) -> Time {
    Time::ZERO + Duration::from_micros(after)
}

/// A discipline and its drops.
pub(crate) struct Bench<D> {
    pub(crate) queue: D,
    out: Out,
    /// Number of arrivals.
    pub(crate) came: u64,
    pub(crate) drops: Vec<(Time, Packet, DropReason)>,
}

impl<D: Discipline> Bench<D> {
    pub(crate) fn new(queue: D) -> Bench<D> {
        Bench { queue, out: Out::default(), came: 0, drops: Vec::new() }
    }

    /// Enqueues a packet; packets are numbered in order of arrival.
    pub(crate) fn come(&mut self, now: Time, flow: u32, size: u64, ecn: Ecn) {
        self.arrive(now, packet(flow, self.came, size, ecn));
    }

    /// Enqueues any packet.
    pub(crate) fn arrive(&mut self, now: Time, packet: Packet) {
        self.queue.enqueue(now, packet, false, &mut self.out);
        self.came += 1;
        self.collect(now);
    }

    /// Dequeues when the link is free.
    pub(crate) fn go(&mut self, now: Time) -> Option<Packet> {
        let packet = self.queue.dequeue(now, &mut self.out);
        self.collect(now);
        packet
    }

    /// The numbers of the packets that were dropped.
    pub(crate) fn dropped(&self) -> Vec<u64> {
        self.drops.iter().map(|(_, packet, _)| seq(packet)).collect()
    }

    fn collect(&mut self, now: Time) {
        while let Some((_, effect)) = self.out.take() {
            let Effect::Drop(packet, reason) = effect else { panic!("{effect:?}") };
            self.drops.push((now, packet, reason));
        }
    }
}
