"""The command line's contract: what is printed where, and the exit codes."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer
from conftest import EXAMPLE, ROOT, Command, results

import lasthop
from lasthop._lasthop import metric_definitions
from lasthop.cli.app import COMMANDS, app
from lasthop.cli.run_tables import _column
from lasthop.show.runs import _shown


def of_set(name: str) -> list[str]:
    """The names of a set of metrics; docs/reference/metrics.md lists them."""
    return [metric.name for metric in metric_definitions() if metric.set == name]


CONNECTION_METRICS = of_set("ConnectionMetrics")
METRICS = [*CONNECTION_METRICS, *of_set("NetworkMetrics")]
TRAFFIC_METRICS = of_set("TrafficMetrics")
SPLIT = "scenarios/split-wlan.toml"
TWO_FLOWS = "scenarios/two-flows.toml"
SCHEMES = ["basic", "source-quench", "local-recovery", "ebsn"]


def test_version(command: Command) -> None:
    result = command("--version")
    assert (result.returncode, result.stdout) == (0, f"lasthop {lasthop.__version__}\n")


def test_help_names_every_command_and_option(command: Command) -> None:
    overview = command("--help").stdout
    assert all(name in overview for name in ("run", "check", "schemes", "--version"))
    options = ["--scheme", "--seed", "--run", "--set", "--json", "--out", "--trace", "--pcap"]
    described = command("run", "--help").stdout
    assert all(option in described for option in options)


def test_neither_an_import_nor_help_warns() -> None:
    """In a process of its own, since this one imported the modules before, and shows warnings differently."""
    program = """
import contextlib, importlib, pathlib, pkgutil
import lasthop
from lasthop.cli.app import COMMANDS, app
for file in pathlib.Path(lasthop.__file__).parent.rglob("*.py"):
    compile(file.read_text(), file, "exec")
