//! TCP flows over a wired link (10 Mb/s, 30 ms) and a last hop (2 Mb/s, 1 ms); each flow has its own links.

use lasthop_base::{BitRate, Bytes, Duration, Probability, Streams, Time};
use lasthop_channel::{FrameLoss, Model};
use lasthop_proto::tcp::{Congestion, Connection, Profile, Receiver, Sender, Settings, Transfer};
use lasthop_proto::{ComponentId, FlowId, HostId, Port, arq};
use lasthop_sim::{Builder, Engine, Expansion, Exposed, Link, Node, QueueLimit, RadioConfig, Tap, WireId};

/// Segments that the window holds: more than the path and its queue do.
const WINDOW: u64 = 200;

/// Some flows, each with its own network.
pub(crate) struct Dumbbell {
    pub(crate) flows: u32,
    /// Wired links before the last hop, which share its delay of 30 ms.
    pub(crate) wired: u32,
    pub(crate) settings: Settings,
    /// Bytes that each flow transfers; `None` if unbounded.
    pub(crate) segments: Option<u64>,
    pub(crate) channel: Model,
}

/// A built network.
pub(crate) struct Network<T> {
    pub(crate) engine: Engine<T>,
    pub(crate) senders: Vec<ComponentId>,
    receivers: Vec<ComponentId>,
    mss: u64,
}

/// The first flow's wires at its source.
#[derive(Clone, Copy)]
pub(crate) struct Source {
    pub(crate) sent: WireId,
    pub(crate) returned: WireId,
}

/// NewReno by the RFCs, but every segment is acknowledged.
pub(crate) fn rfc() -> Settings {
    let settings = Settings { ack_every: 1, ..Profile::Rfc.settings() };
    Settings { window: window(&settings).into(), ..settings }
}

/// NewReno as ns-2 has it.
pub(crate) fn ns2() -> Settings {
    let settings = Profile::Ns2.settings();
    Settings { window: window(&settings).into(), ..settings }
}

/// A Linux server with this congestion control, but every segment is acknowledged.
pub(crate) fn linux(congestion: Congestion) -> Settings {
    let settings = Settings { congestion, ack_every: 1, ..Profile::Linux.settings() };
    Settings { window: window(&settings).into(), ..settings }
}

fn window(settings: &Settings) -> Bytes {
    Bytes(WINDOW * u64::from(settings.mss()))
}

/// Frames are lost with this probability.
pub(crate) fn losing(loss: f64) -> Model {
    Model::FrameLoss(FrameLoss { loss: Probability::new(loss).expect("a probability") })
}

impl Dumbbell {
    /// The network of run number `run`, watched by the tap that `watch` makes.
    pub(crate) fn build<T: Tap>(&self, run: u64, watch: impl FnOnce(Source) -> T) -> Network<T> {
        let mut net = Builder::new();
        let streams = Streams::new(1, run);
        let flows: Vec<_> = (0..self.flows).map(|flow| self.add_flow(&mut net, flow, streams)).collect();
        let senders = flows.iter().map(|flow| flow.0).collect();
        let receivers = flows.iter().map(|flow| flow.1).collect();
        let engine = net.build(watch(flows[0].2));
        Network { engine, senders, receivers, mss: u64::from(self.settings.mss()) }
    }

    fn add_flow(&self, net: &mut Builder, flow: u32, streams: Streams) -> (ComponentId, ComponentId, Source) {
        let (src, dst) = (HostId(2 * flow), HostId(2 * flow + 1));
        let connection = Connection { src, dst, flow: FlowId(flow) };
        // Apart, so that no two flows do the same at the same instant; within a second, if there are many.
        let apart = Duration::from_micros(1_000_000 / u64::from(self.flows.max(100)));
        let start = Time::ZERO + apart * u64::from(flow);
        let bytes = self.segments.map(|segments| segments * u64::from(self.settings.mss()));
        let wired = || {
            let rate = BitRate::from_bps(10_000_000).expect("not zero");
            let delay = Duration::from_micros(30_000 / u64::from(self.wired.max(1)));
            Link::wired(rate, delay, QueueLimit::Unlimited)
        };
        let radio = |direction| {
            let stream = |name: &str| streams.stream_of(format_args!("{name}:{direction}:{flow}"));
            let channel = self.channel.build(stream("channel"));
            Link::radio(last_hop(), QueueLimit::Packets(50), channel, stream("bits"), stream("backoff"))
        };
        let sender = net.add(Sender::new(connection, &self.settings, Transfer { bytes, start }, None));
        let receiver = net.add(Receiver::new(connection, &self.settings));
        let links: Vec<_> = (0..self.wired).map(|_| (net.add(wired()), net.add(wired()))).collect();
        let (down, up) = (net.add(radio("down")), net.add(radio("up")));
        let there = links.iter().map(|link| link.0).chain([down, receiver]);
        let back = links.iter().rev().map(|link| link.1).chain([sender]);
        let way: Vec<_> = [sender].into_iter().chain(there).chain([up]).chain(back).collect();
        let connect = |step: &[ComponentId]| net.connect((step[0], Port::ONLY), (step[1], Port::ONLY));
        let wires: Vec<_> = way.windows(2).map(connect).collect();
        let (sent, returned) = (wires[0], wires[wires.len() - 1]);
        (sender, receiver, Source { sent, returned })
    }
}

fn last_hop() -> RadioConfig {
    RadioConfig {
        rate: BitRate::from_bps(2_000_000).expect("not zero"),
        delay: Duration::from_millis(1),
        expansion: Expansion::NONE,
        mtu: None,
        unit: None,
        fec: None,
        exposed: Exposed::OnAir,
        arq: arq::Config::None,
    }
}

impl<T: Tap> Network<T> {
    /// Segments' worth of payload that reached an application, in order.
    pub(crate) fn delivered(&self) -> u64 {
        let delivered = self.receivers.iter().map(|&id| match self.engine.node(id) {
            Node::Receiver(receiver) => receiver.stats().delivered.0,
            _ => unreachable!("a receiver was put there"),
        });
        delivered.sum::<u64>() / self.mss
    }
}
