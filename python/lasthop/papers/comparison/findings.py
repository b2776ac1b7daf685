"""The quantities of the claims, with their regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lasthop._lasthop import Run
from lasthop.papers.claims import Finding, as_gain, printed_number
from lasthop.papers.comparison.digitised import printed_curve
from lasthop.papers.comparison.figures import (
    throughput,
    wired_goodput,
    wireless_goodput,
)
from lasthop.papers.comparison.network import (
    BURSTS,
    DATA,
    DISTANCES,
    FIGURE_12,
    PEAK,
    PRINTED,
    PROTOCOLS,
    SETTINGS,
    TABLE_5,
    at_distance,
    experiment,
)
from lasthop.papers.comparison.sawtooth import HALVES, cut, growth
from lasthop.papers.evidence import Evidence
from lasthop.papers.verdicts import (
    PERCENT,
    SAME,
    Criterion,
    Measured,
    Region,
    Unit,
    about,
    about_gain,
    above,
    below,
    calculated,
    difference,
    never,
    ratio,
    same,
    share_of,
    typical,
    within,
)

_MBPS = Unit("Mb/s", 1e6, 2)
_MARGIN = "within a tenth: our margin, since the paper does not state a scatter"
_BSD_WINDOW = 65_535
"""The largest window of BSD, in bytes."""
_GOODPUT = 0.005
"""Margin of goodput: a fifth of the cost of the losses."""


def _of(evidence: Evidence, setting: str, protocol: str) -> Measured:
    return throughput(evidence, experiment(setting, protocol), protocol)


def _over(evidence: Evidence, setting: str, ours: str, theirs: str) -> Measured:
    """Return the ratio of the throughputs of two protocols over the same errors."""
    return ratio(_of(evidence, setting, ours).values, _of(evidence, setting, theirs).values)


def number(setting: str, protocol: str, evidence: Evidence) -> Finding:
    """Compare a throughput of tables 2 to 4 with the printed one."""
    found, printed = _of(evidence, setting, protocol), 1e6 * PRINTED[protocol][setting][0]
    at = found.at()
    note = f"ours is {at.mean / printed - 1:+.0%}"
    criterion = Criterion(found, printed_number(printed, SAME, _MARGIN, _MBPS), unit=_MBPS)
    return Finding([criterion], _MBPS.estimate(at), note)


def goodput(setting: str, protocol: str, evidence: Evidence) -> Finding:
    """Compare the goodput of both paths with the printed one."""
    criteria = []
    paths = (
        ("wireless", wireless_goodput, PRINTED[protocol][setting][1]),
        ("wired", wired_goodput, PRINTED[protocol][setting][2]),
    )
    for path, of, printed in paths:
        found = of(evidence, experiment(setting, protocol), protocol)
        low, high = printed - 100 * _GOODPUT, printed + 100 * _GOODPUT
        text = (
            f"{path} {low:.1f} to {high:.1f} %: our margin, a fifth of the cost of the losses, since "
            "the paper does not state a scatter"
        )
        criteria.append(Criterion(found, within(printed / 100, _GOODPUT, text), path, PERCENT))
    means = " and ".join(f"{100 * criterion.quantity.at().mean:.1f} %" for criterion in criteria)
    return Finding(criteria, means)


def ratios(
    pairs: Sequence[tuple[str, str, str]], region: Region, decimals: int, evidence: Evidence, note: str = ""
) -> Finding:
    """Judge ratios of throughput: (setting, protocol, other protocol)."""
    criteria = [
        Criterion(
            _over(evidence, setting, ours, theirs), region, f"{ours} over {theirs}, {SETTINGS[setting]}"
        )
        for setting, ours, theirs in pairs
    ]
    text = "; ".join(
        f"{criterion.quantity.at().mean:.{decimals}f} ({criterion.label})" for criterion in criteria
    )
    return Finding(criteria, text, note)


def behind(setting: str, ours: str, theirs: str, region: Region, evidence: Evidence) -> Finding:
    """Judge the relative difference of a protocol to a faster one."""
    behind = Measured(1 - _over(evidence, setting, ours, theirs).values)
    return Finding([Criterion(behind, region, unit=PERCENT)], f"{PERCENT.estimate(behind.at())} behind")


def of_peak(setting: str, share: float, evidence: Evidence) -> Finding:
    """Compare plain TCP with a share of the peak throughput."""
    found = Measured(_of(evidence, setting, "E2E").values / PEAK[setting])
    region = below(share, f"less than {share:.0%} of the maximum")
    return Finding([Criterion(found, region, unit=PERCENT)], f"{PERCENT.estimate(found.at())} of the maximum")


def no_timeouts(
    names: Sequence[str], settings: Sequence[str], metrics: Sequence[str], evidence: Evidence
) -> Finding:
    """Judge the share of runs with a nonzero counter of losses."""
    criteria = []
    for name in names:
        for setting in settings:
            counts = [
                evidence.values(experiment(setting, name), PROTOCOLS[name].scheme, metric)
                for metric in metrics
            ]
            found = share_of(np.sum(counts, axis=0) > 0)
            criteria.append(Criterion(found, never(), f"{name}, {SETTINGS[setting]}"))
    having_any = sum(int(criterion.quantity.values.sum()) for criterion in criteria)
    return Finding(
        criteria,
        f"in {having_any or 'none'} of {sum(len(criterion.quantity.values) for criterion in criteria)} runs",
    )


_METRICS = {"fast retransmissions": "fast_retransmits", "timeouts": "timeouts"}


def counts(protocol: str, printed: Mapping[str, int], evidence: Evidence) -> Finding:
    """Compare the counts of one printed run with those of our runs in the wide area, on both sides."""
    criteria, texts = [], []
    for what, number in printed.items():
        name, scheme = experiment("wan-32", protocol), PROTOCOLS[protocol].scheme
        found = evidence.values(name, scheme, _METRICS[what])
        for label, holds in (("at most", found <= number), ("at least", found >= number)):
            criteria.append(Criterion(share_of(holds), typical(), f"{label} {number} {what}", PERCENT))
        low, high = np.quantile(found, [0.05, 0.95])
        texts.append(f"{low:.0f} to {high:.0f} {what} in nine of ten runs")
    return Finding(criteria, ", ".join(texts))


_PRINTED_SEGMENT = 1388.0
"""The payload of the segments of figure 4, in bytes."""


def _like_figure_4(
    of: Callable[[Run], float], printed: Sequence[float], unit: Unit, evidence: Evidence
) -> Finding:
    found = evidence.quantity("trace-ll", PROTOCOLS["LL"].scheme, of)
    low, high = min(printed), max(printed)
    least, most = low * (1 - SAME), high * (1 + SAME)
    region = Region(
        least,
        most,
        f"{unit.text(least)} to {unit.text(most)}: our margin, a tenth beyond what "
        "smoothing over 0.3 to 0.7 s makes of the printed curve",
    )
    text = f"{unit.estimate(found.at())}; figure 4: {unit.text(low)} to {unit.text(high)} by its smoothing"
    return Finding([Criterion(found, region, unit=unit)], text, "ours is smoothed over half a second")


def figure_4_cut(evidence: Evidence) -> Finding:
    """Compare the cuts of LL's window in the wide area with those of the printed curve."""

    def of(run: Run) -> float:
        series = run.series()
        return cut(series["time_s"], series["cwnd_bytes"], DATA)

    printed = [cut(*printed_curve("4-ll"), _PRINTED_SEGMENT, half) for half in HALVES]
    return _like_figure_4(of, printed, PERCENT, evidence)


