"""The figures of the paper, and those that compare its readings."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import numpy.typing as npt

from lasthop._lasthop import Run
from lasthop.core.quantity import number
from lasthop.core.statistics import Estimate
from lasthop.core.units import Scale
from lasthop.papers.evidence import At, Evidence
from lasthop.papers.paper import Plot
from lasthop.papers.verdicts import Measured
from lasthop.papers.vstcp.network import HEADER, SIZES, TABLE_4, rate_of, sweep_of
from lasthop.plots import DataFigure
from lasthop.plots.curves import Line, curve

LOSS = 9.999
"""The time of the packet loss in figure 1, in seconds."""

SPAN = 0.2
"""The averaging interval of the rates in figure 1, in seconds."""

LABELS = {"basic": "one", "i-tcp": "two", "metp": "nocon", "vs-tcp": "VS-TCP 1"}

_RATE = Scale("packet loss rate", "%", 1.0)
_THROUGHPUT = Scale("throughput", "kB/s", 1e3)
_NORMALISED = Scale("throughput, that of nocon is 1", "", 1.0)
_SIZE = Scale("segment size", "B", 1.0)
_TIME = Scale("time", "s", 1.0)

Where = tuple[str, str, At]
"""An experiment, a scheme and a grid point."""


def at_rate(evidence: Evidence, experiment: str, rate: float, **rest: str) -> dict[str, str]:
    """Return the grid point with a packet loss rate of `rate` percent."""
    channels = evidence.sweep(experiment).settings("channel")
    return {"channel": next(value for value, each in channels.items() if rate_of(each) == rate), **rest}


def rates(evidence: Evidence, experiment: str) -> list[float]:
    """Return the loss rates of a sweep, in percent."""
    return [rate_of(each) for each in evidence.sweep(experiment).settings("channel").values()]


def throughput(evidence: Evidence, experiment: str, scheme: str, at: At) -> Estimate:
    """Estimate the throughput in bits per second."""
    return evidence.sweep(experiment).mean("throughput_bps", scheme, at)


def _line(label: str, x: list[float], found: list[Estimate], scale: float = 1.0, scheme: str = "") -> Line:
    ends = ([getattr(each, name) * scale for each in found] for name in ("mean", "low", "high"))
    y, low, high = ends
    return Line(label, x, y, low, high, scheme)


def _series(evidence: Evidence) -> list[tuple[str, str, str]]:
    """Return the lines of figure 7 as (label, experiment, scheme)."""
    lines = [(LABELS[scheme], "rate", scheme) for scheme in evidence.sweep("rate").schemes]
    return [*lines, ("VS-TCP 2", "method-2", "vs-tcp")]


def _throughputs(evidence: Evidence) -> DataFigure:
    lines = []
    for label, experiment, scheme in _series(evidence):
        found = [
            throughput(evidence, experiment, scheme, at_rate(evidence, experiment, rate))
            for rate in rates(evidence, experiment)
        ]
        lines.append(_line(label, rates(evidence, experiment), found, 1 / 8, scheme))
    return curve(lines, _RATE, _THROUGHPUT)


def normalised(evidence: Evidence, experiment: str, scheme: str, rate: float) -> Measured:
    """Return the throughput relative to METP in the paper's campaign, in paired runs."""
    return evidence.ratio(
        "throughput_bps",
        (experiment, scheme, at_rate(evidence, experiment, rate)),
        ("rate", "metp", at_rate(evidence, "rate", rate)),
    )


def _normalised(evidence: Evidence) -> DataFigure:
    lines = []
    for label, experiment, scheme in _series(evidence):
        x = rates(evidence, experiment)
        found = [normalised(evidence, experiment, scheme, rate).at() for rate in x]
        lines.append(_line(label, x, found, scheme=scheme))
    return curve(lines, _RATE, _NORMALISED)


def _gains(evidence: Evidence) -> DataFigure:
    lines = []
    for label, experiment in (("VS-TCP 1", "rate"), ("VS-TCP 2", "method-2")):
        x = rates(evidence, experiment)
        lines.append(_line(label, x, [normalised(evidence, experiment, "vs-tcp", rate).at() for rate in x]))
    return curve(lines, _RATE, _NORMALISED, references={"nocon": 1.0})


