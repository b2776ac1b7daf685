//! Hosts with a proxy between them: every byte arrives once and in order in both directions, failures reach the other
//! host, and everything is bounded.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use lasthop_base::{Bytes, Duration, Stream, Streams, Time};
use lasthop_endpoint::{Config, End, Endpoint, Incoming, Outgoing, Parts, Proxy, StateName, refuse};
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Congestion, Flags, Flavour, Profile, Segment, SeqNum, Settings};
use lasthop_proto::{Port, Reach};
use lasthop_wire::{Ip, IpPacket, TcpHeader, Transport, write};

use crate::streams::worlds;
use crate::world::{Network, Side, mutate, secret};

/// A conversation of two hosts; the first is on the wired side.
struct Conversation {
    sides: [Side; 2],
    starts: Time,
    /// Number of the side that opens the connection, until it has.
    opener: Option<usize>,
    config: Config,
}

/// The destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// The proxy, from this side.
    Proxy(Port),
    /// A host.
    Host(usize),
}

struct World {
    now: Time,
    proxy: Proxy<u16>,
    conversations: Vec<Conversation>,
    /// By side of the proxy.
    networks: [Network; 2],
    delays: [Duration; 2],
    random: Stream,
    in_flight: BTreeMap<(Time, u64), (Place, Outgoing)>,
    packets: u64,
    /// Whether the acknowledgements that hosts receive are those of the proxy.
    is_honest: bool,
    /// A digest of everything that was delivered, with times.
    digest: u64,
    buffer: u64,
    /// Whether acknowledgements wait for the other host.
    withholds: bool,
    /// Changes of the mobile host's signal. While it is lost, so is every packet on that side.
    signal: VecDeque<(Time, Reach)>,
    is_away: bool,
}

fn host(side: usize, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, side as u8 + 1], port))
}

/// A host that does not exist.
fn absent(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 99], port))
}

const SIDES: [Port; 2] = [Port::WIRED, Port::RADIO];

fn settings(random: &mut Stream) -> Settings {
    let profiles = [Profile::Linux, Profile::LinuxBbr, Profile::Freebsd, Profile::Rfc];
    let base = profiles[random.below(4) as usize].settings();
    let congestion = if random.bernoulli(0.2) { Congestion::None } else { base.congestion };
    let by_records = base.flavour == Flavour::Prr;
    let flavours = [Flavour::Reno, Flavour::NewReno, Flavour::Sack];
    Settings {
        flavour: if by_records { base.flavour } else { flavours[random.below(3) as usize] },
        packet_size: Bytes([240, 576, 1500][random.below(3) as usize]),
        window: Bytes(2_000 + random.below(1 << 18)).into(),
        timestamps: random.bernoulli(0.7),
        ecn: random.bernoulli(0.3),
        user_timeout: Some(Duration::from_secs(3600)),
        ..congestion_of(congestion, base)
    }
}

fn congestion_of(congestion: Congestion, base: Settings) -> Settings {
    Settings { congestion, ..base }
}

fn config(settings: Settings) -> Config {
    Config { settings, ..Config::default() }
}

fn parts(settings: [&Settings; 2], buffer: u64, seed: u64) -> Parts {
    Parts::new(settings, Bytes(buffer), secret(seed + 77))
}

impl World {
    fn new(seed: u64, parts: [&Settings; 2], buffer: u64, networks: [Network; 2]) -> World {
        World::with(seed, self::parts(parts, buffer, seed), buffer, networks)
    }

    /// A world with acknowledgements that wait for the other host, and the reactions of M-TCP.
    fn withholding(
        seed: u64,
        parts: [&Settings; 2],
        buffer: u64,
        networks: [Network; 2],
        hold: Duration,
    ) -> World {
        let reactions = || {
            let schemes = Schemes::default();
            let combination = schemes.combination("m-tcp").expect("a scheme");
            (combination.reactions(), combination.receiver_reactions())
        };
        let parts = self::parts(parts, buffer, seed).withholding(hold).with_reactions(Box::new(reactions));
        World { withholds: true, ..World::with(seed, parts, buffer, networks) }
    }

    fn with(seed: u64, parts: Parts, buffer: u64, networks: [Network; 2]) -> World {
        let mut random = Streams::new(seed, 0).stream("proxied");
        let delays = [0, 1].map(|_| Duration::from_micros(100 + random.below(60_000)));
        World {
            now: Time::ZERO,
            proxy: Proxy::new(parts),
            conversations: Vec::new(),
            networks,
            delays,
            random,
            in_flight: BTreeMap::new(),
            packets: 0,
            is_honest: networks.iter().all(|network| network.mutation == 0.0),
            digest: 0,
            buffer,
            withholds: false,
            signal: VecDeque::new(),
            is_away: false,
        }
    }

    /// A world between hosts and a proxy with the settings of Linux, over a perfect network.
    fn plain(seed: u64) -> World {
        let linux = Profile::Linux.settings();
        World::new(seed, [&linux, &linux], 65_536, [Network::default(); 2])
    }

