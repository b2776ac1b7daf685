//! The canonical form, overrides, and what a file leaves out.

mod common;

use common::{NETWORK, SCENARIO, whatever_schemes, with};
use lasthop_study::Scenario;

fn read(text: &str, overrides: &[&str]) -> Scenario {
    Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_canonical_form_spells_out_everything() {
    insta::assert_snapshot!(whatever_schemes(&read(SCENARIO, &[]).to_toml()));
}

/// Every alternative of every choice is a fixed point, and so are awkward numbers.
#[test]
fn the_canonical_form_reads_as_the_same_scenario() {
    for overrides in [
        &[][..],
        &["radio.channel=perfect", "radio.arq=none", "schemes=[\"basic\"]", "radio.mtu=none"],
        &["radio.channel.iid.ber=1e-7", "wired.queue=1 packet", "radio.queue=64 KiB"],
        &["radio.channel.frame-loss.loss=0.1%", "transfer.size=unlimited", "wired.queue=50 packets"],
        &["radio.channel.fixed-periods={good=\"10 s\", bad=\"4 s\"}", "radio.errors_on=payload"],
        &["radio.arq.stop-and-wait.backoff.exponential=1.234567891 s", "tcp.profile=ns2"],
        &["radio.arq.stop-and-wait.retransmissions=13", "radio.expansion=1.000001", "tcp.profile=rfc"],
        &["scheme.source-quench.every_attempt=true", "title=quotes \" and \\ and é", "wired.rate=1 bps"],
    ] {
        let scenario = read(SCENARIO, overrides);
        let again = read(&scenario.to_toml(), &[]);
        assert_eq!(again, scenario, "{overrides:?}");
        assert_eq!(again.to_toml(), scenario.to_toml());
    }
}

/// The same of networks, and of all that a canonical form leaves out where the file does.
#[test]
fn a_network_reads_as_the_same_scenario() {
    for overrides in [
        &[][..],
        &["radio.uplink.channel.frame-loss.loss=0.5", "radio.handoff={first=\"1 s\", lasts=\"1 ms\"}"],
        &["radio.uplink.channel=perfect", "radio.handoff={first=\"0 s\", every=\"2 s\", lasts=\"1 ms\"}"],
        &[
            "connection.first.size=unlimited",
            "connection.first.plain=true",
            "transfer.via=[\"R1\", \"R2\", \"base1\"]",
        ],
        &["link.R1-R2={rate=\"1 bps\", delay=\"1 ns\", queue=\"unlimited\"}", "warmup=1 s"],
        &["link.base1-phone={mtu=\"none\", expansion=2, errors_on=\"payload\", uplink.channel=\"perfect\"}"],
        &[
            "link.base1-phone={queue=\"1 packet\", arq={stop-and-wait={backoff={fixed=\"1 s\"}}}, mtu=\"128 B\"}",
        ],
        &["traffic.cross.law.on-off={rate=\"9 kbps\", on=\"1 s\", off=\"2 s\", periods=\"fixed\"}"],
        &[
            "traffic.cross.law.constant.rate=9 kbps",
            "traffic.cross.via=[]",
            "connection.first.via=[\"R1\", \"R2\", \"base1\"]",
        ],
    ] {
        let scenario = read(NETWORK, overrides);
        let again = read(&scenario.to_toml(), &[]);
        assert_eq!(again, scenario, "{overrides:?}");
        assert_eq!((again.to_toml(), again.hash()), (scenario.to_toml(), scenario.hash()));
        assert!(overrides.is_empty() || scenario.hash() != read(NETWORK, &[]).hash());
    }
    for shape in ["path={routers=2, wireless=\"both\"}", "dumbbell={pairs=3, wireless=\"none\"}"] {
        let scenario = read(SCENARIO, &[&format!("topology.{shape}"), "schemes=[\"basic\"]"]);
        assert_eq!(read(&scenario.to_toml(), &[]), scenario, "{shape}");
    }
}

#[test]
fn the_hash_is_of_what_is_said_and_not_of_how() {
    let hash = read(SCENARIO, &[]).hash();
    let said_otherwise = with("rate = \"56 kbps\"", "rate = '0.056 Mbps' # the same");
    assert_eq!(read(&said_otherwise, &[]).hash(), hash);
    assert_eq!(read(SCENARIO, &["limit=10 min"]).hash(), hash);
    assert_ne!(read(SCENARIO, &["limit=11 min"]).hash(), hash);
    assert_eq!(hash.len(), 16);
}

#[test]
fn a_profile_gives_what_is_not_stated_and_nothing_else() {
    use lasthop_proto::tcp::{Flavour, Profile};
    let mut expected = Profile::Ebsn.settings();
    assert_eq!(read(SCENARIO, &[]).tcp, expected);
    // What rfc would have, stated, is not taken for left out.
    expected.flavour = Flavour::NewReno;
    expected.dupthresh = 5;
    assert_eq!(read(SCENARIO, &["tcp.flavour=newreno", "tcp.dupthresh=5"]).tcp, expected);
    assert_eq!(read(SCENARIO, &["tcp.profile=ns2"]).tcp, Profile::Ns2.settings());
    assert_eq!(read(&with("[tcp]\nprofile = \"ebsn\"", ""), &[]).tcp, Profile::Rfc.settings());
}

/// An override says the same as the file would.
#[test]
fn an_override_may_leave_out_quotes_and_spaces() {
    let edited = read(&with("19.2 kbps", "2 Mbps"), &[]);
    for assignment in
        ["radio.rate=\"2 Mbps\"", "radio.rate=2 Mbps", "radio.rate=2Mbps", " radio . rate = 2 Mbps "]
    {
        assert_eq!(read(SCENARIO, &[assignment]), edited, "{assignment}");
    }
    assert_eq!(read(SCENARIO, &["radio.expansion=2"]), read(&with("= 1.5", "= 2.0"), &[]));
    assert_eq!(read(SCENARIO, &["transfer.size=50KB"]), read(&with("100 KB", "50 KB"), &[]));
    let listed = ["schemes=[\"basic\"]"];
    assert_eq!(read(SCENARIO, &listed), read(&with(", \"ebsn\"", ""), &[]));
}

#[test]
fn a_later_override_wins() {
    assert_eq!(read(SCENARIO, &["limit=1s", "limit=2s"]), read(SCENARIO, &["limit=2s"]));
}

#[test]
fn an_override_makes_the_tables_that_it_needs() {
    let edited = with("[transfer]", "[scheme.ebsn]\nnotice_size = \"56 B\"\n\n[transfer]");
    assert_eq!(read(SCENARIO, &["scheme.ebsn.notice_size=56 B"]), read(&edited, &[]));
}

#[test]
fn an_override_of_another_choice_replaces_the_one_in_the_file() {
    let edited = with("two-state]\ngood = \"10 s\"\nbad = \"4 s\"", "iid]\nber = 1e-5");
    assert_eq!(read(SCENARIO, &["radio.channel.iid.ber=1e-5"]), read(&edited, &[]));
    let edited = with("backoff.uniform", "backoff.fixed");
    let fixed = "radio.arq.stop-and-wait.backoff.fixed=100 ms";
    assert_eq!(read(SCENARIO, &[fixed]), read(&edited, &[]));
    // A choice that is already made keeps its other parameters.
    let longer = "radio.channel.two-state.good=20 s";
    assert_eq!(read(SCENARIO, &[longer]), read(&with("10 s", "20 s"), &[]));
}
