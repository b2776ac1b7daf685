//! Several connections: shares of a bottleneck, totals, start and end.

use lasthop_experiment::{ConnectionRun, Ended, Events, Experiment, Observe};

use super::{EVERYTHING, assert_close, connection, counts, mean, read, run, times, traffic};
use lasthop_testing::scenario_texts::NETWORK;

/// Two long transfers over one bottleneck.
const DUMBBELL: &str = r#"
limit = "400 s"
warmup = "20 s"

[topology.dumbbell]
pairs = 2
wireless = "none"

[transfer]
size = "unlimited"

[wired]
rate = "10 Mbps"
delay = "5 ms"

[link.left-right]
rate = "1 Mbps"
delay = "20 ms"
queue = "25 packets"

[connection.1]

[connection.2]
start = "0.3 s"

# Keeps drop-tail queues and windows from falling into step.
[traffic.noise]
from = "left"
to = "right"
packet_size = "100 B"
law.poisson.rate = "50 kbps"
"#;

/// Throughputs of the two connections, in 30 runs.
fn shares(overrides: &[&str]) -> Vec<(f64, f64, f64)> {
    let scenario = read(DUMBBELL, overrides);
    let one = |number| {
        let result = scenario.run("basic", 1, number, Observe::default()).unwrap();
        let [one, two] = [0, 1].map(|index| result.connections[index].metrics.throughput_bps);
        (one, two, result.metrics.network.fairness.unwrap())
    };
    (0..30).map(one).collect()
}

/// With 99.9 % confidence (Student's t with 29 degrees of freedom: 3.66) the shares differ by less than 3 %
/// of the link, and together they use what headers leave of it.
#[test]
fn equal_connections_get_equal_shares() {
    let shares = shares(&[]);
    let (difference, error) =
        mean(&shares.iter().map(|(one, two, _)| (one - two) / (one + two)).collect::<Vec<_>>());
    assert!(difference.abs() <= 3.66 * error && 3.66 * error < 0.03, "{difference} with error {error}");
    let (fairness, error) = mean(&shares.iter().map(|share| share.2).collect::<Vec<_>>());
    assert!(fairness - 3.66 * error > 0.99, "{fairness} with error {error}");
    for (one, two, fairness) in shares {
        // By hand: Jain's index of two.
        assert_close(fairness, (one + two) * (one + two) / (2.0 * (one * one + two * two)));
        let used = (one + two) * 1500.0 / 1460.0 + 50_000.0;
        assert!((0.95e6..=1.005e6).contains(&used), "{used}");
    }
}

/// Of two connections over a drop-tail queue the one with the shorter round-trip time gets more, by a power
/// of the ratio of round-trip times between 1 and 2 (Lakshman and Madhow 1997). The links give round trips of
/// 60 and 260 ms; a full queue of 25 packets adds 300 ms to both.
#[test]
fn the_nearer_connection_gets_more() {
    let shares = shares(&["link.S2-left.delay=105 ms"]);
    let (ratio, error) = mean(&shares.iter().map(|(one, two, _)| (one / two).ln()).collect::<Vec<_>>());
    // The smallest and the largest ratio of round trips: with a full and with an empty queue.
    let (full, empty): (f64, f64) = (560.0 / 360.0, 260.0 / 60.0);
    assert!(ratio - 3.66 * error > full.ln(), "{} with error {error}", ratio.exp());
    assert!(ratio + 3.66 * error < 2.0 * empty.ln(), "{} with error {error}", ratio.exp());
    // Jain's index of two shares in the smallest ratio.
    let fairest = (1.0 + full).powi(2) / (2.0 * (1.0 + full * full));
    assert!(shares.iter().all(|share| share.2 < fairest));
}

