"""Shards: processes that share the runs of one study, each with its own store."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lasthop.results.error import ShardError


@dataclass(frozen=True, slots=True)
class Shard:
    """One of the shards of a study.

    Attributes
    ----------
    index : int
        Its number, from 1.
    of : int
        The number of shards.

    Raises
    ------
    StudyError
        Unless 1 <= index <= of.

    Examples
    --------
    >>> [Shard(i, 3).share(0, 10) for i in (1, 2, 3)]
    [(0, 3), (3, 6), (6, 10)]
    >>> str(Shard.parse("2/3"))
    '2/3'
    """

    index: int
    of: int

    def __post_init__(self) -> None:
        """Refuse a shard that does not exist."""
        if not 1 <= self.index <= self.of:
            raise ShardError(f"found {self}, expected I/N with 1 <= I <= N, such as 1/4")

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `I/N`.

        Raises
        ------
        ShardError
            If the text is anything else.
        """
        match = re.fullmatch(r"([0-9]+)/([0-9]+)", text.strip())
        if match is None:
            raise ShardError(f"found {text!r}, expected I/N with 1 <= I <= N, such as 1/4")
        return cls(int(match[1]), int(match[2]))

    def share(self, point: int, runs: int) -> tuple[int, int]:
        """Return the run numbers of this shard at a point, as (first, end).

        The shares of all shards are disjoint and make up 0 to `runs`. They rotate from point to point, so
        that with fewer runs than shards every shard still has its share of the points.

        Parameters
        ----------
        point : int
            The index of the point.
        runs : int
            The runs of each scheme at each point.
        """
        place = (self.index - 1 + point) % self.of
        return place * runs // self.of, (place + 1) * runs // self.of

    def __str__(self) -> str:
        """Return `I/N`."""
        return f"{self.index}/{self.of}"
