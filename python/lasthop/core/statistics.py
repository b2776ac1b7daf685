"""Means and quantiles with their intervals, and paired comparisons. docs/guide/studies.md defines them.

This module is independent of scenarios and stores: it turns samples into estimates.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Sample = npt.NDArray[np.float64]

Kind = Literal["signed", "amount", "count", "share"]
"""The range of a metric: real numbers; non-negative numbers; non-negative integers; numbers from 0 to 1."""

LEVEL = 0.95
COCHRAN = 25
"""The smallest sample for Student's interval, over the squared skewness (Cochran 1977, section 2.15)."""

FEWEST_RUNS = 100
"""The smallest sample with few missed events: one that happens in 5 % of runs occurs in 99.4 % of samples."""

FEWEST_EVENTS = 5
"""The smallest effective number of runs of a skewed sample (`Estimate.events`) whose interval is reliable."""

ALIKE = 300
"""After this many equal runs at most 1 % of all runs differ, by the rule of three."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of a mean, with a confidence interval.

    Attributes
    ----------
    n : int
        The size of the sample.
    mean : float
        The sample's mean; NaN if it is empty.
    low, high : float
        The ends of the interval; NaN if the sample is smaller than two.
    sd : float
        The sample's standard deviation; NaN if it is smaller than two.
    method : str
        The method of the interval: `"t"`, `"skewed"`, `"events"` or `"exact"`; `"alike"` if all values are
        equal, so their spread gives no interval; `"none"` without an interval.
    p_value : float
        The p-value of the hypothesis that the true mean is zero, by the same method; NaN without an interval.
    events : float
        The effective number of values behind the spread: for a rare event, the number of its occurrences; for
        a skewed sample, n divided by the squared skewness.
    """

    n: int
    mean: float
    low: float
    high: float
    sd: float
    method: str
    p_value: float
    events: float

    @property
    def ci95(self) -> float:
        """Half the interval's width."""
        return (self.high - self.low) / 2

    @property
    def few(self) -> bool:
        """Whether there are too few runs or events for the interval to reach its nominal coverage."""
        return self.n < FEWEST_RUNS or (
            self.events < FEWEST_EVENTS and self.method not in ("exact", "events")
        )

    @property
    def settled(self) -> bool:
        """Whether the spread is known well enough for the stopping rule."""
        if self.method == "alike":
            return self.n >= ALIKE
        return self.method in ("exact", "events") or self.events >= FEWEST_EVENTS

    def within(self, precision: float) -> bool:
        """Whether the interval is reliable and half its width is at most `precision` times the mean."""
        return self.settled and self.ci95 <= precision * abs(self.mean)


@dataclass(frozen=True, slots=True)
class Quantile:
    """The estimate of a quantile, with a confidence interval.

    Attributes
    ----------
    share : float
        The order of the quantile: the share of the distribution at or below it.
    n : int
        The size of the sample.
    value : float
        The sample's quantile; NaN if it is empty.
    low, high : float
        The ends of the interval: values of the sample, or infinite if the sample is too small for this end.
    """

    share: float
    n: int
    value: float
    low: float
    high: float

    @property
    def determined(self) -> bool:
        """Whether the sample was large enough for both ends of the interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The paired comparison of two schemes.

    Attributes
    ----------
    difference : Estimate
        The mean of the differences between paired runs.
    ratio : Estimate or None
        The ratio of the two means. None if the other's mean is not significantly different from zero.
    """

    difference: Estimate
    ratio: Estimate | None


def prepare() -> None:
    """Import scipy now, since the import takes long enough to disturb a running study."""
    import scipy.special  # noqa: F401


