//! Request/response applications in whole scenarios.

use lasthop_base::{Bytes, Streams};
use lasthop_experiment::{ApplicationMetrics, ApplicationRun, Ended, Experiment, Observe, Run};
use lasthop_proto::application::{ApplicationKind, Distribution};
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Flavour, Settings};
use lasthop_scenario::Scenario;
use lasthop_testing::scenario_texts::SCENARIO;
use lasthop_testing::schemes::{extending, installed};

const EVERYTHING: Observe<'_> = Observe { trace: true, series: true, delays: false, pcap: None, qlog: false };

fn read(text: &str, overrides: &[&str]) -> Scenario {
    Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario, scheme: &str, number: u64) -> Run {
    scenario.run(scheme, 1, number, Observe::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn application<'a>(run: &'a Run, name: &str) -> &'a ApplicationMetrics {
    let found = run.applications.iter().find(|each| each.0 == name);
    &found.unwrap_or_else(|| panic!("there is no {name}")).1.metrics
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "found {found}, expected {expected}");
}

/// A workstation and a server behind a switch, and an unrelated transfer.
const OFFICE: &str = r#"
limit = "1000 s"

[topology.graph]
wired = ["desk-switch", "switch-server", "a-b"]

[transfer]
size = "unlimited"
start = "999 s"
from = "a"
to = "b"

[tcp]
profile = "rfc"
packet_size = "1000 B"
ack_every = 1
handshake = false
close = false

[wired]
rate = "1 Mbps"
delay = "10 ms"

[application.web]
from = "desk"
to = "server"
request.constant = "460 B"
response.constant = "960 B"
think.constant = "100 ms"
"#;

/// By hand: 4 ms and 10 ms over each of two links, then 8 ms and 10 ms for a packet of 1000 B queued behind
/// an acknowledgement that takes 0.32 ms over the first of them.
const TOOK: f64 = 2.0 * 0.014 + 0.000_32 + 2.0 * 0.018;

#[test]
fn cycle_times_by_hand() {
    for (think, seconds) in [("100 ms", 0.1), ("1 s", 1.0), ("20 s", 20.0)] {
        let think = format!("application.web.think.constant={think}");
        let result = run(&read(OFFICE, &[&think]), "basic", 0);
        assert_eq!(result.ended, Ended::TimeLimit);
        let web = application(&result, "web");
        assert_close(web.mean_response_time_s.unwrap(), TOOK);
        assert_close(web.greatest_response_time_s.unwrap(), TOOK);
        let cycles = 1000.0 / (seconds + TOOK);
        assert_eq!(web.responses, cycles.floor() as u64);
        assert_eq!(web.requests, ((1000.0 - seconds) / (seconds + TOOK)).floor() as u64 + 1);
        assert_eq!(web.response_bytes, 960 * web.responses);
        assert!([460 * web.responses, 460 * web.requests].contains(&web.request_bytes));
        assert_eq!((web.retransmitted_segments, web.timeouts, web.lost_packets), (Some(0), Some(0), 0));
    }
}

/// A run waits for the responses to a finite number of requests; an unbounded application is not awaited.
#[test]
fn a_run_waits_for_a_finite_number_of_requests() {
    let numbered = ["application.web.requests=5"];
    let result = run(
        &read(OFFICE, &[&numbered[..], &["transfer.size=1 B", "transfer.start=0 s"]].concat()),
        "basic",
        0,
    );
    assert_eq!(result.ended, Ended::Finished);
    assert_eq!(application(&result, "web").responses, 5);
    let never = run(&read(OFFICE, &["transfer.size=1 B", "transfer.start=0 s"]), "basic", 0);
    assert_eq!(never.ended, Ended::Finished);
    assert_eq!(application(&never, "web").requests, 0, "the transfer is over while it thinks");
    // A stop time does not end the run, and precedes the time limit.
    let stopped = ["application.web.stop=650 ms", "transfer.size=1 B", "transfer.start=0 s"];
    assert_eq!(run(&read(OFFICE, &stopped), "basic", 0).metrics, never.metrics);
    let both = run(&read(OFFICE, &[&numbered[..], &stopped].concat()), "basic", 0);
    assert_eq!((both.ended, application(&both, "web").responses), (Ended::Finished, 4));
    // An application that starts after its stop time makes no request.
    let late = ["application.web.start=600 ms", numbered[0]];
    let late = run(&read(OFFICE, &[&late[..], &stopped].concat()), "basic", 0);
    assert_eq!((late.ended, application(&late, "web").requests), (Ended::Finished, 0));
    assert_eq!(application(&late, "web").mean_response_time_s, None);
    assert_eq!(application(&late, "web").greatest_response_time_s, None);
}

