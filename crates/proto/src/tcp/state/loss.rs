//! What is a loss, and what it does to a sender.

use lasthop_base::Time;

use super::SenderState;
use crate::tcp::cc::Loss;
use crate::tcp::reaction::{Evidence, Hole, Response};
use crate::tcp::segment::Segment;

impl SenderState {
    fn loss(&self, now: Time, again: bool) -> Loss {
        let flight = if self.records.is_some() {
            // A window that is validated is used to the full; else what is outstanding counts.
            let cwnd = self.window().cwnd() as u32;
            if self.settings.cwnd_validation { cwnd } else { cwnd.min(self.flight_size()) }
        } else {
            self.sent_since_step_back().saturating_sub(self.limited)
        };
        Loss { now, flight, rwnd: self.rwnd, again, max: self.snd_max }
    }

    /// Duplicate acknowledgements that mean a loss.
    pub(in crate::tcp) fn dupthresh(&self) -> u32 {
        let set = self.settings.dupthresh;
        if self.reactions.is_empty() { set } else { self.reactions.dupthresh(set, self) }
    }

    /// Whether the duplicates at hand are too few to mean a loss.
    pub(in crate::tcp) fn is_early_duplicate(&self) -> bool {
        self.duplicates.count > 0 && self.duplicates.are_early(self.dupthresh())
    }

    /// Whether the duplicates at hand mean a loss that nothing was done about yet.
    pub(in crate::tcp) fn duplicates_reveal_loss(&self) -> bool {
        self.duplicates.reveal_loss(self.snd_una, self.dupthresh())
    }

    /// A loss was found by acknowledgements: asks what it means, closes the window accordingly, restarts
    /// the timer.
    pub(in crate::tcp) fn answer_loss(&mut self, now: Time, evidence: Evidence) {
        self.stats.fast_retransmits += 1;
        self.duplicates.answer(self.snd_max);
        self.cut = false;
        self.judge(now, Hole { seq: self.snd_una, evidence });
        self.samples.on_loss();
        self.rearm(now);
    }

    /// A hole is about to be repaired: asks what it means, and closes the window if that has not
    /// happened yet. Every repair in answer to acknowledgements goes through here.
    /// Says whether the window was closed by this.
    pub(in crate::tcp) fn judge(&mut self, now: Time, hole: Hole) -> bool {
        let factor = match self.ask(now, hole) {
            Response::Corruption => return false,
            Response::Congestion => None,
            Response::Reduce(factor) => Some(factor),
        };
        let closes = !self.cut && self.settings.is_controlled();
        if closes {
            self.cut = true;
            self.note_mark();
            let loss = self.loss(now, false);
            match hole.evidence {
                Evidence::Mark => self.cc.on_mark(&loss, factor),
                _ => self.cc.on_loss(&loss, factor),
            }
        }
        closes
    }

    /// A loss was found in the records: asks what it means, closes the window accordingly, restarts the timer.
    pub(in crate::tcp) fn answer_records_loss(&mut self, now: Time, hole: Hole) {
        self.stats.fast_retransmits += u64::from(hole.evidence != Evidence::Probe);
        self.cut = false;
        self.judge(now, hole);
        self.rearm(now);
    }

    /// A loss was found while the window is being reduced already.
    pub(in crate::tcp) fn note_loss_in_records(&mut self, now: Time) {
        self.stats.fast_retransmits += 1;
        self.rearm(now);
    }

    fn ask(&mut self, now: Time, hole: Hole) -> Response {
        let mut response = Response::Congestion;
        self.react(|reaction, tcp| {
            let judged = reaction.judge(now, hole, tcp);
            if response == Response::Congestion {
                response = judged;
            }
        });
        response
    }

    /// The timer ran out: asks what that means, closes the window accordingly, backs off, goes back to
    /// the first unacknowledged byte (RFC 6298 sections 5.4-5.6, RFC 5681 section 3.1).
    pub(in crate::tcp) fn time_out(&mut self, now: Time) {
        let interrupts = self.cut && self.duplicates.is_partial(self.snd_una);
        let again = self.note_timeout();
        self.answer_timeout(now, again, interrupts);
        self.start_over(now);
    }

    /// `interrupts` if the window had been closed for this data already.
    fn answer_timeout(&mut self, now: Time, again: bool, interrupts: bool) {
        let response = self.ask(now, Hole { seq: self.snd_una, evidence: Evidence::Timeout });
        let mut loss = self.loss(now, again);
        if interrupts {
            // The flight counts what has arrived out of order, too, and would put the threshold above what the path
            // is known to hold.
            loss.flight = loss.flight.min((2.0 * self.window().ssthresh()) as u32);
        }
        self.note_mark();
        match response {
            Response::Congestion => self.cc.on_timeout(&loss, None),
            Response::Reduce(factor) => self.cc.on_timeout(&loss, Some(factor)),
            Response::Corruption => self.cc.on_interruption(self.mss, again),
        }
    }

    /// The timer ran out, and the records say what is lost: asks what that means, closes the window accordingly
    /// unless that was done for this data (`again`), backs off.
    pub(in crate::tcp) fn time_out_records(&mut self, now: Time, again: bool) {
        self.note_timeout();
        self.answer_timeout(now, again, false);
        self.rtt.back_off();
        self.rearm(now);
    }

    /// The timer ran out for SYN: no data were lost, so the threshold says nothing yet, except to ns-2.
    pub(in crate::tcp) fn time_out_syn(&mut self, now: Time) {
        let again = self.note_timeout();
        if self.settings.syn_is_like_data() {
            let loss = self.loss(now, again);
            self.cc.on_timeout(&loss, None);
        } else {
            self.shrink_window_to_one_segment();
        }
        self.start_over(now);
    }

    /// Says whether the timer has run out for this data before.
    fn note_timeout(&mut self) -> bool {
        self.stats.timeouts += 1;
        self.duplicates.note_timeout(self.snd_max);
        self.cut = true;
        let at_start = self.settings.handshake || self.settings.syn_is_like_data();
        if self.snd_una == self.iss && at_start && self.settings.is_controlled() {
            // RFC 5681 section 3.1: a lost SYN means an initial window of one segment; for ns-2 any
            // first segment does.
            let mss = self.mss;
            self.window_mut().set_initial(mss);
        }
        self.timed_out_at.replace(self.snd_una) == Some(self.snd_una)
    }

    fn start_over(&mut self, now: Time) {
        self.recovering = false;
        self.inflation = 0;
        self.sacked.clear();
        self.rtt.back_off();
        self.rearm(now);
        self.go_back();
    }

    /// Resends from the first unacknowledged byte on.
    pub(in crate::tcp) fn go_back(&mut self) {
        if let Some(records) = &mut self.records {
            // The records know what goes next.
            records.segments.take_back();
            return;
        }
        self.snd_nxt = self.snd_una;
        self.samples.on_loss();
        if let Some(copies) = &mut self.copies {
            copies.clear();
        }
    }

    /// Takes the reports of `segment` into the scoreboard; says how many bytes were news.
    pub(in crate::tcp) fn note_sack(&mut self, segment: &Segment) -> u32 {
        let (una, max) = (self.snd_una.max(segment.ack), self.snd_max);
        let blocks = segment.sack.iter().filter(|block| block.is_news(una, max));
        blocks.map(|block| self.sacked.insert(block.start, block.end)).sum()
    }
}
