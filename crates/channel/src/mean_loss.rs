//! Mean frame loss probability of a two-state channel.
//!
//! # Dwell times that are geometric multiples of a unit
//! A frame is on the air for T, starting at a random instant of the stationary process. In the bad state
//! errors come at a constant rate κ, so the frame survives with the mean of e^(−κA), where A is the bad part
//! of T. Let S(T) be this mean, B(T) the contribution of frames that begin in the bad state, and g(T) and
//! b(T) the same mean for a frame that begins together with a good or a bad sojourn.
//!
//! Let the frame begin earlier by dt. Of the frames that begin in the bad state, a share κ dt is lost in the
//! added interval; no others are. Sojourns end in that interval: λ dt frames begin at the end of a bad
//! sojourn and continue with a new good one, and as many no longer begin in a new bad one, where λ is one
//! over the sum of the mean good and the mean bad sojourn:
//!
//! > S′ = −κB, S(0) = 1,
//! > B′ = −κB + λ(g − b), B(0) = λ · mean bad stay.
//!
//! For g − b, let one frame begin with a good unit, with weight 1, and one with a bad unit, with weight −1,
//! and follow both through all possible trajectories. Let G be the surviving weight in the good state and H
//! that in the bad state: g − b = G + H. Until a unit ends, G is constant and H decays as e^(−κt), so the
//! equations above have a closed form up to there. Each unit that ends is followed by one of the other state
//! with the probability of leaving, whatever its position in its sojourn, since geometric lengths are
//! memoryless. The units of a state have one length, so they end in the order in which they began.
//!
//! There is no sampling and no step size: the only error is rounding.
//!
//! # Exponential dwell times
//! With mean dwell times 1/α and 1/β in units of the air time, and exponent κ in the bad state, frames
//! survive with probability π e^M 1, where π is the stationary distribution and
//!
//! > M = \[−α, α; β, −β − κ\].
//!
//! Its eigenvalues r₁ and r₂ are negative, and r₁ r₂ = ακ. The survival probability is A e^(r₁) + (1 − A)
//! e^(r₂). Its initial slope, −κ times the share of the bad state, gives A.

use alloc::collections::VecDeque;

use lasthop_base::{Duration, Probability};

use crate::State;
use crate::alternating::PerState;
use crate::bit_errors::BitErrors;

/// The probability that a frame of `bits` bits is lost at these bit error rates. The lower of the two rates
/// applies at all times; `beyond` returns the loss probability if only one state has errors, given that state
/// and its exponent, as in [`mean_loss`].
pub(crate) fn loss_at_rates(
    rates: PerState<Probability>,
    bits: u64,
    beyond: impl FnOnce(State, f64) -> f64,
) -> f64 {
    let exponent = |rate| -BitErrors::new(rate).log_survival(bits as f64);
    let (good, bad) = (exponent(rates.good), exponent(rates.bad));
    let (worse, least, most) = if good <= bad { (State::Bad, good, bad) } else { (State::Good, bad, good) };
    // The difference of two infinities is NaN.
    if least == f64::INFINITY {
        return 1.0;
    }
    decayed(least) + libm::exp(-least) * beyond(worse, most - least)
}

/// As [`mean_loss`], for exponential dwell times with these means.
pub(crate) fn mean_loss_exponential(means: PerState<Duration>, exponent: f64, on_air: Duration) -> f64 {
    let in_bad = 1.0 - means.availability();
    if exponent == 0.0 {
        return 0.0;
    }
    let times = |mean: Duration| on_air.as_nanos() as f64 / mean.as_nanos() as f64;
    let (leave_good, leave_bad) = (times(means.good), times(means.bad));
    if exponent == f64::INFINITY {
        return in_bad + (1.0 - in_bad) * decayed(leave_good);
    }
    let half_apart = (leave_good - leave_bad - exponent) / 2.0;
    let root = libm::sqrt(half_apart * half_apart + leave_good * leave_bad);
    let fast = -(leave_good + leave_bad + exponent) / 2.0 - root;
    // Avoids a subtraction, which would lose digits.
    let slow = leave_good * exponent / fast;
    let share = (-exponent * in_bad - fast) / (slow - fast);
    share * decayed(-slow) + (1.0 - share) * decayed(-fast)
}

/// The number of units of this length in `on_air`: instants at which a state may change.
pub(crate) fn instants(on_air: Duration, unit: Duration) -> f64 {
    on_air.as_secs_f64() / unit.as_secs_f64()
}

/// The unit of time of a state: its dwell times are multiples of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    /// Length of the unit, above zero.
    pub(crate) length: Duration,
    /// Probability of leaving the state at the end of a unit, above zero.
    pub(crate) leave: f64,
}

impl PerState<Unit> {
    /// The long-run fraction of time in the good state.
    pub(crate) fn availability(&self) -> f64 {
        let (good, bad) = self.shares();
        good / (good + bad)
    }

    /// Weights proportional to the mean dwell times in the good and the bad state: these times both
    /// probabilities of leaving, in nanoseconds. The products cannot overflow, and at most one rounds to
    /// zero.
    fn shares(&self) -> (f64, f64) {
        let length = |unit: Unit| unit.length.as_nanos() as f64;
        (length(self.good) * self.bad.leave, length(self.bad) * self.good.leave)
    }
}

