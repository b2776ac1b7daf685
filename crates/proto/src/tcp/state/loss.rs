//! The response of a sender to losses and timeouts.

use lasthop_base::Time;

use super::SenderState;
use crate::packet::{SackBlock, Segment};
use crate::tcp::cc::Loss;
use crate::tcp::reaction::{Evidence, Hole, Response};

impl SenderState {
    fn loss(&self, now: Time, again: bool) -> Loss {
        let flight = if self.keeps_records {
            // A validated window is fully used; otherwise the outstanding data limit it.
            let cwnd = self.window().cwnd() as u32;
            if self.settings.cwnd_validation { cwnd } else { cwnd.min(self.flight_size()) }
        } else {
            self.sent_since_step_back().saturating_sub(self.limited)
        };
        Loss { now, flight, rwnd: self.rwnd, again, max: self.snd_max }
    }

    /// The number of duplicate ACKs that indicates a loss.
    pub(in crate::tcp) fn dupthresh(&self) -> u32 {
        let set = self.settings.dupthresh;
        if self.reactions.is_empty() { set } else { self.reactions.dupthresh(set, self) }
    }

    /// Whether there are duplicate ACKs, but too few to indicate a loss.
    #[inline]
    pub(in crate::tcp) fn is_early_duplicate(&self) -> bool {
        self.duplicates.count > 0 && self.duplicates.are_early(self.dupthresh())
    }

    /// Whether the duplicate ACKs indicate a new loss.
    pub(in crate::tcp) fn duplicates_reveal_loss(&self) -> bool {
        self.duplicates.reveal_loss(self.snd_una, self.dupthresh())
    }

    /// Responds to a loss revealed by acknowledgements: lets the reactions classify it, reduces the window
    /// accordingly and restarts the timer.
    pub(in crate::tcp) fn answer_loss(&mut self, now: Time, evidence: Evidence) {
        self.stats.fast_retransmits += 1;
        self.count_threshold(self.duplicates.count);
        self.duplicates.answer(self.snd_max);
        self.cut = false;
        self.judge(now, Hole { seq: self.snd_una, evidence });
        self.samples.on_loss();
        self.rearm(now);
    }

    /// Called before the repair of a hole: lets the reactions classify it, and reduces the window unless
    /// this loss episode has already reduced it. Every repair triggered by acknowledgements passes through
    /// here. Returns whether this call reduced the window.
    pub(in crate::tcp) fn judge(&mut self, now: Time, hole: Hole) -> bool {
        let response = self.ask(now, hole);
        let closes = !self.cut && self.settings.is_controlled();
        if closes && !self.models_path {
            self.stats.reactions += u64::from(response != Response::Congestion);
        }
        let factor = match response {
            // A model of the path starts its own recovery with every loss.
            Response::Corruption if !self.models_path => return false,
            Response::Corruption | Response::Congestion => None,
            Response::Reduce(factor) => Some(factor),
        };
        if closes {
            self.cut = true;
            self.note_reduction();
            let loss = self.loss(now, false);
            match hole.evidence {
                Evidence::Mark => self.cc.on_mark(&loss, factor),
                _ => self.cc.on_loss(&loss, factor),
            }
        }
        closes
    }

    /// Responds to a loss found in the records: lets the reactions classify it, reduces the window
    /// accordingly and restarts the timer.
    pub(in crate::tcp) fn answer_records_loss(&mut self, now: Time, hole: Hole) {
        self.stats.fast_retransmits += u64::from(hole.evidence != Evidence::Probe);
        if hole.evidence == Evidence::Sack {
            self.count_threshold(self.records.segments.counts().sacked);
        }
        self.cut = false;
        self.judge(now, hole);
        self.rearm(now);
    }

    /// Records a loss found while the window comes down for a mark, and responds to it if the control answers both. Returns
    /// whether the window was reduced.
    pub(in crate::tcp) fn answer_loss_after_mark(&mut self, now: Time, hole: Hole) -> bool {
        self.stats.fast_retransmits += 1;
        let answers = self.settings.congestion.control().answers_loss_after_mark;
        if answers {
            self.cut = false;
        }
        self.rearm(now);
        answers && self.judge(now, hole)
    }

    /// Counts a loss that was detected with fewer `duplicates` than without reactions.
    fn count_threshold(&mut self, duplicates: u32) {
        let set = self.settings.dupthresh;
        self.stats.reactions += u64::from(duplicates < set && self.dupthresh() < set);
    }

    fn ask(&mut self, now: Time, hole: Hole) -> Response {
        let mut response = Response::Congestion;
        self.react(|reaction, tcp| {
            let judged = reaction.judge(now, hole, tcp);
            if response == Response::Congestion {
                response = judged;
            }
        });
        self.react(|reaction, tcp| reaction.on_judged(now, hole, response, tcp));
        response
    }

