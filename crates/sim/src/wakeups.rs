//! The earliest deadline among all components.

use lasthop_base::Time;

/// Number of deadlines in a cache line.
const FEW: usize = 8;

/// One deadline per component, with the earliest available in constant time. Ties go to the lower index.
///
/// Up to eight deadlines, enough for a simple last hop, fit a cache line and are scanned linearly, which
/// takes a fifth of the time of keeping them sorted. Larger numbers use a tournament tree.
#[derive(Clone, Debug)]
pub struct Wakeups(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Few([Time; FEW]),
    Many(Tournament),
}

impl Wakeups {
    /// `components` deadlines, all [`Time::NEVER`].
    pub fn new(components: usize) -> Wakeups {
        Wakeups(match components {
            0..=FEW => Kind::Few([Time::NEVER; FEW]),
            _ => Kind::Many(Tournament::new(components)),
        })
    }

    /// Sets the deadline of component `index`.
    #[inline]
    pub fn set(&mut self, index: usize, deadline: Time) {
        match &mut self.0 {
            Kind::Few(deadlines) => deadlines[index] = deadline,
            Kind::Many(tree) => tree.set(index, deadline),
        }
    }

    /// Moves the deadline of component `index`. In a tree, a deadline that moves back may be left in place:
    /// the component is then woken too early and asked again, which is rare and cheaper than keeping the tree
    /// exact.
    #[inline]
    pub fn advance(&mut self, index: usize, deadline: Time) {
        match &mut self.0 {
            Kind::Few(deadlines) => deadlines[index] = deadline,
            Kind::Many(tree) if deadline < tree.get(index) => tree.set(index, deadline),
            Kind::Many(_) => {}
        }
    }

    /// Whether stored deadlines may be earlier than the actual ones.
    pub fn may_be_early(&self) -> bool {
        matches!(self.0, Kind::Many(_))
    }

    /// The earliest deadline and the index of its component.
    #[inline]
    pub fn earliest(&self) -> (Time, usize) {
        match &self.0 {
            Kind::Few(deadlines) => {
                // In pairs, so that the comparisons do not wait for one another.
                let earlier = |a: (Time, usize), b: (Time, usize)| if b.0 < a.0 { b } else { a };
                let of_pair = |i: usize| earlier((deadlines[i], i), (deadlines[i + 1], i + 1));
                earlier(earlier(of_pair(0), of_pair(2)), earlier(of_pair(4), of_pair(6)))
            }
            Kind::Many(tree) => tree.winner(),
        }
    }
}

/// Entry `n` is the earlier of entries `2n` and `2n + 1`; the root is entry 1. The second half holds the
/// components' own entries, padded with [`Time::NEVER`] to a power of two.
#[derive(Clone, Debug)]
struct Tournament(Box<[Entry]>);

/// A deadline in the upper bits and a component index in the lower bits; the numeric order is the wake-up
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    fn new(deadline: Time, index: usize) -> Entry {
        Entry(u128::from(deadline.as_nanos()) << 64 | index as u128)
    }

    fn deadline(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }
}

impl Tournament {
    fn new(components: usize) -> Tournament {
        let leaves = components.next_power_of_two();
        let mut tree = vec![Entry::new(Time::NEVER, 0); leaves];
        tree.extend((0..leaves).map(|index| Entry::new(Time::NEVER, index)));
        for node in (1..leaves).rev() {
            tree[node] = tree[2 * node];
        }
        Tournament(tree.into())
    }

    fn get(&self, index: usize) -> Time {
        self.0[self.0.len() / 2 + index].deadline()
    }

    /// Replays the matches on the path to the root until one keeps its winner.
    fn set(&mut self, index: usize, deadline: Time) {
        let tree = &mut *self.0;
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

    fn winner(&self) -> (Time, usize) {
        (self.0[1].deadline(), self.0[1].0 as u64 as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_base::Streams;

    #[test]
    fn agrees_with_a_linear_scan() {
        let mut random = Streams::new(1, 0).stream("wakeups");
        for components in [1, 2, 3, 7, 8, 9, 64, 65, 100, 513] {
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
