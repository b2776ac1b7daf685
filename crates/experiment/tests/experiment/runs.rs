//! Runs of whole scenarios.

use lasthop_base::Bytes;
use std::path::Path;

use lasthop_experiment::{
    ConnectionMetrics, ConnectionRun, Ended, Events, Experiment, Metrics, Observe, Run, Value,
};
use lasthop_scenario::{Application, Scenario, Time};
use lasthop_testing::scenario_texts::{SCENARIO, with};

const EVERYTHING: Observe<'_> = Observe { trace: true, series: true, delays: false, pcap: None, qlog: false };

fn read(overrides: &[&str]) -> Scenario {
    Scenario::parse(SCENARIO, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario, scheme: &str, number: u64, observe: Observe<'_>) -> Run {
    scenario.run(scheme, 1, number, observe).unwrap_or_else(|error| panic!("{error}"))
}

/// How many events there are of a kind.
fn count(events: &Events, kind: &str) -> u64 {
    events.event.iter().filter(|&&event| event == kind).count() as u64
}

/// The connection of a run with exactly one.
fn only(mut run: Run) -> ConnectionRun {
    assert_eq!(run.connections.len(), 1);
    run.connections.remove(0)
}

#[test]
fn runs_are_reproducible() {
    let folder = std::env::temp_dir().join("lasthop-same-run");
    std::fs::create_dir_all(&folder).unwrap();
    let scenario = read(&[]);
    let bytes = |scheme: &str, number: u64, copy: &str| {
        let path = folder.join(copy);
        let result = run(&scenario, scheme, number, Observe { pcap: Some(&path), ..EVERYTHING });
        let shown = format!(
            "{}{:?}",
            lasthop_experiment::report::to_json(&scenario, &[&result]).unwrap(),
            result.connections
        );
        (shown, std::fs::read(path).unwrap())
    };
    for scheme in ["basic", "local-recovery", "source-quench", "ebsn"] {
        assert_eq!(bytes(scheme, 0, "a"), bytes(scheme, 0, "b"), "{scheme}");
        assert_ne!(bytes(scheme, 0, "a"), bytes(scheme, 1, "b"), "{scheme}");
    }
}

#[test]
fn observing_a_run_does_not_change_it() {
    let scenario = read(&[]);
    for scheme in ["basic", "ebsn"] {
        let plain = run(&scenario, scheme, 0, Observe::default());
        let observed = run(&scenario, scheme, 0, EVERYTHING);
        assert_eq!((plain.ended, &plain.metrics), (observed.ended, &observed.metrics));
        let plain = only(plain);
        assert_eq!((&plain.parts[0].events, &plain.parts[0].series), (&None, &None));
    }
}

#[test]
fn a_dead_channel_ends_at_the_time_limit() {
    let scenario = read(&["radio.channel.iid.ber=1", "limit=100 s"]);
    for scheme in ["basic", "local-recovery", "ebsn"] {
        let result = run(&scenario, scheme, 0, Observe::default());
        assert_eq!(result.ended, Ended::TimeLimit, "{scheme}");
        let metrics = only(result).metrics;
        assert!(!metrics.finished && metrics.completion_time_s.is_none(), "{scheme}");
        assert_eq!((metrics.throughput_bps, metrics.goodput), (0.0, Some(0.0)), "{scheme}");
    }
}

/// A source with a user timeout aborts, and the run ends: timers expire after 6, 18 and 42 s. Its RST is in
/// the trace and in the capture.
#[test]
fn a_source_gives_up_on_a_dead_channel() {
    let file = std::env::temp_dir().join("lasthop-gives-up.pcapng");
    let scenario = read(&["radio.channel.iid.ber=1", "tcp.user_timeout=30 s"]);
    let observe = Observe { pcap: Some(&file), ..EVERYTHING };
    let result = run(&scenario, "basic", 0, observe);
    assert_eq!((result.ended, result.metrics.connections.aborted), (Ended::Finished, true));
    let ConnectionRun { metrics, parts, .. } = only(result);
    assert!(metrics.aborted && !metrics.finished && metrics.completion_time_s.is_none());
    assert_eq!((metrics.timeouts, metrics.segments_sent), (Some(2), 4));
    let events = parts[0].events.clone().unwrap();
    let last = events.event.len() - 1;
    assert_eq!((events.time_s[last], events.event[last], events.packet[last]), (42.0, "sent", -1));
    assert!(std::fs::metadata(file).unwrap().len() > 0);

    let patient = run(&read(&["radio.channel.iid.ber=1", "limit=100 s"]), "basic", 0, Observe::default());
    assert!(!patient.metrics.connections.aborted);
}

/// The canonical form omits an unset user timeout, so hashes of existing scenarios are unchanged.
#[test]
fn the_canonical_form_omits_an_unset_user_timeout() {
    let plain = read(&[]);
    assert!(!plain.to_toml().contains("user_timeout"));
    let patient = read(&["tcp.user_timeout=100 s"]);
    assert!(patient.to_toml().contains("user_timeout = \"100 s\""));
    assert_ne!(plain.hash(), patient.hash());
    let refused = Scenario::parse(SCENARIO, "test.toml", &["tcp.user_timeout=0 s"]).unwrap_err();
    assert!(
        refused.to_string().contains("tcp.user_timeout: found 0 s, expected more than zero"),
        "{refused}"
    );
    assert_eq!(Scenario::parse::<&str>(&patient.to_toml(), "again", &[]).unwrap().tcp, patient.tcp);
}

/// An unbounded transfer at 12.8 kbps with 536 bytes of payload per packet of 576: within slow start and one
/// packet of the closed form.
#[test]
fn an_unlimited_transfer_is_measured_up_to_the_limit() {
    let scenario = read(&["transfer.size=unlimited", "radio.channel=perfect", "limit=1000 s"]);
    let result = run(&scenario, "basic", 0, Observe::default());
    assert_eq!(result.ended, Ended::TimeLimit);
    let ceiling = 12_800.0 * 536.0 / 576.0;
    let reached = result.metrics.connections.throughput_bps / ceiling;
    assert!((0.998..=1.0).contains(&reached), "{reached}");
    assert!(!result.metrics.connections.finished);
}

/// Without losses the duration is that of each hop during slow start and of the last hop afterwards; every
/// segment is sent once.
#[test]
fn a_perfect_channel_matches_a_closed_form() {
    let scenario = read(&["radio.channel=perfect", "transfer.start=2 s"]);
    let results: Vec<Run> = ["basic", "local-recovery", "ebsn"]
        .map(|scheme| run(&scenario, scheme, 0, Observe::default()))
        .into();
    for result in &results {
        assert_eq!(result.ended, Ended::Finished);
        assert_eq!(result.metrics, results[0].metrics);
    }
    let metrics = &results[0].metrics.connections;
    assert_eq!((metrics.segments_sent, metrics.goodput), (187, Some(1.0)));
    let completion = metrics.completion_time_s.unwrap();
    assert_eq!(metrics.throughput_bps, 800_000.0 / completion);
    // 186 full packets and one of 304 + 40 B over the air at 12.8 kbps.
    let air = f64::from(186 * 576 + 344) * 8.0 / 12_800.0;
    assert!((air..air + 1.0).contains(&completion), "{completion} against {air}");
}

/// Every segment sent arrives, is lost, or is in flight at the end; counters match the trace.
#[test]
fn packets_are_conserved() {
    for number in 0..20 {
        let scenario = read(&["wired.queue=3 packets", "radio.queue=4 packets"]);
        for scheme in ["basic", "local-recovery", "source-quench", "ebsn"] {
            let result = run(&scenario, scheme, number, EVERYTHING);
            let ConnectionRun { parts, metrics, .. } = only(result);
            let events = parts[0].events.clone();
            let events = &events.unwrap();
            let [sent, delivered, lost] = ["sent", "delivered", "lost"].map(|kind| count(events, kind));
            assert_eq!(sent, metrics.segments_sent, "{scheme} {number}");
            assert!(delivered + lost <= sent, "{scheme} {number}");
            // The window is 7 packets, and a copy of each may be in flight too.
            assert!(sent - delivered - lost <= 14, "{scheme} {number}");
            let lost_for = |why: &str| events.reason.iter().filter(|&&reason| reason == why).count() as u64;
            assert_eq!(lost_for("queue-full"), metrics.queue_drops, "{scheme} {number}");
            assert_eq!(lost_for("corrupted"), metrics.lost_on_air, "{scheme} {number}");
            assert_eq!(lost_for("attempts-exhausted"), metrics.link_discards, "{scheme} {number}");
            assert_eq!(Some(count(events, "timeout")), metrics.timeouts, "{scheme} {number}");
            assert_eq!(Some(count(events, "fast-retransmit")), metrics.fast_retransmits, "{scheme} {number}");
            assert_eq!(count(events, "notice-received"), metrics.notices, "{scheme} {number}");
            assert_eq!(metrics.delivered_bytes, 100_000, "{scheme} {number}");
            assert!(events.time_s.is_sorted());
        }
    }
}

/// Copy numbers in the trace distinguish retransmissions.
#[test]
fn the_trace_numbers_packets_and_their_copies() {
    let result = only(run(&read(&[]), "basic", 0, EVERYTHING));
    let events = result.parts[0].events.clone().unwrap();
    let rows = || (0..events.event.len()).filter(|&row| events.event[row] == "sent");
    let firsts: Vec<i64> =
        rows().filter(|&row| events.transmission[row] == 1).map(|row| events.packet[row]).collect();
    assert_eq!(firsts, (0..187).collect::<Vec<i64>>());
    let again = rows().filter(|&row| events.transmission[row] > 1).count() as u64;
    assert_eq!(Some(again), result.metrics.retransmitted_segments);
}

/// Sequence numbers wrap, packet numbers do not.
#[test]
fn packet_numbers_do_not_depend_on_the_initial_sequence_number() {
    let events = |iss: &str| {
        let overrides = [iss, "tcp.profile=rfc", "transfer.size=300 KB", "limit=1 h"];
        only(run(&read(&overrides), "ebsn", 0, EVERYTHING)).parts[0].events.clone().unwrap()
    };
    assert_eq!(events("tcp.iss=0"), events("tcp.iss=4294900000"));
}

#[test]
fn a_series_has_one_value_of_each_quantity_for_each_instant() {
    let series = only(run(&read(&[]), "ebsn", 0, EVERYTHING)).parts[0].series.clone().unwrap();
    let names: Vec<&str> = series.columns.iter().map(|&(name, _)| name).collect();
    for name in ["cwnd_bytes", "ssthresh_bytes", "srtt_s", "rto_s"] {
        assert!(names.contains(&name), "{names:?} lack {name}");
    }
    assert!(series.time_s.len() > 100 && series.time_s.is_sorted());
    assert!(series.columns.iter().all(|(_, column)| column.len() == series.time_s.len()));
}

/// Paired comparisons rely on this: schemes with equal transmissions have equal losses.
#[test]
fn schemes_see_the_same_channel() {
    let scenario = read(&["radio.channel.iid.ber=1e-5"]);
    let attempts = |scheme| run(&scenario, scheme, 3, Observe::default()).metrics.network.link_attempts;
    assert_eq!(attempts("local-recovery"), attempts("ebsn"));
}

#[test]
fn a_report_is_of_one_seed_and_run_number() {
    let scenario = read(&[]);
    let [a, b, other] = [("basic", 0), ("ebsn", 0), ("ebsn", 1)]
        .map(|(scheme, n)| run(&scenario, scheme, n, Observe::default()));
    assert!(lasthop_experiment::report::to_json(&scenario, &[]).is_err());
    assert!(lasthop_experiment::report::to_json(&scenario, &[&a, &other]).is_err());
    insta::assert_snapshot!(lasthop_experiment::report::to_json(&scenario, &[&a, &b]).unwrap());
}

/// Every bundled scenario runs with every scheme that it lists, to completion if it is finite.
#[test]
fn bundled_scenarios_run() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let in_folder = |folder: &str| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    // Beside some scenarios there are their data files.
    let paths = in_folder(folder).chain(in_folder(&format!("{folder}/traces")));
    for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml")) {
        let scenario = Scenario::load::<&str>(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
        let transfer = scenario.transfer.as_ref().is_some_and(|transfer| transfer.size.is_some());
        let ends = |each: &Application| each.requests.is_some() || each.video.is_some();
        let expected = match transfer || scenario.application.values().any(ends) {
            true => Ended::Finished,
            false => Ended::TimeLimit,
        };
        for scheme in &scenario.schemes {
            assert_eq!(run(&scenario, scheme, 0, Observe::default()).ended, expected, "{path:?}");
        }
    }
}

