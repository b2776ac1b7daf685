//! L4S in whole scenarios: Prague and DCTCP beside CUBIC (RFC 9332, RFC 9331).

use lasthop_experiment::{ConnectionMetrics, Experiment, Observe};
use lasthop_scenario::Scenario;

const SCENARIO: &str = include_str!("../../../../scenarios/l4s.toml");

/// The metrics of CUBIC and of Prague on their last hop, in 40 s.
fn run(overrides: &[&str]) -> [ConnectionMetrics; 2] {
    let overrides = [&["limit=40 s"], overrides].concat();
    let scenario =
        Scenario::parse(SCENARIO, "l4s.toml", &overrides).unwrap_or_else(|error| panic!("{error}"));
    let run = scenario.run("basic", 1, 0, Observe::default()).unwrap_or_else(|error| panic!("{error}"));
    let [cubic, prague] = run.connections.as_slice() else { panic!("two connections") };
    [cubic.metrics.clone(), prague.metrics.clone()]
}

fn rtt(metrics: &ConnectionMetrics) -> f64 {
    metrics.mean_rtt_s.expect("there are samples")
}

/// DualPI2 couples the signals by a square, so that Prague, whose window is 2 / p, and a classic control, whose window is
/// 1.22 / √(p² / k²) with k = 2, have nearly equal rates (RFC 9332 section 2.1). Beyond its reference of 25 ms, Prague has more: it
/// waits for a mark after each window, and its round-trip time is shorter. The classic queue has the target of 15 ms, and
/// the other one about the step of 1 ms.
#[test]
fn coupled_signals_share_the_link() {
    for (rate, delay, ratios) in [("20 Mbps", "9 ms", 0.75..1.35), ("50 Mbps", "24 ms", 1.2..2.5)] {
        let (rate, delay) = (format!("radio.rate={rate}"), format!("wired.delay={delay}"));
        let [cubic, prague] = run(&[&rate, &delay]);
        let ratio = prague.throughput_bps / cubic.throughput_bps;
        assert!(ratios.contains(&ratio), "{rate}, {delay}: {ratio} of CUBIC's rate");
        let [classic, scalable] = [rtt(&cubic), rtt(&prague)];
        assert!(classic - scalable > 0.008, "{rate}, {delay}: {classic} s and {scalable} s");
        assert!(prague.ecn_marked_packets > Some(0) && prague.retransmitted_segments == Some(0));
        assert_eq!((cubic.ecn_marked_packets, prague.ecn_echoes > Some(0)), (Some(0), true));
    }
}

/// Packets in the L queue of DualPI2 wait for about half of its step of 1 ms, those in the other one for the target of 15 ms.
#[test]
fn packets_wait_in_the_shallow_queue_for_less_than_its_step() {
    let scenario =
        Scenario::parse(SCENARIO, "l4s.toml", &["limit=40 s"]).unwrap_or_else(|error| panic!("{error}"));
    let run = scenario.run("basic", 1, 0, Observe { delays: true, ..Observe::default() }).expect("a run");
    let delays = run.delays.expect("they were asked for");
    let mean_ms = |flow: &str| {
        let is_radio =
            |way: u32| delays.ways[way as usize].is_link && delays.ways[way as usize].to == "mobile";
        let rows = (0..delays.time_s.len()).filter(|&row| {
            is_radio(delays.way[row])
                && delays.flows[delays.flow[row] as usize] == flow
                && delays.time_s[row] > 10.0
        });
        let waits: Vec<f64> = rows.map(|row| 1e3 * delays.queueing_s[row]).collect();
        waits.iter().sum::<f64>() / waits.len() as f64
    };
    let [classic, scalable] = ["cubic", "prague"].map(mean_ms);
    // The metric counts from the start, and both directions, whose acknowledgements do not wait.
    let network = &run.metrics.network;
    let [l_queue, c_queue] =
        [network.l_queue_wait_s, network.c_queue_wait_s].map(|wait| 1e3 * wait.expect("a wait"));
    assert!((0.2..0.8).contains(&l_queue) && (8.0..20.0).contains(&c_queue), "{l_queue} and {c_queue} ms");
    assert!(
        (10.0..20.0).contains(&classic) && (0.2..0.8).contains(&scalable),
        "{classic} ms and {scalable} ms"
    );
}

