//! Local retransmission in a network: a base station beside the source, beside the destination, or both, with
//! losses on either side.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};

use lasthop_base::{BitRate, Bytes, Duration, Stream, Streams, Time};
use lasthop_channel::Model;
use lasthop_link::queue::{Discipline, Priority, priority};
use lasthop_proto::scheme::{LinkEnd, Scheme, Schemes};
use lasthop_proto::tcp::{Flags, Flavour, Profile, SeqNum, Settings};
use lasthop_proto::{Component, DropReason, Dscp, Effect, LinkOutcome, Out, Packet, Port, Probe, Signal};
use lasthop_sim::{Link, NoTap, Node, QueueLimit, RadioConfig};
use lasthop_testing::check;
use lasthop_testing::invariants::Invariants;
use lasthop_testing::net::{Forwarder, finish, first_byte, plain_radio, segments, slack};
use lasthop_testing::random::{FLAVOURS, coin, milliseconds, pick, settings};
use lasthop_testing::schemes::{self, installed, site};
use lasthop_testing::stations::{
    PATHS, Stage, assert_same_course, course, losses_by_pattern, lossy_air, path, patterns, run, station,
};

const WORLDS: u64 = 3_000;

/// A packet by its contents; copies are expedited.
#[derive(PartialEq)]
struct Contents(Packet);

impl Contents {
    fn of(packet: &Packet) -> Contents {
        Contents(Packet { dscp: Dscp::DEFAULT, ..*packet })
    }
}

impl Eq for Contents {}

impl Hash for Contents {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.segment().map(|segment| (segment.seq, segment.ack)).hash(state);
    }
}

/// The scheme's agent, with checks: each packet is forwarded unchanged or suppressed; a copy is of a segment that was
/// forwarded, and that no acknowledgement has covered since the agent knows the connection; an acknowledgement that
/// the agent sends is one that arrived before; and the counters are right.
struct Watched {
    agent: Box<dyn Component>,
    attempts: u64,
    idle: Duration,
    /// When data or an acknowledgement last arrived.
    last_active: Time,
    /// The highest acknowledgement of data that the agent knows.
    acked: Option<SeqNum>,
    /// Number of times that each segment was forwarded, and copied.
    forwarded: HashMap<Contents, (u64, u64)>,
    passed: HashSet<Contents>,
    suppressed: u64,
    answered: u64,
    copies: u64,
}

impl Watched {
    fn of(schemes: &Schemes) -> Box<dyn Component> {
        Box::new(Watched {
            agent: schemes::agent(schemes, "snoop"),
            attempts: schemes.snoop.attempts.into(),
            idle: schemes.snoop.idle,
            last_active: Time::ZERO,
            acked: None,
            forwarded: HashMap::new(),
            passed: HashSet::new(),
            suppressed: 0,
            answered: 0,
            copies: 0,
        })
    }

    fn note_copy(&mut self, copy: &Packet) {
        let segment = copy.segment().expect("a copy of a segment");
        let end = segment.seq + segment.seq_len();
        assert!(self.acked.is_none_or(|ack| end > ack), "{copy:?} is acknowledged: {:?}", self.acked);
        let (forwarded, copies) =
            self.forwarded.get_mut(&Contents::of(copy)).expect("a copy of what was forwarded");
        *copies += 1;
        assert!(*copies <= *forwarded * self.attempts, "{copies} copies of {copy:?}");
        self.copies += 1;
    }

    /// Notes the acknowledgement from the mobile host, and forgets earlier ones if the connection was idle too long.
    fn note_ack(&mut self, now: Time, port: Port, packet: &Packet) {
        let Some(segment) = packet.segment() else { return };
        let acknowledges = port == Port::RADIO && segment.flags.has(Flags::ACK);
        if !acknowledges && (port == Port::RADIO || segment.seq_len() == 0) {
            return;
        }
        if now.since(self.last_active) > self.idle {
            self.acked = None;
        }
        self.last_active = now;
        if acknowledges {
            self.acked = Some(self.acked.map_or(segment.ack, |acked| acked.max(segment.ack)));
        }
    }

