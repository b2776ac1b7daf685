"""Paired comparisons of quantiles. docs/guide/compare.md derives the test."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasthop.core.statistics import LEVEL, Sample, quantile, runs_to_tell

PARTS = 3
"""Events that a false rejection needs one of: each has the same part of the error."""

RESAMPLES, AT_ONCE = 1000, 250
"""Samples of the bootstrap, and how many are in memory at once."""


@dataclass(frozen=True, slots=True)
class Span:
    """A mean, quantile, difference or ratio with its 95 % interval.

    Attributes
    ----------
    value : float
        The number; NaN if there is none, such as the difference of two infinite quantiles.
    low, high : float
        The ends of the interval; infinite where the samples are too small to tell.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class QuantileDifference:
    """A quantile of one scheme beside that of another, over the same runs.

    Attributes
    ----------
    difference : Span
        The first quantile minus the second.
    ratio : Span or None
        The first quantile divided by the second. None if the second is not significantly above zero, or if
        there are negative values.
    p_value : float
        The two-sided p-value of equal quantiles, valid for every distribution.
    """

    difference: Span
    ratio: Span | None
    p_value: float


def p_greater(values: Sample, baseline: Sample, share: float) -> float:
    """Return the p-value of the hypothesis that a quantile of `values` is at most that of `baseline`.

    Under the hypothesis there is a threshold t between the two quantiles, so that P(values <= t) >= share >=
    P(baseline < t), and among the pairs divided by t, `values` is the greater one at most as often as
    `baseline`. The hypothesis is rejected if a binomial test rejects one of these three statements at every
    threshold; each test has a third of the error probability. The p-value is valid for every sample size and
    distribution, also with ties.

    Parameters
    ----------
    values, baseline : array
        Paired samples of the same length; independent pairs. Infinite values are worse or better than all.
    share : float
        The quantile, such as 0.95.

    Examples
    --------
    >>> fades = np.arange(40.0)
    >>> p_greater(fades + 9, fades, 0.5) < 0.025, p_greater(fades + 1, fades, 0.5)
    (True, 1.0)
    """
    from scipy.special import bdtr, bdtrc

    n = len(values)
    if n == 0:
        return 1.0
    thresholds, places = np.unique(np.concatenate([values, baseline]), return_inverse=True)
    ours, theirs = places[:n], places[n:]

    # The values that occur, and a threshold above all of them: no threshold between them is harder to reject.
    def counted(since: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return the number of pairs with an event at each threshold; events occur from `since` upwards."""
        return np.cumsum(np.bincount(since, minlength=len(thresholds) + 1))

    at_most, below = counted(ours), counted(theirs + 1)
    both = counted(np.maximum(ours, theirs + 1))
    over, under = below - both, at_most - both
    p_values = [
        bdtr(at_most, n, share),
        np.where(below > 0, bdtrc(np.maximum(below - 1, 0), n, share), 1.0),
        np.where(
            over > 0, bdtrc(np.maximum(over - 1, 0), np.maximum(over + under, 1).astype(np.intp), 0.5), 1.0
        ),
    ]
    return min(1.0, PARTS * float(np.min(p_values, axis=0).max()))


def runs_to_reject(share: float, level: float) -> int:
    """Return the fewest runs with which `p_greater` can be at most `level`.

    Examples
    --------
    >>> [runs_to_reject(share, 0.025) for share in (0.5, 0.95, 0.05)]
    [7, 94, 94]
    """
    return math.ceil(math.log(level / PARTS) / math.log(max(share, 1 - share)))


def quantile_difference(
    values: npt.ArrayLike, baseline: npt.ArrayLike, share: float, level: float = LEVEL
) -> QuantileDifference:
    """Compare a quantile of two schemes whose runs are paired.

    Intervals are those of the paired bootstrap: the central part of the differences and ratios in resampled
    pairs. The ends are infinite with fewer than `runs_to_tell(share)` runs, which do not determine the tail.
    The p-value is the two-sided one of `p_greater`.

    Parameters
    ----------
    values, baseline : array_like of float
        Samples of the same length.
    share : float
        The quantile, such as 0.95.
    level : float, default 0.95
        The level of the intervals.

    Examples
    --------
    >>> fades = np.arange(1, 201) / 100
    >>> found = quantile_difference(2 * fades, fades, 0.5)
    >>> found.ratio.value, found.ratio.low, found.p_value < 0.001
    (2.0, 2.0, True)
    """
    ours, theirs = np.asarray(values, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    one, other = quantile(ours, share, level), quantile(theirs, share, level)
    p_value = min(1.0, 2 * min(p_greater(ours, theirs, share), p_greater(theirs, ours, share)))
    determined = len(ours) >= runs_to_tell(share, level)
    drawn, against = _resampled(ours, theirs, share) if determined else (np.zeros(0), np.zeros(0))
    with np.errstate(invalid="ignore"):
        difference = Span(float(np.subtract(one.value, other.value)), *_middle(drawn - against, level))
    ratio = None
    if other.low > 0 and math.isfinite(other.value) and ours.min() >= 0 and theirs.min() >= 0:
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = _middle(drawn / against, level)
        ratio = Span(one.value / other.value, max(0.0, low), high)
    return QuantileDifference(difference, ratio, p_value)


def _resampled(ours: Sample, theirs: Sample, share: float) -> tuple[Sample, Sample]:
    """Return the quantiles of both samples in pairs drawn with replacement."""
    # The draws depend on the number of pairs only, so results are reproducible.
    random = np.random.default_rng(len(ours))
    found = []
    for _ in range(RESAMPLES // AT_ONCE):
        drawn = random.integers(0, len(ours), size=(AT_ONCE, len(ours)))
        found.append([_quantiles(ours[drawn], share), _quantiles(theirs[drawn], share)])
    one, other = np.concatenate(found, axis=1)
    return one, other


def _quantiles(samples: npt.NDArray[np.float64], share: float) -> Sample:
    """Return the median-unbiased quantile of each row, some of whose values may be infinite."""
    n = samples.shape[1]
    place = min(max((n + 1 / 3) * share - 2 / 3, 0.0), n - 1.0)
    first = math.floor(place)
    after = min(first + 1, n - 1)
    ordered = np.partition(samples, (first, after), axis=1)
    low, high = ordered[:, first], ordered[:, after]
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(low == high, low, low + (place - first) * (high - low)))


def _middle(drawn: Sample, level: float) -> tuple[float, float]:
    """Return the ends of the central part of resampled values. A value that is NaN may lie anywhere."""
    if len(drawn) == 0:
        return -math.inf, math.inf
    unknown = np.isnan(drawn)
    outside = math.floor(len(drawn) * (1 - level) / 2)
    low = np.sort(np.where(unknown, -math.inf, drawn))[outside]
    high = np.sort(np.where(unknown, math.inf, drawn))[len(drawn) - 1 - outside]
    return float(low), float(high)
