//! The installer: registers the agents, reactions and link settings of a scheme.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::{BitRate, Bytes, Duration, Stream, Streams};

use super::Directions;
use crate::arq;
use crate::component::{Component, Outcomes};
use crate::fec::Covers;
use crate::packet::HostId;
use crate::split::Split;
use crate::stack::{MakeSidecar, Sidecar};
use crate::tcp::{Action, Flags, Reaction, ReceiverReaction, Settings};

/// The source of the wireless link's ARQ.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ArqUse {
    /// The scenario's ARQ, if it has one.
    #[default]
    Kept,
    /// The scenario's ARQ; a link without one is an error.
    Required,
    /// The scenario's ARQ, or this one for a link that has none.
    Supplied(arq::Config),
    /// These, whatever the scenario has: one for what the base station sends, and one for what the mobile host sends.
    Replaced([arq::Config; 2]),
    /// No ARQ, even if the scenario has one.
    Off,
}

impl ArqUse {
    /// The ARQ of what `sender` sends over a link for which the scenario has `own`, and `opposite` for the other
    /// direction. A link with an ARQ in one direction only stays so, unless a scheme replaces it.
    pub fn of(self, sender: LinkEnd, own: arq::Config, opposite: arq::Config) -> arq::Config {
        match self {
            ArqUse::Replaced(arqs) => arqs[sender as usize],
            ArqUse::Supplied(arq) if own == arq::Config::None && opposite == arq::Config::None => arq,
            ArqUse::Kept | ArqUse::Required | ArqUse::Supplied(_) => own,
            ArqUse::Off => arq::Config::None,
        }
    }

    /// Whether a scheme relies on an ARQ.
    pub fn is_needed(self) -> bool {
        matches!(self, ArqUse::Required | ArqUse::Supplied(_) | ArqUse::Replaced(_))
    }
}

/// The queue before the wireless link, in each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueUse {
    /// The scenario's queue.
    #[default]
    Kept,
    /// Packets with the code point of [expedited forwarding](crate::Dscp::EXPEDITED) go first. They and the others each have
    /// the capacity of the scenario's queue.
    ExpeditedFirst,
    /// FQ-CoDel (RFC 8290) with these parameters of CoDel, and the capacity of the scenario's queue if it has a limit.
    FqCodel {
        /// Acceptable standing delay.
        target: Duration,
        /// How long the delay may exceed the target.
        interval: Duration,
    },
}

/// How the schemes of a combination use the wireless link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkUse {
    /// The queue of the link.
    pub queue: QueueUse,
    /// The source of the link's ARQ.
    pub arq: ArqUse,
    /// The packets or units that the link protects with its code, unless the scenario specifies them. If set, the
    /// scenario must have a code.
    pub protects: Option<Covers>,
}

/// An end of a wireless link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkEnd {
    /// The base station.
    BaseStation,
    /// The mobile host.
    MobileHost,
}

/// The place of an agent: an end of a wireless link, or of a wired one that leads from a router to mobile hosts.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The end of the link. An agent at a router is at the end of the base station, from which packets go to mobile hosts.
    pub end: LinkEnd,
    /// Whether the agent is at a router, in front of the wireless link.
    pub is_router: bool,
    /// Name of the base station, mobile host or router.
    pub node: &'a str,
    /// If the mobile host moves: the number of the link's base station among those of the host.
    pub station: Option<u16>,
    /// Name of the link: of its two ends, or of the access point of a BSS.
    pub link: &'a str,
    /// Gross bit rate of the direction in which the agent sends. At a router: the lowest on the way to a mobile host.
    pub rate: BitRate,
    /// Propagation delay of the direction in which the agent sends. At a router: to the farthest mobile host.
    pub delay: Duration,
    /// Gross bit rate of the opposite direction. At a router: the lowest on the way back.
    pub arriving_rate: BitRate,
    /// At a mobile host's end: the hosts that are reached over the link, the mobile host and those behind it.
    pub hosts: Option<&'a BTreeSet<HostId>>,
    /// If the mobile host moves and the agent has [peers](Installer::at_connected_base_stations): the addresses of this
    /// agent at each base station of the host, by number. Otherwise empty.
    pub peers: &'a [HostId],
    /// The random streams of the run.
    pub streams: Streams,
}

