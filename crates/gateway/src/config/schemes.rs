//! Which schemes the gateway has, and their parameters.

use std::fmt::{self, Formatter};

use lasthop_base::{Bytes, inline_schema, schema};
use lasthop_proto::arq::{self, Retransmissions};
use lasthop_proto::scheme::parameters::{
    AckThinning, Arq, DelayedDupacks, Eln, PacketFec, Snoop, WtcpTimestamps,
};
use lasthop_proto::scheme::{
    self as registry, ArqUse, Combination, CombinationError, LinkEnd, LinkUse, Scheme,
};
use lasthop_scenario::{Fault, alternatives};
use lasthop_tunnel::INTERLEAVE;
use schemars::JsonSchema;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Tcp;

/// A scheme that the gateway installs, by the name that it has in scenarios.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SchemeName {
    /// `basic`: the flow is left alone.
    Basic,
    /// `i-tcp`: the connection is split between two sockets of the kernel.
    #[default]
    ITcp,
    /// A scheme whose agents see the packets of the flow, by its number in [`AGENTS`].
    Agents(usize),
    /// A scheme of the tunnel to another gateway.
    Tunnel(TunnelScheme),
}

/// A scheme of the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TunnelScheme {
    /// `packet-fec`: a code across packets.
    PacketFec,
    /// `arq`: retransmission of lost packets.
    Arq,
}

impl TunnelScheme {
    /// Both.
    pub const ALL: [TunnelScheme; 2] = [TunnelScheme::PacketFec, TunnelScheme::Arq];

    /// For whom it does nothing, or harm.
    pub fn caveat(self) -> &'static str {
        match self {
            TunnelScheme::PacketFec => {
                "repair packets take (n - k) / n of the rate whatever is lost, unless tunnel.adapt = true; downloads from senders \
                 with BBR, or over a radio without losses, lose as much"
            }
            TunnelScheme::Arq => {
                "downloads from senders with BBR, or over a radio without losses, may lose 6 %"
            }
        }
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            TunnelScheme::PacketFec => (
                "packet-fec",
                "In the tunnel, repair packets follow, from which the other gateway recovers lost packets.",
            ),
            TunnelScheme::Arq => ("arq", "In the tunnel, lost packets are retransmitted."),
        }
    }
}

/// A scheme whose agents the gateway has.
#[derive(Clone, Copy, Debug)]
pub struct AgentScheme {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it does here.
    pub meaning: &'static str,
    /// For whom it does nothing, or harm.
    pub caveat: &'static str,
}

/// The schemes whose agents the gateway has.
pub const AGENTS: [AgentScheme; 5] = [
    AgentScheme {
        name: "snoop",
        meaning: "Lost segments to hosts behind the radio are retransmitted from here, and their duplicate ACKs kept back.",
        caveat: "nothing for uploads; downloads may lose 6 % over a radio without losses, or from senders with BBR",
    },
    AgentScheme {
        name: "wtcp-timestamps",
        meaning: "As snoop, with at most one window under way; timestamps hide from the sender the time that it takes.",
        caveat: "nothing for uploads; downloads may lose 6 % over a radio without losses, and 13 % from senders with BBR",
    },
    AgentScheme {
        name: "eln",
        meaning: "ACKs of data from hosts behind the radio tell which losses were its own.",
        caveat: "nothing for hosts that do not heed the marks, as Linux does not",
    },
    AgentScheme {
        name: "delayed-dupacks",
        meaning: "Duplicate ACKs wait here until the radio has delivered what it retransmits out of order.",
        caveat: "nothing over a radio that does not retransmit, or keeps the order; losses are repaired later by scheme.delayed-dupacks.delay",
    },
    AgentScheme {
        name: "ack-thinning",
        meaning: "Of several ACKs towards the radio only the last one goes on.",
        caveat: "nothing where the uplink is not the bottleneck of downloads; senders send larger bursts",
    },
];

