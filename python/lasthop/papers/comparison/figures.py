"""The tables and figures of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from lasthop.core.statistics import Estimate
from lasthop.core.units import Scale
from lasthop.papers.comparison.digitised import printed_curve, printed_events
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
from lasthop.papers.verdicts import Measured
from lasthop.plots import DataFigure
from lasthop.plots.curves import Line, curve
from lasthop.plots.histories import History, histories

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
_DISTANCE = Scale("mean distance between errors", "KB", 1.0)
_PALETTE = tuple(PROTOCOLS)


def throughput(evidence: Evidence, name: str, protocol: str) -> Measured:
    """Return the throughput of a protocol in an experiment, in bits per second."""
    return evidence.measured(name, PROTOCOLS[protocol].scheme, "throughput_bps")


def wired_goodput(evidence: Evidence, name: str, protocol: str) -> Measured:
    """Return the data of the transfer over the data that the source sent."""
    return evidence.measured(name, PROTOCOLS[protocol].scheme, "goodput")


def wireless_goodput(evidence: Evidence, name: str, protocol: str) -> Measured:
    """Return the data of the transfer over the data sent to the mobile host.

    All packets on the air that are not acknowledgements of the mobile host are data segments. A collision is
    one attempt of each of the two stations, repeated by the MAC.
    """
    data, attempts, collisions, acks = (
        evidence.values(name, PROTOCOLS[protocol].scheme, metric)
        for metric in ("delivered_bytes", "link_attempts", "collisions", "acks_sent")
    )
    return Measured(data / (DATA * (attempts - 2 * collisions - acks)))


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


_SEQUENCE = Scale("sequence number acknowledged", "MB", 1e6)
_WINDOW = Scale("congestion window", "KB", 1024.0)
_LARGEST = 65_535.0
"""The largest window of BSD, in bytes; that of the receiver is smaller."""


def _panel(panel: str, title: str, name: str, part: int, column: str, evidence: Evidence) -> History:
    """Return a quantity of the typical run of an experiment, with the events that the printed panel shows."""
    run = evidence.typical(name, PROTOCOLS[TRACED[name]].scheme)
    series, events = run.series(part=part), run.events(part=part)
    kinds, again = events["event"], (events["event"] == "sent") & (events["transmission"] > 1)
    shown = {
        "fast retransmissions": kinds == "fast-retransmit",
        "timeouts": kinds == "timeout",
        "retransmissions over the air": again | (kinds == "copied"),
    }
    rows = {what: (events["time_s"][shown[what]], times) for what, times in printed_events(panel).items()}
    ours = (
        series["time_s"],
        np.minimum(series[column], _LARGEST) if column == "cwnd_bytes" else series[column],
    )
    return History(title, ours, printed_curve(panel), rows)


def _over_time(
    figure: str, column: str, y: Scale, until: float, parts: dict[str, tuple[str, int]], evidence: Evidence
) -> DataFigure:
    """Draw a quantity of senders over time, by panel: (experiment, part of its connections)."""
    panels = [
        _panel(f"{figure}-{title.lower()}", title, name, part, column, evidence)
        for title, (name, part) in parts.items()
    ]
    return histories(panels, y, until=until)


_LL = {"LL-TCP-AWARE": ("trace-ll-tcp-aware", 0), "LL": ("trace-ll", 0)}
_ELN = {"E2E": ("trace-e2e", 0), "E2E-ELN": ("trace-e2e-eln", 0)}
_PARTS = {"wired": ("trace-split", 0), "wireless": ("trace-split", 1)}

_WIDE = (
    "A run in the wide area, that with the median throughput of ours. The printed curve is read off the "
    "vectors of the paper's PDF, within 0.3 s and 300 B (30 KB of sequence numbers)."
)
_CUT = (
    f"{_WIDE} Our windows above 64 KB are shown as 64 KB, where those of BSD end; the receiver's is smaller."
)


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
    *(
        Plot(
            figure,
            title,
            tuple(dict.fromkeys(name for name, _ in parts.values())),
            partial(_over_time, figure, column, y, until, parts),
            note,
        )
        for figure, title, column, y, until, parts, note in (
            ("4", "Congestion window of link-layer protocols", "cwnd_bytes", _WINDOW, 80.0, _LL, _CUT),
            ("5", "Sequence numbers of link-layer protocols", "snd_una_bytes", _SEQUENCE, 80.0, _LL, _WIDE),
            ("7", "Sequence numbers with and without ELN", "snd_una_bytes", _SEQUENCE, 250.0, _ELN, _WIDE),
            ("8", "Congestion window with and without ELN", "cwnd_bytes", _WINDOW, 250.0, _ELN, _CUT),
            (
                "10",
                "Sequence numbers of a split connection",
                "snd_una_bytes",
                _SEQUENCE,
                120.0,
                _PARTS,
                _WIDE,
            ),
            ("11", "Congestion windows of a split connection", "cwnd_bytes", _WINDOW, 120.0, _PARTS, _CUT),
        )
    ),
)
