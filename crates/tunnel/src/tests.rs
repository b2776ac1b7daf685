//! Two ends of a tunnel in virtual time, over a path that loses, duplicates, delays and reorders, with someone on it who records
//! and repeats, changes and invents datagrams; ends start anew, fall silent and move.
//!
//! The reference is what was sent: whatever leaves an end is a packet that has entered the other one, comes once, and comes in
//! order where that is promised. A world counts only together with the others: each named event must have happened.

mod codes;
mod hellos;
mod liveness;
mod rates;
mod sizes;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use lasthop_base::{Duration, Stream, Streams, Time};
use lasthop_proto::arq::Retransmissions;
use lasthop_proto::scheme::parameters::PacketFec;
use lasthop_proto::{Dscp, Ecn};

use crate::cipher::Cipher;
use crate::message::{DATA_HEADER, Header, Message};
use crate::{Ends, Event, Exits, Group, Help, Key, Settings, Tos, Tunnel};

fn address(host: u8) -> SocketAddr {
    ([192, 0, 2, host], 9332).into()
}

fn key() -> Key {
    Key::new([7; 32])
}

fn settings(peer: Option<SocketAddr>) -> Settings {
    let fec = PacketFec { k: 4, n: 6, interleave: 2, ..PacketFec::default() };
    let loose = PacketFec { k: 8, n: 9, in_order: false, ..PacketFec::default() };
    let arq = |retransmissions, in_order| Help::Arq { retransmissions, in_order };
    Settings {
        classes: vec![
            Help::None,
            Help::Fec(fec),
            Help::Fec(loose),
            arq(Retransmissions::Unlimited, true),
            arq(Retransmissions::AtMost(1), true),
            arq(Retransmissions::Unlimited, false),
        ],
        unhelped: 0,
        peer,
        rate: None,
        sizes: 528..=1452,
        adapts: false,
        patience: Duration::from_secs(3),
    }
}

/// Classes in which packets leave in order, whatever happens.
const ORDERED: [usize; 2] = [3, 4];

/// Classes in which none is lost while both ends live.
const RELIABLE: [usize; 2] = [3, 5];

/// The outer headers of a datagram from `peer` that no queue has marked.
fn outer(peer: SocketAddr) -> (Ends, Ecn) {
    (peer.into(), Ecn::NotEct)
}

#[derive(Default)]
struct Left {
    datagrams: Vec<(SocketAddr, Vec<u8>)>,
    /// The octet of each.
    octets: Vec<Tos>,
    packets: Vec<(Vec<u8>, Ecn)>,
}

impl Exits for Left {
    fn datagram(&mut self, ends: Ends, tos: Tos, bytes: &[u8], _group: Option<Group>) {
        self.datagrams.push((ends.peer, bytes.to_vec()));
        self.octets.push(tos);
    }
    fn packet(&mut self, bytes: &[u8], outer: Ecn) {
        self.packets.push((bytes.to_vec(), outer));
    }
}

/// A path: what happens to datagrams.
#[derive(Clone, Copy)]
struct Path {
    loss: f64,
    duplicates: f64,
    /// The share of datagrams that queues mark, of those that may be.
    marks: f64,
    jitter: Duration,
    /// How much longer datagrams with the default DSCP take.
    lag: Duration,
    /// The largest datagram that it carries.
    size: usize,
    is_cut: bool,
    /// The end from which nothing arrives.
    is_mute: Option<usize>,
}

const CLEAN: Path = Path {
    loss: 0.0,
    duplicates: 0.0,
    marks: 0.0,
    jitter: Duration::ZERO,
    lag: Duration::ZERO,
    size: usize::MAX,
    is_cut: false,
    is_mute: None,
};

/// The end that gets a datagram, its outer headers, and its bytes.
type UnderWay = (usize, (Ends, Ecn), Vec<u8>);

struct World {
    now: Time,
    ends: [Tunnel; 2],
    addresses: [SocketAddr; 2],
    /// Another address at which the first end is reached.
    second: Option<SocketAddr>,
    path: Path,
    draw: Stream,
    starts: u8,
    /// Datagrams under way, by arrival.
    under_way: BTreeMap<(Time, u64), UnderWay>,
    number: u64,
    /// Datagrams that have arrived, and the share of them that is recorded.
    recorded: Vec<Vec<u8>>,
    record_share: f64,
    /// Packets that have entered each end, by class, and those that have left the other one.
    entered: [BTreeSet<(usize, u32)>; 2],
    left: [BTreeSet<(usize, u32)>; 2],
    /// The highest of each class that has left.
    highest: [BTreeMap<usize, u32>; 2],
    next: u32,
    events: BTreeMap<&'static str, u64>,
}

