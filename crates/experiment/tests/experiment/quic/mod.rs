//! QUIC connections in whole scenarios, beside TCP and by themselves.

mod applications;
mod controls;
mod division;
mod hostile;
mod noq;
mod observers;
mod remedies;
mod tls;
mod worlds;

use std::thread;

use lasthop_base::Bytes;
use lasthop_experiment::{ConnectionMetrics, Events, Experiment, Observe, Run};
use lasthop_scenario::Scenario;
use lasthop_sim::Ended;

/// 10 Mb/s, a round trip of 60 ms, and a queue of one bandwidth-delay product.
const LAST_HOP: &str = r#"
    limit = "60 s"
    schemes = ["basic", "snoop", "arq", "i-tcp", "packet-fec", "sidekick"]
    transfer.size = "unlimited"
    [wired]
    rate = "1 Gbps"
    delay = "29 ms"
    [radio]
    rate = "10 Mbps"
    delay = "1 ms"
    queue = "50 packets"
    [radio.uplink]
    rate = "1 Gbps"
    channel = "perfect"
"#;

const TRACED: Observe<'_> = Observe { trace: true, series: true, delays: false, pcap: None, qlog: false };

fn read(overrides: &[&str]) -> Scenario {
    Scenario::parse(LAST_HOP, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(overrides: &[&str]) -> String {
    Scenario::parse(LAST_HOP, "test.toml", overrides).expect_err("it is refused").to_string()
}

fn run(scenario: &Scenario, scheme: &str, number: u64, observe: Observe<'_>) -> Run {
    scenario.run(scheme, 1, number, observe).unwrap_or_else(|error| panic!("{error}"))
}

fn only(run: &Run) -> &ConnectionMetrics {
    &run.connections[0].metrics
}

fn events(run: &Run) -> &Events {
    run.connections[0].parts[0].events.as_ref().expect("a trace")
}

fn count(events: &Events, name: &str) -> u64 {
    events.event.iter().filter(|event| **event == name).count() as u64
}

/// FNV-1a of the times, names, numbers and sizes of all events.
fn digest(events: &Events) -> u64 {
    let rows = (0..events.time_s.len()).flat_map(|row| {
        let (time, size) = (events.time_s[row].to_bits(), events.size_bytes[row] as u64);
        let name = events.event[row].bytes().map(u64::from).sum();
        [time, name, events.packet[row] as u64, size]
    });
    rows.fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x100_0000_01b3))
}

/// Two independent implementations of one control over two transports: with the same fades, NewReno of quinn and of Linux
/// differ by less than the 99 % interval of their paired differences, or by headers. The expected goodputs (Mb/s) are those of
/// quinn-proto 0.11.12 to 0.11.19, which sent the same packets.
#[test]
fn newreno_over_quic_is_linux_reno() {
    // Student's t for 99 % and 15 degrees of freedom.
    const T: f64 = 2.947;
    for (loss, runs, expected) in
        [("0", 1, 9.53), ("0.001", 16, 7.19), ("0.01", 16, 2.20), ("0.03", 16, 1.15)]
    {
        let channel = match loss {
            "0" => String::from("radio.channel=perfect"),
            loss => format!("radio.channel.frame-loss.loss={loss}"),
        };
        let [quic, tcp] = ["quinn-newreno", "linux-reno"].map(|sender| {
            let scenario = read(&[&format!("sender={sender}"), &channel]);
            let rates =
                (0..runs).map(|n| only(&run(&scenario, "basic", n, Observe::default())).throughput_bps / 1e6);
            rates.collect::<Vec<f64>>()
        });
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let differences: Vec<f64> = quic.iter().zip(&tcp).map(|(quic, tcp)| quic - tcp).collect();
        let off = mean(&differences);
        let variance = differences.iter().map(|each| (each - off).powi(2)).sum::<f64>() / (runs as f64 - 1.0);
        let half = if runs > 1 { T * (variance / runs as f64).sqrt() } else { 0.0 };
        // A datagram has 42 bytes of headers and tag, a segment 52.
        assert!(off.abs() <= half.max(0.011 * mean(&tcp)), "{loss}: {off} ± {half}");
        assert!((mean(&quic) - expected).abs() < 0.006, "{loss}: {}", mean(&quic));
    }
}

