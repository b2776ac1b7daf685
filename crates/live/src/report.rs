//! The result of an emulation.

use std::collections::BTreeMap;

use crate::emulation::LinkCounters;
use serde::Serialize;

use crate::recorder::{ConnectionReport, ConnectionTrace, LatenessRecord};

/// The result of an emulation, serialised by `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Time from the first packet to the end, in seconds.
    pub duration_s: f64,
    /// Processor time of the thread that carried the packets, in seconds.
    pub cpu_s: f64,
    /// The two ends: source and destination of the scenario's first connection.
    pub ends: [SideReport; 2],
    /// Packets dropped by links.
    pub lost_packets: u64,
    /// Packets dropped by agents of schemes.
    pub suppressed_packets: u64,
    /// TCP packets hidden from agents: those with a wrong checksum, and those of connections without a lane.
    pub opaque_packets: u64,
    /// Packets that were marked by a queue (ECN).
    pub marked_packets: u64,
    /// Super-packets that were cut into segments on entry.
    pub segmented_packets: u64,
    /// Packets in the network at the end.
    pub in_network_packets: u64,
    /// Packets held only by agents at the end.
    pub kept_packets: u64,
    /// Packets that left the network after their receiver had ended.
    pub undelivered_packets: u64,
    /// Packets dropped because this machine was too slow: read too late, beyond the memory limit, or without room at
    /// the receiver.
    pub overload_drops: u64,
    /// The lateness of packets.
    pub lateness: Lateness,
    /// Frames that did not enter the network.
    pub unforwarded: Unforwarded,
    /// Counters of the links.
    pub links: Vec<LinkCounters>,
    /// Counters of the schemes' agents, by the names of their metrics.
    pub schemes: BTreeMap<String, u64>,
    /// The number of simulated flows that share the network.
    pub simulated_flows: usize,
    /// TCP connections with data, those with most first.
    pub connections: Vec<ConnectionReport>,
    /// Their traces, if wanted.
    #[serde(skip)]
    pub traces: Vec<ConnectionTrace>,
    /// The lateness of each packet that left the network, if wanted.
    #[serde(skip)]
    pub packets: Option<LatenessRecord>,
}

/// One end of the network.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SideReport {
    /// The name of the host in the scenario.
    pub host: String,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent, with IP headers.
    pub sent_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Bytes received, with IP headers.
    pub received_bytes: u64,
}

/// The lateness of packets: the wait before the read plus the time from the deadline to the write.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Lateness {
    /// The median, in seconds.
    pub p50_s: f64,
    /// The 99th percentile.
    pub p99_s: f64,
    /// The maximum.
    pub max_s: f64,
}

/// Frames that did not enter the network, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unforwarded {
    /// Not IP, or an unreadable IP header.
    pub not_ip: u64,
    /// For the local link only: multicast, broadcast, link-local addresses.
    pub link_local: u64,
    /// Larger than the MTU: super-packets that cannot be cut into segments.
    pub oversized: u64,
    /// Sent long before the emulation began, when the other end was not there.
    pub early: u64,
}