for module in pkgutil.walk_packages(lasthop.__path__, "lasthop."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
for name in COMMANDS:
    with contextlib.suppress(SystemExit):
        app([name, "--help"], prog_name="lasthop")
"""
    for arguments in (["-c", program], ["-m", "lasthop", "--help"]):
        line = [sys.executable, "-W", "error", *arguments]
        result = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_opens_its_help_as_the_list_of_commands_has_it(name: str) -> None:
    command = typer.main.get_command(app).load(name)  # type: ignore[attr-defined]
    assert command.name == name
    assert " ".join(command.help.split("\n\n")[0].split()) == COMMANDS[name]


def test_run_prints_a_row_for_each_scheme(command: Command) -> None:
    result = command("run", EXAMPLE)
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "EBSN worked example: constant good and bad periods"
    header, _, *rows = lines[2:-2]
    columns = ("scheme", "throughput (kbps)", "goodput (%)", "retransmitted (", "timeouts", "completion (s)")
    assert all(name in header for name in columns)
    assert [row.split()[0] for row in rows] == SCHEMES
    assert all(len(row.split()) == len(columns) for row in rows)
    assert lines[-1] == "without the ARQ of the wireless links: basic"


def test_run_as_json_has_the_documented_keys(command: Command) -> None:
    report = json.loads(command("run", EXAMPLE, "--json").stdout)
    assert list(report) == ["lasthop", "scenario", "seed", "run", "results"]
    assert list(report["scenario"]) == ["title", "file", "hash"]
    assert (report["lasthop"], report["seed"], report["run"]) == (lasthop.__version__, 1, 0)
    assert report["scenario"]["file"] == EXAMPLE
    assert [result["scheme"] for result in report["results"]] == SCHEMES
    counters = {"source-quench": "quenches_sent", "ebsn": "notices_sent"}
    for result in report["results"]:
        shown = ["scheme", "ended", "metrics", "connections", "traffic", "applications", "agents"]
        assert list(result) == shown
        assert list(result["metrics"]) == [*METRICS, *(f"{name}.{each}" for name, each in counters.items())]
        for scheme, counter in counters.items():
            (sent,) = [each[counter] for each in result["agents"].values() if counter in each] or [None]
            assert result["metrics"][f"{scheme}.{counter}"] == sent
            assert (sent is None) == (scheme != result["scheme"])
        assert {name: list(each) for name, each in result["connections"].items()} == {
            "transfer": CONNECTION_METRICS
        }
        assert result["traffic"] == result["applications"] == {}


def test_a_scheme_without_effect_is_printed_with_the_reason(command: Command) -> None:
    arguments = (
        "run",
        "last-mile",
        "--sender",
        "linux-bbr",
        "--scheme",
        "eln",
        "--scheme",
        "wenp",
        "--scheme",
        "snoop",
    )
    printed = command(*arguments, "--metric", "reactions").stdout
    reason = "BBR does not reduce its window for a loss"
    assert f"linux-bbr eln: eln had no effect on this sender, because {reason}" in printed
    assert printed.count("had no effect") == 1
    runs = {each["scheme"]: each for each in json.loads(command(*arguments, "--json").stdout)["results"]}
    assert runs["eln"]["without_effect"] == {"eln": reason}
    assert runs["eln"]["metrics"]["reactions"] == 0 < runs["wenp"]["metrics"]["reactions"]
    # A scheme that acts by an agent has no reactions.
    assert "without_effect" not in runs["snoop"]
    assert runs["snoop"]["metrics"]["reactions"] == 0


def test_connections_and_traffic_are_reported_by_name(command: Command) -> None:
    limits = ("--set", "warmup=1 s", "--set", "limit=20 s", "--json")
    (basic, lhack) = json.loads(command("run", TWO_FLOWS, *limits).stdout)["results"]
    for result in (basic, lhack):
        each = result["connections"]
        assert list(each) == ["scheme", "plain"]
        assert sum(one["delivered_bytes"] for one in each.values()) == result["metrics"]["delivered_bytes"]
    (basic, _) = json.loads(command("run", "scenarios/lhack-path.toml", *limits).stdout)["results"]
    assert {name: list(each) for name, each in basic["traffic"].items()} == {"cross": TRAFFIC_METRICS}
    # 400 kbps in packets of 500 B for 19 s, within four standard deviations.
    assert abs(basic["traffic"]["cross"]["sent_packets"] - 1_900) < 4 * 1_900**0.5


def test_further_metrics_have_a_column_each(command: Command) -> None:
    wanted = ["ebsn.notices_sent", "notices", "finished", "link_bits"]
    options = [word for name in wanted for word in ("--metric", name)]
    result = command("run", EXAMPLE, "--scheme", "basic", "--scheme", "ebsn", *options)
    assert (result.returncode, result.stderr) == (0, "")
    _, _, header, _, basic, ebsn, *_ = result.stdout.splitlines()
    assert [name.strip() for name in header.split("   ")[-4:]] == [
        "ebsn: notices sent",
        "notices",
        "finished",
        "link bits",
    ]
    metrics = [lasthop.run(EXAMPLE, scheme).metrics for scheme in ("basic", "ebsn")]
    assert basic.split()[-4:] == ["-", "0", "yes", f"{metrics[0]['link_bits']:,}"]
    sent = f"{metrics[1]['ebsn.notices_sent']:,}"
    assert ebsn.split()[-4:] == [sent, sent, "yes", f"{metrics[1]['link_bits']:,}"]


@pytest.mark.parametrize(
    ("scenario", "metric", "message"),
    [
        (EXAMPLE, "ebsn.notice", 'no metric "ebsn.notice"; did you mean "ebsn.notices_sent"?'),
        (EXAMPLE, "x.y", "there are throughput_bps, .*, source-quench.quenches_sent, ebsn.notices_sent"),
        (EXAMPLE, "connection.transfr.goodput", 'no connection "transfr"; did you mean "transfer"?'),
        (EXAMPLE, "connection.transfer.godput", 'no connection metric "godput"; did you mean "goodput"?'),
        (EXAMPLE, "conection.transfer.goodput", 'did you mean "connection.transfer.goodput"?'),
        (EXAMPLE, "traffic.x.sent_packets", 'no traffic "x"; there are none'),
        (
            EXAMPLE,
            "agent.base-mobile.notice_sent",
            'no agent counter "notice_sent"; did you mean "notices_sent"?',
        ),
        (EXAMPLE, "connection.goodput", '--metric: .*"connection.goodput", expected connection.NAME.METRIC'),
    ],
)
def test_unknown_metrics_are_refused(command: Command, scenario: str, metric: str, message: str) -> None:
    result = command("run", scenario, "--metric", metric)
    assert (result.returncode, result.stdout) == (2, "")
    assert re.search(message, result.stderr), result.stderr


def test_metrics_of_parts_stand_in_the_row_of_all_connections(command: Command) -> None:
    names = ["connection.1.goodput", "connection.'2'.timeouts"]
    options = [word for name in names for word in ("--metric", name)]
    result = command(
        "run", "scenarios/coexistence.toml", "--set", "limit=3 s", "--set", "warmup=0 s", *options
    )
    assert result.returncode == 0, result.stderr
    _, _, header, _, one, two, every, *_ = result.stdout.splitlines()
    assert [name.strip() for name in header.split("   ")[-2:]] == [
        "connection 1: goodput (%)",
        "connection 2: timeouts",
    ]
    assert (one.split()[-2:], two.split()[-2:]) == (["-", "-"], ["-", "-"])
    run = lasthop.load("coexistence", ["limit=3 s", "warmup=0 s"]).run()
    goodput, timeouts = run.connections["1"]["goodput"], run.connections["2"]["timeouts"]
    assert every.split()[-2:] == [f"{100 * goodput:.3f}", f"{timeouts:,}"]


def test_metrics_of_a_scenario_without_connections_have_a_table(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "traffic.toml"
    path.write_text(
        "limit = '1 s'\nwired.rate = '1 Mbps'\nradio.rate = '1 Mbps'\n"
        "[traffic.x]\nfrom = 'fixed'\nto = 'mobile'\npacket_size = '500 B'\n"
        "law.constant.rate = '100 kbps'\n"
    )
    result = command("run", path, "--metric", "link_attempts", "--metric", "traffic.x.sent_packets")
    assert (result.returncode, result.stderr) == (0, "")
    *_, header, _, row = result.stdout.strip().splitlines()
    assert header.split("   ")[0].strip() == "scheme"
    run = lasthop.run(path)
    assert row.split() == ["basic", str(run.metrics["link_attempts"]), str(run.traffic["x"]["sent_packets"])]


def test_applications_have_a_row_each(command: Command) -> None:
    result = command("run", "scenarios/office.toml", "--set", "limit=40 s")
    assert (result.returncode, result.stderr) == (0, "")
    _, _, *rows = result.stdout.split("\n\n")[2].splitlines()
    assert "mean response (s)" in result.stdout
    assert [row.split()[-9] for row in rows] == 2 * ["web", "mail", "database"]
    assert [row.split()[0] for row in rows[::3]] == ["basic", "local-recovery"]


def test_tables_show_pages_and_videos_and_what_was_cut_off(command: Command) -> None:
    result = command("run", "scenarios/users.toml", "--set", "limit=60 s", "--scheme", "basic")
    assert result.returncode == 0
    for header in ("mean page time (s)", "mean bitrate (kbps)", "mean response (s)", "MOS"):
        assert header in result.stdout
    assert re.search(
        r"linux basic reached the limit of 60 s before application film finished: 5\d\.\d s of", result.stderr
    )
    late = command("run", "scenarios/users.toml", "--set", "warmup=60 s", "--scheme", "basic")
    assert "film" not in late.stderr


def test_an_unfinished_application_is_reported(command: Command) -> None:
    limits = ("--set", "application.web.requests=50", "--set", "limit=40 s", "--scheme", "basic")
    told = command("run", "scenarios/office.toml", *limits).stderr
    pattern = r"basic reached the limit of 40 s before application web finished: \d+ of 50 responses arrived"
    assert re.search(pattern, told), told


def test_several_connections_have_a_row_each_and_one_together(command: Command) -> None:
    result = command("run", TWO_FLOWS, "--set", "warmup=1 s", "--set", "limit=30 s")
    assert (result.returncode, result.stderr) == (0, "")
    header, _, *rows = result.stdout.splitlines()[2:]
    assert header.split()[:2] == ["scheme", "connection"]
    assert header.endswith("  completion (s)   fairness")
    cells = [row.split() for row in rows]
    names = [[cell for cell in row if cell.isalpha()] for row in cells]
    assert names == [["basic", "scheme"], ["plain"], ["all"], ["lhack", "scheme"], ["plain"], ["all"]]
    for scheme, plain, both in (cells[:3], cells[3:]):
        assert float(both[1]) == pytest.approx(float(scheme[2]) + float(plain[1]), abs=0.011)
        assert scheme[-1] == plain[-1] == both[-2] == "-"
        assert 0.5 <= float(both[-1]) <= 1.0
    result = command("run", TWO_FLOWS, "--set", "warmup=0 s", "--set", "transfer.size=500 KB")
    times = [float(row.split()[-1]) for row in result.stdout.splitlines()[-3:-1]]
    assert float(result.stdout.split()[-2]) == max(times)


def columns(stdout: str) -> dict[str, tuple[str, ...]]:
    """Return the columns of the first printed table, which are apart by two spaces or more."""
    _, table, *_ = stdout.split("\n\n")
    header, _, *rows = table.splitlines()
    cells = [re.split(r"\s{2,}", row.strip()) for row in rows]
    return dict(zip(re.split(r"\s{2,}", header.strip()), zip(*cells, strict=True), strict=True))


def test_split_connections_show_what_happens_behind_the_split(command: Command) -> None:
    short = ("--set", "transfer.size=200 KB")
    table = columns(command("run", SPLIT, *short).stdout)
    report = json.loads(command("run", SPLIT, *short, "--json").stdout)
    metrics = [result["metrics"] for result in report["results"]]
    again = [f"{each['relay_retransmitted_segments']:,}" for each in metrics]
    timeouts = [f"{each['relay_timeouts']:,}" for each in metrics]
    assert list(table["relays retransmitted"]) == ["-", *again[1:]]
    assert list(table["relay timeouts"]) == ["-", *timeouts[1:]]
    assert not any("undelivered" in header for header in table)
    # Without a scheme that splits there is nothing to show.
    assert not any("relay" in header for header in columns(command("run", EXAMPLE).stdout))


def test_acknowledged_but_undelivered_data_are_shown(command: Command) -> None:
    options = ("--scheme", "basic", "--scheme", "metp", "--set", "limit=2 s")
    table = columns(command("run", SPLIT, *options).stdout)
    (header,) = (header for header in table if "undelivered" in header)
    assert header == "acknowledged, undelivered (KB)"
    basic, metp = (float(cell) for cell in table[header])
    assert basic == 0 < metp < 65.536


def test_every_part_of_a_split_connection_is_written(command: Command, tmp_path: Path) -> None:
    options = ("--set", "transfer.size=50 KB", "--scheme", "basic", "--scheme", "vs-tcp")
    result = command("run", SPLIT, *options, "--trace", "--out", tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    names = {*results(tmp_path)}
    last = "vs-tcp.base-mobile"
    figures = ["basic.packets", "vs-tcp.packets", f"{last}.packets", f"{last}.segment-size", "packets"]
    expected = {
        f"{name}.{kind}" for name in [*figures, "packets.base-mobile"] for kind in ("png", "svg", "csv")
    }
    expected |= {f"{name}.{kind}.csv" for name in ("basic", "vs-tcp", last) for kind in ("events", "series")}
    assert names == expected | {"scenario.toml", "results.json"}
    assert result.stdout.strip().endswith("3 traces, 3 series, 6 figures")
    with (tmp_path / f"{last}.events.csv").open() as file:
        sent = [row for row in csv.DictReader(file) if row["event"] == "sent"]
    metrics = json.loads((tmp_path / "results.json").read_text())["results"][1]["metrics"]
    assert len(sent) == metrics["relay_segments_sent"]


def test_the_same_run_gives_the_same_bytes(command: Command) -> None:
    once, again = (command("run", EXAMPLE, "--json").stdout for _ in range(2))
    assert once == again


def test_options_choose_schemes_seed_and_run(command: Command) -> None:
    arguments = ["--scheme", "ebsn", "--scheme", "basic", "--seed", "7", "--run", "3", "--json"]
    report = json.loads(command("run", EXAMPLE, *arguments).stdout)
    assert [result["scheme"] for result in report["results"]] == ["ebsn", "basic"]
    assert (report["seed"], report["run"]) == (7, 3)
    other = json.loads(command("run", EXAMPLE, *arguments[:4], "--json").stdout)
    assert report["results"][0]["metrics"] != other["results"][0]["metrics"]
    # There is no chance in what basic TCP meets.
    assert report["results"][1]["metrics"] == other["results"][1]["metrics"]


def test_set_changes_the_scenario(command: Command) -> None:
    report = json.loads(command("run", EXAMPLE, "--set", "transfer.size=20 KB", "--json").stdout)
    assert {result["metrics"]["delivered_bytes"] for result in report["results"]} == {20_000}
    unchanged = json.loads(command("run", EXAMPLE, "--json").stdout)
    assert report["scenario"]["hash"] != unchanged["scenario"]["hash"]


def test_scheme_options_replace_schemes_that_cannot_work(command: Command) -> None:
    assert command("run", EXAMPLE, "--set", "radio.arq=none").returncode == 2
    assert command("run", EXAMPLE, "--set", "radio.arq=none", "--scheme", "basic").returncode == 0


def test_out_holds_every_requested_file(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "down"
    result = command("run", EXAMPLE, "--trace", "--pcap", "--out", out)
    assert result.returncode == 0
    each = ("events.csv", "series.csv", "packets.png", "packets.svg", "packets.csv", "pcapng")
    expected = {f"{scheme}.{name}" for scheme in SCHEMES for name in each}
    expected |= {"results.json", "scenario.toml", "packets.png", "packets.svg", "packets.csv"}
    assert {*results(out)} == expected
    assert (out / "results.json").read_text() == command("run", EXAMPLE, "--json").stdout
    assert (out / "scenario.toml").read_text() == command("check", EXAMPLE).stdout
    assert f"written to {out}: " in result.stdout
    with (out / "basic.events.csv").open() as file:
        assert next(csv.reader(file)) == ["time_s", "event", "packet", "transmission", "size_bytes", "reason"]


def test_each_of_several_connections_has_a_trace(command: Command, tmp_path: Path) -> None:
    limits = ("--set", "limit=8 s", "--set", "warmup=0 s")
    arguments = ("--trace", "--scheme", "basic", "--out", tmp_path)
    assert command("run", TWO_FLOWS, *limits, *arguments).returncode == 0
    traces = {path.name for path in tmp_path.iterdir() if path.name.endswith((".events.csv", ".series.csv"))}
    assert traces == {
        f"basic.{name}.{kind}.csv" for name in ("scheme", "plain") for kind in ("events", "series")
    }
    results = json.loads((tmp_path / "results.json").read_text())["results"][0]["connections"]
    for name, metrics in results.items():
        with (tmp_path / f"basic.{name}.events.csv").open() as file:
            sent = sum(row["event"] == "sent" for row in csv.DictReader(file))
        assert sent == metrics["segments_sent"], name
    assert (tmp_path / "basic.packets.png").exists()


def test_out_without_other_options_holds_the_results(command: Command, tmp_path: Path) -> None:
    assert command("run", EXAMPLE, "--out", tmp_path).returncode == 0
    assert results(tmp_path) == ["results.json", "scenario.toml"]


def test_a_run_that_reaches_its_limit_is_reported(command: Command) -> None:
    dead = ("--set", "radio.channel.iid.ber=1", "--scheme", "basic", "--set", "limit=30 s")
    result = command("run", EXAMPLE, *dead)
    assert result.returncode == 0
    assert result.stderr == (
        "warning: basic reached the limit of 30 s before it finished: 0 B of 100000 B arrived\n"
    )
    assert result.stdout.splitlines()[4].endswith(" -")
    report = json.loads(command("run", EXAMPLE, *dead, "--json").stdout)
    assert report["results"][0]["ended"] == "time-limit"
    assert report["results"][0]["metrics"]["completion_time_s"] is None


def test_every_unfinished_connection_is_reported(command: Command) -> None:
    sizes = ("--set", "connection.scheme.size=40 MB", "--set", "connection.plain.size=50 KB")
    arguments = ("run", TWO_FLOWS, "--scheme", "lhack", "--set", "limit=5 s")
    result = command(*arguments, *sizes, "--set", "warmup=0 s")
    arrived = json.loads(command(*arguments, *sizes, "--set", "warmup=0 s", "--json").stdout)
    scheme, plain = arrived["results"][0]["connections"].values()
    assert plain["finished"]
    why = "lhack reached the limit of 5 s before connection scheme finished"
    told = f"warning: {why}: {scheme['delivered_bytes']} B of 40 MB arrived"
    assert result.stderr == f"{told}\n".replace("40 MB", "40000000 B")
    late = command(*arguments, *sizes, "--set", "warmup=4 s").stderr
    assert late.startswith(f"warning: {why}: ")
    assert late.endswith(" B of 40000000 B arrived after the warm-up of 4 s\n")
    without_end = ("--set", "connection.plain.size=50 KB", "--set", "warmup=0 s")
    assert command(*arguments, *without_end).stderr == ""


def test_an_unbounded_transfer_causes_no_warning(command: Command) -> None:
    result = command("run", EXAMPLE, "--set", "transfer.size=unlimited", "--set", "limit=30 s")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").glob("*.toml")), ids=lambda path: path.name)
def test_the_canonical_form_is_a_fixed_point(command: Command, tmp_path: Path, path: Path) -> None:
    canonical = command("check", path).stdout
    again = tmp_path / "canonical.toml"
    again.write_text(canonical)
    assert command("check", again).stdout == canonical
    assert lasthop.load(path).hash == lasthop.load(again).hash


def test_check_prints_a_canonical_form(command: Command, tmp_path: Path) -> None:
    canonical = command("check", EXAMPLE).stdout
    again = tmp_path / "canonical.toml"
    again.write_text(canonical)
    assert command("check", again).stdout == canonical
    assert tomllib.loads(canonical)["radio"]["arq"]["stop-and-wait"]["retransmissions"] == 13


def test_check_as_json(command: Command) -> None:
    report = json.loads(command("check", EXAMPLE, "--set", "radio.rate=2Mbps", "--json").stdout)
    assert list(report) == ["file", "hash", "scenario"]
    assert report["scenario"]["radio"]["rate"] == "2 Mbps"


def test_schemes_are_listed_with_their_source(command: Command) -> None:
    listed = command("schemes").stdout
    described = json.loads(command("schemes", "--json").stdout)["schemes"]
    assert {scheme["name"] for scheme in described} >= {*SCHEMES}
    for scheme in described:
        assert list(scheme) == ["name", "summary", "source"]
        assert all(text in listed for text in scheme.values())


GOOD = (ROOT / EXAMPLE).read_text()


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


@pytest.mark.parametrize(
    ("right", "wrong", "culprit", "expected"),
    [
        ('mtu = "128 B"', 'mut = "128 B"', "mut", ["unknown key radio.mut", 'did you mean "mtu"?']),
        ("[transfer]", "[transfre]", "[transfre]", ["transfre", 'did you mean "transfer"?']),
        ('rate = "56 kbps"', 'rate = "56"', 'rate = "56"', ["wired.rate", '"56"', "unit"]),
        ('rate = "56 kbps"', "rate = 56", "rate = 56", ["wired.rate", "56", "such as"]),
        ('rate = "56 kbps"', 'rate = "2 Mbs"', '"2 Mbs"', ["wired.rate", 'did you mean "2 Mbps"?']),
        ('rate = "56 kbps"', "rate = 2 Mbps", "2 Mbps", ["not TOML", '"2 Mbps"']),
        ('delay = "0 s"', 'delay = "-1 s"', '"-1 s"', ["wired.delay", '"-1 s"', "not negative"]),
        ('bad = "4 s"', 'bad = "4 s"\nbad_ber = 1.5', "bad_ber", ["bad_ber", "1.5", "from 0 to 1"]),
        ('"ebsn"]', '"ebns"]', '"ebns"]', ['"ebns"', 'did you mean "ebsn"?']),
        ('size = "100 KB"', "", "[transfer]", ["missing key transfer.size", "100 KB"]),
        ("[wired]", "[wired", "[wired", ["not TOML"]),
    ],
    ids=[
        "unknown key",
        "unknown table",
        "missing unit",
        "bare number",
        "unknown unit",
        "no quotes",
        "negative delay",
        "loss above one",
        "unknown scheme",
        "missing key",
        "not TOML",
    ],
)
def test_an_invalid_scenario_is_refused_with_one_message(
    command: Command, tmp_path: Path, right: str, wrong: str, culprit: str, expected: list[str]
) -> None:
    assert right in GOOD
    file = tmp_path / "wrong.toml"
    text = GOOD.replace(right, wrong, 1)
    file.write_text(text)
    for verb in ("run", "check"):
        result = command(verb, file)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith("error: ")
        assert "Traceback" not in result.stderr
        assert f"--> {file}:{line_of(text, culprit)}:" in result.stderr
        assert all(part in result.stderr for part in expected), result.stderr


def test_a_scheme_that_cannot_work_with_the_link_is_refused(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(GOOD[: GOOD.index("[radio.arq.stop-and-wait]")])
    result = command("run", file)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"--> {file}:{line_of(GOOD, 'schemes =')}:" in result.stderr
    assert '"source-quench" needs a link that recovers its own losses' in result.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "nowhere.toml"], "cannot read the file"),
        (["run", "scenarios"], "cannot read the file"),
        (["run", "tests/ns2/a_Reno_none.csv.gz"], "not TOML"),
        (["run", EXAMPLE, "--set", "radio.rate=2 Mbs"], 'did you mean "2 Mbps"?'),
        (["run", EXAMPLE, "--set", "radio.rat=2 Mbps"], "--set radio.rat=2 Mbps"),
        (["run", EXAMPLE, "--set", "nonsense"], "KEY=VALUE"),
        (["run", EXAMPLE, "--scheme", "ebns"], 'did you mean "ebsn"?'),
        (["run", EXAMPLE, "--sender", "bbr"], 'did you mean "linux-bbr"?'),
        (["run", EXAMPLE, "--seed", "-1"], "--seed"),
        (["run", EXAMPLE, "--seed", "one"], "--seed"),
        (["run", EXAMPLE, "--run", str(2**64)], "--run"),
        (["run", EXAMPLE, "--bogus"], "--bogus"),
        (["run", EXAMPLE, "--trace"], "--out"),
        (["run", EXAMPLE, "--pcap"], "--out"),
        (["run", EXAMPLE, "--out", "Makefile"], "Makefile"),
        (["run", EXAMPLE, "--pcap", "--out", "Makefile/deeper"], "Makefile"),
        (["run"], "SCENARIO"),
        (["rnu", EXAMPLE], "rnu"),
        (["check", EXAMPLE, "--set", "radio.channel.iid.ber=1.5"], "from 0 to 1"),
    ],
    ids=" ".join,
)
def test_invalid_command_lines_are_refused(command: Command, arguments: list[str], expected: str) -> None:
    result = command(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert expected in result.stderr
    assert "Traceback" not in result.stderr


def test_a_capture_that_cannot_be_written_is_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "basic.pcapng").mkdir()
    result = command("run", EXAMPLE, "--pcap", "--out", tmp_path)
    assert result.returncode == 2
    assert "basic.pcapng" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_closed_pipe_is_no_error() -> None:
    for arguments in (["run", EXAMPLE], ["check", EXAMPLE], ["schemes"], ["--version"]):
        reader, writer = os.pipe()
        os.close(reader)
        line = [sys.executable, "-m", "lasthop", *arguments]
        result = subprocess.run(line, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, check=False)
        os.close(writer)
        assert (result.returncode, result.stderr) == (0, b""), arguments


@pytest.mark.parametrize("command_line", [["--help"], ["run", "--help"], ["study", "--help"]], ids=" ".join)
def test_help_is_not_cut(command: Command, command_line: list[str]) -> None:
    assert "..." not in command(*command_line).stdout.replace("[ARGS]...", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["rnu"],
        ["run"],
        ["run", EXAMPLE, "--bogus"],
        ["run", EXAMPLE, "--seed", "-1"],
        ["run", EXAMPLE, "--trace"],
        ["run", "nowhere.toml"],
        ["study", EXAMPLE, "--metric", "speed"],
    ],
    ids=" ".join,
)
def test_every_error_message_has_the_same_prefix(command: Command, arguments: list[str]) -> None:
    result = command(*arguments)
    assert result.stderr.startswith("error: ")
    assert "Error" not in result.stderr


def test_without_a_command_help_is_printed(command: Command) -> None:
    result = command()
    assert (result.returncode, result.stdout) == (2, command("--help").stdout)


@pytest.mark.parametrize("verb", ["run", "study", "packet-size"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--scheme", "nosuch"], '--scheme: there is no scheme "nosuch"; there are basic, local-recovery, '),
        (["--scheme", "ebns"], '--scheme: there is no scheme "ebns"; did you mean "ebsn"?'),
        (
            ["--scheme", "basic", "--scheme", "basic"],
            '--scheme: found "basic" a second time, expected it once',
        ),
        (
            ["--scheme", "ebsn", "--set", "radio.arq=none"],
            '--scheme: "ebsn" needs a link that recovers its own',
        ),
    ],
    ids=str,
)
def test_an_unknown_scheme_names_the_option(
    command: Command, verb: str, options: list[str], expected: str
) -> None:
    result = command(verb, EXAMPLE, *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {expected}")
    assert "schemes" not in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_error_in_an_override_names_the_override(command: Command) -> None:
    result = command("run", EXAMPLE, "--set", 'schemes=["nosuch"]')
    assert '--> --set schemes=["nosuch"]' in result.stderr


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--sizes", "128 X"], '--sizes: tcp.packet_size: found "128 X", expected a size'),
        (["--sizes", "128 B,128 B"], '--sizes: sweep.tcp.packet_size: found "128 B" a second time'),
        (["--key", "tcp.nosuch"], "--key: unknown key tcp.nosuch"),
        (["--key", "tcp.nosuch", "--sizes", "128 B"], "--key: unknown key tcp.nosuch"),
        (["--runs", "99999999999"], "--runs: expected at most 1,000,000 of each scheme at each point"),
    ],
    ids=str,
)
def test_invalid_packet_sizes_name_the_option(command: Command, options: list[str], expected: str) -> None:
    result = command("packet-size", EXAMPLE, *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {expected}")
    assert "--set" not in result.stderr


def test_run_warns_that_it_ignores_a_sweep(command: Command) -> None:
    sweep = ("--set", 'sweep.tcp.packet_size=["128 B", "576 B"]', "--set", 'sweep.radio.mtu=["64 B", "none"]')
    lines = command("run", EXAMPLE, *sweep).stdout.splitlines()
    assert lines[-1] == (
        "without the sweep of tcp.packet_size, radio.mtu: each scheme ran once, with the values "
        "outside [sweep]; `lasthop study` runs all 4 points"
    )
    assert "sweep" not in command("run", EXAMPLE).stdout
    plain, swept = (command("run", EXAMPLE, *options, "--json").stdout for options in ((), sweep))
    assert json.loads(swept)["results"] == json.loads(plain)["results"]


def test_background_traffic_has_a_table(command: Command) -> None:
    source = 'traffic.cross={from="fixed", to="mobile", packet_size="100 B", law.constant.rate="1 kbps"}'
    options = ("--set", source, "--scheme", "basic", "--scheme", "ebsn")
    printed = command("run", EXAMPLE, *options).stdout
    table = columns(printed.partition("\n\n")[2])
    report = json.loads(command("run", EXAMPLE, *options, "--json").stdout)["results"]
    metrics = [result["traffic"]["cross"] for result in report]
    assert table["traffic"] == ("cross", "cross")
    assert table["sent"] == tuple(f"{each['sent_packets']:,}" for each in metrics)
    assert table["lost"] == tuple(f"{each['lost_packets']:,}" for each in metrics)
    for header in ("mean", "p95"):
        delay = float(table[f"{header} delay (ms)"][0].replace(",", ""))
        assert delay == pytest.approx(1e3 * metrics[0][f"{header}_delay_s"], abs=0.06)
    assert "MOS" not in table, "it carries no speech"


def test_calls_have_a_score(command: Command) -> None:
    call = 'traffic.call={from="fixed", to="mobile", voip.codec="gsm-efr"}'
    rates = ("--set", "wired.rate=1 Mbps", "--set", "radio.rate=1 Mbps")
    options = ("--set", call, "--scheme", "basic", "--set", "limit=9 s", *rates)
    table = columns(command("run", EXAMPLE, *options).stdout.partition("\n\n")[2])
    (result,) = json.loads(command("run", EXAMPLE, *options, "--json").stdout)["results"]
    metrics = result["traffic"]["call"]
    assert 1 < metrics["mos"] < 4.5
    assert table["late"] == (f"{metrics['late_packets']:,}",)
    assert table["MOS"] == (f"{metrics['mos']:.2f}",)


@pytest.mark.parametrize("verb", ["run", "study", "packet-size"])
def test_schemes_without_the_arq_of_the_link_are_named(command: Command, verb: str, tmp_path: Path) -> None:
    few = {"run": [], "study": ["--runs", "2"], "packet-size": ["--runs", "2", "--sizes", "128 B, 256 B"]}

    def printed(*options: str) -> list[str]:
        result = command(verb, EXAMPLE, *few[verb], *options, "--out", tmp_path / str(len(options)))
        assert result.returncode == 0, result.stderr
        return result.stdout.splitlines()

    schemes = ("--scheme", "ebsn", "--scheme", "basic", "--scheme", "i-tcp", "--set", "tcp.close=true")
    assert "without the ARQ of the wireless links: basic" in printed(*schemes)
    coded = ("--set", "radio.unit=480 B", "--set", "radio.mtu=none", "--set", "radio.fec=bch-255-131-18")
    code = "without the error-correcting code of the wireless links: ebsn, basic, i-tcp"
    assert code in printed(*schemes, *coded)
    bare = printed("--scheme", "basic", "--set", "radio.arq=none")
    # Six options, and so another directory.
    kept = printed("--scheme", "basic", "--set", "radio.rate=20 kbps", "--set", "scheme.basic.arq=true")
    assert not any(line.startswith("without") for line in [*bare, *kept])


def test_combinations_of_schemes_are_compared_and_written(command: Command, tmp_path: Path) -> None:
    schemes = ("--scheme", "arq", "--scheme", "ebsn+arq", "--scheme", "ebsn + lhack + arq")
    options = (
        "--set",
        "radio.arq=none",
        "--set",
        "transfer.size=20 KB",
        "--trace",
        "--pcap",
        "--out",
        tmp_path,
    )
    result = command("run", EXAMPLE, *schemes, *options)
    assert (result.returncode, result.stderr) == (0, "")
    rows = [line for line in result.stdout.splitlines() if line.startswith(("arq ", "ebsn "))]
    assert [row.split("  ")[0] for row in rows] == ["arq", "ebsn + arq", "ebsn + lhack + arq"]
    assert {"ebsn+arq.pcapng", "ebsn+lhack+arq.events.csv"} <= set(results(tmp_path))
    for names, told in (
        ("ebsn + nosuch", "error: --scheme: there is no scheme"),
        (
            "ebsn + ebsn",
            'error: --scheme: found "ebsn + ebsn", but "ebsn" occurs twice; leave one of them out',
        ),
    ):
        refused = command("run", EXAMPLE, "--scheme", names)
        assert refused.returncode == 2, refused.stderr
        assert refused.stderr.startswith(told)


def test_schemes_at_one_node_are_compared_and_written(command: Command, tmp_path: Path) -> None:
    path = ("--set", "topology.path.routers=2", "--set", "transfer.size=20 KB")
    schemes = ("--scheme", "wenp@R2", "--scheme", "wenp @ R1+arq")
    result = command(
        "run", EXAMPLE, *path, *schemes, "--set", "tcp.profile=rfc", "--trace", "--out", tmp_path
    )
    assert (result.returncode, result.stderr) == (0, "")
    rows = [line.split("  ")[0] for line in result.stdout.splitlines() if line.startswith("wenp@")]
    assert rows[:2] == ["wenp@R2", "wenp@R1 + arq"]
    # Without losses no scheme has anything to do, and each says so.
    assert all("had no effect on this sender" in row for row in rows[2:])
    assert {"wenp@R2.events.csv", "wenp@R1+arq.events.csv"} <= set(results(tmp_path))
    for name, told in (
        ("wnep@R1", 'error: --scheme: there is no scheme "wnep"'),
        ("wenp@R3", 'error: --scheme: "wenp@R3" names a node "R3", expected '),
        (
            "ebsn@R1",
            'error: --scheme: "ebsn@R1" has "ebsn" at "R1", which does not see the wireless link',
        ),
    ):
        refused = command("run", EXAMPLE, *path, "--scheme", name)
        assert refused.returncode == 2, refused.stderr
        assert refused.stderr.startswith(told), refused.stderr


def test_names_with_markup_or_slashes_are_escaped(command: Command, tmp_path: Path) -> None:
    name = "[red]a/b$x$:*"
    options = ("--set", f"connection={{'{name}'={{}}, c={{}}}}", "--set", "title=[bold]$a$ <b>&amp;")
    result = command("run", EXAMPLE, *options, "--scheme", "basic", "--trace", "--out", tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("[bold]$a$ <b>&amp;\n")
    assert f"basic    {name} " in result.stdout
    assert "basic.[red]a%2Fb$x$%3A%2A.events.csv" in results(tmp_path)
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


def test_names_that_would_break_a_table_are_refused(command: Command) -> None:
    for override in ("title=a\nb", 'connection={"a\\u001b[31m"={}}', "title=a\u202eb"):
        result = command("run", EXAMPLE, "--set", override)
        assert (result.returncode, result.stdout) == (2, "")
        assert "found the control character U+" in result.stderr


ALONE = """
limit = "20 s"
[wired]
rate = "1 Mbps"
[radio]
rate = "100 kbps"
[traffic.alone]
from = "fixed"
to = "mobile"
packet_size = "500 B"
law.poisson.rate = "50 kbps"
[sweep]
radio.rate = ["50 kbps", "100 kbps"]
"""


def test_a_scenario_with_traffic_only_has_one_table(command: Command, tmp_path: Path) -> None:
    scenario, out = tmp_path / "alone.toml", tmp_path / "out"
    scenario.write_text(ALONE)
    result = command("run", scenario, "--trace", "--out", out)
    assert (result.returncode, result.stderr) == (0, "")
    header, _, row, *_ = result.stdout.splitlines()
    assert header.split()[:4] == ["scheme", "traffic", "sent", "delivered"]
    assert row.split()[:2] == ["basic", "alone"]
    assert results(out) == ["results.json", "scenario.toml"]
    study = command("study", scenario, "--runs", "3", "--metric", "link_bits", "--out", tmp_path / "study")
    assert study.returncode == 0, study.stderr


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (["radio.mtu=1499 B"], "packets of 1500 B cross the MTU of 1499 B in 2 fragments"),
        (["radio.mtu=576 B"], "3 fragments, of which none may be lost; a real sender would find the MTU"),
        (["radio.uplink.mtu=576 B"], ""),
        (["radio.mtu=1500 B"], ""),
        (["radio.mtu=1499 B", "tcp.packet_size=1499 B"], ""),
        # Whoever states packets that do not fit wants fragments, and senders of papers know nothing of MTUs.
        (["radio.mtu=1499 B", "tcp.packet_size=3000 B"], ""),
        (["radio.mtu=576 B", "sender=rfc"], ""),
        (["radio.mtu=1400 B", "sender=quinn-cubic"], '(QUIC needs 1228 B): --set quic.mtu="1372 B"'),
        (["radio.mtu=1400 B", "sender=quinn-cubic", "quic.mtu=1372 B"], ""),
        (["radio.mtu=1500 B", 'schemes=["packet-fec"]'], "cross the MTU of 1462 B in 2 fragments"),
    ],
)
def test_packets_that_a_link_fragments_are_named(
    command: Command, settings: list[str], expected: str
) -> None:
    options = [f"--set={each}" for each in [*settings, "limit=1 s"]]
    result = command("check", "last-mile", *options)
    assert result.returncode == 0, result.stderr
    assert expected in result.stderr
    assert bool(expected) == ("fragments" in result.stderr)


def test_outages_that_look_like_black_holes_are_named(command: Command) -> None:
    outage = "--set=radio.outage={ first = '5 s', lasts = '4 s' }"
    warned = command("check", "last-mile", outage, "--set=tcp.mtu_probing=true")
    assert warned.returncode == 0, warned.stderr
    assert "outages or fades of 4 s may last for more than three seconds" in warned.stderr
    hole = command("check", "last-mile", outage, "--set=radio.black_hole=1400 B")
    assert "those above 1400 B vanish in a black hole" in hole.stderr
    assert "three seconds" not in hole.stderr
    quic = command("check", "last-mile", "--set=sender=quinn-cubic", "--set=radio.black_hole=1400 B")
    assert "in a black hole: set quic.mtu_discovery=true, or a smaller quic.mtu" in quic.stderr


def test_times_below_a_millisecond_have_significant_digits() -> None:
    assert _column("l_queue_wait_s", [0.000415, 0.0103, None]) == (
        "l queue wait (s)",
        ["0.00042", "0.01030", "-"],
    )
    assert _column("l_queue_wait_s", [0.25, 0.0])[1] == ["0.250", "0.000"]
    assert _shown("l_queue_wait_s", 0.000415) == "0.00042 s"
    assert _shown("l_queue_wait_s", 0.25) == "0.25 s"
