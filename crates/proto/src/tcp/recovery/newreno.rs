//! NewReno: fast recovery that repairs every hole of the window (RFC 6582).

use lasthop_base::Time;

use super::{Recovery, acknowledge_and_open, retransmit_or_inflate, send_unless_early_duplicate};
use crate::component::Out;
use crate::packet::Segment;
use crate::tcp::action::Action;
use crate::tcp::reaction::{Evidence, Hole};
use crate::tcp::state::SenderState;

/// Fast recovery that ends when everything outstanding at its start is acknowledged; a partial
/// acknowledgement triggers retransmission of the next hole.
#[derive(Debug, Default)]
pub(in crate::tcp) struct NewReno {
    partial_seen: bool,
}

impl NewReno {
    /// Whether `segment` is a partial acknowledgement: it leaves holes for fast recovery to repair.
    pub(super) fn is_partial(tcp: &SenderState, segment: &Segment) -> bool {
        tcp.recovering && tcp.duplicates.is_partial(segment.ack)
    }

    /// Advances the left edge on a partial acknowledgement.
    #[inline(never)]
    pub(super) fn advance(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment) {
        let first = !core::mem::replace(&mut self.partial_seen, true);
        tcp.advance(segment.ack);
        if first || !tcp.settings.impatient {
            tcp.rearm(now);
        }
    }

    /// Retransmits the hole that a partial acknowledgement reveals (RFC 6582 section 3.2 step 3).
    pub(super) fn repair(tcp: &mut SenderState, now: Time, acked: u32, out: &mut Out) {
        tcp.judge(now, Hole { seq: tcp.snd_una, evidence: Evidence::Partial });
        if tcp.settings.partial_deflation {
            deflate(tcp, acked);
        } else {
            tcp.inflation = 0;
        }
        tcp.resend_first(now, out);
    }

    /// Ends recovery.
    pub(super) fn end(&mut self) {
        self.partial_seen = false;
    }
}

/// Partial window deflation: subtracts the acknowledged bytes, and adds back one segment if at least one was
/// acknowledged. The inflation shrinks first, then the congestion window, which is restored at the end of
/// recovery. A window that the loss did not reduce is not deflated.
fn deflate(tcp: &mut SenderState, acked: u32) {
    let resent = if acked >= tcp.mss { tcp.mss } else { 0 };
    let left = i64::from(tcp.inflation) - i64::from(acked) + i64::from(resent);
    let least = i64::from(tcp.mss);
    tcp.inflation = left.max(least) as u32;
    tcp.deflate((least - left).max(0) as u32);
}

impl Recovery for NewReno {
    fn ignores(&self, _action: Action) -> Option<&'static str> {
        None
    }

    #[inline(always)]
    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, out: &mut Out) {
        if NewReno::is_partial(tcp, segment) {
            self.advance(tcp, now, segment);
            tcp.sample(now, segment);
            return NewReno::repair(tcp, now, acked, out);
        }
        let ends = core::mem::take(&mut tcp.recovering);
        self.end();
        tcp.inflation = 0;
        if ends {
            tcp.acknowledge(now, segment);
            tcp.leave_recovery();
        } else {
            acknowledge_and_open(tcp, now, segment, acked);
        }
    }

    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, _segment: &Segment, out: &mut Out) {
        retransmit_or_inflate(tcp, now, out);
    }

    fn on_timeout(&mut self, tcp: &mut SenderState, now: Time) {
        self.end();
        tcp.duplicates.end_row();
        tcp.time_out(now);
    }

    fn send(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        send_unless_early_duplicate(tcp, now, tcp.settings.max_burst, out);
    }
}
