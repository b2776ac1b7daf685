//! What a sender knows, and the steps that every flavour shares.

mod loss;
mod output;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Duration, Time};

use super::cc::{self, AckInfo, Controller, RateSample, RttInfo, Sending, Window};
use super::detection::{Copies, Duplicates};
use super::paws::RecentTimestamp;
use super::ranges::Ranges;
use super::reaction::{Evidence, Hole, Reaction, Reactions};
use super::rtt::RttEstimator;
use super::samples::Samples;
use super::segment::{Flags, Segment};
use super::sent::Records;
use super::seq::SeqNum;
use super::settings::Settings;
use super::timers::{Timer, Timers};
use super::{Connection, SenderStats, Transfer};
use crate::packet::{Ecn, Notice};

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
    pub(super) unsent: u64,
    /// All data that the application has had so far.
    supplied: u64,
    /// No more data are to come from the application.
    pub(super) closed: bool,
    /// Short segments wait while data are outstanding; not once the stream is closed.
    pub(super) nagle: bool,
    fin_sent: bool,
    pub(super) rwnd: u32,
    /// The largest window that the receiver has had (RFC 9293 section 3.8.6.2.1: Max(SND.WND)). Its buffer may
    /// be smaller than ours: SYN-ACK says so, or both ends know it.
    pub(super) largest_rwnd: u32,
    /// Next sequence number expected from the peer.
    pub(super) rcv_nxt: SeqNum,

    cc: Box<dyn Controller>,
    /// Fast recovery is under way, in which duplicates extend the window; recovery by SACK is none.
    pub(super) recovering: bool,
    /// Bytes by which recovery extends the window, for packets known to have left the network.
    pub(super) inflation: u32,
    pub(super) duplicates: Duplicates,
    /// Bytes sent by limited transmit since the last new acknowledgement.
    pub(super) limited: u32,
    /// The last loss has closed the window.
    pub(super) cut: bool,
    /// What the receiver has reported by SACK.
    pub(super) sacked: Ranges,

    pub(super) rtt: RttEstimator,
    samples: Samples,
    /// What may be under way, if copies are told apart.
    copies: Option<Copies>,
    /// What was sent and is outstanding, if recovery goes by records.
    pub(super) records: Option<Records>,
    pace: Pace,
    pub(super) timers: Timers,
    /// `snd_una` when the timer last ran out.
    timed_out_at: Option<SeqNum>,
    pub(super) ecn: Negotiated,
    last_sent: Time,
    /// When the peer was last heard of.
    pub(super) heard: Time,
    /// Since when the peer owes an answer: when something became outstanding, or a window was probed whose
    /// last probe had been answered.
    pub(super) asked_since: Time,
    pub(super) ts_recent: RecentTimestamp,
    pub(super) stats: SenderStats,
    /// Where the segments begin that reactions have asked for; they are sent once the hook has returned.
    asked: Vec<SeqNum>,
    reactions: Reactions,
    /// A reaction has set the window, and a reduction that is under way does not know of it.
    window_was_set: bool,
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
        let rwnd = settings.window_payload();
        SenderState {
            connection,
            mss,
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
            rwnd,
            largest_rwnd: if settings.handshake { 0 } else { rwnd },
            // The peer's numbers begin where ours do, and without a handshake nothing says so.
            rcv_nxt: iss,
            cc: cc::of(settings, connection.flow),
            recovering: false,
            inflation: 0,
            duplicates: Duplicates::new(settings),
            cut: false,
            limited: 0,
            sacked: Ranges::default(),
            rtt: RttEstimator::new(settings),
            samples: Samples::new(settings),
            copies: settings.tells_copies().then(Copies::default),
            records: settings.keeps_records().then(Records::default),
            pace: Pace::default(),
            timers: Timers::STOPPED,
            timed_out_at: None,
            ecn: Negotiated { agreed: settings.ecn && !settings.handshake, ..Negotiated::default() },
            last_sent: Time::ZERO,
            heard: Time::ZERO,
            asked_since: Time::ZERO,
            ts_recent: RecentTimestamp::default(),
            stats: SenderStats::default(),
            asked: Vec::new(),
            reactions,
            window_was_set: false,
            settings: settings.clone(),
        }
    }

    // ---- what reactions may do -------------------------------------------------------------------

    /// Starts the retransmission timer anew with the value it has, backoff included; does nothing if
    /// no data are outstanding.
    pub fn restart_timer(&mut self, now: Time) {
        if self.outstanding() {
            self.set_retransmission_timer(now + self.rtt.rto());
        }
    }

    /// Shrinks the congestion window to one segment; slow start opens it again. Without congestion control
    /// it stays as it is.
    pub fn shrink_window_to_one_segment(&mut self) {
        if self.settings.is_controlled() {
            self.set_window(self.mss);
        }
    }

    /// Sets the congestion window to `bytes`. Without congestion control it stays there: nothing else moves
    /// it.
    pub fn set_window(&mut self, bytes: u32) {
        self.window_mut().set_cwnd(f64::from(bytes));
        self.window_was_set = true;
    }

    /// Whether a reaction has asked for a segment.
    pub(super) fn asks(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Whether the window was set from outside of recovery since the last question.
    pub(super) fn take_window_was_set(&mut self) -> bool {
        core::mem::take(&mut self.window_was_set)
    }

    /// Asks that the segment at `seq` be sent again as soon as the hook has returned, whatever the window
    /// lets out. Says whether it will: not what is acknowledged, not what is still to be sent (for the
    /// first time, or again after a timeout), not what the receiver has reported by SACK, and not SYN.
    /// No loss is answered by it; the segment at the left edge restarts the timer, as a fast retransmit
    /// does.
    pub fn resend(&mut self, seq: SeqNum) -> bool {
        let is_syn = self.settings.handshake && seq == self.iss;
        let under_way = seq >= self.snd_una && seq < self.snd_nxt && !is_syn;
        let wanted = under_way && self.sacked.around(seq).is_none();
        if wanted {
            self.asked.push(seq);
        }
        wanted
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

    // ---- what reactions may see ------------------------------------------------------------------

    /// The first sequence number not acknowledged (RFC 9293 section 3.3.1: SND.UNA).
    pub fn snd_una(&self) -> SeqNum {
        self.snd_una
    }

    /// The next sequence number to be sent (SND.NXT); a timeout sets it back.
    pub fn snd_nxt(&self) -> SeqNum {
        self.snd_nxt
    }

    /// One past the highest sequence number ever sent.
    pub fn snd_max(&self) -> SeqNum {
        self.snd_max
    }

    /// The settings of the connection.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Payload of a full segment as it is now, in bytes.
    pub fn mss(&self) -> u32 {
        self.mss
    }

    /// The congestion window, without what recovery adds to it, in bytes.
    pub fn cwnd(&self) -> f64 {
        self.window().cwnd()
    }

    /// The slow-start threshold, in bytes.
    pub fn ssthresh(&self) -> f64 {
        self.window().ssthresh()
    }

    /// Duplicate acknowledgements in a row.
    pub fn dupacks(&self) -> u32 {
        self.duplicates.count
    }

    // ---- questions -------------------------------------------------------------------------------

    /// The outstanding segments. Only for recovery that goes by records.
    pub(super) fn records(&self) -> &Records {
        self.records.as_ref().expect("recovery goes by records")
    }

    /// The outstanding segments. Only for recovery that goes by records.
    pub(super) fn records_mut(&mut self) -> &mut Records {
        self.records.as_mut().expect("recovery goes by records")
    }

    pub(super) fn window(&self) -> &Window {
        self.cc.window()
    }

    /// The window, for recovery that fills it by and by.
    pub(super) fn window_mut(&mut self) -> &mut Window {
        self.cc.window_mut()
    }

    /// Whether the controller sets the window during recovery too.
    pub(super) fn governs_recovery(&self) -> bool {
        self.cc.governs_recovery()
    }

    /// What may be under way. Only for flavours that tell copies apart.
    pub(super) fn copies(&mut self) -> &mut Copies {
        self.copies.as_mut().expect("the flavour tells copies apart")
    }

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

    /// Whether the peer has been silent for longer than it may be (RFC 9293 section 3.8.3; RFC 5482: USER
    /// TIMEOUT).
    pub(super) fn peer_is_lost(&self, now: Time) -> bool {
        let silence = now.since(self.heard.max(self.asked_since));
        self.settings.user_timeout.is_some_and(|longest| silence >= longest)
    }

    /// Whether data wait to be sent, or FIN does.
    pub(super) fn has_unsent(&self) -> bool {
        self.unsent > 0 || (self.settings.close && self.closed && !self.fin_sent)
    }

    // ---- steps -----------------------------------------------------------------------------------

    /// The receiver advertises a window of `bytes`.
    pub(super) fn note_window(&mut self, bytes: u32) {
        self.rwnd = bytes;
        self.largest_rwnd = self.largest_rwnd.max(bytes);
    }

    /// The application has `bytes` more to send. If nothing was outstanding, the window starts again after
    /// an idle timeout, and what repeated an acknowledgement meanwhile was no sign of a loss.
    pub(super) fn supply(&mut self, now: Time, bytes: u64) {
        assert!(!self.closed, "the stream is closed");
        self.supplied += bytes;
        self.unsent += bytes;
        if bytes > 0 && !self.outstanding() {
            self.restart_after_idle(now);
            self.duplicates.end_row();
        }
    }

    /// The application has no more to send.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.nagle = false;
    }

    /// Calls a hook of each reaction. They are out of their place meanwhile, so that they may be given the sender.
    #[inline]
    fn react(&mut self, hook: impl FnMut(&mut dyn Reaction, &mut SenderState)) {
        if !self.reactions.is_empty() {
            self.call_reactions(hook);
        }
    }

    fn call_reactions(&mut self, mut hook: impl FnMut(&mut dyn Reaction, &mut SenderState)) {
        let mut reactions = core::mem::take(&mut self.reactions);
        reactions.each().for_each(|reaction| hook(reaction, self));
        self.reactions = reactions;
        self.timers.set(Timer::Reaction, self.reactions.next_wakeup());
    }

    /// A timer of the reactions ran out.
    ///
    /// # Panics
    /// If a reaction does not set its timer to a later time.
    pub(super) fn wake_reactions(&mut self, now: Time) {
        self.react(|reaction, tcp| {
            if reaction.next_wakeup() <= now {
                reaction.on_timer(now, tcp);
                assert!(reaction.next_wakeup() > now, "{reaction:?} has not set its timer anew");
            }
        });
    }

    /// The connection is about to begin.
    pub(super) fn begin(&mut self, now: Time) {
        self.stats.started = Some(now);
        self.react(|reaction, tcp| reaction.on_start(now, tcp));
    }

    /// A control message arrived.
    pub(super) fn take_notice(&mut self, now: Time, notice: &Notice) {
        self.stats.notices += 1;
        self.react(|reaction, tcp| reaction.on_notice(now, notice, tcp));
    }

    /// A segment of the peer is about to be processed.
    pub(super) fn announce(&mut self, now: Time, segment: &Segment) {
        self.react(|reaction, tcp| reaction.on_segment(now, segment, tcp));
    }

    /// New data were acknowledged: moves the left edge, takes a sample and returns it if there is one,
    /// restarts the timer (RFC 6298 sections 5.2, 5.3).
    pub(super) fn acknowledge(&mut self, now: Time, segment: &Segment) -> Option<Duration> {
        self.advance(segment.ack);
        let rtt = self.sample(now, segment);
        self.rearm(now);
        self.duplicates.end_row();
        self.limited = 0;
        rtt
    }

    /// Moves the left edge of the window.
    pub(super) fn advance(&mut self, ack: SeqNum) {
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
        self.sacked.forget_before(ack);
        if let Some(copies) = &mut self.copies {
            copies.forget_before(ack);
        }
        if let Some(records) = &mut self.records {
            records.segments.acknowledge(ack, |_| {});
        }
        self.duplicates.acknowledge(ack);
        self.ecn.answered_at = self.ecn.answered_at.filter(|&answered| ack <= answered);
    }

    /// Takes the round-trip sample that an acknowledgement gives, if it gives one.
    pub(super) fn sample(&mut self, now: Time, segment: &Segment) -> Option<Duration> {
        let sent = self.samples.on_ack(segment.ack);
        let sent = self.echoed_at(now, segment).or(sent)?;
        self.rtt.sample(sent, now);
        Some(now.since(sent))
    }

    /// When the segment was sent whose timestamp `segment` echoes. An echo from before the connection began is
    /// none (RFC 7323 section 4.2 leaves it open what a peer sends that has nothing to echo).
    pub(super) fn echoed_at(&self, now: Time, segment: &Segment) -> Option<Time> {
        let echo = segment.timestamps?.echo;
        let elapsed = timestamp(now).wrapping_sub(echo);
        // A burst of segments that are told apart bears timestamps a few microseconds ahead; and a peer may
        // echo what was never sent.
        let elapsed = if elapsed > u32::MAX / 2 { 0 } else { elapsed };
        now.as_nanos().checked_sub(u64::from(elapsed) * 1_000).map(Time::from_nanos)
    }

    /// The acknowledgement of data sent during recovery gives no sample, but ends the backoff.
    pub(super) fn end_backoff_if_timed(&mut self, ack: SeqNum) {
        if self.samples.on_ack(ack).is_some() {
            self.rtt.end_backoff();
        }
    }

    /// Recovery has ended: a window that the loss closed is set to the threshold, or to a segment more
    /// than what is in flight if that is less (RFC 6582 section 3.2 step 3, option 1).
    pub(super) fn leave_recovery(&mut self) {
        if self.cut {
            let limit = self.sent_since_step_back().max(self.mss) + self.mss;
            self.cc.on_recovered(limit);
        }
    }

    /// Recovery by records has ended, which began with a reduction to `target` bytes: the window is that.
    pub(super) fn end_reduction(&mut self, target: u32) {
        if self.cut {
            self.cc.on_recovered(target);
        } else if !self.governs_recovery() {
            self.window_mut().set_cwnd(f64::from(target));
        }
    }

    /// Takes `bytes` out of a window that the loss closed, until recovery ends.
    pub(super) fn deflate(&mut self, bytes: u32) {
        if self.cut {
            let least = self.mss;
            self.window_mut().deflate(bytes, least);
        }
    }

    /// Sets the timer if data are outstanding, stops it otherwise.
    pub(super) fn rearm(&mut self, now: Time) {
        let deadline =
            if self.outstanding() { self.settings.expiry(now, self.rtt.rto()) } else { Time::NEVER };
        self.set_retransmission_timer(deadline);
    }

    /// The retransmission timer takes over from the persist timer.
    fn set_retransmission_timer(&mut self, deadline: Time) {
        self.timers.stop(Timer::Persist);
        self.timers.set(Timer::Retransmission, deadline);
    }

    /// The persist timer takes over from the retransmission timer.
    pub(super) fn set_persist_timer(&mut self, deadline: Time) {
        self.timers.stop(Timer::Retransmission);
        self.timers.set(Timer::Persist, deadline);
    }

    /// Whether the retransmission or the persist timer runs.
    pub(super) fn timer_runs(&self) -> bool {
        self.timers.runs(Timer::Retransmission) || self.timers.runs(Timer::Persist)
    }

    /// Opens the congestion window for `acked` bytes.
    pub(super) fn open_window(&mut self, now: Time, acked: u32, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.note_rtt(now, rtt);
        }
        self.grow(now, acked, rtt, self.duplicates.count == 0 && self.sacked.is_empty());
    }

    /// Tells the controller of `acked` bytes, outside of recovery.
    pub(super) fn grow(&mut self, now: Time, acked: u32, rtt: Option<Duration>, undisturbed: bool) {
        let (una, max) = (self.snd_una, self.snd_max);
        let ack = AckInfo { now, acked, flight: self.flight_size(), rtt, una, max, undisturbed };
        self.cc.on_ack(&ack);
    }

    /// Tells the controller of a round-trip time.
    pub(super) fn note_rtt(&mut self, now: Time, rtt: Duration) {
        let info = RttInfo { now, rtt, una: self.snd_una, max: self.snd_max };
        self.cc.on_rtt(&info);
    }

    /// Tells the controller of each segment found lost since the last call, unless corruption is to blame.
    pub(super) fn report_losses(&mut self, now: Time) {
        let records = self.records.as_mut().expect("recovery goes by records");
        let is_corruption = |seq| self.reactions.is_corruption(seq);
        records.take_losses(now, self.mss, is_corruption, |lost| self.cc.on_lost_segment(lost));
    }

    /// Tells the controller what an acknowledgement showed, and paces by what it makes of that.
    pub(super) fn on_sample(&mut self, sample: &RateSample) {
        self.cc.on_sample(sample);
        if self.cc.limits_itself() {
            self.note_application_limited();
        }
        self.update_pacing_rate();
    }

    /// Whether the controller's rate limits what leaves; only recovery by records obeys it.
    fn is_paced(&self) -> bool {
        self.records.is_some() && (self.settings.pacing || self.cc.needs_pacing())
    }

    fn update_pacing_rate(&mut self) {
        if self.is_paced() {
            self.pace.rate = self.rtt.srtt().map(|srtt| self.cc.pacing_rate(srtt));
        }
    }

    /// The rate at which segments leave, if something limits it, in bytes of payload per second.
    pub(super) fn pacing_rate(&self) -> Option<f64> {
        self.pace.rate
    }

    /// Whether a segment may leave now; if not, the pacing timer says when.
    pub(super) fn pacing_lets_out(&mut self, now: Time) -> bool {
        let waits = self.pace.rate.is_some() && self.pace.next > now;
        if waits {
            let counted_until =
                if self.timers.runs(Timer::Pacing) { self.timers.deadline(Timer::Pacing) } else { now };
            self.stats.pacing_wait += self.pace.next.since(counted_until);
            self.timers.set(Timer::Pacing, self.pace.next);
        }
        !waits
    }

    /// What is sent from now on shows less than the path can do, until what is in flight was delivered.
    pub(super) fn note_application_limited(&mut self) {
        let mss = u64::from(self.mss);
        let records = self.records_mut();
        records.rate.note_application_limited(u64::from(records.segments.counts().in_flight) * mss);
    }

    /// A segment goes out while no other is in flight.
    pub(super) fn note_flight(&mut self, now: Time) {
        if self.stats.segments_sent > 0 {
            let application_limited = self.records().rate.is_application_limited();
            let sending = Sending { now, idle: now.since(self.last_sent), application_limited };
            self.cc.on_flight(&sending);
            self.update_pacing_rate();
        }
    }

    /// Whether `segment` echoes a mark that was not answered yet (RFC 3168 section 6.1.2: once per window of
    /// data).
    #[inline]
    pub(super) fn is_marked(&mut self, segment: &Segment) -> bool {
        if !self.ecn.agreed || !segment.flags.has(Flags::ECE) || segment.flags.has(Flags::SYN) {
            return false;
        }
        self.stats.echoes += 1;
        self.ecn.answered_at.is_none_or(|answered| segment.ack > answered)
    }

    /// Whether `segment` echoes a mark: the window does not grow by it (RFC 3168 section 6.1.2).
    #[inline]
    pub(super) fn echoes_mark(&self, segment: &Segment) -> bool {
        self.ecn.agreed && segment.flags.has(Flags::ECE)
    }

    /// The window of data is answered for: no mark within it reduces the window again, whether a mark was the reason
    /// or a loss, and the next new segment tells the peer so (RFC 3168 section 6.1.2).
    pub(super) fn note_mark(&mut self) {
        self.ecn.answered_at = Some(self.snd_max);
        self.ecn.tells = true;
    }

    /// Answers a mark like a loss: asks what it means, and closes the window accordingly.
    pub(super) fn answer_mark(&mut self, now: Time) {
        self.note_mark();
        self.cut = false;
        self.judge(now, Hole { seq: self.snd_una, evidence: Evidence::Mark });
    }

    /// The flags and the ECN field of a segment with data: only new ones may be marked (RFC 3168 section
    /// 6.1.5), and the first after an answer says so.
    #[inline]
    fn mark_data(&mut self, new: bool) -> (Flags, Ecn) {
        if !self.ecn.agreed || !new {
            return (Flags::default(), Ecn::NotEct);
        }
        let tells = core::mem::take(&mut self.ecn.tells);
        (if tells { Flags::CWR } else { Flags::default() }, Ecn::Ect0)
    }

    /// What may be sent is about to be.
    pub(super) fn begin_sending(&mut self, now: Time) {
        if !self.outstanding() && self.has_unsent() {
            self.restart_after_idle(now);
        }
    }

    /// The reduction of the window `before` was no answer to a loss.
    pub(super) fn undo(&mut self, before: &Window) {
        self.stats.undone_reductions += 1;
        self.cc.on_undo(before);
    }

    /// After an idle time of one timeout the window says nothing about the network any more (RFC 5681
    /// section 4.1).
    fn restart_after_idle(&mut self, now: Time) {
        let begun = self.stats.segments_sent > 0;
        if self.settings.idle_restart && begun && now.since(self.last_sent) > self.rtt.rto() {
            self.cc.on_idle();
        }
    }

    /// Remembers the peer's timestamp for the echo (RFC 7323 section 4.3).
    pub(super) fn note_timestamp(&mut self, now: Time, segment: &Segment) {
        if let Some(ts) = segment.timestamps {
            self.ts_recent.note(now, ts.value);
        }
    }

    /// SYN is acknowledged, which opens no window (RFC 5681 section 3.1).
    pub(super) fn establish(&mut self, now: Time, segment: &Segment) {
        if let Some(rtt) = self.acknowledge(now, segment) {
            let info = RttInfo { now, rtt, una: self.snd_una, max: self.snd_max };
            self.cc.on_established(&info);
            self.update_pacing_rate();
        }
        if self.timed_out_at.is_some() {
            self.rtt.restart_after_lost_syn();
        }
    }

    /// A shut window is about to be probed. A peer that has answered all before may have nothing to say
    /// until then, and keeps the connection alive (RFC 9293 section 3.8.6.1).
    pub(super) fn note_probe(&mut self, now: Time) {
        if self.heard >= self.last_sent {
            self.asked_since = now;
        }
    }

    /// Goes on after the receiver's window was shut: what probes carried is sent again in whole
    /// segments, under the retransmission timer.
    pub(super) fn leave_probing(&mut self, now: Time) {
        self.go_back();
        self.rearm(now);
        self.restart_after_idle(now);
    }
}

/// What a sender knows of marks (RFC 3168).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Negotiated {
    /// The peer echoes marks.
    pub(super) agreed: bool,
    /// `snd_max` when a mark was last answered: no other is before this is acknowledged.
    answered_at: Option<SeqNum>,
    /// The next new segment tells the peer so.
    tells: bool,
}

/// When pacing lets out the next segment.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// Bytes of payload per second.
    rate: Option<f64>,
    next: Time,
}

impl Pace {
    /// `bytes` leave at `now`.
    fn on_sent(&mut self, now: Time, bytes: u32) {
        if let Some(rate) = self.rate.filter(|&rate| rate > 0.0) {
            self.next = now.max(self.next) + Duration::from_secs_f64(f64::from(bytes) / rate);
        }
    }
}

/// The timestamp clock: microseconds, modulo 2³² (RFC 7323 section 5.4 asks for 1 ms to 1 s; a finer
/// clock wraps after 71 minutes, far longer than a segment lives).
pub(super) fn timestamp(now: Time) -> u32 {
    (now.as_nanos() / 1_000) as u32
}
