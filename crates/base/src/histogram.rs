//! Histograms of durations, for quantiles.

use alloc::vec::Vec;

use crate::Duration;

/// Buckets for each power of two.
const STEPS: u64 = 128;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// Durations in buckets whose width grows with the value, as in HdrHistogram with two significant digits:
/// quantiles are exact to 0.4 %, and below 256 ns exact. Memory does not grow with the number of values: 30
/// KB suffice for minutes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Grown on demand.
    counts: Vec<u64>,
    total: u64,
    max: Duration,
}

impl Histogram {
    /// Adds a value.
    #[inline]
    pub fn record(&mut self, value: Duration) {
        let index = bucket(value.as_nanos());
        match self.counts.get_mut(index) {
            Some(count) => *count += 1,
            None => self.grow(index),
        }
        self.total += 1;
        self.max = self.max.max(value);
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        self.counts.resize(index + 1, 0);
        self.counts[index] = 1;
    }

    /// The number of values.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The greatest value; zero if there are none.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The values added since `earlier`, a previous state of this histogram. The maximum is that of all
    /// values.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let before = earlier.counts.iter().copied().chain(core::iter::repeat(0));
        let counts = self.counts.iter().zip(before).map(|(count, before)| count - before).collect();
        Histogram { counts, total: self.total - earlier.total, max: self.max }
    }

    /// The smallest value that at least the share `q` of all values does not exceed (the nearest rank),
    /// rounded to the middle of its bucket. `None` if there are no values.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let rank = (libm::ceil(q * self.total as f64) as u64).clamp(1, self.total.max(1));
        let mut below = 0;
        let index = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        })?;
        Some(middle(index).min(self.max))
    }
}

/// Values below twice [`STEPS`] have a bucket each.
fn bucket(ns: u64) -> usize {
    let shift = (u64::BITS - STEP_BITS - 1).saturating_sub(ns.leading_zeros());
    (u64::from(shift) * STEPS + (ns >> shift)) as usize
}

fn middle(index: usize) -> Duration {
    let index = index as u64;
    let shift = (index / STEPS).saturating_sub(1);
    let least = (index - shift * STEPS) << shift;
    Duration::from_nanos(least + ((1 << shift) - 1) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|&ns| histogram.record(Duration::from_nanos(ns)));
        histogram
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values() {
        let mut values: Vec<u64> = (0..10_000u64).map(|i| i * i * i % 7_000_003 + i).collect();
        let histogram = of(&values);
        values.sort_unstable();
        for (q, rank) in [(0.0, 1), (0.01, 100), (0.5, 5_000), (0.95, 9_500), (0.99, 9_900), (1.0, 10_000)] {
            let exact = values[rank - 1] as f64;
            let found = histogram.quantile(q).unwrap().as_nanos() as f64;
            assert!((found - exact).abs() <= exact / 256.0, "{q}: {exact} {found}");
        }
        assert_eq!((histogram.total(), histogram.max().as_nanos()), (10_000, values[9_999]));
    }

    /// By hand: of 1, 2, 3 and 200 ns.
    #[test]
    fn small_values_are_exact() {
        let histogram = of(&[200, 3, 1, 2]);
        for (q, ns) in [(0.0, 1), (0.25, 1), (0.26, 2), (0.5, 2), (0.75, 3), (0.76, 200), (1.0, 200)] {
            assert_eq!(histogram.quantile(q), Some(Duration::from_nanos(ns)), "{q}");
        }
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn every_value_is_near_the_middle_of_its_bucket() {
        let powers = (0..64).map(|bit| 1u64 << bit);
        let near = powers.flat_map(|power| [power - 1, power, power + 1, power + power / 3]);
        for ns in near.chain([u64::MAX]) {
            let found = middle(bucket(ns)).as_nanos();
            assert!(found.abs_diff(ns) <= ns / 256, "{ns} {found}");
        }
        let indices = (0..u64::MAX.ilog2() as usize * 100).map(|index| bucket(middle(index).as_nanos()));
        assert!(indices.enumerate().all(|(index, found)| index == found), "buckets follow each other");
    }

    #[test]
    fn earlier_values_are_left_out() {
        let (mut histogram, earlier) = (of(&[7, 7, 1_000]), of(&[7, 7, 1_000]));
        assert_eq!(histogram.since(&earlier).quantile(0.5), None);
        histogram.record(Duration::from_nanos(9));
        histogram.record(Duration::from_secs(1));
        let since = histogram.since(&earlier);
        assert_eq!((since.total(), since.quantile(0.5)), (2, Some(Duration::from_nanos(9))));
    }
}
