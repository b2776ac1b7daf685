//! Wiring of random networks: every packet follows the path of its flow through the agents on it, and packets
//! sent by an agent reach either end.

use std::collections::{BTreeMap, BTreeSet};

use lasthop_base::{Bytes, Stream, Streams, Time};
use lasthop_channel::Model;
use lasthop_proto::tcp::Segment;
use lasthop_proto::{
    Body, Component, ComponentId, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet, Port, Signal,
};
use lasthop_sim::network::{
    AgentPlace, BssId, ComponentKind, FlowPath, Graph, Join, LinkId, MovingHosts, PortRef, ShortestPaths,
    Wiring,
};
use lasthop_sim::wlan::{AboveMac, Bss, BssConfig, Station, StationStreams};

/// A random network and its wiring.
struct Case {
    graph: Graph,
    /// The number of agents at each end of each link.
    agents: Vec<[usize; 2]>,
    flows: Vec<FlowPath>,
    wiring: Wiring,
    wires: BTreeMap<PortRef, PortRef>,
    /// Where a moving host is.
    attached: Option<Signal>,
    /// The network without the moving host.
    fixed: Graph,
    /// The base stations of the host whose first agents are one component.
    joint: BTreeMap<HostId, Vec<HostId>>,
}

/// The components that a packet crossed, and its destination.
#[derive(Debug, PartialEq)]
struct Walk {
    links: Vec<(LinkId, usize)>,
    agents: Vec<AgentPlace>,
    end: PortRef,
}

/// A number of agents.
fn number(random: &mut Stream) -> usize {
    random.below(4).saturating_sub(1) as usize
}

fn random_path(graph: &Graph, nodes: u32, random: &mut Stream) -> Vec<HostId> {
    let mut path = vec![HostId(random.below(u64::from(nodes)) as u32)];
    for _ in 0..=random.below(5) {
        let last = path[path.len() - 1];
        let next = |&node: &HostId| !path.contains(&node) && graph.link(last, node).is_some();
        let choices: Vec<HostId> = (0..nodes).map(HostId).filter(next).collect();
        if choices.is_empty() {
            break;
        }
        path.push(choices[random.below(choices.len() as u64) as usize]);
    }
    path
}

/// The port by which a BSS sends packets for each host: to a station, or out of the BSS.
type Ways = BTreeMap<(BssId, HostId), Option<u32>>;

/// Whether each BSS on `path`, in either direction, routes a host's packets as it does for the paths added
/// before. If so, the path is added to `ways`.
fn agree(graph: &Graph, ways: &mut Ways, path: &FlowPath) -> bool {
    let mut with_these = ways.clone();
    let mut agrees = true;
    let back: Vec<HostId> = path.nodes.iter().rev().copied().collect();
    for nodes in [&path.nodes, &back].into_iter().take(if path.one_way { 1 } else { 2 }) {
        let dst = nodes[nodes.len() - 1];
        let links: Vec<LinkId> =
            nodes.windows(2).map(|step| graph.link(step[0], step[1]).expect("it is linked")).collect();
        for (index, link) in links.iter().enumerate() {
            let Some((bss, station)) = graph.station(*link) else { continue };
            let way = match graph.ends(*link)[0] == nodes[index] {
                true => Some(station),
                // The next hop determines the port.
                false if links.get(index + 1).is_some_and(|&next| graph.stays_within(*link, next)) => {
                    continue;
                }
                false => None,
            };
            agrees &= *with_these.entry((bss, dst)).or_insert(way) == way;
        }
    }
    if agrees {
        *ways = with_these;
    }
    agrees
}

