//! The sender: the sending end of a TCP connection.

mod segments;
#[cfg(test)]
mod tests;

use lasthop_base::{Bytes, Duration, Time};

use super::reaction::Reactions;
use super::recovery::{self, LossReport};
use super::rtt::RttEstimator;
use super::settings::Settings;
use super::state::SenderState;
use super::timers::{Timer, Timers};
use super::{Connection, SenderStats, Transfer};
use crate::component::{Component, Out, Port, Probe, Signal};
use crate::packet::{Body, Notice, Packet, SackBlock, SeqNum};
use crate::report::{EndCounters, EndReport};

/// The connection states (RFC 9293 section 3.3.2) that a sender distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before the start of the transfer at this time.
    Waiting(Time),
    /// SYN was sent.
    SynSent,
    /// Data may flow.
    Open,
    /// All data are acknowledged, and FIN if one was sent.
    Done,
    /// The connection was aborted, or reset by the peer.
    Aborted,
}

/// A TCP sender with a bulk transfer, or with a stream that is [supplied](Sender::supplied) over time. Uses
/// [`Port::ONLY`] for input and output.
#[derive(Debug)]
pub struct Sender {
    phase: Phase,
    state: SenderState,
    recovery: recovery::Chosen,
    /// The interval between zero-window probes while the receiver's window is closed.
    probe_interval: Option<Duration>,
}

impl Sender {
    /// A sender that starts `transfer` at its start time, with the `reactions` of schemes.
    pub fn new(
        connection: Connection,
        settings: &Settings,
        transfer: Transfer,
        reactions: impl Into<Reactions>,
    ) -> Sender {
        Sender {
            phase: Phase::Waiting(transfer.start),
            state: SenderState::new(connection, settings, transfer, reactions.into()),
            recovery: recovery::of(settings),
            probe_interval: None,
        }
    }

    /// A sender of a stream that the application [supplies](Sender::supply). The connection opens with the
    /// first bytes, or on [`open`](Sender::open), and ends only after [`close`](Sender::close).
    ///
    /// While the stream is open, Nagle's algorithm applies (RFC 9293 section 3.7.4): only full segments are
    /// sent while data are outstanding. Closing the stream releases the remaining data.
    pub fn supplied(connection: Connection, settings: &Settings, reactions: impl Into<Reactions>) -> Sender {
        let nothing = Transfer { bytes: Some(0), start: Time::NEVER };
        let mut sender = Sender::new(connection, settings, nothing, reactions);
        sender.state.closed = false;
        sender.state.nagle = true;
        sender
    }

    /// Disables Nagle's algorithm: supplied data are sent immediately if the windows hold all of them (RFC
    /// 9293 sections 3.7.4 and 3.8.6.2.1: as if all data were pushed).
    pub fn without_nagle(mut self) -> Sender {
        self.state.nagle = false;
        self
    }

    /// Enables or disables Nagle's algorithm while the stream is open. Disabling it sends the data held back.
    pub fn set_nagle(&mut self, now: Time, nagle: bool, out: &mut Out) {
        self.state.nagle = nagle && !self.state.closed;
        if matches!(self.phase, Phase::Open) {
            self.continue_sending(now, out);
        }
    }

    /// Sets the user timeout: the time without acknowledgement of outstanding data after which the connection
    /// is aborted; `None` for no limit.
    pub fn set_user_timeout(&mut self, timeout: Option<Duration>) {
        self.state.settings.user_timeout = timeout;
    }

    /// The state of loss recovery.
    pub fn loss_report(&self) -> LossReport {
        self.recovery.report(&self.state)
    }

    /// Opens the connection unless it is open, with SYN if the settings include a handshake.
    pub fn open(&mut self, now: Time, out: &mut Out) {
        if matches!(self.phase, Phase::Waiting(_)) {
            self.start(now, out);
        }
    }

    /// Opens a connection after a handshake by the caller. `rtt` is the round-trip time of the handshake;
    /// `None` if SYN was retransmitted, in which case the initial window is one segment (RFC 5681 section
    /// 3.1) and the RTO at least 3 s (RFC 6298 section 5.7). The settings must not include a handshake.
    ///
    /// # Panics
    /// If the connection is open, or has ended.
    pub fn open_established(&mut self, now: Time, rtt: Option<Duration>, out: &mut Out) {
        assert!(matches!(self.phase, Phase::Waiting(_)), "the connection is open");
        self.state.settle_handshake(now, rtt);
        self.start(now, out);
    }

    /// Stops sending ECN-capable packets, because the path changes their ECN field (RFC 9768 section 3.2.2.3). Their feedback stays
    /// as it was agreed.
    pub fn stop_marking(&mut self) {
        self.state.stop_marking();
    }

