"""Senders beside schemes: `--sender`, the key `sender` and `scenarios/last-mile.toml`."""

from __future__ import annotations

import csv
import json
import re
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
        (
            ["nosuch"],
            ['--sender: found "nosuch", expected "linux-reno"', '"rfc", "linux", "linux-5.15", "linux-bbr"'],
        ),
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


@pytest.mark.parametrize("name", ["run", "study"])
def test_a_sender_with_invalid_settings_names_the_option(command: Command, tmp_path: Path, name: str) -> None:
    """NewReno takes no samples of the delivery rate."""
    for others in ([], ["--sender", "linux"]):
        result = command(name, LAST_MILE, "--sender", "rfc-bbr", *others, "--out", tmp_path / "out")
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith('error: --sender: found "rfc-bbr", whose congestion is invalid: ')


def test_what_is_set_applies_to_every_sender(command: Command) -> None:
    """They were ignored: there was no mark."""
    options = ("--scheme", "arq", "--set", "limit=20 s", "--set", "radio.queue.codel={}", "--json")
    marks = {}
    for setting in ("tcp.ecn=true", "senders.linux.ecn=true", "senders.linux-bbr.ecn=true"):
        found = json.loads(command("run", LAST_MILE, *BOTH, *options, "--set", setting).stdout)["results"]
        marks[setting] = [each["metrics"]["ecn_marks"] for each in found]
    cubic, bbr = marks["tcp.ecn=true"]
    assert min(cubic, bbr) > 0
    assert marks["senders.linux.ecn=true"] == [cubic, 0]
    assert marks["senders.linux-bbr.ecn=true"] == [0, bbr]


def test_what_only_the_senders_use_need_not_suit_the_file(command: Command) -> None:
    """The file's own TCP is Tahoe, which is never paced."""
    paced = ("--set", "tcp.pacing=true", "--scheme", "basic")
    result = command("run", EXAMPLE, "--sender", "linux", "--sender", "linux-reno", *paced)
    assert result.returncode == 0, result.stderr
    result = command("run", EXAMPLE, *paced)
    assert (result.returncode, result.stdout) == (2, "")
    assert "tcp.pacing: found it, but it has no effect" in result.stderr


def test_an_axis_of_tcp_applies_to_every_sender(command: Command) -> None:
    options = (*BOTH, "--scheme", "basic", *SHORT, "--runs", "1:1", "--json")
    result = command("compare", LAST_MILE, *options, "--axis", "tcp.pacing=true,false")
    report = json.loads(result.stdout)
    found = {(each["sender"], each["settings"]["tcp.pacing"]): each["mean"] for each in report["results"]}
    assert sorted(found) == [("linux", "false"), ("linux", "true"), ("linux-bbr", "true")]
    assert found["linux", "true"] != found["linux", "false"]
    (refused,) = report["refused"]
    assert "always pace" in refused["reason"]


@pytest.mark.parametrize("senders", [["linux"], SENDERS])
def test_a_swept_congestion_control_beside_a_sender_is_a_conflict(
    command: Command, tmp_path: Path, senders: list[str]
) -> None:
    options = [option for sender in senders for option in ("--sender", sender)]
    swept = ("--set", 'sweep.tcp.congestion=["reno", "cubic"]', "--out", tmp_path / "out")
    result = command("study", LAST_MILE, *options, *swept)
    assert (result.returncode, result.stdout) == (2, "")
    assert 'tcp.congestion: found "reno" beside the sender "linux"' in result.stderr
    assert 'name the sender "linux-reno"' in result.stderr


def test_the_page_shows_what_two_senders_on_one_link_get(command: Command, tmp_path: Path) -> None:
    page = (ROOT / "docs/guide/senders.md").read_text()
    typed = re.search(r"^\$ lasthop (study .*?)\nCUBIC", page, re.DOTALL | re.MULTILINE)
    assert typed is not None
    words = typed[1].replace("\\\n", "").split()
    shown = command(*words, "--out", tmp_path / "out").stdout.split("\n\ntoo few")[0]
    assert shown.count("400 packets") == 1
    assert shown in page


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


