//! Sets of sequence numbers, kept as disjoint ranges.

use alloc::vec::Vec;

use super::segment::SackBlock;
use super::seq::SeqNum;

/// A set of sequence numbers within one window, as sorted ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges(Vec<SackBlock>);

impl Ranges {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn as_slice(&self) -> &[SackBlock] {
        &self.0
    }

    /// Adds `start..end`; returns the number of new bytes.
    pub(super) fn insert(&mut self, start: SeqNum, end: SeqNum) -> u32 {
        if end <= start {
            return 0;
        }
        let first = self.0.partition_point(|range| range.end < start);
        let after = first + self.0[first..].partition_point(|range| range.start <= end);
        let mut merged = SackBlock { start, end };
        let mut known = 0;
        for range in &self.0[first..after] {
            known += range.end.min(end) - range.start.max(start);
            merged = SackBlock { start: merged.start.min(range.start), end: merged.end.max(range.end) };
        }
        self.0.splice(first..after, [merged]);
        (end - start) - known
    }

    /// Removes everything before `edge`.
    pub(super) fn forget_before(&mut self, edge: SeqNum) {
        let gone = self.0.partition_point(|range| range.end <= edge);
        self.0.drain(..gone);
        if let Some(first) = self.0.first_mut() {
            first.start = first.start.max(edge);
        }
    }

    /// The range that contains `seq`.
    pub(super) fn around(&self, seq: SeqNum) -> Option<SackBlock> {
        let index = self.0.partition_point(|range| range.end <= seq);
        self.0.get(index).copied().filter(|range| range.start <= seq)
    }

    /// Start of the first range after `seq`.
    pub(super) fn next_start(&self, seq: SeqNum) -> Option<SeqNum> {
        self.0.get(self.0.partition_point(|range| range.start <= seq)).map(|range| range.start)
    }

    /// End of the last range.
    pub(super) fn end(&self) -> Option<SeqNum> {
        self.0.last().map(|range| range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_base::Streams;

    /// Compared with an array of flags, for a window across the wrap-around.
    #[test]
    fn agrees_with_a_bitmap() {
        const SIZE: u32 = 64;
        let base = SeqNum(u32::MAX - SIZE / 2);
        let mut random = Streams::new(1, 0).stream("ranges");
        let mut draw = |n: u32| random.below(u64::from(n)) as u32;
        for _ in 0..300 {
            let (mut ranges, mut plain) = (Ranges::default(), [false; SIZE as usize]);
            for _ in 0..40 {
                let (from, to) = (draw(SIZE), draw(SIZE + 1));
                let slots = from as usize..(to.max(from)) as usize;
                match draw(4) {
                    0 if draw(4) == 0 => {
                        ranges.forget_before(base + from);
                        plain[..from as usize].fill(false);
                    }
                    _ => {
                        let fresh = plain[slots.clone()].iter().filter(|&&set| !set).count();
                        assert_eq!(ranges.insert(base + from, base + to.max(from)), fresh as u32);
                        plain[slots].fill(true);
                    }
                }
                for seq in 0..SIZE {
                    assert_eq!(ranges.around(base + seq).is_some(), plain[seq as usize]);
                }
                let apart = ranges.0.windows(2).all(|pair| pair[0].end < pair[1].start);
                assert!(apart && ranges.0.iter().all(|range| range.start < range.end));
                let end = plain.iter().rposition(|&set| set).map(|last| base + last as u32 + 1);
                assert_eq!(ranges.end(), end);
            }
        }
    }
}
