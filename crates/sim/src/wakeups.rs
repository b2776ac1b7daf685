//! Who is to be woken next: a tournament tree over the array of deadlines.

use lasthop_base::Time;

/// One deadline per component; the earliest is found at the root, ties go to the lower index.
#[derive(Clone, Debug)]
pub struct Wakeups {
    /// Deadlines, padded with [`Time::NEVER`] to a power of two.
    deadlines: Vec<Time>,
    /// `winners[n]` is the index of the earliest deadline below inner node `n`; the root is 1.
    winners: Vec<u32>,
}

impl Wakeups {
    /// `components` deadlines, all [`Time::NEVER`].
    pub fn new(components: usize) -> Wakeups {
        let leaves = components.next_power_of_two().max(2);
        let mut tree = Wakeups { deadlines: vec![Time::NEVER; leaves], winners: vec![0; leaves] };
        (0..leaves).step_by(2).for_each(|leaf| tree.replay(leaf));
        tree
    }

    /// Sets the deadline of component `index`.
    pub fn set(&mut self, index: usize, deadline: Time) {
        if self.deadlines[index] != deadline {
            self.deadlines[index] = deadline;
            self.replay(index);
        }
    }

    /// The earliest deadline and whose it is.
    pub fn earliest(&self) -> (Time, usize) {
        let winner = self.winners[1] as usize;
        (self.deadlines[winner], winner)
    }

    /// Plays the matches on the path from leaf `index` to the root again.
    fn replay(&mut self, index: usize) {
        let leaves = self.deadlines.len();
        let left = index & !1;
        let mut winner = if self.deadlines[left + 1] < self.deadlines[left] { left + 1 } else { left };
        let mut node = (leaves + index) / 2;
        self.winners[node] = winner as u32;
        while node > 1 {
            let rival = self.winners[node ^ 1] as usize;
            let rival_first = (self.deadlines[rival], rival) < (self.deadlines[winner], winner);
            winner = if rival_first { rival } else { winner };
            node /= 2;
            self.winners[node] = winner as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_base::Streams;

    #[test]
    fn agrees_with_a_linear_scan() {
        let mut random = Streams::new(1, 0).stream("wakeups");
        for components in [1, 2, 3, 7, 8, 100] {
            let mut tree = Wakeups::new(components);
            let mut plain = vec![Time::NEVER; components];
            for _ in 0..2_000 {
                let index = random.below(components as u64) as usize;
                let deadline = match random.below(20) {
                    0 => Time::NEVER,
                    t => Time::from_nanos(t),
                };
                tree.set(index, deadline);
                plain[index] = deadline;
                let first = (0..components).min_by_key(|&i| (plain[i], i)).unwrap();
                assert_eq!(tree.earliest(), (plain[first], first));
            }
        }
    }
}
