//! Applications over QUIC: a stream for each request.

use lasthop_base::Time;
use lasthop_experiment::{ActivityMetrics, ApplicationRun, Experiment, Observe, Run};
use lasthop_scenario::Scenario;
use lasthop_sim::Ended;

/// A round trip of 100 ms.
const LINK: &str = r#"
    limit = "600 s"
    schemes = ["basic", "snoop", "arq", "i-tcp"]
    [wired]
    rate = "1 Gbps"
    delay = "45 ms"
    [radio]
    rate = "10 Mbps"
    delay = "5 ms"
    [application.user]
    from = "mobile"
    to = "fixed"
"#;

fn user(run: &Run) -> &ApplicationRun {
    &run.applications[0].1
}

fn run_with(scheme: &str, number: u64, overrides: &[&str]) -> Run {
    let scenario = Scenario::parse(LINK, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"));
    scenario.run(scheme, 1, number, Observe::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The k-th response time, in round trips.
fn response(run: &Run, k: usize) -> f64 {
    user(run).responses[k].length.as_secs_f64() / 0.1
}

/// TCP connects in one round trip, and TLS in one more; QUIC does both in one, if the certificates fit into three datagrams.
#[test]
fn a_request_waits_for_one_round_trip_of_handshake() {
    let message = ["application.user.kind=http", "application.user.requests=2"];
    let small = ["application.user.response.constant=500 B", "application.user.think.constant=1 s"];
    for (sender, more, first) in [
        ("linux", "application.user.tls=true", 3.0),
        ("linux", "application.user.tls=false", 2.0),
        ("quinn-cubic", "quic.handshake=2400 B", 2.0),
        ("quinn-cubic", "quic.handshake=4 KB", 2.0),
        ("quinn-cubic", "quic.handshake=5 KB", 3.0),
        ("quinn-cubic", "quic={ tls = true, handshake = \"4 KB\" }", 2.0),
        ("quinn-cubic", "quic={ tls = true, handshake = \"5 KB\" }", 3.0),
    ] {
        let sender = format!("sender={sender}");
        let run = run_with("basic", 0, &[&message[..], &small, &[&sender, more]].concat());
        // Transmission of the certificates takes 3 ms.
        assert!((first..first + 0.1).contains(&response(&run, 0)), "{sender} {more}: {}", response(&run, 0));
        assert!((1.0..1.05).contains(&response(&run, 1)), "{sender} {more}: {}", response(&run, 1));
        assert_eq!(run.ended, Ended::Finished);
    }
}

/// Who resumes a session waits for no handshake. A loss of the first packets costs what it costs any others.
#[test]
fn a_resumed_session_answers_after_one_round_trip() {
    let message = ["application.user.kind=http", "application.user.requests=2", "sender=quinn-cubic"];
    let small = ["application.user.response.constant=500 B", "quic.zero_rtt=true"];
    let times = |number: u64, more: &[&str]| {
        let run = run_with("basic", number, &[&message[..], &small, more].concat());
        assert_eq!((run.ended, user(&run).metrics.responses), (Ended::Finished, 2));
        [0, 1].map(|k| response(&run, k))
    };
    let [first, second] = times(0, &[]);
    assert!((1.0..1.05).contains(&first) && (1.0..1.05).contains(&second), "{first} {second}");
    let [first, second] = times(0, &["quic.tls=true"]);
    assert!((1.0..1.05).contains(&first) && (1.0..1.05).contains(&second), "{first} {second}");
    for number in 0..20 {
        let lossy = ["radio.channel.frame-loss.loss=0.15", "radio.uplink.channel.frame-loss.loss=0.15"];
        let tls = format!("quic.tls={}", number % 4 == 0);
        times(number, &[&lossy[..], &[&tls]].concat());
    }
}

/// Each keystroke that was not lost has its echo after a round trip, whatever was lost before it.
#[test]
fn a_loss_delays_only_the_requests_in_its_packet() {
    let shell = ["application.user.kind=ssh", "application.user.think.constant=10 ms"];
    let lossy = ["application.user.requests=3000", "radio.channel.frame-loss.loss=0.01"];
    let late = |sender: &str, setting: &str| {
        let sender = format!("sender={sender}");
        let own = [&sender, "radio.uplink.channel=perfect", setting];
        let run = run_with("basic", 0, &[&shell[..], &lossy, &own].concat());
        let times = &user(&run).responses;
        assert_eq!(times.len(), 3000);
        // Those of the handshake are not meant.
        let late = times.iter().filter(|wait| {
            wait.length.as_secs_f64() > 0.102
                && wait.since > Time::ZERO + lasthop_base::Duration::from_secs(1)
        });
        (late.count() as u64, user(&run).metrics.lost_packets)
    };
    let (quic, lost) = late("quinn-cubic", "quic.one_stream=false");
    assert!(lost > 20 && quic <= lost, "{quic} late with {lost} losses");
    // On one stream, or over TCP, later ones wait for it.
    for (sender, setting) in [("quinn-cubic", "quic.one_stream=true"), ("linux", "quic.one_stream=false")] {
        let (waiting, lost) = late(sender, setting);
        assert!(waiting > 5 * lost, "{sender}: {waiting} late with {lost} losses");
    }
}

#[test]
fn every_request_of_every_application_is_answered() {
    let kinds: [&[&str]; 6] = [
        &["application.user.kind=page", "application.user.requests=2"],
        &["application.user.kind=video", "application.user.video.length=16 s"],
        &["application.user.kind=http", "application.user.requests=8"],
        &["application.user.kind=database", "application.user.requests=8"],
        &["application.user.kind=telemetry", "application.user.requests=8"],
        // An upload, of more than a window.
        &[
            "application.user.kind=email",
            "application.user.requests=2",
            "application.user.request.constant=2 MB",
        ],
    ];
    let lossy = ["radio.channel.frame-loss.loss=0.02", "radio.uplink.channel.frame-loss.loss=0.02"];
    for (kind, sender) in kinds.iter().zip(["quinn-cubic", "quinn-newreno", "quinn-bbr"].iter().cycle()) {
        let of = |sender: &str, setting: &str| {
            let sender = format!("sender={sender}");
            let own = [&sender, "application.user.tls=false", setting];
            let run = run_with("basic", 3, &[*kind, &lossy, &own].concat());
            let metrics = user(&run).metrics.clone();
            assert!(metrics.requests > 0 && metrics.responses == metrics.requests, "{kind:?} {metrics:?}");
            assert_eq!(run.ended, Ended::Finished, "{kind:?}");
            metrics
        };
        let (quic, tcp) = (of(sender, "quic.one_stream=false"), of("linux", "quic.one_stream=false"));
        let in_order = of(sender, "quic.one_stream=true");
        if !kind[0].contains("video") {
            assert_eq!(in_order.response_bytes, tcp.response_bytes, "{kind:?}");
        }
        // Sizes do not depend on the network, but for a film's bitrates.
        if !kind[0].contains("video") {
            assert_eq!(quic.request_bytes, tcp.request_bytes, "{kind:?}");
            assert_eq!(quic.response_bytes, tcp.response_bytes, "{kind:?}");
        }
        assert_eq!((quic.timeouts, quic.retransmitted_segments, tcp.declared_lost), (None, None, None));
        assert!(
            quic.declared_lost.is_some() && tcp.timeouts.is_some() && tcp.retransmitted_segments.is_some()
        );
    }
}

/// A server permits 100 streams at a time.
#[test]
fn a_page_of_many_objects_is_loaded() {
    let page = [
        "sender=quinn-cubic",
        "application.user.kind=page",
        "application.user.requests=1",
        "application.user.page.objects=[{ count = 300, size.constant = \"10 KB\" }]",
    ];
    let run = run_with("basic", 0, &page);
    let metrics = &user(&run).metrics;
    assert_eq!((metrics.responses, metrics.response_bytes), (301, 3_018_000));
    let ActivityMetrics::Pages(pages) = &user(&run).activity else { panic!("pages") };
    let time = pages.mean_page_time_s.expect("it is loaded");
    // 2.4 s of transmission, the handshake, the HTML, the window's growth, and three times the credit for streams.
    assert!((2.6..4.0).contains(&time), "{time}");
}

/// Responses come one after the other, in the order of their requests: half of a page is there in half of its time. By turns,
/// all would be complete at its end.
#[test]
fn earlier_requests_are_served_first() {
    let page = [
        "sender=quinn-cubic",
        "application.user.kind=page",
        "application.user.requests=1",
        "application.user.request.constant=20 B",
        "application.user.page.objects=[{ count = 80, size.constant = \"20 KB\" }]",
    ];
    for loss in ["0", "0.01"] {
        let lossy = format!("radio.channel.frame-loss.loss={loss}");
        let run = run_with("basic", 0, &[&page[..], &[&lossy]].concat());
        let ActivityMetrics::Pages(pages) = &user(&run).activity else { panic!("pages") };
        let (page, metrics) = (pages.mean_page_time_s.expect("it is loaded"), &user(&run).metrics);
        let median = metrics.p50_response_time_s.expect("responses");
        assert!(median < 0.65 * page, "{median} of {page} with a loss of {loss}");
    }
}

/// Keep-alives hold a connection open while its user thinks.
#[test]
fn a_connection_lasts_while_its_user_thinks() {
    let slow = ["sender=quinn-cubic", "application.user.kind=http", "application.user.think.constant=90 s"];
    let run = run_with(
        "basic",
        0,
        &[&slow[..], &["application.user.requests=3", "application.user.response.constant=1 KB"]].concat(),
    );
    assert_eq!((run.ended, user(&run).metrics.responses), (Ended::Finished, 3));
    assert!(response(&run, 0) > 1.9 && response(&run, 1) < 1.1 && response(&run, 2) < 1.1);
}

/// The client connects again: at once with requests under way, or with the next one. What the user waits for is in the metrics, as
/// over TCP.
#[test]
fn an_outage_of_more_than_the_idle_timeout_ends_no_application() {
    let outage = "radio.outage={ first = \"5 s\", every = \"900 s\", lasts = \"80 s\" }";
    let upload = ["application.user.request.constant=200 KB", "application.user.think.constant=1 ms"];
    for sender in ["quinn-cubic", "quinn-bbr", "linux"] {
        let of = |kind: &str, more: &[&str]| {
            let (sender, kind) = (format!("sender={sender}"), format!("application.user.kind={kind}"));
            let all = [&[&*sender, &kind, outage], more].concat();
            let run = run_with("basic", 0, &all);
            let metrics = &user(&run).metrics;
            assert_eq!(run.ended, Ended::Finished, "{all:?}");
            assert!(metrics.requests > 0 && metrics.responses == metrics.requests, "{all:?}: {metrics:?}");
            assert_eq!(format!("{run:?}"), format!("{:?}", run_with("basic", 0, &all)));
            run
        };
        let film = of("video", &["application.user.video.length=90 s"]);
        let ActivityMetrics::Video(video) = &user(&film).activity else { panic!("a film") };
        assert!(video.stalled_s > 30.0 && (video.played_s - 90.0).abs() < 0.01, "{sender}: {video:?}");
        let idle = of("http", &["application.user.think.constant=100 s", "application.user.requests=3"]);
        assert!(user(&idle).metrics.greatest_response_time_s.is_some_and(|time| time < 2.0), "{sender}");
        let upload = of("email", &[&upload[..], &["application.user.requests=60"]].concat());
        let longest = user(&upload).metrics.greatest_response_time_s.expect("responses");
        // Linux asks first after at most twice the outage, and then after its greatest RTO of 120 s: it has a sample of the outage.
        let most = if sender == "linux" { 240.0 } else { 180.0 };
        assert!((80.0..most).contains(&longest), "{sender}: {longest}");
    }
}

/// Snoop and a split have nothing to read; an ARQ repairs what it carries.
#[test]
fn schemes_serve_a_page_as_they_serve_a_transfer() {
    let page = ["sender=quinn-cubic", "application.user.kind=page", "application.user.requests=1"];
    let lossy = ["radio.channel.frame-loss.loss=0.02"];
    let of = |scheme: &str| run_with(scheme, 0, &[&page[..], &lossy].concat());
    let [basic, snoop, split, arq] = ["basic", "snoop", "i-tcp", "arq"].map(of);
    assert_eq!((user(&snoop), user(&split)), (user(&basic), user(&basic)));
    assert_eq!(snoop.without_effect.len(), 1);
    let time = |run: &Run| match &user(run).activity {
        ActivityMetrics::Pages(pages) => pages.mean_page_time_s.expect("it is loaded"),
        _ => panic!("pages"),
    };
    assert!(time(&arq) < 0.7 * time(&basic), "{} {}", time(&arq), time(&basic));
}
