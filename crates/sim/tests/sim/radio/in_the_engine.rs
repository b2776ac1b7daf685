//! Both directions of a hop in the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lasthop_base::{Duration, Probability, Streams, Time};
use lasthop_channel::{Model, Start, TwoState};
use lasthop_proto::arq::{Backoff, Retransmissions};
use lasthop_proto::{Component, ComponentId, DropReason, LinkOutcome, Out, Packet, Port, Signal};
use lasthop_sim::{Builder, Ended, Link, NoTap, Node, QueueLimit, RadioConfig, Tap, Wire};

use crate::radio::harness::{mtu, packet, plain, stop_and_wait};

/// Sends packets at a fixed interval and discards arrivals.
struct Host {
    next: Time,
    every: Duration,
    left: u32,
}

impl Component for Host {
    fn receive(&mut self, _now: Time, _packet: &Packet, _port: Port, _out: &mut Out) {}

    fn wake(&mut self, now: Time, out: &mut Out) {
        out.send(Port::ONLY, packet(self.left, 40));
        self.left -= 1;
        self.next = if self.left == 0 { Time::NEVER } else { now + self.every };
    }

    fn next_wakeup(&self) -> Time {
        self.next
    }
}

#[derive(Debug, Default, PartialEq)]
struct Log {
    crossings: Vec<(Time, u32)>,
    drops: Vec<(Time, ComponentId, DropReason)>,
    failures: Vec<(Time, ComponentId)>,
}

impl Tap for Log {
    fn cross(&mut self, now: Time, wire: Wire, _packet: &Packet) {
        self.crossings.push((now, wire.id.0));
    }

    fn drop(&mut self, now: Time, at: ComponentId, _packet: &Packet, reason: DropReason) {
        self.drops.push((now, at, reason));
    }

    fn signal(&mut self, now: Time, from: ComponentId, signal: &Signal) {
        if matches!(signal, Signal::Link(event) if event.outcome == LinkOutcome::AttemptFailed) {
            self.failures.push((now, from));
        }
    }
}

/// Periods as in the EBSN paper, but deterministic.
fn fading() -> Model {
    let rate = |p| Probability::new(p).unwrap();
    let (good, bad) = (Duration::from_secs(10), Duration::from_secs(4));
    Model::TwoState(TwoState { good, bad, good_ber: rate(0.0), bad_ber: rate(1.0), start: Start::Good })
}

fn run(seed: u64) -> Log {
    let streams = Streams::new(seed, 0);
    let arq = stop_and_wait(Retransmissions::AtMost(13), Backoff::Uniform(Duration::from_millis(700)));
    let config = RadioConfig { mtu: mtu(16), arq, ..plain() };
    let link = |direction: &str| {
        let own = |name: &str| streams.stream(&format!("{direction}:{name}"));
        Link::radio(
            config,
            QueueLimit::Unlimited,
            fading().build(streams.stream("channel")),
            own("bits"),
            own("backoff"),
        )
    };
    let host = |every| Box::new(Host { next: Time::ZERO, every, left: 2_000 }) as Box<dyn Component>;
    let mut builder = Builder::new();
    let (fixed, mobile) =
        (builder.add(host(Duration::from_millis(50))), builder.add(host(Duration::from_millis(90))));
    let (down, up) = (builder.add(link("down")), builder.add(link("up")));
    for (from, to) in [(fixed, down), (down, mobile), (mobile, up), (up, fixed)] {
        builder.connect((from, Port::ONLY), (to, Port::ONLY));
    }
    let mut engine = builder.build(Log::default());
    assert_eq!(engine.run(&[], Time::NEVER), Ended::Idle);
    for id in [down, up] {
        let Node::Link(link) = engine.node(id) else { panic!("a radio link") };
        let stats = link.stats();
        assert_eq!(stats.delivered + stats.discarded, 2_000);
    }
    engine.into_tap()
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// Errors are certain in bad periods and impossible in good ones, so each failed attempt overlapped a fade. A
/// third copy of the channel, queried separately, must show that fade.
#[test]
fn both_directions_share_the_fades_of_one_channel() {
    let (log, longest) = (run(3), Duration::from_millis(16));
    for direction in [ComponentId(2), ComponentId(3)] {
        let mut fades = fading().build(Streams::new(3, 0).stream("channel"));
        let failures = log.failures.iter().filter(|(_, from)| *from == direction);
        let met = failures.map(|&(end, _)| {
            let start = Time::ZERO + end.since(Time::ZERO + longest);
            fades.survival(start, end, 1) == 0.0
        });
        let met: Vec<_> = met.collect();
        assert!(met.len() > 20 && met.iter().all(|&fade| fade), "{direction:?}: {met:?}");
    }
}

/// Counts the link events that it is told of; wants some outcomes only.
struct Watcher {
    wants: fn(LinkOutcome) -> bool,
    told: Arc<AtomicU64>,
}

impl Component for Watcher {
    fn receive(&mut self, _now: Time, _packet: &Packet, _port: Port, _out: &mut Out) {}

    fn on_signal(&mut self, _now: Time, signal: &Signal, _out: &mut Out) {
        let Signal::Link(event) = signal else { panic!("a link signals link events") };
        assert!((self.wants)(event.outcome), "{event:?} was not wanted");
        self.told.fetch_add(1, Ordering::Relaxed);
    }

    fn needs_outcome(&self, outcome: LinkOutcome) -> bool {
        (self.wants)(outcome)
    }
}

#[test]
fn watchers_are_told_only_the_outcomes_that_they_want() {
    let wants: [fn(LinkOutcome) -> bool; 3] = [
        |outcome| outcome == LinkOutcome::AttemptFailed,
        |outcome| outcome != LinkOutcome::Delivered,
        |_| true,
    ];
    for wants in wants {
        let streams = Streams::new(1, 0);
        let stream = |name| streams.stream(name);
        let arq = stop_and_wait(Retransmissions::AtMost(2), Backoff::Uniform(Duration::from_millis(700)));
        let channel = fading().build(stream("channel"));
        let link = Link::radio(
            RadioConfig { arq, ..plain() },
            QueueLimit::Unlimited,
            channel,
            stream("bits"),
            stream("backoff"),
        );
        let mut builder = Builder::new();
        let host = Host { next: Time::ZERO, every: Duration::from_millis(50), left: 2_000 };
        let host = builder.add(Box::new(host) as Box<dyn Component>);
        let link = builder.add(link);
        let told = Arc::new(AtomicU64::new(0));
        let watcher = Watcher { wants, told: Arc::clone(&told) };
        let watcher = builder.add(Box::new(watcher) as Box<dyn Component>);
        builder.connect((host, Port::ONLY), (link, Port::ONLY));
        builder.connect((link, Port::ONLY), (host, Port::ONLY));
        builder.watch(link, watcher);
        let mut engine = builder.build(NoTap);
        engine.run(&[], Time::NEVER);
        let Node::Link(link) = engine.node(link) else { panic!("a radio link") };
        let stats = link.stats();
        let counts = [
            (LinkOutcome::AttemptFailed, stats.failed_attempts),
            (LinkOutcome::Delivered, stats.delivered),
            (LinkOutcome::Discarded, stats.discarded),
        ];
        assert!(counts.iter().all(|&(_, count)| count > 10), "{counts:?}");
        let wanted: u64 =
            counts.iter().filter(|&&(outcome, _)| wants(outcome)).map(|&(_, count)| count).sum();
        assert_eq!(told.load(Ordering::Relaxed), wanted);
    }
}
