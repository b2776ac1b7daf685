//! Adaptive RED, as Linux has it: thresholds in bytes, and a probability that follows the average queue.
//!
//! *What it does.* Each arriving packet updates the average backlog in bytes. Between two thresholds, packets are marked
//! or dropped at random; above the upper one each is. Every 500 ms the largest probability rises if the average is above
//! the middle fifth between the thresholds, and falls if it is below, within 1 and 50 %.
//!
//! *Source.* The qdisc `red` of Linux with `adaptative`, after Floyd, Gummadi and Shenker, "Adaptive RED", 2001. The
//! defaults for thresholds, burst and probability, and the weight that follows from the burst, are those of `tc`.
//!
//! *Differences from Linux.* Numbers are floating-point numbers; while the queue is empty, the average decays by the
//! formula of Floyd and Jacobson, not by Linux's table of it.
//!
//! *Parameters.* See [`Params`].

use lasthop_base::{Bytes, Duration, Invalid, Probability, Stream, Time};
use lasthop_proto::{DropReason, Out, Packet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::Fifo;
use super::{About, Discipline, Parameters, QueueStats};
use crate::queue::QueueLimit;

/// Time between changes of the largest probability.
const ADAPTATION: Duration = Duration::from_millis(500);
/// The largest probability rises only up to this.
const RISES_UP_TO: f64 = 0.5;
/// The largest probability falls only down to this.
const FALLS_DOWN_TO: f64 = 0.01;

/// RED with thresholds in bytes whose probability adapts (`tc qdisc add ... red adaptive`; Floyd, Gummadi and Shenker,
/// "Adaptive RED", 2001). The defaults follow from `limit`, as those of `tc` do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(rename = "AdaptiveRed")]
pub struct Params {
    /// Capacity.
    pub limit: Bytes,
    /// Average backlog below which no packet is marked or dropped. By default a third of `max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Bytes>,
    /// Average backlog from which every packet is marked or dropped. By default a quarter of `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Bytes>,
    /// Mean packet size (`avpkt`).
    pub mean_packet: Bytes,
    /// Number of packets of a burst that the average follows slowly; the weight of an arriving packet is the largest power
    /// of 1/2 that does. By default (2 min + max) / 3 in packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// Probability at `max` at the start.
    pub probability: Probability,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// From `max` on, drop packets even if they are ECN-capable (`harddrop`).
    pub hard_drop: bool,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            limit: Bytes(400_000),
            min: None,
            max: None,
            mean_packet: Bytes(1_000),
            burst: None,
            probability: Probability::new(0.02).expect("a probability"),
            ecn: true,
            hard_drop: true,
        }
    }
}

impl Params {
    /// The lower and the upper threshold, in bytes.
    fn thresholds(&self) -> (f64, f64) {
        let max = self.max.unwrap_or(Bytes(self.limit.0 / 4));
        let min = self.min.unwrap_or(Bytes(max.0 / 3));
        (min.0 as f64, max.0 as f64)
    }

    /// The weight of an arriving packet in the average; `None` if no weight suits the burst.
    fn weight(&self) -> Option<f64> {
        let (min, max) = self.thresholds();
        let packet = self.mean_packet.0 as f64;
        let burst = self.burst.map_or_else(|| libm::floor((2.0 * min + max) / (3.0 * packet)), f64::from);
        let excess = burst + 1.0 - min / packet;
        let weights = (1..32).map(|log| 1.0 / f64::from(1_u32 << log));
        let suits = |weight: &f64| excess <= (1.0 - libm::pow(1.0 - weight, burst)) / weight;
        (excess >= 1.0).then(|| weights.clone().find(suits)).flatten()
    }
}

impl Parameters for Params {
    fn about(&self) -> About {
        About {
            title: "adaptive RED",
            summary: "RED by bytes whose probability keeps the average queue in the middle (Floyd et al. 2001)",
            expedites: false,
            separates_flows: false,
            deployment: None,
        }
    }

    fn limit(&self) -> QueueLimit {
        QueueLimit::Bytes(self.limit)
    }

    fn validate(&self) -> Result<(), Invalid> {
        let wrong = |field, problem| Err(Invalid { field, problem });
        let (min, max) = self.thresholds();
        if max <= min {
            return wrong("adaptive-red.max", "found at most min, expected a size above min");
        }
        if self.mean_packet == Bytes::ZERO {
            return wrong("adaptive-red.mean_packet", "found \"0 B\", expected the size of a typical packet");
        }
        if self.probability.get() == 0.0 {
            return wrong("adaptive-red.probability", "found 0, which never adapts; expected more than zero");
        }
        if self.weight().is_none() {
            return wrong(
                "adaptive-red.burst",
                "no weight of the average suits it; expected at least min in packets of mean_packet",
            );
        }
        Ok(())
    }

