"""The claims of the paper's text, each with its section."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from lasthop._lasthop import Run
from lasthop.core.quantity import number
from lasthop.papers.claims import (
    KBPS,
    Best,
    Contradiction,
    CustomClaim,
    Exceeds,
    Finding,
    Gain,
    Never,
    Number,
    Reaches,
    Trend,
    as_gain,
)
from lasthop.papers.ebsn.figures import GOOD, LOCAL_GOOD, LOCAL_MAX, RESENT, THROUGHPUT, WIDE_MAX, ceiling
from lasthop.papers.evidence import Evidence, along, total
from lasthop.papers.paper import Claim
from lasthop.papers.verdicts import (
    CLOSE,
    GREATLY,
    VERY_CLOSE,
    Measured,
    Part,
    Region,
    Unit,
    about_gain,
    above,
    below,
    calculated,
    clearly_above,
    clearly_below,
    difference,
    doubles,
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

_KB = Unit("KB", 1e3, 1)
_LARGE = ("1024 B", "1280 B", "1536 B")


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
    runs = len(quantity.values)
    return f"in {int(quantity.values.sum())} of {runs} runs"


def _packet_27(evidence: Evidence) -> Finding:
    def timeouts(run: Run) -> list[tuple[float, int]]:
        return _times(run, "timeout", 10, 14)

    def printed(run: Run) -> bool:
        return any(packet == 27 and round(time, 2) == 13.75 for time, packet in timeouts(run))

    share = evidence.share("trace", "local-recovery", printed)
    first = timeouts(evidence.traces("trace")["local-recovery"])
    shown = ", ".join(f"packet {packet} at {time:.2f} s" for time, packet in first) or "no timeout"
    return Finding([Part(share, typical())], f"{_in_runs(share)}; the first: {shown}")


def _no_retransmissions(evidence: Evidence) -> Finding:
    share = evidence.share("trace", "local-recovery", lambda run: not _resent(run, 24, 28))
    later = _times(evidence.traces("trace")["local-recovery"], "timeout", 28, 29)
    note = "".join(
        f"in the first run the source times out {time - 28:.2f} s after the period" for time, _ in later[:1]
    )
    return Finding([Part(share, typical())], f"nothing {_in_runs(share)}", note)


def _basic_losses(evidence: Evidence) -> Finding:
    lost = [packet for _, packet in _times(evidence.traces("trace")["basic"], "lost", 24, 28.5)]
    text = f"packets {min(lost)} to {max(lost)}" if lost else "nothing is lost"
    exact = "44 to 50, as printed: the run is deterministic"
    parts = [
        Part(calculated(float(min(lost, default=0))), within(44, 0, exact), "the first"),
        Part(calculated(float(max(lost, default=0))), within(50, 0, exact), "the last"),
    ]
    return Finding(parts, text)


def _basic_again(evidence: Evidence) -> Finding:
    again = _resent(evidence.traces("trace")["basic"], 24, 42)
    first = [(time, packet) for time, packet in again if packet == again[0][1]][:2]
    text = ", ".join(f"packet {packet} at {time:.1f} s" for time, packet in first) or "nothing"
    rounding = "25.85 to 25.95 s and 28.25 to 28.35 s: rounding of the printed digits"
    parts = [
        Part(calculated(time), within(printed, 0.05, rounding), f"at {printed} s")
        for (time, _), (printed, _) in zip([*first, (0.0, 0), (0.0, 0)], RESENT["basic"], strict=False)
    ]
    parts.append(Part(calculated(float(first[0][1] if first else 0)), within(44, 0, "packet 44"), "packet"))
    return Finding(parts, text)


def _basic_loses_all(evidence: Evidence) -> Finding:
    events = evidence.traces("trace")["basic"].events()
    arrived = events["time_s"][events["event"] == "delivered"] % 14.0
    through = calculated(float(np.count_nonzero(arrived > 10.0)))
    region = within(0.0, 0.0, "none; the run is deterministic")
    return Finding([Part(through, region)], f"{through.at().mean:.0f} packets arrive in a bad period")


def _clean(evidence: Evidence) -> Finding:
    def disturbed(run: Run) -> bool:
        return bool(run.metrics["timeouts"] or run.metrics["retransmitted_segments"])

    share = evidence.share("trace", "ebsn", disturbed)
    quiet = Measured(1 - share.values, "share")
    return Finding([Part(quiet, typical())], f"neither {_in_runs(quiet)}")


def _misprint(_evidence: Evidence) -> Finding:
    ours = calculated(ceiling(GOOD, 1.0, WIDE_MAX))
    region = within(11_800, 50, "11.75 to 11.85 kb/s: rounding of the printed digits")
    note = "the paper's own formula, 12.8 · 10 / (10 + 1), gives 11.64; the figures are drawn with it"
    return Finding([Part(ours, region, unit=KBPS)], KBPS.text(ours.at().mean), note)


def _limit_binds(evidence: Evidence) -> Finding:
    sweep = evidence.sweep("limit")
    parts = []
    for backoff in sweep.values("backoff"):
        having = sweep.nonzero_runs("timeouts", "ebsn", {"backoff": backoff, "most": "13"})
        parts.append(Part(share_of(having), never(), backoff))
    shares = [part.quantity.at() for part in parts]
    text = ", ".join(
        f"{share.mean:.0%} of transfers with waits up to {part.label}"
        for share, part in zip(shares, parts, strict=True)
    )
    note = "not both at a mean bad period of 4 s: figure limit-timeouts; reading retransmissions=unlimited"
    return Finding(parts, f"timeouts in {text}", note, "some")


def _local_gain(evidence: Evidence) -> Finding:
    sweep = evidence.sweep("local")
    parts = [
        Part(sweep.ratio(THROUGHPUT, ("ebsn", at), ("basic", at)), about_gain(0.5), at["bad"])
        for at in sweep.points()
    ]
    found = largest([part.quantity for part in parts])
    best = max(parts, key=lambda part: part.quantity.at().mean).label
    return Finding(parts, f"up to {as_gain(found)} (bad {best})", rule="some")


def _quench(evidence: Evidence) -> Finding:
    sweep = evidence.sweep("wide")
    schemes = ("source-quench", "local-recovery")
    # Paired by point: runs of different points are not paired.
    samples = [[sweep.sample("timeouts", scheme, at) for scheme in schemes] for at in sweep.points()]
    shared = [[sample[: min(map(len, pair))] for sample in pair] for pair in samples]
    pooled = [np.concatenate(side) for side in zip(*shared, strict=True)]
    found = ratio(*pooled)
    ours, theirs = (float(sample.mean()) for sample in pooled)
    beside = f"{found.at().mean:.2f} times as many as local recovery without it"
    text = f"{beside}: {ours:.2f} timeouts per transfer for {theirs:.2f}"
    region = above(0.5, "over half of those without it remain: our margin for not preventing them")
    return Finding([Part(found, region)], text)


def _scatter(evidence: Evidence) -> Finding:
    sweep = evidence.sweep("wide")
    parts, spreads = [], []
    for at in sweep.points():
        for scheme in ("basic", "ebsn"):
            quantity = sweep.quantity("throughput_bps", scheme, at)
            found = quantity.at()
            spreads.append(found.sd / found.mean)
            # The variance relative to the squared mean: its root is the coefficient of variation.
            squares = ((quantity.values - found.mean) / found.mean) ** 2 * (found.n / (found.n - 1))
            region = below(SCATTER**2, "below 4 % from run to run at every point: a variance of 0.0016")
            parts.append(Part(Measured(squares, "amount"), region, ", ".join([scheme, *at.values()])))
    text = f"{min(spreads):.0%} to {max(spreads):.0%} from run to run"
    return Finding(parts, text)


def _basic_local(evidence: Evidence) -> Finding:
    sweep = evidence.sweep("local")
    amount, _, of = total(sweep, "timeouts", "basic")
    resent, _, _ = total(sweep, "retransmitted_bytes", "basic")
    region = above(0.5, "in over half of the transfers at each bad period: our margin for a large number")
    parts = [
        Part(share_of(sweep.nonzero_runs(metric, "basic", at)), region, f"{label}, {at['bad']}")
        for metric, label in (("timeouts", "timeouts"), ("retransmitted_bytes", "retransmissions"))
        for at in sweep.points()
    ]
    text = f"{amount / of:.1f} timeouts and {resent / of / 1e3:.0f} KB retransmitted per transfer"
    return Finding(parts, text)


_FINE, _COARSE = "100 ms", "500 ms"
"""The clock of section 3.3, and the coarsest of those that section 4.2.1 calls current."""

_WORST_BAD = {"wide": "4 s", "local": "1.6 s"}
"""The bad period with the most timeouts, by area."""


def _coarse(evidence: Evidence) -> Finding:
    def in_time(run: Run) -> bool:
        return bool(_times(run, "timeout", 10, 14))

    share = evidence.share("trace-coarse", "local-recovery", in_time)
    fine = evidence.share("trace", "local-recovery", in_time)
    text = f"a timeout between 10 and 14 s {_in_runs(share)}; with a clock of 100 ms {_in_runs(fine)}"
    return Finding([Part(share, never())], text)


def _finer_clock(area: str, evidence: Evidence) -> Finding:
    """Compare neighbouring clocks, and the coarsest with the finest, which has the most timeouts."""
    sweep = evidence.sweep(f"clock-{area}")
    ticks = sweep.values("tick")
    step = below(1 + SCATTER, f"no coarser clock has over {SCATTER:.0%} more: {ONCE}")
    whole = below(text="fewer with the coarsest clock than with the finest")
    parts, texts = [], []
    for bad in sweep.values("bad"):
        for finer, coarser in (*pairwise(ticks), (ticks[0], ticks[-1])):
            over, under = (("local-recovery", {"tick": tick, "bad": bad}) for tick in (coarser, finer))
            region = whole if (finer, coarser) == (ticks[0], ticks[-1]) else step
            parts.append(Part(sweep.ratio("timeouts", over, under), region, f"{finer} to {coarser}, {bad}"))
        means = along(sweep, "tick", {"bad": bad}, "timeouts", "local-recovery")
        texts.append(f"{', '.join(f'{mean.mean:.2f}' for mean in means)} per transfer, bad {bad}")
    return Finding(parts, f"with clocks of {', '.join(ticks)}: {'; '.join(texts)}")


def _fine_clock(evidence: Evidence, area: str, metric: str, scheme: str) -> Measured:
    """Return a metric with the fine clock relative to the coarse one, in paired runs."""
    fine, coarse = ((scheme, {"tick": tick, "bad": _WORST_BAD[area]}) for tick in (_FINE, _COARSE))
    return evidence.sweep(f"clock-{area}").ratio(metric, fine, coarse)


def _clock_cost(evidence: Evidence) -> Finding:
    parts = [
        Part(_fine_clock(evidence, area, metric, "local-recovery"), clearly_below(), f"{area} area, {label}")
        for area in _WORST_BAD
        for metric, label in ((THROUGHPUT, "throughput"), ("goodput", "goodput"))
    ]
    text = ", ".join(f"{as_gain(part.quantity.at(), 1)} {part.label}" for part in parts)
    return Finding(parts, f"100 ms beside 500 ms: {text}")


def _clock_matters_less(evidence: Evidence) -> Finding:
    parts, texts = [], []
    region = above(0.0, "what the clock changes is less by at least a fifth with EBSN: greatly")
    for area in _WORST_BAD:
        ours, theirs = (_fine_clock(evidence, area, THROUGHPUT, name) for name in ("ebsn", "local-recovery"))
        left = Measured((1 - GREATLY) * (1 - theirs.values))
        parts.append(Part(difference(left, Measured(1 - ours.values)), region, f"{area} area"))
        texts.append(f"{as_gain(ours.at(), 1)} for {as_gain(theirs.at(), 1)}, {area} area")
    return Finding(parts, f"100 ms beside 500 ms: {'; '.join(texts)}")


def _clock_prevented(evidence: Evidence) -> Finding:
    region = above(0.5, "none in over half of the transfers with each clock: our margin for a large number")
    parts = []
    for area in _WORST_BAD:
        sweep = evidence.sweep(f"clock-{area}")
        parts += [
            Part(
                share_of(~sweep.nonzero_runs("timeouts", "ebsn", at)), region, ", ".join([area, *at.values()])
            )
            for at in sweep.points()
        ]
    least = min(parts, key=lambda part: part.quantity.at().mean)
    return Finding(parts, f"none in {least.quantity.at().mean:.1%} of the transfers or more")


def _lossier(axis: str, base: str, least: float, region: Region, evidence: Evidence) -> Finding:
    """Compare the gain of EBSN beyond a value of the axis with `least` times the gain there."""
    sweep = evidence.sweep(axis)
    values = sweep.values(axis)
    gains = {
        value: sweep.ratio(THROUGHPUT, *((scheme, {axis: value}) for scheme in ("ebsn", "basic")))
        for value in values
    }
    there = Measured(least * (gains[base].values - 1))
    parts = [
        Part(difference(Measured(gains[value].values - 1), there), region, value)
        for value in values[values.index(base) + 1 :]
    ]
    text = ", ".join(f"{as_gain(gains[value].at())} at {value}" for value in values)
    return Finding(parts, text)


KNOWN = ("128 B", "576 B")
"""The MTU of the wireless link, and the default size of an IP datagram."""

BETWEEN = "384 B"
"""A size between them: the best for a bad period of 3 s, by section 5.1."""

RIVALS = ("basic + snoop", "basic + i-tcp")
"""Snoop and a split connection, over the bare link."""

TIMEOUTS = (0.1, 1.0, 1000.0)
"""New timeouts as multiples of the current one: a very small one, the paper's, and a very large one."""


