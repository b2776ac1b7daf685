//! Acknowledgements that wait for the other host, as in M-TCP.

use lasthop_base::{Duration, Streams, Time};
use lasthop_proto::Reach;
use lasthop_proto::tcp::{Flavour, Profile, Settings};

use super::world::{World, config, rough_world_with};
use crate::streams::worlds;
use crate::world::Network;

/// With acknowledgements that wait for the other host, while the mobile host comes and goes.
// Rule: M-TCP: only what the other host has acknowledged is acknowledged, and the last byte to the mobile
// host after the hold; without its signal the window is zero. [Brown and Singh 1997; relay.rs connection.rs]
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
// Rule: as every_byte_passes_before_it_is_acknowledged
#[test]
fn a_disconnection_freezes_the_source() {
    let linux = Profile::Linux.settings();
    let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
    let duration = |outage: Option<u64>| {
        let hold = Duration::from_millis(100);
        let networks = [Network::default(); 2];
        let mut world = World::withholding(4, [&linux, &linux], 65_536, networks, hold);
        world.delays = [Duration::from_millis(20), Duration::from_millis(5)];
        // No tail loss probes: a probe repeats data whose acknowledgement is withheld, and would look like reordering.
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
// Rule: as every_byte_passes_before_it_is_acknowledged
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
