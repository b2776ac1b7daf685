//! Two endpoints: every byte arrives once and in order in both directions, whatever the network does.

use lasthop_base::{Bytes, Duration, Stream, Streams};
use lasthop_endpoint::{Config, End, KeepAlive};
use lasthop_proto::tcp::{Congestion, EcnMode, Flavour, Profile, Settings};

use crate::world::{Network, World};

fn coin(random: &mut Stream) -> bool {
    random.bernoulli(0.5)
}

fn pick<T: Copy>(random: &mut Stream, among: &[T]) -> T {
    among[random.below(among.len() as u64) as usize]
}

fn config(random: &mut Stream) -> Config {
    let profile = pick(
        random,
        &[
            Profile::Linux,
            Profile::Linux,
            Profile::LinuxBbr,
            Profile::LinuxBbr3,
            Profile::Freebsd,
            Profile::Rfc,
        ],
    );
    let base = profile.settings();
    let by_records = base.flavour == Flavour::Prr;
    let flavour = if by_records {
        base.flavour
    } else {
        pick(random, &[Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack])
    };
    let packet_size = pick(random, &[120, 576, 1280, 1500, 9000]);
    let congestion = if random.bernoulli(0.1) { Congestion::None } else { base.congestion };
    Config {
        settings: Settings {
            flavour,
            congestion,
            packet_size: Bytes(packet_size),
            window: Bytes(packet_size.max(1 << (10 + random.below(9)))).into(),
            ecn: pick(random, &[EcnMode::Off, EcnMode::Classic, EcnMode::Accurate, EcnMode::Accurate]),
            timestamps: coin(random),
            dsack: coin(random),
            user_timeout: Some(Duration::from_secs(3600)),
            ..base
        },
        window_scaling: random.bernoulli(0.8),
        send_buffer: 1 << (9 + random.below(10)),
        nagle: coin(random),
        keep_alive: random.bernoulli(0.2).then(|| KeepAlive {
            idle: Duration::from_secs(1 + random.below(30)),
            interval: Duration::from_secs(5),
            probes: 20,
        }),
        ..Config::default()
    }
}

/// Runs a random world over `network`.
fn world(seed: u64, network: impl FnOnce(&mut Stream) -> Network) -> World {
    let mut random = Streams::new(seed, 1).stream("configuration");
    let configs = [config(&mut random), config(&mut random)];
    let sizes = [0, 1].map(|_| match random.below(4) {
        0 => 0,
        1 => random.below(3000),
        _ => random.below(200_000),
    });
    let both_open = random.bernoulli(0.2);
    let network = network(&mut random);
    World::new(seed, configs, sizes, network, both_open)
}

fn assert_complete(seed: u64, world: &World) {
    for side in [0, 1] {
        let (this, peer) = (&world.sides[side], &world.sides[1 - side]);
        assert!(this.is_intact, "seed {seed}, side {side}");
        assert_eq!(this.read, peer.to_send, "seed {seed}, side {side}: {:?}", this.endpoint.state());
        // The peer may have left TIME-WAIT before it could acknowledge the FIN.
        let ends = (this.endpoint.end(), peer.endpoint.end());
        let is_closed = matches!(ends, (Some(End::Closed), _) | (Some(End::Reset), Some(End::Closed)));
        assert!(is_closed, "seed {seed}, side {side}: {ends:?}");
    }
}

fn rough(random: &mut Stream) -> Network {
    Network {
        loss: if coin(random) { random.uniform() * 0.2 } else { 0.0 },
        duplication: if coin(random) { random.uniform() * 0.3 } else { 0.0 },
        jitter: if coin(random) { Duration::from_micros(random.below(20_000)) } else { Duration::ZERO },
        marking: if coin(random) { random.uniform() * 0.1 } else { 0.0 },
        ..Network::default()
    }
}

pub(crate) fn worlds(default: u64) -> u64 {
    std::env::var("LASTHOP_ENDPOINT_WORLDS").map_or(default, |count| count.parse().expect("a number"))
}

// Rule: Two endpoints with random settings over random losses, duplicates, reordering and marks, readers that
// pause, either end or both opening and closing: every byte arrives once and in order in both directions, and
// both ends close. []
#[test]
fn every_byte_arrives_over_a_network_that_loses_duplicates_and_reorders() {
    for seed in 0..worlds(400) {
        let mut world = world(seed, rough);
        assert!(world.run(400_000), "seed {seed} does not end");
        assert_complete(seed, &world);
    }
}

// Rule: The same with an attacker who forges segments and sees none. [5961]
#[test]
fn blind_attackers_neither_change_nor_end_a_connection() {
    for seed in 0..worlds(200) {
        let mut world = world(seed, |random| Network { forgery: 0.5, ..rough(random) });
        assert!(world.run(800_000), "seed {seed} does not end");
        assert_complete(seed, &world);
    }
}

/// An attacker on the path can forge any segment. Bytes may then be wrong and connections may end, but nothing panics or
/// runs for ever.
// Rule: Changed fields of any segments: no panic, no exchange without end. []
#[test]
fn changed_segments_cause_neither_panics_nor_endless_exchanges() {
    for seed in 0..worlds(600) {
        let mut world = world(seed, |random| {
            let mutation = 0.3 * random.uniform();
            Network { mutation, ..rough(random) }
        });
        for side in &mut world.sides {
            side.closes_first = true;
        }
        assert!(world.run(1_000_000), "seed {seed} does not end");
        // Without keep-alive, one end may wait for ever for a peer that has left.
        let waiting = world.sides.iter().filter(|side| side.endpoint.end().is_none()).count();
        assert!(waiting < 2, "seed {seed}: {:?}", world.sides.each_ref().map(|side| side.endpoint.state()));
    }
}
