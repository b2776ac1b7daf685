//! A windowed maximum or minimum filter in constant space.

/// Approximates the best value of a sliding window (K. Nichols; Linux `lib/minmax.c`) by the best three
/// values, the second and third from later parts of the window. Time may be any monotonic counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windowed<V, const MAXIMUM: bool> {
    best: [(u64, V); 3],
}

/// A windowed maximum.
pub(super) type Maximum<V> = Windowed<V, true>;
/// A windowed minimum.
pub(super) type Minimum<V> = Windowed<V, false>;

impl<V: Copy + PartialOrd, const MAXIMUM: bool> Windowed<V, MAXIMUM> {
    /// Starts with `value` at `time`.
    pub(super) fn new(time: u64, value: V) -> Windowed<V, MAXIMUM> {
        Windowed { best: [(time, value); 3] }
    }

    /// Whether `value` is at least as good as `other`.
    fn is_as_good(value: V, other: V) -> bool {
        if MAXIMUM { value >= other } else { value <= other }
    }

    /// The best value of the window.
    pub(super) fn get(&self) -> V {
        self.best[0].1
    }

    /// Forgets all but `value`.
    pub(super) fn reset(&mut self, time: u64, value: V) {
        self.best = [(time, value); 3];
    }

    /// Adds a value at `time`, which must not decrease between calls; returns the best value of the last
    /// `window`.
    #[inline]
    pub(super) fn update(&mut self, window: u64, time: u64, value: V) -> V {
        let best = self.best[0];
        if time - best.0 <= window / 4 && !Self::is_as_good(value, self.best[2].1) {
            // The usual case: worse than all three, none of which is old.
            return best.1;
        }
        self.insert(window, time, value)
    }

    /// Adds a value that may replace one of the three.
    fn insert(&mut self, window: u64, time: u64, value: V) -> V {
        let new = (time, value);
        if Self::is_as_good(value, self.best[0].1) || time - self.best[2].0 > window {
            self.reset(time, value);
            return value;
        }
        if Self::is_as_good(value, self.best[1].1) {
            (self.best[1], self.best[2]) = (new, new);
        } else if Self::is_as_good(value, self.best[2].1) {
            self.best[2] = new;
        }
        let age = time - self.best[0].0;
        if age > window {
            // The best value has expired: the second replaces it, or the third if the second has expired too.
            self.best = [self.best[1], self.best[2], new];
            if time - self.best[0].0 > window {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].0 == self.best[0].0 && age > window / 4 {
            (self.best[1], self.best[2]) = (new, new);
        } else if self.best[2].0 == self.best[1].0 && age > window / 2 {
            self.best[2] = new;
        }
        self.best[0].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result is never better than the true best of the window, and never worse than the best of its last
    /// half.
    #[test]
    fn is_between_the_best_of_the_window_and_of_its_last_half() {
        let mut random = lasthop_base::Streams::new(1, 0).stream("filter");
        let values: alloc::vec::Vec<u64> = (0..1_000).map(|_| random.below(1_000)).collect();
        let mut most = Maximum::new(0, values[0]);
        for time in 1..values.len() {
            let found = most.update(10, time as u64, values[time]);
            let best =
                |window: usize| *values[time.saturating_sub(window)..=time].iter().max().expect("some");
            assert!(found <= best(11) && found >= best(5), "{found} at {time}");
        }
    }
}
