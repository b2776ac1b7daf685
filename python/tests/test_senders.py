"""Senders beside schemes: `--sender`, the key `sender` and `scenarios/last-mile.toml`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from conftest import EXAMPLE, ROOT, Command, results

import lasthop

LAST_MILE = "scenarios/last-mile.toml"
SENDERS = ["linux", "linux-bbr"]
SCHEMES = ["basic", "arq"]
BOTH = [option for sender in SENDERS for option in ("--sender", sender)]
SHORT = ("--set", "limit=3 s", "--set", "transfer.size=200 KB")
PAIRS = [(sender, scheme) for sender in SENDERS for scheme in SCHEMES]


def test_each_sender_runs_with_each_scheme(command: Command) -> None:
    result = command("run", LAST_MILE, *BOTH, *SHORT)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    (header,) = (line for line in lines if "throughput" in line)
    assert header.split()[:2] == ["sender", "scheme"]
    rows = [line.split()[:2] for line in lines[lines.index(header) + 2 :][: len(PAIRS)]]
    assert rows == [list(pair) for pair in PAIRS]


def test_json_names_the_sender(command: Command) -> None:
    report = json.loads(command("run", LAST_MILE, *BOTH, *SHORT, "--json").stdout)
    assert [(each["sender"], each["scheme"]) for each in report["results"]] == PAIRS
    # The results differ: the option has an effect.
    assert len({each["metrics"]["throughput_bps"] for each in report["results"]}) == len(PAIRS)
    # The hash is that of what the senders share.
    (one,) = {
        json.loads(command("run", LAST_MILE, *options, *SHORT, "--json").stdout)["scenario"]["hash"]
        for options in ([], BOTH)
    }
    assert one == report["scenario"]["hash"]
    # Without a sender there is no key.
    report = json.loads(command("run", EXAMPLE, "--scheme", "ebsn", "--json").stdout)
    assert "sender" not in report["results"][0]


def test_files_are_named_by_sender_and_scheme(command: Command, tmp_path: Path) -> None:
    result = command("run", LAST_MILE, *BOTH, *SHORT, "--trace", "--pcap", "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    kinds = ["events.csv", "series.csv", "pcapng", "packets.png", "packets.svg", "packets.csv"]
    each = {f"{sender}-{scheme}.{kind}" for sender, scheme in PAIRS for kind in kinds}
    together = {f"packets.{kind}" for kind in ("png", "svg", "csv")}
    assert {*results(tmp_path)} == each | together | {"scenario.toml", "results.json"}
    found = json.loads((tmp_path / "results.json").read_text())["results"]
    assert [(one["sender"], one["scheme"]) for one in found] == PAIRS


def test_a_run_has_its_sender_and_a_label() -> None:
    scenario = lasthop.load(ROOT / LAST_MILE, ["sender=linux-vegas", "limit=1 s"])
    run = scenario.run("basic")
    assert (scenario.sender, run.sender, run.label) == ("linux-vegas", "linux-vegas", "linux-vegas basic")
    run = lasthop.load(ROOT / EXAMPLE, ["limit=1 s"]).run("basic")
    assert (run.sender, run.label) == (None, "basic")


@pytest.mark.parametrize("name", ["run", "study"])
@pytest.mark.parametrize(
    ("senders", "expected"),
    [
        (["linux-bbrr"], ['--sender: found "linux-bbrr"', 'did you mean "linux-bbr"?']),
        (["linux", "linux-bbrr"], ['--sender: found "linux-bbrr"', 'did you mean "linux-bbr"?']),
        (["nosuch"], ['--sender: found "nosuch", expected "linux-reno"', '"rfc", "linux", "linux-bbr"']),
    ],
)
def test_an_unknown_sender_names_the_option(
    command: Command, tmp_path: Path, name: str, senders: list[str], expected: list[str]
) -> None:
    options = [option for sender in senders for option in ("--sender", sender)]
    result = command(name, LAST_MILE, *options, "--out", tmp_path / "out")
    assert (result.returncode, result.stdout) == (2, "")
    assert all(part in result.stderr for part in expected), result.stderr
    assert "--set" not in result.stderr
    assert "sweep" not in result.stderr


@pytest.mark.parametrize("name", ["run", "study", "compare"])
def test_every_command_knows_a_profile_with_a_congestion_control(
    command: Command, tmp_path: Path, name: str
) -> None:
    """Advice names them, so they need no table of the scenario."""
    options = ("--sender", "linux-hybla", "--sender", "freebsd-reno", "--scheme", "basic", *SHORT)
    runs = () if name == "run" else ("--runs", "2:2")
    result = command(name, LAST_MILE, *options, *runs, "--out", tmp_path / "out", "--json")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)["results"]
    found = {row["parameters"]["sender"] if name == "study" else row["sender"] for row in rows}
    assert found >= {"linux-hybla", "freebsd-reno"}


@pytest.mark.parametrize("name", ["run", "study", "compare"])
def test_a_congestion_control_that_does_not_exist_is_refused_with_those_that_do(
    command: Command, tmp_path: Path, name: str
) -> None:
    result = command(name, LAST_MILE, "--sender", "linux-hibla", "--out", tmp_path / "out")
    assert (result.returncode, result.stdout) == (2, "")
    assert '--sender: found "linux-hibla", expected "linux-reno"' in result.stderr
    assert 'did you mean "linux-hybla"?' in result.stderr


def test_a_study_of_two_senders_has_a_column_of_them(command: Command, tmp_path: Path) -> None:
    options = (*BOTH, *SHORT, "--runs", "2", "--out", tmp_path, "--export", "csv")
    result = command("study", LAST_MILE, *options)
    assert result.returncode == 0, result.stderr
    header = next(line for line in result.stdout.splitlines() if "throughput" in line)
    assert header.split()[:2] == ["sender", "scheme"]
    for file, pairs in [
        ("summary.csv", PAIRS),
        ("comparison.csv", [(sender, SCHEMES[1]) for sender in SENDERS]),
        ("runs.csv", [pair for pair in PAIRS for _ in range(2)]),
    ]:
        rows = list(csv.DictReader((tmp_path / file).read_text().splitlines()))
        assert [(row["sender"], row["scheme"]) for row in rows] == pairs, file
    report = json.loads((tmp_path / "results.json").read_text())
    found = [(each["parameters"]["sender"], each["scheme"]) for each in report["results"]]
    assert found == PAIRS


def test_one_sender_of_a_study_is_no_sweep(command: Command, tmp_path: Path) -> None:
    options = ("--sender", "linux-bbr", *SHORT, "--runs", "2", "--out", tmp_path, "--json")
    report = json.loads(command("study", LAST_MILE, *options).stdout)
    assert [each["parameters"] for each in report["results"]] == [{}, {}]


def test_cubic_leaves_a_lossy_last_mile_unused_and_bbr_fills_it(command: Command) -> None:
    report = json.loads(command("run", LAST_MILE, *BOTH, "--json").stdout)
    rates = {
        (each["sender"], each["scheme"]): each["metrics"]["throughput_bps"] for each in report["results"]
    }
    # Of 10 Mbps, headers included, of which 1 % of the frames are lost.
    assert rates["linux", "basic"] < 3e6
    assert rates["linux-bbr", "basic"] > 9e6
