"""Kinds of applications, by their metrics."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any


class Kind(Enum):
    """The activity of an application."""

    MESSAGES = "messages"
    PAGES = "pages"
    VIDEO = "video"


def kind_of(metrics: Mapping[str, Any]) -> Kind:
    """Return the kind of an application.

    Parameters
    ----------
    metrics : mapping of str to value
        The metrics of the application in `Run.applications`. Pages and videos have some that others lack.

    Examples
    --------
    >>> import lasthop
    >>> run = lasthop.run(lasthop.load("users", ["limit=5 s"]), "basic")
    >>> {name: kind_of(metrics).value for name, metrics in run.applications.items()}
    {'browsing': 'pages', 'film': 'video', 'shell': 'messages'}
    """
    if "pages" in metrics:
        return Kind.PAGES
    if "played_s" in metrics:
        return Kind.VIDEO
    return Kind.MESSAGES
