"""Comparisons: many arms over the same fades, each against a baseline."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lasthop._lasthop import METRICS, Pool, Scenario, ScenarioError
from lasthop.core import statistics
from lasthop.core.display import Shown, chosen, progress_bar
from lasthop.core.metrics import find_metric
from lasthop.core.paired_quantiles import Span
from lasthop.core.scenarios import load
from lasthop.core.statistics import Sample, holm, paired
from lasthop.core.titles import shown_title
from lasthop.core.units import better_of
from lasthop.engine.scheduler import Executor, Scheduler
from lasthop.engine.stopping import Progress
from lasthop.race.arm import Arm
from lasthop.race.elimination import FEWEST_TO_STOP, check_limits, independent, looks
from lasthop.race.error import NoValuesError, RaceError
from lasthop.race.looks import Looks, reason_of
from lasthop.race.ranked import Ranked, Refusal, Status
from lasthop.race.statistic import Better, Mean, OfQuantile, Statistic, Tests, finite
from lasthop.results.samples import Samples
from lasthop.results.store import MemoryStore

if TYPE_CHECKING:
    import pandas


class Race(Shown):
    """A comparison of many arms over the same fades, each paired with a baseline; worse arms stop early.

    Run `r` of every arm has the same seed and run number, so it meets the same fades. The number of runs
    doubles from look to look. At a look, an arm stops if it is worse than the leader, to resume if a later
    look denies it, or if it is as good and its ratio to the baseline is precise enough. Results do not
    depend on the number of threads.

    Parameters
    ----------
    scenario : Scenario, str or Path
        The scenario, its file, or the name of a worked scenario; without a sweep.
    arms : sequence of Arm
        The arms. Arms that the scenario refuses, or that equal an earlier one, are left out.
    baseline : Arm, optional
        The arm that all others are compared with; added if it is not among them. By default the scenario's
        own sender with its first scheme.
    metric : str, default "throughput_bps"
        The metric to compare by.
    metrics : sequence of str, optional
        Additional metrics for `results`, which always has `Scenario.metrics` and `metric`.
    quantile : float, optional
        Compare by this quantile over runs, such as 0.95, instead of the mean.
    better : {"higher", "lower"}, optional
        Which values of the metric are better. Known for most metrics; needed for others.
    seed : int, default 1
        The seed of all runs.
    overrides : sequence of str or mapping, optional
        Changes for all arms, as in `Scenario.with_`.
    variants : sequence of mapping, optional
        Changes for all arms: run `r` has variant `r` modulo their number. Arms are then compared on
        average over the variants, such as draws of a fitted link's parameters.
    error : float, default 0.05
        The probability that a truly best arm is called worse.
    margin : float, default 0.05
        The relative difference to the best that still counts as equally good.
    precision : float or None, default 0.05
        An arm that is as good as the best stops once the 95 % interval of its ratio to the baseline has this
        half-width. None: such arms make the maximum number of runs.
    runs : (int, int), optional
        Runs of each arm at the first look, and at most. By default (8, 64) for means; for a quantile, the
        smallest number at which an arm can stop, and four times that.
    screen : callable, optional
        Called with the race at looks before the first, from 32 runs on; returns the arms that stop there. Its
        error adds to `error`.

    Attributes
    ----------
    baseline : Arm
        The baseline.
    arms : list of Arm
        The arms that are compared.
    refused : list of Refusal
        The arms that are left out.
    metric : str
        The metric.
    better : {"higher", "lower"}
        Which values of it are better.
    looks : list of int
        The numbers of runs of the looks.
    early_looks : int
        How many of these are for `screen`.

    Raises
    ------
    RaceError
        If the baseline is refused, the metric does not exist, or an argument makes no sense.
    ScenarioError
        If the scenario itself is invalid.

    Examples
    --------
    >>> from lasthop.race import Race, grid
    >>> arms = grid(["linux", "linux-bbr"], ["basic"])
    >>> race = Race("last-mile", arms, overrides=["limit=5 s"], runs=(8, 8))
    >>> race.run()
    16
    >>> race.results()[["rank", "arm", "status"]].values.tolist()
    [[1, 'linux-bbr basic', 'best'], [2, 'linux basic', 'worse']]
    """

    def __init__(
        self,
        scenario: Scenario | str | Path,
        arms: Sequence[Arm],
        *,
        baseline: Arm | None = None,
        metric: str = "throughput_bps",
        metrics: Sequence[str] = (),
        quantile: float | None = None,
        better: Better | None = None,
        seed: int = 1,
        overrides: Sequence[str | Mapping[str, Any]] = (),
        variants: Sequence[Mapping[str, Any]] = ({},),
        error: float = 0.05,
        margin: float = 0.05,
        precision: float | None = 0.05,
        runs: tuple[int, int] | None = None,
        screen: Callable[[Race], Collection[Arm]] | None = None,
    ) -> None:
        check_limits(error=error, margin=margin, precision=precision, runs=runs, variants=variants)
        if quantile is not None and not 0 < quantile < 1:
            raise RaceError(f"quantile: found {quantile}, expected a share between 0 and 1, such as 0.95")
        self.quantile: float | None = quantile
        self._statistic: Statistic = Mean() if quantile is None else OfQuantile(quantile)
        self._variants = variants
        self.seed: int = seed
        self.error: float = error
        self.margin: float = margin
        self.precision: float | None = precision
        self.scenario: Scenario = loaded(scenario, overrides, [arm.sender for arm in arms])
        if self.scenario.sweep:
            raise RaceError(
                f"the scenario sweeps {', '.join(self.scenario.sweep)}; a comparison has one link: "
                "state values that are remedies as an axis, and leave the sweep out: sweep={}"
            )
        self.arms: list[Arm] = []
        self.refused: list[Refusal] = []
        self._scenarios: dict[tuple[Arm, int], Scenario] = {}
        self.baseline: Arm = self._enter_all(arms, baseline)
        self.metric: str = self._find(metric)
        found = better or better_of(self.metric)
        if found is None:
            raise RaceError(f"{self.metric}: it must be stated whether higher or lower is better")
        self.better: Better = found
        # The order of the values in a row of the pool.
        counters = (name for arm in self.arms for name in self._scenario(arm, 0).metrics)
        asked = (self.metric, *map(self._find, metrics))
        self.metrics: tuple[str, ...] = tuple(dict.fromkeys((*METRICS, *counters, *asked)))
        # The place of an arm, by which the store and the samples know it.
        self._places = {arm: place for place, arm in enumerate(self.arms)}
        self._store = MemoryStore(self.metrics)
        scenarios = [self._scenario(arm, 0) for arm in self.arms]
        self._recorded = Samples(self._store, scenarios, self.metrics, each_scheme=True)
        self._counted = dict.fromkeys(self.arms, 0)
        self._running = list(self.arms)
        for arm in self.arms:
            if not self._scenario(arm, 0).has_metric(self.metric, arm.scheme):
                self._leave_out(arm, f"it has no {self.metric}")
        least, most = runs or self._statistic.default_runs(error, len(self.arms))
        self._screen = screen
        early = [each for each in looks(FEWEST_TO_STOP, least) if screen is not None and each < least]
        self.early_looks: int = len(early)
        self.looks: list[int] = [*early, *looks(least, most)]
        if quantile is not None and 1 < len(variants) < self.looks[-1]:
            raise RaceError(
                f"variants: found {len(variants)} for {self.looks[-1]} runs; a quantile over runs needs a "
                "variant for each, since runs of one variant depend on each other"
            )
        self._eliminated: set[Arm] = set()
        self._samples: dict[tuple[Arm, int, str], Sample] = {}
        self._look = 0

    # -- The arms ------------------------------------------------------------------------------------

    def _scenario(self, arm: Arm, variant: int) -> Scenario:
        """Return the scenario of an arm in one variant; cached."""
        key = (arm, variant)
        if key not in self._scenarios:
            self._scenarios[key] = self.scenario.with_(self._variants[variant], *arm.changes())
        return self._scenarios[key]

    def _find(self, metric: str) -> str:
        """Return the canonical name of a metric that some arm has.

        Raises
        ------
        RaceError
            If no arm has it.
        """
        try:
            return find_metric(metric, (self._scenario(arm, 0) for arm in self.arms))
        except ValueError as error:
            raise RaceError(*error.args) from error

    def _enter_all(self, arms: Sequence[Arm], baseline: Arm | None) -> Arm:
        """Enter the arms and the baseline, and return the baseline."""
        entered: dict[tuple[str, str], Arm] = {}
        for arm in dict.fromkeys(arms):
            try:
                same = entered.setdefault(self._identity(arm), arm)
            except ScenarioError as error:
                self.refused.append(Refusal(arm, reason_of(error)))
                continue
            if same is arm:
                self.arms.append(arm)
            else:
                self.refused.append(Refusal(arm, f"the same as {same.label}", same))
        if baseline is None:
            baseline = Arm(self.scenario.sender, self.scenario.schemes[0])
        try:
            same = entered.setdefault(self._identity(baseline), baseline)
        except ScenarioError as error:
            raise RaceError(f"the baseline {baseline.label} is refused: {reason_of(error)}") from None
        if same is baseline and same not in self.arms:
            self.arms.insert(0, same)
        return same

    def _identity(self, arm: Arm) -> tuple[str, str]:
        """Return a key that is equal for arms with equal runs."""
        return self._scenario(arm, 0).hash, arm.scheme

    # -- Running -------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether every arm has stopped."""
        return self._look == len(self.looks)

    @property
    def shown_title(self) -> str:
        """The title of the scenario, with the range of each setting in which the arms differ."""
        swept: dict[str, dict[Any, None]] = {}
        for arm in self.arms:
            for key, value in arm.settings:
                swept.setdefault(key, {})[value if isinstance(value, str) else str(value)] = None
        return shown_title(self.scenario, {key: list(values) for key, values in swept.items()})

    def packet_bound(self, runs: int) -> float:
        """Return an upper bound of the data packets that arms deliver in so many runs each.

        Parameters
        ----------
        runs : int
            The runs of each arm, such as `looks[-1]`.
        """
        return runs * sum(self._scenario(arm, 0).packet_bound() for arm in self.arms)

    def run(
        self,
        jobs: int | None = None,
        progress: Callable[[Progress], None] | bool | None = None,
        executor: Executor | None = None,
    ) -> int:
        """Make the runs.

        Can be interrupted with Ctrl-C. The results are then those of the last complete look, and the next
        call resumes.

        Parameters
        ----------
        jobs : int, optional
            The number of threads, by default one for each core. Results do not depend on it.
        progress : callable or bool, optional
            Called with the progress several times a second. By default, or with True, a notebook shows a
            bar; with False it does not.
        executor : Executor, optional
            Executes the runs instead of threads of this process.

        Returns
        -------
        int
            The number of runs made.

        Raises
        ------
        RuntimeError
            If a run crashed; the message says how to replay it.
        """
        scheduler = Scheduler(self._store, [Looks(self)], self.seed)
        if scheduler.finished:
            return 0
        # Import scipy now: later it would delay handling Ctrl-C.
        statistics.prepare()
        bar = progress_bar(self.shown_title or "comparison")
        with ExitStack() as stack:
            report = stack.enter_context(chosen(progress, bar))
            if executor is None:
                executor = stack.enter_context(Pool(jobs, self.metrics[len(METRICS) :]))
            scheduler.run(executor, report)
        return scheduler.progress.made

    def _leave_out(self, arm: Arm, reason: str) -> None:
        """Move an arm from the running to the refused ones."""
        if arm == self.baseline:
            raise RaceError(f"the baseline {arm.label} is refused: {reason}")
        self._running.remove(arm)
        del self._counted[arm]
        self.refused.append(Refusal(arm, reason))

    def _decide(self) -> None:
        """Evaluate a complete look: stop arms that are worse or precise enough.

        What stopped as worse is compared with the leader of each later look, as if it were at its best in the
        runs that it has not made. If it is no longer worse, it makes them, and the look is evaluated anew.
        """
        runs = self.looks[self._look]
        for arm in self._running:
            self._counted[arm] = runs
        # The worst value, which replaces missing ones, may have changed.
        self._samples.clear()
        if self._screen is not None and self._look < self.early_looks:
            self._look += 1
            stopped = {*self._screen(self)} - {self.baseline}
            self._running = [arm for arm in self._running if arm not in stopped]
            return
        leader = self.leader()
        if self._resume(leader, runs):
            return
        self._look += 1
        if self.finished:
            return
        # All others are paired with these two, so they run until no other arm does.
        pivots = {leader, self.baseline}
        stopped = set()
        best = self._seen(worst=False)
        for arm in self._running:
            pair = self.pair(arm, leader)
            if self._tests.as_good(*pair, self.margin):
                if runs >= FEWEST_TO_STOP and self._width(*self.pair(arm, self.baseline)) <= 1:
                    stopped.add(arm)
            elif arm in self._eliminated or self._tests.far_worse(*pair, self.margin, best):
                self._eliminated.add(arm)
                stopped.add(arm)
        self._running = [arm for arm in self._running if arm not in stopped - pivots]
        goes_on = self._eliminated and self._tests.misses_rare
        if {*self._running} <= pivots & stopped and not goes_on:
            self._look = len(self.looks)

    def _resume(self, leader: Arm, runs: int) -> bool:
        """Resume arms that stopped as worse and no longer are; return whether some have runs to make."""
        if not self._tests.misses_rare:
            return False
        resumed = [arm for arm in self._eliminated if not self._tests.worse(*self._extended(arm, leader))]
        self._eliminated -= {*resumed}
        behind = [arm for arm in self.arms if arm in resumed and self._counted[arm] < runs]
        self._running += behind
        return bool(behind)

    @property
    def _tests(self) -> Tests:
        return self.tests(self.error, self._late_looks)

    @property
    def _late_looks(self) -> int:
        return len(self.looks) - self.early_looks

    def tests(self, error: float, looks: int) -> Tests:
        """Return the tests that have this error over so many looks."""
        return self._statistic.tests(error, len(self.arms), looks, self.better)

    def _excess(self, runs: int) -> float:
        """Return the largest half-width of a ratio to the baseline, in multiples of the precision."""
        against = self._sample(self.baseline, runs)
        others = [arm for arm in self._running if arm != self.baseline and self._counted[arm] >= runs]
        return max((self._width(self._sample(arm, runs), against) for arm in others), default=0.0)

    def _width(self, arm: Sample, baseline: Sample) -> float:
        """Return the half-width of a ratio to the baseline, in multiples of the precision."""
        if self.precision is None:
            return math.inf
        return self._statistic.width(arm, baseline, self.precision)

    def _expected(self) -> int:
        """Estimate the total number of runs."""
        made = sum(self._counted.values())
        if self.finished:
            return made
        have = self.looks[self._look - 1] if self._look else 0
        # Before the first look, assume that the third is the last.
        end = self.looks[min(2, len(self.looks) - 1)]
        if self.precision is None:
            end = self.looks[-1]
        elif self._look:
            # The half-width shrinks with the square root of the number of runs.
            wanted = have * min(self._excess(have), 1e3) ** 2
            end = next((each for each in self.looks if each >= wanted), self.looks[-1])
        end = max(end, self.looks[self._look])
        return made + sum(end - self._counted[arm] for arm in self._running)

    @property
    def eliminated(self) -> frozenset[Arm]:
        """The arms that stopped early because they are worse."""
        return frozenset(self._eliminated)

    # -- Samples -------------------------------------------------------------------------------------

    def _values(self, arm: Arm, metric: str, runs: int) -> Sample:
        """Return a metric of the first `runs` runs of an arm; NaN for runs without it."""
        return self._recorded.of(self._places[arm], arm.scheme, metric, runs)

    def _sample(self, arm: Arm, runs: int, metric: str | None = None) -> Sample:
        """Return independent values of a metric, by default the comparison's.

        A run without the comparison's metric counts as the worst value of any run; for a quantile, as worse
        than all others.
        """
        shown = metric or self.metric
        key = (arm, runs, shown)
        if key not in self._samples:
            values = self._filled(arm, runs) if shown == self.metric else self._values(arm, shown, runs)
            self._samples[key] = independent(values, len(self._variants))
        return self._samples[key]

    def _filled(self, arm: Arm, runs: int) -> Sample:
        """Return the values of the metric, with what a run without it counts as."""
        values = self._values(arm, self.metric, runs)
        if np.isnan(values).any():
            worst = self._statistic.missing(self._seen(worst=True), self.better)
            return np.where(np.isnan(values), worst, values)
        return values

    def pair(self, arm: Arm, other: Arm, metric: str | None = None) -> tuple[Sample, Sample]:
        """Return the samples of two arms over the runs that both have; see `sample`."""
        runs = min(self._counted[arm], self._counted[other])
        return self._sample(arm, runs, metric), self._sample(other, runs, metric)

    def _extended(self, arm: Arm, leader: Arm) -> tuple[Sample, Sample]:
        """Return the samples of an arm, at its best in runs that it has not made, and of the leader."""
        made, runs = self._counted[arm], self._counted[leader]
        values = self._filled(arm, made)
        best = values.max() if self.better == "higher" else values.min()
        values = np.append(values, np.full(runs - made, best))
        return independent(values, len(self._variants)), self._sample(leader, runs)

    def _seen(self, *, worst: bool) -> float:
        """Return the best or the worst value of the metric in any counted run."""
        every = [self._values(arm, self.metric, runs) for arm, runs in self._counted.items()]
        seen = np.concatenate(every)
        seen = seen[~np.isnan(seen)]
        if len(seen) == 0:
            raise NoValuesError(f"no run has a {self.metric}: none finished; raise the scenario's limit")
        return float(seen.min() if worst == (self.better == "higher") else seen.max())

    def leader(self) -> Arm:
        """Return the best of the arms that have the most runs and are not eliminated."""
        most = max(self._counted.values())
        sign = 1.0 if self.better == "higher" else -1.0
        alive = [arm for arm, runs in self._counted.items() if runs == most and arm not in self._eliminated]
        return max(alive, key=lambda arm: sign * self._statistic.value(self._sample(arm, most)))

    # -- Results -------------------------------------------------------------------------------------

    def sample(self, arm: Arm, metric: str | None = None) -> Sample:
        """Return the values of an arm: one for each run, or with variants the mean of each variant.

        The metric is by default the comparison's; for another one, runs without it are NaN.

        Raises
        ------
        KeyError
            If the arm is not compared.
        """
        return self._sample(arm, self._counted[arm], metric)

    def values(self, arm: Arm, metric: str | None = None) -> Sample:
        """Return a metric, by default the comparison's, of each run that counts; NaN where it has none.

        Raises
        ------
        KeyError
            If the arm is not compared.
        """
        return self._values(arm, metric or self.metric, self._counted[arm])

    def without_effect(self, arm: Arm) -> dict[str, str]:
        """Return why schemes of an arm had no effect in any run that counts, as `Run.without_effect`.

        Raises
        ------
        KeyError
            If the arm is not compared.
        """
        return {} if self.values(arm, "reactions").any() else self._scenario(arm, 0).reacting(arm.scheme)

    def standing(self) -> dict[Arm, tuple[int, Status]]:
        """Return the rank and the status of each arm, the best first.

        Arms that are as good as the best, or not significantly different from it, share the first rank.

        Raises
        ------
        RaceError
            If no look is complete yet.
        """
        if self._look == 0:
            raise RaceError("nothing has been run yet")
        values = {arm: self._statistic.value(self._sample(arm, runs)) for arm, runs in self._counted.items()}
        sign = 1.0 if self.better == "higher" else -1.0
        leader = self.leader()
        first = [arm for arm in self._counted if arm == leader or self._may_be_best(arm, leader)]
        ordered = sorted(self._counted, key=lambda arm: (arm not in first, -sign * values[arm]))
        found: dict[Arm, tuple[int, Status]] = {}
        for place, arm in enumerate(ordered, 1):
            if arm not in first:
                found[arm] = place, "worse"
            elif first == [arm]:
                found[arm] = 1, "best"
            else:
                others = [other for other in first if other != arm]
                good = all(self._tests.as_good(*self.pair(arm, other), self.margin) for other in others)
                found[arm] = 1, "as good" if good else "cannot tell"
        return found

    def _may_be_best(self, arm: Arm, leader: Arm) -> bool:
        """Whether an arm is not significantly worse than the leader, or by less than the margin."""
        if arm in self._eliminated:
            return False
        pair = self.pair(arm, leader)
        return not self._tests.worse(*pair) or self._tests.as_good(*pair, self.margin)

    def ranking(self, metric: str | None = None) -> list[Ranked]:
        """Return the arms with their numbers, the best first.

        Parameters
        ----------
        metric : str, optional
            Another metric, such as a cost. Ranks and statuses remain by the race's metric.

        Raises
        ------
        RaceError
            If no look is complete yet, or the metric does not exist.
        """
        shown = self.metric if metric is None else self._find(metric)
        if shown not in self.metrics:
            raise RaceError(f"this comparison does not have {shown}; state it with metrics=")
        unknown = Span(math.nan, math.nan, math.nan)
        most = max(self._counted.values())
        found = []
        for arm, (rank, status) in self.standing().items():
            runs = self._counted[arm]
            sample = self._sample(arm, runs, shown)
            itself = arm == self.baseline
            against = self._statistic.against(*paired(sample, self._sample(self.baseline, runs, shown)))
            p_value = math.nan if itself else against.p_value
            by_quantile = self.quantile is not None
            found.append(
                Ranked(
                    arm=arm,
                    rank=rank,
                    status=status,
                    baseline=itself,
                    metric=shown,
                    runs=runs,
                    missing=int(np.isnan(self._values(arm, shown, runs)).sum()),
                    unfinished=int((self._values(arm, "finished", runs) == 0).sum()),
                    mean=Mean().found(sample[np.isfinite(sample)], shown),
                    quantile=self._statistic.found(finite(sample), shown) if by_quantile else None,
                    ratio=unknown if itself or against.ratio is None else against.ratio,
                    difference=unknown if itself else against.difference,
                    # An arm may have stopped at any look, so each look counts as a test.
                    p_value=math.nan if math.isnan(p_value) else min(1.0, p_value * self._late_looks),
                    stopped_early=runs < most,
                )
            )
        adjusted = holm([each.p_value for each in found])
        return [replace(each, p_holm=p_holm) for each, p_holm in zip(found, adjusted, strict=True)]

    def results(self, metric: str | None = None) -> pandas.DataFrame:
        """Return the `ranking` as a data frame; docs/reference/comparisons.md defines the columns."""
        import pandas

        return pandas.DataFrame([each.columns(self.quantile) for each in self.ranking(metric)])


def loaded(
    scenario: Scenario | str | Path,
    overrides: Sequence[str | Mapping[str, Any]],
    senders: Sequence[str | None] = (),
) -> Scenario:
    """Return a scenario with changes, each of which has an effect on its own sender, or on one of `senders`.

    A file may be valid only with its changes, if they are texts.
    """
    try:
        return _changed(scenario, overrides)
    except ScenarioError:
        named = list(dict.fromkeys(sender for sender in senders if sender is not None))
        with suppress(ScenarioError):
            if named:
                swept = _changed(scenario, [*overrides, f"sweep.sender={json.dumps(named)}"])
                return swept.with_({"sweep.sender": None})
        raise


def _changed(scenario: Scenario | str | Path, overrides: Sequence[str | Mapping[str, Any]]) -> Scenario:
    if isinstance(scenario, Scenario):
        return scenario.with_(*overrides) if overrides else scenario
    texts = [each for each in overrides if isinstance(each, str)]
    return load(scenario, texts) if len(texts) == len(overrides) else load(scenario).with_(*overrides)
