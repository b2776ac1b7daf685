//! The places of agents and proxies: the ends of links at which they are.

use std::collections::BTreeSet;

use lasthop_base::{BitRate, Duration};
use lasthop_link::graph::{Graph, LinkId};
use lasthop_proto::scheme::{Combination, LinkEnd};
use lasthop_proto::{HostId, Port};

use super::{Flow, Network, NetworkLink};
use crate::diagnostics::alternatives;

/// Most nodes that a message lists.
const MAX_NAMES: usize = 20;

/// An agent or a proxy at an end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The proxy that splits connections.
    Proxy,
    /// An agent of a scheme, by its number among those of the combination at base stations or at mobile hosts.
    Agent(LinkEnd, usize),
}

/// The agents and proxies at the first (0) and the second (1) end of each link, the nearest to the node first.
pub fn chains(network: &Network, combination: &Combination<'_>) -> Vec<[Vec<Slot>; 2]> {
    let mut chains = vec![<[Vec<Slot>; 2]>::default(); network.links.len()];
    let mut place = |ends: &[Option<usize>], slot| {
        for (chain, end) in chains.iter_mut().zip(ends) {
            if let Some(end) = *end {
                chain[end].push(slot);
            }
        }
    };
    let stations: Vec<_> = network.links.iter().map(base_station_end).collect();
    let at = |node: Option<&str>| match node.map(|node| network.node(node)) {
        None => stations.clone(),
        Some(node) => node.map_or_else(|| vec![None; stations.len()], |node| network.placement(node)),
    };
    if combination.splitter().is_some() {
        place(&at(combination.split_node()), Slot::Proxy);
    }
    for number in 0..combination.agents(LinkEnd::BaseStation).count() {
        place(&at(combination.node_of(number)), Slot::Agent(LinkEnd::BaseStation, number));
    }
    let mobiles: Vec<_> = stations.iter().map(|end| end.map(|end| 1 - end)).collect();
    for number in 0..combination.agents(LinkEnd::MobileHost).count() {
        place(&mobiles, Slot::Agent(LinkEnd::MobileHost, number));
    }
    chains
}

/// The end of each link at which it has a proxy, if any.
pub fn proxies(chains: &[[Vec<Slot>; 2]]) -> Vec<Option<usize>> {
    chains.iter().map(|ends| ends.iter().position(|chain| chain.first() == Some(&Slot::Proxy))).collect()
}

/// The end of a wireless link that is its base station.
pub fn base_station_end(link: &NetworkLink) -> Option<usize> {
    match link {
        NetworkLink::Radio(hop) => Some(1 - hop.mobile),
        NetworkLink::Station(_) => Some(0),
        NetworkLink::Wired(_) => None,
    }
}

/// A link with a proxy on the path of a flow, and the proxy's port through which the data enter.
pub type Crossing = (LinkId, Port);

/// The links with a proxy on a path, in path order. `proxies` gives the end of each link at which it has a
/// proxy, the first (0) or the second (1), if any.
fn crossings(graph: &Graph, proxies: &[Option<usize>], nodes: &[HostId]) -> Vec<Crossing> {
    let links: Vec<LinkId> =
        nodes.windows(2).map(|step| graph.link(step[0], step[1]).expect("a path follows links")).collect();
    let within = |index: usize| {
        let stays = |a: usize, b: usize| b < links.len() && graph.stays_within(links[a], links[b]);
        stays(index, index + 1) || (index > 0 && stays(index - 1, index))
    };
    // Packets forwarded within a BSS bypass the agent.
    let steps = nodes.windows(2).enumerate().filter(|(index, _)| !within(*index));
    let crossings = steps.filter_map(|(index, step)| {
        let at = graph.ends(links[index])[proxies[links[index].index()]?];
        Some((links[index], if at == step[0] { Port::WIRED } else { Port::RADIO }))
    });
    crossings.collect()
}

/// The way of a connection from a router to a mobile host.
struct Way {
    /// The first link.
    link: LinkId,
    /// The nodes from the router to the mobile host.
    nodes: Vec<HostId>,
}

/// The way of connections to mobile hosts, as an agent at a router knows it.
pub struct Ahead {
    /// The lowest bit rate on the way.
    pub rate: BitRate,
    /// The propagation delay to the farthest of the hosts.
    pub delay: Duration,
    /// The lowest bit rate on the way back.
    pub arriving_rate: BitRate,
}

