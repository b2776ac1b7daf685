"""The times of the rows of a table."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import numpy as np

from lasthop.measurement.model import Floats

NO_DAY = "2000-01-01"
"""The day of a time of day."""

_CLOCK = re.compile(r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?")
_DAY_FIRST = re.compile(r"^(\d\d)\.(\d\d)\.(\d{4})(?!\d)")
_DATE = re.compile(
    r"(?P<day>\d{4}[-./]\d\d[-./]\d\d)[T _-]{1,3}(?P<hour>\d\d)[:.](?P<minute>\d\d)[:.]"
    r"(?P<rest>\d\d(?:[.,]\d{1,9})?)$"
)


_EPOCH = re.compile(r"1\d{9}(?:(?P<small>\d{3}|\d{6}|\d{9})|\.(?P<fraction>\d{0,9}))?")
"""A time since 1970: ten digits of seconds, and those of a smaller unit."""


def are_seconds(time_s: Floats) -> bool:
    """Return whether times are whole seconds, and most rows have that of the row before."""
    steps = np.diff(time_s)
    return len(steps) > 1 and bool((steps == np.floor(steps)).all() and (steps == 0).mean() > 0.5)


def spread(time_s: Floats) -> Floats:
    """Spread the rows of each second over it. The first second may have begun before them, the last go on."""
    seconds, counts = np.unique(time_s, return_counts=True)
    spacing = 1.0 / np.maximum(counts, int(np.median(counts)))
    begin = seconds + np.append(1.0 - counts[0] * spacing[0], np.zeros(len(seconds) - 1))
    place = np.arange(len(time_s)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray(np.repeat(begin, counts) + place * np.repeat(spacing, counts), dtype=np.float64)


def date(cell: str) -> datetime | None:
    """Parse an ISO 8601 date, also with other delimiters, or a time since 1970; None for other text."""
    if epoch := _EPOCH.fullmatch(cell):
        seconds, rest = cell[:10], epoch["small"] or epoch["fraction"] or ""
        return datetime.fromtimestamp(float(f"{seconds}.{rest}0"), UTC)
    if _CLOCK.fullmatch(cell):
        cell = f"{NO_DAY} {cell}"
    other = _DATE.match(_DAY_FIRST.sub(r"\3-\2-\1", cell))
    if other is not None:
        day, rest = re.sub(r"[./]", "-", other["day"]), other["rest"].replace(",", ".")
        cell = f"{day}T{other['hour']}:{other['minute']}:{rest}"
    try:
        return datetime.fromisoformat(cell)
    except ValueError:
        return None
