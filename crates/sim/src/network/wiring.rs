//! Translation of a graph and its paths to components and wires.

use std::collections::{BTreeMap, BTreeSet};

use lasthop_proto::{ComponentId, FlowId, HostId, Port};

use super::moving_router::{MovingRoute, MovingRouter};
use super::router::{Route, Router};
use super::{BssId, FlowPath, Graph, Join, LinkId, SharedId, ShortestPaths};

/// The moving hosts, and what they need of the agents at their base stations.
#[derive(Clone, Debug, Default)]
pub struct MovingHosts {
    /// The base stations of each host, in order.
    pub stations: BTreeMap<HostId, Vec<HostId>>,
    /// Whether the agent next to the node is the same component at all base stations of a host, as a proxy is whose
    /// connections move with the host. Its ports are those [of a base station](Port::at_station).
    pub is_joint: bool,
    /// The indices of the agents there that have a [control port](Port::CONTROL), in the chain at a base station.
    pub connected: Vec<usize>,
    /// The nodes with the links over which the packets of control ports travel. If there are `connected` agents, the
    /// shortest paths between the base stations of a host lead over wired links of the graph.
    pub fixed: Graph,
}

/// Kind of a component of the network.
#[derive(Clone, Debug)]
pub enum ComponentKind {
    /// The source of a flow, where the flows that join it end, too.
    Source(FlowId),
    /// The sink of a flow, where the flows that join it end, too.
    Sink(FlowId),
    /// The direction of a link that leads away from its first (0) or second (1) end.
    Link(LinkId, usize),
    /// The direction of a shared radio that leads to the mobile hosts.
    Shared(SharedId),
    /// A BSS.
    Bss(BssId),
    /// An agent.
    Agent(AgentPlace),
    /// A router with its routes.
    Router(Router),
    /// A router, at this node, with routes to moving hosts.
    MovingRouter(HostId, MovingRouter),
    /// The mover of a host.
    Mover(HostId),
}

/// The place of an agent in a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentPlace {
    /// Its link. For an agent of an access point, or of a base station with a shared radio: the first of the links.
    pub link: LinkId,
    /// The end of the link at which it is: the first (0) or the second (1).
    pub end: usize,
    /// Its index in the chain of agents there: 0 is the nearest to the node.
    pub index: usize,
}

/// A port of a component.
pub type PortRef = (ComponentId, Port);

/// An agent at an end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentRef {
    /// The component.
    pub id: ComponentId,
    /// The number of the base station, for a component that is at several.
    station: u16,
}

impl AgentRef {
    /// Its port on a side: [`Port::WIRED`] faces the node, and [`Port::RADIO`] the link.
    pub fn port(self, side: Port) -> PortRef {
        (self.id, side.at_station(self.station))
    }
}

/// The ports at which a flow begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEnds {
    /// Output port of the source.
    pub source: PortRef,
    /// Input port of the sink.
    pub sink: PortRef,
}

/// The components of a network, in the order of their ids, and the wires between them. Contains only what a
/// flow crosses.
#[derive(Clone, Debug, Default)]
pub struct Wiring {
    /// The components.
    pub components: Vec<ComponentKind>,
    /// Wires, each from an output port to an input port.
    pub wires: Vec<(PortRef, PortRef)>,
    /// For each agent: the link direction that leaves the agent, and the agent that watches it. An agent sees
    /// the outcomes of its own transmissions only.
    pub watches: Vec<(ComponentId, ComponentId)>,
    /// For each agent: an output port through which packets arrive there, and the agent.
    pub arrivals: Vec<(PortRef, ComponentId)>,
    /// Pairs of links such that all packets that enter the second come out of the first, possibly through a
    /// router.
    pub feeds: Vec<(ComponentId, ComponentId)>,
    /// The ends of the flows.
    pub flows: Vec<FlowEnds>,
    /// The addresses of the agents with a control port at the base stations of each moving host, in the order of these,
    /// by the host and the index of the agent. They are no nodes of the graph.
    pub addresses: BTreeMap<(HostId, usize), Vec<HostId>>,
    /// The hosts [reached](Wiring::reached_over) by leaving the first (0) or second (1) end of a link.
    reached: BTreeMap<(LinkId, usize), BTreeSet<HostId>>,
    /// The components of each link: of its two directions.
    links: Vec<[Option<ComponentId>; 2]>,
    /// The component of each BSS.
    bsses: Vec<Option<ComponentId>>,
    /// The component of each shared radio.
    shared: Vec<Option<ComponentId>>,
    /// The agents at an end of a link, the nearest to the node first.
    agents: BTreeMap<(LinkId, usize), Vec<AgentRef>>,
}

