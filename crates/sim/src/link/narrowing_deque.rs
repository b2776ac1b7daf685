//! A deque for the packets of a link, whose memory in use becomes small again.

/// Slots of a queue that has held something: enough for an initial window.
const FEWEST: usize = 16;

/// A FIFO in a ring of slots, like `VecDeque`, but slots that a burst has added go out of use again. A large network
/// has many of them, and a wide ring would lead each packet through memory that is no longer in the cache. The allocation
/// stays.
#[derive(Clone, Debug)]
pub(crate) struct NarrowingDeque<T> {
    /// Those beyond `width` are unused.
    slots: Vec<T>,
    /// Slots in use, a power of two; zero before the first value.
    width: usize,
    head: usize,
    len: usize,
}

impl<T> Default for NarrowingDeque<T> {
    fn default() -> NarrowingDeque<T> {
        NarrowingDeque { slots: Vec::new(), width: 0, head: 0, len: 0 }
    }
}

impl<T: Copy> NarrowingDeque<T> {
    /// The number of values.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no value.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the next value makes it wider.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len == self.width
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
            None => self.append(&value),
        }
    }

    /// Adds a slot in the first round, in which those up to here are filled.
    // By reference and not inlined, so that what is pushed stays out of memory until it is stored.
    #[cold]
    fn append(&mut self, value: &T) {
        self.slots.push(*value);
    }

    /// Adds a value before all those whose key is greater, which takes time linear in their number. Values are in the order of
    /// their keys.
    pub(crate) fn push_sorted<K: PartialOrd>(&mut self, value: T, key: impl Fn(&T) -> K) {
        self.push(value);
        for place in (1..self.len).rev() {
            let [before, here] = [place - 1, place].map(|place| (self.head + place) & (self.width - 1));
            if key(&self.slots[before]) <= key(&self.slots[here]) {
                break;
            }
            self.slots.swap(before, here);
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

    /// As a stable sort of all values, wherever the ring begins.
    #[test]
    fn sorts_values_as_they_are_added() {
        let mut random = Streams::new(2, 0).stream("sorted");
        let (mut narrowing, mut sorted) = (NarrowingDeque::default(), Vec::new());
        for number in 0..5_000_u64 {
            let value = (number / 4 + random.below(30), number);
            narrowing.push_sorted(value, |&(key, _)| key);
            let place = sorted.partition_point(|&(key, _)| key <= value.0);
            sorted.insert(place, value);
            if random.below(20) < 19 && sorted.len() > 40 {
                narrowing.pop();
                sorted.remove(0);
            }
            assert!(narrowing.iter().eq(&sorted), "{number}");
        }
    }

    /// Bursts of a few hundred values widen it, and quiet times make it narrow.
    #[test]
    fn agrees_with_a_deque() {
        let mut random = Streams::new(1, 0).stream("deque");
        let (mut narrowing, mut deque) = (NarrowingDeque::default(), VecDeque::new());
        let (mut widest, mut narrowest_after) = (0, usize::MAX);
        for step in 0..200_000_u32 {
            let few = if step / 2_000 % 2 == 0 { 6 } else { 300 };
            if random.below(few) >= deque.len() as u64 {
                narrowing.push(step);
                deque.push_back(step);
            } else if random.below(5_000) == 0 {
                narrowing.clear();
                deque.clear();
            } else {
                narrowing.pop();
                deque.pop_front();
            }
            assert_eq!((narrowing.len(), narrowing.is_empty()), (deque.len(), deque.is_empty()));
            assert_eq!((narrowing.front(), narrowing.back()), (deque.front(), deque.back()));
            if step % 64 == 0 {
                assert!(narrowing.iter().eq(&deque));
            }
            widest = widest.max(narrowing.width);
            if widest > FEWEST {
                narrowest_after = narrowest_after.min(narrowing.width);
            }
        }
        assert!(widest >= 256 && narrowest_after == FEWEST, "{widest}, then {narrowest_after}");
        let mut empty: NarrowingDeque<u32> = NarrowingDeque::default();
        empty.pop();
        assert_eq!((empty.len(), empty.front()), (0, None));
    }
}
