//! The network of a scenario: its graph, the parameters of its links, and its flows with their paths.
//!
//! ```text
//! Scenario ──resolve──> Network ──with a combination of schemes──> placement: agents and proxies at ends of links
//!              └──> faults, also those of validate
//! ```

mod placement;
mod refusal;
mod resolve;
mod timing;
mod validate;

use std::collections::{BTreeMap, BTreeSet};

use lasthop_base::{BitRate, Bytes, Duration, Streams, Time};
use lasthop_channel::{Channel, Itinerary, Model, Moves, Presence};
use lasthop_link::graph::{Graph, LinkId};
use lasthop_link::queue::{Management, Queue, QueueLimit, fq_codel, priority};
use lasthop_link::wifi::{MPDU_OVERHEAD, PpduFormat, Rate, Scheduler, StationRadio, WifiConfig};
use lasthop_link::wlan::{AboveMac, BssConfig};
use lasthop_link::{Dispatch, FlowPath};
use lasthop_proto::scheme::{Combination, LinkEnd, LinkUse, QueueUse};
use lasthop_proto::{FlowId, HostId, application, arq, tcp, traffic};

use crate::schema::{Radio, Wired};
use crate::stacks::StackSender;

pub use placement::{Ahead, Crossing, Slot, base_station_end, chains, proxies};
pub use resolve::datagrams;
pub use validate::TooLarge;
pub(crate) use validate::{LINK_TABLES, Stated};

/// Why a scheme that protects marked packets has no effect where none are.
const UNMARKED: &str =
    "nobody marks packets here; it is for real hosts, which mark their own, in `lasthop emulate`";

/// Why a scheme that reads TCP has no effect on connections of other stacks.
const UNREADABLE: &str = "QUIC encrypts what it would read or change in TCP";

/// Why a scheme for QUIC has no effect where no connection uses it.
const NO_QUIC: &str = "it acts on QUIC only, which no connection uses";

/// Why a scheme that supplies an ARQ has no effect in cells.
const OWN_ARQ: &str = "its ARQ is for links of [radio], and a cell has one of its own";

/// The network of a scenario, common to all its runs.
#[derive(Clone, Debug)]
pub struct Network {
    /// Nodes and links.
    pub graph: Graph,
    /// Names of the nodes, indexed as in the graph.
    pub names: Vec<String>,
    /// The links, indexed as in the graph.
    pub links: Vec<NetworkLink>,
    /// Parameters common to all BSSs.
    pub bss: BssKind,
    /// The dispatcher of all shared radios.
    pub dispatch: Dispatch,
    /// The flows: connections first, then other traffic, then the requests and the responses of each
    /// application.
    pub flows: Vec<Flow>,
    /// The number of connections among the flows.
    pub connections: usize,
    /// The mobile hosts that move.
    pub moving: Vec<MovingHost>,
    /// Time limit of a run.
    pub limit: Time,
}

/// The MAC of all BSSs, with its parameters.
#[derive(Clone, Debug)]
pub enum BssKind {
    /// 802.11a, 802.11b or 802.11g.
    Dcf(BssConfig),
    /// 802.11n, 802.11ac or 802.11ax.
    Edca(Box<WifiConfig>),
}

impl Default for BssKind {
    fn default() -> BssKind {
        BssKind::Dcf(BssConfig::default())
    }
}

impl BssKind {
    /// The bit rate of data frames; of EDCA, the highest with one stream.
    pub fn data_rate(&self) -> BitRate {
        match self {
            BssKind::Dcf(config) => config.phy.data_rate(),
            BssKind::Edca(config) => config.format.bit_rate(fastest(&config.format, 1)),
        }
    }

