//! Every scheme that acts by reactions, with every recovery and every congestion control: it acts, or the run says why not.
//! The cross comes from the registries, so a recovery or a control that is deaf to a scheme does not pass unnoticed.

use std::collections::{BTreeMap, BTreeSet};

use lasthop_experiment::measure::Events;
use lasthop_experiment::{Experiment, Observe, Run};
use lasthop_proto::tcp::{Congestion, Flavour, Rules};
use lasthop_scenario::Scenario;
use schemars::JsonSchema;

/// Losses on the air without local recovery.
const LOSSES: &str = r#"
schemes = ["basic"]
limit = "300 s"
[transfer]
size = "200 KB"
[tcp]
packet_size = "1000 B"
window = "30 kB"
[wired]
rate = "10 Mbps"
delay = "20 ms"
[radio]
rate = "2 Mbps"
delay = "5 ms"
channel.frame-loss.loss = 0.03
"#;

/// Losses on the air of a sender at the mobile host.
const UPLOAD: &[&str] = &["transfer.from=mobile", "transfer.to=fixed"];

/// Bad periods that local recovery bridges, and that the mobile host predicts.
const BAD_PERIODS: &[&str] = &[
    "radio.channel={two-state={good=\"2 s\", bad=\"4 s\", good_ber=0, bad_ber=0.01}}",
    "radio.arq={selective-repeat={feedback_delay=\"5 ms\"}}",
    "radio.rate=200 kbps",
];

/// Bad periods without local recovery.
const OUTAGES: &[&str] =
    &["radio.channel={two-state={good=\"1 s\", bad=\"1.5 s\", good_ber=0, bad_ber=0.01}}"];

/// A code that protects the packets that a scheme marks.
const CODE: &[&str] = &[
    "radio.channel={two-state={good=\"1 s\", bad=\"100 ms\", good_ber=0, bad_ber=0.01}}",
    "radio.unit=480 B",
    "radio.fec=bch-255-131-18",
    "radio.arq={selective-repeat={feedback_delay=\"5 ms\"}}",
];

/// Losses that local recovery leaves to TCP.
const RESIDUAL: &[&str] = &[
    "radio.channel={frame-loss={loss=0.01}}",
    "radio.arq={selective-repeat={retransmissions=0}}",
    "transfer.size=1 MB",
];

const WORLDS: [&[&str]; 6] = [&[], UPLOAD, BAD_PERIODS, OUTAGES, CODE, RESIDUAL];

/// The values of an enum of the scenario file.
fn values<T: JsonSchema>() -> Vec<String> {
    let schema = schemars::schema_for!(T).to_value();
    let values: Vec<_> = schema["oneOf"].as_array().into_iter().flatten().chain(Some(&schema)).collect();
    let names = values.iter().flat_map(|value| {
        let list = value["enum"].as_array().into_iter().flatten();
        list.chain(Some(&value["const"])).filter_map(|name| Some(name.as_str()?.to_owned()))
    });
    names.collect()
}

/// A sender: its settings.
type Sender = [String; 3];

fn senders() -> Vec<Sender> {
    let mut found = Vec::new();
    for rules in values::<Rules>() {
        for flavour in values::<Flavour>() {
            for control in Congestion::ALL {
                let control = control.control().name;
                found.push([
                    format!("tcp.rules={rules}"),
                    format!("tcp.flavour={flavour}"),
                    format!("tcp.congestion={control}"),
                ]);
            }
        }
    }
    found
}

/// A run; `None` if the scheme, the sender and the world do not go together.
fn run(scheme: &str, sender: &Sender, world: &[&str]) -> Option<Run> {
    let stamps = if scheme == "wtcp" { "true" } else { "false" };
    let stamps = format!("tcp.timestamps={stamps}");
    let keys: Vec<&str> =
        sender.iter().map(String::as_str).chain([&*stamps]).chain(world.iter().copied()).collect();
    let scenario = Scenario::parse(LOSSES, "test.toml", &keys).ok()?;
    scenario.run(scheme, 1, 0, Observe { trace: true, ..Observe::default() }).ok()
}

/// The packets of the connection, by time.
fn trace(run: &Run) -> &Events {
    run.connections[0].parts[0].events.as_ref().expect("the run was traced")
}

/// The schemes of the registry that act by reactions only.
fn reacting() -> Vec<&'static str> {
    let scenario = Scenario::parse::<&str>(LOSSES, "test.toml", &[]).expect("a sound scenario");
    let schemes: Vec<_> = scenario.scheme.all().map(|scheme| scheme.name()).collect();
    let reacts = |name: &&str| {
        let combination = scenario.scheme.combination(name).expect("it goes together with itself");
        !combination.reacting([&scenario.tcp].into_iter()).is_empty()
    };
    schemes.into_iter().filter(reacts).collect()
}

