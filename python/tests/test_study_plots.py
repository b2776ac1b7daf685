"""Curves and distributions: what they show, in which units, and that grey readers can tell lines apart."""

from __future__ import annotations

import ast
import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from conftest import ROOT

import lasthop
from lasthop import plots
from lasthop._lasthop import quantity
from lasthop.core.quantity import axis
from lasthop.core.units import Scale, metric_scale, setting_scale
from lasthop.plots._lines import line_styles
from lasthop.plots.curves import Line, cdf, curve, sweep_curve
from lasthop.plots.heat import sweep_map

SIZE, RATE = Scale("packet size", "B", 1.0), Scale("throughput", "kbps", 1e3)


def summary() -> pandas.DataFrame:
    rows = [
        {
            "tcp.packet_size": f"{size} B",
            "scheme": scheme,
            "metric": "throughput_bps",
            "mean": rate * size,
            "low": rate * size - 100,
            "high": rate * size + 200,
        }
        for size in (1024, 128, 512)
        for scheme, rate in (("basic", 5.0), ("ebsn", 8.0))
    ]
    return pandas.DataFrame(rows)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("19.2 kbps", (19200.0, "bps")),
        ("2Mbps", (2e6, "bps")),
        ("10 kB/s", (80000.0, "bps")),
        ("30 ms", (0.03, "s")),
        ("2 min", (120.0, "s")),
        ("576 B", (576.0, "B")),
        ("4KiB", (4096.0, "B")),
        ("1e-6", (1e-6, "")),
        ("0.01", (0.01, "")),
        ("2%", (0.02, "")),
        ("13", (13.0, "")),
        ("4 packets", (4.0, "packet")),
        ("unlimited", None),
        ("true", None),
        ("", None),
    ],
)
def test_quantities(text: str, expected: tuple[float, str] | None) -> None:
    found = quantity(text)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert found[0] == pytest.approx(expected[0])
        assert found[1] == expected[1]


def test_kinds_of_axes() -> None:
    assert axis(["1 segment", "2 segments"]) == ([1.0, 2.0], "segment")
    assert axis(["1 s", "100 B"]) is None
    assert axis(["1 s", "1000 ms"]) is None
    assert axis(["tahoe", "reno"]) is None


def test_axes_have_readable_units() -> None:
    assert metric_scale("retransmitted_bytes", 30_000).label == "retransmitted (KB)"
    assert metric_scale("completion_time_s", 0.2).label == "completion time (s)"
    assert metric_scale("throughput_total_bps", 2e6).label == "throughput total (Mbps)"
    assert setting_scale("transfer.size", "B", 1e6).label == "transfer size (MB)"
    assert setting_scale("radio.channel.iid.ber", "", 1e-4).label == "bit error rate"
    assert setting_scale("tcp.initial_window", "segment", 4).label == "initial window (segment)"


def test_a_curve_shows_the_means_in_the_axes_units() -> None:
    figure = sweep_curve(summary(), "tcp.packet_size", references={"most": 9000.0}, title="A title")
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("packet size (B)", "throughput (kbps)")
    assert axes.get_title(loc="left") == "A title"
    lines = {line.get_gid(): line for line in axes.lines if line.get_gid()}
    assert list(lines) == ["basic", "ebsn", "most"]
    np.testing.assert_allclose(np.asarray(lines["ebsn"].get_xdata()), [128, 512, 1024])
    np.testing.assert_allclose(np.asarray(lines["ebsn"].get_ydata()), [1.024, 4.096, 8.192])
    np.testing.assert_allclose(np.asarray(lines["most"].get_ydata()), 9.0)
    assert axes.get_ylim()[0] == 0
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["basic", "ebsn", "95 % interval"]


@pytest.mark.parametrize("bands", [False, True])
def test_a_curves_intervals_reach_from_low_to_high(bands: bool) -> None:
    axes = sweep_curve(summary(), "tcp.packet_size", bands=bands).axes[0]
    bounds: list[Any] = [path.vertices for path in axes.collections[0].get_paths()]
    heights = np.concatenate([np.asarray(each)[:, 1] for each in bounds])
    assert {0.54, 0.84} <= set(heights.round(6).tolist())


def test_lines_differ_without_colour() -> None:
    lines = [Line(str(i), [1.0, 2.0], [float(i), float(i)]) for i in range(7)]
    axes = curve(lines, SIZE, RATE).axes[0]
    looks = {(line.get_marker(), str(line.get_linestyle()), line.is_dashed()) for line in axes.lines}
    assert len({line.get_marker() for line in axes.lines}) == 7
    assert len(looks) == 7


def test_wide_ranges_are_logarithmic() -> None:
    wide = Line("a", [1e-6, 1e-5, 1e-4], [1.0, 2.0, 3.0])
    assert curve([wide], Scale("ber", "", 1.0), RATE).axes[0].get_xscale() == "log"