def figure_4_growth(evidence: Evidence) -> Finding:
    """Compare the growth of LL's window in the wide area with that of the printed curve."""

    def of(run: Run) -> float:
        series = run.series()
        return growth(series["time_s"], series["cwnd_bytes"])

    unit = Unit("kB/s", 1e3, 2)
    printed = [growth(*printed_curve("4-ll"), half) for half in HALVES]
    return _like_figure_4(of, printed, unit, evidence)


def window_stays(evidence: Evidence) -> Finding:
    """Judge the smallest window of the wired part after it has reached 64 KB, where it ends in BSD."""
    lowest = np.inf
    for run in evidence.runs("trace-split", PROTOCOLS["SPLIT"].scheme):
        windows = run.series(part=0)["cwnd_bytes"]
        lowest = min(lowest, windows[np.argmax(windows >= _BSD_WINDOW) :].min())
    region = above(_BSD_WINDOW - 1, "64 KB, where the window of BSD ends")
    return Finding(
        [Criterion(calculated(float(min(lowest, _BSD_WINDOW))), region)],
        "64 KB" if lowest >= _BSD_WINDOW else f"{lowest / 1024:.0f} KB",
    )


def grows_with_buffer(ours: str, theirs: str, larger: bool, evidence: Evidence) -> Finding:
    """Compare the gains of a protocol over another with the two socket buffers."""
    small, large = (_over(evidence, setting, ours, theirs) for setting in ("lan-8", "lan-32"))
    region = above(0.0, "more with 32 KB") if larger else below(0.0, "more with 8 KB")
    text = f"{as_gain(small.at())} with 8 KB, {as_gain(large.at())} with 32 KB"
    return Finding([Criterion(difference(large, small), region)], text)


