"""The figures and the table of the paper, and figures that compare its readings."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from lasthop.core.statistics import Estimate
from lasthop.core.units import Scale
from lasthop.papers.evidence import Evidence
from lasthop.papers.paper import Plot
from lasthop.papers.verdicts import Measured, ratio
from lasthop.papers.wenp.network import DROPS, MARGIN, PRINTED, STATIONS
from lasthop.plots import DataFigure, windows
from lasthop.plots.curves import Line, curve

ALPHAS = (0.5, 0.6, 0.75, 0.9, 1.0)
THRESHOLDS = (1, 2, 3)
DIVISORS = (1, 4, 7, 8, 10)
FLAVOURS = ("tahoe", "reno", "newreno", "sack")

SCHEMES = {"basic": "standard", "wenp": "WENP"}

_MSS = 1460
_DROP = Scale("packets dropped", "%", 1.0)
_THROUGHPUT = Scale("throughput", "kb/s", 1e3)
_GAIN = Scale("improvement by WENP", "%", 0.01)
_TIME = Scale("time", "s", 1.0)
_X = [float(drop) for drop in DROPS]
_INSTANTS = np.linspace(0.0, 120.0, 1201)
"""Ten instants a second: finer than a figure shows, while all rows of a run would take 11 MB of SVG."""


def throughput(station: str) -> str:
    """Return the name of a station's throughput, in bits per second."""
    return f"connection.{station}.throughput_bps"


def mean(evidence: Evidence, experiment: str, scheme: str, station: str) -> Estimate:
    """Estimate the throughput of a station in bits per second."""
    return evidence.measured(experiment, scheme, throughput(station)).at()


def gain(evidence: Evidence, experiment: str, station: str) -> Measured:
    """Return the ratio of a station's throughput with WENP to that without, in paired runs."""
    metric = throughput(station)
    return ratio(*(evidence.values(experiment, scheme, metric) for scheme in ("wenp", "basic")))


def _line(label: str, found: list[Estimate], shift: float = 0.0, scheme: str = "") -> Line:
    y, low, high = ([getattr(each, name) - shift for each in found] for name in ("mean", "low", "high"))
    return Line(label, _X, y, low, high, scheme)


def _table(evidence: Evidence) -> DataFigure:
    lines = []
    for scheme, label in SCHEMES.items():
        found = [mean(evidence, "table", scheme, station) for station in STATIONS]
        lines.append(_line(f"{label}, ours", found, scheme=scheme))
        printed = [1e3 * value for value in PRINTED[scheme]]
        margin = [(1 - MARGIN) * value for value in printed], [(1 + MARGIN) * value for value in printed]
        lines.append(Line(f"{label}, paper", _X, printed, *margin, scheme=scheme, printed=True))
    return curve(lines, _DROP, _THROUGHPUT)


def _improvement(evidence: Evidence) -> DataFigure:
    found = [gain(evidence, "table", station).at() for station in STATIONS]
    paper = [
        with_it / without - 1 for with_it, without in zip(PRINTED["wenp"], PRINTED["basic"], strict=True)
    ]
    return curve([_line("ours", found, 1.0), Line("paper", _X, paper, printed=True)], _DROP, _GAIN)


def _steps(
    time: npt.NDArray[np.float64], values: npt.NDArray[np.float64], at: npt.NDArray[np.float64]
) -> list[float]:
    """Return the values of a step function at given times."""
    rows = np.maximum(np.searchsorted(time, at, side="right") - 1, 0)
    return [float(value) for value in np.asarray(values)[rows]]


def _cwnd(station: str, start: float, end: float, evidence: Evidence) -> DataFigure:
    runs = evidence.traces("trace")
    shown = {label: runs[scheme] for scheme, label in SCHEMES.items()}
    return windows(shown, _MSS, connection=station, span=(start, end))


def _sequence(stations: tuple[str, ...], evidence: Evidence) -> DataFigure:
    lines = []
    for station in stations:
        for scheme, label in SCHEMES.items():
            series = evidence.traces("trace")[scheme].series(station)
            sent = _steps(series["time_s"], series["snd_nxt_bytes"], _INSTANTS)
            name = label if len(stations) == 1 else f"MH {station}, {label}"
            lines.append(Line(name, _INSTANTS.tolist(), sent, scheme=scheme))
    return curve(lines, _TIME, Scale("sequence number sent", "MB", 1e6))


def _drops(evidence: Evidence) -> DataFigure:
    lines = []
    for scheme, label in SCHEMES.items():
        events = evidence.traces("trace")[scheme].events("4")
        lost = events["time_s"][events["event"] == "lost"]
        # A step at each loss.
        time = [0.0, *np.repeat(lost, 2).tolist(), float(events["time_s"][-1])]
        lines.append(Line(label, time, np.repeat(np.arange(len(lost) + 1.0), 2).tolist(), scheme=scheme))
    return curve(lines, _TIME, Scale("segments lost so far", "", 1.0))


def _cache(evidence: Evidence) -> DataFigure:
    series = evidence.traces("trace")["wenp"].agents()["ap"]
    cached = _steps(series["time_s"], series["cached_segments"], _INSTANTS)
    line = Line("headers", _INSTANTS.tolist(), cached)
    return curve([line], _TIME, Scale("cached headers, all stations", "", 1.0))


def _gains(experiments: dict[str, str], evidence: Evidence) -> DataFigure:
    lines = [
        _line(label, [gain(evidence, experiment, station).at() for station in STATIONS], 1.0)
        for experiment, label in experiments.items()
    ]
    return curve(lines, _DROP, _GAIN)


