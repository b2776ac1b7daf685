//! Statistics that hold however often one looks.

/// Means and squares of a sequence of observations, with an interval for their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sequence {
    pub(super) count: f64,
    pub(super) mean: f64,
    squares: f64,
}

/// The number of observations at which intervals are narrowest, compared with others that hold at all times.
const TUNED: f64 = 300.0;

impl Sequence {
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1.0;
        let step = value - self.mean;
        self.mean += step / self.count;
        self.squares += step * (value - self.mean);
    }

    pub(super) fn variance(&self) -> f64 {
        self.squares / self.count.max(1.0)
    }

    /// The mean as if `others` further observations had been zero.
    pub(super) fn shrunk(&self, others: f64) -> f64 {
        self.mean * self.count / (self.count + others)
    }

    /// Half the width of the interval that contains the mean of the observations' expectations at all times at once, but for
    /// a probability `error`: the asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas
    /// ("Time-uniform central limit theory and asymptotic confidence sequences", 2024, section 2).
    pub(super) fn half_width(&self, error: f64) -> f64 {
        let log = -2.0 * error.ln();
        let scale = (log + (log + 1.0).ln()) / TUNED;
        let term = self.count * scale + 1.0;
        (self.variance() * 2.0 * term / (self.count * self.count * scale) * (term.sqrt() / error).ln()).sqrt()
    }
}

/// A wager that observations have a negative expectation.
///
/// If none has one, given those before, the capital ever reaches `1 / error` with a probability of at most `error`
/// (Ville's inequality), whatever else the observations depend on (Waudby-Smith and Ramdas, "Estimating means of bounded
/// random variables by betting", 2024).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Wager {
    log_capital: f64,
    seen: Sequence,
}

impl Wager {
    /// Adds an observation, whose absolute value is at most `bound`.
    pub(super) fn add(&mut self, value: f64, bound: f64) {
        /// Observations in whose place the first wagers assume a mean of zero and the largest variance.
        const CAUTION: f64 = 20.0;
        let (seen, count) = (self.seen, self.seen.count + CAUTION);
        let mean = seen.shrunk(CAUTION);
        let variance = (seen.variance() * seen.count + CAUTION * bound) / count;
        let stake = (-mean / (variance + mean * mean)).clamp(0.0, 0.5 / bound);
        self.log_capital += (-stake * value.clamp(-bound, bound)).ln_1p();
        self.seen.add(value);
    }

    /// The capital, of which the first was 1.
    pub(super) fn capital(&self) -> f64 {
        self.log_capital.exp()
    }
}
