"""Verdicts on claims, and the decision rules for all papers.

A claim is a quantity and the region in which the claim is true: a printed value with a margin, or the meaning
of a phrase of the text. `QUANTIFIERS` defines the phrases once for all papers. The claim

- *agrees* if the whole 95 % confidence interval of our quantity lies within the region,
- *differs* if the whole interval lies outside of the region, and
- *cannot be told* otherwise. More runs usually decide, unless the quantity is close to an end of the region.

*Agrees* is an equivalence test: two one-sided tests at 2.5 % each. If all of several quantities must be
within their regions, the claim agrees if all intervals are within, and differs if one simultaneous interval
(Bonferroni; its first rejection is also Holm's) is outside. If one of several quantities must be within its
region, the roles are exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from lasthop.core.statistics import (
    LEVEL,
    Estimate,
    Kind,
    Sample,
    estimate,
    paired,
    quantile,
    ratio_of_means,
)

AGREES = "agrees"
DIFFERS = "differs"
CANNOT_TELL = "cannot be told"
CONTRADICTS = "contradicts itself"
VERDICTS = (AGREES, DIFFERS, CANNOT_TELL, CONTRADICTS)

ABOUT = 0.2
SAME = 0.1
CLEARLY = 0.05
GREATLY = 0.2
CLOSE, VERY_CLOSE = 0.90, 0.95
NEVER = 0.01
HARDLY = 0.001
TYPICAL = 0.05

QUANTIFIERS = {
    "about 50 %, around 7 s": "within a fifth of the number",
    "doubles, twice, 100 % more": "1.8 to 2.2 times as much",
    "halves, by half": "the inverse: 0.45 to 0.56 of it",
    "up to 30 %": "the largest value is within a fifth of the number; its interval allows for the choice",
    "better, more, faster, larger; less than 60 %": "above (below) at all, or the number itself",
    "grows, falls": "the last value is above the first, and no step is backwards by more than the scatter",
    "clearly, significantly": "by more than 5 %",
    "greatly, much": "by at least a fifth",
    "slightly": "by less than a tenth",
    "the same, alike, similar, constant, little": "within a tenth",
    "close to; very close to": "at least 90 %; at least 95 % of it",
    "never, none, no timeouts": "in at most 1 % of the runs",
    "hardly ever": "at most one in a thousand",
    "one printed run": "what it shows happens in at least 5 % of ours, so it is not an outlier",
}
"""The quantitative meaning of phrases in papers."""


@dataclass(frozen=True, slots=True)
class Unit:
    """The display unit of a quantity.

    Attributes
    ----------
    name : str
        The name.
    size : float
        The size in basic units.
    decimals : int or None
        The number of decimals; None for four significant digits.
    """

    name: str = ""
    size: float = 1.0
    decimals: int | None = None

    def _number(self, value: float) -> str:
        shown = value / self.size
        return f"{shown:.4g}" if self.decimals is None else f"{shown:.{self.decimals}f}"

    def text(self, value: float) -> str:
        """Format a number given in basic units."""
        return f"{self._number(value)} {self.name}".rstrip()

    def estimate(self, found: Estimate) -> str:
        """Format an estimate with its interval."""
        if math.isnan(found.ci95):
            return self.text(found.mean)
        return f"{self._number(found.mean)} ± {self.text(found.ci95)}"

    def interval(self, found: Estimate) -> str:
        """Format the ends of an interval."""
        return f"{self._number(found.low)} to {self.text(found.high)}"


PLAIN = Unit()
PERCENT = Unit("%", 0.01, 1)


@dataclass(frozen=True, slots=True)
class Region:
    """The interval in which a quantity makes a claim true.

    Attributes
    ----------
    low, high : float
        The ends.
    text : str
        The region for people and, after a colon, the reason for its margin.
    strict : bool
        Whether the ends are excluded: a tie is not *better*.
    """

    low: float
    high: float
    text: str
    strict: bool = False


def within(value: float, margin: float, text: str) -> Region:
    """Return the region within `margin` of a printed value."""
    return Region(value - margin, value + margin, text)


def about(value: float) -> Region:
    """Return the region of "about", and of "up to" for the largest of several quantities."""
    low, high = sorted((value * (1 - ABOUT), value * (1 + ABOUT)))
    return Region(low, high, f"{low:.3g} to {high:.3g}: about is within a fifth")


def about_gain(value: float) -> Region:
    """Return the region of "about 30 % better", for a ratio."""
    found = about(value)
    ends = f"{1 + found.low:.2f} to {1 + found.high:.2f} times as much"
    text = (
        f"{ends}, {100 * found.low:+.0f} % to {100 * found.high:+.0f} %: about, or up to, is within a fifth"
    )
    return Region(1 + found.low, 1 + found.high, text)


def doubles(of: float = 1.0) -> Region:
    """Return the region of "doubles", for a ratio or relative to a number."""
    low, high = 1.8 * of, 2.2 * of
    text = "1.8 to 2.2 times as much: doubles" if of == 1.0 else f"{low:.3g} to {high:.3g}: twice {of:g}"
    return Region(low, high, text)


def halves() -> Region:
    """Return the region of "by half", for a ratio."""
    return Region(1 / 2.2, 1 / 1.8, "0.45 to 0.56 of it: halves")


def above(value: float = 1.0, text: str = "more") -> Region:
    """Return the region above a number, by default for a ratio."""
    return Region(value, math.inf, text, strict=True)


def below(value: float = 1.0, text: str = "less") -> Region:
    """Return the region below a number, by default for a ratio."""
    return Region(-math.inf, value, text, strict=True)


def clearly_above() -> Region:
    """Return the region of "clearly better" and "significantly more", for a ratio."""
    return above(1 + CLEARLY, "more by over 5 %: clearly, significantly")


def clearly_below() -> Region:
    """Return the region of "significantly less", for a ratio."""
    return below(1 - CLEARLY, "less by over 5 %: clearly, significantly")


def greatly_above() -> Region:
    """Return the region of "greatly" and "much" more, for a ratio."""
    return above(1 + GREATLY, "more by at least a fifth: greatly, much")


def greatly_below() -> Region:
    """Return the region of "greatly improved" and "much less", for a ratio."""
    return below(1 - GREATLY, "less by at least a fifth: greatly, much")


def slightly_above() -> Region:
    """Return the region of "slightly better", for a ratio."""
    return Region(1.0, 1 + SAME, "more, by under a tenth: slightly")


def slightly_below() -> Region:
    """Return the region of "slightly less", for a ratio."""
    return Region(1 - SAME, 1.0, "less, by under a tenth: slightly")


def same() -> Region:
    """Return the region of "alike", "similar" and "almost constant", for a ratio."""
    return Region(1 - SAME, 1 + SAME, "within a tenth: alike, similar, constant, little")


def reaches(share: float) -> Region:
    """Return the region of "close to" a bound, for a share of the bound."""
    return above(share, f"at least {share:.0%} of it: {'very ' if share >= VERY_CLOSE else ''}close")


def never() -> Region:
    """Return the region of "never", for a share of runs."""
    return below(NEVER, "in at most 1 % of the runs: never")


def typical() -> Region:
    """Return the region for runs like a single printed run, for a share of runs."""
    return above(TYPICAL, "in at least 5 % of the runs: one printed run is not an outlier")


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A measured quantity: the mean of independent values.

    Attributes
    ----------
    values : array of float
        The values; empty if the quantity could not be measured.
    kind : {"signed", "amount", "count", "share"}
        As in `estimate`.
    known : float or None
        The exact value, if it is calculated instead of measured.
    per : float
        The divisor of the mean.
    """

    values: Sample
    kind: Kind = "signed"
    known: float | None = None
    per: float = 1.0

    def at(self, tests: int = 1) -> Estimate:
        """Estimate the quantity; the intervals of `tests` quantities have a joint confidence of 95 %."""
        if self.known is not None:
            return replace(estimate([self.known]), low=self.known, high=self.known)
        found = estimate(self.values, self.kind, 1 - (1 - LEVEL) / tests)
        if self.per == 1.0:
            return found
        mean, low, high, sd = (each / self.per for each in (found.mean, found.low, found.high, found.sd))
        return replace(found, mean=mean, low=low, high=high, sd=sd)


