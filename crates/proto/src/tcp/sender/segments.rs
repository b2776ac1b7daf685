//! Arriving segments: acknowledgements, and the peer's SYN, FIN and RST.

use lasthop_base::Time;

use super::{Phase, Sender};
use crate::component::Out;
use crate::packet::{Ecn, Flags, Segment};
use crate::tcp::detection::Repeat;
use crate::tcp::rare;

impl Sender {
    /// Processes a segment that has arrived with this ECN field.
    pub(super) fn on_segment(&mut self, now: Time, segment: &Segment, ecn: Ecn, out: &mut Out) {
        if self.is_progress(segment) {
            self.take::<true>(now, segment, ecn, out);
        } else {
            self.take_any(now, segment, ecn, out);
        }
    }

    /// Whether the segment only acknowledges some of the data outstanding, of a connection that is open and has no reactions.
    #[inline(always)]
    fn is_progress(&self, segment: &Segment) -> bool {
        let tcp = &self.state;
        let advances = segment.ack > tcp.snd_una && segment.ack < tcp.snd_max;
        let is_bare = segment.flags == Flags::ACK && segment.len == 0;
        advances && is_bare && self.phase == Phase::Open && !tcp.has_reactions()
    }

    #[inline(never)]
    pub(super) fn take_any(&mut self, now: Time, segment: &Segment, ecn: Ecn, out: &mut Out) {
        self.take::<false>(now, segment, ecn, out);
    }

    /// Processes a segment; `PROGRESS` if it [is progress](Sender::is_progress).
    #[inline(always)]
    fn take<const PROGRESS: bool>(&mut self, now: Time, segment: &Segment, ecn: Ecn, out: &mut Out) {
        if rare::<PROGRESS>(!self.is_acceptable(segment)) {
            if self.is_reset_by(segment) {
                self.terminate(now, out);
            }
            return;
        }
        if rare::<PROGRESS>(self.state.has_reactions())
            && self.phase == Phase::Open
            && self.state.is_taken(now, segment)
        {
            return self.send_after_reactions(now, out);
        }
        if self.is_outdated(now, segment) {
            return;
        }
        self.state.last_received = now;
        if rare::<PROGRESS>(self.state.has_reactions()) {
            self.state.notify_segment(now, segment);
        }
        self.state.note_timestamp(now, segment);
        self.state.note_ecn(ecn, segment);
        let opens = rare::<PROGRESS>(self.phase == Phase::SynSent);
        if opens {
            self.on_syn_acknowledged(now, segment, ecn, out);
        } else {
            self.on_ack::<PROGRESS>(now, segment, out);
            if rare::<PROGRESS>(self.state.has_requested()) {
                self.resend_requested(now, out);
            }
            if rare::<PROGRESS>(segment.seq_len() > 0) {
                self.answer_peer(now, segment, out);
            }
        }
        self.recovery.send(&mut self.state, now, out);
        if opens && !self.state.settings.syn_is_like_data() && !self.state.outstanding() {
            // Without data to carry it, the acknowledgement of the peer's SYN is a pure ACK.
            self.state.emit_ack(now, out);
        }
        if self.state.owes_report() {
            self.state.emit_ack(now, out);
        }
        if !PROGRESS {
            self.settle(now, out);
        }
    }

    /// Whether the segment acknowledges data that were sent; the first one must carry SYN (RFC 9293 sections
    /// 3.10.7.3 and 3.10.7.4).
    fn is_acceptable(&self, segment: &Segment) -> bool {
        let tcp = &self.state;
        let opens = || self.phase == Phase::SynSent && segment.flags.has(Flags::SYN) && segment.ack > tcp.iss;
        let expected = matches!(self.phase, Phase::Open | Phase::Done) || opens();
        let acknowledges = segment.flags & (Flags::ACK | Flags::RST) == Flags::ACK;
        expected && acknowledges && segment.ack <= tcp.snd_max
    }

