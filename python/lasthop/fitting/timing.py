"""Rate and delay of a link, estimated from measurements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasthop.measurement import Delays, Direction, Measurement, Rates

Floats = npt.NDArray[np.float64]

STEADY = 0.15
"""A rate counts as constant if the standard deviation of its logarithm is smaller."""

UNSTEADY = 2.0
"""A throughput whose best intervals exceed its median by this factor is not that of a constant link."""

STEADY_DELAY_S = 0.005
"""A round-trip time counts as constant if its 10th and 90th percentiles differ by less."""


@dataclass(frozen=True, slots=True)
class Variation:
    """A lognormal process: the keys of `rate.lognormal` and `delay.lognormal`.

    Attributes
    ----------
    median : float
        The median.
    sigma : float
        Standard deviation of the logarithm.
    step_s, correlation_s : float
        Time between changes, and the time in which the autocorrelation falls to 1/e.
    """

    median: float
    sigma: float
    step_s: float
    correlation_s: float


@dataclass(frozen=True, slots=True)
class Timing:
    """Rate and delay of a link.

    Attributes
    ----------
    rtt_s : float or None
        The minimum round-trip time.
    rtt_median_s, rtt_p99_s : float or None
        The median and the 99th percentile.
    delay_variation : Variation or None
        Delay above the minimum, from a measurement that did not load the link; None if nearly constant.
    queue_s : float or None
        Queueing delay of a full queue: 99th percentile less minimum, from a measurement that filled it.
    down_bps, up_bps : float or None
        The rates.
    down_variation, up_variation : Variation or None
        The variation of the rates; None if nearly constant, or if only the mean is known.
    notes : tuple of str
        The origin of the numbers, if it limits them.
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
    """Estimate rate and delay from the measurements of one link."""
    notes: list[str] = []
    idle = [each for each in measurements if not _loads(each)]
    loaded_parts = [part for each in measurements for part in each.under_load]
    busy = [each for each in (*measurements, *loaded_parts) if _loads(each)]
    trips = _trips(idle) or _trips(busy)
    rtt = None if trips is None else float(np.min(trips.delay_s))
    # The queue of the scenario is that of the downlink.
    loaded = _trips(each for each in busy if any(rates.direction == Direction.DOWN for rates in each.rates))
    loaded = loaded or _trips(busy)
    queue = None
    if loaded is not None and rtt is not None and len(loaded.delay_s) >= 100:
        queue = max(float(np.quantile(loaded.delay_s, 0.99)) - rtt, 0.0)
    if trips is not None and not _trips(idle):
        notes.append("The round-trip time is the minimum of a measurement that loaded the link.")
    down, down_variation, up, up_variation = None, None, None, None
    for each in (*measurements, *loaded_parts):
        for rates in each.rates:
            if not np.any(rates.rate_bps > 0):
                continue
            found = _rate(each, rates, notes)
            if found is None:
                continue
            value, variation = found
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
    """Return whether a measurement fills the queue of the link."""
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


def _rate(measurement: Measurement, rates: Rates, notes: list[str]) -> tuple[float, Variation | None] | None:
    """Estimate the rate of a link and its variation; None if the throughput may be that of its users."""
    carried = rates.rate_bps
    if rates.capacity:
        variation = vary(rates.time_s, carried)
        steady = variation is None or variation.sigma < STEADY
        return float(np.mean(carried)), None if steady else variation
    # A TCP connection with losses seldom fills the link; its best intervals are closest to the rate.
    best = float(np.quantile(carried, 0.99))
    middle = float(np.median(carried))
    if not rates.of_transfers and best > UNSTEADY * middle:
        notes.append(
            f"The {rates.direction} rate varies too much to be that of a constant link: a median of "
            f"{middle / 1e6:.3g} Mb/s, and {best / 1e6:.3g} Mb/s at best. --column rate=capacity takes it as "
            "the varying capacity of the link; otherwise state --rate."
        )
        return None
    notes.append(
        f"The {rates.direction} rate is the throughput of {measurement.format} in its best intervals; the "
        "link may be faster. State --rate if you know it."
    )
    return best, None


def _delay_variation(trips: Delays) -> Variation | None:
    """Fit the distribution of the delay above the minimum round-trip time."""
    tenth, ninetieth = np.quantile(trips.delay_s, [0.1, 0.9])
    if len(trips.delay_s) < 100 or ninetieth - tenth < STEADY_DELAY_S:
        return None
    above = trips.delay_s - float(np.min(trips.delay_s))
    return vary(trips.time_s, np.maximum(above, 1e-4))


def vary(time_s: Floats, values: Floats) -> Variation | None:
    """Fit a lognormal process to a series; None for fewer than twenty positive values.

    Median and sigma are estimated from quantiles, which are robust to outliers. The correlation time is the
    lag at which the autocorrelation of the logarithm falls to 1/e.
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