impl Case {
    fn random(run: u64) -> Case {
        let mut random = Streams::new(1, run).stream("networks");
        let nodes = 2 + random.below(8) as u32;
        let density = 0.2 + 0.6 * random.uniform();
        let mut graph = Graph::new();
        let hosts: Vec<HostId> = (0..nodes).map(|_| graph.add_node()).collect();
        // Which nodes are access points, and how many agents these have.
        let aps: Vec<_> = hosts.iter().map(|_| random.bernoulli(0.3).then(|| number(&mut random))).collect();
        let mut agents = Vec::new();
        for (index, &a) in hosts.iter().enumerate() {
            for &b in &hosts[index + 1..] {
                if random.bernoulli(density) {
                    let ends = if random.bernoulli(0.5) { [a, b] } else { [b, a] };
                    match aps[ends[0].index()] {
                        Some(agents_of_ap) => {
                            graph.join(ends[0], ends[1]);
                            agents.push([agents_of_ap, number(&mut random)]);
                        }
                        None => {
                            graph.connect(ends[0], ends[1]);
                            agents.push([(); 2].map(|()| number(&mut random)));
                        }
                    }
                }
            }
        }
        let paths = (0..8).map(|_| random_path(&graph, nodes, &mut random)).collect::<Vec<_>>();
        let mut ways = BTreeMap::new();
        let flows = paths.into_iter().filter(|path| path.len() > 1);
        let flows = flows.map(|nodes| FlowPath {
            nodes,
            others: Vec::new(),
            one_way: random.bernoulli(0.3),
            joins: None,
        });
        let mut flows: Vec<FlowPath> = flows.filter(|flow| agree(&graph, &mut ways, flow)).collect();
        // Up to five flows join some of them, which may have much higher numbers. Those at odd ports go back.
        for first in 0..flows.len() {
            let mut nodes = flows[first].nodes.clone();
            let joining = if random.bernoulli(0.3) { 1 + (random.uniform() * 5.0) as u32 } else { 0 };
            for port in (1..=joining).map(Port) {
                nodes.reverse();
                let joins = Some(Join { flow: FlowId(first as u32), port });
                let flow = FlowPath { nodes: nodes.clone(), others: Vec::new(), one_way: false, joins };
                if agree(&graph, &mut ways, &flow) {
                    flows.push(flow);
                }
            }
        }
        let wiring = Wiring::new(&graph, &agents, &flows, &MovingHosts::default());
        let wires: BTreeMap<_, _> = wiring.wires.iter().copied().collect();
        assert_eq!(wires.len(), wiring.wires.len(), "a port has one wire");
        Case {
            graph,
            agents,
            flows,
            wiring,
            wires,
            attached: None,
            joint: BTreeMap::new(),
            fixed: Graph::new(),
        }
    }

