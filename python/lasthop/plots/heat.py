"""Heat maps: the arms of a comparison, senders by schemes; a metric over two swept settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.transforms import ScaledTranslation

from lasthop.core.quantity import axis
from lasthop.core.units import Scale, metric_scale, quantile_name, setting_scale
from lasthop.plots import _style
from lasthop.plots._elements import literal, statistic, statistic_scale
from lasthop.plots._figure import DataFigure, panels_of, result

if TYPE_CHECKING:
    import pandas

    from lasthop.plots._figure import Drawn

Better = Literal["higher", "lower"]

MOST_PANELS = 6
"""The maximum number of panels; with more combinations of settings, one panel shows the best of them."""

_SHOWN = "_shown"
"""The column of the compared mean or quantile."""

_COLUMN, _ROW = 0.62, 0.34
"""The size of a cell in inches."""

# Light enough at both ends for dark text.
_COLOURS = LinearSegmentedColormap.from_list("lasthop", ["#e8928c", "#f7f5f0", "#7fb2dc"])
_WIDEST = 3
"""The ratio to the baseline, as a power of two, at which colours saturate."""

_MEANS = LinearSegmentedColormap.from_list("lasthop-means", ["#f7f5f0", "#7fb2dc"])
_MOST_NUMBERED = 14
"""The maximum number of columns for which cells show their means."""

_FRAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "best": ("best", {"edgecolor": _style.INK, "linewidth": 1.8}),
    "as good": ("as good as the best", {"edgecolor": _style.INK, "linewidth": 1.2}),
    "cannot tell": (
        "cannot be told apart from the best",
        {"edgecolor": _style.INK, "linewidth": 1.2, "linestyle": (0, (3, 2))},
    ),
    "baseline": ("baseline", {"edgecolor": _style.GOLD, "linewidth": 1.8}),
}


def heat_map(
    results: pandas.DataFrame,
    *,
    better: Better = "higher",
    title: str = "",
    ax: Drawn | None = None,
) -> Drawn:
    """Draw the mean or quantile of each arm of a comparison, coloured by its ratio to the baseline.

    Parameters
    ----------
    results : pandas.DataFrame
        The result of `Race.results`.
    better : {"higher", "lower"}, default "higher"
        Which values are better.
    title : str, default ""
        The title.
    ax : sequence of matplotlib.axes.Axes, optional
        Axes to draw into, one for each panel, instead of creating a figure. The scale takes some of their
        room.

    Returns
    -------
    DataFigure or sequence of Axes
        The figure, or the axes that were given: a row for each sender and a column for each scheme, both in
        the order of the ranking, and a panel for each combination of further settings. With more than six
        combinations each cell shows the best of them, and the figure says so.
    """
    columns = list(results.columns)
    settings = columns[columns.index("scheme") + 1 : columns.index("baseline")]
    senders = list(dict.fromkeys(results["sender"].map(_sender)))
    schemes = list(dict.fromkeys(results["scheme"]))
    # A quantile is infinite if too many runs lack the metric.
    results = results.assign(**{_SHOWN: results["value" if "value" in columns else "mean"]})
    panels = _panels(results, settings)
    shown_values = results[_SHOWN][np.isfinite(results[_SHOWN])]
    scale = metric_scale(str(results["metric"].iloc[0]), float(shown_values.abs().max()))
    if "quantile" in columns:
        name = f"{quantile_name(float(results['quantile'].iloc[0]))} of {scale.name}"
        scale = replace(scale, name=name)
    across = min(len(panels), max(1, 14 // max(4, len(schemes))))
    down = math.ceil(len(panels) / across)
    octaves = _octaves(results)
    labels = 0.075 * max(map(len, schemes))
    width = across * (_COLUMN * len(schemes) + 0.3) + 0.085 * max(map(len, senders)) + 1.3
    height = down * (_ROW * len(senders) + labels + 0.55) + 0.9
    data = {name: results[name] for name in columns}
    place = panels_of(data, max(6.4, width), max(3.0, height), len(panels), ax, across=across, sharey=True)
    with place as (figure, grid):
        for axes, (name, part) in zip(grid, panels, strict=True):
            _draw(axes, part, senders, schemes, scale, octaves if better == "higher" else -octaves)
            own = name if ax is None else name or title or scale.label
            if own:
                axes.set_title(literal(own), loc="left", fontsize=8.5, color=_style.QUIET)
        if ax is None:
            _head(figure, f"{title}\n{scale.label}" if title else scale.label)
        shown = {kind for _, part in panels for kind in _kinds(part)}
        _explain(figure, results, shown, grid, octaves, better, scale)
    return result(figure, ax)


def sweep_map(
    summary: pandas.DataFrame, x: str, y: str, *, title: str = "", ax: Drawn | None = None
) -> Drawn:
    """Draw the mean or a quantile of a metric over two swept settings, with a panel for each scheme.

    Parameters
    ----------
    summary : pandas.DataFrame
        The result of `Study.summary` or `Study.quantile`, or a subset with one row for each value of `x`, `y`
        and scheme.
    x, y : str
        The settings of the horizontal and the vertical axis, whose values are quantities.
    title : str, default ""
        The title.
    ax : sequence of matplotlib.axes.Axes, optional
        Axes to draw into, one for each scheme, instead of creating a figure. The scale takes some of their
        room.

    Returns
    -------
    DataFigure or sequence of Axes
        The figure, or the axes that were given. All panels have the same colours. A cell whose mean does not
        exist is grey.

    Raises
    ------
    ValueError
        If a setting's values are not numeric, or there are several rows for one cell.
    """
    axes_of = {}
    for setting in (x, y):
        numbers = axis(list(summary[setting]))
        if numbers is None:
            raise ValueError(
                f"{setting} cannot be an axis: its values are not different quantities of one kind"
            )
        axes_of[setting] = (sorted(set(numbers[0])), setting_scale(setting, numbers[1], max(numbers[0])))
        summary = summary.assign(**{f"_{setting}": numbers[0]})
    if summary.duplicated(["scheme", x, y]).any():
        raise ValueError(f"there are several rows for one {x} and {y}; choose among them first")
    (columns, across_reading), (rows, down_reading) = axes_of[x], axes_of[y]
    centre = statistic(summary)
    means = summary[centre].where(np.isfinite(summary[centre]))
    scale = statistic_scale(summary)
    panels = list(summary.groupby("scheme", sort=False))
    across = min(len(panels), max(1, 16 // max(4, len(columns))))
    down = math.ceil(len(panels) / across)
    known = means.dropna() / scale.size
    norm = Normalize(*((known.min(), known.max()) if len(known) else (0.0, 1.0)))
    mapping = ScalarMappable(norm, _MEANS)
    width = across * (_COLUMN * min(len(columns), 24) + 0.4) + 1.9
    height = down * (_ROW * min(len(rows), 24) + 0.7) + 0.9
    shown = ["scheme", x, y, centre, "low", "high"]
    data = {name: summary[name] for name in shown}
    size = (max(6.4, width), max(3.0, height))
    with panels_of(data, *size, len(panels), ax, across=across, sharex=True, sharey=True) as (figure, grid):
        for axes, (scheme, part) in zip(grid, panels, strict=True):
            cells = np.full((len(rows), len(columns)), np.nan)
            for at_x, at_y, mean in zip(part[f"_{x}"], part[f"_{y}"], part[centre], strict=True):
                cells[rows.index(at_y), columns.index(at_x)] = mean / scale.size
            axes.set_facecolor(_style.SHADE)
            axes.pcolormesh(np.ma.masked_invalid(cells), cmap=_MEANS, norm=norm, edgecolors="white")
            if len(columns) <= _MOST_NUMBERED:
                for (row, column), mean in np.ndenumerate(cells):
                    axes.text(column + 0.5, row + 0.5, _short(mean), ha="center", va="center", fontsize=7.5)
            for place, values, its in (
                (axes.xaxis, columns, across_reading),
                (axes.yaxis, rows, down_reading),
            ):
                place.set_ticks(
                    [i + 0.5 for i in range(len(values))], [f"{value / its.size:,.6g}" for value in values]
                )
            axes.tick_params(length=0)
            axes.set_title(literal(str(scheme)), loc="left", fontsize=8.5, color=_style.QUIET)
            if ax is not None:
                axes.set_xlabel(literal(across_reading.label))
                axes.set_ylabel(literal(down_reading.label))
        bar = figure.colorbar(mapping, ax=list(grid), fraction=0.03, pad=0.02, aspect=22)
        bar.set_label(literal(scale.label))
        bar.outline.set_visible(False)
        if ax is None:
            figure.supxlabel(literal(across_reading.label), fontsize=9)
            figure.supylabel(literal(down_reading.label), fontsize=9)
            if title:
                _head(figure, title)
    return result(figure, ax)


def _head(figure: Figure, text: str) -> None:
    """Write a title above all panels."""
    figure.suptitle(literal(text), x=0.01, ha="left", fontweight="bold", fontsize=10)


def _sender(name: Any) -> str:
    """Return the label of a row; a scenario may name no sender."""
    return name if isinstance(name, str) else "as stated"


def _panels(results: pandas.DataFrame, settings: Sequence[str]) -> list[tuple[str, pandas.DataFrame]]:
    """Return the arms of each panel with its name."""
    if not settings:
        return [("", results)]
    keys = [", ".join(_stated(settings, row)) for row in results[list(settings)].itertuples(index=False)]
    named = results.assign(_panel=keys).sort_values(list(settings), key=_in_order, kind="stable")
    order = list(dict.fromkeys(named["_panel"]))
    if len(order) > 1 and results["baseline"][named["_panel"] == ""].all():
        # A panel of the baseline alone would be empty; the scale of colours names it.
        order = [name for name in order if name]
    if len(order) > MOST_PANELS:
        best = results.drop_duplicates(["sender", "scheme"])
        return [(f"the best over {', '.join(settings)}", best)]
    return [(name or "as the scenario says", named[named["_panel"] == name]) for name in order]


def _in_order(values: pandas.Series[Any]) -> pandas.Series[Any]:
    """Return the sort keys of the values of a setting: their sizes, or else the order of the ranking."""
    stated = [value for value in dict.fromkeys(values) if isinstance(value, str)]
    numbers = axis(stated)
    places = dict(zip(stated, numbers[0] if numbers else range(len(stated)), strict=True))
    return values.map(lambda value: places.get(value, -math.inf))


def _stated(settings: Sequence[str], values: Sequence[Any]) -> list[str]:
    return [f"{key} = {value}" for key, value in zip(settings, values, strict=True) if isinstance(value, str)]


def _draw(
    axes: Axes,
    part: pandas.DataFrame,
    senders: Sequence[str],
    schemes: Sequence[str],
    scale: Scale,
    octaves: int,
) -> None:
    """Draw one panel; `octaves` is negative if lower is better."""
    axes.set_xlim(-0.5, len(schemes) - 0.5)
    axes.set_ylim(len(senders) - 0.5, -0.5)
    axes.set_xticks(range(len(schemes)), [literal(name) for name in schemes], rotation=40, ha="right")
    axes.set_yticks(range(len(senders)), [literal(name) for name in senders])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    seen = set()
    for row in part.to_dict("records"):
        x, y = schemes.index(row["scheme"]), senders.index(_sender(row["sender"]))
        seen.add((x, y))
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, color=_colour(row, octaves), linewidth=0))
        for kind in (row["status"], "baseline" if row["baseline"] else ""):
            if kind in _FRAMES:
                inset = 0.06 if kind == "baseline" else 0.02
                size = 1 - 2 * inset
                corner = (x - 0.5 + inset, y - 0.5 + inset)
                axes.add_patch(Rectangle(corner, size, size, fill=False, zorder=3, **_FRAMES[kind][1]))
        axes.text(
            x,
            y,
            _short(row[_SHOWN] / scale.size),
            ha="center",
            va="center",
            fontsize=7.5,
            fontweight="bold" if row["rank"] == 1 else "normal",
        )
    for x in range(len(schemes)):
        for y in range(len(senders)):
            if (x, y) not in seen:
                axes.text(x, y, "-", ha="center", va="center", fontsize=7.5, color=_style.QUIET)
    # White lines between the cells.
    for edge in range(1, len(schemes)):
        axes.axvline(edge - 0.5, color="white", linewidth=1.2)
    for edge in range(1, len(senders)):
        axes.axhline(edge - 0.5, color="white", linewidth=1.2)


def _kinds(part: pandas.DataFrame) -> set[str]:
    """Return the kinds of frames in a panel."""
    return {*part["status"], *(["baseline"] if part["baseline"].any() else [])}


def _octaves(results: pandas.DataFrame) -> int:
    """Return the ratio at the ends of the scale of colours, as a power of two."""
    ratios = results["ratio"][(results["ratio"] > 0) & np.isfinite(results["ratio"])]
    farthest = float(np.abs(np.log2(ratios)).max()) if len(ratios) else 0.0
    return min(_WIDEST, max(1, math.ceil(farthest)))


def _colour(row: Mapping[Any, Any], octaves: int) -> Any:
    """Return the colour of an arm: blue if it is better than the baseline, red if it is worse."""
    ratio = 1.0 if row["baseline"] else row["ratio"]
    if not math.isfinite(ratio):
        return _style.SHADE
    apart = math.log2(ratio) if ratio > 0 else -math.inf
    return _COLOURS(float(np.clip(0.5 + apart / (2 * octaves), 0.0, 1.0)))


def _short(value: float) -> str:
    """Format a number with three significant digits, short enough for a cell."""
    if not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(decimals, 3)}f}"


def _explain(
    figure: Figure,
    results: pandas.DataFrame,
    shown: set[str],
    panels: Sequence[Axes],
    octaves: int,
    better: str,
    scale: Scale,
) -> None:
    """Draw the scale of colours, and the legend of the frames that occur."""
    handles = [
        Patch(fill=False, label=label, **line_style)
        for kind, (label, line_style) in _FRAMES.items()
        if kind in shown
    ]
    if isinstance(figure, DataFigure):
        figure.legend(handles=handles, loc="outside lower left", ncols=min(4, len(handles)), handlelength=1.4)
    else:
        # Below the names of the schemes.
        longest = max(map(len, results["scheme"]))
        below = ScaledTranslation(0, -(14 + 4.5 * longest) / 72, figure.dpi_scale_trans)
        panels[-1].legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(0.0, 0.0),
            bbox_transform=panels[-1].transAxes + below,
            frameon=False,
            fontsize=8,
            ncols=2,
        )
    colours = _COLOURS if better == "higher" else _COLOURS.reversed()
    mapping = ScalarMappable(Normalize(-octaves, octaves), colours)
    bar = figure.colorbar(mapping, ax=list(panels), fraction=0.03, pad=0.02, aspect=22)
    ticks = range(-octaves, octaves + 1)
    bar.set_ticks(list(ticks), labels=[str(2**tick) if tick >= 0 else f"1/{2**-tick}" for tick in ticks])
    bar.outline.set_visible(False)
    for row in results[results["baseline"]].to_dict("records"):
        bar.set_label(literal(f"ratio to {row['arm']} ({_short(row[_SHOWN] / scale.size)})"))
