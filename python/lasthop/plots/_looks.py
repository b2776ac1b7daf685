"""Line styles: a scheme has the same colour, mark and dash in every figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.colors import to_hex, to_rgb

from lasthop.plots import _style

Look = dict[str, Any]
"""Arguments of matplotlib's `plot`."""

# Marks and dashes tell the lines apart in greyscale.
_OF_SCHEMES: dict[str, Look] = {
    "basic": {"color": _style.INK, "marker": "o", "linestyle": "-", "markerfacecolor": "white"},
    "source-quench": {"color": _style.GOLD, "marker": "s", "linestyle": (0, (5, 2))},
    "local-recovery": {
        "color": _style.RED,
        "marker": "^",
        "linestyle": (0, (2, 1.5)),
        "markerfacecolor": "white",
    },
    "ebsn": {"color": _style.BLUE, "marker": "D", "linestyle": "-"},
    "lhack": {
        "color": _style.GREEN,
        "marker": "v",
        "linestyle": (0, (6, 2, 1.5, 2)),
        "markerfacecolor": "white",
    },
    "selective-fec": {"color": _style.PURPLE, "marker": "P", "linestyle": (0, (8, 2))},
    "i-tcp": {"color": _style.TEAL, "marker": "X", "linestyle": (0, (1, 1)), "markerfacecolor": "white"},
    "metp": {"color": _style.PINK, "marker": "<", "linestyle": (0, (4, 1, 1, 1))},
    "vs-tcp": {"color": _style.SKY, "marker": "*", "linestyle": "-"},
    "wenp": {"color": _style.OLIVE, "marker": "h", "linestyle": (0, (3, 1)), "markerfacecolor": "white"},
}
_LOOKS = tuple(_OF_SCHEMES.values())


def looks(schemes: Sequence[str]) -> list[Look]:
    """Return the style of each line of a figure.

    Parameters
    ----------
    schemes : sequence of str
        The scheme of each line; empty for a line that belongs to none.

    Returns
    -------
    list of Look
        A figure that compares schemes gives each its own look, and further lines of a scheme its colour,
        lighter each time, with other marks and dashes. Where all lines are about one scheme, or none, the
        looks are in their order; a scheme without a look gets one that is free.

    Examples
    --------
    >>> [look["marker"] for look in looks(["ebsn", "basic"])]
    ['D', 'o']
    >>> [look["marker"] for look in looks(["", "", "basic"])]
    ['s', '^', 'o']
    """
    named = {scheme for scheme in schemes if scheme}
    if len(named) == 1 and len([scheme for scheme in schemes if scheme]) > 1:
        schemes, named = [""] * len(schemes), set()
    free = _cycle([look for scheme, look in _OF_SCHEMES.items() if scheme not in named] or _LOOKS)
    bases = {scheme: _OF_SCHEMES.get(scheme) or next(free) for scheme in dict.fromkeys(schemes) if scheme}
    found, seen = [], Counter[str]()
    for scheme in schemes:
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
