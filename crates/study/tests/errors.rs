//! What a wrong scenario is told. Each case shows the message exactly as a person sees it.

mod common;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use common::{SCENARIO, whatever_schemes, with};
use lasthop_study::{Observe, Scenario};

/// One replacement in the scenario that makes it wrong.
const EDITS: &[(&str, &str, &str)] = &[
    ("an unknown key", "delay = \"0 s\"", "dealy = \"0 s\""),
    ("an unknown table", "[wired]", "[wierd]"),
    ("an unknown scheme's table", "[transfer]", "[scheme.ebns]\n\n[transfer]"),
    ("a unit with a slip", "\"56 kbps\"", "\"2 Mbs\""),
    ("no unit", "\"56 kbps\"", "\"56000\""),
    ("a bare number", "\"56 kbps\"", "56000"),
    ("a quantity without quotes", "\"56 kbps\"", "56 kbps"),
    ("a rate of zero", "\"56 kbps\"", "\"0 bps\""),
    ("a negative delay", "delay = \"0 s\"", "delay = \"-30 ms\""),
    ("a probability above one", "bad = \"4 s\"", "bad = \"4 s\"\nbad_ber = 1.5"),
    ("a wrong type", "mtu = \"128 B\"", "mtu = true"),
    ("a list that is none", "[\"basic\", \"ebsn\"]", "\"ebsn\""),
    ("a number that is none", "expansion = 1.5", "expansion = \"much\""),
    ("a factor out of range", "expansion = 1.5", "expansion = 0.5"),
    ("no number, no word", "delay = \"0 s\"", "queue = \"50 pakets\""),
    ("a count below zero", "\"unlimited\"", "-1"),
    ("a missing key", "size = \"100 KB\"", ""),
    ("a missing table", "[transfer]\nsize = \"100 KB\"", ""),
    ("a missing key of a choice", "bad = \"4 s\"", ""),
    ("an unknown choice", "[radio.channel.two-state]", "[radio.channel.two-sate]"),
    ("an unknown choice by key", "backoff.uniform", "backoff.unifrom"),
    ("an unknown word", "profile = \"ebsn\"", "profile = \"esbn\""),
    ("two choices at once", "[radio.arq", "[radio.channel.iid]\nber = 0.1\n\n[radio.arq"),
    (
        "a choice without a name",
        "[radio.arq.stop-and-wait]\nretransmissions = \"unlimited\"\nbackoff.uniform = \"100 ms\"",
        "[radio.arq]",
    ),
    ("a choice without its parameters", "backoff.uniform = \"100 ms\"", "backoff = \"uniform\""),
    ("a misspelt scheme", "\"ebsn\"]", "\"ebns\"]"),
    ("nothing like a scheme", "\"ebsn\"]", "\"magic\"]"),
    ("a scheme twice", "\"ebsn\"]", "\"basic\"]"),
    ("no scheme", "[\"basic\", \"ebsn\"]", "[]"),
    (
        "a scheme that cannot work",
        "[radio.arq.stop-and-wait]\nretransmissions = \"unlimited\"\nbackoff.uniform = \"100 ms\"",
        "",
    ),
    ("a period of no length", "bad = \"4 s\"", "bad = \"0 s\""),
    ("a random wait of no length", "\"100 ms\"", "\"0 s\""),
    ("a limit of zero", "title = \"a test\"", "limit = \"0 s\""),
    ("a start too late", "size = \"100 KB\"", "size = \"100 KB\"\nstart = \"1 h\""),
    ("nothing to send", "\"100 KB\"", "\"0 B\""),
    ("a fault of TCP", "profile = \"ebsn\"", "profile = \"ebsn\"\nwindow = \"500 B\""),
    ("a fault of TCP by its profile", "profile = \"ebsn\"", "profile = \"ebsn\"\npacket_size = \"8 KiB\""),
    ("a key twice", "delay = \"0 s\"", "rate = \"1 Mbps\""),
    ("an open string", "title = \"a test\"", "title = \"a test"),
    ("no TOML at all", "[wired]", "wired: {"),
    ("tabs and wide letters before the place", "rate = \"56 kbps\"", "rate\t=\t\"５６ kbps\""),
];

