//! A split connection without congestion control on the wireless part.
//!
//! **What it does.** As I-TCP, but nothing can be congested on the last hop: there, the mobile host's window
//! alone limits what is under way, and a loss is only repaired. The hop delivers in order, so that one arrival
//! shows which of those sent before it are lost.
//! **Source.** Wang and Tripathi, "Mobile-End Transport Protocol: An Alternative to TCP/IP over Wireless Links",
//! INFOCOM 1998; "nocon" in Park, Park and Park, "Enhancing TCP Performance over Wireless Network with Variable
//! Segment Size", section V-A.
//! **Parameters.** `recovery`: `"go-back-n"`, everything from the loss on is sent again, or
//! `"selective-repeat"`. `buffer` and `wireless` as those of `i-tcp`; `flavour` and `congestion` of the wireless
//! part are the scheme's.
//! **Where we differ from the paper.** METP itself has a smaller header than TCP and IP, and leaves losses to
//! the link; here it repairs them itself and has TCP's header, as the VS-TCP paper simulates it. That paper
//! does not say how a loss is repaired; its best segment sizes (table 4) take a loss that costs several packets.
//! The timestamps by which copies are told apart cost 12 B of header, and by ns-2's rules nothing.

use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::Bytes;
use serde::{Deserialize, Serialize};

use super::{LinkUse, Scheme};
use crate::split::{Recovery, Split};
use crate::tcp::{Changes, Settings};

/// A split connection without congestion control on the wireless part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metp {
    /// How losses on the wireless part are repaired.
    pub recovery: Recovery,
    /// Most bytes that the base station holds of a connection.
    pub buffer: Bytes,
    /// How TCP on the wireless part differs, beside this.
    pub wireless: Changes,
}

impl Default for Metp {
    fn default() -> Metp {
        Metp { recovery: Recovery::default(), buffer: Bytes(65_536), wireless: Changes::default() }
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

    fn link(&self) -> LinkUse {
        LinkUse::BARE
    }

    fn split(&self, tcp: &Settings) -> Option<Split> {
        Some(self.recovery.alone(Split::new(&self.wireless, tcp, self.buffer)))
    }

    fn faults(&self, tcp: &Settings) -> Vec<(String, String)> {
        self.recovery.faults(self.split(tcp), &self.wireless)
    }
}
