//! Delays of packets, end to end and on each link.

use lasthop_experiment::{Delays, Experiment, Observe, Run};
use lasthop_scenario::Scenario;
use lasthop_testing::scenario_texts::{NETWORK, with};

const OBSERVE: Observe<'_> = Observe { trace: false, series: false, delays: true, pcap: None, qlog: false };

/// Datagrams of 1000 B in both directions, over 8 Mb/s and 2 ms, and over 1 Mb/s and 5 ms.
const DATAGRAMS: &str = r#"schemes = ["basic"]
limit = "1 s"

[wired]
rate = "8 Mbps"
delay = "2 ms"

[radio]
rate = "1 Mbps"
delay = "5 ms"

[traffic.one]
from = "fixed"
to = "mobile"
packet_size = "1000 B"
law.constant.rate = "1 kbps"

[traffic.two]
from = "fixed"
to = "mobile"
packet_size = "1000 B"
law.constant.rate = "1 kbps"
"#;

fn run(text: &str, overrides: &[&str], scheme: &str) -> (Run, Delays) {
    let scenario = Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"));
    let run = scenario.run(scheme, 1, 0, OBSERVE).unwrap_or_else(|error| panic!("{error}"));
    let delays = run.delays.clone().expect("they were recorded");
    (run, delays)
}

/// Flow, path, delay and queueing delay of each row. A link is written with a hyphen, an end-to-end path with
/// `>`.
fn rows(delays: &Delays) -> Vec<(String, String, f64, f64)> {
    let way = |index: usize| {
        let way = &delays.ways[delays.way[index] as usize];
        [way.from.as_str(), if way.is_link { "-" } else { ">" }, way.to.as_str()].concat()
    };
    let flow = |index: usize| delays.flows[delays.flow[index] as usize].clone();
    (0..delays.time_s.len())
        .map(|index| (flow(index), way(index), delays.delay_s[index], delays.queueing_s[index]))
        .collect()
}

fn assert_rows(found: &[(String, String, f64, f64)], expected: &[(&str, &str, f64, f64)]) {
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!((found.0.as_str(), found.1.as_str()), (expected.0, expected.1));
        assert!((found.2 - expected.2).abs() < 1e-12, "{found:?} {expected:?}");
        assert!((found.3 - expected.3).abs() < 1e-12 || found.3.is_nan() && expected.3.is_nan(), "{found:?}");
    }
}

/// By hand: a packet takes 3 ms on the first link and 13 ms on the second. The second packet waits 1 ms for
/// the first, and 7 ms at the base station.
#[test]
fn packets_wait_for_those_before_them() {
    let (_, delays) = run(DATAGRAMS, &[], "basic");
    let end_to_end = f64::NAN;
    assert_rows(
        &rows(&delays),
        &[
            ("one", "fixed-base", 0.003, 0.0),
            ("two", "fixed-base", 0.004, 0.001),
            ("one", "base-mobile", 0.013, 0.0),
            ("one", "fixed>mobile", 0.016, end_to_end),
            ("two", "base-mobile", 0.020, 0.007),
            ("two", "fixed>mobile", 0.024, end_to_end),
        ],
    );
}

/// Fragments of half the size with the same coding take the same time. A varying rate has no minimum delay.
#[test]
fn the_delay_of_an_idle_link_counts_fragments_and_expansion() {
    let (_, delays) =
        run(DATAGRAMS, &["radio.mtu=500 B", "radio.expansion=1.5", "traffic.two.start=500 ms"], "basic");
    assert!(rows(&delays).iter().all(|row| row.3 == 0.0 || row.3.is_nan()), "{delays:?}");
    let varying = ["radio.rate.lognormal={median=\"1 Mbps\", sigma=0.5, slot=\"1 s\"}"];
    let (_, delays) = run(DATAGRAMS, &varying, "basic");
    let on_air = rows(&delays).into_iter().filter(|row| row.1 == "base-mobile").collect::<Vec<_>>();
    assert!(on_air.len() == 2 && on_air.iter().all(|row| row.2 > 0.005 && row.3.is_nan()), "{on_air:?}");
}

/// Over a lossy link with ARQ, the delays of a packet on the links add up to its end-to-end delay.
#[test]
fn delays_of_links_add_up() {
    let overrides = [
        "traffic.one.law.poisson.rate=600 kbps",
        "traffic.two.stop=1 ms",
        "limit=20 s",
        "radio.channel.frame-loss.loss=20%",
        "radio.arq.selective-repeat={retransmissions=\"unlimited\"}",
        "schemes=[\"local-recovery\"]",
    ];
    let (run, delays) = run(DATAGRAMS, &overrides, "local-recovery");
    let rows = rows(&delays);
    let sum =
        |way: &str| rows.iter().filter(|row| row.0 == "one" && row.1 == way).map(|row| row.2).sum::<f64>();
    let one = &run.traffic[0].1;
    assert!(one.delivered_packets > 1_000 && one.lost_packets == 0);
    // Packets in flight at the end have crossed the first link only.
    let (last, links) = (sum("fixed>mobile"), sum("base-mobile"));
    let ended = rows.iter().filter(|row| row.0 == "one" && row.1 == "fixed>mobile").count();
    let first: f64 =
        rows.iter().filter(|row| row.0 == "one" && row.1 == "fixed-base").take(ended).map(|row| row.2).sum();
    assert!((first + links - last).abs() < 1e-6, "{first} + {links}, not {last}");
    assert_eq!(ended as u64, one.delivered_packets);
    assert!((last / ended as f64 - one.mean_delay_s.unwrap()).abs() < 1e-9);
    assert!(rows.iter().filter(|row| row.1 == "base-mobile").any(|row| row.3 > 0.01), "retransmissions wait");
}

/// Retransmitted segments are counted once, at their first arrival. Lost ones take at least a timeout.
#[test]
fn data_arrive_once_however_often_they_are_sent() {
    let text = with("\nmtu = \"128 B\"", "");
    let (run, delays) = run(&text, &["radio.arq=none", "schemes=[\"basic\"]"], "basic");
    let metrics = &run.metrics.connections;
    assert!(metrics.finished && metrics.retransmitted_segments > Some(5));
    let data: Vec<_> = rows(&delays).into_iter().filter(|row| row.1 == "fixed>mobile").collect();
    let payload = 576 - 40;
    assert_eq!(data.len(), 100_000_usize.div_ceil(payload));
    let recovered = data.iter().filter(|row| row.2 > 0.9).count();
    assert!(recovered > 0, "{metrics:?}");
    // Acknowledgements are in the delays of the links.
    assert!(rows(&delays).iter().any(|row| row.1 == "mobile-base"));
}

#[test]
fn recording_changes_nothing() {
    for (text, scheme) in [(NETWORK, "basic"), (&with("title", "# title"), "ebsn")] {
        let scenario = Scenario::parse::<&str>(text, "test.toml", &[]).unwrap();
        let plain = scenario.run(scheme, 1, 0, Observe::default()).unwrap();
        let (recorded, delays) = run(text, &[], scheme);
        assert_eq!(format!("{:?}", recorded.metrics), format!("{:?}", plain.metrics));
        assert_eq!((plain.recorded_rows(), plain.delays), (0, None));
        assert!(delays.time_s.is_sorted() && delays.delay_s.iter().all(|&delay| delay > 0.0));
        assert!(delays.queueing_s.iter().all(|&queueing| queueing.is_nan() || queueing >= 0.0));
        assert_eq!(recorded.recorded_rows(), delays.time_s.len());
    }
}
