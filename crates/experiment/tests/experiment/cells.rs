//! 802.11 cells in scenarios: counters, losses, random streams, and combinations with other features.

use lasthop_base::Bytes;
use lasthop_experiment::{ConnectionRun, Ended, Events, Experiment, Observe, Run, TrafficMetrics, Value};
use lasthop_scenario::Scenario;

const EVERYTHING: Observe<'_> = Observe { trace: true, series: true, delays: false, pcap: None, qlog: false };

/// Four stations that download.
const CELL: &str = r#"
limit = "10 s"

[topology.cell]
stations = 4

[transfer]
size = "unlimited"

[tcp]
ack_every = 1

[wired]
rate = "100 Mbps"
delay = "2 ms"
"#;

/// Datagrams only, except for a byte and its acknowledgement at the end.
const DATAGRAMS: &str = r#"
limit = "1000 s"

[topology.cell]
stations = 3

[transfer]
size = "1 B"
start = "999 s"
from = "ap"
to = "MH1"

[tcp]
profile = "rfc"
handshake = false
close = false
ack_every = 1

[wired]
rate = "100 Mbps"
"#;

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

fn times_of(events: &Events, kind: &str) -> u64 {
    events.event.iter().filter(|event| **event == kind).count() as u64
}

fn counts(values: impl Iterator<Item = Value>) -> Vec<u64> {
    let count = |value| match value {
        Value::Count(count) => Some(count),
        Value::Real(_) | Value::Truth(_) => None,
    };
    values.filter_map(count).collect()
}

/// All results of a connection, as text because NaN differs from itself.
fn all_of(each: &ConnectionRun) -> String {
    format!("{:?} {:?}", each.metrics, each.parts)
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "found {found}, expected {expected}");
}

/// Asserts that `hits` of `trials` fit a probability: within 4.5 standard deviations, which a correct program
/// misses in 7 of a million cases.
#[track_caller]
fn assert_share(hits: u64, trials: u64, probability: f64) {
    let (n, hits) = (trials as f64, hits as f64);
    let deviation = (n * probability * (1.0 - probability)).sqrt();
    assert!((hits - n * probability).abs() <= 4.5 * deviation, "{hits} of {n}, expected {probability}");
}

fn datagrams(from: &str, to: &str, size: u32, rate: &str) -> String {
    format!(
        "{{from=\"{from}\", to=\"{to}\", packet_size=\"{size} B\", stop=\"990 s\", law={{constant={{rate=\"{rate}\"}}}}}}"
    )
}

/// For each packet of a connection that was acknowledged by the MAC in one direction, in order: whether it
/// was not dropped above the MAC.
fn outcomes(run: &Run, name: &str, [arrived, lost]: [&str; 2]) -> Vec<bool> {
    let Events { event, reason, .. } = events(connection(run, name));
    let outcomes = event.iter().zip(reason).filter_map(|(event, reason)| match *event {
        event if event == arrived => Some(true),
        event if event == lost && *reason == "corrupted" => Some(false),
        _ => None,
    });
    outcomes.collect()
}

const DOWN: [&str; 2] = ["delivered", "lost"];
const UP: [&str; 2] = ["ack-received", "ack-lost"];

#[track_caller]
fn assert_begin_alike(one: &[bool], other: &[bool]) {
    let both = one.len().min(other.len());
    assert!(both > 200 && one[..both].iter().filter(|arrived| !**arrived).count() > 5, "{both} to compare");
    assert!(one[..both] == other[..both]);
}

