"""The precision reached by an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lasthop.core.statistics import Estimate, Sample, estimate
from lasthop.core.units import metric_kind
from lasthop.engine.stopping import Rule, Target


@dataclass(frozen=True, slots=True)
class Widest:
    """The widest interval of a metric, relative to the target half-width.

    Attributes
    ----------
    target : Target
        The metric and the target half-width.
    excess : float
        The widest half-width over the target; more than 1 if the maximum number of runs did not suffice.
    wider : int
        The number of means that miss the target.
    means : int
        The number of all means.
    """

    target: Target
    excess: float
    wider: int
    means: int

    @property
    def wanted(self) -> str:
        """The target, for people."""
        shares = [f"±{100 * self.target.relative:g} %"] if self.target.relative else []
        widths = [f"±{self.target.absolute:g}"] if self.target.absolute else []
        return f"{self.target.metric} {' or '.join(shares + widths)}"

    @property
    def text(self) -> str:
        """The target and the precision reached, for people."""
        if not self.wider:
            return f"{self.wanted}, reached"
        missed = f"not reached by {self.wider} of {self.means}"
        return f"{self.wanted}, {missed} (up to {self.excess:.1f} times as wide)"


@dataclass(frozen=True, slots=True)
class Reached:
    """The number of runs and the precision of an experiment.

    Attributes
    ----------
    least, most : int
        Minimum and maximum runs of a scheme at a point.
    widest : sequence of Widest
        The widest interval for each target.
    """

    least: int
    most: int
    widest: Sequence[Widest]

    @property
    def text(self) -> str:
        """The runs and the precision, for people."""
        runs = f"{self.least:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"
        return f"{runs} runs of each scheme at each point; {'; '.join(each.text for each in self.widest)}"


def reached(rule: Rule, counts: Sequence[int], samples: Sequence[Mapping[str, Sample]]) -> Reached:
    """Compare intervals with the targets of a stopping rule.

    Parameters
    ----------
    rule : Rule
        The stopping rule.
    counts : sequence of int
        The number of runs of each scheme at each point.
    samples : sequence of mapping of str to Sample
        The values of each metric, for each scheme at each point.
    """
    widest = []
    for target in rule.targets:
        found: list[Estimate] = []
        for sample in samples:
            values = sample[target.metric]
            found.append(estimate(values[~np.isnan(values)], metric_kind(target.metric)))
        # Only the width; the rule itself checks for enough events.
        excesses = [target.width(each) for each in found if each.n > 1]
        wider = sum(each > 1 for each in excesses)
        widest.append(Widest(target, max(excesses, default=0.0), wider, len(excesses)))
    return Reached(min(counts), max(counts), widest)
