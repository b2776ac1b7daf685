//! Records of losses in a form whose likelihood is cheap.
//!
//! Most probes of a record arrive, hundreds in a row at nearly equal intervals. The likelihood of such a run is a power of
//! one matrix, so its cost does not depend on its length: a capture of a million packets has a few thousand blocks.

use crate::losses::{Fates, Losses};

/// Gaps of a run may differ from its mean by this share: their sum is exact, and their spread matters little.
const TOLERANCE: f64 = 0.25;

/// Shorter gaps than this share of the record count as equal: packets of a transfer leave in bursts.
const SHORT: f64 = 1e-5;

/// Probes at equal intervals, each with the same fate; or the packets of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Block {
    /// Seconds before each probe of the block.
    pub(crate) gap: f64,
    /// How many probes follow each other; 1 for an interval.
    pub(crate) probes: u32,
    /// Packets that were lost, at each probe.
    pub(crate) lost: u32,
    /// Packets that arrived, at each probe.
    pub(crate) received: u32,
}

/// The blocks of a record. The gap of the first is zero.
pub(crate) fn blocks(losses: &Losses) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut before = 0.0;
    match &losses.fates {
        Fates::Counts(counts) => {
            // All packets of an interval count as sent in the middle of it.
            for (&begin, &(length, sent, lost)) in losses.times.iter().zip(counts) {
                let middle = begin + length / 2.0;
                let gap = if blocks.is_empty() { 0.0 } else { middle - before };
                blocks.push(Block { gap, probes: 1, lost, received: sent - lost });
                before = middle;
            }
        }
        Fates::Probes(fates) => {
            let short = SHORT * losses.duration_s();
            for (&time, &lost) in losses.times.iter().zip(fates) {
                let (gap, fate) = (time - before, (u32::from(lost), u32::from(!lost)));
                before = time;
                let first = blocks.len() < 2;
                match blocks.last_mut() {
                    // The first probe stands alone: nothing precedes it.
                    Some(last)
                        if !first
                            && (last.lost, last.received) == fate
                            && (gap - last.gap).abs() <= (TOLERANCE * last.gap).max(short) =>
                    {
                        let probes = f64::from(last.probes);
                        last.gap = (last.gap * probes + gap) / (probes + 1.0);
                        last.probes += 1;
                    }
                    _ => blocks.push(Block { gap, probes: 1, lost: fate.0, received: fate.1 }),
                }
            }
        }
    }
    blocks
}
