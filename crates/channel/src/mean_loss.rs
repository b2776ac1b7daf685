//! How often a frame is lost on a channel with two states.
//!
//! # Stays of a geometric number of units of time
//! A frame is on the air for T, from a random instant of a process that has run for ever. Where the
//! state is bad errors come at a constant rate κ, so that it survives with the mean of e^(−κA), A
//! being how much of T is bad. Let S(T) be this mean, B(T) what frames that begin in the bad state
//! contribute to it, and g(T) and b(T) the same mean for a frame that begins together with a good or
//! a bad stay.
//!
//! Let the frame begin earlier by dt. Of those that begin in the bad state a share κ dt is lost in
//! what has been added, and no others are. Stays end and begin there: λ dt frames begin at the end of
//! a bad stay and go on with a fresh good one, and as many that began in a fresh bad one do so no
//! more, λ being one over the mean length of a good and a bad stay together:
//!
//! > S′ = −κB, S(0) = 1,
//! > B′ = −κB + λ(g − b), B(0) = λ · mean bad stay.
//!
//! For g − b let one frame begin with a good unit and one with a bad unit, count the first as 1 and
//! the other as −1, and follow both through all that may happen. Let G be what survives and is in
//! the good state, and H what is in the bad one: g − b = G + H. Until a unit ends, G is constant and
//! H falls as e^(−κt), so that the equations above have a closed form up to there. A unit that ends,
//! whatever its number in its stay, is followed by one of the other state with the probability of
//! leaving, since geometric lengths have no memory. The units of a state are of one length, and so
//! end in the order in which they began.
//!
//! Nothing is sampled and no step is chosen: what is left is rounding.
//!
//! # Stays of exponential length
//! With stays of means 1/α and 1/β in units of the time on the air, and errors in the bad state with the
//! exponent κ, frames survive with π e^M 1, where π are the long-run shares of the states and
//!
//! > M = \[−α, α; β, −β − κ\].
//!
//! Its eigenvalues r₁ and r₂ are negative, and r₁ r₂ = ακ. What survives is A e^(r₁) + (1 − A) e^(r₂), with a
//! slope at first of −κ times the share of the bad state, which gives A.

use alloc::collections::VecDeque;

use lasthop_base::{Duration, Probability};

use crate::State;
use crate::alternating::PerState;
use crate::bit_errors::BitErrors;

/// The probability that a frame of `bits` bits is lost which are wrong at these rates. What the lower of them
/// does, it does at all times; `beyond` says how often a frame is lost if there are errors in one state only,
/// from that state and from their exponent, as for [`mean_loss`].
pub(crate) fn loss_at_rates(
    rates: PerState<Probability>,
    bits: u64,
    beyond: impl FnOnce(State, f64) -> f64,
) -> f64 {
    let exponent = |rate| -BitErrors::new(rate).log_survival(bits as f64);
    let (good, bad) = (exponent(rates.good), exponent(rates.bad));
    let (worse, least, most) = if good <= bad { (State::Bad, good, bad) } else { (State::Good, bad, good) };
    // Two infinite ones have no difference.
    if least == f64::INFINITY {
        return 1.0;
    }
    gone(least) + libm::exp(-least) * beyond(worse, most - least)
}

/// As [`mean_loss`], if stays are exponential with these means.
pub(crate) fn mean_loss_exponential(means: PerState<Duration>, exponent: f64, on_air: Duration) -> f64 {
    let in_bad = 1.0 - means.availability();
    if exponent == 0.0 {
        return 0.0;
    }
    let times = |mean: Duration| on_air.as_nanos() as f64 / mean.as_nanos() as f64;
    let (leave_good, leave_bad) = (times(means.good), times(means.bad));
    if exponent == f64::INFINITY {
        return in_bad + (1.0 - in_bad) * gone(leave_good);
    }
    let half_apart = (leave_good - leave_bad - exponent) / 2.0;
    let root = libm::sqrt(half_apart * half_apart + leave_good * leave_bad);
    let fast = -(leave_good + leave_bad + exponent) / 2.0 - root;
    // Without a subtraction, which would lose digits.
    let slow = leave_good * exponent / fast;
    let share = (-exponent * in_bad - fast) / (slow - fast);
    share * gone(-slow) + (1.0 - share) * gone(-fast)
}

