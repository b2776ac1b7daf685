//! Links whose queue has a discipline: they are served packet by packet, because what is sent next may depend on
//! what is still to come.

use std::collections::VecDeque;

use lasthop_base::{BitRate, Bytes, Duration, Time};
use lasthop_proto::{Component, Out, Packet, Port, Probe};

use crate::queue::{Discipline, QueueStats};

/// A queue under a discipline, whoever is served, and a delay line. `N` is what is noted of each packet that is
/// served.
pub(crate) struct ManagedLine<N> {
    delay: Duration,
    queue: Box<dyn Discipline>,
    /// When the packet that is served is over; never without one.
    free: Time,
    /// Packets that have been served, or are, each with its arrival at the other end.
    passages: VecDeque<(Time, Packet, N)>,
}

impl<N: Copy> ManagedLine<N> {
    /// An idle line.
    pub(crate) fn new(delay: Duration, queue: Box<dyn Discipline>) -> ManagedLine<N> {
        ManagedLine { delay, queue, free: Time::NEVER, passages: VecDeque::new() }
    }

    /// Takes a packet. `serve` begins to serve one at an instant, and says when that is over and what is to be
    /// noted.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        packet: Packet,
        mut serve: impl FnMut(&Packet, Time) -> (Time, N),
        out: &mut Out,
    ) {
        // Room made at this instant counts, whether the link was woken before or not.
        self.advance(now, &mut serve, out);
        let idle = self.free == Time::NEVER;
        self.queue.enqueue(now, packet, idle, out);
        if idle {
            self.begin(now, &mut serve, out);
        }
    }

    /// Ends the service that is over by now, and begins the next.
    pub(crate) fn advance(
        &mut self,
        now: Time,
        mut serve: impl FnMut(&Packet, Time) -> (Time, N),
        out: &mut Out,
    ) {
        while self.free <= now {
            self.begin(self.free, &mut serve, out);
        }
    }

    fn begin(&mut self, start: Time, serve: &mut impl FnMut(&Packet, Time) -> (Time, N), out: &mut Out) {
        self.free = match self.queue.dequeue(start, out) {
            Some(packet) => {
                let (end, note) = serve(&packet, start);
                self.passages.push_back((end + self.delay, packet, note));
                end
            }
            None => Time::NEVER,
        };
    }

    /// Hands over the packets that have arrived by now.
    pub(crate) fn hand_over(&mut self, now: Time, mut each: impl FnMut(&Packet, N)) {
        while let Some((_, packet, note)) = self.passages.front().filter(|passage| passage.0 <= now) {
            each(packet, *note);
            self.passages.pop_front();
        }
    }

    pub(crate) fn next_wakeup(&self) -> Time {
        self.passages.front().map_or(self.free, |passage| passage.0.min(self.free))
    }

    pub(crate) fn queued(&self) -> (usize, Bytes) {
        self.queue.queued()
    }

    /// Packets that have not arrived.
    pub(crate) fn len(&self) -> usize {
        self.queue.queued().0 + self.passages.len()
    }

    pub(crate) fn stats(&self) -> &QueueStats {
        self.queue.stats()
    }
}

/// One direction of a wired link whose queue has a discipline; otherwise as
/// [`WiredLink`](crate::WiredLink). Enters and leaves by [`Port::ONLY`].
#[allow(missing_debug_implementations)]
pub struct ManagedLink {
    rate: BitRate,
    line: ManagedLine<()>,
}

impl ManagedLink {
    /// An idle link.
    pub fn new(rate: BitRate, delay: Duration, queue: Box<dyn Discipline>) -> ManagedLink {
        ManagedLink { rate, line: ManagedLine::new(delay, queue) }
    }

    /// Packets that have not arrived: those that wait, and those on their way.
    pub(crate) fn held(&self) -> usize {
        self.line.len()
    }

    /// What its queue has done so far.
    pub fn stats(&self) -> &QueueStats {
        self.line.stats()
    }
}

impl Component for ManagedLink {
    fn receive(&mut self, now: Time, packet: Packet, _port: Port, out: &mut Out) {
        let rate = self.rate;
        self.line.receive(now, packet, |packet, start| (start + rate.time_for(packet.size), ()), out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        let rate = self.rate;
        self.line.advance(now, |packet, start| (start + rate.time_for(packet.size), ()), out);
        self.line.hand_over(now, |packet, ()| out.send(Port::ONLY, *packet));
    }

    fn next_wakeup(&self) -> Time {
        self.line.next_wakeup()
    }

    /// Packets waiting in the queue, and bytes of those.
    fn show(&self, probe: &mut dyn Probe) {
        let (packets, bytes) = self.line.queued();
        probe.value("queue_packets", packets as f64);
        probe.value("queue_bytes", bytes.0 as f64);
    }
}
