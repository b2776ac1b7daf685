//! The state of a sender, and the operations that every flavour shares.

mod loss;
mod marks;
mod output;
mod pacing;
mod reactions;
#[cfg(test)]
mod tests;
mod timeouts;

use alloc::vec::Vec;

use lasthop_base::{Bytes, Duration, Time};

use self::marks::Marks;
use self::pacing::Pace;
pub use self::timeouts::BLACK_HOLE_AFTER;
use self::timeouts::TimeoutRow;
use super::action::Action;
use super::cc::{self, AckInfo, Demand, Limit, RateSample, RttInfo, Sending, Window};
use super::detection::{Copies, Duplicates};
use super::ecn::EcnMode;
use super::paws::{RecentTimestamp, timestamp};
use super::ranges::Ranges;
use super::reaction::Reactions;
use super::rtt::RttEstimator;
use super::samples::Samples;
use super::sent::Records;
use super::settings::{IdleRestart, RttArithmetic, Settings};
use super::timers::{Ticker, Timer, Timers, on_wheel};
use super::{Connection, SenderStats, Transfer};
use crate::component::Out;
use crate::packet::{Segment, SeqNum};

/// The state of a sending TCP (RFC 9293 section 3.3.1) and the operations that flavours and reactions use.
#[derive(Debug)]
pub struct SenderState {
    connection: Connection,
    pub(super) mss: u32,
    /// Limit of `mss` by the peer and the path.
    pub(super) largest_mss: u32,
    header: Bytes,
    pub(super) settings: Settings,
    /// Initial sequence number: that of SYN, or of the first byte if there is no handshake.
    pub(super) iss: SeqNum,
    pub(super) snd_una: SeqNum,
    pub(super) snd_nxt: SeqNum,
    /// One past the highest sequence number ever sent.
    pub(super) snd_max: SeqNum,
    /// Bytes supplied by the application and not yet sent, beyond `snd_max`.
    pub(super) unsent: u64,
    /// Total bytes supplied by the application.
    supplied: u64,
    /// Whether the application has closed the stream.
    pub(super) closed: bool,
    /// Whether Nagle's algorithm holds back short segments while data are outstanding; never once the stream
    /// is closed.
    pub(super) nagle: bool,
    fin_sent: bool,
    /// The window advertised to the peer.
    own_window: u32,
    pub(super) rwnd: u32,
    /// The largest window that the receiver has advertised (RFC 9293 section 3.8.6.2.1: Max(SND.WND)). Its
    /// buffer may be smaller than ours: the SYN-ACK advertises it, or both ends are configured with it.
    pub(super) largest_rwnd: u32,
    /// Next sequence number expected from the peer.
    pub(super) rcv_nxt: SeqNum,

    cc: cc::Chosen,
    /// Whether the controller takes more round-trip times, rate samples, and whether it sets the window during recovery.
    takes_rtts: bool,
    takes_samples: bool,
    governs_recovery: bool,
    /// Whether the controller takes every loss for a sign of its model of the path, or has no window to reduce.
    models_path: bool,
    /// Whether the controller heeds a loss that a reaction classifies.
    heeds_judgement: bool,
    /// Whether the sender is paced at the controller's rate; only recovery with records supports pacing.
    is_paced: bool,
    /// Whether the sender is in fast recovery, where duplicate ACKs inflate the window. Not set by SACK
    /// recovery.
    pub(super) recovering: bool,
    /// Bytes by which recovery inflates the window, for packets known to have left the network.
    pub(super) inflation: u32,
    pub(super) duplicates: Duplicates,
    /// Bytes sent by limited transmit since the last new acknowledgement.
    pub(super) limited: u32,
    /// Whether the last loss reduced the window.
    pub(super) cut: bool,
    /// Ranges reported by SACK.
    pub(super) sacked: Ranges,

    pub(super) rtt: RttEstimator,
    samples: Samples,
    /// Copies that may be in flight, if the flavour distinguishes copies.
    copies: Option<Copies>,
    /// Whether recovery uses records of the outstanding segments; otherwise there are none.
    pub(super) keeps_records: bool,
    pub(super) records: Records,
    pace: Pace,
    pub(super) timers: Timers,
    /// The clock of the retransmission timer and of those beside it.
    ticker: Ticker,
    /// When the retransmission timer would expire had reactions not restarted it; `None` if they have not since it was set.
    unrestarted: Option<Time>,
    row: TimeoutRow,
    pub(super) ecn: Marks,
    last_sent: Time,
    /// The last transmission before the idle period after which the window was last reduced.
    restarted_since: Option<Time>,
    /// Arrival time of the last acceptable segment of the peer.
    pub(super) last_received: Time,
    /// Start of the wait for a response from the peer: when data became outstanding, or at the first window
    /// probe after an answered one.
    pub(super) waiting_since: Time,
    pub(super) ts_recent: RecentTimestamp,
    pub(super) stats: SenderStats,
    /// First sequence numbers of the segments that reactions have requested; sent after the hook returns.
    requested: Vec<SeqNum>,
    reactions: Reactions,
    /// Whether a reaction has set the window since an ongoing reduction last looked.
    window_was_set: bool,
    /// Whether segments have neither options nor marks, and are seen by neither records nor reactions.
    pub(super) sends_plainly: bool,
}

