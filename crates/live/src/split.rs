//! Split connections: the proxy of a base station in the network of an emulation.
//!
//! ```text
//!                ┌────────────── BaseStation ──────────────┐
//!  wired links ──┤ real flows: bytes <── frames, by handle │
//!                │     Proxy: our TCP towards both hosts   ├── agents, wireless link
//!                │     bytes ──> frames, new handles       │
//!                │ simulated flows: as in a simulation     │
//!                └─────────────────────────────────────────┘
//! ```
//!
//! TCP segments of split connections end here, and others begin. Everything else passes: UDP, ICMP except errors about
//! the proxy's own packets, fragments, and segments of connections that the proxy has not seen opening.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::emulation::{Entering, Side, SplitSite};
use lasthop_base::{Bytes, Time};
use lasthop_endpoint::{Incoming, Parts, Proxy, Relayed, Secret};
use lasthop_proto::{
    Body, Component, Datagram, DropReason, Dscp, FlowId, Handle, HostId, LinkOutcome, Out, Packet, Port,
    Signal, Tally,
};
use lasthop_wire::{Checksum, IpPacket, Transport};

use crate::frames::{ETHERNET, Frames, Origin};
use crate::segments;

/// The frames in the network, which the emulator shares with base stations.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedFrames(Arc<Mutex<Frames>>);

impl SharedFrames {
    /// The frames. They must not be locked while the network handles events, since base stations lock them.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Frames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the packets of a split connection travel.
#[derive(Clone, Copy, Debug)]
struct Tag {
    flow: FlowId,
    /// By side.
    hosts: [HostId; 2],
    /// The Ethernet header of frames to the host at each side.
    headers: [[u8; ETHERNET]; 2],
    /// Whether agents see the segments.
    is_visible: bool,
}

/// The base station of a split connection.
pub(crate) struct BaseStation {
    proxy: Proxy<Tag>,
    frames: SharedFrames,
    /// The flows of real packets, in order.
    flows: Vec<FlowId>,
    simulated: Box<dyn Component>,
    /// How much later than it arrived the packet that is being handled entered, in nanoseconds.
    delayed_ns: u64,
    /// Packets that were dropped because there was no room for them.
    overflowed: u64,
    /// Segments with a wrong checksum.
    wrong_checksums: u64,
    changed: Vec<u8>,
}

impl BaseStation {
    /// The base station at `site`.
    ///
    /// # Panics
    /// If the site has no component for simulated connections.
    pub(crate) fn new(site: SplitSite, frames: SharedFrames) -> BaseStation {
        let SplitSite {
            parts: [wired, wireless],
            buffer,
            holds,
            reactions,
            mut random,
            flows,
            simulated,
            ..
        } = site;
        let secret = Secret::draw(&mut random);
        let mut parts = Parts::new([&wired, &wireless], buffer, secret).with_reactions(reactions);
        if let Some(hold) = holds {
            parts = parts.withholding(hold);
        }
        BaseStation {
            proxy: Proxy::new(parts),
            frames,
            flows,
            simulated: simulated.expect("the site has the component that it replaces"),
            delayed_ns: 0,
            overflowed: 0,
            wrong_checksums: 0,
            changed: Vec::new(),
        }
    }

    /// Handles a real packet; returns the packet that passes on, if it does, or the reason why it is dropped.
    fn on_packet(&mut self, now: Time, packet: &Packet, from: Port) -> Option<Result<Packet, DropReason>> {
        let mut frames = self.frames.lock();
        let frame = frames.get(packet.handle)?;
        self.delayed_ns = frame.delayed_ns;
        let bytes = if frame.is_changed(packet) {
            self.changed.clone_from(&frame.bytes);
            if frame.change(&mut self.changed[ETHERNET..], packet).is_err() {
                return Some(Err(DropReason::Suppressed));
            }
            &self.changed
        } else {
            &frame.bytes
        };
        let Ok(parsed) = IpPacket::parse(&bytes[ETHERNET..]) else { return Some(Ok(*packet)) };
        if let Transport::Icmp(icmp) = &parsed.transport
            && parsed.transport_checksum() == Checksum::Correct
            && self.proxy.receive_icmp(now, from, icmp)
        {
            return None;
        }
        let Some(segment) = Incoming::of(&parsed) else { return Some(Ok(*packet)) };
        if !matches!(parsed.transport_checksum(), Checksum::Correct | Checksum::Partial) {
            // The host would discard it, and its numbers are not those of the other part.
            self.wrong_checksums += 1;
            return Some(Err(DropReason::Suppressed));
        }
        let away = bytes[..ETHERNET].try_into().expect("a frame has an Ethernet header");
        let mut tag = Tag {
            flow: packet.flow,
            hosts: [packet.src, packet.dst],
            headers: [reversed(away), away],
            is_visible: packet.segment().is_some(),
        };
        if from == Port::RADIO {
            tag.hosts.reverse();
            tag.headers.reverse();
        }
        let is_taken = self.proxy.receive(now, from, tag, &segment);
        (!is_taken).then_some(Ok(*packet))
    }

