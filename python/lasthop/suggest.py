"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


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
    near = get_close_matches(name, names, n=1)
    rest = f'did you mean "{near[0]}"?' if near else f"there are {', '.join(names)}"
    return f'there is no {kind} "{name}"; {rest}'
