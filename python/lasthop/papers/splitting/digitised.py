"""Printed values: heat maps, bars, and numbers that the artifact's notebooks print.

Cells of figure 4 are printed with two digits. Bars are read off the artifact's images, within a pixel: 1 % of
the rate in figure 1, 0.3 % of the axis for the queues. The numbers of one segment and of figure 7 are medians
of 20 and 40 trials, with three digits.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

from lasthop.papers.splitting.network import Path, Segment

Where = tuple[str, str, str, Path]
"""A control, the way (`one`, `end-to-end` or `split`), a queue and a path."""


@cache
def _figures() -> dict[str, dict[Where, float]]:
    text = resources.files(__package__).joinpath("digitised.csv").read_text(encoding="utf-8")
    figures: dict[str, dict[Where, float]] = {}
    for row in csv.DictReader(text.splitlines()):
        path = tuple(Segment.parse(row[name]) for name in ("segment_1", "segment_2") if row[name])
        where = (row["control"], row["way"], row["queue"], path)
        figures.setdefault(row["figure"], {})[where] = 1e6 * float(row["mbps"])
    return figures


def printed(figure: str) -> dict[Where, float]:
    """Return the throughputs of a figure in bits per second.

    Examples
    --------
    >>> [len(printed(figure)) for figure in ("1", "4", "7a", "7b", "one", "queues")]
    [24, 120, 25, 45, 39, 150]
    """
    return _figures()[figure]
