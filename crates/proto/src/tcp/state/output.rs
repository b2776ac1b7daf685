//! The output side of a sender: what the windows allow, and how segments are built.

use lasthop_base::{Bytes, Time};

use super::SenderState;
use crate::component::{Out, Port};
use crate::packet::{Body, Dscp, Ecn, Flags, Handle, Packet, SackBlocks, Segment, SeqNum, Timestamps};
use crate::tcp::ecn::EcnMode;
use crate::tcp::paws::timestamp;
use crate::tcp::{Connection, option_bytes, rare};

impl SenderState {
    /// The sender's own limit on bytes in the network: the congestion window plus an `extension`. Shared by
    /// all flavours.
    pub(in crate::tcp) fn window_limit(&self, extension: u32) -> f64 {
        self.window().cwnd() + f64::from(extension)
    }

    /// The usable window from the left edge, in bytes: [`window_limit`](Self::window_limit), or the
    /// receiver's window if that is smaller.
    fn offered_window(&self, extension: u32) -> u32 {
        // A cast to an integer saturates, so an unlimited window is fine.
        (self.window_limit(extension) as u32).min(self.rwnd)
    }

    /// Bytes that may be in flight now: the congestion window with inflation by recovery, or the receiver's
    /// window if that is smaller. Available to reactions.
    pub fn usable_window(&self) -> u32 {
        let by_reaction = if self.recovering && !self.cut { self.asked_extension() } else { None };
        self.offered_window(by_reaction.unwrap_or(self.inflation))
    }

    fn asked_extension(&self) -> Option<u32> {
        self.reactions.extension(self)
    }

    /// Payload of a segment that starts at `seq`: a full segment, or the remaining data.
    pub(in crate::tcp) fn len_at(&self, seq: SeqNum) -> u32 {
        if seq > self.data_end() {
            return 0;
        }
        let sent_before = u64::from(self.data_end() - seq);
        sent_before.saturating_add(self.unsent).min(u64::from(self.mss)) as u32
    }

    /// One past the last byte of data sent so far.
    pub(in crate::tcp) fn data_end(&self) -> SeqNum {
        self.snd_max - u32::from(self.fin_sent)
    }

    /// Bytes of application data from `seq`, which was sent or is next, to the end of the stream; `None` if
    /// the stream is unbounded or not closed yet. Available to reactions.
    pub fn left_from(&self, seq: SeqNum) -> Option<u64> {
        let edge = self.data_end();
        let sent = u64::from(edge - seq.min(edge));
        let ahead = u64::from(seq.max(edge) - edge);
        // An unbounded transfer starts with `u64::MAX` bytes, and no run sends half of them.
        let ends = self.closed && self.unsent < u64::MAX / 2;
        ends.then(|| (sent + self.unsent).saturating_sub(ahead))
    }

    /// Bytes of application data acknowledged.
    pub(in crate::tcp) fn acknowledged(&self) -> u64 {
        let edge = self.data_end();
        // SYN may be outstanding before any data are sent.
        (self.supplied - self.unsent).saturating_sub(u64::from(edge - self.snd_una.min(edge)))
    }

    /// Sends what the window allows, at most `burst` segments (0: no limit).
    pub(in crate::tcp) fn send_window(&mut self, now: Time, burst: u32, out: &mut Out) {
        if !self.outstanding() && self.has_unsent() {
            self.restart_before_sending(now);
        }
        let window = self.usable_window();
        let mut sent = 0;
        while burst == 0 || sent < burst {
            self.skip_sacked();
            let len = self.sendable(self.snd_nxt, window);
            if !len.is_some_and(|len| self.send_next(now, len, out)) {
                break;
            }
            sent += 1;
        }
    }

    /// Limited transmit (RFC 3042): one new segment per early duplicate acknowledgement, beyond the
    /// congestion window but within the receiver's.
    pub(in crate::tcp) fn send_limited(&mut self, now: Time, out: &mut Out) {
        if !self.duplicates.permit_limited_transmit(self.snd_nxt != self.snd_max) {
            return;
        }
        let window = self.offered_window(self.duplicates.count * self.mss);
        if let Some(len) = self.sendable(self.snd_nxt, window) {
            self.send_next(now, len, out);
            self.limited += len;
        }
    }

