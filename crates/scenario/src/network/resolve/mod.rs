//! Construction of the [`Network`] of a scenario, or the list of all its errors.

mod bounds;
mod flows;
mod links;
mod mobility;
mod routes;

use std::collections::{HashMap, HashSet};

use lasthop_base::{FnvBuilder, Time};
use lasthop_link::Dispatch;
use lasthop_link::ShortestPaths;
use lasthop_link::graph::Graph;
use lasthop_proto::HostId;
use lasthop_proto::scheme::Combination;

use crate::error::Fault;
use crate::network::{BssKind, Network};
use crate::schema::Scenario;

pub use bounds::datagrams;

/// Collects the network and the errors.
struct Resolver<'a> {
    scenario: &'a Scenario,
    /// The combinations of schemes to compare.
    combinations: &'a [(usize, Combination<'a>)],
    nodes: HashMap<String, HostId, FnvBuilder>,
    network: Network,
    /// The names of the flows so far, if there are others than connections.
    flow_names: HashSet<String>,
    /// Links on the paths of all flows.
    steps: usize,
    paths: ShortestPaths,
    /// The network without the links of moving hosts, if there are such hosts.
    fixed: Graph,
    faults: Vec<Fault>,
    /// The contents of `faults`.
    noted: HashSet<Fault>,
}

impl Scenario {
    /// The network of the scenario, under any of these combinations of schemes, each with its index in `schemes`.
    ///
    /// # Errors
    /// All errors in links and flows.
    pub(super) fn network_under(
        &self,
        combinations: &[(usize, Combination<'_>)],
    ) -> Result<Network, Vec<Fault>> {
        let network = Network {
            graph: Graph::new(),
            names: Vec::new(),
            links: Vec::new(),
            bss: match (&self.wifi, &self.cell) {
                (Some(wifi), _) => BssKind::Edca(Box::new(wifi.config())),
                (None, Some(cell)) => BssKind::Dcf(cell.config()),
                (None, None) => BssKind::default(),
            },
            dispatch: self.shared.as_ref().map_or_else(Dispatch::default, |shared| shared.dispatch),
            flows: Vec::new(),
            connections: 0,
            moving: Vec::new(),
            limit: Time::ZERO + self.limit,
        };
        let mut resolver = Resolver {
            scenario: self,
            combinations,
            nodes: HashMap::default(),
            network,
            flow_names: HashSet::new(),
            steps: 0,
            paths: ShortestPaths::default(),
            fixed: Graph::new(),
            faults: Vec::new(),
            noted: HashSet::new(),
        };
        resolver.check_shape();
        let edges = self.topology.edges();
        resolver.check_size(edges.len());
        if resolver.faults.is_empty() {
            resolver.add_links(&edges);
        }
        if resolver.faults.is_empty() {
            resolver.add_moving_hosts();
        }
        if resolver.faults.is_empty() {
            resolver.check_hosts();
            resolver.check_stacks();
            resolver.add_connections();
            resolver.add_traffic();
            resolver.add_applications();
            resolver.check_roles_of_hosts();
            resolver.check_stations();
            resolver.check_shared_radios();
            resolver.check_station_pairs();
        }
        if resolver.faults.is_empty() && self.tcp.faults().is_empty() {
            resolver.check_bounds();
        }
        if resolver.faults.is_empty() { Ok(resolver.network) } else { Err(resolver.faults) }
    }
}

impl Resolver<'_> {
    fn fault(&mut self, path: &[&str], problem: impl Into<String>) {
        let path = path.iter().map(|key| (*key).to_owned()).collect();
        self.note(Fault { path, problem: problem.into() });
    }

    /// Records a fault once: values shared by several flows or links are reported only once.
    fn note(&mut self, fault: Fault) {
        if self.noted.insert(fault.clone()) {
            self.faults.push(fault);
        }
    }
}
