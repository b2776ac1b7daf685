//! The gateway's file: which interfaces face the radio, and which flows get which scheme.
//!
//! Its words and units are those of scenarios, and so are its errors: `[tcp]` is TCP of the wired part, `[scheme.NAME]` has
//! a scheme's parameters, `wireless` in it the differences of the wireless part.

mod directories;
mod matching;
mod schemes;
mod shaper;
mod tunnel;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use lasthop_base::{BitRate, Bytes, Duration, Probability};
use lasthop_scenario::{Fault, ScenarioError, TomlFile};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

#[cfg(target_os = "linux")]
pub(crate) use directories::directory_of;
pub use matching::{Host, Match, Ports, Prefix};
pub use schemes::{AGENTS, AgentScheme, ITcp, SchemeName, Schemes, TunnelScheme};
pub use shaper::{QueueDiscipline, Shaper};
pub use tunnel::{Class, Tunnel};

/// The table that makes a TOML file one of the gateway's.
pub const TABLE: &str = "gateway";

/// The control socket, unless the file states another.
pub const CONTROL: &str = "/run/lasthop/control";

/// A gateway's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Config {
    /// A title for reports.
    #[serde(default)]
    pub title: String,
    /// The gateway.
    pub gateway: Gateway,
    /// TCP of the wired part of split connections. What is not stated is the kernel's choice.
    #[serde(default)]
    pub tcp: Tcp,
    /// The parameters of schemes.
    #[serde(default)]
    pub scheme: Schemes,
    /// The tunnel to another gateway, at the other end of the radio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<Tunnel>,
    /// A queue before the radio, kept short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaper: Option<Shaper>,
    /// Rules for flows, by the host that opens the connection and the host that it opens it to. The first that matches
    /// applies; others get `gateway.scheme`.
    #[serde(default, rename = "match")]
    pub rules: Vec<Match>,
}

/// What the gateway is connected to, and its limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Gateway {
    /// The interfaces that face the radio. Flows between them and all other interfaces may be helped. That of a tunnel is one of
    /// them by itself.
    #[serde(default)]
    pub radio: Vec<String>,
    /// Where the hosts are whose connections may be helped: `"radio"` for those behind it, `"wired"` for all others. By default
    /// both.
    #[serde(default = "default_clients")]
    pub clients: Vec<Clients>,
    /// Whether split connections may bypass the firewall of this host: its chains of the hook `forward`, and those for DNAT, do not
    /// see them, since nothing is forwarded. Without this, none is split while there are such chains.
    #[serde(default)]
    pub bypass_firewall: bool,
    /// The scheme of flows that no rule matches.
    #[serde(default)]
    pub scheme: SchemeName,
    /// The share of flows that are left alone, to compare the helped ones with: the kernel chooses them by a keyed hash of
    /// addresses and ports, in steps of 0.001.
    #[serde(default)]
    pub unhelped: Probability,
    /// The share of flows whose headers are observed, in steps of 0.001: what helped flows gain over the unhelped ones is
    /// computed from them. Whole flows are left out, of both arms alike. None is observed if `unhelped` is 0 or 1 and no file
    /// of flows is stated.
    #[serde(default = "default_observed")]
    pub observed: Probability,
    /// A file for the observed flows, a line of JSON for each, such as `"/var/lib/lasthop/flows.jsonl"`. It has 16 MiB at
    /// most; a former one is kept beside it. By default there is none, and a restart begins the comparison anew.
    #[serde(default)]
    pub flows: Option<PathBuf>,
    /// The probability with which help without any effect is ever taken to do harm. When harm is found, no flow is helped until
    /// the file is read again. 0: never.
    #[serde(default = "default_harm_error")]
    pub harm_error: Probability,
    /// The port at which the kernel hands split connections over, at this host alone; the next one is used as well.
    #[serde(default = "default_port")]
    pub port: u16,
    /// The lowest of three adjacent bits of packet marks that the gateway uses, from 0 to 29. Other software on this host must
    /// not use them.
    #[serde(default = "default_mark_bit")]
    pub mark_bit: u32,
    /// The netfilter queue of opening connections, the routing table of split ones, and the netfilter log of observed ones.
    #[serde(default = "default_number")]
    pub number: u16,
    /// The largest number of split connections, and of flows with agents. Further ones pass unhelped.
    #[serde(default = "default_connections")]
    pub connections: u32,
    /// The largest number of connections that are being opened at a time. Further ones pass unhelped.
    #[serde(default = "default_opening")]
    pub opening: u32,
    /// The largest number of connections that one host is opening at a time. Further ones pass unhelped.
    #[serde(default = "default_opening_per_host")]
    pub opening_per_host: u32,
    /// How long a connection is held while its server does not answer. It then passes unhelped.
    #[serde(default = "default_hold")]
    pub hold: Duration,
    /// The number of threads that carry data. By default one per processor.
    #[serde(default)]
    pub threads: Option<u16>,
    /// Whether the process is confined to the system calls and the files that it needs, as far as the kernel can (seccomp and
    /// Landlock).
    #[serde(default = "default_sandbox")]
    pub sandbox: bool,
    /// The socket of `lasthop-gateway status`, `reload` and a successor. Its directory is made if it is missing, and should have
    /// nothing else in it.
    #[serde(default = "default_control")]
    pub control: PathBuf,
    /// An address of this host for the page of the gateway, and for Prometheus at `/metrics`, such as `"127.0.0.1:9330"`. By
    /// default there is none.
    #[serde(default, deserialize_with = "address")]
    pub metrics: Option<SocketAddr>,
}