    /// A network with a moving host, which is the last node, and its base stations in order.
    fn moving(run: u64) -> (Case, Vec<HostId>) {
        let mut random = Streams::new(2, run).stream("networks");
        let mut graph = Graph::new();
        let mut agents = Vec::new();
        let mut hosts = vec![graph.add_node()];
        // A random tree, and further links.
        for _ in 0..1 + random.below(7) {
            let (host, other) = (graph.add_node(), hosts[random.below(hosts.len() as u64) as usize]);
            graph.connect(other, host);
            hosts.push(host);
        }
        for (&a, &b) in hosts.iter().zip(hosts.iter().skip(2)) {
            if graph.link(a, b).is_none() && random.bernoulli(0.3) {
                graph.connect(a, b);
            }
        }
        let fixed = graph.clone();
        let mobile = graph.add_node();
        let stations: Vec<HostId> = hosts.iter().copied().filter(|_| random.bernoulli(0.5)).collect();
        stations.iter().for_each(|&station| _ = graph.connect(station, mobile));
        let links =
            (0..graph.nodes()).map(|node| graph.neighbours(HostId(node as u32)).len()).sum::<usize>() / 2;
        while agents.len() < links {
            agents.push([(); 2].map(|()| number(&mut random)));
        }
        let mut paths = ShortestPaths::default();
        let mut flows = Vec::new();
        for &host in &hosts {
            let (up, one_way) = (random.bernoulli(0.5), random.bernoulli(0.3));
            let mut all = Vec::new();
            for &station in &stations {
                let path = paths.between(&fixed, station, host).expect("the network is connected");
                let path = [vec![mobile], path].concat();
                all.push(if up { path } else { path.into_iter().rev().collect() });
            }
            if !all.is_empty() {
                flows.push(FlowPath { nodes: all.remove(0), others: all, one_way, joins: None });
            }
            // Between two hosts that stay.
            let other = hosts[random.below(hosts.len() as u64) as usize];
            if other != host {
                let nodes = paths.between(&fixed, host, other).expect("the network is connected");
                flows.push(FlowPath { nodes, others: Vec::new(), one_way, joins: None });
            }
        }
        let stations_of = BTreeMap::from([(mobile, stations.clone())]);
        // The agents next to the base stations are one component, or have control ports, or neither.
        let is_joint = run % 3 == 1;
        let connected = if run % 3 == 2 { vec![0] } else { Vec::new() };
        for &station in stations.iter().filter(|_| !connected.is_empty()) {
            let link = graph.link(station, mobile).expect("it is linked");
            let at_station = &mut agents[link.index()][0];
            *at_station = (*at_station).max(1);
        }
        let moving = MovingHosts { stations: stations_of, is_joint, connected, fixed };
        let wiring = Wiring::new(&graph, &agents, &flows, &moving);
        let wires = wiring.wires.iter().copied().collect();
        let joint = if is_joint { moving.stations } else { BTreeMap::new() };
        let fixed = moving.fixed;
        (Case { graph, agents, flows, wiring, wires, attached: None, joint, fixed }, stations)
    }

    /// The path of a packet of a flow from a port on, towards its destination (`forth`) or its source.
    fn walk(&self, flow: usize, forth: bool, at: PortRef) -> Walk {
        let nodes = &self.flows[flow].nodes;
        let (mut src, mut dst) = (nodes[0], nodes[nodes.len() - 1]);
        if !forth {
            (src, dst) = (dst, src);
        }
        let body = Body::Tcp(Segment::default());
        let (flow_id, dscp) = (FlowId(flow as u32), Dscp::DEFAULT);
        let packet = Packet {
            src,
            dst,
            flow: flow_id,
            size: Bytes(40),
            dscp,
            ecn: Ecn::NotEct,
            handle: Handle::NONE,
            body,
        };
        self.follow(packet, at)
    }

    /// The path of a packet from a port on.
    fn follow(&self, packet: Packet, mut at: PortRef) -> Walk {
        let (mut links, mut agents) = (Vec::new(), Vec::new());
        for _ in 0..100 {
            let (id, port) = self.wires[&at];
            let out = match &self.wiring.components[id.index()] {
                ComponentKind::Source(end) | ComponentKind::Sink(end) => {
                    let joins = self.flows[packet.flow.index()].joins;
                    assert_eq!(*end, joins.map_or(packet.flow, |join| join.flow));
                    return Walk { links, agents, end: (id, port) };
                }
                ComponentKind::Link(link, from) => {
                    links.push((*link, *from));
                    Port::ONLY
                }
                ComponentKind::Agent(_) if self.joint.is_empty() && port == Port::CONTROL => {
                    return Walk { links, agents, end: (id, port) };
                }
                ComponentKind::Agent(place) => {
                    agents.push(self.place(*place, port));
                    port.across()
                }
                ComponentKind::Bss(bss) => {
                    let out = self.through(*bss, packet, port);
                    let link = |port: Port| self.graph.bss(*bss)[port.index() - 1];
                    links.extend((port != Port::WIRED).then(|| (link(port), 1)));
                    links.extend((out != Port::WIRED).then(|| (link(out), 0)));
                    out
                }
                ComponentKind::Shared(radio) => {
                    assert_eq!(port, Port::WIRED);
                    let shared = self.graph.shared(*radio);
                    let reaches = |link: &LinkId| self.wiring.reached_over(*link, 0).contains(&packet.dst);
                    let mobile = shared.iter().position(reaches).expect("a mobile host reaches it");
                    links.push((shared[mobile], 0));
                    Port(1 + mobile as u32)
                }
                ComponentKind::Mover(_) => panic!("no wire leads to what moves a host"),
                ComponentKind::MovingRouter(_, router) => {
                    let mut out = Out::default();
                    let mut router = router.clone();
                    self.attached
                        .iter()
                        .for_each(|attached| router.on_signal(Time::ZERO, attached, &mut out));
                    router.receive(Time::ZERO, &packet, port, &mut out);
                    let Some((_, Effect::Send(port, _))) = out.take() else {
                        panic!("an output port has a wire")
                    };
                    port
                }
                ComponentKind::Router(router) => {
                    let mut out = Out::default();
                    router.clone().receive(Time::ZERO, &packet, port, &mut out);
                    let Some((_, Effect::Send(port, _))) = out.take() else {
                        panic!("an output port has a wire")
                    };
                    port
                }
            };
            at = (id, out);
        }
        panic!("a packet goes round");
    }

