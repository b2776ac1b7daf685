//! Scripted packet exchanges with one TCP endpoint.
//!
//! Offsets are relative to the first byte of data. Every step asserts that all segments sent before were
//! checked, so unexpected segments are always detected; [`Client::at`] asserts that no timer was due.

#![allow(missing_docs, reason = "the steps of a conversation are called after what happens")]

use std::ops::Range;

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::tcp::{
    Connection, Flags, Flavour, InitialWindow, Reaction, Reactions, Receiver, ReceiverReaction,
    ReceiverReactions, SackBlock, SackBlocks, Segment, Sender, SeqNum, Settings, Timestamps, Transfer,
};
use lasthop_proto::{
    Body, Component, Dscp, Ecn, Effect, FlowId, Handle, HostId, Notice, NoticeCode, Out, Packet, Port, Reach,
    Signal,
};

/// Every exchange crosses the wrap-around at 2³² within its first segments.
const ISS: u32 = u32::MAX - 2_500;

pub const MSS: u32 = 1000;

/// The profile `rfc` with segments of 1000 bytes and an initial window of `initial` segments; without
/// handshake, close and limited transmit, so that each test exercises a single rule.
pub fn settings(flavour: Flavour, initial: u32) -> Settings {
    Settings {
        flavour,
        window: Bytes(1 << 20).into(),
        initial_window: InitialWindow::Segments(initial),
        iss: ISS,
        handshake: false,
        close: false,
        limited_transmit: false,
        ..Settings::default()
    }
    .with_mss(MSS)
}

const CONNECTION: Connection = Connection { src: HostId(0), dst: HostId(1), flow: FlowId(0) };

pub fn ms(milliseconds: u64) -> Time {
    Time::ZERO + Duration::from_millis(milliseconds)
}

/// State shared by both kinds of exchange: clock, sequence numbers, and segments sent.
struct Script {
    now: Time,
    first_byte: SeqNum,
    out: Out,
    sent: Vec<Packet>,
    finished: bool,
}

impl Script {
    fn new(settings: &Settings) -> Script {
        let first_byte = SeqNum(settings.iss) + u32::from(settings.handshake);
        Script { now: Time::ZERO, first_byte, out: Out::default(), sent: Vec::new(), finished: false }
    }

    fn seq(&self, offset: u32) -> SeqNum {
        self.first_byte + offset
    }

    fn offset(&self, seq: SeqNum) -> u32 {
        seq.0.wrapping_sub(self.first_byte.0)
    }

    fn blocks(&self, ranges: &[Range<u32>]) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let block = |range: &Range<u32>| SackBlock { start: self.seq(range.start), end: self.seq(range.end) };
        ranges.iter().for_each(|range| blocks.push(block(range)));
        blocks
    }

    fn advance(&mut self, now: Time, due: Time) {
        assert!(self.now <= now, "time runs backwards");
        assert!(due >= now, "a timer was due at {due:?}, before {now:?}");
        self.now = now;
    }

    fn packet(size: Bytes, body: Body) -> Packet {
        let Connection { src, dst, flow } = CONNECTION;
        let (dscp, ecn) = (Dscp::DEFAULT, Ecn::NotEct);
        Packet { src, dst, flow, size, dscp, ecn, handle: Handle::NONE, body }
    }

    fn of_segment(segment: Segment) -> Packet {
        Script::packet(Bytes(0), Body::Tcp(segment))
    }

    /// Collects the effects of a component. Segments sent earlier must have been checked.
    fn collect(&mut self, told: &str) {
        let unnamed: Vec<String> = self.sent.iter().map(|packet| self.text(packet)).collect();
        assert!(unnamed.is_empty(), "before {told} at {:?}: sent {unnamed:?} as well", self.now);
        while let Some((_, effect)) = self.out.take() {
            match effect {
                Effect::Send(_, packet) => self.sent.push(packet),
                Effect::Signal(Signal::Finished) => {
                    assert!(!self.finished, "finished twice");
                    self.finished = true;
                }
                Effect::Signal(_) => {}
                Effect::Drop(..) | Effect::Corrupt(..) => panic!("an end of a connection drops nothing"),
            }
        }
    }

    /// A control message about the byte at `offset`.
    fn notice(&self, code: NoticeCode, offset: u32) -> Packet {
        Script::packet(Bytes(40), Body::Notice(Notice { code, seq: self.seq(offset) }))
    }

    /// The text form of a segment: `0..1000`, `0..1000 FIN`, `1000 FIN`, `1000 RST`, `SYN` or `ACK`, with the
    /// suffix `marked` if its DSCP is not the default.
    fn text(&self, packet: &Packet) -> String {
        let mark = if packet.dscp == Dscp::DEFAULT { "" } else { " marked" };
        let segment = segment_of(packet);
        let at = self.offset(segment.seq);
        let fin = if segment.flags.has(Flags::FIN) { " FIN" } else { "" };
        match segment.len {
            _ if segment.flags.has(Flags::SYN) => format!("SYN{mark}"),
            0 if segment.flags == Flags::RST => format!("{at} RST{mark}"),
            0 if fin.is_empty() => format!("ACK{mark}"),
            0 => format!("{at}{fin}{mark}"),
            len => format!("{at}..{}{fin}{mark}", at + len),
        }
    }
}