def test_invalid_curves_are_refused() -> None:
    frame = summary()
    with pytest.raises(ValueError, match="several rows"):
        sweep_curve(pandas.concat([frame, frame]), "tcp.packet_size")
    with pytest.raises(ValueError, match="cannot be an axis"):
        sweep_curve(frame, "scheme")


def grid() -> pandas.DataFrame:
    rows = [
        {
            "tcp.packet_size": f"{size} B",
            "wired.delay": delay,
            "scheme": scheme,
            "metric": "throughput_bps",
            "mean": math.nan if (size, scheme) == (512, "ebsn") else 100.0 * size + base,
            "low": 0.0,
            "high": 1.0,
        }
        for size in (1024, 128, 512)
        for delay, base in (("1 s", 5.0), ("50 ms", 8.0))
        for scheme in ("basic", "ebsn")
    ]
    return pandas.DataFrame(rows)


def test_a_map_orders_its_axes_by_size_and_shows_every_mean(tmp_path: Path) -> None:
    figure = sweep_map(grid(), "tcp.packet_size", "wired.delay", title="$ A title")
    plots.save(figure, tmp_path / "map")
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in panels] == ["basic", "ebsn"]
    for axes in panels:
        assert [tick.get_text() for tick in axes.get_xticklabels()] == ["128", "512", "1,024"]
    assert [tick.get_text() for tick in panels[0].get_yticklabels()] == ["0.05", "1"]
    assert (figure.get_supxlabel(), figure.get_supylabel()) == ("packet size (B)", "wired delay (s)")
    assert figure.alternative() == "throughput (kbps) against packet size (B): basic, ebsn"
    texts = [text.get_text() for text in panels[0].texts]
    # From the lower left to the upper right, in kbps.
    assert texts == ["12.8", "51.2", "102"] * 2
    assert [text.get_text() for text in panels[1].texts] == ["12.8", "-", "102"] * 2
    assert figure.data["mean"] is not None
    assert {"tcp.packet_size", "wired.delay", "mean", "low", "high"} < {*figure.data}


def test_invalid_maps_are_refused() -> None:
    frame = grid()
    with pytest.raises(ValueError, match="several rows"):
        sweep_map(pandas.concat([frame, frame]), "tcp.packet_size", "wired.delay")
    with pytest.raises(ValueError, match="scheme cannot be an axis"):
        sweep_map(frame, "tcp.packet_size", "scheme")
    unknown = frame.assign(mean=math.nan)
    assert sweep_map(unknown, "tcp.packet_size", "wired.delay").axes[0].texts[0].get_text() == "-"


def test_a_distribution_counts_runs_without_the_metric() -> None:
    times = [1.0, 2.0, float("nan"), 4.0]
    runs = pandas.DataFrame({"scheme": ["basic"] * 4 + ["ebsn"] * 4, "completion_time_s": times + [1.0] * 4})
    figure = cdf(runs, "completion_time_s")
    assert figure.data["y"] == [0.25, 0.5, 0.75, 0.25, 0.5, 0.75, 1.0]
    basic = figure.axes[0].lines[0]
    assert float(np.asarray(basic.get_ydata())[-1]) == 0.75


def test_figures_are_files_with_their_numbers(tmp_path: Path) -> None:
    first = plots.save(sweep_curve(summary(), "tcp.packet_size"), tmp_path / "curve")
    assert [path.name for path in first] == ["curve.png", "curve.svg", "curve.csv"]
    assert first[2].read_text().splitlines()[:2] == ["line,x,y,low,high", "basic,128.0,640.0,540.0,840.0"]
    again = plots.save(sweep_curve(summary(), "tcp.packet_size"), tmp_path / "again")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


def drawn(figure: plots.DataFigure, name: str) -> tuple[object, ...]:
    """Return the colour, mark and dash of a line."""
    (line,) = (line for line in figure.axes[0].lines if line.get_gid() == name)
    return line.get_color(), line.get_marker(), line.get_linestyle()


def test_a_scheme_has_the_same_look_in_every_figure() -> None:
    frame = summary()
    turned = pandas.concat([frame[frame["scheme"] == scheme] for scheme in ("ebsn", "basic")])
    third = frame[frame["scheme"] == "basic"].assign(scheme="local-recovery")
    more = pandas.concat([third, turned])
    figures = [sweep_curve(each, "tcp.packet_size") for each in (frame, turned, more)]
    for scheme in ("basic", "ebsn"):
        assert len({drawn(figure, scheme) for figure in figures}) == 1
    assert len({drawn(figures[2], name) for name in ("basic", "ebsn", "local-recovery")}) == 3
    runs = pandas.DataFrame({"scheme": ["ebsn", "basic"] * 4, "throughput_bps": range(8)})
    assert drawn(cdf(runs, "throughput_bps"), "ebsn")[:2] == drawn(figures[0], "ebsn")[:2]