/// Why the gateway does not have a scheme, by what the scheme installs, and the nearest that the gateway has; `None` if agents
/// before the radio, which see the packets of a flow and nothing else, are all that it needs of the network.
fn obstacle(scheme: &Combination<'_>) -> Option<&'static str> {
    let agents = scheme.agents(LinkEnd::BaseStation).count();
    let hears_radio = (0..agents).any(|agent| scheme.needs_link_events(agent));
    // Whether the radio has an ARQ of its own is not known here.
    let own_arq = LinkUse { arq: ArqUse::Required, ..LinkUse::default() };
    let is_of_the_radio = ![LinkUse::default(), own_arq].contains(&scheme.link())
        || scheme.signal_lead().is_some()
        || scheme.copies_to_base_stations()
        || !scheme.connected().is_empty();
    if scheme.splitter().is_some() {
        Some(
            "needs another TCP than the kernel's at the gateway; the nearest is \"i-tcp\", with \
             scheme.i-tcp.wireless.packet_size for the size of segments",
        )
    } else if matches!(scheme.link().arq, ArqUse::Supplied(_) | ArqUse::Replaced(_)) {
        Some("is an ARQ of the radio's driver; the nearest is \"arq\", in a [tunnel] to another gateway")
    } else if !scheme.pairs().is_empty() {
        Some("has agents at both ends of the radio; the nearest is \"arq\", in a [tunnel] to another gateway")
    } else if hears_radio {
        Some("acts on events of the radio that no driver reports; the nearest is \"snoop\" or \"i-tcp\"")
    } else if is_of_the_radio {
        Some("is part of the radio, or moves with its hosts; the nearest is \"snoop\" or \"i-tcp\"")
    } else if agents == 0 {
        Some("changes TCP of the hosts, which are not the gateway's; the nearest is \"i-tcp\"")
    } else {
        None
    }
}

impl SchemeName {
    /// All of them.
    pub fn all() -> impl Iterator<Item = SchemeName> {
        let others =
            (0..AGENTS.len()).map(SchemeName::Agents).chain(TunnelScheme::ALL.map(SchemeName::Tunnel));
        [SchemeName::Basic, SchemeName::ITcp].into_iter().chain(others)
    }

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            SchemeName::Basic => "basic",
            SchemeName::ITcp => "i-tcp",
            SchemeName::Agents(number) => AGENTS[number].name,
            SchemeName::Tunnel(scheme) => scheme.words().0,
        }
    }

    /// The scheme called `name`.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn find(name: &str) -> Result<SchemeName, String> {
        if let Some(found) = SchemeName::all().find(|each| each.name() == name) {
            return Ok(found);
        }
        let known = registry::Schemes::default();
        let reason = match known.combination(name) {
            Err(CombinationError::Unknown(unknown)) => {
                let known = alternatives(&unknown, SchemeName::all().map(SchemeName::name));
                return Err(format!("found \"{name}\", {known}"));
            }
            Ok(scheme) if scheme.schemes().count() == 1 && scheme.nodes().count() == 0 => {
                obstacle(&scheme).unwrap_or("was not tried here; the nearest is \"snoop\"")
            }
            _ => "is a combination; a flow has one scheme",
        };
        Err(format!("found \"{name}\", which {reason}"))
    }
}

impl Serialize for SchemeName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for SchemeName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SchemeName, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = SchemeName;
            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a scheme, such as \"i-tcp\"")
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<SchemeName, E> {
                SchemeName::find(name).map_err(E::custom)
            }
        }
        from.deserialize_any(Name)
    }
}

inline_schema!(SchemeName, |_generator| schema::described(
    [
        ("basic", "The flow is left alone."),
        ("i-tcp", "The connection is split between two sockets of the kernel."),
    ]
    .into_iter()
    .chain(AGENTS.map(|scheme| (scheme.name, scheme.meaning)))
    .chain(TunnelScheme::ALL.map(TunnelScheme::words))
));

/// The parameters of schemes. Those of agents are as in scenarios.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub struct Schemes {
    /// Indirect TCP.
    pub i_tcp: ITcp,
    /// Snoop.
    pub snoop: Snoop,
    /// WTCP of Ratnam and Matta.
    pub wtcp_timestamps: WtcpTimestamps,
    /// Explicit Loss Notification.
    pub eln: Eln,
    /// Delayed duplicate acknowledgements, by an agent.
    pub delayed_dupacks: DelayedDupacks,
    /// ACK thinning.
    pub ack_thinning: AckThinning,
    /// The code across packets of the tunnel, for what enters it here. Both directions have one if both gateways' files say so.
    pub packet_fec: PacketFec,
    /// The ARQ of the tunnel, for what enters it here: `protocol.selective-repeat`, whose feedback is real.
    pub arq: Arq,
}

