//! One direction of a wired link: a queue, a serialiser and a delay line.

use lasthop_base::{BitRate, Bytes, Duration, Time};
use lasthop_proto::{Component, Out, Packet, Port};

use crate::line::{Arrivals, DropTail, Fate, Line};
use lasthop_link::queue::QueueLimit;

/// One direction of a wired link. Packets wait in a drop-tail queue, are sent at the link rate, and arrive
/// after the propagation delay. Uses [`Port::ONLY`] for input and output.
#[derive(Clone, Debug)]
pub struct WiredLink {
    rate: BitRate,
    delay: Duration,
    /// Transmission time of the most recent size. Packets have few sizes, and a division costs as much as the
    /// rest of the link's work.
    last: (Bytes, Duration),
    queue: DropTail,
    arrivals: Arrivals,
}

impl WiredLink {
    /// An idle link.
    pub fn new(rate: BitRate, delay: Duration, limit: QueueLimit) -> WiredLink {
        let last = (Bytes::ZERO, Duration::ZERO);
        WiredLink { rate, delay, last, queue: DropTail::new(limit), arrivals: Arrivals::default() }
    }

    /// Packets that have not arrived, queued or in flight.
    pub(crate) fn held(&self) -> usize {
        self.arrivals.len()
    }

    #[inline]
    fn time_for(&mut self, size: Bytes) -> Duration {
        if self.last.0 != size {
            self.note_size(size);
        }
        self.last.1
    }

    // Not inlined, so that the usual packet does not pay for the multiplications.
    #[inline(never)]
    fn note_size(&mut self, size: Bytes) {
        self.last = (size, self.rate.time_for(size));
    }
}

impl Line for WiredLink {
    #[inline(always)]
    fn pass(&mut self, _now: Time, at: Time, packet: &Packet) -> Fate {
        let Some(start) = self.queue.admit(at, packet.size) else { return Fate::Refused };
        let end = start + self.time_for(packet.size);
        self.queue.serve(at, packet.size, start, end);
        Fate::Arrives(end + self.delay)
    }

    #[inline]
    fn arrivals(&mut self) -> &mut Arrivals {
        &mut self.arrivals
    }
}

impl Component for WiredLink {
    fn receive(&mut self, now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        self.enter(now, packet, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.leave(now, out);
    }

    fn next_wakeup(&self) -> Time {
        self.arrivals.next()
    }
}
