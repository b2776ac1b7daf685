"""Figures: what they show, and the files that they become."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from conftest import ROOT

import lasthop
from lasthop import Run, Scenario, plots

Make = Callable[[dict[str, Run]], plots.DataFigure]

FIGURES: dict[str, Make] = {
    "packet_trace": lambda runs: plots.packet_trace(runs["basic"], bad_periods=[(10.0, 14.0)]),
    "packet_traces": lambda runs: plots.packet_traces(list(runs.values())),
    "time_sequence": lambda runs: plots.time_sequence(runs["local-recovery"]),
    "cwnd": lambda runs: plots.cwnd(runs["basic"]),
}


@pytest.fixture(scope="module")
def split() -> Run:
    """Return a run of a connection of which the wireless part has segments of varying size."""
    scenario = lasthop.load(ROOT / "scenarios/split-wlan.toml", ["transfer.size=200 KB"])
    return lasthop.run(scenario, "vs-tcp", trace=True, series=True)


@pytest.mark.parametrize("make", FIGURES.values(), ids=FIGURES)
def test_a_figure_becomes_the_same_files_each_time(make: Make, runs: dict[str, Run], tmp_path: Path) -> None:
    first = plots.save(make(runs), tmp_path / "first.of.two")
    second = plots.save(make(runs), tmp_path / "second")
    assert [path.name for path in first] == [f"first.of.two.{kind}" for kind in ("png", "svg", "csv")]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert first[0].read_bytes().startswith(b"\x89PNG")
    assert b"<dc:date>" not in first[1].read_bytes()


@pytest.mark.parametrize("make", FIGURES.values(), ids=FIGURES)
def test_axes_are_labelled_with_units(make: Make, runs: dict[str, Run]) -> None:
    figure = make(runs)
    assert figure.axes[-1].get_xlabel() == "time (s)"
    labels = [figure.get_supylabel(), *(axes.get_ylabel() for axes in figure.axes)]
    assert any(label.startswith(("packet number", "window (KB)")) for label in labels)


@pytest.mark.parametrize("make", FIGURES.values(), ids=FIGURES)
def test_the_caller_s_settings_stay_as_they_are(make: Make, runs: dict[str, Run], tmp_path: Path) -> None:
    with matplotlib.rc_context({"font.size": 17.0, "svg.hashsalt": "mine"}):
        plots.save(make(runs), tmp_path / "figure")
        assert matplotlib.rcParams["font.size"] == 17.0
        assert matplotlib.rcParams["svg.hashsalt"] == "mine"


def test_the_csv_has_what_the_figure_shows(runs: dict[str, Run], tmp_path: Path) -> None:
    run = runs["basic"]
    *_, table = plots.save(plots.packet_trace(run), tmp_path / "trace")
    with table.open() as file:
        rows = list(csv.DictReader(file))
    sent = [row for row in rows if row["event"] == "sent"]
    assert len(sent) == run.metrics["segments_sent"]
    assert sum(int(row["transmission"]) > 1 for row in sent) == run.metrics["retransmitted_segments"]
    assert len(rows) - len(sent) == run.metrics["timeouts"]


def test_what_a_publication_prints_is_drawn_as_rings(runs: dict[str, Run], tmp_path: Path) -> None:
    figure = plots.packet_trace(runs["basic"], printed=[(25.9, 44), (28.3, 134)])
    (rings,) = [line for line in figure.axes[0].lines if line.get_gid() == "printed"]
    assert np.asarray(rings.get_xydata()).tolist() == [[25.9, 44], [28.3, 44]]
    *_, table = plots.save(figure, tmp_path / "trace")
    assert table.read_text().splitlines()[-2:] == ["25.9,printed,44,0", "28.3,printed,134,0"]


def shown(figure: plots.DataFigure, name: str) -> int:
    lines = (line for line in figure.axes[0].lines if line.get_gid() == name)
    return sum(len(np.atleast_1d(line.get_xdata())) for line in lines)


def test_each_transmission_has_a_marker(runs: dict[str, Run]) -> None:
    for run in runs.values():
        figure, metrics = plots.packet_trace(run), run.metrics
        assert shown(figure, "again") == metrics["retransmitted_segments"]
        assert shown(figure, "first") == metrics["segments_sent"] - metrics["retransmitted_segments"]
        assert shown(figure, "timeouts") == metrics["timeouts"]


def test_numbers_wrap_at_the_modulus(runs: dict[str, Run]) -> None:
    for modulo in (90, 100):
        for line in plots.packet_trace(runs["ebsn"], modulo).axes[0].lines:
            if line.get_gid() == "first":
                assert np.max(line.get_ydata()) == modulo - 1


def test_bad_periods_are_shaded(example: Scenario, runs: dict[str, Run]) -> None:
    bad = example.bad_periods(30.0)
    for figure in (plots.packet_trace(runs["ebsn"], bad_periods=bad), plots.cwnd(runs["ebsn"], bad)):
        (spans,) = figure.axes[0].collections
        assert [path.get_extents().intervalx.tolist() for path in spans.get_paths()] == [[10, 14], [24, 28]]


def marks(figure: plots.DataFigure, name: str) -> int:
    """Return how many marks of a name a figure with one panel has."""
    drawn = (line for line in figure.axes[0].lines if line.get_gid() == name)
    return sum(np.size(line.get_xdata()) for line in drawn)


def test_a_part_of_a_split_connection_is_a_figure_of_its_own(split: Run, tmp_path: Path) -> None:
    metrics = split.metrics
    # What opens and closes a connection has no number, and is not drawn.
    near, far = (
        int(((e["event"] == "sent") & (e["packet"] >= 0)).sum())
        for e in (split.events(), split.events(part=1))
    )
    for make in (plots.packet_trace, plots.time_sequence):
        whole, last = make(split), make(split, part=1)
        assert whole.axes[0].get_title(loc="left") == "vs-tcp, fixed to base"
        assert last.axes[0].get_title(loc="left") == "vs-tcp, base to mobile"
        assert (marks(whole, "first"), marks(whole, "again")) == (near, 0)
        # Resegmented data count as retransmitted.
        assert marks(last, "again") == metrics["relay_retransmitted_segments"] > 0
        assert marks(last, "first") + marks(last, "again") == far
    facts = f"{metrics['relay_retransmitted_segments']} packets retransmitted"
    assert facts in plots.cwnd(split, part=1).axes[0].get_title(loc="right")
    plots.save(plots.cwnd(split, connection="transfer", part=1), tmp_path / "cwnd")
    assert (tmp_path / "cwnd.csv").read_text().startswith("time_s,cwnd_bytes,")


def test_runs_with_fewer_parts_show_their_last(split: Run, runs: dict[str, Run]) -> None:
    figure = plots.packet_traces([runs["ebsn"], split], part=1)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["ebsn", "vs-tcp, base to mobile"]
    lines = plots.windows({"one": runs["ebsn"], "split": split}, mss=512, part=1).data
    assert len(lines["time_s"]) == len(runs["ebsn"].series()["time_s"]) + len(split.series(part=1)["time_s"])


def test_the_size_of_segments_over_time(split: Run, tmp_path: Path) -> None:
    figure = plots.segment_size(split, part=1)
    data = figure.data
    assert data["mss_bytes"].min() >= 128
    assert data["mss_bytes"].max() <= 1024
    assert (np.diff(data["mss_bytes"]) != 0).all()
    ends = data["time_s"] + data["held_s"]
    assert np.allclose(ends[:-1], data["time_s"][1:])
    assert figure.axes[0].get_xlim()[1] == pytest.approx(ends[-1])
    assert [path.suffix for path in plots.save(figure, tmp_path / "size")] == [".png", ".svg", ".csv"]
    level = plots.segment_size(split)
    assert level.data["mss_bytes"].tolist() == [512]


def test_a_panel_for_each_run(runs: dict[str, Run]) -> None:
    figure = plots.packet_traces(list(runs.values()))
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(runs)
    assert {*figure.data["scheme"]} == {*runs}


def test_a_run_in_which_nothing_happens_can_be_drawn(tmp_path: Path) -> None:
    scenario = lasthop.build(
        {
            "limit": "10 s",
            "transfer": {"size": "1 KB", "start": "9.999999999 s"},
            "wired": {"rate": "10 Mbps"},
            "radio": {"rate": "2 Mbps", "channel": {"iid": {"ber": 1.0}}},
        }
    )
    run = lasthop.run(scenario, trace=True, series=True)
    for index, figure in enumerate([plots.packet_trace(run), plots.time_sequence(run), plots.cwnd(run)]):
        plots.save(figure, tmp_path / str(index))


def test_any_figure_can_be_saved(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    figure.add_subplot().plot([1, 2], [3, 4])
    assert len(plots.save(figure, tmp_path / "bare")) == 2
    assert len(plots.save(figure, tmp_path / "with", {"x": [1, 2], "y": [3, 4]})) == 3
    assert (tmp_path / "with.csv").read_text() == "x,y\n1,3\n2,4\n"


def test_many_packets_are_drawn_by_their_numbers(runs: dict[str, Run]) -> None:
    assert plots.packet_trace(runs["basic"]).axes[0].get_ylabel() == "packet number mod 90"
    long = lasthop.load(ROOT / "scenarios/ebsn-example.toml", ["transfer.size=1 MB", "radio.rate=10 Mbps"])
    run = long.run("basic", trace=True)
    figure = plots.packet_trace(run)
    axes = figure.axes[0]
    assert axes.get_ylabel() == "packet number"
    events = run.events()
    last = int(events["packet"][events["event"] == "sent"].max())
    assert last > 1000
    (line,) = (line for line in axes.lines if line.get_gid() == "first")
    assert np.asarray(line.get_ydata()).max() == last < axes.get_ylim()[1]
    assert plots.packet_trace(run, modulo=90).axes[0].get_ylabel() == "packet number mod 90"
    few = lasthop.load("ebsn-example", ["transfer.size=2 KB"]).run("basic", trace=True)
    assert plots.packet_trace(few).axes[0].get_ylabel() == "packet number"
    # The axis of several runs ends with the first of them.
    assert plots.packet_traces([run, runs["basic"]]).get_supylabel() == "packet number"
    assert plots.packet_traces(list(runs.values())).get_supylabel() == "packet number mod 90"
