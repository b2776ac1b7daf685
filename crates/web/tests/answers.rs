//! Replies to the page, decoded as the page decodes them.

use lasthop_experiment::{Experiment, Observe};
use lasthop_scenario::Scenario;
use lasthop_web::answer;
use serde_json::{Value, json};

const EXAMPLE: &str = include_str!("../../../scenarios/ebsn-example.toml");
const WIDE: &str = include_str!("../../../scenarios/ebsn-wide-area.toml");
const SPLIT: &str = include_str!("../../../scenarios/split-wlan.toml");

/// The document of a reply, and its columns.
fn ask(request: &Value) -> (Value, Vec<f64>) {
    let reply = answer(request.to_string().as_bytes());
    let length = u32::from_le_bytes(reply[..4].try_into().expect("four bytes")) as usize;
    let (document, columns) = reply[4..].split_at(length);
    assert_eq!((length + 4) % 8, 0);
    let number = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    (serde_json::from_slice(document).expect("JSON"), columns.chunks(8).map(number).collect())
}

fn column<'a>(columns: &'a [f64], place: &Value) -> &'a [f64] {
    let at = |key: &str| place[key].as_u64().expect("a number") as usize;
    &columns[at("first")..at("first") + at("length")]
}

fn scenario(toml: &str, overrides: &[&str]) -> Value {
    json!({"toml": toml, "name": "example.toml", "overrides": overrides})
}

#[test]
fn a_run_is_the_report_of_the_command_line_with_recordings() {
    let overrides = ["radio.rate=25 kbps", "schemes=[\"basic\", \"ebsn\"]"];
    let (reply, columns) =
        ask(&json!({"do": "run", "scenario": scenario(EXAMPLE, &overrides), "seed": 7, "run": 3}));
    let same = Scenario::parse(EXAMPLE, "example.toml", &overrides).expect("a scenario");
    let observe = Observe { trace: true, series: true, delays: false, pcap: None, qlog: false };
    let runs: Vec<_> =
        same.schemes.iter().map(|each| same.run(each, 7, 3, observe).expect("a run")).collect();
    assert_eq!(
        reply["report"],
        lasthop_experiment::report::to_json(&same, &runs.iter().collect::<Vec<_>>()).expect("related runs")
    );
    for (index, run) in runs.iter().enumerate() {
        let (found, part) = (&reply["runs"][index], &run.connections[0].parts[0]);
        assert_eq!((&found["scheme"], &found["ended"]), (&json!(run.scheme), &json!("finished")));
        let found = &found["parts"][0];
        assert_eq!((&found["from"], &found["to"]), (&json!("fixed"), &json!("mobile")));
        let (events, series) =
            (part.events.as_ref().expect("a trace"), part.series.as_ref().expect("a series"));
        assert_eq!(column(&columns, &found["events"]["time_s"]), events.time_s);
        let words = |key: &str| -> Vec<&str> {
            let codes = column(&columns, &found["events"][key]).iter();
            codes.map(|code| found["words"][*code as usize].as_str().expect("a word")).collect()
        };
        assert_eq!(words("event"), events.event);
        assert_eq!(words("reason"), events.reason);
        let packets: Vec<_> =
            column(&columns, &found["events"]["packet"]).iter().map(|&n| n as i64).collect();
        assert_eq!(packets, events.packet);
        for (name, values) in &series.columns {
            let found = column(&columns, &found["series"][*name]);
            assert!(
                found.iter().map(|each| each.to_bits()).eq(values.iter().map(|each| each.to_bits())),
                "{name}"
            );
        }
    }
    let starts = column(&columns, &reply["bad_periods"]["start_s"]);
    let ends = column(&columns, &reply["bad_periods"]["end_s"]);
    assert_eq!((starts[0], ends[0], starts[1]), (10.0, 14.0, 24.0));
}

