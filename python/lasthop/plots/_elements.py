"""Elements that several figures share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from lasthop._lasthop import Run
from lasthop.core.units import Scale, metric_scale, quantile_name
from lasthop.plots import _figure, _style
from lasthop.plots._lines import LineStyle

if TYPE_CHECKING:
    import pandas

Periods = Sequence[tuple[float, float]]
"""Intervals of time in seconds, as (start, stop)."""

FIRST: LineStyle = {"marker": "o", "markersize": 2.6, "color": _style.BLUE, "markeredgewidth": 0.0}
AGAIN: LineStyle = {
    "marker": "D",
    "markersize": 3.8,
    "color": _style.RED,
    "markerfacecolor": "white",
    "markeredgewidth": 1.1,
}
TIMEOUT: LineStyle = {"marker": "v", "markersize": 5.5, "color": _style.INK, "markeredgewidth": 0.0}
ACKNOWLEDGED: LineStyle = {"color": _style.GOLD, "linewidth": 1.4}
CWND: LineStyle = {"color": _style.BLUE, "linewidth": 1.6}
SSTHRESH: LineStyle = {"color": _style.RED, "linewidth": 1.1, "linestyle": (0, (4, 2))}
REFERENCE: LineStyle = {"color": _style.QUIET, "linewidth": 0.9, "zorder": 1.5}
SIZE: LineStyle = {"color": _style.BLUE, "linewidth": 1.1}
FLIGHT: LineStyle = {"color": _style.GOLD, "linewidth": 0.9, "zorder": 1.5}
PRINTED: LineStyle = {
    "marker": "o",
    "markersize": 8.5,
    "markerfacecolor": "none",
    "markeredgewidth": 1.4,
    "linestyle": "none",
    "zorder": 3.4,
    "clip_on": False,
    "color": _style.INK,
}
MANY_MARKS = 300
"""The most marks of one kind that are drawn in full size."""

AXES_SHARE = 0.75
"""The approximate share of the axes in a figure's height."""

LABEL_POINTS = 10.0
"""The height of a label's line, in points."""

_LEGEND: dict[str, tuple[str, LineStyle]] = {
    "sent": ("sent for the first time", FIRST),
    "again": ("retransmitted", AGAIN),
    "timeout": ("timeout", TIMEOUT),
    "acknowledged": ("acknowledged", ACKNOWLEDGED),
    "cwnd": ("congestion window", CWND),
    "ssthresh": ("slow-start threshold", SSTHRESH),
    "flight": ("in flight", FLIGHT),
    "size": ("largest payload of a segment", SIZE),
    "printed": ("printed in the paper", PRINTED),
}


def events(
    run: Run, *kinds: str, connection: str | None = None, part: int = 0
) -> dict[str, npt.NDArray[Any]]:
    """Return the events of the given kinds of one part, in the columns that figures need."""
    columns = run.events(connection, part)
    shown = np.isin(columns["event"], kinds)
    return {name: np.asarray(columns[name])[shown] for name in ("time_s", "event", "packet", "transmission")}


def end(columns: dict[str, npt.NDArray[Any]]) -> float:
    """Return the end of a time axis that shows all events of a run."""
    return 1.01 * float(columns["time_s"].max(initial=0.0)) or 1.0


def marks(axes: Axes, x: npt.ArrayLike, y: npt.ArrayLike, line_style: LineStyle, name: str) -> None:
    """Draw marks without a line, smaller if there are many; `name` is their id in the SVG."""
    scale = min(1.0, max(0.4, math.sqrt(MANY_MARKS / max(1, np.size(x)))))
    sizes = {key: scale * line_style[key] for key in ("markersize", "markeredgewidth")}
    axes.plot(x, y, linestyle="none", gid=name, **(line_style | sizes))


def shade(axes: Axes, periods: Periods, until: float) -> None:
    """Shade the periods in which the channel is bad, up to `until`."""
    spans = [(start, min(stop, until) - start) for start, stop in periods if start < until]
    if spans:
        # One collection for all periods: there may be thousands.
        edge = axes.get_xaxis_transform()
        axes.broken_barh(spans, (0, 1), transform=edge, color=_style.SHADE, linewidth=0, zorder=0)


@contextmanager
def over_time(
    data: _figure.Columns, height: float, until: float, shaded: Periods, ax: Any
) -> Iterator[tuple[Figure, Axes]]:
    """Draw against time from zero to `until`, over the shade of bad periods; otherwise as `drawing`."""
    with _figure.drawing(data, 8.0, height, ax) as (figure, axes):
        shade(axes, shaded, until)
        axes.set_xlim(0.0, until)
        axes.set_xlabel("time (s)")
        yield figure, axes


def distribution(
    axes: Axes, label: str, values: npt.ArrayLike, shares: npt.ArrayLike, until: float, **line_style: Any
) -> None:
    """Draw a distribution function: from zero, a step at each of the sorted values, level until the end."""
    x, y = np.asarray(values, dtype=float), np.asarray(shares, dtype=float)
    axes.step(
        np.concatenate([x[:1], x, [until]]),
        np.concatenate([np.zeros(len(x[:1])), y, y[-1:] if len(y) else [0.0]]),
        where="post",
        label=literal(label),
        gid=label,
        **line_style,
    )