    /// Bits exposed to errors and their air time, for a frame that carries a packet of `size`: everything after the preamble;
    /// of EDCA, at the highest rate with one stream.
    pub fn exposed(&self, size: Bytes) -> (u64, Duration) {
        match self {
            BssKind::Dcf(config) => config.phy.exposed(size),
            BssKind::Edca(config) => {
                let (mpdu, rate) = (size + MPDU_OVERHEAD, fastest(&config.format, 1));
                let air_time = config.format.air_time(rate, config.format.single(mpdu));
                (mpdu.bits(), air_time - config.format.preamble(1))
            }
        }
    }

    /// The table of a scenario file that has its parameters.
    pub(crate) fn table(&self) -> &'static str {
        match self {
            BssKind::Dcf(_) => "cell",
            BssKind::Edca(_) => "wifi",
        }
    }
}

/// The highest rate of a format with up to `streams` streams.
fn fastest(format: &PpduFormat, streams: u8) -> Rate {
    format.rates(streams).max_by_key(|rate| format.bits_per_symbol(*rate)).expect("every format has rates")
}

/// A link of a network.
#[derive(Clone, Debug)]
pub enum NetworkLink {
    /// A wired link; both directions are alike.
    Wired(Box<Wired>),
    /// A wireless link, of its own radio or sharing one.
    Radio(Box<LastHop>),
    /// A link from an access point to a station.
    Station(Box<StationConfig>),
}

impl NetworkLink {
    /// Whether the rate or the delay varies in either direction.
    pub fn varies(&self) -> bool {
        match self {
            NetworkLink::Wired(wired) => wired.rate.varies() || wired.delay.varies(),
            NetworkLink::Radio(hop) => hop.down.varies() || hop.up.varies(),
            NetworkLink::Station(_) => false,
        }
    }

    /// The shortest time between two changes of the rate or the delay of a direction; `None` if it has no steps.
    pub fn step(&self, up: bool) -> Option<Duration> {
        let (rate, delay) = match self {
            NetworkLink::Wired(wired) => (&wired.rate, &wired.delay),
            NetworkLink::Radio(hop) if up => (&hop.up.rate, &hop.up.delay),
            NetworkLink::Radio(hop) => (&hop.down.rate, &hop.down.delay),
            NetworkLink::Station(_) => return None,
        };
        rate.mean_step().into_iter().chain(delay.mean_step()).min()
    }

    /// The mean rate of a direction; `None` for the links of a cell, which share one.
    pub fn rate(&self, up: bool) -> Option<BitRate> {
        match self {
            NetworkLink::Wired(wired) => Some(wired.rate.nominal()),
            NetworkLink::Radio(hop) => Some(if up { hop.up.nominal_rate() } else { hop.down.nominal_rate() }),
            NetworkLink::Station(_) => None,
        }
    }
}

/// A wireless link.
#[derive(Clone, Debug)]
pub struct LastHop {
    /// Direction to the mobile host.
    pub down: Radio,
    /// Direction to the base station.
    pub up: Radio,
    /// Whether `up` has its own channel.
    pub up_has_channel: bool,
    /// Index of the end that is the mobile host.
    pub mobile: usize,
    /// Suffix of the names of its random streams.
    pub suffix: String,
    /// If the mobile host moves: its index among the moving hosts, and the number of the base station.
    pub place: Option<(usize, u16)>,
}

impl LastHop {
    /// The ARQ of the direction that leads away from one of its ends.
    pub fn arq(&self, from: usize, link: LinkUse) -> arq::Config {
        let (sender, own, opposite) = if from == self.mobile {
            (LinkEnd::MobileHost, &self.up, &self.down)
        } else {
            (LinkEnd::BaseStation, &self.down, &self.up)
        };
        link.arq.of(sender, own.arq, opposite.arq)
    }

