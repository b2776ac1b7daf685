//! The two parts of a split connection: their settings and buffer, and what is counted of them.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::Port;
use lasthop_proto::tcp::{Reactions, ReceiverReactions, Settings, WindowCounts};
use std::net::SocketAddr;

use crate::config::{Config, Withholds};
use crate::endpoint::Endpoint;
use crate::secret::Secret;

/// User timeout of a part without one: 15 retransmissions of Linux (`tcp_retries2`).
const PATIENCE: Duration = Duration::from_secs(924);

/// Time for which a SYN-ACK is retransmitted: 5 retransmissions of Linux (`tcp_synack_retries`).
const ANSWER_TIMEOUT: Duration = Duration::from_secs(63);

/// The hosts of a connection, by the side of the proxy on which they are.
pub(crate) type Hosts = [SocketAddr; 2];

/// The index of a side.
pub(crate) fn index(side: Port) -> usize {
    side.side().index()
}

/// Makes the reactions of the endpoint on the wireless part.
pub type MakeReactions = Box<dyn Fn() -> (Reactions, ReceiverReactions) + Send>;

/// The two parts of every split connection.
#[allow(missing_debug_implementations)]
pub struct Parts {
    /// By side: wired, wireless.
    configs: [Config; 2],
    buffer: usize,
    reactions: Option<MakeReactions>,
    secret: Secret,
}

impl Parts {
    /// Parts with these settings of the wired and the wireless part. The base station holds at most `buffer` bytes
    /// of each direction of a connection: acknowledged to one host, but not by the other.
    ///
    /// # Panics
    /// If the settings are invalid, or for simulations only.
    pub fn new([wired, wireless]: [&Settings; 2], buffer: Bytes, secret: Secret) -> Parts {
        let size = usize::try_from(buffer.0).unwrap_or(usize::MAX);
        let configs = [wired, wireless].map(|settings| {
            let window = Bytes(u64::from(settings.window_payload())).min(buffer);
            let settings = Settings {
                window: window.into(),
                window_counts: WindowCounts::Payload,
                user_timeout: settings.user_timeout.or(Some(PATIENCE)),
                ..settings.clone()
            };
            // Window updates as in simulations: the window follows the buffer.
            let config = Config { settings, send_buffer: size, spares_updates: false, ..Config::default() };
            config.check();
            config
        });
        Parts { configs, buffer: size, reactions: None, secret }
    }

    /// Adds the reactions of schemes to the proxy's endpoints on the wireless part.
    pub fn with_reactions(self, reactions: MakeReactions) -> Parts {
        Parts { reactions: Some(reactions), ..self }
    }

    /// Acknowledges to one host only what the other has acknowledged, and the last byte to the mobile host `hold` later, or
    /// with a window of zero when its signal is lost ([`Split::holds`](lasthop_proto::split::Split::holds)).
    pub fn withholding(mut self, hold: Duration) -> Parts {
        for (side, config) in self.configs.iter_mut().enumerate() {
            config.withholds = Some(Withholds { hold, is_outward: side == index(Port::WIRED) });
        }
        self
    }

    /// Whether acknowledgements wait for the other host.
    pub(crate) fn withholds(&self) -> bool {
        self.configs.iter().any(|config| config.withholds.is_some())
    }

    pub(crate) fn buffer(&self) -> usize {
        self.buffer
    }

    /// The largest window offered to the host at side `side`.
    pub(crate) fn window(&self, side: usize) -> usize {
        self.configs[side].settings.window_payload() as usize
    }

    fn reacting(&self, side: usize, endpoint: Endpoint) -> Endpoint {
        match &self.reactions {
            Some(make) if side == index(Port::RADIO) => endpoint.with_reactions(make()),
            _ => endpoint,
        }
    }

    /// An endpoint that connects to the host at side `side`, with the address of the other host.
    pub(crate) fn connect(&self, now: Time, side: usize, hosts: &Hosts) -> Endpoint {
        let (config, secret) = (self.configs[side].clone(), self.secret.clone());
        self.reacting(side, Endpoint::connect(now, config, hosts[1 - side], hosts[side], secret))
    }

    /// An endpoint that will answer the SYN of the host at side `side`, with the address of the other host.
    pub(crate) fn listen(&self, side: usize, hosts: &Hosts) -> Endpoint {
        let config = Config { syn_timeout: ANSWER_TIMEOUT, ..self.configs[side].clone() };
        self.reacting(side, Endpoint::listen(config, hosts[1 - side], self.secret.clone()))
    }
}

/// The counters of a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyStats {
    /// Connections that were split: both hosts have opened them.
    pub connections: u64,
    /// Connections that the other host refused.
    pub refused: u64,
    /// Connections that one host has reset or lost, so that the other was reset.
    pub resets: u64,
    /// SYNs that were dropped because of the limits. The hosts retransmit them.
    pub dropped_syns: u64,
    /// Segments that belong to no split connection.
    pub foreign_segments: u64,
    /// Peak of the bytes held for one direction of a connection.
    pub held_bytes_peak: u64,
    /// Bytes acknowledged to one host of a connection that was reset before the other had acknowledged them.
    pub undelivered_bytes: u64,
}
