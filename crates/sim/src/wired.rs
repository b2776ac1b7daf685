//! One direction of a wired link: a queue, a serialiser and a delay line.

use lasthop_base::{BitRate, Bytes, Duration, Time};
use lasthop_proto::{Component, DropReason, Out, Packet, Port};

use crate::line::{Line, QueueLimit};

/// One direction of a wired link. Packets wait in a drop-tail queue, are sent at the link rate, and arrive
/// after the propagation delay. Uses [`Port::ONLY`] for input and output.
#[derive(Clone, Debug)]
pub struct WiredLink {
    rate: BitRate,
    /// Transmission time of the most recent size. Packets have few sizes, and a division costs as much as the
    /// rest of the link's work.
    last: (Bytes, Duration),
    line: Line<()>,
}

impl WiredLink {
    /// An idle link.
    pub fn new(rate: BitRate, delay: Duration, limit: QueueLimit) -> WiredLink {
        WiredLink { rate, last: (Bytes::ZERO, Duration::ZERO), line: Line::new(delay, limit) }
    }

    /// Packets that have not arrived.
    pub(crate) fn held(&self) -> usize {
        self.line.len()
    }

    fn time_for(&mut self, size: Bytes) -> Duration {
        if self.last.0 != size {
            self.last = (size, self.rate.time_for(size));
        }
        self.last.1
    }
}

impl Component for WiredLink {
    fn receive(&mut self, now: Time, packet: Packet, _port: Port, out: &mut Out) {
        match self.line.admit(now, packet.size) {
            Some(start) => {
                let end = start + self.time_for(packet.size);
                self.line.take(now, packet, start, end, ());
            }
            None => out.drop(packet, DropReason::QueueFull),
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.line.hand_over(now, |packet, ()| out.send(Port::ONLY, *packet));
    }

    fn next_wakeup(&self) -> Time {
        self.line.next_arrival()
    }
}
