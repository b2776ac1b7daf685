"""Replications of experiments without axes; stored in a file unless they have traces."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Event

from lasthop._lasthop import Scenario
from lasthop.core.statistics import estimate
from lasthop.core.units import metric_kind
from lasthop.engine.stopping import Rule
from lasthop.papers.run_store import Measured, RunStore, StoredRun, values
from lasthop.study import Progress


class _StoppedError(Exception):
    """Raised within a run to cancel it."""


def make_runs(
    scenario: Scenario,
    traced: bool,
    rule: Rule,
    seed: int,
    first: int,
    jobs: int | None,
    report: Callable[[Progress], None],
    path: Path | None = None,
) -> dict[str, list[Measured]]:
    """Make runs of each scheme until the stopping rule is satisfied.

    Parameters
    ----------
    scenario : Scenario
        The scenario.
    traced : bool
        Whether the runs have traces and series.
    rule : Rule
        The stopping rule of each scheme.
    seed, first : int
        The seed, and the number of the first run.
    jobs : int, optional
        The number of threads, by default one per core. Results do not depend on it.
    report : callable
        Called with the progress after each run.
    path : Path, optional
        The file for runs without traces, from which they are reused.

    Returns
    -------
    dict of str to list of Run or StoredRun
        The runs of each scheme, in order: runs if traced, otherwise stored runs.
    """
    made: dict[str, list[Measured]] = {scheme: [] for scheme in scenario.schemes}
    stopping = Event()

    def keep_going(_: float) -> None:
        if stopping.is_set():
            raise _StoppedError

    def make(scheme: str, number: int) -> Measured:
        if number in stored:
            return stored[number]
        run = scenario.run(scheme, seed=seed, run=number, trace=traced, series=traced, progress=keep_going)
        return run if traced else StoredRun.of(run)

    began = time.monotonic()
    progress = Progress(expected=next(rule.checkpoints()) * len(made))
    with closing(RunStore(None if traced else path, scenario, seed)) as store:
        pool = ThreadPoolExecutor(jobs or os.cpu_count() or 1)
        try:
            for scheme, runs in made.items():
                stored = store.load(scheme)
                for checkpoint in rule.checkpoints():
                    # The runs up to the first checkpoint are already counted in `expected`.
                    progress.expected += checkpoint - len(runs) if runs else 0
                    numbers = range(first + len(runs), first + checkpoint)
                    for run in pool.map(partial(make, scheme), numbers):
                        runs.append(run)
                        progress.done += 1
                        if run.run not in stored:
                            if isinstance(run, StoredRun):
                                store.add([run])
                            progress.made += 1
                        progress.seconds = time.monotonic() - began
                        report(progress)
                    found = [
                        estimate(values(runs, target.metric), metric_kind(target.metric))
                        for target in rule.targets
                    ]
                    excesses = [target.excess(each) for target, each in zip(rule.targets, found, strict=True)]
                    if rule.satisfied(excesses):
                        break
        finally:
            stopping.set()
            pool.shutdown(cancel_futures=True)
    return made
