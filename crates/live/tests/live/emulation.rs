//! Real packets through the network of a scenario: the same links as in a simulation.

use std::sync::Arc;

use lasthop_base::{Bytes, Duration, Stream, Streams, Time};
use lasthop_experiment::{Experiment, Observe};
use lasthop_live::{Carried, Emulation, Entering, LinkCounters, Side};
use lasthop_proto::scheme::{Installer, Scheme};
use lasthop_proto::tcp::{Flags, SackBlock, SackBlocks, Segment, SeqNum, Timestamps};
use lasthop_proto::{DropReason, Dscp, Ecn, Handle};
use lasthop_scenario::Scenario;

/// A fading link with an ARQ that gives up, and bit errors.
const FADING: &str = r#"
schemes = ["basic", "local-recovery", "ebsn", "snoop", "i-tcp", "delayed-dupacks"]
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
    Emulation::new(scenario, scheme, 1, run).unwrap_or_else(|error| panic!("{error}"))
}

/// A packet without a segment.
fn datagram(number: u32, size: u64) -> Entering {
    let (handle, size) = (Handle(number), Bytes(size));
    Entering { handle, size, dscp: Dscp::DEFAULT, ecn: Ecn::NotEct, segment: None }
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
        let packet = Entering { ecn: Ecn::Ect0, ..datagram(number as u32 + 1, 500) };
        emulation.enter(Side::Source, 0, &packet);
        carried.extend(emulation.take());
    }
    emulation.advance(Time::from_nanos(1_000 * GAP + 60_000_000_000));
    carried.extend(emulation.take());
    assert_eq!(emulation.next_wakeup(), Time::NEVER);
    (carried, emulation.finish().links)
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
        emulation.enter(side, 0, &Entering { dscp: Dscp::new(10), ..datagram(number, size) });
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
        emulation.enter(Side::Source, 0, &Entering { ecn: Ecn::Ect0, ..datagram(number, 1500) });
    }
    emulation.advance(Time::from_nanos(60_000_000_000));
    let marked = emulation.take().filter(|each| each.packet.ecn == Ecn::Ce).count();
    let links = emulation.finish().links;
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
            emulation.enter(Side::Source, 5, &datagram(number, 1500));
        }
        emulation.enter(Side::Source, lane, &datagram(101, 1500));
        emulation.enter(Side::Destination, lane, &datagram(102, 100));
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

/// The bytes of every handle are asked for back once: when no link and no agent has the packet.
#[test]
fn handles_come_back_when_nobody_needs_them() {
    for scheme in ["basic", "snoop"] {
        let mut emulation = emulate(&read(FADING), scheme, 1);
        assert_eq!(emulation.has_agents(), scheme == "snoop");
        let mut unused = Vec::new();
        for number in 1..=1_000 {
            emulation.enter(Side::BOTH[number as usize % 2], 0, &datagram(number, 400));
            emulation.advance(Time::from_nanos(u64::from(number) * 30_000_000));
            emulation.take_unused(number == 500, |handle| unused.push(handle.0));
        }
        // Most came back without a request for all.
        assert!(unused.len() > 600, "{scheme}: {}", unused.len());
        emulation.advance(Time::from_nanos(100_000_000_000));
        emulation.take_unused(true, |handle| unused.push(handle.0));
        emulation.take_unused(true, |handle| panic!("{handle:?} comes back again"));
        unused.sort_unstable();
        assert!(unused.into_iter().eq(1..=1_000));
        let ended = emulation.take().count();
        assert_eq!(ended, 1_000);
    }
}

/// A segment from the source, and an acknowledgement of what came before `ack` from the destination.
fn segment(side: Side, number: u32, seq: u32, len: u32, ack: u32) -> Entering {
    let (seq, ack) = (SeqNum(seq), SeqNum(ack));
    let segment = Segment { seq, ack, len, wnd: 60_000, flags: Flags::ACK, ..Segment::default() };
    let size = 40 + u64::from(len);
    assert!(side == Side::Source || len == 0);
    Entering { segment: Some(segment), ..datagram(number, size) }
}

