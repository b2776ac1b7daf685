//! Constraints that the schema's types cannot express: values that are invalid or do not go together.

use std::collections::BTreeSet;
use std::iter;

use lasthop_base::{Bytes, Duration};
use lasthop_proto::scheme::{ArqUse, Combination, CombinationError, LinkEnd, LinkUse, Scheme};
use lasthop_proto::tcp::{self, BLACK_HOLE_AFTER, Override, Settings};
use lasthop_proto::{arq, quic};
use toml::Table;

use super::{Flow, Network};
use crate::diagnostics::alternatives;
use crate::error::{ErrorKind, Fault, Location, ScenarioError};
use crate::schema::{LinkProtection, Radio, Scenario};
use crate::tree;

/// The tables of links, each of which needs such a link.
pub(crate) const LINK_TABLES: [&str; 5] = ["wired", "radio", "cell", "wifi", "shared"];

/// What a scenario file states and must have an effect.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stated {
    /// The keys of `[tcp]`.
    pub(crate) all: BTreeSet<String>,
    /// Those of overrides and of the sweep, which apply to the stated sender as well.
    pub(crate) set: BTreeSet<String>,
    /// The paths of the TCP settings that overrides and the sweep state for all connections or a host.
    pub(crate) overrides: Vec<String>,
    /// Whether it states the sender.
    pub(crate) sender: bool,
    /// The paths of tables of links, and of the keys in them that the sweep varies.
    pub(crate) tables: Vec<String>,
}

/// Packets that do not fit through a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// The size of a full packet.
    pub packet: Bytes,
    /// The size of the largest packet that fits.
    pub largest: Bytes,
    /// Whether they are QUIC's.
    pub is_quic: bool,
}

impl TooLarge {
    /// The full packets of a connection, if they exceed `largest`.
    fn on(flow: &Flow, largest: Bytes) -> Option<TooLarge> {
        let packet = match flow.stack {
            Some(sender) => sender.quic.packet_size(),
            None => flow.tcp.packet_size,
        };
        let found = TooLarge { packet, largest, is_quic: flow.stack.is_some() };
        (flow.is_connection() && packet > largest).then_some(found)
    }
}

impl Scenario {
    /// The errors that types cannot express; empty if the scenario can run. A scenario read from a file has
    /// none.
    pub fn faults(&self) -> Vec<Fault> {
        self.resolve().err().unwrap_or_default()
    }

    /// The network of the scenario, common to all its runs.
    ///
    /// # Errors
    /// The first of its [faults](Scenario::faults), if it was made in code.
    pub fn network(&self) -> Result<Network, ScenarioError> {
        self.resolve().map_err(|faults| ScenarioError::of(&faults[0], self.whole()))
    }

    /// An error of the scenario as a whole.
    pub fn error(&self, kind: ErrorKind, message: String) -> ScenarioError {
        ScenarioError::new(kind, message, self.whole())
    }

