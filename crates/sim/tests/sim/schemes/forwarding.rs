//! Forwarding by the old base station of a moving host, by hand: three base stations, and what each sends.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::scheme::{Schemes, Site};
use lasthop_proto::tcp::{Flags, SackBlock, SackBlocks, Segment, SeqNum};
use lasthop_proto::{
    Body, Component, Datagram, DropReason, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet, Port,
    Signal,
};
use lasthop_testing::schemes::{Counters, installed, schemes_of, site};

const HOST: HostId = HostId(1);
/// The addresses of the agents at the three base stations.
const PEERS: [HostId; 3] = [HostId(10), HostId(11), HostId(12)];

fn ms(milliseconds: u64) -> Time {
    Time::ZERO + Duration::from_millis(milliseconds)
}

fn packet(body: Body) -> Packet {
    let (src, flow, dscp, ecn) = (HostId(0), FlowId(0), Dscp::DEFAULT, Ecn::NotEct);
    Packet { src, dst: HOST, flow, size: Bytes(1_040), dscp, ecn, handle: Handle::NONE, body }
}

/// Segment number `number` of 1,000 bytes.
fn data(number: u32) -> Packet {
    packet(Body::Tcp(Segment { seq: SeqNum(1_000 * number), len: 1_000, ..Segment::default() }))
}

fn datagram(seq: u64) -> Packet {
    packet(Body::Datagram(Datagram { seq, sent: Time::ZERO }))
}

/// An acknowledgement from the host, which reports these segments.
fn ack(ack: u32, segments: &[u32]) -> Packet {
    let mut sack = SackBlocks::default();
    let block = |number| SackBlock { start: SeqNum(1_000 * number), end: SeqNum(1_000 * number + 1_000) };
    segments.iter().for_each(|&number| sack.push(block(number)));
    let (ack, wnd) = (SeqNum(1_000 * ack), 65_535);
    let ack = Segment { ack, wnd, flags: Flags::ACK, sack, ..Segment::default() };
    Packet { src: HOST, dst: HostId(0), ..packet(Body::Tcp(ack)) }
}

/// A packet on its way from one base station to another, with an outer header of 20 B.
fn tunnelled(to: usize, packet: Packet) -> Packet {
    Packet { dst: PEERS[to], size: packet.size + Bytes(20), ..packet }
}

/// The base stations of a host, which begins at the first.
struct Stations {
    agents: Vec<Box<dyn Component>>,
}

impl Stations {
    fn new(scheme: &str, keys: &str) -> Stations {
        let schemes = schemes_of(&format!("[{scheme}]\n{keys}"));
        let combination = installed(&schemes, scheme);
        assert_eq!(combination.connected(), [0]);
        let agent = |station| combination.agent(0, &Site { station: Some(station), peers: &PEERS, ..site() });
        let mut stations = Stations { agents: (0..3).map(agent).collect() };
        assert_eq!(stations.host_is_at(ms(0), 0), [vec![], vec![], vec![]]);
        stations
    }

    /// The effects at each base station.
    fn signal(&mut self, now: Time, signal: Signal) -> [Vec<Effect>; 3] {
        [0, 1, 2].map(|station| {
            let mut out = Out::default();
            self.agents[station].on_signal(now, &signal, &mut out);
            effects(&mut out)
        })
    }

    fn host_is_at(&mut self, now: Time, station: u16) -> [Vec<Effect>; 3] {
        self.signal(now, Signal::Attached { host: HOST, station })
    }

    fn host_leaves(&mut self, now: Time, station: u16) {
        assert_eq!(self.signal(now, Signal::Detached { host: HOST, station }), [vec![], vec![], vec![]]);
    }

    /// The host moves, and the new base station requests its packets; returns the request.
    fn host_moves(&mut self, now: Time, from: u16, to: u16) -> Packet {
        self.host_leaves(now, from);
        let effects = self.host_is_at(now, to);
        let sent: Vec<&Effect> = effects.iter().flatten().collect();
        let [Effect::Send(Port::CONTROL, request)] = sent[..] else { panic!("{effects:?}") };
        assert_eq!(effects[usize::from(to)].len(), 1);
        let ends = [to, from].map(|station| PEERS[usize::from(station)]);
        assert_eq!(([request.src, request.dst], request.flow, request.size), (ends, FlowId::NONE, Bytes(64)));
        *request
    }

