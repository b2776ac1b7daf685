"""Execution of a paper: experiments, then figures, then claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lasthop import notebook
from lasthop.papers.evidence import Evidence, Sweep
from lasthop.papers.paper import Choice, Claim, Experiment, Judgement, Paper, Plot
from lasthop.papers.precision import Reached, reached
from lasthop.papers.replications import make_runs
from lasthop.papers.run_store import values
from lasthop.papers.verdicts import VERDICTS
from lasthop.study import Progress, Study

if TYPE_CHECKING:
    from lasthop.plots import DataFigure


@dataclass(frozen=True, slots=True)
class Plan:
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
class Outcome:
    """The figures and verdicts of one paper run.

    Attributes
    ----------
    plan : Plan
        The plan.
    figures : list of (Plot, DataFigure)
        The figures.
    judgements : list of (Claim, Judgement)
        The claims with their verdicts.
    runs : int
        The total number of runs.
    reached : dict of str to Reached
        Runs and precision of each experiment with precision targets.
    """

    plan: Plan
    figures: list[tuple[Plot, DataFigure]] = field(default_factory=list)
    judgements: list[tuple[Claim, Judgement]] = field(default_factory=list)
    runs: int = 0
    reached: dict[str, Reached] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return the counts of the verdicts."""
        return notebook.outcome_text(self)

    def _repr_html_(self) -> str:
        return notebook.outcome_html(self)

    def counts(self) -> dict[str, int]:
        """Return the number of claims with each verdict, without definitions."""
        found = [judgement.verdict for claim, judgement in self.judgements if not claim.definition]
        return {verdict: found.count(verdict) for verdict in VERDICTS}


def run_paper(
    plan: Plan,
    stores: Path | None,
    jobs: int | None = None,
    progress: Callable[[str, Progress | None], None] | None = None,
) -> Outcome:
    """Make the missing runs, draw the figures and judge the claims.

    Parameters
    ----------
    plan : Plan
        The plan.
    stores : Path or None
        The directory for finished runs, from which they are reused. None stores nothing.
    jobs : int, optional
        The number of threads, by default one per core. Results do not depend on it.
    progress : callable, optional
        Called with the name of an experiment and its progress, or with an activity of unknown length and
        None.

    Returns
    -------
    Outcome
        The figures and verdicts.
    """
    outcome = Outcome(plan)
    notify = progress or (lambda what, now: None)
    with ExitStack() as open_studies:
        sweeps, runs_of, scenarios = {}, {}, {}
        for experiment in plan.experiments():
            scenario = plan.paper.scenario(experiment, plan.readings)
            scenarios[experiment.name] = scenario
            rule = experiment.rule(plan.full)
            if not experiment.axes:
                made = make_runs(
                    scenario,
                    experiment.traced,
                    rule,
                    plan.seed,
                    plan.run,
                    jobs,
                    partial(notify, experiment.name),
                    None if stores is None else stores / f"{_name(plan, experiment)}.runs.sqlite",
                )
                runs_of[experiment.name] = made
                outcome.runs += sum(len(runs) for runs in made.values())
                samples = [
                    {target.metric: values(runs, target.metric) for target in rule.targets}
                    for runs in made.values()
                ]
                counts = [len(runs) for runs in made.values()]
            else:
                store = None if stores is None else stores / f"{_name(plan, experiment)}.sqlite"
                study = open_studies.enter_context(
                    Study(
                        scenario,
                        seed=plan.seed,
                        precision=None,
                        runs=(rule.least, rule.most),
                        targets=rule.targets,
                        each_scheme=plan.full,
                        store=store,
                    )
                )
                study.run(jobs, partial(notify, experiment.name))
                sweep = sweeps[experiment.name] = Sweep(study, experiment.axes)
                cells = [(scheme, at) for at in sweep.points() for scheme in sweep.schemes]
                samples = [
                    {target.metric: sweep.sample(target.metric, *cell) for target in rule.targets}
                    for cell in cells
                ]
                counts = [sweep.runs(*cell) for cell in cells]
                outcome.runs += sum(counts)
            if rule.targets:
                outcome.reached[experiment.name] = reached(rule, counts, samples)
        evidence = Evidence(sweeps, runs_of, scenarios)
        for plot in plan.figures:
            notify(f"drawing figure {plot.id}", None)
            outcome.figures.append((plot, plot.draw(evidence)))
        for claim in plan.claims:
            notify(f"judging claim {claim.id}", None)
            outcome.judgements.append((claim, claim.judge(evidence)))
    return outcome


def _name(plan: Plan, experiment: Experiment) -> str:
    """Return the name of an experiment's store, which depends on the choice of readings."""
    changed = [
        f"{reading.name}={plan.readings[reading.name].name}"
        for reading in plan.paper.readings
        if reading.name not in experiment.fixed and plan.readings[reading.name] is not reading.choices[0]
    ]
    return ",".join([experiment.name, *changed, f"seed={plan.seed}"])
