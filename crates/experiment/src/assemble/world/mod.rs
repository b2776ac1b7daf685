//! The components of a run, and their ids and ports for measurement. Runs, metrics and traces use only
//! [`World`]. [`flow_ends`] builds what sends and receives, [`links`] the links between.

use std::collections::{BTreeMap, BTreeSet};

use lasthop_base::{Duration, Streams};
use lasthop_proto::scheme::{Combination, LinkEnd, Site};
use lasthop_proto::split::Split;
use lasthop_proto::{Component, ComponentId, FlowId, HostId, Port, application, tcp};
use lasthop_scenario::network::{
    self, Ahead, BssKind, Flow, Network, NetworkLink, Slot, StationConfig, Workload, base_station_end,
};
use lasthop_sim::network::{
    AgentPlace, BssId, ComponentKind, FlowEnds, FlowPath, LinkId, MovingHosts, PortRef, Wiring,
};
use lasthop_sim::wifi::{BssStreams, WifiBss, WifiStation, WifiStreams};
use lasthop_sim::wlan::{Bss, Station, StationStreams};
use lasthop_sim::{Builder, Contents, Mover, Node, SignalMeter, WireId};

use super::movement::{Movement, WatchedSignal};
use super::split_segments::{self, ConnectionPart};

mod flow_ends;
mod links;
mod stack_ends;

pub use stack_ends::StackLog;

/// The ids and ports of all components, common to all runs of a scenario with a combination of schemes.
#[derive(Clone, Debug)]
pub struct Layout {
    network: Network,
    wiring: Wiring,
    /// The agents at both ends of each link, the nearest to the node first.
    chains: Vec<[Vec<Slot>; 2]>,
    /// The schemes of all agents at base stations and routers, and of those at mobile hosts, in order.
    agents: [Vec<&'static str>; 2],
    /// For each link with a proxy, or the first link of its BSS or shared radio: the flows split there, each with the proxy's
    /// port through which the data enter.
    split_at: BTreeMap<LinkId, Vec<(FlowId, Port)>>,
    movement: Movement,
    /// The parts of each flow; empty unless it is a connection.
    parts: Vec<Vec<ConnectionPart>>,
    /// How each flow is split.
    splits: Vec<Option<Box<Split>>>,
}

/// The components of a run.
pub struct World {
    /// All components, wired.
    pub builder: Builder,
    /// The connections.
    pub connections: Vec<ConnectionComponents>,
    /// The sinks and sources of other traffic.
    pub traffic: Vec<(ComponentId, ComponentId)>,
    /// The clients and servers of applications.
    pub applications: Vec<(ComponentId, ComponentId)>,
    /// The directions of wireless links.
    pub radios: Vec<ComponentId>,
    /// The directions of wired links.
    pub wired: Vec<ComponentId>,
    /// The shared radios.
    pub shared: Vec<ComponentId>,
    /// The BSSs, each with its number of stations.
    pub bsses: Vec<(ComponentId, usize)>,
    /// The bytes of packets, if connections have some: those of other stacks than TCP.
    pub contents: Option<Contents>,
    /// The logs of stacks, by the flows of their connections and applications.
    pub logs: Vec<(FlowId, StackLog)>,
}

/// An agent of a scheme.
pub struct Agent<'a> {
    /// The component.
    pub id: ComponentId,
    /// The name of the scheme.
    pub scheme: &'static str,
    /// The number of agents of the scheme in front of it at this end of the link.
    same: usize,
    end: LinkEnd,
    place: &'a AgentPlace,
}

/// Components of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionComponents {
    /// The flow.
    pub id: FlowId,
    /// The host that sends the data.
    pub source: HostId,
    /// The host that receives them.
    pub destination: HostId,
    /// The sender.
    pub sender: ComponentId,
    /// The receiver.
    pub receiver: ComponentId,
}