/// The probability that a frame is lost that is on the air for `on_air` from a random instant and would
/// survive with probability e^(−`exponent`) if all of that time were bad. The error is below 10⁻¹² for a few
/// hundred units.
pub(crate) fn mean_loss(units: PerState<Unit>, exponent: f64, on_air: Duration) -> f64 {
    let (good, bad) = units.shares();
    let cycles_per_nano = units.good.leave * units.bad.leave / (good + bad);
    // B of the module documentation.
    let mut in_bad = bad / (good + bad);
    // 0 · ∞ is NaN.
    if exponent == 0.0 || on_air.is_zero() {
        return in_bad * -libm::expm1(-exponent);
    }
    let hazard = |length: Duration| exponent * (length.as_nanos() as f64 / on_air.as_nanos() as f64);

    // G and H of the module documentation, and the units in progress that they consist of.
    let mut surviving = PerState { good: 1.0, bad: -1.0 };
    let mut under_way = PerState {
        good: UnderWay::new(units.good.length, 1.0, surviving.good),
        bad: UnderWay::new(units.bad.length, libm::exp(-hazard(units.bad.length)), surviving.bad),
    };
    let (mut now, mut lost) = (Duration::ZERO, 0.0);
    loop {
        let next = under_way.good.next_end().min(under_way.bad.next_end()).min(on_air);
        let length = next - now;
        let (gone, mean_decayed) = (decayed(hazard(length)), mean_decayed(hazard(length)));
        let cycles = cycles_per_nano * length.as_nanos() as f64;
        let PerState { good, bad } = surviving;
        lost += in_bad * gone + cycles * (good * mean_decayed + bad * (gone - mean_decayed));
        in_bad = in_bad * (1.0 - gone) + cycles * (good * (1.0 - mean_decayed) + bad * (1.0 - gone));
        if next == on_air {
            // Rounding may exceed 1 where the result is almost certain.
            return lost.min(1.0);
        }
        now = next;

        let ended = PerState { good: under_way.good.end(now), bad: under_way.bad.end(now) };
        let to_bad = ended.good * units.good.leave;
        let to_good = ended.bad * units.bad.leave;
        let begun = PerState { good: ended.good - to_bad + to_good, bad: ended.bad - to_good + to_bad };
        under_way.good.begin(now, begun.good);
        under_way.bad.begin(now, begun.bad);
        surviving.good += begun.good - ended.good;
        surviving.bad = bad * (1.0 - gone) + begun.bad - ended.bad;
    }
}

/// The units of one state in progress.
struct UnderWay {
    length: Duration,
    /// The survival probability over one unit.
    survival: f64,
    /// End and initial weight of each, in order.
    units: VecDeque<(Duration, f64)>,
}

impl UnderWay {
    /// A single unit that begins at zero.
    fn new(length: Duration, survival: f64, first: f64) -> UnderWay {
        let mut under_way = UnderWay { length, survival, units: VecDeque::new() };
        under_way.begin(Duration::ZERO, first);
        under_way
    }

    fn begin(&mut self, now: Duration, amount: f64) {
        self.units.push_back((now + self.length, amount));
    }

    fn next_end(&self) -> Duration {
        self.units.front().map_or(Duration::MAX, |&(end, _)| end)
    }

    /// Removes the unit that ends at `now` and returns its surviving weight.
    fn end(&mut self, now: Duration) -> f64 {
        let ended = self.units.pop_front_if(|&mut (end, _)| end == now);
        ended.map_or(0.0, |(_, amount)| amount * self.survival)
    }
}

/// The decayed share after exponent `x`: 1 − e^(−x).
fn decayed(x: f64) -> f64 {
    -libm::expm1(-x)
}

/// The mean decayed share over the decay: 1 − (1 − e^(−x))/x.
fn mean_decayed(x: f64) -> f64 {
    if x >= 1.0 {
        return 1.0 - decayed(x) / x;
    }
    // The power series avoids cancellation for small x; its last term is below 10⁻¹⁷ of the first.
    let horner = |sum: f64, k: f64| 1.0 - x / k * sum;
    let from_third = (3..=19).rev().map(f64::from).fold(1.0, horner);
    x / 2.0 * from_third
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference values from mpmath 1.3.0 with 60 digits: `1 + expm1(-x)/x`.
    #[test]
    fn mean_decay_has_no_cancellation() {
        for (x, expected) in MEANS {
            let found = mean_decayed(x);
            assert!((found / expected - 1.0).abs() < 1e-15, "at {x}: {found}, not {expected}");
        }
        assert_eq!((mean_decayed(0.0), mean_decayed(f64::INFINITY)), (0.0, 1.0));
    }
    const MEANS: [(f64, f64); 7] = [
        (1e-12, 4.999_999_999_998_333e-13),
        (1e-3, 0.000_499_833_374_991_668),
        (0.3, 0.136_060_735_605_726_2),
        (0.999_999, 0.367_879_176_930_244_36),
        (1.0, 0.367_879_441_171_442_33),
        (5.0, 0.801_347_589_399_817_1),
        (1e3, 0.999),
    ];
}
