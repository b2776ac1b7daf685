//! Schemes that are combined: what each adds, and that nothing else changes.

use lasthop_experiment::{Experiment, Metrics, Observe, Run};
use lasthop_scenario::Scenario;

/// Long bad periods, which an ARQ bridges, and a slow link: the timers of TCP expire while it does.
const WIDE_AREA: &str = include_str!("../../../../scenarios/ebsn-wide-area.toml");

fn run(overrides: &[&str], scheme: &str) -> Run {
    let overrides = [&["schemes=[\"basic\"]", "transfer.size=50 KB", "tcp.close=true"], overrides].concat();
    let scenario = Scenario::parse(WIDE_AREA, "test.toml", &overrides).expect("a sound scenario");
    scenario.run(scheme, 1, 0, Observe::default()).expect("it runs")
}

fn metrics(overrides: &[&str], scheme: &str) -> Metrics {
    run(overrides, scheme).metrics
}

#[test]
fn an_arq_may_belong_to_the_scenario_or_to_a_scheme() {
    let own = "radio.arq={selective-repeat={feedback_delay=\"20 ms\"}}";
    let supplied = ["radio.arq=none", "scheme.arq.protocol={selective-repeat={feedback_delay=\"20 ms\"}}"];
    for (scheme, combined) in [("basic", "arq"), ("ebsn", "ebsn + arq"), ("lhack", "arq + lhack")] {
        let [found, expected] =
            [metrics(&supplied, combined), metrics(&[own, "scheme.basic.arq=true"], scheme)];
        assert_eq!(found, expected, "{combined}");
    }
    // One that the scenario has in one direction only stays so: acknowledgements are lost.
    let one_way = [
        own,
        "radio.uplink={arq=\"none\"}",
        "scheme.basic.arq=true",
        "radio.channel={frame-loss={loss=0.05}}",
    ];
    let [found, expected] = ["arq", "basic"].map(|scheme| metrics(&one_way, scheme));
    assert_eq!(found, expected);
    assert!(found.connections.lost_on_air > 0);
    // The scenario's own ARQ comes first.
    assert_eq!(
        metrics(&[own, "scheme.arq.protocol={stop-and-wait={}}"], "arq"),
        metrics(&[own], "local-recovery")
    );
}

/// The baseline leaves the scenario's ARQ alone unless it is told to switch it off.
#[test]
fn basic_keeps_the_arq() {
    let kept = metrics(&["scheme.basic.arq=true"], "basic");
    assert_eq!(kept, metrics(&[], "local-recovery"));
    let off = metrics(&["scheme.basic.arq=false"], "basic");
    assert_eq!(off, metrics(&["scheme.basic.arq=true", "radio.arq=none"], "basic"));
    assert!(kept.network.link_failures > 0 && off.connections.lost_on_air > 0);
    for (arq, unused) in [(true, vec![]), (false, vec!["arq"])] {
        let overrides = [format!("scheme.basic.arq={arq}")];
        let scenario = Scenario::parse(WIDE_AREA, "test.toml", &overrides).expect("a sound scenario");
        assert_eq!(scenario.unused_by("basic"), unused);
        assert_eq!(scenario.unused_by("i-tcp"), Vec::<&str>::new());
    }
}

/// Spaces do not matter, and the name says which schemes were combined, in order.
#[test]
fn a_combination_has_one_name() {
    for name in ["ebsn + lhack", "ebsn+lhack", "  ebsn  +lhack "] {
        let found = run(&[], name);
        assert_eq!(found.scheme, "ebsn + lhack");
        assert_eq!(found, run(&[], "ebsn + lhack"));
    }
    let twice = ["schemes=[\"ebsn + lhack\", \"ebsn+lhack\"]"];
    let error = Scenario::parse(WIDE_AREA, "test.toml", &twice).expect_err("a repetition").to_string();
    assert!(error.contains("found \"ebsn+lhack\" a second time"), "{error}");
}

