"""The claims of the paper's text, each with its section."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from lasthop import Run
from lasthop.papers.claims import Differs, Told
from lasthop.papers.evidence import Evidence
from lasthop.papers.lhack.network import (
    CEILING,
    MSS,
    OPTIMUM,
    PAYLOAD_BITS,
    messages_per_corruption,
)
from lasthop.papers.paper import CONTRADICTS, FAILS, HOLDS, Claim, Judgement
from lasthop.study.quantity import number
from lasthop.study.statistics import Estimate, compare, estimate

ABOUT = 0.25
"""How far a window may be from one that the text calls "about" so many messages: they are read off a
figure whose axis has a mark every ten."""

LENGTH = 60.0
"""The duration of figures 4 and 5, in seconds."""

_BOUND = CEILING * PAYLOAD_BITS

_TRANSMISSION = 5 * (500 + 40) / 100_000
"""The transmission time of a message and its acknowledgement over five links, in seconds."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A fast retransmit, or a timeout, in the trace of a run.

    Attributes
    ----------
    time : float
        When, in seconds.
    before, after : float
        The window before and after it, in messages.
    why : str
        Why the message was lost that it is about: ``"corrupted"``, ``"queue-full"``, or nothing.
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
        # The row of this instant has the window after it, which another may follow within the instant.
        row = int(np.searchsorted(series["time_s"], time))
        windows = series["cwnd_bytes"] / MSS
        found.append(Cut(time, float(windows[row - 1]), float(windows[row]), why))
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


def _share(evidence: Evidence, scheme: str, messages: int, experiment: str = "rate") -> Estimate:
    """Return the throughput relative to the ceiling."""
    sample = evidence.sweep(experiment).sample(
        "throughput_bps", scheme, _by_messages(evidence, experiment, messages)
    )
    return estimate(sample / _BOUND, evidence.sweep(experiment).study.seed)


def _percent(found: Estimate) -> str:
    return f"{found.mean:.1%} ± {found.ci95:.1%}"


def _reaches(evidence: Evidence) -> Judgement:
    shares = {messages: _share(evidence, "lhack", messages) for messages in (75, 150, 250)}
    best = shares[250]
    text = ", ".join(f"{_percent(share)} at 1/{messages}" for messages, share in shares.items())
    note = (
        "what is lost twice waits for the timer; with no corruption at all this TCP reaches 95 %, because "
        "it overflows the buffer every 7 s; with the reading recovery=sack lhacks come to 95 % at 1/250"
    )
    return Judgement(HOLDS if best.mean + best.ci95 >= 0.96 else FAILS, text, best.mean, best.ci95, note)


def _below_60(evidence: Evidence) -> Judgement:
    found = _share(evidence, "basic", 150)
    note = (
        "a window that a loss halves is about √(3/2p) = 15 messages on average, and 15 each 227 ms, "
        "transmission included, are 66 % (Mathis et al. 1997), less what timeouts and a growing queue cost; "
        "with the reading recovery=reno, which has more timeouts, it is 54 %"
    )
    verdict = HOLDS if found.mean - found.ci95 < 0.60 else FAILS
    return Judgement(verdict, _percent(found), found.mean, found.ci95, note)


def _never_20(evidence: Evidence) -> Judgement:
    def share(run: Run) -> float:
        windows, spans = _window(run, _cuts(run)[0].time)
        return float(spans[windows >= OPTIMUM].sum() / spans.sum())

    found = evidence.over_runs("window-150", "basic", share)
    mean = evidence.over_runs("window-150", "basic", _mean_window)
    text = f"20 or more for {_percent(found)} of the time; on average {mean.mean:.1f} ± {mean.ci95:.1f}"
    note = "between two losses, 150 messages apart on average, it now and then grows beyond"
    return Judgement(HOLDS if found.mean == 0 else FAILS, text, found.mean, found.ci95, note)


def _each_corruption(evidence: Evidence) -> Judgement:
    def ratio(run: Run) -> float:
        cuts = [*_cuts(run), *_cuts(run, "timeout")]
        return sum(each.after < each.before for each in cuts) / _corrupted(run)

    found = evidence.over_runs("window-150", "basic", ratio)
    text = f"{found.mean:.2f} ± {found.ci95:.2f} times for each corrupted message"
    note = "two of one window are one loss"
    return Judgement(HOLDS if found.mean >= 0.8 else FAILS, text, found.mean, found.ci95, note)


