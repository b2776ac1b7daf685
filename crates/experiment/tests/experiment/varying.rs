//! Links with a varying rate or delay, and presets, in scenario files.

use std::fs;
use std::path::{Path, PathBuf};

use lasthop_experiment::{Experiment, Observe};
use lasthop_predict::LinkAsked;
use lasthop_scenario::{Preset, PresetTable, Scenario};

const SCENARIO: &str = r#"
limit = "20 s"
schemes = ["basic", "arq"]
[transfer]
size = "unlimited"
[wired]
rate = "100 Mbps"
delay = "5 ms"
[radio]
rate = "5 Mbps"
delay = "10 ms"
queue = "50 packets"
"#;

fn directory(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("a directory");
    for (path, contents) in files {
        fs::write(directory.join(path), contents).expect("a file");
    }
    directory
}

/// The base scenario with these files beside it and these overrides.
fn with_files(name: &str, files: &[(&str, &str)], overrides: &[&str]) -> Result<Scenario, String> {
    let directory = directory(name, files);
    fs::write(directory.join("s.toml"), SCENARIO).expect("a file");
    Scenario::load(&directory.join("s.toml"), overrides).map_err(|error| error.to_string())
}

fn with(overrides: &[&str]) -> Result<Scenario, String> {
    Scenario::parse(SCENARIO, "s.toml", overrides).map_err(|error| error.to_string())
}

fn throughput(scenario: &Scenario, scheme: &str) -> f64 {
    let run = scenario.run(scheme, 1, 0, Observe::default()).expect("a run");
    run.metrics.connections.delivered_bytes as f64 * 8.0 / 20.0
}

/// A constant series, and a trace, give what a fixed rate gives.
#[test]
fn a_constant_series_or_trace_gives_the_rate() {
    let fixed = throughput(&with(&[]).unwrap(), "basic");
    let series =
        with_files("series", &[("r.csv", "time_s,rate_mbps\n0,5\n")], &["radio.rate.series.file=r.csv"]);
    let series = throughput(&series.unwrap(), "basic");
    assert_eq!(series, fixed);
    // 1504 bytes every 2.4064 ms are 5 Mb/s.
    let times: String = (1..=625).map(|n| format!("{}\n", (f64::from(n) * 2.4064_f64).round())).collect();
    let trace = with_files("trace", &[("t", &times)], &["radio.rate.mahimahi.file=t"]).unwrap();
    let trace = throughput(&trace, "basic");
    assert!((trace / fixed - 1.0).abs() < 0.01, "{trace} of {fixed}");
}

/// Everything of a wireless link composes with a varying rate and delay: queues, codes, fragments, ARQs and fades.
#[test]
fn varying_links_compose() {
    let varying = "radio={ rate.lognormal = { median = \"4 Mbps\", sigma = 0.6 }, \
                   delay.lognormal = { least = \"10 ms\", median = \"5 ms\", sigma = 0.5 }, queue = \"50 packets\" }";
    let plain = with(&[varying]).unwrap();
    assert!(throughput(&plain, "basic") > 1e6);
    for further in [
        "radio.queue.fq-codel={}",
        "radio.queue.red={}",
        "radio.mtu=576 B",
        "radio.channel.two-state={ good = \"2 s\", bad = \"100 ms\" }",
        "radio.channel.gilbert={ loss = 0.02, burst = 4 }",
        "radio.outage={ first = \"5 s\", lasts = \"1 s\" }",
    ] {
        let scenario = with(&[varying, further]).unwrap();
        for scheme in ["basic", "arq", "snoop", "i-tcp"] {
            let closes =
                with(&[varying, further, "tcp.close=true", "schemes=[\"basic\", \"snoop\", \"i-tcp\"]"]);
            let scenario = if scheme == "arq" { &scenario } else { &closes.unwrap() };
            let first = scenario.run(scheme, 3, 1, Observe::default()).expect("a run");
            assert!(first.metrics.connections.delivered_bytes > 100_000, "{further}, {scheme}");
            assert_eq!(scenario.run(scheme, 3, 1, Observe::default()).expect("a run"), first);
        }
    }
    let coded =
        with(&[varying, "radio.fec=bch-255-131-18", "radio.protect=all", "radio.channel.iid.ber=1e-3"]);
    assert!(throughput(&coded.unwrap(), "basic") > 1e6);
    let wired = with(&["wired.rate.lognormal={ median = \"4 Mbps\", sigma = 0.6 }", "wired.queue.codel={}"]);
    assert!(throughput(&wired.unwrap(), "basic") > 1e6);
}

