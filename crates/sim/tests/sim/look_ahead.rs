//! Look-ahead changes no result: random networks with and without it agree in every counter, every loss and every
//! arrival, at the end and on the way there.

use lasthop_base::{BitRate, Bytes, Duration, Probability, Stream, Streams, Time};
use lasthop_channel::{FrameLoss, Model, Start, TwoState};
use lasthop_link::queue::{Management, codel};
use lasthop_proto::frag::Mtu;
use lasthop_proto::tcp::{Connection, Flavour, Profile, Receiver, Sender, Settings, Transfer};
use lasthop_proto::traffic::{self, Pattern, Sink, Source};
use lasthop_proto::{
    Body, Component, ComponentId, Datagram, DropReason, Dscp, Ecn, FlowId, Handle, HostId, Out, Packet, Port,
    Probe, Signal, arq,
};
use lasthop_sim::network::{ComponentKind, FlowPath, Graph, MovingHosts, Wiring};
use lasthop_sim::{Builder, Ended, Engine, Link, NoTap, Node, QueueLimit, RadioConfig, Tap, Wire, WireId};
use lasthop_testing::net::plain_radio;

/// A random network: flows share some nodes, so that some links get packets of several flows, and some of one only.
/// Rates, sizes and delays are round, so that many events have the same instant.
struct World {
    links: Vec<[Hop; 2]>,
    flows: Vec<Flow>,
    wiring: Wiring,
    streams: Streams,
}

#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "a network has few")]
enum Hop {
    Wired { rate: BitRate, delay: Duration, limit: QueueLimit },
    Managed { rate: BitRate, delay: Duration },
    Radio { config: RadioConfig, queue: QueueLimit, channel: Model },
}

struct Flow {
    connection: Connection,
    start: Time,
    /// Bytes of a TCP transfer; otherwise a source of datagrams.
    transfer: Option<u64>,
    pattern: Pattern,
}

fn one_of<T: Copy>(random: &mut Stream, choices: &[T]) -> T {
    choices[random.below(choices.len() as u64) as usize]
}

impl Hop {
    fn random(random: &mut Stream) -> Hop {
        let rate = one_of(random, &[1_000_000, 2_000_000, 8_000_000, 1_000_000_000_000]);
        let rate = BitRate::from_bps(rate).unwrap();
        let delay = Duration::from_micros(one_of(random, &[0, 0, 320, 1_000, 4_000, 20_000]));
        let queues = [
            QueueLimit::Unlimited,
            QueueLimit::Packets(1),
            QueueLimit::Packets(3),
            QueueLimit::Packets(10),
            QueueLimit::Bytes(Bytes(3_000)),
        ];
        let queue = one_of(random, &queues);
        match random.below(8) {
            0..4 => Hop::Wired { rate, delay, limit: queue },
            4 => Hop::Managed { rate, delay },
            _ => {
                let loss = Probability::new(one_of(random, &[0.0, 0.02, 0.2])).unwrap();
                let (good, bad) = (Duration::from_millis(40), Duration::from_millis(8));
                let ber = |p| Probability::new(p).unwrap();
                let (good_ber, bad_ber) = (ber(1e-6), ber(1e-3));
                let fades = TwoState { good, bad, good_ber, bad_ber, start: Start::Good };
                let channel = if random.bernoulli(0.5) {
                    Model::FrameLoss(FrameLoss { loss })
                } else {
                    Model::TwoState(fades)
                };
                let arq = match random.bernoulli(0.3) {
                    true => arq::Config::StopAndWait(arq::stop_and_wait::Params::default()),
                    false => arq::Config::None,
                };
                let mtu = random.bernoulli(0.5).then(|| Mtu::new(Bytes(128)).unwrap());
                let config = RadioConfig { delay, mtu, arq, ..plain_radio(rate) };
                Hop::Radio { config, queue, channel }
            }
        }
    }
}

