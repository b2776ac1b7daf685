//! Two endpoints and a network between them that loses, duplicates, reorders and changes packets.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lasthop_base::{Duration, Stream, Streams, Time};
use lasthop_endpoint::{Config, Endpoint, Incoming, Outgoing, Secret, StateName};
use lasthop_proto::Ecn;
use lasthop_proto::tcp::{Flags, SackBlock, SeqNum, Timestamps};

/// The faults of a network, as probabilities for each packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Network {
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    /// Mean of an additional delay.
    pub(crate) jitter: Duration,
    pub(crate) marking: f64,
    /// Changes a field of a packet, and its checksums accordingly.
    pub(crate) mutation: f64,
    /// Adds a segment with random fields between the same addresses, once both ends are synchronised: a blind attacker.
    pub(crate) forgery: f64,
}

/// One end with its application.
pub(crate) struct Side {
    pub(crate) endpoint: Endpoint,
    /// Byte `i` of the stream is a function of this and `i`.
    key: u64,
    pub(crate) to_send: u64,
    written: u64,
    pub(crate) read: u64,
    /// Largest read at a time, and the longest pause between two reads.
    appetite: u64,
    pause: Duration,
    next_read: Time,
    pub(crate) closes_first: bool,
    /// Whether what was read is what the other side wrote.
    pub(crate) is_intact: bool,
}

fn byte(key: u64, index: u64) -> u8 {
    ((key ^ index).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Side {
    pub(crate) fn new(endpoint: Endpoint, key: u64, to_send: u64, random: &mut Stream) -> Side {
        let appetite = 1 << (4 + random.below(14));
        let pause =
            if random.bernoulli(0.3) { Duration::from_millis(random.below(700)) } else { Duration::ZERO };
        Side {
            endpoint,
            key,
            to_send,
            written: 0,
            read: 0,
            appetite,
            pause,
            next_read: Time::ZERO,
            closes_first: random.bernoulli(0.7),
            is_intact: true,
        }
    }

    /// Makes the application read everything immediately.
    pub(crate) fn reads_at_once(&mut self) {
        (self.appetite, self.pause) = (1 << 16, Duration::ZERO);
    }

    /// Lets the application pause until `time`.
    pub(crate) fn stop_reading_until(&mut self, time: Time) {
        self.next_read = time;
    }

    /// Writes what there is room for, and closes after the last byte, or once the peer has.
    pub(crate) fn write(&mut self, now: Time) {
        let len = (self.to_send - self.written).min(self.endpoint.writable() as u64);
        let bytes: Vec<u8> = (self.written..self.written + len).map(|index| byte(self.key, index)).collect();
        assert_eq!(self.endpoint.send(now, &bytes), bytes.len());
        self.written += len;
        let is_waiting = matches!(self.endpoint.state(), StateName::Listen | StateName::SynSent);
        if !is_waiting && self.written == self.to_send && (self.closes_first || self.endpoint.has_ended()) {
            self.endpoint.shutdown(now);
        }
    }

    pub(crate) fn read(&mut self, now: Time, peer_key: u64, random: &mut Stream) {
        if now < self.next_read {
            return;
        }
        let mut buffer = vec![0; 1 + random.below(self.appetite) as usize];
        let len = self.endpoint.read(now, &mut buffer);
        for got in &buffer[..len] {
            self.is_intact &= *got == byte(peer_key, self.read);
            self.read += 1;
        }
        self.next_read = now + random.up_to(self.pause);
    }

    /// When the application wants to go on.
    pub(crate) fn next(&self, now: Time) -> Time {
        if self.endpoint.readable() > 0 {
            self.next_read.max(now + Duration::from_micros(1))
        } else {
            Time::NEVER
        }
    }
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) sides: [Side; 2],
    network: Network,
    delay: Duration,
    random: Stream,
    in_flight: BTreeMap<(Time, u64), (usize, Outgoing)>,
    pub(crate) packets: u64,
}

pub(crate) fn address(host: u8, is_v4: bool) -> SocketAddr {
    let text = if is_v4 { format!("10.0.0.{host}:500{host}") } else { format!("[fd00::{host}]:500{host}") };
    text.parse().expect("an address")
}

pub(crate) fn secret(seed: u64) -> Secret {
    Secret::draw(&mut Streams::new(seed, 0).stream("secret"))
}

impl World {
    /// The endpoints of `configs` between two addresses; the second listens, unless both `open`.
    pub(crate) fn new(
        seed: u64,
        configs: [Config; 2],
        sizes: [u64; 2],
        network: Network,
        both_open: bool,
    ) -> World {
        let mut random = Streams::new(seed, 0).stream("world");
        let is_v4 = random.bernoulli(0.5);
        let [a, b] = [address(1, is_v4), address(2, is_v4)];
        let [of_a, of_b] = configs;
        let first = Endpoint::connect(Time::ZERO, of_a, a, b, secret(seed));
        let second = if both_open {
            Endpoint::connect(Time::ZERO, of_b, b, a, secret(seed + 1))
        } else {
            Endpoint::listen(of_b, b, secret(seed + 1))
        };
        let sides = [
            Side::new(first, 2 * seed, sizes[0], &mut random),
            Side::new(second, 2 * seed + 1, sizes[1], &mut random),
        ];
        // Somebody must close first.
        let delay = Duration::from_micros(100 + random.below(100_000));
        let mut world =
            World { now: Time::ZERO, sides, network, delay, random, in_flight: BTreeMap::new(), packets: 0 };
        let waits = world.sides.iter().all(|side| !side.closes_first);
        world.sides[0].closes_first |= waits;
        world
    }

    /// Runs until nothing is left to do, for at most `limit` packets; returns whether that was enough.
    pub(crate) fn run(&mut self, limit: u64) -> bool {
        while self.packets < limit {
            self.let_applications_act();
            self.carry();
            let next = self.next();
            if next == Time::NEVER {
                return true;
            }
            assert!(next >= self.now);
            self.now = next;
            self.deliver();
            for side in &mut self.sides {
                side.endpoint.wake(self.now);
                assert!(side.endpoint.next_wakeup() > self.now, "{:?}", side.endpoint);
            }
        }
        false
    }

    fn next(&self) -> Time {
        let arrival = self.in_flight.keys().next().map_or(Time::NEVER, |&(at, _)| at);
        let ends = self.sides.iter().map(|side| side.endpoint.next_wakeup().min(side.next(self.now)));
        ends.fold(arrival, Time::min)
    }

    fn let_applications_act(&mut self) {
        let keys = [self.sides[1].key, self.sides[0].key];
        for (side, key) in self.sides.iter_mut().zip(keys) {
            side.write(self.now);
            side.read(self.now, key, &mut self.random);
        }
    }

    fn carry(&mut self) {
        for from in 0..2 {
            while let Some(packet) = self.sides[from].endpoint.poll() {
                self.packets += 1;
                assert_eq!(packet.header.segment.len as usize, packet.payload.len());
                assert!(packet.to_bytes().is_ok());
                let network = self.network;
                // Simultaneous open lets anybody answer a SYN.
                let is_open = self.sides.iter().all(|side| side.endpoint.sender().is_some());
                if is_open && self.random.bernoulli(network.forgery) {
                    let forged = forge(&packet, &mut self.random);
                    self.put(1 - from, forged);
                }
                if self.random.bernoulli(network.loss) {
                    continue;
                }
                if self.random.bernoulli(network.duplication) {
                    self.put(1 - from, packet.clone());
                }
                self.put(1 - from, packet);
            }
        }
    }

    fn put(&mut self, to: usize, mut packet: Outgoing) {
        if packet.ecn.is_capable() && self.random.bernoulli(self.network.marking) {
            packet.ecn = Ecn::Ce;
        }
        if self.random.bernoulli(self.network.mutation) {
            mutate(&mut packet, &mut self.random);
        }
        let jitter = if self.network.jitter.is_zero() {
            Duration::ZERO
        } else {
            self.random.exponential(self.network.jitter)
        };
        let number = self.packets * 4 + self.in_flight.len() as u64 % 4;
        let mut key = (self.now + self.delay + jitter, number);
        while self.in_flight.contains_key(&key) {
            key.1 += 1;
        }
        self.in_flight.insert(key, (to, packet));
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.in_flight.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, packet) = entry.remove();
            self.sides[to].endpoint.receive(self.now, &Incoming::from(&packet));
        }
    }
}

