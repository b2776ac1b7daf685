//! Networks: topologies and routes, several connections, other traffic, outages, warm-ups.

mod common;

use common::{NETWORK, SCENARIO};
use lasthop_proto::scheme::{QueueUse, Schemes};
use lasthop_scenario::{
    ConnectionMetrics, ConnectionRun, Ended, Events, Metrics, Observe, PartRun, Run, Scenario, Series,
    TrafficMetrics, Value,
};
use lasthop_testing::schemes::extending;

const EVERYTHING: Observe<'_> = Observe { trace: true, series: true, delays: false, pcap: None };

fn read(text: &str, overrides: &[&str]) -> Scenario {
    Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario, scheme: &str) -> Run {
    scenario.run(scheme, 1, 0, EVERYTHING).unwrap_or_else(|error| panic!("{error}"))
}

fn connection<'a>(run: &'a Run, name: &str) -> &'a ConnectionRun {
    run.connections.iter().find(|each| each.name == name).unwrap_or_else(|| panic!("there is no {name}"))
}

fn traffic<'a>(run: &'a Run, name: &str) -> &'a TrafficMetrics {
    &run.traffic.iter().find(|each| each.0 == name).unwrap_or_else(|| panic!("there is no {name}")).1
}

fn events(run: &ConnectionRun) -> &Events {
    run.parts[0].events.as_ref().expect("everything was recorded")
}

/// Times of the events of a kind.
fn times<'a>(events: &'a Events, kind: &'a str) -> impl Iterator<Item = f64> + 'a {
    let of_kind = events.event.iter().zip(&events.time_s).filter(move |(event, _)| **event == kind);
    of_kind.map(|(_, &time)| time)
}

fn counts(values: impl Iterator<Item = Value>) -> Vec<u64> {
    let count = |value| match value {
        Value::Count(count) => Some(count),
        Value::Real(_) | Value::Truth(_) => None,
    };
    values.filter_map(count).collect()
}

/// All results of a run, as text because NaN differs from itself.
fn all_of(result: &impl std::fmt::Debug) -> String {
    format!("{result:?}")
}

/// The run without the names of nodes and links, which depend on the topology.
fn unnamed(run: &Run) -> Run {
    let mut run = run.clone();
    for part in run.connections.iter_mut().flat_map(|each| &mut each.parts) {
        (part.from, part.to) = Default::default();
    }
    run.agents.iter_mut().for_each(|agent| agent.name.clear());
    run
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "found {found}, expected {expected}");
}

/// Mean and standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / (n - 1.0) / n).sqrt())
}

/// The default topology, written out by other means. Only the names of random streams differ, so the run is
/// deterministic: the channel's periods and the backoffs are fixed.
#[test]
fn explicit_topologies_equal_the_shorthand() {
    let certain = [
        "radio.channel.fixed-periods={good=\"10 s\", bad=\"4 s\"}",
        "radio.arq.stop-and-wait.backoff.fixed=70 ms",
        "radio.fec=bch-255-131-18",
        "radio.queue=5 packets",
        "tcp.close=true",
        "limit=400 s",
    ];
    let graph = "topology.graph={wired=[\"fixed-base\"], radio=[\"base-mobile\"]}";
    let turned = "topology.graph={wired=[\"base-fixed\"], radio=[\"base-mobile\"]}";
    for (down, shapes) in [
        (
            true,
            &[
                &[graph, "transfer.from=fixed", "transfer.to=mobile"][..],
                &[turned, "transfer.from=fixed", "transfer.to=mobile"],
                &["topology.path.routers=1"],
                &["topology.path={routers=1, wireless=\"last\"}", "transfer.via=[\"R1\"]"],
            ][..],
        ),
        (
            false,
            &[
                &[graph, "transfer.from=mobile", "transfer.to=fixed"],
                &["topology.path={routers=1, wireless=\"first\"}"],
            ],
        ),
    ] {
        let ends = match down {
            true => &[][..],
            false => &["transfer.from=mobile", "transfer.to=fixed"],
        };
        let usual = read(SCENARIO, &[&certain, ends].concat());
        for scheme in extending(&Schemes::default(), &usual.tcp) {
            let expected = run(&usual, scheme.name());
            assert!(connection(&expected, "transfer").metrics.finished, "{}", scheme.name());
            for shape in shapes {
                let found = run(&read(SCENARIO, &[&certain, *shape].concat()), scheme.name());
                assert!(
                    all_of(&unnamed(&found)) == all_of(&unnamed(&expected)),
                    "{} over {shape:?}",
                    scheme.name()
                );
            }
        }
    }
}

/// Packets of 1000 B with 960 B of payload, one acknowledgement per segment, no handshake.
const PATH: &str = r#"
[topology.path]
routers = 4

[transfer]
size = "960 B"

[tcp]
profile = "rfc"
packet_size = "1000 B"
window = "7680 B"
initial_window = "8 segments"
ack_every = 1
handshake = false
close = false

[wired]
rate = "1 Mbps"
delay = "30 ms"

[radio]
rate = "1 Mbps"
delay = "30 ms"
"#;

/// By hand: each link adds the packet's transmission time and its delay.
#[test]
fn segment_delays_add_up_over_links() {
    for routers in 1..6 {
        let path = format!("topology.path.routers={routers}");
        let last = format!("link.R{routers}-destination={{rate=\"250 kbps\", delay=\"7 ms\"}}");
        let first = "link.source-R1={rate=\"4 Mbps\", delay=\"1 ms\"}";
        let result = run(&read(PATH, &[&path, first, &last]), "basic");
        let between = f64::from(routers - 1) * (0.008 + 0.030);
        let expected = 0.002 + 0.001 + between + 0.032 + 0.007;
        assert_close(result.metrics.connections.completion_time_s.unwrap(), expected);
        // The acknowledgement, of 40 B, returns over all links.
        let back = f64::from(routers - 1) * (0.00032 + 0.030) + 0.00008 + 0.001 + 0.00128 + 0.007;
        let acknowledged = times(events(&result.connections[0]), "ack-received").next().unwrap();
        assert_close(acknowledged, expected + back);
    }
}

/// A window of 8 packets on a path with a larger bandwidth-delay product: each acknowledgement releases one
/// packet, one round trip after the packet that it acknowledges.
#[test]
fn a_small_window_is_sent_once_per_round_trip() {
    for routers in 1..5 {
        let path = format!("topology.path.routers={routers}");
        let (rounds, window) = (5.0, 8.0);
        let result = run(&read(PATH, &[&path, "transfer.size=38400 B"]), "basic");
        let links = f64::from(routers + 1);
        let (out, back) = (links * (0.008 + 0.030), links * (0.00032 + 0.030));
        assert!(window * 0.008 < out + back, "the window does not fill the path");
        let expected = (rounds - 1.0) * (out + back) + (window - 1.0) * 0.008 + out;
        assert_close(result.metrics.connections.completion_time_s.unwrap(), expected);
        assert_close(result.metrics.connections.throughput_bps, 38_400.0 * 8.0 / expected);
    }
}