def _slow_start(evidence: Evidence) -> Judgement:
    def until(run: Run) -> float:
        windows, spans = _window(run, end=10.0)
        steps = int(np.argmax(windows >= OPTIMUM))
        one_by_one = bool(np.all(np.diff(windows[: steps + 1]) <= 1.001))
        return float(spans[:steps].sum()) if one_by_one and steps else np.inf

    found = evidence.over_runs("window-150", "lhack", until)
    text = f"20 after {found.mean:.2f} ± {found.ci95:.2f} s, by one message for each acknowledgement"
    # From 1 to 20 are four round trips and a half, of 227 ms and more; linearly they would be nineteen.
    return Judgement(HOLDS if found.mean < 9 * 0.227 else FAILS, text, found.mean, found.ci95)


def _not_cut(evidence: Evidence) -> Judgement:
    runs = evidence.runs("window-150", "lhack")
    cuts = [each for run in runs for each in _cuts(run) if each.why == "corrupted"]
    smaller = sum(each.after < each.before for each in cuts)
    text = f"smaller after {smaller} of {len(cuts)} in {len(runs)} runs"
    note = "the message's lhack was itself lost, or a copy of it in a full buffer"
    return Judgement(HOLDS if smaller <= 0.01 * len(cuts) else FAILS, text, smaller, note=note)


def _halved(evidence: Evidence) -> Judgement:
    runs = evidence.runs("window-150", "lhack")
    cuts = [each for run in runs for each in _congested(run)]
    ratios = [each.after / each.before for each in cuts]
    full = sum(each.why == "queue-full" for each in cuts)
    text = (
        f"{len(cuts)} cuts, {full} of them for a full buffer, all to {min(ratios):.2f} to {max(ratios):.2f}"
    )
    holds = all(abs(ratio - 0.5) < 0.01 for ratio in ratios) and full >= 0.95 * len(cuts)
    return Judgement(HOLDS if holds else FAILS, text, float(np.mean(ratios)))


def _peaks(
    experiment: str, scheme: str, span: tuple[float, float], printed: float, evidence: Evidence
) -> Judgement:
    """Judge the mean window before a congestion cut, within an interval."""

    def peak(run: Run) -> float:
        found = [each.before for each in _congested(run, *span)]
        return float(np.mean(found)) if found else float(_window(run, *span)[0].max())

    found = evidence.over_runs(experiment, scheme, peak)
    holds = abs(found.mean - printed) <= found.ci95 + ABOUT * printed
    text = f"{found.mean:.1f} ± {found.ci95:.1f} messages before a cut"
    return Judgement(HOLDS if holds else FAILS, text, found.mean, found.ci95, _FULL_BUFFER)


def _not_below(evidence: Evidence) -> Judgement:
    found = evidence.over_runs(
        "window-150", "lhack", lambda run: float(np.mean([each.after for each in _congested(run)]))
    )
    text = f"{found.mean:.1f} ± {found.ci95:.1f} messages after a cut"
    return Judgement(
        HOLDS if found.mean + found.ci95 >= OPTIMUM else FAILS, text, found.mean, found.ci95, _FULL_BUFFER
    )


_FIGURE_5 = {"with lhacks": ("decrease", "lhack"), "wired": ("decrease-wired", "basic")}


def _overflow(number: int, run: Run) -> float:
    """Return the start of a buffer overflow by its number: a drop 2 s after the last begins another."""
    events = run.events()
    lost = events["time_s"][(events["event"] == "lost") & (events["reason"] == "queue-full")]
    begins = np.append(True, np.diff(lost) > 2)
    return float(lost[begins][number])


def _written(found: dict[str, Estimate]) -> str:
    return ", ".join(f"{label} {each.mean:.1f} ± {each.ci95:.1f} s" for label, each in found.items())


def _near_7(evidence: Evidence) -> Judgement:
    found = {label: evidence.over_runs(*which, partial(_overflow, 0)) for label, which in _FIGURE_5.items()}
    holds = all(abs(each.mean - 7) <= each.ci95 + 1 for each in found.values())
    ours = found["with lhacks"]
    note = "around is called what is within a second"
    return Judgement(HOLDS if holds else FAILS, _written(found), ours.mean, ours.ci95, note)


