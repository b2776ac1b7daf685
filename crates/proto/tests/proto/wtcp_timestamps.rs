//! WTCP of Ratnam and Matta with a full buffer: what the mobile host waits for always has room.

use std::collections::{BTreeSet, VecDeque};

use lasthop_base::{Bytes, Duration, Stream, Streams, Time};
use lasthop_proto::tcp::{Flags, Segment, SeqNum, Timestamps};
use lasthop_proto::{
    Body, Component, DropReason, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet, Port,
};
use lasthop_testing::schemes::{agent, schemes_of};

const LEN: u32 = 1_000;

/// The output of the base station: segments to the mobile host and acknowledgements to the source by number, and drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Sends(u32),
    Tells(u32),
    Drops(DropReason),
}
use Act::{Drops, Sends, Tells};

struct Station {
    agent: Box<dyn Component>,
    now: Time,
}

impl Station {
    fn with(keys: &str) -> Station {
        let schemes = schemes_of(&format!("[wtcp-timestamps]\n{keys}"));
        Station { agent: agent(&schemes, "wtcp-timestamps"), now: Time::ZERO }
    }

    fn acts(&mut self, act: impl FnOnce(&mut dyn Component, Time, &mut Out)) -> Vec<Act> {
        let mut out = Out::default();
        act(&mut *self.agent, self.now, &mut out);
        let effects = std::iter::from_fn(|| out.take()).map(|(_, effect)| match effect {
            Effect::Send(Port::RADIO, packet) => Sends(packet.segment().expect("TCP").seq.0 / LEN),
            Effect::Send(_, packet) => Tells(packet.segment().expect("TCP").ack.0 / LEN),
            Effect::Drop(_, reason) => Drops(reason),
            other => panic!("{other:?}"),
        });
        effects.collect()
    }

    fn wake(&mut self) -> Vec<Act> {
        self.acts(|agent, now, out| agent.wake(now, out))
    }

    /// Segment `number` of the source.
    fn data(&mut self, number: u32) -> Vec<Act> {
        let stamp = (self.now.since(Time::ZERO).as_nanos() / 1_000) as u32;
        let timestamps = Some(Timestamps { value: stamp, echo: 0 });
        let (seq, flags) = (SeqNum(number * LEN), Flags::ACK);
        self.receive(Port::WIRED, Segment { seq, len: LEN, flags, timestamps, ..Segment::default() })
    }

    /// An acknowledgement of the mobile host, which expects segment `number` and has room for `wnd`.
    fn ack(&mut self, number: u32, wnd: u32) -> Vec<Act> {
        let (ack, wnd) = (SeqNum(number * LEN), wnd * LEN);
        self.receive(Port::RADIO, Segment { ack, wnd, flags: Flags::ACK, ..Segment::default() })
    }

    fn receive(&mut self, port: Port, segment: Segment) -> Vec<Act> {
        let hosts = [HostId(0), HostId(1)];
        let [src, dst] = if port == Port::WIRED { hosts } else { [hosts[1], hosts[0]] };
        let (flow, size, body) = (FlowId(0), Bytes(1_052), Body::Tcp(segment));
        let (dscp, ecn, handle) = (Dscp::DEFAULT, Ecn::NotEct, Handle::NONE);
        let packet = Packet { src, dst, flow, size, dscp, ecn, handle, body };
        self.acts(|agent, now, out| agent.receive(now, &packet, port, out))
    }
}

/// The buffer is full of data above a gap: the source's repair takes the place of the latest.
#[test]
fn a_repair_has_room_in_a_full_buffer() {
    let mut station = Station::with("buffer = 2");
    station.data(0);
    assert_eq!(station.ack(1, 100), [Tells(1)]);
    // Segment 1 is lost before the base station.
    assert_eq!(station.data(2), [Sends(2)]);
    assert_eq!(station.data(3), [Sends(3)]);
    assert_eq!(station.data(4), [Drops(DropReason::QueueFull)]);
    assert_eq!(station.data(1), [Sends(1)]);
    assert_eq!(station.ack(4, 100), [Tells(4)]);
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
}

/// What leaves the buffer without having been sent is dropped.
#[test]
fn an_unsent_segment_that_yields_is_dropped() {
    let mut station = Station::with("buffer = 2");
    station.data(0);
    assert_eq!(station.ack(1, 2), [Tells(1)]);
    assert_eq!(station.data(2), [Sends(2)]);
    assert_eq!(station.data(3), [], "beyond the window");
    assert_eq!(station.data(1), [Sends(1), Drops(DropReason::QueueFull)]);
}

/// After a timeout, one segment is outstanding. If that is above a gap, the repair of the gap does not wait for it.
#[test]
fn a_repair_is_sent_though_one_segment_is_outstanding() {
    let mut station = Station::with("");
    station.data(0);
    station.ack(1, 100);
    assert_eq!(station.data(2), [Sends(2)]);
    station.now = station.agent.next_wakeup();
    assert_eq!(station.wake(), [Sends(2)]);
    assert_eq!(station.data(3), []);
    assert_eq!(station.data(1), [Sends(1)]);
}

