//! The settings of an endpoint.

use lasthop_base::Duration;
use lasthop_proto::tcp::{Flavour, Profile, Rules, Settings};

/// The settings of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Congestion control, recovery, timers and acknowledgements. `packet_size` is the MTU, `window` the
    /// receive buffer; `ecn`, `timestamps` and a flavour that uses SACK are offered to the peer, and used if
    /// it agrees. `iss`, `header`, `handshake` and `close` have no effect.
    pub settings: Settings,
    /// Whether to offer window scaling (RFC 7323 section 2). Without it, windows are limited to 65,535 bytes.
    pub window_scaling: bool,
    /// Send buffer in bytes: limit of bytes written and not acknowledged.
    pub send_buffer: usize,
    /// Whether Nagle's algorithm holds back short segments (RFC 9293 section 3.7.4).
    pub nagle: bool,
    /// Whether window updates are sent sparingly, like Linux: only if the window has doubled since the last one.
    pub spares_updates: bool,
    /// Whether acknowledgements wait until the bytes are [released](crate::Endpoint::release).
    pub withholds: Option<Withholds>,
    /// Keep-alive probes of an idle connection; off by default (RFC 9293 section 3.8.4).
    pub keep_alive: Option<KeepAlive>,
    /// Time for which a SYN is retransmitted before the connection fails; at least 3 minutes in RFC 9293
    /// section 3.8.3.
    pub syn_timeout: Duration,
    /// Length of TIME-WAIT: 2 MSL (RFC 9293 section 3.4.2), 60 s in Linux.
    pub time_wait: Duration,
    /// Limit of FIN-WAIT-2 once the application no longer reads; 60 s in Linux.
    pub fin_wait: Duration,
}

/// Acknowledgements that wait for another host, as in M-TCP ([`Split::holds`](lasthop_proto::split::Split::holds)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Withholds {
    /// How long the acknowledgement of the last byte waits for the next bytes, if they go to a mobile host.
    pub hold: Duration,
    /// Whether the bytes received go to a mobile host.
    pub is_outward: bool,
}

/// Keep-alive probes of an idle connection (RFC 9293 section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Silence of the peer before the first probe. Default 2 hours, the minimum of RFC 9293.
    pub idle: Duration,
    /// Time between two probes.
    pub interval: Duration,
    /// Number of unanswered probes after which the connection is aborted.
    pub probes: u32,
}

/// The defaults of Linux.
impl Default for KeepAlive {
    fn default() -> KeepAlive {
        KeepAlive { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 }
    }
}

/// The profile `linux`, with a user timeout of 924 s: 15 retransmissions (`tcp_retries2`).
impl Default for Config {
    fn default() -> Config {
        Config {
            settings: Settings { user_timeout: Some(Duration::from_secs(924)), ..Profile::Linux.settings() },
            window_scaling: true,
            send_buffer: 4 << 20,
            nagle: true,
            spares_updates: true,
            withholds: None,
            keep_alive: None,
            syn_timeout: Duration::from_secs(180),
            time_wait: Duration::from_secs(60),
            fin_wait: Duration::from_secs(60),
        }
    }
}

impl Config {
    /// Checks the settings.
    ///
    /// # Panics If they are invalid or for simulations only: the rules of ns-2, or a flavour that needs an
    /// echo for each segment.
    pub(crate) fn check(&self) {
        let faults = self.settings.faults();
        assert!(faults.is_empty(), "invalid settings: {faults:?}");
        let needs_echoes = matches!(self.settings.flavour, Flavour::GoBackN | Flavour::SelectiveRepeat);
        assert!(
            !needs_echoes,
            "the flavour needs an echo for each segment, which other TCP stacks do not send"
        );
        assert!(self.settings.rules == Rules::Rfc, "the rules of ns-2 are for simulations");
    }
}
