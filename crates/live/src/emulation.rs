//! Emulation: the network of a scenario between two real hosts.
//!
//! The source and the destination of the scenario's first connection are gateways instead of a TCP sender and
//! receiver, where real packets enter and leave. The caller keeps their bytes and advances the clock. Other
//! connections, traffic and applications of the scenario are simulated.
//!
//! Agents of schemes see the segments of real connections as those of simulated ones, and may hold, suppress,
//! copy and change them. So one real packet may leave several times, or never, and its bytes are needed until
//! no link and no agent has it:
//!
//! ```text
//!          enter                                                          Carried: as the packet left
//! driver ─────────> gateway ──> links ──> agent ──> links ──> gateway ─────────────────────────────> driver
//!    ^                         counted    asked     counted                                            │
//!    └──────────────────────────────── unused: the handles of bytes that may go <──────────────────────┘
//! ```

use std::collections::BTreeMap;

use lasthop_base::{BitRate, Bytes, Duration, Streams, Time};
use lasthop_experiment::assemble::{Layout, World};
use lasthop_experiment::measure::{AgentCounters, by_scheme};
use lasthop_link::queue::Queue;
use lasthop_proto::scheme::{Combination, LinkEnd};
use lasthop_proto::tcp::Segment;
use lasthop_proto::{
    Body, Component, ComponentId, Datagram, DropReason, Dscp, Ecn, FlowId, Handle, HostId, Out, Packet, Port,
};
use lasthop_scenario::network::{Network, Workload};
use lasthop_scenario::{Scenario, ScenarioError};
use lasthop_sim::network::PortRef;
use lasthop_sim::{Copies, Engine, LinkStats, Node, Tap, Wire};
use serde::Serialize;

mod refusal;
mod split;

pub use split::SplitSite;

/// Maximum duration of an emulation. Random processes are drawn on demand.
const LIMIT: Duration = Duration::from_secs(24 * 3600);

/// Number of flows that a fair queue distinguishes.
const LANES: usize = 64;

/// The number of connections that agents tell apart.
const LANES_FOR_AGENTS: usize = 256;

/// The two ends of an emulated network, as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The source of the scenario's first connection.
    Source,
    /// The destination of the scenario's first connection.
    Destination,
}

impl Side {
    /// Both sides, in the order of [`hosts`](Emulation::hosts).
    pub const BOTH: [Side; 2] = [Side::Source, Side::Destination];
}

/// A real packet that enters the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entering {
    /// Its bytes.
    pub handle: Handle,
    /// Size at the network layer.
    pub size: Bytes,
    /// DSCP field.
    pub dscp: Dscp,
    /// ECN field.
    pub ecn: Ecn,
    /// The TCP segment, if agents are to see one. It must be the only connection on its
    /// [lane](Emulation::lanes).
    pub segment: Option<Segment>,
}

/// A real packet that has left the network, or was dropped. One that agents copy leaves several times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carried {
    /// When it left the network or was dropped.
    pub time: Time,
    /// The packet. Its ECN and DSCP fields and its segment may have been changed on the way.
    pub packet: Packet,
    /// The side where it left; or the reason of the drop, and the component.
    pub outcome: Result<Side, (ComponentId, DropReason)>,
}

/// Counters of one direction of a link, of a cell, or of a shared radio, including simulated traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkCounters {
    /// The nodes from and to which the direction leads, as `FROM-TO`; for a cell, the access point; for a
    /// shared radio, the base station.
    pub link: String,
    /// Packets dropped by a full queue.
    pub queue_drops: u64,
    /// Packets dropped by the queue discipline.
    pub aqm_drops: u64,
    /// Packets marked by the queue discipline.
    pub marked: u64,
    /// Packets lost by errors on the air.
    pub lost_on_air: u64,
    /// Packets discarded by the ARQ, or in a black hole.
    pub link_discards: u64,
    /// Packets for a mobile host at another base station.
    pub unreachable: u64,
    /// Transmissions on the air, of links with a channel.
    pub link_attempts: Option<u64>,
    /// Transmissions with an error, of links with a channel.
    pub link_failures: Option<u64>,
    /// Bits transmitted on the air, after expansion and coding, of links with a channel.
    pub link_bits: Option<u64>,
    /// Transmission time in seconds, of links with a channel.
    pub air_time_s: Option<f64>,
}