    /// Adds a conversation that the host at side `opener` opens at `starts`, and the other one expects.
    fn add(
        &mut self,
        opener: usize,
        ports: [u16; 2],
        sizes: [u64; 2],
        config: Config,
        starts: Time,
    ) -> usize {
        let number = self.conversations.len() as u64;
        let of = |side: usize| Endpoint::listen(config.clone(), host(side, ports[side]), secret(number));
        let mut side =
            |side: usize| Side::new(of(side), 2 * number + side as u64, sizes[side], &mut self.random);
        let sides = [side(0), side(1)];
        self.conversations.push(Conversation { sides, starts, opener: Some(opener), config });
        self.conversations.len() - 1
    }

    /// Runs until nothing is left to do, for at most `limit` packets and until the time `until`; returns whether
    /// nothing is left.
    fn run(&mut self, limit: u64, until: Time) -> bool {
        let last = self.packets + limit;
        while self.packets < last {
            self.open();
            self.let_applications_act();
            self.carry();
            self.check();
            let next = self.next();
            if next == Time::NEVER {
                return true;
            }
            if next > until {
                self.now = until;
                return false;
            }
            assert!(next >= self.now);
            self.now = next;
            self.deliver();
            while let Some((_, reach)) = self.signal.pop_front_if(|(at, _)| *at <= self.now) {
                self.is_away = reach == Reach::Lost;
                self.proxy.on_reach(self.now, reach);
            }
            for side in self.conversations.iter_mut().flat_map(|each| &mut each.sides) {
                side.endpoint.wake(self.now);
            }
            self.proxy.wake(self.now);
            assert!(self.proxy.next_wakeup() > self.now);
        }
        false
    }

    fn next(&self) -> Time {
        let arrival = self.in_flight.keys().next().map_or(Time::NEVER, |&(at, _)| at);
        let conversations = self.conversations.iter().flat_map(|each| {
            let starts = if each.opener.is_some() { each.starts } else { Time::NEVER };
            let ends = each.sides.iter().map(|side| side.endpoint.next_wakeup().min(side.next(self.now)));
            ends.chain([starts])
        });
        let signal = self.signal.front().map_or(Time::NEVER, |(at, _)| *at);
        conversations.fold(arrival.min(self.proxy.next_wakeup()).min(signal), Time::min)
    }

    fn open(&mut self) {
        for (number, each) in self.conversations.iter_mut().enumerate() {
            if each.starts <= self.now
                && let Some(opener) = each.opener.take()
            {
                let [here, there] = [opener, 1 - opener].map(|side| each.sides[side].endpoint.local());
                let (config, secret) = (each.config.clone(), secret(number as u64 + 1));
                each.sides[opener].endpoint = Endpoint::connect(self.now, config, here, there, secret);
            }
        }
    }

    fn let_applications_act(&mut self) {
        for (number, each) in self.conversations.iter_mut().enumerate() {
            for side in (0..2).filter(|&side| each.opener != Some(side)) {
                each.sides[side].write(self.now);
                let peer_key = 2 * number as u64 + 1 - side as u64;
                each.sides[side].read(self.now, peer_key, &mut self.random);
            }
        }
    }

    fn carry(&mut self) {
        for number in 0..self.conversations.len() {
            for (side, from) in SIDES.into_iter().enumerate() {
                while let Some(packet) = self.conversations[number].sides[side].endpoint.poll() {
                    self.put(side, Place::Proxy(from), packet);
                }
            }
        }
        while let Some(relayed) = self.proxy.poll() {
            let side = usize::from(relayed.to.0);
            assert!(relayed.packet.to_bytes().is_ok());
            if relayed.packet.remote.ip() == absent(1).ip() {
                continue;
            }
            let (local, remote) = (relayed.packet.local.ip(), relayed.packet.remote.ip());
            assert_eq!(
                (local, remote),
                (host(1 - side, 1).ip(), host(side, 1).ip()),
                "it has the host's address"
            );
            self.put(side, Place::Host(side), relayed.packet);
        }
    }

