//! Forward error correction across packets: the two ends of a tunnel by hand, with every pattern of losses,
//! and random streams of packets with losses and reordering.

use std::collections::{BTreeMap, BTreeSet};

use lasthop_base::{Bytes, Duration, Streams, Time};
use lasthop_proto::scheme::{LinkEnd, Site};
use lasthop_proto::{
    Body, Coded, Component, Datagram, DropReason, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet,
    Port, Signal, Symbol, Tally,
};
use lasthop_testing::schemes::{installed, schemes_of, site};

const SERVER: HostId = HostId(0);
const MOBILE: HostId = HostId(1);

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

fn packet(seq: u64) -> Packet {
    Packet {
        src: SERVER,
        dst: MOBILE,
        flow: FlowId(0),
        size: Bytes(1_000 + seq % 7),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body: Body::Datagram(Datagram { seq, sent: Time::ZERO }),
    }
}

fn seq(packet: &Packet) -> u64 {
    match packet.body {
        Body::Datagram(datagram) => datagram.seq,
        _ => panic!("{packet:?} is not a datagram"),
    }
}

/// The counters of an end, by name.
struct Counters(BTreeMap<&'static str, u64>);

impl Tally for Counters {
    fn total(&mut self, name: &'static str, value: u64) {
        self.0.insert(name, value);
    }

    fn level(&mut self, name: &'static str, value: u64) {
        self.0.insert(name, value);
    }

    fn peak(&mut self, name: &'static str, value: u64) {
        self.0.insert(name, value);
    }
}

/// The ingress at the base station and the egress at the mobile host; the test is the link between them.
struct Tunnel {
    ingress: Box<dyn Component>,
    egress: Box<dyn Component>,
    passed: Vec<u64>,
    /// Reported as lost.
    lost: Vec<u64>,
}

impl Tunnel {
    fn new(parameters: &str) -> Tunnel {
        Tunnel::to(parameters, MOBILE)
    }

    /// A tunnel whose egress is at `host`.
    fn to(parameters: &str, host: HostId) -> Tunnel {
        let schemes = schemes_of(&format!("packet-fec = {{ {parameters} }}"));
        let hosts = BTreeSet::from([host]);
        let ends = installed(&schemes, "packet-fec");
        Tunnel {
            ingress: ends.agent(0, &site()),
            egress: ends.agent(0, &Site { end: LinkEnd::MobileHost, hosts: Some(&hosts), ..site() }),
            passed: Vec::new(),
            lost: Vec::new(),
        }
    }

    /// Collects what the ingress sends.
    fn sent(&mut self, now: Time, mut out: Out) -> Vec<Packet> {
        let mut sent = Vec::new();
        while let Some((_, effect)) = out.take() {
            match effect {
                Effect::Signal(signal @ Signal::Encoded(_)) => {
                    self.egress.on_signal(now, &signal, &mut Out::default());
                }
                Effect::Send(Port::RADIO, packet) => sent.push(packet),
                other => panic!("{other:?} at the ingress"),
            }
        }
        sent
    }

    /// Passes a packet to the ingress; returns the packets sent on the air.
    fn enter(&mut self, now: Time, packet: &Packet) -> Vec<Packet> {
        let mut out = Out::default();
        self.ingress.receive(now, packet, Port::WIRED, &mut out);
        self.sent(now, out)
    }

    /// Advances the time of the ingress.
    fn wait(&mut self, now: Time) -> Vec<Packet> {
        let mut out = Out::default();
        assert!(self.ingress.next_wakeup() <= now);
        self.ingress.wake(now, &mut out);
        assert!(self.ingress.next_wakeup() > now);
        self.sent(now, out)
    }

    fn note_passed(&mut self, mut out: Out) -> Vec<Packet> {
        let mut packets = Vec::new();
        while let Some((_, effect)) = out.take() {
            match effect {
                Effect::Send(Port::WIRED, packet) => packets.push(packet),
                Effect::Drop(packet, DropReason::Unrecovered) => self.lost.push(seq(&packet)),
                other => panic!("{other:?} at the egress"),
            }
        }
        self.passed.extend(packets.iter().map(seq));
        packets
    }

    /// Passes packets to the egress.
    fn arrive(&mut self, now: Time, packets: &[Packet]) -> Vec<Packet> {
        let mut out = Out::default();
        packets.iter().for_each(|packet| self.egress.receive(now, packet, Port::RADIO, &mut out));
        assert!(self.egress.next_wakeup() >= now, "a wake-up in the past");
        self.note_passed(out)
    }

    /// Loses packets on the air, which the egress only reports.
    fn lose(&mut self, now: Time, packets: &[Packet]) {
        let mut out = Out::default();
        let before = self.passed.len();
        for packet in packets {
            self.egress.on_signal(now, &Signal::Lost(*packet), &mut out);
        }
        self.note_passed(out);
        assert_eq!(self.passed.len(), before, "a loss lets nothing pass");
    }

    /// Advances the time of the egress.
    fn hold(&mut self, now: Time) -> Vec<Packet> {
        let mut out = Out::default();
        self.egress.wake(now, &mut out);
        assert!(self.egress.next_wakeup() > now);
        self.note_passed(out)
    }

    fn counter(&self, name: &str) -> u64 {
        let mut counters = Counters(BTreeMap::new());
        self.egress.count(&mut counters);
        counters.0[name]
    }
}

/// All loss patterns of a block of 3 + 2: any three packets recover all, otherwise the arrived packets are
/// delivered. The first packet of the next block ends the current block.
#[test]
fn any_k_packets_recover_a_block() {
    for in_order in [true, false] {
        for lost in 0_u32..1 << 5 {
            let mut tunnel = Tunnel::new(&format!("k = 3, n = 5, in_order = {in_order}"));
            let mut sent: Vec<Packet> = (0..6).flat_map(|seq| tunnel.enter(at(1), &packet(seq))).collect();
            assert_eq!(sent.len(), 10);
            let next = sent.split_off(5);
            let [arriving, dropped] = [0, 1].map(|is_lost| -> Vec<Packet> {
                (0..5).filter(|index| lost >> index & 1 == is_lost).map(|index| sent[index]).collect()
            });
            tunnel.lose(at(2), &dropped);
            let first_repair = 3 - (lost & 0b111).count_ones() as usize;
            tunnel.arrive(at(2), &arriving[..first_repair.min(arriving.len())]);
            let is_intact = lost & 0b111 == 0;
            let prompt = (0..3).filter(|seq| lost & 1 << seq == 0);
            let gap = (0..3).find(|seq| lost & 1 << seq != 0).unwrap_or(3);
            let expected: Vec<u64> = prompt.filter(|seq| !in_order || *seq < gap).collect();
            assert_eq!(tunnel.passed, expected, "{lost:05b}: before the repair packets");
            tunnel.arrive(at(2), &arriving[first_repair.min(arriving.len())..]);
            tunnel.arrive(at(3), &next);
            let is_recovered = lost.count_ones() <= 2;
            let expected: Vec<u64> =
                (0..6).filter(|seq| is_recovered || *seq >= 3 || lost & 1 << seq == 0).collect();
            let mut passed = tunnel.passed.clone();
            if !in_order {
                passed.sort_unstable();
            }
            assert_eq!(passed, expected, "{lost:05b}");
            let missing = u64::from((lost & 0b111).count_ones());
            let (recovered, given_up) = if is_recovered { (missing, 0) } else { (0, missing) };
            assert_eq!(tunnel.counter("recovered_packets"), recovered, "{lost:05b}");
            assert_eq!(tunnel.counter("given_up_packets"), given_up, "{lost:05b}");
            assert_eq!(tunnel.lost.len() as u64, given_up);
            let unneeded = arriving.len() - first_repair.min(arriving.len());
            if is_intact {
                assert_eq!(tunnel.counter("unneeded_packets"), 2 + unneeded as u64, "{lost:05b}");
            }
            assert_eq!(tunnel.counter("held_packets"), 0);
        }
    }
}

/// An incomplete block is closed after `wait`, with the same share of repair packets, rounded up.
#[test]
fn a_block_waits_no_longer_than_stated() {
    for (sources, repairs) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3), (7, 4), (8, 4)] {
        let mut tunnel = Tunnel::new("k = 8, n = 12, wait = \"20 ms\"");
        assert_eq!(tunnel.ingress.next_wakeup(), Time::NEVER);
        let mut sent: Vec<Packet> =
            (0..sources).flat_map(|seq| tunnel.enter(at(10 + seq), &packet(seq))).collect();
        if sources < 8 {
            assert_eq!((sent.len() as u64, tunnel.ingress.next_wakeup()), (sources, at(30)));
            sent.extend(tunnel.wait(at(30)));
        }
        assert_eq!(tunnel.ingress.next_wakeup(), Time::NEVER);
        let symbols: Vec<Symbol> = sent.iter().map(symbol).collect();
        let expected = (0..sources as u8).map(|index| Symbol::Source { index });
        let expected =
            expected.chain((0..repairs).map(|index| Symbol::Repair { index, sources: sources as u8 }));
        assert_eq!(symbols, expected.collect::<Vec<_>>());
        // It is also recovered without its first packet.
        tunnel.arrive(at(40), &sent[1..]);
        assert_eq!(tunnel.passed, (0..sources).collect::<Vec<_>>());
    }
}

