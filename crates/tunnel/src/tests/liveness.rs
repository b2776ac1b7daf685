//! When an end takes the other one for dead, and what happens after an outage.

use lasthop_base::{Duration, Streams, Time};

use super::{CLEAN, World, address, key, settings};
use crate::{Settings, Tos, Tunnel};

fn world(number: u64) -> World {
    let mut world = World::new(Streams::new(33, number).stream("world"));
    wait(&mut world, 1000);
    assert!(world.ends.iter().all(Tunnel::is_up));
    world
}

/// Lets time pass.
fn wait(world: &mut World, milliseconds: u64) {
    let until = world.now + Duration::from_millis(milliseconds);
    world.run(until);
}

/// When each end was last up within ten seconds from now.
fn last_up(world: &mut World) -> [Time; 2] {
    let mut last = [world.now; 2];
    for _ in 0..1000 {
        wait(world, 10);
        for (last, tunnel) in last.iter_mut().zip(&world.ends) {
            if tunnel.is_up() {
                *last = world.now;
            }
        }
    }
    last
}

/// Where one direction dies, both ends know within the time after which they miss each other, and do not come and go.
#[test]
fn both_ends_miss_one_direction() {
    for number in 0..8 {
        let mut world = world(number);
        let died = world.now;
        world.path.is_mute = Some(number as usize % 2);
        for last in last_up(&mut world) {
            assert!(last.since(died) < Duration::from_millis(3600), "world {number}: {}", last.since(died));
        }
        world.path = CLEAN;
        wait(&mut world, 1200);
        assert!(world.ends.iter().all(Tunnel::is_up), "world {number}");
    }
}

/// An end to which nothing is sent but reports hears that it is heard.
#[test]
fn traffic_of_one_direction_is_enough() {
    let mut world = world(24);
    for _ in 0..1000 {
        world.send(0, 0);
        wait(&mut world, 10);
    }
    wait(&mut world, 100);
    assert_eq!((world.events.get("silent"), world.left[0].len()), (None, 1000));
}

/// An end that ends says so.
#[test]
fn an_orderly_end_is_known_at_once() {
    for end in 0..2 {
        let mut world = world(20);
        world.act(end, |tunnel, now, left| tunnel.close(now, left));
        let peer = (end == 0).then_some(address(2));
        world.ends[end] = Tunnel::new(settings(peer), key(), [60; 16]);
        world.path.is_mute = Some(end);
        wait(&mut world, 30);
        assert!(!world.ends[1 - end].is_up());
        world.path = CLEAN;
        wait(&mut world, 1200);
        assert!(world.ends.iter().all(Tunnel::is_up), "the next start");
    }
}

/// After an outage, packets that are too old are not retransmitted, and those behind them need not wait.
#[test]
fn stale_packets_are_given_up() {
    let mut world = world(21);
    let of = |peer| Settings { patience: Duration::from_secs(60), ..settings(peer) };
    world.ends = [Tunnel::new(of(Some(address(2))), key(), [61; 16]), Tunnel::new(of(None), key(), [62; 16])];
    wait(&mut world, 1000);
    world.path.is_cut = true;
    (0..1000).for_each(|_| world.send(0, 3));
    wait(&mut world, 5000);
    world.path = CLEAN;
    let before = world.number;
    world.send(0, 3);
    wait(&mut world, 8000);
    let counters = world.ends[0].counters().arq;
    assert_eq!((counters.given_up, world.left[0].len()), (1000, 1));
    assert!(counters.retransmitted < 10 && world.number - before < 60, "{counters:?}");
}

/// Packets with another DSCP overtake, which is no loss, by however many round trips. What is lost behind them is repaired.
#[test]
fn other_forwarding_is_no_loss() {
    for lag in [10, 20, 60, 200] {
        let mut world = world(22);
        world.path.lag = Duration::from_millis(lag);
        let send = |world: &mut World| {
            for _ in 0..500 {
                world.send(0, 5);
                wait(world, 1);
            }
        };
        send(&mut world);
        wait(&mut world, 2000);
        assert_eq!((world.ends[0].counters().arq.retransmitted, world.left[0].len()), (0, 500), "{lag} ms");
        assert_eq!(world.ends[0].losses().1, 0, "{lag} ms");
        world.path.loss = 0.1;
        send(&mut world);
        wait(&mut world, 4000);
        let repaired = world.ends[0].counters().arq.retransmitted;
        assert!(world.left[0].len() == 1000 && repaired < 100, "{lag} ms: {repaired}");
    }
}

/// What is lost in an outage is known at once, and retransmitted in turns: other packets need not wait for all of it.
#[test]
fn a_turn_has_bounded_work() {
    let mut world = world(23);
    world.path.is_cut = true;
    let mut longest = 0;
    for id in 0..17_000u32 {
        let packet = super::packet_of(3, 1_000_000 + id);
        let sent = world.act(0, |tunnel, now, left| tunnel.send(now, 3, Tos::default(), &packet, left));
        longest = longest.max(sent);
    }
    assert!((50..=200).contains(&longest), "{longest}");
}
