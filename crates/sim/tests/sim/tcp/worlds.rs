//! Random worlds: schemes, a congestion control, a recovery and a number determine random links, queues,
//! channel, ARQ, TCP settings and file size; the invariants are checked in each.
//!
//! The random stream of a world is named after them, so a new scheme or congestion control adds worlds and
//! changes none. `LASTHOP_WORLDS=200` sets the number of worlds of each kind;
//! `LASTHOP_WORLD="ebsn + lhack:cubic:prr-rack:17"` replays one.

use std::env;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lasthop_base::{BitRate, Bytes, Duration, Probability, Stream, Streams, Time};
use lasthop_channel::{FrameLoss, Iid, Model, TwoState};
use lasthop_link::queue::{LinkQueue, Queue};
use lasthop_proto::arq;
use lasthop_proto::fec::{BlockCode, Covers};
use lasthop_proto::frag::{Fragments, Mtu};
use lasthop_proto::scheme::{ArqUse, Combination, LinkEnd, LinkUse, Schemes, Site};
use lasthop_proto::tcp::{
    Congestion, Detection, Flavour, Profile, Receiver, Rules, Sender, Settings, Transfer,
};
use lasthop_proto::{Component, ComponentId, Port};
use lasthop_sim::{Builder, Expansion, Exposed, Fec, Link, RadioConfig};
use lasthop_testing::invariants::Invariants;
use lasthop_testing::net::{CONNECTION, finish, first_byte, plain_radio, slack};
use lasthop_testing::random::{self, ENDLESS_PATIENCE, coin, management, milliseconds, pick, queue};
use lasthop_testing::reorder::Reorder;
use lasthop_testing::schemes::{installed, site};

/// Number of worlds of each kind.
const WORLDS: u64 = 20;

/// Number of kinds of worlds for each pair of schemes.
const KINDS_PER_PAIR: usize = 5;

/// A world still busy after this many times 65,536 wake-ups is livelocked: it sends at most a few hundred
/// segments.
const MOST_ROUNDS: u32 = 50;

/// Worlds with rare events beyond those that run by default.
const RARE: [&str; 12] = [
    // After an undo, a window that a reaction has set grows in whole segments.
    "wtcp:westwood:prr-rack:186",
    // A recovery ends with an estimate of the controller or a part of a segment, and the next one begins at once.
    "wtcp-timestamps:westwood:prr-rack:186",
    "wtcp-timestamps:westwood:prr-sack:650",
    "packet-fec:aimd:prr-rack:516",
    // An undo comes after an idle time, also if SYN was lost.
    "wtcp-timestamps:hybla:prr-rack:168",
    "wtcp-timestamps:veno:prr-sack:871",
    // With an undo, the controller leaves slow start.
    "lhack:vegas:prr-rack:364",
    "wtcp:vegas:prr-sack:589",
    "wtcp:cubic:prr-rack:425",
    // A window that losses do not reduce exceeds 4 GiB.
    "eln:hybla:prr-rack:694",
    // A paced sender forgets its round-trip time.
    "local-recovery + lhack:net3:prr-rack:183",
    // A window waits longer than the longest timeout drawn.
    "delayed-dupacks:cubic:newreno:262",
];

/// Loss recovery and detection.
const REPAIRS: [(&str, Flavour, Detection); 8] = [
    ("tahoe", Flavour::Tahoe, Detection::Rack),
    ("reno", Flavour::Reno, Detection::Rack),
    ("newreno", Flavour::NewReno, Detection::Rack),
    ("sack", Flavour::Sack, Detection::Rack),
    ("go-back-n", Flavour::GoBackN, Detection::Rack),
    ("selective-repeat", Flavour::SelectiveRepeat, Detection::Rack),
    ("prr-rack", Flavour::Prr, Detection::Rack),
    ("prr-sack", Flavour::Prr, Detection::Sack),
];

/// Identifies a world, together with its number.
#[derive(Clone, Copy)]
struct Kind<'a> {
    schemes: &'a Combination<'a>,
    congestion: Congestion,
    repair: (&'static str, Flavour, Detection),
}

