"""Formatting of counts, and of numbers with units, in running text."""

from __future__ import annotations

import math
from collections.abc import Callable


def seconds(value: float) -> str:
    """Format a duration with three digits and a unit that scenarios accept.

    Examples
    --------
    >>> seconds(0.0431), seconds(12.0), seconds(2e-6), seconds(1234.5)
    ('43.1 ms', '12 s', '2 us', '1230 s')
    """
    return " ".join(scaled_seconds(value))


def scaled_seconds(value: float) -> tuple[str, str]:
    """Return a duration as a number with three digits and its unit, as `seconds` formats it."""
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if value >= 0.9995 * unit:
            return _digits(value / unit), name
    return _digits(max(value, 1e-9) / 1e-6), "us"


def share(value: float) -> str:
    """Format a share in percent with two digits; near 100 %, with as many as tell it from 100 %.

    Examples
    --------
    >>> share(0.0213), share(0.000015), share(0.0)
    ('2.1 %', '0.0015 %', '0 %')
    >>> share(0.994), share(0.999), share(1.0)
    ('99 %', '99.9 %', '100 %')
    """
    if 0.995 <= value < 1:
        decimals = -math.floor(math.log10(100 * (1 - value)) + 1e-9)
        return f"{100 * value:.{max(decimals, 1)}f} %"
    return f"{_digits(100 * value, 2)} %"


def rate(value: float) -> str:
    """Format a rate with three digits and a unit that scenarios accept.

    Examples
    --------
    >>> rate(8.04e6), rate(250e3)
    ('8.04 Mbps', '250 kbps')
    """
    return " ".join(scaled_rate(value))


def scaled_rate(value: float) -> tuple[str, str]:
    """Return a rate as a number with three digits and its unit, as `rate` formats it."""
    for unit, name in ((1e9, "Gbps"), (1e6, "Mbps")):
        if value >= 0.9995 * unit:
            return _digits(value / unit), name
    return _digits(value / 1e3), "kbps"


def interval(low: float, high: float, write: Callable[[float], str]) -> str:
    """Format an interval; `write` formats its ends.

    Examples
    --------
    >>> interval(0.3, float("inf"), seconds)
    'at least 300 ms'
    >>> interval(0.0, 0.02, share)
    'at most 2 %'
    """
    if not math.isfinite(high):
        return f"at least {write(low)}" if low > 0 else "unknown"
    return f"{write(low)} to {write(high)}" if low > 0 else f"at most {write(high)}"


def plural(count: int, noun: str) -> str:
    """Format a count with its noun.

    Examples
    --------
    >>> plural(1, "packet"), plural(20, "packet"), plural(11_986, "packet")
    ('1 packet', '20 packets', '11,986 packets')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _digits(value: float, digits: int = 3) -> str:
    """Format a number with the given significant digits, without an exponent."""
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    return f"{rounded:.{max(places, 0)}f}".rstrip("0").rstrip(".") if places > 0 else f"{rounded:.0f}"
