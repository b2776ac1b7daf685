//! The agent at the base station, with its connections.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lasthop_base::{Duration, Time};

use super::WtcpTimestamps;
use super::connection::{Counters, Fate, State};
use crate::component::{Component, LinkOutcome, Out, Port, Signal, Tally};
use crate::packet::{Body, DropReason, Packet};
use crate::scheme::Site;
use crate::scheme::attachment::Attachment;
use crate::tcp::{Connection, Flags, Segment};

/// Buffers segments to the mobile host and retransmits lost ones.
#[derive(Debug)]
pub(super) struct Agent {
    scheme: WtcpTimestamps,
    connections: BTreeMap<Connection, State>,
    attachment: Attachment,
    counters: Counters,
    peak: u64,
    /// Segments to be sent to the mobile host.
    sending: Vec<Packet>,
}

impl Agent {
    pub(super) fn new(scheme: &WtcpTimestamps, site: &Site<'_>) -> Agent {
        Agent {
            scheme: scheme.clone(),
            connections: BTreeMap::new(),
            attachment: Attachment::new(site.station),
            counters: Counters::default(),
            peak: 0,
            sending: Vec::new(),
        }
    }

    /// Removes a connection, and sends its unsent segments to the mobile host.
    fn remove(&mut self, now: Time, connection: Connection) {
        if let Some(mut state) = self.connections.remove(&connection) {
            state.flush(now, |packet| self.sending.push(packet));
        }
    }

    /// Processes a packet for the mobile host.
    fn on_downlink(&mut self, now: Time, connection: Connection, packet: &Packet, segment: &Segment) -> Fate {
        let is_reset = segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST);
        let known = self.connections.get(&connection);
        if is_reset || known.is_some_and(|state| state.is_outdated(segment)) {
            self.remove(now, connection);
        }
        if is_reset || segment.seq_len() == 0 || !self.attachment.is_attached() {
            return Fate::Forwarded;
        }
        let Agent { scheme, connections, counters, sending, .. } = self;
        if connections.len() >= scheme.connections as usize && !connections.contains_key(&connection) {
            connections.retain(|_, state| !state.is_empty());
            if connections.len() >= scheme.connections as usize {
                return Fate::Forwarded;
            }
        }
        let state = connections.entry(connection).or_insert_with(|| State::new(segment, scheme.hide));
        let fate = state.on_data(now, packet, scheme, counters, &mut |packet| sending.push(packet));
        self.peak = self.peak.max(self.buffered());
        fate
    }

    /// Processes a packet from the mobile host that acknowledges data of `connection`.
    fn on_uplink(&mut self, now: Time, connection: Connection, packet: &mut Packet) -> Fate {
        let Body::Tcp(segment) = &mut packet.body else { return Fate::Forwarded };
        if segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
            self.remove(now, connection);
            return Fate::Forwarded;
        }
        if !segment.flags.has(Flags::ACK) {
            return Fate::Forwarded;
        }
        if self.connections.get(&connection).is_some_and(|state| state.is_contradicted(segment.ack)) {
            self.remove(now, connection);
        }
        let Agent { scheme, connections, counters, sending, .. } = self;
        let Some(state) = connections.get_mut(&connection) else { return Fate::Forwarded };
        let fate = state.on_ack(now, segment, scheme, counters, &mut |packet| sending.push(packet));
        if state.repairs(segment.ack) {
            segment.sack.replace_blocks(&[]);
        }
        if state.has_ended && state.is_empty() {
            connections.remove(&connection);
        }
        fate
    }

    fn buffered(&self) -> u64 {
        self.connections.values().map(|state| state.len() as u64).sum()
    }
}

impl Component for Agent {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        let Packet { src, dst, flow, .. } = *packet;
        let mut packet = *packet;
        let fate = match packet.body {
            Body::Tcp(segment) if port == Port::WIRED => {
                let connection = Connection { src, dst, flow };
                let fate = self.on_downlink(now, connection, &packet, &segment);
                // Acknowledgements and probes are in line with what the buffer has sent before.
                if let Some(state) = self.connections.get_mut(&connection).filter(|_| fate == Fate::Forwarded)
                {
                    state.hide(&mut packet, Duration::ZERO);
                }
                fate
            }
            Body::Tcp(_) => self.on_uplink(now, Connection { src: dst, dst: src, flow }, &mut packet),
            _ => Fate::Forwarded,
        };
        // Segments already in the buffer are sent first.
        self.sending.drain(..).for_each(|packet| out.send(Port::RADIO, packet));
        match fate {
            Fate::Forwarded => out.send(port.across(), packet),
            Fate::Buffered(evicted) => {
                evicted.into_iter().for_each(|evicted| out.drop(evicted, DropReason::QueueFull));
            }
            Fate::Suppressed => out.drop(packet, DropReason::Suppressed),
            Fate::Refused => out.drop(packet, DropReason::QueueFull),
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        let Agent { scheme, connections, counters, .. } = self;
        let mut send = |packet| out.send(Port::RADIO, packet);
        for state in connections.values_mut().filter(|state| state.deadline <= now) {
            if state.is_hopeless(scheme) {
                state.flush(now, &mut send);
            } else {
                state.on_timeout(now, scheme, counters, &mut send);
            }
        }
    }

    fn next_wakeup(&self) -> Time {
        self.connections.values().map(|state| state.deadline).min().unwrap_or(Time::NEVER)
    }

    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    fn kept(&self, visit: &mut dyn FnMut(&Packet)) {
        self.connections.values().flat_map(State::packets).for_each(visit);
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        if self.attachment.update(signal) && !self.attachment.is_attached() {
            for state in self.connections.values_mut() {
                state.flush(now, |packet| out.send(Port::RADIO, packet));
            }
            self.connections.clear();
        }
    }

    /// Segments in the buffers and their peak, and totals: retransmissions, timeouts, suppressed duplicate
    /// ACKs, suppressed retransmissions of the source, and time hidden by timestamps.
    fn count(&self, tally: &mut dyn Tally) {
        let Counters { copies, timeouts, suppressed_dupacks, suppressed_segments, hidden } = self.counters;
        tally.level("buffered_segments", self.buffered());
        tally.peak("buffered_segments_peak", self.peak);
        tally.total("local_retransmissions", copies);
        tally.total("local_timeouts", timeouts);
        tally.total("suppressed_dupacks", suppressed_dupacks);
        tally.total("suppressed_segments", suppressed_segments);
        tally.total("hidden_ms", hidden.as_nanos() / 1_000_000);
    }
}