/// A component at an end of the emulated network. The driver sends and receives for it.
struct Gateway;

impl Component for Gateway {
    fn receive(&mut self, _now: Time, _packet: &Packet, _port: Port, _out: &mut Out) {}
}

/// What a component is to the boundary of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Inside,
    Gateway(Side),
    Agent,
    /// Splits connections: packets that it sends are new.
    Proxy,
}

impl Role {
    /// Whether the component may send a packet again, or another instead.
    fn is_agent(self) -> bool {
        matches!(self, Role::Agent | Role::Proxy)
    }
}

/// Records the packets that leave the network, and counts the copies of each real packet in it.
struct Boundary {
    /// Indexed by component.
    roles: Vec<Role>,
    carried: Vec<Carried>,
    /// Drops of each component.
    drops: Vec<[u64; 5]>,
    /// The copies of each real packet in the network.
    handles: Copies,
}

/// The index of a drop reason in [`Boundary::drops`].
fn reason_index(reason: DropReason) -> Option<usize> {
    match reason {
        DropReason::QueueFull => Some(0),
        DropReason::ActiveQueue => Some(1),
        DropReason::Corrupted => Some(2),
        DropReason::AttemptsExhausted | DropReason::TooLarge => Some(3),
        DropReason::Unreachable => Some(4),
        DropReason::Suppressed | DropReason::Unrecovered | DropReason::Scripted => None,
    }
}

impl Tap for Boundary {
    fn cross(&mut self, time: Time, wire: Wire, packet: &Packet) {
        if packet.handle == Handle::NONE {
            return;
        }
        let [from, to] = [wire.from, wire.to].map(|(id, _)| self.roles[id.index()]);
        match from {
            Role::Agent => self.handles.add(packet.handle),
            Role::Proxy => self.handles.add_or_begin(packet.handle),
            Role::Inside | Role::Gateway(_) => {}
        }
        if to != Role::Inside {
            self.handles.remove(packet.handle);
        }
        if let Role::Gateway(side) = to {
            self.carried.push(Carried { time, packet: *packet, outcome: Ok(side) });
        }
    }

    fn drop(&mut self, time: Time, at: ComponentId, packet: &Packet, reason: DropReason) {
        if let Some(index) = reason_index(reason) {
            self.drops[at.index()][index] += 1;
        }
        if packet.handle != Handle::NONE {
            if self.roles[at.index()] == Role::Inside {
                self.handles.remove(packet.handle);
            }
            self.carried.push(Carried { time, packet: *packet, outcome: Err((at, reason)) });
        }
    }

    fn sees_wire(&self, wire: &Wire) -> bool {
        let [from, to] = [wire.from, wire.to].map(|(id, _)| self.roles[id.index()]);
        to != Role::Inside || from.is_agent()
    }

    fn sees_signals(&self) -> bool {
        false
    }

    fn sees_component(&self, _id: ComponentId) -> bool {
        false
    }
}

/// The network of a scenario between two real hosts. See [`Emulation::new`].
#[allow(missing_debug_implementations)]
pub struct Emulation {
    engine: Engine<Boundary>,
    /// The gateways of each side: output ports and flows.
    lanes: [Vec<(PortRef, FlowId)>; 2],
    hosts: [HostId; 2],
    names: [String; 2],
    links: Vec<(ComponentId, String)>,
    agents: Vec<Agent>,
    /// The base stations that split connections, with the sites whose proxies are not installed yet.
    proxies: Vec<(Agent, Option<SplitSite>)>,
    packet_size: Bytes,
    slowest: BitRate,
    start: Time,
    simulated: usize,
}

