"""Studies on executors: the same bytes, bounded work in flight, and workers that are killed."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections.abc import Container, Iterator
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from lasthop import Scenario, _lasthop
from lasthop.engine.executors import FIRST_ITEM, WorkItem, make_runs
from lasthop.study import Progress, Study, StudyError

BASE = (ROOT / "scenarios/ebsn-wide-area.toml").read_text()
SWEEP = '\n[sweep]\ntcp.packet_size = ["576 B", "1536 B"]\n'
SCENARIO = Scenario.parse(BASE + SWEEP, overrides=['schemes=["basic", "ebsn"]'])


def study(store: Path | None = None, runs: tuple[int, int] = (20, 60)) -> Study:
    return Study(SCENARIO, precision=0.1, runs=runs, store=store)


def csv(study: Study, directory: Path) -> bytes:
    return study.to_csv(directory / "runs.csv").read_bytes()


def processes(workers: int = 2) -> ProcessPoolExecutor:
    """Return new processes, which know nothing of this one."""
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the runs of the study that one thread makes."""
    one = study()
    one.run(jobs=1)
    return csv(one, tmp_path_factory.mktemp("one"))


class Watched(Executor):
    """Counts the work items in flight, and may fail at some submissions, counted from one."""

    def __init__(
        self, workers: int, fails_at: Container[int] = (), error: type[BaseException] = OSError
    ) -> None:
        self._inner = ThreadPoolExecutor(workers)
        self._fails_at, self._error = fails_at, error
        self.flying = self.most = self.items = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.items += 1
        self.flying += 1
        self.most = max(self.most, self.flying)
        # What is submitted must go through a pipe.
        fn, args = pickle.loads(pickle.dumps((fn, args)))
        if self.items in self._fails_at:
            future: Future[Any] = Future()
            future.set_exception(self._error("the network is down"))
        else:
            future = self._inner.submit(fn, *args, **kwargs)
        future.add_done_callback(self._landed)
        return future

    def _landed(self, future: Future[Any]) -> None:
        self.flying -= 1

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._inner.shutdown(wait, cancel_futures=cancel_futures)


def items(study: Study) -> Iterator[WorkItem]:
    for point in study.points:
        counters = point_counters(point.toml)
        about = (point.toml, "<string>", point.hash, _lasthop.__version__, counters)
        yield WorkItem(*about, "ebsn", 1, 3, 5)


def point_counters(toml: str) -> tuple[str, ...]:
    return Scenario.parse(toml).metrics[len(_lasthop.METRICS) :]


def test_processes_give_the_bytes_of_one_thread(tmp_path: Path, expected: bytes) -> None:
    with processes() as executor, study(tmp_path / "study.sqlite") as spread:
        assert spread.run(executor=executor) > 0
        assert spread.finished
        assert csv(spread, tmp_path) == expected
        assert spread.run(executor=executor) == 0
        # The executor is the caller's, and stays open.
        assert executor.submit(abs, -1).result() == 1


def test_a_killed_worker_costs_no_run_that_is_finished(tmp_path: Path, expected: bytes) -> None:
    path = tmp_path / "study.sqlite"
    killed: list[int] = []
    with processes() as executor, study(path) as spread:

        def kill(now: Progress) -> None:
            if now.made and not killed:
                killed.extend(executor._processes)
                os.kill(killed[0], signal.SIGKILL)

        # Few work items in flight, so that some are left when the worker dies.
        with pytest.raises(StudyError, match=r"the executor has lost work: BrokenProcessPool.*new executor"):
            spread.run(jobs=2, executor=executor, progress=kill)
    with study(path) as resumed, processes() as executor:
        kept = resumed.progress.done
        assert kept > 0
        assert not resumed.finished
        made = resumed.run(executor=executor)
        assert kept + made == len(resumed.to_pandas())
        assert csv(resumed, tmp_path) == expected