impl Network {
    fn node(&self, name: &str) -> Option<HostId> {
        self.names.iter().position(|other| other == name).map(|index| HostId(index as u32))
    }

    /// The end of each link at which a scheme with this node is installed: at a base station, its end of the wireless links;
    /// at a router, its end of the wired links over which connections go to mobile hosts.
    fn placement(&self, node: HostId) -> Vec<Option<usize>> {
        let links = || (0..).map(LinkId).zip(&self.links);
        let at_station = |(link, kind): (LinkId, &NetworkLink)| {
            base_station_end(kind).filter(|end| self.graph.ends(link)[*end] == node)
        };
        if self.is_base_station(node) {
            return links().map(at_station).collect();
        }
        let ways: BTreeSet<LinkId> = self.ways_from(node).map(|way| way.link).collect();
        let end = |link| usize::from(self.graph.ends(link)[0] != node);
        links().map(|(link, _)| ways.contains(&link).then(|| end(link))).collect()
    }

    /// The end of each link at which a scheme has its agent, at this node or at all base stations.
    pub(super) fn agent_ends(&self, node: Option<&str>) -> Vec<Option<usize>> {
        match node.and_then(|name| self.node(name)) {
            Some(node) => self.placement(node),
            None => self.links.iter().map(base_station_end).collect(),
        }
    }

    fn is_base_station(&self, node: HostId) -> bool {
        let mut links = (0..).map(LinkId).zip(&self.links);
        links.any(|(link, kind)| base_station_end(kind).is_some_and(|end| self.graph.ends(link)[end] == node))
    }

    /// The ways of connections from a router to mobile hosts, in both directions of the data.
    fn ways_from(&self, node: HostId) -> impl Iterator<Item = Way> {
        let paths = self.flows.iter().filter(|flow| flow.is_connection()).flat_map(|flow| flow.path.all());
        paths.flat_map(move |nodes| [self.way(nodes, node), self.way(&reversed(nodes), node)]).flatten()
    }

    /// The way from a router to the mobile host at the end of a path; `None` if the path ends elsewhere.
    fn way(&self, nodes: &[HostId], node: HostId) -> Option<Way> {
        let nodes = nodes[nodes.iter().position(|other| *other == node)?..].to_vec();
        let mut steps = nodes.windows(2).map(|step| (self.link_between(step[0], step[1]), step[0]));
        let goes_to_mobile_host = steps.clone().any(|(link, from)| {
            let end = base_station_end(&self.links[link.index()]);
            end.is_some_and(|end| self.graph.ends(link)[end] == from)
        });
        let link = steps.next().filter(|_| goes_to_mobile_host)?.0;
        Some(Way { link, nodes })
    }

    fn link_between(&self, from: HostId, to: HostId) -> LinkId {
        self.graph.link(from, to).expect("a path follows links")
    }

    /// The mobile host to which a link of a router leads, if there is one only and it has a radio of its own.
    pub fn mobile_host_over(&self, link: LinkId) -> Option<HostId> {
        let from_ends = self.graph.ends(link).map(|end| self.ways_from(end).filter(|way| way.link == link));
        let hosts: BTreeSet<HostId> =
            from_ends.into_iter().flatten().filter_map(|way| way.nodes.last().copied()).collect();
        let only = hosts.first().filter(|_| hosts.len() == 1)?;
        self.last_hops().contains_key(only).then_some(*only)
    }

    /// The ways to mobile hosts over a link of a router, as an agent there knows them.
    ///
    /// # Panics
    /// If there are none.
    pub fn ahead(&self, link: LinkId, end: usize) -> Ahead {
        let ways = self.ways_from(self.graph.ends(link)[end]).filter(|way| way.link == link);
        let each = ways.map(|Way { nodes, .. }| Ahead {
            rate: self.slowest(&nodes),
            delay: self.delay(&nodes),
            arriving_rate: self.slowest(&reversed(&nodes)),
        });
        let all = each.reduce(|one, other| Ahead {
            rate: one.rate.min(other.rate),
            delay: one.delay.max(other.delay),
            arriving_rate: one.arriving_rate.min(other.arriving_rate),
        });
        all.expect("agents are on a way")
    }

