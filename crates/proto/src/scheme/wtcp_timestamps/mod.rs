//! WTCP of Ratnam and Matta: a base station that hides the time of its local recovery in the timestamps.
//!
//! **What it does.** The base station buffers segments for the mobile host, and sends them in sequence as far as the window of
//! the mobile host permits. A segment that duplicate ACKs show to be lost is retransmitted at once, and the duplicates are suppressed. After
//! a timeout, which indicates a burst of losses, only one segment is sent, until an acknowledgement shows that the
//! last hop works again. An acknowledgement reaches the source only if it comes from the mobile host. At each
//! transmission, the base station moves the timestamp of the segment by the time that it has spent in the buffer: the
//! mobile host echoes it, and the round-trip time that the source measures does not contain that time. A source whose
//! timer follows local recovery would be slow to notice congestion. Without timestamps, losses are repaired, and nothing is hidden.
//! **Source.** Ratnam and Matta, "WTCP: An Efficient Mechanism for Improving TCP Performance over Wireless Links", ISCC 1998.
//! **Parameters.** `hide`: whether timestamps hide the time in the buffer, to see what that adds; on. `min_timeout`: lower bound of the timeout, which is twice the smoothed round-trip time of the last hop, and
//! doubles with each in a row; 100 ms. `initial`: the timeout before the first measurement, 500 ms. `attempts`: number of
//! timeouts in a row after which the base station leaves the connection to its source; 10. `buffer`: segments for each connection,
//! 1024; what arrives at a full buffer is dropped. `connections`: connections with a buffer; further ones are forwarded as they are; 256.
//! **Differences from the paper.** Only its abstract and summaries were at hand: timeouts, the number of attempts and the buffer are ours. A
//! first duplicate ACK is taken as a sign of loss, as the last hop delivers in order. SACK blocks are removed from acknowledgements
//! while the base station repairs a gap. At a hand-off the buffer is not transferred. Timestamps never decrease towards the mobile
//! host, so that their echo may hide less than the time in the buffer.

mod agent;
mod connection;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::Duration;
use serde::{Deserialize, Serialize};

use super::{Installer, Scheme};
use crate::tcp::{Flavour, Settings};
use agent::Agent;

/// Local recovery that timestamps hide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WtcpTimestamps {
    /// Whether timestamps hide the time in the buffer.
    pub hide: bool,
    /// Lower bound of the timeout.
    pub min_timeout: Duration,
    /// The timeout before the first measurement.
    pub initial: Duration,
    /// Number of timeouts in a row after which a connection is left to its source.
    pub attempts: u32,
    /// Capacity of the buffer per connection, in segments.
    pub buffer: u32,
    /// Maximum number of connections with a buffer.
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
