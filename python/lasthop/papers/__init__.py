"""Executable papers: the scenarios, figures and claims of published papers.

`lasthop paper` lists the papers. `lasthop paper NAME` regenerates the figures of a paper and judges each
claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from lasthop.papers.paper import Paper, module

if TYPE_CHECKING:
    from lasthop.papers.runner import Outcome

_NAMES = ("comparison", "ebsn", "lhack", "selective-fec", "snoop", "splitting", "vstcp", "wenp")


def papers() -> list[Paper]:
    """Return all papers, in the order of `lasthop paper`."""
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


def reproduce(
    name: str,
    *,
    figures: Sequence[str] | None = None,
    readings: Mapping[str, str] | None = None,
    full: bool = False,
    seed: int = 1,
    run: int = 0,
    jobs: int | None = None,
    store: str | Path | None = None,
    progress: bool = True,
) -> Outcome:
    """Run a paper: draw its figures and judge its claims, like `lasthop paper`.

    Parameters
    ----------
    name : str
        The paper, one of `names`.
    figures : sequence of str, optional
        Draw only these figures and judge no claims. By default, draw all figures and judge all claims.
    readings : mapping of str to str, optional
        The choice for each ambiguity of the paper, by the name of the reading.
    full : bool, default False
        Whether to make as many runs as the claims need, instead of a few.
    seed : int, default 1
        The seed.
    run : int, default 0
        The run shown in packet traces.
    jobs : int, optional
        The number of threads, by default one per core.
    store : str or Path, optional
        A directory for finished runs, from which a later call resumes.
    progress : bool, default True
        Whether to show a progress bar in notebooks.

    Returns
    -------
    Outcome
        The figures and the verdicts. Notebooks render them as a table with collapsible figures.

    Raises
    ------
    KeyError
        If there is no such paper.
    ValueError
        If a figure, reading or choice does not exist; the message lists the valid ones.

    Examples
    --------
    >>> from lasthop import papers
    >>> outcome = papers.reproduce("ebsn", figures=["3"])
    >>> [plot.title for plot, figure in outcome.figures]
    ['Packet trace: basic TCP']
    """
    from lasthop.core.display import activity_bar, chosen
    from lasthop.papers.runner import Selection, run_paper

    found = paper(name)
    known = [plot.id for plot in found.figures]
    for wanted in figures or ():
        if wanted not in known:
            raise ValueError(f"{name} has no figure {wanted!r}; it has {', '.join(known)}")
    plots = [plot for plot in found.figures if figures is None or plot.id in figures]
    claims = found.claims if figures is None else ()
    selection = Selection(found, found.choose(readings or {}), full, plots, claims, seed, run)
    with chosen(progress, activity_bar(found.title)) as report:
        return run_paper(selection, None if store is None else Path(store), jobs, report)


__all__ = ["Paper", "names", "paper", "papers", "reproduce"]
