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
