//! Translation of a graph and its paths to components and wires.

use std::collections::{BTreeMap, BTreeSet};

use lasthop_proto::{ComponentId, FlowId, HostId, Port};

use super::{BssId, Graph, LinkId, Router};

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
    /// The ends of the flows.
    pub flows: Vec<FlowEnds>,
    /// The hosts reached through each station of each BSS.
    pub reached: BTreeMap<(BssId, u16), BTreeSet<HostId>>,
}

/// Next hop of the packets that leave one port, by flow and direction.
type Onward = BTreeMap<(FlowId, bool), PortRef>;

struct WiringBuilder<'a> {
    graph: &'a Graph,
    /// The node at which each link has its agent.
    agents: &'a [Option<HostId>],
    wiring: Wiring,
    directions: BTreeMap<(LinkId, usize), ComponentId>,
    bsses: BTreeMap<BssId, ComponentId>,
    agent_places: BTreeMap<LinkId, ComponentId>,
    /// For each port from which packets enter a node: the node, and the next hops.
    outlets: BTreeMap<(ComponentId, Port), (HostId, Onward)>,
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
        let mut builder = WiringBuilder {
            graph,
            agents,
            wiring: Wiring::default(),
            directions: BTreeMap::new(),
            bsses: BTreeMap::new(),
            agent_places: BTreeMap::new(),
            outlets: BTreeMap::new(),
        };
        for (index, flow) in flows.iter().enumerate() {
            builder.add_flow(FlowId(index as u16), flow);
        }
        builder.connect(flows)
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
                Some((bss, _)) if !self.bsses.contains_key(&bss) => {
                    let id = self.add(ComponentKind::Bss(bss));
                    self.bsses.insert(bss, id);
                }
                None if !self.directions.contains_key(&(link, from)) => {
                    let id = self.add(ComponentKind::Link(link, from));
                    self.directions.insert((link, from), id);
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
        if !self.agent_places.contains_key(&link) {
            let id = self.add(ComponentKind::Agent(link));
            self.agent_places.insert(link, id);
        }
    }

    /// The link from one node to the next, and which of its ends the first node is.
    fn step(&self, from: HostId, to: HostId) -> (LinkId, usize) {
        let link = self.graph.link(from, to).expect("a path follows links");
        (link, usize::from(self.graph.ends(link)[0] != from))
    }

    /// The input and output ports of a link, in the direction that leads away from one of its ends.
    fn ports(&self, link: LinkId, from: usize) -> (PortRef, PortRef) {
        match self.graph.station(link) {
            None => {
                let place = (self.directions[&(link, from)], Port::ONLY);
                (place, place)
            }
            Some((bss, station)) => {
                let id = self.bsses[&bss];
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
                here.then(|| (self.agent_places[&self.graph.medium(link)], Port::WIRED))
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
        let (_, onward) = self.outlets.entry(outlet).or_insert_with(|| (node, Onward::new()));
        let before = onward.insert(packets, entrance);
        assert!(before.is_none_or(|before| before == entrance), "a path visits a node at most once");
    }

    fn connect(mut self, flows: &[FlowPath]) -> Wiring {
        for (&link, &agent) in &self.agent_places {
            if let Some((bss, _)) = self.graph.station(link) {
                let bss = self.bsses[&bss];
                self.wiring.wires.push(((agent, Port::RADIO), (bss, Port::WIRED)));
                self.wiring.wires.push(((bss, Port::WIRED), (agent, Port::RADIO)));
                self.wiring.watches.push((bss, agent));
                continue;
            }
            let away = usize::from(Some(self.graph.ends(link)[0]) != self.agents[usize::from(link.0)]);
            if let Some(&direction) = self.directions.get(&(link, away)) {
                self.wiring.wires.push(((agent, Port::RADIO), (direction, Port::ONLY)));
                self.wiring.watches.push((direction, agent));
            }
            if let Some(&direction) = self.directions.get(&(link, 1 - away)) {
                self.wiring.wires.push(((direction, Port::ONLY), (agent, Port::RADIO)));
            }
        }
        let mut routers: BTreeMap<HostId, (ComponentId, Vec<PortRef>)> = BTreeMap::new();
        for (outlet, (node, onward)) in core::mem::take(&mut self.outlets) {
            let mut entrances = onward.values();
            let first = *entrances.next().expect("packets come out of an outlet");
            if entrances.all(|&entrance| entrance == first) {
                self.wiring.wires.push((outlet, first));
                continue;
            }
            let (router, ports) = routers
                .entry(node)
                .or_insert_with(|| (self.add(ComponentKind::Router(Router::new())), Vec::new()));
            self.wiring.wires.push((outlet, (*router, Port::ONLY)));
            let ComponentKind::Router(table) = &mut self.wiring.components[usize::from(router.0)] else {
                unreachable!("the component is a router");
            };
            for ((flow, forth), entrance) in onward {
                let port = ports.iter().position(|&known| known == entrance).unwrap_or_else(|| {
                    ports.push(entrance);
                    ports.len() - 1
                });
                let dst = *flows[usize::from(flow.0)].nodes.last().expect("a path has nodes");
                table.set(flow, dst, forth, Port(port as u16));
            }
        }
        for (router, ports) in routers.into_values() {
            let leaving = ports.into_iter().enumerate();
            self.wiring.wires.extend(leaving.map(|(port, entrance)| ((router, Port(port as u16)), entrance)));
        }
        self.wiring
    }
}
