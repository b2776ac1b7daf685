//! Delay, jitter and reordering in the terms of netem.
//!
//! *What it does.* A packet has the delay `delay`, uniformly distributed by `jitter` on either side of it. With `reorder`, some
//! packets skip it and overtake those before them: of the packets after such a one, the next `gap` - 1 do not, and each later
//! one does with this probability. A packet with a shorter delay overtakes, too, unless `in_order` is set. Netem with a rate of its
//! own is always in order but for `reorder`.
//!
//! *Correlated numbers* are (1 − ρ) · new + ρ · last, as in netem. Their variance is that of new ones times (1 − ρ) / (1 + ρ): with
//! correlation, delays spread less than `jitter`, and a low `reorder` is reached less often.
//!
//! *Source.* `netem_enqueue`, `tabledist` and `get_crandom` of Linux 6.x (net/sched/sch_netem.c). There the delay begins when a
//! packet is enqueued, here when it has been transmitted; and there a correlated number is taken modulo twice the jitter, which
//! destroys the correlation that tc-netem documents, where it is scaled here.

use lasthop_base::{Duration, Invalid, Probability, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::delay::MOST_S;

/// A delay with jitter and reordering.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Netem {
    /// The delay; with jitter, its mean.
    pub delay: Duration,
    /// The most by which the delay of a packet differs from `delay`; a delay below zero is zero.
    #[serde(default)]
    pub jitter: Duration,
    /// Weight of the previous packet's random number in that of the jitter, 0 to 1.
    #[serde(default)]
    pub correlation: Probability,
    /// Probability that a packet skips the delay and overtakes those before it.
    #[serde(default)]
    pub reorder: Probability,
    /// Weight of the previous random number in that of `reorder`, 0 to 1.
    #[serde(default)]
    pub reorder_correlation: Probability,
    /// Packets from one that skipped the delay to the first that may skip it next, at least 1.
    #[serde(default = "default_gap")]
    pub gap: u32,
    /// Whether packets keep their order despite the jitter: one that would overtake another arrives at the same time. As in
    /// netem, they do not by default.
    #[serde(default)]
    pub in_order: bool,
}

fn default_gap() -> u32 {
    1
}

impl Netem {
    pub(super) fn validate(&self) -> Result<(), Invalid> {
        let wrong = |field, problem| Err(Invalid { field, problem });
        let too_long = "found more than one hour, expected a shorter time; check its unit";
        let reorders = self.reorder.get() > 0.0;
        match self {
            _ if self.delay.as_secs_f64() > MOST_S => wrong("netem.delay", too_long),
            _ if self.jitter.as_secs_f64() > MOST_S => wrong("netem.jitter", too_long),
            _ if self.gap == 0 => wrong("netem.gap", "found 0, expected a number of packets, at least 1"),
            _ if reorders && self.delay.is_zero() => {
                wrong("netem.reorder", "found packets that skip a delay of zero, expected a delay above zero")
            }
            _ if reorders && self.in_order => {
                wrong("netem.in_order", "found true with reorder, expected only one of them")
            }
            _ if !reorders && self.gap > 1 => wrong(
                "netem.gap",
                "found a distance between packets that skip the delay, expected reorder beside it",
            ),
            _ if !reorders && self.reorder_correlation.get() > 0.0 => {
                wrong("netem.reorder_correlation", "found it without reorder, expected both or none")
            }
            _ if self.jitter.is_zero() && self.correlation.get() > 0.0 => wrong(
                "netem.correlation",
                "found it without jitter, whose correlation it is, expected both or none",
            ),
            _ if self.jitter.is_zero() && self.in_order => wrong(
                "netem.in_order",
                "found true without jitter, with which packets keep their order anyway",
            ),
            _ => Ok(()),
        }
    }

    /// Whether packets keep their order.
    pub(super) fn keeps_order(&self) -> bool {
        self.in_order || (self.jitter.is_zero() && self.reorder.get() == 0.0)
    }