    /// Lets a packet cross the network at side `side`.
    fn put(&mut self, side: usize, to: Place, packet: Outgoing) {
        self.packets += 1;
        let network = self.networks[side];
        if self.random.bernoulli(network.loss) || (self.is_away && side == 1) {
            return;
        }
        let copies = 1 + usize::from(self.random.bernoulli(network.duplication));
        for _ in 0..copies {
            let mut packet = packet.clone();
            if self.random.bernoulli(network.mutation) {
                mutate(&mut packet, &mut self.random);
            }
            let jitter = match network.jitter.is_zero() {
                true => Duration::ZERO,
                false => self.random.exponential(network.jitter),
            };
            let mut key = (self.now + self.delays[side] + jitter, self.packets);
            while self.in_flight.contains_key(&key) {
                key.1 += 1;
            }
            self.in_flight.insert(key, (to, packet));
        }
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.in_flight.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, packet) = entry.remove();
            let segment = packet.header.segment;
            let words = [segment.seq.0, segment.ack.0, segment.len, u32::from(segment.flags.0), segment.wnd];
            for word in words.into_iter().map(u64::from).chain([self.now.as_nanos()]) {
                self.digest = (self.digest ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(5);
            }
            match to {
                Place::Proxy(from) => {
                    if !self.proxy.receive(self.now, from, 0, &Incoming::from(&packet)) {
                        let side = 1 - usize::from(from.0);
                        self.put(side, Place::Host(side), packet);
                    }
                }
                Place::Host(side) => self.deliver_to_host(side, &packet),
            }
        }
    }

    /// A host without the connection refuses the segment.
    fn deliver_to_host(&mut self, side: usize, packet: &Outgoing) {
        let packet = Incoming::from(packet);
        let is_open = |each: &&mut Conversation| {
            let endpoint = &each.sides[side].endpoint;
            endpoint.is_for(&packet) && (each.opener.is_none() || each.opener == Some(1 - side))
        };
        let found = self.conversations.iter_mut().filter(is_open);
        // The last incarnation of a connection comes last.
        match found.last() {
            Some(each) => each.sides[side].endpoint.receive(self.now, &packet),
            None => {
                if let Some(reset) = refuse(&packet) {
                    self.put(side, Place::Proxy(SIDES[side]), reset);
                }
            }
        }
    }

    /// Data acknowledged to one host and not received by the other never exceed the buffer, or are none. Nor do windows.
    fn check(&self) {
        assert!(self.proxy.stats().held_bytes_peak <= self.buffer);
        let most = if self.withholds { 0 } else { self.buffer };
        for each in self.conversations.iter().filter(|_| self.is_honest) {
            for side in 0..2 {
                let (source, sink) = (&each.sides[side].endpoint, &each.sides[1 - side].endpoint);
                let Some(sender) = source.sender() else { continue };
                if let Some(receiver) = sink.receiver() {
                    let delivered = receiver.stats().delivered.0;
                    assert!(sender.acknowledged() <= delivered + most, "{}", sender.acknowledged());
                    assert!(sender.acknowledged() + u64::from(sender.rwnd()) <= delivered + 2 * self.buffer);
                }
            }
        }
    }

    fn assert_complete(&self, seed: u64) {
        for (number, each) in self.conversations.iter().enumerate() {
            for side in 0..2 {
                let (this, peer) = (&each.sides[side], &each.sides[1 - side]);
                assert!(this.is_intact, "seed {seed}, conversation {number}, side {side}");
                assert_eq!(this.read, peer.to_send, "seed {seed}, conversation {number}, side {side}");
                let end = this.endpoint.end();
                assert!(
                    matches!(end, Some(End::Closed | End::Reset)),
                    "seed {seed}, {number}, side {side}: {end:?}"
                );
            }
        }
        assert_eq!((self.proxy.connections(), self.proxy.half_open()), (0, 0), "seed {seed}");
        assert_eq!(self.proxy.next_wakeup(), Time::NEVER);
    }
}

fn rough(random: &mut Stream) -> Network {
    let coin = |random: &mut Stream| random.bernoulli(0.5);
    Network {
        loss: if coin(random) { random.uniform() * 0.15 } else { 0.0 },
        duplication: if coin(random) { random.uniform() * 0.2 } else { 0.0 },
        jitter: if coin(random) { Duration::from_micros(random.below(15_000)) } else { Duration::ZERO },
        ..Network::default()
    }
}

fn rough_world(seed: u64) -> World {
    rough_world_with(seed, World::new)
}

fn rough_world_with(seed: u64, make: impl FnOnce(u64, [&Settings; 2], u64, [Network; 2]) -> World) -> World {
    let mut random = Streams::new(seed, 1).stream("configuration");
    let [wired, wireless] = [0, 1].map(|_| settings(&mut random));
    let most = 1 << (11 + random.below(7));
    let buffer = 1_500 + random.below(most);
    let networks = [0, 1].map(|_| rough(&mut random));
    let mut world = make(seed, [&wired, &wireless], buffer, networks);
    for number in 0..1 + random.below(3) as u16 {
        let size = |random: &mut Stream| match random.below(4) {
            0 => 0,
            1 => random.below(3000),
            _ => random.below(100_000),
        };
        let sizes = [size(&mut random), size(&mut random)];
        let (opener, starts) = (random.below(2) as usize, Time::from_nanos(random.below(1 << 30)));
        let own = config(settings(&mut random));
        let added = world.add(opener, [1000 + number, 2000 + number], sizes, own, starts);
        // Somebody must close first.
        let sides = &mut world.conversations[added].sides;
        sides[0].closes_first |= !sides[1].closes_first;
    }
    world
}

#[test]
fn every_byte_passes_over_networks_that_lose_duplicate_and_reorder() {
    for seed in 0..worlds(300) {
        let mut world = rough_world(seed);
        assert!(world.run(600_000, Time::NEVER), "seed {seed} does not end");
        world.assert_complete(seed);
        let opened = world.conversations.len() as u64;
        let stats = world.proxy.stats();
        assert!(stats.connections >= opened && stats.refused == 0 && stats.dropped_syns == 0, "{stats:?}");
    }
}

#[test]
fn the_same_input_gives_the_same_output() {
    for seed in 0..20 {
        let digests = [0, 1].map(|_| {
            let mut world = rough_world(seed);
            world.run(600_000, Time::NEVER);
            (world.digest, world.packets, *world.proxy.stats())
        });
        assert_eq!(digests[0], digests[1]);
    }
}

