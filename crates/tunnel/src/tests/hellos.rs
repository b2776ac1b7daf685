//! Hellos that were recorded, or held back.

use lasthop_base::{Duration, Streams};

use super::{Left, World, address, key, outer, settings};
use crate::Tunnel;

/// Lets time pass.
fn wait(world: &mut World, milliseconds: u64) {
    let until = world.now + Duration::from_millis(milliseconds);
    world.run(until);
}

/// A recorded hello gets one answer, as long as itself, and begins nothing.
#[test]
fn a_recorded_hello_begins_nothing() {
    let mut world = World::new(Streams::new(25, 0).stream("hello"));
    let mut recorded = Left::default();
    let now = world.now;
    world.ends[0].wake(now, &mut recorded);
    let hello = recorded.datagrams.remove(0).1;
    world.ends[0] = Tunnel::new(settings(Some(address(2))), key(), [50; 16]);
    wait(&mut world, 1000);
    assert!(world.ends.iter().all(Tunnel::is_up));
    let before = world.ends[1].counters().replayed;
    for round in 0..100 {
        let mut left = Left::default();
        let now = world.now;
        world.ends[1].receive(now, &mut hello.clone(), outer(address(66)), &mut left);
        assert_eq!(left.datagrams.len(), usize::from(round == 0));
        for (to, answer) in left.datagrams {
            assert_eq!((to, answer.len()), (address(66), hello.len()));
        }
        wait(&mut world, 500);
        assert_eq!((world.ends[1].is_up(), world.ends[1].peer()), (true, Some(address(1))));
    }
    assert_eq!(world.ends[1].counters().replayed, before + 99);
    world.send(0, 0);
    wait(&mut world, 1000);
    assert_eq!(world.left[0].len(), 1);
}

/// Whoever has recorded many starts gets few answers, and takes nothing from the two ends: neither the outcome of what they
/// send, nor the answers to a new start for longer than a second or two after the flood.
#[test]
fn many_recorded_hellos_get_few_answers() {
    let mut world = World::new(Streams::new(29, 0).stream("flood"));
    wait(&mut world, 1000);
    let mut answers = 0;
    for number in 0..20_000u32 {
        let mut salt = [90; 16];
        salt[..4].copy_from_slice(&number.to_be_bytes());
        let mut hello = Left::default();
        Tunnel::new(settings(Some(address(2))), key(), salt).wake(world.now, &mut hello);
        let (now, mut left) = (world.now, Left::default());
        world.ends[0].receive(now, &mut hello.datagrams.remove(0).1, outer(address(66)), &mut left);
        answers += left.datagrams.len();
        if number % 100 == 0 {
            world.send(0, 3);
        }
        let until = world.now + Duration::from_micros(100);
        world.run(until);
    }
    // Five a second, and as many at once.
    assert!((10..=16).contains(&answers), "{answers}");
    wait(&mut world, 2000);
    assert_eq!((world.left[0].len(), world.ends[0].losses().1), (200, 0));
    world.restart(1);
    wait(&mut world, 4500);
    assert!(world.ends.iter().all(Tunnel::is_up));
}

/// Someone on the path holds back the fresh hello of a start that ended, and delivers it when the next one lives: that one is
/// found again as soon as it is missed.
#[test]
fn a_hello_that_was_held_back_does_not_lock_out() {
    let mut world = World::new(Streams::new(30, 0).stream("held back"));
    wait(&mut world, 1000);
    // The start asks, is answered, and its proof is held back.
    let (now, mut left) = (world.now, Left::default());
    let mut ended = Tunnel::new(settings(Some(address(2))), key(), [71; 16]);
    ended.wake(now, &mut left);
    let mut answered = Left::default();
    world.ends[1].receive(now, &mut left.datagrams.remove(0).1, outer(address(1)), &mut answered);
    ended.receive(now, &mut answered.datagrams.remove(0).1, outer(address(2)), &mut left);
    let mut proof = left.datagrams.remove(0).1;
    // The next one lives.
    world.ends[0] = Tunnel::new(settings(Some(address(2))), key(), [72; 16]);
    wait(&mut world, 1000);
    world.send(0, 0);
    wait(&mut world, 1000);
    assert_eq!(world.left[0].len(), 1);
    world.act(1, |tunnel, now, left| tunnel.receive(now, &mut proof, outer(address(66)), left));
    assert_eq!(world.ends[1].peer(), Some(address(66)));
    wait(&mut world, 9000);
    assert_eq!((world.ends[1].peer(), world.ends[1].is_up()), (Some(address(1)), true));
    world.send(0, 0);
    wait(&mut world, 1000);
    assert_eq!(world.left[0].len(), 2);
}
