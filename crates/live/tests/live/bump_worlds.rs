//! Many connections over one bump in virtual time, beside a model of what each end must see.
//!
//! ```text
//! fixed hosts ── wire: loses few ── bump ── radio: loses, duplicates, delays, damages, is cut ── mobile hosts
//! ```
//!
//! The model: whatever agents do, an end reads what the other one has written, byte for byte and in order, and an end after all of
//! it; a refusal is a refusal, and a reset a reset; a segment that leaves the bump has the payload that its host gave to these
//! sequence numbers, unless the radio has damaged it. The bump may die and come back at any time. A world counts only together with
//! the others: each named event must have happened.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lasthop_base::{Duration, Stream, Streams, Time};
use lasthop_endpoint::{Config, End, Endpoint, Incoming, KeepAlive, Secret, StateName, refuse};
use lasthop_live::bump::{Admission, Admitted, Bump, Direction, FirstPacket, RadioFlow};
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Flags, Profile, SeqNum, Settings};
use lasthop_wire::{Checksum, IpPacket};

use super::bump::{ETHERNET, HOST, RADIO, agent_of};

const SCHEMES: [&str; 3] = ["snoop", "wtcp-timestamps", "eln"];

/// What agents of each scheme must have done.
const AGENTS: [&str; 4] =
    ["snoop.local_retransmissions", "wtcp-timestamps.local_retransmissions", "eln.holes", "eln.marked_acks"];

/// The hosts of a connection; also the sides of the bump.
const FIXED: usize = 0;
const MOBILE: usize = 1;

fn address(side: usize, port: u16) -> SocketAddr {
    ([10, 0, 0, side as u8 + 1], port).into()
}