    /// Sends one segment of new data if the receiver's window allows it (RFC 6675 section 4, NextSeg rule 2).
    pub(in crate::tcp) fn send_new(&mut self, now: Time, out: &mut Out) -> bool {
        self.snd_nxt = self.snd_max;
        self.sendable(self.snd_nxt, self.rwnd).is_some_and(|len| self.send_next(now, len, out))
    }

    /// Payload of the segment at `seq` if a window of this size allows it. A segment is shorter than the MSS
    /// only at the end of the available data, or if the receiver's window has room for at least half of its
    /// maximum (RFC 9293 section 3.8.6.2.1).
    #[inline(always)]
    fn sendable(&self, seq: SeqNum, window: u32) -> Option<u32> {
        let len = self.len_at(seq);
        let room = window.saturating_sub(seq - self.snd_una);
        if len <= room {
            return if self.waits_for_more(seq, len) { None } else { Some(len) };
        }
        let cut_by_receiver = room > 0 && window == self.rwnd && room >= self.largest_rwnd / 2;
        cut_by_receiver.then_some(room)
    }

    /// Whether the segment of `len` bytes at `seq` waits until it is full or nothing is outstanding (RFC 9293
    /// section 3.7.4: Nagle's algorithm). Applies to new data of an open stream, never to the end of the
    /// data.
    pub(in crate::tcp) fn waits_for_more(&self, seq: SeqNum, len: u32) -> bool {
        len < self.mss && self.nagle && seq == self.snd_max && self.outstanding()
    }

    /// Sends the segment at `snd_nxt`; `false` if there is nothing to send.
    #[inline(always)]
    fn send_next(&mut self, now: Time, len: u32, out: &mut Out) -> bool {
        let seq = self.snd_nxt;
        let is_new = seq == self.snd_max && len > 0 && !self.fin_sent;
        let occupied = match is_new {
            true if self.sends_plainly => self.emit_as::<true, true>(now, seq, len, out),
            true => self.emit_as::<true, false>(now, seq, len, out),
            false => self.emit(now, seq, len, out),
        };
        self.snd_nxt = seq + occupied;
        occupied > 0
    }

    /// Skips data reported by SACK after going back to the left edge.
    fn skip_sacked(&mut self) {
        if self.snd_nxt < self.snd_max
            && let Some(block) = self.sacked.around(self.snd_nxt)
        {
            self.snd_nxt = block.end;
        }
    }

    /// Retransmits the first unacknowledged segment; returns the number of sequence numbers that it occupies.
    pub(in crate::tcp) fn resend_first(&mut self, now: Time, out: &mut Out) -> u32 {
        let end = self.sacked.next_start(self.snd_una).unwrap_or(self.snd_max);
        let len = self.len_at(self.snd_una).min(end - self.snd_una);
        self.emit(now, self.snd_una, len, out)
    }

    /// Retransmits `start..end` in segments of the current size, except data reported by SACK.
    pub(in crate::tcp) fn resend_range(&mut self, now: Time, start: SeqNum, end: SeqNum, out: &mut Out) {
        let mut seq = start;
        while seq < end {
            if let Some(block) = self.sacked.around(seq) {
                seq = block.end;
                continue;
            }
            let stop = self.sacked.next_start(seq).unwrap_or(end).min(end);
            let len = self.len_at(seq).min(stop - seq);
            seq += self.emit(now, seq, len, out);
        }
    }

    /// Retransmits the outstanding part of `start..end`, a segment that exceeded the path MTU.
    pub(in crate::tcp) fn resend_shorter(&mut self, now: Time, start: SeqNum, end: SeqNum, out: &mut Out) {
        let end = end.min(self.snd_nxt);
        if start < self.snd_una || start >= end {
            return;
        }
        self.samples.on_loss();
        self.resend_range(now, start, end, out);
        if start == self.snd_una {
            self.rearm(now);
        }
    }

    /// Retransmits the segments that reactions have requested, except data acknowledged or reported by SACK.
    /// Returns the number of segments sent.
    pub(in crate::tcp) fn send_requested(&mut self, now: Time, out: &mut Out) -> u32 {
        let mut requested = core::mem::take(&mut self.requested);
        let mut sent = 0;
        for seq in requested.drain(..) {
            // The segment that triggered the request may have acknowledged this data.
            if seq < self.snd_una || seq >= self.snd_nxt || self.sacked.around(seq).is_some() {
                continue;
            }
            sent += 1;
            let end = self.sacked.next_start(seq).unwrap_or(self.snd_nxt).min(self.snd_nxt);
            let len = self.len_at(seq).min(end - seq);
            self.samples.on_loss();
            self.emit(now, seq, len, out);
            if seq == self.snd_una {
                self.rearm(now);
            }
        }
        self.requested = requested;
        self.stats.requested_segments += u64::from(sent);
        sent
    }