impl Kind<'_> {
    /// `schemes:control:repair`.
    fn name(&self) -> String {
        format!("{}:{:?}:{}", self.schemes.name(), self.congestion, self.repair.0).to_lowercase()
    }

    /// Settings valid for the schemes with these controls; `None` if there are none.
    fn settings(&self, random: &mut Stream) -> Option<Settings> {
        let (_, flavour, detection) = self.repair;
        let mut tries = iter::repeat_with(|| {
            let drawn = random::settings(random);
            let base = if random.below(4) == 0 { usual(random, &drawn) } else { drawn };
            let rules = if flavour == Flavour::Prr { Rules::Rfc } else { base.rules };
            Settings { flavour, detection, congestion: self.congestion, rules, ..base }
        });
        let works = |settings: &Settings| {
            settings.faults().is_empty()
                && self.schemes.faults(settings).next().is_none()
                && self.schemes.mismatch(settings).is_none()
        };
        tries.by_ref().take(100).find(works)
    }
}

/// A profile's settings, on the path of `drawn`.
fn usual(random: &mut Stream, drawn: &Settings) -> Settings {
    let profile = pick(random, &[Profile::Rfc, Profile::Linux, Profile::LinuxBbr, Profile::Freebsd]);
    let Settings { packet_size, window, window_counts, iss, ecn, pacing, user_timeout, .. } = *drawn;
    Settings { packet_size, window, window_counts, iss, ecn, pacing, user_timeout, ..profile.settings() }
}

fn probability(p: f64) -> Probability {
    Probability::new(p).expect("in [0, 1]")
}

/// A channel that loses at most about one packet in three, except for finite bad periods.
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

/// The two directions of a link, which differ only in the ARQ.
fn radio(random: &mut Stream, link: LinkUse) -> [RadioConfig; 2] {
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
    let rate = BitRate::from_bps(19_200 + random.below(3_000_000)).expect("not zero");
    let arqs = match link.arq {
        ArqUse::Kept | ArqUse::Off => [arq::Config::None; 2],
        ArqUse::Supplied(arq) if arq.cuts_frames() => [arq; 2],
        ArqUse::Required | ArqUse::Supplied(_) => [recovery; 2],
        ArqUse::Replaced(arqs) => arqs,
    };
    let config = RadioConfig {
        delay: milliseconds(random, 20),
        expansion: Expansion::new(1.0 + random.uniform()).expect("within bounds"),
        mtu,
        unit,
        fec: covers.map(|covers| Fec { code, covers }),
        exposed: pick(random, &[Exposed::OnAir, Exposed::Payload]),
        ..plain_radio(rate)
    };
    arqs.map(|arq| RadioConfig { arq, ..config })
}

/// A queue before a link, of any discipline.
fn discipline(random: &mut Stream, packet: Bytes) -> Queue {
    if coin(random) { queue(random, packet).into() } else { Queue::Managed(management(random)) }
}

/// Whether the path reorders and duplicates packets, and how much.
fn disorder(random: &mut Stream) -> Option<(f64, f64, Duration)> {
    let mut probability = || if coin(random) { 0.0 } else { random.uniform() * 0.1 };
    let (late, twice) = (probability(), probability());
    let most = milliseconds(random, 200);
    (random.below(4) == 0).then_some((late, twice, most))
}

