//! Timeouts, and the detection and undo of spurious reductions: F-RTO (RFC 5682 section 3, with SACK), Eifel
//! (RFC 3522 and 4015) and duplicate reports (RFC 3708).

use lasthop_base::Time;

use super::{AfterTimeout, News, Order, Prr, Stage};
use crate::packet::Segment;
use crate::tcp::paws::is_before;
use crate::tcp::sent::{SegmentState, SentSegment};
use crate::tcp::state::SenderState;
use crate::tcp::timers::Timer;

impl Prr {
    /// Processes a retransmission timeout (RFC 6298 sections 5.4 to 5.6; RFC 8985 section 6.3).
    pub(super) fn time_out(&mut self, tcp: &mut SenderState, now: Time) {
        let context = self.context(tcp, now);
        let segments = &mut tcp.records.segments;
        let first = segments.first().map(|first| (first.start, first.state));
        if first.is_some_and(|(_, state)| state == SegmentState::Sacked) {
            // Reported but not acknowledged: the receiver has reneged (RFC 2018 section 8).
            segments.forget_reports();
            tcp.sacked.clear();
        }
        let segments = &mut tcp.records.segments;
        segments.lose_where(|segment| {
            let is_first = first.is_some_and(|(start, _)| start == segment.start);
            is_first || self.detector.is_lost_by_timeout(&context, segment)
        });
        // Only the first timeout of a window of data reduces the window, and not after a reduction by
        // recovery.
        let again = !self.stage.is_calm()
            && tcp.snd_una < self.high
            && !(matches!(self.stage, Stage::Loss(_)) && self.timeouts == 0);
        if !again {
            self.begin_undo(tcp);
        }
        tcp.duplicates.end_row();
        tcp.time_out_records(now, again);
        tcp.report_losses(now);
        if tcp.settings.is_controlled() {
            let window = Self::window_for(tcp, 1);
            tcp.window_mut().set_cwnd(window);
        }
        let begins = self.stage.is_calm() || matches!(self.stage, Stage::Reduced(_));
        let doubted = tcp.settings.frto && (begins || self.timeouts > 0);
        self.stage = Stage::Loss(if doubted { AfterTimeout::Doubted } else { AfterTimeout::Justified });
        self.high = tcp.snd_max;
        self.timeouts += 1;
        self.probe = None;
        tcp.timers.stop(Timer::Probe);
        tcp.timers.stop(Timer::Reordering);
    }

    /// Saves the window before a reduction.
    pub(super) fn begin_undo(&mut self, tcp: &SenderState) {
        let probe = self.probe.is_some_and(|probe| probe.resent);
        let resent = (Self::resent_in_flight(tcp).count() as u32).saturating_sub(u32::from(probe));
        self.undo.begin(tcp.snd_una, *tcp.window(), resent);
    }

    /// The retransmissions in flight, from the left edge.
    pub(super) fn resent_in_flight(tcp: &SenderState) -> impl Iterator<Item = &SentSegment> {
        let in_flight =
            |segment: &&SentSegment| segment.state == SegmentState::InFlight && segment.is_retransmission();
        tcp.records.segments.iter().filter(in_flight)
    }

    /// Whether `segment` echoes a timestamp from before the first retransmission (RFC 3522 section 3.2).
    pub(super) fn echoes_an_original(&self, segment: &Segment) -> bool {
        let (Some(timestamps), Some(resent)) = (segment.timestamps, self.undo.first_resent_at()) else {
            return false;
        };
        is_before(timestamps.echo, resent)
    }

    /// Processes an acknowledgement after a timeout: decides whether the timeout was spurious (RFC 5682
    /// section 3.1).
    pub(super) fn on_news_after_timeout(&mut self, tcp: &mut SenderState, segment: &Segment, news: &News) {
        let recovered = tcp.snd_una >= self.high;
        let original = tcp.settings.undo && self.echoes_an_original(segment);
        let explained = tcp.settings.undo && self.undo.is_due(original);
        let doubted = self.stage == Stage::Loss(AfterTimeout::Doubted);
        // Step 3b: data that were never retransmitted are acknowledged.
        if (news.advances && explained) || (doubted && news.original && tcp.settings.undo) {
            tcp.stats.spurious_timeouts += 1;
            self.undo_reduction(tcp, true);
            self.end_recovery(tcp);
        } else if recovered {
            // Steps 1b and 2a.
            if explained {
                self.undo_reduction(tcp, false);
            }
            self.end_recovery(tcp);
        } else if doubted {
            self.go_on_doubting(tcp, news);
        }
    }

    fn go_on_doubting(&mut self, tcp: &SenderState, news: &News) {
        let new_data_are_out = tcp.snd_max > self.high;
        if !new_data_are_out && news.advances {
            // Step 2b: new data, if any, decide.
            self.high = tcp.snd_max;
            if tcp.has_unsent() && tcp.flight_size() < tcp.rwnd {
                self.order = Order::NewFirst;
            } else {
                self.stage = Stage::Loss(AfterTimeout::Justified);
            }
        } else if new_data_are_out && (news.sacks || !news.advances) {
            // Step 3a: the duplicate shows that the retransmission filled a gap.
            self.stage = Stage::Loss(AfterTimeout::Justified);
        }
    }

    /// Undoes the last reduction. With `unmark`, also undoes all loss marks.
    pub(super) fn undo_reduction(&mut self, tcp: &mut SenderState, unmark: bool) {
        if unmark {
            tcp.records.segments.unmark_lost();
        }
        if let Some(before) = self.undo.take() {
            tcp.undo(&before);
            if self.stage.reduction().is_some() {
                self.detector.on_recovered();
                self.stage = Stage::Open;
            }
        }
    }
}
