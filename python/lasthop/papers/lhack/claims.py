"""The claims of the paper's text, each with its section."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from lasthop._lasthop import Run
from lasthop.core.quantity import number
from lasthop.core.statistics import Estimate, Sample
from lasthop.papers.claims import Contradiction, CustomClaim, Exceeds, Finding, as_gain
from lasthop.papers.evidence import Evidence
from lasthop.papers.lhack.network import (
    CEILING,
    MOBILES,
    MSS,
    OPTIMUM,
    PAYLOAD_BITS,
    messages_per_corruption,
)
from lasthop.papers.paper import Claim
from lasthop.papers.verdicts import (
    HARDLY,
    NEVER,
    PERCENT,
    SAME,
    Measured,
    Part,
    Region,
    Unit,
    about,
    above,
    below,
    calculated,
    clearly_above,
    difference,
    doubles,
    halves,
    never,
    rate,
    ratio,
    same,
    within,
)

LENGTH = 60.0
"""The duration of figures 4 and 5, in seconds."""

_BOUND = CEILING * PAYLOAD_BITS
_MESSAGES = Unit("messages", 1.0, 1)
_SECONDS = Unit("s", 1.0, 2)

_TRANSMISSION = 5 * (500 + 40) / 100_000
"""The transmission time of a message and its acknowledgement over five links, in seconds."""


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
    return PERCENT.estimate(found)


def _reaches(evidence: Evidence) -> Finding:
    shares = {messages: _share(evidence, "lhack", messages) for messages in (75, 150, 250)}
    text = ", ".join(f"{_percent(share.at())} at 1/{messages}" for messages, share in shares.items())
    region = above(0.955, "at least 95.5 % at the lowest rate: rounding of the printed digits")
    return Finding([Part(shares[250], region, unit=PERCENT)], text)


def _below_60(evidence: Evidence) -> Finding:
    found = _share(evidence, "basic", 150)
    note = (
        "a window halved by each loss is about √(3/2p) = 15 messages on average (Mathis et al. "
        "1997); 15 messages per 227 ms, transmission included, are 66 %, less the cost of "
        "timeouts and a growing queue; with the reading recovery=reno, which has more timeouts, "
        "it is 54 %"
    )
    return Finding([Part(found, below(0.60, "less than 60 %"), unit=PERCENT)], _percent(found.at()), note)


def _never_20(evidence: Evidence) -> Finding:
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
    return Finding([Part(reached, never())], text)


def _each_corruption(evidence: Evidence) -> Finding:
    def cuts(run: Run) -> float:
        return sum(each.after < each.before for each in (*_cuts(run), *_cuts(run, "timeout")))

    runs = evidence.runs("window-150", "basic")
    found = ratio(
        np.asarray([cuts(run) for run in runs], float), np.asarray([_corrupted(run) for run in runs], float)
    )
    text = f"{found.at().mean:.2f} ± {found.at().ci95:.2f} times for each corrupted message"
    region = within(1.0, SAME, '0.9 to 1.1 times: our margin, as for "the same"')
    return Finding([Part(found, region)], text, "two losses of one window cause one reduction")


def _slow_start(evidence: Evidence) -> Finding:
    def until(run: Run) -> float:
        windows, spans = _window(run, end=10.0)
        return float(spans[: int(np.argmax(windows >= OPTIMUM))].sum())

    found = evidence.quantity("window-150", "lhack", until)
    at = found.at()
    # Exponential growth from 1 to 20 takes 4.5 round trips of 227 ms or more; linear growth takes nineteen.
    region = below(9 * 0.227, "20 within nine round trips: our margin, as linear growth takes nineteen")
    return Finding([Part(found, region, unit=_SECONDS)], f"20 after {at.mean:.2f} ± {at.ci95:.2f} s")


def _count(cuts: Sequence[Sequence[Cut]], predicate: Callable[[Cut], bool]) -> Sample:
    """Return the number of cuts in each run that satisfy a predicate."""
    return np.asarray([sum(map(predicate, each)) for each in cuts], dtype=np.float64)


def _not_cut(evidence: Evidence) -> Finding:
    runs = evidence.runs("window-150", "lhack")
    cuts = [[each for each in _cuts(run) if each.why == "corrupted"] for run in runs]
    smaller, number_of = _count(cuts, lambda cut: cut.after < cut.before), _count(cuts, lambda cut: True)
    text = f"smaller after {smaller.sum():.0f} of {number_of.sum():.0f} in {len(runs)} runs"
    region = below(NEVER, "after at most 1 % of the corrupted messages: never")
    return Finding([Part(rate(smaller, number_of), region, unit=PERCENT)], text)


def _halved(evidence: Evidence) -> Finding:
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
    text = (
        f"{len(ratios)} cuts, {full:.0f} of them for a full buffer, to {min(ratios):.2f} to {max(ratios):.2f}"
    )
    region = below(
        0.1,
        f"at most a tenth of the cuts are to other than {half.low:.2f} to {half.high:.2f}, or for "
        "another loss than by a full buffer: our margin",
    )
    parts = [Part(rate(each, number_of), region, label, PERCENT) for label, each in others.items()]
    return Finding(parts, text)


def _peaks(
    experiment: str, scheme: str, span: tuple[float, float], region: Region, evidence: Evidence
) -> Finding:
    """Return the mean window before a congestion cut, within an interval."""

    def peak(run: Run) -> float:
        found = [each.before for each in _congested(run, *span)]
        return float(np.mean(found)) if found else float(_window(run, *span)[0].max())

    found = evidence.quantity(experiment, scheme, peak)
    at = found.at()
    text = f"{at.mean:.1f} ± {at.ci95:.1f} messages before a cut"
    return Finding([Part(found, region, unit=_MESSAGES)], text, _FULL_BUFFER)


def _not_below(evidence: Evidence) -> Finding:
    def after(run: Run) -> float:
        return float(np.mean([each.after for each in _congested(run)]))

    found = evidence.quantity("window-150", "lhack", after)
    at = found.at()
    region = above(OPTIMUM, "on average not below 20 after a cut")
    text = f"{at.mean:.1f} ± {at.ci95:.1f} messages after a cut"
    return Finding([Part(found, region, unit=_MESSAGES)], text, _FULL_BUFFER)


_FIGURE_5 = {"with lhacks": ("decrease", "lhack"), "wired": ("decrease-wired", "basic")}


def _overflow(number: int, run: Run) -> float:
    """Return the start of a buffer overflow by number; a drop 2 s after the previous one starts another."""
    events = run.events()
    lost = events["time_s"][(events["event"] == "lost") & (events["reason"] == "queue-full")]
    begins = np.append(True, np.diff(lost) > 2)
    return float(lost[begins][number])


def _near_7(evidence: Evidence) -> Finding:
    found = {label: evidence.quantity(*which, partial(_overflow, 0)) for label, which in _FIGURE_5.items()}
    parts = [Part(each, about(7.0), label, _SECONDS) for label, each in found.items()]
    at = {label: each.at() for label, each in found.items()}
    text = ", ".join(f"{label} {each.mean:.1f} ± {each.ci95:.1f} s" for label, each in at.items())
    return Finding(parts, text)


def _premature(evidence: Evidence) -> Finding:
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
    return Finding([Part(earlier, region, unit=_SECONDS)], text)


def _alike(evidence: Evidence) -> Finding:
    with_it, wired = (evidence.quantity(*which, _mean_window) for which in _FIGURE_5.values())
    found = ratio(with_it.values, wired.values)
    at = [each.at() for each in (with_it, wired)]
    text = ", ".join(
        f"{label} {each.mean:.1f} ± {each.ci95:.1f}" for label, each in zip(_FIGURE_5, at, strict=True)
    )
    return Finding([Part(found, same())], f"{found.at().mean:.2f} times as large; mean windows: {text}")


def _variant(experiment: str, beside: str, evidence: Evidence) -> Finding:
    parts = [
        Part(_beside(evidence, experiment, messages), same(), f"1/{messages}") for messages in (75, 150, 250)
    ]
    text = ", ".join(f"{as_gain(part.quantity.at(), 1)} at {part.label}" for part in parts)
    return Finding(parts, f"beside {beside} {text}")


def _double(evidence: Evidence) -> Finding:
    def lost(run: Run, kind: str) -> set[int]:
        events = run.events()
        return set(events["packet"][(events["event"] == kind) & (events["reason"] == "corrupted")].tolist())

    runs = evidence.runs("both-window", "lhack")
    both = np.asarray([len(lost(run, "lost") & lost(run, "notice-lost")) for run in runs], dtype=np.float64)
    sent = np.asarray([run.metrics["segments_sent"] for run in runs], dtype=np.float64)
    note = "a message and any of its lhacks and fhacks"
    region = below(HARDLY, "at most one message in a thousand: hardly ever")
    text = f"{both.sum():.0f} of {sent.sum():,.0f} messages at 1/75"
    return Finding([Part(rate(both, sent), region)], text, note)


def _per_message(evidence: Evidence, experiment: str, metrics: tuple[str, ...], under: str) -> Measured:
    """Return the sum of some metrics over another, of runs with lhacks at one corrupted message in 150."""
    sweep, at = evidence.sweep(experiment), _by_messages(evidence, experiment, 150)
    over = np.sum([sweep.sample(metric, "lhack", at) for metric in metrics], axis=0)
    return ratio(over, sweep.sample(under, "lhack", at))


def _third_traffic(evidence: Evidence) -> Finding:
    found = _per_message(evidence, "every-third", ("acks_sent",), "segments_sent")
    text = f"{found.at().mean:.2f} acknowledgements for each data message"
    return Finding([Part(found, about(1 / 3))], text)


def _doubles(evidence: Evidence) -> Finding:
    found = _per_message(evidence, "rate", ("acks_sent", "notices"), "acks_sent")
    return Finding([Part(found, doubles())], f"{found.at().mean:.2f} times as many with lhacks")


LOST_DACKS = (0.0, 0.01, 0.05, 0.1)
"""Shares of acknowledgements that are lost on the air. Of messages one in 150 is."""


def _lost_dacks(evidence: Evidence) -> Finding:
    sweep = evidence.sweep("lost-dacks")
    none, *losses = sweep.values("loss")
    parts = [
        Part(
            sweep.ratio("throughput_bps", ("lhack", {"loss": loss}), ("lhack", {"loss": none})),
            same(),
            f"{float(loss):.0%} of them",
        )
        for loss in losses
    ]
    text = ", ".join(f"{as_gain(part.quantity.at(), 1)} with {part.label}" for part in parts)
    return Finding(parts, text)


CONTROLLED = ("tahoe", "reno", "newreno", "sack")
"""Protocols that take a loss for congestion: of the recoveries, those with a control."""


def _any_protocol(evidence: Evidence) -> Finding:
    sweep = evidence.sweep("recovery")
    parts = []
    for flavour in CONTROLLED:
        for ber in sweep.values("ber"):
            at = {"flavour": flavour, "ber": ber}
            label = f"{flavour}, one in {messages_per_corruption(number(ber)):.0f}"
            parts.append(Part(sweep.ratio("throughput_bps", ("lhack", at), ("basic", at)), above(), label))
    gains = {part.label: part.quantity.at() for part in parts}
    least, most = (choose(gains, key=lambda label: gains[label].mean) for choose in (min, max))
    return Finding(parts, f"{as_gain(gains[least])} ({least}) to {as_gain(gains[most])} ({most})")


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


def _several(evidence: Evidence) -> Finding:
    gains = _several_gains(evidence)
    parts = [Part(gain, above(), f"{mobiles} mobiles") for mobiles, gain in gains.items() if mobiles > 1]
    text = ", ".join(f"{as_gain(part.quantity.at(), 1)} with {part.label}" for part in parts)
    return Finding(parts, text)


def _smaller_product(evidence: Evidence) -> Finding:
    gains = _several_gains(evidence)
    region = below(0.0, "a smaller gain than with one mobile host")
    parts = [
        Part(difference(gain, gains[1]), region, f"{mobiles} mobiles")
        for mobiles, gain in gains.items()
        if mobiles > 1
    ]
    text = ", ".join(f"{as_gain(gain.at(), 1)} with {mobiles}" for mobiles, gain in gains.items())
    return Finding(parts, text)


def _misprint(evidence: Evidence) -> Finding:
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
    return Finding([Part(ours, region)], f"one in {printed:.1f}", note)


def _caption(evidence: Evidence) -> Finding:
    means = {
        rate: evidence.over_runs(f"window-{rate}", "basic", _mean_window).mean for rate in ("150", "125")
    }
    text = ", ".join(f"{mean:.1f} at 1/{rate}" for rate, mean in means.items())
    note = "both are drawn, as figures 4 and 4-125, with the same result"
    region = within(1.0, 0.0, "one rate: the two are printed exactly")
    return Finding([Part(calculated(150 / 125), region)], f"mean windows without lhacks: {text}", note)


def _round_trip(evidence: Evidence) -> Finding:
    def first(run: Run) -> float:
        """Return the time of the first acknowledgement, for a single message sent at time zero."""
        events = run.events()
        return float(events["time_s"][np.argmax(events["event"] == "ack-received")])

    measured = min(first(run) for run in evidence.runs("window-150", "lhack"))
    delays = measured - _TRANSMISSION
    text = f"{delays * 1e3:.0f} ms, and {measured * 1e3:.0f} ms with the transmission on five links"
    region = within(0.2, 1e-3, "199 to 201 ms")
    return Finding([Part(calculated(delays), region)], text)


_SECTION = "5"
_FULL_BUFFER = (
    "on average the buffer overflows with 38 messages in flight (100 per second for 227 ms, "
    "and half of the 30 in the buffer), so slightly less than 40 are halved; with the "
    "additional source it is 23 (60 per second, and 30 % of the buffer)"
)
_HALF_IS_ENOUGH = (
    "all messages in flight are lost, and both sources wait for the timer; the other source "
    "then returns to half the window, which still fills the path, so there is little to gain"
)

CLAIMS: tuple[Claim, ...] = (
    CustomClaim(
        id="round-trip",
        section=_SECTION,
        statement="the links' delays yield a round-trip time of 200 ms",
        printed="200 ms",
        experiment="window-150",
        fails_if="the sum of the links' delays is not 200 ms",
        definition=True,
        evaluate=_round_trip,
    ),
    CustomClaim(
        id="reaches",
        section=_SECTION,
        statement="with lhacks the throughput reaches 96 % of the maximum",
        printed="96 %",
        experiment="rate",
        fails_if="it stays below 95.5 % at the lowest corruption rate",
        why=(
            "messages lost twice wait for the timer; even without corruption this TCP reaches only 95"
            " %, because it overflows the buffer every 7 s; with the reading recovery=sack lhacks "
            "reach 95 % at 1/250"
        ),
        evaluate=_reaches,
    ),
    CustomClaim(
        id="below-60",
        section=_SECTION,
        statement="without lhacks the throughput is less than 60 % of the maximum even at 1/150",
        printed="< 60 %",
        experiment="rate",
        fails_if="it is 60 % or more",
        evaluate=_below_60,
    ),
    Exceeds(
        id="reduced",
        section=_SECTION,
        statement="without lhacks the throughput is reduced significantly",
        printed="-",
        experiment="rate",
        metric="throughput_bps",
        above="lhack",
        below="basic",
        region=clearly_above(),
    ),
    Contradiction(
        id="misprint",
        section=_SECTION,
        statement="the bit error rate goes from 3·10⁻⁵, one in 75 messages, to 1·10⁻⁶, one in 250",
        printed="one in 75",
        experiment="printed",
        fails_if="the printed bit error rate corrupts the printed share of messages",
        evaluate=_misprint,
    ),
    CustomClaim(
        id="each-corruption",
        section=_SECTION,
        statement="figure 4, without lhacks: the window is decreased once for every corrupted message",
        printed="once each",
        experiment="window-150",
        fails_if="there are less than 0.9 or more than 1.1 decreases for each corrupted message",
        evaluate=_each_corruption,
    ),
    CustomClaim(
        id="never-20",
        section=_SECTION,
        statement="figure 4, without lhacks: the window never reaches its optimum of 20",
        printed="never",
        experiment="window-150",
        fails_if="it reaches 20 in more than 1 % of the runs",
        why=(
            "losses are 150 messages apart on average, and sometimes the window grows beyond 20 between them"
        ),
        evaluate=_never_20,
    ),
    Contradiction(
        id="caption",
        section=_SECTION,
        statement="figure 4 is for a loss of 1/150 (text) or 1/125 (caption)",
        printed="1/150, 1/125",
        experiment="window-150",
        fails_if="text and caption print the same rate",
        further=("window-125",),
        evaluate=_caption,
    ),
    CustomClaim(
        id="slow-start",
        section=_SECTION,
        statement="figure 4, with lhacks: the window grows exponentially to 20, then linearly",
        printed="20",
        experiment="window-150",
        fails_if="20 takes more than nine round trips",
        definition=True,
        evaluate=_slow_start,
    ),
    CustomClaim(
        id="not-cut",
        section=_SECTION,
        statement="figure 4, with lhacks: a fast retransmit due to corruption does not decrease the window",
        printed="never",
        experiment="window-150",
        fails_if="it is smaller after more than 1 % of the corrupted messages",
        why="the message's lhack was itself lost, or a copy of it in a full buffer",
        evaluate=_not_cut,
    ),
    CustomClaim(
        id="halved",
        section=_SECTION,
        statement="figure 4, with lhacks: at an overflow of the buffer the window is reduced by half",
        printed="by half",
        experiment="window-150",
        fails_if="over a tenth of the cuts leave other than 45 % to 56 % of it, or are for another loss",
        evaluate=_halved,
    ),
    CustomClaim(
        id="twice",
        section=_SECTION,
        statement="figure 4, with lhacks: the window grows to twice its optimum",
        printed="40",
        experiment="window-150",
        fails_if="the mean window before a cut is outside 36 to 44 messages",
        evaluate=partial(_peaks, "window-150", "lhack", (0, LENGTH), doubles(OPTIMUM)),
    ),
    CustomClaim(
        id="not-below",
        section=_SECTION,
        statement="figure 4, with lhacks: a halved window does not drop below the optimum",
        printed="20",
        experiment="window-150",
        fails_if="the mean window after a cut is below 20",
        evaluate=_not_below,
    ),
    CustomClaim(
        id="near-7",
        section=_SECTION,
        statement="figure 5: the first congestion is at around 7 s",
        printed="7 s",
        experiment="decrease",
        fails_if="the mean time is outside 5.6 to 8.4 s in one of the two cases",
        further=("decrease-wired",),
        evaluate=_near_7,
    ),
    CustomClaim(
        id="premature",
        section=_SECTION,
        statement="figure 5: congestion recurs prematurely, because a new source is active from 10 s on",
        printed="10 s",
        experiment="decrease",
        fails_if="the second overflow is not earlier than without the source",
        further=("window-125",),
        evaluate=_premature,
    ),
    CustomClaim(
        id="about-20",
        section=_SECTION,
        statement="figure 5, with lhacks: while a new source is active the largest window is about 20",
        printed="20",
        experiment="decrease",
        fails_if="the mean window before a cut is outside 16 to 24 messages",
        evaluate=partial(_peaks, "decrease", "lhack", (13, 25), about(OPTIMUM)),
    ),
    CustomClaim(
        id="about-20-wired",
        section=_SECTION,
        statement="figure 5, wired: while a new source is active the largest window is about 20",
        printed="20",
        experiment="decrease-wired",
        fails_if="the mean window before a cut is outside 16 to 24 messages",
        evaluate=partial(_peaks, "decrease-wired", "basic", (13, 25), about(OPTIMUM)),
    ),
    CustomClaim(
        id="about-40",
        section=_SECTION,
        statement="figure 5, with lhacks: after the new source the largest window is about 40 once more",
        printed="40",
        experiment="decrease",
        fails_if="the mean window before a cut is outside 32 to 48 messages",
        evaluate=partial(_peaks, "decrease", "lhack", (25, 60), about(2 * OPTIMUM)),
    ),
    CustomClaim(
        id="about-40-wired",
        section=_SECTION,
        statement="figure 5, wired: after the new source the largest window is about 40 once more",
        printed="40",
        experiment="decrease-wired",
        fails_if="the mean window before a cut is outside 32 to 48 messages",
        evaluate=partial(_peaks, "decrease-wired", "basic", (25, 60), about(2 * OPTIMUM)),
    ),
    CustomClaim(
        id="alike",
        section=_SECTION,
        statement="figure 5: the source behaves alike in both cases",
        printed="alike",
        experiment="decrease",
        fails_if="the mean windows differ by more than a tenth",
        further=("decrease-wired",),
        evaluate=_alike,
    ),
    CustomClaim(
        id="mobile-source",
        section=_SECTION,
        statement="a mobile source and a stationary destination give results similar to the converse",
        printed="similar",
        experiment="mobile-source",
        fails_if="at some rate the throughput differs by more than a tenth",
        why=(
            "a mobile source retransmits losses on its own link after a few messages instead of a "
            "round trip, which gains more at higher corruption rates; with the reading "
            "detection=duplicates it agrees"
        ),
        further=("rate",),
        evaluate=partial(_variant, "mobile-source", "a mobile destination"),
    ),
    CustomClaim(
        id="both-mobile",
        section=_SECTION,
        statement="both ends mobile give results similar to a mobile destination",
        printed="similar",
        experiment="both-mobile",
        fails_if="at some rate the throughput differs by more than a tenth",
        further=("rate",),
        evaluate=partial(_variant, "both-mobile", "a mobile destination"),
    ),
    CustomClaim(
        id="double-loss",
        section="4, 5",
        statement="both ends mobile: a message and its lhack are hardly ever both corrupted",
        printed="none",
        experiment="both-window",
        fails_if="it happens to more than one message in a thousand",
        evaluate=_double,
    ),
    CustomClaim(
        id="doubles",
        section="4",
        statement="lhacks double the number of acknowledgements",
        printed="2",
        experiment="rate",
        fails_if="there are less than 1.8 or more than 2.2 times as many",
        definition=True,
        evaluate=_doubles,
    ),
    CustomClaim(
        id="third-traffic",
        section="4",
        statement="a destination that acknowledges every third message returns a third of them",
        printed="1/3",
        experiment="every-third",
        fails_if="it is less than 0.27 or more than 0.4 for each message",
        why="out-of-order messages are acknowledged immediately",
        evaluate=_third_traffic,
    ),
    CustomClaim(
        id="third-throughput",
        section="4",
        statement="acknowledging every third message has little, if any, effect on the throughput",
        printed="little",
        experiment="every-third",
        fails_if="at some rate it changes the throughput by more than a tenth",
        why=(
            "there are a third of the acknowledgements, so the window grows a third as fast after a "
            "reduction; there is still one duplicate per message"
        ),
        further=("rate",),
        evaluate=partial(_variant, "every-third", "an acknowledgement of each"),
    ),
    CustomClaim(
        id="lost-dacks",
        section="4",
        statement="the loss of acknowledgements of the destination affects the source only slightly",
        printed="slightly",
        experiment="lost-dacks",
        fails_if="with 1, 5 or 10 % of them lost the throughput changes by more than a tenth",
        evaluate=_lost_dacks,
    ),
    CustomClaim(
        id="any-protocol",
        section="6",
        statement="any protocol that takes a loss for congestion increases its throughput with lhacks",
        printed="-",
        experiment="recovery",
        fails_if="with Tahoe, Reno, NewReno or SACK it is no larger at some rate of corruption",
        evaluate=_any_protocol,
    ),
    CustomClaim(
        id="several-mobiles",
        section="2, 4",
        statement="several mobile hosts at a router: lhacks increase the throughput",
        printed="-",
        experiment="several-2",
        fails_if="with 2, 4 or 8 mobile hosts the throughput of all is no larger than without lhacks",
        further=tuple(f"several-{mobiles}" for mobiles in MOBILES if mobiles != 2),
        evaluate=_several,
    ),
    CustomClaim(
        id="smaller-product",
        section="3",
        statement="corruption costs most with a large bandwidth-delay product: less if several share it",
        printed="-",
        experiment="several-1",
        fails_if="lhacks gain no less with 2, 4 or 8 mobile hosts than with one",
        further=tuple(f"several-{mobiles}" for mobiles in MOBILES if mobiles != 1),
        evaluate=_smaller_product,
    ),
    Exceeds(
        id="handoff",
        section="6",
        statement="hand-offs of a mobile destination: lhacks keep the window from being decreased",
        printed="-",
        experiment="handoff",
        metric="throughput_bps",
        above="lhack",
        below="basic",
        region=above(),
    ),
    Exceeds(
        id="handoff-source",
        section="6",
        statement="hand-offs of a mobile source: slow start leads back to the window that there was",
        printed="-",
        experiment="handoff-source",
        metric="throughput_bps",
        above="lhack",
        below="basic",
        region=above(),
        why=_HALF_IS_ENOUGH,
    ),
)
