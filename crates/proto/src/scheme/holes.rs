//! A base station's record of the data that are missing in one direction of a connection.

use alloc::collections::VecDeque;

use lasthop_base::Time;

use super::connections::ConnectionState;
use crate::tcp::{SackBlock, Segment, SeqNum};

/// Maximum number of holes per connection, so that one connection cannot take all memory.
const HOLES: usize = 1024;

/// The holes in the data of one connection: the gaps between segments that arrived over the link, or the segments that
/// arrived with errors. A hole is filled by copies, and forgotten when it is acknowledged. Each has a tag of the scheme,
/// which its parts keep when it is filled in the middle.
#[derive(Debug)]
pub(super) struct Holes<T = ()> {
    /// Unacknowledged holes in sequence order, without overlaps.
    holes: VecDeque<(SackBlock, T)>,
    /// One past the highest sequence number that has arrived; or the first one of the latest segment with errors.
    latest: SeqNum,
}

impl<T: Copy> ConnectionState for Holes<T> {
    type Read = Segment;

    fn new(_now: Time, segment: &Segment) -> Holes<T> {
        Holes { holes: VecDeque::new(), latest: segment.seq }
    }

    fn is_outdated(&self, segment: &Segment) -> bool {
        self.is_far_from(segment.seq)
    }

    fn cached(&self) -> usize {
        self.holes.len()
    }
}

impl<T: Copy> Holes<T> {
    /// Whether `seq` belongs to another window of the sequence space, and so to another connection.
    pub(super) fn is_far_from(&self, seq: SeqNum) -> bool {
        self.latest.is_far_from(seq)
    }

    /// The holes in sequence order, with their tags.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(SackBlock, T)> {
        self.holes.iter()
    }

    /// The holes in sequence order, with their tags.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (SackBlock, &mut T)> {
        self.holes.iter_mut().map(|(hole, tag)| (*hole, tag))
    }

    /// Records a segment that arrived with errors as a hole, unless a part of it is one already.
    pub(super) fn insert(&mut self, segment: &Segment, tag: T) {
        let block = SackBlock { start: segment.seq, end: segment.seq + segment.len };
        self.latest = block.start;
        let index = self.index_above(block.start);
        let is_known = self.holes.get(index).is_some_and(|(other, _)| other.start < block.end);
        if !is_known && self.holes.len() < HOLES {
            self.holes.insert(index, (block, tag));
        }
    }

    /// Records an arrived segment. Returns whether it leaves a new hole before it, which gets the tag. Otherwise it fills
    /// holes: `filled` gets the tag of each that it fills from its start, wholly or in part.
    pub(super) fn receive(&mut self, segment: &Segment, tag: T, filled: impl FnMut(T)) -> bool {
        let block = SackBlock { start: segment.seq, end: segment.seq + segment.seq_len() };
        let leaves_hole = block.start > self.latest && self.holes.len() < HOLES;
        if leaves_hole {
            self.holes.push_back((SackBlock { start: self.latest, end: block.start }, tag));
        } else {
            self.fill(block, filled);
        }
        self.latest = self.latest.max(block.end);
        leaves_hole
    }

    /// Removes `block` from the holes.
    fn fill(&mut self, block: SackBlock, mut filled: impl FnMut(T)) {
        let mut index = self.index_above(block.start);
        while let Some((hole, tag)) =
            self.holes.get(index).copied().filter(|(hole, _)| hole.start < block.end)
        {
            self.holes.remove(index);
            if hole.start < block.start {
                self.holes.insert(index, (SackBlock { end: block.start, ..hole }, tag));
                index += 1;
            } else {
                filled(tag);
            }
            if block.end < hole.end {
                self.holes.insert(index, (SackBlock { start: block.end, ..hole }, tag));
                break;
            }
        }
    }

    /// Whether nothing is missing.
    pub(super) fn is_empty(&self) -> bool {
        self.holes.is_empty()
    }

    /// Forgets all holes.
    pub(super) fn clear(&mut self) {
        self.holes.clear();
    }

    /// Forgets the holes below `ack`.
    pub(super) fn acknowledge(&mut self, ack: SeqNum) {
        while self.holes.front().is_some_and(|(hole, _)| hole.end <= ack) {
            self.holes.pop_front();
        }
    }

    /// Whether an acknowledgement requests a byte of a hole; forgets the holes that it covers.
    pub(super) fn is_requested_by(&mut self, ack: SeqNum) -> bool {
        self.acknowledge(ack);
        self.holes.front().is_some_and(|(hole, _)| hole.start <= ack)
    }

    /// The index of the first hole that ends above `seq`.
    fn index_above(&self, seq: SeqNum) -> usize {
        self.holes.partition_point(|(hole, _)| hole.end <= seq)
    }
}
