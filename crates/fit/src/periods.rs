//! Distributions of period lengths: exponential or lognormal.
//!
//! The likelihood of hidden periods with arbitrary distributions has no fast recursion. Therefore the periods
//! are decoded first, as the most probable state sequence for exponential lengths, and distributions are
//! compared on the result.
//!
//! # The likelihood of a decoded period A period starts within the gap of length a before its first probe,
//! and ends within the gap of length b after its last probe, d seconds later. A period between two probes is
//! not observed. With the integral H of the cumulative distribution F, and given that the period contains the
//! first probe,
//!
//! > P = (H(d + a + b) − H(d + a) − H(d + b) + H(d)) / (a − H(a)).
//!
//! The last period of a record is censored; ignoring it would bias heavy-tailed distributions towards short
//! lengths. The start of the first period is not observed either, and it is in progress at a random time.
//! With the mean m,
//!
//! > P(last) = (a − H(d + a) + H(d)) / (a − H(a)),  P(first) = (b − H(d + b) + H(d)) / m.

use crate::likelihood::TwoState;
use crate::losses::{Losses, Outcomes};
use crate::model::Law;
use crate::search::minimise;

/// Minimum number of complete periods to compare distributions.
const FEWEST: usize = 20;

/// Minimum number of complete periods to estimate a lognormal distribution.
const FEWEST_OF_KNOWN: usize = 3;

/// Minimum mean period, in gaps between probes or in intervals. Shorter periods contain at most one probe and are not
/// decoded reliably, which distorts the distribution of their lengths.
const SHORTEST: f64 = 2.0;

/// Lower bound of the probability of a period, above rounding errors of about 1e-12; true probabilities are
/// far larger.
const LEAST: f64 = 1e-10;

/// The distributions of good and bad periods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Laws {
    pub(crate) good: Law,
    pub(crate) bad: Law,
    /// Gain in log-likelihood over exponential distributions, minus the mean gain by chance.
    pub(crate) gain: f64,
    /// Half the cost of the additional parameters in the BIC.
    pub(crate) cost: f64,
    /// Half their cost in the AIC.
    pub(crate) predictive_cost: f64,
    pub(crate) more_parameters: u32,
}

/// A decoded period, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Period {
    /// Time from the last probe before the period to its first probe; `None` for the first period of a
    /// record.
    before: Option<f64>,
    /// Time from the first probe of the period to its last one.
    between: f64,
    /// Time from the last probe of the period to the next probe; `None` for the last period of a record.
    after: Option<f64>,
}

impl Period {
    /// Whether both ends were observed.
    fn complete(&self) -> bool {
        self.before.is_some() && self.after.is_some()
    }
}

/// A lognormal distribution fitted to decoded periods.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidate {
    law: Law,
    /// Gain in log-likelihood over the best exponential distribution.
    gain: f64,
    /// Half the cost of the additional parameter in the BIC, where its sample size is the number of periods, not of
    /// probes (Volinsky and Raftery 2000).
    cost: f64,
    /// Half the cost in the AIC.
    predictive_cost: f64,
}

/// Lognormal distributions of the good and the bad periods decoded with `chain`; `None` if there are fewer than `fewest`
/// complete periods of either kind, or if they are too short.
fn candidates(losses: &Losses, chain: &TwoState, fewest: usize) -> Option<[Candidate; 2]> {
    if chain.good.min(chain.bad) < SHORTEST * losses.resolution_s() {
        return None;
    }
    let (good, bad) = decode(losses, chain);
    let complete = |periods: &[Period]| periods.iter().filter(|period| period.complete()).count();
    if complete(&good).min(complete(&bad)) < fewest {
        return None;
    }
    Some([(good, chain.good), (bad, chain.bad)].map(|(periods, mean)| {
        let (law, most) = lognormal(&periods);
        let cost = libm::log(complete(&periods) as f64) / 2.0;
        Candidate { law, gain: most - exponential(&periods, mean), cost, predictive_cost: 1.0 }
    }))
}

/// The gains of lognormal distributions of the good and the bad periods decoded with `chain`; `None` if there are too few
/// periods, or if they are too short.
pub(crate) fn gains(losses: &Losses, chain: &TwoState) -> Option<[f64; 2]> {
    candidates(losses, chain, FEWEST).map(|laws| laws.map(|each| each.gain))
}

