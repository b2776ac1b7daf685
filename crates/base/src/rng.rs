//! Named random streams and the variates drawn from them.
//!
//! A stream depends only on (seed, run, name), so a new component with its own stream leaves all others
//! unchanged. The generator is ChaCha8, keyed by (seed, run, contract version); the hash of the name is its
//! stream number. Variates are implemented here on top of `libm`, so they are identical on every machine and
//! independent of library versions.

use core::fmt::{self, Write};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::time::Duration;

/// Version of the stream derivation. It changes only if the same (seed, run, name) yields different numbers.
const CONTRACT: &[u8; 16] = b"lasthop-streams1";

/// The streams of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Streams {
    seed: u64,
    run: u64,
}

impl Streams {
    /// The streams of run number `run` of a study seeded with `seed`.
    pub const fn new(seed: u64, run: u64) -> Streams {
        Streams { seed, run }
    }

    /// The stream called `name`, at its start.
    pub fn stream(&self, name: &str) -> Stream {
        self.stream_of(format_args!("{name}"))
    }

    /// Like [`stream`](Streams::stream), for a name made of parts by [`format_args!`], which is not stored.
    pub fn stream_of(&self, name: fmt::Arguments<'_>) -> Stream {
        let mut hash = Fnv1a(0xcbf2_9ce4_8422_2325);
        hash.write_fmt(name).expect("a name that can be written");
        self.numbered(hash.0)
    }

    /// The stream with this number of the generator.
    fn numbered(&self, number: u64) -> Stream {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&self.run.to_le_bytes());
        key[16..].copy_from_slice(CONTRACT);
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(number);
        Stream(generator)
    }
}

/// FNV-1a, 64 bits, of what is written. The streams depend on it, so it must never change.
struct Fnv1a(u64);

impl fmt::Write for Fnv1a {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mix = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.0 = text.bytes().fold(self.0, mix);
        Ok(())
    }
}

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// Uniform on [0, 1), with a resolution of 2⁻⁵³.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform on 0, 1, ..., `n` − 1 (Lemire's multiply-shift, unbiased).
    ///
    /// # Panics
    /// If `n` is zero.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "the range of a uniform integer is empty");
        let reject_under = n.wrapping_neg() % n;
        loop {
            let wide = u128::from(self.0.next_u64()) * u128::from(n);
            if wide as u64 >= reject_under {
                return (wide >> 64) as u64;
            }
        }
    }

    /// Uniform on [0, `span`], in whole nanoseconds.
    pub fn up_to(&mut self, span: Duration) -> Duration {
        Duration::from_nanos(match span.as_nanos().checked_add(1) {
            Some(n) => self.below(n),
            None => self.0.next_u64(),
        })
    }

    /// True with probability `p`; exact for 0 and 1.
    pub fn bernoulli(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Exponential with the given mean, rounded to a whole nanosecond.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        // 1 − u is in (0, 1], so the logarithm is finite.
        Duration::from_secs_f64(-libm::log(1.0 - self.uniform()) * mean.as_secs_f64())
    }

    /// Standard normal, by the Box-Muller transform (1958). The second variate of each pair is discarded, so
    /// every call draws two uniforms.
    pub fn normal(&mut self) -> f64 {
        // 1 − u is in (0, 1], so the logarithm is finite.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        radius * libm::cos(core::f64::consts::TAU * self.uniform())
    }

    /// Geometric: the number of trials up to and including the first success, each with probability `p`.
    /// Inverts P(more than k) = (1 − `p`)^k.
    ///
    /// # Panics
    /// If `p` is not positive.
    pub fn geometric(&mut self, p: f64) -> u64 {
        assert!(p > 0.0, "a geometric variate with success probability {p}");
        // For p = 1 the divisor is −∞ and the result is one trial.
        let failures = libm::log(1.0 - self.uniform()) / libm::log1p(-p);
        (failures as u64).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Pins the derivation of streams: these numbers change only with its version.
    #[test]
    fn stream_values_are_pinned() {
        let draws = |seed, run, name| {
            let mut stream = Streams::new(seed, run).stream(name);
            [stream.below(1 << 32), stream.below(1 << 32)]
        };
        assert_eq!(draws(1, 0, "channel"), PINNED);
        assert_ne!(draws(1, 1, "channel"), PINNED);
        assert_ne!(draws(2, 0, "channel"), PINNED);
        assert_ne!(draws(1, 0, "bits"), PINNED);
        assert_eq!(Streams::new(1, 0).stream_of(format_args!("chan{}", "nel")).below(1 << 32), PINNED[0]);
    }
    const PINNED: [u64; 2] = [1_261_319_221, 247_213_001];

    /// Sample means lie within 5 standard errors: one false alarm in about two million seeds.
    #[test]
    fn sample_means_match_expectations() {
        let mut stream = Streams::new(7, 0).stream("test");
        let n = 200_000;
        let mut check = |name: &str, mean: f64, sd: f64, draw: &mut dyn FnMut(&mut Stream) -> f64| {
            let sum: f64 = (0..n).map(|_| draw(&mut stream)).sum();
            let error = (sum / f64::from(n) - mean).abs();
            assert!(error < 5.0 * sd / f64::from(n).sqrt(), "{name}: off by {error}");
        };
        check("uniform", 0.5, (1.0f64 / 12.0).sqrt(), &mut Stream::uniform);
        check("below 6", 2.5, (35.0f64 / 12.0).sqrt(), &mut |s| s.below(6) as f64);
        check("exponential", 2.0, 2.0, &mut |s| s.exponential(Duration::from_secs(2)).as_secs_f64());
        check("normal", 0.0, 1.0, &mut Stream::normal);
        // The fourth moment is 3, the eighth 105.
        check("normal squared", 1.0, 2f64.sqrt(), &mut |s| s.normal().powi(2));
        check("normal to the fourth", 3.0, 96f64.sqrt(), &mut |s| s.normal().powi(4));
        check("geometric", 4.0, 12f64.sqrt(), &mut |s| s.geometric(0.25) as f64);
        check("bernoulli", 0.3, 0.21f64.sqrt(), &mut |s| f64::from(u8::from(s.bernoulli(0.3))));
    }

    #[test]
    fn geometric_variates_match_their_distribution() {
        let mut stream = Streams::new(7, 0).stream("geometric");
        let (n, p) = (200_000, 0.3f64);
        let draws: Vec<u64> = (0..n).map(|_| stream.geometric(p)).collect();
        assert_eq!(draws.iter().min(), Some(&1));
        for k in 1..10 {
            let tail = (1.0 - p).powi(k);
            let beyond = draws.iter().filter(|&&draw| draw > k as u64).count() as f64 / f64::from(n);
            let error = (tail * (1.0 - tail) / f64::from(n)).sqrt();
            assert!((beyond - tail).abs() < 5.0 * error, "beyond {k}: {beyond}, not {tail}");
        }
    }

    #[test]
    fn extreme_parameters_give_exact_variates() {
        let mut stream = Streams::new(7, 0).stream("edges");
        assert!((0..1000).all(|_| stream.geometric(1.0) == 1));
        // Saturates at `u64::MAX` trials.
        assert_eq!(stream.geometric(f64::MIN_POSITIVE), u64::MAX);
        assert!((0..1000).all(|_| !stream.bernoulli(0.0) && stream.bernoulli(1.0)));
        assert_eq!(stream.up_to(Duration::ZERO), Duration::ZERO);
    }
}