fn segment_of(packet: &Packet) -> Segment {
    *packet.segment().expect("a segment")
}

/// A sender under test; the test plays its network and peer.
pub struct Client {
    pub sender: Sender,
    script: Script,
    window: u32,
}

impl Client {
    /// A sender with unlimited data, started at time zero.
    pub fn start(settings: &Settings) -> Client {
        Client::start_with(settings, None)
    }

    /// A sender with `bytes` to send, started at time zero.
    pub fn start_with(settings: &Settings, bytes: Option<u64>) -> Client {
        let mut client = Client::waiting(settings, Transfer { bytes, start: Time::ZERO });
        client.wakes_at(0);
        client
    }

    /// A sender with unlimited data and a scheme's reaction, started at time zero.
    pub fn reacting(settings: &Settings, reaction: impl Reaction + 'static) -> Client {
        Client::reacting_with(settings, None, Box::new(reaction))
    }

    /// Like `reacting`, with `bytes` to send.
    pub fn reacting_with(settings: &Settings, bytes: Option<u64>, reaction: Box<dyn Reaction>) -> Client {
        Client::reacting_in_order(settings, bytes, vec![reaction])
    }

    /// The same with several reactions, in this order.
    pub fn reacting_in_order(
        settings: &Settings,
        bytes: Option<u64>,
        reactions: Vec<Box<dyn Reaction>>,
    ) -> Client {
        Client::installed(settings, bytes, reactions.into())
    }

    /// The same with the reactions that a combination of schemes installs.
    pub fn installed(settings: &Settings, bytes: Option<u64>, reactions: Reactions) -> Client {
        let transfer = Transfer { bytes, start: Time::ZERO };
        let sender = Sender::new(CONNECTION, settings, transfer, reactions);
        let mut client = Client::with(sender, settings);
        client.wakes_at(0);
        client
    }

    /// A sender that has not started.
    pub fn waiting(settings: &Settings, transfer: Transfer) -> Client {
        Client::with(Sender::new(CONNECTION, settings, transfer, None), settings)
    }

    /// A sender whose data are supplied by the test.
    pub fn supplied(settings: &Settings) -> Client {
        Client::with(Sender::supplied(CONNECTION, settings, None), settings)
    }

    /// Like `supplied`, without Nagle's algorithm.
    pub fn supplied_without_nagle(settings: &Settings) -> Client {
        Client::with(Sender::supplied(CONNECTION, settings, None).without_nagle(), settings)
    }

    fn with(sender: Sender, settings: &Settings) -> Client {
        Client { sender, script: Script::new(settings), window: settings.window_payload() }
    }

    pub fn open(&mut self) -> &mut Client {
        self.sender.open(self.script.now, &mut self.script.out);
        self.script.collect("opening");
        self
    }

    /// Supplies `bytes` more bytes.
    pub fn supply(&mut self, bytes: u64) -> &mut Client {
        self.sender.supply(self.script.now, bytes, &mut self.script.out);
        self.script.collect("a supply");
        self
    }

    pub fn close(&mut self) -> &mut Client {
        self.sender.close(self.script.now, &mut self.script.out);
        self.script.collect("closing");
        self
    }

    pub fn abort(&mut self) -> &mut Client {
        self.sender.abort(self.script.now, &mut self.script.out);
        self.script.collect("aborting");
        self
    }

