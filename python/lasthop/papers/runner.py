"""Execution of a paper: experiments, then figures, then claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lasthop._lasthop import METRICS, Run, Scenario
from lasthop.core.display import Shown
from lasthop.engine.executors import TracingPool
from lasthop.engine.scheduler import Scheduler
from lasthop.engine.stopping import Rule
from lasthop.papers.evidence import Evidence, Sweep
from lasthop.papers.paper import Choice, Claim, Experiment, Judgement, Paper, Plot
from lasthop.papers.precision import Reached, reached
from lasthop.papers.verdicts import VERDICTS
from lasthop.results.run_numbers import RunNumbers
from lasthop.results.store import MemoryStore
from lasthop.study import Progress, Study
from lasthop.study.points import PointPolicy

if TYPE_CHECKING:
    from lasthop.plots import DataFigure


@dataclass(frozen=True, slots=True)
class Selection:
    """A paper, its chosen readings, and which figures and claims to compute.

    Attributes
    ----------
    paper : Paper
        The paper.
    readings : mapping of str to Choice
        The choice for each reading.
    full : bool
        Whether to make as many runs as the claims need, instead of a few.
    figures : sequence of Plot
        The figures to draw.
    claims : sequence of Claim
        The claims to judge.
    seed : int
        The seed of all experiments.
    run : int
        The run shown in packet traces.
    """

    paper: Paper
    readings: Mapping[str, Choice]
    full: bool
    figures: Sequence[Plot]
    claims: Sequence[Claim]
    seed: int = 1
    run: int = 0

    def experiments(self) -> list[Experiment]:
        """Return the required experiments, in the paper's order."""
        needed = {name for plot in self.figures for name in plot.experiments}
        needed |= {name for claim in self.claims for name in claim.experiments}
        return [each for each in self.paper.experiments if each.name in needed]


@dataclass(slots=True, repr=False)
class Outcome(Shown):
    """The figures and verdicts of one paper run.

    Attributes
    ----------
    selection : Selection
        The selection.
    figures : list of (Plot, DataFigure)
        The figures.
    judgements : list of (Claim, Judgement)
        The claims with their verdicts.
    runs : int
        The total number of runs.
    reached : dict of str to Reached
        Runs and precision of each experiment with precision targets.
    """

    selection: Selection
    figures: list[tuple[Plot, DataFigure]] = field(default_factory=list)
    judgements: list[tuple[Claim, Judgement]] = field(default_factory=list)
    runs: int = 0
    reached: dict[str, Reached] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """Return the number of claims with each verdict, without definitions."""
        found = [judgement.verdict for claim, judgement in self.judgements if not claim.definition]
        return {verdict: found.count(verdict) for verdict in VERDICTS}


def run_paper(
    selection: Selection,
    stores: Path | None,
    jobs: int | None = None,
    progress: Callable[[str, Progress | None], None] | None = None,
    *,
    repair: bool = False,
) -> Outcome:
    """Make the missing runs, draw the figures and judge the claims.

    Parameters
    ----------
    selection : Selection
        The selection.
    stores : Path or None
        The directory for finished runs, from which they are reused. None stores nothing.
    jobs : int, optional
        The number of threads, by default one per core. Results do not depend on it.
    progress : callable, optional
        Called with the name of an experiment and its progress, or with an activity of unknown length and
        None.
    repair : bool, default False
        What `Study` does with damaged files of finished runs.

    Returns
    -------
    Outcome
        The figures and verdicts.
    """
    outcome = Outcome(selection)
    notify = progress or (lambda what, now: None)
    with ExitStack() as open_studies:
        sweeps, traced, scenarios = {}, {}, {}
        metrics = dict(pair for choice in selection.readings.values() for pair in choice.metrics.items())
        for experiment in selection.experiments():
            scenario = selection.paper.scenario(experiment, selection.readings)
            scenarios[experiment.name] = scenario
            rule, report = experiment.rule(selection.full, metrics), partial(notify, experiment.name)
            if experiment.traced and not experiment.axes:
                runs = traced[experiment.name] = _traced(scenario, rule.most, selection, jobs, report)
                outcome.runs += sum(map(len, runs.values()))
                continue
            study = open_studies.enter_context(
                Study(
                    scenario,
                    seed=selection.seed,
                    precision=None,
                    runs=(rule.least, rule.most),
                    metrics=experiment.metrics,
                    targets=rule.targets,
                    each_scheme=selection.full,
                    store=None if stores is None else stores / f"{_name(selection, experiment)}.sqlite",
                    repair=repair,
                )
            )
            study.run(jobs, report)
            sweep = sweeps[experiment.name] = Sweep(study, experiment.axes, metrics)
            cells = [(scheme, at) for at in sweep.points() for scheme in sweep.schemes]
            counts = [sweep.runs(*cell) for cell in cells]
            outcome.runs += sum(counts)
            if rule.targets:
                samples = [
                    {target.metric: sweep.sample(target.metric, *cell) for target in rule.targets}
                    for cell in cells
                ]
                outcome.reached[experiment.name] = reached(rule, counts, samples)
        evidence = Evidence(sweeps, traced, scenarios)
        for plot in selection.figures:
            notify(f"drawing figure {plot.id}", None)
            outcome.figures.append((plot, plot.draw(evidence)))
        for claim in selection.claims:
            notify(f"judging claim {claim.id}", None)
            outcome.judgements.append((claim, claim.judge(evidence)))
    return outcome


def _traced(
    scenario: Scenario, runs: int, selection: Selection, jobs: int | None, report: Callable[[Progress], None]
) -> dict[str, list[Run]]:
    """Make runs with traces, by scheme and in order, from the run that packet traces show."""
    have = {scheme: RunNumbers() for scheme in scenario.schemes}
    share = (selection.run, selection.run + runs)
    point = PointPolicy(Rule(runs, runs), 0, scenario, have, lambda *_: (), share)
    pool = TracingPool(jobs)
    Scheduler(MemoryStore(METRICS), [point], selection.seed).run(pool, report)
    return {scheme: [pool.runs[scheme][number] for number in range(*share)] for scheme in scenario.schemes}


def _name(selection: Selection, experiment: Experiment) -> str:
    """Return the name of an experiment's store, which depends on the choice of readings."""
    changed = [
        f"{reading.name}={selection.readings[reading.name].name}"
        for reading in selection.paper.readings
        if reading.name not in experiment.fixed and selection.readings[reading.name] is not reading.choices[0]
    ]
    return ",".join([experiment.name, *changed, f"seed={selection.seed}"])
