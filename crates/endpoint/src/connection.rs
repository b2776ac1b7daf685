//! A synchronised connection: the sending and the receiving half, and the checks of arriving segments (RFC
//! 9293 section 3.10.7.4).

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::split::{Received, Withholding};
use lasthop_proto::tcp::{
    Connection as Ends, Flags, Reactions, Receiver, ReceiverReactions, SackBlocks, Segment, Sender, SeqNum,
    code_of,
};
use lasthop_proto::{
    Body, Component, Dscp, Ecn, Effect, FlowId, Handle, HostId, Notice, Out, Packet, Port, Reach, Signal,
};
use lasthop_wire::TcpHeader;

use crate::buffers::{ReceiveBuffer, SendBuffer};
use crate::clock::Clock;
use crate::config::{Config, KeepAlive};
use crate::handshake::{Handshake, LARGEST_WINDOW, PeerSyn};
use crate::options::{Agreement, options_len};
use crate::packet::{Incoming, OutgoingQueue};
use crate::throttle::Throttle;

/// Placeholder addresses: the two halves are addressed by hosts of the simulator.
const ENDS: Ends = Ends { src: HostId(0), dst: HostId(1), flow: FlowId(0) };

/// The input and output of a connection: its buffers, and the packets to send.
#[derive(Debug)]
pub(crate) struct Io {
    pub(crate) send_buffer: SendBuffer,
    pub(crate) receive_buffer: ReceiveBuffer,
    pub(crate) outgoing: OutgoingQueue,
}

/// The effect of a segment on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Dropped, possibly with an ACK in response.
    Dropped,
    /// Processed.
    Accepted,
    /// A valid RST.
    Reset,
    /// New data after the application has closed.
    Unwanted,
}