    /// Asserts that the connection was aborted at this time, that this was signalled, and that no timer is
    /// pending.
    pub fn is_aborted_at(&mut self, milliseconds: u64) -> &mut Client {
        assert!(self.sender.is_aborted(), "the connection goes on");
        assert_eq!(self.sender.stats().aborted, Some(ms(milliseconds)), "when it ended");
        assert_eq!(self.sender.stats().completed, None, "when it was complete");
        self.is_finished()
    }

    pub fn is_not_aborted(&mut self) -> &mut Client {
        assert_eq!((self.sender.is_aborted(), self.sender.stats().aborted), (false, None), "aborted");
        self
    }

    /// Asserts the numbers of acknowledged and unsent bytes.
    pub fn has(&mut self, acknowledged: u64, unsent: u64) -> &mut Client {
        let found = (self.sender.acknowledged(), self.sender.unsent());
        assert_eq!(found, (acknowledged, unsent), "acknowledged and unsent");
        self
    }

    /// Advances the clock; asserts that no timer was due before.
    pub fn at(&mut self, milliseconds: u64) -> &mut Client {
        self.at_time(ms(milliseconds))
    }

    pub fn at_time(&mut self, now: Time) -> &mut Client {
        self.script.advance(now, self.sender.next_wakeup());
        self
    }

    /// Asserts that the next timer is due at this time, and fires it.
    pub fn wakes_at(&mut self, milliseconds: u64) -> &mut Client {
        self.timer_at(milliseconds).wakes_at_time(ms(milliseconds))
    }

    /// Like `wakes_at`, in nanoseconds.
    pub fn wakes_at_time(&mut self, now: Time) -> &mut Client {
        assert_eq!(self.sender.next_wakeup(), now, "when the timer is due");
        self.script.now = now;
        self.sender.wake(self.script.now, &mut self.script.out);
        self.script.collect("the timer");
        self
    }

    /// Fires the next timer; returns its time in milliseconds, rounded up.
    pub fn times_out(&mut self) -> u64 {
        self.script.now = self.sender.next_wakeup();
        self.sender.wake(self.script.now, &mut self.script.out);
        self.script.collect("the timer");
        self.script.now.as_nanos().div_ceil(1_000_000)
    }

    pub fn timer_at(&mut self, milliseconds: u64) -> &mut Client {
        assert_eq!(self.sender.next_wakeup(), ms(milliseconds), "when the timer is due");
        self
    }

    pub fn no_timer(&mut self) -> &mut Client {
        assert_eq!(self.sender.next_wakeup(), Time::NEVER, "when the timer is due");
        self
    }

    /// ACK of everything before `offset`.
    pub fn ack(&mut self, offset: u32) -> &mut Client {
        self.sack(offset, &[])
    }

    /// The same ACK `times` times.
    pub fn acks(&mut self, times: u32, offset: u32) -> &mut Client {
        (0..times).for_each(|_| _ = self.ack(offset));
        self
    }

    /// Sets the window of later acknowledgements.
    pub fn with_window(&mut self, bytes: u32) -> &mut Client {
        self.window = bytes;
        self
    }

    pub fn sack(&mut self, offset: u32, blocks: &[Range<u32>]) -> &mut Client {
        let segment = self.report(offset, blocks);
        self.receives(segment)
    }

    /// The acknowledgement sent by `sack`.
    pub fn report(&self, offset: u32, blocks: &[Range<u32>]) -> Segment {
        Segment { sack: self.script.blocks(blocks), ..self.bare_ack(offset) }
    }

    /// ACK with the timestamp echo of a segment sent at `sent`.
    pub fn ack_echo(&mut self, offset: u32, sent: Time) -> &mut Client {
        let echo = (sent.as_nanos() / 1_000) as u32;
        let timestamps = Some(Timestamps { value: 0, echo });
        let segment = Segment { timestamps, ..self.bare_ack(offset) };
        self.receives(segment)
    }

    /// SYN-ACK with the initial sequence number 100.
    pub fn syn_ack(&mut self) -> &mut Client {
        let segment = self.syn_ack_segment();
        self.receives(segment)
    }

    pub fn syn_ack_segment(&self) -> Segment {
        Segment { seq: SeqNum(100), flags: Flags::SYN | Flags::ACK, ..self.bare_ack(0) }
    }

    pub fn bare_ack(&self, offset: u32) -> Segment {
        let ack = self.script.seq(offset);
        Segment { seq: SeqNum(101), ack, wnd: self.window, flags: Flags::ACK, ..Segment::default() }
    }

