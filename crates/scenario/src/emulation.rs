//! Emulation: the network of a scenario between two real hosts.
//!
//! The source and the destination of the scenario's first connection are gateways instead of a TCP sender and a receiver.
//! Real packets enter and leave there; whoever drives the emulation keeps their bytes, and moves its clock. Other
//! connections, traffic and applications of the scenario are simulated beside them.

use lasthop_base::{Bytes, Duration, Streams, Time};
use lasthop_proto::scheme::LinkEnd;
use lasthop_proto::{
    Body, Component, ComponentId, Datagram, DropReason, Dscp, Ecn, FlowId, Handle, HostId, Out, Packet, Port,
};
use lasthop_sim::network::PortRef;
use lasthop_sim::queue::{Management, Queue};
use lasthop_sim::{Engine, Node, RadioStats, Tap, Wire};
use serde::Serialize;

use crate::build::{Layout, Network, NetworkLink, Workload, World};
use crate::file::{Location, ScenarioError};
use crate::schema::Scenario;

/// The longest emulation. Random processes are drawn up to there as they are needed.
const LIMIT: Duration = Duration::from_secs(24 * 3600);

/// The number of flows that a fair queue tells apart.
const LANES: usize = 64;

/// The two ends of an emulated network, as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Where the data of the scenario's first connection begin.
    Source,
    /// Where they end.
    Destination,
}

impl Side {
    /// Both, in the order of [`hosts`](Emulation::hosts).
    pub const BOTH: [Side; 2] = [Side::Source, Side::Destination];
}

/// The outcome of a real packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carried {
    /// When it left the network or was dropped.
    pub time: Time,
    /// The packet. Its ECN field may have been marked.
    pub packet: Packet,
    /// Where it left, or why it was dropped and by which component.
    pub outcome: Result<Side, (ComponentId, DropReason)>,
}

/// Counters of one direction of a link, of a cell, or of a shared radio. Packets of simulated traffic count, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkCounters {
    /// The nodes from and to which the direction leads, as `FROM-TO`; for a cell, the access point; for a shared radio,
    /// the base station.
    pub link: String,
    /// Packets dropped by a full queue.
    pub queue_drops: u64,
    /// Packets dropped by the queue discipline.
    pub aqm_drops: u64,
    /// Packets marked by the queue discipline.
    pub marked: u64,
    /// Packets lost by errors on the air.
    pub lost_on_air: u64,
    /// Packets that the ARQ gave up.
    pub link_discards: u64,
    /// Packets for a mobile host that was not there.
    pub unreachable: u64,
    /// Transmissions on the air, of links with a channel.
    pub link_attempts: Option<u64>,
    /// Transmissions with an error, of links with a channel.
    pub link_failures: Option<u64>,
}

/// A component at an end of the emulated network. The driver sends and receives for it.
struct Gateway;

impl Component for Gateway {
    fn receive(&mut self, _now: Time, _packet: &Packet, _port: Port, _out: &mut Out) {}
}

/// Records the packets that leave the network.
struct Boundary {
    /// Indexed by component.
    gateways: Vec<Option<Side>>,
    carried: Vec<Carried>,
    /// Drops of each component.
    drops: Vec<[u64; 5]>,
}

/// The place of a reason in [`Boundary::drops`].
fn reason_index(reason: DropReason) -> Option<usize> {
    match reason {
        DropReason::QueueFull => Some(0),
        DropReason::ActiveQueue => Some(1),
        DropReason::Corrupted => Some(2),
        DropReason::AttemptsExhausted => Some(3),
        DropReason::Unreachable => Some(4),
        DropReason::Suppressed | DropReason::Unrecovered | DropReason::Scripted => None,
    }
}

impl Tap for Boundary {
    fn cross(&mut self, time: Time, wire: Wire, packet: &Packet) {
        if packet.handle == Handle::NONE {
            return;
        }
        if let Some(side) = self.gateways[usize::from(wire.to.0.0)] {
            self.carried.push(Carried { time, packet: *packet, outcome: Ok(side) });
        }
    }

    fn drop(&mut self, time: Time, at: ComponentId, packet: &Packet, reason: DropReason) {
        if let Some(index) = reason_index(reason) {
            self.drops[usize::from(at.0)][index] += 1;
        }
        if packet.handle != Handle::NONE {
            self.carried.push(Carried { time, packet: *packet, outcome: Err((at, reason)) });
        }
    }

    fn sees_wire(&self, wire: &Wire) -> bool {
        self.gateways[usize::from(wire.to.0.0)].is_some()
    }

    fn sees_signals(&self) -> bool {
        false
    }

    fn sees_component(&self, _id: ComponentId) -> bool {
        false
    }
}

