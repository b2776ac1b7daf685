//! Shared radios: closed forms of dispatch, conservation, and what is refused.

use lasthop_experiment::{Experiment, Observe, Run, TrafficMetrics};
use lasthop_scenario::Scenario;

const NOTHING: Observe<'_> = Observe { trace: false, series: false, delays: false, pcap: None, qlog: false };

/// The base station has more to send to each of four mobile hosts than the radio carries: 1500 B take 6 ms.
const SATURATED: &str = r#"
limit = "100 s"

[topology.shared-radio]
mobiles = 4

[transfer]
size = "1 B"
start = "99 s"
from = "server"
to = "MH1"

[wired]
rate = "100 Mbps"

[radio]
rate = "2 Mbps"
queue = "20 packets"
arq.stop-and-wait = { retransmissions = 5, backoff.fixed = "0 s" }
"#;

const RATE: f64 = 2e6;

const DISPATCHERS: [&str; 4] = ["\"fifo\"", "\"round-robin\"", "{channel-state={}}", "\"ideal\""];

/// The first mobile host is in a fade all the time.
const FADE: &str = "link.base-MH1.channel.two-state={good=\"1 ns\", bad=\"1000000 s\", bad_ber=1.0}";

/// Each retransmission waits.
const BACKOFF: &str = "radio.arq.stop-and-wait.backoff.fixed=\"50 ms\"";

fn read(text: &str, overrides: &[String]) -> Result<Scenario, String> {
    let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
    Scenario::parse(text, "test.toml", &overrides).map_err(|error| error.to_string())
}

/// Datagrams to each mobile host, at the rate of the radio and a little apart, until 80 s.
fn saturating(dispatch: &str, others: &[&str]) -> Vec<String> {
    let to = |number: u32| {
        format!(
            "traffic.t{number}={{from=\"server\", to=\"MH{number}\", packet_size=\"1500 B\", start=\"{number} us\", \
             stop=\"80 s\", law={{poisson={{rate=\"2 Mbps\"}}}}}}"
        )
    };
    let given = others.iter().map(|other| (*other).to_owned());
    (1..=4).map(to).chain([format!("shared.dispatch={dispatch}")]).chain(given).collect()
}

/// Datagrams to a mobile host at a constant rate, until 80 s.
fn constant(number: u32, start: &str, rate: &str) -> String {
    format!(
        "traffic.t{number}={{from=\"server\", to=\"MH{number}\", packet_size=\"1500 B\", start=\"{start}\", \
         stop=\"80 s\", law={{constant={{rate=\"{rate}\"}}}}}}"
    )
}

fn run(dispatch: &str, others: &[&str]) -> Run {
    let scenario = read(SATURATED, &saturating(dispatch, others)).unwrap_or_else(|error| panic!("{error}"));
    scenario.run("basic", 1, 0, NOTHING).unwrap_or_else(|error| panic!("{error}"))
}

fn traffic(run: &Run, number: u32) -> &TrafficMetrics {
    &run.traffic.iter().find(|each| each.0 == format!("t{number}")).expect("it was given").1
}

/// Throughput to a mobile host while the radio is saturated, as a share of the rate.
fn share(run: &Run, number: u32) -> f64 {
    traffic(run, number).delivered_packets as f64 * 1500.0 * 8.0 / 80.0 / RATE
}

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    // Four standard deviations of the number of packets, of 13,333, that are admitted to one of four mobile hosts.
    assert!((found - expected).abs() < 0.015, "found {found}, expected {expected}");
}

/// Without errors N mobile hosts share the rate, and the radio is busy all the time, however it is dispatched.
#[test]
fn the_rate_is_shared() {
    for dispatch in DISPATCHERS {
        let run = run(dispatch, &[]);
        for number in 1..=4 {
            assert_near(share(&run, number), 0.25);
        }
        assert_eq!(run.metrics.network.link_failures, 0);
    }
}

