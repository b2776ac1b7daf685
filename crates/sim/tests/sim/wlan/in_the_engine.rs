//! A BSS in the engine: TCP over it, and signals to watchers.

use std::sync::{Arc, Mutex};

use lasthop_base::{BitRate, Duration, Probability, Streams, Time};
use lasthop_proto::tcp::{Connection, Receiver, Sender, Settings, Transfer};
use lasthop_proto::{Component, ComponentId, FlowId, HostId, LinkOutcome, Out, Packet, Port, Probe, Signal};
use lasthop_sim::wlan::{AboveMac, Bss, BssConfig, RetryLimit};
use lasthop_sim::{Builder, Ended, Engine, Link, NoTap, Node, QueueLimit};

use crate::wlan::harness::{SERVER, frame_loss, host, stations};

/// Counts signals by outcome.
#[derive(Clone, Default)]
struct Watcher(Arc<Mutex<[u64; 3]>>);

impl Component for Watcher {
    fn receive(&mut self, _now: Time, _packet: &Packet, _port: Port, _out: &mut Out) {}

    fn on_signal(&mut self, _now: Time, signal: &Signal, _out: &mut Out) {
        let Signal::Link(event) = signal else { panic!("a BSS says nothing else") };
        self.0.lock().unwrap()[match event.outcome {
            LinkOutcome::AttemptFailed => 0,
            LinkOutcome::Delivered => 1,
            LinkOutcome::Discarded => 2,
        }] += 1;
    }
}

/// Forwards each flow through its own port.
struct Parting;

impl Component for Parting {
    fn receive(&mut self, _now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        out.send(Port(packet.flow.0), *packet);
    }
}

const STATIONS: u32 = 3;

/// A server sends to each station, station 0 sends to the server and station 1 to station 2.
fn build(seed: u64, loss: f64, watcher: Watcher) -> (Engine<NoTap>, ComponentId, Vec<ComponentId>) {
    let settings = Settings::default();
    let rare = Probability::new(0.02).unwrap();
    let above_mac = AboveMac { down: rare, up: rare };
    let streams = Streams::new(seed, 0);
    let config = BssConfig { short_retry_limit: RetryLimit::at_most(3), ..BssConfig::default() };
    let all = stations(streams, STATIONS, frame_loss(loss), above_mac);
    let mut net = Builder::new();
    let bss = net.add(Bss::new(config, streams.stream("backoff:ap"), all));
    let parts: Vec<_> = (0..=STATIONS).map(|_| net.add(Box::new(Parting) as Box<dyn Component>)).collect();
    for (place, &part) in parts.iter().enumerate() {
        net.connect((bss, Port(place as u32)), (part, Port::ONLY));
    }
    let watcher = net.add(Box::new(watcher) as Box<dyn Component>);
    net.watch(bss, watcher);
    let flows = [(0, 1), (0, 2), (0, 3), (1, 0), (2, 3)];
    let senders = flows.iter().zip(0..).map(|(&(from, to), flow)| {
        let host = |place: u32| if place == 0 { SERVER } else { host(place - 1) };
        let connection = Connection { src: host(from), dst: host(to), flow: FlowId(flow) };
        let transfer = Transfer { bytes: Some(200_000), start: Time::ZERO };
        let sender = net.add(Sender::new(connection, &settings, transfer, None));
        let receiver = net.add(Receiver::new(connection, &settings));
        let rate = BitRate::from_bps(10_000_000).unwrap();
        for (end, place) in [(sender, from), (receiver, to)] {
            let link = net.add(Link::wired(rate, Duration::from_millis(1), QueueLimit::Unlimited));
            net.connect((end, Port::ONLY), (link, Port::ONLY));
            net.connect((link, Port::ONLY), (bss, Port(place)));
            net.connect((parts[place as usize], Port(flow)), (end, Port::ONLY));
        }
        sender
    });
    let senders = senders.collect();
    (net.build(NoTap), bss, senders)
}

fn bss_of(engine: &Engine<NoTap>, id: ComponentId) -> &Bss {
    let Node::Bss(bss) = engine.node(id) else { unreachable!("the component is a BSS") };
    bss
}

#[test]
fn tcp_completes_under_frame_losses() {
    for loss in [0.0, 0.1, 0.4] {
        let watcher = Watcher::default();
        let (mut engine, bss, senders) = build(1, loss, watcher.clone());
        let ended = engine.run(&senders, Time::ZERO + Duration::from_secs(1_000));
        assert_eq!(ended, Ended::Finished);
        // Only frames that the finished senders may still transmit are in flight.
        engine.run(&[], Time::ZERO + Duration::from_secs(2_000));
        let [failed, delivered, discarded] = *watcher.0.lock().unwrap();
        let bss = bss_of(&engine, bss);
        let down: Vec<_> = (0..STATIONS as usize).map(|index| bss.station(index).down).collect();
        let sum = |count: fn(&lasthop_sim::wlan::DirectionStats) -> u64| down.iter().map(count).sum::<u64>();
        assert_eq!(failed, sum(|way| way.collided + way.lost));
        assert_eq!(delivered, sum(|way| way.delivered + way.corrupted));
        assert_eq!(discarded, sum(|way| way.discarded));
        assert!(loss == 0.0 || discarded > 0);
        assert!(sum(|way| way.corrupted) > 0 && sum(|way| way.collided) > 0);
    }
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    let run = |seed| {
        let (mut engine, bss, senders) = build(seed, 0.1, Watcher::default());
        engine.run(&senders, Time::ZERO + Duration::from_secs(1_000));
        (engine.now(), engine.handled(), *bss_of(&engine, bss).stats())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// The value that a series plots.
#[test]
fn a_bss_shows_its_access_points_queue() {
    struct Values(Vec<(&'static str, f64)>);
    impl Probe for Values {
        fn value(&mut self, name: &'static str, value: f64) {
            self.0.push((name, value));
        }
    }
    let all = stations(Streams::new(1, 0), 2, frame_loss(0.0), AboveMac::default());
    let mut bss = Bss::new(BssConfig::default(), Streams::new(1, 0).stream("backoff:ap"), all);
    let mut out = Out::default();
    for (id, to) in [(0, 0), (1, 1), (2, 0)] {
        bss.receive(
            Time::ZERO,
            &crate::wlan::harness::packet(id, HostId(100 + to), 1000),
            Port::WIRED,
            &mut out,
        );
    }
    let mut values = Values(Vec::new());
    bss.show(&mut values);
    assert_eq!(values.0, [("queue_packets", 2.0), ("queue_bytes", 2000.0), ("cw", 31.0)]);
}
