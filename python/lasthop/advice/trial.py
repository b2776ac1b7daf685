"""The accuracy of advice: on random links, the advised remedy against the best one to be had, by brute force.

``python -m lasthop.advice.trial 200`` draws links with losses of all kinds, measures each by simulated
probes, asks for advice, and then runs every remedy on the true link. ``--for call`` asks for calls in place
of downloads; other uses likewise.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lasthop._lasthop import Scenario
from lasthop.advice.advice import advise
from lasthop.advice.judgement import Judgement
from lasthop.advice.uses import USES, Measure
from lasthop.core import formats
from lasthop.fitting import fit
from lasthop.fitting.coverage import Case, independent, periods
from lasthop.fitting.losses import Model
from lasthop.fitting.scenario import channel
from lasthop.measurement import Delays, Direction, Measurement
from lasthop.race import Arm, Race

WITHIN = 0.05
"""Tolerated shortfall of the advised remedy against the best, for gains that are ratios."""

PROBES_S, MEASURED_S = 0.02, 300.0


@dataclass(frozen=True)
class Truth:
    """A random link.

    Attributes
    ----------
    rate_bps, rtt_s, last_hop_rtt_s : float
        Rate, round-trip time, and the last hop's part of it.
    model : Model
        Its losses.
    """

    rate_bps: float
    rtt_s: float
    last_hop_rtt_s: float
    model: Model

    @classmethod
    def draw(cls, random: np.random.Generator) -> Truth:
        """Draw a link: a third each with independent losses, with bursts, and with both."""
        rate = math.exp(random.uniform(math.log(1e6), math.log(2e7)))
        rtt = math.exp(random.uniform(math.log(0.02), math.log(0.3)))
        loss = math.exp(random.uniform(math.log(1e-3), math.log(0.05)))
        kind = random.integers(3)
        hop = min(0.02, rtt / 2)
        if kind == 0:
            return cls(rate, rtt, hop, independent(loss))
        bad = math.exp(random.uniform(math.log(0.02), math.log(1.0)))
        loss_bad = random.uniform(0.3, 1.0)
        share = min(loss / loss_bad, 0.3)
        loss_good = 0.0 if kind == 1 else loss / 10
        return cls(rate, rtt, hop, periods(bad * (1 - share) / share, bad, loss_good, loss_bad))

    def measured(self, number: int) -> Measurement:
        """Return the measurement of simulated probes over this link."""
        probes = Case("", PROBES_S, MEASURED_S, self.model).probes(number)
        delays = (Delays(Direction.ROUND_TRIP, probes.sent_s, np.full(len(probes.sent_s), self.rtt_s)),)
        return Measurement("probes", "irtt", MEASURED_S, probes=(probes,), delays=delays)


@dataclass(frozen=True)
class TrialResult:
    """The outcome of one trial.

    Attributes
    ----------
    truth : Truth
        The link.
    measure : Measure
        The measure by which the use was judged.
    advised, best : str
        Titles of the last advised remedy, which takes the most effort, and of the best remedy.
    short_of : float
        The shortfall of the advised remedy against the best: a fraction, or a difference if gains are
        differences.
    gain, low, high : float
        The true gain of the advised remedy, and the interval that was stated.
    """

    truth: Truth
    measure: Measure
    advised: str
    best: str
    short_of: float
    gain: float
    low: float
    high: float

    @property
    def right(self) -> bool:
        """Whether no other remedy is better than the advised one by a worthwhile amount."""
        return self.short_of <= (WITHIN if self.measure.min_difference is None else self.measure.threshold)

    @property
    def helped(self) -> bool:
        """Whether anything was advised, with an interval of its gain."""
        return self.low < self.high

    @property
    def covered(self) -> bool:
        """Whether the stated interval holds the true gain."""
        return self.low <= self.gain <= self.high


def trial(number: int, use: str = "bulk", *, runs: int = 128, jobs: int | None = None) -> TrialResult:
    """Draw a link, measure it, ask for advice, and find the best remedy by brute force."""
    truth = Truth.draw(np.random.default_rng(number))
    link = fit(
        truth.measured(number), rate_bps=truth.rate_bps, last_hop_rtt_s=truth.last_hop_rtt_s, jobs=jobs
    )
    advice = advise(link, use, effects=False, jobs=jobs)
    judgement = advice.first
    measure, now = judgement.measure, judgement.now
    taken = advice.advised[-1] if advice.advised else now
    losses = channel(truth.model)
    values = _brute_force(judgement, link.scenario(losses), losses, runs, jobs)
    gains = {arm: gain_of(measure, values[now.arm], value) for arm, value in values.items()}
    best = max(gains, key=lambda arm: gains[arm])
    gain = gains[taken.arm]
    short_of = 1 - gain / gains[best] if measure.min_difference is None else gains[best] - gain
    titles = {each.arm: each.title for each in judgement.remedies}
    return TrialResult(
        truth, measure, taken.title, titles[best], short_of, gain, taken.gain_low, taken.gain_high
    )


def gain_of(measure: Measure, now: float, then: float) -> float:
    """Return the gain from one value of a measure to another; none if a value is unknown."""
    if not (math.isfinite(now) and math.isfinite(then)):
        return measure.no_change
    if measure.min_difference is not None:
        return then - now if measure.better == "higher" else now - then
    return then / now if measure.better == "higher" else now / then


def _brute_force(
    judgement: Judgement, link: Scenario, losses: Any, runs: int, jobs: int | None
) -> dict[Arm, float]:
    """Return the measure of each remedy to be had today on the true link, over fades of its own."""
    use = judgement.use
    arms = [each.arm for each in judgement.remedies if each.deployment.available]
    # With an error this small, no arm stops early.
    race = Race(
        use.scenario(link),
        arms,
        baseline=judgement.now.arm,
        metric=judgement.measure.metric,
        overrides=[{"limit": use.limit_s, **({"radio.uplink.channel": losses} if use.upward else {})}],
        seed=1_000_003,
        error=1e-12,
        precision=None,
        runs=(runs, runs),
    )
    race.run(jobs)
    means = {each.arm: each.mean.value for each in race.ranking()}
    return {arm: means[arm] for arm in arms}


def main() -> None:
    """Print the outcome for each link, and how often the advice was right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("links", type=int, nargs="?", default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--for", dest="use", choices=USES, default="bulk", help="the use of the links")
    parser.add_argument("--runs", type=int, default=128, help="runs of each remedy on the true link")
    parser.add_argument("--jobs", type=int, default=None)
    arguments = parser.parse_args()
    outcomes = []
    for number in range(arguments.first, arguments.first + arguments.links):
        found = trial(number, arguments.use, runs=arguments.runs, jobs=arguments.jobs)
        outcomes.append(found)
        right = sum(each.right for each in outcomes)
        stated = [each.covered for each in outcomes if each.helped]
        truth = found.truth
        by = f"{found.short_of:.1%}" if found.measure.min_difference is None else f"{found.short_of:.2f}"
        print(
            f"{number}: {formats.rate(truth.rate_bps)} {formats.seconds(truth.rtt_s)} "
            f"loss {formats.share(truth.model['loss'])} bad {truth.model['bad_s']:.3f} s: {found.advised}, "
            f"best {found.best}, short of it by {by}; "
            f"gain {found.gain:.2f} in {found.low:.2f} to {found.high:.2f}; "
            f"so far {right}/{len(outcomes)} right, {sum(stated)}/{len(stated)} covered",
            flush=True,
        )


if __name__ == "__main__":
    main()
