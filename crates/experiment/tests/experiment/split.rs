//! Split connections: behaviour of their parts, metrics, and comparison with theory.

use lasthop_experiment::{ConnectionRun, Ended, Events, Experiment, Observe, PartRun, Run};
use lasthop_proto::scheme::{Scheme, Schemes};
use lasthop_scenario::Scenario;
use lasthop_testing::scenario_texts::{NETWORK, SCENARIO};
use lasthop_testing::schemes::installed;

const EVERYTHING: Observe<'_> = Observe { trace: true, series: true, delays: false, pcap: None, qlog: false };
/// The schemes that acknowledge data before the destination does.
const SPLITTING: [&str; 3] = ["i-tcp", "metp", "vs-tcp"];
/// All schemes that split connections.
const ALL_SPLITTING: [&str; 4] = ["i-tcp", "metp", "vs-tcp", "m-tcp"];

fn read(text: &str, overrides: &[&str]) -> Scenario {
    Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario, scheme: &str, number: u64, observe: Observe<'_>) -> Run {
    scenario.run(scheme, 1, number, observe).unwrap_or_else(|error| panic!("{error}"))
}

fn events(part: &PartRun) -> &Events {
    part.events.as_ref().expect("it was traced")
}

/// Number of events of a kind from `begin` on, in seconds.
fn count_from(part: &PartRun, kind: &str, begin: f64) -> u64 {
    let events = events(part);
    events.event.iter().zip(&events.time_s).filter(|(event, time)| **event == kind && **time > begin).count()
        as u64
}

fn count(part: &PartRun, kind: &str) -> u64 {
    count_from(part, kind, -1.0)
}

/// The values of a quantity over time.
fn column<'a>(part: &'a PartRun, name: &str) -> &'a [f64] {
    let series = part.series.as_ref().expect("it was recorded");
    let found = series.columns.iter().find(|column| column.0 == name);
    &found.unwrap_or_else(|| panic!("there is no {name}")).1
}

/// A last hop that loses one packet in twenty, behind a short queue.
const LOSSY: &str = r#"
title = "a last hop that loses"
limit = "1 h"

[transfer]
size = "100 KB"

[tcp]
packet_size = "576 B"
window = "8 KB"

[wired]
rate = "1 Mbps"
delay = "20 ms"

[radio]
rate = "200 kbps"
delay = "2 ms"
channel.frame-loss.loss = 0.05

[scheme]
i-tcp.buffer = "6 KB"
metp.buffer = "6 KB"
vs-tcp.buffer = "6 KB"
"#;

/// The parts of a connection, by their end nodes.
fn ends(each: &ConnectionRun) -> Vec<(&str, &str)> {
    each.parts.iter().map(|part| (part.from.as_str(), part.to.as_str())).collect()
}

