"""What was found for one use of a link: the gains of remedies, and the factors that limit the use."""

from __future__ import annotations

from dataclasses import dataclass

from lasthop.advice.remedies import Deployment
from lasthop.advice.uses import Measure, Use
from lasthop.race import Arm

LOSSES = "losses"
"""The limiting factor of all losses."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A limiting factor of the link, and the gain of removing it.

    Attributes
    ----------
    name : str
        The factor removed.
    value : float
        The measure without it, such as the throughput.
    gain, low, high : float
        The gain of removing it, a ratio or a difference, with a 95 % interval.
    matters : bool
        Whether all of the interval is a worthwhile gain.
    """

    name: str
    value: float
    gain: float
    low: float
    high: float
    matters: bool


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a measure of another use under a remedy.

    Attributes
    ----------
    measure : Measure
        The measure.
    now, then : float
        The measure without and with the remedy.
    gain, low, high : float
        The gain, with a 95 % interval.
    harms, helps : bool
        Whether the change is significant and of a worthwhile amount, for the worse or for the better.
    """

    measure: Measure
    now: float
    then: float
    gain: float
    low: float
    high: float
    harms: bool
    helps: bool


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a remedy on another use.

    Attributes
    ----------
    use : Use
        The other use.
    changes : tuple of Change
        The change of each of its measures.
    """

    use: Use
    changes: tuple[Change, ...]

    @property
    def harms(self) -> bool:
        """Whether it harms the use in any measure."""
        return any(each.harms for each in self.changes)

    @property
    def helps(self) -> bool:
        """Whether it helps the use in some measure, and harms it in none."""
        return not self.harms and any(each.helps for each in self.changes)


@dataclass(frozen=True, slots=True)
class Remedy:
    """A remedy and its gain for a use.

    Attributes
    ----------
    arm : Arm
        The sender, the scheme and the queue.
    title, meaning : str
        Its title, and the summary of its scheme and queue discipline.
    deployment : Deployment
        Where and how it is deployed.
    value, low, high : float
        The measure of the use, such as the throughput of a download, with its interval.
    gain, gain_low, gain_high : float
        The mean gain over the draws of the link, and a 95 % prediction interval of the gain on the true link.
        A ratio, above 1 if the remedy is better, or a difference, above 0. Infinite, without an interval, if
        the measure without the remedy is not significantly above zero.
    further : tuple of float
        Means of the additional measures of the use; NaN if unknown.
    status : str
        Among all remedies: `"best"`, `"as good"` as any other, `"worse"` than the best, or `"cannot tell"`.
    worth : bool
        Whether its mean gain is worthwhile, and significant after Holm's adjustment for all remedies. False
        if the measurement leaves questions open and the interval is unbounded.
    useless : bool
        Whether all of its interval is a negligible gain or a loss.
    why : str
        Why it is of no use; empty if unknown.
    """

    arm: Arm
    title: str
    meaning: str
    deployment: Deployment
    value: float
    low: float
    high: float
    gain: float
    gain_low: float
    gain_high: float
    further: tuple[float, ...]
    status: str
    worth: bool
    useless: bool
    why: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """The gains of all remedies for one use.

    Attributes
    ----------
    use : Use
        The use.
    measure : Measure
        The measure by which it is judged.
    further : tuple of Measure
        Measures shown in addition.
    now : Remedy
        The current configuration, one of the remedies.
    limits : tuple of Limit
        The limiting factors, the worst first.
    remedies : tuple of Remedy
        All remedies, the best first.
    advised : tuple of Remedy
        The rungs for this use alone: see `lasthop.advice.selection.ladder`. Empty if nothing is worthwhile.
    refused : tuple of (str, str)
        Remedies that could not be tried, and why.
    """

    use: Use
    measure: Measure
    further: tuple[Measure, ...]
    now: Remedy
    limits: tuple[Limit, ...]
    remedies: tuple[Remedy, ...]
    advised: tuple[Remedy, ...]
    refused: tuple[tuple[str, str], ...]

    @property
    def useless(self) -> tuple[Remedy, ...]:
        """Remedies whose whole 95 % interval is a negligible gain or a loss."""
        return tuple(each for each in self.remedies if each.useless)

    @property
    def undecided(self) -> tuple[Remedy, ...]:
        """Remedies that are neither worthwhile nor useless, by their 95 % intervals."""
        return tuple(
            each for each in self.remedies if each is not self.now and not each.worth and not each.useless
        )

    @property
    def losses_may_matter(self) -> bool:
        """Whether removing all losses may be more than a negligible gain, as far as the measurement tells."""
        losses = next((each for each in self.limits if each.name == LOSSES), None)
        return losses is None or not losses.high < self.measure.negligible

    def of(self, arm: Arm) -> Remedy | None:
        """Return the remedy of an arm; None if it was not tried."""
        return next((each for each in self.remedies if each.arm == arm), None)

    def gain(self, remedy: Remedy) -> str:
        """Return a sentence about the gain of a remedy."""
        gains = (remedy.gain, remedy.gain_low, remedy.gain_high)
        return self.measure.sentence(self.now.value, remedy.value, *gains)