    /// The links with a proxy on a path that split its connection. A router's proxy passes connections on that do not go
    /// to a mobile host there.
    pub fn crossings(&self, proxies: &[Option<usize>], nodes: &[HostId]) -> Vec<Crossing> {
        let mut crossings = crossings(&self.graph, proxies, nodes);
        crossings.retain(|&(link, from)| match (&self.links[link.index()], proxies[link.index()]) {
            (NetworkLink::Wired(_), Some(end)) => {
                let router = self.graph.ends(link)[end];
                let way = match from {
                    Port::WIRED => self.way(nodes, router),
                    _ => self.way(&reversed(nodes), router),
                };
                way.is_some_and(|way| way.link == link)
            }
            _ => true,
        });
        crossings
    }

    /// Whether each flow goes over a wireless link, but not through the node at which the combination splits connections.
    pub fn whole_flows(&self, combination: &Combination<'_>) -> Vec<bool> {
        if combination.split_node().is_none() {
            return vec![false; self.flows.len()];
        }
        let proxies = proxies(&chains(self, combination));
        self.flows.iter().map(|flow| self.is_whole(&proxies, flow)).collect()
    }

    fn is_whole(&self, proxies: &[Option<usize>], flow: &Flow) -> bool {
        let is_wireless = |step: &[HostId]| {
            !matches!(self.links[self.link_between(step[0], step[1]).index()], NetworkLink::Wired(_))
        };
        flow.is_tcp()
            && self.crossings(proxies, &flow.path.nodes).is_empty()
            && flow.path.nodes.windows(2).any(is_wireless)
    }

    /// Why a scheme cannot be installed at its node, as a clause whose subject is the combination.
    pub(super) fn placement_refusal(&self, combination: &Combination<'_>) -> Option<String> {
        combination.nodes().find_map(|(scheme, node)| self.refusal_at(combination, scheme, node))
    }

    fn refusal_at(&self, combination: &Combination<'_>, scheme: &str, name: &str) -> Option<String> {
        let without = format!("leave \"@{name}\" out");
        let Some(node) = self.node(name) else {
            let names = self.names.iter().map(String::as_str);
            return Some(match self.names.len() {
                ..=MAX_NAMES => format!("names a node \"{name}\", {}", alternatives(name, names)),
                count => {
                    format!("names a node \"{name}\", expected one of the {count} nodes of the scenario")
                }
            });
        };
        let ends = self.placement(node);
        let crosses = |nodes: &Vec<HostId>| {
            nodes.windows(2).any(|step| ends[self.link_between(step[0], step[1]).index()].is_some())
        };
        let mut connections = self.flows.iter().filter(|flow| flow.is_connection());
        if !connections.clone().any(|flow| flow.path.all().any(crosses)) {
            return Some(format!(
                "has \"{scheme}\" at \"{name}\", from which no connection goes to a mobile host; {without}"
            ));
        }
        if self.is_base_station(node) {
            let has_others =
                self.moving.iter().any(|it| it.stations.contains(&node) && it.stations.len() > 1);
            let needs_all = combination.split_node() == Some(name) || !combination.connected().is_empty();
            return (has_others && needs_all).then(|| {
                format!(
                    "needs the same agents and proxies at all base stations of a moving host, and \"{scheme}\" is at \"{name}\" \
                     only; {without}"
                )
            });
        }
        let forks = |flow: &Flow| {
            let links = |nodes: &[HostId]| {
                [self.way(nodes, node), self.way(&reversed(nodes), node)].map(|way| way.map(|way| way.link))
            };
            flow.path.all().any(|nodes| links(nodes) != links(&flow.path.nodes))
        };
        if connections.any(forks) {
            return Some(format!(
                "has \"{scheme}\" at \"{name}\", from which the ways to the base stations of a moving host begin with different \
                 links; {without}, or name a router in front of it"
            ));
        }
        let needs_events = |(number, _): (usize, &str)| {
            combination.node_of(number) == Some(name) && combination.needs_link_events(number)
        };
        if combination.agents(LinkEnd::BaseStation).enumerate().any(needs_events) {
            return Some(format!(
                "has \"{scheme}\" at \"{name}\", which does not see the wireless link's outcomes; {without}"
            ));
        }
        let mut links = (0..).map(LinkId).zip(&ends).filter(|(_, end)| end.is_some());
        if combination.watches_signal_at(name) && links.any(|(link, _)| self.mobile_host_over(link).is_none())
        {
            return Some(format!(
                "watches the signal of a mobile host, and a link of \"{name}\" leads to several, or to a cell; {without}"
            ));
        }
        None
    }
}

pub(super) fn reversed(nodes: &[HostId]) -> Vec<HostId> {
    nodes.iter().rev().copied().collect()
}
