//! Real packets through the network of a scenario: the same links as in a simulation.

use lasthop_base::{Bytes, Streams, Time};
use lasthop_proto::{DropReason, Dscp, Ecn, Handle};
use lasthop_scenario::{Carried, Emulation, LinkCounters, Observe, Scenario, Side};

/// A fading link with an ARQ that gives up, and bit errors.
const FADING: &str = r#"
schemes = ["basic", "local-recovery", "ebsn", "snoop", "i-tcp", "selective-fec"]
limit = "60 s"
[transfer]
size = "unlimited"
start = "59.9 s"
[tcp]
close = true
timestamps = true
[wired]
rate = "1 Mbps"
delay = "10 ms"
queue = "20 packets"
[radio]
rate = "200 kbps"
delay = "5 ms"
mtu = "128 B"
queue = "5 packets"
fec = "bch-255-131-18"
[radio.channel.two-state]
good = "2 s"
bad = "500 ms"
good_ber = 1e-5
bad_ber = 1e-2
[radio.arq.stop-and-wait]
retransmissions = 3
backoff.uniform = "50 ms"
[scheme.basic]
arq = false
"#;

/// The same with datagrams that a simulated source sends.
const SOURCE: &str = r#"
[traffic.probe]
from = "fixed"
to = "mobile"
packet_size = "500 B"
stop = "40 s"
law.constant.rate = "100 kbps"
"#;

fn read(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml", &[] as &[&str]).unwrap_or_else(|error| panic!("{error}"))
}

fn emulate(scenario: &Scenario, scheme: &str, run: u64) -> Emulation {
    scenario.emulate(scheme, 1, run).unwrap_or_else(|error| panic!("{error}"))
}

/// Sends a packet of 500 B every 40 ms, and moves the clock in steps of `step` ns.
fn probe(mut emulation: Emulation, step: u64) -> (Vec<Carried>, Vec<LinkCounters>) {
    const GAP: u64 = 40_000_000;
    let mut carried = Vec::new();
    for number in 0..1_000 {
        let until = number * GAP;
        let mut now = until.saturating_sub(GAP) + step;
        while now < until {
            emulation.advance(Time::from_nanos(now));
            now += step;
        }
        emulation.advance(Time::from_nanos(until));
        let handle = Handle(number as u32 + 1);
        emulation.enter(Side::Source, 0, handle, Bytes(500), Dscp::DEFAULT, Ecn::Ect0);
        carried.extend(emulation.take());
    }
    emulation.advance(Time::from_nanos(1_000 * GAP + 60_000_000_000));
    carried.extend(emulation.take());
    assert_eq!(emulation.next_wakeup(), Time::NEVER);
    (carried, emulation.finish())
}

#[test]
fn packets_meet_what_simulated_ones_meet() {
    let simulated = read(&format!("{FADING}{SOURCE}"));
    let scenario = read(FADING);
    for scheme in ["basic", "local-recovery"] {
        for number in 0..5 {
            let run = simulated.run(scheme, 1, number, Observe::default()).expect("valid");
            let expected = &run.traffic[0].1;
            let (carried, links) = probe(emulate(&scenario, scheme, number), 7_000_000);
            let delivered: Vec<_> = carried.iter().filter(|each| each.outcome.is_ok()).collect();
            assert_eq!(expected.sent_packets, 1_000);
            assert_eq!(delivered.len() as u64, expected.delivered_packets, "{scheme} {number}");
            assert_eq!((carried.len() - delivered.len()) as u64, expected.lost_packets);
            assert!(expected.lost_packets > 20, "{scheme}: {}", expected.lost_packets);
            let delay =
                |each: &&Carried| each.time.as_secs_f64() - 0.04 * f64::from(each.packet.handle.0 - 1);
            let mean = delivered.iter().map(delay).sum::<f64>() / delivered.len() as f64;
            assert!((mean - expected.mean_delay_s.expect("some arrived")).abs() < 1e-9);
            // Every packet ends exactly once.
            let mut handles: Vec<_> = carried.iter().map(|each| each.packet.handle.0).collect();
            handles.sort_unstable();
            assert!(handles.iter().copied().eq(1..=1_000));
            let down = links.iter().find(|each| each.link == "base-mobile").expect("there is a radio link");
            let lost = down.lost_on_air + down.link_discards + down.queue_drops;
            assert_eq!(lost, expected.lost_packets);
        }
    }
}