impl SenderState {
    pub(super) fn new(
        connection: Connection,
        settings: &Settings,
        transfer: Transfer,
        reactions: Reactions,
    ) -> SenderState {
        let mss = settings.mss();
        let iss = SeqNum(settings.iss);
        let rwnd = settings.first_window();
        let control = settings.congestion.control();
        let cc = control.build(settings, connection.flow);
        let has_options = settings.stamps() || settings.first_ecn_mode() != EcnMode::Off;
        let sends_plainly = !has_options && !settings.keeps_records() && reactions.is_empty();
        SenderState {
            connection,
            mss,
            largest_mss: mss,
            header: settings.header,
            iss,
            snd_una: iss,
            snd_nxt: iss,
            snd_max: iss,
            unsent: transfer.bytes.unwrap_or(u64::MAX),
            supplied: transfer.bytes.unwrap_or(u64::MAX),
            closed: true,
            nagle: false,
            fin_sent: false,
            own_window: rwnd,
            rwnd,
            largest_rwnd: if settings.handshake { 0 } else { rwnd },
            // Without a handshake, the peer starts at the same sequence number.
            rcv_nxt: iss,
            takes_rtts: true,
            takes_samples: control.needs_samples,
            governs_recovery: control.limit != Limit::Window,
            models_path: matches!(control.limit, Limit::Model | Limit::Receiver),
            heeds_judgement: (control.ignores)(Action::Judge).is_none(),
            is_paced: settings.keeps_records() && (settings.pacing || control.needs_pacing),
            cc,
            recovering: false,
            inflation: 0,
            duplicates: Duplicates::new(settings),
            cut: false,
            limited: 0,
            sacked: Ranges::default(),
            rtt: RttEstimator::new(settings),
            samples: Samples::new(settings),
            copies: settings.timestamps_are_unique().then(Copies::default),
            keeps_records: settings.keeps_records(),
            records: Records::default(),
            pace: Pace::default(),
            timers: Timers::STOPPED,
            ticker: Ticker::new(settings.tick),
            unrestarted: None,
            row: TimeoutRow::default(),
            ecn: Marks::new(settings.first_ecn_mode(), settings.codepoint()),
            last_sent: Time::ZERO,
            restarted_since: None,
            last_received: Time::ZERO,
            waiting_since: Time::ZERO,
            ts_recent: RecentTimestamp::default(),
            stats: SenderStats::default(),
            requested: Vec::new(),
            reactions,
            window_was_set: false,
            sends_plainly,
            settings: settings.clone(),
        }
    }

    // ---- queries ---------------------------------------------------------------------------------

    pub(super) fn window(&self) -> &Window {
        self.cc.window()
    }

    /// The window, for recovery that fills it gradually.
    pub(super) fn window_mut(&mut self) -> &mut Window {
        self.cc.window_mut()
    }

    /// Whether the controller also sets the window during recovery.
    pub(super) fn governs_recovery(&self) -> bool {
        self.governs_recovery
    }

    /// Copies that may be in flight. Panics unless the flavour distinguishes copies.
    pub(super) fn copies(&mut self) -> &mut Copies {
        self.copies.as_mut().expect("the flavour distinguishes copies")
    }

    pub(super) fn outstanding(&self) -> bool {
        self.snd_una != self.snd_max
    }

    /// Bytes sent and not acknowledged (RFC 5681: FlightSize).
    pub(super) fn flight_size(&self) -> u32 {
        self.snd_max - self.snd_una
    }

    /// Bytes sent since the sender last went back to the left edge; a timeout marks all outstanding data as
    /// lost. A loss reduces the window based on this value, and without SACK it is the pipe.
    pub(super) fn sent_since_step_back(&self) -> u32 {
        self.snd_nxt - self.snd_una
    }

