"""The scheduler: makes the runs that policies ask for, and stores them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from lasthop._lasthop import Scenario
from lasthop.core.interrupt import interrupts_held
from lasthop.engine.stopping import Progress
from lasthop.results.cells import measured
from lasthop.results.store import Store

SECONDS_BETWEEN_COMMITS = 0.25
MOST_UNCOMMITTED = 1 << 18
"""Collected runs are committed at this number at the latest, to bound their memory."""

SECONDS_TO_LISTEN = 0.1
"""How long to wait for results before checking for Ctrl-C."""


class Executor(Protocol):
    """Executes runs: `lasthop._lasthop.Pool`, or another class with this interface."""

    def submit(self, key: int, scenario: Scenario, scheme: str, seed: int, first_run: int, runs: int) -> None:
        """Enqueue `runs` runs, numbered from `first_run`."""

    def collect(self, timeout_s: float) -> Sequence[tuple[int, int, int, Any, tuple[Any, ...]]]:
        """Wait for results, and return them in chunks: (key, first run, number of runs, ended, metrics).

        `Store.add` defines the last two.
        """

    def cancel(self) -> None:
        """Drop all runs that are enqueued or running."""


class Batch(NamedTuple):
    """Consecutive runs of a scheme at a point, to be made of one scenario."""

    point: int
    scheme: str
    scenario: Scenario
    first: int
    runs: int


class Policy(ABC):
    """What runs next of some schemes and points, and when they stop.

    A policy proceeds from checkpoint to checkpoint: it asks for the runs up to the next one, and decides once
    all of them are stored. So what it decides depends on results alone, and not on the order in which runs
    finish.
    """

    @property
    @abstractmethod
    def stopped(self) -> bool:
        """Whether no more runs are needed."""

    @abstractmethod
    def missing(self) -> Iterable[Batch]:
        """Return the runs that are missing up to the checkpoint, each once."""

    @abstractmethod
    def add(self, point: int, scheme: str, first: int, runs: int) -> None:
        """Note that `runs` runs are made, from number `first` on."""

    @abstractmethod
    def complete(self) -> bool:
        """Whether all runs up to the checkpoint are made."""

    @abstractmethod
    def decide(self) -> None:
        """Stop, or proceed to the next checkpoint. All runs made so far are in the store."""

    @abstractmethod
    def done(self) -> int:
        """Return the number of runs that are made and count."""

    @abstractmethod
    def total(self) -> int:
        """Return the estimated number of runs at the end."""


class Scheduler:
    """Submits the runs that policies ask for, stores their results, and lets policies decide.

    Parameters
    ----------
    store : Store
        The store, open for writing.
    policies : sequence of Policy
        The policies, whose runs are independent of each other.
    seed : int
        The seed of all runs.
    asked : int, default 0
        The number of requested metrics (`Identity.asked`), which are the last ones.

    Attributes
    ----------
    progress : Progress
        The progress of all policies.
    """

    def __init__(self, store: Store, policies: Sequence[Policy], seed: int, asked: int = 0) -> None:
        self._store, self._policies, self._seed, self._asked = store, policies, seed, asked
        # The key of a batch is its index in this list.
        self._cells: list[tuple[Policy, int, str]] = []
        self._keys: dict[tuple[Policy, int, str], int] = {}
        self._chunks: list[tuple[Any, ...]] = []
        self._uncommitted = 0
        self._under_way = 0
        self.progress: Progress = Progress()
        for policy in policies:
            self._decide(policy)
            self.progress.done += policy.done()
            self.progress.expected += policy.total()

    @property
    def finished(self) -> bool:
        """Whether every policy has stopped."""
        return all(policy.stopped for policy in self._policies)

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
                for policy in self._policies:
                    self._advance(policy, executor)
                while self._under_way:
                    for policy in self._receive(executor, SECONDS_TO_LISTEN):
                        if policy.complete():
                            self._advance(policy, executor)
                    now = time.monotonic()
                    if now - committed >= SECONDS_BETWEEN_COMMITS or self._uncommitted >= MOST_UNCOMMITTED:
                        self._commit()
                        committed = now
                    self.progress.seconds = now - began
                    if report is not None:
                        report(self.progress)
                    let_interrupts_through()
            except KeyboardInterrupt:
                # A run that failed meanwhile fails again when the experiment is resumed.
                with suppress(RuntimeError):
                    self._receive(executor, 0.0)
                raise
            finally:
                executor.cancel()
                self._commit()

    def _decide(self, policy: Policy) -> None:
        while not policy.stopped and policy.complete():
            self._flush()
            policy.decide()

    def _advance(self, policy: Policy, executor: Executor) -> None:
        """Let a policy decide if it has reached its checkpoint, and submit what it asks for then."""
        done, total = policy.done(), policy.total()
        self._decide(policy)
        while not policy.stopped and not self._order(policy, executor) and policy.complete():
            self._decide(policy)
        self.progress.done += policy.done() - done
        self.progress.expected += policy.total() - total

    def _order(self, policy: Policy, executor: Executor) -> int:
        """Submit the runs that a policy asks for, and return their number."""
        before = self._under_way
        for point, scheme, scenario, first, runs in policy.missing():
            cell = (policy, point, scheme)
            if cell not in self._keys:
                self._keys[cell] = len(self._cells)
                self._cells.append(cell)
            executor.submit(self._keys[cell], scenario, scheme, self._seed, first, runs)
            self._under_way += runs
        return self._under_way - before

    def _receive(self, executor: Executor, timeout_s: float) -> Iterable[Policy]:
        """Collect results, and return the policies that they belong to."""
        touched: dict[Policy, None] = {}
        for key, first, runs, ended, metrics in executor.collect(timeout_s):
            policy, point, scheme = self._cells[key]
            # The requested metrics are the last ones.
            known = len(metrics) - self._asked
            asked = (measured(cells, runs) for cells in metrics[known:])
            self._chunks.append((point, scheme, first, runs, ended, *metrics[:known], *asked))
            before = policy.done()
            policy.add(point, scheme, first, runs)
            self.progress.done += policy.done() - before
            self._uncommitted += runs
            self._under_way -= runs
            self.progress.made += runs
            touched[policy] = None
        return touched

    def _flush(self) -> None:
        if self._chunks:
            self._store.add(self._chunks)
            self._chunks.clear()

    def _commit(self) -> None:
        self._flush()
        self._store.commit()
        self._uncommitted = 0
