//! Multicast to the base stations of a moving host.
//!
//! **What it does.** The network sends packets for a moving host to all its base stations. The current base
//! station transmits them; the others buffer the last few. A host that arrives at a base station reports the
//! packets that it has received. The base station then transmits the rest of its buffer, and later packets as
//! they arrive; the old base station does not forward any. In `"snoop + multicast"`, in this order, the
//! caches of all base stations mirror each other, and losses on the air are also repaired without a pause.
//! **Source.** Balakrishnan, Seshan and Katz, "Improving Reliable Transport and Handoff Performance in
//! Cellular Wireless Networks", ACM Wireless Networks 1(4), 1995, sections 4 and 6.
//! **Parameters.**
//! - `buffer`: maximum number of packets kept at a base station, 12 as in the paper.
//! - `wait`: time after the host's arrival after which a base station transmits its whole buffer even without
//!   an acknowledgement from the host, 100 ms. The paper's host repeats its request instead.
//!
//! **Differences from the paper.** The host reports by an acknowledgement on each of its TCP connections,
//! with the last three segments as SACK blocks if the connection has no SACK; its source ignores them. In the
//! paper it sends the identifiers of the last three packets, of any protocol. Here packets without TCP data
//! are not kept, and those of other protocols not copied. The host reports whenever its signal is back, after
//! fades too. All base stations of the host always receive copies; in the paper the likely next ones do.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use lasthop_base::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arrivals::{ReportArrival, connection_of, has_arrived};
use super::attachment::Attachment;
use super::{Installer, Scheme};
use crate::component::{Component, LinkOutcome, Out, Port, Signal, Tally};
use crate::packet::{DropReason, Packet};
use crate::tcp::{Connection, Flags, Segment, Settings};

/// Multicast to the base stations of a moving host.
///
/// For hosts that move; others only acknowledge when their signal returns after a fade. In `"snoop +
/// multicast"`, in this order, the other base stations also cache packets for the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Multicast {
    /// Maximum number of packets with TCP data buffered for a host at another base station. The oldest ones
    /// are discarded.
    pub buffer: u32,
    /// Time after the host's arrival after which a base station transmits its buffer even without a packet
    /// from the host.
    pub wait: Duration,
}

impl Default for Multicast {
    fn default() -> Multicast {
        Multicast { buffer: 12, wait: Duration::from_millis(100) }
    }
}

impl Scheme for Multicast {
    fn name(&self) -> &'static str {
        "multicast"
    }

    fn summary(&self) -> &'static str {
        "all base stations of a moving host receive its packets, and keep the last few until it reports what it has"
    }

    fn source(&self) -> &'static str {
        "Balakrishnan et al., WINET 1995"
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        match self.wait {
            Duration::ZERO => {
                vec![(String::from("wait"), String::from("found 0 s, expected more than zero"))]
            }
            _ => Vec::new(),
        }
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.copy_to_base_stations();
        installer.watch_signal(Duration::ZERO);
        installer.at_base_station(|site| Agent {
            scheme: self.clone(),
            attachment: Attachment::new(site.station),
            kept: VecDeque::new(),
            deadline: Time::NEVER,
            transmitted: 0,
            discarded: 0,
        });
        installer.at_receiver(&[], ReportArrival::default);
    }
}

/// Buffers packets while the host is at another base station.
#[derive(Debug)]
struct Agent {
    scheme: Multicast,
    attachment: Attachment,
    /// The buffered packets in order of arrival. While the host is present, those of connections without a
    /// report.
    kept: VecDeque<Packet>,
    /// Deadline for transmitting all of them.
    deadline: Time,
    /// Buffered packets that were transmitted, and discarded.
    transmitted: u64,
    discarded: u64,
}

impl Agent {
    /// Processes a packet for the host.
    fn on_downlink(&mut self, packet: &Packet, out: &mut Out) {
        let Some(segment) = packet.segment() else { return out.send(Port::RADIO, *packet) };
        let is_here = self.attachment.is_attached();
        let waits = self.kept.iter().any(|kept| connection_of(kept) == connection_of(packet));
        if is_here && !(waits && segment.seq_len() > 0) {
            out.send(Port::RADIO, *packet);
        } else if segment.seq_len() > 0 {
            self.kept.push_back(*packet);
            self.trim(out);
        } else {
            self.discard(*packet, out);
        }
    }

    /// Discards the oldest packets beyond the capacity, unless they are about to be transmitted.
    fn trim(&mut self, out: &mut Out) {
        let excess = self.kept.len().saturating_sub(self.scheme.buffer as usize);
        if !self.attachment.is_attached() {
            let oldest: Vec<Packet> = self.kept.drain(..excess).collect();
            oldest.into_iter().for_each(|packet| self.discard(packet, out));
        }
    }

    fn discard(&mut self, packet: Packet, out: &mut Out) {
        self.discarded += 1;
        out.drop(packet, DropReason::Suppressed);
    }

    /// Processes the host's report about a connection. Earlier packets were transmitted by the old base
    /// station.
    fn on_report(&mut self, connection: Connection, report: &Segment, out: &mut Out) {
        let Agent { kept, transmitted, discarded, .. } = self;
        let has_arrived = |packet: &Packet| {
            let segment = packet.segment().filter(|_| connection_of(packet) == connection);
            segment.is_some_and(|segment| has_arrived(segment, report))
        };
        let mut old = kept.iter().rposition(has_arrived).map_or(0, |last| last + 1);
        kept.retain(|packet| {
            let was_transmitted = old > 0;
            old = old.saturating_sub(1);
            if connection_of(packet) != connection {
                return true;
            }
            if was_transmitted {
                *discarded += 1;
                out.drop(*packet, DropReason::Suppressed);
            } else {
                *transmitted += 1;
                out.send(Port::RADIO, *packet);
            }
            false
        });
        if kept.is_empty() {
            self.deadline = Time::NEVER;
        }
    }
}

impl Component for Agent {
    fn receive(&mut self, _now: Time, packet: &Packet, port: Port, out: &mut Out) {
        if port == Port::WIRED {
            return self.on_downlink(packet, out);
        }
        out.send(Port::WIRED, *packet);
        let report = packet.segment().filter(|segment| segment.flags.has(Flags::ACK));
        if let Some(report) = report.filter(|_| self.attachment.is_attached() && !self.kept.is_empty()) {
            let Packet { src, dst, flow, .. } = *packet;
            self.on_report(Connection { src: dst, dst: src, flow }, report, out);
        }
    }

    fn wake(&mut self, _now: Time, out: &mut Out) {
        self.deadline = Time::NEVER;
        self.transmitted += self.kept.len() as u64;
        self.kept.drain(..).for_each(|packet| out.send(Port::RADIO, packet));
    }

    fn next_wakeup(&self) -> Time {
        self.deadline
    }

    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    fn kept(&self, visit: &mut dyn FnMut(&Packet)) {
        self.kept.iter().for_each(visit);
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        if self.attachment.update(signal) {
            let waits = self.attachment.is_attached() && !self.kept.is_empty();
            self.deadline = if waits { now + self.scheme.wait } else { Time::NEVER };
            self.trim(out);
        }
    }

    /// Packets kept, and totals: those transmitted when the host had arrived, and those discarded.
    fn count(&self, tally: &mut dyn Tally) {
        tally.level("kept_packets", self.kept.len() as u64);
        tally.total("transmitted_packets", self.transmitted);
        tally.total("discarded_packets", self.discarded);
    }
}