#[test]
fn a_stopped_run_is_reported_as_stopped() {
    let endless =
        read(&["transfer.size=unlimited", "limit=100000 s", "radio.rate=1 Gbps", "wired.rate=1 Gbps"]);
    let mut asked = Vec::new();
    let keep_going = |now| {
        asked.push(now);
        asked.len() < 3
    };
    let error = endless.run_while("basic", 1, 0, Observe::default(), keep_going).unwrap_err();
    assert_eq!(error.to_string(), "the run was stopped before its end");
    let limit = Time::ZERO + endless.limit;
    assert!(asked.len() == 3 && asked.is_sorted_by(|a, b| a < b) && asked[2] < limit, "{asked:?}");
}

/// Names and values equal those of the JSON documents.
#[test]
fn value_names_match_the_json_keys() {
    let run = run(&read(&["limit=20 s"]), "basic", 0, Observe::default());
    let json = serde_json::to_value(&run.metrics).unwrap();
    let named: serde_json::Map<_, _> = Metrics::names()
        .zip(run.metrics.values())
        .map(|(name, value)| {
            let value = match value {
                Value::Real(value) => serde_json::json!(value),
                Value::Count(count) => serde_json::json!(count),
                Value::Truth(truth) => serde_json::json!(truth),
            };
            (name.to_owned(), value)
        })
        .collect();
    assert_eq!(serde_json::Value::Object(named), json);
}

