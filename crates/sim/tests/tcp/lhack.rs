//! Acknowledgements of hops in a network: a base station beside the source, beside the destination, or
//! both; data, acknowledgements and notices are lost on either side of it.

use lasthop_base::{BitRate, Duration, Stream, Streams, Time};
use lasthop_proto::scheme::{Scheme, Schemes};
use lasthop_proto::tcp::{Flavour, Profile, Reaction, Receiver, Sender, Settings, Transfer};
use lasthop_proto::{Component, ComponentId, Packet, Port};
use lasthop_sim::{Builder, Ended, Engine, QueueLimit, Tap, Wire, WireId, WiredLink};

use crate::exhaustive::{FLAVOURS, by_order, check, nothing};
use crate::invariants::Invariants;
use crate::net::{CONNECTION, Filter, Loses, finish, first_byte, segments, slack};
use crate::worlds::{milliseconds, pick, queue, settings};

/// What stands between source and destination.
enum Stage {
    /// A link each way.
    Hop(WiredLink),
    /// Packets are lost: there, and on the way back.
    Losses(Loses, Loses),
    /// A base station, by its side towards the source.
    Station(Port),
}

fn with_lhack<T>(look: impl FnOnce(&dyn Scheme) -> Option<T>) -> T {
    Schemes::default().get("lhack").and_then(look).expect("it has one")
}

fn reaction() -> Option<Box<dyn Reaction>> {
    Some(with_lhack(|scheme| scheme.reaction()))
}

/// Where one enters and leaves a stage, there and back.
fn add(net: &mut Builder, stage: Stage) -> [(ComponentId, Port); 4] {
    let filter = |loses| Box::new(Filter(loses)) as Box<dyn Component>;
    let (there, back) = match stage {
        Stage::Hop(link) => (net.add(link.clone()), net.add(link)),
        Stage::Losses(there, back) => (net.add(filter(there)), net.add(filter(back))),
        Stage::Station(near) => {
            let id = net.add(with_lhack(|scheme| scheme.agent()));
            return [(id, near), (id, near.across()), (id, near.across()), (id, near)];
        }
    };
    [there, there, back, back].map(|id| (id, Port::ONLY))
}

