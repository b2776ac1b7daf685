//! Selective acknowledgements with the older pipe rule, as ns-2's `Sack1` has it (Fall and Floyd 1996).

use lasthop_base::Time;

use super::{Recovery, acknowledge_and_open};
use crate::component::Out;
use crate::tcp::ranges::Ranges;
use crate::tcp::segment::Segment;
use crate::tcp::seq::SeqNum;
use crate::tcp::state::SenderState;

/// Recovery that counts the segments in the network: one leaves with every acknowledgement, two with
/// one that is partial, one enters with every segment sent.
#[derive(Debug, Default)]
pub(super) struct SackNs2 {
    recovering: bool,
    /// Reports are ignored between a timeout and the next new acknowledgement.
    ignoring: bool,
    partial_seen: bool,
    /// Segments thought to be in the network.
    pipe: i64,
    /// Resent, and not reported since.
    resent: Ranges,
    /// The scoreboard reaches up to here.
    board_end: Option<SeqNum>,
    /// Where the next of the segments that partial acknowledgements send begins.
    next_partial: Option<SeqNum>,
}

impl SackNs2 {
    fn clear_board(&mut self, tcp: &mut SenderState) {
        tcp.sacked.clear();
        self.resent.clear();
        self.board_end = None;
    }

    /// Takes the reports of `segment` into the scoreboard; says whether they changed it.
    fn update_board(&mut self, tcp: &mut SenderState, segment: &Segment) -> bool {
        self.resent.forget_before(tcp.snd_una);
        self.board_end = self.board_end.filter(|&end| end > tcp.snd_una);
        let mut changed = false;
        if self.board_end.is_none() && !segment.sack.is_empty() {
            self.board_end = Some(tcp.snd_una + tcp.mss);
            changed = true;
        }
        for block in segment.sack.iter() {
            if let Some(end) = self.board_end.filter(|&end| block.end > end) {
                self.board_end = Some(end.max(block.end));
                changed = true;
            }
            let start = block.start.max(tcp.snd_una);
            changed |= tcp.sacked.insert(start, block.end) > 0;
            self.resent.remove(start, block.end.max(start));
        }
        changed
    }

    /// The first segment on the board that was neither reported nor resent.
    fn next_to_resend(&self, tcp: &SenderState) -> Option<SeqNum> {
        let mut seq = tcp.snd_una;
        while let Some(block) = tcp.sacked.around(seq).or(self.resent.around(seq)) {
            seq = block.end;
        }
        self.board_end.filter(|&end| seq < end).map(|_| seq)
    }

    /// Fast retransmit.
    fn enter(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        let outstanding = i64::from((tcp.snd_max - tcp.snd_una).div_ceil(tcp.mss));
        self.pipe = outstanding - i64::from(dupthresh(tcp));
        self.recovering = true;
        self.mark_resent(tcp, tcp.snd_una);
        tcp.close_window_on_loss(now);
        let len = tcp.len_at(tcp.snd_una);
        tcp.emit(now, tcp.snd_una, len, out);
    }

    fn mark_resent(&mut self, tcp: &SenderState, seq: SeqNum) {
        self.resent.insert(seq, seq + tcp.mss);
    }

    fn on_partial(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, out: &mut Out) {
        tcp.advance(segment.ack);
        self.update_board(tcp, segment);
        if tcp.settings.partial_ack_sends {
            self.send_two(tcp, now, out);
            self.pipe += 1;
            if !core::mem::replace(&mut self.partial_seen, true) {
                tcp.rearm(now);
                tcp.rtt.end_backoff();
            }
        } else {
            // The partial acknowledgement says that a resent segment has left the network as well.
            self.pipe -= 1;
            tcp.rearm(now);
            tcp.rtt.end_backoff();
        }
    }

    /// Sends the next two segments not reported, so as to do no worse than slow start.
    fn send_two(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        let mut next = self.next_partial.map_or(tcp.snd_una, |next| next.max(tcp.snd_una));
        for _ in 0..2 {
            if self.board_end.is_some_and(|end| next < end) {
                while let Some(block) = tcp.sacked.around(next) {
                    next = block.end;
                }
            }
            tcp.snd_nxt = tcp.snd_nxt.max(next);
            let len = tcp.len_at(next);
            tcp.emit(now, next, len, out);
            self.mark_resent(tcp, next);
            next += tcp.mss;
        }
        self.next_partial = Some(next);
    }

    /// Sends one segment: a hole of the board first, else new data. `false` if there is none, or the
    /// receiver's window is closed to it.
    fn send_one(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) -> bool {
        let hole = self.next_to_resend(tcp);
        let seq = hole.unwrap_or(tcp.snd_nxt);
        let window = if self.recovering { tcp.rwnd } else { tcp.usable_window() };
        let len = tcp.len_at(seq);
        if len == 0 || seq + len - tcp.snd_una > window {
            return false;
        }
        if hole.is_some() {
            self.mark_resent(tcp, seq);
        }
        let occupied = tcp.emit(now, seq, len, out);
        tcp.snd_nxt = tcp.snd_nxt.max(seq + occupied);
        self.pipe += 1;
        true
    }
}

/// ns-2: large windows ask for a tenth of their segments as duplicates (`numdupacksFrac_`).
fn dupthresh(tcp: &SenderState) -> u32 {
    let segments = (tcp.window.cwnd / f64::from(tcp.mss)) as u32;
    tcp.settings.dupthresh.max(segments / 10)
}

impl Recovery for SackNs2 {
    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, out: &mut Out) {
        if !self.recovering {
            self.partial_seen = false;
            self.ignoring = false;
            acknowledge_and_open(tcp, now, segment, acked);
            return self.clear_board(tcp);
        }
        self.pipe -= 1;
        if tcp.recover.is_some_and(|recover| segment.ack < recover) {
            return self.on_partial(tcp, now, segment, out);
        }
        self.recovering = false;
        self.ignoring = false;
        tcp.recover = None;
        tcp.acknowledge(now, segment);
        self.clear_board(tcp);
    }

    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, out: &mut Out) {
        self.pipe -= i64::from(self.recovering);
        if self.ignoring || !self.update_board(tcp, segment) {
            return;
        }
        if self.recovering {
            tcp.dupacks += u32::from(tcp.dupacks > 0);
            return;
        }
        tcp.dupacks += 1;
        if tcp.dupacks == dupthresh(tcp) && tcp.loss_is_new() {
            self.enter(tcp, now, out);
        } else if tcp.dupacks < dupthresh(tcp) && tcp.settings.limited_transmit {
            tcp.send_limited(now, out);
        }
    }

    fn on_timeout(&mut self, tcp: &mut SenderState, now: Time) {
        self.recovering = false;
        self.ignoring = true;
        self.clear_board(tcp);
        tcp.dupacks = 0;
        tcp.time_out(now);
    }

    fn send(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        if tcp.dupacks > 0 && !self.recovering {
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
        self.pipe < (tcp.window.cwnd / f64::from(tcp.mss)) as i64
    }
}
