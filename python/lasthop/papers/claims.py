"""The kinds of claims, each with its rule of judgement.

A printed number holds if it lies within our 95 % interval, widened by twice the scatter that the paper states
for its own numbers. A printed ordering holds unless our runs contradict it significantly and by more than
that scatter, which the paper could not resolve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lasthop.papers.evidence import At, Evidence, along, total
from lasthop.papers.paper import FAILS, HOLDS, Judgement
from lasthop.study.statistics import Estimate, holm


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a claim's numbers.

    Attributes
    ----------
    name : str
        Its name.
    size : float
        Its size in basic units.
    decimals : int
        The number of decimals shown.
    """

    name: str
    size: float
    decimals: int

    def text(self, value: float) -> str:
        """Format a number given in basic units."""
        return f"{value / self.size:.{self.decimals}f} {self.name}".rstrip()

    def estimate(self, found: Estimate) -> str:
        """Format an estimate with its interval."""
        return f"{found.mean / self.size:.{self.decimals}f} ± {self.text(found.ci95)}"


KBPS = Unit("kb/s", 1e3, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What all claims have in common.

    Attributes
    ----------
    id, section, statement, printed : str
        As in `Claim`.
    experiment : str
        The experiment that it is about.
    why : str
        The known reason if the claim does not hold.
    """

    id: str
    section: str
    statement: str
    printed: str
    experiment: str
    why: str = ""

    @property
    def experiments(self) -> Sequence[str]:
        """The experiments needed."""
        return (self.experiment,)


def near(found: Estimate, printed: float, scatter: float) -> bool:
    """Whether a printed number agrees with an estimate, by the rule of this module.

    Examples
    --------
    >>> from lasthop.study.statistics import estimate
    >>> near(estimate([9.0, 9.2, 9.1]), 9.4, 0.04), near(estimate([9.0, 9.2, 9.1]), 12.0, 0.04)
    (True, False)
    """
    return abs(found.mean - printed) <= found.ci95 + 2 * scatter * abs(printed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(Stated):
    """The paper states the mean of a metric.

    Attributes
    ----------
    metric, scheme : str
        The metric and the scheme.
    at : mapping of str to str
        The point.
    value : float
        The printed value, in basic units.
    scatter : float
        The relative standard deviation that the paper states for its numbers.
    unit : Unit
        The unit of the number.
    """

    metric: str
    scheme: str
    at: At
    value: float
    scatter: float
    unit: Unit

    def judge(self, evidence: Evidence) -> Judgement:
        """Compare the printed value with the mean."""
        found = evidence.sweep(self.experiment).mean(self.metric, self.scheme, self.at)
        verdict = HOLDS if near(found, self.value, self.scatter) else FAILS
        note = f"ours is {found.mean / self.value - 1:+.0%}"
        note += f"; {self.why}" if self.why else ""
        return Judgement(verdict, self.unit.estimate(found), found.mean, found.ci95, note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain(Stated):
    """The paper states a relative gain of one (scheme, point) over another.

    Attributes
    ----------
    metric : str
        The metric.
    over, under : (str, mapping)
        Scheme and point of each.
    value : float
        The printed gain: 0.3 for 30 %.
    scatter : float
        As in `Number`, of each side.
    """

    metric: str
    over: tuple[str, At]
    under: tuple[str, At]
    value: float
    scatter: float

    def judge(self, evidence: Evidence) -> Judgement:
        """Compare the two in paired runs."""
        ratio = evidence.sweep(self.experiment).versus(self.metric, self.over, self.under).ratio
        if ratio is None:
            return Judgement(FAILS, "no ratio: the other is not above zero")
        # Both sides of a ratio scatter.
        holds = near(ratio, 1 + self.value, math.sqrt(2) * self.scatter)
        text = f"{100 * (ratio.mean - 1):+.0f} % ± {100 * ratio.ci95:.0f} %"
        return Judgement(
            HOLDS if holds else FAILS, text, ratio.mean - 1, ratio.ci95, "" if holds else self.why
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Best(Stated):
    """The paper names the best value of an axis.

    Attributes
    ----------
    metric, scheme : str
        The metric to maximise, and the scheme.
    at : mapping of str to str
        The values on the other axes.
    axis, value : str
        The axis, and the value that the paper calls best.
    scatter : float
        As in `Number`.
    """

    metric: str
    scheme: str
    at: At
    axis: str
    value: str
    scatter: float

    def judge(self, evidence: Evidence) -> Judgement:
        """Search for a value that is significantly better."""
        sweep = evidence.sweep(self.experiment)
        values = sweep.values(self.axis)
        means = dict(zip(values, along(sweep, self.axis, self.at, self.metric, self.scheme), strict=True))
        best = max(values, key=lambda value: means[value].mean)
        place = (self.scheme, {**self.at, self.axis: self.value})
        others = [value for value in values if value != self.value]
        found = [
            sweep.versus(self.metric, (self.scheme, {**self.at, self.axis: other}), place).difference
            for other in others
        ]
        adjusted = holm([each.p_value for each in found])
        better = [
            other
            for other, each, p in zip(others, found, adjusted, strict=True)
            if each.mean > self.scatter * means[self.value].mean and p < 0.05
        ]
        note = f"clearly better: {', '.join(better)}" if better else "no value is clearly better"
        behind = 1 - means[self.value].mean / means[best].mean
        text = best if best == self.value else f"{best}; {self.value} is {behind:.1%} behind"
        return Judgement(FAILS if better else HOLDS, text, note=note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend(Stated):
    """A metric rises or falls along an axis, at all values of the other axes.

    Attributes
    ----------
    metric, scheme : str
        The metric and the scheme.
    axis : str
        The axis.
    rises : bool
        Whether it rises.
    unit : Unit
        The unit of the numbers.
    scatter : float
        As in `Number`.
    """

    metric: str
    scheme: str
    axis: str
    rises: bool
    unit: Unit
    scatter: float

    def judge(self, evidence: Evidence) -> Judgement:
        """Search for neighbours that differ significantly the other way."""
        sweep = evidence.sweep(self.experiment)
        values = sweep.values(self.axis)
        elsewhere = {tuple((k, v) for k, v in at.items() if k != self.axis): None for at in sweep.points()}
        against, p_values = [], []
        ends = []
        for fixed in map(dict, elsewhere):
            means = along(sweep, self.axis, fixed, self.metric, self.scheme)
            ends.append((means[0].mean, means[-1].mean))
            for (lower, before), (higher, _) in pairwise(zip(values, means, strict=True)):
                step = sweep.versus(
                    self.metric,
                    (self.scheme, {**fixed, self.axis: higher}),
                    (self.scheme, {**fixed, self.axis: lower}),
                ).difference
                against_it = -step.mean if self.rises else step.mean
                wrong = against_it > self.scatter * before.mean
                against.append((wrong, f"{lower} to {higher}"))
                p_values.append(step.p_value)
        found = [text for (wrong, text), p in zip(against, holm(p_values), strict=True) if wrong and p < 0.05]
        text = "; ".join(f"{self.unit.text(first)} to {self.unit.text(last)}" for first, last in ends)
        note = f"against it: {', '.join(dict.fromkeys(found))}; {self.why}" if found else ""
        return Judgement(FAILS if found else HOLDS, text, note=note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Never(Stated):
    """A metric is zero in every run.

    Attributes
    ----------
    metric, scheme : str
        The metric and the scheme.
    """

    metric: str
    scheme: str

    def judge(self, evidence: Evidence) -> Judgement:
        """Count the runs in which it is not zero."""
        amount, runs, of = total(evidence.sweep(self.experiment), self.metric, self.scheme)
        text = f"none in {of:,} runs" if runs == 0 else f"in {runs:,} of {of:,} runs"
        return Judgement(HOLDS if runs == 0 else FAILS, text, amount, note="" if runs == 0 else self.why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaches(Stated):
    """A mean reaches a share of a known bound.

    Attributes
    ----------
    metric, scheme : str
        The metric and the scheme.
    bounds : sequence of (mapping, float)
        The points, with the bound at each in basic units.
    part : float
        The share of the bound that it must reach.
    """

    metric: str
    scheme: str
    bounds: Sequence[tuple[At, float]]
    part: float

    def judge(self, evidence: Evidence) -> Judgement:
        """Compare with the bound at each point."""
        sweep = evidence.sweep(self.experiment)
        shares = []
        for at, bound in self.bounds:
            found = sweep.mean(self.metric, self.scheme, at)
            shares.append((found.mean / bound, found.ci95 / bound))
        least, ci95 = min(shares)
        text = ", ".join(f"{share:.1%}" for share, _ in shares)
        verdict = HOLDS if least + ci95 >= self.part else FAILS
        return Judgement(
            verdict, f"{text} of the bound", least, ci95, f"called close from {self.part:.0%} on"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Differs(Stated):
    """A metric of one scheme is above, or below, that of another at every point.

    Attributes
    ----------
    metric, above, below : str
        The metric, and the two schemes.
    """

    metric: str
    above: str
    below: str

    def judge(self, evidence: Evidence) -> Judgement:
        """Compare paired runs at each point."""
        sweep = evidence.sweep(self.experiment)
        points = sweep.points()
        found = [sweep.versus(self.metric, (self.above, at), (self.below, at)).difference for at in points]
        clear = sum(
            each.mean > 0 and p < 0.05
            for each, p in zip(found, holm([each.p_value for each in found]), strict=True)
        )
        text = f"significantly so at {clear} of {len(points)} points"
        if clear == len(points):
            return Judgement(HOLDS, text)
        return Judgement(FAILS, text, note=self.why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(Stated):
    """A claim with a rule of its own.

    Attributes
    ----------
    how : callable
        The rule.
    besides : sequence of str
        Further experiments needed.
    """

    how: Callable[[Evidence], Judgement]
    besides: Sequence[str] = ()

    @property
    def experiments(self) -> Sequence[str]:
        """The experiments needed."""
        return (self.experiment, *self.besides)

    def judge(self, evidence: Evidence) -> Judgement:
        """Apply the rule."""
        return self.how(evidence)
