//! From what a scenario says of its links and flows to a graph and the paths over it.

use std::collections::BTreeMap;

use lasthop_base::{Duration, Invalid, Time};
use lasthop_proto::{FlowId, HostId, application, tcp, traffic};
use lasthop_sim::cell::CellConfig;
use lasthop_sim::network::{CellId, FlowPath, Graph, LinkId};

use crate::cell::{Cell, StationPlan};
use crate::faults::Fault;
use crate::flows::{Application, Connection, Traffic};
use crate::rephrase::alternatives;
use crate::scenario::{Protect, Radio, Scenario, Wired};
use crate::topology::{Edge, Link, Pair, Topology, split};

/// The network of a scenario: everything that its runs have in common.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) graph: Graph,
    /// The nodes' names, by their places in the graph.
    pub(crate) names: Vec<String>,
    /// The links, by their places in the graph.
    pub(crate) links: Vec<NetworkLink>,
    /// What all cells have in common.
    pub(crate) cell: CellConfig,
    /// The flows: connections first, then other traffic, then the requests and the responses of each
    /// application.
    pub(crate) flows: Vec<Flow>,
    pub(crate) connections: usize,
}

/// A link of a network.
#[derive(Clone, Debug)]
pub(crate) enum NetworkLink {
    Wired(Wired),
    Radio(Box<LastHop>),
    /// Of a cell.
    Station(Box<StationPlan>),
}

/// A wireless link.
#[derive(Clone, Debug)]
pub(crate) struct LastHop {
    /// Towards the mobile host.
    pub(crate) down: Radio,
    /// Towards the base station.
    pub(crate) up: Radio,
    /// Whether the latter has a channel of its own.
    pub(crate) up_has_channel: bool,
    /// Which of its ends is the mobile host.
    pub(crate) mobile: usize,
    /// What is added to the names of its random streams.
    pub(crate) suffix: String,
}

/// What goes from one node to another.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) name: String,
    pub(crate) path: FlowPath,
    pub(crate) load: Load,
}

/// What a flow carries.
#[derive(Clone, Debug)]
pub(crate) enum Load {
    Transfer {
        transfer: tcp::Transfer,
        /// By how much it may begin later, at random.
        spread: Duration,
        /// Whether its source knows nothing of the scheme.
        plain: bool,
    },
    Traffic(traffic::Plan),
    /// The requests of an application. The responses are the next flow.
    Requests(application::Plan),
    /// The responses of an application to the requests that its path answers.
    Responses(application::Plan),
}

impl Flow {
    pub(crate) fn source(&self) -> HostId {
        self.path.nodes[0]
    }

    /// Whether it carries a transfer that has an end, or as many requests or responses as are stated. A run
    /// waits for its end.
    pub(crate) fn ends(&self) -> bool {
        match &self.load {
            Load::Transfer { transfer, .. } => transfer.bytes.is_some(),
            Load::Requests(plan) | Load::Responses(plan) => plan.requests.is_some(),
            Load::Traffic(_) => false,
        }
    }

    /// Whether it is a TCP connection.
    pub(crate) fn is_tcp(&self) -> bool {
        !matches!(self.load, Load::Traffic(_))
    }

    pub(crate) fn destination(&self) -> HostId {
        self.path.nodes[self.path.nodes.len() - 1]
    }
}

impl Network {
    /// The wireless links that connections cross, those of applications too, as they are in the direction that
    /// the data take.
    pub(crate) fn radios(&self) -> impl Iterator<Item = &Radio> {
        self.crossed().map(|(_, radio)| radio)
    }

    /// The same, each with the link that it is.
    pub(crate) fn crossed(&self) -> impl Iterator<Item = (LinkId, &Radio)> {
        self.steps().filter_map(|(link, from)| match &self.links[usize::from(link.0)] {
            NetworkLink::Radio(hop) if self.graph.ends(link)[hop.mobile] == from => Some((link, &hop.up)),
            NetworkLink::Radio(hop) => Some((link, &hop.down)),
            NetworkLink::Wired(_) | NetworkLink::Station(_) => None,
        })
    }

