//! Histogram of lateness.

/// Buckets for each power of two: quantiles are exact to 2 %.
const STEPS: u32 = 64;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// Times in nanoseconds, in buckets whose width grows with the value. Takes 30 KB for any number of packets.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; ((64 - STEP_BITS + 1) * STEPS) as usize], total: 0, max: 0 }
    }
}

impl Histogram {
    pub(crate) fn record(&mut self, ns: u64) {
        self.counts[bucket(ns)] += 1;
        self.total += 1;
        self.max = self.max.max(ns);
    }

    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// The least value, rounded up to its bucket, that at least the share `q` of all values does not exceed; 0 if there
    /// are none.
    pub(crate) fn quantile(&self, q: f64) -> u64 {
        let wanted = (q * self.total as f64).ceil() as u64;
        let mut below = 0;
        for (index, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= wanted && *count > 0 {
                return upper(index).min(self.max);
            }
        }
        self.max
    }
}

/// Values below [`STEPS`] have a bucket each.
fn bucket(ns: u64) -> usize {
    if ns < u64::from(STEPS) {
        return ns as usize;
    }
    let shift = 63 - ns.leading_zeros() - STEP_BITS;
    ((shift + 1) * STEPS) as usize + (ns >> shift) as usize - STEPS as usize
}

/// The greatest value in a bucket.
fn upper(index: usize) -> u64 {
    let (octave, step) = (index as u32 / STEPS, index as u64 % u64::from(STEPS));
    match octave {
        0 => step,
        // The last bucket ends with the last number.
        _ => ((step + u64::from(STEPS) + 1) << (octave - 1)).wrapping_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_values_to_two_percent() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), 0);
        let mut values: Vec<u64> = (0..10_000u64).map(|i| i * i * i % 7_000_003 + i).collect();
        values.iter().for_each(|&value| histogram.record(value));
        values.sort_unstable();
        for q in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let exact = values[((q * 10_000.0) as usize).saturating_sub(1).min(9_999)];
            let found = histogram.quantile(q);
            assert!(exact <= found && found as f64 <= exact as f64 * 1.02 + 1.0, "{q}: {exact} {found}");
        }
        assert_eq!(histogram.max(), values[9_999]);
    }

    #[test]
    fn every_value_lies_in_its_bucket() {
        for value in [0, 1, 63, 64, 65, 127, 128, 1 << 20, (1 << 20) + 12_345, u64::MAX / 2, u64::MAX - 1] {
            let index = bucket(value);
            assert!(value <= upper(index), "{value}");
            assert!(index == 0 || upper(index - 1) < value, "{value}");
        }
    }
}
