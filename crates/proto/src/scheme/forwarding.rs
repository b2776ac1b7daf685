//! Forwarding by the old base station of a moving host.
//!
//! **What it does.** A base station buffers the last data segments that it has sent to the mobile host, until they are
//! acknowledged, and what arrives for the host after it has left. The base station that the host reaches requests these
//! packets. The old one forwards them through the wired network in an outer IP header, and so whatever arrives later. A
//! host that has arrived reports the segments that it has, so that the new base station transmits the others only.
//! **Source.** Perkins and Johnson, "Route Optimization in Mobile IP" (Internet Drafts, from 1994), section on smooth
//! hand-offs: the previous foreign agent is notified, and forwards later packets. The buffer is that of later proposals,
//! such as Perkins and Wang, "Optimized Smooth Handoffs in Mobile IP", ISCC 1999. The drafts' and the paper's texts were not
//! at hand; Seshan's thesis (Berkeley 1995, section 2.3.6) summarises the first.
//! **Parameters.**
//! - `buffer`: maximum number of packets kept at a base station, 50, a window of 64 KB and some: our choice. With 0, only
//!   packets that arrive after the request are forwarded.
//! - `wait`: time after which forwarded packets are transmitted even without a report of the host, 100 ms as of
//!   `multicast`.
//!
//! **Differences from the sources.** The host reports by an acknowledgement on each of its TCP connections, as with
//! `multicast`; in the paper it sends the identifiers of packets of any protocol. Of packets without TCP data, only those
//! that arrive after the host has left are buffered. The request is sent once: if it is lost, nothing is forwarded. Packets
//! that reach the new base station directly may overtake forwarded ones.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use lasthop_base::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arrivals::{ReportArrival, connection_of, has_arrived};
use super::forwarder::{Forwarder, FromPeer};
use super::{Installer, Scheme, Site};
use crate::component::{Component, LinkOutcome, Out, Port, Signal, Tally};
use crate::packet::{DropReason, Packet};
use crate::tcp::{Connection, Flags, Segment, Settings};

/// Forwarding by the old base station of a moving host.
///
/// For hosts that move; others only acknowledge when their signal returns after a fade. The base stations of
/// a host need wired paths to each other. In a combination with schemes that cache or repair segments, name
/// `forwarding` first: `"forwarding + snoop"`. It does not combine with `multicast` and with Snoop's
/// `transfer`, which would bring each packet twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Forwarding {
    /// Maximum number of packets kept at a base station: data segments that were sent to the host and are not
    /// acknowledged, and everything that arrives after it has left. With 0, only packets that arrive after
    /// the request of the new base station are forwarded.
    pub buffer: u32,
    /// Time after which forwarded segments are transmitted even without an acknowledgement from the host.
    pub wait: Duration,
}

impl Default for Forwarding {
    fn default() -> Forwarding {
        Forwarding { buffer: 50, wait: Duration::from_millis(100) }
    }
}

impl Scheme for Forwarding {
    fn name(&self) -> &'static str {
        "forwarding"
    }

    fn summary(&self) -> &'static str {
        "the old base station of a moving host forwards its packets to the new one, to which it reports what it has"
    }

    fn source(&self) -> &'static str {
        "Perkins and Johnson 1994"
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        match self.wait {
            Duration::ZERO => {
                vec![(String::from("wait"), String::from("found 0 s, expected more than zero"))]
            }
            _ => Vec::new(),
        }
    }

    fn reads_tcp(&self) -> bool {
        false
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.watch_signal(Duration::ZERO);
        installer.at_connected_base_stations(|site| Agent::new(self, site));
        installer.at_receiver(&[], ReportArrival::default);
    }
}

