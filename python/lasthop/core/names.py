"""Names: suggestions for misspelt ones, and combinations of schemes such as `snoop@gateway + arq`."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from lasthop._lasthop import schemes

PLAIN = schemes()[0].name
"""The scheme that changes nothing, which is registered first."""

_LIKE = 0.7
"""The least share of letters in common, in order, of a name and a misspelt one."""


def near(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like `name`, or None if none is like it.

    Examples
    --------
    >>> near("ofice", ["cell", "office"]), near("nofile", ["cell", "office"])
    ('office', None)
    """
    return next(iter(get_close_matches(name, known, n=1, cutoff=_LIKE)), None)


class Message(str):
    """The message of an error: the problem, and then the remedy.

    Attributes
    ----------
    problem, remedy : str
        Its parts.
    """

    problem: str
    remedy: str

    def __new__(cls, problem: str, remedy: str) -> Message:
        """Join the parts."""
        message = super().__new__(cls, problem + remedy)
        message.problem, message.remedy = problem, remedy
        return message


def unknown(kind: str, name: str, known: Iterable[str], unlisted: Iterable[str] = ()) -> Message:
    """Return the message about an unknown name: with the closest known name, or else with all of them.

    Parameters
    ----------
    kind : str
        What it would be the name of.
    name : str
        The name.
    known : iterable of str
        The names that there are.
    unlisted : iterable of str, optional
        Further ones, which are suggested and not listed.

    Examples
    --------
    >>> unknown("scheme", "ebns", ["basic", "ebsn"])
    'there is no scheme "ebns"; did you mean "ebsn"?'
    >>> unknown("scheme", "wind", ["basic", "ebsn"])
    'there is no scheme "wind"; there are basic, ebsn'
    """
    names = list(known)
    alike = near(name, [*names, *unlisted])
    rest = f'did you mean "{alike}"?' if alike else f"there are {', '.join(names) or 'none'}"
    return Message(f'there is no {kind} "{name}"; ', rest)


def canonical(combination: str) -> str:
    """Return the form of a combination's name in results, whatever its spaces.

    Examples
    --------
    >>> canonical("snoop @ gateway+arq")
    'snoop@gateway + arq'
    """
    parts = ("@".join(word.strip() for word in part.split("@", 1)) for part in combination.split("+"))
    return " + ".join(parts)


def schemes_of(combination: str) -> list[str]:
    """Return the schemes of a combination, in order, without their nodes.

    Examples
    --------
    >>> schemes_of("snoop@gateway + arq")
    ['snoop', 'arq']
    """
    return [part.split("@", 1)[0].strip() for part in combination.split("+")]


def without_effect(scheme: str, reason: str) -> str:
    """Say that a scheme had no effect, given the reason of `Run.without_effect`.

    Examples
    --------
    >>> without_effect("eln", "BBR does not reduce its window for a loss")
    'eln had no effect on this sender, because BBR does not reduce its window for a loss'
    """
    return f"{scheme} had no effect on this sender, because {reason}"