/// Every loss is in the events of its connection, and in the counter of its reason.
#[test]
fn losses_are_counted_where_they_happen() {
    let lossy = [
        "cell.queue=8 packets",
        "cell.short_retry_limit=2",
        "cell.channel.frame-loss.loss=0.2",
        "link.ap-MH2.drop={down=0.05}",
        "link.ap-MH3.drop={up=0.05}",
        "link.ap-MH4.channel=perfect",
    ];
    let (mut full, mut discarded) = (0, 0);
    for number in 0..5 {
        let result = read(CELL, &lossy).run("basic", 1, number, EVERYTHING).unwrap();
        for each in &result.connections {
            let Events { event, reason, .. } = events(each);
            let lost = |why: &str| reason.iter().filter(|reason| **reason == why).count() as u64;
            assert_eq!(lost("queue-full"), each.metrics.queue_drops);
            assert_eq!(lost("corrupted"), each.metrics.lost_on_air);
            assert_eq!(lost("attempts-exhausted"), each.metrics.link_discards);
            let corrupted = |kind| {
                let both = event.iter().zip(reason);
                both.filter(|(event, why)| **event == kind && **why == "corrupted").count() > 0
            };
            let expected = match each.name.as_str() {
                "2" => (true, false),
                "3" => (false, true),
                _ => (false, false),
            };
            assert_eq!((corrupted("lost"), corrupted("ack-lost")), expected, "{}", each.name);
            full += each.metrics.queue_drops;
            discarded += each.metrics.link_discards;
        }
        let all = &result.metrics;
        assert!(all.network.collisions > 0 && all.network.link_failures > 2 * all.network.collisions);
        assert_eq!(all.network.link_bits, 0, "bits of cells are not counted");
        assert!(all.network.busy_time_s > 5.0 && all.network.busy_time_s < 10.0);
    }
    assert!(full > 100 && discarded > 100, "{full} and {discarded}");
}

/// By hand: 1500 B take 1310 µs at 11 Mb/s, 41 B and 40 B 248 µs, an ACK frame 304 µs; a single sender has no
/// collisions.
#[test]
fn busy_time_counts_frames_on_the_air() {
    let down = format!("traffic.down={}", datagrams("server", "MH1", 1500, "120 kbps"));
    let last = 248e-6 + 248e-6 + 2.0 * 304e-6;
    for loss in ["0", "0.3"] {
        let channel = format!("cell.channel.frame-loss.loss={loss}");
        let patient = "cell.short_retry_limit=unlimited";
        let result = run(&read(DATAGRAMS, &[&down, &channel, patient]), "basic");
        let (network, sent) = (&result.metrics.network, traffic(&result, "down").sent_packets);
        assert_eq!((sent, traffic(&result, "down").delivered_packets), (9_900, 9_900));
        assert_eq!(network.link_attempts - network.link_failures, sent + 2);
        assert_eq!(network.collisions, 0);
        let shorter = if loss == "0" {
            0.0
        } else {
            assert_share(network.link_failures, network.link_attempts, 0.3);
            // Either of the short frames may be among those that fail.
            10.0 * 1310e-6
        };
        let expected = (sent + network.link_failures) as f64 * 1310e-6 + sent as f64 * 304e-6 + last;
        assert!((network.busy_time_s - expected).abs() <= shorter + 1e-6, "{}", network.busy_time_s);
    }
}

/// With two senders every collision involves both, and RTS/CTS adds the air time of its frames.
#[test]
fn collisions_and_rts_are_counted() {
    let both = [
        format!("traffic.down={}", datagrams("ap", "MH1", 1500, "8 Mbps")),
        format!("traffic.up={}", datagrams("MH1", "ap", 1500, "8 Mbps")),
    ];
    let queues = ["cell.queue=5 packets", "cell.station_queue=5 packets", "limit=20 s", "transfer.start=0 s"];
    let result = run(&read(DATAGRAMS, &[&queues[..], &[&both[0], &both[1]]].concat()), "basic");
    // A run ends with its transfer; this one overlaps the others.
    assert_eq!(result.ended, Ended::Finished);
    let unlimited = ["transfer.size=unlimited", "tcp.window=1 packet", "limit=20 s", "transfer.start=0 s"];
    let overrides = [&unlimited[..], &queues[..2], &[&both[0], &both[1]]].concat();
    let result = run(&read(DATAGRAMS, &overrides), "basic");
    let network = &result.metrics.network;
    assert!(network.collisions > 100);
    assert_eq!(network.link_failures, 2 * network.collisions);

    // By hand: RTS 352 µs, CTS and ACK 304 µs each, data 1310 µs. A data frame is 36 B longer than its
    // packet.
    let down = format!("traffic.down={}", datagrams("server", "MH1", 1500, "120 kbps"));
    for (threshold, each) in [("1536 B", 1614e-6), ("1535 B", 2270e-6)] {
        let threshold = format!("cell.rts_threshold={threshold}");
        let result = run(&read(DATAGRAMS, &[&down, &threshold]), "basic");
        assert_close(result.metrics.network.busy_time_s, 9_900.0 * each + 2.0 * (248e-6 + 304e-6));
    }
}

