//! Independent bit errors at a constant rate.

use lasthop_base::Probability;

/// A bit error rate together with ln(1 − rate). Survival of many bits then costs one multiplication and one
/// exponential, and stays accurate where 1 − rate rounds to 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitErrors {
    pub(crate) rate: Probability,
    log_bit_survival: f64,
}

impl BitErrors {
    pub(crate) fn new(rate: Probability) -> BitErrors {
        BitErrors { rate, log_bit_survival: libm::log1p(-rate.get()) }
    }

    /// ln of the probability that `bits` bits have no error; −∞ if an error is certain. `bits` may be
    /// fractional: the share of a frame that one state covers.
    pub(crate) fn log_survival(self, bits: f64) -> f64 {
        // At rate 1 the logarithm is −∞, and 0 · ∞ is NaN.
        if bits == 0.0 { 0.0 } else { bits * self.log_bit_survival }
    }

    /// The probability that `bits` bits have no error: (1 − rate)^`bits`.
    pub(crate) fn survival(self, bits: f64) -> f64 {
        libm::exp(self.log_survival(bits))
    }
}

/// The survival of whole frames at a constant rate. Keeps the two latest results: frames have few different lengths, and the
/// exponential is the largest part of the cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameSurvival {
    pub(crate) errors: BitErrors,
    /// Numbers of bits, each with the probability that they survive.
    latest: [(u64, f64); 2],
}

impl FrameSurvival {
    pub(crate) fn new(rate: Probability) -> FrameSurvival {
        FrameSurvival { errors: BitErrors::new(rate), latest: [(0, 1.0); 2] }
    }

    /// The probability that `bits` bits have no error.
    #[inline]
    pub(crate) fn of(&mut self, bits: u64) -> f64 {
        if self.latest[0].0 != bits {
            self.latest.swap(0, 1);
            if self.latest[0].0 != bits {
                self.latest[0] = (bits, self.errors.survival(bits as f64));
            }
        }
        self.latest[0].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_has_its_own_survival() {
        let rate = Probability::new(1e-3).unwrap();
        let mut frames = FrameSurvival::new(rate);
        for bits in [0, 8, 8, 800, 8, 80, 0, 800, 800, 0] {
            assert_eq!(frames.of(bits), BitErrors::new(rate).survival(bits as f64), "{bits}");
        }
        let mut certain = FrameSurvival::new(Probability::new(1.0).unwrap());
        assert_eq!([0, 1, 0].map(|bits| certain.of(bits)), [1.0, 0.0, 1.0]);
    }
}
