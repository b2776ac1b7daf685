//! Translation of a graph and its paths to components and wires.

use std::collections::{BTreeMap, BTreeSet};

use lasthop_proto::{ComponentId, FlowId, HostId, Port};

use super::router::{Route, Router};
use super::{BssId, Graph, LinkId};

/// The path of a flow through a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPath {
    /// The nodes from the source to the destination, both included. Neighbours are linked, and no node occurs
    /// twice.
    pub nodes: Vec<HostId>,
    /// Whether the flow has no packets in the reverse direction.
    pub one_way: bool,
    /// The request flow that this flow responds to: an earlier flow with the same ends, in the opposite
    /// direction.
    pub answers: Option<FlowId>,
}

/// Kind of a component of the network.
#[derive(Clone, Debug)]
pub enum ComponentKind {
    /// The source of a flow, and the sink of the flow that responds to it.
    Source(FlowId),
    /// The sink of a flow, and the source of the flow that responds to it.
    Sink(FlowId),
    /// The direction of a link that leads away from its first (0) or second (1) end.
    Link(LinkId, usize),
    /// A BSS.
    Bss(BssId),
    /// The agent of a link, or of the BSS whose first link this is.
    Agent(LinkId),
    /// A router with its routes.
    Router(Router),
}

/// A port of a component.
pub type PortRef = (ComponentId, Port);

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
    /// Pairs of links such that all packets that enter the second come out of the first, possibly through a
    /// router.
    pub feeds: Vec<(ComponentId, ComponentId)>,
    /// The ends of the flows.
    pub flows: Vec<FlowEnds>,
    /// The hosts reached through each station of each BSS.
    pub reached: BTreeMap<(BssId, u16), BTreeSet<HostId>>,
    /// The components of each link: of its two directions.
    links: Vec<[Option<ComponentId>; 2]>,
    /// The component of each BSS.
    bsses: Vec<Option<ComponentId>>,
    /// The agent of each link, or of the BSS whose first link this is.
    agents: Vec<Option<ComponentId>>,
}

/// The next hop of packets that leave a port, ordered by port, flow and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Hop {
    outlet: PortRef,
    /// The flow, and whether its packets are on their way to its destination.
    packets: (FlowId, bool),
    /// The node at which the packets leave the port.
    node: HostId,
    entrance: PortRef,
}

struct WiringBuilder<'a> {
    graph: &'a Graph,
    /// The node at which each link has its agent.
    agents: &'a [Option<HostId>],
    wiring: Wiring,
    hops: Vec<Hop>,
}

impl Wiring {
    /// The components and wires of a network. `agents` gives the end at which each link has an agent, if any.
    /// The agent's [`Port::WIRED`] faces its node and [`Port::RADIO`] the link. The links of a BSS share one
    /// agent, at the access point.
    ///
    /// Components are in the order in which the flows cross them, followed by the routers.
    ///
    /// # Panics
    /// If a path does not follow the links of the graph.
    pub fn new(graph: &Graph, agents: &[Option<HostId>], flows: &[FlowPath]) -> Wiring {
        let wiring = Wiring {
            links: vec![[None; 2]; agents.len()],
            bsses: vec![None; graph.bsses()],
            agents: vec![None; agents.len()],
            ..Wiring::default()
        };
        let mut builder = WiringBuilder { graph, agents, wiring, hops: Vec::new() };
        for (index, flow) in flows.iter().enumerate() {
            builder.add_flow(FlowId(index as u16), flow);
        }
        builder.connect(flows)
    }

    /// The component of the direction of `link` that leads away from its first (0) or second (1) end, or of
    /// the BSS of the link.
    ///
    /// # Panics
    /// If no flow crosses it.
    pub fn link(&self, graph: &Graph, link: LinkId, from: usize) -> ComponentId {
        let component = match graph.station(link) {
            None => self.links[usize::from(link.0)][from],
            Some((bss, _)) => self.bsses[usize::from(bss.0)],
        };
        component.expect("a flow crosses the link")
    }

    /// The agent of a link, or of its BSS.
    ///
    /// # Panics
    /// If there is none, or no flow crosses it.
    pub fn agent(&self, graph: &Graph, link: LinkId) -> ComponentId {
        self.agents[usize::from(graph.medium(link).0)].expect("a flow crosses the agent")
    }
}

