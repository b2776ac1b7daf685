"""The figures of the paper, of runs that it only mentions, and further ones."""

from __future__ import annotations

from functools import partial

from lasthop.core.quantity import number
from lasthop.core.units import Scale
from lasthop.papers.evidence import At, Evidence, along
from lasthop.papers.lhack.network import (
    CEILING,
    MOBILES,
    MSS,
    OPTIMUM,
    PAYLOAD_BITS,
    messages_per_corruption,
)
from lasthop.papers.paper import Plot
from lasthop.plots import DataFigure, windows
from lasthop.plots.curves import Line, curve

_THROUGHPUT = Scale("throughput", "messages/s", 1.0)
_RATE = Scale("data messages for each that is corrupted", "", 1.0)
_BER = Scale("bit error rate", "", 1.0)
_LASTS = Scale("length of each hand-off", "s", 1.0)
_TRAFFIC = Scale("acknowledgements and lhacks for each data message", "", 1.0)


def _line(
    label: str, evidence: Evidence, experiment: str, axis: str, scheme: str, at: At | None = None
) -> Line:
    """Return the throughput, in messages per second, along an axis."""
    sweep = evidence.sweep(experiment)
    values = [number(value) for value in sweep.values(axis)]
    found = along(sweep, axis, at or {}, "throughput_bps", scheme)
    x = values if axis != "ber" else [round(messages_per_corruption(value), 2) for value in values]
    scaled = [[value / PAYLOAD_BITS for value in (each.mean, each.low, each.high)] for each in found]
    y, low, high = (list(column) for column in zip(*scaled, strict=True))
    return Line(label, x, y, low, high, scheme)


def _by_rate(experiment: str, evidence: Evidence) -> DataFigure:
    lines = [
        _line("with lhacks", evidence, experiment, "ber", "lhack"),
        _line("without", evidence, experiment, "ber", "basic"),
        # The text states the best value with lhacks, and a bound at 1/150 without.
        Line("paper: reaches", [250.0], [96.0], [95.5], [96.5], "lhack", printed=True),
        Line("paper: less than", [150.0], [60.0], scheme="basic", printed=True),
    ]
    return curve(lines, _RATE, _THROUGHPUT, references={"ceiling": CEILING})


def _variants(evidence: Evidence) -> DataFigure:
    cases = {"mobile destination": "rate", "mobile source": "mobile-source", "both mobile": "both-mobile"}
    lines = [
        _line(f"{case}, {how}", evidence, experiment, "ber", scheme)
        for scheme, how in (("lhack", "with"), ("basic", "without"))
        for case, experiment in cases.items()
    ]
    return curve(lines, _RATE, _THROUGHPUT, references={"ceiling": CEILING})


def _windows(experiment: str, evidence: Evidence) -> DataFigure:
    traces = evidence.traces(experiment)
    shown = {"with lhacks": traces["lhack"], "without": traces["basic"]}
    return windows(shown, MSS, references={"optimum": OPTIMUM, "paper: twice": 2 * OPTIMUM})


def _decrease(evidence: Evidence) -> DataFigure:
    shown = {
        "wireless, 1/125, with lhacks": evidence.typical("decrease", "lhack"),
        "wired, without": evidence.typical("decrease-wired", "basic"),
    }
    printed = {"paper: about 20": OPTIMUM, "paper: about 40": 2 * OPTIMUM}
    return windows(shown, MSS, references=printed, shaded=[(10.0, 25.0)])


def _recovery(evidence: Evidence) -> DataFigure:
    flavours = evidence.sweep("recovery").values("flavour")
    lines = [
        _line(f"{flavour}, {how}", evidence, "recovery", "ber", scheme, {"flavour": flavour})
        for scheme, how in (("lhack", "with lhacks"), ("basic", "without"))
        for flavour in (flavours if scheme == "lhack" else ["reno", "newreno"])
    ]
    return curve(lines, _RATE, _THROUGHPUT, references={"ceiling": CEILING})


def _third(evidence: Evidence) -> DataFigure:
    lines = [
        _line("each, with lhacks", evidence, "rate", "ber", "lhack"),
        _line("every third, with lhacks", evidence, "every-third", "ber", "lhack"),
        _line("each, without", evidence, "rate", "ber", "basic"),
        _line("every third, without", evidence, "every-third", "ber", "basic"),
    ]
    return curve(lines, _RATE, _THROUGHPUT, references={"ceiling": CEILING})


