"""What the paper's text states about numbers and orderings, each with its section."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasthop import Run
from lasthop.papers.claims import Differs, Told
from lasthop.papers.evidence import Evidence
from lasthop.papers.lhack.figures import number
from lasthop.papers.lhack.network import (
    CEILING,
    MSS,
    OPTIMUM,
    PAYLOAD_BITS,
    messages_per_corruption,
)
from lasthop.papers.paper import CONTRADICTS, FAILS, HOLDS, Claim, Judgement
from lasthop.study.statistics import Estimate, estimate

ABOUT = 0.25
"""How far a window may be from one that the text calls "about" so many messages: they are read off a
figure whose axis has a mark every ten."""

_BOUND = CEILING * PAYLOAD_BITS


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
    """Return the conclusions of a source, in order."""
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


def _window(run: Run, start: float = 0.0, end: float = np.inf) -> tuple[npt.NDArray[np.float64], ...]:
    """Return the values that a window had in a span of time, in messages, and how long it had each."""
    series = run.series()
    time = np.append(series["time_s"], min(end, 60.0))
    shown = (time[:-1] >= start) & (time[:-1] < end)
    return series["cwnd_bytes"][shown] / MSS, np.diff(time)[shown]


def _by_messages(evidence: Evidence, experiment: str, messages: int) -> dict[str, str]:
    """Return the point at which one message in so many is corrupted."""
    values = evidence.sweep(experiment).values("ber")
    return {"ber": min(values, key=lambda value: abs(messages_per_corruption(number(value)) - messages))}


def _share(evidence: Evidence, scheme: str, messages: int, experiment: str = "rate") -> Estimate:
    """Return the throughput over the ceiling."""
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
        "transmission included, are 66 % (Mathis et al. 1997); with the reading recovery=reno, whose "
        "timeouts come on top, it is 54 %"
    )
    verdict = HOLDS if found.mean - found.ci95 < 0.60 else FAILS
    return Judgement(verdict, _percent(found), found.mean, found.ci95, note)


def _never_20(evidence: Evidence) -> Judgement:
    run = evidence.traces("window-150")["basic"]
    first = _cuts(run)[0].time
    windows, spans = _window(run, first)
    share = float(spans[windows >= OPTIMUM].sum() / spans.sum())
    mean = float(np.average(windows, weights=spans))
    text = f"on average {mean:.0f}; 20 or more for {share:.0%} of the time, {windows.max():.0f} at most"
    note = "between two losses, 150 messages apart on average, it now and then grows beyond"
    return Judgement(HOLDS if share == 0 else FAILS, text, share, note=note)


def _each_corruption(evidence: Evidence) -> Judgement:
    run = evidence.traces("window-150")["basic"]
    events = run.events()
    lost = int(np.count_nonzero((events["event"] == "lost") & (events["reason"] == "corrupted")))
    cuts = [*_cuts(run), *_cuts(run, "timeout")]
    cut = sum(each.after < each.before for each in cuts)
    text = f"{cut} times for {lost} corrupted messages"
    return Judgement(HOLDS if 0.8 <= cut / lost <= 1.2 else FAILS, text, cut / lost)


def _slow_start(evidence: Evidence) -> Judgement:
    windows, spans = _window(evidence.traces("window-150")["lhack"], end=10.0)
    steps = windows[: int(np.argmax(windows >= OPTIMUM)) + 1]
    took = float(spans[: len(steps) - 1].sum())
    doubles = bool(np.all(np.diff(steps) <= 1.001))
    text = f"{steps[-1]:.0f} after {took:.1f} s, by one message for each acknowledgement"
    return Judgement(HOLDS if doubles and took < 2 else FAILS, text, took)


def _not_cut(evidence: Evidence) -> Judgement:
    cuts = [each for each in _cuts(evidence.traces("window-150")["lhack"]) if each.why == "corrupted"]
    smaller = [each for each in cuts if each.after < each.before]
    text = f"smaller after {len(smaller)} of {len(cuts)}"
    note = "the message was lost in an overflow's recovery, or its lhack on the way"
    return Judgement(FAILS if smaller else HOLDS, text, len(smaller), note=note if smaller else "")


def _overflows(run: Run, start: float = 0.0, end: float = np.inf) -> list[Cut]:
    """Return the cuts by congestion in a span of time."""
    cuts = [each for each in _cuts(run) if each.after < each.before]
    return [each for each in cuts if start <= each.time < end]


def _halved(evidence: Evidence) -> Judgement:
    cuts = _overflows(evidence.traces("window-150")["lhack"])
    ratios = [each.after / each.before for each in cuts]
    text = f"{len(cuts)} times, to {min(ratios):.2f} to {max(ratios):.2f} of what it was"
    holds = all(abs(ratio - 0.5) < 0.01 for ratio in ratios) and all(
        each.why == "queue-full" for each in cuts
    )
    return Judgement(HOLDS if holds else FAILS, text, float(np.mean(ratios)))


def _about(values: Sequence[float], printed: float, seed: int) -> tuple[bool, Estimate]:
    """Whether the mean of some windows is about so many messages, and the mean."""
    found = estimate(np.asarray(values), seed)
    return abs(found.mean - printed) <= found.ci95 + ABOUT * printed, found


def _twice(evidence: Evidence) -> Judgement:
    cuts = _overflows(evidence.traces("window-150")["lhack"])
    holds, found = _about([each.before for each in cuts], 2 * OPTIMUM, 1)
    text = f"{found.mean:.0f} ± {found.ci95:.0f} messages before the {len(cuts)} cuts"
    return Judgement(HOLDS if holds else FAILS, text, found.mean, found.ci95)


def _not_below(evidence: Evidence) -> Judgement:
    cuts = _overflows(evidence.traces("window-150")["lhack"])
    found = estimate(np.asarray([each.after for each in cuts]), 1)
    least = min(each.after for each in cuts)
    text = f"{found.mean:.0f} ± {found.ci95:.0f} messages after the cuts, {least:.0f} at least"
    note = "the buffer holds cross traffic too: it overflows a little before 40 messages are on their way"
    return Judgement(
        HOLDS if found.mean + found.ci95 >= OPTIMUM else FAILS, text, found.mean, found.ci95, note
    )


def _overflow_times(evidence: Evidence) -> dict[str, list[float]]:
    """Return when the connection lost messages at a full buffer, in figure 5."""
    runs = {
        "with lhacks": evidence.traces("decrease")["lhack"],
        "wired": evidence.traces("decrease-wired")["basic"],
    }
    times = {}
    for label, run in runs.items():
        events = run.events()
        lost = events["time_s"][(events["event"] == "lost") & (events["reason"] == "queue-full")]
        times[label] = lost.tolist()
    return times


def _near_7(evidence: Evidence) -> Judgement:
    firsts = {label: times[0] for label, times in _overflow_times(evidence).items()}
    text = ", ".join(f"{label} at {time:.1f} s" for label, time in firsts.items())
    holds = all(abs(time - 7) <= 1.5 for time in firsts.values())
    return Judgement(HOLDS if holds else FAILS, text, firsts["with lhacks"])


def _premature(evidence: Evidence) -> Judgement:
    spans = {
        label: (times[0], next(time for time in times if time > times[0] + 2))
        for label, times in _overflow_times(evidence).items()
    }
    text = ", ".join(
        f"{label} at {second:.1f} s, {second - first:.1f} s later" for label, (first, second) in spans.items()
    )
    # Without the additional source, 20 more messages take 7 s and more.
    holds = all(10 < second < 15 and second - first < 7 for first, second in spans.values())
    return Judgement(HOLDS if holds else FAILS, text, spans["with lhacks"][1])


def _peaks(
    experiment: str, scheme: str, start: float, end: float, printed: float, evidence: Evidence
) -> Judgement:
    cuts = _overflows(evidence.traces(experiment)[scheme], start, end)
    holds, found = _about([each.before for each in cuts], printed, 1)
    text = f"{found.mean:.0f} ± {found.ci95:.0f} messages before {len(cuts)} cuts"
    note = (
        "60 messages per second for 227 ms and the connection's share of a full buffer, 30 % of 30 messages, "
        "are 23; before a loss is seen it grows for another round trip"
    )
    return Judgement(HOLDS if holds else FAILS, text, found.mean, found.ci95, "" if holds else note)


def _alike(evidence: Evidence) -> Judgement:
    means = []
    for run in (evidence.traces("decrease")["lhack"], evidence.traces("decrease-wired")["basic"]):
        windows, spans = _window(run)
        means.append(float(np.average(windows, weights=spans)))
    ours, theirs = means
    text = f"on average {ours:.1f} messages with lhacks, {theirs:.1f} wired"
    return Judgement(HOLDS if abs(ours / theirs - 1) <= ABOUT else FAILS, text, ours / theirs)


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
    run = evidence.traces("both-window")["lhack"]
    events = run.events()

    def lost(kind: str) -> set[int]:
        return set(events["packet"][(events["event"] == kind) & (events["reason"] == "corrupted")].tolist())

    both = lost("lost") & lost("notice-lost")
    sent = run.metrics["segments_sent"]
    text = f"{len(both)} of {sent:,} messages at 1/75 in 400 s"
    note = "a message and any of its lhacks and fhacks; expected is one in 75 times one in 900"
    return Judgement(HOLDS if len(both) <= 5 else FAILS, text, len(both), note=note)


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
    """Return acknowledgements and lhacks for each data message."""
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
    means = []
    for experiment in ("window-150", "window-125"):
        windows, spans = _window(evidence.traces(experiment)["basic"])
        means.append(float(np.average(windows, weights=spans)))
    text = f"without lhacks {means[0]:.1f} messages on average at 1/150, {means[1]:.1f} at 1/125"
    return Judgement(CONTRADICTS, text, note="both are drawn, as figures 4 and 4-125; they tell the same")


def _round_trip(evidence: Evidence) -> Judgement:
    run = evidence.traces("window-150")["basic"]
    least = float(np.nanmin(run.series()["srtt_s"]))
    ours = 2 * (3 * 0.030 + 2 * 0.005) + 5 * (500 + 40) / 100_000
    text = f"{ours * 1e3:.0f} ms with the transmission of a message and its acknowledgement on five links"
    note = f"the propagation alone is 200 ms; the source's clock of 500 ms sees {least * 1e3:.0f} ms and more"
    return Judgement(HOLDS, text, ours, note=note)


_SECTION = "5"
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
        how=_twice,
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
        how=_near_7,
    ),
    Told(
        id="premature",
        section=_SECTION,
        statement="figure 5: it occurs again prematurely, because the new source is active from 10 s on",
        printed="10 s",
        experiment="decrease",
        how=_premature,
    ),
    Told(
        id="about-20",
        section=_SECTION,
        statement="figure 5, with lhacks: meanwhile the largest window is about 20",
        printed="20",
        experiment="decrease",
        how=lambda evidence: _peaks("decrease", "lhack", 13, 25, OPTIMUM, evidence),
    ),
    Told(
        id="about-20-wired",
        section=_SECTION,
        statement="figure 5, wired: meanwhile the largest window is about 20",
        printed="20",
        experiment="decrease-wired",
        how=lambda evidence: _peaks("decrease-wired", "basic", 13, 25, OPTIMUM, evidence),
    ),
    Told(
        id="about-40",
        section=_SECTION,
        statement="figure 5, with lhacks: later it is about 40 once more",
        printed="40",
        experiment="decrease",
        how=lambda evidence: _peaks("decrease", "lhack", 25, 60, 2 * OPTIMUM, evidence),
    ),
    Told(
        id="about-40-wired",
        section=_SECTION,
        statement="figure 5, wired: later it is about 40 once more",
        printed="40",
        experiment="decrease-wired",
        how=lambda evidence: _peaks("decrease-wired", "basic", 25, 60, 2 * OPTIMUM, evidence),
    ),
    Told(
        id="alike",
        section=_SECTION,
        statement="figure 5: the source behaves alike in both cases",
        printed="alike",
        experiment="decrease",
        how=_alike,
    ),
    Told(
        id="mobile-source",
        section=_SECTION,
        statement="a mobile source and a stationary destination: similar results",
        printed="similar",
        experiment="mobile-source",
        how=lambda evidence: _variant("mobile-source", evidence),
    ),
    Told(
        id="both-mobile",
        section=_SECTION,
        statement="both mobile: similar results",
        printed="similar",
        experiment="both-mobile",
        how=lambda evidence: _variant("both-mobile", evidence),
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
