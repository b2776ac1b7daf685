//! Wireless enhancement proxy: radio network feedback in the acknowledgements.
//!
//! **What it does.** The base station notes which segments enter the wireless side: their headers, no payload.
//! A duplicate acknowledgement that comes back from there and asks for one of them tells of a loss on the air,
//! and gets the feedback bit. Nothing is sent beside. The source takes two such duplicates for a loss, where
//! others have to be three, sends the segment again and cuts its window to a part `alpha` instead of a half.
//! Everything else is standard: other losses, and all timeouts.
//! **Source.** Jayanathan and Sirisena, "Improving TCP Performance over 802.11 WLAN with Radio Network
//! Feedback", section V.
//! **Parameters.** `alpha`: what a loss on the air leaves of the window in use, 0.75; between a half, as any
//! other loss, and 1 (section V-B). `threshold`: duplicates with the bit that mean such a loss, 2; no more than
//! TCP wants without. `bit`: which control bit of the TCP header it is, from FIN, which is 0; 8 is the paper's,
//! next to CWR. This was NS (RFC 3540) and is AE of accurate ECN now (RFC 9768), which newer kernels use; 9 to
//! 11 are still reserved. `cache`: most segments that are noted of a connection. A bound on each, so that one
//! with a large window takes nothing from others; 1024 segments of 1460 B are 1.5 MB, where the paper's windows
//! are of 64 KiB. `connections`: most connections that are noted, 256. `idle`: a connection of which nothing
//! passed for so long is forgotten; 120 s, twice what RFC 6298 lets a sender bound its timeout by. `encrypted`:
//! the base station cannot read headers of TCP, as with IPsec, and passes everything as it is.
//! **Where we differ from the paper.** It does not say how tables are cleaned: see `agent.rs`; nor what the
//! source makes of duplicates of which only some bear the bit, or of several holes: see `reaction.rs`. It
//! modifies Reno; here Tahoe, NewReno and SACK react as well. What is noted has yet to pass the link's queue,
//! which is behind the agent, so that a segment which finds it full passes for lost on the air. And copies are
//! not told apart: a segment of which one copy came through counts as passed, wherever another was lost.

mod agent;
mod reaction;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::Duration;
use serde::{Deserialize, Serialize};

use super::{LinkUse, Scheme};
use crate::component::Component;
use crate::tcp::{Flags, Reaction, Settings};

/// Radio network feedback.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Wenp {
    /// What a loss on the air leaves of the window in use, 0.5 to 1.
    pub alpha: f64,
    /// Duplicates with the bit that mean a loss on the air.
    pub threshold: u32,
    /// Place of the feedback bit among the control bits of the TCP header: 8, next to CWR, to 11.
    pub bit: u8,
    /// Most segments that the base station notes of a connection.
    pub cache: u32,
    /// Most connections that it notes.
    pub connections: u32,
    /// How long a connection may be silent before it is forgotten.
    pub idle: Duration,
    /// Headers of TCP are unreadable to the base station.
    pub encrypted: bool,
}

impl Default for Wenp {
    fn default() -> Wenp {
        Wenp {
            alpha: 0.75,
            threshold: 2,
            bit: 8,
            cache: 1024,
            connections: 256,
            idle: Duration::from_secs(120),
            encrypted: false,
        }
    }
}

impl Wenp {
    fn flag(&self) -> Flags {
        Flags(1 << self.bit)
    }
}

impl Scheme for Wenp {
    fn name(&self) -> &'static str {
        "wenp"
    }

    fn summary(&self) -> &'static str {
        "the base station marks duplicate acks of losses on the air; the source cuts its window less"
    }

    fn source(&self) -> &'static str {
        "Jayanathan and Sirisena section V"
    }

    fn link(&self) -> LinkUse {
        LinkUse::BARE
    }

    fn faults(&self, tcp: &Settings) -> Vec<(String, String)> {
        let mut faults = Vec::new();
        let mut check = |holds: bool, key: &str, problem: String| {
            if !holds {
                faults.push((String::from(key), problem));
            }
        };
        let Wenp { alpha, threshold, bit, cache, connections, idle, .. } = *self;
        let wants_one = || String::from("found 0, expected at least 1");
        let between = (0.5..=1.0).contains(&alpha);
        check(between, "alpha", format!("found {alpha}, expected 0.5, as for any loss, to 1"));
        let own = tcp.dupthresh;
        let comes_first = format!("found {threshold}, expected 1 to {own}: tcp.dupthresh, without the bit");
        check((1..=own).contains(&threshold), "threshold", comes_first);
        let reserved = (8..=11).contains(&bit);
        check(reserved, "bit", format!("found {bit}, expected 8, next to CWR, to 11: the reserved bits of the header"));
        check(cache > 0, "cache", wants_one());
        check(connections > 0, "connections", wants_one());
        check(!idle.is_zero(), "idle", String::from("found 0 s, expected more"));
        faults
    }

    fn agent(&self) -> Option<Box<dyn Component>> {
        Some(Box::new(agent::Agent::new(self)))
    }

    fn reaction(&self) -> Option<Box<dyn Reaction>> {
        Some(Box::new(reaction::Feedback::new(self)))
    }
}
