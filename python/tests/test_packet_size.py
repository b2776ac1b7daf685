"""The packet size of which most gets through, on any part of a connection, and its figure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Command, results

from lasthop.core.units import Scale
from lasthop.plots.curves import Line, curve
from lasthop.show.packet_size import figures
from lasthop.study import Study, StudyError, packet_size

SPLIT = "scenarios/split-wlan.toml"
KEY = "scheme.metp.wireless.packet_size"
RATES = "sweep.radio.channel.nguyen-noble.error_rate=[0.003, 0.01]"
SHORT = ("transfer.size=100 KB", 'schemes=["metp"]')


def study(*overrides: str, key: str = KEY) -> Study:
    scenario = packet_size.load(SPLIT, ["168 B", "424 B", "1500 B"], [*SHORT, *overrides], key)
    return Study(scenario, precision=None, runs=(5, 5))


def test_the_wireless_part_is_swept_by_itself() -> None:
    scenario = packet_size.load(SPLIT, ["168 B", "424 B"], SHORT, KEY)
    assert scenario.sweep == {KEY: ["168 B", "424 B"]}
    for point in scenario.points():
        said = point.scenario.to_toml()
        assert 'packet_size = "552 B"' in said
        # As many packets of each size.
        assert 'window = "10 packets"' in said


def test_a_window_of_packets_holds_as_many_of_each_size() -> None:
    """A source without losses has as many packets in flight, whatever their size."""
    settings = ("radio.channel=perfect", "tcp.window=7 packets", "tcp.initial_window=7 segments")
    for size in ("168 B", "552 B", "1500 B"):
        scenario = packet_size.load(SPLIT, [size], [*settings, 'schemes=["basic"]'])
        (point,) = scenario.points()
        series = point.scenario.run("basic", series=True).series()
        payload = int(size.removesuffix(" B")) - 40
        assert series["flight_bytes"].max() == pytest.approx(7 * payload, abs=1)


def test_each_scheme_has_a_figure_with_a_line_for_each_error_rate() -> None:
    with study(RATES) as swept:
        swept.run()
        table = packet_size.table(swept, key=KEY)
        drawn = figures(swept, key=KEY)
    assert list(drawn) == ["packet-size-metp"]
    (figure,) = drawn.values()
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("packet size (B)", "throughput (kbps)")
    assert list(dict.fromkeys(figure.data["line"])) == ["error rate 0.003", "error rate 0.01"]
    marks = {line.get_gid(): line for line in figure.axes[0].lines if line.get_gid()}
    for _, row in table.iterrows():
        label = f"error rate {row['radio.channel.nguyen-noble.error_rate']}"
        mark = marks[f"peak of {label}"]
        assert [f"{x:.0f} B" for x in np.asarray(mark.get_xdata())] == [row["packet_size"]]
        np.testing.assert_allclose(np.asarray(mark.get_ydata()) * 1e3, row["mean"])


def test_without_other_settings_there_is_a_line_for_each_scheme() -> None:
    with study('schemes=["metp", "vs-tcp"]', key="tcp.packet_size") as swept:
        swept.run()
        (name,) = figures(swept)
        assert name == "packet-size"
        assert set(figures(swept)[name].data["line"]) == {"metp", "vs-tcp"}
        with pytest.raises(StudyError, match=f"does not sweep {KEY}"):
            figures(swept, key=KEY)


def test_the_highest_of_a_line_is_marked_and_explained() -> None:
    lines = [Line("a", [1.0, 2.0, 3.0], [1.0, 3.0, 2.0]), Line("none", [1.0], [float("nan")])]
    figure = curve(lines, Scale("size", "B", 1.0), Scale("throughput", "kbps", 1e3), peaks=True)
    marks = [line for line in figure.axes[0].lines if str(line.get_gid()).startswith("peak of ")]
    assert [mark.get_gid() for mark in marks] == ["peak of a"]
    assert np.asarray(marks[0].get_xdata()).tolist() == [2.0]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "none", "highest"]


def test_the_command_writes_the_figure(command: Command, tmp_path: Path) -> None:
    options = [option for override in (*SHORT, RATES) for option in ("--set", override)]
    sizes = ("--key", KEY, "--sizes", "168 B, 424 B", "--runs", "3", "--out", tmp_path / "out")
    done = command("packet-size", SPLIT, *sizes, *options)
    assert (done.returncode, done.stderr) == (0, "")
    names = [f"packet-size-metp.{kind}" for kind in ("png", "svg", "csv")]
    assert done.stdout.strip().endswith(f"out: {', '.join(names)}")
    assert {*results(tmp_path / "out")} == {*names}
    printed = json.loads(command("packet-size", SPLIT, *sizes, *options, "--json").stdout)
    assert list(printed) == ["key", "table"]
    assert printed["key"] == KEY
    assert [list(row["parameters"]) for row in printed["table"]] == [
        ["radio.channel.nguyen-noble.error_rate"]
    ] * 2


def test_an_unknown_setting_is_refused(command: Command) -> None:
    done = command("packet-size", SPLIT, "--key", "scheme.mtep.wireless.packet_size")
    assert done.returncode == 2
    assert 'did you mean "metp"?' in done.stderr
