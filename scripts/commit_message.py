"""Check the message of a commit: a subject of at most 60 characters, a blank line, and a body that says why.

Usage: python scripts/commit_message.py FILE
"""

from __future__ import annotations

import sys
from pathlib import Path

LONGEST_SUBJECT = 60


def problems(message: str) -> list[str]:
    """Return what is wrong with a commit message; an empty list if nothing is.

    Examples
    --------
    >>> problems("Name the queue in the error")
    ['there is no body that says why']
    """
    lines = [line for line in message.rstrip().splitlines() if not line.startswith("#")]
    subject, *rest = lines or [""]
    if subject.startswith(("Merge ", "Revert ", "fixup! ", "squash! ")):
        return []
    found = []
    if len(subject) > LONGEST_SUBJECT:
        found.append(f"the subject has {len(subject)} characters; at most {LONGEST_SUBJECT} fit a log")
    if subject[:1].islower():
        found.append("the subject begins in lower case")
    if subject.endswith("."):
        found.append("the subject ends with a full stop")
    if rest and rest[0]:
        found.append("a blank line must follow the subject")
    if not any(line.strip() for line in rest):
        found.append("there is no body that says why")
    return found


if __name__ == "__main__":
    found = problems(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.exit("\n".join(found) if found else 0)