/// Relay counters match the trace of their parts; the source's counters match its own part.
#[test]
fn relay_counters_match_the_trace() {
    for number in 0..10 {
        for (down, overrides) in [(true, &[][..]), (false, &["transfer.from=mobile", "transfer.to=fixed"])] {
            let scenario = read(LOSSY, overrides);
            for scheme in SPLITTING {
                let result = run(&scenario, scheme, number, EVERYTHING);
                assert_eq!(result.ended, Ended::Finished, "{scheme}");
                let [each] = &result.connections[..] else { panic!("one connection") };
                let parts = if down {
                    [("fixed", "base"), ("base", "mobile")]
                } else {
                    [("mobile", "base"), ("base", "fixed")]
                };
                assert_eq!(ends(each), parts);
                let [near, far] = &each.parts[..] else { panic!("two parts") };
                let metrics = &each.metrics;
                assert_eq!(metrics.segments_sent, count(near, "sent"), "{scheme}");
                assert_eq!(metrics.relay_segments_sent, count(far, "sent"), "{scheme}");
                assert_eq!(metrics.timeouts, Some(count(near, "timeout")), "{scheme}");
                assert_eq!(metrics.relay_timeouts, count(far, "timeout"), "{scheme}");
                assert_eq!(metrics.fast_retransmits, Some(count(near, "fast-retransmit")), "{scheme}");
                assert_eq!(metrics.acks_sent, Some(count(far, "ack-sent")), "{scheme}");
                let lost = |part| count(part, "lost") + count(part, "ack-lost");
                assert_eq!(metrics.lost_on_air, lost(near) + lost(far), "{scheme}");
                assert_eq!(if down { lost(near) } else { lost(far) }, 0, "nothing is lost on the wire");
                // A part with another segment size may start at new boundaries.
                if scheme != "vs-tcp" {
                    assert!(again(near).contains(&metrics.retransmitted_segments.unwrap()), "{scheme}");
                    assert!(again(far).contains(&metrics.relay_retransmitted_segments), "{scheme}");
                }
                assert!(metrics.relay_payload_bytes >= 100_000);
                assert_eq!((metrics.delivered_bytes, metrics.relay_held_bytes), (100_000, 0), "{scheme}");
                assert_eq!(metrics.acknowledged_undelivered_bytes, 0, "{scheme}");
                let peak = column(far, "held_bytes").iter().copied().fold(0.0, f64::max);
                // A recorder samples after each event, and later events at the same instant may follow.
                assert_eq!(metrics.relay_peak_bytes as f64, peak, "{scheme}");
                assert!((1..=6_000).contains(&metrics.relay_peak_bytes), "{scheme}");
                assert_eq!(column(far, "held_bytes").last(), Some(&0.0));
            }
        }
    }
}

/// Bounds on the number of retransmissions: segments in the trace that start where another did, and possibly
/// some without data, which may be SYN, FIN or neither.
fn again(part: &PartRun) -> std::ops::RangeInclusive<u64> {
    let events = events(part);
    let count = |is: &dyn Fn(usize) -> bool| {
        (0..events.event.len()).filter(|&row| events.event[row] == "sent" && is(row)).count() as u64
    };
    let copies = count(&|row| events.packet[row] >= 0 && events.transmission[row] > 1);
    copies..=copies + count(&|row| events.packet[row] < 0)
}

/// At the time limit the base station has acknowledged more than the mobile host received, and holds most of
/// the difference; the rest is in flight. Computed from the trace: bytes acknowledged to the source less
/// bytes delivered.
#[test]
fn acknowledged_but_undelivered_bytes_are_counted() {
    for scheme in SPLITTING {
        let mut most = 0;
        for limit in ["700 ms", "1.5 s", "2 s", "3 s"] {
            let limit = format!("limit={limit}");
            let scenario = read(LOSSY, &["transfer.size=unlimited", &limit, "tcp.iss=4294960000"]);
            let result = run(&scenario, scheme, 0, EVERYTHING);
            assert_eq!(result.ended, Ended::TimeLimit);
            let metrics = &result.connections[0].metrics;
            // SYN takes a sequence number before the first byte.
            let una = *column(&result.connections[0].parts[0], "snd_una_bytes").last().expect("it has begun");
            let acknowledged = una as u64 - 1;
            assert!(acknowledged >= metrics.delivered_bytes, "{scheme}, {limit}");
            let undelivered = acknowledged - metrics.delivered_bytes;
            assert_eq!(metrics.acknowledged_undelivered_bytes, undelivered, "{scheme}, {limit}");
            let held = *column(&result.connections[0].parts[1], "held_bytes").last().expect("it has begun");
            assert_eq!(metrics.relay_held_bytes as f64, held, "{scheme}, {limit}");
            most = most.max(undelivered);
        }
        assert!(most > 2_000, "{scheme}: {most} B at most");
    }
}

