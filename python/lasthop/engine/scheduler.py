"""Schedules the missing runs of a study and stores their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from lasthop._lasthop import Scenario
from lasthop.core.interrupt import interrupts_held
from lasthop.core.statistics import estimate
from lasthop.core.units import metric_kind
from lasthop.engine.shards import Shard
from lasthop.engine.stopping import Progress, Rule
from lasthop.results.samples import TOTAL, Samples
from lasthop.results.store import Store, measured
from lasthop.study.points import PointPlan

SECONDS_BETWEEN_COMMITS = 0.25
MOST_UNCOMMITTED = 1 << 18
"""Collected runs are committed at this number at the latest, to bound their memory."""

SECONDS_TO_LISTEN = 0.1
"""How long to wait for results before checking for Ctrl-C."""


class Executor(Protocol):
    """Executes runs: `lasthop._lasthop.Pool`, or another class with this interface."""

    def submit(self, key: int, scenario: Scenario, scheme: str, seed: int, first_run: int, runs: int) -> None:
        """Enqueue `runs` runs, numbered from `first_run`."""

    def collect_chunks(self, timeout_s: float) -> Sequence[tuple[int, int, int, Any, tuple[Any, ...]]]:
        """Wait for results, and return them in chunks: (key, first run, number of runs, ended, metrics).

        `Store.add` defines the last two.
        """

    def cancel(self) -> None:
        """Drop all runs that are enqueued or running."""


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
    each_scheme : bool
        Whether the schemes of a point stop independently of each other.
    shard : Shard, optional
        The shard to execute: its share of `rule.most` runs. Rules of shards have no targets.
    asked : int, default 0
        The number of requested metrics (`Identity.asked`), which are the last ones.
    """

    def __init__(
        self,
        store: Store,
        samples: Samples,
        scenarios: Sequence[Scenario],
        seed: int,
        rule: Rule,
        each_scheme: bool,
        shard: Shard | None = None,
        asked: int = 0,
    ) -> None:
        self._asked = asked
        self._store, self._samples, self._scenarios = store, samples, scenarios
        self._seed, self._rule = seed, rule
        self._plans: list[PointPlan] = []
        for i, scenario in enumerate(scenarios):
            share = None if shard is None else shard.share(i, rule.most)
            together = [[scheme] for scheme in scenario.schemes] if each_scheme else [scenario.schemes]
            for schemes in together:
                have = {scheme: store.numbers(i, scheme) for scheme in schemes}
                self._plans.append(PointPlan(rule, i, have, share))
        # The key of a batch is its index in this list.
        self._cells = [(plan, scheme) for plan in self._plans for scheme in plan.schemes]
        self._keys = {(plan.point, scheme): key for key, (plan, scheme) in enumerate(self._cells)}
        self._chunks: list[tuple[Any, ...]] = []
        self._uncommitted = 0
        self._under_way = 0
        self.progress: Progress = Progress()
        for plan in self._plans:
            self._decide(plan)
            self.progress.done += plan.done()
            self.progress.expected += plan.total()

    @property
    def finished(self) -> bool:
        """Whether every point has stopped."""
        return all(plan.stopped for plan in self._plans)

    def run(self, executor: Executor, report: Callable[[Progress], None] | None) -> None:
        """Execute all missing runs. Finished runs are stored even if this fails or is interrupted.

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
                for plan in self._plans:
                    self._order(plan, executor)
                while self._under_way:
                    self._take(executor, SECONDS_TO_LISTEN)
                    now = time.monotonic()
                    if now - committed >= SECONDS_BETWEEN_COMMITS or self._uncommitted >= MOST_UNCOMMITTED:
                        self._commit()
                        committed = now
                    self.progress.seconds = now - began
                    if report is not None:
                        report(self.progress)
                    let_interrupts_through()
            except KeyboardInterrupt:
                # A run that failed meanwhile fails again when the study is resumed.
                with suppress(RuntimeError):
                    self._receive(executor, 0.0)
                raise
            finally:
                executor.cancel()
                self._commit()

    def _decide(self, plan: PointPlan) -> None:
        while not plan.stopped and plan.complete():
            plan.decide(self._excesses(plan))

    def _excesses(self, plan: PointPlan) -> list[float]:
        """Return the excess width of each scheme's intervals over the target precision."""
        if not self._rule.targets:
            return []
        # The samples are read from the store.
        self._flush()
        found = []
        for scheme in plan.schemes:
            for target in self._rule.targets:
                sample = self._samples.of(plan.point, scheme, target.metric, plan.target)
                known = sample[~np.isnan(sample)]
                # A scheme without this counter, or a point without this connection, never has the mean.
                if len(known) or self._has(plan.point, scheme, target.metric):
                    found.append(target.excess(estimate(known, metric_kind(target.metric))))
        return found

    def _has(self, point: int, scheme: str, metric: str) -> bool:
        """Whether the runs of a scheme at a point have a metric, which may be null."""
        return metric == TOTAL or self._scenarios[point].has_metric(metric, scheme)

    def _order(self, plan: PointPlan, executor: Executor) -> None:
        if plan.stopped:
            return
        scenario = self._scenarios[plan.point]
        for scheme, first, runs in plan.missing():
            executor.submit(self._keys[plan.point, scheme], scenario, scheme, self._seed, first, runs)
            self._under_way += runs

    def _receive(self, executor: Executor, timeout_s: float) -> Iterable[PointPlan]:
        """Collect results, and return the plans that they belong to."""
        touched: dict[PointPlan, None] = {}
        for key, first, runs, ended, metrics in executor.collect_chunks(timeout_s):
            plan, scheme = self._cells[key]
            before = plan.done()
            # The requested metrics are the last ones.
            known = len(metrics) - self._asked
            asked = (measured(cells, runs) for cells in metrics[known:])
            self._chunks.append((plan.point, scheme, first, runs, ended, *metrics[:known], *asked))
            plan.add(scheme, first, runs)
            self._uncommitted += runs
            self._under_way -= runs
            self.progress.made += runs
            self.progress.done += plan.done() - before
            touched[plan] = None
        return touched

    def _take(self, executor: Executor, timeout_s: float) -> None:
        """Collect results, and apply the stopping rule wherever a checkpoint is reached."""
        for plan in self._receive(executor, timeout_s):
            if plan.complete():
                done, total = plan.done(), plan.total()
                self._decide(plan)
                self.progress.done += plan.done() - done
                self.progress.expected += plan.total() - total
                self._order(plan, executor)

    def _flush(self) -> None:
        self._store.add(self._chunks)
        self._chunks.clear()

    def _commit(self) -> None:
        self._flush()
        self._store.commit()
        self._uncommitted = 0
