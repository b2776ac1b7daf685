//! The receiver: the receiving end of a TCP connection.

mod autotuning;
mod reading;
mod report;
mod segments;

use alloc::boxed::Box;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Time};

use self::autotuning::{Autotuning, OutOfOrder};
pub(crate) use self::report::blocks_beside;
use super::action::Action;
use super::delayed_ack::DelayedAck;
use super::ecn::{EcnMode, Received};
use super::paws::{RecentTimestamp, timestamp};
use super::ranges::Ranges;
use super::receiver_reaction::{AckResponse, ReceiverReaction, ReceiverReactions};
use super::settings::Settings;
use super::timers::{Timer, Timers};
use super::{Connection, ReceiverStats, option_bytes, rare};
use crate::component::{Component, Out, Port, Signal};
use crate::packet::{
    Body, Dscp, Ecn, Flags, Handle, Notice, Packet, SackBlock, SackBlocks, Segment, SeqNum, Timestamps,
};
use crate::report::{EndCounters, EndReport};

/// Maximum distance of a retransmission behind `rcv_nxt` in bytes; older segments have left the network (RFC
/// 7323 section 5.5).
const FURTHEST_BEHIND: i64 = 1 << 30;

/// A TCP receiver. Its application reads everything at once, unless it is [paused](Receiver::pause). Uses
/// [`Port::ONLY`] for input and output.
#[derive(Debug)]
pub struct Receiver {
    connection: Connection,
    settings: Settings,
    /// The window if nothing is withheld.
    buffer: u32,
    autotuning: Option<Box<Autotuning>>,
    established: bool,
    /// The connection is closed by a reset.
    reset: bool,
    rcv_nxt: SeqNum,
    /// Out-of-order data above `rcv_nxt`.
    queue: Ranges,
    /// Sequence number of the peer's FIN, once known.
    fin: Option<SeqNum>,
    /// Whether the application reads only on request.
    paused: bool,
    /// Bytes by which the window is smaller than the buffer: data in order that the application has not read,
    /// plus data read that the advertised window does not reflect yet.
    withheld: u32,
    /// The part of `withheld` that the application has read.
    taken: u32,
    /// Whether window updates are [sent sparingly](Receiver::spare_updates).
    spares_updates: bool,
    /// The right edge of the window in the last segment sent.
    advertised_edge: SeqNum,
    /// Most recently reported SACK blocks, most recent first (RFC 2018 section 4).
    reported: Vec<SackBlock>,
    /// The duplicate to report, until an acknowledgement that reports it is sent.
    duplicate: Option<SackBlock>,
    delayed_ack: DelayedAck,
    timers: Timers,
    /// The feedback of marks that the receiver supports.
    supports: EcnMode,
    /// The marks received, and how they are fed back.
    marks: Received,
    /// The ECN field of pure ACKs.
    ack_ecn: Ecn,
    last_ack_sent: SeqNum,
    ts_recent: RecentTimestamp,
    snd_nxt: SeqNum,
    stats: ReceiverStats,
    reactions: ReceiverReactions,
    /// Whether the sender counts acknowledgements that reactions repeat.
    counts_repeats: bool,
    /// Acknowledgements requested by reactions, sent after the hook returns.
    requested: u32,
}

impl Receiver {
    /// A receiver in state LISTEN, or ESTABLISHED without a handshake.
    pub fn new(connection: Connection, settings: &Settings) -> Receiver {
        Receiver {
            connection,
            buffer: settings.first_window(),
            autotuning: Autotuning::of(settings),
            established: !settings.handshake,
            reset: false,
            rcv_nxt: SeqNum(settings.iss),
            queue: Ranges::default(),
            fin: None,
            paused: false,
            withheld: 0,
            taken: 0,
            spares_updates: false,
            advertised_edge: SeqNum(settings.iss) + settings.first_window(),
            reported: Vec::with_capacity(SackBlocks::MAX),
            duplicate: None,
            delayed_ack: DelayedAck::new(settings),
            timers: Timers::STOPPED,
            supports: settings.ecn_mode(),
            marks: Received::new(settings.first_ecn_mode()),
            ack_ecn: ack_ecn(settings.first_ecn_mode(), settings),
            last_ack_sent: SeqNum(settings.iss),
            ts_recent: RecentTimestamp::default(),
            snd_nxt: SeqNum(settings.iss),
            stats: ReceiverStats::default(),
            reactions: ReceiverReactions::default(),
            counts_repeats: true,
            requested: 0,
            settings: settings.clone(),
        }
    }

