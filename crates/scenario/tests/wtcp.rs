//! WTCP on a wireless wide-area network.

use lasthop_scenario::{Metrics, Observe, Scenario};

const CDPD: &str = r#"
schemes = ["basic"]
limit = "2000 s"
[transfer]
size = "150 KB"
[tcp]
profile = "linux"
congestion = "reno"
packet_size = "576 B"
[wired]
rate = "1 Mbps"
delay = "50 ms"
queue = "50 packets"
[radio]
rate = "19.2 kbps"
delay = "300 ms"
queue = "20 packets"
channel.frame-loss.loss = 0.02
"#;

fn run(scheme: &str, number: u64, overrides: &[&str]) -> Metrics {
    let scenario = Scenario::parse(CDPD, "test.toml", overrides).expect("a sound scenario");
    scenario.run(scheme, 1, number, Observe::default()).expect("it runs").metrics
}

#[test]
fn look() {
    for loss in ["0.0", "0.01", "0.02", "0.04"] {
        let channel = format!("radio.channel={{frame-loss={{loss={loss}}}}}");
        for (name, scheme, extra) in [
            ("wtcp", "wtcp", vec![]),
            ("newreno", "basic", vec!["tcp.profile=rfc", "tcp.flavour=newreno", "tcp.congestion=aimd"]),
            ("vegas", "basic", vec!["tcp.congestion=vegas"]),
            ("snoop", "snoop", vec!["tcp.profile=rfc", "tcp.flavour=newreno", "tcp.congestion=aimd"]),
            ("linux", "basic", vec![]),
        ] {
            let overrides = [&[&*channel][..], &extra].concat();
            let runs: Vec<_> = (0..20).map(|n| run(scheme, n, &overrides)).collect();
            let mean = |f: fn(&Metrics) -> f64| runs.iter().map(f).sum::<f64>() / runs.len() as f64;
            println!(
                "{loss} {name}: {:.0} b/s, timeouts {:.1}, retransmitted {:.1}, drops {:.1}",
                mean(|m| m.connections.throughput_bps),
                mean(|m| m.connections.timeouts as f64),
                mean(|m| m.connections.retransmitted_segments as f64),
                mean(|m| m.connections.queue_drops as f64),
            );
        }
    }
}