/// A single packet is sent immediately. By hand: its data frame is 36 B longer than the 1500 B packet; OFDM sends
/// 216 bits per symbol of 4 µs at 54 Mb/s, after 20 µs and before another 6 with 802.11g.
#[test]
fn each_physical_layer_has_its_air_time() {
    for (phy, us) in [
        ("cell.phy.dsss={}", 1310.0),
        ("cell.phy.dsss={data_rate=\"1 Mbps\"}", 192.0 + 12_288.0),
        ("cell.phy.dsss={preamble=\"short\"}", 1214.0),
        ("cell.phy.ofdm={}", 20.0 + 4.0 * 57.0),
        ("cell.phy.ofdm={band=\"two-ghz\"}", 26.0 + 4.0 * 57.0),
    ] {
        let result =
            run(&read(DATAGRAMS, &["transfer={size=\"1460 B\", from=\"ap\", to=\"MH2\"}", phy]), "basic");
        assert_close(result.metrics.connections.completion_time_s.unwrap(), us * 1e-6);
    }
}

/// Losses above the MAC occur in one direction of one station, and are not failed attempts.
#[test]
fn drop_rates_apply_per_station_and_direction() {
    let flows: Vec<String> = ["MH1", "MH2", "MH3"]
        .into_iter()
        .flat_map(|station| {
            [
                format!("traffic.to_{station}={}", datagrams("server", station, 500, "40 kbps")),
                format!("traffic.from_{station}={}", datagrams(station, "server", 500, "40 kbps")),
            ]
        })
        .collect();
    let drops =
        ["cell.drop={up=0.02}", "link.ap-MH1.drop={down=0.1}", "link.ap-MH2.drop={down=0.03, up=0.2}"];
    let overrides: Vec<&str> = flows.iter().map(String::as_str).chain(drops).collect();
    let result = run(&read(DATAGRAMS, &overrides), "basic");
    for (name, probability) in [
        ("to_MH1", 0.1),
        ("from_MH1", 0.0),
        ("to_MH2", 0.03),
        ("from_MH2", 0.2),
        ("to_MH3", 0.0),
        ("from_MH3", 0.02),
    ] {
        let each = traffic(&result, name);
        assert_eq!(each.sent_packets, 9_900);
        assert_share(each.lost_packets, each.sent_packets, probability);
    }
    let network = &result.metrics.network;
    assert_eq!(network.link_attempts - network.link_failures, 6 * 9_900 + 2, "each was acknowledged");
}

/// With one attempt per packet, every frame lost on a station's channel is a lost packet.
#[test]
fn each_station_has_its_own_channel() {
    let flows = [1, 2, 3]
        .map(|n| format!("traffic.to_MH{n}={}", datagrams("server", &format!("MH{n}"), 500, "40 kbps")));
    let channels = ["cell.channel.frame-loss.loss=0.05", "link.ap-MH2.channel.iid.ber=1e-4"];
    let overrides: Vec<&str> =
        flows.iter().map(String::as_str).chain(channels).chain(["cell.short_retry_limit=1"]).collect();
    let result = run(&read(DATAGRAMS, &overrides), "basic");
    // Including the 36 B of the data frame.
    let of_bits = 1.0 - (1.0f64 - 1e-4).powi(536 * 8);
    for (name, probability) in [("to_MH1", 0.05), ("to_MH2", of_bits), ("to_MH3", 0.05)] {
        assert_share(traffic(&result, name).lost_packets, 9_900, probability);
    }
}

/// The random number that decides a drop is drawn per station, direction and packet: it is independent of
/// scheme, TCP, physical layer and other stations.
#[test]
fn drops_are_drawn_per_station_direction_and_packet() {
    // Without delay beyond the cell, deliveries and drops are recorded in the order of transmission.
    let lossy = ["cell.drop={down=0.05, up=0.05}", "limit=20 s", "wired.delay=0 s"];
    let fate_of = |name: &str, scheme: &str, more: &[&str]| {
        let result = run(&read(CELL, &[&lossy, more].concat()), scheme);
        [DOWN, UP].map(|way| outcomes(&result, name, way))
    };
    for name in ["1", "3"] {
        let expected = fate_of(name, "basic", &[]);
        for (scheme, more) in [
            ("ebsn", &[][..]),
            ("basic", &["tcp.flavour=sack"]),
            ("basic", &["cell.phy.ofdm={}"]),
            ("basic", &["cell.rts_threshold=0 B", "cell.channel.frame-loss.loss=0.1"]),
            ("basic", &["cell.shared_queue=true"]),
            ("basic", &["topology.cell.stations=7"]),
            ("basic", &["topology.cell.stations=3"]),
        ] {
            for (found, expected) in fate_of(name, scheme, more).iter().zip(&expected) {
                assert_begin_alike(found, expected);
            }
        }
    }
    let [one, other] = ["1", "2"].map(|name| fate_of(name, "basic", &[]));
    assert_ne!(one[0][..100], other[0][..100], "each station has numbers of its own");
    assert_ne!(one[0][..100], one[1][..100], "each way has numbers of its own");
}