impl Site<'_> {
    /// A placeholder site, to query agents about the signals that they need.
    fn unknown(end: LinkEnd) -> Site<'static> {
        let (rate, delay) = (BitRate::from_bps(1).expect("not zero"), Duration::ZERO);
        let streams = Streams::new(0, 0);
        Site {
            end,
            is_router: false,
            node: "",
            station: None,
            link: "",
            rate,
            delay,
            arriving_rate: rate,
            hosts: None,
            peers: &[],
            streams,
        }
    }

    /// A random stream of the scheme `name` at this site. It differs from every other site's.
    pub fn stream(&self, name: &str) -> Stream {
        self.streams.stream_of(format_args!("{name}:{}:{}", self.link, self.node))
    }
}

type Make<'a, T> = Box<dyn Fn() -> Box<T> + Send + Sync + 'a>;
pub(super) type MakeAgent<'a> = Box<dyn Fn(&Site<'_>) -> Box<dyn Component> + Send + Sync + 'a>;
type MakeSplit<'a> = Box<dyn Fn(&Settings) -> Split + Send + Sync + 'a>;

/// An agent that is installed at an end of every wireless link, or at a node.
pub(super) struct InstalledAgent<'a> {
    pub(super) scheme: &'static str,
    pub(super) end: LinkEnd,
    /// The only node that has it, if the combination names one.
    pub(super) node: Option<String>,
    pub(super) make: MakeAgent<'a>,
}

impl InstalledAgent<'_> {
    /// Whether it needs link events, that is, the fate of packets on its link.
    pub(super) fn needs_link_events(&self) -> bool {
        let agent = (self.make)(&Site::unknown(self.end));
        Outcomes::of(|outcome| agent.needs_outcome(outcome)) != Outcomes::default() || agent.needs_corrupted()
    }
}

/// A reaction that is installed at one end of each connection.
pub(super) struct InstalledReaction<'a, R: ?Sized> {
    pub(super) scheme: &'static str,
    pub(super) actions: &'static [Action],
    pub(super) make: Make<'a, R>,
}