    /// The share of packets that skip the delay: one of `gap` - 1 + 1 / `reorder`. Without correlation.
    pub fn reordered_share(&self) -> f64 {
        match self.reorder.get() {
            0.0 => 0.0,
            probability => 1.0 / (f64::from(self.gap) - 1.0 + 1.0 / probability),
        }
    }

    /// The time by which a packet overtakes others, on average at most.
    pub(super) fn overtaking(&self) -> Duration {
        let skipped = Duration::from_secs_f64(self.delay.as_secs_f64() * self.reordered_share());
        if self.in_order { Duration::ZERO } else { self.jitter + skipped }
    }

    /// The mean delay, without correlation: a jitter above the delay cuts delays at zero.
    pub(super) fn mean_s(&self) -> f64 {
        let (delay, jitter) = (self.delay.as_secs_f64(), self.jitter.as_secs_f64());
        let mean = if jitter > delay { (delay + jitter).powi(2) / (4.0 * jitter) } else { delay };
        mean * (1.0 - self.reordered_share())
    }
}

/// Delays of successive packets.
#[derive(Clone, Debug)]
pub(super) struct NetemReader {
    params: Netem,
    jitter: Correlated,
    reorder: Correlated,
    /// Packets with a delay since the last one without.
    delayed: u32,
}

impl NetemReader {
    pub(super) fn new(params: Netem, jitter: Stream, reorder: Stream) -> NetemReader {
        let jitter = Correlated::new(params.correlation, jitter);
        let reorder = Correlated::new(params.reorder_correlation, reorder);
        NetemReader { params, jitter, reorder, delayed: 0 }
    }

    /// Whether packets keep their order.
    pub(super) fn keeps_order(&self) -> bool {
        self.params.keeps_order()
    }

    /// The delay of the next packet.
    pub(super) fn next(&mut self) -> Duration {
        if self.skips() {
            self.delayed = 0;
            return Duration::ZERO;
        }
        self.delayed = self.delayed.saturating_add(1);
        let Netem { delay, jitter, .. } = self.params;
        if jitter.is_zero() {
            return delay;
        }
        let spread = u128::from(2 * jitter.as_nanos()) * u128::from(self.jitter.next());
        (delay + Duration::from_nanos((spread >> 32) as u64)).saturating_sub(jitter)
    }

    fn skips(&mut self) -> bool {
        let probability = self.params.reorder.get();
        probability > 0.0
            && self.delayed >= self.params.gap - 1
            && u64::from(self.reorder.next()) <= of_32_bits(probability)
    }
}

/// A probability of `tc`, in units of 2⁻³².
fn of_32_bits(probability: f64) -> u64 {
    (probability * f64::from(u32::MAX)).round() as u64
}

/// Correlated numbers of 32 bits (`get_crandom`).
#[derive(Clone, Debug)]
struct Correlated {
    /// The weight of the last number, in units of 2⁻³²; zero for independent ones.
    weight: u64,
    last: u64,
    random: Stream,
}

impl Correlated {
    fn new(correlation: Probability, mut random: Stream) -> Correlated {
        let weight = match correlation.get() {
            0.0 => 0,
            correlation => of_32_bits(correlation) + 1,
        };
        Correlated { weight, last: random.below(1 << 32), random }
    }

    fn next(&mut self) -> u32 {
        let new = self.random.below(1 << 32);
        self.last = (new * ((1 << 32) - self.weight) + self.last * self.weight) >> 32;
        self.last as u32
    }
}

#[cfg(test)]
mod tests {
    use lasthop_base::Streams;

    use super::*;

    fn probability(p: f64) -> Probability {
        Probability::new(p).expect("a probability")
    }

    fn delays(params: Netem, packets: usize) -> Vec<f64> {
        let streams = Streams::new(6, 0);
        let mut reader = NetemReader::new(params, streams.stream("jitter"), streams.stream("reorder"));
        (0..packets).map(|_| reader.next().as_secs_f64()).collect()
    }

