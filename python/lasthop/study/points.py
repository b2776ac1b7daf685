"""The runs of the schemes of one point that stop together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from lasthop.engine.stopping import Rule
from lasthop.results.run_numbers import RunNumbers


class PointPlan:
    """The runs of the schemes of one point that stop together, and their next checkpoint.

    Parameters
    ----------
    rule : Rule
        The stopping rule.
    point : int
        The index of the point.
    have : dict of str to RunNumbers
        The run numbers that each of the schemes has.
    share : (int, int), optional
        The run numbers of a shard, as (first, end), instead of all up to the checkpoint.

    Attributes
    ----------
    target : int
        The next checkpoint.
    stopped : bool
        Whether the schemes have stopped.
    expected : int
        The estimated number of runs of each scheme at the end.
    """

    def __init__(
        self, rule: Rule, point: int, have: dict[str, RunNumbers], share: tuple[int, int] | None = None
    ) -> None:
        self.point: int = point
        self._share = share
        self.stopped: bool = False
        self._have = have
        self._rule = rule
        self._checkpoints = rule.checkpoints()
        self.target: int = next(self._checkpoints)
        self.expected: int = self.target
        # All runs below this number are stored or submitted.
        self._ordered = 0

    @property
    def schemes(self) -> Collection[str]:
        """The schemes."""
        return self._have.keys()

    def add(self, scheme: str, first: int, runs: int) -> None:
        """Note that `runs` runs of a scheme are stored, from number `first` on."""
        self._have[scheme].add(first, first + runs)

    def missing(self) -> Iterator[tuple[str, int, int]]:
        """Yield (scheme, first run, number of runs) of the runs missing up to the target, each once."""
        first, end = self._share or (self._ordered, self.target)
        self._ordered = self.target
        for scheme, have in self._have.items():
            for begin, after in have.gaps(first, end):
                yield scheme, begin, after - begin

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

    def decide(self, excesses: Sequence[float]) -> None:
        """Apply the stopping rule at the target: stop, or proceed to the next checkpoint."""
        reached = self.target
        following = next(self._checkpoints, None)
        if following is None or self._rule.satisfied(excesses):
            self.stopped = True
            self.expected = reached
        else:
            self.target = following
            self.expected = self._rule.expected(reached, excesses)