/// A base station: the old one, the new one, or the only one.
#[derive(Debug)]
struct Agent {
    scheme: Forwarding,
    forwarder: Forwarder,
    /// While the host is here, data segments that were sent to it and are not acknowledged; while it is away, what has
    /// arrived for it as well. In order of arrival.
    buffer: VecDeque<Kept>,
    /// Packets that wait for a report of their connection, in order of arrival, while the host is here.
    waiting: VecDeque<Packet>,
    /// When they are transmitted without a report.
    deadline: Time,
    /// The latest acknowledgement of each connection since the host arrived.
    reports: Vec<(Connection, Segment)>,
    counters: Counters,
}

/// A packet that may have to be forwarded.
#[derive(Clone, Copy, Debug)]
struct Kept {
    packet: Packet,
    /// Whether it was sent to the host from here.
    was_sent: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    requests: u64,
    forwarded: u64,
    transmitted: u64,
    discarded: u64,
}

impl Agent {
    fn new(scheme: &Forwarding, site: &Site<'_>) -> Agent {
        Agent {
            scheme: scheme.clone(),
            forwarder: Forwarder::new(site),
            buffer: VecDeque::new(),
            waiting: VecDeque::new(),
            deadline: Time::NEVER,
            reports: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Handles a packet for the host.
    fn on_downlink(&mut self, packet: &Packet, out: &mut Out) {
        if !self.forwarder.is_here() {
            return self.on_absent(packet, out);
        }
        if self.waits(packet) {
            return self.waiting.push_back(*packet);
        }
        out.send(Port::RADIO, *packet);
        if packet.segment().is_some_and(|segment| segment.seq_len() > 0) {
            self.keep(Kept { packet: *packet, was_sent: true }, out);
        }
    }

    /// Whether earlier packets of the same connection wait for a report.
    fn waits(&self, packet: &Packet) -> bool {
        let is_of_same = |other: &Packet| connection_of(other) == connection_of(packet);
        packet.segment().is_some() && self.waiting.iter().any(is_of_same)
    }

    /// Handles a packet for the host, which is away: forwards it, or keeps it for a request.
    fn on_absent(&mut self, packet: &Packet, out: &mut Out) {
        if self.forwarder.forward(packet, out) {
            self.counters.forwarded += 1;
        } else {
            self.keep(Kept { packet: *packet, was_sent: false }, out);
        }
    }

    fn keep(&mut self, kept: Kept, out: &mut Out) {
        self.buffer.push_back(kept);
        if self.buffer.len() > self.scheme.buffer as usize
            && let Some(Kept { packet, was_sent: false }) = self.buffer.pop_front()
        {
            out.drop(packet, DropReason::Unreachable);
        }
    }

    /// Handles an acknowledgement of the host for data of `connection`.
    fn on_ack(&mut self, connection: Connection, ack: &Segment, out: &mut Out) {
        if self.forwarder.is_here() {
            match self.reports.iter_mut().find(|(known, _)| *known == connection) {
                Some((_, report)) => *report = *ack,
                None => self.reports.push((connection, *ack)),
            }
        }
        let is_known = |packet: &Packet| {
            let segment = packet.segment().filter(|_| connection_of(packet) == connection);
            segment.is_some_and(|segment| has_arrived(segment, ack))
        };
        let mut known = Vec::new();
        self.buffer.retain(|kept| {
            let stays = !is_known(&kept.packet);
            known.extend((!stays && !kept.was_sent).then_some(kept.packet));
            stays
        });
        // Another transmission has brought the data.
        known.into_iter().for_each(|packet| self.discard(packet, out));
        if self.waiting.iter().any(|packet| connection_of(packet) == connection) {
            self.transmit(|packet| connection_of(packet) == connection, out);
        }
    }

    /// Transmits the waiting packets for which `is_due`, except those that the host has.
    fn transmit(&mut self, is_due: impl Fn(&Packet) -> bool, out: &mut Out) {
        let (due, waiting) = core::mem::take(&mut self.waiting).into_iter().partition(is_due);
        self.waiting = waiting;
        let due: VecDeque<Packet> = due;
        due.into_iter().for_each(|packet| self.on_forwarded(packet, out));
        if self.waiting.is_empty() {
            self.deadline = Time::NEVER;
        }
    }

    /// Transmits a packet after a hand-off, or drops it if the host has it.
    fn on_forwarded(&mut self, packet: Packet, out: &mut Out) {
        let report = self.report_of(&packet);
        let has_it =
            packet.segment().zip(report).is_some_and(|(segment, report)| has_arrived(segment, &report));
        if has_it {
            self.discard(packet, out);
        } else {
            self.counters.transmitted += 1;
            self.on_downlink(&packet, out);
        }
    }

    fn discard(&mut self, packet: Packet, out: &mut Out) {
        self.counters.discarded += 1;
        out.drop(packet, DropReason::Suppressed);
    }

    fn report_of(&self, packet: &Packet) -> Option<Segment> {
        let of = |(connection, _): &&(Connection, Segment)| *connection == connection_of(packet);
        self.reports.iter().find(of).map(|(_, report)| *report)
    }

    /// Handles a packet from another base station.
    fn on_control(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        match self.forwarder.receive(packet) {
            FromPeer::Request => {
                self.counters.requests += 1;
                if self.forwarder.forwards() {
                    let kept = core::mem::take(&mut self.buffer);
                    kept.iter().for_each(|kept| self.on_absent(&kept.packet, out));
                }
            }
            FromPeer::Forwarded(packet) if !self.forwarder.is_here() => self.on_absent(&packet, out),
            FromPeer::Forwarded(packet) => self.await_report(now, packet, out),
        }
    }

    /// Handles a packet for the host, which has arrived and may have the packet.
    fn await_report(&mut self, now: Time, packet: Packet, out: &mut Out) {
        let is_data = packet.segment().is_some_and(|segment| segment.seq_len() > 0);
        if self.waits(&packet) || (is_data && self.report_of(&packet).is_none()) {
            self.waiting.push_back(packet);
            self.deadline = self.deadline.min(now + self.scheme.wait);
        } else {
            self.on_forwarded(packet, out);
        }
    }
}

impl Component for Agent {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        match port {
            Port::CONTROL => self.on_control(now, packet, out),
            Port::WIRED => self.on_downlink(packet, out),
            _ => {
                out.send(Port::WIRED, *packet);
                if let Some(segment) = packet.segment().filter(|segment| segment.flags.has(Flags::ACK)) {
                    let Packet { src, dst, flow, .. } = *packet;
                    self.on_ack(Connection { src: dst, dst: src, flow }, segment, out);
                }
            }
        }
    }

    fn wake(&mut self, _now: Time, out: &mut Out) {
        self.transmit(|_| true, out);
    }

    fn next_wakeup(&self) -> Time {
        self.deadline
    }

    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    fn kept(&self, visit: &mut dyn FnMut(&Packet)) {
        self.buffer.iter().map(|kept| &kept.packet).chain(&self.waiting).for_each(visit);
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        if !self.forwarder.on_signal(signal, out) {
            return;
        }
        let (waiting, kept) = (core::mem::take(&mut self.waiting), core::mem::take(&mut self.buffer));
        self.deadline = Time::NEVER;
        if self.forwarder.is_here() {
            self.reports.clear();
            // The host has returned before its packets were requested.
            kept.iter().for_each(|kept| self.await_report(now, kept.packet, out));
        } else {
            self.buffer = kept;
            waiting.iter().for_each(|packet| self.on_absent(packet, out));
        }
    }

    /// Packets kept, and totals: requests received, packets forwarded to another base station, packets transmitted to the
    /// host after a hand-off, and packets discarded because the host had them.
    fn count(&self, tally: &mut dyn Tally) {
        let Counters { requests, forwarded, transmitted, discarded } = self.counters;
        tally.level("kept_packets", (self.buffer.len() + self.waiting.len()) as u64);
        tally.total("requests", requests);
        tally.total("forwarded_packets", forwarded);
        tally.total("transmitted_packets", transmitted);
        tally.total("discarded_packets", discarded);
    }
}