/// A source that repairs one segment in a round trip and a mobile host, with losses on either hop at first, in milliseconds.
struct World {
    station: Station,
    draw: Stream,
    losses: [f64; 3],
    /// Segments to the base station and the mobile host, acknowledgements to the base station and the source, each with its
    /// time of arrival.
    hops: [VecDeque<(u64, u32)>; 4],
    /// What the source will send next, what is acknowledged, the duplicates since, and when it was repaired or acknowledged.
    next: u32,
    acked: u32,
    duplicates: u32,
    since: u64,
    /// What the mobile host has above the first gap, and the gap.
    above: BTreeSet<u32>,
    expected: u32,
}

const DELAYS: [u64; 4] = [10, 5, 5, 10];
const WINDOW: u32 = 30;
const ROOM: u32 = 100;

impl World {
    fn send(&mut self, hop: usize, at: u64, number: u32) {
        let loss = self.losses.get(hop).copied().unwrap_or(0.0);
        if !self.draw.bernoulli(loss) {
            self.hops[hop].push_back((at + DELAYS[hop], number));
        }
    }

    fn repair(&mut self, at: u64) {
        (self.duplicates, self.since) = (0, at);
        self.send(0, at, self.acked);
    }

    fn carry_out(&mut self, at: u64, acts: Vec<Act>) {
        for act in acts {
            match act {
                Sends(number) => self.send(1, at, number),
                Tells(number) => self.send(3, at, number),
                Drops(_) => {}
            }
        }
    }

    fn step(&mut self, at: u64) {
        self.station.now = Time::ZERO + Duration::from_millis(at);
        if self.station.agent.next_wakeup() <= self.station.now {
            let acts = self.station.wake();
            self.carry_out(at, acts);
        }
        for hop in 0..self.hops.len() {
            while let Some((_, number)) = self.hops[hop].pop_front_if(|(arrival, _)| *arrival <= at) {
                match hop {
                    0 => {
                        let acts = self.station.data(number);
                        self.carry_out(at, acts);
                    }
                    1 => {
                        self.above.extend((number >= self.expected).then_some(number));
                        while self.above.remove(&self.expected) {
                            self.expected += 1;
                        }
                        self.send(2, at, self.expected);
                    }
                    2 => {
                        let acts = self.station.ack(number, ROOM);
                        self.carry_out(at, acts);
                    }
                    _ if number > self.acked => {
                        (self.acked, self.duplicates, self.since) = (number, 0, at);
                        // Sent before, and neither there nor on its way.
                        if number < self.next && self.hops.iter().take(2).all(VecDeque::is_empty) {
                            self.repair(at);
                        }
                    }
                    _ => {
                        self.duplicates += 1;
                        if self.duplicates == 3 {
                            self.repair(at);
                        }
                    }
                }
            }
        }
        const TIMEOUT_MS: u64 = 200;
        if self.acked < self.next && at > self.since + TIMEOUT_MS {
            self.repair(at);
        }
        while self.next < self.acked + WINDOW && self.hops[0].len() < 4 {
            self.send(0, at, self.next);
            self.next += 1;
        }
    }
}

/// Whatever was lost, and however small the buffer: once the link delivers, the mobile host gets more.
#[test]
fn progress_never_stops_while_the_link_delivers() {
    const LOSSY_MS: u64 = 2_000;
    const DELIVERING_MS: u64 = 60_000;
    // The local timeout at its most, 64 times twice the last hop's longest round trip, has no longer one.
    const STALL_MS: u64 = 8_000;
    let mut stalls = 0;
    for world in 0..60 {
        let mut draw = Streams::new(44, world).stream("losses");
        let buffer = 1 + draw.below(16);
        let keys = format!("buffer = {buffer}\nmin_timeout = \"20 ms\"\ninitial = \"50 ms\"");
        let losses = [0.0; 3].map(|_| draw.uniform() * 0.3);
        let station = Station::with(&keys);
        let (hops, above) = (Default::default(), BTreeSet::new());
        let (next, acked, duplicates, since, expected) = (0, 0, 0, 0, 0);
        let mut world =
            World { station, draw, losses, hops, next, acked, duplicates, since, above, expected };
        let (mut progress, mut before) = (0, 0);
        for at in 0..LOSSY_MS + DELIVERING_MS {
            if at == LOSSY_MS {
                world.losses = [0.0; 3];
                progress = at;
            }
            world.step(at);
            if world.expected > before {
                (before, progress) = (world.expected, at);
            }
            stalls += u64::from(at == progress + 300);
            let is_over = at < LOSSY_MS || at < progress + STALL_MS;
            assert!(is_over, "buffer {buffer}, losses {losses:?}: stands at {before} since {progress} ms");
            if world.acked > 1_000 {
                break;
            }
        }
        assert!(world.acked > 300, "buffer {buffer}, losses {losses:?}: {}", world.acked);
    }
    assert!(stalls > 30, "there was something to recover from: {stalls}");
}
