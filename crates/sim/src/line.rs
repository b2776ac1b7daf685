//! Lines: links that decide what becomes of a packet as soon as it enters.

use lasthop_base::{Bytes, Time};
use lasthop_proto::{DropReason, Out, Packet, Port};

use crate::ring::Ring;
use lasthop_link::queue::QueueLimit;

/// The fate of a packet that enters a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Arrives at the other end at this time.
    Arrives(Time),
    /// Lost; the loss is reported at this time, when the packet would have arrived.
    Lost(Time),
    /// Dropped: the queue is full.
    Refused,
}

/// A link with a drop-tail queue and without an ARQ. Packets are served in the order in which they enter, so the
/// fate of a packet is known when it enters. A line needs a single deadline, the next
/// arrival at its other end, and allows [look-ahead](crate::look_ahead).
///
/// Every packet has at least one bit and so takes at least a nanosecond. A line emits nothing but the packets that
/// arrive and those that it drops; its [`Component`](lasthop_proto::Component) is no more than [`enter`](Line::enter),
/// [`leave`](Line::leave) and the [next arrival](Arrivals::next), because the engine does not call it if it looks ahead.
pub(crate) trait Line {
    /// Determines the fate of a packet that enters at `at`. Calls are in the order of these times. `now` is the time of the
    /// simulation: `at` is later if the engine looks ahead.
    fn pass(&mut self, now: Time, at: Time, packet: &Packet) -> Fate;

    /// The packets on their way to the other end.
    fn arrivals(&mut self) -> &mut Arrivals;

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
        self.arrivals().push(at, end, packet);
    }

    /// [`Component::wake`](lasthop_proto::Component::wake).
    fn leave(&mut self, now: Time, out: &mut Out) {
        self.settle(now, true);
        while self.arrivals().next() <= now {
            let &Arrival { end, packet, .. } = self.arrivals().first();
            self.arrivals().remove_first();
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

/// A packet on its way to the other end of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    at: Time,
    pub(crate) packet: Packet,
    pub(crate) end: End,
}

/// The packets on their way to the other end of a line, in the order of arrival. A packet that look-ahead has passed on
/// to the next line is stored by that line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals(Ring<Arrival>);

impl Arrivals {
    /// Adds a packet that arrives at `at`, no earlier than those before it. Returns whether there were none.
    #[inline]
    pub(crate) fn push(&mut self, at: Time, end: End, packet: &Packet) -> bool {
        let was_empty = self.0.is_empty();
        debug_assert!(self.0.back().is_none_or(|last| last.at <= at), "packets arrive in order");
        self.0.push(Arrival { at, packet: *packet, end });
        was_empty
    }

    /// The packet that arrives next. Not removed by the same call, which would copy it twice.
    #[inline]
    pub(crate) fn first(&self) -> &Arrival {
        self.0.front().expect("a packet is on its way")
    }

    /// Removes the packet that arrives next.
    #[inline]
    pub(crate) fn remove_first(&mut self) {
        self.0.pop();
    }

    /// Time of the next arrival; [`Time::NEVER`] if no packet is on its way.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.0.front().map_or(Time::NEVER, |first| first.at)
    }

    /// Number of packets on their way.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The drop-tail queue of a line: which packets are admitted, and when the service of each starts.
#[derive(Clone, Debug)]
pub(crate) struct DropTail {
    limit: QueueLimit,
    /// Packets whose service had not started when a packet last entered: the start of service, and the size.
    queue: Ring<(Time, Bytes)>,
    /// Total size of the packets in `queue`.
    queued: Bytes,
    idle_from: Time,
}

impl DropTail {
    /// An empty queue, and nothing in service.
    pub(crate) fn new(limit: QueueLimit) -> DropTail {
        DropTail { limit, queue: Ring::default(), queued: Bytes::ZERO, idle_from: Time::ZERO }
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
            self.queue.pop();
        }
        self.limit.admits(self.queue.len(), self.queued, size).then_some(self.idle_from)
    }

    /// Serves a packet that was admitted at `at` from `start` until `end`.
    #[inline]
    pub(crate) fn serve(&mut self, at: Time, size: Bytes, start: Time, end: Time) {
        self.idle_from = end;
        if start > at {
            self.queued += size;
            self.queue.push((start, size));
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