def estimate(values: npt.ArrayLike, kind: Kind = "signed", level: float = LEVEL) -> Estimate:
    """Estimate a mean from independent values.

    Parameters
    ----------
    values : array_like of float
        The sample.
    kind : {"signed", "amount", "count", "share"}
        The range of the values.
    level : float, default 0.95
        The level of the interval.

    Returns
    -------
    Estimate
        With Student's interval, or one of the others that docs/guide/studies.md defines.

    Examples
    --------
    >>> found = estimate([3.0, 5.0, 4.0, 6.0])
    >>> f"{found.mean} in {found.low:.3f} to {found.high:.3f} by {found.method}"
    '4.5 in 2.446 to 6.554 by t'
    >>> never = estimate([0] * 100, "share")
    >>> f"{never.mean} in {never.low} to {never.high:.3f} by {never.method}"
    '0.0 in 0.0 to 0.036 by exact'
    """
    sample = np.asarray(values, dtype=np.float64)
    n = len(sample)
    if n < 2:
        mean = float(sample[0]) if n else math.nan
        return Estimate(n, mean, math.nan, math.nan, math.nan, "none", math.nan, 0.0)
    if kind == "share" and bool(np.all((sample == 0) | (sample == 1))):
        return _exact(sample, level)
    nonzero = int(np.count_nonzero(sample))
    if kind in ("amount", "count") and 2 * nonzero <= n and (nonzero or kind == "count"):
        return _events(sample, level)
    if sample.min() == sample.max():
        # Runs that are all alike: rounding must not give them a spread.
        same = float(sample[0])
        return Estimate(n, same, same, same, 0.0, "alike", float(same == 0), 0.0)
    least = -math.inf if kind == "signed" else 0.0
    greatest = 1.0 if kind == "share" else math.inf
    return _from_moments(sample, level, least, greatest)


def quantile(values: npt.ArrayLike, share: float, level: float = LEVEL) -> Quantile:
    """Estimate a quantile from independent values, whatever their distribution is.

    The ends of the interval are order statistics. The number of values below the true quantile is binomial,
    so the probability that an end is on its wrong side is at most (1 - `level`) / 2, for every sample size,
    also with repeated values. If the values are correlated, as the response times of one run may be, the
    interval is too narrow.

    Parameters
    ----------
    values : array_like of float
        The sample. Infinite values stand for unknown values above or below all others.
    share : float
        The order of the quantile, such as 0.95.
    level : float, default 0.95
        The level of the interval.

    Returns
    -------
    Quantile
        Its value is median-unbiased: `numpy.quantile` with the method `"median_unbiased"`. The default
        method gives smaller values for quantiles such as 0.99 of few values, which may lie outside the
        interval.

    Raises
    ------
    ValueError
        If `share` is not between 0 and 1.

    Examples
    --------
    >>> found = quantile(range(1, 101), 0.5)
    >>> found.value, found.low, found.high
    (50.5, 40.0, 61.0)
    >>> quantile(range(1, 101), 0.99).high, runs_to_tell(0.99)
    (inf, 368)
    """
    from scipy.special import bdtr, bdtrc

    if not 0 < share < 1:
        raise ValueError(f"found the quantile {share}, expected a share between 0 and 1, such as 0.95")
    sample = np.sort(np.asarray(values, dtype=np.float64))
    n, tail = len(sample), (1 - level) / 2
    if n == 0:
        return Quantile(share, 0, math.nan, -math.inf, math.inf)
    # The ranks (from 1) of the two ends: the largest one that is above the quantile with a probability of at
    # most `tail`, and the smallest one that is below it with at most the same probability.
    below = bisect_right(range(n), tail, key=lambda k: float(bdtr(k, n, share)))
    above = 1 + bisect_left(range(n), -tail, key=lambda k: -float(bdtrc(k, n, share)))
    low = float(sample[below - 1]) if below else -math.inf
    high = float(sample[above - 1]) if above <= n else math.inf
    return Quantile(share, n, _interpolated(sample, share), low, high)


def runs_to_tell(share: float, level: float = LEVEL) -> int:
    """Return the size of the smallest sample for which both ends of a quantile's interval are finite.

    Examples
    --------
    >>> [runs_to_tell(share) for share in (0.5, 0.95, 0.99, 0.01)]
    [6, 72, 368, 368]
    """
    return math.ceil(math.log((1 - level) / 2) / math.log(max(share, 1 - share)))


