//! Multicast to the base stations of a moving host: an agent and the receiver by hand.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Flags, Flavour, SackBlock, SackBlocks, Segment, SeqNum, Settings};
use lasthop_proto::{
    Body, Component, Datagram, DropReason, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet, Port,
    Reach, Signal,
};
use lasthop_testing::dialogue::{Server, settings};
use lasthop_testing::schemes::{agent, agent_of_station, installed, schemes_of};

const HOST: HostId = HostId(1);

fn packet(flow: u32, body: Body) -> Packet {
    let (src, flow, dscp, ecn) = (HostId(0), FlowId(flow), Dscp::DEFAULT, Ecn::NotEct);
    Packet { src, dst: HOST, flow, size: Bytes(1_040), dscp, ecn, handle: Handle::NONE, body }
}

/// Segment number `number` of 1,000 bytes.
fn data(flow: u32, number: u32) -> Packet {
    packet(flow, Body::Tcp(Segment { seq: SeqNum(1_000 * number), len: 1_000, ..Segment::default() }))
}

/// An acknowledgement from the host, which reports these segments.
fn report(flow: u32, ack: u32, segments: &[u32]) -> Packet {
    let mut sack = SackBlocks::default();
    let block = |number| SackBlock { start: SeqNum(1_000 * number), end: SeqNum(1_000 * number + 1_000) };
    segments.iter().for_each(|&number| sack.push(block(number)));
    let ack = Segment { ack: SeqNum(1_000 * ack), flags: Flags::ACK, sack, ..Segment::default() };
    Packet { src: HOST, dst: HostId(0), ..packet(flow, Body::Tcp(ack)) }
}

/// A base station of a moving host.
struct Station {
    agent: Box<dyn Component>,
    now: Time,
}

impl Station {
    /// Number 1; the host is at number 0.
    fn new(buffer: u32) -> Station {
        let schemes = schemes_of(&format!("[multicast]\nbuffer = {buffer}"));
        let mut station = Station { agent: agent_of_station(&schemes, "multicast", 1), now: Time::ZERO };
        station.host_is_at(0);
        station
    }

    fn host_is_at(&mut self, station: u16) -> Vec<Effect> {
        self.signal(Signal::Attached { host: HOST, station })
    }

    fn signal(&mut self, signal: Signal) -> Vec<Effect> {
        let mut out = Out::default();
        self.agent.on_signal(self.now, &signal, &mut out);
        effects(&mut out)
    }

    fn receive(&mut self, port: Port, packet: Packet) -> Vec<Effect> {
        let mut out = Out::default();
        self.agent.receive(self.now, &packet, port, &mut out);
        effects(&mut out)
    }

    /// Keeps segments, silently.
    fn keeps(&mut self, flow: u32, numbers: std::ops::Range<u32>) {
        for number in numbers {
            assert_eq!(self.receive(Port::WIRED, data(flow, number)), []);
        }
    }
}

fn effects(out: &mut Out) -> Vec<Effect> {
    std::iter::from_fn(|| out.take()).map(|(_, effect)| effect).collect()
}

fn sends(packet: Packet) -> Effect {
    Effect::Send(Port::RADIO, packet)
}

fn discards(packet: Packet) -> Effect {
    Effect::Drop(packet, DropReason::Suppressed)
}

/// Section 6: what arrived before the last packet that the host reports is freed; the rest is transmitted.
// Rule: as the_receiver_reports_when_its_signal_is_back
#[test]
fn the_host_gets_what_came_after_its_last_segment() {
    let mut station = Station::new(12);
    station.keeps(0, 0..6);
    assert_eq!(station.host_is_at(1), []);
    // Before its report, packets of the connection wait in order.
    station.keeps(0, 6..7);
    let ack = report(0, 1, &[3, 2]);
    let freed = (0..4).map(|number| discards(data(0, number)));
    let transmitted = (4..7).map(|number| sends(data(0, number)));
    let expected: Vec<_> =
        [Effect::Send(Port::WIRED, ack)].into_iter().chain(freed).chain(transmitted).collect();
    assert_eq!(station.receive(Port::RADIO, ack), expected);
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
    assert_eq!(station.receive(Port::WIRED, data(0, 7)), [sends(data(0, 7))]);
    assert_eq!(station.receive(Port::RADIO, ack), [Effect::Send(Port::WIRED, ack)]);
}

