//! A synchronised connection: both halves, and the rules by which segments reach them (RFC 9293 section 3.10.7.4).

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::tcp::{Connection as Ends, Flags, Receiver, SackBlocks, Segment, Sender, SeqNum};
use lasthop_proto::{Body, Component, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet, Port};
use lasthop_wire::TcpHeader;

use crate::buffers::{Inbox, Outbox};
use crate::clock::Clock;
use crate::config::{Config, KeepAlive};
use crate::handshake::{Handshake, LARGEST_WINDOW, PeerSyn};
use crate::options::Agreement;
use crate::packet::{Incoming, Outlet};
use crate::throttle::Throttle;

/// The names of the ends within the halves.
const ENDS: Ends = Ends { src: HostId(0), dst: HostId(1), flow: FlowId(0) };

/// What surrounds a connection: the bytes of the application, and the way out.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) outbox: Outbox,
    pub(crate) inbox: Inbox,
    pub(crate) outlet: Outlet,
}

/// What a segment does to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing; it may have been answered.
    Dropped,
    /// It was processed.
    Taken,
    /// It resets the connection.
    Reset,
    /// It carries data that the application does not want.
    Unwanted,
}

/// The state of RFC 9293 section 3.3.1, most of it in the two halves.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: Sender,
    receiver: Receiver,
    out: Out,
    agreed: Agreement,
    clock: Clock,
    /// Sequence and acknowledgement number of the last window update (SND.WL1, SND.WL2).
    update: (SeqNum, SeqNum),
    /// The largest window that the peer has offered (MAX.SND.WND).
    largest_window: u32,
    last_ack_sent: SeqNum,
    /// An acknowledgement that leaves at the end of the event, with its SACK blocks.
    ack_due: Option<SackBlocks>,
    throttle: Throttle,
    keep_alive: Option<KeepAliveTimer>,
    user_timeout: Option<Duration>,
    /// When the peer last acknowledged new data, or answered a probe of its closed window.
    progressed_at: Time,
    is_given_up: bool,
}

#[derive(Clone, Copy, Debug)]
struct KeepAliveTimer {
    settings: KeepAlive,
    deadline: Time,
    unanswered: u32,
}

impl Connection {
    /// The connection after a handshake. Sends what the application has written meanwhile, and an acknowledgement if it
    /// `owes_ack`.
    pub(crate) fn new(
        now: Time,
        config: &Config,
        handshake: &Handshake,
        syn: &PeerSyn,
        owes_ack: bool,
        around: &mut Surroundings,
    ) -> Connection {
        let agreed = handshake.agreement(syn);
        let (snd_nxt, rcv_nxt) = (handshake.snd_nxt(), syn.rcv_nxt());
        let settings = config.of_half(&agreed, snd_nxt.0, syn.window);
        let mut sender = Sender::supplied(ENDS, &settings, Vec::new());
        if !config.nagle {
            sender = sender.without_nagle();
        }
        let buffer = config.settings.window_payload();
        let window = if agreed.our_scale > 0 { buffer } else { buffer.min(LARGEST_WINDOW) };
        let mut receiver = Receiver::new(ENDS, &config.of_half(&agreed, rcv_nxt.0, window));
        receiver.pause();
        let mut connection = Connection {
            sender,
            receiver,
            out: Out::default(),
            agreed,
            clock: handshake.clock,
            update: (syn.irs, snd_nxt),
            largest_window: syn.window,
            last_ack_sent: rcv_nxt,
            ack_due: owes_ack.then(SackBlocks::default),
            throttle: Throttle::default(),
            keep_alive: config.keep_alive.map(|settings| KeepAliveTimer {
                settings,
                deadline: now + settings.idle,
                unanswered: 0,
            }),
            user_timeout: config.settings.user_timeout,
            progressed_at: now,
            is_given_up: false,
        };
        around.outbox.begin_at(snd_nxt);
        let (rtt, written) = (handshake.rtt(now), around.outbox.len() as u64);
        connection.drive_sender(now, around, |sender, out| {
            sender.open_established(now, rtt, out);
            sender.supply(now, written, out);
        });
        connection.flush(now, around);
        connection
    }

    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    pub(crate) fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Whether our FIN was sent and acknowledged.
    pub(crate) fn fin_is_acknowledged(&self) -> bool {
        self.sender.stats().completed.is_some()
    }

    /// Whether the peer's FIN and all data before it have arrived.
    pub(crate) fn fin_is_received(&self) -> bool {
        self.receiver.has_ended()
    }