/// Counters of Linux's recovery, per connection and in total. A bad period of 4 s with persistent link
/// attempts exceeds any timeout, which is therefore spurious.
#[test]
fn probes_and_undone_reductions_are_counted() {
    let linux = ["tcp.profile=linux", "transfer.size=200 KB", "schemes=[\"local-recovery\"]"];
    let whole = run(&read(&linux), "local-recovery", 0, Observe::default());
    let ConnectionMetrics { tail_loss_probes, timeouts, spurious_timeouts, undone_reductions, .. } =
        whole.metrics.connections;
    assert!(tail_loss_probes > Some(0) && spurious_timeouts > Some(0), "{:?}", whole.metrics);
    assert!(spurious_timeouts <= timeouts && spurious_timeouts <= undone_reductions, "{:?}", whole.metrics);
    let one = &whole.connections[0].metrics;
    assert_eq!(
        (one.tail_loss_probes, one.spurious_timeouts, one.undone_reductions),
        (tail_loss_probes, spurious_timeouts, undone_reductions)
    );
    // A warm-up as long as the run leaves nothing.
    let late = run(&read(&[&linux[..], &["warmup=599 s"]].concat()), "local-recovery", 0, Observe::default());
    let ConnectionMetrics { tail_loss_probes, spurious_timeouts, undone_reductions, .. } =
        late.metrics.connections;
    assert_eq!((tail_loss_probes, spurious_timeouts, undone_reductions), (Some(0), Some(0), Some(0)));
    // Without these mechanisms nothing is counted.
    let bare = [&linux[..], &["tcp.tlp=false", "tcp.undo=false"]].concat();
    let ConnectionMetrics { tail_loss_probes, spurious_timeouts, undone_reductions, .. } =
        run(&read(&bare), "local-recovery", 0, Observe::default()).metrics.connections;
    assert_eq!((tail_loss_probes, spurious_timeouts, undone_reductions), (Some(0), Some(0), Some(0)));
}

