//! CoDel: controlled delay.
//!
//! *What it does.* CoDel measures each packet's queueing delay as the packet leaves the queue. If the delay
//! has been above `target` for an `interval`, the packet is marked or dropped. The next follows after
//! interval / sqrt(count), where count is the number of packets marked or dropped so far, until the delay is
//! below the target or at most one MTU is queued. If dropping resumes soon afterwards, it resumes from the
//! previous count.
//!
//! *Source.* RFC 8289; section 5 for the pseudocode. Marking follows the Linux implementation, to which the
//! RFC refers: a marked packet leaves the queue, while a dropped one is followed by the next packet.
//!
//! *Parameters.* See [`Params`].

use lasthop_base::{Bytes, Duration, Invalid, Stream, Time};
use lasthop_proto::{DropReason, Out, Packet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::Fifo;
use super::{About, Discipline, Parameters, QueueStats};
use crate::queue::QueueLimit;

/// CoDel ([RFC 8289](https://www.rfc-editor.org/rfc/rfc8289)) measures the queueing delay of departing
/// packets. After an interval above the target, it marks or drops packets until the delay falls below the
/// target, the n-th one interval/√n after the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(rename = "Codel")]
pub struct Params {
    /// Capacity, as for a drop-tail queue. By default 1000 packets, as in Linux.
    pub limit: QueueLimit,
    /// Acceptable standing delay. On a slow link it should exceed the transmission time of a packet. By
    /// default 5 ms (RFC 8289 section 4.4).
    pub target: Duration,
    /// Time for which the delay may exceed the target: about the maximum usual round-trip time. By default
    /// 100 ms (RFC 8289 section 4.3).
    pub interval: Duration,
    /// A backlog of at most this size is always acceptable.
    pub mtu: Bytes,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            limit: QueueLimit::Packets(1000),
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            mtu: Bytes(1500),
            ecn: true,
        }
    }
}

impl Params {
    fn control_law(&self, from: Time, count: u32) -> Time {
        let wait = self.interval.as_nanos() as f64 / f64::from(count).sqrt();
        from + Duration::from_nanos(wait as u64)
    }
}

impl Parameters for Params {
    fn about(&self) -> About {
        About {
            title: "CoDel",
            summary: "keeps the queue short by dropping packets that waited for too long (RFC 8289)",
            expedites: false,
            separates_flows: false,
            deployment: Some("tc qdisc replace dev IF root codel"),
        }
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn validate(&self) -> Result<(), Invalid> {
        let zero = "found \"0 s\", expected more than zero";
        if self.target.is_zero() {
            return Err(Invalid { field: "codel.target", problem: zero });
        }
        if self.interval.is_zero() {
            return Err(Invalid { field: "codel.interval", problem: zero });
        }
        Ok(())
    }

    fn build(&self, _air_time: &dyn Fn(Bytes) -> Duration, _random: Stream) -> Box<dyn Discipline> {
        Box::new(Codel::new(*self))
    }
}

/// A single queue under CoDel.
#[derive(Clone, Debug)]
pub struct Codel {
    params: Params,
    queue: Fifo,
    control: Control,
    stats: QueueStats,
}

impl Codel {
    /// An empty queue.
    pub fn new(params: Params) -> Codel {
        Codel { params, queue: Fifo::default(), control: Control::default(), stats: QueueStats::default() }
    }
}

impl Discipline for Codel {
    fn enqueue(&mut self, now: Time, packet: Packet, at_once: bool, out: &mut Out) {
        if at_once || self.params.limit.admits(self.queue.len(), self.queue.bytes(), packet.size) {
            self.queue.push(now, packet);
        } else {
            self.stats.overflowed += 1;
            out.drop(packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, now: Time, out: &mut Out) -> Option<Packet> {
        self.control.dequeue(&self.params, now, &mut self.queue, &mut self.stats, out)
    }

    fn queued(&self) -> (usize, Bytes) {
        (self.queue.len(), self.queue.bytes())
    }

    fn stats(&self) -> &QueueStats {
        &self.stats
    }
}

/// The control loop of one queue, with the names of RFC 8289.
#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    /// When the delay will have been above the target for an interval; `None` while it is below.
    first_above_time: Option<Time>,
    dropping: bool,
    drop_next: Time,
    count: u32,
    last_count: u32,
}

impl Control {
    /// The packet that leaves the queue now; `None` if the queue is empty.
    pub(super) fn dequeue(
        &mut self,
        params: &Params,
        now: Time,
        queue: &mut Fifo,
        stats: &mut QueueStats,
        out: &mut Out,
    ) -> Option<Packet> {
        let (mut packet, mut above) = self.take(params, now, queue)?;
        let mut drop = |packet, stats: &mut QueueStats| {
            stats.early_drops += 1;
            out.drop(packet, DropReason::ActiveQueue);
        };
        if self.dropping {
            self.dropping = above;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if stats.mark(&mut packet, params.ecn) {
                    self.drop_next = params.control_law(self.drop_next, self.count);
                    break;
                }
                drop(packet, stats);
                (packet, above) = self.take(params, now, queue)?;
                self.dropping = above;
                if above {
                    self.drop_next = params.control_law(self.drop_next, self.count);
                }
            }
        } else if above {
            if !stats.mark(&mut packet, params.ecn) {
                drop(packet, stats);
                (packet, _) = self.take(params, now, queue)?;
            }
            self.dropping = true;
            // After a short time below the target, dropping resumes at the rate that controlled the queue
            // before.
            let delta = self.count - self.last_count;
            let recently = now < self.drop_next + params.interval * 16;
            self.count = if delta > 1 && recently { delta } else { 1 };
            self.drop_next = params.control_law(now, self.count);
            self.last_count = self.count;
        }
        Some(packet)
    }

    /// Dequeues the first packet, and returns whether the delay has been above the target for an interval.
    fn take(&mut self, params: &Params, now: Time, queue: &mut Fifo) -> Option<(Packet, bool)> {
        let (came, packet) = queue.pop()?;
        if now.since(came) < params.target || queue.bytes() <= params.mtu {
            self.first_above_time = None;
            return Some((packet, false));
        }
        let first_above_time = *self.first_above_time.get_or_insert(now + params.interval);
        Some((packet, now >= first_above_time))
    }
}
