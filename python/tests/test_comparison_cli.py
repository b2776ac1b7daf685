"""`lasthop compare`: its options, what it prints, and its files."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from conftest import ROOT, Command, interrupt, results
from matplotlib.patches import Rectangle

import lasthop
from lasthop import plots
from lasthop.cli.commands.compare import _split, _status_text

QUICK = ("compare", "last-mile", "--set", "limit=2 s", "--runs", "2:4")
PAGE = (ROOT / "docs/guide/compare.md").read_text()
REFERENCE = (ROOT / "docs/reference/comparisons.md").read_text()


def test_the_page_shows_what_the_command_prints(command: Command) -> None:
    section = PAGE.partition("## Quantiles")[0]
    (shown,) = re.findall(r"```text\n\$ lasthop (.*?)```", section, re.DOTALL)
    line, _, table = shown.replace("\\\n", "").partition("\n")
    arguments = [text.strip('"') for text in re.findall(r'"[^"]*"|\S+', line)]
    done = command(*arguments)
    assert done.returncode == 0, done.stderr
    printed = [text.rstrip() for text in done.stdout.strip().splitlines()]
    assert printed == [text.rstrip() for text in table.strip().splitlines()]


def test_a_row_agrees_with_itself() -> None:
    """The verdict is against the best, p against the baseline; a row in which the two differ says so."""

    def text(status: str, *, significant: bool, stopped_early: bool = False, baseline: bool = False) -> str:
        flags = {"significant": significant, "stopped_early": stopped_early, "baseline": baseline}
        return _status_text({"status": status, **flags}, 0.05)

    assert text("worse", significant=True) == "worse than the best"
    told = "; cannot be told apart from the baseline"
    assert text("worse", significant=False) == f"worse than the best{told}"
    assert text("worse", significant=False, stopped_early=True) == f"worse than the best, stopped early{told}"
    assert text("worse", significant=False, baseline=True) == "worse than the best (baseline)"
    assert text("cannot tell", significant=False) == "cannot be told apart from the best"


def test_every_key_is_documented(command: Command) -> None:
    document = json.loads(command(*QUICK, "--scheme", "basic", "--scheme", "smart", "--json").stdout)
    section = REFERENCE.partition("## `lasthop compare --json`")[2]
    documented = {
        key
        for cell in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
        for key in re.findall("`(.*?)`", cell)
    }
    found = set()
    for key, value in document.items():
        inner = {"scenario": "scenario.", "runs": "runs.", "results": "results[]."}.get(key)
        rows = value if isinstance(value, list) else [value]
        found |= {f"{inner}{name}" for row in rows for name in row} if inner else {key}
    assert found | {"results"} == documented
    columns = {
        key
        for cell in re.findall(r"^\| (`.*?) \|", section.partition("## Files")[0], re.MULTILINE)
        for key in re.findall("`(.*?)`", cell)
    }
    assert columns
    assert list(document["refused"][0]) == ["arm", "sender", "scheme", "settings", "reason"]


def test_every_column_is_documented(command: Command, tmp_path: Path) -> None:
    command(*QUICK, "--axis", "radio.queue=9 packets,90 packets", "--out", tmp_path)
    table = pandas.read_csv(tmp_path / "comparison.csv")
    section = REFERENCE.partition("`Race.results` has a row")[2].partition("## Files")[0]
    documented = {
        key
        for cell in re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
        for key in re.findall("`(.*?)`", cell)
    }
    of_quantiles = {"quantile", "value", "value_low", "value_high"}
    assert {*table.columns} == (documented - of_quantiles) | {"radio.queue"}


def test_all_results_are_written_and_the_same_for_any_number_of_threads(
    command: Command, tmp_path: Path
) -> None:
    arms = ("--sender", "linux", "--sender", "linux-bbr", "--axis", "radio.queue=[10, 50]")
    arms = (*arms[:-1], "radio.queue=['10 packets', '50 packets']")
    outputs = []
    for jobs in ("1", "2"):
        done = command(*QUICK, *arms, "--jobs", jobs, "--out", tmp_path / jobs)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("comparison.csv, heat-map.png, heat-map.svg, heat-map.csv\n")
        names = results(tmp_path / jobs)
        assert names == ["comparison.csv", "heat-map.csv", "heat-map.png", "heat-map.svg", "results.json"]
        outputs.append([(tmp_path / jobs / name).read_bytes() for name in names])
    assert outputs[0] == outputs[1]
    printed = command(*QUICK, *arms, "--json").stdout
    assert printed == (tmp_path / "1" / "results.json").read_text()


def test_the_words_all_and_lists_stand_for_arms(command: Command) -> None:
    found = json.loads(
        command(*QUICK, "--sender", "all", "--scheme", "all", "--runs", "1:1", "--json").stdout
    )
    every = found["results"] + found["refused"]
    assert len(every) == 12 * len(lasthop.schemes())
    assert {"linux", "linux-bbr", "freebsd", "linux-veno"} <= {arm["sender"] for arm in every}
    assert _split("none, {n = 255, k = 131, t = 18},'a,b'") == ["none", "{n = 255, k = 131, t = 18}", "'a,b'"]
    axis = ("--axis", "tcp.packet_size={from = '500 B', to = '1500 B', step = '500 B'}")
    found = json.loads(command(*QUICK, *axis, "--sender", "linux", "--scheme", "basic", "--json").stdout)
    assert sorted(arm["settings"]["tcp.packet_size"] for arm in found["results"]) == [
        "1000 B",
        "1500 B",
        "500 B",
    ]
    # The scenario as it stands has one of these sizes.
    assert found["baseline"] == "linux basic, tcp.packet_size=1500 B"


def test_the_baseline_may_be_any_arm(command: Command) -> None:
    def baseline(text: str) -> str:
        done = command(*QUICK, "--scheme", "basic", "--baseline", text, "--json")
        return str(json.loads(done.stdout)["baseline"])

    assert baseline("linux-veno basic") == "linux-veno basic"
    assert baseline("snoop+arq") == "linux snoop + arq"
    assert baseline("freebsd arq, radio.queue=9 packets") == "freebsd arq, radio.queue=9 packets"
    printed = command(*QUICK, "--scheme", "basic", "--rows", "1", "--baseline", "rfc basic").stdout
    assert re.search(r"^ +\d +rfc +basic .* - .* \(baseline\) *$", printed, re.MULTILINE)
    assert "4 more rank behind these; --rows 6 prints them too" in printed


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--scheme", "bsic"], '--scheme: there is no scheme "bsic"; did you mean "basic"?'),
        (["--sender", "linx"], '--sender: found "linx", expected "linux-reno"'),
        (["--axis", "radio.mtu"], "--axis: expected KEY=VALUE,VALUE..., found 'radio.mtu'"),
        (["--axis", "sender=linux"], "--axis: --sender states what is compared of sender"),
        (["--axis", "radio.mtu=1", "--axis", "radio.mtu=2"], "--axis: radio.mtu is stated twice"),
        (
            ["--axis", "radio.mut=576 B"],
            "there is nothing to compare; linux basic, radio.mut=576 B: unknown key",
        ),
        (["--baseline", "linux bsic"], '--baseline: there is no scheme "bsic"; did you mean "basic"?'),
        (["--baseline", "linux smart"], 'the baseline linux smart is refused: "smart" extends the loss'),
        (
            ["--metric", "throughput"],
            '--metric: there is no metric "throughput"; did you mean "throughput_bps"?',
        ),
        (["--metric", "notices"], "notices: it must be stated whether higher or lower is better"),
        (["--better", "more"], "--better: expected higher or lower, found 'more'"),
        (["--precision", "5"], "--precision: expected a share of the mean such as 2%, found '5'"),
        (["--margin", "x"], "--margin: expected a share of the mean such as 2%, found 'x'"),
        (["--runs", "9:8"], "--runs: expected 1 <= MIN <= MAX, found '9:8'"),
        (["--metric", "completion_time_s"], "no run has a completion_time_s: none finished"),
        (["--set", 'sweep.radio.mtu=["576 B"]'], "the scenario sweeps radio.mtu; a comparison has one link"),
    ],
    ids=str,
)
def test_misuse_is_told(command: Command, options: list[str], told: str) -> None:
    done = command("compare", "last-mile", "--set", "limit=1 s", "--runs", "1:1", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {told}")
    assert done.stderr.count("\n") == 1


def test_refused_arms_are_printed_by_reason(command: Command) -> None:
    printed = command(*QUICK, "--scheme", "basic", "--scheme", "smart").stdout
    assert "not compared: 5 arms\n  linux smart; linux-reno smart; linux-vegas smart and 2 more: " in printed


def test_schemes_without_effect_are_printed_with_the_reason(command: Command) -> None:
    arms = ("--sender", "linux", "--sender", "linux-bbr", "--scheme", "basic", "--scheme", "eln")
    printed = command(*QUICK, *arms).stdout
    reason = "BBR does not reduce its window for a loss"
    assert f"\nlinux-bbr eln: eln had no effect on this sender, because {reason}\n" in printed
    assert printed.count("had no effect") == 1
    document = json.loads(command(*QUICK, *arms, "--json").stdout)
    idle = {each["arm"]: each["without_effect"] for each in document["results"] if each["without_effect"]}
    assert idle == {"linux-bbr eln": {"eln": reason}}


def test_what_may_mislead_is_warned_of(command: Command) -> None:
    alone = command(*QUICK, "--sender", "linux", "--scheme", "basic")
    assert alone.stderr == "warning: there is only one arm; --sender, --scheme and --axis add others\n"
    same = command(*QUICK, "--set", "radio.channel=perfect", "--sender", "linux")
    assert same.stderr.startswith("warning: all runs of an arm gave the same: nothing is random")
    slow = ("--set", "transfer.size=3 MB", "--metric", "completion_time_s", "--sender", "linux")
    late = command("compare", "last-mile", "--set", "limit=4 s", "--runs", "4", *slow)
    told = "arms have runs without completion_time_s; such a run counts as the worst value that any run has"
    assert late.stderr == f"warning: 1 of 2 {told}\n"


def test_a_comparison_that_may_take_long_says_so_and_one_of_days_is_refused(command: Command) -> None:
    fast = ("compare", "last-mile", "--sender", "linux", "--sender", "linux-reno", "--scheme", "basic")
    link = ("--set", "radio.rate=1Gbps", "--set", "wired.rate=1Gbps", "--jobs", "1")
    # The first run of each is lost within a second; what the link might carry is not known before.
    long = command(*fast, *link, "--set", "radio.channel.frame-loss.loss=0.9", "--runs", "8:160")
    assert long.returncode == 0, long.stderr
    # A window of 6 MiB each 60 ms.
    told = "2 arms with 8 to 160 runs each may simulate up to 1,392 million packets, which takes up to 5 min"
    assert long.stderr.startswith(f"warning: {told}")
    assert '--set "limit=2 s"' in long.stderr
    days = command(*fast, *link, "--set", "limit=100000 s", "--runs", "50:50")
    assert (days.returncode, days.stdout) == (2, "")
    told = "2 arms with 50 runs each may simulate 724,155 million packets, which takes 50 h"
    assert told in days.stderr
    assert command(*QUICK, "--sender", "linux-hybla").stderr == ""


def test_packets_of_a_run_are_bounded() -> None:
    def bound(*overrides: str) -> float:
        return lasthop.load("last-mile", overrides).packet_bound()

    assert bound("limit=12 s") == 10_000  # 10 Mb/s, 1500 B
    assert bound("limit=12 s", "transfer.size=144800 B") == 100
    # A window of ten segments, once at the start and then each round trip of 100 ms.
    assert bound("limit=10 s", "wired.delay=40 ms", "radio.delay=10 ms", "tcp.window=14480 B") == 1010
    for name in lasthop.scenarios():
        point = lasthop.load(name).points()[0]
        scheme = point.scenario.schemes[0]
        connections = point.scenario.run(scheme).connections.values()
        packets = sum(each["delivered_bytes"] for each in connections) / 1448
        assert packets <= point.scenario.packet_bound(), name


def test_an_interrupted_comparison_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    began = time.monotonic()
    line: list[str | Path] = ["compare", "last-mile", "--sender", "all", "--runs", "500", "--out", out]
    code, printed, told = interrupt(line, lambda: time.monotonic() - began > 3.0)
    assert (code, printed) == (130, "")
    assert told.endswith("interrupted\n")
    assert not out.exists()


# -- The heat map ----------------------------------------------------------------------------------------


def row(rank: int, sender: str | None, scheme: str, ratio: float, status: str = "worse", **more: Any) -> Any:
    own = {
        "rank": rank,
        "arm": f"{sender} {scheme}",
        "sender": sender,
        "scheme": scheme,
        **more.pop("settings", {}),
    }
    rest = {"metric": "throughput_bps", "mean": 1e6 * ratio, "ratio": ratio, "status": status}
    return {**own, "baseline": False, "stopped_early": False, **rest, **more}


def test_the_heat_map_shows_every_arm(tmp_path: Path) -> None:
    table = pandas.DataFrame(
        [
            row(1, "linux-bbr", "basic", 4.0, "as good"),
            row(1, "linux-bbr", "arq", 3.9, "cannot tell"),
            row(3, "linux", "arq", 2.0, stopped_early=True),
            row(4, "linux", "basic", 1.0, baseline=True),
            row(5, "rfc", "basic", 0.5),
        ]
    )
    figure = plots.heat_map(table, title="Mine")
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["linux-bbr", "linux", "rfc"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["basic", "arq"]
    said = {text.get_position(): text.get_text() for text in axes.texts}
    assert said == {
        (0, 0): "4.00",
        (1, 0): "3.90",
        (1, 1): "2.00",
        (0, 1): "1.00",
        (0, 2): "0.500",
        (1, 2): "-",
    }
    cells: dict[Any, Any] = {
        tuple(np.round(np.add(patch.get_xy(), 0.5))): patch.get_facecolor()
        for patch in axes.patches
        if isinstance(patch, Rectangle) and patch.get_fill() and patch.get_width() == 1
    }
    # Better than the baseline is blue, worse is red.
    assert all(
        (cells[place][2] > cells[place][0]) is (ratio > 1)
        for place, ratio in {(0, 0): 4, (0, 2): 0.5}.items()
    )
    turned: Any = plots.heat_map(table, better="lower").axes[0].patches[0].get_facecolor()
    assert turned[0] > turned[2]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "as good as the best",
        "cannot be told apart from the best",
        "baseline",
    ]
    assert [path.suffix for path in plots.save(figure, tmp_path / "map")] == [".png", ".svg", ".csv"]


def test_further_settings_are_panels_or_the_best_over_them() -> None:
    def table(values: int) -> pandas.DataFrame:
        return pandas.DataFrame(
            [
                row(place + 1, None, "arq", 4.0 - place / 10, settings={"radio.mtu": f"{place + 1} B"})
                for place in range(values)
            ]
        )

    few = plots.heat_map(table(3))
    titles = [axes.get_title(loc="left") for axes in few.axes[:3]]
    assert titles == ["radio.mtu = 1 B", "radio.mtu = 2 B", "radio.mtu = 3 B"]
    assert [text.get_text() for text in few.axes[0].get_yticklabels()] == ["as stated"]
    # In the order of the values and not of the ranking, without a panel for the baseline alone.
    turned = table(3).iloc[::-1]
    stated = row(4, None, "basic", 1.0, settings={"radio.mtu": float("nan")}, baseline=True)
    turned = pandas.concat([turned, pandas.DataFrame([stated])], ignore_index=True)
    figure = plots.heat_map(turned)
    assert [axes.get_title(loc="left") for axes in figure.axes[:3]] == titles
    assert figure.axes[-1].get_ylabel() == "ratio to None basic (1.00)"
    many = plots.heat_map(table(9))
    assert many.axes[0].get_title(loc="left") == "the best over radio.mtu"
    assert [text.get_text() for text in many.axes[0].texts] == ["4.00"]
