//! The likelihood of a record under a two-state Markov chain in continuous time.

use crate::blocks::Block;

/// A two-state Markov chain in continuous time, with a loss probability in each state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TwoState {
    /// Mean sojourn time in the good state, in seconds.
    pub(crate) good: f64,
    /// Mean sojourn time in the bad state, in seconds.
    pub(crate) bad: f64,
    pub(crate) loss_good: f64,
    pub(crate) loss_bad: f64,
}

/// A value for each state, good and bad: probabilities or factors.
pub(crate) type Pair = [f64; 2];

impl TwoState {
    /// The stationary distribution.
    pub(crate) fn stationary(&self) -> Pair {
        let bad = self.bad / (self.good + self.bad);
        [1.0 - bad, bad]
    }

    /// The probabilities of being in the other state after `gap` seconds: from good to bad, and from bad to
    /// good.
    pub(crate) fn changes(&self, gap: f64) -> Pair {
        let [good, bad] = self.stationary();
        let moved = -libm::expm1(-(1.0 / self.good + 1.0 / self.bad) * gap);
        [bad * moved, good * moved]
    }

    /// The probability of the result of a probe in each state.
    pub(crate) fn emissions(&self, lost: bool) -> Pair {
        [self.loss_good, self.loss_bad].map(|loss| if lost { loss } else { 1.0 - loss })
    }

    /// The log-likelihood, by the forward algorithm of hidden Markov models; minus infinity for impossible
    /// records. Linear in the number of blocks.
    pub(crate) fn log_likelihood(&self, blocks: &[Block]) -> f64 {
        let mut state = self.stationary();
        let mut logarithm = 0.0;
        for block in blocks {
            let emissions = self.emissions(block.lost);
            let [leave_good, leave_bad] = self.changes(block.gap);
            let step = [
                [(1.0 - leave_good) * emissions[0], leave_bad * emissions[0]],
                [leave_good * emissions[1], (1.0 - leave_bad) * emissions[1]],
            ];
            let scale;
            (state, scale) = match block.probes {
                1 => (apply(&step, state), 0.0),
                probes => apply_often(&step, probes, state),
            };
            let sum = state[0] + state[1];
            // Also for NaN.
            if sum.is_nan() || sum <= 0.0 {
                return f64::NEG_INFINITY;
            }
            state = [state[0] / sum, state[1] / sum];
            logarithm += libm::log(sum) + scale;
        }
        logarithm
    }
}

pub(crate) fn apply(matrix: &[Pair; 2], vector: Pair) -> Pair {
    [0, 1].map(|row| matrix[row][0] * vector[0] + matrix[row][1] * vector[1])
}

/// A power of a non-negative matrix applied to a vector, and the logarithm of a factor left out.
///
/// By the eigenvalues a ≥ b: Mⁿ = aⁿ (P + (b/a)ⁿ (1 − P)) with the projection P = (M − b)/(a − b).
fn apply_often(matrix: &[Pair; 2], times: u32, vector: Pair) -> (Pair, f64) {
    let [[m00, m01], [m10, m11]] = *matrix;
    let half_apart = (m00 - m11) / 2.0;
    let root = libm::sqrt(half_apart * half_apart + m01 * m10);
    let middle = (m00 + m11) / 2.0;
    let largest = middle + root;
    if root <= 1e-9 * largest || largest <= 0.0 {
        // Nearly equal eigenvalues: the matrix is nearly diagonal and the projection ill-conditioned.
        return ((0..times).fold(vector, |vector, _| apply(matrix, vector)), 0.0);
    }
    let least = middle - root;
    let moved = apply(matrix, vector);
    let shrunk = libm::pow(least / largest, f64::from(times));
    let result = [0, 1].map(|row| {
        let projected = (moved[row] - least * vector[row]) / (2.0 * root);
        // Rounding can give negative values.
        (projected + shrunk * (vector[row] - projected)).max(0.0)
    });
    (result, f64::from(times) * libm::log(largest))
}

#[cfg(test)]
mod tests {
    use lasthop_base::{Stream, Streams};

    use super::*;
    use crate::evidence::Evidence;
    use crate::losses::Losses;

