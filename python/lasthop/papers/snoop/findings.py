"""The quantities of the claims, with their regions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lasthop._lasthop import Run
from lasthop.papers.claims import Finding, as_gain, printed_number
from lasthop.papers.evidence import Evidence
from lasthop.papers.snoop.figures import throughput
from lasthop.papers.snoop.network import (
    FAST_RETRANSMISSIONS,
    FIGURE_4,
    INTERVALS,
    NEVER,
    NO_ERRORS,
    PEAK_WITH_BEACONS,
    SYSTEM,
    TABLE_1,
    at_rate,
    moving,
    others,
)
from lasthop.papers.verdicts import (
    CLOSE,
    PERCENT,
    SAME,
    VERY_CLOSE,
    Criterion,
    Measured,
    Region,
    Unit,
    about,
    below,
    calculated,
    greatly_below,
    never,
    ratio,
    reaches,
    same,
    share_of,
    typical,
    within,
)

_MBPS = Unit("Mb/s", 1e6, 3)
_SECONDS = Unit("s", 1.0, 2)
_MARGIN = "within a tenth: our margin, since the bars of figure 4 show the scatter of single runs"
_NO_PROGRESS = 0.01
"""The share of snoop's throughput below which plain TCP makes no progress."""


def _over(evidence: Evidence, rate: str) -> Measured:
    """Return the ratio of the throughputs with and without snoop over the same errors."""
    ours, theirs = (throughput(evidence, at_rate(rate), scheme).values for scheme in ("snoop", "basic"))
    # Without errors the runs are deterministic.
    return calculated(float(ours[0] / theirs[0])) if rate == NO_ERRORS else ratio(ours, theirs)


def _staying(evidence: Evidence, scheme: str) -> float:
    """Return the deterministic throughput without errors and hand-offs."""
    return float(throughput(evidence, moving(NEVER), scheme).values[0])


def peak(printed: float, margin: float, reason: str, name: str, evidence: Evidence) -> Finding:
    """Compare the throughput of plain TCP without errors and hand-offs with a printed peak."""
    found = calculated(float(throughput(evidence, name, "basic").values[0]))
    region = printed_number(printed, margin / printed, reason, _MBPS)
    return Finding([Criterion(found, region, unit=_MBPS)], _MBPS.estimate(found.at()))


def point(scheme: str, rate: str, evidence: Evidence) -> Finding:
    """Compare a point of figure 4 with the printed one."""
    found, printed = throughput(evidence, at_rate(rate), scheme), 1e6 * FIGURE_4[scheme][rate]
    criterion = Criterion(found, printed_number(printed, SAME, _MARGIN, _MBPS), unit=_MBPS)
    return Finding([criterion], _MBPS.estimate(found.at()), f"ours is {found.at().mean / printed - 1:+.0%}")


def ratios(
    rates: Sequence[str], region: Region, rule: str, decimals: int, evidence: Evidence, note: str = ""
) -> Finding:
    """Judge the speed-up by snoop at some error rates."""
    criteria = [Criterion(_over(evidence, rate), region, rate) for rate in rates]
    text = ", ".join(
        f"{criterion.quantity.at().mean:.{decimals}f} at {criterion.label}" for criterion in criteria
    )
    return Finding(criteria, f"{text} times as much", note, "largest" if rule == "largest" else "every")


def one_run(printed: dict[str, float], evidence: Evidence) -> Finding:
    """Judge the share of runs like the printed one, at one error in 256 Kbits."""
    criteria, texts = [], []
    for scheme, value in printed.items():
        found = throughput(evidence, at_rate("256K"), scheme)
        region = about(value)
        like = (found.values / 1e6 >= region.low) & (found.values / 1e6 <= region.high)
        label = "Snoop" if scheme == "snoop" else "TCP"
        criteria.append(
            Criterion(share_of(like), typical(), f"{label} at {region.low:.2g} to {region.high:.2g} Mb/s")
        )
        texts.append(f"{label} {found.values.min() / 1e6:.2f} to {found.values.max() / 1e6:.2f} Mb/s")
    shares = ", ".join(
        f"{criterion.quantity.at().mean:.0%} of the runs: {criterion.label}" for criterion in criteria
    )
    return Finding(criteria, f"{shares}; all runs: {', '.join(texts)}")


