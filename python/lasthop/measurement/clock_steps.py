"""Steps of a clock that was set while packets were sent at a regular interval."""

from __future__ import annotations

import numpy as np

from lasthop.core.formats import seconds
from lasthop.measurement.model import Counters, Floats

_LEAST_S = 0.5
"""A smaller deviation from the interval is a delay of the program, not a step."""

BACK_S = 0.02
"""The same for time that runs backwards."""

_INTERVALS = 20.0
"""A step forward is longer than this many intervals; a program may send late."""

_NEAR = 8
"""Packets on each side whose times show whether a deviation lasts."""


def without_steps(number: Counters, time_s: Floats, resolution_s: float) -> tuple[Floats, list[float]]:
    """Take the steps of the clock out of the times of packets.

    Parameters
    ----------
    number : array of int64
        The increasing number of each packet; packets are sent at a regular interval.
    time_s : array of float64
        When each was sent, by a clock that may have been set.
    resolution_s : float
        The resolution of the times.

    Returns
    -------
    time_s : array of float64
        The times with the interval in place of each step.
    steps_s : list of float
        What the clock gained at each step.
    """
    if len(number) < 3:
        return time_s, []
    apart, passed_s = np.diff(number), np.diff(time_s)
    interval_s = float(np.median(passed_s / apart))
    if interval_s < 0:
        return time_s, []
    late_s = passed_s - apart * interval_s
    forward_s = max(_LEAST_S, _INTERVALS * interval_s) + 2 * resolution_s
    deviation_s = time_s - number * interval_s
    steps_s = []
    for at in np.flatnonzero((late_s > forward_s) | (passed_s < -BACK_S - resolution_s)).tolist():
        before, after = deviation_s[max(at - _NEAR, 0) : at + 1], deviation_s[at + 1 : at + 1 + _NEAR]
        # A packet that was only printed late is followed by times as before.
        lasting_s = float(np.median(after) - np.median(before))
        if abs(lasting_s) > abs(late_s[at]) / 2:
            steps_s.append(float(late_s[at]))
            passed_s[at] = apart[at] * interval_s
    if not steps_s:
        return time_s, []
    return time_s[0] + np.append(0.0, np.cumsum(passed_s)), steps_s


def note(steps_s: list[float]) -> str:
    """Return the note about the steps."""
    first = steps_s[0]
    way = "forward" if first > 0 else "back"
    more = "" if len(steps_s) == 1 else f", and {len(steps_s) - 1} more times"
    asleep = ", or the computer slept" if max(steps_s) > 0 else ""
    how_far = f"{way} by {seconds(abs(first))}{more}{asleep}"
    return f"The clock was set {how_far}, as sequence numbers show: taken out of the times."
