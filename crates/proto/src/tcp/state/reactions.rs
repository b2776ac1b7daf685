//! What reactions of schemes see and do of a sender, and when they are called.

use lasthop_base::{Duration, Time};

use super::SenderState;
use crate::component::Reach;
use crate::packet::{Notice, Segment, SeqNum};
use crate::tcp::detection::Repeat;
use crate::tcp::reaction::{Reaction, Reactions};
use crate::tcp::rtt::RttEstimator;
use crate::tcp::settings::Settings;
use crate::tcp::timers::Timer;
use crate::tcp::{Connection, Transfer};

impl SenderState {
    /// A state of no connection. It takes the place of one that is lent to a reaction written in another language,
    /// which cannot hold references.
    pub fn stand_in(settings: &Settings) -> SenderState {
        let transfer = Transfer { bytes: Some(0), start: Time::ZERO };
        SenderState::new(Connection::default(), settings, transfer, Reactions::default())
    }

    /// Restarts the retransmission timer with its current value, backoff included; does nothing if no data
    /// are outstanding.
    pub fn restart_timer(&mut self, now: Time) {
        self.restart_timer_for(now, self.rtt.rto());
    }

    /// The same with `times` its current value.
    pub fn restart_timer_times(&mut self, now: Time, times: f64) {
        self.restart_timer_for(now, Duration::from_secs_f64(self.rtt.rto().as_secs_f64() * times));
    }

    fn restart_timer_for(&mut self, now: Time, timeout: Duration) {
        if self.outstanding() {
            let due = self.timers.deadline(Timer::Retransmission);
            let persists = self.timers.runs(Timer::Persist);
            let averted = self.unrestarted.is_some_and(|before| before < now);
            self.stats.reactions += u64::from(persists || averted);
            self.unrestarted = if averted { Some(due) } else { self.unrestarted.or(Some(due)) };
            self.set_retransmission_timer(now + timeout);
        }
    }

    /// Counts the restarts of the retransmission timer by reactions if they changed its expiry: without them, it would have
    /// expired before `now`, when something else sets it, or at another time than `now`, when it `expires`.
    #[inline(always)]
    pub(in crate::tcp) fn count_restarts(&mut self, now: Time, expires: bool) {
        if let Some(due) = self.unrestarted.take() {
            self.stats.reactions += u64::from(if expires { due != now } else { due < now });
        }
    }

    /// Reduces the congestion window to one segment, from which slow start reopens it. Does nothing without
    /// congestion control.
    pub fn shrink_window_to_one_segment(&mut self) {
        if self.settings.is_controlled() {
            self.set_window(self.mss);
        }
    }

    /// As [`shrink_window_to_one_segment`](SenderState::shrink_window_to_one_segment), for losses.
    pub(in crate::tcp) fn close_window(&mut self) {
        if self.settings.is_controlled() {
            self.replace_window(self.mss);
        }
    }

    /// Sets the congestion window to `bytes`. Without congestion control, it stays at this value.
    pub fn set_window(&mut self, bytes: u32) {
        self.stats.reactions += u64::from(self.cwnd() != f64::from(bytes));
        self.replace_window(bytes);
    }

    fn replace_window(&mut self, bytes: u32) {
        self.window_mut().set_cwnd(f64::from(bytes));
        self.window_was_set = true;
    }

    /// Whether there are reactions.
    pub(in crate::tcp) fn has_reactions(&self) -> bool {
        !self.reactions.is_empty()
    }

    /// Whether a reaction has requested a retransmission.
    pub(in crate::tcp) fn has_requested(&self) -> bool {
        !self.requested.is_empty()
    }

    /// Whether the window was set from outside recovery since the last call.
    pub(in crate::tcp) fn take_window_was_set(&mut self) -> bool {
        // Rarely set, and so rarely written.
        let was_set = self.window_was_set;
        if was_set {
            self.window_was_set = false;
        }
        was_set
    }

    /// Requests a retransmission of the segment at `seq` after the hook returns, regardless of the window.
    /// Returns whether the request is accepted: it is refused for acknowledged data, data yet to be sent (for
    /// the first time, or again after a timeout), data reported by SACK, and SYN. The retransmission does not
    /// count as a response to a loss. A segment at the left edge restarts the timer, as a fast retransmit
    /// does.
    pub fn resend(&mut self, seq: SeqNum) -> bool {
        let is_syn = self.settings.handshake && seq == self.iss;
        let under_way = seq >= self.snd_una && seq < self.snd_nxt && !is_syn;
        let wanted = under_way && self.sacked.around(seq).is_none();
        if wanted {
            self.requested.push(seq);
            self.stats.reactions += 1;
        }
        wanted
    }

