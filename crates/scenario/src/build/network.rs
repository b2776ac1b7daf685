//! The network of a scenario: its graph, what each link is, and the flows with their paths.

use lasthop_base::{Duration, Streams, Time};
use lasthop_channel::Model;
use lasthop_proto::{HostId, application, tcp, traffic};
use lasthop_sim::network::{FlowPath, Graph, LinkId};
use lasthop_sim::wlan::{AboveMac, BssConfig, Station, StationStreams};

use crate::schema::{Radio, Wired};

/// The network of a scenario: everything that its runs have in common.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) graph: Graph,
    /// The nodes' names, by their places in the graph.
    pub(crate) names: Vec<String>,
    /// The links, by their places in the graph.
    pub(crate) links: Vec<NetworkLink>,
    /// What all BSSs have in common.
    pub(crate) bss: BssConfig,
    /// The flows: connections first, then other traffic, then the requests and the responses of each
    /// application.
    pub(crate) flows: Vec<Flow>,
    pub(crate) connections: usize,
    /// When a run ends at the latest.
    pub(crate) limit: Time,
}

/// A link of a network.
#[derive(Clone, Debug)]
pub(crate) enum NetworkLink {
    Wired(Wired),
    Radio(Box<LastHop>),
    /// From an access point to a station.
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

/// A station as a network has it.
#[derive(Clone, Debug)]
pub(crate) struct StationPlan {
    /// What its random streams are called after.
    pub(crate) name: String,
    pub(crate) channel: Model,
    pub(crate) drop: AboveMac,
}

impl StationPlan {
    /// The station in a run, through which these hosts are reached.
    pub(crate) fn station(&self, hosts: Vec<HostId>, streams: Streams) -> Station {
        Station {
            hosts,
            channel: self.channel.build(streams.stream(&["channel:", &self.name].concat())),
            above_mac: self.drop,
            streams: StationStreams::named(&streams, &self.name),
        }
    }
}

/// What goes from one node to another.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) name: String,
    pub(crate) path: FlowPath,
    pub(crate) load: Load,
    /// TCP at both of its ends.
    pub(crate) tcp: tcp::Settings,
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
    /// TCP of each connection.
    pub(crate) fn settings(&self) -> impl Iterator<Item = &tcp::Settings> {
        self.flows.iter().filter(|flow| flow.is_tcp()).map(|flow| &flow.tcp)
    }

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

    /// Whether a connection crosses a BSS.
    pub(crate) fn crosses_bss(&self) -> bool {
        self.steps().any(|(link, _)| self.graph.station(link).is_some())
    }

    /// The links on the ways of connections, or of other traffic if there are none, each with the node that the data
    /// come from.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (LinkId, HostId)> {
        let any_tcp = self.flows.iter().any(Flow::is_tcp);
        let paths =
            self.flows.iter().filter(move |flow| flow.is_tcp() == any_tcp).map(|flow| &flow.path.nodes);
        let steps = paths.flat_map(|nodes| nodes.windows(2));
        steps.filter_map(|step| Some((self.graph.link(step[0], step[1])?, step[0])))
    }
}
