//! Links with managed queues in the engine.

use lasthop_base::{BitRate, Bytes, Duration, Probability, Stream, Streams, Time};
use lasthop_channel::{FrameLoss, Model};
use lasthop_link::queue::{Management, codel, fq_codel, red};
use lasthop_proto::arq::{self, Backoff, Retransmissions, selective_repeat, stop_and_wait};
use lasthop_proto::tcp::Connection;
use lasthop_proto::traffic::{Config, Pattern, Sink, Source};
use lasthop_proto::{ComponentId, DropReason, Ecn, Effect, FlowId, HostId, Out, Packet, Port};
use lasthop_sim::{Builder, Link, Node, QueueLimit, RadioConfig, Tap, Wire};
use lasthop_testing::net::plain_radio;
use lasthop_testing::random::{management, pick};

use crate::disciplines::bench::{packet, seq, us};

const SINK: ComponentId = ComponentId(0);
const LINK: ComponentId = ComponentId(1);

/// Packets that enter and leave the link, and its drops.
#[derive(Debug, Default, PartialEq)]
struct Record {
    entered: u64,
    left: Vec<(Time, Packet)>,
    dropped: Vec<(Time, Packet, DropReason)>,
}

impl Tap for Record {
    fn cross(&mut self, now: Time, wire: Wire, packet: &Packet) {
        if wire.from.0 == LINK {
            self.left.push((now, *packet));
        } else {
            self.entered += 1;
        }
    }

    fn drop(&mut self, now: Time, at: ComponentId, packet: &Packet, reason: DropReason) {
        assert_eq!(at, LINK);
        self.dropped.push((now, *packet, reason));
    }
}

/// Random sources before a link. Returns what crossed the link, and the number of packets in it at the end.
fn run(seed: u64, link: impl FnOnce(Streams) -> Node) -> (Record, u64) {
    let streams = Streams::new(seed, 0);
    let mut random = streams.stream("world");
    let mut net = Builder::new();
    assert_eq!(net.add(Sink::new()), SINK);
    assert_eq!(net.add(link(streams)), LINK);
    net.connect((LINK, Port::ONLY), (SINK, Port::ONLY));
    for index in 0..3 {
        let connection = Connection { src: HostId(1), dst: HostId(0), flow: FlowId(index) };
        let rate = BitRate::from_bps(100_000 + random.below(400_000)).unwrap();
        let pattern = pick(&mut random, &[Pattern::Constant { rate }, Pattern::Poisson { rate }]);
        let size = Bytes(40 + random.below(1_400));
        let stop = Time::ZERO + Duration::from_secs(4);
        let config = Config {
            size,
            start: Time::ZERO + random.up_to(Duration::from_millis(9)),
            stop,
            pattern,
            dscp: lasthop_proto::Dscp::DEFAULT,
        };
        let source = net.add(Source::new(connection, config, streams.stream(&format!("traffic:{index}"))));
        net.connect((source, Port::ONLY), (LINK, Port::ONLY));
    }
    let mut engine = net.build(Record::default());
    engine.run(&[], Time::ZERO + Duration::from_secs(600));
    let Node::Sink(sink) = engine.node(SINK) else { panic!("a sink") };
    let arrived = sink.stats().packets;
    let stats = match engine.node(LINK) {
        Node::Link(link) => link.stats(),
        _ => panic!("a link"),
    };
    let record = engine.into_tap();
    let dropped = |reason| record.dropped.iter().filter(|drop| drop.2 == reason).count() as u64;
    assert_eq!(stats.overflowed, dropped(DropReason::QueueFull));
    assert_eq!(stats.early_drops, dropped(DropReason::ActiveQueue));
    assert_eq!(record.left.len() as u64, arrived);
    let held = record.entered - arrived - record.dropped.len() as u64;
    (record, held)
}

fn rate() -> BitRate {
    BitRate::from_bps(700_000).unwrap()
}

const DELAY: Duration = Duration::from_millis(7);

fn radio(arq: arq::Config) -> RadioConfig {
    let mtu = lasthop_proto::frag::Mtu::new(Bytes(500));
    RadioConfig { delay: DELAY, mtu, arq, ..plain_radio(rate()) }
}

