//! The schema of what the hosts send: `[transfer]`, `[connection.NAME]`, `[traffic.NAME]` and
//! `[application.NAME]`.

use lasthop_base::{Bytes, Duration};
use lasthop_proto::traffic::Law;
use lasthop_proto::{application, tcp};
use serde::{Deserialize, Serialize};

use super::serde_words;

/// A bulk transfer: the table `[transfer]`. It is what all connections have in common, and the only
/// connection itself if there are no tables `[connection.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the key size")]
pub struct Transfer {
    /// Payload; none if there is always more to send. Required: it is what the run is about.
    #[serde(with = "serde_words::amount")]
    pub size: Option<Bytes>,
    /// When it begins. By default at once.
    #[serde(default)]
    pub start: Duration,
    /// By how much it may begin later, at random, each connection by itself. By default not at all: equal
    /// connections then do the same at the same instants.
    #[serde(default)]
    pub spread: Duration,
    /// The host that sends. By default as the topology has it; a graph has no default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The host that receives, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The nodes between them; both directions take this way. By default the way over the fewest links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Vec<String>>,
}

/// How one of several connections differs from `[transfer]`: the table `[connection.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Connection {
    /// As in `[transfer]`.
    #[serde(skip_serializing_if = "Option::is_none", with = "serde_words::amount::optional")]
    pub size: Option<Option<Bytes>>,
    /// As in `[transfer]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Duration>,
    /// As in `[transfer]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Duration>,
    /// As in `[transfer]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// As in `[transfer]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// As in `[transfer]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<Vec<String>>,
    /// Whether its source knows nothing of the scheme: it has no reaction. By default it knows.
    pub plain: bool,
    /// How TCP differs from what `[tcp]` and the hosts say, at both ends.
    #[serde(skip_serializing_if = "tcp::Override::is_none")]
    pub tcp: tcp::Override,
}

/// What is particular to one host: the table `[host.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Host {
    /// How TCP differs from what `[tcp]` says, in what this host sends and, of what it receives, in its window
    /// and its acknowledgements.
    #[serde(skip_serializing_if = "tcp::Override::is_none")]
    pub tcp: tcp::Override,
}

/// Datagrams that no one answers: the table `[traffic.NAME]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the keys from, to, packet_size and law")]
pub struct Traffic {
    /// The node that sends. Its packets wait before its links like any others.
    pub from: String,
    /// The node that counts them.
    pub to: String,
    /// The nodes between them. By default the way over the fewest links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Vec<String>>,
    /// Size of each packet, headers included.
    pub packet_size: Bytes,
    /// When it begins. By default at once.
    #[serde(default)]
    pub start: Duration,
    /// When it ends. By default never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// When packets leave.
    pub law: Law,
}

/// Someone who asks and is answered over TCP, one request after the other: the table `[application.NAME]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stated")]
pub struct Application {
    /// A usual kind of application, which gives the laws that are not stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<application::Kind>,
    /// The host that asks.
    pub from: String,
    /// The host that answers.
    pub to: String,
    /// The nodes between them; both directions take this way. By default the way over the fewest links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<Vec<String>>,
    /// The size of requests. Required, as the other laws are, unless there is a kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<application::Law<Bytes>>,
    /// The size of responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<application::Law<Bytes>>,
    /// How long the client thinks before its first request, and after each response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<application::Law<Duration>>,
    /// When it begins to think. By default at once.
    pub start: Duration,
    /// When it ends: what was asked before is still answered. By default never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// How many requests it makes; a run waits for their responses. By default any number, and no run waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
}

/// An application as a file states it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the keys from and to")]
struct Stated {
    kind: Option<application::Kind>,
    from: String,
    to: String,
    via: Option<Vec<String>>,
    request: Option<application::Law<Bytes>>,
    response: Option<application::Law<Bytes>>,
    think: Option<application::Law<Duration>>,
    #[serde(default)]
    start: Duration,
    stop: Option<Duration>,
    requests: Option<u64>,
}

/// The kind's laws are spelled out.
impl From<Stated> for Application {
    fn from(stated: Stated) -> Application {
        let Stated { kind, from, to, via, request, response, think, start, stop, requests } = stated;
        Application {
            kind,
            from,
            to,
            via,
            request: request.or(kind.map(application::Kind::request)),
            response: response.or(kind.map(application::Kind::response)),
            think: think.or(kind.map(application::Kind::think)),
            start,
            stop,
            requests,
        }
    }
}
