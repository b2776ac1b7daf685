//! Refusals: why a network does not support a combination of schemes.
//!
//! Schemes declare their [needs](Need) by what they install; here each need is compared with the network. Nothing here knows
//! a scheme by its name.

use lasthop_link::ShortestPaths;
use lasthop_link::graph::LinkId;
use lasthop_link::queue::{Queue, QueueLimit};
use lasthop_proto::scheme::{Combination, LinkEnd, Need};
use lasthop_proto::stack::Early;
use lasthop_proto::{HostId, arq};

use super::placement::reversed;
use super::{BssKind, LastHop, Network, NetworkLink};
use crate::schema::{Radio, Scenario};

impl Scenario {
    /// Why a combination does not support this scenario, if so.
    pub(super) fn refusal(&self, combination: &Combination<'_>, network: &Network) -> Option<String> {
        let faults = self.all_tcp(network).find_map(|tcp| combination.faults(tcp).next());
        if let Some((scheme, key, problem)) = faults {
            return Some(format!("\"{scheme}\" has a parameter {key}: {problem}"));
        }
        if let Some(problem) = network.mismatch(combination) {
            return Some(problem);
        }
        let mut needs = combination.needs();
        let problem = network
            .placement_refusal(combination)
            .or_else(|| needs.find_map(|need| self.lack(need, combination, network)))
            .or_else(|| network.unacknowledged_sharing(combination).map(String::from))?;
        Some(format!("\"{}\" {problem}", combination.name()))
    }

    /// Why the network does not have what the combination needs, as a clause whose subject is the combination.
    fn lack(&self, need: Need, combination: &Combination<'_>, network: &Network) -> Option<String> {
        let lack = match need {
            Need::Arq => return self.lacks_arq(combination, network),
            Need::WirelessLink => network.lacks_wireless_links(),
            Need::OwnQueue => network.lacks_own_queues(),
            Need::PriorityQueue => network.lacks_priority_queues(),
            Need::Code => network.lacks_codes(),
            Need::PartsAtBaseStations => network.lacks_parts_at_base_stations(),
            Need::WiredPathsBetweenStations => network.lacks_wired_paths(),
            Need::Order => network.lacks_order(combination),
            Need::AgentsPassed => network.passes_agents(),
            Need::Reports => return network.lacks_reports(combination),
            Need::Close => self.lacks_close(combination, network),
            Need::Room => network.lacks_room(),
        };
        lack.map(String::from)
    }

    fn lacks_arq(&self, combination: &Combination<'_>, network: &Network) -> Option<String> {
        network.radios().any(|radio| radio.arq == arq::Config::None).then(|| {
            let lacks_code = combination.needs().any(|need| need == Need::Code);
            if let Some(lack) = network.lacks_codes().filter(|_| lacks_code) {
                let both = "needs a link with a code that recovers its own losses, and this one has neither code nor ARQ; add \
                            a table [radio.arq.stop-and-wait], and fec = \"bch-255-131-18\" to [radio], or leave the scheme out";
                return String::from(if network.crosses_bss() { lack } else { both });
            }
            // The scheme registered last, since it is the most general one.
            let supplier = self.scheme.suppliers_of_arq().last();
            let both = supplier.map(|supplier| format!("{} + {supplier}", combination.name()));
            let is_supported = |name: &String| {
                let both = self.scheme.combination(name);
                both.is_ok_and(|both| self.refusal(&both, network).is_none())
            };
            let or = both.filter(is_supported).map_or_else(String::new, |both| {
                format!(", or combine it with a scheme that brings one: \"{both}\"")
            });
            format!(
                "needs a link that recovers its own losses, and this one has no ARQ; add a table \
                 [radio.arq.stop-and-wait]{or}"
            )
        })
    }