impl World {
    fn new(mut draw: Stream) -> World {
        let addresses = [address(1), address(2)];
        let salts = [1, 2].map(|start| [start; 16]);
        let both = draw.bernoulli(0.5).then_some(addresses[0]);
        World {
            now: Time::ZERO + Duration::from_secs(5),
            ends: [
                Tunnel::new(settings(Some(addresses[1])), key(), salts[0]),
                Tunnel::new(settings(both), key(), salts[1]),
            ],
            addresses,
            second: None,
            path: CLEAN,
            draw,
            starts: 2,
            under_way: BTreeMap::new(),
            number: 0,
            recorded: Vec::new(),
            record_share: 0.02,
            entered: Default::default(),
            left: Default::default(),
            highest: Default::default(),
            next: 0,
            events: BTreeMap::new(),
        }
    }

    fn count(&mut self, event: &'static str, times: u64) {
        *self.events.entry(event).or_default() += times;
    }

    /// Lets an end do something, and checks what leaves it.
    fn act(&mut self, end: usize, action: impl FnOnce(&mut Tunnel, Time, &mut Left)) -> usize {
        let mut left = Left::default();
        action(&mut self.ends[end], self.now, &mut left);
        for (packet, outer) in left.packets {
            let (class, id) = tag_of(&packet);
            assert!(outer == Ecn::Ce || [Ecn::NotEct, tos_of(id).ecn].contains(&outer), "{outer:?}");
            assert!(outer != Ecn::Ce || tos_of(id).ecn.is_capable(), "the mark of another");
            self.count("marked", u64::from(outer == Ecn::Ce));
            assert_eq!(packet, packet_of(class, id), "its bytes are those that entered");
            assert!(self.entered[1 - end].contains(&(class, id)), "{class} {id} was never sent");
            assert!(self.left[1 - end].insert((class, id)), "{class} {id} came twice");
            let highest = self.highest[1 - end].entry(class).or_default();
            assert!(!ORDERED.contains(&class) || *highest <= id, "{class}: {id} after {highest}");
            *highest = id.max(*highest);
        }
        let count = left.datagrams.len();
        for ((to, bytes), tos) in left.datagrams.into_iter().zip(left.octets) {
            let other = 1 - end;
            if to != self.addresses[other] && (other, Some(to)) != (0, self.second) {
                // To where the other end was, or a repeated hello came from.
                continue;
            }
            let copies = 1 + u32::from(self.draw.bernoulli(self.path.duplicates));
            for _ in 0..copies {
                let is_cut =
                    self.path.is_cut || bytes.len() > self.path.size || self.path.is_mute == Some(end);
                if !is_cut && !self.draw.bernoulli(self.path.loss) {
                    let lag = if tos.dscp == Dscp::DEFAULT { self.path.lag } else { Duration::ZERO };
                    let delay = Duration::from_millis(15) + lag + self.draw.up_to(self.path.jitter);
                    self.number += 1;
                    let is_marked = tos.ecn.is_capable() && self.draw.bernoulli(self.path.marks);
                    let ecn = if is_marked { Ecn::Ce } else { tos.ecn };
                    let entry = (other, (self.addresses[end].into(), ecn), bytes.clone());
                    self.under_way.insert((self.now + delay, self.number), entry);
                }
            }
        }
        while let Some(event) = self.ends[end].event() {
            let name = match event {
                Event::Found(_) => "found",
                Event::Silent => "silent",
                Event::Heard => "heard",
                Event::Moved(_) => "moved",
                Event::Oversized(_) => "oversized",
            };
            self.count(name, 1);
        }
        count
    }

