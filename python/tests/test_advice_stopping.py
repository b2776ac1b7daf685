"""When remedies stop early in advice, and what that does to gains, on runs that are drawn."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pytest

from lasthop import Scenario
from lasthop._lasthop import METRICS
from lasthop.advice import Judgement, remedies
from lasthop.advice.judge import Judge
from lasthop.fitting import stated_link
from lasthop.race import Arm

NOW, BBR, WESTWOOD, RENO = (
    Arm(sender, "basic") for sender in ("linux", "linux-bbr", "linux-westwood", "linux-reno")
)
ARQ, SPLIT, SNOOP, FEC = (Arm("linux", scheme) for scheme in ("arq", "i-tcp", "snoop", "packet-fec"))
MEANS = {NOW: 3.0, BBR: 7.2, WESTWOOD: 6.0, RENO: 2.95, ARQ: 7.35, SPLIT: 7.3, SNOOP: 7.25, FEC: 4.0}
"""The mean throughput of each remedy."""


class Drawn:
    """A pool that draws its runs: all arms share the fades, which slow arms suffer from most."""

    seed = 0
    runs: ClassVar[Counter[Arm]] = Counter()

    def __init__(self, jobs: int | None, metrics: list[str]) -> None:
        self.names = (*METRICS, *metrics)
        self.waiting: list[tuple[int, int, int, str, tuple[Any, ...]]] = []

    def __enter__(self) -> Drawn:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def submit(self, key: int, scenario: Scenario, scheme: str, seed: int, first_run: int, runs: int) -> None:
        arm = Arm(scenario.sender, scheme)
        self.runs[arm] += runs
        # The first row has the fades, the others have what is each remedy's own.
        drawn = np.random.default_rng(self.seed).standard_normal((1 + len(MEANS), 128))
        own = drawn[1 + list(MEANS).index(arm)]
        for run in range(first_run, first_run + runs):
            log = suffers(arm) * drawn[0, run] - suffers(arm) ** 2 / 2 + 0.02 * own[run]
            value = MEANS[arm] * math.exp(log)
            values = {"throughput_bps": value, "finished": True}
            self.waiting.append((key, run, 1, "finished", tuple(map(values.get, self.names))))

    def collect(self, timeout_s: float) -> list[Any]:
        done, self.waiting = self.waiting, []
        return done

    def cancel(self) -> None:
        self.waiting.clear()


def suffers(arm: Arm) -> float:
    """Return the relative spread of an arm over the fades."""
    return 0.05 if MEANS[arm] > 5 else 0.25


@pytest.fixture(autouse=True)
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lasthop.race.race.Pool", Drawn)
    monkeypatch.setattr(remedies, "arms", lambda sender: list(MEANS))
    monkeypatch.setattr(Judge, "_short", lambda *_: {})
    monkeypatch.setattr(Judge, "_limits", lambda *_: [])


def judged(seed: int, *, sole: bool = True) -> tuple[Judgement, dict[Arm, int]]:
    """Judge downloads by the runs of a seed, and count those of the remedies."""
    Drawn.seed, Drawn.runs = seed, Counter()
    judge = Judge(stated_link(8e6, 0.06), "linux", seed=1, jobs=1, report=lambda *_: None)
    found = judge.judge(judge.use("bulk"), (64, 128), sole=sole)
    return found, dict(Drawn.runs)


def test_only_what_may_be_advised_goes_on() -> None:
    found, runs = judged(1)
    assert [each.arm for each in found.advised] == [BBR]
    # What is advised, and the two that may replace it.
    assert all(runs[arm] >= 64 for arm in (BBR, ARQ, SPLIT))
    # What is no better for more effort, what is worse for as much, and what gains less for more; and no use.
    assert all(runs[arm] == 32 for arm in (SNOOP, WESTWOOD, FEC, RENO))
    assert found.of(RENO) in found.useless
    # With several uses, another one may need them.
    _, runs = judged(1, sole=False)
    assert min(runs.values()) >= 64


def test_what_is_not_certain_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remedies near the bound of what is of no use, and of what is worth more effort."""
    # The third for as much effort, which the two that may replace the advice do not include.
    for arm, mean in {ARQ: 7.55, SPLIT: 7.54, SNOOP: 7.53, FEC: 3.06}.items():
        monkeypatch.setitem(MEANS, arm, mean)
    _, runs = judged(1)
    assert all(runs[arm] >= 64 for arm in (ARQ, SPLIT, SNOOP, FEC))
    assert all(runs[arm] == 32 for arm in (WESTWOOD, RENO))


def test_stopping_early_costs_neither_the_advice_nor_the_intervals() -> None:
    """Over 50 seeds, the advice is right, and intervals hold the true gain, also of what stopped early."""
    every = [judged(seed)[0] for seed in range(50)]
    assert all([each.arm for each in found.advised] == [BBR] for found in every)
    spread = {}
    for arm in (BBR, WESTWOOD, RENO, ARQ, SPLIT, SNOOP, FEC):
        those = [each for found in every if (each := found.of(arm)) is not None]
        held = sum(each.gain_low <= MEANS[arm] / MEANS[NOW] <= each.gain_high for each in those)
        # Binomial with 50 and 0.95: at least 42 with a probability of 99.9 %.
        assert held >= 42, arm
        spread[arm] = np.std([each.gain for each in those])
    # By way of the leader, the gain of a remedy like it is as precise as if that had all runs.
    assert spread[SNOOP] < 1.15 * spread[ARQ]