/// The network of a scenario between two real hosts. See [`Scenario::emulate`].
#[allow(missing_debug_implementations)]
pub struct Emulation {
    engine: Engine<Boundary>,
    /// The gateways of each side: output ports and flows.
    lanes: [Vec<(PortRef, FlowId)>; 2],
    hosts: [HostId; 2],
    names: [String; 2],
    links: Vec<(ComponentId, String)>,
    packet_size: Bytes,
    start: Time,
    simulated: usize,
}

impl Scenario {
    /// The network of the scenario with the scheme `scheme` between two real hosts: at the ends of the first connection,
    /// whose TCP settings do not matter. All random streams are those of [`run`](Scenario::run) with the same seed and run
    /// number: links meet the same fades, at the same times.
    ///
    /// # Errors
    /// As [`set_up`](Scenario::set_up), and if there is no connection, or the scheme does more than use links: its agents
    /// and reactions work on simulated segments.
    pub fn emulate(&self, scheme: &str, seed: u64, run: u64) -> Result<Emulation, ScenarioError> {
        let refuse = |message: String| {
            ScenarioError::new(message, Location::File { name: &self.file, text: "", span: None })
        };
        let long = Scenario { limit: LIMIT, warmup: Duration::ZERO, ..self.clone() };
        let setup = long.set_up(scheme)?;
        let mut network = setup.layout().network().clone();
        if network.connections == 0 {
            return Err(refuse(String::from(
                "emulate: found no connection, expected one, at whose ends real hosts are; add a table [transfer]",
            )));
        }
        let combination = setup.combination();
        if let Some(what) = beyond_links(combination, &network) {
            let usable: Vec<String> = self
                .schemes
                .iter()
                .filter(|name| {
                    let other = self.scheme.combination(name).ok();
                    other.is_some_and(|other| beyond_links(&other, &network).is_none())
                })
                .map(|name| format!("\"{name}\""))
                .collect();
            let remedy = match usable.as_slice() {
                [] => String::from("\"basic\", or \"arq\" for a link that recovers its losses"),
                names => names.join(" or "),
            };
            return Err(refuse(format!(
                "scheme: found \"{}\", which {what}; real packets have no such hosts. Expected a scheme that only \
                 uses the link: {remedy}",
                combination.name()
            )));
        }
        let real = add_lanes(&mut network);
        let layout = Layout::new(network, combination);
        let gateway = |flow: FlowId| real.contains(&flow).then(|| Node::from(boxed(Gateway)));
        let world = layout.world_with(combination, Streams::new(seed, run), gateway);
        Ok(Emulation::new(&layout, world, &real))
    }
}

/// Packets marked by the links of a radio; attempts on the air and those that failed.
fn of_radio<'a>(links: impl IntoIterator<Item = &'a RadioStats>) -> (u64, Option<(u64, u64)>) {
    let (mut marked, mut attempts, mut failed) = (0, 0, 0);
    for stats in links {
        marked += stats.marked;
        attempts += stats.attempts;
        failed += stats.failed_attempts;
    }
    (marked, Some((attempts, failed)))
}

fn boxed(component: impl Component + 'static) -> Box<dyn Component> {
    Box::new(component)
}

/// The activity of a combination beyond its use of links, as the verb of a sentence; `None` without one.
fn beyond_links(
    combination: &lasthop_proto::scheme::Combination<'_>,
    network: &Network,
) -> Option<&'static str> {
    let has_agents = [LinkEnd::BaseStation, LinkEnd::MobileHost]
        .into_iter()
        .any(|end| combination.agents(end).next().is_some());
    if network.settings().any(|tcp| combination.split(tcp).is_some()) {
        Some("splits connections of simulated hosts")
    } else if !combination.reactions().is_empty() || !combination.receiver_reactions().is_empty() {
        Some("changes the TCP of simulated hosts")
    } else if has_agents || combination.copies_to_base_stations() {
        Some("has agents that read simulated segments")
    } else {
        None
    }
}

/// Adds copies of the first connection if a queue tells flows apart, so that real flows can be spread over them; returns
/// the flows of real packets.
fn add_lanes(network: &mut Network) -> Vec<FlowId> {
    let mut real = vec![FlowId(0)];
    let is_fair = |queue: &Queue| matches!(queue, Queue::Managed(Management::FqCodel(_)));
    let any_fair = network.links.iter().any(|link| match link {
        NetworkLink::Wired(wired) => is_fair(&wired.queue),
        NetworkLink::Radio(hop) => is_fair(&hop.down.queue) || is_fair(&hop.up.queue),
        NetworkLink::Station(_) => false,
    });
    while any_fair && real.len() < LANES {
        real.push(FlowId(network.flows.len() as u16));
        let lane = network.flows[0].clone();
        network.flows.push(lane);
    }
    real
}

