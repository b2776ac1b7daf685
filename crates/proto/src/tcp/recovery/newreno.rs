//! NewReno: fast recovery that repairs every hole of the window (RFC 6582).

use lasthop_base::Time;

use super::{Recovery, acknowledge_and_open, retransmit_or_inflate, send_unless_early_duplicate};
use crate::component::Out;
use crate::tcp::reaction::{Evidence, Hole};
use crate::tcp::segment::Segment;
use crate::tcp::settings::Rules;
use crate::tcp::state::SenderState;

/// Fast recovery that ends when everything outstanding at its start is acknowledged; a partial
/// acknowledgement resends the next hole.
#[derive(Debug, Default)]
pub(super) struct NewReno {
    partial_seen: bool,
}

impl NewReno {
    /// RFC 6582 section 3.2 step 3, partial acknowledgement.
    fn on_partial(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, out: &mut Out) {
        let first = !core::mem::replace(&mut self.partial_seen, true);
        tcp.advance(segment.ack);
        if first || !tcp.settings.impatient {
            tcp.rearm(now);
        }
        match tcp.settings.rules {
            Rules::Rfc => _ = tcp.sample(now, segment),
            Rules::Ns2 => tcp.end_backoff_if_timed(segment.ack),
        }
        tcp.judge(now, Hole { seq: tcp.snd_una, evidence: Evidence::Partial });
        if tcp.settings.partial_deflation {
            deflate(tcp, acked);
        } else {
            tcp.inflation = 0;
        }
        tcp.resend_first(now, out);
    }
}

/// Takes what was acknowledged out of the window and puts the resent segment in, if that much was
/// acknowledged; the inflation goes first, then the congestion window itself, which gets it back when
/// recovery ends. A window that the loss did not close keeps what it has.
fn deflate(tcp: &mut SenderState, acked: u32) {
    let resent = if acked >= tcp.mss { tcp.mss } else { 0 };
    let left = i64::from(tcp.inflation) - i64::from(acked) + i64::from(resent);
    let least = i64::from(tcp.mss);
    tcp.inflation = left.max(least) as u32;
    tcp.deflate((least - left).max(0) as u32);
}

impl Recovery for NewReno {
    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, out: &mut Out) {
        if tcp.recovering && tcp.recover.is_some_and(|recover| segment.ack < recover) {
            return self.on_partial(tcp, now, segment, acked, out);
        }
        let ends = core::mem::take(&mut tcp.recovering);
        self.partial_seen = false;
        tcp.inflation = 0;
        if ends && tcp.settings.rules == Rules::Rfc {
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
        self.partial_seen = false;
        tcp.forget_duplicates();
        tcp.time_out(now);
    }

    fn send(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        // ns-2: no more than two segments per acknowledgement while duplicates are counted.
        let burst = match tcp.settings.rules {
            Rules::Ns2 if tcp.dupacks > 0 => 2,
            _ => tcp.settings.max_burst,
        };
        send_unless_early_duplicate(tcp, now, burst, out);
    }
}