impl World {
    fn random(run: u64) -> World {
        let streams = Streams::new(16, run);
        let random = &mut streams.stream("world");
        let mut graph = Graph::new();
        let mut links = Vec::new();
        // In some worlds all flows are alike and share no link, so that they do everything at the same instants.
        let alike = random.bernoulli(0.3).then(|| Hop::random(random));
        let mut connect = |graph: &mut Graph, a, b, random: &mut Stream| {
            if graph.link(a, b).is_none() {
                graph.connect(a, b);
                let mut link = || alike.clone().unwrap_or_else(|| Hop::random(random));
                links.push([link(), link()]);
            }
        };
        // Nodes in a row that flows share, each flow a part of the row, with links of its own before and after.
        let shared: Vec<HostId> = (0..1 + random.below(4)).map(|_| graph.add_node()).collect();
        let count = 1 + random.below(4);
        let (mut flows, mut paths): (Vec<Flow>, Vec<FlowPath>) = (Vec::new(), Vec::new());
        let mut ends: Vec<[Vec<HostId>; 2]> = Vec::new();
        for flow in 0..count {
            let first = if alike.is_some() { 0 } else { random.below(shared.len() as u64) as usize };
            let more = if alike.is_some() { 1 } else { shared.len() - first };
            let last = first + random.below(more as u64) as usize;
            let own = |graph: &mut Graph, random: &mut Stream| -> Vec<HostId> {
                let more = if alike.is_some() { 0 } else { random.below(3) };
                (0..=more).map(|_| graph.add_node()).collect()
            };
            // Some flows begin or end where another does, and part from it in between.
            let mut end = |side: usize, random: &mut Stream| match alike.is_some()
                || ends.is_empty()
                || random.bernoulli(0.5)
            {
                true => own(&mut graph, random),
                false => ends[random.below(ends.len() as u64) as usize][side].clone(),
            };
            let (head, tail) = (end(0, random), end(1, random));
            let mut nodes = [&head[..], &shared[first..=last], &tail].concat();
            ends.push([head, tail]);
            if alike.is_none() && random.bernoulli(0.3) {
                nodes.reverse();
            }
            for step in nodes.windows(2) {
                connect(&mut graph, step[0], step[1], random);
            }
            let is_tcp = flow == 0 || random.bernoulli(0.6);
            let connection =
                Connection { src: nodes[0], dst: nodes[nodes.len() - 1], flow: FlowId(flow as u32) };
            let rate = BitRate::from_bps(one_of(random, &[500_000, 2_000_000])).unwrap();
            let pattern = match random.bernoulli(0.5) {
                true => Pattern::Constant { rate },
                false => Pattern::Poisson { rate },
            };
            let start = if alike.is_some() { 0 } else { one_of(random, &[0, 0, 8, 100]) };
            let start = Time::ZERO + Duration::from_millis(start);
            let segments = if alike.is_some() { 10 } else { 1 + random.below(30) };
            let transfer = is_tcp.then_some(1_000 * segments);
            flows.push(Flow { connection, start, transfer, pattern });
            paths.push(FlowPath { nodes, others: Vec::new(), one_way: !is_tcp, joins: None });
        }
        let agents = vec![[0; 2]; links.len()];
        let wiring = Wiring::new(&graph, &agents, &paths, &MovingHosts::default());
        World { links, flows, wiring, streams }
    }