/// The run's totals are the sums over its connections.
#[test]
fn totals_are_sums_over_connections() {
    for number in 0..10 {
        let lossy = ["link.R1-R2.queue=3 packets", "link.base2-laptop.channel.iid.ber=1e-5"];
        let result = read(NETWORK, &lossy).run("lhack", 1, number, EVERYTHING).unwrap();
        let (all, each) = (&result.metrics.connections, &result.connections);
        let sum = each.iter().map(|each| counts(each.metrics.values()));
        let sum = sum.reduce(|a, b| a.iter().zip(b).map(|(a, b)| a + b).collect()).unwrap();
        assert_eq!(counts(all.values()), sum);
        let times: Vec<f64> = each.iter().map(|each| each.metrics.completion_time_s.unwrap()).collect();
        // The first starts after 1 s, the second at once.
        assert_close(all.throughput_bps, 1.6e6 / (1.0 + times[0]).max(times[1]));
        assert_eq!(all.completion_time_s, times.into_iter().reduce(f64::max));
        assert!(all.finished && result.ended == Ended::Finished);
        // Useful payload over payload sent, which is not the mean of the connections' goodputs.
        let sent: f64 = each.iter().map(|each| 100_000.0 / each.metrics.goodput.unwrap()).sum();
        assert_close(all.goodput.unwrap(), 200_000.0 / sent);
        for ConnectionRun { name, metrics, parts } in each {
            let events = parts[0].events.as_ref().unwrap();
            let lost = |why: &str| events.reason.iter().filter(|reason| **reason == why).count() as u64;
            assert_eq!(lost("queue-full"), metrics.queue_drops, "{name} {number}");
            assert_eq!(lost("corrupted"), metrics.lost_on_air, "{name} {number}");
            assert_eq!(times_of(events, "sent"), metrics.segments_sent, "{name} {number}");
            assert_eq!(Some(times_of(events, "ack-sent")), metrics.acks_sent, "{name} {number}");
            assert_eq!(times_of(events, "notice-received"), metrics.notices, "{name} {number}");
        }
        // Each has losses on its own links only.
        let [first, second] = ["first", "second"].map(|name| &connection(&result, name).metrics);
        assert!(first.queue_drops > 0 && first.lost_on_air == 0);
        assert!(second.queue_drops == 0 && second.lost_on_air > 0);
        let cross = traffic(&result, "cross");
        assert!(cross.lost_packets > 0, "its losses are not the connections'");
    }
}

pub(crate) fn times_of(events: &Events, kind: &str) -> u64 {
    times(events, kind).count() as u64
}

/// The run finishes with the last connection, and not before.
#[test]
fn a_run_is_finished_with_its_last_connection() {
    let sizes = ["connection.first.size=10 KB", "connection.second.size=300 KB"];
    let result = run(&read(NETWORK, &sizes), "basic");
    let [first, second] = ["first", "second"].map(|name| &connection(&result, name).metrics);
    assert_eq!((first.delivered_bytes, second.delivered_bytes), (10_000, 300_000));
    assert!(first.completion_time_s < second.completion_time_s);
    assert_eq!(result.metrics.connections.completion_time_s, second.completion_time_s);
    let cut = run(&read(NETWORK, &[sizes[0], sizes[1], "limit=3 s"]), "basic");
    assert_eq!(cut.ended, Ended::TimeLimit);
    assert_eq!(cut.connections.iter().map(|each| each.metrics.finished).collect::<Vec<_>>(), [true, false]);
    let all = &cut.metrics.connections;
    assert_eq!((all.finished, all.completion_time_s), (false, None));
}

/// The total throughput of consecutive connections does not exceed the link rate.
#[test]
fn total_throughput_is_over_the_union_of_connections() {
    let one_after_the_other = "limit = '400 s'\n[topology.graph]\nwired = ['A-B']\n\
        [wired]\nrate = '1 Mbps'\n[transfer]\nsize = '1 MB'\nfrom = 'A'\nto = 'B'\n\
        [connection.x]\n[connection.y]\nstart = '100 s'\n[connection.z]\nstart = '200 s'\n";
    let result = run(&read(one_after_the_other, &[]), "basic");
    let last = result.connections[2].metrics.completion_time_s.unwrap();
    assert_close(result.metrics.connections.throughput_bps, 24e6 / (200.0 + last));
    assert!(result.metrics.network.fairness.unwrap() > 0.999);
}

/// Equal connections with a random spread start at different times.
#[test]
fn start_spread_is_drawn_per_connection() {
    let text = "topology.dumbbell = {pairs = 3, wireless = 'none'}\n[wired]\nrate = '1 Mbps'\n\
                [transfer]\nsize = '10 KB'\nspread = '2 s'\n";
    let starts = |number, overrides: &[&str]| -> Vec<f64> {
        let result = read(text, overrides).run("basic", 1, number, EVERYTHING).unwrap();
        let first = |each: &ConnectionRun| each.parts[0].events.as_ref().unwrap().time_s[0];
        result.connections.iter().map(first).collect()
    };
    let (one, other) = (starts(0, &[]), starts(1, &[]));
    let all: Vec<f64> = one.iter().chain(&other).copied().collect();
    assert!(all.iter().all(|start| (0.0..=2.0).contains(start)));
    assert!(all.iter().enumerate().all(|(i, start)| !all[..i].contains(start)));
    // Another pair changes nothing for the existing ones.
    assert_eq!(starts(0, &["topology.dumbbell.pairs=2"]), one[..2]);
}
