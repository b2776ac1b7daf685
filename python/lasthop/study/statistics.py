"""Means with their intervals, and paired comparisons. docs/studies.md defines what is computed here.

Nothing in this module knows of scenarios or stores: samples go in, estimates come out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.stats._resampling import BootstrapResult

Sample = npt.NDArray[np.float64]

LEVEL = 0.95
SKEWED = 1.0
FEWEST_TO_RESAMPLE = 20
COCHRAN = 25
"""Student's interval is good from this many times the squared skewness on (Cochran 1977, section 2.15)."""

RESAMPLES = 1999
"""So many that the ends of a 95 % interval fall on resamples, not between them."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and how well it is known.

    Attributes
    ----------
    n : int
        The size of the sample.
    mean : float
        Its mean; NaN if it is empty.
    low, high : float
        The ends of the 95 % interval; NaN if the sample is smaller than two.
    sd : float
        The sample's standard deviation; NaN if it is smaller than two.
    method : str
        How the interval was found: `"t"`, `"bca"`, or `"none"` if there is none.
    p_value : float
        How likely a sample this far from zero is if the true mean is zero, by the same method; NaN if
        there is no interval.
    """

    n: int
    mean: float
    low: float
    high: float
    sd: float
    method: str
    p_value: float

    @property
    def ci95(self) -> float:
        """Half the interval's width."""
        return (self.high - self.low) / 2

    def within(self, precision: float) -> bool:
        """Whether half the interval's width is at most `precision` times the mean."""
        return self.ci95 <= precision * abs(self.mean)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One scheme against another over the same runs.

    Attributes
    ----------
    difference : Estimate
        The mean of the differences between the runs of a pair.
    ratio : Estimate or None
        The ratio of the two means. None where the other's mean cannot be told from zero.
    """

    difference: Estimate
    ratio: Estimate | None


def prepare() -> None:
    """Import what the statistics need: it takes so long that it should not come in between."""
    import scipy.special
    import scipy.stats  # noqa: F401


def estimate(values: npt.ArrayLike, seed: int = 1) -> Estimate:
    """Estimate a mean from independent values.

    Parameters
    ----------
    values : array_like of float
        The sample.
    seed : int, default 1
        Of the bootstrap's generator, which is used only if the sample is skewed.

    Returns
    -------
    Estimate
        With Student's interval; with that of the BCa bootstrap if the values are skewed: their
        skewness g is beyond 1 on either side, and they are at least 20, but fewer than 25 g^2.

    Examples
    --------
    >>> found = estimate([3.0, 5.0, 4.0, 6.0])
    >>> f"{found.mean} in {found.low:.3f} to {found.high:.3f} by {found.method}"
    '4.5 in 2.446 to 6.554 by t'
    """
    sample = np.asarray(values, dtype=np.float64)
    n = len(sample)
    if n < 2:
        mean = float(sample[0]) if n else math.nan
        return Estimate(n, mean, math.nan, math.nan, math.nan, "none", math.nan)
    skew = abs(skewness(sample))
    if skew > SKEWED and FEWEST_TO_RESAMPLE <= n < COCHRAN * skew**2:
        found = _bca(sample, seed)
        # The bootstrap has no answer where the resamples are all but one value.
        if math.isfinite(found.low) and math.isfinite(found.high):
            return found
    return _student(sample)


def compare(values: npt.ArrayLike, baseline: npt.ArrayLike, seed: int = 1) -> Comparison:
    """Compare two schemes whose runs are paired: the values at one index met the same fades.

    Parameters
    ----------
    values, baseline : array_like of float
        Samples of the same length.
    seed : int, default 1
        As in `estimate`.

    Returns
    -------
    Comparison
        The mean of `values - baseline`, and the ratio of the means of the two.

    Examples
    --------
    >>> found = compare([11.0, 22.0, 16.0, 17.0], [10.0, 20.0, 15.0, 15.0])
    >>> found.difference.mean, found.ratio.mean
    (1.5, 1.1)
    """
    ours, theirs = np.asarray(values, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    difference = estimate(ours - theirs, seed)
    against = estimate(theirs, seed)
    if not (against.low > 0 or against.high < 0):
        return Comparison(difference, None)
    return Comparison(difference, estimate(linearised_ratio(ours, theirs), seed))


def compare_paired(values: Sample, baseline: Sample, seed: int = 1) -> Comparison:
    """Compare two schemes over the runs that both have: the common prefix, without runs that lack a value.

    Examples
    --------
    >>> import numpy as np
    >>> compare_paired(np.array([11.0, 20.0, np.nan, 17.0]), np.array([10.0, 18.0, 15.0])).difference.n
    2
    """
    runs = min(len(values), len(baseline))
    ours, theirs = values[:runs], baseline[:runs]
    both = ~(np.isnan(ours) | np.isnan(theirs))
    return compare(ours[both], theirs[both], seed)


def linearised_ratio(over: Sample, under: Sample) -> Sample:
    """Return values whose mean is `sum(over) / sum(under)`, and whose spread is that ratio's.

    Each value is the ratio plus what its pair adds to it to the first order (the delta method), so
    that a ratio of sums can be treated as a mean.

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


