"""The time that a program or a shell prints before a line or on a line of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

_EPOCH = re.compile(r"^\[?(?P<time>\d{9,12}(?:\.\d{1,9})?|\d{13}|\d{16}|\d{19})(?!\d)\]?[:,]? ?")
_SECOND_DIGITS = 10
"""Digits of the seconds since 1970; further ones are those of smaller units, as of `date +%s%N`."""
_CLOCK = re.compile(
    r"(?:(?<![\w:.])|(?<=\d[T_]))(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)(?P<fraction>[.,]\d{1,9})?"
    r"(?: ?(?P<half>[AP]M))?(?![:\d])"
)
_DAY = re.compile(r"(?P<year>\d{4})[-./](?P<month>\d\d)[-./](?P<day>\d\d)[T _-]{1,2}$")
_MONTH_DAY = re.compile(
    r"\b(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w{0,6} +(?P<day>\d{1,2})\b|"
    r"\b(?P<day2>\d{1,2}) +(?P<month2>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
)
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Stamp:
    """The time before a line.

    Attributes
    ----------
    time_s : float
        Seconds since an epoch that all lines of a file share.
    whole : bool
        Whether the time has no fraction of a second.
    dated : bool
        Whether the date is known; otherwise the time begins again at midnight.
    """

    time_s: float
    whole: bool
    dated: bool


def stamp(line: str) -> Stamp | None:
    """Return the time before a line, as of `ping -D`, `ts` or a shell's `date`; None if there is none."""
    if epoch := _EPOCH.match(line):
        time = epoch["time"]
        if len(time) > 12 and "." not in time:
            return Stamp(float(f"{time[:_SECOND_DIGITS]}.{time[_SECOND_DIGITS:]}"), False, True)
        return Stamp(float(time), "." not in time, True)
    clock = _CLOCK.search(line[:80])
    if clock is None:
        return None
    hour, minute = int(clock["hour"]), int(clock["minute"])
    if clock["half"]:
        hour = hour % 12 + (12 if clock["half"] == "PM" else 0)
    fraction = (clock["fraction"] or "").replace(",", ".")
    time_s = hour * 3600 + minute * 60 + float(clock["second"] + fraction)
    days = _days(line[: clock.start()])
    return Stamp((days or 0) * DAY_S + time_s, not fraction, days is not None)


def _days(before: str) -> int | None:
    """Return the number of the day in the text before a time; None without a date."""
    if date := _DAY.search(before):
        try:
            return datetime(int(date["year"]), int(date["month"]), int(date["day"])).toordinal()
        except ValueError:
            return None
    if date := _MONTH_DAY.search(before):
        month = _MONTHS.index(date["month"] or date["month2"]) // 3 + 1
        try:
            return datetime(2001, month, int(date["day"] or date["day2"])).toordinal()
        except ValueError:
            return None
    return None


def after(line: str) -> str:
    """Return a line without the seconds since 1970 before it."""
    epoch = _EPOCH.match(line)
    return line[epoch.end() :] if epoch else line


class Timeline:
    """The times of the lines of a file in their order, in seconds since an epoch that they share.

    Attributes
    ----------
    whole_seconds : bool
        Whether no time has had a fraction of a second.
    """

    def __init__(self) -> None:
        self.whole_seconds: bool = True
        # Midnights passed, if the times have no date.
        self._midnights = 0
        self._latest_s: float | None = None

    def time_s(self, line: str) -> float | None:
        """Return the time before a line; None if there is none."""
        found = stamp(line)
        if found is None:
            return None
        time_s = found.time_s + self._midnights * DAY_S
        if not found.dated and self._latest_s is not None and time_s < self._latest_s - DAY_S / 2:
            self._midnights += 1
            time_s += DAY_S
        self._latest_s = time_s
        self.whole_seconds &= found.whole
        return time_s