/// More conversations than the proxy has room for at a time: those in TIME-WAIT make way.
#[test]
fn thousands_of_short_conversations_pass() {
    let mut world = World::plain(5);
    world.networks = [Network { loss: 0.01, ..Network::default() }; 2];
    let linux = config(Profile::Linux.settings());
    for batch in 0..30u16 {
        world.conversations.clear();
        for number in 0..100 {
            let (number, ports) = (u64::from(number), [20_000 + 100 * batch + number, 1_000 + number]);
            let starts = world.now + Duration::from_micros(number * 700);
            let opener = usize::from(batch % 2);
            let mut ports = ports;
            ports.rotate_left(opener);
            world.add(opener, ports, [400 + number * 7, 3_000 + number * 31], linux.clone(), starts);
        }
        for side in world.conversations.iter_mut().flat_map(|each| &mut each.sides) {
            side.reads_at_once();
            side.closes_first = true;
        }
        // All is said, but TIME-WAIT goes on.
        world.run(100_000, world.now + Duration::from_secs(20));
        for each in &world.conversations {
            for side in 0..2 {
                let (this, peer) = (&each.sides[side], &each.sides[1 - side]);
                assert!(
                    this.is_intact && this.read == peer.to_send,
                    "batch {batch}: {} of {}, {:?}, {:?}, {:?}",
                    this.read,
                    peer.to_send,
                    this.endpoint.state(),
                    this.endpoint.end(),
                    world.proxy.stats()
                );
            }
        }
    }
    let stats = world.proxy.stats();
    assert_eq!((stats.connections, stats.dropped_syns, stats.resets), (3_000, 0, 0));
    assert_eq!(world.proxy.half_open(), 0);
    assert!(world.proxy.connections() <= 1024);
    world.conversations.clear();
    assert!(world.run(1_000, Time::NEVER));
    assert_eq!(world.proxy.connections(), 0);
}

#[test]
fn sequence_numbers_wrap() {
    let linux = Profile::Linux.settings();
    for opener in 0..2 {
        // The numbers of a connection increase by 250 a millisecond.
        let mut probe = World::plain(3);
        probe.add(opener, [7, 8], [0, 0], config(linux.clone()), Time::ZERO);
        probe.run(1, Time::NEVER);
        probe.carry();
        let syn_of = |world: &World| {
            let of_proxy = |(to, _): &&(Place, Outgoing)| matches!(to, Place::Host(_));
            world.in_flight.values().find(of_proxy).map(|(_, packet)| packet.header.segment.seq)
        };
        let seq = syn_of(&probe).expect("the proxy connects");
        let left = u64::from(0u32.wrapping_sub(seq.0)) - 100_000;
        let starts = Time::from_nanos(left * 4_000);
        let mut world = World::plain(3);
        world.add(opener, [7, 8], [300_000, 300_000], config(linux.clone()), starts);
        assert!(world.run(100_000, Time::NEVER));
        world.assert_complete(3);
    }
}

#[test]
fn a_refused_port_is_refused_and_an_absent_host_is_silent() {
    for opener in 0..2 {
        let mut world = World::plain(1);
        let own = config(Settings { rto_initial: Duration::from_secs(1), ..Profile::Linux.settings() });
        world.add(opener, [1000, 1000], [10, 10], own, Time::ZERO);
        // Nobody is at the other port.
        world.conversations[0].sides[1 - opener].endpoint.shutdown(Time::ZERO);
        assert!(world.run(100, Time::NEVER));
        let client = &world.conversations[0].sides[opener].endpoint;
        assert_eq!(client.end(), Some(End::Refused));
        let stats = world.proxy.stats();
        assert_eq!((stats.refused, stats.connections, world.proxy.connections()), (1, 0, 0));

        let mut world = World::plain(1);
        world.networks[1 - opener].loss = 1.0;
        let own = config(Profile::Linux.settings());
        world.add(opener, [1000, 1000], [10, 10], own, Time::ZERO);
        world.conversations[0].sides[1 - opener].closes_first = false;
        world.run(1_000, Time::ZERO + Duration::from_secs(100));
        assert_eq!(world.conversations[0].sides[opener].endpoint.state(), StateName::SynSent);
        assert_eq!((world.proxy.connections(), world.proxy.half_open()), (1, 1));
        world.run(1_000, Time::ZERO + Duration::from_secs(1_000));
        let client = &world.conversations[0].sides[opener].endpoint;
        assert_eq!((client.end(), world.proxy.connections()), (Some(End::TimedOut), 0));
        assert_eq!(world.proxy.stats().refused, 0);
    }
}

/// The SYN-ACK of the proxy comes after that of the other host.
#[test]
fn the_proxy_connects_before_it_accepts() {
    let mut world = World::plain(1);
    world.delays = [Duration::from_millis(10), Duration::from_millis(30)];
    world.add(0, [1000, 1000], [10, 10], config(Profile::Linux.settings()), Time::ZERO);
    world.run(100, Time::ZERO + Duration::from_nanos(79_999_999));
    assert_eq!(world.conversations[0].sides[0].endpoint.state(), StateName::SynSent);
    world.run(100, Time::ZERO + Duration::from_millis(80));
    assert!(world.conversations[0].sides[0].endpoint.sender().is_some());
    assert_eq!(world.proxy.stats().connections, 1);
}

