"""Stores of results: what they have in common, and the one in memory.

A store holds chunks: consecutive runs of a scheme at a point, with a cell for each metric. Points are
identified by their indices in the experiment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from lasthop._lasthop import METRICS
from lasthop.results.cells import decoded, words
from lasthop.results.run_numbers import RunNumbers

ALL = 2**63 - 1
"""A number above every run number."""


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point of a study.

    Attributes
    ----------
    parameters : dict of str to str
        The swept settings with their values.
    schemes : list of str
        The schemes compared at the point.
    hash : str
        The hash of the scenario.
    toml : str
        The scenario.
    """

    parameters: dict[str, str]
    schemes: list[str]
    hash: str
    toml: str


@dataclass(frozen=True, slots=True)
class Identity:
    """The definition of a study. A store holds one study at a time, and may hold other points and schemes.

    Attributes
    ----------
    version : str
        The version of Lasthop.
    seed : int
        The study's seed.
    metrics : tuple of str
        The metrics of each run: those that every run has, the counters of all schemes, and the requested
        ones.
    points : list of StoredPoint
        The points in their order.
    asked : tuple of str
        The requested metrics, the last ones of `metrics`: those of connections, traffic sources, applications
        and agents. Runs made before the request lack them.
    """

    version: str
    seed: int
    metrics: tuple[str, ...]
    points: list[StoredPoint]
    asked: tuple[str, ...] = ()

    def conflict(self, stored: Identity) -> str | None:
        """Return why this study cannot continue or extend `stored`; None if it can.

        It can if they have a point in common. Points are the same if the hashes of their scenarios are.
        """
        if self.seed != stored.seed:
            return f"it has seed {stored.seed}, not {self.seed}"
        if self.version != stored.version:
            return f"it was made by Lasthop {stored.version}, this is {self.version}"
        if stored.metrics[: len(METRICS)] != METRICS:
            return f"it was made by Lasthop {stored.version} with other metrics"
        if not {point.hash for point in self.points} & {point.hash for point in stored.points}:
            n = len(self.points)
            return f"{n} of {n} points are not in it: the scenario or its sweep has changed"
        return None

    def difference(self, stored: Identity) -> str | None:
        """Return how this study differs from `stored`; None if they are the same."""
        if (conflict := self.conflict(stored)) is not None:
            return conflict
        ours, theirs = ([point.hash for point in study.points] for study in (self, stored))
        if ours != theirs:
            changed = len(set(ours) - set(theirs))
            if changed == 0:
                return f"it has {len(theirs)} points, not {len(ours)}, or has them in another order"
            return f"{changed} of {len(ours)} points are not in it: the scenario or its sweep has changed"
        if any(a.schemes != b.schemes for a, b in zip(self.points, stored.points, strict=True)):
            had, has = (", ".join(study.points[0].schemes) for study in (stored, self))
            return f"it compares the schemes {had}, not {has}"
        if self.asked != stored.asked:
            kept, asked = (", ".join(study.asked) or "none" for study in (stored, self))
            return f"its metrics of parts are {kept}, not {asked}"
        if self.metrics != stored.metrics:
            return f"it was made by Lasthop {stored.version} with other metrics"
        return None