/// Without a split nothing is acknowledged on behalf of the destination, nor with one that keeps the end-to-end
/// semantics: in random scenarios with random time
/// limits.
#[test]
fn an_unsplit_connection_has_no_undelivered_bytes() {
    let unsplit: Vec<_> = Schemes::default().all().map(Scheme::name).collect();
    let unsplit = unsplit.into_iter().filter(|name| !ALL_SPLITTING.contains(name));
    for scheme in unsplit.chain(["m-tcp"]) {
        for number in 0..60 {
            let limit = format!("limit={} ms", 300 + 997 * number);
            let profile = ["rfc", "ns2", "ebsn"][number as usize % 3];
            let profile = format!("tcp.profile={profile}");
            let loss = ["radio.channel.frame-loss.loss=0.1", "radio.fec=bch-255-131-18"];
            let [loss, fec] = loss;
            let overrides = [&limit, &profile, loss, fec, "wired.queue=3 packets", "tcp.close=true"];
            let scenario = read(SCENARIO, &overrides);
            // Some schemes extend another flavour of TCP.
            if installed(&Schemes::default(), scheme).mismatch(&scenario.tcp).is_some() {
                continue;
            }
            let result = run(&scenario, scheme, number, Observe { trace: true, ..Observe::default() });
            let [each] = &result.connections[..] else { panic!("one connection") };
            assert!(scheme == "m-tcp" || ends(each) == [("fixed", "mobile")]);
            let metrics = &each.metrics;
            assert_eq!(metrics.acknowledged_undelivered_bytes, 0, "{scheme}, {number}");
            let relayed = [
                metrics.relay_segments_sent,
                metrics.relay_payload_bytes,
                metrics.relay_retransmitted_segments,
                metrics.relay_timeouts,
                metrics.relay_peak_bytes,
                metrics.relay_held_bytes,
            ];
            assert!(relayed == [0; 6] || scheme == "m-tcp", "{scheme}, {number}");
        }
    }
}

/// Relay counters exclude the warm-up, as all counters do; the peak covers the whole run, and held bytes are
/// those at its end.
#[test]
fn relay_counters_exclude_the_warm_up() {
    for scheme in SPLITTING {
        let whole = run(&read(LOSSY, &["transfer.size=unlimited", "limit=20 s"]), scheme, 3, EVERYTHING);
        let before = run(&read(LOSSY, &["transfer.size=unlimited", "limit=8 s"]), scheme, 3, EVERYTHING);
        let rest = ["transfer.size=unlimited", "limit=20 s", "warmup=8 s"];
        let rest = run(&read(LOSSY, &rest), scheme, 3, EVERYTHING);
        let [whole, before, rest] = [&whole, &before, &rest].map(|run| &run.connections[0].metrics);
        let counts = |metrics: &lasthop_experiment::ConnectionMetrics| {
            [
                metrics.relay_segments_sent,
                metrics.relay_payload_bytes,
                metrics.relay_retransmitted_segments,
                metrics.relay_timeouts,
            ]
        };
        for ((whole, before), rest) in counts(whole).into_iter().zip(counts(before)).zip(counts(rest)) {
            assert_eq!(rest, whole - before, "{scheme}");
        }
        assert!(rest.relay_retransmitted_segments > 0, "{scheme}");
        let at_end = |metrics: &lasthop_experiment::ConnectionMetrics| {
            (metrics.relay_peak_bytes, metrics.relay_held_bytes, metrics.acknowledged_undelivered_bytes)
        };
        assert_eq!(at_end(rest), at_end(whole), "{scheme}");
    }
}

/// A finite transfer ends when the mobile host has all data, long after the wired host has all
/// acknowledgements: with a slow wireless link the base station buffers a whole small transfer.
#[test]
fn a_run_ends_when_the_mobile_host_has_all_data() {
    for scheme in SPLITTING {
        let slow = ["transfer.size=5 KB", "radio.rate=8 kbps", "radio.channel=perfect"];
        let result = run(&read(LOSSY, &slow), scheme, 0, EVERYTHING);
        assert_eq!(result.ended, Ended::Finished, "{scheme}");
        let [each] = &result.connections[..] else { panic!("one connection") };
        assert!(each.metrics.finished && each.metrics.delivered_bytes == 5_000);
        let last = |part: &PartRun, kind: &str| {
            let events = events(part);
            let row = events.event.iter().rposition(|event| *event == kind).expect("there is one");
            events.time_s[row]
        };
        let told = last(&each.parts[0], "ack-received");
        let arrived = last(&each.parts[1], "delivered");
        assert!(told < 1.0 && arrived > 5.0, "{scheme}: told at {told} s, there at {arrived} s");
        assert!(last(&each.parts[1], "ack-received") > arrived, "FIN is acknowledged, too");
        assert!(each.metrics.completion_time_s.expect("it is finished") <= arrived);
        // At an earlier time limit it is unfinished, although the source has all acknowledgements.
        let cut = run(&read(LOSSY, &[&slow[..], &["limit=3 s"]].concat()), scheme, 0, EVERYTHING);
        let metrics = &cut.connections[0].metrics;
        assert!(!metrics.finished && cut.ended == Ended::TimeLimit && metrics.completion_time_s.is_none());
        let missing = 5_000 - metrics.delivered_bytes;
        assert!(missing > 0 && metrics.acknowledged_undelivered_bytes == missing, "{scheme}");
    }
}

