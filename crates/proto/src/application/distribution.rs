//! Probability distributions of message sizes and think times.

use lasthop_base::{Bytes, Duration, Invalid, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A quantity with a distribution: a whole number of units.
pub trait Amount: Copy + PartialOrd {
    /// The smallest value.
    const MIN: Self;
    /// The largest value.
    const MAX: Self;
    /// Error message for a value outside these limits.
    const OUTSIDE: &'static str;

    /// The number of units.
    fn units(self) -> u64;

    /// The quantity of `units` units.
    fn of(units: u64) -> Self;
}

/// A message has at least one byte. The maximum exceeds what any run can send.
impl Amount for Bytes {
    const MIN: Bytes = Bytes(1);
    const MAX: Bytes = Bytes(1_000_000_000_000);
    const OUTSIDE: &'static str = "found an invalid message size, expected one from \"1 B\" to \"1000 GB\"";

    fn units(self) -> u64 {
        self.0
    }

    fn of(units: u64) -> Bytes {
        Bytes(units)
    }
}

/// In nanoseconds. The maximum never ends.
impl Amount for Duration {
    const MIN: Duration = Duration::ZERO;
    const MAX: Duration = Duration::from_nanos(u64::MAX);
    const OUTSIDE: &'static str = "found an invalid time";

    fn units(self) -> u64 {
        self.as_nanos()
    }

    fn of(units: u64) -> Duration {
        Duration::from_nanos(units)
    }
}

/// Distributions of sizes, from 1 B to 1000 GB, and of times. Variates are independent, and rounded to a byte
/// or a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Distribution<Q> {
    /// Constant.
    Constant(Q),
    /// Exponential, with this mean.
    Exponential(Q),
    /// Uniform over the whole numbers of units from `least` to `most`, both included.
    Uniform {
        /// The smallest value.
        least: Q,
        /// The largest value.
        most: Q,
    },
    /// Bounded Pareto: P(X > x) is linear in x^(−shape).
    Pareto {
        /// The smallest value, above zero.
        least: Q,
        /// The largest value.
        most: Q,
        /// Tail exponent, above zero; the tail is heavy below 2.
        shape: f64,
    },
    /// Lognormal. The mean is median · e^(σ²/2).
    Lognormal {
        /// The median, above zero.
        median: Q,
        /// Standard deviation σ of the natural logarithm.
        sigma: f64,
    },
}

impl<Q: Amount> Distribution<Q> {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// A value outside the limits, bounds in the wrong order, or an invalid shape.
    pub fn validate(&self) -> Result<(), Invalid> {
        let check =
            |holds: bool, field, problem| if holds { Ok(()) } else { Err(Invalid { field, problem }) };
        let possible = |field, amount: Q| check((Q::MIN..=Q::MAX).contains(&amount), field, Q::OUTSIDE);
        let some = |field, amount: Q| {
            check(
                amount.units() > 0,
                field,
                "found zero, expected more than zero; a constant value is \"constant\"",
            )
        };
        let order = |field, least: Q, most: Q| {
            let problem = "found a maximum below the minimum";
            check(least <= most, field, problem)
        };
        match *self {
            Distribution::Constant(amount) => possible("constant", amount),
            Distribution::Exponential(mean) => {
                some("exponential", mean)?;
                possible("exponential", mean)
            }
            Distribution::Uniform { least, most } => {
                possible("uniform.least", least)?;
                possible("uniform.most", most)?;
                order("uniform.most", least, most)
            }
            Distribution::Pareto { least, most, shape } => {
                some("pareto.least", least)?;
                possible("pareto.least", least)?;
                possible("pareto.most", most)?;
                order("pareto.most", least, most)?;
                let problem = "found an invalid shape, expected a number above 0, at most 100, such as 1.2";
                check(shape > 0.0 && shape <= 100.0, "pareto.shape", problem)
            }
            Distribution::Lognormal { median, sigma } => {
                some("lognormal.median", median)?;
                possible("lognormal.median", median)?;
                let problem = "found an invalid deviation, expected a number from 0 to 10, such as 1.4";
                check((0.0..=10.0).contains(&sigma), "lognormal.sigma", problem)
            }
        }
    }