/// A silent station has no effect, and neither has the order of stations.
#[test]
fn a_silent_station_changes_nothing() {
    let lossy = ["link.ap-MH1.drop={down=0.01}", "cell.channel.frame-loss.loss=0.05"];
    let alone = "connection.x={from=\"server\", to=\"MH1\"}";
    let of = |stations: &str| run(&read(CELL, &[&lossy[..], &[alone, stations]].concat()), "basic");
    let [few, many] = ["topology.cell.stations=1", "topology.cell.stations=9"].map(of);
    assert!(few.connections[0].metrics.lost_on_air > 0);
    assert!(all_of(&few.connections[0]) == all_of(&many.connections[0]));

    let ordered = |cell: &str| {
        let graph = format!("topology.graph={{wired=[\"server-ap\"], cell={cell}}}");
        let ends =
            ["connection.x={from=\"server\", to=\"MH1\"}", "connection.y={from=\"MH2\", to=\"server\"}"];
        let overrides = [&lossy[..], &ends, &["cell.shared_queue=true", &graph]].concat();
        run(&read(CELL, &overrides), "basic")
    };
    let [one, other] = ["[\"ap-MH1\", \"ap-MH2\"]", "[\"ap-MH2\", \"ap-MH1\"]"].map(ordered);
    for (one, other) in one.connections.iter().zip(&other.connections) {
        assert!(all_of(one) == all_of(other), "{}", one.name);
    }
}

/// By hand: of 10 simultaneous packets the MAC takes the first, the others are queued.
#[test]
fn queue_limits_are_respected() {
    let lost = |overrides: &[&str]| {
        let burst = ["tcp.profile=rfc", "tcp.handshake=false", "transfer.size=100 KB", "limit=1 ms"];
        let result = run(&read(CELL, &[&burst, overrides].concat()), "basic");
        result.connections.iter().map(|each| each.metrics.queue_drops).collect::<Vec<_>>()
    };
    let (a, b) = ("connection.a={from=\"ap\", to=\"MH1\"}", "connection.b={from=\"ap\", to=\"MH2\"}");
    let (queue, shared) = ("cell.queue=3 packets", "cell.shared_queue=true");
    assert_eq!(lost(&[a, queue]), [6]);
    assert_eq!(lost(&[a, b, queue]), [6, 7]);
    assert_eq!(lost(&[a, b, queue, shared]), [6, 10]);
    assert_eq!(lost(&[a, b]), [0, 0]);
    let up = "connection.a={from=\"MH1\", to=\"server\"}";
    assert_eq!(lost(&[up, queue]), [0], "it is the access point's");
    assert_eq!(lost(&[up, "cell.station_queue=4500 B"]), [6]);
    assert_eq!(lost(&[a, "cell.station_queue=3 packets"]), [0]);
}

/// A station above its share starves others in a shared queue, and only itself in separate queues.
#[test]
fn a_greedy_station_starves_others_in_a_shared_queue_only() {
    let flows = [
        format!("traffic.modest={}", datagrams("server", "MH1", 1500, "1 Mbps")),
        format!("traffic.greedy={}", datagrams("server", "MH2", 1500, "20 Mbps")),
    ];
    let of = |shared: &str| {
        let queue =
            ["cell.queue=20 packets", shared, "limit=20 s", "transfer.size=unlimited", "transfer.start=0 s"];
        let result = run(
            &read(DATAGRAMS, &[&queue[..], &["tcp.window=1 packet", &flows[0], &flows[1]]].concat()),
            "basic",
        );
        ["modest", "greedy"].map(|name| traffic(&result, name).clone())
    };
    let [modest, greedy] = of("cell.shared_queue=false");
    assert!(modest.lost_packets == 0 && greedy.lost_packets > greedy.sent_packets / 2);
    let [modest, greedy] = of("cell.shared_queue=true");
    assert!(modest.lost_packets > modest.sent_packets / 2, "{modest:?}");
    assert!(greedy.lost_packets > greedy.sent_packets / 2);
}

