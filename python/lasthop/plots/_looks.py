"""Line styles: a scheme has the same colour, mark and dash in every figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.colors import to_hex, to_rgb

from lasthop._lasthop import schemes
from lasthop.plots import _style

Look = dict[str, Any]
"""Arguments of matplotlib's `plot`."""

# Marks and dashes tell the lines apart in greyscale. Lines without a scheme take the looks in this order.
_LOOKS: tuple[Look, ...] = (
    {"color": _style.INK, "marker": "o", "linestyle": "-", "markerfacecolor": "white"},
    {"color": _style.GOLD, "marker": "s", "linestyle": (0, (5, 2))},
    {"color": _style.RED, "marker": "^", "linestyle": (0, (2, 1.5)), "markerfacecolor": "white"},
    {"color": _style.BLUE, "marker": "D", "linestyle": "-"},
    {"color": _style.GREEN, "marker": "v", "linestyle": (0, (6, 2, 1.5, 2)), "markerfacecolor": "white"},
    {"color": _style.PURPLE, "marker": "P", "linestyle": (0, (8, 2))},
    {"color": _style.TEAL, "marker": "X", "linestyle": (0, (1, 1)), "markerfacecolor": "white"},
    {"color": _style.PINK, "marker": "<", "linestyle": (0, (4, 1, 1, 1))},
    {"color": _style.SKY, "marker": "*", "linestyle": "-"},
    {"color": _style.OLIVE, "marker": "h", "linestyle": (0, (3, 1)), "markerfacecolor": "white"},
)
# Schemes take them in the order of their registration, with the second and the third exchanged: so they were
# published.
_ORDER = (0, 2, 1, *range(3, len(_LOOKS)))
# Schemes registered after the last look has been given out have none of their own.
_OF_SCHEMES = {scheme.name: _LOOKS[index] for scheme, index in zip(schemes(), _ORDER, strict=False)}


def looks(lines: Sequence[str]) -> list[Look]:
    """Return the style of each line of a figure.

    Parameters
    ----------
    lines : sequence of str
        The scheme of each line; empty for a line without one.

    Returns
    -------
    list of Look
        In a figure that compares schemes each has its own look, the same in every figure; further lines of a
        scheme have its colour, lighter each time, with other marks and dashes. If all lines belong to one
        scheme, or to none, they take the looks in order. A scheme without a look takes an unused one.

    Examples
    --------
    >>> [look["marker"] for look in looks(["ebsn", "basic"])]
    ['D', 'o']
    >>> [look["marker"] for look in looks(["", "", "basic"])]
    ['s', '^', 'o']
    """
    named = {scheme for scheme in lines if scheme}
    if len(named) == 1 and len([scheme for scheme in lines if scheme]) > 1:
        lines, named = [""] * len(lines), set()
    taken = [_OF_SCHEMES[scheme] for scheme in named if scheme in _OF_SCHEMES]
    free = _cycle([look for look in _LOOKS if look not in taken] or _LOOKS)
    bases = {scheme: _OF_SCHEMES.get(scheme) or next(free) for scheme in dict.fromkeys(lines) if scheme}
    found, seen = [], Counter[str]()
    for scheme in lines:
        if not scheme:
            found.append(next(free))
            continue
        base = bases[scheme]
        other = _LOOKS[(_LOOKS.index(base) + seen[scheme]) % len(_LOOKS)]
        found.append(other | {"color": _lighter(base["color"], seen[scheme])})
        seen[scheme] += 1
    return found


def _lighter(color: str, steps: int) -> str:
    """Mix a colour with white, by 20 % for each step up to 60 %."""
    white = min(0.2 * steps, 0.6)
    red, green, blue = ((1 - white) * part + white for part in to_rgb(color))
    return to_hex((red, green, blue))


def _cycle(of: Sequence[Look]) -> Iterator[Look]:
    while True:
        yield from of
