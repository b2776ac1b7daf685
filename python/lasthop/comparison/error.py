"""The error of comparisons."""

from __future__ import annotations


class ComparisonError(Exception):
    """Arms cannot be compared; the text says why, and the remedy."""
