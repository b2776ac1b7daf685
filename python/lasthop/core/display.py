"""How results show themselves. Their text, HTML and progress bars come from above, from `lasthop.show`.

The package calls `present_by` when it is imported, so results need to know nothing of what is above them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

Report = TypeVar("Report", bound=Callable[..., object])


class Presenter(Protocol):
    """Shows results in interactive sessions and notebooks."""

    def text(self, shown: object) -> str:
        """Return the text that stands for a result."""

    def html(self, shown: object) -> str:
        """Return a result as HTML."""

    def progress_bar(self, title: str) -> AbstractContextManager[Callable[[Any], None] | None]:
        """Show the progress of an experiment during a block, if this is a notebook.

        The block gets what to call with the progress; None outside notebooks.
        """

    def activity_bar(self, title: str) -> AbstractContextManager[Callable[[str, Any], None] | None]:
        """Show the activities of a task during a block, if this is a notebook.

        The block gets what to call with an activity, and its progress or None; None outside notebooks.
        """


_presenter: Callable[[], Presenter]


def present_by(importer: Callable[[], Presenter]) -> None:
    """Set what imports the presenter."""
    global _presenter
    _presenter = importer


class Shown:
    """A result that shows itself by the presenter."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the text that stands for it."""
        return text(self)

    def _repr_html_(self) -> str:
        return html(self)


def text(shown: object) -> str:
    """Return the text that stands for a result."""
    return _presenter().text(shown)


def html(shown: object) -> str:
    """Return a result as HTML."""
    return _presenter().html(shown)


def progress_bar(title: str) -> AbstractContextManager[Callable[[Any], None] | None]:
    """Return the presenter's progress bar."""
    return _presenter().progress_bar(title)


def activity_bar(title: str) -> AbstractContextManager[Callable[[str, Any], None] | None]:
    """Return the presenter's bar of activities."""
    return _presenter().activity_bar(title)


def chosen(
    progress: Report | bool | None, bar: AbstractContextManager[Report | None]
) -> AbstractContextManager[Report | None]:
    """Return what progress is reported to: what the caller gave, else the bar of a notebook, unless False."""
    if progress is None or progress is True:
        return bar
    return nullcontext(progress or None)
