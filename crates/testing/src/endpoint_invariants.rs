//! Invariants of TCP endpoints embedded in other components: a sender supplied with data, a receiver read at
//! its application's pace, and a relay with both.

use lasthop_base::{Bytes, Time};
use lasthop_proto::split::{Relay, Split};
use lasthop_proto::tcp::{Segment, Sender, SeqNum, Settings};
use lasthop_proto::{Component, ComponentId, Packet, Port};
use lasthop_sim::{Node, Tap, Wire};

use crate::net::{CONNECTION, first_byte, slack};

/// Invariants of a sender that is supplied with data, checked after every event.
pub struct SenderInvariants {
    first_byte: SeqNum,
    /// Bytes supplied so far.
    pub supplied: u64,
    /// Whether the stream was closed.
    pub closed: bool,
    sent: SeqNum,
    slack: u32,
}

impl SenderInvariants {
    /// Invariants of a sender with or without a reaction.
    pub fn new(settings: &Settings, reacting: bool) -> SenderInvariants {
        let (supplied, closed) = (0, false);
        let first_byte = first_byte(settings);
        SenderInvariants { first_byte, supplied, closed, sent: first_byte, slack: slack(settings, reacting) }
    }

    /// Checks that only supplied data are sent. Streams are shorter than the sequence space here.
    pub fn check_segment(&self, segment: &Segment) {
        let end = segment.seq + segment.len;
        assert!(
            segment.len == 0 || end <= self.first_byte + self.supplied as u32,
            "{segment:?} of {} bytes",
            self.supplied
        );
    }

    /// Checks that all bytes are accounted for, that the timer runs when required, and that the windows are
    /// respected.
    pub fn check(&mut self, sender: &Sender, now: Time) {
        let on_the_way = self.supplied - sender.acknowledged() - sender.unsent();
        assert!(on_the_way <= u64::from(sender.flight_size()), "{now}: bytes are unaccounted for");
        assert!(sender.flight_size() == 0 || sender.timer_runs(), "{now}: data outstanding and no timer");
        let waits = sender.unsent() > 0 && sender.flight_size() == 0;
        // The window is probed, or pacing lets the data out.
        assert!(!waits || sender.next_wakeup() < Time::NEVER, "{now}: data wait and no timer");
        assert!(self.closed || sender.stats().completed.is_none(), "{now}: it ended before it was closed");
        if sender.snd_max() > self.sent {
            self.sent = sender.snd_max();
            // FIN occupies a sequence number but no buffer space, and a probe may carry the last byte and
            // FIN.
            assert!(sender.flight_size() <= sender.rwnd() + 2, "{now}: beyond the receiver's window");
            let limit = sender.usable_window() + self.slack + 2;
            assert!(sender.pipe() <= limit, "{now}: beyond the congestion window");
        }
    }
}

/// Invariants of a receiver whose application reads at its own pace.
pub struct ReceiverInvariants {
    /// Buffer size.
    pub buffer: u32,
    worth: u32,
    /// Right edge of the last advertised window.
    edge: Option<SeqNum>,
    /// Whether the peer's FIN was received, which occupies a sequence number but no buffer space.
    ended: bool,
    first_byte: SeqNum,
    /// Bytes read so far.
    pub read: u64,
}

impl ReceiverInvariants {
    /// Invariants of a receiver with these settings.
    pub fn new(settings: &Settings) -> ReceiverInvariants {
        let buffer = settings.window_payload();
        // Auto-tuning opens the window by what room is left, as in Linux.
        let worth = if settings.window_autotuning { 1 } else { settings.mss().min(buffer / 2).max(1) };
        ReceiverInvariants {
            buffer,
            worth,
            edge: None,
            ended: false,
            first_byte: first_byte(settings),
            read: 0,
        }
    }

    /// Limits the buffer size.
    pub fn limit_to(&mut self, buffer: Bytes) {
        self.buffer = self.buffer.min(buffer.0 as u32);
        self.worth = self.worth.min(self.buffer / 2).max(1);
    }

