//! Step functions of time that repeat: series of measured values.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::file::{Columns, LineError};
use crate::{Duration, Time};

/// A piecewise constant function of time that repeats. Each value holds from its time until the next one; the
/// first also holds before its time. The last value holds as long as the one before it, and then the series
/// repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// The end of each value, exclusive.
    ends: Vec<Duration>,
    values: Vec<f64>,
}

impl Steps {
    /// A series with these times, which increase, and their values.
    ///
    /// # Panics
    /// If there are no values, or not as many as times.
    pub fn new(times_s: &[f64], values: Vec<f64>) -> Steps {
        assert!(!values.is_empty() && times_s.len() == values.len(), "a series has a time for each value");
        let last = times_s[times_s.len() - 1];
        let before = if times_s.len() > 1 { times_s[times_s.len() - 2] } else { 0.0 };
        // A single value holds for ever, whatever the period.
        let period = if last > 0.0 { last + (last - before) } else { 1.0 };
        let mut ends: Vec<Duration> = times_s[1..].iter().map(|&end| Duration::from_secs_f64(end)).collect();
        ends.push(Duration::from_secs_f64(period));
        // Times less than a nanosecond apart are the same.
        let mut at = Duration::ZERO;
        for end in &mut ends {
            at = at.max(*end);
            *end = at;
        }
        // A period is at least a nanosecond.
        let last = ends.len() - 1;
        ends[last] = at.max(Duration::from_nanos(1));
        Steps { ends, values }
    }

    /// Reads a CSV file with a column `time_s` or `time_ms` and a column of values with one of these `names`.
    /// Values are multiplied by the factor of the name. `wrong` returns the problem of a value, if it has
    /// one.
    ///
    /// # Errors
    /// If the text is not such a file, or for the first value with a problem.
    pub fn parse(
        text: &str,
        names: &[(&str, f64)],
        wrong: impl Fn(f64) -> Option<&'static str>,
    ) -> Result<Steps, LineError> {
        let mut example = alloc::string::String::from("time_s,");
        example.push_str(names[0].0);
        let columns = Columns::parse(text, &example)?;
        let (times, values) = (columns.times_s()?, columns.column(names)?);
        let found = values.iter().enumerate().find_map(|(row, value)| Some((row, wrong(*value)?)));
        match found {
            Some((row, problem)) => Err(columns.wrong(row, problem)),
            None => Ok(Steps::new(&times, values)),
        }
    }

    /// The time after which the series repeats.
    pub fn period(&self) -> Duration {
        self.ends[self.ends.len() - 1]
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no values: never.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The values, each with the time for which it holds in a period.
    pub fn spans(&self) -> impl Iterator<Item = (Duration, f64)> {
        let begins = core::iter::once(Duration::ZERO).chain(self.ends.iter().copied());
        begins.zip(&self.ends).zip(&self.values).map(|((begin, &end), &value)| (end - begin, value))
    }

    /// A series with the same times and `f` applied to each value.
    pub fn with(&self, f: impl Fn(f64) -> f64) -> Steps {
        Steps { ends: self.ends.clone(), values: self.values.iter().map(|&value| f(value)).collect() }
    }

    /// The mean over time.
    pub fn mean(&self) -> f64 {
        let total: f64 = self.spans().map(|(span, value)| span.as_secs_f64() * value).sum();
        total / self.period().as_secs_f64()
    }
}

/// Reads [`Steps`] forward in time.
#[derive(Clone, Debug)]
pub struct StepsReader {
    steps: Arc<Steps>,
    /// The beginning of the current period.
    period_begin: Time,
    /// The index of the current value.
    index: usize,
}

impl StepsReader {
    /// A reader at the beginning.
    pub fn new(steps: Arc<Steps>) -> StepsReader {
        StepsReader { steps, period_begin: Time::ZERO, index: 0 }
    }

