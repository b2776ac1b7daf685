//! A proxy at the base stations of a moving host, by hand: where its connections are, and what waits for them.

use lasthop_base::{BitRate, Bytes, Duration, Time};
use lasthop_proto::split::{Proxy, Split, StateTransfer};
use lasthop_proto::tcp::{Connection, Flags, Segment, SeqNum, Settings};
use lasthop_proto::{
    Body, Component, DropReason, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet, Port, Reach, Signal,
};

const CONNECTION: Connection = Connection { src: HostId(1), dst: HostId(2), flow: FlowId(0) };

fn ms(milliseconds: u64) -> Time {
    Time::ZERO + Duration::from_millis(milliseconds)
}

/// A packet from the source of the data, or from their destination.
fn packet(from_source: bool, segment: Segment) -> Packet {
    let Connection { src, dst, flow } = CONNECTION;
    let (src, dst) = if from_source { (src, dst) } else { (dst, src) };
    Packet {
        src,
        dst,
        flow,
        size: Bytes(1000),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body: Body::Tcp(segment),
    }
}

fn data(seq: u32) -> Packet {
    packet(true, Segment { seq: SeqNum(seq), len: 100, flags: Flags::ACK, ..Segment::default() })
}

fn ack(ack: u32) -> Packet {
    let wnd = 10_000;
    packet(false, Segment { ack: SeqNum(ack), wnd, flags: Flags::ACK, ..Segment::default() })
}

fn settings() -> Settings {
    Settings { ack_every: 1, handshake: false, ..Settings::default() }
}

/// Three base stations of a host, 10 ms from each other but for the last, which is 50 ms away. A hand-off takes 100 ms and
/// the round trip, and 1 ms for each byte in the buffer.
struct Stations {
    proxy: Proxy,
    out: Out,
}

impl Stations {
    fn new(holds: Option<Duration>) -> Stations {
        Stations::with(settings(), holds)
    }

    fn with(settings: Settings, holds: Option<Duration>) -> Stations {
        let transfer = StateTransfer {
            setup: Duration::from_millis(100),
            rate: BitRate::from_bps(8000).expect("not zero"),
        };
        let [near, far] = [10, 50].map(Duration::from_millis);
        let delays = vec![
            vec![Duration::ZERO, near, far],
            vec![near, Duration::ZERO, far],
            vec![far, far, Duration::ZERO],
        ];
        let split = Split { wireless: settings.clone(), buffer: Bytes(3000), holds, transfer };
        let mut proxy = Proxy::roaming(transfer, delays);
        proxy.join(CONNECTION, (&settings, &split), Port::WIRED, false, (None, None));
        let mut stations = Stations { proxy, out: Out::default() };
        stations.attach(Time::ZERO, 0);
        stations
    }

    fn signal(&mut self, now: Time, signal: Signal) -> Vec<Effect> {
        self.proxy.on_signal(now, &signal, &mut self.out);
        self.effects()
    }

    fn attach(&mut self, now: Time, station: u16) {
        assert_eq!(self.signal(now, Signal::Attached { host: HostId(2), station }), []);
    }

    fn receive(&mut self, now: Time, side: Port, station: u16, packet: Packet) -> Vec<Effect> {
        self.proxy.receive(now, &packet, side.at_station(station), &mut self.out);
        self.effects()
    }

    /// What the proxy sends when it wakes, with the ports.
    fn wake(&mut self, now: Time) -> Vec<Effect> {
        assert_eq!(self.proxy.next_wakeup(), now);
        self.proxy.wake(now, &mut self.out);
        assert!(self.proxy.next_wakeup() > now);
        self.effects()
    }

    fn effects(&mut self) -> Vec<Effect> {
        std::iter::from_fn(|| self.out.take()).map(|(_, effect)| effect).collect()
    }
}