/// Under FIFO each packet to the faded mobile host takes six attempts, for which all others wait: in nine attempts
/// each other has one. Round robin wastes every fourth attempt. Channel-state dependent dispatch wastes one attempt
/// of 6 ms after each 100 ms, and until the next of the others' attempts ends. A base station that knows the channels
/// wastes none.
#[test]
fn a_fade_blocks_the_others_as_the_dispatcher_lets_it() {
    for (dispatch, expected) in
        DISPATCHERS.into_iter().zip([1.0 / 9.0, 1.0 / 4.0, 17.0 / 18.0 / 3.0, 1.0 / 3.0])
    {
        let run = run(dispatch, &[FADE]);
        assert_eq!(traffic(&run, 1).delivered_packets, 0);
        for number in 2..=4 {
            assert_near(share(&run, number), expected);
        }
    }
}

/// A mobile host in a fade gets a packet at the start of each second, whose six attempts of 6 ms and five backoffs of
/// 50 ms take 286 ms. Under FIFO three of ten packets to another mobile host wait until then. Otherwise all are sent in
/// the backoffs, at once, and each arrives 7.12 ms after it was sent: 0.12 ms on the wire, 6 ms on the air, 1 ms of delay.
#[test]
fn backoffs_block_the_others_only_under_fifo() {
    let blocked = (283.12 + 189.12 + 95.12 + 7.0 * 7.12) / 10.0;
    for (dispatch, expected_ms) in DISPATCHERS.into_iter().zip([blocked, 7.12, 7.12, 7.12]) {
        let overrides = [
            constant(1, "0 s", "12 kbps"),
            constant(2, "10 ms", "120 kbps"),
            format!("shared.dispatch={dispatch}"),
            BACKOFF.to_owned(),
            FADE.to_owned(),
            "radio.delay=\"1 ms\"".to_owned(),
        ];
        let scenario = read(SATURATED, &overrides).unwrap_or_else(|error| panic!("{error}"));
        let run = scenario.run("basic", 1, 0, NOTHING).unwrap_or_else(|error| panic!("{error}"));
        let other = traffic(&run, 2);
        assert_eq!((other.delivered_packets, other.lost_packets), (800, 0), "{dispatch}");
        let delay_ms = other.mean_delay_s.expect("packets arrived") * 1e3;
        assert!(
            (delay_ms - expected_ms).abs() < 1e-6,
            "{dispatch}: {delay_ms} ms, expected {expected_ms} ms"
        );
    }
}

/// All mobile hosts are in a fade, and their packets arrive together: the radio waits for the first backoff. FIFO makes
/// the six attempts of a packet in 286 ms. The other dispatchers make those of four packets in 304 ms: five rounds of
/// 56 ms, of which four attempts take 24 ms, and one round without backoff.
#[test]
fn the_radio_waits_for_the_first_backoff_that_ends() {
    let given = (1..=4)
        .flat_map(|number| [constant(number, "0 s", "2 Mbps"), FADE.replace("MH1", &format!("MH{number}"))]);
    let given: Vec<String> = given.collect();
    let mut others = vec!["limit=\"80 s\"", "transfer.start=\"79 s\"", BACKOFF];
    others.extend(given.iter().map(String::as_str));
    for (dispatch, rate) in
        DISPATCHERS.into_iter().zip([6.0 / 0.286, 24.0 / 0.304, 24.0 / 0.304, 24.0 / 0.304])
    {
        let attempts = run(dispatch, &others).metrics.network.link_attempts as f64;
        assert!((attempts - 80.0 * rate).abs() < 24.0, "{dispatch}: {attempts}, expected {}", 80.0 * rate);
    }
}

/// If all mobile hosts are deferred, the one whose time ends first has the next attempt, so that each has a quarter of
/// them.
#[test]
fn no_mobile_host_starves_if_all_are_deferred() {
    let others = ["shared.dispatch.channel-state.wait=\"1000 s\"", "radio.channel.frame-loss.loss=0.8"];
    let run = run("{channel-state={}}", &others);
    for number in 1..=4 {
        assert_near(share(&run, number), 0.2 / 4.0);
    }
}

