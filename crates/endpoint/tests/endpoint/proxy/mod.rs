//! Hosts with a proxy between them: every byte arrives once and in order in both directions, failures reach the other
//! host, and connections and bytes are bounded.

mod hostile;
mod withholding;
mod world;

use std::net::SocketAddr;

use lasthop_base::{Bytes, Duration, Streams, Time};
use lasthop_endpoint::{End, Incoming, Outgoing, StateName};
use lasthop_proto::Port;
use lasthop_proto::tcp::{Flags, Profile, Segment, SeqNum, Settings};
use lasthop_wire::{Ip, IpPacket, TcpHeader, Transport, write};

use self::world::{Place, World, absent, config, host, rough_world};
use crate::streams::worlds;
use crate::world::{Network, Side};

// Rule: Random hosts, networks and buffers on both sides: every byte arrives once and in order in both
// directions, and nothing is left; equal input gives equal output. []
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

// Rule: as every_byte_passes_over_networks_that_lose_duplicate_and_reorder
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
// Rule: as half_open_connections_are_bounded
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
        // All data are exchanged, but connections remain in TIME-WAIT.
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

// Rule: as a_connection_may_follow_another_of_the_same_name
#[test]
fn sequence_numbers_wrap() {
    let linux = Profile::Linux.settings();
    for opener in 0..2 {
        // The initial sequence number increases by 250 a millisecond.
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

// Rule: as the_proxy_connects_before_it_accepts
#[test]
fn a_refused_port_is_refused_and_an_absent_host_is_silent() {
    for opener in 0..2 {
        let mut world = World::plain(1);
        let own = config(Settings { rto_initial: Duration::from_secs(1), ..Profile::Linux.settings() });
        world.add(opener, [1000, 1000], [10, 10], own, Time::ZERO);
        // No endpoint listens at the other port.
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
// Rule: The proxy connects to the other host before it answers a SYN: a refused port is refused, an absent
// host is silent. [9293 3.10.7.1, 3.10.7.3; proxy.rs relay.rs]
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
// Rule: RST from either host, at any time, resets the other; bytes that were acknowledged and not delivered
// are counted. [9293 3.5.2; relay.rs]
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
            // A listening endpoint has no connection to abort.
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
        // An endpoint that aborts after its SYN sends no reset; the proxy's part ends when its next segment is refused.
        assert_eq!(world.proxy.half_open(), 0, "seed {seed}");
    }
    assert!(was_reset > seeds / 4, "{was_reset} of {seeds}");
}

// Rule: Each direction ends on its own: FIN follows the last byte. [9293 3.6; relay.rs]
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
// Rule: The bytes held for a direction and the window offered for it never exceed the buffer; a host that
// does not read stops the other. [9293 3.8.6; relay.rs]
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

/// A flood of SYNs to a host that does not answer leaves room for others once it is over; established connections
/// are not affected.
// Rule: Connections, half-open ones and their bytes are bounded; those in TIME-WAIT make way. [proxy.rs]
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
// Rule: A connection may follow another of the same addresses and ports; sequence numbers wrap. [6191 2, 9293
// 3.4; proxy.rs relay.rs]
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
// Rule: Path errors about the proxy's own packets shorten its segments; others, and segments of no
// connection, pass. [1191 3; proxy.rs]
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
// Rule: as path_errors_about_the_proxys_packets_are_handled
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