def of_shares(axes: Axes, what: str) -> None:
    """Let the vertical axis show shares of `what`, as distribution functions have them."""
    axes.set_ylim(0, 1.03)
    axes.set_ylabel(f"share of {what} with at most this")
    grid(axes)


def grid(axes: Axes) -> None:
    """Draw horizontal lines at the ticks, below all curves."""
    axes.grid(axis="y", color=_style.SHADE, linewidth=0.7)
    axes.set_axisbelow(True)


def heading(axes: Axes, text: str) -> None:
    """Write a title above the axes, if there is one."""
    if text:
        axes.set_title(literal(text), loc="left", fontweight="bold")


def rug(axes: Axes, times: npt.NDArray[Any]) -> None:
    """Mark timeouts along the upper edge."""
    edge = axes.get_xaxis_transform()
    ones = np.ones(len(times))
    line_style = TIMEOUT | {"clip_on": False, "in_layout": False}
    axes.plot(times, ones, linestyle="none", transform=edge, gid="timeouts", **line_style)


def refer(figure: Figure, axes: Axes, references: Mapping[str, float]) -> None:
    """Draw thin horizontal reference lines, with labels to the right of the axes, clear of all curves.

    Labels of close values move apart. The limits of the axes must be final.
    """
    low, high = axes.get_ylim()
    # The place of the caller's axes is known; that of ours is not before it is drawn.
    own = isinstance(figure, _figure.DataFigure)
    share = AXES_SHARE if own else axes.get_position().height
    points = 72 * figure.get_figheight() * share / (high - low)
    free = -math.inf
    for label, value in sorted(references.items(), key=itemgetter(1)):
        axes.axhline(value, gid=label, **REFERENCE)
        place = max(value * points, free)
        free = place + LABEL_POINTS
        axes.annotate(
            literal(label),
            (1.0, value),
            xycoords=("axes fraction", "data"),
            xytext=(4, place - value * points),
            textcoords="offset points",
            horizontalalignment="left",
            verticalalignment="center",
            fontsize=8,
            color=_style.QUIET,
        )


def literal(text: str) -> str:
    r"""Escape dollars, so that matplotlib does not parse the text as a formula.

    Examples
    --------
    >>> print(literal("$5"))
    \$5
    """
    return text.replace("$", r"\$")


def title(axes: Axes, run: Run, connection: str | None = None, part: int = 0) -> None:
    """Write the run and its main results above the axes."""
    ends = run.parts(connection)
    metrics = run.metrics if connection is None else run.connections[connection]
    time = metrics["completion_time_s"]
    facts = ["not finished" if time is None else f"finished after {time:.1f} s"]
    # The metrics of relays are totals, which cannot be attributed to one of several parts.
    if part == 0 or len(ends) == 2:
        by = "relay_" if part > 0 else ""
        for metric, noun, what in (
            ("timeouts", "timeout", ""),
            ("retransmitted_segments", "packet", " retransmitted"),
            ("declared_lost", "packet", " declared lost"),
        ):
            # A stack counts what it knows.
            if (count := metrics.get(by + metric)) is not None:
                facts.append(_number(count, noun) + what)
    name = run.label if len(ends) == 1 else f"{run.label}, {' to '.join(ends[part])}"
    axes.set_title(literal(name), loc="left", fontweight="bold")
    axes.set_title("   ".join(facts), loc="right", fontsize=8.5, color=_style.QUIET)


def statistic(table: pandas.DataFrame) -> str:
    """Return the column of what a table of means or quantiles shows."""
    return "value" if "quantile" in table else "mean"


def statistic_scale(table: pandas.DataFrame) -> Scale:
    """Return the name and unit of what a table of means or quantiles shows."""
    values = table[statistic(table)]
    scale = metric_scale(str(table["metric"].iloc[0]), float(values[np.isfinite(values)].abs().max()))
    if "quantile" not in table:
        return scale
    return replace(scale, name=f"{quantile_name(float(table['quantile'].iloc[0]))} of {scale.name}")


def _number(n: int, noun: str) -> str:
    return f"{n or 'no'} {noun}{'s' if n != 1 else ''}"


def legend(figure: Figure, axes: Axes, *parts: str, shaded: bool) -> None:
    """Draw the legend of `parts`, and of the shade if there is any."""
    handles: list[Artist] = []
    for part in parts:
        label, line_style = _LEGEND[part]
        line = "none" if "marker" in line_style else line_style.get("linestyle", "-")
        handles.append(Line2D([], [], label=label, **(line_style | {"linestyle": line})))
    if shaded:
        handles.append(Patch(color=_style.SHADE, linewidth=0, label="channel bad"))
    _figure.legend(figure, axes, handles=handles, ncols=len(handles))