/// Both agents act: the source receives the notices of each.
#[test]
fn agents_form_a_chain() {
    let [ebsn, lhack, both] =
        ["ebsn", "lhack", "ebsn + lhack"].map(|scheme| metrics(&[], scheme).connections);
    assert!(ebsn.notices > 0 && lhack.notices > 0);
    assert!(both.notices > ebsn.notices.max(lhack.notices), "{}", both.notices);
    // EBSN prevents the timeouts, and the other scheme does not bring them back.
    assert!(lhack.timeouts > both.timeouts.map(|timeouts| 2 * timeouts), "{lhack:?} and {both:?}");
}

/// On a split connection the reactions belong to the wireless part: there, EBSN prevents the timeouts of the
/// base station. A split comes first wherever it is named.
#[test]
fn a_split_connection_has_the_other_schemes_on_its_wireless_part() {
    let alone = metrics(&[], "i-tcp").connections;
    let both = metrics(&[], "i-tcp + ebsn");
    assert_eq!(both, metrics(&[], "ebsn + i-tcp"));
    let both = both.connections;
    assert!(
        alone.relay_timeouts > 2 * both.relay_timeouts,
        "{} and {}",
        alone.relay_timeouts,
        both.relay_timeouts
    );
    assert_eq!(both.notices, 0, "the source receives no notices");
    assert!(both.throughput_bps > alone.throughput_bps);
}

/// The receiver's reaction is installed at the mobile host, with and without a split; for data from the
/// mobile host, at the receiver of the wireless part, which is the base station. Here its delay only does
/// harm: the link gives up what it loses, and every fast retransmission waits.
#[test]
fn a_receivers_reaction_applies_to_the_wireless_part() {
    let lossy = [
        "radio.channel={frame-loss={loss=0.02}}",
        "radio.arq={selective-repeat={retransmissions=0}}",
        "radio.mtu=none",
        "radio.rate=2 Mbps",
        "wired.rate=10 Mbps",
        "tcp.window=64 KiB",
        "tcp.profile=rfc",
        "transfer.size=500 KB",
    ];
    for ends in [vec![], vec!["transfer.from=mobile", "transfer.to=fixed"]] {
        let overrides = [&lossy[..], &ends].concat();
        for scheme in ["i-tcp", "arq"] {
            let [without, with] = [String::from(scheme), format!("{scheme} + delayed-dupacks")]
                .map(|scheme| metrics(&overrides, &scheme).connections.throughput_bps);
            assert!(with < 0.9 * without, "{scheme} with {ends:?}: {with} and {without} b/s");
        }
    }
}

/// An ARQ that never gives up is refused where it could not end, whoever brings it.
#[test]
fn a_supplied_arq_is_bounded() {
    let overrides = [
        "schemes=[\"arq\"]",
        "radio.arq=none",
        "radio.rate=100 Gbps",
        "limit=1 h",
        "scheme.arq.protocol={stop-and-wait={retransmissions=\"unlimited\", backoff={fixed=\"0 s\"}}}",
    ];
    let error =
        Scenario::parse(WIDE_AREA, "test.toml", &overrides).expect_err("too many attempts").to_string();
    assert!(error.contains("scheme.arq: found unlimited retransmissions"), "{error}");
}

/// A 2 Mb/s link with bit errors in both directions, behind a Reno sender.
const BIT_ERRORS: &str = r#"
schemes = ["basic"]
[transfer]
size = "1 MB"
[tcp]
profile = "rfc"
flavour = "reno"
[wired]
rate = "10 Mbps"
delay = "5 ms"
[radio]
rate = "2 Mbps"
delay = "20 ms"
channel.iid.ber = 2e-6
"#;

