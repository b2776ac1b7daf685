//! CoDel against RFC 8289.

use lasthop_base::{BitRate, Bytes, Duration, Streams, Time};
use lasthop_link::queue::codel::Params;
use lasthop_link::queue::{Codel, Discipline};
use lasthop_proto::tcp::Connection;
use lasthop_proto::traffic::{Config, Pattern, Sink, Source};
use lasthop_proto::{DropReason, Ecn, FlowId, HostId, Port};
use lasthop_sim::{Builder, Link, NoTap, Node, QueueLimit};

use crate::disciplines::bench::{Bench, us};

fn unlimited() -> Params {
    Params { limit: QueueLimit::Unlimited, ..Params::default() }
}

/// A link that takes 1 µs per packet: packet i arrives at 0.9 i µs and departs at i µs if none is dropped, so
/// its delay is 0.1 i µs.
struct Overload {
    bench: Bench<Codel>,
    /// The next time at which the link is free, in µs.
    now: u64,
    ecn: Ecn,
    /// Times of marks.
    marks: Vec<Time>,
}

impl Overload {
    fn new(params: Params, ecn: Ecn) -> Overload {
        Overload { bench: Bench::new(Codel::new(params)), now: 0, ecn, marks: Vec::new() }
    }

    /// Runs for `length` µs, with an arrival every 0.9 µs.
    fn run(&mut self, length: u64) {
        let start = self.now;
        let mut came = 0;
        while self.now < start + length {
            while came * 900 <= (self.now - start) * 1_000 {
                let at = us(start) + Duration::from_nanos(came * 900);
                self.bench.come(at, 0, 1500, self.ecn);
                came += 1;
            }
            self.serve();
        }
    }

    /// Runs without arrivals until the queue is empty. Returns the time this took, in µs.
    fn drain(&mut self) -> u64 {
        let start = self.now;
        while self.serve() {}
        self.now - start
    }

    fn serve(&mut self) -> bool {
        let packet = self.bench.go(us(self.now));
        if packet.is_some_and(|packet| packet.ecn == Ecn::Ce) {
            self.marks.push(us(self.now));
        }
        self.now += 1;
        packet.is_some()
    }

    fn drops(&self) -> Vec<Time> {
        self.bench
            .drops
            .iter()
            .map(|&(at, _, reason)| {
                assert_eq!(reason, DropReason::ActiveQueue);
                at
            })
            .collect()
    }
}

/// Times of the drops that follow drop number `count`: interval / sqrt(count) apart.
fn due(first_us: u64, mut count: u32) -> impl Iterator<Item = f64> {
    let mut next = first_us as f64;
    std::iter::repeat_with(move || {
        let now = next;
        next += 100_000.0 / f64::from(count).sqrt();
        count += 1;
        now
    })
}

/// Each drop occurs at the first departure after it is due.
fn assert_due(found: &[Time], expected: impl Iterator<Item = f64>) {
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        let late = found.as_nanos() as f64 / 1_000.0 - expected;
        assert!((-0.01..1.0).contains(&late), "number {number} at {found}, {late} µs after {expected} µs");
    }
}

/// The delay reaches 5 ms at 50 ms. The first drop is one interval later, and the gaps are interval /
/// sqrt(count), to the microsecond.
#[test]
fn drops_follow_the_control_law() {
    let mut overload = Overload::new(unlimited(), Ecn::NotEct);
    overload.run(600_000);
    let drops = overload.drops();
    assert_eq!(drops[0], us(150_000));
    assert_due(&drops, due(150_000, 1));
    // 1/sqrt(1) + ... + 1/sqrt(n) is 4.5 at n = 8, or 450 ms.
    assert_eq!(drops.len(), 9);
    assert_eq!(overload.bench.queue.stats().early_drops, 9);
    assert!(overload.marks.is_empty());
}

/// ECN-capable packets are marked at the times at which others would be dropped, and none is lost.
#[test]
fn marks_follow_the_control_law() {
    for ecn in [Ecn::Ect0, Ecn::Ect1] {
        let mut overload = Overload::new(unlimited(), ecn);
        overload.run(600_000);
        assert_due(&overload.marks, due(150_000, 1));
        assert_eq!((overload.marks.len(), overload.drops().len()), (9, 0));
        assert_eq!(overload.bench.queue.stats().marked, 9);
    }
    let mut overload = Overload::new(Params { ecn: false, ..unlimited() }, Ecn::Ect0);
    overload.run(600_000);
    assert_eq!((overload.marks.len(), overload.drops().len()), (0, 9));
}

/// On re-entering the dropping state within 16 intervals, count resumes at the number of drops of the
/// previous state less the first; later it restarts at one.
#[test]
fn the_count_decays_between_dropping_states() {
    for (pause, soon) in [(1_000_000, true), (2_000_000, false)] {
        let mut overload = Overload::new(unlimited(), Ecn::NotEct);
        overload.run(600_000);
        overload.drain();
        overload.now = 600_000 + pause;
        let before = overload.drops().len();
        overload.run(500_000);
        let again = &overload.drops()[before..];
        assert_eq!(again[0], us(600_000 + pause + 150_000));
        let count = if soon { before as u32 - 1 } else { 1 };
        assert_due(again, due(600_000 + pause + 150_000, count));
        assert!(again.len() > 4);
    }
}

