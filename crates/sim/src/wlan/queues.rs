//! What waits for a MAC.

use std::collections::VecDeque;

use lasthop_base::Bytes;
use lasthop_proto::Packet;

use super::config::ApQueue;
use crate::line::QueueLimit;

/// Packets in line, each with its receiver.
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

/// The packets that wait at one place.
pub(super) struct Queues {
    fifos: Vec<Fifo>,
    /// The queue whose turn is next.
    turn: usize,
}

impl Queues {
    /// One queue.
    pub(super) fn one(limit: QueueLimit) -> Queues {
        Queues { fifos: vec![Fifo::new(limit)], turn: 0 }
    }

    /// An access point's.
    pub(super) fn of_ap(queue: ApQueue, stations: usize) -> Queues {
        match queue {
            ApQueue::Shared(limit) => Queues::one(limit),
            ApQueue::PerStation(limit) => {
                Queues { fifos: (0..stations).map(|_| Fifo::new(limit)).collect(), turn: 0 }
            }
        }
    }

    /// The queue of `to`, counted from 1 as receivers are.
    fn queue_of(&self, to: usize) -> usize {
        if self.fifos.len() == 1 { 0 } else { to - 1 }
    }

    /// Takes a packet, if there is room for it.
    pub(super) fn push(&mut self, packet: Packet, to: usize) -> bool {
        let queue = self.queue_of(to);
        self.fifos[queue].push(packet, to)
    }

    /// A packet is served that did not have to wait: this was its queue's turn.
    pub(super) fn pass(&mut self, to: usize) {
        self.turn = self.queue_of(to) + 1;
    }

    /// The next packet and its receiver, if one waits.
    pub(super) fn pop(&mut self) -> Option<(Packet, usize)> {
        let (before, after) = (0..self.turn, self.turn..self.fifos.len());
        let queue = after.chain(before).find(|&queue| !self.fifos[queue].packets.is_empty())?;
        self.turn = queue + 1;
        self.fifos[queue].pop()
    }

    /// How many packets wait, and their bytes.
    pub(super) fn waiting(&self) -> (usize, Bytes) {
        let packets = self.fifos.iter().map(|fifo| fifo.packets.len()).sum();
        (packets, self.fifos.iter().map(|fifo| fifo.bytes).sum())
    }
}
