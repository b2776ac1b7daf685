//! The network of a scenario: its graph, the parameters of its links, and its flows with their paths.

use lasthop_base::{BitRate, Duration, Streams, Time};
use lasthop_channel::Model;
use lasthop_proto::{HostId, application, tcp, traffic};
use lasthop_sim::network::{FlowPath, Graph, LinkId};
use lasthop_sim::wlan::{AboveMac, BssConfig, Station, StationStreams};

use crate::schema::{Radio, Wired};

/// The network of a scenario, common to all its runs.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) graph: Graph,
    /// Names of the nodes, indexed as in the graph.
    pub(crate) names: Vec<String>,
    /// The links, indexed as in the graph.
    pub(crate) links: Vec<NetworkLink>,
    /// Parameters common to all BSSs.
    pub(crate) bss: BssConfig,
    /// The flows: connections first, then other traffic, then the requests and the responses of each
    /// application.
    pub(crate) flows: Vec<Flow>,
    pub(crate) connections: usize,
    /// Time limit of a run.
    pub(crate) limit: Time,
}

/// A link of a network.
#[derive(Clone, Debug)]
pub(crate) enum NetworkLink {
    Wired(Box<Wired>),
    Radio(Box<LastHop>),
    /// A link from an access point to a station.
    Station(Box<StationConfig>),
}

impl NetworkLink {
    /// Whether the rate or the delay varies in either direction.
    pub(crate) fn varies(&self) -> bool {
        match self {
            NetworkLink::Wired(wired) => wired.rate.varies() || wired.delay.varies(),
            NetworkLink::Radio(hop) => {
                [&hop.down, &hop.up].iter().any(|radio| radio.rate.varies() || radio.delay.varies())
            }
            NetworkLink::Station(_) => false,
        }
    }

    /// The shortest time between two changes of the rate or the delay of a direction; `None` if it has no steps.
    pub(crate) fn step(&self, up: bool) -> Option<Duration> {
        let (rate, delay) = match self {
            NetworkLink::Wired(wired) => (&wired.rate, &wired.delay),
            NetworkLink::Radio(hop) if up => (&hop.up.rate, &hop.up.delay),
            NetworkLink::Radio(hop) => (&hop.down.rate, &hop.down.delay),
            NetworkLink::Station(_) => return None,
        };
        rate.mean_step().into_iter().chain(delay.mean_step()).min()
    }

    /// The mean rate of a direction; `None` for the links of a cell, which share one.
    pub(crate) fn rate(&self, up: bool) -> Option<BitRate> {
        match self {
            NetworkLink::Wired(wired) => Some(wired.rate.nominal()),
            NetworkLink::Radio(hop) => Some(if up { hop.up.rate.nominal() } else { hop.down.rate.nominal() }),
            NetworkLink::Station(_) => None,
        }
    }
}

/// A wireless link.
#[derive(Clone, Debug)]
pub(crate) struct LastHop {
    /// Direction to the mobile host.
    pub(crate) down: Radio,
    /// Direction to the base station.
    pub(crate) up: Radio,
    /// Whether `up` has a channel of its own.
    pub(crate) up_has_channel: bool,
    /// Index of the end that is the mobile host.
    pub(crate) mobile: usize,
    /// Suffix of the names of its random streams.
    pub(crate) suffix: String,
}

/// Parameters of a station.
#[derive(Clone, Debug)]
pub(crate) struct StationConfig {
    /// Name of its random streams.
    pub(crate) name: String,
    pub(crate) channel: Model,
    pub(crate) drop: AboveMac,
}

impl StationConfig {
    /// The station in a run; `hosts` are reached through it.
    pub(crate) fn station(&self, hosts: Vec<HostId>, streams: Streams) -> Station {
        Station {
            hosts,
            channel: self.channel.build(streams.stream(&["channel:", &self.name].concat())),
            above_mac: self.drop,
            streams: StationStreams::named(&streams, &self.name),
        }
    }
}

/// Packets from one node to another.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) name: String,
    pub(crate) path: FlowPath,
    pub(crate) workload: Workload,
    /// TCP settings of both endpoints.
    pub(crate) tcp: tcp::Settings,
}

/// The contents of a flow.
#[derive(Clone, Debug)]
pub(crate) enum Workload {
    Transfer {
        transfer: tcp::Transfer,
        /// Upper bound of a random delay of the start.
        spread: Duration,
        /// Whether the source has no reaction of the scheme.
        plain: bool,
    },
    Traffic(traffic::Config),
    /// The requests of an application. The next flow carries the responses.
    Requests(application::Config),
    /// The responses of an application to the requests of the flow that its path `answers`.
    Responses(application::Config),
}

impl Flow {
    pub(crate) fn source(&self) -> HostId {
        self.path.nodes[0]
    }

    /// Whether the flow is finite: a transfer of given size, or a given number of requests or responses. A
    /// run waits for its end.
    pub(crate) fn ends(&self) -> bool {
        match &self.workload {
            Workload::Transfer { transfer, .. } => transfer.bytes.is_some(),
            Workload::Requests(config) | Workload::Responses(config) => config.requests.is_some(),
            Workload::Traffic(_) => false,
        }
    }

    /// Whether it is a TCP connection.
    pub(crate) fn is_tcp(&self) -> bool {
        !matches!(self.workload, Workload::Traffic(_))
    }

    pub(crate) fn destination(&self) -> HostId {
        self.path.nodes[self.path.nodes.len() - 1]
    }
}

impl Network {
    /// TCP settings of all connections.
    pub(crate) fn settings(&self) -> impl Iterator<Item = &tcp::Settings> {
        self.flows.iter().filter(|flow| flow.is_tcp()).map(|flow| &flow.tcp)
    }

    /// TCP settings of the connections that schemes extend: all but those of plain senders.
    pub(crate) fn extended(&self) -> impl Iterator<Item = &tcp::Settings> {
        let is_plain = |flow: &&Flow| matches!(flow.workload, Workload::Transfer { plain: true, .. });
        self.flows.iter().filter(move |flow| flow.is_tcp() && !is_plain(flow)).map(|flow| &flow.tcp)
    }

    /// The wireless links that connections and applications cross, each in the direction of the data.
    pub(crate) fn radios(&self) -> impl Iterator<Item = &Radio> {
        self.crossed().map(|(_, radio)| radio)
    }

    /// Like [`radios`](Network::radios), with the link ids.
    pub(crate) fn crossed(&self) -> impl Iterator<Item = (LinkId, &Radio)> {
        self.steps().filter_map(|(link, from)| match &self.links[usize::from(link.0)] {
            NetworkLink::Radio(hop) if self.graph.ends(link)[hop.mobile] == from => Some((link, &hop.up)),
            NetworkLink::Radio(hop) => Some((link, &hop.down)),
            NetworkLink::Wired(_) | NetworkLink::Station(_) => None,
        })
    }

    /// Whether a connection crosses two consecutive wireless links, where the base station of one is the
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

    /// The links on the paths of connections, or of other traffic if there are none, each with the node at
    /// which the data enter it.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (LinkId, HostId)> {
        let any_tcp = self.flows.iter().any(Flow::is_tcp);
        let paths =
            self.flows.iter().filter(move |flow| flow.is_tcp() == any_tcp).map(|flow| &flow.path.nodes);
        let steps = paths.flat_map(|nodes| nodes.windows(2));
        steps.filter_map(|step| Some((self.graph.link(step[0], step[1])?, step[0])))
    }
}