    fn usual() -> Netem {
        Netem {
            delay: Duration::from_millis(50),
            jitter: Duration::ZERO,
            correlation: probability(0.0),
            reorder: probability(0.0),
            reorder_correlation: probability(0.0),
            gap: 1,
            in_order: false,
        }
    }

    /// Between two packets that skip the delay there are gap - 1 packets and a geometric number: the share is
    /// 1 / (gap - 1 + 1 / p), with certainty every gap-th packet.
    #[test]
    fn the_gap_and_the_probability_give_the_share() {
        for (gap, p) in [(1, 0.01), (1, 0.25), (5, 0.25), (5, 1.0), (20, 0.5)] {
            let params = Netem { gap, reorder: probability(p), ..usual() };
            let found = delays(params, 100_000);
            let skipping: Vec<usize> =
                (0..).zip(&found).filter(|(_, s)| **s == 0.0).map(|(n, _)| n).collect();
            let distances = || skipping.windows(2).map(|two| two[1] - two[0]);
            assert!(distances().all(|distance| distance >= gap as usize), "{gap}, {p}");
            let (share, n) = (skipping.len() as f64 / 1e5, skipping.len() as f64);
            // The distances have the variance of the geometric distribution.
            let mean = f64::from(gap) - 1.0 + 1.0 / p;
            let error = ((1.0 - p) / (p * p) / n).sqrt() / mean;
            let expected = params.reordered_share();
            assert!(
                (share / expected - 1.0).abs() <= 5.0 * error + gap as f64 / 1e5,
                "{gap}, {p}: {share}, not {expected}"
            );
            let mean_s = found.iter().sum::<f64>() / 1e5;
            assert!((mean_s - params.mean_s()).abs() < 1e-3, "{gap}, {p}: {mean_s} s");
        }
    }

    /// Uniform over twice the jitter; with the weight ρ of the last number its variance is (1 - ρ) / (1 + ρ) of that, and the
    /// correlation of successive delays is ρ.
    #[test]
    fn the_jitter_has_the_moments_of_netem() {
        for rho in [0.0, 0.25, 0.9] {
            let params =
                Netem { jitter: Duration::from_millis(20), correlation: probability(rho), ..usual() };
            let found = delays(params, 200_000);
            assert!(found.iter().all(|s| (0.03..0.07).contains(s)), "{rho}");
            let n = found.len() as f64;
            let mean = found.iter().sum::<f64>() / n;
            let variance = found.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / n;
            let pairs = found.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum::<f64>() / n;
            let expected = 0.04_f64.powi(2) / 12.0 * (1.0 - rho) / (1.0 + rho);
            assert!((mean - 0.05).abs() < 2e-4, "{rho}: {mean} s");
            assert!((variance / expected - 1.0).abs() < 0.03, "{rho}: {variance}, not {expected}");
            assert!((pairs / variance - rho).abs() < 0.02, "{rho}: {}", pairs / variance);
        }
    }

    /// A jitter above the delay cuts it at zero; a full correlation repeats the first number.
    #[test]
    fn extremes_stay_in_their_range() {
        let params = Netem { delay: Duration::from_millis(1), jitter: Duration::from_millis(20), ..usual() };
        let found = delays(params, 10_000);
        let (least, most) =
            found.iter().fold((f64::MAX, 0.0_f64), |(least, most), s| (least.min(*s), most.max(*s)));
        assert!(least == 0.0 && (0.0209..0.021).contains(&most), "{least}, {most}");
        let mean_s = found.iter().sum::<f64>() / 10_000.0;
        assert!((mean_s / params.mean_s() - 1.0).abs() < 0.05, "{mean_s} s, not {}", params.mean_s());
        let repeated = delays(Netem { correlation: probability(1.0), ..params }, 100);
        assert!(repeated.iter().all(|s| *s == repeated[0]));
    }
}
