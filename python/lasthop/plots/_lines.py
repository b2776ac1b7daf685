"""Line styles: a scheme has the same colour, mark and dash in every figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import cycle
from typing import Any

from matplotlib.colors import to_hex, to_rgb

from lasthop._lasthop import schemes
from lasthop.core.names import schemes_of
from lasthop.plots import _style

LineStyle = dict[str, Any]
"""Arguments of matplotlib's `plot`."""

# Marks and dashes tell the lines apart in greyscale. Lines without a scheme take the styles in this order.
_STYLES: tuple[LineStyle, ...] = (
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
    {"color": _style.BROWN, "marker": "^", "linestyle": (0, (6, 2, 1.5, 2))},
    {"color": _style.SLATE, "marker": "d", "linestyle": (0, (2, 1.5)), "markerfacecolor": "white"},
    {"color": _style.CYAN, "marker": ">", "linestyle": "-"},
    {"color": _style.SALMON, "marker": "p", "linestyle": (0, (5, 2)), "markerfacecolor": "white"},
    {"color": _style.MAROON, "marker": "v", "linestyle": (0, (1, 1))},
    {"color": _style.LIME, "marker": "o", "linestyle": (0, (4, 1, 1, 1)), "markerfacecolor": "white"},
    {"color": _style.LAVENDER, "marker": "s", "linestyle": (0, (8, 2))},
    {"color": _style.MINT, "marker": "D", "linestyle": (0, (3, 1)), "markerfacecolor": "white"},
    {"color": _style.TAN, "marker": "X", "linestyle": "-"},
    {"color": _style.GREY, "marker": "P", "linestyle": (0, (5, 2)), "markerfacecolor": "white"},
)
# Schemes take them in the order of their registration, with the second and the third exchanged: so they were
# published.
_ORDER = (0, 2, 1, *range(3, len(_STYLES)))
_REGISTERED = [scheme.name for scheme in schemes()]
_OF_SCHEMES = dict(zip(_REGISTERED, (_STYLES[index] for index in cycle(_ORDER)), strict=False))


def line_styles(lines: Sequence[str], palette: Sequence[str] = ()) -> list[LineStyle]:
    """Return the style of each line of a figure.

    Parameters
    ----------
    lines : sequence of str
        The scheme of each line, or several joined by plus signs; empty for a line without one.
    palette : sequence of str, optional
        Schemes of other figures that should agree with this one, in the same order for all of them.

    Returns
    -------
    list of LineStyle
        In a figure that compares schemes each has its own style, the same in every figure, unless two of them
        were registered so far apart that they have the same one. Further lines of a scheme have its colour,
        lighter each time, with other marks and dashes; so have those of schemes that it is the first part of.
        If all lines belong to one scheme, or to none, they take the styles in order. Unregistered schemes
        take unused styles.

    Examples
    --------
    >>> [line_style["marker"] for line_style in line_styles(["ebsn", "basic"])]
    ['D', 'o']
    >>> [line_style["marker"] for line_style in line_styles(["", "", "basic"])]
    ['s', '^', 'o']
    """
    named = {scheme for scheme in lines if scheme}
    if len(named) == 1 and not palette and len([scheme for scheme in lines if scheme]) > 1:
        lines = [""] * len(lines)
    bases = _bases([*palette, *lines])
    free = cycle([line_style for line_style in _STYLES if line_style not in bases.values()] or _STYLES)
    # Those of a scheme alone come first, wherever the figure has them.
    order = sorted(range(len(lines)), key=lambda index: lines[index] != _head(lines[index]))
    found: list[LineStyle] = [{}] * len(lines)
    seen = Counter[str]()
    for index in order:
        head = _head(lines[index])
        if not head:
            found[index] = next(free)
            continue
        base = bases[head]
        other = _STYLES[(_STYLES.index(base) + seen[head]) % len(_STYLES)]
        found[index] = other | {"color": _lighter(base["color"], seen[head])}
        seen[head] += 1
    return found


def _head(scheme: str) -> str:
    """Return the first registered part of a scheme; all of it if there is none."""
    return next((part for part in schemes_of(scheme) if part in _OF_SCHEMES), scheme)


def _bases(schemes: Sequence[str]) -> dict[str, LineStyle]:
    """Return a distinct style for each scheme, by its first part."""
    heads = [head for head in dict.fromkeys(map(_head, schemes)) if head]
    bases: dict[str, LineStyle] = {}
    for head in [*(name for name in _REGISTERED if name in heads), *heads]:
        unused = [line_style for line_style in _STYLES if line_style not in bases.values()] or _STYLES
        wanted = _OF_SCHEMES.get(head, unused[0])
        bases.setdefault(head, wanted if wanted in unused else unused[0])
    return bases


def _lighter(color: str, steps: int) -> str:
    """Mix a colour with white, by 20 % for each step up to 60 %."""
    white = min(0.2 * steps, 0.6)
    red, green, blue = ((1 - white) * part + white for part in to_rgb(color))
    return to_hex((red, green, blue))
