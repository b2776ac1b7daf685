//! Lines: links that decide what becomes of a packet as soon as it enters.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_link::pace::{Fixed, Pace};
use lasthop_link::queue::QueueLimit;
use lasthop_proto::{Component, DropReason, Out, Packet, Port, Probe};

use super::LinkStats;
use super::medium::{Medium, Passage};
use super::narrowing_deque::NarrowingDeque;

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

/// A link with a drop-tail queue and a fixed pace, and without an ARQ: the fast path of a
/// [`QueuedLink`](super::queued::QueuedLink). Packets are served in the order in which they enter, so the
/// fate of a packet is known when it enters. A line needs a single deadline, the next
/// arrival at its other end, and allows [look-ahead](crate::look_ahead).
///
/// Every packet has at least one bit and so takes at least a nanosecond. A line emits nothing but the packets that
/// arrive and those that it drops; its [`Component`] is no more than [`pass`](Line::pass), [`leave`](Arrivals::leave) and
/// the [next arrival](Arrivals::next), because the engine does not call it if it looks ahead.
// Fields are in order of use: in a large network the link is not cached, and adjacent fields take fewer cache lines.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Line<M> {
    pace: Fixed,
    queue: Schedule,
    arrivals: Arrivals,
    medium: M,
    /// Packets that found the queue full.
    refused: u64,
}

impl<M: Medium> Line<M> {
    /// An idle line.
    pub(super) fn new(delay: Duration, limit: QueueLimit, medium: M) -> Line<M> {
        let (queue, arrivals) = (Schedule::new(limit), Arrivals::default());
        Line { pace: Fixed { delay }, queue, arrivals, medium, refused: 0 }
    }

    /// Determines the fate of a packet that enters at `at`. Calls are in the order of these times. `now` is the time of the
    /// simulation: `at` is later if the engine looks ahead.
    // The frame of a function would cost as much as a fifth of what is done here. With the packets on their way, so that who
    // stores the packet does not ask for the kind of the line again.
    #[inline(always)]
    pub(super) fn pass(&mut self, now: Time, at: Time, packet: &Packet) -> (Fate, &mut Arrivals) {
        let arrivals = &mut self.arrivals;
        self.medium.settle(now, false);
        let Some(start) = self.queue.admit(at, packet.size) else { return (Fate::Refused, arrivals) };
        let Passage { end, arrival, is_lost } = self.medium.send(&mut self.pace, packet, start);
        self.queue.serve(at, packet.size, start, end);
        (if is_lost { Fate::Lost(arrival) } else { Fate::Arrives(arrival) }, arrivals)
    }

    /// The packets on their way to the other end.
    #[inline]
    pub(super) fn arrivals(&mut self) -> &mut Arrivals {
        &mut self.arrivals
    }

    /// Counts a packet that was refused.
    pub(super) fn count_refused(&mut self) {
        self.refused += 1;
    }

    /// Counts the packets that had arrived before `now`, and at `now` itself if `inclusive`.
    pub(super) fn settle(&mut self, now: Time, inclusive: bool) {
        self.medium.settle(now, inclusive);
    }

    /// Sets the end of the run.
    pub(super) fn until(&mut self, horizon: Time) {
        self.medium.until(horizon);
    }

    /// Packets that have not arrived, queued or in flight.
    pub(super) fn held(&self) -> usize {
        self.arrivals.len()
    }

    pub(super) fn stats(&self) -> LinkStats {
        LinkStats { overflowed: self.refused, ..self.medium.stats() }
    }
}