/// A connection with ECN and pacing counts both, as do the totals; another connection counts neither.
#[test]
fn echoes_of_marks_and_waits_for_pacing_are_counted() {
    const TWO: &str = r#"
        limit = "10 s"
        [topology.dumbbell]
        pairs = 2
        [transfer]
        size = "unlimited"
        [wired]
        rate = "10 Mbps"
        delay = "20 ms"
        [link.left-right]
        rate = "5 Mbps"
        queue.codel = {}
        [radio]
        rate = "10 Mbps"
        [connection.1.tcp]
        ecn = true
        pacing = true
    "#;
    let scenario = Scenario::parse::<&str>(TWO, "two.toml", &[]).expect("a sound scenario");
    let run = scenario.run("basic", 1, 0, Observe::default()).expect("it runs");
    let [one, other] = [0, 1].map(|index| &run.connections[index].metrics);
    // Each mark has at least one echo, and pacing delays are below the duration of the flow.
    assert!(
        one.ecn_echoes >= Some(run.metrics.network.ecn_marks) && one.ecn_echoes > Some(10),
        "{:?}",
        run.metrics
    );
    assert!((1.0..10.0).contains(&one.pacing_wait_s.unwrap()), "{:?}", run.metrics);
    assert_eq!((other.ecn_echoes, other.pacing_wait_s), (Some(0), Some(0.0)));
    let whole = &run.metrics.connections;
    assert_eq!((whole.ecn_echoes, whole.pacing_wait_s), (one.ecn_echoes, one.pacing_wait_s));
}

