"""The saw-tooth of a congestion window: its cuts, and its growth between them.

Printed and simulated windows are measured alike: sampled every 0.1 s, by the median of half a second, which
leaves out the inflation of a recovery. What the printed curve gives depends on that length.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_STEP_S, _HALF = 0.1, 5
"""The sampling interval, and the samples in half a second."""
HALVES = (3, 5, 7)
"""Lengths of the median in samples, for the uncertainty of the printed curve."""
_TURN = 2.0
"""The least distance of turning points, in segments."""
_LINEAR = (9e3, 24e3)
"""The windows in bytes between which figure 4 grows linearly."""


def _sampled(time_s: npt.ArrayLike, window_bytes: npt.ArrayLike, half: int) -> npt.NDArray[np.float64]:
    time, values = np.asarray(time_s, np.float64), np.asarray(window_bytes, np.float64)
    grid = np.arange(time[0], time[-1], _STEP_S)
    held = np.pad(values[np.searchsorted(time, grid, side="right") - 1], half // 2, mode="edge")
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(held, half), axis=1))


def _turning_points(window: npt.NDArray[np.float64], least: float) -> list[float]:
    """Return the highest and lowest values in turn, the first of which is a highest."""
    found: list[float] = []
    sign, last = 1.0, float(window[0])
    for value in map(float, window):
        if sign * (value - last) >= 0:
            last = value
        elif sign * (last - value) >= least:
            found.append(last)
            sign, last = -sign, value
    return [*found, last]


def cut(time_s: npt.ArrayLike, window_bytes: npt.ArrayLike, segment: float, half: int = _HALF) -> float:
    """Return the window after a cut relative to that before, the median over cuts of two segments or more.

    Examples
    --------
    >>> from lasthop.papers.comparison.digitised import printed_curve
    >>> round(cut(*printed_curve("4-ll"), 1388.0), 2)
    0.63
    """
    turns = _turning_points(_sampled(time_s, window_bytes, half), _TURN * segment)
    return float(np.median([low / high for high, low in zip(turns[::2], turns[1::2], strict=False)]))


def growth(time_s: npt.ArrayLike, window_bytes: npt.ArrayLike, half: int = _HALF) -> float:
    """Return the growth from 9 to 24 KB in bytes per second, the median over spans of two halves that grow.

    Examples
    --------
    >>> from lasthop.papers.comparison.digitised import printed_curve
    >>> round(growth(*printed_curve("4-ll")), -2)
    3800.0
    """
    sampled = _sampled(time_s, window_bytes, half)
    seconds = np.lib.stride_tricks.sliding_window_view(sampled, 2 * half + 1)
    grows = np.all(np.diff(seconds[:, ::half]) > 0, axis=1)
    is_linear = (seconds.min(axis=1) >= _LINEAR[0]) & (seconds.max(axis=1) <= _LINEAR[1])
    shown = seconds[grows & is_linear]
    return float(np.median(shown[:, -1] - shown[:, 0])) / (2 * half * _STEP_S)
