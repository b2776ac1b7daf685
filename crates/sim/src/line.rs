//! Packets that pass one after the other: a queue, whoever is served, and a delay line.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use lasthop_base::{Bytes, Duration, Time, UnitError};
use lasthop_proto::Packet;
use serde::de::{Deserializer, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize, de};

/// How much may wait before a link, not counting the packet that is being sent. Drop-tail: what
/// does not fit is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueLimit {
    /// Everything fits.
    #[default]
    Unlimited,
    /// At most this many packets.
    Packets(u32),
    /// At most this many bytes.
    Bytes(Bytes),
}

impl QueueLimit {
    /// Whether one more packet of this size may wait behind `packets` packets of `waiting` bytes.
    pub(crate) fn admits(self, packets: usize, waiting: Bytes, size: Bytes) -> bool {
        match self {
            QueueLimit::Unlimited => true,
            QueueLimit::Packets(most) => packets < most as usize,
            QueueLimit::Bytes(most) => waiting + size <= most,
        }
    }
}

const EXPECTED: &str = "\"unlimited\", a number such as \"50 packets\" or a size such as \"64 KiB\"";

/// As a scenario writes it: `unlimited`, `50 packets` or `64 KiB`.
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
    /// What was found, and what may have been meant: the text around what was expected.
    type Err = (String, String);

    fn from_str(text: &str) -> Result<QueueLimit, (String, String)> {
        if text == "unlimited" {
            return Ok(QueueLimit::Unlimited);
        }
        let number = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"));
        match number.map(|number| number.trim_end().parse()) {
            Some(Ok(most)) => Ok(QueueLimit::Packets(most)),
            Some(Err(_)) => Err((format!("found \"{text}\""), String::new())),
            // A size's own complaint knows of sizes only.
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
    /// Reads it, or says what was found and what was `expected`.
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

/// Packets on a link whose service depends on nothing that is still to come: when each will arrive is
/// known as soon as it comes, so the whole line needs one deadline. `N` is what is noted of each.
#[derive(Clone, Debug)]
pub(crate) struct Line<N> {
    delay: Duration,
    limit: QueueLimit,
    /// Packets that have not arrived.
    passages: VecDeque<Passage<N>>,
    /// How many at the head had started to be served when the queue was last looked at.
    started: usize,
    /// Bytes of those that had not.
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
    /// Nothing; what is served arrives `delay` later.
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

    /// When a packet of this size that comes now will start to be served; `None` if the queue has no
    /// room for it. At the same instant a packet comes before another starts and makes room, as in
    /// ns-2.
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

    /// Takes a packet that was admitted, to be served from `start` until `end`.
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

    /// Hands over the packets that have arrived by now, by reference: a packet is copied from the line
    /// to where it goes, and nowhere between.
    pub(crate) fn hand_over(&mut self, now: Time, mut each: impl FnMut(&Packet, N)) {
        while let Some(passage) = self.passages.front().filter(|passage| passage.arrival <= now) {
            each(&passage.packet, passage.note);
            if self.started > 0 {
                self.started -= 1;
            } else {
                self.waiting = self.waiting - passage.packet.size;
            }
            self.passages.pop_front();
        }
        self.next_arrival = self.passages.front().map_or(Time::NEVER, |passage| passage.arrival);
    }

    /// When the next packet arrives.
    pub(crate) fn next_arrival(&self) -> Time {
        self.next_arrival
    }

    /// Packets that have not arrived: those that wait, and those on their way.
    pub(crate) fn len(&self) -> usize {
        self.passages.len()
    }

    /// Packets and bytes that waited when the queue was last looked at.
    pub(crate) fn queued(&self) -> (usize, Bytes) {
        (self.passages.len() - self.started, self.waiting)
    }
}