    /// Supports feedback of ECN marks only up to `mode`, whatever the sender asks for.
    pub fn with_ecn(self, mode: EcnMode) -> Receiver {
        Receiver { supports: mode, ..self }
    }

    /// Adds the reactions of schemes.
    pub fn with_reactions(self, reactions: impl Into<ReceiverReactions>) -> Receiver {
        let reactions = reactions.into();
        let counts_repeats = reactions.is_empty() || self.settings.ignored(Action::RepeatAck).is_none();
        Receiver { reactions, counts_repeats, ..self }
    }

    // ---- interface for reactions ---------------------------------------------------------------------

    /// Requests `count` acknowledgements of everything received, sent after the hook returns. Reactions see
    /// them like any others.
    pub fn acknowledge_now(&mut self, count: u32) {
        self.requested += count;
        self.stats.reactions += u64::from(count) * u64::from(self.counts_repeats);
    }

    /// The next sequence number expected (RFC 9293 section 3.3.1: RCV.NXT).
    pub fn rcv_nxt(&self) -> SeqNum {
        self.rcv_nxt
    }

    /// Whether out-of-order data are present.
    pub fn has_gap(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The settings of the connection.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    // ---- interface for the application ---------------------------------------------------------------

    /// The counters.
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    /// Whether the peer's FIN and all data before it were received (RFC 9293 section 3.10.7.4). Never true
    /// for a peer that does not close.
    pub fn has_ended(&self) -> bool {
        self.fin.is_some_and(|fin| fin < self.rcv_nxt)
    }

    /// Aborts the connection: sends RST if the connection is open (RFC 9293 section 3.10.5), and stops
    /// acknowledging. If the RST is lost, later segments of the sender are answered with RST (RFC 9293
    /// sections 3.5.2 and 3.10.7.1). No effect after a reset. Data received in order can still be
    /// [read](Receiver::read).
    pub fn abort(&mut self, now: Time, out: &mut Out) {
        if self.established {
            let flags = Flags::RST | Flags::ACK;
            self.send_control(now, self.snd_nxt, self.rcv_nxt, flags, out);
        }
        self.terminate();
    }

    /// Acknowledges everything received, now.
    pub fn acknowledge_received(&mut self, now: Time, out: &mut Out) {
        self.acknowledge(now, None, out);
    }

    /// Acknowledges everything received on `segment`, which the host sends in the other direction: sets
    /// acknowledgement number, window and the flags of ECN feedback, and ends the delay of an acknowledgement.
    pub fn piggyback(&mut self, segment: &mut Segment) {
        self.delayed_ack.on_acknowledged();
        self.timers.stop(Timer::DelayedAck);
        self.last_ack_sent = self.rcv_nxt;
        (segment.ack, segment.wnd) = (self.rcv_nxt, self.window());
        if self.spares_updates {
            self.advertised_edge = self.rcv_nxt + segment.wnd;
        }
        segment.flags = self.marks.report(segment.flags | Flags::ACK);
    }

    /// The ECN field of pure ACKs: ECN-capable with accurate feedback.
    pub fn ack_ecn(&self) -> Ecn {
        self.ack_ecn
    }

    /// Stops sending ECN-capable ACKs, because the path changes their ECN field (RFC 9768 section 3.2.2.3).
    pub fn stop_marking(&mut self) {
        self.ack_ecn = Ecn::NotEct;
    }

    /// Notes that the SYN-ACK of a handshake by the caller arrived with CE (RFC 9768 section 3.2.2.2).
    pub fn note_marked_syn_ack(&mut self) {
        self.marks.on_marked_syn_ack();
    }

    /// Whether the connection was reset, by the sender or by [`abort`](Receiver::abort).
    pub fn is_reset(&self) -> bool {
        self.reset
    }

    /// Processes a RST (RFC 9293 section 3.10.7.4). The sender places it after all data sent, but does not
    /// know how much arrived. Therefore a RST is accepted anywhere in the window, or just after the byte of a
    /// window probe and FIN, which do not count against the window (section 3.8.6.1: RST is processed even
    /// with a zero window).
    fn on_rst(&mut self, segment: &Segment) {
        let furthest = self.rcv_nxt + self.window() + 2;
        if self.established && segment.seq >= self.rcv_nxt && segment.seq <= furthest {
            self.terminate();
        }
    }

    fn terminate(&mut self) {
        (self.reset, self.established) = (true, false);
        self.timers = Timers::STOPPED;
    }

    /// Answers a segment for a closed connection with RST (RFC 9293 section 3.10.7.1).
    fn refuse(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        let (seq, ack, flags) = if segment.flags.has(Flags::ACK) {
            (segment.ack, SeqNum(0), Flags::RST)
        } else {
            (SeqNum(0), segment.seq + segment.seq_len(), Flags::RST | Flags::ACK)
        };
        self.send_control(now, seq, ack, flags, out);
    }

    /// RFC 9293 section 3.10.7.2; a retransmitted SYN is answered again. The first one decides on ECN (RFC 9768 section 3.1.5).
    fn on_syn(&mut self, now: Time, segment: &Segment, ecn: Ecn, out: &mut Out) {
        self.ts_recent = RecentTimestamp::of_syn(now, segment.timestamps.map(|ts| ts.value));
        let is_first = !self.established;
        if is_first {
            let mode = self.supports.answering(segment.flags);
            (self.marks, self.ack_ecn) = (Received::new(mode), ack_ecn(mode, &self.settings));
            self.established = true;
            self.rcv_nxt = segment.seq + 1;
            if let Some(autotuning) = &mut self.autotuning {
                autotuning.begin(now, self.rcv_nxt);
            }
        }
        if segment.flags.ace() == 0 {
            // RFC 9768 section 3.1.5: the client may not use ECN.
            self.ack_ecn = Ecn::NotEct;
        }
        let mut sack = SackBlocks::default();
        sack.set_ecn_counters(self.marks.first_option().filter(|_| is_first));
        let flags = Flags::SYN | Flags::ACK | self.marks.mode().syn_ack_flags(ecn);
        self.send(now, self.snd_iss(), self.rcv_nxt, flags, sack, out);
        self.snd_nxt = self.snd_iss() + 1;
    }

    /// The receiver uses the sender's ISS as its own.
    fn snd_iss(&self) -> SeqNum {
        SeqNum(self.settings.iss)
    }

    /// Start and end of the payload relative to `rcv_nxt`. Distances above 2 GiB count as negative.
    fn offsets(&self, segment: &Segment) -> (i64, i64) {
        let start = i64::from(segment.seq.0.wrapping_sub(self.rcv_nxt.0) as i32);
        (start, start + i64::from(segment.len))
    }

    /// Whether the segment may contain new data or a recent retransmission (RFC 9293 section 3.10.7.4:
    /// acceptable). Nothing is acceptable after FIN.
    fn is_acceptable(&self, segment: &Segment) -> bool {
        let (start, end) = self.offsets(segment);
        let after_fin = self.fin.is_some_and(|fin| segment.seq > fin);
        start <= i64::from(self.window()) && end >= -FURTHEST_BEHIND && !after_fin
    }

    /// The part of the segment that is a duplicate, if any (RFC 2883).
    fn repeated_part(&self, segment: &Segment) -> Option<SackBlock> {
        let SackBlock { start, end } = whole(segment);
        let below = SackBlock { start, end: end.min(self.rcv_nxt) };
        let queued = || self.queue.around(start).map(|block| SackBlock { start, end: end.min(block.end) });
        if start < self.rcv_nxt { Some(below) } else { queued() }.filter(|part| part.start < part.end)
    }

    /// Stores the payload and delivers data in order. Data beyond the window or after FIN are discarded.
    fn store(&mut self, now: Time, segment: &Segment) {
        // Fast path: data in order with an empty reassembly queue.
        let in_order = segment.seq == self.rcv_nxt && self.queue.is_empty() && self.fin.is_none();
        if in_order && segment.len <= self.window() {
            self.deliver(now, self.rcv_nxt + segment.len);
            return;
        }
        let edge = self.fin.map_or(self.window(), |fin| (fin - self.rcv_nxt.min(fin)).min(self.window()));
        let (start, end) = self.offsets(segment);
        let (start, end) = (start.max(0), end.min(i64::from(edge)));
        if start >= end {
            return;
        }
        let (start, end) = (self.rcv_nxt + start as u32, self.rcv_nxt + end as u32);
        self.queue.insert(start, end, |_| {});
        if let Some(block) = self.queue.around(self.rcv_nxt) {
            self.queue.forget_before(block.end);
            self.deliver(now, block.end);
        }
    }

    /// Delivers everything before `end`.
    fn deliver(&mut self, now: Time, end: SeqNum) {
        let delivered = end - self.rcv_nxt;
        self.rcv_nxt = end;
        self.withheld += if self.paused { delivered } else { 0 };
        self.stats.delivered += Bytes(u64::from(delivered));
        self.stats.last_delivery = now;
    }

    /// Tunes the window for a segment that is stored and not a duplicate. `is_next` tells whether it continued
    /// data without a gap.
    // Cold, so that fixed windows cost one comparison.
    #[cold]
    fn tune(&mut self, now: Time, segment: &Segment, is_next: bool) {
        let Some(autotuning) = &mut self.autotuning else { return };
        if let Some(ts) = segment.timestamps {
            autotuning.measure_echo(now, ts.echo, segment.len);
        }
        if is_next && autotuning.is_settled(now) {
            return;
        }
        let unread = self.withheld - self.taken;
        let gaps = match self.queue.end() {
            Some(end) => OutOfOrder { bytes: self.queue.bytes(), span: end - self.rcv_nxt },
            None => OutOfOrder::default(),
        };
        if segment.seq < self.rcv_nxt {
            if autotuning.on_data(now, segment, self.rcv_nxt, unread, gaps) {
                self.delayed_ack.on_opened_window();
            }
        } else if gaps.bytes > 0 && self.settings.sack() {
            autotuning.on_gap(segment, unread, gaps);
        }
        self.buffer = autotuning.window();
    }

    /// Records a FIN, and processes it once all data before it have arrived. A FIN inconsistent with the data
    /// received or with an earlier FIN is ignored.
    fn take_fin(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::FIN) && self.fin.is_none() {
            let (_, end) = self.offsets(segment);
            let fin = segment.seq + segment.len;
            let ends_all = self.queue.end().is_none_or(|last| last <= fin);
            if end >= 0 && end <= i64::from(self.window()) && ends_all {
                self.fin = Some(fin);
            }
        }
        if self.fin == Some(self.rcv_nxt) {
            self.rcv_nxt += 1;
        }
    }