/// Both ends of a wireless link have agents; each one marks the acknowledgements of what arrived corrupted
/// there.
#[test]
fn agents_are_at_both_ends_of_a_link() {
    let upload = ["transfer.from=mobile", "transfer.to=fixed"];
    let managed = ["radio.queue={codel={}}"];
    for (ends, marking) in [
        (&[][..], "eln base-mobile at mobile"),
        (&managed, "eln base-mobile at mobile"),
        (&upload, "eln base-mobile"),
    ] {
        let scenario = Scenario::parse(BIT_ERRORS, "test.toml", ends).expect("a sound scenario");
        let observe = Observe { series: true, ..Observe::default() };
        let run = scenario.run("eln", 1, 0, observe).expect("it runs");
        let marks = run.agents.iter().map(|agent| {
            let series = agent.series.as_ref().expect("it was requested");
            let (_, marks) =
                series.columns.iter().find(|(column, _)| *column == "marked_acks").expect("marks");
            (agent.name.as_str(), marks.last().is_some_and(|&total| total > 0.0))
        });
        let mut marks: Vec<_> = marks.collect();
        marks.sort_unstable();
        let names = ["eln base-mobile", "eln base-mobile at mobile"];
        assert_eq!(marks, names.map(|name| (name, name == marking)), "{ends:?}");
        // The window stays large.
        assert!(throughput(ends, "eln") > 1.1 * throughput(ends, "basic"), "{ends:?}");
    }
}

/// ELN by holes, for uploads: where losses are on the air, it does as well as with perfect knowledge of them, over links with
/// an ARQ and cells too; where they are in the wired network alone, it changes nothing.
#[test]
fn holes_tell_losses_on_the_air_from_congestion() {
    let upload = ["transfer.from=mobile", "transfer.to=fixed"];
    let holes = [&upload[..], &["scheme.eln.holes=true"]].concat();
    let [basic, perfect, found] = [(&upload[..], "basic"), (&upload, "eln"), (&holes, "eln")]
        .map(|(keys, name)| throughput(keys, name));
    assert!(found > 1.1 * basic && found > 0.95 * perfect, "{basic}, {perfect} and {found}");
    // Losses that remain behind an ARQ are not known by errors.
    let arq = ["radio.channel.iid.ber=1e-5", "radio.arq.selective-repeat={retransmissions=0}"];
    let [perfect, found] =
        [&upload[..], &holes[..]].map(|keys| throughput(&[keys, &arq[..]].concat(), "eln"));
    assert!(found > 1.1 * perfect, "{perfect} and {found}");

    let congested =
        [&holes[..], &["radio.channel=perfect", "wired.queue=3 packets", "wired.rate=1 Mbps"]].concat();
    let scenario = Scenario::parse(BIT_ERRORS, "test.toml", &congested).expect("a sound scenario");
    let [basic, eln] =
        ["basic", "eln"].map(|name| scenario.run(name, 1, 0, Observe::default()).expect("it runs"));
    assert!(basic.metrics.connections.retransmitted_bytes > Some(0));
    assert_eq!(eln.metrics, basic.metrics);
    assert!(eln.counters.iter().all(|counter| counter.value == 0), "{:?}", eln.counters);
}