/// An agent's copy of a packet has the bytes of the packet, which are kept until the agent has
/// forgotten it. Sequence numbers wrap in the middle.
#[test]
fn agents_copy_and_suppress_real_packets() {
    let perfect = FADING.replace("1e-5", "0.0").replace("1e-2", "0.0").replace("start = \"59.9 s\"", "");
    let mut emulation = emulate(&read(&perfect), "snoop", 0);
    let start = u32::MAX - 999;
    let mut now = Time::ZERO;
    let mut step = |emulation: &mut Emulation| {
        now += Duration::from_millis(400);
        emulation.advance(now);
        emulation.take().map(|each| (each.packet.handle.0, each.outcome.ok())).collect::<Vec<_>>()
    };
    let mut unused = Vec::new();
    for number in 0..3 {
        let seq = start.wrapping_add(500 * number);
        emulation.enter(Side::Source, 7, &segment(Side::Source, number + 1, seq, 500, 0));
        assert_eq!(step(&mut emulation), [(number + 1, Some(Side::Destination))]);
    }
    emulation.take_unused(true, |handle| unused.push(handle));
    assert_eq!(unused, [], "all are cached");
    // The second one is lost, it seems. One acknowledgement is news, and its duplicate is not for the
    // source.
    let ack = |number| segment(Side::Destination, number, 0, 0, start.wrapping_add(500));
    emulation.enter(Side::Destination, 7, &ack(4));
    assert_eq!(step(&mut emulation), [(4, Some(Side::Source))]);
    emulation.enter(Side::Destination, 7, &ack(5));
    assert_eq!(step(&mut emulation), [(5, None), (2, Some(Side::Destination))]);
    emulation.take_unused(true, |handle| unused.push(handle));
    // Of the acknowledgements, the agent keeps the last.
    assert_eq!(unused, [Handle(1), Handle(4)]);
    // All is acknowledged, with FIN.
    let mut fin = segment(Side::Source, 6, start.wrapping_add(1_500), 0, 0);
    fin.segment.as_mut().expect("a segment").flags = Flags(Flags::FIN.0 | Flags::ACK.0);
    emulation.enter(Side::Source, 7, &fin);
    emulation.enter(Side::Destination, 7, &segment(Side::Destination, 7, 0, 0, start.wrapping_add(1_501)));
    assert_eq!(step(&mut emulation).len(), 2);
    emulation.enter(Side::Destination, 7, &segment(Side::Destination, 8, 0, 0, start.wrapping_add(1_501)));
    step(&mut emulation);
    emulation.take_unused(true, |handle| unused.push(handle));
    unused.sort_unstable();
    assert_eq!(unused, (1..=8).map(Handle).collect::<Vec<_>>());
    let schemes = emulation.finish().schemes;
    assert_eq!((schemes["snoop.local_retransmissions"], schemes["snoop.suppressed_dupacks"]), (1, 1));
    assert_eq!((schemes["snoop.cached_segments_peak"], schemes["snoop.connections"]), (3, 0));
}

/// Whether the end of an emulation needs more than agents at links is asked of the parts that a scheme
/// installs.
#[test]
fn what_changes_real_hosts_is_refused() {
    let scenario = read(FADING);
    for (scheme, what, split) in [
        (
            "ebsn",
            "\"ebsn\" changes the TCP of the source \"fixed\", which is a real host here: the base station notifies the \
             source of each failed attempt; the source restarts its timer",
            "; or \"i-tcp + ebsn\", whose proxy at the base station has a TCP that it changes",
        ),
        (
            "delayed-dupacks",
            "\"delayed-dupacks\" changes the TCP of the destination \"mobile\", which is a real host here: the receiver \
             delays the third and later duplicate ACKs, to give the link time to retransmit",
            "",
        ),
        (
            "metp",
            "\"metp\" retransmits everything from a loss on, which it detects by an echo of each segment's timestamp; \
             real receivers do not send it (RFC 7323 section 4.3). With recovery = \"selective-repeat\", RACK stands in",
            "",
        ),
        (
            "i-tcp + delayed-dupacks",
            "\"delayed-dupacks\" changes the TCP of the destination \"mobile\", which is a real host here: the receiver \
             delays the third and later duplicate ACKs, to give the link time to retransmit",
            "",
        ),
    ] {
        let error = Emulation::new(&scenario, scheme, 1, 0).err().expect("refused").to_string();
        assert_eq!(
            error,
            format!(
                "scheme: found \"{scheme}\". {what}. Expected a scheme of links and base stations alone: \"basic\" or \
                 \"local-recovery\" or \"snoop\" or \"i-tcp\"{split}\n --> test.toml"
            )
        );
    }
    let without = FADING.replace("[transfer]\nsize = \"unlimited\"\nstart = \"59.9 s\"\n", SOURCE);
    let error = Emulation::new(&read(&without), "basic", 1, 0).err().expect("refused").to_string();
    assert!(error.contains("at whose ends real hosts are; add a table [transfer]"), "{error}");
    assert!(Emulation::new(&scenario, "nonsense", 1, 0).is_err());
}