    fn whole(&self) -> Location<'_> {
        Location::File { name: &self.file, text: "", span: None }
    }

    /// The network of the scenario, or all its faults, at least one.
    pub(crate) fn resolve(&self) -> Result<Network, Vec<Fault>> {
        let mut faults = Vec::new();
        let mut check = |holds: bool, path: &str, problem: &dyn Fn() -> String| {
            if !holds {
                faults.push(Fault::new(path, problem()));
            }
        };
        check(!self.limit.is_zero(), "limit", &|| String::from("found \"0 s\", expected more than zero"));
        let (warmup, limit) = (self.warmup, self.limit);
        check(warmup < limit || limit.is_zero(), "warmup", &|| {
            format!("found \"{warmup}\", expected less than the limit, which is \"{limit}\"")
        });
        let faults_of_tcp = self.tcp.faults().into_iter();
        faults.extend(faults_of_tcp.map(|(key, problem)| self.fault_of_tcp(key, problem)));
        let mut combinations = Vec::new();
        let mut wrong_names = Vec::new();
        for (index, name) in self.schemes.iter().enumerate() {
            match self.combination(name) {
                Ok(combination) => combinations.push((index, combination)),
                Err(problem) => wrong_names.push(Fault::new(&format!("schemes.{index}"), problem)),
            }
        }
        match self.network_under(&combinations) {
            Ok(network) => {
                if faults.is_empty() {
                    faults.extend(self.faults_of_schemes(&network, &combinations, wrong_names));
                }
                if faults.is_empty() { Ok(network) } else { Err(faults) }
            }
            Err(wrong) => Err([faults, wrong].concat()),
        }
    }

    /// The fault of the TCP setting `key`, where it is stated: in the table of the sender, in `[tcp]`, or by the name of
    /// the sender.
    fn fault_of_tcp(&self, key: &str, problem: String) -> Fault {
        let tcp_sender = self.sender.as_ref().filter(|sender| self.stack_of_sender(sender).is_none());
        let Some(sender) = tcp_sender else { return Fault::new(&format!("tcp.{key}"), problem) };
        let is_own = self.senders.get(sender).is_some_and(|own| own.stated().any(|stated| stated == key));
        match key {
            _ if is_own => Fault::new(&format!("senders.{sender}.{key}"), problem),
            // A sender leaves them to `[tcp]`.
            "packet_size" | "window" | "user_timeout" => Fault::new(&format!("tcp.{key}"), problem),
            _ => Fault::new("sender", format!("found \"{sender}\", whose {key} is invalid: {problem}")),
        }
    }

    /// What is stated without effect.
    pub(crate) fn unused(&self, stated: &Stated) -> Vec<Fault> {
        let mut faults = self.unused_tcp(stated);
        if faults.is_empty() && !stated.overrides.is_empty() && !self.uses_tcp() {
            let unused = |path: &String| Fault::new(path, tcp::no_effect("no connection uses TCP"));
            faults.extend(stated.overrides.iter().map(unused));
        }
        if stated.sender && !self.uses_sender() {
            let reason = "every connection states its own sender";
            faults.push(Fault::new("sender", tcp::no_effect(reason)));
        }
        for path in &stated.tables {
            let table = path.split('.').next().unwrap_or_default();
            if !self.has_links_of(table) {
                let links = match table {
                    "wired" => "wired links",
                    "radio" => "wireless links of [radio]",
                    "shared" => "links that share a radio",
                    _ => "cell",
                };
                faults.push(Fault::new(path, tcp::no_effect(&format!("the topology has no {links}"))));
            }
        }
        faults
    }

    /// Whether a connection uses TCP. Settings of a scenario without connections, or with errors of its own, count as used.
    fn uses_tcp(&self) -> bool {
        self.stack_senders().next().is_none()
            || self.resolve().map_or(true, |network| network.settings().next().is_some())
    }

    /// Whether a connection takes the scenario's sender. That of a scenario without connections, or with errors of its own,
    /// counts as used.
    fn uses_sender(&self) -> bool {
        let has_own = |flow: &Flow| self.connection.get(&flow.name).is_some_and(|own| own.sender.is_some());
        self.connection.is_empty()
            || self.resolve().map_or(true, |network| {
                network.flows.iter().any(|flow| flow.is_connection() && !has_own(flow))
            })
    }

    /// Whether the topology has links that the `table` of links describes.
    fn has_links_of(&self, table: &str) -> bool {
        match table {
            "cell" | "wifi" => self.topology.has_cell(),
            "shared" => self.topology.has_shared_radio(),
            _ => self
                .topology
                .edges()
                .iter()
                .any(|edge| !edge.in_cell && (edge.mobile.is_some() == (table == "radio"))),
        }
    }

    /// The TCP settings that have no effect on any connection, of those that `[tcp]`, the stated sender and the wireless
    /// parts of split connections state.
    fn unused_tcp(&self, stated: &Stated) -> Vec<Fault> {
        let of_tcp = |key: &String| (format!("tcp.{key}"), key.clone());
        let keys: Vec<(String, String)> = match &self.sender {
            Some(sender) => {
                let own = self.senders.get(sender).into_iter().flat_map(Override::stated);
                let own = own.filter(|key| !stated.set.contains(*key));
                let own = own.map(|key| (format!("senders.{sender}.{key}"), key.to_owned()));
                own.chain(stated.set.iter().map(of_tcp)).collect()
            }
            None => stated.all.iter().map(of_tcp).collect(),
        };
        let unused: Vec<_> = keys
            .into_iter()
            .filter_map(|(path, key)| Some((Fault::new(&path, self.tcp.unused(&key)?), key)))
            .collect();
        // Split connections have settings of their own on the wireless part.
        let combinations: Vec<_> =
            self.schemes.iter().filter_map(|name| self.scheme.combination(name).ok()).collect();
        let of_wireless = self.stated_wireless(&combinations);
        if unused.is_empty() && of_wireless.is_empty() {
            return Vec::new();
        }
        let Ok(network) = self.resolve() else { return Vec::new() };
        let splits = |combination: &Combination<'_>| -> Vec<Settings> {
            let splits = self.all_tcp(&network).filter_map(|tcp| combination.split(tcp));
            splits.map(|split| split.wireless).collect()
        };
        let all_splits: Vec<_> = combinations.iter().flat_map(splits).collect();
        let is_used =
            |key: &str| self.all_tcp(&network).chain(&all_splits).any(|tcp| tcp.unused(key).is_none());
        let mut faults: Vec<_> =
            unused.into_iter().filter(|(_, key)| !is_used(key)).map(|(fault, _)| fault).collect();
        for (combination, path, key) in of_wireless {
            let problems: Option<Vec<_>> = splits(combination).iter().map(|tcp| tcp.unused(&key)).collect();
            let fault = problems.and_then(|problems| Some(Fault::new(&path, problems.first()?.clone())));
            faults.extend(fault.filter(|fault| !faults.contains(fault)));
        }
        faults
    }

    /// The settings that schemes state for the wireless part of split connections, each with a combination that has the
    /// scheme, its path and its key.
    fn stated_wireless<'a>(
        &self,
        combinations: &'a [Combination<'_>],
    ) -> Vec<(&'a Combination<'a>, String, String)> {
        let splitting = combinations.iter().filter_map(|each| Some((each, each.splitter()?)));
        let mut parameters = None;
        let mut stated = Vec::new();
        for (combination, scheme) in splitting {
            let parameters = parameters.get_or_insert_with(|| tree::to_toml(&self.scheme));
            let wireless = parameters.get(scheme).and_then(|own| own.get("wireless")?.as_table());
            // A scheme may have counted the window itself.
            let keys = wireless.into_iter().flat_map(Table::keys).filter(|key| *key != "window_counts");
            stated.extend(
                keys.map(|key| (combination, format!("scheme.{scheme}.wireless.{key}"), key.clone())),
            );
        }
        stated
    }

    /// `[tcp]`, and the TCP settings of each connection that differ from it.
    pub(super) fn all_tcp<'a>(&'a self, network: &'a Network) -> impl Iterator<Item = &'a Settings> {
        iter::once(&self.tcp).chain(network.settings().filter(|tcp| **tcp != self.tcp))
    }

    /// The faults of the combinations of schemes, each with its index in `schemes`; `wrong_names` are those of the
    /// others.
    fn faults_of_schemes(
        &self,
        network: &Network,
        combinations: &[(usize, Combination<'_>)],
        wrong_names: Vec<Fault>,
    ) -> Vec<Fault> {
        if self.schemes.is_empty() {
            return vec![Fault::new("schemes", "found an empty list, expected at least one scheme")];
        }
        let mut of_parameters = Vec::new();
        for (_, combination) in combinations {
            for (scheme, key, problem) in self.all_tcp(network).flat_map(|tcp| combination.faults(tcp)) {
                of_parameters.push(Fault::new(&format!("scheme.{scheme}.{key}"), problem));
            }
        }
        if !of_parameters.is_empty() {
            return of_parameters;
        }
        let mut faults = wrong_names;
        for (nth, (index, combination)) in combinations.iter().enumerate() {
            let name = &self.schemes[*index];
            let is_repeated = combinations[..nth].iter().any(|(_, other)| other.name() == combination.name());
            let problem = match self.refusal(combination, network) {
                None if is_repeated => Some(format!("found \"{name}\" a second time, expected it once")),
                refusal => refusal,
            };
            faults.extend(problem.map(|problem| Fault::new(&format!("schemes.{index}"), problem)));
        }
        faults.sort_by(|a, b| a.path.cmp(&b.path));
        faults
    }

    /// The combination of schemes called `name`, or the reason why there is none.
    fn combination(&self, name: &str) -> Result<Combination<'_>, String> {
        self.scheme.combination(name).map_err(|error| match error {
            CombinationError::Unknown(unknown) => {
                let names = self.scheme.all().map(Scheme::name);
                let no_python = match cfg!(target_arch = "wasm32") {
                    true => "; schemes written in Python do not run in a page, which has no Python",
                    false => "",
                };
                format!("found \"{unknown}\", {}{no_python}", alternatives(&unknown, names))
            }
            CombinationError::Conflict(reason) => {
                format!("found \"{name}\", but {reason}; leave one of them out")
            }
            CombinationError::Misplaced(reason) => format!("found \"{name}\", but {reason}"),
        })
    }

    /// Capabilities of the wireless links on connection paths that the combination of schemes `name` does not
    /// use: `"arq"` for loss recovery, `"fec"` for error correction.
    pub fn unused_by(&self, name: &str) -> Vec<&'static str> {
        let (Ok(combination), Ok(network)) = (self.scheme.combination(name), self.resolve()) else {
            return Vec::new();
        };
        let LinkUse { arq, protects, .. } = combination.link();
        let any = |has: fn(&Radio) -> bool| network.radios().any(has);
        let without_arq = arq == ArqUse::Off && any(|radio| radio.arq != arq::Config::None);
        let without_fec =
            protects.is_none() && any(|radio| radio.fec.is_some() && radio.protect == LinkProtection::Scheme);
        [(without_arq, "arq"), (without_fec, "fec")]
            .into_iter()
            .filter_map(|(unused, what)| unused.then_some(what))
            .collect()
    }

    /// The full packets that a wireless link fragments: those of the connection with the smallest MTU. Connections count whose
    /// packets have the usual size of their sender, and whose system would find the MTU.
    pub fn fragmented(&self) -> Option<TooLarge> {
        let network = self.resolve().ok()?;
        let overheads = self.tunnel_overheads();
        let found = network.flows.iter().filter_map(|flow| {
            let found = TooLarge::on(flow, network.mtu(flow, overheads)?)?;
            let finds_mtu = match flow.stack {
                Some(sender) => sender.quic.mtu == quic::Settings::default().mtu,
                None => {
                    let Settings { profile, packet_size, .. } = flow.tcp;
                    profile.finds_mtu() && packet_size == profile.settings().packet_size
                }
            };
            Some(found).filter(|_| finds_mtu)
        });
        found.min_by_key(|found| found.largest)
    }

    /// The packets that vanish in a black hole on their path, if their sender does not detect it: those of the connection with the
    /// smallest such hole.
    pub fn lost_in_black_hole(&self) -> Option<TooLarge> {
        let network = self.resolve().ok()?;
        let unaware = network.flows.iter().filter(|flow| match flow.stack {
            Some(sender) => !sender.quic.mtu_discovery,
            None => !flow.tcp.mtu_probing,
        });
        let overheads = self.tunnel_overheads();
        let found = unaware.filter_map(|flow| TooLarge::on(flow, network.black_hole(flow, overheads)?));
        found.min_by_key(|found| found.largest)
    }

    /// The most that a tunnel of any combination of schemes adds to a packet that enters a wireless link at each end.
    fn tunnel_overheads(&self) -> [Bytes; 2] {
        let combinations = self.schemes.iter().filter_map(|name| self.scheme.combination(name).ok());
        combinations.fold([Bytes::ZERO; 2], |most, combination| {
            [LinkEnd::BaseStation, LinkEnd::MobileHost]
                .map(|end| most[end as usize].max(combination.tunnel_overhead(end)))
        })
    }

    /// The length of outages, or the mean length of fades, on the path of a connection that may last so long that its sender takes
    /// them for a black hole, and lowers its segment size for good: the longest of them.
    pub fn taken_for_black_hole(&self) -> Option<Duration> {
        let network = self.resolve().ok()?;
        let probing = network.flows.iter().filter(|flow| flow.is_tcp() && flow.tcp.mtu_probing);
        probing.flat_map(|flow| network.interruptions(flow, BLACK_HOLE_AFTER)).max()
    }

    /// The schemes of the combination `name` that act only by reactions, each with the reason why it has no effect in a run in
    /// which the metric `reactions` is zero.
    pub fn reacting(&self, name: &str) -> Vec<(&'static str, &'static str)> {
        let (Ok(combination), Ok(network)) = (self.scheme.combination(name), self.resolve()) else {
            return Vec::new();
        };
        network.reacting(&combination)
    }

    /// The combination of schemes called `name`, on the network of this scenario.
    ///
    /// # Errors
    /// If there is none, or it does not support these links.
    pub fn combination_on(&self, name: &str, network: &Network) -> Result<Combination<'_>, ScenarioError> {
        let combination = self.combination(name);
        let supported = combination.and_then(|it| self.refusal(&it, network).map_or(Ok(it), Err));
        supported.map_err(|problem| self.error(ErrorKind::Scheme, format!("scheme: {problem}")))
    }
}