class Store(ABC):
    """The results of one experiment."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is anything in the store."""

    @abstractmethod
    def writing(self, identity: Identity, meta: dict[str, Any]) -> AbstractContextManager[None]:
        """Prepare the store for `add` during a block, with the definition and settings of the experiment."""

    @abstractmethod
    def add(self, chunks: Sequence[tuple[Any, ...]]) -> None:
        """Add runs that are not in the store.

        Parameters
        ----------
        chunks : sequence of tuple
            For each chunk its point, scheme, first run and number of runs, and then cells: why the runs
            ended, and each metric of the experiment.
        """

    @abstractmethod
    def commit(self) -> None:
        """Make the added runs permanent."""

    @abstractmethod
    def numbers(self, point: int, scheme: str) -> RunNumbers:
        """Return the numbers of the runs of a scheme at a point that have all metrics."""

    @abstractmethod
    def stored(self, point: int, scheme: str) -> RunNumbers:
        """Return the numbers of all runs of a scheme at a point, in the order of `columns`."""

    @abstractmethod
    def chunks(
        self, point: int, scheme: str, names: Sequence[str], below: int = ALL
    ) -> Iterator[tuple[Any, ...]]:
        """Yield (first, runs, cells of each column) of the chunks of a scheme at a point, in order.

        The columns are `ended` and metrics, with the cells of `add`; chunks from run `below` on are left out.
        """

    @abstractmethod
    def left_out(self, identity: Identity) -> list[tuple[dict[str, str], str, int]]:
        """Return the stored cells that are not in a study: their parameters, scheme and number of runs."""

    @abstractmethod
    def close(self) -> None:
        """Release the store."""

    def columns(
        self, point: int, scheme: str, names: Sequence[str], below: int
    ) -> list[npt.NDArray[np.int64] | npt.NDArray[np.float64]]:
        """Return metrics of the runs of a scheme at a point, in order, up to run number `below`.

        A metric is an array of integers if it is one in all of these runs, and otherwise of floats, with NaN
        where it does not apply.
        """
        chunks = list(self.chunks(point, scheme, names, below))
        if not chunks:
            return [np.empty(0) for _ in names]
        firsts, runs, *columns = zip(*chunks, strict=True)
        end = sum(runs[:-1]) + min(runs[-1], below - firsts[-1])
        return [decoded(cells, runs)[:end] for cells in columns]

    def ended(self, point: int, scheme: str) -> list[str]:
        """Return why each run of a scheme at a point ended, in order."""
        chunks = self.chunks(point, scheme, ["ended"])
        return [word for _, runs, cells in chunks for word in words(cells, runs)]


class MemoryStore(Store):
    """Results in memory.

    Parameters
    ----------
    metrics : sequence of str
        The metrics of each run.
    """

    def __init__(self, metrics: Sequence[str]) -> None:
        self._places = {name: place for place, name in enumerate(("first", "runs", "ended", *metrics))}
        self._chunks: dict[tuple[int, str], list[tuple[Any, ...]]] = {}

    def exists(self) -> bool:
        """Whether there are any runs."""
        return bool(self._chunks)

    def writing(self, identity: Identity, meta: dict[str, Any]) -> AbstractContextManager[None]:
        """Do nothing: memory is always ready."""
        return nullcontext()

    def add(self, chunks: Sequence[tuple[Any, ...]]) -> None:
        """Add runs."""
        for point, scheme, *chunk in chunks:
            insort(self._chunks.setdefault((point, scheme), []), tuple(chunk), key=itemgetter(0))

    def commit(self) -> None:
        """Do nothing."""

    def numbers(self, point: int, scheme: str) -> RunNumbers:
        """Return the numbers of the runs of a scheme at a point."""
        return RunNumbers((first, first + runs) for first, runs, *_ in self._chunks.get((point, scheme), ()))

    def stored(self, point: int, scheme: str) -> RunNumbers:
        """Return the same: every run has all metrics."""
        return self.numbers(point, scheme)

    def chunks(
        self, point: int, scheme: str, names: Sequence[str], below: int = ALL
    ) -> Iterator[tuple[Any, ...]]:
        """Yield (first, runs, cells of each column) of the chunks of a scheme at a point, in order."""
        columns = itemgetter(0, 1, *(self._places[name] for name in names))
        for chunk in self._chunks.get((point, scheme), ()):
            if chunk[0] < below:
                yield columns(chunk)

    def left_out(self, identity: Identity) -> list[tuple[dict[str, str], str, int]]:
        """Return nothing: a store in memory belongs to one experiment."""
        return []

    def close(self) -> None:
        """Do nothing."""