/// The unit of which a state's stays are multiples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    /// Its length, above zero.
    pub(crate) length: Duration,
    /// The probability that the state is left at its end, above zero.
    pub(crate) leave: f64,
}

impl PerState<Unit> {
    /// The long-run fraction of time in the good state.
    pub(crate) fn availability(&self) -> f64 {
        let (good, bad) = self.shares();
        good / (good + bad)
    }

    /// In the proportion of the mean stays in the good and in the bad state: those times both
    /// probabilities of leaving, in nanoseconds, which cannot overflow nor both become zero.
    fn shares(&self) -> (f64, f64) {
        let length = |unit: Unit| unit.length.as_nanos() as f64;
        (length(self.good) * self.bad.leave, length(self.bad) * self.good.leave)
    }
}

/// The probability that a frame is lost that is on the air for `on_air` from a random instant, if
/// it would survive with e^(−`exponent`) if all of that were bad. The error is below 10⁻¹² for a few
/// hundred units.
pub(crate) fn mean_loss(units: PerState<Unit>, exponent: f64, on_air: Duration) -> f64 {
    let (good, bad) = units.shares();
    let cycles_per_nano = units.good.leave * units.bad.leave / (good + bad);
    // B above.
    let mut in_bad = bad / (good + bad);
    // Zero times an infinite rate is not a number.
    if exponent == 0.0 || on_air.is_zero() {
        return in_bad * -libm::expm1(-exponent);
    }
    let hazard = |length: Duration| exponent * (length.as_nanos() as f64 / on_air.as_nanos() as f64);

    // G and H above, and the units under way of which they consist.
    let mut surviving = PerState { good: 1.0, bad: -1.0 };
    let mut under_way = PerState {
        good: UnderWay::new(units.good.length, 1.0, surviving.good),
        bad: UnderWay::new(units.bad.length, libm::exp(-hazard(units.bad.length)), surviving.bad),
    };
    let (mut now, mut lost) = (Duration::ZERO, 0.0);
    loop {
        let next = under_way.good.next_end().min(under_way.bad.next_end()).min(on_air);
        let length = next - now;
        let (gone, mean_gone) = (gone(hazard(length)), mean_gone(hazard(length)));
        let cycles = cycles_per_nano * length.as_nanos() as f64;
        let PerState { good, bad } = surviving;
        lost += in_bad * gone + cycles * (good * mean_gone + bad * (gone - mean_gone));
        in_bad = in_bad * (1.0 - gone) + cycles * (good * (1.0 - mean_gone) + bad * (1.0 - gone));
        if next == on_air {
            // Rounding may take what is almost certain beyond 1.
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

/// The units of one state that have begun and not ended.
struct UnderWay {
    length: Duration,
    /// What part of those that begin a unit survives it.
    survival: f64,
    /// When each ends, and how much began it, in their order.
    units: VecDeque<(Duration, f64)>,
}

impl UnderWay {
    /// With one that begins at zero.
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

    /// Takes out what ends at `now`, and returns how much of it survives.
    fn end(&mut self, now: Duration) -> f64 {
        let ended = self.units.pop_front_if(|&mut (end, _)| end == now);
        ended.map_or(0.0, |(_, amount)| amount * self.survival)
    }
}

/// What is gone after a decay with exponent `x`: 1 − e^(−x).
fn gone(x: f64) -> f64 {
    -libm::expm1(-x)
}

/// The mean of that along the decay: 1 − (1 − e^(−x))/x.
fn mean_gone(x: f64) -> f64 {
    if x >= 1.0 {
        return 1.0 - gone(x) / x;
    }
    // The power series, without the digits that the subtraction loses for small ones; the last term
    // is below 10⁻¹⁷ of the first.
    let horner = |sum: f64, k: f64| 1.0 - x / k * sum;
    let from_third = (3..=19).rev().map(f64::from).fold(1.0, horner);
    x / 2.0 * from_third
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of mpmath 1.3.0 with 60 digits: `1 + expm1(-x)/x`.
    #[test]
    fn the_mean_of_a_decay_keeps_its_digits() {
        for (x, expected) in MEANS {
            let found = mean_gone(x);
            assert!((found / expected - 1.0).abs() < 1e-15, "at {x}: {found}, not {expected}");
        }
        assert_eq!((mean_gone(0.0), mean_gone(f64::INFINITY)), (0.0, 1.0));
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
