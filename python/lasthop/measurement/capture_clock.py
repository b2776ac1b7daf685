"""Steps of the clock of a capturing host, which was set while it captured."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lasthop.core.formats import seconds
from lasthop.measurement.model import Counters, Floats

_BACK_NS = 10_000_000
"""Packets of several hardware queues are out of order by less."""

_FORWARD_NS = 500_000_000
"""A shorter gap counts as one of the link."""

_LONG_PAUSE_S = 10.0
"""The shortest pause that is noted."""

_NEAR = 40
"""Packets on each side of a gap by which it is judged."""

_RECENT = 400
"""Earlier pairs of packets among which like ones are looked for."""

_MOST_GAPS = 1000
"""Limit of the gaps that are judged."""

_TICKS = (10.0, 100.0, 250.0, 300.0, 1000.0, 1e6)
"""Usual frequencies of the timestamps of TCP, in hertz."""

Rows = npt.NDArray[np.intp]


def without_steps(time_ns: Counters, columns: dict[str, Any]) -> tuple[Counters, list[float]]:
    """Take the steps of the clock out of capture times.

    A step backwards shows in the times alone. What passed meanwhile is told by TCP timestamps, or is the
    usual time between two such packets. A step forward is one only if the timestamps of both ends say so.

    Parameters
    ----------
    time_ns : array of int64
        The time of each packet, in the order of the file.
    columns : dict
        The other columns of the packets.

    Returns
    -------
    time_ns : array of int64
        The times without steps.
    steps_s : list of float
        What the clock gained at each step.
    """
    passed = np.diff(time_ns)
    suspects = np.flatnonzero((passed < -_BACK_NS) | (passed > _FORWARD_NS))
    stamped = _stamped(time_ns, columns) if len(suspects) else []
    steps: list[tuple[int, int]] = []
    for at in suspects[:_MOST_GAPS].tolist():
        after = time_ns[at + 1 : at + 1 + _NEAR]
        if passed[at] < 0:
            # A packet that was written late is followed by those of its own time.
            if np.median(after) >= time_ns[at] - _BACK_NS // 2:
                continue
            gains = [
                gain for gain in (_gained(at, *each) for each in stamped) if gain is not None and gain < 0
            ]
            gained = int(np.median(gains)) if gains else int(passed[at]) - _usual(passed, at, columns)
        else:
            known = [_gained(at, *each) for each in stamped]
            gains = [gain for gain in known if gain is not None]
            if len(gains) < 2 or min(gains) < max(_FORWARD_NS, 0.8 * max(gains)):
                continue
            gained = min(gains)
        steps.append((at + 1, gained))
    if not steps:
        return time_ns, []
    shift = np.zeros(len(time_ns), dtype=np.int64)
    for at, gained in steps:
        shift[at] = gained
    return time_ns - np.cumsum(shift), [gained / 1e9 for _, gained in steps]


def _stamped(time_ns: Counters, columns: dict[str, Any]) -> list[tuple[Rows, Floats]]:
    """Return the packets of each end that have timestamps, and how far their times are ahead of these."""
    found = []
    rows = np.flatnonzero(columns["timestamp"] > 0)
    for host in np.unique(columns["source"][rows])[:_MOST_GAPS]:
        own = rows[columns["source"][rows] == host]
        if len(own) < _NEAR:
            continue
        ticks = np.diff(columns["timestamp"][own].astype(np.int64) & 0xFFFFFFFF)
        ticks = ((ticks + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
        spread = slice(None, None, max(len(own) // 200, 1))
        counted = np.concatenate(([0], np.cumsum(ticks)))
        passed = np.diff(time_ns[own][spread])
        some = passed > 0
        if not some.any():
            continue
        hertz = float(np.median(np.diff(counted[spread])[some] / passed[some])) * 1e9
        near = min(_TICKS, key=lambda tick: abs(np.log(max(hertz, 1e-3) / tick)))
        if not 0.8 < hertz / near < 1.25:
            continue
        found.append((own, time_ns[own] - counted / near * 1e9))
    return found


def _gained(at: int, rows: Rows, ahead_ns: Floats) -> int | None:
    """Return what the clock gained behind a row, by the timestamps of one end; None if it sent too little.

    Queues delay packets, but not all of them, so the least delays on both sides are compared.
    """
    place = int(np.searchsorted(rows, at, side="right"))
    before, after = ahead_ns[max(place - _NEAR, 0) : place], ahead_ns[place : place + _NEAR]
    if min(len(before), len(after)) < _NEAR // 4:
        return None
    return int(after.min() - before.min())


def _usual(passed: Counters, at: int, columns: dict[str, Any]) -> int:
    """Return the usual time between two packets such as those around a step."""
    first = slice(max(at - _RECENT, 0), at)
    second = slice(max(at - _RECENT, 0) + 1, at + 1)
    alike = np.ones(at - max(at - _RECENT, 0), dtype=np.bool_)
    for column in (columns["source"], columns["payload"] > 0):
        alike &= (column[first] == column[at]) & (column[second] == column[at + 1])
    gaps = passed[first]
    alike &= gaps >= 0
    some = gaps[alike] if alike.any() else gaps[gaps >= 0]
    return int(np.median(some)) if len(some) else 0


def pause(time_ns: Counters) -> str | None:
    """Return a note about a pause that may be a step of the clock, which nothing tells from idle time.

    None unless the longest gap is 10 s, and more than the rest of the capture.
    """
    if len(time_ns) < 2:
        return None
    gaps = np.diff(time_ns)
    at = int(gaps.argmax())
    gap_s, whole_s = gaps[at] / 1e9, float(time_ns[-1] - time_ns[0]) / 1e9
    if gap_s < _LONG_PAUSE_S or gap_s < whole_s / 2:
        return None
    begin_s = float(time_ns[at] - time_ns[0]) / 1e9
    return (
        f"Nothing was captured for {seconds(gap_s)} from {seconds(begin_s)} on: idle time, an outage, or a "
        "clock that was set forward."
    )


def note(steps_s: list[float]) -> str:
    """Return the note about the steps."""
    first = steps_s[0]
    way = "forward" if first > 0 else "back"
    more = "" if len(steps_s) == 1 else f", and {len(steps_s) - 1} more times"
    return (
        f"The clock of the capture was set {way} by {seconds(abs(first))}{more}: taken out of the times, by "
        "TCP timestamps or the usual time between packets."
    )