    /// Stores the timestamp of a segment at the last acknowledgement sent. One that ends before it is not acceptable, and its
    /// timestamp is not stored (RFC 7323 section 5.3, R2 and R3; `tcp_sequence` of Linux).
    fn note_timestamp(&mut self, now: Time, segment: &Segment) {
        let edge = self.last_ack_sent;
        let at_edge = segment.seq <= edge && whole(segment).end >= edge;
        let echoed = |_: &Timestamps| self.settings.timestamps_are_unique() || at_edge;
        if let Some(ts) = segment.timestamps.filter(echoed) {
            self.ts_recent.note(now, ts.value);
        }
    }

    /// Acknowledges everything received in order. `latest` is the segment that triggers the ACK, with its
    /// duplicate part.
    #[inline(never)]
    fn acknowledge(&mut self, now: Time, latest: Option<(&Segment, Option<SackBlock>)>, out: &mut Out) {
        self.acknowledge_as::<false>(now, latest, out);
    }

    /// The same; `NEXT` if the latest segment [was next](Receiver::is_next).
    #[inline(always)]
    fn acknowledge_as<const NEXT: bool>(
        &mut self,
        now: Time,
        latest: Option<(&Segment, Option<SackBlock>)>,
        out: &mut Out,
    ) {
        self.delayed_ack.on_acknowledged();
        self.timers.stop(Timer::DelayedAck);
        // The FIN of this side is sent with the acknowledgement of the peer's. If it is lost, the peer
        // retransmits its FIN, and this one is retransmitted with the acknowledgement.
        let closed = rare::<NEXT>(self.settings.close && self.has_ended());
        let flags = if closed { Flags::ACK | Flags::FIN } else { Flags::ACK };
        let flags = self.marks.report(flags);
        let (segment, repeated) = latest.unzip();
        if !NEXT && self.settings.sack() {
            self.note_duplicate(repeated.flatten());
        }
        let counters = self.marks.option();
        if self.has_reports() || counters.is_some() {
            let sack = self.report(segment, counters);
            self.send(now, self.snd_nxt, self.rcv_nxt, flags, sack, out);
        } else {
            // Apart from the above, so that the usual segment stays out of memory until it is sent.
            self.send(now, self.snd_nxt, self.rcv_nxt, flags, SackBlocks::default(), out);
        }
    }

