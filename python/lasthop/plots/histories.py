"""Figures of runs over time beside those of a publication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lasthop.core.units import Scale
from lasthop.plots import _style
from lasthop.plots._elements import grid, heading, literal
from lasthop.plots._figure import DataFigure, legend, panels_of, result
from lasthop.plots._lines import LineStyle

Points = tuple[npt.ArrayLike, npt.ArrayLike]
"""Times in seconds and values in basic units."""

_OURS: LineStyle = {"color": _style.BLUE, "linewidth": 0.8, "drawstyle": "steps-post", "zorder": 3}
_PRINTED: LineStyle = {"color": _style.RED, "linewidth": 0.6, "zorder": 2.5}
_DOT: LineStyle = {"linestyle": "none", "marker": ".", "markersize": 2.0}
_FIRST_ROW, _ROW, _APART = 0.17, 0.075, 0.022
"""Heights of the first row of dots, between rows, and between ours and the paper's, as shares of the axes."""


@dataclass(frozen=True, slots=True)
class History:
    """A panel.

    Attributes
    ----------
    title : str
        The title.
    ours, printed : (times, values)
        A quantity of a run of ours and of the publication.
    rows : mapping of str to (times, times)
        Events of our run and of the publication, drawn as rows of dots.
    """

    title: str
    ours: Points
    printed: Points
    rows: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]] = field(default_factory=dict)


def histories(panels: Sequence[History], y: Scale, *, until: float) -> DataFigure:
    """Draw panels side by side, from 0 to `until` seconds, on the same scale.

    Parameters
    ----------
    panels : sequence of History
        The panels.
    y : Scale
        The name and unit of the quantity.
    until : float
        The end of the time axes, in seconds.

    Returns
    -------
    DataFigure
        The figure, with a row of data for each point and each dot; dots have no value.
    """
    with panels_of(_numbers(panels), 8.4, 3.0, len(panels), None, across=len(panels), sharey=True) as (
        figure,
        axes,
    ):
        for place, (panel, ax) in enumerate(zip(panels, axes, strict=True)):
            for name, style, (times, values) in (
                ("ours", _OURS, panel.ours),
                ("paper", _PRINTED, panel.printed),
            ):
                ax.plot(
                    times,
                    np.asarray(values, dtype=float) / y.size,
                    label=name,
                    gid=f"{name}, {panel.title}",
                    **style,
                )
            for number, (row, events) in enumerate(panel.rows.items()):
                height = _FIRST_ROW - number * _ROW
                for times, style, at in zip(
                    events, (_OURS, _PRINTED), (height, height - _APART), strict=True
                ):
                    across = np.full(np.size(times), at)
                    ax.plot(
                        times,
                        across,
                        transform=ax.get_xaxis_transform(),
                        **(_DOT | {"color": style["color"]}),
                    )
                ax.text(0.99, height, row, transform=ax.transAxes, ha="right", va="bottom", fontsize=6.5)
            ax.set_xlim(0, until)
            ax.set_xlabel("time (s)")
            if place == 0:
                ax.set_ylabel(literal(y.label))
            grid(ax)
            heading(ax, panel.title)
        # The axes share their scale.
        axes[0].set_ylim(bottom=0)
        legend(figure, axes[0], ncols=2, handles=axes[0].get_lines()[:2])
    return result(figure, None)


def _numbers(panels: Sequence[History]) -> dict[str, list[str] | list[float]]:
    """Return all points and dots as columns."""
    rows: list[tuple[str, str, float, float]] = []
    for panel in panels:
        for name, (times, values) in (("ours", panel.ours), ("paper", panel.printed)):
            rows += [
                (f"{panel.title}, {name}", "", *point)
                for point in zip(_list(times), _list(values), strict=True)
            ]
        for row, events in panel.rows.items():
            for name, times in zip(("ours", "paper"), events, strict=True):
                rows += [(f"{panel.title}, {name}", row, time, float("nan")) for time in _list(times)]
    columns = list(zip(*rows, strict=True))
    return {
        name: list(column) for name, column in zip(("line", "event", "time_s", "value"), columns, strict=True)
    }


def _list(values: npt.ArrayLike) -> list[float]:
    return [float(value) for value in np.asarray(values, dtype=float)]
