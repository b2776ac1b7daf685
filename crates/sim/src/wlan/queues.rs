//! Queues of the MACs.

use std::collections::VecDeque;

use lasthop_base::Bytes;
use lasthop_proto::{Dscp, Packet};

use lasthop_link::queue::QueueLimit;
use lasthop_link::wlan::ApQueue;

/// A FIFO of packets with their receivers; with priority, expedited packets overtake others.
struct Fifo {
    limit: QueueLimit,
    has_priority: bool,
    packets: VecDeque<(Packet, usize)>,
    bytes: Bytes,
    /// The expedited packets, which are the first ones.
    expedited: usize,
}

impl Fifo {
    fn new(limit: QueueLimit, has_priority: bool) -> Fifo {
        Fifo { limit, has_priority, packets: VecDeque::new(), bytes: Bytes::ZERO, expedited: 0 }
    }

    fn push(&mut self, packet: Packet, to: usize) -> bool {
        let room = self.limit.admits(self.packets.len(), self.bytes, packet.size);
        if room {
            self.bytes += packet.size;
            if self.has_priority && packet.dscp == Dscp::EXPEDITED {
                self.packets.insert(self.expedited, (packet, to));
                self.expedited += 1;
            } else {
                self.packets.push_back((packet, to));
            }
        }
        room
    }

    fn pop(&mut self) -> Option<(Packet, usize)> {
        let (packet, to) = self.packets.pop_front()?;
        self.expedited = self.expedited.saturating_sub(1);
        self.bytes = self.bytes - packet.size;
        Some((packet, to))
    }
}

/// The queues of one contender.
pub(super) struct Queues {
    fifos: Vec<Fifo>,
    /// One bit per queue: whether it has packets.
    backlogged: Vec<u64>,
    /// The queue to serve next.
    turn: usize,
}

impl Queues {
    /// A single queue.
    pub(super) fn one(limit: QueueLimit, has_priority: bool) -> Queues {
        Queues { fifos: vec![Fifo::new(limit, has_priority)], backlogged: vec![0], turn: 0 }
    }

    /// The queues of an access point.
    pub(super) fn of_ap(queue: ApQueue, has_priority: bool, stations: usize) -> Queues {
        match queue {
            ApQueue::Shared(limit) => Queues::one(limit, has_priority),
            ApQueue::PerStation(limit) => Queues {
                fifos: (0..stations).map(|_| Fifo::new(limit, has_priority)).collect(),
                backlogged: vec![0; stations.div_ceil(64)],
                turn: 0,
            },
        }
    }

    /// Index of the queue for receiver `to`; receivers count from 1.
    fn queue_of(&self, to: usize) -> usize {
        if self.fifos.len() == 1 { 0 } else { to - 1 }
    }

    /// Enqueues a packet; returns false if the queue is full.
    pub(super) fn push(&mut self, packet: Packet, to: usize) -> bool {
        let queue = self.queue_of(to);
        let enqueued = self.fifos[queue].push(packet, to);
        if enqueued {
            self.backlogged[queue / 64] |= 1 << (queue % 64);
        }
        enqueued
    }

    /// A packet bypasses its empty queue; the turn passes to the next queue.
    pub(super) fn pass(&mut self, to: usize) {
        self.turn = self.queue_of(to) + 1;
    }

    /// Removes the next packet, with its receiver.
    pub(super) fn pop(&mut self) -> Option<(Packet, usize)> {
        let queue = self.next_backlogged(self.turn).or_else(|| self.next_backlogged(0))?;
        self.turn = queue + 1;
        let packet = self.fifos[queue].pop();
        if self.fifos[queue].packets.is_empty() {
            self.backlogged[queue / 64] &= !(1 << (queue % 64));
        }
        packet
    }

    /// The first queue from `from` on that has packets.
    fn next_backlogged(&self, from: usize) -> Option<usize> {
        let words = self.backlogged.iter().enumerate().skip(from / 64);
        let mut queues = words.map(|(word, &bits)| {
            // Of the first word, only the queues from `from` on.
            let bits = if word == from / 64 { bits & u64::MAX << (from % 64) } else { bits };
            (64 * word + bits.trailing_zeros() as usize, bits)
        });
        queues.find(|&(_, bits)| bits != 0).map(|(queue, _)| queue)
    }

    /// Number of queued packets, and their bytes.
    pub(super) fn waiting(&self) -> (usize, Bytes) {
        let packets = self.fifos.iter().map(|fifo| fifo.packets.len()).sum();
        (packets, self.fifos.iter().map(|fifo| fifo.bytes).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_base::{Streams, Time};
    use lasthop_proto::{Body, Datagram, Dscp, Ecn, FlowId, Handle, HostId};

    fn packet(seq: u64) -> Packet {
        let body = Body::Datagram(Datagram { seq, sent: Time::ZERO });
        Packet {
            src: HostId(0),
            dst: HostId(1),
            flow: FlowId(0),
            size: Bytes(100),
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            handle: Handle::NONE,
            body,
        }
    }

    /// Expedited packets overtake others, and not each other.
    #[test]
    fn with_priority_expedited_packets_go_first() {
        for (has_priority, order) in [(true, [2, 4, 1, 3]), (false, [1, 2, 3, 4])] {
            let mut queues = Queues::one(QueueLimit::Packets(4), has_priority);
            for seq in 1..=5 {
                let dscp = if seq % 2 == 0 { Dscp::EXPEDITED } else { Dscp::DEFAULT };
                assert_eq!(queues.push(Packet { dscp, ..packet(seq) }, 1), seq < 5);
            }
            let next = |queues: &mut Queues| match queues.pop()?.0.body {
                Body::Datagram(datagram) => Some(datagram.seq),
                _ => None,
            };
            assert_eq!([(); 4].map(|()| next(&mut queues).expect("four are queued")), order);
            assert_eq!(next(&mut queues), None);
        }
    }

    /// Beside a plain search for the next queue with packets.
    #[test]
    fn queues_are_served_round_robin() {
        let mut random = Streams::new(1, 0).stream("queues");
        for stations in [1, 2, 63, 64, 65, 130] {
            let mut queues = Queues::of_ap(ApQueue::PerStation(QueueLimit::Packets(2)), false, stations);
            let mut plain = vec![VecDeque::new(); stations];
            let mut turn = 0;
            for seq in 0..5_000 {
                let to = 1 + random.below(stations as u64) as usize;
                match random.below(8) {
                    0 => {
                        queues.pass(to);
                        turn = to;
                    }
                    1..4 => {
                        let room = plain[to - 1].len() < 2;
                        assert_eq!(queues.push(packet(seq), to), room);
                        if room {
                            plain[to - 1].push_back(seq);
                        }
                    }
                    _ => {
                        let next = (turn..stations).chain(0..turn).find(|&queue| !plain[queue].is_empty());
                        let expected = next.map(|queue| {
                            turn = queue + 1;
                            (packet(plain[queue].pop_front().expect("it has packets")), queue + 1)
                        });
                        assert_eq!(queues.pop(), expected);
                    }
                }
                assert_eq!(queues.waiting().0, plain.iter().map(VecDeque::len).sum::<usize>());
            }
        }
    }
}
