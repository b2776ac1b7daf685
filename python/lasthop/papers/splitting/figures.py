"""The figures of the paper, and those that go beyond it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle

from lasthop.core.statistics import Estimate, Sample
from lasthop.core.units import Scale
from lasthop.papers.evidence import Evidence
from lasthop.papers.paper import Plot
from lasthop.papers.splitting.digitised import printed
from lasthop.papers.splitting.experiments import (
    GRIDS,
    MARQUEE,
    OTHERS,
    OURS,
    QUEUED,
    REMEDIES,
    RUNNING,
    SENDER,
)
from lasthop.papers.splitting.findings import (
    cells,
    downloaded,
    median,
    of_queue,
    of_segment,
    predicted,
    settings_of,
    throughput,
)
from lasthop.papers.splitting.heuristic import Grid
from lasthop.papers.splitting.network import (
    CONTROLS,
    DELAYS,
    FURTHER,
    LOSSES,
    QUEUES,
    RATES,
    SENDERS,
    SPLIT,
    TIME,
    Segment,
    bottleneck,
)
from lasthop.plots import DataFigure, _style
from lasthop.plots._figure import panels_of
from lasthop.plots.curves import Line, curve

_SHADES = LinearSegmentedColormap.from_list("splitting", ["#f7f5f0", "#7fb2dc"])
_CELL, _ROW = 0.62, 0.42
_MOST = 3.0
"""The gain at which the colour of a cell saturates."""

PRINTED = {
    "triple": ("at least\n3 times\nas fast", {"cubic": 2231, "bbr3": 234}),
    "useful": ("and over half\nof the\nbottleneck", {"cubic": 942, "bbr3": 188}),
    "asymmetric": ("one loses,\nnext to\nan end", {"cubic": 942, "bbr3": 38}),
    "edge": ("both lose,\nproxy near\nan end", {"cubic": 0, "bbr3": 72}),
    "middle": ("both lose,\nproxy in\nthe middle", {"cubic": 0, "bbr3": 78}),
}
"""What the artifact counts, with its counts."""


@dataclass(frozen=True, slots=True)
class _Panel:
    """A table of numbers drawn as a heat map.

    Attributes
    ----------
    title : str
        The title.
    rows, columns : sequence of str
        The labels.
    ours : sequence of sequence of (Estimate or None)
        Our values; None for a cell that is printed alone.
    paper : sequence of sequence of (float or None)
        The printed values.
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    ours: Sequence[Sequence[Estimate | None]]
    paper: Sequence[Sequence[float | None]]


def _heat(
    panels: Sequence[_Panel],
    x: str,
    y: str,
    unit: str,
    write: Callable[[float], str],
    most: float,
    across: int,
) -> DataFigure:
    """Draw tables: our value in each cell, and under it the printed one."""
    down = -(-len(panels) // across)
    labels = 0.07 * max(len(row) for panel in panels for row in panel.rows)
    columns, rows = (max(len(getattr(panel, name)) for panel in panels) for name in ("columns", "rows"))
    width = across * (_CELL * columns + labels + 0.35) + 0.3
    height = down * (_ROW * rows + 0.8) + 0.4
    with panels_of(_numbers(panels), max(6.4, width), height, len(panels), None, across=across) as (
        figure,
        places,
    ):
        for axes, panel in zip(places, panels, strict=True):
            _draw(axes, panel, write, most)
        figure.supxlabel(x, fontsize=9.0)
        figure.supylabel(y, fontsize=9.0)
        figure.suptitle(
            f"{unit}: ours, and printed in grey", x=0.01, ha="left", fontsize=8.5, color=_style.QUIET
        )
        assert isinstance(figure, DataFigure)
        return figure


def _draw(axes: Axes, panel: _Panel, write: Callable[[float], str], most: float) -> None:
    axes.set_title(panel.title)
    axes.set_xlim(-0.5, len(panel.columns) - 0.5)
    axes.set_ylim(len(panel.rows) - 0.5, -0.5)
    axes.set_xticks(range(len(panel.columns)), panel.columns)
    axes.set_yticks(range(len(panel.rows)), panel.rows)
    axes.tick_params(length=0, labelsize=7.5)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for row, (ours, paper) in enumerate(zip(panel.ours, panel.paper, strict=True)):
        for column, (found, value) in enumerate(zip(ours, paper, strict=True)):
            shown = found.mean if found is not None else value
            if shown is None or not np.isfinite(shown):
                axes.text(column, row, "-", ha="center", va="center", fontsize=7.5, color=_style.QUIET)
                continue
            colour = _SHADES(min(1.0, max(0.0, shown / most))) if found is not None else "white"
            axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, color=colour, linewidth=0))
            if found is not None:
                up = 0.17 if value is not None else 0.0
                axes.text(column, row - up, write(found.mean), ha="center", va="center", fontsize=8.0)
            if value is not None:
                lower = 0.24 if found is not None else 0.0
                axes.text(
                    column,
                    row + lower,
                    write(value),
                    ha="center",
                    va="center",
                    fontsize=6.5,
                    color=_style.QUIET,
                )
    for edge in range(1, len(panel.columns)):
        axes.axvline(edge - 0.5, color="white", linewidth=1.2)
    for edge in range(1, len(panel.rows)):
        axes.axhline(edge - 0.5, color="white", linewidth=1.2)