    /// Whether the connection was aborted because the peer is silent, or has not acknowledged anything for too long.
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up || self.sender.is_aborted()
    }

    pub(crate) fn next_wakeup(&self) -> Time {
        let keep_alive = self.keep_alive.map_or(Time::NEVER, |timer| timer.deadline);
        self.sender.next_wakeup().min(self.receiver.next_wakeup()).min(keep_alive)
    }

    // ---- the application ---------------------------------------------------------------------------

    /// Sends `bytes` that the application has put into the outbox.
    pub(crate) fn supply(&mut self, now: Time, bytes: u64, around: &mut Surroundings) {
        self.drive_sender(now, around, |sender, out| sender.supply(now, bytes, out));
    }

    /// Sends FIN after everything in the outbox.
    pub(crate) fn close(&mut self, now: Time, around: &mut Surroundings) {
        self.drive_sender(now, around, |sender, out| sender.close(now, out));
    }

    /// Opens the window after the application has read `bytes`.
    pub(crate) fn note_read(&mut self, now: Time, bytes: u64, around: &mut Surroundings) {
        self.receiver.read(now, bytes, &mut self.out);
        self.after_receiver();
        self.flush(now, around);
    }

    /// Acknowledges at once.
    pub(crate) fn acknowledge(&mut self, now: Time, around: &mut Surroundings) {
        self.ack_due.get_or_insert_default();
        self.flush(now, around);
    }

    /// Sends RST (RFC 9293 section 3.10.5).
    pub(crate) fn reset(&self, outlet: &mut Outlet) {
        let flags = Flags::RST | Flags::ACK;
        let (seq, ack) = (self.sender.snd_max(), self.receiver.rcv_nxt());
        outlet.put_bare(Segment { seq, ack, flags, ..Segment::default() });
    }

    /// Whether `syn` may begin a new incarnation of a connection in TIME-WAIT (RFC 9293 section 3.10.7.4, RFC 6191).
    pub(crate) fn is_older_than(&self, now: Time, syn: &Segment) -> bool {
        let both_stamp = self.agreed.timestamps && syn.timestamps.is_some();
        if both_stamp { self.clock.is_older_than(now, syn) } else { syn.seq > self.receiver.rcv_nxt() }
    }

    // ---- segments ----------------------------------------------------------------------------------

    /// Processes a segment of the peer.
    pub(crate) fn receive(&mut self, now: Time, packet: &Incoming<'_>, around: &mut Surroundings) -> Verdict {
        let mut segment = packet.segment();
        if segment.flags.has(Flags::RST) {
            return self.on_reset(now, &segment, around);
        }
        if !self.agreed.timestamps {
            segment.timestamps = None;
        } else if segment.timestamps.is_none() {
            // RFC 7323 section 3.2.
            return Verdict::Dropped;
        }
        if self.clock.is_outdated(now, &segment) {
            self.answer_unacceptable(now, segment.seq_len() > 0, around);
            return Verdict::Dropped;
        }
        if !self.is_acceptable(&segment) {
            self.on_unacceptable(now, packet, segment, around);
            return Verdict::Dropped;
        }
        let is_valid =
            segment.flags & (Flags::SYN | Flags::ACK) == Flags::ACK && self.is_valid_ack(segment.ack);
        if !is_valid {
            // RFC 5961 sections 4.2 and 5.2; without an acknowledgement RFC 9293 drops it.
            if segment.flags & (Flags::SYN | Flags::ACK) != Flags::default() {
                self.answer_unacceptable(now, false, around);
            }
            return Verdict::Dropped;
        }
        if around.inbox.is_closed() && segment.len > 0 && segment.seq + segment.len > self.receiver.rcv_nxt()
        {
            return Verdict::Unwanted;
        }
        self.clock.note(now, &segment, self.last_ack_sent);
        if let Some(timer) = &mut self.keep_alive {
            (timer.deadline, timer.unanswered) = (now + timer.settings.idle, 0);
        }
        self.give_to_receiver(now, packet, segment, around);
        self.give_to_sender(now, segment, around);
        self.flush(now, around);
        Verdict::Taken
    }

    /// Processes RST: only the next sequence number expected resets; another one in the window is challenged (RFC 5961
    /// section 3.2).
    fn on_reset(&mut self, now: Time, segment: &Segment, around: &mut Surroundings) -> Verdict {
        if segment.seq == self.receiver.rcv_nxt() {
            return Verdict::Reset;
        }
        if self.is_acceptable(&Segment { len: 0, flags: Flags::RST, ..*segment }) {
            self.answer_unacceptable(now, false, around);
        }
        Verdict::Dropped
    }

    /// Whether any of the segment may lie in the window (RFC 9293 section 3.10.7.4). As in Linux, a segment that ends at
    /// the left edge is acceptable, and so is one that begins at the right edge: a probe of a closed window.
    fn is_acceptable(&self, segment: &Segment) -> bool {
        let left = self.receiver.rcv_nxt();
        segment.seq + segment.seq_len() >= left
            && segment.seq <= left + self.receiver.window()
            && !segment.seq.is_far_from(left)
    }

    /// Whether the acknowledgement number is in the range of RFC 5961 section 5.2.
    fn is_valid_ack(&self, ack: SeqNum) -> bool {
        let una = self.sender.snd_una();
        ack <= self.sender.snd_max() && (ack >= una || una - ack <= self.largest_window)
    }

    /// Answers a segment outside the window. The receiver reports old data as duplicates (RFC 2883).
    fn on_unacceptable(
        &mut self,
        now: Time,
        packet: &Incoming<'_>,
        segment: Segment,
        around: &mut Surroundings,
    ) {
        let end = segment.seq + segment.len;
        let is_old =
            segment.len > 0 && end <= self.receiver.rcv_nxt() && !end.is_far_from(self.receiver.rcv_nxt());
        if is_old && !segment.flags.has(Flags::SYN) {
            self.give_to_receiver(now, packet, segment, around);
            self.flush(now, around);
        } else {
            self.answer_unacceptable(now, segment.len > 0 && !segment.flags.has(Flags::SYN), around);
        }
    }

    /// Acknowledges; without data in the segment only so often (RFC 5961 section 7), since two ends may answer each other
    /// for ever.
    fn answer_unacceptable(&mut self, now: Time, has_data: bool, around: &mut Surroundings) {
        if has_data || self.throttle.permits(now) {
            self.acknowledge(now, around);
        }
    }

    fn give_to_receiver(
        &mut self,
        now: Time,
        packet: &Incoming<'_>,
        segment: Segment,
        around: &mut Surroundings,
    ) {
        let before = self.receiver.stats().delivered;
        let left = self.receiver.rcv_nxt();
        // What of the payload lies in the window.
        let skipped = if segment.seq < left { left - segment.seq } else { 0 } as usize;
        let offset = if segment.seq < left { 0 } else { segment.seq - left } as usize;
        let payload = packet.payload.get(skipped..).unwrap_or_default();
        let room = (self.receiver.window() as usize).saturating_sub(offset);
        if !self.receiver.has_ended() {
            around.inbox.store(offset, &payload[..payload.len().min(room)]);
        }
        // PAWS was the endpoint's part, and so is the echo.
        let segment = Segment { timestamps: None, ..segment };
        self.receiver.receive(now, &within(segment, packet.ecn), Port::ONLY, &mut self.out);
        let delivered = self.receiver.stats().delivered - before;
        around.inbox.deliver(delivered.0 as usize);
        self.after_receiver();
    }

    fn give_to_sender(&mut self, now: Time, mut segment: Segment, around: &mut Surroundings) {
        let (seq, ack) = self.update;
        let is_newer = seq < segment.seq || (seq == segment.seq && ack <= segment.ack);
        if is_newer && segment.ack >= self.sender.snd_una() {
            self.update = (segment.seq, segment.ack);
            segment.wnd <<= self.agreed.their_scale;
            self.largest_window = self.largest_window.max(segment.wnd);
        } else {
            // Older than the last update of the window.
            segment.wnd = self.sender.rwnd();
        }
        if segment.ack == self.sender.snd_una() && segment.wnd == 0 {
            self.progressed_at = now;
        }
        segment.timestamps = self.clock.translate(now, &segment);
        let packet = within(segment, Ecn::NotEct);
        self.drive_sender(now, around, |sender, out| sender.receive(now, &packet, Port::ONLY, out));
        around.outbox.acknowledge(self.sender.acknowledged());
    }

    /// The path did not take the segment at `lost`, since it takes only packets of `mtu` bytes.
    pub(crate) fn narrow(&mut self, now: Time, mtu: u32, lost: SeqNum, around: &mut Surroundings) {
        let options = if self.agreed.timestamps { 12 } else { 0 };
        let mss = mtu.saturating_sub(self.agreed.header.0 as u32 + options);
        if mss > 0 && mss < self.agreed.mss {
            self.agreed.mss = mss;
            self.drive_sender(now, around, |sender, out| sender.narrow(now, mss, lost, out));
        }
    }

    /// Whether data at `seq` are in flight.
    pub(crate) fn is_in_flight(&self, seq: SeqNum) -> bool {
        seq >= self.sender.snd_una() && seq < self.sender.snd_max()
    }

    pub(crate) fn wake(&mut self, now: Time, around: &mut Surroundings) {
        if self.sender.next_wakeup() <= now {
            self.drive_sender(now, around, |sender, out| sender.wake(now, out));
            self.give_up_if_stuck(now, around);
        }
        if self.receiver.next_wakeup() <= now {
            self.receiver.wake(now, &mut self.out);
            self.after_receiver();
        }
        self.keep_alive(now, around);
        self.flush(now, around);
    }

    /// Gives up when nothing outstanding has been acknowledged for the user timeout (RFC 9293 section 3.8.3). The sender gives
    /// up when the peer is silent; this peer answers, but not to the point.
    fn give_up_if_stuck(&mut self, now: Time, around: &mut Surroundings) {
        let waited = now.since(self.progressed_at);
        if self.sender.flight_size() > 0 && self.user_timeout.is_some_and(|longest| waited >= longest) {
            self.give_up(around);
        }
    }

    fn give_up(&mut self, around: &mut Surroundings) {
        if !self.is_given_up() {
            self.reset(&mut around.outlet);
            self.is_given_up = true;
        }
    }

    /// Probes an idle connection with a segment before the window, which asks for an ACK (RFC 9293 section 3.8.4).
    fn keep_alive(&mut self, now: Time, around: &mut Surroundings) {
        let is_idle = self.sender.flight_size() == 0 && self.sender.unsent() == 0;
        let Some(timer) = self.keep_alive.as_mut().filter(|timer| timer.deadline <= now) else { return };
        if !is_idle {
            timer.deadline = now + timer.settings.idle;
            return;
        }
        timer.unanswered += 1;
        timer.deadline = now + timer.settings.interval;
        if timer.unanswered > timer.settings.probes {
            self.give_up(around);
        } else {
            let seq = self.sender.snd_max() - 1;
            self.emit(now, Segment { seq, ..Segment::default() }, Ecn::NotEct, around);
        }
    }

    // ---- output ------------------------------------------------------------------------------------

    /// Calls the sender, and sends what it has to say.
    fn drive_sender(
        &mut self,
        now: Time,
        around: &mut Surroundings,
        act: impl FnOnce(&mut Sender, &mut Out),
    ) {
        let (una, was_idle) = (self.sender.snd_una(), self.sender.flight_size() == 0);
        act(&mut self.sender, &mut self.out);
        if was_idle || self.sender.snd_una() != una {
            self.progressed_at = now;
        }
        self.after_sender(now, around);
    }

    /// Puts the sender's segments on the wire. Its pure ACKs are left to the receiver.
    fn after_sender(&mut self, now: Time, around: &mut Surroundings) {
        while let Some((_, effect)) = self.out.take() {
            let Effect::Send(_, Packet { body: Body::Tcp(segment), ecn, .. }) = effect else { continue };
            if segment.flags.has(Flags::RST) {
                self.reset(&mut around.outlet);
            } else if segment.seq_len() > 0 {
                self.emit(now, segment, ecn, around);
                // Another acknowledgement would say the same.
                self.ack_due.take_if(|sack| sack.is_empty());
            }
        }
    }

    /// Keeps the receiver's acknowledgement for the end of the event.
    fn after_receiver(&mut self) {
        while let Some((_, effect)) = self.out.take() {
            if let Effect::Send(_, Packet { body: Body::Tcp(segment), .. }) = effect {
                self.ack_due = Some(segment.sack);
            }
        }
    }

    /// Sends a pure ACK if one is due and no data have taken it along.
    fn flush(&mut self, now: Time, around: &mut Surroundings) {
        if let Some(sack) = self.ack_due.take() {
            // Within the peer's window, as in Linux; data and FIN may have gone beyond it.
            let edge = self.sender.snd_una() + self.sender.rwnd();
            let seq = self.sender.snd_max().min(edge);
            self.emit(now, Segment { seq, sack, ..Segment::default() }, Ecn::NotEct, around);
        }
    }

    /// Sends a segment with everything that the receiver says, and the payload from the outbox.
    fn emit(&mut self, now: Time, mut segment: Segment, ecn: Ecn, around: &mut Surroundings) {
        self.receiver.piggyback(&mut segment);
        self.last_ack_sent = segment.ack;
        segment.wnd = (segment.wnd >> self.agreed.our_scale).min(LARGEST_WINDOW);
        segment.timestamps = self.agreed.timestamps.then(|| self.clock.stamp(now));
        let (payload, ends) = if segment.len > 0 {
            around.outbox.segment(segment.seq, segment.len)
        } else {
            (Vec::new(), false)
        };
        if ends {
            segment.flags = segment.flags | TcpHeader::PSH;
        }
        around.outlet.put(TcpHeader { segment, ..TcpHeader::default() }, ecn, payload);
    }
}

/// A segment as the halves take it.
fn within(segment: Segment, ecn: Ecn) -> Packet {
    let Ends { src, dst, flow } = ENDS;
    let size = Bytes(segment.len.into());
    Packet { src, dst, flow, size, dscp: Dscp::DEFAULT, ecn, handle: Handle::NONE, body: Body::Tcp(segment) }
}
