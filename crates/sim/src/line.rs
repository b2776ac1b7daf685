//! Lines: links that decide what becomes of a packet as soon as it enters.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use lasthop_base::{Bytes, Time, UnitError};
use lasthop_proto::{DropReason, Out, Packet, Port};
use serde::de::{Deserializer, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize, de};

/// Capacity of a drop-tail queue before a link, not counting the packet in transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueLimit {
    /// No limit.
    #[default]
    Unlimited,
    /// At most this many packets.
    Packets(u32),
    /// At most this many bytes.
    Bytes(Bytes),
}

impl QueueLimit {
    /// Whether a packet of `size` fits behind `packets` queued packets of `waiting` bytes in total.
    pub(crate) fn admits(self, packets: usize, waiting: Bytes, size: Bytes) -> bool {
        match self {
            QueueLimit::Unlimited => true,
            QueueLimit::Packets(most) => packets < most as usize,
            QueueLimit::Bytes(most) => waiting + size <= most,
        }
    }
}

const EXPECTED: &str = "\"unlimited\", a number such as \"50 packets\" or a size such as \"64 KiB\"";

/// In the format of scenario files: `unlimited`, `50 packets` or `64 KiB`.
impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueLimit::Unlimited => f.write_str("unlimited"),
            QueueLimit::Packets(1) => f.write_str("1 packet"),
            QueueLimit::Packets(most) => write!(f, "{most} packets"),
            QueueLimit::Bytes(most) => most.fmt(f),
        }
    }
}

impl FromStr for QueueLimit {
    /// The text found, and the "did you mean" hint: the parts before and after the expectation.
    type Err = (String, String);

    fn from_str(text: &str) -> Result<QueueLimit, (String, String)> {
        if text == "unlimited" {
            return Ok(QueueLimit::Unlimited);
        }
        let number = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"));
        match number.map(|number| number.trim_end().parse()) {
            Some(Ok(most)) => Ok(QueueLimit::Packets(most)),
            Some(Err(_)) => Err((format!("found \"{text}\""), String::new())),
            // The error of a size mentions sizes only, so the expectation is replaced.
            None => text.parse().map(QueueLimit::Bytes).map_err(|error: UnitError| {
                let complaint = error.to_string();
                let (found, rest) = complaint.split_once(", expected ").unwrap_or((&complaint, ""));
                let near = rest.find("; did you mean ").map_or("", |hint| &rest[hint..]);
                (found.to_owned(), near.to_owned())
            }),
        }
    }
}

impl QueueLimit {
    /// Parses a limit; an error names what was found and what was `expected`.
    pub(crate) fn parse<E: de::Error>(text: &str, expected: &str) -> Result<QueueLimit, E> {
        text.parse().map_err(|(found, near)| E::custom(format!("{found}, expected {expected}{near}")))
    }
}

impl Serialize for QueueLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for QueueLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<QueueLimit, D::Error> {
        struct Limit;
        impl Visitor<'_> for Limit {
            type Value = QueueLimit;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<QueueLimit, E> {
                QueueLimit::parse(text, EXPECTED)
            }
        }
        deserializer.deserialize_any(Limit)
    }
}

/// What becomes of a packet that enters a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives at the other end at this time.
    Arrives(Time),
    /// It is lost, which shows when it would have arrived at the other end, at this time.
    Lost(Time),
    /// The queue has no room for it.
    Refused,
}

/// A link with a drop-tail queue and without an ARQ. Packets are served in the order in which they enter, so what
/// becomes of a packet depends on nothing that happens after it has entered. A line needs a single deadline, the next
/// arrival at its other end, and allows [look-ahead](crate::look_ahead).
///
/// Every packet has at least one bit and so takes at least a nanosecond. A line emits nothing but the packets that
/// arrive and those that it drops; its [`Component`](lasthop_proto::Component) is no more than [`enter`](Line::enter),
/// [`leave`](Line::leave) and the [next arrival](Exit::next), because the engine does not call it if it looks ahead.
pub(crate) trait Line {
    /// Decides what becomes of a packet that enters at `at`, in the order of these times. `now` is the time of the
    /// simulation: `at` is later if the engine looks ahead.
    fn pass(&mut self, now: Time, at: Time, packet: &Packet) -> Fate;

    /// The packets on their way to the other end.
    fn exit(&self) -> &Exit;

    /// The packets on their way to the other end.
    fn exit_mut(&mut self) -> &mut Exit;