/// An attempt that arrives ends the deferral. The first mobile host is in a fade from 70 to 71 s, alone, and deferred
/// long after. From 72 to 80 s it has half of the attempts, and the second one the other half.
#[test]
fn a_success_ends_the_deferral() {
    let others = [
        constant(1, "70 s", "2 Mbps"),
        constant(2, "72 s", "2 Mbps"),
        "link.base-MH1.channel.fixed-periods={good=\"70 s\", bad=\"1 s\"}".to_owned(),
        "shared.dispatch={channel-state={wait=\"1000 s\"}}".to_owned(),
    ];
    let scenario = read(SATURATED, &others).unwrap_or_else(|error| panic!("{error}"));
    let run = scenario.run("basic", 1, 0, NOTHING).unwrap_or_else(|error| panic!("{error}"));
    let delivered = traffic(&run, 2).delivered_packets;
    let (attempts, queue) = (8.0 / 0.006, 20.0);
    assert!((delivered as f64 - attempts / 2.0 - queue).abs() < 3.0, "{delivered}");
}

/// The radio is never idle while packets wait: attempts fill the time, whoever is served. Every packet arrives, is
/// dropped by a queue, or is given up.
#[test]
fn the_radio_conserves_work_and_packets() {
    for dispatch in DISPATCHERS {
        let run = run(
            dispatch,
            &["radio.channel.frame-loss.loss=0.3", "radio.arq.stop-and-wait.retransmissions=1"],
        );
        let (mut sent, mut over) = (0, 0);
        for number in 1..=4 {
            let metrics = traffic(&run, number);
            assert!(metrics.lost_packets > 0, "{dispatch}");
            sent += metrics.sent_packets;
            over += metrics.delivered_packets + metrics.lost_packets;
        }
        assert_eq!(sent, over, "{dispatch}");
        let busy = run.metrics.network.link_attempts as f64 * 0.006;
        assert!((80.0..81.5).contains(&busy), "{dispatch}: {busy} s");
    }
}

/// With one queue its capacity is for all packets together, otherwise for those of each mobile host. Neither counts
/// the packet that is served, or whose turn is next.
#[test]
fn one_queue_has_one_capacity() {
    let text = SATURATED.replace("[radio]\nrate = \"2 Mbps\"", "[radio]\nrate = \"1 bps\"");
    for (dispatch, expected) in [("\"fifo\"", 1 + 20), ("\"round-robin\"", 4 * (1 + 20))] {
        for capacity in ["radio.queue=\"20 packets\"", "radio.queue=\"30000 B\""] {
            let scenario =
                read(&text, &saturating(dispatch, &[capacity])).unwrap_or_else(|error| panic!("{error}"));
            let run = scenario.run("basic", 1, 0, NOTHING).unwrap_or_else(|error| panic!("{error}"));
            let each = |number| traffic(&run, number).sent_packets - traffic(&run, number).lost_packets;
            assert_eq!((1..=4).map(each).sum::<u64>(), expected, "{dispatch}, {capacity}");
        }
    }
}

/// Mobile hosts meet the fades and random numbers that they meet on links of their own: another dispatcher, or another
/// mobile host, leaves them unchanged. A single mobile host is served as on its own link.
#[test]
fn a_single_mobile_host_is_served_as_on_a_link_of_its_own() {
    let text = r#"
        limit = "60 s"
        [topology.graph]
        wired = ["server-base"]
        KIND = ["base-phone"]
        [transfer]
        size = "unlimited"
        from = "server"
        to = "phone"
        [wired]
        rate = "10 Mbps"
        delay = "5 ms"
        [radio]
        rate = "2 Mbps"
        queue = "30 packets"
        channel.two-state = { good = "1 s", bad = "100 ms", good_ber = 1e-6, bad_ber = 1e-2 }
        [radio.arq.stop-and-wait]
        retransmissions = 8
        backoff.uniform = "20 ms"
    "#;
    for scheme in ["basic", "ebsn", "snoop"] {
        let results = ["radio", "shared"].map(|kind| {
            let scenario = read(&text.replace("KIND", kind), &[]).unwrap_or_else(|error| panic!("{error}"));
            let run = scenario.run(scheme, 1, 0, NOTHING).unwrap_or_else(|error| panic!("{error}"));
            let connection = &run.connections[0].metrics;
            assert!(connection.delivered_bytes > 1_000_000, "{scheme}");
            (format!("{connection:?}"), run.metrics.network.link_attempts, run.metrics.network.link_failures)
        });
        assert_eq!(results[0], results[1], "{scheme}");
    }
}

