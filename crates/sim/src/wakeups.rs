//! Who is to be woken next: a tournament tree over the array of deadlines.

use lasthop_base::Time;

/// One deadline per component; the earliest is found at the root, ties go to the lower index.
#[derive(Clone, Debug)]
pub struct Wakeups {
    /// Node `n` is the earlier of nodes `2n` and `2n + 1`; the root is 1, the second half are the
    /// components' own entries, padded with [`Time::NEVER`] to a power of two.
    tree: Box<[Entry]>,
}

/// A deadline above the index of the component whose it is, as one number: the order of the numbers is
/// the order of waking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    fn new(deadline: Time, index: usize) -> Entry {
        Entry(u128::from(deadline.as_nanos()) << 64 | index as u128)
    }
}

impl Wakeups {
    /// `components` deadlines, all [`Time::NEVER`].
    pub fn new(components: usize) -> Wakeups {
        let leaves = components.next_power_of_two().max(2);
        let mut tree = vec![Entry::new(Time::NEVER, 0); leaves];
        tree.extend((0..leaves).map(|index| Entry::new(Time::NEVER, index)));
        for node in (1..leaves).rev() {
            tree[node] = tree[2 * node];
        }
        Wakeups { tree: tree.into() }
    }

    /// Sets the deadline of component `index`, and plays the matches on its path to the root again,
    /// as far as their outcome changes.
    pub fn set(&mut self, index: usize, deadline: Time) {
        let tree = &mut *self.tree;
        let mut winner = Entry::new(deadline, index);
        let mut node = tree.len() / 2 + index;
        while tree[node] != winner {
            tree[node] = winner;
            if node == 1 {
                return;
            }
            winner = winner.min(tree[node ^ 1]);
            node /= 2;
        }
    }

    /// Moves the deadline of component `index` if that makes it earlier. One that has become later may
    /// stay: who is woken too early is asked again.
    pub fn advance(&mut self, index: usize, deadline: Time) {
        if Entry::new(deadline, index) < self.tree[self.tree.len() / 2 + index] {
            self.set(index, deadline);
        }
    }

    /// The earliest deadline and whose it is.
    pub fn earliest(&self) -> (Time, usize) {
        let Entry(root) = self.tree[1];
        (Time::from_nanos((root >> 64) as u64), root as u64 as usize)
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