    /// Whether a connection crosses two wireless links one after the other, the base station of one being the
    /// mobile host of the other.
    pub(crate) fn has_chained_radios(&self) -> bool {
        let mobile = |link: LinkId| match &self.links[usize::from(link.0)] {
            NetworkLink::Wired(_) => None,
            NetworkLink::Radio(hop) => Some(self.graph.ends(link)[hop.mobile]),
            NetworkLink::Station(_) => Some(self.graph.ends(link)[1]),
        };
        let paths = self.flows.iter().filter(|flow| flow.is_tcp()).map(|flow| &flow.path.nodes);
        paths.flat_map(|nodes| nodes.windows(3)).any(|step| {
            let ends = [(step[0], step[1]), (step[1], step[2])];
            let [before, after] = ends.map(|(a, b)| self.graph.link(a, b).and_then(mobile));
            before.zip(after).is_some_and(|(a, b)| (a == step[1]) != (b == step[1]))
        })
    }

    /// Whether a connection crosses a cell.
    pub(crate) fn has_cell(&self) -> bool {
        self.steps().any(|(link, _)| self.graph.station(link).is_some())
    }

    /// The links on the ways of connections, each with the node that the data come from.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (LinkId, HostId)> {
        let paths = self.flows.iter().filter(|flow| flow.is_tcp()).map(|flow| &flow.path.nodes);
        let steps = paths.flat_map(|nodes| nodes.windows(2));
        steps.filter_map(|step| Some((self.graph.link(step[0], step[1])?, step[0])))
    }
}

/// Collects the network, or what is wrong with it.
struct Survey<'a> {
    scenario: &'a Scenario,
    nodes: BTreeMap<String, HostId>,
    network: Network,
    faults: Vec<Fault>,
}

impl Scenario {
    /// The network that the scenario describes.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub(crate) fn network(&self) -> Result<Network, Vec<Fault>> {
        let network = Network {
            graph: Graph::new(),
            names: Vec::new(),
            links: Vec::new(),
            cell: self.cell.as_ref().map_or_else(CellConfig::default, Cell::config),
            flows: Vec::new(),
            connections: 0,
        };
        let mut survey = Survey { scenario: self, nodes: BTreeMap::new(), network, faults: Vec::new() };
        survey.check_shape();
        if survey.faults.is_empty() {
            survey.add_links();
        }
        if survey.faults.is_empty() {
            survey.add_connections();
            survey.add_traffic();
            survey.add_applications();
            survey.check_stations();
        }
        if survey.faults.is_empty() { Ok(survey.network) } else { Err(survey.faults) }
    }
}