def skewness(sample: Sample) -> float:
    """Return the adjusted Fisher-Pearson skewness; zero if the values are all the same.

    Examples
    --------
    >>> import numpy as np
    >>> round(skewness(np.array([1.0, 2.0, 9.0])), 3)
    1.63
    """
    n = len(sample)
    apart = sample - sample.mean()
    second = float(np.mean(apart**2))
    # Below rounding, differences from the mean are noise and not a shape.
    if n < 3 or math.sqrt(second) <= 1e-12 * float(np.max(np.abs(sample))):
        return 0.0
    third = float(np.mean(apart**3))
    return math.sqrt(n * (n - 1)) / (n - 2) * third / math.pow(second, 1.5)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number, by Holm's step-down method.

    Parameters
    ----------
    p_values : sequence of float
        One for each test; NaN for a test that could not be made, which does not count.

    Returns
    -------
    list of float
        The adjusted ones in the same order. Calling those below 0.05 significant is wrong about any
        of them at most once in twenty tables.

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


def _student(sample: Sample) -> Estimate:
    from scipy.special import stdtr, stdtrit

    n = len(sample)
    mean, sd = float(sample.mean()), float(sample.std(ddof=1))
    if sample.min() == sample.max():
        # Runs that are all alike: rounding must not give them a spread.
        same = float(sample[0])
        return Estimate(n, same, same, same, 0.0, "t", float(same == 0))
    error = sd / math.sqrt(n)
    half = float(stdtrit(n - 1, (1 + LEVEL) / 2)) * error
    p_value = 2 * float(stdtr(n - 1, -abs(mean) / error))
    return Estimate(n, mean, mean - half, mean + half, sd, "t", p_value)


def _bca(sample: Sample, seed: int) -> Estimate:
    from scipy.stats import bootstrap

    n = len(sample)
    result = bootstrap(
        (sample,),
        np.mean,
        confidence_level=LEVEL,
        n_resamples=RESAMPLES,
        # Bounds the memory that the resamples of a large sample take.
        batch=max(1, 1_000_000 // n),
        method="BCa",
        rng=np.random.default_rng(seed),
    )
    interval = result.confidence_interval
    return Estimate(
        n=n,
        mean=float(sample.mean()),
        low=float(interval.low),
        high=float(interval.high),
        sd=float(sample.std(ddof=1)),
        method="bca",
        p_value=_bca_p_value(sample, result),
    )


def _bca_p_value(sample: Sample, result: BootstrapResult) -> float:
    """Return the level at which the BCa interval would just touch zero.

    Efron's formula for the end of the interval, solved for the level: so that the p-value is below
    0.05 when the interval excludes zero, and not otherwise.
    """
    from scipy.special import ndtr, ndtri

    means = result.bootstrap_distribution
    size = len(means)

    def share_below(value: float) -> float:
        share = (np.sum(means < value) + np.sum(means <= value)) / (2 * size)
        # A finite number of resamples cannot show that something never happens.
        return float(np.clip(share, 1 / (size + 1), size / (size + 1)))

    bias = float(ndtri(share_below(float(sample.mean()))))
    apart = sample - sample.mean()
    acceleration = float(np.sum(apart**3) / (6 * np.sum(apart**2) ** 1.5))
    shift = float(ndtri(share_below(0.0))) - bias
    level = float(ndtr(shift / (1 + acceleration * shift) - bias))
    p_value = 2 * min(level, 1 - level)
    if means.min() > 0 or means.max() < 0:
        # Zero is farther off than the resamples can tell, so that this is only a bound.
        return min(p_value, _student(sample).p_value)
    return p_value
