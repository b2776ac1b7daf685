"""How many runs a study makes: the rule by which each of its points stops.

The rule looks at a point only when all its schemes have the same number of runs, and only at numbers
that are fixed beforehand. So what is run depends on nothing but results, never on which run happened
to finish first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lasthop.study.run_numbers import RunNumbers
from lasthop.study.statistics import Estimate

MOST_RUNS = 1_000_000
"""Runs of one scheme at one point. A metric of all of them is held in memory, and more would not narrow an
interval that a reader can see."""


@dataclass(frozen=True, slots=True)
class Rule:
    """When a point has runs enough.

    Attributes
    ----------
    least, most : int
        The fewest and the most runs of each scheme.
    precision : float or None
        The half-width, relative to the mean, that the interval of every scheme shall have. None to
        make the most runs in any case.
    """

    least: int
    most: int
    precision: float | None

    def checkpoints(self) -> Iterator[int]:
        """Yield the numbers of runs at which a point may stop.

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
        """Whether all the schemes of a point are known as well as was asked."""
        precision = self.precision
        return precision is not None and all(each.within(precision) for each in estimates)

    def expected(self, runs: int, estimates: Sequence[Estimate]) -> int:
        """Guess at which checkpoint a point will stop that has made `runs` and may not stop yet."""
        if self.precision is None:
            return self.most
        # The half-width shrinks with the square root of the number of runs.
        worst = max((each.ci95 / abs(each.mean) for each in estimates if each.mean), default=0.0)
        wanted = runs * (worst / self.precision) ** 2
        return next((each for each in self.checkpoints() if each > runs and each >= wanted), self.most)


@dataclass(slots=True)
class Progress:
    """How far a study is.

    Attributes
    ----------
    done : int
        Runs that are in the store and count.
    made : int
        Those of them that were made since `Study.run` was called.
    expected : int
        Runs there will be at the end, as far as can be told yet.
    seconds : float
        Time since `Study.run` was called.
    """

    done: int = 0
    made: int = 0
    expected: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Runs made in a second."""
        return self.made / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Time that the remaining runs will take; None while that cannot be told."""
        return (self.expected - self.done) / self.rate if self.made else None


class PointPlan:
    """Where a point stands under a rule.

    Parameters
    ----------
    rule : Rule
        When it stops.
    have : list of RunNumbers
        The numbers of the runs that each scheme has; the caller adds to them.

    Attributes
    ----------
    target : int
        The checkpoint that it is on the way to.
    stopped : bool
        Whether it has runs enough.
    expected : int
        How many runs each scheme will have at the end, as far as can be told yet.
    """

    def __init__(self, rule: Rule, have: list[RunNumbers]) -> None:
        self.have = have
        self.stopped = False
        self._rule = rule
        self._checkpoints = rule.checkpoints()
        self.target = self.expected = next(self._checkpoints)
        # Of each scheme, the runs below this number are there or under way.
        self._ordered = [0] * len(have)

    def missing(self) -> Iterator[tuple[int, int, int]]:
        """Yield (scheme, first run, number of runs) for what the target still needs; each once."""
        for scheme, have in enumerate(self.have):
            first, self._ordered[scheme] = self._ordered[scheme], self.target
            for begin, end in have.gaps(first, self.target):
                yield scheme, begin, end - begin

    def complete(self) -> bool:
        """Whether every scheme has all the runs up to the target."""
        return all(have.prefix >= self.target for have in self.have)

    def done(self) -> int:
        """Return how many of the expected runs are there."""
        return sum(min(len(have), self.expected) for have in self.have)

    def decide(self, estimates: Sequence[Estimate]) -> None:
        """Stop, or go on to the next checkpoint, given what the runs up to the target say."""
        reached = self.target
        following = next(self._checkpoints, None)
        if following is None or self._rule.satisfied(estimates):
            self.stopped = True
            self.expected = reached
        else:
            self.target = following
            self.expected = self._rule.expected(reached, estimates)
