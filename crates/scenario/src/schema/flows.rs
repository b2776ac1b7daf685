//! The schema of flows: `[transfer]`, `[connection.NAME]`, `[traffic.NAME]` and `[application.NAME]`.

use lasthop_base::{Bytes, Duration};
use lasthop_proto::traffic::{Pattern, voip::Voip};
use lasthop_proto::{application, tcp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::serde_words;

/// A bulk transfer: the table `[transfer]`. It gives the defaults of all connections, and is the only
/// connection if there are no `[connection.NAME]` tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with the key size")]
pub struct Transfer {
    /// Payload; `None` if unlimited. Required.
    #[serde(with = "serde_words::Amount")]
    pub size: Option<Bytes>,
    /// Start time. By default 0.
    #[serde(default)]
    pub start: Duration,
    /// Upper bound of a random delay of each connection's start. By default zero: equal connections are then
    /// synchronised.
    #[serde(default)]
    pub spread: Duration,
    /// The sending host. By default given by the topology; a graph has no default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The receiving host. By default given by the topology; a graph has no default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Intermediate nodes, for both directions. By default the path with the fewest links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Vec<String>>,
}

/// Overrides of `[transfer]` for one of several connections: the table `[connection.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct ConnectionOverride {
    /// As in `[transfer]`.
    #[serde(skip_serializing_if = "Option::is_none", with = "serde_words::Stated::<serde_words::Amount>")]
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
    /// Whether the source has no reaction of the scheme. By default it has.
    pub plain: bool,
    /// Overrides of `[tcp]` and the hosts' settings, at both ends.
    #[serde(skip_serializing_if = "tcp::Override::is_none")]
    pub tcp: tcp::Override,
}

/// Settings of a single host: the table `[host.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Host {
    /// Overrides of `[tcp]` for what this host sends, and for its receive window and its acknowledgements.
    #[serde(skip_serializing_if = "tcp::Override::is_none")]
    pub tcp: tcp::Override,
}

/// Unresponsive datagrams: the table `[traffic.NAME]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table with the keys from and to, and packet_size and law, or voip"
)]
pub struct Traffic {
    /// The sending node. Its packets are queued before its links like all others.
    pub from: String,
    /// The receiving node.
    pub to: String,
    /// Intermediate nodes. By default the path with the fewest links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Vec<String>>,
    /// Size of each packet, headers included. Required, except with `voip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_size: Option<Bytes>,
    /// Start time. By default 0.
    #[serde(default)]
    pub start: Duration,
    /// Stop time. By default never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// Departure pattern. Required, except with `voip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub law: Option<Pattern>,
    /// One direction of a call, in place of `packet_size` and `law`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voip: Option<Voip>,
}

impl Traffic {
    /// Size of each packet, headers included; `None` if it is not stated.
    pub fn size(&self) -> Option<Bytes> {
        self.voip.as_ref().map(Voip::packet_size).or(self.packet_size)
    }
}

/// An application over TCP: messages one by one, pages or a video. The table `[application.NAME]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Stated")]
#[schemars(!from, deny_unknown_fields)]
pub struct Application {
    /// A typical application, which provides the keys that are not stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<application::ApplicationKind>,
    /// The client's host.
    pub from: String,
    /// The server's host.
    pub to: String,
    /// Intermediate nodes, for both directions. By default the path with the fewest links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<Vec<String>>,
    /// Distribution of request sizes. Like the other distributions, required unless `kind` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<application::Distribution<Bytes>>,
    /// Distribution of response sizes; of messages only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<application::Distribution<Bytes>>,
    /// Distribution of think times: before the first request or page, and after each response or page. Not of a
    /// video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<application::Distribution<Duration>>,
    /// Whether the next message waits for the response to the last; of messages only. By default that of the kind, else
    /// true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<bool>,
    /// The pages, if these are what the user reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<application::Page>,
    /// The video, if the user watches one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<application::Video>,
    /// Whether each connection begins with a TLS handshake. By default for pages and video only.
    #[schemars(default)]
    pub tls: bool,
    /// Start of the first think time. By default 0.
    #[schemars(default)]
    pub start: Duration,
    /// Time of the last request or page at the latest; pending ones are completed. By default never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// Number of requests, or of pages; a run waits for them. By default unlimited, and no run waits. Not of a video, which
    /// has a length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
}

/// An application as written in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the keys from and to")]
struct Stated {
    kind: Option<application::ApplicationKind>,
    from: String,
    to: String,
    via: Option<Vec<String>>,
    request: Option<application::Distribution<Bytes>>,
    response: Option<application::Distribution<Bytes>>,
    think: Option<application::Distribution<Duration>>,
    waits: Option<bool>,
    page: Option<application::Page>,
    video: Option<application::Video>,
    tls: Option<bool>,
    #[serde(default)]
    start: Duration,
    stop: Option<Duration>,
    requests: Option<u64>,
}

/// Fills in what the kind gives.
impl From<Stated> for Application {
    fn from(stated: Stated) -> Application {
        use application::ApplicationKind;
        let Stated { kind, from, to, via, request, response, think, waits, page, video, .. } = stated;
        let Stated { tls, start, stop, requests, .. } = stated;
        let page = page.or_else(|| (kind == Some(ApplicationKind::Page)).then(Default::default));
        let video = video.or_else(|| (kind == Some(ApplicationKind::Video)).then(Default::default));
        let is_web = page.is_some() || video.is_some();
        Application {
            kind,
            from,
            to,
            via,
            request: request.or(kind.map(ApplicationKind::request)),
            response: response.or(kind.and_then(ApplicationKind::response)),
            think: think.or(kind.and_then(ApplicationKind::think)),
            waits: waits.or((!is_web).then(|| kind.is_none_or(ApplicationKind::waits))),
            page,
            video,
            tls: tls.unwrap_or(is_web),
            start,
            stop,
            requests,
        }
    }
}
