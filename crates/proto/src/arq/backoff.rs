//! Waiting time between two attempts.

use lasthop_base::{Duration, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Distribution of the waiting time between a failed attempt and the next one. The EBSN paper (TR-96-014,
/// section 4.2.1) specifies only a "random retransmission backoff".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Backoff {
    /// Uniform from zero to this maximum.
    Uniform(Duration),
    /// Exponential with this mean.
    Exponential(Duration),
    /// Constant; zero retries immediately.
    Fixed(Duration),
}

impl Backoff {
    /// The mean waiting time.
    pub fn mean(&self) -> Duration {
        match *self {
            Backoff::Uniform(longest) => Duration::from_nanos(longest.as_nanos() / 2),
            Backoff::Exponential(mean) => mean,
            Backoff::Fixed(wait) => wait,
        }
    }

    /// Draws a waiting time. Uses one variate of `stream`, or none if constant.
    pub fn draw(&self, stream: &mut Stream) -> Duration {
        match *self {
            Backoff::Uniform(longest) => stream.up_to(longest),
            Backoff::Exponential(mean) => stream.exponential(mean),
            Backoff::Fixed(wait) => wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_base::Streams;

    /// Moments within 5 standard errors: one false alarm in about a million seeds.
    #[test]
    fn each_law_has_its_mean_and_its_spread() {
        let ms = Duration::from_millis;
        for (backoff, mean, sd) in [
            (Backoff::Uniform(ms(700)), 0.35, 0.7 / 12f64.powf(0.5)),
            (Backoff::Exponential(ms(50)), 0.05, 0.05),
            (Backoff::Fixed(ms(20)), 0.02, 0.0),
        ] {
            let mut stream = Streams::new(3, 0).stream("backoff");
            let n = 100_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..n {
                let deviation = backoff.draw(&mut stream).as_secs_f64() - mean;
                sum += deviation;
                squares += deviation * deviation;
            }
            let n = f64::from(n);
            assert!((sum / n).abs() <= 5.0 * sd / n.sqrt(), "{backoff:?}: the mean is off by {}", sum / n);
            // The squared deviation of an exponential variate has the largest spread: √8 times its mean.
            let off = squares / n - sd * sd;
            assert!(
                off.abs() <= 5.0 * 8f64.sqrt() * sd * sd / n.sqrt(),
                "{backoff:?}: variance off by {off}"
            );
        }
    }

    #[test]
    fn a_uniform_wait_never_exceeds_its_maximum() {
        let (mut stream, longest) = (Streams::new(3, 0).stream("backoff"), Duration::from_nanos(3));
        assert!((0..1000).all(|_| Backoff::Uniform(longest).draw(&mut stream) <= longest));
    }
}
