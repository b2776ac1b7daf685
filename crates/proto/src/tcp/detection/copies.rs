//! Loss detection over a hop that delivers in order, by timestamps that tell every copy of a segment from the
//! others: what was sent before something that has arrived, and has not arrived itself, is lost.

use alloc::collections::VecDeque;

use crate::tcp::seq::SeqNum;

/// What was sent since the last step back to the left edge and is not acknowledged, in the order of sending.
#[derive(Debug, Default)]
pub(in crate::tcp) struct Copies {
    line: VecDeque<Sending>,
    /// The timestamp of the last one.
    last: Option<u32>,
}

/// One segment, sent once.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Sending {
    pub(in crate::tcp) start: SeqNum,
    pub(in crate::tcp) end: SeqNum,
    stamp: u32,
}

impl Copies {
    /// The timestamp of what is sent next: what `clock` shows, or more if that was given before.
    pub(in crate::tcp) fn stamp(&mut self, clock: u32) -> u32 {
        let stamp =
            self.last.filter(|&last| !is_later(clock, last)).map_or(clock, |last| last.wrapping_add(1));
        self.last = Some(stamp);
        stamp
    }

    /// The sequence numbers from `start` to `end` went out, with the last timestamp.
    pub(in crate::tcp) fn on_sent(&mut self, start: SeqNum, end: SeqNum) {
        self.line.push_back(Sending { start, end, stamp: self.last.unwrap_or_default() });
    }

    /// All before `edge` is acknowledged.
    pub(in crate::tcp) fn forget_before(&mut self, edge: SeqNum) {
        while self.line.front().is_some_and(|sending| sending.end <= edge) {
            self.line.pop_front();
        }
    }

    /// What is under way is taken for lost.
    pub(in crate::tcp) fn clear(&mut self) {
        self.line.clear();
    }

    /// Whether the earliest was sent before what bore the timestamp `arrived`, which none has that was never
    /// given.
    pub(in crate::tcp) fn earliest_is_before(&self, arrived: u32) -> bool {
        let given = self.last.is_some_and(|last| !is_later(arrived, last));
        given && self.line.front().is_some_and(|sending| is_later(arrived, sending.stamp))
    }

    /// Takes the earliest, if it was sent before what bore the timestamp `arrived`.
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

    /// An echo later than any timestamp that was given, as a strange peer may send it, shows nothing; nor does
    /// one before anything was sent.
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