/// Two cells whose access points are connected by a wire; a router and a laptop behind one of the stations.
const CELLS: &str = r#"
limit = "60 s"

[topology.graph]
wired = ["server-ap1", "ap1-ap2", "van-router", "router-laptop"]
cell = ["ap1-phone", "ap1-van", "ap2-tablet", "ap2-watch"]

[transfer]
size = "200 KB"

[wired]
rate = "100 Mbps"
delay = "1 ms"

[connection.over]
from = "phone"
to = "tablet"

[connection.behind]
from = "server"
to = "laptop"

[connection.inside]
from = "phone"
to = "laptop"

[connection.back]
from = "laptop"
to = "watch"
"#;

#[test]
fn paths_may_cross_two_cells_and_stations() {
    let drop = |link: &str| format!("link.{link}.drop={{down=0.1, up=0.1}}");
    let of = |overrides: &[&str], scheme: &str| run(&read(CELLS, overrides), scheme);
    let sound = of(&[], "basic");
    assert_eq!(sound.ended, Ended::Finished);
    assert_eq!(sound.metrics.connections.lost_on_air, 0);
    for (link, hit) in [
        ("ap1-phone", ["over", "inside"].as_slice()),
        ("ap1-van", &["behind", "inside", "back"]),
        ("ap2-tablet", &["over"]),
        ("ap2-watch", &["back"]),
    ] {
        let result = of(&[&drop(link)], "basic");
        for each in &result.connections {
            let expected = hit.contains(&each.name.as_str());
            assert_eq!(each.metrics.lost_on_air > 0, expected, "{} over {link}", each.name);
        }
    }
    // Both access points split connections across both cells, and none within one cell.
    let split = of(&[&drop("ap1-phone"), &drop("ap2-watch")], "i-tcp");
    let ways = |name: &str| {
        let parts = connection(&split, name).parts.iter();
        parts.map(|part| format!("{}-{}", part.from, part.to)).collect::<Vec<_>>()
    };
    assert_eq!(ways("over"), ["phone-ap1", "ap1-ap2", "ap2-tablet"]);
    assert_eq!(ways("behind"), ["server-ap1", "ap1-laptop"]);
    assert_eq!(ways("inside"), ["phone-laptop"]);
    assert_eq!(ways("back"), ["laptop-ap1", "ap1-ap2", "ap2-watch"]);
    assert!(split.connections.iter().all(|each| each.metrics.finished));
    // Losses in a cell occur on the part that crosses it.
    for (link, place) in [("ap1-phone", 0), ("ap2-tablet", 2)] {
        let result = of(&[&drop(link)], "i-tcp");
        for (index, part) in connection(&result, "over").parts.iter().enumerate() {
            let lost = part.events.as_ref().unwrap().event.contains(&"lost");
            assert_eq!(lost, index == place, "part {index} over {link}");
        }
    }
}

/// Datagrams from a host behind a station may enter the cell by another path, since nothing returns.
#[test]
fn datagrams_may_take_asymmetric_paths() {
    let text = "limit = '5 s'\n[topology.graph]\nwired = ['server-ap', 'MH1-laptop', 'ap-laptop']\n\
        cell = ['ap-MH1', 'ap-MH2']\n[wired]\nrate = '100 Mbps'\n[transfer]\nsize = '100 KB'\n\
        from = 'server'\nto = 'laptop'\n[connection.x]\nvia = ['ap', 'MH1']\n";
    let other = "from=\"laptop\", to=\"MH2\", via=[\"ap\"]";
    let datagrams =
        format!("traffic.y={{{other}, packet_size=\"500 B\", law={{constant={{rate=\"40 kbps\"}}}}}}");
    let result = run(&read(text, &[&datagrams]), "ebsn");
    assert_eq!(result.ended, Ended::Finished);
    assert!(traffic(&result, "y").delivered_packets > 0);
    let connection = format!("connection.y={{{other}}}");
    let error = Scenario::parse(text, "test.toml", &[connection]).unwrap_err().to_string();
    assert!(error.contains("the cell of ap would have to send packets for laptop"), "{error}");
}

