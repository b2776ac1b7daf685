"""The error of comparisons."""

from __future__ import annotations


class RaceError(Exception):
    """Raised if arms cannot be compared. The message states the reason and the remedy."""


class NoValuesError(RaceError):
    """Raised if no run of any arm has the metric, such as the completion time of transfers that never end."""