/// Counters with a warm-up plus those of the warm-up alone equal those of the whole run.
#[test]
fn the_warmup_is_excluded() {
    let random = [
        "application.web.request.exponential=500 B",
        "application.web.response.lognormal={median=\"3 KB\", sigma=1.5}",
        "application.web.think.exponential=200 ms",
        "wired.queue=3 packets",
    ];
    let of = |more: &[&str]| {
        let result = run(&read(OFFICE, &[&random, more].concat()), "basic", 0);
        application(&result, "web").clone()
    };
    let start = ["transfer.start=0 s"];
    let all = of(&["limit=300 s", start[0]]);
    let (before, after) = (of(&["limit=120 s", start[0]]), of(&["limit=300 s", "warmup=120 s", start[0]]));
    assert!(all.lost_packets > before.lost_packets && before.lost_packets > 0);
    let counts = |each: &ApplicationMetrics| {
        [
            each.requests,
            each.responses,
            each.request_bytes,
            each.response_bytes,
            each.retransmitted_segments.expect("TCP counts them"),
            each.timeouts.expect("TCP counts them"),
            each.lost_packets,
        ]
    };
    let sum: Vec<u64> = counts(&before).iter().zip(counts(&after)).map(|(a, b)| a + b).collect();
    assert_eq!(sum, counts(&all));
    let total = |each: &ApplicationMetrics| each.mean_response_time_s.unwrap() * each.responses as f64;
    assert_close(total(&before) + total(&after), total(&all));
    let greatest = [&before, &after].map(|each| each.greatest_response_time_s.unwrap());
    assert_eq!(Some(greatest[0].max(greatest[1])), all.greatest_response_time_s);
    assert_ne!(greatest[0], greatest[1]);
}

/// Random distributions over lossless links, with one packet per response: the response time is linear in the
/// sizes, so its mean and the mean cycle follow from the means. Within 5 standard errors: one false alarm in
/// about two million seeds for each.
#[test]
fn random_sizes_and_think_times_have_their_means() {
    let laws = [
        "application.web.request.uniform={least=\"1 B\", most=\"959 B\"}",
        "application.web.response.uniform={least=\"101 B\", most=\"901 B\"}",
        "application.web.think.exponential=2 s",
        "limit=20000 s",
        "transfer.start=19999 s",
    ];
    let result = run(&read(OFFICE, &laws), "basic", 0);
    let web = application(&result, "web");
    let n = web.responses as f64;
    let seconds = |bytes: f64| bytes * 8e-6;
    // Each message crosses two links, with 40 B of headers.
    let both = |bytes: f64| 2.0 * (seconds(bytes + 40.0) + 0.010);
    let (request, response) = (480.0, 501.0);
    let response_time = both(request) + seconds(40.0) + both(response);
    let variance = |values: f64| (values * values - 1.0) / 12.0;
    let deviation = 2.0 * seconds((variance(959.0) + variance(801.0)).sqrt());
    let mean = web.mean_response_time_s.unwrap();
    assert!((mean - response_time).abs() < 5.0 * deviation / n.sqrt(), "{mean}, not {response_time}");
    // The incomplete last cycle is not counted.
    let cycle = 2.0 + response_time;
    let error = 5.0 * 2.0 / n.sqrt();
    assert!((20_000.0 / n - cycle).abs() < error + cycle / n, "{}, not {cycle}", 20_000.0 / n);
    let each = |bytes: u64, mean: f64, values: f64| {
        let found = bytes as f64 / n;
        assert!((found - mean).abs() < 5.0 * (variance(values) / n).sqrt() + mean / n, "{found}, not {mean}");
    };
    each(web.request_bytes, request, 959.0);
    each(web.response_bytes, response, 801.0);
}

