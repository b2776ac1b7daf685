//! DualPI2: two coupled queues, of which scalable traffic (L4S) has the shallow one.
//!
//! *What it does.* Packets with ECT(1) or CE wait in the L queue, all others in the C queue. Every `update`, a base
//! probability p' moves as in PIE, by the longer delay of both heads. A departing packet of the C queue is dropped, or
//! marked if it has ECT(0), with p'²; one of the L queue is marked with `coupling` · p', and always if it waited for
//! more than `step`. The L queue is served first as long as the C queue gets its share.
//!
//! *Source.* RFC 9332 with its appendix A, as in Linux (`sch_dualpi2`): the heads' delays, drops at departure, a credit
//! scheduler, drops of scalable packets with p'² while `coupling` · p' exceeds 1.
//!
//! *Differences from Linux.* Probabilities are floating-point numbers; a limit counts packets, not memory.
//!
//! *Parameters.* See [`Params`].

use lasthop_base::{Bytes, Duration, Invalid, Probability, Stream, Time};
use lasthop_proto::{DropReason, Ecn, Out, Packet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::Fifo;
use super::{About, Discipline, LEAST_UPDATE, Parameters, QueueStats, Waits};
use crate::queue::QueueLimit;

/// DualPI2 ([RFC 9332](https://www.rfc-editor.org/rfc/rfc9332)): scalable traffic, by ECT(1) and CE, has a queue of its
/// own that is marked early and served first; classic traffic has one with PI2. Both signals are coupled, so that the
/// flows of both share the link. The defaults are those of Linux. Of the senders, Prague is scalable.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(rename = "Dualpi2")]
pub struct Params {
    /// Capacity of both queues together. By default 10000 packets, as in Linux.
    pub limit: QueueLimit,
    /// Wanted delay of the C queue. By default 15 ms (RFC 9332 appendix A.1).
    pub target: Duration,
    /// Time between updates of the base probability. At least 100 us; by default 16 ms, as in Linux.
    pub update: Duration,
    /// Weight of the distance of the delay from the target, in Hz. By default 41/256, as in Linux.
    #[schemars(range(min = 0, max = 1000))]
    pub alpha: f64,
    /// Weight of the change of the delay, in Hz. By default 819/256, as in Linux.
    #[schemars(range(min = 0, max = 1000))]
    pub beta: f64,
    /// Factor from the base probability to that of the L queue. By default 2 (RFC 9332 appendix A.1).
    #[schemars(range(min = 1, max = 255))]
    pub coupling: f64,
    /// Delay above which every packet of the L queue is marked. By default 1 ms, as in Linux; RFC 9332 appendix A.1 has
    /// a ramp from 800 us to 1.2 ms in its place.
    pub step: Duration,
    /// Share of the link that the L queue leaves to the C queue. By default 10 %, as in Linux.
    pub classic_share: Probability,
    /// A backlog of less than two packets of this size is always acceptable.
    pub mtu: Bytes,
    /// Mark packets with ECT(0) in the C queue instead of dropping them.
    pub ecn: bool,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            limit: QueueLimit::Packets(10_000),
            target: Duration::from_millis(15),
            update: Duration::from_millis(16),
            alpha: 41.0 / 256.0,
            beta: 819.0 / 256.0,
            coupling: 2.0,
            step: Duration::from_millis(1),
            classic_share: Probability::new(0.1).expect("a probability"),
            mtu: Bytes(1500),
            ecn: true,
        }
    }
}

impl Parameters for Params {
    fn about(&self) -> About {
        About {
            title: "DualPI2",
            summary: "a shallow queue for scalable traffic (L4S), coupled with one for all other (RFC 9332)",
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
            return wrong("dualpi2.target", zero);
        }
        if self.update < LEAST_UPDATE {
            return wrong("dualpi2.update", "found less than 100 us, expected some milliseconds");
        }
        let weight = "found a number outside of 0 to 1000, expected Hz";
        if !(0.0..=1000.0).contains(&self.alpha) {
            return wrong("dualpi2.alpha", weight);
        }
        if !(0.0..=1000.0).contains(&self.beta) {
            return wrong("dualpi2.beta", weight);
        }
        if !(1.0..=255.0).contains(&self.coupling) {
            return wrong(
                "dualpi2.coupling",
                "found a number outside of 1 to 255, expected a factor such as 2",
            );
        }
        Ok(())
    }

    fn build(&self, _air_time: &dyn Fn(Bytes) -> Duration, random: Stream) -> Box<dyn Discipline> {
        Box::new(Dualpi2::new(*self, random))
    }
}

/// The two queues under DualPI2.
#[derive(Clone, Debug)]
pub struct Dualpi2 {
    params: Params,
    random: Stream,
    classic: Fifo,
    scalable: Fifo,
    /// The base probability p'.
    probability: f64,
    /// The delay at the last update.
    last_delay: Duration,
    update_at: Time,
    /// Bytes, weighted by shares, that the L queue is ahead of the C queue: positive if the C queue is next.
    credit: f64,
    stats: QueueStats,
}