    fn receive(&mut self, now: Time, station: usize, port: Port, packet: Packet) -> Vec<Effect> {
        let mut out = Out::default();
        self.agents[station].receive(now, &packet, port, &mut out);
        effects(&mut out)
    }

    /// What comes over the wired network.
    fn gets(&mut self, station: usize, packet: Packet) -> Vec<Effect> {
        self.receive(ms(0), station, Port::WIRED, packet)
    }

    /// What comes from another base station.
    fn takes(&mut self, station: usize, packet: Packet) -> Vec<Effect> {
        self.receive(ms(0), station, Port::CONTROL, packet)
    }

    fn hears(&mut self, station: usize, packet: Packet) -> Vec<Effect> {
        self.receive(ms(0), station, Port::RADIO, packet)
    }
}

fn effects(out: &mut Out) -> Vec<Effect> {
    std::iter::from_fn(|| out.take()).map(|(_, effect)| effect).collect()
}

fn sends(packet: Packet) -> Effect {
    Effect::Send(Port::RADIO, packet)
}

fn forwards(to: usize, packet: Packet) -> Effect {
    Effect::Send(Port::CONTROL, tunnelled(to, packet))
}

/// What the host has not acknowledged, what has arrived after it left, and what arrives later go to the new base station,
/// in order; there, what the host has is left out.
#[test]
fn the_old_base_station_forwards_what_is_requested() {
    let mut stations = Stations::new("forwarding", "");
    for number in 0..4 {
        assert_eq!(stations.gets(0, data(number)), [sends(data(number))]);
    }
    assert_eq!(stations.gets(0, datagram(0)), [sends(datagram(0))]);
    stations.hears(0, ack(1, &[]));
    let request = stations.host_moves(ms(0), 0, 1);
    assert_eq!(stations.gets(0, data(4)), []);
    assert_eq!(stations.gets(0, datagram(1)), []);
    let all = [data(1), data(2), data(3), data(4), datagram(1)];
    assert_eq!(stations.takes(0, request), all.map(|packet| forwards(1, packet)));
    assert_eq!(stations.gets(0, data(5)), [forwards(1, data(5))]);
    // The host reports segments 1 and 3.
    assert_eq!(stations.hears(1, ack(2, &[3])), [Effect::Send(Port::WIRED, ack(2, &[3]))]);
    let has = |number| Effect::Drop(data(number), DropReason::Suppressed);
    let arrived = all.map(|packet| stations.takes(1, tunnelled(1, packet)));
    let expected = [has(1), sends(data(2)), has(3), sends(data(4)), sends(datagram(1))];
    assert_eq!(arrived.concat(), expected);
}

/// Forwarded segments wait for a report of their connection, and direct ones behind them, but not for ever.
#[test]
fn forwarded_segments_wait_for_a_report() {
    let wired = |packet| Effect::Send(Port::WIRED, packet);
    for answers in [true, false] {
        let mut stations = Stations::new("forwarding", "wait = \"50 ms\"");
        stations.host_moves(ms(0), 0, 1);
        assert_eq!(stations.receive(ms(10), 1, Port::CONTROL, tunnelled(1, data(0))), []);
        assert_eq!(stations.receive(ms(20), 1, Port::WIRED, data(1)), []);
        // Datagrams do not wait.
        assert_eq!(stations.receive(ms(20), 1, Port::WIRED, datagram(0)), [sends(datagram(0))]);
        assert_eq!(stations.agents[1].next_wakeup(), ms(60));
        if answers {
            let sent = stations.receive(ms(30), 1, Port::RADIO, ack(0, &[]));
            assert_eq!(sent, [wired(ack(0, &[])), sends(data(0)), sends(data(1))]);
        } else {
            let mut out = Out::default();
            stations.agents[1].wake(ms(60), &mut out);
            assert_eq!(effects(&mut out), [sends(data(0)), sends(data(1))]);
        }
        assert_eq!(stations.agents[1].next_wakeup(), Time::NEVER);
    }
}