    /// Ignores all marks that the peer reports, because the path clears the ACE field (RFC 9768 section 3.2.2.1).
    pub fn ignore_reports(&mut self) {
        self.state.ignore_reports();
    }

    /// Reduces the maximum payload of later segments to `mss` bytes, after a path MTU update (RFC 1191). The
    /// segment at `lost`, which exceeded the path MTU, is retransmitted immediately in shorter ones, without
    /// a congestion response. No reaction sets a larger one again.
    ///
    /// # Panics
    /// If `mss` is zero.
    pub fn reduce_mss(&mut self, now: Time, mss: u32, lost: SeqNum, out: &mut Out) {
        let end = lost + self.state.mss();
        self.state.largest_mss = mss;
        self.state.replace_mss(mss);
        self.state.resend_shorter(now, lost, end, out);
        self.send_after_reactions(now, out);
    }

    /// Adds `bytes` to the stream and sends what the windows allow. A connection that was idle for longer
    /// than the timeout restarts with the initial window (RFC 5681 section 4.1).
    ///
    /// # Panics
    /// If the stream is closed. A [`Transfer`] is closed from the start.
    pub fn supply(&mut self, now: Time, bytes: u64, out: &mut Out) {
        self.state.supply(now, bytes);
        self.continue_sending(now, out);
    }

    /// Closes the stream: FIN follows the last byte if the settings require it (RFC 9293 section 3.6), and
    /// [`Signal::Finished`] follows the last acknowledgement. Closing twice has no further effect.
    pub fn close(&mut self, now: Time, out: &mut Out) {
        self.state.close();
        self.continue_sending(now, out);
    }

    /// Aborts the connection: sends RST if it is open (RFC 9293 section 3.10.5), then emits
    /// [`Signal::Finished`]. From then on, the sender sends nothing and ignores arriving packets. Does
    /// nothing if the connection has already ended.
    pub fn abort(&mut self, now: Time, out: &mut Out) {
        match self.phase {
            Phase::Done | Phase::Aborted => return,
            Phase::Open => self.state.emit_rst(now, out),
            Phase::Waiting(_) | Phase::SynSent => {}
        }
        self.terminate(now, out);
    }

    /// Whether the connection was aborted, or reset by the peer, before all data were acknowledged.
    pub fn is_aborted(&self) -> bool {
        self.phase == Phase::Aborted
    }

    /// Bytes not sent yet. For an unbounded transfer, a number larger than any run can send.
    pub fn unsent(&self) -> u64 {
        self.state.unsent
    }

    /// Bytes of the stream acknowledged; does not wrap at 2³².
    pub fn acknowledged(&self) -> u64 {
        self.state.acknowledged()
    }

    /// The counters.
    pub fn stats(&self) -> &SenderStats {
        &self.state.stats
    }

    /// The congestion window in bytes, without inflation by recovery.
    pub fn cwnd(&self) -> f64 {
        self.state.cwnd()
    }

    /// The slow-start threshold, in bytes.
    pub fn ssthresh(&self) -> f64 {
        self.state.ssthresh()
    }

    /// Number of consecutive duplicate acknowledgements.
    pub fn dupacks(&self) -> u32 {
        self.state.dupacks()
    }

    /// The round-trip estimator.
    pub fn rtt(&self) -> &RttEstimator {
        &self.state.rtt
    }

    /// The first sequence number not acknowledged.
    pub fn snd_una(&self) -> SeqNum {
        self.state.snd_una
    }

    /// One past the highest sequence number sent.
    pub fn snd_max(&self) -> SeqNum {
        self.state.snd_max
    }

    /// Bytes sent and not acknowledged (RFC 5681: FlightSize).
    pub fn flight_size(&self) -> u32 {
        self.state.flight_size()
    }

    /// The sender's estimate of bytes in the network (RFC 6675: pipe): bytes sent since the last go-back to
    /// the left edge, minus those that SACK recovery counts as having left.
    pub fn pipe(&self) -> u32 {
        self.recovery.pipe(&self.state)
    }

    /// Ranges reported by SACK above the left edge, in order; adjacent ranges may touch.
    pub fn reported(&self) -> impl Iterator<Item = SackBlock> {
        let ranges = Some(&self.state.sacked).filter(|_| !self.state.keeps_records);
        self.state
            .records
            .segments
            .reported()
            .chain(ranges.into_iter().flat_map(|ranges| ranges.iter().copied()))
    }

    /// The receiver's window, in bytes.
    pub fn rwnd(&self) -> u32 {
        self.state.rwnd
    }

    /// Bytes that may be in flight: the congestion window with inflation by recovery, or the receiver's
    /// window if that is smaller.
    pub fn usable_window(&self) -> u32 {
        self.state.usable_window()
    }

