//! Radio network feedback in a network: a base station beside the source, beside the destination, or both,
//! with losses on either side.

use std::sync::atomic::{AtomicUsize, Ordering};

use lasthop_base::{BitRate, Bytes, Duration, Stream, Streams, Time};
use lasthop_proto::scheme::{LinkEnd, Scheme, Schemes};
use lasthop_proto::tcp::{
    Congestion, EcnMode, Flags, Flavour, Profile, Reactions, Segment, SeqNum, Settings,
};
use lasthop_proto::{Body, Component, Effect, Out, Packet, Port, Probe};
use lasthop_sim::{NoTap, Node, QueueLimit, RadioConfig};
use lasthop_testing::check;
use lasthop_testing::invariants::Invariants;
use lasthop_testing::net::{finish, first_byte, nothing, plain_radio, segments, slack};
use lasthop_testing::random::{FLAVOURS, pick, settings};
use lasthop_testing::schemes::{agent, installed, site};
use lasthop_testing::stations::{
    Course, PATHS, Stage, assert_same_course, course, losses_by_pattern, lossy_air, path, patterns, run,
    station,
};

const WORLDS: u64 = 5_000;

fn reactions(schemes: &Schemes) -> Reactions {
    installed(schemes, "wenp").reactions()
}

/// The scheme's agent, with checks: each packet is forwarded at once, alone and unchanged but for the bit,
/// which only a pure acknowledgement from the air that requests forwarded data gets.
struct Watched {
    agent: Box<dyn Component>,
    bit: Flags,
    passed: Vec<(SeqNum, SeqNum)>,
}

impl Watched {
    fn of(schemes: &Schemes) -> Box<dyn Component> {
        let agent = agent(schemes, "wenp");
        Box::new(Watched { agent, bit: Flags(1 << schemes.wenp.bit), passed: Vec::new() })
    }

    fn check(&self, port: Port, packet: &Packet, sent: &[Effect]) {
        let [Effect::Send(to, found)] = sent else { panic!("{packet:?}: {sent:?}") };
        assert_eq!(*to, port.across());
        if found == packet {
            return;
        }
        let segment = packet.segment().expect("only segments are marked");
        let flags = Flags(segment.flags.0 | self.bit.0);
        let marked = Packet { body: Body::Tcp(Segment { flags, ..*segment }), ..*packet };
        assert_eq!((port, found, segment.seq_len()), (Port::RADIO, &marked, 0));
        let ack = segment.ack;
        assert!(self.passed.iter().any(|&(start, end)| start <= ack && ack < end), "{ack} has not passed");
    }
}

impl Component for Watched {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        if let Some(segment) = packet.segment().filter(|_| port == Port::WIRED) {
            self.passed.push((segment.seq, segment.seq + segment.len));
        }
        let mut sent = Vec::new();
        let agent = &mut self.agent;
        out.redirect(
            |out| agent.receive(now, packet, port, out),
            |effect| {
                sent.push(effect);
                Some(effect)
            },
        );
        self.check(port, packet, &sent);
        assert_eq!(self.agent.next_wakeup(), Time::NEVER);
    }

    fn show(&self, probe: &mut dyn Probe) {
        self.agent.show(probe);
    }
}

/// The scheme with random parameters.
fn parameters(random: &mut Stream) -> Schemes {
    let mut schemes = Schemes::default();
    schemes.wenp.alpha = 0.5 + 0.5 * random.uniform();
    schemes.wenp.threshold = 1 + random.below(3) as u32;
    schemes.wenp.bit = 8 + random.below(4) as u8;
    schemes.wenp.cache = pick(random, &[1, 3, 1024]);
    schemes.wenp.connections = pick(random, &[1, 256]);
    schemes.wenp.idle = pick(random, &[1, 100, 120_000].map(Duration::from_millis));
    schemes.wenp.encrypted = random.below(8) == 0;
    assert!(schemes.wenp.faults(&Settings::default()).is_empty());
    schemes
}

/// Runs a transfer under the scheme and checks the invariants.
fn transfer(schemes: &Schemes, settings: &Settings, bytes: u64, stages: Vec<Stage>) {
    let tap = |receiver| {
        Invariants::new(receiver, first_byte(settings), slack(settings, true)).end_to_end(settings, true)
    };
    let (engine, ends, ended) = run(settings, bytes, stages, reactions(schemes), tap);
    finish(engine, ends, ended, bytes);
}

