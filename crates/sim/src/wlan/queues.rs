//! Queues of the MACs.

use std::collections::VecDeque;

use lasthop_base::Bytes;
use lasthop_proto::Packet;

use super::config::ApQueue;
use crate::line::QueueLimit;

/// A FIFO of packets with their receivers.
struct Fifo {
    limit: QueueLimit,
    packets: VecDeque<(Packet, usize)>,
    bytes: Bytes,
}

impl Fifo {
    fn new(limit: QueueLimit) -> Fifo {
        Fifo { limit, packets: VecDeque::new(), bytes: Bytes::ZERO }
    }

    fn push(&mut self, packet: Packet, to: usize) -> bool {
        let room = self.limit.admits(self.packets.len(), self.bytes, packet.size);
        if room {
            self.bytes += packet.size;
            self.packets.push_back((packet, to));
        }
        room
    }

    fn pop(&mut self) -> Option<(Packet, usize)> {
        let (packet, to) = self.packets.pop_front()?;
        self.bytes = self.bytes - packet.size;
        Some((packet, to))
    }
}

/// The queues of one contender.
pub(super) struct Queues {
    fifos: Vec<Fifo>,
    /// The queue to serve next.
    turn: usize,
}

impl Queues {
    /// A single queue.
    pub(super) fn one(limit: QueueLimit) -> Queues {
        Queues { fifos: vec![Fifo::new(limit)], turn: 0 }
    }

    /// The queues of an access point.
    pub(super) fn of_ap(queue: ApQueue, stations: usize) -> Queues {
        match queue {
            ApQueue::Shared(limit) => Queues::one(limit),
            ApQueue::PerStation(limit) => {
                Queues { fifos: (0..stations).map(|_| Fifo::new(limit)).collect(), turn: 0 }
            }
        }
    }

    /// Index of the queue for receiver `to`; receivers count from 1.
    fn queue_of(&self, to: usize) -> usize {
        if self.fifos.len() == 1 { 0 } else { to - 1 }
    }

    /// Enqueues a packet; returns false if the queue is full.
    pub(super) fn push(&mut self, packet: Packet, to: usize) -> bool {
        let queue = self.queue_of(to);
        self.fifos[queue].push(packet, to)
    }

    /// A packet bypasses its empty queue; the turn passes to the next queue.
    pub(super) fn pass(&mut self, to: usize) {
        self.turn = self.queue_of(to) + 1;
    }

    /// Removes the next packet, with its receiver.
    pub(super) fn pop(&mut self) -> Option<(Packet, usize)> {
        let (before, after) = (0..self.turn, self.turn..self.fifos.len());
        let queue = after.chain(before).find(|&queue| !self.fifos[queue].packets.is_empty())?;
        self.turn = queue + 1;
        self.fifos[queue].pop()
    }

    /// Number of queued packets, and their bytes.
    pub(super) fn waiting(&self) -> (usize, Bytes) {
        let packets = self.fifos.iter().map(|fifo| fifo.packets.len()).sum();
        (packets, self.fifos.iter().map(|fifo| fifo.bytes).sum())
    }
}