fn symbol(packet: &Packet) -> Symbol {
    match packet.body {
        Body::Coded(Coded { symbol, .. }) => symbol,
        _ => panic!("{packet:?} is in the tunnel"),
    }
}

fn block(packet: &Packet) -> u32 {
    match packet.body {
        Body::Coded(Coded { block, .. }) => block,
        _ => panic!("{packet:?} is in the tunnel"),
    }
}

/// Blocks are closed in order: at their deadline, or earlier if they are full.
#[test]
fn blocks_close_in_the_order_in_which_they_opened() {
    let mut tunnel = Tunnel::new("k = 2, n = 3, interleave = 2, wait = \"20 ms\"");
    let sent: Vec<u32> =
        (0..3).flat_map(|seq| tunnel.enter(at(seq), &packet(seq))).map(|coded| block(&coded)).collect();
    assert_eq!(sent, [0, 1, 0, 0]);
    assert_eq!(tunnel.ingress.next_wakeup(), at(21));
    let closed = tunnel.wait(at(21));
    assert_eq!(closed.iter().map(block).collect::<Vec<_>>(), [1]);
    assert_eq!(tunnel.ingress.next_wakeup(), Time::NEVER);
}

/// The default `wait` is the transmission time of the source packets of a block: here 8 x 1,536 B at 2 Mb/s.
/// The default `hold` is twice the transmission time of the whole block, at least 100 ms.
#[test]
fn times_depend_on_the_link_by_default() {
    let mut tunnel = Tunnel::new("");
    let sent = [tunnel.enter(at(0), &packet(0)), tunnel.enter(at(0), &packet(1))].concat();
    let full = Duration::from_nanos(1_536 * 8 * 500);
    assert_eq!(tunnel.ingress.next_wakeup(), Time::ZERO + full * 8);
    tunnel.arrive(at(0), &sent[1..]);
    assert_eq!(tunnel.egress.next_wakeup(), Time::ZERO + full * 24);
    let mut quick = Tunnel::new("k = 1, n = 2, interleave = 1, header = \"0 B\"");
    let sent = quick.enter(at(0), &packet(0));
    assert_eq!(sent.len(), 2);
    // A block of one packet takes 6 ms.
    let mut short = Tunnel::new("k = 2, n = 3, header = \"0 B\"");
    let sent = [short.enter(at(0), &packet(0)), short.enter(at(0), &packet(1))].concat();
    assert_eq!(sent.len(), 3);
    short.enter(at(1), &packet(2));
    assert_eq!(short.ingress.next_wakeup(), at(13));
    short.arrive(at(1), &sent[1..2]);
    assert_eq!(short.egress.next_wakeup(), at(101));
}