/// Where hosts are that open connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", expecting = "\"radio\" or \"wired\"")]
pub enum Clients {
    /// Behind the radio.
    Radio,
    /// Elsewhere.
    Wired,
}

fn default_clients() -> Vec<Clients> {
    vec![Clients::Radio, Clients::Wired]
}

/// An address and a port; the error says what is expected.
fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let expected = "expected an address and a port, such as \"127.0.0.1:9330\" or \"[2001:db8::1]:9330\"";
    let wrong = |_| serde::de::Error::custom(format!("found \"{text}\", {expected}"));
    text.parse().map(Some).map_err(wrong)
}

fn default_observed() -> Probability {
    Probability::new(1.0).expect("a probability")
}

fn default_harm_error() -> Probability {
    Probability::new(0.01).expect("a probability")
}

fn default_port() -> u16 {
    9331
}

fn default_mark_bit() -> u32 {
    24
}

fn default_number() -> u16 {
    9331
}

fn default_connections() -> u32 {
    20_000
}

fn default_opening() -> u32 {
    4_096
}

fn default_opening_per_host() -> u32 {
    256
}

fn default_hold() -> Duration {
    Duration::from_secs(5)
}

fn default_sandbox() -> bool {
    true
}

fn default_control() -> PathBuf {
    PathBuf::from(CONTROL)
}

/// TCP of the kernel towards one side. What is not stated is the kernel's choice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Tcp {
    /// Congestion control, by the kernel's name: one of `net.ipv4.tcp_available_congestion_control`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Maximum packet size, headers included, in both directions. By default the MTU of the route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_size: Option<Bytes>,
    /// Minimum retransmission timeout, at least two ticks of the kernel (8 ms at 250 Hz) and at most its 200 ms. Needs Linux
    /// 6.15.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto_min: Option<Duration>,
    /// Maximum rate of each connection, by pacing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_rate: Option<BitRate>,
    /// Unsent data in the send buffer above which the kernel takes no more. Little keeps the queue short in which a
    /// connection's next data wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notsent_lowat: Option<Bytes>,
}

impl Tcp {
    /// These settings with those of `other` in their place, where it states any.
    pub fn with(&self, other: &Tcp) -> Tcp {
        Tcp {
            congestion: other.congestion.clone().or_else(|| self.congestion.clone()),
            packet_size: other.packet_size.or(self.packet_size),
            rto_min: other.rto_min.or(self.rto_min),
            pacing_rate: other.pacing_rate.or(self.pacing_rate),
            notsent_lowat: other.notsent_lowat.or(self.notsent_lowat),
        }
    }

