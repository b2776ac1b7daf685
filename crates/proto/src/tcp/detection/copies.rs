//! Loss detection over a hop that delivers in order, by unique timestamps for every copy of a segment: if a
//! later transmission arrives first, an earlier one is lost.

use alloc::collections::VecDeque;

use crate::packet::SeqNum;

/// Unacknowledged transmissions since the sender last went back to the left edge, in order of transmission.
#[derive(Debug, Default)]
pub(in crate::tcp) struct Copies {
    line: VecDeque<Sending>,
    /// The last timestamp given out.
    last: Option<u32>,
}

/// One transmission of a segment.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Sending {
    pub(in crate::tcp) start: SeqNum,
    pub(in crate::tcp) end: SeqNum,
    stamp: u32,
}

impl Copies {
    /// The timestamp for the next transmission: `clock`, or one more than the last timestamp if `clock` is
    /// not later.
    pub(in crate::tcp) fn stamp(&mut self, clock: u32) -> u32 {
        let stamp =
            self.last.filter(|&last| !is_later(clock, last)).map_or(clock, |last| last.wrapping_add(1));
        self.last = Some(stamp);
        stamp
    }

    /// Records the transmission of `start..end` with the last timestamp.
    pub(in crate::tcp) fn on_sent(&mut self, start: SeqNum, end: SeqNum) {
        self.line.push_back(Sending { start, end, stamp: self.last.unwrap_or_default() });
    }

    /// Removes transmissions acknowledged up to `edge`.
    pub(in crate::tcp) fn forget_before(&mut self, edge: SeqNum) {
        while self.line.front().is_some_and(|sending| sending.end <= edge) {
            self.line.pop_front();
        }
    }

    /// Removes all transmissions: everything in flight counts as lost.
    pub(in crate::tcp) fn clear(&mut self) {
        self.line.clear();
    }

    /// Whether the earliest transmission precedes the one with timestamp `arrived`; `false` for timestamps
    /// never given out.
    pub(in crate::tcp) fn earliest_is_before(&self, arrived: u32) -> bool {
        let given = self.last.is_some_and(|last| !is_later(arrived, last));
        given && self.line.front().is_some_and(|sending| is_later(arrived, sending.stamp))
    }

    /// Removes and returns the earliest transmission if it precedes the one with timestamp `arrived`.
    pub(in crate::tcp) fn take_before(&mut self, arrived: u32) -> Option<Sending> {
        if self.earliest_is_before(arrived) { self.line.pop_front() } else { None }
    }
}

/// Whether timestamp `a` is later than `b`, modulo 2³² (RFC 7323 section 5.2).
fn is_later(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An echo of a timestamp never given out, as a faulty peer may send, reveals nothing; nor does one
    /// before the first transmission.
    #[test]
    fn what_was_never_given_shows_nothing() {
        let mut copies = Copies::default();
        assert!(!copies.earliest_is_before(5));
        for number in 0..3 {
            assert_eq!(copies.stamp(100), 100 + number);
            copies.on_sent(SeqNum(number), SeqNum(number + 1));
        }
        assert!(copies.earliest_is_before(102) && !copies.earliest_is_before(103));
        assert!(!copies.earliest_is_before(100) && !copies.earliest_is_before(99));
        assert!(copies.take_before(1_000).is_none());
    }
}
