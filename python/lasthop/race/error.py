"""The error of comparisons."""

from __future__ import annotations


class RaceError(Exception):
    """Raised if arms cannot be compared. The message states the reason and the remedy."""