impl Emulation {
    fn new(layout: &Layout, world: World, real: &[FlowId]) -> Emulation {
        let network = layout.network();
        let ends = |flow: &FlowId| layout.ends(*flow);
        let links = layout.link_names();
        let mut gateways = vec![None; world.builder.len()];
        for flow in real {
            let ends = ends(flow);
            gateways[usize::from(ends.source.0.0)] = Some(Side::Source);
            gateways[usize::from(ends.sink.0.0)] = Some(Side::Destination);
        }
        let tap = Boundary { drops: vec![[0; 5]; gateways.len()], gateways, carried: Vec::new() };
        let first = &network.flows[0];
        let hosts = [first.source(), first.destination()];
        let start = match &first.workload {
            Workload::Transfer { transfer, .. } => transfer.start,
            _ => Time::ZERO,
        };
        Emulation {
            lanes: [
                real.iter().map(|flow| (ends(flow).source, *flow)).collect(),
                real.iter().map(|flow| (ends(flow).sink, *flow)).collect(),
            ],
            names: hosts.map(|host| network.names[usize::from(host.0)].clone()),
            hosts,
            links,
            packet_size: first.tcp.packet_size,
            start,
            simulated: network.flows.len() - real.len(),
            engine: world.builder.build(tap),
        }
    }

    /// The names of the hosts at both ends.
    pub fn hosts(&self) -> &[String; 2] {
        &self.names
    }

    /// The packet size of the connection that the real hosts replace: the MTU with which their packets are as long.
    pub fn packet_size(&self) -> Bytes {
        self.packet_size
    }

    /// When that connection would have started.
    pub fn start(&self) -> Time {
        self.start
    }

    /// The number of flows that are simulated beside the real ones.
    pub fn simulated_flows(&self) -> usize {
        self.simulated
    }

    /// The number of real flows that queues can tell apart: 1 if none does.
    pub fn lanes(&self) -> usize {
        self.lanes[0].len()
    }

    /// Handles all events due by `until`, each at its own time, and sets the clock to `until`.
    pub fn advance(&mut self, until: Time) {
        self.engine.advance(until);
    }

    /// A packet of `size` enters at `side`, now; the `lane` tells its flow apart, modulo [`lanes`](Emulation::lanes).
    ///
    /// # Panics
    /// If `handle` is [`Handle::NONE`].
    pub fn enter(&mut self, side: Side, lane: usize, handle: Handle, size: Bytes, dscp: Dscp, ecn: Ecn) {
        assert!(handle != Handle::NONE, "a real packet has a handle");
        let lanes = &self.lanes[side as usize];
        let (port, flow) = lanes[lane % lanes.len()];
        let (src, dst) = (self.hosts[side as usize], self.hosts[1 - side as usize]);
        let body = Body::Datagram(Datagram { seq: 0, sent: self.engine.now() });
        self.engine.inject(port, &Packet { src, dst, flow, size, dscp, ecn, handle, body });
    }

    /// The next deadline, or an earlier time; [`Time::NEVER`] without one.
    pub fn next_wakeup(&self) -> Time {
        self.engine.next_wakeup()
    }

    /// Takes the outcomes of packets since the last call, in order of time. Each packet has one.
    pub fn take(&mut self) -> impl Iterator<Item = Carried> {
        self.engine.tap_mut().carried.drain(..)
    }

    /// Whether [`take`](Emulation::take) would return something.
    pub fn has_carried(&self) -> bool {
        !self.engine.tap().carried.is_empty()
    }

    /// The name of the link that dropped a packet.
    pub fn link_name(&self, id: ComponentId) -> &str {
        self.links.iter().find(|link| link.0 == id).map_or("network", |(_, name)| name)
    }

    /// The counters of all links.
    pub fn finish(mut self) -> Vec<LinkCounters> {
        self.engine.settle_counters();
        let counters = |(id, link): &(ComponentId, String)| {
            let [queue_drops, aqm_drops, lost_on_air, link_discards, unreachable] =
                self.engine.tap().drops[usize::from(id.0)];
            let (marked, on_air) = match self.engine.node(*id) {
                Node::Radio(radio) => of_radio([radio.stats()]),
                Node::Shared(radio) => of_radio(radio.stats()),
                Node::Managed(link) => (link.stats().marked, None),
                Node::Varying(link) => (link.stats().marked, None),
                _ => (0, None),
            };
            LinkCounters {
                link: link.clone(),
                queue_drops,
                aqm_drops,
                marked,
                lost_on_air,
                link_discards,
                unreachable,
                link_attempts: on_air.map(|it| it.0),
                link_failures: on_air.map(|it| it.1),
            }
        };
        self.links.iter().map(counters).collect()
    }
}
