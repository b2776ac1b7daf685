//! Data files of scenarios: where they are found, what is wrong with them, and what they change.

use std::fs;
use std::path::{Path, PathBuf};

use lasthop_experiment::{Experiment, Observe};
use lasthop_scenario::Scenario;

const SCENARIO: &str = r#"
limit = "60 s"
[transfer]
size = "100 KB"
[wired]
rate = "10 Mbps"
[radio]
rate = "2 Mbps"
[radio.channel.loss-series]
file = "data/loss.csv"
"#;

/// A directory of its own with these files.
fn directory(name: &str, files: &[(&str, &[u8])]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    for (path, contents) in files {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().expect("it is in the directory")).expect("a directory");
        fs::write(path, contents).expect("a file");
    }
    directory
}

fn load(directory: &Path) -> Result<Scenario, String> {
    Scenario::load::<&str>(&directory.join("s.toml"), &[]).map_err(|error| error.to_string())
}

#[test]
fn paths_are_relative_to_the_scenario() {
    let files: &[(&str, &[u8])] =
        &[("s.toml", SCENARIO.as_bytes()), ("data/loss.csv", b"time_s,loss\n0,0\n10,0.5\n")];
    let scenario = load(&directory("relative", files)).expect("a scenario");
    let again = Scenario::parse::<&str>(&scenario.to_toml(), &scenario.file, &[]).expect("a scenario");
    assert_eq!(again, scenario);
    assert_eq!(*scenario.points()[0].scenario, scenario);
    scenario.run("basic", 1, 0, Observe::default()).expect("a run");
}

/// The same scenario has another hash with other contents, and the results are those of the contents.
#[test]
fn the_contents_count() {
    let run = |name, contents: &[u8]| {
        let files: &[(&str, &[u8])] = &[("s.toml", SCENARIO.as_bytes()), ("data/loss.csv", contents)];
        let scenario = load(&directory(name, files)).expect("a scenario");
        let run = scenario.run("basic", 1, 0, Observe::default()).expect("a run");
        (scenario.hash(), scenario.to_toml(), run.metrics.network.link_failures)
    };
    let (clear, toml, none) = run("clear", b"time_s,loss\n0,0\n");
    let (lossy, same, some) = run("lossy", b"time_s,loss\n0,0.2\n");
    assert_eq!(toml, same);
    assert_ne!(clear, lossy);
    assert_eq!(none, 0);
    assert!(some > 0);
}

/// A sweep over files reads each.
#[test]
fn files_are_swept() {
    let text =
        format!("{SCENARIO}\n[sweep]\nradio.channel.loss-series.file = [\"data/loss.csv\", \"b.csv\"]\n");
    let files: &[(&str, &[u8])] = &[
        ("s.toml", text.as_bytes()),
        ("data/loss.csv", b"time_s,loss\n0,0\n"),
        ("b.csv", b"time_ms,loss_percent\n0,20\n"),
    ];
    let points = load(&directory("swept", files)).expect("a scenario").points();
    let hashes: Vec<_> = points.iter().map(|point| point.scenario.hash()).collect();
    assert_eq!(hashes.len(), 2);
    assert_ne!(hashes[0], hashes[1]);
}

/// Whatever the file holds, the message names it with its line, and the key in the scenario.
#[test]
fn hostile_files_are_refused() {
    let huge = vec![b'#'; (64 << 20) + (1 << 20)];
    for (name, contents, expected) in [
        ("empty", &b""[..], "loss.csv: found nothing, expected a line with the names of the columns"),
        ("numbers", b"0,0.1\n1,0.2\n", "loss.csv:1: found numbers, expected the names of the columns"),
        ("words", b"time_s,loss\n0,0.1\n1,much\n", "loss.csv:3: found \"much\", expected a number"),
        ("infinite", b"time_s,loss\n0,inf\n", "loss.csv:2: found \"inf\", expected a number"),
        (
            "backwards",
            b"time_s,loss\n0,0\n2,0\n1,0\n",
            "loss.csv:4: found the time 1 s, expected times that increase",
        ),
        ("above one", b"time_s,loss\n0,2\n", "loss.csv:2: found a loss that is not a probability"),
        ("binary", b"time_s,loss\n\x1f\x8b\x00", "loss.csv:2: found a byte that is not UTF-8"),
        ("huge", &huge, "with 65 MiB, expected at most 64 MiB"),
    ] {
        let files: &[(&str, &[u8])] = &[("s.toml", SCENARIO.as_bytes()), ("data/loss.csv", contents)];
        let message = load(&directory(&format!("hostile-{name}"), files)).expect_err(name);
        assert!(message.contains(expected), "{name}: {message}");
        assert!(message.starts_with("radio.channel.loss-series.file: "), "{name}: {message}");
        assert!(message.contains("s.toml:10:8"), "{name}: {message}");
    }
    let absent = load(&directory("absent", &[("s.toml", SCENARIO.as_bytes())])).expect_err("no file");
    assert!(
        absent.contains("cannot read") && absent.contains("relative to that of the scenario"),
        "{absent}"
    );
    let of_directory = directory("directory", &[("s.toml", SCENARIO.as_bytes()), ("data/loss.csv/x", b"")]);
    assert!(load(&of_directory).expect_err("a directory").contains("not a regular file"));
    let empty = Scenario::parse::<&str>(SCENARIO, "s.toml", &["radio.channel.loss-series.file="]);
    assert!(empty.expect_err("no path").to_string().contains("found an empty path"));
}

#[test]
fn a_link_and_a_direction_have_files_of_their_own() {
    let text = SCENARIO.replace(
        "[radio.channel.loss-series]",
        "[link.base-mobile.uplink.channel.loss-series]\nfile = \"up.csv\"\n[radio.channel.loss-series]",
    );
    let files: &[(&str, &[u8])] = &[
        ("s.toml", text.as_bytes()),
        ("data/loss.csv", b"time_s,loss\n0,0\n"),
        ("up.csv", b"time_s,loss\n0,1\n"),
    ];
    let run = load(&directory("own", files)).expect("a scenario").run("basic", 1, 0, Observe::default());
    let metrics = run.expect("a run").metrics;
    assert_eq!(metrics.connections.delivered_bytes, 0, "nothing comes back");
    let wrong = load(&directory("own-absent", &files[..2])).expect_err("no file");
    assert!(wrong.starts_with("link.base-mobile.uplink.channel.loss-series.file: cannot read"), "{wrong}");
}
