"""What a paper is made of: experiments, readings, figures and claims. All of it is data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Protocol

from lasthop import Scenario

if TYPE_CHECKING:
    from lasthop.papers.evidence import Evidence
    from lasthop.plots import DataFigure

HOLDS = "holds"
FAILS = "does not hold"
CONTRADICTS = "contradicts itself"


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to read what a paper leaves open.

    Attributes
    ----------
    name : str
        What it is called after `--reading NAME=`.
    note : str
        What it means, and what speaks for it.
    overrides : mapping of str to sequence of str
        What it changes in the scenario of each experiment that it concerns, as `KEY=VALUE`; the
        experiment `""` stands for all of them.
    """

    name: str
    note: str
    overrides: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """Something that a paper leaves open or contradicts itself about.

    Attributes
    ----------
    name : str
        What it is called after `--reading`.
    question : str
        What is open.
    choices : sequence of Choice
        The ways to read it; the first is the default.
    """

    name: str
    question: str
    choices: Sequence[Choice]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A sweep, or traced runs, that figures and claims are about.

    Attributes
    ----------
    name : str
        Its name within the paper; its scenario is the file `NAME.toml` beside the paper's module, or
        that of `scenario`.
    axes : mapping of str to str
        The swept settings, by the short names that figures and claims use.
    quick, full : int
        Runs of each scheme at each point. Without axes each run is kept, and there is one at least.
    scenario : str
        The scenario's file without its ending, if it is not called as the experiment.
    overrides : sequence of str
        What is changed in that scenario, readings aside.
    fixed : sequence of str
        The readings that do not apply, because the experiment is about them.
    traced : bool
        Whether runs that are kept have traces and series.
    """

    name: str
    axes: Mapping[str, str] = field(default_factory=dict)
    quick: int = 0
    full: int = 0
    scenario: str = ""
    overrides: Sequence[str] = ()
    fixed: Sequence[str] = ()
    traced: bool = True


class Claim(Protocol):
    """Something that the paper's text states, with the way to judge it."""

    @property
    def id(self) -> str:
        """Its name within the paper."""

    @property
    def section(self) -> str:
        """Where it stands."""

    @property
    def statement(self) -> str:
        """What it says, in short."""

    @property
    def printed(self) -> str:
        """The value that the paper gives."""

    @property
    def experiments(self) -> Sequence[str]:
        """What must have been run."""

    def judge(self, evidence: Evidence) -> Judgement:
        """Put it beside what was found."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of a claim.

    Attributes
    ----------
    verdict : str
        `HOLDS`, `FAILS` or `CONTRADICTS`.
    found : str
        What was found, in words.
    ours : float or None
        The number found, in basic units, if the claim is about one.
    ci95 : float or None
        Half its 95 % interval.
    note : str
        Why, or under which reading.
    """

    verdict: str
    found: str
    ours: float | None = None
    ci95: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure of the paper.

    Attributes
    ----------
    id : str
        Its number in the paper, or a name if it is ours.
    title : str
        What it shows.
    experiments : sequence of str
        What must have been run.
    draw : callable
        Draws it.
    note : str
        What to see in it.
    """

    id: str
    title: str
    experiments: Sequence[str]
    draw: Callable[[Evidence], DataFigure]
    note: str = ""


def module(name: str) -> str:
    """Return the name of the module of the paper called `name`."""
    return name.replace("-", "_")


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper that can be run.

    Attributes
    ----------
    name : str
        What it is called on the command line; its module has underscores for hyphens.
    title, authors, source : str
        What it is.
    readings : sequence of Reading
        What it leaves open.
    experiments : sequence of Experiment
        What is run.
    figures : sequence of Plot
        What is drawn.
    claims : sequence of Claim
        What is judged.
    """

    name: str
    title: str
    authors: str
    source: str
    readings: Sequence[Reading]
    experiments: Sequence[Experiment]
    figures: Sequence[Plot]
    claims: Sequence[Claim]

    def choose(self, wanted: Mapping[str, str]) -> dict[str, Choice]:
        """Return the choice for each reading: those of `wanted`, the default for the others.

        Raises
        ------
        ValueError
            If there is no such reading or no such choice; the message lists those there are.
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
