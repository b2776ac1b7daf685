"""Coverage of the confidence intervals of fits: `python -m lasthop.fitting.coverage 400`.

Each case simulates probes, or counts of packets, over a link whose losses follow a known model. The table
shows, after model selection, the share of records whose 95 % interval contains the true parameter, and how
often the true family was chosen. Parameters that a record does not determine are not counted. `--first` sets
other seeds.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from lasthop._lasthop import simulate_losses
from lasthop.fitting.loss_fit import fit_losses
from lasthop.fitting.losses import NAMES, FittedLosses, Model
from lasthop.measurement import Counts, Direction, Probes


def periods(
    good_s: float,
    bad_s: float,
    loss_good: float,
    loss_bad: float,
    *,
    good_sigma: float = math.nan,
    bad_sigma: float = math.nan,
) -> Model:
    """Return a model with good and bad periods: mean lengths, losses, and sigmas of lognormal lengths."""
    return {
        "loss": (good_s * loss_good + bad_s * loss_bad) / (good_s + bad_s),
        "good_s": good_s,
        "good_sigma": good_sigma,
        "bad_s": bad_s,
        "bad_sigma": bad_sigma,
        "loss_good": loss_good,
        "loss_bad": loss_bad,
    }


def independent(loss: float) -> Model:
    """Return the model of independent losses."""
    return {**dict.fromkeys(NAMES, math.nan), "loss": loss}


@dataclass(frozen=True, slots=True)
class Case:
    """Simulated probes over a link.

    Attributes
    ----------
    family : str
        The family of the loss model.
    spacing_s, duration_s : float
        Time between probes, and duration. Each probe is late by up to a fifth of the spacing.
    model : Model
        The true model.
    """

    family: str
    spacing_s: float
    duration_s: float
    model: Model
    counted: int = 1

    def probes(self, number: int) -> Probes:
        """Simulate a record of probes, with `number` as its seed."""
        count = round(self.duration_s / self.spacing_s)
        late = np.random.default_rng(number).random(count) / 5
        times = (np.arange(count) + late) * self.spacing_s
        return Probes(Direction.DOWN, times, simulate_losses(times, self.model, number), None)

    def record(self, number: int) -> Probes | Counts:
        """Simulate a record of probes or counts, with `number` as its seed."""
        probes = self.probes(number)
        if self.counted == 1:
            return probes
        lost = probes.lost.reshape(-1, self.counted).sum(axis=1, dtype=np.int64)
        count, interval_s = len(lost), self.counted * self.spacing_s
        sent = np.full(count, self.counted, dtype=np.int64)
        begins = np.arange(count, dtype=np.float64) * interval_s
        return Counts(probes.direction, begins, np.full(count, interval_s), sent, lost)


CASES = (
    Case("independent", 0.02, 300.0, independent(0.02)),
    Case("gilbert", 0.02, 300.0, periods(4.0, 0.4, 0.0, 1.0)),
    Case("gilbert", 0.01, 300.0, periods(2.0, 0.05, 0.0, 1.0)),
    Case("gilbert-elliott-3", 0.02, 300.0, periods(4.0, 0.4, 0.0, 0.9)),
    Case("gilbert-elliott-3", 0.01, 300.0, periods(2.0, 0.05, 0.0, 0.6)),
    Case("gilbert-elliott-3", 0.1, 300.0, periods(4.0, 0.4, 0.0, 0.9)),
    Case("gilbert-elliott", 0.02, 300.0, periods(5.0, 1.0, 0.01, 0.5)),
    Case("gilbert-elliott", 0.02, 600.0, periods(20.0, 2.0, 0.003, 0.3)),
    Case("semi-markov", 0.02, 600.0, periods(9.24, 0.3, 0.0, 1.0, good_sigma=1.5)),
    Case("semi-markov", 0.01, 600.0, periods(4.0, 0.41, 0.0, 1.0, bad_sigma=1.2)),
    Case("gilbert-elliott", 0.02, 300.0, periods(4.0, 0.4, 0.001, 0.9), counted=5),
    *(
        Case(family, 1.0 / counted, 300.0, model, counted)
        for counted in (100, 800)
        for family, model in (
            ("independent", independent(0.02)),
            ("gilbert", periods(4.0, 0.4, 0.0, 1.0)),
            ("gilbert-elliott-3", periods(2.0, 0.05, 0.0, 0.6)),
            ("gilbert-elliott", periods(5.0, 1.0, 0.01, 0.5)),
        )
    ),
)


def covered(found: FittedLosses, truth: Model) -> dict[str, bool]:
    """Return whether each interval contains the true value, for parameters determined by the fit."""
    return {
        each.name: each.low <= truth[each.name] <= each.high
        for each in found.parameters
        if each.determined
        and not math.isnan(truth[each.name])
        and not (each.name.startswith("loss") and truth[each.name] in (0.0, 1.0))
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=int, nargs="?", default=100, help="records of each case")
    parser.add_argument("--first", type=int, default=0, help="seed of the first record of each case")
    parser.add_argument("--case", type=int, action="append", help="only the case with this number, from 0")
    arguments = parser.parse_args()
    records = arguments.records
    for case in CASES if arguments.case is None else [CASES[number] for number in arguments.case]:
        chosen: Counter[str] = Counter()
        determined: Counter[str] = Counter()
        covering: Counter[str] = Counter()
        for number in range(arguments.first, arguments.first + records):
            found = fit_losses(case.record(number), seed=number)
            chosen[found.best.family] += 1
            for name, holds in covered(found, case.model).items():
                determined[name] += 1
                covering[name] += holds
        shares = ", ".join(
            f"{name} {covering[name] / determined[name]:.1%} of {determined[name]}"
            for name in NAMES
            if determined[name]
        )
        right = chosen[case.family]
        counted = f" x {case.counted}" if case.counted > 1 else ""
        probes = f"{case.spacing_s:g} s{counted}, {case.duration_s:g} s"
        print(f"{case.family}, {probes}: chosen {right}/{records}; {shares}", flush=True)


if __name__ == "__main__":
    main()
