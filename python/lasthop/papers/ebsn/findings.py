"""What the runs say of the paper's claims."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from lasthop._lasthop import Run
from lasthop.core.quantity import number
from lasthop.core.statistics import Sample
from lasthop.papers.claims import (
    KBPS,
    Finding,
    as_gain,
)
from lasthop.papers.ebsn.figures import GOOD, LOCAL_GOOD, RESENT, THROUGHPUT, WIDE_MAX, ceiling
from lasthop.papers.evidence import Evidence, along, total
from lasthop.papers.verdicts import (
    GREATLY,
    PERCENT,
    Criterion,
    Measured,
    Region,
    Unit,
    about_gain,
    above,
    below,
    calculated,
    clearly_below,
    difference,
    greatly_below,
    labels_outside,
    largest,
    never,
    ratio,
    share_of,
    typical,
    within,
)

SCATTER = 0.04
"""Section 5: "the standard deviation for all results presented is less than 4%"."""

TWICE = 2 * SCATTER
REASON = "twice the scatter of 4 % that section 5 states for its results"
ONCE = "the scatter stated in section 5: a smaller difference is not visible in the figure"

KB = Unit("KB", 1e3, 1)
LARGE = ("1024 B", "1280 B", "1536 B")

OPTIMAL = {"1 s": "512 B", "3 s": "384 B"}
"""The optimal packet sizes of section 5.1, by the bad period."""


def _times(run: Run, kind: str, start: float, end: float) -> list[tuple[float, int]]:
    """Return the times and packets of the events of a kind within an interval."""
    events = run.events()
    found = (events["event"] == kind) & (start <= events["time_s"]) & (events["time_s"] < end)
    return list(zip(events["time_s"][found].tolist(), events["packet"][found].tolist(), strict=True))


def _resent(run: Run, start: float, end: float) -> list[tuple[float, int]]:
    """Return the times and packets of retransmissions within an interval."""
    events = run.events()
    found = (events["event"] == "sent") & (events["transmission"] > 1)
    found &= (start <= events["time_s"]) & (events["time_s"] < end)
    return list(zip(events["time_s"][found].tolist(), events["packet"][found].tolist(), strict=True))


def _in_runs(quantity: Measured) -> str:
    """Return in how many runs something holds, in words."""
    runs = len(quantity.values)
    return f"in {int(quantity.values.sum())} of {runs} runs"


def packet_27(evidence: Evidence) -> Finding:
    """Find the runs of the worked example with local recovery that time out for packet 27 as printed."""

    def timeouts(run: Run) -> list[tuple[float, int]]:
        return _times(run, "timeout", 10, 14)

    def printed(run: Run) -> bool:
        return any(packet == 27 and round(time, 2) == 13.75 for time, packet in timeouts(run))

    share = evidence.share("trace", "local-recovery", printed)
    first = timeouts(evidence.traces("trace")["local-recovery"])
    shown = ", ".join(f"packet {packet} at {time:.2f} s" for time, packet in first) or "no timeout"
    return Finding([Criterion(share, typical())], f"{_in_runs(share)}; the first: {shown}")


def no_retransmissions(evidence: Evidence) -> Finding:
    """Find the runs with local recovery that retransmit nothing in the second bad period."""
    share = evidence.share("trace", "local-recovery", lambda run: not _resent(run, 24, 28))
    later = _times(evidence.traces("trace")["local-recovery"], "timeout", 28, 29)
    note = "".join(
        f"in the first run the source times out {time - 28:.2f} s after the period" for time, _ in later[:1]
    )
    return Finding([Criterion(share, typical())], f"nothing {_in_runs(share)}", note)


def basic_losses(evidence: Evidence) -> Finding:
    """Compare the first and the last packet that basic TCP loses in the second bad period."""
    lost = [packet for _, packet in _times(evidence.traces("trace")["basic"], "lost", 24, 28.5)]
    text = f"packets {min(lost)} to {max(lost)}" if lost else "nothing is lost"
    exact = "44 to 50, as printed: the run is deterministic"
    criteria = [
        Criterion(calculated(float(min(lost, default=0))), within(44, 0, exact), "the first"),
        Criterion(calculated(float(max(lost, default=0))), within(50, 0, exact), "the last"),
    ]
    return Finding(criteria, text)


def basic_again(evidence: Evidence) -> Finding:
    """Compare when basic TCP retransmits the first lost packet."""
    again = _resent(evidence.traces("trace")["basic"], 24, 42)
    first = [(time, packet) for time, packet in again if packet == again[0][1]][:2]
    text = ", ".join(f"packet {packet} at {time:.1f} s" for time, packet in first) or "nothing"
    rounding = "25.85 to 25.95 s and 28.25 to 28.35 s: rounding of the printed digits"
    criteria = [
        Criterion(calculated(time), within(printed, 0.05, rounding), f"at {printed} s")
        for (time, _), (printed, _) in zip([*first, (0.0, 0), (0.0, 0)], RESENT["basic"], strict=False)
    ]
    criteria.append(
        Criterion(calculated(float(first[0][1] if first else 0)), within(44, 0, "packet 44"), "packet")
    )
    return Finding(criteria, text)


def basic_loses_all(evidence: Evidence) -> Finding:
    """Count the packets of basic TCP that arrive in bad periods."""
    events = evidence.traces("trace")["basic"].events()
    arrived = events["time_s"][events["event"] == "delivered"] % 14.0
    through = calculated(float(np.count_nonzero(arrived > 10.0)))
    region = within(0.0, 0.0, "none; the run is deterministic")
    return Finding([Criterion(through, region)], f"{through.at().mean:.0f} packets arrive in a bad period")


def clean(evidence: Evidence) -> Finding:
    """Find the runs with EBSN that have neither timeouts nor retransmissions."""

    def disturbed(run: Run) -> bool:
        return bool(run.metrics["timeouts"] or run.metrics["retransmitted_segments"])

    share = evidence.share("trace", "ebsn", disturbed)
    quiet = Measured(1 - share.values, "share")
    return Finding([Criterion(quiet, typical())], f"neither {_in_runs(quiet)}")


def misprint(_evidence: Evidence) -> Finding:
    """Calculate the printed maximum by the paper's own formula."""
    ours = calculated(ceiling(GOOD, 1.0, WIDE_MAX))
    region = within(11_800, 50, "11.75 to 11.85 kb/s: rounding of the printed digits")
    note = "the paper's own formula, 12.8 · 10 / (10 + 1), gives 11.64; the figures are drawn with it"
    return Finding([Criterion(ours, region, unit=KBPS)], KBPS.text(ours.at().mean), note)