/// The distributions of the periods decoded with `chain`, of which at least one is lognormal: those whose gain exceeds the
/// cost of the parameter. `None` if there are too few periods, or if they are too short.
///
/// If probes do not determine their state, short periods are not decoded and the rest looks lognormal. A gain must then
/// exceed all those `by_chance`, of records with exponential periods, and their mean is subtracted.
pub(crate) fn choose_lognormal(
    losses: &Losses,
    chain: &TwoState,
    by_chance: impl FnOnce() -> Vec<[f64; 2]>,
) -> Option<Laws> {
    let mut laws = candidates(losses, chain, FEWEST)?;
    if !determined(losses, chain) && laws.iter().any(|law| law.gain > law.cost) {
        let by_chance = by_chance();
        if by_chance.is_empty() {
            return None;
        }
        for (state, law) in laws.iter_mut().enumerate() {
            let gains = by_chance.iter().map(|gains| gains[state]);
            let mean = gains.clone().sum::<f64>() / by_chance.len() as f64;
            law.gain -= mean;
            law.cost = law.cost.max(gains.fold(f64::NEG_INFINITY, f64::max) - mean);
        }
    }
    if !determined(losses, chain) {
        // The AIC holds for the likelihood of the record, not for that of periods which may be decoded wrongly.
        laws.iter_mut().for_each(|law| law.predictive_cost = law.cost);
    }
    let worth = laws.map(|law| law.gain - law.cost);
    let chosen = match worth.iter().any(|&worth| worth > 0.0) {
        true => worth.map(|worth| worth > 0.0),
        false => [worth[0] >= worth[1], worth[0] < worth[1]],
    };
    Some(with_lognormal(&laws, chain, chosen))
}

/// The distributions of the periods decoded with `chain`, of which the good, the bad or both are `known` to be lognormal.
/// `None` if there are too few periods, or if they are too short.
pub(crate) fn known_lognormal(losses: &Losses, chain: &TwoState, known: [bool; 2]) -> Option<Laws> {
    candidates(losses, chain, FEWEST_OF_KNOWN).map(|laws| with_lognormal(&laws, chain, known))
}

/// The distributions of good and bad periods, of which those `chosen` are lognormal.
fn with_lognormal(laws: &[Candidate; 2], chain: &TwoState, chosen: [bool; 2]) -> Laws {
    let law = |state: usize, mean: f64| if chosen[state] { laws[state].law } else { Law::Exponential(mean) };
    let of_chosen = |part: fn(&Candidate) -> f64| {
        laws.iter().zip(chosen).filter(|&(_, chosen)| chosen).map(|(law, _)| part(law)).sum()
    };
    Laws {
        good: law(0, chain.good),
        bad: law(1, chain.bad),
        gain: of_chosen(|law| law.gain),
        cost: of_chosen(|law| law.cost),
        predictive_cost: of_chosen(|law| law.predictive_cost),
        more_parameters: chosen.iter().filter(|&&chosen| chosen).count() as u32,
    }
}

/// Whether the fate of each probe determines the state.
fn determined(losses: &Losses, chain: &TwoState) -> bool {
    chain.loss_good == 0.0 && chain.loss_bad == 1.0 && losses.outcomes().is_some()
}

/// Whether the state is bad at each probe, in the most probable state sequence (Viterbi 1967).
fn likeliest_states(losses: &Losses, chain: &TwoState) -> Vec<bool> {
    let times = &losses.times;
    let outcome = |index: usize| match &losses.outcomes {
        Outcomes::Probes(lost) => (u32::from(lost[index]), u32::from(!lost[index])),
        Outcomes::Counts(counts) => (counts[index].2, counts[index].1 - counts[index].2),
    };
    let log = |share: f64, count: u32| if count == 0 { 0.0 } else { libm::log(share) * f64::from(count) };
    let weights = |index: usize| {
        let (lost, received) = outcome(index);
        [chain.loss_good, chain.loss_bad].map(|loss| log(loss, lost) + log(1.0 - loss, received))
    };
    // Whether the most probable path to each state at each probe comes from the bad state.
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
    states
}

/// The good and the bad periods of the most probable state sequence. Empty if the state never changes.
fn decode(losses: &Losses, chain: &TwoState) -> (Vec<Period>, Vec<Period>) {
    let times = &losses.times;
    let states = match &losses.outcomes {
        Outcomes::Probes(lost) if determined(losses, chain) => lost.clone(),
        _ => likeliest_states(losses, chain),
    };
    let changes: Vec<usize> = (1..times.len()).filter(|&index| states[index] != states[index - 1]).collect();
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    if changes.is_empty() {
        return (good, bad);
    }
    let mut begin = 0_usize;
    for end in changes.into_iter().chain([times.len()]) {
        let period = Period {
            before: begin.checked_sub(1).map(|last| times[begin] - times[last]),
            between: times[end - 1] - times[begin],
            after: times.get(end).map(|next| next - times[end - 1]),
        };
        if states[begin] { &mut bad } else { &mut good }.push(period);
        begin = end;
    }
    (good, bad)
}

/// The log-likelihood of the best exponential distribution.
fn exponential(periods: &[Period], start: f64) -> f64 {
    let cost = |place: &[f64]| {
        let mean = libm::exp(place[0]);
        -log_likelihood(periods, mean, |length| length + mean * libm::expm1(-length / mean))
    };
    -minimise(cost, &[libm::log(start)], 0.3).1
}

