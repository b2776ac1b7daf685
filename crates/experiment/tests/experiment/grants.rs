//! Links with grants of a cellular base station in scenario files.

use lasthop_experiment::{Experiment, Observe, Run};
use lasthop_scenario::Scenario;

const SCENARIO: &str = r#"
limit = "20 s"
warmup = "5 s"
sender = "linux"
[transfer]
size = "unlimited"
[wired]
rate = "1 Gbps"
delay = "5 ms"
[radio]
rate = "20 Mbps"
delay = "10 ms"
queue = "200 packets"
grants = {}
"#;

fn read(overrides: &[&str]) -> Result<Scenario, String> {
    Scenario::parse(SCENARIO, "s.toml", overrides).map_err(|error| error.to_string())
}

fn run(overrides: &[&str]) -> Run {
    read(overrides).unwrap().run("basic", 1, 0, Observe::default()).expect("a run")
}

/// A saturated link has its rate, or the share that neighbours leave, whatever HARQ repeats.
#[test]
fn a_download_has_the_rate_or_its_share() {
    for (keys, share) in [("", 1.0), ("loss = 0.3", 1.0), ("neighbours = 3", 0.25)] {
        let scenario = read(&[&format!("radio.grants={{ {keys} }}")]).unwrap();
        let network = scenario.network().expect("a network");
        assert_eq!(network.slowest(&network.flows[0].path.nodes).as_bps() as f64, share * 20e6);
        let metrics = scenario.run("basic", 1, 0, Observe::default()).expect("a run").metrics;
        let expected = share * 20e6 * 1448.0 / 1500.0;
        let found = metrics.connections.throughput_bps;
        assert!((found / expected - 1.0).abs() < 0.03, "{keys}: {found} for {expected}");
    }
}

/// RLC in acknowledged mode above HARQ: what the channel loses is repeated below TCP.
#[test]
fn an_arq_above_grants_hides_losses() {
    let loss = "radio.channel.frame-loss.loss=0.02";
    let rlc = "radio.arq.rlp={ frame = \"1500 B\", largest = \"1500 B\", overhead = \"2 B\", window = 512, report_delay = \"8 ms\" }";
    let [plain, acknowledged] =
        [&[loss][..], &[loss, rlc, "radio.queue=unlimited"]].map(|keys| run(keys).metrics.connections);
    assert!(plain.retransmitted_segments.unwrap() > 10 && plain.throughput_bps < 10e6, "{plain:?}");
    assert_eq!(acknowledged.retransmitted_segments, Some(0));
    assert!(acknowledged.throughput_bps > 18e6, "{}", acknowledged.throughput_bps);
}

/// A datagram of a host that rarely sends waits for a request, on average half of 10 ms, for 8 ms, for half of an interval, is 1 ms on the air, and takes
/// 10 ms more. One in ten is repeated 8 ms later. Down there are no requests.
#[test]
fn a_datagram_up_waits_for_its_grant() {
    let text = SCENARIO.replace("[transfer]\nsize = \"unlimited\"\n", "");
    let mean_ms = |from: &str, to: &str| {
        let ends = format!("from = \"{from}\", to = \"{to}\", packet_size = \"100 B\"");
        let source = format!("traffic.probe={{ {ends}, law.poisson.rate = \"800 bps\" }}");
        let overrides = ["limit=5000 s", "wired.delay=0 s", &source];
        let scenario = Scenario::parse(&text, "s.toml", &overrides).unwrap();
        let probe = scenario.run("basic", 1, 0, Observe::default()).expect("a run");
        1e3 * probe.traffic[0].1.mean_delay_s.expect("datagrams arrive")
    };
    let expected = 0.5 + 1.0 + 10.0 + 8.0 * 0.111;
    let [down, up] = [mean_ms("fixed", "mobile"), mean_ms("mobile", "fixed")];
    assert!((down - expected).abs() < 0.3, "{down} for {expected}");
    assert!((up - expected - 13.0).abs() < 1.0, "{up} for {expected} + 13");
}

/// Repetitions are rounded up to intervals, however long these are.
#[test]
fn intervals_may_be_longer_than_the_time_to_a_repetition() {
    let throughput = |keys: &str| {
        let scenario = read(&[&format!("radio.grants={{ interval = \"10 ms\"{keys} }}")]).unwrap();
        scenario.run("basic", 1, 0, Observe::default()).expect("a run").metrics.connections.throughput_bps
    };
    assert_eq!(throughput(""), throughput(", harq = \"10 ms\""));
}

/// Rates with opportunities or tokens of their own are refused, and so are values out of range.
#[test]
fn wrong_grants_are_refused() {
    let bucket = "radio.rate.token-bucket={ rate = \"10 Mbps\", burst = \"150 kB\", peak = \"1 Gbps\" }";
    for (keys, expected) in [
        (bucket, "expected a fixed rate, or one of series, signal or lognormal"),
        ("radio.grants.interval=1 us", "expected \"50 us\" to \"100 ms\""),
        ("radio.grants.neighbours=65", "expected up to 64"),
        ("radio.grants.handover=20 ms", "expected fewer"),
        ("radio.grants.gap=1 s", "found it without hand-overs"),
        ("radio.grants.harq=0 s", "expected a time above zero"),
        ("limit=2000000 s", "radio.grants.interval: found 2000000000 periods"),
    ] {
        let error = read(&["wired.rate=100 Mbps", keys]).expect_err(keys);
        assert!(error.contains(expected), "{keys}: {error}");
    }
}
