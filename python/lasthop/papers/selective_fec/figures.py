"""The figures of the paper, and further ones that its text suggests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lasthop.core.quantity import number
from lasthop.core.statistics import Estimate
from lasthop.core.units import Scale
from lasthop.papers.evidence import At, Evidence
from lasthop.papers.paper import Plot
from lasthop.papers.verdicts import Measured
from lasthop.plots import DataFigure
from lasthop.plots.curves import Line, curve

SCHEME = "selective-fec"
LABELS = {
    "none": "no FEC",
    "selective": "selective",
    "all": "total",
    "retransmitted": "retransmitted segments",
    "repeated-units": "repeated units",
}
UNIT_BITS = 480 * 8
ACK_BITS = 40 * 8

_MARGIN = Scale("fading margin", "dB", 1.0)
_TIME = Scale("completion time", "s", 1.0)
_UNITS = Scale("data units on the air for each segment", "", 1.0)
_BER = Scale("bit error rate in the bad state", "", 1.0)
_DELAY = Scale("time until a unit may be retransmitted", "ms", 1e-3)


def segments(evidence: Evidence, experiment: str) -> int:
    """Return the number of segments of a transfer."""
    return 50 if "fifty" in experiment else 10


def completion(evidence: Evidence, experiment: str, at: At) -> Estimate:
    """Estimate the completion time in seconds."""
    return evidence.sweep(experiment).mean("completion_time_s", SCHEME, at)


def units(evidence: Evidence, experiment: str, at: At) -> Measured:
    """Return the number of data units sent per segment of the file.

    Acknowledgements are not data units.
    """
    sweep = evidence.sweep(experiment)
    bits = sweep.sample("link_bits", SCHEME, at) - ACK_BITS * sweep.sample("acks_sent", SCHEME, at)
    return Measured(bits / UNIT_BITS / segments(evidence, experiment), "amount")


def _units(evidence: Evidence, experiment: str, at: At) -> Estimate:
    return units(evidence, experiment, at).at()


Estimated = Callable[[Evidence, str, At], Estimate]


def _line(label: str, x: list[float], found: list[Estimate]) -> Line:
    return Line(
        label, x, [each.mean for each in found], [each.low for each in found], [each.high for each in found]
    )


def _by_margin(
    of: Estimated, experiment: str, policies: tuple[str, ...], dopplers: tuple[str, ...], evidence: Evidence
) -> list[Line]:
    margins = evidence.sweep(experiment).values("margin")
    x = [number(margin) for margin in margins]
    lines = []
    for policy in policies:
        for doppler in dopplers:
            extra = {"doppler": doppler} if doppler else {}
            found = [
                of(evidence, experiment, {"margin": margin, "protect": policy, **extra}) for margin in margins
            ]
            label = LABELS[policy] if len(dopplers) == 1 else f"{LABELS[policy]}, {doppler}"
            lines.append(_line(label, x, found))
    return lines


_POLICIES = ("none", "selective", "all")


def _completion(experiment: str, dopplers: tuple[str, ...], evidence: Evidence) -> DataFigure:
    return curve(_by_margin(completion, experiment, _POLICIES, dopplers, evidence), _MARGIN, _TIME)


def _sent(experiment: str, printed: tuple[Line, ...], evidence: Evidence) -> DataFigure:
    lines = _by_margin(_units, experiment, _POLICIES, ("0.1",), evidence)
    return curve([*lines, *printed], _MARGIN, _UNITS)


PRINTED = (Line("paper", [1.0, 15.0, 15.0], [6.0, 6.0, 3.0], [5.9, 5.9, 2.9], [6.1, 6.1, 3.1], printed=True),)
"""The data units stated in section IV: with total protection, and without it at low loss rates."""


def _further(of: Estimated, scale: Scale, experiment: str, evidence: Evidence) -> DataFigure:
    policies = ("selective", "retransmitted", "repeated-units")
    return curve(_by_margin(of, experiment, policies, ("",), evidence), _MARGIN, scale)


def _printed(evidence: Evidence) -> DataFigure:
    rates = evidence.sweep("error-rate").values("ber")
    lines = [
        _line(
            LABELS[policy],
            [number(rate) for rate in rates],
            [completion(evidence, "error-rate", {"ber": rate, "protect": policy}) for rate in rates],
        )
        for policy in _POLICIES
    ]
    return curve(lines, _BER, _TIME)


def _feedback(evidence: Evidence) -> DataFigure:
    delays = evidence.sweep("feedback").values("delay")
    lines = [
        _line(
            f"no FEC, {doppler}",
            [number(delay) for delay in delays],
            [completion(evidence, "feedback", {"delay": delay, "doppler": doppler}) for delay in delays],
        )
        for doppler in evidence.sweep("feedback").values("doppler")
    ]
    return curve(lines, _DELAY, _TIME)


FIGURES = (
    Plot(
        "2",
        "Completion time of 10 segments, normalised Doppler frequencies 0.1 and 0.2",
        ("ten",),
        partial(_completion, "ten", ("0.1", "0.2")),
        (
            "Until the arrival of the last byte at the mobile station; its acknowledgement takes "
            "another 31 ms."
        ),
    ),
    Plot(
        "3",
        "Completion time of 50 segments, normalised Doppler frequency 0.1",
        ("fifty",),
        partial(_completion, "fifty", ("0.1",)),
    ),
    Plot("4", "Data units sent per segment, 10 segments", ("ten",), partial(_sent, "ten", PRINTED)),
    Plot("5", "Data units sent per segment, 50 segments", ("fifty",), partial(_sent, "fifty", ())),
    Plot(
        "3-fast",
        "Completion time of 50 segments at both Doppler frequencies",
        ("fifty",),
        partial(_completion, "fifty", ("0.1", "0.2")),
        "The paper shows 0.1 only.",
    ),
    Plot(
        "printed",
        "The bit error rate of the bad state, at a fading margin of 3 dB",
        ("error-rate",),
        _printed,
        (
            "With the printed 1e-5, at the left, the code is only overhead. From 1e-3 to 3e-2 a unit "
            "in the bad state is lost without the code and decoded with it; beyond 5e-2 the code also"
            " fails."
        ),
    ),
    Plot(
        "feedback",
        "The feedback delay, no FEC, at a fading margin of 3 dB",
        ("feedback",),
        _feedback,
        "Whether bursts or single errors are worse depends on the ratio of burst length to delay.",
    ),
    Plot(
        "further",
        "Other policies: completion time of 10 segments",
        ("further",),
        partial(_further, completion, _TIME, "further"),
        "Section V: every retransmitted segment, or every retransmitted data unit.",
    ),
    Plot(
        "further-units",
        "Other policies: data units sent per segment, 10 segments",
        ("further",),
        partial(_further, _units, _UNITS, "further"),
    ),
    Plot(
        "further-fifty",
        "Other policies: completion time of 50 segments",
        ("further-fifty",),
        partial(_further, completion, _TIME, "further-fifty"),
    ),
)