fn arqs() -> [arq::Config; 3] {
    let retransmissions = Retransmissions::AtMost(3);
    let backoff = Backoff::Uniform(Duration::from_millis(20));
    let (feedback_delay, slot) = (Duration::from_millis(15), Duration::ZERO);
    [
        arq::Config::None,
        arq::Config::StopAndWait(stop_and_wait::Params { retransmissions, backoff }),
        arq::Config::SelectiveRepeat(selective_repeat::Params { retransmissions, feedback_delay, slot }),
    ]
}

fn air_time(size: Bytes) -> Duration {
    rate().time_for(size)
}

fn over_the_air(arq: arq::Config, management: Option<Management>, streams: Streams) -> Node {
    let channel = Model::FrameLoss(FrameLoss { loss: Probability::new(0.1).unwrap() });
    let channel = channel.build(streams.stream("channel"));
    let (bits, backoff): (Stream, Stream) = (streams.stream("bits"), streams.stream("backoff"));
    match management {
        None => Link::radio(radio(arq), QueueLimit::Unlimited, channel, bits, backoff).into(),
        Some(management) => {
            let queue = management.build(air_time, streams.stream("queue"));
            Link::radio(radio(arq), queue, channel, bits, backoff).into()
        }
    }
}

/// Disciplines that never act.
fn idle_managements() -> [Management; 3] {
    let limit = QueueLimit::Unlimited;
    let target = Duration::from_secs(1_000_000);
    [
        Management::Codel(codel::Params { limit, target, ..codel::Params::default() }),
        Management::FqCodel(fq_codel::Params { limit, target, flows: 1, ..fq_codel::Params::default() }),
        Management::Red(red::Params { limit, min: 1e9, max: 2e9, ..red::Params::default() }),
    ]
}

/// A discipline that never drops equals an unlimited drop-tail queue: equal departure times and equal losses
/// on the air.
#[test]
fn an_inactive_discipline_equals_drop_tail() {
    for seed in 0..20 {
        let plain = run(seed, |_| Link::wired(rate(), DELAY, QueueLimit::Unlimited).into());
        for management in idle_managements() {
            let queue = |streams: Streams| management.build(air_time, streams.stream("queue"));
            let managed = run(seed, |streams| Link::wired(rate(), DELAY, queue(streams)).into());
            assert_eq!(managed, plain, "{management:?}, seed {seed}");
        }
        for arq in arqs() {
            let plain = run(seed, |streams| over_the_air(arq, None, streams));
            assert!(!plain.0.dropped.is_empty() || arq != arq::Config::None, "the air loses some");
            for management in idle_managements() {
                let managed = run(seed, |streams| over_the_air(arq, Some(management), streams));
                assert_eq!(managed, plain, "{management:?} and {arq:?}, seed {seed}");
            }
        }
    }
}

/// Every packet that enters leaves or is dropped once the sources stop, for every discipline and link; the
/// same seed gives the same run.
#[test]
fn links_conserve_packets() {
    let mut acted = 0;
    for seed in 0..100 {
        let management = management(&mut Streams::new(seed, 1).stream("management"));
        let queue = |streams: Streams| management.build(air_time, streams.stream("queue"));
        let wired = || run(seed, |streams| Link::wired(rate(), DELAY, queue(streams)).into());
        let mut runs = vec![(wired(), wired())];
        for arq in arqs() {
            let over = || run(seed, |streams| over_the_air(arq, Some(management), streams));
            runs.push((over(), over()));
        }
        for ((record, held), again) in runs {
            let acts = |drop: &&(Time, Packet, DropReason)| drop.2 == DropReason::ActiveQueue;
            acted += record.dropped.iter().filter(acts).count();
            assert!(record.entered > 100);
            let busy =
                record.left.last().is_none_or(|last| last.0 > Time::ZERO + Duration::from_millis(4_950));
            assert!(
                held == 0 || busy,
                "{held} packets are left in a silent link: {management:?}, seed {seed}"
            );
            assert_eq!((record, held), again, "{management:?}, seed {seed}");
        }
    }
    assert!(acted > 1_000, "only {acted} packets were dropped by a discipline");
}

/// A component driven by hand, with a transmission time of 10 ms per packet of 100 bytes.
struct ByHand {
    link: Node,
    out: Out,
}

impl ByHand {
    fn new(link: Node) -> ByHand {
        ByHand { link, out: Out::default() }
    }