/// Three paths from A to Z, with delays that identify them: 1 + 2, 10 + 20 and 100 + 200 + 400 ms.
/// Transmission times are negligible.
const WAYS: &str = r#"
[topology.graph]
wired = ["A-B", "B-Z", "Z-C", "C-A", "A-D", "D-E", "E-Z"]

[transfer]
size = "500 B"
from = "A"
to = "Z"

[tcp]
handshake = false
close = false
ack_every = 1

[wired]
rate = "1000 Gbps"

[link]
A-B.delay = "1 ms"
B-Z.delay = "2 ms"
Z-C.delay = "10 ms"
C-A.delay = "20 ms"
A-D.delay = "100 ms"
D-E.delay = "200 ms"
E-Z.delay = "400 ms"
"#;

#[test]
fn data_and_acknowledgements_follow_their_paths() {
    let tell = |overrides: &[&str]| {
        let result = run(&read(WAYS, overrides), "basic");
        let events = events(&result.connections[0]);
        let at = |kind| times(events, kind).next().unwrap();
        let ms = |time: f64| (1e3 * time).round() as u64;
        (ms(at("delivered") - at("sent")), ms(at("ack-received") - at("ack-sent")))
    };
    // Of two paths with equally many links, the one over the link listed first.
    assert_eq!(tell(&[]), (3, 3));
    assert_eq!(tell(&["transfer.via=[\"C\"]"]), (30, 30));
    assert_eq!(tell(&["transfer.via=[\"D\", \"E\"]"]), (700, 700));
    let back = ["transfer.from=Z", "transfer.to=A"];
    assert_eq!(tell(&back), (3, 3));
    assert_eq!(tell(&[back[0], back[1], "transfer.via=[\"E\", \"D\"]"]), (700, 700));
    assert_eq!(tell(&["transfer.to=E"]), (300, 300));
    // The number of links decides, not the delay.
    assert_eq!(tell(&["transfer.to=B", "link.A-B.delay=500 ms"]), (500, 500));
    assert_eq!(tell(&["transfer.to=B", "link.A-B.delay=500 ms", "transfer.via=[\"C\", \"Z\"]"]), (32, 32));
}

/// Each of several connections has its own path, over nodes where others branch off.
#[test]
fn crossing_connections_follow_their_own_paths() {
    let alone = ["transfer.size=1 B"];
    let together = [
        "transfer.size=1 B",
        "connection.b={}",
        "connection.c.via=[\"C\"]",
        "connection.d.via=[\"D\", \"E\"]",
        "connection.back={from=\"Z\", to=\"A\", via=[\"C\"]}",
        "connection.across={from=\"E\", to=\"C\"}",
        "traffic.datagrams={from=\"B\", to=\"D\", packet_size=\"100 B\", law={constant={rate=\"8 kbps\"}}}",
    ];
    assert_eq!(run(&read(WAYS, &alone), "basic").connections.len(), 1);
    let result = run(&read(WAYS, &together), "basic");
    let expected = [("b", 3.0), ("c", 30.0), ("d", 700.0), ("back", 30.0), ("across", 410.0)];
    assert_eq!(result.connections.len(), expected.len());
    for (found, (name, ms)) in result.connections.iter().zip(expected) {
        assert_eq!(found.name, name);
        assert!((found.metrics.completion_time_s.unwrap() * 1e3 - ms).abs() < 0.001, "{name}");
    }
    assert!((traffic(&result, "datagrams").mean_delay_s.unwrap() - 0.101).abs() < 1e-6);
}

/// Two long transfers over one bottleneck.
const DUMBBELL: &str = r#"
limit = "400 s"
warmup = "20 s"

[topology.dumbbell]
pairs = 2
wireless = "none"

[transfer]
size = "unlimited"

[wired]
rate = "10 Mbps"
delay = "5 ms"

[link.left-right]
rate = "1 Mbps"
delay = "20 ms"
queue = "25 packets"

[connection.1]

[connection.2]
start = "0.3 s"

# Keeps drop-tail queues and windows from falling into step.
[traffic.noise]
from = "left"
to = "right"
packet_size = "100 B"
law.poisson.rate = "50 kbps"
"#;

/// Throughputs of the two connections, in 30 runs.
fn shares(overrides: &[&str]) -> Vec<(f64, f64, f64)> {
    let scenario = read(DUMBBELL, overrides);
    let one = |number| {
        let result = scenario.run("basic", 1, number, Observe::default()).unwrap();
        let [one, two] = [0, 1].map(|index| result.connections[index].metrics.throughput_bps);
        (one, two, result.metrics.network.fairness.unwrap())
    };
    (0..30).map(one).collect()
}

/// With 99.9 % confidence (Student's t with 29 degrees of freedom: 3.66) the shares differ by less than 3 %
/// of the link, and together they use what headers leave of it.
#[test]
fn equal_connections_get_equal_shares() {
    let shares = shares(&[]);
    let (difference, error) =
        mean(&shares.iter().map(|(one, two, _)| (one - two) / (one + two)).collect::<Vec<_>>());
    assert!(difference.abs() <= 3.66 * error && 3.66 * error < 0.03, "{difference} with error {error}");
    let (fairness, error) = mean(&shares.iter().map(|share| share.2).collect::<Vec<_>>());
    assert!(fairness - 3.66 * error > 0.99, "{fairness} with error {error}");
    for (one, two, fairness) in shares {
        // By hand: Jain's index of two.
        assert_close(fairness, (one + two) * (one + two) / (2.0 * (one * one + two * two)));
        let used = (one + two) * 1500.0 / 1460.0 + 50_000.0;
        assert!((0.95e6..=1.005e6).contains(&used), "{used}");
    }
}

/// Of two connections over a drop-tail queue the one with the shorter round-trip time gets more, by a power
/// of the ratio of round-trip times between 1 and 2 (Lakshman and Madhow 1997). The links give round trips of
/// 60 and 260 ms; a full queue of 25 packets adds 300 ms to both.
#[test]
fn the_nearer_connection_gets_more() {
    let shares = shares(&["link.S2-left.delay=105 ms"]);
    let (ratio, error) = mean(&shares.iter().map(|(one, two, _)| (one / two).ln()).collect::<Vec<_>>());
    // The smallest and the largest ratio of round trips: with a full and with an empty queue.
    let (full, empty): (f64, f64) = (560.0 / 360.0, 260.0 / 60.0);
    assert!(ratio - 3.66 * error > full.ln(), "{} with error {error}", ratio.exp());
    assert!(ratio + 3.66 * error < 2.0 * empty.ln(), "{} with error {error}", ratio.exp());
    assert!(shares.iter().all(|share| share.2 < 0.9));
}