/// The rate over time is the same whatever runs, other for another run, and the two directions differ.
#[test]
fn the_timing_is_that_of_the_run() {
    let scenario =
        with(&["radio.rate.lognormal={ median = \"4 Mbps\", sigma = 0.6, step = \"1 s\" }"]).unwrap();
    assert_eq!(lasthop_predict::varying_links(&scenario).unwrap(), ["base-mobile"]);
    let asked = LinkAsked { link: None, up: false, seed: 1, run: 0, until_s: 30.0 };
    let rows = lasthop_predict::link_timing(&scenario, asked).unwrap();
    assert_eq!(rows.len(), 20, "one for each second until the limit");
    assert!(rows.iter().all(|row| row[2] == 0.01));
    assert_eq!(
        lasthop_predict::link_timing(&scenario, LinkAsked { link: Some("base-mobile"), ..asked }).unwrap(),
        rows
    );
    assert_ne!(lasthop_predict::link_timing(&scenario, LinkAsked { run: 1, ..asked }).unwrap(), rows);
    assert_ne!(lasthop_predict::link_timing(&scenario, LinkAsked { up: true, ..asked }).unwrap(), rows);
    let wired =
        lasthop_predict::link_timing(&scenario, LinkAsked { link: Some("fixed-base"), ..asked }).unwrap();
    assert_eq!(wired, [[0.0, 1e8, 0.005]]);
    let wrong = lasthop_predict::link_timing(&scenario, LinkAsked { link: Some("base-mobil"), ..asked })
        .unwrap_err()
        .to_string();
    assert!(wrong.contains("did you mean \"base-mobile\"?"), "{wrong}");
    let fixed = with(&[]).unwrap();
    let none = lasthop_predict::link_timing(&fixed, asked).unwrap_err().to_string();
    assert!(none.contains("none whose rate or delay varies"), "{none}");
    let times = lasthop_predict::link_opportunities(
        &fixed,
        LinkAsked { link: Some("base-mobile"), until_s: 0.01, ..asked },
    );
    // 1504 bytes at 5 Mb/s take 2.4064 ms.
    assert_eq!(times.unwrap(), [3, 5, 8, 10]);
}

/// What a run's link gave, replayed as a trace, gives the same throughput.
#[test]
fn a_written_trace_replays() {
    let varying = "radio.rate.lognormal={ median = \"4 Mbps\", sigma = 0.6 }";
    let scenario = with(&[varying]).unwrap();
    let asked = LinkAsked { link: None, up: false, seed: 1, run: 0, until_s: 20.0 };
    let times = lasthop_predict::link_opportunities(&scenario, asked).unwrap();
    let file: String = times.iter().map(|ms| format!("{ms}\n")).collect();
    let replay = with_files("replay", &[("t", &file)], &["radio.rate.mahimahi.file=t"]).unwrap();
    let (original, replayed) = (throughput(&scenario, "basic"), throughput(&replay, "basic"));
    assert!((replayed / original - 1.0).abs() < 0.05, "{replayed} of {original}");
}

#[test]
fn faults_name_the_key() {
    for (overrides, expected) in [
        (
            &["radio.rate.lognormal={ sigma = 1 }"][..],
            "radio.rate.lognormal: expected either the median or the mean",
        ),
        (&["radio.rate.lognormal={ median = \"1 Mbps\", sigma = 9 }"], "radio.rate.lognormal.sigma: found"),
        (&["radio.uplink.rate.lognormal={ sigma = 1 }"], "radio.uplink.rate.lognormal: expected either"),
        (&["wired.delay.lognormal={ sigma = 1 }"], "wired.delay.lognormal: expected either"),
        (
            &["link.base-mobile.delay.lognormal={ sigma = 1 }"],
            "link.base-mobile.delay.lognormal: expected either",
        ),
        (
            &["link.fixed-base.rate.lognormal={ sigma = 1 }"],
            "link.fixed-base.rate.lognormal: expected either",
        ),
        (
            &["radio.rate.lognormla={}"],
            "radio.rate: found \"lognormla\", expected \"mahimahi\", \"series\", \"signal\", \"lognormal\" or \"token-bucket\"; did you mean \"lognormal\"?",
        ),
        (&["radio.rate.mahimahi.file=none.down"], "radio.rate.mahimahi.file: cannot read none.down"),
        (
            &["radio.rate.lognormal={ median = \"1 Mbps\", sigma = 1, step = \"1 ns\" }"],
            "radio.rate: found 20000000000 periods until the limit",
        ),
        (
            &["radio.rate.lognormal={ median = \"1 Mbps\", sigma = 1, stap = \"1 s\" }"],
            "unknown key radio.rate.lognormal.stap",
        ),
        (&["radio.rate={}"], "radio.rate: found"),
        (&["radio.preset=starlnik"], "radio.preset: found \"starlnik\", expected \"2g\""),
        (&["radio.preset=starlnik"], "did you mean \"starlink\"?; lasthop links shows them"),
        (&["radio.preset=3"], "radio.preset: found"),
        (&["radio.uplink.preset=geo"], "radio.uplink.preset: found it for one direction"),
        (&["wired.preset=geo"], "unknown key wired.preset"),
    ] {
        let message = with(overrides).expect_err(expected);
        assert!(message.contains(expected), "{overrides:?}: {message}");
    }
}

