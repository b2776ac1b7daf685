"""Samples: the values of a metric over runs, read from the store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lasthop._lasthop import Scenario
from lasthop.core.statistics import Sample, linearised_ratio
from lasthop.results.store import Store

TOTAL = "throughput_total_bps"
"""Total bits over total time: a ratio of sums, where throughput_bps is a mean of ratios."""


class Samples:
    """The values of each metric at each point with each scheme.

    Only the runs 0, 1, 2, ... up to the first missing one are counted. In an unfinished study short runs are
    stored first; counting them would bias the mean.

    Parameters
    ----------
    store : Store
        The store.
    scenarios : sequence of Scenario
        The scenario of each point, with its schemes.
    metrics : sequence of str
        The metrics in the store.
    each_scheme : bool, default False
        Whether a scheme's runs count if another scheme of the point lacks them.
    """

    def __init__(
        self, store: Store, scenarios: Sequence[Scenario], metrics: Sequence[str], each_scheme: bool = False
    ) -> None:
        self._store, self._scenarios, self._each_scheme = store, scenarios, each_scheme
        self.metrics: tuple[str, ...] = (*metrics, TOTAL)
        self._runs: dict[int, dict[str, int]] = {}

    def runs(self, point: int, *schemes: str) -> int:
        """Return how many runs count at a point: those that each of `schemes` has."""
        if point not in self._runs:
            prefixes = {
                scheme: self._store.numbers(point, scheme).prefix for scheme in self._scenarios[point].schemes
            }
            if not self._each_scheme:
                prefixes = dict.fromkeys(prefixes, min(prefixes.values(), default=0))
            self._runs[point] = prefixes
        return min(self._runs[point][scheme] for scheme in schemes)

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
        below = self.runs(point, scheme) if runs is None else runs
        if metric == TOTAL:
            delivered, rate = self._store.columns(point, scheme, ("delivered_bytes", "throughput_bps"), below)
            bits = 8.0 * delivered.astype(np.float64)
            # A run that delivered nothing lasted until the limit.
            time = np.full(len(bits), self._scenarios[point].measured_time_s())
            np.divide(bits, rate, out=time, where=rate > 0)
            return linearised_ratio(bits, time)
        (column,) = self._store.columns(point, scheme, (metric,), below)
        return column.astype(np.float64, copy=False)

    def unfinished(self, point: int, scheme: str) -> int:
        """Return how many of the counted runs did not finish their transfer."""
        (finished,) = self._store.columns(point, scheme, ("finished",), self.runs(point, scheme))
        return int(np.count_nonzero(finished == 0))