impl Layout {
    /// Places the agents and proxies of the combination, and wires everything.
    pub fn new(mut network: Network, combination: &Combination<'_>) -> Layout {
        network.use_queues(combination.link().queue);
        let flows = network.flows.iter().zip(network.whole_flows(combination));
        let split = |(flow, is_whole): (&Flow, bool)| {
            combination.split(&flow.tcp).filter(|_| flow.is_tcp() && !is_whole)
        };
        let splits: Vec<_> = flows.map(|flow| split(flow).map(Box::new)).collect();
        let agents = [LinkEnd::BaseStation, LinkEnd::MobileHost]
            .map(|end| combination.agents(end).collect::<Vec<_>>());
        let chains = network::chains(&network, combination);
        let numbers: Vec<_> = chains.iter().map(|ends| ends.each_ref().map(Vec::len)).collect();
        let path = |flow: &Flow| FlowPath {
            one_way: flow.path.one_way && !combination.exchanges_packets(),
            ..flow.path.clone()
        };
        let paths: Vec<_> = network.flows.iter().map(path).collect();
        let is_joint = combination.splitter().is_some() && combination.split_node().is_none();
        // Where agents are connected, all base stations of moving hosts have the same.
        let of_moving_host = (0..).map(LinkId).zip(&network.links).find_map(|(link, kind)| match kind {
            NetworkLink::Radio(hop) if hop.place.is_some() => Some(&chains[link.index()][1 - hop.mobile]),
            _ => None,
        });
        let index = |number: &usize| {
            let slot = Slot::Agent(LinkEnd::BaseStation, *number);
            of_moving_host?.iter().position(|other| *other == slot)
        };
        let connected = combination.connected().iter().filter_map(index).collect();
        let (stations, fixed) = (network.moving_hosts(), network.fixed());
        let moving = MovingHosts { stations, is_joint, connected, fixed };
        let wiring = Wiring::new(&network.graph, &numbers, &paths, &moving);
        let movement = Movement::new(&network, &wiring, combination);
        let proxies = network::proxies(&chains);
        let crossings = |nodes: &[HostId]| network.crossings(&proxies, nodes);
        let parts = network.flows.iter().enumerate().map(|(index, flow)| match flow.is_connection() {
            true => split_segments::parts(&network.graph, &wiring, index, &flow.path, |nodes| {
                if flow.is_tcp() { crossings(nodes) } else { Vec::new() }
            }),
            false => Vec::new(),
        });
        let parts = parts.collect();
        let mut split_at: BTreeMap<LinkId, Vec<(FlowId, Port)>> = BTreeMap::new();
        for (index, flow) in network.flows.iter().enumerate().filter(|(_, flow)| flow.is_tcp()) {
            // The proxy of a moving host is that of its first base station.
            for (link, from) in crossings(&flow.path.nodes) {
                split_at.entry(network.graph.medium(link)).or_default().push((FlowId(index as u32), from));
            }
        }
        Layout { network, wiring, chains, agents, split_at, movement, parts, splits }
    }

    /// The components of links, each with its link and the end that sends; without cells and shared radios.
    pub fn link_components(&self) -> impl Iterator<Item = (ComponentId, LinkId, usize)> {
        let components = (0..).map(ComponentId).zip(&self.wiring.components);
        components.filter_map(|(id, kind)| match kind {
            ComponentKind::Link(link, from) => Some((id, *link, *from)),
            _ => None,
        })
    }

    /// The source and the sink of each flow.
    pub fn flow_ends(&self) -> impl Iterator<Item = (ComponentId, ComponentId)> {
        self.wiring.flows.iter().map(|ends| (ends.source.0, ends.sink.0))
    }

    /// The directions of wireless links, in the order in which runs count them: each with the end that sends.
    pub fn radio_directions(&self) -> impl Iterator<Item = (LinkId, usize)> {
        let mobile_end = |link: LinkId| match &self.network.links[link.index()] {
            NetworkLink::Radio(hop) => Some(hop.mobile),
            NetworkLink::Wired(_) | NetworkLink::Station(_) => None,
        };
        let own = self.link_components().filter(move |(_, link, _)| mobile_end(*link).is_some());
        let shared = self.wiring.components.iter().flat_map(|kind| match kind {
            ComponentKind::Shared(radio) => self.network.graph.shared(*radio),
            _ => &[],
        });
        let down = shared.filter_map(move |&link| Some((link, 1 - mobile_end(link)?)));
        own.map(|(_, link, from)| (link, from)).chain(down)
    }