/// No loss rate has a closed form if the rate varies.
#[test]
fn a_varying_rate_has_no_closed_form() {
    let scenario = with(&["radio.rate.lognormal={ median = \"4 Mbps\", sigma = 0.6 }"]).unwrap();
    let refused =
        lasthop_predict::packet_loss(&scenario, "1500 B".parse().unwrap(), None).unwrap_err().to_string();
    assert!(refused.contains("no closed form for the varying rate of the link base-mobile"), "{refused}");
}

/// A preset gives the keys that are not stated; the canonical form has them all, and the hash is that of the keys.
#[test]
fn presets_are_overridden_key_by_key() {
    let text = "[transfer]\nsize = \"10 KB\"\n[wired]\nrate = \"1 Gbps\"\n[radio]\npreset = \"starlink\"\n";
    let read = |text: &str| Scenario::parse::<&str>(text, "s.toml", &[]).map_err(|error| error.to_string());
    let scenario = read(text).expect("a scenario");
    let canonical = scenario.to_toml();
    let keys = read(&canonical.replace("preset = \"starlink\"\n", "")).expect("a scenario");
    assert!(keys != scenario && keys.hash() == scenario.hash());
    assert_eq!(read(&canonical).expect("a scenario"), scenario);
    assert_eq!(lasthop_predict::varying_links(&scenario).unwrap(), ["base-mobile"]);
    let own = read(&format!("{text}rate = \"5 Mbps\"\nuplink.queue = \"7 packets\"\n"))
        .expect("a scenario")
        .to_toml();
    assert!(
        own.contains("rate = \"5 Mbps\"")
            && own.contains("rate = \"26.700 Mbps\"") | own.contains("rate = \"26.7 Mbps\"")
    );
    assert!(own.contains("queue = \"7 packets\"") && own.contains("gilbert-elliott"), "{own}");
    let of_link = text.replace("[radio]", "[link.base-mobile]");
    assert_eq!(
        lasthop_predict::varying_links(&read(&of_link).expect("a scenario")).unwrap(),
        ["base-mobile"]
    );
    let of_wired = format!("{text}[link.fixed-base]\npreset = \"geo\"\n");
    let refused = read(&of_wired).expect_err("a wired link");
    assert!(refused.contains("link.fixed-base."), "{refused}");
}

/// Presets can be swept: each point has all keys of its own.
#[test]
fn presets_are_swept() {
    let text = "[transfer]\nsize = \"10 KB\"\n[wired]\nrate = \"1 Gbps\"\n[radio]\npreset = \"geo\"\n\
                uplink.queue = \"9 packets\"\n[sweep]\nradio.preset = [\"geo\", \"lte\", \"2g\"]\n";
    let scenario = Scenario::parse::<&str>(text, "s.toml", &[]).expect("a scenario");
    let again = Scenario::parse::<&str>(&scenario.to_toml(), "s.toml", &[]).expect("a scenario");
    assert_eq!(again, scenario);
    let points = scenario.points();
    for (point, preset) in points.iter().zip(["geo", "lte", "2g"]) {
        let alone =
            text.replace("\"geo\"\n", &format!("\"{preset}\"\n")).split("[sweep]").next().unwrap().to_owned();
        let alone = Scenario::parse::<&str>(&alone, "s.toml", &[]).expect("a scenario");
        assert_eq!(point.scenario.hash(), alone.hash(), "{preset}");
        assert!(alone.to_toml().contains("queue = \"9 packets\""));
    }
}

/// Every preset is a scenario that runs, and says where its numbers come from.
#[test]
fn every_preset_runs() {
    let all = Preset::all();
    assert!(all.len() > 10);
    for Preset { name, summary, source, choice, table, toml } in all {
        assert!(
            [&summary, &source, &choice].iter().all(|text| text.len() > 8 && !text.contains('\n')),
            "{name}"
        );
        assert!(toml.contains("rate"), "{name}");
        let topology = match table {
            PresetTable::Radio => "",
            PresetTable::Wifi => "[topology.cell]\nstations = 1\n",
        };
        let table = table.name();
        let text = format!(
            "limit = \"30 s\"\n{topology}[transfer]\nsize = \"10 KB\"\n[wired]\nrate = \"1 Gbps\"\n[{table}]\npreset = \"{name}\"\n"
        );
        let scenario =
            Scenario::parse::<&str>(&text, "s.toml", &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
        let run = scenario.run("basic", 1, 0, Observe::default()).expect("a run");
        assert_eq!(run.metrics.connections.delivered_bytes, 10_000, "{name}");
    }
}