    /// Calls a hook of each reaction. The reactions are moved out during the call, so that they can borrow
    /// the receiver.
    #[inline]
    fn react(&mut self, hook: impl FnMut(&mut dyn ReceiverReaction, &mut Receiver)) {
        if !self.reactions.is_empty() {
            self.call_reactions(hook);
        }
    }

    fn call_reactions(&mut self, mut hook: impl FnMut(&mut dyn ReceiverReaction, &mut Receiver)) {
        let mut reactions = core::mem::take(&mut self.reactions);
        reactions.each_mut().for_each(|reaction| hook(reaction, self));
        self.reactions = reactions;
        self.timers.set(Timer::Reaction, self.reactions.next_wakeup());
    }

    /// Sends the acknowledgements requested by reactions.
    fn send_requested(&mut self, now: Time, out: &mut Out) {
        for _ in 0..core::mem::take(&mut self.requested) {
            self.acknowledge(now, None, out);
        }
    }

    /// Takes a packet other than a segment.
    // Not inlined, so that a segment is recognised by one comparison.
    #[inline(never)]
    fn on_other(&mut self, now: Time, body: &Body) {
        if let Body::Notice(notice) = body {
            self.on_notice(now, notice);
        }
    }

    fn on_notice(&mut self, now: Time, notice: &Notice) {
        self.react(|reaction, receiver| reaction.on_notice(now, notice, receiver));
    }

