"""Parsing quantities such as "19.2 kbps" into numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

_COLUMN_UNITS = {"": "value", "B": "bytes"}
"""The units of columns that differ from the basic units."""

_NUMBER = re.compile(r"\s*([-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*?)\s*")

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_BYTES = {
    "B": 1.0,
    **{f"{prefix}B": 1000.0**i for i, prefix in enumerate("KMG", 1)},
    **{f"{prefix}iB": 1024.0**i for i, prefix in enumerate("KMG", 1)},
}
_BITS_PER_SECOND = {
    f"{prefix}{unit}": bits * 1000.0**i
    for i, prefix in enumerate(("", "k", "M", "G"))
    for unit, bits in (("bps", 1.0), ("bit/s", 1.0), ("B/s", 8.0))
}
_KINDS = (("s", _SECONDS), ("B", _BYTES), ("bps", _BITS_PER_SECOND), ("", {"": 1.0, "%": 0.01}))


def quantity(text: str) -> tuple[float, str] | None:
    """Parse a quantity.

    Parameters
    ----------
    text : str
        The text, such as `"19.2 kbps"`.

    Returns
    -------
    (float, str) or None
        The number in the basic unit, and that unit: `"s"`, `"B"`, `"bps"`, `""` for plain numbers, or any
        other word after the number. None if the text is not a quantity.

    Examples
    --------
    >>> quantity("19.2 kbps"), quantity("4KiB"), quantity("1e-6"), quantity("tahoe")
    ((19200.0, 'bps'), (4096.0, 'B'), (1e-06, ''), None)
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    number, unit = float(match[1].replace("_", "")), match[2]
    for basic, units in _KINDS:
        if unit in units:
            return number * units[unit], basic
    # "1 segment" and "2 segments" have the same unit.
    return number, unit.removesuffix("s")


def number(text: str) -> float:
    """Parse a quantity and return its number in the basic unit.

    Raises
    ------
    ValueError
        If it is not a quantity.

    Examples
    --------
    >>> number("250 ms"), number("5 dB")
    (0.25, 5.0)
    """
    found = quantity(text)
    if found is None:
        raise ValueError(f"{text!r} is not a quantity")
    return found[0]


def numeric_columns(settings: Mapping[str, Sequence[str]]) -> dict[str, list[float]]:
    """Return the values of swept settings as columns of numbers, named after setting and basic unit.

    Parameters
    ----------
    settings : mapping of str to sequence of str
        The values of each setting.

    Returns
    -------
    dict of str to list of float
        The numbers in basic units, NaN for a value such as `unlimited`. A setting whose values are all words,
        or of several units, has no column.

    Examples
    --------
    >>> numeric_columns({"wired.delay": ["50 ms", "1 s"], "tcp.flavour": ["tahoe", "reno"]})
    {'wired.delay_s': [0.05, 1.0]}
    >>> numeric_columns({"radio.queue": ["10 packets", "unlimited"], "channel.loss": ["2%"]})
    {'radio.queue_packets': [10.0, nan], 'channel.loss_value': [0.02]}
    """
    columns = {}
    for setting, values in settings.items():
        read = [quantity(value) for value in values]
        units = {found[1] for found in read if found is not None}
        if len(units) == 1:
            (unit,) = units
            # Counted things, such as packets, but no unit such as dB.
            counted = f"{unit}s" if len(unit) > 2 and unit.islower() else unit
            name = f"{setting}_{_COLUMN_UNITS.get(unit, counted)}"
            columns[name] = [math.nan if found is None else found[0] for found in read]
    return columns


def axis(values: Sequence[str]) -> tuple[list[float], str] | None:
    """Parse the values of a swept parameter as an axis.

    Parameters
    ----------
    values : sequence of str
        The values.

    Returns
    -------
    (list of float, str) or None
        The numbers and their common unit, as in `quantity`. None unless they are quantities of one kind with
        at least two different values.

    Examples
    --------
    >>> axis(["500 ms", "1 s"])
    ([0.5, 1.0], 's')
    >>> axis(["10 packets", "unlimited"]) is None
    True
    """
    read = [quantity(value) for value in values]
    known = [each for each in read if each is not None]
    numbers = [number for number, _ in known]
    if len(known) < len(read) or len({unit for _, unit in known}) != 1 or len(set(numbers)) < 2:
        return None
    return numbers, known[0][1]
