"""Studies: a scenario, a parameter grid, and replications of each point."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lasthop import _lasthop
from lasthop._lasthop import Scenario
from lasthop.core import statistics
from lasthop.core.display import Shown, chosen, progress_bar
from lasthop.core.metrics import find_metric, is_of_part
from lasthop.core.names import unknown
from lasthop.core.scenarios import load
from lasthop.core.statistics import estimate
from lasthop.core.units import metric_kind
from lasthop.engine.executors import ExecutorPool
from lasthop.engine.scheduler import Scheduler
from lasthop.engine.shards import Shard
from lasthop.engine.stopping import MOST_RUNS, Progress, Rule, Target
from lasthop.results import export, tables
from lasthop.results.error import DamagedStoreError, ShardError, StudyError
from lasthop.results.samples import TOTAL, Samples
from lasthop.results.sqlite import SqliteStore
from lasthop.results.store import Identity, MemoryStore, Store, StoredPoint
from lasthop.study.points import PointPolicy

if TYPE_CHECKING:
    import pandas

    from lasthop.python_scheme import PythonScheme


class Study(Shown):
    """A study: scenario x grid of parameters x schemes x replications, stored in one file.

    The results depend only on the scenario, the seed and the stopping rule: not on the number of threads, nor
    on interruptions.

    Parameters
    ----------
    scenario : Scenario, str or Path
        The scenario, with its sweep if it has one; or its file.
    seed : int, default 1
        The study's seed.
    precision : float or None, default 0.02
        A point stops when the half-width of every scheme's 95 % interval is at most this share of the mean.
        None to always make the most runs.
    runs : (int, int), default (100, 1000)
        The fewest and the most runs of each scheme at each point; at most a million.
    metric : str, default "throughput_bps"
        The metric of `precision`, and the default metric of the tables.
    metrics : sequence of str, optional
        Further metrics of the tables. Those of parts, such as ``"connection.NAME.goodput"``, are stored only
        if they are stated here, or by `metric` or `targets`; every study stores `Scenario.metrics`.
    quantiles : sequence of float, optional
        The quantiles over runs that tables and documents have beside the means, such as ``(0.5, 0.95)``.
    targets : sequence of Target, optional
        Further precisions to reach before a point stops.
    each_scheme : bool, default False
        Whether each scheme of a point stops by itself. Schemes are then compared over the runs that both
        have.
    store : str or Path, optional
        The file. If it holds this study already, the study is resumed; if it holds one with other values,
        schemes or runs, that is extended. By default the results are kept in memory.
    shard : (int, int), optional
        Make only the runs of one shard: its number, from 1, and the number of shards. The number of runs must
        be fixed. `lasthop.study.merge` merges the shards' files.
    repair : bool, default False
        If the file is damaged, keep what is intact, and the damaged file beside it with the suffix
        ``.damaged``. `run` makes the rest again.

    Attributes
    ----------
    scenario : Scenario
        The scenario.
    rule : Rule
        The stopping rule.
    metric : str
        The metric.
    further : tuple of str
        Further metrics of the tables.
    quantiles : tuple of float
        The quantiles of the tables.
    each_scheme : bool
        Whether each scheme of a point stops by itself.
    path : Path or None
        The file.
    shard : Shard or None
        The shard.

    Raises
    ------
    StudyError
        If the file is damaged, or holds a study with which this one has no point in common, or with another
        seed or version; the metric does not exist; or a shard's number of runs depends on a stopping rule.
    ScenarioError
        If the scenario or a point of its sweep is invalid.

    Examples
    --------
    >>> import lasthop
    >>> from lasthop.study import Study
    >>> scenario = lasthop.load("ebsn-wide-area", ['schemes=["basic", "ebsn"]'])
    >>> study = Study(scenario, runs=(10, 10))
    >>> study.run()
    20
    >>> study.run()
    0
    >>> study.summary()[["scheme", "n", "method"]].values.tolist()
    [['basic', 10, 't'], ['ebsn', 10, 't']]
    >>> bool(study.differences("basic")["significant"].iloc[0])
    True
    """

    def __init__(
        self,
        scenario: Scenario | str | Path,
        *,
        seed: int = 1,
        precision: float | None = 0.02,
        runs: tuple[int, int] = (100, 1000),
        metric: str = "throughput_bps",
        metrics: Sequence[str] = (),
        quantiles: Sequence[float] = (),
        targets: Sequence[Target] = (),
        each_scheme: bool = False,
        store: str | Path | None = None,
        shard: tuple[int, int] | None = None,
        repair: bool = False,
    ) -> None:
        self.scenario: Scenario = scenario if isinstance(scenario, Scenario) else load(scenario)
        self.each_scheme: bool = each_scheme
        self.quantiles: tuple[float, ...] = tuple(dict.fromkeys(map(_share, quantiles)))
        self._precision = precision
        self.path: Path | None = None if store is None else Path(store)
        if self.path is not None:
            _expect_fingerprints(self.scenario)
        self.shard: Shard | None = None if shard is None else Shard(*shard)
        points = self.scenario.points()
        self._scenarios = [point.scenario for point in points]
        # Every point has those of `METRICS` first, and the counters of its schemes.
        usual = tuple(dict.fromkeys(name for point in points for name in point.scenario.metrics))
        self.metric: str = self._find(metric)
        self._targets = [replace(each, metric=self._find(each.metric)) for each in targets]
        self.rule: Rule = _rule(precision, runs, self.metric, self._targets)
        self.further: tuple[str, ...] = tuple(dict.fromkeys(map(self._find, metrics)))
        named = (self.metric, *(each.metric for each in self._targets), *self.further)
        asked = tuple(each for each in dict.fromkeys(named) if each not in (*usual, TOTAL))
        self._identity = Identity(
            version=_lasthop.__version__,
            seed=seed,
            metrics=(*usual, *asked),
            asked=asked,
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
        self._store: Store = MemoryStore(self._identity.metrics)
        if self.path is not None:
            try:
                self._store = file = SqliteStore(self.path)
                if file.exists():
                    file.expect(self._identity)
            except DamagedStoreError:
                if not repair:
                    raise
                self._store = file = SqliteStore.repaired(self.path, self._identity, self._settings())
                file.expect(self._identity)
            if file.exists():
                lost = self._counters_that_runs_lack(file.identity())
                kept = tuple(metric for metric in self._identity.metrics if metric not in lost)
                self._identity = replace(self._identity, metrics=kept)
                self._expect_shard(file.meta().get("shard"))
                for each in named:
                    self._stored(each)
        if self.shard is not None:
            _check_shard(self.shard, self.rule, len(points))

    @classmethod
    def open(cls, path: str | Path, *, python_schemes: Sequence[PythonScheme] = ()) -> Study:
        """Open a stored study with the settings of its last run.

        Parameters
        ----------
        path : str or Path
            The file.
        python_schemes : sequence of PythonScheme, optional
            The schemes written in Python that the study names: a store has only their names and fingerprints.

        Returns
        -------
        Study
            The study.

        Raises
        ------
        StudyError
            If the file holds no study, or one of another version of Lasthop.
        """
        store = SqliteStore(Path(path))
        try:
            if not store.exists():
                raise StudyError(f"{path}: there is no study in it")
            meta = store.meta()
        finally:
            store.close()
        return cls(
            Scenario.parse(meta["scenario"], name=meta["file"], python_schemes=python_schemes),
            seed=meta["seed"],
            precision=meta["precision"],
            runs=(meta["runs"][0], meta["runs"][1]),
            metric=meta["metric"],
            metrics=meta["further"],
            quantiles=meta["quantiles"],
            targets=[Target(*each) for each in meta["targets"]],
            each_scheme=meta["each_scheme"],
            store=path,
            shard=meta["shard"],
        )

    @property
    def seed(self) -> int:
        """The study's seed."""
        return self._identity.seed

    @property
    def version(self) -> str:
        """The version of Lasthop."""
        return self._identity.version

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of all metrics, with the counters of the schemes' agents, and those asked for."""
        return (*self._identity.metrics, TOTAL)

    @property
    def stored_metrics(self) -> tuple[str, ...]:
        """The names of the metrics that the store has of each run."""
        return self._identity.metrics

    @property
    def asked(self) -> tuple[str, ...]:
        """Those of them that were asked for: metrics of parts of the run."""
        return self._identity.asked

    @property
    def points(self) -> list[StoredPoint]:
        """The points, in the order of the sweep."""
        return self._identity.points

    @property
    def left_out(self) -> list[tuple[dict[str, str], str, int]]:
        """The stored runs of points and schemes that are no longer in this study.

        Each has the parameters, the scheme and the number of runs. If added again, the runs are reused.
        """
        return self._store.left_out(self._identity) if self._store.exists() else []

    @property
    def finished(self) -> bool:
        """Whether every point has stopped."""
        return self._store.exists() and self._scheduler().finished

    @property
    def progress(self) -> Progress:
        """The number of stored runs, and the estimated number at the end."""
        if self._store.exists():
            return self._scheduler().progress
        expected, first, end = 0, 0, next(self.rule.checkpoints())
        for i, point in enumerate(self.points):
            if self.shard is not None:
                first, end = self.shard.share(i, self.rule.most)
            expected += (end - first) * len(point.schemes)
        return Progress(expected=expected)

    def run(
        self,
        jobs: int | None = None,
        progress: Callable[[Progress], None] | bool | None = None,
        *,
        executor: Executor | None = None,
    ) -> int:
        """Make the missing runs.

        Ctrl-C stops it within a moment and keeps all finished runs. If the process is killed, at most the
        last half second is lost. Calling it again resumes the study.

        Parameters
        ----------
        jobs : int, optional
            The number of threads, by default one for each core. Results do not depend on it.
        progress : callable or bool, optional
            Called with the progress several times a second. By default, or with True, a notebook shows a
            bar; with False it does not.
        executor : concurrent.futures.Executor, optional
            Where to make the runs instead of threads of this process: a `ProcessPoolExecutor`, or the
            executor of a cluster. It stays open. `jobs` is then the number of work items in flight, by
            default four for each worker. Results do not depend on it.

        Returns
        -------
        int
            The number of runs made; 0 if the study was finished.

        Raises
        ------
        StudyError
            If another process runs this study, the file cannot be written, or a worker of the executor was
            lost. Finished runs are kept.
        """
        if isinstance(self._store, SqliteStore) and self.finished and not self._store.writable:
            return 0
        with self._store.writing(self._identity, self._settings()):
            scheduler = self._scheduler()
            if scheduler.finished:
                return 0
            # Import scipy now: later it would delay storing results and handling Ctrl-C.
            statistics.prepare()
            asked = self._identity.metrics[len(_lasthop.METRICS) :]
            with ExitStack() as stack:
                bar = progress_bar(self.scenario.title or "study")
                report = stack.enter_context(chosen(progress, bar))
                pool: _lasthop.Pool | ExecutorPool
                if executor is None:
                    pool = stack.enter_context(_lasthop.Pool(jobs, asked))
                else:
                    pool = stack.enter_context(ExecutorPool(executor, asked, jobs))
                scheduler.run(pool, report)
            return scheduler.progress.made

    def _settings(self) -> dict[str, Any]:
        """Return what a store keeps beside the runs, by which `open` makes the study again."""
        return {
            "title": self.scenario.title,
            "file": self.scenario.file,
            "hash": self.scenario.hash,
            "scenario": self.scenario.to_toml(),
            "precision": self._precision,
            "runs": [self.rule.least, self.rule.most],
            "metric": self.metric,
            "further": self.further,
            "quantiles": self.quantiles,
            "targets": [[each.metric, each.relative, each.absolute] for each in self._targets],
            "each_scheme": self.each_scheme,
            "shard": None if self.shard is None else [self.shard.index, self.shard.of],
        }

    def to_pandas(self) -> pandas.DataFrame:
        """Return every run as a row of a data frame.

        Returns
        -------
        pandas.DataFrame
            The swept parameters, scheme, run number and seed, why the run ended, its metrics, the version of
            Lasthop and the scenario's hash. It has every stored run; in an unfinished study `summary` may not
            count some of them yet.
        """
        self._require_runs()
        return tables.runs_frame(self._store, self._identity)

    def samples(self) -> Samples:
        """Return the samples: the values of each metric over the runs of each point and scheme.

        Returns
        -------
        Samples
            Reads from the store on demand. It does not follow a study that is still running.

        Raises
        ------
        StudyError
            If nothing has been run yet, or this is a shard.
        """
        self._require_runs()
        if self.shard is not None:
            raise StudyError(
                f"this is shard {self.shard}, and means need the runs of all shards; merge them first"
            )
        return self._all_samples()

    def summary(self, metric: str | None = None) -> pandas.DataFrame:
        """Return the mean of a metric, with its interval, at each point with each scheme.

        Parameters
        ----------
        metric : str, optional
            The metric. By default the study's.

        Returns
        -------
        pandas.DataFrame
            docs/reference/studies.md defines the columns.
        """
        samples = self.samples()
        return tables.summary_frame(samples, self._identity, self._stored(metric or self.metric))

    def quantile(self, share: float, metric: str | None = None) -> pandas.DataFrame:
        """Return a quantile of a metric over the runs of each point with each scheme, with its interval.

        Parameters
        ----------
        share : float
            Which quantile, such as 0.95.
        metric : str, optional
            The metric. By default the study's.

        Returns
        -------
        pandas.DataFrame
            docs/reference/studies.md defines the columns.

        Raises
        ------
        StudyError
            If the share is not between 0 and 1; or the metric has no quantiles, being a ratio of totals.
        """
        samples, found = self.samples(), self._stored(metric or self.metric)
        if found == TOTAL:
            raise StudyError(f"{TOTAL} is a ratio of the totals of all runs, and has no quantiles over runs")
        return tables.quantile_frame(samples, self._identity, found, _share(share))

    def differences(self, baseline: str | None = None, metric: str | None = None) -> pandas.DataFrame:
        """Return the paired differences between each scheme and a baseline, over the same fades.

        Parameters
        ----------
        baseline : str, optional
            The baseline scheme. By default the first.
        metric : str, optional
            The metric. By default the study's.

        Returns
        -------
        pandas.DataFrame
            docs/reference/studies.md defines the columns.
        """
        samples = self.samples()
        for point in self.points:
            if baseline is not None and baseline not in point.schemes:
                raise StudyError(unknown("scheme", baseline, point.schemes))
        return tables.difference_frame(samples, self._identity, baseline, self._stored(metric or self.metric))

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

    def _find(self, metric: str) -> str:
        """Return the canonical name of a metric that exists.

        Raises
        ------
        StudyError
            If it does not exist.
        """
        try:
            return find_metric(metric, self._scenarios, (TOTAL,))
        except ValueError as error:
            raise StudyError(str(error)) from error

    def _stored(self, metric: str) -> str:
        """Return the canonical name of a metric that this study has.

        Raises
        ------
        StudyError
            If it does not exist, or was not asked for.
        """
        if metric in self.metrics:
            return metric
        found = self._find(metric)
        if found not in self.metrics:
            if is_of_part(found):
                raise StudyError(
                    f"this study does not store {found}; state it with --metric, or Study(metrics=...)"
                )
            raise StudyError(unknown("metric", metric, self.metrics))
        return found

    def _counters_that_runs_lack(self, stored: Identity) -> set[str]:
        """Return the counters that stored runs lack though their schemes have them now: later additions."""
        added = {*self._identity.metrics} - {*stored.metrics} - {*self.asked}
        lacking: set[str] = set()
        for i, point in enumerate(self.points if added else []):
            for scheme in point.schemes:
                if self._store.stored(i, scheme):
                    alone = self._scenarios[i].with_schemes([scheme])
                    lacking |= added & {*alone.metrics}
        return lacking

    def _require_runs(self) -> None:
        if not self._store.exists():
            raise StudyError("nothing has been run yet")

    def _scheduler(self) -> Scheduler:
        # A shard does not see the runs that a stopping rule would need.
        rule = self.rule if self.shard is None else Rule(self.rule.least, self.rule.most)
        policies = []
        for i, scenario in enumerate(self._scenarios):
            share = None if self.shard is None else self.shard.share(i, rule.most)
            together = [[scheme] for scheme in scenario.schemes] if self.each_scheme else [scenario.schemes]
            for schemes in together:
                have = {scheme: self._store.numbers(i, scheme) for scheme in schemes}
                policies.append(
                    PointPolicy(rule, i, scenario, have, partial(self._excesses, rule.targets), share)
                )
        return Scheduler(self._store, policies, self.seed, len(self.asked))

    def _excesses(
        self, targets: Sequence[Target], point: int, schemes: Collection[str], runs: int
    ) -> list[float]:
        """Return the excess width of each scheme's intervals over each target."""
        samples, scenario = self._all_samples(), self._scenarios[point]
        found = []
        for scheme in schemes:
            for target in targets:
                sample = samples.of(point, scheme, target.metric, runs)
                known = sample[~np.isnan(sample)]
                has = target.metric == TOTAL or scenario.has_metric(target.metric, scheme)
                # A scheme without this counter, or a point without this connection, never has the mean.
                if len(known) or has:
                    found.append(target.excess(estimate(known, metric_kind(target.metric))))
        return found

    def _all_samples(self) -> Samples:
        return Samples(self._store, self._scenarios, self._identity.metrics, self.each_scheme)

    def _expect_shard(self, stored: list[int] | None) -> None:
        """Check that the file holds this shard, or the whole study if this is one.

        Raises
        ------
        StudyError
            Otherwise.
        """
        kept = "the whole study" if stored is None else f"shard {Shard(*stored)}"
        ours = "the whole study" if self.shard is None else f"shard {self.shard}"
        if kept != ours:
            raise StudyError(
                f"{self.path}: {kept} is kept there, and this is {ours}; "
                "keep each in its own directory (--out DIR, or another store)"
            )


