//! WTCP of Ratnam and Matta: local recovery at the base station, with its delay hidden by timestamps.
//!
//! **What it does.** The base station buffers segments for the mobile host and sends them in sequence, within
//! the window of the mobile host. On duplicate ACKs, it retransmits the missing segment immediately and
//! suppresses the duplicates. After a timeout, a sign of a burst of losses, it sends a single segment until
//! an acknowledgement shows that the last hop works again. Only acknowledgements from the mobile host reach
//! the source. At each transmission, the base station adds the time in the buffer to the segment's timestamp.
//! The mobile host echoes it, so the round-trip time measured by the source does not include local recovery,
//! which would inflate the RTO and delay the response to congestion. Without timestamps, losses are repaired
//! but no time is hidden.
//! **Source.** Ratnam and Matta, "WTCP: An Efficient Mechanism for Improving TCP Performance over Wireless
//! Links", ISCC 1998.
//! **Parameters.** `hide`: whether timestamps hide the time in the buffer; on. Off isolates the effect of
//! local recovery. `min_timeout`: lower bound of the timeout, which is twice the smoothed round-trip time of
//! the last hop and doubles with each consecutive timeout; 100 ms. `initial`: timeout before the first
//! measurement, 500 ms. `attempts`: consecutive timeouts after which the base station stops repairing the
//! connection; 10. `buffer`: segments per connection, 1024; at a full buffer the latest data are dropped.
//! `connections`: maximum connections with a buffer, 256; further ones are forwarded unchanged.
//! **Differences from the paper.** Only its abstract and summaries were available: timeouts, number of
//! attempts and buffer size are ours. The first duplicate ACK indicates a loss, since the last hop delivers
//! in order. SACK blocks are removed from acknowledgements while the base station repairs a gap. At a
//! hand-off the buffer is not transferred. Timestamps towards the mobile host never decrease, so their echo
//! may hide less than the time in the buffer.

mod agent;
mod connection;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Installer, Scheme};
use crate::tcp::{Flavour, Settings};
use agent::Agent;

/// Local recovery with its delay hidden by timestamps.
///
/// Hides delays only with `timestamps = true` in `[tcp]`; with a split connection, in its table `wireless`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WtcpTimestamps {
    /// Whether timestamps hide the time in the buffer.
    pub hide: bool,
    /// Lower bound of the local retransmission timeout, which is twice the smoothed round-trip time of the
    /// last hop and doubles with each consecutive timeout.
    pub min_timeout: Duration,
    /// Timeout before the first measurement.
    pub initial: Duration,
    /// Consecutive timeouts after which the base station stops repairing a connection.
    pub attempts: u32,
    /// Buffer capacity per connection, in segments. At a full buffer the segment with the latest data is dropped.
    pub buffer: u32,
    /// Maximum number of connections with a buffer. Packets of further connections are forwarded unchanged.
    pub connections: u32,
}

impl Default for WtcpTimestamps {
    fn default() -> WtcpTimestamps {
        let ms = Duration::from_millis;
        WtcpTimestamps {
            hide: true,
            min_timeout: ms(100),
            initial: ms(500),
            attempts: 10,
            buffer: 1024,
            connections: 256,
        }
    }
}

impl Scheme for WtcpTimestamps {
    fn name(&self) -> &'static str {
        "wtcp-timestamps"
    }

    fn summary(&self) -> &'static str {
        "the base station retransmits locally, and hides the time that it takes in the timestamps"
    }

    fn source(&self) -> &'static str {
        "Ratnam and Matta 1998"
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        let none = |key: &str, is_zero: bool, zero: &str| {
            is_zero.then(|| (String::from(key), format!("found {zero}, expected more")))
        };
        let WtcpTimestamps { min_timeout, initial, attempts, buffer, connections, .. } = self;
        let faults = [
            none("min_timeout", min_timeout.is_zero(), "0 s"),
            none("initial", initial.is_zero(), "0 s"),
            none("attempts", *attempts == 0, "0"),
            none("buffer", *buffer == 0, "0"),
            none("connections", *connections == 0, "0"),
        ];
        faults.into_iter().flatten().collect()
    }

    fn mismatch(&self, tcp: &Settings) -> Option<String> {
        let problem = "changes timestamps, which tell copies apart with this flavour; set another flavour";
        matches!(tcp.flavour, Flavour::GoBackN | Flavour::SelectiveRepeat).then(|| String::from(problem))
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.at_base_station(|site| Agent::new(self, site));
    }
}