/// In this process and in others, on any thread. A changed digest means that another version of the library sends other packets.
#[test]
fn a_run_is_equal_to_the_bit_wherever_it_is_made() {
    for (sender, library, expected) in [
        ("quinn-newreno", "quinn-proto 0.11.19", 0x0e2f_3390_73d7_6c35),
        ("noq-newreno", "noq-proto 1.4.0", 0xe8b4_7c56_7630_db13),
        ("noq-cubic", "noq-proto 1.4.0", 0xfa63_2df2_84f1_a5ff),
    ] {
        let sender = format!("sender={sender}");
        let scenario = read(&[&sender, "limit=5 s", "radio.channel.frame-loss.loss=0.01"]);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let scenario = scenario.clone();
                thread::spawn(move || run(&scenario, "basic", 3, TRACED))
            })
            .collect();
        let runs: Vec<Run> = threads.into_iter().map(|thread| thread.join().expect("it runs")).collect();
        // As text, since NaN is not equal to itself.
        assert_eq!(format!("{:?}", runs[0]), format!("{:?}", runs[1]));
        assert_eq!(digest(events(&runs[0])), expected, "{sender}: {:#x}", digest(events(&runs[0])));
        assert_ne!(digest(events(&run(&scenario, "basic", 4, TRACED))), expected);
        assert_eq!(runs[0].stacks, [library]);
    }
}

#[test]
fn a_finite_transfer_finishes_and_every_datagram_is_in_the_trace() {
    for sender in ["quinn-newreno", "quinn-cubic", "quinn-bbr"] {
        let scenario = read(&[
            &format!("sender={sender}"),
            "transfer.size=1 MB",
            "transfer.start=2 s",
            "radio.channel.frame-loss.loss=0.02",
        ]);
        let run = run(&scenario, "basic", 0, TRACED);
        let (metrics, events) = (only(&run), events(&run));
        assert!(metrics.finished && !metrics.aborted && metrics.delivered_bytes == 1_000_000, "{metrics:?}");
        // At the rate of the link, and a round trip and a half for the handshake.
        assert!(metrics.completion_time_s.is_some_and(|time| (0.89..6.0).contains(&time)), "{metrics:?}");
        assert!(events.time_s[0] == 2.0 && events.event[0] == "ack-sent", "the destination connects");
        let numbers = events.packet_number.as_ref().expect("the stack has numbers");
        let sent = (0..numbers.len()).filter(|row| events.event[*row] == "sent" && numbers[*row] >= 0);
        let sent: Vec<i64> = sent.map(|row| numbers[row]).collect();
        assert!(sent.len() > 600 && sent.is_sorted_by(|one, next| one < next), "{sent:?}");
        let [sent, delivered, lost] = ["sent", "delivered", "lost"].map(|name| count(events, name));
        assert_eq!(
            (sent, lost),
            (metrics.segments_sent, metrics.lost_on_air + metrics.queue_drops),
            "{sender}"
        );
        // The last acknowledgement ends the run, and the server's farewell is on its way.
        assert!(sent - delivered - lost <= 1, "{sender}: {sent} {delivered} {lost}");
        assert!(metrics.declared_lost.is_some_and(|declared| declared >= lost), "{metrics:?}");
        // What quinn does not count is absent.
        let absent = [metrics.timeouts, metrics.retransmitted_segments, metrics.tail_loss_probes];
        assert_eq!((absent, metrics.goodput, metrics.pacing_wait_s), ([None; 3], None, None));
        let series = run.connections[0].parts[0].series.as_ref().expect("a series");
        let cwnd = &series.columns.iter().find(|(name, _)| *name == "cwnd_bytes").expect("a window").1;
        assert!(cwnd.iter().any(|window| *window > 20_000.0));
    }
}

