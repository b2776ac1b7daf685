"""Samples: the values of a metric over runs, read from the store."""

from __future__ import annotations

import tomllib

import numpy as np

from lasthop.study.error import StudyError
from lasthop.study.quantity import number
from lasthop.study.statistics import Sample, linearised_ratio
from lasthop.study.store import Identity, Store
from lasthop.suggest import unknown

TOTAL = "throughput_total_bps"
"""Total bits over total time: a ratio of sums, where throughput_bps is a mean of ratios."""


class Samples:
    """The values of each metric at each point with each scheme.

    At a point only the runs 0, 1, 2, ... up to the first that a scheme lacks are counted. In an unfinished
    study short runs are stored first; counting them would bias the mean.

    Parameters
    ----------
    store : Store
        The store.
    identity : Identity
        The study in the store.
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
        """Return `metric` if it exists.

        Raises
        ------
        StudyError
            If it does not exist.
        """
        if metric not in self.metrics:
            raise StudyError(unknown("metric", metric, self.metrics))
        return metric

    def of(self, point: int, scheme: str, metric: str, runs: int | None = None) -> Sample:
        """Return a metric of the counted runs, in order; NaN for a run that does not have it.

        Parameters
        ----------
        point : int
            The point's index.
        scheme : str
            The scheme.
        metric : str
            The metric.
        runs : int, optional
            The number of runs to count instead.
        """
        below = self.runs(point) if runs is None else runs
        if metric == TOTAL:
            rows = self._store.values(point, scheme, ("delivered_bytes", "throughput_bps"), below)
            bits, rate = 8.0 * np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
            # A run that delivered nothing lasted until the limit.
            time = np.full(len(rows), self._longest(point))
            np.divide(bits, rate, out=time, where=rate > 0)
            return linearised_ratio(bits, time)
        rows = self._store.values(point, scheme, (metric,), below)
        return np.array([np.nan if value is None else value for (value,) in rows], dtype=np.float64)

    def unfinished(self, point: int, scheme: str) -> int:
        """Return how many of the counted runs did not finish their transfer."""
        rows = self._store.values(point, scheme, ("finished",), self.runs(point))
        return sum(not finished for (finished,) in rows)

    def _longest(self, point: int) -> float:
        """Return the longest time in seconds over which throughput is measured at a point."""
        said = tomllib.loads(self._points[point].toml)
        limit, warmup = number(said["limit"]), number(said["warmup"])
        if "transfer" not in said:
            # Traffic alone.
            return limit - warmup
        usual, named = said["transfer"]["start"], said.get("connection", {})
        starts = [each.get("start", usual) for each in named.values()]
        shape = said["topology"]
        pairs = shape["dumbbell"]["pairs"] if "dumbbell" in shape else 1
        if len(named) < pairs and all(name.isdecimal() for name in named):
            # Pairs without a table of their own start at the usual time.
            starts.append(usual)
        return limit - max(warmup, min(map(number, starts)))