def completes(evidence: Evidence) -> Finding:
    """Judge the share of runs that snoop does not complete with a loss of every other packet."""
    unfinished = evidence.values("every-other", "snoop", "finished") == 0
    time = Measured(evidence.values("every-other", "snoop", "completion_time_s")[~unfinished])
    text = (
        f"{int((~unfinished).sum())} of {len(unfinished)} runs, in {time.at().mean / 3600:.1f} h on average"
    )
    return Finding([Criterion(share_of(unfinished), never())], text)


def no_progress(evidence: Evidence) -> Finding:
    """Compare plain TCP with snoop at a loss of every other packet."""
    ours, theirs = (throughput(evidence, "every-other", scheme) for scheme in ("basic", "snoop"))
    found = ratio(ours.values, theirs.values)
    region = below(
        _NO_PROGRESS,
        'a hundredth of the throughput with snoop: our margin for "no progress"',
    )
    text = (
        f"{ours.at().mean:.0f} b/s, {PERCENT.estimate(found.at())} of {theirs.at().mean:.0f} b/s with snoop"
    )
    return Finding([Criterion(found, region, unit=PERCENT)], text)


def row(interval: str, evidence: Evidence) -> Finding:
    """Compare a row of table 1 with the printed one."""
    value, deviation = (1e6 * each for each in TABLE_1[interval])
    found = throughput(evidence, moving(interval), SYSTEM)
    low, high = value - 2 * deviation, value + 2 * deviation
    text = f"{_MBPS.text(low)} to {_MBPS.text(high)}: twice the printed standard deviation"
    criterion = Criterion(found, within(value, 2 * deviation, text), unit=_MBPS)
    return Finding([criterion], _MBPS.estimate(found.at()), f"ours is {found.at().mean / value - 1:+.1%}")


def frequent(evidence: Evidence) -> Finding:
    """Compare the throughput at each time between hand-offs with that without hand-offs."""
    whole = _staying(evidence, SYSTEM)
    criteria = [
        Criterion(
            Measured(throughput(evidence, moving(interval), SYSTEM).values / whole),
            reaches(VERY_CLOSE),
            interval,
            PERCENT,
        )
        for interval in INTERVALS
    ]
    text = ", ".join(f"{criterion.quantity.at().mean:.1%} at {criterion.label}" for criterion in criteria)
    return Finding(criteria, f"{text} of the throughput without hand-offs")


def degradation(evidence: Evidence) -> Finding:
    """Compare the bound of the text with the table's own numbers."""
    low, high = TABLE_1["1 s"][0] + 0.005, TABLE_1[NEVER][0] - 0.005
    found = calculated(1 - low / high)
    ours = 1 - throughput(evidence, moving("1 s"), SYSTEM).at().mean / _staying(evidence, SYSTEM)
    region = below(0.01, "less than 1 %: the text")
    text = f"at least {found.at().mean:.1%} by the rounded 1.42 and 1.45 Mb/s; ours is {ours:.1%}"
    note = "with two seconds or more between hand-offs, the rounded numbers allow it"
    return Finding([Criterion(found, region, unit=PERCENT)], text, note)


def no_loss(evidence: Evidence) -> Finding:
    """Judge the share of the runs without errors in which the source retransmits."""
    criteria = [
        Criterion(
            share_of(evidence.values(moving(interval), SYSTEM, "retransmitted_segments") > 0),
            never(),
            interval,
        )
        for interval in INTERVALS
    ]
    having = int(sum(criterion.quantity.values.sum() for criterion in criteria))
    return Finding(
        criteria,
        f"in {having or 'none'} of {sum(len(criterion.quantity.values) for criterion in criteria)} runs",
    )


