//! Changes by typed values: they are what the equivalent texts are, to the bit.

use std::collections::BTreeSet;

use lasthop_scenario::stacks::stacks;
use lasthop_scenario::{Amount, Change, ErrorKind, ExternalSchemes, Number, Scenario, ScenarioError, Value};
use lasthop_testing::scenario_texts::{NETWORK, SCENARIO};

fn read(text: &str, overrides: &[&str]) -> Scenario {
    Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn key(path: &str, value: impl Into<Value>) -> Change {
    Change::Key(path.to_owned(), Some(value.into()))
}

/// Scenarios that have every key between them, apart from those of parts of schemes and senders, which have their types.
fn scenarios() -> Vec<Scenario> {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios"))
        .expect("the folder exists");
    let paths = files.map(|file| file.expect("it is readable").path());
    // Some are of QUIC, which a test of this crate by itself does not compile.
    let is_of_build =
        |path: &std::path::PathBuf| !(stacks().is_empty() && path.ends_with("tcp-beside-quic.toml"));
    let worked = paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let worked = worked.filter(is_of_build);
    let mut all: Vec<Scenario> = worked
        .map(|path| Scenario::load::<&str>(&path, &[]).unwrap_or_else(|error| panic!("{error}")))
        .collect();
    all.push(read(
        NETWORK,
        &["traffic.call={from=\"R1\", to=\"R2\", voip={codec=\"g729a\", playout_buffer=\"80 ms\"}}"],
    ));
    for overrides in [
        &["tcp.user_timeout=30 s", "radio.power={transmit=\"1.3 W\", receive=\"1 W\", idle=\"900 mW\"}"][..],
        &["tcp.window=12 packets", "tcp.initial_window=3 segments", "tcp.initial_ssthresh=20 segments"],
        &["radio.channel.gilbert={loss=0.02, burst=5}", "radio.queue=20 packets", "warmup=1 s"],
        &["radio.channel.gilbert={loss=0.02, burst=\"40 ms\"}", "radio.queue=64 KiB"],
        &["radio.channel.gilbert-elliott={good=\"1 s\", bad=\"0.1 s\", loss_good=0.0, loss_bad=0.5}"],
        &["radio.channel.rayleigh-gilbert={fading_margin=\"5 dB\", doppler=0.1, step=\"10 ms\"}"],
        &[
            "radio.channel.semi-markov={good.lognormal={mean=\"1 s\", sigma=0.5}, bad.exponential=\"0.2 s\", loss_bad=0.5}",
        ],
        &["radio.rate.lognormal={mean=\"2 Mbps\", sigma=0.3, step=\"10 ms\", correlation=\"1 s\"}"],
        &[
            "radio.delay.lognormal={least=\"5 ms\", median=\"5 ms\", sigma=0.3, step=\"10 ms\", correlation=\"1 s\"}",
        ],
        &["radio.queue.red={max=20}", "wired.queue.codel={}", "radio.uplink.queue.fq-codel={}"],
        &[
            "radio.unit=480 B",
            "radio.mtu=none",
            "radio.outage={first=\"3 s\", lasts=\"1 s\", every=\"20 s\"}",
        ],
        &["transfer.start=2 s", "radio.arq.selective-repeat={}", "schemes=[\"packet-fec\"]"],
    ] {
        match Scenario::parse(SCENARIO, "test.toml", overrides) {
            Ok(scenario) => all.push(scenario),
            Err(error) => panic!("{overrides:?}: {error}"),
        }
    }
    all
}

/// The leaves of a table, each with its path; lists count as leaves.
fn leaves(path: &str, value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Table(table) if !table.is_empty() => {
            for (key, value) in table {
                leaves(&format!("{path}.{key}"), value, found);
            }
        }
        value => found.push((path.trim_start_matches('.').to_owned(), value.clone())),
    }
}