@dataclass(frozen=True, slots=True, eq=False)
class Median(Measured):
    """A measured quantity: the median of independent values, with the interval of `quantile`."""

    def at(self, tests: int = 1) -> Estimate:
        """Estimate the median; without an interval if there are too few values."""
        found = quantile(self.values, 0.5, 1 - (1 - LEVEL) / tests)
        low, high = (found.low, found.high) if found.determined else (math.nan, math.nan)
        mean, low, high = (each / self.per for each in (found.value, low, high))
        return Estimate(found.n, mean, low, high, math.nan, "exact", math.nan, float(found.n))


def calculated(value: float) -> Measured:
    """Return a deterministic quantity."""
    return Measured(np.empty(0), known=value)


def share_of(holds: Sequence[bool] | npt.NDArray[np.bool_]) -> Measured:
    """Return the share of runs for which a condition holds."""
    return Measured(np.asarray(holds, dtype=np.float64), "share")


def ratio(ours: Sample, theirs: Sample) -> Measured:
    """Return the ratio of the means of two samples over the runs that both have."""
    found = ratio_of_means(*paired(ours, theirs))
    return Measured(np.empty(0) if found is None else found)


def rate(events: Sample, of: Sample) -> Measured:
    """Return the rate of events per `of`, from the counts of both in each run.

    Events within a run are correlated, so runs are the sampling unit: the result is the ratio of the means
    over runs. If most runs have no events, the variance is that of the event counts. If no run has events,
    the share of runs with events bounds the rate.
    """
    with_events = int(np.count_nonzero(events))
    if with_events == 0:
        return share_of(events != 0)
    return (
        ratio(events, of)
        if 2 * with_events > len(events)
        else Measured(events, "count", per=float(of.mean()))
    )


