"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def near(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like `name`, or None if none is like it."""
    return next(iter(get_close_matches(name, known, n=1)), None)


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the message about an unknown name: with the closest known name, or else with all of them.

    Examples
    --------
    >>> unknown("scheme", "ebns", ["basic", "ebsn"])
    'there is no scheme "ebns"; did you mean "ebsn"?'
    >>> unknown("scheme", "wind", ["basic", "ebsn"])
    'there is no scheme "wind"; there are basic, ebsn'
    """
    names = list(known)
    alike = near(name, names)
    rest = f'did you mean "{alike}"?' if alike else f"there are {', '.join(names)}"
    return f'there is no {kind} "{name}"; {rest}'
