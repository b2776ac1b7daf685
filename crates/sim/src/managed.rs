//! Links with a queue discipline. They are served packet by packet, because the next packet may depend on
//! later arrivals.

use std::collections::VecDeque;

use lasthop_base::{BitRate, Bytes, Duration, Time};
use lasthop_proto::{Component, Out, Packet, Port, Probe};

use lasthop_link::queue::{Discipline, QueueStats};

/// A queue under a discipline, a serialiser and a delay line. `N` is a value stored with each packet when its
/// service starts.
pub(crate) struct ManagedPipeline<N> {
    delay: Duration,
    queue: Box<dyn Discipline>,
    /// End of the current service; `None` while idle.
    free: Time,
    /// Packets in service or in flight, with their arrival times.
    passages: VecDeque<(Time, Packet, N)>,
}

impl<N: Copy> ManagedPipeline<N> {
    /// An idle pipeline.
    pub(crate) fn new(delay: Duration, queue: Box<dyn Discipline>) -> ManagedPipeline<N> {
        ManagedPipeline { delay, queue, free: Time::NEVER, passages: VecDeque::new() }
    }

    /// Enqueues a packet. `serve` starts the service of a packet at a given time and returns its end and the
    /// value to store.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        packet: Packet,
        mut serve: impl FnMut(&Packet, Time) -> (Time, N),
        out: &mut Out,
    ) {
        // Completes a service that ends at this instant first, whether or not the link was woken before.
        self.advance(now, &mut serve, out);
        let idle = self.free == Time::NEVER;
        self.queue.enqueue(now, packet, idle, out);
        if idle {
            self.begin(now, &mut serve, out);
        }
    }

    /// Completes the service that is due by now and starts the next one.
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

    /// Passes the packets that have arrived by now to `each`.
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

/// One direction of a wired link whose queue has a discipline; otherwise like
/// [`WiredLink`](crate::WiredLink). Uses [`Port::ONLY`] for input and output.
#[allow(missing_debug_implementations)]
pub struct ManagedLink {
    rate: BitRate,
    pipeline: ManagedPipeline<()>,
}

impl ManagedLink {
    /// An idle link.
    pub fn new(rate: BitRate, delay: Duration, queue: Box<dyn Discipline>) -> ManagedLink {
        ManagedLink { rate, pipeline: ManagedPipeline::new(delay, queue) }
    }

    /// Packets that have not arrived, queued or in flight.
    pub(crate) fn held(&self) -> usize {
        self.pipeline.len()
    }

    /// Counters of the queue.
    pub fn stats(&self) -> &QueueStats {
        self.pipeline.stats()
    }
}

impl Component for ManagedLink {
    fn receive(&mut self, now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        let rate = self.rate;
        self.pipeline.receive(now, *packet, |packet, start| (start + rate.time_for(packet.size), ()), out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        let rate = self.rate;
        self.pipeline.advance(now, |packet, start| (start + rate.time_for(packet.size), ()), out);
        self.pipeline.hand_over(now, |packet, ()| out.send(Port::ONLY, *packet));
    }

    fn next_wakeup(&self) -> Time {
        self.pipeline.next_wakeup()
    }

    /// Packets and bytes in the queue.
    fn show(&self, probe: &mut dyn Probe) {
        let (packets, bytes) = self.pipeline.queued();
        probe.value("queue_packets", packets as f64);
        probe.value("queue_bytes", bytes.0 as f64);
    }
}
