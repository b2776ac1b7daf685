"""The parts of an executable paper, as data: experiments, readings, figures and claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Protocol

from lasthop import Scenario
from lasthop.study.plan import Rule, Target

if TYPE_CHECKING:
    from lasthop.papers.evidence import Evidence
    from lasthop.plots import DataFigure


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice of a reading.

    Attributes
    ----------
    name : str
        Its name in `--reading READING=NAME`.
    note : str
        What it means, and the evidence for it.
    overrides : mapping of str to sequence of str
        Its overrides `KEY=VALUE` of the scenario, by experiment; the key `""` stands for all experiments.
    """

    name: str
    note: str
    overrides: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """A parameter or rule that a paper leaves open or contradicts itself about, with the choices.

    Attributes
    ----------
    name : str
        Its name in `--reading NAME=CHOICE`.
    question : str
        The open question.
    choices : sequence of Choice
        The choices; the first is the default.
    fitted : sequence of str
        The claims by whose fit the default was chosen; none if by the text, or by what was usual. They test
        the model less than others do.
    """

    name: str
    question: str
    choices: Sequence[Choice]
    fitted: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Campaign:
    """The runs of an experiment with `--full`: each scheme at each point stops once its means are well known.

    Attributes
    ----------
    needs : str
        Why its figures and claims need this precision, and no higher one.
    targets : sequence of Target
        The precisions that every scheme must reach at every point. In an experiment without axes,
        `CONNECTION.METRIC` is a metric of one connection.
    least, most : int
        The fewest and the most runs of each scheme at each point.
    """

    needs: str
    targets: Sequence[Target]
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Experiment:
    """A sweep, or a set of traced runs, for figures and claims.

    Attributes
    ----------
    name : str
        Its name within the paper. Its scenario is `NAME.toml` beside the paper's module, unless `scenario`
        names another file.
    axes : mapping of str to str
        The swept settings, by their short names in figures and claims.
    quick : int
        Runs of each scheme at each point. Without axes every run is kept, and at least one is made.
    full : Campaign or int
        The same with `--full`: a rule, or a number where a claim needs more than the means of metrics.
    scenario : str
        The scenario's file without its suffix, unless it is the experiment's name.
    overrides : sequence of str
        Overrides of that scenario besides those of the readings.
    fixed : sequence of str
        Readings that do not apply, since the experiment varies them itself.
    traced : bool
        Whether the kept runs have traces and series.
    """

    name: str
    axes: Mapping[str, str] = field(default_factory=dict)
    quick: int = 0
    full: Campaign | int = 0
    scenario: str = ""
    overrides: Sequence[str] = ()
    fixed: Sequence[str] = ()
    traced: bool = True

    def rule(self, full: bool) -> Rule:
        """Return the stopping rule of each scheme at each point."""
        if full and isinstance(self.full, Campaign):
            return Rule(self.full.least, self.full.most, self.full.targets)
        runs = self.full if full and isinstance(self.full, int) else self.quick
        return Rule(max(1, runs), max(1, runs))


class Claim(Protocol):
    """A statement of the paper's text: the quantity that it is about, and where that must lie."""

    @property
    def id(self) -> str:
        """Its name within the paper."""

    @property
    def section(self) -> str:
        """Its section in the paper."""

    @property
    def statement(self) -> str:
        """The statement in short."""

    @property
    def printed(self) -> str:
        """The value that the paper gives."""

    @property
    def definition(self) -> bool:
        """Whether it holds by construction of the model, so that it is not a result."""

    @property
    def fails_if(self) -> str:
        """The result that would make the verdict *differs*."""

    @property
    def experiments(self) -> Sequence[str]:
        """The experiments needed."""

    def judge(self, evidence: Evidence) -> Judgement:
        """Compare it with the evidence."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a claim.

    Attributes
    ----------
    verdict : str
        One of `lasthop.papers.verdicts.VERDICTS`.
    found : str
        Our result in words.
    ours : float or None
        Our number in basic units, if the claim is about one.
    ci95 : float or None
        Half its 95 % interval.
    note : str
        The reason, or the reading under which it agrees.
    margin : str
        Where our number must lie for the claim to agree, with the reason.
    """

    verdict: str
    found: str
    ours: float | None = None
    ci95: float | None = None
    note: str = ""
    margin: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure of the paper.

    Attributes
    ----------
    id : str
        Its number in the paper, or a name if it is not in the paper.
    title : str
        What it shows.
    experiments : sequence of str
        The experiments needed.
    draw : callable
        Draws it.
    note : str
        A caption.
    """

    id: str
    title: str
    experiments: Sequence[str]
    draw: Callable[[Evidence], DataFigure]
    note: str = ""


def module(name: str) -> str:
    """Return the module name of the paper `name`."""
    return name.replace("-", "_")


@dataclass(frozen=True, slots=True)
class Paper:
    """An executable paper.

    Attributes
    ----------
    name : str
        Its name on the command line; its module has underscores for hyphens.
    title, authors, source : str
        Its bibliographic data.
    readings : sequence of Reading
        The readings.
    experiments : sequence of Experiment
        The experiments.
    figures : sequence of Plot
        The figures.
    claims : sequence of Claim
        The claims.
    """

    name: str
    title: str
    authors: str
    source: str
    readings: Sequence[Reading]
    experiments: Sequence[Experiment]
    figures: Sequence[Plot]
    claims: Sequence[Claim]

    def fitted(self, claim: Claim) -> list[str]:
        """Return the readings whose default was chosen by the fit to a claim."""
        return [reading.name for reading in self.readings if claim.id in reading.fitted]

    def choose(self, wanted: Mapping[str, str]) -> dict[str, Choice]:
        """Return the choice for each reading: that of `wanted`, or the default.

        Raises
        ------
        ValueError
            If a reading or a choice does not exist; the message lists the known ones.
        """
        known = {reading.name: reading for reading in self.readings}
        for name in wanted:
            if name not in known:
                raise ValueError(f"{self.name} has no reading {name!r}; it has {', '.join(known)}")
        chosen = {}
        for name, reading in known.items():
            choices = {choice.name: choice for choice in reading.choices}
            value = wanted.get(name, reading.choices[0].name)
            if value not in choices:
                raise ValueError(f"reading {name!r} cannot be {value!r}, only {', '.join(choices)}")
            chosen[name] = choices[value]
        return chosen

    def scenario(self, experiment: Experiment, chosen: Mapping[str, Choice]) -> Scenario:
        """Return the scenario of an experiment under the chosen readings."""
        file = f"{experiment.scenario or experiment.name}.toml"
        text = (
            resources.files(f"lasthop.papers.{module(self.name)}").joinpath(file).read_text(encoding="utf-8")
        )
        overrides = list(experiment.overrides)
        for name, choice in chosen.items():
            if name not in experiment.fixed:
                overrides += choice.overrides.get("", ())
                overrides += choice.overrides.get(experiment.name, ())
        return Scenario.parse(text, name=file, overrides=overrides)
