"""Executors of runs beside `lasthop._lasthop.Pool`: workers of a cluster, and threads that keep traces."""

from __future__ import annotations

import os
import pickle
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from functools import lru_cache
from threading import Event
from types import TracebackType
from typing import Any, NamedTuple, Self

from lasthop import _lasthop
from lasthop._lasthop import METRICS, Run, Scenario
from lasthop.results.error import StudyError

SECONDS_OF_WORK = 1.0
"""How long a work item should take: long beside the overhead of an executor, and short if it is lost."""

FIRST_ITEM = 8
"""The runs of a work item before any has been timed."""

MOST_OF_ITEM = 1 << 14
ITEMS_PER_WORKER = 4
ITEMS_OF_UNKNOWN_WORKERS = 64
"""Work items in flight for an executor that does not tell how many workers it has."""

MOST_TRIES = 3
"""How often a work item is submitted, if the executor loses it: Dask's does, at times, when a worker dies."""

Chunk = tuple[int, int, Any, tuple[Any, ...]]
"""The first run, the number of runs, why they ended, and their metrics, as `Store.add` has them."""


class WorkItem(NamedTuple):
    """Consecutive runs of a scheme at a point, to be pickled.

    Attributes
    ----------
    toml, file, hash : str
        The scenario in the canonical form, its file, and its hash, which the worker checks.
    version : str
        The version of Lasthop, which the worker checks.
    metrics : tuple of str
        The metrics that follow `METRICS` in the results.
    scheme : str
        The scheme.
    seed : int
        The study's seed.
    first, runs : int
        The number of the first run, and how many there are.
    python_schemes : bytes
        The scenario's schemes written in Python, pickled.
    """

    toml: str
    file: str
    hash: str
    version: str
    metrics: tuple[str, ...]
    scheme: str
    seed: int
    first: int
    runs: int
    python_schemes: bytes = pickle.dumps(())


class Flight(NamedTuple):
    """A work item at the executor: the key of its runs, the item, and how often it was submitted."""

    key: int
    item: WorkItem
    tries: int


def make_runs(item: WorkItem) -> tuple[float, list[Chunk]]:
    """Make the runs of a work item; this is what a worker does.

    Returns
    -------
    (float, list of tuple)
        How many seconds it took, and the results.

    Raises
    ------
    StudyError
        If this worker has another version of Lasthop, or other files of the scenario.
    RuntimeError
        If a run failed because of a bug in Lasthop, or of a scheme written in Python.
    """
    began = time.monotonic()
    if item.version != _lasthop.__version__:
        raise StudyError(
            f"a worker has Lasthop {_lasthop.__version__}, and the study {item.version}; "
            "install the same version for all workers"
        )
    scenario = _scenario(item.toml, item.file, item.python_schemes)
    if scenario.hash != item.hash:
        raise StudyError(
            "a worker reads another scenario: the files that it names, and those of its schemes in Python, "
            "must be the same everywhere"
        )
    chunks: list[Chunk] = []
    with _lasthop.Pool(1, item.metrics) as pool:
        pool.submit(0, scenario, item.scheme, item.seed, item.first, item.runs)
        while pool.pending:
            chunks += [chunk[1:] for chunk in pool.collect(1.0)]
    return time.monotonic() - began, chunks


@lru_cache(maxsize=64)
def _scenario(toml: str, file: str, python_schemes: bytes) -> Scenario:
    try:
        schemes = pickle.loads(python_schemes)
    except Exception as error:
        raise StudyError(
            f"a worker cannot import a scheme written in Python: {_said(error)}; its class must be in a "
            "module that all workers can import, and not in a notebook or an interactive session"
        ) from None
    try:
        return Scenario.parse(toml, name=file, python_schemes=schemes)
    except ValueError as error:
        # Its own class cannot be pickled.
        raise StudyError(f"a worker cannot read the scenario: {error}") from None