def test_no_scheme_is_named_outside_its_file() -> None:
    # A key of the link has the same name as the scheme that brings one.
    names = {scheme.name for scheme in lasthop.schemes()} - {"arq"}
    found = set()
    # The utilities of tests name those that they try.
    rooms = [ROOT / "crates/proto/src/scheme", ROOT / "crates/testing"]
    for path in ROOT.glob("crates/*/src/**/*.rs"):
        if path.name != "tests.rs" and not any(path.is_relative_to(room) for room in rooms):
            code = path.read_text().split("#[cfg(test)]")[0]
            lines = [line for line in code.splitlines() if not line.lstrip().startswith("//")]
            found |= {(path.name, name) for name in re.findall(r'"([a-z-]+)"', "\n".join(lines))}
    # Papers choose the schemes that they compare.
    for path in ROOT.glob("python/lasthop/**/*.py"):
        if not path.is_relative_to(ROOT / "python/lasthop/papers"):
            nodes = list(ast.walk(ast.parse(path.read_text())))
            found |= {(path.name, str(node.value)) for node in nodes if isinstance(node, ast.Constant)}
    assert {(file, name) for file, name in found if name in names} == {
        # What the gateway installs by means of its own, or has keys for.
        ("schemes.rs", "basic"),
        ("schemes.rs", "ack-thinning"),
        ("schemes.rs", "delayed-dupacks"),
        ("schemes.rs", "eln"),
        ("schemes.rs", "snoop"),
        ("schemes.rs", "wtcp-timestamps"),
        ("schemes.rs", "i-tcp"),
        ("schemes.rs", "packet-fec"),
        # A queue discipline of the kernel.
        ("shaper.rs", "fq-codel"),
        ("matching.rs", "packet-fec"),
        ("prediction.py", "i-tcp"),
        # A TCP profile and a queue discipline have the names of schemes.
        ("settings.rs", "ebsn"),
        ("remedies.py", "fq-codel"),
        ("wifi.py", "fq-codel"),
    }


def test_lines_of_schemes_and_others_can_be_told_apart() -> None:
    known = [scheme.name for scheme in lasthop.schemes()]
    # Schemes that somebody adds get what is free.
    for schemes in (known, ["ebsn-once", *known[:5], "another"], ["basic", "", "ebsn", ""]):
        distinct = {(look["color"], look["marker"]) for look in line_styles(schemes)}
        assert len(distinct) == min(len(schemes), 20), schemes
    twice = line_styles(["basic", "ebsn", "basic", "ebsn"])
    assert len({(look["color"], look["marker"]) for look in twice}) == 4
    assert line_styles(["basic", "ebsn"]) == twice[:2]
    # A scheme keeps its colour beside any others, and lends it to what is built on it.
    for each in known[:20]:
        (alone,) = line_styles([each])
        assert [look["color"] for look in line_styles([*known[:20], each])][known.index(each)] == alone[
            "color"
        ]
    first, combined, plain = line_styles(["ebsn + basic", "basic", "ebsn"])
    assert [plain, combined] == line_styles(["ebsn", "basic"])
    assert first["color"] != plain["color"]
    assert first["marker"] != plain["marker"]
    assert (
        line_styles(["b"], ["a", "b"])
        == line_styles(["a", "b"])[1:]
        == line_styles(["b", "c"], ["a", "b"])[:1]
    )
    # Where colours are not needed to tell schemes, they tell lines.
    assert line_styles(["ebsn"] * 3) == line_styles([""] * 3)


@pytest.mark.parametrize("values", [(9.0, 9.02, 9.05), (2.0,), (1.0, 1.01)], ids=str)
def test_labels_of_references_lie_on_no_curve(values: tuple[float, ...]) -> None:
    line = Line("basic", [1, 2, 3], [1e3, 9e3, 2e3])
    references = {f"ceiling {value}": 1e3 * value for value in values}
    figure = curve([line], SIZE, RATE, references=references)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == len(values)
    for box in boxes:
        assert box.x0 >= axes.bbox.x1
        assert box.x1 <= figure.bbox.x1
    for lower, upper in itertools.pairwise(sorted(boxes, key=lambda box: box.y0)):
        assert lower.y1 <= upper.y0 + 2.0


def test_dollar_signs_in_names_are_escaped(tmp_path: Path) -> None:
    frame = summary().rename(columns={"scheme": "connection.$a$.size"})
    title = r"costs $\nosuch{$ and $"
    figure = sweep_curve(frame, "tcp.packet_size", by="connection.$a$.size", title=title)
    plots.save(figure, tmp_path / "figure")
    assert figure.axes[0].get_title(loc="left").replace(r"\$", "$") == title