    /// The relays of flow number `index`, a connection, in path order.
    pub fn relays(&self, index: usize) -> impl Iterator<Item = ComponentId> {
        self.parts[index][1..].iter().map(|part| part.sender.id)
    }

    /// The components that a run waits for: sources of finite flows, and their relays.
    pub fn awaited(&self) -> Vec<ComponentId> {
        let mut awaited = Vec::new();
        let flows = self.network.flows.iter().enumerate();
        for (index, flow) in flows.filter(|(index, _)| self.network.ends(*index)) {
            // The client finishes last, so only the client is awaited.
            if !matches!(flow.workload, Workload::Joined(_)) {
                awaited.push(self.wiring.flows[index].source.0);
            }
            if self.awaits_relays(index) {
                awaited.extend(self.relays(index));
            }
        }
        awaited
    }

    /// Whether a run waits for the relays of flow number `index`. Relays of an application's second connection and later ones
    /// are not awaited, since the client may leave these connections unused.
    fn awaits_relays(&self, index: usize) -> bool {
        let joins = self.network.flows[index].path.joins;
        self.network.ends(index) && joins.is_none_or(|join| join.port <= application::responses(0))
    }

    /// The agents of the schemes. Proxies are excluded: their quantities are reported per part.
    pub fn agents(&self) -> impl Iterator<Item = Agent<'_>> {
        (0..).zip(&self.wiring.components).filter_map(|(index, kind)| {
            let ComponentKind::Agent(place) = kind else { return None };
            let (end, number) = self.agent_number(place)?;
            let chain = &self.agents[end as usize];
            let scheme = chain[number];
            let same = chain[..number].iter().filter(|other| **other == scheme).count();
            Some(Agent { id: ComponentId(index), scheme, same, end, place })
        })
    }

    /// The components that may hold packets and send them later, or again: agents and proxies.
    pub fn keepers(&self) -> impl Iterator<Item = ComponentId> {
        let components = (0..).map(ComponentId).zip(&self.wiring.components);
        components.filter(|(_, kind)| matches!(kind, ComponentKind::Agent(_))).map(|(id, _)| id)
    }

    /// The proxies at base stations and routers, each with the name of its node.
    pub fn proxies(&self) -> impl Iterator<Item = (ComponentId, &str)> {
        (0..).zip(&self.wiring.components).filter_map(|(index, kind)| match kind {
            ComponentKind::Agent(place) if self.agent_number(place).is_none() => {
                Some((ComponentId(index), self.node_name(place)))
            }
            _ => None,
        })
    }

    /// The name of each agent: that of its link, of the access point of its BSS, or of its base station with a shared radio.
    /// If a link has several agents, the name is preceded by the scheme, and followed by the mobile host for an agent there,
    /// and by a number if the scheme has several agents at one place.
    pub fn agent_names(&self) -> Vec<String> {
        let is_single = self.agents.iter().flatten().count() == 1;
        let name = |Agent { scheme, same, end, place, .. }: Agent<'_>| {
            let link = self.link_name(place.link, end);
            let name = match end {
                _ if is_single => link,
                LinkEnd::BaseStation => format!("{scheme} {link}"),
                LinkEnd::MobileHost => format!("{scheme} {link} at {}", self.node_name(place)),
            };
            if same == 0 { name } else { format!("{name} {}", same + 1) }
        };
        self.agents().map(name).collect()
    }

    /// The nodes of the agents.
    pub fn agent_nodes(&self) -> impl Iterator<Item = &str> {
        self.agents().map(|agent| self.node_name(agent.place))
    }

    /// The agents, as runs start with them but for their random streams.
    pub fn agent_components(&self, combination: &Combination<'_>) -> impl Iterator<Item = Node> {
        let kinds = self.agents().map(|agent| &self.wiring.components[agent.id.index()]);
        kinds.map(|kind| self.component(kind, combination, Streams::new(0, 0)))
    }

    /// The two ends of the tunnel over each wireless link.
    pub fn tunnels(&self, combination: &Combination<'_>) -> Vec<[ComponentId; 2]> {
        combination.tunnel().into_iter().flat_map(|numbers| self.pairs(numbers)).collect()
    }

    /// Two agents over each wireless link, by their numbers among those at a base station and at a mobile host.
    fn pairs(&self, [at_base_station, at_mobile_host]: [usize; 2]) -> impl Iterator<Item = [ComponentId; 2]> {
        let links = (0..).map(LinkId).zip(&self.network.links);
        links.filter_map(move |(link, kind): (LinkId, &NetworkLink)| {
            let end = base_station_end(kind)?;
            let agents = |end| self.wiring.agents(&self.network.graph, link, end);
            let slot = Slot::Agent(LinkEnd::BaseStation, at_base_station);
            let chain = &self.chains[link.index()][end];
            let entrance = agents(end).get(chain.iter().position(|other| *other == slot)?)?;
            Some([entrance.id, agents(1 - end).get(at_mobile_host)?.id])
        })
    }

    /// The end at which an agent is, and its number among the agents of the schemes there; `None` for a proxy.
    fn agent_number(&self, place: &AgentPlace) -> Option<(LinkEnd, usize)> {
        match self.chains[place.link.index()][place.end][place.index] {
            Slot::Proxy => None,
            Slot::Agent(end, number) => Some((end, number)),
        }
    }

    fn node_name(&self, place: &AgentPlace) -> &str {
        &self.network.names[self.network.graph.ends(place.link)[place.end].index()]
    }

    /// The name of a link at one of its ends, or of the access point of its BSS, or of its base station if that
    /// shares a radio.
    fn link_name(&self, link: LinkId, end: LinkEnd) -> String {
        let Network { graph, names, .. } = &self.network;
        let [a, b] = graph.ends(link).map(|end| &names[end.index()]);
        let is_shared = graph.sharer(link).is_some() && end == LinkEnd::BaseStation;
        if is_shared || graph.station(link).is_some() { a.clone() } else { format!("{a}-{b}") }
    }

    /// The base stations and routers with agents on the path of flow number `index`, in path order: the name of each, and the
    /// outer ports of its agents, towards the wired network and towards the mobile hosts. A proxy is among them.
    pub fn stations(&self, index: usize) -> Vec<(&str, [Vec<PortRef>; 2])> {
        let Network { graph, names, flows, .. } = &self.network;
        let steps = flows[index].path.all().flat_map(|nodes| nodes.windows(2));
        let ends =
            steps.filter_map(|step| graph.link(step[0], step[1])).flat_map(|link| [(link, 0), (link, 1)]);
        let mut stations: Vec<(&str, [Vec<PortRef>; 2])> = Vec::new();
        for (link, end) in ends {
            let chain = self.wiring.agents(graph, link, end);
            let is_at_mobile_host =
                matches!(self.chains[link.index()][end].first(), Some(Slot::Agent(LinkEnd::MobileHost, _)));
            let (Some(first), Some(last), false) = (chain.first(), chain.last(), is_at_mobile_host) else {
                continue;
            };
            let name = names[graph.ends(link)[end].index()].as_str();
            let ports = [first.port(Port::WIRED), last.port(Port::RADIO)];
            match stations.iter_mut().find(|(other, _)| *other == name) {
                // A path through an access point crosses its agents twice.
                Some((_, sides)) if sides[0].contains(&ports[0]) => {}
                Some((_, sides)) => sides.iter_mut().zip(ports).for_each(|(side, port)| side.push(port)),
                None => stations.push((name, ports.map(|port| vec![port]))),
            }
        }
        stations
    }

    /// TCP settings of one part of flow number `index`, a connection.
    pub fn settings(&self, index: usize, part: &ConnectionPart) -> &tcp::Settings {
        match &self.splits[index] {
            Some(split) if part.wireless => &split.wireless,
            _ => &self.network.flows[index].tcp,
        }
    }

    /// The wires that begin or end at a place.
    pub fn wires_at(&self, is_there: impl Fn(PortRef) -> bool) -> Vec<WireId> {
        let wires = (0..).zip(&self.wiring.wires);
        wires.filter(|(_, (from, to))| is_there(*from) || is_there(*to)).map(|(id, _)| WireId(id)).collect()
    }

    /// The parts of each flow that is a connection.
    pub fn parts(&self) -> &[Vec<ConnectionPart>] {
        &self.parts
    }

    /// The network, with the queues that the combination uses.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The ports at which a flow begins and ends.
    pub fn ends(&self, flow: FlowId) -> FlowEnds {
        self.wiring.flows[flow.index()]
    }

    /// The directions of links, as `FROM-TO`, and the cells and shared radios, by their access points and base stations.
    pub fn link_names(&self) -> Vec<(ComponentId, String)> {
        let Network { graph, names, .. } = &self.network;
        let components = (0..).map(ComponentId).zip(&self.wiring.components);
        let named = components.filter_map(|(id, kind)| match kind {
            ComponentKind::Link(link, from) => {
                let ends = graph.ends(*link).map(|end| names[end.index()].as_str());
                Some((id, [ends[*from], "-", ends[1 - from]].concat()))
            }
            ComponentKind::Bss(bss) => {
                Some((id, self.link_name(*graph.bss(*bss).first()?, LinkEnd::BaseStation)))
            }
            ComponentKind::Shared(radio) => {
                Some((id, self.link_name(*graph.shared(*radio).first()?, LinkEnd::BaseStation)))
            }
            _ => None,
        });
        named.collect()
    }

    /// Builds the components of one run.
    pub fn world(&self, combination: &Combination<'_>, streams: Streams) -> World {
        self.world_with(combination, streams, |_| None)
    }

    /// Like [`world`](Layout::world), with logs of the stacks.
    pub fn logged_world(&self, combination: &Combination<'_>, streams: Streams) -> World {
        self.build(combination, streams, true, |_| None)
    }

    /// Like [`world`](Layout::world), with other components at the ends of the flows for which `end` returns one.
    pub fn world_with(
        &self,
        combination: &Combination<'_>,
        streams: Streams,
        end: impl Fn(FlowId) -> Option<Node>,
    ) -> World {
        self.build(combination, streams, false, end)
    }

    fn build(
        &self,
        combination: &Combination<'_>,
        streams: Streams,
        is_logged: bool,
        end: impl Fn(FlowId) -> Option<Node>,
    ) -> World {
        let mut world = World {
            builder: Builder::with_capacity(self.wiring.components.len()),
            connections: self.connections().collect(),
            traffic: self.ends_of(|workload| matches!(workload, Workload::Traffic { .. })),
            applications: self.ends_of(|workload| matches!(workload, Workload::Application(_))),
            radios: Vec::new(),
            wired: Vec::new(),
            shared: Vec::new(),
            bsses: Vec::new(),
            contents: None,
            logs: Vec::new(),
        };
        let mut stacks = self.stack_ends(combination, streams, is_logged, &end);
        world.contents = stacks.contents.take();
        world.logs = std::mem::take(&mut stacks.logs);
        for kind in &self.wiring.components {
            let other = match kind {
                ComponentKind::Source(flow) => end(*flow).or_else(|| stacks.take(*flow, 0)),
                ComponentKind::Sink(flow) => end(*flow).or_else(|| stacks.take(*flow, 1)),
                ComponentKind::Agent(place) if self.agent_number(place).is_none() => {
                    Some(self.proxy(place.link, combination, |flow| end(flow).is_none()).into())
                }
                _ => None,
            };
            let node = other.unwrap_or_else(|| self.component(kind, combination, streams));
            self.add(&mut world, kind, node);
        }
        self.connect(&mut world, combination, streams);
        world
    }

    /// Adds a component to the world, and to those that are counted.
    fn add(&self, world: &mut World, kind: &ComponentKind, node: Node) {
        let counted = match (&node, kind) {
            (Node::Link(link), _) if link.is_radio() => Some(&mut world.radios),
            (Node::Link(_), _) => Some(&mut world.wired),
            (_, ComponentKind::Shared(_)) => Some(&mut world.shared),
            _ => None,
        };
        let id = world.builder.add(node);
        counted.into_iter().for_each(|ids| ids.push(id));
        if let ComponentKind::Bss(bss) = kind {
            world.bsses.push((id, self.network.graph.bss(*bss).len()));
        }
    }

    /// Adds the wires, and who watches whom.
    fn connect(&self, world: &mut World, combination: &Combination<'_>, streams: Streams) {
        let World { builder, applications, .. } = world;
        // In the order of `self.wiring`, so that wire ids are indices there.
        for &(from, to) in &self.wiring.wires {
            builder.connect(from, to);
        }
        for &(watched, watcher) in &self.wiring.watches {
            builder.watch(watched, watcher);
        }
        for [here, there] in combination.pairs().iter().flat_map(|&numbers| self.pairs(numbers)) {
            builder.watch(here, there);
            builder.watch(there, here);
        }
        if let Some((number, _)) = combination.sidecar() {
            let is_reporter =
                |agent: &Agent<'_>| self.agent_number(agent.place) == Some((LinkEnd::BaseStation, number));
            for agent in self.agents().filter(is_reporter) {
                self.readers(combination).for_each(|end| builder.watch(agent.id, end));
            }
        }
        let ends: BTreeSet<ComponentId> = self.tunnels(combination).into_iter().flatten().collect();
        for &((link, _), end) in self.wiring.arrivals.iter().filter(|(_, agent)| ends.contains(agent)) {
            builder.watch_losses(link, end);
        }
        for &(mover, watcher) in &self.movement.followers {
            builder.watch(mover, watcher);
        }
        for WatchedSignal { links, watchers } in &self.movement.signals {
            let channels = self.network.channels(links, streams);
            let lead = combination.signal_lead().unwrap_or_default();
            let meter = builder.add(custom(SignalMeter::new(channels, lead, self.network.limit)));
            watchers.iter().for_each(|&watcher| builder.watch(meter, watcher));
        }
        for &(outlet, watcher) in &self.wiring.arrivals {
            builder.watch_arrivals(outlet, watcher);
        }
        for &(feeder, link) in &self.wiring.feeds {
            builder.feed(feeder, link);
        }
        for &mut (client, server) in applications {
            builder.watch(client, server);
        }
    }

    fn connections(&self) -> impl Iterator<Item = ConnectionComponents> {
        let flows = self.network.flows.iter().zip(&self.wiring.flows).take(self.network.connections);
        (0..).map(FlowId).zip(flows).map(|(id, (flow, ends))| ConnectionComponents {
            id,
            source: flow.source(),
            destination: flow.destination(),
            sender: ends.source.0,
            receiver: ends.sink.0,
        })
    }

    /// The components at both ends of the flows with such a workload.
    fn ends_of(&self, wanted: impl Fn(&Workload) -> bool) -> Vec<(ComponentId, ComponentId)> {
        let flows = self.network.flows.iter().zip(&self.wiring.flows);
        let of = flows.filter(|(flow, _)| wanted(&flow.workload));
        of.map(|(_, FlowEnds { source, sink })| (source.0, sink.0)).collect()
    }

    fn component(&self, kind: &ComponentKind, combination: &Combination<'_>, streams: Streams) -> Node {
        match kind {
            ComponentKind::Source(flow) => self.source(*flow, combination, streams),
            ComponentKind::Sink(flow) => self.sink(*flow, combination),
            ComponentKind::Link(link, from) => match &self.network.links[link.index()] {
                NetworkLink::Wired(wired) => self.wired(wired, *link, *from, streams).into(),
                NetworkLink::Radio(hop) => {
                    links::direction(hop, *from, combination.link(), &self.network, streams).into()
                }
                NetworkLink::Station(_) => unreachable!("the links of a BSS are one component"),
            },
            ComponentKind::Shared(radio) => self.shared(*radio, combination, streams).into(),
            ComponentKind::Bss(bss) => self.bss(*bss, streams),
            ComponentKind::Agent(place) => match self.agent_number(place) {
                None => self.proxy(place.link, combination, |_| true).into(),
                Some((end, number)) => combination
                    .agent(number, &self.site(place, end, &self.link_name(place.link, end), streams))
                    .into(),
            },
            ComponentKind::Router(router) => router.clone().into(),
            ComponentKind::MovingRouter(node, router) => {
                let delays = |host| self.movement.registrations[&(*node, host)].clone();
                let router = router.clone().with_delays(delays);
                // What the host itself sends takes one way.
                let copies =
                    combination.copies_to_base_stations() && router.hosts().all(|host| host != *node);
                custom(if copies { router.copying() } else { router })
            }
            ComponentKind::Mover(host) => {
                let moving = &self.network.moving[self.movement.indices[host]];
                custom(Mover::new(*host, moving.itinerary(streams, self.network.limit)))
            }
        }
    }

    fn bss(&self, id: BssId, streams: Streams) -> Node {
        let links = self.network.graph.bss(id);
        let stations = links.iter().map(|link| {
            let NetworkLink::Station(station) = &self.network.links[link.index()] else {
                unreachable!("a link of a BSS leads to a station")
            };
            (&**station, self.wiring.reached_over(*link, 0).iter().copied().collect())
        });
        // Named after the access point, so that adding a BSS does not change other streams. The access point
        // may be a station of another BSS, with a separate stream.
        let ap = &self.network.names[self.network.graph.ends(links[0])[0].index()];
        match &self.network.bss {
            BssKind::Dcf(config) => {
                let station = |(station, hosts): (&StationConfig, Vec<HostId>)| Station {
                    hosts,
                    channel: station.channel(streams),
                    above_mac: station.drop,
                    streams: StationStreams::named(&streams, &station.name),
                };
                let backoff = streams.stream(&["ap-backoff:", ap].concat());
                Bss::new(*config, backoff, stations.map(station).collect()).into()
            }
            BssKind::Edca(config) => {
                let station = |(station, hosts): (&StationConfig, Vec<HostId>)| WifiStation {
                    hosts,
                    radio: station.radio.expect("a station with EDCA has rates"),
                    channel: station.channel(streams),
                    above_mac: station.drop,
                    streams: WifiStreams::named(&streams, &station.name),
                };
                let streams = BssStreams::named(&streams, ap);
                WifiBss::new(**config, streams, stations.map(station).collect()).into()
            }
        }
    }

    /// The place of an agent at one end of the link called `link`.
    fn site<'a>(&'a self, place: &AgentPlace, end: LinkEnd, link: &'a str, streams: Streams) -> Site<'a> {
        let (rate, delay, arriving_rate, place_of_station) = match &self.network.links[place.link.index()] {
            NetworkLink::Radio(hop) => {
                let (sent, arriving) = match end {
                    LinkEnd::BaseStation => (&hop.down, &hop.up),
                    LinkEnd::MobileHost => (&hop.up, &hop.down),
                };
                (sent.nominal_rate(), sent.delay.nominal(), arriving.nominal_rate(), hop.place)
            }
            NetworkLink::Station(_) => {
                let rate = self.network.bss.data_rate();
                (rate, Duration::ZERO, rate, None)
            }
            NetworkLink::Wired(_) => {
                let Ahead { rate, delay, arriving_rate } = self.network.ahead(place.link, place.end);
                (rate, delay, arriving_rate, None)
            }
        };
        let station = place_of_station.map(|(_, station)| station);
        let node = self.node_name(place);
        let hosts = (end == LinkEnd::MobileHost).then(|| self.wiring.reached_over(place.link, 1 - place.end));
        let moving = place_of_station.map(|(moving, _)| self.network.moving[moving].host);
        let addresses = moving.and_then(|host| self.wiring.addresses.get(&(host, place.index)));
        let peers = addresses.filter(|_| end == LinkEnd::BaseStation).map_or(&[][..], Vec::as_slice);
        let is_router = matches!(self.network.links[place.link.index()], NetworkLink::Wired(_));
        Site { end, is_router, node, station, link, rate, delay, arriving_rate, hosts, peers, streams }
    }
}

fn custom(component: impl Component + 'static) -> Node {
    let boxed: Box<dyn Component> = Box::new(component);
    boxed.into()
}
