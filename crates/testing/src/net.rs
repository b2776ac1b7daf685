//! A sender, a receiver and two wired hops in each direction, with filters that drop packets.

use lasthop_base::{BitRate, Duration, Time};
use lasthop_proto::tcp::{
    Congestion, Connection, Flavour, Reactions, Receiver, Rules, Sender, SeqNum, Settings, Transfer,
};
use lasthop_proto::{Component, ComponentId, DropReason, FlowId, HostId, Out, Packet, Port, arq};
use lasthop_sim::{Builder, Ended, Engine, Expansion, Exposed, Link, Node, QueueLimit, RadioConfig};

use crate::invariants::Invariants;

/// Decides which packets are lost; called once per packet.
pub type Loses = Box<dyn FnMut(&Packet) -> bool + Send>;

/// Loses the packets whose bit is set in `pattern`, by order of arrival.
pub fn by_order(pattern: u32) -> Loses {
    let mut count = 0;
    Box::new(move |_: &Packet| {
        count += 1;
        count <= 32 && pattern >> (count - 1) & 1 == 1
    })
}

/// No losses.
pub fn nothing() -> Loses {
    Box::new(|_| false)
}

/// A wireless link at `rate`, with neither delay nor overhead, units, code or ARQ.
pub fn plain_radio(rate: BitRate) -> RadioConfig {
    RadioConfig {
        rate,
        delay: Duration::ZERO,
        expansion: Expansion::NONE,
        mtu: None,
        unit: None,
        fec: None,
        exposed: Exposed::OnAir,
        arq: arq::Config::None,
    }
}

/// A component in the path that loses packets.
pub struct Filter(pub Loses);

impl Component for Filter {
    fn receive(&mut self, _now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        if self.0(packet) {
            out.drop(*packet, DropReason::Scripted);
        } else {
            out.send(Port::ONLY, *packet);
        }
    }
}

/// A base station without an agent.
pub struct Forwarder;

impl Component for Forwarder {
    fn receive(&mut self, _now: Time, packet: &Packet, port: Port, out: &mut Out) {
        out.send(port.across(), *packet);
    }
}

/// From host 0 to host 1.
pub const CONNECTION: Connection = Connection { src: HostId(0), dst: HostId(1), flow: FlowId(0) };

/// The first sequence number of data under `settings`.
pub fn first_byte(settings: &Settings) -> SeqNum {
    SeqNum(settings.iss) + u32::from(settings.handshake)
}

/// The largest payload that a reaction may choose, in bytes.
pub const LARGEST_CUT: u32 = 1460;

/// How far a sender may exceed the congestion window: with limited transmit by a segment for each early
/// duplicate ACK; with ns-2's `partial_ack_` by what partial acknowledgements send. A reaction classifies a
/// hole when it is retransmitted; with SACK that may be after new data were sent, and reduce the window below
/// the data in flight. Otherwise ns-2's pipe may count short segments as full ones beyond the window. A
/// reaction that resegments may enlarge segments.
pub fn slack(settings: &Settings, reacting: bool) -> u32 {
    let sends_two = settings.rules == Rules::Ns2 && settings.partial_ack_sends;
    let stays_open = reacting || settings.congestion == Congestion::None;
    if settings.flavour == Flavour::Sack && (sends_two || stays_open) {
        settings.window_payload()
    } else if settings.flavour == Flavour::Prr {
        // A tail loss probe; a reaction that reduces the window after new data were sent.
        if reacting { settings.window_payload().max(LARGEST_CUT) } else { settings.mss() }
    } else if settings.limited_transmit {
        let mss = if reacting { settings.mss().max(LARGEST_CUT) } else { settings.mss() };
        mss * (settings.dupthresh - 1)
    } else {
        0
    }
}

/// Connects components in a ring, by their only ports.
pub fn ring(net: &mut Builder, path: &[ComponentId]) {
    for (index, &from) in path.iter().enumerate() {
        let to = path[(index + 1) % path.len()];
        net.connect((from, Port::ONLY), (to, Port::ONLY));
    }
}

/// Runs a transfer of `bytes` over 10 Mb/s with 5 ms delay each way and checks the invariants; `data` and
/// `acks` lose packets. Returns the number of lost packets.
pub fn transfer(settings: &Settings, bytes: u64, data: Loses, acks: Loses) -> u64 {
    transfer_with(settings, bytes, data, Box::new(Filter(acks)), None)
}

/// Like `transfer`, with an additional component in the ACK path and reactions at the sender.
pub fn transfer_with(
    settings: &Settings,
    bytes: u64,
    data: Loses,
    acks: Box<dyn Component>,
    reactions: impl Into<Reactions>,
) -> u64 {
    let rate = BitRate::from_bps(10_000_000).expect("not zero");
    let link = || Link::wired(rate, Duration::from_millis(5), QueueLimit::Unlimited);
    let mut net = Builder::new();
    let transfer = Transfer { bytes: Some(bytes), start: Time::ZERO };
    let reactions = reactions.into();
    let reacting = !reactions.is_empty();
    let slack = slack(settings, reacting);
    let sender = net.add(Sender::new(CONNECTION, settings, transfer, reactions));
    let receiver = net.add(Receiver::new(CONNECTION, settings));
    let there = [net.add(link()), net.add(Box::new(Filter(data)) as Box<dyn Component>)];
    let back = [net.add(link()), net.add(acks)];
    ring(&mut net, &[sender, there[0], there[1], receiver, back[0], back[1]]);
    let tap = Invariants::new(receiver, first_byte(settings), slack).end_to_end(settings, reacting);
    let mut engine = net.build(tap);
    let ended = engine.run(&[sender], Time::ZERO + Duration::from_secs(3_600));
    finish(engine, (sender, receiver), ended, bytes)
}

/// Final checks of a run that must have completed. Returns the number of lost packets.
pub fn finish(
    engine: Engine<Invariants>,
    (sender, receiver): (ComponentId, ComponentId),
    ended: Ended,
    bytes: u64,
) -> u64 {
    let now = engine.now();
    assert_eq!(ended, Ended::Finished, "the transfer does not complete ({now})");
    let (Node::Sender(source), Node::Receiver(sink)) = (engine.node(sender), engine.node(receiver)) else {
        unreachable!("the node has this kind")
    };
    engine.tap().check_end(source, sink, bytes);
    assert_eq!(engine.handled(), engine.tap().handled);
    engine.tap().drops
}

/// `n` full segments.
pub fn segments(settings: &Settings, n: u64) -> u64 {
    n * u64::from(settings.mss())
}

/// A link in each direction between two ports, with losses.
pub fn join(
    net: &mut Builder,
    ends: [(ComponentId, Port); 2],
    link: impl Fn() -> Link,
    [there, back]: [Loses; 2],
) {
    let only = |id| (id, Port::ONLY);
    for (from, to, loses) in [(ends[0], ends[1], there), (ends[1], ends[0], back)] {
        let filter = net.add(Box::new(Filter(loses)) as Box<dyn Component>);
        let link = net.add(link());
        net.connect(from, only(link));
        net.connect(only(link), only(filter));
        net.connect(only(filter), to);
    }
}