/// Independent media do not affect each other.
#[test]
fn an_independent_cell_changes_nothing() {
    let text = |graph: &str, connections: &str| {
        format!(
            "limit = '10 s'\n[topology.graph]\n{graph}\n[wired]\nrate = '100 Mbps'\n[cell]\n\
             channel.frame-loss.loss = 0.1\ndrop = {{ down = 0.01, up = 0.01 }}\n[transfer]\nsize = 'unlimited'\n\
             {connections}"
        )
    };
    let one = "[connection.a]\nfrom = 's1'\nto = 'm1'\n";
    let two = "[connection.b]\nfrom = 's2'\nto = 'm2'\n";
    let alone = run(&read(&text("wired = ['s1-ap1']\ncell = ['ap1-m1']", one), &[]), "basic");
    let graph = "wired = ['s2-ap2', 's1-ap1']\ncell = ['ap2-m2', 'ap1-m1']";
    let together = run(&read(&text(graph, &[one, two].concat()), &[]), "basic");
    assert!(alone.connections[0].metrics.lost_on_air > 0);
    assert!(all_of(connection(&together, "a")) == all_of(&alone.connections[0]));
    assert_ne!(connection(&together, "b").metrics, alone.connections[0].metrics);
    let network = &together.metrics.network;
    assert!(network.busy_time_s > 1.5 * alone.metrics.network.busy_time_s, "it is the sum over both");
}

/// A node in two cells has a random stream in each: as a station of both, or as access point of one.
#[test]
fn a_node_in_two_cells_has_independent_backoffs() {
    let text = "limit = '5 s'\n[topology.graph]\nwired = ['s-p', 's-q']\ncell = ['p-m', 'q-m', 'p-q']\n\
        [wired]\nrate = '100 Mbps'\n[cell]\nqueue = '5 packets'\nstation_queue = '5 packets'\n\
        [transfer]\nsize = 'unlimited'\nfrom = 's'\nto = 'm'\n";
    let result = run(
        &read(text, &["cell.drop.down=0.2", "connection.a.via=[\"p\"]", "connection.b.via=[\"q\"]"]),
        "basic",
    );
    let [one, other] = ["a", "b"].map(|name| outcomes(&result, name, DOWN)[..15].to_vec());
    assert_ne!(one, other);
    // One sender in each of two cells: waiting times depend on backoffs only.
    for (one, other) in [(["q", "m"], ["q", "p"]), (["q", "m"], ["p", "m"])] {
        let traffic_of = |name: &str, [from, to]: [&str; 2]| {
            let law = "law={constant={rate=\"9 Mbps\"}}";
            format!("traffic.{name}={{from=\"{from}\", to=\"{to}\", packet_size=\"1500 B\", {law}}}")
        };
        let (one, other) = (traffic_of("one", one), traffic_of("other", other));
        let late = ["transfer.start=4999 ms", "connection.a.via=[\"q\"]"];
        let result = run(&read(text, &[late[0], late[1], &one, &other]), "basic");
        assert!(traffic(&result, "one").delivered_packets > 1_000);
        assert_ne!(traffic(&result, "one").mean_delay_s, traffic(&result, "other").mean_delay_s);
    }
}

#[test]
fn the_warm_up_is_subtracted_from_counters() {
    let lossy = ["cell.queue=10 packets", "cell.channel.frame-loss.loss=0.1", "cell.drop.up=0.02"];
    for warmup in ["1.3 s", "2 s", "2.777777777 s"] {
        let with = |overrides: &[&str]| run(&read(CELL, &[&lossy, overrides].concat()), "ebsn");
        let before = with(&[&format!("limit={warmup}")]);
        let after = with(&["limit=5 s"]);
        let found = with(&["limit=5 s", &format!("warmup={warmup}")]);
        let [before_counts, after_counts, found_counts] =
            [&before, &after, &found].map(|run| counts(run.metrics.values()));
        let difference = after_counts.iter().zip(&before_counts).map(|(after, before)| after - before);
        assert_eq!(found_counts, difference.collect::<Vec<_>>(), "{warmup}");
        let busy = |run: &Run| run.metrics.network.busy_time_s;
        assert!(found.metrics.network.collisions > 0);
        assert!((busy(&found) - (busy(&after) - busy(&before))).abs() < 1e-6);
    }
}