class ExecutorPool:
    """The interface of `lasthop._lasthop.Pool`, on the workers of an executor.

    The executor stays open. The number of work items in flight is bounded. A lost one is submitted again.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        The executor.
    metrics : sequence of str
        The metrics that follow `METRICS` in the results.
    in_flight : int, optional
        The most work items in flight; by default four for each worker.
    """

    def __init__(self, executor: Executor, metrics: Sequence[str], in_flight: int | None = None) -> None:
        if not isinstance(executor, Executor):
            raise StudyError(
                f"executor: found {type(executor).__name__}, expected a concurrent.futures.Executor, such as "
                "ProcessPoolExecutor(), or client.get_executor(pure=False) of a Dask client"
            )
        self._executor = executor
        self._metrics = tuple(metrics)
        workers = getattr(executor, "_max_workers", None)
        usual = ITEMS_PER_WORKER * workers if isinstance(workers, int) else ITEMS_OF_UNKNOWN_WORKERS
        self._most = in_flight or usual
        self._waiting: deque[tuple[int, WorkItem]] = deque()
        self._flying: dict[Future[tuple[float, list[Chunk]]], Flight] = {}
        self._failure: BaseException | None = None
        self._runs, self._seconds = 0, 0.0

    def submit(self, key: int, scenario: Scenario, scheme: str, seed: int, first_run: int, runs: int) -> None:
        """Enqueue `runs` runs, numbered from `first_run`."""
        try:
            schemes = pickle.dumps(scenario.python_schemes)
        except Exception as error:
            raise StudyError(
                f"a scheme written in Python cannot be sent to the workers of an executor: {_said(error)}; "
                "define its class at the top of a module, or run the study without an executor, on threads"
            ) from None
        about = (scenario.to_toml(), scenario.file, scenario.hash, _lasthop.__version__, self._metrics)
        self._waiting.append((key, WorkItem(*about, scheme, seed, first_run, runs, schemes)))

    def collect(self, timeout_s: float) -> list[tuple[int, int, int, Any, tuple[Any, ...]]]:
        """Wait for results, and return them in chunks: (key, first run, number of runs, ended, metrics).

        Raises
        ------
        StudyError
            If the executor is broken, or has lost a work item `MOST_TRIES` times, once all finished ones are
            collected.
        """
        self._fill()
        if self._failure is not None:
            raise self._failure
        done, _ = wait(self._flying, timeout_s, FIRST_COMPLETED)
        found = []
        for future in done:
            flight = self._flying.pop(future)
            try:
                seconds, chunks = future.result()
            except (StudyError, KeyboardInterrupt) as error:
                self._failure = error
            except BrokenExecutor as error:
                self._failure = _lost(error)
            except RuntimeError as error:  # A run crashed.
                self._failure = error
            except Exception as error:
                if flight.tries < MOST_TRIES:
                    self._fly(flight._replace(tries=flight.tries + 1))
                else:
                    self._failure = _lost(error)
            else:
                found += [(flight.key, *chunk) for chunk in chunks]
                self._seconds += seconds
                self._runs += sum(runs for _, runs, *_ in chunks)
        self._fill()
        if self._failure is not None and not found:
            raise self._failure
        return found

    def cancel(self) -> None:
        """Drop every run that waits or is in flight; a worker finishes the item that it has begun."""
        self._waiting.clear()
        for future in self._flying:
            future.cancel()
        self._flying.clear()

    def _fill(self) -> None:
        """Submit work items of about `SECONDS_OF_WORK` until enough are in flight."""
        while self._failure is None and self._waiting and len(self._flying) < self._most:
            key, item = self._waiting.popleft()
            runs = min(self._next_size(), item.runs)
            if runs < item.runs:
                rest = item._replace(first=item.first + runs, runs=item.runs - runs)
                self._waiting.appendleft((key, rest))
            self._fly(Flight(key, item._replace(runs=runs), tries=1))

    def _fly(self, flight: Flight) -> None:
        try:
            future = self._executor.submit(make_runs, flight.item)
        except RuntimeError as error:  # It is broken, or was shut down.
            self._failure = _lost(error)
        else:
            self._flying[future] = flight

    def _next_size(self) -> int:
        if not self._runs:
            return FIRST_ITEM
        wanted = SECONDS_OF_WORK * self._runs / max(self._seconds, 1e-6)
        return max(1, min(MOST_OF_ITEM, int(wanted)))

    def __enter__(self) -> Self:
        """Return the pool."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Drop what is not done."""
        self.cancel()


class _CancelledError(Exception):
    """Raised within a run to cancel it."""


class TracingPool:
    """The interface of `lasthop._lasthop.Pool`, on threads that keep each run with its traces and series.

    Parameters
    ----------
    jobs : int, optional
        The number of threads, by default one for each core.

    Attributes
    ----------
    runs : dict of str to dict of int to Run
        The collected runs, by scheme and number.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self.runs: dict[str, dict[int, Run]] = {}
        self._threads = ThreadPoolExecutor(jobs or os.cpu_count() or 1)
        self._flying: dict[Future[Run], int] = {}
        self._cancelled = Event()

    def submit(self, key: int, scenario: Scenario, scheme: str, seed: int, first_run: int, runs: int) -> None:
        """Enqueue `runs` runs, numbered from `first_run`."""

        def make(number: int) -> Run:
            return scenario.run(
                scheme, seed=seed, run=number, trace=True, series=True, progress=self._keep_going
            )

        for number in range(first_run, first_run + runs):
            self._flying[self._threads.submit(make, number)] = key

    def collect(self, timeout_s: float) -> list[tuple[int, int, int, Any, tuple[Any, ...]]]:
        """Wait for results, and return them in chunks of one run, with `METRICS`."""
        done, _ = wait(self._flying, timeout_s, FIRST_COMPLETED)
        found = []
        for future in done:
            key, run = self._flying.pop(future), future.result()
            self.runs.setdefault(run.scheme, {})[run.run] = run
            found.append((key, run.run, 1, run.ended, tuple(run.metrics[name] for name in METRICS)))
        return found

    def cancel(self) -> None:
        """Drop all runs that are enqueued or running."""
        self._cancelled.set()
        self._threads.shutdown(cancel_futures=True)
        self._flying.clear()

    def _keep_going(self, _: float) -> None:
        if self._cancelled.is_set():
            raise _CancelledError


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}{f': {error}' if str(error) else ''}"


def _lost(error: BaseException) -> StudyError:
    return StudyError(
        f"the executor has lost work: {_said(error)}; a worker may have been killed, or lacks memory. "
        "Finished runs are kept: run the study again, with a new executor if this one is broken, to go on"
    )
