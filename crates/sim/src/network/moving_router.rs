//! A router whose routes follow moving hosts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lasthop_base::{Duration, Time};
use lasthop_proto::{Component, FlowId, HostId, Out, Packet, Port, Signal};

use super::router::Route;

/// Forwards each packet by its flow and destination in zero time, and packets for a moving host towards the
/// base station at which the host was registered last. Packets for an agent go to its address, whatever their flow.
///
/// A host registers at its new base station as soon as it is there. The registration arrives here after the
/// propagation delay of the wired links in between. It is never lost and takes no bandwidth. A registration
/// that arrives after a newer one has no effect. At the moving host itself, a router chooses the link for the
/// packets that the host sends.
#[derive(Clone, Debug)]
pub struct MovingRouter {
    routes: Arc<BTreeMap<(FlowId, bool), Ports>>,
    /// The destination of each flow.
    destinations: Arc<BTreeMap<FlowId, HostId>>,
    hosts: Vec<FollowedHost>,
    /// The output ports towards agents, by their addresses.
    agents: Arc<BTreeMap<HostId, Port>>,
    /// Whether packets for a moving host are copied to all its base stations.
    copies: bool,
}

/// The output ports of a flow in one direction.
#[derive(Clone, Debug)]
enum Ports {
    Always(Port),
    /// By the base station of a moving host: its index among the followed hosts, and the port of each base
    /// station.
    Following(usize, Vec<Port>),
}

/// A moving host whose registrations arrive here.
#[derive(Clone, Debug)]
struct FollowedHost {
    host: HostId,
    station: u16,
    /// The delay of a registration from each base station; zero without an entry.
    delays: Vec<Duration>,
    /// Registrations in flight with their arrival times, in the order of both sending and arrival. Those that
    /// a newer one overtakes are left out.
    underway: VecDeque<(Time, u16)>,
}

/// A route that applies always, or while a moving host is at a base station.
pub(super) struct MovingRoute {
    pub(super) route: Route,
    pub(super) while_at: Option<(HostId, u16)>,
}

impl MovingRouter {
    pub(super) fn new(
        all: impl Iterator<Item = MovingRoute>,
        agents: BTreeMap<HostId, Port>,
    ) -> MovingRouter {
        let mut routes: BTreeMap<(FlowId, bool), Ports> = BTreeMap::new();
        let mut destinations = BTreeMap::new();
        let mut hosts: Vec<FollowedHost> = Vec::new();
        for MovingRoute { route: Route { flow, dst, forward, port }, while_at } in all {
            destinations.insert(flow, dst);
            let Some((host, station)) = while_at else {
                routes.insert((flow, forward), Ports::Always(port));
                continue;
            };
            let known = hosts.iter().position(|followed| followed.host == host);
            let index = known.unwrap_or_else(|| {
                hosts.push(FollowedHost { host, station: 0, delays: Vec::new(), underway: VecDeque::new() });
                hosts.len() - 1
            });
            let ports = routes.entry((flow, forward)).or_insert(Ports::Following(index, Vec::new()));
            if let Ports::Following(_, ports) = ports {
                // Stations without a path through this router get any of the ports.
                let station = usize::from(station);
                ports.resize(ports.len().max(station + 1), port);
                ports[station] = port;
            }
        }
        let (routes, destinations, agents) = (routes.into(), destinations.into(), agents.into());
        MovingRouter { routes, destinations, hosts, agents, copies: false }
    }

    /// The moving hosts that this router follows.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> {
        self.hosts.iter().map(|followed| followed.host)
    }

    /// A router that registrations reach after a delay. For each host, `delays` returns the delays by the
    /// numbers of its base stations.
    pub fn with_delays(mut self, mut delays: impl FnMut(HostId) -> Vec<Duration>) -> MovingRouter {
        for followed in &mut self.hosts {
            followed.delays = delays(followed.host);
        }
        self
    }

    /// A router that sends a copy of each TCP segment for a moving host towards every base station of the
    /// host.
    pub fn copying(self) -> MovingRouter {
        MovingRouter { copies: true, ..self }
    }
}

impl FollowedHost {
    fn next_arrival(&self) -> Time {
        self.underway.front().map_or(Time::NEVER, |&(at, _)| at)
    }

    /// Applies the registrations that have arrived.
    fn update(&mut self, now: Time) {
        while let Some((_, station)) = self.underway.pop_front_if(|&mut (at, _)| at <= now) {
            self.station = station;
        }
    }
}

impl Component for MovingRouter {
    fn receive(&mut self, _now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        if let Some(port) = self.agents.get(&packet.dst) {
            return out.send(*port, *packet);
        }
        let forward = self.destinations.get(&packet.flow) == Some(&packet.dst);
        match self.routes.get(&(packet.flow, forward)).expect("a packet is on its path") {
            Ports::Always(port) => out.send(*port, *packet),
            Ports::Following(_, ports) if self.copies && packet.segment().is_some() => {
                // Paths to several base stations may leave through one port.
                let each = ports.iter().enumerate().filter(|(index, port)| !ports[..*index].contains(port));
                each.for_each(|(_, port)| out.send(*port, *packet));
            }
            Ports::Following(host, ports) => {
                let station = usize::from(self.hosts[*host].station);
                // If no path to that station leads through this router, the packet took an outdated route.
                out.send(*ports.get(station).unwrap_or(&ports[ports.len() - 1]), *packet);
            }
        }
    }

    fn wake(&mut self, now: Time, _out: &mut Out) {
        self.hosts.iter_mut().for_each(|followed| followed.update(now));
    }

    fn next_wakeup(&self) -> Time {
        self.hosts.iter().map(FollowedHost::next_arrival).min().unwrap_or(Time::NEVER)
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, _out: &mut Out) {
        let Signal::Attached { host, station } = *signal else { return };
        if let Some(followed) = self.hosts.iter_mut().find(|followed| followed.host == host) {
            let delay = followed.delays.get(usize::from(station)).copied();
            // The first base station of a host is known without a registration.
            let delay = delay.filter(|_| now > Time::ZERO).unwrap_or(Duration::ZERO);
            // Registrations that this one overtakes have no effect.
            while followed.underway.pop_back_if(|&mut (at, _)| at >= now + delay).is_some() {}
            followed.underway.push_back((now + delay, station));
            followed.update(now);
        }
    }
}
