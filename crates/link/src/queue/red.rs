//! RED: random early detection.
//!
//! *What it does.* Each arriving packet updates the average queue length. Between two thresholds, packets are
//! marked or dropped at random, with a probability that grows with the average and with the number of packets
//! since the last mark, so that marks are evenly spread.
//!
//! *Source.* Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN
//! 1(4), 1993: figure 2. Between `max` and twice `max` the probability rises from `max_probability` to 1
//! (Floyd, "Recommendation on using the gentle variant of RED", 2000). `wait` is from ns-2. Above that range,
//! packets are dropped even if they are ECN-capable (RFC 3168 section 7).
//!
//! *Differences from ns-2.* Thresholds are in packets, not bytes (`bytes_` and `queue_in_bytes_` false),
//! weight and thresholds do not depend on the link rate, and idle time counts as a fractional number of
//! packets.
//!
//! *Parameters.* See [`Params`].

use lasthop_base::{Bytes, Duration, Invalid, Probability, Stream, Time};
use lasthop_proto::{DropReason, Out, Packet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::Fifo;
use super::{About, Discipline, Parameters, QueueStats};
use crate::queue::QueueLimit;

/// RED (Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN 1(4),
/// 1993), in its gentle variant. The defaults are those of ns-2 with thresholds in packets, except that ECN
/// is on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(rename = "Red")]
pub struct Params {
    /// Capacity, as for a drop-tail queue.
    pub limit: QueueLimit,
    /// Average queue, in packets, below which no packet is marked or dropped (`thresh_` in ns-2). By default
    /// 5, as in ns-2 (`thresh_`).
    pub min: f64,
    /// Average queue at which `max_probability` is reached (`maxthresh_`). By default 15, as in ns-2
    /// (`maxthresh_`).
    pub max: f64,
    /// Weight of each arriving packet in the average (`q_weight_`).
    pub weight: Probability,
    /// Probability at `max` (`linterm_` is its inverse). The paper has 0.02.
    pub max_probability: Probability,
    /// Above `max` the probability rises linearly to 1 at twice `max` (`gentle_`). Otherwise it is 1 from
    /// `max` on. At probability 1, ECN-capable packets are also dropped (RFC 3168 section 7).
    pub gentle: bool,
    /// At probability p, the number of packets between marks is uniform on 1/p to 2/p (`wait_`). Otherwise on
    /// 1 to 1/p, as in the paper.
    pub wait: bool,
    /// Mean packet size: an idle period counts as arrivals of such packets at an empty queue
    /// (`mean_pktsize_`).
    pub mean_packet: Bytes,
    /// Mark ECN-capable packets instead of dropping them (`setbit_`). By default they are; not in ns-2
    /// (`setbit_`).
    pub ecn: bool,
}

impl Default for Params {
    fn default() -> Params {
        let probability = |p| Probability::new(p).expect("a probability");
        Params {
            limit: QueueLimit::Packets(50),
            min: 5.0,
            max: 15.0,
            weight: probability(0.002),
            max_probability: probability(0.1),
            gentle: true,
            wait: true,
            mean_packet: Bytes(500),
            ecn: true,
        }
    }
}

impl Params {
    /// The marking probability for an average of at least `min`, before marks are spread (p_b in the paper).
    fn probability(&self, average: f64) -> f64 {
        let Params { min, max, .. } = *self;
        let at_max = self.max_probability.get();
        if average < max {
            at_max * (average - min) / (max - min)
        } else if self.gentle {
            (at_max + (1.0 - at_max) * (average - max) / max).min(1.0)
        } else {
            1.0
        }
    }
}

impl Parameters for Params {
    fn about(&self) -> About {
        About {
            title: "RED",
            summary: "drops or marks arriving packets at random, the more the longer the average queue (Floyd and Jacobson 1993)",
            expedites: false,
            separates_flows: false,
            deployment: None,
        }
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn validate(&self) -> Result<(), Invalid> {
        let wrong = |field, problem| Err(Invalid { field, problem });
        if !(self.min >= 0.0 && self.min.is_finite()) {
            return wrong("red.min", "found a negative number, expected 0 packets or more");
        }
        if !(self.max > self.min && self.max.is_finite()) {
            return wrong("red.max", "found at most min, expected a number of packets above min");
        }
        if self.weight.get() == 0.0 {
            return wrong(
                "red.weight",
                "found 0, with which the average never changes; expected more than zero",
            );
        }
        if self.mean_packet == Bytes::ZERO {
            return wrong("red.mean_packet", "found \"0 B\", expected the size of a typical packet");
        }
        Ok(())
    }

    fn build(&self, air_time: &dyn Fn(Bytes) -> Duration, random: Stream) -> Box<dyn Discipline> {
        Box::new(Red::new(*self, air_time(self.mean_packet), random))
    }
}

/// A queue under RED.
#[derive(Clone, Debug)]
pub struct Red {
    params: Params,
    /// Transmission time of a typical packet.
    packet_time: Duration,
    random: Stream,
    queue: Fifo,
    average: f64,
    /// Packets since the last mark or drop, or since the average rose above `min`; `None` while it is below.
    count: Option<u32>,
    empty_since: Time,
    stats: QueueStats,
}

impl Red {
    /// An empty queue before a link that transmits a typical packet in `packet_time`.
    pub fn new(params: Params, packet_time: Duration, random: Stream) -> Red {
        Red {
            params,
            packet_time,
            random,
            queue: Fifo::default(),
            average: 0.0,
            count: None,
            empty_since: Time::ZERO,
            stats: QueueStats::default(),
        }
    }

    /// The average queue length, in packets.
    pub fn average(&self) -> f64 {
        self.average
    }

    fn move_average(&mut self, now: Time) {
        let weight = self.params.weight.get();
        if self.queue.is_empty() {
            let packets = now.since(self.empty_since).as_secs_f64() / self.packet_time.as_secs_f64();
            self.average *= libm::pow(1.0 - weight, packets);
        } else {
            self.average += weight * (self.queue.len() as f64 - self.average);
        }
    }

    /// Whether the arriving packet is to be marked or dropped.
    fn signals(&mut self, probability: f64) -> bool {
        let count = self.count.map_or(0, |count| count + 1);
        self.count = Some(count);
        let expected = f64::from(count) * probability;
        let spread = match (self.params.wait, expected) {
            (true, ..1.0) => 0.0,
            (true, ..2.0) => probability / (2.0 - expected),
            (false, ..1.0) => probability / (1.0 - expected),
            _ => 1.0,
        };
        self.random.bernoulli(spread)
    }
}

impl Discipline for Red {
    fn enqueue(&mut self, now: Time, mut packet: Packet, at_once: bool, out: &mut Out) {
        self.move_average(now);
        if !at_once && !self.params.limit.admits(self.queue.len(), self.queue.bytes(), packet.size) {
            self.count = Some(0);
            self.stats.overflowed += 1;
            return out.drop(packet, DropReason::QueueFull);
        }
        if self.average < self.params.min {
            self.count = None;
        } else {
            let probability = self.params.probability(self.average);
            let forced = probability >= 1.0;
            if forced || self.signals(probability) {
                self.count = Some(0);
                if forced || !self.stats.mark(&mut packet, self.params.ecn) {
                    self.stats.early_drops += 1;
                    return out.drop(packet, DropReason::ActiveQueue);
                }
            }
        }
        self.queue.push(now, packet);
    }

    fn dequeue(&mut self, now: Time, _out: &mut Out) -> Option<Packet> {
        let (_, packet) = self.queue.pop()?;
        if self.queue.is_empty() {
            self.empty_since = now;
        }
        Some(packet)
    }

    fn queued(&self) -> (usize, Bytes) {
        (self.queue.len(), self.queue.bytes())
    }

    fn stats(&self) -> &QueueStats {
        &self.stats
    }
}
