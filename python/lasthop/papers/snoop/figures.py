"""The figures of the papers, and table 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from lasthop.core.statistics import Estimate
from lasthop.core.units import Scale
from lasthop.papers.evidence import Evidence
from lasthop.papers.paper import Plot
from lasthop.papers.snoop.network import (
    FAST_RETRANSMISSIONS,
    FIGURE_4,
    FIGURE_11,
    INTERVALS,
    LABELS,
    NEVER,
    NO_ERRORS,
    OTHERS,
    PERIODS,
    RATES,
    SENDERS,
    SYSTEM,
    TABLE_1,
    at_rate,
    moving,
    others,
    periods,
    tahoe,
)
from lasthop.papers.verdicts import Measured
from lasthop.plots import DataFigure
from lasthop.plots.curves import Line, curve

_THROUGHPUT = Scale("throughput", "Mb/s", 1e6)
_TIME = Scale("time", "s", 1.0)
_DISTANCE = Scale("mean number of bits from one error to the next", "", 1.0)
_SEQUENCE = Scale("sequence number acknowledged", "MB", 1e6)


def throughput(evidence: Evidence, name: str, scheme: str) -> Measured:
    """Return the throughput of a scheme in an experiment, in bits per second."""
    return evidence.measured(name, scheme, "throughput_bps")


def _line(label: str, found: Sequence[Estimate], scheme: str = "") -> Line:
    """Return a line over categories, which are numbered from zero."""
    y, low, high = ([getattr(each, name) for each in found] for name in ("mean", "low", "high"))
    return Line(label, [float(x) for x in range(len(found))], y, low, high, scheme)


def _printed(label: str, values: Sequence[float], scheme: str) -> Line:
    x = [float(place) for place in range(len(values))]
    return Line(label, x, [1e6 * value for value in values], scheme=scheme, printed=True)


def _over_categories(lines: Sequence[Line], x: Scale, labels: Sequence[str]) -> DataFigure:
    figure = curve(lines, x, _THROUGHPUT)
    (axes,) = figure.axes
    axes.set_xticks(range(len(labels)), labels)
    return figure


def _rates(evidence: Evidence) -> DataFigure:
    lines = []
    for scheme, printed in FIGURE_4.items():
        found = [throughput(evidence, at_rate(rate), scheme).at() for rate in printed]
        lines.append(_line(LABELS[scheme], found, scheme))
        lines.append(_printed(f"{LABELS[scheme]}, paper", list(printed.values()), scheme))
    return _over_categories(lines, _DISTANCE, list(FIGURE_4["basic"]))


def _intervals(evidence: Evidence) -> DataFigure:
    lines = []
    for scheme in (*OTHERS, SYSTEM):
        name = moving if scheme == SYSTEM else others
        found = [throughput(evidence, name(interval), scheme).at() for interval in TABLE_1]
        lines.append(_line(scheme, found, scheme))
    with_tahoe = [throughput(evidence, tahoe(interval), FAST_RETRANSMISSIONS).at() for interval in INTERVALS]
    lines.append(_line(f"{FAST_RETRANSMISSIONS}, Tahoe", with_tahoe, FAST_RETRANSMISSIONS))
    lines.append(_printed(f"{SYSTEM}, paper", [value for value, _ in TABLE_1.values()], SYSTEM))
    return _over_categories(lines, Scale("time between hand-offs", "", 1.0), list(TABLE_1))


def _moving_rates(evidence: Evidence) -> DataFigure:
    def found(interval: str, scheme: str) -> list[Estimate]:
        return [throughput(evidence, moving(interval, rate), scheme).at() for rate in RATES]

    lines = [
        *(_line(scheme, found("5 s", scheme), scheme) for scheme in ("basic", FAST_RETRANSMISSIONS, SYSTEM)),
        _line("snoop without hand-offs", found(NEVER, "snoop"), "snoop"),
        _printed(f"{SYSTEM}, paper", list(FIGURE_11.values()), SYSTEM),
    ]
    return _over_categories(lines, _DISTANCE, list(RATES))


def _sequences(name: str, until: float, labels: Mapping[str, str], evidence: Evidence) -> DataFigure:
    """Draw sequence numbers against the time since the transfer began, of schemes by their labels."""
    at = np.linspace(0.0, until, 241)
    lines = []
    for scheme, label in labels.items():
        series = evidence.traces(name)[scheme].series()
        time = series["time_s"] - series["time_s"][0]
        rows = np.maximum(np.searchsorted(time, at, side="right") - 1, 0)
        values = np.where(at > time[-1], np.nan, series["snd_una_bytes"][rows])
        lines.append(Line(label, at.tolist(), values.tolist(), scheme=scheme))
    figure = curve(lines, _TIME, _SEQUENCE)
    (axes,) = figure.axes
    for line in axes.lines:
        line.set_markevery(20)
    return figure


def _scatter(evidence: Evidence) -> DataFigure:
    lines = []
    for scheme in SENDERS.values():
        y = []
        for period in PERIODS:
            values = throughput(evidence, periods(period), scheme).values
            y.append(float(values.std(ddof=1) / values.mean()))
        lines.append(Line(LABELS[scheme], [float(x) for x in range(len(PERIODS))], y, scheme=scheme))
    figure = curve(
        lines,
        Scale("mean length of good and bad periods", "", 1.0),
        Scale("standard deviation of a run's throughput", "%", 0.01),
    )
    (axes,) = figure.axes
    axes.set_xticks(range(len(PERIODS)), PERIODS)
    return figure


FIGURES = (
    Plot(
        "4",
        "Throughput against the error rate (MobiCom 4, WINET 7)",
        tuple(at_rate(rate) for rate in (*RATES, NO_ERRORS)),
        _rates,
    ),
    Plot(
        "5",
        "Sequence numbers at one error in 256 Kbits (MobiCom 5, WINET 8)",
        ("trace-256K",),
        partial(_sequences, "trace-256K", 350.0, {"snoop": "Snoop", "basic": "TCP"}),
        "One run.",
    ),
    Plot(
        "table-1",
        "Throughput against the time between hand-offs (WINET table 1)",
        (*map(moving, TABLE_1), *map(others, TABLE_1), *map(tahoe, INTERVALS)),
        _intervals,
        "Without errors. The papers measured their own scheme only.",
    ),
    Plot(
        "9",
        "Sequence numbers with a hand-off every 10 s (WINET 9)",
        ("trace-hand-offs-10s",),
        partial(
            _sequences,
            "trace-hand-offs-10s",
            90.0,
            {scheme: scheme for scheme in (SYSTEM, FAST_RETRANSMISSIONS, "basic")},
        ),
        "One run without errors. The paper shows its own scheme only.",
    ),
    Plot(
        "11",
        "Throughput against the error rate, with a hand-off every 5 s (WINET 11)",
        tuple(moving(interval, rate) for interval in ("5 s", NEVER) for rate in RATES),
        _moving_rates,
    ),
    Plot(
        "two-state",
        "Scatter of the throughput on a channel of two states",
        tuple(periods(period) for period in PERIODS),
        _scatter,
        (
            "One error in 8 Mbits half of the time, one in 64 Kbits otherwise. WINET 1995 abandoned "
            "such a channel, since its means converged very slowly, and does not state its "
            "parameters."
        ),
    ),
)