/// A sender without a profile equals a Linux server, as `[tcp]` does.
#[test]
fn the_default_profile_is_linux_server() {
    use lasthop_proto::tcp::{Congestion, Profile, Settings};
    let scenario = read(&["senders.own.congestion=vegas", "sender=own", "tcp.profile=linux"]);
    assert_eq!(scenario.tcp, Settings { congestion: Congestion::Vegas, ..Profile::Linux.settings() });
}

/// A profile takes any congestion control in the name of the sender, as a table of `senders` would; a sender of
/// this name goes first.
#[test]
fn a_sender_is_a_profile_with_a_congestion_control() {
    use lasthop_proto::tcp::{Congestion, Profile, Settings};
    for (name, profile, congestion) in [
        ("linux-hybla", Profile::Linux, Congestion::Hybla),
        ("linux-cubic", Profile::Linux, Congestion::Cubic),
        ("freebsd-reno", Profile::Freebsd, Congestion::Reno),
        ("linux-bbr", Profile::LinuxBbr, Congestion::Bbr),
        ("linux-5.15", Profile::Linux515, Congestion::Cubic),
    ] {
        // No setting of the path.
        let text = with("profile = \"ebsn\"", "profile = \"linux\"");
        let sender = format!("sender={name}");
        let scenario = Scenario::parse(&text, "test.toml", &[&sender]).expect("a sound scenario");
        assert_eq!(scenario.tcp, Settings { congestion, ..profile.settings() }, "{name}");
        assert!(scenario.knows_sender(name));
        // Its canonical form is the same scenario.
        let again = Scenario::parse::<&str>(&scenario.to_toml(), "test.toml", &[]).expect("a sound scenario");
        assert!(again == scenario, "{name}");
    }
    let scenario = read(&["sender=linux-hybla", "senders.linux-hybla.congestion=reno", "tcp.profile=linux"]);
    assert_eq!(scenario.tcp.congestion, Congestion::Reno);
    for unknown in
        ["linux-", "linux", "hybla", "linux-hybla ", "linux-Hybla", "-hybla", "", "linux-none-none"]
    {
        assert_eq!(scenario.knows_sender(unknown), unknown == "linux", "{unknown:?}");
    }
}