    /// The likelihood as a sum over all state sequences.
    fn by_enumeration(chain: &TwoState, times: &[f64], lost: &[bool]) -> f64 {
        let courses = (0..1_u32 << times.len()).map(|course| {
            let state = |index: usize| (course >> index & 1) as usize;
            let mut probability = chain.stationary()[state(0)];
            for index in 0..times.len() {
                if index > 0 {
                    let leave = chain.changes(times[index] - times[index - 1])[state(index - 1)];
                    let changed = state(index) != state(index - 1);
                    probability *= if changed { leave } else { 1.0 - leave };
                }
                let loss = [chain.loss_good, chain.loss_bad][state(index)];
                probability *= if lost[index] { loss } else { 1.0 - loss };
            }
            probability
        });
        courses.sum()
    }

    fn random_chain(stream: &mut Stream) -> TwoState {
        TwoState {
            good: 0.1 + 5.0 * stream.uniform(),
            bad: 0.01 + stream.uniform(),
            loss_good: 0.2 * stream.uniform(),
            loss_bad: stream.uniform(),
        }
    }

    #[test]
    fn equals_the_sum_over_all_courses() {
        let mut stream = Streams::new(1, 0).stream("likelihood");
        for _ in 0..200 {
            let chain = random_chain(&mut stream);
            let mut time = 0.0;
            let times: Vec<f64> = (0..9)
                .map(|_| {
                    time += [0.0, 0.01, 0.5, 3.0][stream.below(4) as usize];
                    time
                })
                .collect();
            let lost: Vec<bool> = times.iter().map(|_| stream.bernoulli(0.4)).collect();
            let expected = libm::log(by_enumeration(&chain, &times, &lost));
            let losses = Losses::of_probes(times, lost).expect("in order");
            let found = Evidence::of(&losses).log_likelihood(&chain);
            assert!((found - expected).abs() < 1e-9, "{chain:?}: {found} for {expected}");
        }
    }

    /// A block of probes has the same likelihood as its probes one by one.
    #[test]
    fn powers_equal_steps() {
        let mut stream = Streams::new(2, 0).stream("likelihood");
        for _ in 0..200 {
            let chain = random_chain(&mut stream);
            let lost = stream.bernoulli(0.5);
            let gap = [1e-6, 0.02, 4.0][stream.below(3) as usize];
            let run = Block { gap, probes: 1, lost };
            let count = 1 + stream.below(400) as u32;
            let first = Block { gap: 0.0, probes: 1, lost: false };
            let singles: Vec<_> = core::iter::once(first).chain((0..count).map(|_| run)).collect();
            let together = [first, Block { probes: count, ..run }];
            let (expected, found) = (chain.log_likelihood(&singles), chain.log_likelihood(&together));
            assert!(
                (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
                "{chain:?}: {found} for {expected}"
            );
        }
    }

    /// Grouping ignores uneven gaps within a run, which does not favour one chain over another.
    #[test]
    fn uneven_gaps_hardly_matter() {
        let mut stream = Streams::new(3, 0).stream("likelihood");
        let chains = [(4.0, 0.4), (5.0, 0.3)];
        let chains = chains.map(|(good, bad)| TwoState { good, bad, loss_good: 0.0, loss_bad: 0.9 });
        let mut time = 0.0;
        let times: Vec<f64> = (0..20_000)
            .map(|_| {
                time += 0.02 * (0.9 + 0.2 * stream.uniform());
                time
            })
            .collect();
        let lost: Vec<bool> = (0..times.len()).map(|k| k % 400 < 20 && k % 10 > 0).collect();
        let one = |index: usize| Block {
            gap: if index == 0 { 0.0 } else { times[index] - times[index - 1] },
            probes: 1,
            lost: lost[index],
        };
        let singles: Vec<_> = (0..times.len()).map(one).collect();
        let losses = Losses::of_probes(times.clone(), lost.clone()).expect("in order");
        let Evidence::Probes(grouped) = Evidence::of(&losses) else { unreachable!() };
        assert!(grouped.len() < 1000);
        let ratio = |blocks: &[Block]| chains[0].log_likelihood(blocks) - chains[1].log_likelihood(blocks);
        let (expected, found) = (ratio(&singles), ratio(&grouped));
        assert!((found - expected).abs() < 0.02, "{found} for {expected}");
    }
}
