//! The links of a network with their overrides, and their error checks.

use std::collections::HashMap;

use lasthop_base::{Bytes, FnvBuilder, Invalid};
use lasthop_link::queue::Queue;
use lasthop_proto::HostId;

use super::Resolver;
use crate::diagnostics::alternatives;
use crate::network::{LastHop, NetworkLink, StationConfig};
use crate::schema::{Cell, Edge, LinkOverride, LinkProtection, Radio, Topology, Wifi, split};

/// The size of a SYN with a timestamp, which crosses any path.
const SYN: Bytes = Bytes(52);

/// What is wrong with a smaller black hole.
const SWALLOWS_SYN: &str =
    "found a size below that of a SYN, so that no connection opens, expected at least \"52 B\"";

/// The number of wireless links of each mobile host.
type WirelessLinks<'a> = HashMap<&'a str, usize, FnvBuilder>;

impl Resolver<'_> {
    /// Checks the numbers of a shape and the link names of a graph.
    pub(super) fn check_shape(&mut self) {
        match &self.scenario.topology {
            Topology::LastHop => {}
            Topology::Path(path) => self.check_number("path", "routers", path.routers.into(), 1_000),
            Topology::Dumbbell(dumbbell) => self.check_number("dumbbell", "pairs", dumbbell.pairs, 100_000),
            Topology::Cell(cell) => self.check_number("cell", "stations", cell.stations.into(), 1_000),
            Topology::SharedRadio(shape) => {
                self.check_number("shared-radio", "mobiles", shape.mobiles.into(), 1_000);
            }
            Topology::HandOff(shape) => {
                self.check_number("hand-off", "stations", shape.stations.into(), 1_000)
            }
            Topology::Graph(graph) => {
                let kinds = [
                    ("wired", &graph.wired),
                    ("radio", &graph.radio),
                    ("cell", &graph.cell),
                    ("shared", &graph.shared),
                ];
                if kinds.iter().all(|(_, names)| names.is_empty()) {
                    self.fault(&["topology", "graph"], "found no links, expected at least one");
                }
                for (key, names) in kinds {
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

    fn check_number(&mut self, shape: &str, key: &str, number: u32, most: u32) {
        if !(1..=most).contains(&number) {
            self.fault(&["topology", shape, key], format!("found {number}, expected 1 to {most}"));
        }
    }

    pub(super) fn add_links(&mut self, edges: &[Edge]) {
        self.check_exceptions(edges);
        let mut wireless_links = WirelessLinks::default();
        for host in edges.iter().filter_map(Edge::mobile_host) {
            *wireless_links.entry(host).or_default() += 1;
        }
        for edge in edges {
            let [a, b] = [0, 1].map(|end| self.node(&edge.ends[end]));
            if self.network.graph.link(a, b).is_some() {
                let problem = format!("found {} a second time, expected it once", edge.name());
                self.fault(&["topology", "graph"], problem);
                continue;
            }
            if let Some(link) = self.link(edge, &wireless_links) {
                match link {
                    NetworkLink::Station(_) => self.network.graph.join(a, b),
                    NetworkLink::Radio(_) if edge.is_shared => self.network.graph.share(a, b),
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

    /// Checks that every `[link.NAME]` table names an existing link.
    fn check_exceptions(&mut self, edges: &[Edge]) {
        if self.scenario.link.is_empty() {
            return;
        }
        let names: Vec<String> = edges.iter().map(Edge::name).collect();
        // Of links with the same name, the first.
        let by_name: HashMap<&str, &Edge> = names.iter().map(String::as_str).zip(edges).rev().collect();
        for (name, link) in &self.scenario.link {
            let Some(&edge) = by_name.get(name.as_str()) else {
                let alternatives = alternatives(name, names.iter().map(String::as_str));
                self.fault(&["link", name], format!("there is no link \"{name}\", {alternatives}"));
                continue;
            };
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

    fn link(&mut self, edge: &Edge, wireless_links: &WirelessLinks<'_>) -> Option<NetworkLink> {
        let name = edge.name();
        let exception = self.scenario.link.get(&name).cloned().unwrap_or_default();
        let missing = |table: &str| {
            format!("missing key {table}, expected a table with the key rate, for the link {name}")
        };
        if edge.in_cell {
            let suffix = self.suffix(edge, 1, wireless_links);
            return Some(self.station(&name, suffix.trim_start_matches(':'), &exception));
        }
        match edge.mobile {
            None => match exception.wired(self.scenario.wired.as_ref()) {
                Some(wired) => {
                    for (key, checked) in [
                        ("rate", wired.rate.validate()),
                        ("delay", wired.delay.validate()),
                        ("queue", wired.queue.validate()),
                    ] {
                        let Err(invalid) = checked else { continue };
                        let table = if exception.states(key) { vec!["link", &name] } else { vec!["wired"] };
                        let keys = [key].into_iter().chain(invalid.field.split('.')).collect();
                        self.fault(&[table, keys].concat(), invalid.problem);
                    }
                    if wired.black_hole.is_some_and(|size| size < SYN) {
                        let own = exception.states("black_hole");
                        let table = if own { vec!["link", &name] } else { vec!["wired"] };
                        self.fault(&[table, vec!["black_hole"]].concat(), SWALLOWS_SYN);
                    }
                    Some(NetworkLink::Wired(Box::new(wired)))
                }
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
                    let suffix = self.suffix(edge, mobile, wireless_links);
                    if edge.is_shared {
                        self.check_shared(edge, &down);
                    }
                    let hop = LastHop { down, up, up_has_channel, mobile, suffix, place: None };
                    Some(NetworkLink::Radio(Box::new(hop)))
                }
                None => {
                    self.fault(&[], missing("radio"));
                    None
                }
            },
        }
    }

    /// The link called `name` to a station of a cell.
    fn station(&mut self, name: &str, streams: &str, exception: &LinkOverride) -> NetworkLink {
        let default = Cell::default();
        let scenario = self.scenario;
        let cell = scenario.cell.as_ref().unwrap_or(&default);
        let (table, channel, drop, radio) = match &scenario.wifi {
            Some(wifi) => {
                self.check_wifi(wifi);
                let own = exception.station.unwrap_or_default();
                let radio = wifi.radio(&own);
                if let Err(invalid) = radio.validate(&wifi.config().format) {
                    let keys: Vec<&str> = invalid.field.split('.').collect();
                    let table =
                        if own.states(keys[0]) { vec!["link", name, "station"] } else { vec!["wifi"] };
                    self.fault(&[table, keys].concat(), invalid.problem);
                }
                let overrides = scenario.link.values().filter_map(|link| link.station?.power_save);
                let mut saves = wifi.power_save.into_iter().chain(overrides);
                if let (Some(one), Some(save)) = (saves.next(), own.power_save)
                    && save.beacon != one.beacon
                {
                    let problem = "found another interval than of other stations, expected one: an access point has one beacon";
                    self.fault(&["link", name, "station", "power_save", "beacon"], problem);
                }
                ("wifi", &wifi.channel, wifi.drop, Some(radio))
            }
            None => {
                self.check_cell(cell);
                if exception.station.is_some() {
                    let problem = "found it in a cell of [cell], expected it in one of [wifi]";
                    self.fault(&["link", name, "station"], problem);
                }
                ("cell", &cell.channel, cell.drop, None)
            }
        };
        let station = StationConfig {
            name: streams.to_owned(),
            channel: exception.channel.as_ref().unwrap_or(channel).clone(),
            drop: exception.drop.unwrap_or(drop),
            radio,
        };
        if let Err(invalid) = station.channel.validate() {
            let table = if exception.states("channel") { vec!["link", name] } else { vec![table] };
            let keys = ["channel"].into_iter().chain(invalid.field.split('.')).collect();
            self.fault(&[table, keys].concat(), invalid.problem);
        }
        NetworkLink::Station(Box::new(station))
    }

    /// Checks constraints that the types of `[wifi]` cannot express.
    fn check_wifi(&mut self, wifi: &Wifi) {
        let config = wifi.config();
        if self.scenario.cell.is_some() {
            let problem = "found it beside [cell], expected one of them: [cell] is 802.11a, b or g, [wifi] 802.11n, ac or ax";
            self.fault(&["wifi"], problem);
        }
        for (key, checked) in [
            (None, config.validate()),
            (Some("queue"), config.queue.validate()),
            (Some("station_queue"), config.station_queue.validate()),
        ] {
            let Err(invalid) = checked else { continue };
            let keys = ["wifi"].into_iter().chain(key).chain(invalid.field.split('.')).collect::<Vec<_>>();
            self.fault(&keys, invalid.problem);
        }
    }

    /// Checks what a link that shares a radio cannot have.
    fn check_shared(&mut self, edge: &Edge, down: &Radio) {
        let name = edge.name();
        let dispatch = self.network.dispatch;
        if let Err(invalid) = dispatch.validate() {
            let keys = ["shared", "dispatch"].into_iter().chain(invalid.field.split('.')).collect::<Vec<_>>();
            self.fault(&keys, invalid.problem);
        }
        let fixed = "found one that varies, expected a fixed one for links that share a radio";
        let found = [
            (down.rate.varies(), "rate", fixed),
            (down.delay.varies(), "delay", fixed),
            (
                down.grants.is_some(),
                "grants",
                "found it on a link that shares a radio, expected none; `dispatch` in [shared] says who is served",
            ),
            (
                down.black_hole.is_some(),
                "black_hole",
                "found it on a link that shares a radio, expected none",
            ),
            (
                dispatch.has_one_queue() && matches!(down.queue, Queue::Managed(_)),
                "queue",
                "found a discipline, expected a capacity for links whose packets wait in one queue; \
                 change dispatch in [shared] to \"round-robin\"",
            ),
        ];
        for (_, key, problem) in found.into_iter().filter(|(is_wrong, ..)| *is_wrong) {
            let table = self.table_of(&name, key, false);
            self.fault(&[table, vec![key]].concat(), problem);
        }
        let host = &edge.ends[1];
        if self.scenario.mobility.contains_key(host) {
            let problem =
                "found a mobile host of a shared radio, expected one with wireless links of its own";
            self.fault(&["mobility", host], problem);
        }
    }

    /// Checks constraints that the types of a cell's parameters cannot express.
    fn check_cell(&mut self, cell: &Cell) {
        if let Err(invalid) = cell.config().validate() {
            let keys = ["cell"].into_iter().chain(invalid.field.split('.')).collect::<Vec<_>>();
            self.fault(&keys, invalid.problem);
        }
    }

    /// Suffix of the names of the random streams of a wireless link or a station. It is the name of the
    /// mobile host, which does not depend on the number of routers, so the host meets the same fades in every
    /// topology. A host with several links needs their names; in the simplest topology the suffix is empty.
    fn suffix(&self, edge: &Edge, mobile: usize, wireless_links: &WirelessLinks<'_>) -> String {
        let host = edge.ends[mobile].as_str();
        // Further base stations of a moving host leave the fades of the first link alone.
        let is_first = || {
            let links = self.network.graph.neighbours(self.nodes[host]);
            self.scenario.mobility.contains_key(host) && links.is_empty()
        };
        match &self.scenario.topology {
            Topology::LastHop => String::new(),
            _ if wireless_links[host] == 1 || is_first() => format!(":{host}"),
            _ => format!(":{}", edge.name()),
        }
    }

    /// Checks constraints that the types of a wireless link's parameters, or of its direction `up`, cannot
    /// express.
    fn check_radio(&mut self, name: &str, radio: &Radio, up: bool) {
        let wrong = |key, checked: Result<(), Invalid>| {
            checked.err().map(|invalid| (format!("{key}.{}", invalid.field), invalid.problem))
        };
        let outages = radio.outage.map_or(Ok(()), |outages| outages.validate());
        // An error in an override is reported at the override.
        let exceptional = |key| {
            let table = self.table_of(name, key, up);
            (table.last() == Some(&"uplink"), table.len())
        };
        let two_sizes = if exceptional("mtu") > exceptional("unit") {
            ("mtu", "found mtu together with unit, expected only one of them")
        } else {
            ("unit", "found unit together with mtu, expected only one of them")
        };
        let cramped = radio.unit.zip(radio.fec).filter(|(unit, code)| unit.get().bits() < code.n().into());
        let found = [
            wrong("rate", radio.rate.validate()),
            wrong("delay", radio.delay.validate()),
            wrong("channel", radio.channel.validate()),
            wrong("outage", outages),
            wrong("arq", radio.arq.validate()),
            wrong("queue", radio.queue.validate()),
            wrong("grants", radio.grants.map_or(Ok(()), |grants| grants.validate())),
            (radio.grants.is_some() && !radio.rate.is_of_time()).then(|| {
                let problem = "found it with a rate that has opportunities or tokens of its own, expected a fixed rate, or one \
                               of series, signal or lognormal";
                (String::from("grants"), problem)
            }),
            (radio.unit.is_some() && radio.mtu.is_some()).then(|| (two_sizes.0.to_owned(), two_sizes.1)),
            (radio.protect != LinkProtection::Scheme && radio.fec.is_none()).then(|| {
                let problem = "found it without a code; add fec = \"bch-255-131-18\"";
                (String::from("protect"), problem)
            }),
            (radio.arq.cuts_frames() && radio.unit.or(radio.mtu).is_some()).then(|| {
                let problem = "found it together with mtu or unit, which its frames replace; remove them";
                (String::from("arq"), problem)
            }),
            radio.black_hole.filter(|size| *size < SYN).map(|_| (String::from("black_hole"), SWALLOWS_SYN)),
            cramped.map(|_| {
                (String::from("unit"), "found a size below a codeword of fec, expected a larger one")
            }),
        ];
        for (field, problem) in found.into_iter().flatten() {
            let keys: Vec<&str> = field.split('.').collect();
            let table = self.table_of(name, keys[0], up);
            self.fault(&[table, keys].concat(), problem);
        }
        let nested = radio.uplink.as_ref().filter(|_| !up);
        for key in ["drop", "station"].into_iter().filter(|key| nested.is_some_and(|own| own.states(key))) {
            let table = self.table_of(name, key, true);
            let problem = "found it on a wireless link, expected it on those of cells only";
            self.fault(&[table, vec![key]].concat(), problem);
        }
        for key in
            ["outage", "power", "uplink"].into_iter().filter(|key| nested.is_some_and(|own| own.states(key)))
        {
            let table = self.table_of(name, key, true);
            self.fault(
                &[table, vec![key]].concat(),
                "found it for one direction, expected it for both directions only",
            );
        }
    }

    /// The table that states `key` for a wireless link, or for its direction `up`.
    pub(super) fn table_of<'a>(&self, name: &'a str, key: &str, up: bool) -> Vec<&'a str> {
        let states = |link: Option<&LinkOverride>| link.is_some_and(|link| link.states(key));
        let own = self.scenario.link.get(name);
        let own_uplink = own.and_then(|link| link.uplink.as_ref()).and_then(|uplink| uplink.as_deref());
        let uplink = self.scenario.radio.as_ref().and_then(|radio| radio.uplink.as_deref());
        match (up, states(own)) {
            (true, _) if states(own_uplink) => vec!["link", name, "uplink"],
            (true, _) if own_uplink.is_none() && states(uplink) => vec!["radio", "uplink"],
            (_, true) => vec!["link", name],
            (_, false) => vec!["radio"],
        }
    }
}