/// A stack's own log, on the simulation's clock, of each datagram with its packet numbers: as draft-ietf-quic-qlog-main-schema-03 has
/// it, a JSON text sequence (RFC 7464).
#[test]
fn a_stack_writes_its_qlog() {
    let scenario =
        read(&["sender=quinn-cubic", "transfer.size=200 KB", "radio.channel.frame-loss.loss=0.02"]);
    let observe = Observe { qlog: true, ..TRACED };
    let [run, again] = [(); 2].map(|()| run(&scenario, "basic", 0, observe));
    assert_eq!(run.qlogs, again.qlogs);
    assert!(self::run(&scenario, "basic", 0, TRACED).qlogs.is_empty());
    let [(name, text)] = &run.qlogs[..] else { panic!("one") };
    assert_eq!(
        (name.as_str(), text.chars().filter(|each| *each == '\u{1e}').count()),
        ("transfer", text.lines().count())
    );
    let mut records = text.lines().map(|line| {
        serde_json::from_str::<serde_json::Value>(line.trim_start_matches('\u{1e}')).expect("JSON")
    });
    let head = records.next().expect("a head");
    assert_eq!((&head["qlog_version"], &head["qlog_format"]), (&"0.3".into(), &"JSON-SEQ".into()));
    assert!(head["trace"]["vantage_point"]["type"].is_string());
    let (mut sent, mut last, mut lost, mut time) = (Vec::new(), None, 0, 0.0);
    for record in records {
        let at = record["time"].as_f64().expect("milliseconds");
        assert!(at >= time && record["data"].is_object(), "{record}");
        time = at;
        let header = &record["data"]["header"];
        match record["name"].as_str().expect("a name") {
            "transport:packet_sent" => {
                sent.push((at, header["length"].as_u64().expect("bytes")));
                if header["packet_type"] == "1RTT" {
                    let number = header["packet_number"].as_u64();
                    assert!(number > last, "{number:?} after {last:?}");
                    last = number;
                }
            }
            "transport:packet_received" => assert!(header["packet_number"].is_u64()),
            "recovery:packet_lost" => lost += 1,
            "recovery:metrics_updated" => {}
            other => panic!("{other}"),
        }
    }
    assert_eq!(Some(lost), only(&run).declared_lost);
    // The trace has the same packets at the same times, but for those that share a datagram in the handshake.
    let events = events(&run);
    let traced = (0..events.event.len()).filter(|row| events.event[*row] == "sent");
    let traced: Vec<(f64, u64)> =
        traced.map(|row| (1e3 * events.time_s[row], events.size_bytes[row] as u64 - 28)).collect();
    let datagrams = traced
        .iter()
        .filter(|(at, size)| sent.iter().any(|(other, length)| (at - other).abs() < 0.001 && size == length));
    assert!(
        datagrams.count() + 3 >= traced.len() && sent.len() >= traced.len(),
        "{} {}",
        sent.len(),
        traced.len()
    );
}

/// A source measures round-trip times as that of TCP does over the same link, and a destination counts marks.
#[test]
fn ends_report_round_trips_and_marks() {
    let of = |sender: &str, queue: &str| {
        let sender = format!("sender={sender}");
        let more = ["limit=20 s", "schemes=['basic']", "radio.channel=perfect", queue];
        run(&read(&[&[&*sender][..], &more].concat()), "basic", 0, Observe::default())
    };
    let times = ["quinn-newreno", "linux-reno"].map(|sender| {
        let times = only(&of(sender, "radio.queue=50 packets")).mean_rtt_s.expect("samples");
        // A queue of 50 packets takes 60 ms.
        assert!((0.07..0.125).contains(&times), "{sender}: {times}");
        times
    });
    // TCP takes a sample of each acknowledgement, and QUIC as well; windows differ by headers.
    assert!((times[0] / times[1] - 1.0).abs() < 0.05, "{times:?}");
    let marked = of("quinn-newreno", "radio.queue={ dualpi2 = {} }");
    assert!(marked.metrics.network.ecn_marks > 10, "{:?}", marked.metrics.network);
    let counted = only(&marked).ecn_marked_packets.expect("marks are counted");
    // At most one is on the air when the run ends.
    assert!((0..=1).contains(&(marked.metrics.network.ecn_marks - counted)), "{counted}");
}

