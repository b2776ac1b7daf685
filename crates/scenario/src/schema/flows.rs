//! The schema of flows: `[transfer]`, `[connection.NAME]`, `[traffic.NAME]` and `[application.NAME]`.

use lasthop_base::{Bytes, Duration};
use lasthop_proto::traffic::{Pattern, voip::Voip};
use lasthop_proto::{application, tcp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{json_schema, serde_words};

/// A bulk transfer: the settings of the only connection, or the defaults of several. Required unless the
/// scenario has traffic or applications; a run without connections ends at its limit, or when no event is
/// pending.
///
/// ```toml
/// [transfer]
/// size = "100 KB"
/// start = "1 s"
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with the key size")]
pub struct Transfer {
    /// Payload to send, or `"unlimited"`.
    #[serde(with = "serde_words::Amount")]
    pub size: Option<Bytes>,
    /// Start time.
    #[serde(default)]
    pub start: Duration,
    /// Random delay of the start, uniform up to this value and independent for each connection. Without it,
    /// equal connections are synchronised.
    #[serde(default)]
    pub spread: Duration,
    /// The sending node: by default `fixed`, `source`, `S1` or `server`; a graph has no default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The receiving node: by default `mobile`, `destination`, `D1` or `MH1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The nodes on the path, such as `["R1", "base2"]`, for both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Vec<String>>,
}

/// One of several connections, as overrides of `[transfer]`. Without such tables there is a single connection
/// called `transfer`. A dumbbell has one connection per pair and a cell one per station, called `1`, `2`,
/// ..., unless `[transfer]` has `from` or `to`. A table with one of these names overrides that connection. If
/// any table has another name, only the connections with tables exist.
///
/// A run finishes with the last finite connection and the last application with a number of requests.
///
/// ```toml
/// [topology.dumbbell]
/// pairs = 2
///
/// [connection.2]
/// start = "500 ms"
/// plain = true
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct ConnectionOverride {
    /// Payload to send, or `"unlimited"`.
    #[serde(skip_serializing_if = "Option::is_none", with = "serde_words::Stated::<serde_words::Amount>")]
    pub size: Option<Option<Bytes>>,
    /// Start time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Duration>,
    /// Random delay of the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Duration>,
    /// The sending node. In a dumbbell or a cell, by default that of the pair or station with the
    /// connection's name; required for other names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The receiving node. In a dumbbell or a cell, by default that of the pair or station with the
    /// connection's name; required for other names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The nodes on the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<Vec<String>>,
    /// Whether the source is plain TCP, which ignores the scheme's notices.
    pub plain: bool,
    /// The sender of this connection, named as the scenario's `sender`: TCP, or QUIC beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "json_schema::sender")]
    pub sender: Option<String>,
    /// TCP overrides of this connection: `[connection.NAME.tcp]`.
    #[serde(skip_serializing_if = "tcp::Override::is_none")]
    pub tcp: tcp::Override,
}

/// Overrides for one host. `NAME` is a node of the topology at the end of a connection.
///
/// ```toml
/// [host.mobile.tcp]
/// ack_every = 1
/// window = "64 KiB"
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Host {
    /// TCP overrides of this host: any key of `[tcp]`; a `profile` replaces all other settings. `window`,
    /// `window_counts`, `window_autotuning`, `ack_every`, `quick_acks`, `ack_delay`, `ack_tick`, `sack_blocks`
    /// and `dsack` apply to the host as a receiver, the others to it as a sender. A receiver's `packet_size`,
    /// `timestamps` and `ecn` also limit what its handshakes agree on. `[connection.NAME.tcp]` takes precedence.
    #[serde(skip_serializing_if = "tcp::Override::is_none")]
    pub tcp: tcp::Override,
}

/// Background traffic: datagrams without responses, from any node to any other, queued and lost like all
/// other packets. Each source has a random stream named after it, so another source does not change the
/// existing ones.
///
/// ```toml
/// [traffic.cross]
/// from = "R2"
/// to = "R3"
/// packet_size = "500 B"
/// law.poisson.rate = "400 kbps"
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table with the keys from and to, and packet_size and law, or voip"
)]
pub struct Traffic {
    /// The sending node.
    pub from: String,
    /// The receiving node, which counts arrivals.
    pub to: String,
    /// The nodes on the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Vec<String>>,
    /// Size of each packet, headers included: from 28 B to 65535 B. Not with `voip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_size: Option<Bytes>,
    /// Start time.
    #[serde(default)]
    pub start: Duration,
    /// Stop time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// The departure process: `constant`, `poisson` or `on-off`. Not with `voip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub law: Option<Pattern>,
    /// One direction of a telephone call, in place of `packet_size` and `law`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voip: Option<Voip>,
    /// Code point of the packets (DSCP), 0 to 63: 46 is expedited forwarding, which `[wifi]` sends as voice. By default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 63))]
    pub dscp: Option<u8>,
}

impl Traffic {
    /// Size of each packet, headers included; `None` if it is not stated.
    pub fn size(&self) -> Option<Bytes> {
        self.voip.as_ref().map(Voip::packet_size).or(self.packet_size)
    }
}

/// A request/response application over TCP: messages, web pages or a video. Client and server can be any two
/// nodes, fixed or mobile. The server responds immediately.
///
/// ```toml
/// [application.web]
/// kind = "page"
/// from = "laptop"
/// to = "server"
/// think.exponential = "10 s"
/// ```
///
/// An application has one connection, or several for pages. Each is a pair of TCP connections, one per
/// direction, opened with the first request and kept open. Schemes treat them like other connections: base
/// stations may split them, and sources react to notices. Nagle's algorithm is disabled at both ends, as in
/// interactive programs, and enabled at base stations that split the connections. The random stream is named
/// after the application: sizes and think time of request number k are the same in every scenario and with
/// every scheme. The scenario's `sender` serves all applications: over [QUIC](#quic), each has one connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Stated")]
#[schemars(!from, deny_unknown_fields)]
pub struct Application {
    /// Defaults of a typical application: `"http"`, `"database"`, `"email"`, `"ssh"`, `"telemetry"`, `"page"`
    /// or `"video"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<application::ApplicationKind>,
    /// The client.
    pub from: String,
    /// The server.
    pub to: String,
    /// The nodes on the path, from the client to the server, for both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<Vec<String>>,
    /// Distribution of request sizes. Optional with a `kind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<application::Distribution<Bytes>>,
    /// Distribution of response sizes, for messages only. Optional with a `kind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<application::Distribution<Bytes>>,
    /// Distribution of the think time before the first request and after each response; for pages, the
    /// reading time. Not for a video. Optional with a `kind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<application::Distribution<Duration>>,
    /// Whether the next message waits for the response. Otherwise `think` is the time between requests. For
    /// messages only; the default may depend on the `kind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<bool>,
    /// The contents of pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<application::Page>,
    /// The video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<application::Video>,
    /// Whether each TCP connection begins with a TLS 1.3 handshake: an exchange of 517 B and 4 KB (our choice)
    /// before the first request. The default is `true` for pages and videos. QUIC has it whatever this says.
    #[schemars(default)]
    pub tls: bool,
    /// Start of the first think time.
    #[schemars(default)]
    pub start: Duration,
    /// End of new requests. Pending requests and pages are completed, then the connections are closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// Number of requests or pages, after which the connections are closed. A run waits for them as for a
    /// finite transfer. A run waits for the whole length of a video.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
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