// Rule: A host that is not heard gets everything. [6; ../scheme/multicast.rs]
#[test]
fn a_host_that_is_not_heard_gets_everything_after_the_wait() {
    let mut station = Station::new(12);
    station.keeps(0, 0..2);
    station.keeps(1, 0..1);
    station.host_is_at(1);
    let due = Time::ZERO + Duration::from_millis(100);
    assert_eq!(station.agent.next_wakeup(), due);
    // One connection reports that it lacks everything; the other is silent.
    let ack = report(0, 0, &[]);
    let expected = [Effect::Send(Port::WIRED, ack), sends(data(0, 0)), sends(data(0, 1))];
    assert_eq!(station.receive(Port::RADIO, ack), expected);
    let mut out = Out::default();
    station.agent.wake(due, &mut out);
    assert_eq!(effects(&mut out), [sends(data(1, 0))]);
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
}

// Rule: A base station that the host is not at keeps the last packets. [4, 6; ../scheme/multicast.rs]
#[test]
fn the_buffer_holds_the_latest_packets() {
    let mut station = Station::new(2);
    station.keeps(0, 0..2);
    assert_eq!(station.receive(Port::WIRED, data(0, 2)), [discards(data(0, 0))]);
    // While the host is awaited, packets wait whatever their number; when it leaves, the buffer has its size again.
    station.host_is_at(1);
    station.keeps(0, 3..6);
    let left = station.signal(Signal::Detached { host: HOST, station: 1 });
    assert_eq!(left, (1..4).map(|number| discards(data(0, number))).collect::<Vec<_>>());
}

/// Only TCP segments are copied to other base stations, and of these only data are worth keeping.
// Rule: as the_buffer_holds_the_latest_packets
#[test]
fn what_cannot_be_kept_is_discarded_or_forwarded() {
    let mut station = Station::new(12);
    let datagram = packet(0, Body::Datagram(Datagram { seq: 0, sent: Time::ZERO }));
    assert_eq!(station.receive(Port::WIRED, datagram), [sends(datagram)]);
    let ack = packet(0, Body::Tcp(Segment { flags: Flags::ACK, ..Segment::default() }));
    assert_eq!(station.receive(Port::WIRED, ack), [discards(ack)]);
    station.host_is_at(1);
    assert_eq!(station.receive(Port::WIRED, ack), [sends(ack)]);
}

// Rule: A host that does not move gets everything at once. [../scheme/multicast.rs]
#[test]
fn a_host_that_does_not_move_gets_everything_at_once() {
    let mut agent = agent(&Schemes::default(), "multicast");
    let mut out = Out::default();
    agent.receive(Time::ZERO, &data(0, 0), Port::WIRED, &mut out);
    assert_eq!(effects(&mut out), [sends(data(0, 0))]);
}

/// Without SACK the report names the last three segments, the latest first; other acknowledgements are unchanged.
// Rule: The host reports its last three segments; what came after them is transmitted. [6;
// ../scheme/multicast.rs]
#[test]
fn the_receiver_reports_when_its_signal_is_back() {
    let schemes = Schemes::default();
    let reno = Settings { ack_every: 1, ..settings(Flavour::NewReno, 8) };
    let mut tcp = Server::installed(&reno, installed(&schemes, "multicast").receiver_reactions());
    tcp.at(10).data(0..1000).acks(1000).data(2000..3000).acks(1000).data(3000..4000).acks(1000);
    tcp.at(20).data(5000..6000).acks(1000).reach(Reach::Lost).is_silent();
    tcp.at(30).reach(Reach::Back).reports(1000, &[5000..6000, 3000..4000, 2000..3000]);
    tcp.at(40).data(1000..2000).reports(4000, &[]);
    // With SACK its blocks are the report.
    let sack = Settings { ack_every: 1, ..settings(Flavour::Sack, 8) };
    let mut tcp = Server::installed(&sack, installed(&schemes, "multicast").receiver_reactions());
    tcp.at(10).data(0..1000).acks(1000).data(2000..4000).reports(1000, &[2000..4000]);
    tcp.at(30).reach(Reach::Back).reports(1000, &[2000..4000]);
}