    /// Sends a segment of `len` bytes of payload at `seq`, with FIN if the data end there. Returns the number
    /// of sequence numbers that it occupies; an empty segment is not sent.
    #[inline(never)]
    pub(in crate::tcp) fn emit(&mut self, now: Time, seq: SeqNum, len: u32, out: &mut Out) -> u32 {
        self.emit_as::<false, false>(now, seq, len, out)
    }

    /// The same; `NEW` for data that follow all that was sent, without FIN, and `PLAIN` if segments
    /// [are plain](SenderState::sends_plainly).
    #[inline(always)]
    fn emit_as<const NEW: bool, const PLAIN: bool>(
        &mut self,
        now: Time,
        seq: SeqNum,
        len: u32,
        out: &mut Out,
    ) -> u32 {
        if rare::<NEW>(seq > self.data_end()) {
            return 0;
        }
        let new = if NEW { len } else { (seq + len).max(self.data_end()) - self.data_end() };
        let ends = self.unsent == u64::from(new) && !rare::<NEW>(seq + len < self.data_end());
        let fin = ends && self.closed && self.settings.close;
        if rare::<NEW>(len == 0) && !fin {
            return 0;
        }
        let was_idle = !self.outstanding();
        let flags = if fin { Flags::ACK | Flags::FIN } else { Flags::ACK };
        let is_new = !rare::<NEW>(seq < self.snd_max || len == 0);
        let (marks, ecn) = if PLAIN { (Flags::default(), Ecn::NotEct) } else { self.mark_data(is_new) };
        let (occupied, size) = self.send_segment::<PLAIN>(now, seq, len, flags | marks, ecn, out);
        self.unsent -= u64::from(new);
        self.fin_sent |= fin;
        self.note_sent::<NEW, PLAIN>(now, seq, seq + occupied, size - Bytes(u64::from(new)));
        if was_idle || !self.timer_runs() {
            self.waiting_since = now;
            self.rearm(now);
        }
        occupied
    }

    /// Records the transmission of `seq..end`; `repeated` counts the bytes of the packet that are not new
    /// payload. `NEW` if nothing of it was sent before.
    #[inline(always)]
    fn note_sent<const NEW: bool, const PLAIN: bool>(
        &mut self,
        now: Time,
        seq: SeqNum,
        end: SeqNum,
        repeated: Bytes,
    ) {
        let again = rare::<NEW>(seq < self.snd_max);
        if again {
            self.stats.retransmitted_segments += 1;
            self.stats.retransmitted_bytes += repeated;
        }
        if rare::<PLAIN>(self.keeps_records) {
            self.note_in_records(now, seq, end);
        } else {
            self.note_in_samples::<NEW, PLAIN>(now, seq, end);
        }
        self.snd_max = if NEW { end } else { self.snd_max.max(end) };
        if rare::<PLAIN>(self.has_reactions()) {
            self.react(|reaction, _| reaction.on_sent(now, seq, end, again));
        }
    }

    #[inline(always)]
    fn note_in_samples<const NEW: bool, const PLAIN: bool>(&mut self, now: Time, seq: SeqNum, end: SeqNum) {
        if rare::<NEW>(seq < self.snd_max) {
            self.samples.on_again(seq, end);
        }
        if rare::<PLAIN>(self.copies.is_some()) {
            self.copies().on_sent(seq, end);
        }
        if NEW || end > self.snd_max {
            self.samples.on_new(self.snd_max, end, now);
        }
    }

    #[inline(always)]
    fn note_in_records(&mut self, now: Time, seq: SeqNum, end: SeqNum) {
        if self.records.segments.counts().in_flight == 0 {
            self.note_flight(now);
        }
        self.records.on_sent(now, seq, end);
        self.pace.on_sent(now, end - seq);
        self.snd_nxt = self.snd_max.max(end);
    }

    /// Sends or retransmits SYN.
    #[inline(never)]
    pub(in crate::tcp) fn emit_syn(&mut self, now: Time, out: &mut Out) {
        let mode = self.settings.ecn_mode();
        // RFC 9768 section 3.1.4.1: some networks drop such SYNs. One may have been lost by chance.
        let gives_up = mode == EcnMode::Accurate && self.stats.timeouts > 1;
        let asks = if gives_up { Flags::default() } else { mode.syn_flags() };
        let (occupied, size) = self.send_control(now, self.iss, Flags::SYN | asks, out);
        self.note_sent::<false, false>(now, self.iss, self.iss + occupied, size);
        self.snd_nxt = self.snd_max;
        self.rearm(now);
    }

