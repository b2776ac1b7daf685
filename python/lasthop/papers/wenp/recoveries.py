"""Recoveries from losses of a window, in traces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lasthop._lasthop import Run
from lasthop.papers.wenp.network import STATIONS

_MSS = 1460
_WINDOW = 65_535 // _MSS


@dataclass(frozen=True, slots=True)
class Recovery:
    """A recovery that begins with a fast retransmit.

    Attributes
    ----------
    window : float
        The congestion window before, in segments.
    losses : int
        The number of segments lost among those in flight at the fast retransmit.
    timed_out : bool
        Whether there is a timeout before all of these are acknowledged.
    sent : float or None
        The new segments sent in the round trip after the recovery; None if it, or this round trip, has
        another loss or a timeout.
    """

    window: float
    losses: int
    timed_out: bool
    sent: float | None


def recoveries(run: Run) -> Iterator[Recovery]:
    """Yield the recoveries of all stations whose windows are below that of the receiver.

    Recoveries with a lost retransmission are left out: these are further losses.
    """
    for station in STATIONS:
        events, series = run.events(station), run.series(station)
        time, kinds, packets = events["time_s"], events["event"], events["packet"]
        lost, first = kinds == "lost", events["transmission"] == 1
        found, timeouts = time[kinds == "fast-retransmit"], time[kinds == "timeout"]
        una, nxt = series["snd_una_bytes"], series["snd_nxt_bytes"]
        end = -1.0
        for start, packet in zip(found, packets[kinds == "fast-retransmit"], strict=True):
            if start < end:
                continue
            row = int(np.searchsorted(series["time_s"], start)) - 1
            flight = round((nxt[row] - una[row]) / _MSS)
            last = _row_after(series["time_s"], una, nxt[row], row)
            if last is None:
                break
            end = float(series["time_s"][last])
            window = float(series["cwnd_bytes"][row] / _MSS)
            within = lost & (packets >= packet) & (packets < packet + flight)
            if window >= _WINDOW or bool((within & ~first & (time < end)).any()):
                continue
            losses = len(np.unique(packets[within & first]))
            timed_out = _any_between(timeouts, start, end)
            sent = None
            turn = _row_after(series["time_s"], una, nxt[last], last)
            if losses == 1 and turn is not None:
                until = float(series["time_s"][turn])
                if not _any_between(timeouts, start, until) and not _any_between(found, start, until):
                    sent = float(nxt[turn] - nxt[last]) / _MSS
            yield Recovery(window, losses, timed_out, sent)


def _row_after(time: np.ndarray, una: np.ndarray, sequence: float, row: int) -> int | None:
    """Return the last row of the time at which everything before `sequence` is acknowledged."""
    acknowledged = np.flatnonzero(una[row:] >= sequence)
    if not len(acknowledged):
        return None
    return int(np.searchsorted(time, time[row + acknowledged[0]], side="right")) - 1


def _any_between(times: np.ndarray, start: float, end: float) -> bool:
    return bool(((times > start) & (times <= end)).any())