/// An agent of a scheme, or a proxy.
struct Agent {
    id: ComponentId,
    scheme: &'static str,
    /// The scheme and the node, for people.
    name: String,
    /// When the emulation began.
    counters: AgentCounters,
}

/// Counters of an emulation.
#[derive(Clone, Debug, PartialEq)]
pub struct EmulationCounters {
    /// Those of all links.
    pub links: Vec<LinkCounters>,
    /// Those of the schemes' agents, by the names of their metrics: `SCHEME.COUNTER`.
    pub schemes: BTreeMap<String, u64>,
}

/// The sums over the links of a radio.
fn of_radio(links: impl Iterator<Item = LinkStats>) -> LinkStats {
    let mut sums = LinkStats::default();
    for stats in links {
        sums.marked += stats.marked;
        sums.attempts += stats.attempts;
        sums.failed_attempts += stats.failed_attempts;
        sums.bits_on_air += stats.bits_on_air;
        sums.air_time += stats.air_time;
    }
    sums
}

fn boxed(component: impl Component + 'static) -> Box<dyn Component> {
    Box::new(component)
}

fn has_agents(combination: &Combination<'_>) -> bool {
    [LinkEnd::BaseStation, LinkEnd::MobileHost]
        .into_iter()
        .any(|end| combination.agents(end).next().is_some())
}

/// Adds copies of the first connection if agents or a queue tell flows apart, so that real flows can be
/// spread over them; returns the flows of real packets.
fn add_lanes(network: &mut Network, has_agents: bool) -> Vec<FlowId> {
    let mut real = vec![FlowId(0)];
    let is_fair = |queue: &Queue| match queue {
        Queue::DropTail(_) => false,
        Queue::Managed(management) => management.about().separates_flows,
    };
    let any_fair = network.queues().any(is_fair);
    let lanes = match (has_agents, any_fair) {
        (true, _) => LANES_FOR_AGENTS,
        (false, true) => LANES,
        (false, false) => 1,
    };
    while real.len() < lanes {
        real.push(FlowId(network.flows.len() as u32));
        let lane = network.flows[0].clone();
        network.flows.push(lane);
    }
    real
}

impl Emulation {
    /// The network of the scenario with the scheme `scheme` between two real hosts, at the ends of
    /// the first connection, whose TCP settings are ignored. All random streams are those of
    /// [`run`](lasthop_experiment::Experiment::run) with the same seed and run number: links have the same fades at the same
    /// times.
    ///
    /// If the scheme splits connections, the caller [installs](Emulation::split) the proxies before the first packet.
    ///
    /// # Errors
    /// As [`set_up`](lasthop_experiment::Experiment::set_up), and if there is no connection, or the scheme needs more than
    /// links and base stations: a source or a destination with a TCP of its own, or a proxy that real hosts do
    /// not support.
    pub fn new(scenario: &Scenario, scheme: &str, seed: u64, run: u64) -> Result<Emulation, ScenarioError> {
        let mut long = scenario.clone();
        (long.limit, long.warmup) = (LIMIT, Duration::ZERO);
        let setup = refusal::set_up(&long, scheme)?;
        let mut network = setup.layout().network().clone();
        let combination = setup.combination();
        let real = add_lanes(&mut network, has_agents(combination));
        let layout = Layout::new(network, combination);
        let gateway = |flow: FlowId| real.contains(&flow).then(|| Node::from(boxed(Gateway)));
        let world = layout.world_with(combination, Streams::new(seed, run), gateway);
        let counters = layout.agent_components(combination).map(|agent| AgentCounters::of(&agent)).collect();
        let mut emulation = Emulation::of(&layout, world, &real, counters);
        emulation.proxies = split::sites(scenario, &setup, &layout, &real, Streams::new(seed, run));
        Ok(emulation)
    }