/// One queue marks Prague where it drops CUBIC's packets, and Prague has nearly everything. With the fall-back it recognises CoDel, PIE
/// and RED, and has less than 1.5 times CUBIC's rate. DualPI2 it does not take for one of them: nothing changes.
#[test]
fn a_classic_queue_is_recognised() {
    let with = |queue: &str, fallback: bool| {
        let fallback = format!("connection.prague.tcp.ecn_fallback={fallback}");
        run(&[&format!("radio.queue={{{queue}={{}}}}"), &fallback])
    };
    for queue in ["codel", "pie", "red"] {
        let ratio = |[cubic, prague]: [ConnectionMetrics; 2]| prague.throughput_bps / cubic.throughput_bps;
        let [without, with] = [false, true].map(|fallback| ratio(with(queue, fallback)));
        assert!(without > 10.0 && (1.0..1.5).contains(&with), "{queue}: {without}, and {with} with it");
    }
    assert_eq!(with("dualpi2", true), with("dualpi2", false));
}

/// The limit of the fall-back: it tells queues by how much round-trip times vary, and takes the jitter of a link, or its ARQ, for a
/// classic queue. Prague then leaves much of its half to CUBIC.
#[test]
fn jitter_is_taken_for_a_classic_queue() {
    let jitter = "radio.delay.netem={ delay = \"5 ms\", jitter = \"3 ms\", in_order = true }";
    let arq = ["radio.channel.frame-loss.loss=0.01", "radio.arq.selective-repeat={}"];
    for link in [&[jitter][..], &arq] {
        let [without, with] = [false, true].map(|fallback| {
            let fallback = format!("connection.prague.tcp.ecn_fallback={fallback}");
            run(&[link, &[&fallback]].concat())[1].throughput_bps
        });
        assert!(with < 0.6 * without, "{link:?}: {with} b/s, and {without} without it");
    }
}

/// DCTCP has ECT(0), as in Linux: DualPI2 takes it for classic traffic, and it leaves little to CUBIC, since it shrinks by half the
/// share of marks where CUBIC loses packets.
#[test]
fn dctcp_is_in_the_classic_queue() {
    let [cubic, dctcp] = run(&["connection.prague.tcp.congestion=dctcp"]);
    assert!(dctcp.throughput_bps > 4.0 * cubic.throughput_bps, "{dctcp:?}");
    assert!(rtt(&dctcp) > 0.030, "{dctcp:?}");
}

/// A loss on the air halves Prague's window, as it does Reno's: with one frame in a hundred lost, low latency brings no throughput. An
/// ARQ that retransmits at once brings it back. One that waits for its feedback holds up the queue, whose packets are marked for
/// their age.
#[test]
fn losses_on_the_air_cost_prague_what_they_cost_reno() {
    let alone = ["connection.cubic.start=39 s", "radio.channel.frame-loss.loss=0.01"];
    let with = |control: &str, arq: &[&str]| {
        let control = format!("connection.prague.tcp.congestion={control}");
        run(&[&alone[..], &[&control], arq].concat())[1].clone()
    };
    let [reno, prague] = ["reno", "prague"].map(|control| with(control, &[]).throughput_bps);
    assert!((0.8..1.25).contains(&(prague / reno)) && prague < 9e6, "{prague} and {reno} b/s of 20 Mb/s");
    let prompt = with("prague", &["radio.arq.stop-and-wait.backoff.fixed=0 s"]);
    assert!(prompt.throughput_bps > 17e6 && rtt(&prompt) < 0.025, "{prompt:?}");
    let slow = with("prague", &["radio.arq.selective-repeat={}"]);
    assert!(slow.throughput_bps < 11e6 && rtt(&slow) > 0.030, "{slow:?}");
}
