"""Types of claims. Each states a quantity and the region for it; `verdicts` has the decision rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from lasthop.core.statistics import Estimate, Sample
from lasthop.papers.evidence import At, Evidence, along
from lasthop.papers.paper import Judgement
from lasthop.papers.verdicts import (
    AGREES,
    CANNOT_TELL,
    CONTRADICTS,
    DIFFERS,
    PERCENT,
    Criterion,
    Region,
    Rule,
    Unit,
    above,
    below,
    deciding,
    labels_outside,
    never,
    ratio,
    reaches,
    share_of,
    undecided,
    verdict,
    within,
)

KBPS = Unit("kb/s", 1e3, 2)


def as_gain(found: Estimate, decimals: int = 0) -> str:
    """Format a ratio as a relative gain with its interval."""
    half = "" if math.isnan(found.ci95) else f" ± {100 * found.ci95:.{decimals}f} %"
    return f"{100 * (found.mean - 1):+.{decimals}f} %{half}"


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """The evidence for or against a claim.

    Attributes
    ----------
    criteria : sequence of Criterion
        The quantities, each with its region.
    text : str
        The result, for people.
    note : str
        The reason, shown if the verdict is not *agrees*.
    rule : {"every", "some", "largest"}
        How the criteria are combined.
    """

    criteria: Sequence[Criterion]
    text: str
    note: str = ""
    rule: Rule = "every"

    def __post_init__(self) -> None:
        """Check that the labels of the criteria are distinct."""
        labels = {criterion.label for criterion in self.criteria}
        assert len(labels) == len(self.criteria), f"criteria share a label: {self.text}"

    @property
    def margin(self) -> str:
        """The regions, for people."""
        return "; ".join(dict.fromkeys(criterion.region.text for criterion in self.criteria))

    def judge(self, why: str = "") -> Judgement:
        """Return the judgement."""
        found = verdict(self.criteria, self.rule)
        reasons = {
            DIFFERS: why,
            CANNOT_TELL: undecided(self.criteria, self.rule) if found == CANNOT_TELL else "",
        }
        note = "; ".join(filter(None, (reasons.get(found, ""), self.note)))
        _, ours = deciding(self.criteria, self.rule)
        mean, ci95 = (None if math.isnan(each) else each for each in (ours.mean, ours.ci95))
        return Judgement(found, self.text, mean, ci95, note, self.margin)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimBase:
    """The fields shared by all claims.

    Attributes
    ----------
    id, section, statement, printed : str
        As in `Claim`.
    experiment : str
        The experiment with the evidence.
    why : str
        The best known explanation if the claim differs.
    definition : bool
        Whether the claim holds by construction of the model and thus is not a result.
    """

    id: str
    section: str
    statement: str
    printed: str
    experiment: str
    why: str = ""
    definition: bool = False

    @property
    def experiments(self) -> Sequence[str]:
        """The experiments needed."""
        return (self.experiment,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(ClaimBase):
    """A claim about the mean of a metric.

    Attributes
    ----------
    metric, scheme : str
        The metric and the scheme.
    at : mapping of str to str
        The point.
    value : float
        The printed value, in basic units.
    margin : float
        The tolerated relative deviation.
    reason : str
        The reason for the margin.
    unit : Unit
        The unit of the number.
    """

    metric: str
    scheme: str
    at: At
    value: float
    margin: float
    reason: str
    unit: Unit

    @property
    def fails_if(self) -> str:
        """The result that would make the verdict *differs*."""
        return f"the mean is more than {self.margin:.0%} from the printed value"

    def judge(self, evidence: Evidence) -> Judgement:
        """Compare the mean with the printed value."""
        quantity = evidence.sweep(self.experiment).quantity(self.metric, self.scheme, self.at)
        region = printed_number(self.value, self.margin, self.reason, self.unit)
        found = quantity.at()
        note = f"ours is {found.mean / self.value - 1:+.0%}"
        criterion = Criterion(quantity, region, unit=self.unit)
        return Finding([criterion], self.unit.estimate(found), note).judge(self.why)


def printed_number(value: float, margin: float, reason: str, unit: Unit) -> Region:
    """Return the region around a printed number, with a relative margin."""
    low, high = unit.text(value * (1 - margin)), unit.text(value * (1 + margin))
    return within(value, margin * value, f"{low} to {high}, {margin:.1%} either way: {reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain(ClaimBase):
    """A claim about the relative gain of one (scheme, point) over another.

    Attributes
    ----------
    metric : str
        The metric.
    over, under : (str, mapping)
        Scheme and point of each.
    region : Region
        The region of the ratio.
    """

    metric: str
    over: tuple[str, At]
    under: tuple[str, At]
    region: Region

    @property
    def fails_if(self) -> str:
        """The result that would make the verdict *differs*."""
        return f"the ratio is not within: {self.region.text}"

    def judge(self, evidence: Evidence) -> Judgement:
        """Compare the two in paired runs."""
        quantity = evidence.sweep(self.experiment).ratio(self.metric, self.over, self.under)
        return Finding([Criterion(quantity, self.region)], as_gain(quantity.at())).judge(self.why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Best(ClaimBase):
    """A claim about the best value of an axis.

    Attributes
    ----------
    metric, scheme : str
        The metric to maximise, and the scheme.
    at : mapping of str to str
        The values on the other axes.
    axis, value : str
        The axis, and the value that the paper calls best.
    margin : float
        The relative gain that another value may have.
    reason : str
        The reason for the margin.
    """

    metric: str
    scheme: str
    at: At
    axis: str
    value: str
    margin: float
    reason: str

    @property
    def fails_if(self) -> str:
        """The result that would make the verdict *differs*."""
        return f"another value is more than {self.margin:.0%} better"

    def judge(self, evidence: Evidence) -> Judgement:
        """Compare every other value with the stated one in paired runs."""
        sweep = evidence.sweep(self.experiment)
        samples = {
            value: sweep.sample(self.metric, self.scheme, {**self.at, self.axis: value})
            for value in sweep.values(self.axis)
        }
        return best(samples, self.value, self.margin, self.reason).judge(self.why)


def best(samples: Mapping[str, Sample], value: str, margin: float, reason: str) -> Finding:
    """Compare every other value with the one that the paper calls best, in paired runs.

    Parameters
    ----------
    samples : mapping of str to Sample
        The metric to maximise, by the value of the axis.
    value : str
        The value that the paper calls best.
    margin : float
        The relative gain that another value may have.
    reason : str
        The reason for the margin.
    """
    region = below(1 + margin, f"no other value is better by over {margin:.0%}: {reason}")
    criteria = [
        Criterion(ratio(sample, samples[value]), region, other)
        for other, sample in samples.items()
        if other != value
    ]
    # All values meet the same fades, so paired ratios are more precise than ratios of means.
    ahead = max(criteria, key=lambda criterion: criterion.quantity.at().mean)
    behind = 1 - 1 / ahead.quantity.at().mean
    text = f"{ahead.label}; {value} is {behind:.1%} behind" if behind > 0 else value
    better = labels_outside(criteria)
    return Finding(criteria, text, f"clearly better: {', '.join(better)}" if better else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend(ClaimBase):
    """A claim that a metric rises or falls along an axis, at all values of the other axes.

    Attributes
    ----------
    metric, scheme : str
        The metric and the scheme.
    axis : str
        The axis.
    rises : bool
        Whether the metric rises.
    unit : Unit
        The unit of the numbers.
    margin : float
        The relative change that a step may have in the other direction.
    reason : str
        The reason for the margin.
    """

    metric: str
    scheme: str
    axis: str
    rises: bool
    unit: Unit
    margin: float
    reason: str

    @property
    def fails_if(self) -> str:
        """The result that would make the verdict *differs*."""
        back = "down" if self.rises else "up"
        return f"a step goes {back} by more than {self.margin:.0%}, or the last value is not beyond the first"

    def judge(self, evidence: Evidence) -> Judgement:
        """Compare neighbouring values, and the first with the last, in paired runs."""
        sweep = evidence.sweep(self.experiment)
        values = sweep.values(self.axis)
        elsewhere = {tuple((k, v) for k, v in at.items() if k != self.axis): None for at in sweep.points()}
        back = f"no step goes {'down' if self.rises else 'up'} by over {self.margin:.0%}: {self.reason}"
        step = above(1 - self.margin, back)
        way = above(1.0, "the last is beyond the first")
        criteria, ends = [], []
        for fixed in map(dict, elsewhere):
            means = along(sweep, self.axis, fixed, self.metric, self.scheme)
            ends.append(f"{self.unit.text(means[0].mean)} to {self.unit.text(means[-1].mean)}")
            for before, after in (*pairwise(values), (values[0], values[-1])):
                low, high = (
                    (self.scheme, {**fixed, self.axis: value})
                    for value in ((before, after) if self.rises else (after, before))
                )
                whole = (before, after) == (values[0], values[-1])
                label = ", ".join([f"{before} to {after}", *fixed.values()])
                criteria.append(Criterion(sweep.ratio(self.metric, high, low), way if whole else step, label))
        found = labels_outside(criteria)
        note = f"against it: {', '.join(found)}" if found else ""
        return Finding(criteria, "; ".join(ends), note=note).judge(self.why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Never(ClaimBase):
    """A claim that something never happens: a metric is zero in every run.

    Attributes
    ----------
    metric, scheme : str
        The metric and the scheme. Runs without the metric are ignored.
    """

    metric: str
    scheme: str

    @property
    def fails_if(self) -> str:
        """The result that would make the verdict *differs*."""
        return "it happens in more than 1 % of the runs at some point"

    def judge(self, evidence: Evidence) -> Judgement:
        """Count the runs in which the metric is not zero."""
        sweep = evidence.sweep(self.experiment)
        criteria = [
            Criterion(
                share_of(sweep.nonzero_runs(self.metric, self.scheme, at)), never(), ", ".join(at.values())
            )
            for at in sweep.points()
        ]
        nonzero = np.concatenate([criterion.quantity.values for criterion in criteria])
        worst = max((criterion.quantity.at() for criterion in criteria), key=lambda each: each.high)
        count = f"in {int(nonzero.sum()) or 'none'} of {len(nonzero):,} runs"
        text = f"{count}; at one point in up to {worst.high:.1%}"
        return Finding(criteria, text).judge(self.why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaches(ClaimBase):
    """A claim that a mean reaches a share of a known bound.

    Attributes
    ----------
    metric, scheme : str
        The metric and the scheme.
    bounds : sequence of (mapping, float)
        The points, and the bound at each in basic units.
    share : float
        The required share of the bound.
    """

    metric: str
    scheme: str
    bounds: Sequence[tuple[At, float]]
    share: float

    @property
    def fails_if(self) -> str:
        """The result that would make the verdict *differs*."""
        return f"it is below {self.share:.0%} of the bound at one of the points"

    def judge(self, evidence: Evidence) -> Judgement:
        """Compare the mean with the bound at each point."""
        sweep = evidence.sweep(self.experiment)
        criteria = [
            Criterion(
                replace(sweep.quantity(self.metric, self.scheme, at), per=bound),
                reaches(self.share),
                ", ".join(at.values()),
                PERCENT,
            )
            for at, bound in self.bounds
        ]
        text = f"{', '.join(f'{criterion.quantity.at().mean:.1%}' for criterion in criteria)} of the bound"
        return Finding(criteria, text).judge(self.why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exceeds(ClaimBase):
    """A claim that a metric of one scheme exceeds that of another at every point.

    Attributes
    ----------
    metric, above, below : str
        The metric, and the two schemes.
    region : Region
        The region of the ratio at each point.
    """

    metric: str
    above: str
    below: str
    region: Region

    @property
    def fails_if(self) -> str:
        """The result that would make the verdict *differs*."""
        return f"at some point the ratio is not: {self.region.text}"

    def judge(self, evidence: Evidence) -> Judgement:
        """Compare paired runs at each point."""
        sweep = evidence.sweep(self.experiment)
        criteria = [
            Criterion(
                sweep.ratio(self.metric, (self.above, at), (self.below, at)),
                self.region,
                ", ".join(at.values()),
            )
            for at in sweep.points()
        ]
        ratios = [criterion.quantity.at().mean for criterion in criteria]
        text = (
            f"{100 * (min(ratios) - 1):+.1f} % to {100 * (max(ratios) - 1):+.1f} % at {len(criteria)} points"
        )
        found = labels_outside(criteria)
        return Finding(criteria, text, note=f"not at {', '.join(found)}" if found else "").judge(self.why)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomClaim(ClaimBase):
    """A claim with its own function to measure the quantities.

    Attributes
    ----------
    evaluate : callable
        Returns the quantities with their regions.
    fails_if : str
        The result that would make the verdict *differs*.
    further : sequence of str
        Further experiments needed.
    """

    evaluate: Callable[[Evidence], Finding]
    fails_if: str
    further: Sequence[str] = ()

    @property
    def experiments(self) -> Sequence[str]:
        """The experiments needed."""
        return (self.experiment, *self.further)

    def judge(self, evidence: Evidence) -> Judgement:
        """Measure and judge."""
        return self.evaluate(evidence).judge(self.why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction(CustomClaim):
    """Two statements of the paper that exclude each other.

    Both would hold within the regions; outside them the paper contradicts itself.
    """

    def judge(self, evidence: Evidence) -> Judgement:
        """Measure and judge."""
        found = self.evaluate(evidence).judge(self.why)
        renamed: Mapping[str, str] = {AGREES: AGREES, DIFFERS: CONTRADICTS, CANNOT_TELL: CANNOT_TELL}
        return Judgement(
            renamed[found.verdict], found.found, found.ours, found.ci95, found.note, found.margin
        )
