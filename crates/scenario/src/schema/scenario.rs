//! The schema of a scenario file: its keys, their meanings and their defaults.

use indexmap::{IndexMap, IndexSet};
use lasthop_base::{Duration, Unread};
use lasthop_proto::scheme::Schemes;
use lasthop_proto::{quic, tcp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::flows::{Application, ConnectionOverride, Host, Traffic, Transfer};
use super::json_schema;
use super::links::{LinkOverride, Radio, Wired, files_of_channel};
use super::mobility::Mobility;
use super::shared::Shared;
use super::sweep::Sweep;
use super::topology::Topology;
use super::wifi::Wifi;
use crate::diagnostics::alternatives;
use crate::document::Source;
use crate::stacks::{self, StackSender};
use crate::tree::Value;

/// A simulation scenario: connections, applications and other traffic over wired links and wireless last
/// hops. The simplest one is a transfer from a fixed host over a wired link to a base station, and over a
/// wireless last hop to a mobile host.
///
/// [`Scenario::load`] and [`Scenario::parse`] read a scenario; [`Scenario::to_toml`] writes it with all
/// defaults. A scenario read from a file is valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a scenario")]
pub struct Scenario {
    /// The name of the file; empty if the scenario was made in code.
    #[serde(skip)]
    pub file: String,
    /// A title of one line.
    #[serde(default)]
    pub title: String,
    /// The simulated time at which an unfinished run ends. By default 600 s: longer than any transfer in the
    /// papers, and quick to simulate.
    #[serde(default = "default_limit")]
    pub limit: Duration,
    /// Start of the measurement: packets sent, delivered or lost before this simulated time are excluded from
    /// all metrics.
    #[serde(default)]
    pub warmup: Duration,
    /// The schemes to compare, or combinations such as `"ebsn + arq"`, some at a router. Each runs over the
    /// same channel. `lasthop schemes` lists all schemes.
    #[serde(default = "default_schemes")]
    #[schemars(schema_with = "json_schema::schemes")]
    pub schemes: Vec<String>,
    /// The topology: `"last-hop"`, or a table such as `[topology.path]`.
    #[serde(default)]
    pub topology: Topology,
    /// The transfer. Required, unless there are applications or other traffic and no connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
    /// Connections by name, each overriding `transfer`. A dumbbell has one connection per pair, named by its
    /// number, and every other topology has one. Tables with these names override them; with any other name,
    /// only the named connections exist.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub connection: IndexMap<String, ConnectionOverride>,
    /// Other traffic by name. By default none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub traffic: IndexMap<String, Traffic>,
    /// Request/response applications by name. By default none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub application: IndexMap<String, Application>,
    /// The sender's TCP: a profile, such as `"linux-bbr"`; a profile with a `congestion`, such as
    /// `"linux-hybla"`; or one of `[senders.NAME]`. By default `[tcp]` applies. `"quinn-cubic"`, `"quinn-newreno"` and
    /// `"quinn-bbr"` are QUIC, by the library quinn: `[quic]` applies to them, and `[tcp]` does not. So are `"quinn-linux-cubic"`,
    /// `"quinn-linux-reno"`, `"quinn-linux-bbr"` and `"quinn-linux-bbr3"`, with congestion controls of Linux, and `"noq-cubic"` and
    /// `"noq-newreno"`, by noq, a fork of quinn. Applications have this sender, at both ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "json_schema::sender")]
    pub sender: Option<String>,
    /// A named sender for `sender` or `--sender`, in addition to the profiles: any key of `[tcp]`. The
    /// `profile` determines the other settings. A profile that differs in `congestion` only needs no table:
    /// `linux-westwood` is the profile `linux` with `congestion = "westwood"`. A table without a `profile`
    /// changes the sender that its name means without a table, or else `linux`: `[senders.linux-bbr]` with
    /// `ecn = true` is BBR with ECN.
    ///
    /// ```toml
    /// sender = "slow-ticks"
    ///
    /// [senders.slow-ticks]
    /// profile = "linux"
    /// congestion = "westwood"
    /// tick = "10 ms"
    /// ```
    ///
    /// A setting of `[tcp]` applies to every sender whose table does not state it, and one that is set on the command line or
    /// swept to those, too, as `senders.NAME.KEY` does to one. The exceptions are `profile` and `congestion`, which the
    /// sender's name decides: beside another sender they are an error. `[host.NAME.tcp]` and `[connection.NAME.tcp]` take
    /// precedence over a sender.
    ///
    /// A file's `[tcp]` with a `profile` is a TCP of its own. `--sender` replaces it, except for settings of the path and
    /// the receive buffer: `packet_size`, `header`, `window`, `window_counts`, `window_autotuning`, `iss`, `handshake`,
    /// `close` and `user_timeout` remain if they differ from that profile's and the sender's table does not state them.
    ///
    /// **To compare senders,** repeat `--sender`. Each runs with each scheme over the same channel:
    ///
    /// `--sender NAME` is the same as `--set sender=NAME`. A study with several senders sweeps the setting
    /// `sender`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub senders: IndexMap<String, tcp::Override>,
    /// TCP settings of both ends. Settings not stated come from the profile, by default `linux`.
    #[serde(default = "default_tcp")]
    pub tcp: tcp::Settings,
    /// QUIC settings of both ends. Absent unless a connection uses QUIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<quic::Settings>,
    /// Overrides of `[tcp]` for single hosts, by name. By default none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub host: IndexMap<String, Host>,
    /// Parameters of wired links. Required if the topology has a wired link without its own rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wired: Option<Wired>,
    /// Parameters of wireless links. Required if the topology has a wireless link without its own rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio: Option<Radio>,
    /// Parameters of 802.11 cells. By default 802.11b at 11 Mb/s; absent if there are no cells, or with `[wifi]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<Cell>,
    /// Parameters of cells of 802.11n, 802.11ac or 802.11ax, in place of `[cell]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<Wifi>,
    /// Parameters of shared radios. By default FIFO; absent if there are no shared radios.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Shared>,
    /// Overrides for single links, by name. By default none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub link: IndexMap<String, LinkOverride>,
    /// Mobile hosts that move between base stations, by name. By default none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub mobility: IndexMap<String, Mobility>,
    /// Parameters of each scheme. Those of schemes that are not run have no effect.
    #[serde(default)]
    pub scheme: Schemes,
    /// The parameters to vary. By default none.
    #[serde(default, skip_serializing, deserialize_with = "Sweep::elsewhere")]
    pub sweep: Sweep,
    /// The document from which it was read.
    #[serde(skip)]
    pub(crate) source: Source,
}

impl Scenario {
    /// TCP settings with the sender `sender`; `None` if it is none of `senders`, no profile, and no profile with
    /// a congestion control.
    pub(crate) fn tcp_of_sender(&self, sender: &str) -> Option<tcp::Settings> {
        let named =
            || tcp::Profile::named(sender).map(tcp::Profile::settings).or_else(|| with_congestion(sender));
        let Some(own) = self.senders.get(sender) else { return Some(named()?.on_path_of(&self.tcp)) };
        let base = own.profile.map(tcp::Profile::settings).or_else(named).unwrap_or_else(default_tcp);
        // The table of the sender takes precedence over the path.
        Some(tcp::Override { profile: None, ..own.clone() }.of(&base.on_path_of(&self.tcp)))
    }

    /// Whether `sender` may name the sender: one of `senders`, a profile, or a profile with a congestion control,
    /// such as `linux-hybla`; or a sender of another stack, such as `quinn-cubic`.
    pub fn knows_sender(&self, sender: &str) -> bool {
        self.tcp_of_sender(sender).is_some() || self.stack_of_sender(sender).is_some()
    }

    /// The sender `sender`, if it is one of a stack other than TCP.
    pub(crate) fn stack_of_sender(&self, sender: &str) -> Option<StackSender> {
        let (stack, name) = stacks::of_sender(sender).filter(|_| !self.senders.contains_key(sender))?;
        Some(StackSender { stack, name, quic: self.quic.unwrap_or_default() })
    }

    /// The senders of other stacks than TCP that the scenario names.
    pub(crate) fn stack_senders(&self) -> impl Iterator<Item = StackSender> {
        let own = self.connection.values().filter_map(|own| own.sender.as_deref());
        self.sender.as_deref().into_iter().chain(own).filter_map(|sender| self.stack_of_sender(sender))
    }

    /// The problem of a name that is none of a sender.
    pub(crate) fn unknown_sender(&self, sender: &str) -> String {
        let usual = names_of_senders();
        let known: IndexSet<&str> =
            self.senders.keys().map(String::as_str).chain(usual.iter().map(String::as_str)).collect();
        format!("found \"{sender}\", {}{}", alternatives(sender, known), stacks::lacking(sender))
    }

    /// Calls `each` with all data files, and the keys that lead to them.
    pub(crate) fn each_file(&mut self, each: &mut dyn FnMut(&[&str], &mut dyn Unread)) {
        if let Some(wired) = &mut self.wired {
            wired.each_file(&["wired"], each);
        }
        if let Some(radio) = &mut self.radio {
            radio.each_file(&["radio"], each);
        }
        if let Some(cell) = &mut self.cell {
            files_of_channel(&["cell"], &mut cell.channel, each);
        }
        if let Some(wifi) = &mut self.wifi {
            files_of_channel(&["wifi"], &mut wifi.channel, each);
        }
        for (name, link) in &mut self.link {
            link.each_file(&["link", name], each);
        }
    }

    /// Removes the names of presets, but not the keys that they gave.
    pub(crate) fn forget_presets(&mut self) {
        if let Some(radio) = &mut self.radio {
            radio.preset = None;
        }
        if let Some(wifi) = &mut self.wifi {
            wifi.preset = None;
        }
        for link in self.link.values_mut() {
            link.preset = None;
        }
    }

    /// Applies the stated sender to `tcp`. The settings of `tcp` with the `keys` become settings of the sender: those with `true` in any
    /// case, others unless its table states them.
    ///
    /// # Errors
    /// The path of a key and its problem: the sender is unknown, or `set` has what its name decides.
    pub(crate) fn settle_sender<'a>(
        &mut self,
        keys: impl IntoIterator<Item = (&'a str, bool)>,
    ) -> Result<(), (String, String)> {
        let Some(sender) = self.sender.as_deref() else { return Ok(()) };
        if self.stack_of_sender(sender).is_some() {
            return Ok(());
        }
        let unknown = || (String::from("sender"), self.unknown_sender(sender));
        let settled = self.tcp_of_sender(sender).ok_or_else(unknown)?;
        let (asked, found) = (settings_table(&self.tcp), settings_table(&settled));
        let mut own = self.senders.get(sender).map_or_else(IndexMap::new, settings_table);
        for (key, prevails) in keys.into_iter().filter(|(key, _)| asked.get(*key) != found.get(*key)) {
            if own.contains_key(key) && !prevails {
                continue;
            }
            let value = asked.get(key);
            if let ("profile" | "congestion", Some(value)) = (key, value) {
                let value = value.to_string();
                let (profile, control) =
                    (settled.profile.name(), settled.profile.settings().congestion.control());
                let family =
                    profile.strip_suffix(control.name).map_or(profile, |name| name.trim_end_matches('-'));
                let remedy = match key {
                    _ if self.senders.contains_key(sender) => format!("state it as senders.{sender}.{key}"),
                    "congestion" => format!("name the sender \"{family}-{value}\""),
                    _ => format!("name the sender \"{value}\""),
                };
                let problem = format!(
                    "found \"{value}\" beside the sender \"{sender}\", which decides it, expected one of the two; {remedy}"
                );
                return Err((format!("tcp.{key}"), problem));
            }
            // Without a value it is off, as by default.
            match value {
                Some(value) => own.insert(key.to_owned(), value.clone()),
                None => own.shift_remove(key),
            };
        }
        if !own.is_empty() || self.senders.contains_key(sender) {
            let own = Value::Table(own).read().expect("settings survive a round trip");
            self.senders.insert(sender.to_owned(), own);
        }
        self.tcp = self.tcp_of_sender(sender).unwrap_or(settled);
        Ok(())
    }
}

/// TCP settings by their keys, those that a file would state.
pub(crate) fn settings_table(settings: &impl Serialize) -> IndexMap<String, Value> {
    Value::of(settings).into_table()
}

/// The settings of a profile with another congestion control, called `linux-hybla` for example.
fn with_congestion(sender: &str) -> Option<tcp::Settings> {
    tcp::Profile::ALL.into_iter().find_map(|profile| {
        let congestion = sender.strip_prefix(profile.name())?.strip_prefix('-')?;
        let congestion = tcp::Congestion::named(congestion)?;
        Some(tcp::Settings { congestion, ..profile.settings() })
    })
}

/// The names of the profiles, of the default profile with each congestion control, and of the senders of other stacks.
pub(super) fn names_of_senders() -> Vec<String> {
    let controls = tcp::Congestion::ALL.iter().map(|congestion| congestion.control().name);
    let combined = controls.map(|name| format!("{}-{name}", tcp::Profile::default().name()));
    let profiles = tcp::Profile::ALL.map(|profile| String::from(profile.name()));
    let stacks =
        stacks::stacks().iter().flat_map(|stack| stack.senders()).map(|sender| String::from(sender.name));
    // Of equally near names the last is suggested: a profile for `bbr`.
    stacks.chain(profiles).chain(combined).collect::<IndexSet<_>>().into_iter().collect()
}

/// A current TCP server.
pub(super) fn default_tcp() -> tcp::Settings {
    tcp::Profile::default().settings()
}

fn default_limit() -> Duration {
    Duration::from_secs(600)
}

/// The scheme registered first, with which others are compared.
fn default_schemes() -> Vec<String> {
    Schemes::default().all().take(1).map(|scheme| String::from(scheme.name())).collect()
}
