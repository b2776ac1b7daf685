//! The base station's agent: its connection table and its packet handling.
//!
//! **Connections.** A connection is added to the [table](crate::scheme::connections) with the first data segment
//! towards the wireless link, and identified by its addresses and flow. It is removed when its FIN is
//! acknowledged, on a reset, on a SYN, after a long idle time, and when an acknowledgement contradicts the cache.
//! **Cost.** One table lookup per packet, a few more to add or remove a connection, and a binary search in the
//! cache for segments out of sequence and for acknowledgements; a scan of the connection table for each timeout.

use alloc::vec::Vec;

use lasthop_base::{BitRate, Duration, Time};

use super::Snoop;
use super::connection::{Answer, Counters, LinkFacts, SnoopState};
use crate::component::{Component, LinkOutcome, Out, Port, Signal, Tally};
use crate::packet::{Body, DropReason, Packet};
use crate::scheme::Site;
use crate::scheme::connections::ConnectionTable;
use crate::scheme::forwarder::{Forwarder, FromPeer};
use crate::tcp::{Connection, Flags, Segment};

/// Retransmits segments to the mobile host and suppresses acknowledgements from it.
#[derive(Debug)]
pub(super) struct Agent {
    scheme: Snoop,
    /// Connections with data towards the wireless link.
    connections: ConnectionTable<SnoopState>,
    /// Lower bound of the connections' deadlines.
    deadline: Time,
    /// Rate and delay of the link to the mobile host.
    rate: BitRate,
    delay: Duration,
    forwarder: Forwarder,
    /// Copies to send after the current packet.
    repairs: Vec<Packet>,
    counters: Counters,
}

impl Agent {
    pub(super) fn new(scheme: &Snoop, site: &Site<'_>) -> Agent {
        Agent {
            rate: site.rate,
            delay: site.delay,
            forwarder: Forwarder::new(site),
            scheme: scheme.clone(),
            connections: ConnectionTable::new(scheme.connections, scheme.idle),
            deadline: Time::NEVER,
            repairs: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Handles a segment towards the mobile host.
    fn on_downlink(
        &mut self,
        now: Time,
        connection: Connection,
        packet: &Packet,
        segment: &Segment,
        is_forwarded: bool,
    ) -> Answer {
        if segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
            self.connections.remove_connection(connection);
        } else if segment.seq_len() > 0 {
            return self.on_data(now, connection, packet, segment, is_forwarded);
        }
        Answer::FORWARD
    }

    fn on_data(
        &mut self,
        now: Time,
        connection: Connection,
        packet: &Packet,
        segment: &Segment,
        is_forwarded: bool,
    ) -> Answer {
        let link = LinkFacts {
            is_away: !self.forwarder.is_here(),
            is_forwarded,
            latency: self.rate.time_for(packet.size) + self.delay,
        };
        let Agent { scheme, connections, counters, deadline, .. } = self;
        let slot = connections.find_or_add(now, connection, segment);
        let on_data = |state: &mut SnoopState| state.on_data(now, packet, segment, link, scheme, counters);
        let answer = connections.update(now, slot, on_data);
        *deadline = (*deadline).min(connections[slot].deadline(scheme));
        answer
    }

    /// Handles a segment from the mobile host, which may acknowledge data of `connection`.
    fn on_uplink(&mut self, now: Time, connection: Connection, packet: &Packet, segment: &Segment) -> Answer {
        let Agent { scheme, connections, counters, deadline, repairs, .. } = self;
        if segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
            connections.remove_connection(connection);
            return Answer::FORWARD;
        }
        // Packets that arrive from a departed mobile host are its last through this base station.
        if !segment.flags.has(Flags::ACK) || !self.forwarder.is_here() {
            return Answer::FORWARD;
        }
        let Some(slot) = connections.find(now, connection) else { return Answer::FORWARD };
        if connections[slot].is_contradicted(segment) {
            connections.remove(slot);
            return Answer::FORWARD;
        }
        let on_ack = |state: &mut SnoopState| {
            let answer = state.on_ack(now, packet, segment, scheme, counters);
            if scheme.selective {
                state.repair_gaps(now, scheme, counters, |copy| repairs.push(copy));
            }
            answer
        };
        let answer = connections.update(now, slot, on_ack);
        *deadline = (*deadline).min(connections[slot].deadline(scheme));
        if connections[slot].has_ended() {
            connections.remove(slot);
        }
        answer
    }

