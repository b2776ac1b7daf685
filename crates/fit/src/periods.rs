//! The lengths of the periods of a record, and whether they are lognormal.
//!
//! A likelihood of hidden periods with any law has no cheap recursion. So periods are decoded first, by the most
//! probable state sequence under exponential lengths, and the laws are compared on those.
//!
//! # The likelihood of a decoded period
//! A period begins somewhere in the gap before its first probe, of length a, and ends somewhere in the gap after its last
//! one, of length b; between those two probes lie d seconds. One that falls between two probes is never seen. With the
//! integral H of the law's cumulative distribution F, and given that the first probe is met,
//!
//! > P = (H(d + a + b) − H(d + a) − H(d + b) + H(d)) / (a − H(a)).

use crate::likelihood::TwoState;
use crate::losses::{Fates, Losses};
use crate::model::Law;
use crate::search::minimise;

/// Fewer periods do not tell one law from another.
const FEWEST: usize = 20;

/// Shorter periods, in gaps between probes, are not decoded reliably: most of them meet one probe or none, and which that
/// was looks like a law of their lengths.
const SHORTEST: f64 = 2.0;

/// The least probability of a period. Those of single periods are far larger; rounding leaves about 1e-12.
const LEAST: f64 = 1e-10;

/// Which laws are to be lognormal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LogNormals {
    /// At least one of them: those that gain more than their parameter costs.
    Chosen,
    /// The given ones.
    These { good: bool, bad: bool },
}

/// The laws of both kinds of periods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Laws {
    pub(crate) good: Law,
    pub(crate) bad: Law,
    /// Gain in log-likelihood over exponential laws.
    pub(crate) gain: f64,
    pub(crate) more_parameters: u32,
}

/// A decoded period, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Period {
    /// From the last probe before it to its first one.
    before: f64,
    /// From its first probe to its last one.
    between: f64,
    /// From its last probe to the next one.
    after: f64,
}

/// The laws of the periods of a record, as decoded with `chain`; `None` if there are too few of them, or if they are too
/// short.
pub(crate) fn lognormal_periods(losses: &Losses, chain: &TwoState, which: LogNormals) -> Option<Laws> {
    if chain.good.min(chain.bad) < SHORTEST * losses.spacing_s() {
        return None;
    }
    let (good, bad) = decode(losses, chain);
    if good.len() < FEWEST || bad.len() < FEWEST {
        return None;
    }
    let cost = libm::log(losses.len() as f64) / 2.0;
    let laws = [(good, chain.good), (bad, chain.bad)].map(|(periods, mean)| {
        let (law, most) = lognormal(&periods);
        (law, most - exponential(&periods, mean))
    });
    let wanted = match which {
        LogNormals::These { good, bad } => [good, bad],
        LogNormals::Chosen => {
            let better = laws.map(|(_, gain)| gain > cost);
            let best = laws[0].1 < laws[1].1;
            // The family has at least one, even where it loses.
            if better == [false, false] { [!best, best] } else { better }
        }
    };
    let law = |state: usize| match wanted[state] {
        true => laws[state].0,
        false => Law::Exponential(if state == 0 { chain.good } else { chain.bad }),
    };
    let gain = (0..2).filter(|&state| wanted[state]).map(|state| laws[state].1).sum();
    let more_parameters = wanted.iter().filter(|&&lognormal| lognormal).count() as u32;
    Some(Laws { good: law(0), bad: law(1), gain, more_parameters })
}

/// The good and the bad periods of the most probable state sequence (Viterbi 1967), without the first and the last one, of
/// which one end was not observed.
fn decode(losses: &Losses, chain: &TwoState) -> (Vec<Period>, Vec<Period>) {
    let times = &losses.times;
    let outcome = |index: usize| match &losses.fates {
        Fates::Probes(lost) => (u32::from(lost[index]), u32::from(!lost[index])),
        Fates::Counts(counts) => (counts[index].2, counts[index].1 - counts[index].2),
    };
    let log = |share: f64, count: u32| if count == 0 { 0.0 } else { libm::log(share) * f64::from(count) };
    let weights = |index: usize| {
        let (lost, received) = outcome(index);
        [chain.loss_good, chain.loss_bad].map(|loss| log(loss, lost) + log(1.0 - loss, received))
    };
    // Whether the likeliest way to each state at each probe comes from the bad one.
    let mut came_from_bad = vec![[false, true]; times.len()];
    let (stationary, first) = (chain.stationary(), weights(0));
    let mut score = [0, 1].map(|state| libm::log(stationary[state]) + first[state]);
    for index in 1..times.len() {
        let [leave_good, leave_bad] = chain.changes(times[index] - times[index - 1]);
        let weight = weights(index);
        let from_good = [score[0] + libm::log1p(-leave_good), score[0] + libm::log(leave_good)];
        let from_bad = [score[1] + libm::log(leave_bad), score[1] + libm::log1p(-leave_bad)];
        came_from_bad[index] = [0, 1].map(|state| from_bad[state] > from_good[state]);
        score = [0, 1].map(|state| from_bad[state].max(from_good[state]) + weight[state]);
    }
    let mut bad = score[1] > score[0];
    let mut states = vec![bad; times.len()];
    for index in (1..times.len()).rev() {
        bad = came_from_bad[index][usize::from(bad)];
        states[index - 1] = bad;
    }
    let changes: Vec<usize> = (1..times.len()).filter(|&index| states[index] != states[index - 1]).collect();
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for pair in changes.windows(2) {
        let (begin, end) = (pair[0], pair[1]);
        let period = Period {
            before: times[begin] - times[begin - 1],
            between: times[end - 1] - times[begin],
            after: times[end] - times[end - 1],
        };
        if states[begin] { &mut bad } else { &mut good }.push(period);
    }
    (good, bad)
}