/// NACKs, for uploads: what is lost on the air is retransmitted after a round trip of the last hop, and fewer timeouts are
/// left than with ELN, which says nothing before the destination does. Losses in the wired network alone cause none.
#[test]
fn nacks_repair_losses_of_the_first_hop() {
    let upload = ["transfer.from=mobile", "transfer.to=fixed", "wired.delay=100 ms", "radio.delay=5 ms"];
    let halved = [&upload[..], &["scheme.nack.keep_window=false"]].concat();
    let holes = [&upload[..], &["scheme.eln.holes=true"]].concat();
    let [basic, halved, eln, nack, both] = [
        (&upload[..], "basic"),
        (&halved, "nack"),
        (&holes, "eln"),
        (&upload, "nack"),
        (&upload, "snoop + nack"),
    ]
    .map(|(keys, name)| throughput(keys, name));
    assert!(halved > 1.1 * basic, "{basic} and {halved}");
    assert!(nack > 1.1 * eln && nack > 1.1 * halved, "{eln}, {halved} and {nack}");
    // Only acknowledgements go to the mobile host, of which Snoop repairs nothing.
    assert_eq!(both, nack);

    let congested =
        [&upload[..], &["radio.channel=perfect", "wired.queue=3 packets", "wired.rate=1 Mbps"]].concat();
    let scenario = Scenario::parse(BIT_ERRORS, "test.toml", &congested).expect("a sound scenario");
    let [basic, nack] =
        ["basic", "nack"].map(|name| scenario.run(name, 1, 0, Observe::default()).expect("it runs"));
    assert!(basic.metrics.connections.retransmitted_bytes > Some(0));
    assert_eq!(nack.metrics, basic.metrics);
    assert!(nack.counters.iter().all(|counter| counter.value == 0), "{:?}", nack.counters);
}

/// The mean of ten runs, in bit/s.
fn throughput(overrides: &[&str], scheme: &str) -> f64 {
    let scenario = Scenario::parse(BIT_ERRORS, "test.toml", overrides).expect("a sound scenario");
    let one = |run| scenario.run(scheme, 1, run, Observe::default()).expect("it runs").metrics.connections;
    (0..10).map(|run| one(run).throughput_bps).sum::<f64>() / 10.0
}

/// The corrupted data of a split connection are those of its wireless part.
#[test]
fn agents_at_both_ends_serve_the_wireless_part() {
    let [split, both] = ["i-tcp", "i-tcp + eln"].map(|scheme| throughput(&[], scheme));
    assert!(both > 1.1 * split, "{split} and {both}");
}

/// A trace lists what agents send of their own: copies of segments, acknowledgements and messages, as many as the agents
/// count. A copy is a transmission of its segment; what passes an agent, or is suppressed, is no copy.
#[test]
fn traces_list_what_agents_send() {
    let lossy = ["tcp.profile=linux", "radio.channel.iid.ber=4e-6"];
    let slow = ["tcp.profile=freebsd", "radio.channel.iid.ber=4e-6", "wired.delay=100 ms"];
    let arq = ["radio.arq.stop-and-wait={}"];
    let upload = ["transfer.from=mobile", "transfer.to=fixed"];
    let stamps = ["tcp.timestamps=true", "tcp.tick=1 ms"];
    for (scheme, keys, event, counters) in [
        ("snoop", &lossy[..], "copied", &["snoop.local_retransmissions"][..]),
        ("snoop", &slow, "ack-created", &["snoop.answered_segments"]),
        ("snoop", &lossy, "ack-suppressed", &["snoop.suppressed_dupacks", "snoop.spurious_acks"]),
        ("eln + snoop", &lossy, "copied", &["snoop.local_retransmissions"]),
        ("wtcp-timestamps", &stamps, "copied", &["wtcp-timestamps.local_retransmissions"]),
        ("ebsn", &arq, "notice-created", &["ebsn.notices_sent"]),
        ("lhack", &[], "notice-created", &["lhack.last_hop_acks"]),
        ("nack", &upload, "ack-created", &["nack.nacks_sent"]),
        ("i-tcp + snoop", &["tcp.close=true"], "copied", &["snoop.local_retransmissions"]),
        ("packet-fec", &lossy, "copied", &[]),
    ] {
        let scenario = Scenario::parse(BIT_ERRORS, "test.toml", keys).expect("a sound scenario");
        let observe = Observe { trace: true, ..Observe::default() };
        let run = scenario.run(scheme, 1, 0, observe).expect("it runs");
        let parts = run.connections.iter().flat_map(|connection| &connection.parts);
        let events: Vec<_> = parts.map(|part| part.events.as_ref().expect("it was traced")).collect();
        let rows = events.iter().flat_map(|events| {
            (0..events.event.len()).filter(|&row| events.event[row] == event).map(|row| (*events, row))
        });
        let rows: Vec<_> = rows.collect();
        let counted = run.counters.iter().filter(|each| counters.contains(&each.to_string().as_str()));
        let counted: u64 = counted.map(|each| each.value).sum();
        assert_eq!(rows.len() as u64, counted, "{event} with {scheme}");
        assert_eq!(counters.is_empty(), counted == 0, "{event} with {scheme}");
        for (events, row) in rows {
            let of = counters[0].split('.').next().expect("a scheme");
            assert_eq!(events.reason[row], of);
            assert!(event != "copied" || events.transmission[row] > 1, "{event} with {scheme}");
        }
    }
}

