//! Schemes that are installed together.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use lasthop_base::{Bytes, Duration};

use super::directions::Directions;
use super::installer::{ArqUse, InstalledAgent, Installer, LinkEnd, LinkUse, Site};
use super::{Scheme, SchemeFailure, Schemes};
use crate::component::Component;
use crate::fec::Covers;
use crate::packet::Dscp;
use crate::split::Split;
use crate::stack::MakeSidecar;
use crate::tcp::{Action, Reactions, ReceiverReactions, Settings};

/// The separator in the name of a combination, such as `"ebsn + selective-fec"`.
const PLUS: char = '+';

/// The separator between a scheme and the node at which it is installed, as in `"snoop@gateway"`.
const AT: char = '@';

/// Why a scheme had no effect on senders that heed it.
const NO_OCCASION: &str = "nothing called for it that the sender had not done already";

/// One or several schemes installed together; each run has one combination.
pub struct Combination<'a> {
    name: String,
    schemes: Vec<&'a dyn Scheme>,
    installed: Installer<'a>,
}

impl fmt::Debug for Combination<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Combination").field(&self.name).finish()
    }
}

/// Why schemes cannot be combined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CombinationError {
    /// No scheme has this name.
    Unknown(String),
    /// The reason why these schemes do not go together.
    Conflict(String),
    /// The reason why a scheme cannot be at the node that is named for it, and the remedy.
    Misplaced(String),
}

impl Schemes {
    /// The combination called `name`: the names of schemes with `+` between them, such as `"ebsn"` or
    /// `"ebsn + selective-fec"`. In `"snoop@gateway"`, the agents that `snoop` has at base stations are installed at the node
    /// `gateway` instead. Spaces do not matter.
    ///
    /// # Errors
    /// If a scheme is unknown or named twice, or the schemes do not go together.
    pub fn combination(&self, name: &str) -> Result<Combination<'_>, CombinationError> {
        let schemes = name.split(PLUS).map(|part| {
            let (name, node) =
                part.split_once(AT).map_or((part, None), |(name, node)| (name, Some(node.trim())));
            let name = name.trim();
            Ok((self.get(name).ok_or_else(|| CombinationError::Unknown(name.into()))?, node))
        });
        Combination::at(schemes.collect::<Result<_, _>>()?)
    }

    /// The names of the schemes that supply an ARQ to links without one, and leave others their own.
    pub fn suppliers_of_arq(&self) -> impl Iterator<Item = &'static str> {
        let alone = self.all().filter_map(|scheme| Combination::new(vec![scheme]).ok());
        alone
            .filter(|alone| matches!(alone.link().arq, ArqUse::Supplied(_)))
            .filter_map(|alone| alone.arq_supplier())
    }
}