    fn faults(&self, table: &str, faults: &mut Vec<Fault>) {
        let mut fault =
            |key: &str, problem: String| faults.push(Fault::new(&format!("{table}.{key}"), problem));
        if let Some(name) = self.congestion.as_deref().filter(|name| !is_word(name, 15)) {
            fault(
                "congestion",
                format!("found \"{name}\", expected the name of a control of Linux, such as \"bbr\""),
            );
        }
        // The kernel takes segments of up to 32,767 B.
        if let Some(size) = self.packet_size.filter(|size| !(296..=32_807).contains(&size.0)) {
            fault("packet_size", format!("found {size}, expected 296 B to 32807 B"));
        }
        let bounds = Duration::from_millis(1)..=Duration::from_millis(200);
        if let Some(rto) = self.rto_min.filter(|rto| !bounds.contains(rto)) {
            fault("rto_min", format!("found {rto}, expected 1 ms to 200 ms"));
        }
        if let Some(size) = self.notsent_lowat.filter(|size| !(1..=1 << 30).contains(&size.0)) {
            fault("notsent_lowat", format!("found {size}, expected 1 B to 1 GiB, such as \"128 KiB\""));
        }
    }
}

/// Whether `name` has 1 to `most` letters that the names of the kernel have.
fn is_word(name: &str, most: usize) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_graphic() && byte != b'/' && byte != b'"';
    (1..=most).contains(&name.len()) && name.bytes().all(is_letter)
}

impl Config {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read, or is invalid.
    pub fn load(path: &Path) -> Result<Config, ScenarioError> {
        Config::of(&TomlFile::load(path)?)
    }

    /// Parses `text`; messages call it `name`.
    ///
    /// # Errors
    /// If it is invalid.
    pub fn parse(text: &str, name: &str) -> Result<Config, ScenarioError> {
        Config::of(&TomlFile::parse(text, name)?)
    }

    /// The settings in `file`.
    ///
    /// # Errors
    /// If they are invalid.
    pub fn of(file: &TomlFile) -> Result<Config, ScenarioError> {
        let config: Config = file.read()?;
        match config.faults().first() {
            Some(fault) => Err(file.error(fault)),
            None => Ok(config),
        }
    }

    fn faults(&self) -> Vec<Fault> {
        let mut faults = self.gateway.faults();
        if self.gateway.radio.is_empty() && self.tunnel.is_none() {
            let problem = "found no interface, expected those that face the radio, such as [\"wlan0\"]";
            faults.push(Fault::new("gateway.radio", problem));
        }
        self.tunnel_faults(&mut faults);
        self.shaper_faults(&mut faults);
        self.tcp.faults("tcp", &mut faults);
        self.scheme.faults(&mut faults);
        for (index, rule) in self.rules.iter().enumerate() {
            rule.faults(&format!("match.{index}"), &mut faults);
        }
        for (place, scheme) in self.used_schemes() {
            faults.extend(self.scheme.obstacle(scheme).map(|problem| Fault::new(&place, problem)));
        }
        faults
    }

    /// The schemes that flows may have, each with the key that states it.
    fn used_schemes(&self) -> impl Iterator<Item = (String, SchemeName)> {
        let rules = self.rules.iter().enumerate();
        let of_rules = rules.map(|(index, rule)| (format!("match.{index}.scheme"), rule.scheme));
        std::iter::once((String::from("gateway.scheme"), self.gateway.scheme)).chain(of_rules)
    }

    /// The schemes that help flows, as a phrase.
    pub fn help(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for (_, scheme) in self.used_schemes().filter(|(_, scheme)| *scheme != SchemeName::Basic) {
            if !names.contains(&scheme.name()) {
                names.push(scheme.name());
            }
        }
        if names.is_empty() { SchemeName::Basic.name().to_owned() } else { names.join(" or ") }
    }