    /// The channel of the direction that leads away from one of its ends. Both directions use copies of one random
    /// stream, so that they meet the same fades, unless they have separate channels.
    pub fn channel(&self, from: usize, network: &Network, streams: Streams) -> Box<dyn Channel> {
        let (radio, name, lag) = match from == self.mobile {
            true if self.up_has_channel => (&self.up, "uplink-channel", Duration::ZERO),
            true => (&self.up, "channel", Duration::ZERO),
            false => (&self.down, "channel", self.down.delay.nominal()),
        };
        let channel = radio.channel.build(streams.stream(&[name, &self.suffix].concat()));
        let channel = match radio.outage {
            Some(outages) => outages.interrupt(channel),
            None => channel,
        };
        match self.place {
            Some((index, station)) if !network.moving[index].overlap => {
                let itinerary = network.moving[index].itinerary(streams, network.limit);
                Box::new(Presence::new(station, itinerary, channel, lag))
            }
            _ => channel,
        }
    }
}

/// A mobile host that moves between base stations.
#[derive(Clone, Debug)]
pub struct MovingHost {
    /// The host.
    pub host: HostId,
    /// Name of its random stream.
    pub stream: String,
    /// Its base stations, in order.
    pub stations: Vec<HostId>,
    /// When and where it moves.
    pub moves: Moves,
    /// Time between leaving a base station and being reachable at the next.
    pub gap: Duration,
    /// Whether the host hears all its base stations wherever it is.
    pub overlap: bool,
}

impl MovingHost {
    /// Its stays in a run.
    pub fn itinerary(&self, streams: Streams, limit: Time) -> Itinerary {
        let stations = self.stations.len() as u16;
        Itinerary::new(self.moves.clone(), stations, self.gap, streams.stream(&self.stream), limit)
    }
}

/// Parameters of a station.
#[derive(Clone, Debug)]
pub struct StationConfig {
    /// Name of its random streams.
    pub name: String,
    /// Frame errors.
    pub channel: Model,
    /// Losses above the MAC.
    pub drop: AboveMac,
    /// Rates and losses by rate; `None` unless the BSS has EDCA.
    pub radio: Option<StationRadio>,
}

impl StationConfig {
    /// Its channel in a run.
    pub fn channel(&self, streams: Streams) -> Box<dyn Channel> {
        self.channel.build(streams.stream(&["channel:", &self.name].concat()))
    }
}

/// Packets from one node to another.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its name: that of its table, or of the connection of a shape.
    pub name: String,
    /// Its path.
    pub path: FlowPath,
    /// What it carries.
    pub workload: Workload,
    /// TCP settings of both endpoints.
    pub tcp: tcp::Settings,
    /// The feedback of ECN marks that the receiver supports, if its host states another than `tcp` has.
    pub receiver_ecn: Option<tcp::EcnMode>,
    /// The stack of a connection that does not use TCP.
    pub stack: Option<StackSender>,
}

/// The contents of a flow.
#[derive(Clone, Debug)]
pub enum Workload {
    /// A connection.
    Transfer {
        /// Size and start.
        transfer: tcp::Transfer,
        /// Upper bound of a random delay of the start.
        spread: Duration,
        /// Whether the source has no reaction of the scheme.
        plain: bool,
    },
    /// Datagrams.
    Traffic {
        /// Their sizes and departures.
        config: traffic::Config,
        /// The codec and buffer of a call; `None` for other traffic.
        voip: Option<traffic::voip::Voip>,
    },
    /// The requests of an application's first connection. The flow of its responses follows, and then two flows for each
    /// further connection.
    Application(Box<application::Config>),
    /// Another flow of an application: the id is that of the application's first flow.
    Joined(FlowId),
}

impl Flow {
    /// The node at which it begins.
    pub fn source(&self) -> HostId {
        self.path.nodes[0]
    }

    /// The size of its data packets.
    pub fn packet_size(&self) -> Bytes {
        match &self.workload {
            Workload::Traffic { config, .. } => config.size,
            Workload::Transfer { .. } | Workload::Application(_) | Workload::Joined(_) => match &self.stack {
                Some(sender) => sender.quic.packet_size(),
                None => self.tcp.packet_size,
            },
        }
    }

    /// Whether it is a connection, of any stack.
    pub fn is_connection(&self) -> bool {
        !matches!(self.workload, Workload::Traffic { .. })
    }