/// Two schemes may not give the same bit of the header a meaning.
#[test]
fn schemes_with_the_same_header_bit_are_refused() {
    let schemes = "schemes=[\"wenp + eln\"]";
    Scenario::parse(BIT_ERRORS, "test.toml", &[schemes]).expect("different bits");
    let error =
        Scenario::parse(BIT_ERRORS, "test.toml", &[schemes, "scheme.wenp.bit=9"]).expect_err("the same bit");
    let expected = "\"wenp\" and \"eln\" use the same bit of the TCP header; leave one of them out";
    assert!(error.to_string().contains(expected), "{error}");
}

/// A scheme that extends one flavour of TCP is refused with another one, at the connections that it extends:
/// all but those of plain senders, and of a split connection the wireless part.
#[test]
fn a_scheme_for_another_flavour_is_refused() {
    let parse = |overrides: &[&str]| Scenario::parse(BIT_ERRORS, "test.toml", overrides);
    parse(&["schemes=[\"smart\"]"]).expect("Reno");
    let error = parse(&["schemes=[\"smart\"]", "tcp.flavour=newreno"]).expect_err("NewReno").to_string();
    let expected = "\"smart\" extends the loss recovery of Reno; set flavour = \"reno\" in [tcp], or leave the scheme out";
    assert!(error.contains(expected), "{error}");
    let split = "schemes=[\"i-tcp + smart\"]";
    parse(&[split, "tcp.flavour=newreno"]).expect_err("the wireless part is as in [tcp]");
    parse(&[split, "tcp.flavour=newreno", "scheme.i-tcp.wireless.flavour=reno"]).expect("Reno there");
    let error = parse(&[split, "scheme.i-tcp.wireless.flavour=newreno"]).expect_err("NewReno there");
    assert!(error.to_string().contains("flavour = \"reno\" in [scheme.i-tcp.wireless]"), "{error}");
}

/// An asymmetric ARQ instead of the scenario's own: nothing is lost, the mobile host reports on eight units
/// at once, and what it reports is counted where it arrives.
#[test]
fn airmail_replaces_the_arq_and_counts_its_reports() {
    let lossy = ["radio.channel={frame-loss={loss=0.1}}", "radio.queue=\"100 packets\""];
    let own = [&lossy[..], &["radio.arq={stop-and-wait={retransmissions=0}}"]].concat();
    for overrides in [&lossy[..], &own] {
        let scenario = Scenario::parse(BIT_ERRORS, "test.toml", overrides).expect("a sound scenario");
        let run = scenario.run("airmail", 1, 0, Observe::default()).expect("it runs");
        assert_eq!(run.metrics.connections.lost_on_air, 0);
        assert!(run.metrics.network.link_failures > 50, "{}", run.metrics.network.link_failures);
        let counters: std::collections::BTreeMap<_, _> =
            run.counters.iter().map(|each| (each.to_string(), each.value)).collect();
        let [mobile, base] =
            ["mobile_host_reports", "base_station_reports"].map(|name| counters[&format!("airmail.{name}")]);
        // 715 segments of 1,400 B at least, of which some are asked for when the source pauses.
        assert!((85..200).contains(&mobile), "{mobile} reports of the mobile host");
        assert!(base > 50, "{base} reports of the base station");
    }
}

