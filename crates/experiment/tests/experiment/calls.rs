//! Calls: what a network does to the speech of `[traffic.NAME.voip]`.

use lasthop_experiment::{Experiment, Observe, TrafficMetrics};
use lasthop_scenario::Scenario;
use lasthop_testing::scenario_texts::with;

/// A call over a wireless link of 1 Mb/s and 50 ms, whose uplink loses nothing.
const CALL: &str = r#"schemes = ["basic"]
limit = "100 s"

[wired]
rate = "100 Mbps"
delay = "10 ms"

[radio]
rate = "1 Mbps"
delay = "50 ms"

[traffic.down]
from = "fixed"
to = "mobile"
stop = "90 s"
voip.codec = "g711-plc"

[traffic.up]
from = "mobile"
to = "fixed"
stop = "90 s"
voip = { codec = "g729a", playout_buffer = "40 ms" }
"#;

fn read(text: &str, overrides: &[&str]) -> Scenario {
    Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn metrics(overrides: &[&str], name: &str) -> TrafficMetrics {
    let run = read(CALL, overrides).run("basic", 1, 0, Observe::default()).expect("the scenario is sound");
    run.traffic.into_iter().find(|each| each.0 == name).expect("the call has two directions").1
}

fn assert_close(found: Option<f64>, expected: f64, within: f64) {
    let found = found.expect("it is defined");
    assert!((found - expected).abs() <= within, "found {found}, expected {expected}");
}

/// By hand. Packets of 200 B take 16 us + 10 ms over the wire and 1.6 ms + 50 ms over the air; packets of 60 B have
/// transmission times of 4.8 us and 0.48 ms. Packetisation adds 20 ms, the look-ahead of G.729 5 ms, and the playout buffer
/// its depth.
#[test]
fn a_call_without_losses_has_the_quality_of_its_codec_and_delay() {
    let down = metrics(&[], "down");
    assert_eq!(
        (down.sent_packets, down.delivered_packets, down.lost_packets, down.late_packets),
        (4_500, 4_500, 0, 0)
    );
    assert_close(down.mean_delay_s, 0.061_616, 1e-9);
    for quantile in [down.p50_delay_s, down.p95_delay_s, down.p99_delay_s] {
        assert_close(quantile, 0.061_616, 0.061_616 / 256.0);
    }
    assert_eq!((down.jitter_s, down.burst_ratio), (Some(0.0), None));
    assert_close(down.mouth_to_ear_s, 0.061_616 + 0.020 + 0.060, 1e-9);
    let up = metrics(&[], "up");
    assert_close(up.mouth_to_ear_s, 0.060_484_8 + 0.025 + 0.040, 1e-9);
    // R is 93.2, less 3.5 for 141.6 ms; in the other direction, less 3.1 for 125.5 ms and 11 for the codec.
    assert_close(down.r_factor, 89.7, 0.1);
    assert_close(down.mos, 4.33, 0.01);
    assert_close(up.r_factor, 79.1, 0.1);
    assert_close(up.mos, 3.99, 0.01);
}

/// One frame in ten is lost: E = 95 · 10 / (10 / BurstR + 25.1), within four standard deviations of the losses.
#[test]
fn losses_lower_the_score() {
    let clean = metrics(&[], "down").r_factor.unwrap();
    let down = metrics(&["radio.channel.frame-loss.loss=10%"], "down");
    let share = down.lost_packets as f64 / 4_500.0;
    assert!((share - 0.1).abs() < 4.0 * (0.09_f64 / 4_500.0).sqrt(), "{share}");
    let ratio = down.burst_ratio.unwrap();
    // 405 runs whose lengths have a standard deviation of a third.
    assert!((ratio - 1.0).abs() < 4.0 * 0.33 / 20.0, "{ratio}");
    let impairment = 95.0 * 100.0 * share / (100.0 * share / ratio + 25.1);
    assert_close(down.r_factor, clean - impairment, 1e-6);
    assert!(down.mos.unwrap() < 3.4);
}

/// Losses come in about 45 runs of 10 packets on average; independent losses would come in runs of 1/(1 - 0.1). The standard
/// deviation of a run's length nearly equals its mean.
#[test]
fn bursts_have_a_ratio() {
    let down = metrics(&["radio.channel.gilbert={loss=\"10%\", burst=10}"], "down");
    let ratio = down.burst_ratio.unwrap();
    assert!((ratio - 9.0).abs() < 4.0 * 9.0 / 45_f64.sqrt(), "{ratio}");
    let independent = metrics(&["radio.channel.frame-loss.loss=10%"], "down").burst_ratio.unwrap();
    assert!(ratio > 2.0 * independent, "{ratio} {independent}");
}

/// A bulk transfer fills the queue of the last hop, which determines the delay. Packets whose delay exceeds the least one by
/// more than the buffer are late.
#[test]
fn a_full_queue_makes_packets_late() {
    let bulk = ["radio.queue=50 packets", "transfer.size=unlimited", "tcp.profile=linux"];
    let down = metrics(&bulk, "down");
    assert!(down.late_packets > 3_000, "{}", down.late_packets);
    assert!(down.mos.unwrap() < 1.5);
    assert!(down.p99_delay_s > down.p50_delay_s && down.jitter_s.unwrap() > 0.001);
    let deep = metrics(&[&bulk[..], &["traffic.down.voip.playout_buffer=1 s"]].concat(), "down");
    assert_eq!(deep.late_packets, 0);
    assert!(deep.mouth_to_ear_s.unwrap() > 1.0);
    // With a queue for each flow, the call is hardly affected.
    let shared = [&bulk[1..], &["radio.queue.fq-codel={}"]].concat();
    assert!(metrics(&shared, "down").mos.unwrap() > 4.2);
}

/// At a constant delay the buffer adds nothing after the first 12 of some 34 spurts, in which it adds less than 60 ms.
#[test]
fn an_adaptive_buffer_adds_nothing_to_a_constant_delay() {
    let adaptive =
        ["traffic.down.voip={codec=\"g711-plc\", silence_suppression=true, playout_buffer=\"adaptive\"}"];
    let down = metrics(&adaptive, "down");
    assert_eq!((down.lost_packets, down.late_packets), (0, 0));
    let added = down.mouth_to_ear_s.expect("it is played") - 0.061_616 - 0.020;
    assert!((0.0..0.020).contains(&added), "{added}");
}

/// Beside downloads that fill and drain a queue of 200 ms, an adaptive buffer plays more than a fixed one.
#[test]
fn an_adaptive_buffer_follows_a_queue() {
    let of = |buffer: &str| {
        let voip = format!(
            "traffic.down.voip={{codec=\"g711-plc\", silence_suppression=true, playout_buffer=\"{buffer}\"}}"
        );
        metrics(&["radio.queue=30 packets", "transfer.size=unlimited", &voip], "down")
    };
    let (fixed, adaptive) = (of("60 ms"), of("adaptive"));
    assert!(
        adaptive.late_packets < fixed.late_packets / 4,
        "{} {}",
        adaptive.late_packets,
        fixed.late_packets
    );
    assert!(adaptive.mos > fixed.mos, "{:?} {:?}", adaptive.mos, fixed.mos);
}

#[test]
fn a_call_of_which_nothing_is_played_is_the_worst() {
    let dead = metrics(&["radio.channel.frame-loss.loss=100%"], "down");
    assert_eq!((dead.r_factor, dead.mos, dead.mouth_to_ear_s), (Some(0.0), Some(1.0), None));
    let unborn =
        metrics(&["traffic.down.start=99 s", "traffic.down.stop=99.001 s", "wired.delay=5 s"], "down");
    assert_eq!((unborn.r_factor, unborn.mos), (None, None));
    // Other traffic has no score.
    let noise =
        "traffic.noise={from=\"fixed\", to=\"mobile\", packet_size=\"99 B\", law.constant.rate=\"9 kbps\"}";
    let noise = metrics(&[noise], "noise");
    assert_eq!((noise.r_factor, noise.mos, noise.late_packets, noise.mouth_to_ear_s), (None, None, 0, None));
    assert!(noise.jitter_s.is_some());
}

/// With talk spurts of 1.004 s and pauses of 1.587 s, 39 % of the packets are sent, and half a packet more in each spurt.
#[test]
fn nothing_is_sent_in_pauses() {
    let talk = metrics(
        &["limit=10000 s", "traffic.down.stop=9999 s", "traffic.down.voip.silence_suppression=true"],
        "down",
    );
    let spurts = 9_999.0 / 2.591;
    // A spurt has 1/(1 - e^(-g/on)) packets on average. Standard deviations of spurts and pauses equal their means.
    let mean = 1.0 / (1.0 - (-0.020_f64 / 1.004).exp());
    let expected = spurts * mean;
    let found = talk.sent_packets as f64;
    assert!((found - expected).abs() < 4.0 * expected / spurts.sqrt(), "{found} {expected}");
    assert_eq!(talk.lost_packets, 0);
    assert_eq!(talk.burst_ratio, None, "pauses are not losses");
}

/// The metrics exclude an outage during the warm-up.
#[test]
fn the_warm_up_does_not_count() {
    let outage = ["radio.outage={first=\"10 s\", lasts=\"5 s\"}"];
    assert!(metrics(&outage, "down").lost_packets > 200);
    let warm = metrics(&[&outage[..], &["warmup=20 s"]].concat(), "down");
    assert_eq!((warm.lost_packets, warm.late_packets, warm.burst_ratio), (0, 0, None));
    // A packet that is sent at the end of the warm-up belongs to it.
    assert_eq!(warm.sent_packets, 3_499);
    assert_eq!(warm.mos, metrics(&[], "down").mos);
}

#[test]
fn invalid_calls_are_reported() {
    let told = |from: &str, to: &str| {
        assert!(CALL.contains(from));
        let error = Scenario::parse::<&str>(&CALL.replacen(from, to, 1), "test.toml", &[]).expect_err(to);
        error.to_string()
    };
    for (from, to, reason) in [
        ("g711-plc", "opus", "found \"opus\", expected \"g711\", \"g711-plc\", \"g729a\" or \"gsm-efr\""),
        ("40 ms", "1.1 s", "traffic.up.voip.playout_buffer: found more than \"1 s\""),
        (
            "40 ms",
            "adaptive",
            "traffic.up.voip.playout_buffer: found \"adaptive\" without silence_suppression",
        ),
        (
            "\"40 ms\"",
            "40",
            "found 40, expected a duration with its unit, such as \"60 ms\", or \"adaptive\"",
        ),
        ("stop", "packet_size = \"200 B\"\nstop", "traffic.down.packet_size: found this key beside voip"),
        ("stop", "law.constant.rate = \"9 kbps\"\nstop", "traffic.down.law: found this key beside voip"),
        ("voip.codec = \"g711-plc\"", "packet_size = \"200 B\"", "traffic.down: missing key law, such as"),
        (
            "voip.codec = \"g711-plc\"",
            "law.constant.rate = \"9 kbps\"",
            "traffic.down: missing key packet_size",
        ),
        ("codec = \"g729a\", ", "", "missing key traffic.up.voip.codec"),
    ] {
        let told = told(from, to);
        assert!(told.contains(reason), "{told}");
    }
}

#[test]
fn calls_round_trip() {
    for scenario in [
        read(CALL, &[]),
        read(
            &with(
                "[transfer]",
                "[traffic.x]\nfrom = \"fixed\"\nto = \"mobile\"\nvoip.codec = \"gsm-efr\"\n[transfer]",
            ),
            &[],
        ),
        read(CALL, &["traffic.up.voip.silence_suppression=true", "traffic.up.voip.playout_buffer=adaptive"]),
    ] {
        assert_eq!(read(&scenario.to_toml(), &[]), scenario);
    }
}
