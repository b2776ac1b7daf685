//! Packets that pass one after the other: a queue, whoever is served, and a delay line.

use std::collections::VecDeque;

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::Packet;

/// How much may wait before a link, not counting the packet that is being sent. Drop-tail: what
/// does not fit is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Everything fits.
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
