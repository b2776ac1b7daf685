//! Which schemes the gateway has, and their parameters.

use std::fmt::{self, Formatter};

use lasthop_base::{Bytes, inline_schema, schema};
use lasthop_proto::scheme::{self as registry, Combination, CombinationError, LinkEnd, LinkUse};
use lasthop_scenario::{Fault, alternatives};
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
}

/// Why the gateway does not have a scheme, by what the scheme installs, and the nearest that the gateway has.
fn obstacle(scheme: &Combination<'_>) -> &'static str {
    let agents = scheme.agents(LinkEnd::BaseStation).count();
    let is_of_the_radio = scheme.link() != LinkUse::default()
        || scheme.signal_lead().is_some()
        || scheme.copies_to_base_stations()
        || !scheme.connected().is_empty()
        || (0..agents).any(|agent| scheme.needs_link_events(agent));
    if scheme.splitter().is_some() {
        "needs another TCP than the kernel's at the gateway; the nearest is \"i-tcp\", with \
         scheme.i-tcp.wireless.packet_size for the size of segments"
    } else if is_of_the_radio {
        "is part of the radio, or acts on events of it that no driver reports; the nearest is \"i-tcp\""
    } else if agents == 0 {
        "changes TCP of the hosts, which are not the gateway's; the nearest is \"i-tcp\""
    } else {
        "acts on the packets of the link, which this gateway does not yet; the nearest is \"i-tcp\""
    }
}

impl SchemeName {
    /// All of them.
    pub const ALL: [SchemeName; 2] = [SchemeName::Basic, SchemeName::ITcp];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            SchemeName::Basic => "basic",
            SchemeName::ITcp => "i-tcp",
        }
    }

    /// The scheme called `name`.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn find(name: &str) -> Result<SchemeName, String> {
        if let Some(found) = SchemeName::ALL.into_iter().find(|each| each.name() == name) {
            return Ok(found);
        }
        let known = registry::Schemes::default();
        let reason = match known.combination(name) {
            Err(CombinationError::Unknown(unknown)) => {
                let known = alternatives(&unknown, SchemeName::ALL.map(SchemeName::name));
                return Err(format!("found \"{name}\", {known}"));
            }
            Ok(scheme) if scheme.schemes().count() == 1 && scheme.nodes().count() == 0 => obstacle(&scheme),
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

inline_schema!(SchemeName, |_generator| schema::described([
    ("basic", "The flow is left alone."),
    ("i-tcp", "The connection is split between two sockets of the kernel."),
]));

/// The parameters of schemes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Schemes {
    /// Indirect TCP.
    #[serde(rename = "i-tcp")]
    pub i_tcp: ITcp,
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
    pub(super) fn faults(&self, faults: &mut Vec<Fault>) {
        let ITcp { buffer, wireless } = &self.i_tcp;
        if !(4096..=1 << 20).contains(&buffer.0) {
            let problem = format!("found {buffer}, expected 4 KiB to 1 MiB");
            faults.push(Fault::new("scheme.i-tcp.buffer", problem));
        }
        wireless.faults("scheme.i-tcp.wireless", faults);
    }
}