def by_size(evidence: Evidence, experiment: str, rate: float) -> list[Estimate]:
    """Estimate the throughput of METP for each segment size, in bits per second."""
    sweep = evidence.sweep(experiment)
    points = [at_rate(evidence, experiment, rate, size=size) for size in sweep.values("size")]
    return [throughput(evidence, experiment, "metp", at) for at in points]


def _by_size(experiment: str, evidence: Evidence) -> DataFigure:
    lines = [
        _line(f"{rate:g} %", [float(size) for size in SIZES], by_size(evidence, experiment, rate), 1 / 8)
        for rate in rates(evidence, experiment)
    ]
    return curve(lines, _SIZE, _THROUGHPUT)


def best_size(evidence: Evidence, rate: float) -> int:
    """Return the size with the largest mean over common runs, in bytes."""
    sweep = evidence.sweep("sizes")
    points = [at_rate(evidence, "sizes", rate, size=size) for size in sweep.values("size")]
    samples = [sweep.sample("throughput_bps", "metp", at) for at in points]
    # All sizes have the same fades, so differences are more precise than means.
    runs = min(map(len, samples))
    return SIZES[int(np.argmax([sample[:runs].mean() for sample in samples]))]


def _table(evidence: Evidence) -> DataFigure:
    x = list(TABLE_4)
    ours = [float(best_size(evidence, rate)) for rate in x]
    paper = [float(size) for size in TABLE_4.values()]
    return curve([Line("ours", x, ours), Line("paper", x, paper, printed=True)], _RATE, _SIZE)


def sizes_sent(run: Run) -> npt.NDArray[np.int64]:
    """Return the payload of each segment that the base station sent, in bytes."""
    events = run.events(part=1)
    sent = (events["event"] == "sent") & (events["packet"] >= 0)
    return np.asarray(events["size_bytes"][sent]) - HEADER