    /// The interfaces across which flows may be helped: those that face the radio, and that of the tunnel.
    pub fn radios(&self) -> Vec<String> {
        let tunnel = self.tunnel.iter().map(|tunnel| tunnel.interface.clone());
        self.gateway.radio.iter().cloned().chain(tunnel).collect()
    }

    /// Whether some flows have this scheme.
    #[cfg(target_os = "linux")]
    pub(crate) fn uses(&self, scheme: SchemeName) -> bool {
        self.used_schemes().any(|(_, used)| used == scheme)
    }

    /// Whether some flows may have agents.
    pub fn has_agents(&self) -> bool {
        !self.used_agents().is_empty()
    }

    /// The schemes with agents that flows may have, by their numbers in [`AGENTS`].
    pub fn used_agents(&self) -> BTreeSet<usize> {
        self.used_schemes()
            .filter_map(
                |(_, scheme)| if let SchemeName::Agents(number) = scheme { Some(number) } else { None },
            )
            .collect()
    }

    /// The key in which `other` differs although a running gateway cannot change it, if any.
    pub fn fixed_difference(&self, other: &Config) -> Option<&'static str> {
        let (own, other_buffer) = (&self.gateway, other.scheme.i_tcp.buffer);
        let interface = other.tunnel_interface();
        let other = &other.gateway;
        let differs = [
            ("gateway.port", own.port != other.port),
            ("gateway.mark_bit", own.mark_bit != other.mark_bit),
            ("gateway.number", own.number != other.number),
            ("gateway.threads", own.threads != other.threads),
            ("gateway.sandbox", own.sandbox != other.sandbox),
            ("gateway.control", own.control != other.control),
            ("gateway.flows", own.flows != other.flows),
            ("gateway.metrics", own.metrics != other.metrics),
            ("tunnel.interface", self.tunnel_interface() != interface),
            ("scheme.i-tcp.buffer", self.scheme.i_tcp.buffer != other_buffer),
        ];
        differs.into_iter().find(|(_, differs)| *differs).map(|(key, _)| key)
    }

    /// What is allowed in the file, and probably not meant.
    pub fn caveats(&self) -> Vec<String> {
        let is_split = self.used_schemes().any(|(_, scheme)| scheme == SchemeName::ITcp);
        let control = self.wireless_tcp().congestion;
        let is_bbr = control.as_ref().is_some_and(|control| control.starts_with("bbr"));
        let split = (is_split && !is_bbr).then(|| {
            let control = control.map_or_else(|| String::from("the kernel's"), |control| format!("\"{control}\""));
            format!(
                "scheme.i-tcp.wireless.congestion: {control} is the control over the radio; unless that is BBR, downloads from \
                 servers with BBR may lose where the radio loses packets: state \"bbr\", if the kernel has it"
            )
        });
        split.into_iter().chain(self.tunnel_caveats()).collect()
    }

    /// The JSON Schema of gateways' files, of draft 7, as a document of many lines.
    pub fn json_schema() -> String {
        lasthop_scenario::json_schema_of::<Config>("Lasthop gateway")
    }

    /// The canonical form: the same settings with all defaults.
    pub fn to_toml(&self) -> String {
        lasthop_scenario::to_toml(self)
    }

    /// The keys on which the gain of helped flows depends, as JSON.
    pub(crate) fn effects(&self) -> String {
        serde_json::json!([self.gateway.scheme, self.tcp, self.scheme, self.rules, self.tunnel, self.shaper])
            .to_string()
    }

    /// The number in [`radios`](Config::radios) of the interface with this number of the kernel.
    #[cfg(target_os = "linux")]
    pub(crate) fn radio_of(&self, interface: u32) -> Option<usize> {
        let name = nix::net::if_::if_indextoname(interface).unwrap_or_default();
        self.radios().iter().position(|radio| radio.as_bytes() == name.to_bytes())
    }

    /// TCP of the wired part of split connections.
    pub fn wired_tcp(&self) -> Tcp {
        self.tcp.clone()
    }

    /// TCP of the wireless part of connections split by I-TCP.
    pub fn wireless_tcp(&self) -> Tcp {
        self.tcp.with(&self.scheme.i_tcp.wireless)
    }
}

