//! The histograms of a record by which a fitted model is judged.

use crate::losses::{Fates, Losses};

/// How many windows of equal length a record is cut into.
const WINDOWS: usize = 30;

/// The shape of a record. Where it consists of intervals, one with any loss counts as lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Numbers of bursts by length: of 1 probe, 2, 3 and 4, 5 to 8, and so on by powers of two.
    pub bursts: Vec<u64>,
    /// Numbers of gaps between bursts, by the same classes of length. The first and the last gap are not counted.
    pub gaps: Vec<u64>,
    /// The share of probes that are lost 1, 2, 4, 8, ... probes after a lost one; NaN where there are none.
    pub after_loss: Vec<f64>,
    /// The share of probes lost in each of 30 windows of equal length; NaN in one without probes.
    pub by_time: Vec<f64>,
}

/// Powers of two up to which lengths are told apart.
const LENGTHS: usize = 20;

/// Powers of two up to which `after_loss` goes.
const LAGS: usize = 12;

impl Shape {
    /// The shape of a record.
    pub fn of(losses: &Losses) -> Shape {
        let lost: Vec<bool> = match &losses.fates {
            Fates::Probes(lost) => lost.clone(),
            Fates::Counts(counts) => counts.iter().map(|&(_, _, lost)| lost > 0).collect(),
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
