//! PEMI: retransmission by an observer between the ends.
//!
//! **What it does.** The base station keeps the packets of QUIC that it sends to a mobile host, and infers from the times of what comes back which of
//! them are lost, and sends these again. It reads nothing, and neither end knows of it. Packets come in groups, flowlets, with
//! gaps between them, so a reply tells which flowlet it acknowledges.
//! **Source.** Zhang, Zhang, Wang, Sun, Hu, Xie, Lai and Cui, "PEMI: Transparent Performance Enhancements for QUIC",
//! arXiv 2602.12732, 2026. The abstract and the authors' code (github.com/anonymous202511/pemi) were at hand.
//! **Parameters.**
//! - `gap`: the gap that ends a flowlet, in smoothed intervals of packets, 2 as in the code.
//! - `patience`: how much later than a round trip after its packet a reply may come, in gaps, 0.5 as the authors run it.
//! - `packets`: maximum number of packets in a flowlet that is protected, 100 as in the paper.
//!
//! **State.** At most 1,000 packets and 256 connections; those idle for 120 s are removed, all when a moving host comes or leaves.
//!
//! **Differences from the paper.**
//! - Its congestion control (after Copa), which withholds repairs and reorders replies while a connection sends too fast, is left
//!   out: a packet that the queue before the link has dropped is sent again, too.
//! - The round-trip time is measured by flowlets only. The authors' code also pings the mobile host, which here does not answer.
//! - A flowlet with more than `packets` is not protected, as the paper says; the code judges the part of it that has come.
//! - Data are those towards the mobile host, as in the code, which compares both directions over the round trip of both ends. That to
//!   the fixed host is not measured here: they are compared over the round trip to the mobile host, and 100 ms at least.

mod observer;
#[cfg(test)]
mod tests;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::observer::Observer;
use super::attachment::Attachment;
use super::connections::{ConnectionTable, Slot};
use super::{Deployment, Installer, Scheme, Site};
use crate::component::{Component, LinkOutcome, Out, Port, Signal, Tally};
use crate::packet::{Body, FlowId, Handle, Packet};
use crate::tcp::{Connection, Settings};

/// Bounds of the table of connections, those of `snoop`.
const CONNECTIONS: u32 = 256;
const IDLE: Duration = Duration::from_secs(120);

/// Retransmission by an observer between the ends.
///
/// For QUIC only, unread: the base station infers from the times of packets and replies which packets are lost, and sends them
/// again. Neither end knows of it. Only groups of packets with gaps between them are protected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pemi {
    /// The gap between packets that ends a group, in smoothed intervals of packets.
    pub gap: f64,
    /// How much later than a round trip after its packet a reply may come, in gaps.
    pub patience: f64,
    /// Maximum number of packets in a group that is protected.
    pub packets: u32,
}

impl Default for Pemi {
    fn default() -> Pemi {
        Pemi { gap: 2.0, patience: 0.5, packets: 100 }
    }
}

impl Scheme for Pemi {
    fn name(&self) -> &'static str {
        "pemi"
    }

    fn summary(&self) -> &'static str {
        "the base station infers losses of QUIC from the times of packets and replies, and retransmits them"
    }

    fn source(&self) -> &'static str {
        "Zhang et al., arXiv 2602.12732"
    }

    fn deployment(&self) -> Option<Deployment> {
        Some(Deployment {
            place: "base station",
            products: None,
            cost: "repairs arrive late, which QUIC may take for losses; what is not lost may be sent twice",
            variants: &[&[]],
        })
    }

    fn reads_tcp(&self) -> bool {
        false
    }

    fn needs_quic(&self) -> bool {
        true
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        let factors = [("gap", self.gap, 1.0), ("patience", self.patience, 0.1)];
        let invalid = factors.into_iter().filter(|(_, factor, least)| !(*least..=1_000.0).contains(factor));
        let mut faults: Vec<_> = invalid
            .map(|(key, found, least)| (key.into(), format!("found {found}, expected from {least} to 1000")))
            .collect();
        if !(1..=1_000).contains(&self.packets) {
            faults.push(("packets".into(), format!("found {}, expected from 1 to 1000", self.packets)));
        }
        faults
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.at_base_station(|site| Agent::new(self, site));
    }
}