    fn on_timer(&mut self, now: Time, timer: Timer, out: &mut Out) {
        match timer {
            Timer::Reaction => self.wake_reactions(now),
            _ => self.acknowledge(now, None, out),
        }
    }

    /// # Panics
    /// If a reaction does not set its timer to a later time.
    fn wake_reactions(&mut self, now: Time) {
        self.react(|reaction, receiver| {
            if reaction.next_wakeup() <= now {
                reaction.on_timer(now, receiver);
                assert!(reaction.next_wakeup() > now, "{reaction:?} did not move its timer forward");
            }
        });
    }

    /// Passes the acknowledgement through the reactions, which may change or suppress it, and emits it. SYN
    /// and RST bypass the reactions.
    // By value and not inlined: without reactions, the segment then stays out of memory.
    #[inline(never)]
    fn emit_past_reactions(&mut self, now: Time, mut ack: Segment, out: &mut Out) {
        let (before, mut withheld) = (ack, false);
        if ack.flags & (Flags::SYN | Flags::RST) == Flags::default() {
            self.call_reactions(|reaction, receiver| {
                withheld = withheld || reaction.on_ack(now, &mut ack, receiver) == AckResponse::Withhold;
            });
        }
        self.stats.reactions += u64::from(withheld || ack != before);
        if !withheld {
            self.emit(ack, out);
        }
    }