/// Several connections have separate relays, at one base station or at two; totals are sums, except for the
/// peak, which is a maximum.
#[test]
fn each_connection_has_its_own_relays() {
    let overrides =
        ["tcp.close=true", "connection.third={to=\"phone\"}", "radio.channel.frame-loss.loss=0.02"];
    for scheme in SPLITTING {
        let result = run(&read(NETWORK, &overrides), scheme, 0, EVERYTHING);
        let metrics = || result.connections.iter().map(|each| &each.metrics);
        let expected = [
            [("server", "base1"), ("base1", "phone")],
            [("server", "base2"), ("base2", "laptop")],
            [("server", "base1"), ("base1", "phone")],
        ];
        for (each, expected) in result.connections.iter().zip(expected) {
            assert_eq!(ends(each), expected);
            assert!(
                each.metrics.finished && each.metrics.relay_segments_sent == count(&each.parts[1], "sent")
            );
            assert!(each.metrics.relay_peak_bytes > 0);
        }
        let all = &result.metrics.connections;
        assert_eq!(all.relay_segments_sent, metrics().map(|each| each.relay_segments_sent).sum::<u64>());
        assert_eq!(all.relay_payload_bytes, metrics().map(|each| each.relay_payload_bytes).sum::<u64>());
        assert_eq!(Some(all.relay_peak_bytes), metrics().map(|each| each.relay_peak_bytes).max());
    }
}

/// A connection between mobile hosts is split twice, at one or two base stations: both hosts have wireless
/// parts, and the part in between has the wired settings.
#[test]
fn a_connection_between_mobile_hosts_is_split_twice() {
    let far = ["topology.path={routers=3, wireless=\"both\"}"];
    let near = [
        "topology.graph={wired=[\"server-base\"], radio=[\"base-a\", \"base-b\"]}",
        "transfer.from=a",
        "transfer.to=b",
    ];
    for (shape, expected) in [
        (&far[..], [("source", "R1"), ("R1", "R3"), ("R3", "destination")]),
        (&near[..], [("a", "base"), ("base", "base"), ("base", "b")]),
    ] {
        for scheme in SPLITTING {
            for number in 0..5 {
                let sized = ["scheme.vs-tcp.initial_size=128 B", "scheme.metp.wireless.packet_size=300 B"];
                let scenario = read(LOSSY, &[shape, &sized].concat());
                let result = run(&scenario, scheme, number, EVERYTHING);
                assert_eq!(result.ended, Ended::Finished, "{scheme} over {shape:?}");
                let [each] = &result.connections[..] else { panic!("one connection") };
                assert_eq!(ends(each), expected);
                let sent: u64 = each.parts[1..].iter().map(|part| count(part, "sent")).sum();
                let metrics = &each.metrics;
                assert_eq!(metrics.relay_segments_sent, sent, "{scheme} over {shape:?}");
                let timeouts: u64 = each.parts[1..].iter().map(|part| count(part, "timeout")).sum();
                assert_eq!(metrics.relay_timeouts, timeouts, "{scheme} over {shape:?}");
                assert!(metrics.delivered_bytes == 100_000 && metrics.relay_held_bytes == 0);
                let largest = |part| column(part, "mss_bytes").iter().copied().fold(0.0, f64::max);
                let sizes = match scheme {
                    "i-tcp" => [524.0, 524.0, 524.0],
                    "metp" => [248.0, 524.0, 248.0],
                    _ => [1024.0, 524.0, 1024.0],
                };
                let wired = largest(&each.parts[1]);
                let wireless = [0, 2].map(|place| largest(&each.parts[place]));
                assert_eq!(wired, sizes[1], "{scheme}");
                for found in wireless {
                    assert!(found <= sizes[0] && (scheme == "vs-tcp" && found > 128.0 || found == sizes[0]));
                }
            }
        }
    }
}