    pub fn receives(&mut self, segment: Segment) -> &mut Client {
        self.receives_with(segment, Ecn::NotEct)
    }

    /// Delivers the segment in a packet with this ECN field.
    pub fn receives_with(&mut self, segment: Segment, ecn: Ecn) -> &mut Client {
        let packet = Packet { ecn, ..Script::of_segment(segment) };
        self.sender.receive(self.script.now, &packet, Port::ONLY, &mut self.script.out);
        self.script.collect("an arrival");
        self
    }

    pub fn reach(&mut self, reach: Reach) -> &mut Client {
        self.sender.on_signal(self.script.now, &Signal::Reach(reach), &mut self.script.out);
        self.script.collect("the radio signal");
        self
    }

    /// A control message about the segment at `offset` that belongs to no scheme.
    pub fn notice(&mut self, offset: u32) -> &mut Client {
        self.notice_of(NoticeCode { kind: 254, code: 0 }, offset)
    }

    pub fn notice_of(&mut self, code: NoticeCode, offset: u32) -> &mut Client {
        let packet = self.script.notice(code, offset);
        self.sender.receive(self.script.now, &packet, Port::ONLY, &mut self.script.out);
        self.script.collect("a notice");
        self
    }

    /// Asserts that exactly these segments were sent since the last check, in the form of `text`.
    pub fn sends(&mut self, segments: &[&str]) -> &mut Client {
        let sent: Vec<String> = self.packets().iter().map(|packet| self.script.text(packet)).collect();
        assert_eq!(sent, segments, "sent at {:?}", self.script.now);
        self
    }

    /// Asserts that exactly the full segments with these numbers were sent.
    pub fn sends_full(&mut self, numbers: Range<u32>) -> &mut Client {
        let texts: Vec<String> = numbers.map(|n| format!("{}..{}", n * MSS, (n + 1) * MSS)).collect();
        self.sends(&texts.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Asserts the first segment sent; others may follow.
    pub fn sends_first(&mut self, segment: &str) -> &mut Client {
        let sent = self.packets();
        assert_eq!(sent.first().map(|first| self.script.text(first)).as_deref(), Some(segment), "sent first");
        self
    }

    /// The segments sent since the last check.
    pub fn sent(&mut self) -> Vec<Segment> {
        self.packets().iter().map(segment_of).collect()
    }

    /// The packets sent since the last check.
    pub fn packets(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.script.sent)
    }

    pub fn sends_nothing(&mut self) -> &mut Client {
        self.sends(&[])
    }

    pub fn cwnd(&mut self, bytes: f64) -> &mut Client {
        let found = self.sender.cwnd();
        assert!((found - bytes).abs() < 0.01, "cwnd is {found}, not {bytes}");
        self
    }

    pub fn ssthresh(&mut self, bytes: f64) -> &mut Client {
        assert_eq!(self.sender.ssthresh(), bytes, "ssthresh");
        self
    }

    pub fn dupacks(&mut self, count: u32) -> &mut Client {
        assert_eq!(self.sender.dupacks(), count, "dupacks");
        self
    }

    /// Asserts the current RTO in milliseconds.
    pub fn rto(&mut self, milliseconds: u64) -> &mut Client {
        assert_eq!(self.sender.rtt().rto(), Duration::from_millis(milliseconds), "rto");
        self
    }

    /// Asserts the smoothed round-trip time in milliseconds.
    pub fn srtt(&mut self, milliseconds: Option<u64>) -> &mut Client {
        assert_eq!(self.sender.rtt().srtt(), milliseconds.map(Duration::from_millis), "srtt");
        self
    }

    /// ACK of everything before `offset`.
    pub fn heard(&mut self, offset: u32, echo: u32) -> &mut Client {
        self.heard_of(offset, echo, &[])
    }

    /// Like `heard`, with SACK blocks.
    pub fn heard_of(&mut self, offset: u32, echo: u32, blocks: &[Range<u32>]) -> &mut Client {
        let mut sack = SackBlocks::default();
        let seq = |offset| self.bare_ack(offset).ack;
        blocks.iter().for_each(|block| sack.push(SackBlock { start: seq(block.start), end: seq(block.end) }));
        let timestamps = Some(Timestamps { value: 0, echo });
        let segment = Segment { timestamps, sack, ..self.bare_ack(offset) };
        self.receives(segment)
    }

    /// The timestamps of the segments sent since the last check.
    pub fn stamps(&mut self) -> Vec<u32> {
        self.sent()
            .iter()
            .map(|segment| segment.timestamps.expect("every segment has timestamps").value)
            .collect()
    }

    /// Asserts the number of losses detected from acknowledgements.
    pub fn losses(&mut self, count: u64) -> &mut Client {
        assert_eq!(self.sender.stats().fast_retransmits, count, "losses found");
        self
    }

    pub fn timeouts(&mut self, count: u64) -> &mut Client {
        assert_eq!(self.sender.stats().timeouts, count, "timeouts");
        self
    }

    pub fn is_finished(&mut self) -> &mut Client {
        assert!(self.script.finished, "not everything is acknowledged");
        assert!(!self.sender.timer_runs(), "the timer still runs");
        self.no_timer()
    }

    pub fn is_not_finished(&mut self) -> &mut Client {
        assert!(!self.script.finished, "the transfer ended early");
        self
    }
}

/// For custom steps of a test:
///
/// ```text
/// trait Hops: Steps {
///     fn lhack(&mut self, offset: u32) -> &mut Client {
///         self.client().notice_of(LHACK, offset)
///     }
/// }
///
/// impl Hops for Client {}
/// ```
pub trait Steps {
    /// The exchange.
    fn client(&mut self) -> &mut Client;
}

impl Steps for Client {
    fn client(&mut self) -> &mut Client {
        self
    }
}

/// A receiver under test; the test plays its network and peer.
pub struct Server {
    pub receiver: Receiver,
    script: Script,
}

impl Server {
    pub fn start(settings: &Settings) -> Server {
        Server::reacting_in_order(settings, Vec::new())
    }

