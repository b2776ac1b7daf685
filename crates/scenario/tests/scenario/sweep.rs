//! The table `[sweep]`: expansion and error messages.

use std::fmt::Write;

use crate::common::without_lists;
use lasthop_scenario::{ErrorKind, Point, Scenario};
use lasthop_testing::scenario_texts::{SCENARIO, with};

fn read(sweep: &str, overrides: &[&str]) -> Scenario {
    let text = format!("{SCENARIO}\n[sweep]\n{sweep}\n");
    Scenario::parse(&text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn points(scenario: &Scenario) -> Vec<Point> {
    scenario.points()
}

/// Each point's values, without the paths.
fn grid(scenario: &Scenario) -> Vec<Vec<String>> {
    let values = |point: Point| point.parameters.into_iter().map(|(_, value)| value).collect();
    points(scenario).into_iter().map(values).collect()
}

#[test]
fn a_sweep_is_the_product_of_its_axes_the_last_fastest() {
    let scenario = read(
        "tcp.packet_size = [\"128 B\", \"0.512 KB\"]\n\
         \"radio.channel.two-state.bad\" = { from = \"1 s\", to = \"3 s\", step = \"1 s\" }\n\
         tcp.dupthresh = { from = 3, to = 4, count = 2 }",
        &[],
    );
    let points = points(&scenario);
    let mut told = scenario.to_toml().split_once("[sweep]").unwrap().1.to_owned();
    for point in &points {
        writeln!(told, "{:?}", point.parameters).unwrap();
    }
    insta::assert_snapshot!(without_lists(&told));
    // A point equals the scenario with its parameters as overrides.
    for point in &points {
        let overrides: Vec<String> =
            point.parameters.iter().map(|(path, value)| format!("{path}={value}")).collect();
        assert_eq!(Scenario::parse(SCENARIO, "test.toml", &overrides).unwrap().tcp, point.scenario.tcp);
        assert!(point.scenario.sweep.is_empty() && point.scenario.schemes == scenario.schemes);
    }
}

/// A setting with the name of a range's key, such as `step`, can be swept by a list or by a range.
#[test]
fn a_setting_called_like_a_key_of_ranges_can_be_varied() {
    for sweep in
        ["scheme.vs-tcp.step = [\"64 B\", \"128 B\"]", "\"scheme.vs-tcp\" = { step = [\"64 B\", \"128 B\"] }"]
    {
        assert_eq!(grid(&read(sweep, &[])), [["64 B"], ["128 B"]], "{sweep}");
    }
    let range = "scheme.vs-tcp.step = { from = \"64 B\", to = \"128 B\", count = 2 }";
    assert_eq!(grid(&read(range, &[])), [["64 B"], ["128 B"]]);
    assert_eq!(grid(&read("", &["sweep.scheme.vs-tcp.step=[\"64 B\"]"])), [["64 B"]]);
}

#[test]
fn without_a_sweep_there_is_one_point() {
    for text in [String::from(SCENARIO), format!("{SCENARIO}\n[sweep]\n")] {
        let scenario = Scenario::parse::<&str>(&text, "test.toml", &[]).unwrap();
        assert_eq!(points(&scenario), [Point { parameters: vec![], scenario: scenario.clone().into() }]);
        assert!(scenario.sweep.is_empty() && !scenario.to_toml().contains("sweep"));
    }
}

#[test]
fn any_kind_of_value_can_be_varied() {
    let choices =
        "radio.channel = [\"perfect\", { iid = { ber = 1e-6 } }, { frame-loss = { loss = \"1%\" } }]";
    assert_eq!(
        grid(&read(choices, &[])),
        [["perfect"], ["{ iid = { ber = 0.000001 } }"], ["{ frame-loss = { loss = 0.01 } }"]]
    );
    let mtu = "radio.mtu = [\"none\", \"128 B\"]\nwired.queue = [\"5 packets\", \"unlimited\"]";
    assert_eq!(
        grid(&read(mtu, &[])),
        [["none", "5 packets"], ["none", "unlimited"], ["128 B", "5 packets"], ["128 B", "unlimited"]]
    );
    assert_eq!(
        grid(&read("scheme.ebsn.notice_size = [\"28 B\"]\nlimit = [\"1 h\"]", &[])),
        [["28 B", "3600 s"]]
    );
}

/// A swept profile sets all omitted keys, as in its own file.
#[test]
fn a_profile_can_be_varied() {
    let text = with("profile = \"ebsn\"", "packet_size = \"576 B\"")
        + "[sweep]\ntcp.profile = [\"rfc\", \"ebsn\", \"ns2\"]";
    let scenario = Scenario::parse::<&str>(&text, "test.toml", &[]).unwrap();
    for point in points(&scenario) {
        let (path, profile) = &point.parameters[0];
        let stated = format!("packet_size = \"576 B\"\nprofile = \"{profile}\"");
        let alone = Scenario::parse::<&str>(&with("profile = \"ebsn\"", &stated), "test.toml", &[]).unwrap();
        assert_eq!((path.as_str(), &*point.scenario), ("tcp.profile", &alone));
    }
    let again = Scenario::parse::<&str>(&scenario.to_toml(), "test.toml", &[]).unwrap();
    assert_eq!((again.to_toml(), points(&again)), (scenario.to_toml(), points(&scenario)));
    assert_eq!(again, scenario);
}

#[test]
fn the_canonical_form_contains_the_sweep() {
    for sweep in [
        "tcp.packet_size = [\"128 B\", \"0.512 KB\"]\nradio.rate = [\"9600 bps\"]",
        "radio.channel = [{ iid = { ber = 1e-6 } }, { iid = { ber = 1e-5 } }]\nradio.expansion = [1, 2.5]",
        "radio.channel = [\"perfect\", { iid = { ber = 1e-6 } }]",
        "radio.channel.two-state.bad_ber = { from = 1e-4, to = 1e-2, count = 7, scale = \"log\" }",
    ] {
        let scenario = read(sweep, &[]);
        let again = Scenario::parse::<&str>(&scenario.to_toml(), "test.toml", &[]).unwrap();
        assert_eq!(again, scenario);
        assert_eq!(again.to_toml(), scenario.to_toml());
        assert_eq!(points(&again), points(&scenario));
    }
}

#[test]
fn the_hash_of_a_point_is_independent_of_its_sweep() {
    let alone = Scenario::parse(SCENARIO, "test.toml", &["tcp.packet_size=512 B"]).unwrap().hash();
    let one = read("tcp.packet_size = [\"128 B\", \"512 B\"]", &[]);
    let two = read("tcp.packet_size = [\"0.512 KB\"]\nlimit = [\"10 min\", \"20 min\"]", &["title=other"]);
    let third = read("tcp.packet_size = [\"512 B\"]", &["schemes=[\"ebsn\"]"]);
    assert_eq!(points(&one)[1].scenario.hash(), alone);
    assert_eq!(points(&two)[0].scenario.hash(), alone);
    assert_eq!(points(&third)[0].scenario.hash(), alone);
    assert_ne!(points(&two)[1].scenario.hash(), alone);
    assert_ne!(points(&one)[0].scenario.hash(), alone);
    let base = Scenario::parse::<&str>(SCENARIO, "test.toml", &[]).unwrap();
    assert_eq!(one.hash(), base.hash());
    let other = Scenario::parse(SCENARIO, "test.toml", &["scheme.ebsn.notice_size=56 B"]).unwrap();
    assert_ne!(other.hash(), base.hash());
}

#[test]
fn overrides_apply_to_the_sweep() {
    let sweep = "tcp.packet_size = [\"128 B\", \"512 B\"]\nradio.channel.two-state.bad = [\"1 s\", \"2 s\"]";
    let changed = |overrides: &[&str]| grid(&read(sweep, overrides));
    // A key fixed by an override is no longer swept, even if the override sets a whole table.
    assert_eq!(changed(&["tcp.packet_size=1 KiB"]), [["1 s"], ["2 s"]]);
    assert_eq!(changed(&["radio.channel=perfect"]), [["128 B"], ["512 B"]]);
    assert_eq!(changed(&["radio.channel.two-state.good=1 s"]).len(), 4);
    assert_eq!(changed(&["sweep={}"]), [Vec::<String>::new()]);
    // An axis added or replaced by an override comes last.
    let replaced = ["sweep.limit=[\"1 s\", \"2 s\"]", "sweep.tcp.packet_size=[\"64 B\"]"];
    assert_eq!(
        changed(&replaced),
        [["1 s", "1 s", "64 B"], ["1 s", "2 s", "64 B"], ["2 s", "1 s", "64 B"], ["2 s", "2 s", "64 B"]]
    );
    for over in ["sweep.tcp.window=[\"1 KiB\"]", "sweep.\"tcp.window\" = [\"1 KiB\"]"] {
        let quoted = read("\"tcp.window\" = [\"3 KiB\"]\ntcp.dupthresh = [3]", &[over]);
        assert_eq!(grid(&quoted), [["3", "1024 B"]], "{over}");
    }
    let both = ["tcp.packet_size=1 KiB", "sweep.tcp.packet_size=[\"64 B\"]"];
    assert_eq!(changed(&both)[0], ["1 s", "64 B"]);
}

/// An invalid sweep.
const WRONG: &[&str] = &[
    "tcp.packt_size = [\"128 B\"]",
    "\"tcp.packt_size\" = [\"128 B\"]",
    "raido.rate = [\"1 Mbps\"]",
    "\"raido.rate\" = [\"1 Mbps\"]",
    "scheme.ebns.notice_size = [\"40 B\"]",
    "tcp.packet_size = [\"128 B\", \"256 Bs\"]\nlimit = [\"1 s\", \"2 s\"]",
    "tcp.packet_size = [128]",
    "radio.rate.x = [1]",
    "radio.channel = [{ iid = { bre = 1e-6 } }]",
    "radio.channel.two-sate.bad = [\"1 s\"]",
    "radio.channel.fixed-periods.bad = [\"1 s\"]",
    "radio.channel.two-state.bad = [\"1 s\", \"0 s\"]",
    "radio.channel.two-state.bad = [\"1 s\"]\nradio.channel.iid.ber = [0.1]",
    "tcp.packet_size = [\"512 B\", \"8 KiB\"]",
    "limit = [\"1 s\", \"2 s\"]\ntcp.packet_size = [\"512 B\", \"4 KiB\"]\ntcp.window = [\"4 KiB\", \"2 KiB\"]",
    "radio.arq = [\"none\"]",
    "tcp.packet_size = \"128 B\"",
    "tcp = \"128 B\"",
    "tcp.packet_size = []",
    "tcp.packet_size = [\"128 B\", \"0.128 KB\"]",
    "tcp.packet_size = [\"128 B\"]\n\"tcp . packet_size\" = [\"256 B\"]",
    "\"radio.channel\" = [\"perfect\"]\nradio.channel.two-state.bad = [\"1 s\"]",
    "schemes = [[\"basic\"]]",
    "title = [\"one\", \"two\"]",
    "sweep.limit = [\"1 s\"]",
    "\"tcp..window\" = [\"1 KiB\"]",
    "limit = { form = \"1 s\", to = \"2 s\", step = \"1 s\" }",
    "limit = { to = \"2 s\", step = \"1 s\" }",
    "limit = { from = \"1 s\", to = \"2 s\" }",
    "limit = { from = \"1 s\", to = \"2 s\", step = \"1 s\", count = 2 }",
    "limit = { from = \"1 s\", to = \"2 KB\", step = \"1 s\" }",
    "limit = { from = \"1 s\", to = \"2 s\", step = 1 }",
    "limit = { from = true, to = \"2 s\", step = 1 }",
    "limit = { from = \"2 s\", to = \"1 s\", step = \"1 s\" }",
    "limit = { from = \"1 s\", to = \"2 s\", step = \"0 s\" }",
    "limit = { from = \"1 s\", to = \"2 h\", step = \"1 ms\" }",
    "limit = { from = \"1 s\", to = \"2 s\", count = 1 }",
    "limit = { from = \"1 s\", to = \"2 s\", count = -1 }",
    "limit = { from = \"1 s\", to = \"2 s\", count = 3, scale = \"lgo\" }",
    "limit = { from = \"0 s\", to = \"2 s\", count = 3, scale = \"log\" }",
    "limit = { from = \"1 s\", to = \"2 s\", step = \"1 s\", scale = \"log\" }",
    "limit = { from = \"1 sec\", to = \"2 sec\", step = \"1 sec\" }",
    "limit = { from = \"1 ns\", to = \"2 ns\", count = 3 }",
    "tcp.dupthresh = { from = 1, to = 2, count = 3 }",
    "limit = { from = \"1 s\", to = \"1000 s\", step = \"1 s\" }\n\
     tcp.dupthresh = { from = 1, to = 1000, step = 1 }",
];

#[test]
fn invalid_sweeps_are_reported() {
    let mut told = String::new();
    for sweep in WRONG {
        let text = format!("{SCENARIO}\n[sweep]\n{sweep}\n");
        let error = Scenario::parse::<&str>(&text, "test.toml", &[]).expect_err(sweep);
        writeln!(told, "{error}\n").unwrap();
    }
    for assignment in [
        "sweep=3",
        "sweep.tcp.packt_size=[\"128 B\"]",
        "sweep.tcp.packet_size=[\"128 Bs\"]",
        "sweep.limit=1 s",
        "sweep.limit.step=\"1 s\"",
        "sweep.schemes=[\"basic\"]",
    ] {
        let error = Scenario::parse(SCENARIO, "test.toml", &[assignment]).expect_err(assignment);
        writeln!(told, "{error}\n").unwrap();
    }
    insta::assert_snapshot!(without_lists(&told));
}

/// Other schemes are those of each point, and are refused for the point that does not support them.
#[test]
fn points_have_the_schemes_that_are_set_afterwards() {
    let text = format!("{SCENARIO}\n[sweep]\n'radio.arq' = ['none', {{ stop-and-wait = {{}} }}]\n");
    let scenario = Scenario::parse::<&str>(&with_basic_only(&text), "test.toml", &[]).unwrap();
    let set = |name: &str| scenario.with_schemes(vec![name.into()], []);
    let changed = set("snoop").expect("it needs no ARQ");
    assert_eq!(changed.points().len(), 2);
    for (point, before) in changed.points().iter().zip(scenario.points()) {
        assert_eq!(point.parameters, before.parameters);
        assert_eq!(point.scenario.schemes, ["snoop"]);
        assert_eq!(point.scenario.hash(), before.scenario.hash());
    }
    let error = set("ebsn").expect_err("one point has no ARQ");
    assert_eq!((error.kind(), error.key()), (ErrorKind::Scheme, Some("schemes[0]")));
    assert!(error.message().ends_with("; at the point radio.arq = none"), "{error}");
}

fn with_basic_only(text: &str) -> String {
    text.replace("[\"basic\", \"ebsn\"]", "[\"basic\"]")
}

/// The values of a range of a setting.
fn range(path: &str, range: &str) -> Vec<String> {
    grid(&read(&format!("\"{path}\" = {{ {range} }}"), &[])).into_iter().flatten().collect()
}

const BAD: &str = "radio.channel.two-state.bad";
const BAD_BER: &str = "radio.channel.two-state.bad_ber";

#[test]
fn a_step_counts_in_the_units_of_the_ends() {
    assert_eq!(range("tcp.dupthresh", "from = 1, to = 4, step = 1"), ["1", "2", "3", "4"]);
    assert_eq!(range(BAD_BER, "from = 0.1, to = 0.5, step = 0.1"), ["0.1", "0.2", "0.3", "0.4", "0.5"]);
    assert_eq!(range("radio.expansion", "from = 1, to = 2, step = 0.5"), ["1.0", "1.5", "2.0"]);
    assert_eq!(range(BAD, "from = '500 ms', to = '2 s', step = '0.5 s'"), ["500 ms", "1 s", "1.5 s", "2 s"]);
    assert_eq!(
        range("tcp.packet_size", "from = '128 B', to = '1 KB', step = '256 B'"),
        ["128 B", "384 B", "640 B", "896 B"]
    );
    assert_eq!(range(BAD_BER, "from = '1%', to = '2%', step = '0.5%'"), ["0.01", "0.015", "0.02"]);
    assert_eq!(
        range("radio.queue", "from = '10 packets', to = '30 packets', step = '10 packets'"),
        ["10 packets", "20 packets", "30 packets"]
    );
}

#[test]
fn a_count_makes_equal_differences_or_equal_ratios() {
    assert_eq!(range("radio.expansion", "from = 1, to = 4, count = 3"), ["1.0", "2.5", "4.0"]);
    assert_eq!(
        range(BAD_BER, "from = 1e-6, to = 1e-4, count = 3, scale = 'log'"),
        ["0.000001", "0.00001", "0.0001"]
    );
    assert_eq!(
        range(BAD, "from = '1 s', to = '10 s', count = 4, scale = 'log'"),
        ["1 s", "2.154 s", "4.642 s", "10 s"]
    );
    assert_eq!(range("radio.rate", "from = '19.2 kbps', to = '2 Mbps', count = 2"), ["19.2 kbps", "2 Mbps"]);
}
