//! The schema of the topology: `[topology]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The topology defines the nodes and the duplex links between them. A link is named after its two nodes, in
/// the order used below. `[wired]` applies to all wired links, `[radio]` to all wireless links and `[cell]`
/// to all 802.11 cells; `[link.NAME]` overrides them for one link. Each wireless link, and each station of a
/// cell, has independent fades. Packets take the path with the fewest links, in both directions. Among equal
/// paths, the order of definition of the last link decides.
///
/// The default `topology = "last-hop"` has the links `fixed-base` and `base-mobile`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// A fixed host, a base station and a mobile host: `fixed-base` is wired, `base-mobile` wireless.
    #[default]
    LastHop,
    /// A chain of routers.
    Path(Path),
    /// Pairs of hosts whose paths share one link.
    Dumbbell(Dumbbell),
    /// A server, an access point and the stations of its cell.
    Cell(Stations),
    /// A server, a base station and the mobile hosts that share its radio.
    SharedRadio(MobileHosts),
    /// A fixed host, a router, and base stations between which a mobile host moves.
    HandOff(BaseStations),
    /// Arbitrary links.
    Graph(GraphTopology),
}

/// A chain of routers: `source-R1`, `R1-R2`, ... and, with three routers, `R3-destination`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Number of routers, 1 to 1000.
    #[schemars(range(min = 1, max = 1000))]
    pub routers: u16,
    /// Which hosts are mobile: the `"first"`, the `"last"`, `"both"` or `"none"`. The node next to a mobile
    /// host is its base station.
    #[serde(default)]
    pub wireless: Wireless,
}

/// Pairs of hosts whose paths share one link: `S1-left`, `S2-left`, ..., `left-right`, `right-D1`,
/// `right-D2`, ...
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// Number of pairs, 1 to 100000.
    #[schemars(range(min = 1, max = 100_000))]
    pub pairs: u32,
    /// Which hosts are mobile: `"first"`, the sources; `"last"`, the destinations; `"both"` or `"none"`.
    #[serde(default)]
    pub wireless: Wireless,
}

/// A server, an access point and the stations of its 802.11 cell: the wired link `server-ap`, and `ap-MH1`,
/// `ap-MH2`, ..., which share one medium. Every station downloads from the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stations {
    /// Number of stations, 1 to 1000.
    #[schemars(range(min = 1, max = 1000))]
    pub stations: u16,
}

/// A server, a base station and the mobile hosts that share its radio: the wired link `server-base`, and the
/// wireless links `base-MH1`, `base-MH2`, ... of `[radio]`. Every mobile host downloads from the server.
/// `[shared]` selects the scheduling of the base station.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MobileHosts {
    /// Number of mobile hosts, 1 to 1000.
    #[schemars(range(min = 1, max = 1000))]
    pub mobiles: u16,
}

/// A mobile host that moves between base stations behind a router: the wired links `fixed-router`,
/// `router-BS1`, `router-BS2`, ..., and the wireless links `BS1-mobile`, `BS2-mobile`, ...
/// `[mobility.mobile]` defines the movement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaseStations {
    /// Number of base stations, 1 to 1000.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(default = "two")]
    pub stations: u16,
}

fn two() -> u16 {
    2
}

/// Which hosts of a shape are mobile, and therefore connected by `[radio]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Wireless {
    /// None.
    None,
    /// Sources.
    First,
    /// Destinations.
    #[default]
    Last,
    /// Sources and destinations.
    Both,
}

impl Wireless {
    fn first(self) -> bool {
        matches!(self, Wireless::First | Wireless::Both)
    }

    fn last(self) -> bool {
        matches!(self, Wireless::Last | Wireless::Both)
    }
}

/// Arbitrary links, each given as the names of its two nodes with a hyphen between them. Names consist of
/// letters, digits and underscores. A graph has no default hosts: `[transfer]` or each connection must state
/// `from` and `to`.
///
/// ```toml
/// [topology.graph]
/// wired = ["server-R1", "R1-base1", "R1-base2"]
/// radio = ["base1-phone", "base2-laptop"]
/// ```
///
/// An access point must send all packets for one host to the same station, or all of them out of the cell. A
/// station may be a router for hosts behind it. The same holds for a shared radio and its mobile hosts.
///
/// The random streams of a wireless link or station are named after the mobile host. Therefore a path with
/// more routers has the same fades, and another station does not change the fades of the others. The streams
/// of `last-hop` have no such names: a graph with the same two links has different fades.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphTopology {
    /// The wired links.
    #[serde(default)]
    pub wired: Vec<String>,
    /// The wireless links, with the base station first.
    #[serde(default)]
    pub radio: Vec<String>,
    /// The links of 802.11 cells, such as `"ap-laptop"`, with the access point first. All links of an access
    /// point form one cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cell: Vec<String>,
    /// The wireless links with a shared radio, such as `"base-tablet"`, with the base station first. All of
    /// these links of a base station share one radio.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<String>,
}

/// A link of a topology: the names of its ends, the mobile end if any, and whether it belongs to a cell or shares a
/// radio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) ends: [String; 2],
    pub(crate) mobile: Option<usize>,
    pub(crate) in_cell: bool,
    pub(crate) is_shared: bool,
}

impl Edge {
    fn new(a: &str, b: &str, mobile: Option<usize>) -> Edge {
        Edge { ends: [a.to_owned(), b.to_owned()], mobile, in_cell: false, is_shared: false }
    }

