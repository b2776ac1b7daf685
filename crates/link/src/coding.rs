//! Overhead of the lower layers, and the bits exposed to errors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ratio of bits on the air to bits of the network layer: framing, error correction, segmentation and
/// synchronisation (EBSN paper, TR-96-014, section 3.1). At least 1, stored in millionths so that sizes are
/// exact; a number in scenario files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(extend("minimum" = 1, "maximum" = 1000))]
pub struct Expansion {
    millionths: u64,
}

impl Expansion {
    /// No overhead.
    pub const NONE: Expansion = Expansion { millionths: 1_000_000 };

    /// `factor`, rounded to the nearest millionth; `None` below 1 and above 1000.
    pub fn new(factor: f64) -> Option<Expansion> {
        let possible = (1.0..=1000.0).contains(&factor);
        possible.then(|| Expansion { millionths: (factor * 1e6).round() as u64 })
    }

    /// The factor.
    pub fn get(self) -> f64 {
        self.millionths as f64 / 1e6
    }

    /// Bits on the air for `bits` of the network layer, rounded up.
    pub fn on_air(self, bits: u64) -> u64 {
        match bits.checked_mul(self.millionths) {
            Some(millionths) => millionths.div_ceil(1_000_000),
            None => (u128::from(bits) * u128::from(self.millionths)).div_ceil(1_000_000) as u64,
        }
    }
}

impl Default for Expansion {
    fn default() -> Expansion {
        Expansion::NONE
    }
}

impl TryFrom<f64> for Expansion {
    type Error = String;
    fn try_from(factor: f64) -> Result<Expansion, String> {
        Expansion::new(factor)
            .ok_or_else(|| format!("found {factor}, expected a factor from 1 to 1000, such as 1.5"))
    }
}

impl From<Expansion> for f64 {
    fn from(expansion: Expansion) -> f64 {
        expansion.get()
    }
}

/// The bits that the channel's error rate applies to. The EBSN paper does not specify them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Exposed {
    /// All bits on the air, after expansion. The default.
    #[default]
    OnAir,
    /// Only the bits of the network layer, plus check bits of the link's own code: the error rate is the
    /// residual rate after error correction in the lower layers.
    Payload,
}

impl Exposed {
    /// Number of exposed bits for `bits` of the network layer.
    pub fn of(self, bits: u64, expansion: Expansion) -> u64 {
        match self {
            Exposed::OnAir => expansion.on_air(bits),
            Exposed::Payload => bits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_exact_and_round_up() {
        let on_air = |factor, bits| Expansion::new(factor).unwrap().on_air(bits);
        assert_eq!(on_air(1.5, 1024), 1536);
        assert_eq!(on_air(1.5, 1), 2);
        // In binary floating point, 80 × 1.1 exceeds 88.
        assert_eq!(on_air(1.1, 80), 88);
        assert_eq!(on_air(1.000001, 8), 9);
        assert_eq!(Expansion::default().on_air(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_factor_below_one_is_refused() {
        assert_eq!(Expansion::try_from(1.5).map(f64::from), Ok(1.5));
        for wrong in [0.0, 0.99, 1000.1, f64::NAN, f64::INFINITY] {
            assert!(Expansion::try_from(wrong).unwrap_err().contains("expected a factor from 1"));
        }
    }
}
