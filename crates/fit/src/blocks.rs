//! Compressed loss records, for fast evaluation of the likelihood.
//!
//! Most probes are delivered, in runs of hundreds at nearly equal intervals. The likelihood of such a run is
//! a matrix power, whose cost does not depend on the length of the run. A capture of a million packets has a
//! few thousand blocks.

use crate::losses::Losses;

/// Tolerated relative deviation of the gaps in a run from their mean. Their sum is exact; their variation
/// matters little.
const TOLERANCE: f64 = 0.25;

/// Gaps shorter than this share of the record count as equal, since packets of a transfer leave in bursts.
const SHORT: f64 = 1e-5;

/// A run of probes at equal intervals with the same result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Block {
    /// Seconds before each probe of the block.
    pub(crate) gap: f64,
    pub(crate) probes: u32,
    /// Whether each probe was lost.
    pub(crate) lost: bool,
}

/// The blocks of a record of probes. The gap of the first block is zero.
pub(crate) fn blocks(losses: &Losses, outcomes: &[bool]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut before = 0.0;
    let short = SHORT * losses.duration_s();
    for (&time, &lost) in losses.times.iter().zip(outcomes) {
        let gap = time - before;
        before = time;
        let first = blocks.len() < 2;
        match blocks.last_mut() {
            // The first probe has no gap before it, so it forms its own block.
            Some(last)
                if !first
                    && last.lost == lost
                    && (gap - last.gap).abs() <= (TOLERANCE * last.gap).max(short) =>
            {
                let probes = f64::from(last.probes);
                last.gap = (last.gap * probes + gap) / (probes + 1.0);
                last.probes += 1;
            }
            _ => blocks.push(Block { gap, probes: 1, lost }),
        }
    }
    blocks
}
