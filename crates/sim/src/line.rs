//! A drop-tail queue, a serialiser and a delay line.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use lasthop_base::{Bytes, Duration, Time, UnitError};
use lasthop_proto::Packet;
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

/// Packets on a link whose service order and times are fixed on arrival: each arrival time is known as soon
/// as a packet is queued, so the line needs a single deadline. `N` is a value stored with each packet.
#[derive(Clone, Debug)]
pub(crate) struct Line<N> {
    delay: Duration,
    limit: QueueLimit,
    /// Packets that have not arrived.
    passages: VecDeque<Passage<N>>,
    /// Number of packets at the head whose service had started at the last update.
    started: usize,
    /// Bytes of the packets whose service had not started at the last update.
    waiting: Bytes,
    idle_from: Time,
    next_arrival: Time,
}

#[derive(Clone, Copy, Debug)]
struct Passage<N> {
    start: Time,
    arrival: Time,
    packet: Packet,
    note: N,
}

impl<N: Copy> Line<N> {
    /// An empty line with propagation delay `delay`.
    pub(crate) fn new(delay: Duration, limit: QueueLimit) -> Line<N> {
        Line {
            delay,
            limit,
            passages: VecDeque::new(),
            started: 0,
            waiting: Bytes::ZERO,
            idle_from: Time::ZERO,
            next_arrival: Time::NEVER,
        }
    }

    /// The time at which service of a packet that arrives now will start; `None` if the queue is full. A
    /// packet that arrives at the instant at which service of another starts still finds that packet in the
    /// queue, as in ns-2.
    pub(crate) fn admit(&mut self, now: Time, size: Bytes) -> Option<Time> {
        if self.idle_from <= now {
            self.started = self.passages.len();
            self.waiting = Bytes::ZERO;
            return Some(now);
        }
        while let Some(passage) = self.passages.get(self.started).filter(|passage| passage.start < now) {
            self.waiting = self.waiting - passage.packet.size;
            self.started += 1;
        }
        let room = self.limit.admits(self.passages.len() - self.started, self.waiting, size);
        room.then_some(self.idle_from)
    }

    /// Appends an admitted packet that is served from `start` until `end`.
    pub(crate) fn take(&mut self, now: Time, packet: Packet, start: Time, end: Time, note: N) {
        let arrival = end + self.delay;
        self.idle_from = end;
        self.next_arrival = self.next_arrival.min(arrival);
        self.passages.push_back(Passage { start, arrival, packet, note });
        if start > now {
            self.waiting += packet.size;
        } else {
            self.started += 1;
        }
    }

    /// Passes the packets that have arrived by now to `each`, by reference to avoid a copy.
    pub(crate) fn hand_over(&mut self, now: Time, mut each: impl FnMut(&Packet, N)) {
        self.next_arrival = loop {
            let Some(passage) = self.passages.front() else { break Time::NEVER };
            if passage.arrival > now {
                break passage.arrival;
            }
            each(&passage.packet, passage.note);
            if self.started > 0 {
                self.started -= 1;
            } else {
                self.waiting = self.waiting - passage.packet.size;
            }
            self.passages.pop_front();
        };
    }

    /// Arrival time of the next packet.
    pub(crate) fn next_arrival(&self) -> Time {
        self.next_arrival
    }

    /// Packets that have not arrived, queued or in flight.
    pub(crate) fn len(&self) -> usize {
        self.passages.len()
    }

    /// Packets and bytes in the queue at the last update.
    pub(crate) fn queued(&self) -> (usize, Bytes) {
        (self.passages.len() - self.started, self.waiting)
    }
}
