"""The figures of the paper, and further ones suggested by its text."""

from __future__ import annotations

from functools import partial

from lasthop.core.quantity import number
from lasthop.core.units import Scale
from lasthop.papers.evidence import Evidence, along
from lasthop.papers.paper import Plot
from lasthop.plots import DataFigure, packet_trace
from lasthop.plots.curves import Line, curve
from lasthop.results.samples import TOTAL

GOOD = 10.0
WIDE_MAX = 12_800.0
LOCAL_GOOD = 4.0
LOCAL_MAX = 2e6

THROUGHPUT = TOTAL
"""Total bits over total time: section 1 defines total data over connection time; section 5 has no other."""

PRINTED = {"basic": ([512.0, 1536.0], [8700.0, 4500.0]), "ebsn": ([1536.0], [9000.0])}
"""The throughputs that section 5.1 prints, by packet size; their scatter is 4 %."""

CLOCKS = ("10 ms", "50 ms", "100 ms", "200 ms", "300 ms", "500 ms", "1 s")
"""Clock granularities: that of section 3.3, the coarse ones of section 4.2.1, and beyond."""

BEYOND = ("1 s", "2 s", "4 s", "8 s", "16 s")
"""Mean bad periods: those of section 5.1, doubled up to four times the longest one."""

NOISE = (1e-6, 5e-6, 1e-5, 2e-5)
"""Bit error rates in good periods, from that of section 3.1 on."""

_KBPS = Scale("throughput", "kb/s", 1e3)
_MBPS = Scale("throughput", "Mb/s", 1e6)
_SIZE = Scale("packet size", "B", 1.0)
_BAD = Scale("mean bad period", "s", 1.0)
_TICK = Scale("clock granularity", "ms", 1e-3)
_TIMEOUTS = Scale("timeouts per transfer", "", 1.0)
_GAIN = Scale("gain of EBSN", "%", 0.01)


def ceiling(good: float, bad: float, maximum: float) -> float:
    """Return the throughput bound of a channel with good and bad periods (section 5.1)."""
    return maximum * good / (good + bad)


RESENT: dict[str, tuple[tuple[float, int], ...]] = {
    "basic": ((25.9, 44), (28.3, 44)),
    "local-recovery": ((13.75, 27),),
}
"""The retransmissions that sections 3.4 and 4.2.1 print, as time in seconds and packet."""


def _trace(scheme: str, evidence: Evidence) -> DataFigure:
    run = evidence.traces("trace")[scheme]
    until = float(run.events()["time_s"].max())
    bad_periods = evidence.scenario("trace").bad_periods(until)
    return packet_trace(run, modulo=90, bad_periods=bad_periods, printed=RESENT.get(scheme, ()))


def _line(
    label: str, evidence: Evidence, experiment: str, axis: str, metric: str, scheme: str, **at: str
) -> Line:
    sweep = evidence.sweep(experiment)
    found = along(sweep, axis, at, metric, scheme)
    return Line(
        label,
        [number(value) for value in sweep.values(axis)],
        [each.mean for each in found],
        [each.low for each in found],
        [each.high for each in found],
        scheme,
    )


def _by_size(scheme: str, evidence: Evidence) -> DataFigure:
    bads = evidence.sweep("wide").values("bad")
    lines = [_line(f"bad {bad}", evidence, "wide", "size", THROUGHPUT, scheme, bad=bad) for bad in bads]
    size, value = PRINTED[scheme]
    # Points of the paper's curves that are stated in the text.
    printed = [0.92 * each for each in value], [1.08 * each for each in value]
    lines.append(Line("paper", size, value, *printed, printed=True))
    ceilings = {f"ceiling, bad {bad}": ceiling(GOOD, number(bad), WIDE_MAX) for bad in bads}
    return curve(lines, _SIZE, _KBPS, references=ceilings)


def _resent(evidence: Evidence) -> DataFigure:
    bads = evidence.sweep("wide").values("bad")
    lines = [
        _line(f"{scheme}, bad {bad}", evidence, "wide", "size", "retransmitted_bytes", scheme, bad=bad)
        for scheme in ("basic", "ebsn")
        for bad in (bads if scheme == "basic" else bads[-1:])
    ]
    return curve(lines, _SIZE, Scale("retransmitted by the source", "KB", 1e3))


def _local(evidence: Evidence) -> DataFigure:
    lines = [_line(scheme, evidence, "local", "bad", THROUGHPUT, scheme) for scheme in ("basic", "ebsn")]
    x = lines[0].x
    lines.append(Line("ceiling", x, [ceiling(LOCAL_GOOD, bad, LOCAL_MAX) for bad in x]))
    return curve(lines, _BAD, _MBPS)


def _local_resent(evidence: Evidence) -> DataFigure:
    lines = [
        _line(scheme, evidence, "local", "bad", "retransmitted_bytes", scheme) for scheme in ("basic", "ebsn")
    ]
    return curve(lines, _BAD, Scale("retransmitted by the source", "KB", 1e3))


def _schemes(metric: str, scale: Scale, evidence: Evidence) -> DataFigure:
    schemes = evidence.sweep("wide").schemes
    lines = [_line(scheme, evidence, "wide", "bad", metric, scheme, size="512 B") for scheme in schemes]
    return curve(lines, _BAD, scale)