impl<'a> Combination<'a> {
    /// The combination of `schemes`, in this order.
    ///
    /// # Errors
    /// The reason if they do not go together.
    pub fn new(schemes: Vec<&'a dyn Scheme>) -> Result<Combination<'a>, String> {
        let everywhere = schemes.into_iter().map(|scheme| (scheme, None)).collect();
        Combination::at(everywhere).map_err(|error| match error {
            CombinationError::Unknown(reason)
            | CombinationError::Conflict(reason)
            | CombinationError::Misplaced(reason) => reason,
        })
    }

    /// Like [`new`](Combination::new), where a scheme may have a node at which its base-station agents and its proxy are
    /// installed.
    fn at(places: Vec<(&'a dyn Scheme, Option<&str>)>) -> Result<Combination<'a>, CombinationError> {
        use CombinationError::{Conflict, Misplaced};
        let mut installed = Installer::default();
        let (mut schemes, mut names) = (Vec::new(), Vec::new());
        for &(scheme, node) in &places {
            let name = scheme.name();
            if schemes.iter().any(|other: &&dyn Scheme| other.name() == name) {
                return Err(Conflict(format!("\"{name}\" occurs twice")));
            }
            if places.len() > 1 || node.is_some() {
                let mut alone = Installer::default();
                scheme.install(&mut alone);
                if let Some(node) = node.filter(|_| !alone.has_parts_of_base_stations()) {
                    let problem = format!(
                        "\"{name}\" installs nothing at base stations that could be at \"{node}\"; leave \"@{node}\" out"
                    );
                    return Err(Misplaced(problem));
                }
                // A scheme without parts is the baseline, which makes sense by itself only.
                if alone.is_empty() {
                    return Err(Conflict(format!("\"{name}\" adds nothing to another scheme")));
                }
            }
            installed.scheme = name;
            installed.node = node.map(String::from);
            scheme.install(&mut installed);
            schemes.push(scheme);
            names.push(node.map_or_else(|| String::from(name), |node| format!("{name}{AT}{node}")));
        }
        if let Some(problem) = installed.misplaced.take() {
            return Err(Misplaced(problem));
        }
        match installed.conflict.take().or_else(|| installed.deaf_to_tunnel()) {
            Some(conflict) => Err(Conflict(conflict)),
            None => Ok(Combination { name: names.join(" + "), schemes, installed }),
        }
    }

    /// The names of the schemes with ` + ` between them, each with its node if it has one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The schemes, in the order of installation.
    pub fn schemes(&self) -> impl Iterator<Item = &'a dyn Scheme> {
        self.schemes.iter().copied()
    }

    /// Invalid parameters, given these TCP settings: the scheme and the name of each, and what was found and
    /// expected.
    pub fn faults(&self, tcp: &Settings) -> impl Iterator<Item = (&'static str, String, String)> {
        self.schemes().flat_map(|scheme| {
            let faults = scheme.faults(tcp).into_iter();
            faults.map(|(key, problem)| (scheme.name(), key, problem))
        })
    }

    /// Why a scheme cannot extend a connection with these TCP settings, if so: the scheme, the reason and the remedy.
    /// Schemes extend the wireless part of a split connection.
    pub fn mismatch(&self, tcp: &Settings) -> Option<(&'static str, String)> {
        let split = self.split(tcp);
        self.mismatch_of_whole(split.as_ref().map_or(tcp, |split| &split.wireless))
    }

    /// Like [`mismatch`](Combination::mismatch), for a connection that is not split.
    pub fn mismatch_of_whole(&self, tcp: &Settings) -> Option<(&'static str, String)> {
        self.schemes().find_map(|scheme| Some((scheme.name(), scheme.mismatch(tcp)?)))
    }

    /// Takes the first failure of an external scheme, as [`Scheme::take_failure`].
    pub fn take_failure(&self) -> Option<SchemeFailure> {
        self.schemes.iter().find_map(|scheme| scheme.take_failure())
    }

    /// How the wireless link is used.
    pub fn link(&self) -> LinkUse {
        self.installed.link
    }

    /// Whether packets for moving hosts are copied to all their base stations.
    pub fn copies_to_base_stations(&self) -> bool {
        self.installed.copies
    }

    /// How long ahead the loss of the radio signal is announced; `None` if no scheme watches the signal.
    pub fn signal_lead(&self) -> Option<Duration> {
        self.installed.lead.map(|(_, lead)| lead)
    }

    /// The first scheme that changes TCP at the source of the data, if one does.
    pub fn changes_sender(&self) -> Option<&'a dyn Scheme> {
        self.named(self.installed.senders.first()?.scheme)
    }

    /// The first scheme that changes TCP at the destination, if one does.
    pub fn changes_receiver(&self) -> Option<&'a dyn Scheme> {
        self.named(self.installed.receivers.first()?.scheme)
    }