/// The text of a leaf in the canonical form.
fn text_of(scenario: &Scenario, path: &str) -> String {
    let canonical: toml::Table = toml::from_str(&scenario.to_toml()).expect("it is TOML");
    let mut keys = path.split('.');
    let first = keys.next().and_then(|key| canonical.get(key));
    keys.fold(first, |value, key| value?.get(key)).unwrap_or_else(|| panic!("{path} is missing")).to_string()
}

/// Another amount, which may be out of range.
fn varied(number: &Number) -> Number {
    let amount = match number.amount {
        Amount::Whole(amount) => Amount::Whole(amount + amount / 3 + 1),
        Amount::Real(amount) => Amount::Real(0.7 * amount),
    };
    Number { amount, ..number.clone() }
}

/// What matters of a result: the canonical form, or what is wrong with which key.
fn outcome(result: Result<Scenario, ScenarioError>) -> Result<String, (ErrorKind, Option<String>)> {
    result.map(|scenario| scenario.to_toml()).map_err(|error| (error.kind(), error.key().map(str::to_owned)))
}

#[test]
fn a_number_is_what_its_text_is_for_every_key() {
    let (mut seen, mut units) = (BTreeSet::new(), BTreeSet::new());
    for scenario in scenarios() {
        let mut all = Vec::new();
        leaves("", &scenario.values(), &mut all);
        for (path, value) in all {
            let unit = match &value {
                Value::Number(number) => number.unit.clone(),
                _ => None,
            };
            if !seen.insert((path.clone(), unit)) {
                continue;
            }
            let text = text_of(&scenario, &path);
            let by_text = |text: &str| scenario.with([Change::Assignment(format!("{path}={text}"))]);
            let as_is = outcome(by_text(&text));
            assert_eq!(
                outcome(scenario.with([Change::Key(path.clone(), Some(value.clone()))])),
                as_is,
                "{path}"
            );
            let Value::Number(number) = &value else { continue };
            let other = varied(number);
            // The text needs a unit where the number has that of its key.
            let unit = ["bps", "dB", "B"].into_iter().find(|unit| text.ends_with(&format!("{unit}\"")));
            let unit = unit.filter(|_| other.unit.is_none()).unwrap_or_default();
            let expected = outcome(by_text(&format!("{other}{unit}")));
            let found = outcome(scenario.with([key(&path, Value::Number(other.clone()))]));
            assert_eq!(found, expected, "{path}={other}");
            let in_si = other.clone().in_si();
            let found = outcome(scenario.with([key(&path, Value::Number(in_si.clone()))]));
            assert_eq!(found, expected, "{path}={in_si} in SI units");
            units.insert(number.unit.clone());
        }
    }
    let known = [None, Some("B"), Some("ns"), Some("s"), Some("packets"), Some("segments"), Some("uW")];
    assert_eq!(units, known.into_iter().map(|unit| unit.map(str::to_owned)).collect());
    assert!(seen.len() > 250, "{} keys", seen.len());
}

#[test]
fn a_scenario_of_its_values_is_equal() {
    for scenario in scenarios() {
        let again = Scenario::from_table(scenario.values(), &scenario.file, &ExternalSchemes::default());
        let again = again.unwrap_or_else(|error| panic!("{error}"));
        let plain =
            Scenario::parse::<&str>(&scenario.to_toml(), &scenario.file, &[]).expect("the canonical form");
        let plain = plain.with([Change::Key(String::from("sweep"), None)]).expect("it has no sweep");
        assert_eq!(again, plain);
        assert_eq!(again.hash(), scenario.hash());
    }
}

#[test]
fn a_bare_number_in_a_text_remains_an_error() {
    let scenario = read(SCENARIO, &[]);
    let refused =
        scenario.with([Change::Assignment(String::from("radio.rate=8000000"))]).expect_err("no unit");
    assert_eq!(
        refused.message(),
        "radio.rate: found 8000000, expected a rate with its unit, such as \"2 Mbps\" or \"19.2 kbps\""
    );
    assert!(scenario.with([key("radio.rate", 8_000_000)]).is_ok());
}

