//! Random worlds: a number and a scheme's name draw links, queues, channel, ARQ, TCP and file size; the
//! invariants are the oracle.
//!
//! Each scheme draws from a stream with its name, so that a new scheme adds worlds and changes none.
//! `LASTHOP_WORLDS=10000` tries that many of each scheme; `LASTHOP_WORLD=ebsn:17` replays one.

use std::env;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use lasthop_base::{BitRate, Bytes, Duration, Probability, Stream, Streams, Time};
use lasthop_channel::{FrameLoss, Iid, Model, TwoState};
use lasthop_proto::arq;
use lasthop_proto::fec::{BlockCode, Covers};
use lasthop_proto::frag::{Fragments, Mtu};
use lasthop_proto::scheme::{LinkUse, Scheme, Schemes};
use lasthop_proto::tcp::{Receiver, Sender, Settings, Transfer};
use lasthop_proto::{Component, Port};
use lasthop_sim::{Builder, Expansion, Exposed, Fec, RadioConfig, RadioLink, WiredLink};
use lasthop_testing::invariants::Invariants;
use lasthop_testing::net::{CONNECTION, finish, first_byte, slack};
use lasthop_testing::random::{coin, milliseconds, pick, queue, settings};

/// Worlds of each scheme.
const WORLDS: u64 = 1_000;

/// A world sends 40 segments at most. One that is still busy after so many times 65,536 wake-ups is livelocked.
const MOST_ROUNDS: u32 = 50;

fn probability(p: f64) -> Probability {
    Probability::new(p).expect("in [0, 1]")
}

/// A channel on which about one packet in three is lost at worst, but for bad periods that end.
fn channel(random: &mut Stream, frames: u32) -> Model {
    match random.below(4) {
        0 => Model::Perfect,
        1 => Model::FrameLoss(FrameLoss { loss: probability(random.uniform() * 0.3 / f64::from(frames)) }),
        2 => Model::Iid(Iid { ber: probability(random.uniform() * 2e-5) }),
        _ => Model::TwoState(TwoState {
            good: Duration::from_millis(500 + random.below(5_000)),
            bad: Duration::from_millis(10 + random.below(2_000)),
            good_ber: probability(1e-6),
            bad_ber: probability(pick(random, &[1e-4, 1e-2, 1.0])),
            start: pick(random, &[Default::default(), lasthop_channel::Start::Stationary]),
        }),
    }
}

fn radio(random: &mut Stream, packet: Bytes, link: LinkUse) -> RadioConfig {
    let retransmissions = pick(random, &[arq::Retransmissions::AtMost(3), arq::Retransmissions::Unlimited]);
    let recovery = if coin(random) {
        let backoff = arq::Backoff::Uniform(Duration::from_millis(1 + random.below(100)));
        arq::Config::StopAndWait(arq::stop_and_wait::Params { retransmissions, backoff })
    } else {
        let (feedback_delay, slot) = (milliseconds(random, 100), milliseconds(random, 10));
        arq::Config::SelectiveRepeat(arq::selective_repeat::Params { retransmissions, feedback_delay, slot })
    };
    let size = Mtu::new(Bytes(64 + random.below(600)));
    let (mtu, unit) = pick(random, &[(None, None), (size, None), (None, size)]);
    let covers = if random.below(8) == 0 { Some(Covers::All) } else { link.protects };
    let code = BlockCode::new(63, 45, 3).expect("a BCH code");
    RadioConfig {
        rate: BitRate::from_bps(19_200 + random.below(3_000_000)).expect("not zero"),
        delay: milliseconds(random, 20),
        queue: queue(random, packet),
        expansion: Expansion::new(1.0 + random.uniform()).expect("within bounds"),
        mtu,
        unit,
        fec: covers.map(|covers| Fec { code, covers }),
        exposed: pick(random, &[Exposed::OnAir, Exposed::Payload]),
        arq: if link.recovers { recovery } else { arq::Config::None },
    }
}

