//! A split connection without congestion control on the wireless part.
//!
//! **What it does.** Like I-TCP, but the last hop cannot be congested: there, only the mobile host's window
//! limits the data in flight, and losses are repaired without reducing anything. The hop delivers in order,
//! so the arrival of a segment shows which earlier segments are lost.
//! **Source.** Wang and Tripathi, "Mobile-End Transport Protocol: An Alternative to TCP/IP over Wireless Links",
//! INFOCOM 1998; "nocon" in Park, Park and Park, "Enhancing TCP Performance over Wireless Network with Variable
//! Segment Size", section V-A.
//! **Parameters.** `recovery`: `"go-back-n"` retransmits everything from the loss on, `"selective-repeat"`
//! only what is lost. `buffer`, `wireless` and `handoff` as in `i-tcp`; `flavour` and `congestion` of the wireless part
//! are set by the scheme.
//! **Differences from the paper.** METP itself has a smaller header than TCP/IP and leaves loss recovery to
//! the link. Here it recovers losses itself and uses the TCP header, as simulated in the VS-TCP paper. That
//! paper does not specify the recovery; its best segment sizes (table 4) imply that a loss costs several
//! packets. The timestamps that distinguish copies take 12 B of header, and nothing under ns-2's rules.

use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Installer, Scheme};
use crate::split::{LossRecovery, Split, StateTransfer};
use crate::tcp::{Changes, Settings};

/// A split connection without congestion control on the wireless part.
///
/// As `i-tcp`, without congestion control on the wireless part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Metp {
    /// Loss recovery on the wireless part: `"go-back-n"` retransmits everything from the loss on,
    /// `"selective-repeat"` only lost segments.
    pub recovery: LossRecovery,
    /// Buffer of the base station per connection: bytes acknowledged to one side and not yet by the other.
    pub buffer: Bytes,
    /// TCP overrides for the wireless part, except `flavour` and `congestion`, which the scheme sets.
    pub wireless: Changes,
    /// How the connections move with a moving host.
    pub handoff: StateTransfer,
}

impl Default for Metp {
    fn default() -> Metp {
        Metp {
            recovery: LossRecovery::default(),
            buffer: Bytes(65_536),
            wireless: Changes::default(),
            handoff: StateTransfer::default(),
        }
    }
}

impl Metp {
    fn split(&self, tcp: &Settings) -> Split {
        let split = Split::new(&self.wireless, tcp, self.buffer, self.handoff);
        self.recovery.without_congestion_control(split)
    }
}

impl Scheme for Metp {
    fn name(&self) -> &'static str {
        "metp"
    }

    fn summary(&self) -> &'static str {
        "the base station splits the connection; no congestion control on the last hop"
    }

    fn source(&self) -> &'static str {
        "Wang and Tripathi 1998"
    }

    fn with_real_hosts(&self) -> Option<[&'static str; 3]> {
        Some(["recovery", "selective-repeat", "RACK stands in"])
    }

    fn faults(&self, tcp: &Settings) -> Vec<(String, String)> {
        self.recovery.faults(&self.split(tcp), &self.wireless)
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.split(|tcp| self.split(tcp));
    }
}