impl Survey<'_> {
    fn fault(&mut self, path: &[&str], problem: impl Into<String>) {
        let path = path.iter().map(|key| (*key).to_owned()).collect();
        self.note(Fault { path, problem: problem.into() });
    }

    /// What a shape's numbers, and a graph's names, cannot be.
    fn check_shape(&mut self) {
        match &self.scenario.topology {
            Topology::LastHop => {}
            Topology::Path(path) => self.check_number("path", "routers", path.routers),
            Topology::Dumbbell(dumbbell) => self.check_number("dumbbell", "pairs", dumbbell.pairs),
            Topology::Cell(cell) => self.check_number("cell", "stations", cell.stations),
            Topology::Graph(graph) => {
                if graph.wired.is_empty() && graph.radio.is_empty() && graph.cell.is_empty() {
                    self.fault(&["topology", "graph"], "found no links, expected one at least");
                }
                for (key, names) in [("wired", &graph.wired), ("radio", &graph.radio), ("cell", &graph.cell)]
                {
                    for (index, name) in names.iter().enumerate().filter(|(_, name)| split(name).is_none()) {
                        let problem = format!(
                            "found \"{name}\", expected two different names with a hyphen between them, \
                             such as \"R1-R2\""
                        );
                        self.fault(&["topology", "graph", key, &index.to_string()], problem);
                    }
                }
            }
        }
    }

    fn check_number(&mut self, shape: &str, key: &str, number: u16) {
        if !(1..=1000).contains(&number) {
            self.fault(&["topology", shape, key], format!("found {number}, expected 1 to 1000"));
        }
    }

    fn add_links(&mut self) {
        let edges = self.scenario.topology.edges();
        self.check_exceptions(&edges);
        for edge in &edges {
            let [a, b] = [0, 1].map(|end| self.node(&edge.ends[end]));
            if self.network.graph.link(a, b).is_some() {
                let problem = format!("found {} a second time, expected it once", edge.name());
                self.fault(&["topology", "graph"], problem);
                continue;
            }
            if let Some(link) = self.link(edge, &edges) {
                match link {
                    NetworkLink::Station(_) => self.network.graph.join(a, b),
                    NetworkLink::Wired(_) | NetworkLink::Radio(_) => self.network.graph.connect(a, b),
                };
                self.network.links.push(link);
            }
        }
    }

    fn node(&mut self, name: &str) -> HostId {
        if let Some(&node) = self.nodes.get(name) {
            return node;
        }
        let node = self.network.graph.add_node();
        self.network.names.push(name.to_owned());
        self.nodes.insert(name.to_owned(), node);
        node
    }

    /// The exceptions must be of links that there are.
    fn check_exceptions(&mut self, edges: &[Edge]) {
        for (name, link) in &self.scenario.link {
            let Some(place) = edges.iter().position(|edge| edge.name() == *name) else {
                let names: Vec<String> = edges.iter().map(Edge::name).collect();
                let problem = format!(
                    "there is no link \"{name}\", {}",
                    alternatives(name, names.iter().map(|n| &**n))
                );
                self.fault(&["link", name], problem);
                continue;
            };
            let edge = &edges[place];
            if let Some((key, others)) = link.first_strange_key(edge) {
                let here = match (edge.in_cell, edge.mobile) {
                    (true, _) => "a link of a cell",
                    (false, None) => "a wired link",
                    (false, Some(_)) => "a wireless link",
                };
                let problem = format!("found it on {here}, expected it on {others} only");
                self.fault(&["link", name, key], problem);
            }
        }
    }

    fn link(&mut self, edge: &Edge, edges: &[Edge]) -> Option<NetworkLink> {
        let name = edge.name();
        let exception = self.scenario.link.get(&name).cloned().unwrap_or_default();
        let missing = |table: &str| {
            format!("missing key {table}, expected a table with the key rate, for the link {name}")
        };
        if edge.in_cell {
            let usual = self.scenario.cell.clone().unwrap_or_default();
            self.check_cell(&usual);
            let suffix = self.suffix(edge, 1, edges);
            let station = exception.station(&usual, suffix.trim_start_matches(':'));
            if let Err(invalid) = station.channel.validate() {
                let table = if exception.states("channel") { vec!["link", &name] } else { vec!["cell"] };
                let keys = ["channel"].into_iter().chain(invalid.field.split('.')).collect();
                self.fault(&[table, keys].concat(), invalid.problem);
            }
            return Some(NetworkLink::Station(Box::new(station)));
        }
        match edge.mobile {
            None => match exception.wired(self.scenario.wired.as_ref()) {
                Some(wired) => Some(NetworkLink::Wired(wired)),
                None => {
                    self.fault(&[], missing("wired"));
                    None
                }
            },
            Some(mobile) => match exception.radio(self.scenario.radio.as_ref()) {
                Some(down) => {
                    self.check_radio(&name, &down, false);
                    let own = down.uplink.clone().unwrap_or_default();
                    let up = own.radio(Some(&down))?;
                    self.check_radio(&name, &up, true);
                    let up_has_channel = own.channel.is_some();
                    let suffix = self.suffix(edge, mobile, edges);
                    let hop = LastHop { down, up, up_has_channel, mobile, suffix };
                    Some(NetworkLink::Radio(Box::new(hop)))
                }
                None => {
                    self.fault(&[], missing("radio"));
                    None
                }
            },
        }
    }

    /// What the types of a cell's parameters cannot say.
    fn check_cell(&mut self, cell: &Cell) {
        if let Err(invalid) = cell.config().validate() {
            let keys = ["cell"].into_iter().chain(invalid.field.split('.')).collect::<Vec<_>>();
            self.fault(&keys, invalid.problem);
        }
    }

    /// A cell sends all that is for one host to one place: to a station, or out of the cell.
    fn check_stations(&mut self) {
        let mut known: BTreeMap<(CellId, HostId), (Option<u16>, usize)> = BTreeMap::new();
        let mut wrong = Vec::new();
        let Network { graph, flows, .. } = &self.network;
        for (index, flow) in flows.iter().enumerate() {
            let forth = flow.path.nodes.clone();
            let back = forth.iter().rev().copied().collect();
            for nodes in [forth, back].into_iter().take(if flow.path.one_way { 1 } else { 2 }) {
                let dst = *nodes.last().expect("a path has nodes");
                for (cell, way) in ways(graph, &nodes) {
                    let (other, first) = *known.entry((cell, dst)).or_insert((way, index));
                    if other != way {
                        wrong.push((index, dst, cell, [way, other], first));
                    }
                }
            }
        }
        for (index, dst, cell, places, first) in wrong {
            let network = &self.network;
            let name = |host: HostId| network.names[usize::from(host.0)].as_str();
            let links = network.graph.cell(cell);
            let [here, there] = places.map(|place| match place {
                Some(station) => {
                    format!("to {}", name(network.graph.ends(links[usize::from(station)])[1]))
                }
                None => String::from("out of it"),
            });
            let problem = format!(
                "the cell of {} would have to send what is for {} {here}, but {there} for {}; \
                 expected one way for both, such as by another via",
                name(network.graph.ends(links[0])[0]),
                name(dst),
                network.flows[first].name
            );
            let flow = network.flows[index].name.clone();
            if matches!(network.flows[index].load, Load::Requests(_) | Load::Responses(_)) {
                self.fault(&["application", &flow], problem);
            } else if matches!(network.flows[index].load, Load::Traffic(_)) {
                self.fault(&["traffic", &flow], problem);
            } else if self.scenario.connection.contains_key(&flow) {
                self.fault(&["connection", &flow], problem);
            } else {
                self.fault(&["transfer"], problem);
            }
        }
    }

    /// The random streams of a wireless link, or of a station, are called after its mobile host, which a shape
    /// names alike however many routers it has: so the host meets the same fades. One with several links needs
    /// their names; the plainest shape leaves out even the host's.
    fn suffix(&self, edge: &Edge, mobile: usize, edges: &[Edge]) -> String {
        let host = |edge: &Edge| edge.mobile.map(|mobile| edge.ends[mobile].clone());
        let links = edges.iter().filter(|other| host(other) == host(edge)).count();
        match (&self.scenario.topology, links) {
            (Topology::LastHop, _) => String::new(),
            (_, 1) => format!(":{}", edge.ends[mobile]),
            _ => format!(":{}", edge.name()),
        }
    }

    /// What the types of the parameters of a wireless link, or of its direction `up`, cannot say.
    fn check_radio(&mut self, name: &str, radio: &Radio, up: bool) {
        let wrong = |key, checked: Result<(), Invalid>| {
            checked.err().map(|invalid| (format!("{key}.{}", invalid.field), invalid.problem))
        };
        let handoff = radio.handoff.map_or(Ok(()), |handoff| handoff.validate());
        // Said of the exception, if one of them is.
        let exceptional = |key| {
            let table = self.table_of(name, key, up);
            (table.last() == Some(&"uplink"), table.len())
        };
        let two_sizes = if exceptional("mtu") > exceptional("unit") {
            ("mtu", "found a largest unit beside a size of every one, unit; expected one of them")
        } else {
            ("unit", "found a size of every unit beside a largest one, mtu; expected one of them")
        };
        let cramped = radio.unit.zip(radio.fec).filter(|(unit, code)| unit.get().bits() < code.n().into());
        let found = [
            wrong("channel", radio.channel.validate()),
            wrong("handoff", handoff),
            wrong("arq", radio.arq.validate()),
            (radio.unit.is_some() && radio.mtu.is_some()).then(|| (two_sizes.0.to_owned(), two_sizes.1)),
            (radio.protect != Protect::Scheme && radio.fec.is_none()).then(|| {
                let problem =
                    "found something to protect, and no code by which; add fec = \"bch-255-131-18\"";
                (String::from("protect"), problem)
            }),
            cramped.map(|_| {
                (
                    String::from("unit"),
                    "found a size with no room for a codeword of fec, expected a larger one",
                )
            }),
        ];
        for (field, problem) in found.into_iter().flatten() {
            let keys: Vec<&str> = field.split('.').collect();
            let table = self.table_of(name, keys[0], up);
            self.fault(&[table, keys].concat(), problem);
        }
        let nested = radio.uplink.as_ref().filter(|_| !up);
        if nested.is_some_and(|own| own.states("drop")) {
            let table = self.table_of(name, "drop", true);
            let problem = "found it on a wireless link, expected it on those of cells only";
            self.fault(&[table, vec!["drop"]].concat(), problem);
        }
        for key in ["handoff", "uplink"].into_iter().filter(|key| nested.is_some_and(|own| own.states(key))) {
            let table = self.table_of(name, key, true);
            self.fault(&[table, vec![key]].concat(), "found it for one direction, expected it for both only");
        }
    }

    /// The table that says `key` of a wireless link, or of its direction `up`.
    fn table_of<'a>(&self, name: &'a str, key: &str, up: bool) -> Vec<&'a str> {
        let states = |link: Option<&Link>| link.is_some_and(|link| link.states(key));
        let own = self.scenario.link.get(name);
        let own_uplink = own.and_then(|link| link.uplink.as_deref());
        let uplink = self.scenario.radio.as_ref().and_then(|radio| radio.uplink.as_deref());
        match (up, states(own)) {
            (true, _) if states(own_uplink) => vec!["link", name, "uplink"],
            (true, _) if own_uplink.is_none() && states(uplink) => vec!["radio", "uplink"],
            (_, true) => vec!["link", name],
            (_, false) => vec!["radio"],
        }
    }

    fn add_connections(&mut self) {
        let scenario = self.scenario;
        let pairs = scenario.topology.pairs();
        let usual = Connection::default();
        let own = |name: &str| scenario.connection.get(name).unwrap_or(&usual);
        let ends_are_stated = scenario.transfer.from.is_some() || scenario.transfer.to.is_some();
        let only_pairs = scenario.connection.keys().all(|name| pairs.iter().any(|pair| pair.name == *name));
        if only_pairs && !(ends_are_stated && scenario.connection.is_empty()) {
            for pair in &pairs {
                self.add_connection(&pair.name, own(&pair.name), Some(pair));
            }
        } else if scenario.connection.is_empty() {
            self.add_connection(&pairs[0].name, &usual, pairs.first().filter(|_| pairs.len() == 1));
        } else {
            for name in scenario.connection.keys() {
                let pair = pairs.iter().find(|pair| pair.name == *name || pairs.len() == 1);
                self.add_connection(name, own(name), pair);
            }
        }
        self.network.connections = self.network.flows.len();
    }

    fn add_connection(&mut self, name: &str, own: &Connection, pair: Option<&Pair>) {
        let usual = &self.scenario.transfer;
        // A value stands where the connection says it, or else where all connections do.
        let key = |key, is_own| if is_own { vec!["connection", name, key] } else { vec!["transfer", key] };
        let start = own.start.unwrap_or(usual.start);
        let spread = own.spread.unwrap_or(usual.spread);
        self.check_start(&key("start", own.start.is_some()), start);
        self.check_start(&key("spread", own.spread.is_some()), start + spread);
        let size = own.size.unwrap_or(usual.size);
        if size.is_some_and(|size| size.0 == 0) {
            self.fault(&key("size", own.size.is_some()), "found \"0 B\", expected at least \"1 B\"");
        }
        let from = own.from.as_ref().or(usual.from.as_ref()).or(pair.map(|pair| &pair.from));
        let to = own.to.as_ref().or(usual.to.as_ref()).or(pair.map(|pair| &pair.to));
        let via = own.via.as_ref().or(usual.via.as_ref());
        let keys = Keys {
            from: key("from", own.from.is_some()),
            to: key("to", own.to.is_some()),
            via: key("via", own.via.is_some()),
        };
        let (from, to) = (from.map_or("", String::as_str), to.map_or("", String::as_str));
        if let Some(nodes) = self.path(from, to, via.map(Vec::as_slice), &keys) {
            let transfer = tcp::Transfer { bytes: size.map(|size| size.0), start: Time::ZERO + start };
            let load = Load::Transfer { transfer, spread, plain: own.plain };
            let path = FlowPath { nodes, one_way: false, answers: None };
            self.network.flows.push(Flow { name: name.to_owned(), path, load });
        }
    }

    /// Notes a fault once: what flows or links have in common is wrong only once.
    fn note(&mut self, fault: Fault) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn check_start(&mut self, path: &[&str], start: Duration) {
        let limit = self.scenario.limit;
        if start >= limit && !limit.is_zero() {
            let problem =
                format!("found \"{start}\", expected an instant before the limit, which is \"{limit}\"");
            self.fault(path, problem);
        }
    }

    fn add_traffic(&mut self) {
        for (name, load) in &self.scenario.traffic {
            let key = |key| vec!["traffic", name, key];
            if self.network.flows.iter().any(|flow| flow.name == *name) {
                self.fault(&["traffic", name], "found the name of a connection, expected another one");
            }
            let keys = Keys { from: key("from"), to: key("to"), via: key("via") };
            let plan = self.plan(name, load);
            if let Some(nodes) = self.path(&load.from, &load.to, load.via.as_deref(), &keys) {
                let path = FlowPath { nodes, one_way: true, answers: None };
                self.network.flows.push(Flow { name: name.clone(), path, load: Load::Traffic(plan) });
            }
        }
    }

    /// From when until when something goes on.
    fn times(&mut self, table: [&str; 2], start: Duration, stop: Option<Duration>) -> (Time, Time) {
        self.check_start(&[table[0], table[1], "start"], start);
        if let Some(stop) = stop.filter(|stop| *stop <= start) {
            let problem =
                format!("found \"{stop}\", expected an instant after the start, which is \"{start}\"");
            self.fault(&[table[0], table[1], "stop"], problem);
        }
        (Time::ZERO + start, stop.map_or(Time::NEVER, |stop| Time::ZERO + stop))
    }

    fn plan(&mut self, name: &str, load: &Traffic) -> traffic::Plan {
        let Traffic { packet_size, start, stop, law, .. } = *load;
        let (start, stop) = self.times(["traffic", name], start, stop);
        let plan = traffic::Plan { size: packet_size, start, stop, law };
        if let Err(invalid) = plan.validate() {
            let keys: Vec<&str> = match invalid.field {
                "size" => vec!["packet_size"],
                law => ["law"].into_iter().chain(law.split('.')).collect(),
            };
            self.fault(&[vec!["traffic", name], keys].concat(), invalid.problem);
        }
        plan
    }

    fn add_applications(&mut self) {
        for (name, application) in &self.scenario.application {
            let key = |key| vec!["application", name, key];
            if self.network.flows.iter().any(|flow| flow.name == *name) {
                let problem = "found the name of a connection or of other traffic, expected another one";
                self.fault(&["application", name], problem);
            }
            let keys = Keys { from: key("from"), to: key("to"), via: key("via") };
            let Application { from, to, via, .. } = application;
            let plan = self.application(name, application);
            let Some((nodes, plan)) = self.path(from, to, via.as_deref(), &keys).zip(plan) else { continue };
            let back = nodes.iter().rev().copied().collect();
            let asked = FlowId(self.network.flows.len() as u16);
            for (nodes, answers, load) in
                [(nodes, None, Load::Requests(plan)), (back, Some(asked), Load::Responses(plan))]
            {
                let path = FlowPath { nodes, one_way: false, answers };
                self.network.flows.push(Flow { name: name.clone(), path, load });
            }
        }
    }

    /// What an application asks for; none if it does not say.
    fn application(&mut self, name: &str, stated: &Application) -> Option<application::Plan> {
        let Application { request, response, think, start, stop, requests, .. } = *stated;
        let (start, stop) = self.times(["application", name], start, stop);
        let laws = [
            ("request", "constant = \"350 B\"", request.is_some()),
            ("response", "exponential = \"10 KB\"", response.is_some()),
            ("think", "exponential = \"30 s\"", think.is_some()),
        ];
        for (key, usual, _) in laws.into_iter().filter(|law| !law.2) {
            let problem = format!(
                "missing key {key}, expected a law such as {key}.{usual}, or a kind such as \"http\""
            );
            self.fault(&["application", name], problem);
        }
        let warmup = Time::ZERO + self.scenario.warmup;
        let (request, response, think) = (request?, response?, think?);
        let plan = application::Plan { request, response, think, start, stop, requests, warmup };
        if let Err((key, invalid)) = plan.validate() {
            let keys = invalid.field.split('.').filter(|key| !key.is_empty());
            let path: Vec<&str> = ["application", name, key].into_iter().chain(keys).collect();
            self.fault(&path, invalid.problem);
        }
        Some(plan)
    }

    /// The nodes from one to another: by way of those that are given, or over the fewest links.
    fn path(&mut self, from: &str, to: &str, via: Option<&[String]>, keys: &Keys<'_>) -> Option<Vec<HostId>> {
        let start = self.known(from, &keys.from)?;
        let end = self.known(to, &keys.to)?;
        if start == end {
            let problem = format!("found \"{to}\", where it comes from, expected another node");
            self.fault(&keys.to, problem);
            return None;
        }
        let Some(via) = via else {
            let path = self.network.graph.shortest_path(start, end);
            if path.is_none() {
                let problem = format!("found \"{to}\", to which no links lead from \"{from}\"");
                self.fault(&keys.to, problem);
            }
            return path;
        };
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
                format!("found \"{next}\" a second time on the way, expected it once")
            } else {
                continue;
            };
            self.fault(&keys.via, problem);
            return None;
        }
        Some(nodes)
    }

    fn known(&mut self, name: &str, at: &[&str]) -> Option<HostId> {
        let found = self.nodes.get(name).copied();
        if found.is_none() {
            let names = alternatives(name, self.nodes.keys().map(String::as_str));
            let problem = match name {
                "" => format!("missing, {names}"),
                _ => format!("found \"{name}\", {names}"),
            };
            self.fault(at, problem);
        }
        found
    }
}

/// The cells that send packets on which take this way, each with the station that it sends them to; none if
/// they leave the cell.
fn ways(graph: &Graph, nodes: &[HostId]) -> Vec<(CellId, Option<u16>)> {
    let steps =
        nodes.windows(2).map(|step| (graph.link(step[0], step[1]).expect("it follows links"), step[0]));
    let steps: Vec<(LinkId, HostId)> = steps.collect();
    let ways = steps.iter().enumerate().filter_map(|(index, &(link, from))| {
        let (cell, station) = graph.station(link)?;
        if graph.ends(link)[0] == from {
            return Some((cell, Some(station)));
        }
        // Down again in the same cell: the next step says where.
        let inside = steps.get(index + 1).is_some_and(|&(next, _)| graph.stays_within(link, next));
        (!inside).then_some((cell, None))
    });
    ways.collect()
}

/// Where the ends and the way of a flow are written.
struct Keys<'a> {
    from: Vec<&'a str>,
    to: Vec<&'a str>,
    via: Vec<&'a str>,
}
