//! Forward error correction for selected segments.
//!
//! **What it does.** The source marks the segments whose loss would cause a timeout, and the base station
//! sends these over the air in units protected by a block code. All other segments are sent uncoded, so that
//! the overhead of the code is spent where a loss is expensive.
//! **Source.** Chiasserini, Garetto and Meo, "Improving TCP over Wireless by Selectively Protecting
//! Packet Transmissions", section II; the last two choices of `protect` resemble its section V.
//! **Parameters.** `protect`: what is protected. `"selective"`, as in the paper: the first and the last three
//! segments of the transfer, which are followed by too few segments for three duplicate ACKs, and a
//! retransmitted segment at the left edge of the window, whose second loss only the timer would detect.
//! `"none"` and `"all"`: the paper's baselines. `"retransmitted"`: every retransmitted segment.
//! `"repeated-units"`: every data unit that the link retransmits, without marking. `"marked"`: what hosts or earlier
//! agents have marked. `segments`: number of segments at each end of the transfer; 3. `mark`: the mark; 3.
//! **Differences from the paper.** The paper marks in the type-of-service field without giving a value; here
//! it is a differentiated services code point, by default one for local use (RFC 2474). The paper has no handshake;
//! here a SYN, whose loss causes the longest timeout of all, and a FIN without data are protected selectively too.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use lasthop_base::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArqUse, Installer, Scheme};
use crate::fec::Covers;
use crate::packet::Dscp;
use crate::tcp::{Action, Flags, Reaction, Segment, SenderState, SeqNum, Settings};

/// Forward error correction for selected segments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SelectiveFec {
    /// What the link's code protects. `"selective"`: the segments whose loss would cause a timeout, which are
    /// the first and last segments of the transfer, and retransmissions at the left edge of the window.
    /// `"all"`: all segments. `"retransmitted"`: all retransmitted segments. `"repeated-units"`: the units
    /// that the link retransmits. `"marked"`: the packets of any protocol that arrive with `mark`, which nobody sets here:
    /// a host of real packets, or an agent such as `snoop`, whose retransmissions have `mark = 46`. `"none"`: nothing.
    pub protect: Protect,
    /// Number of segments at each end of the transfer protected by `"selective"`.
    pub segments: u32,
    /// The mark, a differentiated services code point (DSCP) from 1 to 63, whose default is one for local use (RFC 2474
    /// section 6).
    #[schemars(with = "u8", range(max = 63))]
    pub mark: Dscp,
}

/// The segments that are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protect {
    /// Nothing.
    None,
    /// Every segment.
    All,
    /// Segments whose loss would cause a timeout.
    Selective,
    /// Retransmitted segments.
    Retransmitted,
    /// Data units that the link retransmits.
    RepeatedUnits,
    /// Packets that others have marked.
    Marked,
}

impl Default for SelectiveFec {
    fn default() -> SelectiveFec {
        SelectiveFec { protect: Protect::Selective, segments: 3, mark: Dscp::new(0b00_0011) }
    }
}

impl Scheme for SelectiveFec {
    fn name(&self) -> &'static str {
        "selective-fec"
    }

    fn summary(&self) -> &'static str {
        "the source marks segments whose loss causes a timeout; the link protects them with FEC"
    }

    fn source(&self) -> &'static str {
        "Chiasserini et al. section II"
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        if self.mark == Dscp::DEFAULT {
            return vec![(
                "mark".into(),
                "found 0, the code point of unmarked packets; expected 1 to 63".into(),
            )];
        }
        Vec::new()
    }

    fn with_real_hosts(&self) -> Option<[&'static str; 3]> {
        Some(["protect", "marked", "the link protects what the hosts mark themselves"])
    }

    fn reads_tcp(&self) -> bool {
        !matches!(self.protect, Protect::RepeatedUnits | Protect::Marked)
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.arq(ArqUse::Required);
        match self.protect {
            Protect::None => {}
            Protect::RepeatedUnits => installer.protect(Covers::Repeats),
            Protect::Marked => installer.protect(Covers::Marked(self.mark)),
            Protect::All | Protect::Selective | Protect::Retransmitted => {
                installer.protect(Covers::Marked(self.mark));
                installer.at_sender(&[Action::SetDscp], || Marker {
                    scheme: self.clone(),
                    first_end: None,
                    firsts: 0,
                });
            }
        }
    }
}

/// Marks segments.
#[derive(Debug)]
struct Marker {
    scheme: SelectiveFec,
    /// End of the first segments of the transfer sent so far; `None` before the first segment and after they
    /// are acknowledged.
    first_end: Option<SeqNum>,
    /// Number of them sent.
    firsts: u32,
}

impl Marker {
    /// Whether the segment is among the first or last of the transfer, a retransmission at the left edge of
    /// the window, or a SYN.
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
        // Kept for longer, it would appear to be ahead of the window after 2 GiB.
        self.first_end = self.first_end.filter(|&first_end| sender.snd_una() < first_end);
        self.first_end.is_some_and(|first_end| segment.seq < first_end)
    }
}

impl Reaction for Marker {
    fn dscp(&mut self, _now: Time, segment: &Segment, again: bool, sender: &SenderState) -> Dscp {
        let protected = match self.scheme.protect {
            Protect::All => true,
            Protect::Retransmitted => again,
            Protect::Selective => self.is_critical(segment, again, sender),
            Protect::None | Protect::RepeatedUnits | Protect::Marked => false,
        };
        if protected { self.scheme.mark } else { Dscp::DEFAULT }
    }
}