    /// Whether it is a TCP connection, which schemes can read, split and extend.
    pub fn is_tcp(&self) -> bool {
        self.is_connection() && self.stack.is_none()
    }

    /// Whether it is a connection that schemes extend: all of TCP are but those of plain senders.
    pub(crate) fn is_extended(&self) -> bool {
        self.is_tcp() && !matches!(self.workload, Workload::Transfer { plain: true, .. })
    }

    /// The node at which it ends.
    pub fn destination(&self) -> HostId {
        self.path.nodes[self.path.nodes.len() - 1]
    }
}

impl Network {
    /// Whether a flow is finite: a transfer of given size, or an application that has an end. A run waits for its end.
    pub fn ends(&self, index: usize) -> bool {
        match &self.flows[index].workload {
            Workload::Transfer { transfer, .. } => transfer.bytes.is_some(),
            Workload::Application(config) => config.activity.ends(),
            Workload::Joined(first) => self.ends(first.index()),
            Workload::Traffic { .. } => false,
        }
    }

    /// The queues of all links, and of the stations of a radio that is shared.
    pub fn queues(&self) -> impl Iterator<Item = &Queue> {
        let of_bss = match &self.bss {
            BssKind::Edca(config) => vec![&config.queue, &config.station_queue],
            _ => Vec::new(),
        };
        let of_links = self.links.iter().flat_map(|link| match link {
            NetworkLink::Wired(wired) => vec![&wired.queue],
            NetworkLink::Radio(hop) => vec![&hop.down.queue, &hop.up.queue],
            NetworkLink::Station(_) => Vec::new(),
        });
        of_bss.into_iter().chain(of_links)
    }

    /// Replaces the queues before wireless links by those that a combination of schemes uses. With a discipline, an access
    /// point has a queue for each station, which it serves by air time, as Linux does; the target of Linux's discipline is 20 ms.
    pub fn use_queues(&mut self, queue: QueueUse) {
        if let (BssKind::Edca(config), QueueUse::FqCodel { .. }) = (&mut self.bss, queue) {
            config.queue = queue_in_use(queue, config.queue);
            config.station_queue = queue_in_use(queue, config.station_queue);
            if config.scheduler == Scheduler::Fifo {
                config.scheduler = Scheduler::Airtime;
            }
        }
        for link in &mut self.links {
            if let NetworkLink::Radio(hop) = link {
                for radio in [&mut hop.down, &mut hop.up] {
                    radio.queue = queue_in_use(queue, radio.queue);
                }
            }
        }
    }

    /// The schemes of a combination that act only by reactions, as [`Combination::reacting`]. None for applications whose
    /// TCP connections are split: what reactions at base stations did for them is not counted. Where no connection uses TCP, all
    /// schemes that read TCP; where none uses QUIC, those that need it. A code for marks that nobody sets, and an ARQ where connections
    /// cross cells only, whatever is used.
    pub fn reacting(&self, combination: &Combination<'_>) -> Vec<(&'static str, &'static str)> {
        let has_tcp = self.flows.iter().any(Flow::is_tcp) || !self.flows.iter().any(Flow::is_connection);
        let has_quic = self.flows.iter().any(|flow| flow.stack.is_some());
        let idle = combination.schemes().filter(|scheme| match has_tcp {
            true => scheme.needs_quic() && !has_quic,
            false => scheme.reads_tcp(),
        });
        let reason = if has_tcp { NO_QUIC } else { UNREADABLE };
        let mut found: Vec<_> = idle.map(|scheme| (scheme.name(), reason)).collect();
        let is_split = |flow: &Flow| flow.is_tcp() && matches!(flow.workload, Workload::Application(_));
        if has_tcp && (combination.splitter().is_none() || !self.flows.iter().any(is_split)) {
            found.extend(combination.reacting(self.settings()));
        }
        let marks = |flow: &Flow, mark| matches!(&flow.workload, Workload::Traffic { config, .. } if config.dscp == mark);
        if let Some((scheme, mark)) = combination.awaits_marks()
            && !self.flows.iter().any(|flow| marks(flow, mark))
        {
            found.push((scheme, UNMARKED));
        }
        let supplier =
            combination.arq_supplier().filter(|_| self.crosses_bss() && self.radios().next().is_none());
        if let Some(scheme) = supplier.filter(|scheme| found.iter().all(|(known, _)| known != scheme)) {
            found.push((scheme, OWN_ARQ));
        }
        found
    }

