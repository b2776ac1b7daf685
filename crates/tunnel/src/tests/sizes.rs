//! The largest datagram of a path.

use lasthop_base::{Duration, Streams, Time};

use super::{CLEAN, World, address};
use crate::{OVERHEAD, Tunnel};

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
            wait(&mut world, 40);
            assert!(world.ends.iter().all(Tunnel::is_up), "{size}, {loss}");
            let expected = size.min(1452);
            // Without losses at once, and as exactly as sizes are told apart.
            let least = if loss == 0.0 { expected - 8 } else { 528 };
            let sizes = found(&world);
            assert!(sizes.iter().all(|size| (least..=expected).contains(size)), "{size}, {loss}: {sizes:?}");
        }
    }
}

/// A path that carries less is noticed within a minute, and at once if the other end has moved; one that carries more, later.
#[test]
fn sizes_follow_the_path() {
    let mut world = world(20, 1400, 0.0);
    wait(&mut world, 20);
    assert_eq!(found(&world).map(|size| (1392..=1400).contains(&size)), [true; 2]);
    world.path.size = 1340;
    wait(&mut world, 70);
    assert_eq!(found(&world).map(|size| (1332..=1340).contains(&size)), [true; 2]);
    world.path.size = 1100;
    world.addresses[0] = address(9);
    world.send(0, 0);
    wait(&mut world, 8);
    assert!((1092..=1100).contains(&found(&world)[1]), "{:?}", found(&world));
    world.path = CLEAN;
    wait(&mut world, 700);
    assert_eq!(found(&world), [1452; 2]);
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