    fn component(&self, index: usize, kind: &ComponentKind) -> Node {
        let settings = Settings { flavour: Flavour::Sack, ..Profile::Rfc.settings() };
        let stream = |name: &str| self.streams.stream(&format!("{name}:{index}"));
        match kind {
            ComponentKind::Source(flow) => {
                let Flow { connection, start, transfer, pattern } = self.flows[flow.index()];
                match transfer {
                    Some(bytes) => {
                        let transfer = Transfer { bytes: Some(bytes), start };
                        Sender::new(connection, &settings, transfer, None).into()
                    }
                    None => {
                        let config = traffic::Config {
                            size: Bytes(500),
                            start,
                            stop: Time::NEVER,
                            pattern,
                            dscp: lasthop_proto::Dscp::DEFAULT,
                        };
                        Source::new(connection, config, stream("traffic")).into()
                    }
                }
            }
            ComponentKind::Sink(flow) => {
                let Flow { connection, transfer, .. } = self.flows[flow.index()];
                match transfer {
                    Some(_) => Receiver::new(connection, &settings).into(),
                    None => Sink::new().into(),
                }
            }
            ComponentKind::Link(link, from) => match self.links[link.index()][*from].clone() {
                Hop::Wired { rate, delay, limit } => Link::wired(rate, delay, limit).into(),
                Hop::Managed { rate, delay } => {
                    let codel = Management::Codel(codel::Params::default());
                    let queue = codel.build(|size| rate.time_for(size), stream("queue"));
                    Link::wired(rate, delay, queue).into()
                }
                Hop::Radio { config, queue, channel } => {
                    let channel = channel.build(stream("channel"));
                    Link::radio(config, queue, channel, stream("bits"), stream("backoff")).into()
                }
            },
            ComponentKind::Router(router) => router.clone().into(),
            ComponentKind::MovingRouter(..) | ComponentKind::Mover(_) => unreachable!("no host moves"),
            ComponentKind::Shared(_) | ComponentKind::Bss(_) | ComponentKind::Agent(_) => {
                unreachable!("none here")
            }
        }
    }

    fn build(&self, step_by_step: bool) -> Engine<Log> {
        let mut builder = Builder::new();
        for (index, kind) in self.wiring.components.iter().enumerate() {
            builder.add(self.component(index, kind));
        }
        for &(from, to) in &self.wiring.wires {
            builder.connect(from, to);
        }
        for &(feeder, link) in &self.wiring.feeds {
            builder.feed(feeder, link);
        }
        if step_by_step {
            builder = builder.step_by_step();
        }
        let ends = self.wiring.flows.iter().flat_map(|flow| [flow.source.0, flow.sink.0]);
        // In half of the worlds, some components and wires inside the network are seen, too.
        let random = &mut self.streams.stream("seen");
        let share = if random.bernoulli(0.5) { 0.0 } else { 0.2 };
        let components = (0..self.wiring.components.len()).map(|index| ComponentId(index as u32));
        let components = components.filter(|_| random.bernoulli(share)).collect();
        let wires = (0..self.wiring.wires.len()).map(|index| WireId(index as u32));
        let random = &mut self.streams.stream("seen wires");
        let wires = wires.filter(|_| random.bernoulli(share)).collect();
        builder.build(Log { ends: ends.collect(), components, wires, ..Log::default() })
    }
}

