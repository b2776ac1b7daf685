"""Directories for work that ends with a process, also with one that is killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_NEW = ".new"
"""The end of the name of a directory that its process has not locked yet."""

_YOUNG_S = 60.0
"""A new directory may be this old, in seconds."""


def make(place: Path, prefix: str) -> tuple[Path, int]:
    """Make a directory, and lock it until the returned descriptor is closed in all processes that have it."""
    new = tempfile.mkdtemp(prefix=prefix, suffix=_NEW, dir=place)
    descriptor = os.open(new, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    # Whatever has this name was locked, so that one without a lock was left by a process that was killed.
    return Path(new).rename(new.removesuffix(_NEW)), descriptor


def remove_abandoned(place: Path, prefix: str) -> None:
    """Remove the directories whose processes were killed: those of this user that are not locked."""
    for directory in place.glob(f"{prefix}*"):
        # Those of others, and those that have just disappeared.
        with suppress(OSError):
            descriptor = os.open(directory, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                is_old = time.time() - os.fstat(descriptor).st_mtime > _YOUNG_S
                if is_old or directory.suffix != _NEW:
                    shutil.rmtree(directory)
            finally:
                os.close(descriptor)
