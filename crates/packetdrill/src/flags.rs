//! Settings from `--so_flags`.

use std::net::IpAddr;

use lasthop_base::Duration;
use lasthop_endpoint::Config;
use lasthop_proto::tcp::{Override, Profile};
use serde::Deserialize;

/// Settings of the host, as JSON in `--so_flags`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Flags {
    /// TCP settings, with the keys of `[tcp]` in scenario files; the default profile is `linux`.
    pub tcp: Override,
    /// Whether to offer window scaling.
    pub window_scaling: bool,
    /// Address of the host, as in packetdrill's `--local_ip`.
    pub local: IpAddr,
    /// How long SYN and SYN-ACK are retransmitted.
    pub syn_timeout: Option<Duration>,
    /// Size of the send buffers in bytes.
    pub send_buffer: Option<usize>,
}

impl Default for Flags {
    fn default() -> Flags {
        Flags {
            tcp: Override::default(),
            window_scaling: true,
            local: [192, 168, 0, 1].into(),
            syn_timeout: None,
            send_buffer: None,
        }
    }
}

impl Flags {
    /// Parses the argument of `--so_flags`; an empty text gives the defaults.
    ///
    /// # Errors
    /// If it is no JSON, or has unknown keys or invalid values.
    pub fn parse(text: &str) -> Result<Flags, serde_json::Error> {
        if text.trim().is_empty() { Ok(Flags::default()) } else { serde_json::from_str(text) }
    }

    /// The settings of endpoints.
    pub(crate) fn config(&self) -> Config {
        let usual = Config::default();
        Config {
            settings: self.tcp.of(&usual.settings),
            window_scaling: self.window_scaling,
            syn_timeout: self.syn_timeout.unwrap_or(usual.syn_timeout),
            send_buffer: self.send_buffer.unwrap_or(usual.send_buffer),
            ..usual
        }
    }

    /// What is wrong with the settings of TCP.
    pub(crate) fn faults(&self) -> Vec<String> {
        let settings = self.config().settings;
        let faults = settings.faults().into_iter().map(|(key, fault)| format!("tcp.{key}: {fault}"));
        let is_simulated = settings.profile == Profile::Ns2 || settings.profile == Profile::Ebsn;
        faults.chain(is_simulated.then(|| "the profile is for simulations".to_owned())).collect()
    }
}