def paired_difference(
    values: npt.ArrayLike, baseline: npt.ArrayLike, level: float = LEVEL
) -> PairedDifference:
    """Compare two schemes by paired runs: values at the same index come from the same fades.

    Parameters
    ----------
    values, baseline : array_like of float
        Samples of the same length.
    level : float, default 0.95
        The level of the intervals.

    Returns
    -------
    PairedDifference
        The mean of `values - baseline`, and the ratio of the means of the two.

    Examples
    --------
    >>> found = paired_difference([11.0, 22.0, 16.0, 17.0], [10.0, 20.0, 15.0, 15.0])
    >>> found.difference.mean, found.ratio.mean
    (1.5, 1.1)
    """
    ours, theirs = np.asarray(values, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    difference = estimate(ours - theirs, level=level)
    ratio = ratio_of_means(ours, theirs, level)
    return PairedDifference(difference, None if ratio is None else estimate(ratio, level=level))


def common_difference(values: Sample, baseline: Sample, level: float = LEVEL) -> PairedDifference:
    """Compare two schemes over the runs that both have: the common prefix, without runs that lack a value.

    Examples
    --------
    >>> import numpy as np
    >>> common_difference(np.array([11.0, 20.0, np.nan, 17.0]), np.array([10.0, 18.0, 15.0])).difference.n
    2
    """
    ours, theirs = paired(values, baseline)
    return paired_difference(ours, theirs, level)


def paired(values: Sample, baseline: Sample) -> tuple[Sample, Sample]:
    """Return two samples over the runs that both have, without runs that lack a value."""
    runs = min(len(values), len(baseline))
    ours, theirs = values[:runs], baseline[:runs]
    both = ~(np.isnan(ours) | np.isnan(theirs))
    return ours[both], theirs[both]


def linearised_ratio(over: Sample, under: Sample) -> Sample:
    """Return values whose mean is `sum(over) / sum(under)`, with the spread of this ratio.

    Each value is the ratio plus the first-order contribution of its pair (the delta method). So a ratio
    of sums can be treated as a mean.

    Examples
    --------
    >>> import numpy as np
    >>> linearised_ratio(np.array([2.0, 6.0]), np.array([1.0, 3.0])).tolist()
    [2.0, 2.0]
    """
    if len(over) == 0:
        return over
    ratio = over.sum() / under.sum()
    return np.asarray(ratio + (over - ratio * under) / under.mean(), dtype=np.float64)


def ratio_of_means(over: Sample, under: Sample, level: float = LEVEL) -> Sample | None:
    """Return `linearised_ratio`; None if the mean of `under` is not significantly different from zero.

    Examples
    --------
    >>> import numpy as np
    >>> ratio_of_means(np.array([2.0, 6.0]), np.array([-1.0, 1.0])) is None
    True
    """
    against = estimate(under, level=level)
    return linearised_ratio(over, under) if against.low > 0 or against.high < 0 else None


def skewness(sample: Sample) -> float:
    """Return the adjusted Fisher-Pearson skewness; zero if all values are equal.

    Examples
    --------
    >>> import numpy as np
    >>> round(skewness(np.array([1.0, 2.0, 9.0])), 3)
    1.63
    """
    n = len(sample)
    apart = sample - sample.mean()
    second = float(np.mean(apart**2))
    # Differences from the mean below the rounding error are noise.
    if n < 3 or math.sqrt(second) <= 1e-12 * float(np.max(np.abs(sample))):
        return 0.0
    third = float(np.mean(apart**3))
    return math.sqrt(n * (n - 1)) / (n - 2) * third / math.pow(second, 1.5)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number, by Holm's step-down method.

    Parameters
    ----------
    p_values : sequence of float
        One for each test; NaN for a test that could not be made, which is not counted.

    Returns
    -------
    list of float
        The adjusted p-values in the same order. If those below 0.05 are called significant, at most one
        table in twenty has a false positive.

    Examples
    --------
    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = sorted((i for i, p in enumerate(p_values) if not math.isnan(p)), key=lambda i: p_values[i])
    adjusted = [math.nan] * len(p_values)
    least = 0.0
    for rank, i in enumerate(order):
        least = max(least, min(1.0, (len(order) - rank) * p_values[i]))
        adjusted[i] = least
    return adjusted


def _interpolated(ordered: Sample, share: float) -> float:
    """Return the quantile of an ordered, non-empty sample, which may contain infinite values."""
    # Hyndman and Fan (1996), "Sample quantiles in statistical packages", definition 8.
    n = len(ordered)
    place = min(max((n + 1 / 3) * share - 2 / 3, 0.0), n - 1.0)
    first = math.floor(place)
    one, next_one = float(ordered[first]), float(ordered[min(first + 1, n - 1)])
    if one == next_one or place == first:
        return one
    return one + (place - first) * (next_one - one)


def _from_moments(sample: Sample, level: float, least: float, greatest: float) -> Estimate:
    """Return Student's interval; for a skewed sample, the smallest interval that contains Hall's too.

    Hall (1992), "On the removal of skewness by transformation", with a monotone cubic: it moves and widens
    Student's interval towards the long tail.
    """
    from scipy.special import stdtr, stdtrit

    n = len(sample)
    mean, sd, skew = float(sample.mean()), float(sample.std(ddof=1)), skewness(sample)
    root = math.sqrt(n)
    students = float(stdtrit(n - 1, (1 + level) / 2)) / root
    low, high = mean - students * sd, mean + students * sd
    p_value = 2 * float(stdtr(n - 1, -abs(mean) / sd * root))
    method = "t"
    if n < COCHRAN * skew**2:
        method = "skewed"
        shift, bend = skew / (6 * n), skew / 3
        ends = [mean - sd * (math.cbrt(1 + 3 * bend * (t - shift)) - 1) / bend for t in (students, -students)]
        low, high = min(low, ends[0]), max(high, ends[1])
        apart = mean / sd
        level_at_zero = apart + bend * apart**2 + bend**2 * apart**3 / 3 + shift
        p_value = max(p_value, 2 * float(stdtr(n - 1, -abs(level_at_zero) * root)))
    events = n / skew**2 if skew else math.inf
    return Estimate(n, mean, max(low, least), min(high, greatest), sd, method, p_value, events)


def _events(sample: Sample, level: float) -> Estimate:
    """Return the interval of the mean number of events that most runs do not have.

    Counts of events of equal size have a Poisson distribution, with Garwood's exact interval (1936). Events
    of different sizes count as the number of equal ones with the same variance: (sum x)^2 / sum x^2.
    """
    from scipy.special import gammaincinv

    n, amount = len(sample), float(sample.sum())
    size = float(np.sum(sample**2)) / amount if amount else 1.0
    events = amount / size
    low = float(gammaincinv(events, (1 - level) / 2)) if amount else 0.0
    high = float(gammaincinv(events + 1, (1 + level) / 2))
    sd = float(sample.std(ddof=1))
    p_value = 0.0 if amount else 1.0
    return Estimate(n, amount / n, low * size / n, high * size / n, sd, "events", p_value, events)


def _exact(sample: Sample, level: float) -> Estimate:
    """Return Clopper and Pearson's interval (1934) of a share of runs."""
    from scipy.special import betaincinv

    n, having = len(sample), int(sample.sum())
    low = float(betaincinv(having, n - having + 1, (1 - level) / 2)) if having else 0.0
    high = float(betaincinv(having + 1, n - having, (1 + level) / 2)) if having < n else 1.0
    sd = float(sample.std(ddof=1))
    events = float(min(having, n - having))
    return Estimate(n, having / n, low, high, sd, "exact", 0.0 if having else 1.0, events)
