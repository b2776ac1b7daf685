//! What is measured at a high rate.

use lasthop_base::{Duration, Streams};
use lasthop_proto::scheme::parameters::PacketFec;

use super::{World, address, key, settings};
use crate::{Help, Settings, Tunnel};

/// Without an ARQ, at 10,000 packets a second: the loss is the path's, and the code adapts to it.
#[test]
fn losses_at_a_high_rate_are_those_of_the_path() {
    for (world, loss) in [(0, 0.0), (1, 0.05)] {
        let code = PacketFec { k: 8, n: 12, ..PacketFec::default() };
        let of = |peer| Settings {
            classes: vec![Help::None, Help::Fec(code.clone())],
            adapts: true,
            ..settings(peer)
        };
        let mut world = World::new(Streams::new(32, world).stream("world"));
        world.ends =
            [Tunnel::new(of(Some(address(2))), key(), [80; 16]), Tunnel::new(of(None), key(), [81; 16])];
        let until = world.now + Duration::from_secs(1);
        world.run(until);
        world.path.loss = loss;
        let mut datagrams = 0;
        for number in 0..10_000 {
            let before = world.number;
            world.send(0, 1);
            datagrams += if number >= 5000 { world.number - before } else { 0 };
            let until = world.now + Duration::from_micros(100);
            world.run(until);
        }
        let (sent, lost) = world.ends[0].losses();
        let measured = lost as f64 / sent as f64;
        assert!(sent >= 2000 && (measured - loss).abs() <= loss * 0.3, "{lost} of {sent}");
        // One that loses none needs no repair packets.
        assert!(loss > 0.0 || datagrams < 5050, "{datagrams}");
    }
}
