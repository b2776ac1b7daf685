"""Curves and rows of dots of figures 4, 5, 7, 8, 10 and 11, read off the vectors of the paper's PDF.

Each panel is one run of the authors. Its frame gives the scale. A curve is the middle of its stroke,
simplified by at most the reading error: 0.15 s in figures 4 and 5, 0.2 s in 10 and 11, 0.3 s in 7 and 8; 300
B for windows, 30 KB for sequence numbers. Every dot is a separate mark of the drawing: counts are exact.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

Rows = dict[str, list[tuple[float, float | None]]]
"""Times in seconds, with values in bytes on the curve, by what is shown."""


@cache
def _panels() -> dict[str, Rows]:
    text = resources.files(__package__).joinpath("digitised.csv").read_text(encoding="utf-8")
    panels: dict[str, Rows] = {}
    for line in text.splitlines()[1:]:
        panel, what, time, value = line.split(",")
        panels.setdefault(panel, {}).setdefault(what, []).append(
            (float(time), float(value) if value else None)
        )
    return panels


def printed_curve(panel: str) -> tuple[list[float], list[float]]:
    """Return the times in seconds and the values in bytes of a panel's curve.

    Examples
    --------
    >>> times, windows = printed_curve("4-ll-tcp-aware")
    >>> round(times[-1]), round(windows[-1] / 1024)
    (58, 64)
    """
    times, values = zip(*_panels()[panel]["curve"], strict=True)
    return list(times), list(values)


def printed_events(panel: str) -> dict[str, list[float]]:
    """Return the times of the dots of a panel, in seconds, by what they stand for.

    Examples
    --------
    >>> {what: len(times) for what, times in printed_events("7-e2e").items()}
    {'fast retransmissions': 120, 'timeouts': 32}
    """
    return {what: [time for time, _ in rows] for what, rows in _panels()[panel].items() if what != "curve"}