def test_dask_gives_the_work_of_a_killed_worker_to_another(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    runs = (1000, 1000)
    with study(runs=runs) as one:
        one.run()
        expected = csv(one, tmp_path)
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**settings) as cluster,
        distributed.Client(cluster) as client,
        study(runs=runs) as spread,
    ):
        killed: list[int] = []

        def kill(now: Progress) -> None:
            if now.made and not killed:
                killed.extend(client.run(os.getpid).values())
                os.kill(killed[0], signal.SIGKILL)

        executor = client.get_executor(pure=False, retries=2)
        assert spread.run(executor=executor, progress=kill) == 4000
        assert killed
        assert csv(spread, tmp_path) == expected


@pytest.mark.parametrize("in_flight", [1, 3, None])
def test_work_in_flight_is_bounded(tmp_path: Path, expected: bytes, in_flight: int | None) -> None:
    with Watched(2) as executor:
        spread = study()
        spread.run(jobs=in_flight, executor=executor)
        assert csv(spread, tmp_path) == expected
    assert executor.items > 4
    assert executor.most <= (in_flight or 64)


@pytest.mark.parametrize("error", [OSError, TimeoutError, KeyboardInterrupt])
def test_what_is_finished_is_kept_when_the_executor_fails(
    tmp_path: Path, expected: bytes, error: type[BaseException]
) -> None:
    path = tmp_path / "study.sqlite"
    with study(path) as spread, Watched(1, fails_at=range(4, 10**9), error=error) as executor:
        raised = KeyboardInterrupt if error is KeyboardInterrupt else StudyError
        with pytest.raises(raised, match="the network is down"):
            spread.run(jobs=1, executor=executor)
        assert len(spread.to_pandas()) > 0
        spread.run()
        assert csv(spread, tmp_path) == expected


@pytest.mark.parametrize(("lost", "enough"), [((4, 5), True), ((4, 5, 6), False)])
@pytest.mark.parametrize("error", [OSError, CancelledError, ValueError])
def test_work_that_the_executor_loses_is_submitted_three_times(
    tmp_path: Path, expected: bytes, lost: tuple[int, ...], enough: bool, error: type[BaseException]
) -> None:
    # One in flight, so that what is submitted after a loss is the lost item.
    with study() as spread, Watched(1, fails_at=lost, error=error) as executor:
        if enough:
            spread.run(jobs=1, executor=executor)
        else:
            with pytest.raises(StudyError, match=f"lost work: {error.__name__}: the network is down"):
                spread.run(jobs=1, executor=executor)
            assert executor.items == 6
            spread.run(jobs=1, executor=executor)
        assert csv(spread, tmp_path) == expected


class Immediate(Executor):
    """Does work when it is submitted, but for the second item, which is lost as often as it comes."""

    items = 0
    lost: Any = None

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.items += 1
        future: Future[Any] = Future()
        if self.items == 2:
            self.lost = args
        if args == self.lost:
            future.cancel()
            future.set_running_or_notify_cancel()
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_what_is_finished_beside_lost_work_is_kept() -> None:
    with study(runs=(3 * FIRST_ITEM, 60)) as spread:
        with pytest.raises(StudyError, match="lost work: CancelledError; a worker may"):
            spread.run(jobs=4, executor=Immediate())
        assert len(spread.to_pandas()) >= 3 * FIRST_ITEM


def test_an_executor_that_was_shut_down_is_named(tmp_path: Path) -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with study(tmp_path / "study.sqlite") as spread, pytest.raises(StudyError, match="after shutdown"):
        spread.run(executor=executor)
    with study() as spread, pytest.raises(StudyError, match=r"found int, expected a concurrent\.futures"):
        spread.run(executor=3)  # type: ignore[arg-type]


def test_a_worker_refuses_other_versions_and_other_files() -> None:
    item = next(items(study()))
    seconds, chunks = make_runs(item)
    assert seconds > 0
    assert sorted(n for first, runs, *_ in chunks for n in range(first, first + runs)) == [3, 4, 5, 6, 7]
    with pytest.raises(StudyError, match=r"a worker has Lasthop .*, and the study 9\.0; install the same"):
        make_runs(item._replace(version="9.0"))
    with pytest.raises(StudyError, match="reads another scenario"):
        make_runs(item._replace(hash="0"))
    with pytest.raises(StudyError, match="a worker cannot read the scenario"):
        make_runs(item._replace(toml="[nothing]"))
