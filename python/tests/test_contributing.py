"""The how-tos of CONTRIBUTING.md: what they add works, by the files and lines that they name."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TREE = ROOT / "target" / "contributing"

TOYS = r"""//! What the how-tos of CONTRIBUTING.md add.
use lasthop_experiment::{Experiment, Observe, Unit, report};
use lasthop_scenario::Scenario;

#[test]
fn the_counter_of_a_new_scheme_is_a_metric() {
    let text = include_str!("../../../scenarios/ebsn-example.toml");
    let scenario = Scenario::parse(text, "toy.toml", &["schemes=['basic', 'ebsn-once']"]).unwrap();
    assert_eq!(scenario.counters().unwrap(), ["ebsn-once.notices_sent"]);
    let run = scenario.run("ebsn-once", 1, 0, Observe::default()).unwrap();
    assert!(run.metrics.connections.notices > 0);
    assert_eq!(run.counters[0].value, run.metrics.connections.notices);
    assert_eq!(run.agents[0].counters, [("notices_sent", run.counters[0].value)]);
}

#[test]
fn a_new_control_is_a_sender_over_a_new_channel_and_a_new_queue() {
    let text = include_str!("../../../scenarios/last-mile.toml");
    let metrics = |overrides: &[&str]| {
        let every_nth = ["radio.channel.every-nth.frames=40", "radio.uplink.channel.every-nth.frames=40"];
        let overrides = [&["limit=20 s"], &every_nth[..], overrides].concat();
        let scenario = Scenario::parse(text, "toy.toml", &overrides).unwrap();
        scenario.run("basic", 1, 0, Observe::default()).unwrap().metrics
    };
    let reno = metrics(&["sender=linux-reno"]);
    let relaxed = metrics(&["sender=linux-relaxed"]);
    // Every fortieth frame of each direction.
    let share = relaxed.network.link_failures as f64 / relaxed.network.link_attempts as f64;
    assert!((share - 1.0 / 40.0).abs() < 0.001, "{share}");
    assert!(relaxed.connections.delivered_bytes > reno.connections.delivered_bytes);
    let queue = ["sender=linux-relaxed", "radio.channel=perfect", "radio.queue.drop-head.limit=5 packets"];
    let dropped = metrics(&queue);
    assert!(dropped.connections.queue_drops > 0);
}

#[test]
fn a_new_rate_control_adapts_to_the_signal() {
    let text = include_str!("../../../scenarios/home-wifi.toml");
    let rate = |snr: &str| {
        let snr = format!("link.router-laptop.station.snr={snr}");
        let overrides = ["limit=3 s", "warmup=1 s", "wifi.rate=fallback", snr.as_str()];
        let scenario = Scenario::parse(text, "toy.toml", &overrides).unwrap();
        let run = scenario.run("basic", 1, 0, Observe::default()).unwrap();
        run.connections.iter().find(|each| each.name == "laptop").unwrap().metrics.throughput_bps
    };
    let [near, far] = ["40 dB", "5 dB"].map(rate);
    assert!(near > 2.0 * far && far > 1e6, "{near} {far}");
}