#[test]
fn every_scheme_acts_on_every_sender_or_says_why_not() {
    let mut silent: BTreeMap<_, BTreeMap<_, BTreeSet<_>>> = BTreeMap::new();
    let mut problems = Vec::new();
    for scheme in reacting() {
        let mut met = 0;
        for sender in senders() {
            let runs: Vec<_> =
                WORLDS.iter().filter_map(|world| Some((run(scheme, &sender, world)?, world))).collect();
            if runs.is_empty() {
                continue;
            }
            met += 1;
            let acting = runs.iter().find(|(run, _)| run.without_effect.is_empty());
            if let Some((acting, world)) = acting {
                let basic = run("basic", &sender, world).expect("the sender runs without the scheme");
                if trace(acting) == trace(&basic) {
                    problems.push(format!("{scheme} with {sender:?}: acts, and changes nothing"));
                }
                continue;
            }
            let (idle, world) = &runs[0];
            let basic = run("basic", &sender, world).expect("the sender runs without the scheme");
            // Agents that send nothing leave the connection as it is.
            if idle.metrics.connections.notices == 0 && trace(idle) != trace(&basic) {
                problems
                    .push(format!("{scheme} with {sender:?}: changes something, and says that it does not"));
            }
            let reason = idle.without_effect[0].1;
            if reason.starts_with("nothing") {
                problems.push(format!("{scheme} with {sender:?}: deaf"));
            }
            let [_, flavour, control] = sender;
            silent.entry((scheme, reason)).or_default().entry(flavour).or_default().insert(control);
        }
        if met == 0 {
            problems.push(format!("{scheme}: no sender runs it"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    insta::assert_debug_snapshot!(silent);
}

/// The control of these rules.
fn sender(rules: &str, flavour: &str, control: &str) -> Sender {
    [format!("tcp.rules={rules}"), format!("tcp.flavour={flavour}"), format!("tcp.congestion={control}")]
}

/// A restarted timer is no effect unless the timer would have expired before something else set it: EBSN beside an ARQ that
/// delivers in time equals the ARQ, and says so. Over long fades, it averts timeouts.
#[test]
fn a_restarted_timer_acts_if_it_would_have_expired() {
    let cubic = sender("rfc", "prr", "cubic");
    let quick = ["radio.arq={selective-repeat={feedback_delay=\"5 ms\"}}"];
    let [ebsn, arq] = ["ebsn", "arq"].map(|scheme| run(scheme, &cubic, &quick).expect("a run"));
    let course = |run: &Run| {
        let metrics = &run.metrics.connections;
        (metrics.completion_time_s, metrics.retransmitted_segments, metrics.timeouts, metrics.mean_rtt_s)
    };
    assert!(ebsn.metrics.connections.notices > 0 && course(&ebsn) == course(&arq));
    assert_eq!(ebsn.without_effect, [("ebsn", "nothing called for it that the sender had not done already")]);
    let [ebsn, arq] =
        ["ebsn", "local-recovery"].map(|scheme| run(scheme, &cubic, BAD_PERIODS).expect("a run"));
    let averted = ebsn.metrics.connections.reactions;
    let [with, without] = [&ebsn, &arq].map(|run| run.metrics.connections.timeouts);
    assert_eq!((with, without, averted, ebsn.without_effect), (Some(0), Some(1), 1, Vec::new()));
}

/// BBR ignores one of WENP's two actions. Where no loss called for the other, that is no reason.
#[test]
fn a_sender_that_heeds_one_action_had_no_occasion() {
    let bbr = sender("rfc", "prr", "bbr");
    let wenp = run("wenp", &bbr, &["radio.channel=perfect"]).expect("a run");
    assert_eq!(wenp.without_effect, [("wenp", "nothing called for it that the sender had not done already")]);
}

/// No simulated host sets a mark for a code that protects marked packets, unless a scheme or traffic does.
#[test]
fn a_code_for_marks_that_nobody_sets_says_so() {
    let reno = sender("rfc", "reno", "aimd");
    let silent =
        |keys: &[&str], scheme| run(scheme, &reno, &[CODE, keys].concat()).expect("a run").without_effect;
    let marked = ["scheme.selective-fec.protect=marked"];
    assert_eq!(silent(&marked, "selective-fec")[0].0, "selective-fec");
    let traffic = "traffic.x={from=\"fixed\", to=\"mobile\", packet_size=\"500 B\", dscp=3, law.constant.rate=\"10 kbps\"}";
    assert!(silent(&[marked[0], traffic], "selective-fec").is_empty());
    let expedited = [marked[0], "scheme.selective-fec.mark=46"];
    assert_eq!(silent(&expedited, "selective-fec").len(), 1);
    assert!(silent(&expedited, "snoop + selective-fec").is_empty());
    assert!(silent(&["scheme.selective-fec.protect=selective"], "selective-fec").is_empty());
}