/// The ports by which packets are sent, and what they are: data by their sequence number, ACKs by theirs.
fn sent(effects: &[Effect]) -> Vec<(Port, &'static str, u32)> {
    let one = |effect: &Effect| match effect {
        Effect::Send(port, packet) => {
            let segment = packet.segment().expect("TCP");
            if segment.len > 0 { (*port, "data", segment.seq.0) } else { (*port, "ack", segment.ack.0) }
        }
        other => panic!("{other:?} instead of a packet"),
    };
    effects.iter().map(one).collect()
}

/// The connections are where the host was attached first, and send by the ports of its next base station when the
/// transfer is over: set-up, a round trip of 20 ms, and 1 ms for each of 200 bytes.
#[test]
fn connections_follow_the_host() {
    let mut stations = Stations::new(None);
    let first = stations.receive(ms(1), Port::WIRED, 0, data(0));
    assert_eq!(sent(&first), [(Port::WIRED, "ack", 100), (Port::RADIO, "data", 0)]);
    assert_eq!(sent(&stations.receive(ms(1), Port::WIRED, 0, data(100))), [(Port::WIRED, "ack", 200)]);
    stations.attach(ms(10), 1);
    assert_eq!(stations.proxy.next_wakeup(), ms(330));
    // Data and an acknowledgement wait, whichever base station they reach.
    assert_eq!(stations.receive(ms(20), Port::WIRED, 1, data(200)), []);
    assert_eq!(stations.receive(ms(30), Port::RADIO, 1, ack(100)), []);
    assert_eq!(stations.receive(ms(40), Port::WIRED, 0, data(300)), []);
    let (wired, radio) = (Port(2), Port(3));
    let gone_on = stations.wake(ms(330));
    // The initial window of the wireless part is one segment.
    let expected = [(wired, "ack", 300), (radio, "data", 100), (wired, "ack", 400)];
    assert_eq!(sent(&gone_on), expected);
    // At the old base station they are no more.
    let late = stations.receive(ms(340), Port::WIRED, 0, data(400));
    assert_eq!(late, [Effect::Drop(data(400), DropReason::Unreachable)]);
    let here = stations.receive(ms(350), Port::WIRED, 1, data(400));
    assert_eq!(sent(&here), [(wired, "ack", 500)]);
    // Packets of other flows pass at any base station.
    let other = Packet { flow: FlowId(9), ..data(0) };
    assert_eq!(stations.receive(ms(360), Port::RADIO, 2, other), [Effect::Send(Port(4), other)]);
}

/// A transfer that has begun completes; then the state follows the host that has moved on. Where it arrives, the connections
/// take what has waited.
#[test]
fn a_transfer_completes_before_the_next() {
    let mut stations = Stations::new(None);
    stations.attach(ms(10), 1);
    stations.attach(ms(20), 2);
    assert_eq!(stations.receive(ms(25), Port::WIRED, 1, data(0)), []);
    // At the second base station after 120 ms, and at the third after 200 ms and 100 bytes more.
    assert_eq!(sent(&stations.wake(ms(130))), [(Port(2), "ack", 100), (Port(3), "data", 0)]);
    assert_eq!(stations.receive(ms(140), Port::WIRED, 1, data(100)), []);
    assert_eq!(sent(&stations.wake(ms(430))), [(Port(4), "ack", 200)]);
    // The host leaves and returns: there and back.
    stations.attach(ms(500), 0);
    stations.attach(ms(510), 2);
    assert_eq!(stations.receive(ms(520), Port::RADIO, 2, ack(100)), []);
    assert_eq!(sent(&stations.wake(ms(900))), [(Port(1), "data", 100)]);
    assert_eq!(stations.proxy.next_wakeup(), ms(1200));
}

/// Timers that expire during a transfer do so at its end.
#[test]
fn timers_stand_still_during_a_transfer() {
    let mut stations = Stations::new(None);
    stations.receive(ms(1), Port::WIRED, 0, data(0));
    let timeout = stations.proxy.next_wakeup();
    let before = ms(timeout.as_nanos() / 1_000_000 - 1);
    stations.attach(before, 1);
    let end = before + Duration::from_millis(220);
    assert!(timeout < end);
    assert_eq!(sent(&stations.wake(end)), [(Port(3), "data", 0)]);
}