    fn build(&self, air_time: &dyn Fn(Bytes) -> Duration, random: Stream) -> Box<dyn Discipline> {
        Box::new(AdaptiveRed::new(*self, air_time(self.mean_packet), random))
    }
}

/// A queue under adaptive RED.
#[derive(Clone, Debug)]
pub struct AdaptiveRed {
    params: Params,
    min: f64,
    max: f64,
    weight: f64,
    /// Transmission time of a typical packet.
    packet_time: Duration,
    random: Stream,
    queue: Fifo,
    /// Average backlog in bytes.
    average: f64,
    /// Probability at the upper threshold.
    probability: f64,
    adapt_at: Time,
    /// Packets since the last mark or drop, or since the average rose above `min`, and the product of their number and
    /// excess at which the next is marked; `None` while the average is below.
    spread: Option<(f64, f64)>,
    empty_since: Option<Time>,
    stats: QueueStats,
}

impl AdaptiveRed {
    /// An empty queue before a link that transmits a typical packet in `packet_time`.
    ///
    /// # Panics
    /// If the parameters are not [valid](Parameters::validate).
    pub fn new(params: Params, packet_time: Duration, random: Stream) -> AdaptiveRed {
        let (min, max) = params.thresholds();
        AdaptiveRed {
            params,
            min,
            max,
            weight: params.weight().expect("valid parameters"),
            packet_time,
            random,
            queue: Fifo::default(),
            average: 0.0,
            probability: params.probability.get(),
            adapt_at: Time::ZERO + ADAPTATION,
            spread: None,
            empty_since: Some(Time::ZERO),
            stats: QueueStats::default(),
        }
    }

    /// The average backlog in bytes.
    pub fn average(&self) -> f64 {
        self.average
    }

    /// The probability at the upper threshold.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// The average as it is `now`, if the queue has been empty for some time.
    fn decayed(&self, now: Time) -> f64 {
        let Some(since) = self.empty_since.filter(|since| *since < now) else { return self.average };
        let packets = now.since(since).as_secs_f64() / self.packet_time.as_secs_f64().max(1e-9);
        self.average * libm::pow(1.0 - self.weight, packets)
    }

    /// Makes the changes of the probability that are due by `now`.
    fn adapt(&mut self, now: Time) {
        let fifth = (self.max - self.min) / 5.0;
        while self.adapt_at <= now {
            let average = self.decayed(self.adapt_at);
            self.adapt_at += ADAPTATION;
            if average > self.min + 3.0 * fifth && self.probability <= RISES_UP_TO {
                self.probability += (self.probability / 4.0).min(FALLS_DOWN_TO);
            } else if average < self.min + 2.0 * fifth {
                if self.probability >= FALLS_DOWN_TO {
                    self.probability *= 0.9;
                } else if self.adapt_at <= now {
                    // The average only falls until now, so that no further change follows.
                    let missed = now.since(self.adapt_at).as_nanos() / ADAPTATION.as_nanos() + 1;
                    self.adapt_at += ADAPTATION * missed;
                }
            }
        }
    }

    /// Whether the arriving packet is to be marked or dropped, between the thresholds.
    fn signals(&mut self) -> bool {
        let excess = self.average - self.min;
        if let Some((count, due)) = &mut self.spread {
            *count += 1.0;
            if excess * *count < *due {
                return false;
            }
        }
        let signals = self.spread.is_some();
        let due = self.random.uniform() * (self.max - self.min) / self.probability;
        self.spread = Some((0.0, due));
        signals
    }
}

impl Discipline for AdaptiveRed {
    fn enqueue(&mut self, now: Time, mut packet: Packet, at_once: bool, out: &mut Out) {
        self.adapt(now);
        self.average = if self.empty_since.is_some() {
            self.decayed(now)
        } else {
            self.average + self.weight * (self.queue.bytes().0 as f64 - self.average)
        };
        self.empty_since = None;
        let is_above = self.average >= self.max;
        let signals = if (self.min..self.max).contains(&self.average) {
            self.signals()
        } else {
            self.spread = None;
            is_above
        };
        let ecn = self.params.ecn && !(is_above && self.params.hard_drop);
        if signals && !self.stats.mark(&mut packet, ecn) {
            self.stats.early_drops += 1;
            out.drop(packet, DropReason::ActiveQueue);
        } else if at_once || self.params.limit().admits(self.queue.len(), self.queue.bytes(), packet.size) {
            self.queue.push(now, packet);
        } else {
            self.stats.overflowed += 1;
            out.drop(packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, now: Time, _out: &mut Out) -> Option<Packet> {
        let Some((_, packet)) = self.queue.pop() else {
            self.empty_since.get_or_insert(now);
            return None;
        };
        Some(packet)
    }

    fn queued(&self) -> (usize, Bytes) {
        (self.queue.len(), self.queue.bytes())
    }

    fn stats(&self) -> &QueueStats {
        &self.stats
    }
}
