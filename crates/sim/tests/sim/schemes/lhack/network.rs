//! lhack in a network: a base station beside the source, beside the destination, or both, with losses of
//! data, acknowledgements and notices on either side.

use lasthop_base::{BitRate, Duration, Streams};
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Flavour, Profile, Reactions, Settings};
use lasthop_proto::{Component, Packet, Port};
use lasthop_sim::QueueLimit;
use lasthop_testing::check;
use lasthop_testing::invariants::Invariants;
use lasthop_testing::net::{by_order, finish, first_byte, nothing, segments, slack};
use lasthop_testing::random::{FLAVOURS, pick, settings};
use lasthop_testing::schemes::{self, installed};
use lasthop_testing::stations::{
    PATHS, Stage, assert_same_course, course, losses_by_pattern, path, patterns, run, station,
};

fn agent() -> Box<dyn Component> {
    schemes::agent(&Schemes::default(), "lhack")
}

fn reactions() -> Reactions {
    installed(&Schemes::default(), "lhack").reactions()
}

/// Runs a transfer under the scheme and checks the invariants.
fn transfer(settings: &Settings, bytes: u64, stages: Vec<Stage>) {
    // Limited transmit applies to early duplicates, of which there are many after a repair on the first hop.
    let slack = if settings.limited_transmit { settings.window_payload() } else { slack(settings, true) };
    let tap = |receiver| Invariants::new(receiver, first_byte(settings), slack).end_to_end(settings, true);
    let (engine, ends, ended) = run(settings, bytes, stages, reactions(), tap);
    finish(engine, ends, ended, bytes);
}

const WORLDS: u64 = 5_000;

/// The stream arrives intact, windows are respected and the timer runs, whatever is lost.
// Rule: as any_loss_of_the_first_eight_on_either_side
#[test]
fn streams_arrive_intact_in_random_worlds() {
    for number in 0..WORLDS {
        for stations in PATHS {
            check(&format!("world {number}, {stations:?}"), || {
                let streams = Streams::new(number, 0);
                let random = &mut streams.stream("lhack");
                let settings = settings(random);
                let bytes = 1 + random.below(60 * u64::from(settings.mss()));
                transfer(&settings, bytes, path(random, &streams, &settings, stations, agent));
            });
        }
    }
}

/// Asserts that a transfer has the same course with the scheme's reaction and without.
fn assert_like_the_standard(settings: &Settings, bytes: u64, stages: impl Fn() -> Vec<Stage>) {
    let [found, standard] =
        [reactions(), Reactions::default()].map(|reactions| course(settings, bytes, stages(), reactions));
    assert_same_course(&found, &standard);
}

/// "If no lhacks are received, [...] the source should behave as in the standard TCP protocol" (section 4):
/// equal packets at equal times, in any world.
// Rule: Without lhacks, and with congestion losses only, identical to the standard source. [4;
// ../scheme/lhack/reaction.rs]
#[test]
fn without_lhacks_the_source_is_standard() {
    for number in 0..WORLDS {
        check(&format!("world {number}"), || {
            let streams = Streams::new(number, 0);
            let random = streams.stream("standard");
            let settings = settings(&mut random.clone());
            let bytes = 60 * u64::from(settings.mss());
            let stages = || {
                let random = &mut random.clone();
                let silent = |stage: &Stage| !matches!(stage, Stage::Station(..));
                path(random, &streams, &settings, PATHS[0], agent).into_iter().filter(silent).collect()
            };
            assert_like_the_standard(&settings, bytes, stages);
        });
    }
}

/// "[...] or the messages were lost due to congestion": equal if everything not lost has its lhack. There are
/// no losses beyond the base station, none of acknowledgements, and no early timeouts. With SACK more is
/// retransmitted than was lost (RFC 6675: the rescue; ns-2: losses missing from the blocks), and an lhack of
/// such a segment may precede the acknowledgement.
// Rule: as without_lhacks_the_source_is_standard
#[test]
fn with_congestion_losses_only_the_source_is_standard() {
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
                let hop = || Stage::wire(rate, Duration::from_millis(40), QueueLimit::Unlimited);
                let mut bits = streams.stream("bits");
                let data = Box::new(move |_: &Packet| bits.bernoulli(loss));
                let losses = Stage::Losses(data, nothing());
                vec![hop(), losses, Stage::Station(agent(), Port::WIRED), hop()]
            };
            assert_like_the_standard(&settings, bytes, stages);
        });
    }
}

/// Every flavour under both rule sets, with a short transfer.
fn variants() -> impl Iterator<Item = Settings> {
    let profiles = [Settings::default(), Profile::Ns2.settings()];
    let settings = |flavour| profiles.clone().map(|base| Settings { flavour, handshake: false, ..base });
    FLAVOURS.into_iter().flat_map(settings).collect::<Vec<_>>().into_iter()
}

/// Each of the first eight packets arrives, is lost before the base station, or is lost beyond it; each variant meets half of
/// the patterns in each direction.
// Rule: Any losses on either side of base stations at either end: the stream arrives intact, windows are
// respected, the timer runs. []
#[test]
fn any_loss_of_the_first_eight_on_either_side() {
    for (variant, settings) in variants().enumerate() {
        for (direction, near) in [Port::WIRED, Port::RADIO].into_iter().enumerate() {
            for pattern in patterns(variant + direction) {
                check(&format!("{settings:?}, {near:?}, pattern {pattern} to the base of three"), || {
                    let stages = station(agent(), near, losses_by_pattern(pattern));
                    transfer(&settings, segments(&settings, 10), stages);
                });
            }
        }
    }
}

/// Each of the first eight packets in the reverse direction, mostly notices, arrives or is lost, and one data
/// packet is lost on either side.
// Rule: as any_loss_of_the_first_eight_on_either_side
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
                    let stages = station(agent(), near, [before, behind]);
                    transfer(&settings, segments(&settings, 10), stages);
                });
            }
        }
    }
}
