"""The presenter of results in notebooks and interactive sessions: text, HTML and progress bars."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, singledispatch
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lasthop.engine.stopping import Progress

_SECONDS_BETWEEN_UPDATES = 0.1

_MODULE_OF = {
    "Advice": "links",
    "FittedLink": "links",
    "Link": "runs",
    "Outcome": "papers",
    "Race": "experiments",
    "Run": "runs",
    "Runs": "runs",
    "Scenario": "runs",
    "Scheme": "runs",
    "Study": "experiments",
}
"""The module of this package that registers how a class is shown, imported when one is first shown."""


def text(shown: object) -> str:
    """Return the text that stands for a result."""
    _register(shown)
    return text_of(shown)


def html(shown: object) -> str:
    """Return a result as HTML."""
    _register(shown)
    return html_of(shown)


@singledispatch
def text_of(shown: object) -> str:
    """Return the text of a result whose class is registered."""
    raise TypeError(type(shown))


@singledispatch
def html_of(shown: object) -> str:
    """Return the HTML of a result whose class is registered."""
    raise TypeError(type(shown))


def _register(shown: object) -> None:
    for each in type(shown).__mro__:
        if each.__name__ in _MODULE_OF:
            import_module(f"lasthop.show.{_MODULE_OF[each.__name__]}")


@contextmanager
def activity_bar(title: str) -> Iterator[Callable[[str, Progress | None], None] | None]:
    """Show what goes on while the block runs, if this is a notebook.

    Parameters
    ----------
    title : str
        What is running.

    Yields
    ------
    callable or None
        Takes the name of a part, and its progress or None if its length is unknown. None outside notebooks.
    """
    show = _display()
    if show is None:
        yield None
        return
    shown = -math.inf

    def update(part: str, now: Progress | None) -> None:
        nonlocal shown
        if time.monotonic() - shown >= _SECONDS_BETWEEN_UPDATES:
            shown = time.monotonic()
            show(progress_html(f"{title}, {part}" if part else title, now))

    try:
        yield update
    finally:
        show(None)


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[Progress], None] | None]:
    """Show the progress of a study while the block runs, if this is a notebook.

    Parameters
    ----------
    title : str
        What is running.

    Yields
    ------
    callable or None
        Takes the progress. None outside notebooks.
    """
    with activity_bar(title) as update:
        yield None if update is None else partial(update, "")


def progress_html(title: str, now: Progress | None) -> str:
    """Return the progress of a study as HTML; None is an activity of unknown length."""
    if now is None:
        return f"<div><progress></progress> {escape(title)}</div>"
    left = "" if now.seconds_left is None else f", about {now.seconds_left:,.0f} s left"
    text = f"{escape(title)}: {now.done:,} of about {now.expected:,} runs{left}"
    bar = f'<progress max="{now.expected}" value="{now.done}" aria-label="{escape(title)}"></progress>'
    return f"<div>{bar} {text}</div>"


def _display() -> Callable[[str | None], None] | None:
    """Return what shows HTML in place of the HTML before; None outside notebooks."""
    marimo = sys.modules.get("marimo")
    if marimo is not None and marimo.running_in_notebook():

        def replace_output(html: str | None) -> None:
            if html is None:
                marimo.output.clear()
            else:
                marimo.output.replace(marimo.Html(html))

        return replace_output
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    # A terminal has no place for HTML.
    if shell is None or not hasattr(shell, "kernel"):
        return None
    handle = ipython.display.display(ipython.display.HTML(""), display_id=True)
    return lambda html: handle.update(ipython.display.HTML(html or ""))