def _distribution(trace: str, evidence: Evidence) -> DataFigure:
    lines = []
    for rate in (3, 11):
        counts: Counter[int] = Counter()
        for run in evidence.runs(f"{trace}-{rate}", "vs-tcp"):
            counts.update((sizes_sent(run) // 64 * 64).tolist())
        total = sum(counts.values())
        share = [100 * counts[size] / total for size in SIZES]
        lines.append(Line(f"{rate} % of packets lost", [float(size) for size in SIZES], share))
    return curve(lines, _SIZE, Scale("share of segments", "%", 1.0))


def _over_time(trace: str, evidence: Evidence) -> DataFigure:
    lines = []
    for rate in (3, 11):
        series = evidence.traces(f"{trace}-{rate}")["vs-tcp"].series(part=1)
        time = np.arange(10.0, 12.0, 0.02)
        rows = np.searchsorted(series["time_s"], time, side="right") - 1
        lines.append(Line(f"{rate} % of packets lost", time.tolist(), series["mss_bytes"][rows].tolist()))
    return curve(lines, _TIME, _SIZE)


def rate_over_time(run: Run) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the start of each interval in seconds, and the payload rate in bytes per second."""
    events = run.events()
    sent = (events["event"] == "sent") & (events["packet"] >= 0)
    edges = np.arange(LOSS - 1, 16.0, SPAN)
    payload = np.asarray(events["size_bytes"][sent], dtype=float) - HEADER
    bytes_sent, _ = np.histogram(events["time_s"][sent], edges, weights=payload)
    return edges[:-1], bytes_sent / SPAN


def _recovery_of_rate(evidence: Evidence) -> DataFigure:
    lines = []
    for label, experiment in (("normal TCP", "normal"), ("without congestion control", "uncontrolled")):
        time, rate = rate_over_time(evidence.traces(experiment)["basic"])
        lines.append(Line(label, time.tolist(), rate.tolist()))
    return curve(lines, _TIME, Scale("rate of sending", "kB/s", 1e3))


def _by_parameter(experiment: str, axis: str, label: str, evidence: Evidence) -> DataFigure:
    values = evidence.sweep(experiment).values(axis)
    lines = []
    for rate in rates(evidence, experiment):
        found = [
            throughput(evidence, experiment, "vs-tcp", at_rate(evidence, experiment, rate, **{axis: value}))
            for value in values
        ]
        lines.append(_line(f"{rate:g} %", [number(value) for value in values], found, 1 / 8))
    return curve(lines, Scale(label, "", 1.0), _THROUGHPUT)


def _by_bytes(key: str, evidence: Evidence) -> DataFigure:
    name = sweep_of(key)
    sweep = evidence.sweep(name)
    values = sweep.values(key)
    lines = []
    for rate in rates(evidence, name):
        for method in sweep.values("method"):
            points = [at_rate(evidence, name, rate, **{key: value, "method": method}) for value in values]
            found = [throughput(evidence, name, "vs-tcp", at) for at in points]
            label = f"VS-TCP {method}, {rate:g} %"
            lines.append(_line(label, [number(value) for value in values], found, 1 / 8))
    return curve(lines, Scale(NAMES[key], "B", 1.0), _THROUGHPUT)


def _filters(evidence: Evidence) -> DataFigure:
    x = rates(evidence, "filter")
    lines = []
    for value in evidence.sweep("filter").values("loss_rate"):
        points = [at_rate(evidence, "filter", rate, loss_rate=value) for rate in x]
        lines.append(_line(f"VS-TCP 2, {value}", x, [gain(evidence, "filter", at) for at in points]))
    return curve(lines, _RATE, _NORMALISED, references={"nocon": 1.0})


def gain(evidence: Evidence, experiment: str, at: At) -> Estimate:
    """Estimate the throughput of VS-TCP relative to METP at a grid point, in paired runs."""
    return evidence.sweep(experiment).ratio("throughput_bps", ("vs-tcp", at), ("metp", at)).at()


def counted(evidence: Evidence, what: str) -> str:
    """Return the swept window that counts `what`: packets, or bytes."""
    values = evidence.sweep("readings").values("window")
    return next(value for value in values if value.endswith(what))


GROWTHS = {
    ("per-ack", "duplicates"): "as printed",
    ("per-ack", "segments"): "a loss counts once",
    ("per-window", "segments"): "and growth per window",
}
"""The rules of growth and of losses that figures compare, with their labels."""


def _readings(what: str, evidence: Evidence) -> DataFigure:
    x, window = rates(evidence, "readings"), counted(evidence, what)
    lines = []
    for (growth, losses), label in GROWTHS.items():
        for method in ("1", "2"):
            rule = {"growth": growth, "losses": losses, "method": method, "window": window}
            points = [at_rate(evidence, "readings", rate, **rule) for rate in x]
            found = [gain(evidence, "readings", at) for at in points]
            lines.append(_line(f"VS-TCP {method}, {label}", x, found))
    return curve(lines, _RATE, _NORMALISED, references={"nocon": 1.0})


def _variants(experiments: dict[str, str], evidence: Evidence) -> DataFigure:
    lines = []
    for experiment, label in experiments.items():
        x = rates(evidence, experiment)
        lines.append(
            _line(label, x, [gain(evidence, experiment, at_rate(evidence, experiment, rate)) for rate in x])
        )
    return curve(lines, _RATE, _NORMALISED, references={"nocon": 1.0})


def _recoveries(evidence: Evidence) -> DataFigure:
    lines = []
    for experiment, label in (("window-10", "go-back-n"), ("selective", "selective repeat")):
        for scheme in ("metp", "vs-tcp"):
            x = rates(evidence, experiment)
            points = [at_rate(evidence, experiment, rate) for rate in x]
            found = [throughput(evidence, experiment, scheme, at) for at in points]
            lines.append(_line(f"{LABELS[scheme]}, {label}", x, found, 1 / 8, scheme))
    return curve(lines, _RATE, _THROUGHPUT)


NAMES = {
    "largest_size": "largest size s_mx",
    "smallest_size": "smallest size s_mn",
    "step": "step Δs",
    "initial_size": "initial size s_i",
}
"""The parameters in bytes, with the paper's symbols."""

_WINDOWS = {f"window-{packets}": f"{packets} packets" for packets in (8, 10, 12)}

FIGURES = (
    Plot(
        "1",
        "The rate of sending after one packet is lost",
        ("normal", "uncontrolled"),
        _recovery_of_rate,
        (
            "One connection, a round-trip time of 100 ms and a window of 46 packets, the capacity of "
            "the path; the loss is at 10 s."
        ),
    ),
    Plot(
        "3",
        "Throughput of nocon against the segment size, for six packet loss rates",
        ("sizes",),
        partial(_by_size, "sizes"),
        (
            "In the paper the maximum moves to the left as the loss rate increases (claim `moves-left`). "
            "The steps are due to the shortest error-free state of 22.4 ms, which is longer or shorter than "
            "a window."
        ),
    ),
    Plot("7a", "Throughput against the packet loss rate", ("rate", "method-2"), _throughputs),
    Plot("7b", "The same, normalised by nocon", ("rate", "method-2"), _normalised),
    Plot("7b-vs", "What the variable size gains", ("rate", "method-2"), _gains),
    Plot(
        "table-4",
        "The best segment size of nocon",
        ("sizes",),
        _table,
        (
            "The largest means. By the steps of figure 3 some of the printed sizes are clearly behind "
            "(claims `table-4-...`)."
        ),
    ),
    *(
        plot
        for method, suffix, trace in ((1, "", "trace"), (2, "-2", "trace-2"))
        for plot in (
            Plot(
                f"8{suffix}",
                f"Sizes of the segments that VS-TCP {method} sends",
                (f"{trace}-3", f"{trace}-11"),
                partial(_distribution, trace),
            ),
            Plot(
                f"8{suffix}-time",
                f"The segment size of VS-TCP {method} over two seconds",
                (f"{trace}-3", f"{trace}-11"),
                partial(_over_time, trace),
            ),
        )
    ),
    Plot(
        "loss-window",
        "VS-TCP 2: the number of packets L_w over which losses are counted",
        ("loss-window",),
        partial(_by_parameter, "loss-window", "loss_window", "L_w (packets)"),
    ),
    Plot(
        "wanted-loss",
        "VS-TCP 2: the wanted loss rate e_w",
        ("wanted-loss",),
        partial(_by_parameter, "wanted-loss", "wanted_loss", "e_w"),
    ),
    *(
        Plot(sweep_of(key), f"VS-TCP 1 and 2: the {name}", (sweep_of(key),), partial(_by_bytes, key))
        for key, name in NAMES.items()
    ),
    Plot(
        "filter",
        "VS-TCP 2: the loss rate as an average, and by a low-pass filter",
        ("filter",),
        _filters,
        "Section IV-B.1 names the filter; its packets are as old on average as those of the window.",
    ),
    Plot(
        "growth",
        "The rules of method 1 and 2 as printed, and with other readings; the window in packets",
        ("readings",),
        partial(_readings, "packets"),
        "As printed, each duplicate ACK decreases the size, and each acknowledgement increases it.",
    ),
    Plot(
        "growth-payload",
        "The same, the window in bytes",
        ("readings",),
        partial(_readings, " B"),
        (
            "A window then holds many small segments, and a go-back costs as much as with large ones,"
            " so growth per window falls behind."
        ),
    ),
    Plot(
        "window",
        "VS-TCP 1: windows of 8, 10 and 12 packets",
        tuple(_WINDOWS),
        partial(_variants, _WINDOWS),
    ),
    Plot(
        "recovery",
        "Go-back-n and selective repeat, nocon with 512 B",
        ("window-10", "selective"),
        _recoveries,
        (
            "Individually retransmitted segments are on the air 22.4 ms later, when the next error "
            "state is most probable; if they are lost again, with no later segments, they wait for "
            "the timer (figure 3-selective)."
        ),
    ),
    Plot(
        "3-selective",
        "Throughput of nocon with selective repeat against the segment size",
        ("sizes-selective",),
        partial(_by_size, "sizes-selective"),
    ),
)