def _expect_fingerprints(scenario: Scenario) -> None:
    """Refuse to store runs of schemes that could not be told from changed ones later.

    Raises
    ------
    StudyError
        If the source of a scheme written in Python is not known.
    """
    for scheme in scenario.python_schemes:
        if scheme.fingerprint() is None:
            raise StudyError(
                f"store: the source of scheme {scheme.name!r} is not known, so that its stored runs could "
                "not be told from those of a changed one; write its class into a file, or keep the results "
                "in memory"
            )


def _share(quantile: float) -> float:
    """Return a quantile that exists.

    Raises
    ------
    StudyError
        If it does not.
    """
    if not 0 < quantile < 1:
        raise StudyError(f"quantile: found {quantile}, expected a share between 0 and 1, such as 0.95")
    return float(quantile)


def _check_shard(shard: Shard, rule: Rule, points: int) -> None:
    """Refuse a shard of a study whose number of runs is not fixed, and one that would have no runs.

    Raises
    ------
    ShardError
        If so.
    """
    if rule.targets and rule.least != rule.most:
        raise ShardError(
            f"with a stopping rule the number of runs, {rule.least:,} to {rule.most:,}, depends on "
            f"the results of all shards; expected a fixed number, such as --runs {rule.most}, of which each "
            "shard makes its share"
        )
    if shard.of > points * rule.most:
        raise ShardError(
            f"found {shard.of:,} shards, expected at most {points * rule.most:,}, "
            "the runs of a scheme at all points"
        )


def _rule(precision: float | None, runs: tuple[int, int], metric: str, targets: Sequence[Target]) -> Rule:
    least, most = runs
    if most > MOST_RUNS:
        raise StudyError(f"runs: at most {MOST_RUNS:,} of each scheme at each point, found {most:,}")
    if not 1 <= least <= most:
        raise StudyError(f"runs: found ({least}, {most}), expected 1 <= fewest <= most")
    if precision is not None and not 0 < precision < 1:
        raise StudyError(
            f"precision: found {precision}, expected a share of the mean between 0 and 1, such as 0.02"
        )
    first = [] if precision is None else [Target(metric, relative=precision)]
    return Rule(least, most, (*first, *targets))
