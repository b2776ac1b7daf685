//! Independent bit errors at a constant rate.

use lasthop_base::Probability;

/// A bit error rate, with ln(1 − rate): survival over many bits is then one multiplication and
/// one exponential, accurate also where 1 − rate rounds to 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitErrors {
    pub(crate) rate: Probability,
    log_bit_survival: f64,
}

impl BitErrors {
    pub(crate) fn new(rate: Probability) -> BitErrors {
        BitErrors { rate, log_bit_survival: libm::log1p(-rate.get()) }
    }

    /// ln of the probability that `bits` bits are all right; minus infinity for certain error.
    /// `bits` need not be whole: it may be the part of a frame that one state covers.
    pub(crate) fn log_survival(self, bits: f64) -> f64 {
        // At rate 1 the logarithm is infinite, and zero times that is not a number.
        if bits == 0.0 { 0.0 } else { bits * self.log_bit_survival }
    }

    /// The probability that `bits` bits are all right: (1 − rate)^`bits`.
    pub(crate) fn survival(self, bits: f64) -> f64 {
        libm::exp(self.log_survival(bits))
    }
}
