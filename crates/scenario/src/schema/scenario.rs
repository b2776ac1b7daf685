//! The schema of a scenario file. These structs are its one definition: what a file may say, what
//! it means, and what holds where it says nothing.

use indexmap::IndexMap;
use lasthop_base::Duration;
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp;
use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::flows::{Application, Connection, Host, Traffic, Transfer};
use super::links::{Link, Radio, Wired};
use super::sweep::Sweep;
use super::topology::Topology;
use crate::file::alternatives;

/// Whether a scenario lets one alternative among several be chosen at these keys, each with a table of
/// its own. An override that names another alternative replaces the one in the file.
pub(crate) fn is_choice(keys: &[&str]) -> bool {
    let of_link = match keys {
        ["topology"] | ["traffic", _, "law"] | ["cell", "phy" | "channel"] | ["wired", "queue"] => {
            return true;
        }
        ["application", _, "request" | "response" | "think"] => return true,
        ["radio", "uplink", keys @ ..] | ["link", _, "uplink", keys @ ..] => keys,
        ["radio", keys @ ..] | ["link", _, keys @ ..] => keys,
        _ => return false,
    };
    matches!(of_link, ["queue"] | ["channel"] | ["arq"] | ["arq", "stop-and-wait", "backoff"])
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
    /// What is sent. Required, unless there are applications or other traffic, and no connections: then there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
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
    /// Whose TCP sends: a profile, or one of `senders`. It replaces what `[tcp]` says of senders, and leaves
    /// the sizes of packets and windows, the handshake and the close. By default `[tcp]` holds as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// Senders to choose from beside the profiles, by name. By default none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub senders: IndexMap<String, tcp::Override>,
    /// TCP at both ends. The profile, by default `linux`, gives every setting that is not stated.
    #[serde(default = "default_tcp")]
    pub tcp: tcp::Settings,
    /// How single hosts differ from this, by name. By default not at all.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub host: IndexMap<String, Host>,
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

impl Scenario {
    /// TCP with `sender` in place of what `[tcp]` says of one; nothing if no profile and none of `senders` is
    /// called so.
    fn tcp_of_sender(&self, sender: &str) -> Option<tcp::Settings> {
        let own = self.senders.get(sender).map(|own| own.of(&default_tcp()));
        let replaced = own.or_else(|| tcp::Profile::named(sender).map(tcp::Profile::settings))?;
        Some(replaced.on_path_of(&self.tcp))
    }

    /// Puts the sender that is stated into `tcp`.
    ///
    /// # Errors
    /// If there is none called so: what was expected.
    pub(crate) fn settle_sender(&mut self) -> Result<(), String> {
        let Some(sender) = self.sender.as_deref() else { return Ok(()) };
        match self.tcp_of_sender(sender) {
            Some(settings) => {
                self.tcp = settings;
                Ok(())
            }
            None => {
                let own = self.senders.keys().map(String::as_str);
                let known: Vec<&str> = own.chain(tcp::Profile::ALL.map(tcp::Profile::name)).collect();
                Err(format!("found \"{sender}\", {}", alternatives(sender, known)))
            }
        }
    }
}

/// The TCP of a server as people have it today.
fn default_tcp() -> tcp::Settings {
    tcp::Profile::default().settings()
}

fn default_limit() -> Duration {
    Duration::from_secs(600)
}

fn default_schemes() -> Vec<String> {
    vec![String::from("basic")]
}