def limit_binds(evidence: Evidence) -> Finding:
    """Find the transfers with timeouts under the printed limit of retransmissions."""
    sweep = evidence.sweep("limit")
    criteria = []
    for backoff in sweep.values("backoff"):
        having = sweep.nonzero_runs("timeouts", "ebsn", {"backoff": backoff, "most": "13"})
        criteria.append(Criterion(share_of(having), never(), backoff))
    shares = [criterion.quantity.at() for criterion in criteria]
    text = ", ".join(
        f"{share.mean:.0%} of transfers with waits up to {criterion.label}"
        for share, criterion in zip(shares, criteria, strict=True)
    )
    note = "not both at a mean bad period of 4 s: figure limit-timeouts; reading retransmissions=unlimited"
    return Finding(criteria, f"timeouts in {text}", note, "some")


def local_gain(evidence: Evidence) -> Finding:
    """Compare EBSN with basic TCP in the local area, at each bad period."""
    sweep = evidence.sweep("local")
    criteria = [
        Criterion(sweep.ratio(THROUGHPUT, ("ebsn", at), ("basic", at)), about_gain(0.5), at["bad"])
        for at in sweep.points()
    ]
    found = largest([criterion.quantity for criterion in criteria])
    best = max(criteria, key=lambda criterion: criterion.quantity.at().mean).label
    return Finding(criteria, f"up to {as_gain(found)} (bad {best})", rule="some")