/// Connections without common links are independent.
#[test]
fn disjoint_connections_are_independent() {
    let links = ["A1-B1", "A2-B2", "A3-B3"];
    let text = |links: &[&str], connections: &str| {
        format!(
            "limit = '60 s'\n[topology.graph]\nwired = {links:?}\n[wired]\nrate = '1 Mbps'\ndelay = '20 ms'\n\
             queue = '20 packets'\n[transfer]\nsize = 'unlimited'\n{connections}"
        )
    };
    let ends = |n| format!("[connection.c{n}]\nfrom = 'A{n}'\nto = 'B{n}'\n");
    let alone = run(&read(&text(&links[..1], &ends(1)), &[]), "basic");
    let together = run(&read(&text(&links, &(ends(1) + &ends(2) + &ends(3))), &[]), "basic");
    for each in &together.connections {
        assert_eq!(each.metrics, alone.connections[0].metrics, "{}", each.name);
        let recorded = |each: &ConnectionRun| all_of(&(&each.parts[0].events, &each.parts[0].series));
        assert!(recorded(each) == recorded(&alone.connections[0]), "{}", each.name);
    }
    assert!(alone.metrics.connections.queue_drops > 0);
    assert_close(together.metrics.network.fairness.unwrap(), 1.0);
    assert_eq!(alone.metrics.network.fairness, Some(1.0));
    let sum = 3.0 * alone.metrics.connections.throughput_bps;
    assert_close(together.metrics.connections.throughput_bps, sum);
}

/// The run's totals are the sums over its connections.
#[test]
fn totals_are_sums_over_connections() {
    for number in 0..10 {
        let lossy = ["link.R1-R2.queue=3 packets", "link.base2-laptop.channel.iid.ber=1e-5"];
        let result = read(NETWORK, &lossy).run("lhack", 1, number, EVERYTHING).unwrap();
        let (all, each) = (&result.metrics.connections, &result.connections);
        let sum = each.iter().map(|each| counts(each.metrics.values()));
        let sum = sum.reduce(|a, b| a.iter().zip(b).map(|(a, b)| a + b).collect()).unwrap();
        assert_eq!(counts(all.values()), sum);
        let times: Vec<f64> = each.iter().map(|each| each.metrics.completion_time_s.unwrap()).collect();
        // The first starts after 1 s, the second at once.
        assert_close(all.throughput_bps, 1.6e6 / (1.0 + times[0]).max(times[1]));
        assert_eq!(all.completion_time_s, times.into_iter().reduce(f64::max));
        assert!(all.finished && result.ended == Ended::Finished);
        // Useful payload over payload sent, which is not the mean of the connections' goodputs.
        let sent: f64 = each.iter().map(|each| 100_000.0 / each.metrics.goodput.unwrap()).sum();
        assert_close(all.goodput.unwrap(), 200_000.0 / sent);
        for ConnectionRun { name, metrics, parts } in each {
            let events = parts[0].events.as_ref().unwrap();
            let lost = |why: &str| events.reason.iter().filter(|reason| **reason == why).count() as u64;
            assert_eq!(lost("queue-full"), metrics.queue_drops, "{name} {number}");
            assert_eq!(lost("corrupted"), metrics.lost_on_air, "{name} {number}");
            assert_eq!(times_of(events, "sent"), metrics.segments_sent, "{name} {number}");
            assert_eq!(times_of(events, "ack-sent"), metrics.acks_sent, "{name} {number}");
            assert_eq!(times_of(events, "notice-received"), metrics.notices, "{name} {number}");
        }
        // Each has losses on its own links only.
        let [first, second] = ["first", "second"].map(|name| &connection(&result, name).metrics);
        assert!(first.queue_drops > 0 && first.lost_on_air == 0);
        assert!(second.queue_drops == 0 && second.lost_on_air > 0);
        let cross = traffic(&result, "cross");
        assert!(cross.lost_packets > 0, "its losses are not the connections'");
    }
}

fn times_of(events: &Events, kind: &str) -> u64 {
    times(events, kind).count() as u64
}

/// The run finishes with the last connection, and not before.
#[test]
fn a_run_is_finished_with_its_last_connection() {
    let sizes = ["connection.first.size=10 KB", "connection.second.size=300 KB"];
    let result = run(&read(NETWORK, &sizes), "basic");
    let [first, second] = ["first", "second"].map(|name| &connection(&result, name).metrics);
    assert_eq!((first.delivered_bytes, second.delivered_bytes), (10_000, 300_000));
    assert!(first.completion_time_s < second.completion_time_s);
    assert_eq!(result.metrics.connections.completion_time_s, second.completion_time_s);
    let cut = run(&read(NETWORK, &[sizes[0], sizes[1], "limit=3 s"]), "basic");
    assert_eq!(cut.ended, Ended::TimeLimit);
    assert_eq!(cut.connections.iter().map(|each| each.metrics.finished).collect::<Vec<_>>(), [true, false]);
    let all = &cut.metrics.connections;
    assert_eq!((all.finished, all.completion_time_s), (false, None));
}

/// Two datagram sources and a transfer share a short queue before a lossy last hop.
const CROWD: &str = r#"
limit = "20 s"

[transfer]
size = "unlimited"

[wired]
rate = "2 Mbps"
delay = "10 ms"
queue = "10 packets"

[radio]
rate = "1 Mbps"
queue = "10 packets"
channel.iid.ber = 1e-5

[traffic.steady]
from = "fixed"
to = "mobile"
packet_size = "500 B"
start = "1 s"
stop = "15 s"
law.constant.rate = "200 kbps"

[traffic.bursts]
from = "fixed"
to = "mobile"
packet_size = "1000 B"
stop = "15 s"
law.on-off = { rate = "4 Mbps", on = "100 ms", off = "900 ms" }
"#;

#[test]
fn packets_are_conserved() {
    for number in 0..10 {
        let at_end = read(CROWD, &[]).run("basic", 1, number, Observe::default()).unwrap();
        for (name, each) in &at_end.traffic {
            assert_eq!(each.sent_packets, each.delivered_packets + each.lost_packets, "{name} {number}");
            assert!(each.lost_packets > 0 && each.delivered_packets > 0, "{name} {number}");
        }
        // 14 s of 50 packets.
        let steady = traffic(&at_end, "steady");
        assert_eq!(steady.sent_packets, 700);
        // Until the last packet has left the two queues and the two links.
        let took = steady.delivered_packets as f64 * 4000.0 / steady.throughput_bps;
        assert!((14.0..14.3).contains(&took), "{took}");
        // Upper bound on the packets in two queues and two links of each direction.
        let middle = read(CROWD, &["limit=8.7 s"]).run("basic", 1, number, Observe::default()).unwrap();
        for (name, each) in &middle.traffic {
            let ended = each.delivered_packets + each.lost_packets;
            assert!((ended..=ended + 30).contains(&each.sent_packets), "{name} {number}: {each:?}");
        }
    }
}

