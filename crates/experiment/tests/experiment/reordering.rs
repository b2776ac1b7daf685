//! What senders make of packets that overtake each other, where none is lost: each retransmission is spurious.

use lasthop_experiment::{Experiment, Observe};
use lasthop_scenario::Scenario;

/// A round-trip time of 41 ms, and a window that no queue overflows with.
const SCENARIO: &str = r#"
limit = "60 s"
schemes = ["basic"]
[transfer]
size = "20 MB"
[wired]
rate = "100 Mbps"
delay = "20 ms"
[radio]
rate = "10 Mbps"
[tcp]
window = "64 KB"
"#;

/// Retransmitted segments, reductions that were undone, and Mb/s, if packets skip 8 ms with a probability.
fn run(reorder: &str, tcp: &[&str]) -> (u64, u64, f64) {
    let delay = format!("radio.delay.netem={{ delay = \"8 ms\", reorder = {reorder} }}");
    let scenario = Scenario::parse(SCENARIO, "s.toml", &[&[&*delay], tcp].concat())
        .unwrap_or_else(|error| panic!("{error}"));
    let metrics = scenario.run("basic", 1, 0, Observe::default()).expect("a run").metrics.connections;
    let [resent, undone] =
        [metrics.retransmitted_segments, metrics.undone_reductions].map(Option::unwrap_or_default);
    (resent, undone, metrics.throughput_bps / 1e6)
}

/// One packet in a hundred does not skip the delay. Up to seven others, at 1.2 ms each, overtake it, and draw as many duplicate
/// ACKs. NewReno takes three for a loss, and fills a third of the link; with a threshold of eight it retransmits nothing. RACK
/// waits a quarter of the round-trip time, which is longer than the delay, except for the first times, and undoes these.
#[test]
fn three_duplicates_are_a_loss_and_rack_waits() {
    let (resent, _, rate) = run("0.99", &["tcp.profile=rfc"]);
    assert!(resent > 100 && rate < 5.0, "NewReno: {resent} segments, {rate} Mb/s");
    let (resent, _, rate) = run("0.99", &["tcp.profile=rfc", "tcp.dupthresh=8"]);
    assert!(resent == 0 && rate > 9.0, "with a threshold of eight: {resent} segments, {rate} Mb/s");
    let (resent, undone, rate) = run("0.99", &[]);
    assert!(resent < 20 && 10 * undone >= 8 * resent && rate > 9.0, "RACK: {resent}, {undone}, {rate} Mb/s");
}

/// The other way round, one packet in a hundred is early: each draws a single duplicate.
#[test]
fn early_packets_draw_one_duplicate() {
    let (resent, _, rate) = run("0.01", &["tcp.profile=rfc"]);
    assert!(resent == 0 && rate > 8.0, "{resent} segments, {rate} Mb/s");
}