    /// A receiver with reactions, in this order.
    pub fn reacting_in_order(settings: &Settings, reactions: Vec<Box<dyn ReceiverReaction>>) -> Server {
        Server::installed(settings, reactions.into())
    }

    /// The same with the reactions that a combination of schemes installs.
    pub fn installed(settings: &Settings, reactions: ReceiverReactions) -> Server {
        let receiver = Receiver::new(CONNECTION, settings).with_reactions(reactions);
        Server { receiver, script: Script::new(settings) }
    }

    /// A control message about the byte at `offset`, of no scheme.
    pub fn notice(&mut self, offset: u32) -> &mut Server {
        let packet = self.script.notice(NoticeCode { kind: 254, code: 0 }, offset);
        self.receiver.receive(self.script.now, &packet, Port::ONLY, &mut self.script.out);
        self.script.collect("a notice");
        self
    }

    pub fn reach(&mut self, reach: Reach) -> &mut Server {
        self.receiver.on_signal(self.script.now, &Signal::Reach(reach), &mut self.script.out);
        self.script.collect("the radio signal");
        self
    }

    /// Exactly this many acknowledgements were sent, each of everything before `offset`.
    pub fn acks_times(&mut self, times: usize, offset: u32) -> &mut Server {
        let sent = std::mem::take(&mut self.script.sent);
        let found: Vec<u32> = sent.iter().map(|packet| self.script.offset(segment_of(packet).ack)).collect();
        assert_eq!(found, vec![offset; times], "acknowledgements");
        self
    }

    pub fn at(&mut self, milliseconds: u64) -> &mut Server {
        self.script.advance(ms(milliseconds), self.receiver.next_wakeup());
        self
    }

    pub fn wakes_at(&mut self, milliseconds: u64) -> &mut Server {
        assert_eq!(self.receiver.next_wakeup(), ms(milliseconds), "when the timer is due");
        self.script.now = ms(milliseconds);
        self.receiver.wake(self.script.now, &mut self.script.out);
        self.script.collect("the timer");
        self
    }

    pub fn no_timer(&mut self) -> &mut Server {
        assert_eq!(self.receiver.next_wakeup(), Time::NEVER, "when the timer is due");
        self
    }

    pub fn data(&mut self, range: Range<u32>) -> &mut Server {
        let segment = self.segment(range);
        self.receives(segment)
    }

    /// Data with FIN.
    pub fn data_fin(&mut self, range: Range<u32>) -> &mut Server {
        let segment = Segment { flags: Flags::ACK | Flags::FIN, ..self.segment(range) };
        self.receives(segment)
    }

