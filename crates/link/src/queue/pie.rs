//! PIE: proportional integral controller enhanced.
//!
//! *What it does.* Every `update`, the drop probability moves by a share of how far the queueing delay is from
//! `target`, and by a share of how much the delay has changed. Each arriving packet adds the probability to an
//! account; between 0.85 and 8.5 it is marked or dropped with the probability, above it is in any case. A burst of
//! 150 ms after an idle time passes unharmed.
//!
//! *Source.* RFC 8033; section 4 for the rules, section 5.2 for the drops. The delay is that of the packet that left
//! last (section 5.3 by timestamps), as in Linux by default. ECN-capable packets are marked up to a probability of
//! 10 % (section 5.1).
//!
//! *Differences from Linux.* Probabilities are floating-point numbers. The account is cleared by a mark that it forces,
//! as in the RFC; Linux then marks until a random mark clears it. The first update is at `update`, not at 500 ms.
//!
//! *Parameters.* See [`Params`].

use lasthop_base::{Bytes, Duration, Invalid, Stream, Time};
use lasthop_proto::{DropReason, Out, Packet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::Fifo;
use super::{About, Discipline, LEAST_UPDATE, Parameters, QueueStats};
use crate::queue::QueueLimit;

/// Time for which a burst is not dropped (MAX_BURST).
const BURST: Duration = Duration::from_millis(150);
/// A delay above which the probability rises faster.
const LONG_DELAY: Duration = Duration::from_millis(250);
/// The account of probabilities below which no packet is dropped, and from which each is.
const ACCOUNT: (f64, f64) = (0.85, 8.5);
/// Probability above which packets are dropped even if they are ECN-capable.
const MARKED_UP_TO: f64 = 0.1;
/// Largest step of a probability of at least 10 %, and the extra step at a long delay.
const STEP: f64 = 0.02;

/// PIE ([RFC 8033](https://www.rfc-editor.org/rfc/rfc8033)) drops or marks arriving packets at random. The probability
/// follows the queueing delay: it rises above the target, falls below it, and the faster the delay changes the more.
/// The defaults are those of Linux, except that ECN is on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(rename = "Pie")]
pub struct Params {
    /// Capacity, as for a drop-tail queue. By default 1000 packets, as in Linux.
    pub limit: QueueLimit,
    /// Wanted queueing delay. By default 15 ms (RFC 8033 section 4.2).
    pub target: Duration,
    /// Time between updates of the probability (`tupdate` of tc). At least 100 us; by default 15 ms (RFC 8033 section 4.2).
    pub update: Duration,
    /// Weight of the distance of the delay from the target, in sixteenths per second. By default 2, or 1/8 Hz (RFC
    /// 8033 section 4.2).
    #[schemars(range(min = 0, max = 32))]
    pub alpha: f64,
    /// Weight of the change of the delay, in sixteenths per second. By default 20, or 5/4 Hz (RFC 8033 section 4.2).
    #[schemars(range(min = 0, max = 32))]
    pub beta: f64,
    /// A backlog of less than two packets of this size is always acceptable.
    pub mtu: Bytes,
    /// Mark ECN-capable packets instead of dropping them, up to a probability of 10 %.
    pub ecn: bool,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            limit: QueueLimit::Packets(1000),
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            alpha: 2.0,
            beta: 20.0,
            mtu: Bytes(1500),
            ecn: true,
        }
    }
}

impl Parameters for Params {
    fn about(&self) -> About {
        About {
            title: "PIE",
            summary: "drops arriving packets at random so that the delay of the queue stays at a target (RFC 8033)",
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
        let zero = "found \"0 s\", expected more than zero";
        if self.target.is_zero() {
            return wrong("pie.target", zero);
        }
        if self.update < LEAST_UPDATE {
            return wrong("pie.update", "found less than 100 us, expected some milliseconds");
        }
        let weight = "found a number outside of 0 to 32, expected sixteenths per second";
        if !(0.0..=32.0).contains(&self.alpha) {
            return wrong("pie.alpha", weight);
        }
        if !(0.0..=32.0).contains(&self.beta) {
            return wrong("pie.beta", weight);
        }
        Ok(())
    }

    fn build(&self, _air_time: &dyn Fn(Bytes) -> Duration, random: Stream) -> Box<dyn Discipline> {
        Box::new(Pie::new(*self, random))
    }
}

/// A queue under PIE.
#[derive(Clone, Debug)]
pub struct Pie {
    params: Params,
    random: Stream,
    queue: Fifo,
    /// When the probability is updated next.
    update_at: Time,
    probability: f64,
    /// The probabilities of the packets since the last one that was marked or dropped.
    account: f64,
    /// Delay of the packet that left last, zero if it left an empty queue.
    delay: Duration,
    /// The delay at the last update.
    old_delay: Duration,
    burst_allowance: Duration,
    last_departure: Option<Time>,
    stats: QueueStats,
}

impl Pie {
    /// An empty queue.
    pub fn new(params: Params, random: Stream) -> Pie {
        Pie {
            params,
            random,
            queue: Fifo::default(),
            update_at: Time::ZERO + params.update,
            probability: 0.0,
            account: 0.0,
            delay: Duration::ZERO,
            old_delay: Duration::ZERO,
            burst_allowance: BURST,
            last_departure: None,
            stats: QueueStats::default(),
        }
    }

