"""Titles of scenarios as they are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

from lasthop._lasthop import Quantity, Scenario, quantity

_Number = tuple[float, str]

_STATED = re.compile(r"(?<![\w.,])\d+(?:\.\d+)?\s?(?:%|[A-Za-z][\w/]*)")


def shown_title(scenario: Scenario, swept: Mapping[str, Sequence[object]] | None = None) -> str:
    """Return the title of a scenario, in which the range of a sweep replaces the value that it changes.

    With `swept`, these values of settings in place of the scenario's sweep. A number in the title stands for
    a swept setting if it equals the setting's value outside the sweep.

    Examples
    --------
    >>> import lasthop
    >>> from lasthop.core.titles import shown_title
    >>> shown_title(lasthop.load("last-mile", ["sweep.radio.channel.frame-loss.loss=[0.001, 0.1]"]))
    'Last mile: 0.1 % to 10 % of frames lost, by sender and scheme'
    """
    title = scenario.title
    for key, texts in (scenario.sweep if swept is None else swept).items():
        if key not in scenario or not texts:
            continue
        base, values = _number(scenario[key]), [_number(text) for text in texts]
        known = [value for value in values if value is not None]
        if base is not None and len(known) == len(values):
            # Settings are in base units, without a name.
            base = base[0], base[1] or known[0][1]
            title = _STATED.sub(partial(_replaced, base, known), title)
    return title


def _replaced(base: _Number, swept: list[_Number], found: re.Match[str]) -> str:
    """Return the range of the swept values in place of the base value, and other numbers as they are."""
    return _range(found[0], swept) if _number(found[0]) == base else found[0]


def _number(value: object) -> _Number | None:
    """Return a number with its base unit; None of what is no single number."""
    if isinstance(value, str):
        found = quantity(value.replace("b/s", "bps"))
        return None if found is None else (float(f"{found[0]:.9g}"), found[1])
    if isinstance(value, Quantity):
        return _number(str(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value), ""
    return None


def _range(stated: str, values: list[_Number]) -> str:
    """Return the least and the greatest value, in the unit in which the title states one."""
    unit = stated.lstrip("0123456789.")
    one = _number(f"1{unit}")
    scale = 1.0 if one is None or one[0] == 0 else one[0]
    least, greatest = (f"{pick(values)[0] / scale:.4g}{unit}" for pick in (min, max))
    return least if least == greatest else f"{least} to {greatest}"