/// The stream arrives intact, windows are respected and the timer runs, whatever is lost; base stations only
/// mark.
// Rule: as any_loss_of_the_first_eight_on_either_side
#[test]
fn streams_arrive_intact_in_random_worlds() {
    for number in 0..WORLDS {
        for stations in PATHS {
            check(&format!("world {number}, {stations:?}"), || {
                let streams = Streams::new(number, 0);
                let random = &mut streams.stream("wenp");
                let (schemes, settings) = drawn(random);
                let bytes = 1 + random.below(60 * u64::from(settings.mss()));
                let stages = path(random, &streams, &settings, stations, || Watched::of(&schemes));
                transfer(&schemes, &settings, bytes, stages);
            });
        }
    }
}

/// Parameters and settings in which the scheme's bit is not that of accurate ECN.
fn drawn(random: &mut Stream) -> (Schemes, Settings) {
    let (mut schemes, settings) = (parameters(random), settings(random));
    if settings.ecn_mode() == EcnMode::Accurate {
        schemes.wenp.bit = schemes.wenp.bit.max(9);
    }
    (schemes, settings)
}

/// Transfers in a random world: one under the scheme, and one with a standard source.
fn with_and_without(
    number: u64,
    stations: &[Port],
    change: impl Fn(&mut Stream, &mut Schemes, &mut Settings),
) -> [Course; 2] {
    let streams = Streams::new(number, 0);
    let random = &mut streams.stream("standard");
    let (mut schemes, mut settings) = drawn(random);
    change(random, &mut schemes, &mut settings);
    let bytes = 60 * u64::from(settings.mss());
    let stages = || path(&mut random.clone(), &streams, &settings, stations, || Watched::of(&schemes));
    [reactions(&schemes), Reactions::default()].map(|reactions| course(&settings, bytes, stages(), reactions))
}

/// "Standard otherwise": without feedback the source sends equal packets at equal times, in any world. Here
/// the base station cannot read headers, or is at the side of a mobile source.
// Rule: Without feedback, or with standard parameters, identical to the standard source; with congestion
// losses only, up to the first timeout. [V-B; ../scheme/wenp/reaction.rs]
#[test]
fn without_feedback_the_source_is_standard() {
    for number in 0..WORLDS {
        check(&format!("world {number}, encrypted"), || {
            let [found, standard] =
                with_and_without(number, PATHS[0], |_, schemes, _| schemes.wenp.encrypted = true);
            assert_same_course(&found, &standard);
        });
        check(&format!("world {number}, a mobile source"), || {
            let [found, standard] = with_and_without(number, PATHS[1], |_, schemes, _| {
                schemes.wenp.encrypted = false;
            });
            assert_same_course(&found, &standard);
        });
    }
}

/// With alpha = 0.5 and TCP's own threshold feedback changes nothing, whatever is marked.
// Rule: as without_feedback_the_source_is_standard
#[test]
fn with_standard_parameters_the_source_is_standard() {
    let marked = AtomicUsize::new(0);
    for number in 0..WORLDS {
        check(&format!("world {number}"), || {
            let [found, standard] = with_and_without(number, PATHS[0], |_, schemes, settings| {
                schemes.wenp.alpha = 0.5;
                schemes.wenp.threshold = settings.dupthresh;
                // Other controllers have reduction factors of their own.
                if settings.congestion != Congestion::None {
                    settings.congestion = Congestion::Aimd;
                }
            });
            assert_same_course(&found, &standard);
            let bits = |packet: &Packet| packet.segment().is_some_and(|segment| segment.flags.0 >= 0x100);
            marked.fetch_add(found.iter().filter(|(_, _, packet)| bits(packet)).count(), Ordering::Relaxed);
        });
    }
    let marked = marked.into_inner();
    assert!(marked > WORLDS as usize, "{marked} crossings of marked acknowledgements");
}

/// Each of the first eight packets arrives, is lost before the base station, or is lost beyond it, with every
/// flavour; each meets half of the patterns by each rule set.
// Rule: Any losses on either side of base stations at either end: the stream arrives intact, windows are
// respected, the timer runs; base stations only mark. []
#[test]
fn any_loss_of_the_first_eight_on_either_side() {
    let schemes = Schemes::default();
    let bases = [Settings::default(), Profile::Ns2.settings()];
    for (variant, (flavour, base)) in FLAVOURS
        .iter()
        .enumerate()
        .flat_map(|(at, &f)| [(at, (f, bases[0].clone())), (at + 1, (f, bases[1].clone()))])
    {
        let settings = Settings { flavour, handshake: false, ..base };
        for pattern in patterns(variant) {
            check(
                &format!("{flavour:?}, {:?}, pattern {pattern} to the base of three", settings.rules),
                || {
                    let stages = station(Watched::of(&schemes), Port::WIRED, losses_by_pattern(pattern));
                    transfer(&schemes, &settings, segments(&settings, 10), stages);
                },
            );
        }
    }
}