fn permille(share: Probability) -> u32 {
    (share.get() * 1000.0).round() as u32
}

impl Gateway {
    /// The unhelped share in thousandths.
    pub fn unhelped_permille(&self) -> u32 {
        permille(self.unhelped)
    }

    /// The observed share in thousandths.
    pub fn observed_permille(&self) -> u32 {
        permille(self.observed)
    }

    /// Whether flows are observed: some of them, for a comparison of two arms or for a file.
    pub fn is_observed(&self) -> bool {
        let is_compared = (1..1000).contains(&self.unhelped_permille());
        self.observed_permille() > 0 && (is_compared || self.flows.is_some())
    }

    fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut fault =
            |key: &str, problem: String| faults.push(Fault::new(&format!("gateway.{key}"), problem));
        for (index, name) in self.radio.iter().enumerate() {
            if !is_word(name, 15) {
                let expected = "expected the name of an interface, such as \"wlan0\"";
                fault(&format!("radio.{index}"), format!("found \"{name}\", {expected}"));
            } else if name == "lo" || self.radio[..index].contains(name) {
                let expected = "expected the name of another interface";
                fault(&format!("radio.{index}"), format!("found \"{name}\", {expected}"));
            }
        }
        if self.clients.is_empty() {
            fault("clients", String::from("found none, expected \"radio\", \"wired\" or both"));
        }
        for (key, share) in [("unhelped", self.unhelped), ("observed", self.observed)] {
            if (share.get() * 1000.0 - f64::from(permille(share))).abs() > 1e-9 {
                fault(key, format!("found {share}, expected steps of 0.001"));
            }
        }
        if self.harm_error.get() > 0.5 {
            fault("harm_error", format!("found {}, expected at most 0.5", self.harm_error));
        }
        if self.port < 1024 || self.port == u16::MAX {
            fault("port", format!("found {}, expected 1024 to 65534", self.port));
        }
        if self.mark_bit > 29 {
            fault("mark_bit", format!("found {}, expected 0 to 29", self.mark_bit));
        }
        // The next one is that of the tunnel's routes.
        if (252..=255).contains(&self.number) || self.number == 0 {
            let problem = format!(
                "found {}, which is a table of the kernel, or next to one, expected another number",
                self.number
            );
            fault("number", problem);
        }
        for (key, count) in [("connections", self.connections), ("opening", self.opening)] {
            if !(1..=1_000_000).contains(&count) {
                fault(key, format!("found {count}, expected 1 to 1000000"));
            }
        }
        if self.opening_per_host == 0 {
            fault("opening_per_host", String::from("found 0, expected at least 1"));
        }
        if !(Duration::from_millis(100)..=Duration::from_secs(60)).contains(&self.hold) {
            fault("hold", format!("found {}, expected 100 ms to 60 s", self.hold));
        }
        if let Some(threads) = self.threads.filter(|threads| !(1..=256).contains(threads)) {
            fault("threads", format!("found {threads}, expected 1 to 256"));
        }
        if let Some(path) = self.flows.as_ref().filter(|path| !path.is_absolute()) {
            let expected = "expected an absolute path, such as \"/var/lib/lasthop/flows.jsonl\"";
            fault("flows", format!("found \"{}\", {expected}", path.display()));
        }
        if !self.control.is_absolute() || self.control.as_os_str().len() > 100 {
            let problem = format!("expected an absolute path of at most 100 bytes, such as \"{CONTROL}\"");
            fault("control", format!("found \"{}\", {problem}", self.control.display()));
        }
        if let Some(address) = self.metrics.filter(|address| !address.ip().is_loopback()) {
            let problem =
                "expected an address of the loopback, such as \"127.0.0.1:9330\"; a proxy can publish it";
            fault("metrics", format!("found \"{address}\", {problem}"));
        }
        faults
    }
}