/// However often the clock moves, packets leave at the same times.
#[test]
fn steps_of_the_clock_do_not_matter() {
    let scenario = read(FADING);
    let coarse = probe(emulate(&scenario, "local-recovery", 3), u64::MAX / 2);
    for step in [1_000_000, 39_999_999] {
        assert_eq!(probe(emulate(&scenario, "local-recovery", 3), step), coarse);
    }
}

/// On links without errors: the sum of transmission times and delays.
#[test]
fn delays_are_those_of_the_links() {
    let plain = FADING.replace("1e-5", "0.0").replace("1e-2", "0.0");
    let mut emulation = emulate(&read(&plain), "basic", 0);
    let mut random = Streams::new(1, 0).stream("sizes");
    let mut now = Time::ZERO;
    for number in 1..100 {
        let side = if random.bernoulli(0.5) { Side::Source } else { Side::Destination };
        let size = 40 + random.below(1_400);
        emulation.advance(now);
        emulation.enter(side, 0, Handle(number), Bytes(size), Dscp::new(10), Ecn::NotEct);
        let bits = size * 8;
        let due = now.as_nanos() + bits * (1_000 + 5_000) + 15_000_000;
        now = Time::from_nanos(due - 1);
        emulation.advance(now);
        assert_eq!(emulation.take().count(), 0);
        now = Time::from_nanos(due);
        emulation.advance(now);
        let carried: Vec<_> = emulation.take().collect();
        let other = Side::BOTH[1 - side as usize];
        let [Carried { time, packet, outcome }] = carried[..] else { panic!("{carried:?}") };
        assert_eq!((time, outcome), (now, Ok(other)));
        assert_eq!((packet.handle, packet.size, packet.dscp), (Handle(number), Bytes(size), Dscp::new(10)));
    }
}

/// Losses and fades go on beyond the limit of the scenario, which ends simulations only.
#[test]
fn losses_go_on_after_the_limit() {
    let short = FADING.replace("limit = \"60 s\"", "limit = \"1 s\"").replace("59.9 s", "0 s");
    let lost = |text: &str| {
        let (carried, _) = probe(emulate(&read(text), "basic", 2), u64::MAX / 2);
        let late = carried.iter().filter(|each| each.time > Time::from_nanos(2_000_000_000));
        late.filter(|each| each.outcome.is_err()).count()
    };
    assert!(lost(FADING) > 10);
    assert_eq!(lost(&short), lost(FADING));
}

/// A shared radio counts the transmissions to its mobile hosts: one for each packet delivered, and the failed ones.
#[test]
fn a_shared_radio_counts_its_transmissions() {
    let text = r#"
        limit = "60 s"
        [topology.shared-radio]
        mobiles = 1
        [transfer]
        size = "unlimited"
        [wired]
        rate = "1 Mbps"
        [radio]
        rate = "1 Mbps"
        channel.frame-loss.loss = 0.3
        arq.stop-and-wait = { retransmissions = 3, backoff.fixed = "0 s" }
    "#;
    let (carried, links) = probe(emulate(&read(text), "basic", 0), u64::MAX / 2);
    let delivered = carried.iter().filter(|each| each.outcome.is_ok()).count() as u64;
    let radio = links.iter().find(|each| each.link == "base").expect("there is a shared radio");
    let failures = radio.link_failures.expect("it has channels");
    assert!(failures > 300, "{radio:?}");
    assert_eq!(radio.link_attempts, Some(delivered + failures));
    assert_eq!(radio.link_discards, 1_000 - delivered);
}

