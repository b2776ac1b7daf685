"""The pool of threads that carries out runs."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from lasthop._lasthop import METRICS, Pool, Scenario, ScenarioError
from lasthop.results.cells import decoded, words

LINKS = """
[transfer]
size = "20 KB"
[wired]
rate = "1 Gbps"
delay = "1 ms"
[radio]
rate = "1 Gbps"
[radio.channel.frame-loss]
loss = 0.01
"""
ENDLESS = ["transfer.size=unlimited", "limit=1000000 s"]

Row = tuple[int, int, str, tuple[Any, ...]]


def collected(pool: Pool) -> Iterator[Row]:
    """Yield each run of the chunks that a pool returns."""
    while pool.pending:
        for key, first, runs, ended, metrics in pool.collect(0.2):
            columns = [decoded([cells], [runs]) for cells in metrics]
            for place, how in enumerate(words(ended, runs)):
                yield key, first + place, how, tuple(column[place] for column in columns)


@pytest.fixture
def scenario() -> Scenario:
    return Scenario.parse(LINKS)


@pytest.mark.parametrize("jobs", [1, 2, None])
def test_rows_are_those_of_single_runs(scenario: Scenario, jobs: int | None) -> None:
    with Pool(jobs) as pool:
        pool.submit(5, scenario, "basic", 3, 10, 40)
        pool.submit(key=-6, scenario=scenario, scheme="basic", seed=4, first_run=0, runs=1)
        assert pool.pending == 41
        rows = sorted(collected(pool))
    alone = [(-6, scenario.run(seed=4, run=0))] + [
        (5, scenario.run(seed=3, run=run)) for run in range(10, 50)
    ]
    for (key, run), row in zip(alone, rows, strict=True):
        assert row[:3] == (key, run.run, run.ended)
        expected = [math.nan if value is None else value for value in run.metrics.values()]
        np.testing.assert_array_equal(row[3], expected)
    assert tuple(scenario.run().metrics) == METRICS


def test_values_keep_their_kinds(scenario: Scenario) -> None:
    with Pool(1) as pool:
        pool.submit(0, scenario, "basic", 1, 0, 1)
        ((_, _, _, ended, values),) = pool.collect(60)
    kinds = {name: type(value) for name, value in zip(METRICS, values, strict=True)}
    assert (ended, kinds["finished"], kinds["timeouts"], kinds["goodput"]) == ("finished", bool, int, float)


def test_points_of_a_sweep_are_run_like_scenarios() -> None:
    swept = Scenario.parse(
        LINKS + '[sweep]\ntransfer.size = ["1 KB", "2 KB"]\nradio.channel.frame-loss.loss = [0]'
    )
    assert swept.sweep == {"transfer.size": ["1000 B", "2000 B"], "radio.channel.frame-loss.loss": ["0.0"]}
    points = swept.points()
    assert [point.parameters["transfer.size"] for point in points] == ["1000 B", "2000 B"]
    with Pool() as pool:
        for key, point in enumerate(points):
            pool.submit(key, point.scenario, "basic", 1, 0, 1)
        rows = sorted(collected(pool))
    assert [values[METRICS.index("delivered_bytes")] for *_, values in rows] == [1000, 2000]


def test_cancelling_stops_an_endless_run() -> None:
    endless = Scenario.parse(LINKS, overrides=ENDLESS)
    with Pool(2) as pool:
        pool.submit(1, endless, "basic", 1, 0, 100)
        assert pool.collect(0.2) == []
        begun = time.monotonic()
        pool.cancel()
        assert (pool.pending, pool.collect(60)) == (0, [])
        pool.submit(2, endless, "basic", 1, 0, 100)
    assert time.monotonic() - begun < 0.5


def test_a_closed_pool_refuses_work(scenario: Scenario) -> None:
    with Pool(1) as pool:
        pass
    assert (pool.pending, pool.collect(0)) == (0, [])
    pool.cancel()
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(1, scenario, "basic", 1, 0, 1)


def test_invalid_arguments_are_refused(scenario: Scenario) -> None:
    with pytest.raises(ValueError, match="expected at least 1"):
        Pool(0)
    with Pool(1) as pool:
        with pytest.raises(ScenarioError, match='did you mean "ebsn"'):
            pool.submit(1, scenario, "ebns", 1, 0, 1)
        with pytest.raises(ValueError, match="seconds"):
            pool.collect(-1)
        with pytest.raises(OverflowError):
            pool.submit(1, scenario, "basic", 1, 2**64 - 1, 2)


def test_python_threads_run_while_the_pool_works() -> None:
    with Pool(2) as pool:
        pool.submit(1, Scenario.parse(LINKS, overrides=ENDLESS), "basic", 1, 0, 2)
        counted = 0
        waiting = threading.Thread(target=pool.collect, args=(0.5,))
        waiting.start()
        while waiting.is_alive():
            counted += 1
    assert counted > 1000


def test_ctrl_c_ends_a_single_run() -> None:
    endless = Scenario.parse(LINKS, overrides=ENDLESS)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        endless.run()
    assert time.monotonic() - begun < 3