/// The logarithm of the likelihood of the likeliest exponential law.
fn exponential(periods: &[Period], start: f64) -> f64 {
    let cost = |place: &[f64]| {
        let mean = libm::exp(place[0]);
        -log_likelihood(periods, |length| length + mean * libm::expm1(-length / mean))
    };
    -minimise(cost, &[libm::log(start)], 0.3).1
}

/// The likeliest lognormal law, and the logarithm of its likelihood.
fn lognormal(periods: &[Period]) -> (Law, f64) {
    let logs: Vec<f64> = periods
        .iter()
        .map(|period| libm::log(period.between + (period.before + period.after) / 2.0))
        .collect();
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let spread = libm::sqrt(logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / count);
    // A scenario takes no wider law.
    let sigma = |place: &[f64]| libm::exp(place[1]).clamp(1e-2, 5.0);
    let cost = |place: &[f64]| {
        let (log_median, sigma) = (place[0], sigma(place));
        let mean = libm::exp(log_median + sigma * sigma / 2.0);
        -log_likelihood(periods, |length| match length > 0.0 {
            true => {
                let z = (libm::log(length) - log_median) / sigma;
                length * normal(z) - mean * normal(z - sigma)
            }
            false => 0.0,
        })
    };
    let start = [mean, libm::log(spread.clamp(0.1, 4.0))];
    let (place, cost) = minimise(cost, &start, 0.3);
    (Law::Lognormal { median: libm::exp(place[0]), sigma: sigma(&place) }, -cost)
}

/// The cumulative distribution of the standard normal law.
fn normal(z: f64) -> f64 {
    libm::erfc(-z * core::f64::consts::FRAC_1_SQRT_2) / 2.0
}

/// The log-likelihood of periods; `below` is the integral of the law's cumulative distribution from zero on.
fn log_likelihood(periods: &[Period], below: impl Fn(f64) -> f64) -> f64 {
    let of = |&Period { before, between, after }: &Period| {
        let met = before - below(before);
        let seen = below(between + before + after) - below(between + before) - below(between + after)
            + below(between);
        // Below the floor, rounding would determine the logarithm, and one period decide alone.
        libm::log((seen / met).max(LEAST))
    };
    periods.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use lasthop_base::Streams;

    use super::*;

    /// The probability of a decoded period is how often simulated ones are met so: of 200,000 periods that begin uniformly in
    /// the gap before, within four standard errors.
    #[test]
    fn the_probability_of_a_period_is_its_frequency() {
        let mut stream = Streams::new(1, 0).stream("periods");
        let gaps = [0.5, 0.2, 0.7];
        let (before, between, after) = (gaps[0], gaps[1], gaps[2]);
        let draws = 200_000;
        let (mut met, mut so) = (0_u32, 0_u32);
        for _ in 0..draws {
            let begin = stream.uniform() * before;
            let end = begin - libm::log(1.0 - stream.uniform()) * 0.4;
            met += u32::from(end > before);
            so += u32::from(end > before + between && end <= before + between + after);
        }
        let found = log_likelihood(&[Period { before, between, after }], |length| {
            length + 0.4 * libm::expm1(-length / 0.4)
        });
        let share = f64::from(so) / f64::from(met);
        let error = libm::sqrt(share * (1.0 - share) / f64::from(met));
        assert!((libm::exp(found) - share).abs() < 4.0 * error, "{} for {share}", libm::exp(found));
    }

    #[test]
    fn lognormal_lengths_are_recovered() {
        let mut stream = Streams::new(2, 0).stream("periods");
        let periods: Vec<Period> = (0..3000)
            .filter_map(|_| {
                let begin = stream.uniform() * 0.05;
                let end = begin + 0.2 * libm::exp(1.1 * stream.normal());
                let probes = libm::floor(end / 0.05) as i32;
                (probes > 0).then(|| Period {
                    before: 0.05,
                    between: f64::from(probes - 1) * 0.05,
                    after: 0.05,
                })
            })
            .collect();
        let (Law::Lognormal { median, sigma }, most) = lognormal(&periods) else { unreachable!() };
        assert!((median - 0.2).abs() < 0.015 && (sigma - 1.1).abs() < 0.06, "{median} {sigma}");
        assert!(most - exponential(&periods, 0.3) > 20.0);
    }
}
