//! Tail loss probes (RFC 8985 section 7): no later segment reveals the loss of the last segment of a flight,
//! so a probe is sent before the retransmission timer expires.

use lasthop_base::Time;

use super::{News, Prr, Stage, Undo};
use crate::component::Out;
use crate::packet::{Segment, SeqNum};
use crate::tcp::reaction::{Evidence, Hole};
use crate::tcp::state::SenderState;
use crate::tcp::timers::Timer;

/// A probe not yet acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailLossProbe {
    /// `snd_max` at its transmission.
    pub(super) high: SeqNum,
    /// Whether it was a retransmission.
    pub(super) resent: bool,
}

impl Prr {
    /// Sets the probe timer, if a probe may be sent (RFC 8985 section 7.2).
    pub(super) fn schedule_probe(&mut self, tcp: &mut SenderState, now: Time) {
        let calm = matches!(self.stage, Stage::Open | Stage::Reduced(_));
        let due = tcp.settings.tlp && calm && self.probe.is_none();
        let Some(srtt) = tcp.rtt.srtt().filter(|_| due && tcp.outstanding()) else {
            return tcp.timers.stop(Timer::Probe);
        };
        // The receiver may delay the acknowledgement of a single segment.
        let alone = Self::in_flight(tcp) == 1;
        let timeout = srtt * 2 + if alone { tcp.settings.rto_min } else { tcp.settings.timer_allowance() };
        let latest = tcp.timers.deadline(Timer::Retransmission);
        let due = tcp.expiry(now, timeout);
        tcp.timers.set(Timer::Probe, due.min(latest));
    }

    /// Sends a probe on expiry of the probe timer: a new segment if there is one, otherwise the last segment
    /// again (RFC 8985 section 7.3).
    pub(super) fn send_probe(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        // `schedule_probe` stops the timer otherwise.
        debug_assert!(self.probe.is_none() && tcp.outstanding(), "a probe that is not due");
        let new = tcp.send_new(now, out);
        if !new {
            let Some(last) = tcp.records.segments.last().copied() else { return };
            // Not counted as a retransmission for the undo of a reduction.
            let len = tcp.len_at(last.start).min(last.len());
            tcp.emit(now, last.start, len, out);
        }
        tcp.stats.tail_loss_probes += 1;
        self.probe = Some(TailLossProbe { high: tcp.snd_max, resent: !new });
        tcp.rearm(now);
    }

    /// Processes an acknowledgement after a probe: decides whether the probe repaired a loss (RFC 8985
    /// section 7.4).
    #[inline(never)]
    pub(super) fn on_probed(
        &mut self,
        tcp: &mut SenderState,
        now: Time,
        probe: TailLossProbe,
        segment: &Segment,
        news: &News,
    ) {
        if segment.ack < probe.high {
            return;
        }
        if !probe.resent || news.duplicate {
            self.probe = None;
        } else if segment.ack > probe.high {
            // The original was lost, since no duplicate was reported.
            self.probe = None;
            self.undo = Undo::default();
            tcp.answer_records_loss(now, Hole { seq: tcp.snd_una, evidence: Evidence::Probe });
        } else if !news.advances && !news.sacks {
            // The probe caused this duplicate ACK: both copies have arrived.
            self.probe = None;
        }
    }
}
