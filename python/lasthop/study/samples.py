"""The samples that statistics are made of, out of the store."""

from __future__ import annotations

import tomllib

import numpy as np

from lasthop.study.error import StudyError
from lasthop.study.quantity import number
from lasthop.study.statistics import Sample, linearised_ratio
from lasthop.study.store import Identity, Store
from lasthop.suggest import unknown

TOTAL = "throughput_total_bps"
"""All bits that arrived over all time spent: a ratio of sums, where throughput_bps is a mean of ratios."""


class Samples:
    """The values of each metric at each point with each scheme.

    At a point only the runs 0, 1, 2, ... up to the first that a scheme lacks are counted. While a
    study is under way the quick runs come in first; to count them alone would be to choose by result.

    Parameters
    ----------
    store : Store
        The store.
    identity : Identity
        The study that is in it.
    """

    def __init__(self, store: Store, identity: Identity) -> None:
        self._store = store
        self._points = identity.points
        self.metrics = (*identity.metrics, TOTAL)
        self._runs: dict[int, int] = {}

    def runs(self, point: int) -> int:
        """Return how many runs count at a point."""
        if point not in self._runs:
            have = [self._store.numbers(point, scheme) for scheme in self._points[point].schemes]
            self._runs[point] = min((each.prefix for each in have), default=0)
        return self._runs[point]

    def check(self, metric: str) -> str:
        """Return `metric` if there is one of that name.

        Raises
        ------
        StudyError
            If there is none.
        """
        if metric not in self.metrics:
            raise StudyError(unknown("metric", metric, self.metrics))
        return metric

    def of(self, point: int, scheme: str, metric: str, runs: int | None = None) -> Sample:
        """Return a metric of the runs that count, in their order; NaN for a run that does not have it.

        Parameters
        ----------
        point : int
            The point's index.
        scheme : str
            The scheme.
        metric : str
            The metric.
        runs : int, optional
            Count that many runs instead.
        """
        below = self.runs(point) if runs is None else runs
        if metric == TOTAL:
            rows = self._store.values(point, scheme, ("delivered_bytes", "throughput_bps"), below)
            bits, rate = 8.0 * np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
            # A run in which nothing arrived has waited until its end.
            time = np.full(len(rows), self._longest(point))
            np.divide(bits, rate, out=time, where=rate > 0)
            return linearised_ratio(bits, time)
        rows = self._store.values(point, scheme, (metric,), below)
        return np.array([np.nan if value is None else value for (value,) in rows], dtype=np.float64)

    def unfinished(self, point: int, scheme: str) -> int:
        """Return how many of the runs that count did not finish their transfer."""
        rows = self._store.values(point, scheme, ("finished",), self.runs(point))
        return sum(not finished for (finished,) in rows)

    def _longest(self, point: int) -> float:
        """Return the time in seconds over which a transfer of this point can be measured."""
        said = tomllib.loads(self._points[point].toml)
        usual, named = said["transfer"]["start"], said.get("connection", {})
        starts = [each.get("start", usual) for each in named.values()]
        shape = said["topology"]
        pairs = shape["dumbbell"]["pairs"] if "dumbbell" in shape else 1
        if len(named) < pairs and all(name.isdecimal() for name in named):
            # The others of the shape are there as well.
            starts.append(usual)
        return number(said["limit"]) - max(number(said["warmup"]), min(map(number, starts)))
