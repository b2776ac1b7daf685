"""A scenario, the grid that it is swept over, and as many runs of each point as an answer needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from lasthop import _lasthop, api
from lasthop._lasthop import Scenario
from lasthop.study import export, statistics, tables
from lasthop.study.error import StudyError
from lasthop.study.plan import MOST_RUNS, Progress, Rule
from lasthop.study.samples import Samples
from lasthop.study.scheduler import Scheduler
from lasthop.study.store import Identity, Store, StoredPoint
from lasthop.suggest import unknown

if TYPE_CHECKING:
    import pandas


class Study:
    """A study: scenario x parameters x schemes x runs, kept in one file.

    A study's results depend on its scenario, its seed and its rule for stopping, and on nothing else:
    not on the number of threads, and not on how often it was interrupted.

    Parameters
    ----------
    scenario : Scenario, str or Path
        The scenario, with its sweep if it has one; or the file that it is in.
    seed : int, default 1
        The study's seed.
    precision : float or None, default 0.02
        A point is done when half the 95 % interval of every scheme is at most this part of the mean.
        None to make the most runs in any case.
    runs : (int, int), default (10, 1000)
        The fewest and the most runs of each scheme at each point; no more than a million.
    metric : str, default "throughput_bps"
        The metric that `precision` is about, and that tables show if none is named.
    store : str or Path, optional
        The file. If it holds this study already, this goes on with it. By default the results are kept
        in memory.

    Attributes
    ----------
    scenario : Scenario
        The scenario.
    rule : Rule
        When a point is done.
    metric : str
        The metric.
    path : Path or None
        The file.

    Raises
    ------
    StudyError
        If the file holds another study, or something else; or if there is no such metric.
    ScenarioError
        If the scenario is wrong, or a point of its sweep is.

    Examples
    --------
    >>> import lasthop
    >>> from lasthop.study import Study
    >>> scenario = lasthop.load("scenarios/ebsn-wide-area.toml", ['schemes=["basic", "ebsn"]'])
    >>> study = Study(scenario, runs=(10, 10))
    >>> study.run()
    20
    >>> study.run()
    0
    >>> study.summary()[["scheme", "n", "method"]].values.tolist()
    [['basic', 10, 't'], ['ebsn', 10, 't']]
    >>> bool(study.compare("basic")["significant"].iloc[0])
    True
    """

    def __init__(
        self,
        scenario: Scenario | str | Path,
        *,
        seed: int = 1,
        precision: float | None = 0.02,
        runs: tuple[int, int] = (10, 1000),
        metric: str = "throughput_bps",
        store: str | Path | None = None,
    ) -> None:
        self.scenario = scenario if isinstance(scenario, Scenario) else api.load(scenario)
        self.rule = _rule(precision, runs)
        self.path = None if store is None else Path(store)
        points = self.scenario.points()
        self._scenarios = [point.scenario for point in points]
        self._identity = Identity(
            version=_lasthop.__version__,
            seed=seed,
            metrics=_lasthop.METRICS,
            points=[
                StoredPoint(
                    dict(point.parameters),
                    point.scenario.schemes,
                    point.scenario.hash,
                    point.scenario.to_toml(),
                )
                for point in points
            ],
        )
        self._store = Store(self.path)
        if self._store.exists():
            self._store.expect(self._identity)
        self.metric = Samples(self._store, self._identity).check(metric)

    @classmethod
    def open(cls, path: str | Path) -> Study:
        """Open the study that is in a file, with the settings that it was last run with.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Study
            The study.

        Raises
        ------
        StudyError
            If there is no study in it, or another version of Lasthop made it.
        """
        store = Store(Path(path))
        try:
            if not store.exists():
                raise StudyError(f"{path}: there is no study in it")
            meta = store.meta()
        finally:
            store.close()
        return cls(
            Scenario.parse(meta["scenario"], name=meta["file"]),
            seed=meta["seed"],
            precision=meta["precision"],
            runs=(meta["runs"][0], meta["runs"][1]),
            metric=meta["metric"],
            store=path,
        )

    @property
    def seed(self) -> int:
        """The study's seed."""
        return self._identity.seed

    @property
    def version(self) -> str:
        """The version of Lasthop that makes the runs."""
        return self._identity.version

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics that tables can show."""
        return Samples(self._store, self._identity).metrics

    @property
    def points(self) -> list[StoredPoint]:
        """The points, in the order of the sweep."""
        return self._identity.points

    @property
    def finished(self) -> bool:
        """Whether every point has runs enough."""
        return self._store.exists() and self._scheduler().finished

    @property
    def progress(self) -> Progress:
        """How many runs there are, and how many there will be as far as can be told."""
        if self._store.exists():
            return self._scheduler().progress
        runs = next(self.rule.checkpoints())
        return Progress(expected=runs * sum(len(point.schemes) for point in self.points))

    def run(self, jobs: int | None = None, progress: Callable[[Progress], None] | None = None) -> int:
        """Make the runs that are missing.

        Ctrl-C ends it within a moment and keeps the runs that are done; so does any other end of the
        process, but for the last half a second. Running again goes on from there.

        Parameters
        ----------
        jobs : int, optional
            How many threads run. By default one for each core. It does not change the results.
        progress : callable, optional
            Is told of the progress several times a second.

        Returns
        -------
        int
            How many runs were made; 0 if the study was finished.

        Raises
        ------
        StudyError
            If another process runs this study, or the file cannot be written to.
        """
        meta = {
            "title": self.scenario.title,
            "file": self.scenario.file,
            "hash": self.scenario.hash,
            "scenario": self.scenario.to_toml(),
            "precision": self.rule.precision,
            "runs": [self.rule.least, self.rule.most],
            "metric": self.metric,
        }
        with self._store.writing(self._identity, meta):
            scheduler = self._scheduler()
            if scheduler.finished:
                return 0
            # Not while runs come in: they could not be stored meanwhile, nor Ctrl-C be heard.
            statistics.prepare()
            with _lasthop.Pool(jobs) as pool:
                scheduler.run(pool, progress)
            return scheduler.progress.made

    def to_pandas(self) -> pandas.DataFrame:
        """Return every run as a row of a data frame.

        Returns
        -------
        pandas.DataFrame
            The swept parameters, the scheme, run number and seed, how the run ended, its metrics, and
            the version and the scenario's hash that it is of. All runs that are stored: of a study that
            was interrupted also some that `summary` does not count yet.
        """
        self.samples()
        return tables.runs_frame(self._store, self._identity)

    def samples(self) -> Samples:
        """Return what statistics are made of: the values of each metric, at each point with each scheme.

        Returns
        -------
        Samples
            Reads what it is asked for, and only that; of a study that goes on meanwhile ask for another.

        Raises
        ------
        StudyError
            If nothing has been run yet.
        """
        if not self._store.exists():
            raise StudyError("nothing has been run yet")
        return Samples(self._store, self._identity)

    def summary(self, metric: str | None = None) -> pandas.DataFrame:
        """Return the mean of a metric, with its interval, at each point with each scheme.

        Parameters
        ----------
        metric : str, optional
            The metric. By default the study's.

        Returns
        -------
        pandas.DataFrame
            docs/studies.md defines the columns.
        """
        samples = self.samples()
        return tables.summary_frame(samples, self._identity, samples.check(metric or self.metric))

    def compare(self, baseline: str | None = None, metric: str | None = None) -> pandas.DataFrame:
        """Return how each scheme differs from one of them, run by run over the same fades.

        Parameters
        ----------
        baseline : str, optional
            The scheme to compare with. By default the first.
        metric : str, optional
            The metric. By default the study's.

        Returns
        -------
        pandas.DataFrame
            docs/studies.md defines the columns.
        """
        samples = self.samples()
        for point in self.points:
            if baseline is not None and baseline not in point.schemes:
                raise StudyError(unknown("scheme", baseline, point.schemes))
        return tables.comparison_frame(
            samples, self._identity, baseline, samples.check(metric or self.metric)
        )

    def to_csv(self, path: str | Path) -> Path:
        """Write every run as a row of a CSV file: the columns of `to_pandas`.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Path
            The file.
        """
        return export.to_csv(self.to_pandas(), Path(path))

    def to_parquet(self, path: str | Path) -> Path:
        """Write every run as a row of a Parquet file: the columns of `to_pandas`.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        StudyError
            If pyarrow is not installed.
        """
        return export.to_parquet(self.to_pandas(), Path(path))

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def __enter__(self) -> Self:
        """Return the study; its file is closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    def _scheduler(self) -> Scheduler:
        samples = Samples(self._store, self._identity)
        return Scheduler(self._store, samples, self._scenarios, self.seed, self.rule, self.metric)


def _rule(precision: float | None, runs: tuple[int, int]) -> Rule:
    least, most = runs
    if most > MOST_RUNS:
        raise StudyError(f"runs: at most {MOST_RUNS:,} of each scheme at each point, found {most:,}")
    if not 1 <= least <= most:
        raise StudyError(
            f"runs: {least} to {most} is no range; the fewest must be 1 or more, and the most no less"
        )
    if precision is not None and not 0 < precision < 1:
        raise StudyError(
            f"precision: expected a part of the mean between 0 and 1, such as 0.02, not {precision}"
        )
    return Rule(least, most, precision)