    /// The port by which a packet that entered a BSS at `port` leaves it.
    fn through(&self, id: BssId, packet: Packet, port: Port) -> Port {
        let streams = Streams::new(1, 0);
        let station = |(index, link): (usize, &LinkId)| Station {
            hosts: self.wiring.reached_over(*link, 0).iter().copied().collect(),
            channel: Model::Perfect.build(streams.stream("channel")),
            above_mac: AboveMac::default(),
            streams: StationStreams::named(&streams, &index.to_string()),
        };
        let stations = self.graph.bss(id).iter().enumerate().map(station).collect();
        let mut bss = Bss::new(BssConfig::default(), streams.stream("backoff"), stations);
        let mut out = Out::default();
        bss.receive(Time::ZERO, &packet, port, &mut out);
        loop {
            match out.take() {
                Some((_, Effect::Send(port, _))) => return port,
                Some((_, Effect::Drop(..))) => panic!("a lone packet is dropped"),
                Some(_) => {}
                None => {
                    let due = bss.next_wakeup();
                    assert!(due != Time::NEVER, "a packet does not come out");
                    bss.wake(due, &mut out);
                }
            }
        }
    }

    /// The agents that see a packet which crosses `links`, in order: at the end at which it enters a link those
    /// from the node on, at the other end those towards the node. Relaying by an access point within its BSS
    /// is not seen by the agents there.
    fn watched(&self, links: &[(LinkId, usize)]) -> Vec<AgentPlace> {
        let within = |a: usize, b: usize| b < links.len() && self.graph.stays_within(links[a].0, links[b].0);
        let mut seen = Vec::new();
        for (index, &(link, from)) in links.iter().enumerate() {
            for end in [from, 1 - from] {
                let bypassed = if end == from {
                    index > 0 && within(index - 1, index)
                } else {
                    within(index, index + 1)
                };
                if bypassed {
                    continue;
                }
                let chain = self.places(link, end);
                seen.extend(if end == from { chain } else { chain.into_iter().rev().collect() });
            }
        }
        seen
    }

    /// The agents at an end of a link, the nearest to the node first.
    fn places(&self, link: LinkId, end: usize) -> Vec<AgentPlace> {
        let number = self.agents[link.index()][end];
        let link = if end == 0 { self.graph.medium(link) } else { link };
        (0..number).map(|index| AgentPlace { link, end, index }).collect()
    }

    /// The links between consecutive nodes, each with the end at which the packet enters it.
    fn links(&self, nodes: &[HostId]) -> Vec<(LinkId, usize)> {
        let step = |pair: &[HostId]| {
            let link = self.graph.link(pair[0], pair[1]).expect("a path follows links");
            (link, usize::from(self.graph.ends(link)[0] != pair[0]))
        };
        nodes.windows(2).map(step).collect()
    }

