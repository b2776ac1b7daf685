"""Quantities such as "19.2 kbps" as columns and axes of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lasthop._lasthop import quantity

_COLUMN_UNITS = {"": "value", "B": "bytes"}
"""The units of columns that differ from the basic units."""


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
