"""Figures of senders over time: sequence numbers, windows and segment sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lasthop._lasthop import Run
from lasthop.plots import _elements
from lasthop.plots._elements import Periods
from lasthop.plots._figure import legend, result
from lasthop.plots._lines import line_styles

if TYPE_CHECKING:
    from lasthop.plots._figure import Drawn


def time_sequence(
    run: Run,
    bad_periods: Periods = (),
    *,
    connection: str | None = None,
    part: int = 0,
    ax: Drawn | None = None,
) -> Drawn:
    """Draw the packets sent and the cumulative acknowledgement, against time.

    The time-sequence graph of tcptrace and Wireshark, in packets.

    Parameters
    ----------
    run : Run
        A run made with `trace=True`.
    bad_periods : sequence of (float, float), optional
        The bad periods of the channel, in seconds; see `Scenario.bad_periods`.
    connection : str, optional
        The connection's name. By default the first.
    part : int, default 0
        Which of its parts, if it is split: 0 is the one that begins at the source.
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
    >>> fig = lasthop.plots.time_sequence(run)
    >>> fig.axes[0].get_ylabel()
    'packet number'
    """
    columns = _elements.events(run, "sent", "ack-received", "timeout", connection=connection, part=part)
    time, packet, event = columns["time_s"], columns["packet"], columns["event"]
    until = _elements.end(run.events(connection, part))
    # SYN and FIN have no packet number.
    sent, acknowledged = (event == "sent") & (packet >= 0), event == "ack-received"
    again = sent & (columns["transmission"] > 1)
    # Acknowledgements are cumulative.
    steps = np.concatenate([[0], np.maximum.accumulate(packet[acknowledged])])
    with _elements.over_time(columns, 4.2, until, bad_periods, ax) as (figure, axes):
        axes.plot(
            np.concatenate([[0.0], time[acknowledged], [until]]),
            np.append(steps, steps[-1]),
            drawstyle="steps-post",
            gid="acknowledged",
            zorder=1.5,
            **_elements.ACKNOWLEDGED,
        )
        _elements.marks(axes, time[sent & ~again], packet[sent & ~again], _elements.FIRST, "first")
        _elements.marks(axes, time[again], packet[again], _elements.AGAIN, "again")
        _elements.rug(axes, time[event == "timeout"])
        axes.set_ylim(bottom=0)
        axes.set_ylabel("packet number")
        _elements.title(axes, run, connection, part)
        _elements.legend(
            figure, axes, "sent", "again", "acknowledged", "timeout", shaded=len(bad_periods) > 0
        )
    return result(figure, ax)


def cwnd(
    run: Run,
    bad_periods: Periods = (),
    *,
    connection: str | None = None,
    part: int = 0,
    ax: Drawn | None = None,
) -> Drawn:
    """Draw the congestion window, the slow-start threshold and the data in flight of the source.

    Parameters
    ----------
    run : Run
        A run made with `series=True`.
    bad_periods : sequence of (float, float), optional
        As in `time_sequence`.
    connection, part
        As in `time_sequence`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into, instead of creating a figure.

    Returns
    -------
    DataFigure or Axes
        The figure, or the axes that were given; it carries all of the run's series.

    Examples
    --------
    >>> import lasthop, lasthop.plots
    >>> run = lasthop.run("ebsn-example", "basic", series=True)
    >>> fig = lasthop.plots.cwnd(run)
    >>> fig.axes[0].get_ylabel()
    'window (KB)'
    """
    series = run.series(connection, part)
    time = np.asarray(series["time_s"])
    until = _elements.end(series)
    of_columns = {
        "cwnd_bytes": _elements.CWND,
        "ssthresh_bytes": _elements.SSTHRESH,
        "flight_bytes": _elements.FLIGHT,
    }
    # QUIC does not report what is in flight.
    shown = {name: style for name, style in of_columns.items() if name in series}
    with _elements.over_time(series, 3.4, until, bad_periods, ax) as (figure, axes):
        for name, line_style in shown.items():
            held = np.asarray(series[name]) / 1000
            x, y = np.append(time, until), np.append(held, held[-1:])
            axes.plot(x, y, drawstyle="steps-post", gid=name, **line_style)
        # An unset threshold is far above the range of interest.
        axes.set_ylim(0, 1.15 * float(np.nanmax(series["cwnd_bytes"], initial=1.0)) / 1000)
        axes.set_ylabel("window (KB)")
        _elements.title(axes, run, connection, part)
        parts = [name.removesuffix("_bytes") for name in shown]
        _elements.legend(figure, axes, *parts, shaded=len(bad_periods) > 0)
    return result(figure, ax)


def segment_size(
    run: Run,
    bad_periods: Periods = (),
    *,
    connection: str | None = None,
    part: int = 0,
    ax: Drawn | None = None,
) -> Drawn:
    """Draw the segment size of a sender, against time.

    Schemes such as `vs-tcp` vary it. Triangles along the upper edge are timeouts.

    Parameters
    ----------
    run : Run
        A run made with `trace=True` and `series=True`.
    bad_periods : sequence of (float, float), optional
        As in `time_sequence`.
    connection, part
        As in `time_sequence`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into, instead of creating a figure.

    Returns
    -------
    DataFigure or Axes
        The figure, or the axes that were given. Its data has a row for each size, with how long it was used.

    Examples
    --------
    >>> import lasthop, lasthop.plots
    >>> run = lasthop.run("split-wlan", "vs-tcp", trace=True, series=True)
    >>> fig = lasthop.plots.segment_size(run, part=1)
    >>> fig.axes[0].get_ylabel()
    'payload of a segment (B)'
    """
    series = run.series(connection, part)
    timeouts = _elements.events(run, "timeout", connection=connection, part=part)["time_s"]
    until = _elements.end(run.events(connection, part))
    # The series has a row for every change of any quantity.
    changed = np.flatnonzero(np.diff(series["mss_bytes"], prepend=-1.0))
    begins, sizes = series["time_s"][changed], series["mss_bytes"][changed]
    held = np.append(begins[1:], until) - begins
    data = {"time_s": begins, "held_s": held, "mss_bytes": sizes}
    with _elements.over_time(data, 3.4, until, bad_periods, ax) as (figure, axes):
        x, y = np.append(begins, until), np.append(sizes, sizes[-1:])
        axes.plot(x, y, drawstyle="steps-post", gid="size", **_elements.SIZE)
        _elements.rug(axes, timeouts)
        axes.set_ylim(0, 1.1 * float(np.max(sizes, initial=1.0)))
        if held.sum() > 0:
            _elements.refer(figure, axes, {"mean over time": float(np.average(sizes, weights=held))})
        axes.set_ylabel("payload of a segment (B)")
        _elements.title(axes, run, connection, part)
        _elements.legend(figure, axes, "size", "timeout", shaded=len(bad_periods) > 0)
    return result(figure, ax)


def _within(
    series: Mapping[str, npt.NDArray[np.float64]], start: float, end: float
) -> dict[str, npt.NDArray[np.float64]]:
    """Return the rows of a series between two times, the first as it is at the start."""
    first = max(int(np.searchsorted(series["time_s"], start, side="right")) - 1, 0)
    last = int(np.searchsorted(series["time_s"], end, side="right"))
    rows = {name: values[first:last] for name, values in series.items()}
    return rows | {"time_s": np.maximum(rows["time_s"], start)}


def windows(
    runs: Mapping[str, Run],
    mss: float,
    *,
    references: Mapping[str, float] | None = None,
    shaded: Periods = (),
    connection: str | None = None,
    span: tuple[float, float] | None = None,
    part: int = 0,
    ax: Drawn | None = None,
) -> Drawn:
    """Draw the congestion windows of several runs on one time axis, in segments.

    Parameters
    ----------
    runs : mapping of str to Run
        Runs made with `series=True`, by their labels.
    mss : float
        Payload of a full segment, in bytes.
    references : mapping of str to float, optional
        Numbers of segments to draw as thin horizontal lines, by their labels.
    shaded : sequence of (float, float), optional
        Intervals of time to shade, in seconds.
    connection : str, optional
        The connection; by default the first.
    span : (float, float), optional
        The time to draw, in seconds; by default the whole run.
    part : int, default 0
        The part of the connection, if it is split; the last one of a run with fewer parts.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into, instead of creating a figure.

    Returns
    -------
    DataFigure or Axes
        The figure, or the axes that were given.

    Examples
    --------
    >>> import lasthop, lasthop.plots
    >>> runs = lasthop.run_each("ebsn-example", ["basic", "ebsn"], series=True)
    >>> fig = lasthop.plots.windows({run.scheme: run for run in runs}, mss=536)
    >>> fig.axes[0].get_ylabel()
    'congestion window (segments)'
    """
    series = {
        label: run.series(connection, part=min(part, len(run.parts(connection)) - 1))
        for label, run in runs.items()
    }
    if span is not None:
        series = {label: _within(each, *span) for label, each in series.items()}
    columns = {
        "line": [label for label, each in series.items() for _ in each["time_s"]],
        "time_s": np.concatenate([each["time_s"] for each in series.values()]),
        "cwnd_segments": np.concatenate([each["cwnd_bytes"] / mss for each in series.values()]),
    }
    until = max(_elements.end(each) for each in series.values()) if span is None else span[1]
    with _elements.over_time(columns, 3.4, until, shaded, ax) as (figure, axes):
        if span is not None:
            axes.set_xlim(*span)
        of_schemes = line_styles([run.scheme for run in runs.values()])
        for (label, each), line_style in zip(series.items(), of_schemes, strict=True):
            held = each["cwnd_bytes"] / mss
            x, y = np.append(each["time_s"], until), np.append(held, held[-1:])
            line = {"color": line_style["color"], "linestyle": line_style["linestyle"], "linewidth": 1.3}
            axes.plot(x, y, drawstyle="steps-post", label=_elements.literal(label), gid=label, **line)
        axes.set_ylim(bottom=0)
        _elements.refer(figure, axes, references or {})
        axes.set_ylabel("congestion window (segments)")
        legend(figure, axes, ncols=len(series), handlelength=3.0)
    return result(figure, ax)