    /// Whether a path over these links enters a BSS, leaves one, connects two stations of one, crosses two
    /// BSSs, and passes an agent at an access point.
    fn kinds(&self, links: &[(LinkId, usize)]) -> [bool; 5] {
        let steps = links.iter().map(|&(link, from)| (self.graph.station(link), from));
        let bsses: BTreeSet<BssId> = steps.clone().filter_map(|(station, _)| Some(station?.0)).collect();
        let inside = links.windows(2).any(|pair| self.graph.stays_within(pair[0].0, pair[1].0));
        let ways = |from: usize| steps.clone().any(|(station, end)| station.is_some() && end == from);
        let agent = self.watched(links).iter().any(|place| self.graph.station(place.link).is_some());
        [ways(0), ways(1), inside, bsses.len() > 1, agent]
    }

    /// The place of an agent that is entered at a port: one of several if it is joint.
    fn place(&self, place: AgentPlace, port: Port) -> AgentPlace {
        let mobile = self.graph.ends(place.link)[1 - place.end];
        match self.joint.get(&mobile) {
            Some(stations) if place.index == 0 => {
                let station = stations[usize::from(port.station())];
                let link = self.graph.link(station, mobile).expect("a base station has a link to the host");
                AgentPlace { link, ..place }
            }
            _ => place,
        }
    }

    fn agent(&self, place: AgentPlace) -> ComponentId {
        let is_it = |kind: &ComponentKind| matches!(kind, ComponentKind::Agent(at) if *at == place);
        ComponentId(self.wiring.components.iter().position(is_it).expect("it has one") as u32)
    }
}

#[test]
fn every_packet_follows_its_path() {
    let (mut walks, mut routers, mut crossed) = (0, 0, [0; 5]);
    for run in 0..2_000 {
        let case = Case::random(run);
        routers +=
            case.wiring.components.iter().filter(|kind| matches!(kind, ComponentKind::Router(_))).count();
        for (index, flow) in case.flows.iter().enumerate() {
            let ends = case.wiring.flows[index];
            let (mut nodes, mut from, mut to) = (flow.nodes.clone(), ends.source, ends.sink);
            for forth in [true, false] {
                if forth || !flow.one_way {
                    let links = case.links(&nodes);
                    for (index, found) in case.kinds(&links).into_iter().enumerate() {
                        crossed[index] += u32::from(found);
                    }
                    let expected = Walk { agents: case.watched(&links), links, end: to };
                    assert_eq!(case.walk(index, forth, from), expected, "run {run}");
                    walks += 1;
                }
                nodes.reverse();
                (from, to) = (to, from);
            }
        }
    }
    assert!(walks > 10_000 && routers > 1_000, "{walks} walks, {routers} routers");
    assert!(crossed.iter().all(|&walks| walks > 500), "{crossed:?}");
}

/// A packet to or from a moving host takes the path over the base station at which the host is.
#[test]
fn packets_of_a_moving_host_follow_it() {
    let (mut walks, mut routers) = (0, 0);
    for run in 0..2_000 {
        let (mut case, stations) = Case::moving(run);
        let is_router = |kind: &&ComponentKind| matches!(kind, ComponentKind::MovingRouter(..));
        routers += case.wiring.components.iter().filter(is_router).count();
        for station in 0..stations.len().max(1) {
            let host = HostId(case.graph.nodes() as u32 - 1);
            case.attached = Some(Signal::Attached { host, station: station as u16 });
            for (index, flow) in case.flows.iter().enumerate() {
                let ends = case.wiring.flows[index];
                let mut nodes = flow.all().nth(station).unwrap_or(&flow.nodes).clone();
                let links = case.links(&nodes);
                let expected = Walk { agents: case.watched(&links), links, end: ends.sink };
                assert_eq!(case.walk(index, true, ends.source), expected, "run {run}");
                walks += 1;
                if !flow.one_way {
                    nodes.reverse();
                    let links = case.links(&nodes);
                    let expected = Walk { agents: case.watched(&links), links, end: ends.source };
                    assert_eq!(case.walk(index, false, ends.sink), expected, "run {run}");
                }
            }
        }
    }
    assert!(walks > 10_000 && routers > 3_000, "{walks} walks, {routers} routers");
}