def best(setting: str, protocol: str, others: Sequence[str], evidence: Evidence) -> Finding:
    """Compare a protocol with each of the others."""
    criteria = [
        Criterion(_over(evidence, setting, protocol, other), above(text="faster than each other"), other)
        for other in others
        if other != protocol and setting in PRINTED[other]
    ]
    closest = min(criteria, key=lambda criterion: criterion.quantity.at().mean)
    return Finding(criteria, f"{as_gain(closest.quantity.at(), 1)} over {closest.label}, the next")


def curve(protocol: str, evidence: Evidence) -> Finding:
    """Compare a protocol's throughput at each error rate of figure 12 with the printed one."""
    criteria, texts = [], []
    for distance, printed in zip(DISTANCES, FIGURE_12[protocol], strict=True):
        found = throughput(evidence, at_distance(distance, protocol), protocol)
        region = within(1e6 * printed, SAME * 1e6 * printed, f"as printed, {_MARGIN}")
        criteria.append(Criterion(found, region, f"{distance} KB", _MBPS))
        texts.append(f"{found.at().mean / 1e6:.2f} ({printed:.2f})")
    return Finding(criteria, f"{', '.join(texts)} at 16, 32, 64, 128 and 256 KB (printed)")


def _at(evidence: Evidence, distance: int, ours: str, theirs: str) -> Measured:
    one, other = (throughput(evidence, at_distance(distance, name), name) for name in (ours, theirs))
    return ratio(one.values, other.values)


def high_rate(theirs: str, region: Region, evidence: Evidence) -> Finding:
    """Compare the TCP-aware link layers with another protocol at the highest error rate."""
    names = ("LL-TCP-AWARE", "LL-SMART-TCP-AWARE")
    criteria = [Criterion(_at(evidence, 16, name, theirs), region, name) for name in names]
    text = ", ".join(f"{criterion.label} {criterion.quantity.at().mean:.2f} times" for criterion in criteria)
    return Finding(criteria, text)