    fn check(&mut self, port: Port, packet: &Packet, effects: &[Effect]) {
        match effects[0] {
            Effect::Send(to, found) => {
                assert_eq!((to, found), (port.across(), *packet));
                if port == Port::WIRED {
                    self.forwarded.entry(Contents::of(packet)).or_default().0 += 1;
                } else {
                    self.passed.insert(Contents::of(packet));
                }
            }
            Effect::Drop(found, DropReason::Suppressed) => {
                assert_eq!(found, *packet);
                self.suppressed += 1;
                if port == Port::RADIO {
                    self.passed.insert(Contents::of(packet));
                }
            }
            other => panic!("{packet:?} causes {other:?}"),
        }
        for effect in &effects[1..] {
            match effect {
                Effect::Send(Port::RADIO, copy) => self.note_copy(copy),
                Effect::Send(Port::WIRED, copy) => {
                    assert!(self.passed.contains(&Contents::of(copy)), "{copy:?} was never sent");
                    self.answered += 1;
                }
                other => panic!("{packet:?} causes {other:?}"),
            }
        }
    }

    fn check_counters(&mut self) {
        struct Shown(BTreeMap<&'static str, u64>);
        impl Probe for Shown {
            fn value(&mut self, name: &'static str, value: f64) {
                self.0.insert(name, value as u64);
            }
        }
        let mut shown = Shown(BTreeMap::new());
        self.agent.show(&mut shown);
        let of = |name| shown.0[name];
        assert_eq!(of("local_retransmissions"), self.copies);
        assert!(of("local_timeouts") + of("persist_timeouts") <= self.copies);
        assert_eq!(of("answered_segments"), self.answered);
        let suppressed = of("suppressed_dupacks") + of("spurious_acks") + of("answered_segments");
        assert_eq!(suppressed, self.suppressed);
        if of("connections") == 0 {
            self.acked = None;
        }
    }

    fn collect(
        agent: &mut Box<dyn Component>,
        out: &mut Out,
        act: impl FnOnce(&mut Box<dyn Component>, &mut Out),
    ) -> Vec<Effect> {
        let mut effects = Vec::new();
        out.redirect(
            |out| act(agent, out),
            |effect| {
                effects.push(effect);
                Some(effect)
            },
        );
        effects
    }
}

impl Component for Watched {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        let receive = |agent: &mut Box<dyn Component>, out: &mut Out| agent.receive(now, packet, port, out);
        let effects = Watched::collect(&mut self.agent, out, receive);
        self.note_ack(now, port, packet);
        self.check(port, packet, &effects);
        self.check_counters();
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        let wake = |agent: &mut Box<dyn Component>, out: &mut Out| agent.wake(now, out);
        for effect in Watched::collect(&mut self.agent, out, wake) {
            let Effect::Send(Port::RADIO, copy) = effect else { panic!("{effect:?}") };
            self.note_copy(&copy);
        }
        self.check_counters();
    }

    fn next_wakeup(&self) -> Time {
        self.agent.next_wakeup()
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        self.agent.on_signal(now, signal, out);
    }

    fn needs_outcome(&self, outcome: LinkOutcome) -> bool {
        self.agent.needs_outcome(outcome)
    }
}

/// The scheme with random parameters.
fn parameters(random: &mut Stream) -> Schemes {
    let mut schemes = Schemes::default();
    let snoop = &mut schemes.snoop;
    snoop.dupacks = 1 + random.below(4) as u32;
    snoop.suppress = !random.bernoulli(0.2);
    snoop.bursts = coin(random);
    snoop.min_timeout = Duration::from_millis(1) + milliseconds(random, 300);
    snoop.persist = Duration::from_millis(1) + milliseconds(random, 300);
    snoop.initial = Duration::from_millis(1) + milliseconds(random, 1000);
    snoop.attempts = pick(random, &[1, 3, 10, 100]);
    snoop.cache = pick(random, &[1, 3, 1024]);
    snoop.connections = pick(random, &[1, 256]);
    snoop.idle = pick(random, &[1, 100, 120_000].map(Duration::from_millis));
    snoop.encrypted = random.below(16) == 0;
    snoop.selective = random.below(4) == 0;
    assert!(schemes.snoop.faults(&Settings::default()).is_empty());
    schemes
}

/// Runs a transfer under the scheme and checks the invariants.
fn transfer(settings: &Settings, bytes: u64, stages: Vec<Stage>) {
    let tap = |receiver| {
        Invariants::new(receiver, first_byte(settings), slack(settings, false)).end_to_end(settings, false)
    };
    let (engine, ends, ended) = run(settings, bytes, stages, None, tap);
    finish(engine, ends, ended, bytes);
}