/// All schemes that need no more than an ARQ run on a shared radio, with uploads as well.
#[test]
fn schemes_and_uploads_use_shared_radios() {
    let text = r#"
        limit = "300 s"
        [topology.shared-radio]
        mobiles = 3
        [transfer]
        size = "200 kB"
        [connection.1]
        [connection.2]
        [connection.3]
        from = "MH3"
        to = "server"
        [connection.between]
        from = "MH1"
        to = "MH2"
        [wired]
        rate = "10 Mbps"
        [radio]
        rate = "2 Mbps"
        channel.two-state = { good = "1 s", bad = "100 ms", good_ber = 1e-6, bad_ber = 1e-2 }
        arq.stop-and-wait = { retransmissions = 5, backoff.fixed = "0 s" }
    "#;
    for dispatch in DISPATCHERS {
        let scenario =
            read(text, &[format!("shared.dispatch={dispatch}")]).unwrap_or_else(|error| panic!("{error}"));
        let split = scenario.run("i-tcp", 1, 0, NOTHING).expect_err("the base station would split it twice");
        assert!(split.to_string().contains("from one mobile host of a shared radio to another"), "{split}");
        for scheme in ["basic", "ebsn", "snoop", "snoop + ebsn", "source-quench"] {
            let run = scenario.run(scheme, 1, 0, NOTHING).unwrap_or_else(|error| panic!("{scheme}: {error}"));
            for connection in &run.connections {
                assert_eq!(
                    connection.metrics.delivered_bytes, 200_000,
                    "{dispatch}, {scheme}, {}",
                    connection.name
                );
            }
        }
    }
}

/// Each with its location, what was found, and what would be right.
#[test]
fn what_a_shared_radio_cannot_have_is_refused() {
    let refused = |others: &[&str], expected: &str| {
        let error = read(SATURATED, &saturating("\"fifo\"", others)).expect_err(expected);
        assert!(error.contains(expected), "{error}");
    };
    refused(&["radio.arq=none"], "has no ARQ on links that share a radio");
    refused(&["radio.rate={steps={times=[\"1 s\"], rates=[\"1 Mbps\", \"2 Mbps\"]}}"], "rate");
    refused(&["radio.queue={priority={}}"], "change dispatch in [shared]");
    refused(&["shared.dispatch={channel-state={wait=\"0 s\"}}"], "found 0 s, expected more than zero");
    refused(&["topology.shared-radio.mobiles=0"], "expected 1 to 1000");
    let priority = ["radio.queue={priority={}}", "shared.dispatch=\"round-robin\""];
    read(SATURATED, &saturating("\"fifo\"", &priority)).unwrap_or_else(|error| panic!("{error}"));
    let text = r#"
        limit = "1 s"
        [topology.graph]
        wired = ["server-base", "a-host", "b-host"]
        shared = ["base-a", "base-b"]
        [transfer]
        from = "server"
        to = "host"
        size = "1 kB"
        [connection.1]
        via = ["base", "a"]
        [connection.2]
        via = ["base", "b"]
        [wired]
        rate = "1 Mbps"
        [radio]
        rate = "1 Mbps"
        arq.stop-and-wait = {}
    "#;
    let error = read(text, &[]).expect_err("two ways to a host");
    assert!(
        error.contains("the radio of base would have to send packets for host by another link"),
        "{error}"
    );
}
