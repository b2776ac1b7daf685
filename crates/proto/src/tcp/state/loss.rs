//! What is a loss, and what it does to a sender.

use lasthop_base::Time;

use super::SenderState;
use crate::tcp::cc::Loss;
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::settings::{Flavour, Rules};

impl SenderState {
    /// Whether a loss found now is a new one, and not the trace of one already answered (RFC 6582
    /// section 3.2 step 2 and section 4.1). An acknowledgement up to `recover` and no further may come
    /// from what was resent needlessly; with SACK one can tell (RFC 6675 section 5.1).
    pub(in crate::tcp) fn loss_is_new(&self) -> bool {
        let first_end = self.first_end();
        let first_is_free = self.settings.rules == Rules::Ns2 && self.snd_una == first_end;
        let reported = self.settings.counts_bytes() && self.settings.flavour == Flavour::Sack;
        let passed = |recover| self.snd_una > recover || (reported && self.snd_una == recover);
        first_is_free || !self.settings.careful || self.recover.is_none_or(passed)
    }

    /// Whether an acknowledgement of nothing new is a duplicate (RFC 5681 section 2). With SACK it is
    /// one if it reports something, whatever else it carries (RFC 6675 section 2). ns-2 counts it even
    /// if nothing is outstanding.
    pub(in crate::tcp) fn is_duplicate(&self, segment: &Segment, window_changed: bool) -> bool {
        if self.settings.counts_bytes() && self.settings.flavour == Flavour::Sack {
            return !segment.sack.is_empty();
        }
        let bare = segment.len == 0 && !segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::FIN);
        bare && (!self.settings.counts_bytes() || (self.outstanding() && !window_changed))
    }

    fn loss(&self, again: bool) -> Loss {
        Loss { flight: self.sent_since_step_back().saturating_sub(self.limited), rwnd: self.rwnd, again }
    }

    /// A loss was found by acknowledgements: closes the window, restarts the timer.
    pub(in crate::tcp) fn close_window_on_loss(&mut self, now: Time) {
        self.stats.fast_retransmits += 1;
        self.recover = Some(self.snd_max);
        let loss = self.loss(false);
        self.cc.on_loss(&mut self.window, loss);
        self.samples.on_loss();
        self.rearm(now);
    }

    /// The timer ran out: closes the window, backs off, goes back to the first unacknowledged byte
    /// (RFC 6298 sections 5.4-5.6, RFC 5681 section 3.1).
    pub(in crate::tcp) fn time_out(&mut self, now: Time) {
        self.stats.timeouts += 1;
        let again = self.timed_out_at.replace(self.snd_una) == Some(self.snd_una);
        self.recover = Some(self.snd_max);
        if self.snd_una == self.iss && (self.settings.handshake || self.settings.rules == Rules::Ns2) {
            // RFC 5681 section 3.1: a lost SYN means an initial window of one segment; for ns-2 any
            // first segment does.
            self.initial_window = self.mss;
        }
        let loss = self.loss(again);
        self.cc.on_timeout(&mut self.window, loss);
        self.inflation = 0;
        self.sacked.clear();
        self.rtt.back_off();
        self.rearm(now);
        self.go_back();
    }

    /// Resends from the first unacknowledged byte on.
    pub(in crate::tcp) fn go_back(&mut self) {
        self.snd_nxt = self.snd_una;
        self.samples.on_loss();
    }

    /// Takes the reports of `segment` into the scoreboard; says how many bytes were news.
    pub(in crate::tcp) fn note_sack(&mut self, segment: &Segment) -> u32 {
        let (una, max) = (self.snd_una.max(segment.ack), self.snd_max);
        // A duplicate report (RFC 2883) or one of data never sent is no news.
        let blocks = segment.sack.iter().filter(|block| block.start > una && block.end <= max);
        blocks.map(|block| self.sacked.insert(block.start, block.end)).sum()
    }
}