/// The series of the base station's sender shows segment size and held bytes; that of the source, which
/// relays nothing, does not. A mobile source has the scheme's sizes.
#[test]
fn series_show_segment_sizes_and_held_bytes() {
    let turned = ["transfer.from=mobile", "transfer.to=fixed"];
    for (wireless, overrides) in [(1, &[][..]), (0, &turned)] {
        let result = run(&read(LOSSY, overrides), "vs-tcp", 0, EVERYTHING);
        let parts = &result.connections[0].parts;
        let sizes = column(&parts[wireless], "mss_bytes");
        assert_eq!(sizes[0], 512.0);
        assert!(sizes.iter().all(|&size| (128.0..=1024.0).contains(&size) && size % 8.0 == 0.0));
        assert!(
            sizes.iter().any(|&size| size < 400.0) && sizes.iter().any(|&size| size > 512.0),
            "{sizes:?}"
        );
        assert!(column(&parts[1 - wireless], "mss_bytes").iter().all(|&size| size == 524.0));
        let names = |part: &PartRun| -> Vec<&str> {
            part.series.as_ref().expect("recorded").columns.iter().map(|column| column.0).collect()
        };
        assert!(names(&parts[1]).contains(&"held_bytes") && !names(&parts[0]).contains(&"held_bytes"));
        // Segments do not exceed the largest size in effect.
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        let traced = events(&parts[wireless]);
        let biggest = traced.size_bytes.iter().copied().max().expect("something was sent");
        assert_eq!(biggest as f64, largest + 40.0 + 12.0, "with headers and timestamps");
    }
}

/// The packets of a pcapng file: interface, and bytes including the padding and options of the block.
fn captured(path: &std::path::Path) -> Vec<(u32, Vec<u8>)> {
    let bytes = std::fs::read(path).expect("it was written");
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (mut at, mut packets) = (0, Vec::new());
    while at < bytes.len() {
        let end = at + u32_at(at + 4) as usize;
        if u32_at(at) == 6 {
            packets.push((u32_at(at + 8), bytes[at + 28..end - 4].to_vec()));
        }
        at = end;
    }
    packets
}

/// A capture at a source shows the options of its own part: the segment size of a mobile source is the
/// scheme's, and with selective repeat SACK is permitted (RFC 9293 section 3.7.1, RFC 2018 section 2).
#[test]
fn a_capture_at_a_mobile_source_shows_the_wireless_part() {
    let path = std::env::temp_dir().join(format!("lasthop-mobile-source-{}.pcapng", std::process::id()));
    let has = |overrides: &[&str], option: &[u8]| {
        let scenario = read(LOSSY, &[overrides, &["transfer.size=5 KB"]].concat());
        run(&scenario, "vs-tcp", 0, Observe { pcap: Some(&path), ..Observe::default() });
        let at_source = captured(&path).into_iter().filter(|packet| packet.0 == 0);
        at_source.into_iter().any(|(_, bytes)| bytes.windows(option.len()).any(|window| window == option))
    };
    let [largest, wired] = [1024u16 + 12, 536].map(|mss| [[2, 4], mss.to_be_bytes()].concat());
    let turned = ["transfer.from=mobile", "transfer.to=fixed"];
    assert!(has(&[], &wired) && !has(&[], &largest));
    assert!(has(&turned, &largest) && !has(&turned, &wired));
    let selective = [turned[0], turned[1], "scheme.vs-tcp.recovery=selective-repeat"];
    // MSS, a window scale of zero, and "SACK permitted", each padded.
    let permitted = [&largest[..], &[1, 3, 3, 0, 1, 1, 4, 2]].concat();
    assert!(has(&selective, &permitted) && !has(&turned, &permitted));
    std::fs::remove_file(&path).expect("it is there");
}

