//! The receiving end of a connection as a component.

use alloc::vec::Vec;

use lasthop_base::{Bytes, Time};

use super::delayed_ack::{Arrival, DelayedAck};
use super::paws::RecentTimestamp;
use super::ranges::Ranges;
use super::receiver_reaction::{AckResponse, ReceiverReaction, ReceiverReactions};
use super::segment::{Flags, SackBlock, SackBlocks, Segment, Timestamps};
use super::seq::SeqNum;
use super::settings::Settings;
use super::state::timestamp;
use super::timers::{Timer, Timers};
use super::{Connection, ReceiverStats, option_bytes};
use crate::component::{Component, Out, Port};
use crate::packet::{Body, Dscp, Ecn, Notice, Packet};

/// Copies of what was sent further back than this have left the network (RFC 7323 section 5.5), bytes.
const FURTHEST_BEHIND: i64 = 1 << 30;

/// A TCP receiver whose application reads everything at once, or, [paused](Receiver::pause), as it is told.
/// Segments arrive and leave by [`Port::ONLY`].
#[derive(Debug)]
pub struct Receiver {
    connection: Connection,
    settings: Settings,
    buffer: u32,
    established: bool,
    /// The connection is no more.
    reset: bool,
    rcv_nxt: SeqNum,
    /// Data behind `rcv_nxt` that arrived out of order.
    queue: Ranges,
    /// The peer's FIN, once it is known where it stands.
    fin: Option<SeqNum>,
    /// The application reads only what it is told to.
    paused: bool,
    /// Bytes by which the window falls short of the buffer: those in order that the application has not
    /// read, and those that it has, of which the sender has yet to be told.
    withheld: u32,
    /// Of those, the bytes that it has read.
    taken: u32,
    /// Blocks reported last, most recent first (RFC 2018 section 4).
    reported: Vec<SackBlock>,
    delayed_ack: DelayedAck,
    timers: Timers,
    /// ECN was agreed upon; the echo of a mark goes on until the sender says that it has answered it.
    ecn: bool,
    echoes: bool,
    last_ack_sent: SeqNum,
    ts_recent: RecentTimestamp,
    snd_nxt: SeqNum,
    stats: ReceiverStats,
    reactions: ReceiverReactions,
    /// Acknowledgements that reactions have asked for; they are sent once the hook has returned.
    asked: u32,
}

impl Receiver {
    /// A receiver that waits for SYN, or for data if there is no handshake.
    pub fn new(connection: Connection, settings: &Settings) -> Receiver {
        Receiver {
            connection,
            buffer: settings.window_payload(),
            established: !settings.handshake,
            reset: false,
            rcv_nxt: SeqNum(settings.iss),
            queue: Ranges::default(),
            fin: None,
            paused: false,
            withheld: 0,
            taken: 0,
            reported: Vec::with_capacity(SackBlocks::MAX),
            delayed_ack: DelayedAck::new(settings),
            timers: Timers::STOPPED,
            ecn: settings.ecn && !settings.handshake,
            echoes: false,
            last_ack_sent: SeqNum(settings.iss),
            ts_recent: RecentTimestamp::default(),
            snd_nxt: SeqNum(settings.iss),
            stats: ReceiverStats::default(),
            reactions: ReceiverReactions::default(),
            asked: 0,
            settings: settings.clone(),
        }
    }

    /// The same with what schemes add to it.
    pub fn with_reactions(self, reactions: impl Into<ReceiverReactions>) -> Receiver {
        Receiver { reactions: reactions.into(), ..self }
    }

    // ---- what reactions may do and see --------------------------------------------------------------

    /// Asks for `count` acknowledgements of what has arrived, as soon as the hook has returned. Reactions are
    /// shown them as they are shown others.
    pub fn acknowledge_now(&mut self, count: u32) {
        self.asked += count;
    }

    /// The next sequence number expected (RFC 9293 section 3.3.1: RCV.NXT).
    pub fn rcv_nxt(&self) -> SeqNum {
        self.rcv_nxt
    }

