//! Explicit congestion notification at the sender: classic (RFC 3168) and accurate (RFC 9768).

use lasthop_base::Time;

use super::SenderState;
use crate::packet::{Ecn, Flags, Segment, SeqNum};
use crate::tcp::cc::Feedback;
use crate::tcp::ecn::{Delivered, EcnMode, Received, Reported, code_of, is_unchanged};
use crate::tcp::reaction::{Evidence, Hole};

/// The ECN state of a sender.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Marks {
    /// The code point of ECN-capable packets, and whether any are sent.
    capable: Ecn,
    is_capable: bool,
    /// `snd_max` at the last response: no further mark is answered until this is acknowledged.
    answered_at: Option<SeqNum>,
    /// Classic feedback: whether the next new segment carries CWR.
    send_cwr: bool,
    /// What the peer has reported, and what the last acknowledgement has added to it: marked packets.
    reported: Reported,
    newly_marked: u32,
    /// What has arrived from the peer, with the feedback mode of the connection.
    received: Received,
    /// The ECN field of the SYN-ACK, until it is reported.
    syn_ack: Option<Ecn>,
}

impl Marks {
    /// The state of a connection in `mode`, or before its handshake. `capable` is the code point that the congestion control uses.
    pub(super) fn new(mode: EcnMode, capable: Ecn) -> Marks {
        // ECT(1) promises the response that only accurate feedback makes possible (RFC 9331 section 4.3).
        let is_honest = mode == EcnMode::Accurate || capable == Ecn::Ect0;
        Marks {
            capable,
            is_capable: mode != EcnMode::Off && is_honest,
            answered_at: None,
            send_cwr: false,
            reported: Reported::new(),
            newly_marked: 0,
            received: Received::new(mode),
            syn_ack: None,
        }
    }

    pub(super) fn mode(&self) -> EcnMode {
        self.received.mode()
    }

    /// Forgets a response whose window of data is acknowledged.
    pub(super) fn advance(&mut self, ack: SeqNum) {
        self.answered_at.take_if(|&mut answered| answered < ack);
    }

    /// The ECN field of a packet that may be marked.
    fn field(&self) -> Ecn {
        if self.is_capable { self.capable } else { Ecn::NotEct }
    }
}

impl SenderState {
    /// Sets the feedback mode by the SYN-ACK, which arrived with the ECN field `arrived`.
    pub(in crate::tcp) fn agree_on_ecn(&mut self, segment: &Segment, arrived: Ecn) {
        let mode = self.settings.ecn_mode().agreed_by(segment.flags);
        self.ecn = Marks::new(mode, self.settings.codepoint());
        self.sends_plainly &= mode == EcnMode::Off;
        if mode == EcnMode::Accurate {
            self.ecn.is_capable = is_unchanged(segment.flags);
            self.ecn.reported.on_syn_ack(segment);
            self.ecn.syn_ack = Some(arrived);
            if arrived == Ecn::Ce {
                self.ecn.received.on_marked_syn_ack();
            }
        }
    }

    /// Stops sending ECN-capable packets, because the path changes their ECN field (RFC 9768 section 3.2.2.3).
    pub(in crate::tcp) fn stop_marking(&mut self) {
        self.ecn.is_capable = false;
    }

    /// Ignores all that the peer reports, because the path clears the ACE field (RFC 9768 section 3.2.2.1).
    pub(in crate::tcp) fn ignore_reports(&mut self) {
        self.ecn.reported.on_cleared_field();
    }

    /// Records a packet of the peer.
    #[inline]
    pub(in crate::tcp) fn note_ecn(&mut self, ecn: Ecn, segment: &Segment) {
        if self.ecn.mode() == EcnMode::Accurate && !segment.flags.has(Flags::SYN) {
            self.ecn.received.on_packet(ecn, segment);
        }
    }

    /// Whether the peer is owed a report of marks that no segment has carried.
    #[inline]
    pub(in crate::tcp) fn owes_report(&self) -> bool {
        self.ecn.received.is_due()
    }

    /// Whether `segment` echoes a mark that requires a response (RFC 3168 section 6.1.2: once per window of data). Accurate
    /// feedback is counted here only if recovery keeps no records, which count [what was delivered](Self::count_marks) exactly.
    #[inline(always)]
    pub(in crate::tcp) fn is_marked(&mut self, now: Time, segment: &Segment) -> bool {
        self.ecn.mode() != EcnMode::Off && self.is_marked_with_ecn(now, segment)
    }