/// The packets that take a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Packets {
    /// Those of a flow, and whether they are on their way to its destination.
    OfFlow(FlowId, bool),
    /// Those for an agent with this address.
    ForAgent(HostId),
}

/// The next hop of packets that leave a port, ordered by port, flow and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Hop {
    outlet: PortRef,
    packets: Packets,
    /// The moving host and the number of its base station, if the hop is taken only while the host is there.
    while_at: Option<(HostId, u16)>,
    /// The node at which the packets leave the port.
    node: HostId,
    entrance: PortRef,
}

struct WiringBuilder<'a> {
    graph: &'a Graph,
    moving: &'a MovingHosts,
    /// The number of agents at each end of each link.
    agents: &'a [[usize; 2]],
    wiring: Wiring,
    hops: Vec<Hop>,
    /// The component next to the base stations of each moving host, if it is the same at all of them.
    joint: BTreeMap<HostId, ComponentId>,
}

impl Wiring {
    /// The components and wires of a network. `agents` gives the number of agents at each end of each link. They
    /// form a chain; each one's [`Port::WIRED`] faces its node and [`Port::RADIO`] the link. The links of a BSS
    /// or of a shared radio share the agents at the access point or base station, whose number must be the same for all
    /// of them.
    ///
    /// Packets to and from a moving host take the path over the base station at which it is.
    ///
    /// Components are in the order in which the flows cross them, followed by the routers. Movers come before
    /// all others, so that they know where it is when a run begins.
    ///
    /// # Panics
    /// If a path does not follow the links of the graph.
    pub fn new(graph: &Graph, agents: &[[usize; 2]], flows: &[FlowPath], moving: &MovingHosts) -> Wiring {
        let wiring = Wiring {
            links: vec![[None; 2]; agents.len()],
            bsses: vec![None; graph.bsses()],
            shared: vec![None; graph.shared_radios()],
            ..Wiring::default()
        };
        let (hops, joint) = (Vec::new(), BTreeMap::new());
        let mut builder = WiringBuilder { graph, moving, agents, wiring, hops, joint };
        for &host in moving.stations.keys() {
            builder.add(ComponentKind::Mover(host));
        }
        for (index, flow) in flows.iter().enumerate() {
            builder.add_flow(FlowId(index as u32), flow);
        }
        builder.connect_peers();
        builder.connect(flows)
    }

    /// The component of the direction of `link` that leads away from its first (0) or second (1) end, or of
    /// its shared radio, or of the BSS of the link.
    ///
    /// # Panics
    /// If no flow crosses it.
    pub fn link(&self, graph: &Graph, link: LinkId, from: usize) -> ComponentId {
        let component = match (graph.station(link), graph.sharer(link)) {
            (Some((bss, _)), _) => self.bsses[bss.index()],
            (None, Some((radio, _))) if from == 0 => self.shared[radio.index()],
            (None, _) => self.links[link.index()][from],
        };
        component.expect("a flow crosses the link")
    }

    /// The destinations of packets that leave an end of a link. Known for ends with agents, and for access points and
    /// base stations that share a radio; otherwise empty.
    pub fn reached_over(&self, link: LinkId, from: usize) -> &BTreeSet<HostId> {
        static NONE: BTreeSet<HostId> = BTreeSet::new();
        self.reached.get(&(link, from)).unwrap_or(&NONE)
    }

    /// The agents at the first (0) or second (1) end of a link, or at the access point of its BSS, the nearest to
    /// the node first. Empty if no flow crosses the link.
    pub fn agents(&self, graph: &Graph, link: LinkId, end: usize) -> &[AgentRef] {
        self.agents.get(&agents_key(graph, link, end)).map_or(&[], Vec::as_slice)
    }
}

/// The agents at an access point belong to the first link of the BSS, those of a shared radio to its first link.
fn agents_key(graph: &Graph, link: LinkId, end: usize) -> (LinkId, usize) {
    (if end == 0 { graph.medium(link) } else { link }, end)
}

