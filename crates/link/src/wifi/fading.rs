//! A signal that fades over time.

use core::f64::consts::{PI, TAU};

use lasthop_base::{Decibels, Invalid, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A signal-to-noise ratio that fades about its mean as waves from all directions add up in a moving receiver, or among people who
/// move: `{}` is Rayleigh fading at 6 Hz. Both directions have the same signal. A PPDU has that of its start, over its whole width and for all
/// streams: diversity of frequencies and antennas, which makes fades less deep, is a higher `direct`.
///
/// The waves are those of Xiao, Zheng and Beaulieu, "Novel sum-of-sinusoids simulation models for Rayleigh and Rician fading channels",
/// IEEE Transactions on Wireless Communications 5(12), 2006, whose autocorrelation is that of Clarke's model, J0(2π × Doppler × time).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { doppler_hz = 6, direct = \"3 dB\" }")]
pub struct Fading {
    /// The Doppler frequency in Hz: speed over wavelength, 23 at 1.4 m/s and 5 GHz. By default 6, that of the indoor environment that moves
    /// at 1.2 km/h in the TGn channel models (IEEE 802.11-03/940r4, section 4.7.1).
    pub doppler_hz: f64,
    /// Power of the direct wave relative to all others, the K factor of Rice, from -40 dB to 40 dB; without it there is none. The TGn
    /// channel models have 0 to 6 dB with a line of sight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<Decibels>,
}

impl Default for Fading {
    fn default() -> Fading {
        Fading { doppler_hz: 6.0, direct: None }
    }
}

impl Fading {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn validate(&self) -> Result<(), Invalid> {
        if !(1e-6..=1e4).contains(&self.doppler_hz) {
            let problem = "expected 0.000001 to 10000 Hz, such as 6";
            return Err(Invalid { field: "fading.doppler_hz", problem });
        }
        if self.direct.is_some_and(|direct| direct.get().abs() > 40.0) {
            let problem = "expected \"-40 dB\" to \"40 dB\", such as \"3 dB\"";
            return Err(Invalid { field: "fading.direct", problem });
        }
        Ok(())
    }
}

/// Waves of the sum, the direct one not counted.
const WAVES: usize = 16;

/// The lowest gain, at which nothing arrives: -120 dB.
const LEAST_GAIN: f64 = 1e-12;

/// A fading signal: a function of time.
#[derive(Clone, Debug)]
pub struct FadingSignal {
    mean: Decibels,
    /// Of each wave the frequency and the phase, in radians; the direct one comes last.
    waves: [(f64, f64); WAVES + 1],
    /// Amplitudes of each wave, and of the direct one; the powers of all sum to 1.
    amplitudes: [f64; 2],
}

impl FadingSignal {
    /// A signal with this mean of its power.
    pub fn new(fading: Fading, mean: Decibels, random: &mut Stream) -> FadingSignal {
        let doppler = TAU * fading.doppler_hz;
        let mut phase = || TAU * random.uniform() - PI;
        let mut waves = [(0.0, 0.0); WAVES + 1];
        for (index, wave) in waves[..WAVES].iter_mut().enumerate() {
            let direction = (TAU * index as f64 + phase()) / WAVES as f64;
            *wave = (doppler * libm::cos(direction), phase());
        }
        // It comes from half-way between ahead and aside, as in the paper.
        waves[WAVES] = (doppler * libm::cos(PI / 4.0), phase());
        let direct = fading.direct.map_or(0.0, |direct| libm::pow(10.0, direct.get() / 10.0));
        let amplitudes = [1.0 / WAVES as f64, direct].map(|power| libm::sqrt(power / (1.0 + direct)));
        FadingSignal { mean, waves, amplitudes }
    }

    /// The signal-to-noise ratio at `now`.
    pub fn snr(&self, now: Time) -> Decibels {
        let gain = self.power(now).max(LEAST_GAIN);
        Decibels::new(self.mean.get() + 10.0 * libm::log10(gain)).expect("both are finite")
    }

    /// The power relative to its mean.
    fn power(&self, now: Time) -> f64 {
        let seconds = now.since(Time::ZERO).as_secs_f64();
        let (mut real, mut imaginary) = (0.0, 0.0);
        for (index, (frequency, phase)) in self.waves.iter().enumerate() {
            let amplitude = self.amplitudes[index / WAVES];
            let (sine, cosine) = libm::sincos(frequency * seconds + phase);
            real += amplitude * cosine;
            imaginary += amplitude * sine;
        }
        real * real + imaginary * imaginary
    }
}

#[cfg(test)]
mod tests {
    use lasthop_base::{Duration, Streams};

    use super::*;

    fn powers(fading: Fading, at_ms: &[u64], count: u64) -> Vec<Vec<f64>> {
        let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        let sample = |seed| {
            let mut random = Streams::new(seed, 0).stream("fading");
            let signal = FadingSignal::new(fading, Decibels::default(), &mut random);
            at_ms.iter().map(|&ms| signal.power(at(ms))).collect()
        };
        (0..count).map(sample).collect()
    }

    fn mean(values: impl Iterator<Item = f64>) -> f64 {
        let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
        sum / count
    }

    /// The power is exponentially distributed without a direct wave; with one its variance is (1 + 2K) / (1 + K)², less
    /// 1/16 of that of the scattered power, since there are 16 waves.
    #[test]
    fn powers_have_the_distribution_of_rayleigh_or_rice() {
        let rayleigh = powers(Fading::default(), &[12_345], 20_000);
        for threshold in [0.01, 0.1, 0.5, 1.0, 2.0, 4.0] {
            let below = mean(rayleigh.iter().map(|power| f64::from(power[0] < threshold)));
            let expected = 1.0 - f64::exp(-threshold);
            assert!((below / expected - 1.0).abs() < 0.08, "{threshold}: {below} for {expected}");
        }
        for (direct_db, k) in [(None, 0.0), (Decibels::new(0.0), 1.0), (Decibels::new(6.0206), 4.0)] {
            let found = powers(Fading { direct: direct_db, ..Fading::default() }, &[777], 20_000);
            let average = mean(found.iter().map(|power| power[0]));
            let variance = mean(found.iter().map(|power| (power[0] - average).powi(2)));
            let expected = (1.0 + 2.0 * k - 1.0 / WAVES as f64) / f64::powi(1.0 + k, 2);
            assert!((average - 1.0).abs() < 0.03, "K {k}: {average}");
            assert!((variance / expected - 1.0).abs() < 0.06, "K {k}: {variance} for {expected}");
        }
    }

    /// The autocovariance of the power is J0² of Clarke's model, less what each of the waves has with itself, 1/16: J0 first vanishes at
    /// 2.405 / (2π × Doppler), has its minimum at 3.832, and vanishes again at 5.520.
    #[test]
    fn fades_last_as_long_as_the_doppler_frequency_says() {
        let fading = Fading { doppler_hz: 10.0, direct: None };
        let arguments = [0.0_f64, 1.0, 2.405, 3.832, 5.520];
        let bessel = [1.0_f64, 0.7652, 0.0, -0.4028, 0.0];
        let start = 5_000;
        let at: Vec<u64> = arguments.iter().map(|x| start + (x / TAU * 100.0).round() as u64).collect();
        let found = powers(fading, &at, 20_000);
        let covariance =
            |other: usize| mean(found.iter().map(|power| (power[0] - 1.0) * (power[other] - 1.0)));
        for (index, expected) in bessel.iter().enumerate() {
            let relative = covariance(index) / covariance(0);
            let own = 1.0 / WAVES as f64;
            let expected = (expected * expected - own) / (1.0 - own);
            assert!((relative - expected).abs() < 0.03, "{}: {relative}", arguments[index]);
        }
    }
}