    /// Wakes the component as the engine would until `end`. Returns the packets that left and those that were
    /// dropped.
    fn run(&mut self, end: Time) -> (Vec<u64>, Vec<u64>) {
        let (mut left, mut dropped) = (Vec::new(), Vec::new());
        loop {
            while let Some((_, effect)) = self.out.take() {
                match effect {
                    Effect::Send(_, packet) => left.push(seq(&packet)),
                    Effect::Drop(packet, _) | Effect::Corrupt(_, packet) => dropped.push(seq(&packet)),
                    Effect::Signal(_) => {}
                }
            }
            let due = self.link.next_wakeup();
            if due > end {
                return (left, dropped);
            }
            self.link.wake(due, &mut self.out);
        }
    }

    fn come(&mut self, now: Time, flow: u32, number: u64, size: u64) {
        let packet = packet(flow, number, size, Ecn::NotEct);
        self.link.receive(now, &packet, Port::ONLY, &mut self.out);
    }
}

/// The same queue before a wired link, and before error-free wireless ones with and without an ARQ.
fn links(management: Management) -> [Node; 4] {
    let rate = BitRate::from_bps(80_000).unwrap();
    let queue = || management.build(|size| rate.time_for(size), Streams::new(1, 0).stream("queue"));
    let wired = Link::wired(rate, Duration::ZERO, queue()).into();
    let [none, stop, selective] = arqs().map(|arq| {
        let config = RadioConfig { rate, delay: Duration::ZERO, mtu: None, ..radio(arq) };
        let stream = |name| Streams::new(1, 0).stream(name);
        let channel = Model::Perfect.build(stream("channel"));
        Link::radio(config, queue(), channel, stream("bits"), stream("backoff")).into()
    });
    [wired, none, stop, selective]
}

/// A packet that arrives at the instant of a departure finds the room made by it, whether or not the link was
/// woken before.
#[test]
fn room_made_at_the_arrival_instant_counts() {
    let limit = QueueLimit::Packets(1);
    for woken in [false, true] {
        for link in links(Management::Codel(codel::Params { limit, ..codel::Params::default() })) {
            let mut hand = ByHand::new(link);
            // The first packet is in transmission, the second waits, the third finds no room.
            (0..3).for_each(|number| hand.come(ms(0), 0, number, 100));
            assert_eq!(hand.run(ms(9)), (vec![], vec![2]));
            let mut left = if woken { hand.run(ms(10)).0 } else { vec![] };
            hand.come(ms(10), 0, 3, 100);
            let (rest, dropped) = hand.run(ms(1_000));
            left.extend(rest);
            assert_eq!((left, dropped), (vec![0, 1, 3], vec![]), "woken {woken}");
        }
    }
}

/// An idle link accepts a packet whatever its queue limit.
#[test]
fn an_idle_link_accepts_a_packet_without_queue_space() {
    let (none, small) = (QueueLimit::Packets(0), QueueLimit::Bytes(Bytes(50)));
    for limit in [none, small] {
        for management in [
            Management::Codel(codel::Params { limit, ..codel::Params::default() }),
            Management::FqCodel(fq_codel::Params { limit, ..fq_codel::Params::default() }),
            Management::Red(red::Params { limit, ..red::Params::default() }),
        ] {
            for link in links(management) {
                let mut hand = ByHand::new(link);
                (0..2).for_each(|number| hand.come(ms(0), 0, number, 100));
                assert_eq!(hand.run(ms(1_000)), (vec![0], vec![1]), "{management:?}");
                hand.come(ms(1_000), 0, 2, 100);
                assert_eq!(hand.run(ms(2_000)).0, [2]);
            }
        }
    }
}

/// A discipline is notified when its queue runs empty, on every link: a flow after a long silence is new
/// again and served in order of arrival.
#[test]
fn a_discipline_is_notified_of_an_empty_queue() {
    let params = fq_codel::Params { quantum: Bytes(150), ..fq_codel::Params::default() };
    for link in links(Management::FqCodel(params)) {
        let mut hand = ByHand::new(link);
        // Two packets of flow 1 exceed its quantum.
        (0..2).for_each(|number| hand.come(ms(0), 1, number, 100));
        assert_eq!(hand.run(ms(1_000)).0, [0, 1]);
        hand.come(ms(1_000), 0, 2, 100);
        (3..5).for_each(|number| hand.come(ms(1_001), number as u32 - 2, number, 100));
        assert_eq!(hand.run(ms(2_000)).0, [2, 3, 4]);
    }
}

fn ms(after: u64) -> Time {
    us(after * 1_000)
}
