//! Instants and durations of simulated time, in integer nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Mul, Sub};
use core::str::FromStr;

use crate::number::{FromNumber, Number, UnitError};
use crate::parse::{self, Quantity};

/// An instant: nanoseconds since the simulation began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A non-negative duration in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

const NANOS_PER_SEC: u64 = 1_000_000_000;

impl Time {
    /// The start of a run.
    pub const ZERO: Time = Time(0);
    /// Later than every instant of a run: the deadline of a component without a pending timer.
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `ns` nanoseconds after the start.
    pub const fn from_nanos(ns: u64) -> Time {
        Time(ns)
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start, for results and plots only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }

    /// The duration from `earlier` to this instant.
    ///
    /// # Panics
    /// If `earlier` is later than this instant.
    pub fn since(self, earlier: Time) -> Duration {
        Duration(self.0.checked_sub(earlier.0).expect("time ran backwards"))
    }
}

impl Duration {
    /// Zero.
    pub const ZERO: Duration = Duration(0);
    /// The longest duration: about 584 years.
    pub const MAX: Duration = Duration(u64::MAX);

    /// `ns` nanoseconds.
    pub const fn from_nanos(ns: u64) -> Duration {
        Duration(ns)
    }

    /// `us` microseconds.
    pub const fn from_micros(us: u64) -> Duration {
        Duration(us * 1_000)
    }

    /// `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Duration {
        Duration(ms * 1_000_000)
    }

    /// `s` seconds.
    pub const fn from_secs(s: u64) -> Duration {
        Duration(s * NANOS_PER_SEC)
    }

    /// The nearest duration to `s` seconds, saturating at zero and [`Duration::MAX`]. For random variates and
    /// parsed numbers.
    pub fn from_secs_f64(s: f64) -> Duration {
        let nanos = s * NANOS_PER_SEC as f64;
        // The cast rounds down and saturates; the rest is exact.
        let whole = nanos as u64;
        Duration(whole.saturating_add(u64::from(nanos - whole as f64 >= 0.5)))
    }

    /// The duration in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The duration in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }

    /// Whether the duration is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

/// Saturates at [`Time::NEVER`], so [`Time::NEVER`] plus any duration is [`Time::NEVER`].
impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

/// Saturates at [`Duration::MAX`].
impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

/// # Panics
/// If `other` is longer than `self`.
impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0.checked_sub(other.0).expect("a duration cannot be negative"))
    }
}

/// Saturates at [`Duration::MAX`].
impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, times: u64) -> Duration {
        Duration(self.0.saturating_mul(times))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER {
            return f.write_str("never");
        }
        write!(f, "{}.{:09} s", self.0 / NANOS_PER_SEC, self.0 % NANOS_PER_SEC)
    }
}

/// In the largest unit that needs at most three decimals: `"30 ms"`, `"1.5 s"`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::write_scaled(f, self.0, &[(NANOS_PER_SEC, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")])
    }
}

pub(crate) const DURATION: Quantity<'_> = Quantity {
    what: "a duration",
    example: "30 ms",
    units: &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)],
    si: 1e9,
};

impl FromNumber for Duration {
    fn from_number(number: &Number) -> Result<Duration, UnitError> {
        parse::stated(number, DURATION).map(Duration)
    }
}

impl FromStr for Duration {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Duration, UnitError> {
        parse::quantity(text, DURATION).map(Duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn adding_to_never_gives_never() {
        assert_eq!(Time::NEVER + Duration::from_secs(1), Time::NEVER);
    }

    #[test]
    fn durations_format_in_the_largest_fitting_unit() {
        for (ns, text) in
            [(0, "0 s"), (30_000_000, "30 ms"), (1_500_000_000, "1.5 s"), (1_234, "1.234 us"), (7, "7 ns")]
        {
            assert_eq!(Duration(ns).to_string(), text);
            assert_eq!(text.parse(), Ok(Duration(ns)));
        }
    }

    #[test]
    #[should_panic(expected = "time ran backwards")]
    fn the_time_since_a_later_instant_panics() {
        let _ = Time(1).since(Time(2));
    }

    #[test]
    fn seconds_are_rounded_to_the_nearest_nanosecond_and_saturate() {
        let nanos = |s: f64| Duration::from_secs_f64(s).as_nanos();
        assert_eq!([0.49e-9, 0.5e-9, 1.49e-9, 2.5e-9].map(nanos), [0, 1, 1, 3]);
        for s in [1.0 / 3.0, 1e-6 / 7.0, 123.456_789_012_5, 8_000_000.000_000_5] {
            assert_eq!(nanos(s), libm::round(s * 1e9) as u64, "{s}");
        }
        assert_eq!([-1.0, f64::NAN, 1e300, f64::INFINITY].map(nanos), [0, 0, u64::MAX, u64::MAX]);
    }
}