/// The stream arrives intact, windows are respected and the timer runs, whatever is lost.
// Rule: as any_loss_of_the_first_eight_on_either_side
#[test]
fn streams_arrive_intact_in_random_worlds() {
    for number in 0..WORLDS {
        for stations in PATHS {
            check(&format!("world {number}, {stations:?}"), || {
                let streams = Streams::new(number, 0);
                let random = &mut streams.stream("snoop");
                let (schemes, settings) = (parameters(random), settings(random));
                let bytes = 1 + random.below(60 * u64::from(settings.mss()));
                let stages = path(random, &streams, &settings, stations, || Watched::of(&schemes));
                transfer(&settings, bytes, stages);
            });
        }
    }
}

/// Each of the first eight packets arrives, is lost before the base station, or is lost beyond it, with every
/// flavour and either number of duplicates; each flavour meets half of the patterns by each rule set.
// Rule: Any losses on either side of base stations at either end: the stream arrives intact, and every copy
// and suppressed packet is accounted for. []
#[test]
fn any_loss_of_the_first_eight_on_either_side() {
    let mut schemes = Schemes::default();
    let bases = [Settings::default(), Profile::Ns2.settings()];
    for (variant, (flavour, base)) in FLAVOURS
        .iter()
        .enumerate()
        .flat_map(|(at, &f)| [(at, (f, bases[0].clone())), (at + 1, (f, bases[1].clone()))])
    {
        let settings = Settings { flavour, handshake: false, ..base };
        for pattern in patterns(variant) {
            schemes.snoop.dupacks = 1 + pattern / 2 % 2;
            check(
                &format!("{flavour:?}, {:?}, pattern {pattern} to the base of three", settings.rules),
                || {
                    let stages = station(Watched::of(&schemes), Port::WIRED, losses_by_pattern(pattern));
                    transfer(&settings, segments(&settings, 10), stages);
                },
            );
        }
    }
}

/// With encrypted headers, a mobile source, or without losses and delayed acknowledgements, the ends see what they
/// would see without an agent.
// Rule: as any_loss_of_the_first_eight_on_either_side
#[test]
fn without_losses_to_the_mobile_host_nothing_changes() {
    for number in 0..WORLDS {
        check(&format!("world {number}"), || {
            let streams = Streams::new(number, 0);
            let random = &mut streams.stream("standard");
            let (mut schemes, mut settings) = (parameters(random), settings(random));
            let case = random.below(3);
            match case {
                // A mobile source still receives FIN, which is repaired.
                1 => settings.close = false,
                2 => (schemes, settings.ack_every) = (Schemes::default(), 1),
                _ => {}
            }
            schemes.snoop.encrypted = case == 0;
            let stages = |station: &dyn Fn() -> Box<dyn Component>| {
                if case == 2 {
                    let rate = BitRate::from_bps(2_000_000).expect("not zero");
                    let wire = || Stage::wire(rate, Duration::from_millis(10), QueueLimit::Unlimited);
                    return vec![wire(), Stage::Station(station(), Port::WIRED), wire()];
                }
                let stations = if case == 0 { PATHS[0] } else { PATHS[1] };
                path(&mut random.clone(), &streams, &settings, stations, station)
            };
            let bytes = 60 * u64::from(settings.mss());
            let found = course(&settings, bytes, stages(&|| Watched::of(&schemes)), None);
            let expected = course(&settings, bytes, stages(&|| Box::new(Forwarder)), None);
            assert_same_course(&found, &expected);
        });
    }
}

/// The wireless hop of ToN 1997: 2 Mb/s and losses in both directions, behind a wired delay.
fn stages(schemes: &Schemes, scheme: &str, loss: f64, delay: Duration, streams: &Streams) -> Vec<Stage> {
    let rate = |bps| BitRate::from_bps(bps).expect("not zero");
    let wire = Stage::wire(rate(10_000_000), delay, QueueLimit::Unlimited);
    let config = RadioConfig { delay: Duration::from_millis(1), ..plain_radio(rate(2_000_000)) };
    let air = lossy_air(config, loss, streams);
    let scheme = installed(schemes, scheme);
    let agent = scheme
        .agents(LinkEnd::BaseStation)
        .next()
        .map(|_| Stage::Station(scheme.agent(0, &site()), Port::WIRED));
    [Some(wire), agent, Some(air)].into_iter().flatten().collect()
}

/// Repeats one packet to the mobile host.
struct Repeater {
    /// Number of packets before it.
    before: u32,
}

impl Component for Repeater {
    fn receive(&mut self, _now: Time, packet: &Packet, port: Port, out: &mut Out) {
        out.send(port.across(), *packet);
        if port == Port::WIRED {
            if self.before == 0 {
                out.send(Port::RADIO, *packet);
            }
            self.before = self.before.wrapping_sub(1);
        }
    }
}