    #[inline(never)]
    fn is_marked_with_ecn(&mut self, now: Time, segment: &Segment) -> bool {
        match self.ecn.mode() {
            EcnMode::Off => false,
            EcnMode::Classic if !segment.flags.has(Flags::ECE) || segment.flags.has(Flags::SYN) => false,
            EcnMode::Classic => {
                self.stats.echoes += 1;
                self.may_answer(segment)
            }
            EcnMode::Accurate if self.keeps_records => false,
            EcnMode::Accurate => {
                let delivered = self.estimate_delivered(segment);
                self.count_marks(now, segment, delivered)
            }
        }
    }

    /// With accurate feedback, counts the marks that `segment` reports of the data that it reports as `delivered`, and passes them
    /// to the controller. Returns whether they require a response.
    #[inline]
    pub(in crate::tcp) fn count_marks(&mut self, now: Time, segment: &Segment, delivered: Delivered) -> bool {
        self.ecn.mode() == EcnMode::Accurate && self.count_accurate_marks(now, segment, delivered)
    }

    // Not inlined, so that connections without accurate feedback pay for a comparison only.
    #[inline(never)]
    fn count_accurate_marks(&mut self, now: Time, segment: &Segment, delivered: Delivered) -> bool {
        if segment.flags.has(Flags::SYN) {
            return false;
        }
        let marked = self.ecn.reported.on_ack(now, segment, delivered);
        self.ecn.newly_marked = marked;
        self.stats.echoes += u64::from(marked > 0);
        self.stats.marks += u64::from(marked);
        let una = self.snd_una.max(segment.ack);
        self.cc.on_feedback(&Feedback { now, delivered: delivered.packets, marked, una, max: self.snd_max });
        marked > 0 && self.may_answer(segment)
    }

    fn may_answer(&self, segment: &Segment) -> bool {
        self.ecn.answered_at.is_none_or(|answered| segment.ack > answered)
    }

    /// What `segment` reports as delivered, in whole segments: data acknowledged or reported for the first time.
    fn estimate_delivered(&self, segment: &Segment) -> Delivered {
        let (una, max) = (self.snd_una, self.snd_max);
        let acked = if segment.ack > una { segment.ack - una } else { 0 };
        let news = segment.sack.iter().filter(|block| block.is_news(una.max(segment.ack), max));
        let reported: u32 = news.map(|block| self.sacked.missing(block.start, block.end)).sum();
        let bytes = acked.saturating_sub(self.sacked.bytes_below(segment.ack)) + reported;
        Delivered { packets: bytes.div_ceil(self.mss), bytes }
    }

    /// Whether `segment` echoes a mark; such an acknowledgement does not grow the window (RFC 3168 section
    /// 6.1.2).
    #[inline]
    pub(in crate::tcp) fn echoes_mark(&self, segment: &Segment) -> bool {
        match self.ecn.mode() {
            EcnMode::Off => false,
            EcnMode::Classic => segment.flags.has(Flags::ECE),
            EcnMode::Accurate => self.ecn.newly_marked > 0,
        }
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

    /// The flags and the ECN field of a data segment. With classic feedback only new data are ECN-capable (RFC 3168 section
    /// 6.1.5), and the first new segment after a response carries CWR. With accurate feedback retransmissions are ECN-capable,
    /// too, as in Linux, since counters do not attribute marks to copies.
    #[inline]
    pub(super) fn mark_data(&mut self, new: bool) -> (Flags, Ecn) {
        match self.ecn.mode() {
            EcnMode::Classic if new => {
                let cwr = core::mem::take(&mut self.ecn.send_cwr);
                (if cwr { Flags::CWR } else { Flags::default() }, self.ecn.field())
            }
            EcnMode::Off | EcnMode::Classic => (Flags::default(), Ecn::NotEct),
            EcnMode::Accurate => {
                self.ecn.syn_ack = None;
                (self.ecn.received.report(Flags::default()), self.ecn.field())
            }
        }
    }

    /// The flags and the ECN field of a pure ACK. The first one reports the ECN field of the SYN-ACK (RFC 9768 section 3.2.2.1).
    pub(super) fn mark_ack(&mut self) -> (Flags, Ecn) {
        if self.ecn.mode() != EcnMode::Accurate {
            return (Flags::default(), Ecn::NotEct);
        }
        let flags = match self.ecn.syn_ack.take() {
            Some(arrived) => Flags::default().with_ace(code_of(arrived)),
            None => self.ecn.received.report(Flags::default()),
        };
        (flags, self.ecn.field())
    }
}