/// Resets of either host, at any time, reach the other, and the bytes between them are counted.
#[test]
fn resets_pass_in_both_directions() {
    let (seeds, mut was_reset) = (worlds(200), 0);
    for seed in 0..seeds {
        let mut random = Streams::new(seed, 0).stream("resets");
        let mut world = World::plain(seed);
        let (opener, aborter) = (random.below(2) as usize, random.below(2) as usize);
        world.add(opener, [7, 9], [500_000, 500_000], config(Profile::Linux.settings()), Time::ZERO);
        world.run(100_000, Time::from_nanos(random.below(400_000_000)));
        let sides = &mut world.conversations[0].sides;
        use StateName::{CloseWait, Established, FinWait1, FinWait2};
        let transfers = [Established, FinWait1, FinWait2, CloseWait];
        let synchronised = sides.iter().all(|side| transfers.contains(&side.endpoint.state()));
        sides[aborter].endpoint.abort(world.now);
        if aborter != opener && sides[opener].endpoint.state() == StateName::SynSent {
            // It was still listening.
            continue;
        }
        assert!(world.run(10_000, Time::NEVER), "seed {seed}");
        let [aborted, other] = [aborter, 1 - aborter].map(|side| &world.conversations[0].sides[side]);
        if synchronised {
            match other.endpoint.end() {
                // The proxy had already closed that part in order.
                Some(End::Closed) => assert_eq!(other.read, aborted.to_send, "seed {seed}"),
                end => assert_eq!(end, Some(End::Reset), "seed {seed}"),
            }
            assert_eq!((world.proxy.stats().resets, world.proxy.connections()), (1, 0), "seed {seed}");
            assert!(world.proxy.stats().undelivered_bytes <= 2 * 65_536);
            assert!(aborted.is_intact && other.is_intact);
            was_reset += u64::from(other.endpoint.end() == Some(End::Reset));
        }
        // An aborted SYN says nothing: the proxy's own answers to later segments end the connection.
        assert_eq!(world.proxy.half_open(), 0, "seed {seed}");
    }
    assert!(was_reset > seeds / 4, "{was_reset} of {seeds}");
}

#[test]
fn one_direction_may_end_long_before_the_other() {
    for first in 0..2 {
        let mut world = World::plain(2);
        let sizes = [[10_000, 400_000], [400_000, 10_000]][first];
        world.add(0, [7, 9], sizes, config(Profile::Linux.settings()), Time::ZERO);
        world.conversations[0].sides[first].closes_first = true;
        world.conversations[0].sides[1 - first].closes_first = true;
        let mut met = false;
        for step in 1..400 {
            world.run(100_000, Time::from_nanos(step * 10_000_000));
            let [this, other] = [first, 1 - first].map(|side| &world.conversations[0].sides[side]);
            // FIN has passed in one direction, and bytes still flow in the other.
            met |= other.endpoint.has_ended() && this.read < other.to_send;
        }
        assert!(met);
        assert!(world.run(100_000, Time::NEVER));
        world.assert_complete(2);
    }
}

/// A host that does not read stops the other exactly when both its buffer and that of the proxy are full.
#[test]
fn a_closed_window_closes_the_other() {
    for (buffer, own_window) in [(30_000, 20_000), (65_536, 65_535), (200_000, 50_000), (1_460, 3_000)] {
        let linux = Profile::Linux.settings();
        let mut world = World::new(9, [&linux, &linux], buffer, [Network::default(); 2]);
        let own = Settings { window: Bytes(own_window).into(), ..linux.clone() };
        world.add(0, [7, 9], [1_000_000, 0], config(own), Time::ZERO);
        world.conversations[0].sides[1].stop_reading_until(Time::from_nanos(20_000_000_000));
        world.run(100_000, Time::from_nanos(19_000_000_000));
        let sides = &world.conversations[0].sides;
        let (sender, sink) = (sides[0].endpoint.sender().expect("open"), &sides[1].endpoint);
        let received = sink.readable() as u64;
        assert!(received <= own_window && received + 1_460 > own_window, "{received} of {own_window}");
        let held = sender.acknowledged() - received;
        assert!(held <= buffer && held + 1_460 > buffer, "{held} of {buffer}");
        assert!(sender.rwnd() < 1_460, "{}", sender.rwnd());
        assert!(world.run(100_000, Time::NEVER));
        world.assert_complete(9);
    }
}

/// With acknowledgements that wait for the other host, while the mobile host comes and goes.
#[test]
fn every_byte_passes_before_it_is_acknowledged() {
    for seed in 0..worlds(300) {
        let mut random = Streams::new(seed, 2).stream("signal");
        let hold = Duration::from_millis(1 + random.below(200));
        let mut world = rough_world_with(seed, |seed, parts, buffer, networks| {
            World::withholding(seed, parts, buffer, networks, hold)
        });
        let mut at = Time::ZERO;
        for _ in 0..random.below(4) {
            at += Duration::from_millis(random.below(2_000));
            world.signal.push_back((at, Reach::Lost));
            at += Duration::from_millis(1 + random.below(5_000));
            world.signal.push_back((at, Reach::Back));
        }
        assert!(world.run(600_000, Time::NEVER), "seed {seed} does not end");
        world.assert_complete(seed);
        assert_eq!(world.proxy.stats().undelivered_bytes, 0);
    }
}