/// Base stations forward along the way of the host, and none to one that it has left before.
#[test]
fn packets_follow_a_host_that_moves_on() {
    let mut stations = Stations::new("forwarding", "");
    let first = stations.host_moves(ms(0), 0, 1);
    stations.takes(0, first);
    let second = stations.host_moves(ms(1), 1, 2);
    // The second base station does not know yet where the host is.
    assert_eq!(stations.gets(0, data(0)), [forwards(1, data(0))]);
    assert_eq!(stations.takes(1, tunnelled(1, data(0))), []);
    assert_eq!(stations.takes(1, second), [forwards(2, data(0))]);
    assert_eq!(stations.takes(1, tunnelled(1, data(1))), [forwards(2, data(1))]);
    // Back at the first: what the second still forwards to the third is forwarded on.
    let third = stations.host_moves(ms(2), 2, 0);
    stations.takes(2, third);
    assert_eq!(stations.takes(2, tunnelled(2, data(2))), [forwards(0, data(2))]);
    stations.hears(0, ack(0, &[]));
    assert_eq!(stations.takes(0, tunnelled(0, data(2))), [sends(data(2))]);
    // A request that comes when the host has returned has no effect, nor one that comes when it has left again.
    assert_eq!(stations.takes(0, first), []);
    assert_eq!(stations.gets(0, data(3)), [sends(data(3))]);
    let fourth = stations.host_moves(ms(3), 0, 2);
    assert_eq!(stations.takes(0, first), []);
    assert_eq!(stations.gets(0, data(4)), []);
    assert_eq!(stations.takes(0, fourth), [2, 3, 4].map(|number| forwards(2, data(number))));
    assert_eq!(stations.takes(0, first), []);
    assert_eq!(stations.gets(0, data(5)), [forwards(2, data(5))]);
}

/// Acknowledgements and resets for the host leave no sign of their arrival: none is held to have arrived, and none waits
/// for a report.
#[test]
fn packets_without_data_are_forwarded_at_once() {
    let bare = |flags| {
        packet(Body::Tcp(Segment { seq: SeqNum(1_000), ack: SeqNum(5_000), flags, ..Segment::default() }))
    };
    let (pure, reset) = (bare(Flags::ACK), bare(Flags::RST));
    let mut stations = Stations::new("forwarding", "");
    let request = stations.host_moves(ms(0), 0, 1);
    assert_eq!(stations.gets(0, pure), []);
    assert_eq!(stations.takes(0, request), [forwards(1, pure)]);
    assert_eq!(stations.takes(1, tunnelled(1, pure)), [sends(pure)]);
    stations.hears(1, ack(1, &[]));
    assert_eq!(stations.takes(1, tunnelled(1, pure)), [sends(pure)]);
    assert_eq!(stations.takes(1, tunnelled(1, reset)), [sends(reset)]);
    // Behind data of the connection, it keeps the order.
    let mut stations = Stations::new("forwarding", "");
    stations.host_moves(ms(0), 0, 1);
    assert_eq!(stations.takes(1, tunnelled(1, data(0))), []);
    assert_eq!(stations.takes(1, tunnelled(1, reset)), []);
    let answer = stations.hears(1, ack(0, &[]));
    assert_eq!(answer, [Effect::Send(Port::WIRED, ack(0, &[])), sends(data(0)), sends(reset)]);
}

/// What the host acknowledges through the old base station after it has left needs no forwarding.
#[test]
fn what_arrives_by_another_way_is_discarded() {
    let mut stations = Stations::new("forwarding", "");
    stations.gets(0, data(0));
    stations.host_leaves(ms(0), 0);
    stations.gets(0, data(0));
    let effects = stations.hears(0, ack(1, &[]));
    let has = Effect::Drop(data(0), DropReason::Suppressed);
    assert_eq!(effects, [Effect::Send(Port::WIRED, ack(1, &[])), has]);
}

/// Schemes that bring packets to the next base station would bring each twice.
#[test]
fn only_one_scheme_brings_packets_to_the_next_base_station() {
    let schemes = schemes_of("[snoop]\ntransfer = true");
    for names in ["forwarding + multicast", "snoop + multicast", "snoop + forwarding"] {
        let problem = format!("{:?}", schemes.combination(names).expect_err(names));
        assert!(problem.contains("both bring packets to the next base station"), "{problem}");
    }
    Schemes::default().combination("snoop + multicast").expect("without the transfer");
    Schemes::default().combination("forwarding + snoop").expect("without the transfer");
}