/// A last hop of 2 Mb/s behind a fast wire. Acknowledgements are not lost, and their transmission time is
/// negligible.
const HOP: &str = r#"
limit = "310 s"
warmup = "10 s"

[transfer]
size = "unlimited"

[tcp]
profile = "rfc"
packet_size = "1040 B"
window = "200 KB"
ack_every = 1

[wired]
rate = "100 Mbps"
delay = "1 ms"

[radio]
rate = "2 Mbps"
delay = "0 s"
uplink = { rate = "1000 Gbps", channel = "perfect" }

[scheme]
metp.buffer = "200 KB"
metp.wireless.packet_size = "1052 B"
"#;

/// A segment of the wireless part, with headers and timestamps.
const PACKET: f64 = 1052.0;
/// Link rate in segments per second.
const SLOTS: f64 = 2_000_000.0 / 8.0 / PACKET;

fn window(packets: u32) -> String {
    format!("scheme.metp.wireless.window={} B", packets * 1000)
}

/// Segments of 1000 B delivered per second.
fn segments_per_second(run: &Run) -> f64 {
    run.metrics.connections.throughput_bps / 8_000.0
}

/// Without losses the link is fully used by segments of 1052 B with headers, of which 1000 are payload. One
/// segment may be cut by either end of the measured 300 s.
#[test]
fn a_lossless_link_is_fully_used() {
    for recovery in ["go-back-n", "selective-repeat"] {
        let recovery = format!("scheme.metp.recovery={recovery}");
        for packets in [2, 10, 60] {
            let scenario = read(HOP, &[&recovery, &window(packets)]);
            let found = segments_per_second(&run(&scenario, "metp", 0, Observe::default()));
            assert!((found - SLOTS).abs() <= 1.0 / 300.0, "{found} per second, not {SLOTS}");
        }
    }
}

/// A window below the bandwidth-delay product is sent once per round trip: the transmission time of a
/// segment, two delays, and an acknowledgement of 52 B.
#[test]
fn a_small_window_is_sent_once_per_round_trip() {
    for recovery in ["go-back-n", "selective-repeat"] {
        let recovery = format!("scheme.metp.recovery={recovery}");
        for packets in [1, 4, 9] {
            let long = ["radio.delay=30 ms", "radio.uplink.delay=10 ms", "radio.uplink.rate=1 Mbps"];
            let scenario = read(HOP, &[&long[..], &[&recovery, &window(packets)]].concat());
            let found = segments_per_second(&run(&scenario, "metp", 0, Observe::default()));
            let round_trip = PACKET * 8.0 / 2e6 + 0.030 + 0.010 + 52.0 * 8.0 / 1e6;
            let expected = f64::from(packets) / round_trip;
            // One window more or less at the ends of 300 s.
            assert!((found - expected).abs() <= f64::from(packets) / 300.0, "{found}, not {expected}");
        }
    }
}