/// The agent at an access point is notified of its failed attempts to every station, and notifies the
/// packet's source.
#[test]
fn an_agent_is_notified_of_attempts_to_all_stations() {
    let lossy = ["link.ap-MH2.channel.frame-loss.loss=0.3", "link.ap-MH4.channel.frame-loss.loss=0.3"];
    for scheme in ["ebsn", "source-quench"] {
        let result = run(&read(CELL, &lossy), scheme);
        let notices = |name: &str| {
            let each = connection(&result, name);
            assert_eq!(each.metrics.notices, times_of(events(each), "notice-received"));
            each.metrics.notices as f64 / each.metrics.segments_sent as f64
        };
        let [one, two, three, four] = ["1", "2", "3", "4"].map(notices);
        // Attempts of the others fail by collisions only.
        assert!(two.min(four) > 2.0 * one.max(three) && one.min(three) > 0.0, "{scheme}");
    }
    let basic = run(&read(CELL, &lossy), "basic");
    assert_eq!(basic.metrics.connections.notices, 0);
    // Alone: one notice per failed attempt, and none for losses above the MAC.
    let alone = ["topology.cell.stations=1", "connection.1.to=ap", "connection.1.from=MH1"];
    let up = run(&read(CELL, &[&alone[..], &["cell.channel.frame-loss.loss=0.3"]].concat()), "ebsn");
    assert!(up.metrics.network.link_failures > 0);
    let drops =
        ["topology.cell.stations=1", "cell.drop.down=0.1", "transfer.size=50 KB", "tcp.window=1 packet"];
    let dropped = run(&read(CELL, &drops), "ebsn");
    assert!(dropped.metrics.connections.lost_on_air > 0);
    assert!(dropped.metrics.connections.notices <= dropped.metrics.network.collisions);
}

/// An access point keeps the split connections of several stations apart.
#[test]
fn split_connections_of_several_stations_are_independent() {
    let size = [
        "transfer.size=150 KB",
        "tcp.close=true",
        "limit=10 min",
        "connection.3={from=\"MH3\", to=\"server\"}",
    ];
    let lossy =
        ["cell.drop={down=0.05, up=0.05}", "cell.channel.frame-loss.loss=0.1", "cell.short_retry_limit=3"];
    for scheme in ["i-tcp", "metp", "vs-tcp"] {
        let result = run(&read(CELL, &[&size[..], &lossy].concat()), scheme);
        assert_eq!((result.ended, result.connections.len()), (Ended::Finished, 4), "{scheme}");
        for ConnectionRun { name, metrics, parts } in &result.connections {
            assert_eq!((metrics.delivered_bytes, metrics.finished, metrics.aborted), (150_000, true, false));
            assert_eq!((metrics.relay_held_bytes, metrics.acknowledged_undelivered_bytes), (0, 0));
            assert!(metrics.relay_payload_bytes >= 150_000, "{scheme} {name}");
            assert!(metrics.lost_on_air > 0, "{scheme} {name}");
            let ways: Vec<_> = parts.iter().map(|part| format!("{}-{}", part.from, part.to)).collect();
            let expected = match name.as_str() {
                "3" => ["MH3-ap".to_owned(), "ap-server".to_owned()],
                _ => ["server-ap".to_owned(), format!("ap-MH{name}")],
            };
            assert_eq!(ways, expected, "{scheme}");
            // All losses are on the wireless part.
            let lost = parts.iter().map(|part| {
                let Events { event, .. } = part.events.as_ref().unwrap();
                event.iter().filter(|event| **event == "lost").count()
            });
            let lost: Vec<usize> = lost.collect();
            let wired = if name == "3" { 1 } else { 0 };
            assert!(lost[wired] == 0 && lost[1 - wired] > 0, "{scheme} {name}: {lost:?}");
        }
    }
}