impl Dualpi2 {
    /// Empty queues.
    pub fn new(params: Params, random: Stream) -> Dualpi2 {
        Dualpi2 {
            params,
            random,
            classic: Fifo::default(),
            scalable: Fifo::default(),
            probability: 0.0,
            last_delay: Duration::ZERO,
            update_at: Time::ZERO + params.update,
            credit: first_credit(&params),
            stats: QueueStats::default(),
        }
    }

    /// The base probability p'.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// The longer of the times for which the heads have waited.
    fn delay(&self, at: Time) -> Duration {
        let heads = [self.classic.first_arrival(), self.scalable.first_arrival()];
        heads.into_iter().flatten().map(|came| at.since(came.min(at))).max().unwrap_or_default()
    }

    /// Makes the updates that are due by `now`; the queues have not changed since the last one.
    fn update(&mut self, now: Time) {
        while self.update_at <= now {
            let (before, delay) = (self.probability, self.delay(self.update_at));
            self.update_probability(delay);
            self.update_at += self.params.update;
            // While the heads stay, an empty queue stays at 0, and a blocked one, whose delay grows, at 1.
            let is_settled = before == self.probability && (delay.is_zero() || before == 1.0);
            if is_settled && self.update_at <= now {
                let missed = now.since(self.update_at).as_nanos() / self.params.update.as_nanos();
                self.update_at += self.params.update * missed;
                self.last_delay = self.delay(self.update_at);
                self.update_at += self.params.update;
            }
        }
    }

    fn update_probability(&mut self, delay: Duration) {
        let Params { target, alpha, beta, .. } = self.params;
        let [delay_s, target_s, last_s] = [delay, target, self.last_delay].map(Duration::as_secs_f64);
        let step = alpha * (delay_s - target_s) + beta * (delay_s - last_s);
        self.probability = (self.probability + step).clamp(0.0, 1.0);
        self.last_delay = delay;
    }

    /// The next packet by the scheduler, with its arrival, whether it is scalable, and the change of the credit.
    fn take(&mut self) -> Option<(Time, Packet, bool, f64)> {
        let share = self.params.classic_share.get();
        let is_scalable = !self.scalable.is_empty() && (self.classic.is_empty() || self.credit <= 0.0);
        let (queue, other, weight) = if is_scalable {
            (&mut self.scalable, &self.classic, share)
        } else {
            (&mut self.classic, &self.scalable, share - 1.0)
        };
        let Some((came, packet)) = queue.pop() else {
            self.credit = first_credit(&self.params);
            return None;
        };
        let change = if other.is_empty() { 0.0 } else { weight * packet.size.0 as f64 };
        Some((came, packet, is_scalable, change))
    }

    /// Marks a departing packet; returns whether it is to be dropped instead.
    fn signals(&mut self, now: Time, came: Time, packet: &mut Packet, is_scalable: bool) -> bool {
        let backlog = self.classic.bytes() + self.scalable.bytes();
        let is_long = backlog >= self.params.mtu * 2;
        let coupled = self.params.coupling * self.probability;
        let is_overloaded = coupled > 1.0;
        let mut marks = is_scalable && now.since(came) > self.params.step;
        if is_long {
            let squared = self.probability * self.probability;
            if !is_scalable {
                marks = self.random.bernoulli(squared);
                if marks && is_overloaded {
                    return true;
                }
            } else if is_overloaded {
                if self.random.bernoulli(squared) {
                    return true;
                }
                marks = true;
            } else {
                marks |= self.random.bernoulli(coupled);
            }
        }
        marks && !self.stats.mark(packet, self.params.ecn || is_scalable)
    }
}

/// The credit of queues that were empty: the L queue is first.
fn first_credit(params: &Params) -> f64 {
    params.mtu.0 as f64 * (2.0 * params.classic_share.get() - 1.0)
}

impl Discipline for Dualpi2 {
    fn enqueue(&mut self, now: Time, packet: Packet, at_once: bool, out: &mut Out) {
        self.update(now);
        let (packets, bytes) = self.queued();
        if !at_once && !self.params.limit.admits(packets, bytes, packet.size) {
            self.stats.overflowed += 1;
            return out.drop(packet, DropReason::QueueFull);
        }
        let is_scalable = matches!(packet.ecn, Ecn::Ect1 | Ecn::Ce);
        if is_scalable { self.scalable.push(now, packet) } else { self.classic.push(now, packet) }
    }

    fn dequeue(&mut self, now: Time, out: &mut Out) -> Option<Packet> {
        self.update(now);
        loop {
            let (came, mut packet, is_scalable, change) = self.take()?;
            if !self.signals(now, came, &mut packet, is_scalable) {
                self.credit += change;
                let waits = &mut self.stats.waits[usize::from(!is_scalable)];
                *waits = waits.and(Waits { packets: 1, total: now.since(came) });
                return Some(packet);
            }
            self.stats.early_drops += 1;
            out.drop(packet, DropReason::ActiveQueue);
        }
    }

    fn queued(&self) -> (usize, Bytes) {
        (self.classic.len() + self.scalable.len(), self.classic.bytes() + self.scalable.bytes())
    }

    fn stats(&self) -> &QueueStats {
        &self.stats
    }
}