    /// Handles a packet from another base station.
    fn on_control(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        match self.forwarder.receive(packet) {
            FromPeer::Request if self.forwarder.forwards() => {
                let Agent { connections, forwarder, counters, deadline, .. } = self;
                for packet in connections.states().flat_map(SnoopState::segments) {
                    counters.transferred += 1;
                    forwarder.forward(packet, out);
                }
                connections.clear();
                *deadline = Time::NEVER;
            }
            FromPeer::Request => {}
            FromPeer::Forwarded(packet) if self.forwarder.forward(&packet, out) => {}
            FromPeer::Forwarded(packet) => {
                let Packet { src, dst, flow, .. } = packet;
                let answer = packet.segment().filter(|_| !self.scheme.encrypted).map(|segment| {
                    self.on_downlink(now, Connection { src, dst, flow }, &packet, segment, true)
                });
                if answer.is_none_or(|answer| answer.forward) {
                    out.send(Port::RADIO, packet);
                } else {
                    out.drop(packet, DropReason::Suppressed);
                }
            }
        }
    }
}

impl Component for Agent {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        if port == Port::CONTROL {
            return self.on_control(now, packet, out);
        }
        let Packet { src, dst, flow, .. } = *packet;
        let answer = match &packet.body {
            _ if port == Port::WIRED && self.forwarder.forward(packet, out) => return,
            Body::Tcp(segment) if !self.scheme.encrypted => match port {
                Port::WIRED => self.on_downlink(now, Connection { src, dst, flow }, packet, segment, false),
                _ => self.on_uplink(now, Connection { src: dst, dst: src, flow }, packet, segment),
            },
            _ => Answer::FORWARD,
        };
        if answer.forward {
            out.send(port.across(), *packet);
        } else {
            out.drop(*packet, DropReason::Suppressed);
        }
        if let Some(copy) = answer.to_mobile {
            out.send(Port::RADIO, copy);
        }
        for copy in self.repairs.drain(..) {
            out.send(Port::RADIO, copy);
        }
        if let Some(ack) = answer.to_source {
            out.send(Port::WIRED, ack);
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        let Agent { scheme, connections, counters, deadline, .. } = self;
        *deadline = Time::NEVER;
        connections.for_each(|state| {
            if let Some(copy) = state.on_timeout(now, scheme, counters) {
                out.send(Port::RADIO, copy);
            }
            *deadline = (*deadline).min(state.deadline(scheme));
        });
    }

    fn next_wakeup(&self) -> Time {
        if self.forwarder.is_here() { self.deadline } else { Time::NEVER }
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        if self.forwarder.on_signal(signal, out) && self.forwarder.is_here() {
            // The mobile host was away, not silent.
            self.deadline = Time::NEVER;
            self.connections.for_each(|state| {
                let floor = self.rate.time_for(state.oldest_size()) + self.delay * 2;
                state.resume(now, floor);
                self.deadline = self.deadline.min(state.deadline(&self.scheme));
            });
        }
    }

    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    fn kept(&self, visit: &mut dyn FnMut(&Packet)) {
        self.connections.states().flat_map(SnoopState::packets).for_each(visit);
    }

    /// Cached segments and connections, the peak of cached segments, and totals: segments that the source
    /// retransmitted or that the full cache left out, copies sent and those of them after a timeout or silence,
    /// suppressed and forwarded duplicate ACKs, outdated ACKs, acknowledged segments that were answered, and segments sent
    /// to the next base station. Idle connections count until another packet causes their removal.
    fn count(&self, tally: &mut dyn Tally) {
        let Counters {
            uncached,
            sender_retransmissions,
            copies,
            timeouts,
            persists,
            suppressed_dupacks,
            forwarded_dupacks,
            spurious_acks,
            answered,
            transferred,
        } = self.counters;
        tally.level("cached_segments", self.connections.cached() as u64);
        tally.peak("cached_segments_peak", self.connections.cached_peak() as u64);
        tally.level("connections", self.connections.len() as u64);
        tally.total("uncached_segments", uncached);
        tally.total("source_retransmissions", sender_retransmissions);
        tally.total("local_retransmissions", copies);
        tally.total("local_timeouts", timeouts);
        tally.total("persist_timeouts", persists);
        tally.total("suppressed_dupacks", suppressed_dupacks);
        tally.total("forwarded_dupacks", forwarded_dupacks);
        tally.total("spurious_acks", spurious_acks);
        tally.total("answered_segments", answered);
        tally.total("transferred_segments", transferred);
    }
}