/// Packets for an agent at another base station of a moving host take the shortest path there.
#[test]
fn packets_between_base_stations_follow_the_fixed_network() {
    let mut walks = 0;
    for run in 0..2_000 {
        let (case, stations) = Case::moving(run);
        let host = HostId(case.graph.nodes() as u32 - 1);
        for addresses in case.wiring.addresses.values() {
            assert_eq!(addresses.len(), stations.len());
            let mut paths = ShortestPaths::default();
            let agents: Vec<ComponentId> = stations
                .iter()
                .map(|&station| {
                    let link = case.graph.link(station, host).expect("it is linked");
                    case.wiring.agents(&case.graph, link, 0)[0].id
                })
                .collect();
            for (from, to) in (0..stations.len()).flat_map(|a| (0..stations.len()).map(move |b| (a, b))) {
                if from == to {
                    continue;
                }
                let path = paths.between(&case.fixed, stations[from], stations[to]).expect("it is connected");
                let links = case.links(&path);
                let body = Body::Tcp(Segment::default());
                // Of a flow that may have no route anywhere.
                let (src, dst, flow) = (addresses[from], addresses[to], FlowId::NONE);
                let (dscp, ecn, handle) = (Dscp::DEFAULT, Ecn::NotEct, Handle::NONE);
                let packet = Packet { src, dst, flow, size: Bytes(40), dscp, ecn, handle, body };
                let found = case.follow(packet, (agents[from], Port::CONTROL));
                let end = (agents[to], Port::CONTROL);
                assert_eq!(found, Walk { agents: case.watched(&links), links, end }, "run {run}");
                walks += 1;
            }
        }
    }
    assert!(walks > 1_000, "{walks} walks");
}

/// A flow that joins another has its end components, at ports of its own; at an odd port, it goes back.
#[test]
fn a_joining_flow_shares_the_endpoints() {
    let mut joining = [0; 2];
    for run in 0..200 {
        let case = Case::random(run);
        for (ends, flow) in case.wiring.flows.iter().zip(&case.flows) {
            let Some(Join { flow, port }) = flow.joins else { continue };
            let first = case.wiring.flows[flow.index()];
            let [source, sink] = match port.0 % 2 == 1 {
                true => [first.sink.0, first.source.0],
                false => [first.source.0, first.sink.0],
            };
            assert_eq!((ends.source, ends.sink), ((source, port), (sink, port)));
            assert_eq!([first.source.1, first.sink.1], [Port(0), Port(0)]);
            joining[port.index() % 2] += 1;
        }
    }
    assert!(joining.iter().all(|&number| number > 200), "{joining:?}");
}

/// An agent forwards a packet through the opposite port, and replies through the port of arrival.
#[test]
fn packets_of_an_agent_reach_either_end() {
    let mut sent = 0;
    for run in 0..2_000 {
        let case = Case::random(run);
        for (index, flow) in case.flows.iter().enumerate().filter(|(_, flow)| !flow.one_way) {
            let ends = case.wiring.flows[index];
            for (link, from) in case.links(&flow.nodes) {
                for place in [0, 1].into_iter().flat_map(|end| case.places(link, end)) {
                    let agent = case.agent(place);
                    let onward = if place.end == from { Port::RADIO } else { Port::WIRED };
                    assert_eq!(case.walk(index, true, (agent, onward)).end, ends.sink, "run {run}");
                    assert_eq!(
                        case.walk(index, false, (agent, onward.across())).end,
                        ends.source,
                        "run {run}"
                    );
                    sent += 1;
                }
            }
        }
    }
    assert!(sent > 6_000, "{sent}");
}

