"""Access to the runs of a paper's experiments for figures and claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lasthop._lasthop import Point, Run, Scenario
from lasthop.core.statistics import Estimate, Sample
from lasthop.core.units import metric_kind
from lasthop.papers.verdicts import Measured, ratio, share_of
from lasthop.results.samples import Samples
from lasthop.study import Study

At = Mapping[str, str]
"""A grid point: values by the short names of the axes."""


class Sweep:
    """The finished study of one experiment.

    Parameters
    ----------
    study : Study
        The study.
    axes : mapping of str to str
        The swept settings by their short names.
    metrics : mapping of str to str, optional
        Metrics that readings put in place of others.
    """

    def __init__(
        self, study: Study, axes: Mapping[str, str], metrics: Mapping[str, str] | None = None
    ) -> None:
        self.study = study
        self.axes = axes
        self.metrics: Mapping[str, str] = metrics or {}

    @cached_property
    def _samples(self) -> Samples:
        return self.study.samples()

    @cached_property
    def _index_by_values(self) -> dict[tuple[str, ...], int]:
        return {
            tuple(point.parameters[path] for path in self.axes.values()): place
            for place, point in enumerate(self.study.points)
        }

    @cached_property
    def _scenarios(self) -> list[Point]:
        return self.study.scenario.points()

    @property
    def schemes(self) -> list[str]:
        """The schemes."""
        return self.study.scenario.schemes

    def values(self, axis: str) -> list[str]:
        """Return the values of an axis, in order."""
        seen = dict.fromkeys(point.parameters[self.axes[axis]] for point in self.study.points)
        return list(seen)

    def settings(self, axis: str) -> dict[str, Any]:
        """Return the settings of an axis as the scenarios have them, by the values."""
        path = self.axes[axis]
        # The last of each value: reading a scenario takes longer than passing over one.
        last = {point.parameters[path]: point.scenario for point in self._scenarios}
        return {value: scenario[path] for value, scenario in last.items()}

    def points(self) -> list[dict[str, str]]:
        """Return every point, by the short names of the axes."""
        return [
            {short: point.parameters[path] for short, path in self.axes.items()}
            for point in self.study.points
        ]

    def sample(self, metric: str, scheme: str, at: At) -> Sample:
        """Return a metric of all runs of a scheme at a point, in order; NaN for runs without the metric."""
        return self._samples.of(self._index(at), scheme, self.metrics.get(metric, metric))

    def runs(self, scheme: str, at: At) -> int:
        """Return the number of runs of a scheme at a point."""
        return self._samples.runs(self._index(at), scheme)

    def _index(self, at: At) -> int:
        return self._index_by_values[tuple(at[short] for short in self.axes)]

    def mean(self, metric: str, scheme: str, at: At) -> Estimate:
        """Estimate the mean of a metric."""
        return self.quantity(metric, scheme, at).at()

    def quantity(self, metric: str, scheme: str, at: At) -> Measured:
        """Return the mean of a metric over the runs that have it."""
        sample = self.sample(metric, scheme, at)
        return Measured(sample[~np.isnan(sample)], metric_kind(self.metrics.get(metric, metric)))

    def nonzero_runs(self, metric: str, scheme: str, at: At) -> npt.NDArray[np.bool_]:
        """Return whether the metric is nonzero, for each run that has it."""
        sample = self.sample(metric, scheme, at)
        return np.asarray(sample[~np.isnan(sample)] != 0)

    def ratio(self, metric: str, ours: tuple[str, At], theirs: tuple[str, At]) -> Measured:
        """Return the ratio of a metric at two (scheme, point) over paired runs.

        Runs with the same number have the same fades.
        """
        return ratio(self.sample(metric, *ours), self.sample(metric, *theirs))


class Evidence:
    """All runs of a paper.

    Parameters
    ----------
    sweeps : mapping of str to Sweep
        The studies, by experiment.
    traced : mapping of str to mapping of str to sequence of Run
        The runs with traces, by experiment and scheme.
    scenarios : mapping of str to Scenario
        The scenarios, by experiment.
    """

    def __init__(
        self,
        sweeps: Mapping[str, Sweep],
        traced: Mapping[str, Mapping[str, Sequence[Run]]],
        scenarios: Mapping[str, Scenario],
    ) -> None:
        self.sweeps = sweeps
        self.traced = traced
        self.scenarios = scenarios

    def sweep(self, experiment: str) -> Sweep:
        """Return the study of an experiment."""
        return self.sweeps[experiment]

    def ratio(self, metric: str, ours: tuple[str, str, At], theirs: tuple[str, str, At]) -> Measured:
        """Return the ratio of a metric at two (experiment, scheme, point) over paired runs.

        Runs with the same number have the same fades if the experiments share seed and channel.
        """
        over, under = (self.sweep(name).sample(metric, scheme, at) for name, scheme, at in (ours, theirs))
        return ratio(over, under)

    def traces(self, experiment: str) -> Mapping[str, Run]:
        """Return the first traced run of each scheme, for figures."""
        return {scheme: self.runs(experiment, scheme)[0] for scheme in self.traced[experiment]}

    def typical(self, experiment: str, scheme: str, metric: str = "throughput_bps") -> Run:
        """Return the traced run of a scheme with the median of a metric, the lower of two."""
        runs = sorted(self.runs(experiment, scheme), key=lambda run: float(run.metrics[metric]))
        return runs[(len(runs) - 1) // 2]

    def over_runs(self, experiment: str, scheme: str, of: Callable[[Run], float]) -> Estimate:
        """Estimate the mean of a function of each traced run of a scheme."""
        return self.quantity(experiment, scheme, of).at()

    def quantity(self, experiment: str, scheme: str, of: Callable[[Run], float]) -> Measured:
        """Return the mean of a function of each traced run of a scheme."""
        return Measured(np.asarray([of(run) for run in self.runs(experiment, scheme)], dtype=np.float64))

    def share(self, experiment: str, scheme: str, predicate: Callable[[Run], bool]) -> Measured:
        """Return the share of a scheme's traced runs that satisfy a predicate."""
        return share_of([predicate(run) for run in self.runs(experiment, scheme)])

    def runs(self, experiment: str, scheme: str) -> Sequence[Run]:
        """Return all traced runs of a scheme."""
        return self.traced[experiment][scheme]

    def values(self, experiment: str, scheme: str, metric: str) -> Sample:
        """Return a metric of each run of an experiment without axes; NaN for runs without it."""
        return self.sweeps[experiment].sample(metric, scheme, {})

    def measured(self, experiment: str, scheme: str, metric: str) -> Measured:
        """Return the mean of a metric, as in `values`, over the runs that have it."""
        found = self.values(experiment, scheme, metric)
        return Measured(found[~np.isnan(found)], metric_kind(metric))

    def scenario(self, experiment: str) -> Scenario:
        """Return the scenario of an experiment."""
        return self.scenarios[experiment]


def along(sweep: Sweep, axis: str, at: At, metric: str, scheme: str) -> list[Estimate]:
    """Estimate a metric at each value of an axis, with the other axes at `at`."""
    return [sweep.mean(metric, scheme, {**at, axis: value}) for value in sweep.values(axis)]


def total(sweep: Sweep, metric: str, scheme: str) -> tuple[float, int, int]:
    """Return the sum of a metric, the number of runs with a nonzero value, and the number of all runs.

    All points have the same weight, whatever their number of runs.
    """
    samples: Sequence[Sample] = [sweep.sample(metric, scheme, at) for at in sweep.points()]
    runs = sum(map(len, samples))
    amount = sum(float(np.nansum(sample)) * (runs / len(samples) / len(sample)) for sample in samples)
    return amount, sum(int(np.count_nonzero(np.nan_to_num(sample))) for sample in samples), runs