def test_settings_of_tcp_are_for_those_of_several_senders_that_have_them(command: Command) -> None:
    mixed = ("--sender", "linux", "--sender", "quinn-cubic", "--set", "tcp.window=64 KB")
    result = command("run", LAST_MILE, *mixed, *SHORT, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert {each["sender"] for each in report["results"]} == {"linux", "quinn-cubic"}
    alone = command("run", LAST_MILE, "--sender", "quinn-cubic", "--set", "tcp.window=64 KB", *SHORT)
    assert alone.returncode == 2
    assert "tcp.window: found it, but it has no effect: no connection uses TCP" in alone.stderr


def test_other_connections_keep_settings_that_a_sender_of_quic_has_not(
    command: Command, tmp_path: Path
) -> None:
    mixed = tmp_path / "mixed.toml"
    mixed.write_text(
        'limit = "5 s"\n[transfer]\nsize = "1 MB"\n[connection.mine]\n[connection.other]\nsender = "linux"\n'
        '[wired]\nrate = "100 Mbps"\ndelay = "20 ms"\n[radio]\nrate = "8 Mbps"\ndelay = "1 ms"\n'
    )
    quic, both = ("--sender", "quinn-cubic"), ("--sender", "linux", "--sender", "quinn-cubic")

    def rates(*options: str) -> list[float]:
        report = json.loads(command("run", mixed, *options, "--json").stdout)
        connections = report["results"][-1]["connections"]
        return [each["throughput_bps"] for each in connections.values()]

    free = rates(*quic)
    for key in ("tcp.window", "host.mobile.tcp.window"):
        limited = rates(*quic, "--set", f"{key}=8 KB")
        assert limited[1] < free[1]
        assert rates(*both, "--set", f"{key}=8 KB") == limited


@pytest.mark.parametrize(
    "setting",
    [
        "tcp.window=64 KB",
        '"tcp".window=64 KB',
        "tcp={ window = '64 KB' }",
        "host.mobile.tcp.window=64 KB",
        "sweep.tcp.window=['64 KB', '128 KB']",
    ],
)
def test_a_setting_means_the_same_to_run_study_and_compare(
    command: Command, tmp_path: Path, setting: str
) -> None:
    options = (LAST_MILE, "--sender", "linux", "--sender", "quinn-cubic", "--scheme", "basic", *SHORT)
    runs = json.loads(command("run", *options, "--set", setting, "--json").stdout)["results"]
    assert [each["sender"] for each in runs] == ["linux", "quinn-cubic"]
    out = ("--runs", "2", "--out", tmp_path, "--json")
    results = json.loads(command("study", *options, "--set", setting, *out).stdout)["results"]
    assert {each["parameters"]["sender"] for each in results} == {"linux", "quinn-cubic"}
    if setting.startswith("sweep"):
        return
    race = json.loads(command("compare", *options, "--set", setting, "--runs", "2:2", "--json").stdout)
    assert (len(race["results"]), race["refused"]) == (2, [])
    # The first of the runs is that of `run`, whose sender of QUIC has the setting too.
    means = {each["sender"]: each["mean"] for each in race["results"]}
    assert means.keys() == {"linux", "quinn-cubic"}


def test_a_setting_of_no_sender_is_refused_by_run_study_and_compare(command: Command, tmp_path: Path) -> None:
    both = ("--sender", "quinn-cubic", "--sender", "quinn-newreno", "--set", "tcp.window=64 KB")
    own = tmp_path / "own.toml"
    own.write_text('sender = "quinn-cubic"\n' + (ROOT / LAST_MILE).read_text().replace("sender =", "# "))
    for name in ("run", "study", "compare"):
        refused = command(name, own, *both, *SHORT)
        assert refused.returncode == 2
        assert "tcp.window: found it, but it has no effect: no connection uses TCP" in refused.stderr
    # The file's sender has no use for it, and one that is named has.
    race = ("compare", own, "--sender", "linux", *both[2:], *SHORT, "--scheme", "basic", "--runs", "2:2")
    found = json.loads(command(*race, "--json").stdout)
    assert found["baseline"] == "quinn-cubic basic"
    assert {each["sender"] for each in found["results"]} == {"linux", "quinn-cubic", "quinn-newreno"}
    compared = lasthop.compare(
        own, ["linux"], ["basic"], overrides=["tcp.window=64 KB", "limit=1 s"], runs=(2, 2)
    )
    assert [arm.sender for arm in compared.arms] == ["quinn-cubic", "linux"]
