//! SACK recovery with the older pipe rule of ns-2's `Sack1` (Fall and Floyd 1996).

use lasthop_base::Time;

use crate::component::Out;
use crate::packet::{Segment, SeqNum};
use crate::tcp::action::Action;
use crate::tcp::reaction::{Evidence, Hole};
use crate::tcp::recovery::{Recovery, acknowledge_and_open};
use crate::tcp::state::SenderState;

/// Recovery with a counted pipe: every acknowledgement subtracts one segment, a partial acknowledgement two,
/// and every transmission adds one. Each hole is retransmitted once, from left to right.
#[derive(Debug)]
pub(super) struct SackNs2 {
    recovering: bool,
    /// Whether recovery started with the current acknowledgement; further segments are sent from the next one
    /// on.
    just_entered: bool,
    /// Whether SACK blocks are ignored: from a timeout to the next new acknowledgement, and before the first
    /// one.
    ignoring: bool,
    partial_seen: bool,
    /// Estimate of segments in the network.
    pipe: i64,
    /// Holes below this sequence number were retransmitted.
    high_rxt: SeqNum,
    /// First sequence number of the next segment sent on a partial acknowledgement.
    next_partial: SeqNum,
}

impl SackNs2 {
    /// The state before the first segment of a connection with initial sequence number `iss`.
    pub(super) fn new(iss: SeqNum) -> SackNs2 {
        SackNs2 {
            recovering: false,
            just_entered: false,
            ignoring: true,
            partial_seen: false,
            pipe: -1,
            high_rxt: iss,
            next_partial: iss,
        }
    }

    fn clear_board(&mut self, tcp: &mut SenderState) {
        tcp.sacked.clear();
        self.high_rxt = tcp.snd_una;
    }

    /// The next hole below a reported range.
    fn next_to_resend(&self, tcp: &SenderState) -> Option<SeqNum> {
        let seq = self.high_rxt.max(tcp.snd_una);
        let seq = tcp.sacked.around(seq).map_or(seq, |block| block.end);
        tcp.sacked.next_start(seq).map(|_| seq)
    }

    fn mark_resent(&mut self, tcp: &SenderState, seq: SeqNum) {
        self.high_rxt = self.high_rxt.max(seq + tcp.mss);
    }

    /// Fast retransmit.
    fn enter(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        let outstanding = i64::from(tcp.flight_size().div_ceil(tcp.mss));
        self.pipe = outstanding - i64::from(tcp.dupacks());
        self.recovering = true;
        self.just_entered = true;
        self.mark_resent(tcp, tcp.snd_una);
        tcp.answer_loss(now, Evidence::Sack);
        tcp.resend_first(now, out);
    }

    fn on_partial(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, out: &mut Out) {
        tcp.advance(segment.ack);
        tcp.note_sack(segment);
        if tcp.settings.partial_ack_sends {
            self.send_two(tcp, now, out);
            self.pipe += 1;
            if !core::mem::replace(&mut self.partial_seen, true) {
                tcp.rearm(now);
                tcp.rtt.end_backoff();
            }
        } else {
            // The partial acknowledgement shows that a retransmission has also left the network.
            self.pipe -= 1;
            tcp.rearm(now);
            tcp.rtt.end_backoff();
        }
    }

    /// Sends the next two unreported segments, to be no slower than slow start.
    fn send_two(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        let mut next = self.next_partial.max(tcp.snd_una);
        for _ in 0..2 {
            next = tcp.sacked.around(next).map_or(next, |block| block.end);
            tcp.snd_nxt = tcp.snd_nxt.max(next);
            let len = tcp.len_at(next);
            // A receiver with a slow application may have less room than was acknowledged.
            if next + len - tcp.snd_una > tcp.rwnd {
                break;
            }
            if next < tcp.snd_max {
                tcp.judge(now, Hole { seq: next, evidence: Evidence::Partial });
            }
            tcp.emit(now, next, len, out);
            self.mark_resent(tcp, next);
            // Only the last segment of a stream is short, unless the stream is still open.
            next += if tcp.closed { tcp.mss } else { len };
        }
        self.next_partial = next;
    }

    /// Sends one segment: a hole of the scoreboard first, otherwise new data. Returns `false` if there is
    /// none, or if the receiver's window blocks it.
    fn send_one(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) -> bool {
        let hole = self.next_to_resend(tcp);
        let seq = hole.unwrap_or(tcp.snd_nxt);
        let window = if self.recovering { tcp.rwnd } else { tcp.usable_window() };
        let len = tcp.len_at(seq);
        if seq + len - tcp.snd_una > window || tcp.waits_for_more(seq, len) {
            return false;
        }
        if hole.is_some() {
            tcp.judge(now, Hole { seq, evidence: Evidence::Sack });
            self.mark_resent(tcp, seq);
        }
        // Without data, at most FIN remains to be sent.
        let occupied = tcp.emit(now, seq, len, out);
        tcp.snd_nxt = tcp.snd_nxt.max(seq + occupied);
        self.pipe += i64::from(occupied > 0);
        occupied > 0
    }
}

impl Recovery for SackNs2 {
    fn ignores(&self, _action: Action) -> Option<&'static str> {
        None
    }

    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, out: &mut Out) {
        if !self.recovering {
            self.partial_seen = false;
            self.ignoring = false;
            acknowledge_and_open(tcp, now, segment, acked);
            return self.clear_board(tcp);
        }
        self.pipe -= 1;
        if tcp.duplicates.is_partial(segment.ack) {
            return self.on_partial(tcp, now, segment, out);
        }
        self.recovering = false;
        self.ignoring = false;
        tcp.duplicates.forget_loss();
        tcp.acknowledge(now, segment);
        self.clear_board(tcp);
    }

    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, out: &mut Out) {
        self.pipe -= i64::from(self.recovering);
        if self.ignoring || tcp.note_sack(segment) == 0 {
            return;
        }
        if self.recovering {
            tcp.duplicates.count += u32::from(tcp.duplicates.count > 0);
            return;
        }
        tcp.duplicates.count += 1;
        if tcp.duplicates_reveal_loss() {
            self.enter(tcp, now, out);
        } else if tcp.is_early_duplicate() && tcp.settings.limited_transmit {
            tcp.send_limited(now, out);
        }
    }

    fn pipe(&self, tcp: &SenderState) -> u32 {
        if self.recovering { self.pipe.max(0) as u32 * tcp.mss } else { tcp.sent_since_step_back() }
    }

    fn on_timeout(&mut self, tcp: &mut SenderState, now: Time) {
        self.recovering = false;
        self.ignoring = true;
        self.clear_board(tcp);
        tcp.duplicates.end_row();
        tcp.time_out(now);
    }

    /// Segments are never shortened to fit a small window, which is therefore probed.
    fn window_is_shut(&self, tcp: &SenderState) -> bool {
        tcp.len_at(tcp.snd_una) > tcp.rwnd
    }

    fn send(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        if core::mem::take(&mut self.just_entered) || (tcp.dupacks() > 0 && !self.recovering) {
            return;
        }
        let burst = tcp.settings.max_burst;
        let mut sent = 0;
        while (burst == 0 || sent < burst) && (!self.recovering || self.pipe_has_room(tcp)) {
            if !self.send_one(tcp, now, out) {
                break;
            }
            sent += 1;
        }
    }
}

impl SackNs2 {
    fn pipe_has_room(&self, tcp: &SenderState) -> bool {
        self.pipe < (tcp.window_limit(0) / f64::from(tcp.mss)) as i64
    }
}
