//! Indirect TCP: a split connection with standard TCP on both parts.
//!
//! **What it does.** The base station terminates the connection of the source and opens another to the mobile
//! host. Both use standard TCP: losses on the wireless link are recovered by the base station, and the source
//! does not see them.
//! **Source.** Bakre and Badrinath, "I-TCP: Indirect TCP for Mobile Hosts", ICDCS 1995; "two" in Park, Park and
//! Park, "Enhancing TCP Performance over Wireless Network with Variable Segment Size", section V-A.
//! **Parameters.** `buffer`: capacity of the base station per connection; 64 KiB, the largest window without
//! scaling, so that the wired part can use a full window. `wireless`: differences of TCP on the wireless part
//! from `[tcp]`, with the same keys. By default none, except a `user_timeout` of 100 s if `[tcp]` has none,
//! so that data for an unreachable mobile host are not held forever. `handoff`: the time in which the connections move
//! to the next base station of a moving host: `setup` for each hand-off, 265 ms, and the buffered data at `rate`, 225
//! kb/s. These are the measurements of the authors (Mobile and Location-Independent Computing, 1995): 265 ms with empty
//! buffers, 1430 ms with 32 KB.
//! **Hand-offs.** The state of the connections, buffered data included, moves to the next base station when the mobile
//! host is attached there. Meanwhile the connections stand still, and packets wait for them. Packets that reach the old
//! base station later are lost, and their source retransmits them.
//! **Differences from the paper.** Of the hand-off only the times and the transfer of the state are known to us: that
//! packets wait is our reading. The state takes no bandwidth of the wired network, and is never lost. The sources do not
//! give a buffer size.

use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Deployment, Installer, Products, Scheme};
use crate::split::{Split, StateTransfer};
use crate::tcp::{Changes, Settings};

/// Indirect TCP.
///
/// The base station splits connections: it terminates the source's connection and relays the data over a
/// second one, as do `metp` and `vs-tcp`. Finite connections require `close = true` in `[tcp]`, so that the
/// base station detects their end. If the base station aborts, acknowledged data are lost;
/// `acknowledged_undelivered_bytes` in metrics counts them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ITcp {
    /// Buffer of the base station per connection: bytes acknowledged to one side and not yet by the other.
    pub buffer: Bytes,
    /// TCP overrides for the wireless part.
    pub wireless: Changes,
    /// How the connections move with a moving host.
    pub handoff: StateTransfer,
}

impl Default for ITcp {
    fn default() -> ITcp {
        let (wireless, handoff) = (Changes::default(), StateTransfer::default());
        ITcp { buffer: Bytes(65_536), wireless, handoff }
    }
}

impl ITcp {
    fn split(&self, tcp: &Settings) -> Split {
        Split::new(&self.wireless, tcp, self.buffer, self.handoff)
    }
}

impl Scheme for ITcp {
    fn name(&self) -> &'static str {
        "i-tcp"
    }

    fn summary(&self) -> &'static str {
        "the base station splits the connection; standard TCP on both parts"
    }

    fn source(&self) -> &'static str {
        "Bakre and Badrinath 1995"
    }

    fn deployment(&self) -> Option<Deployment> {
        Some(Deployment {
            place: "base station",
            products: Some(Products {
                names: "lasthop gateway; other splitting proxies, such as pepsal",
                owner: "a Linux box before the last hop that both directions pass: yours if you run the base station or the \
                        access router, else the operator's and not yours to change",
                commands: &[
                    "cat > gateway.toml <<'END'",
                    "[gateway]",
                    "radio = [\"RADIO\"]",
                    "unhelped = \"10%\"",
                    "",
                    "[scheme.i-tcp]",
                    "buffer = \"{buffer}\"",
                    "",
                    "[scheme.i-tcp.wireless]",
                    "congestion = \"{congestion}\"",
                    "END",
                    "lasthop gateway check gateway.toml",
                    "lasthop gateway run gateway.toml",
                ],
                note: "RADIO is the interface that faces the last hop; `lasthop gateway report` then shows what it gains over \
                       the tenth of the flows that it leaves alone",
            }),
            cost: "acknowledges data that the receiver does not have yet; both directions must pass it",
            variants: &[&[("buffer", "1 MiB")], &[("buffer", "1 MiB"), ("wireless.congestion", "bbr")]],
        })
    }

    fn faults(&self, tcp: &Settings) -> Vec<(String, String)> {
        self.split(tcp).faults()
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.split(|tcp| self.split(tcp));
    }
}