/// Brown and Singh 1997: during a disconnection the source has a window of zero, and does not time out. Afterwards it goes
/// on at once, with its congestion window if that did not last long.
#[test]
fn a_disconnection_freezes_the_source() {
    let linux = Profile::Linux.settings();
    let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
    let duration = |outage: Option<u64>| {
        let hold = Duration::from_millis(100);
        let networks = [Network::default(); 2];
        let mut world = World::withholding(4, [&linux, &linux], 65_536, networks, hold);
        world.delays = [Duration::from_millis(20), Duration::from_millis(5)];
        // A tail loss probe of a sender of today repeats data that wait, which then look reordered.
        let source = Settings { flavour: Flavour::NewReno, ..Profile::Rfc.settings() };
        world.add(0, [7, 8], [5_000_000, 0], config(source), Time::ZERO);
        world.conversations[0].sides[1].reads_at_once();
        let sender = |world: &World| {
            let sender = world.conversations[0].sides[0].endpoint.sender().expect("open");
            (sender.rwnd(), sender.cwnd(), sender.stats().timeouts, sender.acknowledged())
        };
        world.run(1_000_000, at(1_000));
        let (_, cwnd, ..) = sender(&world);
        if let Some(lasts) = outage {
            world.signal.extend([(at(1_000), Reach::Lost), (at(1_000 + lasts), Reach::Back)]);
            for ms in (1_100..1_000 + lasts).step_by(100) {
                world.run(1_000_000, at(ms));
                let (window, frozen, timeouts, _) = sender(&world);
                assert_eq!((window, timeouts), (0, 0), "at {ms} ms");
                assert!(frozen >= cwnd, "{frozen} after {cwnd} at {ms} ms");
            }
            world.run(1_000_000, at(1_000 + lasts + 30));
            let (window, resumed, ..) = sender(&world);
            assert!(window > 0);
            // After an RTO without data, it starts anew from the initial window (RFC 5681 section 4.1).
            assert!(lasts > 1_000 || resumed >= cwnd, "{resumed} after {cwnd}");
        }
        while world.conversations[0].sides[1].read < 5_000_000 {
            let next = world.now + Duration::from_millis(10);
            assert!(!world.run(1_000_000, next), "it goes on");
        }
        assert_eq!(sender(&world).2, 0, "timeouts");
        let read = world.now;
        assert!(world.run(1_000_000, Time::NEVER));
        world.assert_complete(4);
        read.since(Time::ZERO).as_secs_f64()
    };
    let undisturbed = duration(None);
    for lasts in [300, 2_000, 30_000] {
        let more = duration(Some(lasts)) - undisturbed - lasts as f64 / 1e3;
        assert!((-0.05..0.5).contains(&more), "{more} s more than {lasts} ms");
    }
}

/// The last byte is acknowledged `hold` after the mobile host has acknowledged it; towards the mobile host none is held.
#[test]
fn the_last_byte_waits() {
    let linux = Profile::Linux.settings();
    for from in 0..2 {
        let hold = Duration::from_millis(100);
        let mut world = World::withholding(4, [&linux, &linux], 65_536, [Network::default(); 2], hold);
        let mut sizes = [0, 0];
        sizes[from] = 10_000;
        world.add(from, [7, 8], sizes, config(linux.clone()), Time::ZERO);
        for side in &mut world.conversations[0].sides {
            side.reads_at_once();
            side.closes_first = false;
        }
        let mut reached = |bytes: u64| {
            for _ in 0..10_000 {
                world.run(1_000, world.now + Duration::from_micros(100));
                let sender = world.conversations[0].sides[from].endpoint.sender();
                if sender.is_some_and(|sender| sender.acknowledged() == bytes) {
                    return Some(world.now);
                }
            }
            None
        };
        if from == 0 {
            let waited = reached(10_000 - 1).zip(reached(10_000)).map(|(begin, end)| end.since(begin));
            assert!(
                waited.is_some_and(|waited| waited.as_nanos().abs_diff(hold.as_nanos()) < 1_000_000),
                "{waited:?}"
            );
        } else {
            assert_eq!(reached(10_000 - 1), None);
        }
    }
}

/// A flood of SYNs to a host that does not answer leaves room for others once it is over; established connections
/// are not affected.
#[test]
fn half_open_connections_are_bounded() {
    let mut world = World::plain(4);
    let linux = config(Profile::Linux.settings());
    world.add(0, [7, 9], [200_000, 200_000], linux.clone(), Time::ZERO);
    world.run(1_000, Time::from_nanos(500_000_000));
    let syn = |port: u16| Outgoing {
        local: host(0, port),
        remote: absent(80),
        ecn: lasthop_proto::Ecn::NotEct,
        header: TcpHeader {
            src_port: port,
            dst_port: 80,
            segment: Segment { flags: Flags::SYN, ..Segment::default() },
            ..TcpHeader::default()
        },
        payload: Vec::new(),
    };
    for port in 10_000..20_000 {
        assert!(world.proxy.receive(world.now, Port::WIRED, 0, &Incoming::from(&syn(port))));
    }
    assert_eq!((world.proxy.half_open(), world.proxy.stats().dropped_syns), (256, 10_000 - 256));
    world.add(1, [70, 90], [1_000, 1_000], linux, world.now + Duration::from_secs(200));
    assert!(world.run(100_000, Time::NEVER));
    world.assert_complete(4);
    assert_eq!(world.proxy.stats().connections, 2);
}