#[test]
fn a_split_connection_has_several_parts() {
    let overrides = ["schemes=[\"i-tcp\"]", "limit=5 s"];
    let (reply, _) = ask(&json!({"do": "run", "scenario": scenario(SPLIT, &overrides), "seed": 1, "run": 0}));
    let parts = reply["runs"][0]["parts"].as_array().expect("parts");
    let ends: Vec<_> = parts.iter().map(|part| (part["from"].as_str(), part["to"].as_str())).collect();
    assert_eq!(ends, [(Some("fixed"), Some("base")), (Some("base"), Some("mobile"))]);
}

#[test]
fn a_sample_has_the_metric_of_each_run() {
    let overrides = ["schemes=[\"basic\", \"ebsn\"]", "transfer.size=20 KB"];
    let same = Scenario::parse(WIDE, "example.toml", &overrides).expect("a scenario");
    let request = |metric: &str| json!({"do": "sample", "scenario": scenario(WIDE, &overrides), "seed": 2, "first": 5, "runs": 3, "metric": metric});
    let (reply, columns) = ask(&request("throughput_bps"));
    assert_eq!(reply["schemes"], json!(["basic", "ebsn"]));
    for (index, scheme) in same.schemes.iter().enumerate() {
        let each = (5..8).map(|run| same.run(scheme, 2, run, Observe::default()).expect("a run"));
        let expected: Vec<_> = each.map(|run| run.metrics.connections.throughput_bps).collect();
        assert_eq!(column(&columns, &reply["values"][index]), expected);
        assert!(expected.windows(2).all(|pair| pair[0] != pair[1]));
    }
    let (reply, columns) = ask(&request("ebsn.notices_sent"));
    assert!(column(&columns, &reply["values"][0]).iter().all(|value| value.is_nan()));
    assert!(column(&columns, &reply["values"][1]).iter().sum::<f64>() > 0.0);
}

#[test]
fn a_scenario_is_checked_without_a_run() {
    let (reply, _) = ask(&json!({"do": "check", "scenario": scenario(EXAMPLE, &[])}));
    let same = Scenario::parse(EXAMPLE, "example.toml", &[] as &[&str]).expect("a scenario");
    assert_eq!(reply["toml"], same.to_toml());
    assert_eq!(reply["tables"]["radio"]["channel"]["fixed-periods"]["bad"], "4 s");
    assert_eq!(reply["hash"], same.hash());
    assert_eq!(reply["counters"], json!(["source-quench.quenches_sent", "ebsn.notices_sent"]));
    let (reply, _) = ask(&json!({"do": "about"}));
    assert_eq!(reply["schemes"][0]["name"], "basic");
    assert_eq!(reply["profiles"][1], "linux");
}

#[test]
fn errors_have_their_place() {
    let error = |request: &Value| ask(request).0["error"].clone();
    let wrong = EXAMPLE.replace("mtu = ", "mut = ");
    let in_file = error(&json!({"do": "check", "scenario": scenario(&wrong, &[])}));
    assert!(in_file["message"].as_str().expect("a message").contains("did you mean \"mtu\"?"));
    assert_eq!(in_file["line"], wrong[..wrong.find("mut = ").expect("there")].matches('\n').count() + 1);
    let override_ = scenario(EXAMPLE, &["radio.rat=1"]);
    let in_override = error(&json!({"do": "run", "scenario": override_, "seed": 1, "run": 0}));
    assert_eq!(in_override["option"], "--set radio.rat=1");
    assert!(
        error(&json!({"do": "dance"}))["message"].as_str().expect("a message").starts_with("not a request: ")
    );
}

#[test]
fn recordings_that_no_page_could_show_are_refused() {
    let overrides = ["transfer.size=unlimited", "schemes=[\"basic\"]", "radio.rate=10 Mbps", "limit=10000 s"];
    let overrides =
        [&overrides[..], &["wired.rate=10 Mbps", "radio.channel=perfect", "limit=300 s"]].concat();
    let (reply, _) =
        ask(&json!({"do": "run", "scenario": scenario(EXAMPLE, &overrides), "seed": 1, "run": 0}));
    assert!(
        reply["error"]["message"].as_str().expect("a message").contains("more than the 1000000 that a page")
    );
}
