//! What a firewall of this host does to the clients of splits.

use std::collections::HashSet;
use std::time::Instant;

use lasthop_wire::IpPacket;
use serde_json::json;

use super::Gateway;
use super::syn::Syn;
use crate::doors::{Door, REPEATS, Way};
use crate::kernel::filter;
use crate::kernel::nftables::{ANSWERED, ARRIVED};
use crate::kernel::statements::{Statement, text_of};
use crate::log;
use crate::setup::{Side, bypassed_chains};

/// The place of the checksum in a TCP header.
const CHECKSUM: usize = 16;

/// Whether others filter what is for this host. Without an answer of the kernel, their doing is seen later.
pub(super) fn has_firewall() -> bool {
    filter::input_chains().is_ok_and(|chains| !chains.is_empty())
}

impl Gateway {
    /// Looks whether splits would bypass the firewall, which others may have changed.
    pub(super) fn look_at_firewall(&mut self) {
        let chains = if self.is_observing { Vec::new() } else { bypassed_chains(&self.config) };
        if self.may_split != chains.is_empty() {
            self.may_split = chains.is_empty();
            let meaning = match self.may_split {
                true => "flows are split again",
                false => "flows go on without a split, which would bypass it; see gateway.bypass_firewall",
            };
            log::event("the firewall has changed", json!({"chains": chains, "meaning": meaning}));
        }
    }

    /// What becomes of a SYN at a door. If it is a trial, that is over when this returns.
    pub(super) fn way(&mut self, door: Door, syn: &Syn, now: Instant) -> Way {
        let way = self.doors.way(door, now);
        if way != Way::Trial {
            return way;
        }
        let (Some(before), Some(trial)) = (count(ARRIVED), with_wrong_checksum(&syn.packet)) else {
            return Way::Open;
        };
        // The kernel carries it to its end before this returns.
        if self.queue.replace(syn.id, self.to_listener(syn.mark), &trial).is_err() {
            self.counters.failures.one();
            return Way::Closed;
        }
        let has_arrived = count(ARRIVED).is_none_or(|after| after > before);
        self.upkeep.told(u64::from(has_arrived));
        if self.doors.tried(door, has_arrived, now) {
            log_closed(door, &self.remedies(), "drops or rejects what is for its own sockets");
        }
        Way::Trial
    }

    /// Lets the SYN `id` of a client that has asked `repeats` times again come to the listener. An answer that leaves this host and
    /// is not heard was lost by the radio, or the client is none.
    pub(super) fn answer_again(&mut self, door: Door, (id, mark): (u32, u32), repeats: u32, now: Instant) {
        let counted = || if repeats == REPEATS { count(ANSWERED) } else { None };
        let (before, verdict) = (counted(), self.answer(mark));
        // The kernel answers before this returns.
        if self.queue.decide(id, verdict).is_err() {
            self.counters.failures.one();
        } else if before.is_some() && counted() == before && self.doors.unheard(door, now) {
            log_closed(door, &self.remedies(), "drops what leaves its own sockets");
        }
    }

    /// Notes that a client had an answer.
    pub(super) fn note_heard(&mut self, door: Door, now: Instant) {
        self.upkeep.heard();
        if self.doors.heard(door, now) {
            log::event("clients get answers again", json!({"meaning": "flows are split"}));
        }
    }

    /// Some SYN that was for this host has not arrived: looks which clients it may be from.
    pub(super) fn doubt_doors(&mut self) {
        for (_, server) in self.openings.answering() {
            for side in Side::BOTH {
                self.doors.doubt((side, server.is_ipv4(), server.port()));
            }
        }
    }

    /// Packets behind the SYNs do not arrive, and no client completes its handshake: gives up those that are at it.
    pub(super) fn close_doors(&mut self, now: Instant) {
        let answering: Vec<_> = self.openings.answering().collect();
        for (number, _) in &answering {
            self.openings.remove(*number);
            self.counters.abandoned.one();
        }
        let servers = answering.iter().map(|(_, server)| (server.is_ipv4(), server.port()));
        for (is_ipv4, port) in servers.collect::<HashSet<_>>() {
            for side in Side::BOTH {
                let door = (side, is_ipv4, port);
                if self.doors.tried(door, false, now) {
                    log_closed(door, &self.remedies(), "drops or rejects what follows a SYN");
                }
            }
        }
    }

    /// The lines that open the firewall of this host.
    fn remedies(&self) -> Vec<String> {
        let (mask, value) = (self.marks.mask(), self.marks.local());
        let accept = text_of(&[Statement::Marked { mask, value, is_equal: true }, Statement::Accept]);
        let chains = filter::input_chains().unwrap_or_default();
        match chains.is_empty() {
            // Rules of the former iptables are not among them.
            true => vec![format!("iptables -I INPUT -m mark --mark {value:#010x}/{mask:#010x} -j ACCEPT")],
            false => chains.iter().map(|chain| format!("nft insert rule {chain} '{accept}'")).collect(),
        }
    }
}

/// What the kernel has counted by rules with this name, if it tells.
fn count(name: &str) -> Option<u64> {
    filter::counts().ok()?.get(name).copied()
}

/// A packet that no socket takes for its own, and that no firewall answers.
fn with_wrong_checksum(packet: &[u8]) -> Option<Vec<u8>> {
    let at = IpPacket::parse(packet).ok()?.header_len + CHECKSUM;
    let mut packet = packet.to_vec();
    *packet.get_mut(at)? ^= 1;
    Some(packet)
}

fn log_closed((side, is_ipv4, port): Door, remedies: &[String], cause: &str) {
    log::event(
        "clients get no answer",
        json!({
            "from": if side == Side::Radio { "the radio" } else { "the wire" },
            "version": if is_ipv4 { 4 } else { 6 },
            "port": port,
            "cause": format!("this host does not answer them: its firewall {cause}"),
            "meaning": "flows go on without a split; one is tried every five minutes",
            "remedy": remedies,
        }),
    );
}