/// The same addresses and ports again, while the proxy still lingers in TIME-WAIT.
#[test]
fn a_connection_may_follow_another_of_the_same_name() {
    for opener in 0..2 {
        let mut world = World::plain(6);
        let linux = config(Profile::Linux.settings());
        for round in 0..20 {
            world.conversations.clear();
            let starts = world.now + Duration::from_millis(1);
            world.add(opener, [7, 9], [5_000, 5_000], linux.clone(), starts);
            // The server closes first, or the client: TIME-WAIT is on either side.
            let sides = &mut world.conversations[0].sides;
            sides.iter_mut().for_each(Side::reads_at_once);
            (sides[0].closes_first, sides[1].closes_first) = (round % 2 == 0, round % 2 == 1);
            world.run(10_000, world.now + Duration::from_secs(3));
            let [a, b] = &world.conversations[0].sides;
            assert!(a.is_intact && b.is_intact, "round {round}");
            assert_eq!((a.read, b.read), (5_000, 5_000), "round {round}: {:?}", world.proxy.stats());
        }
        assert_eq!(world.proxy.stats().connections, 20);
    }
}

/// "Fragmentation needed" about the proxy's own packets reduces its segments; messages about others are not taken.
#[test]
fn path_errors_about_the_proxys_packets_are_handled() {
    let mut world = World::plain(8);
    let linux = config(Profile::Linux.settings());
    world.add(0, [7, 9], [300_000, 0], linux, Time::ZERO);
    world.run(100_000, Time::from_nanos(400_000_000));
    let is_data = |(to, packet): &&(Place, Outgoing)| *to == Place::Host(1) && packet.payload.len() > 1_000;
    let (_, packet) = world.in_flight.values().find(is_data).expect("data are on the way").clone();
    let quoted = packet.to_bytes().expect("short enough");
    let ip = |dst: SocketAddr| Ip {
        src: "10.0.0.50".parse().expect("an address"),
        dst: dst.ip(),
        dscp: lasthop_proto::Dscp::DEFAULT,
        ecn: lasthop_proto::Ecn::NotEct,
        hop_limit: 64,
        identification: 0,
        dont_fragment: false,
    };
    let needed = lasthop_proto::NoticeCode { kind: 3, code: 4 };
    let message = write::icmp(&ip(packet.local), needed, 700, &quoted[..40]).expect("short enough");
    let parsed = IpPacket::parse(&message).expect("well-formed");
    let Transport::Icmp(icmp) = parsed.transport else { panic!("a message") };
    // From the other side, it is about no packet of the proxy.
    assert!(!world.proxy.receive_icmp(world.now, Port::WIRED, &icmp));
    assert!(world.proxy.receive_icmp(world.now, Port::RADIO, &icmp));
    let mut largest = 0;
    while let Some(relayed) = world.proxy.poll() {
        largest = largest.max(relayed.packet.payload.len());
        world.put(1, Place::Host(1), relayed.packet);
    }
    assert_eq!(largest, 700 - 40 - 12, "the segment is retransmitted in shorter ones");
    world.in_flight.retain(|_, (to, packet)| *to != Place::Host(1) || packet.payload.len() <= largest);
    assert!(world.run(100_000, Time::NEVER));
    world.assert_complete(8);
    // Of another connection, or not of TCP.
    let other = Outgoing { remote: host(1, 10), ..packet };
    let bytes = other.to_bytes().expect("short enough");
    let message = write::icmp(&ip(other.local), needed, 700, &bytes[..40]).expect("short enough");
    let parsed = IpPacket::parse(&message).expect("well-formed");
    let Transport::Icmp(icmp) = parsed.transport else { panic!("a message") };
    assert!(!world.proxy.receive_icmp(world.now, Port::RADIO, &icmp));
}

/// Segments of no connection are the caller's.
#[test]
fn segments_of_no_connection_are_left_to_others() {
    let mut world = World::plain(1);
    for flags in [Flags::ACK, Flags::RST, Flags::SYN | Flags::ACK, Flags::FIN | Flags::ACK] {
        let mut segment = Segment { flags, ..Segment::default() };
        segment.seq = SeqNum(5);
        let header = TcpHeader { src_port: 7, dst_port: 9, segment, ..TcpHeader::default() };
        let (local, remote) = (host(0, 7), host(1, 9));
        let ecn = lasthop_proto::Ecn::NotEct;
        let packet = Outgoing { local, remote, ecn, header, payload: Vec::new() };
        assert!(!world.proxy.receive(world.now, Port::WIRED, 0, &Incoming::from(&packet)));
    }
    assert_eq!((world.proxy.stats().foreign_segments, world.proxy.connections()), (4, 0));
    assert!(world.proxy.poll().is_none());
}

/// Whoever sees the packets can forge any: bytes may then be wrong and connections end, but nothing panics or goes on for
/// ever, and the bounds hold.
#[test]
fn forged_and_mutated_segments_do_no_harm() {
    for seed in 0..worlds(200) {
        let mut world = if seed % 4 == 3 {
            let hold = Duration::from_millis(50);
            rough_world_with(seed, |seed, parts, buffer, networks| {
                World::withholding(seed, parts, buffer, networks, hold)
            })
        } else {
            rough_world(seed)
        };
        for network in &mut world.networks {
            network.mutation = 0.05;
        }
        world.is_honest = false;
        // A mutated window may promise what is not there, so the buffer is bounded and windows are not.
        world.run(100_000, Time::from_nanos(5_000_000_000_000));
        assert!(world.proxy.stats().held_bytes_peak <= world.buffer);
        assert!(world.proxy.half_open() <= 256);
    }
}

