"""The error of studies and their stores."""

from __future__ import annotations


class StudyError(Exception):
    """A study cannot be created, resumed or read; the text says why, and the remedy."""


class DamagedStoreError(StudyError):
    """A store says other things than what was stored."""
