//! A path of links and base stations between a source and a destination, with losses on both sides of each
//! base station.

use std::env;

use lasthop_base::{BitRate, Duration, Probability, Stream, Streams, Time};
use lasthop_channel::{FrameLoss, Model};
use lasthop_proto::tcp::{Reactions, Receiver, Sender, Settings, Transfer};
use lasthop_proto::{Component, ComponentId, Packet, Port};
use lasthop_sim::{Builder, Ended, Engine, Link, QueueLimit, RadioConfig, Tap, Wire, WireId};

use crate::net::{CONNECTION, Filter, Loses, by_order, nothing};
use crate::random::{milliseconds, pick, queue};

/// An element of the path between source and destination.
pub enum Stage {
    /// A link, in the forward and the reverse direction.
    Links([Link; 2]),
    /// Losses in the forward and the reverse direction.
    Losses(Loses, Loses),
    /// A base station with a scheme's agent, with its port towards the source.
    Station(Box<dyn Component>, Port),
}

impl Stage {
    /// A wired link, alike in both directions.
    pub fn wire(rate: BitRate, delay: Duration, queue: QueueLimit) -> Stage {
        Stage::Links([(); 2].map(|()| Link::wired(rate, delay, queue)))
    }
}

/// The ports at which packets enter and leave a stage, forward and reverse.
fn add(net: &mut Builder, stage: Stage) -> [(ComponentId, Port); 4] {
    let filter = |loses| Box::new(Filter(loses)) as Box<dyn Component>;
    let (there, back) = match stage {
        Stage::Links(links) => links.map(|link| net.add(link)).into(),
        Stage::Losses(there, back) => (net.add(filter(there)), net.add(filter(back))),
        Stage::Station(agent, near) => {
            let id = net.add(agent);
            return [(id, near), (id, near.across()), (id, near.across()), (id, near)];
        }
    };
    [there, there, back, back].map(|id| (id, Port::ONLY))
}

/// Runs a transfer through the stages until it completes.
pub fn run<T: Tap>(
    settings: &Settings,
    bytes: u64,
    stages: Vec<Stage>,
    reactions: impl Into<Reactions>,
    tap: impl FnOnce(ComponentId) -> T,
) -> (Engine<T>, (ComponentId, ComponentId), Ended) {
    let mut net = Builder::new();
    let transfer = Transfer { bytes: Some(bytes), start: Time::ZERO };
    let sender = net.add(Sender::new(CONNECTION, settings, transfer, reactions));
    let receiver = net.add(Receiver::new(CONNECTION, settings));
    let (mut there, mut back) = ((sender, Port::ONLY), (sender, Port::ONLY));
    for stage in stages {
        let [enters, leaves, returns, arrives] = add(&mut net, stage);
        net.connect(there, enters);
        net.connect(arrives, back);
        (there, back) = (leaves, returns);
    }
    net.connect(there, (receiver, Port::ONLY));
    net.connect((receiver, Port::ONLY), back);
    let mut engine = net.build(tap(receiver));
    let ended = engine.run(&[sender], Time::ZERO + Duration::from_secs(1_000_000));
    (engine, (sender, receiver), ended)
}

/// Base stations of a path, by their ports towards the source: these determine which end is mobile.
pub const PATHS: [&[Port]; 3] = [&[Port::WIRED], &[Port::RADIO], &[Port::RADIO, Port::WIRED]];

