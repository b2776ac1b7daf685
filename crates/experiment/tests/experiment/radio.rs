//! Asymmetric wireless links, and coding as schemes request it.

use lasthop_experiment::{Experiment, Metrics, Observe, Run};
use lasthop_scenario::Scenario;
use lasthop_testing::scenario_texts::SCENARIO;

fn read(text: &str, overrides: &[&str]) -> Scenario {
    Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario, scheme: &str, number: u64) -> Run {
    let observe = Observe { trace: true, ..Observe::default() };
    scenario.run(scheme, 1, number, observe).unwrap_or_else(|error| panic!("{error}"))
}

/// Time of the first event of a kind, in microseconds.
fn first(run: &Run, kind: &str) -> Option<u64> {
    let events = run.connections[0].parts[0].events.as_ref().expect("it was traced");
    let row = events.event.iter().position(|event| *event == kind)?;
    Some((events.time_s[row] * 1e6).round() as u64)
}

/// A segment of 1000 bytes takes 8 ms, its acknowledgement of 40 bytes 320 µs.
const ONE_SEGMENT: &str = r#"
limit = "10 s"

[topology.graph]
radio = ["base-mobile"]

[transfer]
size = "960 B"
from = "base"
to = "mobile"

[tcp]
profile = "rfc"
packet_size = "1000 B"
ack_every = 1
handshake = false
close = false

[radio]
rate = "1 Mbps"
"#;

/// Uplink settings apply to traffic towards the base station: acknowledgements, or data in the reverse
/// direction. Times of arrival of a segment and of its acknowledgement, by hand; 0 if lost.
#[test]
fn uplink_settings_apply_towards_the_base_station() {
    // Good until 1 ms and from 20 ms to 21 ms: too short for data. Of the attempts at 8, 14 and 20 ms the
    // last delivers the acknowledgement.
    let fades = "channel.fixed-periods={good=\"1 ms\", bad=\"19 ms\"}";
    let tries = "arq.stop-and-wait.backoff.fixed=5.68 ms";
    let pauses = "radio.arq.stop-and-wait.backoff.fixed=5.68 ms";
    for (uplink, of_all, down, up) in [
        (&[][..], &[][..], (8_000, Some(8_320)), (8_000, Some(8_320))),
        (&["rate=100 kbps"], &[], (8_000, Some(11_200)), (80_000, Some(80_320))),
        (&["delay=5 ms"], &[], (8_000, Some(13_320)), (13_000, Some(13_320))),
        (&["delay=0 s"], &["radio.delay=5 ms"], (13_000, Some(13_320)), (8_000, Some(13_320))),
        (&["expansion=2"], &[], (8_000, Some(8_640)), (16_000, Some(16_320))),
        (&["unit=600 B"], &[], (8_000, Some(12_800)), (9_600, Some(9_920))),
        (&["unit=none"], &["radio.unit=600 B"], (9_600, Some(9_920)), (8_000, Some(12_800))),
        (&["unit=none", "mtu=128 B"], &["radio.unit=600 B"], (9_600, Some(9_920)), (8_000, Some(12_800))),
        (&[fades], &[], (8_000, None), (0, None)),
        (&[fades, tries], &[pauses], (8_000, Some(20_320)), (0, None)),
        (&[fades, "arq=none"], &[pauses], (8_000, None), (0, None)),
        (&["channel.frame-loss.loss=1", "arq=none"], &[pauses], (8_000, None), (0, None)),
        (&["channel=perfect"], &["radio.channel.frame-loss.loss=1"], (0, None), (8_000, None)),
        // A code needs a scheme that uses it.
        (&["fec=bch-255-131-18"], &[], (8_000, Some(8_320)), (8_000, Some(8_320))),
    ] {
        let turned = ["transfer.from=mobile", "transfer.to=base", "limit=900 ms"];
        // Schemes check the local recovery of the direction towards the receiver.
        let upwards = of_all.contains(&pauses) && !uplink.contains(&"arq=none");
        for (ends, recovers, (delivered, answered)) in
            [(&["limit=900 ms"][..], of_all.contains(&pauses), down), (&turned, upwards, up)]
        {
            let own: Vec<String> = uplink.iter().map(|key| format!("radio.uplink.{key}")).collect();
            let own: Vec<&str> = own.iter().map(String::as_str).collect();
            let scheme = if recovers { "local-recovery" } else { "basic" };
            let schemes = format!("schemes=[\"{scheme}\"]");
            let scenario = read(ONE_SEGMENT, &[&own, of_all, ends, &[schemes.as_str()]].concat());
            let result = run(&scenario, scheme, 0);
            let expected = (Some(delivered).filter(|&at| at > 0), answered);
            let found = (first(&result, "delivered"), first(&result, "ack-received"));
            assert_eq!(found, expected, "{uplink:?}, {of_all:?}, {ends:?}");
        }
    }
}