/// After 30 s without a packet, quinn gives up.
#[test]
fn a_connection_through_a_long_outage_is_given_up() {
    let outage = "radio.outage={ first = \"1 s\", every = \"900 s\", lasts = \"100 s\" }";
    let scenario = read(&["sender=quinn-cubic", "transfer.size=10 MB", "limit=600 s", outage]);
    let run = run(&scenario, "basic", 0, TRACED);
    assert!(only(&run).aborted && !only(&run).finished);
    assert_eq!(run.ended, Ended::Finished);
    // Probes, with twice the timeout each.
    let last = events(&run).time_s.last().copied().expect("events");
    assert!((10.0..40.0).contains(&last), "{last}");
}

/// Either the source never hears of the connection, or the destination never gets an answer.
#[test]
fn a_handshake_that_fails_ends_the_run() {
    for (lossy, connects) in [("radio.uplink.channel", false), ("radio.channel", true)] {
        let lossy = format!("{lossy}.frame-loss.loss=1");
        let scenario = read(&[
            "sender=quinn-cubic",
            "transfer={ size = \"1 MB\", start = \"2 s\" }",
            "limit=600 s",
            &lossy,
        ]);
        let run = run(&scenario, "basic", 0, TRACED);
        assert!(only(&run).aborted && run.ended == Ended::Finished, "{lossy}: {:?}", run.ended);
        assert_eq!(count(events(&run), "sent") > 0, connects, "{lossy}");
    }
}

/// Jumbo frames, and more certificates than quinn expects, out of order.
#[test]
fn large_datagrams_and_handshakes_pass() {
    for sender in ["quinn-newreno", "quinn-cubic", "quinn-bbr"] {
        for (mtu, discovery) in [("1472 B", false), ("9000 B", false), ("9000 B", true)] {
            let settings =
                format!("quic={{ mtu = \"{mtu}\", mtu_discovery = {discovery}, handshake = \"60 KB\" }}");
            let sender = format!("sender={sender}");
            let overrides =
                [&sender, &settings, "transfer.size=100 KB", "radio.channel.frame-loss.loss=0.05"];
            for number in 0..4 {
                let run = run(&read(&overrides), "basic", number, Observe::default());
                assert!(only(&run).finished, "{overrides:?}, run {number}: {:?}", only(&run));
            }
        }
    }
}

#[test]
fn keys_of_quic_mean_what_they_say() {
    let sizes = |overrides: &[&str]| {
        let all = [&["sender=quinn-cubic", "limit=5 s"], overrides].concat();
        let run = run(&read(&all), "basic", 0, TRACED);
        let events = events(&run);
        let of_data = (0..events.event.len()).filter(|row| events.event[*row] == "sent");
        let sizes: Vec<i64> = of_data.map(|row| events.size_bytes[row]).collect();
        (run.metrics.connections.throughput_bps / 1e6, sizes)
    };
    let (usual, full) = sizes(&[]);
    assert_eq!(full.iter().max(), Some(&1500));
    assert!(usual > 9.0);
    assert_eq!(sizes(&["quic.mtu=1200 B"]).1.iter().max(), Some(&1228));
    let (_, discovered) = sizes(&["quic.mtu_discovery=true"]);
    let first_full = discovered.iter().position(|size| *size > 1228).expect("the path passes more");
    assert!(first_full > 3 && discovered.iter().max() == Some(&1500));
    // A window each round trip of 60 ms and more.
    let (narrow, _) = sizes(&["quic.window=40 KB"]);
    assert!((3.5..5.4).contains(&narrow), "{narrow}");
    let (_, certificates) = sizes(&["quic.handshake=9 KB", "transfer.size=1 KB"]);
    let (_, few) = sizes(&["quic.handshake=2 KB", "transfer.size=1 KB"]);
    assert!(certificates.iter().sum::<i64>() > few.iter().sum::<i64>() + 6_000);
    // Timers at ticks move packets by less than a tick.
    let (ticking, _) = sizes(&["quic.tick=1 ms", "quic.batch=1"]);
    assert!((ticking - usual).abs() < 0.3, "{ticking}");
}