    /// Whether the retransmission timer runs.
    pub fn timer_runs(&self) -> bool {
        self.state.timer_runs()
    }

    fn start(&mut self, now: Time, out: &mut Out) {
        self.state.begin(now);
        self.state.waiting_since = now;
        if self.state.settings.handshake {
            self.phase = Phase::SynSent;
            self.state.emit_syn(now, out);
        } else {
            self.phase = Phase::Open;
            self.recovery.send(&mut self.state, now, out);
            self.settle(now, out);
        }
    }

    /// Sends what the windows allow after the stream has changed.
    fn continue_sending(&mut self, now: Time, out: &mut Out) {
        let tcp = &mut self.state;
        match self.phase {
            Phase::Waiting(_) => return self.start(now, out),
            Phase::SynSent | Phase::Done | Phase::Aborted => return,
            // An early duplicate ACK releases nothing by itself, but does not block new data.
            Phase::Open if !tcp.keeps_records && tcp.is_early_duplicate() => {
                tcp.send_window(now, tcp.settings.max_burst, out)
            }
            Phase::Open => self.recovery.send(tcp, now, out),
        }
        self.settle(now, out);
    }

    /// Ends the connection as aborted.
    fn terminate(&mut self, now: Time, out: &mut Out) {
        self.phase = Phase::Aborted;
        self.state.timers = Timers::STOPPED;
        self.state.stats.aborted = Some(now);
        out.signal(Signal::Finished);
    }

    /// Called after every event: finishes the connection, or starts probing a closed window (RFC 9293 section
    /// 3.8.6.1).
    #[inline]
    fn settle(&mut self, now: Time, out: &mut Out) {
        if self.phase == Phase::Open && !self.state.outstanding() {
            self.finish_or_probe(now, out);
        }
    }

    fn finish_or_probe(&mut self, now: Time, out: &mut Out) {
        let tcp = &mut self.state;
        if tcp.has_unsent() {
            // Nothing is in flight, yet data remain: either the receiver's window is closed, or pacing delays
            // the next segment.
            if self.probe_interval.is_none() && !tcp.timers.runs(Timer::Pacing) {
                self.probe_interval = Some(tcp.rtt.rto());
                tcp.set_persist_timer(now + tcp.rtt.rto());
            }
        } else if tcp.closed {
            self.phase = Phase::Done;
            tcp.stats.completed = Some(now);
            out.signal(Signal::Finished);
        }
    }

    fn on_timer(&mut self, now: Time, timer: Timer, out: &mut Out) {
        match timer {
            Timer::Retransmission | Timer::Persist => self.on_timeout(now, out),
            Timer::Reordering | Timer::Probe => {
                self.state.timers.stop(timer);
                self.recovery.on_timer(&mut self.state, now, timer, out);
                self.recovery.send(&mut self.state, now, out);
                self.settle(now, out);
            }
            Timer::Pacing => {
                self.state.timers.stop(timer);
                self.recovery.send(&mut self.state, now, out);
                self.settle(now, out);
            }
            Timer::Reaction => {
                self.state.wake_reactions(now);
                self.send_after_reactions(now, out);
            }
            // Only the receiver uses this timer.
            Timer::DelayedAck => self.state.timers.stop(timer),
        }
    }

    fn on_timeout(&mut self, now: Time, out: &mut Out) {
        let tcp = &mut self.state;
        tcp.count_restarts(now, true);
        let opens = self.phase == Phase::SynSent;
        let probes = !opens && (self.probe_interval.is_some() || self.recovery.window_is_shut(tcp));
        if probes {
            tcp.note_probe(now);
        }
        if tcp.peer_is_lost(now, opens) {
            self.abort(now, out);
        } else if opens {
            tcp.time_out_syn(now);
            tcp.emit_syn(now, out);
        } else if probes {
            self.probe(now, out);
        } else {
            tcp.suspect_black_hole(now);
            self.recovery.on_timeout(tcp, now);
            self.recovery.send(&mut self.state, now, out);
        }
    }

    /// Sends one byte into a closed window, or what fits into a small one (RFC 9293 section 3.8.6.1; section
    /// 3.8.6.2.1: the override timeout). The interval doubles independently of the backoff of the
    /// retransmission timer.
    fn probe(&mut self, now: Time, out: &mut Out) {
        let tcp = &mut self.state;
        tcp.stats.window_probes += 1;
        tcp.go_back();
        // ns-2's congestion window may also close.
        let len = tcp.len_at(tcp.snd_una).min(tcp.usable_window().max(1));
        let occupied = tcp.emit(now, tcp.snd_una, len, out);
        tcp.snd_nxt = tcp.snd_nxt.max(tcp.snd_una + occupied);
        let interval = (self.probe_interval.unwrap_or(tcp.rtt.rto()) * 2).min(tcp.settings.rto_max);
        self.probe_interval = Some(interval);
        tcp.set_persist_timer(now + interval);
    }