/// Random segments at random times, mostly near what the proxy expects, on a few connections from both sides.
#[test]
fn hostile_segments_never_stop_the_proxy() {
    hostile_segments_never_stop_a_proxy(false);
}

/// The same with acknowledgements that wait for the other host, whose signal comes and goes. None are for lost bytes.
#[test]
fn hostile_segments_never_stop_a_proxy_that_withholds() {
    hostile_segments_never_stop_a_proxy(true);
}

fn hostile_segments_never_stop_a_proxy(withholds: bool) {
    let inputs = std::env::var("LASTHOP_FUZZ_INPUTS").map_or(60_000, |text| text.parse().expect("a number"));
    let mut random = Streams::new(11, 0).stream("hostile");
    let linux = Profile::Linux.settings();
    let bbr = Settings { ecn: true, ..Profile::LinuxBbr.settings() };
    let parts = parts([&linux, &bbr], 20_000, 1);
    let parts = if withholds { parts.withholding(Duration::from_millis(100)) } else { parts };
    let mut proxy: Proxy<u16> = Proxy::new(parts);
    let mut now = Time::ZERO;
    // The last numbers that the proxy used towards each host: ours for it, and its own.
    let mut expected = BTreeMap::new();
    let (mut sent, mut opened) = (0u64, 0);
    for _ in 0..inputs {
        let side = random.below(2) as usize;
        let number = if random.bernoulli(0.02) { random.below(3_000) as u16 } else { random.below(4) as u16 };
        let mut ports = [100 + number, 200];
        ports.rotate_left(usize::from(number % 2 == 1));
        let [local, remote] = [host(side, ports[side]), host(1 - side, ports[1 - side])];
        let (ack, seq) = expected.get(&(side, number)).copied().unwrap_or((SeqNum(0), SeqNum(0)));
        let wild = |random: &mut Stream, near: SeqNum| match random.below(16) {
            0 => SeqNum(random.below(1 << 32) as u32),
            1 => near + (1 << 31),
            2 => near + random.below(30_000) as u32,
            3 => near - random.below(30_000) as u32,
            _ => near,
        };
        let flags = match random.below(20) {
            0 => Flags(random.below(1 << 9) as u16),
            1 | 2 => Flags::SYN,
            3 | 4 => Flags::SYN | Flags::ACK,
            5 => Flags::FIN | Flags::ACK,
            6 if random.bernoulli(0.3) => Flags::RST,
            _ => Flags::ACK,
        };
        let segment = Segment {
            seq: wild(&mut random, seq),
            ack: wild(&mut random, ack),
            wnd: [0, 1, 500, 65_535, 65_535][random.below(5) as usize],
            flags,
            timestamps: None,
            ..Segment::default()
        };
        let opens = flags.has(Flags::SYN);
        let header = TcpHeader {
            src_port: local.port(),
            dst_port: remote.port(),
            segment,
            mss: (opens && random.bernoulli(0.8)).then(|| random.below(1 << 16) as u16),
            window_scale: (opens && random.bernoulli(0.5)).then(|| random.below(15) as u8),
            sack_permitted: opens && random.bernoulli(0.5),
            ..TcpHeader::default()
        };
        let payload = vec![7; [0, 0, 1, 100, 1_400][random.below(5) as usize]];
        let mut packet = Outgoing { local, remote, ecn: lasthop_proto::Ecn::Ect0, header, payload };
        if random.bernoulli(0.1) {
            mutate(&mut packet, &mut random);
        }
        proxy.receive(now, SIDES[side], number, &Incoming::from(&packet));
        if random.bernoulli(0.001) {
            now += Duration::from_secs(random.below(100));
        }
        if withholds && random.bernoulli(0.01) {
            proxy.on_reach(now, [Reach::Fading, Reach::Lost, Reach::Back][random.below(3) as usize]);
        }
        now += Duration::from_micros(random.below(5_000));
        proxy.wake(now);
        while let Some(relayed) = proxy.poll() {
            assert!(relayed.packet.to_bytes().is_ok());
            let segment = relayed.packet.header.segment;
            let end = segment.seq + segment.seq_len();
            opened += u64::from(segment.flags & (Flags::SYN | Flags::ACK) == Flags::SYN | Flags::ACK);
            expected.insert((usize::from(relayed.to.0), relayed.tag), (end, segment.ack));
            sent += 1;
        }
        assert!(proxy.next_wakeup() > now);
        assert!(proxy.half_open() <= 256 && proxy.connections() <= 1024);
        assert!(proxy.stats().held_bytes_peak <= 20_000);
    }
    let stats = proxy.stats();
    assert!(opened > inputs / 500 && stats.connections > inputs / 500 && stats.resets > 10, "{stats:?}");
    // Segments are near what was acknowledged, so fewer bytes arrive that are not.
    let held = if withholds { 1_000 } else { 5_000 };
    assert!(stats.held_bytes_peak > held && (stats.undelivered_bytes > 0) != withholds, "{stats:?}");
    assert!(sent < 40 * inputs, "{sent} packets");
}