/// Several dialogues in both directions over lossy last hops, with bulk transfers and background traffic.
fn lossy(schemes: &str) -> String {
    format!(
        r#"
limit = "2 h"
schemes = [{schemes}]

[topology.graph]
wired = ["server-switch", "desk-switch", "switch-base", "switch-base2"]
radio = ["base-phone", "base2-laptop"]

[transfer]
size = "60 KB"
from = "server"
to = "phone"

[application.web]
kind = "http"
from = "phone"
to = "server"
requests = 8
think.exponential = "500 ms"

[application.database]
kind = "database"
from = "laptop"
to = "desk"
requests = 12
think.exponential = "300 ms"

[application.mail]
from = "desk"
to = "server"
request.exponential = "200 B"
response.pareto = {{ least = "1 KB", most = "50 KB", shape = 1.1 }}
think.uniform = {{ least = "0 s", most = "1 s" }}
requests = 6

[application.peer]
from = "phone"
to = "laptop"
request.uniform = {{ least = "1 B", most = "4 KB" }}
response.lognormal = {{ median = "2 KB", sigma = 1 }}
think.constant = "0 s"
start = "1 s"
requests = 10

[application.push]
kind = "email"
from = "server"
to = "phone"
requests = 3
think.constant = "1 s"
response.exponential = "5 KB"

[traffic.cross]
from = "switch"
to = "laptop"
packet_size = "200 B"
law.poisson.rate = "20 kbps"

[tcp]
close = true

[wired]
rate = "2 Mbps"
delay = "5 ms"
queue = "8 packets"

[radio]
rate = "1 Mbps"
mtu = "256 B"
fec = "bch-255-131-18"
channel.frame-loss.loss = 0.05

[radio.arq.stop-and-wait]
retransmissions = 3
backoff.uniform = "10 ms"

# Losses may last longer than a base station waits.
[scheme]
i-tcp.wireless.user_timeout = "2 h"
metp.wireless.user_timeout = "2 h"
vs-tcp.wireless.user_timeout = "2 h"
"#
    )
}

/// The sum of the sizes drawn from the stream `name`.
fn drawn(law: Distribution<Bytes>, name: &str, run: u64, count: u64) -> u64 {
    let mut stream = Streams::new(1, run).stream(name);
    (0..count).map(|_| law.draw(&mut stream).0).sum()
}

/// For every scheme and all losses, each request is answered once, and message number k has the same size.
#[test]
fn every_request_is_answered_once_with_every_scheme() {
    let mut lost = 0;
    for number in 0..6 {
        for scheme in extending(&Schemes::default(), &read(&lossy("\"basic\""), &[]).tcp) {
            let scenario = read(&lossy(&format!("{:?}", scheme.name())), &[]);
            let result = run(&scenario, scheme.name(), number);
            let told = format!("{}, run {number}", scheme.name());
            assert_eq!(result.ended, Ended::Finished, "{told}");
            assert!(result.metrics.connections.finished, "{told}");
            for (name, ApplicationRun { metrics, .. }) in &result.applications {
                let stated = &scenario.application[name];
                let count = stated.requests.unwrap();
                assert_eq!((metrics.requests, metrics.responses), (count, count), "{name}: {told}");
                let request = drawn(stated.request.unwrap(), &format!("request:{name}"), number, count);
                let response = drawn(stated.response.unwrap(), &format!("response:{name}"), number, count);
                assert_eq!(metrics.request_bytes, request, "{name}: {told}");
                assert_eq!(metrics.response_bytes, response, "{name}: {told}");
                lost += metrics.lost_packets;
            }
        }
    }
    assert!(lost > 100, "{lost}");
}