/// A packet that leaves at most one MTU in the queue is never dropped, whatever the delay.
#[test]
fn a_backlog_of_one_mtu_is_never_dropped() {
    for (left, drops) in [(1, false), (2, true)] {
        let mut bench = Bench::new(Codel::new(unlimited()));
        (0..left).for_each(|_| bench.come(Time::ZERO, 0, 1500, Ecn::NotEct));
        // Each waiting packet adds 50 ms of delay, ten times the target.
        for step in 1..200 {
            bench.come(us(step * 50_000), 0, 1500, Ecn::NotEct);
            assert!(bench.go(us(step * 50_000)).is_some());
            // Dropped packets are replaced, so the queue length is constant.
            while bench.queue.queued().0 < left {
                bench.come(us(step * 50_000), 0, 1500, Ecn::NotEct);
            }
        }
        assert_eq!(!bench.drops.is_empty(), drops, "with {left} left behind");
    }
}

/// A delay that falls below the target once per interval causes no drops.
#[test]
fn short_bursts_are_not_dropped() {
    let mut bench = Bench::new(Codel::new(unlimited()));
    for round in 0..50 {
        let start = round * 100_000;
        (0..90).for_each(|_| bench.come(us(start), 0, 1500, Ecn::NotEct));
        for step in 0..90 {
            assert!(bench.go(us(start + step * 1_000)).is_some());
        }
    }
    assert!(bench.drops.is_empty());
}

/// An overflow is not the discipline's decision: arrivals are dropped, ECN-capable or not.
#[test]
fn a_full_queue_drops_arrivals() {
    let mut bench = Bench::new(Codel::new(Params { limit: QueueLimit::Packets(3), ..Params::default() }));
    (0..5).for_each(|_| bench.come(Time::ZERO, 0, 1500, Ecn::Ect0));
    assert_eq!(bench.dropped(), [3, 4]);
    assert!(bench.drops.iter().all(|&(_, _, reason)| reason == DropReason::QueueFull));
    assert_eq!(bench.queue.stats().overflowed, 2);
}

/// An unresponsive source at twice the link rate. Drop n follows the first by 100 ms (1 + 1/sqrt(2) + ... +
/// 1/sqrt(n − 1)), within one packet time: about 25 t² drops in t seconds. The excess is 1,000 t packets, so
/// the queue grows for 20 s and is empty after 40.
#[test]
fn drops_of_an_unresponsive_source_match_a_closed_form() {
    let run = |seconds| {
        let mut net = Builder::new();
        let sink = net.add(Sink::new());
        let queue: Box<dyn Discipline> = Box::new(Codel::new(unlimited()));
        let rate = BitRate::from_bps(8_000_000).unwrap();
        let link = net.add(Link::wired(rate, Duration::from_millis(10), queue));
        let connection = Connection { src: HostId(1), dst: HostId(0), flow: FlowId(0) };
        let pattern = Pattern::Constant { rate: BitRate::from_bps(16_000_000).unwrap() };
        let config = Config {
            size: Bytes(1_000),
            start: Time::ZERO,
            stop: Time::NEVER,
            pattern,
            dscp: lasthop_proto::Dscp::DEFAULT,
        };
        let source = net.add(Source::new(connection, config, Streams::new(1, 0).stream("unused")));
        net.connect((source, Port::ONLY), (link, Port::ONLY));
        net.connect((link, Port::ONLY), (sink, Port::ONLY));
        let mut engine = net.build(NoTap);
        engine.run(&[], Time::ZERO + seconds);
        let Node::Link(link) = engine.node(link) else { panic!("a managed link") };
        let Node::Sink(sink) = engine.node(sink) else { panic!("a sink") };
        let Node::Source(source) = engine.node(source) else { panic!("a source") };
        (link.stats(), *sink.stats(), source.stats().packets)
    };
    // Packet i arrives at i/2 ms and departs at i ms: its delay is 5 ms at 10 ms.
    let due = |seconds: f64| due(110_000, 1).take_while(|&due| due <= seconds * 1e6).count() as f64;
    for seconds in [1, 5, 10, 20, 30, 39] {
        let (stats, sink, sent) = run(Duration::from_secs(seconds));
        let (found, expected) = (stats.early_drops as f64, due(seconds as f64));
        assert!((found - expected).abs() <= 2.0, "{found} drops in {seconds} s, expected {expected}");
        assert_eq!(sink.packets, seconds * 1_000 - 10, "the link is never idle");
        let queued = (sent - sink.packets - stats.early_drops) as f64;
        let closed = (1_000.0 - 25.0 * seconds as f64) * seconds as f64;
        assert!(
            (queued - closed).abs() < 0.02 * 10_000.0,
            "{queued} packets wait after {seconds} s, not {closed}"
        );
    }
    let (stats, sink, sent) = run(Duration::from_millis(40_200));
    let queued = sent - sink.packets - stats.early_drops;
    assert!(queued < 250, "{queued} packets wait");
}
