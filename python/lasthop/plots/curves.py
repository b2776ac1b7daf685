"""Figures of studies: a metric against a swept setting, and its distribution over runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import CARETDOWNBASE, CARETUPBASE
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation

from lasthop.core.quantity import axis
from lasthop.core.units import Scale, metric_scale, setting_scale
from lasthop.plots import _style
from lasthop.plots._elements import (
    PRINTED,
    distribution,
    grid,
    heading,
    literal,
    of_shares,
    refer,
    statistic,
    statistic_scale,
)
from lasthop.plots._figure import drawing, legend, result
from lasthop.plots._lines import LineStyle, line_styles

if TYPE_CHECKING:
    import pandas

    from lasthop.plots._figure import Drawn

_BAR: LineStyle = {"linestyle": "none", "elinewidth": 1.1, "capsize": 2.5}
_PEAK: LineStyle = {
    "marker": "o",
    "markersize": 12.0,
    "markerfacecolor": "none",
    "markeredgecolor": _style.INK,
    "markeredgewidth": 1.0,
    "zorder": 3.5,
    "clip_on": False,
}
_OPEN: LineStyle = {"linestyle": "none", "markersize": 8.0, "zorder": 3.2, "clip_on": False}
_CLEAR = 4.0
"""Points between a value and the caret that stands for the end of its interval."""

_BAND = 0.18
_LOGARITHMIC_FROM = 50.0
_LEGEND_LETTERS = 90


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a figure.

    Attributes
    ----------
    label : str
        Its label.
    x, y : sequence of float
        Its points, in the basic units of the axes.
    low, high : sequence of float, optional
        The confidence interval at each point.
    scheme : str, default ""
        The scheme of the line, if any: schemes have the same style in all figures that compare them.
    printed : bool, default False
        Whether these are values of a publication: rings without a line, in the colour of their scheme.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    scheme: str = ""
    printed: bool = False


def curve(
    lines: Sequence[Line],
    x: Scale,
    y: Scale,
    *,
    references: Mapping[str, float] | None = None,
    bands: bool = False,
    peaks: bool = False,
    title: str = "",
    palette: Sequence[str] = (),
    ax: Drawn | None = None,
) -> Drawn:
    """Draw lines with confidence intervals.

    Parameters
    ----------
    lines : sequence of Line
        The lines, which differ in mark and dash as well as in colour.
    x, y : Scale
        The names and units of the axes.
    references : mapping of str to float, optional
        Values of `y` to draw as thin horizontal lines, by their labels.
    bands : bool, default False
        Draw the intervals as bands instead of bars.
    peaks : bool, default False
        Mark the maximum of each line.
    title : str, default ""
        The title.
    palette : sequence of str, optional
        Unregistered schemes of a group of figures, in the same order for all: each has the same style in all
        of them.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into, instead of creating a figure.

    Returns
    -------
    DataFigure or Axes
        The figure, or the axes that were given; its numbers are in basic units.

    Examples
    --------
    >>> from lasthop.plots.curves import Line, curve
    >>> from lasthop.core.units import Scale
    >>> line = Line("basic", [128, 576], [4200.0, 5700.0], [4100.0, 5600.0], [4300.0, 5800.0])
    >>> figure = curve([line], Scale("packet size", "B", 1), Scale("throughput", "kbps", 1e3))
    >>> figure.axes[0].get_ylabel()
    'throughput (kbps)'
    """
    with drawing(_numbers(lines), 6.4, 4.2, ax) as (figure, axes):
        for line, line_style in zip(lines, _styles_of(lines, palette), strict=True):
            _draw(axes, line, line_style, x.size, y.size, bands)
            if peaks:
                _mark_peak(axes, line, x.size, y.size)
        _fit_x(axes, np.unique(np.concatenate([np.asarray(line.x, dtype=float) for line in lines])) / x.size)
        # The axis of a quantity that cannot be negative starts at zero.
        if axes.get_ylim()[0] >= 0 or not any(np.any(np.asarray(line.y) < 0) for line in lines):
            axes.set_ylim(bottom=0)
        heights = {label: value / y.size for label, value in (references or {}).items()}
        axes.set_ylim(top=max([axes.get_ylim()[1], *(1.06 * height for height in heights.values())]))
        refer(figure, axes, heights)
        axes.set_xlabel(literal(x.label))
        axes.set_ylabel(literal(y.label))
        grid(axes)
        heading(axes, title)
        intervals = ("bands" if bands else "bars") if any(line.low is not None for line in lines) else None
        open_ended = any(np.isinf([*(line.low or []), *(line.high or [])]).any() for line in lines)
        _explain(figure, axes, len(lines), intervals, peaks, open_ended)
    return result(figure, ax)


def sweep_curve(
    summary: pandas.DataFrame,
    x: str,
    *,
    by: str = "scheme",
    references: Mapping[str, float] | None = None,
    bands: bool = False,
    peaks: bool = False,
    title: str = "",
    ax: Drawn | None = None,
) -> Drawn:
    """Draw the mean or a quantile of a metric against a swept setting.

    Parameters
    ----------
    summary : pandas.DataFrame
        The result of `Study.summary` or `Study.quantile`, or a subset with one row for each value of `x` and
        `by`. A caret marks the side on which a quantile's interval has no end, since there are too few runs.
    x : str
        The setting.
    by : str, default "scheme"
        The column that tells the lines apart.
    references, bands, peaks, title
        As in `curve`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into, instead of creating a figure.

    Returns
    -------
    DataFigure or Axes
        The figure, or the axes that were given.

    Raises
    ------
    ValueError
        If the setting's values are not numeric, or a line has several rows for one point.
    """
    numbers = axis(list(summary[x]))
    if numbers is None:
        raise ValueError(f"{x} cannot be an axis: its values are not different quantities of one kind")
    frame = summary.assign(_x=numbers[0])
    if frame.duplicated([by, "_x"]).any():
        raise ValueError(f"there are several rows for one {by} at one {x}; choose among them first")
    shown = statistic(frame)
    lines = []
    for label, part in frame.groupby(by, sort=False):
        part = part.sort_values("_x")
        low, high = part["low"].tolist(), part["high"].tolist()
        scheme = str(label) if by == "scheme" else ""
        lines.append(Line(str(label), part["_x"].tolist(), part[shown].tolist(), low, high, scheme))
    return curve(
        lines,
        setting_scale(x, numbers[1], max(numbers[0])),
        statistic_scale(frame),
        references=references,
        bands=bands,
        peaks=peaks,
        title=title,
        ax=ax,
    )


def cdf(
    runs: pandas.DataFrame,
    metric: str,
    *,
    by: str = "scheme",
    title: str = "",
    ax: Drawn | None = None,
) -> Drawn:
    """Draw the empirical distribution function of a metric over runs.

    Parameters
    ----------
    runs : pandas.DataFrame
        The result of `Study.to_pandas`, or some of its rows.
    metric : str
        The metric. Runs without it count as infinitely large.
    by : str, default "scheme"
        The column that tells the lines apart.
    title : str, default ""
        The title.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into, instead of creating a figure.

    Returns
    -------
    DataFigure or Axes
        The figure, or the axes that were given.
    """
    greatest = float(runs[metric].max())
    scale = metric_scale(metric, greatest)
    lines = []
    for label, part in runs.groupby(by, sort=False):
        values = np.sort(part[metric].dropna().to_numpy(dtype=float))
        share = np.arange(1, len(values) + 1) / len(part)
        scheme = str(label) if by == "scheme" else ""
        lines.append(Line(str(label), values.tolist(), share.tolist(), scheme=scheme))
    with drawing(_numbers(lines), 6.4, 4.2, ax) as (figure, axes):
        for i, (line, line_style) in enumerate(
            zip(lines, line_styles([line.scheme for line in lines]), strict=True)
        ):
            # Marks at every run would hide the line.
            apart = max(1, len(line.x) // 8)
            values = np.asarray(line.x) / scale.size
            distribution(
                axes,
                line.label,
                values,
                line.y,
                greatest / scale.size,
                markevery=(apart * (i + 1) // (len(lines) + 1), apart),
                markersize=5.0,
                **line_style,
            )
        of_shares(axes, "runs")
        axes.set_xlabel(scale.label)
        heading(axes, title)
        _explain(figure, axes, len(lines), None)
    return result(figure, ax)


def _styles_of(lines: Sequence[Line], palette: Sequence[str]) -> list[LineStyle]:
    """Return the style of each line; printed values have the colour of the first line of their scheme."""
    measured = [line for line in lines if not line.printed]
    styles = line_styles([line.scheme for line in measured], palette)
    colors: dict[str, str] = {}
    for line, line_style in zip(measured, styles, strict=True):
        if line.scheme:
            colors.setdefault(line.scheme, line_style["color"])
    rest = iter(styles)
    return [
        PRINTED | {"color": colors.get(line.scheme, _style.QUIET)} if line.printed else next(rest)
        for line in lines
    ]


def _draw(axes: Axes, line: Line, line_style: LineStyle, x_size: float, y_size: float, bands: bool) -> None:
    x, y = np.asarray(line.x, dtype=float) / x_size, np.asarray(line.y, dtype=float) / y_size
    # A quantile is infinite where it falls among runs without the metric.
    y = np.where(np.isfinite(y), y, np.nan)
    # Not clipped, so that marks at zero are whole.
    drawn: LineStyle = {"markersize": 5.5, "markeredgewidth": 1.2, "zorder": 3, "clip_on": False} | line_style
    # Marks at each of many points would hide the line.
    apart = 1 if line.printed else max(1, len(x) // 40)
    axes.plot(x, y, label=literal(line.label), gid=line.label, markevery=apart, **drawn)
    if line.low is None or line.high is None:
        return
    low, high = (np.asarray(end, dtype=float) / y_size for end in (line.low, line.high))
    # A caret marks an interval without an end, for which there are too few runs.
    for ends, mark in ((low, CARETDOWNBASE), (high, CARETUPBASE)):
        open_ended = np.isinf(ends)
        if open_ended.any():
            beyond = ScaledTranslation(
                0, (_CLEAR if ends is high else -_CLEAR) / 72, axes.figure.dpi_scale_trans
            )
            place = axes.transData + beyond
            axes.plot(
                x[open_ended], y[open_ended], marker=mark, color=line_style["color"], transform=place, **_OPEN
            )
    low, high = np.where(np.isinf(low), y, low), np.where(np.isinf(high), y, high)
    if bands:
        axes.fill_between(x, low, high, color=line_style["color"], alpha=_BAND, linewidth=0, zorder=2)
    else:
        axes.errorbar(x, y, yerr=(y - low, high - y), color=line_style["color"], zorder=2.5, **_BAR)


def _mark_peak(axes: Axes, line: Line, x_size: float, y_size: float) -> None:
    """Mark the maximum of a line."""
    y = np.asarray(line.y, dtype=float)
    if np.isnan(y).all():
        return
    best = int(np.nanargmax(y))
    x = float(line.x[best]) / x_size
    axes.plot([x], [y[best] / y_size], linestyle="none", gid=f"peak of {line.label}", **_PEAK)


def _explain(
    figure: Figure,
    axes: Axes,
    lines: int,
    intervals: str | None,
    peaks: bool = False,
    open_ended: bool = False,
) -> None:
    """Draw the legend of lines, intervals and marks above the figure."""
    handles: list[Any] = []
    labels: list[str] = []
    if lines > 1:
        handles, labels = axes.get_legend_handles_labels()
    if intervals == "bars":
        handles.append(axes.errorbar([], [], yerr=[], color=_style.QUIET, **_BAR))
    elif intervals == "bands":
        handles.append(Patch(color=_style.QUIET, alpha=_BAND, linewidth=0))
    if intervals is not None:
        labels.append("95 % interval")
    if open_ended:
        handles += axes.plot([], [], marker=CARETUPBASE, color=_style.QUIET, **_OPEN)
        labels.append("no end: too few runs")
    if peaks:
        handles.append(Line2D([], [], linestyle="none", **_PEAK))
        labels.append("highest")
    if handles:
        # As many columns as fit the width of the figure.
        widths = [len(label) + 7 for label in labels]
        one_row = sum(widths) <= _LEGEND_LETTERS
        columns = len(labels) if one_row else max(1, _LEGEND_LETTERS // max(widths))
        legend(figure, axes, handles=handles, labels=labels, ncols=columns, handlelength=3.0)


def _fit_x(axes: Axes, values: npt.NDArray[np.float64]) -> None:
    """Scale the horizontal axis to the swept values, with a tick at each if there is room."""
    if len(values) < 2:
        return
    if values[0] > 0 and values[-1] / values[0] >= _LOGARITHMIC_FROM:
        axes.set_xscale("log")
        return
    roomy = float(np.diff(values).min()) >= 0.045 * float(values[-1] - values[0])
    if roomy:
        axes.set_xticks(values, [f"{value:,.6g}" for value in values])


def _numbers(lines: Sequence[Line]) -> dict[str, list[str] | list[float]]:
    """Return the points of all lines as one set of columns."""
    nothing = math.nan
    ends = {
        name: [end for line in lines for end in (getattr(line, name) or [nothing] * len(line.x))]
        for name in ("low", "high")
    }
    return {
        "line": [line.label for line in lines for _ in line.x],
        "x": [value for line in lines for value in line.x],
        "y": [value for line in lines for value in line.y],
        **ends,
    }
