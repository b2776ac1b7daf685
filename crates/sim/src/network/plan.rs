//! From paths over a graph to components and wires.

use std::collections::{BTreeMap, BTreeSet};

use lasthop_proto::{ComponentId, FlowId, HostId, Port};

use super::{BssId, Graph, LinkId, Router};

/// The way of a flow through a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPath {
    /// The nodes from the data's source to their destination, both included; each is linked to the
    /// next, and none occurs twice.
    pub nodes: Vec<HostId>,
    /// Whether nothing ever comes back.
    pub one_way: bool,
    /// The flow that it answers, if any: one of those before it, whose ends are its ends too, the other way
    /// round.
    pub answers: Option<FlowId>,
}

/// A component of a plan.
#[derive(Clone, Debug)]
pub enum Part {
    /// Where a flow's data begin, and those of a flow that answers it end.
    Source(FlowId),
    /// Where they end, and those of a flow that answers it begin.
    Sink(FlowId),
    /// The direction of a link that leads away from its first (0) or its second (1) end.
    Link(LinkId, usize),
    /// A BSS.
    Bss(BssId),
    /// The agent of a link, or of the BSS whose first link it is.
    Agent(LinkId),
    /// A router, as it stands.
    Router(Router),
}

/// A place at which a component sends and receives.
pub type Place = (ComponentId, Port);

/// Where a flow begins and ends in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEnds {
    /// Where the data are sent.
    pub source: Place,
    /// Where they are taken.
    pub sink: Place,
}

/// The components of a network in the order of their places, and the wires between them. Only what
/// a flow crosses is in it.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The components.
    pub parts: Vec<Part>,
    /// Wires, from a port to a port.
    pub wires: Vec<(Place, Place)>,
    /// For each agent: the direction of its link that leads away from it, and the agent. It knows what
    /// becomes of its own attempts, not of those of the other end.
    pub watches: Vec<(ComponentId, ComponentId)>,
    /// The ends of the flows.
    pub flows: Vec<FlowEnds>,
    /// For each station of each BSS the hosts that are reached through it.
    pub reached: BTreeMap<(BssId, u16), BTreeSet<HostId>>,
}

/// Where the packets that come out of one place go on: by flow and direction.
type Onward = BTreeMap<(FlowId, bool), Place>;

struct Planner<'a> {
    graph: &'a Graph,
    /// The node at which each link has its agent.
    agents: &'a [Option<HostId>],
    plan: Plan,
    directions: BTreeMap<(LinkId, usize), ComponentId>,
    bsses: BTreeMap<BssId, ComponentId>,
    agent_places: BTreeMap<LinkId, ComponentId>,
    /// For each place from which packets come into a node: the node, and where they go on.
    outlets: BTreeMap<(ComponentId, Port), (HostId, Onward)>,
}

impl Plan {
    /// The plan of a network. `agents` says at which end each link has an agent, if at any: a component
    /// that joins [`Port::WIRED`], everything else at its node, and [`Port::RADIO`], the link. The links of a
    /// BSS have one together, at the access point.
    ///
    /// Components are in the order in which the flows meet them, routers behind all others.
    ///
    /// # Panics
    /// If a path is not one.
    pub fn new(graph: &Graph, agents: &[Option<HostId>], flows: &[FlowPath]) -> Plan {
        let mut planner = Planner {
            graph,
            agents,
            plan: Plan::default(),
            directions: BTreeMap::new(),
            bsses: BTreeMap::new(),
            agent_places: BTreeMap::new(),
            outlets: BTreeMap::new(),
        };
        for (index, flow) in flows.iter().enumerate() {
            planner.add_flow(FlowId(index as u16), flow);
        }
        planner.connect(flows)
    }
}