/// What happened at the ends and wherever the log looks, and all losses, in order.
#[derive(Debug, Default, PartialEq)]
struct Log {
    ends: Vec<ComponentId>,
    components: Vec<ComponentId>,
    wires: Vec<WireId>,
    events: Vec<(Time, ComponentId, &'static str, FlowId, u64)>,
    shown: Vec<(Time, ComponentId, &'static str, u64)>,
}

/// Records what a component shows.
struct Shown<'a>(&'a mut Vec<(Time, ComponentId, &'static str, u64)>, Time, ComponentId);

impl Probe for Shown<'_> {
    fn value(&mut self, name: &'static str, value: f64) {
        self.0.push((self.1, self.2, name, value.to_bits()));
    }
}

/// Tells packets of a flow apart.
fn number(packet: &Packet) -> u64 {
    match &packet.body {
        Body::Tcp(segment) => u64::from(segment.seq.0) << 32 | u64::from(segment.ack.0),
        Body::Datagram(datagram) => datagram.seq,
        Body::Notice(_) | Body::Coded(_) => unreachable!("no scheme is used"),
    }
}

impl Tap for Log {
    fn cross(&mut self, now: Time, wire: Wire, packet: &Packet) {
        // Only with look-ahead off, crossings of all wires are reported.
        if self.sees_wire(&wire) {
            self.events.push((now, wire.to.0, "cross", packet.flow, number(packet)));
        }
    }

    fn drop(&mut self, now: Time, at: ComponentId, packet: &Packet, reason: DropReason) {
        let why = if reason == DropReason::QueueFull { "full" } else { "lost" };
        self.events.push((now, at, why, packet.flow, number(packet)));
    }

    fn handled(&mut self, now: Time, id: ComponentId, component: &Node) {
        if self.sees_component(id) {
            self.shown.push((now, id, "handled", 0));
            component.show(&mut Shown(&mut self.shown, now, id));
        }
    }

    fn sees_wire(&self, wire: &Wire) -> bool {
        let ends = [wire.from.0, wire.to.0];
        ends.iter().any(|end| self.ends.contains(end)) || self.wires.contains(&wire.id)
    }

    fn sees_signals(&self) -> bool {
        false
    }

    fn sees_component(&self, id: ComponentId) -> bool {
        self.components.contains(&id)
    }
}

/// Everything that a run can be asked for.
fn state(engine: &Engine<Log>, components: usize) -> String {
    let nodes = (0..components).map(|id| match engine.node(ComponentId(id as u32)) {
        Node::Sender(sender) => format!("{:?}", sender.stats()),
        Node::Receiver(receiver) => format!("{:?}", receiver.stats()),
        Node::Link(link) => format!("{:?}", link.stats()),
        Node::Source(source) => format!("{:?}", source.stats()),
        Node::Sink(sink) => format!("{:?}", sink.stats()),
        _ => String::new(),
    });
    let nodes: Vec<String> = nodes.collect();
    format!("{} {} {}", engine.now(), engine.packets_held(), nodes.join("\n"))
}

#[test]
fn results_are_the_same_with_and_without_look_ahead() {
    let (mut looked_ahead, mut full, mut lost, mut finished, mut with_arq) = (0, 0, 0, 0, 0);
    for run in 0..4_000 {
        let world = World::random(run);
        let random = &mut world.streams.stream("stages");
        let (mut ahead, mut plain) = (world.build(false), world.build(true));
        let senders = world.wiring.flows.iter().zip(&world.flows);
        let senders = senders.filter(|(_, flow)| flow.transfer.is_some()).map(|(ends, _)| ends.source.0);
        let senders: Vec<ComponentId> = senders.collect();
        // Ends in between are often at an instant at which something happens: times are round.
        let mut limit = Time::ZERO;
        for _ in 0..3 {
            limit += Duration::from_millis(4 * random.below(120));
            let awaited = &senders[..random.below(senders.len() as u64 + 1) as usize];
            let ended = plain.run(awaited, limit);
            assert_eq!(ended, ahead.run(awaited, limit), "world {run}");
            let components = world.wiring.components.len();
            assert_eq!(state(&ahead, components), state(&plain, components), "world {run}, {limit}");
            finished += u32::from(ended == Ended::Finished);
        }
        assert_eq!(ahead.tap(), plain.tap(), "world {run}");
        looked_ahead += u32::from(ahead.looks_ahead());
        with_arq += u32::from(ahead.handled() < plain.handled());
        full += plain.tap().events.iter().filter(|event| event.2 == "full").count();
        lost += plain.tap().events.iter().filter(|event| event.2 == "lost").count();
    }
    // The worlds are not trivial.
    assert!(looked_ahead > 2_000, "{looked_ahead} of 4,000 worlds allow look-ahead");
    // Links with an ARQ wake up less often; other links count the same events.
    assert!(with_arq > 400, "in {with_arq} of 4,000 worlds a link with an ARQ looks ahead");
    assert!(full > 10_000 && lost > 10_000 && finished > 1_000, "{full} {lost} {finished}");
}

fn datagram(size: Bytes) -> Packet {
    let (src, dst, flow) = (HostId(0), HostId(1), FlowId(0));
    let body = Body::Datagram(Datagram { seq: 0, sent: Time::ZERO });
    let (dscp, ecn) = (Dscp::DEFAULT, Ecn::NotEct);
    Packet { src, dst, flow, size, dscp, ecn, handle: Handle::NONE, body }
}

/// Sends a packet at the start, and finishes when it has come back: in its own wake-up, at the same instant.
struct Echo {
    next: Time,
    back: bool,
}

impl Component for Echo {
    fn receive(&mut self, now: Time, _packet: &Packet, _port: Port, _out: &mut Out) {
        (self.next, self.back) = (now, true);
    }

    fn wake(&mut self, _now: Time, out: &mut Out) {
        self.next = Time::NEVER;
        if self.back {
            return out.signal(Signal::Finished);
        }
        out.send(Port::ONLY, datagram(Bytes(40)));
    }

    fn next_wakeup(&self) -> Time {
        self.next
    }
}

#[test]
fn a_run_that_ends_in_a_second_turn_of_its_last_instant_counts_the_first() {
    let mut builder = Builder::new();
    let echo = builder.add(Box::new(Echo { next: Time::ZERO, back: false }) as Box<dyn Component>);
    let stream = |name| Streams::new(1, 0).stream(name);
    let config = plain_radio(BitRate::from_bps(1_000).unwrap());
    let channel = Model::Perfect.build(stream("channel"));
    let link =
        builder.add(Link::radio(config, QueueLimit::Unlimited, channel, stream("bits"), stream("backoff")));
    builder.connect((echo, Port::ONLY), (link, Port::ONLY));
    builder.connect((link, Port::ONLY), (echo, Port::ONLY));
    let mut engine = builder.build(NoTap);
    assert_eq!(engine.run(&[echo], Time::NEVER), Ended::Finished);
    let Node::Link(link) = engine.node(link) else { unreachable!("it is a radio link") };
    assert_eq!(link.stats().delivered, 1);
}

/// Sends a packet of four units at the start, and finishes at another time.
struct Clock {
    next: Time,
    finishes: Time,
}

impl Component for Clock {
    fn receive(&mut self, _now: Time, _packet: &Packet, _port: Port, _out: &mut Out) {}

    fn wake(&mut self, now: Time, out: &mut Out) {
        if now == Time::ZERO {
            self.next = self.finishes;
            out.send(Port::ONLY, datagram(Bytes(500)));
        } else {
            self.next = Time::NEVER;
            out.signal(Signal::Finished);
        }
    }

    fn next_wakeup(&self) -> Time {
        self.next
    }
}

/// The transmissions on a link with an ARQ when the clock finishes after so many milliseconds. Units take a second.
fn attempts(milliseconds: u64, link_is_first: bool, steps: bool) -> u64 {
    let mut builder = Builder::new();
    let stream = |name| Streams::new(1, 0).stream(name);
    let arq = arq::Config::StopAndWait(arq::stop_and_wait::Params::default());
    let rate = BitRate::from_bps(1_000).unwrap();
    let config = RadioConfig { mtu: Mtu::new(Bytes(125)), arq, ..plain_radio(rate) };
    let link = Link::radio(
        config,
        QueueLimit::Unlimited,
        Model::Perfect.build(stream("channel")),
        stream("bits"),
        stream("backoff"),
    );
    let finishes = Time::ZERO + Duration::from_millis(milliseconds);
    let clock = Box::new(Clock { next: Time::ZERO, finishes }) as Box<dyn Component>;
    let (link, clock) = if link_is_first {
        (builder.add(link), builder.add(clock))
    } else {
        let clock = builder.add(clock);
        (builder.add(link), clock)
    };
    builder.connect((clock, Port::ONLY), (link, Port::ONLY));
    builder.connect((link, Port::ONLY), (clock, Port::ONLY));
    let mut engine = if steps { builder.step_by_step() } else { builder }.build(NoTap);
    assert_eq!(engine.run(&[clock], Time::NEVER), Ended::Finished);
    let Node::Link(link) = engine.node(link) else { unreachable!("it is a radio link") };
    link.stats().attempts
}

/// A link with an ARQ counts the units that have ended when a run stops, although it looked ahead to later ones; at the
/// same instant, if its turn has come.
#[test]
fn a_run_that_stops_within_a_packet_counts_the_units_that_have_ended() {
    for (milliseconds, first, last) in [(1_999, 1, 1), (2_000, 2, 1), (2_001, 2, 2), (4_000, 4, 3)] {
        for (link_is_first, expected) in [(true, first), (false, last)] {
            for steps in [false, true] {
                let found = attempts(milliseconds, link_is_first, steps);
                assert_eq!(found, expected, "{milliseconds} ms, {link_is_first}, {steps}");
            }
        }
    }
}