    /// Sets the maximum payload of all later segments, new or retransmitted, to `mss` bytes, at most what
    /// the settings and the path allow. Windows keep their size in bytes, and the congestion controller keeps
    /// its segment size.
    ///
    /// # Panics
    /// If `mss` is zero.
    pub fn set_mss(&mut self, mss: u32) {
        self.stats.reactions += u64::from(self.mss != mss.min(self.largest_mss));
        self.replace_mss(mss);
    }

    pub(in crate::tcp) fn replace_mss(&mut self, mss: u32) {
        assert!(mss > 0, "a segment holds at least one byte");
        self.mss = mss.min(self.largest_mss);
    }

    /// The first sequence number not acknowledged (RFC 9293 section 3.3.1: SND.UNA).
    pub fn snd_una(&self) -> SeqNum {
        self.snd_una
    }

    /// The next sequence number to send (SND.NXT); a timeout moves it back.
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

    /// Current payload of a full segment, in bytes.
    pub fn mss(&self) -> u32 {
        self.mss
    }

    /// The round-trip estimator.
    pub fn round_trip(&self) -> &RttEstimator {
        &self.rtt
    }

    /// The congestion window in bytes, without inflation by recovery.
    pub fn cwnd(&self) -> f64 {
        self.window().cwnd()
    }

    /// The slow-start threshold, in bytes.
    pub fn ssthresh(&self) -> f64 {
        self.window().ssthresh()
    }

    /// Number of consecutive duplicate acknowledgements.
    pub fn dupacks(&self) -> u32 {
        self.duplicates.count
    }

    /// Whether `segment`, which is not processed yet, is a duplicate ACK (RFC 5681 section 2).
    pub fn is_duplicate(&self, segment: &Segment) -> bool {
        let window_changed = segment.wnd != self.rwnd;
        let repeat = Repeat { segment, window_changed, outstanding: self.outstanding() };
        segment.ack == self.snd_una && self.duplicates.is_duplicate(&repeat)
    }

    /// Whether duplicate ACKs for the segment at `seq` could cause a fast retransmit: its loss would be new,
    /// and not a consequence of the last one.
    pub fn loss_is_new(&self, seq: SeqNum) -> bool {
        self.duplicates.may_reveal_loss(seq, self.snd_una)
    }

    /// Calls a hook of each reaction. The reactions are moved out during the call, so that they can borrow
    /// the sender.
    #[inline(always)]
    pub(super) fn react(&mut self, hook: impl FnMut(&mut dyn Reaction, &mut SenderState)) {
        if !self.reactions.is_empty() {
            self.call_reactions(hook);
        }
    }

    #[inline(never)]
    fn call_reactions(&mut self, mut hook: impl FnMut(&mut dyn Reaction, &mut SenderState)) {
        let mut reactions = core::mem::take(&mut self.reactions);
        reactions.each_mut().for_each(|reaction| hook(reaction, self));
        // The list that stood in is empty and owns nothing.
        core::mem::forget(core::mem::replace(&mut self.reactions, reactions));
        self.timers.set(Timer::Reaction, self.reactions.next_wakeup());
    }

    /// Wakes the reactions whose timer has expired.
    ///
    /// # Panics
    /// If a reaction does not set its timer to a later time.
    pub(in crate::tcp) fn wake_reactions(&mut self, now: Time) {
        self.react(|reaction, tcp| {
            if reaction.next_wakeup() <= now {
                reaction.on_timer(now, tcp);
                assert!(reaction.next_wakeup() > now, "{reaction:?} did not move its timer forward");
            }
        });
    }

    /// Called just before the connection starts.
    pub(in crate::tcp) fn begin(&mut self, now: Time) {
        self.stats.started = Some(now);
        self.react(|reaction, tcp| reaction.on_start(now, tcp));
    }

    /// Delivers a control message to the reactions.
    pub(in crate::tcp) fn on_notice(&mut self, now: Time, notice: &Notice) {
        self.stats.notices += 1;
        self.react(|reaction, tcp| reaction.on_notice(now, notice, tcp));
    }

    /// Notifies the reactions of a change of the radio signal.
    pub(in crate::tcp) fn on_reach(&mut self, now: Time, reach: Reach) {
        self.react(|reaction, tcp| reaction.on_reach(now, reach, tcp));
    }

    /// Whether a reaction takes an arrived segment as a message of its own scheme.
    pub(in crate::tcp) fn is_taken(&mut self, now: Time, segment: &Segment) -> bool {
        let mut is_taken = false;
        self.react(|reaction, tcp| is_taken = is_taken || reaction.takes(now, segment, tcp));
        is_taken
    }

    /// Delivers a segment of the peer to the reactions before it is processed.
    pub(in crate::tcp) fn notify_segment(&mut self, now: Time, segment: &Segment) {
        self.react(|reaction, tcp| reaction.on_segment(now, segment, tcp));
    }
}