/// Builds and runs world number `number` of `scheme`.
fn world(scheme: &dyn Scheme, number: u64) {
    let streams = Streams::new(number, 0);
    let random = &mut streams.stream(&format!("world:{}", scheme.name()));
    let settings = workable_settings(random, scheme);
    // Of a scheme that splits connections this is the wireless part, with the reaction of its sender.
    let settings = match scheme.split(&settings) {
        // Losses may last longer than a base station waits.
        Some(split) => Settings { user_timeout: None, ..split.wireless },
        None => settings,
    };
    let config = radio(random, settings.packet_size, scheme.link());
    let model = channel(random, Fragments::of(settings.packet_size, config.mtu.or(config.unit)).count());
    let rate = BitRate::from_bps(56_000 + random.below(10_000_000)).expect("not zero");
    let (delay, wired_queue) = (milliseconds(random, 100), queue(random, settings.packet_size));
    let bytes = 1 + random.below(40 * u64::from(settings.mss()));
    let start = Time::ZERO + milliseconds(random, 1_000);

    let mut net = Builder::new();
    let transfer = Transfer { bytes: Some(bytes), start };
    let reaction = scheme.reaction();
    let slack = slack(&settings, reaction.is_some());
    let sender = net.add(Sender::new(CONNECTION, &settings, transfer, reaction));
    let receiver = net.add(Receiver::new(CONNECTION, &settings));
    let wired = [
        net.add(WiredLink::new(rate, delay, wired_queue)),
        net.add(WiredLink::new(rate, delay, wired_queue)),
    ];
    let hop = ["down", "up"].map(|way| {
        let [bits, backoff] = ["bits", "backoff"].map(|name| streams.stream(&format!("{name}:{way}")));
        net.add(RadioLink::new(config, model.build(streams.stream("channel")), bits, backoff))
    });
    let agent = scheme.agent().map(|agent| net.add(agent as Box<dyn Component>));
    let only = |id| (id, Port::ONLY);
    net.connect(only(sender), only(wired[0]));
    net.connect(only(wired[1]), only(sender));
    net.connect(only(receiver), only(hop[1]));
    net.connect(only(hop[0]), only(receiver));
    match agent {
        Some(agent) => {
            net.watch(hop[0], agent);
            net.connect(only(wired[0]), (agent, Port::WIRED));
            net.connect((agent, Port::RADIO), only(hop[0]));
            net.connect(only(hop[1]), (agent, Port::RADIO));
            net.connect((agent, Port::WIRED), only(wired[1]));
        }
        None => {
            net.connect(only(wired[0]), only(hop[0]));
            net.connect(only(hop[1]), only(wired[1]));
        }
    }
    if env::var_os("LASTHOP_WORLD").is_some() {
        println!("{} over {config:?}, {model:?}; {bytes} B by {settings:#?}", scheme.name());
    }
    let tap = Invariants::new(receiver, first_byte(&settings), slack);
    let mut engine = net.build(tap);
    let mut rounds = 0;
    let ended = engine.run_while(&[sender], Time::ZERO + Duration::from_secs(1_000_000), || {
        rounds += 1;
        rounds < MOST_ROUNDS
    });
    let ended = ended.unwrap_or_else(|| panic!("still busy after {} wake-ups", engine.handled()));
    finish(engine, (sender, receiver), ended, bytes);
}

/// Settings of TCP with which `scheme` has no faults.
fn workable_settings(random: &mut Stream, scheme: &dyn Scheme) -> Settings {
    let mut tries = iter::repeat_with(|| settings(random)).take(100);
    let found = tries.find(|settings| {
        assert!(settings.faults().is_empty(), "{:?}", settings.faults());
        scheme.faults(settings).is_empty()
    });
    found.unwrap_or_else(|| panic!("{} finds faults in all settings", scheme.name()))
}

#[test]
fn invariants_hold_in_random_worlds() {
    let schemes = Schemes::default();
    let worlds: Vec<(&dyn Scheme, u64)> = match env::var("LASTHOP_WORLD") {
        Ok(one) => {
            let (name, number) = one.split_once(':').expect("a world such as ebsn:17");
            vec![(schemes.get(name).expect("a scheme"), number.parse().expect("a number"))]
        }
        Err(_) => {
            let count = env::var("LASTHOP_WORLDS").map_or(WORLDS, |text| text.parse().expect("a number"));
            schemes.all().flat_map(|scheme| (0..count).map(move |number| (scheme, number))).collect()
        }
    };
    for (scheme, number) in worlds {
        if let Err(reason) = catch_unwind(AssertUnwindSafe(|| world(scheme, number))) {
            let name = scheme.name();
            eprintln!(
                "replay: LASTHOP_WORLD={name}:{number} cargo test -p lasthop-sim --test tcp worlds -- --nocapture"
            );
            resume_unwind(reason);
        }
    }
}
