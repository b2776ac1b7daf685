//! Conservative SACK-based recovery (RFC 6675).

use lasthop_base::Time;

use super::{Recovery, acknowledge_and_open};
use crate::component::Out;
use crate::tcp::detection::{Gap, gaps_from_right};
use crate::tcp::reaction::{Evidence, Hole};
use crate::tcp::segment::Segment;
use crate::tcp::seq::SeqNum;
use crate::tcp::state::SenderState;

/// Recovery that sends while the pipe, the estimate of data in the network, is below the window.
#[derive(Debug, Default)]
pub(super) struct Sack {
    /// One past the highest retransmitted byte (HighRxt); `None` outside recovery.
    high_rxt: Option<SeqNum>,
    /// No rescue retransmission until everything up to here is acknowledged (RescueRxt).
    rescue_rxt: SeqNum,
}

/// The estimate of bytes in the network (SetPipe): those not lost, plus those retransmitted.
fn pipe(tcp: &SenderState, high_rxt: SeqNum) -> u32 {
    let mut pipe = 0;
    gaps_from_right(tcp, |hole| {
        if !hole.lost {
            pipe += hole.end - hole.start;
        }
        pipe += high_rxt.min(hole.end).max(hole.start) - hole.start;
    });
    pipe
}

/// Two holes not yet retransmitted below the highest reported byte: the first lost one (rule 1 of NextSeg),
/// and the first one of any kind (rule 3).
fn next_holes(tcp: &SenderState, high_rxt: SeqNum) -> (Option<Gap>, Option<Gap>) {
    let (mut lost, mut any) = (None, None);
    let Some(highest) = tcp.sacked.end() else { return (lost, any) };
    gaps_from_right(tcp, |hole| {
        let start = hole.start.max(high_rxt);
        if start < hole.end && start < highest {
            let rest = |lost| Gap { start, end: hole.end, lost };
            if hole.lost {
                lost = Some(rest(true));
            }
            any = Some(rest(hole.lost));
        }
    });
    (lost, any)
}

/// Whether the window has room for another segment beyond the pipe.
fn has_room(tcp: &SenderState, high_rxt: SeqNum) -> bool {
    tcp.window_limit(0) - f64::from(pipe(tcp, high_rxt)) >= f64::from(tcp.mss)
}

/// Sends new data on an early duplicate, while the pipe leaves room (RFC 6675 section 5 step 3).
fn send_limited(tcp: &mut SenderState, now: Time, out: &mut Out) {
    let before = tcp.snd_max;
    while tcp.snd_nxt == tcp.snd_max && has_room(tcp, tcp.snd_una) && tcp.send_new(now, out) {}
    tcp.limited += tcp.snd_max - before;
}

impl Sack {
    /// Processes a SACK report outside recovery (RFC 6675 section 5 steps 1 to 3).
    fn on_report(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        tcp.duplicates.count += 1;
        let mut first_is_lost = tcp.dupacks() >= tcp.dupthresh();
        gaps_from_right(tcp, |hole| first_is_lost |= hole.start == tcp.snd_una && hole.lost);
        if first_is_lost && tcp.duplicates.loss_is_new(tcp.snd_una) {
            self.enter(tcp, now, out);
        } else if !first_is_lost && tcp.settings.limited_transmit {
            send_limited(tcp, now, out);
        }
    }

    /// Enters recovery (RFC 6675 section 5 step 4).
    fn enter(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        tcp.answer_loss(now, Evidence::Sack);
        let resent = tcp.snd_una + tcp.resend_first(now, out);
        self.high_rxt = Some(resent);
        self.rescue_rxt = resent;
    }

    /// Sends the segment selected by NextSeg; returns `false` if there is none.
    fn send_next(&mut self, tcp: &mut SenderState, now: Time, high_rxt: SeqNum, out: &mut Out) -> bool {
        let (lost, any) = next_holes(tcp, high_rxt);
        if lost.is_none() && tcp.send_new(now, out) {
            return true;
        }
        if let Some(hole) = lost.or(any) {
            tcp.judge(now, Hole { seq: hole.start, evidence: Evidence::Sack });
            let len = tcp.len_at(hole.start).min(hole.end - hole.start);
            self.high_rxt = Some(hole.start + tcp.emit(now, hole.start, len, out));
            return true;
        }
        self.rescue(tcp, now, out)
    }

    /// NextSeg rule 4: once per recovery, after its first segment has arrived, retransmits the last
    /// unreported segment in case it was lost (again).
    fn rescue(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) -> bool {
        let mut last = None;
        gaps_from_right(tcp, |hole| _ = last.get_or_insert(hole));
        let Some(last) = last.filter(|_| tcp.snd_una > self.rescue_rxt) else { return false };
        self.rescue_rxt = tcp.duplicates.recover().unwrap_or(tcp.snd_max);
        let start = if last.end - last.start > tcp.mss { last.end - tcp.mss } else { last.start };
        let len = tcp.len_at(start).min(last.end - start);
        tcp.judge(now, Hole { seq: start, evidence: Evidence::Sack });
        tcp.emit(now, start, len, out) > 0
    }
}

impl Recovery for Sack {
    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, out: &mut Out) {
        let reported = tcp.note_sack(segment);
        if self.high_rxt.is_some() {
            tcp.acknowledge(now, segment);
            self.high_rxt = self.high_rxt.filter(|_| tcp.duplicates.is_partial(segment.ack));
            return;
        }
        acknowledge_and_open(tcp, now, segment, acked);
        if reported > 0 {
            // A new acknowledgement may also count as a duplicate, but still releases data within the window.
            self.on_report(tcp, now, out);
            if self.high_rxt.is_none() {
                tcp.send_window(now, tcp.settings.max_burst, out);
            }
        }
    }

    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, out: &mut Out) {
        if tcp.note_sack(segment) > 0 && self.high_rxt.is_none() {
            self.on_report(tcp, now, out);
        }
    }

    fn pipe(&self, tcp: &SenderState) -> u32 {
        self.high_rxt.map_or(tcp.sent_since_step_back(), |high_rxt| pipe(tcp, high_rxt))
    }

    fn on_timeout(&mut self, tcp: &mut SenderState, now: Time) {
        *self = Sack::default();
        tcp.duplicates.end_row();
        tcp.time_out(now);
    }

    fn send(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        let Some(mut high_rxt) = self.high_rxt else {
            return super::send_unless_early_duplicate(tcp, now, tcp.settings.max_burst, out);
        };
        let burst = tcp.settings.max_burst;
        let mut sent = 0;
        while (burst == 0 || sent < burst)
            && has_room(tcp, high_rxt)
            && self.send_next(tcp, now, high_rxt, out)
        {
            high_rxt = self.high_rxt.unwrap_or(high_rxt);
            sent += 1;
        }
    }
}