/// Builds and runs world number `number` of a kind; `false` if the kind cannot work.
fn world(kind: &Kind, number: u64) -> bool {
    let schemes = kind.schemes;
    let streams = Streams::new(number, 0);
    let random = &mut streams.stream(&format!("world:{}", kind.name()));
    let Some(settings) = kind.settings(random) else { return false };
    // For a scheme that splits connections this is the wireless part, with its sender's reactions.
    let settings = match schemes.split(&settings) {
        // Losses may last longer than a base station's user timeout.
        Some(split) => Settings { user_timeout: ENDLESS_PATIENCE, ..split.wireless },
        None => settings,
    };
    let packet = settings.packet_size;
    let air_queue = discipline(random, packet);
    let directions = radio(random, schemes.link());
    let config = directions[0];
    // A retransmission timeout below the time that a window waits before the link leads to collapse: RFC 6298 section 2.5
    // asks for at least 60 s.
    let longest_wait = config.rate.time_for(settings.window.bytes(settings.mss()) * 4);
    let settings = Settings { rto_max: settings.rto_max.max(longest_wait), ..settings };
    let model = channel(random, Fragments::of(packet, config.mtu.or(config.unit)).count());
    let rate = BitRate::from_bps(56_000 + random.below(10_000_000)).expect("not zero");
    let (delay, wired_queue) = (milliseconds(random, 100), discipline(random, packet));
    let disorder = disorder(random);
    let segments = if random.below(8) == 0 { 400 } else { 40 };
    let bytes = 1 + random.below(segments * u64::from(settings.mss()));
    let start = Time::ZERO + milliseconds(random, 1_000);

    let mut net = Builder::new();
    let transfer = Transfer { bytes: Some(bytes), start };
    let reactions = schemes.reactions();
    let reacting = !reactions.is_empty();
    let slack = slack(&settings, reacting);
    let sender = net.add(Sender::new(CONNECTION, &settings, transfer, reactions));
    let receiver = Receiver::new(CONNECTION, &settings).with_reactions(schemes.receiver_reactions());
    let receiver = net.add(receiver);
    let wired = ["there", "back"].map(|way| {
        let random = || streams.stream(&format!("queue:{way}"));
        net.add(Link::wired(rate, delay, LinkQueue::new(&wired_queue, |size| rate.time_for(size), random)))
    });
    let hop = [("down", directions[0]), ("up", directions[1])].map(|(way, config)| {
        let [bits, backoff, red] =
            ["bits", "backoff", "red"].map(|name| streams.stream(&format!("{name}:{way}")));
        let channel = model.build(streams.stream("channel"));
        let queue = LinkQueue::new(&air_queue, |size| config.rate.time_for(size), || red);
        net.add(Link::radio(config, queue, channel, bits, backoff))
    });
    let site = Site { rate: config.rate, delay: config.delay, streams, ..site() };
    let [at_base_station, at_mobile_host] = [LinkEnd::BaseStation, LinkEnd::MobileHost].map(|end| {
        let agents = 0..schemes.agents(end).count();
        agents.map(|index| net.add(schemes.agent(index, &Site { end, ..site }))).collect::<Vec<_>>()
    });
    let only = |id| (id, Port::ONLY);
    // Reordering comes first in each direction.
    let [first, second] = match disorder {
        Some((late, twice, most)) => [(sender, wired[0]), (receiver, hop[1])].map(|(end, link)| {
            let random = streams.stream(&format!("order:{}", end.0));
            let reorder = net.add(Box::new(Reorder::new(late, twice, most, random)) as Box<dyn Component>);
            net.connect(only(reorder), only(link));
            reorder
        }),
        None => [wired[0], hop[1]],
    };
    net.connect(only(sender), only(first));
    net.connect(only(wired[1]), only(sender));
    let mut chain = |agents: Vec<ComponentId>, links: [ComponentId; 2], ends: [ComponentId; 4]| {
        let [leaving, arriving, from, to] = ends.map(only);
        let (mut there, mut back) = (from, to);
        for agent in agents {
            net.watch(links[0], agent);
            net.watch_arrivals(arriving, agent);
            net.watch_losses(links[1], agent);
            net.connect(there, (agent, Port::WIRED));
            net.connect((agent, Port::WIRED), back);
            (there, back) = ((agent, Port::RADIO), (agent, Port::RADIO));
        }
        net.connect(there, leaving);
        net.connect(arriving, back);
    };
    let pairs: Vec<_> =
        schemes.pairs().iter().map(|&[one, other]| [at_base_station[one], at_mobile_host[other]]).collect();
    chain(at_base_station, hop, [hop[0], hop[1], wired[0], wired[1]]);
    chain(at_mobile_host, [hop[1], hop[0]], [second, hop[0], receiver, receiver]);
    for [one, other] in pairs {
        net.watch(one, other);
        net.watch(other, one);
    }
    if env::var_os("LASTHOP_WORLD").is_some() {
        println!(
            "{config:?}, {air_queue:?}, {model:?}, wired {rate}, {delay}, {wired_queue:?}, {disorder:?}"
        );
        println!("{bytes} B by {settings:#?}");
    }
    let tap = Invariants::new(receiver, first_byte(&settings), slack).end_to_end(&settings, reacting);
    let mut engine = net.build(tap);
    let mut rounds = 0;
    let ended = engine.run_while(&[sender], Time::ZERO + Duration::from_secs(1_000_000), || {
        rounds += 1;
        rounds < MOST_ROUNDS
    });
    let ended = ended.unwrap_or_else(|| panic!("still busy after {} wake-ups", engine.handled()));
    finish(engine, (sender, receiver), ended, bytes);
    true
}

/// These schemes with every congestion control and recovery.
fn kinds<'a>(schemes: &'a Combination<'a>) -> impl Iterator<Item = Kind<'a>> {
    Congestion::ALL.iter().copied().flat_map(move |congestion| {
        REPAIRS.into_iter().map(move |repair| Kind { schemes, congestion, repair })
    })
}

/// Each scheme by itself.
fn single(schemes: &Schemes) -> Vec<Combination<'_>> {
    schemes.all().map(|scheme| installed(schemes, scheme.name())).collect()
}

