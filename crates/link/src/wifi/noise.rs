//! Loss of MPDUs by signal-to-noise ratio, MCS and length.
//!
//! *Source.* The default error model of ns-3 (`TableBasedErrorRateModel`: packet error rates in additive white Gaussian
//! noise), sampled for MPDUs of 1536 B and 100 B in steps of half a decibel. Between them the loss is linear in decibels. Up to
//! MCS 9 the code is convolutional, as in ns-3 by default. MCS 10 and 11 have LDPC, which 802.11ax demands there, and one curve
//! for all lengths; with convolutional codes ns-3 has no table for them, and takes another model, 6 dB worse.

use lasthop_base::{Bytes, Decibels};

/// Losses from a signal-to-noise ratio on, in steps of half a decibel. From a step below, every MPDU is lost; above, none is.
struct Curve {
    from_half_db: i32,
    losses: &'static [f64],
}

/// Shorter MPDUs use [`SHORT`].
const LEAST_LONG: u64 = 400;

/// Length of the MPDUs of [`LONG`].
const LONG_BYTES: f64 = 1536.0;

/// Length of the MPDUs of [`SHORT`].
const SHORT_BYTES: f64 = 100.0;

/// Losses of MPDUs of 1536 B, by MCS.
#[rustfmt::skip]
const LONG: [Curve; 12] = [
    Curve { from_half_db: -1, losses: &[0.9954, 0.8343, 0.3037, 0.06972, 0.0118, 0.00158, 0.000158, 1.053e-05] },
    Curve { from_half_db: 5, losses: &[0.9978, 0.8111, 0.3141, 0.07654, 0.01264, 0.00158, 0.0002423] },
    Curve { from_half_db: 10, losses: &[0.9986, 0.7755, 0.3143, 0.07108, 0.01285, 0.002423, 0.0003687, 4.214e-05] },
    Curve { from_half_db: 16, losses: &[0.9954, 0.8554, 0.4511, 0.1489, 0.03936, 0.009058, 0.002002, 0.0003793, 5.267e-05] },
    Curve { from_half_db: 23, losses: &[0.9364, 0.5323, 0.1914, 0.04893, 0.01159, 0.002739, 0.0004319, 0.0001053] },
    Curve { from_half_db: 30, losses: &[0.9993, 0.9555, 0.6816, 0.311, 0.1111, 0.03516, 0.009584, 0.002423, 0.0006742, 0.0001791, 2.107e-05] },
    Curve { from_half_db: 33, losses: &[0.9962, 0.8925, 0.5323, 0.219, 0.0672, 0.01959, 0.004845, 0.00137, 0.0002423, 2.107e-05] },
    Curve { from_half_db: 36, losses: &[0.9825, 0.7574, 0.3519, 0.1296, 0.03736, 0.01053, 0.002844, 0.0005267, 9.481e-05, 1.053e-05] },
    Curve { from_half_db: 43, losses: &[0.9986, 0.9483, 0.6899, 0.3674, 0.1444, 0.04998, 0.01622, 0.005477, 0.00158, 0.0003793, 7.374e-05] },
    Curve { from_half_db: 46, losses: &[0.9993, 0.9579, 0.7036, 0.3402, 0.131, 0.04304, 0.01369, 0.003792, 0.0008638, 0.0001053, 2.107e-05, 1.053e-05] },
    Curve { from_half_db: 52, losses: &[0.9571, 0.3436, 0.03621, 0.002212, 9.481e-05] },
    Curve { from_half_db: 56, losses: &[0.9563, 0.4185, 0.05418, 0.003792, 0.0002318] },
];

/// Losses of MPDUs of 100 B, by MCS up to 9.
#[rustfmt::skip]
const SHORT: [Curve; 10] = [
    Curve { from_half_db: -5, losses: &[0.9999, 0.9958, 0.9381, 0.684, 0.3421, 0.1036, 0.02632, 0.00468, 0.0007498, 0.0002812] },
    Curve { from_half_db: 2, losses: &[0.9964, 0.9371, 0.6961, 0.325, 0.1094, 0.02632, 0.004992, 0.0008123, 9.375e-05] },
    Curve { from_half_db: 7, losses: &[0.9974, 0.9425, 0.6899, 0.3224, 0.1022, 0.02417, 0.004992, 0.0008747, 0.00025] },
    Curve { from_half_db: 12, losses: &[0.9988, 0.9853, 0.8585, 0.6049, 0.3003, 0.1143, 0.03672, 0.009966, 0.002373, 0.0005312, 9.375e-05] },
    Curve { from_half_db: 19, losses: &[0.9933, 0.9394, 0.7232, 0.414, 0.1598, 0.04855, 0.01245, 0.003433, 0.0008435, 0.0002812] },
    Curve { from_half_db: 26, losses: &[0.9992, 0.9833, 0.9028, 0.6804, 0.4147, 0.1884, 0.0734, 0.02448, 0.00717, 0.002155, 0.0005624, 0.000125, 6.25e-05] },
    Curve { from_half_db: 29, losses: &[0.9967, 0.9734, 0.8571, 0.5964, 0.3161, 0.1371, 0.04855, 0.01523, 0.004992, 0.001218, 0.0003437, 6.25e-05] },
    Curve { from_half_db: 31, losses: &[0.9999, 0.9972, 0.957, 0.8346, 0.5447, 0.3079, 0.1312, 0.05308, 0.01647, 0.005926, 0.001624, 0.0004999, 0.000125] },
    Curve { from_half_db: 38, losses: &[0.9997, 0.9955, 0.9702, 0.8379, 0.6205, 0.3617, 0.1744, 0.07459, 0.02816, 0.009966, 0.003059, 0.001031, 0.0004374, 0.000125] },
    Curve { from_half_db: 42, losses: &[0.9985, 0.9836, 0.8961, 0.6775, 0.4035, 0.1851, 0.07518, 0.02632, 0.009035, 0.003122, 0.0005312, 0.0004374, 6.25e-05] },
];

