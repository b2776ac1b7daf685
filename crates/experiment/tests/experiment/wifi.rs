//! Cells of 802.11n, 802.11ac and 802.11ax in scenarios: a home with a queue of a second and its cure, combinations with schemes, and
//! who gets how much air.

use lasthop_experiment::{Ended, Experiment, Observe, Run, TrafficMetrics};
use lasthop_proto::scheme::Schemes;
use lasthop_scenario::Scenario;

/// A download to one station, and a call to another.
const HOME: &str = r#"
limit = "12 s"
warmup = "2 s"

[topology.cell]
stations = 2

[connection.download]
from = "server"
to = "MH1"

[transfer]
size = "unlimited"

[traffic.call]
from = "server"
to = "MH2"
voip.codec = "g711"

[wired]
rate = "1 Gbps"
delay = "10 ms"

[wifi]
standard = "802.11n"
rate.fixed = { mcs = 4 }
queue = "1000 packets"
"#;

fn read(text: &str, overrides: &[&str]) -> Scenario {
    Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario, scheme: &str) -> Run {
    scenario.run(scheme, 1, 0, Observe::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn call(run: &Run) -> &TrafficMetrics {
    &run.traffic.iter().find(|(name, _)| name == "call").expect("there is a call").1
}

/// CUBIC fills the one queue of the access point; a call waits behind the download unless it has a queue, or a category, of its own.
#[test]
fn a_call_waits_behind_a_download_without_a_queue_of_its_own() {
    let scenario = read(HOME, &[]);
    let [fifo, fair] = ["basic", "fq-codel"].map(|scheme| run(&scenario, scheme));
    let marked = run(&read(HOME, &["traffic.call.dscp=46"]), "basic");
    let delay_ms = |run: &Run| 1e3 * call(run).p95_delay_s.expect("something arrives");
    assert!(delay_ms(&fifo) > 200.0, "{}", delay_ms(&fifo));
    assert!(delay_ms(&fair) < 30.0 && delay_ms(&marked) < 30.0, "{} {}", delay_ms(&fair), delay_ms(&marked));
    let mbps = |run: &Run| run.metrics.connections.throughput_bps / 1e6;
    // Of 39 Mb/s: headers, contention, and the acknowledgements and their collisions take a fifth.
    assert!(mbps(&fifo) > 30.0 && mbps(&fair) > 29.0, "{} {}", mbps(&fifo), mbps(&fair));
}

/// A far station takes the air from a near one, unless the access point divides air time.
#[test]
fn air_time_is_divided_by_fq_codel() {
    let scenario = read(
        HOME,
        &["connection.second={from=\"server\", to=\"MH2\"}", "link.ap-MH2.station.rate.fixed.mcs=0"],
    );
    let mbps =
        |run: &Run| run.connections.iter().map(|each| each.metrics.throughput_bps / 1e6).collect::<Vec<_>>();
    let [fifo, fair] = ["basic", "fq-codel"].map(|scheme| mbps(&run(&scenario, scheme)));
    // By half of the air each, the near one has half of its 33 Mb/s.
    assert!(fair[0] > 12.0 && fair[0] > 1.5 * fifo[0], "{fifo:?} {fair:?}");
}

/// Every scheme that the cell supports finishes a transfer over losses.
#[test]
fn schemes_work_over_a_cell() {
    let overrides = [
        "transfer.size=300 KB",
        "wifi.loss={down=0.1, up=0.1}",
        "wifi.retry_limit=2",
        "tcp.close=true",
        "limit=1 h",
        "warmup=0 s",
    ];
    let scenario = read(HOME, &overrides);
    let mut supported = 0;
    for scheme in Schemes::default().all() {
        match scenario.run(scheme.name(), 1, 0, Observe::default()) {
            Ok(run) => {
                assert_eq!(run.ended, Ended::Finished, "{}", scheme.name());
                supported += 1;
            }
            Err(refused) => assert!(refused.to_string().len() > 20, "{refused}"),
        }
    }
    assert!(supported > 20, "{supported}");
}

/// The rate control is chosen for each station, and a worse signal costs throughput.
#[test]
fn a_worse_signal_costs_throughput() {
    let throughput =
        |overrides: &[&str]| run(&read(HOME, overrides), "basic").metrics.connections.throughput_bps;
    for control in ["ideal", "minstrel-ht", "minstrel-ht-ewma"] {
        let rate = format!("wifi.rate={control}");
        let [near, far] =
            ["30 dB", "10 dB"].map(|snr| throughput(&[&rate, &format!("link.ap-MH1.station.snr={snr}")]));
        assert!(near > 45e6 && far < 20e6 && far > 10e6, "{control}: {near} {far}");
    }
}

/// A scheme that orders one queue has no effect on categories, so it is refused.
#[test]
fn packets_cannot_go_first_in_a_category() {
    let scenario = read(HOME, &[]);
    let refused = scenario.run("acks-first", 1, 0, Observe::default()).expect_err("a cell has categories");
    assert!(refused.to_string().contains("[wifi] their category does; leave the scheme out"), "{refused}");
}

/// Roams and bursts are as many as a run gets through.
#[test]
fn roams_and_bursts_are_bounded() {
    let roaming = "roaming={ every = \"100 ms\", channels = 0, gap = \"50 ms\" }";
    for (key, limit, expected) in [
        (
            "wifi.interference={ period = \"1 ms\", burst = \"100 us\" }",
            "limit=30000 s",
            "wifi.interference.period: found 30000000 periods",
        ),
        (&format!("wifi.{roaming}"), "limit=3000000 s", "wifi.roaming: found 30000000 periods"),
        (
            &format!("link.ap-MH2.station.{roaming}"),
            "limit=3000000 s",
            "link.ap-MH2.station.roaming: found 30000000 periods",
        ),
    ] {
        let overrides = [key, limit, "wired.rate=100 Mbps"];
        let refused = Scenario::parse(HOME, "s.toml", &overrides).expect_err("it is too much");
        assert!(refused.to_string().contains(expected), "{refused}");
    }
}

/// A roam costs a call the packets of the gap, twelve without fast transition and about one with it, unless access points forward them.
#[test]
fn a_roam_costs_a_call_the_packets_of_its_gap() {
    let lost = |keys: &str| {
        let roaming = format!("wifi.roaming={{ every = \"4 s\"{keys} }}");
        call(&run(&read(HOME, &[roaming.as_str()]), "fq-codel")).lost_packets
    };
    let [slow, fast, forwarded] = ["", ", fast_transition = true", ", queued = \"forwarded\""].map(lost);
    // Two or three roams in ten seconds.
    assert!(
        (22..=40).contains(&slow) && (2..=8).contains(&fast) && forwarded == 0,
        "{slow} {fast} {forwarded}"
    );
}

/// Twice as many packets fit into a run over two streams.
#[test]
fn the_bound_of_packets_counts_streams() {
    let text = r#"
limit = "10 s"
[topology.cell]
stations = 1
[traffic.flood]
from = "server"
to = "MH1"
packet_size = "1500 B"
law.constant.rate = "900 Mbps"
[wired]
rate = "1 Gbps"
[wifi]
standard = "802.11n"
"#;
    let bound =
        |streams: &str| lasthop_predict::packet_bound(&read(text, &[&format!("wifi.streams={streams}")]));
    // 65 Mb/s for each.
    assert_eq!(["1", "2"].map(|streams| bound(streams).round()), [54_167.0, 108_333.0]);
}

/// A cell has an ARQ of its own: those of schemes for links of `[radio]` change nothing there, and a run says so.
#[test]
fn an_arq_for_radio_links_has_no_effect_in_a_cell() {
    let scenario = read(HOME, &["limit=3 s", "warmup=1 s"]);
    let run = |scheme| scenario.run(scheme, 1, 0, Observe::default()).expect("a run");
    let basic = run("basic");
    for scheme in ["arq", "rlp", "airmail"] {
        let with = run(scheme);
        let reasons: Vec<_> = with.without_effect.iter().filter(|(name, _)| *name == scheme).collect();
        assert_eq!(with.metrics.connections, basic.metrics.connections, "{scheme}");
        assert!(
            matches!(reasons[..], [(_, reason)] if reason.contains("a cell has one of its own")),
            "{scheme}: {reasons:?}"
        );
    }
}
