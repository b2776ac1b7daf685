//! Queue disciplines in whole scenarios.

use lasthop_experiment::{Experiment, Observe, Run};
use lasthop_scenario::Scenario;

/// A bulk transfer and requests over one last hop with rare losses.
const SHARED: &str = r#"
limit = "30 s"

[transfer]
size = "unlimited"

[tcp]
window = "400 KB"

[application.web]
from = "mobile"
to = "fixed"
request.constant = "200 B"
response.constant = "2 KB"
think.constant = "100 ms"

[wired]
rate = "10 Mbps"
delay = "20 ms"

[radio]
rate = "2 Mbps"
channel.frame-loss.loss = 1e-4
"#;

/// As [`SHARED`], with the wired link as bottleneck.
const WIRED: [&str; 2] = ["wired.rate=2 Mbps", "radio.rate=10 Mbps"];

fn run_observed(overrides: &[&str], observe: Observe<'_>) -> Run {
    let scenario = Scenario::parse(SHARED, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"));
    scenario.run("basic", 1, 0, observe).unwrap_or_else(|error| panic!("{error}"))
}

fn run(overrides: &[&str]) -> Run {
    run_observed(overrides, Observe::default())
}

/// Mean response time in seconds.
fn response_time(run: &Run) -> f64 {
    run.applications[0].1.metrics.mean_response_time_s.expect("there are responses")
}

/// Behind a bulk transfer that fills a deep queue, requests take a second. CoDel, PIE and RED keep the queue
/// short, and FQ-CoDel isolates the flows, on a wired link, on a wireless one, and on one with an ARQ. The
/// bulk transfer still has most of the link.
#[test]
fn disciplines_keep_delays_short() {
    let arq = "radio.arq.stop-and-wait={}";
    for (link, setting) in [("wired", &WIRED[..]), ("radio", &[]), ("radio", &[arq])] {
        let with = |queue: &str| run(&[setting, &[&format!("{link}.queue{queue}")]].concat());
        let deep = response_time(&with("=unlimited"));
        for (queue, share) in [
            (".codel={}", 0.3),
            (".red={}", 0.3),
            (".adaptive-red.limit=80 KB", 0.3),
            (".pie={}", 0.3),
            (".dualpi2={}", 0.3),
            (".fq-codel={}", 0.15),
            (".cake={}", 0.15),
        ] {
            let managed = with(queue);
            let found = response_time(&managed);
            assert!(
                found < share * deep,
                "{queue} on {link}, {setting:?}: {found} s, not far below {deep} s"
            );
            let throughput = managed.metrics.connections.throughput_bps;
            assert!(throughput > 1.4e6, "{queue} on {link}, {setting:?}: {throughput} b/s");
            assert!(managed.metrics.connections.aqm_drops > 0, "{queue} on {link}, {setting:?}");
            assert_eq!(managed.metrics.network.ecn_marks, 0, "no packet can be marked");
        }
    }
}

/// An ECN-capable sender has its segments marked instead of dropped: there are no retransmissions, and delays
/// are as short. A queue with marking disabled drops them.
#[test]
fn ecn_capable_senders_are_marked() {
    let clean = ["radio.channel=perfect", "tcp.ecn=true", "tcp.initial_ssthresh=20 segments"];
    for (link, setting) in [("wired", &WIRED[..]), ("radio", &[]), ("radio", &["radio.arq.stop-and-wait={}"])]
    {
        for (queue, limit) in [
            ("codel", ""),
            ("fq-codel", ""),
            ("red", ""),
            ("adaptive-red", "limit=\"80 KB\", hard_drop=false"),
        ] {
            let managed = format!("{link}.queue.{queue}={{{limit}}}");
            let overrides = [setting, &clean, &[&managed]].concat();
            let marked = run(&overrides);
            let ecn_marks = marked.metrics.network.ecn_marks;
            let connections = &marked.metrics.connections;
            assert!(ecn_marks > 10, "{queue} on {link}: {ecn_marks} marks");
            assert_eq!(
                (connections.aqm_drops, connections.retransmitted_segments),
                (0, Some(0)),
                "{queue} on {link}"
            );
            assert!(connections.throughput_bps > 1.4e6, "{queue} on {link}");
            assert!(response_time(&marked) < 0.3, "{queue} on {link}");
            let told = format!("{link}.queue.{queue}.ecn=false");
            let dropped = run(&[&overrides[..], &[&told]].concat());
            assert_eq!(dropped.metrics.network.ecn_marks, 0, "{queue} on {link}");
            assert!(dropped.metrics.connections.aqm_drops > 10, "{queue} on {link}");
        }
    }
}

/// Traced drops match the counters.
#[test]
fn drops_are_counted_per_reason() {
    let observe = Observe { trace: true, ..Observe::default() };
    for queue in ["codel", "fq-codel", "red", "pie", "dualpi2", "cake"] {
        let limit = format!("radio.queue.{queue}.limit=6 packets");
        let result = run_observed(&["radio.channel.frame-loss.loss=0.002", &limit], observe);
        let events = result.connections[0].parts[0].events.as_ref().expect("they are recorded");
        let lost_for = |why: &str| events.reason.iter().filter(|&&reason| reason == why).count() as u64;
        let metrics = &result.connections[0].metrics;
        assert_eq!(lost_for("active-queue"), metrics.aqm_drops, "{queue}");
        assert_eq!(lost_for("queue-full"), metrics.queue_drops, "{queue}");
        assert!(metrics.queue_drops > 0 && metrics.lost_on_air > 0, "{queue}");
        assert_eq!(result.metrics.connections.aqm_drops, metrics.aqm_drops);
    }
}

/// A discipline that never drops changes nothing, and its random stream affects no other.
#[test]
fn a_discipline_has_its_own_random_stream() {
    let seen = |overrides: &[&str]| {
        let result = run(&[overrides, &["limit=10 s", "radio.channel.frame-loss.loss=0.02"]].concat());
        format!("{:?} {:?} {:?}", result.metrics, result.connections, result.applications)
    };
    let idle = ["={min=0, max=1e9, max_probability=0, limit=\"unlimited\"}"];
    for arq in ["radio.arq=none", "radio.arq.stop-and-wait={}", "radio.arq.selective-repeat={}"] {
        let plain = seen(&[arq]);
        for idle in idle {
            let (wired, radio) = (format!("wired.queue.red{idle}"), format!("radio.queue.red{idle}"));
            assert_eq!(seen(&[arq, &wired, &radio]), plain, "{arq}");
        }
    }
}

/// A bulk transfer gets what a policer lets pass, and its drops are those of the discipline; the link behind is never
/// full.
#[test]
fn a_policer_limits_the_rate_without_a_delay() {
    let policed = run(&[
        "radio.queue.policer={ rate = \"1 Mbps\", burst = \"30 KB\" }",
        "tcp.congestion=bbr",
        "tcp.flavour=prr",
    ]);
    let (metrics, web) = (&policed.metrics.connections, response_time(&policed));
    assert!((0.8e6..1.05e6).contains(&metrics.throughput_bps), "{} b/s", metrics.throughput_bps);
    assert!(metrics.aqm_drops > 0 && metrics.queue_drops == 0);
    assert!(web < 0.5 * response_time(&run(&["radio.queue=unlimited"])), "{web} s");
}

/// Where the uplink is too narrow for the acknowledgements of a download, those that wait superseded are dropped, and the download
/// has its link. They are no losses.
#[test]
fn a_narrow_uplink_is_relieved_of_acknowledgements() {
    let with = |filter: &str| {
        let queue = format!("radio.uplink.queue.cake={{ack_filter=\"{filter}\"}}");
        run(&["radio.uplink.rate=15 kbps", &queue])
    };
    let [off, on, aggressive] = ["off", "on", "aggressive"].map(|filter| {
        let connections = with(filter).metrics.connections;
        assert_eq!(connections.queue_drops, 0, "{filter}");
        connections.throughput_bps
    });
    // An ACK of 40 B for two segments of 1460 B of payload lets 1.1 Mb/s pass.
    assert!(off < 1.1e6, "{off} b/s");
    assert!(on > 1.5 * off && aggressive > 1.5 * off, "{off}, {on} and {aggressive} b/s");
}

/// Queue settings apply to one link and one direction.
#[test]
fn queue_settings_apply_per_link_and_direction() {
    let none = run(&["link.fixed-base.queue.codel={}"]);
    assert_eq!(none.metrics.connections.aqm_drops, 0, "the radio link is the narrow one");
    let none = run(&["radio.uplink.queue.codel={}"]);
    assert_eq!(none.metrics.connections.aqm_drops, 0, "data take the other way");
    let some = run(&["link.base-mobile.queue.codel={}"]);
    assert!(some.metrics.connections.aqm_drops > 0);
    let some = run(&["radio.queue.codel={}", "radio.uplink.queue=5 packets"]);
    assert!(some.metrics.connections.aqm_drops > 0);
}

/// Two links with RED, and their two directions, have separate random streams, and runs are reproducible.
#[test]
fn runs_with_random_queues_are_reproducible() {
    let overrides = ["wired.queue.red.max_probability=0.5", "radio.queue.red={}"];
    let [one, other] = [run(&overrides), run(&overrides)];
    assert_eq!(one.metrics, other.metrics);
    assert_eq!(one.applications, other.applications);
}

fn run_with(text: &str, overrides: &[&str], scheme: &str) -> Run {
    let scenario = Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"));
    scenario.run(scheme, 1, 0, Observe::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// A scheme may choose the queue, with the capacity that the scenario states.
#[test]
fn the_scheme_fq_codel_is_the_setting() {
    for (own, scheme, setting) in [
        ("radio.queue=unlimited", "scheme.fq-codel={}", "radio.queue.fq-codel={}"),
        ("radio.queue=9 packets", "scheme.fq-codel={}", "radio.queue.fq-codel={ limit = \"9 packets\" }"),
        (
            "radio.queue.fq-codel={ quantum = \"300 B\" }",
            "scheme.fq-codel={ target = \"20 ms\", interval = \"200 ms\" }",
            "radio.queue.fq-codel={ quantum = \"300 B\", target = \"20 ms\", interval = \"200 ms\" }",
        ),
        (
            "radio.queue.codel={ limit = \"9 packets\" }",
            "scheme.fq-codel={}",
            "radio.queue.fq-codel={ limit = \"9 packets\" }",
        ),
    ] {
        let [chosen, set] =
            [run_with(SHARED, &[own, scheme], "fq-codel"), run_with(SHARED, &[setting], "basic")];
        assert_eq!(chosen.metrics, set.metrics, "{own}");
        assert_eq!(chosen.applications[0].1.metrics, set.applications[0].1.metrics, "{own}");
        assert_ne!(chosen.metrics, run_with(SHARED, &[own], "basic").metrics, "{own}");
    }
}

/// A download beside an upload whose window waits before a slow uplink: 30 KB take 1.2 s at 200 kb/s, and so does an ACK behind
/// them. ACKs that go first wait for one packet at most, 60 ms.
const ASYMMETRIC: &str = r#"
    limit = "120 s"
    [topology.graph]
    wired = ["server-base"]
    radio = ["base-phone"]
    [transfer]
    size = "unlimited"
    [connection.down]
    from = "server"
    to = "phone"
    [connection.up]
    from = "phone"
    to = "server"
    tcp.window = "30 KB"
    [tcp]
    profile = "rfc"
    window = "60 KB"
    [wired]
    rate = "100 Mbps"
    [radio]
    rate = "10 Mbps"
    uplink.rate = "200 kbps"
"#;

#[test]
fn acks_first_frees_downloads_from_uploads() {
    let throughputs = |scheme: &str| {
        let run = run_with(ASYMMETRIC, &[], scheme);
        let of = |name: &str| {
            let connection = run.connections.iter().find(|each| each.name == name).expect(name);
            connection.metrics.throughput_bps
        };
        [of("down"), of("up")]
    };
    let [[slow, alone], [fast, beside]] = ["basic", "acks-first"].map(throughputs);
    // A window per round trip, of 1.2 s or little more than 60 ms.
    assert!((0.9..1.05).contains(&(slow / (60_000.0 * 8.0 / 1.2))), "{slow}");
    assert!(fast > 60_000.0 * 8.0 / 0.065, "{fast}");
    // The upload has what the ACKs leave, of 40 B for two segments of the download each.
    for (download, upload) in [(slow, alone), (fast, beside)] {
        let acks = download / (2920.0 * 8.0) * 40.0 * 8.0;
        let left = (200e3 - acks) * 1460.0 / 1500.0;
        assert!((0.95 * left..1.01 * left).contains(&upload), "{upload} of {left}");
    }
}

#[test]
fn queues_of_schemes_are_refused_with_the_remedy() {
    let refused = |text: &str, overrides: &[&str], scheme: &str| {
        let schemes = format!("schemes=[\"{scheme}\"]");
        let overrides = [overrides, &[&schemes]].concat();
        Scenario::parse(text, "test.toml", &overrides).map(|_| ()).expect_err(scheme).to_string()
    };
    let discipline = &["radio.queue.codel={}"][..];
    for (overrides, scheme, message) in [
        (
            &[][..],
            "fq-codel + acks-first",
            "\"fq-codel\" and \"acks-first\" want different queues before the link",
        ),
        (
            discipline,
            "acks-first",
            "the scenario has a discipline that does not; give these links a capacity or priority = {} as queue",
        ),
        (
            &[],
            "acks-first + packet-fec",
            "\"packet-fec\" hides from the queue which packets \"acks-first\" lets go first",
        ),
        (&[], "fq-codel@base", "\"fq-codel\" installs nothing at base stations that could be at \"base\""),
        (
            &[],
            "acks-first@base",
            "\"acks-first\" changes the wireless links, and cannot be at \"base\" alone",
        ),
        (&["scheme.fq-codel.target=0 s"], "fq-codel", "scheme.fq-codel.target: found \"0 s\""),
    ] {
        let found = refused(ASYMMETRIC, overrides, scheme);
        assert!(found.contains(message), "{scheme}: {found}");
    }
    let cell = r#"
        [topology.cell]
        stations = 2
        [transfer]
        size = "10 KB"
        [wired]
        rate = "1 Mbps"
    "#;
    let found = refused(cell, &[], "fq-codel");
    assert!(found.contains("a cell has queues of its own; leave the scheme out"), "{found}");
}
