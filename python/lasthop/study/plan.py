"""The stopping rule of a study's points, and each point's progress under it.

The rule is applied only at checkpoints, whose numbers of runs are fixed in advance, once all schemes of a
point have reached them. The runs made therefore depend on results alone, and not on the order in which runs
finish.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lasthop.study.run_numbers import RunNumbers
from lasthop.study.statistics import Estimate

MOST_RUNS = 1_000_000
"""The most runs of one scheme at one point: a metric of all of them is held in memory."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The stopping rule of one grid point.

    Attributes
    ----------
    least, most : int
        The fewest and the most runs of each scheme.
    precision : float or None
        The target half-width of every scheme's interval, relative to the mean. None to always make the most
        runs.
    """

    least: int
    most: int
    precision: float | None

    def checkpoints(self) -> Iterator[int]:
        """Yield the numbers of runs at which the rule is applied.

        Examples
        --------
        >>> list(Rule(10, 60, 0.02).checkpoints())
        [10, 15, 23, 35, 53, 60]
        """
        runs = self.least
        while runs < self.most:
            if self.precision is not None:
                yield runs
            runs = (3 * runs + 1) // 2
        yield self.most

    def satisfied(self, estimates: Sequence[Estimate]) -> bool:
        """Whether the intervals of all schemes of a point are narrow enough."""
        precision = self.precision
        return precision is not None and all(each.within(precision) for each in estimates)

    def expected(self, runs: int, estimates: Sequence[Estimate]) -> int:
        """Estimate the checkpoint at which a point with `runs` runs will stop."""
        if self.precision is None:
            return self.most
        # The half-width shrinks with the square root of the number of runs.
        worst = max((each.ci95 / abs(each.mean) for each in estimates if each.mean), default=0.0)
        wanted = runs * (worst / self.precision) ** 2
        return next((each for each in self.checkpoints() if each > runs and each >= wanted), self.most)


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


class PointPlan:
    """The runs of one point, and its next checkpoint.

    Parameters
    ----------
    rule : Rule
        The stopping rule.
    have : list of RunNumbers
        The run numbers that each scheme has. The caller adds to them.

    Attributes
    ----------
    target : int
        The next checkpoint.
    stopped : bool
        Whether the point has stopped.
    expected : int
        The estimated number of runs of each scheme at the end.
    """

    def __init__(self, rule: Rule, have: list[RunNumbers]) -> None:
        self.have = have
        self.stopped = False
        self._rule = rule
        self._checkpoints = rule.checkpoints()
        self.target = self.expected = next(self._checkpoints)
        # For each scheme, all runs below this number are stored or submitted.
        self._ordered = [0] * len(have)

    def missing(self) -> Iterator[tuple[int, int, int]]:
        """Yield (scheme, first run, number of runs) of the runs missing up to the target, each once."""
        for scheme, have in enumerate(self.have):
            first, self._ordered[scheme] = self._ordered[scheme], self.target
            for begin, end in have.gaps(first, self.target):
                yield scheme, begin, end - begin

    def complete(self) -> bool:
        """Whether every scheme has all the runs up to the target."""
        return all(have.prefix >= self.target for have in self.have)

    def done(self) -> int:
        """Return how many of the expected runs are stored."""
        return sum(min(len(have), self.expected) for have in self.have)

    def decide(self, estimates: Sequence[Estimate]) -> None:
        """Apply the stopping rule to the estimates at the target: stop, or proceed to the next checkpoint."""
        reached = self.target
        following = next(self._checkpoints, None)
        if following is None or self._rule.satisfied(estimates):
            self.stopped = True
            self.expected = reached
        else:
            self.target = following
            self.expected = self._rule.expected(reached, estimates)
