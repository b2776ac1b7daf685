//! What a sender knows, and the steps that every flavour shares.

use alloc::boxed::Box;

use lasthop_base::{Bytes, Time};

use super::cc::{Aimd, CongestionControl, Loss, Window};
use super::ranges::Ranges;
use super::rtt::RttEstimator;
use super::samples::Samples;
use super::segment::{Flags, SackBlocks, Segment, Timestamps};
use super::seq::SeqNum;
use super::settings::{Flavour, InitialThreshold, RttSamples, Rules, Settings};
use super::{Connection, SenderStats, Transfer, option_bytes};
use crate::component::{Out, Port};
use crate::packet::{Body, Packet};

/// The state of a sending TCP (RFC 9293 section 3.3.1) and the steps that flavours and reactions are
/// made of.
#[derive(Debug)]
pub struct SenderState {
    connection: Connection,
    pub(super) mss: u32,
    header: Bytes,
    pub(super) settings: Settings,
    /// First sequence number: of SYN, or of the data if there is no handshake.
    pub(super) iss: SeqNum,
    pub(super) snd_una: SeqNum,
    pub(super) snd_nxt: SeqNum,
    /// One past the highest sequence number ever sent.
    pub(super) snd_max: SeqNum,
    /// Data of the application that lie behind `snd_max`.
    unsent: u64,
    fin_sent: bool,
    pub(super) rwnd: u32,
    /// Next sequence number expected from the peer.
    pub(super) rcv_nxt: SeqNum,

    pub(super) window: Window,
    cc: Box<dyn CongestionControl>,
    /// Bytes by which recovery extends the window, for packets known to have left the network.
    pub(super) inflation: u32,
    initial_window: u32,
    pub(super) dupacks: u32,
    /// Bytes sent by limited transmit since the last new acknowledgement.
    pub(super) limited: u32,
    /// `snd_max` when the last loss was found; no other loss is taken for new before it is passed.
    pub(super) recover: Option<SeqNum>,
    /// What the receiver has reported by SACK.
    pub(super) sacked: Ranges,

    pub(super) rtt: RttEstimator,
    samples: Samples,
    pub(super) rto_deadline: Time,
    /// `snd_una` when the timer last ran out.
    timed_out_at: Option<SeqNum>,
    last_sent: Time,
    ts_recent: Option<u32>,
    pub(super) stats: SenderStats,
}

impl SenderState {
    pub(super) fn new(connection: Connection, settings: &Settings, transfer: Transfer) -> SenderState {
        let mss = settings.mss();
        let iss = SeqNum(settings.iss);
        let rwnd = settings.window_payload();
        let initial_window = settings.initial_window.bytes(mss);
        let counts_segments = settings.rules == Rules::Ns2;
        let grows_later = counts_segments && settings.delay_growth && settings.handshake;
        SenderState {
            connection,
            mss,
            header: settings.header,
            iss,
            snd_una: iss,
            snd_nxt: iss,
            snd_max: iss,
            unsent: transfer.bytes.unwrap_or(u64::MAX),
            fin_sent: false,
            rwnd,
            rcv_nxt: SeqNum(0),
            window: Window {
                cwnd: f64::from(if grows_later { mss } else { initial_window }),
                ssthresh: match settings.initial_ssthresh {
                    InitialThreshold::Unlimited => f64::INFINITY,
                    InitialThreshold::Window => f64::from(rwnd),
                    InitialThreshold::Segments(n) => f64::from(n) * f64::from(mss),
                },
            },
            cc: Box::new(Aimd::new(settings)),
            inflation: 0,
            initial_window,
            dupacks: 0,
            limited: 0,
            // ns-2 has it so that the very first segment is never fast-retransmitted.
            recover: counts_segments.then_some(iss),
            sacked: Ranges::default(),
            rtt: RttEstimator::new(settings),
            samples: Samples::new(settings.rtt_samples),
            rto_deadline: Time::NEVER,
            timed_out_at: None,
            last_sent: Time::ZERO,
            ts_recent: None,
            stats: SenderStats::default(),
            settings: settings.clone(),
        }
    }

    // ---- what reactions may do -------------------------------------------------------------------

    /// Starts the retransmission timer anew with the value it has, backoff included; does nothing if
    /// no data are outstanding.
    pub fn restart_timer(&mut self, now: Time) {
        if self.outstanding() {
            self.rto_deadline = now + self.rtt.rto();
        }
    }