@dataclass(frozen=True, slots=True, eq=False)
class Criterion:
    """A quantity and its region.

    Attributes
    ----------
    quantity : Measured
        The quantity.
    region : Region
        The region.
    label : str
        The name in notes; distinct among the criteria of a claim.
    unit : Unit
        The display unit in notes.
    """

    quantity: Measured
    region: Region
    label: str = ""
    unit: Unit = PLAIN


Rule = Literal["every", "some", "largest"]
"""Which criteria must be within their regions; for `"largest"` the largest quantity, in the first region."""


def _is_too_short(found: Estimate) -> bool:
    """Return whether there are too few runs to conclude anything from equal values."""
    return found.method == "alike" and not found.settled


def _inside(found: Estimate, region: Region) -> bool:
    if _is_too_short(found):
        return False
    if region.strict:
        return region.low < found.low and found.high < region.high
    return region.low <= found.low and found.high <= region.high


def _outside(found: Estimate, region: Region) -> bool:
    if _is_too_short(found):
        return False
    return found.high < region.low or found.low > region.high


def _every(criteria: Sequence[Criterion]) -> str:
    if any(_outside(criterion.quantity.at(len(criteria)), criterion.region) for criterion in criteria):
        return DIFFERS
    return (
        AGREES
        if all(_inside(criterion.quantity.at(), criterion.region) for criterion in criteria)
        else CANNOT_TELL
    )


def _some(criteria: Sequence[Criterion]) -> str:
    if any(_inside(criterion.quantity.at(len(criteria)), criterion.region) for criterion in criteria):
        return AGREES
    return (
        DIFFERS
        if all(_outside(criterion.quantity.at(), criterion.region) for criterion in criteria)
        else CANNOT_TELL
    )


def _largest(criteria: Sequence[Criterion]) -> str:
    found, region = largest([criterion.quantity for criterion in criteria]), criteria[0].region
    return AGREES if _inside(found, region) else DIFFERS if _outside(found, region) else CANNOT_TELL


_RULES: dict[Rule, Callable[[Sequence[Criterion]], str]] = {
    "every": _every,
    "some": _some,
    "largest": _largest,
}


def verdict(criteria: Sequence[Criterion], rule: Rule = "every") -> str:
    """Return the verdict for quantities and their regions.

    Examples
    --------
    >>> import numpy as np
    >>> measured = Measured(np.array([9.0, 9.2, 9.1, 9.3]))
    >>> [verdict([Criterion(measured, within(9.0, m, ""))]) for m in (0.5, 0.1)]
    ['agrees', 'cannot be told']
    >>> verdict([Criterion(measured, above(10.0))])
    'differs'
    """
    assert criteria, "a claim is about something"
    return _RULES[rule](criteria)


