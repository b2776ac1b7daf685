//! What a warm-up leaves out of the metrics.

use lasthop_experiment::{Ended, Experiment, Observe, Run, TrafficMetrics};
use lasthop_scenario::Scenario;

use super::traffic::CROWD;
use super::{all_of, assert_close, counts, events, read, run, traffic};
use lasthop_testing::scenario_texts::{NETWORK, SCENARIO};

/// Counters with a warm-up equal those at the end less those at the end of the warm-up.
#[test]
fn the_warm_up_is_subtracted_from_counters() {
    let early = "traffic.cross.start=0.5 s";
    for (text, scheme, change) in [
        (CROWD, "basic", "wired.queue=1 packet"),
        (NETWORK, "lhack", early),
        (SCENARIO, "ebsn", "radio.queue=3 packets"),
    ] {
        // The warm-up ends at an instant with departures and losses.
        for warmup in ["1.3 s", "2 s", "2.777777777 s"] {
            let with = |overrides: &[&str]| run(&read(text, &[&[change], overrides].concat()), scheme);
            let limit = "limit=9 s";
            let before = with(&[&format!("limit={warmup}")]);
            let after = with(&[limit]);
            let found = with(&[limit, &format!("warmup={warmup}")]);
            let differ = |of: &dyn Fn(&Run) -> Vec<u64>| {
                let difference =
                    of(&after).into_iter().zip(of(&before)).map(|(after, before)| after - before);
                assert_eq!(of(&found), difference.collect::<Vec<_>>(), "{scheme} {warmup}");
            };
            differ(&|run| counts(run.metrics.values()));
            differ(&|run| run.connections.iter().flat_map(|each| counts(each.metrics.values())).collect());
            differ(&|run| run.traffic.iter().flat_map(|each| counts(each.1.values())).collect());
            let traced =
                |run: &Run| run.connections.iter().map(|each| events(each).clone()).collect::<Vec<_>>();
            assert_eq!(traced(&found), traced(&after), "a warm-up changes what is counted, not what happens");
        }
    }
}

#[test]
fn rates_and_delays_exclude_the_warm_up() {
    let [before, after, found] = [&["limit=5 s"][..], &["limit=12 s"], &["limit=12 s", "warmup=5 s"]]
        .map(|overrides| run(&read(CROWD, overrides), "basic"));
    let all = &found.metrics.connections;
    assert_close(all.throughput_bps, all.delivered_bytes as f64 * 8.0 / 7.0);
    let [before, after, found] = [&before, &after, &found].map(|run| traffic(run, "steady"));
    assert_close(found.throughput_bps, found.delivered_packets as f64 * 4000.0 / 7.0);
    let total = |each: &TrafficMetrics| each.mean_delay_s.unwrap() * each.delivered_packets as f64;
    assert_close(total(found), total(after) - total(before));
}

#[test]
fn a_zero_warm_up_changes_nothing() {
    for text in [CROWD, NETWORK, SCENARIO] {
        let of = |overrides: &[&str]| all_of(&run(&read(text, overrides), "basic"));
        assert!(of(&["warmup=0 s", "limit=9 s"]) == of(&["limit=9 s"]));
    }
    // Losses at time zero count.
    let burst = ["tcp.profile=rfc", "tcp.handshake=false", "wired.queue=2 packets", "limit=1 ms"];
    let drops = run(&read(SCENARIO, &burst), "basic").metrics.connections.queue_drops;
    assert_eq!(drops, 10 - 3, "of an initial window of 10 packets one is sent and 2 wait");
}

/// Twice the link rate: every second packet finds the queue full at its departure time. All events at the end
/// of the warm-up belong to it.
#[test]
fn a_packet_and_its_loss_fall_on_the_same_side_of_the_warm_up() {
    let text = r#"
        limit = "2 s"
        [topology.graph]
        wired = ["A-B", "C-D"]
        [transfer]
        size = "unlimited"
        from = "C"
        to = "D"
        [wired]
        rate = "400 kbps"
        queue = "1 packet"
        [traffic.cross]
        from = "A"
        to = "B"
        packet_size = "500 B"
        stop = "1.5 s"
        law.constant.rate = "800 kbps"
    "#;
    let of = |overrides: &[&str]| counts(traffic(&run(&read(text, overrides), "basic"), "cross").values());
    let after = of(&[]);
    for ms in 1_000..1_020 {
        let before = of(&[&format!("limit={ms} ms")]);
        let difference: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
        assert_eq!(of(&[&format!("warmup={ms} ms")]), difference, "{ms} ms");
    }
}