    /// Sends the packets of the proxy.
    fn send(&mut self, now: Time, out: &mut Out) {
        while let Some(relayed) = self.proxy.poll() {
            match self.store(now, &relayed) {
                Some(packet) => out.send(relayed.to, packet),
                None => self.overflowed += 1,
            }
        }
        self.delayed_ns = 0;
    }

    /// Stores the bytes of a packet of the proxy, and returns the packet; `None` without room for them.
    fn store(&mut self, now: Time, relayed: &Relayed<Tag>) -> Option<Packet> {
        let Relayed { to, tag, scale, packet } = relayed;
        let side = to.index();
        let bytes = packet.to_bytes().ok()?;
        let frame = [&tag.headers[side][..], &bytes].concat();
        let segment = tag.is_visible.then(|| segments::read(&packet.header, *scale));
        let entering = Entering {
            handle: Handle::NONE,
            size: Bytes(bytes.len() as u64),
            dscp: Dscp::DEFAULT,
            ecn: packet.ecn,
            segment,
        };
        let mut frames = self.frames.lock();
        if !frames.has_room(frame.len()) {
            return None;
        }
        let origin = Origin { at: now, side: Side::BOTH[1 - side], connection: None };
        let Entering { handle, size, dscp, ecn, segment } =
            frames.insert(&frame, self.delayed_ns, entering, *scale, origin).entered;
        let body = segment.map_or(Body::Datagram(Datagram { seq: 0, sent: now }), Body::Tcp);
        let (src, dst) = (tag.hosts[1 - side], tag.hosts[side]);
        Some(Packet { src, dst, flow: tag.flow, size, dscp, ecn, handle, body })
    }
}

/// The Ethernet header of the opposite direction.
fn reversed(header: [u8; ETHERNET]) -> [u8; ETHERNET] {
    let mut reversed = header;
    reversed[..6].copy_from_slice(&header[6..12]);
    reversed[6..12].copy_from_slice(&header[..6]);
    reversed
}

impl Component for BaseStation {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        if self.flows.binary_search(&packet.flow).is_err() {
            return self.simulated.receive(now, packet, port, out);
        }
        if let Body::Notice(notice) = &packet.body {
            // An agent's message about a packet of the proxy.
            self.proxy.on_notice(now, port, notice, |tag| tag.flow == packet.flow);
        } else {
            match self.on_packet(now, packet, port) {
                Some(Ok(packet)) => out.send(port.across(), packet),
                Some(Err(reason)) => out.drop(*packet, reason),
                None => {}
            }
        }
        self.send(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        if self.simulated.next_wakeup() <= now {
            self.simulated.wake(now, out);
        }
        if self.proxy.next_wakeup() <= now {
            self.proxy.wake(now);
            self.send(now, out);
        }
    }

    fn next_wakeup(&self) -> Time {
        self.simulated.next_wakeup().min(self.proxy.next_wakeup())
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        self.simulated.on_signal(now, signal, out);
        if let Signal::Reach(reach) = *signal {
            self.proxy.on_reach(now, reach);
            self.send(now, out);
        }
    }

    fn needs_outcome(&self, outcome: LinkOutcome) -> bool {
        self.simulated.needs_outcome(outcome)
    }

    fn count(&self, tally: &mut dyn Tally) {
        let stats = self.proxy.stats();
        tally.total("connections", stats.connections);
        tally.level("open_connections", self.proxy.open_connections() as u64);
        tally.total("refused_connections", stats.refused);
        tally.total("reset_connections", stats.resets);
        tally.total("dropped_syns", stats.dropped_syns);
        tally.total("foreign_segments", stats.foreign_segments);
        tally.total("wrong_checksums", self.wrong_checksums);
        tally.total("overflowed_packets", self.overflowed);
        tally.peak("held_bytes_peak", stats.held_bytes_peak);
        tally.total("acknowledged_undelivered_bytes", stats.undelivered_bytes);
    }
}

#[cfg(test)]
mod tests;
