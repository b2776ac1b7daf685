//! The schema of a scenario file. These structs are its one definition: what a file may say, what
//! it means, and what holds where it says nothing.

use indexmap::IndexMap;
use lasthop_base::{BitRate, Duration};
use lasthop_channel::{Handoff, Model};
use lasthop_proto::fec::BlockCode;
use lasthop_proto::frag::Mtu;
use lasthop_proto::scheme::Schemes;
use lasthop_proto::{arq, tcp};
use lasthop_sim::{Expansion, Exposed, QueueLimit};
use serde::{Deserialize, Serialize};

use crate::cell::Cell;
use crate::flows::{Application, Connection, Traffic, Transfer};
use crate::sweep::Sweep;
use crate::topology::{Link, Topology};
use crate::words;

/// Whether a scenario lets one alternative among several be chosen at these keys, each with a table of
/// its own. An override that names another alternative replaces the one in the file.
pub(crate) fn is_choice(keys: &[&str]) -> bool {
    let of_link = match keys {
        ["topology"] | ["traffic", _, "law"] | ["cell", "phy" | "channel"] => return true,
        ["application", _, "request" | "response" | "think"] => return true,
        ["radio", "uplink", keys @ ..] | ["link", _, "uplink", keys @ ..] => keys,
        ["radio", keys @ ..] | ["link", _, keys @ ..] => keys,
        _ => return false,
    };
    matches!(of_link, ["channel"] | ["arq"] | ["arq", "stop-and-wait", "backoff"])
}

/// What is simulated: connections, applications and other traffic over wired links and wireless last hops. The
/// simplest is a transfer from a fixed host over a wired link to a base station, and on over a
/// wireless last hop to a mobile host.
///
/// [`Scenario::load`] and [`Scenario::parse`] read one; [`Scenario::to_toml`] writes it with every
/// default spelled out. A scenario that was read is known to be sound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a scenario")]
pub struct Scenario {
    /// The name of the file that it was read from; empty if it was made in code.
    #[serde(skip)]
    pub file: String,
    /// What it is, in a line. Empty by default.
    #[serde(default)]
    pub title: String,
    /// The simulated time at which a run that has not finished ends. By default 600 s: long beyond
    /// any transfer of the papers', and soon simulated.
    #[serde(default = "default_limit")]
    pub limit: Duration,
    /// The simulated time from which on everything is counted: what was delivered, sent or lost before
    /// is left out. By default from the beginning.
    #[serde(default)]
    pub warmup: Duration,
    /// The schemes to compare, by name. By default `basic` alone: plain TCP.
    #[serde(default = "default_schemes")]
    pub schemes: Vec<String>,
    /// What connects the hosts. By default a fixed host, a base station and a mobile host.
    #[serde(default)]
    pub topology: Topology,
    /// What is sent.
    pub transfer: Transfer,
    /// Connections, by name, each as `transfer` has it but for what it says itself. A dumbbell has one for
    /// each pair, called by its number, and every other shape one: to name some of these says how they
    /// differ, and with any other name only those are there that are named.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub connection: IndexMap<String, Connection>,
    /// Other traffic, by name. By default none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub traffic: IndexMap<String, Traffic>,
    /// Applications that ask and answer, by name. By default none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub application: IndexMap<String, Application>,
    /// TCP at both ends. The profile, by default `rfc`, gives every setting that is not stated.
    #[serde(default)]
    pub tcp: tcp::Settings,
    /// What wired links have in common. Required if the topology has one that says no rate itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wired: Option<Wired>,
    /// What wireless links have in common, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio: Option<Radio>,
    /// What 802.11 cells have in common. By default 802.11b at 11 Mb/s; not said if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<Cell>,
    /// How single links differ from these, by name. By default not at all.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub link: IndexMap<String, Link>,
    /// The parameters of each scheme. Those of schemes that do not run mean nothing.
    #[serde(default)]
    pub scheme: Schemes,
    /// Which parameters are varied. By default none.
    #[serde(default, skip_serializing, deserialize_with = "Sweep::elsewhere")]
    pub sweep: Sweep,
}

/// Full-duplex wired links: the table `[wired]`. Both directions are alike and independent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the key rate")]
pub struct Wired {
    /// Rate of each direction.
    pub rate: BitRate,
    /// Propagation delay, one way. By default none, as in the EBSN paper, which neglects it.
    #[serde(default)]
    pub delay: Duration,
    /// How much may wait before each direction, not counting the packet that is being sent. By
    /// default unlimited: no loss but on the air.
    #[serde(default = "unlimited", with = "words::queue")]
    pub queue: QueueLimit,
}

/// Wireless links, alike in both directions but for what `uplink` says: the table `[radio]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the key rate")]
pub struct Radio {
    /// Raw rate of each direction: at which expanded bits are sent.
    pub rate: BitRate,
    /// How many bits the lower layers put on the air for each bit of a packet. By default 1.
    #[serde(default)]
    pub expansion: Expansion,
    /// Largest unit on the air as IP counts it: larger packets are fragmented. None by default.
    #[serde(default, with = "words::mtu")]
    pub mtu: Option<Mtu>,
    /// The size of every unit on the air, in place of a largest one: the last of a packet is filled up.
    /// None by default.
    #[serde(default, with = "words::mtu")]
    pub unit: Option<Mtu>,
    /// Propagation delay, one way. By default none: a last hop of 1 km takes 3 µs.
    #[serde(default)]
    pub delay: Duration,
    /// How much may wait before each direction. By default unlimited: no loss but on the air.
    #[serde(default = "unlimited", with = "words::queue")]
    pub queue: QueueLimit,
    /// Which bits the channel's error rates apply to. By default all on the air.
    #[serde(default)]
    pub errors_on: Exposed,
    /// Which units survive the air. Both directions meet the same fades. By default all survive: errors
    /// are what a scenario adds.
    #[serde(default)]
    pub channel: Model,
    /// How the direction towards the base station differs. A channel of its own has fades of its own. By
    /// default it does not differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink: Option<Box<Link>>,
    /// When the mobile host changes cells. By default never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Handoff>,
    /// How the link recovers errors, for those schemes that want it to. By default not at all.
    #[serde(default)]
    pub arq: arq::Config,
    /// The code by which the link protects. By default there is none.
    #[serde(default, with = "words::code")]
    pub fec: Option<BlockCode>,
    /// What it protects by it. By default what the scheme wants it to.
    #[serde(default)]
    pub protect: Protect,
}

/// What a link protects by its code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protect {
    /// What the scheme wants it to, if anything.
    #[default]
    Scheme,
    /// Units that it sends again, whatever the scheme.
    Repeats,
    /// Everything, whatever the scheme.
    All,
}

impl Wired {
    /// A link of this rate, and otherwise by default.
    pub(crate) fn new(rate: BitRate) -> Wired {
        Wired { rate, delay: Duration::ZERO, queue: unlimited() }
    }
}

impl Radio {
    /// A link of this rate, and otherwise by default.
    pub(crate) fn new(rate: BitRate) -> Radio {
        Radio {
            rate,
            expansion: Expansion::default(),
            mtu: None,
            unit: None,
            delay: Duration::ZERO,
            queue: unlimited(),
            errors_on: Exposed::default(),
            channel: Model::default(),
            uplink: None,
            handoff: None,
            arq: arq::Config::default(),
            fec: None,
            protect: Protect::default(),
        }
    }
}

fn default_limit() -> Duration {
    Duration::from_secs(600)
}

fn default_schemes() -> Vec<String> {
    vec![String::from("basic")]
}

fn unlimited() -> QueueLimit {
    QueueLimit::Unlimited
}