#[test]
fn a_new_metric_is_in_every_result() {
    let text = include_str!("../../../scenarios/ebsn-example.toml");
    let scenario = Scenario::parse::<&str>(text, "toy.toml", &[]).unwrap();
    let run = scenario.run("local-recovery", 1, 0, Observe::default()).unwrap();
    let connections = &run.metrics.connections;
    let again = connections.retransmitted_segments.expect("TCP counts them");
    let first = connections.first_segments;
    assert!(first > 0 && again > 0 && first + again == connections.segments_sent, "{first} and {again}");
    let report = report::to_json(&scenario, &[&run]).unwrap();
    assert!(report.contains(&format!("\"first_segments\": {first}")));
    assert_eq!(Unit::of("first_segments"), Unit::Count);
}
"""


ADDITIONS = re.compile(
    r"^\d\. [^\n]* in `([^`]+)`(?:, after `(\w+)`)?:\n\n```text\n(.*?)```", re.DOTALL | re.MULTILINE
)
"""A place, and the lines that a how-to adds there."""


def test_what_is_added_to_the_schema_is_written_into_the_reference() -> None:
    parts = re.split(r"^## ", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.MULTILINE)
    of_the_schema = [part for part in parts if ADDITIONS.search(part)]
    assert len(of_the_schema) == 6
    assert [
        part.splitlines()[0] for part in of_the_schema if "`python scripts/reference.py`" not in part
    ] == []


def with_lines(text: str, after: str, lines: str) -> str:
    """Add lines after the first one of a field, or at the end of a registry."""
    place = rf"(^ +{after}: [^\n]*\n)" if after else r"(register! \{.*?\n)(?=\})"
    return re.sub(place, lambda found: found[1] + lines, text, count=1, flags=re.DOTALL | re.MULTILINE)


def arrange(tree: Path, wanted: dict[str, bytes]) -> None:
    """Make a tree have these files. Those that it has keep their times, and are not compiled again."""
    for path, content in wanted.items():
        file = tree / path
        if not file.exists() or file.read_bytes() != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    for file in tree.rglob("*"):
        if file.is_file() and str(file.relative_to(tree)) not in wanted:
            file.unlink()


def test_a_measurement_format_that_the_how_to_adds_is_read(tmp_path: Path) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    ((path, module),) = re.findall(
        r"^1\. Write `(python/[^`]+)`:\n\n```python\n(.*?)```", text, re.DOTALL | re.MULTILINE
    )
    ((registry, line),) = re.findall(
        r"^2\. [^\n]* in `_MODULES` in `([^`]+)`.*?```text\n(.*?)```", text, re.DOTALL | re.MULTILINE
    )
    assert not (ROOT / path).exists(), f"{path} has been added"
    shutil.copytree(ROOT / "python" / "lasthop", tmp_path / "python" / "lasthop")
    (tmp_path / path).write_text(module)
    formats = (tmp_path / registry).read_text()
    (tmp_path / registry).write_text(formats.replace("\n)\n", f"\n{line})\n", 1))
    log = tmp_path / "probe.txt"

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        settings = os.environ | {"PYTHONPATH": str(tmp_path / "python")}
        arguments = [sys.executable, *command]
        return subprocess.run(arguments, cwd=tmp_path, env=settings, capture_output=True, text=True)

    log.write_text("sent 0.02 ok\nsent 0.04 lost\nsent 0.06 ok\n")
    read = run("-c", "from lasthop.measurement import read; print(read('probe.txt').summary())")
    assert "probe-log, 0.0 s\n  up: 1 of 3 packets lost" in read.stdout, read.stderr
    assert "probe logs    probe HOST > probe.txt" in run("-m", "lasthop", "fit", "--plan").stdout
    log.write_text("sent 0.02 ok\nsent 0.04 early\n")
    refused = run("-m", "lasthop", "fit", "probe.txt").stderr
    assert "expected `sent TIME ok` or `sent TIME lost`\n --> probe.txt:2" in refused


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_what_the_how_tos_add_works() -> None:
    rust = [ROOT / "Cargo.toml", ROOT / "Cargo.lock"]
    for folder in ("crates", "benches", "scenarios"):
        rust += [
            path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts
        ]
    wanted = {str(path.relative_to(ROOT)): path.read_bytes() for path in rust}
    how_tos = (ROOT / "CONTRIBUTING.md").read_text()
    files = re.findall(r"^1\. Write `([^`]+)`:\n\n```rust\n(.*?)```", how_tos, re.DOTALL | re.MULTILINE)
    additions = ADDITIONS.findall(how_tos)
    assert (len(files), len(additions)) == (5, 7)
    for path, text in files:
        assert path not in wanted, f"{path} has been added"
        wanted[path] = text.encode()
    for path, after, lines in additions:
        text = wanted[path].decode()
        wanted[path] = with_lines(text, after, lines).encode()
        assert wanted[path] != text.encode(), path
    wanted["crates/tests/tests/toys.rs"] = TOYS.encode()
    arrange(TREE, wanted)
    # The crates of others are those of `make test`; only the workspace is compiled, and not optimised.
    command = ["cargo", "test", "--quiet"]
    for crate in sorted(path.name for path in (ROOT / "crates").iterdir()):
        command += ["--config", f"profile.test.package.lasthop-{crate}.opt-level=0"]
    # Of the whole workspace: fewer members ask others for fewer features, and those are compiled once more.
    command += ["--workspace", "--test", "toys", "--test", "channel"]
    command += ["--", "new_", "registered"]
    settings = {"CARGO_TARGET_DIR": str(ROOT / "target")}
    result = subprocess.run(command, cwd=TREE, env=os.environ | settings, capture_output=True, text=True)
    # Warnings would be there, too.
    assert (result.returncode, result.stderr) == (0, ""), result.stdout + result.stderr
