"""Advice on a link: which remedies would help its uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lasthop.advice.judge import REPLACEMENTS, VARIANTS, Judge
from lasthop.advice.judgement import Effect, Judgement, Limit, Remedy
from lasthop.advice.selection import alternatives, ladder_for_all, without_harm
from lasthop.advice.uses import USES
from lasthop.core import formats
from lasthop.core.display import Shown, activity_bar, chosen
from lasthop.core.formats import plural
from lasthop.core.names import unknown
from lasthop.engine.stopping import Progress
from lasthop.fitting import FittedLink, ProbePlan
from lasthop.race import Arm

FEWEST_EFFECTS, MOST_EFFECTS = 4, 6
"""Number of remedies whose effects on other uses are simulated, if no more are advised.

The larger number if the first advised one does harm, and none of the others gains about as much without.
"""

FASTEST_BPS = 10e9
"""The fastest link for which advice is given: a faster one has too many packets for minutes."""

OTHERS = ("bulk", "web", "video", "call", "shell")
"""Uses on which effects are simulated. Uploads are left out, since they load the other direction."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Advice(Shown):
    """Advice on a link.

    Attributes
    ----------
    link : FittedLink
        The link.
    sender : str
        The server's sender now.
    judgements : tuple of Judgement
        The gains of remedies for each use, in the order in which the uses were stated.
    advised : tuple of Remedy
        The advised remedies in order of effort, with their gains for the first use: see
        `lasthop.advice.selection`. Empty if none is worthwhile.
    harmless : Remedy or None
        For one use, if the first advised remedy harms others: the easiest that gains about as much, and harms
        none of them.
    effects : mapping of Arm to tuple of Effect
        The effects of the advised and the best remedies on other uses.
    measure : ProbePlan
        The measurement that would narrow the intervals.
    runs : int
        Total number of simulation runs.
    """

    link: FittedLink
    sender: str
    judgements: tuple[Judgement, ...]
    advised: tuple[Remedy, ...]
    harmless: Remedy | None
    effects: Mapping[Arm, tuple[Effect, ...]]
    measure: ProbePlan
    runs: int

    @property
    def first(self) -> Judgement:
        """The judgement of the first use."""
        return self.judgements[0]

    @property
    def now(self) -> Remedy:
        """The current configuration, judged for the first use."""
        return self.first.now

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limiting factors of the first use, the worst first."""
        return self.first.limits

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """All remedies for the first use, the best first."""
        return self.first.remedies

    @property
    def useless(self) -> tuple[Remedy, ...]:
        """Remedies of no use for the first use."""
        return self.first.useless

    @property
    def undecided(self) -> tuple[Remedy, ...]:
        """Remedies that are neither worthwhile nor useless for the first use."""
        return self.first.undecided

    @property
    def refused(self) -> tuple[tuple[str, str], ...]:
        """Remedies that could not be tried, and why."""
        return self.first.refused

    def verdict(self) -> str:
        """Return the advice in a sentence, or two if it depends on losses that were not measured."""
        found = self._verdict()
        if not self.link.unmeasured:
            return found
        return f"Losses were not measured. If there are none: {found[0].lower()}{found[1:]}"

    def _verdict(self) -> str:
        if self.advised:
            first = self.advised[0]
            if self.sure(first):
                return f"Use {first.title}: {'; '.join(self.gains(first.arm))}"
            return f"{first.title} may help{'' if self.much(first) else ' a little'}."
        undecided = any(judgement.undecided for judgement in self.judgements)
        if len(self.judgements) > 1 and any(judgement.advised for judgement in self.judgements):
            return "Nothing helps one use without harm to another."
        if undecided and self.open_questions:
            return "The measurement does not decide this."
        if undecided:
            return "Nothing is sure to help."
        return "No remedy that was tried would help."

    @property
    def open_questions(self) -> tuple[str, ...]:
        """The questions that the measurement leaves open, and that matter to some use."""
        matter = self.link.unmeasured or any(each.losses_may_matter for each in self.judgements)
        return self.link.cannot_tell if matter else ()

    def sure(self, remedy: Remedy) -> bool:
        """Whether no interval of the gains of an advised remedy includes a loss."""
        return all(
            not found.gain_low < judgement.measure.no_change for judgement, found in self._worth(remedy.arm)
        )

    def much(self, remedy: Remedy) -> bool:
        """Whether an advised remedy gains at least twice a worthwhile amount for some use."""
        return any(
            judgement.measure.in_thresholds(found.gain) >= 2 for judgement, found in self._worth(remedy.arm)
        )

    def _worth(self, arm: Arm) -> list[tuple[Judgement, Remedy]]:
        """Return the judgements for which a remedy is worthwhile, with the remedy as judged there."""
        found = [(judgement, judgement.of(arm)) for judgement in self.judgements]
        return [(judgement, each) for judgement, each in found if each is not None and each.worth]

    def gains(self, arm: Arm) -> list[str]:
        """Return a sentence for each use for which a remedy is worthwhile."""
        return [judgement.gain(found) for judgement, found in self._worth(arm)]

    def harmed(self, arm: Arm) -> tuple[Effect, ...]:
        """Return the other uses that a remedy harms."""
        return tuple(each for each in self.effects.get(arm, ()) if each.harms)


def advise(
    link: FittedLink,
    uses: str | Sequence[str] = "bulk",
    *,
    sender: str = "linux",
    seed: int = 1,
    runs: tuple[int, int] | None = None,
    effects: bool = True,
    jobs: int | None = None,
    progress: Callable[[str, Progress], None] | bool | None = None,
) -> Advice:
    """Simulate every remedy on a link, and advise those that would help.

    Parameters
    ----------
    link : FittedLink
        The link, from `lasthop.fitting.fit` or `lasthop.fitting.stated_link`.
    uses : str or sequence of str, default "bulk"
        The uses of the link: keys of `USES`.
    sender : str, default "linux"
        The server's sender now, a key of `SENDERS` or `STACK_SENDERS`.
    seed : int, default 1
        The seed of all runs.
    runs : (int, int), optional
        The fewest and the most runs of each remedy; by default (256, 512) for pages, (32, 64) for shells,
        (64, 128) for downloads and uploads, 64 for films and 32 for calls. If downloads or uploads are the
        only use, what is surely not advised may stop at 32. The most also for effects on other uses.
    effects : bool, default True
        Whether to simulate the effects of remedies on other uses.
    jobs : int, optional
        Threads; by default one for each core. The advice does not depend on them.
    progress : callable or bool, optional
        Called with the current activity and its progress. By default, or with True, a notebook shows a
        progress bar; with False it does not.

    Returns
    -------
    Advice
        The advice.

    Raises
    ------
    NoRateError
        If the link's rate is unknown.
    ValueError
        If a use is unknown.
    KeyError
        If the sender is unknown.
    RaceError
        If a use is not possible over the link at all, with any remedy.

    Examples
    --------
    >>> from lasthop.advice import advise
    >>> from lasthop.fitting import stated_link
    >>> link = stated_link(8e6, 0.06, loss=0.02, burst="5")
    >>> advise(link, runs=(8, 8), effects=False).now.title
    "CUBIC, Linux's default"
    """
    stated = list(dict.fromkeys([uses] if isinstance(uses, str) else uses))
    for name in stated:
        if name not in USES:
            raise ValueError(unknown("use", name, list(USES)))
    if not stated:
        raise ValueError("uses: expected at least one, such as bulk")
    for rate_bps in (link.rate_bps, link.up_rate_bps):
        if rate_bps is not None and rate_bps > FASTEST_BPS:
            raise ValueError(
                f"found a link of {formats.rate(rate_bps)}, expected at most {formats.rate(FASTEST_BPS)}: "
                "advice is for last hops; check the unit of the rate, which is bits per second"
            )
    with chosen(progress, activity_bar("advice")) as report:
        judge = Judge(link, sender, seed=seed, jobs=jobs, report=report or (lambda what, done: None))
        return _advise(judge, stated, runs, effects=effects)


def _advise(judge: Judge, stated: Sequence[str], runs: tuple[int, int] | None, *, effects: bool) -> Advice:
    judgements = []
    for name in stated:
        least = USES[name].rounds * VARIANTS
        # `_spread` pairs differences over all draws, so all remedies need the same number of runs.
        by_ratio = all(each.min_difference is None for each in USES[name].measures)
        both = runs or (least, 2 * least if by_ratio else least)
        judgements.append(judge.judge(judge.use(name), both, sole=len(stated) == 1))
    advised = judgements[0].advised if len(judgements) == 1 else tuple(ladder_for_all(judgements))
    found: dict[Arm, list[Effect]] = {}
    harmless = None
    others = [judge.use(name) for name in OTHERS if name not in stated]
    others += [each.use.alone() for each in judgements if each.use.beside]
    arms = _arms_for_effects(judgements, advised) if effects else []
    first = max(FEWEST_EFFECTS, len(advised))
    for group in (arms[:first], arms[first:]):
        for use in others:
            for arm, effect in judge.effects(use, group, runs and runs[1]).items():
                found.setdefault(arm, []).append(effect)
        if len(judgements) > 1 or not advised:
            break
        harms = {arm: any(effect.harms for effect in each) for arm, each in found.items()}
        harmless = without_harm(judgements[0], advised[0], harms.get)
        if harmless is not None or not harms.get(advised[0].arm):
            break
    return Advice(
        link=judge.link,
        sender=judge.sender,
        judgements=tuple(judgements),
        advised=advised,
        harmless=harmless if harmless not in advised else None,
        effects={arm: tuple(each) for arm, each in found.items()},
        measure=judge.link.measure,
        runs=judge.made,
    )


def _arms_for_effects(judgements: Sequence[Judgement], advised: Sequence[Remedy]) -> list[Arm]:
    """Return the arms whose effects are simulated, the most important first.

    They are those advised; the easiest that gain about as much as the first of them, in case that it does
    harm; and the best for each use of those to be had.
    """
    arms = [each.arm for each in advised]
    if len(judgements) == 1 and advised:
        first = judgements[0]
        arms += [each.arm for each in alternatives(first.remedies, advised[0], first.measure)[:REPLACEMENTS]]
    worth = [
        [each.arm for each in judgement.remedies if each.worth and each.deployment.available]
        for judgement in judgements
    ]
    for place in range(MOST_EFFECTS):
        arms += [each[place] for each in worth if place < len(each)]
    return list(dict.fromkeys(arms))[: max(MOST_EFFECTS, len(advised))]


def losses_in_words(link: FittedLink) -> list[str]:
    """Describe the losses of a link, a line for each direction."""
    if link.stated is not None:
        return [f"{link.stated.source}: {link.stated.words}"]
    lines = []
    for losses in (link.down, link.up):
        if losses is None:
            continue
        line = f"{losses.direction}: {losses.lost:,} of {plural(losses.sent, 'packet')} lost"
        if losses.lost:
            loss, bad, good = (losses.parameter(name) for name in ("loss", "bad_s", "good_s"))
            assert loss is not None
            counted = formats.share(losses.lost / losses.sent)
            # TCP sends fewer packets in bad periods, so the two shares may differ.
            by_time = (
                ""
                if formats.share(loss.value) == counted
                else f"; at a random time {formats.share(loss.value)}"
            )
            line += f", {counted}{by_time} ({formats.interval(loss.low, loss.high, formats.share)})"
            if bad is not None and good is not None:
                line += (
                    f"; in bad periods of {formats.seconds(bad.value)} "
                    f"({formats.interval(bad.low, bad.high, formats.seconds)}), one every "
                    f"{formats.seconds(bad.value + good.value)}"
                )
            elif losses.hidden_burst_s is not None and not losses.cannot_tell:
                line += "; independent of each other"
        lines.append(line)
    return lines
