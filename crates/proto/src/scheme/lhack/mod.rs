//! Last-hop acknowledgements, to distinguish congestion from corruption.
//!
//! **What it does.** The base station acknowledges each data message that it is about to send over the air to
//! the source in the wired network (lhack), and each that it receives over the air to the mobile source
//! (fhack). It keeps no state. A missing message for which an lhack arrived was lost on the last hop: the
//! source retransmits it without reducing its window. A mobile source retransmits a message whose fhack is missing.
//! **Source.** Cobb and Agrawal, "Congestion or Corruption? A Strategy for Efficient Wireless TCP
//! Sessions", sections 4 and 6.
//! **Parameters.** `size`: size of an lhack or fhack as an IP packet; 40 B (section 4). `last_hop`,
//! `first_hop`: which of the two the base station sends; by default both, so either end may be mobile.
//! `detection`: how a mobile source notices that an fhack is missing: `"fhacks"`, as soon as one for a later message
//! arrives; or `"duplicates"`, when duplicate ACKs or the timer reveal a loss, which the missing fhack then classifies.
//! **Differences from the paper.** The paper numbers messages; here they are segments, and a hop
//! acknowledgement identifies one by its first sequence number, as ICMP would. Copies of a message are
//! therefore indistinguishable: an lhack for an earlier copy counts for the last one. The paper keeps one bit per
//! message; here it is cleared when the message is sent again, so that a copy may be lost by congestion. The paper
//! does not say how a source detects a missing fhack (`detection`). A mobile source that has moved cannot tell the cause of its
//! losses, "so a slow-start must be performed to the current window size" (section 6); here a missing fhack means
//! corruption, and the window stays unless the timer expires. The paper covers TCP Reno only. Tahoe, which has no fast
//! recovery, and SACK, which tracks delivered segments itself, classify losses in the same way; their windows
//! are not extended. The paper also does not say who acknowledges a message that the base station has no room
//! for: here the queue belongs to the link, behind the agent, so a message dropped by a full queue has
//! already been acknowledged and is taken for corrupted.

mod agent;
mod reaction;

use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Installer, Scheme};
use crate::packet::{Notice, NoticeCode};
use crate::tcp::{Action, Settings};

/// "Reached the last hop": an ICMP message of the type for experimental mobility protocols (RFC 4065).
const LAST_HOP: NoticeCode = NoticeCode { kind: 41, code: 1 };

/// "Passed the first hop": an ICMP message of the same type.
const FIRST_HOP: NoticeCode = NoticeCode { kind: 41, code: 2 };

/// Acknowledgements for single hops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Lhack {
    /// Size of a hop acknowledgement as an IP packet.
    pub size: Bytes,
    /// Acknowledge packets from the fixed network before their transmission on the air.
    pub last_hop: bool,
    /// Acknowledge packets received over the air.
    pub first_hop: bool,
    /// How a mobile source notices that the acknowledgement of its first hop is missing: `"fhacks"`, as soon as
    /// one for a later message arrives; or `"duplicates"`, when duplicate ACKs or the timer reveal a loss.
    pub detection: FirstHopDetection,
}

/// How a mobile source notices a loss on its first hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FirstHopDetection {
    /// By the acknowledgement of the first hop for a later message.
    #[default]
    Fhacks,
    /// By duplicate ACKs or the timer.
    Duplicates,
}

impl Default for Lhack {
    fn default() -> Lhack {
        Lhack { size: Bytes(40), last_hop: true, first_hop: true, detection: FirstHopDetection::default() }
    }
}

impl Scheme for Lhack {
    fn name(&self) -> &'static str {
        "lhack"
    }

    fn summary(&self) -> &'static str {
        "the base station acknowledges packets; the source distinguishes congestion from corruption"
    }

    fn source(&self) -> &'static str {
        "Cobb and Agrawal section 4"
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        Notice::fault("size", self.size).into_iter().collect()
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        if self.last_hop {
            installer.presumes_room();
        }
        installer.at_base_station(|_| agent::Agent::new(self));
        installer.at_sender(&[Action::Judge, Action::Threshold, Action::Resend], || {
            reaction::LossClassifier::new(self.detection)
        });
    }
}
