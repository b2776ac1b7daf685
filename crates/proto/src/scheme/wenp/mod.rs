//! Wireless enhancement proxy: radio network feedback in the acknowledgements.
//!
//! **What it does.** The base station caches the headers of segments that enter the wireless side. A
//! duplicate ACK from the wireless side that requests a cached segment indicates a loss on the air, and gets
//! the feedback bit. No extra packets are sent. The source takes two such duplicates for a loss, where TCP
//! otherwise requires three, retransmits the segment and reduces its window to the fraction `alpha` instead
//! of a half. Other losses and all timeouts are handled as usual.
//! **Source.** Jayanathan and Sirisena, "Improving TCP Performance over 802.11 WLAN with Radio Network
//! Feedback", section V.
//! **Parameters.** `alpha`: fraction of the window that remains after a loss on the air, 0.75; from a half,
//! as for any other loss, to 1 (section V-B). `threshold`: number of marked duplicates that indicate such a
//! loss, 2; at most TCP's own threshold. `bit`: which control bit of the TCP header, counted from FIN as 0; 8
//! in the paper, next to CWR. This bit was NS (RFC 3540) and is now AE of accurate ECN (RFC 9768), which
//! recent kernels use; 9 to 11 are still reserved. `cache`: maximum number of cached segments per connection,
//! so that a connection with a large window does not displace others; 1024 segments of 1460 B are 1.5 MB,
//! where the paper's windows are 64 KiB. `connections`: maximum number of connections, 256. `idle`: idle time
//! after which a connection is removed; 120 s, twice the smallest upper bound of the RTO that RFC 6298
//! permits. `encrypted`: the base station cannot read TCP headers, as with IPsec, and forwards packets
//! unchanged.
//! **Differences from the paper.** The paper does not say how tables are cleaned up: see `agent.rs`; nor how
//! the source handles duplicates of which only some are marked, or several holes: see `reaction.rs`. It
//! modifies Reno; here every recovery that counts duplicates reacts as well, those with RACK by SACK reports. A control that
//! does not reduce its window for a loss, such as BBR, only retransmits earlier. Segments are cached before they enter the
//! link's queue, so a segment dropped by a full queue is taken for a loss on the air. Copies are not
//! distinguished: once one copy of a segment has passed, it counts as passed even if another was lost in the
//! wired network.

mod agent;
mod reaction;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Deployment, Installer, Scheme};
use crate::tcp::{Action, EcnMode, Flags, Settings};

/// The position of AE among the control bits (RFC 9768).
const ACCURATE_ECN: u8 = 8;

/// Radio network feedback.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Wenp {
    /// Share of the window that remains after a wireless loss, 0.5 to 1.
    pub alpha: f64,
    /// Number of duplicate ACKs with the feedback bit that indicate a wireless loss, 1 to `tcp.dupthresh`.
    pub threshold: u32,
    /// Position of the feedback bit among the control bits of the TCP header, counted from FIN (0): 8, next
    /// to CWR, as in the paper, now used by accurate ECN (RFC 9768); or 9 to 11, which are reserved.
    pub bit: u8,
    /// Maximum number of segments recorded per connection. Beyond it, the highest ones are omitted.
    pub cache: u32,
    /// Maximum number of connections recorded by a base station. A further one replaces the one idle for
    /// longest.
    pub connections: u32,
    /// Idle time after which a base station removes a connection.
    pub idle: Duration,
    /// Whether TCP headers are encrypted: base stations then forward all packets unmarked.
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
        "the base station marks duplicate ACKs of losses on the air; the source reduces its window less"
    }

    fn source(&self) -> &'static str {
        "Jayanathan and Sirisena section V"
    }

    fn deployment(&self) -> Option<Deployment> {
        Some(Deployment {
            place: "base station and sender",
            products: None,
            cost: "marks in TCP headers",
            variants: &[&[]],
        })
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
        check(between, "alpha", format!("found {alpha}, expected 0.5 (as for any other loss) to 1"));
        let own = tcp.dupthresh;
        let comes_first = format!("found {threshold}, expected 1 to {own}: tcp.dupthresh, without the bit");
        check((1..=own).contains(&threshold), "threshold", comes_first);
        let reserved = (8..=11).contains(&bit);
        check(
            reserved,
            "bit",
            format!("found {bit}, expected 8, next to CWR, to 11: the reserved bits of the header"),
        );
        let is_taken = bit == ACCURATE_ECN && tcp.ecn_mode() == EcnMode::Accurate;
        check(
            !is_taken,
            "bit",
            format!(
                "found {bit}, which accurate ECN uses; expected 9 to 11, or tcp.ecn = true, classic feedback"
            ),
        );
        check(cache > 0, "cache", wants_one());
        check(connections > 0, "connections", wants_one());
        check(!idle.is_zero(), "idle", String::from("found 0 s, expected more than zero"));
        faults
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.use_flags(self.flag());
        installer.at_base_station(|_| agent::Agent::new(self));
        installer.at_sender(&[Action::Judge, Action::Threshold], || reaction::Feedback::new(self));
    }
}