/// A host that returns before anybody has requested its packets gets them.
#[test]
fn a_host_that_returns_gets_what_was_kept() {
    let mut stations = Stations::new("forwarding", "");
    assert_eq!(stations.gets(0, data(0)), [sends(data(0))]);
    stations.host_leaves(ms(0), 0);
    assert_eq!(stations.gets(0, data(1)), []);
    assert_eq!(stations.gets(0, datagram(0)), []);
    let [here, ..] = stations.host_is_at(ms(5), 0);
    assert_eq!(here, [sends(datagram(0))]);
    let sent = stations.hears(0, ack(1, &[]));
    let has = Effect::Drop(data(0), DropReason::Suppressed);
    assert_eq!(sent, [Effect::Send(Port::WIRED, ack(1, &[])), has, sends(data(1))]);
}

/// What the buffer does not take is lost, except copies of what was sent.
#[test]
fn the_buffer_is_bounded() {
    let mut stations = Stations::new("forwarding", "buffer = 2");
    for number in 0..5 {
        assert_eq!(stations.gets(0, data(number)), [sends(data(number))]);
    }
    stations.host_leaves(ms(0), 0);
    assert_eq!(stations.gets(0, data(5)), []);
    assert_eq!(stations.gets(0, data(6)), []);
    let lost = Effect::Drop(data(5), DropReason::Unreachable);
    assert_eq!(stations.gets(0, data(7)), [lost]);
    let mut kept = Vec::new();
    stations.agents[0].kept(&mut |packet| kept.push(*packet));
    assert_eq!(kept, [data(6), data(7)]);
    let [_, arrived, _] = stations.host_is_at(ms(0), 1);
    let [Effect::Send(Port::CONTROL, request)] = arrived[..] else { panic!("{arrived:?}") };
    assert_eq!(stations.takes(0, request), [forwards(1, data(6)), forwards(1, data(7))]);
    // With no buffer, only what comes after the request.
    let mut stations = Stations::new("forwarding", "buffer = 0");
    assert_eq!(stations.gets(0, data(0)), [sends(data(0))]);
    let request = stations.host_moves(ms(0), 0, 1);
    assert_eq!(stations.gets(0, data(1)), [Effect::Drop(data(1), DropReason::Unreachable)]);
    assert_eq!(stations.takes(0, request), []);
    assert_eq!(stations.gets(0, data(2)), [forwards(1, data(2))]);
}

/// Snoop's cache moves: the new base station transmits and caches the segments, and repairs them like its own.
#[test]
fn snoop_sends_its_cache_to_the_next_base_station() {
    let mut stations = Stations::new("snoop", "transfer = true\ndupacks = 1\nexpedite = false");
    for number in 0..4 {
        assert_eq!(stations.gets(0, data(number)), [sends(data(number))]);
    }
    stations.hears(0, ack(1, &[]));
    let request = stations.host_moves(ms(0), 0, 1);
    let cached = [data(1), data(2), data(3)];
    assert_eq!(stations.takes(0, request), cached.map(|packet| forwards(1, packet)));
    assert_eq!(stations.gets(0, data(4)), [forwards(1, data(4))]);
    // A later segment comes first by the direct way, and is no reason to leave earlier ones to the source.
    assert_eq!(stations.gets(1, data(5)), [sends(data(5))]);
    for packet in [data(1), data(2), data(3), data(4)] {
        assert_eq!(stations.takes(1, tunnelled(1, packet)), [sends(packet)]);
    }
    // The later segment causes a duplicate, which shows no loss. Another one does: segment 1 is lost again.
    let duplicate = ack(1, &[]);
    let suppressed = Effect::Drop(duplicate, DropReason::Suppressed);
    assert_eq!(stations.hears(1, duplicate), [suppressed]);
    assert_eq!(stations.hears(1, duplicate), [suppressed, sends(data(1))]);
    // The peak remains when the cache is empty.
    let mut counters = Counters::default();
    stations.agents[0].count(&mut counters);
    assert_eq!((counters.0["cached_segments"], counters.0["cached_segments_peak"]), (0, 4));
    assert_eq!(counters.0["transferred_segments"], 3);
    // What the host has acknowledged is not transmitted once more.
    stations.hears(1, ack(4, &[]));
    let late = stations.takes(1, tunnelled(1, data(2)));
    assert_eq!(late, [Effect::Drop(data(2), DropReason::Suppressed)]);
}
