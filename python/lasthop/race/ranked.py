"""An arm in the result of a race: its rank, its status and its numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from lasthop.core.paired_quantiles import Span
from lasthop.race.arm import Arm

SIGNIFICANT = 0.05

Status = Literal["best", "as good", "cannot tell", "worse"]
"""The status of an arm.

`"best"`: every other arm is worse. `"as good"`: at most the margin worse than every arm that may be the best.
`"cannot tell"`: not significantly different from the best. `"worse"`: significantly worse than the best, and
not shown to be within the margin.
"""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An arm that is not compared.

    Attributes
    ----------
    arm : Arm
        The arm.
    reason : str
        Why the scenario refuses it, or the earlier arm that it equals.
    same : Arm or None
        The earlier arm that it equals.
    """

    arm: Arm
    reason: str
    same: Arm | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """An arm with its rank and its numbers.

    Attributes
    ----------
    arm : Arm
        The arm.
    rank : int
        The rank, from 1; arms that may be the best share the first.
    status : {"best", "as good", "cannot tell", "worse"}
        The status.
    baseline : bool
        Whether it is the baseline.
    metric : str
        The metric of the numbers.
    runs : int
        The number of runs that count.
    missing, unfinished : int
        Runs without the metric, and runs that did not finish.
    mean : Span
        The mean over runs, with its interval.
    quantile : Span or None
        The quantile over runs, if the race is by a quantile.
    ratio, difference : Span
        The ratio and the difference to the baseline over paired runs; NaN for the baseline, and where there
        is none.
    p_value, p_holm : float
        The p-value of the difference, for all looks, and adjusted for all arms; NaN if it was not tested.
    stopped_early : bool
        Whether other arms have more runs.
    """

    arm: Arm
    rank: int
    status: Status
    baseline: bool
    metric: str
    runs: int
    missing: int
    unfinished: int
    mean: Span
    quantile: Span | None
    ratio: Span
    difference: Span
    p_value: float
    stopped_early: bool
    p_holm: float = math.nan

    @property
    def significant(self) -> bool:
        """Whether the arm differs significantly from the baseline."""
        return self.p_holm < SIGNIFICANT

    def columns(self, quantile: float | None) -> dict[str, Any]:
        """Return the row of `Race.results`, with the quantile that a race is by."""
        return {
            "rank": self.rank,
            "arm": self.arm.label,
            "sender": self.arm.sender,
            "scheme": self.arm.scheme,
            **self.arm.texts,
            "baseline": self.baseline,
            "metric": self.metric,
            "n": self.runs,
            "missing": self.missing,
            "unfinished": self.unfinished,
            **_span(self.mean, "mean", "ci"),
            **({} if self.quantile is None else {"quantile": quantile, **_span(self.quantile, "value")}),
            **_span(self.ratio, "ratio"),
            **_span(self.difference, "difference"),
            "p_value": self.p_value,
            "status": self.status,
            "stopped_early": self.stopped_early,
            "p_holm": self.p_holm,
            "significant": self.significant,
        }


def _span(span: Span, name: str, ends: str | None = None) -> dict[str, float]:
    """Return the columns of a number with its interval."""
    ends = ends or name
    return {name: span.value, f"{ends}_low": span.low, f"{ends}_high": span.high}
