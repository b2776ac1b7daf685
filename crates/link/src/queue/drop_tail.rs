//! Drop-tail as a discipline, for links that are served packet by packet.

use lasthop_base::{Bytes, Time};
use lasthop_proto::{DropReason, Out, Packet};

use super::fifo::Fifo;
use super::{Discipline, QueueStats};
use crate::queue::QueueLimit;

/// A FIFO that drops what finds it full.
#[derive(Clone, Debug)]
pub struct DropTail {
    limit: QueueLimit,
    queue: Fifo,
    stats: QueueStats,
}

impl DropTail {
    /// An empty queue.
    pub fn new(limit: QueueLimit) -> DropTail {
        DropTail { limit, queue: Fifo::default(), stats: QueueStats::default() }
    }
}

impl Discipline for DropTail {
    fn enqueue(&mut self, now: Time, packet: Packet, at_once: bool, out: &mut Out) {
        if at_once || self.limit.admits(self.queue.len(), self.queue.bytes(), packet.size) {
            self.queue.push(now, packet);
        } else {
            self.stats.overflowed += 1;
            out.drop(packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, _now: Time, _out: &mut Out) -> Option<Packet> {
        self.queue.pop().map(|(_, packet)| packet)
    }

    fn queued(&self) -> (usize, Bytes) {
        (self.queue.len(), self.queue.bytes())
    }

    fn stats(&self) -> &QueueStats {
        &self.stats
    }
}