/// The transmission control block (RFC 9293 section 3.3.1); most of it is in the two halves.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: Sender,
    receiver: Receiver,
    out: Out,
    agreed: Agreement,
    /// The ECN field of the SYN-ACK, until the first segment: it is reported if that is a pure ACK.
    syn_ack: Option<Ecn>,
    clock: Clock,
    /// Sequence and acknowledgement number of the last window update (SND.WL1, SND.WL2).
    update: (SeqNum, SeqNum),
    /// The largest window that the peer has offered (MAX.SND.WND).
    largest_window: u32,
    last_ack_sent: SeqNum,
    /// The SACK blocks of an ACK that is sent at the end of the current event; `None` if none is due.
    ack_due: Option<SackBlocks>,
    /// The acknowledgements, if they wait for another host.
    withholding: Option<Withholding>,
    /// Whether the acknowledgement of the current event is sent even if it has nothing new.
    is_due: bool,
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
    /// The connection after a handshake. Sends data written during the handshake, and an ACK if `owes_ack`.
    pub(crate) fn new(
        now: Time,
        config: &Config,
        handshake: &Handshake,
        syn: &PeerSyn,
        owes_ack: bool,
        (reactions, receiver_reactions): (Reactions, ReceiverReactions),
        io: &mut Io,
    ) -> Connection {
        let agreed = handshake.agreement(syn);
        let (snd_nxt, rcv_nxt) = (handshake.snd_nxt(), syn.rcv_nxt());
        let ecn = handshake.ecn(syn);
        let settings = agreed.settings(config, ecn.mode, snd_nxt.0, syn.window);
        let sender = Sender::supplied(ENDS, &settings, reactions);
        let mut sender = if config.nagle { sender } else { sender.without_nagle() };
        let buffer = config.settings.window_payload();
        let window = if agreed.our_scale > 0 { buffer } else { buffer.min(LARGEST_WINDOW) };
        let receiver = Receiver::new(ENDS, &agreed.settings(config, ecn.mode, rcv_nxt.0, window));
        let mut receiver = receiver.with_reactions(receiver_reactions);
        receiver.pause();
        if config.spares_updates {
            receiver.spare_updates();
        }
        if !ecn.is_capable {
            sender.stop_marking();
            receiver.stop_marking();
        }
        if ecn.is_cleared {
            sender.ignore_reports();
        }
        if ecn.syn_ack == Some(Ecn::Ce) {
            receiver.note_marked_syn_ack();
        }
        let mut connection = Connection {
            sender,
            receiver,
            out: Out::default(),
            agreed,
            syn_ack: ecn.syn_ack,
            clock: handshake.clock,
            update: (syn.irs, snd_nxt),
            largest_window: syn.window,
            last_ack_sent: rcv_nxt,
            ack_due: owes_ack.then(SackBlocks::default),
            withholding: config.withholds.map(|it| Withholding::new(it.hold, it.is_outward)),
            is_due: owes_ack,
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
        io.send_buffer.begin_at(snd_nxt);
        let (rtt, written) = (handshake.rtt(now), io.send_buffer.len() as u64);
        connection.drive_sender(now, io, |sender, out| {
            sender.open_established(now, rtt, out);
            sender.supply(now, written, out);
        });
        connection.flush(now, io);
        connection
    }

    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    pub(crate) fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Maximum payload of a segment.
    pub(crate) fn mss(&self) -> u32 {
        self.agreed.mss
    }

    /// Shift of the windows that we send.
    pub(crate) fn window_scale(&self) -> u8 {
        self.agreed.our_scale
    }

    /// Whether our FIN was sent and acknowledged.
    pub(crate) fn fin_is_acknowledged(&self) -> bool {
        self.sender.stats().completed.is_some()
    }

    /// Whether the peer's FIN and all data before it have arrived.
    pub(crate) fn fin_is_received(&self) -> bool {
        self.receiver.has_ended()
    }

    /// Whether the peer's FIN has arrived, and its acknowledgement waits.
    pub(crate) fn withholds_fin(&self) -> bool {
        let withholding = self.withholding.as_ref().filter(|_| self.fin_is_received());
        withholding.is_some_and(|withholding| !withholding.is_complete(&Received::from(&self.receiver)))
    }

    /// Whether the user timeout or keep-alive has aborted the connection.
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up || self.sender.is_aborted()
    }

    pub(crate) fn next_wakeup(&self) -> Time {
        let keep_alive = self.keep_alive.map_or(Time::NEVER, |timer| timer.deadline);
        let withheld = self.withholding.as_ref().map_or(Time::NEVER, Withholding::deadline);
        self.sender.next_wakeup().min(self.receiver.next_wakeup()).min(keep_alive).min(withheld)
    }

    // ---- the application ---------------------------------------------------------------------------

    /// Sends `bytes` that the application has written to the send buffer.
    pub(crate) fn supply(&mut self, now: Time, bytes: u64, io: &mut Io) {
        self.drive_sender(now, io, |sender, out| sender.supply(now, bytes, out));
    }

    /// Enables or disables Nagle's algorithm.
    pub(crate) fn set_nagle(&mut self, now: Time, nagle: bool, io: &mut Io) {
        self.drive_sender(now, io, |sender, out| sender.set_nagle(now, nagle, out));
    }

    /// Sends FIN after the last byte in the send buffer.
    pub(crate) fn close(&mut self, now: Time, io: &mut Io) {
        self.drive_sender(now, io, |sender, out| sender.close(now, out));
    }

    /// Opens the window after the application has read `bytes`.
    pub(crate) fn on_read(&mut self, now: Time, bytes: u64, io: &mut Io) {
        self.drive_receiver(|receiver, out| _ = receiver.read(now, bytes, out));
        self.flush(now, io);
    }

    /// Passes a scheme's control message to the reactions.
    pub(crate) fn on_notice(&mut self, now: Time, notice: &Notice, io: &mut Io) {
        let packet = Packet { body: Body::Notice(*notice), ..to_packet(Segment::default(), Ecn::NotEct) };
        self.drive_receiver(|receiver, out| receiver.receive(now, &packet, Port::ONLY, out));
        self.drive_sender(now, io, |sender, out| sender.receive(now, &packet, Port::ONLY, out));
        self.flush(now, io);
    }

    /// Notifies the reactions of a change of the peer's radio signal.
    pub(crate) fn on_reach(&mut self, now: Time, reach: Reach, io: &mut Io) {
        let signal = Signal::Reach(reach);
        self.drive_receiver(|receiver, out| receiver.on_signal(now, &signal, out));
        self.drive_sender(now, io, |sender, out| sender.on_signal(now, &signal, out));
        self.flush(now, io);
    }

    /// Sends an ACK immediately.
    pub(crate) fn acknowledge(&mut self, now: Time, io: &mut Io) {
        self.is_due = true;
        self.ack_due.get_or_insert_default();
        self.flush(now, io);
    }

    /// Permits acknowledgements of `bytes` in total, and of FIN if `is_finished`.
    pub(crate) fn release(&mut self, now: Time, bytes: u64, is_finished: bool, io: &mut Io) {
        if let Some(withholding) = &mut self.withholding {
            withholding.release(now, bytes, is_finished);
            self.acknowledge_news(now, io);
        }
    }

    /// The radio signal of the host for which acknowledgements wait has changed.
    pub(crate) fn on_far_reach(&mut self, now: Time, reach: Reach, io: &mut Io) {
        let has_changed = self.withholding.as_mut().is_some_and(|withholding| withholding.reach(reach));
        if has_changed && self.receiver.stats().delivered > Bytes::ZERO {
            self.acknowledge_received(now, io);
        }
    }

    /// Sends the acknowledgements that no longer wait.
    fn acknowledge_news(&mut self, now: Time, io: &mut Io) {
        let received = Received::from(&self.receiver);
        let news = self.withholding.as_ref().map_or(0, |withholding| withholding.news(&received));
        for _ in 0..news {
            self.acknowledge_received(now, io);
        }
    }

    fn acknowledge_received(&mut self, now: Time, io: &mut Io) {
        self.is_due = true;
        self.drive_receiver(|receiver, out| receiver.acknowledge_received(now, out));
        self.flush(now, io);
    }

    /// Sends RST (RFC 9293 section 3.10.5), with timestamps if negotiated (RFC 7323 section 3.2).
    pub(crate) fn reset(&self, now: Time, outgoing: &mut OutgoingQueue) {
        let flags = Flags::RST | Flags::ACK;
        let (seq, ack) = (self.sender.snd_max(), self.receiver.rcv_nxt());
        let timestamps = self.agreed.timestamps.then(|| self.clock.stamp(now));
        outgoing.put_bare(Segment { seq, ack, flags, timestamps, ..Segment::default() });
    }

    /// Sets the user timeout.
    pub(crate) fn set_user_timeout(&mut self, timeout: Option<Duration>) {
        self.user_timeout = timeout;
        self.sender.set_user_timeout(timeout);
    }

    /// Whether `syn` may start a new incarnation of a connection in TIME-WAIT (RFC 9293 section 3.10.7.4, RFC
    /// 6191).
    pub(crate) fn is_older_than(&self, now: Time, syn: &Segment) -> bool {
        let both_have_timestamps = self.agreed.timestamps && syn.timestamps.is_some();
        if both_have_timestamps {
            self.clock.is_older_than(now, syn)
        } else {
            syn.seq > self.receiver.rcv_nxt()
        }
    }

    // ---- segments ----------------------------------------------------------------------------------

    /// Processes a segment of the peer.
    pub(crate) fn receive(&mut self, now: Time, packet: &Incoming<'_>, io: &mut Io) -> Verdict {
        let mut segment = packet.segment();
        if segment.flags.has(Flags::RST) {
            return self.on_reset(now, &segment, io);
        }
        if !self.agreed.timestamps {
            segment.timestamps = None;
        } else if segment.timestamps.is_none() {
            // RFC 7323 section 3.2.
            return Verdict::Dropped;
        }
        if self.clock.is_outdated(now, &segment) {
            self.answer_unacceptable(now, segment.seq_len() > 0, io);
            return Verdict::Dropped;
        }
        if !self.is_acceptable(&segment) {
            self.on_unacceptable(now, packet, segment, io);
            return Verdict::Dropped;
        }
        let is_valid =
            segment.flags & (Flags::SYN | Flags::ACK) == Flags::ACK && self.is_valid_ack(segment.ack);
        if !is_valid {
            // Challenge ACK (RFC 5961 sections 4.2 and 5.2). A segment without SYN and ACK is dropped (RFC
            // 9293).
            if segment.flags & (Flags::SYN | Flags::ACK) != Flags::default() {
                self.answer_unacceptable(now, false, io);
            }
            return Verdict::Dropped;
        }
        if io.receive_buffer.is_closed()
            && segment.len > 0
            && segment.seq + segment.len > self.receiver.rcv_nxt()
        {
            return Verdict::Unwanted;
        }
        self.clock.note(now, &segment, self.last_ack_sent);
        self.note_withheld(now, &segment);
        if let Some(timer) = &mut self.keep_alive {
            (timer.deadline, timer.unanswered) = (now + timer.settings.idle, 0);
        }
        self.pass_to_receiver(now, packet, segment, io);
        self.pass_to_sender(now, segment, io);
        self.flush(now, io);
        Verdict::Accepted
    }

    /// Processes RST: valid only with the next expected sequence number; elsewhere in the window it triggers
    /// a challenge ACK (RFC 5961 section 3.2).
    fn on_reset(&mut self, now: Time, segment: &Segment, io: &mut Io) -> Verdict {
        if segment.seq == self.receiver.rcv_nxt() {
            return Verdict::Reset;
        }
        if self.is_acceptable(&Segment { len: 0, flags: Flags::RST, ..*segment }) {
            self.answer_unacceptable(now, false, io);
        }
        Verdict::Dropped
    }

    /// Whether any of the segment may lie in the window (RFC 9293 section 3.10.7.4). As in Linux, a segment
    /// that ends at the left edge is acceptable, and so is one that begins at the right edge: a probe of a
    /// closed window.
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
    fn on_unacceptable(&mut self, now: Time, packet: &Incoming<'_>, segment: Segment, io: &mut Io) {
        let end = segment.seq + segment.len;
        let is_old =
            segment.len > 0 && end <= self.receiver.rcv_nxt() && !end.is_far_from(self.receiver.rcv_nxt());
        if is_old && !segment.flags.has(Flags::SYN) {
            self.note_withheld(now, &segment);
            self.pass_to_receiver(now, packet, segment, io);
            self.flush(now, io);
        } else {
            self.answer_unacceptable(now, segment.len > 0 && !segment.flags.has(Flags::SYN), io);
        }
    }

    /// Sends an ACK; rate-limited if the segment has no data (RFC 5961 section 7), since two ends could
    /// otherwise acknowledge each other's ACKs forever.
    fn answer_unacceptable(&mut self, now: Time, has_data: bool, io: &mut Io) {
        if has_data || self.throttle.permits(now) {
            self.acknowledge(now, io);
        }
    }

    /// Notes data whose acknowledgement may wait.
    fn note_withheld(&mut self, now: Time, segment: &Segment) {
        self.is_due |= self.withholding.as_mut().is_some_and(|withholding| withholding.note(now, segment));
    }

    fn pass_to_receiver(&mut self, now: Time, packet: &Incoming<'_>, segment: Segment, io: &mut Io) {
        let before = self.receiver.stats().delivered;
        let left = self.receiver.rcv_nxt();
        // Only the part of the payload inside the window is stored.
        let skipped = if segment.seq < left { left - segment.seq } else { 0 } as usize;
        let offset = if segment.seq < left { 0 } else { segment.seq - left } as usize;
        let payload = packet.payload.get(skipped..).unwrap_or_default();
        let room = (self.receiver.window() as usize).saturating_sub(offset);
        if !self.receiver.has_ended() {
            io.receive_buffer.store(offset, &payload[..payload.len().min(room)]);
        }
        // The endpoint performs PAWS and writes the echo, so timestamps are not passed to the receiver.
        let segment = Segment { timestamps: None, ..segment };
        let packet = to_packet(segment, packet.ecn);
        self.drive_receiver(|receiver, out| receiver.receive(now, &packet, Port::ONLY, out));
        let delivered = self.receiver.stats().delivered - before;
        io.receive_buffer.deliver(delivered.0 as usize);
    }

    fn pass_to_sender(&mut self, now: Time, mut segment: Segment, io: &mut Io) {
        let (seq, ack) = self.update;
        let is_newer = seq < segment.seq || (seq == segment.seq && ack <= segment.ack);
        if is_newer && segment.ack >= self.sender.snd_una() {
            self.update = (segment.seq, segment.ack);
            segment.wnd <<= self.agreed.their_scale;
            self.largest_window = self.largest_window.max(segment.wnd);
        } else {
            // Older than the segment of the last window update.
            segment.wnd = self.sender.rwnd();
        }
        if segment.ack == self.sender.snd_una() && segment.wnd == 0 {
            self.progressed_at = now;
        }
        segment.timestamps = self.clock.translate(now, &segment);
        let packet = to_packet(segment, Ecn::NotEct);
        self.drive_sender(now, io, |sender, out| sender.receive(now, &packet, Port::ONLY, out));
        io.send_buffer.acknowledge(self.sender.acknowledged());
    }

    /// Reduces the MSS to a path MTU of `mtu` bytes, and retransmits the segment at `lost`, which was too
    /// long.
    pub(crate) fn reduce_mtu(&mut self, now: Time, mtu: u32, lost: SeqNum, io: &mut Io) {
        let headers = self.agreed.header.0 as u32 + options_len(self.agreed.timestamps);
        let mss = mtu.saturating_sub(headers);
        if mss > 0 && mss < self.agreed.mss {
            self.agreed.mss = mss;
            self.drive_sender(now, io, |sender, out| sender.reduce_mss(now, mss, lost, out));
        }
    }

    /// Whether data at `seq` are in flight.
    pub(crate) fn is_in_flight(&self, seq: SeqNum) -> bool {
        seq >= self.sender.snd_una() && seq < self.sender.snd_max()
    }

    pub(crate) fn wake(&mut self, now: Time, io: &mut Io) {
        if self.sender.next_wakeup() <= now {
            self.drive_sender(now, io, |sender, out| sender.wake(now, out));
            self.give_up_if_stuck(now, io);
        }
        if self.receiver.next_wakeup() <= now {
            self.drive_receiver(|receiver, out| receiver.wake(now, out));
        }
        if let Some(withholding) = &mut self.withholding {
            withholding.wake(now);
        }
        self.acknowledge_news(now, io);
        self.keep_alive(now, io);
        self.flush(now, io);
    }

    /// Aborts if no outstanding data were acknowledged within the user timeout (RFC 9293 section 3.8.3). The
    /// sender itself detects a silent peer; this detects one that sends segments without acknowledging data.
    fn give_up_if_stuck(&mut self, now: Time, io: &mut Io) {
        let waited = now.since(self.progressed_at);
        if self.sender.flight_size() > 0 && self.user_timeout.is_some_and(|longest| waited >= longest) {
            self.give_up(now, io);
        }
    }

    fn give_up(&mut self, now: Time, io: &mut Io) {
        if !self.is_given_up() {
            self.reset(now, &mut io.outgoing);
            self.is_given_up = true;
        }
    }

    /// Probes an idle connection with a segment below the window, which the peer must acknowledge (RFC 9293
    /// section 3.8.4).
    fn keep_alive(&mut self, now: Time, io: &mut Io) {
        let is_idle = self.sender.flight_size() == 0 && self.sender.unsent() == 0;
        let Some(timer) = self.keep_alive.as_mut().filter(|timer| timer.deadline <= now) else { return };
        if !is_idle {
            timer.deadline = now + timer.settings.idle;
            return;
        }
        timer.unanswered += 1;
        timer.deadline = now + timer.settings.interval;
        if timer.unanswered > timer.settings.probes {
            self.give_up(now, io);
        } else {
            let seq = self.sender.snd_max() - 1;
            self.is_due = true;
            self.emit(now, Segment { seq, ..Segment::default() }, Ecn::NotEct, io);
        }
    }

    // ---- output ------------------------------------------------------------------------------------

    /// Calls the sender, and sends its segments.
    fn drive_sender(&mut self, now: Time, io: &mut Io, act: impl FnOnce(&mut Sender, &mut Out)) {
        let (una, was_idle) = (self.sender.snd_una(), self.sender.flight_size() == 0);
        act(&mut self.sender, &mut self.out);
        if was_idle || self.sender.snd_una() != una {
            self.progressed_at = now;
        }
        self.after_sender(now, io);
    }

    /// Sends the sender's segments except its pure ACKs, which the receiver generates.
    fn after_sender(&mut self, now: Time, io: &mut Io) {
        while let Some((_, effect)) = self.out.take() {
            let Effect::Send(_, Packet { body: Body::Tcp(segment), ecn, .. }) = effect else { continue };
            if segment.flags.has(Flags::RST) {
                self.reset(now, &mut io.outgoing);
            } else if segment.seq_len() > 0 {
                self.emit(now, segment, ecn, io);
                // The data segment carries the acknowledgement, but no SACK blocks.
                self.ack_due.take_if(|sack| sack.is_empty());
            }
        }
    }

    /// Calls the receiver, and defers its ACK to the end of the event, so that data can carry it.
    fn drive_receiver(&mut self, act: impl FnOnce(&mut Receiver, &mut Out)) {
        act(&mut self.receiver, &mut self.out);
        while let Some((_, effect)) = self.out.take() {
            if let Effect::Send(_, Packet { body: Body::Tcp(segment), .. }) = effect {
                self.ack_due = Some(segment.sack);
            }
        }
    }

    /// Sends a pure ACK if one is due and no data segment has carried it.
    fn flush(&mut self, now: Time, io: &mut Io) {
        if let Some(sack) = self.ack_due.take() {
            // Within the peer's window, as in Linux: SND.MAX may be beyond a window that has shrunk.
            let edge = self.sender.snd_una() + self.sender.rwnd();
            let seq = self.sender.snd_max().min(edge);
            self.emit(now, Segment { seq, sack, ..Segment::default() }, Ecn::NotEct, io);
        }
        self.is_due = false;
    }

    /// Rewrites an acknowledgement that waits for another host; returns whether to send the segment.
    fn withhold(&mut self, now: Time, segment: &mut Segment) -> bool {
        let Some(withholding) = &mut self.withholding else { return true };
        // FIN is that of this end's stream.
        let (flags, is_due) = (segment.flags, self.is_due || segment.seq_len() > 0);
        let is_sent = withholding.rewrite(now, segment, &Received::from(&self.receiver), is_due);
        segment.flags = flags;
        is_sent
    }

    /// Sends a segment with the receiver's acknowledgement and window, and its payload from the send buffer.
    fn emit(&mut self, now: Time, mut segment: Segment, ecn: Ecn, io: &mut Io) {
        self.receiver.piggyback(&mut segment);
        let ecn = if segment.seq_len() == 0 { self.receiver.ack_ecn() } else { ecn };
        if let Some(arrived) = self.syn_ack.take().filter(|_| segment.seq_len() == 0) {
            segment.flags = segment.flags.with_ace(code_of(arrived));
        }
        self.last_ack_sent = segment.ack;
        segment.timestamps = self.agreed.timestamps.then(|| self.clock.stamp(now));
        if !self.withhold(now, &mut segment) {
            return;
        }
        segment.wnd = (segment.wnd >> self.agreed.our_scale).min(LARGEST_WINDOW);
        let (payload, ends) = if segment.len > 0 {
            io.send_buffer.segment(segment.seq, segment.len)
        } else {
            (Vec::new(), false)
        };
        if ends {
            segment.flags = segment.flags | TcpHeader::PSH;
        }
        io.outgoing.put(TcpHeader { segment, ..TcpHeader::default() }, ecn, payload);
    }
}

/// Wraps a segment in a packet of the simulator, the input of the two halves.
fn to_packet(segment: Segment, ecn: Ecn) -> Packet {
    let Ends { src, dst, flow } = ENDS;
    let size = Bytes(segment.len.into());
    Packet { src, dst, flow, size, dscp: Dscp::DEFAULT, ecn, handle: Handle::NONE, body: Body::Tcp(segment) }
}