    /// Processes a timeout: lets the reactions classify it, reduces the window accordingly, backs off and
    /// goes back to the left edge (RFC 6298 sections 5.4-5.6, RFC 5681 section 3.1).
    pub(in crate::tcp) fn time_out(&mut self, now: Time) {
        let interrupts = self.cut && self.duplicates.is_partial(self.snd_una);
        let again = self.note_timeout(now);
        self.answer_timeout(now, again, interrupts);
        let backs_off = !self.keeps_rto();
        self.start_over(now, backs_off);
    }

    /// `interrupts` if the window was already reduced for this data.
    fn answer_timeout(&mut self, now: Time, again: bool, interrupts: bool) {
        let response = self.ask(now, Hole { seq: self.snd_una, evidence: Evidence::Timeout });
        let mut loss = self.loss(now, again);
        if interrupts {
            // The flight includes data received out of order, and would raise the threshold above the known
            // capacity of the path.
            loss.flight = loss.flight.min((2.0 * self.window().ssthresh()) as u32);
        }
        self.note_reduction();
        self.stats.reactions += u64::from(response != Response::Congestion && self.settings.is_controlled());
        match response {
            Response::Congestion => self.cc.on_timeout(&loss, None),
            Response::Reduce(factor) => self.cc.on_timeout(&loss, Some(factor)),
            Response::Corruption => self.cc.on_interruption(self.mss, again),
        }
    }

    /// Processes a timeout after the records have marked the losses: lets the reactions classify it,
    /// reduces the window accordingly unless it was already reduced for this data (`again`), and backs off.
    pub(in crate::tcp) fn time_out_records(&mut self, now: Time, again: bool) {
        self.note_timeout(now);
        self.answer_timeout(now, again, false);
        if self.keeps_rto() {
            self.rearm(now);
        } else {
            self.back_off(now);
        }
    }

    /// Processes a timeout of SYN: no data were lost, so the threshold stays as it is, except in ns-2.
    pub(in crate::tcp) fn time_out_syn(&mut self, now: Time) {
        let again = self.note_timeout(now);
        if self.settings.syn_is_like_data() {
            let loss = self.loss(now, again);
            self.cc.on_timeout(&loss, None);
        } else {
            self.close_window();
        }
        self.start_over(now, self.settings.backs_off_syn(self.stats.timeouts));
    }

    /// Counts a timeout; returns whether the timer expired for this data before.
    fn note_timeout(&mut self, now: Time) -> bool {
        self.stats.timeouts += 1;
        self.duplicates.note_timeout(self.snd_max);
        self.cut = true;
        let at_start = self.settings.handshake || self.settings.syn_is_like_data();
        if self.snd_una == self.iss && at_start && self.settings.is_controlled() {
            // RFC 5681 section 3.1: a lost SYN sets the initial window to one segment; in ns-2, any lost
            // first segment does.
            let mss = self.mss;
            self.window_mut().set_initial(mss);
        }
        self.count_timeout(now)
    }

    /// Doubles the RTO and restarts the timer, in the order of the settings.
    fn back_off(&mut self, now: Time) {
        if self.settings.late_backoff {
            self.rearm(now);
            self.rtt.back_off();
        } else {
            self.rtt.back_off();
            self.rearm(now);
        }
    }

    fn start_over(&mut self, now: Time, backs_off: bool) {
        self.recovering = false;
        self.inflation = 0;
        self.sacked.clear();
        if backs_off {
            self.back_off(now);
        } else {
            self.rearm(now);
        }
        self.go_back();
    }

    /// Goes back to the left edge and retransmits from there.
    pub(in crate::tcp) fn go_back(&mut self) {
        if self.keeps_records {
            // The records select the next segment.
            self.records.segments.take_back();
            return;
        }
        self.snd_nxt = self.snd_una;
        self.samples.on_loss();
        if let Some(copies) = &mut self.copies {
            copies.clear();
        }
    }

    /// Adds the SACK blocks of `segment` to the scoreboard; returns the number of newly reported bytes.
    pub(in crate::tcp) fn note_sack(&mut self, segment: &Segment) -> u32 {
        let before = self.sacked.bytes();
        self.note_sack_parts(segment, |_| {});
        self.sacked.bytes() - before
    }

    /// Adds the SACK blocks of `segment` to the scoreboard; calls `visit` for each newly reported part.
    pub(in crate::tcp) fn note_sack_parts(&mut self, segment: &Segment, mut visit: impl FnMut(SackBlock)) {
        let (una, max) = (self.snd_una.max(segment.ack), self.snd_max);
        for block in segment.sack.iter().filter(|block| block.is_news(una, max)) {
            self.sacked.insert(block.start, block.end, &mut visit);
        }
    }
}