    /// Sends a pure ACK.
    pub(in crate::tcp) fn emit_ack(&mut self, now: Time, out: &mut Out) {
        let (marks, ecn) = self.mark_ack();
        self.send_bare(now, self.snd_max, Flags::ACK | marks, ecn, out);
    }

    /// Sends RST (RFC 9293 section 3.10.5). It carries `snd_max`, since SND.NXT of RFC 9293 never moves back
    /// on a timeout.
    pub(in crate::tcp) fn emit_rst(&mut self, now: Time, out: &mut Out) {
        self.send_control(now, self.snd_max, Flags::RST, out);
    }

    /// Sends a segment without data that is not ECN-capable.
    fn send_control(&mut self, now: Time, seq: SeqNum, flags: Flags, out: &mut Out) -> (u32, Bytes) {
        self.send_bare(now, seq, flags, Ecn::NotEct, out)
    }

    /// Sends a segment without data.
    #[inline(never)]
    fn send_bare(&mut self, now: Time, seq: SeqNum, flags: Flags, ecn: Ecn, out: &mut Out) -> (u32, Bytes) {
        self.send_segment::<false>(now, seq, 0, flags, ecn, out)
    }

    /// Returns the number of sequence numbers that the segment occupies, and the packet's size.
    // Inlined, so that the segment is built where it is sent.
    #[inline(always)]
    fn send_segment<const PLAIN: bool>(
        &mut self,
        now: Time,
        seq: SeqNum,
        len: u32,
        flags: Flags,
        ecn: Ecn,
        out: &mut Out,
    ) -> (u32, Bytes) {
        let timestamps = if rare::<PLAIN>(self.settings.stamps()) {
            let clock = timestamp(now);
            let value = self.copies.as_mut().map_or(clock, |copies| copies.stamp(clock));
            Some(Timestamps { value, echo: self.ts_recent.echo() })
        } else {
            None
        };
        let segment = Segment {
            seq,
            ack: if flags.has(Flags::ACK) { self.rcv_nxt } else { SeqNum(0) },
            len,
            wnd: self.own_window,
            flags,
            sack: SackBlocks::default(),
            timestamps,
            has_unknown_options: false,
        };
        let options = if PLAIN { Bytes::ZERO } else { option_bytes(&segment, &self.settings) };
        let size = self.header + options + Bytes(u64::from(len));
        let dscp = if rare::<PLAIN>(self.has_reactions()) { self.dscp(now, segment) } else { Dscp::DEFAULT };
        let Connection { src, dst, flow } = self.connection;
        out.send(
            Port::ONLY,
            Packet { src, dst, flow, size, dscp, ecn, handle: Handle::NONE, body: Body::Tcp(segment) },
        );
        self.stats.segments_sent += 1;
        self.stats.wire_bytes_sent += size;
        self.stats.payload_sent += Bytes(u64::from(len));
        self.last_sent = now;
        (segment.seq_len(), size)
    }

    /// The DSCP of the packet with this segment. Pure ACKs use the default DSCP.
    // By value and not inlined: without reactions, the segment then stays out of memory.
    #[inline(never)]
    fn dscp(&mut self, now: Time, segment: Segment) -> Dscp {
        if segment.seq_len() == 0 {
            return Dscp::DEFAULT;
        }
        let again = segment.seq < self.snd_max;
        let mut dscp = Dscp::DEFAULT;
        self.react(|reaction, tcp| {
            let marking = reaction.dscp(now, &segment, again, tcp);
            if dscp == Dscp::DEFAULT {
                dscp = marking;
            }
        });
        self.stats.reactions += u64::from(dscp != Dscp::DEFAULT);
        dscp
    }

    /// Whether the receiver's window contains the byte at `seq`.
    pub(in crate::tcp) fn window_reaches(&self, seq: SeqNum) -> bool {
        seq - self.snd_una < self.rwnd
    }

    /// Whether the receiver's window blocks the segment at the left edge.
    pub(in crate::tcp) fn window_is_shut(&self) -> bool {
        self.sendable(self.snd_una, self.rwnd).is_none()
    }
}