#[test]
fn marks_of_queues_reach_the_packet() {
    let marking = FADING.replace(
        "queue = \"20 packets\"",
        "queue.codel = { limit = \"1000 packets\", target = \"1 ms\", interval = \"10 ms\", ecn = true }",
    );
    let mut emulation =
        emulate(&read(&marking.replace("rate = \"1 Mbps\"", "rate = \"100 kbps\"")), "basic", 0);
    for number in 1..200 {
        emulation.enter(Side::Source, 0, Handle(number), Bytes(1500), Dscp::DEFAULT, Ecn::Ect0);
    }
    emulation.advance(Time::from_nanos(60_000_000_000));
    let marked = emulation.take().filter(|each| each.packet.ecn == Ecn::Ce).count();
    let links = emulation.finish();
    let wired = links.iter().find(|each| each.link == "fixed-base").expect("there is a wired link");
    assert!(marked > 10, "{marked}");
    assert!(wired.marked as usize >= marked, "{wired:?}");
}

/// A fair queue serves each of a few flows alike, however many packets each has.
#[test]
fn fair_queues_tell_lanes_apart() {
    let fair = FADING.replace("queue = \"20 packets\"", "queue.fq-codel = { limit = \"1000 packets\" }");
    let place = |lane: usize| {
        let mut emulation = emulate(&read(&fair), "basic", 0);
        assert_eq!(emulation.lanes(), 64);
        for number in 1..=100 {
            emulation.enter(Side::Source, 5, Handle(number), Bytes(1500), Dscp::DEFAULT, Ecn::NotEct);
        }
        emulation.enter(Side::Source, lane, Handle(101), Bytes(1500), Dscp::DEFAULT, Ecn::NotEct);
        emulation.enter(Side::Destination, lane, Handle(102), Bytes(100), Dscp::DEFAULT, Ecn::NotEct);
        emulation.advance(Time::from_nanos(10_000_000_000));
        let carried: Vec<_> = emulation.take().collect();
        let back = carried.iter().find(|each| each.packet.handle == Handle(102)).expect("it has left");
        assert_eq!(back.outcome, Ok(Side::Source));
        carried.iter().position(|each| each.packet.handle == Handle(101)).expect("it has left")
    };
    let (alone, beside) = (place(70), place(5));
    assert!(alone < 20 && beside > 90, "{alone} {beside}");
    assert_eq!(emulate(&read(FADING), "basic", 0).lanes(), 1);
}

/// Other traffic goes on beside the real packets, and takes its share of the queue.
#[test]
fn simulated_traffic_shares_the_links() {
    let busy = format!("{FADING}{SOURCE}").replace("constant.rate = \"100", "poisson.rate = \"900");
    let (alone, _) = probe(emulate(&read(FADING), "basic", 0), u64::MAX / 2);
    let emulation = emulate(&read(&busy), "basic", 0);
    assert_eq!((emulation.simulated_flows(), emulate(&read(FADING), "basic", 0).simulated_flows()), (1, 0));
    let (beside, _) = probe(emulation, u64::MAX / 2);
    let full = |carried: &[Carried]| {
        let full = carried.iter().filter(|each| matches!(each.outcome, Err((_, DropReason::QueueFull))));
        full.count()
    };
    assert_eq!(full(&alone), 0);
    assert!(full(&beside) > 100, "{beside:?}");
    assert_eq!(beside.len(), 1_000);
}

#[test]
fn what_acts_on_segments_is_refused() {
    let scenario = read(FADING);
    for (scheme, what) in [
        ("ebsn", "changes the TCP of simulated hosts"),
        ("snoop", "has agents that read simulated segments"),
        ("i-tcp", "splits connections of simulated hosts"),
        ("selective-fec", "changes the TCP of simulated hosts"),
    ] {
        let error = scenario.emulate(scheme, 1, 0).err().expect("refused").to_string();
        assert_eq!(
            error,
            format!(
                "scheme: found \"{scheme}\", which {what}; real packets have no such hosts. Expected a \
                 scheme that only uses the link: \"basic\" or \"local-recovery\"\n --> test.toml"
            )
        );
    }
    let without = FADING.replace("[transfer]\nsize = \"unlimited\"\nstart = \"59.9 s\"\n", SOURCE);
    let error = read(&without).emulate("basic", 1, 0).err().expect("refused").to_string();
    assert!(error.contains("at whose ends real hosts are; add a table [transfer]"), "{error}");
    assert!(scenario.emulate("nonsense", 1, 0).is_err());
}
