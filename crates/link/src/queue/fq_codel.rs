//! FQ-CoDel: one CoDel queue per flow, served by deficit round robin.
//!
//! *What it does.* A queue may send while it has credits; each round adds a quantum of bytes. A flow whose
//! queue was empty is served before the backlogged flows for its first quantum, so sparse flows do not wait.
//! Each queue has its own CoDel. When the total exceeds the limit, half the packets of the queue with the
//! most bytes, at most 64, are dropped from its head.
//!
//! *Source.* RFC 8290, section 4. The RFC says both that a queue with negative credits has to wait and that
//! this is the case when it "has already dequeued at least a quantum of bytes". Here, as in Linux, a queue
//! without positive credits waits.
//!
//! *Differences.* The queue of a flow is its number in the scenario, modulo the number of queues, so flows
//! share a queue only if they outnumber the queues; a hash would cause random collisions. All packets of a tunnel share one. CoDel compares the
//! backlog of its own queue with the MTU, as in RFC 8289; Linux compares the total of all queues.
//!
//! *Parameters.* See [`Params`].

use std::collections::VecDeque;

use lasthop_base::{Bytes, Duration, Invalid, Stream, Time};
use lasthop_proto::{Body, DropReason, Out, Packet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codel::{self, Control};
use super::fifo::Fifo;
use super::{About, Discipline, Parameters, QueueStats};
use crate::queue::QueueLimit;

/// Maximum number of packets dropped at once from a full queue (RFC 8290 section 4.1).
const LARGEST_BATCH: usize = 64;

/// FQ-CoDel ([RFC 8290](https://www.rfc-editor.org/rfc/rfc8290)) has one CoDel queue per flow. Queues share
/// the link equally by bytes; flows without a backlog are served first. A connection or a source of
/// background traffic is one flow; an application is two flows, requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(rename = "FqCodel")]
pub struct Params {
    /// Total capacity of all queues. Beyond it, half the packets of the queue with the most bytes are
    /// dropped, at most 64. By default 10,240 packets (RFC 8290 section 5.2.3).
    pub limit: QueueLimit,
    /// Bytes that each flow may send per turn. By default 1514 B (RFC 8290 section 5.2.4).
    pub quantum: Bytes,
    /// Number of queues. Flows share queues only if there are more flows than queues. By default 1024 (RFC
    /// 8290 section 5.2.5).
    #[schemars(range(min = 1))]
    pub flows: u32,
    /// Acceptable standing delay. On a slow link it should exceed the transmission time of a packet.
    pub target: Duration,
    /// Time for which the delay may exceed the target: about the maximum usual round-trip time.
    pub interval: Duration,
    /// A backlog of at most this size is always acceptable. Per queue.
    pub mtu: Bytes,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Params {
    fn default() -> Params {
        let codel::Params { target, interval, mtu, ecn, .. } = codel::Params::default();
        let limit = QueueLimit::Packets(10_240);
        Params { limit, quantum: Bytes(1514), flows: 1024, target, interval, mtu, ecn }
    }
}

impl Parameters for Params {
    fn about(&self) -> About {
        About {
            title: "FQ-CoDel",
            summary: "a queue for each flow, each kept short (RFC 8290)",
            expedites: false,
            separates_flows: true,
            deployment: Some(
                "tc qdisc replace dev IF root fq_codel; in Wi-Fi of Linux and OpenWrt by default",
            ),
        }
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn validate(&self) -> Result<(), Invalid> {
        let wrong = |field, problem| Err(Invalid { field, problem });
        if self.target.is_zero() {
            return wrong("fq-codel.target", "found \"0 s\", expected more than zero");
        }
        if self.interval.is_zero() {
            return wrong("fq-codel.interval", "found \"0 s\", expected more than zero");
        }
        if self.quantum == Bytes::ZERO {
            return wrong("fq-codel.quantum", "found \"0 B\", expected at least the size of a packet");
        }
        if self.flows == 0 {
            return wrong("fq-codel.flows", "found 0, expected at least one queue");
        }
        Ok(())
    }

    fn build(&self, _air_time: &dyn Fn(Bytes) -> Duration, _random: Stream) -> Box<dyn Discipline> {
        Box::new(FqCodel::new(*self))
    }
}

/// Queues under FQ-CoDel.
#[derive(Clone, Debug)]
pub struct FqCodel {
    params: Params,
    codel: codel::Params,
    /// The queues used so far. Grown on demand, so it may be shorter than the number of queues.
    flows: Vec<Flow>,
    /// New queues, in the order of their first packets.
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    packets: usize,
    bytes: Bytes,
    stats: QueueStats,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    queue: Fifo,
    control: Control,
    credits: i64,
    /// Whether the queue is in one of the two lists.
    active: bool,
}

impl FqCodel {
    /// Empty queues.
    pub fn new(params: Params) -> FqCodel {
        let Params { limit, target, interval, mtu, ecn, .. } = params;
        FqCodel {
            params,
            codel: codel::Params { limit, target, interval, mtu, ecn },
            flows: Vec::new(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            packets: 0,
            bytes: Bytes::ZERO,
            stats: QueueStats::default(),
        }
    }

    fn is_too_long(&self) -> bool {
        match self.params.limit {
            QueueLimit::Unlimited => false,
            QueueLimit::Packets(most) => self.packets > most as usize,
            QueueLimit::Bytes(most) => self.bytes > most,
        }
    }

    /// Drops packets from the head of the queue with the most bytes; ties go to the lowest index.
    fn drop_from_longest(&mut self, out: &mut Out) {
        let mut longest = 0;
        for index in 1..self.flows.len() {
            if self.flows[index].queue.bytes() > self.flows[longest].queue.bytes() {
                longest = index;
            }
        }
        let queue = &mut self.flows[longest].queue;
        for _ in 0..(queue.len() / 2).clamp(1, LARGEST_BATCH) {
            let (_, packet) = queue.pop().expect("the longest queue has packets");
            self.packets -= 1;
            self.bytes = self.bytes - packet.size;
            self.stats.overflowed += 1;
            out.drop(packet, DropReason::QueueFull);
        }
    }
}

impl Discipline for FqCodel {
    fn enqueue(&mut self, now: Time, packet: Packet, at_once: bool, out: &mut Out) {
        // A tunnel is one flow.
        let flow = if let Body::Coded(_) = packet.body { 0 } else { packet.flow.index() };
        let index = flow % self.params.flows as usize;
        if index >= self.flows.len() {
            self.flows.resize_with(index + 1, Flow::default);
        }
        let flow = &mut self.flows[index];
        if !flow.active {
            flow.active = true;
            flow.credits = self.params.quantum.0 as i64;
            self.new_flows.push_back(index);
        }
        flow.queue.push(now, packet);
        self.packets += 1;
        self.bytes += packet.size;
        while !at_once && self.is_too_long() {
            self.drop_from_longest(out);
        }
    }

    fn dequeue(&mut self, now: Time, out: &mut Out) -> Option<Packet> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let index = *list.front()?;
            let flow = &mut self.flows[index];
            if flow.credits <= 0 {
                flow.credits += self.params.quantum.0 as i64;
                list.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            let before = (flow.queue.len(), flow.queue.bytes());
            let packet = flow.control.dequeue(&self.codel, now, &mut flow.queue, &mut self.stats, out);
            self.packets -= before.0 - flow.queue.len();
            self.bytes = self.bytes - (before.1 - flow.queue.bytes());
            if let Some(packet) = packet {
                flow.credits -= packet.size.0 as i64;
                return Some(packet);
            }
            list.pop_front();
            // A new queue that empties is moved to the old queues for one round (RFC 8290 section 4.2).
            // Otherwise a flow that sends one packet at a time would starve them.
            if is_new {
                self.old_flows.push_back(index);
            } else {
                flow.active = false;
            }
        }
    }

    fn queued(&self) -> (usize, Bytes) {
        (self.packets, self.bytes)
    }

    fn stats(&self) -> &QueueStats {
        &self.stats
    }
}