    /// A link from an access point to a station.
    fn of_cell(ap: &str, station: &str) -> Edge {
        Edge { in_cell: true, ..Edge::new(ap, station, Some(1)) }
    }

    /// A link that shares the radio of its base station.
    fn sharing(base: &str, mobile: &str) -> Edge {
        Edge { is_shared: true, ..Edge::new(base, mobile, Some(1)) }
    }

    pub(crate) fn name(&self) -> String {
        self.ends.join("-")
    }

    /// The mobile end of a wireless link.
    pub(crate) fn mobile_host(&self) -> Option<&str> {
        self.mobile.map(|mobile| self.ends[mobile].as_str())
    }
}

/// A default connection of a shape: its name and its ends.
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) from: String,
    pub(crate) to: String,
}

impl Pair {
    fn new(name: &str, from: &str, to: &str) -> Pair {
        Pair { name: name.to_owned(), from: from.to_owned(), to: to.to_owned() }
    }
}

/// The name of the only connection.
const ONLY: &str = "transfer";

impl Topology {
    /// The links in order, without those of a graph whose names are invalid.
    pub(crate) fn edges(&self) -> Vec<Edge> {
        match self {
            Topology::LastHop => {
                vec![Edge::new("fixed", "base", None), Edge::new("base", "mobile", Some(1))]
            }
            Topology::Path(path) => {
                let router = |number: u16| format!("R{number}");
                let wireless = path.wireless;
                let mut edges = vec![Edge::new("source", &router(1), wireless.first().then_some(0))];
                let between = (1..path.routers).map(|n| Edge::new(&router(n), &router(n + 1), None));
                edges.extend(between);
                edges.push(Edge::new(&router(path.routers), "destination", wireless.last().then_some(1)));
                edges
            }
            Topology::Dumbbell(Dumbbell { pairs, wireless }) => {
                let sources =
                    (1..=*pairs).map(|n| Edge::new(&format!("S{n}"), "left", wireless.first().then_some(0)));
                let destinations =
                    (1..=*pairs).map(|n| Edge::new("right", &format!("D{n}"), wireless.last().then_some(1)));
                sources.chain([Edge::new("left", "right", None)]).chain(destinations).collect()
            }
            Topology::Cell(Stations { stations }) => {
                let stations = (1..=*stations).map(|n| Edge::of_cell("ap", &format!("MH{n}")));
                [Edge::new("server", "ap", None)].into_iter().chain(stations).collect()
            }
            Topology::SharedRadio(MobileHosts { mobiles }) => {
                let mobiles = (1..=*mobiles).map(|n| Edge::sharing("base", &format!("MH{n}")));
                [Edge::new("server", "base", None)].into_iter().chain(mobiles).collect()
            }
            Topology::HandOff(BaseStations { stations }) => {
                let station = |number: u16| format!("BS{number}");
                let wired = (1..=*stations).map(|n| Edge::new("router", &station(n), None));
                let radio = (1..=*stations).map(|n| Edge::new(&station(n), "mobile", Some(1)));
                [Edge::new("fixed", "router", None)].into_iter().chain(wired).chain(radio).collect()
            }
            Topology::Graph(graph) => {
                let of = |names: &[String], edge: fn(&str, &str) -> Edge| {
                    let ends = names.iter().filter_map(|name| split(name));
                    ends.map(|(a, b)| edge(a, b)).collect::<Vec<_>>()
                };
                let wired = of(&graph.wired, |a, b| Edge::new(a, b, None));
                let radio = of(&graph.radio, |a, b| Edge::new(a, b, Some(1)));
                [wired, radio, of(&graph.cell, Edge::of_cell), of(&graph.shared, Edge::sharing)].concat()
            }
        }
    }

    /// Whether the topology has a cell.
    pub(crate) fn has_cell(&self) -> bool {
        match self {
            Topology::Cell(_) => true,
            Topology::Graph(graph) => !graph.cell.is_empty(),
            _ => false,
        }
    }

    /// Whether the topology has a shared radio.
    pub(crate) fn has_shared_radio(&self) -> bool {
        match self {
            Topology::SharedRadio(_) => true,
            Topology::Graph(graph) => !graph.shared.is_empty(),
            _ => false,
        }
    }

    /// The connections of a shape if the scenario names none.
    pub(crate) fn pairs(&self) -> Vec<Pair> {
        match self {
            Topology::LastHop | Topology::HandOff(_) => vec![Pair::new(ONLY, "fixed", "mobile")],
            Topology::Path(_) => vec![Pair::new(ONLY, "source", "destination")],
            Topology::Dumbbell(dumbbell) => (1..=dumbbell.pairs)
                .map(|n| Pair::new(&n.to_string(), &format!("S{n}"), &format!("D{n}")))
                .collect(),
            Topology::Cell(Stations { stations }) => {
                (1..=*stations).map(|n| Pair::new(&n.to_string(), "server", &format!("MH{n}"))).collect()
            }
            Topology::SharedRadio(MobileHosts { mobiles }) => {
                (1..=*mobiles).map(|n| Pair::new(&n.to_string(), "server", &format!("MH{n}"))).collect()
            }
            // A graph has no default ends.
            Topology::Graph(_) => vec![Pair::new(ONLY, "", "")],
        }
    }
}

/// The ends of a link, if `name` is a valid link name.
pub(crate) fn split(name: &str) -> Option<(&str, &str)> {
    let (a, b) = name.split_once('-')?;
    let named = |node: &str| !node.is_empty() && node.chars().all(|c| c.is_alphanumeric() || c == '_');
    (named(a) && named(b) && a != b).then_some((a, b))
}