    /// Shrinks the congestion window to one segment; slow start opens it again.
    pub fn shrink_window_to_one_segment(&mut self) {
        self.window.cwnd = f64::from(self.mss);
    }

    /// Cuts all that is sent from now on, new data or old, into segments of at most `mss` bytes of
    /// payload. Windows keep their bytes, and the congestion controller its size of a segment.
    ///
    /// # Panics
    /// If `mss` is zero.
    pub fn set_mss(&mut self, mss: u32) {
        assert!(mss > 0, "a segment holds at least one byte");
        self.mss = mss;
    }

    // ---- questions -------------------------------------------------------------------------------

    pub(super) fn outstanding(&self) -> bool {
        self.snd_una != self.snd_max
    }

    /// Bytes sent and not acknowledged (RFC 5681: FlightSize).
    pub(super) fn flight_size(&self) -> u32 {
        self.snd_max - self.snd_una
    }

    /// Bytes sent since the last step back to the left edge: what was outstanding when the timer ran out
    /// is taken for lost. This is what a loss cuts and what the pipe is without SACK.
    pub(super) fn sent_since_step_back(&self) -> u32 {
        self.snd_nxt - self.snd_una
    }

    /// Bytes that may be in the network as far as the sender itself limits them: the congestion window
    /// and an `extension`. Every flavour's limit is this one.
    pub(super) fn window_limit(&self, extension: u32) -> f64 {
        self.window.cwnd + f64::from(extension)
    }

    /// Bytes that may be sent beyond the left edge: [`window_limit`](Self::window_limit), or the
    /// receiver's window if that is smaller.
    fn offered_window(&self, extension: u32) -> u32 {
        // A cast to an integer saturates, so an unlimited window is fine.
        (self.window_limit(extension) as u32).min(self.rwnd)
    }

    /// Bytes that may be in flight now.
    pub(super) fn usable_window(&self) -> u32 {
        self.offered_window(self.inflation)
    }

    /// Payload of the segment that would start at `seq`: a full one, or all that is left.
    pub(super) fn len_at(&self, seq: SeqNum) -> u32 {
        if seq > self.data_end() {
            return 0;
        }
        let sent_before = u64::from(self.data_end() - seq);
        sent_before.saturating_add(self.unsent).min(u64::from(self.mss)) as u32
    }

    /// One past the last byte of data sent so far.
    fn data_end(&self) -> SeqNum {
        self.snd_max - u32::from(self.fin_sent)
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.unsent > 0 || (self.settings.close && !self.fin_sent)
    }

    pub(super) fn all_acknowledged(&self) -> bool {
        !self.has_unsent() && !self.outstanding()
    }

    /// Whether a loss found now is a new one, and not the trace of one already answered (RFC 6582
    /// section 3.2 step 2 and section 4.1). An acknowledgement up to `recover` and no further may come
    /// from what was resent needlessly; with SACK one can tell (RFC 6675 section 5.1).
    pub(super) fn loss_is_new(&self) -> bool {
        let first_end = self.first_end();
        let first_is_free = self.settings.rules == Rules::Ns2 && self.snd_una == first_end;
        let reported = self.settings.counts_bytes() && self.settings.flavour == Flavour::Sack;
        let passed = |recover| self.snd_una > recover || (reported && self.snd_una == recover);
        first_is_free || !self.settings.careful || self.recover.is_none_or(passed)
    }