impl WiringBuilder<'_> {
    fn add(&mut self, kind: ComponentKind) -> ComponentId {
        let id = u32::try_from(self.wiring.components.len()).expect("fewer than 2^32 components");
        self.wiring.components.push(kind);
        ComponentId(id)
    }

    fn add_flow(&mut self, flow: FlowId, path: &FlowPath) {
        let joined = path.joins.map(|Join { flow, port }| {
            let FlowEnds { source, sink } = self.wiring.flows[flow.index()];
            let ends = if port.0 % 2 == 1 { [sink, source] } else { [source, sink] };
            ends.map(|(component, _)| (component, port))
        });
        let source = match joined {
            Some([source, _]) => source,
            None => (self.add(ComponentKind::Source(flow)), Port::ONLY),
        };
        for nodes in path.all() {
            self.add_links(nodes);
        }
        let sink = match joined {
            Some([_, sink]) => sink,
            None => (self.add(ComponentKind::Sink(flow)), Port::ONLY),
        };
        self.wiring.flows.push(FlowEnds { source, sink });
        for nodes in path.all() {
            self.walk(Packets::OfFlow(flow, true), source, nodes, sink);
        }
        if !path.one_way {
            for nodes in path.all() {
                let back: Vec<HostId> = nodes.iter().rev().copied().collect();
                self.add_links(&back);
                self.walk(Packets::OfFlow(flow, false), sink, &back, source);
            }
        }
    }

    /// Connects the agents with control ports at the base stations of each moving host.
    fn connect_peers(&mut self) {
        let (moving, mut paths) = (self.moving, ShortestPaths::default());
        let mut next = self.graph.nodes();
        for (&host, stations) in &moving.stations {
            for &index in &moving.connected {
                let chain = |&station: &HostId| {
                    let (link, end) = self.step(station, host);
                    self.wiring.agents(self.graph, link, end).get(index).copied()
                };
                // A host that no flow reaches has no agents.
                let agents: Vec<_> = stations.iter().filter_map(chain).collect();
                if agents.len() < stations.len() {
                    continue;
                }
                let addresses: Vec<_> = (next..next + agents.len()).map(|id| HostId(id as u32)).collect();
                next += agents.len();
                for (from, to) in pairs(stations.len()) {
                    let path = paths.between(&moving.fixed, stations[from], stations[to]);
                    let path = path.expect("base stations are connected");
                    self.add_links(&path);
                    let control = |number: usize| (agents[number].id, Port::CONTROL);
                    self.walk(Packets::ForAgent(addresses[to]), control(from), &path, control(to));
                }
                self.wiring.addresses.insert((host, index), addresses);
            }
        }
    }

    /// Adds the links along a path, with their agents, unless they exist already.
    fn add_links(&mut self, path: &[HostId]) {
        for step in path.windows(2) {
            let (link, from) = self.step(step[0], step[1]);
            self.add_agents(link, from);
            let shared = self.graph.sharer(link).filter(|_| from == 0);
            match self.graph.station(link) {
                Some((bss, _)) if self.wiring.bsses[bss.index()].is_none() => {
                    self.wiring.bsses[bss.index()] = Some(self.add(ComponentKind::Bss(bss)));
                }
                None if let Some((radio, _)) = shared => {
                    let id = self.wiring.shared[radio.index()];
                    let id = id.unwrap_or_else(|| self.add(ComponentKind::Shared(radio)));
                    self.wiring.shared[radio.index()] = Some(id);
                }
                None if self.wiring.links[link.index()][from].is_none() => {
                    let direction = self.add(ComponentKind::Link(link, from));
                    self.wiring.links[link.index()][from] = Some(direction);
                }
                _ => {}
            }
            self.add_agents(link, 1 - from);
        }
    }

    fn add_agents(&mut self, link: LinkId, end: usize) {
        let number = self.agents[link.index()][end];
        let (link, end) = agents_key(self.graph, link, end);
        if number > 0 && !self.wiring.agents.contains_key(&(link, end)) {
            let places = (0..number).map(|index| AgentPlace { link, end, index });
            let chain = places.map(|place| self.add_agent(place)).collect();
            self.wiring.agents.insert((link, end), chain);
        }
    }

    fn add_agent(&mut self, place: AgentPlace) -> AgentRef {
        let ends = self.graph.ends(place.link);
        let (node, host) = (ends[place.end], ends[1 - place.end]);
        let is_joint = self.moving.is_joint && place.index == 0 && self.moving.stations.contains_key(&host);
        let Some((host, station)) = self.place_of((host, node)).filter(|_| is_joint) else {
            return AgentRef { id: self.add(ComponentKind::Agent(place)), station: 0 };
        };
        let id = self.joint.get(&host).copied();
        let id = id.unwrap_or_else(|| self.add(ComponentKind::Agent(place)));
        self.joint.insert(host, id);
        AgentRef { id, station }
    }

    /// The link from one node to the next, and which of its ends the first node is.
    fn step(&self, from: HostId, to: HostId) -> (LinkId, usize) {
        let link = self.graph.link(from, to).expect("a path follows links");
        (link, usize::from(self.graph.ends(link)[0] != from))
    }

    /// The input and output ports of a link, in the direction that leads away from one of its ends.
    fn ports(&self, link: LinkId, from: usize) -> (PortRef, PortRef) {
        let id = self.wiring.link(self.graph, link, from);
        match (self.graph.station(link), self.graph.sharer(link)) {
            (None, Some((_, mobile))) if from == 0 => ((id, Port::WIRED), (id, Port(1 + mobile))),
            (None, _) => ((id, Port::ONLY), (id, Port::ONLY)),
            (Some((_, station)), _) => {
                let (ap, station) = ((id, Port::WIRED), (id, Port(1 + station)));
                if from == 0 { (ap, station) } else { (station, ap) }
            }
        }
    }

    /// Records, at each node of a path, where packets enter and where they go next.
    fn walk(&mut self, packets: Packets, source: PortRef, path: &[HostId], sink: PortRef) {
        let last = *path.last().expect("a path has nodes");
        let mut outlet = source;
        let mut before = None;
        // The way to a moving host depends on where it is, as does its own first step.
        let [own, towards] = [(path[0], path[1]), (last, path[path.len() - 2])].map(|end| self.place_of(end));
        for step in path.windows(2) {
            let while_at = own.filter(|_| before.is_none()).or(towards);
            let (link, from) = self.step(step[0], step[1]);
            let agent_at = |end| {
                let nearest = self.wiring.agents(self.graph, link, end).first();
                nearest.map(|agent| agent.port(Port::WIRED))
            };
            let (enters, leaves) = self.ports(link, from);
            let (agent, left) = (agent_at(from), agent_at(1 - from).unwrap_or(leaves));
            let entrance = agent.unwrap_or(enters);
            if !before.is_some_and(|before| self.graph.stays_within(before, link)) {
                self.go_on(packets, while_at, step[0], outlet, entrance);
            } else if agent.is_some() {
                // Packets that bypass the agent may still cause it to send.
                self.go_on(packets, while_at, step[0], entrance, entrance);
            }
            let is_medium = self.graph.station(link).is_some() || self.graph.sharer(link).is_some();
            if agent.is_some() || (is_medium && from == 0) {
                self.wiring.reached.entry((link, from)).or_default().insert(last);
            }
            (outlet, before) = (left, Some(link));
        }
        self.go_on(packets, None, last, outlet, sink);
    }

    /// A moving host and the number of the base station next to it on a path; `None` if the host does not move.
    fn place_of(&self, (host, beside): (HostId, HostId)) -> Option<(HostId, u16)> {
        let stations = self.moving.stations.get(&host)?;
        let number = stations.iter().position(|station| *station == beside);
        Some((host, number.expect("the path leads over a base station of the host") as u16))
    }

    fn go_on(
        &mut self,
        packets: Packets,
        while_at: Option<(HostId, u16)>,
        node: HostId,
        outlet: PortRef,
        entrance: PortRef,
    ) {
        self.hops.push(Hop { outlet, packets, while_at, node, entrance });
    }

    fn connect(mut self, flows: &[FlowPath]) -> Wiring {
        self.connect_agents();
        let mut hops = core::mem::take(&mut self.hops);
        hops.sort_unstable();
        hops.dedup();
        self.find_feeds(&hops);
        let mut routers: BTreeMap<HostId, RouterBuilder> = BTreeMap::new();
        for hops in hops.chunk_by(|a, b| a.outlet == b.outlet) {
            let key = |hop: &Hop| (hop.packets, hop.while_at);
            let unique = hops.windows(2).all(|pair| key(&pair[0]) != key(&pair[1]));
            assert!(unique, "a path visits a node at most once");
            let Hop { outlet, node, entrance, .. } = hops[0];
            if hops.iter().all(|hop| hop.entrance == entrance) {
                self.wiring.wires.push((outlet, entrance));
                continue;
            }
            let router = routers.entry(node).or_insert_with(|| {
                let id = self.add(ComponentKind::Router(Router::default()));
                RouterBuilder { id, hops: Vec::new(), entrances: Vec::new(), ports: BTreeMap::new() }
            });
            self.wiring.wires.push((outlet, (router.id, Port::ONLY)));
            for hop in hops {
                router.add(hop);
            }
        }
        for (node, RouterBuilder { id, hops, entrances, .. }) in routers {
            self.wiring.components[id.index()] = WiringBuilder::router(node, &hops, flows);
            let leaving = (0..).map(|port| (id, Port(port))).zip(entrances);
            self.wiring.wires.extend(leaving);
        }
        self.wiring
    }

    /// The router at a node with these hops.
    fn router(node: HostId, hops: &[(Hop, Port)], flows: &[FlowPath]) -> ComponentKind {
        let (mut routes, mut agents) = (Vec::new(), BTreeMap::new());
        for &(hop, port) in hops {
            match hop.packets {
                Packets::OfFlow(flow, forward) => {
                    let dst = *flows[flow.index()].nodes.last().expect("a path has nodes");
                    let route = Route { flow, dst, forward, port };
                    routes.push(MovingRoute { route, while_at: hop.while_at });
                }
                Packets::ForAgent(address) => _ = agents.insert(address, port),
            }
        }
        if agents.is_empty() && routes.iter().all(|route| route.while_at.is_none()) {
            return ComponentKind::Router(Router::new(routes.into_iter().map(|each| each.route).collect()));
        }
        ComponentKind::MovingRouter(node, MovingRouter::new(routes.into_iter(), agents))
    }

    fn find_feeds(&mut self, hops: &[Hop]) {
        let mut outlets: BTreeMap<PortRef, Option<PortRef>> = BTreeMap::new();
        for hop in hops {
            let only = outlets.entry(hop.entrance).or_insert(Some(hop.outlet));
            *only = only.filter(|&outlet| outlet == hop.outlet);
        }
        let is_link = |id: ComponentId| matches!(self.wiring.components[id.index()], ComponentKind::Link(..));
        let feeds = outlets.iter().filter_map(|(entrance, only)| Some(((*only)?.0, entrance.0)));
        self.wiring.feeds = feeds.filter(|&(from, to)| is_link(from) && is_link(to)).collect();
    }

    fn connect_agents(&mut self) {
        let chains = core::mem::take(&mut self.wiring.agents);
        for (&(link, end), chain) in &chains {
            let last = chain[chain.len() - 1].port(Port::RADIO);
            for pair in chain.windows(2) {
                let between = [pair[0].port(Port::RADIO), pair[1].port(Port::WIRED)];
                self.wiring.wires.push((between[0], between[1]));
                self.wiring.wires.push((between[1], between[0]));
            }
            let (leaving, arriving) = self.beside(link, end);
            if let Some(entrance) = leaving {
                self.wiring.wires.push((last, entrance));
                // The link events of a BSS are those of its access point.
                if end == 0 || self.graph.station(link).is_none() {
                    self.wiring.watches.extend(chain.iter().map(|agent| (entrance.0, agent.id)));
                }
            }
            for outlet in arriving {
                self.wiring.wires.push((outlet, last));
                self.wiring.arrivals.extend(chain.iter().map(|agent| (outlet, agent.id)));
            }
        }
        self.wiring.agents = chains;
    }

    /// The input port of a link at one of its ends, and the output ports there, if flows cross them: of the links that
    /// share the radio at this end, all.
    fn beside(&self, link: LinkId, end: usize) -> (Option<PortRef>, Vec<PortRef>) {
        if self.graph.station(link).is_some() {
            let (port, _) = self.ports(link, end);
            return (Some(port), vec![port]);
        }
        let direction =
            |link: LinkId, from: usize| self.wiring.links[link.index()][from].map(|id| (id, Port::ONLY));
        match self.graph.sharer(link) {
            None => (direction(link, end), direction(link, 1 - end).into_iter().collect()),
            Some((radio, mobile)) => {
                let shared = self.wiring.shared[radio.index()];
                if end == 1 {
                    let arriving = shared.map(|id| (id, Port(1 + mobile)));
                    return (direction(link, 1), arriving.into_iter().collect());
                }
                let uplinks = self.graph.shared(radio).iter();
                let arriving = uplinks.filter_map(|&link| direction(link, 1));
                (shared.map(|id| (id, Port::WIRED)), arriving.collect())
            }
        }
    }
}

/// All ordered pairs of different numbers below `count`.
fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |a| (0..count).filter(move |&b| b != a).map(move |b| (a, b)))
}

/// A router whose routes are being collected.
struct RouterBuilder {
    id: ComponentId,
    /// The hops through it, each with its output port.
    hops: Vec<(Hop, Port)>,
    /// Where the wire of each output port leads.
    entrances: Vec<PortRef>,
    /// The output port whose wire leads to each entrance.
    ports: BTreeMap<PortRef, Port>,
}

impl RouterBuilder {
    fn add(&mut self, hop: &Hop) {
        let port = *self.ports.entry(hop.entrance).or_insert_with(|| {
            self.entrances.push(hop.entrance);
            Port((self.entrances.len() - 1) as u32)
        });
        self.hops.push((*hop, port));
    }
}
