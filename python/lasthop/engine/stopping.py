"""The stopping rule of a study, and the progress under it of the schemes that stop together.

The rule is applied only at checkpoints, whose numbers of runs are fixed in advance, once all of these schemes
have reached them. The runs made therefore depend on results alone, and not on the order in which runs finish.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lasthop.core.statistics import Estimate

MOST_RUNS = 1_000_000
"""The most runs of one scheme at one point: a metric of all of them is held in memory."""


@dataclass(frozen=True, slots=True)
class Target:
    """How well the mean of a metric must be known.

    Attributes
    ----------
    metric : str
        The metric.
    relative : float
        The half-width of the 95 % interval that is narrow enough, relative to the mean.
    absolute : float
        The half-width that is narrow enough whatever the mean is.
    """

    metric: str
    relative: float = 0.0
    absolute: float = 0.0

    def width(self, found: Estimate) -> float:
        """Return the half-width of an estimate in units of the wanted one; NaN if it has no interval."""
        wanted = max(self.relative * abs(found.mean), self.absolute)
        if wanted > 0:
            return found.ci95 / wanted
        return 0.0 if found.ci95 == 0 else math.nan if math.isnan(found.ci95) else math.inf

    def excess(self, found: Estimate) -> float:
        """Return the same; infinite while the spread rests on too few events to stop by it, or on none."""
        width = self.width(found)
        return width if found.settled or math.isnan(width) else math.inf


@dataclass(frozen=True, slots=True)
class Rule:
    """The stopping rule of the schemes of one grid point.

    Attributes
    ----------
    least, most : int
        The fewest and the most runs of each scheme.
    targets : sequence of Target
        The precisions that every scheme must reach. None to always make the most runs.
    """

    least: int
    most: int
    targets: Sequence[Target] = ()

    @property
    def precision(self) -> float | None:
        """The relative precision of the first target."""
        return self.targets[0].relative if self.targets else None

    def checkpoints(self) -> Iterator[int]:
        """Yield the numbers of runs at which the rule is applied.

        Examples
        --------
        >>> list(Rule(10, 60, [Target("throughput_bps", 0.02)]).checkpoints())
        [10, 15, 23, 35, 53, 60]
        """
        runs = self.least
        while runs < self.most:
            if self.targets:
                yield runs
            runs = (3 * runs + 1) // 2
        yield self.most

    def satisfied(self, excesses: Sequence[float]) -> bool:
        """Whether all intervals are narrow enough, from the excess of each scheme over each target."""
        return bool(self.targets) and all(each <= 1 for each in excesses)

    def expected(self, runs: int, excesses: Sequence[float]) -> int:
        """Estimate the checkpoint at which schemes with `runs` runs will stop."""
        if not self.targets:
            return self.most
        # The half-width shrinks with the square root of the number of runs.
        worst = max((each for each in excesses if math.isfinite(each)), default=0.0)
        return next(
            (each for each in self.checkpoints() if each > runs and each >= runs * worst**2), self.most
        )


@dataclass(slots=True)
class Progress:
    """The progress of a study.

    Attributes
    ----------
    done : int
        Runs in the store that count.
    made : int
        Runs made since `Study.run` was called.
    expected : int
        The estimated number of runs at the end.
    seconds : float
        Time since `Study.run` was called.
    """

    done: int = 0
    made: int = 0
    expected: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Runs per second."""
        return self.made / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Estimated time for the remaining runs; None before the first run."""
        return (self.expected - self.done) / self.rate if self.made else None
