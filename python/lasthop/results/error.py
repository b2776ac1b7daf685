"""The error of studies and their stores."""

from __future__ import annotations


class StudyError(Exception):
    """A study cannot be created, resumed or read; the text says why, and the remedy."""


class ShardError(StudyError):
    """A study has no such shard.

    Parameters
    ----------
    problem : str
        What was found and expected.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(f"shard: {problem}")
        self.problem: str = problem


class DamagedStoreError(StudyError):
    """A store says other things than what was stored."""