/// Packets behind a gap are delivered after `hold`; packets that fill the gap later are delivered
/// immediately.
#[test]
fn a_gap_is_given_up_after_a_time() {
    let mut tunnel = Tunnel::new("k = 4, n = 5, hold = \"30 ms\", wait = \"1 s\"");
    let sent: Vec<Packet> = (0..3).flat_map(|seq| tunnel.enter(at(0), &packet(seq))).collect();
    assert_eq!(tunnel.egress.next_wakeup(), Time::NEVER);
    assert!(tunnel.arrive(at(5), &sent[1..2]).is_empty());
    assert_eq!(tunnel.egress.next_wakeup(), at(35));
    // Further packets behind the gap do not extend the deadline.
    assert!(tunnel.arrive(at(20), &sent[2..]).is_empty());
    assert_eq!(tunnel.egress.next_wakeup(), at(35));
    assert_eq!(tunnel.hold(at(35)).len(), 2);
    assert_eq!((&tunnel.passed, tunnel.counter("given_up_packets")), (&vec![1, 2], 1));
    assert_eq!(tunnel.egress.next_wakeup(), Time::NEVER);
    tunnel.arrive(at(50), &sent[..1]);
    assert_eq!(tunnel.passed, [1, 2, 0]);
    assert_eq!((tunnel.counter("passed_late_packets"), tunnel.lost.len()), (1, 0));
    // It counts for the block: a packet lost after it is recovered.
    let last = tunnel.enter(at(51), &packet(3));
    assert_eq!(last.len(), 2);
    tunnel.arrive(at(52), &last[1..]);
    assert_eq!(tunnel.passed, [1, 2, 0, 3]);
    assert_eq!(tunnel.counter("held_packets_peak"), 2);
}

