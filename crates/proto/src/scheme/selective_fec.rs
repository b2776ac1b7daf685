//! Forward error correction on the segments that matter.
//!
//! **What it does.** The source marks the segments whose loss would cost it a timeout, and the base
//! station sends these over the air in units that a block code protects. All others go as they are, so
//! that the code's check bits are spent where a loss would be dear.
//! **Source.** Chiasserini, Garetto and Meo, "Improving TCP over Wireless by Selectively Protecting
//! Packet Transmissions", section II; the last two choices of `protect` are near to its section V.
//! **Parameters.** `protect`: what is protected. `"selective"`, the paper's choice: the first and the
//! last three segments of the transfer, which have too few behind them for three duplicate
//! acknowledgements, and a segment sent again that is the first of the window, whose second loss the
//! timer would have to find. `"none"` and `"all"`: its yardsticks. `"retransmitted"`: every segment that
//! is sent again. `"repeated-units"`: every data unit that the link itself sends again, and no mark.
//! `segments`: how many at each end of the transfer; 3.
//! **Where we differ from the paper.** It marks by the type-of-service field and names no value; here it
//! is a differentiated services code point for local use (RFC 2474). It has no handshake; here SYN, whose
//! loss costs the longest timeout of all, is protected selectively too, and so is a bare FIN.

use alloc::boxed::Box;

use serde::{Deserialize, Serialize};

use super::{LinkUse, Scheme};
use crate::fec::Covers;
use crate::packet::Dscp;
use crate::tcp::{Flags, Reaction, Segment, SenderState, SeqNum};

/// "Protect me on the last hop": a code point of pool 2 (RFC 2474 section 6).
const PROTECTED: Dscp = Dscp::new(0b00_0011);

/// Forward error correction on the segments that matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SelectiveFec {
    /// What is protected.
    pub protect: Protect,
    /// How many segments at each end of the transfer are protected selectively.
    pub segments: u32,
}

/// What is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protect {
    /// Nothing.
    None,
    /// Every segment.
    All,
    /// Segments whose loss would cost a timeout.
    Selective,
    /// Segments that are sent again.
    Retransmitted,
    /// Data units that the link sends again.
    RepeatedUnits,
}

impl Default for SelectiveFec {
    fn default() -> SelectiveFec {
        SelectiveFec { protect: Protect::Selective, segments: 3 }
    }
}

impl Scheme for SelectiveFec {
    fn name(&self) -> &'static str {
        "selective-fec"
    }

    fn summary(&self) -> &'static str {
        "the source marks segments whose loss costs a timeout; the link protects them by a code"
    }

    fn source(&self) -> &'static str {
        "Chiasserini et al. section II"
    }

    fn link(&self) -> LinkUse {
        let protects = match self.protect {
            Protect::None => None,
            Protect::RepeatedUnits => Some(Covers::Repeats),
            Protect::All | Protect::Selective | Protect::Retransmitted => Some(Covers::Marked(PROTECTED)),
        };
        LinkUse { recovers: true, protects }
    }

    fn reaction(&self) -> Option<Box<dyn Reaction>> {
        let marks = matches!(self.link().protects, Some(Covers::Marked(_)));
        marks.then(|| Box::new(Marker { scheme: self.clone(), first_end: None, firsts: 0 }) as Box<dyn Reaction>)
    }
}

/// Marks segments.
#[derive(Debug)]
struct Marker {
    scheme: SelectiveFec,
    /// Where the first segments of the transfer end, as far as they were sent; none before the first,
    /// and once they are acknowledged.
    first_end: Option<SeqNum>,
    /// How many of them were sent.
    firsts: u32,
}

impl Marker {
    /// Whether the segment is one of the first or of the last of the transfer, or the first of a window
    /// and sent again, or opens the connection.
    fn is_critical(&mut self, segment: &Segment, again: bool, sender: &SenderState) -> bool {
        if segment.flags.has(Flags::SYN) || (again && segment.seq == sender.snd_una()) {
            return true;
        }
        let behind = u64::from(self.scheme.segments) * u64::from(sender.mss());
        let is_last = sender.left_from(segment.seq).is_some_and(|left| left <= behind);
        is_last || self.is_first(segment, again, sender)
    }

    fn is_first(&mut self, segment: &Segment, again: bool, sender: &SenderState) -> bool {
        if !again && self.firsts < self.scheme.segments {
            self.firsts += 1;
            self.first_end = Some(segment.seq + segment.len);
            return true;
        }
        // Kept for longer, it would seem to lie ahead after 2 GiB.
        self.first_end = self.first_end.filter(|&first_end| sender.snd_una() < first_end);
        self.first_end.is_some_and(|first_end| segment.seq < first_end)
    }
}

impl Reaction for Marker {
    fn dscp(&mut self, segment: &Segment, again: bool, sender: &SenderState) -> Dscp {
        let protected = match self.scheme.protect {
            Protect::All => true,
            Protect::Retransmitted => again,
            Protect::Selective => self.is_critical(segment, again, sender),
            Protect::None | Protect::RepeatedUnits => false,
        };
        if protected { PROTECTED } else { Dscp::DEFAULT }
    }
}
