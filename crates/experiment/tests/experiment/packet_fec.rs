//! Forward error correction across packets in whole scenarios: what is left of losses beside closed forms, what it costs,
//! and what it does not go together with.

use crate::common::counter;
use lasthop_experiment::{Experiment, Observe, Run, TrafficMetrics};
use lasthop_scenario::Scenario;

/// Datagrams of 1,000 B every 4 ms over a link that carries ten in this time.
const STREAM: &str = r#"
    limit = "200 s"
    [traffic.stream]
    from = "fixed"
    to = "mobile"
    law.constant.rate = "2 Mbps"
    packet_size = "1000 B"
    stop = "180 s"
    [wired]
    rate = "100 Mbps"
    delay = "1 ms"
    [radio]
    rate = "20 Mbps"
    delay = "1 ms"
"#;

fn read(text: &str, overrides: &[&str]) -> Scenario {
    Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario, scheme: &str, number: u64) -> Run {
    scenario.run(scheme, 1, number, Observe::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn stream(run: &Run) -> &TrafficMetrics {
    &run.traffic[0].1
}

/// The probability that `m` of `n` packets in a row are lost, and that the one at each position is among them: for each
/// m, the expected number of losses among the first `k`, by a chain of two states.
fn expected_losses(loss: f64, burst: f64, k: usize, n: usize) -> Vec<f64> {
    let r = 1.0 / burst;
    let p = r * loss / (1.0 - loss);
    // By state and number of losses: probability, and expected losses among the first k.
    let mut now = vec![[[0.0; 2]; 2]; n + 1];
    now[0] = [[1.0 - loss, 0.0], [loss, 0.0]];
    for position in 0..n {
        // The state of this packet is that of `now`; the change comes before the next one.
        let mut next = vec![[[0.0; 2]; 2]; n + 1];
        for (lost, states) in now.iter().enumerate().take(position + 1) {
            for (bad, [probability, sources]) in states.iter().enumerate() {
                let here = if bad == 1 && position < k { *probability } else { 0.0 };
                let to = if bad == 1 { [r, 1.0 - r] } else { [1.0 - p, p] };
                for (state, share) in to.into_iter().enumerate() {
                    let [into, of_sources] = &mut next[lost + bad][state];
                    *into += probability * share;
                    *of_sources += (sources + here) * share;
                }
            }
        }
        now = next;
    }
    now.iter().map(|states| states[0][1] + states[1][1]).collect()
}

/// The share of packets that a code of k of n does not recover: lost, with more than n − k of the block.
fn residual_loss(loss: f64, burst: f64, k: usize, n: usize) -> f64 {
    expected_losses(loss, burst, k, n)[n - k + 1..].iter().sum::<f64>() / k as f64
}

/// The share of a source's packets that stay lost equals its closed form, within 4 standard errors of independent blocks, for
/// independent losses and for bursts.
#[test]
fn residual_loss_is_that_of_the_code() {
    // Independent: lost, and at least n − k of the n − 1 others.
    let binomial = |n: u32, m: u32, p: f64| {
        let ways = (0..m).fold(1.0, |ways, i| ways * f64::from(n - i) / f64::from(i + 1));
        ways * p.powi(m as i32) * (1.0 - p).powi((n - m) as i32)
    };
    let independent: f64 = (2..=5).map(|others| binomial(5, others, 0.1)).sum::<f64>() * 0.1;
    assert!((residual_loss(0.1, 1.0 / 0.9, 4, 6) - independent).abs() < 1e-12);
    for (loss, burst, k, n) in [
        (0.1, 1.0 / 0.9, 4, 6),
        (0.1, 1.0 / 0.9, 8, 10),
        (0.05, 3.0, 8, 12),
        (0.02, 5.0, 8, 12),
        (0.2, 2.0, 1, 3),
    ] {
        let channel = format!("radio.channel.gilbert={{ loss = {loss}, burst = {burst} }}");
        let code =
            format!("scheme.packet-fec={{ k = {k}, n = {n}, wait = \"10 s\", directions = \"down\" }}");
        let scenario = read(STREAM, &[&channel, &code]);
        let result = run(&scenario, "packet-fec", 0);
        let TrafficMetrics { sent_packets, lost_packets, delivered_packets, .. } = *stream(&result);
        assert_eq!(sent_packets, 45_000);
        assert_eq!(counter(&result, "passed_late_packets"), 0);
        assert!(sent_packets - delivered_packets - lost_packets <= k as u64, "{result:?}");
        let expected = residual_loss(loss, burst, k, n);
        // Losses of a block are at most k; blocks in a row are nearly independent.
        let losses = expected_losses(loss, burst, k, n);
        let blocks = sent_packets as f64 / k as f64;
        let most = losses[n - k + 1..].iter().sum::<f64>() * k as f64;
        let error = (most / blocks).sqrt() / k as f64;
        let found = lost_packets as f64 / sent_packets as f64;
        let case = format!("{loss} in bursts of {burst}, {k} of {n}: {found}, expected {expected} ± {error}");
        assert!((found - expected).abs() < 4.0 * error, "{case}");
        assert!(expected > 3.0 * error, "{case}: no evidence");
        let repairs = counter(&result, "repair_packets") as f64;
        let share = (n - k) as f64 / k as f64;
        assert!((repairs / sent_packets as f64 - share).abs() < 1e-3, "{case}: {repairs}");
    }
}

/// Bursts of five defeat a block of 8 of 12 now and then; over four blocks in turn they are spread.
#[test]
fn interleaving_helps_against_bursts() {
    let lost = |interleave: u32| {
        let code = format!(
            "scheme.packet-fec={{ interleave = {interleave}, wait = \"10 s\", directions = \"down\" }}"
        );
        let scenario = read(STREAM, &["radio.channel.gilbert={ loss = 0.02, burst = 5 }", &code]);
        stream(&run(&scenario, "packet-fec", 0)).lost_packets
    };
    let (plain, interleaved) = (lost(1), lost(4));
    assert!(plain > 3 * interleaved.max(1), "{plain} and {interleaved}");
}

/// TCP over 2 % of losses is several times as fast with a code. Without losses the code
/// costs its share of the rate.
#[test]
fn tcp_does_not_see_what_is_recovered() {
    let text = r#"
        limit = "30 s"
        [transfer]
        size = "unlimited"
        [tcp]
        profile = "linux"
        [wired]
        rate = "100 Mbps"
        delay = "30 ms"
        [radio]
        rate = "10 Mbps"
        delay = "5 ms"
        queue = "60 packets"
    "#;
    let lossy = "radio.channel.frame-loss.loss=\"2 %\"";
    for ends in [vec![], vec!["transfer.from=mobile", "transfer.to=fixed"]] {
        let overrides = [&[lossy][..], &ends].concat();
        let [plain, coded] =
            ["basic", "packet-fec"].map(|scheme| run(&read(text, &overrides), scheme, 0).metrics);
        let (plain, coded) = (plain.connections, coded.connections);
        assert!(coded.throughput_bps > 2.0 * plain.throughput_bps, "{plain:?} {coded:?}");
        let without_drops = [&["radio.queue=unlimited", "tcp.window=200 KB"][..], &ends].concat();
        let clean = run(&read(text, &without_drops), "packet-fec", 0).metrics.connections.throughput_bps;
        let share = 10e6 * 1448.0 / (1500.0 + 36.0 + 0.5 * 1538.0);
        assert!(clean > 0.9 * share && clean < share, "{clean} of {share}");
    }
}

/// In a cell and on a shared radio each mobile host has its blocks, and their packets do not get mixed up.
#[test]
fn several_mobile_hosts_share_a_base_station() {
    let shared = "[topology.shared-radio]\nmobiles = 3\n[radio]\nrate = \"5 Mbps\"\n\
        channel.frame-loss.loss = 0.1\narq.stop-and-wait.retransmissions = 0";
    for topology in ["[topology.cell]\nstations = 3", shared] {
        let text = format!(
            r#"
            limit = "100 s"
            {topology}
            [transfer]
            size = "300 KB"
            [tcp]
            profile = "linux"
            [wired]
            rate = "100 Mbps"
            delay = "10 ms"
            "#
        );
        let scenario = read(&text, &["scheme.packet-fec.k=3", "scheme.packet-fec.n=5"]);
        let result = run(&scenario, "packet-fec", 0);
        assert_eq!(result.connections.len(), 3);
        for connection in &result.connections {
            assert!(connection.metrics.finished, "{topology}: {}", connection.name);
        }
        let [sent, recovered] = ["source_packets", "recovered_packets"].map(|name| counter(&result, name));
        assert_eq!(counter(&result, "passed_late_packets"), 0, "{topology}");
        assert!(sent > 600 && (recovered > sent / 20) == text.contains("frame-loss"), "{sent} {recovered}");
    }
}

/// What is lost behind the last arrival is a loss too: in an outage until the end, and with a host that does not come back.
#[test]
fn losses_at_the_end_are_counted() {
    let outage = "radio.outage={ first = \"60 s\", lasts = \"1 h\" }";
    for loss in [outage, "radio.channel.frame-loss.loss=1"] {
        let scenario = read(STREAM, &[loss]);
        let result = run(&scenario, "packet-fec", 0);
        let TrafficMetrics { sent_packets, lost_packets, delivered_packets, .. } = *stream(&result);
        assert_eq!(sent_packets, delivered_packets + lost_packets, "{loss}");
        assert!(lost_packets > 25_000, "{loss}: {lost_packets}");
        assert!(counter(&result, "awaited_packets") < 3_000, "nothing is awaited for ever");
    }
}

/// Packets from station to station do not leave the cell, and so would never come out of the tunnel.
#[test]
fn a_tunnel_needs_its_end_at_the_access_point() {
    let text = r#"
        [topology.graph]
        wired = ["server-ap"]
        cell = ["ap-a", "ap-b"]
        [transfer]
        from = "a"
        to = "b"
        size = "10 KB"
        [wired]
        rate = "100 Mbps"
        delay = "10 ms"
    "#;
    read(text, &[]);
    let error = Scenario::parse(text, "test.toml", &["schemes=[\"packet-fec\"]"]).expect_err("it is refused");
    assert!(error.to_string().contains("which packets from one station to another do not pass"), "{error}");
}

/// What does not go together with a tunnel is refused, with the reason.
#[test]
fn what_cannot_see_into_the_tunnel_is_refused() {
    let refusal = |schemes: &str| {
        let schemes = format!("schemes=[\"{schemes}\"]");
        let arq = "radio={rate=\"20 Mbps\", delay=\"1 ms\", arq={stop-and-wait={}}, fec=\"bch-255-131-18\"}";
        let text = format!("{STREAM}\n[transfer]\nsize = \"10 KB\"");
        Scenario::parse(&text, "test.toml", &[&schemes, arq]).expect_err("it is refused").to_string()
    };
    for (schemes, reason) in [
        (
            "packet-fec + snoop",
            "\"packet-fec\" hides packets from \"snoop\", unless \"snoop\" is named first",
        ),
        ("ebsn + packet-fec", "\"packet-fec\" hides from \"ebsn\" which packets the link loses"),
        ("selective-fec + packet-fec", "hides from the link which packets \"selective-fec\" marks"),
        ("eln + packet-fec", "\"packet-fec\" hides from \"eln\" which packets the link loses"),
    ] {
        let message = refusal(schemes);
        assert!(message.contains(reason), "{message}");
    }
    let text = format!("{STREAM}\n[transfer]\nsize = \"10 KB\"");
    for schemes in ["snoop + packet-fec", "i-tcp + packet-fec", "packet-fec + i-tcp", "arq + packet-fec"] {
        let schemes = format!("schemes=[\"{schemes}\"]");
        read(&text, &[&schemes]);
    }
    for (key, problem) in [
        ("k=0", "found 0, expected at least 1"),
        ("n=7", "found 7, expected at least k = 8"),
        ("interleave=0", "found 0, expected at least 1"),
        ("wait=0 s", "found 0 s, expected more than zero"),
        ("hold=5", "expected a duration such as \"20 ms\", or \"auto\""),
        ("k=300", "found 300, expected a whole number"),
    ] {
        let key = format!("scheme.packet-fec.{key}");
        let error = Scenario::parse(&text, "test.toml", &["schemes=[\"packet-fec\"]", &key]).expect_err(&key);
        assert!(error.to_string().contains(problem), "{error}");
    }
}
