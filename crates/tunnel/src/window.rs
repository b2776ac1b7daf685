//! Which datagrams have arrived: the window against replays, and reports of it.

/// Counters behind the highest that are told apart.
const LEN: u64 = 2048;

/// Counters that a report tells.
pub(crate) const REPORTED: u64 = 512;

/// The counters that have arrived, as far as the window reaches (RFC 6479).
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// All below it are refused.
    first: u64,
    highest: u64,
    bits: [u64; (LEN / 64) as usize],
}

/// What an end tells about the datagrams that have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// The highest counter.
    pub(crate) highest: u64,
    /// Microseconds since it has arrived.
    pub(crate) delay_us: u32,
    /// Bit `i % 64` of word `i / 64` tells whether the counter `highest - i` has arrived.
    pub(crate) arrived: [u64; (REPORTED / 64) as usize],
}

impl Report {
    /// Whether a counter up to the highest has arrived; `None` if it is too old to tell.
    pub(crate) fn has(&self, counter: u64) -> Option<bool> {
        let behind = self.highest.checked_sub(counter).filter(|behind| *behind < REPORTED)?;
        Some(self.arrived[(behind / 64) as usize] >> (behind % 64) & 1 == 1)
    }
}

impl Window {
    /// A window in which `counter` has arrived, and all below it are refused.
    pub(crate) fn from(counter: u64) -> Window {
        let mut window = Window { first: counter, highest: counter, bits: [0; (LEN / 64) as usize] };
        window.set(counter);
        window
    }

    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    fn place(counter: u64) -> (usize, u64) {
        ((counter / 64 % (LEN / 64)) as usize, 1 << (counter % 64))
    }

    fn set(&mut self, counter: u64) {
        let (word, bit) = Window::place(counter);
        self.bits[word] |= bit;
    }

    /// Whether a datagram with this counter is new. Only what is authentic may be [noted](Window::note).
    pub(crate) fn is_new(&self, counter: u64) -> bool {
        let (word, bit) = Window::place(counter);
        // The word of the highest has room for counters to come: one word less reaches back.
        counter > self.highest
            || counter >= self.first && self.highest - counter < LEN - 64 && self.bits[word] & bit == 0
    }

    /// Notes that it has arrived.
    pub(crate) fn note(&mut self, counter: u64) {
        if counter > self.highest {
            let (old, new) = (self.highest / 64, counter / 64);
            for word in (old + 1..=new).rev().take((LEN / 64) as usize) {
                self.bits[(word % (LEN / 64)) as usize] = 0;
            }
            self.highest = counter;
        }
        self.set(counter);
    }

    /// What there is to report, `delay_us` after the highest has arrived.
    pub(crate) fn report(&self, delay_us: u32) -> Report {
        let mut arrived = [0; (REPORTED / 64) as usize];
        for behind in 0..REPORTED.min(self.highest - self.first + 1) {
            let (word, bit) = Window::place(self.highest - behind);
            arrived[(behind / 64) as usize] |= u64::from(self.bits[word] & bit != 0) << (behind % 64);
        }
        Report { highest: self.highest, delay_us, arrived }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lasthop_base::Streams;

    use super::*;

    /// Beside a set of all that has arrived.
    #[test]
    fn each_counter_is_new_once_and_only_within_the_window() {
        for world in 0..40 {
            let mut draw = Streams::new(7, world).stream("counters");
            let start = draw.below(1000);
            let (mut window, mut known, mut highest) = (Window::from(start), BTreeSet::from([start]), start);
            let (mut refused, mut late) = (0, 0);
            for _ in 0..4000 {
                let jump = [3, 40, 5000][draw.below(100).saturating_sub(97) as usize];
                let counter = (highest + draw.below(jump)).saturating_sub(draw.below(2 * jump));
                let is_new = window.is_new(counter);
                let fits = counter >= start && highest.saturating_sub(counter) < LEN - 64;
                assert_eq!(is_new, fits && !known.contains(&counter), "{counter}, highest {highest}");
                (refused, late) =
                    (refused + u64::from(!is_new), late + u64::from(is_new && counter < highest));
                if is_new {
                    window.note(counter);
                    known.insert(counter);
                    highest = highest.max(counter);
                }
                let report = window.report(0);
                assert_eq!(report.highest, highest);
                let asked = highest.saturating_sub(draw.below(REPORTED + 8));
                let expected = (highest - asked < REPORTED).then(|| known.contains(&asked));
                assert_eq!(report.has(asked), expected, "{asked}, highest {highest}");
            }
            assert!(refused > 100 && late > 100, "{refused} {late}");
        }
    }
}
