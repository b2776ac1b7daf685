"""The statistic that a comparison ranks by: the mean over runs, or a quantile. See docs/guide/compare.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from lasthop.core.paired_quantiles import Span, quantile_difference, runs_to_reject
from lasthop.core.statistics import Sample, estimate, paired_difference, quantile
from lasthop.core.units import metric_kind, quantile_name
from lasthop.race.elimination import Elimination, QuantileElimination

Better = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True)
class Against:
    """An arm against the baseline, in pairs of runs.

    Attributes
    ----------
    difference : Span
        The difference.
    ratio : Span or None
        The ratio; None if the baseline is not significantly above zero.
    p_value : float
        The p-value of the difference; NaN if it could not be tested.
    """

    difference: Span
    ratio: Span | None
    p_value: float


class Tests(Protocol):
    """The tests of a comparison, on paired samples of two arms."""

    @property
    def misses_rare(self) -> bool:
        """Whether failures that the leader has not met may make up for a difference."""

    def far_worse(self, arm: Sample, leader: Sample, margin: float, best: float) -> bool:
        """Whether an arm is so much worse than the leader that it may stop; `best` is that of any run."""

    def worse(self, arm: Sample, leader: Sample) -> bool:
        """Whether an arm is worse than the leader, by the runs that were made."""

    def as_good(self, arm: Sample, other: Sample, margin: float) -> bool:
        """Whether an arm is at most `margin` worse than another, relative to it."""


class Statistic(Protocol):
    """A statistic of the runs of an arm."""

    @property
    def name(self) -> str:
        """Its name in tables; empty for the mean."""

    def value(self, sample: Sample) -> float:
        """Return the statistic of a sample, which must not be empty."""

    def found(self, sample: Sample, metric: str) -> Span:
        """Return the statistic of a sample of `metric`, with its interval."""

    def against(self, sample: Sample, baseline: Sample) -> Against:
        """Compare paired samples without missing values."""

    def width(self, sample: Sample, baseline: Sample, precision: float) -> float:
        """Return the half-width of the interval of the ratio to the baseline, in multiples of `precision`."""

    def missing(self, worst_seen: float, better: Better) -> float:
        """Return the value that a run without the metric counts as."""

    def tests(self, error: float, arms: int, looks: int, better: Better) -> Tests:
        """Return the tests of a comparison with this total error."""

    def default_runs(self, error: float, arms: int) -> tuple[int, int]:
        """Return the default runs: at the first look, and at most."""


class Mean:
    """The mean over runs."""

    name = ""

    def value(self, sample: Sample) -> float:
        """Return the mean."""
        return float(sample.mean())

    def found(self, sample: Sample, metric: str) -> Span:
        """Return the mean with its interval."""
        mean = estimate(sample, metric_kind(metric))
        return Span(mean.mean, mean.low, mean.high)

    def against(self, sample: Sample, baseline: Sample) -> Against:
        """Return the paired difference of the means, and their ratio."""
        found = paired_difference(sample, baseline)
        difference = Span(found.difference.mean, found.difference.low, found.difference.high)
        ratio = None
        if found.difference.n and found.ratio is not None:
            ratio = Span(found.ratio.mean, found.ratio.low, found.ratio.high)
        return Against(difference, ratio, found.difference.p_value)

    def width(self, sample: Sample, baseline: Sample, precision: float) -> float:
        """Return the half-width; infinite if it is based on too few events."""
        ratio = paired_difference(sample, baseline).ratio
        # A baseline near zero gives no ratio; then the precision applies to the mean itself.
        found = estimate(sample) if ratio is None else ratio
        # For ratios below 1 the precision is relative to the baseline, not to the arm.
        scale = abs(found.mean) if ratio is None else max(1.0, abs(found.mean))
        if not (found.settled or found.method == "alike"):
            return math.inf
        return _in_units(found.ci95, scale * precision)

    def missing(self, worst_seen: float, better: Better) -> float:
        """Return the worst value of any run, since a mean needs a finite value."""
        return worst_seen

    def tests(self, error: float, arms: int, looks: int, better: Better) -> Tests:
        """Return tests of means, with half of the error for rare events."""
        return Elimination(error, arms, looks, better == "higher")

    def default_runs(self, error: float, arms: int) -> tuple[int, int]:
        """Return 8 and 64."""
        return 8, 64


@dataclass(frozen=True, slots=True)
class OfQuantile:
    """A quantile over runs.

    Attributes
    ----------
    share : float
        The probability, such as 0.95.
    """

    share: float

    @property
    def name(self) -> str:
        """Its short name, such as p95."""
        return quantile_name(self.share)

    def value(self, sample: Sample) -> float:
        """Return the quantile of the sample."""
        return quantile(sample, self.share).value

    def found(self, sample: Sample, metric: str) -> Span:
        """Return the quantile with its interval of order statistics."""
        value = quantile(sample, self.share)
        return Span(value.value, value.low, value.high)

    def against(self, sample: Sample, baseline: Sample) -> Against:
        """Return the paired difference of the quantiles, and their ratio."""
        found = quantile_difference(sample, baseline, self.share)
        return Against(found.difference, found.ratio, found.p_value if len(sample) else math.nan)

    def width(self, sample: Sample, baseline: Sample, precision: float) -> float:
        """Return the half-width; infinite if there are too few runs for the tail."""
        ratio = quantile_difference(sample, baseline, self.share).ratio
        if ratio is None:
            found = quantile(sample, self.share)
            return _in_units((found.high - found.low) / 2, abs(found.value) * precision)
        return _in_units((ratio.high - ratio.low) / 2, max(1.0, ratio.value) * precision)

    def missing(self, worst_seen: float, better: Better) -> float:
        """Return infinity of the worse sign: below all other runs, as in studies."""
        return -math.inf if better == "higher" else math.inf

    def tests(self, error: float, arms: int, looks: int, better: Better) -> Tests:
        """Return tests of quantiles, which reserve no error for rare events."""
        return QuantileElimination(self.share, error, arms, looks, better == "higher")

    def default_runs(self, error: float, arms: int) -> tuple[int, int]:
        """Return the smallest number of runs at which an arm can stop, at least 8, and four times that."""
        level = QuantileElimination(self.share, error, arms, 4, higher=True).level
        least = max(8, runs_to_reject(self.share, level))
        return least, max(64, 4 * least)


def _in_units(half: float, wanted: float) -> float:
    if half == 0:
        return 0.0
    return half / wanted if wanted and math.isfinite(half) else math.inf


def finite(sample: Sample) -> Sample:
    """Return the values that are not NaN."""
    return sample[~np.isnan(sample)]