def _premature(evidence: Evidence) -> Judgement:
    # Runs of one number are alike until the additional source begins.
    with_it, without = (
        np.asarray([_overflow(1, run) for run in evidence.runs(experiment, "lhack")])
        for experiment in ("decrease", "window-125")
    )
    found = evidence.over_runs("decrease", "lhack", partial(_overflow, 1))
    earlier = compare(without, with_it, 1).difference
    gain = f"{earlier.mean:.1f} ± {earlier.ci95:.1f} s"
    text = f"{found.mean:.1f} ± {found.ci95:.1f} s; {gain} earlier than without"
    verdict = HOLDS if earlier.low > 0 else FAILS
    return Judgement(verdict, text, found.mean, found.ci95, "run by run, with lhacks")


def _alike(evidence: Evidence) -> Judgement:
    found = {label: evidence.over_runs(*which, _mean_window) for label, which in _FIGURE_5.items()}
    text = ", ".join(f"{label} {each.mean:.1f} ± {each.ci95:.1f}" for label, each in found.items())
    ours, theirs = found["with lhacks"].mean, found["wired"].mean
    verdict = HOLDS if abs(ours / theirs - 1) <= ABOUT else FAILS
    return Judgement(verdict, f"mean windows: {text}", ours / theirs)


def _variant(experiment: str, evidence: Evidence) -> Judgement:
    shares = {
        messages: (_share(evidence, "lhack", messages), _share(evidence, "lhack", messages, experiment))
        for messages in (75, 150, 250)
    }
    text = ", ".join(f"{_percent(other)} at 1/{n}" for n, (_, other) in shares.items())
    usual = ", ".join(f"{share.mean:.1%}" for share, _ in shares.values())
    furthest = max(abs(other.mean / share.mean - 1) for share, other in shares.values())
    note = f"a mobile destination has {usual}; similar is called what differs by no more than a tenth"
    if experiment == "mobile-source":
        note += "; what a mobile source lost on its own link it sends again within a few messages"
    return Judgement(HOLDS if furthest <= 0.1 else FAILS, text, furthest, note=note)


def _double(evidence: Evidence) -> Judgement:
    def lost(run: Run, kind: str) -> set[int]:
        events = run.events()
        return set(events["packet"][(events["event"] == kind) & (events["reason"] == "corrupted")].tolist())

    runs = evidence.runs("both-window", "lhack")
    both = sum(len(lost(run, "lost") & lost(run, "notice-lost")) for run in runs)
    sent = sum(run.metrics["segments_sent"] for run in runs)
    text = f"{both} of {sent:,} messages at 1/75"
    note = "a message and any of its lhacks and fhacks"
    return Judgement(HOLDS if both <= 1e-3 * sent else FAILS, text, both / sent, note=note)


def _third_throughput(evidence: Evidence) -> Judgement:
    changes = {}
    for messages in (75, 150, 250):
        each, third = (_share(evidence, "lhack", messages, name) for name in ("rate", "every-third"))
        changes[messages] = third.mean / each.mean - 1
    text = ", ".join(f"{change:+.1%} at 1/{messages}" for messages, change in changes.items())
    worst = min(changes.values())
    note = (
        "the window grows by a message for so many acknowledgements, and they are a third: after a cut it "
        "takes three times as long; duplicates still come one for each message"
    )
    return Judgement(HOLDS if worst >= -0.05 else FAILS, text, worst, note="" if worst >= -0.05 else note)


def _acks(evidence: Evidence, experiment: str, scheme: str, messages: int) -> tuple[float, float]:
    """Return the acknowledgements and lhacks per data message."""
    sweep, at = evidence.sweep(experiment), _by_messages(evidence, experiment, messages)
    acks, notices, sent = (
        sweep.mean(metric, scheme, at).mean for metric in ("acks_sent", "notices", "segments_sent")
    )
    return acks / sent, notices / sent


def _third_traffic(evidence: Evidence) -> Judgement:
    acks, _ = _acks(evidence, "every-third", "lhack", 150)
    text = f"{acks:.2f} acknowledgements for each data message"
    note = "what arrives out of order is acknowledged at once, and lhacks come for every message all the same"
    return Judgement(HOLDS if abs(acks - 1 / 3) <= 0.1 else FAILS, text, acks, note=note)


def _doubles(evidence: Evidence) -> Judgement:
    acks, lhacks = _acks(evidence, "rate", "lhack", 150)
    text = f"{acks:.2f} acknowledgements and {lhacks:.2f} lhacks for each data message"
    return Judgement(HOLDS if abs((acks + lhacks) / acks - 2) < 0.05 else FAILS, text, (acks + lhacks) / acks)