impl Curve {
    fn loss(&self, snr: Decibels) -> f64 {
        let place = 2.0 * snr.get() - f64::from(self.from_half_db);
        if place >= self.losses.len() as f64 {
            return 0.0;
        }
        let place = place.max(-1.0);
        let step = place.floor();
        let after = (step + 1.0) as usize;
        let next = self.losses.get(after).copied().unwrap_or(0.0);
        let last = after.checked_sub(1).map_or(1.0, |index| self.losses[index]);
        last + (place - step) * (next - last)
    }
}

/// Losses of MPDUs at one signal-to-noise ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseErrors {
    /// The logarithm of the survival of a long and of a short MPDU, by MCS, per byte.
    survival: [[f64; 2]; 12],
}

impl NoiseErrors {
    /// The losses at `snr`, over the width of the channel, per stream.
    pub fn new(snr: Decibels) -> NoiseErrors {
        let per_byte = |curve: &Curve, bytes: f64| libm::log(1.0 - curve.loss(snr)) / bytes;
        let survival = core::array::from_fn(|mcs| {
            let long = per_byte(&LONG[mcs], LONG_BYTES);
            [long, SHORT.get(mcs).map_or(long, |short| per_byte(short, SHORT_BYTES))]
        });
        NoiseErrors { survival }
    }

    /// The probability that an MPDU arrives.
    ///
    /// # Panics
    /// If there is no such MCS.
    pub fn survival(&self, mcs: u8, mpdu: Bytes) -> f64 {
        let per_byte = self.survival[usize::from(mcs)][usize::from(mpdu.0 < LEAST_LONG)];
        if per_byte == 0.0 { 1.0 } else { libm::exp(per_byte * mpdu.0 as f64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(mcs: u8, bytes: u64, snr_db: f64) -> f64 {
        1.0 - NoiseErrors::new(Decibels::new(snr_db).unwrap()).survival(mcs, Bytes(bytes))
    }

    /// On the samples, between them, and beyond both ends.
    #[test]
    fn losses_follow_the_table() {
        for (mcs, bytes, snr_db, expected) in [
            (0, 1536, 3.0, 1.05e-5),
            (7, 1536, 21.0, 0.002844),
            (7, 1536, 20.75, (0.01053 + 0.002844) / 2.0),
            (7, 1536, 17.0, 1.0),
            (7, 1536, 23.0, 0.0),
            (10, 1536, 26.8, 0.03621 + 0.4 * (0.3436 - 0.03621)),
            (11, 1536, 29.0, 0.05418),
            (11, 100, 29.0, 1.0 - libm::pow(1.0 - 0.05418, 100.0 / 1536.0)),
            (4, 1536, 11.4, 1.0 - 0.8 * (1.0 - 0.9364)),
            (4, 1536, 11.0, 1.0),
            (11, 1536, 90.0, 0.0),
            (11, 1536, 1e308, 0.0),
            (0, 1536, -1e308, 1.0),
            (7, 768, 19.5, 1.0 - libm::sqrt(1.0 - 0.1296)),
        ] {
            let found = loss(mcs, bytes, snr_db);
            assert!(
                (found - expected).abs() < 1e-4 * expected.max(1e-3),
                "MCS {mcs} at {snr_db} dB: {found}"
            );
        }
    }

    #[test]
    fn losses_fall_with_the_signal_and_rise_with_length() {
        for mcs in 0..12 {
            for half_db in -4..90 {
                let snr_db = f64::from(half_db) / 2.0;
                assert!(loss(mcs, 1536, snr_db + 0.3) <= loss(mcs, 1536, snr_db));
                assert!(loss(mcs, 500, snr_db) <= loss(mcs, 1536, snr_db));
            }
        }
    }
}