def _divisors(evidence: Evidence) -> DataFigure:
    lines = [
        _line(
            f"one in {divisor}" if divisor > 1 else "all",
            [mean(evidence, f"divisor-{divisor}", "basic", station) for station in STATIONS],
        )
        for divisor in DIVISORS
    ]
    lines.append(Line("paper", _X, [1e3 * value for value in PRINTED["basic"]], printed=True))
    return curve(lines, _DROP, _THROUGHPUT)


def _office(evidence: Evidence) -> DataFigure:
    lines = [
        _line(
            f"{label}, {where}",
            [mean(evidence, experiment, scheme, station) for station in STATIONS],
            scheme=scheme,
        )
        for experiment, where in (("table", "downloads alone"), ("office", "the whole network"))
        for scheme, label in SCHEMES.items()
    ]
    return curve(lines, _DROP, _THROUGHPUT)


def _flights(evidence: Evidence) -> DataFigure:
    cases = (
        ("standard", "flight-2", "basic"),
        ("WENP, threshold 2", "flight-2", "wenp"),
        ("WENP, threshold 3", "flight-3", "wenp"),
    )
    lines = []
    for label, experiment, scheme in cases:
        windows, timeouts = zip(*flights(evidence, experiment, scheme), strict=True)
        lines.append(Line(label, [float(window) for window in windows], list(timeouts), scheme=scheme))
    return curve(lines, Scale("window with two losses", "segments", 1.0), Scale("timeouts", "", 1.0))


def flights(evidence: Evidence, experiment: str, scheme: str) -> list[tuple[int, float]]:
    """Return each window in segments, and the timeouts after the loss of its first two segments."""
    sweep = evidence.sweep(experiment)
    return [
        (int(value.split()[0]), sweep.mean("timeouts", scheme, {"window": value}).mean)
        for value in sweep.values("window")
    ]


def _uploads(evidence: Evidence) -> DataFigure:
    lines = [
        _line(
            f"{label}, {where}",
            [mean(evidence, experiment, scheme, station) for station in STATIONS],
            scheme=scheme,
        )
        for experiment, where in (("table", "downloads"), ("upload", "uploads"))
        for scheme, label in SCHEMES.items()
    ]
    return curve(lines, _DROP, _THROUGHPUT)


_ALPHA = {f"alpha-{alpha}": f"alpha {alpha}" for alpha in ALPHAS}
_THRESHOLD = {f"threshold-{threshold}": f"threshold {threshold}" for threshold in THRESHOLDS}
_FLAVOUR = {f"flavour-{flavour}": flavour for flavour in FLAVOURS}

FIGURES = (
    Plot("table-4", "Throughput of each station", ("table",), _table),
    Plot("7", "Improvement by WENP against the drop rate", ("table",), _improvement),
    Plot("4-cwnd", "Congestion window of MH 4", ("trace",), partial(_cwnd, "4", 0.0, 120.0)),
    Plot("4-sequence", "Sequence number sent to MH 4", ("trace",), partial(_sequence, ("4",))),
    Plot("4-drops", "Segments to MH 4 that were dropped", ("trace",), _drops),
    Plot(
        "4-cache",
        "TCP headers that the access point caches",
        ("trace",),
        _cache,
        "Of all eight connections: segments in flight or in the queue.",
    ),
    Plot("5", "A snapshot of the congestion window of MH 4", ("trace",), partial(_cwnd, "4", 60.0, 80.0)),
    Plot("6", "Sequence numbers sent to MH 5 and 6", ("trace",), partial(_sequence, ("5", "6"))),
    Plot("6-7-8", "Sequence numbers sent to MH 7 and 8", ("trace",), partial(_sequence, ("7", "8"))),
    Plot(
        "divisor",
        "Standard TCP: how many of the dropped packets TCP loses",
        tuple(f"divisor-{divisor}" for divisor in DIVISORS),
        _divisors,
        (
            "If all drops of table I were losses of TCP, the worst stations would get a fraction of "
            "the throughput of table IV has."
        ),
    ),
    Plot("alpha", "What alpha changes", tuple(_ALPHA), partial(_gains, _ALPHA)),
    Plot(
        "threshold",
        "What the threshold changes",
        tuple(_THRESHOLD),
        partial(_gains, _THRESHOLD),
        "Little: nearly all of the effect is alpha.",
    ),
    Plot("flavour", "WENP over four flavours of TCP", tuple(_FLAVOUR), partial(_gains, _FLAVOUR)),
    Plot(
        "two-drops",
        "The first two segments of a window are lost: timeouts against the window",
        ("flight-2", "flight-3"),
        _flights,
        (
            "Section V-B prints that more than (N + 3)/alpha are required for N = 2 losses: 10 segments with "
            "alpha 0.5, 6.7 with 0.75. From (N + d)/alpha segments on, d new ones cause the duplicates that "
            "reveal the second loss; d is the threshold."
        ),
    ),
    Plot(
        "upload",
        "Uploads: throughput of each station",
        ("table", "upload"),
        _uploads,
        "No acknowledgement comes from the stations, so WENP sees no loss and changes nothing.",
    ),
    Plot(
        "office",
        "With fixed hosts that browse, query and mail beside the downloads",
        ("table", "office"),
        _office,
        "The wired side is not a bottleneck, so its other loads matter little.",
    ),
)
