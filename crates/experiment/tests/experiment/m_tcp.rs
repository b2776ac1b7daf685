//! M-TCP in whole scenarios: a source that a disconnection does not disturb, and data that are acknowledged only when
//! they have arrived.

use lasthop_experiment::{ConnectionMetrics, Experiment, Observe};
use lasthop_scenario::Scenario;

/// A disconnection of some seconds in a transfer over a link of 2 Mb/s.
const DISCONNECTED: &str = r#"
schemes = ["basic"]
[transfer]
size = "2 MB"
[tcp]
profile = "rfc"
flavour = "newreno"
close = true
[wired]
rate = "10 Mbps"
delay = "20 ms"
[radio]
rate = "2 Mbps"
delay = "5 ms"
queue = "100 packets"
outage = { first = "3 s", lasts = "5 s" }
"#;

fn run(scheme: &str, overrides: &[&str]) -> ConnectionMetrics {
    let scenario = Scenario::parse(DISCONNECTED, "test.toml", overrides);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    scenario
        .run(scheme, 1, 0, Observe::default())
        .unwrap_or_else(|error| panic!("{error}"))
        .metrics
        .connections
}

/// The claim of the paper: the source does not time out in a disconnection of any length, and goes on as soon as it is over.
#[test]
fn a_disconnection_costs_its_duration() {
    costs_its_duration(&[]);
    costs_its_duration(&["tcp.profile=linux", "tcp.flavour=prr"]);
}

fn costs_its_duration(sender: &[&str]) {
    let undisturbed = run("m-tcp", &[&["radio.outage.first=1 h"], sender].concat());
    let undisturbed = undisturbed.completion_time_s.expect("it completes");
    for lasts in [1, 5, 20] {
        let lasting = format!("radio.outage.lasts=\"{lasts} s\"");
        let overrides = [&[lasting.as_str()], sender].concat();
        let found = run("m-tcp", &overrides);
        assert_eq!((found.timeouts, found.fast_retransmits), (Some(0), Some(0)), "{lasts} s");
        // What was in flight when the window closed, and probes.
        assert!(found.retransmitted_bytes < Some(70_000), "{:?} B for {lasts} s", found.retransmitted_bytes);
        let more = found.completion_time_s.expect("it completes") - undisturbed;
        assert!((more - f64::from(lasts)).abs() < 0.5, "{more} s more for {lasts} s");
        let [basic, split] = ["basic", "i-tcp"].map(|scheme| run(scheme, &overrides));
        assert!(basic.timeouts > Some(0) && basic.completion_time_s > found.completion_time_s);
        assert!(
            split.completion_time_s > found.completion_time_s,
            "its timer waits for the end of its backoff"
        );
    }
}

/// If the mobile host stays away, a split connection has acknowledged what never arrives, and this one has not.
#[test]
fn what_is_acknowledged_has_arrived() {
    let gone = ["radio.outage.lasts=\"1000 s\"", "limit=300 s"];
    let [split, supervised] =
        ["i-tcp", "m-tcp"].map(|scheme| run(scheme, &gone).acknowledged_undelivered_bytes);
    assert!(split > 10_000, "{split}");
    assert_eq!(supervised, 0);
}

/// Without disconnections it is as fast as another split connection, with random losses and senders of today.
#[test]
fn holding_a_byte_costs_little() {
    let losses = ["radio.outage.first=1 h", "radio.channel={frame-loss={loss=0.01}}"];
    for more in [
        &[][..],
        &["tcp.profile=linux", "tcp.flavour=prr"],
        &["tcp.profile=linux-bbr", "tcp.flavour=prr"],
        &["tcp.timestamps=true"],
    ] {
        let overrides = [&losses[..], more].concat();
        let [split, supervised] = ["i-tcp", "m-tcp"].map(|scheme| run(scheme, &overrides));
        assert_eq!(supervised.timeouts, Some(0), "{more:?}");
        let [split, supervised] = [split, supervised].map(|found| found.throughput_bps);
        assert!(supervised > 0.9 * split, "{more:?}: {supervised} and {split}");
    }
}

/// A connection between two mobile hosts has two supervisory hosts.
#[test]
fn supervisory_hosts_form_a_chain() {
    let both =
        ["topology.path={routers=3, wireless=\"both\"}", "transfer.size=200 KB", "radio.outage.lasts=1 s"];
    let found = run("m-tcp", &[&both[..], &["radio.channel={frame-loss={loss=0.02}}"]].concat());
    assert!(found.finished);
    assert_eq!(found.acknowledged_undelivered_bytes, 0);
}
