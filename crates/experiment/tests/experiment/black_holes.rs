//! Path-MTU black holes: what senders do where large packets vanish without a message.

use lasthop_base::Bytes;
use lasthop_experiment::{ConnectionMetrics, Experiment, Observe};
use lasthop_scenario::Scenario;
use lasthop_scenario::network::TooLarge;

const SCENARIO: &str = r#"
limit = "30 s"
schemes = ["basic"]
[transfer]
size = "1 MB"
[wired]
rate = "100 Mbps"
delay = "5 ms"
[radio]
rate = "10 Mbps"
delay = "10 ms"
"#;

fn read(overrides: &[&str]) -> Result<Scenario, String> {
    Scenario::parse(SCENARIO, "s.toml", overrides).map_err(|error| error.to_string())
}

fn run(overrides: &[&str]) -> (u64, ConnectionMetrics) {
    let scenario = read(overrides).unwrap_or_else(|error| panic!("{error}"));
    let metrics = scenario.run("basic", 1, 0, Observe::default()).expect("a run").metrics;
    (metrics.connections.link_discards, metrics.connections)
}

/// Packets have 1500 B. SYN and ACKs pass; no segment does. With black-hole detection, the timeout after three seconds
/// sends 1024 B, and so does all that follows: 1 MB in 977 segments.
#[test]
fn a_sender_goes_on_only_with_shorter_segments() {
    for link in ["wired", "radio", "link.fixed-base", "link.base-mobile"] {
        let hole = |bytes: u64| format!("{link}.black_hole={bytes} B");
        let (discards, lost) = run(&[&hole(1499)]);
        assert_eq!((lost.completion_time_s, lost.delivered_bytes), (None, 0), "{link}");
        assert!(discards > 10, "{link}: {discards}");
        let (discards, probing) = run(&[&hole(1499), "tcp.mtu_probing=true"]);
        let time_s = probing.completion_time_s.unwrap_or_else(|| panic!("{link}: {probing:?}"));
        assert!((3.0..8.0).contains(&time_s) && discards > 10, "{link}: {time_s} s, {discards}");
        assert!(probing.timeouts >= Some(4), "{link}: {:?}", probing.timeouts);
        let (discards, whole) = run(&[&hole(1500)]);
        assert!(whole.completion_time_s.is_some_and(|s| s < 2.0) && discards == 0, "{link}: {whole:?}");
    }
    // A packet of 1,076 B carries 1,024 B; below that the next timeouts halve it.
    assert!(run(&["wired.black_hole=1076 B", "tcp.mtu_probing=true"]).1.completion_time_s < Some(8.0));
    let halved = run(&["wired.black_hole=1075 B", "tcp.mtu_probing=true"]).1.completion_time_s;
    assert!(halved > Some(8.0), "{halved:?}");
}

/// Only the direction in which large packets go has to carry them.
#[test]
fn the_uplink_has_a_black_hole_of_its_own() {
    let (discards, download) = run(&["radio.uplink.black_hole=100 B"]);
    assert!(discards == 0 && download.completion_time_s < Some(2.0), "{download:?}");
    let lost = read(&["radio.black_hole=1400 B"]).expect("a scenario").lost_in_black_hole();
    assert_eq!(lost.map(|found| [found.packet, found.largest].map(|size| size.0)), Some([1500, 1400]));
    let probing = read(&["radio.black_hole=1400 B", "tcp.mtu_probing=true"]).expect("a scenario");
    assert_eq!(probing.lost_in_black_hole(), None);
    assert_eq!(read(&["radio.black_hole=1500 B"]).expect("a scenario").lost_in_black_hole(), None);
}

/// Each connection counts by its own settings, and the links of its own path.
#[test]
fn black_holes_are_those_of_paths() {
    let lost = |stated: &[&str]| {
        let pairs = [
            "topology.dumbbell.pairs=2",
            "connection.one={ from=\"S1\", to=\"D1\" }",
            "connection.two={ from=\"S2\", to=\"D2\" }",
        ];
        read(&[&pairs[..], stated].concat())
            .expect("a scenario")
            .lost_in_black_hole()
            .map(|found| [found.packet, found.largest].map(|size| size.0))
    };
    let pair = "link.right-D2.black_hole=1000 B";
    assert_eq!(lost(&[pair]), Some([1500, 1000]));
    let [first, second] = ["one", "two"].map(|n| format!("connection.{n}.tcp.mtu_probing=true"));
    assert_eq!(lost(&[pair, &first]), Some([1500, 1000]));
    assert_eq!(lost(&[pair, &second]), None);
    // Data go the other way.
    assert_eq!(lost(&["link.right-D2.uplink.black_hole=1000 B"]), None);
}

