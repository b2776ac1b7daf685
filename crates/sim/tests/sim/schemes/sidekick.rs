//! Sidekick: both ends by hand, the test being the link, and random losses in both directions.

use std::collections::{BTreeSet, VecDeque};

use lasthop_base::{Bytes, Duration, Streams, Time};
use lasthop_proto::scheme::{CombinationError, LinkEnd, Site};
use lasthop_proto::{
    Body, Component, Datagram, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet, Port, Signal,
};
use lasthop_testing::schemes::{Counters, installed, schemes_of, site};

const SERVER: HostId = HostId(0);
const MOBILE: HostId = HostId(1);
const OTHER: HostId = HostId(2);

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

fn packet(seq: u64) -> Packet {
    Packet {
        src: SERVER,
        dst: MOBILE,
        flow: FlowId(0),
        size: Bytes(1_000),
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

fn seqs(packets: &[Packet]) -> Vec<u64> {
    packets.iter().map(seq).collect()
}

/// An agent, what it has sent to either side, and its signals.
struct End(Box<dyn Component>);

#[derive(Default)]
struct Sent {
    /// To the node: packets of the ends.
    out: Vec<Packet>,
    /// Over the link.
    air: Vec<Packet>,
    signals: Vec<Signal>,
}

impl End {
    fn collect(&self, mut out: Out) -> Sent {
        let mut sent = Sent::default();
        while let Some((_, effect)) = out.take() {
            match effect {
                Effect::Send(Port::WIRED, packet) => sent.out.push(packet),
                Effect::Send(_, packet) => sent.air.push(packet),
                Effect::Signal(signal) => sent.signals.push(signal),
                other => panic!("{other:?}"),
            }
        }
        sent
    }

    fn receive(&mut self, now: Time, packets: &[Packet], port: Port) -> Sent {
        let mut out = Out::default();
        packets.iter().for_each(|packet| self.0.receive(now, packet, port, &mut out));
        self.collect(out)
    }

    fn wake(&mut self, now: Time) -> Sent {
        let mut out = Out::default();
        self.0.wake(now, &mut out);
        assert!(self.0.next_wakeup() > now);
        self.collect(out)
    }

    fn count(&self, name: &str) -> u64 {
        let mut counters = Counters::default();
        self.0.count(&mut counters);
        counters.0[name]
    }
}

/// The base station and the mobile host.
struct Link {
    base: End,
    mobile: End,
    now: Time,
}

impl Link {
    fn new(parameters: &str) -> Link {
        Link::to(parameters, MOBILE)
    }

    fn to(parameters: &str, host: HostId) -> Link {
        Link::at(parameters, host, None)
    }

    /// A link to a host that moves, if there is the number of a base station.
    fn at(parameters: &str, host: HostId, station: Option<u16>) -> Link {
        let schemes = schemes_of(&format!("sidekick = {{ {parameters} }}"));
        let hosts = BTreeSet::from([host]);
        let ends = installed(&schemes, "sidekick");
        assert_eq!(ends.pairs(), [[0, 0]]);
        Link {
            now: at(0),
            base: End(ends.agent(0, &Site { station, ..site() })),
            mobile: End(
                ends.agent(0, &Site { end: LinkEnd::MobileHost, hosts: Some(&hosts), station, ..site() })
            ),
        }
    }

    /// Both ends learn where the host is.
    fn signal(&mut self, signal: &Signal) {
        for end in [&mut self.base, &mut self.mobile] {
            end.0.on_signal(self.now, signal, &mut Out::default());
        }
    }

    /// The server sends packets with these numbers.
    fn send(&mut self, numbers: impl IntoIterator<Item = u64>) -> Vec<Packet> {
        let packets: Vec<Packet> = numbers.into_iter().map(packet).collect();
        let sent = self.base.receive(self.now, &packets, Port::WIRED);
        assert_eq!(sent.air, packets, "they are not changed");
        sent.air
    }

    /// Packets arrive at the mobile host, which forwards them; returns its quACKs.
    fn arrive(&mut self, now: Time, packets: &[Packet]) -> Vec<Packet> {
        self.now = now;
        let sent = self.mobile.receive(now, packets, Port::RADIO);
        assert_eq!(sent.out, packets, "they are not changed");
        self.report(sent)
    }

    fn report(&mut self, sent: Sent) -> Vec<Packet> {
        assert_eq!(sent.air.len(), sent.signals.len());
        for signal in sent.signals {
            self.base.0.on_signal(self.now, &signal, &mut Out::default());
        }
        sent.air
    }

    /// quACKs arrive at the base station; returns its repairs.
    fn repair(&mut self, quacks: &[Packet]) -> Vec<Packet> {
        let sent = self.base.receive(self.now, quacks, Port::RADIO);
        assert_eq!((sent.out, sent.signals), (vec![], vec![]), "quACKs go no further");
        sent.air
    }

    /// The packets but those with these numbers arrive, and so do the quACKs.
    fn lose(&mut self, packets: &[Packet], lost: &[u64]) -> Vec<Packet> {
        let arrived: Vec<Packet> =
            packets.iter().filter(|packet| !lost.contains(&seq(packet))).copied().collect();
        let quacks = self.arrive(self.now, &arrived);
        self.repair(&quacks)
    }
}

#[test]
fn what_a_quack_lacks_is_sent_again() {
    let mut link = Link::new("");
    let sent = link.send(0..4);
    let quacks = link.arrive(at(1), &[sent[0], sent[2], sent[3]]);
    assert_eq!(quacks.len(), 1, "one for two packets");
    let Packet { src, dst, flow, size, dscp, .. } = quacks[0];
    assert_eq!((src, dst, flow, size, dscp), (MOBILE, SERVER, FlowId::NONE, Bytes(66), Dscp::EXPEDITED));
    let repairs = link.repair(&quacks);
    assert_eq!(repairs, [Packet { dscp: Dscp::EXPEDITED, ..sent[1] }]);
    // The third packet has no quACK yet. The repair causes one, which tells nothing of the others.
    assert_eq!(link.mobile.0.next_wakeup(), at(11));
    let quacks = link.arrive(at(2), &repairs);
    assert_eq!((quacks.len(), link.repair(&quacks)), (1, vec![]));
    let more = link.send(4..6);
    assert_eq!(link.lose(&more, &[]), []);
    assert_eq!([link.base.count("repairs"), link.base.count("kept_packets")], [1, 0]);
    assert_eq!(link.base.count("kept_packets_peak"), 4);
}

#[test]
fn a_quack_waits_no_longer_than_it_may() {
    let mut link = Link::new("every = 3, wait = \"5 ms\", threshold = 20, bits = 16, expedite = false");
    let sent = link.send(0..4);
    assert_eq!(link.arrive(at(1), &sent[..1]), []);
    assert_eq!(link.arrive(at(2), &sent[2..3]), []);
    assert_eq!(link.mobile.0.next_wakeup(), at(6));
    let woken = link.mobile.wake(at(6));
    let quacks = link.report(woken);
    assert_eq!((quacks.len(), quacks[0].size, quacks[0].dscp), (1, Bytes(72), Dscp::DEFAULT));
    assert_eq!(link.mobile.0.next_wakeup(), Time::NEVER);
    assert_eq!(link.repair(&quacks), sent[1..2]);
}

/// Each quACK reports everything that has arrived, so a later one replaces those that are lost.
#[test]
fn a_lost_quack_does_no_harm() {
    let mut link = Link::new("");
    let sent = link.send(0..8);
    let lost = link.arrive(at(1), &[sent[0], sent[2]]);
    let quacks = link.arrive(at(2), &[sent[3], sent[5], sent[6], sent[7]]);
    assert_eq!((lost.len(), quacks.len()), (1, 2));
    assert_eq!(seqs(&link.repair(&quacks[1..])), [1, 4]);
    assert_eq!(link.repair(&lost), [], "its contents are forgotten");
    assert_eq!(link.repair(&quacks), [], "each is read once");
}

#[test]
fn a_repair_is_repeated_once_a_later_packet_has_arrived() {
    let mut link = Link::new("every = 1, attempts = 2");
    let sent = link.send(0..6);
    assert_eq!(seqs(&link.lose(&sent[..4], &[1])), [1]);
    // These were sent before the repair.
    assert_eq!(link.lose(&sent[4..], &[]), []);
    let mut next = link.send(6..9);
    assert_eq!(seqs(&link.lose(&next, &[])), [1]);
    next = link.send(9..12);
    assert_eq!(link.lose(&next, &[]), []);
    assert_eq!([link.base.count("given_up_packets"), link.base.count("repairs")], [1, 2]);
    next = link.send(12..20);
    assert_eq!(seqs(&link.lose(&next, &[13])), [13], "the sums are still those of the mobile host");
    assert_eq!(link.base.count("undecodable_quacks"), 0);
}

/// Too many losses for a quACK, a packet that was taken for lost and arrives beside its repair, and more packets than are kept:
/// later losses are repaired.
#[test]
fn an_undecodable_quack_is_a_new_start() {
    let mut link = Link::new("threshold = 2, every = 1");
    let sent = link.send(0..8);
    assert_eq!(link.lose(&sent, &[1, 2, 3]), []);
    assert_eq!(link.base.count("undecodable_quacks"), 1);
    let next = link.send(8..12);
    assert_eq!(seqs(&link.lose(&next, &[8, 9])), [8, 9]);

    let mut link = Link::new("every = 1");
    let sent = link.send(0..8);
    let repairs = link.lose(&sent[..3], &[1]);
    assert_eq!((seqs(&repairs), link.lose(&[repairs[0], sent[1], sent[3]], &[])), (vec![1], vec![]));
    assert_eq!(link.base.count("undecodable_quacks"), 1);
    assert_eq!(seqs(&link.lose(&sent[4..], &[5])), [5]);

    let mut link = Link::new("buffer = 4, every = 1");
    let sent = link.send(0..20);
    assert_eq!(link.base.count("kept_packets"), 4);
    assert_eq!(seqs(&link.lose(&sent, &[3, 17])), [17], "the other one was forgotten");
    assert_eq!((link.base.count("undecodable_quacks"), link.base.count("kept_packets")), (1, 1));
    assert_eq!((link.base.count("unread_quacks"), link.base.count("pushed_out_packets")), (15, 16));
    let next = link.send(20..24);
    assert_eq!(seqs(&link.lose(&next, &[21])), [17, 21]);
}

/// With 16 bits, some of many packets have the identifier of another one that is not missing. They are neither repaired nor do
/// they spoil later quACKs.
#[test]
fn packets_with_one_identifier_are_told_apart_or_left_alone() {
    let mut link = Link::new("bits = 16, every = 2000, threshold = 20, buffer = 4000");
    let mut random = Streams::new(1, 0).stream("collisions");
    let (mut lost, mut repairs) = (0, 0);
    for round in 0..20 {
        let first = round * 2_020;
        let sent = link.send(first..first + 2_020);
        let missing: Vec<u64> = (0..20).map(|n| first + n * 100 + random.below(100)).collect();
        lost += missing.len() as u64;
        let found = link.lose(&sent, &missing);
        assert!(seqs(&found).iter().all(|seq| missing.contains(seq)));
        repairs += found.len() as u64;
        assert_eq!(link.arrive(at(round * 100), &found), []);
        let woken = link.mobile.wake(at(round * 100 + 10));
        let quacks = link.report(woken);
        assert_eq!((quacks.len(), link.repair(&quacks)), (1, vec![]));
    }
    let ambiguous = link.base.count("ambiguous_packets");
    assert_eq!((repairs + ambiguous, link.base.count("undecodable_quacks")), (lost, 0));
    // Of 2,000 others, one has the same of 65,521 identifiers with a probability of 3 %.
    assert!((2..=30).contains(&ambiguous), "{ambiguous} of {lost}");
}

/// One base station, and mobile hosts whose quACKs have the same numbers.
#[test]
fn mobile_hosts_of_a_base_station_do_not_disturb_each_other() {
    let mut link = Link::new("every = 1");
    let mut other = Link::to("every = 1", OTHER);
    let sent = link.send(0..4);
    let to_other: Vec<Packet> =
        sent.iter().map(|packet| Packet { dst: OTHER, flow: FlowId(1), ..*packet }).collect();
    link.base.receive(at(0), &to_other, Port::WIRED);
    let quacks = link.arrive(at(1), &[sent[0], sent[2]]);
    let theirs = other.mobile.receive(at(1), &[to_other[1], to_other[3]], Port::RADIO);
    let theirs = link.report(theirs);
    assert_eq!(link.repair(&theirs), [0, 2].map(|index| Packet { dscp: Dscp::EXPEDITED, ..to_other[index] }));
    assert_eq!(seqs(&link.repair(&quacks)), [1]);
}

/// What the mobile host sends is repaired by it, if the direction is one of the scheme's.
#[test]
fn the_mobile_host_repairs_uploads() {
    for (directions, repairs) in [("down", vec![]), ("up", vec![1]), ("both", vec![1])] {
        let mut link = Link::new(&format!("directions = {directions:?}, every = 1"));
        let up = |seq| Packet { src: MOBILE, dst: SERVER, ..packet(seq) };
        let sent = link.mobile.receive(at(0), &[0, 1, 2].map(up), Port::WIRED).air;
        let reported = link.base.receive(at(0), &[sent[0], sent[2]], Port::RADIO);
        for signal in &reported.signals {
            link.mobile.0.on_signal(at(0), signal, &mut Out::default());
        }
        let found = link.mobile.receive(at(0), &reported.air, Port::RADIO);
        assert_eq!((seqs(&found.air), found.out), (repairs, vec![]), "{directions}");
    }
}

/// A link that loses packets and quACKs at random, with repairs before what is queued: whatever was sent arrives once, but for
/// those that a quACK could not tell.
#[test]
fn packets_arrive_once_whatever_is_lost() {
    for (loss, parameters) in [
        (0.01, "every = 2"),
        (0.1, "every = 1, threshold = 20"),
        (0.3, "every = 3, threshold = 20, bits = 24, attempts = 30"),
    ] {
        let mut random = Streams::new(7, 0).stream("losses");
        let mut link = Link::new(parameters);
        let mut queue: Vec<Packet> = Vec::new();
        let mut arrivals = vec![0_u32; 3_000];
        let mut now = Time::ZERO;
        for number in 0..3_000 {
            queue.extend(link.send([number]));
            while queue.len() > 5 {
                now += Duration::from_micros(100);
                let packet = queue.remove(0);
                if random.bernoulli(loss) {
                    continue;
                }
                arrivals[seq(&packet) as usize] += 1;
                let quacks = link.arrive(now, &[packet]);
                let quacks: Vec<Packet> = quacks.into_iter().filter(|_| !random.bernoulli(loss)).collect();
                let repairs = link.repair(&quacks);
                queue.splice(0..0, repairs);
            }
        }
        let undecodable = link.base.count("undecodable_quacks");
        assert!(arrivals.iter().all(|&arrivals| arrivals <= 1), "{loss}");
        let missing = arrivals[..2_950].iter().filter(|&&arrivals| arrivals == 0).count() as u64;
        assert!(missing <= 20 * undecodable && undecodable <= 5, "{loss}: {missing}, {undecodable}");
        let repairs = link.base.count("repairs") as f64;
        assert!(repairs > 0.9 * loss * 3_000.0 && repairs < 2.0 * loss / (1.0 - loss) * 3_000.0, "{repairs}");
    }
}

/// A host that comes or leaves: nothing is kept for it while it is elsewhere, and a loss after its return is repaired.
#[test]
fn both_ends_begin_anew_where_a_host_returns() {
    let mut link = Link::at("every = 1", MOBILE, Some(0));
    let attached = |station| Signal::Attached { host: MOBILE, station };
    link.signal(&attached(0));
    let sent = link.send(0..6);
    assert_eq!(seqs(&link.lose(&sent[..4], &[1])), [1]);
    let late = link.arrive(link.now, &sent[4..5]);
    link.signal(&Signal::Detached { host: MOBILE, station: 0 });
    assert_eq!(link.base.count("kept_packets"), 0);
    link.send(6..10);
    link.signal(&attached(1));
    link.send(10..14);
    assert_eq!((link.base.count("kept_packets"), link.repair(&late)), (0, vec![]));
    link.signal(&Signal::Detached { host: MOBILE, station: 1 });
    link.signal(&attached(0));
    let sent = link.send(14..20);
    assert_eq!(seqs(&link.lose(&sent, &[15, 17])), [15, 17]);
    assert_eq!((link.base.count("undecodable_quacks"), link.base.count("unread_quacks")), (0, 0));
}

/// An idle flow is forgotten when another begins, and goes on later: at the base station, at both ends, or at the mobile host.
#[test]
fn idle_flows_are_forgotten() {
    let later = Time::from_nanos(121_000_000_000);
    for (at_base, at_mobile) in [(true, false), (true, true), (false, true)] {
        let mut link = Link::new("every = 1");
        let sent = link.send(0..4);
        assert_eq!(seqs(&link.lose(&sent[..3], &[1])), [1]);
        let other = Packet { flow: FlowId(1), ..packet(0) };
        link.now = later;
        if at_base {
            link.base.receive(later, &[other], Port::WIRED);
            assert_eq!(link.base.count("kept_packets"), 1);
        }
        if at_mobile {
            link.mobile.receive(later, &[other], Port::RADIO);
        }
        let sent = link.send(4..8);
        link.lose(&sent[..1], &[]);
        assert_eq!(seqs(&link.lose(&sent[1..], &[6])), [6], "{at_base} {at_mobile}");
        assert!(link.base.count("undecodable_quacks") <= 1);
    }
}

/// A link with a round trip of 100 packets: several losses are under way, and sometimes more than a quACK can tell.
#[test]
fn repairs_under_way_survive_an_undecodable_quack() {
    for (loss, parameters, most_missing) in [(0.03, "", 0.02), (0.06, "", 0.1), (0.1, "threshold = 20", 0.01)]
    {
        let mut random = Streams::new(9, 0).stream("losses");
        let mut link = Link::new(parameters);
        let (mut queue, mut down, mut up) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let (mut arrivals, mut sent, mut lost) = (vec![0_u32; 20_000], 0, 0);
        let mut tick = 0;
        while sent < arrivals.len() || !queue.is_empty() {
            tick += 1;
            if tick % 5 > 0 && sent < arrivals.len() {
                queue.extend(link.send([sent as u64]));
                sent += 1;
            }
            if let Some(packet) = queue.pop_front() {
                let is_lost = random.bernoulli(loss);
                lost += usize::from(is_lost);
                down.push_back((tick + 50, packet, is_lost));
            }
            while let Some((_, packet, is_lost)) = down.pop_front_if(|&mut (due, ..)| due <= tick) {
                if !is_lost {
                    arrivals[seq(&packet) as usize] += 1;
                    up.extend(link.arrive(at(tick), &[packet]).into_iter().map(|quack| (tick + 50, quack)));
                }
            }
            while let Some((_, quack)) = up.pop_front_if(|&mut (due, _)| due <= tick) {
                link.repair(&[quack]).into_iter().rev().for_each(|repair| queue.push_front(repair));
            }
        }
        assert!(arrivals.iter().all(|&arrivals| arrivals <= 1), "{loss}");
        let missing = arrivals[..19_800].iter().filter(|&&arrivals| arrivals == 0).count();
        assert!((missing as f64) < most_missing * lost as f64, "{loss}: {missing} of {lost}");
    }
}

/// What would change, delay or hide packets between the two ends, or change their order.
#[test]
fn what_does_not_go_together_is_refused() {
    let schemes = schemes_of("snoop = { expedite = false }\nsidekick = { expedite = false }");
    let expediting = schemes_of("");
    for (schemes, name, reason) in [
        (
            &schemes,
            "sidekick + snoop",
            "\"snoop\" may change packets between the ends of \"sidekick\", unless",
        ),
        (&schemes, "sidekick + wtcp-timestamps", "unless \"wtcp-timestamps\" is named first"),
        (
            &schemes,
            "sidekick + packet-fec",
            "\"packet-fec\" hides from \"sidekick\" which packets the link loses",
        ),
        (
            &schemes,
            "packet-fec + sidekick",
            "\"packet-fec\" hides from \"sidekick\" which packets the link loses",
        ),
        (&schemes, "acks-first + sidekick", "\"acks-first\" lets some packets of a flow go first"),
        (
            &expediting,
            "snoop + sidekick",
            "\"snoop\" lets some packets of a flow go first, and \"sidekick\" relies",
        ),
        (
            &expediting,
            "sidekick + snoop",
            "\"snoop\" lets some packets of a flow go first, and \"sidekick\" relies",
        ),
    ] {
        match schemes.combination(name) {
            Err(CombinationError::Conflict(found)) => assert!(found.contains(reason), "{name}: {found}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    for name in ["snoop + sidekick", "wtcp-timestamps + sidekick", "multicast + sidekick", "sidekick + arq"] {
        schemes.combination(name).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    }
}
