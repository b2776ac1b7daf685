//! Conservative SACK-based recovery (RFC 6675).

use lasthop_base::Time;

use super::{Recovery, acknowledge_and_open};
use crate::component::Out;
use crate::packet::{Segment, SeqNum};
use crate::tcp::action::Action;
use crate::tcp::detection::{Gap, gaps_from_right};
use crate::tcp::reaction::{Evidence, Hole};
use crate::tcp::state::SenderState;

/// Recovery that sends while the pipe, the estimate of data in the network, is below the window.
#[derive(Debug, Default)]
pub(super) struct Sack {
    /// The retransmissions of this recovery; `None` outside recovery.
    resent: Option<Resent>,
    /// No rescue retransmission until everything up to here is acknowledged (RescueRxt).
    rescue_rxt: SeqNum,
}

/// The retransmissions of a recovery, which fill gaps from left to right.
#[derive(Clone, Copy, Debug)]
struct Resent {
    /// One past the highest retransmitted byte (HighRxt).
    high: SeqNum,
    /// Outstanding bytes below `high` that are not reported, all of which were retransmitted.
    bytes: u32,
}

impl Resent {
    /// Whether `bytes` agrees with its definition; linear in the number of gaps below `high`.
    fn is_consistent(&self, tcp: &SenderState) -> bool {
        let outstanding = self.high.max(tcp.snd_una) - tcp.snd_una;
        self.bytes == outstanding - tcp.sacked.bytes_below(self.high)
    }
}

/// The estimate of bytes in the network (SetPipe): those not lost, plus those retransmitted. Only gaps near
/// the right edge are not lost.
fn pipe(tcp: &SenderState, resent: u32) -> u32 {
    let not_lost = gaps_from_right(tcp).take_while(|gap| !gap.lost);
    not_lost.map(|gap| gap.end - gap.start).sum::<u32>() + resent
}

/// The first gap from `high` on that lies below the highest reported byte: if it is lost, rule 1 of NextSeg
/// applies to it, otherwise rule 3.
fn next_gap(tcp: &SenderState, high: SeqNum) -> Option<Gap> {
    let start = high.max(tcp.snd_una);
    let start = tcp.sacked.around(start).map_or(start, |range| range.end);
    let end = tcp.sacked.next_start(start)?;
    let lost = gaps_from_right(tcp).find(|gap| gap.lost).is_some_and(|gap| end <= gap.end);
    Some(Gap { start, end, lost })
}

/// Whether the window has room for another segment beyond the pipe.
fn has_room(tcp: &SenderState, resent: u32) -> bool {
    tcp.window_limit(0) - f64::from(pipe(tcp, resent)) >= f64::from(tcp.mss)
}

/// Sends new data on an early duplicate, while the pipe leaves room (RFC 6675 section 5 step 3).
fn send_limited(tcp: &mut SenderState, now: Time, out: &mut Out) {
    let before = tcp.snd_max;
    while tcp.snd_nxt == tcp.snd_max && has_room(tcp, 0) && tcp.send_new(now, out) {}
    tcp.limited += tcp.snd_max - before;
}

impl Sack {
    /// Processes a SACK report outside recovery (RFC 6675 section 5 steps 1 to 3).
    fn on_report(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        tcp.duplicates.count += 1;
        // If any gap is lost, the first one is.
        let starts_with_gap = tcp.sacked.start().is_none_or(|start| tcp.snd_una < start);
        let first_is_lost =
            tcp.dupacks() >= tcp.dupthresh() || (starts_with_gap && gaps_from_right(tcp).any(|gap| gap.lost));
        if first_is_lost && tcp.duplicates.loss_is_new(tcp.snd_una) {
            self.enter(tcp, now, out);
        } else if !first_is_lost && tcp.settings.limited_transmit {
            send_limited(tcp, now, out);
        }
    }

    /// Enters recovery (RFC 6675 section 5 step 4).
    fn enter(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        tcp.answer_loss(now, Evidence::Sack);
        let high = tcp.snd_una + tcp.resend_first(now, out);
        self.resent = Some(Resent { high, bytes: high - tcp.snd_una - tcp.sacked.bytes_below(high) });
        self.rescue_rxt = high;
    }

