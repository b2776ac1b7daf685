//! The graph of nodes and links.

use std::collections::{BTreeMap, VecDeque};

use lasthop_proto::HostId;

/// Index of a duplex link in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u16);

/// Index of a BSS in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BssId(pub u16);

/// Nodes connected by duplex links. The links between an access point and its stations share one medium, a
/// BSS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    links: Vec<[HostId; 2]>,
    /// For each link in a BSS: the BSS and the index of its station.
    stations: Vec<Option<(BssId, u16)>>,
    /// The links of each BSS.
    bsses: Vec<Vec<LinkId>>,
    /// The neighbours of each node, in the order in which they were connected.
    neighbours: Vec<Vec<HostId>>,
    /// The link between two nodes, keyed by (lower, higher).
    between: BTreeMap<[HostId; 2], LinkId>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Adds a node.
    ///
    /// # Panics
    /// If there are more than 65,536.
    pub fn add_node(&mut self) -> HostId {
        let id = u16::try_from(self.neighbours.len()).expect("at most 65,536 nodes");
        self.neighbours.push(Vec::new());
        HostId(id)
    }

    /// Connects two nodes.
    ///
    /// # Panics
    /// If `a` equals `b`, if they are already connected, or if there are more than 65,536 links.
    pub fn connect(&mut self, a: HostId, b: HostId) -> LinkId {
        assert!(a != b, "a link has two ends");
        assert!(self.link(a, b).is_none(), "{a:?} and {b:?} are connected already");
        let id = LinkId(u16::try_from(self.links.len()).expect("at most 65,536 links"));
        self.links.push([a, b]);
        self.stations.push(None);
        self.between.insert([a.min(b), a.max(b)], id);
        self.neighbours[usize::from(a.0)].push(b);
        self.neighbours[usize::from(b.0)].push(a);
        id
    }

    /// Connects an access point to a station of its BSS.
    ///
    /// # Panics
    /// As [`connect`](Graph::connect).
    pub fn join(&mut self, ap: HostId, station: HostId) -> LinkId {
        let id = self.connect(ap, station);
        let mut bsses = self.bsses.iter();
        let known = bsses.position(|links| self.links[usize::from(links[0].0)][0] == ap);
        let bss = known.unwrap_or_else(|| {
            self.bsses.push(Vec::new());
            self.bsses.len() - 1
        });
        let links = &mut self.bsses[bss];
        // There are at most as many BSSs as links.
        let bss = BssId(bss as u16);
        self.stations[usize::from(id.0)] = Some((bss, links.len() as u16));
        links.push(id);
        id
    }

    /// The BSS of a link and the index of its station, from 0; `None` if the link is in no BSS.
    pub fn station(&self, link: LinkId) -> Option<(BssId, u16)> {
        self.stations[usize::from(link.0)]
    }

    /// The links of a BSS, each from the access point to a station, in the order of the stations.
    pub fn bss(&self, bss: BssId) -> &[LinkId] {
        &self.bsses[usize::from(bss.0)]
    }

    /// Number of BSSs.
    pub fn bsses(&self) -> usize {
        self.bsses.len()
    }

    /// The representative of the link's medium: the link itself, or the first link of its BSS.
    pub fn medium(&self, link: LinkId) -> LinkId {
        self.station(link).map_or(link, |(bss, _)| self.bss(bss)[0])
    }

    /// Whether `link` and `next` are in the same BSS, so that a packet goes from station to station and the
    /// access point forwards it without leaving the BSS.
    pub fn stays_within(&self, link: LinkId, next: LinkId) -> bool {
        self.station(link).is_some() && self.medium(link) == self.medium(next)
    }

    /// The link between two nodes.
    pub fn link(&self, a: HostId, b: HostId) -> Option<LinkId> {
        self.between.get(&[a.min(b), a.max(b)]).copied()
    }

    /// The two ends of a link, in the order in which they were connected.
    pub fn ends(&self, link: LinkId) -> [HostId; 2] {
        self.links[usize::from(link.0)]
    }

    /// The nodes from `from` to `to`, both included, over the fewest links. Ties go to the links that were
    /// connected first. `None` if `to` is not reachable.
    pub fn shortest_path(&self, from: HostId, to: HostId) -> Option<Vec<HostId>> {
        // Searches from the far end, so that the path can be read off from the near end.
        let mut onward: Vec<Option<HostId>> = vec![None; self.neighbours.len()];
        let mut reached = VecDeque::from([to]);
        while let Some(node) = reached.pop_front() {
            for &other in &self.neighbours[usize::from(node.0)] {
                if other != to && onward[usize::from(other.0)].is_none() {
                    onward[usize::from(other.0)] = Some(node);
                    reached.push_back(other);
                }
            }
        }
        let mut path = vec![from];
        while let Some(&last) = path.last().filter(|&&last| last != to) {
            path.push(onward[usize::from(last.0)]?);
        }
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(nodes: u16, links: &[(u16, u16)]) -> Graph {
        let mut graph = Graph::new();
        (0..nodes).for_each(|_| _ = graph.add_node());
        links.iter().for_each(|&(a, b)| _ = graph.connect(HostId(a), HostId(b)));
        graph
    }

    fn path(graph: &Graph, from: u16, to: u16) -> Option<Vec<u16>> {
        let path = graph.shortest_path(HostId(from), HostId(to))?;
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

    /// Each path is a walk over links, and no longer than what a plain search by distance finds.
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
                far[usize::from(a)][usize::from(b)] = 1;
                far[usize::from(b)][usize::from(a)] = 1;
            }
            for via in 0..8 {
                for a in 0..8 {
                    for b in 0..8 {
                        far[a][b] = far[a][b].min(far[a][via] + far[via][b]);
                    }
                }
            }
            for (a, b) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))) {
                let found = path(&graph, a, b);
                let length = found.as_ref().map_or(100, |path| path.len() - 1);
                assert_eq!(length.min(100), far[usize::from(a)][usize::from(b)].min(100));
                let linked = |step: &[u16]| graph.link(HostId(step[0]), HostId(step[1])).is_some();
                assert!(found.is_none_or(|path| path.windows(2).all(linked)));
            }
        }
    }
}
