//! The schema of a scenario file. These structs are its one definition: what a file may say, what
//! it means, and what holds where it says nothing.

use lasthop_base::{BitRate, Bytes, Duration};
use lasthop_channel::Model;
use lasthop_proto::frag::Mtu;
use lasthop_proto::scheme::Schemes;
use lasthop_proto::{arq, tcp};
use lasthop_sim::{Expansion, Exposed, QueueLimit};
use serde::{Deserialize, Serialize};

use crate::sweep::Sweep;
use crate::words;

/// Where a scenario lets one alternative among several be chosen, each with a table of its own.
/// An override that names another alternative replaces the one in the file.
pub(crate) const CHOICES: &[&str] = &["radio.channel", "radio.arq", "radio.arq.stop-and-wait.backoff"];

/// What is simulated: a transfer from a fixed host over a wired link to a base station, and on over
/// a wireless last hop to a mobile host.
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
    /// The schemes to compare, by name. By default `basic` alone: plain TCP.
    #[serde(default = "default_schemes")]
    pub schemes: Vec<String>,
    /// What is sent.
    pub transfer: Transfer,
    /// TCP at both ends. The profile, by default `rfc`, gives every setting that is not stated.
    #[serde(default)]
    pub tcp: tcp::Settings,
    /// The link between the fixed host and the base station.
    pub wired: Wired,
    /// The link between the base station and the mobile host.
    pub radio: Radio,
    /// The parameters of each scheme. Those of schemes that do not run mean nothing.
    #[serde(default)]
    pub scheme: Schemes,
    /// Which parameters are varied. By default none.
    #[serde(default, skip_serializing, deserialize_with = "Sweep::elsewhere")]
    pub sweep: Sweep,
}

/// A transfer of bulk data to the mobile host: the table `[transfer]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the key size")]
pub struct Transfer {
    /// Payload; none if there is always more to send. Required: it is what the run is about.
    #[serde(with = "words::amount")]
    pub size: Option<Bytes>,
    /// When it begins. By default at once.
    #[serde(default)]
    pub start: Duration,
}

/// A full-duplex wired link: the table `[wired]`. Both directions are alike and independent.
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

/// A wireless link, alike in both directions, which meet the same fades: the table `[radio]`.
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
    /// Propagation delay, one way. By default none: a last hop of 1 km takes 3 µs.
    #[serde(default)]
    pub delay: Duration,
    /// How much may wait before each direction. By default unlimited: no loss but on the air.
    #[serde(default = "unlimited", with = "words::queue")]
    pub queue: QueueLimit,
    /// Which bits the channel's error rates apply to. By default all on the air.
    #[serde(default)]
    pub errors_on: Exposed,
    /// Which units survive the air. By default all: errors are what a scenario adds.
    #[serde(default)]
    pub channel: Model,
    /// How the link recovers errors, for those schemes that want it to. By default not at all.
    #[serde(default)]
    pub arq: arq::Config,
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
