//! The watchers of each component, which receive its signals.

use std::ops::Range;

use lasthop_proto::ComponentId;

/// The watchers of each component.
pub(crate) struct Watchers {
    /// The watchers of all components, in the order of the watched components.
    pub(crate) ids: Vec<ComponentId>,
    /// For each component, the index in `ids` of its first watcher; then the length of `ids`.
    first: Vec<u32>,
}

impl Watchers {
    /// `watches` are pairs of a watched component and its watcher.
    pub(crate) fn new(components: usize, mut watches: Vec<(ComponentId, ComponentId)>) -> Watchers {
        // A stable sort: watchers receive a signal in the order in which they were added.
        watches.sort_by_key(|&(watched, _)| watched);
        let ids = watches.iter().map(|&(_, watcher)| watcher).collect();
        let mut first = vec![0; components + 1];
        for (watched, _) in watches {
            first[watched.index() + 1] += 1;
        }
        for index in 1..=components {
            first[index] += first[index - 1];
        }
        Watchers { ids, first }
    }

    /// The indices in `ids` of the watchers of a component.
    pub(crate) fn of(&self, watched: ComponentId) -> Range<usize> {
        let index = watched.index();
        self.first[index] as usize..self.first[index + 1] as usize
    }
}