/// Random networks with random applications. Each scheme has worlds of its own, so that a new one changes no others.
#[test]
fn every_request_is_answered_once_in_random_worlds() {
    let schemes = Schemes::default();
    let mut answered = 0;
    for (scheme, number) in
        schemes.all().flat_map(|scheme| (0..12).map(move |number| (scheme.name(), number)))
    {
        let mut random = Streams::new(5, number).stream(&format!("worlds:{scheme}"));
        let extends = |flavour| {
            installed(&schemes, scheme).mismatch(&Settings { flavour, ..Settings::default() }).is_none()
        };
        let flavours = [
            (Flavour::Tahoe, "tahoe"),
            (Flavour::Reno, "reno"),
            (Flavour::NewReno, "newreno"),
            (Flavour::Sack, "sack"),
        ];
        let flavours: Vec<_> =
            flavours.into_iter().filter_map(|(flavour, name)| extends(flavour).then_some(name)).collect();
        // Some schemes extend today's senders only.
        let (profiles, flavours) = match flavours.is_empty() {
            true => (vec!["linux"], vec!["prr"]),
            false => (vec!["rfc", "ns2", "ebsn"], flavours),
        };
        let mut pick = |from: &[&str]| from[random.below(from.len() as u64) as usize].to_owned();
        let hosts = ["server", "desk", "switch", "base", "phone", "laptop"];
        let mut overrides = vec![
            format!("tcp.profile={}", pick(&profiles)),
            format!("tcp.flavour={}", pick(&flavours)),
            format!("radio.channel.frame-loss.loss={}", pick(&["0", "0.02", "0.1"])),
            format!("wired.queue={}", pick(&["2 packets", "20 packets", "unlimited"])),
            format!("radio.rate={}", pick(&["100 kbps", "1 Mbps"])),
        ];
        for name in ["web", "database", "mail", "peer", "push"] {
            let from = pick(&hosts);
            let to = loop {
                let to = pick(&hosts);
                if to != from {
                    break to;
                }
            };
            let response =
                pick(&["constant=1 B", "exponential=3 KB", "uniform={least=\"1 B\", most=\"9 KB\"}"]);
            overrides.push(format!("application.{name}.from={from}"));
            overrides.push(format!("application.{name}.to={to}"));
            overrides.push(format!("application.{name}.response.{response}"));
            overrides.push(format!("application.{name}.request.exponential={}", pick(&["20 B", "2 KB"])));
        }
        let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
        let scenario = read(&lossy(&format!("{scheme:?}")), &overrides);
        let result = run(&scenario, scheme, number);
        assert_eq!(result.ended, Ended::Finished, "{scheme}, {overrides:?}");
        for (name, ApplicationRun { metrics, .. }) in &result.applications {
            let stated = &scenario.application[name];
            let count = stated.requests.unwrap();
            assert_eq!((metrics.requests, metrics.responses), (count, count), "{scheme}, {overrides:?}");
            let response = drawn(stated.response.unwrap(), &format!("response:{name}"), number, count);
            assert_eq!(metrics.response_bytes, response, "{name} with {scheme}, {overrides:?}");
            answered += metrics.responses;
        }
    }
    assert!(answered > 5_000);
}

/// Base stations split connections of applications too: acknowledged responses may not have reached the
/// client, and more segments cross the air than the server sends.
#[test]
fn connections_of_applications_are_split() {
    let text = r#"
        limit = "1000 s"
        schemes = ["basic", "i-tcp"]
        [tcp]
        profile = "rfc"
        [transfer]
        size = "1 B"
        [application.web]
        from = "mobile"
        to = "fixed"
        request.constant = "400 B"
        response.constant = "60 KB"
        think.constant = "1 s"
        requests = 30
        [wired]
        rate = "10 Mbps"
        delay = "100 ms"
        [radio]
        rate = "1 Mbps"
        channel.frame-loss.loss = 0.04
    "#;
    let [whole, split] = ["basic", "i-tcp"].map(|scheme| {
        let patient = ["scheme.i-tcp.wireless.user_timeout=1 h"];
        let result = run(&read(text, &patient), scheme, 0);
        assert_eq!(result.ended, Ended::Finished, "{scheme}");
        application(&result, "web").clone()
    });
    // Nothing is lost on the wired part, so only the wireless part has retransmissions.
    assert!(whole.retransmitted_segments > Some(40), "{whole:?}");
    assert!(split.retransmitted_segments < Some(10), "{split:?}");
    assert!(split.lost_packets > 50, "{split:?}");
    assert!(split.mean_response_time_s < whole.mean_response_time_s);
}

/// A browser leaves connections unused for which it has no object. The run does not wait for them at the base station.
#[test]
fn runs_do_not_wait_for_unused_split_connections() {
    let text = r#"
        limit = "300 s"
        schemes = ["basic", "i-tcp"]
        [application.web]
        kind = "page"
        from = "mobile"
        to = "fixed"
        think.constant = "1 s"
        requests = 2
        page = { http = "1.1", objects = [{ count = 1, size.constant = "10 KB" }] }
        [application.sensor]
        kind = "telemetry"
        from = "mobile"
        to = "fixed"
        [wired]
        rate = "10 Mbps"
        delay = "25 ms"
        [radio]
        rate = "2 Mbps"
    "#;
    for scheme in ["basic", "i-tcp"] {
        assert_eq!(run(&read(text, &[]), scheme, 0).ended, Ended::Finished, "{scheme}");
    }
}

