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
                // In pairs, so that the comparisons do not wait for one another. To find the index afterwards takes
                // less than to carry it along.
                let [a, b, c, d, e, f, g, h] = *deadlines;
                let first = a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)));
                let index = deadlines.iter().position(|&deadline| deadline == first);
                (first, index.expect("one of them is the earliest"))
            }
            Kind::Many(tree) => tree.winner(),
        }
    }
}

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

/// Entries that compete with one another. They fill a cache line, which is what a large network pays for.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Group([Entry; Group::SIZE]);

impl Group {
    const SIZE: usize = 4;
}

/// A tree of entries in the order of a heap with four children per node. All entries but the root are stored, those
/// with a common parent in one group, whose index is that of the parent. The leaves are the components' own entries;
/// each other entry is the earliest of its children.
#[derive(Clone, Debug)]
struct Tournament {
    groups: Box<[Group]>,
    /// The root.
    earliest: Entry,
}

impl Tournament {
    fn new(components: usize) -> Tournament {
        let never = Entry::new(Time::NEVER, usize::MAX);
        // A heap with so many inner nodes has three times as many leaves and one more.
        let inner = components.saturating_sub(1).div_ceil(Group::SIZE - 1).max(1);
        let mut tree =
            Tournament { groups: vec![Group([never; Group::SIZE]); inner].into(), earliest: never };
        for index in (0..components).rev() {
            tree.set(index, Time::NEVER);
        }
        tree
    }

    /// Group of a component's entry, and its place in the group.
    fn place(&self, index: usize) -> (usize, usize) {
        let entry = self.groups.len() + index - 1;
        (entry / Group::SIZE, entry % Group::SIZE)
    }

    fn get(&self, index: usize) -> Time {
        let (group, place) = self.place(index);
        self.groups[group].0[place].deadline()
    }

    /// Replays the matches on the path to the root until one keeps its winner.
    // Not inlined, so that small networks do not pay for it.
    #[inline(never)]
    fn set(&mut self, index: usize, deadline: Time) {
        let mut winner = Entry::new(deadline, index);
        let (mut group, mut place) = self.place(index);
        loop {
            let Group(entries) = &mut self.groups[group];
            if entries[place] == winner {
                return;
            }
            entries[place] = winner;
            let rivals = entries[place ^ 2].min(entries[place ^ 3]);
            winner = winner.min(entries[place ^ 1].min(rivals));
            if group == 0 {
                self.earliest = winner;
                return;
            }
            (group, place) = ((group - 1) / Group::SIZE, (group - 1) % Group::SIZE);
        }
    }

    fn winner(&self) -> (Time, usize) {
        (self.earliest.deadline(), self.earliest.0 as u64 as usize)
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