/// The best lognormal distribution, and its log-likelihood.
fn lognormal(periods: &[Period]) -> (Law, f64) {
    let logs: Vec<f64> = periods
        .iter()
        .filter_map(|period| Some(libm::log(period.between + (period.before? + period.after?) / 2.0)))
        .collect();
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let spread = libm::sqrt(logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / count);
    // The limit of scenario files.
    let sigma = |place: &[f64]| libm::exp(place[1]).clamp(1e-2, 5.0);
    let cost = |place: &[f64]| {
        let (log_median, sigma) = (place[0], sigma(place));
        let mean = libm::exp(log_median + sigma * sigma / 2.0);
        -log_likelihood(periods, mean, |length| match length > 0.0 {
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

/// The cumulative standard normal distribution.
fn normal(z: f64) -> f64 {
    libm::erfc(-z * core::f64::consts::FRAC_1_SQRT_2) / 2.0
}

/// The log-likelihood of periods under a distribution with this mean; `below` is the integral of the
/// cumulative distribution from zero.
fn log_likelihood(periods: &[Period], mean: f64, below: impl Fn(f64) -> f64) -> f64 {
    let of = |&Period { before, between, after }: &Period| {
        // The expected excess of a period over `between`, limited to the gap.
        let excess = |gap: f64| gap - below(between + gap) + below(between);
        let likelihood = match (before, after) {
            (Some(before), Some(after)) => {
                let seen = below(between + before + after) - below(between + before) - below(between + after)
                    + below(between);
                seen / (before - below(before))
            }
            (Some(before), None) => excess(before) / (before - below(before)),
            (None, Some(after)) => excess(after) / mean,
            (None, None) => unreachable!("the state changes"),
        };
        // Below the bound, rounding would determine the logarithm and a single period would dominate.
        libm::log(likelihood.max(LEAST))
    };
    periods.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use lasthop_base::Streams;

    use super::*;

    /// The probability of a decoded period agrees with its frequency in simulations, within four standard
    /// errors: for a complete period, for the last period of a record (with a uniform start in the gap
    /// before), and for the first (with the residual life of exponential lengths).
    #[test]
    fn the_probability_of_a_period_is_its_frequency() {
        let mut stream = Streams::new(1, 0).stream("periods");
        let (before, between, after) = (0.5, 0.2, 0.7);
        let draws = 200_000;
        let (mut met, mut whole, mut last, mut first) = (0_u32, 0_u32, 0_u32, 0_u32);
        for _ in 0..draws {
            let begin = stream.uniform() * before;
            let length = -libm::log(1.0 - stream.uniform()) * 0.4;
            let end = begin + length;
            met += u32::from(end > before);
            whole += u32::from(end > before + between && end <= before + between + after);
            last += u32::from(end > before + between);
            first += u32::from(length > between && length <= between + after);
        }
        let cases = [
            (Some(before), Some(after), whole, met),
            (Some(before), None, last, met),
            (None, Some(after), first, draws),
        ];
        for (before, after, found, of) in cases {
            let period = Period { before, between, after };
            let expected = log_likelihood(&[period], 0.4, |length| length + 0.4 * libm::expm1(-length / 0.4));
            let share = f64::from(found) / f64::from(of);
            let error = libm::sqrt(share * (1.0 - share) / f64::from(of));
            assert!(
                (libm::exp(expected) - share).abs() < 4.0 * error,
                "{period:?}: {} for {share}",
                libm::exp(expected)
            );
        }
    }

    /// The state is decoded up to both ends of the record, whose first and last periods are incomplete.
    #[test]
    fn the_first_and_the_last_period_are_decoded() {
        let times = (0..9).map(f64::from).collect();
        let lost = [0, 0, 1, 1, 1, 0, 0, 0, 1].map(|lost| lost == 1).to_vec();
        let losses = Losses::of_probes(times, lost).expect("a record");
        let chain = TwoState { good: 3.0, bad: 3.0, loss_good: 0.0, loss_bad: 1.0 };
        let of = |before, between, after| Period { before, between, after };
        let good = vec![of(None, 1.0, Some(1.0)), of(Some(1.0), 2.0, Some(1.0))];
        let bad = vec![of(Some(1.0), 2.0, Some(1.0)), of(Some(1.0), 0.0, None)];
        assert_eq!(decode(&losses, &chain), (good, bad));
        assert_eq!(likeliest_states(&losses, &chain), losses.outcomes().expect("a record of probes"));
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
                    before: Some(0.05),
                    between: f64::from(probes - 1) * 0.05,
                    after: Some(0.05),
                })
            })
            .collect();
        let (Law::Lognormal { median, sigma }, most) = lognormal(&periods) else { unreachable!() };
        assert!((median - 0.2).abs() < 0.015 && (sigma - 1.1).abs() < 0.06, "{median} {sigma}");
        assert!(most - exponential(&periods, 0.3) > 20.0);
    }
}