/// Departures of a source depend on its name, its pattern and the run only.
#[test]
fn traffic_sources_are_independent() {
    let sent = |text: &str, overrides: &[&str], name: &str| -> Vec<u64> {
        let until = |n: u32| {
            let limit = format!("limit={} ms", 1_001 + 137 * n);
            let scenario = read(text, &[overrides, &[&limit]].concat());
            let result = scenario.run("basic", 1, 0, Observe::default()).unwrap();
            traffic(&result, name).sent_packets
        };
        (0..100).map(until).collect()
    };
    let alone = sent(CROWD, &[], "bursts");
    // Another source and another connection, listed before and after it.
    let other = "from = 'fixed'\nto = 'base'\npacket_size = '99 B'\nlaw.poisson.rate = '9 kbps'\n";
    let before =
        CROWD.replacen("[traffic.steady]", &format!("[traffic.other]\n{other}\n[traffic.steady]"), 1);
    assert_eq!(sent(&before, &[], "bursts"), alone);
    assert_eq!(sent(&format!("{CROWD}\n[traffic.other]\n{other}"), &[], "bursts"), alone);
    assert_eq!(sent(CROWD, &["connection.a={}", "connection.b={}"], "bursts"), alone);
    // Its losses.
    assert_eq!(sent(CROWD, &["radio.channel=perfect", "wired.delay=1 ms"], "bursts"), alone);
    let twin = CROWD.replacen("[traffic.bursts]", "[traffic.twin]", 1);
    assert_ne!(sent(&twin, &[], "twin"), alone, "another name is another source");
}

/// Counters with a warm-up equal those at the end less those at the end of the warm-up.
#[test]
fn the_warm_up_is_subtracted_from_counters() {
    let early = "traffic.cross.start=0.5 s";
    for (text, scheme, change) in [
        (CROWD, "basic", "wired.queue=1 packet"),
        (NETWORK, "lhack", early),
        (SCENARIO, "ebsn", "radio.queue=3 packets"),
    ] {
        // The warm-up ends at an instant with departures and losses.
        for warmup in ["1.3 s", "2 s", "2.777777777 s"] {
            let with = |overrides: &[&str]| run(&read(text, &[&[change], overrides].concat()), scheme);
            let limit = "limit=9 s";
            let before = with(&[&format!("limit={warmup}")]);
            let after = with(&[limit]);
            let found = with(&[limit, &format!("warmup={warmup}")]);
            let differ = |of: &dyn Fn(&Run) -> Vec<u64>| {
                let difference =
                    of(&after).into_iter().zip(of(&before)).map(|(after, before)| after - before);
                assert_eq!(of(&found), difference.collect::<Vec<_>>(), "{scheme} {warmup}");
            };
            differ(&|run| counts(run.metrics.values()));
            differ(&|run| run.connections.iter().flat_map(|each| counts(each.metrics.values())).collect());
            differ(&|run| run.traffic.iter().flat_map(|each| counts(each.1.values())).collect());
            let traced =
                |run: &Run| run.connections.iter().map(|each| events(each).clone()).collect::<Vec<_>>();
            assert_eq!(traced(&found), traced(&after), "a warm-up changes what is counted, not what happens");
        }
    }
}

#[test]
fn rates_and_delays_exclude_the_warm_up() {
    let [before, after, found] = [&["limit=5 s"][..], &["limit=12 s"], &["limit=12 s", "warmup=5 s"]]
        .map(|overrides| run(&read(CROWD, overrides), "basic"));
    let all = &found.metrics.connections;
    assert_close(all.throughput_bps, all.delivered_bytes as f64 * 8.0 / 7.0);
    let [before, after, found] = [&before, &after, &found].map(|run| traffic(run, "steady"));
    assert_close(found.throughput_bps, found.delivered_packets as f64 * 4000.0 / 7.0);
    let total = |each: &TrafficMetrics| each.mean_delay_s.unwrap() * each.delivered_packets as f64;
    assert_close(total(found), total(after) - total(before));
}

#[test]
fn a_zero_warm_up_changes_nothing() {
    for text in [CROWD, NETWORK, SCENARIO] {
        let of = |overrides: &[&str]| all_of(&run(&read(text, overrides), "basic"));
        assert!(of(&["warmup=0 s", "limit=9 s"]) == of(&["limit=9 s"]));
    }
    // Losses at time zero count.
    let burst = ["tcp.profile=rfc", "tcp.handshake=false", "wired.queue=2 packets", "limit=1 ms"];
    let drops = run(&read(SCENARIO, &burst), "basic").metrics.connections.queue_drops;
    assert_eq!(drops, 10 - 3, "of an initial window of 10 packets one is sent and 2 wait");
}

/// Twice the link rate: every second packet finds the queue full at its departure time. All events at the end
/// of the warm-up belong to it.
#[test]
fn a_packet_and_its_loss_fall_on_the_same_side_of_the_warm_up() {
    let text = r#"
        limit = "2 s"
        [topology.graph]
        wired = ["A-B", "C-D"]
        [transfer]
        size = "unlimited"
        from = "C"
        to = "D"
        [wired]
        rate = "400 kbps"
        queue = "1 packet"
        [traffic.cross]
        from = "A"
        to = "B"
        packet_size = "500 B"
        stop = "1.5 s"
        law.constant.rate = "800 kbps"
    "#;
    let of = |overrides: &[&str]| counts(traffic(&run(&read(text, overrides), "basic"), "cross").values());
    let after = of(&[]);
    for ms in 1_000..1_020 {
        let before = of(&[&format!("limit={ms} ms")]);
        let difference: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
        assert_eq!(of(&[&format!("warmup={ms} ms")]), difference, "{ms} ms");
    }
}

/// A transfer completed within the warm-up has no throughput after it, but is finished.
#[test]
fn a_transfer_within_the_warm_up_is_finished() {
    let short = ["transfer.size=5 KB", "warmup=15 s"];
    let metrics = run(&read(CROWD, &short), "basic").metrics.connections;
    assert!(metrics.finished && metrics.completion_time_s.unwrap() < 10.0);
    assert_eq!((metrics.delivered_bytes, metrics.throughput_bps, metrics.goodput), (0, 0.0, None));
}