    /// The libraries of other stacks than TCP that connections use, with their versions.
    pub fn stacks(&self) -> Vec<&'static str> {
        let versions = self.flows.iter().filter_map(|flow| Some(flow.stack?.stack.version()));
        versions.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// TCP settings of all connections.
    pub fn settings(&self) -> impl Iterator<Item = &tcp::Settings> {
        self.flows.iter().filter(|flow| flow.is_tcp()).map(|flow| &flow.tcp)
    }

    /// TCP settings of the connections that schemes extend: all but those of plain senders.
    pub(crate) fn extended(&self) -> impl Iterator<Item = &tcp::Settings> {
        self.flows.iter().filter(|flow| flow.is_extended()).map(|flow| &flow.tcp)
    }

    /// Like [`crossed`](Network::crossed), without the ids.
    pub(crate) fn radios(&self) -> impl Iterator<Item = &Radio> {
        self.crossed().map(|(_, radio)| radio)
    }

    /// The wireless links that connections and applications cross, each with its id and in the direction of the data.
    pub fn crossed(&self) -> impl Iterator<Item = (LinkId, &Radio)> {
        self.steps().filter_map(|(link, from)| Some((link, self.radio(link, from)?)))
    }

    /// The direction of a wireless link that leads away from `from`; `None` for other links.
    fn radio(&self, link: LinkId, from: HostId) -> Option<&Radio> {
        match &self.links[link.index()] {
            NetworkLink::Radio(hop) if self.end_at(link, hop, from) == LinkEnd::MobileHost => Some(&hop.up),
            NetworkLink::Radio(hop) => Some(&hop.down),
            NetworkLink::Wired(_) | NetworkLink::Station(_) => None,
        }
    }

    /// The end of a wireless link at the node `from`.
    fn end_at(&self, link: LinkId, hop: &LastHop, from: HostId) -> LinkEnd {
        match self.graph.ends(link)[hop.mobile] == from {
            true => LinkEnd::MobileHost,
            false => LinkEnd::BaseStation,
        }
    }

    /// The largest packet of a flow that no wireless link fragments, given what a tunnel adds to it at each end of the link.
    pub(crate) fn mtu(&self, flow: &Flow, overheads: [Bytes; 2]) -> Option<Bytes> {
        let mtus = self.steps_of(flow).filter_map(|(link, from)| {
            let mtu = self.radio(link, from)?.mtu?.get();
            Some(self.room(link, from, mtu, overheads))
        });
        mtus.min()
    }

    /// The size above which packets of a flow vanish on one of its links, given what a tunnel adds to them at each end of a wireless
    /// link.
    pub(crate) fn black_hole(&self, flow: &Flow, overheads: [Bytes; 2]) -> Option<Bytes> {
        let holes = self.steps_of(flow).filter_map(|(link, from)| match &self.links[link.index()] {
            NetworkLink::Wired(wired) => wired.black_hole,
            NetworkLink::Radio(_) | NetworkLink::Station(_) => {
                let hole = self.radio(link, from)?.black_hole?;
                Some(self.room(link, from, hole, overheads))
            }
        });
        holes.min()
    }

    /// What is left of `size` on a link beside what a tunnel adds to packets from the node `from`.
    fn room(&self, link: LinkId, from: HostId, size: Bytes, overheads: [Bytes; 2]) -> Bytes {
        match &self.links[link.index()] {
            NetworkLink::Radio(hop) => {
                Bytes(size.0.saturating_sub(overheads[self.end_at(link, hop, from) as usize].0))
            }
            NetworkLink::Wired(_) | NetworkLink::Station(_) => size,
        }
    }