def equally_well(evidence: Evidence) -> Finding:
    """Compare the protocols but E2E with the best one at the low error rates."""
    names = [name for name in FIGURE_12 if name != "E2E"]
    criteria = [
        Criterion(_at(evidence, distance, name, "LL-SMART-TCP-AWARE"), same(), f"{name} at {distance} KB")
        for distance in (128, 256)
        for name in names
        if name != "LL-SMART-TCP-AWARE"
    ]
    lowest = min(criteria, key=lambda criterion: criterion.quantity.at().mean)
    return Finding(
        criteria, f"the furthest is {lowest.label}: {as_gain(lowest.quantity.at())} beside the best"
    )


def sack_at_high_rates(evidence: Evidence) -> Finding:
    """Compare the two kinds of selective acknowledgements at high error rates."""
    criteria = [
        Criterion(_at(evidence, distance, "E2E-SMART", "E2E-IETF-SACK"), above(), f"{distance} KB")
        for distance in (16, 32)
    ]
    return Finding(
        criteria,
        ", ".join(f"{criterion.quantity.at().mean:.1f} times at {criterion.label}" for criterion in criteria),
    )


def _retransmitted_by_source(run: Run) -> tuple[float, float]:
    """Return the number of lost segments that the source retransmitted, and of all lost segments."""
    events = run.events()
    lost = np.unique(events["packet"][events["event"] == "lost"])
    again = np.unique(events["packet"][(events["event"] == "sent") & (events["transmission"] > 1)])
    return float(np.isin(lost, again).sum()), float(len(lost))


def both(evidence: Evidence) -> Finding:
    """Judge the share of the lost segments that the source retransmits under LL."""
    found = [_retransmitted_by_source(run) for run in evidence.runs("trace-ll-lan", PROTOCOLS["LL"].scheme)]
    again, lost = (np.asarray(each) for each in zip(*found, strict=True))
    share = ratio(again, lost)
    return Finding(
        [Criterion(share, about(0.9), unit=PERCENT)], f"{PERCENT.estimate(share.at())} of the lost segments"
    )


def eln_in_the_lan(evidence: Evidence) -> Finding:
    """Compare ELN with plain TCP in the local area."""
    found = _over(evidence, "lan-32", "E2E-ELN", "E2E")
    note = "table 3's own numbers are 0.93 and 0.70 Mb/s in the LAN, 1.33 times; it holds in the WAN"
    return Finding([Criterion(found, above(2.0, "over twice as much"))], f"{found.at().mean:.2f} times", note)


def _in_bursts(evidence: Evidence, packets: int, protocol: str) -> Measured:
    return throughput(evidence, f"bursts-{packets}-{PROTOCOLS[protocol].id}", protocol)


def burst(packets: int, protocol: str, evidence: Evidence) -> Finding:
    """Compare a throughput of table 5 with the printed one."""
    found, printed = _in_bursts(evidence, packets, protocol), 1e6 * TABLE_5[protocol][packets]
    criterion = Criterion(found, printed_number(printed, SAME, _MARGIN, _MBPS), unit=_MBPS)
    return Finding([criterion], _MBPS.estimate(found.at()), f"ours is {found.at().mean / printed - 1:+.0%}")


def better_in_bursts(evidence: Evidence) -> Finding:
    """Compare the two kinds of snoop with each length of bursts."""
    smart, aware = reversed(TABLE_5)
    criteria = [
        Criterion(
            ratio(_in_bursts(evidence, packets, smart).values, _in_bursts(evidence, packets, aware).values),
            about_gain(0.3),
            f"{packets} packets",
        )
        for packets in BURSTS
    ]
    text = ", ".join(f"{as_gain(criterion.quantity.at())} with {criterion.label}" for criterion in criteria)
    return Finding(criteria, text, rule="largest")


def peak(setting: str, evidence: Evidence) -> Finding:
    """Compare the throughput without errors with the printed peak."""
    found = throughput(evidence, f"peak-{setting}", "E2E")
    region = printed_number(PEAK[setting], 0.02, "our margin, four times the rounding of 1.35", _MBPS)
    return Finding([Criterion(found, region, unit=_MBPS)], _MBPS.estimate(found.at()))