def near_peak(rates: Sequence[str], evidence: Evidence) -> Finding:
    """Compare the throughput with hand-offs at low error rates with the peak."""
    criteria = [
        Criterion(
            Measured(throughput(evidence, moving("5 s", rate), SYSTEM).values / PEAK_WITH_BEACONS),
            reaches(CLOSE),
            rate,
            PERCENT,
        )
        for rate in rates
    ]
    return Finding(
        criteria,
        ", ".join(f"{criterion.quantity.at().mean:.1%} at {criterion.label}" for criterion in criteria),
    )


def as_without(rates: Sequence[str], evidence: Evidence) -> Finding:
    """Compare the throughput with hand-offs at high error rates with that without them."""
    criteria = []
    for rate in rates:
        ours = throughput(evidence, moving("5 s", rate), SYSTEM)
        theirs = throughput(evidence, moving(NEVER, rate), "snoop")
        criteria.append(Criterion(ratio(ours.values, theirs.values), same(), rate))
    text = ", ".join(f"{as_gain(criterion.quantity.at())} at {criterion.label}" for criterion in criteria)
    return Finding(criteria, text, "by figures 4 and 11 it is -30 % at 64K and -8 to +10 % at 128K to 1M")


def _longest_pauses(run: Run) -> float:
    """Return the longest pause between packets after a hand-off, averaged over the hand-offs of a run."""
    events = run.events()
    arrivals = events["time_s"][events["event"] == "delivered"]
    pauses = []
    # The host arrives at the next base station at multiples of 5 s, after a gap of at most 70 ms.
    for at in np.arange(5.0, arrivals[-1] - 2.0, 5.0):
        if at - 0.1 > arrivals[0]:
            first, last = np.searchsorted(arrivals, [at - 0.1, at + 2.0])
            pauses.append(float(np.diff(arrivals[first : last + 1]).max()))
    return float(np.mean(pauses))


def not_idle(evidence: Evidence) -> Finding:
    """Compare the longest pauses after hand-offs with those of fast retransmissions."""
    ours, theirs, plain = (
        evidence.quantity("trace-hand-offs-5s", scheme, _longest_pauses)
        for scheme in (SYSTEM, FAST_RETRANSMISSIONS, "basic")
    )
    criteria = [Criterion(ratio(ours.values, theirs.values), below(1.0, "less"))]
    pauses = [_SECONDS.estimate(each.at()) for each in (ours, theirs, plain)]
    text = f"{pauses[0]}; with fast retransmissions {pauses[1]}; with plain TCP {pauses[2]}"
    return Finding(criteria, text)


def reduced(evidence: Evidence) -> Finding:
    """Compare the longest pauses after hand-offs with and without fast retransmissions."""
    ours, plain = (
        evidence.quantity("trace-hand-offs-5s", scheme, _longest_pauses)
        for scheme in (FAST_RETRANSMISSIONS, "basic")
    )
    criteria = [Criterion(ratio(ours.values, plain.values), greatly_below())]
    return Finding(
        criteria, f"{_SECONDS.estimate(ours.at())}; with plain TCP {_SECONDS.estimate(plain.at())}"
    )


def lost_to_errors(rates: Sequence[str], evidence: Evidence) -> Finding:
    """Compare fast retransmissions after hand-offs with themselves without errors."""
    criteria = []
    whole = throughput(evidence, others("5 s"), FAST_RETRANSMISSIONS)
    for rate in rates:
        found = throughput(evidence, moving("5 s", rate), FAST_RETRANSMISSIONS)
        criteria.append(Criterion(ratio(found.values, whole.values), greatly_below(), rate))
    return Finding(
        criteria,
        ", ".join(f"{as_gain(criterion.quantity.at())} at {criterion.label}" for criterion in criteria),
    )
