//! Counters of schemes' agents, and the metrics that they become.

use std::collections::{BTreeMap, BTreeSet};

use lasthop_experiment::{Events, Experiment, Metrics, Observe, Run};
use lasthop_proto::scheme::{Combination, Schemes};
use lasthop_scenario::Scenario;

/// A wireless link that loses packets of both directions.
const LOSSY: &str = r#"
schemes = ["basic"]
[transfer]
size = "500 KB"
[tcp]
profile = "rfc"
flavour = "reno"
close = true
[wired]
rate = "10 Mbps"
delay = "5 ms"
queue = "20 packets"
[radio]
rate = "2 Mbps"
delay = "20 ms"
channel.iid.ber = 5e-6
"#;

/// With an ARQ, as the schemes with notices of failed attempts need.
const ARQ: &str = "radio.arq={stop-and-wait={retransmissions=\"unlimited\"}}";

fn scenario(overrides: &[&str]) -> Scenario {
    Scenario::parse(LOSSY, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario, scheme: &str) -> Run {
    let observe = Observe { trace: true, ..Observe::default() };
    scenario.run(scheme, 1, 0, observe).unwrap_or_else(|error| panic!("{scheme}: {error}"))
}

/// The counters of the schemes by the names of their metrics.
fn counters(run: &Run) -> BTreeMap<String, u64> {
    run.counters.iter().map(|each| (each.to_string(), each.value)).collect()
}

fn events(run: &Run) -> &Events {
    run.connections[0].parts[0].events.as_ref().expect("it was requested")
}

fn occurrences(run: &Run, kinds: &[&str]) -> u64 {
    events(run).event.iter().filter(|event| kinds.contains(event)).count() as u64
}

#[test]
fn counters_of_snoop_account_for_every_suppressed_packet() {
    let run = run(&scenario(&[]), "snoop");
    let of = |name: &str| counters(&run)[&format!("snoop.{name}")];
    assert!(of("suppressed_dupacks") > 0);
    assert_eq!(occurrences(&run, &["ack-suppressed"]), of("suppressed_dupacks") + of("spurious_acks"));
    assert_eq!(occurrences(&run, &["suppressed"]), of("answered_segments"));
    assert!(of("local_retransmissions") > 0 && of("cached_segments_peak") > 0);
    // The transfer has ended, and the cache is empty.
    assert_eq!((of("cached_segments"), of("connections")), (0, 0));
}

/// The trace of the wireless part of a split connection has what agents suppressed, with their scheme.
#[test]
fn suppressed_packets_are_in_the_trace_of_the_part_to_which_they_belong() {
    let run = run(&scenario(&["radio.channel.iid.ber=2e-5"]), "eln + i-tcp + snoop");
    let counters = counters(&run);
    let expected = counters["snoop.suppressed_dupacks"] + counters["snoop.spurious_acks"];
    assert!(expected > 0);
    let [wired, wireless] = &run.connections[0].parts[..] else { panic!("two parts") };
    let suppressed = |part: &lasthop_experiment::PartRun| {
        let events = part.events.as_ref().expect("it was requested");
        let both = events.event.iter().zip(&events.reason);
        let reasons: Vec<_> = both.filter(|(event, _)| event.ends_with("suppressed")).collect();
        assert!(reasons.iter().all(|(_, reason)| **reason == "snoop"));
        reasons.iter().filter(|(event, _)| **event == "ack-suppressed").count() as u64
    };
    assert_eq!((suppressed(wired), suppressed(wireless)), (0, expected));
}

/// The source gets every notice that was sent and not lost.
#[test]
fn every_notice_sent_arrives_or_is_lost() {
    for (scheme, overrides, sent) in [
        ("ebsn", &[ARQ][..], &["ebsn.notices_sent"][..]),
        ("source-quench", &[ARQ], &["source-quench.quenches_sent"]),
        ("lhack", &[], &["lhack.last_hop_acks"]),
        ("lhack", &["transfer.from=mobile", "transfer.to=fixed"], &["lhack.first_hop_acks"]),
    ] {
        let run = run(&scenario(overrides), scheme);
        let counters = counters(&run);
        let arrived = occurrences(&run, &["notice-received", "notice-lost"]);
        assert!(arrived > 0, "{scheme}");
        assert_eq!(sent.iter().map(|name| counters[*name]).sum::<u64>(), arrived, "{scheme} {overrides:?}");
    }
}

/// A run whose warm-up ends where another run reaches its limit.
#[test]
fn a_warm_up_divides_totals_and_leaves_levels_and_peaks() {
    let whole = ["transfer.size=unlimited", "limit=9 s"];
    let [first, second] = [["transfer.size=unlimited", "limit=4 s"], whole];
    let rest = [&second[..], &["warmup=4 s"]].concat();
    for scheme in ["snoop", "wenp", "eln", "lhack", "eln + snoop"] {
        let [first, rest, whole] =
            [&first[..], &rest, &whole].map(|overrides| counters(&run(&scenario(overrides), scheme)));
        assert!(first.keys().eq(whole.keys()) && rest.keys().eq(whole.keys()));
        let mut divided = 0;
        for (name, &total) in &whole {
            let (_, counter) = name.split_once('.').expect("the scheme's name is in front");
            if ["cached_segments", "cached_segments_peak", "connections"].contains(&counter) {
                assert_eq!(rest[name], total, "{name}");
            } else {
                assert_eq!(first[name] + rest[name], total, "{name}");
                divided += u64::from(first[name] > 0 && rest[name] > 0);
            }
        }
        assert!(divided > 0, "{scheme}");
    }
}

/// Several base stations: totals and levels add up, and the greatest peak counts.
#[test]
fn agents_of_a_scheme_are_summed() {
    let text = "limit = \"5 s\"\n[topology.graph]\nwired = [\"server-R\", \"R-b1\", \"R-b2\"]\n\
                radio = [\"b1-m1\", \"b2-m2\"]\n[transfer]\nsize = \"unlimited\"\nfrom = \"server\"\nto = \"m1\"\n\
                [connection.one]\n[connection.two]\nto = \"m2\"\n[wired]\nrate = \"10 Mbps\"\ndelay = \"5 ms\"\n\
                [radio]\nrate = \"2 Mbps\"\ndelay = \"20 ms\"\nchannel.iid.ber = 5e-6\n";
    let scenario = Scenario::parse::<&str>(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let run = run(&scenario, "snoop + wenp");
    let names: Vec<_> = run.agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names.len(), 4);
    assert!(names.contains(&"snoop b1-m1") && names.contains(&"wenp b2-m2"), "{names:?}");
    for (metric, found) in counters(&run) {
        let (scheme, counter) = metric.split_once('.').expect("the scheme's name is in front");
        let agents = run.agents.iter().filter(|agent| agent.name.split(' ').next() == Some(scheme));
        let values = agents.flat_map(|agent| &agent.counters).filter(|(name, _)| *name == counter);
        let values: Vec<u64> = values.map(|(_, value)| *value).collect();
        assert_eq!(values.len(), 2, "{metric}");
        let expected = match counter.ends_with("_peak") {
            true => values.into_iter().max().unwrap_or_default(),
            false => values.into_iter().sum(),
        };
        assert_eq!(found, expected, "{metric}");
    }
}

/// The JSON of a run has the counters of each agent, and among the metrics those of the schemes of all results: null
/// where a scheme has none. Without agents nothing is added to the metrics.
#[test]
fn counters_are_in_the_report() {
    let scenario = scenario(&[]);
    let runs = ["basic", "eln", "wenp"].map(|scheme| run(&scenario, scheme));
    let report =
        lasthop_experiment::report::to_json(&scenario, &runs.each_ref()).expect("one seed and run number");
    let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
    let [basic, eln, wenp] = [0, 1, 2].map(|index| &report["results"][index]);
    assert_eq!(basic["agents"], serde_json::json!({}));
    let marked = |result: &serde_json::Value| result["metrics"]["eln.marked_acks"].as_u64();
    assert!(marked(eln).is_some_and(|marked| marked > 0));
    assert!(basic["metrics"]["eln.marked_acks"].is_null() && wenp["metrics"]["eln.marked_acks"].is_null());
    let agents = eln["agents"].as_object().expect("agents by name");
    assert_eq!(agents.keys().collect::<Vec<_>>(), ["eln base-mobile", "eln base-mobile at mobile"]);
    let sum = agents.values().filter_map(|agent| agent["marked_acks"].as_u64()).sum::<u64>();
    assert_eq!(marked(eln), Some(sum));
    assert_eq!(wenp["agents"]["base-mobile"]["packets"], wenp["metrics"]["wenp.packets"]);
    let [all, own] = [basic, eln].map(|result| result["metrics"].as_object().expect("metrics").keys());
    assert!(all.eq(own));
    let alone = lasthop_experiment::report::to_json(&scenario, &[&runs[0]]).expect("one run");
    let alone: serde_json::Value = serde_json::from_str(&alone).expect("it is JSON");
    let metrics = alone["results"][0]["metrics"].as_object().expect("metrics");
    assert!(metrics.keys().map(String::as_str).collect::<BTreeSet<_>>() == Metrics::names().collect());
}

/// What a scenario announces before its runs is what they have; no counter is called like a metric,
/// which would give it the unit of that metric.
#[test]
fn a_scenario_knows_its_counters_before_it_runs() {
    let schemes = Schemes::default();
    let mut with_counters = Vec::new();
    for scheme in schemes.all().map(|scheme| scheme.name()) {
        let mut overrides = vec![format!("schemes=[\"{scheme}\"]"), String::from("limit=1 s")];
        let combination = Combination::new(vec![schemes.get(scheme).expect("it is registered")]);
        if combination.is_ok_and(|each| each.link().arq.is_needed() && each.arq_supplier().is_none()) {
            overrides.push(String::from(ARQ));
        }
        let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
        // Some schemes need other settings.
        let Ok(scenario) = Scenario::parse(LOSSY, "test.toml", &overrides) else { continue };
        let announced = scenario.counters().expect("it is sound");
        let names: Vec<_> = run(&scenario, scheme).counters.iter().map(ToString::to_string).collect();
        assert_eq!(announced, names, "{scheme}");
        for name in &names {
            let (of, counter) = name.split_once('.').expect("the scheme's name is in front");
            assert_eq!(of, scheme);
            assert!(of.len() <= "attempts-exhausted".len(), "columns of events in Python have this width");
            assert!(counter.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{counter}");
            assert!(!Metrics::names().any(|metric| metric == counter), "{counter}");
        }
        if !names.is_empty() {
            with_counters.push(scheme);
        }
    }
    for scheme in ["ebsn", "source-quench", "lhack", "wenp", "snoop", "eln"] {
        assert!(with_counters.contains(&scheme), "{scheme} of {with_counters:?}");
    }
}