    /// The probability with which arriving packets are marked or dropped.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// Makes the updates that are due by `now`; nothing that they depend on has changed since the last one.
    fn update(&mut self, now: Time) {
        while self.update_at <= now {
            let before = (self.probability, self.old_delay);
            self.update_probability();
            self.update_at += self.params.update;
            if (self.probability, self.old_delay) == before && self.update_at <= now {
                // No further update changes anything.
                let missed = now.since(self.update_at).as_nanos() / self.params.update.as_nanos() + 1;
                self.update_at += self.params.update * missed;
            }
        }
    }

    fn update_probability(&mut self) {
        let Params { target, alpha, beta, .. } = self.params;
        let seconds = |delay: Duration| delay.as_secs_f64();
        let (delay, old) = (seconds(self.delay), seconds(self.old_delay));
        let mut step = alpha / 16.0 * (delay - seconds(target)) + beta / 16.0 * (delay - old);
        step /= divisor(self.probability);
        if self.probability >= 0.1 {
            step = step.min(STEP);
        }
        if self.delay > LONG_DELAY {
            step += STEP;
        }
        self.probability = (self.probability + step).clamp(0.0, 1.0);
        if self.delay.is_zero() && self.old_delay.is_zero() && self.queue.is_empty() {
            self.probability -= self.probability / 64.0;
        }
        let half = Duration::from_nanos(target.as_nanos() / 2);
        if self.delay < half && self.old_delay < half && self.probability == 0.0 {
            self.burst_allowance = BURST;
            self.account = 0.0;
            self.last_departure = None;
        }
        self.old_delay = self.delay;
    }

    /// Whether the arriving packet is to be marked or dropped.
    fn signals(&mut self) -> bool {
        let half = Duration::from_nanos(self.params.target.as_nanos() / 2);
        let is_calm = self.delay < half && self.probability < 0.2;
        let is_short = self.queue.bytes() < self.params.mtu * 2;
        if !self.burst_allowance.is_zero() || is_calm || is_short {
            return false;
        }
        if self.probability == 0.0 {
            self.account = 0.0;
        }
        self.account += self.probability;
        let (never_below, always_from) = ACCOUNT;
        self.account >= always_from || self.account >= never_below && self.random.bernoulli(self.probability)
    }
}

/// By how much the weights are smaller at small probabilities (RFC 8033 section 4.2).
fn divisor(probability: f64) -> f64 {
    match probability {
        ..0.000_001 => 2048.0,
        ..0.000_01 => 512.0,
        ..0.000_1 => 128.0,
        ..0.001 => 32.0,
        ..0.01 => 8.0,
        ..0.1 => 2.0,
        _ => 1.0,
    }
}

impl Discipline for Pie {
    fn enqueue(&mut self, now: Time, mut packet: Packet, at_once: bool, out: &mut Out) {
        self.update(now);
        if !at_once && !self.params.limit.admits(self.queue.len(), self.queue.bytes(), packet.size) {
            self.account = 0.0;
            self.stats.overflowed += 1;
            return out.drop(packet, DropReason::QueueFull);
        }
        if self.signals() {
            self.account = 0.0;
            let ecn = self.params.ecn && self.probability <= MARKED_UP_TO;
            if !self.stats.mark(&mut packet, ecn) {
                self.stats.early_drops += 1;
                return out.drop(packet, DropReason::ActiveQueue);
            }
        }
        self.queue.push(now, packet);
    }

    fn dequeue(&mut self, now: Time, _out: &mut Out) -> Option<Packet> {
        self.update(now);
        let (came, packet) = self.queue.pop()?;
        self.delay = if self.queue.is_empty() { Duration::ZERO } else { now.since(came) };
        if let Some(last) = self.last_departure.replace(now) {
            self.burst_allowance = self.burst_allowance.saturating_sub(now.since(last));
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