/// All pairs of schemes that go together, in either order.
fn pairs(schemes: &Schemes) -> Vec<Combination<'_>> {
    let pairs = schemes.all().flat_map(|one| schemes.all().map(move |other| vec![one, other]));
    pairs.filter_map(|pair| Combination::new(pair).ok()).collect()
}

/// Runs a world, and prints how to replay it on failure. Returns whether the kind is valid; `None` on failure.
fn try_world(kind: &Kind, number: u64) -> Option<bool> {
    let outcome = catch_unwind(AssertUnwindSafe(|| world(kind, number)));
    if outcome.is_err() {
        let name = kind.name();
        eprintln!(
            "replay: LASTHOP_WORLD=\"{name}:{number}\" cargo test -p lasthop-sim --test sim tcp::worlds -- --nocapture"
        );
    }
    outcome.ok()
}

/// Runs the world called `SCHEMES:CONTROL:REPAIR:NUMBER`.
fn run_named(schemes: &Schemes, world: &str) {
    let (name, number) = world.rsplit_once(':').expect("a world such as ebsn:cubic:prr-rack:17");
    let installed = installed(schemes, name.split(':').next().unwrap_or_default());
    let kind = kinds(&installed).find(|kind| kind.name() == name).expect("a kind of world");
    assert_eq!(try_world(&kind, number.parse().expect("a number")), Some(true), "{world}");
}

/// Runs the world that `LASTHOP_WORLD` names, if any. Returns whether there is one.
fn replay(schemes: &Schemes) -> bool {
    let world = env::var("LASTHOP_WORLD");
    world.is_ok_and(|world| {
        run_named(schemes, &world);
        true
    })
}

fn worlds_of_each_kind() -> u64 {
    env::var("LASTHOP_WORLDS").map_or(WORLDS, |text| text.parse().expect("a number"))
}

// Rule: The same in random worlds: every scheme, controller and recovery, links, queues, channel, reordering,
// settings; pacing respects its rate, an undone window is restored, counters match the segments sent. []
#[test]
fn invariants_hold_in_random_worlds() {
    let schemes = Schemes::default();
    if replay(&schemes) {
        return;
    }
    let mut failed = 0;
    for scheme in single(&schemes) {
        for kind in kinds(&scheme) {
            let outcomes: Vec<_> =
                (0..worlds_of_each_kind()).map(|number| try_world(&kind, number)).collect();
            failed += outcomes.iter().filter(|outcome| outcome.is_none()).count();
            // Controllers that need delivery-rate samples need per-segment records, and some schemes extend one
            // recovery only; all other kinds are valid.
            let samples = kind.congestion.control().needs_samples;
            let flavour = kind.repair.1;
            let settings = Settings { flavour, congestion: kind.congestion, ..Settings::default() };
            let extended = scheme.mismatch(&settings).is_none() && scheme.faults(&settings).next().is_none();
            let works = extended && (!samples || flavour == Flavour::Prr);
            let idle = outcomes.contains(&Some(false));
            assert!(!works || !idle, "{}: no settings without faults", kind.name());
        }
    }
    assert_eq!(failed, 0, "worlds failed");
}

// Rule: as invariants_hold_in_random_worlds
#[test]
fn invariants_hold_in_worlds_with_rare_events() {
    let schemes = Schemes::default();
    RARE.into_iter().for_each(|world| run_named(&schemes, world));
}

/// Each pair of schemes that goes together, with random congestion controls and recoveries.
#[test]
fn invariants_hold_under_pairs_of_schemes() {
    let schemes = Schemes::default();
    if env::var_os("LASTHOP_WORLD").is_some() {
        return;
    }
    let (mut failed, mut ran) = (0, 0);
    let worlds = worlds_of_each_kind().div_ceil(4);
    let pairs = pairs(&schemes);
    for pair in &pairs {
        let mut random = Streams::new(1, 0).stream(&format!("pair:{}", pair.name()));
        for _ in 0..KINDS_PER_PAIR {
            let (congestion, repair) = (pick(&mut random, Congestion::ALL), pick(&mut random, &REPAIRS));
            let kind = Kind { schemes: pair, congestion, repair };
            let outcomes = (0..worlds).map(|number| try_world(&kind, number));
            for outcome in outcomes {
                failed += u32::from(outcome.is_none());
                ran += u64::from(outcome == Some(true));
            }
        }
    }
    assert_eq!(failed, 0, "worlds failed");
    assert!(ran > 2 * worlds * pairs.len() as u64, "{ran} worlds of {} pairs", pairs.len());
}
