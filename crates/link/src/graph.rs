//! The graph of nodes and links.

use std::collections::HashMap;

use lasthop_base::FnvBuilder;
use lasthop_proto::HostId;

/// Index of a duplex link in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

impl LinkId {
    /// Its place in a list of links.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index of a BSS in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BssId(pub u32);

impl BssId {
    /// Its place in a list of BSSs.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index of a shared radio in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedId(pub u32);

impl SharedId {
    /// Its place in a list of shared radios.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Nodes connected by duplex links. The links between an access point and its stations share one medium, a
/// BSS. Wireless links of a base station may share one radio in the direction to the mobile hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    links: Vec<[HostId; 2]>,
    /// For each link in a BSS: the BSS and the index of its station.
    stations: Vec<Option<(BssId, u32)>>,
    /// The links of each BSS.
    bsses: Vec<Vec<LinkId>>,
    /// For each link that shares a radio: the radio and the index of its mobile host.
    sharers: Vec<Option<(SharedId, u32)>>,
    /// The links of each shared radio.
    shared: Vec<Vec<LinkId>>,
    /// The shared radio of each base station.
    base_stations: HashMap<HostId, SharedId, FnvBuilder>,
    /// The BSS of each access point.
    access_points: HashMap<HostId, BssId, FnvBuilder>,
    /// The neighbours of each node, in the order in which they were connected.
    neighbours: Vec<Vec<HostId>>,
    /// The link between two nodes, keyed by (lower, higher).
    between: HashMap<[HostId; 2], LinkId, FnvBuilder>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Adds a node.
    ///
    /// # Panics
    /// If there are more than 2^32.
    pub fn add_node(&mut self) -> HostId {
        let id = u32::try_from(self.neighbours.len()).expect("at most 2^32 nodes");
        self.neighbours.push(Vec::new());
        HostId(id)
    }

    /// Connects two nodes.
    ///
    /// # Panics
    /// If `a` equals `b`, if they are already connected, or if there are more than 2^32 links.
    pub fn connect(&mut self, a: HostId, b: HostId) -> LinkId {
        assert!(a != b, "a link has two ends");
        assert!(self.link(a, b).is_none(), "{a:?} and {b:?} are connected already");
        let id = LinkId(u32::try_from(self.links.len()).expect("at most 2^32 links"));
        self.links.push([a, b]);
        self.stations.push(None);
        self.sharers.push(None);
        self.between.insert([a.min(b), a.max(b)], id);
        self.neighbours[a.index()].push(b);
        self.neighbours[b.index()].push(a);
        id
    }

    /// Connects an access point to a station of its BSS.
    ///
    /// # Panics
    /// As [`connect`](Graph::connect).
    pub fn join(&mut self, ap: HostId, station: HostId) -> LinkId {
        let id = self.connect(ap, station);
        // There are at most as many BSSs as links.
        let next = BssId(self.bsses.len() as u32);
        let bss = *self.access_points.entry(ap).or_insert(next);
        if bss == next {
            self.bsses.push(Vec::new());
        }
        let links = &mut self.bsses[bss.index()];
        self.stations[id.index()] = Some((bss, links.len() as u32));
        links.push(id);
        id
    }

    /// Connects a base station to a mobile host by a link that shares the radio of the base station.
    ///
    /// # Panics
    /// As [`connect`](Graph::connect).
    pub fn share(&mut self, base: HostId, mobile: HostId) -> LinkId {
        let id = self.connect(base, mobile);
        let next = SharedId(self.shared.len() as u32);
        let radio = *self.base_stations.entry(base).or_insert(next);
        if radio == next {
            self.shared.push(Vec::new());
        }
        let links = &mut self.shared[radio.index()];
        self.sharers[id.index()] = Some((radio, links.len() as u32));
        links.push(id);
        id
    }

    /// The shared radio of a link and the index of its mobile host, from 0; `None` if the link has its own.
    pub fn sharer(&self, link: LinkId) -> Option<(SharedId, u32)> {
        self.sharers[link.index()]
    }

    /// The links of a shared radio, each from the base station to a mobile host, in the order of the mobile hosts.
    pub fn shared(&self, radio: SharedId) -> &[LinkId] {
        &self.shared[radio.index()]
    }

    /// Number of shared radios.
    pub fn shared_radios(&self) -> usize {
        self.shared.len()
    }

    /// The BSS of a link and the index of its station, from 0; `None` if the link is in no BSS.
    pub fn station(&self, link: LinkId) -> Option<(BssId, u32)> {
        self.stations[link.index()]
    }

    /// The links of a BSS, each from the access point to a station, in the order of the stations.
    pub fn bss(&self, bss: BssId) -> &[LinkId] {
        &self.bsses[bss.index()]
    }

    /// Number of BSSs.
    pub fn bsses(&self) -> usize {
        self.bsses.len()
    }

    /// The representative of the link's medium: the link itself, or the first link of its BSS or shared radio.
    pub fn medium(&self, link: LinkId) -> LinkId {
        match (self.station(link), self.sharer(link)) {
            (Some((bss, _)), _) => self.bss(bss)[0],
            (None, Some((radio, _))) => self.shared(radio)[0],
            (None, None) => link,
        }
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

    /// The neighbours of a node, in the order in which they were connected.
    pub fn neighbours(&self, node: HostId) -> &[HostId] {
        &self.neighbours[node.index()]
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.neighbours.len()
    }

    /// The two ends of a link, in the order in which they were connected.
    pub fn ends(&self, link: LinkId) -> [HostId; 2] {
        self.links[link.index()]
    }
}