/// With two interleaved blocks, a burst of two packets takes one packet of each.
#[test]
fn interleaving_spreads_a_burst() {
    for (interleave, recovered) in [(1, false), (2, true)] {
        let mut tunnel = Tunnel::new(&format!("k = 4, n = 5, interleave = {interleave}"));
        let mut sent: Vec<Packet> = (0..16).flat_map(|seq| tunnel.enter(at(0), &packet(seq))).collect();
        assert_eq!(sent.len(), 20);
        sent.drain(1..3);
        tunnel.arrive(at(1), &sent);
        let expected: Vec<u64> = (0..16).filter(|seq| recovered || !(1..3).contains(seq)).collect();
        assert_eq!(tunnel.passed, expected, "{interleave}");
    }
}

/// The tunnel adds its header. A repair packet is as long as the longest packet of its block plus the length
/// field. The ECN field is copied to the outer header, and marks are copied back.
#[test]
fn headers_are_added_and_removed() {
    let mut tunnel = Tunnel::new("k = 2, n = 4, header = \"40 B\"");
    let capable =
        |seq, size| Packet { ecn: Ecn::Ect0, dscp: Dscp::EXPEDITED, size: Bytes(size), ..packet(seq) };
    let (first, second) = (capable(0, 500), capable(1, 1_200));
    let mut sent = [tunnel.enter(at(0), &first), tunnel.enter(at(0), &second)].concat();
    let sizes: Vec<u64> = sent.iter().map(|coded| coded.size.0).collect();
    assert_eq!(sizes, [540, 1_240, 1_242, 1_242]);
    let ecn: Vec<Ecn> = sent.iter().map(|coded| coded.ecn).collect();
    assert_eq!(ecn, [Ecn::Ect0, Ecn::Ect0, Ecn::NotEct, Ecn::NotEct]);
    assert_eq!((sent[0].dscp, sent[0].src, sent[0].dst), (Dscp::DEFAULT, SERVER, MOBILE));
    sent[0].ecn = Ecn::Ce;
    let passed = tunnel.arrive(at(1), &[sent[0], sent[2]]);
    assert_eq!(passed, [Packet { ecn: Ecn::Ce, ..first }, second]);
}

/// The base station has separate blocks for each mobile host, and an egress ignores the blocks of other
/// hosts.
#[test]
fn each_mobile_host_has_its_blocks() {
    let other = HostId(2);
    let (mut tunnel, mut beside) = (Tunnel::to("k = 2, n = 3", MOBILE), Tunnel::to("k = 2, n = 3", other));
    let mut sent = Vec::new();
    for seq in 0..6 {
        let dst = if seq % 3 == 0 { other } else { MOBILE };
        let mut out = Out::default();
        tunnel.ingress.receive(at(0), &Packet { dst, ..packet(seq) }, Port::WIRED, &mut out);
        while let Some((_, effect)) = out.take() {
            match effect {
                Effect::Signal(signal) => {
                    for each in [&mut tunnel, &mut beside] {
                        each.egress.on_signal(at(0), &signal, &mut Out::default());
                    }
                }
                Effect::Send(_, packet) => sent.push(packet),
                Effect::Drop(..) | Effect::Corrupt(..) => panic!("nothing is lost"),
            }
        }
    }
    let (own, others): (Vec<Packet>, Vec<Packet>) = sent.into_iter().partition(|packet| packet.dst == MOBILE);
    tunnel.arrive(at(1), &own[1..]);
    beside.arrive(at(1), &others[..1]);
    beside.arrive(at(1), &others[2..]);
    assert_eq!((tunnel.passed, beside.passed), (vec![1, 2, 4, 5], vec![0, 3]));
}