/// A packet starts every 10 ms from 0 s on and takes 4 ms. Packets whose air time overlaps an outage are
/// lost: counted by hand.
#[test]
fn packets_on_the_air_during_a_hand_off_are_lost() {
    let text = r#"
        limit = "10 s"
        [topology.graph]
        radio = ["base-mobile"]
        [transfer]
        size = "1 B"
        from = "base"
        to = "mobile"
        start = "9.9 s"
        [radio]
        rate = "1 Mbps"
        [traffic.down]
        from = "base"
        to = "mobile"
        packet_size = "500 B"
        stop = "9.5 s"
        law.constant.rate = "400 kbps"
        [traffic.up]
        from = "mobile"
        to = "base"
        packet_size = "500 B"
        stop = "9.5 s"
        law.constant.rate = "400 kbps"
    "#;
    for (outages, lost) in [
        // Those that start at 1.00, 1.01, ... 1.09 s.
        ("{first=\"1 s\", lasts=\"95 ms\"}", 10),
        ("{first=\"1.005 s\", lasts=\"95 ms\"}", 9),
        ("{first=\"1.003 s\", lasts=\"95 ms\"}", 10),
        ("{first=\"1.005 s\", lasts=\"4 ms\"}", 0),
        ("{first=\"1.001 s\", lasts=\"1 ms\"}", 1),
        ("{first=\"1 s\", lasts=\"95 ms\", every=\"2 s\"}", 50),
        ("{first=\"20 s\", lasts=\"95 ms\"}", 0),
    ] {
        let result = run(&read(text, &[&format!("radio.outage={outages}")]), "basic");
        for name in ["down", "up"] {
            assert_eq!(traffic(&result, name).lost_packets, lost, "{name} {outages}");
            assert_eq!(traffic(&result, name).sent_packets, 950);
        }
    }
}

/// The base station sends lhacks for what it transmits during an outage, so the source retransmits and keeps
/// its window: section 6 of the lhack paper.
#[test]
fn a_source_with_lhacks_does_not_treat_a_hand_off_as_congestion() {
    let text = r#"
        limit = "60 s"
        schemes = ["basic", "lhack"]
        [tcp]
        profile = "rfc"
        [transfer]
        size = "1 MB"
        [wired]
        rate = "2 Mbps"
        delay = "30 ms"
        [radio]
        rate = "1 Mbps"
        outage = { first = "4 s", lasts = "30 ms" }
    "#;
    let scenario = read(text, &[]);
    let [basic, lhack] = ["basic", "lhack"].map(|scheme| run(&scenario, scheme));
    let in_outage = |time: &f64| (4.0..=4.03 + 0.0121).contains(time);
    for result in [&basic, &lhack] {
        let events = events(&result.connections[0]);
        assert!(times_of(events, "lost") >= 2, "{}", result.scheme);
        assert!(times(events, "lost").chain(times(events, "ack-lost")).all(|time| in_outage(&time)));
    }
    // The lhacks of the lost segments.
    let heard: Vec<i64> = {
        let events = events(&lhack.connections[0]);
        let rows = 0..events.event.len();
        let row_of =
            |kind| rows.clone().filter(move |&row| events.event[row] == kind).map(|row| events.packet[row]);
        let lost: Vec<i64> = row_of("lost").collect();
        assert!(
            lost.iter().all(|packet| row_of("notice-received").any(|other| other == *packet)),
            "{lost:?}"
        );
        lost
    };
    assert!(!heard.is_empty());
    let threshold = |result: &Run| {
        let Series { columns, .. } = result.connections[0].parts[0].series.as_ref().unwrap();
        let (_, values) = columns.iter().find(|(name, _)| *name == "ssthresh_bytes").unwrap();
        *values.last().unwrap()
    };
    assert!(threshold(&basic) < threshold(&lhack), "only one took it for congestion");
    let time = |result: &Run| result.metrics.connections.completion_time_s.unwrap();
    assert!(time(&lhack) < time(&basic));
}

