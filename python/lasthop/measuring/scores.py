"""Scores of a measured link, and the place of its losses."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lasthop.measurement import Delays, Direction, Measurement, Probes

RAMP_S = 1.0
"""The beginning of a load, in which it has not filled the link yet."""

BLOCK_S = 1.0
"""Time whose losses are taken together: longer than most bad periods."""

DRAWS = 1000
"""Draws of the bootstrap."""

TRIMMED = 0.95
"""Share of the round trips that responsiveness takes: the shortest."""

PERFECT_RTT_S, USELESS_RTT_S = 0.2, 0.8
"""The 99th percentile of round trips with which a call is perfect (ITU-T Y.1541, class 0: 100 ms each way),
and useless (ITU-T G.114: 400 ms each way)."""

PERFECT_LOSS, USELESS_LOSS = 0.001, 0.05
"""The share of packets lost with which a call is perfect (ITU-T Y.1541), and useless."""


@dataclass(frozen=True, slots=True)
class Location:
    """Which share of the losses happens on the last hop.

    Attributes
    ----------
    share : float
        The loss to the far end of the last hop divided by that to the far end of the path; may exceed 1.
    low, high : float
        Its 95 % interval.
    """

    share: float
    low: float
    high: float

    @property
    def place(self) -> str:
        """`"last hop"` or `"beyond"` if most losses are certainly there, else `"undetermined"`."""
        if self.low > 0.5:
            return "last hop"
        return "beyond" if self.high < 0.5 else "undetermined"


def locate(last_hop: Probes, far: Probes) -> Location | None:
    """Return where losses happen, by round trips to either end; None without losses to the far end.

    Both series cross the last hop at the same time, so the interval is of their quotient in pairs, by a
    bootstrap of seconds. It is at least as wide as that of a share of the bursts to the far end that are all
    on one side.
    """
    if not bool(far.lost.any()) or not len(last_hop.lost):
        return None
    seconds = [(each.sent_s / BLOCK_S).astype(np.int64) for each in (last_hop, far)]
    both = np.intersect1d(seconds[0], seconds[1])
    rows = []
    for each, second in zip((last_hop, far), seconds, strict=True):
        inside = np.isin(second, both)
        place = np.searchsorted(both, second[inside])
        rows += [np.bincount(place, each.lost[inside], len(both)), np.bincount(place, None, len(both))]
    random = np.random.default_rng(1)
    shares = []
    for _ in range(DRAWS if len(both) else 0):
        drawn = random.integers(0, len(both), len(both))
        near_lost, near_sent, far_lost, far_sent = (float(row[drawn].sum()) for row in rows)
        if far_lost:
            shares.append(near_lost / near_sent / (far_lost / far_sent))
    share = float(last_hop.lost.mean() / far.lost.mean())
    low, high = np.quantile(shares, [0.025, 0.975]) if len(shares) else (0.0, np.inf)
    # The chance that all bursts are on one side, although a share of them is on the other.
    unseen = 1 - 0.025 ** (1 / len(far.bursts))
    return Location(share, min(float(low), 1 - unseen), max(float(high), unseen))


def round_trips(measurement: Measurement, after_s: float = 0.0) -> Delays | None:
    """Return the round trips of a measurement from a time on; None if there are none."""
    for delays in measurement.delays:
        if delays.direction is Direction.ROUND_TRIP:
            late = delays.time_s >= after_s
            if bool(late.any()):
                return Delays(delays.direction, delays.time_s[late], delays.delay_s[late])
    return None


def responsiveness(loaded: Measurement) -> float | None:
    """Return the round trips per minute (RPM) under load; None without round trips.

    After draft-ietf-ippm-responsiveness, with the trimmed mean of the round trips of probes in place of those
    of its requests over HTTP, whose handshakes this does not include.

    Examples
    --------
    >>> import numpy as np
    >>> trips = Delays(Direction.ROUND_TRIP, np.arange(100) / 10, np.full(100, 0.3))
    >>> round(responsiveness(Measurement("x", "irtt", 10.0, delays=(trips,))))
    200
    """
    trips = round_trips(loaded, RAMP_S)
    if trips is None:
        return None
    shortest = np.sort(trips.delay_s)[: max(math.floor(TRIMMED * len(trips.delay_s)), 1)]
    return 60.0 / float(shortest.mean())


def outcome(measurement: Measurement, after_s: float = 0.0) -> float | None:
    """Return the quality of outcome (QoO) of a call, 0 to 100; None without round trips.

    After draft-ietf-ippm-qoo: latency and loss are each placed between perfect and useless, and the worse
    counts.
    The requirements are those of this module.

    Examples
    --------
    >>> import numpy as np
    >>> trips = Delays(Direction.ROUND_TRIP, np.arange(100) / 10, np.full(100, 0.5))
    >>> round(outcome(Measurement("x", "irtt", 10.0, delays=(trips,))))
    50
    """
    trips = round_trips(measurement, after_s)
    if trips is None:
        return None
    loss = _lost(measurement, after_s)
    scores = (
        (USELESS_RTT_S - float(np.quantile(trips.delay_s, 0.99))) / (USELESS_RTT_S - PERFECT_RTT_S),
        (USELESS_LOSS - loss) / (USELESS_LOSS - PERFECT_LOSS),
    )
    return 100.0 * min(max(min(scores), 0.0), 1.0)


def throughput(loaded: Measurement, idle: Measurement) -> tuple[float, float]:
    """Return the interval of a link's rate in bits per second, by what TCP carried; it may be unbounded.

    The lower end is the average. TCP may leave a part of the link unused, so the upper end is the largest of
    the best second, the average if nothing arrived in the first second, and the average while a queue stood:
    the link was idle for at most the share of round trips that are as short as those without load. Packets
    that were lost had their time on the link too. Where half of the round trips are short, nothing bounds it.
    """
    rates = loaded.rates[0]
    lasts_s = float(rates.interval_s.sum())
    bits = float((rates.rate_bps * rates.interval_s).sum())
    trips, calm = round_trips(loaded, RAMP_S), round_trips(idle)
    if trips is None or calm is None or not rates.saturated:
        return bits / lasts_s, math.inf
    unused = float((trips.delay_s <= np.quantile(calm.delay_s, 0.99)).mean())
    lost = _lost(loaded, RAMP_S)
    if unused > 0.5 or lost > 0.5:
        return bits / lasts_s, math.inf
    best = float(rates.rate_bps.max()) if len(rates.rate_bps) > 1 else 0.0
    high = max(best, bits / max(lasts_s - RAMP_S, RAMP_S), bits / lasts_s / (1 - unused))
    return bits / lasts_s, high / (1 - lost)


def _lost(measurement: Measurement, after_s: float) -> float:
    """Return the share of round trips that were lost from a time on."""
    fates = [each for each in measurement.probes if each.direction is Direction.ROUND_TRIP]
    lost = [each.lost[each.sent_s >= after_s] for each in fates]
    return float(lost[0].mean()) if lost and len(lost[0]) else 0.0