    /// The lengths of outages, and the mean lengths of fades, on the path of a flow that may last for `least`: fades with a third of it
    /// as their mean do so once in twenty.
    pub(crate) fn interruptions(&self, flow: &Flow, least: Duration) -> impl Iterator<Item = Duration> {
        self.steps_of(flow).flat_map(move |(link, from)| {
            let (channel, outages) = match &self.links[link.index()] {
                NetworkLink::Station(station) => (Some(&station.channel), None),
                _ => self.radio(link, from).map(|radio| (&radio.channel, radio.outage)).unzip(),
            };
            let outage = outages.flatten().map(|outages| outages.lasts).filter(|lasts| *lasts >= least);
            let fades = channel.and_then(Model::mean_fade).filter(|mean| *mean * 3 >= least);
            outage.into_iter().chain(fades)
        })
    }

    /// The base stations of each moving host.
    pub fn moving_hosts(&self) -> BTreeMap<HostId, Vec<HostId>> {
        self.moving.iter().map(|moving| (moving.host, moving.stations.clone())).collect()
    }

    /// The nodes with the links over which packets travel between base stations: all but those of moving hosts. Empty
    /// without such hosts.
    pub fn fixed(&self) -> Graph {
        let mut fixed = Graph::new();
        if self.moving.is_empty() {
            return fixed;
        }
        self.names.iter().for_each(|_| _ = fixed.add_node());
        let moves = |node: &HostId| self.moving.iter().any(|moving| moving.host == *node);
        for (index, _) in self.links.iter().enumerate() {
            let ends = self.graph.ends(LinkId(index as u32));
            if !ends.iter().any(moves) {
                fixed.connect(ends[0], ends[1]);
            }
        }
        fixed
    }

    /// The sum of the propagation delays on a path.
    pub fn delay(&self, path: &[HostId]) -> Duration {
        let delays = path.windows(2).filter_map(|step| {
            let link = self.graph.link(step[0], step[1])?;
            match &self.links[link.index()] {
                NetworkLink::Wired(wired) => Some(wired.delay.nominal()),
                NetworkLink::Radio(hop) if self.graph.ends(link)[hop.mobile] == step[0] => {
                    Some(hop.up.delay.nominal())
                }
                NetworkLink::Radio(hop) => Some(hop.down.delay.nominal()),
                NetworkLink::Station(_) => None,
            }
        });
        delays.fold(Duration::ZERO, |sum, delay| sum + delay)
    }

    /// The highest bit rate of data frames that a station of the cells can use.
    pub fn fastest_station(&self) -> BitRate {
        let streams = self.links.iter().filter_map(|link| match link {
            NetworkLink::Station(station) => Some(station.radio?.streams),
            NetworkLink::Wired(_) | NetworkLink::Radio(_) => None,
        });
        match (&self.bss, streams.max()) {
            (BssKind::Edca(config), Some(streams)) => {
                config.format.bit_rate(fastest(&config.format, streams))
            }
            _ => self.bss.data_rate(),
        }
    }

    /// The lowest mean rate along a path; for a cell, its data rate.
    ///
    /// # Panics
    /// If the path does not follow links, or has none.
    pub fn slowest(&self, path: &[HostId]) -> BitRate {
        let rates = path.windows(2).map(|step| {
            let link = self.graph.link(step[0], step[1]).expect("a path follows links");
            let kind = &self.links[link.index()];
            let up = match kind {
                NetworkLink::Radio(hop) => self.graph.ends(link)[hop.mobile] == step[0],
                NetworkLink::Wired(_) | NetworkLink::Station(_) => false,
            };
            kind.rate(up).unwrap_or_else(|| self.bss.data_rate())
        });
        rates.min().expect("a path has links")
    }