/// Collects the constructors of agents and reactions, which are called for every run and site.
#[derive(Default)]
#[allow(missing_debug_implementations, reason = "it collects functions")]
pub struct Installer<'a> {
    /// The scheme that is being installed.
    pub(super) scheme: &'static str,
    /// The node at which it is installed instead of at all base stations.
    pub(super) node: Option<String>,
    pub(super) link: LinkUse,
    /// The schemes that determined the fields of `link`.
    pub(super) by: LinkSchemes,
    pub(super) split: Option<(&'static str, MakeSplit<'a>)>,
    /// The node at which connections are split, instead of at all base stations.
    pub(super) split_node: Option<String>,
    pub(super) agents: Vec<InstalledAgent<'a>>,
    /// Numbers of the agents at base stations that have a control port.
    pub(super) connected: Vec<usize>,
    /// The scheme that brings packets to the next base station of a moving host.
    brings: Option<&'static str>,
    /// The agents that watch each other: the numbers of each two among the agents at the two ends of a link.
    pub(super) pairs: Vec<[usize; 2]>,
    /// The scheme whose agents let some packets of a flow go first.
    expedites: Option<&'static str>,
    /// The scheme whose agents rely on the order of packets on the link, and the directions in which they do.
    pub(super) ordered: Option<(&'static str, Directions)>,
    /// The scheme whose agents are the ends of a tunnel, and their numbers, which are among the `pairs`.
    pub(super) tunnel: Option<(&'static str, [usize; 2])>,
    /// The directions in which the tunnel makes packets longer, and the most that it adds to a packet.
    pub(super) tunnel_overhead: Option<(Directions, Bytes)>,
    /// The reactions at both ends of connections.
    pub(super) senders: Vec<InstalledReaction<'a, dyn Reaction>>,
    pub(super) receivers: Vec<InstalledReaction<'a, dyn ReceiverReaction>>,
    /// What a scheme adds at the sources of stacks other than TCP, and the number of its agent among those at base stations.
    pub(super) sidecar: Option<(&'static str, usize, Box<MakeSidecar<'a>>)>,
    /// Lead time of the notice of a loss of the radio signal, and the scheme that requested it; `None` if no scheme
    /// watches the signal.
    pub(super) lead: Option<(&'static str, Duration)>,
    /// Whether packets for moving hosts are copied to all their base stations.
    pub(super) copies: bool,
    /// Control bits with a meaning for a scheme.
    pub(super) flags: Vec<(&'static str, Flags)>,
    /// The nodes of schemes that watch the signal.
    pub(super) signal_nodes: Vec<String>,
    /// Whether senders take for losses of the link what the queue before it drops.
    presumes_room: bool,
    pub(super) conflict: Option<String>,
    /// Why a scheme cannot be at the node that is named for it.
    pub(super) misplaced: Option<String>,
}

#[derive(Default)]
pub(super) struct LinkSchemes {
    pub(super) queue: &'static str,
    pub(super) arq: &'static str,
    pub(super) protects: &'static str,
}

impl<'a> Installer<'a> {
    /// Determines the source of the wireless link's ARQ. Two schemes may both need an ARQ; one may not
    /// need an ARQ that another switches off, and only one may supply it.
    pub fn arq(&mut self, arq: ArqUse) {
        if matches!(arq, ArqUse::Supplied(_) | ArqUse::Replaced(_)) {
            self.refuse_at_one_node("changes the wireless links");
        }
        let switched_off =
            |off, needs| format!("\"{off}\" switches off the ARQ of the link, which \"{needs}\" needs");
        let (before, this) = (self.by.arq, self.scheme);
        let merged = match (self.link.arq, arq) {
            (ArqUse::Kept, arq) | (arq, ArqUse::Kept) => arq,
            (ArqUse::Off, ArqUse::Off) => arq,
            (ArqUse::Off, _) => return self.refuse(switched_off(before, this)),
            (_, ArqUse::Off) => return self.refuse(switched_off(this, before)),
            (ArqUse::Required, arq) | (arq, ArqUse::Required) => arq,
            (ArqUse::Supplied(_) | ArqUse::Replaced(_), ArqUse::Supplied(_) | ArqUse::Replaced(_)) => {
                return self.refuse(format!("\"{before}\" and \"{this}\" both bring an ARQ for the link"));
            }
        };
        if merged != self.link.arq {
            self.by.arq = self.scheme;
        }
        self.link.arq = merged;
    }

    /// Lets the link protect `covers` with the scenario's code, which is required. Different coverage by two
    /// schemes is refused.
    pub fn protect(&mut self, covers: Covers) {
        self.refuse_at_one_node("changes the wireless links");
        if self.link.protects.is_some_and(|before| before != covers) {
            let (one, other) = (self.by.protects, self.scheme);
            return self.refuse(format!(
                "\"{one}\" and \"{other}\" protect different packets with the code of the link"
            ));
        }
        self.link.protects = Some(covers);
        self.by.protects = self.scheme;
    }

    /// Determines the queue of the wireless link. Different ones by two schemes are refused.
    pub fn queue(&mut self, queue: QueueUse) {
        if queue == QueueUse::Kept {
            return;
        }
        self.refuse_at_one_node("changes the wireless links");
        if ![QueueUse::Kept, queue].contains(&self.link.queue) {
            let (one, other) = (self.by.queue, self.scheme);
            return self.refuse(format!("\"{one}\" and \"{other}\" want different queues before the link"));
        }
        self.link.queue = queue;
        self.by.queue = self.scheme;
    }

    /// Notes that the scheme's agents give some packets of a flow the code point of [expedited
    /// forwarding](crate::Dscp::EXPEDITED). Refused with agents that rely on the order of packets.
    pub fn expedites(&mut self) {
        self.expedites = Some(self.scheme);
        self.refuse_overtaking();
    }

    /// Splits connections at the base station. `split` describes how, given TCP on the wired part. The
    /// reactions of all schemes then apply to the wireless part, and their agents stand between the base
    /// station's end of that part and the link. A second split is refused.
    pub fn split(&mut self, split: impl Fn(&Settings) -> Split + Send + Sync + 'a) {
        if let Some((other, _)) = &self.split {
            let problem = format!("\"{other}\" and \"{}\" both split the connection", self.scheme);
            return self.refuse(problem);
        }
        self.split_node.clone_from(&self.node);
        self.split = Some((self.scheme, Box::new(split)));
    }

    /// Installs an agent at the base station of each wireless link: a component that joins
    /// [`Port::WIRED`](crate::Port::WIRED) and [`Port::RADIO`](crate::Port::RADIO) and watches the link
    /// to the mobile host. The agents of a combination form a chain, the first nearest to the wired network.
    pub fn at_base_station<C: Component + 'static>(
        &mut self,
        agent: impl Fn(&Site<'_>) -> C + Send + Sync + 'a,
    ) {
        self.at(LinkEnd::BaseStation, agent);
    }

    /// Like [`at_base_station`](Installer::at_base_station), for agents that exchange packets with their peers at the other
    /// base stations of a moving host, through [`Port::CONTROL`](crate::Port::CONTROL). The packets cross the wired network
    /// between the base stations and may be lost there. Without a moving host there are no peers, and the port has no wire.
    pub fn at_connected_base_stations<C: Component + 'static>(
        &mut self,
        agent: impl Fn(&Site<'_>) -> C + Send + Sync + 'a,
    ) {
        self.bring_packets();
        self.connected.push(self.agents_at(LinkEnd::BaseStation));
        self.at(LinkEnd::BaseStation, agent);
    }

    /// Installs an agent at the mobile host of each wireless link, between the host and the link:
    /// [`Port::WIRED`](crate::Port::WIRED) faces the host. It watches the link to the base station. The agents of a
    /// combination form a chain, the first nearest to the host.
    pub fn at_mobile_host<C: Component + 'static>(
        &mut self,
        agent: impl Fn(&Site<'_>) -> C + Send + Sync + 'a,
    ) {
        self.at(LinkEnd::MobileHost, agent);
    }

    /// Installs an agent at each end of each wireless link, which watch each other, exchange packets, and rely on the order in
    /// which the link carries packets in the `ordered` directions. Refused with schemes that [expedite](Installer::expedites) some,
    /// and with agents of later schemes, which would be nearer to the link.
    pub fn at_both_ends<C: Component + 'static>(
        &mut self,
        ordered: Directions,
        agent: impl Fn(&Site<'_>) -> C + Clone + Send + Sync + 'a,
    ) {
        self.refuse_at_one_node("has agents at both ends of the wireless links");
        if let Some((tunnel, _)) = self.tunnel {
            self.refuse(hidden_losses(tunnel, self.scheme));
        }
        self.pair(agent);
        self.ordered = Some((self.scheme, ordered));
        self.refuse_overtaking();
    }

    fn pair<C: Component + 'static>(&mut self, agent: impl Fn(&Site<'_>) -> C + Clone + Send + Sync + 'a) {
        let ends = [LinkEnd::BaseStation, LinkEnd::MobileHost];
        self.pairs.push(ends.map(|end| self.agents_at(end)));
        ends.into_iter().for_each(|end| self.at(end, agent.clone()));
    }

    /// Installs a tunnel over each wireless link: an agent at each end, which watch each other. Other agents cannot see the
    /// contents of the tunnel, so a second tunnel is refused, and so are agents of later schemes, which would be inside.
    /// In `directions`, packets get longer by up to `overhead`.
    pub fn tunnel<C: Component + 'static>(
        &mut self,
        directions: Directions,
        overhead: Bytes,
        agent: impl Fn(&Site<'_>) -> C + Clone + Send + Sync + 'a,
    ) {
        if let Some((other, _)) = self.tunnel {
            let problem = format!("\"{other}\" and \"{}\" are both tunnels over the link", self.scheme);
            return self.refuse(problem);
        }
        self.refuse_at_one_node("is a tunnel over the wireless links");
        if let Some((ordered, _)) = self.ordered {
            self.refuse(hidden_losses(self.scheme, ordered));
        }
        self.pair(agent);
        self.tunnel = self.pairs.last().map(|&numbers| (self.scheme, numbers));
        self.tunnel_overhead = Some((directions, overhead));
    }

    /// The number of agents at an end of a link.
    fn agents_at(&self, end: LinkEnd) -> usize {
        self.agents.iter().filter(|agent| agent.end == end).count()
    }

    fn at<C: Component + 'static>(
        &mut self,
        end: LinkEnd,
        agent: impl Fn(&Site<'_>) -> C + Send + Sync + 'a,
    ) {
        if let Some((tunnel, _)) = self.tunnel {
            let scheme = self.scheme;
            return self.refuse(format!(
                "\"{tunnel}\" hides packets from \"{scheme}\", unless \"{scheme}\" is named first"
            ));
        }
        if let Some((ordered, _)) = self.ordered {
            let scheme = self.scheme;
            return self.refuse(format!(
                "\"{scheme}\" may change packets between the ends of \"{ordered}\", unless \"{scheme}\" is named first"
            ));
        }
        let node = self.node.clone().filter(|_| end == LinkEnd::BaseStation);
        let make = Box::new(move |site: &Site<'_>| -> Box<dyn Component> { Box::new(agent(site)) });
        self.agents.push(InstalledAgent { scheme: self.scheme, end, node, make });
    }

    /// Gives control bits of the TCP header a meaning for the scheme. Bits that another scheme uses are refused.
    pub fn use_flags(&mut self, flags: Flags) {
        let taken = self.flags.iter().find(|(_, other)| *other & flags != Flags::default());
        if let Some((other, _)) = taken {
            let problem = format!("\"{other}\" and \"{}\" use the same bit of the TCP header", self.scheme);
            return self.refuse(problem);
        }
        self.flags.push((self.scheme, flags));
    }

    /// Lets the network send a copy of each TCP segment for a moving host to every base station of the host. Copies that
    /// reach a base station at which the host is not would be lost, unless an agent keeps them.
    pub fn copy_to_base_stations(&mut self) {
        self.bring_packets();
        self.copies = true;
    }

    /// Notes that the scheme brings packets to the next base station of a moving host. Two such schemes would bring each
    /// packet twice.
    fn bring_packets(&mut self) {
        self.refuse_at_one_node("needs its agents at all base stations");
        if let Some(other) = self.brings.replace(self.scheme) {
            let this = self.scheme;
            let problem = format!("\"{other}\" and \"{this}\" both bring packets to the next base station");
            self.refuse(problem);
        }
    }

    /// Tells the ends of connections at mobile hosts, and the agents at their links, what becomes of the
    /// [radio signal](crate::Reach), and that it will be lost `lead` ahead, unless that is zero. Two schemes that need
    /// different leads are refused.
    pub fn watch_signal(&mut self, lead: Duration) {
        self.signal_nodes.extend(self.node.clone());
        match self.lead {
            Some((other, before)) if !before.is_zero() && !lead.is_zero() && before != lead => {
                let problem = format!(
                    "\"{other}\" is to know {before} ahead that the signal will be lost, and \"{}\" {lead}",
                    self.scheme
                );
                self.refuse(problem);
            }
            Some((_, before)) if !before.is_zero() => {}
            _ => self.lead = Some((self.scheme, lead)),
        }
    }

    /// Installs a reaction at the sender of each connection. `actions` are all that it does there; they tell users why it
    /// has no effect on a sender.
    pub fn at_sender<R: Reaction + 'static>(
        &mut self,
        actions: &'static [Action],
        reaction: impl Fn() -> R + Send + Sync + 'a,
    ) {
        let make = Box::new(move || -> Box<dyn Reaction> { Box::new(reaction()) });
        self.senders.push(InstalledReaction { scheme: self.scheme, actions, make });
    }

    /// Installs a reaction at the receiver of each connection, with all its `actions`; none if what it changes is for the
    /// scheme's agents, not for the sender.
    pub fn at_receiver<R: ReceiverReaction + 'static>(
        &mut self,
        actions: &'static [Action],
        reaction: impl Fn() -> R + Send + Sync + 'a,
    ) {
        let make = Box::new(move || -> Box<dyn ReceiverReaction> { Box::new(reaction()) });
        self.receivers.push(InstalledReaction { scheme: self.scheme, actions, make });
    }

    /// States that senders take for losses of the link what the queue before it drops.
    pub fn presumes_room(&mut self) {
        self.presumes_room = true;
    }

    /// Whether sizes of segments follow losses of the queue before the link, without a split to which all losses are alike.
    pub(super) fn sizes_by_queue(&self) -> bool {
        let splitter = self.split.as_ref().map(|(scheme, _)| *scheme);
        let sizes = |each: &InstalledReaction<'a, dyn Reaction>| {
            each.actions.contains(&Action::SetSegmentSize) && splitter != Some(each.scheme)
        };
        self.presumes_room && self.senders.iter().any(sizes)
    }

    /// Installs what knows the packets of a source of another [stack](crate::stack) than TCP, and hears the signals of the agent
    /// that the scheme has installed last [at base stations](Installer::at_base_station). A second one is refused, and schemes that
    /// [expedite](Installer::expedites) some packets.
    pub fn at_source<S: Sidecar + 'static>(&mut self, sidecar: impl Fn() -> S + Send + Sync + 'a) {
        if let Some((other, ..)) = self.sidecar {
            let problem = format!("\"{other}\" and \"{}\" both report to sources", self.scheme);
            return self.refuse(problem);
        }
        let agent = self.agents_at(LinkEnd::BaseStation).saturating_sub(1);
        let make = Box::new(move || -> Box<dyn Sidecar> { Box::new(sidecar()) });
        self.sidecar = Some((self.scheme, agent, make));
        self.refuse_overtaking();
    }

    /// Refuses a scheme that is to be installed at one node.
    fn refuse_at_one_node(&mut self, why: &str) {
        if let Some(node) = &self.node {
            let scheme = self.scheme;
            let problem =
                format!("\"{scheme}\" {why}, and cannot be at \"{node}\" alone; leave \"@{node}\" out");
            self.misplaced.get_or_insert(problem);
        }
    }

    fn refuse_overtaking(&mut self) {
        let reports = self.sidecar.as_ref().map(|(scheme, ..)| *scheme);
        let ordered = self.ordered.map(|(scheme, _)| scheme).or(reports);
        if let Some((first, ordered)) = self.expedites.zip(ordered) {
            self.refuse(format!(
                "\"{first}\" lets some packets of a flow go first, and \"{ordered}\" relies on their order"
            ));
        }
    }

    fn refuse(&mut self, problem: String) {
        self.conflict.get_or_insert(problem);
    }

    /// Why an agent outside the tunnel cannot work: it needs link events about packets that are inside the tunnel.
    pub(super) fn deaf_to_tunnel(&self) -> Option<String> {
        let (tunnel, _) = self.tunnel?;
        let mut outside = self.agents.iter().filter(|agent| agent.scheme != tunnel);
        if self.link.queue == QueueUse::ExpeditedFirst {
            let scheme = self.by.queue;
            return Some(format!(
                "\"{tunnel}\" hides from the queue which packets \"{scheme}\" lets go first"
            ));
        }
        if let Some(Covers::Marked(_)) = self.link.protects {
            let scheme = self.by.protects;
            return Some(format!("\"{tunnel}\" hides from the link which packets \"{scheme}\" marks"));
        }
        let scheme = outside.find(|agent| agent.needs_link_events())?.scheme;
        Some(hidden_losses(tunnel, scheme))
    }

    /// Whether something was installed at base stations.
    pub(super) fn has_parts_of_base_stations(&self) -> bool {
        self.split.is_some() || self.agents_at(LinkEnd::BaseStation) > 0
    }

    /// Whether nothing was installed.
    pub(super) fn is_empty(&self) -> bool {
        let Installer { link, split, agents, senders, receivers, .. } = self;
        *link == LinkUse::default()
            && split.is_none()
            && agents.is_empty()
            && senders.is_empty()
            && receivers.is_empty()
    }
}

fn hidden_losses(tunnel: &str, outside: &str) -> String {
    format!("\"{tunnel}\" hides from \"{outside}\" which packets the link loses")
}
