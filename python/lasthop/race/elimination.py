"""The sequential tests of a comparison: which arms stop early, and the status of the others.

Samples are paired: values with the same index are from runs over the same fades. Values are not negated if
lower is better; `higher` states the direction. docs/guide/compare.md states the error rates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lasthop.core.paired_quantiles import p_greater
from lasthop.core.statistics import Sample, estimate
from lasthop.engine.stopping import MOST_RUNS
from lasthop.race.error import RaceError

FEWEST_TO_STOP = 32
"""Minimum number of runs before an arm stops for precision: enough to see an event of one run in ten."""


@dataclass(frozen=True, slots=True)
class Elimination:
    """The tests of a comparison of means, and their levels.

    Half of the error is for random differences. It is divided by the number of looks and by the number of
    other arms, so that by Bonferroni's inequality it bounds the probability that a truly best arm is called
    worse. The other half is for rare events that no run has met. It is not divided: all arms meet the same
    fades, and an event unseen at one look was unseen at all earlier ones.

    Attributes
    ----------
    error : float
        The probability that a truly best arm is called worse.
    arms : int
        The number of arms.
    looks : int
        The number of looks at which arms may stop.
    higher : bool
        Whether a higher value is better.
    """

    misses_rare: ClassVar[bool] = True
    """Whether failures that the leader has not met may make up for a difference."""

    error: float
    arms: int
    looks: int
    higher: bool

    @property
    def level(self) -> float:
        """The level of one test."""
        return self.error / 2 / self.looks / max(1, self.arms - 1)

    def far_worse(self, arm: Sample, leader: Sample, margin: float, best: float) -> bool:
        """Whether an arm is worse than the leader, and by more than `margin`, so that it may stop.

        Parameters
        ----------
        arm, leader : array
            Paired values.
        margin : float
            A share of the leader's mean.
        best : float
            The best value of any run so far.

        Returns
        -------
        bool
            Whether the difference is significant, its 95 % interval is beyond the margin, and a rare event
            that offsets it would have been seen: a run in which the arm has `best`. If a share q of such runs
            offsets the difference, n runs have none with probability (1 - q)^n. Failures of the leader need
            not have been seen, since it goes on.
        """
        found = estimate(self._advantage(arm, leader), level=1 - 2 * self.level)
        beyond = estimate(self._advantage(arm, (1 - margin if self.higher else 1 + margin) * leader))
        if not (found.low > 0 and beyond.low > 0):
            return False
        at_risk = abs(best - float(leader.mean()))
        return bool((at_risk / (at_risk + found.low)) ** found.n <= self.error / 2)

    def worse(self, arm: Sample, leader: Sample) -> bool:
        """Whether an arm is worse than the leader, by the runs that were made."""
        return self._above_zero(self._advantage(arm, leader))

    def as_good(self, arm: Sample, other: Sample, margin: float) -> bool:
        """Whether an arm is at most `margin` worse than another, relative to the other's mean."""
        # Metrics are not negative, so an arm of zeros is the best if lower is better.
        if np.array_equal(arm, other) or not (self.higher or arm.any()):
            return True
        if self.higher:
            return self._above_zero(arm - (1 - margin) * other)
        return self._above_zero((1 + margin) * other - arm)

    def _advantage(self, arm: Sample, leader: Sample) -> Sample:
        """Return the leader's advantage in each pair."""
        return leader - arm if self.higher else arm - leader

    def _above_zero(self, sample: Sample) -> bool:
        """Whether the mean of a sample is significantly above zero, by a one-sided test."""
        found = estimate(sample)
        return found.mean > 0 and found.p_value / 2 <= self.level


@dataclass(frozen=True, slots=True)
class QuantileElimination:
    """The tests of a comparison of quantiles, and their levels.

    The whole error is for random differences, divided as in `Elimination`. No part is needed for rare
    events: `p_greater` is valid for every distribution, and needs enough runs to see any event that moves the
    quantile.

    Attributes
    ----------
    share : float
        The probability of the quantile, such as 0.95.
    error, arms, looks, higher
        As in `Elimination`.
    """

    misses_rare: ClassVar[bool] = False
    """Whether failures that the leader has not met may make up for a difference."""

    share: float
    error: float
    arms: int
    looks: int
    higher: bool

    @property
    def level(self) -> float:
        """The level of one test."""
        return self.error / self.looks / max(1, self.arms - 1)

    def far_worse(self, arm: Sample, leader: Sample, margin: float, best: float) -> bool:
        """Whether an arm's quantile is worse than the leader's."""
        return self._better(leader, arm)

    def worse(self, arm: Sample, leader: Sample) -> bool:
        """Whether an arm's quantile is worse than the leader's."""
        return self._better(leader, arm)

    def as_good(self, arm: Sample, other: Sample, margin: float) -> bool:
        """Whether an arm's quantile is at most `margin` worse than another's, relative to it."""
        if np.array_equal(arm, other) or not (self.higher or arm.any()):
            return True
        return self._better(arm, (1 - margin if self.higher else 1 + margin) * other)

    def _better(self, one: Sample, other: Sample) -> bool:
        above, below = (one, other) if self.higher else (other, one)
        return p_greater(above, below, self.share) <= self.level


def looks(least: int, most: int) -> Iterator[int]:
    """Yield the numbers of runs of the looks: doubling from `least`, and `most` at the end.

    Examples
    --------
    >>> list(looks(8, 50))
    [8, 16, 32, 50]
    """
    runs = least
    while runs < most:
        yield runs
        runs *= 2
    yield most


def independent(sample: Sample, variants: int) -> Sample:
    """Return the mean of each variant, where run r is of variant r modulo `variants`.

    Runs of one variant share the link that was drawn for it, so they are not independent of each other.

    Examples
    --------
    >>> import numpy as np
    >>> independent(np.array([1.0, 2.0, 3.0, 4.0]), 2).tolist()
    [2.0, 3.0]
    >>> independent(np.array([1.0, 2.0, 3.0]), 5).tolist()
    [1.0, 2.0, 3.0]
    """
    if variants == 1 or len(sample) <= variants:
        return sample
    return np.array([np.mean(sample[first::variants]) for first in range(variants)])


def check_limits(
    *,
    error: float,
    margin: float,
    precision: float | None,
    runs: tuple[int, int] | None,
    variants: Sequence[Mapping[str, Any]],
) -> None:
    """Check the ranges of the arguments of a race.

    Raises
    ------
    RaceError
        If one is out of range.
    """
    for name, share in (("error", error), ("margin", margin), ("precision", precision)):
        if share is not None and not 0 < share < 1:
            raise RaceError(f"{name}: found {share}, expected a share between 0 and 1, such as 0.05")
    least, most = runs or (1, 1)
    if not 1 <= least <= most <= MOST_RUNS:
        raise RaceError(f"runs: found ({least}, {most}), expected 1 <= fewest <= most <= {MOST_RUNS:,}")
    if not variants:
        raise RaceError("variants: expected at least one, which may be empty")