    /// The wireless links over which mobile hosts at the ends of flows send and receive, by host.
    pub fn last_hops(&self) -> BTreeMap<HostId, BTreeSet<LinkId>> {
        let mut found: BTreeMap<HostId, BTreeSet<LinkId>> = BTreeMap::new();
        for nodes in self.flows.iter().flat_map(|flow| flow.path.all()) {
            for step in [[nodes[0], nodes[1]], [nodes[nodes.len() - 1], nodes[nodes.len() - 2]]] {
                let link = self.graph.link(step[0], step[1]).expect("a path follows links");
                if let NetworkLink::Radio(hop) = &self.links[link.index()]
                    && self.graph.ends(link)[hop.mobile] == step[0]
                {
                    found.entry(step[0]).or_default().insert(link);
                }
            }
        }
        found
    }

    /// The channels of wireless links, towards the mobile host.
    pub fn channels(&self, links: &BTreeSet<LinkId>, streams: Streams) -> Vec<Box<dyn Channel>> {
        let channels = links.iter().filter_map(|link| match &self.links[link.index()] {
            NetworkLink::Radio(hop) => Some(hop.channel(1 - hop.mobile, self, streams)),
            NetworkLink::Wired(_) | NetworkLink::Station(_) => None,
        });
        channels.collect()
    }

    /// The links that share a radio, in order.
    pub(crate) fn shared_hops(&self) -> impl Iterator<Item = &LastHop> {
        (0..).zip(&self.links).filter_map(|(index, link)| match link {
            NetworkLink::Radio(hop) if self.graph.sharer(LinkId(index)).is_some() => Some(&**hop),
            _ => None,
        })
    }

    /// Whether a connection crosses a BSS.
    pub(crate) fn crosses_bss(&self) -> bool {
        self.steps().any(|(link, _)| self.graph.station(link).is_some())
    }

    /// The links on the paths of connections, or of other traffic if there are none, each with the node at
    /// which the data enter it.
    pub fn steps(&self) -> impl Iterator<Item = (LinkId, HostId)> {
        let any = self.flows.iter().any(Flow::is_connection);
        let paths = self.flows.iter().filter(move |flow| flow.is_connection() == any);
        paths.flat_map(|flow| self.steps_of(flow))
    }

    /// How many wireless links a path of a flow has at most.
    pub fn wireless_steps(&self, flow: &Flow) -> usize {
        let is_wireless = |step: &&[HostId]| {
            let link = self.graph.link(step[0], step[1]);
            link.is_some_and(|link| !matches!(self.links[link.index()], NetworkLink::Wired(_)))
        };
        flow.path.all().map(|nodes| nodes.windows(2).filter(is_wireless).count()).max().unwrap_or(0)
    }

    /// The links on the paths of a flow, each with the node at which its data enter it.
    fn steps_of(&self, flow: &Flow) -> impl Iterator<Item = (LinkId, HostId)> {
        let steps = flow.path.all().flat_map(|nodes| nodes.windows(2));
        steps.filter_map(|step| Some((self.graph.link(step[0], step[1])?, step[0])))
    }
}

/// The queue of a link for which the scenario has `own`.
fn queue_in_use(queue: QueueUse, own: Queue) -> Queue {
    match (queue, own) {
        (QueueUse::ExpeditedFirst, Queue::DropTail(limit)) => {
            Queue::Managed(Management::Priority(priority::Params { limit }))
        }
        (QueueUse::Kept | QueueUse::ExpeditedFirst, own) => own,
        (QueueUse::FqCodel { target, interval }, own) => {
            let usual = fq_codel::Params::default();
            let usual = match own {
                Queue::Managed(Management::FqCodel(params)) => params,
                _ if own.limit() == QueueLimit::Unlimited => usual,
                _ => fq_codel::Params { limit: own.limit(), ..usual },
            };
            Queue::Managed(Management::FqCodel(fq_codel::Params { target, interval, ..usual }))
        }
    }
}