/// A segment of a blind attacker, who knows the addresses only.
fn forge(packet: &Outgoing, random: &mut Stream) -> Outgoing {
    let mut forged = packet.clone();
    let segment = &mut forged.header.segment;
    let mut word = || random.below(1 << 32) as u32;
    (segment.seq, segment.ack) = (SeqNum(word()), SeqNum(word()));
    segment.timestamps = segment.timestamps.map(|_| Timestamps { value: word(), echo: word() });
    let flags = [
        Flags::RST,
        Flags::RST | Flags::ACK,
        Flags::SYN,
        Flags::ACK,
        Flags::SYN | Flags::ACK,
        Flags::FIN | Flags::ACK,
    ];
    segment.flags = flags[random.below(flags.len() as u64) as usize];
    forged
}

/// Changes one field, by little or much.
pub(crate) fn mutate(packet: &mut Outgoing, random: &mut Stream) {
    let near = |value: u32, random: &mut Stream| match random.below(4) {
        0 => value ^ 1 << random.below(32),
        1 => value.wrapping_add(random.below(3000) as u32),
        2 => value.wrapping_sub(random.below(3000) as u32),
        _ => random.below(1 << 32) as u32,
    };
    let segment = &mut packet.header.segment;
    match random.below(9) {
        0 => segment.seq = SeqNum(near(segment.seq.0, random)),
        1 => segment.ack = SeqNum(near(segment.ack.0, random)),
        2 => segment.wnd = near(segment.wnd, random) & 0xffff,
        3 => segment.flags.0 ^= 1 << random.below(8),
        4 => {
            let (value, echo) = segment.timestamps.map_or((0, 0), |stamps| (stamps.value, stamps.echo));
            segment.timestamps = match random.below(3) {
                0 => None,
                1 => Some(Timestamps { value: near(value, random), echo }),
                _ => Some(Timestamps { value, echo: near(echo, random) }),
            };
        }
        5 => {
            let start = SeqNum(near(segment.ack.0, random));
            segment.sack.push(SackBlock { start, end: SeqNum(near(start.0, random)) });
        }
        6 => packet.payload.truncate(random.below(packet.payload.len() as u64 + 1) as usize),
        7 => packet.header.mss = Some(random.below(1 << 16) as u16),
        _ => packet.header.window_scale = Some(random.below(15) as u8),
    }
}
