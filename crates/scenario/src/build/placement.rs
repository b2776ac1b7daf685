//! The places of agents and proxies: the ends of links at which they are.

use lasthop_proto::HostId;
use lasthop_proto::scheme::{Combination, LinkEnd};
use lasthop_sim::network::LinkId;

use super::network::{Flow, Network, NetworkLink};

/// What is at an end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The proxy that splits connections.
    Proxy,
    /// An agent of a scheme, by its number among those of the combination at base stations or at mobile hosts.
    Agent(LinkEnd, usize),
}

/// What is at the first (0) and the second (1) end of each link, the nearest to the node first.
pub(crate) fn chains(network: &Network, combination: &Combination<'_>) -> Vec<[Vec<Slot>; 2]> {
    let mut chains = vec![<[Vec<Slot>; 2]>::default(); network.links.len()];
    let mut place = |ends: &[Option<usize>], slot| {
        for (chain, end) in chains.iter_mut().zip(ends) {
            if let Some(end) = *end {
                chain[end].push(slot);
            }
        }
    };
    let stations: Vec<_> = network.links.iter().map(base_station_end).collect();
    let at =
        |node: Option<&str>| node.map_or_else(|| stations.clone(), |node| network.towards_mobile_hosts(node));
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
pub(crate) fn proxies(chains: &[[Vec<Slot>; 2]]) -> Vec<Option<usize>> {
    chains.iter().map(|ends| ends.iter().position(|chain| chain.first() == Some(&Slot::Proxy))).collect()
}

/// The end of a wireless link that is its base station.
pub(crate) fn base_station_end(link: &NetworkLink) -> Option<usize> {
    match link {
        NetworkLink::Radio(hop) => Some(1 - hop.mobile),
        NetworkLink::Station(_) => Some(0),
        NetworkLink::Wired(_) => None,
    }
}

impl Network {
    /// The end of each link that is this node, if packets of connections go from there to mobile hosts; of wireless links, if
    /// it is the base station.
    pub(crate) fn towards_mobile_hosts(&self, node: &str) -> Vec<Option<usize>> {
        let node = self.names.iter().position(|name| name == node).map(|index| HostId(index as u16));
        let mut ends = vec![None; self.links.len()];
        let Some(node) = node else { return ends };
        for (index, link) in self.links.iter().enumerate() {
            let ends_of_link = self.graph.ends(LinkId(index as u16));
            ends[index] = base_station_end(link).filter(|end| ends_of_link[*end] == node);
        }
        for path in self.flows.iter().filter(|flow| flow.is_tcp()).flat_map(|flow| flow.path.all()) {
            let back: Vec<_> = path.iter().rev().copied().collect();
            for nodes in [path, &back] {
                if let Some(link) = self.leaves_towards_mobile_host(nodes, node)
                    && let NetworkLink::Wired(_) = self.links[usize::from(link.0)]
                {
                    ends[usize::from(link.0)] = Some(usize::from(self.graph.ends(link)[0] != node));
                }
            }
        }
        ends
    }

    /// The link over which a path leaves a node, if it goes on from a base station to a mobile host.
    fn leaves_towards_mobile_host(&self, nodes: &[HostId], node: HostId) -> Option<LinkId> {
        let ahead = &nodes[nodes.iter().position(|other| *other == node)?..];
        let links = ahead.windows(2).map(|step| (self.link_between(step[0], step[1]), step[0]));
        let mut towards_mobile = links.clone().filter(|&(link, from)| {
            let end = base_station_end(&self.links[usize::from(link.0)]);
            end.is_some_and(|end| self.graph.ends(link)[end] == from)
        });
        towards_mobile.next()?;
        links.map(|(link, _)| link).next()
    }

    fn link_between(&self, from: HostId, to: HostId) -> LinkId {
        self.graph.link(from, to).expect("a path follows links")
    }

    /// Why what a combination has at a node cannot be there, if so, as the end of a sentence that begins with the
    /// combination.
    pub(super) fn misplaced(&self, combination: &Combination<'_>) -> Option<String> {
        let is_wired = |link: usize| matches!(self.links[link], NetworkLink::Wired(_));
        for (scheme, node) in combination.nodes() {
            if !self.names.iter().any(|name| name == node) {
                let names = self.names.iter().map(String::as_str);
                return Some(format!("names a node \"{node}\", {}", crate::file::alternatives(node, names)));
            }
            let ends = self.towards_mobile_hosts(node);
            if ends.iter().all(Option::is_none) {
                return Some(format!(
                    "has \"{scheme}\" at \"{node}\", from which no connection goes to a mobile host; leave \"@{node}\" out"
                ));
            }
            if !combination.connected().is_empty() && self.is_station_of_moving_host(node) {
                return Some(format!(
                    "needs the same agents at all base stations of a moving host, and \"{scheme}\" is only at \"{node}\"; \
                     leave \"@{node}\" out"
                ));
            }
            let wired: Vec<_> =
                (0..ends.len()).filter(|&link| ends[link].is_some() && is_wired(link)).collect();
            if combination.signal_lead().is_some()
                && wired.iter().any(|&link| self.mobile_hosts_over(LinkId(link as u16)).len() > 1)
            {
                return Some(format!(
                    "watches the radio signal, and a link from \"{node}\" leads to several mobile hosts; leave \"@{node}\" \
                     out"
                ));
            }
        }
        for (number, scheme) in combination.agents(LinkEnd::BaseStation).enumerate() {
            let Some(node) = combination.node_of(number) else { continue };
            let mut links = self.towards_mobile_hosts(node).into_iter().enumerate();
            if links.any(|(link, end)| end.is_some() && is_wired(link))
                && combination.needs_link_events(number)
            {
                return Some(format!(
                    "has \"{scheme}\" at \"{node}\", which is not told what becomes of packets on the wireless link; leave \
                     \"@{node}\" out"
                ));
            }
        }
        let proxies = proxies(&chains(self, combination));
        let splits = |nodes: &Vec<HostId>| -> Vec<LinkId> {
            let links = nodes.windows(2).map(|step| self.link_between(step[0], step[1]));
            links.filter(|link| proxies[usize::from(link.0)].is_some()).collect()
        };
        let parts_ways =
            |flow: &&Flow| flow.path.all().any(|nodes| splits(nodes) != splits(&flow.path.nodes));
        let node = combination.split_node()?;
        self.flows.iter().filter(|flow| flow.is_tcp()).find(parts_ways).map(|_| {
            format!(
                "splits connections at \"{node}\", and those of a moving host do not always go over the same link from there; \
                 leave \"@{node}\" out"
            )
        })
    }

    fn is_station_of_moving_host(&self, node: &str) -> bool {
        let mut stations = self.moving.iter().flat_map(|moving| &moving.stations);
        stations.any(|station| self.names[usize::from(station.0)] == node)
    }

    /// The mobile hosts at the ends of connections that go over a link.
    pub(super) fn mobile_hosts_over(&self, link: LinkId) -> Vec<HostId> {
        let last_hops = self.last_hops();
        let crosses =
            |nodes: &Vec<HostId>| nodes.windows(2).any(|step| self.link_between(step[0], step[1]) == link);
        let flows = self.flows.iter().filter(|flow| flow.is_tcp() && flow.path.all().any(crosses));
        let mut hosts: Vec<_> = flows.flat_map(|flow| [flow.source(), flow.destination()]).collect();
        hosts.retain(|host| last_hops.contains_key(host));
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }
}