    /// The schemes that act only by reactions at the ends of connections with these TCP settings, each with the reason why it
    /// has no effect if its reactions changed nothing: a sender that ignores one of their actions, or no occasion.
    pub fn reacting<'s>(
        &self,
        settings: impl Iterator<Item = &'s Settings>,
    ) -> Vec<(&'static str, &'static str)> {
        let wireless: Vec<_> =
            settings.map(|tcp| self.split(tcp).map_or_else(|| tcp.clone(), |split| split.wireless)).collect();
        let senders = self.installed.senders.iter().map(|each| (each.scheme, each.actions));
        let receivers = self.installed.receivers.iter().map(|each| (each.scheme, each.actions));
        let mut found: Vec<(&'static str, Option<&'static str>)> = Vec::new();
        for (scheme, actions) in receivers.chain(senders) {
            if actions.is_empty() || self.splitter() == Some(scheme) {
                continue;
            }
            // A sender that heeds one of the actions had no occasion for it.
            let deaf = |tcp: &Settings| {
                let ignored = actions.iter().map(|&action| tcp.ignored(action));
                ignored.reduce(|first, next| next.and(first)).flatten()
            };
            let reason = wireless.iter().find_map(deaf);
            match found.iter_mut().find(|(other, _)| *other == scheme) {
                Some((_, known)) => *known = known.or(reason),
                None => found.push((scheme, reason)),
            }
        }
        found.into_iter().map(|(scheme, reason)| (scheme, reason.unwrap_or(NO_OCCASION))).collect()
    }

    /// The scheme whose code protects marked packets, and their mark, if no scheme here can set it: not by a reaction, nor by
    /// agents, which mark with expedited forwarding.
    pub fn awaits_marks(&self) -> Option<(&'static str, Dscp)> {
        let Some(Covers::Marked(mark)) = self.installed.link.protects else { return None };
        let marks = self.installed.senders.iter().any(|each| each.actions.contains(&Action::SetDscp));
        let expedites = mark == Dscp::EXPEDITED && self.schemes.len() > 1;
        (!marks && !expedites).then_some((self.installed.by.protects, mark))
    }

    fn named(&self, name: &str) -> Option<&'a dyn Scheme> {
        self.schemes().find(|scheme| scheme.name() == name)
    }

    /// Whether sizes of segments follow losses that may be those of the queue before the link.
    pub(super) fn sizes_by_queue(&self) -> bool {
        self.installed.sizes_by_queue()
    }

    /// The scheme that supplies an ARQ to links without one, or to all links, if one does.
    pub fn arq_supplier(&self) -> Option<&'static str> {
        let brings = matches!(self.installed.link.arq, ArqUse::Supplied(_) | ArqUse::Replaced(_));
        brings.then_some(self.installed.by.arq)
    }

    /// How the base station splits connections, given `tcp` on the wired part.
    pub fn split(&self, tcp: &Settings) -> Option<Split> {
        self.installed.split.as_ref().map(|(_, split)| split(tcp))
    }

    /// The scheme that splits connections, if one does.
    pub fn splitter(&self) -> Option<&'static str> {
        self.installed.split.as_ref().map(|(name, _)| *name)
    }

    /// The node at which connections are split, if the combination names one; otherwise base stations split them.
    pub fn split_node(&self) -> Option<&str> {
        self.installed.split_node.as_deref()
    }

    /// The scheme of each agent at one end of a wireless link, the agent nearest to the node first. Those that are at [one
    /// node](Combination::node_of) are among the agents of base stations; the proxy of a split is not.
    pub fn agents(&self, end: LinkEnd) -> impl Iterator<Item = &'static str> {
        self.at_end(end).map(|agent| agent.scheme)
    }

    /// The nodes that the combination names, each with the scheme that is there.
    pub fn nodes(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let agents =
            self.installed.agents.iter().filter_map(|agent| Some((agent.scheme, agent.node.as_deref()?)));
        self.splitter().zip(self.split_node()).into_iter().chain(agents)
    }

    /// The only node that has agent number `index` of those at base stations, if the combination names one.
    ///
    /// # Panics
    /// If there is no such agent.
    pub fn node_of(&self, index: usize) -> Option<&str> {
        self.at_base_station(index).node.as_deref()
    }

    /// Whether a scheme that watches the radio signal is installed at this node only.
    pub fn watches_signal_at(&self, node: &str) -> bool {
        self.installed.signal_nodes.iter().any(|other| other == node)
    }

    /// Whether agent number `index` of those at base stations needs link events, that is, the fate of packets on its link.
    ///
    /// # Panics
    /// If there is no such agent.
    pub fn needs_link_events(&self, index: usize) -> bool {
        self.at_base_station(index).needs_link_events()
    }

    /// A new agent for a site: number `index` of [`agents`](Combination::agents) at its end of the link.
    ///
    /// # Panics
    /// If there is no such agent.
    pub fn agent(&self, index: usize, site: &Site<'_>) -> Box<dyn Component> {
        let agent = self.at_end(site.end).nth(index).expect("there is such an agent");
        (agent.make)(site)
    }

    /// The numbers of the agents at a base station that have a [control port](crate::Port::CONTROL), among the
    /// [agents](Combination::agents) there.
    pub fn connected(&self) -> &[usize] {
        &self.installed.connected
    }

    /// The agents that watch each other: the numbers of each two, among the [agents](Combination::agents) at a base station and
    /// at a mobile host.
    pub fn pairs(&self) -> &[[usize; 2]] {
        &self.installed.pairs
    }

    /// Whether agents at the two ends of a link send each other packets of their own, for which the link needs both directions,
    /// and rely on the order of the others.
    pub fn exchanges_packets(&self) -> bool {
        self.ordered().is_some()
    }

    /// The directions of wireless links in which agents rely on the order of packets, if they do.
    pub fn ordered(&self) -> Option<Directions> {
        self.installed.ordered.map(|(_, directions)| directions)
    }

    /// The most that a tunnel adds to a packet that enters a wireless link at `end`.
    pub fn tunnel_overhead(&self, end: LinkEnd) -> Bytes {
        let overhead = self.installed.tunnel_overhead.filter(|(directions, _)| directions.include_from(end));
        overhead.map_or(Bytes::ZERO, |(_, overhead)| overhead)
    }

    /// The numbers of the two agents that are the ends of a tunnel, among the [agents](Combination::agents) at a base
    /// station and at a mobile host.
    pub fn tunnel(&self) -> Option<[usize; 2]> {
        self.installed.tunnel.map(|(_, numbers)| numbers)
    }

    /// What a scheme adds at the sources of other stacks than TCP, and the number of its agent among the
    /// [agents](Combination::agents) at a base station, whose signals it hears.
    pub fn sidecar(&self) -> Option<(usize, &MakeSidecar<'a>)> {
        self.installed.sidecar.as_ref().map(|(_, agent, make)| (*agent, &**make))
    }

    /// The scheme that adds it.
    pub fn reporter(&self) -> Option<&'static str> {
        self.installed.sidecar.as_ref().map(|(scheme, ..)| *scheme)
    }

    fn at_end(&self, end: LinkEnd) -> impl Iterator<Item = &InstalledAgent<'a>> {
        self.installed.agents.iter().filter(move |agent| agent.end == end)
    }

    fn at_base_station(&self, index: usize) -> &InstalledAgent<'a> {
        self.at_end(LinkEnd::BaseStation).nth(index).expect("there is such an agent")
    }

    /// New reactions for a sender.
    pub fn reactions(&self) -> Reactions {
        self.installed.senders.iter().map(|each| (each.make)()).collect::<Vec<_>>().into()
    }

    /// New reactions for a receiver.
    pub fn receiver_reactions(&self) -> ReceiverReactions {
        self.installed.receivers.iter().map(|each| (each.make)()).collect::<Vec<_>>().into()
    }
}