fn byte(key: u64, at: u64) -> u8 {
    ((at ^ key << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// One end of a connection.
struct Host {
    endpoint: Endpoint,
    key: u64,
    to_send: u64,
    written: u64,
    read: u64,
    /// Whether it ends its direction when all is written.
    ends: bool,
    has_aborted: bool,
    /// The sequence number of its SYN.
    opened_by: Option<SeqNum>,
}

struct Talk {
    hosts: [Option<Host>; 2],
    is_over: bool,
}

/// Flows that may have agents, by the number that opens them.
#[derive(Default)]
struct Admitting {
    schemes: Schemes,
    offered: BTreeMap<u32, (&'static str, Option<u8>)>,
    dismissed: u64,
}

impl Admission for Admitting {
    fn admit(&mut self, packet: &FirstPacket) -> Option<Admitted> {
        let (scheme, scale) = *self.offered.get(&packet.opened_by.0)?;
        let [source, destination] = packet.ends;
        let source_is_mobile = source.ip() == address(MOBILE, 0).ip();
        let flow = match source_is_mobile {
            true => RadioFlow { mobile: source, fixed: destination },
            false => RadioFlow { mobile: destination, fixed: source },
        };
        let agents = vec![agent_of(&self.schemes, scheme)];
        let mobile_opens = source_is_mobile == packet.is_opening;
        Some(Admitted { flow, scheme, agents, mobile_opens, scale })
    }

    fn settle(&mut self, opened_by: SeqNum) {
        self.offered.remove(&opened_by.0);
    }

    fn dismiss(&mut self, flows: &[RadioFlow]) {
        self.dismissed += flows.len() as u64;
    }
}

/// What happens on the radio, or on the wire.
#[derive(Clone, Copy)]
struct Path {
    loss: f64,
    duplicates: f64,
    damage: f64,
    jitter: Duration,
    is_cut: bool,
}

const CLEAN: Path = Path { loss: 0.0, duplicates: 0.0, damage: 0.0, jitter: Duration::ZERO, is_cut: false };

/// Where a packet arrives.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The bump, from this side.
    Bump(usize),
    Host(usize),
}

struct World {
    now: Time,
    draw: Stream,
    /// Without one, packets pass.
    bump: Option<Bump>,
    admitting: Admitting,
    /// The wire, and the radio.
    paths: [Path; 2],
    talks: BTreeMap<u16, Talk>,
    under_way: BTreeMap<(Time, u64), (Place, Vec<u8>)>,
    number: u64,
    maintain_at: Time,
    events: BTreeMap<&'static str, u64>,
}

impl World {
    fn new(draw: Stream) -> World {
        let mut admitting = Admitting::default();
        admitting.schemes.eln.holes = true;
        World {
            now: Time::ZERO,
            draw,
            bump: Some(Bump::new(RADIO)),
            admitting,
            paths: [CLEAN; 2],
            talks: BTreeMap::new(),
            under_way: BTreeMap::new(),
            number: 0,
            maintain_at: Time::ZERO,
            events: BTreeMap::new(),
        }
    }

    fn count(&mut self, event: &'static str, times: u64) {
        *self.events.entry(event).or_default() += times;
    }

    fn open(&mut self) {
        let port = 1000 + self.draw.below(12) as u16;
        match self.talks.get(&port) {
            Some(talk) if !talk.is_over => return,
            Some(_) => self.count("ports were used again", 1),
            None => {}
        }
        self.number += 1;
        let (opener, is_refused) = (self.draw.below(2) as usize, self.draw.bernoulli(0.1));
        let sizes = [0, 1]
            .map(|_| [0, 1 + self.draw.below(3000), self.draw.below(200_000)][self.draw.below(3) as usize]);
        let profile = [Profile::Linux, Profile::LinuxBbr][self.draw.below(2) as usize];
        let settings = Settings { user_timeout: Some(Duration::from_secs(924)), ..profile.settings() };
        // A reset that the radio has lost is told by the answer to a probe.
        let seconds = Duration::from_secs;
        let keep_alive = Some(KeepAlive { idle: seconds(30), interval: seconds(10), probes: 9 });
        let config = Config { settings, keep_alive, ..Config::default() };
        let hosts = [FIXED, MOBILE].map(|side| {
            let (here, there) = (address(side, port), address(1 - side, port));
            let secret = Secret::draw(&mut Streams::new(self.number, side as u64).stream("secret"));
            let endpoint = match side == opener {
                true => Endpoint::connect(self.now, config.clone(), here, there, secret),
                false if is_refused => return None,
                false => Endpoint::listen(config.clone(), here, secret),
            };
            let key = 2 * self.number + side as u64;
            let ends = self.draw.bernoulli(0.8);
            let (to_send, opened_by) = (sizes[side], None);
            Some(Host { endpoint, key, to_send, written: 0, read: 0, ends, has_aborted: false, opened_by })
        });
        self.talks.insert(port, Talk { hosts, is_over: false });
        self.act();
    }

    /// Lets all hosts write, read and send what they can.
    fn act(&mut self) {
        let mut sent = Vec::new();
        let mut found: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut see = |event: &'static str| *found.entry(event).or_default() += 1;
        for talk in self.talks.values_mut().filter(|talk| !talk.is_over) {
            for side in [FIXED, MOBILE] {
                let peer = talk.hosts[1 - side].as_ref().map(|peer| (peer.key, peer.written, peer.ends));
                let Some(host) = talk.hosts[side].as_mut() else { continue };
                let endpoint = &mut host.endpoint;
                let len = (host.to_send - host.written).min(endpoint.writable() as u64);
                let bytes: Vec<u8> =
                    (host.written..host.written + len).map(|at| byte(host.key, at)).collect();
                host.written += endpoint.send(self.now, &bytes) as u64;
                let is_waiting = matches!(endpoint.state(), StateName::Listen | StateName::SynSent);
                if host.written == host.to_send && !is_waiting && host.ends {
                    endpoint.shutdown(self.now);
                }
                let mut buffer = vec![0; endpoint.readable()];
                endpoint.read(self.now, &mut buffer);
                let (key, written, ends) = peer.unwrap_or_default();
                for got in &buffer {
                    assert_eq!(*got, byte(key, host.read), "at {} of the stream {key}", host.read);
                    host.read += 1;
                }
                assert!(host.read <= written, "more than was written");
                if endpoint.has_ended() && endpoint.end().is_none_or(|end| end == End::Closed) {
                    assert!(ends && host.read == written, "an end that the other one has not made");
                    if !host.ends && host.to_send < 1 << 20 {
                        // Its own direction goes on.
                        host.to_send += 5000;
                        host.ends = true;
                        see("half-closed");
                    }
                }
                while let Some(packet) = endpoint.poll() {
                    sent.push((side, packet.to_bytes().expect("short enough")));
                }
            }
            let [fixed, mobile] =
                talk.hosts.each_ref().map(|host| host.as_ref().map(|host| host.endpoint.end()));
            // One that listens waits for ever if the other one has given up.
            let waits = |host: &Host| host.endpoint.state() == StateName::Listen;
            let is_over = [fixed, mobile].iter().flatten().any(Option::is_some)
                && talk.hosts.iter().flatten().all(|host| host.endpoint.end().is_some() || waits(host));
            if is_over {
                talk.is_over = true;
                let aborted = talk.hosts.iter().flatten().any(|host| host.has_aborted);
                for end in [fixed, mobile].into_iter().flatten().flatten() {
                    match end {
                        End::Refused => {
                            assert!(
                                talk.hosts.iter().any(Option::is_none) || aborted,
                                "a listener that refuses"
                            );
                            see("refused");
                        }
                        End::Reset => {
                            assert!(aborted, "a reset that the other end has not sent");
                            see("reset");
                        }
                        End::Aborted => assert!(aborted),
                        End::Closed => {}
                        End::TimedOut | End::Unreachable => panic!("{end:?}"),
                    }
                }
                if [fixed, mobile] == [Some(Some(End::Closed)); 2] && !aborted {
                    let [Some(one), Some(other)] = &talk.hosts else { continue };
                    assert_eq!(
                        (one.read, other.read),
                        (other.to_send, one.to_send),
                        "all data, then the end"
                    );
                    see("closed");
                }
            }
        }
        for (event, times) in found {
            self.count(event, times);
        }
        for (side, bytes) in sent {
            self.offer(&bytes);
            self.travel(side, Place::Bump(side), bytes);
        }
    }

    /// Lets a flow have agents whose SYN a host sends.
    fn offer(&mut self, bytes: &[u8]) {
        let packet = IpPacket::parse(bytes).expect("a packet");
        let header = packet.tcp().expect("a segment").header;
        if !header.segment.flags.has(Flags::SYN) {
            return;
        }
        let side = usize::from(packet.ip.src == address(MOBILE, 0).ip());
        let Some(host) = self.talks.get_mut(&header.src_port).and_then(|talk| talk.hosts[side].as_mut())
        else {
            return;
        };
        if host.opened_by.replace(header.segment.seq).is_none() && !header.segment.flags.has(Flags::ACK) {
            let scheme = SCHEMES[self.draw.below(4).min(2) as usize];
            // Some flows have none.
            if self.draw.bernoulli(0.9) {
                self.admitting.offered.insert(header.segment.seq.0, (scheme, header.window_scale));
            }
        }
    }

    /// Sends a packet towards a place: over the radio, or by the wire.
    fn travel(&mut self, side: usize, to: Place, bytes: Vec<u8>) {
        let Path { loss, duplicates, damage, jitter, is_cut } = self.paths[side];
        for _ in 0..1 + u32::from(self.draw.bernoulli(duplicates)) {
            if is_cut || self.draw.bernoulli(loss) {
                self.count(["lost on the wire", "lost"][side], 1);
                continue;
            }
            let mut bytes = bytes.clone();
            if self.draw.bernoulli(damage) {
                let at = 20 + self.draw.below(bytes.len() as u64 - 20) as usize;
                bytes[at] ^= 1 << self.draw.below(8);
                self.count("damaged", 1);
            }
            let delay = [10, 5][side];
            let at = self.now + Duration::from_millis(delay) + self.draw.up_to(jitter);
            self.number += 1;
            self.under_way.insert((at, self.number), (to, bytes));
        }
    }

    fn arrive(&mut self, place: Place, bytes: Vec<u8>) {
        match place {
            Place::Host(side) => self.deliver(side, &bytes),
            Place::Bump(side) => {
                let ends = if side == FIXED { [HOST, RADIO] } else { [RADIO, HOST] };
                let frame = [&ends.concat()[..], &[8, 0], &bytes].concat();
                let (is_damaged, is_read) = IpPacket::parse(&bytes).map_or((true, false), |packet| {
                    (packet.transport_checksum() != Checksum::Correct, packet.tcp().is_some())
                });
                self.count("damaged before the bump", u64::from(is_damaged));
                self.pass(|bump, now, admitting, left| {
                    bump.receive(now, &frame, admitting, &mut |direction, frame| {
                        left.push((direction, frame.to_vec()))
                    });
                    let direction = if side == FIXED { Direction::ToRadio } else { Direction::FromRadio };
                    // Without a header of TCP it is nobody's.
                    let is_dropped = left.is_empty() && !is_read;
                    let passes = *left == [(direction, frame)];
                    assert!(!is_damaged || passes || is_dropped, "what is damaged passes as it is");
                });
                if self.bump.is_none() {
                    self.travel(1 - side, Place::Host(1 - side), bytes);
                }
            }
        }
    }

    /// Lets the bump do something, and checks what leaves it.
    fn pass(&mut self, action: impl FnOnce(&mut Bump, Time, &mut Admitting, &mut Vec<(Direction, Vec<u8>)>)) {
        let mut left = Vec::new();
        let Some(bump) = &mut self.bump else { return };
        action(bump, self.now, &mut self.admitting, &mut left);
        for (direction, frame) in left {
            let side = if direction == Direction::ToRadio { MOBILE } else { FIXED };
            let bytes = frame[ETHERNET..].to_vec();
            self.check(1 - side, &bytes);
            self.travel(side, Place::Host(side), bytes);
        }
    }

    /// A segment of the host at `side` has the payload that this host gave to its numbers.
    fn check(&mut self, side: usize, bytes: &[u8]) {
        let packet = IpPacket::parse(bytes).expect("a packet");
        if packet.transport_checksum() != Checksum::Correct {
            return;
        }
        let tcp = packet.tcp().expect("a segment");
        let header = &tcp.header;
        let host = self.talks.get(&header.src_port).and_then(|talk| talk.hosts[side].as_ref());
        let Some((host, opened_by)) = host.and_then(|host| Some((host, host.opened_by?))) else { return };
        let at = (header.segment.seq.0.wrapping_sub(opened_by.0)).wrapping_sub(1);
        for (number, got) in (0..).zip(tcp.payload) {
            let at = u64::from(at) + number;
            // Keep-alives and probes repeat a byte before the first.
            if at < host.to_send {
                assert_eq!(*got, byte(host.key, at), "agents changed the payload at {at}");
            }
        }
    }

    fn deliver(&mut self, side: usize, bytes: &[u8]) {
        let Ok(packet) = IpPacket::parse(bytes) else { return };
        if packet.transport_checksum() != Checksum::Correct {
            return;
        }
        let Some(segment) = Incoming::of(&packet) else { return };
        let port = segment.header.dst_port;
        let talk = self.talks.get_mut(&port).filter(|talk| !talk.is_over);
        let found =
            talk.and_then(|talk| talk.hosts[side].as_mut()).filter(|host| host.endpoint.is_for(&segment));
        match found {
            Some(host) => host.endpoint.receive(self.now, &segment),
            None => {
                if let Some(reset) = refuse(&segment) {
                    let bytes = reset.to_bytes().expect("short enough");
                    self.travel(side, Place::Bump(side), bytes);
                }
            }
        }
    }

    /// Goes on to `until`.
    fn run(&mut self, until: Time) {
        loop {
            self.act();
            let arrival = self.under_way.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
            let live = self.talks.values().filter(|talk| !talk.is_over);
            let hosts = live.flat_map(|talk| talk.hosts.iter().flatten());
            let wakes = hosts.map(|host| host.endpoint.next_wakeup()).fold(Time::NEVER, Time::min);
            let bump = self.bump.as_ref().map_or(Time::NEVER, Bump::next_wakeup);
            let next = arrival.min(wakes).min(bump).min(self.maintain_at);
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            let now = self.now;
            if next == arrival {
                let (_, (place, bytes)) = self.under_way.pop_first().expect("an arrival");
                self.arrive(place, bytes);
            }
            for host in self.talks.values_mut().flat_map(|talk| talk.hosts.iter_mut().flatten()) {
                if host.endpoint.next_wakeup() <= now {
                    host.endpoint.wake(now);
                }
            }
            if bump <= now {
                self.pass(|bump, now, _, left| {
                    bump.wake(now, &mut |direction, frame| left.push((direction, frame.to_vec())));
                });
            }
            if self.maintain_at <= now {
                self.maintain_at = now + Duration::from_secs(1);
                self.pass(|bump, now, admitting, _| bump.maintain(now, admitting));
            }
        }
    }

    /// The bump dies, and its counters with it, or comes back without any flow.
    fn toggle(&mut self) {
        match self.bump.take() {
            Some(bump) => self.end(&bump),
            None => self.bump = Some(Bump::new(RADIO)),
        }
    }

    fn end(&mut self, bump: &Bump) {
        let counters = bump.counters();
        self.count("died with flows", u64::from(counters.flows > 0));
        self.count("strays", counters.strays);
        self.count("suppressed", counters.suppressed);
        self.count("passed", counters.passed);
        for name in AGENTS {
            self.count(name, counters.schemes.get(name).copied().unwrap_or(0));
        }
    }

    fn step(&mut self) {
        match self.draw.below(60) {
            0..=19 => self.open(),
            20..=29 => {
                // A loss before the bump is none that its agents may repair or mark.
                self.paths[FIXED].loss = [0.0, 0.01][self.draw.below(2) as usize];
                self.paths[MOBILE] = Path {
                    loss: [0.0, 0.02, 0.2][self.draw.below(3) as usize],
                    duplicates: [0.0, 0.1][self.draw.below(2) as usize],
                    damage: [0.0, 0.05][self.draw.below(2) as usize],
                    jitter: Duration::from_millis([0, 3, 40][self.draw.below(3) as usize]),
                    is_cut: self.draw.bernoulli(0.1),
                };
            }
            30..=32 => self.toggle(),
            33..=37 => {
                let ports: Vec<u16> = self.talks.keys().copied().collect();
                let chosen = self.draw.below(ports.len().max(1) as u64) as usize;
                let (now, side) = (self.now, self.draw.below(2) as usize);
                let talk =
                    ports.get(chosen).and_then(|port| self.talks.get_mut(port)).filter(|talk| !talk.is_over);
                if let Some(host) = talk.and_then(|talk| talk.hosts[side].as_mut())
                    && host.endpoint.end().is_none()
                    && host.endpoint.remote().is_some()
                {
                    host.has_aborted = true;
                    host.endpoint.abort(now);
                }
            }
            38 => {
                // Ports become free: TIME-WAIT takes a minute.
                self.paths[MOBILE].is_cut = false;
                let until = self.now + Duration::from_secs(100);
                self.run(until);
            }
            _ => {}
        }
        let until = self.now + self.draw.up_to(Duration::from_millis(400));
        self.run(until);
    }
}

#[test]
fn each_end_sees_what_the_other_one_does() {
    let worlds = std::env::var("LASTHOP_BUMP_WORLDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let mut events: BTreeMap<&'static str, u64> = BTreeMap::new();
    for number in 0..worlds {
        let mut world = World::new(Streams::new(37, number).stream("world"));
        (0..300).for_each(|_| world.step());
        // On a clean path, without a bump or with one, everything comes to its end.
        world.paths = [CLEAN; 2];
        for host in world.talks.values_mut().flat_map(|talk| talk.hosts.iter_mut().flatten()) {
            host.ends = true;
        }
        let until = world.now + Duration::from_secs(400);
        world.run(until);
        for (port, talk) in &world.talks {
            let states = talk.hosts.each_ref().map(|host| host.as_ref().map(|host| host.endpoint.state()));
            assert!(talk.is_over, "world {number}: port {port}: {states:?}");
        }
        if world.bump.is_none() {
            world.toggle();
        }
        let bump = world.bump.take().expect("a bump");
        assert_eq!((bump.flows().count(), bump.memory()), (0, 0), "world {number}");
        world.end(&bump);
        let dismissed = world.admitting.dismissed;
        world.count("dismissed", dismissed);
        for (event, times) in world.events {
            *events.entry(event).or_default() += times;
        }
    }
    println!("{events:?}");
    for event in [
        "closed",
        "damaged",
        "damaged before the bump",
        "died with flows",
        "dismissed",
        "half-closed",
        "lost",
        "lost on the wire",
        "passed",
        "ports were used again",
        "refused",
        "reset",
        "strays",
        "suppressed",
    ]
    .into_iter()
    .chain(AGENTS)
    {
        assert!(events.get(event).is_some_and(|times| *times >= worlds), "{event}: {events:?}");
    }
}