def _beside_recovery(evidence: Evidence, metric: str) -> list[Sample]:
    """Return a metric under source quench and under local recovery alone, at all points, in paired runs."""
    sweep = evidence.sweep("wide")
    schemes = ("source-quench", "local-recovery")
    # Paired by point: runs of different points are not paired.
    samples = [[sweep.sample(metric, scheme, at) for scheme in schemes] for at in sweep.points()]
    shared = [[sample[: min(map(len, pair))] for sample in pair] for pair in samples]
    return [np.concatenate(side) for side in zip(*shared, strict=True)]


def quench(evidence: Evidence) -> Finding:
    """Compare the timeouts under source quench with those of local recovery alone."""
    pooled = _beside_recovery(evidence, "timeouts")
    found = ratio(*pooled)
    ours, theirs = (float(sample.mean()) for sample in pooled)
    beside = f"{found.at().mean:.2f} times as many as local recovery without it"
    text = f"{beside}: {ours:.2f} timeouts per transfer for {theirs:.2f}"
    region = above(0.5, "over half of those without it remain: our margin for not preventing them")
    return Finding([Criterion(found, region)], text)


def quench_gains(evidence: Evidence) -> Finding:
    """Compare goodput and throughput under source quench with those of local recovery alone."""
    region = below(1 + SCATTER, f"not over {SCATTER:.0%} more: {ONCE}")
    criteria = [
        Criterion(ratio(*_beside_recovery(evidence, metric)), region, label)
        for metric, label in ((THROUGHPUT, "throughput"), ("goodput", "goodput"))
    ]
    text = ", ".join(f"{as_gain(criterion.quantity.at(), 2)} {criterion.label}" for criterion in criteria)
    return Finding(criteria, f"{text}, beside local recovery alone, over all points")


def beyond_best(evidence: Evidence) -> Finding:
    """Compare neighbouring packet sizes from the printed optimum on, and the largest with the optimum."""
    sweep = evidence.sweep("wide")
    step = below(1 + SCATTER, f"no step goes up by over {SCATTER:.0%}: {ONCE}")
    whole = below(text="less with the largest packets than with the optimal ones")
    criteria, texts = [], []
    for bad, optimal in OPTIMAL.items():
        sizes = sweep.values("size")
        sizes = sizes[sizes.index(optimal) :]
        for smaller, larger in (*pairwise(sizes), (sizes[0], sizes[-1])):
            over, under = (("basic", {"bad": bad, "size": size}) for size in (larger, smaller))
            region = whole if (smaller, larger) == (sizes[0], sizes[-1]) else step
            criteria.append(
                Criterion(sweep.ratio(THROUGHPUT, over, under), region, f"{smaller} to {larger}, bad {bad}")
            )
        means = (sweep.mean(THROUGHPUT, "basic", {"bad": bad, "size": size}).mean for size in sizes)
        texts.append(f"{', '.join(f'{mean / 1e3:.1f}' for mean in means)} from {optimal} on, bad {bad}")
    found = labels_outside(criteria)
    return Finding(
        criteria, f"in kb/s: {'; '.join(texts)}", f"against it: {', '.join(found)}" if found else ""
    )


def fragmentation(evidence: Evidence) -> Finding:
    """Compare the cost of large packets with that on a link without fragments."""
    criteria, texts = [], []
    for bad, optimal in OPTIMAL.items():
        places = [("basic", {"bad": bad, "size": size}) for size in ("1536 B", optimal)]
        with_them, without = (
            evidence.sweep(name).ratio(THROUGHPUT, *places) for name in ("wide", "whole-packets")
        )
        # A decrease is negative, and a fifth of it is what counts as much.
        spared = difference(without, Measured((1 - GREATLY) * with_them.values + GREATLY))
        region = above(0.0, 'at least a fifth of the decrease, as for "much", is spared without fragments')
        criteria.append(Criterion(spared, region, f"bad {bad}"))
        texts.append(f"{as_gain(with_them.at())} with and {as_gain(without.at())} without, bad {bad}")
    return Finding(criteria, f"1536 B beside the optimal size: {'; '.join(texts)}")