/// Each direction has its own unit size: two units of 600 bytes down and four of 10 up.
#[test]
fn unit_sizes_apply_per_direction() {
    let metrics = |overrides: &[&str]| run(&read(ONE_SEGMENT, overrides), "basic", 0).metrics;
    let attempts = |overrides: &[&str]| metrics(overrides).network.link_attempts;
    assert_eq!(attempts(&["radio.unit=600 B", "radio.uplink={unit=\"none\", mtu=\"10 B\"}"]), 2 + 4);
    assert_eq!(attempts(&["radio.mtu=300 B", "radio.uplink={mtu=\"none\", unit=\"30 B\"}"]), 4 + 2);
    assert_eq!(attempts(&["radio.mtu=300 B", "radio.uplink.mtu=none"]), 4 + 1);
    // The queue before the link: of three acknowledgements two find it full, since the first takes 320 ms.
    let crowded = ["transfer.size=2880 B", "tcp.initial_window=3 segments", "radio.uplink.rate=1 kbps"];
    let drops = |more: &str| metrics(&[&crowded[..], &[more]].concat()).connections.queue_drops;
    assert_eq!((drops("radio.uplink.queue=0 packets"), drops("radio.uplink.queue=1 packet")), (2, 1));
    assert_eq!(drops("radio.queue=2 packets"), 0);
}

/// A link's uplink settings override the common ones, as for every key.
#[test]
fn a_links_uplink_overrides_the_common_uplink() {
    let answered =
        |overrides: &[&str]| first(&run(&read(ONE_SEGMENT, overrides), "basic", 0), "ack-received");
    let of_all = "radio.uplink={rate=\"100 kbps\", delay=\"1 ms\"}";
    assert_eq!(answered(&[of_all]), Some(12_200));
    assert_eq!(answered(&[of_all, "link.base-mobile.uplink.delay=2 ms"]), Some(10_320));
    assert_eq!(answered(&[of_all, "link.base-mobile.uplink={}"]), Some(8_320));
    // They override the link's common settings, which override those of all links.
    assert_eq!(answered(&[of_all, "link.base-mobile.rate=2 Mbps"]), Some(8_200));
    assert_eq!(answered(&["link.base-mobile={rate=\"2 Mbps\", uplink={delay=\"1 ms\"}}"]), Some(5_160));
}

/// Equal packets at equal times in both directions, over a channel that is deterministic given its state.
const BOTH_WAYS: &str = r#"
limit = "61 s"

[topology.graph]
radio = ["base-mobile"]

[transfer]
size = "1 B"
from = "base"
to = "mobile"
start = "60.5 s"

[radio]
rate = "1 Mbps"
channel.two-state = { good = "100 ms", bad = "40 ms", good_ber = 0, bad_ber = 1 }

[traffic.down]
from = "base"
to = "mobile"
packet_size = "500 B"
stop = "60 s"
law.constant.rate = "400 kbps"

[traffic.up]
from = "mobile"
to = "base"
packet_size = "500 B"
stop = "60 s"
law.constant.rate = "400 kbps"
"#;

fn delivered(scenario: &Scenario, number: u64) -> [u64; 2] {
    let result = scenario.run("basic", 1, number, Observe::default()).unwrap();
    let of = |name: &str| result.traffic.iter().find(|each| each.0 == name).unwrap().1.delivered_packets;
    [of("down"), of("up")]
}