/// One override that is wrong.
const OVERRIDES: &[&str] = &[
    "radio.rate=2 Mbs",
    "radio.rat=2 Mbps",
    "raido.rate=2 Mbps",
    "radio.rate.x=1",
    "radio.channel.two-state.bda=1s",
    "radio.channel.two-sate.bad=1s",
    "radio.channel.fixed-periods.good=1s",
    "radio.channel.two-state.bad=0s",
    "radio.arq=none",
    "schemes=[\"basic\", \"ebns\"]",
    "scheme.ebsn.notice_size=40",
    "tcp.window=100 B",
    "transfer.start=1996-05-28",
    "radio.rate",
    "=1",
    "radio..rate=1",
];

#[test]
fn every_wrong_file_is_told_what_and_where() {
    let mut told = String::new();
    for (what, from, to) in EDITS {
        let error = Scenario::parse::<&str>(&with(from, to), "test.toml", &[]).expect_err(what);
        writeln!(told, "# {what}\n{error}\n").unwrap();
    }
    insta::assert_snapshot!(whatever_schemes(&told));
}

#[test]
fn every_wrong_override_is_told_what_and_where() {
    let mut told = String::new();
    for assignment in OVERRIDES {
        let error = Scenario::parse(SCENARIO, "test.toml", &[assignment]).expect_err(assignment);
        writeln!(told, "{error}\n").unwrap();
    }
    insta::assert_snapshot!(whatever_schemes(&told));
}

#[test]
fn a_file_that_cannot_be_read_is_told_so() {
    let folder = std::env::temp_dir().join("lasthop-unreadable");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("latin1.toml"), b"# fine\ntitle = \"caf\xe9\"\n").unwrap();
    let mut told = String::new();
    for name in ["absent.toml", "latin1.toml", "."] {
        let error = Scenario::load::<&str>(&folder.join(name), &[]).expect_err(name);
        writeln!(told, "{}\n", error.to_string().replace(folder.to_str().unwrap(), "FOLDER")).unwrap();
    }
    insta::assert_snapshot!(whatever_schemes(&told));
}

#[test]
fn a_scheme_that_cannot_run_is_told_so() {
    let scenario =
        Scenario::parse(SCENARIO, "test.toml", &["radio.arq=none", "schemes=[\"basic\"]"]).unwrap();
    let refusal = |scheme| scenario.run(scheme, 1, 0, Observe::default()).expect_err(scheme).to_string();
    let told = format!("{}\n\n{}", refusal("esbn"), refusal("ebsn"));
    insta::assert_snapshot!(whatever_schemes(&told));
}

#[test]
fn a_capture_that_cannot_be_written_is_told_so() {
    let scenario = Scenario::parse::<&str>(SCENARIO, "test.toml", &[]).unwrap();
    let observe = Observe { pcap: Some(Path::new("/nowhere/x.pcapng")), ..Observe::default() };
    let error = scenario.run("basic", 1, 0, observe).unwrap_err().to_string();
    assert_eq!(error, "cannot write /nowhere/x.pcapng: No such file or directory (os error 2)");
}

/// Whatever single line of the scenario is lost, doubled, cut short or overwritten, there is an
/// answer and no panic.
#[test]
fn no_mutilation_causes_a_panic() {
    let lines: Vec<&str> = SCENARIO.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let cuts =
            (0..line.len()).filter(|&end| line.is_char_boundary(end)).map(|end| line[..end].to_owned());
        let values = [
            "-1",
            "0",
            "1e308",
            "nan",
            "\"\"",
            "[]",
            "{}",
            "\"9e18 h\"",
            "\"18446744073 GB\"",
            "\"unlimited\"",
        ];
        let overwritten = values
            .iter()
            .filter_map(|value| line.split_once(" = ").map(|(key, _)| format!("{key} = {value}")));
        for other in cuts.chain(overwritten).chain([format!("{line}\n{line}")]) {
            let text = [&lines[..index], &[&other], &lines[index + 1..]].concat().join("\n");
            if let Err(error) = Scenario::parse::<&str>(&text, "test.toml", &[]) {
                assert!(!error.message().is_empty() && error.to_string().contains("test.toml"), "{text}");
            }
        }
    }
}