def _excess(found: Estimate, region: Region) -> float:
    """Return how far the interval extends beyond the region, in half-widths; negative if it does not."""
    return _in_widths(max(region.low - found.low, found.high - region.high), found)


def _distance(found: Estimate, region: Region) -> float:
    """Return the distance between interval and region, in half-widths; negative if they overlap."""
    return _in_widths(max(region.low - found.high, found.low - region.high), found)


def _in_widths(length: float, found: Estimate) -> float:
    if math.isnan(length):
        # A missing interval counts as the least certain.
        return math.inf
    return length / (found.ci95 or abs(found.mean) or 1.0)


def deciding(criteria: Sequence[Criterion], rule: Rule = "every") -> tuple[Criterion, Estimate]:
    """Return the criterion that decides the verdict, and its estimate.

    If all criteria must be within their regions: the one furthest outside, otherwise the one closest
    to an end.
    If one criterion must be: the one deepest inside, otherwise the one closest to its region.
    """
    if rule == "largest":
        return criteria[0], largest([criterion.quantity for criterion in criteria])
    found = verdict(criteria, rule)
    # A verdict based on one of several criteria uses simultaneous intervals.
    alone = [(criterion, criterion.quantity.at()) for criterion in criteria]
    together = [(criterion, criterion.quantity.at(len(criteria))) for criterion in criteria]
    if rule == "some":
        open_ones = [each for each in alone if not _outside(each[1], each[0].region)] or alone
        if found == AGREES:
            criterion, _ = min(together, key=lambda each: _excess(each[1], each[0].region))
        else:
            criterion, _ = min(open_ones, key=lambda each: _distance(each[1], each[0].region))
    elif found == DIFFERS:
        outside = [each for each in together if _outside(each[1], each[0].region)]
        criterion, _ = max(outside, key=lambda each: _distance(each[1], each[0].region))
    else:
        open_ones = [each for each in alone if not _inside(each[1], each[0].region)] or alone
        criterion, _ = max(open_ones, key=lambda each: _excess(each[1], each[0].region))
    return criterion, criterion.quantity.at()


def undecided(criteria: Sequence[Criterion], rule: Rule = "every") -> str:
    """Return why the claim is undecided: the criterion furthest from a decision, its interval and its region.

    Examples
    --------
    >>> import numpy as np
    >>> measured = Measured(np.array([9.0, 9.2, 9.1, 9.3]))
    >>> undecided([Criterion(measured, within(9.0, 0.1, "8.9 to 9.1"), "at 3 dB")])
    'undecided: at 3 dB: 8.945 to 9.355, n = 4 (agrees if 8.9 to 9.1)'
    """
    criterion, found = deciding(criteria, rule)
    if rule != "largest":
        # With several criteria, simultaneous intervals decide.
        found = criterion.quantity.at(len(criteria))
    unit = PERCENT if criterion.quantity.kind == "share" else criterion.unit
    if _is_too_short(found):
        interval = f"{unit.text(found.mean)} in each run, too few runs"
    elif math.isnan(found.low):
        interval = "no interval"
    else:
        interval = unit.interval(found)
    label = f"{criterion.label}: " if criterion.label and rule != "largest" else ""
    condition, _, _ = criterion.region.text.partition(": ")
    return f"undecided: {label}{interval}, n = {found.n:,} (agrees if {condition})"


def largest(quantities: Sequence[Measured]) -> Estimate:
    """Estimate the largest of several quantities; the interval allows for the selection."""
    found = [quantity.at(len(quantities)) for quantity in quantities]
    if any(math.isnan(each.low) for each in found):
        return estimate([])
    best = max(found, key=lambda each: each.mean)
    return replace(best, low=max(each.low for each in found), high=max(each.high for each in found))


def difference(ours: Measured, theirs: Measured, offset: float = 0.0) -> Measured:
    """Return the difference of two quantities, plus an offset, over their common runs."""
    runs = min(len(ours.values), len(theirs.values))
    return Measured(ours.values[:runs] - theirs.values[:runs] + offset)


def labels_outside(criteria: Sequence[Criterion]) -> list[str]:
    """Return the labels of the quantities outside their regions, by simultaneous intervals."""
    return [
        criterion.label
        for criterion in criteria
        if _outside(criterion.quantity.at(len(criteria)), criterion.region)
    ]