    /// Takes a packet other than a segment.
    // Not inlined, so that a segment is recognised by one comparison.
    #[inline(never)]
    fn on_other(&mut self, now: Time, body: &Body, out: &mut Out) {
        if let Body::Notice(notice) = body {
            self.on_notice(now, notice, out);
        }
    }

    fn on_notice(&mut self, now: Time, notice: &Notice, out: &mut Out) {
        if self.phase == Phase::Aborted {
            return;
        }
        self.state.on_notice(now, notice);
        self.send_after_reactions(now, out);
    }

    /// Sends the segments that reactions have requested, then what the windows allow.
    fn send_after_reactions(&mut self, now: Time, out: &mut Out) {
        if self.phase == Phase::Open {
            self.send_requested(now, out);
            self.recovery.send(&mut self.state, now, out);
            self.settle(now, out);
        }
    }

    /// Sends the segments that reactions have requested.
    #[inline]
    fn send_requested(&mut self, now: Time, out: &mut Out) {
        if self.state.has_requested() {
            self.resend_requested(now, out);
        }
    }

    fn resend_requested(&mut self, now: Time, out: &mut Out) {
        for _ in 0..self.state.send_requested(now, out) {
            self.recovery.on_reaction_resent(now);
        }
    }
}

impl Component for Sender {
    fn receive(&mut self, now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        match &packet.body {
            Body::Tcp(segment) => self.on_segment(now, segment, packet.ecn, out),
            other => self.on_other(now, other, out),
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        match self.phase {
            Phase::Waiting(_) => self.start(now, out),
            _ => {
                while let Some(timer) = self.state.timers.due(now) {
                    self.on_timer(now, timer, out);
                }
            }
        }
    }

    fn next_wakeup(&self) -> Time {
        match self.phase {
            Phase::Waiting(start) => start,
            Phase::SynSent | Phase::Open => self.state.timers.next(),
            Phase::Done | Phase::Aborted => Time::NEVER,
        }
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        if let Signal::Reach(reach) = *signal
            && self.phase == Phase::Open
        {
            self.state.on_reach(now, reach);
            self.send_after_reactions(now, out);
        }
    }

    fn report(&self) -> Option<EndReport> {
        let stats = &self.state.stats;
        let counters = EndCounters {
            started: stats.started,
            aborted: stats.aborted,
            packets_sent: stats.segments_sent,
            payload_sent: Some(stats.payload_sent),
            retransmitted_packets: Some(stats.retransmitted_segments),
            retransmitted_bytes: Some(stats.retransmitted_bytes),
            timeouts: Some(stats.timeouts),
            detected_losses: Some(stats.fast_retransmits),
            probes: Some(stats.tail_loss_probes),
            spurious_timeouts: Some(stats.spurious_timeouts),
            undone_reductions: Some(stats.undone_reductions),
            echoes: Some(stats.echoes),
            rtt_samples: Some(stats.rtt_samples),
            rtt_sum: Some(stats.rtt_sum),
            pacing_wait: Some(stats.pacing_wait),
            notices: stats.notices,
            reactions: stats.reactions,
            ..EndCounters::default()
        };
        Some(EndReport {
            counters,
            acknowledged: Some(Bytes(self.acknowledged())),
            in_flight: Some(Bytes(u64::from(self.flight_size()))),
        })
    }

    /// Windows in bytes, times in seconds, sequence numbers relative to the start of the connection, modulo
    /// 2³².
    fn show(&self, probe: &mut dyn Probe) {
        let tcp = &self.state;
        probe.value("cwnd_bytes", tcp.cwnd());
        probe.value("ssthresh_bytes", tcp.ssthresh());
        probe.value("flight_bytes", f64::from(self.flight_size()));
        probe.value("mss_bytes", f64::from(tcp.mss()));
        let offset = |seq: SeqNum| f64::from(seq.0.wrapping_sub(tcp.iss.0));
        probe.value("snd_una_bytes", offset(tcp.snd_una));
        probe.value("snd_nxt_bytes", offset(tcp.snd_nxt));
        probe.value("dupacks", f64::from(tcp.dupacks()));
        probe.value("srtt_s", tcp.rtt.srtt().map_or(f64::NAN, |srtt| srtt.as_secs_f64()));
        probe.value("rttvar_s", tcp.rtt.rttvar().as_secs_f64());
        probe.value("pacing_rate_bps", tcp.pacing_rate().map_or(f64::NAN, |rate| rate * 8.0));
        probe.value("rto_s", tcp.rtt.rto().as_secs_f64());
    }
}