/// Runs a transfer through the stages until it is complete.
fn run<T: Tap>(
    settings: &Settings,
    bytes: u64,
    stages: Vec<Stage>,
    reaction: Option<Box<dyn Reaction>>,
    tap: impl FnOnce(ComponentId) -> T,
) -> (Engine<T>, (ComponentId, ComponentId), Ended) {
    let mut net = Builder::new();
    let transfer = Transfer { bytes: Some(bytes), start: Time::ZERO };
    let sender = net.add(Sender::new(CONNECTION, settings, transfer, reaction));
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

/// The same under the scheme, with all that must hold.
fn transfer(settings: &Settings, bytes: u64, stages: Vec<Stage>) {
    // Limited transmit goes on as long as duplicates are early, and after a repair of the first hop many are.
    let slack = if settings.limited_transmit { settings.window_payload() } else { slack(settings, true) };
    let tap = |receiver| Invariants::new(receiver, first_byte(settings), slack);
    let (engine, ends, ended) = run(settings, bytes, stages, reaction(), tap);
    finish(engine, ends, ended, bytes);
}

/// Base stations of a path, by their sides towards the source: which end is mobile.
const PATHS: [&[Port]; 3] = [&[Port::WIRED], &[Port::RADIO], &[Port::RADIO, Port::WIRED]];

/// Links, with losses at each end of each base station.
fn path(random: &mut Stream, streams: &Streams, settings: &Settings, stations: &[Port]) -> Vec<Stage> {
    let hop = |random: &mut Stream| {
        let rate = BitRate::from_bps(56_000 + random.below(10_000_000)).expect("not zero");
        Stage::Hop(WiredLink::new(rate, milliseconds(random, 50), queue(random, settings.packet_size)))
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
        stages.push(Stage::Station(near));
        stages.push(losses(random, format!("{number}:far")));
        stages.push(hop(random));
    }
    stages
}

const WORLDS: u64 = 5_000;

/// Whatever is lost where, the stream arrives whole, the windows are kept and the timer runs.
#[test]
fn streams_are_whole_in_random_worlds() {
    for number in 0..WORLDS {
        for stations in PATHS {
            check(&format!("world {number}, {stations:?}"), || {
                let streams = Streams::new(number, 0);
                let random = &mut streams.stream("lhack");
                let settings = settings(random);
                let bytes = 1 + random.below(60 * u64::from(settings.mss()));
                transfer(&settings, bytes, path(random, &streams, &settings, stations));
            });
        }
    }
}

/// Every packet with where and when.
#[derive(Debug, Default, PartialEq)]
struct Log(Vec<(Time, WireId, Packet)>);

impl Tap for Log {
    fn cross(&mut self, now: Time, wire: Wire, packet: &Packet) {
        self.0.push((now, wire.id, *packet));
    }
}

/// The whole course of a transfer is the same with the scheme's reaction as with none.
fn assert_like_the_standard(settings: &Settings, bytes: u64, stages: impl Fn() -> Vec<Stage>) {
    let log = |reaction| run(settings, bytes, stages(), reaction, |_| Log::default()).0.into_tap();
    let (found, standard) = (log(reaction()).0, log(None).0);
    if let Some(index) = (0..found.len().max(standard.len())).find(|&i| found.get(i) != standard.get(i)) {
        panic!("packet {index}: {:?} instead of {:?}", found.get(index), standard.get(index));
    }
}

/// "If no lhacks are received, [...] the source should behave as in the standard TCP protocol" (section 4):
/// the same packets at the same instants, in any world.
#[test]
fn without_lhacks_the_source_is_a_standard_one() {
    for number in 0..WORLDS {
        check(&format!("world {number}"), || {
            let streams = Streams::new(number, 0);
            let random = streams.stream("standard");
            let settings = settings(&mut random.clone());
            let bytes = 60 * u64::from(settings.mss());
            let stages = || {
                let random = &mut random.clone();
                let silent = |stage: &Stage| !matches!(stage, Stage::Station(_));
                path(random, &streams, &settings, PATHS[0]).into_iter().filter(silent).collect()
            };
            assert_like_the_standard(&settings, bytes, stages);
        });
    }
}

/// "[...] or the messages were lost due to congestion": the same if lhacks come of all that was not lost.
/// Nothing is lost behind the base station, nothing but data, and no timer runs out early. With SACK more
/// is sent again than was lost (RFC 6675: the rescue; ns-2: what too few blocks did not report), and an
/// lhack of it may come before the acknowledgement.
#[test]
fn under_congestion_alone_the_source_is_a_standard_one() {
    for number in 0..WORLDS {
        check(&format!("world {number}"), || {
            let streams = Streams::new(number, 0);
            let random = &mut streams.stream("congestion");
            let drawn = settings(random);
            let settings = Settings {
                flavour: pick(random, &[Flavour::Tahoe, Flavour::Reno, Flavour::NewReno]),
                careful: true,
                ack_every: 1,
                rto_min: Duration::from_secs(2),
                rto_initial: Duration::from_secs(3),
                rto_max: Duration::from_secs(60),
                ..drawn
            };
            let bytes = 60 * u64::from(settings.mss());
            let loss = pick(random, &[0.01, 0.03, 0.1]);
            let stages = || {
                let rate = BitRate::from_bps(10_000_000).expect("not zero");
                let hop = WiredLink::new(rate, Duration::from_millis(40), QueueLimit::Unlimited);
                let mut bits = streams.stream("bits");
                let data = Box::new(move |_: &Packet| bits.bernoulli(loss));
                let losses = Stage::Losses(data, nothing());
                vec![Stage::Hop(hop.clone()), losses, Stage::Station(Port::WIRED), Stage::Hop(hop)]
            };
            assert_like_the_standard(&settings, bytes, stages);
        });
    }
}

/// A link of 10 Mb/s and 5 ms on either side of a base station, by its side towards the source.
fn station(near: Port, before: Stage, behind: Stage) -> Vec<Stage> {
    let rate = BitRate::from_bps(10_000_000).expect("not zero");
    let hop = || Stage::Hop(WiredLink::new(rate, Duration::from_millis(5), QueueLimit::Unlimited));
    vec![hop(), before, Stage::Station(near), behind, hop()]
}

/// Every flavour by both rules, in few packets.
fn variants() -> impl Iterator<Item = Settings> {
    let profiles = [Settings::default(), Profile::Ns2.settings()];
    let settings = |flavour| profiles.clone().map(|base| Settings { flavour, handshake: false, ..base });
    FLAVOURS.into_iter().flat_map(settings).collect::<Vec<_>>().into_iter()
}

/// Each of the first eight packets arrives, is lost before the base station, or is lost behind it.
#[test]
fn any_loss_of_the_first_eight_on_either_side() {
    for settings in variants() {
        for near in [Port::WIRED, Port::RADIO] {
            for pattern in 0..3u32.pow(8) {
                check(&format!("{settings:?}, {near:?}, pattern {pattern} to the base of three"), || {
                    let fates: Vec<u32> = (0..8).map(|n| pattern / 3u32.pow(n) % 3).collect();
                    let bits = |fate, among: &[u32]| {
                        among.iter().enumerate().map(|(n, &f)| u32::from(f == fate) << n).sum::<u32>()
                    };
                    let passed: Vec<u32> = fates.iter().copied().filter(|&fate| fate != 1).collect();
                    let before = Stage::Losses(by_order(bits(1, &fates)), nothing());
                    let behind = Stage::Losses(by_order(bits(2, &passed)), nothing());
                    transfer(&settings, segments(&settings, 10), station(near, before, behind));
                });
            }
        }
    }
}

/// Each of the first eight packets on the way back to the source, notices most of them, arrives or is lost,
/// and one of the data packets is lost on either side.
#[test]
fn any_loss_of_the_first_eight_notices() {
    for settings in variants() {
        for near in [Port::WIRED, Port::RADIO] {
            for (pattern, lost) in (0..1u32 << 8).flat_map(|pattern| (0..8).map(move |lost| (pattern, lost)))
            {
                check(&format!("{settings:?}, {near:?}, lost {pattern:08b}, packet {lost}"), || {
                    let (one, none) = (by_order(1 << lost), nothing());
                    let (before, behind) = if pattern % 2 == 0 { (one, none) } else { (none, one) };
                    let before = Stage::Losses(before, by_order(pattern));
                    let behind = Stage::Losses(behind, nothing());
                    transfer(&settings, segments(&settings, 10), station(near, before, behind));
                });
            }
        }
    }
}
