//! The queue, the transmitter and the delay line of a link whose rate or delay varies.

use std::collections::VecDeque;

use lasthop_base::{Bytes, Time};
use lasthop_link::pace::Pace;
use lasthop_link::queue::{Discipline, QueueStats};
use lasthop_link::varying::Timing;
use lasthop_proto::{Out, Packet};

/// A queue under a discipline and a link with a [`Timing`]. A packet leaves the queue when its first bits are sent. `N` is
/// a value stored with each packet then.
pub(crate) struct VaryingPipeline<N> {
    timing: Timing,
    queue: Box<dyn Discipline>,
    /// When the link next takes a packet; `None` while it is idle.
    due: Option<Time>,
    /// Packets in service or in flight, with their arrival times.
    passages: VecDeque<(Time, Packet, N)>,
}

impl<N: Copy> VaryingPipeline<N> {
    /// An idle pipeline.
    pub(crate) fn new(timing: Timing, queue: Box<dyn Discipline>) -> VaryingPipeline<N> {
        VaryingPipeline { timing, queue, due: None, passages: VecDeque::new() }
    }

    /// Enqueues a packet. `serve` starts the service of a packet at a given time and returns its end and the value to
    /// store.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        packet: Packet,
        mut serve: impl FnMut(&mut Timing, &Packet, Time) -> (Time, N),
        out: &mut Out,
    ) {
        // What is due at this instant comes first, whether or not the link was woken before.
        self.advance(now, &mut serve, out);
        if self.due.is_some() {
            return self.queue.enqueue(now, packet, false, out);
        }
        self.timing.idle(now);
        let ready = self.timing.ready(now);
        self.queue.enqueue(now, packet, ready == now, out);
        if self.queue.queued().0 > 0 {
            self.due = Some(ready);
            self.advance(now, serve, out);
        }
    }

    /// Takes the packets that are due by now.
    pub(crate) fn advance(
        &mut self,
        now: Time,
        mut serve: impl FnMut(&mut Timing, &Packet, Time) -> (Time, N),
        out: &mut Out,
    ) {
        while let Some(start) = self.due.filter(|&due| due <= now) {
            self.due = self.queue.dequeue(start, out).map(|packet| {
                let (end, note) = serve(&mut self.timing, &packet, start);
                self.passages.push_back((self.timing.arrival(end), packet, note));
                if end == Time::NEVER { end } else { self.timing.ready(end) }
            });
        }
    }

    /// Passes the packets that have arrived by now to `each`.
    pub(crate) fn hand_over(&mut self, now: Time, mut each: impl FnMut(&Packet, N)) {
        while let Some((_, packet, note)) = self.passages.front().filter(|passage| passage.0 <= now) {
            each(packet, *note);
            self.passages.pop_front();
        }
    }

    pub(crate) fn next_wakeup(&self) -> Time {
        let due = self.due.unwrap_or(Time::NEVER);
        self.passages.front().map_or(due, |passage| passage.0.min(due))
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