    fn of(layout: &Layout, world: World, real: &[FlowId], counters: Vec<AgentCounters>) -> Emulation {
        let network = layout.network();
        let ends = |flow: &FlowId| layout.ends(*flow);
        let links = layout.link_names();
        let mut roles = vec![Role::Inside; world.builder.len()];
        for flow in real {
            let ends = ends(flow);
            roles[ends.source.0.index()] = Role::Gateway(Side::Source);
            roles[ends.sink.0.index()] = Role::Gateway(Side::Destination);
        }
        let agents = layout.agents().zip(layout.agent_nodes()).zip(counters);
        let agents = agents.map(|((agent, node), counters)| {
            let (id, scheme) = (agent.id, agent.scheme);
            Agent { id, scheme, name: format!("{scheme} at {node}"), counters }
        });
        let agents: Vec<Agent> = agents.collect();
        agents.iter().for_each(|agent| roles[agent.id.index()] = Role::Agent);
        layout.proxies().for_each(|(id, _)| roles[id.index()] = Role::Proxy);
        let (drops, handles) = (vec![[0; 5]; roles.len()], Copies::default());
        let tap = Boundary { drops, roles, carried: Vec::new(), handles };
        let first = &network.flows[0];
        let hosts = [first.source(), first.destination()];
        let path = &first.path.nodes;
        let back: Vec<HostId> = path.iter().rev().copied().collect();
        let start = match &first.workload {
            Workload::Transfer { transfer, .. } => transfer.start,
            _ => Time::ZERO,
        };
        Emulation {
            lanes: [
                real.iter().map(|flow| (ends(flow).source, *flow)).collect(),
                real.iter().map(|flow| (ends(flow).sink, *flow)).collect(),
            ],
            names: hosts.map(|host| network.names[host.index()].clone()),
            hosts,
            links,
            agents,
            packet_size: first.tcp.packet_size,
            slowest: network.slowest(path).min(network.slowest(&back)),
            start,
            simulated: network.flows.len() - real.len(),
            proxies: Vec::new(),
            engine: world.builder.build(tap),
        }
    }

    /// The names of the hosts at both ends.
    pub fn hosts(&self) -> &[String; 2] {
        &self.names
    }

    /// The lowest mean rate of a link between the hosts, in either direction.
    pub fn slowest_rate(&self) -> BitRate {
        self.slowest
    }

    /// The packet size of the replaced connection: the MTU that gives packets of the same size.
    pub fn packet_size(&self) -> Bytes {
        self.packet_size
    }

    /// The start time of the replaced connection.
    pub fn start(&self) -> Time {
        self.start
    }

    /// The number of simulated flows.
    pub fn simulated_flows(&self) -> usize {
        self.simulated
    }

    /// The number of real flows that queues and agents can distinguish: 1 if none of them distinguishes
    /// flows.
    pub fn lanes(&self) -> usize {
        self.lanes[0].len()
    }

    /// Whether agents are in the network: they see the [segments](Entering::segment) of real packets.
    pub fn has_agents(&self) -> bool {
        !self.agents.is_empty()
    }

    /// Handles all events due by `until`, each at its own time, and sets the clock to `until`.
    pub fn advance(&mut self, until: Time) {
        self.engine.advance(until);
    }

    /// Lets a real packet enter at `side` now; its flow is number `lane` modulo [`lanes`](Emulation::lanes).
    ///
    /// # Panics
    /// If its handle is [`Handle::NONE`], or [proxies](Emulation::split) are missing.
    pub fn enter(&mut self, side: Side, lane: usize, entering: &Entering) {
        let Entering { handle, size, dscp, ecn, segment } = *entering;
        assert!(handle != Handle::NONE, "a real packet has a handle");
        assert!(self.proxies.iter().all(|(_, site)| site.is_none()), "the proxies are installed");
        let lanes = &self.lanes[side as usize];
        let (port, flow) = lanes[lane % lanes.len()];
        let (src, dst) = (self.hosts[side as usize], self.hosts[1 - side as usize]);
        let body =
            segment.map_or_else(|| Body::Datagram(Datagram { seq: 0, sent: self.engine.now() }), Body::Tcp);
        self.engine.tap_mut().handles.begin(handle);
        self.engine.inject(port, &Packet { src, dst, flow, size, dscp, ecn, handle, body });
    }