/// On a link without losses, with a standing queue in which copies go first, nothing is lost: a packet that arrives
/// twice causes one duplicate and no copy. Otherwise each copy would overtake a queued original, whose late arrival
/// would cause the next one.
// Rule: as needless_copies_do_not_propagate
#[test]
fn without_losses_there_are_no_copies() {
    let rate = |bps| BitRate::from_bps(bps).expect("not zero");
    let config = RadioConfig { delay: Duration::from_millis(1), ..plain_radio(rate(2_000_000)) };
    for (flavour, dupacks) in
        [(Flavour::Reno, 1), (Flavour::NewReno, 1), (Flavour::Sack, 1), (Flavour::Reno, 2)]
    {
        let settings = Settings { flavour, window: Bytes(64 << 10).into(), ..Settings::default() };
        let mut schemes = Schemes::default();
        schemes.snoop.dupacks = dupacks;
        let streams = Streams::new(1, 0);
        let links = ["down", "up"].map(|way| {
            let [bits, backoff] = ["bits", "backoff"].map(|name| streams.stream(&format!("{name}:{way}")));
            let queue: Box<dyn Discipline> =
                Box::new(Priority::new(priority::Params { limit: QueueLimit::Unlimited }));
            Link::radio(config, queue, Model::Perfect.build(streams.stream("channel")), bits, backoff)
        });
        let stages = vec![
            Stage::wire(rate(10_000_000), Duration::from_millis(1), QueueLimit::Unlimited),
            Stage::Station(Box::new(Repeater { before: 100 }), Port::WIRED),
            Stage::Station(Watched::of(&schemes), Port::WIRED),
            Stage::Links(links),
        ];
        let log = course(&settings, 1_000_000, stages, None);
        let copies = log.iter().filter(|(_, _, packet)| packet.dscp == Dscp::EXPEDITED).count();
        assert_eq!(copies, 0, "{flavour:?} with {dupacks} duplicates");
    }
}

/// A transfer of 2 MB: completion time in seconds, fast retransmits and timeouts.
fn completion(settings: &Settings, loss: f64, number: u64, scheme: &str) -> (f64, u64, u64) {
    let (schemes, streams) = (Schemes::default(), Streams::new(number, 0));
    let stages = stages(&schemes, scheme, loss, Duration::from_millis(20), &streams);
    let (engine, (sender, _), _) = run(settings, 2_000_000, stages, None, |_| NoTap);
    let Node::Sender(source) = engine.node(sender) else { unreachable!("the node has this kind") };
    let stats = source.stats();
    (stats.completed.expect("it completes").as_secs_f64(), stats.fast_retransmits, stats.timeouts)
}

/// At 2 % loss in both directions every flavour without SACK is at least 1.3 times faster, and its source hardly
/// notices a loss: less than a tenth of the fast retransmits and timeouts.
// Rule: The source does not notice losses on the air; every other packet may be lost. [5]
#[test]
fn losses_are_hidden_from_the_source() {
    for flavour in [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno] {
        let settings = Settings { flavour, window: Bytes(32 << 10).into(), ..Settings::default() };
        let mut sums = [(0.0, 0), (0.0, 0)];
        for number in 0..20 {
            for (scheme, sum) in ["basic", "snoop"].into_iter().zip(&mut sums) {
                let (time, retransmits, timeouts) = completion(&settings, 0.02, number, scheme);
                *sum = (sum.0 + time, sum.1 + retransmits + timeouts);
            }
        }
        let [(basic, noticed), (snoop, left)] = sums;
        println!(
            "{flavour:?}: {:.1} s and {:.1} s, {noticed} and {left} losses noticed",
            basic / 20.0,
            snoop / 20.0
        );
        assert!(snoop < basic / 1.3, "{flavour:?}: {snoop} s and {basic} s");
        assert!(left * 10 < noticed, "{flavour:?}: {left} of {noticed}");
    }
}

/// "Completed the run even when every other packet was being dropped" (MobiCom 1995, section 5), where plain TCP
/// makes hardly any progress.
// Rule: as losses_are_hidden_from_the_source
#[test]
fn every_other_packet_may_be_lost() {
    let settings = Settings { flavour: Flavour::Reno, window: Bytes(64 << 10).into(), ..Settings::default() };
    for number in 0..5 {
        let (snoop, ..) = completion(&settings, 0.5, number, "snoop");
        let (basic, ..) = completion(&settings, 0.2, number, "basic");
        println!("{snoop} s, and at less than half the loss without an agent {basic} s");
        assert!(snoop < basic, "{snoop} s and {basic} s");
    }
}