    /// Adds a SACK report to the scoreboard during recovery.
    fn note_sack(tcp: &mut SenderState, segment: &Segment, resent: &mut Resent) {
        let high = resent.high;
        tcp.note_sack_parts(segment, |part| resent.bytes -= part.end.min(high).max(part.start) - part.start);
    }

    /// Advances the left edge during recovery.
    fn acknowledge(tcp: &mut SenderState, now: Time, segment: &Segment, resent: &mut Resent) {
        let (una, reported) = (tcp.snd_una, tcp.sacked.bytes());
        tcp.acknowledge(now, segment);
        let gaps = (tcp.snd_una - una) - (reported - tcp.sacked.bytes());
        resent.bytes = if tcp.snd_una < resent.high { resent.bytes - gaps } else { 0 };
    }

    /// Sends the segment selected by NextSeg; returns `false` if there is none.
    fn send_next(&mut self, tcp: &mut SenderState, now: Time, resent: Resent, out: &mut Out) -> bool {
        let gap = next_gap(tcp, resent.high);
        if !gap.as_ref().is_some_and(|gap| gap.lost) && tcp.send_new(now, out) {
            return true;
        }
        if let Some(gap) = gap {
            tcp.judge(now, Hole { seq: gap.start, evidence: Evidence::Sack });
            let len = tcp.len_at(gap.start).min(gap.end - gap.start);
            let high = gap.start + tcp.emit(now, gap.start, len, out);
            self.resent = Some(Resent { high, bytes: resent.bytes + (high.min(gap.end) - gap.start) });
            return true;
        }
        self.rescue(tcp, now, out)
    }

    /// NextSeg rule 4: once per recovery, after its first segment has arrived, retransmits the last
    /// unreported segment in case it was lost (again).
    fn rescue(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) -> bool {
        if tcp.snd_una <= self.rescue_rxt {
            return false;
        }
        let Some(last) = gaps_from_right(tcp).next() else { return false };
        self.rescue_rxt = tcp.duplicates.recover().unwrap_or(tcp.snd_max);
        let start = if last.end - last.start > tcp.mss { last.end - tcp.mss } else { last.start };
        let len = tcp.len_at(start).min(last.end - start);
        tcp.judge(now, Hole { seq: start, evidence: Evidence::Sack });
        tcp.emit(now, start, len, out) > 0
    }
}

impl Recovery for Sack {
    fn ignores(&self, action: Action) -> Option<&'static str> {
        super::ignores_bare_duplicates(action)
    }

    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, out: &mut Out) {
        if let Some(resent) = &mut self.resent {
            Sack::note_sack(tcp, segment, resent);
            Sack::acknowledge(tcp, now, segment, resent);
            self.resent = self.resent.filter(|_| tcp.duplicates.is_partial(segment.ack));
            return;
        }
        let reported = tcp.note_sack(segment);
        acknowledge_and_open(tcp, now, segment, acked);
        if reported > 0 {
            // A new acknowledgement may also count as a duplicate, but still releases data within the window.
            self.on_report(tcp, now, out);
            if self.resent.is_none() {
                tcp.send_window(now, tcp.settings.max_burst, out);
            }
        }
    }

    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, out: &mut Out) {
        if let Some(resent) = &mut self.resent {
            Sack::note_sack(tcp, segment, resent);
        } else if tcp.note_sack(segment) > 0 {
            self.on_report(tcp, now, out);
        }
    }

    fn pipe(&self, tcp: &SenderState) -> u32 {
        self.resent.map_or(tcp.sent_since_step_back(), |resent| pipe(tcp, resent.bytes))
    }

    fn on_timeout(&mut self, tcp: &mut SenderState, now: Time) {
        *self = Sack::default();
        tcp.duplicates.end_row();
        tcp.time_out(now);
    }

    fn send(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        let Some(mut resent) = self.resent else {
            return super::send_unless_early_duplicate(tcp, now, tcp.settings.max_burst, out);
        };
        let burst = tcp.settings.max_burst;
        let mut sent = 0;
        while (burst == 0 || sent < burst)
            && has_room(tcp, resent.bytes)
            && self.send_next(tcp, now, resent, out)
        {
            resent = self.resent.unwrap_or(resent);
            debug_assert!(resent.is_consistent(tcp), "{resent:?}");
            sent += 1;
        }
    }
}