    /// Goes on to `until`.
    fn run(&mut self, until: Time) {
        loop {
            let arrival = self.under_way.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
            let wakes = [0, 1].map(|end| self.ends[end].next_wakeup());
            let next = arrival.min(wakes[0]).min(wakes[1]);
            if next > until {
                self.now = until;
                return;
            }
            assert!(self.now <= next || next <= self.now, "time");
            self.now = self.now.max(next);
            if next == arrival {
                let (_, (end, from, mut bytes)) = self.under_way.pop_first().expect("an arrival");
                if self.draw.bernoulli(self.record_share) {
                    self.recorded.push(bytes.clone());
                }
                self.act(end, |tunnel, now, left| tunnel.receive(now, &mut bytes, from, left));
            } else {
                let end = usize::from(wakes[0] != next);
                self.act(end, |tunnel, now, left| tunnel.wake(now, left));
                assert!(self.ends[end].next_wakeup() > self.now, "it wakes and wakes");
            }
        }
    }

    fn send(&mut self, end: usize, class: usize) {
        self.next += 1;
        let (id, packet) = (self.next, packet_of(class, self.next));
        if self.ends[end].is_up() {
            self.entered[end].insert((class, id));
        }
        self.act(end, |tunnel, now, left| tunnel.send(now, class, tos_of(id), &packet, left));
    }

    /// An end dies, and starts anew.
    fn restart(&mut self, end: usize) {
        self.starts += 1;
        let before = self.ends[end].counters();
        self.note_counters(before);
        let peer = (end == 0 || self.draw.bernoulli(0.5)).then_some(self.addresses[1 - end]);
        self.ends[end] = Tunnel::new(settings(peer), key(), [self.starts; 16]);
        self.count("restart", 1);
    }

    fn note_counters(&mut self, counters: crate::Counters) {
        assert_eq!(counters.malformed, 0);
        self.count("forged", counters.forged);
        self.count("replayed", counters.replayed);
        self.count("recovered", counters.fec.recovered);
        self.count("unrecovered", counters.fec.unrecovered);
        self.count("retransmitted", counters.arq.retransmitted);
        self.count("given up", counters.arq.given_up);
    }

    /// Someone on the path sends something, who has not the key.
    fn attack(&mut self) {
        let from =
            if self.draw.bernoulli(0.5) { address(66) } else { self.addresses[self.draw.below(2) as usize] };
        let end = self.draw.below(2) as usize;
        let mut bytes = match (self.recorded.is_empty(), self.draw.below(4)) {
            (true, _) | (_, 0) => (0..self.draw.below(300)).map(|_| self.draw.below(256) as u8).collect(),
            (_, kind) => {
                let chosen = self.draw.below(self.recorded.len() as u64) as usize;
                let mut bytes = self.recorded[chosen].clone();
                match kind {
                    1 => bytes.truncate(self.draw.below(bytes.len() as u64) as usize),
                    2 => {
                        let at = self.draw.below(bytes.len() as u64) as usize;
                        bytes[at] ^= 1 << self.draw.below(8);
                    }
                    _ => self.count("repeated", 1),
                }
                bytes
            }
        };
        let (len, peer) = (bytes.len(), self.ends[end].peer());
        let is_hello = matches!(Header::parse(&bytes), Some(Header::Hello { .. }));
        let answers = self.act(end, |tunnel, now, left| {
            tunnel.receive(now, &mut bytes, outer(from), left);
            assert!(left.datagrams.iter().all(|(_, bytes)| bytes.len() <= len), "it amplifies");
            assert!(left.datagrams.is_empty() || is_hello, "only hellos are answered");
        });
        assert!(answers <= 1);
        assert_eq!(self.ends[end].peer(), peer, "it moves an end");
    }
}

fn packet_of(class: usize, id: u32) -> Vec<u8> {
    let mut packet = vec![class as u8];
    packet.extend(id.to_be_bytes());
    packet.resize(5 + (id as usize * 37) % 200, id as u8);
    packet
}

/// The octet of a packet.
fn tos_of(id: u32) -> Tos {
    let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][id as usize % 3];
    Tos { dscp: Dscp::new([0, 46][id as usize / 3 % 2]), ecn }
}

fn tag_of(packet: &[u8]) -> (usize, u32) {
    (packet[0].into(), u32::from_be_bytes(*packet[1..].first_chunk().expect("a tag")))
}