    /// Whether an acknowledgement of nothing new is a duplicate (RFC 5681 section 2). With SACK it is
    /// one if it reports something, whatever else it carries (RFC 6675 section 2). ns-2 counts it even
    /// if nothing is outstanding.
    pub(super) fn is_duplicate(&self, segment: &Segment, window_changed: bool) -> bool {
        if self.settings.counts_bytes() && self.settings.flavour == Flavour::Sack {
            return !segment.sack.is_empty();
        }
        let bare = segment.len == 0 && !segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::FIN);
        bare && (!self.settings.counts_bytes() || (self.outstanding() && !window_changed))
    }

    // ---- steps -----------------------------------------------------------------------------------

    /// New data were acknowledged: moves the left edge, takes a sample, restarts the timer (RFC 6298
    /// sections 5.2, 5.3).
    pub(super) fn acknowledge(&mut self, now: Time, segment: &Segment) {
        self.advance(segment.ack);
        self.sample(now, segment);
        self.rearm(now);
        self.dupacks = 0;
        self.limited = 0;
    }

    /// Moves the left edge of the window.
    pub(super) fn advance(&mut self, ack: SeqNum) {
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
        self.sacked.forget_before(ack);
        // Kept for longer, it would seem to lie ahead after 2 GiB without a loss.
        self.recover = self.recover.filter(|&recover| ack <= recover);
    }

    /// Takes the round-trip sample that an acknowledgement gives, if it gives one.
    pub(super) fn sample(&mut self, now: Time, segment: &Segment) {
        let sent = self.samples.on_ack(segment.ack);
        let echoed = segment.timestamps.map(|ts| {
            let now_us = timestamp(now);
            now.as_nanos() - u64::from(now_us.wrapping_sub(ts.echo)) * 1_000
        });
        if let Some(sent) = echoed.map(Time::from_nanos).or(sent) {
            self.rtt.sample(sent, now);
        }
    }

    /// The acknowledgement of data sent during recovery gives no sample, but ends the backoff.
    pub(super) fn end_backoff_if_timed(&mut self, ack: SeqNum) {
        if self.samples.on_ack(ack).is_some() {
            self.rtt.end_backoff();
        }
    }

    /// Sets the timer if data are outstanding, stops it otherwise.
    pub(super) fn rearm(&mut self, now: Time) {
        self.rto_deadline = if self.outstanding() { now + self.rtt.rto() } else { Time::NEVER };
    }

    /// Opens the congestion window for `acked` bytes.
    pub(super) fn open_window(&mut self, acked: u32) {
        self.cc.open(&mut self.window, acked);
        // The window of a connection without handshake, or of ns-2, is delayed until the first
        // acknowledgement if the settings say so.
        if self.settings.rules == Rules::Ns2 && self.settings.delay_growth && self.first_was_acknowledged() {
            self.window.cwnd = f64::from(self.initial_window);
        }
    }

    fn first_was_acknowledged(&self) -> bool {
        self.snd_una == self.first_end()
    }

    /// Where the first segment of the connection ends: SYN, or data if there is no handshake.
    fn first_end(&self) -> SeqNum {
        self.iss + if self.settings.handshake { 1 } else { self.settings.mss() }
    }

    fn loss(&self, again: bool) -> Loss {
        Loss { flight: self.sent_since_step_back().saturating_sub(self.limited), rwnd: self.rwnd, again }
    }

    /// A loss was found by acknowledgements: closes the window, restarts the timer.
    pub(super) fn close_window_on_loss(&mut self, now: Time) {
        self.stats.fast_retransmits += 1;
        self.recover = Some(self.snd_max);
        let loss = self.loss(false);
        self.cc.on_loss(&mut self.window, loss);
        self.samples.on_loss();
        self.rearm(now);
    }

    /// The timer ran out: closes the window, backs off, goes back to the first unacknowledged byte
    /// (RFC 6298 sections 5.4-5.6, RFC 5681 section 3.1).
    pub(super) fn time_out(&mut self, now: Time) {
        self.stats.timeouts += 1;
        let again = self.timed_out_at.replace(self.snd_una) == Some(self.snd_una);
        self.recover = Some(self.snd_max);
        if self.snd_una == self.iss && (self.settings.handshake || self.settings.rules == Rules::Ns2) {
            // RFC 5681 section 3.1: a lost SYN means an initial window of one segment; for ns-2 any
            // first segment does.
            self.initial_window = self.mss;
        }
        let loss = self.loss(again);
        self.cc.on_timeout(&mut self.window, loss);
        self.inflation = 0;
        self.sacked.clear();
        self.rtt.back_off();
        self.rearm(now);
        self.go_back();
    }

    /// Resends from the first unacknowledged byte on.
    pub(super) fn go_back(&mut self) {
        self.snd_nxt = self.snd_una;
        self.samples.on_loss();
    }

    /// Sends what the window lets out, at most `burst` segments (0: no limit).
    pub(super) fn send_window(&mut self, now: Time, burst: u32, out: &mut Out) {
        if !self.outstanding() && self.has_unsent() {
            self.restart_after_idle(now);
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
    pub(super) fn send_limited(&mut self, now: Time, out: &mut Out) {
        // ns-2 sends whatever is next, as often as it counts.
        if self.settings.counts_bytes() && (self.snd_nxt != self.snd_max || self.dupacks > 2) {
            return;
        }
        let window = self.offered_window(self.dupacks * self.mss);
        if let Some(len) = self.sendable(self.snd_nxt, window) {
            self.send_next(now, len, out);
            self.limited += len;
        }
    }

    /// Sends one segment of new data if the receiver's window lets it out (RFC 6675 section 4, NextSeg
    /// rule 2).
    pub(super) fn send_new(&mut self, now: Time, out: &mut Out) -> bool {
        self.snd_nxt = self.snd_max;
        self.sendable(self.snd_nxt, self.rwnd).is_some_and(|len| self.send_next(now, len, out))
    }

    /// Takes the reports of `segment` into the scoreboard; says how many bytes were news.
    pub(super) fn note_sack(&mut self, segment: &Segment) -> u32 {
        let (una, max) = (self.snd_una.max(segment.ack), self.snd_max);
        // A duplicate report (RFC 2883) or one of data never sent is no news.
        let blocks = segment.sack.iter().filter(|block| block.start > una && block.end <= max);
        blocks.map(|block| self.sacked.insert(block.start, block.end)).sum()
    }

    /// Payload of the segment at `seq` if a window of that size lets it out. A segment is cut short
    /// only by the end of the data, or by a receiver whose whole window is smaller (RFC 9293 section
    /// 3.8.6.2.1).
    fn sendable(&self, seq: SeqNum, window: u32) -> Option<u32> {
        let len = self.len_at(seq);
        let room = window.saturating_sub(seq - self.snd_una);
        if len <= room {
            return Some(len);
        }
        let cut_by_receiver = room > 0 && window == self.rwnd && room >= self.settings.window_payload() / 2;
        cut_by_receiver.then_some(room)
    }

    /// Sends the segment at `snd_nxt`; `false` if there is nothing to send.
    fn send_next(&mut self, now: Time, len: u32, out: &mut Out) -> bool {
        let occupied = self.emit(now, self.snd_nxt, len, out);
        self.snd_nxt += occupied;
        occupied > 0
    }

    /// Data that the receiver has need not be sent when going back.
    fn skip_sacked(&mut self) {
        if self.snd_nxt < self.snd_max
            && let Some(block) = self.sacked.around(self.snd_nxt)
        {
            self.snd_nxt = block.end;
        }
    }

    /// After an idle time of one timeout the window says nothing about the network any more (RFC 5681
    /// section 4.1).
    fn restart_after_idle(&mut self, now: Time) {
        let begun = self.stats.segments_sent > 0;
        if self.settings.idle_restart && begun && now.since(self.last_sent) > self.rtt.rto() {
            self.window.cwnd = self.window.cwnd.min(f64::from(self.initial_window));
        }
    }

    /// Sends the first unacknowledged segment again; returns the sequence numbers that it occupies.
    pub(super) fn resend_first(&mut self, now: Time, out: &mut Out) -> u32 {
        let end = self.sacked.next_start(self.snd_una).unwrap_or(self.snd_max);
        let len = self.len_at(self.snd_una).min(end - self.snd_una);
        self.emit(now, self.snd_una, len, out)
    }

    /// Puts a segment of `len` bytes of payload at `seq` on the wire, with FIN if the data end there.
    /// Returns the sequence numbers that it occupies; nothing is sent if it would be empty.
    pub(super) fn emit(&mut self, now: Time, seq: SeqNum, len: u32, out: &mut Out) -> u32 {
        if seq > self.data_end() {
            return 0;
        }
        let new = (seq + len).max(self.data_end()) - self.data_end();
        let ends = self.unsent == u64::from(new) && seq + len >= self.data_end();
        let fin = self.settings.close && ends;
        if len == 0 && !fin {
            return 0;
        }
        let was_idle = !self.outstanding();
        let flags = if fin { Flags::ACK | Flags::FIN } else { Flags::ACK };
        let (occupied, size) = self.send_segment(now, seq, len, flags, out);
        self.unsent -= u64::from(new);
        self.fin_sent |= fin;
        self.note_sent(now, seq, seq + occupied, size - Bytes(u64::from(new)));
        if was_idle || self.rto_deadline == Time::NEVER {
            self.rearm(now);
        }
        occupied
    }

    /// `seq..end` went out, with `repeated` bytes of a packet that were not new.
    fn note_sent(&mut self, now: Time, seq: SeqNum, end: SeqNum, repeated: Bytes) {
        if seq < self.snd_max {
            // ns-2 goes on timing a segment that its SACK recovery sends again.
            if self.settings.counts_bytes() || self.settings.rtt_samples == RttSamples::EveryAck {
                self.samples.on_again(seq, end);
            }
            self.stats.retransmitted_segments += 1;
            self.stats.retransmitted_bytes += repeated;
        }
        if end > self.snd_max {
            self.samples.on_new(self.snd_max, end, now);
            self.snd_max = end;
        }
    }

    /// Sends SYN, for the first time or again.
    pub(super) fn emit_syn(&mut self, now: Time, out: &mut Out) {
        let (occupied, size) = self.send_segment(now, self.iss, 0, Flags::SYN, out);
        self.note_sent(now, self.iss, self.iss + occupied, size);
        self.snd_nxt = self.snd_max;
        self.rearm(now);
    }

    /// Sends an acknowledgement without data.
    pub(super) fn emit_ack(&mut self, now: Time, out: &mut Out) {
        self.send_segment(now, self.snd_max, 0, Flags::ACK, out);
    }

    /// Returns the sequence numbers that the segment occupies, and the packet's size.
    fn send_segment(
        &mut self,
        now: Time,
        seq: SeqNum,
        len: u32,
        flags: Flags,
        out: &mut Out,
    ) -> (u32, Bytes) {
        let timestamps = self.settings.timestamps;
        let segment = Segment {
            seq,
            ack: if flags.has(Flags::ACK) { self.rcv_nxt } else { SeqNum(0) },
            len,
            wnd: self.settings.window_payload(),
            flags,
            sack: SackBlocks::default(),
            timestamps: timestamps
                .then(|| Timestamps { value: timestamp(now), echo: self.ts_recent.unwrap_or(0) }),
        };
        let size = self.header + option_bytes(&segment, &self.settings) + Bytes(u64::from(len));
        let Connection { src, dst, flow } = self.connection;
        out.send(Port::ONLY, Packet { src, dst, flow, size, body: Body::Tcp(segment) });
        self.stats.segments_sent += 1;
        self.stats.wire_bytes_sent += size;
        self.stats.payload_sent += Bytes(u64::from(len));
        self.last_sent = now;
        (segment.seq_len(), size)
    }

    /// Remembers the peer's timestamp for the echo (RFC 7323 section 4.3).
    pub(super) fn note_timestamp(&mut self, segment: &Segment) {
        if let Some(ts) = segment.timestamps {
            self.ts_recent = Some(latest_timestamp(self.ts_recent, ts.value));
        }
    }

    /// SYN is acknowledged, which opens no window (RFC 5681 section 3.1).
    pub(super) fn establish(&mut self, now: Time, segment: &Segment) {
        self.acknowledge(now, segment);
        if self.timed_out_at.is_some() {
            self.rtt.restart_after_lost_syn();
        }
    }

    /// Whether the receiver's window keeps in the segment that is due next.
    pub(super) fn window_is_shut(&self) -> bool {
        self.sendable(self.snd_una, self.rwnd).is_none()
    }

    /// Goes on after the receiver's window was shut: what probes carried is sent again in whole
    /// segments, under the retransmission timer.
    pub(super) fn leave_probing(&mut self, now: Time) {
        self.go_back();
        self.rearm(now);
        self.restart_after_idle(now);
    }
}

/// The later of the timestamp kept for the echo and the one that arrived: packets may overtake each
/// other (RFC 7323 section 4.3).
pub(super) fn latest_timestamp(recent: Option<u32>, arrived: u32) -> u32 {
    recent.filter(|recent| (arrived.wrapping_sub(*recent) as i32) < 0).unwrap_or(arrived)
}

/// The timestamp clock: microseconds, modulo 2³² (RFC 7323 section 5.4 asks for 1 ms to 1 s; a finer
/// clock wraps after 71 minutes, far longer than a segment lives).
pub(super) fn timestamp(now: Time) -> u32 {
    (now.as_nanos() / 1_000) as u32
}
