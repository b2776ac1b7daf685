//! The components that are notified of movements of hosts and of radio signals; common to all runs.

use std::collections::{BTreeMap, BTreeSet};

use lasthop_base::Duration;
use lasthop_proto::scheme::Combination;
use lasthop_proto::{ComponentId, HostId, arq};
use lasthop_sim::network::{ComponentKind, LinkId, ShortestPaths, Wiring};

use lasthop_scenario::network::{Network, NetworkLink};

/// The subscribers to movements of hosts and to radio signals.
#[derive(Clone, Debug)]
pub(super) struct Movement {
    /// The index of each moving host in [`Network::moving`].
    pub(super) indices: BTreeMap<HostId, usize>,
    /// Registration delays for each base station of a moving host, by the router that follows the host, and
    /// the host.
    pub(super) registrations: BTreeMap<(HostId, HostId), Vec<Duration>>,
    /// The propagation delays between the base stations of each moving host, as indices in [`Network::moving`].
    pub(super) between: Vec<Vec<Vec<Duration>>>,
    /// Pairs of a mover and a component that it notifies.
    pub(super) followers: Vec<(ComponentId, ComponentId)>,
    /// The watched signals, in the order of the hosts.
    pub(super) signals: Vec<WatchedSignal>,
}

/// The radio signal of a mobile host.
#[derive(Clone, Debug)]
pub(super) struct WatchedSignal {
    /// The links to the base stations of the host.
    pub(super) links: BTreeSet<LinkId>,
    pub(super) watchers: Vec<ComponentId>,
}

impl Movement {
    pub(super) fn new(network: &Network, wiring: &Wiring, combination: &Combination<'_>) -> Movement {
        Movement {
            indices: network.moving.iter().map(|moving| moving.host).zip(0..).collect(),
            registrations: registrations(network, wiring),
            // Only proxies take their connections along.
            between: if combination.splitter().is_some() { between(network) } else { Vec::new() },
            followers: followers(network, wiring, combination),
            signals: signals(network, wiring, combination),
        }
    }
}

/// Pairs of a mover and a component that it notifies: routers on the paths to the moving host, the ends of
/// its connections, the agents at its links, and the links that drop packets when the host leaves.
fn followers(
    network: &Network,
    wiring: &Wiring,
    combination: &Combination<'_>,
) -> Vec<(ComponentId, ComponentId)> {
    let Network { moving, links, flows, .. } = network;
    if moving.is_empty() {
        return Vec::new();
    }
    // Movers come first, in the order of hosts.
    let movers: BTreeMap<HostId, ComponentId> =
        network.moving_hosts().into_keys().zip((0..).map(ComponentId)).collect();
    let mover = |host: HostId| movers.get(&host).copied();
    let of_link = |link: LinkId| match &links[link.index()] {
        NetworkLink::Radio(hop) => hop.place.and_then(|(index, _)| mover(moving[index].host)),
        NetworkLink::Wired(_) | NetworkLink::Station(_) => None,
    };
    let mut followers = Vec::new();
    for (index, kind) in (0..).zip(&wiring.components) {
        let mut follow = |mover: Option<ComponentId>| {
            followers.extend(mover.map(|mover| (mover, ComponentId(index))));
        };
        match kind {
            ComponentKind::Source(flow) => follow(mover(flows[flow.index()].source())),
            ComponentKind::Sink(flow) => follow(mover(flows[flow.index()].destination())),
            ComponentKind::Agent(place) => follow(of_link(place.link)),
            ComponentKind::Link(link, from) => {
                if let NetworkLink::Radio(hop) = &links[link.index()]
                    && hop.place.is_some_and(|(index, _)| !moving[index].overlap)
                    && hop.arq(*from, combination.link()) != arq::Config::None
                {
                    follow(of_link(*link));
                }
            }
            ComponentKind::MovingRouter(_, router) => router.hosts().for_each(|host| follow(mover(host))),
            // The hosts of a shared radio do not move.
            ComponentKind::Shared(_)
            | ComponentKind::Bss(_)
            | ComponentKind::Router(_)
            | ComponentKind::Mover(_) => {}
        }
    }
    followers
}

/// The mobile hosts whose radio signal is watched, each with its watchers: the ends of its connections, and
/// the agents at its links.
fn signals(network: &Network, wiring: &Wiring, combination: &Combination<'_>) -> Vec<WatchedSignal> {
    if combination.signal_lead().is_none() {
        return Vec::new();
    }
    let Network { graph, links, flows, .. } = network;
    let mobile = |link: LinkId| match &links[link.index()] {
        NetworkLink::Radio(hop) => Some(graph.ends(link)[hop.mobile]),
        NetworkLink::Wired(_) => network.mobile_host_over(link),
        NetworkLink::Station(_) => None,
    };
    let signal = |links| WatchedSignal { links, watchers: Vec::new() };
    let last_hops = network.last_hops().into_iter();
    let mut found: BTreeMap<HostId, WatchedSignal> =
        last_hops.map(|(host, links)| (host, signal(links))).collect();
    for (index, kind) in (0..).zip(&wiring.components) {
        let host = match kind {
            ComponentKind::Source(flow) => Some(flows[flow.index()].source()),
            ComponentKind::Sink(flow) => Some(flows[flow.index()].destination()),
            ComponentKind::Agent(place) => mobile(place.link),
            _ => None,
        };
        if let Some(signal) = host.and_then(|host| found.get_mut(&host)) {
            signal.watchers.push(ComponentId(index));
        }
    }
    found.into_values().collect()
}

/// The propagation delays on the shortest paths between the base stations of each moving host.
fn between(network: &Network) -> Vec<Vec<Vec<Duration>>> {
    if network.moving.is_empty() {
        return Vec::new();
    }
    let (fixed, mut paths) = (network.fixed(), ShortestPaths::default());
    let mut delay = |from, to| {
        // Every base station has a path to the other ends of the host's flows.
        paths.between(&fixed, from, to).map_or(Duration::ZERO, |path| network.delay(&path))
    };
    let mut row = |from, stations: &[HostId]| stations.iter().map(|&to| delay(from, to)).collect();
    let mut rows = |stations: &[HostId]| stations.iter().map(|&from| row(from, stations)).collect();
    network.moving.iter().map(|moving| rows(&moving.stations)).collect()
}

/// Registration delays of each moving host to each router that follows it, by router, host and number of the
/// base station: the propagation delay of the shortest path. At the host itself the delay is zero.
fn registrations(network: &Network, wiring: &Wiring) -> BTreeMap<(HostId, HostId), Vec<Duration>> {
    let mut found = BTreeMap::new();
    if network.moving.is_empty() {
        return found;
    }
    let (fixed, mut paths) = (network.fixed(), ShortestPaths::default());
    for kind in &wiring.components {
        let ComponentKind::MovingRouter(node, router) = kind else { continue };
        for host in router.hosts() {
            let moving = network.moving.iter().find(|moving| moving.host == host);
            let stations = moving.map_or(&[][..], |moving| &moving.stations);
            let delay = |&station: &HostId| {
                let path = paths.between(&fixed, station, *node).filter(|_| *node != host);
                path.map_or(Duration::ZERO, |path| network.delay(&path))
            };
            found.insert((*node, host), stations.iter().map(delay).collect());
        }
    }
    found
}