/// A queue that reads TCP headers would do nothing, without a word.
#[test]
fn a_queue_that_filters_acknowledgements_is_refused() {
    let with = |filter: &str| {
        format!(
            "{FADING}
[radio.uplink.queue.cake]
ack_filter = \"{filter}\"
"
        )
    };
    let error = Emulation::new(&read(&with("on")), "basic", 1, 0).err().expect("refused").to_string();
    assert!(error.contains("expected ack_filter = \"off\""), "{error}");
    Emulation::new(&read(&with("off")), "basic", 1, 0).expect("a queue of flows and marks");
}

/// Selective repeat is replaced towards real hosts; go-back-n and the rules of ns-2 are refused.
#[test]
fn splits_are_refused_if_real_hosts_cannot_take_part() {
    let with = |changes: &str| read(&format!("{FADING}{changes}"));
    let selective = with("[scheme.metp]\nrecovery = \"selective-repeat\"\n");
    Emulation::new(&selective, "metp", 1, 0).unwrap_or_else(|error| panic!("{error}"));
    assert!(Emulation::new(&selective, "vs-tcp", 1, 0).is_err(), "go-back-n");
    let refused = |text: &str, what: &str| {
        let error = Emulation::new(&read(text), "i-tcp", 1, 0).err().expect("refused").to_string();
        assert!(error.contains(what), "{error}");
    };
    let tcp = |settings: &str| FADING.replace("[tcp]\n", &format!("[tcp]\n{settings}\n"));
    refused(&tcp("flavour = \"go-back-n\""), "\"i-tcp\" needs standard TCP on the wired part");
    let ns2 = tcp("profile = \"ns2\"").replace("timestamps = true\n", "");
    refused(&ns2, "\"i-tcp\" needs the rules of RFCs towards real hosts");
    let moving = r#"
        [topology.hand-off]
        [mobility.mobile.moves.periodic]
        stay = "5 s"
        [transfer]
        size = "1 MB"
        [tcp]
        close = true
        [wired]
        rate = "10 Mbps"
        [radio]
        rate = "1 Mbps"
    "#;
    refused(moving, "\"i-tcp\" moves connections with a mobile host");
}

/// Packets of a scheme that splits do not pass before the proxies are installed.
#[test]
#[should_panic(expected = "the proxies are installed")]
fn an_emulation_without_its_proxies_carries_nothing() {
    emulate(&read(FADING), "i-tcp", 0).enter(Side::Source, 0, &datagram(1, 100));
}

/// Selective FEC whose source is a real host codes what arrives with its mark, and says so where it is refused.
#[test]
fn marks_of_real_hosts_are_protected() {
    let error = Emulation::new(&read(FADING), "selective-fec", 1, 0).err().expect("refused").to_string();
    let remedy = "protects them with FEC. With protect = \"marked\", the link protects what the hosts mark themselves. ";
    assert!(error.contains(remedy), "{error}");
    let scenario = read(&format!("{FADING}[scheme.selective-fec]\nprotect = \"marked\"\nmark = 10\n"));
    let bits_of_an_attempt = |mark: u8| {
        let mut emulation = emulate(&scenario, "selective-fec", 0);
        emulation.enter(Side::Source, 0, &Entering { dscp: Dscp::new(mark), ..datagram(1, 128) });
        emulation.advance(Time::from_nanos(1_000_000_000));
        let left = emulation.take().next().expect("it leaves");
        assert_eq!(left.packet.dscp, Dscp::new(mark));
        let down =
            emulation.finish().links.into_iter().find(|each| each.link == "base-mobile").expect("a radio");
        down.link_bits.expect("it has a channel") / down.link_attempts.expect("it has a channel")
    };
    // 1,024 bits are eight words of 131 bits.
    assert_eq!([0, 3, 10].map(bits_of_an_attempt), [1024, 1024, 1024 + 8 * 124]);
}