    /// Data with this timestamp.
    pub fn data_ts(&mut self, range: Range<u32>, value: u32) -> &mut Server {
        let timestamps = Some(Timestamps { value, echo: 0 });
        let segment = Segment { timestamps, ..self.segment(range) };
        self.receives(segment)
    }

    pub fn segment(&self, range: Range<u32>) -> Segment {
        let seq = self.script.seq(range.start);
        Segment { seq, len: range.end - range.start, flags: Flags::ACK, ..Segment::default() }
    }

    /// Delivers the segment in a packet marked CE.
    pub fn receives_marked(&mut self, segment: Segment) -> &mut Server {
        self.receives_with(segment, Ecn::Ce)
    }

    pub fn receives(&mut self, segment: Segment) -> &mut Server {
        self.receives_with(segment, Ecn::NotEct)
    }

    /// Delivers the segment in a packet with this ECN field.
    pub fn receives_with(&mut self, segment: Segment, ecn: Ecn) -> &mut Server {
        let packet = Packet { ecn, ..Script::of_segment(segment) };
        self.receiver.receive(self.script.now, &packet, Port::ONLY, &mut self.script.out);
        self.script.collect("an arrival");
        self
    }

    /// The application reads at most `most` bytes; asserts that it gets `found`.
    pub fn reads(&mut self, most: u64, found: u64) -> &mut Server {
        let read = self.receiver.read(self.script.now, most, &mut self.script.out);
        assert_eq!(read, found, "bytes read");
        self.script.collect("the application");
        self
    }

    pub fn abort(&mut self) -> &mut Server {
        self.receiver.abort(self.script.now, &mut self.script.out);
        self.script.collect("aborting");
        self
    }

    pub fn is_reset(&mut self, reset: bool) -> &mut Server {
        assert_eq!(self.receiver.is_reset(), reset, "reset");
        self
    }

    pub fn unread(&mut self, bytes: u64) -> &mut Server {
        assert_eq!(self.receiver.unread(), bytes, "bytes not read");
        self
    }

    pub fn resume(&mut self) -> &mut Server {
        self.receiver.resume(self.script.now, &mut self.script.out);
        self.script.collect("the application");
        self
    }

    /// Asserts that exactly one acknowledgement was sent, of everything before `offset`.
    pub fn acks(&mut self, offset: u32) -> &mut Server {
        self.reports(offset, &[])
    }

    /// Asserts that exactly one acknowledgement was sent, with these SACK blocks.
    pub fn reports(&mut self, offset: u32, blocks: &[Range<u32>]) -> &mut Server {
        let ack = self.answer();
        let range = |block: &SackBlock| self.script.offset(block.start)..self.script.offset(block.end);
        let found: Vec<Range<u32>> = ack.sack.iter().map(range).collect();
        assert_eq!((self.script.offset(ack.ack), found.as_slice()), (offset, blocks), "ack and blocks");
        self
    }

    /// The only segment sent.
    pub fn answer(&mut self) -> Segment {
        segment_of(&self.answering_packet())
    }

    /// The only packet sent.
    pub fn answering_packet(&mut self) -> Packet {
        let sent = std::mem::take(&mut self.script.sent);
        let [answer] = sent.as_slice() else { panic!("expected one acknowledgement, found {sent:?}") };
        *answer
    }

    /// Asserts that exactly one acknowledgement was sent, with this window.
    pub fn acks_with_window(&mut self, offset: u32, window: u32) -> &mut Server {
        let ack = self.answer();
        assert_eq!((self.script.offset(ack.ack), ack.wnd), (offset, window), "ack and window");
        self
    }

    /// Asserts that exactly one acknowledgement was sent, with this timestamp echo.
    pub fn acks_with_echo(&mut self, offset: u32, echo: u32) -> &mut Server {
        let ack = self.answer();
        let found = ack.timestamps.expect("timestamps").echo;
        assert_eq!((self.script.offset(ack.ack), found), (offset, echo), "ack and echo");
        self
    }

    pub fn is_silent(&mut self) -> &mut Server {
        self.script.collect("silence");
        assert!(self.script.sent.is_empty(), "sent {:?}", self.script.sent);
        self
    }

    pub fn delivered(&mut self, bytes: u64) -> &mut Server {
        assert_eq!(self.receiver.stats().delivered, Bytes(bytes), "delivered");
        self
    }
}
