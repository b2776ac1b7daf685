//! Topologies and routes.

use lasthop_experiment::ConnectionRun;
use lasthop_proto::scheme::Schemes;
use lasthop_testing::schemes::extending;

use super::{all_of, assert_close, connection, events, read, run, times, traffic, unnamed};
use lasthop_testing::scenario_texts::SCENARIO;

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
