//! Mobile hosts that move between base stations.

use lasthop_scenario::{Observe, Run, Scenario, TrafficMetrics};

const EVERYTHING: Observe<'_> = Observe { trace: true, series: true, pcap: None };

fn read(text: &str, overrides: &[&str]) -> Scenario {
    Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario, scheme: &str) -> Run {
    scenario.run(scheme, 1, 0, EVERYTHING).unwrap_or_else(|error| panic!("{error}"))
}

fn traffic<'a>(run: &'a Run, name: &str) -> &'a TrafficMetrics {
    &run.traffic.iter().find(|each| each.0 == name).unwrap_or_else(|| panic!("there is no {name}")).1
}

/// Packets of 500 B every 10 ms in both directions, 4 ms on the air and next to no time on wires. The host is at `BS1`
/// until 5 s.
const PACKETS: &str = r#"
    limit = "10 s"
    [topology.hand-off]
    [traffic.down]
    from = "fixed"
    to = "mobile"
    packet_size = "500 B"
    stop = "9.5 s"
    law.constant.rate = "400 kbps"
    [traffic.up]
    from = "mobile"
    to = "fixed"
    packet_size = "500 B"
    stop = "9.5 s"
    law.constant.rate = "400 kbps"
    [mobility.mobile.moves]
    timetable = [{ at = "5 s", to = "BS2" }]
    [wired]
    rate = "100 Gbps"
    [radio]
    rate = "1 Mbps"
"#;

/// Packets lost downwards and upwards.
fn lost(overrides: &[&str]) -> [u64; 2] {
    let result = run(&read(PACKETS, overrides), "basic");
    let lost = ["down", "up"].map(|name| traffic(&result, name));
    for each in lost {
        assert_eq!((each.sent_packets, each.delivered_packets + each.lost_packets), (950, 950));
    }
    lost.map(|each| each.lost_packets)
}

/// Counted by hand. The host hears of its own moves at once, and what it sends at 5.00 s goes to `BS2`, or during a gap to
/// nobody. Packets for it go to the old base station until the registration at the new one has reached the router.
#[test]
fn packets_to_a_host_that_has_left_are_lost_until_it_is_registered() {
    assert_eq!(lost(&[]), [0, 0]);
    // Those of 5.00, 5.01, ... 5.09 s.
    assert_eq!(lost(&["mobility.mobile.gap=\"95 ms\""]), [10, 10]);
    // The packet of 4.995 s is on the air when the host leaves.
    let spread = "mobility.mobile.moves.timetable=[{ at = \"4.993 s\", to = \"BS2\" }]";
    assert_eq!(lost(&[spread]), [1, 1]);
    assert_eq!(lost(&[spread, "mobility.mobile.gap=\"20 ms\""]), [3, 3]);
    // A registration from BS2 takes 35 ms to the router. Packets enter it at 4.95, 4.96, ... 5.03 s and reach BS1 35 ms
    // later, at 4.985, 4.995, when the first is still in time; the second is on the air until 4.999 s.
    let slow =
        ["wired.delay=\"0 s\"", "link.router-BS1.rate=\"100 Gbps\"", "link.router-BS1.delay=\"35 ms\""];
    let both =
        [&slow[..], &["link.router-BS2.rate=\"100 Gbps\"", "link.router-BS2.delay=\"35 ms\""]].concat();
    // Those that enter the router at 4.97 to 5.03 s: the last before 5.035 s.
    assert_eq!(lost(&both), [7, 0]);
    // With a gap of 20 ms the registration arrives at 5.055 s: two more. What the host sends in the gap is lost.
    assert_eq!(lost(&[&both[..], &["mobility.mobile.gap=\"20 ms\""]].concat()), [9, 2]);
    // If only the old base station is far away, the registration is there at once: those that enter the router at 4.97,
    // 4.98 and 4.99 s; the one of 5.00 s comes after it.
    assert_eq!(lost(&slow), [3, 0]);
}

#[test]
fn a_host_that_never_moves_is_like_a_host_that_cannot() {
    let download = r#"
        [transfer]
        size = "300 KB"
        [wired]
        rate = "10 Mbps"
        delay = "5 ms"
        [radio]
        rate = "2 Mbps"
        queue = "20 packets"
        channel.iid.ber = 1e-6
        [topology.graph]
        wired = ["fixed-router", "router-BS1"]
        radio = ["BS1-mobile"]
        [transfer]
    "#;
    let still = download
        .replace("[transfer]\n        size = \"300 KB\"", "")
        .replace("[transfer]", "[transfer]\n size = \"300 KB\"\n from = \"fixed\"\n to = \"mobile\"");
    let moving =
        still.replace("[topology.graph]", "[topology.hand-off]\n[mobility.mobile.moves]\ntimetable = []");
    let moving: String = moving
        .lines()
        .filter(|line| !line.contains("= [\""))
        .fold(String::new(), |all, line| all + line + "\n");
    for scheme in ["basic", "snoop", "arq"] {
        let [one, other] = [&still, &moving].map(|text| run(&read(text, &[]), scheme));
        assert!(one.metrics.connections.finished);
        assert_eq!(format!("{:?}", one.metrics), format!("{:?}", other.metrics), "{scheme}");
        assert_eq!(format!("{:?}", one.connections), format!("{:?}", other.connections), "{scheme}");
    }
}