/// Without its own channel the uplink has the fades of the downlink, whatever other settings it has;
/// with its own channel, even of the same kind, it has others, and those of the downlink are unchanged.
#[test]
fn directions_share_their_fades_unless_one_has_its_own() {
    let own = "radio.uplink.channel.two-state={good=\"100 ms\", bad=\"40 ms\", good_ber=0, bad_ber=1}";
    for number in 0..20 {
        let plain = delivered(&read(BOTH_WAYS, &[]), number);
        assert!(plain[0] == plain[1] && (3_000..5_500).contains(&plain[0]), "{plain:?}");
        for same in ["radio.uplink={}", "radio.uplink.queue=50 packets", "radio.uplink.delay=1 ms"] {
            assert_eq!(delivered(&read(BOTH_WAYS, &[same]), number), plain, "{same}");
        }
        let [down, up] = delivered(&read(BOTH_WAYS, &[own]), number);
        assert_eq!(down, plain[0]);
        assert_ne!(up, plain[1]);
        // Nor do its fades depend on the downlink's.
        let other = "radio.channel.frame-loss.loss=0.5";
        assert_eq!(delivered(&read(BOTH_WAYS, &[own, other]), number)[1], up);
        assert_eq!(delivered(&read(BOTH_WAYS, &["radio.uplink.channel=perfect"]), number), [down, 6_000]);
    }
    // Bit errors and backoffs are drawn per direction in any case.
    let random = ["radio.channel.iid.ber=1e-4", "radio.channel.frame-loss.loss=0.3"];
    for channel in random {
        let down = |more: &[&str]| delivered(&read(BOTH_WAYS, &[&[channel], more].concat()), 0)[0];
        assert_eq!(down(&[]), down(&[own]), "{channel}");
    }
}

/// An outage affects both directions, even if one has its own channel.
#[test]
fn hand_offs_affect_both_directions() {
    let outages = "radio.outage={first=\"1 s\", lasts=\"95 ms\", every=\"2 s\"}";
    for uplink in ["radio.uplink={}", "radio.uplink.channel=perfect", "radio.uplink.channel.iid.ber=0"] {
        let scenario = read(BOTH_WAYS, &["radio.channel=perfect", outages, uplink]);
        assert_eq!(delivered(&scenario, 0), [6_000 - 300; 2], "{uplink}");
    }
}

/// The link of Chiasserini, Garetto and Meo without errors, and segments of three or six units.
const SELECTIVE: &str = r#"
schemes = ["selective-fec", "local-recovery", "basic"]

[transfer]
size = "14000 B"

[tcp]
profile = "ns2"
packet_size = "1440 B"
window = "28800 B"
window_counts = "packets"
handshake = false

[wired]
rate = "10 Mbps"
delay = "30 ms"

[radio]
rate = "384 kbps"
unit = "480 B"
fec = "bch-255-131-18"
arq.selective-repeat = {}
uplink.unit = "none"
"#;

fn protecting(protect: &str, overrides: &[&str]) -> Metrics {
    let protect = format!("scheme.selective-fec.protect={protect}");
    let scenario = read(SELECTIVE, &[&[protect.as_str()], overrides].concat());
    let metrics = run(&scenario, "selective-fec", 0).metrics;
    assert!(metrics.connections.finished && metrics.connections.retransmitted_segments == Some(0));
    metrics
}

/// Units of ten segments plus ten acknowledgements of one unit each: six per segment for all segments, for
/// the first and last three, or for none. Schemes without protection do not use the code.
#[test]
fn the_scheme_selects_the_coded_packets() {
    for (protect, units) in [
        ("none", 30),
        ("all", 60),
        ("selective", 48),
        ("retransmitted", 30),
        ("repeated-units", 30),
        ("marked", 30),
    ] {
        let network = protecting(protect, &[]).network;
        let [acks, bits] = [10, 10 * 40 * 8];
        assert_eq!(
            (network.link_attempts, network.link_bits),
            (units + acks, units * 3840 + bits),
            "{protect}"
        );
    }
    for scheme in ["local-recovery", "basic"] {
        assert_eq!(run(&read(SELECTIVE, &[]), scheme, 0).metrics.network.link_attempts, 30 + 10, "{scheme}");
    }
    let five = "scheme.selective-fec.segments=5";
    assert_eq!(protecting("selective", &[five]).network.link_attempts, 60 + 10);
    // Of 50 segments six are protected, as of ten.
    assert_eq!(protecting("selective", &["transfer.size=70000 B"]).network.link_attempts, 150 + 18 + 50);
}