def _numbers(panels: Sequence[_Panel]) -> dict[str, list[str] | list[float]]:
    """Return the numbers of the cells: a line for each row, and one for its printed values."""
    nan = float("nan")
    rows: list[tuple[str, float, float, float, float, str]] = []
    for panel in panels:
        for row, ours, paper in zip(panel.rows, panel.ours, panel.paper, strict=True):
            label = f"{panel.title}, {row}"
            places = list(enumerate(panel.columns))
            rows += [
                (label, float(x), found.mean, found.low, found.high, column)
                for (x, column), found in zip(places, ours, strict=True)
                if found is not None
            ]
            rows += [
                (f"{label}, paper", float(x), value, nan, nan, column)
                for (x, column), value in zip(places, paper, strict=True)
                if value is not None
            ]
    names = ("line", "x", "y", "low", "high", "column")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _share(value: float) -> str:
    return f"{value:.2f}"


def _times(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def _median(sample: Sample, per: float = 1.0) -> Estimate | None:
    found = median(sample, per).at()
    return found if found.n else None


def _figure_4(evidence: Evidence) -> DataFigure:
    panels, rate = [], RATES[0]
    for control, title in CONTROLS.items():
        ours, paper = [], []
        for delay in DELAYS:
            segments = [Segment(delay, loss, rate) for loss in LOSSES]
            paper.append([printed("4")[control, "one", "red", (each,)] / rate / 1e6 for each in segments])
            ours.append(
                [_median(of_segment(evidence, each, control), rate * 1e6) for each in segments]
                if control in OURS
                else [None] * len(LOSSES)
            )
        rows, columns = [f"{delay} ms" for delay in DELAYS], [f"{loss} %" for loss in LOSSES]
        panels.append(_Panel(title if control in OURS else f"{title}: not ours", rows, columns, ours, paper))
    return _heat(panels, "loss", "delay", "share of 10 Mb/s used", _share, 1.0, 2)


def _gain(evidence: Evidence) -> DataFigure:
    panels, rate = [], RATES[0]
    titles = {control: CONTROLS[control] for control in OURS}
    titles |= {control: title for control, (_, title) in FURTHER.items()}
    for control, title in titles.items():
        found = cells(evidence, GRIDS[rate] if control in OURS else OTHERS, control)
        ours = [[_median(_split_of(found[delay], found[0], loss)) for loss in _LOSSY] for delay in _FAR]
        name = _PRINTED_AS.get(control, control)
        known = [
            [printed("4").get((name, "one", "red", (Segment(delay, loss, rate),))) for loss in LOSSES]
            for delay in DELAYS
        ]
        cell = np.asarray([[np.nan if each is None else each for each in row] for row in known])
        paper = [
            [
                None if np.isnan(cell).any() else float(_split_of(cell[delay], cell[0], loss))
                for loss in _LOSSY
            ]
            for delay in _FAR
        ]
        rows, columns = [f"{DELAYS[delay]} ms" for delay in _FAR], [f"{LOSSES[loss]} %" for loss in _LOSSY]
        panels.append(_Panel(title, rows, columns, ours, paper))
    return _heat(
        panels,
        "loss next to one end",
        "delay of the rest",
        "times as fast with a split, by the heuristic",
        _times,
        _MOST,
        3,
    )


_FAR, _LOSSY = range(1, len(DELAYS)), range(1, len(LOSSES))
"""The places of all delays but the least, and of all losses but none."""

_PRINTED_AS = {"cubic-5.15": "cubic"}
"""The controls of the paper that further ones have."""


def _split_of(far: Grid, near: Grid, loss: int) -> Grid:
    """Return the gain by a split, from the throughputs by loss of a long segment and of one that loses."""
    gain: Grid = np.minimum(far[0], near[loss]) / far[loss]
    return gain


def _kernels(evidence: Evidence) -> DataFigure:
    today, old = (
        cells(evidence, name, control)
        for name, control in ((GRIDS[RATES[0]], "cubic"), (OTHERS, "cubic-5.15"))
    )
    rows, columns = [f"{delay} ms" for delay in DELAYS], [f"{loss} %" for loss in LOSSES]
    ours = [
        [_median(today[delay, loss, : old.shape[-1]] / old[delay, loss]) for loss in range(len(LOSSES))]
        for delay in range(len(DELAYS))
    ]
    panel = _Panel("CUBIC of Linux 6.18", rows, columns, ours, [[None] * len(columns) for _ in rows])
    figure = _heat([panel], "loss", "delay", "", _share, _MOST, 1)
    figure.suptitle(
        "throughput, beside the rules of 5.15", x=0.01, ha="left", fontsize=8.5, color=_style.QUIET
    )
    return figure


def _categories(lines: list[Line], names: Sequence[str], y: Scale) -> DataFigure:
    figure = curve(lines, Scale("", "", 1.0), y, palette=[line.scheme for line in lines])
    (axes,) = figure.axes
    for line in axes.lines:
        line.set_linestyle("none")
    axes.set_xlabel("")
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xticks(range(len(names)), list(names), fontsize="small")
    return figure


def _line(label: str, x: Sequence[float], found: Sequence[Estimate], scheme: str) -> Line:
    y, low, high = ([getattr(each, name) for each in found] for name in ("mean", "low", "high"))
    return Line(label, x, y, low, high, scheme)


def _figure_1(evidence: Evidence) -> DataFigure:
    panels = []
    for name, path in MARQUEE.items():
        rate = bottleneck(path) * 1e6
        ways = {"split": SPLIT, "end-to-end": "basic"}
        ours = [
            [
                _median(throughput(evidence, name, 0, control, scheme), rate) if control in OURS else None
                for control in CONTROLS
            ]
            for scheme in ways.values()
        ]
        paper = [[printed("1")[control, way, "red", path] / rate for control in CONTROLS] for way in ways]
        title = " | ".join(map(str, path))
        panels.append(_Panel(title, list(ways), list(CONTROLS.values()), ours, paper))
    return _heat(panels, "control", "", "share of the bottleneck used", _share, 1.0, 1)


def _figure_7(evidence: Evidence) -> DataFigure:
    lines = []
    for part, label in (("7a", "without losses"), ("7b", "with losses")):
        name = f"running-{part}"
        rows = sorted(
            (printed(part)["bbr3", "split", "red", path], place, path)
            for place, path in enumerate(RUNNING[name])
        )
        x = [value for value, *_ in rows]
        found = [_median(throughput(evidence, name, place, "bbr3", SPLIT)) for _, place, _ in rows]
        lines.append(_line(f"{label}, running", x, [each for each in found if each], part))
        heuristic = [_median(predicted(evidence, path, "bbr3")) for *_, path in rows]
        lines.append(
            Line(
                f"{label}, heuristic",
                x,
                [each.mean for each in heuristic if each],
                scheme=part,
                printed=True,
            )
        )
    mbps = Scale("throughput of the paper's split", "Mb/s", 1e6)
    figure = curve(lines, mbps, Scale("throughput of ours", "Mb/s", 1e6), palette=("7a", "7b"))
    (axes,) = figure.axes
    for line in axes.lines:
        line.set_linestyle("none")
    axes.axline((6.0, 6.0), slope=1.0, color=_style.QUIET, linewidth=0.8)
    return figure


def _table_3(evidence: Evidence) -> DataFigure:
    lines = []
    for control, shift in (("cubic", -0.12), ("bbr3", 0.12)):
        found = settings_of(evidence, control)
        x = [place + shift for place in range(len(PRINTED))]
        ours = [found[kind].at() for kind in PRINTED]
        lines.append(_line(f"{CONTROLS[control]}, ours", x, ours, control))
        paper = [float(values[control]) for _, values in PRINTED.values()]
        lines.append(Line(f"{CONTROLS[control]}, paper", x, paper, scheme=control, printed=True))
    names = [label for label, _ in PRINTED.values()]
    return _categories(lines, names, Scale("settings of 7,875", "", 1.0))


def _queues(control: str, evidence: Evidence) -> DataFigure:
    panels = []
    for name, path in QUEUED.items():
        ours, paper, rows = [], [], {"split": SPLIT, "end-to-end": "basic"}
        for way, scheme in rows.items():
            found = [_median(of_queue(evidence, name, queue, control, scheme)) for queue in QUEUES]
            ours.append(found)
            paper.append([printed("queues").get((control, way, queue, path)) for queue in QUEUES])
        panels.append(_Panel(" | ".join(map(str, path)), list(rows), list(QUEUES.values()), ours, paper))
    most = max(bottleneck(path) for path in QUEUED.values()) * 1e6
    return _heat(panels, "queue", "", "throughput in Mb/s", lambda value: f"{value / 1e6:.1f}", most, 1)


def _beyond(evidence: Evidence) -> DataFigure:
    panels = []
    titles = {"losses": "4 % of packets lost, 1 ms", "fades": "fades of 0.2 s every 2 s, 1 ms"}
    for channel in REMEDIES:
        name = f"beyond-{channel}"
        sweep = evidence.sweep(name)
        times = [
            [sweep.sample(TIME, scheme, {SENDER: SENDERS[control]}) for scheme in sweep.schemes]
            for control in OURS
        ]
        ours = [[_median(8.0 * downloaded(evidence, name) / time) for time in row] for row in times]
        paper = [[None] * len(row) for row in ours]
        rows = [CONTROLS[control] for control in OURS]
        panels.append(_Panel(titles[channel], rows, sweep.schemes, ours, paper))
    figure = _heat(panels, "scheme", "", "throughput in Mb/s", lambda value: f"{value / 1e6:.1f}", 20e6, 1)
    figure.suptitle("throughput in Mb/s, of 20", x=0.01, ha="left", fontsize=8.5, color=_style.QUIET)
    return figure


_GRID = tuple(GRIDS.values())

FIGURES = (
    Plot(
        "4",
        "Utilisation of one segment of 10 Mb/s",
        (GRIDS[RATES[0]],),
        _figure_4,
        "Medians of both. BBRv2 is the paper's alone: Lasthop has none.",
    ),
    Plot(
        "1",
        "Splits that run, in three settings",
        tuple(MARQUEE),
        _figure_1,
        "The printed bars are read off within 1 %.",
    ),
    Plot(
        "table-3",
        "In how many settings a split helps, by the heuristic",
        _GRID,
        _table_3,
        "Counts by medians, with bootstrap intervals. BBRv1 gains half as much again in no setting.",
    ),
    Plot(
        "gain",
        "Splits, 2026: the gain of a proxy next to the losses, at 10 Mb/s",
        (GRIDS[RATES[0]], OTHERS),
        _gain,
        (
            "By the heuristic, also from the printed cells: losses on a segment of 1 ms, all other delay on "
            "one without losses. The paper's CUBIC is that of Linux 5.15."
        ),
    ),
    Plot(
        "kernels",
        "Today's CUBIC beside the rules of Linux 5.15, one segment of 10 Mb/s",
        (GRIDS[RATES[0]], OTHERS),
        _kernels,
        "Over the same losses. The paper's kernel is 5.15; what differs is in the report on splitting.",
    ),
    Plot(
        "7",
        "Splits of BBRv3 that run, beside the heuristic and the paper",
        (*RUNNING, *_GRID),
        _figure_7,
        "Each path is a mark; on the line, ours is as fast as the paper's.",
    ),
    *(
        Plot(
            f"queues-{control}",
            f"The queue before the link: {CONTROLS[control]}",
            tuple(QUEUED),
            partial(_queues, control),
            "Printed values are read off the bars of the artifact, which has no CoDel among them.",
        )
        for control in OURS
    ),
    Plot(
        "beyond",
        "Beyond the paper: other remedies for a lossy last hop",
        tuple(f"beyond-{channel}" for channel in REMEDIES),
        _beyond,
        "20 Mb/s, 100 ms before the base station and 1 ms behind it, each with its congestion control.",
    ),
)