    /// Checks that the right edge of the window never moves left, moves right only by worthwhile amounts, and
    /// stays within the buffer.
    pub fn check_segment(&mut self, answer: &Segment, ended: bool) {
        let fin = u32::from(ended && !std::mem::replace(&mut self.ended, ended));
        let edge = answer.ack + answer.wnd;
        let moved = self.edge.map_or(0, |old| edge - (old + fin));
        assert!(moved == 0 || moved >= self.worth, "the window moves by {moved}, worth is {}", self.worth);
        let room = self.first_byte + self.read as u32 + self.buffer + u32::from(ended);
        assert!(edge <= room, "{edge} is advertised, there is room up to {room}");
        self.edge = Some(edge);
    }
}

/// Invariants of a relay, checked after every event and for every packet sent.
pub struct RelayInvariants {
    proxy: ComponentId,
    from: Port,
    buffer: u64,
    receiver: ReceiverInvariants,
    near_first: SeqNum,
    sender: SenderInvariants,
    /// Bytes acknowledged by the far side.
    released: u64,
    /// Bytes buffered.
    pub held: u64,
    /// Peak of the bytes buffered.
    pub peak: u64,
    unread: u64,
    ended: bool,
    closed: bool,
}

impl RelayInvariants {
    /// Invariants of the only relay of `proxy`, whose data arrive through `from`; `reacting` tells whether
    /// its sender has a reaction.
    pub fn new(
        proxy: ComponentId,
        from: Port,
        wired: &Settings,
        split: &Split,
        reacting: bool,
    ) -> RelayInvariants {
        let wireless = &split.wireless;
        let (near, far) = if from == Port::WIRED { (wired, wireless) } else { (wireless, wired) };
        let mut receiver = ReceiverInvariants::new(near);
        receiver.limit_to(split.buffer);
        RelayInvariants {
            proxy,
            from,
            buffer: split.buffer.0,
            receiver,
            near_first: first_byte(near),
            sender: SenderInvariants::new(far, reacting),
            released: 0,
            held: 0,
            peak: 0,
            unread: 0,
            ended: false,
            closed: false,
        }
    }

    fn look(&mut self, now: Time, relay: &Relay) {
        let taken = relay.receiver().stats().delivered.0;
        self.released = relay.sender().acknowledged();
        self.held = relay.held().0;
        assert_eq!(self.held, taken - self.released, "{now}: held is what is taken and not acknowledged");
        assert!(self.held <= self.buffer, "{now}: {} bytes are held of {}", self.held, self.buffer);
        // Only unread data may close the window.
        self.unread = relay.receiver().unread();
        assert!(self.unread <= self.held, "{now}: {} bytes are unread", self.unread);
        self.peak = self.peak.max(self.held);
        assert_eq!(relay.peak().0, self.peak, "{now}: the peak");
        self.receiver.read = taken - self.unread;
        self.ended = relay.receiver().has_ended();
        self.closed |= self.ended;
        (self.sender.supplied, self.sender.closed) = (taken, self.closed);
        self.sender.check(relay.sender(), now);
    }

    /// Checks the end of a stream of `bytes` bytes.
    pub fn check_end(&self, bytes: u64) {
        assert_eq!((self.sender.supplied, self.released, self.held, self.unread), (bytes, bytes, 0, 0));
        assert!(self.ended, "it has seen FIN");
    }
}

impl Tap for RelayInvariants {
    fn cross(&mut self, now: Time, wire: Wire, packet: &Packet) {
        if wire.from.0 != self.proxy {
            return;
        }
        assert_eq!((packet.flow, packet.src == CONNECTION.src), (CONNECTION.flow, wire.from.1 != self.from));
        let segment = packet.segment().expect("a proxy sends segments");
        if wire.from.1 != self.from {
            return self.sender.check_segment(segment);
        }
        self.receiver.check_segment(segment, self.ended);
        // SYN-ACK and FIN occupy a sequence number but no buffer space.
        let edge = segment.ack + segment.wnd;
        let room = self.near_first + (self.released + self.buffer) as u32 + u32::from(self.ended);
        assert!(edge <= room, "{now}: {edge} is advertised, and there is room up to {room}");
    }

    fn handled(&mut self, now: Time, id: ComponentId, component: &Node) {
        if let Node::Proxy(proxy) = component
            && id == self.proxy
        {
            self.look(now, proxy.relay(CONNECTION.flow).expect("the proxy splits this flow"));
        }
    }
}
