//! A proxy by hand: forwarding, acknowledging, relaying, and the signal that it finished.

use lasthop_base::{Bytes, Time};
use lasthop_proto::split::{Proxy, Split, StateTransfer};
use lasthop_proto::tcp::{Connection, Flags, Segment, SeqNum, Settings};
use lasthop_proto::{Body, Component, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet, Port, Signal};

fn connection(flow: u32) -> Connection {
    Connection { src: HostId(1), dst: HostId(2), flow: FlowId(flow) }
}

/// Every segment is acknowledged immediately, and FIN is sent.
fn settings(handshake: bool) -> Settings {
    Settings { handshake, close: true, ack_every: 1, ..Settings::default() }
}

/// Splits one more connection into two parts with equal settings.
fn join(proxy: &mut Proxy, flow: u32, from: Port, ends: bool, handshake: bool) {
    let split = Split {
        wireless: settings(handshake),
        buffer: Bytes(10_000),
        holds: None,
        transfer: StateTransfer::default(),
    };
    proxy.join(connection(flow), (&settings(handshake), &split), from, ends, (None, None));
}

/// A packet of a flow, from its source or its destination.
fn packet(flow: u32, from_source: bool, segment: Segment) -> Packet {
    let Connection { src, dst, flow } = connection(flow);
    let (src, dst) = if from_source { (src, dst) } else { (dst, src) };
    Packet {
        src,
        dst,
        flow,
        size: Bytes(100),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body: Body::Tcp(segment),
    }
}

/// The packets sent in reply to a packet, with their ports, and the number of finish signals.
fn answers(proxy: &mut Proxy, port: Port, packet: Packet) -> (Vec<(Port, Packet)>, usize) {
    let mut out = Out::default();
    proxy.receive(Time::ZERO, &packet, port, &mut out);
    let (mut sent, mut finished) = (Vec::new(), 0);
    while let Some((_, effect)) = out.take() {
        match effect {
            Effect::Send(port, packet) => sent.push((port, packet)),
            Effect::Signal(signal) => finished += usize::from(signal == Signal::Finished),
            Effect::Drop(..) | Effect::Corrupt(..) => panic!("a proxy drops nothing"),
        }
    }
    (sent, finished)
}

/// Packets of other flows are forwarded unchanged, in both directions.
#[test]
fn packets_of_other_flows_are_forwarded() {
    let mut proxy = Proxy::new();
    join(&mut proxy, 0, Port::WIRED, true, true);
    let other = packet(7, true, Segment { len: 100, ..Segment::default() });
    for port in [Port::WIRED, Port::RADIO] {
        assert_eq!(answers(&mut proxy, port, other), (vec![(port.across(), other)], 0));
    }
}

/// The far connection opens with the first packet of the near one, on either side. Each end sees the other's
/// address.
#[test]
fn the_far_connection_opens_with_the_near_one() {
    for from in [Port::WIRED, Port::RADIO] {
        let mut proxy = Proxy::new();
        join(&mut proxy, 3, from, true, true);
        assert_eq!(proxy.next_wakeup(), Time::NEVER);
        let syn = packet(3, true, Segment { flags: Flags::SYN, ..Segment::default() });
        let (sent, finished) = answers(&mut proxy, from, syn);
        let [(near, answer), (far, opens)] = sent[..] else { panic!("{sent:?}") };
        assert_eq!((near, far, finished), (from, from.across(), 0));
        assert_eq!((answer.src, answer.dst, answer.flow), (HostId(2), HostId(1), FlowId(3)));
        assert_eq!(answer.segment().expect("TCP").flags, Flags::SYN | Flags::ACK);
        assert_eq!((opens.src, opens.dst, opens.flow), (HostId(1), HostId(2), FlowId(3)));
        assert_eq!(opens.segment().expect("TCP").flags, Flags::SYN);
        // The window is the free space of the buffer.
        assert_eq!(answer.segment().expect("TCP").wnd, 10_000);
        // It is opened once.
        assert_eq!(answers(&mut proxy, from, syn).0.len(), 1);
    }
}

/// The proxy finishes once all finite connections have, and signals it once; unbounded ones are not awaited.
#[test]
fn the_proxy_finishes_with_its_last_finite_connection() {
    let mut proxy = Proxy::new();
    for (flow, ends) in [(0, true), (1, false), (2, true)] {
        join(&mut proxy, flow, Port::WIRED, ends, false);
    }
    let last = Segment { len: 100, flags: Flags::ACK | Flags::FIN, ..Segment::default() };
    let all = Segment { ack: SeqNum(101), wnd: 10_000, flags: Flags::ACK, ..Segment::default() };
    let mut run = |flow| {
        let (sent, early) = answers(&mut proxy, Port::WIRED, packet(flow, true, last));
        let on = sent.iter().filter(|sent| sent.0 == Port::RADIO);
        let on: Vec<_> = on.map(|(_, packet)| packet.segment().expect("TCP")).collect();
        assert_eq!(on.iter().map(|segment| segment.len).sum::<u32>(), 100);
        assert!(on.last().is_some_and(|last| last.flags.has(Flags::FIN)));
        let held = |proxy: &Proxy| proxy.relay(FlowId(flow)).expect("it splits it").held();
        assert_eq!(held(&proxy), Bytes(100));
        let (_, finished) = answers(&mut proxy, Port::RADIO, packet(flow, false, all));
        assert_eq!(held(&proxy), Bytes::ZERO);
        // Duplicates cause no second signal.
        let (_, again) = answers(&mut proxy, Port::RADIO, packet(flow, false, all));
        assert_eq!(again, 0);
        early + finished
    };
    assert_eq!([run(1), run(2), run(0)], [0, 0, 1]);
    assert_eq!(proxy.relays().len(), 3);
    assert!(proxy.relay(FlowId(9)).is_none());
}

/// Each connection has its own timers, and the earliest is the proxy's deadline.
#[test]
fn every_due_timer_is_served() {
    let mut proxy = Proxy::new();
    for flow in [0, 1, 2] {
        join(&mut proxy, flow, Port::WIRED, true, false);
    }
    let data = Segment { len: 100, flags: Flags::ACK, ..Segment::default() };
    for flow in [0, 2] {
        assert_eq!(answers(&mut proxy, Port::WIRED, packet(flow, true, data)).0.len(), 2);
    }
    let mut out = Out::default();
    let due = Time::from_nanos(1_000_000_000);
    assert_eq!(proxy.next_wakeup(), due);
    proxy.wake(due, &mut out);
    let mut again = Vec::new();
    while let Some((_, effect)) = out.take() {
        let Effect::Send(Port::RADIO, packet) = effect else { panic!("{effect:?}") };
        again.push(packet.flow);
    }
    assert_eq!(again, [FlowId(0), FlowId(2)]);
    assert_eq!(proxy.next_wakeup(), Time::from_nanos(3_000_000_000));
}
