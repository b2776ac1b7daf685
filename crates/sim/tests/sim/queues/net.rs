//! Several sources connected to one link, with a sink behind it.

use lasthop_base::{BitRate, Bytes, Duration, Streams, Time};
use lasthop_proto::tcp::Connection;
use lasthop_proto::traffic::{Config, Pattern, Sink, SinkStats, Source};
use lasthop_proto::{ComponentId, DropReason, FlowId, HostId, Packet, Port};
use lasthop_sim::{Builder, Engine, Link, Node, QueueLimit, Tap, Wire};

/// Packet size, transmitted in [`SERVICE`].
pub(crate) const SIZE: Bytes = Bytes(1_000);
/// Transmission time of a packet.
pub(crate) const SERVICE: Duration = Duration::from_millis(1);
/// Propagation delay.
pub(crate) const DELAY: Duration = Duration::from_millis(30);
const LINK_BPS: u64 = 8_000_000;

/// The rate of this many thousandths of the link rate.
pub(crate) fn load(thousandths: u64) -> BitRate {
    BitRate::from_bps(LINK_BPS / 1_000 * thousandths).unwrap()
}

/// A source with this pattern and no end.
pub(crate) fn always(pattern: Pattern) -> Config {
    Config { size: SIZE, start: Time::ZERO, stop: Time::NEVER, pattern, dscp: lasthop_proto::Dscp::DEFAULT }
}

/// Departure times at the sources, and the number of losses.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) sent: Vec<Time>,
    pub(crate) lost: u64,
}

impl Tap for Watch {
    fn cross(&mut self, now: Time, wire: Wire, _packet: &Packet) {
        if wire.from.0 > LINK {
            self.sent.push(now);
        }
    }

    fn drop(&mut self, _now: Time, at: ComponentId, _packet: &Packet, reason: DropReason) {
        assert_eq!((at, reason), (LINK, DropReason::QueueFull));
        self.lost += 1;
    }
}

const SINK: ComponentId = ComponentId(0);
const LINK: ComponentId = ComponentId(1);

/// A run of sources with these configurations and this queue limit.
pub(crate) struct Net {
    pub(crate) engine: Engine<Watch>,
}

impl Net {
    pub(crate) fn new(seed: u64, configs: &[Config], limit: QueueLimit) -> Net {
        let mut net = Builder::new();
        assert_eq!(net.add(Sink::new()), SINK);
        let rate = BitRate::from_bps(LINK_BPS).unwrap();
        assert_eq!(net.add(Link::wired(rate, DELAY, limit)), LINK);
        net.connect((LINK, Port::ONLY), (SINK, Port::ONLY));
        for (index, config) in configs.iter().enumerate() {
            let connection = Connection { src: HostId(1), dst: HostId(0), flow: FlowId(index as u32) };
            let stream = Streams::new(seed, 0).stream(&format!("traffic:{index}"));
            let source = net.add(Source::new(connection, *config, stream));
            net.connect((source, Port::ONLY), (LINK, Port::ONLY));
        }
        Net { engine: net.build(Watch::default()) }
    }

    /// Runs until `end`.
    pub(crate) fn until(&mut self, end: Duration) {
        self.engine.run(&[], Time::ZERO + end);
    }

    pub(crate) fn sink(&self) -> SinkStats {
        let Node::Sink(sink) = self.engine.node(SINK) else { unreachable!("added there") };
        *sink.stats()
    }

    /// Number of packets sent by source `index`.
    pub(crate) fn sent_by(&self, index: u32) -> u64 {
        let Node::Source(source) = self.engine.node(ComponentId(LINK.0 + 1 + index)) else {
            unreachable!("added there")
        };
        assert_eq!(source.stats().bytes, SIZE * source.stats().packets);
        source.stats().packets
    }

    /// The ratio of two counts over 99 batches of the run. The batch before them is discarded because it
    /// starts with an empty queue.
    pub(crate) fn ratio(&mut self, stretch: Duration, counts: impl Fn(&Net) -> (f64, f64)) -> Estimate {
        self.until(stretch);
        let mut before = counts(self);
        let stretches: Vec<_> = (2..=100)
            .map(|number| {
                self.until(stretch * number);
                let now = counts(self);
                let difference = (now.0 - before.0, now.1 - before.1);
                before = now;
                difference
            })
            .collect();
        Estimate::of_ratio(&stretches)
    }
}

/// An estimate from a run.
#[derive(Debug)]
pub(crate) struct Estimate {
    value: f64,
    standard_error: f64,
}

impl Estimate {
    /// The ratio of sums, with the standard error from the residuals of the batches.
    fn of_ratio(stretches: &[(f64, f64)]) -> Estimate {
        let n = stretches.len() as f64;
        let part: f64 = stretches.iter().map(|(part, _)| part).sum();
        let whole: f64 = stretches.iter().map(|(_, whole)| whole).sum();
        let value = part / whole;
        let squares: f64 = stretches.iter().map(|(part, whole)| (part - value * whole).powi(2)).sum();
        Estimate { value, standard_error: (squares * n / (n - 1.0)).sqrt() / whole }
    }

    /// The estimate in another unit.
    pub(crate) fn over(self, unit: f64) -> Estimate {
        Estimate { value: self.value / unit, standard_error: self.standard_error / unit }
    }

    /// Asserts that the estimate is within five standard errors of `expected`, and that these are at most
    /// this fraction of it.
    #[track_caller]
    pub(crate) fn assert_is(&self, what: &str, expected: f64, largest_tolerance: f64) {
        let Estimate { value, standard_error } = *self;
        let errors = (value - expected) / standard_error;
        let tolerance = 5.0 * standard_error / expected;
        println!("{what}: {value:.5}, exact {expected:.5}, {errors:+.1} errors, tolerance {tolerance:.4}");
        assert!(errors.abs() < 5.0, "{what}: {value}, not {expected}: {errors:.1} standard errors off");
        assert!(tolerance < largest_tolerance, "{what}: a tolerance of {tolerance:.3} shows nothing");
    }
}