def _neither_size(evidence: Evidence) -> Finding:
    """Compare a size between with both known ones, at the three bad periods where it gains most."""
    sweep = evidence.sweep("default-size")
    found, texts = [], []
    for bad in sweep.values("bad"):
        over = [
            Part(
                sweep.ratio(
                    THROUGHPUT, *(("basic", {"bad": bad, "size": each}) for each in (BETWEEN, known))
                ),
                above(text="more than with that size"),
                f"{bad}, over {known}",
            )
            for known in KNOWN
        ]
        found.append(over)
        texts.append(f"{' and '.join(as_gain(part.quantity.at()) for part in over)} (bad {bad})")
    found.sort(key=lambda over: min(part.quantity.at().mean for part in over), reverse=True)
    parts = [part for over in found[: len(found) // 2 + 1] for part in over]
    return Finding(parts, f"{BETWEEN} over {' and '.join(KNOWN)}: {'; '.join(texts)}")


def _rivals(evidence: Evidence) -> Finding:
    sweep = evidence.sweep("rivals")
    parts = [
        Part(sweep.ratio(THROUGHPUT, (rival, at), ("ebsn", at)), clearly_below(), f"{rival}, {at['bad']}")
        for rival in RIVALS
        for at in sweep.points()
    ]
    texts = (f"{as_gain(part.quantity.at())} with {part.label}" for part in parts)
    return Finding(parts, f"beside EBSN: {'; '.join(texts)}")


def _new_timeout(evidence: Evidence) -> Finding:
    sweep = evidence.sweep("timer")
    small, _, large = sweep.values("timeout")
    unlimited, most = sweep.values("most")
    early = share_of(sweep.nonzero_runs("timeouts", "ebsn", {"most": unlimited, "timeout": small}))
    stuck = share_of(~sweep.nonzero_runs("finished", "ebsn", {"most": most, "timeout": large}))
    parts = [
        Part(early, typical(), "timeouts with a very small one"),
        Part(stuck, typical(), "not completed with a very large one"),
    ]
    text = (
        f"timeouts in {early.at().mean:.0%} of the transfers with a tenth of the estimate; with 1,000 times "
        f"it, {stuck.at().mean:.0%} wait for a lost segment for an hour"
    )
    return Finding(parts, text)


_UP = "no notice is sent while the mobile host keeps retransmitting an acknowledgement"
_BASIC_512 = ("basic", {"bad": "1 s", "size": "512 B"})
_BASIC_1536 = ("basic", {"bad": "1 s", "size": "1536 B"})
_WORST = {"bad": "4 s", "size": "1536 B"}

CLAIMS: tuple[Claim, ...] = (
    CustomClaim(
        id="trace-27",
        section="4.2.1",
        statement="local recovery: in the bad period of 10-14 s the source times out for packet 27",
        printed="13.75 s",
        experiment="trace",
        fails_if="fewer than 5 % of the runs time out for packet 27 at 13.75 s",
        evaluate=_packet_27,
    ),
    CustomClaim(
        id="trace-second",
        section="4.2.1",
        statement="local recovery: between 24 and 28 s the source retransmits nothing",
        printed="none",
        experiment="trace",
        fails_if="in fewer than 5 % of the runs nothing is retransmitted in that period",
        evaluate=_no_retransmissions,
    ),
    CustomClaim(
        id="trace-basic",
        section="4.2.1",
        statement="basic: during the bad periods all packets on the wireless link are lost",
        printed="all",
        experiment="trace",
        fails_if="a packet arrives in a bad period",
        definition=True,
        evaluate=_basic_loses_all,
    ),
    CustomClaim(
        id="trace-44",
        section="4.2.1",
        statement="basic: the bad period of 24-28 s loses packets 44 to 50",
        printed="44-50",
        experiment="trace",
        fails_if="the first or the last packet lost is another",
        why=(
            "one packet fewer: our congestion window is six packets at that time, the printed one "
            "seven; with the reading backoff=doubles the run is a second behind and loses 33 to 35"
        ),
        evaluate=_basic_losses,
    ),
    CustomClaim(
        id="trace-44-again",
        section="3.4",
        statement="basic: packet 44 is retransmitted twice",
        printed="25.9 and 28.3 s",
        experiment="trace",
        fails_if="it is another packet, or the times are others than printed",
        why="the times depend on earlier round-trip samples, which the text does not state",
        evaluate=_basic_again,
    ),
    CustomClaim(
        id="trace-ebsn",
        section="4.2.1",
        statement="explicit feedback: no timeouts, no retransmissions",
        printed="none",
        experiment="trace",
        fails_if="fewer than 5 % of the runs have neither timeouts nor retransmissions",
        evaluate=_clean,
    ),
    CustomClaim(
        id="coarse-clock",
        section="4.2.1",
        statement="local recovery, worked example: no timeouts with coarse clocks, of 300 to 500 ms",
        printed="none",
        experiment="trace-coarse",
        fails_if="with a clock of 500 ms over 1 % of the runs have a timeout between 10 and 14 s",
        why=(
            "a round trip takes 2.4 s, so the timeout is 3.8 s with a clock of 100 ms, 4.0 s with 500 ms and "
            "5.0 s with 1 s; only the last is longer than the bad period"
        ),
        further=("trace",),
        evaluate=_coarse,
    ),
    *(
        CustomClaim(
            id=f"finer-clock-{area}",
            section="6",
            statement=f"local recovery, {area} area: a finer clock has more timeouts",
            printed="more",
            experiment=f"clock-{area}",
            fails_if="a coarser clock has over 4 % more than the next finer one, or the coarsest no fewer",
            evaluate=partial(_finer_clock, area),
        )
        for area in _WORST_BAD
    ),
    CustomClaim(
        id="fine-clock",
        section="6",
        statement="local recovery: the timeouts of a fine clock significantly degrade throughput and goodput",
        printed="significant",
        experiment="clock-wide",
        fails_if="with 100 ms one of them is at most 5 % less than with 500 ms",
        why=(
            "a clock of 500 ms still has 71 % of the timeouts in the wide area (29 % in the local area), and "
            "with none, as with EBSN, the throughput is only 9 % (4 %) higher than with 100 ms"
        ),
        further=("clock-local",),
        evaluate=_clock_cost,
    ),
    CustomClaim(
        id="ebsn-clock",
        section="6",
        statement="EBSN greatly reduces the effect of the clock's granularity on performance",
        printed="greatly",
        experiment="clock-wide",
        fails_if="from 500 to 100 ms the throughput changes by over four fifths of what it does without EBSN",
        further=("clock-local",),
        evaluate=_clock_matters_less,
    ),
    CustomClaim(
        id="ebsn-any-clock",
        section="6",
        statement="EBSN prevents timeouts in a large number of cases, whatever the clock",
        printed="-",
        experiment="clock-wide",
        fails_if="with some clock half of the transfers or more have timeouts",
        further=("clock-local",),
        evaluate=_clock_prevented,
    ),
    CustomClaim(
        id="neither-size",
        section="4.1",
        statement="basic: for most bad periods the best size is neither the wireless MTU nor the default",
        printed="differs",
        experiment="default-size",
        fails_if="at two of the four bad periods 384 B is not better than both 128 B and 576 B",
        evaluate=_neither_size,
    ),
    CustomClaim(
        id="rivals",
        section="2",
        statement="neither Snoop nor a split connection performs well with bursty losses",
        printed="not well",
        experiment="rivals",
        fails_if="at some bad period one of them is less than 5 % behind EBSN",
        evaluate=_rivals,
    ),
    CustomClaim(
        id="new-timeout",
        section="4.2.3, note 1",
        statement="EBSN: with a very small new timeout the source times out, with a very large one never",
        printed="-",
        experiment="timer",
        fails_if="under 5 % of the transfers have timeouts with the one, or wait for an hour with the other",
        evaluate=_new_timeout,
    ),
    CustomClaim(
        id="quench",
        section="4.2.2",
        statement="source quench does not prevent timeouts of packets that are under way",
        printed="-",
        experiment="wide",
        fails_if="source quench prevents half of the timeouts or more",
        evaluate=_quench,
    ),
    Contradiction(
        id="limit",
        section="4.2.1, 5.1",
        statement="at most 13 retransmissions, and yet no timeouts with EBSN",
        printed="no timeouts",
        experiment="limit",
        fails_if="some backoff has timeouts in at most 1 % of the transfers",
        evaluate=_limit_binds,
    ),
    CustomClaim(
        id="scatter",
        section="5",
        statement="the standard deviation of all results is less than 4 %",
        printed="< 4 %",
        experiment="wide",
        fails_if="the standard deviation over runs is 4 % or more at some point",
        why="a transfer has few bad periods; the paper's numbers must be means of many runs",
        evaluate=_scatter,
    ),
    Trend(
        id="bad-period",
        section="5.1",
        statement="basic: at each packet size, throughput falls as the bad period grows",
        printed="falls",
        experiment="wide",
        metric=THROUGHPUT,
        scheme="basic",
        axis="bad",
        rises=False,
        unit=KBPS,
        margin=SCATTER,
        reason=ONCE,
    ),
    Best(
        id="best-1s",
        section="5.1",
        statement="basic, bad 1 s: 512 B is the best packet size",
        printed="512 B",
        experiment="wide",
        metric=THROUGHPUT,
        scheme="basic",
        at={"bad": "1 s"},
        axis="size",
        value="512 B",
        margin=SCATTER,
        reason=ONCE,
    ),
    Number(
        id="best-1s-value",
        section="5.1",
        statement="basic, bad 1 s, 512 B: throughput",
        printed="8.7 kb/s",
        experiment="wide",
        metric=THROUGHPUT,
        scheme="basic",
        at=_BASIC_512[1],
        value=8_700,
        margin=TWICE,
        reason=REASON,
        unit=KBPS,
    ),
    Gain(
        id="best-1s-gain",
        section="5.1",
        statement="basic, bad 1 s: 512 B beats 1536 B by about 30 %",
        printed="30 %",
        experiment="wide",
        metric=THROUGHPUT,
        over=_BASIC_512,
        under=_BASIC_1536,
        region=about_gain(0.30),
        why=(
            "a window of 4 KB holds two packets of 1536 B and their timeout is short; with three, the "
            "reading window=nearest, it is 30 %"
        ),
    ),
    Best(
        id="best-3s",
        section="5.1",
        statement="basic, bad 3 s: 384 B is the best packet size",
        printed="384 B",
        experiment="wide",
        metric=THROUGHPUT,
        scheme="basic",
        at={"bad": "3 s"},
        axis="size",
        value="384 B",
        margin=SCATTER,
        reason=ONCE,
    ),
    Contradiction(
        id="ceiling",
        section="5.1",
        statement="the theoretical maximum for a bad period of 1 s",
        printed="11.8 kb/s",
        experiment="wide",
        fails_if="the printed formula gives the printed number",
        evaluate=_misprint,
    ),
    Number(
        id="worst-basic",
        section="5.1",
        statement="basic, bad 4 s, 1536 B: throughput",
        printed="4.5 kb/s",
        experiment="wide",
        metric=THROUGHPUT,
        scheme="basic",
        at=_WORST,
        value=4_500,
        margin=TWICE,
        reason=REASON,
        unit=KBPS,
    ),
    Number(
        id="worst-ebsn",
        section="5.1",
        statement="EBSN, bad 4 s, 1536 B: throughput",
        printed="9.0 kb/s",
        experiment="wide",
        metric=THROUGHPUT,
        scheme="ebsn",
        at=_WORST,
        value=9_000,
        margin=TWICE,
        reason=REASON,
        unit=KBPS,
    ),
    Gain(
        id="worst-gain",
        section="5.1",
        statement="bad 4 s, 1536 B: EBSN doubles the throughput",
        printed="100 %",
        experiment="wide",
        metric=THROUGHPUT,
        over=("ebsn", _WORST),
        under=("basic", _WORST),
        region=doubles(),
    ),
    CustomClaim(
        id="longer-gain",
        section="5.1",
        statement="1536 B: the improvement is expected to be much higher for bad periods longer than 4 s",
        printed="much higher",
        experiment="bad",
        fails_if="the gain at 8 s or 16 s is less than a fifth higher than at 4 s",
        evaluate=partial(
            _lossier,
            "bad",
            "4 s",
            1 + GREATLY,
            above(0.0, "a gain higher than at 4 s by at least a fifth: much"),
        ),
    ),
    CustomClaim(
        id="noisier-gain",
        section="6",
        statement="1536 B, bad 4 s: improvements are expected to be greater for higher bit error rates",
        printed="greater",
        experiment="ber",
        fails_if="the gain at a higher bit error rate in good periods is no larger than at 1e-6",
        evaluate=partial(
            _lossier, "ber", "0.000001", 1.0, above(0.0, "a larger gain than at the printed rate of 1e-6")
        ),
    ),
    Trend(
        id="ebsn-size",
        section="5.1",
        statement="EBSN: throughput grows with packet size",
        printed="grows",
        experiment="wide",
        metric=THROUGHPUT,
        scheme="ebsn",
        axis="size",
        rises=True,
        unit=KBPS,
        margin=SCATTER,
        reason=ONCE,
    ),
    Reaches(
        id="ebsn-ceiling",
        section="5.1",
        statement="EBSN: close to the theoretical maximum for larger packets (bad 4 s; 1024, 1280, 1536 B)",
        printed="close",
        experiment="wide",
        metric=THROUGHPUT,
        scheme="ebsn",
        bounds=tuple(({"bad": "4 s", "size": size}, ceiling(GOOD, 4.0, WIDE_MAX)) for size in _LARGE),
        part=CLOSE,
    ),
    Never(
        id="ebsn-timeouts",
        section="5.1",
        statement="EBSN, wide area: no timeouts at the source",
        printed="none",
        experiment="wide",
        metric="timeouts",
        scheme="ebsn",
        why=_UP,
    ),
    Never(
        id="ebsn-resent",
        section="5.1",
        statement="EBSN, wide area: the source retransmits nothing",
        printed="none",
        experiment="wide",
        metric="retransmitted_bytes",
        scheme="ebsn",
        why=_UP,
    ),
    Trend(
        id="resent-size",
        section="5.1",
        statement="basic: retransmitted data grow with the packet size",
        printed="grow",
        experiment="wide",
        metric="retransmitted_bytes",
        scheme="basic",
        axis="size",
        rises=True,
        unit=_KB,
        margin=SCATTER,
        reason=ONCE,
        why=(
            "from 1408 B on, the window of 4 KB holds two packets instead of three; with the reading "
            "window=nearest it agrees"
        ),
    ),
    Trend(
        id="resent-bad",
        section="5.1",
        statement="basic: retransmitted data grow with the bad period",
        printed="grow",
        experiment="wide",
        metric="retransmitted_bytes",
        scheme="basic",
        axis="bad",
        rises=True,
        unit=_KB,
        margin=SCATTER,
        reason=ONCE,
    ),
    Exceeds(
        id="local-better",
        section="5.2",
        statement="local area: EBSN clearly outperforms basic TCP",
        printed="clearly",
        experiment="local",
        metric=THROUGHPUT,
        above="ebsn",
        below="basic",
        region=clearly_above(),
    ),
    CustomClaim(
        id="local-gain",
        section="5.2",
        statement="local area: at some bad periods EBSN improves the throughput by about 50 %",
        printed="50 %",
        experiment="local",
        fails_if="no bad period has a gain of 40 % to 60 %",
        why=(
            "it depends on the minimum timeout and the wired delay, which are not stated: readings "
            "min-rto, wired-delay"
        ),
        evaluate=_local_gain,
    ),
    Never(
        id="local-goodput",
        section="5.2",
        statement="local area: goodput of EBSN is 100 %, as there are no timeouts",
        printed="100 %",
        experiment="local",
        metric="retransmitted_bytes",
        scheme="ebsn",
        why=_UP,
    ),
    CustomClaim(
        id="local-basic",
        section="5.2",
        statement="local area: timeouts of basic TCP result in a large number of retransmissions",
        printed="-",
        experiment="local",
        fails_if="at some bad period half of the transfers or more have no timeout, or no retransmission",
        evaluate=_basic_local,
    ),
    Reaches(
        id="local-ceiling",
        section="6",
        statement="EBSN, local area: very close to the theoretical maximum",
        printed="very close",
        experiment="local",
        metric=THROUGHPUT,
        scheme="ebsn",
        bounds=tuple(
            ({"bad": bad}, ceiling(LOCAL_GOOD, number(bad), LOCAL_MAX)) for bad in ("400 ms", "1 s", "1.6 s")
        ),
        part=VERY_CLOSE,
        why=(
            "the payload is 97.4 % of a packet, and in good periods one packet in 82 is retransmitted"
            " after a mean wait of 10 ms, which takes 3 %"
        ),
    ),
)
