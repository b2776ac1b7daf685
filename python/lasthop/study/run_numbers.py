"""A compact set of run numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class RunNumbers:
    """A set of run numbers that fills up from 0.

    Memory grows only with the numbers beyond the first gap, which are few: runs finish nearly in order.

    Parameters
    ----------
    numbers : iterable of int, optional
        The initial members.

    Attributes
    ----------
    prefix : int
        The first number that is missing.

    Examples
    --------
    >>> have = RunNumbers([0, 1, 2, 5])
    >>> have.prefix, len(have), 5 in have, list(have.gaps(1, 8))
    (3, 4, True, [(3, 5), (6, 8)])
    """

    __slots__ = ("_beyond", "prefix")

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self.prefix = 0
        self._beyond: set[int] = set()
        for number in numbers:
            self.add(number)

    def add(self, number: int) -> None:
        """Add a number."""
        if number >= self.prefix:
            self._beyond.add(number)
            while self.prefix in self._beyond:
                self._beyond.remove(self.prefix)
                self.prefix += 1

    def __contains__(self, number: int) -> bool:
        """Whether a number is in the set."""
        return number < self.prefix or number in self._beyond

    def __len__(self) -> int:
        """Return how many numbers there are."""
        return self.prefix + len(self._beyond)

    def gaps(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the stretches from `first` to below `end` that are missing, each as (first, end)."""
        begin = max(first, self.prefix)
        for number in sorted(each for each in self._beyond if begin <= each < end):
            if begin < number:
                yield begin, number
            begin = number + 1
        if begin < end:
            yield begin, end
