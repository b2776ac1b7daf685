//! Eight stations of an 802.11b cell that download by TCP over 100 Mb/s and 2 ms.

use lasthop_base::{BitRate, Duration, Streams, Time};
use lasthop_channel::Model;
use lasthop_proto::tcp::{Connection, Receiver, Sender, Settings, Transfer};
use lasthop_proto::{Component, ComponentId, FlowId, HostId, Out, Packet, Port};
use lasthop_sim::cell::{AboveMac, Cell, CellConfig, Station, StationStreams};
use lasthop_sim::{Builder, Engine, NoTap, Node, QueueLimit, WiredLink};

const STATIONS: u16 = 8;

/// Sends what comes out of the cell to where its flow begins.
struct Demultiplexer;

impl Component for Demultiplexer {
    fn receive(&mut self, _now: Time, packet: Packet, _port: Port, out: &mut Out) {
        out.send(Port(packet.flow.0), packet);
    }
}

/// A built network.
pub(crate) struct Network {
    pub(crate) engine: Engine<NoTap>,
    cell: ComponentId,
    receivers: Vec<ComponentId>,
    mss: u64,
}

impl Network {
    /// Every segment is acknowledged, as in the WENP paper.
    pub(crate) fn new() -> Network {
        let settings = Settings { ack_every: 1, ..Settings::default() };
        let streams = Streams::new(1, 0);
        let mut net = Builder::new();
        let wired = || {
            let rate = BitRate::from_bps(100_000_000).expect("not zero");
            WiredLink::new(rate, Duration::from_millis(2), QueueLimit::Unlimited)
        };
        let station = |index| Station {
            hosts: vec![host(index)],
            channel: Model::Perfect.build(streams.stream(&format!("channel:{index}"))),
            above_mac: AboveMac::default(),
            streams: StationStreams::named(&streams, &index.to_string()),
        };
        let stations = (0..STATIONS).map(station).collect();
        let cell = net.add(Cell::new(CellConfig::default(), streams.stream("backoff:ap"), stations));
        let (back, part) = (net.add(wired()), net.add(Box::new(Demultiplexer) as Box<dyn Component>));
        net.connect((cell, Port::WIRED), (back, Port::ONLY));
        net.connect((back, Port::ONLY), (part, Port::ONLY));
        let receivers = (0..STATIONS).map(|index| {
            let connection = Connection { src: HostId(0), dst: host(index), flow: FlowId(index) };
            let transfer = Transfer { bytes: None, start: Time::ZERO };
            let sender = net.add(Sender::new(connection, &settings, transfer, None));
            let (there, receiver) = (net.add(wired()), net.add(Receiver::new(connection, &settings)));
            net.connect((sender, Port::ONLY), (there, Port::ONLY));
            net.connect((there, Port::ONLY), (cell, Port::WIRED));
            net.connect((cell, Port(1 + index)), (receiver, Port::ONLY));
            net.connect((receiver, Port::ONLY), (cell, Port(1 + index)));
            net.connect((part, Port(index)), (sender, Port::ONLY));
            receiver
        });
        let receivers = receivers.collect();
        Network { engine: net.build(NoTap), cell, receivers, mss: u64::from(settings.mss()) }
    }

    /// Segments' worth of payload that reached an application, in order.
    pub(crate) fn delivered(&self) -> u64 {
        let delivered = self.receivers.iter().map(|&id| match self.engine.node(id) {
            Node::Receiver(receiver) => receiver.stats().delivered.0,
            _ => unreachable!("a receiver was put there"),
        });
        delivered.sum::<u64>() / self.mss
    }

    /// Frame exchanges, collisions included.
    pub(crate) fn exchanges(&self) -> u64 {
        let Node::Cell(cell) = self.engine.node(self.cell) else { unreachable!("a cell was put there") };
        cell.stats().exchanges + cell.stats().collisions
    }
}

fn host(index: u16) -> HostId {
    HostId(1 + index)
}