/// Every registered scheme is either refused or can be emulated, whatever it installs.
#[test]
fn every_scheme_is_emulated_or_refused_with_a_reason() {
    let scenario = read(&FADING.replace("[tcp]\n", "[tcp]\nflavour = \"reno\"\n"));
    let mut emulated = Vec::new();
    for scheme in scenario.scheme.all() {
        match Emulation::new(&scenario, scheme.name(), 1, 0) {
            Ok(_) => emulated.push(scheme.name()),
            Err(error) => {
                let text = error.to_string();
                assert!(
                    [
                        "which is a real host here",
                        "real receivers do not send it",
                        "which the proxy of real hosts cannot",
                        "set flavour = ",
                        "acts on QUIC only"
                    ]
                    .into_iter()
                    .any(|reason| text.contains(reason)),
                    "{text}"
                );
            }
        }
    }
    let expected = [
        "basic",
        "local-recovery",
        "i-tcp",
        "rlp",
        "arq",
        "snoop",
        "packet-fec",
        "airmail",
        "m-tcp",
        "wtcp-timestamps",
        "fq-codel",
        "acks-first",
        "ack-thinning",
        "sidekick",
    ];
    assert_eq!(emulated, expected);
    for scheme in [
        "snoop + arq",
        "snoop + airmail",
        "snoop + packet-fec",
        "wtcp-timestamps + arq",
        "i-tcp + snoop",
        "i-tcp + ebsn + arq",
        "m-tcp + snoop",
    ] {
        Emulation::new(&scenario, scheme, 1, 0).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Segments with any numbers, flags and options, on a few connections, never stop an agent, and every
/// handle comes back.
#[test]
fn hostile_segments_do_no_harm_to_agents() {
    let inputs = std::env::var("LASTHOP_FUZZ_INPUTS").map_or(40_000, |text| text.parse().expect("a number"));
    let fast = FADING
        .replace("200 kbps", "20 Mbps")
        .replace("1 Mbps", "100 Mbps")
        .replace("5 packets", "50 packets");
    for scheme in
        ["snoop", "wtcp-timestamps", "packet-fec", "snoop + arq", "wtcp-timestamps + airmail", "sidekick"]
    {
        let mut random = Streams::new(4, 0).stream(scheme);
        let mut emulation = emulate(&read(&fast), scheme, 0);
        let (mut now, mut free, mut next) = (Time::ZERO, Vec::new(), 0);
        // What the connections send goes on from here, unless it is wild.
        let mut seqs = [[0u32; 2]; 3].map(|ends| ends.map(|_| random.below(1 << 32) as u32));
        let mut in_use = std::collections::BTreeSet::new();
        for input in 0..inputs {
            let lane = random.below(3) as usize;
            let side = Side::BOTH[random.below(2) as usize];
            let seq = SeqNum(seqs[lane][side as usize]);
            let ack = SeqNum(seqs[lane][1 - side as usize]);
            let wild = |random: &mut Stream, near: SeqNum| match random.below(20) {
                0 => SeqNum(random.below(1 << 32) as u32),
                1 => near + (1 << 31),
                2..6 => near + random.below(20_000) as u32,
                6..10 => near - random.below(20_000) as u32,
                _ => near,
            };
            let mut sack = SackBlocks::default();
            for _ in 0..random.below(8).saturating_sub(4) {
                let (start, end) = (wild(&mut random, ack), wild(&mut random, ack));
                sack.push(SackBlock { start, end });
            }
            let timestamps = random.bernoulli(0.5).then(|| Timestamps {
                value: wild(&mut random, SeqNum(input * 1_000)).0,
                echo: wild(&mut random, SeqNum(input * 1_000)).0,
            });
            let segment = Segment {
                seq: wild(&mut random, seq),
                ack: wild(&mut random, ack),
                len: [0, 0, 1, 500, 1_460][random.below(5) as usize],
                wnd: [0, 1, 500, 65_535, u32::MAX][random.below(5) as usize],
                flags: match random.below(50) {
                    0 => Flags(random.below(1 << 12) as u16),
                    1 => Flags(Flags::FIN.0 | Flags::ACK.0),
                    _ => Flags::ACK,
                },
                sack,
                timestamps,
                has_unknown_options: input % 16 == 5,
            };
            if side == Side::Source && random.bernoulli(0.7) {
                seqs[lane][0] = seqs[lane][0].wrapping_add(segment.len);
            }
            let slot = free.pop().unwrap_or_else(|| {
                next += 1;
                next
            });
            let handle = Handle::new(slot, input);
            assert!(in_use.insert(handle));
            let entering =
                Entering { handle, segment: Some(segment), ..datagram(1, 40 + u64::from(segment.len)) };
            emulation.enter(side, lane, &entering);
            now += Duration::from_micros(random.below(4_000));
            emulation.advance(now);
            // Nothing leaves whose bytes are gone.
            assert!(emulation.take().all(|each| in_use.contains(&each.packet.handle)), "{scheme}");
            emulation.take_unused(random.bernoulli(0.1), |handle| {
                assert!(in_use.remove(&handle));
                free.push(handle.slot());
            });
        }
        for (lane, side) in (0..3).flat_map(|lane| Side::BOTH.map(|side| (lane, side))) {
            next += 1;
            let segment = Segment { flags: Flags::RST, ..Segment::default() };
            let entering =
                Entering { handle: Handle::new(next, 0), segment: Some(segment), ..datagram(1, 40) };
            in_use.insert(entering.handle);
            emulation.enter(side, lane, &entering);
        }
        emulation.advance(now + Duration::from_secs(100));
        emulation.take_unused(true, |handle| assert!(in_use.remove(&handle)));
        // The decoder of a code may wait for what was lost until there is more of it, and a sidekick for a report.
        assert!(in_use.is_empty() || ["packet-fec", "sidekick"].contains(&scheme), "{scheme}: {in_use:?}");
        assert!(in_use.len() < 5_000, "{scheme}: {}", in_use.len());
        let schemes = emulation.finish().schemes;
        let used = [
            "snoop.local_retransmissions",
            "wtcp-timestamps.local_retransmissions",
            "packet-fec.recovered_packets",
            "sidekick.repairs",
        ];
        assert!(used.iter().any(|name| schemes.get(*name).is_some_and(|&value| value > 20)), "{schemes:?}");
    }
}

/// Real datagrams of one size that enter at one instant, as from a sender with UDP segmentation offload, are told apart.
#[test]
fn equal_datagrams_are_repaired_one_by_one() {
    const LOSSY: &str = r#"
        limit = "60 s"
        [transfer]
        size = "unlimited"
        [wired]
        rate = "100 Mbps"
        delay = "1 ms"
        [radio]
        rate = "20 Mbps"
        delay = "1 ms"
        channel.frame-loss.loss = 0.05
        uplink = { channel = "perfect" }
    "#;
    let mut emulation = emulate(&read(LOSSY), "sidekick", 0);
    let mut delivered = vec![0; 1_001];
    for burst in 0..101 {
        emulation.advance(Time::from_nanos(burst * 20_000_000));
        for number in burst as u32 * 10..(burst as u32 * 10 + 10).min(1_000) {
            emulation.enter(Side::Source, 0, &datagram(number + 1, 1_200));
        }
        let arrived = emulation.take().filter(|each| each.outcome.is_ok());
        arrived.for_each(|each| delivered[each.packet.handle.0 as usize] += 1);
    }
    assert!(delivered[1..990].iter().all(|&times| times == 1), "{delivered:?}");
    let counters = emulation.finish().schemes;
    assert!((30..80).contains(&counters["sidekick.repairs"]), "{counters:?}");
    for name in ["unread_quacks", "undecodable_quacks", "ambiguous_packets"] {
        assert_eq!(counters[&format!("sidekick.{name}")], 0, "{name}");
    }
}

/// A scheme from outside that changes nothing.
struct Outside;

impl Scheme for Outside {
    fn name(&self) -> &'static str {
        "outside"
    }

    fn summary(&self) -> &'static str {
        "a scheme from outside"
    }

    fn source(&self) -> &'static str {
        "a test"
    }

    fn install<'a>(&'a self, _installer: &mut Installer<'a>) {}
}

/// Nobody would see the failure of a scheme on real packets.
#[test]
fn external_schemes_are_refused() {
    let scenario = read(FADING).with_schemes(vec!["outside".into()], [Arc::new(Outside) as _]).unwrap();
    assert!(scenario.run("outside", 1, 0, Observe::default()).is_ok());
    let refused = Emulation::new(&scenario, "outside", 1, 0).err().expect("it is refused").to_string();
    assert!(refused.contains("\"outside\" is not a scheme of Lasthop itself"), "{refused}");
}
