"""Executable papers: the scenarios, figures and claims of published papers.

`lasthop paper` lists them; `lasthop paper NAME` regenerates a paper's figures and judges every claim of its
text.
"""

from __future__ import annotations

from importlib import import_module

from lasthop.papers.paper import Paper, module

_NAMES = ("comparison", "ebsn", "lhack", "selective-fec", "snoop", "vstcp", "wenp")


def papers() -> list[Paper]:
    """Return all papers, in the order of the list."""
    return [paper(name) for name in _NAMES]


def paper(name: str) -> Paper:
    """Return the paper called `name`.

    Raises
    ------
    KeyError
        If there is no such paper.
    """
    if name not in _NAMES:
        raise KeyError(name)
    found = import_module(f"lasthop.papers.{module(name)}").PAPER
    assert isinstance(found, Paper)
    return found


def names() -> list[str]:
    """Return the names of all papers."""
    return list(_NAMES)


__all__ = ["Paper", "names", "paper", "papers"]
