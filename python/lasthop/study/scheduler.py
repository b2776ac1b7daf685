"""Orders the runs that a study lacks, and stores them."""

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
"""How long to wait for results before looking whether Ctrl-C was pressed."""


class Executor(Protocol):
    """What makes the runs: `lasthop._lasthop.Pool`, or something else that takes the same orders."""

    def submit(self, key: int, scenario: Scenario, scheme: str, seed: int, first_run: int, runs: int) -> None:
        """Order `runs` runs from number `first_run` on."""

    def collect(self, timeout_s: float) -> Sequence[tuple[int, int, str, tuple[Any, ...]]]:
        """Return (key, run, ended, metrics) for what is done, waiting for it if nothing is."""

    def cancel(self) -> None:
        """Forget what was ordered and is not done."""


class Scheduler:
    """Orders runs, stores what comes back, and decides at each checkpoint whether to go on.

    Parameters
    ----------
    store : Store
        The store, which is being written.
    samples : Samples
        What is in it.
    scenarios : sequence of Scenario
        The points' scenarios.
    seed : int
        The study's seed.
    rule : Rule
        When a point has runs enough.
    metric : str
        The metric that the rule looks at.
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
        """Whether there is nothing left to do."""
        return all(plan.stopped for plan in self._plans)

    def run(self, executor: Executor, report: Callable[[Progress], None] | None) -> None:
        """Make all runs that are missing.

        Whatever ends this, what came back by then is stored.

        Parameters
        ----------
        executor : Executor
            What makes them.
        report : callable, optional
            Is told of the progress several times a second.
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
        """Take every decision that the runs in the store allow."""
        for i in range(len(self._plans)):
            self._decide(i)
        self._count()

    def _decide(self, i: int) -> None:
        plan = self._plans[i]
        while not plan.stopped and plan.complete():
            plan.decide(self._estimates(i))

    def _estimates(self, i: int) -> list[Estimate]:
        """Estimate the metric of each scheme from the runs up to the point's target."""
        # What the rule looks at is what the store holds.
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
        """Take what is done; go on with each point that has thereby come to its checkpoint."""
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
