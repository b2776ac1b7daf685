//! One direction of a wired link: a queue, a serialiser and a delay line.

use std::collections::VecDeque;

use lasthop_base::{BitRate, Bytes, Duration, Time};
use lasthop_proto::{Component, DropReason, Out, Packet, Port};

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

/// One direction of a wired link: packets wait in line, leave at the link's rate, and arrive after
/// the propagation delay. Enters and leaves by [`Port::ONLY`].
#[derive(Clone, Debug)]
pub struct WiredLink {
    serialiser: Serialiser,
    delay: Duration,
    limit: QueueLimit,
    /// Packets not yet arrived, with the instants at which they start to be sent and arrive. When a
    /// packet will leave is known as soon as it comes, so the whole line needs one deadline.
    line: VecDeque<Passage>,
    /// How many at the head of `line` had started when the queue was last looked at.
    started: usize,
    /// Bytes of those that had not.
    waiting: Bytes,
    idle_from: Time,
    /// When the first packet in the line arrives.
    next_arrival: Time,
}

/// A rate that remembers how long the last size took: packets come in few sizes, and a division costs
/// as much as all else that a link does.
#[derive(Clone, Copy, Debug)]
struct Serialiser {
    rate: BitRate,
    last: (Bytes, Duration),
}

impl Serialiser {
    fn new(rate: BitRate) -> Serialiser {
        Serialiser { rate, last: (Bytes::ZERO, Duration::ZERO) }
    }

    fn time_for(&mut self, size: Bytes) -> Duration {
        if self.last.0 != size {
            self.last = (size, self.rate.time_for(size));
        }
        self.last.1
    }
}

#[derive(Clone, Copy, Debug)]
struct Passage {
    start: Time,
    arrival: Time,
    packet: Packet,
}

impl WiredLink {
    /// An idle link.
    pub fn new(rate: BitRate, delay: Duration, limit: QueueLimit) -> WiredLink {
        let (line, idle_from) = (VecDeque::new(), Time::ZERO);
        let serialiser = Serialiser::new(rate);
        WiredLink {
            serialiser,
            delay,
            limit,
            line,
            started: 0,
            waiting: Bytes::ZERO,
            idle_from,
            next_arrival: Time::NEVER,
        }
    }

    /// Whether one more packet of this size may wait. At the same instant a packet comes before
    /// another starts to be sent and makes room, as in ns-2.
    fn has_room(&mut self, now: Time, size: Bytes) -> bool {
        while let Some(passage) = self.line.get(self.started).filter(|passage| passage.start < now) {
            self.waiting = self.waiting - passage.packet.size;
            self.started += 1;
        }
        self.limit.admits(self.line.len() - self.started, self.waiting, size)
    }
}

impl Component for WiredLink {
    fn receive(&mut self, now: Time, packet: Packet, _port: Port, out: &mut Out) {
        let idle = self.idle_from <= now;
        if !idle && !self.has_room(now, packet.size) {
            return out.drop(packet, DropReason::QueueFull);
        }
        let start = self.idle_from.max(now);
        self.idle_from = start + self.serialiser.time_for(packet.size);
        let arrival = self.idle_from + self.delay;
        self.next_arrival = self.next_arrival.min(arrival);
        self.line.push_back(Passage { start, arrival, packet });
        if idle {
            self.started = self.line.len();
            self.waiting = Bytes::ZERO;
        } else {
            self.waiting += packet.size;
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        while let Some(passage) = self.line.front().filter(|p| p.arrival <= now) {
            out.send(Port::ONLY, passage.packet);
            if self.started > 0 {
                self.started -= 1;
            } else {
                self.waiting = self.waiting - passage.packet.size;
            }
            self.line.pop_front();
        }
        self.next_arrival = self.line.front().map_or(Time::NEVER, |passage| passage.arrival);
    }

    fn next_wakeup(&self) -> Time {
        self.next_arrival
    }
}