/// A direction that is not protected has no tunnel.
#[test]
fn an_unprotected_direction_is_left_alone() {
    let mut tunnel = Tunnel::new("directions = \"up\"");
    let sent = tunnel.enter(at(0), &packet(0));
    assert_eq!(sent, [packet(0)]);
    assert_eq!(tunnel.arrive(at(0), &sent), [packet(0)]);
    assert_eq!((tunnel.ingress.next_wakeup(), tunnel.egress.next_wakeup()), (Time::NEVER, Time::NEVER));
}

/// A random stream of packets through a tunnel with random losses, reordering and duplicates: each packet is
/// either delivered once or reported as lost once. Without reordering, delivery is in order and never late.
#[test]
fn every_packet_is_passed_on_or_lost_once() {
    for world in 0..3_000 {
        lasthop_testing::check(&format!("world {world}"), || random_tunnel(world));
    }
}

fn random_tunnel(world: u64) {
    let mut random = Streams::new(world, 0).stream("worlds");
    let k = random.below(10) as u8 + 1;
    let n = k + random.below(6) as u8;
    let (interleave, in_order) = (random.below(4) + 1, random.below(2) == 0);
    let mut tunnel = Tunnel::new(&format!(
        "k = {k}, n = {n}, interleave = {interleave}, in_order = {in_order}, wait = \"10 ms\", hold = \"25 ms\""
    ));
    let (loss, reorders) = (random.uniform() * 0.5, random.below(2) == 0);
    let packets = random.below(400) + 1;
    let mut now = 0;
    let mut air: Vec<(u64, Packet)> = Vec::new();
    let mut entered = 0;
    while entered < packets || !air.is_empty() || tunnel.ingress.next_wakeup() != Time::NEVER {
        now += 1;
        let mut sent = Vec::new();
        if tunnel.ingress.next_wakeup() <= at(now) {
            sent.extend(tunnel.wait(at(now)));
        }
        if tunnel.egress.next_wakeup() <= at(now) {
            tunnel.hold(at(now));
        }
        if entered < packets && random.below(3) == 0 {
            sent.extend(tunnel.enter(at(now), &packet(entered)));
            entered += 1;
        }
        for packet in sent {
            if random.uniform() < loss {
                tunnel.lose(at(now), &[packet]);
                continue;
            }
            let copies = 1 + u64::from(reorders && random.below(20) == 0);
            for _ in 0..copies {
                let extra = if reorders { random.below(60) } else { 0 };
                air.push((now + 5 + extra, packet));
            }
        }
        air.sort_by_key(|(due, _)| *due);
        let due = air.partition_point(|(due, _)| *due <= now);
        let arriving: Vec<Packet> = air.drain(..due).map(|(_, packet)| packet).collect();
        tunnel.arrive(at(now), &arriving);
    }
    // Packets held at the end are delivered in time.
    while tunnel.egress.next_wakeup() != Time::NEVER {
        let last = tunnel.egress.next_wakeup();
        tunnel.hold(last);
    }
    assert_eq!(tunnel.counter("held_packets"), 0);
    let unique: BTreeSet<u64> = tunnel.passed.iter().copied().collect();
    assert_eq!(unique.len(), tunnel.passed.len(), "passed on twice");
    let lost: BTreeSet<u64> = tunnel.lost.iter().copied().collect();
    assert_eq!(lost.len(), tunnel.lost.len(), "reported twice");
    assert!(unique.is_disjoint(&lost), "passed on and reported");
    assert_eq!(unique.len() + lost.len(), packets as usize);
    if !reorders {
        assert_eq!(tunnel.counter("passed_late_packets"), 0);
        assert!(!in_order || tunnel.passed.is_sorted());
    }
    if loss == 0.0 && !reorders {
        assert_eq!(unique.len() as u64, packets);
    }
}
