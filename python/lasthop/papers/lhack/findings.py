"""What the runs say of the paper's claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from lasthop._lasthop import Run
from lasthop.core.quantity import number
from lasthop.core.statistics import Estimate, Sample
from lasthop.papers.claims import Finding, as_gain
from lasthop.papers.evidence import Evidence
from lasthop.papers.lhack.network import (
    CEILING,
    MOBILES,
    MSS,
    OPTIMUM,
    PAYLOAD_BITS,
    STATIONARY,
    messages_per_corruption,
)
from lasthop.papers.verdicts import (
    HARDLY,
    NEVER,
    PERCENT,
    SAME,
    Criterion,
    Measured,
    Region,
    Unit,
    about,
    above,
    below,
    calculated,
    difference,
    doubles,
    halves,
    never,
    rate,
    ratio,
    same,
    share_of,
    within,
)

LENGTH = 60.0
"""The duration of figures 4 and 5, in seconds."""

_BOUND = CEILING * PAYLOAD_BITS
_MESSAGES = Unit("messages", 1.0, 1)
_SECONDS = Unit("s", 1.0, 2)

_TRANSMISSION = 5 * (500 + 40) / 100_000
"""The transmission time of a message and its acknowledgement over five links, in seconds."""

_FULL_BUFFER = (
    "on average the buffer overflows with 38 messages in flight (100 per second for 227 ms, "
    "and half of the 30 in the buffer), so slightly less than 40 are halved; with the "
    "additional source it is 23 (60 per second, and 30 % of the buffer)"
)


@dataclass(frozen=True, slots=True)
class Cut:
    """A window reduction in the trace of a run: a fast retransmit or a timeout.

    Attributes
    ----------
    time : float
        The time in seconds.
    before, after : float
        The window before and after the reduction, in messages.
    why : str
        The reason of the loss: ``"corrupted"``, ``"queue-full"``, or empty.
    """

    time: float
    before: float
    after: float
    why: str


def _cuts(run: Run, kind: str = "fast-retransmit") -> list[Cut]:
    """Return the fast retransmits and timeouts of a source, in order."""
    events, series = run.events(), run.series()
    lost = events["event"] == "lost"
    found = []
    for place in np.flatnonzero(events["event"] == kind):
        time, packet = float(events["time_s"][place]), events["packet"][place]
        copies = np.flatnonzero(lost & (events["packet"] == packet) & (events["time_s"] <= time))
        why = str(events["reason"][copies[-1]]) if len(copies) else ""
        # The last row of this time has the window after the reduction; there may be several rows.
        row = int(np.searchsorted(series["time_s"], time))
        windows = series["cwnd_bytes"] / MSS
        # Without a row of this time or later the window stays.
        after = windows[min(row, len(windows) - 1)]
        found.append(Cut(time, float(windows[row - 1]), float(after), why))
    return found


def _window(run: Run, start: float = 0.0, end: float = LENGTH) -> tuple[npt.NDArray[np.float64], ...]:
    """Return the values of a window within an interval, in messages, and the duration of each."""
    series = run.series()
    time = np.append(series["time_s"], end)
    shown = (time[:-1] >= start) & (time[:-1] < end)
    return series["cwnd_bytes"][shown] / MSS, np.diff(time)[shown]


def _mean_window(run: Run) -> float:
    """Return the mean window over time, in messages."""
    windows, spans = _window(run)
    return float(np.average(windows, weights=spans))


def _corrupted(run: Run) -> int:
    """Return the number of corrupted data messages."""
    events = run.events()
    return int(np.count_nonzero((events["event"] == "lost") & (events["reason"] == "corrupted")))


def _congested(run: Run, start: float = 0.0, end: float = LENGTH) -> list[Cut]:
    """Return the window cuts by congestion within an interval."""
    return [each for each in _cuts(run) if each.after < each.before and start <= each.time < end]


def _by_messages(evidence: Evidence, experiment: str, messages: int) -> dict[str, str]:
    """Return the grid point at which one message in `messages` is corrupted."""
    values = evidence.sweep(experiment).values("ber")
    return {"ber": min(values, key=lambda value: abs(messages_per_corruption(number(value)) - messages))}


def _share(evidence: Evidence, scheme: str, messages: int, experiment: str = "rate") -> Measured:
    """Return the throughput relative to the ceiling."""
    at = _by_messages(evidence, experiment, messages)
    return replace(evidence.sweep(experiment).quantity("throughput_bps", scheme, at), per=_BOUND)


def _beside(evidence: Evidence, experiment: str, messages: int) -> Measured:
    """Return the throughput with lhacks relative to that of a mobile destination, in paired runs."""
    ours, theirs = ((name, "lhack", _by_messages(evidence, name, messages)) for name in (experiment, "rate"))
    return evidence.ratio("throughput_bps", ours, theirs)


def _percent(found: Estimate) -> str:
    """Return a share in words."""
    return PERCENT.estimate(found)


def reaches(evidence: Evidence) -> Finding:
    """Compare the throughput with lhacks with the maximum, at three corruption rates."""
    shares = {messages: _share(evidence, "lhack", messages) for messages in (75, 150, 250)}
    text = ", ".join(f"{_percent(share.at())} at 1/{messages}" for messages, share in shares.items())
    region = above(0.955, "at least 95.5 % at the lowest rate: rounding of the printed digits")
    return Finding([Criterion(shares[250], region, unit=PERCENT)], text)


def below_60(evidence: Evidence) -> Finding:
    """Compare the throughput without lhacks with 60 % of the maximum."""
    found = _share(evidence, "basic", 150)
    note = (
        "a window halved by each loss is about √(3/2p) = 15 messages on average (Mathis et al. "
        "1997); 15 messages per 227 ms, transmission included, are 66 %, less the cost of "
        "timeouts and a growing queue; with the reading recovery=reno, which has more timeouts, "
        "it is 54 %"
    )
    return Finding(
        [Criterion(found, below(0.60, "less than 60 %"), unit=PERCENT)], _percent(found.at()), note
    )


def never_20(evidence: Evidence) -> Finding:
    """Find the runs without lhacks whose window ever has the optimum of 20 messages after the first loss."""

    def share(run: Run) -> float:
        windows, spans = _window(run, _cuts(run)[0].time)
        return float(spans[windows >= OPTIMUM].sum() / spans.sum())

    found = evidence.quantity("window-150", "basic", share)
    reached = evidence.share("window-150", "basic", lambda run: share(run) > 0)
    mean = evidence.over_runs("window-150", "basic", _mean_window)
    text = (
        f"20 or more in {reached.at().mean:.0%} of the runs, for {_percent(found.at())} of the time; on "
        f"average {mean.mean:.1f} ± {mean.ci95:.1f}"
    )
    return Finding([Criterion(reached, never())], text)


def each_corruption(evidence: Evidence) -> Finding:
    """Count the reductions of the window without lhacks for each corrupted message."""

    def cuts(run: Run) -> float:
        return sum(each.after < each.before for each in (*_cuts(run), *_cuts(run, "timeout")))

    runs = evidence.runs("window-150", "basic")
    found = ratio(
        np.asarray([cuts(run) for run in runs], float), np.asarray([_corrupted(run) for run in runs], float)
    )
    text = f"{found.at().mean:.2f} ± {found.at().ci95:.2f} times for each corrupted message"
    region = within(1.0, SAME, '0.9 to 1.1 times: our margin, as for "the same"')
    return Finding([Criterion(found, region)], text, "two losses of one window cause one reduction")


def slow_start(evidence: Evidence) -> Finding:
    """Measure when the window with lhacks first has 20 messages."""

    def until(run: Run) -> float:
        windows, spans = _window(run, end=10.0)
        return float(spans[: int(np.argmax(windows >= OPTIMUM))].sum())

    found = evidence.quantity("window-150", "lhack", until)
    at = found.at()
    # Exponential growth from 1 to 20 takes 4.5 round trips of 227 ms or more; linear growth takes nineteen.
    region = below(9 * 0.227, "20 within nine round trips: our margin, as linear growth takes nineteen")
    return Finding([Criterion(found, region, unit=_SECONDS)], f"20 after {at.mean:.2f} ± {at.ci95:.2f} s")


def _count(cuts: Sequence[Sequence[Cut]], predicate: Callable[[Cut], bool]) -> Sample:
    """Return the number of cuts in each run that satisfy a predicate."""
    return np.asarray([sum(map(predicate, each)) for each in cuts], dtype=np.float64)


def not_cut(evidence: Evidence) -> Finding:
    """Find the corrupted messages after which the window with lhacks is smaller."""
    runs = evidence.runs("window-150", "lhack")
    cuts = [[each for each in _cuts(run) if each.why == "corrupted"] for run in runs]
    smaller, number_of = _count(cuts, lambda cut: cut.after < cut.before), _count(cuts, lambda cut: True)
    text = f"smaller after {smaller.sum():.0f} of {number_of.sum():.0f} in {len(runs)} runs"
    region = below(NEVER, "after at most 1 % of the corrupted messages: never")
    return Finding([Criterion(rate(smaller, number_of), region, unit=PERCENT)], text)


def maintains(evidence: Evidence) -> Finding:
    """Compare what is sent in the round trips after and before the fast retransmit of a corrupted message."""

    def sent(run: Run) -> tuple[float, float]:
        events, series = run.events(), run.series()
        time = events["time_s"][events["event"] == "sent"]
        after, before = 0, 0
        for cut in _cuts(run):
            if cut.why == "corrupted":
                row = int(np.searchsorted(series["time_s"], cut.time)) - 1
                trip = float(series["srtt_s"][row])
                edges = np.searchsorted(time, (cut.time - trip, cut.time, cut.time + trip), side="right")
                before, after = before + int(edges[1] - edges[0]), after + int(edges[2] - edges[1])
        return after, before

    found = ratio(*np.asarray([sent(run) for run in evidence.runs("window-150", "lhack")], float).T)
    text = f"{as_gain(found.at(), 1)} messages in the round trip after it, beside the one before"
    return Finding([Criterion(found, same())], text)


def threshold_kept(evidence: Evidence) -> Finding:
    """Compare the slow-start threshold after a timeout for a corrupted message with the window before it."""

    def kept(run: Run) -> tuple[float, float]:
        series = run.series()
        lost = [each for each in _cuts(run, "timeout") if each.why == "corrupted"]
        rows = np.searchsorted(series["time_s"], [each.time for each in lost])
        thresholds = series["ssthresh_bytes"][np.minimum(rows, len(series["time_s"]) - 1)] / MSS
        return float(thresholds.sum()), sum(each.before for each in lost)

    found = ratio(*np.asarray([kept(run) for run in evidence.runs("window-150", "lhack")]).T)
    text = f"{found.at().mean:.2f} ± {found.at().ci95:.2f} of the window before the timeout"
    nearer = above(
        0.75, "nearer to the window than to its half: our margin, since a few timeouts are not told apart"
    )
    return Finding([Criterion(found, nearer)], text)


def halved(evidence: Evidence) -> Finding:
    """Find the cuts with lhacks that are not to a half, or not by a full buffer."""
    cuts = [_congested(run) for run in evidence.runs("window-150", "lhack")]
    half = halves()
    number_of = _count(cuts, lambda cut: True)
    others = {
        "cuts to other than a half": _count(
            cuts, lambda cut: not half.low <= cut.after / cut.before <= half.high
        ),
        "cuts for another loss": _count(cuts, lambda cut: cut.why != "queue-full"),
    }
    ratios = [cut.after / cut.before for each in cuts for cut in each]
    full = len(ratios) - others["cuts for another loss"].sum()
    text = f"{len(ratios)} cuts, {full:.0f} of them for a full buffer"
    if ratios:
        text += f", to {min(ratios):.2f} to {max(ratios):.2f}"
    region = below(
        0.1,
        f"at most a tenth of the cuts are to other than {half.low:.2f} to {half.high:.2f}, or for "
        "another loss than by a full buffer: our margin",
    )
    criteria = [Criterion(rate(each, number_of), region, label, PERCENT) for label, each in others.items()]
    most = above(0.5, "a cut in over half of the runs: our margin, since the paper shows one run")
    criteria.append(Criterion(share_of(number_of > 0), most, "runs with a cut", PERCENT))
    return Finding(criteria, text)


def peaks(
    experiment: str, scheme: str, span: tuple[float, float], region: Region, evidence: Evidence
) -> Finding:
    """Return the mean window before a congestion cut, within an interval."""

    def peak(run: Run) -> float:
        found = [each.before for each in _congested(run, *span)]
        return float(np.mean(found)) if found else float(_window(run, *span)[0].max())

    found = evidence.quantity(experiment, scheme, peak)
    at = found.at()
    text = f"{at.mean:.1f} ± {at.ci95:.1f} messages before a cut"
    return Finding([Criterion(found, region, unit=_MESSAGES)], text, _FULL_BUFFER)


def not_below(evidence: Evidence) -> Finding:
    """Compare the mean window after a cut with the optimum."""

    def after(run: Run) -> float:
        return float(np.mean([each.after for each in _congested(run)]))

    found = evidence.quantity("window-150", "lhack", after)
    at = found.at()
    region = above(OPTIMUM, "on average not below 20 after a cut")
    text = f"{at.mean:.1f} ± {at.ci95:.1f} messages after a cut"
    return Finding([Criterion(found, region, unit=_MESSAGES)], text, _FULL_BUFFER)


_FIGURE_5 = {"with lhacks": ("decrease", "lhack"), "wired": ("decrease-wired", "basic")}


def _overflow(number: int, run: Run) -> float:
    """Return the start of a buffer overflow by number; a drop 2 s after the previous one starts another."""
    events = run.events()
    lost = events["time_s"][(events["event"] == "lost") & (events["reason"] == "queue-full")]
    begins = np.append(True, np.diff(lost) > 2)
    return float(lost[begins][number])


def near_7(evidence: Evidence) -> Finding:
    """Compare when the buffer first overflows in figure 5."""
    found = {label: evidence.quantity(*which, partial(_overflow, 0)) for label, which in _FIGURE_5.items()}
    criteria = [Criterion(each, about(7.0), label, _SECONDS) for label, each in found.items()]
    at = {label: each.at() for label, each in found.items()}
    text = ", ".join(f"{label} {each.mean:.1f} ± {each.ci95:.1f} s" for label, each in at.items())
    return Finding(criteria, text)


def premature(evidence: Evidence) -> Finding:
    """Compare the second overflow with that of the same runs without the additional source."""
    # Runs of the same number are identical until the additional source starts.
    with_it, without = (
        np.asarray([_overflow(1, run) for run in evidence.runs(experiment, "lhack")])
        for experiment in ("decrease", "window-125")
    )
    found = evidence.over_runs("decrease", "lhack", partial(_overflow, 1))
    earlier = Measured(without - with_it)
    gain = f"{earlier.at().mean:.1f} ± {earlier.at().ci95:.1f} s"
    text = f"{found.mean:.1f} ± {found.ci95:.1f} s; {gain} earlier than without"
    region = above(0.0, "earlier than without the additional source, run by run")
    return Finding([Criterion(earlier, region, unit=_SECONDS)], text)


def alike(evidence: Evidence) -> Finding:
    """Compare the mean windows of both halves of figure 5."""
    with_it, wired = (evidence.quantity(*which, _mean_window) for which in _FIGURE_5.values())
    found = ratio(with_it.values, wired.values)
    at = [each.at() for each in (with_it, wired)]
    text = ", ".join(
        f"{label} {each.mean:.1f} ± {each.ci95:.1f}" for label, each in zip(_FIGURE_5, at, strict=True)
    )
    return Finding([Criterion(found, same())], f"{found.at().mean:.2f} times as large; mean windows: {text}")


def variant(experiment: str, beside: str, evidence: Evidence) -> Finding:
    """Compare the throughput of a variant with that of a mobile destination."""
    criteria = [
        Criterion(_beside(evidence, experiment, messages), same(), f"1/{messages}")
        for messages in (75, 150, 250)
    ]
    text = ", ".join(f"{as_gain(criterion.quantity.at(), 1)} at {criterion.label}" for criterion in criteria)
    return Finding(criteria, f"beside {beside} {text}")


def several_routers(evidence: Evidence) -> Finding:
    """Compare the throughput over two routers of a cell with that over one."""
    found = _beside(evidence, "several-routers", 75)
    return Finding([Criterion(found, same(), "1/75")], f"beside one router {as_gain(found.at(), 1)} at 1/75")


def stationary_host(evidence: Evidence) -> Finding:
    """Compare two mobiles with connections to a stationary host with a mobile destination."""
    at = {name: _by_messages(evidence, name, 75) for name in ("stationary-host", "rate")}
    theirs = ("rate", "lhack", at["rate"])
    region = above(0.9, "at least nine tenths of the throughput of a mobile destination: as close to it")
    criteria = [
        Criterion(
            evidence.ratio("throughput_bps", ("stationary-host", scheme, at["stationary-host"]), theirs),
            region,
            f"at {scheme.partition('@')[2].partition(' ')[0]}",
        )
        for scheme in STATIONARY
    ]
    text = ", ".join(f"{as_gain(criterion.quantity.at(), 1)} {criterion.label}" for criterion in criteria)
    return Finding(criteria, f"beside a mobile destination {text}, at 1/75")


def double(evidence: Evidence) -> Finding:
    """Find the messages that are lost together with one of their notices."""

    def lost(run: Run, kind: str) -> set[int]:
        events = run.events()
        return set(events["packet"][(events["event"] == kind) & (events["reason"] == "corrupted")].tolist())

    runs = evidence.runs("both-window", "lhack")
    both = np.asarray([len(lost(run, "lost") & lost(run, "notice-lost")) for run in runs], dtype=np.float64)
    sent = np.asarray([run.metrics["segments_sent"] for run in runs], dtype=np.float64)
    note = "a message and any of its lhacks and fhacks"
    region = below(HARDLY, "at most one message in a thousand: hardly ever")
    text = f"{both.sum():.0f} of {sent.sum():,.0f} messages at 1/75"
    return Finding([Criterion(rate(both, sent), region)], text, note)


def _per_message(evidence: Evidence, experiment: str, metrics: tuple[str, ...], under: str) -> Measured:
    """Return the sum of some metrics over another, of runs with lhacks at one corrupted message in 150."""
    sweep, at = evidence.sweep(experiment), _by_messages(evidence, experiment, 150)
    over = np.sum([sweep.sample(metric, "lhack", at) for metric in metrics], axis=0)
    return ratio(over, sweep.sample(under, "lhack", at))


def third_traffic(evidence: Evidence) -> Finding:
    """Count the acknowledgements for each message, of a destination that acknowledges every third."""
    found = _per_message(evidence, "every-third", ("acks_sent",), "segments_sent")
    text = f"{found.at().mean:.2f} acknowledgements for each data message"
    return Finding([Criterion(found, about(1 / 3))], text)


def doubled_traffic(evidence: Evidence) -> Finding:
    """Count acknowledgements and notices for each acknowledgement."""
    found = _per_message(evidence, "rate", ("acks_sent", "notices"), "acks_sent")
    return Finding([Criterion(found, doubles())], f"{found.at().mean:.2f} times as many with lhacks")


LOST_DACKS = (0.0, 0.01, 0.05, 0.1)
"""Shares of acknowledgements that are lost on the air. Of messages one in 150 is."""


def lost_dacks(evidence: Evidence) -> Finding:
    """Compare the throughput at several losses of acknowledgements with that at none."""
    sweep = evidence.sweep("lost-dacks")
    none, *losses = sweep.values("loss")
    criteria = [
        Criterion(
            sweep.ratio("throughput_bps", ("lhack", {"loss": loss}), ("lhack", {"loss": none})),
            same(),
            f"{float(loss):.0%} of them",
        )
        for loss in losses
    ]
    text = ", ".join(
        f"{as_gain(criterion.quantity.at(), 1)} with {criterion.label}" for criterion in criteria
    )
    return Finding(criteria, text)


CONTROLLED = ("tahoe", "reno", "newreno", "sack")
"""Protocols that take a loss for congestion: of the recoveries, those with a control."""


def any_protocol(evidence: Evidence) -> Finding:
    """Compare the throughput with and without lhacks, for each recovery with a control."""
    sweep = evidence.sweep("recovery")
    criteria = []
    for flavour in CONTROLLED:
        for ber in sweep.values("ber"):
            at = {"flavour": flavour, "ber": ber}
            label = f"{flavour}, one in {messages_per_corruption(number(ber)):.0f}"
            criteria.append(
                Criterion(sweep.ratio("throughput_bps", ("lhack", at), ("basic", at)), above(), label)
            )
    gains = {criterion.label: criterion.quantity.at() for criterion in criteria}
    least, most = (choose(gains, key=lambda label: gains[label].mean) for choose in (min, max))
    return Finding(criteria, f"{as_gain(gains[least])} ({least}) to {as_gain(gains[most])} ({most})")


def _several_gains(evidence: Evidence) -> dict[int, Measured]:
    """Return the throughput with lhacks relative to that without, by the number of mobile hosts."""
    return {
        mobiles: ratio(
            *(
                evidence.values(f"several-{mobiles}", scheme, "throughput_bps")
                for scheme in ("lhack", "basic")
            )
        )
        for mobiles in MOBILES
    }


def several(evidence: Evidence) -> Finding:
    """Compare the throughput with and without lhacks, for several mobile hosts."""
    gains = _several_gains(evidence)
    criteria = [
        Criterion(gain, above(), f"{mobiles} mobiles") for mobiles, gain in gains.items() if mobiles > 1
    ]
    text = ", ".join(
        f"{as_gain(criterion.quantity.at(), 1)} with {criterion.label}" for criterion in criteria
    )
    return Finding(criteria, text)


def smaller_product(evidence: Evidence) -> Finding:
    """Compare the gain with several mobile hosts with that of one."""
    gains = _several_gains(evidence)
    region = below(0.0, "a smaller gain than with one mobile host")
    criteria = [
        Criterion(difference(gain, gains[1]), region, f"{mobiles} mobiles")
        for mobiles, gain in gains.items()
        if mobiles > 1
    ]
    text = ", ".join(f"{as_gain(gain.at(), 1)} with {mobiles}" for mobiles, gain in gains.items())
    return Finding(criteria, text)


def misprint(evidence: Evidence) -> Finding:
    """Calculate how many messages the printed bit error rate corrupts."""
    printed = messages_per_corruption(3e-5)
    sweep = evidence.sweep("printed")
    worst = max(sweep.values("ber"), key=number)
    found = sweep.mean("throughput_bps", "lhack", {"ber": worst}).mean / _BOUND
    note = (
        f"3·10⁻⁵ corrupts one message of 4,000 bits in {printed:.1f}, at which lhacks reach {found:.0%}; one "
        "in 75 is 3.4·10⁻⁶, and one in 250 is the 1·10⁻⁶ that is printed: an exponent is wrong, and figure 3 "
        "goes by messages"
    )
    ours = calculated(printed)
    region = Region(
        75 / (1 + 1 / 6), 75 * (1 + 1 / 6), "64 to 88: rounding of the printed 3, which is 2.5 to 3.5"
    )
    return Finding([Criterion(ours, region)], f"one in {printed:.1f}", note)


def caption(evidence: Evidence) -> Finding:
    """Compare the two corruption rates that are stated for figure 4."""
    means = {
        rate: evidence.over_runs(f"window-{rate}", "basic", _mean_window).mean for rate in ("150", "125")
    }
    text = ", ".join(f"{mean:.1f} at 1/{rate}" for rate, mean in means.items())
    note = "both are drawn, as figures 4 and 4-125, with the same result"
    region = within(1.0, 0.0, "one rate: the two are printed exactly")
    return Finding([Criterion(calculated(150 / 125), region)], f"mean windows without lhacks: {text}", note)


def round_trip(evidence: Evidence) -> Finding:
    """Measure the round-trip time of a single message without its transmission."""

    def first(run: Run) -> float:
        """Return the time of the first acknowledgement, for a single message sent at time zero."""
        events = run.events()
        return float(events["time_s"][np.argmax(events["event"] == "ack-received")])

    measured = min(first(run) for run in evidence.runs("window-150", "lhack"))
    delays = measured - _TRANSMISSION
    text = f"{delays * 1e3:.0f} ms, and {measured * 1e3:.0f} ms with the transmission on five links"
    region = within(0.2, 1e-3, "199 to 201 ms")
    return Finding([Criterion(calculated(delays), region)], text)
