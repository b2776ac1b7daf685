"""Rate and delay of a link, as far as measurements say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasthop.measurement import Delays, Direction, Measurement, Rates

Floats = npt.NDArray[np.float64]

STEADY = 0.15
"""A rate whose logarithm varies less counts as constant."""

STEADY_DELAY_S = 0.005
"""A round-trip time that varies less, between the tenth and the ninetieth percentile, counts as constant."""


@dataclass(frozen=True, slots=True)
class Variation:
    """A lognormal course: the keys of `rate.lognormal` and `delay.lognormal`.

    Attributes
    ----------
    median : float
        The median.
    sigma : float
        Standard deviation of the logarithm.
    step_s, correlation_s : float
        Time between changes, and over which the correlation falls to 1/e.
    """

    median: float
    sigma: float
    step_s: float
    correlation_s: float


@dataclass(frozen=True, slots=True)
class Timing:
    """Rate and delay.

    Attributes
    ----------
    rtt_s : float or None
        The least round-trip time.
    rtt_median_s, rtt_p99_s : float or None
        Its median and 99th percentile.
    delay_variation : Variation or None
        What comes on top of the least, in a measurement that did not load the link; None if it hardly varies.
    queue_s : float or None
        The time that a full queue takes: the 99th percentile less the least of a measurement that filled it.
    down_bps, up_bps : float or None
        The rates.
    down_variation, up_variation : Variation or None
        How they vary; None if they hardly do, or are known in the mean only.
    notes : tuple of str
        What the numbers rest on.
    """

    rtt_s: float | None = None
    rtt_median_s: float | None = None
    rtt_p99_s: float | None = None
    delay_variation: Variation | None = None
    queue_s: float | None = None
    down_bps: float | None = None
    up_bps: float | None = None
    down_variation: Variation | None = None
    up_variation: Variation | None = None
    notes: tuple[str, ...] = ()


def timing(measurements: Sequence[Measurement]) -> Timing:
    """Return what measurements of one link say of its rate and delay."""
    notes: list[str] = []
    idle = [each for each in measurements if not _loads(each)]
    busy = [each for each in measurements if _loads(each)]
    trips = _trips(idle) or _trips(busy)
    rtt = None if trips is None else float(np.min(trips.delay_s))
    loaded = _trips(busy)
    queue = None
    if loaded is not None and rtt is not None and len(loaded.delay_s) >= 100:
        queue = max(float(np.quantile(loaded.delay_s, 0.99)) - rtt, 0.0)
    if trips is not None and not _trips(idle):
        notes.append("The round-trip time is the least of a measurement that loaded the link.")
    down, down_variation, up, up_variation = None, None, None, None
    for each in measurements:
        for rates in each.rates:
            if not np.any(rates.rate_bps > 0):
                continue
            value, variation = _rate(each, rates, notes)
            if rates.direction == Direction.UP:
                if up is None or value > up:
                    up, up_variation = value, variation
            elif down is None or value > down:
                down, down_variation = value, variation
    return Timing(
        rtt_s=rtt,
        rtt_median_s=None if trips is None else float(np.median(trips.delay_s)),
        rtt_p99_s=None if trips is None else float(np.quantile(trips.delay_s, 0.99)),
        delay_variation=None if not (calm := _trips(idle)) else _delay_variation(calm),
        queue_s=queue,
        down_bps=down,
        up_bps=up,
        down_variation=down_variation,
        up_variation=up_variation,
        notes=tuple(dict.fromkeys(notes)),
    )


def _loads(measurement: Measurement) -> bool:
    """Whether a measurement itself fills the link's queue."""
    return any(rates.saturated for rates in measurement.rates)


def _trips(measurements: Iterable[Measurement]) -> Delays | None:
    """Return the longest series of round-trip times."""
    found = [
        delays
        for each in measurements
        for delays in each.delays
        if delays.direction == Direction.ROUND_TRIP and len(delays.delay_s)
    ]
    return max(found, key=lambda delays: len(delays.delay_s), default=None)


def _rate(measurement: Measurement, rates: Rates, notes: list[str]) -> tuple[float, Variation | None]:
    """Return the rate of a link and how it varies, from what it carried."""
    carried = rates.rate_bps
    if rates.capacity:
        variation = vary(rates.time_s, carried)
        steady = variation is None or variation.sigma < STEADY
        return float(np.mean(carried)), None if steady else variation
    # A TCP that loses packets seldom fills the link: its best intervals come nearest.
    best = float(np.quantile(carried, 0.99))
    notes.append(
        f"The {rates.direction} rate is what {measurement.format} carried in its best intervals; the link "
        "may carry more. State --rate if you know better."
    )
    return best, None


def _delay_variation(trips: Delays) -> Variation | None:
    """Return the law of what the round-trip time has on top of its least value."""
    tenth, ninetieth = np.quantile(trips.delay_s, [0.1, 0.9])
    if len(trips.delay_s) < 100 or ninetieth - tenth < STEADY_DELAY_S:
        return None
    above = trips.delay_s - float(np.min(trips.delay_s))
    return vary(trips.time_s, np.maximum(above, 1e-4))


def vary(time_s: Floats, values: Floats) -> Variation | None:
    """Return the lognormal course nearest to a series; None if it is shorter than twenty values above zero.

    Median and spread are those of the quantiles, so that a few outliers do not matter. The correlation time
    is that at which the autocorrelation of the logarithm falls to 1/e.
    """
    some = values > 0
    if int(some.sum()) < 20:
        return None
    logs = np.log(values[some])
    low, middle, high = np.quantile(logs, [0.1587, 0.5, 0.8413])
    sigma = min(float(high - low) / 2, 5.0)
    step = float(np.median(np.diff(time_s[some])))
    if sigma == 0 or step <= 0:
        return None
    apart = logs - logs.mean()
    correlation = 0.0
    total = float(np.mean(apart**2))
    for lag in range(1, len(apart) // 4):
        if float(np.mean(apart[lag:] * apart[:-lag])) < total / math.e:
            break
        correlation = lag * step
    return Variation(math.exp(float(middle)), sigma, step, correlation)