def _traffic(evidence: Evidence) -> DataFigure:
    lines = []
    for experiment, label in (("rate", "each acknowledged"), ("every-third", "every third acknowledged")):
        sweep = evidence.sweep(experiment)
        for scheme in ("lhack", "basic"):
            y = []
            for value in sweep.values("ber"):
                mean = {
                    metric: sweep.mean(metric, scheme, {"ber": value}).mean
                    for metric in ("acks_sent", "notices", "segments_sent")
                }
                y.append((mean["acks_sent"] + mean["notices"]) / mean["segments_sent"])
            x = [round(messages_per_corruption(number(value)), 2) for value in sweep.values("ber")]
            name = f"{label}, {'with lhacks' if scheme == 'lhack' else 'without'}"
            lines.append(Line(name, x, y, scheme=scheme))
    return curve(lines, _RATE, _TRAFFIC)


def _printed(evidence: Evidence) -> DataFigure:
    sweep = evidence.sweep("printed")
    lines = []
    for scheme, label in (("lhack", "with lhacks"), ("basic", "without")):
        line = _line(label, evidence, "printed", "ber", scheme)
        x = [number(value) for value in sweep.values("ber")]
        lines.append(Line(label, x, line.y, line.low, line.high, scheme))
    return curve(lines, _BER, _THROUGHPUT, references={"ceiling": CEILING})


def _handoff(evidence: Evidence) -> DataFigure:
    lines = [
        _line(f"mobile {end}, {how}", evidence, experiment, "lasts", scheme)
        for end, experiment in (("destination", "handoff"), ("source", "handoff-source"))
        for scheme, how in (("lhack", "with"), ("basic", "without"))
    ]
    return curve(lines, _LASTS, _THROUGHPUT, references={"ceiling": CEILING})


def _several(evidence: Evidence) -> DataFigure:
    x = [float(mobiles) for mobiles in MOBILES]
    lines = []
    for scheme, label in (("lhack", "with lhacks"), ("basic", "without")):
        found = [
            evidence.measured(f"several-{mobiles}", scheme, "throughput_bps").at() for mobiles in MOBILES
        ]
        y, low, high = (
            [getattr(each, name) / PAYLOAD_BITS for each in found] for name in ("mean", "low", "high")
        )
        lines.append(Line(label, x, y, low, high, scheme))
    return curve(lines, Scale("mobile hosts", "", 1.0), _THROUGHPUT, references={"ceiling": CEILING})


FIGURES = (
    Plot(
        "3",
        "Throughput against corruption rate, mobile destination",
        ("rate",),
        partial(_by_rate, "rate"),
        (
            "With lhacks, corruption causes retransmissions, and timeouts of segments lost twice; "
            "without lhacks, each corrupted message halves the window."
        ),
    ),
    Plot(
        "4",
        "Window against time, one message in 150 corrupted",
        ("window-150",),
        partial(_windows, "window-150"),
        ("The rate in the text of section 5, where the window with lhacks grows to twice the optimum."),
    ),
    Plot(
        "4-125",
        "Window against time, one message in 125 corrupted",
        ("window-125",),
        partial(_windows, "window-125"),
        "The rate of the figure's caption.",
    ),
    Plot(
        "5",
        "Window while an additional source takes 40 messages per second",
        ("decrease", "decrease-wired"),
        _decrease,
        (
            "The runs with the median throughput. The source is active in the grey interval. Lines mark "
            "the maximum window according to the text: about 20 in this interval, the optimum, and about "
            "40 later. A fall to one message (seed 1: at 25.9 s) is no timeout: partial acknowledgements "
            "deflate the window by what they acknowledge."
        ),
    ),
    Plot(
        "variants",
        "Mobile destination, mobile source, and both",
        ("rate", "mobile-source", "both-mobile"),
        _variants,
        (
            "The paper mentions the other two without printing them. A mobile source retransmits "
            "losses on its own link within a few messages; with both ends mobile, there are twice as "
            "many losses."
        ),
    ),
    Plot(
        "third",
        "The destination acknowledges every third message",
        ("rate", "every-third"),
        _third,
        "A window that grows with each acknowledgement grows a third as fast.",
    ),
    Plot("third-traffic", "What comes back to the source", ("rate", "every-third"), _traffic),
    Plot(
        "recovery",
        "Lhacks under other ways to recover",
        ("recovery",),
        _recovery,
        "Distinguishing corruption from congestion is worth as much as a better recovery.",
    ),
    Plot(
        "several",
        "Several mobile hosts at a router, one message in 150 corrupted: the throughput of all",
        tuple(f"several-{mobiles}" for mobiles in MOBILES),
        _several,
        (
            "Each has a connection of its own and an equal share of the last hop. The more share the path,"
            " the smaller are the windows that fill it, and the less there is to gain."
        ),
    ),
    Plot(
        "printed",
        "The printed bit error rates",
        ("printed",),
        _printed,
        "The upper end is printed 3·10⁻⁵, at which every ninth message would be corrupted; one in 75 is "
        "3.4·10⁻⁶.",
    ),
    Plot(
        "handoff",
        "A hand-off every 20 s during which all is lost",
        ("handoff", "handoff-source"),
        _handoff,
        "Section 6: with lhacks the window outlasts it, whichever end moves.",
    ),
)