/// The uplink may have its own channel, which leaves the downlink unchanged.
#[test]
fn an_uplink_channel_affects_the_uplink_only() {
    let fates = |overrides: &[&str]| {
        let result =
            run(&read(CROWD, &[overrides, &["limit=10 s", "transfer.size=20 KB"]].concat()), "basic");
        let events = events(&result.connections[0]).clone();
        ["delivered", "lost", "ack-received", "ack-lost"].map(|kind| times_of(&events, kind) > 0)
    };
    let quiet = ["traffic={}", "wired.queue=unlimited", "radio.queue=unlimited"];
    let with = |channels: &[&'static str]| fates(&[&quiet[..], channels].concat());
    let (perfect, dead) = ("radio.channel=perfect", "radio.channel.frame-loss.loss=1");
    let (up_perfect, up_dead) = ("radio.uplink.channel=perfect", "radio.uplink.channel.frame-loss.loss=1");
    // Only acknowledgements use the uplink, and only SYN and data the downlink.
    let established = "tcp.handshake=false";
    assert_eq!(with(&[established, perfect, up_dead]), [true, false, false, true]);
    assert_eq!(with(&[established, dead, up_perfect]), [false, true, false, false]);
    assert_eq!(with(&[established, perfect, up_perfect]), [true, false, true, false]);
    assert_eq!(with(&[established, perfect]), [true, false, true, false]);
    assert_eq!(with(&[established, dead]), [false, true, false, false]);
    // With a source at the other end data use the uplink.
    let turned = ["transfer.from=mobile", "transfer.to=fixed"];
    assert_eq!(with(&[established, perfect, up_dead, turned[0], turned[1]]), [false, true, false, false]);
    assert_eq!(with(&[established, dead, up_perfect, turned[0], turned[1]]), [true, false, false, true]);
}

/// A link's overrides affect no other link.
#[test]
fn a_link_override_affects_one_link_only() {
    let text = r#"
        limit = "30 s"
        [topology.dumbbell]
        pairs = 2
        [transfer]
        size = "50 KB"
        [wired]
        rate = "10 Mbps"
        [radio]
        rate = "1 Mbps"
        [link.right-D2]
        rate = "200 kbps"
        channel.frame-loss.loss = 0.05
    "#;
    let result = run(&read(text, &[]), "basic");
    let [one, two] = ["1", "2"].map(|name| &connection(&result, name).metrics);
    assert_eq!((one.lost_on_air, one.goodput), (0, Some(1.0)));
    assert!(two.lost_on_air > 0 && two.completion_time_s > one.completion_time_s);
}

/// One source has the scheme, the other does not; the base station serves both.
#[test]
fn a_source_without_the_scheme_ignores_notices() {
    let text = r#"
        limit = "60 s"
        [topology.dumbbell]
        pairs = 2
        [transfer]
        size = "500 KB"
        [connection.1]
        [connection.2]
        plain = true
        [wired]
        rate = "10 Mbps"
        delay = "20 ms"
        [radio]
        rate = "1 Mbps"
        channel.fixed-periods = { good = "3.1 s", bad = "20 ms" }
    "#;
    // The links are so fast that the two are independent: the plain source behaves as with `basic`.
    let [basic, lhack] = ["basic", "lhack"].map(|scheme| run(&read(text, &[]), scheme));
    let metrics = |run, name| connection(run, name).metrics.clone();
    let (before, after) = (metrics(&basic, "2"), metrics(&lhack, "2"));
    assert!(after.notices > 0 && before.notices == 0);
    assert_eq!(ConnectionMetrics { notices: 0, ..after.clone() }, before);
    assert!(metrics(&lhack, "1").completion_time_s < after.completion_time_s);
}

/// Random streams are named, so an added part leaves the existing ones unchanged.
#[test]
fn a_second_last_hop_leaves_the_first_unchanged() {
    let text = |pairs| {
        format!(
            "limit = '30 s'\n[topology.dumbbell]\npairs = {pairs}\n[transfer]\nsize = '50 KB'\n[wired]\n\
             rate = '1000 Mbps'\n[radio]\nrate = '1 Mbps'\n\
             channel.two-state = {{ good = '300 ms', bad = '20 ms', good_ber = 0.0, bad_ber = 1.0 }}\n"
        )
    };
    let [one, two] = [1, 2].map(|pairs| run(&read(&text(pairs), &[]), "basic"));
    // In the bottleneck they may interfere for a few microseconds.
    let lost = |run: &Run| -> Vec<i64> {
        let events = events(connection(run, "1"));
        let rows = (0..events.event.len()).filter(|&row| events.event[row] == "lost");
        rows.map(|row| events.packet[row]).collect()
    };
    assert!(!lost(&one).is_empty());
    assert_eq!(lost(&one), lost(&two));
    assert_ne!(lost(&two), {
        let events = events(connection(&two, "2"));
        let rows = (0..events.event.len()).filter(|&row| events.event[row] == "lost");
        rows.map(|row| events.packet[row]).collect::<Vec<_>>()
    });
}

/// Several connections and other traffic.
#[test]
fn runs_are_reproducible() {
    let scenario = read(NETWORK, &["link.base2-laptop.channel.iid.ber=1e-5", "limit=6 s"]);
    let report = |number| {
        let result = scenario.run("lhack", 7, number, Observe::default()).unwrap();
        scenario.report(&[&result]).unwrap()
    };
    assert_eq!(report(3), report(3));
    assert_ne!(report(3).replace("\"run\": 3", "\"run\": 4"), report(4));
}

/// Every scheme over every topology, in both directions, with an application and background traffic.
#[test]
fn every_scheme_runs_over_every_shape() {
    let application = |from, to| {
        format!(
            "application.web={{kind=\"http\", from={from:?}, to={to:?}, think={{exponential=\"1 s\"}}, requests=4}}"
        )
    };
    let ends = [
        ("fixed", "mobile"),
        ("destination", "source"),
        ("S2", "D3"),
        ("a", "b"),
        ("MH3", "server"),
        ("c", "b"),
    ];
    let [usual, path, dumbbell, graph, cell, within] = ends.map(|(from, to)| application(from, to));
    let shapes = [
        &[usual.as_str()][..],
        &["topology.path={routers=3, wireless=\"both\"}", &path],
        &["topology.dumbbell={pairs=3, wireless=\"both\"}", &dumbbell],
        &[
            &graph,
            "topology.graph={wired=[\"server-base\", \"base-base2\"], radio=[\"base-a\", \"base2-b\"]}",
            "connection.down={from=\"server\", to=\"a\"}",
            "connection.up={from=\"b\", to=\"server\"}",
            "connection.between={from=\"a\", to=\"b\"}",
            "connection.hop={from=\"base\", to=\"a\"}",
            "connection.back={from=\"a\", to=\"base\"}",
            "traffic.cross={from=\"b\", to=\"a\", packet_size=\"100 B\", law={poisson={rate=\"2 kbps\"}}}",
        ],
        &[
            &cell,
            "topology.cell={stations=3}",
            "connection.1={}",
            "connection.2={from=\"MH2\", to=\"server\"}",
        ],
        &[
            &within,
            "topology.graph={wired=[\"server-ap\", \"ap-base\"], radio=[\"base-a\"], cell=[\"ap-b\", \"ap-c\"]}",
            "connection.down={from=\"server\", to=\"b\"}",
            "connection.up={from=\"c\", to=\"server\"}",
            "connection.between={from=\"b\", to=\"c\"}",
            "connection.over={from=\"c\", to=\"a\"}",
            "connection.hop={from=\"ap\", to=\"b\"}",
            "connection.back={from=\"b\", to=\"ap\"}",
            "link.ap-b.drop={down=0.05, up=0.02}",
            "traffic.cross={from=\"a\", to=\"c\", packet_size=\"100 B\", law={poisson={rate=\"2 kbps\"}}}",
        ],
    ];
    for shape in shapes {
        let lossy = [
            "transfer.size=20 KB",
            "tcp.close=true",
            "radio.channel.frame-loss.loss=0.05",
            "radio.fec=bch-255-131-18",
            "limit=1 h",
        ];
        let overrides = [shape, &lossy].concat();
        let scenario = read(SCENARIO, &overrides);
        for scheme in extending(&Schemes::default(), &scenario.tcp) {
            let result = match scenario.run(scheme.name(), 1, 0, EVERYTHING) {
                // A cell has no coding and queues of its own, and a tunnel does not lead from station to station.
                Err(refused) => {
                    let schemes = Schemes::default();
                    let combination = schemes.combination(scheme.name()).expect("it is known");
                    let link = combination.link();
                    let is_for_radios = link.protects.is_some() || link.queue != QueueUse::Kept;
                    assert!(is_for_radios || combination.tunnel().is_some());
                    assert!(refused.to_string().contains("cell"), "{refused}");
                    continue;
                }
                Ok(result) => result,
            };
            assert_eq!(result.ended, Ended::Finished, "{} over {shape:?}", scheme.name());
            assert!(Metrics::names().count() == result.metrics.values().count());
            let web = &result.applications[0].1.metrics;
            assert_eq!((web.requests, web.responses), (4, 4), "{} over {shape:?}", scheme.name());
            for each in &result.connections {
                let received = times_of(events(each), "notice-received");
                assert_eq!(each.metrics.notices, received, "{} of {}", each.name, scheme.name());
            }
        }
    }
}

/// A base station that is itself a mobile host has no wired side, so connections are not split.
#[test]
fn wireless_links_in_a_row_are_not_split() {
    for links in [r#"radio=["a-b", "b-c"]"#, r#"cell=["a-b", "b-c"]"#, r#"cell=["a-b"], radio=["b-c"]"#] {
        for (from, to) in [("a", "c"), ("c", "a")] {
            let ends = format!("connection.only={{from=\"{from}\", to=\"{to}\"}}");
            let graph = format!("topology.graph={{{links}}}");
            let scenario = read(SCENARIO, &[&graph, &ends, "tcp.close=true", "limit=1 h"]);
            assert_eq!(run(&scenario, "basic").ended, Ended::Finished, "{links}");
            for scheme in ["i-tcp", "metp", "vs-tcp"] {
                let refused = scenario.run(scheme, 1, 0, Observe::default()).unwrap_err();
                assert!(refused.to_string().contains("two wireless links in a row"), "{refused}");
                let endless = read(SCENARIO, &[&graph, &ends, "transfer.size=unlimited", "limit=10 s"]);
                assert!(endless.run(scheme, 1, 0, Observe::default()).is_err());
            }
        }
    }
    let between = "topology.graph={radio=[\"base-a\", \"base-b\"]}";
    let ends = "connection.only={from=\"a\", to=\"b\"}";
    let scenario = read(SCENARIO, &[between, ends, "tcp.close=true", "limit=1 h"]);
    assert_eq!(run(&scenario, "metp").ended, Ended::Finished);
}

/// A mobile host that fails permanently does not block a run: the base station aborts, resets the source, and
/// counts the bytes that it acknowledged in vain; also if the source has finished.
#[test]
fn a_base_station_aborts_connections_to_a_dead_mobile_host() {
    let dead = "radio.channel.fixed-periods={good=\"5 s\", bad=\"10000 s\"}";
    for (size, source_is_done) in [("10 MB", false), ("20 KB", true)] {
        for scheme in ["i-tcp", "metp", "vs-tcp"] {
            let size = format!("transfer.size={size}");
            let overrides = [dead, &size, "tcp.close=true", "limit=10 h", "wired.rate=10 Mbps"];
            let result = run(&read(SCENARIO, &overrides), scheme);
            let ConnectionRun { metrics, parts, .. } = &result.connections[0];
            assert_eq!(result.ended, Ended::Finished, "{scheme}");
            assert!(metrics.aborted && !metrics.finished && metrics.completion_time_s.is_none());
            assert!(metrics.acknowledged_undelivered_bytes > 0 && metrics.relay_held_bytes == 0);
            assert!(metrics.relay_timeouts > 1 && metrics.relay_peak_bytes > 0);
            let [wired, wireless] = &parts[..] else { panic!("two parts") };
            let last = |part: &PartRun| *part.events.as_ref().unwrap().time_s.last().unwrap();
            // R2 of RFC 9293 section 3.8.3, plus the last interval of the timer.
            assert!(last(wireless) > 105.0 && last(wireless) < 5.0 + 2.0 * 100.0 + 64.0, "{scheme}");
            assert_eq!(last(wired) < 100.0, source_is_done, "{scheme}: {}", last(wired));
        }
    }
}

/// The total throughput of consecutive connections does not exceed the link rate.
#[test]
fn total_throughput_is_over_the_union_of_connections() {
    let one_after_the_other = "limit = '400 s'\n[topology.graph]\nwired = ['A-B']\n\
        [wired]\nrate = '1 Mbps'\n[transfer]\nsize = '1 MB'\nfrom = 'A'\nto = 'B'\n\
        [connection.x]\n[connection.y]\nstart = '100 s'\n[connection.z]\nstart = '200 s'\n";
    let result = run(&read(one_after_the_other, &[]), "basic");
    let last = result.connections[2].metrics.completion_time_s.unwrap();
    assert_close(result.metrics.connections.throughput_bps, 24e6 / (200.0 + last));
    assert!(result.metrics.network.fairness.unwrap() > 0.999);
}

/// A connection finished before the end of the warm-up is not counted, and an unbounded one is not awaited.
#[test]
fn finished_and_unbounded_connections_after_a_warm_up() {
    let text = "limit = '60 s'\nwarmup = '20 s'\n[topology.graph]\nwired = ['A-B']\n\
        [wired]\nrate = '1 Mbps'\ndelay = '10 ms'\nqueue = '20 packets'\n\
        [transfer]\nsize = 'unlimited'\nfrom = 'A'\nto = 'B'\n\
        [connection.early]\nsize = '10 KB'\n[connection.late]\nsize = '1 MB'\nstart = '20 s'\n[connection.endless]\n";
    let result = run(&read(text, &[]), "basic");
    assert_eq!(result.ended, Ended::Finished);
    assert_eq!(result.connections[0].metrics.throughput_bps, 0.0);
    let [late, endless] = [1, 2].map(|n| result.connections[n].metrics.throughput_bps);
    let jain = (late + endless).powi(2) / (2.0 * (late * late + endless * endless));
    assert_close(result.metrics.network.fairness.unwrap(), jain);
    let all = &result.metrics.connections;
    assert!(all.finished);
    assert_eq!(all.completion_time_s, result.connections[1].metrics.completion_time_s);
}

/// A table with a generated name changes that connection; a table with another name replaces the generated set.
#[test]
fn connections_of_a_topology_may_be_named() {
    let names = |overrides: &[&str]| {
        let text = "topology.dumbbell = {pairs = 3, wireless = 'none'}\n[wired]\nrate = '1 Mbps'\n\
                    [transfer]\nsize = '10 KB'\n";
        let result = run(&read(text, overrides), "basic");
        result.connections.iter().map(|each| each.name.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&[]), "1 2 3");
    assert_eq!(names(&["connection.2.start=1 s"]), "1 2 3");
    assert_eq!(names(&["connection.a={from=\"S1\", to=\"D2\"}", "connection.2.start=1 s"]), "a 2");
    assert_eq!(names(&["transfer.from=S1", "transfer.to=D3"]), "1");
}

/// Equal connections with a random spread start at different times.
#[test]
fn start_spread_is_drawn_per_connection() {
    let text = "topology.dumbbell = {pairs = 3, wireless = 'none'}\n[wired]\nrate = '1 Mbps'\n\
                [transfer]\nsize = '10 KB'\nspread = '2 s'\n";
    let starts = |number, overrides: &[&str]| -> Vec<f64> {
        let result = read(text, overrides).run("basic", 1, number, EVERYTHING).unwrap();
        let first = |each: &ConnectionRun| each.parts[0].events.as_ref().unwrap().time_s[0];
        result.connections.iter().map(first).collect()
    };
    let (one, other) = (starts(0, &[]), starts(1, &[]));
    let all: Vec<f64> = one.iter().chain(&other).copied().collect();
    assert!(all.iter().all(|start| (0.0..=2.0).contains(start)));
    assert!(all.iter().enumerate().all(|(i, start)| !all[..i].contains(start)));
    // Another pair changes nothing for the existing ones.
    assert_eq!(starts(0, &["topology.dumbbell.pairs=2"]), one[..2]);
}

/// Segments in flight at the end of the warm-up are delivered after it and count as sent after it: without
/// losses goodput is one.
#[test]
fn a_warmup_during_a_lossless_transfer_leaves_goodput_at_one() {
    let text = "[transfer]\nsize = '500 KB'\n[tcp]\nclose = true\n[wired]\nrate = '10 Mbps'\ndelay = '50 ms'\n[radio]\nrate = \
                '1 Mbps'\n";
    for scheme in ["basic", "i-tcp"] {
        for warmup in ["0 s", "80 ms", "110 ms", "1 s", "2.5 s", "4.1 s"] {
            let overrides = [format!("warmup={warmup}"), format!("schemes=[\"{scheme}\"]")];
            let scenario =
                Scenario::parse(text, "test.toml", &overrides).unwrap_or_else(|error| panic!("{error}"));
            let run = scenario.run(scheme, 1, 0, Observe::default()).expect("it runs");
            assert!(run.metrics.connections.finished, "{scheme} {warmup}");
            assert_eq!(run.metrics.connections.goodput, Some(1.0), "{scheme} {warmup}");
            assert_eq!(run.connections[0].metrics.goodput, Some(1.0), "{scheme} {warmup}");
        }
    }
    // With losses goodput is below one.
    let cell = include_str!("../../../scenarios/cell.toml");
    let scenario =
        Scenario::parse(cell, "cell.toml", &["limit=10 s"]).unwrap_or_else(|error| panic!("{error}"));
    let run = scenario.run("basic", 1, 0, Observe::default()).expect("it runs");
    for metrics in run.connections.iter().map(|each| &each.metrics).chain([&run.metrics.connections]) {
        assert!(
            metrics.goodput.is_some_and(|goodput| (0.8..=1.0).contains(&goodput)),
            "{:?}",
            metrics.goodput
        );
    }
}

/// Traffic at half the rate of its links: all of it arrives, after the delay of two links.
#[test]
fn a_scenario_may_have_traffic_only() {
    let text = "schemes = ['basic', 'local-recovery']\nlimit = '10 s'\n[traffic.video]\nfrom = 'fixed'\nto = \
                'mobile'\npacket_size = '1000 B'\nstop = '5 s'\nlaw.constant.rate = '1 Mbps'\n[wired]\nrate = \
                '2 Mbps'\n[radio]\nrate = '2 Mbps'\narq.stop-and-wait.backoff.fixed = '1 ms'\n[scheme.basic]\narq = false\n";
    let scenario = read(text, &[]);
    assert_eq!(read(&scenario.to_toml(), &[]), scenario);
    for scheme in &scenario.schemes {
        let run = scenario.run(scheme, 1, 0, EVERYTHING).expect("it runs");
        assert_eq!((run.ended, run.connections.len()), (Ended::Idle, 0));
        let (name, video) = &run.traffic[0];
        assert_eq!((name.as_str(), video.sent_packets, video.delivered_packets), ("video", 625, 625));
        assert_eq!((video.lost_packets, video.mean_delay_s), (0, Some(0.008)));
        assert_eq!(run.metrics.network.link_attempts, 625);
        assert_eq!(run.metrics.connections.throughput_bps, 0.0);
        assert_eq!((run.metrics.connections.goodput, run.metrics.connections.finished), (None, false));
        let json = scenario.report(&[&run]).expect("it can be told");
        assert!(json.contains("\"video\""), "{json}");
    }
    let lossy = read(text, &["radio.channel.frame-loss.loss=0.2"]);
    let lost = |scheme: &str| {
        lossy.run(scheme, 1, 0, Observe::default()).expect("it runs").traffic[0].1.lost_packets
    };
    assert!((80..=170).contains(&lost("basic")), "of 625 packets one in five");
    assert_eq!(lost("local-recovery"), 0);
}

/// Features that need a connection.
#[test]
fn a_scenario_without_a_transfer_has_no_connections() {
    let traffic = "[traffic.video]\nfrom = 'fixed'\nto = 'mobile'\npacket_size = '1000 B'\nlaw.constant.rate = '1 Mbps'\n";
    let links = "[wired]\nrate = '2 Mbps'\n[radio]\nrate = '2 Mbps'\n";
    let missing = "missing key transfer, expected a table with the key size";
    for text in [links.to_owned(), format!("{traffic}[connection.a]\nstart = '1 s'\n{links}")] {
        let error = Scenario::parse::<&str>(&text, "test.toml", &[]).expect_err("it is refused");
        assert_eq!(error.message(), missing);
    }
    let scenario = read(&format!("limit = '1 s'\n{traffic}{links}"), &[]);
    let observe = Observe { pcap: Some(std::path::Path::new("never-written.pcapng")), ..Observe::default() };
    let error = scenario.run("basic", 1, 0, observe).expect_err("there is nothing to capture").to_string();
    assert!(error.contains("found no connection"), "{error}");
    assert!(!std::path::Path::new("never-written.pcapng").exists());
}

/// Bad periods are those of the first wireless link's channel in this run, with both ends, for those that
/// start before the end.
#[test]
fn bad_periods_match_the_channel_of_the_run() {
    let fixed = "radio.channel.fixed-periods={ good = '2 s', bad = '1 s' }";
    let scenario = read(SCENARIO, &[fixed, "limit=30 s"]);
    assert_eq!(scenario.bad_periods(1, 0, 8.0), [(2.0, 3.0), (5.0, 6.0)]);
    assert_eq!(scenario.bad_periods(1, 0, 8.1), [(2.0, 3.0), (5.0, 6.0), (8.0, 9.0)]);
    let until_limit = scenario.bad_periods(1, 0, f64::INFINITY);
    assert_eq!((until_limit.len(), until_limit.last()), (10, Some(&(29.0, 30.0))));

    let model: lasthop_channel::Model =
        toml::from_str("two-state = { good = '2 s', bad = '1 s' }").expect("a channel");
    let by_hand = |stream: &str| {
        let mut channel = model.build(lasthop_base::Streams::new(7, 3).stream(stream));
        let (mut now, mut periods) = (lasthop_base::Time::ZERO, Vec::new());
        while now.as_secs_f64() < 20.0 {
            let stay = channel.sojourn(now);
            if stay.state == lasthop_channel::State::Bad {
                periods.push((now.as_secs_f64(), stay.until.as_secs_f64()));
            }
            now = stay.until;
        }
        periods
    };
    let links = "[transfer]\nsize = '1 KB'\n[wired]\nrate = '1 Mbps'\n[radio]\nrate = '1 Mbps'\n\
                 channel.two-state = { good = '2 s', bad = '1 s' }\n";
    let cell = "[topology.cell]\nstations = 2\n[transfer]\nsize = '1 KB'\n[wired]\nrate = '1 Mbps'\n\
                [cell.channel.two-state]\ngood = '2 s'\nbad = '1 s'\n";
    for (text, stream) in [
        (String::from(links), "channel"),
        (format!("[topology.path]\nrouters = 2\nwireless = 'last'\n{links}"), "channel:destination"),
        (format!("[topology.dumbbell]\npairs = 2\n{links}"), "channel:D1"),
        (String::from(cell), "channel:MH1"),
    ] {
        let periods = read(&text, &[]).bad_periods(7, 3, 20.0);
        assert!(periods.len() > 2, "{stream}");
        assert_eq!(periods, by_hand(stream), "{stream}");
    }
    let wired = "[topology.path]\nrouters = 1\nwireless = 'none'\n[transfer]\nsize = '1 KB'\n[wired]\nrate = '1 Mbps'\n";
    assert_eq!(read(wired, &[]).bad_periods(7, 3, 20.0), []);
}