#[test]
fn whatever_leaves_has_entered_once_and_in_order() {
    let worlds = std::env::var("LASTHOP_TUNNEL_WORLDS").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    let mut events: BTreeMap<&'static str, u64> = BTreeMap::new();
    let (mut entered, mut left) = ([0.0; 6], [0.0; 6]);
    for number in 0..worlds {
        let mut world = World::new(Streams::new(23, number).stream("world"));
        for _ in 0..400 {
            let step = world.draw.up_to(Duration::from_millis(40));
            match world.draw.below(400) {
                0 => {
                    let end = world.draw.below(2) as usize;
                    world.restart(end);
                }
                1..=6 => {
                    world.path = Path {
                        loss: [0.0, 0.05, 0.3][world.draw.below(3) as usize],
                        duplicates: [0.0, 0.2][world.draw.below(2) as usize],
                        marks: [0.0, 0.1][world.draw.below(2) as usize],
                        jitter: Duration::from_millis([0, 5, 60][world.draw.below(3) as usize]),
                        lag: Duration::from_millis([0, 30][world.draw.below(2) as usize]),
                        size: [usize::MAX, 1000][world.draw.below(2) as usize],
                        is_cut: world.draw.bernoulli(0.2),
                        is_mute: world.draw.bernoulli(0.1).then_some(number as usize % 2),
                    };
                }
                7 => {
                    // The end that finds the other one moves.
                    world.addresses[0] = address(10 + world.draw.below(5) as u8);
                }
                8..=30 => world.attack(),
                _ => {
                    let (end, class) = (world.draw.below(2) as usize, world.draw.below(6) as usize);
                    (0..=world.draw.below(12)).for_each(|_| world.send(end, class));
                }
            }
            let until = world.now + if world.path.is_cut { step * 20 } else { step };
            world.run(until);
        }
        // On a clean path everything comes to rest, and what is promised arrives.
        world.path = CLEAN;
        let until = world.now + Duration::from_secs(20);
        world.run(until);
        assert!(world.ends.iter().all(Tunnel::is_up), "world {number}");
        let first = world.next;
        for _ in 0..600 {
            world.path.loss = 0.2;
            let (end, class) = (world.draw.below(2) as usize, world.draw.below(6) as usize);
            world.send(end, class);
            let until = world.now + Duration::from_millis(3);
            world.run(until);
        }
        world.path = CLEAN;
        let until = world.now + Duration::from_secs(20);
        world.run(until);
        for end in 0..2 {
            let missing: Vec<_> = world.entered[end]
                .difference(&world.left[end])
                .filter(|(class, id)| *id > first && RELIABLE.contains(class))
                .collect();
            assert!(missing.is_empty(), "world {number}, end {end}: {missing:?}");
            let counters = world.ends[end].counters();
            world.note_counters(counters);
            for (set, shares) in [(&world.entered[end], &mut entered), (&world.left[end], &mut left)] {
                set.iter().filter(|(_, id)| *id > first).for_each(|(class, _)| shares[*class] += 1.0);
            }
        }
        for (event, times) in world.events {
            *events.entry(event).or_default() += times;
        }
    }
    let arrived: Vec<f64> = left.iter().zip(entered).map(|(left, entered)| left / entered).collect();
    println!("{arrived:?} {events:?}");
    // A fifth of datagrams is lost: without help, of single packets with a copy, and of packets that are sent twice.
    for (class, expected) in [(0, 0.8), (1, 0.96), (2, 0.96), (3, 1.0), (4, 0.96), (5, 1.0)] {
        assert!((arrived[class] - expected).abs() < 0.03, "{class}: {arrived:?}");
    }
    for event in [
        "found",
        "forged",
        "given up",
        "heard",
        "marked",
        "moved",
        "recovered",
        "repeated",
        "replayed",
        "restart",
        "retransmitted",
        "silent",
        "unrecovered",
    ] {
        assert!(events.get(event).is_some_and(|times| *times >= worlds / 3), "{event}: {events:?}");
    }
}

/// A flood of invented datagrams changes nothing, and none is answered.
#[test]
fn who_has_not_the_key_is_not_answered() {
    let mut world = World::new(Streams::new(24, 0).stream("flood"));
    let until = world.now + Duration::from_secs(1);
    world.run(until);
    let other = Key::new([8; 32]);
    let mut stranger = Tunnel::new(settings(Some(address(2))), other, [99; 16]);
    let mut hello = Left::default();
    stranger.wake(world.now, &mut hello);
    let hello = hello.datagrams.remove(0).1;
    for round in 0..20_000 {
        let mut bytes = match round % 3 {
            0 => hello.clone(),
            1 => (0..world.draw.below(1500)).map(|_| world.draw.below(256) as u8).collect(),
            _ => {
                let mut bytes = hello.clone();
                let at = world.draw.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << world.draw.below(8);
                bytes
            }
        };
        let mut left = Left::default();
        let now = world.now;
        world.ends[1].receive(now, &mut bytes, outer(address(66)), &mut left);
        assert!(left.datagrams.is_empty() && left.packets.is_empty());
    }
    assert_eq!(world.ends[1].counters().forged, 20_000);
    assert_eq!((world.ends[1].is_up(), world.ends[1].peer()), (true, Some(address(1))));
}