impl Planner<'_> {
    fn add(&mut self, part: Part) -> ComponentId {
        let id = u16::try_from(self.plan.parts.len()).expect("at most 65,535 components");
        self.plan.parts.push(part);
        ComponentId(id)
    }

    fn add_flow(&mut self, flow: FlowId, path: &FlowPath) {
        // Another flow's ends have its packets at another port.
        let asked = path.answers.map(|asked| self.plan.flows[usize::from(asked.0)]);
        let source = match asked {
            Some(ends) => (ends.sink.0, Port(1)),
            None => (self.add(Part::Source(flow)), Port::ONLY),
        };
        self.add_links(&path.nodes);
        let sink = match asked {
            Some(ends) => (ends.source.0, Port(1)),
            None => (self.add(Part::Sink(flow)), Port::ONLY),
        };
        self.plan.flows.push(FlowEnds { source, sink });
        self.walk((flow, true), source, &path.nodes, sink);
        if !path.one_way {
            let back: Vec<HostId> = path.nodes.iter().rev().copied().collect();
            self.add_links(&back);
            self.walk((flow, false), sink, &back, source);
        }
    }

    /// Adds the links along a path, and their agents, as far as they are new.
    fn add_links(&mut self, path: &[HostId]) {
        for step in path.windows(2) {
            let (link, from) = self.step(step[0], step[1]);
            let agent = self.agents[usize::from(link.0)];
            if agent == Some(step[0]) {
                self.add_agent(link);
            }
            match self.graph.station(link) {
                Some((bss, _)) if !self.bsses.contains_key(&bss) => {
                    let id = self.add(Part::Bss(bss));
                    self.bsses.insert(bss, id);
                }
                None if !self.directions.contains_key(&(link, from)) => {
                    let id = self.add(Part::Link(link, from));
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
            let id = self.add(Part::Agent(link));
            self.agent_places.insert(link, id);
        }
    }

    /// The link from one node to the next, and which of its ends the first one is.
    fn step(&self, from: HostId, to: HostId) -> (LinkId, usize) {
        let link = self.graph.link(from, to).expect("a path follows links");
        (link, usize::from(self.graph.ends(link)[0] != from))
    }

    /// Where a link is entered and left in the direction that leads away from one of its ends.
    fn ports(&self, link: LinkId, from: usize) -> (Place, Place) {
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

    /// Notes at each node of a path where the packets that take it come from and go on.
    fn walk(&mut self, packets: (FlowId, bool), source: Place, path: &[HostId], sink: Place) {
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
                // The agent sees nothing of them, but may have something to say about them.
                self.go_on(packets, step[0], entrance, entrance);
            }
            if let Some(station) = self.graph.station(link).filter(|_| from == 0) {
                self.plan.reached.entry(station).or_default().insert(last);
            }
            (outlet, before) = (left, Some(link));
        }
        self.go_on(packets, last, outlet, sink);
    }

    fn go_on(&mut self, packets: (FlowId, bool), node: HostId, outlet: Place, entrance: Place) {
        let (_, onward) = self.outlets.entry(outlet).or_insert_with(|| (node, Onward::new()));
        let before = onward.insert(packets, entrance);
        assert!(before.is_none_or(|before| before == entrance), "a path has no loops");
    }

    fn connect(mut self, flows: &[FlowPath]) -> Plan {
        for (&link, &agent) in &self.agent_places {
            if let Some((bss, _)) = self.graph.station(link) {
                let bss = self.bsses[&bss];
                self.plan.wires.push(((agent, Port::RADIO), (bss, Port::WIRED)));
                self.plan.wires.push(((bss, Port::WIRED), (agent, Port::RADIO)));
                self.plan.watches.push((bss, agent));
                continue;
            }
            let away = usize::from(Some(self.graph.ends(link)[0]) != self.agents[usize::from(link.0)]);
            if let Some(&direction) = self.directions.get(&(link, away)) {
                self.plan.wires.push(((agent, Port::RADIO), (direction, Port::ONLY)));
                self.plan.watches.push((direction, agent));
            }
            if let Some(&direction) = self.directions.get(&(link, 1 - away)) {
                self.plan.wires.push(((direction, Port::ONLY), (agent, Port::RADIO)));
            }
        }
        let mut routers: BTreeMap<HostId, (ComponentId, Vec<Place>)> = BTreeMap::new();
        for (outlet, (node, onward)) in core::mem::take(&mut self.outlets) {
            let mut entrances = onward.values();
            let first = *entrances.next().expect("packets come out of an outlet");
            if entrances.all(|&entrance| entrance == first) {
                self.plan.wires.push((outlet, first));
                continue;
            }
            let (router, ports) =
                routers.entry(node).or_insert_with(|| (self.add(Part::Router(Router::new())), Vec::new()));
            self.plan.wires.push((outlet, (*router, Port::ONLY)));
            let Part::Router(table) = &mut self.plan.parts[usize::from(router.0)] else {
                unreachable!("a router was put there");
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
            self.plan.wires.extend(leaving.map(|(port, entrance)| ((router, Port(port as u16)), entrance)));
        }
        self.plan
    }
}