/// Links with losses on both sides of each base station.
pub fn path(
    random: &mut Stream,
    streams: &Streams,
    settings: &Settings,
    stations: &[Port],
    agent: impl Fn() -> Box<dyn Component>,
) -> Vec<Stage> {
    let hop = |random: &mut Stream| {
        let rate = BitRate::from_bps(56_000 + random.below(10_000_000)).expect("not zero");
        Stage::wire(rate, milliseconds(random, 50), queue(random, settings.packet_size))
    };
    let losses = |random: &mut Stream, name: String| {
        let mut draw = |way: &str| -> Loses {
            let loss = pick(random, &[0.0, 0.02, 0.1]);
            let mut bits = streams.stream(&format!("{name}:{way}"));
            Box::new(move |_: &Packet| bits.bernoulli(loss))
        };
        Stage::Losses(draw("there"), draw("back"))
    };
    let mut stages = vec![hop(random)];
    for (number, &near) in stations.iter().enumerate() {
        stages.push(losses(random, format!("{number}:near")));
        stages.push(Stage::Station(agent(), near));
        stages.push(losses(random, format!("{number}:far")));
        stages.push(hop(random));
    }
    stages
}

/// 10 Mb/s and 5 ms on either side of a base station whose port towards the source is `near`, with losses before
/// and behind it.
pub fn station(agent: Box<dyn Component>, near: Port, [before, behind]: [Stage; 2]) -> Vec<Stage> {
    let rate = BitRate::from_bps(10_000_000).expect("not zero");
    let hop = || Stage::wire(rate, Duration::from_millis(5), QueueLimit::Unlimited);
    vec![hop(), before, Stage::Station(agent, near), behind, hop()]
}

/// The patterns of [`losses_by_pattern`] that a variant of a test meets: every other one, and those between by the next
/// variant. Any seven packets have all fates in either half. With `LASTHOP_PATTERNS`, all patterns.
pub fn patterns(variant: usize) -> impl Iterator<Item = u32> {
    let all = env::var_os("LASTHOP_PATTERNS").is_some();
    (0..3u32.pow(8)).filter(move |&pattern| all || (pattern as usize + variant).is_multiple_of(2))
}

/// Losses of the first eight packets before and behind a base station. Each digit of `pattern` to the base of three
/// is the fate of a packet: it arrives (0), is lost before the base station (1), or is lost beyond it (2).
pub fn losses_by_pattern(pattern: u32) -> [Stage; 2] {
    let (mut before, mut behind, mut passed) = (0, 0, 0);
    for packet in 0..8 {
        match pattern / 3u32.pow(packet) % 3 {
            1 => before |= 1 << packet,
            fate => {
                behind |= u32::from(fate == 2) << passed;
                passed += 1;
            }
        }
    }
    [before, behind].map(|lost| Stage::Losses(by_order(lost), nothing()))
}

/// A wireless link in each direction, which loses packets with the probability `loss`.
pub fn lossy_air(config: RadioConfig, loss: f64, streams: &Streams) -> Stage {
    let model = Model::FrameLoss(FrameLoss { loss: Probability::new(loss).expect("in [0, 1]") });
    Stage::Links(["down", "up"].map(|way| {
        let [bits, backoff] = ["bits", "backoff"].map(|name| streams.stream(&format!("{name}:{way}")));
        let channel = model.build(streams.stream("channel"));
        Link::radio(config, QueueLimit::Unlimited, channel, bits, backoff)
    }))
}

/// All packets with their times and wires.
pub type Course = Vec<(Time, WireId, Packet)>;

#[derive(Default)]
struct Log(Course);

impl Tap for Log {
    fn cross(&mut self, now: Time, wire: Wire, packet: &Packet) {
        self.0.push((now, wire.id, *packet));
    }
}

/// The packets of a transfer.
pub fn course(
    settings: &Settings,
    bytes: u64,
    stages: Vec<Stage>,
    reactions: impl Into<Reactions>,
) -> Course {
    run(settings, bytes, stages, reactions, |_| Log::default()).0.into_tap().0
}

/// Asserts that two transfers are identical, packet by packet and in time.
pub fn assert_same_course(found: &Course, expected: &Course) {
    if let Some(index) = (0..found.len().max(expected.len())).find(|&i| found.get(i) != expected.get(i)) {
        panic!("packet {index}: {:?} instead of {:?}", found.get(index), expected.get(index));
    }
}
