"""How often the intervals cover the truth, measured on synthetic studies: `python -m lasthop.study.coverage`.

Each case is a distribution of runs whose mean is known. Studies of it stop by the rule of `lasthop study`, or
have a fixed number of runs. A study that is marked *too few events* does not claim to cover.
docs/reports/2026-11-study-coverage.md has the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from lasthop.core.statistics import (
    Estimate,
    Kind,
    Sample,
    estimate,
    holm,
    linearised_ratio,
    paired_difference,
)
from lasthop.engine.stopping import Rule, Target

STUDIES = 2000
MOST = 1000
PRECISION = 0.05
RULES = {
    "10 runs": (10, 10),
    "100 runs": (100, 100),
    "300 runs": (300, 300),
    "10:1000": (10, MOST),
    "100:1000": (100, MOST),
}
"""The columns of the table: the fewest and the most runs of a study."""

Draw = Callable[[np.random.Generator, int], Sample]


@dataclass(frozen=True, slots=True)
class Case:
    """A distribution of runs.

    Attributes
    ----------
    name : str
        What it is.
    draw : callable
        Returns so many runs.
    truth : float
        Their mean, or the ratio of the means.
    kind : {"signed", "amount", "count", "share"}
        As in `estimate`.
    under : callable or None
        Returns what the runs are divided by, of a ratio of sums; from a generator in the same state.
    """

    name: str
    draw: Draw
    truth: float
    kind: Kind = "amount"
    under: Draw | None = None


@dataclass(frozen=True, slots=True)
class Coverage:
    """The outcome of the studies of one case.

    Attributes
    ----------
    covered : float
        The share whose interval covers the truth.
    few : float
        The share that is marked as having too few events.
    misled : float
        The share that neither covers nor is marked.
    """

    covered: float
    few: float
    misled: float


_UNFINISHED = 0.05


def _outliers(share: float) -> Draw:
    return lambda g, n: g.normal(10.0, 1.0, n) + 50.0 * (g.random(n) < share)


def _bits(generator: np.random.Generator, runs: int) -> Sample:
    return np.where(generator.random(runs) < _UNFINISHED, 4.0, 8.0)


def _time(generator: np.random.Generator, runs: int) -> Sample:
    """Return times of which the limit ends some."""
    return np.where(generator.random(runs) < _UNFINISHED, 100.0, generator.gamma(10.0, 1.0, runs))


CASES = (
    Case("normal, sd a fifth of the mean", lambda g, n: g.normal(10.0, 2.0, n), 10.0),
    Case("exponential", lambda g, n: g.exponential(1.0, n), 1.0),
    Case("lognormal, sd of logs 0.5", lambda g, n: g.lognormal(0.0, 0.5, n), math.exp(0.125)),
    Case("lognormal, sd of logs 1", lambda g, n: g.lognormal(0.0, 1.0, n), math.exp(0.5)),
    Case("skewed share: beta(8, 0.5)", lambda g, n: g.beta(8.0, 0.5, n), 8 / 8.5, "share"),
    Case("skewed share: beta(2, 0.2)", lambda g, n: g.beta(2.0, 0.2, n), 2 / 2.2, "share"),
    Case("events, 1 in a run", lambda g, n: g.poisson(1.0, n).astype(float), 1.0, "count"),
    Case("events, 0.05 in a run", lambda g, n: g.poisson(0.05, n).astype(float), 0.05, "count"),
    Case("events, 0.01 in a run", lambda g, n: g.poisson(0.01, n).astype(float), 0.01, "count"),
    Case("finished or not, 2 % are not", lambda g, n: (g.random(n) < 0.98).astype(float), 0.98, "share"),
    Case("5 % outliers", _outliers(0.05), 12.5),
    Case("20 % outliers", _outliers(0.2), 20.0),
    Case(
        "bits over time, 5 % unfinished",
        _bits,
        (8 - 4 * _UNFINISHED) / (10 + 90 * _UNFINISHED),
        "signed",
        _time,
    ),
)


def measure(case: Case, least: int, most: int, studies: int = STUDIES, seed: int = 1) -> Coverage:
    """Return how often studies of a case cover the truth."""
    rule = Rule(least, most, [Target("x", relative=PRECISION)] if most > least else [])
    covered, few, misled = 0, 0, 0
    for study in range(studies):
        over, under = (
            None if draw is None else draw(np.random.default_rng([seed, study]), most)
            for draw in (case.draw, case.under)
        )
        assert over is not None
        found = _stopped(rule, case.kind, over, under)
        covers = found.low <= case.truth <= found.high
        covered += covers
        few += found.few
        misled += not covers and not found.few
    return Coverage(covered / studies, few / studies, misled / studies)


def _stopped(rule: Rule, kind: Kind, over: Sample, under: Sample | None) -> Estimate:
    """Return the estimate at which a study with these runs stops."""
    found = estimate([])
    for runs in rule.checkpoints():
        sample = over[:runs] if under is None else linearised_ratio(over[:runs], under[:runs])
        found = estimate(sample, kind)
        if rule.satisfied([target.excess(found) for target in rule.targets]):
            break
    return found


def false_positives(draw: Draw, runs: int, studies: int = STUDIES, seed: int = 1) -> float:
    """Return how often two equal schemes, in pairs over the same fades, are called different."""
    wrong = 0
    for study in range(studies):
        generator = np.random.default_rng([seed, study])
        fades = draw(generator, runs)
        ours, theirs = (fades * generator.lognormal(0.0, 0.2, runs) for _ in range(2))
        wrong += paired_difference(ours, theirs).difference.p_value < 0.05
    return wrong / studies


def family_errors(tests: int, studies: int = STUDIES, seed: int = 1) -> float:
    """Return how often a table of so many tests calls any difference significant that there is not."""
    uniform = np.random.default_rng(seed).uniform(size=(studies, tests))
    return float(np.mean([min(holm(row.tolist())) < 0.05 for row in uniform]))


def table(studies: int = STUDIES) -> Iterator[str]:
    """Yield the lines of the table of docs/reports/2026-11-study-coverage.md."""
    yield "| runs of | " + " | ".join(RULES) + " |"
    yield "|---|" + "---|" * len(RULES)
    for case in CASES:
        cells = []
        for least, most in RULES.values():
            found = measure(case, least, most, studies)
            marked = f"; {100 * found.few:.0f} % too few, {100 * found.misled:.1f} % neither"
            mark = " (too few)" if found.few == 1 else marked if found.few else ""
            cells.append(f"{100 * found.covered:.1f} %{mark}")
        yield f"| {case.name} | " + " | ".join(cells) + " |"
    yield ""
    yield "| false positives of | 10 pairs | 100 pairs |"
    yield "|---|---|---|"
    for name, draw in (("exponential", CASES[1].draw), ("lognormal, sd of logs 1", CASES[3].draw)):
        shares = [f"{100 * false_positives(draw, runs, studies):.1f} %" for runs in (10, 100)]
        yield f"| pairs of equal schemes, {name} fades | " + " | ".join(shares) + " |"
    yield f"| a table of 12 tests, by Holm's adjustment | {100 * family_errors(12, 10 * studies):.1f} % | |"


if __name__ == "__main__":
    print(*table(), sep="\n")