    fn lacks_close(&self, combination: &Combination<'_>, network: &Network) -> Option<&'static str> {
        if !(0..network.flows.len()).any(|index| network.ends(index)) {
            return None;
        }
        if network.settings().any(|tcp| !tcp.close) {
            return Some(
                "needs connections that are closed with FIN, and these are not; \
                 add close = true to [tcp], or leave the scheme out",
            );
        }
        let mut splits = self.all_tcp(network).filter_map(|tcp| combination.split(tcp));
        splits.any(|split| !split.wireless.close).then_some(
            "needs connections that are closed with FIN, and their wireless parts are not; \
             leave wireless.close out",
        )
    }
}

impl Network {
    /// The TCP settings of a connection that a scheme cannot extend, as a sentence.
    fn mismatch(&self, combination: &Combination<'_>) -> Option<String> {
        let extended =
            || self.extended().find_map(|tcp| Some((combination.mismatch(tcp)?, combination.splitter())));
        let whole = || {
            let flows = self.flows.iter().zip(self.whole_flows(combination));
            let mut whole = flows.filter(|(flow, is_whole)| *is_whole && flow.is_extended());
            whole.find_map(|(flow, _)| Some((combination.mismatch_of_whole(&flow.tcp)?, None)))
        };
        let ((scheme, reason), splitter) = extended().or_else(whole)?;
        let table = splitter.map_or_else(|| String::from("tcp"), |name| format!("scheme.{name}.wireless"));
        Some(format!("\"{scheme}\" {reason} in [{table}], or leave the scheme out"))
    }

    fn lacks_wireless_links(&self) -> Option<&'static str> {
        (self.radios().next().is_none() && !self.crosses_bss())
            .then_some("needs a wireless link, and no connection crosses one; leave the scheme out")
    }

    /// A shared radio needs an ARQ, which a combination may have turned off.
    fn unacknowledged_sharing(&self, combination: &Combination<'_>) -> Option<&'static str> {
        let arq = |hop: &LastHop| hop.arq(1 - hop.mobile, combination.link());
        self.shared_hops().any(|hop| arq(hop) == arq::Config::None).then_some(
            "has no ARQ on links that share a radio, and a base station needs acknowledgements to share it; \
             add a table [radio.arq.stop-and-wait], or leave a scheme that turns it off out",
        )
    }

    fn lacks_own_queues(&self) -> Option<&'static str> {
        if self.crosses_bss() && matches!(self.bss, BssKind::Dcf(_)) {
            Some(
                "chooses the queue before a wireless link, and a cell has queues of its own; \
                 leave the scheme out",
            )
        } else if self.dispatch.has_one_queue() && self.shared_hops().next().is_some() {
            Some(
                "chooses the queue before a wireless link, and links that share a radio have one queue; \
                 state another dispatch in [shared], or leave the scheme out",
            )
        } else {
            None
        }
    }