#[test]
fn connections_name_senders_of_their_own() {
    let own =
        ["connection.tcp={}", "connection.quic.sender=quinn-cubic", "connection.reno.sender=linux-reno"];
    let scenario = read(&[&own[..], &["limit=20 s"]].concat());
    let run = run(&scenario, "basic", 0, Observe::default());
    let [tcp, quic, reno] = [0, 1, 2].map(|index| &run.connections[index].metrics);
    assert!(tcp.timeouts.is_some() && reno.timeouts.is_some() && quic.timeouts.is_none());
    assert!([tcp, quic, reno].iter().all(|each| each.throughput_bps > 0.5e6), "{run:?}");
    // Of those that count it.
    assert_eq!(run.metrics.connections.timeouts, Some(tcp.timeouts.unwrap() + reno.timeouts.unwrap()));
    assert_eq!(run.metrics.connections.declared_lost, quic.declared_lost);
    let again = Scenario::parse::<&str>(&scenario.to_toml(), "again.toml", &[]).expect("its canonical form");
    assert_eq!((again.to_toml(), again.hash()), (scenario.to_toml(), scenario.hash()));
}

/// What decides the packets decides the hash, and QUIC changes none of TCP.
#[test]
fn the_hash_depends_on_the_sender_of_quic_and_its_settings() {
    let hash = |overrides: &[&str]| read(overrides).hash();
    let all = [
        hash(&[]),
        hash(&["sender=quinn-cubic"]),
        hash(&["sender=quinn-bbr"]),
        hash(&["sender=quinn-bbr", "quic.mtu=1300 B"]),
    ];
    assert!((0..all.len()).all(|index| !all[..index].contains(&all[index])), "{all:?}");
    assert_eq!(hash(&["quic.mtu=1300 B"]), all[0]);
    assert_eq!(read(&["quic.mtu=1300 B", "sender=linux"]).quic.map(|quic| quic.mtu), Some(Bytes(1300)));
}

#[test]
fn what_quic_cannot_do_is_refused_with_its_reason() {
    let cases: &[(&[&str], &str)] = &[
        (&["sender=quinn-vegas"], "found \"quinn-vegas\""),
        (&["connection.a.sender=quinn"], "found \"quinn\", expected"),
        (
            &["connection.a={ sender = \"quinn-bbr\", tcp = { ack_every = 1 } }"],
            "TCP settings beside the sender \"quinn-bbr\"",
        ),
        (
            &["sender=quinn-bbr", "connection.a.tcp.ack_every=1"],
            "TCP settings beside the sender \"quinn-bbr\"",
        ),
        (&["sender=quinn-bbr", "connection.a.plain=true"], "plain TCP beside the sender \"quinn-bbr\""),
        (&["connection.a={ sender = \"quinn-bbr\", plain = true }"], "plain TCP beside the sender"),
        (&["sender=quinn-bbr", "quic.mtu=1199 B"], "expected from \"1200 B\""),
        (&["sender=quinn-cubic", "quic.mtu=12 KB"], "quinn begins with a window of 12 KB"),
        (&["sender=quinn-bbr", "quic.batch=0"], "expected from 1 to 64 datagrams"),
        (&["sender=quinn-bbr", "quic.window=1 KB"], "expected from \"2944 B\""),
        (&["sender=quinn-bbr", "quic.packet_threshold=2"], "found 2, expected from 3 to 1000 packets"),
        (&["sender=quinn-bbr", "quic.tick=1 s"], "expected at most \"100 ms\""),
    ];
    for (overrides, expected) in cases {
        let message = refused(overrides);
        assert!(message.contains(expected), "{message}");
    }
}