/// The observer at a base station.
#[derive(Debug)]
struct Agent {
    scheme: Pemi,
    attachment: Attachment,
    observers: ConnectionTable<Observer>,
    /// Number of repairs of each flow.
    repairs: BTreeMap<FlowId, u64>,
    abandoned: u64,
    /// Lower bound of the deadlines of observers.
    deadline: Time,
}

/// Whether a packet is of QUIC, which an observer knows by the first ones of a connection.
fn is_quic(packet: &Packet) -> bool {
    matches!(packet.body, Body::Datagram(_)) && packet.handle != Handle::NONE
}

impl Agent {
    fn new(scheme: &Pemi, site: &Site<'_>) -> Agent {
        Agent {
            scheme: scheme.clone(),
            attachment: Attachment::new(site.station),
            observers: ConnectionTable::new(CONNECTIONS, IDLE),
            repairs: BTreeMap::new(),
            abandoned: 0,
            deadline: Time::NEVER,
        }
    }

    fn on_packet(&mut self, now: Time, packet: &Packet) {
        let Packet { src, dst, flow, .. } = *packet;
        let slot = self.observers.find_or_add(now, Connection { src, dst, flow }, &());
        let Agent { scheme, observers, abandoned, .. } = self;
        let deadline = observers.update(now, slot, |observer| {
            observer.on_packet(now, packet, scheme, abandoned);
            observer.deadline(scheme)
        });
        // Intervals that become shorter bring the deadline forward.
        self.deadline = self.deadline.min(deadline.max(now));
    }

    /// What the mobile host sends has the addresses and ports of what it receives. Here the two directions of an application
    /// have flows with numbers that follow each other.
    fn on_reply(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        let Packet { src: dst, dst: src, flow, size, .. } = *packet;
        let flows = [flow, FlowId(flow.0.saturating_add(1))];
        let found =
            flows.into_iter().find_map(|flow| self.observers.find(now, Connection { src, dst, flow }));
        let Some(slot) = found else { return };
        self.change(now, slot, out, |observer, scheme, abandoned| {
            observer.on_reply(now, size, scheme, abandoned)
        });
    }

    /// Changes an observer, and repairs what it takes for lost.
    fn change(
        &mut self,
        now: Time,
        slot: Slot,
        out: &mut Out,
        change: impl FnOnce(&mut Observer, &Pemi, &mut u64) -> Vec<Packet>,
    ) {
        let Agent { scheme, observers, repairs, abandoned, .. } = self;
        for packet in observers.update(now, slot, |observer| change(observer, scheme, abandoned)) {
            *repairs.entry(packet.flow).or_default() += 1;
            out.send(Port::RADIO, packet);
        }
        self.deadline = self.deadline.min(observers[slot].deadline(scheme).max(now));
    }
}

impl Component for Agent {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        out.send(port.across(), *packet);
        if !is_quic(packet) || !self.attachment.is_attached() {
            return;
        }
        match port {
            Port::WIRED => self.on_packet(now, packet),
            Port::RADIO => self.on_reply(now, packet, out),
            _ => {}
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.deadline = Time::NEVER;
        for slot in self.observers.slots() {
            if self.observers[slot].deadline(&self.scheme) <= now {
                self.change(now, slot, out, |observer, scheme, abandoned| {
                    observer.on_time(now, scheme, abandoned)
                });
            }
            self.deadline = self.deadline.min(self.observers[slot].deadline(&self.scheme));
        }
    }

    fn next_wakeup(&self) -> Time {
        self.deadline
    }

    fn on_signal(&mut self, _now: Time, signal: &Signal, _out: &mut Out) {
        if self.attachment.update(signal) {
            self.observers.clear();
            self.deadline = Time::NEVER;
        }
    }

    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    fn kept(&self, visit: &mut dyn FnMut(&Packet)) {
        self.observers.states().for_each(|observer| observer.visit(visit));
    }

    fn repaired(&self, flow: FlowId) -> u64 {
        self.repairs.get(&flow).copied().unwrap_or(0)
    }

    /// Repairs, and groups of packets that were too large to be protected. Levels: packets kept, and their peak.
    fn count(&self, tally: &mut dyn Tally) {
        tally.total("repairs", self.repairs.values().sum());
        tally.total("abandoned_groups", self.abandoned);
        tally.level("kept_packets", self.observers.cached() as u64);
        tally.peak("kept_packets_peak", self.observers.cached_peak() as u64);
    }
}