    fn lacks_priority_queues(&self) -> Option<&'static str> {
        if self.crosses_bss() {
            return Some(
                "lets packets go first in the queue before a wireless link, and in a cell of [wifi] their category does; \
                 leave the scheme out",
            );
        }
        self.has_disciplines_without_priority().then_some(
            "lets packets go first in the queue before a wireless link, and the scenario has a discipline that does \
             not; give these links a capacity or priority = {} as queue, or leave the scheme out",
        )
    }

    fn lacks_room(&self) -> Option<&'static str> {
        let is_limited = |radio: &Radio| !matches!(radio.queue, Queue::DropTail(QueueLimit::Unlimited));
        self.radios().any(is_limited).then_some(
            "takes drops of the queue before a wireless link for losses of the link, and answers by smaller segments, which are \
             more packets and overflow the queue again; state queue = \"unlimited\" in [radio], or leave the scheme out",
        )
    }

    fn lacks_codes(&self) -> Option<&'static str> {
        if self.crosses_bss() {
            Some("needs links with a code, and those of a cell have none; leave the scheme out")
        } else if self.radios().any(|radio| radio.fec.is_none()) {
            Some(
                "needs a link with a code, and this one has none; \
                 add fec = \"bch-255-131-18\" to [radio], or leave the scheme out",
            )
        } else {
            None
        }
    }

    fn lacks_parts_at_base_stations(&self) -> Option<&'static str> {
        if self.has_moving_connections_with_other_radios() {
            Some(
                "splits connections into a wired and a wireless part, and one goes over another wireless link than \
                 that of its moving host; leave the scheme out",
            )
        } else if self.has_chained_radios() {
            Some(
                "splits connections into wired and wireless parts, and one goes over two wireless links in a row; \
                 leave the scheme out",
            )
        } else if self.has_relays_of_shared_radios() {
            Some(
                "splits connections into wired and wireless parts, and one goes from one mobile host of a shared \
                 radio to another; leave the scheme out",
            )
        } else {
            None
        }
    }

    fn lacks_wired_paths(&self) -> Option<&'static str> {
        (!self.has_wired_paths_between_stations()).then_some(
            "sends packets from one base station of a moving host to another, and the shortest path between two of \
             them goes over a wireless link; leave the scheme out",
        )
    }

    fn lacks_order(&self, combination: &Combination<'_>) -> Option<&'static str> {
        let directions = combination.ordered()?;
        let reorders = |link: &NetworkLink| match link {
            NetworkLink::Radio(hop) => {
                let ways = [(LinkEnd::BaseStation, &hop.down), (LinkEnd::MobileHost, &hop.up)];
                ways.iter().any(|(from, radio)| directions.include_from(*from) && !radio.delay.keeps_order())
            }
            NetworkLink::Wired(_) | NetworkLink::Station(_) => false,
        };
        self.links.iter().any(reorders).then_some(
            "relies on the order of packets on wireless links, and delay.netem of one reorders them; \
             add in_order = true to it instead of reorder, or leave the scheme out",
        )
    }

    fn lacks_reports(&self, combination: &Combination<'_>) -> Option<String> {
        let (number, sidecar) = combination.sidecar()?;
        let sidecar = sidecar();
        let (needed, taken) = match sidecar.moves_window() {
            true => (Early::All, "reports of arrivals for round trips to the receiver"),
            false => (Early::Losses, "a reported loss for the end of all that was sent before"),
        };
        let flows = || self.flows.iter().filter(|flow| flow.stack.is_some());
        if let Some(sender) = flows().filter_map(|flow| flow.stack).find(|sender| sender.early() < needed) {
            let (name, remedy) = (sender.name, sidecar.remedy());
            return Some(format!(
                "reports to sources, and the control of {name} takes {taken}; {remedy}, or take another sender"
            ));
        }
        let places = self.agent_ends(combination.node_of(number));
        let ways = || {
            let paths = flows().flat_map(|flow| flow.path.all());
            paths.flat_map(|nodes| [nodes.to_vec(), reversed(nodes)])
        };
        let before_agents = |way: &[HostId]| -> Vec<usize> {
            let steps = way.windows(2).enumerate().filter_map(|(index, step)| {
                let link = self.graph.link(step[0], step[1])?;
                let agent = self.graph.ends(link)[places[link.index()]?];
                let goes_up = usize::from(agent != step[0]);
                sidecar.directions()[goes_up].then_some(index + goes_up)
            });
            steps.collect()
        };
        if ways().any(|way| before_agents(&way).len() > 1) {
            return Some(String::from(
                "reports to sources from one agent on the way, and one connection passes two; name a base station \
                 (\"scheme@node\"), or let it report of one direction only",
            ));
        }
        let reorders = |step: &[HostId]| {
            let Some(link) = self.graph.link(step[0], step[1]) else { return false };
            match &self.links[link.index()] {
                NetworkLink::Wired(wired) => !wired.delay.keeps_order(),
                _ => self.radio(link, step[0]).is_some_and(|radio| !radio.delay.keeps_order()),
            }
        };
        let are_reordered = |way: Vec<HostId>| {
            before_agents(&way).iter().any(|steps| way[..=*steps].windows(2).any(reorders))
        };
        ways().any(are_reordered).then(|| {
            String::from(
                "reports to sources, which rely on the order of their packets, and delay.netem of a link on the way to \
                 the agent reorders them; add in_order = true to it instead of reorder, or leave the scheme out",
            )
        })
    }

    fn passes_agents(&self) -> Option<&'static str> {
        self.has_relays_within_bsses().then_some(
            "has an agent at the access point of a cell, which packets from one station to another do not pass; \
             leave the scheme out",
        )
    }

    /// Whether a wireless link has a discipline that serves no packets first.
    fn has_disciplines_without_priority(&self) -> bool {
        let lacks = |radio: &Radio| match radio.queue {
            Queue::DropTail(_) => false,
            Queue::Managed(management) => !management.about().expedites,
        };
        self.links
            .iter()
            .any(|link| matches!(link, NetworkLink::Radio(hop) if lacks(&hop.down) || lacks(&hop.up)))
    }

    /// Whether the base stations of each moving host have paths to each other over wired links only.
    fn has_wired_paths_between_stations(&self) -> bool {
        let (fixed, mut paths) = (self.fixed(), ShortestPaths::default());
        let is_wired = |step: &[HostId]| {
            let link = self.graph.link(step[0], step[1]).expect("a path follows links");
            matches!(self.links[link.index()], NetworkLink::Wired(_))
        };
        self.moving.iter().all(|moving| {
            let stations = &moving.stations;
            let mut pairs = stations.iter().flat_map(|from| stations.iter().map(move |to| (*from, *to)));
            pairs.all(|(from, to)| {
                let path = paths.between(&fixed, from, to);
                path.is_some_and(|path| path.windows(2).all(is_wired))
            })
        })
    }

    /// Whether a connection of a moving host crosses another wireless link than those of the host.
    fn has_moving_connections_with_other_radios(&self) -> bool {
        let is_other = |step: &[HostId]| {
            let link = self.graph.link(step[0], step[1]).expect("a path follows links");
            match &self.links[link.index()] {
                NetworkLink::Radio(hop) => hop.place.is_none(),
                NetworkLink::Station(_) => true,
                NetworkLink::Wired(_) => false,
            }
        };
        let moves = |node: &HostId| self.moving.iter().any(|moving| moving.host == *node);
        let flows = self.flows.iter().filter(|flow| flow.is_connection());
        let moving = flows.filter(|flow| moves(&flow.source()) || moves(&flow.destination()));
        moving.flat_map(|flow| flow.path.all()).any(|nodes| nodes.windows(2).any(is_other))
    }

    /// Whether a connection crosses two consecutive wireless links, where the base station of one is the
    /// mobile host of the other.
    fn has_chained_radios(&self) -> bool {
        let mobile = |link: LinkId| match &self.links[link.index()] {
            NetworkLink::Wired(_) => None,
            NetworkLink::Radio(hop) => Some(self.graph.ends(link)[hop.mobile]),
            NetworkLink::Station(_) => Some(self.graph.ends(link)[1]),
        };
        let paths = self.flows.iter().filter(|flow| flow.is_connection()).flat_map(|flow| flow.path.all());
        paths.flat_map(|nodes| nodes.windows(3)).any(|step| {
            let ends = [(step[0], step[1]), (step[1], step[2])];
            let [before, after] = ends.map(|(a, b)| self.graph.link(a, b).and_then(mobile));
            before.zip(after).is_some_and(|(a, b)| (a == step[1]) != (b == step[1]))
        })
    }

    /// Whether a connection goes from one mobile host of a shared radio to another.
    fn has_relays_of_shared_radios(&self) -> bool {
        let radio =
            |a, b| self.graph.link(a, b).and_then(|link| self.graph.sharer(link)).map(|(radio, _)| radio);
        let paths = self.flows.iter().filter(|flow| flow.is_connection()).flat_map(|flow| flow.path.all());
        paths.flat_map(|nodes| nodes.windows(3)).any(|step| {
            let (before, after) = (radio(step[0], step[1]), radio(step[1], step[2]));
            before.is_some() && before == after
        })
    }

    /// Whether anything goes from one station of a BSS to another, past the access point's agents.
    fn has_relays_within_bsses(&self) -> bool {
        let stays = |step: &[HostId]| {
            let link =
                |index: usize| self.graph.link(step[index], step[index + 1]).expect("a path follows links");
            self.graph.stays_within(link(0), link(1))
        };
        self.flows.iter().flat_map(|flow| flow.path.all()).any(|nodes| nodes.windows(3).any(stays))
    }
}