    /// Counts a packet that was refused.
    fn count_refused(&mut self) {}

    /// Counts the packets that had arrived before `now`, and at `now` itself if `inclusive`.
    fn settle(&mut self, _now: Time, _inclusive: bool) {}

    /// [`Component::receive`](lasthop_proto::Component::receive).
    fn enter(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        let (at, end) = match self.pass(now, now, packet) {
            Fate::Arrives(at) => (at, End::Intact),
            Fate::Lost(at) => (at, End::Lost),
            Fate::Refused => {
                self.count_refused();
                return out.drop(*packet, DropReason::QueueFull);
            }
        };
        self.exit_mut().push(at, end, packet);
    }

    /// [`Component::wake`](lasthop_proto::Component::wake).
    fn leave(&mut self, now: Time, out: &mut Out) {
        self.settle(now, true);
        while self.exit().next() <= now {
            let (end, packet) = self.exit_mut().take();
            match end {
                End::Intact => out.send(Port::ONLY, packet),
                End::Lost => out.drop(packet, DropReason::Corrupted),
                End::Refused => unreachable!("only the engine looks ahead"),
            }
        }
    }
}

/// How the passage of a packet through a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It leaves the line.
    Intact,
    /// It is lost.
    Lost,
    /// It leaves the line, and the next line has no room for it; found by look-ahead.
    Refused,
}

/// The packets on their way to the other end of a line, in the order of arrival. A packet that look-ahead has passed on
/// to the next line is stored by that line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exit(VecDeque<(Time, End, Packet)>);

impl Exit {
    /// Adds a packet that arrives at `at`, no earlier than those before it. Returns whether there were none.
    #[inline]
    pub(crate) fn push(&mut self, at: Time, end: End, packet: &Packet) -> bool {
        let was_empty = self.0.is_empty();
        debug_assert!(self.0.back().is_none_or(|last| last.0 <= at), "packets arrive in order");
        self.0.push_back((at, end, *packet));
        was_empty
    }

    /// Removes the packet that arrives next.
    #[inline]
    pub(crate) fn take(&mut self) -> (End, Packet) {
        let (_, end, packet) = self.0.pop_front().expect("a packet is on its way");
        (end, packet)
    }

    /// Time of the next arrival; [`Time::NEVER`] if no packet is on its way.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.0.front().map_or(Time::NEVER, |&(at, ..)| at)
    }

    /// Number of packets on their way.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The drop-tail queue and the server of a line: which packets are admitted, and when each is served.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    limit: QueueLimit,
    /// Packets whose service had not started when a packet last entered: the start of service, and the size.
    queue: VecDeque<(Time, Bytes)>,
    /// Total size of the packets in `queue`.
    queued: Bytes,
    idle_from: Time,
}

impl Server {
    /// An idle server.
    pub(crate) fn new(limit: QueueLimit) -> Server {
        Server { limit, queue: VecDeque::new(), queued: Bytes::ZERO, idle_from: Time::ZERO }
    }

    /// The time at which service of a packet that enters at `at` will start; `None` if the queue is full. A packet
    /// that enters at the instant at which service of another starts still finds that packet in the queue, as in ns-2.
    #[inline]
    pub(crate) fn admit(&mut self, at: Time, size: Bytes) -> Option<Time> {
        if self.idle_from <= at {
            if !self.queue.is_empty() {
                self.queue.clear();
                self.queued = Bytes::ZERO;
            }
            return Some(at);
        }
        while let Some(&(_, size)) = self.queue.front().filter(|&&(start, _)| start < at) {
            self.queued = self.queued - size;
            self.queue.pop_front();
        }
        self.limit.admits(self.queue.len(), self.queued, size).then_some(self.idle_from)
    }

    /// Serves a packet that was admitted at `at` from `start` until `end`.
    #[inline]
    pub(crate) fn serve(&mut self, at: Time, size: Bytes, start: Time, end: Time) {
        self.idle_from = end;
        if start > at {
            self.queued += size;
            self.queue.push_back((start, size));
        }
    }

    /// Packets and bytes in the queue. It is updated when a packet enters, so packets that have left the line since are
    /// subtracted: at most `held` packets have not.
    pub(crate) fn queued(&self, held: usize) -> (usize, Bytes) {
        let left = self.queue.len().saturating_sub(held);
        let bytes = self.queue.iter().take(left).fold(self.queued, |bytes, &(_, size)| bytes - size);
        (self.queue.len() - left, bytes)
    }
}
