//! The largest datagram of a path.

use lasthop_base::{Duration, Streams, Time};

use super::{CLEAN, World, address, key, settings};
use crate::{OVERHEAD, Settings, Tos, Tunnel};

fn world(number: u64, size: usize, loss: f64) -> World {
    let mut world = World::new(Streams::new(34, number).stream("world"));
    (world.path.size, world.path.loss) = (size, loss);
    world
}

fn wait(world: &mut World, seconds: u64) {
    let until = world.now + Duration::from_secs(seconds);
    world.run(until);
}

/// The largest size that each end has found.
fn found(world: &World) -> [usize; 2] {
    [0, 1].map(|end| world.ends[end].mtu() + OVERHEAD)
}

#[test]
fn the_size_of_a_path_is_found() {
    for (number, size) in [2000, 1452, 1440, 1353, 1352, 1330, 1326, 1000, 600, 529].into_iter().enumerate() {
        for loss in [0.0, 0.2] {
            let mut world = world(number as u64, size, loss);
            wait(&mut world, 60);
            assert!(world.ends.iter().all(Tunnel::is_up), "{size}, {loss}");
            let expected = size.min(1452);
            // Without losses at once, and as exactly as sizes are told apart.
            let least = if loss == 0.0 { expected - 8 } else { 528 };
            let sizes = found(&world);
            assert!(sizes.iter().all(|size| (least..=expected).contains(size)), "{size}, {loss}: {sizes:?}");
        }
    }
}

/// A path that carries less is noticed within a minute and a half, and sooner if the other end has moved; one that carries more,
/// later.
#[test]
fn sizes_follow_the_path() {
    let mut world = world(20, 1400, 0.0);
    wait(&mut world, 20);
    assert_eq!(found(&world).map(|size| (1392..=1400).contains(&size)), [true; 2]);
    world.path.size = 1340;
    wait(&mut world, 100);
    assert_eq!(found(&world).map(|size| (1332..=1340).contains(&size)), [true; 2]);
    world.path.size = 1100;
    world.addresses[0] = address(9);
    world.send(0, 0);
    wait(&mut world, 60);
    assert!((1092..=1100).contains(&found(&world)[1]), "{:?}", found(&world));
    world.path = CLEAN;
    wait(&mut world, 700);
    assert_eq!(found(&world), [1452; 2]);
}

/// Packets of the largest size enter for 5 s.
fn send_full(world: &mut World) {
    for _ in 0..50 {
        let packet = vec![0; world.ends[0].mtu()];
        world.act(0, |tunnel, now, left| tunnel.send(now, 3, Tos::default(), &packet, left));
        let until = world.now + Duration::from_millis(100);
        world.run(until);
    }
}

/// While packets are lost for their size, this is noticed sooner.
#[test]
fn losses_of_long_packets_are_noticed() {
    let mut world = world(22, 1400, 0.0);
    wait(&mut world, 30);
    world.path.size = 1340;
    send_full(&mut world);
    wait(&mut world, 20);
    assert_eq!(world.events.get("silent"), None);
    assert!((1326..=1340).contains(&found(&world)[0]), "{:?}", found(&world));
    assert!(found(&world)[1] > 1340, "it has sent nothing long");
}

/// A fade that small datagrams pass leaves sizes alone.
#[test]
fn a_fade_changes_no_size() {
    let mut world = world(23, 1400, 0.0);
    wait(&mut world, 30);
    let before = found(&world);
    for _ in 0..20 {
        world.path.size = 600;
        wait(&mut world, 5);
        world.path.size = 1400;
        wait(&mut world, 10);
        assert_eq!(found(&world), before);
    }
}

/// Where even the smallest size does not arrive, this is told, once.
#[test]
fn a_path_that_carries_too_little_is_told() {
    let mut world = world(24, 1300, 0.0);
    let least = |peer| Settings { sizes: 1326..=1452, ..settings(peer) };
    world.ends =
        [Tunnel::new(least(Some(address(2))), key(), [61; 16]), Tunnel::new(least(None), key(), [62; 16])];
    wait(&mut world, 200);
    assert_eq!((found(&world), world.events.get("oversized")), ([1326; 2], Some(&2)));
    assert!(world.ends.iter().all(|end| end.is_up() && !end.is_mtu_confirmed()));
    world.path.size = 1400;
    wait(&mut world, 120);
    assert!(
        world.ends.iter().all(Tunnel::is_mtu_confirmed) && found(&world)[0] > 1390,
        "{:?}",
        found(&world)
    );
}

/// What the kernel of this host says of its own link is believed at once.
#[test]
fn the_first_link_is_known() {
    let mut world = world(25, 2000, 0.0);
    wait(&mut world, 20);
    for (refused, expected) in [(1452, 1326), (1400, 1326), (1326, 528)] {
        world.act(0, |tunnel, now, _| tunnel.refuse_size(now, refused));
        assert_eq!(world.ends[0].mtu() + OVERHEAD, expected, "{refused}");
    }
    world.path.size = 1300;
    wait(&mut world, 60);
    assert!((1292..=1300).contains(&found(&world)[0]), "{:?}", found(&world));
}

/// An end whose datagrams come from two addresses by turns is probed, and its moves are told once.
#[test]
fn an_end_at_two_addresses_is_probed() {
    let mut world = world(26, 1400, 0.0);
    wait(&mut world, 2);
    world.second = Some(address(7));
    for _ in 0..3000 {
        if let Some(second) = &mut world.second {
            std::mem::swap(second, &mut world.addresses[0]);
        }
        world.send(0, 0);
        let until = world.now + Duration::from_millis(10);
        world.run(until);
    }
    assert!((1392..=1400).contains(&found(&world)[0]), "{:?}", found(&world));
    assert_eq!(world.events["moved"], 1);
}

/// At rest, probes cost one datagram a minute.
#[test]
fn at_rest_there_are_few_probes() {
    let mut world = world(21, 1300, 0.0);
    wait(&mut world, 60);
    let (mut probes, began): (u64, Time) = (0, world.now);
    while world.now < began + Duration::from_secs(300) {
        let large = |(_, _, bytes): &&super::UnderWay| bytes.len() > 1000;
        let before = world.under_way.values().filter(large).count();
        let until = world.now + Duration::from_millis(10);
        world.run(until);
        probes += (world.under_way.values().filter(large).count().saturating_sub(before)) as u64;
    }
    assert!((4..=12).contains(&probes), "{probes}");
}
