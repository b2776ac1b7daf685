//! WTCP of Ratnam and Matta in whole scenarios: losses that the source does not see, and delays that it does not measure.

use lasthop_experiment::{Experiment, Observe, Run};
use lasthop_scenario::Scenario;

/// Fades of a tenth of a second on average, behind a path of 110 ms.
const FADING: &str = r#"
schemes = ["basic"]
[transfer]
size = "4 MB"
[tcp]
profile = "rfc"
flavour = "newreno"
timestamps = true
rto_min = "200 ms"
window = "64 KiB"
[wired]
rate = "10 Mbps"
delay = "50 ms"
[radio]
rate = "2 Mbps"
delay = "5 ms"
queue = "100 packets"
channel.two-state = { good = "2 s", bad = "100 ms", good_ber = 0, bad_ber = 0.01 }
"#;

fn run(scheme: &str, overrides: &[&str]) -> Run {
    let scenario = Scenario::parse(FADING, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"));
    let observe = Observe { series: true, ..Observe::default() };
    scenario.run(scheme, 1, 0, observe).unwrap_or_else(|error| panic!("{error}"))
}

/// The mean of a column of the source after the first five seconds.
fn mean(run: &Run, name: &str) -> f64 {
    let series = run.connections[0].parts[0].series.as_ref().expect("it was requested");
    let (_, column) = series.columns.iter().find(|(column, _)| *column == name).expect("a column");
    let late = series.time_s.iter().zip(column).filter(|(time, value)| **time > 5.0 && !value.is_nan());
    let late: Vec<f64> = late.map(|(_, value)| *value).collect();
    late.iter().sum::<f64>() / late.len() as f64
}

/// The timer of the source follows the wired path. If timestamps are left as they are, it follows local recovery.
#[test]
fn the_source_measures_the_wired_path() {
    let hidden = run("wtcp-timestamps", &[]);
    let shown = run("wtcp-timestamps", &["scheme.wtcp-timestamps.hide=false"]);
    let [rto, open] = [&hidden, &shown].map(|run| mean(run, "rto_s"));
    assert!(open > 1.05 * rto, "{rto} s, and {open} s without");
    // A sender that times each segment itself, as Linux does, learns nothing from timestamps.
    let linux = ["true", "false"].map(|hide| {
        let hide = format!("scheme.wtcp-timestamps.hide={hide}");
        mean(&run("wtcp-timestamps", &["tcp.profile=linux", "tcp.flavour=prr", &hide]), "rto_s")
    });
    assert_eq!(linux[0], linux[1]);
    let counter =
        |name: &str| hidden.counters.iter().find(|each| each.to_string().ends_with(name)).expect("it").value;
    assert!(counter("hidden_ms") > 0 && counter("local_retransmissions") > 0);
}

/// Losses on the last hop cost the source nothing: no fast retransmission, and more throughput than without.
#[test]
fn the_source_does_not_see_losses() {
    let losses = ["radio.channel={frame-loss={loss=0.02}}"];
    let [basic, found] = ["basic", "wtcp-timestamps"].map(|scheme| run(scheme, &losses).metrics.connections);
    assert_eq!((found.fast_retransmits, found.timeouts), (Some(0), Some(0)));
    assert!(
        found.throughput_bps > 1.5 * basic.throughput_bps,
        "{} and {}",
        found.throughput_bps,
        basic.throughput_bps
    );
}

/// Copies that timestamps tell apart must keep them; a connection without timestamps has nothing to hide.
#[test]
fn timestamps_are_moved_only_where_they_are_times() {
    let overrides = ["tcp.flavour=go-back-n", "tcp.congestion=none", "schemes=[\"wtcp-timestamps\"]"];
    let error = Scenario::parse(FADING, "test.toml", &overrides).expect_err("names of copies").to_string();
    assert!(error.contains("which tell copies apart with this flavour"), "{error}");
    let without = run("wtcp-timestamps", &["tcp.timestamps=false"]);
    assert!(without.counters.iter().any(|each| each.to_string().ends_with("hidden_ms") && each.value == 0));
    assert!(without.metrics.connections.finished);
}