impl<M: Medium> Component for Line<M> {
    fn receive(&mut self, now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        let (fate, arrivals) = self.pass(now, now, packet);
        match fate {
            Fate::Arrives(at) => _ = arrivals.push(at, End::Intact, packet),
            Fate::Lost(at) => _ = arrivals.push(at, End::Lost, packet),
            Fate::Refused => {
                self.count_refused();
                out.drop(*packet, DropReason::QueueFull);
            }
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.medium.settle(now, true);
        self.arrivals.leave(now, Port::ONLY, out);
    }

    #[inline(always)]
    fn next_wakeup(&self) -> Time {
        self.arrivals.next()
    }

    fn show(&self, probe: &mut dyn Probe) {
        if M::IS_RADIO {
            super::show_queue(self.queue.queued(self.held()), probe);
            probe.value("attempt", 0.0);
        }
    }
}

/// How the passage of a packet through a link ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It leaves the link.
    Intact,
    /// It is lost.
    Lost,
    /// It leaves a line, and the next line has no room for it; found by look-ahead.
    Refused,
}

/// A packet on its way to the other end of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    at: Time,
    pub(crate) packet: Packet,
    pub(crate) end: End,
}

/// The packets on their way to the other end of a link, in the order of arrival. A packet that look-ahead has passed on
/// to the next line is stored by that line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals(NarrowingDeque<Arrival>);

impl Arrivals {
    /// Adds a packet that arrives at `at`, no earlier than those before it. Returns whether there were none.
    #[inline]
    pub(crate) fn push(&mut self, at: Time, end: End, packet: &Packet) -> bool {
        let was_empty = self.0.is_empty();
        debug_assert!(self.0.back().is_none_or(|last| last.at <= at), "packets arrive in order");
        self.0.push(Arrival { at, packet: *packet, end });
        was_empty
    }

    /// Adds a packet of a link with the pace `P`.
    #[inline]
    pub(super) fn add<P: Pace>(&mut self, at: Time, end: End, packet: &Packet) {
        if P::KEEPS_ORDER {
            self.push(at, end, packet);
        } else {
            self.0.push_sorted(Arrival { at, packet: *packet, end }, |arrival| arrival.at);
        }
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

    /// Emits the packets that have arrived by now, and returns how many were intact.
    #[inline(always)]
    pub(super) fn leave(&mut self, now: Time, outlet: Port, out: &mut Out) -> u64 {
        let mut intact = 0;
        while self.next() <= now {
            let Arrival { end, packet, .. } = self.first();
            match end {
                End::Intact => {
                    intact += 1;
                    out.send(outlet, *packet);
                }
                End::Lost => out.corrupt(outlet, *packet),
                End::Refused => unreachable!("only the engine looks ahead"),
            }
            self.remove_first();
        }
        intact
    }
}

/// The drop-tail queue of a line: which packets are admitted, and when the service of each starts.
#[derive(Clone, Debug)]
struct Schedule {
    limit: QueueLimit,
    /// Packets whose service had not started when a packet last entered: the start of service, and the size.
    queue: NarrowingDeque<(Time, Bytes)>,
    /// Total size of the packets in `queue`.
    queued: Bytes,
    idle_from: Time,
}

impl Schedule {
    /// An empty queue, and nothing in service.
    fn new(limit: QueueLimit) -> Schedule {
        Schedule { limit, queue: NarrowingDeque::default(), queued: Bytes::ZERO, idle_from: Time::ZERO }
    }

    /// The time at which service of a packet that enters at `at` will start; `None` if the queue is full. A packet
    /// that enters at the instant at which service of another starts still finds that packet in the queue, as in ns-2.
    #[inline]
    fn admit(&mut self, at: Time, size: Bytes) -> Option<Time> {
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
    fn serve(&mut self, at: Time, size: Bytes, start: Time, end: Time) {
        self.idle_from = end;
        if start > at {
            self.queued += size;
            self.queue.push((start, size));
        }
    }

    /// Packets and bytes in the queue. It is updated when a packet enters, so packets that have left the line since are
    /// subtracted: at most `held` packets have not.
    fn queued(&self, held: usize) -> (usize, Bytes) {
        let left = self.queue.len().saturating_sub(held);
        let bytes = self.queue.iter().take(left).fold(self.queued, |bytes, &(_, size)| bytes - size);
        (self.queue.len() - left, bytes)
    }
}