def large_difference(evidence: Evidence) -> Finding:
    """Compare basic TCP with the theoretical maximum at the printed optima."""
    sweep = evidence.sweep("wide")
    criteria = [
        Criterion(
            replace(
                sweep.quantity(THROUGHPUT, "basic", {"bad": bad, "size": optimal}),
                per=ceiling(GOOD, number(bad), WIDE_MAX),
            ),
            greatly_below(),
            f"{optimal}, bad {bad}",
            PERCENT,
        )
        for bad, optimal in OPTIMAL.items()
    ]
    shares = (f"{criterion.quantity.at().mean:.1%} ({criterion.label})" for criterion in criteria)
    return Finding(criteria, f"{', '.join(shares)} of the maximum")


def scatter(evidence: Evidence) -> Finding:
    """Compare the scatter of throughput from run to run with the stated one, at every point."""
    sweep = evidence.sweep("wide")
    criteria, spreads = [], []
    for at in sweep.points():
        for scheme in ("basic", "ebsn"):
            quantity = sweep.quantity("throughput_bps", scheme, at)
            found = quantity.at()
            spreads.append(found.sd / found.mean)
            # The variance relative to the squared mean: its root is the coefficient of variation.
            squares = ((quantity.values - found.mean) / found.mean) ** 2 * (found.n / (found.n - 1))
            region = below(SCATTER**2, "below 4 % from run to run at every point: a variance of 0.0016")
            criteria.append(Criterion(Measured(squares, "amount"), region, ", ".join([scheme, *at.values()])))
    text = f"{min(spreads):.0%} to {max(spreads):.0%} from run to run"
    return Finding(criteria, text)


def basic_local(evidence: Evidence) -> Finding:
    """Find the transfers of basic TCP in the local area that time out or retransmit."""
    sweep = evidence.sweep("local")
    amount, _, of = total(sweep, "timeouts", "basic")
    resent, _, _ = total(sweep, "retransmitted_bytes", "basic")
    region = above(0.5, "in over half of the transfers at each bad period: our margin for a large number")
    criteria = [
        Criterion(share_of(sweep.nonzero_runs(metric, "basic", at)), region, f"{label}, {at['bad']}")
        for metric, label in (("timeouts", "timeouts"), ("retransmitted_bytes", "retransmissions"))
        for at in sweep.points()
    ]
    text = f"{amount / of:.1f} timeouts and {resent / of / 1e3:.0f} KB retransmitted per transfer"
    return Finding(criteria, text)


_FINE, _COARSE = "100 ms", "500 ms"
"""The clock of section 3.3, and the coarsest of those that section 4.2.1 calls current."""

WORST_BAD = {"wide": "4 s", "local": "1.6 s"}
"""The bad period with the most timeouts, by area."""


def coarse(evidence: Evidence) -> Finding:
    """Find the runs with a clock of 500 ms that time out where those with 100 ms do."""

    def in_time(run: Run) -> bool:
        return bool(_times(run, "timeout", 10, 14))

    share = evidence.share("trace-coarse", "local-recovery", in_time)
    fine = evidence.share("trace", "local-recovery", in_time)
    text = f"a timeout between 10 and 14 s {_in_runs(share)}; with a clock of 100 ms {_in_runs(fine)}"
    return Finding([Criterion(share, never())], text)


def finer_clock(area: str, evidence: Evidence) -> Finding:
    """Compare neighbouring clocks, and the coarsest with the finest, which has the most timeouts."""
    sweep = evidence.sweep(f"clock-{area}")
    ticks = sweep.values("tick")
    step = below(1 + SCATTER, f"no coarser clock has over {SCATTER:.0%} more: {ONCE}")
    whole = below(text="fewer with the coarsest clock than with the finest")
    criteria, texts = [], []
    for bad in sweep.values("bad"):
        for finer, coarser in (*pairwise(ticks), (ticks[0], ticks[-1])):
            over, under = (("local-recovery", {"tick": tick, "bad": bad}) for tick in (coarser, finer))
            region = whole if (finer, coarser) == (ticks[0], ticks[-1]) else step
            criteria.append(
                Criterion(sweep.ratio("timeouts", over, under), region, f"{finer} to {coarser}, {bad}")
            )
        means = along(sweep, "tick", {"bad": bad}, "timeouts", "local-recovery")
        texts.append(f"{', '.join(f'{mean.mean:.2f}' for mean in means)} per transfer, bad {bad}")
    return Finding(criteria, f"with clocks of {', '.join(ticks)}: {'; '.join(texts)}")


