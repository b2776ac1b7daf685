//! A path-MTU black hole: packets above a size vanish without a message.

use lasthop_base::{Bytes, Time};
use lasthop_proto::{DropReason, Out, Packet};

use super::{Discipline, QueueStats};

/// A queue that drops packets above a size before they enter.
#[allow(missing_debug_implementations)]
pub(super) struct BlackHole {
    /// The size of the largest packet that passes.
    pub(super) largest: Bytes,
    pub(super) queue: Box<dyn Discipline>,
}

impl Discipline for BlackHole {
    fn enqueue(&mut self, now: Time, packet: Packet, at_once: bool, out: &mut Out) {
        if packet.size > self.largest {
            out.drop(packet, DropReason::TooLarge);
        } else {
            self.queue.enqueue(now, packet, at_once, out);
        }
    }

    fn dequeue(&mut self, now: Time, out: &mut Out) -> Option<Packet> {
        self.queue.dequeue(now, out)
    }

    fn queued(&self) -> (usize, Bytes) {
        self.queue.queued()
    }

    fn stats(&self) -> &QueueStats {
        self.queue.stats()
    }
}
