//! Sets of sequence numbers, kept as disjoint ranges.

use alloc::collections::VecDeque;

use crate::packet::{SackBlock, SeqNum};

/// A set of sequence numbers within one window, as sorted ranges that neither overlap nor touch.
///
/// Most data arrive at the right edge of a window, and most retransmissions at its left edge. Changes near
/// either end cost constant amortised time; changes in the middle of n ranges cost O(n) and are rare.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    ranges: VecDeque<SackBlock>,
    /// Size of the set.
    bytes: u32,
}

impl Ranges {
    pub(super) fn clear(&mut self) {
        self.ranges.clear();
        self.bytes = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges in order.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &SackBlock> {
        self.ranges.iter()
    }

    /// The number of members.
    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// The number of members below `seq`; linear in the number of ranges below it.
    pub(super) fn bytes_below(&self, seq: SeqNum) -> u32 {
        let below = self.ranges.iter().take_while(|range| range.start < seq);
        below.map(|range| range.end.min(seq) - range.start).sum()
    }

    /// The number of members that `start..end` would add.
    pub(super) fn missing(&self, start: SeqNum, end: SeqNum) -> u32 {
        let present = |range: &SackBlock| range.end.min(end) - range.start.max(start);
        let first = self.count_before(start, |range| range.end <= start);
        let inside = self.ranges.range(first..).take_while(|range| range.start < end);
        (end - start) - inside.map(present).sum::<u32>()
    }

    /// The number of ranges before a position near `seq`, according to `is_before`.
    fn count_before(&self, seq: SeqNum, is_before: impl Fn(&SackBlock) -> bool) -> usize {
        let (Some(first), Some(last)) = (self.ranges.front(), self.ranges.back()) else { return 0 };
        if !is_before(first) {
            0
        } else if last.start <= seq {
            self.ranges.len() - usize::from(!is_before(last))
        } else {
            self.ranges.partition_point(is_before)
        }
    }

    /// Adds `start..end`; calls `visit` for each part that is new, in order.
    pub(super) fn insert(&mut self, start: SeqNum, end: SeqNum, mut visit: impl FnMut(SackBlock)) {
        if end <= start {
            return;
        }
        let first = self.count_before(start, |range| range.end < start);
        let (mut merged, mut after, mut seen) = (SackBlock { start, end }, first, start);
        let mut add = |start: SeqNum, end: SeqNum| {
            if start < end {
                self.bytes += end - start;
                visit(SackBlock { start, end });
            }
        };
        while let Some(range) = self.ranges.get(after).filter(|range| range.start <= end) {
            add(seen, range.start);
            seen = range.end;
            merged = SackBlock { start: merged.start.min(range.start), end: merged.end.max(range.end) };
            after += 1;
        }
        add(seen, end);
        if first == after {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..after);
        }
    }

    /// Removes everything before `edge`.
    #[inline]
    pub(super) fn forget_before(&mut self, edge: SeqNum) {
        if !self.ranges.is_empty() {
            self.remove_before(edge);
        }
    }

    fn remove_before(&mut self, edge: SeqNum) {
        while let Some(first) = self.ranges.front_mut().filter(|first| first.start < edge) {
            if first.end > edge {
                self.bytes -= edge - first.start;
                first.start = edge;
                return;
            }
            self.bytes -= first.end - first.start;
            self.ranges.pop_front();
        }
    }

    /// The range that contains `seq`.
    #[inline]
    pub(super) fn around(&self, seq: SeqNum) -> Option<SackBlock> {
        // Most connections have nothing out of order.
        if self.ranges.is_empty() { None } else { self.find_around(seq) }
    }

    fn find_around(&self, seq: SeqNum) -> Option<SackBlock> {
        let index = self.count_before(seq, |range| range.end <= seq);
        self.ranges.get(index).copied().filter(|range| range.start <= seq)
    }

    /// Start of the first range after `seq`.
    pub(super) fn next_start(&self, seq: SeqNum) -> Option<SeqNum> {
        let index = self.count_before(seq, |range| range.start <= seq);
        self.ranges.get(index).map(|range| range.start)
    }

    /// Start of the first range.
    pub(super) fn start(&self) -> Option<SeqNum> {
        self.ranges.front().map(|range| range.start)
    }

    /// End of the last range.
    pub(super) fn end(&self) -> Option<SeqNum> {
        self.ranges.back().map(|range| range.end)
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
                        let (mut news, before) = (0, plain);
                        plain[slots].fill(true);
                        ranges.insert(base + from, base + to.max(from), |part| {
                            let part = part.start - base..part.end - base;
                            assert!(part.clone().all(|seq| !before[seq as usize] && plain[seq as usize]));
                            news += part.len();
                        });
                        assert_eq!(news, fresh);
                    }
                }
                let flags =
                    |seqs: core::ops::Range<u32>| plain[seqs.start as usize..seqs.end as usize].iter();
                for seq in 0..SIZE {
                    assert_eq!(ranges.around(base + seq).is_some(), plain[seq as usize]);
                    let next = flags(seq..SIZE).position(|&set| set).map(|next| base + seq + next as u32);
                    if !plain[seq as usize] {
                        assert_eq!(ranges.next_start(base + seq), next);
                    }
                    assert_eq!(
                        ranges.bytes_below(base + seq),
                        flags(0..seq).filter(|&&set| set).count() as u32
                    );
                }
                assert_eq!(ranges.bytes(), ranges.bytes_below(base + SIZE));
                let apart =
                    ranges.iter().zip(ranges.iter().skip(1)).all(|(left, right)| left.end < right.start);
                assert!(apart && ranges.iter().all(|range| range.start < range.end));
                let start = plain.iter().position(|&set| set).map(|first| base + first as u32);
                assert_eq!(ranges.start(), start);
                let end = plain.iter().rposition(|&set| set).map(|last| base + last as u32 + 1);
                assert_eq!(ranges.end(), end);
            }
        }
    }
}