#[test]
fn an_error_names_the_key_and_what_was_found_and_expected() {
    let scenario = read(SCENARIO, &[]);
    for (change, kind, message) in [
        (
            key("radio.rate", -8e6),
            ErrorKind::Key,
            "radio.rate: found -8000000, expected a rate that is not negative, such as \"2 Mbps\"",
        ),
        (
            key("radio.rate", f64::NAN),
            ErrorKind::Key,
            "radio.rate: found NaN, expected a rate within range, such as \"2 Mbps\"",
        ),
        (
            key("radio.rate", Value::quantity(Amount::Whole(5), "ms")),
            ErrorKind::Key,
            "radio.rate: found 5 ms, expected a rate such as \"2 Mbps\"",
        ),
        (
            key("radio.queue", 20),
            ErrorKind::Key,
            "radio.queue: found 20, expected \"unlimited\", a number such as \"50 packets\", a size such as \"64 KiB\", \
             or a table of one of codel, fq-codel, priority, red, adaptive-red, pie, policer, dualpi2, cake",
        ),
        (key("tcp.handshake", 1), ErrorKind::Key, "tcp.handshake: found 1, expected true or false"),
        (key("title", 5), ErrorKind::Key, "title: found 5, expected a string"),
        (
            key("tcp.dupthresh", 2.5),
            ErrorKind::Key,
            "tcp.dupthresh: found 2.5, expected a whole number from 0 to 4294967295",
        ),
        (key("radio.chanel", "perfect"), ErrorKind::Key, "unknown key radio.chanel, expected"),
        (
            Change::Key(String::from("radio.chanel"), None),
            ErrorKind::Key,
            "unknown key radio.chanel, expected",
        ),
        (Change::Key(String::from("radio..rate"), None), ErrorKind::Syntax, "found the key \"radio..rate\""),
        (key("radio.rate.x", 5), ErrorKind::Key, "radio.rate:"),
        (key("title.x", 5), ErrorKind::Syntax, "title: found a value, expected a table"),
        (
            key("limit", Value::Bool(true)),
            ErrorKind::Key,
            "limit: found true, expected a duration with its unit",
        ),
    ] {
        let error = scenario.with([change]).expect_err(message);
        assert!(error.message().starts_with(message), "{}", error.message());
        assert_eq!(error.kind(), kind, "{message}");
    }
    let error = scenario.with([key("tcp.window", 0.0)]).expect_err("no unit");
    assert_eq!(error.to_string().lines().last(), Some(" --> the change of tcp.window"));
}

#[test]
fn none_removes_a_key_and_a_table() {
    let scenario = read(SCENARIO, &[]);
    let removed = |path: &str| scenario.with([Change::Key(path.to_owned(), None)]);
    assert_eq!(
        removed("radio.mtu").expect("it is optional"),
        read(&SCENARIO.replace("mtu = \"128 B\"\n", ""), &[])
    );
    assert_eq!(removed("warmup").expect("it is not stated"), scenario);
    assert_eq!(
        removed("transfer").expect_err("it is required").message(),
        "missing key transfer, expected a table with the key size"
    );
}

#[test]
fn a_changed_preset_or_profile_gives_what_the_file_does_not_state() {
    let text = "transfer.size = \"1 MB\"\nwired.rate = \"1 Gbps\"\nradio.preset = \"starlink\"\n";
    let scenario = read(text, &[]);
    let changes = ["radio.preset=lte", "tcp.profile=ns2"];
    let changed = scenario.with([key("radio.preset", "lte"), key("tcp.profile", "ns2")]).expect("both exist");
    assert_eq!(changed, read(text, &changes));
    assert_ne!(changed, scenario.with([key("tcp.profile", "ns2")]).expect("it exists"));
}