def _fine_clock(evidence: Evidence, area: str, metric: str, scheme: str) -> Measured:
    """Return a metric with the fine clock relative to the coarse one, in paired runs."""
    fine, coarse = ((scheme, {"tick": tick, "bad": WORST_BAD[area]}) for tick in (_FINE, _COARSE))
    return evidence.sweep(f"clock-{area}").ratio(metric, fine, coarse)


def small_round_trips(evidence: Evidence) -> Finding:
    """Compare timeouts for each bad period of both areas, where the shares of bad time are equal."""

    def per_period(area: str, good_s: float, bad: str) -> Sample:
        sweep, at = evidence.sweep(f"clock-{area}"), {"tick": _FINE, "bad": bad}
        timeouts, time_s = (
            sweep.sample(metric, "local-recovery", at) for metric in ("timeouts", "completion_time_s")
        )
        return timeouts * ((good_s + number(bad)) / time_s)

    criteria, texts = [], []
    bads = (evidence.sweep(f"clock-{area}").values("bad") for area in ("local", "wide"))
    for local, wide in zip(*bads, strict=True):
        ours, theirs = per_period("local", LOCAL_GOOD, local), per_period("wide", GOOD, wide)
        criteria.append(
            Criterion(ratio(ours, theirs), above(text="more in the local area"), f"bad {local} and {wide}")
        )
        texts.append(f"{ours.mean():.2f} (bad {local}) for {theirs.mean():.2f} (bad {wide})")
    return Finding(
        criteria, f"timeouts for each bad period, local for wide area: {', '.join(texts)}; clocks of {_FINE}"
    )


def clock_cost(evidence: Evidence) -> Finding:
    """Compare throughput and goodput of local recovery under both clocks."""
    criteria = [
        Criterion(
            _fine_clock(evidence, area, metric, "local-recovery"), clearly_below(), f"{area} area, {label}"
        )
        for area in WORST_BAD
        for metric, label in ((THROUGHPUT, "throughput"), ("goodput", "goodput"))
    ]
    text = ", ".join(f"{as_gain(criterion.quantity.at(), 1)} {criterion.label}" for criterion in criteria)
    return Finding(criteria, f"100 ms beside 500 ms: {text}")


def clock_matters_less(evidence: Evidence) -> Finding:
    """Compare what the clock costs with EBSN and with local recovery."""
    criteria, texts = [], []
    region = above(0.0, "what the clock changes is less by at least a fifth with EBSN: greatly")
    for area in WORST_BAD:
        ours, theirs = (_fine_clock(evidence, area, THROUGHPUT, name) for name in ("ebsn", "local-recovery"))
        left = Measured((1 - GREATLY) * (1 - theirs.values))
        criteria.append(Criterion(difference(left, Measured(1 - ours.values)), region, f"{area} area"))
        texts.append(f"{as_gain(ours.at(), 1)} for {as_gain(theirs.at(), 1)}, {area} area")
    return Finding(criteria, f"100 ms beside 500 ms: {'; '.join(texts)}")


def clock_prevented(evidence: Evidence) -> Finding:
    """Find the transfers with EBSN that do not time out, with each clock."""
    region = above(0.5, "none in over half of the transfers with each clock: our margin for a large number")
    criteria = []
    for area in WORST_BAD:
        sweep = evidence.sweep(f"clock-{area}")
        criteria += [
            Criterion(
                share_of(~sweep.nonzero_runs("timeouts", "ebsn", at)), region, ", ".join([area, *at.values()])
            )
            for at in sweep.points()
        ]
    least = min(criteria, key=lambda criterion: criterion.quantity.at().mean)
    return Finding(criteria, f"none in {least.quantity.at().mean:.1%} of the transfers or more")


