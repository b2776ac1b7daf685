"""The data model of an executable paper: experiments, readings, figures and claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from lasthop._lasthop import Scenario
from lasthop.engine.stopping import Rule, Target

if TYPE_CHECKING:
    from lasthop.papers.evidence import Evidence
    from lasthop.plots import DataFigure


Settings: TypeAlias = Mapping[str, Any]
"""Values of settings by their keys, as `Scenario.with_` takes them."""


def rounded(value: float, digits: int) -> float:
    """Return a number with so many significant digits, as a paper's scenario states it.

    Examples
    --------
    >>> rounded(1 / 256_000, 8), rounded(1 / 3, 2)
    (3.90625e-06, 0.33)
    """
    return float(f"{value:.{digits}g}")


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice of a reading.

    Attributes
    ----------
    name : str
        The name in `--reading READING=NAME`.
    note : str
        The meaning of the choice, and the evidence for it.
    overrides : mapping of str to mapping
        Settings that it changes, by experiment; the key `""` stands for all experiments.
    metrics : mapping of str to str
        Metrics that figures and claims use in place of others.
    """

    name: str
    note: str
    overrides: Mapping[str, Settings] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """An ambiguity of a paper: a parameter or rule that is missing or contradictory, with possible choices.

    Attributes
    ----------
    name : str
        The name in `--reading NAME=CHOICE`.
    question : str
        The open question.
    choices : sequence of Choice
        The choices; the first is the default.
    fitted : sequence of str
        The claims to which the default was fitted; these claims are weaker tests of the model. Empty if the
        default follows the text or common practice.
    """

    name: str
    question: str
    choices: Sequence[Choice]
    fitted: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Campaign:
    """The stopping rule of an experiment with `--full`, for each scheme at each point.

    Attributes
    ----------
    needs : str
        Why the figures and claims need this precision and no higher one.
    targets : sequence of Target
        The required precisions.
    least, most : int
        Minimum and maximum runs of each scheme at each point.
    """

    needs: str
    targets: Sequence[Target]
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Experiment:
    """A study, or a set of runs with traces.

    Attributes
    ----------
    name : str
        The name within the paper. The scenario is `NAME.toml` beside the paper's module, unless `scenario`
        is set.
    axes : mapping of str to str
        The swept settings, by their short names in figures and claims.
    quick : int
        Runs of each scheme at each point; at least one without axes.
    full : Campaign or int
        The stopping rule with `--full`, or a fixed number of runs if a claim needs more than means.
    scenario : str
        The scenario file without suffix, if it differs from the name.
    overrides : mapping of str to Any
        Settings that differ from those of the scenario file. Readings change them in turn.
    fixed : sequence of str
        Readings that do not apply, since the experiment sets these keys itself.
    traced : bool
        Whether runs of an experiment without axes have traces and series; their number is fixed.
    metrics : sequence of str
        Metrics of parts that figures and claims need, such as those of connections.
    """

    name: str
    axes: Mapping[str, str] = field(default_factory=dict)
    quick: int = 0
    full: Campaign | int = 0
    scenario: str = ""
    overrides: Settings = field(default_factory=dict)
    fixed: Sequence[str] = ()
    traced: bool = True
    metrics: Sequence[str] = ()

    def rule(self, full: bool, metrics: Mapping[str, str]) -> Rule:
        """Return the stopping rule of each scheme at each point, with the metrics that readings choose."""
        if full and isinstance(self.full, Campaign):
            targets = [
                replace(each, metric=metrics.get(each.metric, each.metric)) for each in self.full.targets
            ]
            return Rule(self.full.least, self.full.most, targets)
        runs = self.full if full and isinstance(self.full, int) else self.quick
        return Rule(max(1, runs), max(1, runs))


class Claim(Protocol):
    """A statement of the paper's text, with the quantity to measure and its region."""

    @property
    def id(self) -> str:
        """The name within the paper."""

    @property
    def section(self) -> str:
        """The section of the paper."""

    @property
    def statement(self) -> str:
        """The statement, abridged."""

    @property
    def printed(self) -> str:
        """The value in the paper."""

    @property
    def definition(self) -> bool:
        """Whether the claim holds by construction of the model and thus is not a result."""

    @property
    def fails_if(self) -> str:
        """The result that would make the verdict *differs*."""

    @property
    def experiments(self) -> Sequence[str]:
        """The experiments needed."""

    def judge(self, evidence: Evidence) -> Judgement:
        """Compare the claim with the evidence."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a claim.

    Attributes
    ----------
    verdict : str
        One of `lasthop.papers.verdicts.VERDICTS`.
    found : str
        Our result, for people.
    ours : float or None
        Our number in basic units, if the claim is about a single number.
    ci95 : float or None
        Half of its 95 % interval.
    note : str
        The reason, or the reading under which the claim agrees.
    margin : str
        The region in which the claim agrees, with the reason.
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
        The number in the paper, or a name for a further figure.
    title : str
        The title.
    experiments : sequence of str
        The experiments needed.
    draw : callable
        Draws the figure.
    note : str
        The caption.
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
        The name on the command line; the module name has underscores in place of hyphens.
    title, authors, source : str
        Bibliographic data.
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
        """Return the readings whose default was fitted to a claim."""
        return [reading.name for reading in self.readings if claim.id in reading.fitted]

    def choose(self, wanted: Mapping[str, str]) -> dict[str, Choice]:
        """Return the choice for each reading: from `wanted`, or the default.

        Raises
        ------
        ValueError
            If a reading or choice does not exist; the message lists the valid ones.
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
        changes = [experiment.overrides]
        for name, choice in chosen.items():
            if name not in experiment.fixed:
                changes += [choice.overrides.get(each, {}) for each in ("", experiment.name)]
        return Scenario.parse(text, name=file).with_(*changes)