    /// Whether the peer has been silent for longer than the user timeout (RFC 9293 section 3.8.3; RFC 5482:
    /// USER TIMEOUT), while the connection `opens` or after.
    pub(super) fn peer_is_lost(&self, now: Time, opens: bool) -> bool {
        let silence = now.since(self.last_received.max(self.waiting_since));
        self.settings.patience(opens).is_some_and(|longest| silence >= longest)
    }

    /// Whether data or FIN remain to be sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.unsent > 0 || (self.settings.close && self.closed && !self.fin_sent)
    }

    // ---- operations ------------------------------------------------------------------------------

    /// Records a window of `bytes` advertised by the receiver.
    pub(super) fn note_window(&mut self, bytes: u32) {
        self.rwnd = bytes;
        self.largest_rwnd = self.largest_rwnd.max(bytes);
    }

    /// Adds `bytes` from the application. If nothing was outstanding, the window restarts after an idle
    /// timeout, and duplicate ACKs received meanwhile do not count.
    pub(super) fn supply(&mut self, now: Time, bytes: u64) {
        assert!(!self.closed, "the stream is closed");
        self.supplied += bytes;
        self.unsent += bytes;
        if bytes > 0 && !self.outstanding() {
            self.restart_after_idle(now);
            self.duplicates.end_row();
        }
    }

    /// Closes the stream: no more data follow.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.nagle = false;
    }

    /// Processes an acknowledgement of new data: advances the left edge, restarts the timer (RFC 6298
    /// sections 5.2, 5.3) and returns the round-trip sample, if any.
    #[inline(always)]
    pub(super) fn acknowledge(&mut self, now: Time, segment: &Segment) -> Option<Duration> {
        self.advance(segment.ack);
        if self.keeps_records {
            self.records.segments.acknowledge(segment.ack, |_| {});
        }
        let rtt = self.sample(now, segment);
        self.rearm(now);
        self.duplicates.end_row();
        self.limited = 0;
        rtt
    }

    /// Advances the left edge of the window to `ack`, but not that of the records.
    #[inline(always)]
    pub(super) fn advance(&mut self, ack: SeqNum) {
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
        self.sacked.forget_before(ack);
        if let Some(copies) = &mut self.copies {
            copies.forget_before(ack);
        }
        self.duplicates.acknowledge(ack);
        self.ecn.advance(ack);
    }

    /// Takes the round-trip sample of an acknowledgement, if any.
    #[inline(always)]
    pub(super) fn sample(&mut self, now: Time, segment: &Segment) -> Option<Duration> {
        let sent = self.samples.on_ack(segment.ack);
        let sent = self.echoed_at(now, segment).or(sent)?;
        self.rtt.sample(sent, now);
        let rtt = now.since(sent);
        self.count_rtt(rtt);
        Some(rtt)
    }

    /// The transmission time of the segment whose timestamp `segment` echoes. An echo from before the
    /// connection began is ignored (RFC 7323 section 4.2 does not define the echo before the first
    /// timestamp).
    #[inline]
    pub(super) fn echoed_at(&self, now: Time, segment: &Segment) -> Option<Time> {
        let echo = segment.timestamps?.echo;
        let elapsed = timestamp(now).wrapping_sub(echo);
        // Unique timestamps within a burst run a few microseconds ahead of the clock, and a peer may echo a
        // timestamp that was never sent.
        let elapsed = if elapsed > u32::MAX / 2 { 0 } else { elapsed };
        now.as_nanos().checked_sub(u64::from(elapsed) * 1_000).map(Time::from_nanos)
    }

    /// The acknowledgement of data sent during recovery ends the backoff, but gives no sample.
    pub(super) fn end_backoff_if_timed(&mut self, ack: SeqNum) {
        if self.samples.on_ack(ack).is_some() {
            self.rtt.end_backoff();
        }
    }

    /// Ends recovery: a window that the loss reduced is set to the threshold, or to one segment more than the
    /// data in flight if that is less (RFC 6582 section 3.2 step 3, option 1).
    pub(super) fn leave_recovery(&mut self) {
        if self.cut {
            let limit = self.sent_since_step_back().max(self.mss) + self.mss;
            self.cc.on_recovered(limit);
        }
    }

    /// Ends recovery with records, which began with a reduction to `target` bytes: the window is set to
    /// `target`.
    pub(super) fn end_reduction(&mut self, target: u32) {
        if self.cut {
            self.cc.on_recovered(target);
        } else if !self.governs_recovery() {
            self.window_mut().set_cwnd(f64::from(target));
        }
    }

    /// Deflates a window that the loss reduced by `bytes`, until recovery ends.
    pub(super) fn deflate(&mut self, bytes: u32) {
        if self.cut {
            let least = self.mss;
            self.window_mut().deflate(bytes, least);
        }
    }

    /// Makes the inflation of the window permanent, if a loss has reduced the window.
    pub(super) fn keep_inflation(&mut self, bytes: u32) {
        if self.cut {
            let window = self.window_mut();
            window.set_cwnd(window.cwnd() + f64::from(bytes));
        }
    }

    /// Restarts the retransmission timer if data are outstanding, and stops it otherwise.
    #[inline(always)]
    pub(super) fn rearm(&mut self, now: Time) {
        self.count_restarts(now, false);
        let deadline = if self.outstanding() { self.expiry(now, self.rtt.rto()) } else { Time::NEVER };
        self.set_retransmission_timer(deadline);
    }

    /// Expiry time of a timer set at `now` for `delay`, on the profile's clock.
    #[inline]
    pub(super) fn expiry(&self, now: Time, delay: Duration) -> Time {
        match self.settings.rtt_arithmetic {
            RttArithmetic::Linux => on_wheel(now, delay, self.ticker),
            _ => now + delay,
        }
    }

    /// Sets the retransmission timer and stops the persist timer.
    fn set_retransmission_timer(&mut self, deadline: Time) {
        self.timers.stop(Timer::Persist);
        self.timers.set(Timer::Retransmission, deadline);
    }

    /// Sets the persist timer and stops the retransmission timer.
    pub(super) fn set_persist_timer(&mut self, deadline: Time) {
        self.timers.stop(Timer::Retransmission);
        self.timers.set(Timer::Persist, deadline);
    }

    /// Whether the retransmission or the persist timer runs.
    pub(super) fn timer_runs(&self) -> bool {
        self.timers.runs(Timer::Retransmission) || self.timers.runs(Timer::Persist)
    }

    /// Grows the congestion window for `acked` bytes.
    #[inline(always)]
    pub(super) fn open_window(&mut self, now: Time, acked: u32, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.note_rtt(now, rtt);
        }
        self.grow(now, acked, self.duplicates.count == 0 && self.sacked.is_empty());
    }

    /// Notifies the controller of `acked` bytes outside of recovery.
    #[inline(always)]
    pub(super) fn grow(&mut self, now: Time, acked: u32, undisturbed: bool) {
        let (una, max) = (self.snd_una, self.snd_max);
        let ack = AckInfo { now, acked, una, max, undisturbed };
        self.cc.on_ack(&ack);
    }

    /// Counts a round-trip time.
    #[inline]
    pub(super) fn count_rtt(&mut self, rtt: Duration) {
        self.stats.rtt_samples += 1;
        self.stats.rtt_sum += rtt;
    }

    /// Notifies the controller of a round-trip time.
    pub(super) fn note_rtt(&mut self, now: Time, rtt: Duration) {
        if self.takes_rtts {
            let info = RttInfo { now, rtt, una: self.snd_una, max: self.snd_max };
            self.takes_rtts = self.cc.on_rtt(&info);
        }
    }

    /// Notifies the controller of each segment marked lost since the last call, except losses to corruption.
    #[inline]
    pub(super) fn report_losses(&mut self, now: Time) {
        if self.records.segments.has_unreported_losses() {
            self.report_new_losses(now);
        }
    }

    fn report_new_losses(&mut self, now: Time) {
        let Self { stats, reactions, .. } = self;
        let counts = u64::from(self.models_path && self.heeds_judgement);
        let is_corruption = |seq| {
            let is_corruption = reactions.is_corruption(seq);
            stats.reactions += counts * u64::from(is_corruption);
            is_corruption
        };
        self.records.take_losses(now, self.mss, is_corruption, |lost| self.cc.on_lost_segment(lost));
    }

    /// Passes a rate sample to the controller and updates the pacing rate.
    pub(super) fn on_sample(&mut self, sample: &RateSample) {
        if self.cc.on_sample(sample) == Demand::Limited {
            self.note_application_limited();
        }
        self.update_pacing_rate();
    }

    /// Whether the controller takes rate samples.
    pub(super) fn takes_samples(&self) -> bool {
        self.takes_samples
    }

    /// Ends the processing of an acknowledgement whose rate sample the controller does not take.
    pub(super) fn skip_sample(&mut self) {
        self.records.rate.end_acknowledgement();
        self.update_pacing_rate();
    }

    /// Marks samples as application-limited until the data now in flight are delivered.
    pub(super) fn note_application_limited(&mut self) {
        let mss = u64::from(self.mss);
        let records = &mut self.records;
        records.rate.note_application_limited(u64::from(records.segments.counts().in_flight) * mss);
    }

    /// Called when a segment is sent while no other is in flight.
    pub(super) fn note_flight(&mut self, now: Time) {
        if self.stats.segments_sent > 0 {
            let application_limited = self.records.rate.is_application_limited();
            let sending = Sending { now, idle: now.since(self.last_sent), application_limited };
            self.cc.on_flight(&sending);
            self.update_pacing_rate();
        }
    }

    /// Called before each attempt to send.
    pub(super) fn begin_sending(&mut self, now: Time) {
        if !self.outstanding() && self.has_unsent() {
            self.restart_before_sending(now);
        }
    }

    /// Undoes a spurious reduction of the window `before`.
    pub(super) fn undo(&mut self, before: &Window) {
        self.stats.undone_reductions += 1;
        let before = before.in_segments_of(self.window().mss());
        self.cc.on_undo(&before);
    }

    /// Reduces the window after an idle period longer than the timeout, when it no longer reflects the network,
    /// once for each such period.
    fn restart_after_idle(&mut self, now: Time) {
        let begun = self.stats.segments_sent > 0;
        let (idle, rto) = (now.since(self.last_sent), self.rtt.rto());
        if begun && idle > rto && self.restarted_since != Some(self.last_sent) {
            self.restarted_since = Some(self.last_sent);
            let timeouts = (idle.as_nanos() - 1) / rto.as_nanos().max(1);
            let timeouts = u32::try_from(timeouts).unwrap_or(u32::MAX);
            self.cc.on_idle(self.settings.idle_restart, timeouts);
        }
    }

    /// Reduces the window after an idle period before data are sent that the receiver's window had kept back. The rule of Linux does
    /// not: it looks for idle periods when the application writes.
    fn restart_before_sending(&mut self, now: Time) {
        if self.settings.idle_restart == IdleRestart::InitialWindow {
            self.restart_after_idle(now);
        }
    }

    /// Stores the peer's timestamp for the echo (RFC 7323 section 4.3).
    pub(super) fn note_timestamp(&mut self, now: Time, segment: &Segment) {
        if let Some(ts) = segment.timestamps {
            self.ts_recent.note(now, ts.value);
        }
    }

    /// Processes the acknowledgement of SYN, which does not grow the window (RFC 5681 section 3.1).
    pub(super) fn establish(&mut self, now: Time, segment: &Segment) {
        if let Some(rtt) = self.acknowledge(now, segment) {
            self.note_handshake(now, rtt);
        }
        if self.row.at.is_some() {
            self.rtt.restart_after_lost_syn();
        }
    }

    /// Processes the round-trip time of a handshake that took place elsewhere; `None` if SYN was
    /// retransmitted.
    pub(super) fn settle_handshake(&mut self, now: Time, rtt: Option<Duration>) {
        self.last_received = now;
        if let Some(rtt) = rtt {
            self.rtt.sample(Time::from_nanos(now.as_nanos().saturating_sub(rtt.as_nanos())), now);
            self.note_handshake(now, rtt);
        } else {
            self.rtt.restart_after_lost_syn();
            if self.settings.is_controlled() {
                let mss = self.mss;
                self.window_mut().set_initial(mss);
                self.close_window();
            }
        }
    }

    fn note_handshake(&mut self, now: Time, rtt: Duration) {
        let info = RttInfo { now, rtt, una: self.snd_una, max: self.snd_max };
        self.cc.on_established(&info);
        self.update_pacing_rate();
    }

    /// Called before a zero-window probe. A peer that has answered all earlier probes keeps the connection
    /// alive (RFC 9293 section 3.8.6.1).
    pub(super) fn note_probe(&mut self, now: Time) {
        if self.last_received >= self.last_sent {
            self.waiting_since = now;
        }
    }

    /// Resumes after the receiver's window reopens: data sent by probes are retransmitted in full segments,
    /// under the retransmission timer.
    pub(super) fn leave_probing(&mut self, now: Time, out: &mut Out) {
        self.go_back();
        self.rearm(now);
        self.restart_before_sending(now);
        // By their record, the bytes of a probe would be retransmitted on their own.
        if self.keeps_records && self.outstanding() && self.flight_size() < self.mss {
            let len = self.len_at(self.snd_una).min(self.rwnd);
            let occupied = self.emit(now, self.snd_una, len, out);
            self.snd_nxt = self.snd_nxt.max(self.snd_una + occupied);
        }
    }
}