/// A transfer completed within the warm-up has no throughput after it, but is finished.
#[test]
fn a_transfer_within_the_warm_up_is_finished() {
    let short = ["transfer.size=5 KB", "warmup=15 s"];
    let metrics = run(&read(CROWD, &short), "basic").metrics.connections;
    assert!(metrics.finished && metrics.completion_time_s.unwrap() < 10.0);
    assert_eq!((metrics.delivered_bytes, metrics.throughput_bps, metrics.goodput), (0, 0.0, None));
}

/// A connection finished before the end of the warm-up is not counted, and an unbounded one is not awaited.
#[test]
fn finished_and_unbounded_connections_after_a_warm_up() {
    let text = "limit = '60 s'\nwarmup = '20 s'\n[topology.graph]\nwired = ['A-B']\n\
        [wired]\nrate = '1 Mbps'\ndelay = '10 ms'\nqueue = '20 packets'\n\
        [transfer]\nsize = 'unlimited'\nfrom = 'A'\nto = 'B'\n\
        [connection.early]\nsize = '10 KB'\n[connection.late]\nsize = '1 MB'\nstart = '20 s'\n[connection.endless]\n";
    let result = run(&read(text, &[]), "basic");
    assert_eq!(result.ended, Ended::Finished);
    assert_eq!(result.connections[0].metrics.throughput_bps, 0.0);
    let [late, endless] = [1, 2].map(|n| result.connections[n].metrics.throughput_bps);
    let jain = (late + endless).powi(2) / (2.0 * (late * late + endless * endless));
    assert_close(result.metrics.network.fairness.unwrap(), jain);
    let all = &result.metrics.connections;
    assert!(all.finished);
    assert_eq!(all.completion_time_s, result.connections[1].metrics.completion_time_s);
}

/// Segments in flight at the end of the warm-up are delivered after it and count as sent after it: without
/// losses goodput is one.
#[test]
fn a_warmup_during_a_lossless_transfer_leaves_goodput_at_one() {
    let text = "[transfer]\nsize = '500 KB'\n[tcp]\nclose = true\n[wired]\nrate = '10 Mbps'\ndelay = '50 ms'\n[radio]\nrate = \
                '1 Mbps'\n";
    for scheme in ["basic", "i-tcp"] {
        for warmup in ["0 s", "80 ms", "110 ms", "1 s", "2.5 s", "4.1 s"] {
            let overrides = [format!("warmup={warmup}"), format!("schemes=[\"{scheme}\"]")];
            let scenario =
                Scenario::parse(text, "test.toml", &overrides).unwrap_or_else(|error| panic!("{error}"));
            let run = scenario.run(scheme, 1, 0, Observe::default()).expect("it runs");
            assert!(run.metrics.connections.finished, "{scheme} {warmup}");
            assert_eq!(run.metrics.connections.goodput, Some(1.0), "{scheme} {warmup}");
            assert_eq!(run.connections[0].metrics.goodput, Some(1.0), "{scheme} {warmup}");
        }
    }
    // With losses goodput is below one.
    let cell = include_str!("../../../../../scenarios/cell.toml");
    let scenario =
        Scenario::parse(cell, "cell.toml", &["limit=10 s"]).unwrap_or_else(|error| panic!("{error}"));
    let run = scenario.run("basic", 1, 0, Observe::default()).expect("it runs");
    for metrics in run.connections.iter().map(|each| &each.metrics).chain([&run.metrics.connections]) {
        assert!(
            metrics.goodput.is_some_and(|goodput| (0.8..=1.0).contains(&goodput)),
            "{:?}",
            metrics.goodput
        );
    }
}