#[test]
fn a_point_and_a_scenario_with_other_schemes_can_be_changed() {
    let text = format!("{SCENARIO}\n[sweep]\nradio.rate = [\"1 Mbps\", \"2 Mbps\"]\n");
    let swept = read(&text, &[]);
    let basic = swept.with_schemes(vec![String::from("basic")], []).expect("it exists");
    let points = basic.points();
    let changed = points[1].scenario.with([key("limit", 20)]).expect("it is valid");
    let expected = read(SCENARIO, &["schemes=[\"basic\"]", "radio.rate=2 Mbps", "limit=20 s"]);
    assert_eq!(changed.to_toml(), expected.to_toml());
    let all = basic.with([key("limit", 20)]).expect("it is valid");
    assert!(*all.points()[1].scenario == expected);
    let one = basic.with([key("radio.rate", 2e6), key("limit", 20)]).expect("it is valid");
    assert!(one.sweep.is_empty());
    assert_eq!(one.to_toml(), expected.to_toml());
}

#[test]
fn an_axis_may_be_stated_in_numbers() {
    let scenario = read(SCENARIO, &[]);
    let texts = [
        "sweep.radio.rate=[\"1 Mbps\", \"2 Mbps\"]",
        "sweep.tcp.packet_size={from=\"128 B\", to=\"512 B\", count=4}",
    ];
    let expected = scenario.with(texts.map(|text| Change::Assignment(text.to_owned()))).expect("it is valid");
    let sizes = Value::Table(
        [("from", 128), ("to", 512), ("count", 4)].map(|(key, n)| (key.to_owned(), n.into())).into(),
    );
    let found = scenario.with([key("sweep.radio.rate", vec![1e6, 2e6]), key("sweep.tcp.packet_size", sizes)]);
    assert_eq!(found.expect("it is valid"), expected);
    assert_eq!(expected.points().len(), 8);
}

/// A scenario that a sender's settings and the order of changes matter to.
#[test]
fn changes_apply_in_order_as_overrides_do() {
    let linux = SCENARIO.replace("profile = \"ebsn\"", "profile = \"linux\"");
    let text = format!("sender = \"linux-westwood\"\n{linux}");
    let changed = read(&text, &["tcp.packet_size=600 B"])
        .with([key("tcp.ack_delay", 0.1), key("tcp.packet_size", 700)]);
    let expected = read(&text, &["tcp.packet_size=600 B", "tcp.ack_delay=100 ms", "tcp.packet_size=700 B"]);
    assert_eq!(changed.expect("it is valid"), expected);
}

/// Settings of TCP have an effect on some sender; then they may be without effect on one of QUIC, however they were written.
#[test]
fn a_sender_of_quic_may_leave_settings_of_tcp_without_effect() {
    let two = "sweep.sender=[\"linux\", \"quinn-cubic\"]";
    for set in [
        "tcp.window=8 KB",
        "\"tcp\".window=8 KB",
        "tcp={ window = \"8 KB\" }",
        "host.mobile.tcp.window=8 KB",
        "sweep.tcp.window=[\"8 KB\", \"9 KB\"]",
    ] {
        let both =
            Scenario::parse(SCENARIO, "test.toml", &[set, two]).unwrap_or_else(|error| panic!("{error}"));
        let one = both.with([key("sender", "quinn-cubic")]).unwrap_or_else(|error| panic!("{set}: {error}"));
        assert_eq!(one.sender.as_deref(), Some("quinn-cubic"));
        // What comes with the sender is held to it.
        let change = Change::Assignment(set.to_owned());
        let error = both.with([key("sender", "quinn-cubic"), change]).expect_err(set).to_string();
        assert!(error.contains("no connection uses TCP"), "{error}");
        Scenario::parse(SCENARIO, "test.toml", &[set, "sender=quinn-cubic"]).expect_err(set);
    }
}