/// A closed form for packets whose data frame is sent once, compared with runs without other senders.
#[test]
fn packet_loss_matches_the_data_frame_closed_form() {
    let of = |channel: &str| {
        lasthop_predict::packet_loss(&read(CELL, &[&format!("cell.channel={channel}")]), Bytes(552), None)
    };
    assert_close(of("{frame-loss={loss=0.07}}").unwrap(), 0.07);
    assert_close(of("{iid={ber=1e-4}}").unwrap(), 1.0 - (1.0f64 - 1e-4).powi(588 * 8));
    let own = read(
        CELL,
        &[
            "link.ap-MH3.channel.frame-loss.loss=0.2",
            "cell.drop.down=0.5",
            "link.ap-MH1.drop.up=0.1",
            "connection.1={from=\"MH1\", to=\"server\"}",
        ],
    );
    assert_close(lasthop_predict::packet_loss(&own, Bytes(552), Some("ap-MH3")).unwrap(), 1.0 - 0.8 * 0.5);
    assert_close(lasthop_predict::packet_loss(&own, Bytes(552), Some("ap-MH2")).unwrap(), 0.5);
    // Data in the uplink direction.
    assert_close(lasthop_predict::packet_loss(&own, Bytes(552), Some("ap-MH1")).unwrap(), 0.1);
    let error = lasthop_predict::packet_loss(&own, Bytes(552), Some("ap-MH5")).unwrap_err().to_string();
    assert!(error.contains("found the link \"ap-MH5\", expected \"ap-MH1\", \"ap-MH2\""), "{error}");

    let poisson = datagrams("server", "MH1", 552, "40 kbps").replace("constant", "poisson");
    for (phy, good, bad) in [
        ("dsss={data_rate=\"1 Mbps\"}", "9 ms", "3 ms"),
        ("dsss={}", "2 ms", "500 us"),
        ("ofdm={data_rate=\"6 Mbps\", control_rate=\"6 Mbps\", band=\"two-ghz\"}", "3 ms", "400 us"),
    ] {
        let phy = format!("cell.phy={{{phy}}}");
        let channel = format!(
            "cell.channel={{two-state={{good=\"{good}\", bad=\"{bad}\", good_ber=1e-6, bad_ber=1.0}}}}"
        );
        let traffic = format!("traffic.probe={poisson}");
        let scenario = read(DATAGRAMS, &[&phy, &channel, &traffic, "cell.short_retry_limit=1"]);
        let network = run(&scenario, "basic").metrics.network;
        let expected = lasthop_predict::packet_loss(&scenario, Bytes(552), None).unwrap();
        assert!((0.1..0.9).contains(&expected), "{expected}");
        // Frames are spaced widely enough to be independent: 110 ms on average, with states of a few ms.
        assert_share(network.link_failures, network.link_attempts, expected);
    }
}

#[test]
fn the_canonical_form_contains_the_cell() {
    let plain = read(CELL, &[]);
    let stated = read(CELL, &["cell.phy.dsss.data_rate=11 Mbps", "cell.drop={}"]);
    assert_eq!((plain.to_toml(), plain.hash()), (stated.to_toml(), stated.hash()));
    for line in ["[cell]", "short_retry_limit = 7", "control_rate = \"1 Mbps\"", "shared_queue = false"] {
        assert!(plain.to_toml().contains(line), "{line}");
    }
    let again = Scenario::parse::<&str>(&plain.to_toml(), "test.toml", &[]).unwrap();
    assert_eq!(again, plain);
    assert!(!read(CELL, &["topology=last-hop", "radio.rate=1 Mbps"]).to_toml().contains("[cell"));
}

/// The receiver sees which packets a cell drops above the MAC, at either end and for its own station only, so that ELN
/// marks their requests.
#[test]
fn receivers_see_the_packets_dropped_above_the_mac() {
    let of = |overrides: &[&str]| {
        let mut all = vec!["transfer.size=500 kB", "tcp.flavour=reno"];
        all.extend(overrides);
        let run = run(&read(CELL, &all), "eln");
        let counted = run.counters.iter().map(|each| (each.to_string(), each.value));
        let counted: std::collections::BTreeMap<String, u64> = counted.collect();
        let corrupted: Vec<u64> = run.connections.iter().map(|each| times_of(events(each), "lost")).collect();
        (corrupted, counted["eln.corrupted_segments"], counted["eln.marked_acks"])
    };
    let (lost, corrupted, marked) = of(&["link.ap-MH2.drop={down=0.05, up=0.0}"]);
    assert!(lost[1] > 0 && lost.iter().sum::<u64>() == lost[1], "{lost:?}");
    assert!(corrupted == lost[1] && marked > 0, "{corrupted} of {lost:?}, {marked} marks");
    // Acknowledgements are no data.
    let (_, corrupted, marked) = of(&["cell.drop={down=0.0, up=0.05}"]);
    assert_eq!((corrupted, marked), (0, 0));
}