def _misprint(evidence: Evidence) -> Judgement:
    printed = messages_per_corruption(3e-5)
    sweep = evidence.sweep("printed")
    worst = max(sweep.values("ber"), key=number)
    found = sweep.mean("throughput_bps", "lhack", {"ber": worst}).mean / _BOUND
    note = (
        f"3·10⁻⁵ corrupts one message of 4,000 bits in {printed:.1f}, at which lhacks reach {found:.0%}; one "
        "in 75 is 3.4·10⁻⁶, and one in 250 is the 1·10⁻⁶ that is printed: an exponent is wrong, and figure 3 "
        "goes by messages"
    )
    return Judgement(CONTRADICTS, f"one in {printed:.1f}", printed, note=note)


def _caption(evidence: Evidence) -> Judgement:
    means = {
        rate: evidence.over_runs(f"window-{rate}", "basic", _mean_window).mean for rate in ("150", "125")
    }
    text = ", ".join(f"{mean:.1f} at 1/{rate}" for rate, mean in means.items())
    note = "both are drawn, as figures 4 and 4-125; they tell the same"
    return Judgement(CONTRADICTS, f"mean windows without lhacks: {text}", note=note)


def _round_trip(evidence: Evidence) -> Judgement:
    def first(run: Run) -> float:
        """Return the time of the first acknowledgement, that of a lone message sent at time zero."""
        events = run.events()
        return float(events["time_s"][np.argmax(events["event"] == "ack-received")])

    measured = min(first(run) for run in evidence.runs("window-150", "lhack"))
    delays = measured - _TRANSMISSION
    text = f"{delays * 1e3:.0f} ms, and {measured * 1e3:.0f} ms with the transmission on five links"
    return Judgement(HOLDS if abs(delays - 0.2) < 1e-3 else FAILS, text, delays)


_SECTION = "5"
_FULL_BUFFER = (
    "on average the buffer overflows when 100 messages per second for 227 ms and half of its 30 are on their "
    "way, 38, so that what is halved is a little less than 40; with the additional source 60 per second and "
    "30 % of the buffer, 23"
)
_HALF_IS_ENOUGH = (
    "all that was under way is lost, and both sources wait for the timer; half the window, to which the "
    "other then returns, still fills the path, so that little is gained"
)

