"""What a study refuses."""

from __future__ import annotations


class StudyError(Exception):
    """A study cannot be made, continued or read as asked; the text says why and what can be done."""