/// Its code protects units while there are losses, and so needs one.
#[test]
fn airmail_codes_units_while_there_are_losses() {
    let bursts = [
        "radio.channel={two-state={good=\"1 s\", bad=\"1 s\", good_ber=0, bad_ber=2e-4}}",
        "tcp.profile=linux",
        "transfer.size=4 MB",
        "radio.delay=5 ms",
    ];
    let code = [&bursts[..], &["radio.fec=\"bch-255-131-18\""]].concat();
    let adaptive = [&code[..], &["scheme.airmail.fec=true"]].concat();
    let always = [&code[..], &["radio.protect=\"all\""]].concat();
    let [plain, coded, all] = [&bursts[..], &adaptive, &always].map(|overrides| {
        let scenario = Scenario::parse(BIT_ERRORS, "test.toml", overrides).expect("a sound scenario");
        scenario.run("airmail", 1, 0, Observe::default()).expect("it runs").metrics.connections.throughput_bps
    });
    // All units are coded in every other second, and the code doubles their size: 1.5 Mb/s at most, and 1.03
    // always.
    assert!(coded > 1.1 * plain && coded > 1.3 * all, "{coded}, without {plain}, always {all}");
    let without = [bursts[0], "scheme.airmail.fec=true", "schemes=[\"airmail\"]"];
    let error = Scenario::parse(BIT_ERRORS, "test.toml", &without).expect_err("no code").to_string();
    assert!(error.contains("needs a link with a code, and"), "{error}");
}

#[test]
fn a_link_without_arq_and_code_is_told_of_both_at_once() {
    let refusal = |overrides: &[&str]| {
        let schemes = ["schemes=[\"selective-fec\"]"];
        Scenario::parse(BIT_ERRORS, "test.toml", &[&schemes, overrides].concat())
            .err()
            .map(|error| error.to_string())
    };
    let (code, arq) = ("radio.fec=bch-255-131-18", "radio.arq.stop-and-wait={}");
    let neither = refusal(&[]).expect("it has neither");
    assert!(neither.contains("[radio.arq.stop-and-wait], and fec = \"bch-255-131-18\""), "{neither}");
    assert!(refusal(&[code]).expect("it has no ARQ").contains("this one has no ARQ; add"));
    assert!(
        refusal(&[arq]).expect("it has no code").contains("needs a link with a code, and this one has none")
    );
    assert_eq!(refusal(&[code, arq]), None);
}

#[test]
fn two_schemes_cannot_both_bring_an_arq() {
    for (schemes, reason) in [
        ("airmail + arq", "\"airmail\" and \"arq\" both bring an ARQ for the link"),
        ("local-recovery + airmail", "\"local-recovery\" and \"airmail\" both bring an ARQ for the link"),
    ] {
        let overrides = [format!("schemes=[\"{schemes}\"]")];
        let error = Scenario::parse(BIT_ERRORS, "test.toml", &overrides).expect_err("two ARQs").to_string();
        assert!(error.contains(reason), "{error}");
    }
    for overrides in
        [["scheme.airmail.every=0"], ["scheme.airmail.window=4"], ["scheme.airmail.period=\"0 s\""]]
    {
        let overrides = [&overrides[..], &["schemes=[\"airmail\"]"]].concat();
        let error = Scenario::parse(BIT_ERRORS, "test.toml", &overrides).expect_err("a fault").to_string();
        assert!(error.contains("scheme.airmail."), "{error}");
    }
    let unneeded = ["schemes=[\"ebsn + airmail\"]"];
    assert!(Scenario::parse(BIT_ERRORS, "test.toml", &unneeded).is_ok(), "EBSN has the ARQ that it needs");
}

