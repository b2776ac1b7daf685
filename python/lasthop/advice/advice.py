"""What would help a link: comparisons over what is known of it, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lasthop import notebook
from lasthop._lasthop import Scenario
from lasthop.advice import remedies
from lasthop.advice.remedies import Deployment
from lasthop.comparison import Arm, Comparison, ComparisonError
from lasthop.fitting import FittedLink, ProbePlan, plan, text
from lasthop.study.plan import Progress
from lasthop.study.statistics import Sample

WORTH = 1.05
"""A remedy is worth its effort if its mean gain is told from none and at least this."""

NO_USE = 1.02
"""A remedy is of no use if its gain is below this with 95 %."""

VARIANTS = 32
"""Draws from what is known of the link. Runs go through them in turn: a mean is over all that it may be."""

SHORT = "100 KB"
"""Size of a short transfer, such as a page's."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What something about the link costs: the throughput without it.

    Attributes
    ----------
    name : str
        What was taken away.
    throughput_bps, ratio, low, high : float
        Throughput without it, and its ratio to that of the link as it is, with a 95 % interval.
    """

    name: str
    throughput_bps: float
    ratio: float
    low: float
    high: float

    @property
    def matters(self) -> bool:
        """Whether its 95 % interval is above a cost of a twentieth."""
        return self.low > WORTH


@dataclass(frozen=True, slots=True)
class Remedy:
    """A remedy and what it is worth.

    Attributes
    ----------
    arm : Arm
        The sender and the scheme.
    title, meaning : str
        What it is called, and what its scheme does.
    deployment : Deployment
        What it takes.
    gain, gain_low, gain_high : float
        Mean throughput of a long transfer over what is known of the link, as a ratio to that of what there
        is now, and where the gain of the link itself lies with 95 %, given what is known of it. Infinite,
        without an interval, if the throughput now cannot be told from zero.
    throughput_bps, low_bps, high_bps : float
        The throughput: the gain times that of what there is now, over all its runs.
    short_s : float
        Mean completion time of a short transfer; NaN if unknown.
    status : str
        Among all remedies: `"best"`, `"as good"` as any other, `"worse"` than the best, or `"cannot tell"`.
    worth : bool
        Whether its mean gain is at least a twentieth and told from none, with all others accounted for by
        Holm's method.
    """

    arm: Arm
    title: str
    meaning: str
    deployment: Deployment
    throughput_bps: float
    low_bps: float
    high_bps: float
    gain: float
    gain_low: float
    gain_high: float
    short_s: float
    status: str
    worth: bool


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """What to do about a link.

    Attributes
    ----------
    link : FittedLink
        The link.
    sender : str
        The server's TCP now.
    now : Remedy
        What the link carries now, as one of the remedies.
    limits : tuple of Limit
        What limits it, the worst first.
    remedies : tuple of Remedy
        All remedies, the best first.
    advised : tuple of Remedy
        What to do: the easiest remedy that is worth it, and after it those that gain at least a twentieth
        more for more effort. Empty if nothing is worth it.
    refused : tuple of (str, str)
        Remedies that could not be tried, and why.
    measure : ProbePlan
        The measurement that would tell more.
    runs : int
        How many runs the advice rests on.
    """

    link: FittedLink
    sender: str
    now: Remedy
    limits: tuple[Limit, ...]
    remedies: tuple[Remedy, ...]
    advised: tuple[Remedy, ...]
    refused: tuple[tuple[str, str], ...]
    measure: ProbePlan
    runs: int

    def __repr__(self) -> str:
        """Return the link and the verdict."""
        return notebook.advice_text(self)

    def _repr_html_(self) -> str:
        return notebook.advice_html(self)

    @property
    def useless(self) -> tuple[Remedy, ...]:
        """Remedies that gain next to nothing, or lose, by their 95 % intervals."""
        return tuple(each for each in self.remedies if each is not self.now and each.gain_high < NO_USE)

    @property
    def undecided(self) -> tuple[Remedy, ...]:
        """Remedies whose worth cannot be told: their interval holds both a gain and none."""
        known = {*self.useless}
        return tuple(
            each for each in self.remedies if each is not self.now and not each.worth and each not in known
        )

    def verdict(self) -> str:
        """Return the advice in a sentence."""
        if self.advised:
            first = self.advised[0]
            return f"Use {first.title}: {gain(first)}"
        if self.undecided and self.link.cannot_tell:
            return "Cannot be told from this measurement."
        if self.undecided:
            return "Nothing is sure to help."
        return "No remedy that was tried would help."


def gain(remedy: Remedy) -> str:
    """Return the gain of a remedy with its interval."""
    if not math.isfinite(remedy.gain):
        return f"{text.rate(remedy.throughput_bps)} in place of next to nothing"
    return f"{remedy.gain:.3g} times as fast ({remedy.gain_low:.3g} to {remedy.gain_high:.3g})"


def advise(
    link: FittedLink,
    *,
    sender: str = "linux",
    seed: int = 1,
    runs: tuple[int, int] = (2 * VARIANTS, 4 * VARIANTS),
    jobs: int | None = None,
    progress: Callable[[str, Progress], None] | bool | None = None,
) -> Advice:
    """Try every remedy on a link, and say what would help.

    Parameters
    ----------
    link : FittedLink
        The link, from `lasthop.fitting.fit` or `lasthop.fitting.stated_link`.
    sender : str, default "linux"
        The server's TCP now, a key of `SENDERS`.
    seed : int, default 1
        The seed of all runs.
    runs : (int, int)
        The fewest and the most runs of each remedy.
    jobs : int, optional
        Threads; by default one for each core. The advice does not depend on them.
    progress : callable or bool, optional
        Called with what is done and how far it is. By default, or with True, a notebook shows a bar; with
        False it does not.

    Returns
    -------
    Advice
        What to do.

    Raises
    ------
    NoRateError
        If the link's rate is unknown.
    KeyError
        If there is no such sender.

    Examples
    --------
    >>> from lasthop.advice import advise
    >>> from lasthop.fitting import stated_link
    >>> link = stated_link(8e6, 0.06, loss=0.02, burst="5")
    >>> advise(link, runs=(8, 8)).now.title
    "CUBIC, Linux's default"
    """
    with notebook.chosen(progress, notebook.activity_bar("advice")) as report:
        return _advise(link, sender, seed, runs, jobs, report or (lambda what, done: None))


def _advise(
    link: FittedLink,
    sender: str,
    seed: int,
    runs: tuple[int, int],
    jobs: int | None,
    report: Callable[[str, Progress], None],
) -> Advice:
    """Try every remedy on a link; `report` is called with what is done and how far it is."""
    now = Arm(remedies.SENDERS[sender].name, remedies.PLAIN)
    scenario = Scenario.parse(f"{link.toml()}\n{remedies.tables()}", name="the fitted link")
    variants = link.draws(VARIANTS) if link.stated is None else [[]]
    made_runs = 0

    def compare(what: str, arms: Sequence[Arm], **settings: Any) -> Comparison:
        comparison = Comparison(scenario, arms, baseline=now, seed=seed, variants=variants, **settings)
        nonlocal made_runs
        made_runs += comparison.run(jobs, lambda done: report(what, done))
        return comparison

    tried = remedies.arms(sender)
    long = compare("long transfers", tried, runs=runs)
    # Splits need to see the end of a transfer.
    close = ["tcp.close=true", f"transfer.size={SHORT}", "limit=300 s"]
    try:
        short = compare(
            "short transfers",
            long.arms,
            metric="completion_time_s",
            overrides=close,
            runs=(VARIANTS, 4 * VARIANTS),
            precision=0.02,
        )
        pages = short.results().to_dict("records")
    except ComparisonError:
        # No transfer ends.
        pages = []
    without = compare("what limits the link", [now, *(arm for arm, _ in _limits(now, link))], runs=runs)
    found = _remedies(long, pages, sender, len(variants))
    made = [each for each in found if each.arm == long.baseline]
    return Advice(
        link=link,
        sender=sender,
        now=made[0],
        limits=tuple(_measured(without, link, now)),
        remedies=tuple(found),
        advised=tuple(_advised(found)),
        refused=tuple((each.arm.label, each.reason) for each in long.refused if each.same is None),
        measure=plan(link.down or link.up),
        runs=made_runs,
    )


def _limits(now: Arm, link: FittedLink) -> list[tuple[Arm, str]]:
    """Return arms that each lack something of the link."""
    queue = f"{8 * link.queue_packets} packets"
    hop = link.last_hop_rtt_s
    loss = link.down.best.model["loss"] if link.down is not None else 0.0
    perfect = (("radio.channel", '"perfect"'), ("radio.uplink.channel", '"perfect"'))
    candidates: list[tuple[tuple[tuple[str, str], ...], str]] = [(perfect, "losses")]
    if link.down is not None and link.down.parameter("bad_s") is not None:
        spread = f"{{ frame-loss = {{ loss = {loss:.9f} }} }}"
        candidates.append(((("radio.channel", spread),), f"bursts: independent losses of {text.share(loss)}"))
    candidates.append(((("radio.queue", queue),), "the queue's limit, with eight times the queue"))
    if link.rtt_s > hop:
        candidates.append(((("wired.delay", '"0 s"'),), "the delay before the last hop"))
    return [(Arm(now.sender, now.scheme, settings), name) for settings, name in candidates]


def _measured(without: Comparison, link: FittedLink, now: Arm) -> list[Limit]:
    names = {arm.label: name for arm, name in _limits(now, link)}
    rows = without.results().to_dict("records")
    limits = [
        Limit(names[row["arm"]], row["mean"], row["ratio"], row["ratio_low"], row["ratio_high"])
        for row in rows
        if row["arm"] in names
    ]
    return sorted(limits, key=lambda limit: -limit.throughput_bps)


def _remedies(
    long: Comparison, pages: Sequence[Mapping[Any, Any]], sender: str, variants: int
) -> list[Remedy]:
    """Return the remedies, the best first."""
    arms = {arm.label: arm for arm in long.arms}
    quick = {row["arm"]: row for row in pages}
    rows = long.results().to_dict("records")
    now = next(row for row in rows if row["baseline"])
    found = []
    for row in rows:
        arm, page = arms[row["arm"]], quick.get(row["arm"])
        if row is now:
            ratios, ends = [1.0, 1.0, 1.0], [now["ci_low"], now["ci_high"]]
        elif math.isfinite(row["ratio"]):
            # A remedy that stopped early met the first fades only: its ratio over them is what compares.
            # The interval of the comparison is that of the mean over all that the link may be.
            low, high = _spread(long.sample(arm), long.sample(long.baseline), variants)
            ratios = [row["ratio"], min(low, row["ratio_low"]), max(high, row["ratio_high"])]
            ends = [ratio * now["mean"] for ratio in ratios[1:]]
        else:
            # Now nothing is carried, or so little that there is no ratio.
            ratios, ends = [math.inf, math.nan, math.nan], [row["ci_low"], row["ci_high"]]
        found.append(
            Remedy(
                arm=arm,
                title=remedies.title(arm, sender),
                meaning=remedies.meaning(arm),
                deployment=remedies.deployment(arm, sender),
                throughput_bps=ratios[0] * now["mean"] if math.isfinite(ratios[0]) else row["mean"],
                low_bps=ends[0],
                high_bps=ends[1],
                gain=ratios[0],
                gain_low=ratios[1],
                gain_high=ratios[2],
                short_s=math.nan if page is None else page["mean"],
                status=row["status"],
                worth=bool(row["significant"])
                and (row["ci_low"] > 0 if math.isinf(ratios[0]) else ratios[0] >= WORTH),
            )
        )
    return sorted(found, key=lambda each: -each.throughput_bps)


def _spread(ours: Sample, theirs: Sample, variants: int) -> tuple[float, float]:
    """Return where the gain of a link lies with 95 %: a prediction of one more draw from their gains.

    The gains of the draws are taken as lognormal; what runs of one draw differ by widens the interval.
    """
    from scipy.special import stdtrit

    if variants == 1:
        return math.inf, -math.inf
    if len(ours) < variants or not bool(np.all((ours > 0) & (theirs[: len(ours)] > 0))):
        return 0.0, math.inf
    gains = np.log(ours / theirs)
    half = float(stdtrit(variants - 1, 0.975)) * float(gains.std(ddof=1)) * math.sqrt(1 + 1 / variants)
    return math.exp(float(gains.mean()) - half), math.exp(float(gains.mean()) + half)


def _advised(found: Sequence[Remedy]) -> list[Remedy]:
    """Return the easiest remedy that is worth it, and those that gain more for more effort.

    What is worse than the best by more than a twentieth is advised only if it is easier.
    """
    advised: list[Remedy] = []
    worth = [each for each in found if each.worth]
    for effort in sorted({each.deployment.effort for each in worth}):
        # Of equal effort the best; a remedy that costs more effort must gain more.
        best = max(
            (each for each in worth if each.deployment.effort == effort), key=lambda each: each.throughput_bps
        )
        if not advised or best.throughput_bps > WORTH * advised[-1].throughput_bps:
            advised.append(best)
    return advised


def losses_in_words(link: FittedLink) -> list[str]:
    """Return what is known of the losses, a line for each direction."""
    if link.stated is not None:
        return [f"as stated: {link.stated.words}"]
    lines = []
    for losses in (link.down, link.up):
        if losses is None:
            continue
        line = f"{losses.direction}: {losses.lost:,} of {losses.sent:,} packets lost"
        if losses.lost:
            loss, bad, good = (losses.parameter(name) for name in ("loss", "bad_s", "good_s"))
            assert loss is not None
            line += f", {text.share(loss.value)} ({text.between(loss.low, loss.high, text.share)})"
            if bad is not None and good is not None:
                line += (
                    f"; in bad periods of {text.seconds(bad.value)} "
                    f"({text.between(bad.low, bad.high, text.seconds)}), one every "
                    f"{text.seconds(bad.value + good.value)}"
                )
            elif losses.hidden_burst_s is not None and not losses.cannot_tell:
                line += "; independent of each other"
        lines.append(line)
    return lines