/// A SYN passes every path.
#[test]
fn black_holes_below_a_syn_are_refused() {
    for link in ["wired", "radio", "radio.uplink", "link.fixed-base", "link.base-mobile"] {
        let problem = read(&[&format!("{link}.black_hole=51 B")]).expect_err(link);
        assert!(
            problem.contains(&format!("{link}.black_hole: found a size below that of a SYN")),
            "{problem}"
        );
        assert!(read(&[&format!("{link}.black_hole=52 B")]).is_ok(), "{link}");
    }
}

/// QUIC's packets count as TCP's do. Its first datagram has 1228 B, and begins no connection where it vanishes.
#[test]
fn datagrams_of_quic_vanish_as_well() {
    let with = |keys: &[&str]| read(&[&["sender=quinn-cubic"], keys].concat());
    for link in ["wired", "radio", "radio.uplink", "link.fixed-base"] {
        let problem = with(&[&format!("{link}.black_hole=1227 B")]).expect_err(link);
        let expected = format!("{link}.black_hole: found a size below that of the first datagram of QUIC");
        assert!(problem.contains(&expected), "{problem}");
        with(&[&format!("{link}.black_hole=1228 B")]).expect(link);
    }
    let hole = "radio.black_hole=1300 B";
    let found = |keys: &[&str]| with(keys).expect("a scenario").lost_in_black_hole();
    let sizes = TooLarge { packet: Bytes(1500), largest: Bytes(1300), is_quic: true };
    assert_eq!(found(&[hole]), Some(sizes));
    assert_eq!(found(&[hole, "quic.mtu_discovery=true"]), None);
    assert_eq!(found(&[hole, "quic.mtu=1272 B"]), None);
    let fragmented = |keys: &[&str]| with(keys).expect("a scenario").fragmented();
    assert_eq!(fragmented(&["radio.mtu=1300 B"]), Some(sizes));
    assert_eq!(fragmented(&["radio.mtu=1300 B", "quic.mtu=1272 B"]), None);
}

/// A tunnel makes packets longer: by 36 B of headers, and repair packets by a length of 2 B.
#[test]
fn packets_in_a_tunnel_need_more_room() {
    let with = |keys: &[&str]| read(&[&["schemes=[\"packet-fec\"]"], keys].concat());
    let found = |keys: &[&str]| with(keys).expect("a scenario").lost_in_black_hole();
    let sizes = TooLarge { packet: Bytes(1500), largest: Bytes(1462), is_quic: false };
    assert_eq!(found(&["radio.black_hole=1500 B"]), Some(sizes));
    assert_eq!(with(&["radio.mtu=1500 B"]).expect("a scenario").fragmented(), Some(sizes));
    for roomy in ["radio.black_hole=1538 B", "wired.black_hole=1500 B", "link.fixed-base.black_hole=1500 B"] {
        assert_eq!(found(&[roomy]), None, "{roomy}");
    }
    assert_eq!(found(&["radio.black_hole=1500 B", "scheme.packet-fec.directions=up"]), None);
    let policer = |burst: u64| format!("radio.queue.policer={{ rate = \"5 Mbps\", burst = \"{burst} B\" }}");
    let shaper = |burst: u64| {
        format!("radio.rate.token-bucket={{ rate = \"5 Mbps\", burst = \"{burst} B\", peak = \"1 Gbps\" }}")
    };
    for (key, of) in [("radio.queue", &policer as &dyn Fn(u64) -> String), ("radio.rate", &shaper)] {
        let problem = with(&[&of(1537)]).expect_err(key);
        assert!(problem.contains(key) && problem.contains("1538 B"), "{problem}");
        with(&[&of(1538)]).expect(key);
        read(&[&of(1500)]).expect("nothing is added without the tunnel");
    }
}

/// An outage of more than three seconds is taken for a black hole: the segments stay small after it.
#[test]
fn an_outage_is_taken_for_a_black_hole() {
    let outage = "radio.outage={ first = \"1 s\", lasts = \"10 s\" }";
    let long = ["transfer.size=10 MB", outage, "tcp.mtu_probing=true"];
    let taken = |overrides: &[&str]| {
        let scenario = read(overrides).expect("a scenario");
        scenario.taken_for_black_hole().map(|lasts| lasts.as_secs_f64())
    };
    assert_eq!(taken(&long), Some(10.0));
    assert_eq!(taken(&long[..2]), None);
    let fades = |bad: &str| format!("radio.channel.two-state={{ good = \"10 s\", bad = \"{bad}\" }}");
    assert_eq!(taken(&[&fades("2 s"), long[2]]), Some(2.0));
    assert_eq!(taken(&[&fades("900 ms"), long[2]]), None);
    let [probing, usual] = [&long[..], &long[..2]].map(|overrides| run(overrides).1);
    let segments = |metrics: &ConnectionMetrics| metrics.segments_sent;
    assert!(segments(&probing) > 2 * segments(&usual), "{probing:?}, {usual:?}");
}