/// Frames of adaptive size, for links without an ARQ: nothing is lost, TCP never times out, and the scheme's frames are counted
/// and replace the link's fragments. On a good channel they carry more than GSM's of 30 B.
#[test]
fn rlp_adapts_its_frames_and_counts_them() {
    let link = ["tcp.window=\"16 KB\"", "radio.rate=\"200 kbps\"", "tcp.profile=linux"];
    let run = |more: &[&str]| {
        let overrides = [&link[..], more].concat();
        let scenario = Scenario::parse(BIT_ERRORS, "test.toml", &overrides).expect("a sound scenario");
        let run = scenario.run("rlp", 1, 0, Observe::default()).expect("it runs");
        let connections = &run.metrics.connections;
        assert_eq!((connections.link_discards, connections.timeouts), (0, Some(0)));
        let counters: std::collections::BTreeMap<_, _> =
            run.counters.iter().map(|each| (each.to_string(), each.value)).collect();
        (connections.throughput_bps, counters)
    };
    let fixed = "scheme.rlp.largest=\"30 B\"";
    for (ber, least, most) in [("1e-5", 150, 600), ("1e-3", 30, 60)] {
        let channel = format!("radio.channel={{iid={{ber={ber}}}}}");
        let (adaptive, counters) = run(&[&channel]);
        let (gsm, of_gsm) = run(&[&channel, fixed]);
        let gain = adaptive / gsm;
        assert!(gain > if ber == "1e-5" { 1.15 } else { 0.97 }, "{gain} times the throughput at {ber}");
        let size = counters["rlp.downlink_frame_bytes"];
        assert!((least..=most).contains(&size), "{size} B at {ber}");
        assert!(counters["rlp.size_changes"] > 0 || ber == "1e-3");
        assert_eq!((of_gsm["rlp.downlink_frame_bytes"], of_gsm["rlp.size_changes"]), (30, 0));
        // 1 MB in frames of 24 B of data at most, and the acknowledgements.
        assert!(of_gsm["rlp.frames_delivered"] > 41_667 && of_gsm["rlp.frames_lost"] > 50);
        assert_eq!(of_gsm["rlp.failures"], 0);
        assert_eq!(run(&[&channel, fixed, "radio.mtu=\"128 B\""]), (gsm, of_gsm), "frames replace fragments");
    }
    let limited = ["scheme.rlp.retransmissions=0", "scheme.rlp.failure=\"discard\""];
    let overrides = [&link[..], &limited[..], &["radio.channel={iid={ber=1e-5}}"]].concat();
    let scenario = Scenario::parse(BIT_ERRORS, "test.toml", &overrides).expect("a sound scenario");
    let run = scenario.run("rlp", 1, 0, Observe::default()).expect("it runs");
    let failures = run.counters.iter().find(|each| each.to_string() == "rlp.failures").expect("it counts");
    let lost = run.metrics.connections.link_discards;
    assert!(failures.value > 20 && lost >= failures.value, "{}, {lost} lost", failures.value);
}

#[test]
fn frames_and_fragments_exclude_each_other() {
    for (overrides, expected) in [
        (["radio.arq={rlp={}}", "radio.mtu=\"128 B\""], "which its frames replace"),
        (["radio.arq={rlp={}}", "radio.unit=\"128 B\""], "which its frames replace"),
        (
            ["radio.arq={rlp={largest=\"100 B\"}}", ""],
            "radio.arq.largest: found a size that is not a multiple",
        ),
        (["schemes=[\"rlp\"]", "scheme.rlp.frame=\"6 B\""], "scheme.rlp.frame: found no more bytes"),
        (["schemes=[\"rlp + arq\"]", ""], "\"rlp\" and \"arq\" both bring an ARQ for the link"),
    ] {
        let overrides: Vec<_> = overrides.into_iter().filter(|each| !each.is_empty()).collect();
        let error = Scenario::parse(BIT_ERRORS, "test.toml", &overrides).expect_err("a fault").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