def _limit(metric: str, scale: Scale, evidence: Evidence) -> DataFigure:
    backoffs = evidence.sweep("limit").values("backoff")
    lines = [
        _line(f"{scheme}, up to {backoff}", evidence, "limit", "most", metric, scheme, backoff=backoff)
        for scheme in ("local-recovery", "ebsn")
        for backoff in backoffs
    ]
    return curve(lines, Scale("most retransmissions of a fragment", "", 1.0), scale)


def _clock(area: str, metric: str, scale: Scale, evidence: Evidence) -> DataFigure:
    lines = [
        _line(f"{scheme}, bad {bad}", evidence, f"clock-{area}", "tick", metric, scheme, bad=bad)
        for scheme in ("local-recovery", "ebsn")
        for bad in evidence.sweep(f"clock-{area}").values("bad")
    ]
    return curve(lines, _TICK, scale)


def _lossier(axis: str, scale: Scale, evidence: Evidence) -> DataFigure:
    sweep = evidence.sweep(axis)
    values = sweep.values(axis)
    found = [
        sweep.ratio(THROUGHPUT, *((scheme, {axis: value}) for scheme in ("ebsn", "basic"))).at()
        for value in values
    ]
    columns = (
        [each.mean - 1 for each in found],
        [each.low - 1 for each in found],
        [each.high - 1 for each in found],
    )
    return curve([Line("1536 B", [number(value) for value in values], *columns)], scale, _GAIN)


FIGURES = (
    Plot(
        "3",
        "Packet trace: basic TCP",
        ("trace",),
        partial(_trace, "basic"),
        "Rings are the retransmissions of the text: packet 44 at 25.9 and at 28.3 s.",
    ),
    Plot(
        "4",
        "Packet trace: local recovery",
        ("trace",),
        partial(_trace, "local-recovery"),
        "The ring is the retransmission of the text: packet 27 at 13.75 s.",
    ),
    Plot("5", "Packet trace: explicit feedback", ("trace",), partial(_trace, "ebsn")),
    Plot(
        "7",
        "Basic TCP, wide area: throughput against packet size",
        ("wide",),
        partial(_by_size, "basic"),
        (
            "Each bad period has an optimal packet size; larger packets lose more fragments. From 1408 B on "
            "the window holds two packets in place of three, and ours rises once more (`beyond-best`). Rings "
            "are the values of the text for bad periods of 1 s and 4 s, with twice its scatter."
        ),
    ),
    Plot(
        "8",
        "EBSN, wide area: throughput against packet size",
        ("wide",),
        partial(_by_size, "ebsn"),
        (
            "Without timeouts, larger packets only reduce the header overhead. The ring is the value "
            "of the text for 4 s."
        ),
    ),
    Plot("9", "Wide area: data retransmitted by the source", ("wide",), _resent),
    Plot("10", "Local area: throughput against mean bad period", ("local",), _local),
    Plot("11", "Local area: data retransmitted by the source", ("local",), _local_resent),
    Plot(
        "quench",
        "Source quench beside the others: throughput at 512 B",
        ("wide",),
        partial(_schemes, THROUGHPUT, _KBPS),
        "Section 4.2.2: a quench cannot help packets that are already under way.",
    ),
    Plot(
        "quench-timeouts",
        "Source quench beside the others: timeouts per transfer at 512 B",
        ("wide",),
        partial(_schemes, "timeouts", _TIMEOUTS),
    ),
    Plot(
        "limit",
        "The limit of retransmissions: throughput at a mean bad period of 4 s",
        ("limit",),
        partial(_limit, THROUGHPUT, _KBPS),
        "The printed limit of 13 is on the steep part of every curve.",
    ),
    Plot(
        "limit-timeouts",
        "The limit of retransmissions: timeouts per transfer",
        ("limit",),
        partial(_limit, "timeouts", _TIMEOUTS),
    ),
    Plot(
        "clock",
        "Clock granularity, wide area: timeouts per transfer at 576 B",
        ("clock-wide",),
        partial(_clock, "wide", "timeouts", _TIMEOUTS),
        "Sections 4.2.1 and 6: a finer clock has more timeouts during local recovery.",
    ),
    Plot(
        "clock-throughput",
        "Clock granularity, wide area: throughput at 576 B",
        ("clock-wide",),
        partial(_clock, "wide", THROUGHPUT, _KBPS),
    ),
    Plot(
        "clock-local",
        "Clock granularity, local area: timeouts per transfer",
        ("clock-local",),
        partial(_clock, "local", "timeouts", _TIMEOUTS),
    ),
    Plot(
        "bad",
        "Wide area, 1536 B: what EBSN gains over basic TCP with longer bad periods",
        ("bad",),
        partial(_lossier, "bad", _BAD),
        "Section 5.1 prints 100 % at 4 s, and expects much more beyond.",
    ),
    Plot(
        "ber",
        "Wide area, 1536 B, bad 4 s: what EBSN gains with more bit errors in good periods",
        ("ber",),
        partial(_lossier, "ber", Scale("bit error rate in good periods", "", 1.0)),
        "Section 6 expects greater improvements with higher bit error rates.",
    ),
)
