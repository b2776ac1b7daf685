"""The tables and figures of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from lasthop.core.statistics import Estimate
from lasthop.core.units import Scale
from lasthop.papers.comparison.network import (
    BURSTS,
    DATA,
    DISTANCES,
    FIGURE_12,
    PRINTED,
    PROTOCOLS,
    SETTINGS,
    TABLE_5,
    at_distance,
    experiment,
)
from lasthop.papers.evidence import Evidence
from lasthop.papers.paper import Plot
from lasthop.papers.verdicts import Quantity
from lasthop.plots import DataFigure
from lasthop.plots.curves import Line, curve

LINK_LAYER = ("LL", "LL-TCP-AWARE", "LL-SMART", "LL-SMART-TCP-AWARE")
END_TO_END = ("E2E", "E2E-NEWRENO", "E2E-SMART", "E2E-IETF-SACK", "E2E-ELN", "E2E-ELN-RXMT")
SPLIT = ("SPLIT", "SPLIT-SMART")

TRACED = {
    "trace-ll-lan": "LL",
    "trace-ll": "LL",
    "trace-ll-tcp-aware": "LL-TCP-AWARE",
    "trace-e2e": "E2E",
    "trace-e2e-eln": "E2E-ELN",
    "trace-split": "SPLIT",
}
"""The protocols of the traced runs by experiment, in the wide area unless called LAN."""

_THROUGHPUT = Scale("throughput", "Mb/s", 1e6)
_TIME = Scale("time", "s", 1.0)
_DISTANCE = Scale("mean distance between errors", "KB", 1.0)
_PALETTE = tuple(PROTOCOLS)


def throughput(evidence: Evidence, name: str, protocol: str) -> Quantity:
    """Return the throughput of a protocol in an experiment, in bits per second."""
    return evidence.measured(name, PROTOCOLS[protocol].scheme, "throughput_bps")


def wired_goodput(evidence: Evidence, name: str, protocol: str) -> Quantity:
    """Return the data of the transfer over the data that the source sent."""
    return evidence.measured(name, PROTOCOLS[protocol].scheme, "goodput")


def wireless_goodput(evidence: Evidence, name: str, protocol: str) -> Quantity:
    """Return the data of the transfer over the data sent to the mobile host.

    All units on the air that are not acknowledgements of the mobile host are data segments.
    """
    data, attempts, acks = (
        evidence.values(name, PROTOCOLS[protocol].scheme, metric)
        for metric in ("delivered_bytes", "link_attempts", "acks_sent")
    )
    return Quantity(data / (DATA * (attempts - acks)))


def _line(label: str, x: Sequence[float], found: Sequence[Estimate], scheme: str = "") -> Line:
    y, low, high = ([getattr(each, name) for each in found] for name in ("mean", "low", "high"))
    return Line(label, x, y, low, high, scheme)


def _table(protocols: tuple[str, ...], evidence: Evidence) -> DataFigure:
    lines = []
    for setting, label in SETTINGS.items():
        there = [(x, name) for x, name in enumerate(protocols) if setting in PRINTED[name]]
        x = [float(place) for place, _ in there]
        found = [throughput(evidence, experiment(setting, name), name).at() for _, name in there]
        lines.append(_line(f"{label}, ours", x, found, scheme=setting))
        printed = [1e6 * PRINTED[name][setting][0] for _, name in there]
        lines.append(Line(f"{label}, paper", x, printed, scheme=setting, printed=True))
    figure = curve(lines, Scale("protocol", "", 1.0), _THROUGHPUT)
    (axes,) = figure.axes
    # No lines, since protocols are categories.
    for line in axes.lines:
        line.set_linestyle("none")
    axes.set_xlabel("")
    axes.set_xlim(-0.5, len(protocols) - 0.5)
    axes.set_xticks(range(len(protocols)), protocols, fontsize="small")
    if len(protocols) > len(LINK_LAYER):
        axes.tick_params(axis="x", labelrotation=20)
    return figure


def _rates(evidence: Evidence) -> DataFigure:
    x = [float(distance) for distance in DISTANCES]
    lines = []
    for name, printed in FIGURE_12.items():
        found = [throughput(evidence, at_distance(distance, name), name).at() for distance in DISTANCES]
        lines.append(_line(name, x, found, scheme=name))
        lines.append(Line(f"{name}, paper", x, [1e6 * value for value in printed], scheme=name, printed=True))
    figure = curve(lines, _DISTANCE, _THROUGHPUT, palette=_PALETTE)
    (axes,) = figure.axes
    axes.set_xscale("log", base=2)
    axes.set_xticks(DISTANCES, [str(distance) for distance in DISTANCES])
    return figure


def _bursts(evidence: Evidence) -> DataFigure:
    lines = []
    x = [float(packets) for packets in BURSTS]
    for name, printed in TABLE_5.items():
        found = [
            throughput(evidence, f"bursts-{packets}-{PROTOCOLS[name].id}", name).at() for packets in BURSTS
        ]
        lines.append(_line(name, x, found, scheme=name))
        paper = [1e6 * printed[packets] for packets in BURSTS]
        lines.append(Line(f"{name}, paper", x, paper, scheme=name, printed=True))
    return curve(lines, Scale("packets in a burst", "", 1.0), _THROUGHPUT, palette=_PALETTE)


def _over_time(
    column: str, y: Scale, most: float, until: float, parts: dict[str, tuple[str, int]], evidence: Evidence
) -> DataFigure:
    """Draw a quantity of the senders of parts of connections, by label: (experiment, part)."""
    at = np.linspace(0.0, until, 81)
    lines = []
    for label, (name, part) in parts.items():
        series = evidence.traces(name)[PROTOCOLS[TRACED[name]].scheme].series(part=part)
        rows = np.maximum(np.searchsorted(series["time_s"], at, side="right") - 1, 0)
        ended = at > series["time_s"][-1]
        values = np.where(ended, np.nan, np.minimum(series[column][rows], most))
        lines.append(Line(label, at.tolist(), values.tolist(), scheme=label))
    return curve(lines, _TIME, y, palette=_PALETTE if set(parts) <= set(PROTOCOLS) else ())


_CWND = partial(_over_time, "cwnd_bytes", Scale("congestion window", "KB", 1024.0), 65_535.0)
_SEQUENCE = partial(_over_time, "snd_una_bytes", Scale("sequence number acknowledged", "MB", 1e6), np.inf)
_LL = {"LL-TCP-AWARE": ("trace-ll-tcp-aware", 0), "LL": ("trace-ll", 0)}
_ELN = {"E2E": ("trace-e2e", 0), "E2E-ELN": ("trace-e2e-eln", 0)}
_PARTS = {"wired": ("trace-split", 0), "wireless": ("trace-split", 1)}

_WIDE = "One run in the wide area."
_CUT = f"{_WIDE} Windows above 64 KB are shown as 64 KB, where those of BSD end; the receiver's is smaller."


def _experiments(protocols: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        experiment(setting, name) for name in protocols for setting in SETTINGS if setting in PRINTED[name]
    )


FIGURES = (
    Plot("table-2", "Link-layer protocols (figure 3)", _experiments(LINK_LAYER), partial(_table, LINK_LAYER)),
    Plot("table-3", "End-to-end protocols (figure 6)", _experiments(END_TO_END), partial(_table, END_TO_END)),
    Plot("table-4", "Split-connection protocols (figure 9)", _experiments(SPLIT), partial(_table, SPLIT)),
    Plot(
        "table-5",
        "Bursts of losses, in the local area",
        tuple(f"bursts-{packets}-{PROTOCOLS[name].id}" for name in TABLE_5 for packets in BURSTS),
        _bursts,
    ),
    Plot(
        "12",
        "Throughput against the error rate, in the local area",
        tuple(at_distance(distance, name) for name in FIGURE_12 for distance in DISTANCES),
        _rates,
    ),
    Plot(
        "4",
        "Congestion window of link-layer protocols",
        ("trace-ll-tcp-aware", "trace-ll"),
        partial(_CWND, 80.0, _LL),
        _CUT,
    ),
    Plot(
        "5",
        "Sequence numbers of link-layer protocols",
        ("trace-ll-tcp-aware", "trace-ll"),
        partial(_SEQUENCE, 80.0, _LL),
        _WIDE,
    ),
    Plot(
        "7",
        "Sequence numbers with and without ELN",
        ("trace-e2e", "trace-e2e-eln"),
        partial(_SEQUENCE, 250.0, _ELN),
        _WIDE,
    ),
    Plot(
        "8",
        "Congestion window with and without ELN",
        ("trace-e2e", "trace-e2e-eln"),
        partial(_CWND, 250.0, _ELN),
        _CUT,
    ),
    Plot(
        "10",
        "Sequence numbers of a split connection",
        ("trace-split",),
        partial(_SEQUENCE, 120.0, _PARTS),
        _WIDE,
    ),
    Plot(
        "11",
        "Congestion windows of a split connection",
        ("trace-split",),
        partial(_CWND, 120.0, _PARTS),
        _CUT,
    ),
)