/// Asserts that the mean of ten runs agrees with the expectation at 99.9 % confidence (Student's t with nine
/// degrees of freedom: 4.78), up to the terms that the expectation neglects.
fn agrees(overrides: &[&str], expected: f64, left_out: f64) {
    let scenario = read(HOP, overrides);
    let rates: Vec<f64> = (0..10)
        .map(|number| segments_per_second(&run(&scenario, "metp", number, Observe::default())) / SLOTS)
        .collect();
    let n = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / n;
    let error = (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
    let (off, most) = ((mean - expected).abs(), 4.78 * error + left_out);
    println!("{overrides:?}: {mean:.5} ± {:.5}, expected {expected:.5}", 4.78 * error);
    assert!(off <= most, "{overrides:?}: {mean} of the rate ± {}, expected {expected}", 4.78 * error);
}

/// Selective repeat retransmits exactly what is lost: a share 1 − p of the link's segments arrive, as long as
/// the link is busy. It is idle in one case: the copy of a segment is lost, and none of the W − 2 segments
/// behind the first copy is. The window is closed then, so nothing sent later reveals the loss, and the timer
/// does, after 1 s. Meanwhile W − 1 segments were carried, and W are retransmitted. The link thus spends 1 +
/// p + p² (1 + (1 − p)^(W − 2) R) segment times per new segment, where R is its rate in segments per second.
///
/// Neglected: coincidences of three losses, up to four kinds, each with a cost of R.
#[test]
fn selective_repeat_throughput_matches_a_closed_form() {
    for loss in [0.0005f64, 0.002, 0.005] {
        let (loss_key, w) = (format!("radio.channel.frame-loss.loss={loss}"), 20);
        let timer = 1.0 + (1.0 - loss).powi(w - 2) * SLOTS;
        let expected = 1.0 / (1.0 + loss + loss * loss * timer);
        let recovery = "scheme.metp.recovery=selective-repeat";
        agrees(&[&loss_key, recovery, &window(w as u32)], expected, 4.0 * loss.powi(3) * SLOTS);
        // Without the timer's term the share is 1 − p.
        assert!((expected - (1.0 - loss)).abs() < 1.1 * loss * loss * timer);
    }
}

/// Go-back-N with a window of W segments above the bandwidth-delay product, so the link is always busy. Each
/// go-back retransmits all W segments, whatever the receiver kept. The retransmitted segment is lost again
/// with probability p, so a lost segment causes 1/(1 − p) go-backs. The W − 1 segments behind it have then
/// been sent twice and cause another only if both copies are lost, with probability p², which is neglected.
/// Of later segments one in 1/p is lost. So there are g = 1/(1 − p) go-backs per W − 1 + 1/p segments, and
/// the link carries 1 + W g segments per that many new ones.
///
/// Neglected: (W − 1) p² more go-backs in such a stretch, each with a cost of W.
#[test]
fn go_back_n_throughput_matches_a_closed_form() {
    for (packets, delay) in [(8u32, "5 ms"), (20, "0 s"), (20, "20 ms")] {
        for loss in [0.002f64, 0.01, 0.03] {
            let w = f64::from(packets);
            let stretch = w - 1.0 + 1.0 / loss;
            let share = |times: f64| 1.0 / (1.0 + w * times / (1.0 - loss) / stretch);
            let expected = share(1.0);
            let left_out = expected - share(1.0 + (w - 1.0) * loss * loss / (1.0 - loss));
            let keys = [
                format!("radio.channel.frame-loss.loss={loss}"),
                format!("radio.delay={delay}"),
                window(packets),
            ];
            agrees(&keys.each_ref().map(String::as_str), expected, left_out);
        }
    }
}

/// The capture of a split run contains both sides: on the base station's interface all forwarded packets, and
/// those in return.
#[test]
fn a_capture_has_the_wireless_side_of_a_split_connection() {
    let text = "[transfer]\nsize = \"20 KB\"\n[tcp]\nclose = true\n[wired]\nrate = \"1 Mbps\"\n[radio]\nrate = \
                \"1 Mbps\"\nchannel.frame-loss.loss = 0.2\n";
    let scenario = Scenario::parse::<&str>(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let path = std::env::temp_dir().join(format!("lasthop-split-{}.pcapng", std::process::id()));
    let observe = Observe { pcap: Some(&path), ..Observe::default() };
    let metrics = run(&scenario, "i-tcp", 0, observe).metrics;
    // The interface and source address of each packet.
    let packets: Vec<_> =
        captured(&path).iter().map(|(id, bytes)| (*id, [12, 13, 14, 15].map(|at| bytes[at]))).collect();
    std::fs::remove_file(&path).expect("it is there");
    let count = |wanted| packets.iter().filter(|packet| **packet == wanted).count() as u64;
    assert_eq!(count((0, [10, 0, 0, 1])), metrics.connections.segments_sent);
    assert_eq!(count((2, [10, 2, 0, 1])), metrics.connections.relay_segments_sent);
    assert!(metrics.connections.lost_on_air > 0 && count((2, [10, 2, 0, 3])) > 5);
}