/// What is wrong with the parameters of a code, called `path`.
pub(super) fn code_faults(code: &PacketFec, path: &str) -> Vec<Fault> {
    let default = PacketFec::default();
    let mut faults: Vec<(String, String)> = Scheme::faults(code, &Default::default());
    let mut fault = |key: &str, problem: String| faults.push((key.to_owned(), problem));
    if code.interleave > INTERLEAVE {
        fault("interleave", format!("found {}, expected at most {INTERLEAVE}", code.interleave));
    }
    if code.directions != default.directions {
        let expected = "expected \"both\": each gateway's file is for what enters there";
        fault("directions", format!("found another, {expected}"));
    }
    if code.header != default.header {
        fault(
            "header",
            format!("found {}, expected none stated: a tunnel's header is as it is", code.header),
        );
    }
    faults.into_iter().map(|(key, problem)| Fault::new(&format!("{path}.{key}"), problem)).collect()
}

/// Indirect TCP (Bakre and Badrinath 1995): the gateway answers in the name of the server, and sends the data on in a second
/// connection, in the name of the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct ITcp {
    /// The largest number of bytes between the two parts of a connection, for each direction, beside the buffers of the
    /// kernel's sockets. Idle connections hold none.
    pub buffer: Bytes,
    /// TCP of the wireless part: differences from `[tcp]`, with the same keys.
    pub wireless: Tcp,
}

impl Default for ITcp {
    fn default() -> ITcp {
        ITcp { buffer: Bytes(256 << 10), wireless: Tcp::default() }
    }
}

impl Schemes {
    /// The same parameters among those of all schemes, as agents are made from them.
    pub fn registry(&self) -> registry::Schemes {
        registry::Schemes {
            snoop: self.snoop.clone(),
            wtcp_timestamps: self.wtcp_timestamps.clone(),
            eln: self.eln.clone(),
            delayed_dupacks: self.delayed_dupacks.clone(),
            ack_thinning: self.ack_thinning.clone(),
            ..registry::Schemes::default()
        }
    }

    pub(super) fn faults(&self, faults: &mut Vec<Fault>) {
        let ITcp { buffer, wireless } = &self.i_tcp;
        if !(4096..=1 << 20).contains(&buffer.0) {
            let problem = format!("found {buffer}, expected 4 KiB to 1 MiB");
            faults.push(Fault::new("scheme.i-tcp.buffer", problem));
        }
        wireless.faults("scheme.i-tcp.wireless", faults);
        let (schemes, tcp) = (self.registry(), Default::default());
        for scheme in AGENTS.iter().filter_map(|each| schemes.get(each.name)) {
            for (key, problem) in scheme.faults(&tcp) {
                faults.push(Fault::new(&format!("scheme.{}.{key}", scheme.name()), problem));
            }
        }
        faults.extend(code_faults(&self.packet_fec, "scheme.packet-fec"));
        if self.retransmissions().is_none() {
            let problem = "found another, expected selective-repeat, which is that of the tunnel";
            faults.push(Fault::new("scheme.arq.protocol", problem));
        }
        let none = "each flow has agents of its own here; gateway.connections limits the flows";
        let connections = [
            ("snoop", self.snoop.connections, Snoop::default().connections),
            ("wtcp-timestamps", self.wtcp_timestamps.connections, WtcpTimestamps::default().connections),
        ];
        for (scheme, found, default) in connections.into_iter().filter(|(_, found, default)| found != default)
        {
            let problem = format!("found {found}, expected {default}: {none}");
            faults.push(Fault::new(&format!("scheme.{scheme}.connections"), problem));
        }
    }

    /// How often the tunnel retransmits a packet; `None` if that is not of its ARQ.
    pub fn retransmissions(&self) -> Option<Retransmissions> {
        match self.arq.protocol {
            arq::Config::SelectiveRepeat(params) => Some(params.retransmissions),
            _ => None,
        }
    }

    /// Why a scheme cannot be installed with these parameters, if so.
    pub(super) fn obstacle(&self, name: SchemeName) -> Option<String> {
        let SchemeName::Agents(_) = name else { return None };
        let (name, schemes) = (name.name(), self.registry());
        let scheme = schemes.combination(name).ok()?;
        let reason = obstacle(&scheme)?;
        let remedy = match name {
            "delayed-dupacks" => "; or set scheme.delayed-dupacks.agent = true, which delays them here",
            "eln" => "; or set scheme.eln.holes = true, which infers losses from the packets alone",
            _ => "; its default parameters do not",
        };
        Some(format!("found \"{name}\", which {reason}{remedy}"))
    }
}
