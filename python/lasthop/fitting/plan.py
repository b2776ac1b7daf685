"""The measurement that a reliable fit needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lasthop.core.formats import plural
from lasthop.fitting.losses import FEWEST_LOSSES, FittedLosses

PERIODS = 60
"""Bad periods needed to estimate their mean length within 25 %."""

SHORTEST_S, LONGEST_S = 300.0, 3600.0


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """A recommended measurement.

    Attributes
    ----------
    interval_s : float
        Time between probes.
    duration_s : float
        Duration of the measurement.
    reason : str
        The reason for the interval and the duration.
    """

    interval_s: float
    duration_s: float
    reason: str

    @property
    def irtt(self) -> str:
        """The irtt command. irtt also reports the direction of each loss."""
        interval = f"{self.interval_s * 1e3:g}ms"
        return f"irtt client -i {interval} -d {self.duration_s:.0f}s -l 200 -q -o link.json SERVER"

    @property
    def ping(self) -> str:
        """The ping command, if there is no irtt server. Intervals below 2 ms need root."""
        count = math.ceil(self.duration_s / self.interval_s)
        return f"ping -D -O -i {self.interval_s:g} -c {count} SERVER > link.txt"


def plan(losses: FittedLosses | None = None) -> ProbePlan:
    """Recommend a measurement, given the fit of an earlier one.

    Parameters
    ----------
    losses : FittedLosses, optional
        The earlier fit. Without it, the plan detects bad periods of 20 ms or longer that occur at least every
        five seconds.

    Examples
    --------
    >>> from lasthop.fitting import plan
    >>> plan().irtt
    'irtt client -i 10ms -d 300s -l 200 -q -o link.json SERVER'
    """
    if losses is None:
        return ProbePlan(
            0.01, SHORTEST_S, "detects bad periods of 20 ms or longer if they occur every five seconds"
        )
    bad, good = losses.parameter("bad_s"), losses.parameter("good_s")
    if bad is not None and good is not None and bad.determined:
        # Three probes in a period suffice to estimate its length.
        interval = min(max(_round(bad.value / 3), 0.005), 0.02)
        cycle = bad.value + good.value
        duration = min(max(PERIODS * cycle, SHORTEST_S), LONGEST_S)
        return ProbePlan(
            interval, duration, f"contains about {plural(round(duration / cycle), 'bad period')}"
        )
    share = losses.lost / losses.sent
    if losses.lost == 0:
        return ProbePlan(0.01, LONGEST_S, "losses are rare: an hour detects one in 360,000")
    if losses.lost < FEWEST_LOSSES:
        duration = min(max(10 * losses.duration_s, SHORTEST_S), LONGEST_S)
        return ProbePlan(0.01, duration, "losses are rare: a longer measurement has enough of them")
    duration = min(max(PERIODS * 0.1 / share, SHORTEST_S), LONGEST_S)
    return ProbePlan(0.01, duration, "probes every 10 ms detect bursts of 20 ms or longer")


def _round(interval_s: float) -> float:
    """Round an interval to whole milliseconds."""
    return round(interval_s, 3)
