//! One direction of a wired link whose rate or delay varies.

use lasthop_base::{Duration, Time};
use lasthop_link::pace::Pace;
use lasthop_link::queue::{Discipline, QueueStats};
use lasthop_link::varying::Timing;
use lasthop_proto::{Component, Out, Packet, Port, Probe};

use super::pipeline::VaryingPipeline;

/// One direction of a wired link whose rate or delay varies over time; otherwise like
/// [`ManagedLink`](crate::ManagedLink). Uses [`Port::ONLY`] for input and output.
#[allow(missing_debug_implementations)]
pub struct VaryingLink {
    pipeline: VaryingPipeline<()>,
}

impl VaryingLink {
    /// An idle link.
    pub fn new(timing: Timing, queue: Box<dyn Discipline>) -> VaryingLink {
        VaryingLink { pipeline: VaryingPipeline::new(timing, queue) }
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

fn serve(timing: &mut Timing, packet: &Packet, start: Time) -> (Time, ()) {
    (timing.transmit(start, packet.size.bits(), Duration::ZERO).end, ())
}

impl Component for VaryingLink {
    fn receive(&mut self, now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        self.pipeline.receive(now, *packet, serve, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.pipeline.advance(now, serve, out);
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