    /// Sends a segment with SYN or RST.
    #[inline(never)]
    fn send_control(&mut self, now: Time, seq: SeqNum, ack: SeqNum, flags: Flags, out: &mut Out) {
        self.send(now, seq, ack, flags, SackBlocks::default(), out);
    }

    #[inline(always)]
    fn send(&mut self, now: Time, seq: SeqNum, ack: SeqNum, flags: Flags, sack: SackBlocks, out: &mut Out) {
        let timestamps = self.settings.stamps();
        let segment = Segment {
            seq,
            ack,
            len: 0,
            wnd: self.window(),
            flags,
            sack,
            timestamps: timestamps.then(|| Timestamps { value: timestamp(now), echo: self.ts_recent.echo() }),
            has_unknown_options: false,
        };
        if self.reactions.is_empty() {
            self.emit(segment, out);
        } else {
            self.emit_past_reactions(now, segment, out);
        }
    }

    /// Puts an acknowledgement or RST on the wire.
    // Inlined, so that the segment is built where it is sent.
    #[inline(always)]
    fn emit(&mut self, segment: Segment, out: &mut Out) {
        let Connection { src, dst, flow } = self.connection;
        let size = self.settings.header + option_bytes(&segment, &self.settings);
        let is_bare = segment.flags & (Flags::SYN | Flags::RST) == Flags::default();
        let ecn = if is_bare { self.ack_ecn } else { Ecn::NotEct };
        if segment.sack.ecn_counters().is_some() {
            self.marks.on_option_sent();
        }
        let (dscp, body) = (Dscp::DEFAULT, Body::Tcp(segment));
        out.send(
            Port::ONLY,
            Packet { src: dst, dst: src, flow, size, dscp, ecn, handle: Handle::NONE, body },
        );
        self.last_ack_sent = self.rcv_nxt;
        self.duplicate = None;
        self.stats.acks_sent += 1;
    }
}

/// The ECN field of pure ACKs: ECN-capable with accurate feedback, as in Linux, where queues may mark them.
fn ack_ecn(mode: EcnMode, settings: &Settings) -> Ecn {
    if mode == EcnMode::Accurate { settings.codepoint() } else { Ecn::NotEct }
}

/// The payload of a segment as a block.
fn whole(segment: &Segment) -> SackBlock {
    SackBlock { start: segment.seq, end: segment.seq + segment.len }
}

impl Component for Receiver {
    fn receive(&mut self, now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        match &packet.body {
            Body::Tcp(segment) => self.on_segment(now, segment, packet.ecn, out),
            other => self.on_other(now, other),
        }
        self.send_requested(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        while let Some(timer) = self.timers.due(now) {
            self.on_timer(now, timer, out);
        }
        self.send_requested(now, out);
    }

    fn next_wakeup(&self) -> Time {
        self.timers.next_of_others()
    }

    fn report(&self) -> Option<EndReport> {
        let stats = &self.stats;
        let counters = EndCounters {
            delivered: stats.delivered,
            last_delivery: stats.last_delivery,
            acks_sent: Some(stats.acks_sent),
            marks: Some(stats.marks),
            reactions: stats.reactions,
            ..EndCounters::default()
        };
        Some(EndReport { counters, ..EndReport::default() })
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        if let Signal::Reach(reach) = *signal
            && self.established
        {
            self.react(|reaction, receiver| reaction.on_reach(now, reach, receiver));
            self.send_requested(now, out);
        }
    }
}
