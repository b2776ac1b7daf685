//! A queue for the packets of a link.

/// Slots of a queue that has held something: enough for an initial window.
const FEWEST: usize = 16;

/// A queue in a ring of slots, like `VecDeque`, but a ring that a burst has widened becomes narrow again. A large network
/// has many of them, and a wide ring would lead each packet through memory that is no longer in the cache. The allocation
/// stays.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// Those beyond `width` are unused.
    slots: Vec<T>,
    /// Slots in use, a power of two; zero before the first value.
    width: usize,
    head: usize,
    len: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring { slots: Vec::new(), width: 0, head: 0, len: 0 }
    }
}

impl<T: Copy> Ring<T> {
    /// The number of values.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no value.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The oldest value.
    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        if self.len == 0 { None } else { self.slots.get(self.head) }
    }

    /// The newest value.
    pub(crate) fn back(&self) -> Option<&T> {
        let index = self.len.checked_sub(1)?;
        self.slots.get((self.head + index) & (self.width - 1))
    }

    /// Adds a value.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) {
        if self.len == self.width {
            self.widen();
        }
        let index = (self.head + self.len) & (self.width - 1);
        self.len += 1;
        match self.slots.get_mut(index) {
            Some(slot) => *slot = value,
            // The first round: the slots up to here are filled.
            None => self.slots.push(value),
        }
    }

    /// Removes the oldest value, if any.
    #[inline]
    pub(crate) fn pop(&mut self) {
        if self.len == 0 {
            return;
        }
        self.len -= 1;
        self.head = (self.head + 1) & (self.width - 1);
        if self.head == 0 {
            self.narrow();
        }
    }

    /// Removes all values.
    pub(crate) fn clear(&mut self) {
        (self.head, self.len) = (0, 0);
    }

    /// The values, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).map(|index| &self.slots[(self.head + index) & (self.width - 1)])
    }

    /// Halves the width if few slots are occupied, now that these are the first ones.
    #[inline(never)]
    fn narrow(&mut self) {
        if self.width > FEWEST && self.len < self.width / 4 {
            self.width /= 2;
        }
    }

    #[inline(never)]
    fn widen(&mut self) {
        if self.width == 0 {
            self.slots.reserve(FEWEST);
            self.width = FEWEST;
            return;
        }
        self.slots.truncate(self.width);
        self.slots.extend_from_within(..self.head);
        self.width *= 2;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use lasthop_base::Streams;

    use super::*;

    /// Bursts of a few hundred values widen the ring, and quiet times make it narrow.
    #[test]
    fn agrees_with_a_deque() {
        let mut random = Streams::new(1, 0).stream("ring");
        let (mut ring, mut deque) = (Ring::default(), VecDeque::new());
        let (mut widest, mut narrowest_after) = (0, usize::MAX);
        for step in 0..200_000_u32 {
            let few = if step / 2_000 % 2 == 0 { 6 } else { 300 };
            if random.below(few) >= deque.len() as u64 {
                ring.push(step);
                deque.push_back(step);
            } else if random.below(5_000) == 0 {
                ring.clear();
                deque.clear();
            } else {
                ring.pop();
                deque.pop_front();
            }
            assert_eq!((ring.len(), ring.is_empty()), (deque.len(), deque.is_empty()));
            assert_eq!((ring.front(), ring.back()), (deque.front(), deque.back()));
            if step % 64 == 0 {
                assert!(ring.iter().eq(&deque));
            }
            widest = widest.max(ring.width);
            if widest > FEWEST {
                narrowest_after = narrowest_after.min(ring.width);
            }
        }
        assert!(widest >= 256 && narrowest_after == FEWEST, "{widest}, then {narrowest_after}");
        let mut empty: Ring<u32> = Ring::default();
        empty.pop();
        assert_eq!((empty.len(), empty.front()), (0, None));
    }
}
