//! A path that reorders and duplicates packets.

use std::collections::BTreeMap;

use lasthop_base::{Duration, Stream, Time};
use lasthop_proto::{Component, Out, Packet, Port};

/// Delays some packets, so that later ones overtake them, and delivers some twice.
#[derive(Debug)]
pub struct Reorder {
    /// The probability that a packet is delayed.
    pub late: f64,
    /// The probability that a copy follows.
    pub twice: f64,
    /// The longest delay, of packets and copies.
    pub most: Duration,
    random: Stream,
    /// Packets that are held, by when they leave and which came first.
    held: BTreeMap<(Time, u64), Packet>,
    count: u64,
}

impl Reorder {
    /// A path with no packet in it.
    pub fn new(late: f64, twice: f64, most: Duration, random: Stream) -> Reorder {
        Reorder { late, twice, most, random, held: BTreeMap::new(), count: 0 }
    }

    fn hold(&mut self, now: Time, packet: Packet) {
        let leaves = now + Duration::from_nanos(1) + self.random.up_to(self.most);
        self.held.insert((leaves, self.count), packet);
        self.count += 1;
    }
}

impl Component for Reorder {
    fn receive(&mut self, now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        if self.random.bernoulli(self.twice) {
            self.hold(now, *packet);
        }
        if self.random.bernoulli(self.late) {
            self.hold(now, *packet);
        } else {
            out.send(Port::ONLY, *packet);
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        while let Some(first) = self.held.first_entry().filter(|first| first.key().0 <= now) {
            out.send(Port::ONLY, first.remove());
        }
    }

    fn next_wakeup(&self) -> Time {
        self.held.first_key_value().map_or(Time::NEVER, |(key, _)| key.0)
    }
}
