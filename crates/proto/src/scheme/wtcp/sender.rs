//! The source of WTCP: paced at the receiver's rate; probes instead of timeouts.

use lasthop_base::{Duration, Time};

use super::rate_in;
use crate::tcp::{Flags, Hole, Reaction, Response, Segment, SenderState, SeqNum};

/// Segments that are sent back to back before a rate is known.
const PAIR: u32 = 2;

/// Lower bound of the silence after which the source probes: one tick of Linux's timers.
const LEAST_PATIENCE: Duration = Duration::from_millis(4);

/// Paces the source and probes.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    /// Whether the receiver has set a rate.
    is_paced: bool,
    /// Silence after which the source probes; zero before the connection is open.
    patience: Duration,
    /// When the source probes; [`Time::NEVER`] if nothing is outstanding.
    probe_at: Option<Time>,
}

impl Pacer {
    /// Before the first acknowledgement of data, the window has room for a pair. It does not limit a paced source, but the
    /// receiver's does.
    fn set_window(&self, sender: &mut SenderState, is_start: bool) {
        let pair = PAIR * sender.mss();
        let window = sender.settings().window_payload().max(pair);
        if is_start {
            sender.set_window(pair);
        } else if self.is_paced && sender.cwnd() < f64::from(window) {
            sender.set_window(window);
        }
    }

    /// Half the time in which a timeout would follow, after a round trip.
    fn measure(&mut self, sender: &SenderState) {
        let (rto, srtt) = (sender.round_trip().rto(), sender.round_trip().srtt().unwrap_or_default());
        let half = Duration::from_nanos(rto.saturating_sub(srtt).as_nanos() / 2);
        self.patience = (srtt + half).max(LEAST_PATIENCE);
    }
}

impl Reaction for Pacer {
    fn on_start(&mut self, _now: Time, sender: &mut SenderState) {
        self.set_window(sender, true);
        if !sender.settings().handshake {
            self.measure(sender);
        }
    }

    fn on_segment(&mut self, now: Time, segment: &Segment, sender: &mut SenderState) {
        if let Some(rate) = rate_in(&segment.sack).filter(|_| segment.flags.has(Flags::ACK)) {
            self.is_paced = true;
            sender.set_pacing_rate(f64::from(rate));
        }
        self.set_window(sender, segment.flags.has(Flags::SYN));
        self.measure(sender);
        let is_done = segment.ack >= sender.snd_max();
        self.probe_at = (!is_done).then(|| now + self.patience);
    }

    fn on_sent(&mut self, now: Time, _start: SeqNum, _end: SeqNum, _again: bool) {
        if self.probe_at.is_none() && !self.patience.is_zero() {
            self.probe_at = Some(now + self.patience);
        }
    }

    /// No loss reduces the rate at the source: the receiver decides.
    fn judge(&mut self, _now: Time, _hole: Hole, _sender: &mut SenderState) -> Response {
        Response::Corruption
    }

    fn next_wakeup(&self) -> Time {
        self.probe_at.unwrap_or(Time::NEVER)
    }

    /// A blackout: only the probe is sent.
    fn on_timer(&mut self, now: Time, sender: &mut SenderState) {
        self.probe_at = None;
        if sender.snd_una() == sender.snd_max() {
            return;
        }
        self.probe_at = Some(now + self.patience);
        sender.set_window(sender.mss());
        sender.resend(sender.snd_una());
        sender.restart_timer(now);
    }
}
