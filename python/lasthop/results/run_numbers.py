"""A compact set of run numbers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator


class RunNumbers:
    """A set of run numbers, kept as disjoint ranges.

    Memory and the time of each call grow with the number of ranges only, which are few: runs finish nearly in
    order.

    Parameters
    ----------
    ranges : iterable of (int, int), optional
        The initial members, each range as (first, end).

    Examples
    --------
    >>> have = RunNumbers([(0, 3), (5, 6)])
    >>> have.prefix, len(have), 5 in have, list(have.gaps(1, 8))
    (3, 4, True, [(3, 5), (6, 8)])
    >>> have.add(3, 5)
    >>> have.prefix
    6
    """

    __slots__ = ("_ends", "_firsts", "_size")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []
        self._size = 0
        for first, end in ranges:
            self.add(first, end)

    @property
    def prefix(self) -> int:
        """The first number that is missing."""
        return self._ends[0] if self._firsts and self._firsts[0] == 0 else 0

    def add(self, first: int, end: int) -> None:
        """Add the numbers from `first` to below `end`."""
        # The ranges that overlap this one, or touch it, merge with it.
        begin, after = bisect_left(self._ends, first), bisect_right(self._firsts, end)
        merged = self._firsts[begin:after], self._ends[begin:after]
        self._size -= sum(merged[1]) - sum(merged[0])
        if merged[0]:
            first, end = min(first, merged[0][0]), max(end, merged[1][-1])
        self._firsts[begin:after], self._ends[begin:after] = [first], [end]
        self._size += end - first

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges, each as (first, end), in order."""
        return zip(self._firsts, self._ends, strict=True)

    def __contains__(self, number: int) -> bool:
        """Whether a number is in the set."""
        place = bisect_right(self._firsts, number) - 1
        return place >= 0 and number < self._ends[place]

    def __len__(self) -> int:
        """Return how many numbers there are."""
        return self._size

    def gaps(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges from `first` to below `end` that are missing, each as (first, end)."""
        begin = first
        for place in range(bisect_right(self._ends, first), len(self._firsts)):
            if self._firsts[place] >= end:
                break
            if begin < self._firsts[place]:
                yield begin, self._firsts[place]
            begin = self._ends[place]
        if begin < end:
            yield begin, end
