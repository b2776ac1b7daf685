//! Last-hop acknowledgements: congestion or corruption?
//!
//! **What it does.** The base station acknowledges each message with data that it is about to send over
//! the air to the source in the fixed network (lhack), and each that it receives over the air to the
//! mobile source (fhack). It keeps nothing. What is missing although an lhack came for it was lost on the
//! last hop: the source resends it and leaves its window as it is. A mobile source sends a message again
//! as soon as an fhack for a later one shows that it has none.
//! **Source.** Cobb and Agrawal, "Congestion or Corruption? A Strategy for Efficient Wireless TCP
//! Sessions", sections 4 and 6.
//! **Parameters.** `size`: size of an lhack or fhack as an IP packet; 40 B (section 4). `last_hop`,
//! `first_hop`: which of the two the base station sends; both, so that either end may be mobile.
//! **Where we differ from the paper.** It takes messages to have numbers; here they are segments, and an
//! acknowledgement of a hop names one by its first sequence number, as ICMP would. So copies of a message
//! cannot be told apart: an lhack for an earlier copy counts for the last one. It does not say how a
//! source sees that an fhack will not come: see `reaction.rs`. It has TCP Reno alone. Tahoe, which has no
//! fast recovery, and SACK, which knows better what has left the network, judge losses as it says; their
//! windows are extended by nothing. Nor does it say who acknowledges a message that the base station
//! itself has no room for: here the queue is the link's, behind the agent, so that a message which finds
//! it full was acknowledged already and passes for corrupted.

mod agent;
mod reaction;

use alloc::boxed::Box;

use lasthop_base::Bytes;
use serde::{Deserialize, Serialize};

use super::{LinkUse, Scheme};
use crate::component::Component;
use crate::packet::NoticeCode;
use crate::tcp::Reaction;

/// "Reached the last hop", an ICMP message of the type for experimental mobility protocols (RFC 4065).
const LAST_HOP: NoticeCode = NoticeCode { kind: 41, code: 1 };

/// "Passed the first hop", another.
const FIRST_HOP: NoticeCode = NoticeCode { kind: 41, code: 2 };

/// Acknowledgements of hops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lhack {
    /// Size of an acknowledgement of a hop as an IP packet.
    pub size: Bytes,
    /// Acknowledge what comes from the fixed network and is about to go on the air.
    pub last_hop: bool,
    /// Acknowledge what has come over the air.
    pub first_hop: bool,
}

impl Default for Lhack {
    fn default() -> Lhack {
        Lhack { size: Bytes(40), last_hop: true, first_hop: true }
    }
}

impl Scheme for Lhack {
    fn name(&self) -> &'static str {
        "lhack"
    }

    fn summary(&self) -> &'static str {
        "the base station acknowledges what reaches it; the source tells congestion from corruption"
    }

    fn source(&self) -> &'static str {
        "Cobb and Agrawal section 4"
    }

    fn link(&self) -> LinkUse {
        LinkUse::BARE
    }

    fn agent(&self) -> Option<Box<dyn Component>> {
        Some(Box::new(agent::Agent::new(self)))
    }

    fn reaction(&self) -> Option<Box<dyn Reaction>> {
        Some(Box::<reaction::Judge>::default())
    }
}