CLAIMS: tuple[Claim, ...] = (
    Told(
        id="round-trip",
        section=_SECTION,
        statement="the links' delays yield a round-trip time of 200 ms",
        printed="200 ms",
        experiment="window-150",
        how=_round_trip,
    ),
    Told(
        id="reaches",
        section=_SECTION,
        statement="with lhacks the throughput reaches 96 % of the maximum",
        printed="96 %",
        experiment="rate",
        how=_reaches,
    ),
    Told(
        id="below-60",
        section=_SECTION,
        statement="without, it is less than 60 % of the maximum even at 1/150",
        printed="< 60 %",
        experiment="rate",
        how=_below_60,
    ),
    Differs(
        id="reduced",
        section=_SECTION,
        statement="without lhacks the throughput is reduced significantly",
        printed="-",
        experiment="rate",
        metric="throughput_bps",
        above="lhack",
        below="basic",
    ),
    Told(
        id="misprint",
        section=_SECTION,
        statement="the bit error rate goes from 3·10⁻⁵, one in 75 messages, to 1·10⁻⁶, one in 250",
        printed="one in 75",
        experiment="printed",
        how=_misprint,
    ),
    Told(
        id="each-corruption",
        section=_SECTION,
        statement="figure 4, without: the window is decreased once for every corrupted message",
        printed="once each",
        experiment="window-150",
        how=_each_corruption,
    ),
    Told(
        id="never-20",
        section=_SECTION,
        statement="figure 4, without: it never reaches its optimum of 20",
        printed="never",
        experiment="window-150",
        how=_never_20,
    ),
    Told(
        id="caption",
        section=_SECTION,
        statement="figure 4 is for a loss of 1/150 (text) or 1/125 (caption)",
        printed="1/150, 1/125",
        experiment="window-150",
        besides=("window-125",),
        how=_caption,
    ),
    Told(
        id="slow-start",
        section=_SECTION,
        statement="figure 4, with: it grows exponentially to 20, then linearly",
        printed="20",
        experiment="window-150",
        how=_slow_start,
    ),
    Told(
        id="not-cut",
        section=_SECTION,
        statement="figure 4, with: a fast retransmit due to corruption does not decrease it",
        printed="never",
        experiment="window-150",
        how=_not_cut,
    ),
    Told(
        id="halved",
        section=_SECTION,
        statement="figure 4, with: at an overflow of the buffer it is reduced by half",
        printed="by half",
        experiment="window-150",
        how=_halved,
    ),
    Told(
        id="twice",
        section=_SECTION,
        statement="figure 4, with: it grows to twice its optimum",
        printed="40",
        experiment="window-150",
        how=partial(_peaks, "window-150", "lhack", (0, LENGTH), 2 * OPTIMUM),
    ),
    Told(
        id="not-below",
        section=_SECTION,
        statement="figure 4, with: halved, it does not drop below the optimum",
        printed="20",
        experiment="window-150",
        how=_not_below,
    ),
    Told(
        id="near-7",
        section=_SECTION,
        statement="figure 5: the first congestion is at around 7 s",
        printed="7 s",
        experiment="decrease",
        besides=("decrease-wired",),
        how=_near_7,
    ),
    Told(
        id="premature",
        section=_SECTION,
        statement="figure 5: it occurs again prematurely, because the new source is active from 10 s on",
        printed="10 s",
        experiment="decrease",
        besides=("window-125",),
        how=_premature,
    ),
    Told(
        id="about-20",
        section=_SECTION,
        statement="figure 5, with lhacks: meanwhile the largest window is about 20",
        printed="20",
        experiment="decrease",
        how=partial(_peaks, "decrease", "lhack", (13, 25), OPTIMUM),
    ),
    Told(
        id="about-20-wired",
        section=_SECTION,
        statement="figure 5, wired: meanwhile the largest window is about 20",
        printed="20",
        experiment="decrease-wired",
        how=partial(_peaks, "decrease-wired", "basic", (13, 25), OPTIMUM),
    ),
    Told(
        id="about-40",
        section=_SECTION,
        statement="figure 5, with lhacks: later it is about 40 once more",
        printed="40",
        experiment="decrease",
        how=partial(_peaks, "decrease", "lhack", (25, 60), 2 * OPTIMUM),
    ),
    Told(
        id="about-40-wired",
        section=_SECTION,
        statement="figure 5, wired: later it is about 40 once more",
        printed="40",
        experiment="decrease-wired",
        how=partial(_peaks, "decrease-wired", "basic", (25, 60), 2 * OPTIMUM),
    ),
    Told(
        id="alike",
        section=_SECTION,
        statement="figure 5: the source behaves alike in both cases",
        printed="alike",
        experiment="decrease",
        besides=("decrease-wired",),
        how=_alike,
    ),
    Told(
        id="mobile-source",
        section=_SECTION,
        statement="a mobile source and a stationary destination: similar results",
        printed="similar",
        experiment="mobile-source",
        besides=("rate",),
        how=partial(_variant, "mobile-source"),
    ),
    Told(
        id="both-mobile",
        section=_SECTION,
        statement="both mobile: similar results",
        printed="similar",
        experiment="both-mobile",
        besides=("rate",),
        how=partial(_variant, "both-mobile"),
    ),
    Told(
        id="double-loss",
        section="4, 5",
        statement="both mobile: a message and its lhack are hardly ever both corrupted",
        printed="none",
        experiment="both-window",
        how=_double,
    ),
    Told(
        id="doubles",
        section="4",
        statement="lhacks double the number of acknowledgements",
        printed="2",
        experiment="rate",
        how=_doubles,
    ),
    Told(
        id="third-traffic",
        section="4",
        statement="a destination that acknowledges every third message returns a third of them",
        printed="1/3",
        experiment="every-third",
        how=_third_traffic,
    ),
    Told(
        id="third-throughput",
        section="4",
        statement="that has little, if any, effect on the throughput",
        printed="little",
        experiment="every-third",
        besides=("rate",),
        how=_third_throughput,
    ),
    Differs(
        id="handoff",
        section="6",
        statement="hand-offs of a mobile destination: lhacks keep the window from being decreased",
        printed="-",
        experiment="handoff",
        metric="throughput_bps",
        above="lhack",
        below="basic",
    ),
    Differs(
        id="handoff-source",
        section="6",
        statement="hand-offs of a mobile source: slow start leads back to the window that there was",
        printed="-",
        experiment="handoff-source",
        metric="throughput_bps",
        above="lhack",
        below="basic",
        why=_HALF_IS_ENOUGH,
    ),
)
