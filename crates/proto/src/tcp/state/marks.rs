//! Explicit congestion notification at the sender (RFC 3168).

use lasthop_base::Time;

use super::SenderState;
use crate::packet::Ecn;
use crate::tcp::reaction::{Evidence, Hole};
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::seq::SeqNum;

/// The ECN state of a sender (RFC 3168).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Negotiated {
    /// Whether ECN was negotiated.
    pub(in crate::tcp) agreed: bool,
    /// `snd_max` at the last response: no further mark is answered until this is acknowledged.
    answered_at: Option<SeqNum>,
    /// Whether the next new segment carries CWR.
    send_cwr: bool,
}

impl Negotiated {
    pub(super) fn new(agreed: bool) -> Negotiated {
        Negotiated { agreed, ..Negotiated::default() }
    }

    /// Forgets a response whose window of data is acknowledged.
    pub(super) fn advance(&mut self, ack: SeqNum) {
        self.answered_at.take_if(|&mut answered| answered < ack);
    }
}

impl SenderState {
    /// Whether `segment` echoes a mark that requires a response (RFC 3168 section 6.1.2: once per window of
    /// data).
    #[inline]
    pub(in crate::tcp) fn is_marked(&mut self, segment: &Segment) -> bool {
        if !self.ecn.agreed || !segment.flags.has(Flags::ECE) || segment.flags.has(Flags::SYN) {
            return false;
        }
        self.stats.echoes += 1;
        self.ecn.answered_at.is_none_or(|answered| segment.ack > answered)
    }

    /// Whether `segment` echoes a mark; such an acknowledgement does not grow the window (RFC 3168 section
    /// 6.1.2).
    #[inline]
    pub(in crate::tcp) fn echoes_mark(&self, segment: &Segment) -> bool {
        self.ecn.agreed && segment.flags.has(Flags::ECE)
    }

    /// Records a response to a mark or a loss: no further mark in this window of data reduces the congestion
    /// window, and the next new segment carries CWR (RFC 3168 section 6.1.2).
    pub(in crate::tcp) fn note_reduction(&mut self) {
        self.ecn.answered_at = Some(self.snd_max);
        self.ecn.send_cwr = true;
    }

    /// Responds to a mark like to a loss: lets the reactions classify it, and reduces the window accordingly.
    pub(in crate::tcp) fn respond_to_mark(&mut self, now: Time) {
        self.note_reduction();
        self.cut = false;
        self.judge(now, Hole { seq: self.snd_una, evidence: Evidence::Mark });
    }

    /// The flags and the ECN field of a data segment. Only new data are ECN-capable (RFC 3168 section 6.1.5);
    /// the first new segment after a response carries CWR.
    #[inline]
    pub(super) fn mark_data(&mut self, new: bool) -> (Flags, Ecn) {
        if !self.ecn.agreed || !new {
            return (Flags::default(), Ecn::NotEct);
        }
        let cwr = core::mem::take(&mut self.ecn.send_cwr);
        (if cwr { Flags::CWR } else { Flags::default() }, Ecn::Ect0)
    }
}