/// All that an end has ever received is refused, also what is fresh: after the other end has started anew, and after a start that
/// was succeeded has come back, as of two hosts with one key.
#[test]
fn what_was_received_is_refused_for_good() {
    let mut world = World::new(Streams::new(28, 0).stream("starts"));
    world.record_share = 1.0;
    let talk = |world: &mut World, seconds: u64| {
        (0..20).for_each(|_| world.send(0, 0));
        let until = world.now + Duration::from_secs(seconds);
        world.run(until);
        assert!(world.ends.iter().all(Tunnel::is_up));
    };
    let until = world.now + Duration::from_secs(1);
    world.run(until);
    talk(&mut world, 1);
    let first =
        std::mem::replace(&mut world.ends[0], Tunnel::new(settings(Some(address(2))), key(), [70; 16]));
    let until = world.now + Duration::from_secs(1);
    world.run(until);
    talk(&mut world, 1);
    let repeat = |world: &mut World| {
        let (before, now) = (world.ends[1].counters(), world.now);
        for mut bytes in world.recorded.clone() {
            world.act(1, |tunnel, _, left| tunnel.receive(now, &mut bytes, outer(address(66)), left));
        }
        let after = world.ends[1].counters();
        assert_eq!((after.left, world.ends[1].peer()), (before.left, Some(address(1))));
        assert!(after.replayed > before.replayed + 20, "{after:?}");
    };
    repeat(&mut world);
    talk(&mut world, 40);
    // The first start lives on, and is found again.
    world.ends[0] = first;
    let until = world.now + Duration::from_secs(10);
    world.run(until);
    talk(&mut world, 1);
    repeat(&mut world);
    assert_eq!(world.left[0].len(), 80);
}

/// What is authentic may still be nonsense, from a later version or a broken one: it never panics.
#[test]
fn authentic_nonsense_is_counted() {
    let inputs =
        std::env::var("LASTHOP_FUZZ_INPUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(30_000u64);
    let mut draw = Streams::new(26, 0).stream("nonsense");
    let session_of = |classes: &Settings| {
        let mut world = World::new(Streams::new(27, 0).stream("session"));
        world.ends[0] = Tunnel::new(classes.clone(), key(), [60; 16]);
        let until = world.now + Duration::from_secs(1);
        world.run(until);
        world
    };
    let mut world = session_of(&settings(Some(address(2))));
    let sealing = Cipher::of_data(&key(), &[60; 16], &[2; 16]);
    for input in 0..inputs {
        if input % 2000 == 0 {
            world = session_of(&settings(Some(address(2))));
        }
        let mut body: Vec<u8> = (0..draw.below(60)).map(|_| draw.below(256) as u8).collect();
        // Most are of a class, and have small numbers.
        if let Some(class) = body.first_mut().filter(|_| draw.bernoulli(0.9)) {
            *class = draw.below(7) as u8;
        }
        if draw.bernoulli(0.8) {
            body.iter_mut().skip(1).for_each(|byte| *byte = [0, 1, 2, 3, *byte][draw.below(5) as usize]);
            body.iter_mut().skip(1).take(1).for_each(|kind| *kind = 1 + *kind % 2);
        }
        let _ = Message::parse(&body);
        let (now, mut left, mut datagram) = (world.now, Left::default(), Vec::new());
        Header::Data { counter: 1000 + input }.write(&mut datagram);
        datagram.extend(&body);
        sealing.seal(1000 + input, &mut datagram, DATA_HEADER);
        world.ends[1].receive(now, &mut datagram, outer(address(1)), &mut left);
        world.now = now + draw.up_to(Duration::from_millis(20));
        let now = world.now;
        if world.ends[1].next_wakeup() <= now {
            world.ends[1].wake(now, &mut left);
        }
    }
    assert!(world.ends[1].counters().malformed > 100);
}
