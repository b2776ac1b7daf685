//! Forged, mutated and random segments at a proxy.

use std::collections::BTreeMap;

use lasthop_base::{Duration, Stream, Streams, Time};
use lasthop_endpoint::{Incoming, Outgoing, Proxy};
use lasthop_proto::Reach;
use lasthop_proto::tcp::{EcnMode, Flags, Profile, Segment, SeqNum, Settings};
use lasthop_wire::TcpHeader;

use super::world::{SIDES, World, host, parts, rough_world, rough_world_with};
use crate::streams::worlds;
use crate::world::mutate;

/// An attacker on the path can forge any segment. Bytes may then be wrong and connections may end, but nothing panics or
/// runs for ever, and the bounds hold.
// Rule: Forged, changed and random segments from both sides: no panic, no exchange without end, and all
// bounds hold. []
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
        // A mutated window may be larger than the buffer, so only the buffer is checked.
        world.run(100_000, Time::from_nanos(5_000_000_000_000));
        assert!(world.proxy.stats().held_bytes_peak <= world.buffer);
        assert!(world.proxy.half_open() <= 256);
    }
}

/// Random segments at random times, mostly near what the proxy expects, on a few connections from both sides.
// Rule: as forged_and_mutated_segments_do_no_harm
#[test]
fn hostile_segments_never_stop_the_proxy() {
    hostile_segments_never_stop_a_proxy(false);
}

/// The same with acknowledgements that wait for the other host, whose signal comes and goes. No lost byte is acknowledged.
// Rule: as forged_and_mutated_segments_do_no_harm
#[test]
fn hostile_segments_never_stop_a_proxy_that_withholds() {
    hostile_segments_never_stop_a_proxy(true);
}

fn hostile_segments_never_stop_a_proxy(withholds: bool) {
    let inputs = std::env::var("LASTHOP_FUZZ_INPUTS").map_or(60_000, |text| text.parse().expect("a number"));
    let mut random = Streams::new(11, 0).stream("hostile");
    let linux = Profile::Linux.settings();
    let bbr = Settings { ecn: EcnMode::Classic, ..Profile::LinuxBbr.settings() };
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
            expected.insert((relayed.to.index(), relayed.tag), (end, segment.ack));
            sent += 1;
        }
        assert!(proxy.next_wakeup() > now);
        assert!(proxy.half_open() <= 256 && proxy.connections() <= 1024);
        assert!(proxy.stats().held_bytes_peak <= 20_000);
    }
    let stats = proxy.stats();
    assert!(opened > inputs / 500 && stats.connections > inputs / 500 && stats.resets > 10, "{stats:?}");
    // Random segments are near the acknowledged data, so fewer bytes are held.
    let held = if withholds { 1_000 } else { 5_000 };
    assert!(stats.held_bytes_peak > held && (stats.undelivered_bytes > 0) != withholds, "{stats:?}");
    assert!(sent < 40 * inputs, "{sent} packets");
}
