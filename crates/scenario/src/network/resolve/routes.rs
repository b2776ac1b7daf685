//! The paths of flows, and their error checks.

use std::collections::BTreeMap;

use lasthop_link::graph::{BssId, Graph, LinkId, SharedId};
use lasthop_proto::HostId;

use super::Resolver;
use super::mobility::Paths;
use crate::diagnostics::alternatives;
use crate::network::{Network, Workload};

impl Resolver<'_> {
    /// The paths of a flow: through the given intermediate nodes, or over the fewest links.
    pub(super) fn path(
        &mut self,
        from: &str,
        to: &str,
        via: Option<&[String]>,
        keys: &Keys<'_>,
    ) -> Option<Paths> {
        let start = self.known(from, &keys.from)?;
        let end = self.known(to, &keys.to)?;
        if start == end {
            let problem = format!("found \"{to}\", where the flow starts, expected a different node");
            self.fault(&keys.to, problem);
            return None;
        }
        let Some(via) = via else {
            let path = match self.shortest(start, end) {
                Ok(path) => path,
                Err(problem) => {
                    self.fault(&keys.to, format!("found \"{to}\", which {problem}"));
                    return None;
                }
            };
            if path.is_none() {
                let problem = format!("found \"{to}\", to which no links lead from \"{from}\"");
                self.fault(&keys.to, problem);
            }
            return path;
        };
        let moves = |name: &str| self.scenario.mobility.contains_key(name);
        if let Some(host) =
            [from, to].into_iter().chain(via.iter().map(String::as_str)).find(|name| moves(name))
        {
            let problem =
                format!("found a path with \"{host}\", which moves, expected hosts that stay; leave via out");
            self.fault(&keys.via, problem);
            return None;
        }
        let mut nodes = vec![start];
        for (index, name) in via.iter().enumerate() {
            let index = index.to_string();
            nodes.push(self.known(name, &[keys.via.as_slice(), &[&index]].concat())?);
        }
        nodes.push(end);
        let names: Vec<&str> = [from].into_iter().chain(via.iter().map(String::as_str)).chain([to]).collect();
        for (step, pair) in nodes.windows(2).enumerate() {
            let (here, next) = (names[step], names[step + 1]);
            let problem = if self.network.graph.link(pair[0], pair[1]).is_none() {
                format!("no link leads from \"{here}\" to \"{next}\"")
            } else if nodes[..=step].contains(&pair[1]) {
                format!("found \"{next}\" a second time on the path, expected it once")
            } else {
                continue;
            };
            self.fault(&keys.via, problem);
            return None;
        }
        Some(Paths { first: nodes, others: Vec::new() })
    }

    pub(super) fn known(&mut self, name: &str, at: &[&str]) -> Option<HostId> {
        let found = self.nodes.get(name).copied();
        if found.is_none() {
            let mut names: Vec<&str> = self.nodes.keys().map(String::as_str).collect();
            names.sort_unstable();
            let names = alternatives(name, names);
            let problem = match name {
                "" => format!("missing, {names}"),
                _ => format!("found \"{name}\", {names}"),
            };
            self.fault(at, problem);
        }
        found
    }

    /// Checks that a BSS forwards all packets for a host in the same direction: to one station, or out of the
    /// BSS.
    pub(super) fn check_stations(&mut self) {
        let mut known: BTreeMap<(BssId, HostId), (Option<u32>, usize)> = BTreeMap::new();
        let mut wrong = Vec::new();
        let Network { graph, flows, .. } = &self.network;
        let paths = flows
            .iter()
            .enumerate()
            .flat_map(|(index, flow)| flow.path.all().map(move |nodes| (index, flow, nodes)));
        for (index, flow, forth) in paths {
            let back = forth.iter().rev().copied().collect();
            for nodes in [forth.clone(), back].into_iter().take(if flow.path.one_way { 1 } else { 2 }) {
                let dst = *nodes.last().expect("a path has nodes");
                for (bss, way) in ways(graph, &nodes) {
                    let (other, first) = *known.entry((bss, dst)).or_insert((way, index));
                    if other != way {
                        wrong.push((index, dst, bss, [way, other], first));
                    }
                }
            }
        }
        for (index, dst, bss, places, first) in wrong {
            let network = &self.network;
            let name = |host: HostId| network.names[host.index()].as_str();
            let links = network.graph.bss(bss);
            let [here, there] = places.map(|place| match place {
                Some(station) => {
                    format!("to {}", name(network.graph.ends(links[station as usize])[1]))
                }
                None => String::from("out of it"),
            });
            let problem = format!(
                "the cell of {} would have to send packets for {} {here}, but {there} for {}; \
                 expected the same direction for both; change via of one of them",
                name(network.graph.ends(links[0])[0]),
                name(dst),
                network.flows[first].name
            );
            self.fault_of_flow(index, problem);
        }
    }

    /// Checks that a shared radio reaches each host through one mobile host.
    pub(super) fn check_shared_radios(&mut self) {
        let mut known: BTreeMap<(SharedId, HostId), (u32, usize)> = BTreeMap::new();
        let mut wrong = Vec::new();
        let Network { graph, flows, names, .. } = &self.network;
        for (index, flow) in flows.iter().enumerate() {
            for forth in flow.path.all() {
                let back: Vec<HostId> = forth.iter().rev().copied().collect();
                for nodes in [forth, &back].into_iter().take(if flow.path.one_way { 1 } else { 2 }) {
                    let dst = *nodes.last().expect("a path has nodes");
                    for step in nodes.windows(2) {
                        let link = graph.link(step[0], step[1]).expect("a path follows links");
                        let Some((radio, mobile)) =
                            graph.sharer(link).filter(|_| graph.ends(link)[0] == step[0])
                        else {
                            continue;
                        };
                        let (other, first) = *known.entry((radio, dst)).or_insert((mobile, index));
                        if other != mobile {
                            let names = [step[0], dst].map(|node| &names[node.index()]);
                            let problem = format!(
                                "the radio of {} would have to send packets for {} by another link than for {}; \
                                 expected the same link for both; change via of one of them",
                                names[0], names[1], flows[first].name
                            );
                            wrong.push((index, problem));
                        }
                    }
                }
            }
        }
        for (index, problem) in wrong {
            self.fault_of_flow(index, problem);
        }
    }

    /// Reports a problem with the path of a flow.
    fn fault_of_flow(&mut self, index: usize, problem: String) {
        let network = &self.network;
        let flow = network.flows[index].name.clone();
        match network.flows[index].workload {
            Workload::Application(_) | Workload::Joined(_) => self.fault(&["application", &flow], problem),
            Workload::Traffic { .. } => self.fault(&["traffic", &flow], problem),
            Workload::Transfer { .. } if self.scenario.connection.contains_key(&flow) => {
                self.fault(&["connection", &flow], problem);
            }
            Workload::Transfer { .. } => self.fault(&["transfer"], problem),
        }
    }
}

/// The BSSs that forward packets on this path, each with the station that they go to; `None` if they leave
/// the BSS.
fn ways(graph: &Graph, nodes: &[HostId]) -> Vec<(BssId, Option<u32>)> {
    let steps =
        nodes.windows(2).map(|step| (graph.link(step[0], step[1]).expect("a path follows links"), step[0]));
    let steps: Vec<(LinkId, HostId)> = steps.collect();
    let ways = steps.iter().enumerate().filter_map(|(index, &(link, from))| {
        let (bss, station) = graph.station(link)?;
        if graph.ends(link)[0] == from {
            return Some((bss, Some(station)));
        }
        // Back into the same BSS: the next step determines the station.
        let inside = steps.get(index + 1).is_some_and(|&(next, _)| graph.stays_within(link, next));
        (!inside).then_some((bss, None))
    });
    ways.collect()
}

/// The keys that state the ends and the path of a flow.
pub(super) struct Keys<'a> {
    pub(super) from: Vec<&'a str>,
    pub(super) to: Vec<&'a str>,
    pub(super) via: Vec<&'a str>,
}