/// As much waits as the buffer takes.
#[test]
fn the_buffer_bounds_what_waits() {
    let mut stations = Stations::new(None);
    stations.attach(ms(10), 1);
    for seq in [0, 100, 200] {
        assert_eq!(stations.receive(ms(20), Port::WIRED, 1, data(seq)), []);
    }
    let full = stations.receive(ms(20), Port::WIRED, 1, data(300));
    assert_eq!(full, [Effect::Drop(data(300), DropReason::QueueFull)]);
    let mut kept = Vec::new();
    stations.proxy.kept(&mut |packet| kept.push(*packet));
    assert_eq!(kept, [0, 100, 200].map(data));
}

/// M-TCP freezes the source when the signal is lost, and lets it go on when the connections are where the signal is.
#[test]
fn the_source_stays_frozen_until_the_connections_arrive() {
    let mut stations = Stations::new(Some(Duration::from_millis(500)));
    assert_eq!(sent(&stations.receive(ms(1), Port::WIRED, 0, data(0))), [(Port::RADIO, "data", 0)]);
    let window = |effects: &[Effect]| match effects {
        [Effect::Send(port, packet)] => (*port, packet.segment().map(|segment| segment.wnd > 0)),
        other => panic!("{other:?} instead of one acknowledgement"),
    };
    stations.receive(ms(5), Port::RADIO, 0, ack(100));
    let lost = stations.signal(ms(10), Signal::Reach(Reach::Lost));
    assert_eq!(window(&lost), (Port::WIRED, Some(false)));
    stations.attach(ms(20), 1);
    assert_eq!(stations.signal(ms(20), Signal::Reach(Reach::Back)), []);
    assert_eq!(window(&stations.wake(ms(140))), (Port(2), Some(true)));
}

/// A host that is at the next base station at once: the loss of the signal comes with the attachment, and freezes the
/// source from the old base station. A fade during the transfer is known at its end, with the changes after it.
#[test]
fn the_loss_of_the_signal_is_known_where_the_host_was() {
    let mut stations = Stations::new(Some(Duration::from_millis(500)));
    stations.receive(ms(1), Port::WIRED, 0, data(0));
    stations.receive(ms(5), Port::RADIO, 0, ack(100));
    stations.attach(ms(10), 1);
    let windows = |effects: &[Effect]| -> Vec<(Port, bool)> {
        let one = |effect: &Effect| match effect {
            Effect::Send(port, packet) => (*port, packet.segment().is_some_and(|segment| segment.wnd > 0)),
            other => panic!("{other:?} instead of an acknowledgement"),
        };
        effects.iter().map(one).collect()
    };
    let lost = stations.signal(ms(10), Signal::Reach(Reach::Lost));
    assert_eq!(windows(&lost), [(Port::WIRED, false)]);
    for reach in [Reach::Back, Reach::Lost, Reach::Back, Reach::Fading] {
        assert_eq!(stations.signal(ms(20), Signal::Reach(reach)), []);
    }
    assert_eq!(windows(&stations.wake(ms(130))), [(Port(2), true)]);
}

/// A host that moves on faster than its connections: they go on for an instant wherever they arrive, so that a connection
/// without progress ends by the user timeout.
#[test]
fn connections_that_never_catch_up_with_the_host_end() {
    let patience = Some(Duration::from_secs(2));
    let mut stations = Stations::with(Settings { user_timeout: patience, ..settings() }, None);
    stations.receive(ms(1), Port::WIRED, 0, data(0));
    let mut now = ms(10);
    let mut station = 0;
    while !stations.proxy.relay(FlowId(0)).expect("it is split").sender().is_aborted() {
        station = 1 - station;
        stations.attach(now, station);
        // 100 ms, a round trip, and 100 bytes.
        assert_eq!(stations.proxy.next_wakeup(), now + Duration::from_millis(220));
        now += Duration::from_millis(110);
        stations.attach(now, 1 - station);
        now += Duration::from_millis(110);
        stations.wake(now);
        assert!(now < ms(5000));
    }
    assert!(now > ms(2000));
}