    /// Draws a value.
    pub fn draw(&self, stream: &mut Stream) -> Q {
        let rounded = |units: f64| Q::of((libm::round(units) as u64).clamp(Q::MIN.units(), Q::MAX.units()));
        match *self {
            Distribution::Constant(amount) => amount,
            // 1 − u is in (0, 1], so the logarithm is finite.
            Distribution::Exponential(mean) => {
                rounded(-libm::log(1.0 - stream.uniform()) * mean.units() as f64)
            }
            Distribution::Uniform { least, most } => {
                let span = Duration::from_nanos(most.units() - least.units());
                Q::of(least.units() + stream.up_to(span).as_nanos())
            }
            Distribution::Pareto { least, most, shape } => {
                let (low, high) = (least.units() as f64, most.units() as f64);
                // Inverts P(X > x) = (x^−shape − high^−shape) / (low^−shape − high^−shape).
                let beyond = 1.0 - stream.uniform() * (1.0 - libm::pow(low / high, shape));
                rounded((low * libm::pow(beyond, -1.0 / shape)).clamp(low, high))
            }
            Distribution::Lognormal { median, sigma } => {
                rounded(median.units() as f64 * libm::exp(sigma * stream.normal()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use lasthop_base::Streams;

    fn draws<Q: Amount>(distribution: Distribution<Q>, n: usize) -> Vec<u64> {
        assert_eq!(distribution.validate(), Ok(()));
        let mut stream = Streams::new(1, 0).stream("distributions");
        (0..n).map(|_| distribution.draw(&mut stream).units()).collect()
    }

    /// In bytes.
    fn distributions() -> [Distribution<Bytes>; 5] {
        let (least, most) = (Bytes(100), Bytes(1_000_000));
        [
            Distribution::Constant(Bytes(350)),
            Distribution::Exponential(Bytes(20_000)),
            Distribution::Uniform { least, most },
            Distribution::Pareto { least, most, shape: 1.2 },
            Distribution::Lognormal { median: Bytes(4_000), sigma: 1.4 },
        ]
    }

    /// The share of 200,000 draws beyond each of several values is within 5 standard errors of the
    /// distribution: one false alarm in about two million seeds for each value.
    #[test]
    fn what_is_drawn_has_its_law() {
        let normal = |z: f64| 0.5 * libm::erfc(z / core::f64::consts::SQRT_2);
        let pareto = |x: f64| {
            let part = |x: f64| x.powf(-1.2);
            (part(x) - part(1e6)) / (part(100.0) - part(1e6))
        };
        let n = 200_000;
        for distribution in distributions() {
            let draws = draws(distribution, n);
            for x in [150.0, 400.0, 1_000.0, 4_000.0, 30_000.0, 300_000.0] {
                // Draws are rounded, so those beyond x are those above x + 1/2.
                let edge: f64 = x + 0.5;
                let beyond = match distribution {
                    Distribution::Constant(size) => f64::from(size.0 as f64 > edge),
                    Distribution::Exponential(mean) => (-edge / mean.0 as f64).exp(),
                    Distribution::Uniform { least, most } => {
                        (most.0 as f64 - x) / ((most.0 - least.0) as f64 + 1.0)
                    }
                    Distribution::Pareto { .. } => pareto(edge),
                    Distribution::Lognormal { median, sigma } => {
                        normal((edge / median.0 as f64).ln() / sigma)
                    }
                };
                let found = draws.iter().filter(|&&draw| draw as f64 > edge).count() as f64 / n as f64;
                let error = (beyond * (1.0 - beyond) / n as f64).sqrt();
                assert!(
                    (found - beyond).abs() <= 5.0 * error + 1e-12,
                    "{distribution:?} beyond {x}: {found}, {beyond}"
                );
            }
        }
    }

    #[test]
    fn bounds_are_kept() {
        let (least, most) = (Bytes(7), Bytes(9));
        for distribution in
            [Distribution::Uniform { least, most }, Distribution::Pareto { least, most, shape: 0.1 }]
        {
            let mut found = draws(distribution, 1_000);
            found.sort_unstable();
            found.dedup();
            assert_eq!(found, [7, 8, 9], "{distribution:?}");
        }
        // Sizes below one byte become one byte; huge sizes are clamped.
        assert!(draws(Distribution::Exponential(Bytes(1)), 1_000).iter().all(|&size| size >= 1));
        assert_eq!(
            *draws(Distribution::Lognormal { median: Bytes::MAX, sigma: 10.0 }, 100).iter().max().unwrap(),
            Bytes::MAX.0
        );
        // Think times may be zero and may never end.
        let span = |ns| Duration::from_nanos(ns);
        assert_eq!(draws(Distribution::Uniform { least: span(0), most: span(u64::MAX) }, 3).len(), 3);
        assert!(draws(Distribution::Exponential(span(1)), 100).contains(&0));
    }

    #[test]
    fn the_same_stream_gives_the_same_amounts() {
        for distribution in distributions() {
            assert_eq!(draws(distribution, 100), draws(distribution, 100));
        }
    }

    #[test]
    fn a_parameter_that_means_nothing_is_refused() {
        let fault = |distribution: Distribution<Bytes>| distribution.validate().unwrap_err().field;
        let (none, some, much) = (Bytes(0), Bytes(10), Bytes(1_000_000_000_001));
        for size in [none, much] {
            assert_eq!(fault(Distribution::Constant(size)), "constant");
            assert_eq!(fault(Distribution::Exponential(size)), "exponential");
            assert_eq!(fault(Distribution::Uniform { least: size, most: size }), "uniform.least");
            assert_eq!(fault(Distribution::Pareto { least: size, most: size, shape: 1.0 }), "pareto.least");
            assert_eq!(fault(Distribution::Lognormal { median: size, sigma: 1.0 }), "lognormal.median");
        }
        assert_eq!(fault(Distribution::Uniform { least: some, most: much }), "uniform.most");
        assert_eq!(fault(Distribution::Pareto { least: some, most: much, shape: 1.0 }), "pareto.most");
        assert_eq!(fault(Distribution::Uniform { least: some, most: Bytes(9) }), "uniform.most");
        assert_eq!(fault(Distribution::Pareto { least: some, most: Bytes(9), shape: 1.0 }), "pareto.most");
        for shape in [0.0, -1.0, 101.0, f64::NAN, f64::INFINITY] {
            assert_eq!(fault(Distribution::Pareto { least: some, most: some, shape }), "pareto.shape");
        }
        for sigma in [-0.1, 10.1, f64::NAN] {
            assert_eq!(fault(Distribution::Lognormal { median: some, sigma }), "lognormal.sigma");
        }
        let nothing = Duration::ZERO;
        assert_eq!(Distribution::Constant(nothing).validate(), Ok(()));
        assert_eq!(Distribution::Exponential(nothing).validate().unwrap_err().field, "exponential");
    }
}