/// Notices of a base station reach the senders of applications at either end.
#[test]
fn senders_of_applications_react_to_notices() {
    let fades = "radio.channel.fixed-periods={good=\"2 s\", bad=\"5 s\"}";
    let of = |scheme: &str, [from, to]: [&str; 2], [request, response]: [u32; 2]| {
        let table = format!(
            "application.web={{from={from:?}, to={to:?}, request={{constant=\"{request} B\"}}, \
             response={{constant=\"{response} B\"}}, think={{constant=\"100 ms\"}}, requests=10}}"
        );
        let result = run(&read(SCENARIO, &[fades, &table, "limit=10000 s"]), scheme, 0);
        assert_eq!(result.ended, Ended::Finished);
        application(&result, "web").timeouts.expect("TCP counts them")
    };
    // EBSN prevents timeouts of the wired host: for responses to the mobile host, or for requests to it.
    for (ends, sizes) in [(["mobile", "fixed"], [100, 8_000]), (["fixed", "mobile"], [8_000, 100])] {
        let [local, ebsn] = ["local-recovery", "ebsn"].map(|scheme| of(scheme, ends, sizes));
        assert!(ebsn < local, "{ends:?}: {ebsn}, not less than {local}");
    }
}

/// Random streams are named after applications: another application or scheme does not affect them.
#[test]
fn another_application_leaves_random_streams_unchanged() {
    let text = |more: &str| {
        format!("{OFFICE}[application.other]\nkind = \"database\"\nfrom = \"a\"\nto = \"b\"\n{more}")
    };
    let random = ["application.web.kind=http", "application.web.response.exponential=9 KB"];
    let alone = run(&read(OFFICE, &random), "basic", 0);
    let beside = run(&read(&text(""), &random), "basic", 0);
    assert_eq!(application(&alone, "web"), application(&beside, "web"));
    assert_eq!(beside.applications.len(), 2);
    let names: Vec<_> = beside.applications.iter().map(|each| each.0.as_str()).collect();
    assert_eq!(names, ["web", "other"]);
    let later = run(&read(&text("requests = 3"), &random), "basic", 1);
    assert_eq!(application(&later, "other").responses, 3);
    assert_ne!(application(&later, "web"), application(&alone, "web"));
}

/// Losses of one application are not counted for another.
#[test]
fn losses_are_counted_per_application() {
    let text = format!(
        "{OFFICE}[application.other]\nkind = \"database\"\nfrom = \"a\"\nto = \"b\"\nrequests = 20\n"
    );
    let flood = "application.web.response.constant=60 KB";
    let full = [flood, "link.desk-switch={rate=\"100 kbps\", queue=\"2 packets\"}"];
    let result = run(&read(&text, &full), "basic", 0);
    assert!(application(&result, "web").lost_packets > 100);
    assert_eq!(application(&result, "other").lost_packets, 0);
    let elsewhere = [flood, "link.a-b={rate=\"100 kbps\", queue=\"0 packets\"}"];
    let result = run(&read(&text, &elsewhere), "basic", 0);
    assert_eq!(application(&result, "web").lost_packets, 0);
    assert!(application(&result, "other").lost_packets > 0);
}

/// Losses of requests and of responses count. Without an ARQ, every failed attempt on the air is a lost packet.
#[test]
fn losses_of_both_directions_are_counted() {
    let text = r#"
        limit = "1000 s"
        [wired]
        rate = "10 Mbps"
        [radio]
        rate = "2 Mbps"
        channel.frame-loss.loss = 0.05
        [application.web]
        from = "mobile"
        to = "fixed"
        request.constant = "20 KB"
        response.constant = "20 KB"
        think.constant = "0 s"
        requests = 20
    "#;
    let lost = |channels: &[&str]| {
        let result = run(&read(text, channels), "basic", 0);
        let lost = application(&result, "web").lost_packets;
        assert_eq!(lost, result.metrics.network.link_failures);
        lost
    };
    let perfect = "radio.uplink.channel=perfect";
    let [both, down] = [&[][..], &[perfect]].map(lost);
    assert!(down > 10 && both > down + 10, "{both} in both directions, {down} in one");
}

