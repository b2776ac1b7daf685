"""The schemes of one point that stop together, as a policy of the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from lasthop._lasthop import Scenario
from lasthop.engine.scheduler import Batch, Policy
from lasthop.engine.stopping import Rule
from lasthop.results.run_numbers import RunNumbers


class PointPolicy(Policy):
    """The runs of the schemes of one point that stop together, and their next checkpoint.

    Parameters
    ----------
    rule : Rule
        The stopping rule.
    point : int
        The index of the point.
    scenario : Scenario
        The point's scenario.
    have : dict of str to RunNumbers
        The run numbers that each of the schemes has.
    excesses : callable
        Returns how much wider the intervals of the schemes are than wanted, for each scheme and target: from
        the point, the schemes and the number of runs.
    share : (int, int), optional
        The run numbers of a shard, as (first, end), instead of all up to the checkpoint.

    Attributes
    ----------
    target : int
        The next checkpoint.
    expected : int
        The estimated number of runs of each scheme at the end.
    """

    def __init__(
        self,
        rule: Rule,
        point: int,
        scenario: Scenario,
        have: dict[str, RunNumbers],
        excesses: Callable[[int, Collection[str], int], Sequence[float]],
        share: tuple[int, int] | None = None,
    ) -> None:
        self._rule, self._point, self._scenario = rule, point, scenario
        self._have, self._excesses, self._share = have, excesses, share
        self._stopped = False
        self._checkpoints = rule.checkpoints()
        self.target: int = next(self._checkpoints)
        self.expected: int = self.target
        # All runs below this number are stored or submitted.
        self._ordered = 0

    @property
    def stopped(self) -> bool:
        """Whether the schemes have stopped."""
        return self._stopped

    def add(self, point: int, scheme: str, first: int, runs: int) -> None:
        """Note that `runs` runs of a scheme are made, from number `first` on."""
        self._have[scheme].add(first, first + runs)

    def missing(self) -> Iterator[Batch]:
        """Yield the runs missing up to the target, each once."""
        first, end = self._share or (self._ordered, self.target)
        self._ordered = self.target
        for scheme, have in self._have.items():
            for begin, after in have.gaps(first, end):
                yield Batch(self._point, scheme, self._scenario, begin, after - begin)

    def complete(self) -> bool:
        """Whether every scheme has all the runs up to the target."""
        if self._share is not None:
            return not any(True for have in self._have.values() for _ in have.gaps(*self._share))
        return all(have.prefix >= self.target for have in self._have.values())

    def done(self) -> int:
        """Return how many of the expected runs are stored."""
        if self._share is not None:
            gaps = (gap for have in self._have.values() for gap in have.gaps(*self._share))
            return self.total() - sum(end - first for first, end in gaps)
        return sum(min(len(have), self.expected) for have in self._have.values())

    def total(self) -> int:
        """Return the estimated number of runs at the end."""
        first, end = self._share or (0, self.expected)
        return (end - first) * len(self._have)

    def decide(self) -> None:
        """Apply the stopping rule at the target: stop, or proceed to the next checkpoint."""
        reached = self.target
        excesses = self._excesses(self._point, self._have.keys(), reached)
        following = next(self._checkpoints, None)
        if following is None or self._rule.satisfied(excesses):
            self._stopped = True
            self.expected = reached
        else:
            self.target = following
            self.expected = self._rule.expected(reached, excesses)
