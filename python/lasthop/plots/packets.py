"""Packet traces: the number of each packet that a source sends, against time.

The figure of Bakshi, Krishna, Vaidya and Pradhan (TR-96-014, section 3.4) has the packet number modulo 90.
Longer traces have the plain packet number, since the wraps could not be told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, MultipleLocator

from lasthop._lasthop import Run
from lasthop.plots import _elements
from lasthop.plots._elements import Periods
from lasthop.plots._figure import Columns, panels_of, result

if TYPE_CHECKING:
    from lasthop.plots._figure import Drawn

USUAL_MODULO = 90
MOST_ROUNDS = 6
"""The most wraps of the axis: with more of them, neighbouring wraps overlap."""


def packet_trace(
    run: Run,
    modulo: int | None = None,
    bad_periods: Periods = (),
    *,
    connection: str | None = None,
    part: int = 0,
    printed: Sequence[tuple[float, int]] = (),
    ax: Drawn | None = None,
) -> Drawn:
    """Draw the number of each packet that the source sent, against time.

    A retransmission is a further mark at the same height, of another shape. Triangles along the upper edge
    are timeouts; bad periods of the channel are shaded.

    Parameters
    ----------
    run : Run
        A run made with `trace=True`.
    modulo : int, optional
        The number at which the vertical axis wraps. By default 90; none for traces with fewer
        packets, or with too many wraps to be readable.
    bad_periods : sequence of (float, float), optional
        The bad periods of the channel, in seconds; see `Scenario.bad_periods`.
    connection : str, optional
        The connection's name. By default the first.
    part : int, default 0
        Which of its parts, if it is split: 0 is the one that begins at the source.
    printed : sequence of (float, int), optional
        Times in seconds and numbers of packets that a publication prints: rings.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into, instead of creating a figure.

    Returns
    -------
    DataFigure or Axes
        The figure, or the axes that were given.

    Examples
    --------
    >>> import lasthop, lasthop.plots
    >>> run = lasthop.run("ebsn-example", "basic", trace=True)
    >>> fig = lasthop.plots.packet_trace(run)
    >>> fig.axes[0].get_ylabel()
    'packet number mod 90'
    """
    columns = _elements.events(run, "sent", "timeout", connection=connection, part=part)
    until = _elements.end(run.events(connection, part))
    modulo = modulo or _modulo([columns], until)
    with _elements.over_time(_with_printed(columns, printed), 3.4, until, bad_periods, ax) as (figure, axes):
        _panel(axes, columns, modulo, until)
        if printed:
            times, packets = np.asarray(printed, dtype=float).T
            axes.plot(
                times, packets if modulo is None else packets % modulo, gid="printed", **_elements.PRINTED
            )
        _elements.title(axes, run, connection, part)
        axes.set_ylabel(_label(modulo))
        rings = ("printed",) if printed else ()
        _elements.legend(figure, axes, "sent", "again", "timeout", *rings, shaded=len(bad_periods) > 0)
    return result(figure, ax)


def _with_printed(columns: Columns, printed: Sequence[tuple[float, int]]) -> Columns:
    """Return the events with those that a publication prints, whose transmissions are not numbered."""
    if not printed:
        return columns
    times, packets = zip(*printed, strict=True)
    more: Columns = {
        "time_s": times,
        "event": ["printed"] * len(printed),
        "packet": packets,
        "transmission": [0] * len(printed),
    }
    return {name: np.append(column, more[name]) for name, column in columns.items()}


def packet_traces(
    runs: Sequence[Run],
    modulo: int | None = None,
    bad_periods: Periods = (),
    *,
    part: int = 0,
    ax: Drawn | None = None,
) -> Drawn:
    """Draw the packet traces of several runs one above the other, on a common time axis.

    The axis ends with the shortest run, so that the figure shows how far the others have come by then.

    Parameters
    ----------
    runs : sequence of Run
        Runs made with `trace=True`.
    modulo : int, optional
        As in `packet_trace`; the same for all.
    bad_periods : sequence of (float, float), optional
        As in `packet_trace`.
    part : int, default 0
        The part of the first connection, if it is split; the last one of a run with fewer parts.
    ax : sequence of matplotlib.axes.Axes, optional
        Axes to draw into, one for each run, instead of creating a figure.

    Returns
    -------
    DataFigure or sequence of Axes
        The figure, with a panel for each run from top to bottom, or the axes that were given.

    Raises
    ------
    ValueError
        If there are not as many axes as runs.

    Examples
    --------
    >>> import lasthop, lasthop.plots
    >>> runs = lasthop.run_each("ebsn-example", ["basic", "ebsn"], trace=True)
    >>> fig = lasthop.plots.packet_traces(runs)
    >>> [axes.get_title(loc="left") for axes in fig.axes]
    ['basic', 'ebsn']
    """
    parts = [min(part, len(run.parts()) - 1) for run in runs]
    data = [
        _elements.events(run, "sent", "timeout", part=each) for run, each in zip(runs, parts, strict=True)
    ]
    ends = [_elements.end(run.events(part=each)) for run, each in zip(runs, parts, strict=True)]
    until = min(ends, default=1.0)
    modulo = modulo or _modulo(data, until)
    with panels_of(_stacked(runs, data), 8.0, 0.8 + 1.55 * len(runs), len(runs), ax, sharex=True) as (
        figure,
        panels,
    ):
        for axes, run, each, columns in zip(panels, runs, parts, data, strict=True):
            _elements.shade(axes, bad_periods, until)
            axes.set_xlim(0.0, until)
            _panel(axes, columns, modulo, until)
            _elements.title(axes, run, part=each)
        panels[-1].set_xlabel("time (s)")
        if ax is None:
            figure.supylabel(_label(modulo), fontsize="medium")
        else:
            for axes in panels:
                axes.set_ylabel(_label(modulo))
        _elements.legend(figure, panels[-1], "sent", "again", "timeout", shaded=len(bad_periods) > 0)
    return result(figure, ax)


def _stacked(runs: Sequence[Run], data: Sequence[Columns]) -> Columns:
    """Return the columns of all runs concatenated, with the scheme of each row."""
    scheme = [run.label for run, columns in zip(runs, data, strict=True) for _ in columns["time_s"]]
    names = data[0] if data else ()
    return {"scheme": scheme} | {name: np.concatenate([each[name] for each in data]) for name in names}


def _modulo(data: Sequence[Columns], until: float) -> int | None:
    """Return where the axis wraps; None if it need not, or would wrap too often to be readable."""
    shown = [columns["packet"][columns["time_s"] <= until].max(initial=0) for columns in data]
    return USUAL_MODULO if USUAL_MODULO <= max(shown, default=0) < MOST_ROUNDS * USUAL_MODULO else None


def _label(modulo: int | None) -> str:
    return "packet number" if modulo is None else f"packet number mod {modulo}"


def _panel(axes: Axes, columns: Columns, modulo: int | None, until: float) -> None:
    time, packet = columns["time_s"], columns["packet"]
    # SYN and FIN have no packet number.
    sent = (columns["event"] == "sent") & (columns["packet"] >= 0) & (time <= until)
    again = sent & (columns["transmission"] > 1)
    first = sent & ~again
    if modulo is not None:
        packet = packet % modulo
    _elements.marks(axes, time[first], packet[first], _elements.FIRST, "first")
    _elements.marks(axes, time[again], packet[again], _elements.AGAIN, "again")
    _elements.rug(axes, time[(columns["event"] == "timeout") & (time <= until)])
    if modulo is None:
        axes.set_ylim(bottom=-0.04 * axes.get_ylim()[1])
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.yaxis.set_major_formatter("{x:,.0f}")
    else:
        axes.set_ylim(-0.04 * modulo, 1.06 * modulo)
        axes.yaxis.set_major_locator(MultipleLocator(modulo / 3))
