//! Paths of flows, and the shortest ones.

use std::collections::{BTreeMap, VecDeque};

use lasthop_proto::{FlowId, HostId, Port};

use crate::graph::Graph;

/// The maximum number of entries of all searches together: 16 MB.
const MAX_ENTRIES: usize = 1 << 22;

/// The path of a flow through a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPath {
    /// The nodes from the source to the destination, both included. Neighbours are linked, and no node occurs
    /// twice. If one of the two is a moving host, this is the path over its first base station.
    pub nodes: Vec<HostId>,
    /// The paths over the other base stations of a moving host at one end, in their order. Paths to the same base
    /// station go on in the same way from any node.
    pub others: Vec<Vec<HostId>>,
    /// Whether the flow has no packets in the reverse direction.
    pub one_way: bool,
    /// Set if the flow ends at the components of an earlier one, as all connections of an application do.
    pub joins: Option<Join>,
}

/// The place of a flow at the end components of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The earlier flow.
    pub flow: FlowId,
    /// The port at both components. Flows at odd ports go in the opposite direction: from the earlier flow's sink to its
    /// source.
    pub port: Port,
}

impl FlowPath {
    /// All paths of the flow.
    pub fn all(&self) -> impl Iterator<Item = &Vec<HostId>> {
        core::iter::once(&self.nodes).chain(&self.others)
    }
}

/// The shortest paths in one graph, which must not change between calls.
///
/// Paths to the same destination, or to destinations with the same only neighbour, share one breadth-first
/// search, which goes only as far as requested paths need. All paths to the hosts behind one router, or to
/// the stations of one access point, take one search.
#[derive(Clone, Debug, Default)]
pub struct ShortestPaths {
    searches: BTreeMap<HostId, Search>,
}

/// A breadth-first search from the destination, so each path can be read in order from its source.
#[derive(Clone, Debug)]
struct Search {
    /// The next node on the path from each reached node.
    onward: Vec<Option<HostId>>,
    /// Reached nodes whose neighbours have not been visited yet.
    frontier: VecDeque<HostId>,
}

impl ShortestPaths {
    /// The nodes from `from` to `to`, both included, over the fewest links. Ties go to the links that were
    /// connected first. `None` if `to` is not reachable.
    pub fn between(&mut self, graph: &Graph, from: HostId, to: HostId) -> Option<Vec<HostId>> {
        // All paths to a node with a single neighbour lead through that neighbour.
        let root = match graph.neighbours(to) {
            [only] if from != to => *only,
            _ => to,
        };
        let mut path = self.search(graph, root).path(graph, from, root)?;
        if root != to {
            path.push(to);
        }
        Some(path)
    }

    fn search(&mut self, graph: &Graph, root: HostId) -> &mut Search {
        if self.searches.len() * graph.nodes() > MAX_ENTRIES {
            self.searches.clear();
        }
        self.searches
            .entry(root)
            .or_insert_with(|| Search { onward: vec![None; graph.nodes()], frontier: VecDeque::from([root]) })
    }
}

impl Search {
    fn path(&mut self, graph: &Graph, from: HostId, root: HostId) -> Option<Vec<HostId>> {
        while from != root && self.onward[from.index()].is_none() {
            let node = self.frontier.pop_front()?;
            for &other in graph.neighbours(node) {
                let onward = &mut self.onward[other.index()];
                if other != root && onward.is_none() {
                    *onward = Some(node);
                    self.frontier.push_back(other);
                }
            }
        }
        let mut path = vec![from];
        let mut last = from;
        while last != root {
            last = self.onward[last.index()]?;
            path.push(last);
        }
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::btree_map::Entry;

    fn graph(nodes: u32, links: &[(u32, u32)]) -> Graph {
        let mut graph = Graph::new();
        (0..nodes).for_each(|_| _ = graph.add_node());
        links.iter().for_each(|&(a, b)| _ = graph.connect(HostId(a), HostId(b)));
        graph
    }

    fn path(graph: &Graph, from: u32, to: u32) -> Option<Vec<u32>> {
        let path = ShortestPaths::default().between(graph, HostId(from), HostId(to))?;
        Some(path.iter().map(|host| host.0).collect())
    }

    #[test]
    fn the_shortest_path_has_the_fewest_links() {
        let ring = graph(6, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)]);
        assert_eq!(path(&ring, 0, 2), Some(vec![0, 1, 2]));
        assert_eq!(path(&ring, 4, 0), Some(vec![4, 5, 0]));
        assert_eq!(path(&ring, 3, 3), Some(vec![3]));
    }

    #[test]
    fn ties_are_broken_by_the_lowest_link_ids() {
        assert_eq!(path(&graph(4, &[(0, 1), (1, 3), (0, 2), (2, 3)]), 0, 3), Some(vec![0, 1, 3]));
        assert_eq!(path(&graph(4, &[(0, 2), (2, 3), (0, 1), (1, 3)]), 0, 3), Some(vec![0, 2, 3]));
    }

    #[test]
    fn an_unreachable_node_has_no_path() {
        assert_eq!(path(&graph(3, &[(0, 1)]), 0, 2), None);
    }

    /// The path by a whole search from the far end, for this path only.
    fn whole_search(graph: &Graph, from: HostId, to: HostId) -> Option<Vec<HostId>> {
        let mut onward = BTreeMap::from([(to, to)]);
        let mut reached = vec![to];
        let mut next = 0;
        while let Some(&node) = reached.get(next) {
            next += 1;
            for &other in graph.neighbours(node) {
                if let Entry::Vacant(new) = onward.entry(other) {
                    new.insert(node);
                    reached.push(other);
                }
            }
        }
        let mut path = vec![from];
        while path[path.len() - 1] != to {
            path.push(*onward.get(&path[path.len() - 1])?);
        }
        Some(path)
    }

    /// Each path is a walk over links, no longer than what a plain search by distance finds, and the same
    /// whether or not searches are shared.
    #[test]
    fn paths_agree_with_distances() {
        use lasthop_base::Streams;
        let mut random = Streams::new(1, 0).stream("graphs");
        for _ in 0..50 {
            let pairs = (0..8).flat_map(|a| (a + 1..8).map(move |b| (a, b)));
            let links: Vec<_> = pairs.filter(|_| random.bernoulli(0.3)).collect();
            let graph = graph(8, &links);
            // Distances by the Floyd-Warshall algorithm.
            let mut far = [[100usize; 8]; 8];
            (0..8).for_each(|node| far[node][node] = 0);
            for &(a, b) in &links {
                far[a as usize][b as usize] = 1;
                far[b as usize][a as usize] = 1;
            }
            for via in 0..8 {
                for a in 0..8 {
                    for b in 0..8 {
                        far[a][b] = far[a][b].min(far[a][via] + far[via][b]);
                    }
                }
            }
            let mut shared = ShortestPaths::default();
            for (a, b) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))) {
                let found = path(&graph, a, b);
                let whole = whole_search(&graph, HostId(a), HostId(b));
                assert_eq!(shared.between(&graph, HostId(a), HostId(b)), whole);
                assert_eq!(found, whole.map(|path| path.iter().map(|host| host.0).collect()));
                let length = found.as_ref().map_or(100, |path| path.len() - 1);
                assert_eq!(length.min(100), far[a as usize][b as usize].min(100));
                let linked = |step: &[u32]| graph.link(HostId(step[0]), HostId(step[1])).is_some();
                assert!(found.is_none_or(|path| path.windows(2).all(linked)));
            }
        }
    }
}