impl WiringBuilder<'_> {
    fn add(&mut self, kind: ComponentKind) -> ComponentId {
        let id = u16::try_from(self.wiring.components.len()).expect("at most 65,535 components");
        self.wiring.components.push(kind);
        ComponentId(id)
    }

    fn add_flow(&mut self, flow: FlowId, path: &FlowPath) {
        // The ends of a response flow are those of its request flow, at another port.
        let asked = path.answers.map(|asked| self.wiring.flows[usize::from(asked.0)]);
        let source = match asked {
            Some(ends) => (ends.sink.0, Port(1)),
            None => (self.add(ComponentKind::Source(flow)), Port::ONLY),
        };
        self.add_links(&path.nodes);
        let sink = match asked {
            Some(ends) => (ends.source.0, Port(1)),
            None => (self.add(ComponentKind::Sink(flow)), Port::ONLY),
        };
        self.wiring.flows.push(FlowEnds { source, sink });
        self.walk((flow, true), source, &path.nodes, sink);
        if !path.one_way {
            let back: Vec<HostId> = path.nodes.iter().rev().copied().collect();
            self.add_links(&back);
            self.walk((flow, false), sink, &back, source);
        }
    }

    /// Adds the links along a path, with their agents, unless they exist already.
    fn add_links(&mut self, path: &[HostId]) {
        for step in path.windows(2) {
            let (link, from) = self.step(step[0], step[1]);
            let agent = self.agents[usize::from(link.0)];
            if agent == Some(step[0]) {
                self.add_agent(link);
            }
            match self.graph.station(link) {
                Some((BssId(bss), _)) if self.wiring.bsses[usize::from(bss)].is_none() => {
                    self.wiring.bsses[usize::from(bss)] = Some(self.add(ComponentKind::Bss(BssId(bss))));
                }
                None if self.wiring.links[usize::from(link.0)][from].is_none() => {
                    let direction = self.add(ComponentKind::Link(link, from));
                    self.wiring.links[usize::from(link.0)][from] = Some(direction);
                }
                _ => {}
            }
            if agent == Some(step[1]) {
                self.add_agent(link);
            }
        }
    }

    fn add_agent(&mut self, link: LinkId) {
        let link = self.graph.medium(link);
        if self.wiring.agents[usize::from(link.0)].is_none() {
            self.wiring.agents[usize::from(link.0)] = Some(self.add(ComponentKind::Agent(link)));
        }
    }

    /// The link from one node to the next, and which of its ends the first node is.
    fn step(&self, from: HostId, to: HostId) -> (LinkId, usize) {
        let link = self.graph.link(from, to).expect("a path follows links");
        (link, usize::from(self.graph.ends(link)[0] != from))
    }

    /// The input and output ports of a link, in the direction that leads away from one of its ends.
    fn ports(&self, link: LinkId, from: usize) -> (PortRef, PortRef) {
        let id = self.wiring.link(self.graph, link, from);
        match self.graph.station(link) {
            None => ((id, Port::ONLY), (id, Port::ONLY)),
            Some((_, station)) => {
                let (ap, station) = ((id, Port::WIRED), (id, Port(1 + station)));
                if from == 0 { (ap, station) } else { (station, ap) }
            }
        }
    }

    /// Records, at each node of a path, where packets enter and where they go next.
    fn walk(&mut self, packets: (FlowId, bool), source: PortRef, path: &[HostId], sink: PortRef) {
        let last = *path.last().expect("a path has nodes");
        let mut outlet = source;
        let mut before = None;
        for step in path.windows(2) {
            let (link, from) = self.step(step[0], step[1]);
            let agent = self.agents[usize::from(link.0)];
            let agent_at = |node| {
                let here = agent == Some(node);
                here.then(|| (self.wiring.agent(self.graph, link), Port::WIRED))
            };
            let (enters, leaves) = self.ports(link, from);
            let (entrance, left) = (agent_at(step[0]).unwrap_or(enters), agent_at(step[1]).unwrap_or(leaves));
            if !before.is_some_and(|before| self.graph.stays_within(before, link)) {
                self.go_on(packets, step[0], outlet, entrance);
            } else if agent == Some(step[0]) {
                // Packets that bypass the agent may still cause it to send.
                self.go_on(packets, step[0], entrance, entrance);
            }
            if let Some(station) = self.graph.station(link).filter(|_| from == 0) {
                self.wiring.reached.entry(station).or_default().insert(last);
            }
            (outlet, before) = (left, Some(link));
        }
        self.go_on(packets, last, outlet, sink);
    }

    fn go_on(&mut self, packets: (FlowId, bool), node: HostId, outlet: PortRef, entrance: PortRef) {
        self.hops.push(Hop { outlet, packets, node, entrance });
    }

    fn connect(mut self, flows: &[FlowPath]) -> Wiring {
        self.connect_agents();
        let mut hops = core::mem::take(&mut self.hops);
        hops.sort_unstable();
        hops.dedup();
        self.find_feeds(&hops);
        let mut routers: BTreeMap<HostId, RouterBuilder> = BTreeMap::new();
        for hops in hops.chunk_by(|a, b| a.outlet == b.outlet) {
            let unique = hops.windows(2).all(|pair| pair[0].packets != pair[1].packets);
            assert!(unique, "a path visits a node at most once");
            let Hop { outlet, node, entrance, .. } = hops[0];
            if hops.iter().all(|hop| hop.entrance == entrance) {
                self.wiring.wires.push((outlet, entrance));
                continue;
            }
            let router = routers.entry(node).or_insert_with(|| {
                let id = self.add(ComponentKind::Router(Router::default()));
                RouterBuilder { id, routes: Vec::new(), entrances: Vec::new(), ports: BTreeMap::new() }
            });
            self.wiring.wires.push((outlet, (router.id, Port::ONLY)));
            for hop in hops {
                router.add(hop, flows);
            }
        }
        for RouterBuilder { id, routes, entrances, .. } in routers.into_values() {
            self.wiring.components[usize::from(id.0)] = ComponentKind::Router(Router::new(routes));
            let leaving = (0..).map(|port| (id, Port(port))).zip(entrances);
            self.wiring.wires.extend(leaving);
        }
        self.wiring
    }

    fn find_feeds(&mut self, hops: &[Hop]) {
        let mut outlets: BTreeMap<PortRef, Option<PortRef>> = BTreeMap::new();
        for hop in hops {
            let only = outlets.entry(hop.entrance).or_insert(Some(hop.outlet));
            *only = only.filter(|&outlet| outlet == hop.outlet);
        }
        let is_link =
            |id: ComponentId| matches!(self.wiring.components[usize::from(id.0)], ComponentKind::Link(..));
        let feeds = outlets.iter().filter_map(|(entrance, only)| Some(((*only)?.0, entrance.0)));
        self.wiring.feeds = feeds.filter(|&(from, to)| is_link(from) && is_link(to)).collect();
    }

    fn connect_agents(&mut self) {
        for (place, agent) in self.wiring.agents.iter().enumerate() {
            let Some(agent) = *agent else { continue };
            let link = LinkId(place as u16);
            if let Some((bss, _)) = self.graph.station(link) {
                let bss = self.wiring.bsses[usize::from(bss.0)].expect("an agent is beside its BSS");
                self.wiring.wires.push(((agent, Port::RADIO), (bss, Port::WIRED)));
                self.wiring.wires.push(((bss, Port::WIRED), (agent, Port::RADIO)));
                self.wiring.watches.push((bss, agent));
                continue;
            }
            let away = usize::from(Some(self.graph.ends(link)[0]) != self.agents[place]);
            if let Some(direction) = self.wiring.links[place][away] {
                self.wiring.wires.push(((agent, Port::RADIO), (direction, Port::ONLY)));
                self.wiring.watches.push((direction, agent));
            }
            if let Some(direction) = self.wiring.links[place][1 - away] {
                self.wiring.wires.push(((direction, Port::ONLY), (agent, Port::RADIO)));
            }
        }
    }
}

/// A router whose routes are being collected.
struct RouterBuilder {
    id: ComponentId,
    routes: Vec<Route>,
    /// Where the wire of each output port leads.
    entrances: Vec<PortRef>,
    /// The output port whose wire leads to each entrance.
    ports: BTreeMap<PortRef, Port>,
}

impl RouterBuilder {
    fn add(&mut self, hop: &Hop, flows: &[FlowPath]) {
        let port = *self.ports.entry(hop.entrance).or_insert_with(|| {
            self.entrances.push(hop.entrance);
            Port((self.entrances.len() - 1) as u16)
        });
        let (flow, forward) = hop.packets;
        let dst = *flows[usize::from(flow.0)].nodes.last().expect("a path has nodes");
        self.routes.push(Route { flow, dst, forward, port });
    }
}
