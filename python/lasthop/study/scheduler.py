"""Schedules the missing runs of a study and stores their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from lasthop._lasthop import Scenario
from lasthop.study.interrupt import interrupts_held
from lasthop.study.plan import PointPlan, Progress, Rule
from lasthop.study.samples import Samples
from lasthop.study.statistics import Estimate, estimate
from lasthop.study.store import Store

SECONDS_BETWEEN_COMMITS = 0.25
SECONDS_TO_LISTEN = 0.1
"""How long to wait for results before checking for Ctrl-C."""


class Executor(Protocol):
    """Executes runs: `lasthop._lasthop.Pool`, or another class with this interface."""

    def submit(self, key: int, scenario: Scenario, scheme: str, seed: int, first_run: int, runs: int) -> None:
        """Enqueue `runs` runs, numbered from `first_run`."""

    def collect(self, timeout_s: float) -> Sequence[tuple[int, int, str, tuple[Any, ...]]]:
        """Wait for results, and return (key, run, ended, metrics) of each finished run."""

    def cancel(self) -> None:
        """Drop every run that is enqueued or running."""


class Scheduler:
    """Submits runs, stores their results, and applies the stopping rule at each checkpoint.

    Parameters
    ----------
    store : Store
        The store, open for writing.
    samples : Samples
        The samples in it.
    scenarios : sequence of Scenario
        The points' scenarios.
    seed : int
        The study's seed.
    rule : Rule
        The stopping rule of one grid point.
    metric : str
        The metric that the rule is applied to.
    """

    def __init__(
        self,
        store: Store,
        samples: Samples,
        scenarios: Sequence[Scenario],
        seed: int,
        rule: Rule,
        metric: str,
    ) -> None:
        self._store, self._samples, self._scenarios = store, samples, scenarios
        self._seed, self._metric = seed, metric
        self._plans = [
            PointPlan(rule, [store.numbers(i, scheme) for scheme in scenario.schemes])
            for i, scenario in enumerate(scenarios)
        ]
        self._cells = [(i, s) for i, plan in enumerate(self._plans) for s in range(len(plan.have))]
        self._keys = {cell: key for key, cell in enumerate(self._cells)}
        self._rows: list[tuple[Any, ...]] = []
        self._under_way = 0
        self.progress = Progress()
        self._settle()

    @property
    def finished(self) -> bool:
        """Whether every point has stopped."""
        return all(plan.stopped for plan in self._plans)

    def run(self, executor: Executor, report: Callable[[Progress], None] | None) -> None:
        """Make all missing runs. The results collected by then are stored even if this fails.

        Parameters
        ----------
        executor : Executor
            Executes the runs.
        report : callable, optional
            Called with the progress several times a second.
        """
        began = committed = time.monotonic()
        with interrupts_held() as let_interrupts_through:
            try:
                for i in range(len(self._plans)):
                    self._order(i, executor)
                while self._under_way:
                    self._take(executor, SECONDS_TO_LISTEN)
                    now = time.monotonic()
                    if now - committed >= SECONDS_BETWEEN_COMMITS:
                        self._commit()
                        committed = now
                    self.progress.seconds = now - began
                    if report is not None:
                        report(self.progress)
                    let_interrupts_through()
            finally:
                executor.cancel()
                self._commit()

    def _settle(self) -> None:
        """Apply the stopping rule to the runs in the store."""
        for i in range(len(self._plans)):
            self._decide(i)
        self._count()

    def _decide(self, i: int) -> None:
        plan = self._plans[i]
        while not plan.stopped and plan.complete():
            plan.decide(self._estimates(i))

    def _estimates(self, i: int) -> list[Estimate]:
        """Estimate the metric of each scheme from the runs up to the point's target."""
        # The samples are read from the store.
        self._flush()
        found = []
        for scheme in self._scenarios[i].schemes:
            sample = self._samples.of(i, scheme, self._metric, self._plans[i].target)
            found.append(estimate(sample[~np.isnan(sample)], self._seed))
        return found

    def _order(self, i: int, executor: Executor) -> None:
        if self._plans[i].stopped:
            return
        scenario = self._scenarios[i]
        for scheme, first, runs in self._plans[i].missing():
            key = self._keys[i, scheme]
            executor.submit(key, scenario, scenario.schemes[scheme], self._seed, first, runs)
            self._under_way += runs

    def _take(self, executor: Executor, timeout_s: float) -> None:
        """Collect results, and apply the stopping rule to each point that reaches its checkpoint."""
        touched = set()
        for key, run, ended, metrics in executor.collect(timeout_s):
            i, scheme = self._cells[key]
            self._rows.append((i, self._scenarios[i].schemes[scheme], run, ended, *metrics))
            self._plans[i].have[scheme].add(run)
            self._under_way -= 1
            self.progress.made += 1
            touched.add(i)
        for i in sorted(touched):
            if self._plans[i].complete():
                self._decide(i)
                self._order(i, executor)
        self._count()

    def _count(self) -> None:
        plans = self._plans
        self.progress.done = sum(plan.done() for plan in plans)
        self.progress.expected = sum(plan.expected * len(plan.have) for plan in plans)

    def _flush(self) -> None:
        self._store.add(self._rows)
        self._rows.clear()

    def _commit(self) -> None:
        self._flush()
        self._store.commit()
