//! One direction of a wired link: a queue, a serialiser and a delay line.

use lasthop_base::{BitRate, Bytes, Duration, Time};
use lasthop_proto::{Component, Out, Packet, Port};

use crate::line::{Exit, Fate, Line, QueueLimit, Server};

/// One direction of a wired link. Packets wait in a drop-tail queue, are sent at the link rate, and arrive
/// after the propagation delay. Uses [`Port::ONLY`] for input and output.
#[derive(Clone, Debug)]
pub struct WiredLink {
    rate: BitRate,
    delay: Duration,
    /// Transmission time of the most recent size. Packets have few sizes, and a division costs as much as the
    /// rest of the link's work.
    last: (Bytes, Duration),
    server: Server,
    exit: Exit,
}

impl WiredLink {
    /// An idle link.
    pub fn new(rate: BitRate, delay: Duration, limit: QueueLimit) -> WiredLink {
        let last = (Bytes::ZERO, Duration::ZERO);
        WiredLink { rate, delay, last, server: Server::new(limit), exit: Exit::default() }
    }

    #[inline]
    fn time_for(&mut self, size: Bytes) -> Duration {
        if self.last.0 != size {
            self.last = (size, self.rate.time_for(size));
        }
        self.last.1
    }
}

impl Line for WiredLink {
    #[inline]
    fn pass(&mut self, _now: Time, at: Time, packet: &Packet) -> Fate {
        let Some(start) = self.server.admit(at, packet.size) else { return Fate::Refused };
        let end = start + self.time_for(packet.size);
        self.server.serve(at, packet.size, start, end);
        Fate::Arrives(end + self.delay)
    }

    #[inline]
    fn exit(&self) -> &Exit {
        &self.exit
    }

    #[inline]
    fn exit_mut(&mut self) -> &mut Exit {
        &mut self.exit
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
        self.exit.next()
    }
}