    /// The next deadline, or an earlier time; [`Time::NEVER`] without one.
    pub fn next_wakeup(&self) -> Time {
        self.engine.next_wakeup()
    }

    /// Takes the outcomes of packets since the last call, in order of time.
    pub fn take(&mut self) -> impl Iterator<Item = Carried> {
        self.engine.tap_mut().carried.drain(..)
    }

    /// Whether [`take`](Emulation::take) would return something.
    pub fn has_carried(&self) -> bool {
        !self.engine.tap().carried.is_empty()
    }

    /// Calls `unused` with handles whose packets are neither in the network nor with an agent, each once.
    /// With agents, many are found together: when it is worth it, or if `all` are wanted, at the cost of a
    /// pass over all packets.
    pub fn take_unused(&mut self, all: bool, unused: impl FnMut(Handle)) {
        let is_due = self.engine.tap().handles.is_worth_a_pass();
        if !(all || is_due) {
            return;
        }
        let mut kept = Vec::new();
        for agent in &self.agents {
            self.engine.node(agent.id).kept(&mut |packet| kept.push(packet.handle));
        }
        self.engine.tap_mut().handles.sweep(&kept, unused);
    }

    /// The number of copies of real packets in the network, and the number of packets that only agents kept
    /// when all unused ones were last [taken](Emulation::take_unused).
    pub fn held(&self) -> (usize, usize) {
        self.engine.tap().handles.held()
    }

    /// The name of the link or of the agent that dropped a packet.
    pub fn dropper(&self, id: ComponentId) -> &str {
        let link = self.links.iter().find(|link| link.0 == id).map(|(_, name)| name);
        let agent = || self.all_agents().find(|agent| agent.id == id).map(|agent| &agent.name);
        link.or_else(agent).map_or("network", |name| name)
    }

    /// Whether a component is an agent or a proxy.
    pub fn is_agent(&self, id: ComponentId) -> bool {
        self.all_agents().any(|agent| agent.id == id)
    }

    fn all_agents(&self) -> impl Iterator<Item = &Agent> {
        self.proxies.iter().map(|(proxy, _)| proxy).chain(&self.agents)
    }

    /// The scheme of an agent; `None` for other components.
    pub fn scheme_of_agent(&self, id: ComponentId) -> Option<&'static str> {
        self.agents.iter().find(|agent| agent.id == id).map(|agent| agent.scheme)
    }

    /// The counters of all links and agents.
    pub fn finish(mut self) -> EmulationCounters {
        self.engine.settle_counters();
        let counters = |(id, link): &(ComponentId, String)| {
            let [queue_drops, aqm_drops, lost_on_air, link_discards, unreachable] =
                self.engine.tap().drops[id.index()];
            let (stats, is_radio) = match self.engine.node(*id) {
                Node::Link(link) => (link.stats(), link.is_radio()),
                Node::Shared(radio) => (of_radio(radio.stats()), true),
                _ => (LinkStats::default(), false),
            };
            let on_air = is_radio.then_some(stats);
            LinkCounters {
                link: link.clone(),
                queue_drops,
                aqm_drops,
                marked: stats.marked,
                lost_on_air,
                link_discards,
                unreachable,
                link_attempts: on_air.map(|stats| stats.attempts),
                link_failures: on_air.map(|stats| stats.failed_attempts),
                link_bits: on_air.map(|stats| stats.bits_on_air),
                air_time_s: on_air.map(|stats| stats.air_time.as_secs_f64()),
            }
        };
        let links = self.links.iter().map(counters).collect();
        let now = |agent: &Agent| AgentCounters::of(self.engine.node(agent.id)).since(&agent.counters);
        let agents: Vec<AgentCounters> = self.all_agents().map(now).collect();
        let schemes = by_scheme(self.all_agents().map(|agent| agent.scheme).zip(&agents));
        let schemes = schemes.iter().map(|counter| (counter.to_string(), counter.value)).collect();
        EmulationCounters { links, schemes }
    }
}