/// A scheme that requires wireless links with local recovery checks those of applications, too.
#[test]
fn a_scheme_may_serve_an_application_only() {
    let text = |arq: &str| {
        format!(
            "schemes = [\"ebsn\"]\ntopology.graph = {{wired = [\"a-b\"], radio = [\"b-c\"]}}\n\
             [transfer]\nsize = \"1 KB\"\nfrom = \"a\"\nto = \"b\"\n\
             [wired]\nrate = \"1 Mbps\"\n[radio]\nrate = \"1 Mbps\"\n{arq}\n\
             [application.web]\nkind = \"http\"\nfrom = \"a\"\nto = \"c\"\nrequests = 2\n"
        )
    };
    let result = run(&read(&text("arq.stop-and-wait = {}"), &[]), "ebsn", 0);
    assert_eq!((result.ended, application(&result, "web").responses), (Ended::Finished, 2));
    let error =
        Scenario::parse::<&str>(&text(""), "test.toml", &[]).expect_err("there is no ARQ").to_string();
    assert!(error.contains("needs a link that recovers its own losses"), "{error}");
}

/// Without applications a run is unchanged; with one, a transfer gets less of the shared link, and the
/// application has longer response times.
#[test]
fn an_application_beside_a_bulk_transfer() {
    let shared = ["transfer.from=server", "transfer.to=desk", "transfer.start=0 s", "wired.queue=30 packets"];
    let web = ["application.web.response.constant=20 KB", "application.web.think.constant=500 ms"];
    let alone = run(&read(OFFICE, &web), "basic", 0);
    let beside = run(&read(OFFICE, &[&shared[..], &web].concat()), "basic", 0);
    let later = ["application.web.start=999 s"];
    let transfer = run(&read(OFFICE, &[&shared[..], &web, &later].concat()), "basic", 0);
    let rate = |run: &Run| run.metrics.connections.throughput_bps;
    let used = application(&beside, "web").response_bytes as f64 * 8.0 / 1000.0;
    assert!(
        rate(&beside) < rate(&transfer) - 0.8 * used,
        "{} and {used} of {}",
        rate(&beside),
        rate(&transfer)
    );
    // Together they use the whole link but for headers.
    assert!((0.9e6..1e6).contains(&(rate(&beside) + used)), "{} and {used}", rate(&beside));
    let waits = |run| application(run, "web").mean_response_time_s.unwrap();
    assert!(waits(&beside) > 2.0 * waits(&alone));
    assert!(application(&beside, "web").lost_packets > 0);
    // Totals cover transfers only: the run equals one without the application's counters.
    assert_eq!(beside.connections.len(), 1);
    assert_eq!(beside.metrics.connections, beside.connections[0].metrics);
}

#[test]
fn observation_does_not_change_a_run() {
    let scenario = read(&lossy("\"basic\""), &[]);
    let plain = run(&scenario, "basic", 2);
    let observed = scenario.run("basic", 1, 2, EVERYTHING).unwrap();
    assert_eq!(plain.applications, observed.applications);
    assert_eq!(plain.metrics, observed.metrics);
}

#[test]
fn runs_are_reproducible() {
    let scenario = read(&lossy("\"ebsn\""), &[]);
    let report =
        |number| lasthop_experiment::report::to_json(&scenario, &[&run(&scenario, "ebsn", number)]).unwrap();
    assert_eq!(report(3), report(3));
    assert_ne!(report(3).replace("\"run\": 3", "\"run\": 4"), report(4));
}

/// A kind sets the omitted distributions, and the canonical form contains them.
#[test]
fn the_canonical_form_expands_the_kind() {
    let stated = "[application.x]\nfrom = \"a\"\nto = \"b\"\nkind = ";
    for (name, kind) in [
        ("http", ApplicationKind::Http),
        ("database", ApplicationKind::Database),
        ("email", ApplicationKind::Email),
        ("ssh", ApplicationKind::Ssh),
        ("telemetry", ApplicationKind::Telemetry),
        ("page", ApplicationKind::Page),
    ] {
        let scenario = read(&format!("{OFFICE}{stated}{name:?}"), &[]);
        let x = &scenario.application["x"];
        assert_eq!((x.request, x.response), (Some(kind.request()), kind.response()));
        assert_eq!(x.think, kind.think());
        let again = read(&scenario.to_toml(), &[]);
        assert_eq!(again, scenario);
        let own = read(&format!("{OFFICE}{stated}{name:?}\nthink.constant = \"3 s\""), &[]);
        assert_eq!(
            own.application["x"].think,
            Some(Distribution::Constant(lasthop_base::Duration::from_secs(3)))
        );
        assert_eq!(own.application["x"].response, kind.response());
        assert_ne!(own.hash(), scenario.hash());
    }
    assert!(!read(SCENARIO, &[]).to_toml().contains("application"));
}