    /// Whether the segment is older than one already received (RFC 7323 section 5.3). As in Linux, a
    /// duplicate ACK reordered by less than a timeout is accepted, since it may still carry SACK blocks.
    fn is_outdated(&self, now: Time, segment: &Segment) -> bool {
        let tcp = &self.state;
        let Some(ts) = segment.timestamps.filter(|_| !tcp.settings.timestamps_are_unique()) else {
            return false;
        };
        let Some(lead) = tcp.ts_recent.lead(now, ts.value) else { return false };
        let repeats = segment.seq_len() == 0 && segment.ack == tcp.snd_una && segment.wnd == tcp.rwnd;
        !repeats || lead > tcp.rtt.rto()
    }

    /// Whether the segment resets the connection: before it is open, an RST that acknowledges our SYN (RFC
    /// 9293 section 3.10.7.3); afterwards, an RST with exactly the expected sequence number (section
    /// 3.10.7.4, RFC 5961 section 3.2). Other RSTs trigger no challenge ACK.
    fn is_reset_by(&self, segment: &Segment) -> bool {
        let tcp = &self.state;
        let valid = match self.phase {
            Phase::Waiting(_) | Phase::Done | Phase::Aborted => false,
            Phase::SynSent => segment.flags.has(Flags::ACK) && segment.ack == tcp.snd_max,
            Phase::Open => segment.seq == tcp.rcv_nxt,
        };
        valid && segment.flags.has(Flags::RST)
    }

    /// Processes an acknowledgement; `PROGRESS` if the segment [is progress](Sender::is_progress).
    #[inline(always)]
    fn on_ack<const PROGRESS: bool>(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        let tcp = &mut self.state;
        if rare::<PROGRESS>(segment.ack < tcp.snd_una) {
            // As in Linux, a reordered acknowledgement still reports SACK blocks.
            if tcp.keeps_records && !segment.sack.is_empty() {
                self.recovery.on_duplicate(tcp, now, segment, out);
            }
            return;
        }
        let window_changed = segment.wnd != tcp.rwnd;
        tcp.note_window(segment.wnd);
        if tcp.is_marked(now, segment) {
            self.recovery.on_mark(tcp, now);
        }
        if !rare::<PROGRESS>(segment.ack == tcp.snd_una) {
            let acked = segment.ack - tcp.snd_una;
            self.probe_interval = None;
            if PROGRESS {
                self.recovery.on_ack(tcp, now, segment, acked, out);
            } else {
                (*self.recovery).on_ack(tcp, now, segment, acked, out);
            }
        } else if self.probe_interval.is_some() {
            // The response to a window probe is not a duplicate ACK.
            if !self.recovery.window_is_shut(tcp) {
                self.probe_interval = None;
                tcp.leave_probing(now, out);
            }
        } else if tcp.duplicates.is_duplicate(&Repeat {
            segment,
            window_changed,
            outstanding: tcp.outstanding(),
        }) {
            self.recovery.on_duplicate(tcp, now, segment, out);
        }
    }

    /// Opens the connection; the first data, if any, acknowledge the peer's SYN.
    fn on_syn_acknowledged(&mut self, now: Time, segment: &Segment, ecn: Ecn, out: &mut Out) {
        self.phase = Phase::Open;
        self.state.rcv_nxt = segment.seq + 1;
        self.state.agree_on_ecn(segment, ecn);
        if self.state.settings.syn_is_like_data() {
            self.on_ack::<false>(now, segment, out);
        } else {
            self.state.note_window(segment.wnd);
            self.state.establish(now, segment);
        }
    }

    /// Acknowledges data of the peer, its FIN, or its retransmitted SYN (RFC 9293 section 3.10.7.4).
    fn answer_peer(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        if segment.flags.has(Flags::FIN) {
            self.state.rcv_nxt = segment.seq + segment.seq_len();
        }
        self.state.emit_ack(now, out);
    }
}
