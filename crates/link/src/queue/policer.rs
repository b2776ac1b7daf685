//! A token-bucket policer: packets that exceed a rate are dropped, and none waits for it.
//!
//! *What it does.* A bucket of `burst` fills at `rate`. A packet that finds as many tokens as it has bytes takes them and
//! passes; another one is dropped. What passes waits only for the link itself, in a FIFO.
//!
//! *Source.* The action `police` of Linux (tc-police, one rate, `conform-exceed drop`). Policers of operators: Flach et
//! al., "An Internet-wide analysis of traffic policing", SIGCOMM 2016.
//!
//! *Parameters.* See [`Params`].

use lasthop_base::{BitRate, Bytes, Duration, Invalid, Stream, Time};
use lasthop_proto::{DropReason, Out, Packet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::Fifo;
use super::{About, Discipline, Parameters, QueueStats};
use crate::queue::QueueLimit;

/// A token bucket without a queue, as `tc police` and the policers of operators: packets above a rate are dropped
/// instead of delayed. It limits a flow only if the link behind it is faster. Its drops are `aqm_drops`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(rename = "Policer")]
pub struct Params {
    /// Capacity of the queue before the link, behind the policer.
    pub limit: QueueLimit,
    /// Rate at which tokens arrive, counting the sizes of packets with their headers. By default 10 Mbps.
    pub rate: BitRate,
    /// Size of the bucket, which is full at the start. A packet that is larger never passes, so it holds
    /// at least the largest one. By default ten packets of
    /// 1500 B.
    pub burst: Bytes,
}

impl Default for Params {
    fn default() -> Params {
        let rate = BitRate::from_bps(10_000_000).expect("a rate");
        Params { limit: QueueLimit::Unlimited, rate, burst: Bytes(15_000) }
    }
}

impl Parameters for Params {
    fn about(&self) -> About {
        About {
            title: "policer",
            summary: "drops packets that exceed a rate instead of delaying them (tc police)",
            expedites: false,
            separates_flows: false,
            deployment: None,
        }
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn validate(&self) -> Result<(), Invalid> {
        let wrong = |problem| Err(Invalid { field: "policer.burst", problem });
        match self.burst {
            Bytes(0) => {
                wrong("found \"0 B\", with which no packet passes; expected at least the size of a packet")
            }
            Bytes(..=1_000_000_000) => Ok(()),
            _ => wrong("found a larger one, expected at most 1 GB"),
        }
    }

    fn largest_packet(&self) -> Option<Bytes> {
        Some(self.burst)
    }

    fn build(&self, _air_time: &dyn Fn(Bytes) -> Duration, _random: Stream) -> Box<dyn Discipline> {
        Box::new(Policer::new(*self))
    }
}

/// A policer, and the FIFO behind it.
#[derive(Clone, Debug)]
pub struct Policer {
    params: Params,
    queue: Fifo,
    /// Tokens at `counted`, as the time in which they arrive.
    tokens: Duration,
    counted: Time,
    stats: QueueStats,
}

impl Policer {
    /// A full bucket and an empty queue.
    pub fn new(params: Params) -> Policer {
        let tokens = params.rate.time_for(params.burst);
        Policer { params, queue: Fifo::default(), tokens, counted: Time::ZERO, stats: QueueStats::default() }
    }

    /// Takes the tokens of a packet; returns whether there were enough.
    fn conforms(&mut self, now: Time, size: Bytes) -> bool {
        let full = self.params.rate.time_for(self.params.burst);
        self.tokens = (self.tokens + now.since(self.counted)).min(full);
        self.counted = now;
        let cost = self.params.rate.time_for(size);
        let conforms = cost <= self.tokens;
        if conforms {
            self.tokens = self.tokens - cost;
        }
        conforms
    }
}

impl Discipline for Policer {
    fn enqueue(&mut self, now: Time, packet: Packet, at_once: bool, out: &mut Out) {
        if !self.conforms(now, packet.size) {
            self.stats.early_drops += 1;
            out.drop(packet, DropReason::ActiveQueue);
        } else if at_once || self.params.limit.admits(self.queue.len(), self.queue.bytes(), packet.size) {
            self.queue.push(now, packet);
        } else {
            self.stats.overflowed += 1;
            out.drop(packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, _now: Time, _out: &mut Out) -> Option<Packet> {
        self.queue.pop().map(|(_, packet)| packet)
    }

    fn queued(&self) -> (usize, Bytes) {
        (self.queue.len(), self.queue.bytes())
    }

    fn stats(&self) -> &QueueStats {
        &self.stats
    }
}