/// With losses before the base station only, marks refer to repairs already forwarded and change nothing up
/// to the first timeout. Redundant retransmissions after it cause duplicates that request segments in flight.
// Rule: as without_feedback_the_source_is_standard
#[test]
fn with_congestion_losses_only_the_source_is_standard() {
    for number in 0..WORLDS {
        check(&format!("world {number}"), || {
            let streams = Streams::new(number, 0);
            let random = &mut streams.stream("congestion");
            let settings = Settings {
                flavour: pick(random, &[Flavour::NewReno, Flavour::Sack]),
                iss: pick(random, &[0, u32::MAX - 30_000]),
                ack_every: 1 + random.below(2) as u32,
                limited_transmit: random.bernoulli(0.5),
                window: (Bytes(1500) * (20 + random.below(40))).into(),
                ..Settings::default()
            };
            let (schemes, bytes) = (Schemes::default(), segments(&settings, 100));
            let loss = pick(random, &[0.01, 0.03, 0.1]);
            let last = SeqNum(settings.iss) + 90 * settings.mss();
            let stages = || {
                let mut bits = streams.stream("bits");
                let mut highest = SeqNum(settings.iss);
                let data = Box::new(move |packet: &Packet| {
                    let seq = packet.segment().expect("data").seq;
                    let new = seq > highest && seq < last;
                    highest = highest.max(seq);
                    new && bits.bernoulli(loss)
                });
                let losses = [Stage::Losses(data, nothing()), Stage::Losses(nothing(), nothing())];
                station(Watched::of(&schemes), Port::WIRED, losses)
            };
            let [mut found, mut standard] = [reactions(&schemes), Reactions::default()]
                .map(|reactions| course(&settings, bytes, stages(), reactions));
            let silence = |pair: &[(Time, _, _)]| pair[1].0 > pair[0].0 + Duration::from_millis(500);
            let until = standard.windows(2).position(silence).map_or(standard.len(), |last| last + 1);
            found.truncate(until);
            standard.truncate(until);
            assert_same_course(&found, &standard);
        });
    }
}

/// Completion time in seconds of a transfer of 2 MB over a wireless hop of 5 Mb/s with 1 % loss in each
/// direction and a wired delay of 20 ms.
fn completion(flavour: Flavour, number: u64, scheme: &str) -> f64 {
    let settings = Settings { flavour, window: Bytes(1 << 20).into(), ..Settings::default() };
    let streams = Streams::new(number, 0);
    let rate = |bps| BitRate::from_bps(bps).expect("not zero");
    let wire = Stage::wire(rate(100_000_000), Duration::from_millis(20), QueueLimit::Unlimited);
    let config = RadioConfig { delay: Duration::from_millis(1), ..plain_radio(rate(5_000_000)) };
    let air = lossy_air(config, 0.01, &streams);
    let schemes = Schemes::default();
    let scheme = installed(&schemes, scheme);
    let agent = scheme
        .agents(LinkEnd::BaseStation)
        .next()
        .map(|_| Stage::Station(scheme.agent(0, &site()), Port::WIRED));
    let stages = [Some(wire), agent, Some(air)];
    let bytes = 2_000_000;
    let stages = stages.into_iter().flatten().collect();
    let (engine, (sender, _), _) = run(&settings, bytes, stages, scheme.reactions(), |_| NoTap);
    let Node::Sender(source) = engine.node(sender) else { unreachable!("the node has this kind") };
    source.stats().completed.expect("it completes").as_secs_f64()
}

/// Over a lossy wireless hop every flavour is faster with feedback: over sixty pairs of runs, the mean
/// logarithm of the ratio of times is below zero by more than 3.47 standard errors, at a confidence of 99.95
/// % (Student's t, 59 degrees of freedom). The largest possible gain is a factor of 1.5: (1 + alpha) / (1 -
/// alpha) is 7 instead of 3, and throughput grows with its square root.
// Rule: Every flavour is faster over a lossy hop. [VII]
#[test]
fn feedback_makes_every_flavour_faster() {
    const RUNS: u64 = 60;
    for flavour in [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack, Flavour::Prr] {
        let ratios = (0..RUNS).map(|number| {
            let [feedback, basic] = ["wenp", "basic"].map(|scheme| completion(flavour, number, scheme));
            (feedback / basic).ln()
        });
        let ratios: Vec<f64> = ratios.collect();
        let n = RUNS as f64;
        let mean = ratios.iter().sum::<f64>() / n;
        let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let error = (variance / n).sqrt();
        println!("{flavour:?}: {:.3} times, standard error {error:.4}", mean.exp());
        assert!(mean < -3.47 * error, "{flavour:?}: {mean} ± {error}");
        assert!(mean > -(1.6f64).ln(), "{flavour:?}: {mean} is too good");
    }
}