def lossier(axis: str, base: str, least: float, region: Region, evidence: Evidence) -> Finding:
    """Compare the gain of EBSN beyond a value of the axis with `least` times the gain there."""
    sweep = evidence.sweep(axis)
    values = sweep.values(axis)
    gains = {
        value: sweep.ratio(THROUGHPUT, *((scheme, {axis: value}) for scheme in ("ebsn", "basic")))
        for value in values
    }
    there = Measured(least * (gains[base].values - 1))
    criteria = [
        Criterion(difference(Measured(gains[value].values - 1), there), region, value)
        for value in values[values.index(base) + 1 :]
    ]
    text = ", ".join(f"{as_gain(gains[value].at())} at {value}" for value in values)
    return Finding(criteria, text)


KNOWN = ("128 B", "576 B")
"""The MTU of the wireless link, and the default size of an IP datagram."""

BETWEEN = "384 B"
"""A size between them: the best for a bad period of 3 s, by section 5.1."""

RIVALS = ("basic + snoop", "basic + i-tcp")
"""Snoop and a split connection, over the bare link."""

TIMEOUTS = (0.1, 1.0, 1000.0)
"""New timeouts as multiples of the current one: a very small one, the paper's, and a very large one."""


def neither_size(evidence: Evidence) -> Finding:
    """Compare a size between with both known ones, at the three bad periods where it gains most."""
    sweep = evidence.sweep("default-size")
    found, texts = [], []
    for bad in sweep.values("bad"):
        over = [
            Criterion(
                sweep.ratio(
                    THROUGHPUT, *(("basic", {"bad": bad, "size": each}) for each in (BETWEEN, known))
                ),
                above(text="more than with that size"),
                f"{bad}, over {known}",
            )
            for known in KNOWN
        ]
        found.append(over)
        texts.append(f"{' and '.join(as_gain(criterion.quantity.at()) for criterion in over)} (bad {bad})")
    found.sort(key=lambda over: min(criterion.quantity.at().mean for criterion in over), reverse=True)
    criteria = [criterion for over in found[: len(found) // 2 + 1] for criterion in over]
    return Finding(criteria, f"{BETWEEN} over {' and '.join(KNOWN)}: {'; '.join(texts)}")


def rivals(evidence: Evidence) -> Finding:
    """Compare the rivals of section 2 with EBSN."""
    sweep = evidence.sweep("rivals")
    criteria = [
        Criterion(
            sweep.ratio(THROUGHPUT, (rival, at), ("ebsn", at)), clearly_below(), f"{rival}, {at['bad']}"
        )
        for rival in RIVALS
        for at in sweep.points()
    ]
    texts = (f"{as_gain(criterion.quantity.at())} with {criterion.label}" for criterion in criteria)
    return Finding(criteria, f"beside EBSN: {'; '.join(texts)}")


def new_timeout(evidence: Evidence) -> Finding:
    """Find what a very small and a very large new timeout do to EBSN's transfers."""
    sweep = evidence.sweep("timer")
    small, _, large = sweep.values("timeout")
    unlimited, most = sweep.values("most")
    early = share_of(sweep.nonzero_runs("timeouts", "ebsn", {"most": unlimited, "timeout": small}))
    stuck = share_of(~sweep.nonzero_runs("finished", "ebsn", {"most": most, "timeout": large}))
    criteria = [
        Criterion(early, typical(), "timeouts with a very small one"),
        Criterion(stuck, typical(), "not completed with a very large one"),
    ]
    text = (
        f"timeouts in {early.at().mean:.0%} of the transfers with a tenth of the estimate; with 1,000 times "
        f"it, {stuck.at().mean:.0%} wait for a lost segment for an hour"
    )
    return Finding(criteria, text)