#[test]
fn an_agent_watches_the_link_it_sends_over() {
    let mut of_cells = 0;
    for run in 0..2_000 {
        let case = Case::random(run);
        let part = |id: ComponentId| &case.wiring.components[id.index()];
        for &(watched, watcher) in &case.wiring.watches {
            let ComponentKind::Agent(of) = part(watcher) else { panic!("an agent watches") };
            let (link, end) = match part(watched) {
                ComponentKind::Link(link, from) => (*link, *from),
                ComponentKind::Bss(bss) => (case.graph.bss(*bss)[0], 0),
                _ => panic!("an agent watches a link or a BSS"),
            };
            assert_eq!((link, end), (of.link, of.end));
        }
        for (index, part) in case.wiring.components.iter().enumerate() {
            let ComponentKind::Agent(place) = part else { continue };
            if case.graph.station(place.link).is_some() {
                let watches = case.wiring.watches.iter().filter(|watch| watch.1.index() == index);
                assert_eq!(watches.count(), 1 - place.end, "run {run}");
                of_cells += 1;
            }
        }
    }
    assert!(of_cells > 500, "{of_cells}");
}

/// A BSS is one component, whatever the number of its stations, and shares the agents of its access point.
#[test]
fn a_bss_is_one_component() {
    let mut graph = Graph::new();
    let [server, ap, a, b, behind] = [0; 5].map(|_| graph.add_node());
    graph.connect(server, ap);
    let bss = [a, b].map(|station| graph.join(ap, station));
    graph.connect(b, behind);
    let path = |nodes: &[HostId]| FlowPath {
        nodes: nodes.to_vec(),
        others: Vec::new(),
        one_way: false,
        joins: None,
    };
    let flows = [path(&[server, ap, a]), path(&[behind, b, ap, server]), path(&[a, ap, b, behind])];
    let wiring = Wiring::new(&graph, &[[0, 0], [1, 0], [1, 0], [0, 0]], &flows, &MovingHosts::default());
    let count =
        |wanted: fn(&ComponentKind) -> bool| wiring.components.iter().filter(|part| wanted(part)).count();
    assert_eq!(count(|kind| matches!(kind, ComponentKind::Bss(_))), 1);
    assert_eq!(count(|kind| matches!(kind, ComponentKind::Agent(_))), 1);
    assert_eq!(graph.bss(BssId(0)), bss);
    let hosts = |station: usize| wiring.reached_over(bss[station], 0).iter().copied().collect();
    let (one, other): (Vec<HostId>, Vec<HostId>) = (hosts(0), hosts(1));
    assert_eq!((one, other), (vec![a], vec![behind]));
    // Relayed packets do not leave the BSS by a wire.
    let wiring = Wiring::new(&graph, &[[0; 2]; 4], &[path(&[a, ap, b])], &MovingHosts::default());
    let wires = wiring.wires.iter().flat_map(|(from, to)| [from.1, to.1]);
    assert_eq!(wiring.components.len(), 3);
    assert!(wires.filter(|port| *port == Port(2)).count() == 2 && wiring.wires.len() == 4);
}

/// A chain in which all packets follow the same path needs no router.
#[test]
fn a_chain_needs_no_router() {
    let mut graph = Graph::new();
    let nodes: Vec<HostId> = (0..6).map(|_| graph.add_node()).collect();
    nodes.windows(2).for_each(|pair| _ = graph.connect(pair[0], pair[1]));
    let path = |from: usize, to: usize, one_way| FlowPath {
        nodes: nodes[from..=to].to_vec(),
        others: Vec::new(),
        one_way,
        joins: None,
    };
    let routers = |flows: &[FlowPath]| {
        let wiring = Wiring::new(&graph, &[[0; 2]; 5], flows, &MovingHosts::default());
        wiring.components.iter().filter(|kind| matches!(kind, ComponentKind::Router(_))).count()
    };
    assert_eq!(routers(&[path(0, 5, false)]), 0);
    // Cross traffic enters and leaves at the ends of the middle link: one router.
    assert_eq!(routers(&[path(0, 5, false), path(2, 3, true)]), 1);
}
