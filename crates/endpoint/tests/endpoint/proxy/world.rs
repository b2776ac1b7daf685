//! Hosts, a proxy between them, and the networks on its two sides.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use lasthop_base::{Bytes, Duration, Stream, Streams, Time};
use lasthop_endpoint::{Config, End, Endpoint, Incoming, Outgoing, Parts, Proxy, refuse};
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Congestion, EcnMode, Flavour, Profile, Settings};
use lasthop_proto::{Port, Reach};

use crate::world::{Network, Side, mutate, secret};

/// A conversation of two hosts; the first is on the wired side.
pub(super) struct Conversation {
    pub(super) sides: [Side; 2],
    starts: Time,
    /// Number of the side that opens the connection, until it has.
    opener: Option<usize>,
    config: Config,
}

/// The destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// The proxy, from this side.
    Proxy(Port),
    /// A host.
    Host(usize),
}

pub(super) struct World {
    pub(super) now: Time,
    pub(super) proxy: Proxy<u16>,
    pub(super) conversations: Vec<Conversation>,
    /// By side of the proxy.
    pub(super) networks: [Network; 2],
    pub(super) delays: [Duration; 2],
    random: Stream,
    pub(super) in_flight: BTreeMap<(Time, u64), (Place, Outgoing)>,
    pub(super) packets: u64,
    /// Whether the acknowledgements that hosts receive are those of the proxy.
    pub(super) is_honest: bool,
    /// A digest of everything that was delivered, with times.
    pub(super) digest: u64,
    pub(super) buffer: u64,
    /// Whether acknowledgements wait for the other host.
    withholds: bool,
    /// Changes of the mobile host's signal. While it is lost, so is every packet on that side.
    pub(super) signal: VecDeque<(Time, Reach)>,
    is_away: bool,
}

pub(super) fn host(side: usize, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, side as u8 + 1], port))
}

/// A host that does not exist.
pub(super) fn absent(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 99], port))
}

pub(super) const SIDES: [Port; 2] = [Port::WIRED, Port::RADIO];

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
        ecn: [EcnMode::Off, EcnMode::Off, EcnMode::Classic, EcnMode::Accurate][random.below(4) as usize],
        user_timeout: Some(Duration::from_secs(3600)),
        ..congestion_of(congestion, base)
    }
}

fn congestion_of(congestion: Congestion, base: Settings) -> Settings {
    Settings { congestion, ..base }
}

pub(super) fn config(settings: Settings) -> Config {
    Config { settings, ..Config::default() }
}

pub(super) fn parts(settings: [&Settings; 2], buffer: u64, seed: u64) -> Parts {
    Parts::new(settings, Bytes(buffer), secret(seed + 77))
}

impl World {
    pub(super) fn new(seed: u64, parts: [&Settings; 2], buffer: u64, networks: [Network; 2]) -> World {
        World::with(seed, self::parts(parts, buffer, seed), buffer, networks)
    }

    /// A world with acknowledgements that wait for the other host, and the reactions of M-TCP.
    pub(super) fn withholding(
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
    pub(super) fn plain(seed: u64) -> World {
        let linux = Profile::Linux.settings();
        World::new(seed, [&linux, &linux], 65_536, [Network::default(); 2])
    }

    /// Adds a conversation that the host at side `opener` opens at `starts`, and the other one expects.
    pub(super) fn add(
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
    pub(super) fn run(&mut self, limit: u64, until: Time) -> bool {
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

    pub(super) fn carry(&mut self) {
        for number in 0..self.conversations.len() {
            for (side, from) in SIDES.into_iter().enumerate() {
                while let Some(packet) = self.conversations[number].sides[side].endpoint.poll() {
                    self.put(side, Place::Proxy(from), packet);
                }
            }
        }
        while let Some(relayed) = self.proxy.poll() {
            let side = relayed.to.index();
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
    pub(super) fn put(&mut self, side: usize, to: Place, packet: Outgoing) {
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
                        let side = 1 - from.index();
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

    pub(super) fn assert_complete(&self, seed: u64) {
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

pub(super) fn rough_world(seed: u64) -> World {
    rough_world_with(seed, World::new)
}

pub(super) fn rough_world_with(
    seed: u64,
    make: impl FnOnce(u64, [&Settings; 2], u64, [Network; 2]) -> World,
) -> World {
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