/// A sender replaces a `[tcp]` of the file that has a profile, but not what is set or swept.
#[test]
fn settings_of_the_command_line_apply_to_each_sender() {
    use lasthop_proto::tcp::{Congestion, EcnMode, Profile, Settings};
    let text = with("profile = \"ebsn\"", "profile = \"linux\"\ndupthresh = 5\nwindow = \"1 MiB\"");
    let parse = |overrides: &[&str]| {
        let scenario =
            Scenario::parse(&text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"));
        let again = Scenario::parse::<&str>(&scenario.to_toml(), "test.toml", &[]).expect("it is canonical");
        assert!(again == scenario, "{overrides:?}: {}", scenario.to_toml());
        scenario
    };
    let path = |profile: Profile| Settings { window: Bytes(1 << 20).into(), ..profile.settings() };
    assert_eq!(parse(&["sender=linux-bbr"]).tcp, path(Profile::LinuxBbr));
    for (set, ecn) in [
        ("tcp.ecn=true", EcnMode::Classic),
        ("tcp.ecn=accurate", EcnMode::Accurate),
        ("senders.linux-bbr.ecn=true", EcnMode::Classic),
        ("tcp={ecn=true, window=\"1 MiB\"}", EcnMode::Classic),
    ] {
        let expected = Settings { ecn, ..path(Profile::LinuxBbr) };
        assert_eq!(parse(&["sender=linux-bbr", set]).tcp, expected, "{set}");
        assert_eq!(parse(&[set, "sender=linux-bbr"]).tcp, expected, "{set}");
    }
    // A table of the sender takes precedence over the path, and the command line over both, also with the value that the
    // profile of the file has.
    let own = "senders.own={profile=\"rfc\", window=\"9 KB\", late_backoff=true}";
    let window = |overrides: &[&str]| parse(&[&[own, "sender=own"], overrides].concat()).tcp.window;
    assert_eq!(window(&[]), Bytes(9000).into());
    assert_eq!(window(&["tcp.window=6 MiB"]), Bytes(6 << 20).into());
    assert!(parse(&[own, "sender=own"]).tcp.late_backoff);
    assert!(!parse(&[own, "sender=own", "tcp.late_backoff=false"]).tcp.late_backoff);
    // Of a profile with a congestion control, a table changes single settings.
    let hybla = parse(&["senders.freebsd-hybla.ecn=true", "sender=freebsd-hybla"]).tcp;
    assert_eq!(
        hybla,
        Settings { congestion: Congestion::Hybla, ecn: EcnMode::Classic, ..path(Profile::Freebsd) }
    );

    // Points of a sweep of senders, and those of its canonical form.
    let overrides =
        ["tcp.ecn=true", "sweep.sender=[\"linux\", \"own\"]", "sweep.tcp.rto_min=[\"1 s\", \"2 s\"]", own];
    let scenario = parse(&overrides);
    let points = scenario.points();
    assert_eq!(points.len(), 4);
    for point in &points {
        let tcp = &point.scenario.tcp;
        assert!(
            tcp.ecn == EcnMode::Classic && point.parameters[1].1 == tcp.rto_min.to_string(),
            "{:?}",
            point.parameters
        );
        assert_eq!(tcp.late_backoff, point.parameters[0].1 == "own");
    }
    let again = Scenario::parse::<&str>(&scenario.to_toml(), "test.toml", &[]).expect("it is canonical");
    assert!(again.points() == points);
}

/// Settings of a file's `[tcp]` apply to its senders, unless a `profile` makes it a TCP of its own, which a sender from elsewhere replaces.
#[test]
fn settings_of_the_file_apply_to_its_senders() {
    use lasthop_proto::tcp::{Congestion, EcnMode, Profile};
    let parse = |tcp: &str, top: &str, overrides: &[&str]| {
        let text = with("profile = \"ebsn\"", tcp);
        let scenario = Scenario::parse(&format!("{top}\n{text}"), "test.toml", overrides)?;
        let again = Scenario::parse::<&str>(&scenario.to_toml(), "test.toml", &[]).expect("it is canonical");
        assert!(again.points() == scenario.points(), "{tcp} {top} {overrides:?}: {}", scenario.to_toml());
        Ok::<_, lasthop_scenario::ScenarioError>(scenario)
    };
    let ecn = |tcp: &str, top: &str, overrides: &[&str]| {
        let scenario = parse(tcp, top, overrides).unwrap_or_else(|error| panic!("{error}"));
        scenario.points().iter().map(|point| point.scenario.tcp.ecn == EcnMode::Classic).collect::<Vec<_>>()
    };
    let senders = "sweep.sender=[\"linux\", \"linux-bbr\"]";
    for (tcp, top, overrides, expected) in [
        ("ecn = true", "sender = \"linux\"", &[][..], &[true][..]),
        ("ecn = true", "sender = \"linux\"", &["sender=linux-bbr"], &[true]),
        ("ecn = true", "", &["sender=linux-bbr"], &[true]),
        ("ecn = true", "", &[senders], &[true, true]),
        ("ecn = true", "", &["sender=linux", "senders.linux.ecn=accurate"], &[false]),
        ("ecn = true\nprofile = \"linux\"", "sender = \"linux-hybla\"", &[], &[true]),
        ("ecn = true\nprofile = \"rfc\"", "", &["sender=linux"], &[false]),
        ("ecn = true\nprofile = \"rfc\"", "", &[senders], &[false, false]),
    ] {
        assert_eq!(ecn(tcp, top, overrides), expected, "{tcp} {top} {overrides:?}");
    }
    // The control of the file's own TCP is replaced, too.
    let replaced = parse("congestion = \"vegas\"", "", &["sender=linux-5.15-bbr"]).expect("a scenario").tcp;
    assert_eq!((replaced.profile, replaced.congestion), (Profile::Linux515, Congestion::Bbr));
    for (tcp, top, place, reason) in [
        ("congestion = \"vegas\"", "sender = \"linux-5.15\"", "tcp.congestion", "\"linux-5.15-vegas\""),
        ("profile = \"rfc\"", "sender = \"linux\"", "tcp.profile", "which decides it"),
        ("frto = true", "sender = \"rfc\"", "tcp.frto", "no effect"),
    ] {
        let error = parse(tcp, top, &[]).expect_err(place).to_string();
        assert!(error.contains(place) && error.contains(reason), "{error}");
    }
}

/// Two senders of different kinds on one path: a connection's table overrides its host's, which overrides
/// `[tcp]`; a profile replaces everything before it.
#[test]
fn tcp_settings_of_connections_override_those_of_hosts() {
    const TWO: &str = r#"
        limit = "20 s"
        [topology.dumbbell]
        pairs = 2
        [transfer]
        size = "unlimited"
        [wired]
        rate = "10 Mbps"
        delay = "20 ms"
        [link.left-right]
        rate = "5 Mbps"
        queue = "30 packets"
        [radio]
        rate = "10 Mbps"
        [tcp]
        profile = "linux"
        [connection.1.tcp]
        profile = "linux-bbr"
        packet_size = "1000 B"
    "#;
    // Payload per segment, minus drops at the short queue.
    let sent = |overrides: &[&str]| {
        let scenario = Scenario::parse(TWO, "two.toml", overrides).expect("a sound scenario");
        let again = Scenario::parse::<&str>(&scenario.to_toml(), "two.toml", &[]).expect("it is canonical");
        assert_eq!(again, scenario);
        let run = scenario.run("basic", 1, 0, Observe::default()).expect("it runs");
        let of = |index: usize| {
            let metrics = &run.connections[index].metrics;
            metrics.delivered_bytes / metrics.segments_sent
        };
        [of(0), of(1)]
    };
    let [own, usual] = sent(&[]);
    assert!((800..=948).contains(&own) && (1_200..=1_448).contains(&usual), "{own} {usual}");
    let [own, usual] = sent(&["host.S2.tcp.packet_size=500 B", "host.S1.tcp.packet_size=500 B"]);
    assert!((800..=948).contains(&own) && (380..=448).contains(&usual), "{own} {usual}");
    for (wrong, expected) in [
        ("host.S9.tcp.dupthresh=2", "host.S9: found no such host"),
        ("host.S1.tcp.dupthresh=0", "host.S1.tcp.dupthresh: found 0, expected at least 1"),
        ("connection.1.tcp.flavour=newreno", "connection.1.tcp.congestion: found \"bbr\", which needs"),
    ] {
        let error = Scenario::parse(TWO, "two.toml", &[wrong]).expect_err(wrong).to_string();
        assert!(error.contains(expected), "{wrong}: {error}");
    }
}

/// A receiver without ECN turns it off for all that sends to it, and of timestamps and packet sizes a handshake leaves what both ends
/// have. A connection's table takes precedence.
#[test]
fn receivers_limit_what_handshakes_agree_on() {
    const QUEUE: &str = r#"
        limit = "5 s"
        [transfer]
        size = "unlimited"
        [wired]
        rate = "100 Mbps"
        delay = "10 ms"
        [radio]
        rate = "5 Mbps"
        delay = "10 ms"
        queue.codel = {}
    "#;
    const REQUESTS: &str = r#"application.a={ from="mobile", to="fixed", request.constant="100 B", response.constant="2 MB", think.constant="1 s" }"#;
    let run = |text: &str, overrides: &[&str]| {
        let small = ["host.fixed.tcp.header=80 B", "host.mobile.tcp.packet_size=70 B"];
        let error = Scenario::parse(QUEUE, "queue.toml", &small).expect_err("no payload fits").to_string();
        assert!(error.contains("host.mobile.tcp.packet_size: found 70 B"), "{error}");
        let scenario =
            Scenario::parse(text, "queue.toml", overrides).unwrap_or_else(|error| panic!("{error}"));
        scenario.run("basic", 1, 0, Observe::default()).expect("it runs").metrics
    };
    let without_transfer = QUEUE.replace("[transfer]\n        size = \"unlimited\"", "");
    let cases: [(&str, &[&str], &str, bool); 8] = [
        (QUEUE, &["tcp.ecn=true"], "", true),
        (QUEUE, &["tcp.ecn=true"], "host.mobile.tcp.ecn=false", false),
        (QUEUE, &["tcp.ecn=accurate"], "host.mobile.tcp.ecn=false", false),
        (QUEUE, &["tcp.ecn=accurate"], "host.mobile.tcp.ecn=true", true),
        (QUEUE, &["sender=linux-prague"], "host.mobile.tcp.ecn=false", false),
        (QUEUE, &["tcp.ecn=true", "connection.only.tcp.ecn=true"], "host.mobile.tcp.ecn=false", true),
        (&without_transfer, &["tcp.ecn=true", REQUESTS], "", true),
        (&without_transfer, &["tcp.ecn=true", REQUESTS], "host.mobile.tcp.ecn=false", false),
    ];
    for (text, asked, answered, marks) in cases {
        let overrides: Vec<&str> =
            asked.iter().copied().chain([answered]).filter(|key| !key.is_empty()).collect();
        let metrics = run(text, &overrides);
        assert_eq!(metrics.network.ecn_marks > 0, marks, "{overrides:?}: {}", metrics.network.ecn_marks);
    }
    let scenario =
        |key| Scenario::parse(QUEUE, "queue.toml", &[key]).expect("it is sound").network().unwrap();
    let mss = |key| scenario(key).flows[0].tcp.mss();
    assert_eq!(mss("host.fixed.tcp.timestamps=true"), 1448);
    assert_eq!(mss("host.mobile.tcp.timestamps=false"), 1460);
    assert_eq!(mss("host.mobile.tcp.packet_size=576 B"), 524);
    assert_eq!(mss("host.mobile.tcp.packet_size=9000 B"), 1448);
}

#[test]
fn unwritable_captures_are_reported() {
    let scenario = Scenario::parse::<&str>(SCENARIO, "test.toml", &[]).unwrap();
    let observe = Observe { pcap: Some(Path::new("/nowhere/x.pcapng")), ..Observe::default() };
    let error = scenario.run("basic", 1, 0, observe).unwrap_err().to_string();
    assert_eq!(error, "cannot write /nowhere/x.pcapng: No such file or directory (os error 2)");
}