/// The link's setting overrides the scheme's: data units are doubled, and acknowledgements become 692 bits if
/// protected as well: 320 bits make three codewords with 124 check bits each. Without losses nothing is
/// repeated.
#[test]
fn the_link_may_select_the_coded_packets() {
    for scheme in ["selective-fec", "local-recovery", "basic"] {
        for (overrides, units, ack) in [
            (&["radio.protect=all"][..], 60, 692),
            (&["radio.protect=all", "radio.uplink={unit=\"none\", protect=\"scheme\"}"], 60, 320),
            (&["radio.protect=repeats"], 30, 320),
        ] {
            let network = run(&read(SELECTIVE, overrides), scheme, 0).metrics.network;
            let expected = (units + 10, units * 3840 + 10 * ack);
            assert_eq!((network.link_attempts, network.link_bits), expected, "{scheme}, {overrides:?}");
        }
    }
}

/// A segment in the uplink direction uses the uplink's code and units; (63, 45, 3) makes ⌈1440 · 63/(480 ·
/// 45)⌉ = 5 of three.
#[test]
fn each_direction_has_its_own_code() {
    let turned = ["transfer.from=mobile", "transfer.to=fixed", "radio.uplink.unit=480 B"];
    let attempts = |more: &[&str]| protecting("all", &[&turned[..], more].concat()).network.link_attempts;
    assert_eq!(attempts(&[]), 60 + 10);
    assert_eq!(attempts(&["radio.uplink.fec=bch-63-45-3"]), 50 + 10);
    assert_eq!(attempts(&["radio.uplink={unit=\"960 B\", fec=\"bch-63-45-3\"}"]), 30 + 10);
    assert_eq!(protecting("all", &["radio.uplink.fec=bch-63-45-3"]).network.link_attempts, 60 + 10);
}

/// A source without the scheme marks nothing.
#[test]
fn a_source_without_the_scheme_marks_nothing() {
    let metrics = protecting("all", &["connection.transfer.plain=true"]);
    assert_eq!(metrics.network.link_attempts, 30 + 10);
}

/// In fading that destroys a unit but no codeword, no segment is retransmitted if all are protected, many are
/// if none is, and none of the protected ones.
#[test]
fn coded_segments_survive_fades() {
    let fading = "radio.channel.rayleigh-gilbert={fading_margin=\"1 dB\", doppler=0.1, step=\"10 ms\"}";
    let ends = [fading, "radio.uplink.channel=perfect", "radio.arq.selective-repeat.retransmissions=1"];
    let lost = |protect: &str| -> Vec<i64> {
        let protect = format!("scheme.selective-fec.protect={protect}");
        let scenario = read(SELECTIVE, &[&ends[..], &[&protect]].concat());
        let lost_in = |number| {
            let result = run(&scenario, "selective-fec", number);
            let events = result.connections[0].parts[0].events.clone().unwrap();
            let rows = 0..events.event.len();
            rows.filter(|&row| events.event[row] == "lost").map(|row| events.packet[row]).collect::<Vec<_>>()
        };
        (0..50).flat_map(lost_in).collect()
    };
    assert!(lost("none").iter().any(|packet| [0, 1, 2, 7, 8, 9].contains(packet)));
    assert_eq!(lost("all"), [0i64; 0]);
    let selective = lost("selective");
    assert!(selective.len() > 20 && selective.iter().all(|packet| (3..7).contains(packet)), "{selective:?}");
}

/// Stop-and-wait has no slots, fragments have no common size, and the uplink has other units.
#[test]
fn coding_works_with_stop_and_wait() {
    let overrides = [
        "schemes=[\"selective-fec\"]",
        "transfer.size=10 KB",
        "radio.fec=bch-63-45-3",
        "radio.uplink={rate=\"64 kbps\", mtu=\"none\", unit=\"64 B\", channel.iid.ber=1e-4}",
    ];
    let result = run(&read(SCENARIO, &overrides), "selective-fec", 0);
    assert!(result.metrics.connections.finished);
}