    /// Whether something has arrived behind a gap.
    pub fn has_gap(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The settings of the connection.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    // ---- what the application does ------------------------------------------------------------------

    /// What was counted so far.
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    /// The application stops reading: what arrives from now on fills the buffer, until it is
    /// [read](Receiver::read).
    pub fn pause(&mut self) {
        self.paused = true;
    }

    /// The application reads everything and goes on reading. The sender is told as
    /// [`read`](Receiver::read) does.
    pub fn resume(&mut self, now: Time, out: &mut Out) {
        self.paused = false;
        let opens = self.is_worth_telling(self.withheld);
        (self.withheld, self.taken) = (0, 0);
        if opens {
            self.acknowledge(now, None, out);
        }
    }

    /// A paused application reads at most so many bytes; says how many there were. The window grows, and
    /// the sender is told so at once, when it can grow by a full segment or half the buffer; till then its
    /// right edge stays where it is, whatever is acknowledged meanwhile (RFC 9293 section 3.8.6.2.2). After
    /// the peer's FIN nobody is told: nothing is to come that would need the room.
    pub fn read(&mut self, now: Time, most: u64, out: &mut Out) -> u64 {
        let read = most.min(self.unread());
        self.taken += read as u32;
        if self.is_worth_telling(self.taken) {
            self.withheld -= core::mem::take(&mut self.taken);
            self.acknowledge(now, None, out);
        }
        read
    }

    /// Bytes in order that a paused application has not read.
    pub fn unread(&self) -> u64 {
        u64::from(self.withheld - self.taken)
    }

    /// Whether the stream has ended: the peer's FIN was taken, with all data before it (RFC 9293 section
    /// 3.10.7.4). What is unread then is all that is left. A peer that does not close never says so.
    pub fn has_ended(&self) -> bool {
        self.fin.is_some_and(|fin| fin < self.rcv_nxt)
    }

    /// Resets the connection: tells the sender by RST, if the connection is open (RFC 9293 section 3.10.5),
    /// and acknowledges nothing any more. That the RST may get lost is no harm: what the sender sends to a
    /// connection that is no more is answered by RST, whichever end has reset it (RFC 9293 sections 3.5.2
    /// and 3.10.7.1). Reset already, it stays so. What arrived in order before can still be
    /// [read](Receiver::read).
    pub fn abort(&mut self, now: Time, out: &mut Out) {
        if self.established {
            let flags = Flags::RST | Flags::ACK;
            self.send(now, self.snd_nxt, self.rcv_nxt, flags, SackBlocks::default(), out);
        }
        self.break_off();
    }

    /// Whether the connection was reset, by the sender or by [`abort`](Receiver::abort).
    pub fn is_reset(&self) -> bool {
        self.reset
    }

    /// Whether the sender shall be told of a window that can grow by so many bytes.
    fn is_worth_telling(&self, growth: u32) -> bool {
        let least = self.settings.mss().min(self.buffer / 2).max(1);
        growth >= least && !self.has_ended() && !self.reset
    }

    /// Bytes beyond `rcv_nxt` that the sender may send (RFC 9293 section 3.3.1: RCV.WND).
    fn window(&self) -> u32 {
        self.buffer - self.withheld
    }

    fn on_segment(&mut self, now: Time, segment: &Segment, marked: bool, out: &mut Out) {
        if segment.flags & (Flags::SYN | Flags::RST) != Flags::default() {
            return self.on_syn_or_rst(now, segment, out);
        }
        if !self.established {
            if self.reset {
                self.refuse(now, segment, out);
            }
            return;
        }
        if self.is_outdated(now, segment) {
            return self.answer_outdated(now, segment, out);
        }
        self.react(|reaction, receiver| reaction.on_segment(now, segment, receiver));
        let expected = segment.seq == self.rcv_nxt && self.fin.is_none();
        let acceptable = expected || self.is_acceptable(segment);
        if acceptable {
            self.note_timestamp(now, segment);
        }
        if self.ecn {
            // RFC 3168 section 6.1.3: a mark on the very packet that brings CWR begins the echo anew.
            self.echoes = marked || (self.echoes && !segment.flags.has(Flags::CWR));
        }
        if segment.seq_len() == 0 {
            return;
        }
        if !acceptable {
            return self.acknowledge(now, None, out);
        }
        self.stats.segments += 1;
        let had_gap = !self.queue.is_empty();
        let in_order = segment.seq == self.rcv_nxt;
        let repeated = self.repeated_part(segment);
        self.store(now, segment);
        self.stats.duplicate_segments += u64::from(repeated.is_some_and(|part| part == whole(segment)));
        self.take_fin(segment);
        let arrival = Arrival {
            is_first: segment.seq == SeqNum(self.settings.iss),
            in_order,
            // FIN moves the edge further, and nothing follows it that an acknowledgement could wait for.
            at_edge: self.rcv_nxt == whole(segment).end,
            had_gap,
            has_gap: !self.queue.is_empty(),
            repeated: repeated == Some(whole(segment)),
        };
        if self.delayed_ack.is_due(&arrival) {
            self.acknowledge(now, Some((segment, repeated)), out);
        } else if !self.timers.runs(Timer::DelayedAck) {
            self.timers.set(Timer::DelayedAck, self.settings.expiry(now, self.settings.ack_delay));
        }
    }

    /// Whether the segment is older than one that has moved the left edge (RFC 7323 section 5.3, R1). Where copies are
    /// told apart, timestamps are no more than names.
    fn is_outdated(&self, now: Time, segment: &Segment) -> bool {
        let stamped = segment.timestamps.filter(|_| !self.settings.tells_copies());
        stamped.is_some_and(|ts| self.ts_recent.lead(now, ts.value).is_some())
    }

    /// Answers a segment that is too old, of which nothing is taken; it may be reported as a duplicate, as in Linux.
    fn answer_outdated(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        if segment.seq_len() > 0 {
            let repeated = self.repeated_part(segment);
            self.stats.segments += 1;
            self.stats.outdated_segments += 1;
            self.stats.duplicate_segments += u64::from(repeated == Some(whole(segment)));
            self.acknowledge(now, Some((segment, repeated)), out);
        }
    }

    fn on_syn_or_rst(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        if segment.flags.has(Flags::RST) {
            self.on_rst(segment);
        } else if self.reset {
            self.refuse(now, segment, out);
        } else {
            self.on_syn(now, segment, out);
        }
    }

    /// The sender has given up (RFC 9293 section 3.10.7.4). Its RST stands behind all that it has sent, and
    /// how much of that arrived it cannot know; so any is taken that lies in the window, or behind the
    /// byte of a probe and FIN, which take no room there (section 3.8.6.1: RST, window or not).
    fn on_rst(&mut self, segment: &Segment) {
        let furthest = self.rcv_nxt + self.window() + 2;
        if self.established && segment.seq >= self.rcv_nxt && segment.seq <= furthest {
            self.break_off();
        }
    }

    fn break_off(&mut self) {
        (self.reset, self.established) = (true, false);
        self.timers = Timers::STOPPED;
    }

    /// Answers a segment of a connection that is no more (RFC 9293 section 3.10.7.1).
    fn refuse(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        let (seq, ack, flags) = if segment.flags.has(Flags::ACK) {
            (segment.ack, SeqNum(0), Flags::RST)
        } else {
            (SeqNum(0), segment.seq + segment.seq_len(), Flags::RST | Flags::ACK)
        };
        self.send(now, seq, ack, flags, SackBlocks::default(), out);
    }

    /// RFC 9293 section 3.10.7.2; a repeated SYN is answered again.
    fn on_syn(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        self.ts_recent = RecentTimestamp::of_syn(now, segment.timestamps.map(|ts| ts.value));
        if !self.established {
            self.established = true;
            self.rcv_nxt = segment.seq + 1;
        }
        // RFC 3168 section 6.1.1.
        self.ecn = self.settings.ecn && segment.flags.has(Flags::ECE | Flags::CWR);
        let agreed = if self.ecn { Flags::ECE } else { Flags::default() };
        let flags = Flags::SYN | Flags::ACK | agreed;
        self.send(now, self.snd_iss(), self.rcv_nxt, flags, SackBlocks::default(), out);
        self.snd_nxt = self.snd_iss() + 1;
    }

    /// Our own sequence numbers begin where the sender's do: it sends us no fewer surprises.
    fn snd_iss(&self) -> SeqNum {
        SeqNum(self.settings.iss)
    }

    /// Where the payload of a segment begins and ends, counted from the next byte expected. What lies more than
    /// 2 GiB away lies behind.
    fn offsets(&self, segment: &Segment) -> (i64, i64) {
        let start = i64::from(segment.seq.0.wrapping_sub(self.rcv_nxt.0) as i32);
        (start, start + i64::from(segment.len))
    }

    /// Whether something of the segment may be new or a copy of what was sent not long ago (RFC 9293 section
    /// 3.10.7.4: acceptable). Nothing is after FIN.
    fn is_acceptable(&self, segment: &Segment) -> bool {
        let (start, end) = self.offsets(segment);
        let after_fin = self.fin.is_some_and(|fin| segment.seq > fin);
        start <= i64::from(self.window()) && end >= -FURTHEST_BEHIND && !after_fin
    }

    /// The part of the segment that has arrived before, if there is one (RFC 2883).
    fn repeated_part(&self, segment: &Segment) -> Option<SackBlock> {
        let SackBlock { start, end } = whole(segment);
        let below = SackBlock { start, end: end.min(self.rcv_nxt) };
        let queued = || self.queue.around(start).map(|block| SackBlock { start, end: end.min(block.end) });
        if start < self.rcv_nxt { Some(below) } else { queued() }.filter(|part| part.start < part.end)
    }

    /// Puts the payload where it belongs and delivers what is in order. What lies beyond the window, or behind FIN,
    /// is not kept.
    fn store(&mut self, now: Time, segment: &Segment) {
        // What comes in order, and that is most, passes an empty queue by.
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
        self.queue.insert(start, end);
        if let Some(block) = self.queue.around(self.rcv_nxt) {
            self.queue.forget_before(block.end);
            self.deliver(now, block.end);
        }
    }

    /// Delivers all before `end`.
    fn deliver(&mut self, now: Time, end: SeqNum) {
        let delivered = end - self.rcv_nxt;
        self.rcv_nxt = end;
        self.withheld += if self.paused { delivered } else { 0 };
        self.stats.delivered += Bytes(u64::from(delivered));
        self.stats.last_delivery = now;
    }

    /// Remembers FIN, and takes it once all data before it have arrived. One that contradicts what has arrived, or
    /// an earlier one, is none.
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

    fn note_timestamp(&mut self, now: Time, segment: &Segment) {
        let echoed = |_: &Timestamps| self.settings.tells_copies() || segment.seq <= self.last_ack_sent;
        if let Some(ts) = segment.timestamps.filter(echoed) {
            self.ts_recent.note(now, ts.value);
        }
    }

    /// Acknowledges everything received in order; `latest` is the segment that asks for it, with the
    /// part of it that was repeated.
    fn acknowledge(&mut self, now: Time, latest: Option<(&Segment, Option<SackBlock>)>, out: &mut Out) {
        self.delayed_ack.on_acknowledged();
        self.timers.stop(Timer::DelayedAck);
        let sack = if self.settings.sack() {
            let (segment, repeated) = latest.unzip();
            self.report(segment, repeated.flatten().filter(|_| self.settings.dsack))
        } else {
            SackBlocks::default()
        };
        // Our FIN rides on the acknowledgement of the peer's; should it be lost, the peer's FIN comes
        // again and so does ours.
        let closed = self.settings.close && self.has_ended();
        let flags = if closed { Flags::ACK | Flags::FIN } else { Flags::ACK };
        let flags = if self.echoes { flags | Flags::ECE } else { flags };
        self.send(now, self.snd_nxt, self.rcv_nxt, flags, sack, out);
    }

    /// The blocks to report: the repeated part first (RFC 2883), then the block around the latest
    /// segment, then those reported before (RFC 2018 section 4).
    fn report(&mut self, latest: Option<&Segment>, repeated: Option<SackBlock>) -> SackBlocks {
        let fit = SackBlocks::MAX - usize::from(self.settings.stamps());
        let most = fit.min(self.settings.sack_blocks as usize);
        let rcv_nxt = self.rcv_nxt;
        let newest =
            latest.filter(|latest| latest.seq >= rcv_nxt).and_then(|latest| self.queue.around(latest.seq));
        self.reported.retain(|old| {
            let covered = newest.is_some_and(|new| new.start <= old.start && old.end <= new.end);
            old.end > rcv_nxt && !covered
        });
        if let Some(newest) = newest {
            self.reported.insert(0, newest);
            self.reported.truncate(most);
        }
        let mut blocks = SackBlocks::default();
        let room = most - usize::from(repeated.is_some());
        repeated
            .into_iter()
            .chain(self.reported.iter().copied().take(room))
            .for_each(|block| blocks.push(block));
        blocks
    }

    /// Calls a hook of each reaction. They are out of their place meanwhile, so that they may be given the
    /// receiver.
    #[inline]
    fn react(&mut self, hook: impl FnMut(&mut dyn ReceiverReaction, &mut Receiver)) {
        if !self.reactions.is_empty() {
            self.call_reactions(hook);
        }
    }

    fn call_reactions(&mut self, mut hook: impl FnMut(&mut dyn ReceiverReaction, &mut Receiver)) {
        let mut reactions = core::mem::take(&mut self.reactions);
        reactions.each().for_each(|reaction| hook(reaction, self));
        self.reactions = reactions;
        self.timers.set(Timer::Reaction, self.reactions.next_wakeup());
    }

    /// Sends the acknowledgements that reactions have asked for.
    fn send_asked(&mut self, now: Time, out: &mut Out) {
        for _ in 0..core::mem::take(&mut self.asked) {
            self.acknowledge(now, None, out);
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
                assert!(reaction.next_wakeup() > now, "{reaction:?} has not set its timer anew");
            }
        });
    }

    fn send(&mut self, now: Time, seq: SeqNum, ack: SeqNum, flags: Flags, sack: SackBlocks, out: &mut Out) {
        let timestamps = self.settings.stamps();
        let mut segment = Segment {
            seq,
            ack,
            len: 0,
            wnd: self.window(),
            flags,
            sack,
            timestamps: timestamps.then(|| Timestamps { value: timestamp(now), echo: self.ts_recent.echo() }),
        };
        if flags & (Flags::SYN | Flags::RST) == Flags::default() {
            let mut withheld = false;
            self.react(|reaction, receiver| {
                withheld = withheld || reaction.on_ack(now, &mut segment, receiver) == AckResponse::Withhold;
            });
            if withheld {
                return;
            }
        }
        let Connection { src, dst, flow } = self.connection;
        let size = self.settings.header + option_bytes(&segment, &self.settings);
        let (dscp, body) = (Dscp::DEFAULT, Body::Tcp(segment));
        out.send(Port::ONLY, Packet { src: dst, dst: src, flow, size, dscp, ecn: Ecn::NotEct, body });
        self.last_ack_sent = self.rcv_nxt;
        self.stats.acks_sent += 1;
    }
}

/// The payload of a segment as a block.
fn whole(segment: &Segment) -> SackBlock {
    SackBlock { start: segment.seq, end: segment.seq + segment.len }
}

impl Component for Receiver {
    fn receive(&mut self, now: Time, packet: Packet, _port: Port, out: &mut Out) {
        match &packet.body {
            Body::Tcp(segment) => self.on_segment(now, segment, packet.ecn == Ecn::Ce, out),
            Body::Notice(notice) => self.on_notice(now, notice),
            Body::Datagram(_) => {}
        }
        self.send_asked(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        while let Some(timer) = self.timers.due(now) {
            self.on_timer(now, timer, out);
        }
        self.send_asked(now, out);
    }

    fn next_wakeup(&self) -> Time {
        self.timers.next()
    }
}
