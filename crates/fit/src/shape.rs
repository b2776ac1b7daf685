//! Histograms of a record, for goodness-of-fit checks.

use crate::losses::{Losses, Outcomes};

/// Number of time windows of equal length.
const WINDOWS: usize = 30;

/// The histograms of a record. In a record of intervals, an interval with any loss counts as lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Number of bursts by length, in classes that end at powers of two: 1, 2, 3-4, 5-8 probes, ...
    pub bursts: Vec<u64>,
    /// Number of gaps between bursts, in the same classes, without the first and the last gap.
    pub gaps: Vec<u64>,
    /// The loss rate 1, 2, 4, 8, ... probes after a lost one; NaN without such probes.
    pub after_loss: Vec<f64>,
    /// The loss rate in each time window; NaN for a window without probes.
    pub by_time: Vec<f64>,
}

/// Number of length classes.
const LENGTHS: usize = 20;

/// Number of lags of `after_loss`, as powers of two.
const LAGS: usize = 12;

impl Shape {
    /// The histograms of a record.
    pub fn of(losses: &Losses) -> Shape {
        let lost: Vec<bool> = match &losses.outcomes {
            Outcomes::Probes(lost) => lost.clone(),
            Outcomes::Counts(counts) => counts.iter().map(|&(_, _, lost)| lost > 0).collect(),
        };
        let mut shape = Shape {
            bursts: vec![0; LENGTHS],
            gaps: vec![0; LENGTHS],
            after_loss: (0..LAGS).map(|power| after_loss(&lost, 1 << power)).collect(),
            by_time: by_time(losses, &lost),
        };
        let runs: Vec<&[bool]> = lost.chunk_by(|a, b| a == b).collect();
        for (index, run) in runs.iter().enumerate() {
            let class = (run.len().next_power_of_two().trailing_zeros() as usize).min(LENGTHS - 1);
            match run[0] {
                true => shape.bursts[class] += 1,
                false if index > 0 && index + 1 < runs.len() => shape.gaps[class] += 1,
                false => {}
            }
        }
        shape
    }
}

fn after_loss(lost: &[bool], lag: usize) -> f64 {
    let pairs = lost.iter().zip(lost.iter().skip(lag)).filter(|(first, _)| **first);
    let (count, both) =
        pairs.fold((0, 0), |(count, both), (_, &second)| (count + 1, both + u32::from(second)));
    f64::from(both) / f64::from(count)
}

fn by_time(losses: &Losses, lost: &[bool]) -> Vec<f64> {
    let (mut sent, mut missing) = ([0_u32; WINDOWS], [0_u32; WINDOWS]);
    let length = losses.duration_s() / WINDOWS as f64;
    for (&time, &lost) in losses.times.iter().zip(lost) {
        let window = ((time / length) as usize).min(WINDOWS - 1);
        sent[window] += 1;
        missing[window] += u32::from(lost);
    }
    sent.iter().zip(missing).map(|(&sent, missing)| f64::from(missing) / f64::from(sent)).collect()
}