    /// The value at `at`, and the end of the time for which it holds, exclusive. `at` must not decrease
    /// between calls.
    pub fn at(&mut self, at: Time) -> (f64, Time) {
        let period = self.steps.period();
        let into = at.since(self.period_begin);
        if into >= period {
            let whole = into.as_nanos() / period.as_nanos();
            self.period_begin += period * whole;
            self.index = 0;
        }
        let into = at.since(self.period_begin);
        while self.steps.ends[self.index] <= into {
            self.index += 1;
        }
        (self.steps.values[self.index], self.period_begin + self.steps.ends[self.index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_series_holds_its_values_and_repeats() {
        let steps =
            Steps::parse("time_s,loss\n0,1\n1,2\n# a comment\n1.5,3\n", &[("loss", 1.0)], |_| None).unwrap();
        assert_eq!(steps.period(), Duration::from_millis(2000));
        assert!((steps.mean() - (1.0 + 0.5 * 2.0 + 0.5 * 3.0) / 2.0).abs() < 1e-12);
        let mut reader = StepsReader::new(Arc::new(steps));
        let ms = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        for (at, value, until) in [
            (0, 1.0, 1000),
            (999, 1.0, 1000),
            (1000, 2.0, 1500),
            (1999, 3.0, 2000),
            (2000, 1.0, 3000),
            (3499, 2.0, 3500),
            (9_000_000, 1.0, 9_001_000),
        ] {
            assert_eq!(reader.at(ms(at)), (value, ms(until)), "at {at} ms");
        }
    }

    /// The first value holds from the beginning on; a single one for ever.
    #[test]
    fn short_series_hold_for_ever() {
        let mut reader = StepsReader::new(Arc::new(Steps::new(&[0.0], vec![7.0])));
        assert_eq!(reader.at(Time::ZERO + Duration::from_secs(1000)).0, 7.0);
        let late = Steps::new(&[3.0, 5.0], vec![1.0, 2.0]);
        assert_eq!(late.period(), Duration::from_secs(7));
        assert_eq!(
            StepsReader::new(Arc::new(late)).at(Time::ZERO),
            (1.0, Time::ZERO + Duration::from_secs(5))
        );
    }

    /// Times less than a nanosecond apart, and times above the maximum of [`Time`].
    #[test]
    fn extreme_times_are_read() {
        for text in ["0,1\n1e-12,2\n2e-12,3\n", "0,1\n1e300,2\n", "1e-300,1\n", "1e300,1\n1.5e300,2\n"] {
            let text = alloc::format!("time_s,loss\n{text}");
            let steps = Steps::parse(&text, &[("loss", 1.0)], |_| None).unwrap();
            assert!(steps.period() > Duration::ZERO && steps.mean().is_finite(), "{text}");
            let mut reader = StepsReader::new(Arc::new(steps));
            for at in [0, 1, 2, 1_000_000_000, u64::MAX / 2, u64::MAX - 1] {
                let (_, until) = reader.at(Time::from_nanos(at));
                assert!(until > Time::from_nanos(at), "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_series_is_refused_with_its_line() {
        let refused = |text: &str| {
            let error = Steps::parse(text, &[("delay_ms", 1e-3), ("delay_s", 1.0)], |value| {
                (value < 0.0).then_some("found a negative delay, expected none below zero")
            })
            .unwrap_err();
            (error.line, error.problem)
        };
        for (text, line, problem) in [
            (
                "",
                None,
                "found nothing, expected a line with the names of the columns, such as \"time_s,delay_ms\"",
            ),
            ("\n# only a comment\n", None, "found nothing"),
            ("0,1\n1,2\n", Some(1), "found numbers, expected the names of the columns with their units"),
            ("time_s,delay_ms\n", None, "found no row of numbers"),
            ("time_s,delay_ms\n0,1\n1,abc\n", Some(3), "found \"abc\", expected a number"),
            ("time_s,delay_ms\n0,nan\n", Some(2), "found \"nan\", expected a number"),
            (
                "time_s,delay_ms,cell\n0,1,LTE\n1,,LTE\n",
                Some(3),
                "found \"\", expected a number; leave the row out",
            ),
            ("time_s,delay_ms\n0,1\n1\n", Some(3), "found 1 cells, expected 2"),
            ("time_s,delay_ms\n0,1\n\n0,2\n", Some(4), "found the time 0 s, expected times that increase"),
            ("time_s,delay_ms\n-1,1\n", Some(2), "found the time -1 s, expected none below zero"),
            ("time_s,delay_ms\n0,1\n1,-1\n", Some(3), "found a negative delay"),
            (
                "time_s,rtt\n0,1\n",
                None,
                "found the columns \"time_s\", \"rtt\", expected one of \"delay_ms\"",
            ),
            (
                "time_s,delay_s,delay_ms\n0,1,1000\n",
                None,
                "found both \"delay_ms\" and \"delay_s\", expected one of them",
            ),
            ("time_s;delay_ms\n0,5;1\n", Some(1), "found columns separated by ';', expected commas"),
            ("t,delay_s\n0,1\n", None, "expected one of \"time_s\", \"time_ms\""),
        ] {
            let (found, said) = refused(text);
            assert_eq!(found, line, "{text:?}: {said}");
            assert!(said.contains(problem), "{text:?}: {said}");
        }
    }
}
