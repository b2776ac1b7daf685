//! The greatest or least of recent values, in constant space.

/// Keeps the best of the values of a window of time, which may be counted in anything that grows, approximately
/// (K. Nichols; Linux `lib/minmax.c`): the best three, of which the second and third are of later parts of the
/// window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windowed<V> {
    best: [(u64, V); 3],
    better: fn(&V, &V) -> bool,
}

impl<V: Copy> Windowed<V> {
    /// Begins with `value` at `time`. `better` says whether the first is at least as good as the second.
    pub(super) fn new(time: u64, value: V, better: fn(&V, &V) -> bool) -> Windowed<V> {
        Windowed { best: [(time, value); 3], better }
    }

    /// The best value of the window.
    pub(super) fn get(&self) -> V {
        self.best[0].1
    }

    /// Forgets all but `value`.
    pub(super) fn reset(&mut self, time: u64, value: V) {
        self.best = [(time, value); 3];
    }

    /// Takes a value of `time`, which is none before that of the last one; returns the best of the last `window`.
    pub(super) fn update(&mut self, window: u64, time: u64, value: V) -> V {
        let new = (time, value);
        if (self.better)(&value, &self.best[0].1) || time - self.best[2].0 > window {
            self.reset(time, value);
            return value;
        }
        if (self.better)(&value, &self.best[1].1) {
            (self.best[1], self.best[2]) = (new, new);
        } else if (self.better)(&value, &self.best[2].1) {
            self.best[2] = new;
        }
        let age = time - self.best[0].0;
        if age > window {
            // The best is out of date: the second takes its place, and perhaps the third.
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

    /// Never better than the true best of the window, and never worse than that of its last half.
    #[test]
    fn is_between_the_best_of_the_window_and_of_its_last_half() {
        let mut random = lasthop_base::Streams::new(1, 0).stream("filter");
        let values: alloc::vec::Vec<u64> = (0..1_000).map(|_| random.below(1_000)).collect();
        let mut most = Windowed::new(0, values[0], |a, b| a >= b);
        for time in 1..values.len() {
            let found = most.update(10, time as u64, values[time]);
            let best =
                |window: usize| *values[time.saturating_sub(window)..=time].iter().max().expect("some");
            assert!(found <= best(11) && found >= best(5), "{found} at {time}");
        }
    }
}
