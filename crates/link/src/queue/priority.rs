//! Strict priority: two queues, of which the expedited one goes first.
//!
//! *What it does.* Packets with the code point of expedited forwarding wait in their own queue, which is
//! served whenever it is not empty. Both queues are drop-tail. Expedited packets are not policed: at the rate
//! of the link or more, they starve the best-effort packets.
//!
//! *Source.* The fast queue for local retransmissions in Balakrishnan, Seshan, Amir and Katz, MobiCom 1995, section
//! 3.1.2; the code point is that of RFC 3246.
//!
//! *Parameters.* See [`Params`].

use lasthop_base::{Bytes, Duration, Stream, Time};
use lasthop_proto::{DropReason, Dscp, Out, Packet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::Fifo;
use super::{About, Discipline, Parameters, QueueStats};
use crate::queue::QueueLimit;

/// Strict priority: packets with the Expedited Forwarding code point (RFC 3246) have a separate queue, which
/// is served first. Local retransmissions of `snoop` use it. Expedited packets at the link rate or above
/// starve all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(rename = "Priority")]
pub struct Params {
    /// Capacity of each of the two queues, as for a drop-tail queue.
    pub limit: QueueLimit,
}

impl Parameters for Params {
    fn about(&self) -> About {
        About {
            title: "priority",
            summary: "expedited packets first (Balakrishnan et al. 1995)",
            expedites: true,
            separates_flows: false,
            deployment: None,
        }
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn build(&self, _air_time: &dyn Fn(Bytes) -> Duration, _random: Stream) -> Box<dyn Discipline> {
        Box::new(Priority::new(*self))
    }
}

/// Two drop-tail queues.
#[derive(Clone, Debug)]
pub struct Priority {
    params: Params,
    expedited: Fifo,
    best_effort: Fifo,
    stats: QueueStats,
}

impl Priority {
    /// Two empty queues.
    pub fn new(params: Params) -> Priority {
        let (expedited, best_effort) = (Fifo::default(), Fifo::default());
        Priority { params, expedited, best_effort, stats: QueueStats::default() }
    }
}

impl Discipline for Priority {
    fn enqueue(&mut self, now: Time, packet: Packet, at_once: bool, out: &mut Out) {
        let queue = if packet.dscp == Dscp::EXPEDITED { &mut self.expedited } else { &mut self.best_effort };
        if at_once || self.params.limit.admits(queue.len(), queue.bytes(), packet.size) {
            queue.push(now, packet);
        } else {
            self.stats.overflowed += 1;
            out.drop(packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, _now: Time, _out: &mut Out) -> Option<Packet> {
        let first = self.expedited.pop().or_else(|| self.best_effort.pop());
        first.map(|(_, packet)| packet)
    }

    fn queued(&self) -> (usize, Bytes) {
        (self.expedited.len() + self.best_effort.len(), self.expedited.bytes() + self.best_effort.bytes())
    }

    fn stats(&self) -> &QueueStats {
        &self.stats
    }
}
