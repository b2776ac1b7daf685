//! The canonical form, overrides and defaults.

use crate::common::{settings, without_lists};
use lasthop_scenario::Scenario;
use lasthop_testing::scenario_texts::{NETWORK, SCENARIO, with};

fn read(text: &str, overrides: &[&str]) -> Scenario {
    Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_canonical_form_contains_every_key() {
    let scenario = read(SCENARIO, &[]);
    insta::assert_snapshot!(without_lists(&scenario.to_toml()));
    let canonical: toml::Table = toml::from_str(&scenario.to_toml()).expect("it is TOML");
    let stated = canonical["tcp"].as_table().expect("a table");
    // What the profile leaves off has no value.
    let off: Vec<_> = settings().into_iter().filter(|key| !stated.contains_key(key)).collect();
    let own = [
        "kernel",
        "ecn_fallback",
        "late_backoff",
        "syn_linear_timeouts",
        "thin_linear_timeouts",
        "mtu_probing",
        "user_timeout",
    ];
    assert_eq!(off, own);
}

/// Every alternative of every choice round-trips, and so do awkward numbers.
#[test]
fn the_canonical_form_round_trips() {
    for overrides in [
        &[][..],
        &["radio.channel=perfect", "radio.arq=none", "schemes=[\"basic\"]", "radio.mtu=none"],
        &["radio.channel.iid.ber=1e-7", "wired.queue=1 packet", "radio.queue=64 KiB"],
        &[
            "wired.queue.codel={}",
            "radio.queue.red={max=20, weight=\"1%\", gentle=false, limit=\"unlimited\"}",
        ],
        &["wired.queue.red.min=0", "radio.queue.fq-codel={limit=\"64 KiB\", flows=1, ecn=false}"],
        &[
            "wired.queue=3 packets",
            "wired.queue.codel.target=1 ns",
            "radio.uplink.queue.fq-codel.quantum=1 B",
        ],
        &["radio.channel.frame-loss.loss=0.1%", "transfer.size=unlimited", "wired.queue=50 packets"],
        &["radio.channel.fixed-periods={good=\"10 s\", bad=\"4 s\"}", "radio.errors_on=payload"],
        &["radio.arq.stop-and-wait.backoff.exponential=1.234567891 s", "tcp.profile=ns2"],
        &["radio.arq.stop-and-wait.retransmissions=13", "radio.expansion=1.000001", "tcp.profile=rfc"],
        &["radio.mtu=none", "radio.unit=480 B", "radio.fec=bch-255-131-18", "schemes=[\"selective-fec\"]"],
        &["radio.fec={n=255, k=131, t=18}", "scheme.selective-fec.protect=repeated-units"],
        &["radio.fec=bch-63-45-3", "radio.protect=all", "radio.uplink={fec=\"none\", protect=\"scheme\"}"],
        &["radio.fec={n=63, k=40, t=3}", "scheme.selective-fec={protect=\"none\", segments=0, mark=46}"],
        &["radio.arq.selective-repeat={}"],
        &[
            "radio.arq.selective-repeat={retransmissions=\"unlimited\", feedback_delay=\"1 ns\", slot=\"10 ms\"}",
        ],
        &["radio.channel.rayleigh-gilbert={fading_margin=\"5 dB\", doppler=0.1, step=\"10 ms\"}"],
        &[
            "radio.channel.rayleigh-gilbert={fading_margin=\"-0.5 dB\", doppler=1e-9, step=\"1 ns\", start=\"bad\"}",
            "radio.channel.rayleigh-gilbert.good_ber=0",
            "radio.channel.rayleigh-gilbert.bad_ber=1e-5",
        ],
        &["tcp.window=1 packet"],
        &["tcp.window=65535packets", "scheme.metp.wireless.window=10 packets"],
        &["scheme.source-quench.every_attempt=true", "title=quotes \" and \\ and é", "wired.rate=1 bps"],
    ] {
        let scenario = read(SCENARIO, overrides);
        let again = read(&scenario.to_toml(), &[]);
        assert_eq!(again, scenario, "{overrides:?}");
        assert_eq!(again.to_toml(), scenario.to_toml());
    }
}

/// All keys except those of both directions.
const EVERY_KEY_OF_A_DIRECTION: &str = "radio.uplink={rate=\"64 kbps\", delay=\"1 ms\", queue=\"3 packets\", \
    expansion=1.5, unit=\"100 B\", mtu=\"none\", errors_on=\"payload\", arq={selective-repeat={slot=\"1 ms\"}}, \
    channel={rayleigh-gilbert={fading_margin=\"5 dB\", doppler=0.1, step=\"10 ms\"}}, fec=\"bch-63-45-3\"}";

/// Networks round-trip, and so does a file that omits optional keys.
#[test]
fn the_canonical_form_of_a_network_round_trips() {
    for overrides in [
        &[][..],
        &["radio.uplink.channel.frame-loss.loss=0.5", "radio.outage={first=\"1 s\", lasts=\"1 ms\"}"],
        &["radio.uplink.channel=perfect", "radio.outage={first=\"0 s\", every=\"2 s\", lasts=\"1 ms\"}"],
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
        &["radio.uplink={}"],
        &["radio.uplink.rate=64 kbps", "link.base1-phone.uplink={}"],
        &[EVERY_KEY_OF_A_DIRECTION],
        &["link.base1-phone.uplink.unit=none", "radio.uplink={mtu=\"none\", arq=\"none\"}"],
        &["link.base1-phone={unit=\"480 B\", fec=\"bch-255-131-18\", uplink.fec={n=63, k=40, t=3}}"],
        &["traffic.cross.law.on-off={rate=\"9 kbps\", on=\"1 s\", off=\"2 s\", periods=\"fixed\"}"],
        &[
            "traffic.cross.law.constant.rate=9 kbps",
            "traffic.cross.via=[]",
            "connection.first.via=[\"R1\", \"R2\", \"base1\"]",
        ],
        &["application.web={kind=\"http\", from=\"phone\", to=\"server\"}"],
        &["application.mail={kind=\"email\", from=\"R1\", to=\"server\", think={constant=\"0 s\"}}"],
        &[
            "application.x={kind=\"database\", from=\"phone\", to=\"laptop\", requests=3, stop=\"9 s\"}",
            "application.x.request.uniform={least=\"1 B\", most=\"1000 GB\"}",
            "application.x.response.lognormal={median=\"3 KB\", sigma=0}",
            "application.x.think.pareto={least=\"1 ns\", most=\"5 s\", shape=1e-3}",
            "application.x.via=[\"base1\", \"R2\", \"R1\", \"R3\", \"base2\"]",
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

/// A window in packets stays in packets, one in bytes stays in bytes.
#[test]
fn a_window_keeps_its_unit() {
    for (given, written) in [("10packets", "10 packets"), ("1 packets", "1 packet"), ("4 KiB", "4096 B")] {
        let toml = read(SCENARIO, &[&format!("tcp.window={given}")]).to_toml();
        assert!(toml.contains(&format!("\nwindow = \"{written}\"\n")), "{given}: {toml}");
    }
    let (packets, bytes) = (read(SCENARIO, &["tcp.window=7 packets"]), read(SCENARIO, &["tcp.window=4 KiB"]));
    assert_eq!(packets.tcp.window_payload(), bytes.tcp.window_payload());
    assert_ne!(packets.hash(), bytes.hash());
}

/// A code has one canonical form.
#[test]
fn a_code_is_written_by_its_name_if_possible() {
    let by_name = read(SCENARIO, &["radio.fec=bch-255-131-18"]);
    let by_numbers = read(SCENARIO, &["radio.fec={n=255, k=131, t=18}"]);
    assert_eq!((by_numbers.to_toml(), by_numbers.hash()), (by_name.to_toml(), by_name.hash()));
    assert!(by_name.to_toml().contains("fec = \"bch-255-131-18\""));
    // Not a BCH code: the one of its size has one more data bit.
    assert!(read(SCENARIO, &["radio.fec={n=255, k=130, t=18}"]).to_toml().contains("k = 130"));
}

/// A stated kernel is kept with the profile that has it, and with the other; each is a scenario of its own.
#[test]
fn a_stated_kernel_is_kept() {
    let mut hashes = Vec::new();
    for profile in ["linux", "linux-5.15"] {
        for kernel in [&[][..], &["tcp.kernel=linux-5.15"], &["tcp.kernel=linux-6.18"]] {
            let profile = format!("tcp.profile={profile}");
            let scenario = read(SCENARIO, &[&[profile.as_str()], kernel].concat());
            let again = read(&scenario.to_toml(), &[]);
            assert_eq!(again, scenario);
            assert_eq!((again.to_toml(), again.hash()), (scenario.to_toml(), scenario.hash()));
            let stated = kernel.first().map(|key| key.replace("tcp.kernel=", "\nkernel = \"") + "\"\n");
            assert!(stated.is_none_or(|stated| scenario.to_toml().contains(&stated)));
            hashes.push(scenario.hash());
        }
    }
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 6);
}

#[test]
fn the_hash_depends_on_content_only() {
    let hash = read(SCENARIO, &[]).hash();
    let said_otherwise = with("rate = \"56 kbps\"", "rate = '0.056 Mbps' # the same");
    assert_eq!(read(&said_otherwise, &[]).hash(), hash);
    assert_eq!(read(SCENARIO, &["limit=10 min"]).hash(), hash);
    assert_ne!(read(SCENARIO, &["limit=11 min"]).hash(), hash);
    assert_eq!(hash.len(), 16);
}

#[test]
fn a_profile_sets_omitted_keys_only() {
    use lasthop_proto::tcp::{Flavour, Profile};
    let mut expected = Profile::Ebsn.settings();
    assert_eq!(read(SCENARIO, &[]).tcp, expected);
    // A stated key keeps its value, even if it equals the default of `rfc`.
    expected.flavour = Flavour::NewReno;
    expected.dupthresh = 5;
    assert_eq!(read(SCENARIO, &["tcp.flavour=newreno", "tcp.dupthresh=5"]).tcp, expected);
    assert_eq!(read(SCENARIO, &["tcp.profile=ns2"]).tcp, Profile::Ns2.settings());
    // The default is a Linux server, with and without the table.
    assert_eq!(read(&with("[tcp]\nprofile = \"ebsn\"", ""), &[]).tcp, Profile::Linux.settings());
    expected = Profile::Linux.settings();
    expected.dupthresh = 5;
    assert_eq!(read(&with("profile = \"ebsn\"", "dupthresh = 5"), &[]).tcp, expected);
}

/// An override has the same effect as the key in the file.
#[test]
fn overrides_may_omit_quotes_and_spaces() {
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
fn an_override_creates_missing_tables() {
    let edited = with("[transfer]", "[scheme.ebsn]\nnotice_size = \"56 B\"\n\n[transfer]");
    assert_eq!(read(SCENARIO, &["scheme.ebsn.notice_size=56 B"]), read(&edited, &[]));
}

#[test]
fn an_override_replaces_the_choice_of_the_file() {
    let edited = with("two-state]\ngood = \"10 s\"\nbad = \"4 s\"", "iid]\nber = 1e-5");
    assert_eq!(read(SCENARIO, &["radio.channel.iid.ber=1e-5"]), read(&edited, &[]));
    let edited = with("backoff.uniform", "backoff.fixed");
    let fixed = "radio.arq.stop-and-wait.backoff.fixed=100 ms";
    assert_eq!(read(SCENARIO, &[fixed]), read(&edited, &[]));
    // Overriding the present choice keeps its other parameters.
    let longer = "radio.channel.two-state.good=20 s";
    assert_eq!(read(SCENARIO, &[longer]), read(&with("10 s", "20 s"), &[]));
}

/// The same for the uplink direction, of all links and of one.
#[test]
fn an_override_replaces_the_choice_of_one_direction() {
    let (two_state, uniform) = ("two-state = { good = \"10 s\", bad = \"4 s\" }", "uniform = \"1 s\"");
    let uplink = format!("{{ channel.{two_state}, arq.stop-and-wait.backoff.{uniform} }}");
    for (place, table) in [
        ("radio.uplink", "[radio]\nuplink = UPLINK"),
        ("link.base-mobile.uplink", "[link.base-mobile]\nuplink = UPLINK\n[radio]"),
    ] {
        let with_uplink = |uplink: &str| with("[radio]", &table.replace("UPLINK", uplink));
        for (key, from, to) in [
            ("channel.iid.ber=0.1", two_state, "iid.ber = 0.1"),
            ("channel.two-state.bad=9 s", "4 s", "9 s"),
            ("arq.selective-repeat.slot=1 s", "stop-and-wait.backoff.uniform", "selective-repeat.slot"),
            ("arq.stop-and-wait.backoff.fixed=1 s", "uniform", "fixed"),
        ] {
            let set = read(&with_uplink(&uplink), &[&format!("{place}.{key}")]);
            assert_eq!(set, read(&with_uplink(&uplink.replacen(from, to, 1)), &[]), "{place}.{key}");
        }
        // Tables outside the choice are kept.
        let set = read(&with_uplink(&uplink), &[&format!("{place}.arq.stop-and-wait.retransmissions=3")]);
        let more = format!("{uniform}, arq.stop-and-wait.retransmissions = 3");
        assert_eq!(set, read(&with_uplink(&uplink.replacen(uniform, &more, 1)), &[]), "{place}");
    }
}
